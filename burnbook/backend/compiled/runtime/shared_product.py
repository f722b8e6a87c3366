"""Products that several threads compute without Python's lock.

There are two: of matrices, by BLAS; and of one row or two with a weight that is laid
out in panels, which is read in one stretch. The parts of a product stand on a board of
whole numbers. Whoever calls puts its job there and takes parts; so do threads of the
pool that have just been at work and still look at the board (`serve`), within a
microsecond. Nobody is waited for who has not taken a part. After some 300 µs without
work a thread goes back to sleep in the pool's queue, from where the next product calls
it.

How a part is taken: the ticket on the board says the number of the job, how many parts
it has, and which is next. A thread reads it, reads what the job is, and moves the
ticket on, if it is still the same. A job is written only when all parts of the one
before are done, so what was read belongs to the ticket.
"""

from typing import Any

from burnbook.backend.compiled.runtime.blas import sgemm
from burnbook.backend.compiled.runtime.jit import (
    LANES,
    cgutils,
    intrinsic,
    ir,
    kernel_code,
    part,
    types,
)
from burnbook.backend.compiled.runtime.simd import load_at, repeat_at, store_at
from burnbook.backend.compiled.runtime.spin_wait import pause
from burnbook.backend.compiled.runtime.thread_pool import (
    AWAKE,
    CALLED,
    DONE,
    JOB,
    LOCK,
    TICKET,
    ThreadPool,
)

ADDRESS, A, B, C, ROWS, COLUMNS, DEPTH, A_STEP, B_STEP, C_STEP, FORM, SIZE, LINE = (
    range(JOB, JOB + 13)
)
BITS = 16  # of a ticket for the next part, and as many above them for their count
PART = (1 << BITS) - 1
PANELS = 8  # the form of a product with panels
WIDTH = 4 * LANES  # columns of a panel


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(array.data, [args[1]])


@intrinsic
def look(typing, numbers, i):
    """A number of the board as it is now."""

    def build(context, builder, signature, args):
        return builder.load_atomic(
            _place(context, builder, signature, args), "acquire", 8
        )

    return types.int64(numbers, types.int64), build


@intrinsic
def put(typing, numbers, i, value):
    """Write a number for all to see, after everything written before."""

    def build(context, builder, signature, args):
        place = _place(context, builder, signature, args)
        builder.store_atomic(args[2], place, "release", 8)
        return context.get_dummy_value()

    return types.void(numbers, types.int64, types.int64), build


@intrinsic
def add(typing, numbers, i, value):
    """Add to a number in one step."""

    def build(context, builder, signature, args):
        place = _place(context, builder, signature, args)
        return builder.atomic_rmw("add", place, args[2], "seq_cst")

    return types.int64(numbers, types.int64, types.int64), build


@intrinsic
def swap(typing, numbers, i, old, new):
    """Replace a number if it is still the old one, in one step; whether it was."""

    def build(context, builder, signature, args):
        place = _place(context, builder, signature, args)
        found = builder.cmpxchg(place, args[2], args[3], "seq_cst", "seq_cst")
        return builder.extract_value(found, 1)

    number = types.int64
    return types.boolean(numbers, number, number, number), build


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
def add_panels(x, panels, line, out, rows, depth, length, first, last):
    """out = x · panels + line for some panels; x to out are addresses of floats.

    length: of a row of out, in floats.
    """
    for panel in range(first, last):
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


