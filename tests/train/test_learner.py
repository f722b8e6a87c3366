"""The learner: what it writes, whom it tells, how it resumes."""

import asyncio
import io
import threading
import weakref
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from burnbook import nn, train
from burnbook.core.errors import RecordError, TrainingError, UnknownNameError
from burnbook.grad_clipping import GradientClippingConfig
from burnbook.module import Module
from burnbook.module.tree import MODULES
from burnbook.optim import SgdConfig
from burnbook.tensor import Tensor
from tests.support.refusals import refused
from tests.support.tiny_training import (
    DEVICE,
    LOWEST_LOSS,
    PLAIN,
    Batches,
    Probe,
    Tiny,
    build,
    builder,
    checkpointed,
    counts_of,
    file_names,
    fitted,
    items,
    learner,
    loader,
    log_lines,
    recorder,
    same_weights,
    stop_at,
    tiny,
    weights,
)

# What a training leaves


def test_training_improves_the_model_and_leaves_its_artifacts(tmp_path):
    trained = learner(tmp_path, epochs=15)
    trained.fit(loader(), loader(1))
    means = [value for _, value in trained.result.history.epochs("Loss", "valid")]
    assert means[-1] < 0.8 * means[0]
    assert trained.result.epochs == 15
    assert trained.result.interrupted is None
    folders = {path.name for path in tmp_path.iterdir()}
    assert folders == {"experiment.log", "train", "valid", "checkpoint"}
    assert len(list((tmp_path / "train").iterdir())) == 15


def test_log_lines_are_the_batches_of_the_epoch(tmp_path):
    learner(tmp_path, epochs=1).fit(loader(), loader(1))
    for split in ("train", "valid"):
        accuracy = log_lines(tmp_path, split, "Accuracy")
        assert counts_of(accuracy) == ["16", "16", "8"]
        assert counts_of(log_lines(tmp_path, split, "Loss")) == ["16", "16", "8"]
        assert (tmp_path / split / "epoch-1" / "Loss.log").read_text().endswith("\n")


def test_the_diary_tells_the_story_in_burns_words(tmp_path):
    learner(tmp_path, epochs=1).fit(loader(), loader(1))
    text = (tmp_path / "experiment.log").read_text()
    head = "burn_train::learner::train_val: Fitting the model:\n Tiny {\n"
    assert head in text
    told = [line.partition("burn_train::")[2] for line in text.splitlines()]
    story = [line for line in told if line.startswith("learner::epoch")]
    assert story == [
        "learner::epoch: Executing training step for epoch 1",
        "learner::epoch: Iteration 1",
        "learner::epoch: Iteration 2",
        "learner::epoch: Iteration 3",
        "learner::epoch: Executing validation step for epoch 1",
    ]


def test_the_same_training_twice_gives_the_same_weights(tmp_path):
    first = learner(tmp_path / "a").fit(loader(), loader(1))
    assert same_weights(first, learner(tmp_path / "b").fit(loader(), loader(1)))
    threaded = learner(tmp_path / "c").fit(loader(workers=2), loader(1))
    assert same_weights(first, threaded)


def test_the_model_given_stays_as_it_was(tmp_path):
    model = tiny()
    before = {path: value.copy() for path, value in weights(model).items()}
    learner(tmp_path, model=model).fit(loader(), loader(1))
    assert all(np.array_equal(before[p], v) for p, v in weights(model).items())


def test_a_plain_model_is_trained_under_autodiff(tmp_path):
    plain = tiny(PLAIN)
    trained = builder(tmp_path).devices([PLAIN])
    model = build(trained, plain).fit(loader(), loader(1))
    assert model.devices() == [DEVICE]
    assert same_weights(model, learner(tmp_path).fit(loader(), loader(1)))


def test_any_iterable_of_batches_is_a_loader(tmp_path):
    batches = [Batches().batch(items(4, seed)) for seed in range(3)]
    valid = [Batches().batch(items(4, 9), PLAIN)]
    trained = build(builder(tmp_path, 1))
    trained.fit(batches, valid)
    assert trained.result.epochs == 1


def test_metrics_without_a_file_leave_no_folder(tmp_path):
    folder = tmp_path / "nothing"
    loggers = (train.InMemoryMetricLogger(), train.InMemoryMetricLogger())
    made = builder(folder).metric_loggers(*loggers).with_application_logger(None)
    fitted(made)
    assert not folder.exists()
    assert len(loggers[0].read_numeric("Loss", 2)) == 3


def test_a_model_may_take_its_own_step(tmp_path):
    class Clipped(Tiny):
        def optimize(self, optim, lr, grads):
            steps.append(lr)
            return optim.step(lr, self, grads)

    steps = []
    model = tiny(kind=Clipped)
    own = learner(tmp_path, epochs=1, model=model).fit(loader(), loader(1))
    assert same_weights(own, learner(tmp_path, 1).fit(loader(), loader(1)))
    assert steps == [0.01] * 3


