"""Every function of the table against PyTorch.

One row for each function that PyTorch has: the same values, and the same gradient, on
ordinary numbers; then special values, empty tensors, sizes of 1 and turned memory.
"""

import operator

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.tensor import Int, Tensor, activation, grid, linalg, signal
from tests.torch.shared import torch

F = torch.nn.functional
DEVICE = Autodiff(Numpy(float="f64"))


def ints(values):
    return Tensor.from_ints(values, DEVICE)


def index(values):
    return torch.tensor(values)


def methods(names):
    """Functions that are methods of ours, by the name that PyTorch has for them."""
    return {
        name: (operator.methodcaller(name), getattr(torch, name))
        for name in names.split()
    }


ROW = [[2, 0, 1, 1], [0, 0, 3, 2], [1, 3, 2, 0]]  # places in dim 1 of [3, 4]
SHORT = [[2, 0], [0, 3], [1, 1]]
# name: (ours, PyTorch's, shape of x[, low, high])
ONE = {
    **methods(
        "abs exp erf cos sin atan sinh cosh tanh asinh floor ceil round trunc "
        "square deg2rad rad2deg sign"
    ),
    **{
        name: (getattr(activation, name), getattr(F, name))
        for name in (*("relu", "gelu", "mish", "silu", "selu", "hardtanh"),
                     *("relu6", "softsign", "tanhshrink"))
    },
    "neg": (lambda x: -x, torch.neg),
    "log": (lambda x: x.log(), torch.log, 0.5, 3.0),
    "log1p": (lambda x: x.log1p(), torch.log1p, -0.5, 3.0),
    "sqrt": (lambda x: x.sqrt(), torch.sqrt, 0.5, 3.0),
    "recip": (lambda x: x.recip(), torch.reciprocal, 0.5, 3.0),
    "tan": (lambda x: x.tan(), torch.tan, -1.2, 1.2),
    "asin": (lambda x: x.asin(), torch.asin, -0.9, 0.9),
    "acos": (lambda x: x.acos(), torch.acos, -0.9, 0.9),
    "acosh": (lambda x: x.acosh(), torch.acosh, 1.5, 3.0),
    "atanh": (lambda x: x.atanh(), torch.atanh, -0.9, 0.9),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), lambda x: x.clamp(-0.5, 0.5)),
    "clamp_min": (lambda x: x.clamp_min(0.1), lambda x: x.clamp(min=0.1)),
    "clamp_max": (lambda x: x.clamp_max(0.1), lambda x: x.clamp(max=0.1)),
    "powf_scalar": (lambda x: x**1.7, lambda x: x**1.7, 0.5, 3.0),
    "powi_scalar": (lambda x: x.powi_scalar(3), lambda x: x**3),
    "remainder_scalar": (lambda x: x % -1.5, lambda x: x % -1.5),
    "fmod_scalar": (lambda x: x.fmod_scalar(0.7), lambda x: torch.fmod(x, 0.7)),
    "sum": (lambda x: x.sum(), lambda x: x.sum().view(1)),
    "mean": (lambda x: x.mean(), lambda x: x.mean().view(1)),
    "prod": (lambda x: x.prod(), lambda x: x.prod().view(1)),
    "max": (lambda x: x.max(), lambda x: x.max().view(1)),
    "min": (lambda x: x.min(), lambda x: x.min().view(1)),
    "sum_dim": (lambda x: x.sum_dim(1), lambda x: x.sum(1, True)),
    "mean_dim": (lambda x: x.mean_dim(0), lambda x: x.mean(0, True)),
    "prod_dim": (lambda x: x.prod_dim(1), lambda x: x.prod(1, True)),
    "max_dim": (lambda x: x.max_dim(1), lambda x: x.max(1, True).values),
    "min_dim": (lambda x: x.min_dim(0), lambda x: x.min(0, True).values),
    "argmax": (lambda x: x.argmax(1), lambda x: x.argmax(1, True)),
    "argmin": (lambda x: x.argmin(0), lambda x: x.argmin(0, True)),
    "max_dims": (lambda x: x.max_dims([0, 1]), lambda x: x.amax((0, 1), True)),
    "min_dims": (lambda x: x.min_dims([1]), lambda x: x.amin((1,), True)),
    "mean_dims": (lambda x: x.mean_dims([0, 1]), lambda x: x.mean((0, 1), True)),
    "sum_dims_squeeze": (lambda x: x.sum_dims_squeeze([0]), lambda x: x.sum((0,))),
    "max_abs_dim": (lambda x: x.max_abs_dim(1), lambda x: x.abs().amax(1, True)),
    "var": (lambda x: x.var(1), lambda x: x.var(1, keepdim=True)),
    "var_bias": (
        lambda x: x.var_bias(1), lambda x: x.var(1, correction=0, keepdim=True)
    ),
    "cov": (lambda x: x.cov(1, 1), lambda x: cov(x)),
    "median": (lambda x: x.median(1), lambda x: x.median(1, True).values),
    "cumsum": (lambda x: x.cumsum(1), lambda x: x.cumsum(1)),
    "cumprod": (lambda x: x.cumprod(1), lambda x: x.cumprod(1)),
    "cummax": (lambda x: x.cummax(1), lambda x: x.cummax(1).values),
    "cummin": (lambda x: x.cummin(0), lambda x: x.cummin(0).values),
    "sort": (lambda x: x.sort(1), lambda x: x.sort(1).values),
    "sort_descending": (
        lambda x: x.sort_descending(0), lambda x: x.sort(0, descending=True).values
    ),
    "argsort": (lambda x: x.argsort(1), lambda x: x.argsort(1)),
    "topk": (lambda x: x.topk(2, 1), lambda x: x.topk(2, 1).values),
    "argtopk": (lambda x: x.argtopk(2, 1), lambda x: x.topk(2, 1).indices),
    "tril": (lambda x: x.tril(1), lambda x: x.tril(1)),
    "triu": (lambda x: x.triu(-1), lambda x: x.triu(-1)),
    "pad": (
        lambda x: x.pad((1, 2, 0, 1), 3.0),
        lambda x: F.pad(x, (1, 2, 0, 1), value=3.0),
    ),
    "pad_reflect": (
        lambda x: x.pad([(1, 2)], "reflect"), lambda x: F.pad(x, (1, 2), "reflect")
    ),
    "pad_edge": (
        lambda x: x.pad([(1, 2)], "edge"), lambda x: F.pad(x, (1, 2), "replicate")
    ),
    "roll": (lambda x: x.roll([1, -1], [0, 1]), lambda x: x.roll((1, -1), (0, 1))),
    "flip": (lambda x: x.flip([0, 1]), lambda x: x.flip(0, 1)),
    "unfold": (lambda x: x.unfold(1, 2, 1), lambda x: x.unfold(1, 2, 1)),
    "movedim": (lambda x: x.movedim(0, 1), lambda x: x.movedim(0, 1)),
    "repeat": (lambda x: x.repeat([2, 3]), lambda x: x.repeat(2, 3)),
    "expand": (lambda x: x.expand([2, -1, -1]), lambda x: x.expand(2, -1, -1)),
    "split": (lambda x: x.split(3, 1)[1], lambda x: x.split(3, 1)[1]),
    "chunk": (lambda x: x.chunk(2, 0)[1], lambda x: x.chunk(2, 0)[1]),
    "narrow": (lambda x: x.narrow(1, 1, 2), lambda x: x.narrow(1, 1, 2)),
    "gather": (
        lambda x: x.gather(1, ints(SHORT)), lambda x: x.gather(1, index(SHORT))
    ),
    "scatter": (
        lambda x: x.scatter(1, ints(ROW), x), lambda x: x.scatter_add(1, index(ROW), x)
    ),
    "select": (
        lambda x: x.select(0, ints([2, 2, 0])), lambda x: x[index([2, 2, 0])]
    ),
    "select_assign": (
        lambda x: x.select_assign(0, ints([2, 2, 0]), x * 2),
        lambda x: x.index_add(0, index([2, 2, 0]), x * 2),
    ),
    "take": (lambda x: x.take(1, ints(SHORT)), lambda x: x[:, index(SHORT)]),
    "gather_nd": (
        lambda x: x.gather_nd(ints(SHORT)), lambda x: x[[2, 0, 1], [0, 3, 1]]
    ),
    "scatter_nd": (
        lambda x: (x * 0).scatter_nd(ints([[2], [0]]), x.narrow(0, 0, 2), "assign"),
        lambda x: (x * 0).index_copy(0, index([2, 0]), x[:2]),
    ),
    "mask_select": (lambda x: x.mask_select(x.greater(0)), lambda x: x[x > 0]),
    "mask_fill": (
        lambda x: x.mask_fill(x.greater(0), 2.0), lambda x: x.masked_fill(x > 0, 2.0)
    ),
    "slice_assign": (
        lambda x: x.slice_assign([(0, 1), (1, 3)], x.slice([(1, 2), (0, 2)])),
        lambda x: x.slice_scatter(
            x[:1].slice_scatter(x[1:2, :2], 1, 1, 3), 0, 0, 1
        ),
    ),
    "is_nan": (lambda x: x.is_nan(), torch.isnan),
    "is_inf": (lambda x: x.is_inf(), torch.isinf),
    "is_finite": (lambda x: x.is_finite(), torch.isfinite),
    "gelu_approximate": (
        activation.gelu_approximate, lambda x: F.gelu(x, approximate="tanh")
    ),
    "hard_sigmoid": (
        lambda x: activation.hard_sigmoid(x, 1 / 6, 0.5), F.hardsigmoid
    ),
    "leaky_relu": (
        lambda x: activation.leaky_relu(x, 0.2), lambda x: F.leaky_relu(x, 0.2)
    ),
    "log_sigmoid": (activation.log_sigmoid, F.logsigmoid),
    "log_softmax": (
        lambda x: activation.log_softmax(x, 1), lambda x: F.log_softmax(x, 1)
    ),
    "sigmoid": (activation.sigmoid, torch.sigmoid),
    "softmax": (lambda x: activation.softmax(x, 0), lambda x: F.softmax(x, 0)),
    "softmin": (lambda x: activation.softmin(x, 1), lambda x: F.softmin(x, 1)),
    "softplus": (
        lambda x: activation.softplus(x, 2.0), lambda x: F.softplus(x, 2.0)
    ),
    "quiet_softmax": (
        lambda x: activation.quiet_softmax(x, 1),
        lambda x: x.exp() / (1 + x.exp().sum(1, True)),
    ),
    "celu": (lambda x: activation.celu(x, 2.0), lambda x: F.celu(x, 2.0)),
    "elu": (lambda x: activation.elu(x, 2.0), lambda x: F.elu(x, 2.0)),
    "glu": (lambda x: activation.glu(x, 1), lambda x: F.glu(x, 1)),
    "hard_shrink": (
        lambda x: activation.hard_shrink(x, 0.5), lambda x: F.hardshrink(x, 0.5)
    ),
    "soft_shrink": (
        lambda x: activation.soft_shrink(x, 0.5), lambda x: F.softshrink(x, 0.5)
    ),
    "hard_swish": (activation.hard_swish, F.hardswish),
    "threshold": (
        lambda x: activation.threshold(x, 0.1, 3.0), lambda x: F.threshold(x, 0.1, 3.0)
    ),
    "l1_norm": (lambda x: linalg.l1_norm(x, 1), lambda x: x.norm(1, 1, True)),
    "l2_norm": (lambda x: linalg.l2_norm(x, 1), lambda x: x.norm(2, 1, True)),
    "lp_norm": (lambda x: linalg.lp_norm(x, 3.5, 0), lambda x: x.norm(3.5, 0, True)),
    "vector_normalize": (
        lambda x: linalg.vector_normalize(x, 2, 1, 1e-12), lambda x: F.normalize(x)
    ),
    "diag": (linalg.diag, torch.diagonal),
    "trace": (lambda x: linalg.trace(x), lambda x: x.diagonal().sum().view(1)),
    "det": (
        lambda x: linalg.det(x @ x.transpose()), lambda x: (x @ x.T).det().view(1)
    ),
    "qr": (
        lambda x: linalg.qr(x.transpose())[1].abs(),
        lambda x: torch.linalg.qr(x.T)[1].abs(),
    ),
    "lu": (lambda x: linalg.lu(x)[2], lambda x: torch.linalg.lu(x)[2]),
    "rfft": (lambda x: signal.rfft(x, 1)[1], lambda x: torch.fft.rfft(x).imag),
    "irfft": (
        lambda x: signal.irfft(x, x * 2, 1),
        lambda x: torch.fft.irfft(torch.complex(x, x * 2)),
    ),
    "cfft": (
        lambda x: signal.cfft(x, x * 2, 0)[0],
        lambda x: torch.fft.fft(torch.complex(x, x * 2), dim=0).real,
    ),
}  # fmt: skip
TWO = {
    "add": (lambda x, y: x + y, torch.add),
    "sub": (lambda x, y: x - y, torch.sub),
    "mul": (lambda x, y: x * y, torch.mul),
    "div": (lambda x, y: x / y, torch.div),
    "remainder": (lambda x, y: x % y, torch.remainder),
    "fmod": (lambda x, y: x.fmod(y), torch.fmod),
    "powf": (lambda x, y: x**y, torch.pow),
    "max_pair": (lambda x, y: x.max_pair(y), torch.maximum),
    "min_pair": (lambda x, y: x.min_pair(y), torch.minimum),
    "atan2": (lambda x, y: x.atan2(y), torch.atan2),
    "hypot": (lambda x, y: x.hypot(y), torch.hypot),
    "matmul": (lambda x, y: x @ y.transpose(), lambda x, y: x @ y.T),
    "equal": (lambda x, y: x.equal(y), torch.eq),
    "greater": (lambda x, y: x > y, torch.gt),
    "lower_equal": (lambda x, y: x <= y, torch.le),
    "cat": (lambda x, y: Tensor.cat([x, y], 1), lambda x, y: torch.cat([x, y], 1)),
    "stack": (
        lambda x, y: Tensor.stack([x, y], 1), lambda x, y: torch.stack([x, y], 1)
    ),
    "mask_where": (
        lambda x, y: x.mask_where(x > y, y), lambda x, y: torch.where(x > y, y, x)
    ),
    "prelu": (
        lambda x, y: activation.prelu(-x, y[0]), lambda x, y: F.prelu(-x, y[0])
    ),
    "cosine_similarity": (
        lambda x, y: linalg.cosine_similarity(x, y, 1),
        lambda x, y: F.cosine_similarity(x, y, 1)[:, None],
    ),
    "outer": (
        lambda x, y: linalg.outer(x[0], y[1]), lambda x, y: torch.outer(x[0], y[1])
    ),
    "matvec": (lambda x, y: linalg.matvec(x, y[0]), lambda x, y: x @ y[0]),
    "cross": (
        lambda x, y: x.cross(y, 0), lambda x, y: torch.linalg.cross(x, y, dim=0)
    ),
    "dot": (lambda x, y: x[0].dot(y[1]), lambda x, y: (x[0] @ y[1]).view(1)),
    "cross_entropy_with_logits": (
        lambda x, y: activation.cross_entropy_with_logits(x, y),
        lambda x, y: F.cross_entropy(x, y).view(1),
    ),
}  # fmt: skip


