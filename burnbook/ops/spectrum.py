"""Fourier transforms, with complex numbers as pairs.

A complex value is two floats in a last dim of size 2: its real and imaginary part. The
transforms are linear, so the gradient of each is the transposed transform.
"""

from typing import Any

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import normal, op


def rfft_sizes(x: tuple[int, ...]) -> str | None:
    """A transform needs something to transform."""
    return None if x[-1] else "the last dim is empty"


@op("F>F", check=rfft_sizes, method=False)
def rfft_pairs(xp: ArrayNamespace, x: Array) -> Array:
    """The spectrum of real numbers: outₖ = Σₜ xₜ e^(−2πikt/n), k = 0 … ⌊n/2⌋.

    Shapes: x [..., n] -> [..., k, 2]
    """
    return pairs(xp, xp.fft.rfft(x, axis=-1), x.dtype)


def is_spectrum(x: tuple[int, ...], n: int) -> str | None:
    """Why the numbers are no spectrum, or None if they are."""
    return None if x[-1] == 2 else "the last dim of a spectrum has 2 elements"


@op("F>F", check=is_spectrum, method=False)
def rfft_back(xp: ArrayNamespace, x: Array, *, n: int) -> Array:
    """The transpose of rfft_pairs: outₜ = Re Σₖ xₖ e^(2πikt/n).

    Shapes: x [..., k, 2] -> [..., n]
    """
    values = complexes(xp, x) * x.dtype.type(n / 2)
    values[..., 0] *= 2
    if n % 2 == 0:
        values[..., n // 2] *= 2
    return xp.fft.irfft(values, n=n, axis=-1).astype(x.dtype, copy=False)


rfft_pairs.grad(x=lambda xp, g, x_shape: rfft_back(xp, g, n=x_shape[-1]))

rfft_pairs.examples(samples=[(normal(2, 6),), (normal(5),)])
rfft_back.grad(x=lambda xp, g: rfft_pairs(xp, g))

rfft_back.examples(samples=[(normal(2, 4, 2), {"n": 6})])


@op("F>F", method=False)
def irfft_pairs(xp: ArrayNamespace, x: Array, *, n: int) -> Array:
    """The real numbers that have a spectrum: the opposite of rfft_pairs.

    Shapes: x [..., k, 2] -> [..., n]
    """
    return xp.fft.irfft(complexes(xp, x), n=n, axis=-1).astype(x.dtype, copy=False)


@op("F>F", check=rfft_sizes, method=False)
def irfft_back(xp: ArrayNamespace, x: Array) -> Array:
    """The transpose of irfft_pairs: a spectrum whose inner terms count twice, over n.

    Shapes: x [..., n] -> [..., k, 2]
    """
    n = x.shape[-1]
    out = pairs(xp, xp.fft.rfft(x, axis=-1), x.dtype)
    out *= x.dtype.type(2 / n)
    out[..., 0, :] *= x.dtype.type(0.5)
    out[..., 0, 1] = 0
    if n % 2 == 0:
        out[..., -1, :] *= x.dtype.type(0.5)
        out[..., -1, 1] = 0
    return out


irfft_pairs.grad(x=lambda xp, g: irfft_back(xp, g))

irfft_pairs.examples(samples=[(normal(2, 4, 2), {"n": 6}), (normal(3, 2), {"n": 5})])
irfft_back.grad(x=lambda xp, g, x_shape: irfft_pairs(xp, g, n=x_shape[-1]))

irfft_back.examples(samples=[(normal(2, 6),), (normal(5),)])


@op("F>F", method=False)
def fft_pairs(xp: ArrayNamespace, x: Array, *, inverse: bool) -> Array:
    """The spectrum of complex numbers: outₖ = Σₜ xₜ e^(∓2πikt/n).

    Shapes: x [..., n, 2] -> [..., n, 2]
    """
    values = complexes(xp, x)
    if inverse:
        return pairs(xp, xp.fft.ifft(values, axis=-1) * values.shape[-1], x.dtype)
    return pairs(xp, xp.fft.fft(values, axis=-1), x.dtype)


fft_pairs.grad(x=lambda xp, g, inverse: fft_pairs(xp, g, inverse=not inverse))

fft_pairs.examples(samples=[(normal(3, 5, 2), {"inverse": False})])


def pairs(xp: ArrayNamespace, values: Array, dtype: np.dtype[Any]) -> Any:
    """Complex numbers as pairs of floats."""
    floats = xp.ascontiguousarray(values).view(values.real.dtype)
    return floats.reshape(*values.shape, 2).astype(dtype, copy=False)


def complexes(xp: ArrayNamespace, x: Array) -> Any:
    """Pairs of floats as complex numbers, which lie in memory as pairs of floats."""
    wide = xp.float64 if x.dtype.itemsize > 4 else xp.float32
    both = xp.ascontiguousarray(x.astype(wide, copy=False))
    return both.view(xp.complex128 if wide is xp.float64 else xp.complex64)[..., 0]
