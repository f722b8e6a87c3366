"""Windows and spectra."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnbook.importers.onnx.operators.registry import host_operator
from burnbook.importers.onnx.values import Value, dtype_of, ints, number


def _window(name: str, word: str, parts: tuple[float, ...]) -> None:
    def on_array(size: Value, *, output_datatype: int = 1, periodic: int = 1) -> Any:
        count = int(number(size))
        angle = 2 * np.pi * np.arange(count) / (count if periodic else count - 1)
        found = sum((-1) ** k * a * np.cos(k * angle) for k, a in enumerate(parts))
        return np.asarray(found).astype(dtype_of(output_datatype))

    on_array.__name__ = word
    on_array.__doc__ = f"A {name[:-6]} window."
    host_operator(name)(on_array)


_window("HannWindow", "hann_window", (0.5, 0.5))
_window("HammingWindow", "hamming_window", (25 / 46, 21 / 46))
_window("BlackmanWindow", "blackman_window", (0.42, 0.5, 0.08))


def _complex(x: Value) -> Any:
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]


def _pairs(x: Value, dtype: Value) -> Any:
    return np.stack([x.real, x.imag], -1).astype(dtype)


@host_operator("DFT")
def dft(
    x: Value,
    length: Value = None,
    axis: Value = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Any:
    """The discrete Fourier transform along an axis; the last dim has pairs."""
    dim = -2 if axis is None else ints(axis)[0]
    dim = dim + x.ndim if dim < 0 else dim
    count = x.shape[dim] if length is None else int(number(length))
    if inverse and onesided:
        made = np.fft.irfft(_complex(x), count if length is not None else None, dim)
        return made[..., None].astype(x.dtype)
    wide = _complex(x)
    found = (np.fft.ifft if inverse else np.fft.fft)(wide, count, dim)
    if onesided:
        found = np.take(found, np.arange(count // 2 + 1), dim)
    return _pairs(found, x.dtype)


@host_operator("STFT")
def stft(
    signal: Value,
    step: Value,
    window: Value = None,
    length: Value = None,
    *,
    onesided: int = 1,
) -> Any:
    """The spectrum of each frame of a signal, seen through a window."""
    size = len(window) if length is None else int(number(length))
    hop = int(number(step))
    shape = np.ones(size) if window is None else window.astype(np.float64)
    if len(shape) < size:  # in the middle of the frame
        before = (size - len(shape)) // 2
        shape = np.pad(shape, (before, size - len(shape) - before))
    held = _complex(signal) if signal.ndim == 3 else signal
    count = 1 + (held.shape[1] - size) // hop
    frames = np.stack([held[:, i * hop : i * hop + size] for i in range(count)], 1)
    found = np.fft.fft(frames * shape, axis=-1)
    if onesided:
        found = found[..., : size // 2 + 1]
    return _pairs(found, signal.dtype)


@host_operator("MelWeightMatrix")
def mel_weight_matrix(
    bins: Value,
    length: Value,
    rate: Value,
    low: Value,
    high: Value,
    *,
    output_datatype: int = 1,
) -> Any:
    """How much of each frequency each band of the mel scale takes."""
    count, size = int(number(bins)), int(number(length))
    spectrum = size // 2 + 1

    def mel(hertz: float) -> float:
        return 2595 * np.log10(1 + hertz / 700)

    start, end = mel(float(number(low))), mel(float(number(high)))
    edges = np.arange(count + 2) * ((end - start) / (count + 2)) + start
    hertz = 700 * (10 ** (edges / 2595) - 1)
    places = ((size + 1) * hertz) // float(number(rate))
    places = places.astype(int)
    found = np.zeros((spectrum, count))
    for i in range(count):
        left, middle, right = places[i : i + 3]
        if middle == left:
            found[middle, i] = 1
        else:
            row = np.arange(left, middle + 1)
            found[row, i] = (row - left) / (middle - left)
        if right > middle:
            row = np.arange(middle, right)
            found[row, i] = (right - row) / (right - middle)
    return found.astype(dtype_of(output_datatype))