@part
def take_part(b):
    """Take a part of the job on the board and compute it; False where none is left."""
    ticket = look(b, TICKET)
    index = ticket & PART
    if index >= (ticket >> BITS) & PART:
        return False
    address, a, x, c = b[ADDRESS], b[A], b[B], b[C]
    rows, columns, depth, size = b[ROWS], b[COLUMNS], b[DEPTH], b[SIZE]
    a_step, b_step, c_step, form = b[A_STEP], b[B_STEP], b[C_STEP], b[FORM]
    line = b[LINE]
    if not swap(b, TICKET, ticket, ticket + 1):
        return True  # somebody else was first; look again
    first = index * size
    if form & PANELS:
        last = min(first + size, columns)
        add_panels(a, x, line, c, rows, depth, c_step, first, last)
        add(b, DONE, 1)
        return True
    if form & 4:  # parts are rows
        rows = min(size, rows - first)
        a += 4 * first * (1 if form & 1 else a_step)
        c += 4 * first * c_step
    else:
        columns = min(size, columns - first)
        x += 4 * first * (b_step if form & 2 else 1)
        c += 4 * first
        line += 4 * first if line else 0
    if line:  # where BLAS would write zeros first
        for i in range(rows):
            copy_floats(line, c + 4 * i * c_step, columns)
    steps = (a_step, b_step, c_step)
    sgemm(address, form & 3, line != 0, (rows, columns, depth), steps, (a, x, c))
    add(b, DONE, 1)
    return True


@part
def carry_out(b, parts):
    """Have a job done that was written to the board, and free the board."""
    put(b, DONE, 0)
    number = (look(b, TICKET) >> (2 * BITS)) + 1
    put(b, TICKET, (number << (2 * BITS)) | (parts << BITS))
    while take_part(b):
        pass
    while look(b, DONE) < parts:
        pause()
    put(b, LOCK, 0)


@part
def multiply_panels(b, x, panels, line, out, size):
    """out = x · panels + line, in parts of so many panels where the board is free.

    x [rows, depth], panels [count, depth, WIDTH], line [count · WIDTH], out as long.
    """
    count = panels.shape[0]
    parts = -(-count // size)
    if parts == 1 or not swap(b, LOCK, 0, 1):
        add_panels(
            *(x.ctypes.data, panels.ctypes.data, line.ctypes.data, out.ctypes.data),
            *(x.shape[0], x.shape[1], out.shape[1], 0, count),
        )
        return
    b[A], b[B], b[C] = x.ctypes.data, panels.ctypes.data, out.ctypes.data
    b[ROWS], b[COLUMNS], b[DEPTH] = x.shape[0], count, x.shape[1]
    b[C_STEP], b[FORM], b[SIZE], b[LINE] = out.shape[1], PANELS, size, line.ctypes.data
    carry_out(b, parts)


@kernel_code("void(i8[::1], i8)")
def serve(b, most):
    """Take parts as they come, until there was none for so many looks, or on a call."""
    add(b, AWAKE, 1)
    looks = 0
    while looks < most and not look(b, CALLED):
        looks = 0 if take_part(b) else looks + 1
        pause()
    add(b, AWAKE, -1)


FACTOR = "Array(f4, 2, 'A', True)"  # True: it may be one that cannot be written to
ADDED = "Array(f4, 1, 'C', True)"


@kernel_code(f"b1(i8[::1], i8, {FACTOR}, {FACTOR}, {ADDED}, f4[:,::1], i8, i8, i8)")
def multiply(b, address, x, y, line, out, form, size, parts):
    """out = x · y + line, in parts of so many rows or columns; False if it is in use.

    line: added to each row of the product; an empty one is none. form: 1 where x is
    transposed in memory, 2 where y is, 4 where parts are rows.
    """
    if not swap(b, LOCK, 0, 1):
        return False
    b[ADDRESS], b[A], b[B], b[C] = (
        address,
        x.ctypes.data,
        y.ctypes.data,
        out.ctypes.data,
    )
    b[ROWS], b[COLUMNS], b[DEPTH] = x.shape[0], y.shape[1], x.shape[1]
    b[A_STEP] = x.strides[1 if form & 1 else 0] // 4
    b[B_STEP] = y.strides[1 if form & 2 else 0] // 4
    b[C_STEP], b[FORM], b[SIZE] = out.strides[0] // 4, form, size
    b[LINE] = line.ctypes.data if line.size else 0
    carry_out(b, parts)
    return True


ThreadPool.serve = staticmethod(serve)
ThreadPool.multiply = staticmethod(multiply)
