"""A CuPy kernel for the gradient of embeddings.

Adding with atomics would be quick, but in another order each time. So the lookups are
sorted by row (stably: equal rows keep their order), and a block of threads adds up what
one row got, columns side by side; every number of the result is written once.
"""

import numpy as np

from burnbook.backend.cuda.source import C_TYPES, blocks, kernel, program, served
from burnbook.ops.embedding import embedding_weight

COLUMNS = 128  # threads of a block
INDEX_KINDS = "iu"

CODE = r"""
extern "C" __global__ void add_rows(
    const REAL* dout, const long long* places, const long long* starts,
    long long size, REAL* out
) {
    long long row = blockIdx.x, j = (long long)blockIdx.y * blockDim.x + threadIdx.x;
    if (j >= size) return;
    REAL sum = 0;
    for (long long k = starts[row]; k < starts[row + 1]; ++k)
        sum += dout[places[k] * size + j];
    out[row * size + j] = sum;
}
"""


@kernel(embedding_weight)
def add_rows(xp, dout, indices, *, weight_shape):
    """embedding_weight: sort the lookups by row, then add up row by row.

    Shapes: dout [..., d], indices [...] -> [n, d]
    Why: the numbers were looked at when the rows were looked up, so not again; one
    that is out of range would add to no row.
    """
    rows, size = weight_shape
    if not served(dout) or indices.dtype.kind not in INDEX_KINDS or not dout.size:
        return None
    if -(-size // COLUMNS) > 65535:  # of a grid's second dim
        return None
    picked = indices.reshape(-1).astype(np.int64, copy=False)
    places = xp.argsort(picked, kind="stable").astype(np.int64, copy=False)
    edges = xp.arange(rows + 1, dtype=np.int64)
    starts = xp.searchsorted(picked[places], edges).astype(np.int64, copy=False)
    out = xp.empty((rows, size), dtype=dout.dtype)
    run = program(xp, CODE, "add_rows", REAL=C_TYPES[dout.dtype.char])
    given = (xp.ascontiguousarray(dout), places, starts, np.int64(size), out)
    run((rows, *blocks(size, COLUMNS)), (COLUMNS,), given)
    return out
