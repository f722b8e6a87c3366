"""The evaluator: a trained model on data that it never saw."""

import io
from functools import partial

import numpy as np
import pytest

from burnbook import train
from burnbook.core.errors import ConfigError, DataError, TrainingError
from burnbook.tensor import Tensor
from tests.support.refusals import refused
from tests.support.tiny_training import (
    PLAIN,
    counts_of,
    items,
    learner,
    loader,
    log_lines,
    tiny,
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    trained = learner(tmp_path_factory.mktemp("run"), 8, lr=0.05)
    return trained.fit(loader(), loader(1))


def made(folder):
    metrics = [train.AccuracyMetric(), train.LossMetric()]
    return train.EvaluatorBuilder(folder).metrics(metrics)


def test_a_test_measures_the_model_without_dropout(tmp_path, model):
    found = made(tmp_path).renderer(None).build(model).eval("digits", loader(9))
    x = np.array([item[0] for item in items(seed=9)], np.float32)
    labels = np.array([item[1] for item in items(seed=9)])
    scores = np.asarray(model.valid().forward(Tensor.from_numpy(x, PLAIN)))
    right = 100 * (scores.argmax(1) == labels).mean()
    assert found.means["Accuracy"] == pytest.approx(right)
    assert sorted(found.means) == ["Accuracy", "Loss"]
    assert found.units == {"Accuracy": "%"}
    assert found.interrupted is None
    assert repr(found).startswith(f"Evaluation(digits: Accuracy {right:.2f} %  Loss ")


def test_logs_stand_beside_those_of_the_training(tmp_path, model):
    evaluator = made(tmp_path).renderer(None).metrics_text(train.LearningRateMetric())
    for name in ("My Digits", "others"):
        evaluator.build(model).eval(name, loader(9))
    names = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.log")}
    logs = {
        f"test/{name}/epoch-1/{metric}.log"
        for name in ("my-digits", "others")
        for metric in ("Accuracy", "Loss", "Learning_Rate")
    }
    assert names == {"evaluation.log", *logs}
    lines = log_lines(tmp_path / "test", "others", "Accuracy")
    assert counts_of(lines) == ["16", "16", "8"]
    text = (tmp_path / "evaluation.log").read_text()
    assert "INFO burn_train::evaluator: Testing the model on My Digits\n" in text
    assert "INFO burn_train::evaluator: Tested on others: Accuracy " in text


def test_a_renderer_is_told_and_a_table_ends_it(tmp_path, model):
    stream, calls = io.StringIO(), []

    class Telling(train.PlainRenderer):
        def update_test(self, name, state):
            calls.append((name, state.entry.name, state.value is not None))

        def render_test(self, progress):
            calls.append(str(progress)[:60])

        def close(self):
            calls.append("close")

        def summary(self, summary):
            stream.write(f"{summary}\n")

    evaluator = made(tmp_path).metric(train.LearningRateMetric())
    evaluator = evaluator.renderer(Telling(stream)).summary().build(model)
    found = evaluator.eval("digits", loader(9))
    assert calls[:4] == [
        ("digits", "Learning Rate", False),
        ("digits", "Accuracy", True),
        ("digits", "Loss", True),
        "TrainingProgress { progress: Progress { items_processed: 16,",
    ]
    assert calls[-1] == "close"
    assert isinstance(found.renderer, Telling)
    accuracy = f"{found.means['Accuracy']:.2f} %"
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith(f"test digits  Accuracy {accuracy}  Loss ")
    assert lines[1] == "=" * 24 + " Test · digits " + "=" * 24
    assert lines[2] == f"| Metric   | {'Value':<{len(accuracy)}} |"
    assert lines[4] == f"| Accuracy | {accuracy} |"
    assert len(lines) == 6


def test_the_place_decides_how_a_test_is_shown(tmp_path, model, monkeypatch, capsys):
    monkeypatch.setenv("BURNBOOK_DISPLAY", "plain")
    made(tmp_path).build(model).eval("digits", loader(9))
    assert capsys.readouterr().out.startswith("test digits  Accuracy ")


def test_loggers_of_ones_own_replace_files(tmp_path, model):
    logger, folder = train.InMemoryMetricLogger(), tmp_path / "none"
    builder = made(folder).with_metric_logger(logger).with_application_logger(None)
    found = builder.renderer(None).build(model).eval("digits", loader(9))
    assert len(logger.read_numeric("Loss", 1)) == 3
    assert not folder.exists()
    again = builder.build(model).eval("digits", loader(9))
    assert again.means == found.means


def test_a_test_can_be_stopped(tmp_path, model):
    builder = made(tmp_path)
    control = builder.interrupter()

    class Stopping(train.MetricsRenderer):
        def render_test(self, progress):
            control.stop("enough")

    found = builder.renderer(Stopping()).build(model).eval("digits", loader(9))
    assert found.interrupted == "enough"
    assert repr(found).endswith("; enough)")
    assert len(log_lines(tmp_path / "test", "digits", "Loss")) == 1
    assert "Testing interrupted: enough" in (tmp_path / "evaluation.log").read_text()


def test_a_model_may_come_with_or_without_gradients(tmp_path, model):
    one = made(tmp_path).renderer(None).build(model).eval("a", loader(9))
    other = made(tmp_path).renderer(None).build(model.valid()).eval("b", loader(9))
    assert one.means == other.means
    assert repr(made(tmp_path)) == f"EvaluatorBuilder({str(tmp_path)!r})"
    assert repr(made(tmp_path).build(tiny())) == "Evaluator(Tiny, 2 metrics)"


def test_what_cannot_be_tested_says_so(tmp_path, model):
    cures = ("try: a Module", "def valid_step(self, batch)")
    told = ("EvaluatorBuilder.build: ", "int has no method valid_step", *cures)
    refused(ConfigError, partial(made(tmp_path).build, 3), *told)
    for name in ("", "..", "a/b"):
        act = partial(made(tmp_path).build(model).eval, name, loader())
        told = (f"{name!r} cannot name", 'try: a plain name, such as "digits"')
        refused(TrainingError, act, "Evaluator.eval: ", *told)
    with pytest.raises(DataError, match="test data: the loader gave no batch"):
        made(tmp_path).renderer(None).build(model).eval("none", [])
    text = (tmp_path / "evaluation.log").read_text()
    assert "ERROR burn_train::evaluator: PANIC => DataError: test data" in text
    with pytest.raises(ConfigError, match=r"EvaluatorBuilder\.renderer: 3 does not"):
        made(tmp_path).renderer(3)
