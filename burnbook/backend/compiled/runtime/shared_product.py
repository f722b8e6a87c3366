"""Products that several threads compute without Python's lock, on their board.

There are two: of matrices, by BLAS; and of one row or two with a weight that is laid
out in panels, which is read in one stretch.
"""

import numpy as np

from burnbook.backend.compiled.runtime.blas import sgemm
from burnbook.backend.compiled.runtime.board import carry_out, share_out, take_board
from burnbook.backend.compiled.runtime.jit import (
    LANES,
    cgutils,
    counting_part,
    intrinsic,
    ir,
    kernel_code,
    part,
    types,
)
from burnbook.backend.compiled.runtime.simd import load_at, repeat_at, store_at
from burnbook.backend.compiled.runtime.thread_pool import ThreadPool

WIDTH = 4 * LANES  # columns of a panel


@intrinsic
def copy_floats(typing, source, target, size):
    """Copy so many floats from one address to another."""

    def build(context, builder, signature, args):
        pointer = ir.FloatType().as_pointer()
        start, end = (builder.inttoptr(place, pointer) for place in args[:2])
        cgutils.raw_memcpy(builder, end, start, args[2], 4)
        return context.get_dummy_value()

    return types.void(source, target, size), build


@part
def begin_of(array):
    """The address of its first element."""
    return np.int64(array.ctypes.data)


@part
def add_panels(x, panels, line, out, rows, depth, length, count, size, index):
    """out = x · panels + line for so many of `count` panels; x to out are addresses.

    length: of a row of out, in floats.
    """
    for panel in range(index * size, min(index * size + size, count)):
        begin = 4 * panel * WIDTH
        for row in range(rows):
            a, b = load_at(line + begin), load_at(line + begin + 4 * LANES)
            c = load_at(line + begin + 8 * LANES)
            d = load_at(line + begin + 12 * LANES)
            given = x + 4 * row * depth
            at = panels + begin * depth
            for k in range(depth):
                u = repeat_at(given + 4 * k)
                a, b = a + u * load_at(at), b + u * load_at(at + 4 * LANES)
                c = c + u * load_at(at + 8 * LANES)
                d = d + u * load_at(at + 12 * LANES)
                at += 4 * WIDTH
            place = out + begin + 4 * row * length
            store_at(place, a)
            store_at(place + 4 * LANES, b)
            store_at(place + 8 * LANES, c)
            store_at(place + 12 * LANES, d)


@counting_part
def multiply_panels(b, x, panels, line, out, size):
    """out = x · panels + line, in parts of so many panels where the board is free.

    x [rows, depth], panels [count, depth, WIDTH], line [count · WIDTH], out as long.
    """
    count = panels.shape[0]
    places = (begin_of(x), begin_of(panels), begin_of(line), begin_of(out))
    sizes = (x.shape[0], x.shape[1], out.shape[1], count, size)
    share_out(b, add_panels, places + sizes, -(-count // size))


@part
def multiply_some(address, form, size, sizes, steps, places, line, index):
    """Some rows or columns of a product, by BLAS; see `multiply`.

    sizes: rows, columns, depth. steps: how far apart rows of x, y and out begin, which
    stand at `places`. line: where it is, or 0.
    """
    rows, columns, depth = sizes
    x_step, y_step, out_step = steps
    x, y, out = places
    first = index * size
    if form & 4:  # parts are rows
        rows = min(size, rows - first)
        x += 4 * first * (1 if form & 1 else x_step)
        out += 4 * first * out_step
    else:
        columns = min(size, columns - first)
        y += 4 * first * (y_step if form & 2 else 1)
        out += 4 * first
        line += 4 * first if line else 0
    if line:  # where BLAS would write zeros first
        for i in range(rows):
            copy_floats(line, out + 4 * i * out_step, columns)
    sgemm(address, form & 3, line != 0, (rows, columns, depth), steps, (x, y, out))


FACTOR = "Array(f4, 2, 'A', True)"  # True: it may be one that cannot be written to
ADDED = "Array(f4, 1, 'C', True)"


@kernel_code(f"b1(i8[::1], i8, {FACTOR}, {FACTOR}, {ADDED}, f4[:,::1], i8, i8, i8)")
def multiply(b, address, x, y, line, out, form, size, parts):
    """out = x · y + line, in parts of so many rows or columns; False if it is in use.

    line: added to each row of the product; an empty one is none. form: 1 where x is
    transposed in memory, 2 where y is, 4 where parts are rows.
    """
    if not take_board(b):
        return False
    sizes = (x.shape[0], y.shape[1], x.shape[1])
    x_step = x.strides[1 if form & 1 else 0] // 4
    y_step = y.strides[1 if form & 2 else 0] // 4
    steps = (x_step, y_step, out.strides[0] // 4)
    places = (begin_of(x), begin_of(y), begin_of(out))
    at = begin_of(line) if line.size else 0
    args = (address, form, size, sizes, steps, places, at)
    carry_out(b, multiply_some, args, parts)
    return True


ThreadPool.multiply = staticmethod(multiply)
