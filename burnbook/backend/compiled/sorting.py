"""Sorting by whole numbers that are ordered as the floats are.

NumPy sorts whole numbers in vector registers. Kernels turn some lines of floats into
such keys and back, while they stay in the cache; threads take the lines among them.

Measured by the family sorting, of tests/bench.
"""

from typing import Any

import numpy as np

from burnbook.backend.compiled.index import scattered
from burnbook.backend.compiled.runtime.axis_views import I64, as_lines, blocks
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import (
    exact_code,
    exact_counting_part,
    exact_part,
)
from burnbook.backend.compiled.runtime.registry import kernel
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.compiled.shape import whole, zeros
from burnbook.ops.sorting import argmedian, argsort, argtopk, nan_first, sort

CHUNK = 1 << 15  # elements that are sorted at a time, in the cache
FEWEST = 8  # so many of the largest are found for lines side by side
WIDTH = 256  # neighbouring lines of a block
LEAST = 16  # of them, for the registers
FEW = 64  # so many of the largest are found by keeping a short sorted list
I32 = np.dtype(np.int32)
LOW = np.int32(2**31 - 1)
NAN_ABOVE = np.int32(0x7F800000)  # the bits of infinity
LINES = "i4[:,:,::1], "


@exact_part
def key_of(bits, flip):
    """A whole number that is ordered as the float with these bits; NaN is largest."""
    key = bits ^ ((bits >> np.int32(31)) & LOW)
    return (LOW if (bits & LOW) > NAN_ABOVE else key) ^ flip


@exact_part
def place_key_of(bits, flip):
    """The same where places are asked for: 0 and −0 are equal."""
    return key_of(bits if bits & LOW else np.int32(0), flip)


@exact_code(f"void({LINES}i4[:,::1], i4, i8, i8)")
def encode(x, keys, flip, start, stop):
    """The keys of some lines of x, as rows; flip −1 turns the order round."""
    n, inner = x.shape[1], x.shape[2]
    for p in range(start, stop):
        o, j, row = p // inner, p % inner, keys[p - start]
        for k in range(n):
            row[k] = key_of(x[o, k, j], flip)


@exact_code(f"void(i4[:,::1], {LINES}i4, i8, i8)")
def decode(keys, out, flip, start, stop):
    """Keys in rows as some lines of floats."""
    n, inner = out.shape[1], out.shape[2]
    for p in range(start, stop):
        o, j, row = p // inner, p % inner, keys[p - start]
        for k in range(n):
            key = row[k] ^ flip
            out[o, k, j] = key ^ ((key >> np.int32(31)) & LOW)


@exact_code(f"void({LINES}i8[:,::1], i4, i8, i8)")
def encode_pairs(x, pairs, flip, start, stop):
    """The key and the place of each element of some lines, as one whole number."""
    n, inner = x.shape[1], x.shape[2]
    for p in range(start, stop):
        o, j, row = p // inner, p % inner, pairs[p - start]
        for k in range(n):
            row[k] = (np.int64(place_key_of(x[o, k, j], flip)) << 32) | k


@exact_code("void(i8[:,::1], i8[:,:,::1], i8, i8)")
def decode_places(pairs, out, start, stop):
    """The places in the first pairs of each row, as some lines."""
    many, inner = out.shape[1], out.shape[2]
    for p in range(start, stop):
        o, j, row = p // inner, p % inner, pairs[p - start]
        for k in range(many):
            out[o, k, j] = row[k] & 0xFFFFFFFF


@exact_code("void(i8[:,::1], i8)")
def smallest_first(pairs, many):
    """Put the smallest pairs of each row in front, sorted."""
    for p in range(pairs.shape[0]):
        row = pairs[p]
        for k in range(1, many):
            new, at = row[k], k
            while at > 0 and row[at - 1] > new:
                row[at] = row[at - 1]
                at -= 1
            row[at] = new
        last = row[many - 1]
        for k in range(many, row.size):
            if row[k] < last:
                new, at = row[k], many - 1
                while at > 0 and row[at - 1] > new:
                    row[at] = row[at - 1]
                    at -= 1
                row[at] = new
                last = row[many - 1]


@exact_part
def swap_in(keys, places, new, at):
    """Of two keys the smaller stays, with its place; of equals the first."""
    for j in range(new.size):
        here, there = keys[j], new[j]
        i, k = places[j], at[j]
        less = (there < here) | ((there == here) & (k < i))
        keys[j] = there if less else here
        places[j] = k if less else i
        new[j] = here if less else there
        at[j] = i if less else k


@exact_counting_part
def few_lines(x, o, low, keys, places, new):
    """The smallest keys of neighbouring lines, and their places: sorted, line by line.

    Why: each element goes down the list and changes places with those it comes before;
    sixteen lines do so at once, and nothing has to be decided.
    """
    at = np.empty(new.size, np.int32)
    keys[:] = LOW
    for k in range(x.shape[1]):
        line, i = x[o, k, low : low + new.size], np.int32(k)
        for j in range(new.size):
            new[j] = place_key_of(line[j], np.int32(-1))
            at[j] = i
        for m in range(keys.shape[0]):
            swap_in(keys[m, : new.size], places[m, : new.size], new, at)


