"""Arguments of a training in another order, their classes, their configs.

The calls that take a model, an optimizer, a rate, gradients or a loader are tried with
every order of what they take, and with the class or the config of each in its place.
The cure is the reader's own line, and it works.
"""

import itertools
import linecache
import re

import numpy as np
import pytest

from burnbook import lr_scheduler, nn, optim, train
from burnbook.core.errors import BurnbookError
from burnbook.data import DataLoaderBuilder
from burnbook.grad_clipping import GradientClippingConfig
from burnbook.optim import (
    GradientsAccumulator,
    GradientsParams,
    SgdConfig,
)
from burnbook.prelude import Autodiff, Config, Module, Numpy, Tensor
from burnbook.train import (
    Aggregate,
    ClassificationOutput,
    Direction,
    EvaluatorBuilder,
    LearnerBuilder,
    LossMetric,
    Split,
    TrainOutput,
)

DEVICE = Autodiff(Numpy(compiled=False))


class NetConfig(Config):
    size: int

    def init(self, device) -> "Net":
        return Net(nn.LinearConfig(2, self.size).init(device))


class Net(Module):
    fc: nn.Linear

    def forward(self, x):
        return self.fc.forward(x)

    def train_step(self, batch):
        item = self.valid_step(batch)
        return TrainOutput(self, item.loss.backward(), item)

    def valid_step(self, batch):
        x, y = batch
        out = self.forward(x)
        loss = nn.CrossEntropyLossConfig().init(x.device()).forward(out, y)
        return ClassificationOutput(loss, out, y)


def names(tmp_path):
    """What the lines speak of."""
    model = NetConfig(2).init(DEVICE)
    x = Tensor.ones([4, 2], DEVICE)
    accumulator = GradientsAccumulator()

    def grads():
        return GradientsParams.from_grads(model.forward(x).sum().backward(), model)

    accumulator.accumulate(model, grads())
    data = (np.ones((4, 2), np.float32), np.array([0, 1, 0, 1]))
    builder = LearnerBuilder(tmp_path / "run").renderer(None)
    return {
        **vars(train),
        **vars(optim),
        **vars(lr_scheduler),
        **globals(),
        "__name__": "program",
        "model": model,
        "optim": SgdConfig().init(),
        "schedule": lr_scheduler.ExponentialLrSchedulerConfig(0.1, 0.9).init(),
        "loss": model.forward(x).sum(),
        "backward": model.forward(x).sum().backward(),
        "grads": grads(),
        "accumulator": accumulator,
        "clipping": GradientClippingConfig.Norm(1.0).init(),
        "builder": builder,
        "evaluators": EvaluatorBuilder(tmp_path / "test").renderer(None),
        "learner": LearnerBuilder(tmp_path / "x").build(model, SgdConfig().init(), 0.1),
        "loader": DataLoaderBuilder().batch_size(2).build(data),
        "device": DEVICE,
    }


def ran(line, known):
    """What a line raises, with its source at hand; None if it works."""
    name = f"<line {abs(hash(line))}>"
    linecache.cache[name] = (len(line), None, [f"made = {line}\n"], name)
    try:
        exec(compile(f"made = {line}\n", name, "exec"), known)
    except BurnbookError as error:
        return error
    return None


CALLS = {
    "builder.build": ["model", "optim", "1e-3"],
    "builder.build ": ["model", "optim", "schedule"],
    "optim.step": ["0.1", "model", "grads"],
    "accumulator.accumulate": ["model", "grads"],
    "find_learning_rate": ["model", "optim", "loader"],
}
TURNED = [
    (call, order)
    for call, right in CALLS.items()
    for order in itertools.permutations(right)
    if list(order) != right
]


@pytest.mark.parametrize(("call", "order"), TURNED)
def test_another_order_is_answered_with_the_right_one(tmp_path, call, order):
    known = names(tmp_path)
    error = ran(f"{call}({', '.join(order)})", known)
    assert error is not None
    assert "comes first" in error.what, error
    wanted = f"{call.strip()}({', '.join(CALLS[call])})"
    assert error.cure == wanted
    assert ran(wanted, names(tmp_path)) is None


