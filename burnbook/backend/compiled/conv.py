"""Convolution, sample by sample, in the first cache.

The plan is that of ops/conv/im2col.py without laying anything out: a plane of padded
pixels is read at a shift for each tap of the kernel. Four output channels share
what was read, and three neighbouring taps share what was added up.

Measured by W1, inference and the family conv, of tests/bench.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from burnbook.backend.compiled.conv_blocked import (
    WORTH,
    blocked_conv2d,
    blocked_gradients,
)
from burnbook.backend.compiled.conv_depthwise import (
    depthwise_conv2d,
    depthwise_gradients,
    is_depthwise,
)
from burnbook.backend.compiled.conv_microkernel import (
    REACH,
    SUMS,
    copy_blocks,
    places_of,
    rows_under,
    shifted_sums,
    stops_of,
    whole_steps,
)
from burnbook.backend.compiled.finish import RELU, finish_planes, lines_at_once
from burnbook.backend.compiled.runtime.board import share_out
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import (
    HELD,
    counting_part,
    f32,
    kernel_code,
    part,
)
from burnbook.backend.compiled.runtime.registry import kernel, plain_f32
from burnbook.backend.compiled.runtime.simd import LANES, broadcast, load, store, total
from burnbook.backend.compiled.runtime.thread_pool import cores, threads
from burnbook.backend.compiled.winograd import correlate_pairs, lay_pairs
from burnbook.backend.kernels import needed
from burnbook.ops.conv.conv import conv2d
from burnbook.ops.conv.windows import Pair, output_size

ENOUGH = 4  # input channels for which it pays to mix rows
FEW_PLACES = 128  # kernels for each place of the output that are too many
PLAIN = (0, 0, 0, 0)  # neither an activation nor a pool: see finish.py
LAID = "f4[:,:,:,::1], f4[:,:,::1]"  # weights and where sums begin
HOW, FINISH = "UniTuple(i8, 8)", "UniTuple(i8, 4)"
PART_WORK = 1 << 17  # products of a band of lines: what a thread does in some 4 µs
SHARES = 16  # into how many sums the gradient of the weights is split, always
MANY_CHANNELS = 16  # for which they are taken in blocks
FEW_KERNELS = 256  # for which rows of 16 and more are quicker in pairs


@part
def lay_taps(weight, w):
    """w[0, o / SUMS, tap, o % SUMS]: the weights as `shifted_sums` has them."""
    filters, channels, rows, columns = weight.shape
    for o in range(filters):
        k = 0
        for c in range(channels):
            for a in range(rows):
                for b in range(columns):
                    w[0, o // SUMS, k, o % SUMS] = weight[o, c, a, b]
                    k += 1


@kernel_code(f"void(f4[:,:,:,::1], f4[::1], {LAID})")
def lay_weights(weight, bias, w, begin):
    """Lay weights and biases out: for pairs of rows where w has four parts."""
    if w.shape[0] > 1:
        lay_pairs(weight, w)
        begin[:] = f32(0)
    else:
        lay_taps(weight, w)
    sums = begin[1 if w.shape[0] > 1 else 0]
    for o in range(bias.size):
        sums[o // SUMS, o % SUMS] = bias[o]


@counting_part
def correlate_taps(x, w, begin, out, how, finish, band, start, stop):
    """What `correlate_laid` does, tap by tap, for kernels of any size.

    band: the first line and the one after the last, of each plane.
    """
    top, left, down, right, groups, rows, kernel_rows, kernel_columns = how
    c_all, height, width = x.shape[1:]
    h, n = stops_of(x, how)
    filters, c_each = w.shape[1] * SUMS, w.shape[2] // (kernel_rows * kernel_columns)
    o_each, o_all = filters // groups, groups * rows
    padded = width + 2 * left
    lines, more = band[1] - band[0], down * (kernel_rows - 1)
    plane = (lines + more) * padded
    some = min(max((REACH - n) // padded + 1, 1), lines)  # lines at a time
    some = lines_at_once(some, 1, finish)
    planes = np.zeros(c_all * plane + LANES, f32)
    t = np.empty(SUMS * whole_steps(some * padded), f32)
    held = np.empty((SUMS + 1) * some * n if finish[1] else 0, f32)
    places = places_of(c_each, kernel_rows, kernel_columns, plane, down * padded, right)
    from_x, to_out = x.reshape(x.size), out.reshape(out.size)
    skips, strides = (plane, padded), (height * width, width)
    first, count = rows_under(band, more, top, height)
    shape, to_planes = (c_all, count, width), (first + top - band[0]) * padded + left
    for i in range(start, stop):
        at = i * c_all * height * width + first * width
        copy_blocks(planes, to_planes, skips, from_x, at, strides, shape)
        for row in range(0, lines, some):
            count, line = min(some, lines - row), band[0] + row
            reach = whole_steps((count - 1) * padded + n)
            for block in range(filters // SUMS):
                group, below = divmod(block * SUMS, o_each)
                at = group * c_each * plane + row * padded
                is_relu = finish[0] == RELU
                shifted_sums(planes, at, 0, places, w, begin, block, t, reach, is_relu)
                o, kept = i * o_all + group * rows + below, min(SUMS, rows - below)
                sums, to, apart = to_out, (o * h + line) * n, h * n
                if finish[1]:
                    sums, to, apart = held, 0, count * n
                size, from_t = (kept, count, n), (reach, padded)
                copy_blocks(sums, to, (apart, n), t, 0, from_t, size)
                here = (line, count, n)
                finish_planes(sums, to, apart, here, to_out, o, (kept, h), finish)


@counting_part
def correlate_band(x, w, begin, out, how, finish, band, start, stop):
    """What `correlate_laid` does for a band of lines of each image."""
    if w.shape[0] > 1:
        correlate_pairs(x, w, begin, out, how, finish, band, start, stop)
    else:
        correlate_taps(x, w, begin, out, how, finish, band, start, stop)


@kernel_code(f"void(f4[:,:,:,::1], {LAID}, f4[:,:,:,::1], {HOW}, {FINISH}, i8, i8)")
def correlate_laid(x, w, begin, out, how, finish, start, stop):
    """conv2d with stride 1 for some samples, and what follows it.

    w, begin: from `laid_weights`. how: padding rows, padding cols, dilation rows,
    dilation cols, groups, rows per group that count, rows and columns of the kernel.
    finish: an activation and a pool, see finish.py; out is what comes after them.
    """
    band = (0, stops_of(x, how)[0])
    correlate_band(x, w, begin, out, how, finish, band, start, stop)


@counting_part
def correlate_part(x, w, begin, out, how, finish, lines, index):
    """So many lines of an image: the bands of all images are numbered through."""
    h = stops_of(x, how)[0]
    image, band = divmod(index, (h + lines - 1) // lines)
    first = band * lines
    band = (first, min(first + lines, h))
    correlate_band(x, w, begin, out, how, finish, band, image, image + 1)


@kernel_code(
    f"void(i8[::1], f4[:,:,:,::1], {LAID}, f4[:,:,:,::1], {HOW}, {FINISH}, i8)"
)
def correlate_bands(board, x, w, begin, out, how, finish, lines):
    """What `correlate_laid` does for few samples, in bands of so many lines.

    board: of thread_pool.py; threads that look at it take bands. lines: whole pairs, or
    all, and whole windows of a pool.
    """
    parts = x.shape[0] * ((stops_of(x, how)[0] + lines - 1) // lines)
    share_out(board, correlate_part, (x, w, begin, out, how, finish, lines), parts)


@part
def dot_three(g, n, x, at, sums, to, step):
    """Add how four gradient planes meet three neighbouring shifts of a plane.

    sums: a vector for each meeting; those of one gradient plane begin `step` apart.
    """
    a0 = a1 = a2 = b0 = b1 = b2 = c0 = c1 = c2 = d0 = d1 = d2 = broadcast(f32(0))
    for p in range(0, n, LANES):
        q = at + p
        u0, u1, u2 = load(x, q), load(x, q + 1), load(x, q + 2)
        a, b = load(g, p), load(g, n + p)
        c, d = load(g, 2 * n + p), load(g, 3 * n + p)
        a0, a1, a2 = a0 + a * u0, a1 + a * u1, a2 + a * u2
        b0, b1, b2 = b0 + b * u0, b1 + b * u1, b2 + b * u2
        c0, c1, c2 = c0 + c * u0, c1 + c * u1, c2 + c * u2
        d0, d1, d2 = d0 + d * u0, d1 + d * u1, d2 + d * u2
    add_three(sums, to, a0, a1, a2)
    add_three(sums, to + step, b0, b1, b2)
    add_three(sums, to + 2 * step, c0, c1, c2)
    add_three(sums, to + 3 * step, d0, d1, d2)


@part
def dot_three_of_two(g, n, x, at, sums, to, step):
    """The same for two gradient planes, where registers hold no more."""
    a0 = a1 = a2 = b0 = b1 = b2 = broadcast(f32(0))
    for p in range(0, n, LANES):
        q = at + p
        u0, u1, u2 = load(x, q), load(x, q + 1), load(x, q + 2)
        a, b = load(g, p), load(g, n + p)
        a0, a1, a2 = a0 + a * u0, a1 + a * u1, a2 + a * u2
        b0, b1, b2 = b0 + b * u0, b1 + b * u1, b2 + b * u2
    add_three(sums, to, a0, a1, a2)
    add_three(sums, to + step, b0, b1, b2)


@part
def add_three(sums, to, a, b, c):
    """Add three vectors to those of three neighbouring taps."""
    store(sums, to, load(sums, to) + a)
    store(sums, to + LANES, load(sums, to + LANES) + b)
    store(sums, to + 2 * LANES, load(sums, to + 2 * LANES) + c)


@part
def dot_one(g, n, x, at, sums, to, step):
    """Add how four gradient planes meet one shift of a plane."""
    a = b = c = d = broadcast(f32(0))
    for p in range(0, n, LANES):
        u = load(x, at + p)
        a, b = a + load(g, p) * u, b + load(g, n + p) * u
        c, d = c + load(g, 2 * n + p) * u, d + load(g, 3 * n + p) * u
    store(sums, to, load(sums, to) + a)
    store(sums, to + step, load(sums, to + step) + b)
    store(sums, to + 2 * step, load(sums, to + 2 * step) + c)
    store(sums, to + 3 * step, load(sums, to + 3 * step) + d)


@part
def dot_row(g, n, x, at, size, sums, to, step):
    """Add how four gradient planes meet a row of taps.

    size: how many taps, and how far apart.
    """
    b = 0
    while b < size[0]:
        if size[1] == 1 and b + 3 <= size[0]:
            place = to + b * LANES
            if HELD >= 3 * SUMS:
                dot_three(g, n, x, at + b, sums, place, step)
            else:
                dot_three_of_two(g, n, x, at + b, sums, place, step)
                rest = g[2 * n :]
                dot_three_of_two(rest, n, x, at + b, sums, place + 2 * step, step)
            b += 3
        else:
            dot_one(g, n, x, at + b * size[1], sums, to + b * LANES, step)
            b += 1


@part
def dot_all(g, n, x, at, size, sums, to):
    """Add how four gradient planes meet the taps of all channels.

    size: how many channels, rows and columns, and how far apart, each.
    """
    channels, apart, rows, down, columns, right = size
    step = channels * rows * columns * LANES
    for c in range(channels):
        for a in range(rows):
            place = at + c * apart + a * down
            dot_row(g, n, x, place, (columns, right), sums, to, step)
            to += columns * LANES


@part
def add_up(added, totals, each, rows):
    """The sums of vectors, for those rows of each group that count."""
    for o in range(added.size // LANES):
        group, row = divmod(o, each)
        if row < rows:
            totals[group * rows + row] = total(load(added, o * LANES))


@part
def add_all(g, n, sums, to):
    """Add four gradient planes to a vector for each."""
    for k in range(SUMS):
        a = load(sums, to + k * LANES)
        for p in range(k * n, (k + 1) * n, LANES):
            a = a + load(g, p)
        store(sums, to + k * LANES, a)


@kernel_code(
    "void(f4[:,:,:,::1], f4[:,:,:,::1], f4[:,:,:,:,::1], f4[:,::1], i8[::1], i8, i8)"
)
def weight_sums(x, g, sums, totals, how, start, stop):
    """The gradients of conv2d for weight and bias, for some shares of the samples."""
    top, left, down, right, groups, rows = how
    samples, c_all, height, width = x.shape
    o_all, h, n = g.shape[1:]
    shares, filters, c_each, kernel_rows, kernel_cols = sums.shape
    padded = width + 2 * left
    plane = (height + 2 * top) * padded
    reach = whole_steps((h - 1) * padded + n)
    planes = np.zeros(c_all * plane + LANES + 2, f32)
    wide = np.zeros(SUMS * reach, f32)
    taps = c_each * kernel_rows * kernel_cols
    found = np.empty(filters * taps * LANES, f32)  # a vector for each sum
    added = np.empty(filters * LANES, f32)
    from_x, from_g = x.reshape(x.size), g.reshape(g.size)
    skips, strides = (plane, padded), (height * width, width)
    shape = (c_all, height, width)
    for share in range(start, stop):
        found[:], added[:] = f32(0), f32(0)
        for i in range(share * samples // shares, (share + 1) * samples // shares):
            at = i * c_all * height * width
            copy_blocks(planes, top * padded + left, skips, from_x, at, strides, shape)
            for block in range(0, filters, SUMS):
                group, first = divmod(block, filters // groups)
                kept = min(SUMS, rows - first)
                if kept < SUMS:
                    wide[kept * reach :] = f32(0)
                at = (i * o_all + group * rows + first) * h * n
                skip, step = (reach, padded), (h * n, n)
                copy_blocks(wide, 0, skip, from_g, at, step, (kept, h, n))
                add_all(wide, reach, added, block * LANES)
                at = group * c_each * plane
                size = (c_each, plane, kernel_rows, down * padded, kernel_cols, right)
                dot_all(wide, reach, planes, at, size, found, block * taps * LANES)
        flat = sums[share].reshape(filters * taps)
        for k in range(flat.size):
            flat[k] = total(load(found, k * LANES))
        add_up(added, totals[share], filters // groups, rows)


@kernel_code(
    f"void(f4[:,:,:,::1], f4[:,:,:,::1], {LAID}, f4[:,:,:,::1], "
    f"f4[:,:,:,:,::1], f4[:,::1], i8[::1], {HOW}, i8, i8)"
)
def all_gradients(x, g, back, zeros, dx, sums, totals, how_weight, how_x, start, stop):
    """All three gradients of conv2d, for some shares of the samples."""
    for share in range(start, stop):
        weight_sums(x, g, sums, totals, how_weight, share, share + 1)
        first = share * x.shape[0] // sums.shape[0]
        last = (share + 1) * x.shape[0] // sums.shape[0]
        nothing = (0, 0, 0, 0)
        correlate_laid(g, back, zeros, dx, how_x, nothing, first, last)


@kernel(conv2d)
def conv2d_kernel(x, weight, bias=None, *, stride, padding, dilation, groups):
    """conv2d, one region of work over the samples."""
    o, _, *taps = weight.shape
    sizes = list(zip(x.shape[2:], taps, stride, padding, dilation, strict=True))
    stops = [output_size(*size) for size in sizes]
    if in_blocks(x, weight, stops, stride, dilation, groups):
        out = empty((x.shape[0], o, *stops))
        blocked_conv2d(x, weight, bias, with_stops(sizes, stops), out)
        return out
    if in_planes(x, weight, groups):
        out = empty((x.shape[0], o, *stops))
        depthwise_conv2d(x, weight, bias, with_stops(sizes, stops), out)
        return out
    if not served(x, weight, stride):
        return None
    out = empty((x.shape[0], o, *stops))
    how = (*padding, *dilation, groups, o // groups, *taps)
    laid = laid_weights(weight, bias, stops[1], how)
    correlate = in_bands(x, laid, out, how, PLAIN)
    if correlate is not None:
        correlate()
    else:
        threads.run(correlate_laid, (x, *laid, out, how, PLAIN), x.shape[0])
    return out


def in_bands(
    x: Any, laid: tuple[Any, Any], out: Any, how: Any, finish: Any
) -> Callable[[], None] | None:
    """A function for what `correlate_laid` does, for fewer samples than threads.

    None where that is little work, or samples enough to go round.
    """
    if len(x) >= cores():
        return None
    weights, h = laid[0], output_size(x.shape[2], how[6], 1, how[0], how[2])
    products = h * x.shape[3] * weights.size // (2 if len(weights) > 1 else 1)
    if products < 2 * PART_WORK:
        return None
    windows = finish[2] if finish[1] else 1
    least = windows if windows % 2 == 0 else 2 * windows
    lines = max(h * PART_WORK // products // least, 1) * least
    args = (x, *laid, out, how, finish, lines)
    is_long = products * len(x) >= WORTH

    def correlate() -> None:
        threads.attend(is_long)
        correlate_bands(threads.board, *args)

    return correlate


@kernel(conv2d.backward)
def conv2d_backward(
    g, x, weight, x_shape, weight_shape, *, needs, stride, padding, dilation, groups
):
    """The gradients of conv2d, one region of work over shares of the samples."""
    g = np.ascontiguousarray(g)  # that of a sum is one number, seen many times
    stops, taps = g.shape[2:], weight.shape[2:]
    if in_blocks(x, weight, stops, stride, dilation, groups) and plain_f32(g):
        sizes = zip(x.shape[2:], taps, stride, padding, dilation, strict=True)
        sizes = with_stops(sizes, stops)
        return needed(blocked_gradients(g, x, weight, sizes, needs), needs)
    if in_planes(x, weight, groups) and plain_f32(g):
        sizes = zip(x.shape[2:], taps, stride, padding, dilation, strict=True)
        sizes = with_stops(sizes, stops)
        return needed(depthwise_gradients(g, x, weight, sizes, needs), needs)
    dx = empty(x.shape) if needs[0] else None
    found = shared_gradients(g, x, weight, stride, padding, dilation, groups, dx)
    if found is None:
        return None
    lay, work, total = found
    threads.run(work, (lay(),), min(SHARES, len(x)))
    dw, db = np.empty(weight.shape, f32), np.empty(len(weight), f32)
    total(dw, db)
    return needed((dx, dw, db), needs)


Gradients = tuple[Callable[[], Any], Callable[..., Any], Callable[[Any, Any], None]]


def shared_gradients(
    g: Any,
    x: Any,
    weight: Any,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
    dx: Any,
) -> Gradients | None:
    """The gradients of conv2d in shares of the samples; None where it does not pay.

    dx: where that for x goes, or None. Gives three functions: one lays weights out, one
    takes these and works on some shares, and one adds the shares up to the gradients
    for weight and bias, to where these go; None is one that nobody wants.
    """
    taps = weight.shape[2:]
    spans = [dilation[d] * (weight.shape[2 + d] - 1) for d in (0, 1)]
    around = (spans[0] - padding[0], spans[1] - padding[1])
    if not (served(x, weight, stride) and plain_f32(g)) or min(around) < 0:
        return None
    o, c = weight.shape[:2]
    if o * c >= FEW_PLACES * math.prod(g.shape[2:]):
        return None  # more sums than the cache holds, and little to add to each
    rows = o // groups
    each = -(-rows // SUMS) * SUMS
    shares = min(SHARES, x.shape[0])
    sums = np.empty((shares, groups * each, *weight.shape[1:]), f32)
    totals = np.empty((shares, o), f32)
    how = np.array([*padding, *dilation, groups, rows])
    how_x = (*around, *dilation, groups, c, *taps)

    def lay() -> Any:
        if dx is None:
            return ()
        return laid_weights(flipped(weight, groups), None, x.shape[3], how_x)

    def work(back: Any, start: int, stop: int) -> None:
        if dx is None:
            weight_sums(x, g, sums, totals, how, start, stop)
        else:
            all_gradients(x, g, *back, dx, sums, totals, how, how_x, start, stop)

    return lay, work, partial(add_shares, sums, totals, rows)


def add_shares(sums: Any, totals: Any, rows: int, dw: Any, db: Any) -> None:
    """Add up what the shares gave for weight and bias; None is one nobody wants.

    rows: of each group that count.
    """
    _, o, *kernel = sums.shape
    if db is not None:
        np.add.reduce(totals, 0, out=db)
    if dw is None:
        return
    if o == len(dw):
        np.add.reduce(sums, 0, out=dw.reshape(sums.shape[1:]))
        return
    each = -(-rows // SUMS) * SUMS
    added = sums.sum(axis=0).reshape(o // each, each, *kernel)
    dw[...] = added[:, :rows].reshape(dw.shape)


def served(x: Any, weight: Any, stride: Pair) -> bool:
    """Stride 1 and more than one tap; a single tap is a plain matrix product."""
    return (
        tuple(stride) == (1, 1)
        and weight.shape[2] * weight.shape[3] > 1
        and plain_f32(x)
        and plain_f32(weight)
    )


def in_planes(x: Any, weight: Any, groups: int) -> bool:
    """Whether every channel is convolved by itself."""
    fits = x.size > 0 and plain_f32(x) and plain_f32(weight)
    return fits and is_depthwise(x, weight, groups)


def in_blocks(
    x: Any, weight: Any, stops: Any, stride: Pair, dilation: Pair, groups: int
) -> bool:
    """Whether channels are taken in blocks: several taps, and channels enough."""
    o, c, rows, columns = weight.shape
    if groups > 1 or min(o, c) < MANY_CHANNELS or rows * columns == 1:
        return False
    in_pairs = tuple(stride) == (1, 1) and rows == 3 and dilation[0] == 1
    if in_pairs and stops[1] >= LANES and o * c <= FEW_KERNELS:
        return False
    return x.size > 0 and plain_f32(x) and plain_f32(weight)


def with_stops(sizes: Any, stops: Any) -> Any:
    """Sizes of each dim, as conv_plan.py has them."""
    return tuple((n, m, *rest) for (n, *rest), m in zip(sizes, stops, strict=True))


def laid_weights(weight: Any, bias: Any, columns: int, how: Any) -> tuple[Any, Any]:
    """Weights and biases as `correlate_laid` wants them.

    columns: of the result. Two rows of it are taken at once where kernels are three
    high, channels enough and rows long enough.
    """
    kernels, offsets = in_fours(weight, bias, how[4])
    filters, c, rows, cols = kernels.shape
    pairs = c >= ENOUGH and rows == 3 and how[2] == 1 and columns >= LANES
    parts, each = (4, c * cols) if pairs else (1, c * rows * cols)
    w = np.empty((parts, filters // SUMS, each, SUMS), f32)
    begin = np.empty((parts, filters // SUMS, SUMS), f32)
    lay_weights(kernels, offsets, w, begin)
    return w, begin


def in_fours(weight: Any, bias: Any, groups: int) -> tuple[Any, Any]:
    """Each group's output channels and biases, with zeros up to a multiple of four."""
    rows = weight.shape[0] // groups
    each = -(-rows // SUMS) * SUMS
    offsets = np.zeros((groups, each), f32)
    if bias is not None:
        offsets[:, :rows] = bias.reshape(groups, rows)
    if rows == each:
        return weight, offsets.reshape(-1)
    filled = np.zeros((groups, each, *weight.shape[1:]), f32)
    filled[:, :rows] = weight.reshape(groups, rows, *weight.shape[1:])
    return filled.reshape(groups * each, *weight.shape[1:]), offsets.reshape(-1)


def flipped(weight: Any, groups: int) -> Any:
    """The kernels that lead back: output and input channels swapped, taps reversed."""
    o, c, *taps = weight.shape
    swapped = weight.reshape(groups, o // groups, c, *taps).swapaxes(1, 2)
    reversed_taps = swapped[..., ::-1, ::-1]
    return np.ascontiguousarray(reversed_taps).reshape(groups * c, o // groups, *taps)