@exact_code(f"void({LINES}i8[:,:,::1], i8, i8, i8)")
def largest_few(x, out, width, start, stop):
    """Where the largest elements of lines side by side are, for some blocks of them."""
    many, inner = out.shape[1], x.shape[2]
    keys, places = np.empty((many, width), np.int32), np.empty((many, width), np.int32)
    new = np.empty(width, np.int32)
    across = (inner + width - 1) // width
    for p in range(start, stop):
        o, low = p // across, p % across * width
        lines = min(width, inner - low)
        few_lines(x, o, low, keys, places, new[:lines])
        for m in range(many):
            for j in range(lines):
                out[o, m, low + j] = places[m, j]


@exact_code(f"void({LINES}i4[:,::1], i8[:,:,::1], i8, i8, i8)")
def find_middle(x, keys, out, middle, start, stop):
    """Where the key stands that would be in the middle; of equals the right one."""
    n, inner = x.shape[1], x.shape[2]
    for p in range(start, stop):
        o, j = p // inner, p % inner
        wanted = keys[p - start, middle]
        wanted = np.int32(0) if wanted == np.int32(-1) else wanted  # −0 is 0
        skip = middle
        for k in range(n):
            if place_key_of(x[o, k, j], np.int32(0)) < wanted:
                skip -= 1
        for k in range(n):
            if place_key_of(x[o, k, j], np.int32(0)) == wanted:
                if skip == 0:
                    out[o, 0, j] = k
                    break
                skip -= 1


def chunks(n: int, start: int, stop: int) -> Any:
    """Some lines at a time, as many as stay in the cache."""
    step = max(1, CHUNK // n)
    for a in range(start, stop, step):
        yield a, min(a + step, stop)


def sort_lines(x: Any, out: Any, flip: Any, start: int, stop: int) -> None:
    for a, b in chunks(x.shape[1], start, stop):
        keys = np.empty((b - a, x.shape[1]), I32)
        encode(x, keys, flip, a, b)
        keys.sort(axis=-1)
        decode(keys, out, flip, a, b)


def place_lines(x: Any, out: Any, flip: Any, start: int, stop: int) -> None:
    """Places of the first elements in the order; as many as there is room for."""
    n, many = x.shape[1], out.shape[1]
    for a, b in chunks(n, start, stop):
        pairs = np.empty((b - a, n), I64)
        encode_pairs(x, pairs, flip, a, b)
        if many == n:
            pairs.sort(axis=-1)
        elif many <= FEW:
            smallest_first(pairs, many)
        else:
            pairs.partition(many - 1, axis=-1)
            pairs[:, :many].sort(axis=-1)
        decode_places(pairs, out, a, b)


def middle_lines(x: Any, out: Any, middle: int, start: int, stop: int) -> None:
    for a, b in chunks(x.shape[1], start, stop):
        keys = np.empty((b - a, x.shape[1]), I32)
        encode(x, keys, np.int32(0), a, b)
        keys.partition(middle, axis=-1)
        find_middle(x, keys, out, middle, a, b)


def ordered(code: Any, x: Any, out: Any, dim: int, number: Any) -> Any:
    """Let the threads work on the lines of x."""
    lines = as_lines(x, dim).view(I32)
    outer, n, inner = lines.shape
    target = as_lines(out, dim)
    target = target if out.dtype is I64 else target.view(I32)
    threads.run(code, (lines, target, number), outer * inner, max(1, CHUNK // 2 // n))
    return out


def served(x: Any, dim: int) -> Any:
    x = whole(x)
    return None if x is None or x.size == 0 or x.shape[dim] >= LOW else x


def places_of(x: Any, dim: int, descending: bool, many: int | None = None) -> Any:
    x = served(x, dim)
    if x is None:
        return None
    many = x.shape[dim] if many is None else many
    dim %= x.ndim
    out = empty((*x.shape[:dim], many, *x.shape[dim + 1 :]), I64)
    return ordered(place_lines, x, out, dim, np.int32(-descending))


@kernel(sort)
def sort_kernel(x, *, dim, descending):
    x = served(x, dim)
    if x is None:
        return None
    return ordered(sort_lines, x, empty(x.shape), dim, np.int32(-descending))


@kernel(sort.backward)
def sort_back(g, x, *, dim, descending, needs):
    places = places_of(x, dim, descending)
    if places is None:
        return None
    dx = scattered(zeros(x.shape), places, g, dim)
    return None if dx is None else (dx,)


@kernel(argsort)
def argsort_kernel(x, *, dim, descending):
    return places_of(x, dim, descending)


@kernel(argtopk)
def argtopk_kernel(x, *, k, dim):
    x = served(x, dim)
    if x is None or not 0 < k <= x.shape[dim]:
        return None
    dim %= x.ndim
    lines = as_lines(x, dim).view(I32)
    if k > FEWEST or lines.shape[2] < LEAST:
        return places_of(x, dim, True, k)
    out = empty((*x.shape[:dim], k, *x.shape[dim + 1 :]), I64)
    width, count, grain = blocks(lines, WIDTH)
    threads.run(largest_few, (lines, as_lines(out, dim), width), count, grain)
    return out


@kernel(argmedian)
def argmedian_kernel(x, *, dim):
    x = served(x, dim)
    if x is None:
        return None
    dim %= x.ndim
    out = empty((*x.shape[:dim], 1, *x.shape[dim + 1 :]), I64)
    places = ordered(middle_lines, x, out, dim, (x.shape[dim] - 1) // 2)
    return None if places is None else nan_first(np, x, places, dim)
