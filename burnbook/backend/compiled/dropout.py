"""Dropout in one pass: draw the mask and scale what stays.

Measured by W1 and the family random, of tests/bench.
"""

import threading
from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import (
    exact_code,
    exact_part,
    f32,
    wide_product,
)
from burnbook.backend.compiled.runtime.registry import flat, kernel, plain_f32
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.ops.random import CHANCES, dropout, dropout_limits

GRAIN = 4096  # elements whose random bits are drawn at a time; 16 for each counter


@exact_part
def draw(words, counter, key_0, key_1):
    """Philox4x64-10, as burnbook.ops.random.philox writes it out for arrays."""
    for i in range(0, words.size, 4):
        a, b, c, d = (
            counter + np.uint64(i // 4),
            np.uint64(0),
            np.uint64(0),
            np.uint64(0),
        )
        low, high = key_0, key_1
        for _ in range(10):
            a_high, a_low = wide_product(np.uint64(0xD2E7470EE14C6C93), a)
            c_high, c_low = wide_product(np.uint64(0xCA5A826395121157), c)
            a, b, c, d = c_high ^ b ^ low, c_low, a_high ^ d ^ high, a_low
            low += np.uint64(0x9E3779B97F4A7C15)
            high += np.uint64(0xBB67AE8584CAA73B)
        words[i] = a
        words[i + 1] = b
        words[i + 2] = c
        words[i + 3] = d


@exact_part
def compare(bits, threshold, mask):
    """Which values stay."""
    for i in range(mask.size):
        mask[i] = bits[i] >= threshold


@exact_part
def scale_kept(x, mask, scale, out):
    """The product with 0 or scale; not a choice, so that NaN stays NaN."""
    for i in range(x.size):
        out[i] = x[i] * (scale if mask[i] else f32(0))


@exact_code("void(f4[::1], f4[::1], b1[::1], u8, u8, u2, f4, i8, i8)")
def draw_and_drop(x, out, mask, key_0, key_1, threshold, scale, start, stop):
    """Dropout for a range, with the mask drawn from the key."""
    words = np.empty(GRAIN // 4, np.uint64)
    bits = words.view(np.uint16)
    for first in range(start, stop, GRAIN):
        last = min(first + GRAIN, stop)
        draw(words, np.uint64(first // 16 + 1), key_0, key_1)
        compare(bits, threshold, mask[first:last])
        scale_kept(x[first:last], mask[first:last], scale, out[first:last])


@exact_code("void(f4[::1], f4[::1], b1[::1], f4, i8, i8)")
def drop_again(x, out, mask, scale, start, stop):
    """Dropout for a range, with a mask that was drawn before."""
    scale_kept(x[start:stop], mask[start:stop], scale, out[start:stop])


@exact_code("void(f4[::1], f4[::1], u8, u8, u2, f4, i8, i8)")
def draw_and_rectify(x, out, key_0, key_1, threshold, scale, start, stop):
    """relu(dropout(x)) for a range; no mask is needed later, as `rectified_slopes`
    sees what stayed."""
    words = np.empty(GRAIN // 4, np.uint64)
    bits = words.view(np.uint16)
    for first in range(start, stop, GRAIN):
        last = min(first + GRAIN, stop)
        draw(words, np.uint64(first // 16 + 1), key_0, key_1)
        some, to = x[first:last], out[first:last]
        for i in range(some.size):
            u = some[i] * (scale if bits[i] >= threshold else f32(0))
            to[i] = f32(0) if u < f32(0) else u


@exact_part
def slopes_where_positive(g, y, scale, out):
    """out = g (y > 0) scale, with products, so that NaN stays NaN."""
    for i in range(out.size):
        out[i] = g[i] * (f32(1) if y[i] > f32(0) else f32(0)) * scale


@exact_code("void(f4[::1], f4[::1], f4[::1], f4, i8, i8)")
def rectified_slopes(g, y, out, scale, start, stop):
    """The gradient of y = relu(dropout(x)) for a range.

    scale: of dropout. Where y is above zero x was kept; elsewhere relu gives nothing
    back, whether or not it was.
    """
    slopes_where_positive(g[start:stop], y[start:stop], scale, out[start:stop])


class Masks:
    """The masks of recent keys, each for one more use: that of the gradient.

    A mask that is not here is drawn again, so losing one costs time and nothing else.
    """

    def __init__(self, most_bytes: int = 1 << 26):
        self.most_bytes = most_bytes
        self.held: dict[Any, np.ndarray] = {}
        self.bytes = 0
        self.lock = threading.Lock()

    def take(self, name: Any) -> np.ndarray | None:
        """Hand a mask out for good."""
        with self.lock:
            mask = self.held.pop(name, None)
            self.bytes -= 0 if mask is None else mask.size
        return mask

    def keep(self, name: Any, mask: np.ndarray) -> None:
        """Keep a mask; the oldest go when there are too many."""
        with self.lock:
            before = self.held.pop(name, None)
            self.held[name] = mask
            self.bytes += mask.size - (0 if before is None else before.size)
            while self.bytes > self.most_bytes:
                oldest = next(iter(self.held))
                self.bytes -= self.held.pop(oldest).size


masks = Masks()


@kernel(dropout)
def dropout_kernel(x, *, prob, key):
    """Dropout, drawing the mask unless it was drawn a moment ago."""
    threshold, scale = dropout_limits(prob)
    if threshold == CHANCES or not plain_f32(x):
        return None
    out = empty(x.shape)
    name = (key, threshold, x.size)
    mask = masks.take(name)
    if mask is not None:
        threads.run(drop_again, (flat(x), flat(out), mask, f32(scale)), x.size, 1 << 16)
        return out
    mask = np.empty(x.size, bool)
    numbers = (np.uint64(key[0]), np.uint64(key[1]), np.uint16(threshold), f32(scale))
    threads.run(draw_and_drop, (flat(x), flat(out), mask, *numbers), x.size, GRAIN * 8)
    masks.keep(name, mask)
    return out
