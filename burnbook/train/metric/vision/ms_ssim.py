"""MS-SSIM: how similar two images look at several scales."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from burnbook.config import Config
from burnbook.core.errors import ConfigError
from burnbook.train.metric.base import MetricEntry, MetricMetadata, NumericMetric
from burnbook.train.metric.input import MsSsimInput
from burnbook.train.metric.reading import check_pixels, same_shape
from burnbook.train.metric.vision.ssim import check_window, stabilizers
from burnbook.train.metric.vision.windows import check_size, gaussian, similarity
from burnbook.train.numbers import plain_float

BETAS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


class MsSsimMetricConfig(Config):
    """Settings of MS-SSIM: those of SSIM, and the weight of every scale.

    pixel_range: largest minus smallest value that a pixel can have, above 0.
    k1: c₁ = (k1 · pixel_range)² stabilizes the comparison of brightness, above 0
        (default 0.01).
    k2: c₂ = (k2 · pixel_range)² stabilizes the comparison of contrast, above 0
        (default 0.03).
    kernel_size: width of the window in pixels, odd (default 11).
    sigma: standard deviation of the Gaussian window in pixels, above 0 (default 1.5).
    betas: the exponent of each scale from fine to coarse, at least one, none below 0
        (default [0.0448, 0.2856, 0.3001, 0.2363, 0.1333]).

    Example:
        >>> MsSsimMetricConfig(1.0).init().name
        'MS-SSIM (pr=1, k=11, σ=1.5)'
    """

    pixel_range: float
    k1: float = 0.01
    k2: float = 0.03
    kernel_size: int = 11
    sigma: float = 1.5
    betas: list[float] = field(default_factory=lambda: list(BETAS))

    def init(self) -> MsSsimMetric:
        """The metric."""
        return MsSsimMetric(self)


class MsSsimMetric(NumericMetric):
    """Structural similarity at several scales: Πⱼ (mean structure at scale j)^βⱼ.

    Every scale is half as large as the one before; the last one takes brightness in as
    well. Means below zero count as zero. Past its border an image is mirrored.

    Shapes: outputs [n, c, h, w]; targets [n, c, h, w]
    Example:
        >>> MsSsimMetric(MsSsimMetricConfig(255.0))
        MsSsimMetric(MS-SSIM (pr=255, k=11, σ=1.5))

    Source: Wang, Simoncelli and Bovik, Multiscale structural similarity for image
    quality assessment, 2003.
    """

    name = "MS-SSIM"
    Input = MsSsimInput
    precision = 4

    def __init__(self, config: MsSsimMetricConfig) -> None:
        super().__init__()
        where = "MsSsimMetricConfig"
        check_window(where, config)
        if not config.betas or min(config.betas) < 0:
            what = f"betas = {config.betas} are not weights of scales"
            raise ConfigError(where, what, cure="at least one number, none below 0")
        self.config = config
        self.weights = gaussian(config.kernel_size, config.sigma)
        pixels, sigma = plain_float(config.pixel_range), plain_float(config.sigma)
        self.name = f"MS-SSIM (pr={pixels}, k={config.kernel_size}, σ={sigma})"

    def update(self, item: MsSsimInput, metadata: MetricMetadata) -> MetricEntry:
        """Compare the images of one batch."""
        config, wanted = self.config, "[n, c, h, w]"
        pair = same_shape(self.name, item.outputs, item.targets, wanted, rank=4)
        x, y = (each.astype(np.float64) for each in pair)
        check_pixels(self.name, y, config.pixel_range)
        times = len(config.betas) - 1
        least = config.kernel_size * 2**times
        why = f"the window of {config.kernel_size}, doubled {times} times, is {least}"
        check_size(self.name, x.shape, least, why)
        value = float(self._alike(x, y).mean()) if len(x) else float("nan")
        return self.state.update(value, len(x), self.options)

    def _alike(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        config = self.config
        c, last = stabilizers(config), len(config.betas) - 1
        alike = np.ones(x.shape[:2])  # [n, c]
        for scale, beta in enumerate(config.betas):
            light, structure = similarity(x, y, self.weights, c, "reflect")
            mean = (light * structure if scale == last else structure).mean((2, 3))
            alike *= np.maximum(mean, 0.0) ** beta
            x, y = halved(x), halved(y)
        return alike

    def __repr__(self) -> str:
        return f"MsSsimMetric({self.name})"


def halved(x: np.ndarray) -> np.ndarray:
    """The mean of every block of 2 × 2 pixels; an odd row or column is left out.

    Shapes: x [n, c, h, w] -> [n, c, h / 2, w / 2]
    """
    n, c, h, w = (size // 2 * 2 if i > 1 else size for i, size in enumerate(x.shape))
    blocks = x[:, :, :h, :w].reshape(n, c, h // 2, 2, w // 2, 2)
    return blocks.mean(axis=(3, 5))
