"""Quantization: what functions make of codes, and what gradients do."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.backend.wrappers import Counting
from burnbook.core.errors import GraphError, KindError, ShapeError
from burnbook.ops import linear
from burnbook.tensor import Bool, Int, Tensor, activation, apply, quantized as lists
from burnbook.tensor.quantization import (
    QuantizationParameters,
    QuantizedTensor,
    QuantScheme,
    fake_quantize,
)
from tests.support.far_arrays import Far
from tests.support.quantizing import (
    AFFINE,
    BOOK,
    SCHEMES,
    SYMMETRIC,
    codes,
    every_scheme,
    numbers,
    tensor,
)

# What functions make of codes: Burn 0.15's three groups

WITH_ONE = {
    "neg": lambda x: -x,
    "abs": lambda x: x.abs(),
    "operator": lambda x: x * 2.0 + 1.0,
    "turned": lambda x: 1.0 - x,
    "remainder": lambda x: x % 0.7,
    "power": lambda x: x**2,
    "scalar": lambda x: x.powf_scalar(3.0),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "sum": lambda x: x.sum(),
    "mean_dim": lambda x: x.mean_dim(1),
    "mask_fill": lambda x: x.mask_fill(x.greater(0.0), 2.0),
}
WITH_TWO = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x.sub(y),
    "mul": lambda x, y: x * y,
    "mask_where": lambda x, y: x.mask_where(x.greater(0.0), y),
    "scatter": lambda x, y: x.scatter(1, Tensor.zeros([4, 8], kind=Int), y),
    "select_assign": lambda x, y: x.select_assign(0, Tensor.arange(0, 4), y),
    "slice_assign": lambda x, y: x.slice_assign([(0, 4)], y),
    "cat": lambda x, y: Tensor.cat([x, y], 1),
    "stack": lambda x, y: Tensor.stack([x, y], 0),
}
NUMBERS = {
    "matmul": lambda x: x @ x.transpose(),
    "exp": lambda x: x.exp(),
    "sqrt": lambda x: x.sqrt(),
    "round": round,
    "recip": lambda x: 1.0 / x,
    "floor division": lambda x: x // 2.0,
    "expand": lambda x: x.unsqueeze().expand([3, 4, 8]),
    "softmax": lambda x: activation.softmax(x, 1),
    "var": lambda x: x.var(1),
    "zeros_like": lambda x: x.zeros_like(),
}
MOVED = {
    "reshape": lambda x: x.reshape([8, -1]),
    "flatten": lambda x: x.flatten(0, 1),
    "transpose": lambda x: x.transpose(),
    "T": lambda x: x.T,
    "t": lambda x: x.t(),
    "swap_dims": lambda x: x.swap_dims(0, 1),
    "permute": lambda x: x.permute([1, 0]),
    "movedim": lambda x: x.movedim(0, 1),
    "flip": lambda x: x.flip([0, -1]),
    "slice": lambda x: x.slice([(0, 2), (0, 4)]),
    "index": lambda x: x[1:3, :4],
    "row": lambda x: x[2],
    "narrow": lambda x: x.narrow(1, 0, 4),
    "select": lambda x: x.select(0, Tensor.from_ints([2, 2, 0])),
    "gather": lambda x: x.gather(0, Tensor.zeros([4, 8], kind=Int)),
    "repeat_dim": lambda x: x.repeat_dim(0, 3),
    "unsqueeze": lambda x: x.unsqueeze_dim(0),
    "roll": lambda x: x.roll_dim(2, 0),
}
CHOSEN = {
    "max": lambda x: x.max(),
    "min_dim": lambda x: x.min_dim(1),
    "sort": lambda x: x.sort(1),
    "sort_descending": lambda x: x.sort_descending(0),
    "topk": lambda x: x.topk(3, 1),
}


def near(quantized, plain, scale):
    return np.abs(np.asarray(quantized) - np.asarray(plain)).max() <= scale


@pytest.mark.parametrize("function", WITH_ONE.values(), ids=WITH_ONE)
@pytest.mark.parametrize("scheme", [AFFINE, SYMMETRIC, QuantScheme()])
def test_arithmetic_is_quantized_again_in_burn_0_15(function, scheme):
    x = tensor(4, 8).quantize_dynamic(scheme)
    out, plain = function(x), function(x.dequantize())
    assert isinstance(out, QuantizedTensor) == scheme.propagates
    top = np.abs(np.asarray(plain)).max()
    assert near(out, plain, 3 * top / 255)
    if isinstance(out, QuantizedTensor):
        assert out.scheme == scheme
    else:
        assert out.all_close(plain)


@pytest.mark.parametrize("function", WITH_TWO.values(), ids=WITH_TWO)
def test_two_tensors_of_codes_give_codes_and_a_mixture_numbers(function):
    a, b = tensor(4, 8), tensor(4, 8, seed=1)
    x, y = a.quantize_dynamic(AFFINE), b.quantize_dynamic(SYMMETRIC)
    plain = function(x.dequantize(), y.dequantize())
    out = function(x, y)
    assert isinstance(out, QuantizedTensor)
    assert out.scheme == AFFINE  # of the first
    assert out.to_data() == plain.quantize_dynamic(AFFINE).to_data()
    for mixed in (function(x, y.dequantize()), function(x.dequantize(), y)):
        assert type(mixed) is Tensor
        assert mixed.all_close(plain)


@every_scheme
@pytest.mark.parametrize("function", NUMBERS.values(), ids=NUMBERS)
def test_everything_else_gives_numbers(function, scheme):
    x = tensor(4, 8).quantize_dynamic(scheme)
    out = function(x)
    assert type(out) is Tensor
    assert np.array_equal(
        np.asarray(out), np.asarray(function(x.dequantize())), equal_nan=True
    )


@every_scheme
@pytest.mark.parametrize("function", MOVED.values(), ids=MOVED)
def test_moving_keeps_codes(function, scheme):
    x = tensor(4, 8).quantize_dynamic(scheme)
    out, plain = function(x), function(x.dequantize())
    assert out.shape == plain.shape
    assert np.array_equal(np.asarray(out), np.asarray(plain))
    if len(getattr(scheme, "block_size", None) or ()) < 2:  # or blocks may be cut
        assert isinstance(out, QuantizedTensor)


@every_scheme
def test_turned_blocks_turn_with_their_scales(scheme):
    x = tensor(4, 8).quantize_dynamic(scheme)
    turned = x.transpose()
    assert isinstance(turned, QuantizedTensor)
    assert np.array_equal(np.asarray(turned), np.asarray(x).T)
    assert turned.transpose().scheme == x.scheme
    assert turned.transpose().to_data() == x.to_data()
    deep = tensor(2, 4, 8).quantize_dynamic(scheme)
    assert np.array_equal(
        np.asarray(deep.permute([2, 0, 1])), np.asarray(deep).transpose(2, 0, 1)
    )


def test_blocks_that_no_longer_fill_the_tensor_leave_numbers():
    x = tensor(4, 8).quantize_dynamic(SCHEMES["blocks"])
    plain = x.dequantize()
    for cut in (
        lambda t: t.narrow(1, 0, 3),
        lambda t: t.narrow(1, 2, 4),
        lambda t: t.reshape([2, 4, 4]).transpose().reshape([4, 8]),
    ):
        assert type(cut(x)) is Tensor
        assert np.array_equal(np.asarray(cut(x)), np.asarray(cut(plain)))
    assert isinstance(x.narrow(1, 0, 4), QuantizedTensor)


@pytest.mark.parametrize("function", CHOSEN.values(), ids=CHOSEN)
@pytest.mark.parametrize("scheme", [AFFINE, SYMMETRIC, SCHEMES["floats"]])
def test_choosing_keeps_codes_of_burn_0_15(function, scheme):
    x = tensor(4, 8).quantize_dynamic(scheme)
    out = function(x)
    assert isinstance(out, QuantizedTensor) == scheme.propagates
    assert np.array_equal(np.asarray(out), np.asarray(function(x.dequantize())))


def test_several_results():
    x = tensor(4, 8).quantize_dynamic(AFFINE)
    plain = x.dequantize()
    for name in ("max_dim_with_indices", "sort_with_indices"):
        (values, places), expected = getattr(x, name)(1), getattr(plain, name)(1)
        assert isinstance(values, QuantizedTensor)
        assert np.array_equal(np.asarray(values), np.asarray(expected[0]))
        assert places.kind is Int
        assert np.array_equal(np.asarray(places), np.asarray(expected[1]))
    for pieces in (x.chunk(3, 1), x.split(3, 1), list(x.iter_dim(1)), list(x)):
        assert all(isinstance(piece, QuantizedTensor) for piece in pieces)
    assert near(Tensor.cat(list(x.iter_dim(1)), 1), plain, x.strategy.scale)
    assert x.argmax(1).kind is Int
    assert (x.argmax(1) == plain.argmax(1)).all().into_scalar()


def test_comparing_gives_truth():
    x = tensor(4, 8).quantize_dynamic(AFFINE)
    y = tensor(4, 8)
    for out in (x > 0.0, x == x, x != y, y <= x, x.is_close(y), x.bool()):
        assert type(out) is Tensor
        assert out.kind is Bool
    assert (x == x.dequantize()).all().into_scalar()
    assert (x == "text") is False
    assert x.all_close(x.dequantize())
    assert x.dequantize().all_close(x)


def test_python_numbers_and_numpy():
    x = Tensor.from_data([0.5]).quantize_dynamic(SYMMETRIC)
    assert float(x) == 0.5
    assert x.into_scalar() == 0.5
    assert np.asarray(x).tolist() == [0.5]
    assert 0.5 in x
    assert np.from_dlpack(x).tolist() == [0.5]
    assert divmod(x, 0.25)[0].into_scalar() == 2.0


def test_numbers_on_either_side_of_codes():
    x, y = tensor(4, 8), tensor(4, 8, seed=1)
    q = y.quantize_dynamic(SYMMETRIC)
    plain = q.dequantize()
    assert (x - q).all_close(x - plain)
    assert (q - x).all_close(plain - x)
    assert (x * q).all_close(x * plain)
    assert (q / x).all_close(plain / x)
    assert x.matmul(q.transpose()).all_close(x @ plain.transpose())
    assert x.add(q).all_close(x + plain)
    with pytest.raises(ShapeError, match="the ranks 2 and 1 differ"):
        x.add(tensor(8).quantize_dynamic(SYMMETRIC))
    with pytest.raises(KindError, match="takes Float and Float"):
        Tensor.zeros([4, 8], kind=Int).add(q)


def test_functions_that_are_no_methods_take_codes():
    x, w, b = tensor(2, 8), tensor(8, 3), tensor(3)
    q = w.quantize_dynamic(SYMMETRIC)
    assert apply(linear, x, q, b).all_close(apply(linear, x, q.dequantize(), b))
    assert type(apply(linear, x.quantize_dynamic(AFFINE), q, b)) is Tensor


def test_every_name_in_the_lists_is_a_method():
    for text in (lists.AGAIN, lists.MOVED, lists.CHOSEN):
        for name in text.split():
            assert name in vars(QuantizedTensor), name
            assert callable(getattr(Tensor, name)), name


def test_decorators_see_the_ops():
    device = Counting(Numpy())
    x = Tensor.from_data(BOOK, device).quantize_dynamic(AFFINE)
    x.exp()
    assert device.counts["to_codes"] == 1
    assert device.counts["from_codes"] == 1


@pytest.mark.parametrize("name", ["f64", "f16"])
def test_other_floats(name):
    device = Numpy(float=name)
    x = Tensor.from_data(BOOK, device).quantize_dynamic(SYMMETRIC)
    assert codes(x) == [-127, -71, 0, 35]
    assert x.dequantize().dtype == name
    assert (x + 1.0).scheme == SYMMETRIC
    moved = x.to_device(Numpy())
    assert isinstance(moved, QuantizedTensor)
    assert moved.dequantize().dtype == "f32"
    assert x.to_device(device) is x


# Gradients


@every_scheme
def test_gradients_go_around_codes(scheme):
    device = Autodiff(Numpy())
    w = tensor(4, 8, device=device).quantize_dynamic(scheme)
    x = tensor(2, 4, seed=1, device=device).require_grad()
    for out in (x @ w, (x @ w.dequantize())):
        gradient = x.grad(out.sum().backward())
        expected = np.asarray(w).sum(1, keepdims=True).T.repeat(2, 0)
        assert np.allclose(np.asarray(gradient), expected, atol=1e-5)
    assert not w.is_require_grad()
    assert w.detach() is w
    assert w.set_require_grad(False) is w
    assert w.inner().device() is Numpy()
    assert isinstance(w.inner(), QuantizedTensor)
    lifted = Tensor.from_inner(w.inner(), device)
    assert isinstance(lifted, QuantizedTensor)
    assert lifted.device() is device
    assert w.grad((x @ w).sum().backward()) is None


def test_rounding_has_no_gradient():
    x = tensor(4, device=Autodiff(Numpy())).require_grad()
    for tracked in (x, x * 2.0):
        with pytest.raises(GraphError, match="rounding to codes has no gradient"):
            tracked.quantize_dynamic(AFFINE)
    q = x.set_require_grad(False).quantize_dynamic(AFFINE)
    with pytest.raises(GraphError, match="codes have no gradient"):
        q.require_grad()
    assert x.inner().quantize_dynamic(AFFINE).require_grad().scheme == AFFINE


@pytest.mark.parametrize("scheme", [AFFINE, SYMMETRIC])
def test_fake_quantization_lets_the_gradient_through(scheme):
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle here")
    array, scale, offset = numbers(200), 0.011, 40
    zero = offset if scheme.is_affine else 0
    x = Tensor.from_numpy(array, Autodiff(Numpy())).require_grad()
    y = fake_quantize(x, scheme, QuantizationParameters(scale, zero or None))
    gradient = x.grad((y * y).backward())
    low = -128 if scheme.is_affine else -127
    t = torch.tensor(array, requires_grad=True)
    u = torch.fake_quantize_per_tensor_affine(t, scale, zero, low, 127)
    (u * u).sum().backward()
    assert np.allclose(np.asarray(y.inner()), u.detach().numpy(), atol=1e-6)
    assert np.allclose(np.asarray(gradient), t.grad.numpy(), atol=1e-5)
    assert (t.grad == 0).sum() > 5  # some were cut off


@every_scheme
def test_fake_quantization_gives_what_quantizing_gives(scheme):
    x = tensor(4, 8, device=Autodiff(Numpy()))
    plain = x.quantize_dynamic(scheme).dequantize()
    assert (
        fake_quantize(x.require_grad(), scheme)
        .inner()
        .all_close(plain.inner(), atol=1e-6)
    )


# On another device


@every_scheme
def test_codes_stay_on_their_device(scheme):
    """Far's arrays are out of NumPy's reach, as those of a GPU are."""
    near, far = tensor(4, 8), tensor(4, 8, device=Far())
    a, b = near.quantize_dynamic(scheme), far.quantize_dynamic(scheme)
    assert type(b.kept).__name__ == "FarArray"
    assert a.to_data() == b.to_data()
    assert Tensor.from_data(b.to_data(), b.device()).to_data() == b.to_data()
    for function in (
        lambda x: x.dequantize(),
        lambda x: x + x,
        lambda x: x.transpose(),
        lambda x: x.narrow(1, 0, 4).flip([0]),
        lambda x: x.sort(1),
        lambda x: x @ x.transpose(),
        lambda x: fake_quantize(x.dequantize(), scheme),
    ):
        assert np.allclose(np.asarray(function(a)), np.asarray(function(b)), atol=1e-6)
