"""Metrics of probabilities refuse scores, those of scores refuse probabilities."""

import warnings

import numpy as np
import pytest

from burnbook.core.errors import DataError
from burnbook.data import Progress
from burnbook.tensor import Tensor
from burnbook.train import metric
from burnbook.train.metric import MetricMetadata, vision as images
from burnbook.train.metric.input import (
    ConfusionStatsInput,
    DiceInput,
    HammingScoreInput,
    PerplexityInput,
    PsnrInput,
    SsimInput,
)

RNG = np.random.default_rng(5)
SCORES = RNG.normal(size=(6, 3)).astype(np.float32) * 3
YES = SCORES > 0
NOW = MetricMetadata(Progress(1, 1), 1, 1, 1)
SIGMOID = 1 / (1 + np.exp(-SCORES))
SOFTMAX = np.exp(SCORES) / np.exp(SCORES).sum(1, keepdims=True)

MAKERS = {
    f"{kind.__name__}.{how}": (kind, how)
    for kind in (metric.PrecisionMetric, metric.RecallMetric, metric.FBetaScoreMetric)
    for how in ("binary", "multilabel")
}


def measured(made, kind, outputs, targets):
    given = (Tensor.from_data(outputs), Tensor.from_data(targets))
    made.update(kind(*given), NOW)
    return made.value()


@pytest.mark.parametrize("name", MAKERS)
def test_logits_are_no_probabilities(name):
    kind, how = MAKERS[name]
    columns = slice(0, 1) if how == "binary" else slice(None)
    scores, yes, shares = (each[:, columns] for each in (SCORES, YES, SIGMOID))
    threshold = {"threshold": 0.0}
    with pytest.raises(DataError, match="is not a probability"):
        measured(getattr(kind, how)(), ConfusionStatsInput, scores, yes)
    right = measured(getattr(kind, how)(), ConfusionStatsInput, shares, yes)
    cured = getattr(kind, how)(**threshold)  # as the error says
    assert measured(cured, ConfusionStatsInput, scores, yes) == right == 100.0


def test_logits_are_no_labels_of_a_set():
    with pytest.raises(DataError, match="is not a probability"):
        measured(metric.HammingScore(), HammingScoreInput, SCORES, YES)
    for made, given in (
        (metric.HammingScore(), SIGMOID),
        (metric.HammingScore(sigmoid=True), SCORES),
        (metric.HammingScore(threshold=0.0), SCORES),
    ):
        assert measured(made, HammingScoreInput, given, YES) == 100.0


def test_the_best_of_many_takes_scores_of_any_size():
    for given in (SCORES, SIGMOID, SOFTMAX):
        best = given == given.max(1, keepdims=True)
        made = metric.PrecisionMetric.multiclass()
        assert measured(made, ConfusionStatsInput, given, best) == 100.0


def test_perplexity_takes_scores():
    words = SCORES.argmax(1)
    with pytest.raises(DataError, match="been through a softmax"):
        measured(metric.PerplexityMetric(), PerplexityInput, SOFTMAX, words)
    wanted = measured(metric.PerplexityMetric(), PerplexityInput, SCORES, words)
    logs = np.log(SOFTMAX)  # as the error says
    found = measured(metric.PerplexityMetric(), PerplexityInput, logs, words)
    assert found == pytest.approx(wanted, rel=1e-5)
    for silent in (SIGMOID, SOFTMAX[:1], np.eye(3, dtype=np.float32), SCORES * 0.0):
        words = np.arange(len(silent)) % 3
        measured(metric.PerplexityMetric(), PerplexityInput, silent, words)


LARGEST = {
    "psnr": (images.PsnrMetricConfig, PsnrInput, 8),
    "ssim": (images.SsimMetricConfig, SsimInput, 16),
}


@pytest.mark.parametrize("name", LARGEST)
def test_pixels_are_as_large_as_was_said(name):
    config, kind, size = LARGEST[name]
    small = RNG.random((2, 1, size, size)).astype(np.float32)
    large = (small * 255).round()
    with pytest.raises(DataError, match="the largest is said to be 1"):
        measured(config(1.0).init(), kind, large, large)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measured(config(1.0).init(), kind, small * 1.2, small)  # outputs may be above
        measured(config(255.0).init(), kind, large, large)
        measured(config(255.0).init(), kind, large * 0, large * 0)
        measured(config(2.0).init(), kind, small * 2 - 1, small * 2 - 1)


def test_masks_are_no_logits():
    shape = (2, 1, 4, 4)
    scores = RNG.normal(size=shape).astype(np.float32)
    masks = (scores > 0).astype(np.float32)
    with pytest.raises(DataError, match="is not a probability"):
        measured(images.DiceMetric(), DiceInput, scores, masks)
    measured(images.DiceMetric(), DiceInput, masks, masks)
    measured(images.DiceMetric(), DiceInput, masks * 0.7, masks)  # soft masks
