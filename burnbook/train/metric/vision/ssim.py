"""SSIM: how similar two images look."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnbook.config import Config
from burnbook.train.metric.base import MetricEntry, MetricMetadata, NumericMetric
from burnbook.train.metric.input import SsimInput
from burnbook.train.metric.reading import check_pixels, same_shape
from burnbook.train.metric.vision.windows import (
    check_size,
    gaussian,
    odd,
    positive,
    similarity,
)
from burnbook.train.numbers import plain_float


class SsimMetricConfig(Config):
    """Settings of SSIM: the range of pixels, and the window around each of them.

    pixel_range: largest minus smallest value that a pixel can have, above 0.
    k1: c₁ = (k1 · pixel_range)² stabilizes the comparison of brightness, above 0
        (default 0.01).
    k2: c₂ = (k2 · pixel_range)² stabilizes the comparison of contrast, above 0
        (default 0.03).
    kernel_size: width of the window in pixels, odd (default 11).
    sigma: standard deviation of the Gaussian window in pixels, above 0 (default 1.5).

    Example:
        >>> SsimMetricConfig(1.0).with_kernel_size(7).init().name
        'SSIM (dr=1, w=7, σ=1.5)'
    """

    pixel_range: float
    k1: float = 0.01
    k2: float = 0.03
    kernel_size: int = 11
    sigma: float = 1.5

    def init(self) -> SsimMetric:
        """The metric."""
        return SsimMetric(self)


class SsimMetric(NumericMetric):
    """Structural similarity: mean of brightness × structure around every pixel, ≤ 1.

    l · s = (2 μₓμᵧ + c₁)(2 σₓᵧ + c₂) / ((μₓ² + μᵧ² + c₁)(σₓ² + σᵧ² + c₂)), where c = (k
    · range)² keeps dark and flat places from deciding. Past its border an image is
    padded with zeros, as in Burn.

    Shapes: outputs [n, c, h, w]; targets [n, c, h, w]
    Example:
        >>> SsimMetric(SsimMetricConfig(255.0))
        SsimMetric(SSIM (dr=255, w=11, σ=1.5))

    Source: Wang et al., Image quality assessment: from error visibility to structural
    similarity, 2004.
    """

    name = "SSIM"
    Input = SsimInput
    precision = 4

    def __init__(self, config: SsimMetricConfig) -> None:
        super().__init__()
        check_window("SsimMetricConfig", config)
        self.config = config
        self.weights = gaussian(config.kernel_size, config.sigma)
        pixels, sigma = plain_float(config.pixel_range), plain_float(config.sigma)
        self.name = f"SSIM (dr={pixels}, w={config.kernel_size}, σ={sigma})"

    def update(self, item: SsimInput, metadata: MetricMetadata) -> MetricEntry:
        """Compare the images of one batch."""
        config, wanted = self.config, "[n, c, h, w]"
        pair = same_shape(self.name, item.outputs, item.targets, wanted, rank=4)
        x, y = (each.astype(np.float64) for each in pair)
        check_pixels(self.name, y, config.pixel_range)
        why = f"the window is {config.kernel_size} pixels wide"
        check_size(self.name, x.shape, config.kernel_size, why)
        c = stabilizers(config)
        light, structure = similarity(x, y, self.weights, c, "constant")
        value = float((light * structure).mean()) if len(x) else float("nan")
        return self.state.update(value, len(x), self.options)

    def __repr__(self) -> str:
        return f"SsimMetric({self.name})"


def check_window(where: str, config: object) -> None:
    """Refuse settings that do not make a window."""
    names = ("pixel_range", "k1", "k2", "sigma")
    positive(where, **{name: getattr(config, name) for name in names})
    odd(where, vars(config)["kernel_size"])


def stabilizers(config: Any) -> tuple[float, float]:
    """c₁ and c₂: (k · range)²."""
    span = config.pixel_range
    return (config.k1 * span) ** 2, (config.k2 * span) ** 2
