"""Local means under a Gaussian window, and the similarity they give."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnbook.core.errors import ConfigError, ShapeError


def positive(where: str, **numbers: float) -> None:
    """Refuse settings that are not above zero."""
    for name, number in numbers.items():
        if not 0.0 < number < float("inf"):
            what = f"{name} = {number!r} is not a number above 0"
            raise ConfigError(where, what)


def odd(where: str, kernel_size: int) -> None:
    """Refuse a window without a center."""
    if type(kernel_size) is not int or kernel_size < 1 or kernel_size % 2 == 0:
        what = f"kernel_size = {kernel_size!r} has no center"
        raise ConfigError(where, what, cure="an odd number, such as kernel_size=11")


def gaussian(size: int, sigma: float) -> np.ndarray:
    """The weights of a window: exp(−x² / 2σ²) around its center, of sum 1.

    Example:
        >>> gaussian(3, 1.0).round(3)
        array([0.274, 0.452, 0.274])
    """
    x = np.arange(size) - size // 2
    weights = np.exp(-(x**2) / (2.0 * sigma**2))
    return weights / weights.sum()


def local_means(x: np.ndarray, weights: np.ndarray, mode: Any) -> np.ndarray:
    """The mean around every pixel; mode says how the image is padded.

    Shapes: x [n, c, h, w] -> [n, c, h, w]
    Why: a Gaussian window is the product of a row and a column, so one pass over each
    axis does the work of all pairs.
    """
    for axis in (2, 3):
        size, margin = x.shape[axis], len(weights) // 2
        edges = [(0, 0)] * 4
        edges[axis] = (margin, margin)
        grown = np.pad(x, edges, mode=mode)
        parts = (
            weight * grown.take(range(i, i + size), axis)
            for i, weight in enumerate(weights)
        )
        x = sum(parts, np.zeros(1))
    return x


def similarity(
    x: np.ndarray, y: np.ndarray, weights: np.ndarray, c: tuple[float, float], mode: Any
) -> tuple[np.ndarray, np.ndarray]:
    """How similar two images are around every pixel: in brightness, and in structure.

    l = (2 μₓμᵧ + c₁) / (μₓ² + μᵧ² + c₁),  s = (2 σₓᵧ + c₂) / (σₓ² + σᵧ² + c₂)

    Shapes: x [n, c, h, w]; y [n, c, h, w] -> two of [n, c, h, w]
    """

    def mean(of: np.ndarray) -> np.ndarray:
        return local_means(of, weights, mode)

    mean_x, mean_y = mean(x), mean(y)
    var_x = np.maximum(mean(x * x) - mean_x**2, 0.0)
    var_y = np.maximum(mean(y * y) - mean_y**2, 0.0)
    covariance = mean(x * y) - mean_x * mean_y
    light = (2.0 * mean_x * mean_y + c[0]) / (mean_x**2 + mean_y**2 + c[0])
    return light, (2.0 * covariance + c[1]) / (var_x + var_y + c[1])


def check_size(where: str, shape: tuple[int, ...], least: int, why: str) -> None:
    """Refuse images that are smaller than a window."""
    if min(shape[2:]) < least:
        what = f"images of {shape[2]} × {shape[3]} are smaller than {least}"
        cure = "a smaller kernel_size, or larger images"
        raise ShapeError(where, what, [why], cure)
