"""At the edge: 0 to the power 0, singular matrices, no copies, bf16."""

import math

import numpy as np
import pytest

from burnbook import ops
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import KindError, ShapeError
from burnbook.tensor import Int, Shape, Tensor, activation, apply, grid, linalg
from tests import oracle

DEVICE = Autodiff(Numpy(float="f64"))
SINGULAR = {
    "zeros": np.zeros((3, 3)),
    "rank 1": np.outer([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]),
    "rank 2": np.arange(9.0).reshape(3, 3),
    "one zero": np.zeros((1, 1)),
    "a row twice": np.array([[1.0, 2.0], [1.0, 2.0]]),
    "regular": np.array([[3.0, 1.0], [1.0, 2.0]]),
}


def leaf(values, device=DEVICE):
    return Tensor.from_data(np.asarray(values), device).require_grad()


@pytest.mark.parametrize("matrix", SINGULAR.values(), ids=SINGULAR)
def test_the_gradient_of_det_needs_no_inverse(matrix):
    x = leaf(matrix)
    gradient = np.asarray(x.grad(linalg.det(x).backward()))
    assert np.allclose(gradient, oracle.find("cofactor")(matrix), atol=1e-12)


def test_a_batch_with_one_singular_matrix():
    batch = np.stack([SINGULAR["a row twice"], SINGULAR["regular"]])
    x = leaf(batch)
    gradient = np.asarray(x.grad(linalg.det(x).backward()))
    assert np.allclose(gradient, oracle.find("cofactor")(batch), atol=1e-12)


@pytest.mark.parametrize("matrix", SINGULAR.values(), ids=SINGULAR)
def test_the_second_derivative_of_det(matrix):
    """det is a polynomial, so its second differences are exact up to rounding."""
    inner = Autodiff(Numpy(float="f64"))
    outer = Autodiff(inner)
    weights = np.random.default_rng(0).standard_normal(matrix.shape)
    low = leaf(matrix, inner)
    x = Tensor.from_inner(low, outer).require_grad()
    first = x.grad(linalg.det(x).backward())
    second = low.grad((first * Tensor.from_data(weights, inner)).sum().backward())
    cofactor, step, expected = oracle.find("cofactor"), 1e-3, np.empty(matrix.shape)
    for i, j in np.ndindex(matrix.shape):
        moved = np.zeros(matrix.shape)
        moved[i, j] = step
        change = cofactor(matrix + moved) - cofactor(matrix - moved)
        expected[i, j] = (change * weights).sum() / (2 * step)
    assert np.allclose(np.asarray(second), expected, rtol=1e-6, atol=1e-8)


def test_det_of_a_matrix_with_nan_has_nan_gradients_there_alone():
    x = leaf([[[1.0, np.nan], [0.0, 1.0]], [[3.0, 1.0], [1.0, 2.0]]])
    gradient = np.asarray(x.grad(linalg.det(x).backward()))
    assert np.isnan(gradient[0]).all()
    assert gradient[1].round(12).tolist() == [[2.0, -1.0], [-1.0, 3.0]]


BASES = [0.0, 0.0, 0.0, 2.0, -2.0, -1.0, 0.0, np.inf, -0.0]
POWERS = [0.0, 1.0, -1.0, 0.0, 2.0, 0.5, 0.5, 0.0, 0.0]


def test_powers_have_the_gradients_of_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle here")
    x, y = leaf(BASES), leaf(POWERS)
    grads = (x**y).backward()
    t, u = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in
            (BASES, POWERS))  # fmt: skip
    (t**u).sum().backward()
    assert np.array_equal(np.asarray(x.grad(grads)), t.grad.numpy(), equal_nan=True)
    assert np.array_equal(np.asarray(y.grad(grads)), u.grad.numpy(), equal_nan=True)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0, 3.0, -1.0])
def test_powers_by_a_number(power):
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle here")
    bases = BASES[:-1]  # for the root of -0.0 PyTorch takes another formula
    x = leaf(bases)
    t = torch.tensor(bases, dtype=torch.float64, requires_grad=True)
    (t**power).sum().backward()
    gradient = np.asarray(x.grad((x**power).backward()))
    assert np.allclose(gradient, t.grad.numpy(), equal_nan=True)


@pytest.mark.parametrize("base", [0.0, 2.0, -1.0])
def test_powers_of_a_number(base):
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle here")
    y = leaf(POWERS)
    u = torch.tensor(POWERS, dtype=torch.float64, requires_grad=True)
    (base**u).sum().backward()
    gradient = np.asarray(y.grad((base**y).backward()))
    assert np.allclose(gradient, u.grad.numpy(), equal_nan=True)


