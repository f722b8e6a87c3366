"""Paddings whose two sides differ, as the same layer on an input padded by hand."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.config import Config
from burnbook.core.errors import ConfigError, ShapeError
from burnbook.nn import PaddingConfig1d, PaddingConfig2d, PaddingConfig3d
from burnbook.nn.conv import Conv1dConfig, Conv2dConfig, DeformConv2dConfig
from burnbook.nn.pool import (
    AvgPool1dConfig,
    AvgPool2dConfig,
    MaxPool1dConfig,
    MaxPool2dConfig,
)
from burnbook.tensor import Tensor

WIDE, PLAIN = Numpy(float="f64"), Numpy()
AD = Autodiff(WIDE)
TWO = [(0, 0, 1, 1), (2, 1, 0, 3), (0, 2, 0, 0)]
ONE = [(0, 1), (3, 0), (2, 5)]


def picture(*shape, device=WIDE):
    rng = np.random.default_rng(5)
    return Tensor.from_numpy(rng.normal(size=shape).astype(device.float_dtype), device)


def sides(values):
    """(before, behind) of each dim, from Burn's order."""
    half = len(values) // 2
    return list(zip(values[:half], values[half:], strict=True))


def by_hand(x, values, fill=0.0):
    around = [(0, 0), (0, 0), *sides(values)]
    return np.pad(np.asarray(x), around, constant_values=fill)


CONVS = [
    (Conv1dConfig(2, 4, 3), (2, 2, 9)),
    (Conv1dConfig(2, 4, 3, stride=2, dilation=2, groups=2), (1, 2, 11)),
    (Conv2dConfig([2, 4], [3, 2]), (2, 2, 6, 7)),
    (Conv2dConfig([2, 4], [3, 3], stride=[2, 1], groups=2), (1, 2, 7, 6)),
    (Conv2dConfig([2, 3], [2, 3], dilation=[2, 1], bias=False), (1, 2, 7, 6)),
]


def asymmetric(config, rank):
    kind, rows = (PaddingConfig1d, ONE) if rank == 1 else (PaddingConfig2d, TWO)
    return [(config.with_padding(kind.Explicit(*row)), row) for row in rows]


@pytest.mark.parametrize(("config", "shape"), CONVS)
@pytest.mark.parametrize("device", [PLAIN, Numpy(compiled=False)])
def test_a_convolution_sees_zeros_on_each_side(config, shape, device):
    plain = config.init(device)
    x = picture(*shape, device=device)
    for each, values in asymmetric(config, len(shape) - 2):
        layer = each.init(device).load_record(plain.into_record())
        wanted = plain.forward(Tensor.from_numpy(by_hand(x, values), device))
        assert np.allclose(layer.forward(x), wanted, atol=1e-5)


@pytest.mark.parametrize(("config", "shape"), CONVS)
def test_the_gradients_of_a_convolution_are_those_of_the_padded_input(config, shape):
    plain = config.init(AD)
    for each, values in asymmetric(config, len(shape) - 2):
        layer = each.init(AD).load_record(plain.into_record())
        x = picture(*shape, device=WIDE)
        inner = Tensor.from_inner(x, AD).require_grad()
        outer = Tensor.from_numpy(by_hand(x, values), AD).require_grad()
        ends = [(layer, inner), (plain, outer)]
        grads = [(m.forward(t) ** 2).sum().backward() for m, t in ends]
        slices = tuple(
            slice(before, before + size)
            for (before, _), size in zip(sides(values), shape[2:], strict=True)
        )
        wanted = np.asarray(outer.grad(grads[1]))[(..., *slices)]
        assert np.allclose(inner.grad(grads[0]), wanted)
        found, same = (
            m.weight.val().grad(g) for (m, _), g in zip(ends, grads, strict=True)
        )
        assert np.allclose(found, same)


POOLS = [
    (MaxPool1dConfig(3), (2, 3, 8)),
    (MaxPool1dConfig(2, stride=2, dilation=2), (2, 3, 9)),
    (MaxPool2dConfig([2, 3]), (2, 3, 5, 6)),
    (MaxPool2dConfig([3, 2], strides=[2, 2], dilation=[1, 2]), (1, 2, 7, 6)),
    (AvgPool1dConfig(3), (2, 3, 8)),
    (AvgPool1dConfig(2, stride=3, count_include_pad=False), (2, 3, 8)),
    (AvgPool2dConfig([2, 3]), (2, 3, 5, 6)),
    (AvgPool2dConfig([3, 2], strides=[2, 1], count_include_pad=False), (1, 2, 7, 6)),
]