def cov(x):
    """Burn's cov: centered along dim 1, swapped with dim 0, transposed times itself."""
    lines = (x - x.mean(1, True)).T
    return lines.T @ lines / (x.shape[1] - 1)


def compare(ours, theirs, arrays):
    """The same values, and the same gradients of a weighted sum."""
    rng = np.random.default_rng(7)
    mine = [Tensor.from_numpy(a, DEVICE).require_grad() for a in arrays]
    others = [torch.tensor(a, requires_grad=True) for a in arrays]
    out, wanted = ours(*mine), theirs(*others)
    assert out.dims() == tuple(wanted.shape)
    assert np.allclose(np.asarray(out), wanted.detach().numpy(), rtol=1e-9, atol=1e-10)
    if not wanted.requires_grad:
        assert not out._tracked()
        return
    weights = rng.standard_normal(out.dims())
    grads = (out * Tensor.from_numpy(weights, DEVICE)).backward()
    (wanted * torch.tensor(weights)).sum().backward()
    for a, b in zip(mine, others, strict=True):
        assert np.allclose(np.asarray(a.grad(grads)), b.grad.numpy(), rtol=1e-8)


@pytest.mark.parametrize("name", ONE)
def test_a_function_of_one_tensor_equals_pytorch(name):
    ours, theirs, *bounds = ONE[name]
    low, high = bounds or (-2.0, 2.0)
    rng = np.random.default_rng(3)
    compare(ours, theirs, [rng.uniform(low, high, (3, 4))])


