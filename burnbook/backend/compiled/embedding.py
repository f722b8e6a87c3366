"""The gradient of an embedding: rows are added at their indices.

Measured by the family embedding, of tests/bench.
"""

import numpy as np

from burnbook.backend.compiled.runtime.jit import f32, kernel_code
from burnbook.backend.compiled.runtime.registry import kernel, plain_f32
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.ops.embedding import embedding_weight
from burnbook.ops.index import MANY, too_often

GRAIN = 64  # columns: each thread takes some of every row


@kernel_code("void(f4[:,::1], i8[::1], f4[:,::1], i8, i8)")
def add_rows(g, places, out, start, stop):
    """out[places[i]] += g[i], for some columns."""
    for i in range(places.size):
        row, more = out[places[i], start:stop], g[i, start:stop]
        for c in range(row.size):
            row[c] += more[c]


@kernel(embedding_weight)
def embedding_kernel(dout, indices, *, weight_shape):
    rows, size = weight_shape
    served = plain_f32(dout) and indices.dtype == np.int64 and indices.flags.carray
    if not served or not indices.size or not size:
        return None
    places = indices.reshape(-1)
    if places.min() < 0 or places.max() >= rows:
        return None  # the plain code says what is wrong
    if len(places) > MANY and too_often(np, places, rows):
        return None  # and adds pairwise
    out = np.zeros(weight_shape, f32)
    threads.run(add_rows, (dout.reshape(-1, size), places, out), size, GRAIN)
    return out