def windows(array, kernel, stride, dilation, ceil, limits):
    """The places of every window; with `ceil` the last one may reach beyond the end."""
    axes = []
    for size, k, s, d, limit in zip(
        array, kernel, stride, dilation, limits, strict=True
    ):
        count = -(-(size - d * (k - 1) - 1) // s) + 1  # that cover it
        if not ceil:
            count = (size - d * (k - 1) - 1) // s + 1
        elif count > 1 and (count - 1) * s >= min(limit, size):
            count -= 1  # the last would be all padding
        reach = range(0, count * s, s)
        axes.append([[a + i * d for i in range(k) if a + i * d < size] for a in reach])
    return axes


def pooled(config, x, values, ceil):
    """Every window by a loop: the largest, or the average of the places that count."""
    rank = x.ndim - 2
    most = isinstance(config, MaxPool1dConfig | MaxPool2dConfig)
    array = by_hand(x, values, -np.inf if most else 0.0)
    real = by_hand(np.ones_like(x), values)
    sizes = [config.kernel_size] if rank == 1 else config.kernel_size
    stride = getattr(config, "stride", None) or getattr(config, "strides", None)
    stride = [stride] if rank == 1 else stride
    dilation = getattr(config, "dilation", (1,) * rank)
    dilation = [dilation] if isinstance(dilation, int) else dilation
    limits = [
        n + before for n, (before, _) in zip(x.shape[2:], sides(values), strict=True)
    ]
    axes = windows(array.shape[2:], sizes, stride, dilation, ceil, limits)
    out = np.empty((*x.shape[:2], *map(len, axes)))
    for place in np.ndindex(*map(len, axes)):
        chosen = np.ix_(*[axes[i][at] for i, at in enumerate(place)])
        part = array[(slice(None), slice(None), *chosen)]
        flat = part.reshape(*x.shape[:2], -1)
        if most:
            out[(..., *place)] = flat.max(-1)
            continue
        count = (
            real[(0, 0, *chosen)].sum()
            if not config.count_include_pad
            else flat.shape[-1]
        )
        out[(..., *place)] = flat.sum(-1) / max(count, 1)
    return out


@pytest.mark.parametrize(("config", "shape"), POOLS)
@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("device", [WIDE, PLAIN, Numpy(compiled=False)])
def test_pooling_takes_each_side_as_it_is(config, shape, ceil, device):
    x = picture(*shape, device=device)
    for each, values in asymmetric(config, len(shape) - 2):
        found = np.asarray(each.with_ceil_mode(ceil).init().forward(x))
        wanted = pooled(config, np.asarray(x), values, ceil)
        assert found.shape == wanted.shape
        assert np.allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize(("config", "shape"), POOLS)
def test_gradients_of_pooling_stay_inside(config, shape):
    """Of the sum of averages each place has its shares; each largest place has 1."""
    for each, _ in asymmetric(config, len(shape) - 2):
        x = Tensor.from_inner(picture(*shape), AD).require_grad()
        out = each.init().forward(x)
        chosen = out.mask_fill(out.equal(-np.inf), 0.0).sum()
        grad = np.asarray(x.grad(chosen.backward()))
        step, rng = 1e-6, np.random.default_rng(1)
        along = rng.normal(size=shape)

        def total(shift, each=each, x=x, along=along):
            moved = Tensor.from_numpy(np.asarray(x) + shift * along, WIDE)
            y = np.asarray(each.init().forward(moved))
            return y[np.isfinite(y)].sum()

        slope = (total(step) - total(-step)) / (2 * step)
        assert slope == pytest.approx((grad * along).sum(), rel=1e-5, abs=1e-7)


def test_a_deformable_convolution_is_padded_too():
    config = DeformConv2dConfig([2, 3], [2, 2])
    plain = config.init(WIDE)
    each = config.with_padding(PaddingConfig2d.Explicit(1, 0, 2, 1))
    layer = each.init(WIDE).load_record(plain.into_record())
    x = picture(1, 2, 4, 4)
    outer = Tensor.from_numpy(by_hand(x, (1, 0, 2, 1)), WIDE)
    offset = picture(1, 8, 6, 4) * 0.3
    found, wanted = layer.forward(x, offset), plain.forward(outer, offset)
    assert np.allclose(found, wanted)


def test_equal_sides_are_the_padding_of_two_numbers():
    x = picture(1, 2, 6, 6)
    short, long = PaddingConfig2d.Explicit(1, 2), PaddingConfig2d.Explicit(1, 2, 1, 2)
    plain = Conv2dConfig([2, 3], [3, 3]).with_padding(short).init(WIDE)
    other = Conv2dConfig([2, 3], [3, 3]).with_padding(long).init(WIDE)
    other = other.load_record(plain.into_record())
    assert np.array_equal(plain.forward(x), other.forward(x))
    assert not long.is_asymmetric
    assert "padding: Explicit(1, 2, 1, 2)" in str(other)


class Layered(Config):
    padding: PaddingConfig2d = PaddingConfig2d.Valid
    line: PaddingConfig1d = PaddingConfig1d.Valid


def test_configs_hold_them_as_burn_does(tmp_path):
    config = Layered(
        padding=PaddingConfig2d.Explicit(1, 2, 3, 4),
        line=PaddingConfig1d.Explicit(0, 1),
    )
    config.save(tmp_path / "config.json")
    text = "".join((tmp_path / "config.json").read_text().split())
    assert text == '{"padding":{"Explicit":[1,2,3,4]},"line":{"Explicit":[0,1]}}'
    assert Layered.load(tmp_path / "config.json") == config


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: PaddingConfig2d.Explicit(1, 2, 3), "2 or 4 values are needed, not 3"),
        (lambda: PaddingConfig1d.Explicit(1, 2, 3), "1 or 2 values are needed, not 3"),
        (lambda: PaddingConfig3d.Explicit(1, 2), "3 values are needed, not 2"),
        (lambda: PaddingConfig2d.Explicit(0, 0, -1, 0), "a padding is -1, below 0"),
        (
            lambda: PaddingConfig1d.Explicit(0, 1).calculate([5], [2], [1]),
            "its two sides differ",
        ),
    ],
)
def test_what_is_no_padding_is_refused(build, text):
    with pytest.raises(ConfigError, match=text):
        build()


def test_an_input_of_another_rank_is_explained_by_the_layer():
    layer = Conv2dConfig([1, 1], [2, 2]).with_padding(
        PaddingConfig2d.Explicit(0, 0, 1, 1)
    )
    with pytest.raises(ShapeError, match="conv2d"):
        layer.init(PLAIN).forward(picture(2, 3, 4, device=PLAIN))
    pool = nn.MaxPool2dConfig([2, 2], padding=PaddingConfig2d.Explicit(0, 0, 1, 1))
    with pytest.raises(ShapeError, match="max_pool"):
        pool.init().forward(picture(2, 3, device=PLAIN))