def test_a_power_keeps_the_element_type_of_its_gradient():
    y = leaf(np.array([1.0, 2.0], np.float32), Autodiff(Numpy()))
    assert y.grad((2.0**y).backward()).dtype == "f32"


def test_the_mixed_derivative_of_a_power_to_the_zero():
    """∂²xʸ/∂x∂y = xʸ⁻¹ (1 + y ln x), which is 1/x for y = 0."""
    inner = Autodiff(Numpy(float="f64"))
    outer = Autodiff(inner)
    low = leaf([0.0], inner)
    x = leaf([4.0], outer)
    first = x.grad((x ** Tensor.from_inner(low, outer)).backward())
    second = low.grad(first.backward())
    assert np.asarray(second).tolist() == [0.25]


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_no_copies_leave_a_dim_of_size_0(dim):
    x = leaf(np.ones((2, 3)))
    none = x.repeat_dim(dim, 0)
    shape = [2, 3]
    shape[dim] = 0
    assert none.shape == tuple(shape)
    assert np.asarray(x.grad(none.sum().backward())).tolist() == [[0.0] * 3] * 2


def test_no_copies_of_whole_numbers():
    assert Tensor.from_ints([[1, 2]]).repeat_dim(0, 0).kind is Int


def test_nothing_is_computed_in_bf16_but_data_holds_it():
    with pytest.raises(KindError, match="NumPy has no bf16"):
        Numpy("bf16")
    with pytest.raises(KindError, match="NumPy has no bf16"):
        Tensor.zeros([2]).cast("bf16")
    data = Tensor.from_data([1.0, 3.1415]).into_data().convert("bf16")
    assert Tensor.from_data(data).into_data().to_list() == [1.0, 3.140625]


def test_a_cubic_weighs_the_same_as_when_it_stretches_a_picture():
    """Reading in the middles of 8 pixels where 4 are is what Interpolate2d does."""
    picture = np.random.default_rng(3).standard_normal((1, 2, 4, 4))
    x = Tensor.from_numpy(picture, DEVICE)
    middles = Tensor.from_numpy((np.arange(8) + 0.5) / 4 - 1, DEVICE)
    rows, columns = grid.meshgrid([middles, middles])
    places = Tensor.stack([columns, rows], 2).unsqueeze(4)
    ours = x.grid_sample_2d(places, "bicubic", "border")
    options = {"output_size": (8, 8), "mode": "cubic", "align_corners": False}
    assert ours.all_close(apply(ops.interpolate, x, **options), atol=1e-12)


def test_a_cubic_of_a_single_pixel_is_that_pixel():
    x = Tensor.full([1, 1, 1, 1], 3.0)
    places = Tensor.from_data([[[[0.3, -0.9]]]])
    for corners in (True, False):
        assert x.grid_sample_2d(places, "bicubic", "border", corners).all_close(x)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("compiled", [False, None])
def test_a_line_with_nan_has_no_median(dim, compiled):
    """As in PyTorch: NaN, from where the first NaN stands."""
    x = np.array([[3.0, np.nan, 1.0], [5.0, 2.0, np.nan], [0.0, np.nan, 4.0]], "f4")
    x = x if dim else x.T.copy()
    device = Numpy(compiled=compiled)
    found, places = Tensor.from_numpy(x, device).median_with_indices(dim)
    assert np.isnan(np.asarray(found)).all()
    assert np.asarray(places).ravel().tolist() == [1, 2, 1]
    whole = Tensor.from_numpy(np.nan_to_num(x), device).median(dim)
    assert np.array_equal(
        np.asarray(whole), np.median(np.nan_to_num(x), dim, keepdims=True)
    )


@pytest.mark.parametrize(
    "reduced",
    [
        lambda x: x.mean(),
        lambda x: x.mean_dim(0),
        lambda x: x.mean_dims([0, 1]),
        lambda x: x.var_bias(0),
        lambda x: x.var(0),
        lambda x: x.sum(),
    ],
)
def test_a_mean_over_nothing_is_nan_and_has_an_empty_gradient(reduced):
    x = leaf(np.zeros((0, 3)))
    out = reduced(x)
    assert np.isnan(np.asarray(out)).all() or float(np.asarray(out).sum()) == 0
    assert x.grad(out.sum().backward()).dims() == (0, 3)


