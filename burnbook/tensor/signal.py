"""Signals: Fourier transforms, windows, spectra over time.

A complex tensor is a pair of Float tensors, real and imaginary part. All transforms can
be differentiated.
"""

from dataclasses import dataclass
from math import pi

import numpy as np

from burnbook.backend import Backend, Numpy
from burnbook.core.dtypes import Float
from burnbook.core.errors import ShapeError
from burnbook.ops import spectrum
from burnbook.tensor import Tensor
from burnbook.tensor.methods import apply


def rfft(signal: Tensor, dim: int, n: int | None = None) -> tuple[Tensor, Tensor]:
    """The spectrum of a real signal along a dim: outₖ = Σₜ xₜ e^(−2πikt/n).

    `n` cuts the signal, or fills it up with zeros, first.
    Shapes: signal [..., n, ...] -> [..., n/2+1, ...], [..., n/2+1, ...]
    """
    place = dim % signal.rank
    lines = _fit(signal, place, n).movedim(place, -1)
    return _parts(apply(spectrum.rfft_pairs, lines), place)


def irfft(re: Tensor, im: Tensor, dim: int, n: int | None = None) -> Tensor:
    """The real signal of n elements that has a spectrum; n is 2 (k − 1) if left out.

    Shapes: re [..., k, ...], im [..., k, ...] -> [..., n, ...]
    """
    place = dim % re.rank
    size = 2 * (re.dims()[place] - 1) if n is None else n
    if size < 1:
        raise ShapeError("irfft", f"a signal of {size} elements")
    re, im = (_fit(part, place, size // 2 + 1) for part in (re, im))
    both = _join(re.movedim(place, -1), im.movedim(place, -1))
    return apply(spectrum.irfft_pairs, both, n=size).movedim(-1, place)


def cfft(
    re: Tensor, im: Tensor, dim: int, n: int | None = None
) -> tuple[Tensor, Tensor]:
    """The spectrum of a complex signal along a dim.

    Shapes: re [..., n, ...], im [..., n, ...] -> [..., n, ...], [..., n, ...]
    """
    place = dim % re.rank
    re, im = (_fit(part, place, n).movedim(place, -1) for part in (re, im))
    return _parts(apply(spectrum.fft_pairs, _join(re, im), inverse=False), place)


def hann_window(
    size: int, periodic: bool = True, device: Backend | None = None
) -> Tensor:
    """A raised cosine: out = ½ − ½ cos(2πt/N)."""
    return _cosines(size, periodic, device, 0.5, 0.5)


def hamming_window(
    size: int, periodic: bool = True, device: Backend | None = None
) -> Tensor:
    """A raised cosine on a pedestal: out = 25/46 − 21/46 cos(2πt/N)."""
    return _cosines(size, periodic, device, 25 / 46, 21 / 46)


def blackman_window(
    size: int, periodic: bool = True, device: Backend | None = None
) -> Tensor:
    """Two cosines: out = 0.42 − 0.5 cos(2πt/N) + 0.08 cos(4πt/N)."""
    return _cosines(size, periodic, device, 0.42, 0.5, 0.08)


@dataclass(frozen=True)
class StftOptions:
    """How a signal is cut into frames; hop_length is n_fft / 4 if left out."""

    n_fft: int
    hop_length: int | None = None
    win_length: int | None = None
    center: bool = True
    onesided: bool = True

    @property
    def hop(self) -> int:
        """The step from one frame to the next."""
        return self.n_fft // 4 if self.hop_length is None else self.hop_length

    def check(self, where: str) -> None:
        """Refuse sizes that make no frames."""
        width = self.n_fft if self.win_length is None else self.win_length
        if self.n_fft < 1 or not 1 <= self.hop <= width or width > self.n_fft:
            raise ShapeError(
                where,
                f"hop {self.hop}, window {width} and n_fft {self.n_fft} do not fit",
                cure="1 ≤ hop ≤ window ≤ n_fft",
            )


def stft(signal: Tensor, window: Tensor | None, options: StftOptions) -> Tensor:
    """The spectrum of overlapping pieces of a signal.

    Shapes: signal [b, t], window [w] -> [b, frames, freqs, 2]
    """
    options.check("stft")
    n = options.n_fft
    if signal.rank != 2:
        raise ShapeError("stft", f"a signal [batch, time], not rank {signal.rank}")
    if options.center:
        signal = signal.pad([(n // 2, n // 2)], "reflect")
    frames = signal.unfold(1, n, options.hop) * _whole(window, options, signal.backend)
    if options.onesided:
        return apply(spectrum.rfft_pairs, frames)
    both = _join(frames, frames.zeros_like())
    return apply(spectrum.fft_pairs, both, inverse=False)


def istft(
    matrix: Tensor, window: Tensor | None, length: int | None, options: StftOptions
) -> Tensor:
    """The signal whose stft this is, from overlapping frames.

    Shapes: matrix [b, frames, freqs, 2], window [w] -> [b, t]
    """
    options.check("istft")
    n, hop = options.n_fft, options.hop
    if matrix.rank != 4 or matrix.dims()[3] != 2:
        raise ShapeError("istft", f"{list(matrix.dims())} is not the result of stft")
    if options.onesided:
        frames = apply(spectrum.irfft_pairs, matrix, n=n)
    else:
        frames = apply(spectrum.fft_pairs, matrix, inverse=True)
        frames = frames.narrow(3, 0, 1).squeeze(3) / n
    shape = _whole(window, options, matrix.backend)
    _, count, _ = frames.dims()
    total = (count - 1) * hop + n
    starts = np.arange(count)[:, None] * hop + np.arange(n)
    places = Tensor.from_ints(starts.reshape(-1), matrix.backend)
    signal = _overlap(frames * shape, places, total)
    weight = _overlap((shape * shape).expand((1, count, n)), places, total)
    signal = signal / weight.mask_fill(weight.lower(1e-11), 1.0)
    start = n // 2 if options.center else 0
    stop = total - start if length is None else min(start + length, total)
    cut = signal.narrow(1, start, stop - start)
    missing = 0 if length is None else length - (stop - start)
    return cut.pad([(0, missing)]) if missing else cut


def _overlap(frames: Tensor, places: Tensor, total: int) -> Tensor:
    """Add frames up where they lie on top of each other."""
    batch, count, n = frames.dims()
    zeros = Tensor.zeros([batch, total], frames.backend)
    return zeros.select_assign(1, places, frames.reshape_to((batch, count * n)))


def _whole(window: Tensor | None, options: StftOptions, device: Backend) -> Tensor:
    """The window as [1, 1, n_fft], with zeros on both sides where it is shorter."""
    width = options.n_fft if options.win_length is None else options.win_length
    window = Tensor.ones([width], device) if window is None else window
    if window.dims() != (width,):
        raise ShapeError("window", f"{list(window.dims())} is not [{width}]")
    left = (options.n_fft - width) // 2
    return window.pad([(left, options.n_fft - width - left)]).unsqueeze(3)


def _cosines(
    size: int, periodic: bool, device: Backend | None, *weights: float
) -> Tensor:
    """The alternating sum Σⱼ (−1)ʲ wⱼ cos(2πjt/N)."""
    if size < 0:
        raise ShapeError("window", f"{size} elements")
    turns = max(size if periodic else size - 1, 1)
    t = np.arange(size) * (2 * pi / turns)
    values = sum((-1) ** j * weight * np.cos(j * t) for j, weight in enumerate(weights))
    values = np.ones(size) if size == 1 else np.asarray(values)
    return Tensor.from_data(values, device or Numpy(), Float)


def _fit(x: Tensor, dim: int, n: int | None) -> Tensor:
    """Cut a dim to n elements, or fill it up with zeros."""
    size = x.dims()[dim]
    if n is None or n == size:
        return x
    if n < size:
        return x.narrow(dim, 0, n)
    return x.pad([(0, n - size)] + [(0, 0)] * (x.rank - dim - 1))


def _join(re: Tensor, im: Tensor) -> Tensor:
    return Tensor.stack([re, im], re.rank)


def _parts(both: Tensor, place: int) -> tuple[Tensor, Tensor]:
    """Real and imaginary part, with the transformed dim back in its place."""
    last = both.rank - 1
    re, im = (both.narrow(last, i, 1).squeeze(last) for i in (0, 1))
    return re.movedim(-1, place), im.movedim(-1, place)