def test_accumulation_steps_once_per_group_with_the_sum(tmp_path):
    steps = []

    class Counted(Tiny):
        def optimize(self, optim, lr, grads):
            steps.append({p: np.asarray(grads.get(x.id)) for p, x in named(self)})
            return self

    named = Module.named_params
    model = tiny(kind=Counted)
    fitted(builder(tmp_path, 1), model)
    singles, steps = steps, []
    fitted(builder(tmp_path, 1).grads_accumulation(2), model)
    assert len(singles) == 3
    assert len(steps) == 1
    for path, grad in steps[0].items():
        both = singles[0][path] + singles[1][path]
        np.testing.assert_allclose(grad, both, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("option", ["none", "accumulation", "devices"])
def test_a_step_is_never_longer_than_the_global_norm(tmp_path, option):
    seen = [tiny()]
    made = builder(tmp_path, 2).callback(lambda s: seen.append(s.model), on="step")
    if option == "accumulation":
        made.grads_accumulation(2)
    elif option == "devices":
        made.devices([DEVICE, DEVICE])
    clipping = GradientClippingConfig.GlobalNorm(0.01)
    optim = SgdConfig(gradient_clipping=clipping).init()
    made.build(tiny(), optim, 1.0).fit(loader(), loader(1))
    assert len(seen) == (7 if option == "none" else 3)
    for before, after in pairwise(map(weights, seen)):
        moves = [np.linalg.norm(after[path] - before[path]) for path in before]
        assert np.linalg.norm(moves) == pytest.approx(0.01, rel=1e-3)


def test_two_devices_share_a_step(tmp_path):
    trained = build(builder(tmp_path, 8).devices([DEVICE, DEVICE]))
    model = trained.fit(loader(), loader(1))
    means = [value for _, value in trained.result.history.epochs("Loss", "train")]
    assert means[-1] < means[0]
    again = build(builder(tmp_path, 8).devices([DEVICE, DEVICE]))
    assert same_weights(model, again.fit(loader(), loader(1)))


# What renderers and strategies are told


def test_a_renderer_is_told_everything_in_order(tmp_path):
    probe = Probe()
    made = builder(tmp_path, 1).metric_train(train.LearningRateMetric()).renderer(probe)
    build(made).fit(loader(count=8), loader(1))
    assert probe.calls == [
        "start",
        "update Learning Rate",
        "update Accuracy",
        "update Loss",
        "render",
        "end 1 train ['Accuracy', 'Loss']",
        "end 1 valid ['Accuracy', 'Loss']",
        "finish",
        "close",
    ]
    assert probe.run.metrics == ("Accuracy", "Loss")
    assert probe.run.units == {"Accuracy": "%"}
    run = probe.run
    assert (run.start_epoch, run.num_epochs, run.mode) == (1, 1, "fit")


def test_the_summary_is_shown_at_the_end(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BURNBOOK_DISPLAY", "plain")
    fitted(builder(tmp_path, 2).summary())
    shown = capsys.readouterr().out
    assert shown.startswith("=" * 24 + " Learner Summary ")
    assert "Total Epochs: 2\n" in shown
    assert "| Valid | Loss     | " in shown


def test_early_stopping_ends_the_training_and_says_why(tmp_path):
    trained = build(builder(tmp_path, 50).early_stopping(patient(1)), lr=0.0)
    trained.fit(loader(), [Batches().batch(items(16, 1), PLAIN)])
    assert trained.result.epochs == 2
    assert trained.result.interrupted == STOPPED_EARLY


def test_checkpoints_follow_the_strategy(tmp_path):
    strategy = train.KeepLastNCheckpoints(1)
    fitted(checkpointed(tmp_path, 4).with_checkpointing_strategy(strategy))
    names = file_names(tmp_path / "checkpoint")
    assert names == ["model-4.mpk", "optim-4.mpk", "scheduler-4.mpk"]


def test_a_training_that_ends_early_leaves_no_worker_behind(tmp_path):
    probe = stop_at(2, lambda control: control.stop())
    trained = build(builder(tmp_path, 100).renderer(probe))
    before = set(threading.enumerate())
    trained.fit(loader(workers=2), loader(1, workers=2))
    assert set(threading.enumerate()) <= before


def test_a_step_may_use_the_memory_of_the_step_before(tmp_path):
    """Nothing of a batch is held while the next one is computed."""

    class Watching(Tiny):
        def train_step(self, batch):
            assert [ref() for ref in seen] == [None] * len(seen)
            output = super().train_step(batch)
            seen.append(weakref.ref(output.item))
            return output

    seen = []
    model = tiny(kind=Watching)
    fitted(builder(tmp_path), model)
    assert len(seen) == 6


# Resuming


@pytest.mark.parametrize("number", [2, None])
def test_a_resumed_training_equals_an_uninterrupted_one(tmp_path, number):
    whole = learner(tmp_path / "whole", epochs=4)
    expected = whole.fit(loader(), loader(1))

    learner(tmp_path / "parts", epochs=2).fit(loader(), loader(1))
    resumed = build(checkpointed(tmp_path / "parts", 4).checkpoint(number))
    assert same_weights(expected, resumed.fit(loader(), loader(1)))
    parts, one = resumed.result.history, whole.result.history
    assert parts.epochs("Loss", "valid") == one.epochs("Loss", "valid")
    assert parts.points("Loss", "train") == one.points("Loss", "train")
    for split in ("train", "valid"):
        for epoch in range(1, 5):
            name = f"{split}/epoch-{epoch}/Loss.log"
            parts = (tmp_path / "parts" / name).read_bytes()
            assert parts == (tmp_path / "whole" / name).read_bytes()


def test_resuming_without_a_number_starts_where_nothing_was_saved(tmp_path):
    trained = fitted(checkpointed(tmp_path, 1).checkpoint())
    assert trained.result.epochs == 1


def test_resuming_remembers_the_best_epoch(tmp_path):
    """The best epoch of the first part is deleted once a better one is saved."""
    learner(tmp_path, epochs=3).fit(loader(), loader(1))
    fitted(checkpointed(tmp_path, 6).checkpoint())
    names = {path.name for path in (tmp_path / "checkpoint").glob("model-*")}
    whole = tmp_path / "whole"
    learner(whole, epochs=6).fit(loader(), loader(1))
    assert names == {path.name for path in (whole / "checkpoint").glob("model-*")}


def test_resuming_where_nothing_is_left_says_so(tmp_path):
    learner(tmp_path, epochs=2).fit(loader(), loader(1))
    for total, which in ((2, "the last of 2"), (1, "beyond the last of 1")):
        told = (f"epoch 2 is {which}", "nothing is left", "try: num_epochs(3) or more")
        act = partial(fitted, checkpointed(tmp_path, total).checkpoint(2))
        refused(TrainingError, act, "checkpoint(2): ", *told)


def test_a_finished_training_started_again_gives_its_model(tmp_path):
    model = learner(tmp_path, epochs=2).fit(loader(), loader(1))
    probe = Probe()
    again = build(checkpointed(tmp_path).checkpoint().renderer(probe))
    assert same_weights(model, again.fit(loader(), loader(1)))
    assert again.result.epochs == 2
    assert len(again.result.history.epochs("Loss", "valid")) == 2
    assert probe.calls == ["start", "finish", "close"]


def test_resuming_without_a_checkpointer_says_so(tmp_path):
    told = ("there is no checkpointer", "try: with_file_checkpointer(...)")
    act = partial(fitted, builder(tmp_path).checkpoint(1))
    refused(TrainingError, act, "checkpoint: ", *told)


# Damaged checkpoints


@pytest.mark.parametrize("part", ["model", "optim", "scheduler"])
@pytest.mark.parametrize("harm", ["cut", "empty", "zeros"])
def test_a_damaged_newest_checkpoint_gives_way_to_the_one_before(tmp_path, part, harm):
    """All three files of an epoch belong together: one damaged, and none counts."""
    whole = learner(tmp_path / "whole", epochs=4).fit(loader(), loader(1))
    folder = tmp_path / "run"
    learner(folder, epochs=3).fit(loader(), loader(1))
    path = folder / "checkpoint" / f"{part}-3.mpk"
    data = path.read_bytes()
    left = {"cut": data[:-9], "empty": b"", "zeros": bytes(len(data))}[harm]
    path.write_bytes(left)
    stream = io.StringIO()
    made = checkpointed(folder, 4).checkpoint()
    resumed = build(made.renderer(train.PlainRenderer(stream)))
    assert same_weights(whole, resumed.fit(loader(), loader(1)))
    notice = "resuming after epoch 2, as a newer one is damaged: "
    first = stream.getvalue().splitlines()[0]
    assert first.startswith(notice)
    assert path.name in first
    diary = (folder / "experiment.log").read_text()
    assert f"WARN burn_train::checkpoint::file: {first}\n" in diary
    aside = file_names(folder / "checkpoint" / "earlier-1")
    assert aside == [f"{name}-3.mpk" for name in ("model", "optim", "scheduler")]


def test_a_damaged_checkpoint_asked_for_by_number_is_named(tmp_path):
    learner(tmp_path, epochs=2).fit(loader(), loader(1))
    path = tmp_path / "checkpoint" / "optim-2.mpk"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(RecordError, match=r"optim-2\.mpk"):
        fitted(checkpointed(tmp_path, 3).checkpoint(2))


def test_checkpoints_of_another_model_are_an_error_and_stay(tmp_path):
    learner(tmp_path, epochs=2).fit(loader(), loader(1))
    before = sorted((tmp_path / "checkpoint").iterdir())
    DEVICE.seed(3)
    model = tiny()
    other = Tiny(model.first, model.dropout, nn.LinearConfig(8, 5).init(DEVICE))
    with pytest.raises(RecordError, match="load into Tiny: 2 of 4 parameters"):
        fitted(checkpointed(tmp_path, 3).checkpoint(), other)
    assert sorted((tmp_path / "checkpoint").iterdir()) == before


# Early stopping, resumed


STOPPED_EARLY = "stopped early: Loss has not improved since epoch 1"


def patient(n_epochs):
    condition = train.StoppingCondition.NoImprovementSince(n_epochs=n_epochs)
    return train.MetricEarlyStoppingStrategy(*LOWEST_LOSS, condition)


def test_early_stopping_counts_on_when_resumed(tmp_path):
    """Burn begins to count anew, so a resumed run would stop later than a whole one."""
    same = [Batches().batch(items(16, 1), PLAIN)]
    for epochs in (2, 9):
        made = checkpointed(tmp_path, epochs)
        trained = build(made.early_stopping(patient(3)).checkpoint(), lr=0.0)
        trained.fit(loader(), same)
    assert trained.result.epochs == 4


def test_a_run_that_has_stopped_early_stays_stopped(tmp_path):
    same = [Batches().batch(items(16, 1), PLAIN)]
    for patience, epochs in ((1, 2), (1, 2), (2, 3)):
        made = checkpointed(tmp_path, 9)
        trained = build(made.early_stopping(patient(patience)).checkpoint(), lr=0.0)
        trained.fit(loader(), same)
        assert trained.result.epochs == epochs
        assert trained.result.interrupted == STOPPED_EARLY


# What fit returns


class Wrapped(Module):
    """A model with a field called model, as wrappers have."""

    model: nn.Linear
    head: nn.Linear

    def forward(self, x):
        return self.head.forward(self.model.forward(x))

    train_step, valid_step = Tiny.train_step, Tiny.valid_step


def attributes(model):
    """What every part of a model holds beside its fields, and the fields."""
    return {
        path: sorted(vars(part))
        for path, part in MODULES.nodes(model)
        if isinstance(part, Module)
    }


WAYS = {
    "fit": lambda made, *data: made.fit(*data),
    "fit_async": lambda made, *data: asyncio.run(made.fit_async(*data)),
    "start": lambda made, *data: made.start(*data).wait(),
}


@pytest.mark.parametrize("way", WAYS)
def test_training_leaves_no_attribute_on_a_model(tmp_path, way):
    given = tiny()
    made = learner(tmp_path, epochs=1, model=given)
    trained = WAYS[way](made, loader(), loader(1))
    assert attributes(trained) == attributes(given) == attributes(tiny())
    again = made.fit(loader(), loader(1))
    assert attributes(again) == attributes(given)
    assert made.result.model is again
    x = Tensor.ones([1, 4], DEVICE)
    trained.features(x, at="first")
    trained.valid().eval()
    assert attributes(trained) == attributes(given)


@pytest.mark.parametrize("change", ["fit", "valid", "step", "replace"])
def test_a_trained_model_is_no_result_and_says_where_that_is(tmp_path, change):
    made = learner(tmp_path, epochs=1)
    trained = made.fit(loader(), loader(1))
    assert not hasattr(trained, "model")
    if change == "valid":
        trained = trained.valid()
    if change == "replace":
        trained = trained.replace()
    if change == "step":
        output = trained.train_step(next(iter(loader())))
        trained = made.optim.step(0.1, trained, output.grads)
    with pytest.raises(UnknownNameError, match=r"learner\.result\.model") as caught:
        _ = trained.model
    assert same_weights(eval(caught.value.cure, {"learner": made}), made.result.model)


def test_a_field_called_model_stays_a_field(tmp_path):
    given = Wrapped(
        nn.LinearConfig(4, 8).init(DEVICE), nn.LinearConfig(8, 3).init(DEVICE)
    )
    made = learner(tmp_path, epochs=1, model=given)
    trained = made.fit(loader(), loader(1))
    assert isinstance(trained.model, nn.Linear)
    assert made.result.model is made.model is trained
    path = made.result.model.save_file(tmp_path / "whole", recorder())
    assert same_weights(given.load_file(path, recorder()), trained)