def test_an_empty_dim_is_cut_into_one_piece():
    """As in PyTorch, so that Tensor.cat puts together again what was cut."""
    x = Tensor.zeros([2, 0, 3], DEVICE)
    assert [piece.dims() for piece in x.split(2, 1)] == [(2, 0, 3)]
    assert [piece.dims() for piece in x.chunk(4, 1)] == [(2, 0, 3)]
    assert Tensor.cat(x.split(2, 1), 1).dims() == (2, 0, 3)


EDGES = [np.inf, -np.inf, np.nan, 0.0, -0.0, 4.0, -4.0, 1e-40]


@pytest.mark.parametrize("device", [Numpy(compiled=False), Numpy()])
@pytest.mark.parametrize("exponent", [0.5, -0.5, 1.5, 0.0, 2.0, -1.0])
def test_powers_are_those_of_the_standard(exponent, device):
    """IEEE 754 says what pow(−∞, ½) is, and Python's math.pow follows it."""
    with np.errstate(all="ignore"):
        wanted = [np.float32(power_of(x, exponent)) for x in np.float32(EDGES)]
    found = np.asarray(Tensor.from_data(EDGES, device).powf_scalar(exponent))
    assert np.allclose(found, wanted, rtol=1e-6, atol=0, equal_nan=True)
    assert np.array_equal(np.signbit(found), np.signbit(wanted))


def power_of(x, exponent):
    try:
        return math.pow(x, exponent)
    except (ValueError, ZeroDivisionError, OverflowError):  # C gives NaN or ∞
        return np.power(np.float64(x), exponent)


@pytest.mark.parametrize("divisor", [1.0, -1.5, 0.7, 3.0])
def test_a_remainder_is_never_the_divisor_itself(divisor):
    small = [1e-40, -1e-40, 1e-8, -1e-8, -0.0, 5.0, -5.0]
    found = np.asarray(Tensor.from_data(small) % divisor)
    assert (np.abs(found) < abs(np.float32(divisor))).all()
    assert ((found == 0) | (np.sign(found) == np.sign(divisor))).all()


def test_whole_floats_are_whole_exponents_of_ints():
    x = Tensor.from_ints([2, -3])
    assert x.powf_scalar(3.0).to_data().to_list() == [8, -27]
    assert x.powi_scalar(1.0).to_data().to_list() == [2, -3]


@pytest.mark.parametrize("compiled", [False, True])
def test_the_slope_of_a_leaky_relu_does_not_reach_infinity(compiled):
    x = Tensor.from_data([np.inf, 2.0, -1.0], Numpy(compiled=compiled or None))
    for slope in (0.0, 1e-60, 0.5, 1.0, 2.0):
        found = np.asarray(activation.leaky_relu(x, slope))
        assert found[:2].tolist() == [np.inf, 2.0]
        assert np.isclose(found[2], -slope)


def test_no_largest_elements_are_none():
    x = Tensor.from_data([[3.0, 1.0], [2.0, 4.0]])
    assert x.topk(0, 1).dims() == (2, 0)
    assert [t.dims() for t in x.topk_with_indices(0, 0)] == [(0, 2), (0, 2)]


def test_a_shape_is_taken_literally_and_a_list_is_not():
    x = Tensor.zeros([0, 3])
    assert x.reshape(Shape([3, 0, 2])).dims() == (3, 0, 2)
    assert Tensor.zeros([2, 3]).reshape([0, 3, 1]).dims() == (2, 3, 1)
    with pytest.raises(ShapeError, match="reshape"):
        Tensor.zeros([2, 3]).reshape(Shape([0, 3]))


def test_one_hot_has_the_rank_that_is_asked_for():
    assert Tensor[2].one_hot(1, 3).to_data().to_list() == [[0.0, 1.0, 0.0]]
    assert Tensor.one_hot(1, 3, rank=3).dims() == (1, 1, 3)
    assert Tensor[1].one_hot(1, 3).dims() == (3,)


def test_what_is_infinitely_far_is_not_close_but_equal_infinities_are():
    x = Tensor.from_data([1.0, np.inf, np.nan, 1.0])
    y = Tensor.from_data([np.inf, np.inf, np.nan, 1.0])
    assert np.asarray(x.is_close(y)).tolist() == [False, True, False, True]


def test_nothing_can_be_divided_by_zero():
    nothing = Tensor.zeros([2, 0], kind=Int)
    assert (nothing / 0).dims() == (nothing % 0).dims() == (2, 0)
