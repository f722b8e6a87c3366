"""Slow normalizations: a mean and a variance for each group of numbers."""

import math

import numpy as np

from tests.oracle.loops import lines


def standard(line, epsilon):
    mean = math.fsum(line) / len(line)
    spread = math.fsum((a - mean) ** 2 for a in line) / len(line)
    return [(a - mean) / math.sqrt(spread + epsilon) for a in line]


def layer_norm(x, gamma=None, beta=None, epsilon=1e-5):
    out = lines(lambda line: standard(list(line), epsilon), x, x.ndim - 1)
    for place in np.ndindex(out.shape):
        if gamma is not None:
            out[place] *= gamma[place[-1]]
        if beta is not None:
            out[place] += beta[place[-1]]
    return out
