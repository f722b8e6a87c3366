"""Inverse and determinant, without LAPACK's price for each.

NumPy takes one matrix after the other. Small ones are eliminated here, in float64 as
there, by all threads. A large one becomes two triangles in float32, sixteen columns at
a time: what these take off the rest is a matrix product, whose tiles stay in registers.
Nearly singular matrices, NaN and infinity are left to the plain code.

Measured by the family solve, of tests/bench.
"""

from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.gemm import ROWS, WIDTH, make_tile
from burnbook.backend.compiled.runtime.jit import (
    counting_part,
    f32,
    kernel_code,
    part,
)
from burnbook.backend.compiled.runtime.registry import kernel
from burnbook.backend.compiled.runtime.simd import LANES, broadcast, load, store
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.compiled.shape import whole
from burnbook.ops.solve import cofactor, det, inverse

SMALL = 64  # rows of a small matrix
TILED = range(160, 513)  # rows of a large one that tiles are worth it for
GRAIN = 1 << 16  # multiplications of a part
LEAST = 3e-3  # of the largest number, times √rows: keeps errors below a thousandth
NEARLY = 1e9  # times that an error may grow; more, and a matrix is nearly singular


@part
def copy_matrix(x, transposed, w):
    """Copy a matrix, as it is or turned; gives the largest sum of sizes in a row."""
    largest = 0.0
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[0]):
            value = x[j, i] if transposed else x[i, j]
            w[i, j] = value
            total += abs(value)
        largest = max(largest, total) if total == total else np.inf
    return largest


@part
def pivot(w, k, order):
    """Bring the largest number of column k to the diagonal, with its row.

    Gives 1 or, where rows were exchanged, −1; and 0 where there is no such number.
    """
    best, at = -1.0, k
    for i in range(k, w.shape[0]):
        if abs(w[i, k]) > best:
            best, at = abs(w[i, k]), i
    if not 0 < best < np.inf:
        return 0
    if at == k:
        return 1
    order[at], order[k] = order[k], order[at]
    a, b = w[at], w[k]
    for j in range(a.size):
        a[j], b[j] = b[j], a[j]
    return -1


@part
def add_row(a, factor, b):
    for j in range(a.size):
        a[j] += factor * b[j]


@part
def product_of(pivots):
    """Their product, which on its way there neither overflows nor vanishes."""
    product, scale = 1.0, 0
    for i in range(pivots.size):
        product *= pivots[i]
        if abs(product) > 1e150:
            product, scale = product * 1e-150, scale + 1
        elif abs(product) < 1e-150:
            product, scale = product * 1e150, scale - 1
    for _ in range(abs(scale)):
        product *= 1e150 if scale > 0 else 1e-150
    return product


@part
def undo(w, order, pivots):
    """w becomes its inverse, with columns in some order; False where there is none."""
    n = w.shape[0]
    for k in range(n):
        order[k] = k
    for k in range(n):
        sign = pivot(w, k, order)
        if sign == 0:
            return False
        row, pivots[k], over = w[k], sign * w[k, k], 1 / w[k, k]
        row[k] = 1.0
        for j in range(n):
            row[j] *= over
        for i in range(n):
            if i != k:
                factor = w[i, k]
                w[i, k] = 0.0
                add_row(w[i], -factor, row)
    return True


@kernel_code("void(f4[:,:,::1], f8[::1], i8, i8)")
def det_range(x, dets, start, stop):
    """The determinants of some small matrices; NaN where they are left."""
    n = x.shape[1]
    w, pivots = np.empty((n, n), np.float64), np.empty(n, np.float64)
    order = np.empty(n, np.int64)
    for m in range(start, stop):
        sign = 1 if copy_matrix(x[m], False, w) < np.inf else 0
        for k in range(n if sign else 0):
            sign = pivot(w, k, order)
            if sign == 0:
                break
            pivots[k], over = sign * w[k, k], -1 / w[k, k]
            for i in range(k + 1, n):
                add_row(w[i, k + 1 :], w[i, k] * over, w[k, k + 1 :])
        dets[m] = product_of(pivots) if sign else np.nan


@kernel_code("void(f4[:,:,::1], f4[:,:,::1], b1, f8[::1], f8[::1], i8, i8)")
def inverse_range(x, out, cofactors, factors, growth, start, stop):
    """The inverses of some small matrices, or cofactors times factors.

    growth: how many times larger an error may become than it is; ∞ where it fails.
    """
    n = x.shape[1]
    w, pivots = np.empty((n, n), np.float64), np.empty(n, np.float64)
    order = np.empty(n, np.int64)
    for m in range(start, stop):
        growth[m] = np.inf
        size, largest = copy_matrix(x[m], cofactors, w), 0.0
        if not (size < np.inf and undo(w, order, pivots)):
            continue
        scale = product_of(pivots) * factors[m] if cofactors else 1.0
        for i in range(n):
            total, row, line = 0.0, out[m, i], w[i]
            for j in range(n):
                total += abs(line[j])
                row[order[j]] = line[j] * scale
            largest = max(largest, total)
        growth[m] = size * largest


@counting_part
def eliminate_columns(w, n, k, stride):
    """Eliminate in columns k to k + 15; gives the sign of the order, 0 if it fails.

    Below the diagonal stands what rows are added with: minus their factors.
    """
    sign, pivots = 1, np.zeros(LANES, f32)
    for j in range(k, min(k + LANES, n)):
        best, at = f32(-1), j
        for i in range(j, n):
            size = abs(w[i * stride + j])
            if size > best:
                best, at = size, i
        if not 0 < best < np.inf:
            return 0
        if at != j:
            sign = -sign
            for q in range(0, n, LANES):
                a, b = at * stride + q, j * stride + q
                x, y = load(w, a), load(w, b)
                store(w, a, y)
                store(w, b, x)
        for m in range(LANES):
            pivots[m] = w[j * stride + k + m] if k + m > j else f32(0)
        over, row = f32(-1) / w[j * stride + j], load(pivots, 0)
        for i in range(j + 1, n):
            factor = w[i * stride + j] * over
            w[i * stride + j] = factor
            store(w, i * stride + k, load(w, i * stride + k) + broadcast(factor) * row)
    return sign


