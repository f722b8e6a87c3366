"""The learner's steps as plans: the same training, whatever happens in its course."""

import os
import signal

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ConfigError, TrainingError
from burnbook.lr_scheduler import CosineAnnealingLrSchedulerConfig
from burnbook.module import Module
from burnbook.optim import AdamConfig, ParamGroup, SgdConfig
from burnbook.train import (
    AccuracyMetric,
    Callback,
    Ema,
    EvaluatorBuilder,
    InMemoryMetricLogger,
    LossMetric,
    MetricsRenderer,
    captured_steps,
)
from burnbook.train.captured_steps import CapturedSteps
from tests.support.tiny_training import (
    DEVICE,
    PLAIN,
    Tiny,
    build,
    builder,
    checkpointed,
    loader,
    stop_at,
    tiny,
    weights,
)


@pytest.fixture
def ran(monkeypatch):
    """How many steps plans have done."""
    counts = {"step": 0, "gradients": 0, "validate": 0}
    for name in counts:
        plain = getattr(CapturedSteps, name)

        def counted(self, *args, name=name, plain=plain):
            counts[name] += 1
            return plain(self, *args)

        monkeypatch.setattr(CapturedSteps, name, counted)
    return counts


def alike(folder, change=lambda made: made, epochs=3, model=None, lr=0.01, optim=None):
    """The weights and metrics of a training, captured and step by step."""
    found = []
    for mode in (True, False):
        made = builder(folder / str(mode), epochs).captured(mode)
        made = change(made)
        given = (optim or AdamConfig()).init()
        trained = made.build(model() if model else tiny(), given, lr)
        result = trained.fit(loader(), loader(1))
        history = trained.result.history
        means = [
            [value for _, value in history.epochs(name, split)]
            for name in ("Loss", "Accuracy")
            for split in ("train", "valid")
        ]
        found.append((weights(result), means, trained))
    (one, means, trained), (other, wanted, _) = found
    for path in other:
        np.testing.assert_allclose(one[path], other[path], 1e-4, 1e-5, err_msg=path)
    np.testing.assert_allclose(means, wanted, 1e-4, 1e-5)
    return trained


def log_of(folder):
    return (folder / "True" / "experiment.log").read_text()


def test_the_last_partial_batch_and_validation_run_as_plans_too(tmp_path, ran):
    alike(tmp_path)  # three batches an epoch: 16, 16, 8
    assert ran == {"step": 8, "gradients": 0, "validate": 8}
    assert "step by step" not in log_of(tmp_path)


@pytest.mark.parametrize("optim", [SgdConfig(), AdamConfig()])
def test_a_schedule_and_accumulation(tmp_path, ran, optim):
    schedule = CosineAnnealingLrSchedulerConfig(0.05, 9).init()
    alike(tmp_path / "a", lr=schedule, optim=optim)
    alike(tmp_path / "b", lambda made: made.grads_accumulation(2), optim=optim)
    assert ran["step"] == 8
    assert ran["gradients"] == 8


class Freeze(Callback):
    def on_epoch(self, state):
        if state.epoch == 2:
            return state.model.freeze_group(ParamGroup.from_predicate("first"))
        return None


class Squeeze(Callback):
    """Another model in the middle of an epoch."""

    def on_step(self, state):
        if state.step == 4:
            dropout = nn.DropoutConfig(0.5).init()
            return Tiny(state.model.first, dropout, state.model.last)
        return None


class Rate(Callback):
    """A schedule that is changed while it runs."""

    def __init__(self, rates):
        self.rates = rates

    def on_step(self, state):
        self.rates.append(state.lr)


def test_what_callbacks_change_is_noticed(tmp_path, ran):
    for number, callback in enumerate((Freeze(), Squeeze(), Ema(0.9))):
        alike(tmp_path / str(number), lambda made, c=callback: made.callback(c))
    assert ran["step"] == 24
    assert "step by step" not in log_of(tmp_path / "1")


def test_each_step_has_the_rate_of_its_schedule(tmp_path):
    rates = []
    schedule = CosineAnnealingLrSchedulerConfig(0.05, 9).init()
    alike(tmp_path, lambda made: made.callback(Rate(rates)), lr=schedule)
    assert rates[:9] == rates[9:]
    assert len(set(rates)) == 9


class Hooked(Tiny):
    seen = 0

    def forward(self, x):
        return super().forward(x)


def test_a_method_that_is_replaced_in_mid_run_is_noticed(tmp_path, ran):
    plain = Hooked.forward

    class Hook(Callback):
        def on_epoch(self, state):
            if state.epoch == 1:
                Hooked.forward = lambda self, x: Tiny.forward(self, x * 2.0)
            if state.epoch == 3:
                Hooked.forward = plain

    alike(tmp_path, lambda made: made.callback(Hook()), model=lambda: tiny(kind=Hooked))
    assert ran["step"] == 8


def test_resuming_gives_what_no_break_would_have_given(tmp_path):
    whole = build(checkpointed(tmp_path / "a", 4).captured()).fit(loader(), loader(1))
    build(checkpointed(tmp_path / "b", 2).captured()).fit(loader(), loader(1))
    again = checkpointed(tmp_path / "b", 4).captured().checkpoint()
    resumed = build(again).fit(loader(), loader(1))
    twice = build(builder(tmp_path / "c", 2).captured())
    twice.fit(loader(), loader(1))
    other = twice.fit(loader(), loader(1))
    for path, value in weights(whole).items():
        np.testing.assert_array_equal(weights(resumed)[path], value)
        np.testing.assert_array_equal(weights(other)[path], value)


def test_the_first_steps_run_one_by_one_and_then_a_plan_does_them(tmp_path, ran):
    build(builder(tmp_path, 8).captured("auto")).fit(loader(), loader(1))
    assert ran["step"] == 24 - captured_steps.AUTO
    assert ran["validate"] == 24 - captured_steps.AUTO


