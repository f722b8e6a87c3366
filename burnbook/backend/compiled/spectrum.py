"""Fourier transforms of sixteen rows at a time.

The rows are transposed, so that sixteen numbers with one index lie side by side, and
every step of the transform is the same for all of them. A step joins four transforms of
a quarter of the length, in Stockham's order, which needs no reversing of bits. That of
n real numbers is one of n/2 complex ones and a last step that takes them apart.

Powers of two are served here; NumPy transforms other lengths, by two threads.

Measured by the family spectrum, of tests/bench.
"""

from functools import cache
from math import pi, prod
from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import (
    counting_part,
    f32,
    kernel_code,
    part,
)
from burnbook.backend.compiled.runtime.registry import kernel
from burnbook.backend.compiled.runtime.simd import (
    LANES,
    broadcast,
    load,
    store,
    transpose,
)
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.compiled.shape import whole
from burnbook.ops.spectrum import (
    fft_pairs,
    irfft_back,
    irfft_pairs,
    rfft_back,
    rfft_pairs,
)

SHORTEST, LONGEST = 16, 1 << 14
FEWEST = 4  # rows; below, most of a vector would be empty
GRAIN = 1 << 15  # elements of a part
PAIR = 2 * LANES  # floats of one complex number of each row
TABLE = "f4[::1], f4[::1], "


@part
def step_of_four(z, out, at, gap, to, step, roots):
    """Four numbers `gap` apart become four numbers `step` apart, for every row."""
    ar, ai = load(z, at), load(z, at + LANES)
    br, bi = load(z, at + gap), load(z, at + gap + LANES)
    cr, ci = load(z, at + 2 * gap), load(z, at + 2 * gap + LANES)
    dr, di = load(z, at + 3 * gap), load(z, at + 3 * gap + LANES)
    store(out, to, (ar + cr) + (br + dr))
    store(out, to + LANES, (ai + ci) + (bi + di))
    store_rotated(
        out, to + step, (ar - cr) + (bi - di), (ai - ci) - (br - dr), roots, 0
    )
    store_rotated(
        out, to + 2 * step, (ar + cr) - (br + dr), (ai + ci) - (bi + di), roots, 1
    )
    store_rotated(
        out, to + 3 * step, (ar - cr) - (bi - di), (ai - ci) + (br - dr), roots, 2
    )


@part
def store_rotated(out, to, r, i, roots, k):
    """Multiply by a number on the unit circle, and write."""
    c, s = broadcast(roots[2 * k]), broadcast(roots[2 * k + 1])
    store(out, to, r * c - i * s)
    store(out, to + LANES, r * s + i * c)


@part
def step_of_two(z, half):
    for at in range(0, half, LANES):
        a, b = load(z, at), load(z, at + half)
        store(z, at, a + b)
        store(z, at + half, a - b)


