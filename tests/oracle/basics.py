"""Slow arithmetic, reductions, rearranging and picking."""

import math

import numpy as np

from tests.oracle.loops import by_element, by_line, each

div = by_element(lambda a, b: a / b)
remainder = by_element(lambda a, b: a - b * math.floor(a / b))
powf = by_element(lambda a, b: a**b)
max_pair = by_element(lambda a, b: b if a < b else a)
min_pair = by_element(lambda a, b: b if b < a else a)
sign = by_element(lambda a: (a > 0) - (a < 0))
recip = by_element(lambda a: 1 / a)
relu = by_element(lambda a: a if a > 0 else 0.0)
sigmoid = by_element(lambda a: 1 / (1 + math.exp(-a)))


def clamp(x, min, max):
    return each(lambda a: min if a < min else max if a > max else a, x)


erf = by_element(math.erf)
is_nan = by_element(math.isnan)


def sum(x):
    return np.array([math.fsum(x.ravel())])


def mean(x):
    return np.array([math.fsum(x.ravel()) / x.size])


sum_dim = by_line(math.fsum)
mean_dim = by_line(lambda line: math.fsum(line) / len(line))
max_dim = by_line(lambda line: sorted(line)[-1])
min_dim = by_line(lambda line: sorted(line)[0])
argmax = by_line(lambda line: list(line).index(sorted(line)[-1]))
argmin = by_line(lambda line: list(line).index(sorted(line)[0]))


def sum_to(x, shape):
    out = np.zeros(shape)
    for place in np.ndindex(x.shape):
        out[stretched(place, shape)] += x[place]
    return out


def stretched(place, shape):
    """Where an array of some shape, stretched, takes the number at a place from."""
    kept = place[len(place) - len(shape) :]
    return tuple(0 if n == 1 else i for i, n in zip(kept, shape, strict=True))


def expand(x, shape):
    out = np.empty(shape)
    for place in np.ndindex(*shape):
        out[place] = x[stretched(place, x.shape)]
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
    return slice_assign(np.zeros(shape), x, index)


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


def named(indices, dim):
    """(a place in the indices, the place that it names) for every index."""
    for place in np.ndindex(indices.shape):
        there = list(place)
        there[dim] = indices[place]
        yield place, tuple(there)


def gather(x, indices, dim):
    out = np.empty(indices.shape)
    for place, source in named(indices, dim):
        out[place] = x[source]
    return out


def scatter(x, indices, values, dim):
    out = x.copy()
    for place, target in named(indices, dim):
        out[target] += values[place]
    return out


def select(x, indices, dim):
    return np.stack([np.take(x, i, axis=dim) for i in indices], axis=dim)


def select_assign(x, indices, values, dim):
    out = np.moveaxis(x.copy(), dim, 0)
    for i, row in zip(indices, np.moveaxis(values, dim, 0), strict=True):
        out[i] += row
    return np.moveaxis(out, 0, dim)


mask_where = by_element(lambda a, m, v: v if m else a)
mask_fill = by_element(lambda a, m, value: value if m else a)
