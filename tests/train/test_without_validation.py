"""Training without a validation phase: `fit(train)`."""

import asyncio
import io

import numpy as np
import pytest

from burnbook import train
from burnbook.core.errors import ConfigError, DataError
from burnbook.lr_scheduler import (
    ComposedLrSchedulerConfig,
    ConstantLr,
    ReduceOnPlateauLrSchedulerConfig,
)
from burnbook.optim import AdamConfig
from burnbook.train.renderer.dashboard import COLORLESS, draw
from tests.support.tiny_training import (
    Probe,
    build,
    builder,
    checkpointed,
    file_names,
    learner,
    loader,
    same_weights,
    tiny,
)

PATIENT = train.StoppingCondition.NoImprovementSince(1)


def early(split):
    choices = (train.Aggregate.Mean, train.Direction.Lowest, split)
    return train.MetricEarlyStoppingStrategy("Loss", *choices, PATIENT)


def best(split):
    choices = (train.Aggregate.Mean, train.Direction.Lowest, split)
    return train.MetricCheckpointingStrategy("Loss", *choices)


# What a training leaves


def test_the_weights_are_those_of_a_training_with_validation(tmp_path):
    without = learner(tmp_path / "without").fit(loader())
    assert same_weights(without, learner(tmp_path / "with").fit(loader(), loader(1)))


def test_only_training_is_measured_logged_and_remembered(tmp_path):
    trained = learner(tmp_path, 3)
    trained.fit(loader(), None)
    history = trained.result.history
    assert [epoch for epoch, _ in history.epochs("Loss", "train")] == [1, 2, 3]
    assert history.epochs("Loss", "valid") == []
    assert file_names(tmp_path) == ["checkpoint", "experiment.log", "train"]
    assert set(history.to_dict()["split"]) == {"train"}
    run = train.runs.Run(tmp_path)
    assert (run.state, run.epochs) == ("finished", 3)
    assert run.last("Loss", "train") is not None
    log = (tmp_path / "experiment.log").read_text()
    assert "validation step" not in log


def test_the_last_two_checkpoints_stay(tmp_path):
    learner(tmp_path, 4).fit(loader())
    names = file_names(tmp_path / "checkpoint")
    assert [n for n in names if n.startswith("model")] == ["model-3.mpk", "model-4.mpk"]


def test_logs_of_an_older_validation_do_not_count(tmp_path, monkeypatch):
    monkeypatch.delenv("BURNBOOK_DISPLAY", raising=False)
    told = []
    probe = Probe()
    probe.summary = told.append
    learner(tmp_path, 4).fit(loader(), loader(1))
    build(checkpointed(tmp_path, 4).renderer(probe).summary()).fit(loader())
    assert {row.split for row in told[0].rows} == {"Train"}
    names = file_names(tmp_path / "checkpoint")
    assert "model-3.mpk" in names


def test_a_training_without_validation_resumes_to_the_same_weights(tmp_path):
    straight = learner(tmp_path / "a", 4).fit(loader())
    learner(tmp_path / "b", 2).fit(loader())
    made = build(checkpointed(tmp_path / "b", 4).checkpoint())
    assert same_weights(made.fit(loader()), straight)
    assert [e for e, _ in made.result.history.epochs("Loss", "train")] == [1, 2, 3, 4]


def test_another_fit_may_validate_again(tmp_path):
    trained = learner(tmp_path, 2)
    trained.fit(loader())
    trained.fit(loader(), loader(1))
    assert trained.epochs == 4
    assert len(trained.result.history.epochs("Loss", "valid")) == 2


def test_fit_async_start_and_supervised_training_need_no_validation(tmp_path):
    model = learner(tmp_path / "a").fit(loader())
    awaited = asyncio.run(learner(tmp_path / "b").fit_async(loader()))
    threaded = learner(tmp_path / "c").start(loader()).wait()
    made = train.SupervisedTraining(tmp_path / "d", loader()).num_epochs(2)
    made = made.metrics(train.LossMetric()).renderer(train.MetricsRenderer())
    launched = made.launch(train.Learner(tiny(), AdamConfig().init(), 0.01))
    for other in (awaited, threaded, launched.training.model):
        assert same_weights(model, other)


# What follows a metric


