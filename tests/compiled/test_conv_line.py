"""Compiled convolutions over lines: they equal the plain code, or leave it the work."""

import numpy as np
import pytest

from burnbook.ops.conv.conv import conv
from burnbook.ops.conv.conv_transpose import conv_transpose
from tests.support.kernel_checks import agree, normal


def options(stride=1, padding=0, dilation=1, groups=1, **more):
    numbers = {"stride": stride, "padding": padding, "dilation": dilation, **more}
    return {name: (n,) for name, n in numbers.items()} | {"groups": groups}


LINES = [
    ((2, 3, 50), (4, 3, 3), options()),
    ((1, 4, 33), (6, 2, 5), options(padding=2, groups=2)),
    ((3, 2, 40), (5, 2, 3), options(padding=1, dilation=2)),
    ((2, 1, 8), (1, 1, 8), options()),
]
NEEDS = [(True, True, True), (False, True, False), (True, False, True)]


@pytest.mark.parametrize(("x", "weight", "attrs"), LINES)
def test_conv_over_lines(kernels, x, weight, attrs):
    x, weight, bias = normal(*x), normal(*weight, seed=1), normal(weight[0], seed=2)
    agree(kernels, conv, x, weight, bias, **attrs)
    agree(kernels, conv, x, weight, None, **attrs)
    g = normal(*conv.forward(np, x, weight, **attrs).shape, seed=3)
    shapes = x.shape, weight.shape
    for needs in NEEDS:
        agree(kernels, conv.backward, g, x, weight, *shapes, needs=needs, **attrs)


@pytest.mark.parametrize(("x", "weight", "attrs"), LINES[:3])
def test_transposed_conv_over_lines(kernels, x, weight, attrs):
    attrs = attrs | {"padding_out": (0,)}
    c, rest, taps = weight
    x = normal(x[0], c, x[2])
    weight, bias = normal(c, rest, taps, seed=1), normal(rest * attrs["groups"], seed=2)
    agree(kernels, conv_transpose, x, weight, bias, **attrs)
    agree(kernels, conv_transpose, x, weight, None, **attrs)
    g = normal(*conv_transpose.forward(np, x, weight, **attrs).shape, seed=3)
    values = (g, x, weight, x.shape, weight.shape)
    for needs in NEEDS:
        agree(kernels, conv_transpose.backward, *values, needs=needs, **attrs)


def test_what_does_not_fit_is_left_to_the_plain_code(kernels):
    x, weight = normal(2, 3, 20), normal(4, 3, 3)
    assert kernels[conv](x, weight, **options(stride=2)) is None
    assert kernels[conv](x.astype(np.float64), weight, **options()) is None
    cube = dict.fromkeys(("stride", "dilation"), (1,) * 3) | {"padding": (0,) * 3}
    solid = normal(1, 1, 3, 3, 3), normal(1, 1, 2, 2, 2)
    assert kernels[conv](*solid, groups=1, **cube) is None
    turned = normal(3, 4, 3)
    for attrs in ({"stride": 2}, {"padding": 3}, {"stride": 2, "padding_out": 1}):
        attrs = options(**{"padding_out": 0, **attrs})
        assert kernels[conv_transpose](x, turned, **attrs) is None
