"""Matrix products, tile by tile, with sums held in registers.

A tile is eight rows and 32 columns of the result, or four rows at its end. Its sums
stay in vector registers and leave them only when they are complete; a compiler that is
given three plain loops does not see that, so the tile is written in the compiler's own
terms. The right factor is laid out in panels of 32 columns before: then every load is
the next one in memory.
"""

from functools import partial
from typing import Any

from burnbook.backend.compiled.runtime.jit import (
    HELD,
    LANES,
    cgutils,
    f32,
    intrinsic,
    ir,
    part,
    types,
)
from burnbook.backend.compiled.runtime.simd import transpose

ROWS = 4  # of which a matrix has a multiple; a tile has twice as many where it can
WIDTH = 32  # columns of a tile


@intrinsic
def make_tile(typing, a, a_row, a_col, panel, depth, c, c_row, more):
    """c = a · panel, or with more c += a · panel, for ROWS rows and WIDTH columns.

    Element i, j of c stands at c_row · i + j; element i, k of a at a_row · i +
    a_col · k, k below depth. Nothing is checked.
    """
    size = types.intp
    signature = types.void(a, size, size, panel, size, c, size, types.boolean)
    return signature, partial(_build_tile, ROWS)


@intrinsic
def make_high_tile(typing, a, a_row, a_col, panel, depth, c, c_row, more):
    """The same for twice as many rows."""
    size = types.intp
    signature = types.void(a, size, size, panel, size, c, size, types.boolean)
    return signature, partial(_build_tile, 2 * ROWS)


def _build_tile(
    rows: int, context: Any, builder: Any, signature: Any, args: Any
) -> Any:
    """The same as a program for LLVM: all sums, or at a time what registers hold."""
    if 2 * rows * WIDTH // LANES <= HELD:
        blocks = [(range(rows), range(0, WIDTH, LANES))]
    else:
        starts = [(i, j) for i in range(0, rows, ROWS) for j in range(0, WIDTH, LANES)]
        blocks = [(range(i, i + ROWS), range(j, j + 1)) for i, j in starts]
    for numbers, columns in blocks:
        _build_block(numbers, columns, context, builder, signature, args)
    return context.get_dummy_value()


def _build_block(
    numbers: range,
    columns: range,
    context: Any,
    builder: Any,
    signature: Any,
    args: Any,
) -> None:
    """The sums of some rows, and of LANES columns from each of `columns` on."""
    a, panel, c = (
        context.make_array(signature.args[i])(context, builder, args[i]).data
        for i in (0, 3, 5)
    )
    a_row, a_col, depth, c_row, more = (args[i] for i in (1, 2, 4, 6, 7))
    number = ir.IntType(64)
    vector = ir.VectorType(ir.FloatType(), LANES)
    first = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    nothing = ir.Constant(vector, ir.Undefined)

    def shifted(place: Any, step: Any, times: Any) -> Any:
        return builder.gep(place, [builder.mul(step, times)])

    def registers(line: Any) -> list[Any]:
        places = [builder.gep(line, [number(j)]) for j in columns]
        return [builder.bitcast(place, vector.as_pointer()) for place in places]

    lines = [shifted(c, c_row, number(i)) for i in numbers]
    results = [place for line in lines for place in registers(line)]
    sums = [cgutils.alloca_once(builder, vector) for _ in results]
    for total in sums:
        builder.store(ir.Constant(vector, None), total)
    with builder.if_then(more):
        for total, place in zip(sums, results, strict=True):
            builder.store(builder.load(place, align=4), total)
    lines = [shifted(a, a_row, number(i)) for i in numbers]
    with cgutils.for_range(builder, depth) as loop:
        line = shifted(panel, number(WIDTH), loop.index)
        right = [builder.load(place, align=4) for place in registers(line)]
        for i, start in enumerate(lines):
            left = builder.load(shifted(start, a_col, loop.index))
            left = builder.insert_element(nothing, left, ir.IntType(32)(0))
            left = builder.shuffle_vector(left, nothing, first)
            for j, other in enumerate(right):
                total = sums[i * len(right) + j]
                product = builder.fmul(left, other, flags=["contract"])
                added = builder.fadd(builder.load(total), product, flags=["contract"])
                builder.store(added, total)
    for total, place in zip(sums, results, strict=True):
        builder.store(builder.load(total), place, align=4)


@part
def whole(n, step):
    """n, rounded up to whole steps."""
    return (n + step - 1) // step * step


@part
def lay_panels(b, h, panels):
    """Lay b[:, h] out in panels, with zeros beyond its last column."""
    depth, cols = b.shape[0], b.shape[2]
    for k in range(depth):
        row = b[k, h]
        for j in range(0, cols, WIDTH):
            at = j * depth + k * WIDTH
            line, source = panels[at : at + WIDTH], row[j : j + WIDTH]
            for q in range(source.size):
                line[q] = source[q]
            for q in range(source.size, WIDTH):
                line[q] = f32(0)


@part
def lay_transposed(b, h, panels):
    """The same for b[:, h] turned: its rows become the columns of the panels."""
    cols, among, depth = b.shape
    flat, stride = b.reshape(b.size), among * depth
    for j in range(0, cols, WIDTH):
        panel = panels[j * depth : (j + WIDTH) * depth]
        for q in range(0, WIDTH, LANES):
            found, done = min(max(cols - j - q, 0), LANES), 0
            at = (j + q) * stride + h * depth
            if found == LANES:
                done = depth // LANES * LANES
            for k in range(0, done, LANES):
                transpose(flat, at + k, stride, panel, k * WIDTH + q, WIDTH)
            for k in range(done, depth):
                for i in range(found):
                    panel[k * WIDTH + q + i] = flat[at + i * stride + k]
                for i in range(found, LANES):
                    panel[k * WIDTH + q + i] = f32(0)


@part
def multiply(a, transposed, panels, laid, depth, c, cols, more):
    """c = a · b, or with more c += a · b, for all rows of c and some of its columns.

    a may be turned. b is laid out in panels of `laid` rows, of which `depth` count. c
    has whole tiles, and a as many rows as c.
    """
    rows, stride = c.shape
    width = a.shape[a.ndim - 1]
    a_row, a_col = (1, width) if transposed else (width, 1)
    left, out = a.reshape(-1), c.reshape(-1)
    for j in range(0, cols, WIDTH):
        panel = panels[j * laid :]
        i = 0
        while i < rows:
            line, here = left[i * a_row :], out[i * stride + j :]
            if i + 2 * ROWS <= rows:
                make_high_tile(line, a_row, a_col, panel, depth, here, stride, more)
                i += 2 * ROWS
            else:
                make_tile(line, a_row, a_col, panel, depth, here, stride, more)
                i += ROWS
