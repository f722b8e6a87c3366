"""Dice: how much of two masks overlaps."""

from __future__ import annotations

import numpy as np

from burnbook.config import Config
from burnbook.core.errors import ConfigError, ShapeError
from burnbook.train.metric.base import MetricEntry, MetricMetadata, NumericMetric
from burnbook.train.metric.input import DiceInput
from burnbook.train.metric.reading import check_probabilities, same_shape
from burnbook.train.metric.vision.windows import positive


class DiceMetricConfig(Config):
    """Settings of the Dice coefficient; the background is class 0.

    epsilon: added to numerator and denominator, above 0 (default 1e-7).
    include_background: whether class 0, the background, counts (default False).

    Example:
        >>> DiceMetricConfig().with_include_background(True).init()
        DiceMetric(4, include_background=True)
    """

    epsilon: float = 1e-7
    include_background: bool = False

    def init(self, rank: int = 4) -> DiceMetric:
        """The metric for masks of this rank: 4 for images, 5 for volumes."""
        return DiceMetric(self, rank)


MASKS = "masks of 0 and 1, one for each class: output.sigmoid().greater_elem(0.5)"


class DiceMetric(NumericMetric):
    """Twice the overlap of two masks by their sizes: (2 |X∩Y| + ε) / (|X| + |Y| + ε).

    Masks hold 0 and 1, one mask per class; class 0 is left out unless it is the only
    one or the config includes it. The epoch is the mean of its batches, as in Burn.

    Shapes: outputs [n, classes, ...]; targets [n, classes, ...]
    Example:
        >>> DiceMetric().name
        '4D Dice Metric'

    Source: Dice, Measures of the amount of ecologic association between species, 1945.
    """

    name = "4D Dice Metric"
    Input = DiceInput
    precision = 4

    def __init__(self, config: DiceMetricConfig | None = None, rank: int = 4) -> None:
        super().__init__()
        self.config = config or DiceMetricConfig()
        positive("DiceMetricConfig", epsilon=self.config.epsilon)
        if rank < 3:
            what = f"rank = {rank} has no room for examples, classes and places"
            raise ConfigError("DiceMetric", what, cure="rank=3 or more")
        self.rank = rank
        self.name = f"{rank}D Dice Metric"

    def update(self, item: DiceInput, metadata: MetricMetadata) -> MetricEntry:
        """Compare the masks of one batch."""
        config = self.config
        wanted = f"[n, classes, ...] of rank {self.rank}"
        x, y = same_shape(self.name, item.outputs, item.targets, wanted, self.rank)
        for masks in (x, y):
            check_probabilities(self.name, masks, MASKS)
        classes = x.shape[1]
        if config.include_background and classes < 2:
            what = "with its background included it needs at least 2 classes, not 1"
            raise ShapeError(self.name, what, cure="include_background=False")
        if classes > 1 and not config.include_background:
            x, y = x[:, 1:], y[:, 1:]
        overlap = float(np.sum(x * y, dtype=np.float64))
        sizes = float(np.sum(x, dtype=np.float64) + np.sum(y, dtype=np.float64))
        dice = (2.0 * overlap + config.epsilon) / (sizes + config.epsilon)
        return self.state.update(dice, len(x), self.options)

    def __repr__(self) -> str:
        background = ", include_background=True" * self.config.include_background
        return f"DiceMetric({self.rank}{background})"
