"""Convolutions, pooling, resizing: PyTorch's numbers, forward and backward."""

import itertools

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.ops.conv.conv import conv
from burnbook.ops.conv.conv_transpose import conv_transpose
from burnbook.ops.interpolate import interpolate
from burnbook.ops.pool.pool import (
    adaptive_avg_pool,
    avg_pool,
    max_pool,
    max_pool_indices,
)
from burnbook.ops.unfold import fold4d, unfold4d
from burnbook.tensor import Tensor, apply
from tests.torch.shared import RNG, same, same_op, torch

functional = torch.nn.functional

F64 = Autodiff(Numpy(float="f64"))


def agree(ours, theirs, *arrays):
    same(ours, theirs, F64, *arrays)


def alike(op, theirs, *arrays, **attrs):
    same_op(op, getattr(functional, theirs), F64, *arrays, **attrs)


def options(dims):
    """Strides, paddings and dilations: even, uneven, and padding beyond the kernel."""
    uneven = {1: (2,), 2: (2, 1), 3: (1, 3, 2)}[dims]
    yield (1,) * dims, (0,) * dims, (1,) * dims
    yield uneven, (1,) * dims, (1,) * dims
    yield (1,) * dims, uneven, uneven
    yield (3,) * dims, (4,) * dims, (2,) * dims


