"""Matrix products of NumPy arrays, shared out among the threads of the kernels.

BLAS computes every part on one thread (`blas.py`); the parts are rows or columns of the
result, or matrices of a stack. Which numbers come out depends on how many threads there
are, never on which of them was first. Small products go straight to NumPy.

Once compiled kernels are in use, threads take the parts of a product without Python's
lock, which pays from 20 µs on (`compiled/runtime/shared_product.py`). In plain Python a
thread has to be called and to wait for the lock, so only large products are shared out.

Measured by W1 to W4 of tests/bench, plain and compiled.
"""

from math import prod
from types import ModuleType
from typing import Any

import numpy as np
from numpy import ndarray

from burnbook.backend.blas import one_thread
from burnbook.backend.compiled.runtime.buffers import buffers
from burnbook.backend.compiled.runtime.thread_pool import threads

SMALL = 96  # elements of two factors that OpenBLAS multiplies on one thread in any case
ALONE = 1 << 18  # the same where neither factor is a vector
SHARED = 1 << 25  # multiplications that are worth waking another thread for
QUICK = 1 << 20  # the same where it looks out for them: see shared_product.py
F32 = np.dtype(np.float32)
NO_LINE = np.empty(0, F32)
ROWS, COLUMNS = 16, 64  # what a part is a multiple of: what BLAS has in its registers


def dot(x: Any, y: Any, out: Any = None) -> Any:
    """`numpy.dot`; two large matrices are multiplied by all threads.

    Example:
        >>> dot(np.ones((2, 3)), np.ones((3, 1)))
        array([[3.],
               [3.]])
    """
    if x.size <= SMALL >= y.size and out is None:  # hot
        return x.dot(y)
    if x.ndim == 2 == y.ndim and out is None:  # hot
        columns = y.shape[1]
        if x.size * columns <= ALONE and x.shape[0] > 1 < columns:
            return x.dot(y)
    if not y.ndim:  # a number
        return np.dot(x, y, out)
    work = x.size * y.shape[-1]
    if x.dtype.kind != "f" or one_thread.control is None:
        return np.dot(x, y, out)
    both = x.ndim == y.ndim == 2 and x.dtype is y.dtype and x.shape[1] == y.shape[0]
    thin = not both or x.shape[0] == 1 or y.shape[1] == 1
    if work <= ALONE and not thin:
        return np.dot(x, y, out)
    shared = QUICK if threads.multiply is not None else SHARED
    try:
        one_thread.enter()
        if not both or thin or work < shared or threads.size == 1:
            return np.dot(x, y, out)
        return _shared(x, y, out)
    finally:
        one_thread.leave()


def _shared(x: ndarray, y: ndarray, out: ndarray | None) -> ndarray:
    """Two matrices, multiplied by all threads: some rows each, or some columns."""
    if out is None:
        out = buffers.empty((x.shape[0], y.shape[1]), x.dtype)
    rows, columns = out.shape
    x, y = _readable(x), _readable(y)
    readable = x.dtype is F32 and one_thread.sgemm and out.flags.c_contiguous
    if readable and threads.product(one_thread.sgemm, x, y, NO_LINE, out, _form(x, y)):
        return out
    if x.size * columns < SHARED:
        return np.dot(x, y, out)
    if rows >= columns:
        threads.run(_rows, (x, y, out), rows, ROWS)
    else:
        threads.run(_columns, (x, y, out), columns, COLUMNS)
    return out


def dot_plus(
    x: ndarray, y: ndarray, line: ndarray, out: ndarray | None = None
) -> ndarray | None:
    """Two matrices multiplied, with a line added to each row in the same pass.

    None where that is not quicker than one after the other. For F32 alone.
    """
    work = x.size * y.shape[1]
    if threads.multiply is None or work < QUICK or x.shape[0] == 1 or y.shape[1] == 1:
        return None
    if one_thread.control is None or not one_thread.sgemm:
        return None
    try:
        one_thread.enter()
        if out is None:
            out = buffers.empty((x.shape[0], y.shape[1]), F32)
        x, y = _readable(x), _readable(y)
        done = threads.product(one_thread.sgemm, x, y, line, out, _form(x, y))
        return out if done else None
    finally:
        one_thread.leave()


