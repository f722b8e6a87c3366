"""Trainings that fail, and what cannot be trained: every error in full."""

from functools import partial

import numpy as np
import pytest

from burnbook import train
from burnbook.core.errors import ConfigError, DataError, TrainingError
from burnbook.module import Module
from burnbook.optim import AdamConfig, LBFGSConfig
from burnbook.tensor import Tensor
from tests.support.refusals import refused, tells
from tests.support.tiny_training import (
    DEVICE,
    PLAIN,
    Batches,
    Tiny,
    build,
    builder,
    checkpointed,
    fitted,
    items,
    loader,
    log_lines,
    tiny,
)

# Failing


BUILD = "LearnerBuilder.build: "
LOWER = (
    "  learning rate  0.01\n",
    "try: a learning rate below 0.01, gradient clipping",
)


def fails(made, train=None, valid=None, model=None, lr=0.01):
    """The text of the error that a training ends with."""
    with pytest.raises((TrainingError, DataError)) as error:
        build(made, model, lr).fit(train or loader(), valid or loader(1))
    return str(error.value)


def poisoned(path, *values, model=None):
    """The tiny model with the first elements of a parameter replaced."""
    model = model or tiny()
    wanted = dict(model.named_params())[path].id

    class Poison:
        def map_float(self, number, tensor):
            if number != wanted:
                return tensor
            array = np.array(tensor)
            array.flat[: len(values)] = values
            return Tensor.from_numpy(array, tensor.backend).require_grad()

    return model.map(Poison())


def test_a_parameter_that_is_not_a_number_is_named(tmp_path):
    text = fails(builder(tmp_path), model=poisoned("last.bias", float("nan")))
    facts = ("last.bias: 1 NaN of 3 in its value\n", "all numbers are finite\n")
    tells(text, "train epoch 1, iteration 1: the loss is NaN\n", *facts, *LOWER)


def test_a_step_that_broke_a_parameter_is_named(tmp_path):
    class Breaking(Tiny):
        def optimize(self, optim, lr, grads):
            if len(steps) == 4:
                return poisoned("first.weight", np.nan, np.inf, model=self)
            steps.append(lr)
            return optim.step(lr, self, grads)

    steps = []
    what = "first.weight: 1 NaN and 1 infinity of 32"
    since = ("since the step of iteration 2\n", "all numbers are finite\n")
    kept = f"epoch 1 is kept in {tmp_path}/checkpoint\n"
    text = fails(checkpointed(tmp_path, 9), model=tiny(kind=Breaking))
    first = "train epoch 2, iteration 3: the loss is NaN\n"
    tells(text, first, what, *since, kept, *LOWER)


def test_a_batch_that_is_not_a_number_is_named(tmp_path):
    batch = Batches().batch(items(4))
    x = np.array(batch.x)
    x[0, 0] = np.nan
    batch.x = Tensor.from_numpy(x, DEVICE)
    text = fails(builder(tmp_path), train=[batch])
    assert "  batch          x: 1 NaN of 16\n" in text
    assert "  parameter      last.bias: 3 NaN of 3 in its gradient\n" in text
    cure = "  try: a dataset without NaN and infinity; the batch contained them"
    assert text.endswith(cure)


def test_a_loss_that_breaks_in_validation_is_named(tmp_path):
    batch = Batches().batch(items(4), PLAIN)
    batch.x = Tensor.from_numpy(np.full((4, 4), np.inf, np.float32), PLAIN)
    text = fails(builder(tmp_path), valid=[batch])
    first = "valid epoch 1, iteration 1: the loss is NaN\n"
    facts = ("all values and gradients are finite\n", "x: 16 infinities of 16\n")
    tells(text, first, *facts, "try: a dataset without NaN and infinity")


def test_a_failed_training_keeps_its_logs_and_says_so_in_the_diary(tmp_path):
    fails(builder(tmp_path), model=poisoned("last.bias", float("nan")))
    diary = (tmp_path / "experiment.log").read_text()
    where = "train epoch 1, iteration 1: the loss is NaN"
    assert f"ERROR burn_train::learner: PANIC => TrainingError: {where}\n" in diary


@pytest.mark.parametrize("step", ["train_step", "valid_step"])
def test_a_model_without_steps_is_refused_when_building(tmp_path, step):
    class Half(Tiny):
        pass

    setattr(Half, step, None)
    returned = {"train_step": "TrainOutput(self", "valid_step": "ClassificationOutput("}
    told = (f"Half has no method {step}", f"try: def {step}(self, batch) in Half")
    act = builder(tmp_path), tiny(kind=Half)
    refused(ConfigError, lambda: build(*act), BUILD, *told, returned[step])


def test_what_cannot_be_trained_is_refused_when_building(tmp_path):
    class Empty(Module):
        train_step = valid_step = None

    made, adam = builder(tmp_path), AdamConfig()
    for model, optim, what, cure in (
        (3, adam.init(), "int is not a Module", "try: a subclass of Module"),
        (Empty(), adam.init(), "Empty has no parameters", "try: a subclass of Module"),
        (tiny(), adam, "AdamConfig is a config, not", "try: AdamConfig(…).init()"),
        (tiny(), None, "NoneType is not an optimizer", "try: AdamConfig().init()"),
    ):
        act = partial(made.build, model, optim, 0.01)
        refused(ConfigError, act, BUILD, what, cure)


