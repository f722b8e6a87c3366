"""`Same` keeps the size: every layer that pads × kernels × dilations, as PyTorch."""

import itertools

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ConfigError
from burnbook.tensor import Tensor

WIDE = Numpy(float="f64")
SIZES = (9, 10, 8)


def rank_of(config):
    """1, 2 or 3, as the names of padded layers say."""
    return int(config.__name__.removesuffix("dConfig")[-1])


def padded_layers():
    """The configs of nn with a choice of paddings: convolutions and pools."""
    found = [getattr(nn, name) for name in nn.__all__ if name.endswith("Config")]
    return [c for c in found if getattr(c, "padding", None) in VALID]


VALID = [getattr(nn, f"PaddingConfig{rank}d").Valid for rank in (1, 2, 3)]
PADDED = padded_layers()
CONVOLUTIONS = [c for c in PADDED if c.__name__.startswith("Conv")]


def made(config, kernel, dilation=1, stride=1, padding="Same", device=WIDE, **more):
    """A layer with the same numbers for every dim."""
    rank, name = rank_of(config), config.__name__
    one = (lambda n: n) if rank == 1 else (lambda n: [n] * rank)
    parts = [one(kernel)]
    if "Conv" in name:
        parts = [2, 3, kernel] if rank == 1 else [[2, 3], one(kernel)]
    options = {"padding": getattr(getattr(nn, f"PaddingConfig{rank}d"), padding)}
    options["stride" if rank == 1 or "Conv" in name else "strides"] = one(stride)
    if hasattr(config, "dilation"):
        options["dilation"] = one(dilation)
    built = config(*parts, **options, **more)
    return built.init(device) if "Conv" in name else built.init()


def picture(config, device=WIDE):
    shape = (2, 2, *SIZES[: rank_of(config)])
    values = np.random.default_rng(3).normal(size=shape)
    return Tensor.from_numpy(values.astype(device.float_dtype), device)


def applied(layer, x, kernel):
    """The output; a deformable convolution that moves nothing."""
    if isinstance(layer, nn.DeformConv2d):
        n, _, *sizes = x.dims()
        return layer.forward(x, Tensor.zeros([n, 2 * kernel**2, *sizes], x.device()))
    return layer.forward(x)


WINDOWS = list(itertools.product((1, 2, 3, 4, 5), (1, 2, 3)))


def test_the_layers_that_pad_are_found():
    names = {config.__name__.removesuffix("Config") for config in PADDED}
    assert {"Conv1d", "Conv2d", "Conv3d", "DeformConv2d"} < names
    assert {"MaxPool1d", "MaxPool2d", "AvgPool1d", "AvgPool2d"} < names


@pytest.mark.parametrize("config", PADDED, ids=lambda c: c.__name__)
@pytest.mark.parametrize("more", [{}, {"ceil_mode": True}], ids=["", "ceil_mode"])
def test_same_keeps_the_size(config, more):
    if more and not hasattr(config, "ceil_mode"):
        pytest.skip("this layer has no ceil_mode")
    x = picture(config)
    for kernel, dilation in WINDOWS:
        layer = made(config, kernel, dilation, **more)
        found = applied(layer, x, kernel).dims()[2:]
        assert found == x.dims()[2:], (kernel, dilation)


