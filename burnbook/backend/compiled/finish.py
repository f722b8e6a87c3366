"""What a fused kernel does with its sums before it leaves them: activation, pooling.

The sums are in the first cache then; a pass of its own would fetch them again. Each
function is the one that the op's own kernel uses, so results are equal bit for bit.

Measured by captured inference, of tests/bench.
"""

from burnbook.backend.compiled.pool_planes import average_plane, largest_plane
from burnbook.backend.compiled.runtime.jit import kernel_code, part
from burnbook.backend.compiled.runtime.simd import LANES, load, rectify, store
from burnbook.backend.compiled.runtime.vector_math import (
    HALF,
    ONE,
    SQRT_HALF,
    erf_of,
    sigmoid_of,
)

# What `activate` and `finish_planes` call an activation, and a way to pool.
RELU = 1
ACTIVATIONS = {None: 0, "relu": RELU, "gelu": 2, "silu": 3, "sigmoid": 4}
POOLS = {None: 0, "average": 1, "largest": 2}


@part
def activate(x, start, stop, which):
    """Apply an activation of ACTIVATIONS but relu to some numbers, in place."""
    some = x[start:stop]
    if which == 2:
        for i in range(some.size):
            some[i] = HALF * some[i] * (ONE + erf_of(some[i] * SQRT_HALF))
    elif which == 3:
        for i in range(some.size):
            some[i] = some[i] * sigmoid_of(some[i])
    elif which == 4:
        for i in range(some.size):
            some[i] = sigmoid_of(some[i])


@kernel_code("void(f4[::1], i8, i8, i8)")
def activate_some(x, which, start, stop):
    """The same as a kernel."""
    activate(x, start, stop, which)


@part
def rectify_to(x, out, count):
    """out = relu(x) for so many numbers, a multiple of LANES."""
    for i in range(0, count, LANES):
        store(out, i, rectify(load(x, i)))


@part
def lines_at_once(lines, step, finish):
    """So many lines or a few less or more: whole steps, and whole windows of a pool."""
    if not finish[1]:
        return lines
    each = finish[2] if finish[2] % step == 0 else finish[2] * step
    return max(lines // each, 1) * each


@part
def finish_planes(sums, at, apart, lines, out, first, shape, finish):
    """Activate some lines of planes of sums, and pool them to where they go in out.

    For relu, the sums have been rectified when they were written. Planes begin `apart`;
    finish: activation, pool, and the rows and columns of its windows. lines: the first
    one, how many, and how many numbers each has; sums has room for them once more at
    the end where they are pooled. first: the first plane of out; shape: how many
    planes, and how many lines each has before pooling.
    """
    line, count, n = lines
    which, pool, rows, columns = finish
    for k in range(shape[0]):
        here = at + k * apart
        activate(sums, here, here + count * n, which)
        if pool:
            high, wide = shape[1] // rows, n // columns
            to = ((first + k) * high + line // rows) * wide
            room = sums[sums.size - count * n :]
            windows, many = (rows, columns), (count // rows, wide)
            if pool == 1:
                average_plane(sums, here, n, windows, many, room, out, to)
            else:
                largest_plane(sums, here, n, windows, many, room, out, to)
