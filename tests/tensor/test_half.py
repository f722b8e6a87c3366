"""Functions made of several ops, where tensors are float16."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.tensor import Tensor, activation, linalg

ROWS = np.array([[1e-4, 3e-4, -2e-4], [2e-4, 1e-4, 2e-4]], np.float16)


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_their_arguments_may_be_named(dtype):
    x = Tensor.from_numpy(ROWS.astype(dtype.replace("f", "float")), Numpy(dtype))
    by_place = linalg.cosine_similarity(x, x, 1), activation.glu(x.repeat_dim(1, 2), 1)
    by_name = (
        linalg.cosine_similarity(x1=x, x2=x, dim=1),
        activation.glu(x=x.repeat_dim(1, 2), dim=1),
    )
    for one, other in zip(by_place, by_name, strict=True):
        assert one.dtype == other.dtype == dtype
        assert np.array_equal(one, other)


def test_gradients_between_two_casts_keep_the_wide_type():
    leaf = Tensor.from_numpy(ROWS, Autodiff(Numpy("f16"))).require_grad()
    wide = leaf.into_full_precision()
    out = leaf.from_full_precision(wide * 1e6 * 1e-6)  # 1e-6 has two digits in float16
    assert np.all(np.asarray(leaf.grad(out.sum().backward())) == 1)


def test_slopes_that_leave_the_type_on_the_way_are_right():
    found = {}
    for dtype in ("f16", "f64"):
        array = ROWS.astype(dtype.replace("f", "float"))
        leaf = Tensor.from_numpy(array, Autodiff(Numpy(dtype))).require_grad()
        other = Tensor.from_numpy(array[::-1].copy(), leaf.backend)
        cosine = linalg.cosine_similarity(leaf, other, 1, 1e-8)
        found[dtype] = np.asarray(leaf.grad(cosine.sum().backward()))
    assert np.allclose(found["f16"], found["f64"], rtol=2e-3)