SIZES = {1: [(9,), (7,)], 2: [(8, 7), (9, 1)], 3: [(6, 7, 5), (7, 1, 6)]}
KERNELS = {1: [(3,), (1,)], 2: [(3, 2), (2, 1)], 3: [(2, 3, 1), (3, 1, 2)]}
CASES = [
    (dims, size, kernel, *option)
    for dims in (1, 2, 3)
    for size, kernel in zip(SIZES[dims], KERNELS[dims], strict=True)
    for option in options(dims)
]


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("dims", "size", "kernel", "stride", "padding", "dilation"), CASES
)
def test_conv(dims, size, kernel, stride, padding, dilation, bias, groups):
    attrs = {"stride": stride, "padding": padding}
    attrs |= {"dilation": dilation, "groups": groups}
    shapes = (2, 4, *size), (6, 4 // groups, *kernel)
    arrays = [RNG.normal(size=shape) for shape in shapes]
    alike(conv, f"conv{dims}d", *arrays, RNG.normal(size=6) if bias else None, **attrs)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("padding_out", [0, 1])
@pytest.mark.parametrize(
    ("dims", "size", "kernel", "stride", "padding", "dilation"), CASES
)
def test_conv_transpose(
    dims, size, kernel, stride, padding, dilation, padding_out, bias, groups
):
    pairs = itertools.starmap(max, zip(stride, dilation, strict=True))
    extra = tuple(min(padding_out, most - 1) for most in pairs)
    padding = tuple(
        min(p, d * (k - 1)) for p, d, k in zip(padding, dilation, kernel, strict=True)
    )
    attrs = {"stride": stride, "padding": padding}
    attrs |= {"dilation": dilation, "groups": groups}
    theirs = getattr(functional, f"conv_transpose{dims}d")
    agree(
        lambda *inputs: apply(conv_transpose, *inputs, padding_out=extra, **attrs),
        lambda *inputs: theirs(*inputs, output_padding=extra, **attrs),
        RNG.normal(size=(2, 4, *size)),
        RNG.normal(size=(4, 6 // groups, *kernel)),
        RNG.normal(size=6) if bias else None,
    )


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_one_sample_one_channel_one_place(dims):
    ones = (1,) * dims
    attrs = {"stride": ones, "padding": ones, "dilation": ones, "groups": 1}
    shapes = (1, 1, *ones), (1, 1, *[3] * dims), 1
    alike(conv, f"conv{dims}d", *[RNG.normal(size=shape) for shape in shapes], **attrs)


def test_no_samples_give_no_outputs():
    attrs = {"stride": (1,), "dilation": (1,), "groups": 1}
    for kernel in (3, 1):
        x, weight = RNG.normal(size=(0, 2, 5)), RNG.normal(size=(3, 2, kernel))
        alike(conv, "conv1d", x, weight, padding=(kernel // 2,), **attrs)


def test_long_inputs_are_cut_into_blocks():
    for dims, size in ((1, (9000,)), (3, (40, 30, 31))):
        shapes = (2, 4, *size), (3, 4, *[5 - dims] * dims), 3
        ones = (1,) * dims
        for stride in (1, 2):
            attrs = {"stride": (stride,) * dims, "padding": ones, "dilation": ones}
            arrays = [RNG.normal(size=shape) for shape in shapes]
            alike(conv, f"conv{dims}d", *arrays, groups=1, **attrs)


POOLS = {
    1: [((9,), (3,)), ((8,), (2,)), ((1,), (1,))],
    2: [((8, 7), (3, 2)), ((9, 5), (2, 4)), ((1, 4), (1, 2))],
    3: [((6, 7, 5), (2, 3, 2)), ((4, 1, 5), (3, 1, 2))],
}
POOLINGS = [
    (dims, size, kernel, stride, padded)
    for dims, rows in POOLS.items()
    for size, kernel in rows
    for stride in ((1,) * dims, (2, 3, 1)[:dims], kernel)
    for padded in (False, True)
]


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("count_include_pad", [False, True])
@pytest.mark.parametrize(("dims", "size", "kernel", "stride", "padded"), POOLINGS)
def test_avg_pool(dims, size, kernel, stride, padded, count_include_pad, ceil_mode):
    attrs = {
        "kernel_size": kernel,
        "stride": stride,
        "padding": tuple(k // 2 * padded for k in kernel),
        "count_include_pad": count_include_pad,
        "ceil_mode": ceil_mode,
    }
    alike(avg_pool, f"avg_pool{dims}d", RNG.normal(size=(2, 3, *size)), **attrs)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("dilated", [False, True])
@pytest.mark.parametrize(("dims", "size", "kernel", "stride", "padded"), POOLINGS)
def test_max_pool(dims, size, kernel, stride, padded, dilated, ceil_mode):
    dilation = tuple(
        2 if dilated and n + 2 * (k // 2 * padded) > 2 * (k - 1) else 1
        for n, k in zip(size, kernel, strict=True)
    )
    attrs = {
        "kernel_size": kernel,
        "stride": stride,
        "padding": tuple(k // 2 * padded for k in kernel),
        "dilation": dilation,
        "ceil_mode": ceil_mode,
    }
    theirs = getattr(functional, f"max_pool{dims}d")
    for x in (RNG.normal(size=(2, 3, *size)), RNG.integers(0, 3, (2, 3, *size)) * 1.0):
        same_op(max_pool, theirs, F64, x, **attrs)
        _, wanted = theirs(torch.from_numpy(x), return_indices=True, **attrs)
        found = apply(max_pool_indices, Tensor.from_numpy(x, F64), **attrs)
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("out", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_adaptive_avg_pool(dims, out):
    size = (out, out + 1, max(out - 1, 1))[:dims]
    x = RNG.normal(size=(2, 3, *(6, 5, 7)[:dims]))
    alike(adaptive_avg_pool, f"adaptive_avg_pool{dims}d", x, output_size=size)


NAMES = {
    "linear": {1: "linear", 2: "bilinear", 3: "trilinear"},
    "cubic": {2: "bicubic"},
}
RESIZED = [
    (mode, dims, size, out)
    for mode, names in NAMES.items()
    for dims in names
    for size, out in (
        ((5, 4, 3), (9, 7, 4)),
        ((6, 9, 5), (3, 4, 5)),
        ((1, 3, 2), (4, 1, 5)),
    )
]


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(("mode", "dims", "size", "out"), RESIZED)
def test_interpolate(mode, dims, size, out, align_corners):
    attrs = {"output_size": out[:dims], "mode": mode, "align_corners": align_corners}
    name = NAMES[mode][dims]
    agree(
        lambda x: apply(interpolate, x, **attrs),
        lambda x: functional.interpolate(x, out[:dims], None, name, align_corners),
        RNG.normal(size=(2, 3, *size[:dims])),
    )


@pytest.mark.parametrize("mode", ["nearest", "nearest_exact"])
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(
    ("size", "out"), [((4, 3, 5), (8, 9, 5)), ((9, 8, 6), (3, 5, 4))]
)
def test_interpolate_nearest(mode, dims, size, out):
    attrs = {"output_size": out[:dims], "mode": mode, "align_corners": True}
    name = mode.replace("_", "-")
    agree(
        lambda x: apply(interpolate, x, **attrs),
        lambda x: functional.interpolate(x, out[:dims], mode=name),
        RNG.normal(size=(2, 3, *size[:dims])),
    )


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"),
    [
        ((2, 3), (1, 1), (0, 0), (1, 1)),
        ((3, 1), (2, 3), (1, 2), (1, 1)),
        ((2, 2), (1, 2), (2, 1), (2, 3)),
        ((1, 1), (1, 1), (0, 0), (1, 1)),
    ],
)
def test_unfold_and_fold(kernel, stride, padding, dilation):
    attrs = {"kernel_size": kernel, "stride": stride}
    attrs |= {"padding": padding, "dilation": dilation}
    x = RNG.normal(size=(2, 3, 6, 7))
    alike(unfold4d, "unfold", x, **attrs)
    columns = functional.unfold(torch.from_numpy(x), **attrs).numpy()
    alike(fold4d, "fold", columns, output_size=(6, 7), **attrs)
