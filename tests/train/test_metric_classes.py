"""Metrics of classes: against scikit-learn, over uneven batches, and by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from burnbook.core.errors import DataError, KindError, ShapeError
from burnbook.train import (
    AccuracyMetric,
    AucPrMetric,
    AurocMetric,
    ClassReduction,
    ConfusionStats,
    DecisionRule,
    FBetaScoreMetric,
    HammingScore,
    MetricEntry,
    PerplexityMetric,
    PrecisionMetric,
    RecallMetric,
    TopKAccuracyMetric,
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

Macro, Micro = ClassReduction.Macro, ClassReduction.Micro
COUNT, CLASSES = 90, 5


@pytest.fixture
def sklearn():
    return pytest.importorskip("sklearn.metrics")


def many(seed=0, rare=True):
    """Distinct scores and labels of one class; class 4 never occurs."""
    rng = np.random.default_rng(seed)
    scores = rng.permutation(COUNT * CLASSES).reshape(COUNT, CLASSES) / (
        COUNT * CLASSES
    )
    labels = rng.integers(0, CLASSES - rare, COUNT)
    return scores.astype(np.float32), labels


def hot(labels, classes=CLASSES):
    return np.eye(classes, dtype=int)[labels]


def batches(scores, targets):
    return [
        (floats(scores[part]), ints(targets[part])) for part in cut(COUNT, 32, 1, 40)
    ]


def stats_batches(scores, targets):
    return [(scores, targets.bool()) for scores, targets in batches(scores, targets)]


# Accuracy among the best k


@pytest.mark.parametrize("k", [1, 2, 4])
def test_top_k_accuracy_is_that_of_scikit_learn(sklearn, k):
    scores, labels = many()
    ours = epoch_value(TopKAccuracyMetric(k), batches(scores, labels))
    theirs = sklearn.top_k_accuracy_score(labels, scores, k=k, labels=range(CLASSES))
    assert ours == pytest.approx(100 * theirs)


@settings(max_examples=40)
@given(st.data())
def test_the_best_one_is_the_accuracy_even_among_equals(data):
    n, classes = data.draw(st.integers(1, 6)), data.draw(st.integers(2, 4))
    row = st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=classes, max_size=classes)
    scores = floats(data.draw(st.lists(row, min_size=n, max_size=n)))
    target = st.integers(0, classes - 1)
    targets = ints(data.draw(st.lists(target, min_size=n, max_size=n)))
    pad = data.draw(st.none() | target)
    one = update(TopKAccuracyMetric(1, pad), scores, targets).serialize
    assert one == update(AccuracyMetric(pad), scores, targets).serialize
    whole = update(TopKAccuracyMetric(classes), scores, targets).serialize
    assert whole == f"100,{n}"


def test_top_k_leaves_padding_out_of_share_and_weight():
    metric = TopKAccuracyMetric(2).with_pad_token(9)
    scores = floats([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.4, 0.5, 0.1]])
    entry = update(metric, scores, ints([1, 9, 2]))
    text = "epoch 50.00 % - batch 50.00 %"
    assert entry == MetricEntry("Top-K Accuracy", text, "50,2")
    assert update(metric, scores, ints([9, 9, 9])).serialize == "NaN,0"


def test_scores_that_are_no_number_are_misses():
    metric = TopKAccuracyMetric(2)
    scores = floats([[0.5, 0.3, 0.2], [math.nan, 0.2, 0.1], [math.nan, 0.2, 0.1]])
    entry = update(metric, scores, ints([2, 0, 1]))
    assert entry.serialize == "33.33333333333333,3"  # NaN stands before class 1


@pytest.mark.parametrize("metric", [AccuracyMetric(), TopKAccuracyMetric(1)])
@pytest.mark.parametrize("target", [-100, -1, 3])
def test_a_target_that_is_no_class_is_refused_unless_it_is_padding(metric, target):
    scores, targets = floats([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), ints([1, target])
    with pytest.raises(DataError, match="not one of the 3 classes") as caught:
        update(metric, scores, targets)
    assert "with_pad_token" in caught.value.cure
    padded = metric.with_pad_token(target)
    assert update(padded, scores, targets).serialize == "100,1"


def test_half_a_class_is_none():
    with pytest.raises(DataError, match=r"0\.5 is not one of"):
        update(AccuracyMetric(), floats([[0.0, 1.0]]), floats([0.5]))


# One score for each example


@pytest.mark.parametrize("shape", [[-1], [-1, 1]])
@pytest.mark.parametrize("as_targets", [ints, floats, lambda x: ints(x).bool()])
def test_binary_accuracy_is_that_of_scikit_learn(sklearn, shape, as_targets):
    rng = np.random.default_rng(4)
    scores, labels = rng.random(COUNT).astype(np.float32), rng.integers(0, 2, COUNT)
    parts = [
        (floats(scores[part]).reshape(shape), as_targets(labels[part]))
        for part in cut(COUNT, 32, 1, 40)
    ]
    theirs = 100 * sklearn.accuracy_score(labels, scores > 0.3)
    assert epoch_value(AccuracyMetric.binary(0.3), parts) == pytest.approx(theirs)
    logits = [(x.log() - (1 - x).log(), y) for x, y in parts]
    theirs = 100 * sklearn.accuracy_score(labels, scores > 0.5)
    assert epoch_value(AccuracyMetric.binary(0.0), logits) == pytest.approx(theirs)
    columns = [(x, y.reshape([-1, 1])) for x, y in parts]
    assert epoch_value(AccuracyMetric.binary(), columns) == pytest.approx(theirs)


@pytest.mark.parametrize(
    "metric", [AccuracyMetric(), TopKAccuracyMetric(1), PerplexityMetric()]
)
@pytest.mark.parametrize("scores", [[[0.2], [0.9]], [0.2, 0.9]])
def test_the_best_of_one_class_is_refused(metric, scores):
    with pytest.raises(ShapeError, match="one score for each example") as caught:
        update(metric, floats(scores), ints([0, 1]))
    assert "AccuracyMetric.binary()" in caught.value.cure


def test_binary_accuracy_refuses_what_would_be_counted_wrongly():
    metric, targets = AccuracyMetric.binary(), ints([0, 1])
    with pytest.raises(DataError, match=r"score -2 is not a probability") as caught:
        update(metric, floats([-2.0, 3.0]), targets)
    assert "binary(0.0)" in caught.value.cure
    with pytest.raises(DataError, match="target 2 is neither 0 nor 1"):
        update(metric, floats([0.1, 0.2]), ints([2, 1]))
    for scores, targets in (
        (floats([[0.1, 0.9]]), ints([1])),
        (floats([0.1, 0.9]), ints([1])),
        (floats([[[0.1]]]), ints([1])),
        (floats([[0.1]]), ints([[1, 0]])),
    ):
        with pytest.raises(ShapeError, match="do not fit together"):
            update(metric, scores, targets)
    with pytest.raises(KindError, match="classes that are chosen already"):
        update(metric, ints([0, 1]), ints([0, 1]))


def test_binary_accuracy_leaves_padding_out_and_prints():
    metric = AccuracyMetric.binary(0.25).with_pad_token(-1)
    assert repr(metric) == "AccuracyMetric.binary(0.25).with_pad_token(-1)"
    assert repr(AccuracyMetric.binary()) == "AccuracyMetric.binary(0.5)"
    entry = update(metric, floats([0.3, 0.2, 0.9]), ints([1, -1, 0]))
    assert entry.serialize == "50,2"


@pytest.mark.parametrize(
    "metric",
    [
        PrecisionMetric.binary(),
        RecallMetric.binary(),
        FBetaScoreMetric.binary(),
        AurocMetric.binary(),
        AucPrMetric.binary(),
    ],
    ids=lambda metric: type(metric).__name__,
)
def test_binary_metrics_refuse_several_classes(metric):
    with pytest.raises(ShapeError, match="here are 2") as caught:
        metric.update(decisions([[0.2, 0.8]], [[0, 1]]), metadata())
    assert "multiclass()" in caught.value.cure
    metric.update(decisions([[0.2], [0.8]], [[0], [1]]), metadata())
    with pytest.raises(ShapeError, match="do not fit together"):
        metric.update(decisions([0.2, 0.8], [0, 1]), metadata())


@pytest.mark.parametrize("kind", [PrecisionMetric, RecallMetric, FBetaScoreMetric])
def test_the_best_of_one_class_is_no_decision(kind):
    with pytest.raises(ShapeError, match="always that class") as caught:
        kind.multiclass().update(decisions([[0.2], [0.8]], [[0], [1]]), metadata())
    assert "binary()" in caught.value.cure


@pytest.mark.parametrize(
    "metric", [HammingScore(), PrecisionMetric.multilabel(), AurocMetric()]
)
def test_labels_are_yes_or_no(metric):
    with pytest.raises(DataError, match="target 2 is neither 0 nor 1"):
        update(metric, floats([[0.2, 0.8]]), ints([[2, 1]]))


def test_an_empty_batch_weighs_nothing():
    for metric in (AccuracyMetric(), TopKAccuracyMetric(1)):
        assert update(metric, floats(np.zeros((0, 3))), ints([])).serialize == "NaN,0"
        right = update(metric, floats([[0.0, 1.0, 0.0]]), ints([1]))
        assert right.formatted == "epoch 100.00 % - batch 100.00 %"


# Hamming score


def test_hamming_score_is_one_minus_the_loss_of_scikit_learn(sklearn):
    scores, labels = many()
    targets = hot(labels)
    ours = epoch_value(HammingScore(), batches(scores, targets))
    assert ours == pytest.approx(
        100 * (1 - sklearn.hamming_loss(targets, scores > 0.5))
    )


def test_hamming_score_squashes_and_has_a_threshold():
    outputs, targets = floats([[0.4, -800.0], [-0.4, 3.0]]), ints([[1, 0], [1, 1]])
    entry = update(HammingScore(), floats([[0.4, 0.0], [0.0, 1.0]]), targets)
    text = "epoch 50.00 % - batch 50.00 %"
    assert entry == MetricEntry("Hamming Score", text, "50,2")
    squashed = HammingScore().with_sigmoid(True)
    assert update(squashed, outputs, targets).serialize == "75,2"
    lower = squashed.with_threshold(0.3)  # 1 / (1 + e^0.4) = 0.401
    assert update(lower, outputs, targets).serialize == "100,2"


def test_a_score_at_the_threshold_is_a_no():
    outputs, no = floats([[0.1, 0.7]]), ints([[0, 0]])
    assert update(HammingScore(0.1), outputs, no).serialize == "50,1"
    assert update(HammingScore(0.7), outputs, no).serialize == "100,1"


# Precision, recall, F-beta


def test_confusion_is_counted_per_class_or_in_all():
    item = decisions([[0.9, 0.6], [0.2, 0.8], [0.7, 0.1]], [[1, 0], [0, 1], [0, 1]])
    stats = ConfusionStats(item, DecisionRule.Threshold(0.5), Macro)
    assert repr(stats) == "ConfusionStats(tp [1, 1], fp [1, 1], tn [1, 0], fn [0, 1])"
    assert stats.positive().tolist() == [1, 2]
    assert stats.negative().tolist() == [2, 1]
    assert stats.predicted_positive().tolist() == [2, 2]
    shares = stats.ratio_of_support(stats.true_positive())
    assert shares.tolist() == [1 / 3, 1 / 3]
    whole = ConfusionStats(item, class_reduction=Micro)
    assert repr(whole) == "ConfusionStats(tp [2], fp [2], tn [1], fn [1])"
    assert whole.support().tolist() == [6]


@pytest.mark.parametrize("reduction", [Macro, Micro])
@pytest.mark.parametrize("rule", ["threshold", "top"])
def test_precision_recall_and_f_beta_are_those_of_scikit_learn(
    sklearn, reduction, rule
):
    scores, labels = many()
    targets, average = hot(labels), reduction.value
    decided = scores > 0.6 if rule == "threshold" else hot(scores.argmax(axis=1))

    def made(kind, *beta):
        if rule == "threshold":
            return kind.multilabel(*beta, 0.6, reduction)
        return kind.multiclass(*beta, 1, reduction)

    parts = stats_batches(scores, targets)
    zero = {"average": average, "zero_division": 0}
    theirs = sklearn.precision_score(targets, decided, **zero)
    assert epoch_value(made(PrecisionMetric), parts) == pytest.approx(100 * theirs)
    theirs = sklearn.recall_score(targets, decided, **zero)
    assert epoch_value(made(RecallMetric), parts) == pytest.approx(100 * theirs)
    nan = {"average": average, "zero_division": np.nan}
    for beta in (0.5, 1.0, 2.0):
        theirs = sklearn.fbeta_score(targets, decided, beta=beta, **nan)
        ours = epoch_value(made(FBetaScoreMetric, beta), parts)
        assert ours == pytest.approx(100 * theirs)


def test_the_epoch_is_the_fraction_of_its_counts_not_the_mean_of_fractions():
    metric = PrecisionMetric.binary()
    first = update(metric, floats([[0.9]] * 3), ints([[1]] * 3).bool())
    assert first.serialize == "100,3"
    second = update(metric, floats([[0.9], [0.1]]), ints([[0], [0]]).bool())
    assert second.formatted == "epoch 75.00 % - batch 0.00e0 %"
    assert second.serialize == "0,2"
    name = "Precision @ Threshold(0.5) [Macro]"
    assert metric.compute() == MetricEntry(name, second.formatted, "75,final")
    metric.clear()
    assert metric.compute() is None


@pytest.mark.parametrize("make", [PrecisionMetric, RecallMetric, FBetaScoreMetric])
def test_a_class_that_neither_occurs_nor_is_decided_for_is_left_out(make):
    nothing = [[0.1, 0.1], [0.1, 0.2]], [[0, 0], [0, 0]]
    metric = make()
    entry = metric.update(decisions(*nothing), metadata())
    assert (entry.formatted, entry.serialize) == ("epoch NaN % - batch NaN %", "NaN,2")
    assert metric.value() is None
    half = decisions([[0.9, 0.1]], [[1, 0]])  # its second class does not count
    assert metric.update(half, metadata()).serialize == "100,1"
    assert metric.compute().serialize == "100,final"


def test_every_rule_has_a_name_and_a_log_file_of_its_own():
    names = [
        PrecisionMetric().name,
        PrecisionMetric.multilabel(0.25, Micro).name,
        RecallMetric.multiclass(3).name,
        FBetaScoreMetric().name,
        FBetaScoreMetric.binary(0.5, 1.0).name,
        AurocMetric.multilabel(Micro).name,
        AucPrMetric().name,
    ]
    assert names == [
        "Precision @ Threshold(0.5) [Macro]",
        "Precision @ Threshold(0.25) [Micro]",
        "Recall @ TopK(3) [Macro]",
        "FBetaScore (1) @ Threshold(0.5) [Macro]",
        "FBetaScore (0.5) @ Threshold(1.0) [Macro]",
        "AUROC [Micro]",
        "AUC-PR [Macro]",
    ]
    for kind in (PrecisionMetric, RecallMetric, FBetaScoreMetric, AurocMetric):
        assert kind.name == kind().name  # strategies take the class as well
    assert repr(PrecisionMetric()) == "PrecisionMetric(Threshold(0.5), Macro)"
    assert repr(FBetaScoreMetric(2.0)) == "FBetaScoreMetric(2, Threshold(0.5), Macro)"
    assert repr(AurocMetric()) == "AurocMetric(Macro)"


def test_equal_scores_decide_for_the_lower_class():
    rule = DecisionRule.TopK(2)
    assert rule.decide(np.array([[0.5, 0.5, 0.5]])).tolist() == [[True, True, False]]


# Rankings


@pytest.mark.parametrize("reduction", [Macro, Micro])
def test_rankings_are_those_of_scikit_learn(sklearn, reduction):
    scores, labels = many(rare=False)
    parts, average = stats_batches(scores, hot(labels)), reduction.value
    theirs = sklearn.roc_auc_score(hot(labels), scores, average=average)
    assert epoch_value(AurocMetric(reduction), parts) == pytest.approx(100 * theirs)
    theirs = sklearn.average_precision_score(hot(labels), scores, average=average)
    assert epoch_value(AucPrMetric(reduction), parts) == pytest.approx(100 * theirs)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, np.nan]), st.booleans())))
def test_auroc_is_the_share_of_pairs_in_the_right_order(pairs):
    scores = np.array([score for score, _ in pairs], dtype=float)
    targets = np.array([target for _, target in pairs], dtype=bool)
    yes, no = scores[targets], scores[~targets]
    area = AurocMetric().area(scores, targets)
    if not (len(yes) and len(no)):
        assert math.isnan(area)
        return
    wins = sum((y > n) + 0.5 * (y == n) for y in yes for n in no)
    assert area == pytest.approx(wins / (len(yes) * len(no)))


def test_auroc_counts_ties_half_as_scikit_learn_does(sklearn):
    rng = np.random.default_rng(3)
    scores, targets = rng.integers(0, 4, 60) / 4, rng.integers(0, 2, 60)
    metric = AurocMetric.binary()
    metric.update(decisions(scores[:, None], targets[:, None]), metadata())
    theirs = sklearn.roc_auc_score(targets, scores)
    assert float(metric.compute().serialize) == pytest.approx(100 * theirs)


def test_rankings_say_nothing_before_the_epoch_is_over():
    for metric in (AurocMetric(), AucPrMetric()):
        assert metric.compute() is None
        entry = metric.update(decisions([[0.2], [0.8]], [[0], [1]]), metadata())
        assert entry == MetricEntry(metric.name, "epoch N/A % - batch N/A %", "")
        assert metric.value() is None
        text = "epoch 100.00 % - batch N/A %"
        assert metric.compute() == MetricEntry(metric.name, text, "100")
        metric.clear()
        assert metric.compute() is None


def test_rankings_leave_out_classes_without_a_question_and_then_are_a_coin():
    scores = [[0.9, 0.5], [0.1, 0.4]]
    metric = AurocMetric()  # the second class is always yes
    metric.update(decisions(scores, [[1, 1], [0, 1]]), metadata())
    assert metric.compute().serialize == "100"
    for metric in (AurocMetric(), AucPrMetric()):
        metric.update(decisions(scores, [[0, 0], [0, 0]]), metadata())
        assert metric.compute().serialize == "50"


def test_average_precision_keeps_the_order_of_equal_scores():
    metric = AucPrMetric.binary()
    metric.update(decisions([[0.5], [0.5], [0.5]], [[0], [1], [1]]), metadata())
    assert float(metric.compute().serialize) == pytest.approx(100 * (1 / 2 + 2 / 3) / 2)


def test_rankings_keep_their_own_copy_of_the_scores():
    scores = np.array([[0.2], [0.8]], np.float32)
    metric = AurocMetric()
    item = decisions(scores, [[0], [1]])
    metric.update(item, metadata())
    item.predictions.backend.to_numpy(item.predictions.value)[:] = 0.0
    assert metric.compute().serialize == "100"
