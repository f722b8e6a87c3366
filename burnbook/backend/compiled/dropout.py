"""Advanced · Performance. Dropout in one pass: draw, scale and forget the mask."""

from typing import Any

import numpy as np

from burnbook.backend.compiled.buffers import empty
from burnbook.backend.compiled.jit import exact_code, exact_part, f32, wide_product
from burnbook.backend.compiled.registry import flat, kernel, plain_f32
from burnbook.backend.compiled.team import team
from burnbook.ops.random import CHANCES, dropout, dropout_limits

GRAIN = 4096  # elements whose random bits are drawn at a time; 16 for each counter


@exact_part
def draw(words: Any, counter: Any, key_0: Any, key_1: Any) -> None:
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
def drop(x: Any, out: Any, bits: Any, threshold: Any, scale: Any) -> None:
    for i in range(x.size):
        factor = scale if bits[i] >= threshold else f32(0)
        out[i] = x[i] * factor


@exact_code("void(f4[::1], f4[::1], u8, u8, u2, f4, i8, i8)")
def dropout_range(
    x: Any,
    out: Any,
    key_0: Any,
    key_1: Any,
    threshold: Any,
    scale: Any,
    start: int,
    stop: int,
) -> None:
    words = np.empty(GRAIN // 4, np.uint64)
    bits = words.view(np.uint16)
    for first in range(start, stop, GRAIN):
        last = min(first + GRAIN, stop)
        draw(words, np.uint64(first // 16 + 1), key_0, key_1)
        drop(x[first:last], out[first:last], bits, threshold, scale)


@kernel(dropout)
def dropout_kernel(x: Any, *, prob: float, key: tuple[int, int]) -> Any:
    threshold, scale = dropout_limits(prob)
    if threshold == CHANCES or not plain_f32(x):
        return None
    out = empty(x.shape)
    limits = (np.uint16(threshold), f32(scale))
    args = (flat(x), flat(out), np.uint64(key[0]), np.uint64(key[1]), *limits)
    if x.size < 8 * GRAIN:
        dropout_range(*args, 0, x.size)
    else:
        team.run(dropout_range, args, x.size, GRAIN)
    return out