def _form(x: ndarray, y: ndarray) -> int:
    """How two matrices are multiplied in parts: see `multiply` in shared_product.py."""
    by_rows = x.shape[0] >= y.shape[1]
    return _is_transposed(x) | _is_transposed(y) << 1 | by_rows << 2


def _is_transposed(a: ndarray) -> bool:
    """Whether a matrix that BLAS can read stands column by column in memory."""
    row, column = a.strides
    return column != a.itemsize or row < column * a.shape[1]


def matmul(x: Any, y: Any, **options: Any) -> Any:
    """`numpy.matmul`; a large stack of products is shared out among all threads.

    Example:
        >>> matmul(np.ones((5, 2, 3)), np.ones((5, 3, 4))).shape
        (5, 2, 4)
    """
    if options or type(x) is not ndarray or type(y) is not ndarray:
        return np.matmul(x, y, **options)
    if x.ndim == 2 == y.ndim:
        return dot(x, y)
    if x.ndim < 2 or y.ndim < 2 or x.dtype is not y.dtype or x.dtype.char not in "fd":
        return np.matmul(x, y)
    if one_thread.control is None:
        return np.matmul(x, y)
    (rows, depth), columns = x.shape[-2:], y.shape[-1]
    each = rows * depth * columns
    if max(x.size * columns, y.size * rows) < SHARED and each <= ALONE:
        return np.matmul(x, y)
    try:
        one_thread.enter()
        return _stacked(x, y, each)
    finally:
        one_thread.leave()


def _stacked(x: ndarray, y: ndarray, each: int) -> ndarray:
    """A stack of products, each of so many multiplications, shared out."""
    stack = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    dim = next((d for d, n in enumerate(stack) if n > 1), None)
    if dim is None or each * prod(stack) < SHARED:
        return np.matmul(x, y)
    out = buffers.empty((*stack, x.shape[-2], y.shape[-1]), x.dtype)
    before = dim - len(stack) - 2
    x, y = _readable(x), _readable(y)
    threads.run(_matrices, (x, y, out, before), stack[dim])
    return out


def _rows(x: ndarray, y: ndarray, out: ndarray, start: int, stop: int) -> None:
    np.matmul(x[start:stop], y, out=out[start:stop])


def _columns(x: ndarray, y: ndarray, out: ndarray, start: int, stop: int) -> None:
    np.matmul(x, y[:, start:stop], out=out[:, start:stop])


def _matrices(
    x: ndarray, y: ndarray, out: ndarray, dim: int, start: int, stop: int
) -> None:
    """Some matrices of a stack; dim is where they stand, counted from the last dim."""
    np.matmul(
        _some(x, dim, start, stop),
        _some(y, dim, start, stop),
        out=_some(out, dim, start, stop),
    )


def _some(a: ndarray, dim: int, start: int, stop: int) -> ndarray:
    """The elements of one dim, unless there is one for all."""
    if a.ndim < -dim or a.shape[dim] == 1:
        return a
    return a[(..., slice(start, stop), *[slice(None)] * (-dim - 1))]


def _readable(a: ndarray) -> ndarray:
    """An array whose matrices BLAS reads as they are; else a copy, once for all."""
    row, column = a.strides[-2:]
    size = a.itemsize
    fits = (column == size and row >= size * a.shape[-1]) or (
        row == size and column >= size * a.shape[-2]
    )
    if fits and row % size == column % size == 0:
        return a
    return a.copy("C")  # ascontiguousarray keeps the strides of a dim of size one


xp: Any = ModuleType("numpy")
"""NumPy with these products, for kernels that call the plain code of an op."""
xp.__dict__.update(vars(np), dot=dot, matmul=matmul)
