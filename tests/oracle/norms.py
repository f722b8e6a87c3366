"""Slow normalizations: a mean and a variance for each group of numbers."""

import math

import numpy as np

from tests.oracle.loops import lines


def moments(numbers):
    mean = math.fsum(numbers) / len(numbers)
    return mean, math.fsum((a - mean) ** 2 for a in numbers) / len(numbers)


def standard(numbers, epsilon, inside=True):
    mean, var = moments(numbers)
    below = math.sqrt(var + epsilon) if inside else math.sqrt(var) + epsilon
    return [(a - mean) / below for a in numbers]


def affine(out, gamma, beta, dim):
    for place in np.ndindex(out.shape):
        if gamma is not None:
            out[place] *= gamma[place[dim]]
        if beta is not None:
            out[place] += beta[place[dim]]
    return out


def layer_norm(x, gamma=None, beta=None, epsilon=1e-5):
    out = lines(lambda line: standard(list(line), epsilon), x, x.ndim - 1)
    return affine(out, gamma, beta, x.ndim - 1)


def rms_norm(x, gamma=None, epsilon=1e-5):
    def row(line):
        power = math.fsum(a * a for a in line) / len(line)
        return [a / math.sqrt(power + epsilon) for a in line]

    return affine(lines(row, x, x.ndim - 1), gamma, None, x.ndim - 1)


def group_norm(x, gamma=None, beta=None, *, groups, epsilon=1e-5, inside=False):
    out, each = np.empty_like(x), x.shape[1] // groups
    for n in range(x.shape[0]):
        for first in range(0, x.shape[1], each):
            part = x[n, first : first + each]
            found = standard(list(part.ravel()), epsilon, inside)
            out[n, first : first + each] = np.array(found).reshape(part.shape)
    return affine(out, gamma, beta, 1)


def batch_norm(x, gamma, beta, epsilon=1e-5):
    out = np.empty_like(x)
    for c in range(x.shape[1]):
        found = standard(list(x[:, c].ravel()), epsilon)
        out[:, c] = np.array(found).reshape(x[:, c].shape)
    return affine(out, gamma, beta, 1)


def batch_norm_known(x, gamma, beta, mean, var, epsilon=1e-5):
    out = np.empty_like(x)
    for place in np.ndindex(x.shape):
        c = place[1]
        out[place] = (x[place] - mean[c]) / math.sqrt(var[c] + epsilon)
    return affine(out, gamma, beta, 1)


def neighbor_sum(x, before, after):
    out = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        n, c, *rest = place
        for j in range(max(c - before, 0), min(c + after + 1, x.shape[1])):
            out[place] += x[(n, j, *rest)]
    return out
