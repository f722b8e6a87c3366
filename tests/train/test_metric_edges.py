"""Metrics at their edges: nothing, not a number, mere padding, uneven batches."""

import numpy as np
import pytest

from burnbook import train
from burnbook.core.errors import KindError
from burnbook.tensor import Tensor
from burnbook.train import (
    AccuracyMetric,
    BleuScore,
    LossMetric,
    NumericMetric,
    TopKAccuracyMetric,
)
from burnbook.train.metric import base, vision
from burnbook.train.metric.input import (
    AccuracyInput,
    ConfusionStatsInput,
    HammingScoreInput,
    LossInput,
    PerplexityInput,
    TopKAccuracyInput,
)
from tests.support.metric_tools import (
    cut,
    decisions,
    epoch_value,
    floats,
    ints,
    metadata,
    update,
)

RNG = np.random.default_rng(1)
PAD = 9
N = 24
CLASSES = RNG.integers(0, 4, N)
SCORES = RNG.normal(size=(N, 4))
YES = RNG.integers(0, 2, (N, 4))
WORDS = RNG.integers(0, 4, (N, 6))
IMAGES = RNG.uniform(size=(N, 1, 16, 16))


def listed():
    """The public metrics that measure what a model gives, not the machine."""
    for place in (train, vision):
        for name in place.__all__:
            made = getattr(place, name)
            if not isinstance(made, type) or not issubclass(made, NumericMetric):
                continue
            if made.Input is not None and made.__module__ != base.__name__:
                yield made


MADE = {
    "AccuracyMetric": (lambda: AccuracyMetric(), "classes"),
    "TopKAccuracyMetric": (lambda: TopKAccuracyMetric(2), "classes"),
    "PerplexityMetric": (lambda: train.PerplexityMetric(), "classes"),
    "HammingScore": (lambda: train.HammingScore(0.0), "labels"),
    "PrecisionMetric": (lambda: train.PrecisionMetric.multilabel(0.0), "decisions"),
    "RecallMetric": (lambda: train.RecallMetric.multilabel(0.0), "decisions"),
    "FBetaScoreMetric": (
        lambda: train.FBetaScoreMetric.multilabel(1.0, 0.0),
        "decisions",
    ),
    "AurocMetric": (lambda: train.AurocMetric(), "decisions"),
    "AucPrMetric": (lambda: train.AucPrMetric(), "decisions"),
    "CharErrorRate": (lambda: train.CharErrorRate(), "words"),
    "WordErrorRate": (lambda: train.WordErrorRate(), "words"),
    "BleuScore": (lambda: BleuScore(2), "words"),
    "RougeLScore": (lambda: train.RougeLScore(), "words"),
    "LossMetric": (lambda: LossMetric(), "loss"),
}
ABSTRACT = {"ConfusionMetric"}
# Metrics whose epoch is the mean of its batches by definition, and why.
BY_BATCH = {"BleuScore": "n-grams are counted over a batch, as in Burn"}


def some(kind, rows):
    """The fields of the input of these examples."""
    if kind == "classes":
        return floats(SCORES[rows]), ints(CLASSES[rows])
    if kind == "labels":
        return floats(SCORES[rows]), ints(YES[rows])
    if kind == "decisions":
        item = decisions(SCORES[rows], YES[rows])
        return item.predictions, item.targets
    if kind == "words":
        return ints(WORDS[rows]), ints(np.roll(WORDS, 1, 1)[rows])
    losses = SCORES[rows].mean(1)
    mean = losses.mean() if len(losses) else np.nan
    return floats([mean]), len(losses)


def test_every_metric_of_a_model_has_a_row():
    names = {made.__name__ for made in listed() if made.__module__.count(".vision") < 1}
    assert names - ABSTRACT == set(MADE)


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("sizes", [(23, 1), (7, 16, 1), (1, 1, 22)])
def test_uneven_batches_are_one_batch_of_all(name, sizes):
    if name in BY_BATCH:
        pytest.skip(BY_BATCH[name])
    make, kind = MADE[name]
    whole = epoch_value(make(), [some(kind, slice(None))])
    parts = epoch_value(make(), [some(kind, rows) for rows in cut(N, *sizes)])
    assert parts == pytest.approx(whole, rel=1e-5)


