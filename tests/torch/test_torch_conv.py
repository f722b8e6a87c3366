"""Convolutions equal PyTorch's, forward and backward, over many options."""

import itertools

import numpy as np
import pytest

from burnbook.autodiff import Autodiff
from burnbook.backend import Numpy
from burnbook.ops.conv_nd import conv
from burnbook.ops.conv_transpose import conv_transpose
from burnbook.tensor import Tensor, apply

torch = pytest.importorskip("torch")
functional = torch.nn.functional

F64 = Autodiff(Numpy(float="f64"))
RNG = np.random.default_rng(0)


def agree(ours, theirs, *arrays, rtol=1e-9):
    """Outputs and all gradients, for one random direction; None stands for no input."""
    mine = [
        None if x is None else Tensor.from_numpy(x, F64).require_grad() for x in arrays
    ]
    other = [
        None if x is None else torch.from_numpy(x.copy()).requires_grad_()
        for x in arrays
    ]
    out, wanted = ours(*mine), theirs(*other)
    close(out, wanted, rtol)
    g = RNG.normal(size=out.dims())
    grads = (out * Tensor.from_numpy(g, F64)).sum().backward()
    (wanted * torch.from_numpy(g)).sum().backward()
    for a, b in zip(mine, other, strict=True):
        if a is not None:
            close(a.grad(grads), b.grad, rtol)


def close(ours, theirs, rtol):
    wanted = theirs.detach().numpy()
    scale = np.abs(wanted).max(initial=0) + 1e-30
    np.testing.assert_allclose(np.asarray(ours), wanted, rtol=rtol, atol=rtol * scale)


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
    attrs = {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
    }
    theirs = getattr(functional, f"conv{dims}d")
    agree(
        lambda *inputs: apply(conv, *inputs, **attrs),
        lambda *inputs: theirs(*inputs, **attrs),
        RNG.normal(size=(2, 4, *size)),
        RNG.normal(size=(6, 4 // groups, *kernel)),
        RNG.normal(size=6) if bias else None,
    )


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
    attrs = {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
    }
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
    theirs = getattr(functional, f"conv{dims}d")
    agree(
        lambda *inputs: apply(conv, *inputs, **attrs),
        lambda *inputs: theirs(*inputs, **attrs),
        RNG.normal(size=(1, 1, *ones)),
        RNG.normal(size=(1, 1, *[3] * dims)),
        RNG.normal(size=1),
    )


def test_no_samples_give_no_outputs():
    attrs = {"stride": (1,), "padding": (1,), "dilation": (1,), "groups": 1}
    for kernel in (3, 1):
        x, weight = RNG.normal(size=(0, 2, 5)), RNG.normal(size=(3, 2, kernel))
        padding = {"padding": (kernel // 2,)}
        agree(
            lambda *inputs, more=padding: apply(conv, *inputs, **{**attrs, **more}),
            lambda *inputs, more=padding: functional.conv1d(*inputs, **more),
            x,
            weight,
        )


def test_long_inputs_are_cut_into_blocks():
    attrs = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 1), "groups": 1}
    for dims, size in ((1, (9000,)), (3, (40, 30, 31))):
        some = {
            name: value[:1] * dims if name != "groups" else value
            for name, value in attrs.items()
        }
        for stride in (1, 2):
            some["stride"] = (stride,) * dims
            theirs = getattr(functional, f"conv{dims}d")
            agree(
                lambda *inputs, some=some: apply(conv, *inputs, **some),
                lambda *inputs, some=some, theirs=theirs: theirs(*inputs, **some),
                RNG.normal(size=(2, 4, *size)),
                RNG.normal(size=(3, 4, *[5 - dims] * dims)),
                RNG.normal(size=3),
            )
