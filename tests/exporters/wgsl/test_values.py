"""Numbers that need care, as kernels: NaN, infinity, zeros."""

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.exporters.wgsl import to_wgsl
from burnbook.tensor import Tensor
from burnbook.tensor.attention import attention
from tests.support.careful_values import (
    BEYOND,
    CAREFUL,
    LINES,
    narrowed,
    pairs,
    wanted,
)
from tests.support.gpu_here import needs_gpu

pytestmark = needs_gpu
DEVICE = Numpy()


def agrees(run, tmp_path, *given):
    made = to_wgsl(run, tmp_path / "net.js", *given, batch=None)
    for one, other in zip(made.run(*given), wanted(run, *given), strict=True):
        np.testing.assert_allclose(one, other, 1e-5, 1e-6)


@pytest.mark.parametrize("name", CAREFUL)
def test_nan_infinity_and_zeros_give_what_they_give_here(name, tmp_path):
    agrees(CAREFUL[name], tmp_path, *pairs())


@pytest.mark.parametrize("dim", [0, 1])
def test_the_median_of_a_line_with_nan_is_its_first_nan(dim, tmp_path):
    x = Tensor.from_numpy(LINES, DEVICE)
    agrees(lambda x: x.median_with_indices(dim), tmp_path, x)


def test_an_angle_has_the_signs_of_its_zeros(tmp_path):
    y, x = (
        np.float32([0.0, 0.0, -0.0, -0.0, 2.0, -2.0]),
        np.float32([0, -1, 1, -1, 0, 0]),
    )
    x[0] = -0.0
    given = [Tensor.from_numpy(one, DEVICE) for one in (y, x)]
    (found,) = to_wgsl(Tensor.atan2, tmp_path / "net.js", *given, batch=None).run(y, x)
    pi = np.float32(np.pi)
    np.testing.assert_allclose(found, [pi, pi, 0, -pi, pi / 2, -pi / 2], 1e-6)
    assert np.signbit(found[2])


def test_attention_to_nan_gives_nan(tmp_path):
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(1, 1, 6, 4)
    x[0, 0, 2, 1] = np.nan
    given = Tensor.from_numpy(x, DEVICE)
    agrees(lambda x: attention(x, x, x), tmp_path, given)


def test_bools_may_come_as_any_numbers(tmp_path):
    b = Tensor.from_numpy(np.array([True, False, True]), DEVICE)

    def run(b):
        return b.select(0, Tensor.from_ints([0, 1], DEVICE)).int(), b.int().sum()

    made = to_wgsl(run, tmp_path / "net.js", b, batch=None)
    picked, count = made.run(np.float32([0.5, 0.0, 255.0]))
    assert picked.tolist() == [1, 0]
    assert count.tolist() == [2]


def test_casts_to_narrow_whole_numbers_wrap_around_as_here(tmp_path):
    agrees(narrowed, tmp_path, Tensor.from_floats(BEYOND, DEVICE))