@pytest.mark.parametrize("name", MADE)
def test_an_empty_batch_changes_no_epoch(name):
    make, kind = MADE[name]
    batch, nothing = some(kind, slice(0, 8)), some(kind, slice(0, 0))
    alone = epoch_value(make(), [batch])
    for order in ([batch, nothing], [nothing, batch]):
        assert epoch_value(make(), order) == pytest.approx(alone)
    metric = make()
    update(metric, *nothing)
    found = update(metric, *batch).formatted
    assert "NaN" not in found


PADDED = {
    name: (make, kind)
    for name, (make, kind) in MADE.items()
    if hasattr(make(), "with_pad_token")
}


def padding(kind, count):
    """A batch of nothing but padding."""
    if kind == "words":
        mere = np.full((count, 6), PAD)
        return ints(mere), ints(mere)
    return floats(SCORES[:count]), ints(np.full(count, PAD))


def test_metrics_with_padding_are_found():
    assert {"AccuracyMetric", "TopKAccuracyMetric", "BleuScore"} < set(PADDED)


@pytest.mark.parametrize("name", PADDED)
def test_a_batch_of_mere_padding_weighs_nothing(name):
    make, kind = PADDED[name]
    metric = make().with_pad_token(PAD)
    batch = some(kind, slice(0, 8))
    alone = epoch_value(metric, [batch])
    for order in ([batch, padding(kind, 5)], [padding(kind, 5), batch]):
        assert epoch_value(metric, order) == pytest.approx(alone)
        metric.clear()
        epochs = [update(metric, *one).formatted.split(" - ")[0] for one in order]
        assert "NaN" not in epochs[-1]
        assert "inf" not in epochs[-1]


@pytest.mark.parametrize("name", PADDED)
def test_padding_within_a_batch_weighs_nothing(name):
    """Padded examples among others, in batches of which one is mostly padding."""
    if name in BY_BATCH:
        pytest.skip(BY_BATCH[name])
    make, kind = PADDED[name]
    metric = make().with_pad_token(PAD)
    outputs, targets = some(kind, slice(0, 8))
    more = padding(kind, 8)
    mixed = [Tensor.cat(pair, 0) for pair in zip((outputs, targets), more, strict=True)]
    first = [t.narrow(0, 0, 7) for t in mixed], [t.narrow(0, 7, 9) for t in mixed]
    alone = epoch_value(metric, [(outputs, targets)])
    assert epoch_value(metric, [tuple(mixed)]) == pytest.approx(alone)
    assert epoch_value(metric, [tuple(part) for part in first]) == pytest.approx(alone)


# Not a number

NAN = np.full((2, 3), np.nan)
OF_NAN = {
    "accuracy": (AccuracyMetric(), AccuracyInput(floats(NAN), ints([0, 1]))),
    "top-k": (TopKAccuracyMetric(2), TopKAccuracyInput(floats(NAN), ints([0, 1]))),
    "binary": (
        AccuracyMetric.binary(),
        AccuracyInput(floats([np.nan, np.nan]), ints([0, 1])),
    ),
    "hamming": (
        train.HammingScore(),
        HammingScoreInput(floats(NAN), ints(np.eye(3, dtype=int)[:2])),
    ),
    "precision": (
        train.PrecisionMetric.multiclass(1),
        decisions(NAN, np.eye(3, dtype=int)[:2]),
    ),
    "recall": (
        train.RecallMetric.multiclass(1),
        decisions(NAN, np.eye(3, dtype=int)[:2]),
    ),
    "f-beta": (
        train.FBetaScoreMetric.multiclass(1.0, 1),
        decisions(NAN, np.eye(3, dtype=int)[:2]),
    ),
    "auroc": (train.AurocMetric(), decisions(NAN, np.eye(3, dtype=int)[:2])),
}


