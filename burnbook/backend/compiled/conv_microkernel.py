"""Weighted sums of shifted stretches, held in registers.

A convolution adds up stretches of its input, each shifted to one tap of the kernel and
weighted. Four sums of four vectors fill the vector registers, share every stretch that
is read, and leave the registers when they are complete.
"""

from typing import Any

from burnbook.backend.compiled.runtime.jit import part
from burnbook.backend.compiled.runtime.simd import SIDE, put, spread, take

SUMS = 4  # how many sums share what is read
FULL = 4 * SIDE  # how far they reach at a time
REACH = 1024  # numbers of a plane to sum up before the sums are put in their places


@part
def whole_steps(n: int) -> int:
    """n, rounded up so that a loop over vector registers has no rest."""
    return (n + SIDE - 1) // SIDE * SIDE


@part
def shifted_sums(
    x: Any, at: int, step: int, places: Any, w: Any, start: Any, b: int, t: Any, n: int
) -> None:
    """t[m, i, p] = start[m, b, i] + Σₖ w[m, b, k, i] · x[at + step m + placesₖ + p].

    For i < SUMS and p < n, a multiple of SIDE; x and t are flat.
    """
    for m in range(w.shape[0]):
        s0, s1 = spread(start[m, b, 0]), spread(start[m, b, 1])
        s2, s3 = spread(start[m, b, 2]), spread(start[m, b, 3])
        first, to, p = at + m * step, m * SUMS * n, 0
        while p + FULL <= n:
            a0 = a1 = a2 = a3 = s0
            b0 = b1 = b2 = b3 = s1
            c0 = c1 = c2 = c3 = s2
            d0 = d1 = d2 = d3 = s3
            for k in range(places.size):
                q = first + places[k] + p
                u0, u1 = take(x, q), take(x, q + SIDE)
                u2, u3 = take(x, q + 2 * SIDE), take(x, q + 3 * SIDE)
                w0, w1 = spread(w[m, b, k, 0]), spread(w[m, b, k, 1])
                w2, w3 = spread(w[m, b, k, 2]), spread(w[m, b, k, 3])
                a0, a1, a2, a3 = a0 + w0 * u0, a1 + w0 * u1, a2 + w0 * u2, a3 + w0 * u3
                b0, b1, b2, b3 = b0 + w1 * u0, b1 + w1 * u1, b2 + w1 * u2, b3 + w1 * u3
                c0, c1, c2, c3 = c0 + w2 * u0, c1 + w2 * u1, c2 + w2 * u2, c3 + w2 * u3
                d0, d1, d2, d3 = d0 + w3 * u0, d1 + w3 * u1, d2 + w3 * u2, d3 + w3 * u3
            put_four(t, to + p, a0, a1, a2, a3)
            put_four(t, to + n + p, b0, b1, b2, b3)
            put_four(t, to + 2 * n + p, c0, c1, c2, c3)
            put_four(t, to + 3 * n + p, d0, d1, d2, d3)
            p += FULL
        while p < n:
            a, e, c, d = s0, s1, s2, s3
            for k in range(places.size):
                u = take(x, first + places[k] + p)
                a, e = a + spread(w[m, b, k, 0]) * u, e + spread(w[m, b, k, 1]) * u
                c, d = c + spread(w[m, b, k, 2]) * u, d + spread(w[m, b, k, 3]) * u
            put(t, to + p, a)
            put(t, to + n + p, e)
            put(t, to + 2 * n + p, c)
            put(t, to + 3 * n + p, d)
            p += SIDE


@part
def put_four(t: Any, at: int, a: Any, b: Any, c: Any, d: Any) -> None:
    """Write four vectors side by side."""
    put(t, at, a)
    put(t, at + SIDE, b)
    put(t, at + 2 * SIDE, c)
    put(t, at + 3 * SIDE, d)


@part
def copy_blocks(
    target: Any,
    to: int,
    skips: tuple[int, int],
    source: Any,
    at: int,
    strides: tuple[int, int],
    shape: tuple[int, int, int],
) -> None:
    """Copy blocks of rows of numbers; shape says how many of each.

    skips and strides: how far apart blocks, and rows, begin where they go and are.
    """
    for block in range(shape[0]):
        for r in range(shape[1]):
            a = at + block * strides[0] + r * strides[1]
            b = to + block * skips[0] + r * skips[1]
            if shape[2] < SIDE:
                for q in range(shape[2]):
                    target[b + q] = source[a + q]
            else:  # the last vector may begin inside the one before
                last, p = shape[2] - SIDE, 0
                while p < last:
                    put(target, b + p, take(source, a + p))
                    p += SIDE
                put(target, b + last, take(source, a + last))
