"""A metric knows where it is best, and a strategy that wants the other end says so."""

import warnings

import pytest

from burnbook.core.errors import BurnbookError
from burnbook.lr_scheduler import ReduceOnPlateauLrSchedulerConfig
from burnbook.train import (
    AccuracyMetric,
    Aggregate,
    Direction,
    LossMetric,
    MetricCheckpointingStrategy,
    MetricEarlyStoppingStrategy,
    RestoreBest,
    Split,
    StoppingCondition,
    metric,
    sweep,
)
from burnbook.train.validation import check_watched

LOW, HIGH = Direction.Lowest, Direction.Highest
AIMS = {
    LOW: (LossMetric, LossMetric(), "Loss", metric.PerplexityMetric(), "Perplexity"),
    HIGH: (
        *(AccuracyMetric, AccuracyMetric(), "Accuracy", AccuracyMetric.binary(0.5)),
        *(metric.AurocMetric, metric.PrecisionMetric.binary(), "Precision"),
    ),
}


class Distance(metric.NumericMetric):
    """A metric that does not say where it is best."""

    name = "Distance"


class MyLoss(Distance):
    """One that does."""

    higher_is_better = False


def stop(found, direction):
    condition = StoppingCondition.NoImprovementSince(1)
    return MetricEarlyStoppingStrategy(
        found, Aggregate.Mean, direction, Split.Valid, condition
    )


def keep(found, direction):
    return MetricCheckpointingStrategy(found, Aggregate.Mean, direction, Split.Valid)


MAKERS = (stop, keep, RestoreBest)
MEMBERS = [
    (make, found, best)
    for make in MAKERS
    for best, all_found in AIMS.items()
    for found in all_found
]


@pytest.mark.parametrize(("make", "found", "best"), MEMBERS)
def test_the_wrong_end_is_told_with_the_right_one(make, found, best):
    with pytest.warns(UserWarning, match=f"try: Direction.{best.name}") as caught:
        make(found, LOW if best is HIGH else HIGH)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    make(found, best)  # warnings are errors here


@pytest.mark.parametrize("make", MAKERS)
def test_only_a_class_that_says_it_is_believed(make):
    for direction in Direction:
        make(Distance, direction)
        make("Distance", direction)
        make(metric.LearningRateMetric, direction)
    with pytest.warns(UserWarning, match="Distance is better when lower"):
        make(MyLoss, HIGH)


def test_a_sweep_and_a_plateau_are_asked_too(tmp_path):
    with (
        pytest.warns(UserWarning, match="Loss is better when lower"),
        pytest.raises(BurnbookError),
    ):
        sweep({}, {}, print, folder=tmp_path, direction=HIGH)
    measured = {s: [AccuracyMetric(), LossMetric()] for s in (Split.Train, Split.Valid)}
    loggers = {s: [] for s in measured}
    config = ReduceOnPlateauLrSchedulerConfig(0.1)
    wrong = (
        config.with_metric("Accuracy"),
        config.with_highest_is_best(True),
    )
    for each in wrong:
        with pytest.warns(UserWarning, match="try: highest_is_best="):
            check_watched("fit", each.init(), measured, loggers)
    right = (config, config.with_metric("Accuracy").with_highest_is_best(True))
    for each in right:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_watched("fit", each.init(), measured, loggers)
