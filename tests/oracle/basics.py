"""Slow arithmetic, reductions, rearranging and picking."""

import math

import numpy as np

from tests.oracle.loops import each, lines


def div(x, y):
    return each(lambda a, b: a / b, x, y)


def remainder(x, y):
    return each(lambda a, b: a - b * math.floor(a / b), x, y)


def powf(x, y):
    return each(lambda a, b: a**b, x, y)


def max_pair(x, y):
    return each(lambda a, b: b if a < b else a, x, y)


def min_pair(x, y):
    return each(lambda a, b: b if b < a else a, x, y)


def sign(x):
    return each(lambda a: (a > 0) - (a < 0), x)


def recip(x):
    return each(lambda a: 1 / a, x)


def relu(x):
    return each(lambda a: a if a > 0 else 0.0, x)


def sigmoid(x):
    return each(lambda a: 1 / (1 + math.exp(-a)), x)


def clamp(x, min, max):
    return each(lambda a: min if a < min else max if a > max else a, x)


def erf(x):
    return each(math.erf, x)


def is_nan(x):
    return each(math.isnan, x)


def sum(x):
    return np.array([math.fsum(x.ravel())])


def mean(x):
    return np.array([math.fsum(x.ravel()) / x.size])


def sum_dim(x, dim):
    return lines(math.fsum, x, dim)


def mean_dim(x, dim):
    return lines(lambda line: math.fsum(line) / len(line), x, dim)


def max_dim(x, dim):
    return lines(lambda line: sorted(line)[-1], x, dim)


def min_dim(x, dim):
    return lines(lambda line: sorted(line)[0], x, dim)


def argmax(x, dim):
    return lines(lambda line: list(line).index(sorted(line)[-1]), x, dim)


def argmin(x, dim):
    return lines(lambda line: list(line).index(sorted(line)[0]), x, dim)


def sum_to(x, shape):
    out = np.zeros(shape)
    for place in np.ndindex(x.shape):
        kept = place[len(place) - len(shape) :]
        out[tuple(0 if n == 1 else i for i, n in zip(kept, shape, strict=True))] += x[
            place
        ]
    return out


def expand(x, shape):
    out = np.empty(shape)
    for place in np.ndindex(*shape):
        kept = place[len(place) - x.ndim :]
        out[place] = x[
            tuple(0 if n == 1 else i for i, n in zip(kept, x.shape, strict=True))
        ]
    return out


def permute(x, axes):
    out = np.empty([x.shape[a] for a in axes])
    for place in np.ndindex(out.shape):
        source = [0] * x.ndim
        for i, axis in enumerate(axes):
            source[axis] = place[i]
        out[place] = x[tuple(source)]
    return out


def slice_spread(x, index, shape):
    out = np.zeros(shape)
    ranges = [range(*s.indices(n)) for s, n in zip(index, shape, strict=True)]
    for place in np.ndindex(x.shape):
        out[tuple(r[i] for r, i in zip(ranges, place, strict=True))] = x[place]
    return out


def slice_assign(x, values, index):
    full = (*index, *[slice(None)] * (x.ndim - len(index)))
    ranges = [range(*s.indices(n)) for s, n in zip(full, x.shape, strict=True)]
    out = x.copy()
    for place in np.ndindex(values.shape):
        out[tuple(r[i] for r, i in zip(ranges, place, strict=True))] = values[place]
    return out


def matmul(x, y):
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x = np.broadcast_to(x, (*batch, *x.shape[-2:]))
    y = np.broadcast_to(y, (*batch, *y.shape[-2:]))
    out = np.empty((*batch, x.shape[-2], y.shape[-1]))
    for place in np.ndindex(out.shape):
        *b, i, j = place
        out[place] = math.fsum(
            x[(*b, i, k)] * y[(*b, k, j)] for k in range(x.shape[-1])
        )
    return out


def linear(x, weight, bias=None):
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    flat = rows.reshape(-1, rows.shape[-1])
    out = matmul(flat, weight) + (0 if bias is None else bias)
    return out.reshape(*x.shape[:-1], weight.shape[1])


def gather(x, indices, dim):
    out = np.empty(indices.shape)
    for place in np.ndindex(indices.shape):
        source = list(place)
        source[dim] = indices[place]
        out[place] = x[tuple(source)]
    return out


def scatter(x, indices, values, dim):
    out = x.copy()
    for place in np.ndindex(indices.shape):
        target = list(place)
        target[dim] = indices[place]
        out[tuple(target)] += values[place]
    return out


def select(x, indices, dim):
    return np.stack([np.take(x, i, axis=dim) for i in indices], axis=dim)


def select_assign(x, indices, values, dim):
    out = np.moveaxis(x.copy(), dim, 0)
    for i, row in zip(indices, np.moveaxis(values, dim, 0), strict=True):
        out[i] += row
    return np.moveaxis(out, 0, dim)


def mask_where(x, mask, values):
    return each(lambda a, m, v: v if m else a, x, mask, values)


def mask_fill(x, mask, value):
    return each(lambda a, m: value if m else a, x, mask)