class Printing(Tiny):
    def forward(self, x):
        print("forward")
        return super().forward(x)


class Looking(Tiny):
    def train_step(self, batch):
        out = super().train_step(batch)
        assert out.item.loss.into_scalar() >= 0
        return out


def test_what_cannot_be_captured_trains_as_before_with_one_line(tmp_path, capsys):
    kinds = {Printing: "prints", Looking: "elements"}
    for number, (kind, why) in enumerate(kinds.items()):
        folder = tmp_path / str(number)
        with pytest.warns(UserWarning, match="step by step"):
            alike(folder, model=lambda kind=kind: tiny(kind=kind))
        lines = [row for row in log_of(folder).splitlines() if "step by step" in row]
        assert sum("the training step" in row for row in lines) == 1
        assert all(why in row and "try:" in row for row in lines)
    assert capsys.readouterr().out.count("forward") == 2 * 18


def test_auto_tells_it_in_the_log_and_on_the_dashboard_alone(tmp_path, recwarn):
    shown = []

    class Shown(MetricsRenderer):
        def update_callbacks(self, callbacks):
            shown.extend(callbacks)

    made = builder(tmp_path, 8).captured("auto").renderer(Shown())
    build(made, tiny(kind=Looking)).fit(loader(), loader(1))
    assert not [one for one in recwarn if "captured" in str(one.message)]
    assert "step by step" in (tmp_path / "experiment.log").read_text()
    assert any(name == "Captured" and "elements" in text for name, text in shown)


def test_several_devices_share_steps_as_before(tmp_path, ran):
    devices = [DEVICE, Autodiff(Numpy(compiled=False, int="i32"))]
    with pytest.warns(UserWarning, match="devices share every step"):
        alike(tmp_path, lambda made: made.devices(devices))
    assert not any(ran.values())


def test_gradients_are_there_for_a_renderer_that_looks_at_them(tmp_path, ran):
    norms = []

    class Norms(MetricsRenderer):
        def inspect(self, model, grads):
            norms.append(grads.norm())

    alike(tmp_path, lambda made: made.renderer(Norms()))
    assert ran["gradients"] == 8
    np.testing.assert_allclose(norms[:9], norms[9:], 1e-4)


def test_a_loss_that_breaks_is_explained_with_the_model_before(tmp_path):
    model = tiny()
    found = []
    for mode in (True, False):
        made = builder(tmp_path / str(mode), 3).captured(mode)
        trained = made.build(model, SgdConfig().init(), 1e30)
        with pytest.raises(TrainingError) as error:
            trained.fit(loader(), loader(1))
        found.append((error.value.where, error.value.what, weights(trained.model)))
    assert found[0][:2] == found[1][:2]
    for path, value in found[1][2].items():
        np.testing.assert_allclose(found[0][2][path], value, 1e-3, err_msg=path)


def test_an_interrupt_stops_cleanly_and_training_goes_on(tmp_path):
    probe = stop_at(5, lambda control: os.kill(os.getpid(), signal.SIGINT))
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        trained = build(builder(tmp_path, 3).captured().renderer(probe))
        trained.fit(loader(), loader(1))
        assert trained.result.interrupted == "interrupted"
        assert trained.result.epochs == 1
        assert trained.fit(loader(), loader(1)).devices() == [DEVICE]
        assert trained.result.epochs == 3
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_thread_that_pauses_and_goes_on(tmp_path):
    handle = build(builder(tmp_path, 3).captured()).start(loader(), loader(1))
    handle.pause()
    handle.resume()
    one = weights(handle.wait())
    other = weights(
        build(builder(tmp_path / "b", 3).captured(False)).fit(loader(), loader(1))
    )
    for path in other:
        np.testing.assert_allclose(one[path], other[path], 1e-4, 1e-5)


def test_a_test_of_a_model_runs_as_a_plan(tmp_path):
    model, means = tiny(PLAIN), []
    for mode in (True, False):
        made = EvaluatorBuilder(tmp_path / str(mode)).captured(mode)
        made = made.metrics([AccuracyMetric(), LossMetric()]).renderer(None)
        made = made.with_metric_logger(InMemoryMetricLogger())
        means.append(made.build(model).eval("digits", loader(count=70)).means)
    assert means[0] == pytest.approx(means[1], rel=1e-5)


def test_a_model_of_its_own_way_to_step(tmp_path, ran):
    class Halved(Tiny):
        def optimize(self, optim, lr, grads):
            return optim.step(lr / 2, self, grads)

    alike(tmp_path, model=lambda: tiny(kind=Halved))
    assert ran["gradients"] == 8


class Counting(Module):
    """A model that keeps statistics."""

    norm: nn.BatchNorm
    body: Tiny

    def train_step(self, batch):
        batch = type(batch)(self.norm.forward(batch.x), batch.targets)
        item = self.body.valid_step(batch)
        return captured_steps.TrainOutput(self, item.loss.backward(), item)

    def valid_step(self, batch):
        batch = type(batch)(self.norm.forward(batch.x), batch.targets)
        return self.body.valid_step(batch)


def test_running_statistics_move_as_before(tmp_path, ran):
    alike(
        tmp_path,
        model=lambda: Counting(nn.BatchNormConfig(4).init(DEVICE), tiny()),
    )
    assert ran["step"] == 8


@pytest.mark.parametrize("mode", ["yes", 1, None, 0])
def test_other_modes_are_refused(mode, tmp_path):
    with pytest.raises(ConfigError, match="captured"):
        builder(tmp_path).captured(mode)
    with pytest.raises(ConfigError, match="captured"):
        EvaluatorBuilder(tmp_path).captured(mode)
