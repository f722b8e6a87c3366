"""Classes that are chosen already, in the place of their scores: losses and metrics.

The habit: `loss(model(x).argmax(1), y)`. Each loss and each metric that reads scores is
given the classes in each form that argmax and comparisons leave them in.
"""

import numpy as np
import pytest

from burnbook import nn
from burnbook.core.errors import DimError, KindError
from burnbook.nn import Reduction
from burnbook.prelude import Autodiff, Numpy, Tensor
from burnbook.train import (
    AccuracyMetric,
    AucPrMetric,
    AurocMetric,
    ClassificationOutput,
    ClassReduction,
    ConfusionStatsInput,
    FBetaScoreMetric,
    HammingScore,
    HammingScoreInput,
    PerplexityMetric,
    PrecisionMetric,
    RecallMetric,
    TopKAccuracyMetric,
)
from tests.support.metric_tools import metadata

DEVICE = Autodiff(Numpy(compiled=False))
SCORES = Tensor.from_data(np.random.default_rng(0).normal(size=(8, 3)), DEVICE)
LABELS = Tensor.from_ints([0, 1, 2, 0, 1, 2, 0, 1], DEVICE)
YES = Tensor.from_ints([0, 1, 1, 0, 1, 0, 0, 1], DEVICE)
CHOSEN = {
    "argmax": SCORES.argmax(1),
    "argmax in a row": SCORES.argmax(1).squeeze_dim(1),
    "argmax as Float": SCORES.argmax(1).float(),
    "argmax in a row as Float": SCORES.argmax(1).squeeze_dim(1).float(),
    "comparison": (SCORES.narrow(1, 0, 1) > 0.0),
    "comparison as Int": (SCORES.narrow(1, 0, 1) > 0.0).squeeze_dim(1).int(),
}
FLOATS = {name for name in CHOSEN if name.endswith("Float")}


def cross_entropy(**options):
    loss = nn.CrossEntropyLossConfig(**options).init(DEVICE)
    return lambda scores, targets: loss(scores, targets)


LOSSES = {
    "cross entropy": cross_entropy(),
    "of probabilities": cross_entropy(logits=False),
    "smoothed": cross_entropy(smoothing=0.1),
    "weighted": cross_entropy(weights=[1.0, 2.0, 3.0]),
    "padded": cross_entropy(pad_tokens=[0]),
    "of rows": lambda s, t: (
        nn.CrossEntropyLossConfig().init(DEVICE).forward_no_reduction(s, t)
    ),
    "multi margin": lambda s, t: nn.MultiMarginLossConfig().init()(s, t),
}
BINARY = {
    "binary": nn.BinaryCrossEntropyLossConfig().init(DEVICE),
    "binary of scores": nn.BinaryCrossEntropyLossConfig(logits=True).init(DEVICE),
}


@pytest.mark.parametrize("form", CHOSEN)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_wants_the_scores(loss, form):
    with pytest.raises(KindError, match="classes that are chosen already") as caught:
        LOSSES[loss](CHOSEN[form], LABELS)
    assert "without .argmax(1)" in caught.value.cure
    LOSSES[loss](SCORES.softmax(1) if loss == "of probabilities" else SCORES, LABELS)


@pytest.mark.parametrize("form", [form for form in CHOSEN if form not in FLOATS])
@pytest.mark.parametrize("loss", BINARY)
def test_a_loss_of_yes_and_no_wants_the_scores(loss, form):
    with pytest.raises(KindError, match="classes that are chosen already"):
        BINARY[loss](CHOSEN[form], YES)


def test_scores_that_were_rounded_are_no_classes():
    with pytest.raises(KindError, match="must be Float") as caught:
        LOSSES["cross entropy"](SCORES.int(), LABELS)
    assert "logits.float()" in caught.value.cure


METRICS = {
    "accuracy": AccuracyMetric(),
    "top k": TopKAccuracyMetric(2),
    "perplexity": PerplexityMetric(),
}
ADAPTED = {
    "precision": (PrecisionMetric.multiclass, ConfusionStatsInput),
    "recall": (RecallMetric.multiclass, ConfusionStatsInput),
    "f-beta": (
        lambda *given: FBetaScoreMetric.multiclass(1.0, *given),
        ConfusionStatsInput,
    ),
    "auroc": (lambda *_: AurocMetric(), ConfusionStatsInput),
    "auc-pr": (lambda *_: AucPrMetric(), ConfusionStatsInput),
    "hamming": (lambda *_: HammingScore(), HammingScoreInput),
}


@pytest.mark.parametrize("form", [form for form in CHOSEN if "comp" not in form])
@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_wants_the_scores(metric, form):
    asked = METRICS[metric]
    with pytest.raises(KindError, match="classes that are chosen already") as caught:
        asked.update(asked.Input(CHOSEN[form], LABELS), metadata())
    assert "without .argmax(1)" in caught.value.cure
    asked.update(asked.Input(SCORES, LABELS), metadata())


@pytest.mark.parametrize("form", ["argmax", "argmax in a row"])
@pytest.mark.parametrize("metric", ADAPTED)
def test_an_item_wants_the_scores(metric, form):
    make, wanted = ADAPTED[metric]
    asked = make(1, ClassReduction.Micro)
    item = ClassificationOutput(SCORES.mean(), CHOSEN[form], LABELS)
    with pytest.raises(KindError, match="classes that are chosen already"):
        asked.update(item.adapt(wanted), metadata())


def test_scores_of_a_yes_that_happen_to_be_whole_are_scores():
    whole = Tensor.from_data([0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0], DEVICE)
    accuracy = AccuracyMetric.binary(0.5)
    accuracy.update(accuracy.Input(whole, YES), metadata())
    BINARY["binary"](whole, YES)
    column = whole.unsqueeze_dim(1)
    nn.MseLoss()(column, column, Reduction.Mean)


# Targets that are no classes, as other libraries have them


def test_labels_of_other_libraries_have_a_cure():
    loss = LOSSES["cross entropy"]
    with pytest.raises(DimError) as caught:
        loss(SCORES, LABELS + 1)
    assert caught.value.cure == "targets - 1, if they count from 1"
    loss(SCORES, (LABELS + 1) - 1)
    left_out = LABELS.mask_fill(LABELS == 0, -100)
    for options in ({}, {"smoothing": 0.1}, {"weights": [1.0, 1.0, 1.0]}):
        with pytest.raises(DimError) as caught:
            cross_entropy(**options)(SCORES, left_out)
        assert "pad_tokens=[-100]" in caught.value.cure
        assert "pads_count=False" in caught.value.cure
    config = nn.CrossEntropyLossConfig(pad_tokens=[-100], pads_count=False)
    kept = np.flatnonzero(np.asarray(LABELS) != 0)
    rows = [SCORES.select(0, Tensor.from_ints(kept, DEVICE))]
    right = Tensor.from_ints(np.asarray(LABELS)[kept], DEVICE)
    found = config.init(DEVICE)(SCORES, left_out).into_scalar()
    assert found == pytest.approx(loss(rows[0], right).into_scalar(), rel=1e-5)