def test_l_bfgs_is_refused_unless_the_model_takes_its_steps(tmp_path):
    lbfgs = LBFGSConfig().init()
    told = "LBFGS asks for several losses in a step"
    cure = "try: model, loss = optim.step(lr, model, closure)"
    act = partial(builder(tmp_path).build, tiny(), lbfgs, 0.1)
    refused(ConfigError, act, BUILD, told, cure)
    act = partial(train.find_learning_rate, tiny(), lbfgs, [])
    refused(ConfigError, act, "find_learning_rate", told, cure)

    class Own(Tiny):
        def optimize(self, optim, lr, grads):
            return self

    assert builder(tmp_path).build(tiny(kind=Own), lbfgs, 0.1).optim is lbfgs


def test_a_loss_in_place_of_its_gradients_is_explained():
    item = tiny().valid_step(Batches().batch(items(4)))
    what = "Tensor is not what backward() returns"
    cure = "try: TrainOutput(self, item.loss.b"
    act = partial(train.TrainOutput, tiny(), item.loss, item)
    refused(TrainingError, act, "TrainOutput: ", what, cure)


def test_a_step_that_returns_something_else_is_shown_what_to_return(tmp_path):
    class Wrong(Tiny):
        def train_step(self, batch):
            return self.valid_step(batch)

    text = fails(builder(tmp_path), model=tiny(kind=Wrong))
    what = "Wrong.train_step: it returned ClassificationOutput, not Tra"
    assert text.startswith(what)
    assert "\n  try: return TrainOutput(self, item.loss.backward(), item)" in text


def test_a_metric_that_wants_another_item_is_told_what_there_is(tmp_path):
    class Regression(Tiny):
        def valid_step(self, batch):
            item = super().valid_step(batch)
            return train.RegressionOutput(item.loss, item.output, item.output)

    assert fails(builder(tmp_path), model=tiny(kind=Regression)).startswith(
        "RegressionOutput.adapt: this item cannot become an AccuracyInput\n"
        "  it can become  LossInput\n"
    )


def test_an_item_that_adapts_to_nothing_is_explained(tmp_path):
    class Bare(Tiny):
        def valid_step(self, batch):
            return super().valid_step(batch).loss

        def train_step(self, batch):
            output = super().valid_step(batch)
            return train.TrainOutput(self, output.loss.backward(), 3)

    text = fails(builder(tmp_path), model=tiny(kind=Bare))
    assert text.startswith("AccuracyMetric: int cannot be adapted to AccuracyInput\n")
    assert "  try: an item such as ClassificationOutput(loss, output, targets)" in text


def test_an_empty_loader_is_an_error(tmp_path):
    facts = ("no batch in epoch 1\n", "  loader  list_iterator\n")
    text = fails(builder(tmp_path), train=iter([]))
    tells(text, "training data: ", *facts, "try: a dataset that is")


def test_an_artifact_directory_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "run").write_text("mine")
    for path, *told in (
        ("run", "this is a file"),
        ("run/deeper", f"{tmp_path}/run is a file", "try: another folder, or move"),
    ):
        told = (*told, "not a folder\n", "try: another folder")
        act = partial(build, builder(tmp_path / path))
        refused(TrainingError, act, f"artifact directory {tmp_path}/{path}: ", *told)
    assert (tmp_path / "run").read_text() == "mine"


def test_an_artifact_directory_without_permission_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("burnbook.train.folder.os.access", lambda *asked: False)
    told = ("no permission", "try: a folder of your")
    act = partial(build, builder(tmp_path))
    refused(TrainingError, act, f"artifact directory {tmp_path}: ", *told)


@pytest.mark.parametrize(
    ("option", "value"),
    [("num_epochs", 0), ("grads_accumulation", -1), ("checkpoint", True)],
)
def test_counts_must_be_counts(option, value):
    told = (f"{value!r} is not a number of at least 1", f"try: {option}(1)")
    act = partial(getattr(train.LearnerBuilder("x"), option), value)
    refused(ConfigError, act, f"LearnerBuilder.{option}: ", *told)


def test_options_that_make_no_sense_are_refused():
    class Text(train.Metric):
        name = "Text"

        def update(self, item, metadata):
            return train.MetricEntry(self.name, "", "")

    saves = "with_file_checkpointer"
    for option, value, what, cure in (
        ("devices", [], ".devices: the list is empty", "devices([Numpy()])"),
        ("metric_train_numeric", Text(), ": Text has no value", "metric_train(Text())"),
        ("metric_valid", 3, ": int is not a metric", "AccuracyMetric()"),
        (saves, "model.mpk", f".{saves}: str is not", f"{saves}(Compact"),
    ):
        act = partial(getattr(train.LearnerBuilder("x"), option), value)
        refused(ConfigError, act, f"LearnerBuilder{what}", f"\n  try: {cure}")


def test_a_metric_registered_twice_is_logged_once(tmp_path):
    made = train.LearnerBuilder(tmp_path).renderer(train.MetricsRenderer())
    for _ in range(2):
        made.metric_train_numeric(train.AccuracyMetric())
    fitted(made)
    assert len(log_lines(tmp_path, "train", "Accuracy")) == 3
