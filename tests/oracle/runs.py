"""Slow functions of lines of numbers: sorting, running sums, spectra, determinants."""

import cmath
import itertools
import math

import numpy as np

from tests.oracle.loops import by_line, lines


def ordered(line, descending):
    """The places of a line in ascending (or descending) order, by insertion."""
    places = []
    for i, value in enumerate(line):
        at = len(places)
        while at and (
            value > line[places[at - 1]] if descending else value < line[places[at - 1]]
        ):
            at -= 1
        places.insert(at, i)
    return places


@by_line
def sort(line, descending=False):
    return [line[i] for i in ordered(line, descending)]


argsort = by_line(lambda line, descending=False: ordered(line, descending))
argtopk = by_line(lambda line, k: ordered(line, True)[:k])
argmedian = by_line(lambda line: ordered(line, False)[(len(line) - 1) // 2])
cumsum = by_line(lambda line: list(itertools.accumulate(line)))
cumprod = by_line(lambda line: [math.prod(line[: i + 1]) for i in range(len(line))])
cummax = by_line(lambda line: [max(line[: i + 1]) for i in range(len(line))])
cummin = by_line(lambda line: [min(line[: i + 1]) for i in range(len(line))])


def linear_scan(x, a, dim):
    def scan(line):
        values, scales = line[: len(line) // 2], line[len(line) // 2 :]
        out = [values[0]]
        for value, scale in zip(values[1:], scales[1:], strict=True):
            out.append(value + scale * out[-1])
        return out

    return lines(scan, np.concatenate([x, a], axis=dim), dim)


@by_line
def newest(line):
    out = [0]
    for i in range(1, len(line)):
        out.append(out[-1] if line[i] == line[i - 1] else i)
    return out


prod_dim = by_line(math.prod)


def prod(x):
    return np.array([math.prod(x.ravel())])


def argwhere(x):
    return np.array([place for place in np.ndindex(x.shape) if x[place]])


def pad(x, widths, value):
    out = np.full(
        [n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)], float(value)
    )
    for place in np.ndindex(x.shape):
        out[tuple(i + a for i, (a, _) in zip(place, widths, strict=True))] = x[place]
    return out


def select_put(x, indices, values):
    out = x.copy()
    for i, row in zip(indices, values, strict=True):
        out[i] = row
    return out


def spectrum(line, count, sign=-1):
    """Σₜ xₜ e^(sign · 2πikt/n) for k < count, as pairs of floats."""
    n = len(line)
    sums = [
        sum(x * cmath.exp(sign * 2j * math.pi * k * t / n) for t, x in enumerate(line))
        for k in range(count)
    ]
    return [(c.real, c.imag) for c in sums]


def rows(function, x, dims):
    """Apply a function to the last dims of an array."""
    outer = x.shape[: x.ndim - dims]
    out = [function(x[place]) for place in np.ndindex(outer)]
    return np.array(out).reshape(*outer, *np.shape(out[0]))


def rfft_pairs(x):
    return rows(lambda line: spectrum(line, len(line) // 2 + 1), x, 1)


def rfft_back(x, n):
    return rows(lambda part: transposed(rfft_pairs, part, n), x, 2)


def irfft_pairs(x, n):
    """The real line whose spectrum is x: every missing term mirrors a given one."""

    def back(part):
        terms = [complex(*pair) for pair in part]
        full = [
            terms[k] if k < len(terms) else terms[n - k].conjugate() for k in range(n)
        ]
        full[0] = full[0].real
        if n % 2 == 0:
            full[n // 2] = full[n // 2].real
        return [re / n for re, _ in spectrum(full, n, sign=1)]

    return rows(back, x, 2)


def irfft_back(x):
    n = x.shape[-1]
    shape = (n // 2 + 1, 2)
    return rows(
        lambda line: transposed(
            lambda flat: irfft_pairs(flat.reshape(shape), n), line, shape[0] * 2
        ).reshape(shape),
        x,
        1,
    )


def fft_pairs(x, inverse):
    def both(part):
        line = [complex(*pair) for pair in part]
        return spectrum(line, len(line), sign=1 if inverse else -1)

    return rows(both, x, 2)


def transposed(function, y, size):
    """The transpose of a linear function of `size` numbers, column by column."""
    return np.array([np.sum(function(unit) * y) for unit in np.eye(size)])


def det(x):
    """Leibniz: the signed sum over all orders of the columns."""

    def one(matrix):
        total = 0.0
        for order in itertools.permutations(range(len(matrix))):
            swaps = sum(a > b for a, b in itertools.combinations(order, 2))
            total += (-1) ** swaps * math.prod(
                matrix[i, j] for i, j in enumerate(order)
            )
        return [[total]]

    return rows(one, x, 2)


def cofactor(x):
    """The signed determinant of what is left without a row and a column."""

    def one(matrix):
        out = np.empty(matrix.shape)
        for i, j in np.ndindex(matrix.shape):
            minor = np.delete(np.delete(matrix, i, 0), j, 1)
            out[i, j] = (-1) ** (i + j) * det(minor)[0, 0]
        return out

    return rows(one, x, 2)


def inverse(x):
    """Cramer: the transposed cofactors over the determinant."""
    return rows(lambda matrix: cofactor(matrix).T / det(matrix), x, 2)


def solve(a, b):
    """Cramer: a column of a is replaced by b, and the determinants are divided."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    left = np.broadcast_to(a, (*batch, *a.shape[-2:]))
    right = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    out = np.empty(right.shape)
    for place in np.ndindex(*batch):
        for i, j in np.ndindex(right.shape[-2:]):
            changed = left[place].copy()
            changed[:, i] = right[place][:, j]
            out[(*place, i, j)] = det(changed)[0, 0] / det(left[place])[0, 0]
    return out


def log_det(x):
    return np.log(np.abs(det(x)))


def det_sign(x):
    return np.sign(det(x))