@pytest.mark.parametrize("name", TWO)
def test_a_function_of_two_tensors_equals_pytorch(name):
    ours, theirs = TWO[name]
    rng = np.random.default_rng(4)
    compare(ours, theirs, [rng.uniform(0.5, 2.0, (3, 4)) for _ in range(2)])


@pytest.mark.parametrize("name", ONE)
def test_turned_memory_gives_the_same(name):
    ours, _, *bounds = ONE[name]
    low, high = bounds or (-2.0, 2.0)
    array = np.random.default_rng(5).uniform(low, high, (3, 4))
    straight = Tensor.from_numpy(array)
    turned = Tensor.from_numpy(np.ascontiguousarray(array.T)).transpose()
    far = Tensor.from_numpy(np.repeat(array, 2, axis=0)).reshape([3, 2, 4])
    far = far.narrow(1, 0, 1).squeeze(1)
    expected = np.asarray(ours(straight.to_device(DEVICE)))
    for other in (turned, far):
        moved = Tensor.from_inner(other.to_device(DEVICE.inner), DEVICE)
        raw = Tensor.of(np.array(moved.value, order="F"), moved.kind, DEVICE)
        assert np.allclose(np.asarray(ours(raw)), expected, rtol=1e-12)


SPECIAL = [-np.inf, -1.5, -0.0, 0.0, 0.5, 2.5, np.inf, np.nan]
ELEMENTWISE = (
    "abs", "neg", "exp", "log", "log1p", "sqrt", "recip", "erf", "cos", "sin", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "floor",
    "ceil", "round", "trunc", "square", "clamp", "is_nan", "is_inf", "is_finite",
    "cumsum", "cummax", "cummin", "relu", "sigmoid", "log_sigmoid", "softplus",
    "leaky_relu", "elu", "relu6", "powi_scalar", "remainder_scalar", "fmod_scalar",
)  # fmt: skip


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_special_values_equal_pytorch(name):
    ours, theirs, *_ = ONE[name]
    array = np.array([SPECIAL], np.float32)
    out = np.asarray(ours(Tensor.from_numpy(array)))
    wanted = theirs(torch.tensor(array)).numpy()
    assert np.allclose(out, wanted, rtol=1e-5, atol=1e-6, equal_nan=True)