@pytest.mark.parametrize("name", OF_NAN)
def test_scores_that_are_not_numbers_are_never_right(name):
    metric, item = OF_NAN[name]
    metric.clear()
    entry = metric.update(item, metadata())
    last = metric.compute() or entry
    assert float(last.serialize.split(",")[0]) == 0.0


def test_one_score_that_is_not_a_number_spoils_its_row_only():
    scores = floats([[0.1, 0.9, np.nan], [0.1, 0.9, 0.0]])
    assert update(AccuracyMetric(), scores, ints([1, 1])).serialize == "50,2"


def test_a_loss_or_perplexity_that_is_not_a_number_shows():
    assert "NaN" in update(LossMetric(), floats([np.nan]), 4).formatted
    item = PerplexityInput(floats(NAN), ints([0, 1]))
    shown = train.PerplexityMetric().update(item, metadata()).formatted
    assert "NaN" in shown


@pytest.mark.parametrize(
    "make",
    [
        lambda: train.PrecisionMetric.binary(0.5),
        lambda: train.RecallMetric.binary(0.5),
        lambda: train.FBetaScoreMetric.binary(1.0, 0.5),
    ],
)
def test_where_nothing_occurs_or_is_decided_for_there_is_no_ratio(make):
    nothing = ConfusionStatsInput(floats([[0.1], [0.2]]), ints([[0], [0]]).bool())
    metric = make()
    assert "NaN" in metric.update(nothing, metadata()).formatted
    assert metric.value() is None
    missed = ConfusionStatsInput(floats([[0.1]]), ints([[1]]).bool())
    assert make().update(missed, metadata()).serialize == "0,1"


@pytest.mark.parametrize(
    "item",
    [
        (AccuracyMetric(), AccuracyInput),
        (AccuracyMetric.binary(), AccuracyInput),
        (TopKAccuracyMetric(2), TopKAccuracyInput),
        (train.PerplexityMetric(), PerplexityInput),
    ],
    ids=lambda item: repr(item[0]),
)
def test_outputs_and_targets_that_are_swapped_are_named(item):
    metric, kind = item
    scores, classes = floats(SCORES[:16, :2]), ints(CLASSES[:16])
    with pytest.raises(KindError, match="outputs and targets are swapped") as said:
        metric.update(kind(classes, scores), metadata())
    assert "ClassificationOutput(loss, output, targets)" in str(said.value)
    loss = floats([0.5])
    swapped = train.ClassificationOutput(loss, classes, scores)
    if kind is AccuracyInput:
        with pytest.raises(KindError, match="swapped"):
            metric.update(swapped.adapt(kind), metadata())


# The loss of an epoch


def test_items_know_how_many_targets_their_loss_is_the_mean_of():
    loss, logits = floats([1.0]), floats(RNG.normal(size=(5, 6, 4)))
    for item, count in (
        (train.ClassificationOutput(loss, floats(SCORES), ints(CLASSES)), N),
        (train.MultiLabelClassificationOutput(loss, floats(SCORES), ints(YES)), N),
        (train.RegressionOutput(loss, floats(SCORES), floats(SCORES)), N),
        (
            train.SequenceOutput(loss, logits, ints(WORDS[:5])),
            30,
        ),
    ):
        assert item.adapt(LossInput).count == count


def test_the_loss_of_an_epoch_weighs_batches_by_their_examples():
    batches = [(1.0, 64), (1.0, 64), (5.0, 1)]
    right = (64 + 64 + 5) / 129
    metric, alike = LossMetric(), LossMetric(equal_batches=True)
    for value, count in batches:
        entry = update(metric, floats([value]), count)
        as_burn = update(alike, floats([value]), count)
    assert entry.formatted == f"epoch {right:.2f} - batch 5.00"
    assert entry.serialize == "5,1"
    assert as_burn.formatted == "epoch 2.33 - batch 5.00"
    made = [(floats([value]), count) for value, count in batches]
    assert epoch_value(metric, made) == pytest.approx(right)
    assert epoch_value(alike, made) == pytest.approx(7 / 3)
