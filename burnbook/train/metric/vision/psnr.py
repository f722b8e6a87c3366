"""PSNR: peak signal-to-noise ratio of an image."""

from __future__ import annotations

import numpy as np

from burnbook.config import Config
from burnbook.train.metric.base import MetricEntry, MetricMetadata, NumericMetric
from burnbook.train.metric.input import PsnrInput
from burnbook.train.metric.reading import check_pixels, same_shape
from burnbook.train.metric.vision.windows import positive
from burnbook.train.numbers import plain_float


class PsnrMetricConfig(Config):
    """Settings of PSNR: the largest value of a pixel, 1 or 255, and the smallest error.

    max_pixel_val: the largest value that a pixel can have, such as 1 or 255, above 0.
    epsilon: the least mean squared error, above 0 (default 1e-10).

    Example:
        >>> PsnrMetricConfig(255.0).init().name
        'PSNR@255'
    """

    max_pixel_val: float
    epsilon: float = 1e-10

    def init(self) -> PsnrMetric:
        """The metric."""
        return PsnrMetric(self)


class PsnrMetric(NumericMetric):
    """Peak signal-to-noise ratio in decibels: 10 log₁₀(max² / mean squared error).

    The mean over the images of a batch; an error below ε counts as ε, so that equal
    images have a finite value, too.

    Shapes: outputs [n, c, h, w]; targets [n, c, h, w]
    Example:
        >>> PsnrMetric(PsnrMetricConfig(1.0))
        PsnrMetric(PSNR@1)
    """

    name = "PSNR"
    Input = PsnrInput
    unit = "dB"

    def __init__(self, config: PsnrMetricConfig) -> None:
        super().__init__()
        where = "PsnrMetricConfig"
        positive(where, max_pixel_val=config.max_pixel_val, epsilon=config.epsilon)
        self.config = config
        self.name = f"PSNR@{plain_float(config.max_pixel_val)}"

    def update(self, item: PsnrInput, metadata: MetricMetadata) -> MetricEntry:
        """Compare the images of one batch."""
        wanted = "[n, c, h, w]"
        pair = same_shape(self.name, item.outputs, item.targets, wanted, rank=4)
        x, y = (each.astype(np.float64) for each in pair)
        check_pixels(self.name, y, self.config.max_pixel_val)
        error = np.maximum(((x - y) ** 2).mean(axis=(1, 2, 3)), self.config.epsilon)
        decibels = 10.0 * np.log10(self.config.max_pixel_val**2 / error)
        value = float(decibels.mean()) if len(x) else float("nan")
        return self.state.update(value, len(x), self.options)

    def __repr__(self) -> str:
        return f"PsnrMetric({self.name})"