@part
def eliminate_rows(w, n, k, stride, panels):
    """Eliminate in rows k to k + 15 behind these columns, then in all rows below."""
    first = k + LANES
    for j in range(k, first):
        for i in range(j + 1, first):
            factor = broadcast(w[i * stride + j])
            for q in range(first, n, LANES):
                at = i * stride + q
                store(w, at, load(w, at) + factor * load(w, j * stride + q))
    for q in range(first, n, WIDTH):
        for i in range(LANES):
            for m in range(0, WIDTH, LANES):
                store(panels, i * WIDTH + m, load(w, (k + i) * stride + q + m))
        for i in range(first, n, ROWS):
            here = w[i * stride + q :]
            left = w[i * stride + k :]
            make_tile(left, stride, 1, panels, LANES, here, stride, True)


@kernel_code("void(f4[:,:,::1], f8[::1], i8, i8)")
def large_det_range(x, dets, start, stop):
    """The determinants of some large matrices; NaN where they are left.

    Why: what float32 loses counts against the smallest pivot, which must not be too
    small. The work space is larger than a matrix: a tile may reach beyond its end.
    """
    n = x.shape[1]
    stride = (n + LANES - 1) // LANES * LANES + WIDTH
    w, panels = np.zeros((n + ROWS) * stride, f32), np.empty(LANES * WIDTH, f32)
    pivots = np.empty(n, np.float64)
    for m in range(start, stop):
        largest, sign = f32(0), 1
        for i in range(n):
            row, line = w[i * stride : i * stride + n], x[m, i]
            for j in range(n):
                row[j] = line[j]
                largest = max(largest, abs(line[j]))
        for k in range(0, n, LANES):
            sign *= eliminate_columns(w, n, k, stride)
            if sign and k + LANES < n:
                eliminate_rows(w, n, k, stride, panels)
        smallest = np.inf
        for i in range(n):
            pivots[i] = w[i * stride + i]
            smallest = min(smallest, abs(pivots[i]))
        exact = smallest > LEAST * np.sqrt(n) * largest
        dets[m] = sign * product_of(pivots) if sign and exact else np.nan


@kernel(det)
def det_kernel(x):
    x = whole(x)
    if x is None or x.size == 0:
        return None
    n, matrices = x.shape[-1], x.reshape(-1, *x.shape[-2:])
    if n > SMALL and n not in TILED:
        return None
    dets = np.empty(len(matrices))
    code = det_range if n <= SMALL else large_det_range
    threads.run(code, (matrices, dets), len(matrices), max(1, GRAIN // n**3))
    left = np.isnan(dets)
    out = dets.astype(np.float32)
    if left.any():
        out[left] = det.forward(np, matrices[left])[:, 0, 0]
    return out.reshape(*x.shape[:-2], 1, 1)


@kernel(inverse)
def inverse_kernel(x):
    x = whole(x)
    if x is None or x.size == 0 or x.shape[-1] > SMALL:
        return None
    out, left = _inverses(x, None)
    if left.any():
        out[left] = inverse.forward(np, x.reshape(out.shape)[left])
    return out.reshape(x.shape)


@kernel(cofactor)
def cofactor_kernel(x):
    return _cofactors(x, np.ones((*x.shape[:-2], 1, 1), np.float32))


@kernel(det.backward)
def det_backward(g, x, *, needs):
    out = _cofactors(x, g)
    return None if out is None else (out,)


def _cofactors(x: Any, factors: Any) -> Any:
    """Cofactors of matrices, each times a factor."""
    x = whole(x)
    if x is None or x.size == 0 or factors.dtype != np.float32:
        return None
    small = x.shape[-1] <= SMALL
    out, left = (_inverses if small else _large_cofactors)(x, factors)
    if left.any():
        matrices, factors = x.reshape(out.shape), factors.reshape(-1, 1, 1)
        out[left] = factors[left] * cofactor.forward(np, matrices[left])
    return out.reshape(x.shape)


def _inverses(x: np.ndarray, factors: Any) -> tuple[np.ndarray, np.ndarray]:
    """Inverses of small matrices or, with factors, cofactors; and which were left."""
    matrices = x.reshape(-1, *x.shape[-2:])
    count, n = matrices.shape[:2]
    out, growth = empty(matrices.shape), np.empty(count)
    given = growth if factors is None else factors.astype(np.float64).reshape(-1)
    args = (matrices, out, factors is not None, given, growth)
    threads.run(inverse_range, args, count, max(1, GRAIN // n**3))
    return out, ~(growth < NEARLY)


def _large_cofactors(x: np.ndarray, factors: Any) -> tuple[np.ndarray, np.ndarray]:
    """The same for large matrices: the determinant times the inverse, turned."""
    matrices = x.reshape(-1, *x.shape[-2:]).astype(np.float64)
    try:
        inverses = np.linalg.inv(matrices)
    except np.linalg.LinAlgError:
        return empty(matrices.shape), np.ones(len(matrices), bool)
    sizes = [np.abs(a).sum(axis=-1).max(axis=-1) for a in (matrices, inverses)]
    scales = np.linalg.det(matrices) * factors.reshape(-1)
    out = (scales[:, None, None] * inverses.swapaxes(-1, -2)).astype(np.float32)
    return out, ~(sizes[0] * sizes[1] < NEARLY)
