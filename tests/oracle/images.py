"""Slow convolution, pooling, and what comes after the scores."""

import math

import numpy as np

from tests.oracle import sliding
from tests.oracle.loops import lines


def conv2d(
    x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1
):
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    return sliding.conv(x, weight, bias, groups=groups, **options)


def avg_pool2d(x, kernel_size, stride, padding=(0, 0), count_include_pad=True):
    options = {"kernel_size": kernel_size, "stride": stride, "padding": padding}
    options |= {"count_include_pad": count_include_pad, "ceil_mode": False}
    return sliding.avg_pool(x, **options)


def max_pool2d(x, kernel_size, stride, padding=(0, 0), dilation=(1, 1)):
    options = {"kernel_size": kernel_size, "stride": stride, "padding": padding}
    return sliding.max_pool(x, **options, dilation=dilation, ceil_mode=False)


adaptive_avg_pool2d = sliding.adaptive_avg_pool


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