PAIRS = (
    "add", "sub", "mul", "div", "remainder", "fmod", "powf", "atan2", "hypot", "equal",
    "greater", "lower_equal", "cat", "stack", "mask_where",
)  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_special_pairs_equal_pytorch(name):
    ours, theirs = TWO[name]
    x, y = (np.array(a, np.float32) for a in np.meshgrid(SPECIAL, SPECIAL))
    out = np.asarray(ours(Tensor.from_numpy(x), Tensor.from_numpy(y)))
    wanted = theirs(torch.tensor(x), torch.tensor(y)).numpy()
    assert np.allclose(out, wanted, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_nan_wins_a_comparison_of_pairs():
    x = Tensor.from_data([np.nan, 1.0])
    y = Tensor.from_data([1.0, np.nan])
    assert np.isnan(np.asarray(x.max_pair(y))).tolist() == [True, True]
    assert np.isnan(np.asarray(x.min_pair(y))).tolist() == [True, True]


MOVING = (
    "abs", "exp", "sum", "sum_dim", "sort", "argsort", "cumsum", "cumprod", "cummax",
    "flip", "roll", "movedim", "expand", "mask_select", "mask_fill", "softmax", "prod",
    "prod_dim", "tril", "pad", "relu", "gelu", "is_nan", "clamp", "l2_norm", "diag",
)  # fmt: skip


@pytest.mark.parametrize("name", MOVING)
@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (1, 1), (1, 4), (3, 1)])
def test_empty_tensors_and_sizes_of_one_equal_pytorch(name, shape):
    ours, theirs, *_ = ONE[name]
    if name == "softmax" and 0 in shape:
        pytest.skip("nothing to choose from")
    array = np.random.default_rng(6).uniform(0.5, 2.0, shape)
    compare(ours, theirs, [array])


