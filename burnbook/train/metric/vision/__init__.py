"""Metrics of images and masks, as newer Burn has them.

LPIPS, DISTS, FID and A-FINE are left out: they need the weights of trained networks.
"""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.train.metric.vision.dice import DiceMetric, DiceMetricConfig
from burnbook.train.metric.vision.ms_ssim import MsSsimMetric, MsSsimMetricConfig
from burnbook.train.metric.vision.psnr import PsnrMetric, PsnrMetricConfig
from burnbook.train.metric.vision.ssim import SsimMetric, SsimMetricConfig

__all__ = [
    "DiceMetric",
    "DiceMetricConfig",
    "MsSsimMetric",
    "MsSsimMetricConfig",
    "PsnrMetric",
    "PsnrMetricConfig",
    "SsimMetric",
    "SsimMetricConfig",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
