"""Slow convolution, pooling, and what comes after the scores."""

import math

import numpy as np

from tests.oracle.loops import lines


def conv2d(
    x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1
):
    n, _, height, width = x.shape
    o, c, rows, cols = weight.shape
    spans = (dilation[0] * (rows - 1), dilation[1] * (cols - 1))
    h = (height + 2 * padding[0] - spans[0] - 1) // stride[0] + 1
    w = (width + 2 * padding[1] - spans[1] - 1) // stride[1] + 1
    out = np.zeros((n, o, h, w))
    for i, k, r, q in np.ndindex(out.shape):
        total = 0.0 if bias is None else bias[k]
        group = k // (o // groups)
        for ci, a, b in np.ndindex(c, rows, cols):
            y = r * stride[0] - padding[0] + a * dilation[0]
            z = q * stride[1] - padding[1] + b * dilation[1]
            if 0 <= y < height and 0 <= z < width:
                total += x[i, group * c + ci, y, z] * weight[k, ci, a, b]
        out[i, k, r, q] = total
    return out


def adaptive_avg_pool2d(x, output_size):
    n, c, height, width = x.shape
    h, w = output_size
    out = np.zeros((n, c, h, w))
    for i, k, r, q in np.ndindex(out.shape):
        rows = range(math.floor(r * height / h), math.ceil((r + 1) * height / h))
        cols = range(math.floor(q * width / w), math.ceil((q + 1) * width / w))
        values = [x[i, k, y, z] for y in rows for z in cols]
        out[i, k, r, q] = sum(values) / len(values)
    return out


def windows(x, kernel_size, stride, padding, dilation, reduce):
    n, c, height, width = x.shape
    spans = [dilation[d] * (kernel_size[d] - 1) for d in (0, 1)]
    h = (height + 2 * padding[0] - spans[0] - 1) // stride[0] + 1
    w = (width + 2 * padding[1] - spans[1] - 1) // stride[1] + 1
    out = np.zeros((n, c, h, w))
    for i, k, r, q in np.ndindex(out.shape):
        values = []
        for a, b in np.ndindex(*kernel_size):
            y = r * stride[0] - padding[0] + a * dilation[0]
            z = q * stride[1] - padding[1] + b * dilation[1]
            if 0 <= y < height and 0 <= z < width:
                values.append(x[i, k, y, z])
        out[i, k, r, q] = reduce(values)
    return out


def avg_pool2d(x, kernel_size, stride, padding=(0, 0), count_include_pad=True):
    whole = kernel_size[0] * kernel_size[1]

    def average(values):
        return sum(values) / (whole if count_include_pad else len(values))

    return windows(x, kernel_size, stride, padding, (1, 1), average)


def max_pool2d(x, kernel_size, stride, padding=(0, 0), dilation=(1, 1)):
    return windows(x, kernel_size, stride, padding, dilation, max)


def softmax(x, dim):
    def line(values):
        most = max(values)
        powers = [math.exp(v - most) for v in values]
        return [p / math.fsum(powers) for p in powers]

    return lines(line, x, dim)


def log_softmax(x, dim):
    return np.log(softmax(x, dim))


def cross_entropy(logits, targets):
    chances = softmax(logits, 1)
    surprise = [-math.log(chances[i, t]) for i, t in enumerate(targets)]
    return np.array([math.fsum(surprise) / len(surprise)])
