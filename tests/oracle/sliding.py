"""Slow loops for what slides a window over an image: convolution, pooling, unfold."""

import itertools

import numpy as np


def stops_of(size, kernel, stride, padding, dilation):
    return [
        len(range(0, n + 2 * p - d * (k - 1), s))
        for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    ]


def window(size, stop, kernel, stride, padding, dilation):
    """(place inside the window, place on the image) for all places on the image."""
    for place in np.ndindex(*kernel):
        at = [
            i * s - p + j * d
            for i, j, s, p, d in zip(
                stop, place, stride, padding, dilation, strict=True
            )
        ]
        if all(0 <= i < n for i, n in zip(at, size, strict=True)):
            yield place, tuple(at)


def conv_terms(x_shape, weight_shape, stops, stride, padding, dilation, groups):
    """(where in x, where in weight, where in out) for every product that counts."""
    outs = weight_shape[0] // groups
    inside = weight_shape[1]
    sizes = (weight_shape[2:], stride, padding, dilation)
    for stop in itertools.product(*map(range, stops)):
        for place, at in window(x_shape[2:], stop, *sizes):
            for n, o, c in np.ndindex(x_shape[0], weight_shape[0], inside):
                channel = o // outs * inside + c
                yield (n, channel, *at), (o, c, *place), (n, o, *stop)


def per_channel(out, bias):
    return out if bias is None else out + bias.reshape(-1, *[1] * (out.ndim - 2))


def conv(x, weight, bias=None, *, stride, padding, dilation, groups):
    stops = stops_of(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    out = np.zeros((x.shape[0], weight.shape[0], *stops))
    options = (stride, padding, dilation, groups)
    for a, b, c in conv_terms(x.shape, weight.shape, stops, *options):
        out[c] += x[a] * weight[b]
    return per_channel(out, bias)


def conv_x(dout, weight, *, x_shape, stride, padding, dilation, groups):
    out = np.zeros(x_shape)
    options = (stride, padding, dilation, groups)
    for a, b, c in conv_terms(x_shape, weight.shape, dout.shape[2:], *options):
        out[a] += dout[c] * weight[b]
    return out


def conv_weight(dout, x, *, weight_shape, stride, padding, dilation, groups):
    out = np.zeros(weight_shape)
    options = (stride, padding, dilation, groups)
    for a, b, c in conv_terms(x.shape, weight_shape, dout.shape[2:], *options):
        out[b] += dout[c] * x[a]
    return out


def conv_transpose(
    x, weight, bias=None, *, stride, padding, padding_out, dilation, groups
):
    size = [
        (n - 1) * s - 2 * p + d * (k - 1) + q + 1
        for n, k, s, p, q, d in zip(
            x.shape[2:],
            weight.shape[2:],
            stride,
            padding,
            padding_out,
            dilation,
            strict=True,
        )
    ]
    shape = (x.shape[0], weight.shape[1] * groups, *size)
    options = {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
    }
    return per_channel(conv_x(x, weight, x_shape=shape, **options), bias)
