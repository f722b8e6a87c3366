"""Convolution with many channels, as products of blocks held in registers.

Images are laid out in blocks of 16 channels, all 16 of a pixel side by side, with zeros
around. Eight pixels meet 16 or 32 output channels at a time: their sums stay in vector
registers while channels and taps run by, and nothing is copied once for each tap.
Which pixels, and which taps reach them, stands in lists (conv_plan.py), so that
strides, and the way back from a result to its input, are the same loop.

Measured by W6 and the single convolutions of tests/bench.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from burnbook.backend.compiled.conv_plan import (
    PIXELS,
    Plan,
    Sizes,
    backward_side,
    forward_side,
    numbers_of,
    plan_of,
)
from burnbook.backend.compiled.finish import RELU, activate, rectify_to
from burnbook.backend.compiled.runtime.board import share_out
from burnbook.backend.compiled.runtime.buffers import LINE, empty
from burnbook.backend.compiled.runtime.jit import (
    HELD,
    counting_part,
    f32,
    kernel_code,
    part,
)
from burnbook.backend.compiled.runtime.simd import (
    LANES,
    load,
    repeat,
    store,
    transpose,
)
from burnbook.backend.compiled.runtime.thread_pool import cores, threads

WIDE = 2 * LANES  # how many output channels share the pixels
ENOUGH_PIXELS = 256  # to lay out before their sums are taken
NEAR = 1 << 20  # numbers to lay out for the gradient of the weights
STRETCH = 128  # pixels to take at a time for the gradient of the weights
UNIT = LANES // 2 * WIDE  # sums of eight input and 32 output channels
FEW = 4  # pixels, or input channels, of 16 output channels that any registers hold
HOLDS_FEW = HELD < 2 * PIXELS  # whether those of this processor hold no more
WORTH = 1 << 23  # products that are worth waking another thread for
STEPS = 12  # of LANES channels each, whose weights the first cache holds


@part
def scatter_columns(source, at, stride, rows, columns, target, to, places, spare):
    """target[to + places[j] + i] = source[at + stride i + j], for i < rows <= LANES.

    spare: room for LANES vectors.
    """
    whole = columns // LANES * LANES if rows == LANES else 0
    for j in range(0, whole, LANES):
        transpose(source, at + j, stride, spare, 0, LANES)
        for k in range(LANES):
            store(target, to + places[j + k], load(spare, k * LANES))
    for j in range(whole, columns):
        for i in range(rows):
            target[to + places[j] + i] = source[at + stride * i + j]


@part
def turn_rows(source, at, width, rows, columns, target, to, stride):
    """target[to + stride i + j] = source[at + width j + i], for i < rows <= LANES."""
    whole = columns // LANES * LANES if rows == LANES else 0
    for j in range(0, whole, LANES):
        transpose(source, at + j * width, width, target, to + j, stride)
    for j in range(whole, columns):
        for i in range(rows):
            target[to + stride * i + j] = source[at + width * j + i]


@part
def add_wide(x, places, targets, pixels, steps, some, room):
    """Add to pixels of 32 channels what some steps give, eight at a time."""
    (first, last, depth), (w, begin, t) = some, room
    for p in range(pixels[0], pixels[1], PIXELS):
        q0, q1, q2, q3 = places[p], places[p + 1], places[p + 2], places[p + 3]
        q4, q5, q6, q7 = places[p + 4], places[p + 5], places[p + 6], places[p + 7]
        t0, t1 = targets[p] * WIDE, targets[p + 1] * WIDE
        t2, t3 = targets[p + 2] * WIDE, targets[p + 3] * WIDE
        t4, t5 = targets[p + 4] * WIDE, targets[p + 5] * WIDE
        t6, t7 = targets[p + 6] * WIDE, targets[p + 7] * WIDE
        a0, b0 = load(t, t0), load(t, t0 + LANES)
        a1, b1 = load(t, t1), load(t, t1 + LANES)
        a2, b2 = load(t, t2), load(t, t2 + LANES)
        a3, b3 = load(t, t3), load(t, t3 + LANES)
        a4, b4 = load(t, t4), load(t, t4 + LANES)
        a5, b5 = load(t, t5), load(t, t5 + LANES)
        a6, b6 = load(t, t6), load(t, t6 + LANES)
        a7, b7 = load(t, t7), load(t, t7 + LANES)
        for s in range(first, last):
            o, at = steps[s, 0], begin + steps[s, 1] * WIDE
            for c in range(depth):
                u, z = load(w, at + c * WIDE), load(w, at + c * WIDE + LANES)
                k = o + c
                y, v = repeat(x, q0 + k), repeat(x, q1 + k)
                a0, b0 = a0 + y * u, b0 + y * z
                a1, b1 = a1 + v * u, b1 + v * z
                y, v = repeat(x, q2 + k), repeat(x, q3 + k)
                a2, b2 = a2 + y * u, b2 + y * z
                a3, b3 = a3 + v * u, b3 + v * z
                y, v = repeat(x, q4 + k), repeat(x, q5 + k)
                a4, b4 = a4 + y * u, b4 + y * z
                a5, b5 = a5 + v * u, b5 + v * z
                y, v = repeat(x, q6 + k), repeat(x, q7 + k)
                a6, b6 = a6 + y * u, b6 + y * z
                a7, b7 = a7 + v * u, b7 + v * z
        store_pair(t, t0, a0, b0)
        store_pair(t, t1, a1, b1)
        store_pair(t, t2, a2, b2)
        store_pair(t, t3, a3, b3)
        store_pair(t, t4, a4, b4)
        store_pair(t, t5, a5, b5)
        store_pair(t, t6, a6, b6)
        store_pair(t, t7, a7, b7)


@part
def store_pair(t, at, a, b):
    """Write two vectors side by side."""
    store(t, at, a)
    store(t, at + LANES, b)


@part
def add_narrow(x, places, targets, pixels, steps, some, room):
    """Add to pixels of 16 channels what some steps give, eight at a time."""
    (first, last, depth), (w, begin, t) = some, room
    for p in range(pixels[0], pixels[1], PIXELS):
        q0, q1, q2, q3 = places[p], places[p + 1], places[p + 2], places[p + 3]
        q4, q5, q6, q7 = places[p + 4], places[p + 5], places[p + 6], places[p + 7]
        t0, t1 = targets[p] * LANES, targets[p + 1] * LANES
        t2, t3 = targets[p + 2] * LANES, targets[p + 3] * LANES
        t4, t5 = targets[p + 4] * LANES, targets[p + 5] * LANES
        t6, t7 = targets[p + 6] * LANES, targets[p + 7] * LANES
        a0, a1, a2, a3 = load(t, t0), load(t, t1), load(t, t2), load(t, t3)
        a4, a5, a6, a7 = load(t, t4), load(t, t5), load(t, t6), load(t, t7)
        for s in range(first, last):
            o, v = steps[s, 0], begin + steps[s, 1] * LANES
            for c in range(depth):
                u, k = load(w, v + c * LANES), o + c
                a0 = a0 + repeat(x, q0 + k) * u
                a1 = a1 + repeat(x, q1 + k) * u
                a2 = a2 + repeat(x, q2 + k) * u
                a3 = a3 + repeat(x, q3 + k) * u
                a4 = a4 + repeat(x, q4 + k) * u
                a5 = a5 + repeat(x, q5 + k) * u
                a6 = a6 + repeat(x, q6 + k) * u
                a7 = a7 + repeat(x, q7 + k) * u
        store(t, t0, a0)
        store(t, t1, a1)
        store(t, t2, a2)
        store(t, t3, a3)
        store(t, t4, a4)
        store(t, t5, a5)
        store(t, t6, a6)
        store(t, t7, a7)


@part
def add_few(x, places, targets, pixels, steps, some, room, width, half):
    """The same for 16 of `width` channels and four pixels, where registers hold few."""
    (first, last, depth), (w, begin, t) = some, room
    for p in range(pixels[0], pixels[1], FEW):
        q0, q1, q2, q3 = places[p], places[p + 1], places[p + 2], places[p + 3]
        t0, t1 = targets[p] * width + half, targets[p + 1] * width + half
        t2, t3 = targets[p + 2] * width + half, targets[p + 3] * width + half
        a0, a1, a2, a3 = load(t, t0), load(t, t1), load(t, t2), load(t, t3)
        for s in range(first, last):
            o, v = steps[s, 0], begin + steps[s, 1] * width + half
            for c in range(depth):
                u, k = load(w, v + c * width), o + c
                a0 = a0 + repeat(x, q0 + k) * u
                a1 = a1 + repeat(x, q1 + k) * u
                a2 = a2 + repeat(x, q2 + k) * u
                a3 = a3 + repeat(x, q3 + k) * u
        store(t, t0, a0)
        store(t, t1, a1)
        store(t, t2, a2)
        store(t, t3, a3)


@part
def add_steps(x, places, targets, phases, steps, w, begin, width, rest, t):
    """Add everything to the pixels of all phases.

    rest: how many channels the last block has.
    """
    for phase in range(phases.shape[0]):
        p0, p1, s0, s1, s2 = phases[phase]
        first = s0
        while first < s2:
            depth = LANES if first < s1 else rest
            last = min(first + STEPS, s1 if first < s1 else s2)
            some, room = (first, last, depth), (w, begin, t)
            if HOLDS_FEW:
                for half in range(0, width, LANES):
                    add_few(
                        x, places, targets, (p0, p1), steps, some, room, width, half
                    )
            elif width == WIDE:
                add_wide(x, places, targets, (p0, p1), steps, some, room)
            else:
                add_narrow(x, places, targets, (p0, p1), steps, some, room)
            first = last


@part
def lay_image(x, image, planes, first, apart, inside, spare):
    """Lay an image out: block b of its channels from first + apart · b on."""
    channels, pixels = x.shape[1], x.shape[2] * x.shape[3]
    source = x.reshape(x.size)
    for b in range((channels + LANES - 1) // LANES):
        at = (image * channels + b * LANES) * pixels
        rows, to = min(LANES, channels - b * LANES), first + b * apart
        scatter_columns(source, at, pixels, rows, pixels, planes, to, inside, spare)


@counting_part
def correlate(x, w, bias, out, plan, which, images, filters):
    """Sums of products for some samples and some blocks of output channels.

    which: the activation that follows, see finish.py.
    """
    inside, places, targets, phases, steps, plane, many = plan
    o_all, count = out.shape[1], out.shape[2] * out.shape[3]
    blocks = (x.shape[1] + LANES - 1) // LANES
    rest = x.shape[1] - (blocks - 1) * LANES
    planes = np.zeros(blocks * many * plane, f32)
    t = np.empty((many * count + 1) * WIDE, f32)
    spare = np.empty(LANES * LANES, f32)
    rectified = np.empty(t.size if which == RELU else 0, f32)
    to_out = out.reshape(out.size)
    depth = w.size // bias.size  # products of each sum
    for i in range(images[0], images[1], many):
        found = min(many, images[1] - i)
        for m in range(found):
            lay_image(x, i + m, planes, m * plane, many * plane, inside, spare)
        for o in range(filters[0] * WIDE, min(filters[1] * WIDE, o_all), WIDE):
            width = WIDE if o + LANES < o_all else LANES
            u, z = load(bias, o), load(bias, o + width - LANES)
            for r in range(0, many * count * width, width):
                store(t, r, u)
                store(t, r + width - LANES, z)
            begin = o * depth
            add_steps(planes, places, targets, phases, steps, w, begin, width, rest, t)
            sums = t
            if which == RELU:
                rectify_to(t, rectified, found * count * width)
                sums = rectified
            else:
                activate(t, 0, found * count * width, which)
            for half in range(0, width, LANES):
                kept = min(LANES, o_all - o - half)
                for m in range(found):
                    at, to = m * count * width + half, (i + m) * o_all + o + half
                    turn_rows(sums, at, width, kept, count, to_out, to * count, count)


PLAN = "i8[::1], i8[::1], i8[::1], i8[:,::1], i8[:,::1], i8, i8"
ARRAYS = "f4[:,:,:,::1], f4[::1], f4[::1], f4[:,:,:,::1]"


@kernel_code(f"void({ARRAYS}, {PLAN}, i8, i8, i8)")
def correlate_images(
    x,
    w,
    bias,
    out,
    inside,
    places,
    targets,
    phases,
    steps,
    plane,
    many,
    which,
    start,
    stop,
):
    """Sums of products for some samples.

    w: from `lay_weights`; bias: with zeros up to a multiple of LANES. The others: see
    conv_plan.py.
    """
    plan = inside, places, targets, phases, steps, plane, many
    correlate(x, w, bias, out, plan, which, (start, stop), (0, out.shape[1]))


@counting_part
def correlate_block(x, w, bias, out, plan, which, index):
    """The same for all samples and a block of WIDE output channels."""
    correlate(x, w, bias, out, plan, which, (0, x.shape[0]), (index, index + 1))


@kernel_code(f"void(i8[::1], {ARRAYS}, {PLAN}, i8)")
def correlate_blocks(
    board, x, w, bias, out, inside, places, targets, phases, steps, plane, many, which
):
    """The same for all samples, in parts of WIDE output channels.

    board: of thread_pool.py; threads that look at it take parts.
    """
    plan = inside, places, targets, phases, steps, plane, many
    blocks = (out.shape[1] + WIDE - 1) // WIDE
    share_out(board, correlate_block, (x, w, bias, out, plan, which), blocks)


@kernel_code("void(f4[:,:,::1], f4[::1], i8, i8)")
def lay_weights(weight, w, start, stop):
    """Lay weights [o, c, taps] out for some blocks of LANES output channels.

    w: [o / WIDE, c / LANES, taps, LANES, WIDE], zeros where there is none; the last
    block of output channels is half as wide where that is enough.
    """
    filters, channels, taps = weight.shape
    flat = weight.reshape(weight.size)
    depth = (channels + LANES - 1) // LANES * LANES * taps
    places = np.empty(channels * taps, np.int64)
    spare = np.empty(LANES * LANES, f32)
    for block in range(start, stop):
        o = block // 2 * WIDE
        width = WIDE if o + LANES < filters else LANES
        for c in range(channels):
            for k in range(taps):
                step = c // LANES * taps + k
                places[c * taps + k] = (step * LANES + c % LANES) * width
        to, at = o * depth + block % 2 * LANES, block * LANES
        rows = min(LANES, filters - at)
        at *= channels * taps
        scatter_columns(
            flat, at, channels * taps, rows, channels * taps, w, to, places, spare
        )


@kernel_code("void(f4[::1], f4[::1], i8, i8, i8, i8, i8)")
def turn_weights(w, back, filters, channels, taps, start, stop):
    """The weights that lead back, from those that `lay_weights` laid out.

    For some blocks of LANES input channels.
    """
    depth = (channels + LANES - 1) // LANES * LANES * taps
    depth_back = (filters + LANES - 1) // LANES * LANES * taps
    for block in range(start, stop):
        c = block // 2 * WIDE
        width_back = WIDE if c + LANES < channels else LANES
        first = c * depth_back + block % 2 * LANES
        for other in range((filters + LANES - 1) // LANES):
            o = other // 2 * WIDE
            width = WIDE if o + LANES < filters else LANES
            begin = o * depth + other % 2 * LANES
            for k in range(taps):
                at = begin + (block * taps + k) * LANES * width
                to = first + (other * taps + k) * LANES * width_back
                transpose(w, at, width, back, to, width_back)


@kernel_code("void(f4[:,:,:,::1], f4[::1], i8[::1], i8, i8, i8, i8, i8)")
def lay_images(x, planes, inside, plane, first, many, start, stop):
    """Lay some of `many` images out, blocks of channels apart, with zeros around."""
    spare = np.empty(LANES * LANES, f32)
    blocks = (x.shape[1] + LANES - 1) // LANES
    for m in range(start, stop):
        for b in range(blocks):
            at = (b * many + m) * plane
            planes[at : at + plane] = f32(0)
        lay_image(x, first + m, planes, m * plane, many * plane, inside, spare)


@part
def place_of(unit, channels, count):
    """Block of output channels, eight of input channels, and tap of a unit."""
    rest, k = divmod(unit, count)
    o, half = divmod(rest, (channels + LANES // 2 - 1) // (LANES // 2))
    return o, half, k


@part
def meet_wide(x, g, places, taps, channels, units, pixels, sums):
    """Add to eight times 32 sums, for some units, how x and g meet at some pixels.

    g: of these units' output channels, LANES of them after the others.
    """
    apart = x.size // ((channels + LANES - 1) // LANES)
    each = g.size // 2
    for unit in range(units[0], units[1]):
        _, half, tap = place_of(unit, channels, taps.size)
        q, to = half // 2 * apart + half % 2 * (LANES // 2) + taps[tap], unit * UNIT
        a0, b0 = load(sums, to), load(sums, to + LANES)
        a1, b1 = load(sums, to + WIDE), load(sums, to + WIDE + LANES)
        a2, b2 = load(sums, to + 2 * WIDE), load(sums, to + 2 * WIDE + LANES)
        a3, b3 = load(sums, to + 3 * WIDE), load(sums, to + 3 * WIDE + LANES)
        a4, b4 = load(sums, to + 4 * WIDE), load(sums, to + 4 * WIDE + LANES)
        a5, b5 = load(sums, to + 5 * WIDE), load(sums, to + 5 * WIDE + LANES)
        a6, b6 = load(sums, to + 6 * WIDE), load(sums, to + 6 * WIDE + LANES)
        a7, b7 = load(sums, to + 7 * WIDE), load(sums, to + 7 * WIDE + LANES)
        for p in range(pixels[0], pixels[1]):
            k = q + places[p]
            u, z = load(g, p * LANES), load(g, each + p * LANES)
            y = repeat(x, k)
            a0, b0 = a0 + y * u, b0 + y * z
            y = repeat(x, k + 1)
            a1, b1 = a1 + y * u, b1 + y * z
            y = repeat(x, k + 2)
            a2, b2 = a2 + y * u, b2 + y * z
            y = repeat(x, k + 3)
            a3, b3 = a3 + y * u, b3 + y * z
            y = repeat(x, k + 4)
            a4, b4 = a4 + y * u, b4 + y * z
            y = repeat(x, k + 5)
            a5, b5 = a5 + y * u, b5 + y * z
            y = repeat(x, k + 6)
            a6, b6 = a6 + y * u, b6 + y * z
            y = repeat(x, k + 7)
            a7, b7 = a7 + y * u, b7 + y * z
        store_pair(sums, to, a0, b0)
        store_pair(sums, to + WIDE, a1, b1)
        store_pair(sums, to + 2 * WIDE, a2, b2)
        store_pair(sums, to + 3 * WIDE, a3, b3)
        store_pair(sums, to + 4 * WIDE, a4, b4)
        store_pair(sums, to + 5 * WIDE, a5, b5)
        store_pair(sums, to + 6 * WIDE, a6, b6)
        store_pair(sums, to + 7 * WIDE, a7, b7)


@part
def meet_narrow(x, g, places, taps, channels, units, pixels, sums):
    """The same for eight times 16 sums, and as many output channels."""
    apart = x.size // ((channels + LANES - 1) // LANES)
    for unit in range(units[0], units[1]):
        _, half, tap = place_of(unit, channels, taps.size)
        q, to = half // 2 * apart + half % 2 * (LANES // 2) + taps[tap], unit * UNIT
        a0, a1 = load(sums, to), load(sums, to + WIDE)
        a2, a3 = load(sums, to + 2 * WIDE), load(sums, to + 3 * WIDE)
        a4, a5 = load(sums, to + 4 * WIDE), load(sums, to + 5 * WIDE)
        a6, a7 = load(sums, to + 6 * WIDE), load(sums, to + 7 * WIDE)
        for p in range(pixels[0], pixels[1]):
            k, u = q + places[p], load(g, p * LANES)
            a0 = a0 + repeat(x, k) * u
            a1 = a1 + repeat(x, k + 1) * u
            a2 = a2 + repeat(x, k + 2) * u
            a3 = a3 + repeat(x, k + 3) * u
            a4 = a4 + repeat(x, k + 4) * u
            a5 = a5 + repeat(x, k + 5) * u
            a6 = a6 + repeat(x, k + 6) * u
            a7 = a7 + repeat(x, k + 7) * u
        store(sums, to, a0)
        store(sums, to + WIDE, a1)
        store(sums, to + 2 * WIDE, a2)
        store(sums, to + 3 * WIDE, a3)
        store(sums, to + 4 * WIDE, a4)
        store(sums, to + 5 * WIDE, a5)
        store(sums, to + 6 * WIDE, a6)
        store(sums, to + 7 * WIDE, a7)


@part
def meet_few(x, g, places, taps, channels, units, pixels, sums):
    """The same for 16 or 32 output channels, four times 16 sums at a time."""
    apart = x.size // ((channels + LANES - 1) // LANES)
    whole = g.size // (places.size * LANES)  # blocks of output channels
    for unit in range(units[0], units[1]):
        _, half, tap = place_of(unit, channels, taps.size)
        q, to = half // 2 * apart + half % 2 * (LANES // 2) + taps[tap], unit * UNIT
        for block in range(whole):
            at = block * places.size * LANES
            for first in range(0, LANES // 2, FEW):
                r = to + first * WIDE + block * LANES
                a0, a1 = load(sums, r), load(sums, r + WIDE)
                a2, a3 = load(sums, r + 2 * WIDE), load(sums, r + 3 * WIDE)
                for p in range(pixels[0], pixels[1]):
                    k, u = q + places[p] + first, load(g, at + p * LANES)
                    a0 = a0 + repeat(x, k) * u
                    a1 = a1 + repeat(x, k + 1) * u
                    a2 = a2 + repeat(x, k + 2) * u
                    a3 = a3 + repeat(x, k + 3) * u
                store(sums, r, a0)
                store(sums, r + WIDE, a1)
                store(sums, r + 2 * WIDE, a2)
                store(sums, r + 3 * WIDE, a3)


@part
def add_pixels(g, r, pixels, t, to):
    """Add LANES channels of some pixels to a vector."""
    a = load(t, to)
    for p in range(pixels[0], pixels[1]):
        a = a + load(g, r + p * LANES)
    store(t, to, a)


@kernel_code(
    "void(f4[::1], f4[::1], i8[::1], i8[::1], f4[:,:,::1], f4[::1], f4[::1], i8, i8)"
)
def weight_blocks(planes, g, places, taps, dw, db, sums, start, stop):
    """Add what some samples give to some sums: dw [o, c, taps], and db [o].

    A unit is a block of WIDE output channels, one of eight input channels, and a tap;
    sums has UNIT numbers for each. planes, g: laid out, their blocks of channels apart.
    places: where the first tap of each pixel of g stands in a block of planes.
    """
    filters, channels, count = dw.shape
    pixels = places.size
    each = pixels * LANES  # of a block of g
    of_block = (channels + LANES // 2 - 1) // (LANES // 2) * count  # units
    for first in range(0, pixels, STRETCH):
        some = first, min(first + STRETCH, pixels)
        unit = start
        while unit < stop:
            o = unit // of_block
            units = unit, min((o + 1) * of_block, stop)
            is_wide = (2 * o + 1) * LANES < filters
            part_g = g[2 * o * each : (2 * o + 1 + is_wide) * each]
            if HOLDS_FEW:
                meet_few(planes, part_g, places, taps, channels, units, some, sums)
            elif is_wide:
                meet_wide(planes, part_g, places, taps, channels, units, some, sums)
            else:
                meet_narrow(planes, part_g, places, taps, channels, units, some, sums)
            if unit == o * of_block:
                for half in range(1 + is_wide):
                    at = o * WIDE + half * LANES
                    add_pixels(part_g, half * each, some, db, at)
            unit = units[1]
    for unit in range(start, stop):
        o, half, tap = place_of(unit, channels, count)
        for i in range(min(LANES // 2, channels - half * LANES // 2)):
            c, at = half * (LANES // 2) + i, unit * UNIT + i * WIDE
            for j in range(min(WIDE, filters - o * WIDE)):
                dw[o * WIDE + j, c, tap] = sums[at + j]


def blocked_conv2d(x: Any, weight: Any, bias: Any, sizes: Sizes, out: Any) -> None:
    """conv2d without groups into out.

    sizes: for each dim the size of x, stops, kernel, stride, padding and dilation.
    """
    filters, channels = weight.shape[:2]
    offsets = np.zeros(-(-filters // LANES) * LANES, f32)
    if bias is not None:
        offsets[:filters] = bias
    many = images_at_a_time(x.shape[0], out.shape[2] * out.shape[3])
    plan = plan_of(forward_side, sizes, out.shape[2:], channels, many)
    _correlate(x, laid_weights(weight), offsets, out, plan)


def blocked_gradients(
    g: Any, x: Any, weight: Any, sizes: Sizes, needs: tuple[bool, ...]
) -> tuple[Any, Any, Any]:
    """The gradients of conv2d without groups for x, weight and bias."""
    dx = None
    if needs[0]:
        filters, channels = weight.shape[:2]
        taps = weight.shape[2] * weight.shape[3]
        dx = empty(x.shape)
        back = _weights_for(channels, filters, taps)
        args = (laid_weights(weight), back, filters, channels, taps)
        threads.run(turn_weights, args, -(-channels // LANES))
        many = images_at_a_time(x.shape[0], x.shape[2] * x.shape[3])
        plan = plan_of(backward_side, sizes, x.shape[2:], filters, many)
        nothing = np.zeros(-(-channels // LANES) * LANES, f32)
        _correlate(g, back, nothing, dx, plan)
    if not (needs[1] or needs[2]):
        return dx, None, None
    return dx, *_weight_gradients(g, x, weight, sizes)


def _correlate(x: Any, w: Any, bias: Any, out: Any, plan: Plan, which: int = 0) -> None:
    """One region of work over the samples, or over the filters where those are few."""
    correlation = by_filters(x, w, bias, out, plan, which)
    if correlation is not None:
        correlation()
    else:
        threads.run(correlate_images, (x, w, bias, out, *plan, which), x.shape[0])


def by_filters(
    x: Any, w: Any, bias: Any, out: Any, plan: Plan, which: int
) -> Callable[[], None] | None:
    """A function for the same in parts of output channels, or None.

    That is where samples do not go round among the threads.
    """
    if x.shape[0] >= min(cores(), -(-out.shape[1] // WIDE)):
        return None
    is_long = w.size * out[0, 0].size * x.shape[0] >= WORTH

    def correlate_all() -> None:
        threads.attend(is_long)
        correlate_blocks(threads.board, x, w, bias, out, *plan, which)

    return correlate_all


def _weight_gradients(g: Any, x: Any, weight: Any, sizes: Sizes) -> tuple[Any, Any]:
    """The gradients for weight and bias, for as many samples at a time as lie near."""
    (samples, channels), (filters, pixels) = x.shape[:2], (g.shape[1], g[0, 0].size)
    blocks, kernel = -(-channels // LANES), weight.shape[2] * weight.shape[3]
    plane = numbers_of(sizes)
    each = blocks * plane + -(-filters // LANES) * pixels * LANES
    many = -(-samples // -(-samples * each // NEAR))
    plan = plan_of(forward_side, sizes, g.shape[2:], channels, many)
    places, taps = plan.places, plan.steps[:kernel, 0].copy()
    in_g = np.arange(0, pixels * LANES, LANES)
    units = -(-filters // WIDE) * -(-channels // (LANES // 2)) * kernel
    sums = np.zeros(units * UNIT, f32)
    dw = np.empty((filters, channels, kernel), f32)
    db = np.zeros(-(-filters // LANES) * LANES, f32)
    for first in range(0, samples, many):
        some = min(many, samples - first)
        near_x = empty((blocks * some * plane,))
        near_g = empty((-(-filters // LANES) * some * pixels * LANES,))
        args = (x, near_x, plan.inside, plane, first, some)
        threads.run(lay_images, args, some)
        args = (g, near_g, in_g, pixels * LANES, first, some)
        threads.run(lay_images, args, some)
        where = places[: some * pixels]
        threads.run(weight_blocks, (near_x, near_g, where, taps, dw, db, sums), units)
    return dw.reshape(weight.shape), db[:filters]


def images_at_a_time(samples: int, pixels: int) -> int:
    """How many images are laid out at once, so that there is enough to do for each."""
    return max(1, min(ENOUGH_PIXELS // pixels, -(-samples // 2)))


def laid_weights(weight: Any) -> Any:
    """Weights as the kernels want them: see `lay_weights`."""
    filters, channels = weight.shape[:2]
    rows = weight.reshape(filters, channels, -1)
    w = _weights_for(filters, channels, rows.shape[2])
    threads.run(lay_weights, (rows, w), -(-filters // LANES), 2)
    return w


def _weights_for(filters: int, channels: int, taps: int) -> Any:
    """Room for laid weights, with zeros where blocks are not full."""
    sizes = [-(-n // LANES) * LANES for n in (filters, channels)]
    count = sizes[0] * sizes[1] * taps
    memory = np.empty(count + LANES, f32)
    w = memory[-memory.ctypes.data % LINE // 4 :][:count]
    if sizes != [filters, channels]:
        w.fill(0)
    return w
