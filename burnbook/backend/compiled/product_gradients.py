"""The gradients of products: all elements but one, multiplied.

Nothing is divided, so zeros are no exception: what stands before an element, times what
comes after it.

Measured by the family scan (prod), of tests/bench.
"""

import numpy as np

from burnbook.backend.compiled.reduce import PRODUCT, ROW, row_totals
from burnbook.backend.compiled.runtime.axis_views import as_lines, blocks
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import exact_code, exact_part, f32
from burnbook.backend.compiled.runtime.registry import F32, kernel
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.compiled.shape import whole
from burnbook.ops.scan import prod, prod_dim

WIDTH = 256  # neighbouring lines of a block
HEAVY = 1 << 15  # elements of a part where each takes long
LINES = "f4[:,:,::1], "


@exact_part
def others_row(g, x, out):
    product = f32(1)
    for k in range(x.shape[0]):
        out[k, 0] = product
        product *= x[k, 0]
    product = f32(1)
    for k in range(x.shape[0] - 1, -1, -1):
        out[k, 0] = g * (out[k, 0] * product)
        product *= x[k, 0]


@exact_code(f"void(f4[:,::1], {LINES * 2}i8, i8, i8)")
def others_range(g, x, out, width, start, stop):
    """outᵢ = g · the product of all elements of the line but xᵢ."""
    n, inner = x.shape[1], x.shape[2]
    if inner == 1:
        for p in range(start, stop):
            others_row(g[p, 0], x[p], out[p])
        return
    across = (inner + width - 1) // width
    product = np.empty(width, f32)
    for p in range(start, stop):
        o, low = p // across, p % across * width
        high = min(low + width, inner)
        slope = g[o, low:high]
        product[:] = f32(1)
        for k in range(n):
            line, now = x[o, k, low:high], out[o, k, low:high]
            for j in range(line.size):
                now[j] = product[j]
                product[j] *= line[j]
        product[:] = f32(1)
        for k in range(n - 1, -1, -1):
            line, now = x[o, k, low:high], out[o, k, low:high]
            for j in range(line.size):
                now[j] = slope[j] * (now[j] * product[j])
                product[j] *= line[j]


@kernel(prod_dim.backward)
def prod_dim_back(g, x, *, dim, needs):
    x, g = whole(x), whole(g)
    if x is None or g is None or x.size == 0:
        return None
    out = empty(x.shape)
    lines = as_lines(x, dim)
    width, count, grain = blocks(lines, WIDTH, HEAVY)
    slopes = g.reshape(lines.shape[0], lines.shape[2])
    threads.run(others_range, (slopes, lines, as_lines(out, dim), width), count, grain)
    return (out,)


@kernel(prod.backward)
def prod_back(g, x, *, needs):
    """Rows first: the slope of each row is g times the product of all other rows."""
    x = whole(x)
    if x is None or g.dtype is not F32 or x.size == 0:
        return None
    products = row_totals(x, PRODUCT)
    if not np.isfinite(products).all():
        return None
    slopes = np.empty((len(products), 1), f32)
    line = (1, len(products), 1)
    others_range(g.reshape(1, 1), products.reshape(line), slopes.reshape(line), 1, 0, 1)
    out = empty(x.shape)
    flat, result = x.reshape(-1), out.reshape(-1)
    rows, rest = divmod(x.size, ROW)
    size = rows * ROW
    if rows:
        views = (flat[:size].reshape(rows, ROW, 1), result[:size].reshape(rows, ROW, 1))
        threads.run(others_range, (slopes[:rows], *views, 1), rows, HEAVY // ROW)
    if rest:
        views = (flat[size:].reshape(1, rest, 1), result[size:].reshape(1, rest, 1))
        others_range(slopes[rows:], *views, 1, 0, 1)
    return (out,)