def test_what_follows_a_metric_of_training_works(tmp_path):
    plateau = ReduceOnPlateauLrSchedulerConfig(0.01, split="train").init()
    made = checkpointed(tmp_path, 3).early_stopping(early(train.Split.Train))
    made.with_checkpointing_strategy(best(train.Split.Train))
    made.callback(train.RestoreBest("Loss", split=train.Split.Train))
    trained = build(made, lr=plateau)
    model = trained.fit(loader())
    held = [f for f in file_names(tmp_path / "checkpoint") if f.startswith("model")]
    losses = dict(trained.result.history.epochs("Loss", "train"))
    assert held == [f"model-{min(losses, key=losses.get)}.mpk"]
    assert model is not None


@pytest.mark.parametrize(
    ("name", "part", "cure"),
    [
        ("early_stopping", early(train.Split.Valid), "Split.Train"),
        ("with_checkpointing_strategy", best(train.Split.Valid), "Split.Train"),
        (
            "with_checkpointing_strategy",
            train.ComposedCheckpointingStrategy(best(train.Split.Valid)),
            "Split.Train",
        ),
        ("callback", train.RestoreBest("Loss"), "Split.Train"),
        ("build", ReduceOnPlateauLrSchedulerConfig(0.01).init(), 'split="train"'),
        (
            "build",
            ComposedLrSchedulerConfig()
            .reduce_on_plateau(ReduceOnPlateauLrSchedulerConfig(0.01))
            .init(),
            'split="train"',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_asks_for_a_metric_of_validation_is_refused_first(
    tmp_path, name, part, cure
):
    made, rate, probe = builder(tmp_path), ConstantLr(0.01), Probe()
    made.renderer(probe)
    if name == "build":
        rate = part
    else:
        getattr(made, name)(part)
    trained = build(made, lr=rate)
    with pytest.raises(ConfigError, match=f"LearnerBuilder.{name}: .*'Loss'") as caught:
        trained.fit(loader())
    assert cure in str(caught.value)
    assert probe.batches == 0
    trained.fit(loader(), loader(1))


# What is no loader


@pytest.mark.parametrize("method", ["fit", "start", "fit_async"])
@pytest.mark.parametrize("empty", [[], ()], ids=repr)
def test_empty_data_are_refused_before_the_first_batch(tmp_path, method, empty):
    probe = Probe()
    trained = build(builder(tmp_path).renderer(probe))

    def call(*data):
        made = getattr(trained, method)(*data)
        return asyncio.run(made) if method == "fit_async" else made

    with pytest.raises(DataError, match=r"validation data: .* no batch") as caught:
        call(loader(), empty)
    assert f"{method}(train), to train without" in str(caught.value)
    with pytest.raises(DataError, match=r"training data: .* no batch"):
        call(empty, loader())
    with pytest.raises(DataError, match="validation data: int is not a loader"):
        call(loader(), 5)
    assert probe.calls == []


def test_training_data_are_needed(tmp_path):
    with pytest.raises(DataError, match="training data: NoneType is not a loader"):
        learner(tmp_path).fit(None)


# What people see


def test_the_plain_renderer_writes_a_line_per_epoch(tmp_path):
    stream = io.StringIO()
    build(builder(tmp_path).renderer(train.PlainRenderer(stream))).fit(loader())
    lines = stream.getvalue().splitlines()
    assert [line.partition("  ")[0] for line in lines] == ["epoch 1/2", "epoch 2/2"]
    assert all("train" in line and "valid" not in line for line in lines)


def test_the_terminal_shows_no_validation(tmp_path):
    stream = io.StringIO()
    renderer = train.TerminalRenderer(stream)
    build(builder(tmp_path).renderer(renderer)).fit(loader())
    for size in ((100, 30), (50, 12)):
        text = "\n".join(draw(renderer.dashboard, *size, COLORLESS))
        assert "train" in text
        assert "valid" not in text
    assert "valid" not in stream.getvalue()


def test_the_notebook_shows_no_validation(tmp_path, monkeypatch):
    widgets = pytest.importorskip("burnbook_widgets")
    monkeypatch.setenv("BURNBOOK_DISPLAY", "static")
    renderer = widgets.NotebookRenderer()
    trained = build(builder(tmp_path).renderer(renderer))
    trained.fit(loader())
    board = renderer.dashboard
    assert board.splits == ("train",)
    assert board.meter.done() == 1.0
    assert board.line == "Trained 2 epochs: Accuracy and Loss, train."
    means = np.array(trained.result.history.epochs("Loss", "train"))
    rows = board.curves.rows()
    np.testing.assert_allclose([row["train Loss"] for row in rows], means[:, 1])
    assert not any("valid Loss" in row for row in rows)
