"""Depthwise convolution: every channel meets a kernel of its own.

There is nothing to share between channels, so one plane of pixels is taken at a time.
It is laid out once with zeros around, the rows and columns that a stride tells apart in
phases of their own: so a tap reads an unbroken stretch of a phase, whatever the stride.
On the way back the taps of a phase spread the gradient over that phase, which is then
mixed with the others; and the gradient of a tap is how the stretch that it read meets
the gradient.

Measured by the family conv, of tests/bench.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from burnbook.backend.compiled.conv_microkernel import copy_blocks, whole_steps
from burnbook.backend.compiled.conv_plan import Numbers, Sizes
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import (
    f32,
    intrinsic,
    ir,
    kernel_code,
    part,
    types,
)
from burnbook.backend.compiled.runtime.simd import (
    LANES,
    broadcast,
    load,
    store,
    total,
    vectors,
)
from burnbook.backend.compiled.runtime.strided_loads import load_even
from burnbook.backend.compiled.runtime.thread_pool import threads

NEAR = 8  # channels that lie side by side, and are taken together
SHARES = 16  # parts of the work for gradients, at least, where there are samples
STRIP = 4 * LANES  # numbers that are added up at a time


class Layout(NamedTuple):
    """Where a plane stands once it is laid out in phases."""

    places: Numbers  # [taps]: where each begins to read
    order: Numbers  # [taps]: the taps, those of one phase after another
    back: Numbers  # [taps]: how far from a number of their phase they have spread it
    firsts: Numbers  # [phases + 1]: where the taps of each phase begin in `order`
    sizes: Numbers  # rows before, columns before, strides, numbers of a phase, of a row


@lru_cache(maxsize=64)
def layout_of(sizes: Sizes) -> Layout:
    """The layout for sizes as conv_plan.py has them."""
    sides: list[list[tuple[int, int]]] = []
    grown: list[int] = []
    for size, stops, kernel, stride, padding, dilation in sizes:
        sides.append([divmod(k * dilation, stride) for k in range(kernel)])
        reach = stops + max(place for place, _ in sides[-1])
        grown.append(max(-(-(size + 2 * padding) // stride), reach))
    (_, _, _, down, top, _), (_, _, _, right, left, _) = sizes
    width = grown[1]
    plane = grown[0] * width + 2 * LANES  # what is written behind it stays zero
    phases = np.array([p * right + q for _, p in sides[0] for _, q in sides[1]])
    inside = np.array([a * width + b for a, _ in sides[0] for b, _ in sides[1]])
    order = np.argsort(phases, kind="stable")
    firsts = np.searchsorted(phases[order], np.arange(down * right + 1))
    how = np.array([top, left, down, right, plane, width])
    back = -inside[order]
    return Layout(phases * plane + inside, order, back, firsts.astype(np.int64), how)


@intrinsic
def keep_first(typing, value, count):
    """Some of sixteen numbers from the first on, and zeros for the others."""

    def build(context, builder, signature, args):
        number = ir.IntType(64)
        kind = ir.VectorType(number, LANES)
        nothing = ir.Constant(kind, ir.Undefined)
        first = builder.insert_element(nothing, args[1], ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        counts = builder.shuffle_vector(first, nothing, zeros)
        places = ir.Constant(kind, list(range(LANES)))
        kept = builder.icmp_signed("<", places, counts)
        return builder.select(kept, args[0], ir.Constant(vectors.FLOATS, [0.0] * LANES))

    return vectors.sixteen(vectors.sixteen, types.int64), build


@intrinsic
def mixed(typing, a, b, half):
    """Numbers of a and b in turns: the first sixteen, or with half 1 the others."""

    def build(context, builder, signature, args):
        def turns(first: int) -> Any:
            places = [first + j // 2 + LANES * (j % 2) for j in range(LANES)]
            mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), places)
            return builder.shuffle_vector(args[0], args[1], mask)

        is_first = builder.icmp_signed("==", args[2], ir.Constant(ir.IntType(64), 0))
        return builder.select(is_first, turns(0), turns(LANES // 2))

    return vectors.sixteen(vectors.sixteen, vectors.sixteen, types.int64), build


@part
def lay_row(x, at, step, count, target, to):
    """target[to + i] = x[at + step i] for i < count, and zeros up to a whole vector."""
    q = 0
    if step == 1:
        while q < count and at + q + LANES <= x.size:
            store(target, to + q, keep_first(load(x, at + q), count - q))
            q += LANES
    elif step == 2:
        while q < count and at + 2 * q + 2 * LANES <= x.size:
            store(target, to + q, keep_first(load_even(x, at + 2 * q), count - q))
            q += LANES
    while q < count:
        target[to + q] = x[at + step * q]
        q += 1


@part
def lay_plane(x, at, height, width, planes, how):
    """Lay a plane of x out in phases; the zeros around stand there already."""
    top, left, down, right, plane, pitch = (
        how[0],
        how[1],
        how[2],
        how[3],
        how[4],
        how[5],
    )
    for f in range(right):
        first = (f - left) % right  # the first column of this phase
        count = (width - first + right - 1) // right
        row, phase = divmod(top, down)
        begin = f * plane + (first + left) // right
        for y in range(height):  # a division for every row would take the most time
            to = phase * right * plane + row * pitch + begin
            lay_row(x, at + y * width + first, right, count, planes, to)
            phase += 1
            if phase == down:
                row, phase = row + 1, 0


@part
def weighted_sum(x, at, places, w, first, last, start, t, to, n):
    """t[to + p] = start + Σₖ wₖ · x[at + placesₖ + p] for first <= k < last, p < n.

    n is a multiple of LANES.
    """
    p = 0
    while p + STRIP <= n:
        a = b = c = d = broadcast(start)
        for k in range(first, last):
            q, u = at + places[k] + p, broadcast(w[k])
            a, b = a + u * load(x, q), b + u * load(x, q + LANES)
            c, d = c + u * load(x, q + 2 * LANES), d + u * load(x, q + 3 * LANES)
        store(t, to + p, a)
        store(t, to + p + LANES, b)
        store(t, to + p + 2 * LANES, c)
        store(t, to + p + 3 * LANES, d)
        p += STRIP
    while p < n:
        a = broadcast(start)
        for k in range(first, last):
            a = a + broadcast(w[k]) * load(x, at + places[k] + p)
        store(t, to + p, a)
        p += LANES


@part
def close_up(t, at, pitch, rows, width, dense):
    """Rows of t, a pitch apart, without what stands between them."""
    for r in range(rows):
        for q in range(0, width, LANES):
            store(dense, r * width + q, load(t, at + r * pitch + q))


@part
def mix_phases(t, height, width, dense, how):
    """Rows and columns of all phases in turns, without the zeros around."""
    top, left, down, right, plane, pitch = (
        how[0],
        how[1],
        how[2],
        how[3],
        how[4],
        how[5],
    )
    row, phase = divmod(top, down)
    ends = left % 2 * plane + left // 2, (left + 1) % 2 * plane + (left + 1) // 2
    for y in range(height):
        at = phase * right * plane + row * pitch
        if right == 1:
            for q in range(0, width, LANES):
                store(dense, y * width + q, load(t, at + left + q))
        elif right == 2:
            first, second = at + ends[0], at + ends[1]
            for q in range(0, (width + 1) // 2, LANES):
                a, b = load(t, first + q), load(t, second + q)
                store(dense, y * width + 2 * q, mixed(a, b, 0))
                store(dense, y * width + 2 * q + LANES, mixed(a, b, 1))
        else:
            for q in range(width):
                place, f = divmod(q + left, right)
                dense[y * width + q] = t[at + f * plane + place]
        phase += 1
        if phase == down:
            row, phase = row + 1, 0


@part
def meet(g, at, n, x, places, sums, to):
    """Add to a vector for each tap how what it read meets the gradient."""
    k = 0
    while k + 3 <= places.size:
        q0, q1, q2 = places[k], places[k + 1], places[k + 2]
        s = to + k * LANES
        a, b, c = load(sums, s), load(sums, s + LANES), load(sums, s + 2 * LANES)
        for p in range(0, n, LANES):
            u = load(g, at + p)
            a, b = a + u * load(x, q0 + p), b + u * load(x, q1 + p)
            c = c + u * load(x, q2 + p)
        store(sums, s, a)
        store(sums, s + LANES, b)
        store(sums, s + 2 * LANES, c)
        k += 3
    while k < places.size:
        a = load(sums, to + k * LANES)
        for p in range(0, n, LANES):
            a = a + load(g, at + p) * load(x, places[k] + p)
        store(sums, to + k * LANES, a)
        k += 1


@part
def add_all(g, at, n, sums, to):
    """Add the gradient to a vector."""
    a = load(sums, to)
    for p in range(0, n, LANES):
        a = a + load(g, at + p)
    store(sums, to, a)


@part
def give_back(g, at, back, firsts, w, t, how):
    """What the gradient gives to every phase of a plane."""
    plane = how[4]
    n = whole_steps(plane - 2 * LANES)
    for f in range(firsts.size - 1):
        weighted_sum(g, at, back, w, firsts[f], firsts[f + 1], f32(0), t, f * plane, n)


@part
def write_sums(sums, dw, db):
    """The sums of vectors: for each channel those of its taps, and one more."""
    channels, taps = dw.shape
    for c in range(channels):
        to = c * (taps + 1) * LANES
        for k in range(taps):
            dw[c, k] = total(load(sums, to + k * LANES))
        db[c] = total(load(sums, to + taps * LANES))


@kernel_code(
    "void(f4[:,:,:,::1], f4[:,::1], f4[::1], f4[:,:,:,::1], i8[::1], i8[::1], i8, i8)"
)
def correlate_planes(x, weight, bias, out, places, how, start, stop):
    """conv2d for some planes; one plane is a channel of a sample."""
    channels, height, width = x.shape[1:]
    h, w = out.shape[2:]
    pitch = how[5]
    reach = whole_steps((h - 1) * pitch + w)
    planes = np.zeros(how[2] * how[3] * how[4], f32)
    t = np.empty(reach + LANES, f32)
    dense = np.empty(h * w + LANES, f32)
    from_x, to_out = x.reshape(x.size), out.reshape(out.size)
    for i in range(start, stop):
        c = i % channels
        lay_plane(from_x, i * height * width, height, width, planes, how)
        weighted_sum(planes, 0, places, weight[c], 0, places.size, bias[c], t, 0, reach)
        close_up(t, 0, pitch, h, w, dense)
        copy_blocks(to_out, i * h * w, (0, 0), dense, 0, (0, 0), (1, 1, h * w))


@kernel_code(
    "void(f4[:,:,:,::1], f4[:,:,:,::1], f4[:,::1], f4[:,:,:,::1], f4[:,:,::1], "
    "f4[:,::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8, i8)"
)
def plane_gradients(
    x, g, turned, dx, dw, db, places, order, back, firsts, how, needs, start, stop
):
    """The gradients of conv2d for some shares of the samples and blocks of channels.

    turned: the weights in that order. needs: whether dx, and dw with db, are wanted.
    """
    samples, channels, height, width = x.shape
    h, w = g.shape[2:]
    plane, pitch = how[4], how[5]
    phases, taps = how[2] * how[3], places.size
    reach = whole_steps((h - 1) * pitch + w)
    before = -back.min()
    planes = np.zeros(phases * plane, f32)
    t = np.zeros(phases * plane + LANES, f32)
    wide = np.zeros(before + plane + reach + 2 * LANES, f32)
    dense = np.empty(height * width + 2 * LANES, f32)
    sums = np.empty((taps + 1) * NEAR * LANES, f32)
    from_x, from_g, to_dx = x.reshape(x.size), g.reshape(g.size), dx.reshape(dx.size)
    shares = dw.shape[0]
    for unit in range(start, stop):
        block, share = divmod(unit, shares)
        many = min(NEAR, channels - block * NEAR)
        sums[:] = f32(0)
        for i in range(share * samples // shares, (share + 1) * samples // shares):
            for near in range(many):
                c = block * NEAR + near
                at = i * channels + c
                for r in range(h):
                    place = (at * h + r) * w
                    lay_row(from_g, place, 1, w, wide, before + r * pitch)
                if needs[1]:
                    lay_plane(from_x, at * height * width, height, width, planes, how)
                    to = near * (taps + 1) * LANES
                    meet(wide, before, reach, planes, places, sums, to)
                    add_all(wide, before, reach, sums, to + taps * LANES)
                if needs[0]:
                    give_back(wide, before, back, firsts, turned[c], t, how)
                    mix_phases(t, height, width, dense, how)
                    size = height * width
                    shape = (1, 1, size)
                    copy_blocks(to_dx, at * size, (0, 0), dense, 0, (0, 0), shape)
        if needs[1]:
            first = block * NEAR
            write_sums(sums, dw[share, first : first + many], db[share, first:])


def is_depthwise(x: Any, weight: Any, groups: int) -> bool:
    """Whether every channel has one kernel, of several taps, and one channel out."""
    o, c, *taps = weight.shape
    several = taps[0] * taps[1] > 1
    return c == 1 and groups > 1 and o == groups == x.shape[1] and several


def depthwise_conv2d(x: Any, weight: Any, bias: Any, sizes: Sizes, out: Any) -> None:
    """conv2d with a kernel for each channel; sizes as conv_plan.py has them."""
    channels = x.shape[1]
    layout = layout_of(sizes)
    offsets = np.zeros(channels, f32) if bias is None else bias
    rows = weight.reshape(channels, -1)
    args = (x, rows, offsets, out, layout.places, layout.sizes)
    threads.run(correlate_planes, args, x.shape[0] * channels)


def depthwise_gradients(
    g: Any, x: Any, weight: Any, sizes: Sizes, needs: tuple[bool, ...]
) -> tuple[Any, Any, Any]:
    """The gradients of such a conv2d for x, weight and bias."""
    (samples, channels), rows = x.shape[:2], weight.reshape(weight.shape[0], -1)
    layout = layout_of(sizes)
    blocks = -(-channels // NEAR)
    shares = max(1, min(samples, -(-SHARES // blocks)))
    dx = empty(x.shape if needs[0] else (0, 0, 0, 0))
    dw = np.empty((shares, *rows.shape), f32)
    db = np.empty((shares, channels), f32)
    wanted = np.array([needs[0], needs[1] or needs[2]], np.int64)
    turned = np.ascontiguousarray(rows[:, layout.order])
    args = (x, g, turned, dx, dw, db, *layout, wanted)
    threads.run(plane_gradients, args, blocks * shares)
    return (dx, dw.sum(axis=0).reshape(weight.shape), db.sum(axis=0))