def test_products_with_zeros_have_their_true_gradient():
    for zeros in ([], [1], [0, 2], [0, 1, 2, 3]):
        array = np.array([[1.5, -2.0, 3.0, 0.5]])
        array[:, zeros] = 0
        for name in ("prod", "prod_dim", "cumprod"):
            compare(*ONE[name][:2], [array])


def test_sorting_is_stable_and_total():
    array = np.array([[2, 1, 2, 1, 2, 0, 0]] * 3)
    for kind in (None, Int):
        x = Tensor.from_data(array if kind else array.astype(np.float64), DEVICE, kind)
        for descending in (False, True):
            theirs = torch.sort(
                torch.tensor(array), stable=True, dim=1, descending=descending
            )
            _, places = (
                x.sort_descending_with_indices(1)
                if descending
                else x.sort_with_indices(1)
            )
            assert np.array_equal(np.asarray(places), theirs.indices.numpy())
    mixed = Tensor.from_data([np.nan, 0.0, -0.0, -np.inf, np.inf, 1.0])
    up = np.asarray(mixed.sort(0))
    assert np.isnan(up[-1])
    assert np.signbit(up[:5]).tolist() == [True, True, False, False, False]
    assert np.isnan(np.asarray(mixed.sort_descending(0))[0])
    assert np.asarray(mixed.argsort(0)).tolist() == [3, 1, 2, 5, 4, 0]


