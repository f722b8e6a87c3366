"""Sizes of windows: one number for all dims, or one per dim."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ArgumentError, BurnbookError, ShapeError
from burnbook.tensor import Tensor, module as functional
from burnbook.tensor.module import ConvOptions

DEVICE = Numpy()
RNG = np.random.default_rng(0)


def draw(*shape, device=DEVICE):
    return Tensor.from_data(RNG.standard_normal(shape).astype("f"), device)


IMAGES, KERNELS = draw(2, 3, 9, 8), draw(4, 3, 3, 3)
METHODS = [
    ("avg_pool2d", {"kernel_size": 2, "stride": 2}),
    ("avg_pool2d", {"kernel_size": 3, "stride": 2, "padding": 1}),
    ("avg_pool2d", {"kernel_size": 3, "stride": [2, 1], "padding": np.int64(1)}),
    ("max_pool2d", {"kernel_size": 2, "stride": 2}),
    ("max_pool2d", {"kernel_size": 3, "stride": 2, "padding": 1, "dilation": 2}),
    ("conv2d", {"stride": 2, "padding": 1, "dilation": 2}),
    ("conv2d", {"padding": [1, 0]}),
    ("adaptive_avg_pool2d", {"output_size": 2}),
    ("adaptive_avg_pool2d", {"output_size": [3, 2]}),
]


def plain(value):
    return tuple(value) if isinstance(value, list) else int(value)


@pytest.mark.parametrize(("name", "sizes"), METHODS)
def test_one_number_is_for_all_dims(name, sizes):
    torch = pytest.importorskip("torch")
    others = [KERNELS] if name == "conv2d" else []
    arrays = [torch.tensor(np.asarray(t)) for t in (IMAGES, *others)]
    wanted = getattr(torch.nn.functional, name)(
        *arrays, **{key: plain(value) for key, value in sizes.items()}
    )
    found = getattr(IMAGES, name)(*others, **sizes)
    assert np.allclose(found, wanted, atol=1e-5)
    tracked = draw(2, 3, 9, 8, device=Autodiff(DEVICE)).require_grad()
    others = [draw(4, 3, 3, 3, device=Autodiff(DEVICE))] if others else []
    grads = getattr(tracked, name)(*others, **sizes).sum().backward()
    assert tracked.grad(grads).dims() == tracked.dims()


@pytest.mark.parametrize(("name", "sizes"), METHODS)
def test_sizes_by_position_mean_the_same(name, sizes):
    if name == "conv2d":
        return  # its bias stands between
    given = list(sizes.values())
    assert np.array_equal(getattr(IMAGES, name)(*given), getattr(IMAGES, name)(**sizes))


@pytest.mark.parametrize("name", ["avg_pool2d", "max_pool2d"])
def test_a_stride_is_never_guessed(name):
    """Burn's functions and PyTorch's defaults differ, so neither is taken silently."""
    cure = rf"try: {name}\(x, 2, stride=2\)"
    with pytest.raises(ArgumentError, match=f"stride is missing(?s:.*){cure}"):
        getattr(functional, name)(IMAGES, 2)
    with pytest.raises(ArgumentError, match=r"kernel_size=\[7, 6\], stride=\[7, 6\]"):
        getattr(IMAGES, name)([7, 6])
    with pytest.raises(ArgumentError, match=r"\(kernel_size=7, stride=7\)"):
        getattr(IMAGES, name)([7, 7])
    lines = name.replace("2d", "1d")
    with pytest.raises(ArgumentError, match=rf"{lines}\(x, 3, stride=3\)"):
        getattr(functional, lines)(draw(1, 2, 6), 3)


WRONG = [
    (lambda x: x.avg_pool2d(None, 2), "kernel_size is None"),
    (lambda x: x.avg_pool2d(2.0, 2), r"try: kernel_size=2$"),
    (lambda x: x.avg_pool2d([2, 2, 2], 2), r"\[2, 2, 2\] must have one number"),
    (lambda x: x.max_pool2d(2, "2"), "stride is '2'"),
    (lambda x: x.max_pool2d(True, 2), "kernel_size is True"),
    (lambda x: x.adaptive_avg_pool2d([2]), r"try: output_size=2$"),
    (lambda x: x.adaptive_avg_pool2d(None), r"output_size=x\.dims\(\)\[2:\]"),
    (lambda x: x.adaptive_avg_pool2d((None, 2)), r"\[x\.dims\(\)\[2\], 2\]"),
    (lambda x: x.conv2d(KERNELS, padding="same"), "padding is 'same'"),
    (lambda x: x.conv2d(KERNELS, padding=[1]), r"try: padding=1$"),
    (lambda x: x.conv2d(KERNELS, stride=1.5), r"stride is 1\.5"),
    (lambda x: functional.max_pool2d(x, "2", 1), "kernel_size is '2'"),
    (lambda x: functional.avg_pool2d(x, 2, 2.0), r"try: stride=2$"),
    (lambda x: functional.interpolate(x, 2.5), r"output_size is 2\.5"),
    (lambda x: functional.adaptive_avg_pool2d(x, None), "keeps the size"),
    (lambda x: functional.unfold4d(x, None), "kernel_size is None"),
    (lambda x: functional.conv2d(x, KERNELS, None, 2), r"ConvOptions\(stride=2\)"),
    (
        lambda x: functional.conv2d(x, KERNELS, None, ConvOptions(padding="same")),
        "padding is 'same'",
    ),
    (lambda x: x.pad(1), r"x\.pad\(\[\(1, 1\), \(1, 1\)\]\)"),
    (lambda x: x.pad([1, 2]), r"x\.pad\(\[\(1, 2\)\]\)"),
    (lambda x: x.split_with_sizes(2, 3), r"x\.split\(2, 3\)"),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_sizes_that_are_none_are_explained(call, text):
    with pytest.raises(BurnbookError, match=f"(?m){text}"):
        call(IMAGES)


def test_sizes_that_do_not_fit_have_no_cure_for_channels():
    with pytest.raises(ShapeError) as found:
        IMAGES.conv2d(KERNELS, dilation=9)
    assert "Conv2dConfig" not in str(found.value)


def test_one_dim_stands_for_a_list_of_dims():
    x = draw(2, 1, 3)
    assert x.squeeze_dims(1).dims() == x.squeeze_dims([1]).dims() == [2, 3]
    assert x.unsqueeze_dims(0).dims() == [1, 2, 1, 3]
    for name in ("sum", "mean", "prod", "max", "min", "max_abs"):
        method = getattr(x, f"{name}_dims")
        assert np.array_equal(method(2), method([2]))
    assert np.array_equal(x.sum_dims_squeeze(2), x.sum_dims_squeeze([2]))
