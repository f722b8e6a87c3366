"""Clipped gradients are right at every size of numbers, in every type."""

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.grad_clipping import GradientClipping
from burnbook.grad_clipping.clipping import global_norm
from burnbook.module import ParamId
from burnbook.optim import GradientsParams
from burnbook.tensor import Tensor

TYPES = {"f16": 1e-3, "f32": 1e-6, "f64": 1e-14}
SIZES = {
    "f16": [1e-4, 1.0, 300.0, 1.5e4],
    "f32": [1e-36, 1e-30, 1e-19, 1.0, 3e19, 1e30, 8e37],
    "f64": [1e-300, 1e-170, 1.0, 1e160, 1e305],
}
CASES = [(kind, size) for kind, sizes in SIZES.items() for size in sizes]
HOW = {"norm": GradientClipping.by_norm, "global": GradientClipping.by_global_norm}


def clipped(how, arrays, threshold, device):
    grads = GradientsParams()
    for number, array in enumerate(arrays, 1):
        tensor = Tensor.from_numpy(array.astype(device.float_dtype), device)
        grads.register(ParamId(number), tensor)
    made = HOW[how](threshold).clip_gradients(grads)
    return [np.asarray(grad).astype(float) for _, grad in made.items()]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("kind", "size"), CASES)
@pytest.mark.parametrize("share", [0.5, 1e-3, 2.0])
def test_the_direction_stays_and_the_length_is_the_threshold(how, kind, size, share):
    device, near = Numpy(float=kind), TYPES[kind]
    grad = (np.array([3.0, 4.0, 0.0]) * size).astype(device.float_dtype).astype(float)
    norm = np.hypot(*(grad[:2] / size)) * size
    threshold = max(share * norm, 1e-300)
    if not threshold < 1e308:
        pytest.skip("no double holds this threshold")
    (found,) = clipped(how, [grad], threshold, device)
    factor = min(1.0, threshold / norm)
    if how == "global":  # PyTorch's formula
        factor = min(1.0, threshold / (norm + 1e-6))
    wanted = grad * factor
    least = float(np.finfo(device.float_dtype).smallest_subnormal)
    assert np.allclose(found, wanted, rtol=4 * near, atol=2 * least)


@pytest.mark.parametrize("kind", TYPES)
def test_one_huge_gradient_leaves_the_others_their_share(kind):
    device = Numpy(float=kind)
    huge = SIZES[kind][-1]
    found = clipped("global", [np.array([3.0, 4.0]) * huge, np.ones(2)], 1.0, device)
    assert np.allclose(found[0], [0.6, 0.8], rtol=2e-3)
    assert np.isfinite(found[1]).all()


@pytest.mark.parametrize("kind", TYPES)
def test_norms_of_many_elements_are_those_of_double_precision(kind):
    device = Numpy(float=kind)
    rng = np.random.default_rng(4)
    for size in SIZES[kind]:
        array = (rng.uniform(-2, 2, 1000) * size).astype(device.float_dtype)
        wanted = np.linalg.norm(array.astype(float) / size) * size
        assert global_norm([Tensor.from_numpy(array, device)]) == pytest.approx(
            wanted,
            rel=1e-2 if size * 65504 > 1e8 and kind == "f16" else 2e-3,
            abs=1e-300,
        )


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", TYPES)
def test_what_is_no_number_shows(how, kind):
    device = Numpy(float=kind)
    (found,) = clipped(how, [np.array([np.nan, 1.0])], 0.5, device)
    assert np.isnan(found[0])
    (found,) = clipped(how, [np.array([np.inf, 1.0])], 0.5, device)
    assert not np.isfinite(found[0])
    (found,) = clipped(how, [np.zeros(3)], 0.5, device)
    assert np.array_equal(found, np.zeros(3))