@counting_part
def transform(z, other, n, cos, sin, by):
    """The transform of n complex numbers of sixteen rows; it is in z or in the other.

    cos, sin: of the angles 2πk/(n · by).
    """
    left, s, stride = n, PAIR, by
    while left >= 4:
        m = left // 4
        for p in range(m):
            k = p * stride
            roots = (cos[k], -sin[k], cos[2 * k], -sin[2 * k], cos[3 * k], -sin[3 * k])
            for q in range(0, s, PAIR):
                step_of_four(z, other, q + s * p, s * m, q + s * 4 * p, s, roots)
        z, other = other, z
        left, s, stride = m, s * 4, stride * 4
    if left == 2:
        step_of_two(z, n // 2 * PAIR)
    return z


@part
def load_rows(x, at, width, z):
    """Turn sixteen rows of a width into numbers that stand side by side."""
    whole_blocks = width // LANES * LANES
    for k in range(0, whole_blocks, LANES):
        transpose(x, at + k, width, z, k * LANES, LANES)
    for r in range(LANES):
        for k in range(whole_blocks, width):
            z[k * LANES + r] = x[at + r * width + k]


@part
def store_rows(z, out, at, width):
    """The opposite."""
    whole_blocks = width // LANES * LANES
    for k in range(0, whole_blocks, LANES):
        transpose(z, k * LANES, LANES, out, at + k, width)
    for r in range(LANES):
        for k in range(whole_blocks, width):
            out[at + r * width + k] = z[k * LANES + r]


@part
def swap_parts(z):
    """Let real and imaginary parts change places."""
    for at in range(0, z.size, PAIR):
        r, i = load(z, at), load(z, at + LANES)
        store(z, at, i)
        store(z, at + LANES, r)


@part
def unpack_real(z, out, n, cos, sin, scale):
    """The spectrum of n real numbers, from that of their pairs as complex numbers.

    With E and O the spectra of the even and the odd ones: outₖ = Eₖ + e^(−2πik/n) Oₖ.
    """
    h, half = n // 2, broadcast(scale * f32(0.5))
    for k in range(h // 2 + 1):
        a, b = k * PAIR, (h - k) % h * PAIR
        ar, ai, br, bi = load(z, a), load(z, a + LANES), load(z, b), load(z, b + LANES)
        c, s = broadcast(cos[k]), broadcast(sin[k])
        er, ei = (ar + br) * half, (ai - bi) * half
        pr, pi_ = (ai + bi) * half, (br - ar) * half
        tr, ti = pr * c + pi_ * s, pi_ * c - pr * s
        store(out, a, er + tr)
        store(out, a + LANES, ei + ti)
        store(out, (h - k) * PAIR, er - tr)
        store(out, (h - k) * PAIR + LANES, ti - ei)


@part
def pack_real(z, out, n, cos, sin, scale):
    """The opposite, times n/2: a spectrum of n/2 complex numbers.

    Real and imaginary parts change places, which turns the next transform round.
    """
    h, factor = n // 2, broadcast(scale)
    for k in range(h // 2 + 1):
        a, b = k * PAIR, (h - k) * PAIR
        ar, ai, br, bi = load(z, a), load(z, a + LANES), load(z, b), load(z, b + LANES)
        c, s = broadcast(cos[k]), broadcast(sin[k])
        er, ei = (ar + br) * factor, (ai - bi) * factor
        dr, di = (ar - br) * factor, (ai + bi) * factor
        pr, pi_ = dr * c - di * s, dr * s + di * c
        store(out, a + LANES, er - pi_)
        store(out, a, ei + pr)
        if 0 < k < h:
            store(out, b + LANES, er + pi_)
            store(out, b, pr - ei)


@kernel_code(f"void(f4[::1], f4[::1], i8, {TABLE}f4, b1, i8, i8)")
def real_range(x, out, n, cos, sin, scale, transposed, start, stop):
    """Spectra of some rows of real numbers, sixteen at a time, times a scale.

    transposed: that of the inverse; the inner terms count twice.
    """
    z, other = np.empty((n + 2) * LANES, f32), np.empty((n + 2) * LANES, f32)
    for p in range(start, stop):
        load_rows(x, p * LANES * n, n, z)
        found = transform(z, other, n // 2, cos, sin, 2)
        spectrum = other if found is z else z
        unpack_real(found, spectrum, n, cos, sin, scale)
        if transposed:
            for j in range(LANES):
                spectrum[j] *= f32(0.5)
                spectrum[n * LANES + j] *= f32(0.5)
                spectrum[LANES + j] = spectrum[(n + 1) * LANES + j] = f32(0)
        store_rows(spectrum, out, p * LANES * (n + 2), n + 2)


@kernel_code(f"void(f4[::1], f4[::1], i8, {TABLE}f4, b1, i8, i8)")
def inverse_range(x, out, n, cos, sin, scale, transposed, start, stop):
    """Real numbers with some spectra, sixteen rows at a time, times a scale.

    transposed: that of the spectrum; the ends count twice.
    """
    z, other = np.empty((n + 2) * LANES, f32), np.empty((n + 2) * LANES, f32)
    ends = f32(2) if transposed else f32(1)
    for p in range(start, stop):
        load_rows(x, p * LANES * (n + 2), n + 2, z)
        for j in range(LANES):
            z[j] *= ends
            z[n * LANES + j] *= ends
            z[LANES + j] = z[(n + 1) * LANES + j] = f32(0)
        pack_real(z, other, n, cos, sin, scale)
        found = transform(other, z, n // 2, cos, sin, 2)
        swap_parts(found[: n * LANES])
        store_rows(found, out, p * LANES * n, n)


@kernel_code(f"void(f4[::1], f4[::1], i8, {TABLE}b1, i8, i8)")
def complex_range(x, out, n, cos, sin, inverse, start, stop):
    """Spectra of some rows of complex numbers, sixteen at a time.

    inverse: with real and imaginary parts in each other's place, before and after.
    """
    z, other = np.empty(n * PAIR, f32), np.empty(n * PAIR, f32)
    for p in range(start, stop):
        load_rows(x, p * PAIR * n, 2 * n, z)
        if inverse:
            swap_parts(z)
        found = transform(z, other, n, cos, sin, 1)
        if inverse:
            swap_parts(found)
        store_rows(found, out, p * PAIR * n, 2 * n)


@cache
def table(n: int) -> tuple[Any, Any]:
    """Cosine and sine of n angles round the circle."""
    angles = 2 * pi * np.arange(n) / n
    return np.cos(angles).astype(f32), np.sin(angles).astype(f32)


def served(rows: int, n: int) -> bool:
    return SHORTEST <= n <= LONGEST and n & (n - 1) == 0 and rows >= FEWEST


def by_sixteen(code: Any, x: Any, out: Any, n: int, *numbers: Any) -> None:
    """Run a kernel on rows; the last ones are filled up to sixteen."""
    rows = len(x)
    tiles = rows // LANES
    full = tiles * LANES
    if tiles:
        views = (x[:full].reshape(-1), out[:full].reshape(-1))
        args = (*views, n, *table(n), *numbers)
        threads.run(code, args, tiles, max(1, GRAIN // (LANES * n)))
    if full < rows:
        last = np.zeros((LANES, x.shape[1]), f32)
        last[: rows - full] = x[full:]
        found = np.empty((LANES, out.shape[1]), f32)
        code(last.reshape(-1), found.reshape(-1), n, *table(n), *numbers, 0, 1)
        out[full:] = found[: rows - full]


def spectrum_of(x: Any, scale: float, transposed: bool) -> Any:
    x = whole(x)
    if x is None or not served(x.size // max(1, x.shape[-1]), x.shape[-1]):
        return None
    n = x.shape[-1]
    out = empty((*x.shape[:-1], n // 2 + 1, 2))
    rows = (x.reshape(-1, n), out.reshape(-1, n + 2))
    by_sixteen(real_range, *rows, n, f32(scale), transposed)
    return out


def signal_of(x: Any, n: int, scale: float, transposed: bool) -> Any:
    x = whole(x)
    if x is None or x.shape[-2] != n // 2 + 1 or not served(prod(x.shape[:-2]), n):
        return None
    out = empty((*x.shape[:-2], n))
    rows = (x.reshape(-1, n + 2), out.reshape(-1, n))
    by_sixteen(inverse_range, *rows, n, f32(scale), transposed)
    return out


@kernel(rfft_pairs)
def rfft_kernel(x):
    return spectrum_of(x, 1.0, transposed=False)


@kernel(irfft_back)
def irfft_back_kernel(x):
    return spectrum_of(x, 2 / max(1, x.shape[-1]), transposed=True)


@kernel(irfft_pairs)
def irfft_kernel(x, *, n):
    return signal_of(x, n, 1 / max(1, n), transposed=False)


@kernel(rfft_back)
def rfft_back_kernel(x, *, n):
    return signal_of(x, n, 0.5, transposed=True)


@kernel(fft_pairs)
def fft_kernel(x, *, inverse):
    x = whole(x)
    if x is None or not served(prod(x.shape[:-2]), x.shape[-2]):
        return None
    n = x.shape[-2]
    out = empty(x.shape)
    rows = (x.reshape(-1, 2 * n), out.reshape(-1, 2 * n))
    by_sixteen(complex_range, *rows, n, inverse)
    return out