# line: its cure, which stands for the argument, or for the whole line
FORMS = {
    "builder.build(Net, optim, 1e-3)": "Net(fc)",
    "builder.build(NetConfig, optim, 1e-3)": "NetConfig(size).init(device)",
    "builder.build(NetConfig(2), optim, 1e-3)": "NetConfig(2).init(device)",
    "builder.build(model, AdamConfig, 1e-3)": "AdamConfig().init()",
    "builder.build(model, AdamConfig(), 1e-3)": "AdamConfig().init()",
    "builder.build(model, SgdConfig(), schedule)": "SgdConfig().init()",
    "builder.build(model, 'adam', 1e-3)": "AdamConfig().init()",
    "builder.build(model, 'SGD', 1e-3)": "SgdConfig().init()",
    "builder.build(model, optim, '1e-3')": "0.001",
    "builder.build(model, optim, ConstantLr)": "ConstantLr(lr)",
    "builder.build(model, optim, lr_scheduler.LinearLrSchedulerConfig(0.1, 0.0, 9))": (
        "lr_scheduler.LinearLrSchedulerConfig(0.1, 0.0, 9).init()"
    ),
    "find_learning_rate(Net, optim, loader)": "Net(fc)",
    "find_learning_rate(NetConfig(2), optim, loader)": "NetConfig(2).init(device)",
    "find_learning_rate(model, AdamConfig(), loader)": "AdamConfig().init()",
    "find_learning_rate(model, AdamConfig, loader)": "AdamConfig().init()",
    "evaluators.build(Net)": "Net(fc)",
    "evaluators.build(NetConfig(2))": "NetConfig(2).init(device)",
    "evaluators.build(learner)": "learner.model",
    "optim.step('1e-3', model, grads)": "0.001",
    "optim.step(schedule, model, grads)": "schedule.step(), a number",
    "optim.step(0.1, Net, grads)": "Net(fc)",
    "optim.step(0.1, model, accumulator)": "accumulator.grads()",
    "optim.step(0.1, model, backward)": ("GradientsParams.from_grads(backward, model)"),
    "optim.step(0.1, model, loss)": (
        "GradientsParams.from_grads(loss.backward(), model)"
    ),
    "accumulator.accumulate(model, backward)": (
        "GradientsParams.from_grads(backward, model)"
    ),
    "accumulator.accumulate(model, loss)": (
        "GradientsParams.from_grads(loss.backward(), model)"
    ),
    "accumulator.accumulate(model, accumulator)": "accumulator.grads()",
    "clipping.clip_gradients(backward)": "GradientsParams.from_grads(backward, model)",
    "clipping.clip_gradients(loss)": (
        "GradientsParams.from_grads(loss.backward(), model)"
    ),
    "clipping.clip_gradients(accumulator)": "accumulator.grads()",
    "GradientsParams.from_grads(loss, model)": "from_grads(loss.backward(), model)",
    "GradientsParams.from_grads(grads, model)": (
        "grads as they are: optim.step(lr, model, grads)"
    ),
    "GradientsParams.from_grads(accumulator, model)": (
        "accumulator.grads() in place of this call"
    ),
}


@pytest.mark.parametrize("line", FORMS)
def test_a_class_or_a_config_is_told_what_makes_the_thing(tmp_path, line):
    error = ran(line, names(tmp_path))
    assert error is not None
    assert error.cure == FORMS[line], error
    assert "type is" not in str(error)
    code = re.split(r", a number| as they| in place", error.cure)[0]
    known = {**names(tmp_path), "fc": nn.LinearConfig(2, 2).init(DEVICE)}
    known |= {"lr": 0.1, "size": 2, "from_grads": GradientsParams.from_grads}
    assert ran(code, known) is None


OPTIONS = {
    "builder.early_stopping(MetricEarlyStoppingStrategy)": "n_epochs=2",
    "builder.early_stopping(3)": "n_epochs=3",
    "builder.early_stopping(LossMetric())": "Direction.Lowest",
    "builder.early_stopping(AccuracyMetric())": "AccuracyMetric(), Aggregate.Mean, "
    "Direction.Highest",
    "builder.with_checkpointing_strategy(KeepLastNCheckpoints)": (
        "KeepLastNCheckpoints(2)"
    ),
    "builder.with_checkpointing_strategy(MetricCheckpointingStrategy)": (
        "MetricCheckpointingStrategy(metric, aggregate, direction, split)"
    ),
}


@pytest.mark.parametrize("line", OPTIONS)
def test_an_option_shows_the_object_that_it_takes(tmp_path, line):
    error = ran(line, names(tmp_path))
    assert OPTIONS[line] in error.cure
    known = names(tmp_path) | {"metric": LossMetric(), "aggregate": Aggregate.Mean}
    known |= {"direction": Direction.Lowest, "split": Split.Valid}
    assert ran(error.cure, known) is None
    assert known["made"] is not None


def test_a_learner_is_not_a_model(tmp_path):
    for line in ("find_learning_rate(learner, loader)", "evaluators.build(learner)"):
        assert ran(line, names(tmp_path)).cure.startswith("learner.model")
    error = ran("find_learning_rate(learner, learner.optim, loader)", names(tmp_path))
    assert error.cure == "find_learning_rate(learner.model, learner.optim, loader)"


def test_names_of_keras_metrics_lead_to_ours(tmp_path):
    line = "builder.metrics(LossMetric()).callback(RestoreBest('val_loss'))"
    error = ran(f"{line}.build(model, optim, 0.1)", names(tmp_path))
    assert error.cure.startswith("'Loss'")
    assert ran("Ema(model)", names(tmp_path)).cure == "decay=0.999"
    assert ran("Ema(decay=0.999)", names(tmp_path)) is None


def test_what_is_right_is_silent(tmp_path):
    for line in (
        "builder.build(model, optim, 1e-3)",
        "builder.build(model, optim, schedule)",
        "optim.step(0, model, grads)",
        "optim.step(schedule.step(), model, grads)",
        "accumulator.accumulate(model, grads)",
        "clipping.clip_gradients(grads)",
        "evaluators.build(model)",
        "builder.early_stopping(MetricEarlyStoppingStrategy(LossMetric(), "
        "Aggregate.Mean, Direction.Lowest, Split.Valid, "
        "StoppingCondition.NoImprovementSince(n_epochs=2)))",
        "builder.callback(Ema())",
    ):
        assert ran(line, names(tmp_path)) is None
