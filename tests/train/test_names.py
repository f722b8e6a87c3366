"""A metric's name is never a path, and what watches a metric finds it measured."""

import string

import pytest
from hypothesis import given, settings, strategies as st

from burnbook import train
from burnbook.core.errors import ConfigError, TrainingError
from burnbook.train.metric.naming import log_file, name_of
from tests.support.refusals import tells
from tests.support.run_folders import write_logs
from tests.support.tiny_training import build, builder, file_names, fitted, loader, tiny

STRANGE = (
    "../../evil",
    "F1/macro",
    "F1%2Fmacro",
    "100%",
    "C:\\loss",
    'a "loss": <1|2>?*',
    "..",
    ".hidden",
    "CON",
    "nul.loss",
    "com1",
    "Verlust ü 🔥",
    " leading and trailing ",
)


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_name_stays_in_its_folder_and_keeps_its_name(tmp_path, name):
    made = builder(tmp_path / "run", 2)
    made.metric_train_numeric(train.LossMetric().with_name(name))
    fitted(made)
    assert len(file_names(tmp_path / "run" / "train" / "epoch-1")) == 3
    assert file_names(tmp_path) == ["run"]
    assert file_names(tmp_path / "run") == ["experiment.log", "train", "valid"]
    run = train.RunStore(tmp_path)["run"]
    assert (name, "train") in run.metrics
    assert run.history(name, "train") == run.history("Loss", "train")
    assert len(run.history(name, "train")) == 2


@given(st.text(st.characters(exclude_categories=()), min_size=1, max_size=40))
@settings(max_examples=300)
def test_every_name_has_a_safe_file_that_tells_it(name):
    file = log_file(name)
    assert file.endswith(".log")
    assert not file.startswith(".")
    assert set(file).isdisjoint('/\\:*?"<>| \0\n')
    assert file.isprintable()
    if not any("\ud800" <= c <= "\udfff" for c in name):
        assert name_of(file) == name.replace("_", " ")


def test_names_that_burn_writes_stay_as_they_were():
    plain = string.ascii_letters + string.digits + "()[]@-.,+=~"
    assert log_file(plain) == plain + ".log"
    name = "FBetaScore (1) @ Threshold(0.5) [Macro]"
    assert log_file(name) == "FBetaScore_(1)_@_Threshold(0.5)_[Macro].log"
    assert log_file("Top 5%") == "Top_5%.log"


def test_a_log_that_was_written_under_the_raw_name_is_still_read(tmp_path):
    write_logs(tmp_path / "run", "valid", 1, **{"IoU:_0.5": ["0.25,1"]})
    assert train.RunStore(tmp_path)["run"].last("IoU: 0.5") == (1, 0.25)


def test_an_entry_of_any_name_is_logged_inside_the_folder(tmp_path):
    logger = train.FileMetricLogger(tmp_path / "train")
    for name in ("../../evil", "a\0b", "\n", "/etc/motd"):
        logger.log(train.MetricEntry(name, "", "1,1"))
        logger.end_epoch(1)
        assert logger.read_numeric(name, 1)[0].value == 1
    assert len(list((tmp_path / "train" / "epoch-1").iterdir())) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["train"]
    with pytest.raises(TrainingError, match="write"):
        logger.log(train.MetricEntry("n" * 300, "", "1,1"))


def refused(metric, others=()):
    made = builder("guide")
    for other in others:
        made.metric_valid_numeric(other)
    with pytest.raises(ConfigError) as error:
        made.metric_valid_numeric(metric)
    return str(error.value)


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", "a\0b", "\x1b[31m", 7, None])
def test_what_is_no_name_is_refused_when_the_metric_is_added(name):
    metric = train.LossMetric()
    vars(metric)["name"] = name
    assert "is not the name of a metric" in refused(metric)


def test_a_name_that_is_a_method_is_refused_when_the_metric_is_added():
    class Rusty(train.Metric):
        numeric = True

        def name(self):
            return "Rusty"

    told = ("the name of Rusty is a method", 'try: name = "Rusty" in the class Rusty')
    tells(refused(Rusty()), "LearnerBuilder: ", *told)


def test_names_of_one_file_are_refused_and_the_same_name_replaces():
    for one, other in (("Loss", "loss"), ("a_b", "a b"), ("\u00e9", "e\u0301")):
        first, second = (train.LossMetric().with_name(name) for name in (one, other))
        assert "would share a log file" in refused(second, [first])
    made = builder("guide").metric_valid_numeric(train.LossMetric())
    assert [m.name for m, _ in made._plan.valid_metrics].count("Loss") == 1


@pytest.mark.parametrize("name", ["a\0b", "con", "x" * 300, "..", "a/b", "\n"])
def test_a_test_has_a_name_that_can_be_a_folder(tmp_path, name):
    made = train.EvaluatorBuilder(tmp_path).metric(train.LossMetric())
    evaluator = made.build(tiny())
    with pytest.raises(TrainingError, match="cannot name a folder"):
        evaluator.eval(name, loader())


# What watches a metric


def patient(metric, split=train.Split.Valid):
    condition = train.StoppingCondition.NoImprovementSince(1)
    return train.MetricEarlyStoppingStrategy(
        metric, train.Aggregate.Mean, train.Direction.Lowest, split, condition
    )


def best(metric, split=train.Split.Valid):
    return train.MetricCheckpointingStrategy(
        metric, train.Aggregate.Mean, train.Direction.Lowest, split
    )


def test_a_watched_metric_must_be_measured_in_its_split(tmp_path):
    with pytest.raises(ConfigError, match="'F1' is not measured in validation"):
        build(builder(tmp_path).early_stopping(patient("F1")))
    with pytest.raises(ConfigError, match="'F1' is not measured in training"):
        build(builder(tmp_path).early_stopping(patient("F1", train.Split.Train)))
    composed = train.ComposedCheckpointingStrategy(best("Loss"), best("F1"))
    with pytest.raises(ConfigError, match="'F1' is not measured"):
        build(builder(tmp_path).with_checkpointing_strategy(composed))


def test_the_order_of_the_options_does_not_matter_and_the_last_one_counts(tmp_path):
    made = builder(tmp_path).early_stopping(patient("Own"))
    made.early_stopping(patient("Later"))
    made.metric_valid(train.LossMetric().with_name("Later"))
    fitted(made)


def test_the_default_strategy_does_without_a_loss(tmp_path):
    made = builder(tmp_path)
    made._plan.valid_metrics.clear()
    fitted(made)


class WriteOnly(train.MetricLogger):
    """Takes entries and never gives them back."""


def test_a_strategy_over_logs_that_cannot_be_read_is_refused(tmp_path):
    def made():
        return builder(tmp_path).early_stopping(patient("Loss"))

    with pytest.raises(ConfigError, match="WriteOnly cannot be read back"):
        build(made().metric_loggers(WriteOnly(), WriteOnly()))
    logger = train.InMemoryMetricLogger
    both = made().metric_loggers(WriteOnly(), WriteOnly())
    build(both.metric_loggers(logger(), logger()))