@pytest.mark.parametrize("config", PADDED, ids=lambda c: c.__name__)
def test_same_keeps_the_size_for_strides_and_dims_that_differ(config):
    if config is nn.DeformConv2dConfig:
        pytest.skip("its offsets are made for one kernel size")
    x = picture(config)
    for kernel, stride in itertools.product((1, 2, 3, 4), (2, 3)):
        layer = made(config, kernel, 1, stride)
        assert layer.forward(x).dims()[2:] == x.dims()[2:], (kernel, stride)


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("config", CONVOLUTIONS, ids=lambda c: c.__name__)
def test_convolutions_are_those_of_pytorch_with_same(config):
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.nn.functional, f"conv{rank_of(config)}d")
    device = Autodiff(WIDE)
    for kernel, dilation in WINDOWS:
        layer = made(config, kernel, dilation, device=device)
        x = Tensor.from_inner(picture(config), device).require_grad()
        out = layer.forward(x)
        grads = (out * out).sum().backward()
        leaves = [torch.tensor(np.array(t), requires_grad=True) for t in
                  (x, layer.weight.val(), layer.bias.val())]  # fmt: skip
        wanted = theirs(*leaves, padding="same", dilation=dilation)
        (wanted * wanted).sum().backward()
        assert np.allclose(out, wanted.detach().numpy(), atol=1e-9)
        mine = (x.grad(grads), layer.weight.val().grad(grads))
        for grad, leaf in zip(mine, leaves, strict=False):
            assert np.allclose(grad, leaf.grad.numpy(), atol=1e-9), (kernel, dilation)


@pytest.mark.parametrize(
    "config", [c for c in PADDED if "Pool" in c.__name__], ids=lambda c: c.__name__
)
def test_pools_see_the_window_around_each_place(config):
    """Each place as a loop says it: ⌊d (k − 1) / 2⌋ places before it, the rest behind.

    Averages that count the padding divide by the size of the window.
    """
    x = picture(config)
    array = np.asarray(x)
    largest = config.__name__.startswith("Max")
    for kernel, dilation in WINDOWS:
        if not hasattr(config, "dilation"):
            dilation = 1
        reach = dilation * (kernel - 1)
        sides = [(0, 0)] * 2 + [(reach // 2, reach - reach // 2)] * rank_of(config)
        wide = np.pad(array, sides, constant_values=-np.inf if largest else 0.0)
        span = (reach + 1,) * rank_of(config)
        axes = tuple(range(2, array.ndim))
        views = np.lib.stride_tricks.sliding_window_view(wide, span, axes)
        views = views[(..., *(slice(None, None, dilation),) * rank_of(config))]
        inner = tuple(range(-rank_of(config), 0))
        wanted = views.max(inner) if largest else views.mean(inner)
        found = made(config, kernel, dilation).forward(x)
        assert np.allclose(found, wanted), (kernel, dilation)
        if not largest:
            layer = made(config, kernel, count_include_pad=False)
            ones = np.pad(np.ones_like(array), sides)
            counts = np.lib.stride_tricks.sliding_window_view(ones, span, axes)
            shares = views.sum(inner) / counts.sum(inner)
            assert np.allclose(layer.forward(x), shares)


@pytest.mark.parametrize("config", PADDED, ids=lambda c: c.__name__)
def test_the_formula_of_burn_is_an_option(config):
    """Both ends alike and without dilation: even kernels give one place more."""
    if config is nn.DeformConv2dConfig:
        pytest.skip("its offsets are made for one size")
    x = picture(config)
    for kernel, dilation in WINDOWS:
        if kernel > 1 and dilation > 1:
            continue
        layer = made(config, kernel, dilation, padding="SymmetricSame")
        sizes = tuple(n + (kernel % 2 == 0) for n in x.dims()[2:])
        assert layer.forward(x).dims()[2:] == sizes
    line = nn.PaddingConfig1d.SymmetricSame
    assert line.sides([10], [3], [1], [2]) == [(1, 1)]
    assert line.calculate([10], [3], [2]) == (6,)


def test_one_number_for_both_ends_is_refused_where_they_differ():
    with pytest.raises(ConfigError, match="its two sides differ"):
        nn.PaddingConfig2d.Same.calculate([5, 5], [2, 3], [1, 1])
    assert nn.PaddingConfig2d.Same.calculate([5, 5], [3, 3], [1, 1], [2, 1]) == (2, 1)


def test_a_layer_may_be_built_with_lists():
    layer = nn.MaxPool2d([1, 1], [2, 3], nn.PaddingConfig2d.Same, [1, 2], False)
    assert layer.forward(picture(nn.MaxPool2dConfig)).dims()[2:] == SIZES[:2]