def test_grids_equal_pytorch():
    rng = np.random.default_rng(8)
    maps, picture = rng.standard_normal((2, 2, 3)), rng.standard_normal((2, 3, 4, 5))
    compare(
        lambda t: grid.affine_grid_2d(t, (2, 3, 4, 5)),
        lambda t: F.affine_grid(t, (2, 3, 4, 5), align_corners=True),
        [maps],
    )
    places = rng.uniform(-1.6, 1.6, (2, 6, 7, 2))
    for padding in ("zeros", "border", "reflection"):
        for corners in (True, False):
            for mode in ("bilinear", "bicubic"):
                how = (mode, padding, corners)
                compare(
                    lambda x, g, how=how: x.grid_sample_2d(g, *how),
                    lambda x, g, how=how: F.grid_sample(x, g, *how),
                    [picture, places],
                )
            compare(
                lambda x, p=padding, c=corners: x.grid_sample_2d(
                    Tensor.from_numpy(places, DEVICE), "nearest", p, c
                ),
                lambda x, p=padding, c=corners: F.grid_sample(
                    x, torch.tensor(places), "nearest", p, c
                ),
                [picture],
            )


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("onesided", [True, False])
def test_spectra_over_time_equal_pytorch_and_come_back(center, onesided):
    rng = np.random.default_rng(9)
    sound, window = rng.standard_normal((2, 40)), np.hanning(8) + 0.1
    options = signal.StftOptions(8, 2, None, center, onesided)
    ours = Tensor.from_numpy(window, DEVICE)

    def theirs(x):
        out = torch.stft(
            x, 8, 2, window=torch.tensor(window), center=center, onesided=onesided,
            return_complex=True,
        )  # fmt: skip
        return torch.view_as_real(out).permute(0, 2, 1, 3)

    compare(lambda x: signal.stft(x, ours, options), theirs, [sound])
    x = Tensor.from_numpy(sound, DEVICE)
    back = signal.istft(signal.stft(x, ours, options), ours, 40, options)
    assert np.allclose(np.asarray(back), sound)


def test_windows_equal_pytorch():
    for ours, theirs in (
        (signal.hann_window, torch.hann_window),
        (signal.blackman_window, torch.blackman_window),
    ):
        for size in (1, 2, 7, 8):
            for periodic in (True, False):
                wanted = theirs(size, periodic=periodic).numpy()
                assert np.allclose(np.asarray(ours(size, periodic)), wanted, atol=1e-6)
