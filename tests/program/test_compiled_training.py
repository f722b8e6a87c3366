"""Compiled training steps: as the captured ones, step for step."""

import copy
import pickle
import signal
import threading
from dataclasses import dataclass

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ArgumentError, BackendError, ConfigError, RecordError
from burnbook.core.rng import Stream, use_stream
from burnbook.examples.guide.model import ModelConfig
from burnbook.module import Module
from burnbook.nn.loss import CrossEntropyLossConfig
from burnbook.optim import (
    AdafactorConfig,
    AdaGradConfig,
    AdamConfig,
    AdamWConfig,
    AdanConfig,
    GradientsParams,
    LambConfig,
    LionConfig,
    MomentumConfig,
    MuonConfig,
    ParamGroup,
    RmsPropConfig,
    SgdConfig,
)
from burnbook.program import capture_training
from burnbook.program.compiled_training import CompiledTraining
from burnbook.program.training import TrainingState
from burnbook.tensor import Tensor

pytestmark = pytest.mark.usefixtures("every_kernel")
DEVICE = Autodiff(Numpy())
PLAIN = Autodiff(Numpy(compiled=False))
NONE = np.zeros(0, np.int64)


def batch(size, device=DEVICE, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((size, 6)).astype(np.float32)
    y = rng.integers(0, 3, size)
    return Tensor.from_numpy(x, device), Tensor.from_numpy(y, device)


def layers(device):
    with use_stream(Stream(2)):
        found = [nn.LinearConfig(6, 8).init(device), nn.LinearConfig(8, 3).init(device)]
        for layer in found:
            for _, param in layer.named_params():
                param.val()
    return found


class Network(Module):
    first: nn.Linear
    second: nn.Linear

    def forward(self, x):
        return self.second.forward(self.first.forward(x).relu())


def loss(model, x, y):
    criterion = CrossEntropyLossConfig().init(x.device())
    return criterion.forward(model.forward(x), y)


OPTIMIZERS = {
    "adam": AdamConfig(),
    "adamw": AdamWConfig(),
    "sgd": SgdConfig(),
    "momentum": SgdConfig().with_momentum(MomentumConfig()),
}


MORE_OPTIMIZERS = {
    "adafactor": AdafactorConfig(),
    "adagrad": AdaGradConfig(lr_decay=0.1),
    "adan": AdanConfig(),
    "amsgrad": AdamConfig(amsgrad=True),
    "lamb": LambConfig(),
    "lion": LionConfig(),
    "muon": MuonConfig(),
    "rmsprop": RmsPropConfig(centered=True),
}


def captured(device=DEVICE, optimizer="adam"):
    model = Network(*layers(device))
    return capture_training(
        model, loss, OPTIMIZERS[optimizer].init(), *batch(4, device)
    )


@pytest.mark.parametrize("device", [DEVICE, PLAIN], ids=["compiled", "plain"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_steps_are_those_of_the_captured_step(device, optimizer):
    training = captured(device, optimizer)
    compiled, state = CompiledTraining(training), training.start
    for number, size in enumerate((4, 4, 7, 4, 1)):
        given = batch(size, device, seed=number)
        state, wanted = training.step(state, 0.01, *given)
        found = compiled.step(0.01, *given)
        np.testing.assert_allclose(
            np.asarray(found), np.asarray(wanted), rtol=1e-5, atol=1e-6
        )
    made = compiled.state
    assert made.numbers == state.numbers
    assert set(made.values) == set(state.values)
    for name, array in state.values.items():
        np.testing.assert_allclose(made.values[name], array, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("device", [DEVICE, PLAIN])
def test_the_gradient_of_a_bias_is_as_exact_for_many_rows_as_step_by_step(device):
    with use_stream(Stream(2)):
        layer = nn.LinearConfig(2, 8).init(device)
    rng = np.random.default_rng(0)
    x = rng.random((100_000, 2), np.float32) + 1
    x = Tensor.from_numpy(x, device)

    def loss(layer, x):
        return (layer.forward(x) - 5.0).square().sum()

    compiled = CompiledTraining(capture_training(layer, loss, SgdConfig().init(), x))
    compiled.step(1.0, x)
    grads = GradientsParams.from_grads(loss(layer, x).backward(), layer)
    stepped = SgdConfig().init().step(1.0, layer, grads)
    found, wanted = (np.asarray(m.bias.val()) for m in (compiled.model, stepped))
    np.testing.assert_allclose(found, wanted, rtol=3e-7)


def test_a_state_is_left_alone_by_later_steps():
    compiled = CompiledTraining(captured())
    for _ in range(3):
        compiled.step(0.1, *batch(4))
    state = compiled.state
    before = {name: np.array(array) for name, array in state.values.items()}
    compiled.step(0.1, *batch(4))
    for name, array in before.items():
        np.testing.assert_array_equal(state.values[name], array)


@pytest.mark.parametrize("optimizer", MORE_OPTIMIZERS)
def test_every_optimizer_steps_as_captured(optimizer):
    model = Network(*layers(DEVICE))
    made = MORE_OPTIMIZERS[optimizer].init()
    if optimizer == "muon":  # which takes matrices alone
        bias = ParamGroup.from_predicate("bias")
        made = made.with_group(bias, AdamConfig())
    training = capture_training(model, loss, made, *batch(4))
    compiled, state = CompiledTraining(training), training.start
    for number in range(4):
        state, wanted = training.step(state, 0.01, *batch(4, seed=number))
        found = compiled.step(0.01, *batch(4, seed=number))
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), 1e-4, 1e-6)
    for name, array in state.values.items():
        np.testing.assert_allclose(compiled.state.values[name], array, 1e-3, 1e-5)


@dataclass
class WithWeight:
    """A loss, and the weight that it was computed with."""

    loss: Tensor
    weight: Tensor
    turned: Tensor


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_parameter_in_a_result_is_the_one_before_the_step(optimizer):
    def told(model, x, y):
        weight = model.first.weight.val()
        return WithWeight(loss(model, x, y), weight, weight.transpose())

    config = OPTIMIZERS[optimizer]
    training = capture_training(
        Network(*layers(DEVICE)), told, config.init(), *batch(4)
    )
    compiled, state = CompiledTraining(training), training.start
    for number in range(3):
        before = np.array(compiled.state.values["first.weight"])
        state, wanted = training.step(state, 0.1, *batch(4, seed=number))
        found = compiled.step(0.1, *batch(4, seed=number))
        np.testing.assert_array_equal(np.asarray(found.weight), before)
        np.testing.assert_array_equal(np.asarray(found.turned), before.T)
        np.testing.assert_allclose(found.weight, np.asarray(wanted.weight), 1e-4, 1e-6)


def test_training_goes_on_from_a_state():
    training = captured()
    whole = CompiledTraining(training)
    losses = [
        float(whole.step(0.05, *batch(4, seed=i)).into_scalar()) for i in range(6)
    ]
    first = CompiledTraining(training)
    for i in range(3):
        first.step(0.05, *batch(4, seed=i))
    second = CompiledTraining(training, first.state)
    rest = [
        float(second.step(0.05, *batch(4, seed=i)).into_scalar()) for i in (3, 4, 5)
    ]
    assert rest == losses[3:]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda held: pickle.loads(pickle.dumps(held))]
)
def test_a_copy_goes_on_bit_for_bit(copied, optimizer):
    compiled = CompiledTraining(captured(optimizer=optimizer))
    for i in range(3):
        compiled.step(0.05, *batch(4, seed=i))
    other = copied(compiled)
    for i in (3, 4, 5):
        found = [one.step(0.05, *batch(4, seed=i)) for one in (compiled, other)]
        np.testing.assert_array_equal(*map(np.asarray, found))
    for name, array in compiled.state.values.items():
        np.testing.assert_array_equal(other.state.values[name], array)


def test_the_state_that_it_began_with_stays():
    training = captured()
    before = {name: np.array(a) for name, a in training.start.values.items()}
    compiled = CompiledTraining(training)
    for _ in range(3):
        compiled.step(0.1, *batch(4))
    for name, array in before.items():
        np.testing.assert_array_equal(training.start.values[name], array)


def test_results_are_not_touched_by_later_steps():
    compiled = CompiledTraining(captured())
    for _ in range(2):
        compiled.step(0.1, *batch(4))
    out = compiled.step(0.1, *batch(4))
    before = np.array(out)
    compiled.step(0.1, *batch(4, seed=9))
    np.testing.assert_array_equal(np.asarray(out), before)


def test_the_guides_network_learns_with_dropout_as_it_does_captured():
    with use_stream(Stream(4)):
        model = ModelConfig(10, 16).init(DEVICE)
        for _, param in model.named_params():
            param.val()
    rng = np.random.default_rng(0)
    x = Tensor.from_numpy(rng.standard_normal((6, 28, 28)).astype(np.float32), DEVICE)
    y = Tensor.from_numpy(rng.integers(0, 10, 6), DEVICE)

    def step(model, x, y):
        return model.forward_classification(x, y).loss

    training = capture_training(model, step, AdamConfig().init(), x, y)
    compiled, state = CompiledTraining(training), training.start
    for number in range(4):
        keys = [(number, i) for i in range(len(training.program.keys))]
        state, wanted = training.step(state, 1e-3, x, y, keys=keys)
        found = compiled.step(1e-3, x, y, keys=keys)
        np.testing.assert_allclose(
            np.asarray(found), np.asarray(wanted), rtol=1e-4, atol=1e-6
        )
    for name, array in state.values.items():
        np.testing.assert_allclose(
            compiled.state.values[name], array, rtol=1e-3, atol=1e-5
        )


def test_a_profile_leaves_the_state_alone():
    compiled = CompiledTraining(captured())
    compiled.profile(0.1, *batch(4), rounds=1)
    compiled.step(0.1, *batch(4))
    before = compiled.state
    found = compiled.profile(0.1, *batch(4), rounds=2)
    for name, array in before.values.items():
        np.testing.assert_array_equal(compiled.state.values[name], array)
    assert compiled.state.numbers == before.numbers
    assert sum(call.ops for call in found.calls) == len(compiled.program.steps)
    assert "linear.backward" in [call.what for call in found.calls]


def test_a_step_is_explained():
    text = CompiledTraining(captured(PLAIN)).explain(*batch(4, PLAIN))
    lines = text.splitlines()
    assert lines[0].startswith("loss for n = 4: ")
    assert lines[1:3] == [
        "  1  linear → relu [4, 8]  out",
        "  2  linear [4, 3]  out",
    ]
    assert lines[-1].startswith("memory: ")


def test_a_number_of_the_loss_function_that_changes_is_refused():
    def weighted(model, x, y, weight):
        return loss(model, x, y) * weight

    model = Network(*layers(DEVICE))
    training = capture_training(model, weighted, AdamConfig().init(), *batch(4), 1.0)
    compiled = CompiledTraining(training)
    compiled.step(0.0, *batch(4), 1.0)
    with pytest.raises(ArgumentError, match="weight is another value"):
        compiled.step(0.0, *batch(4), 10.0)
    with pytest.raises(ArgumentError, match="weight is another value"):
        training.step(training.start, 0.0, *batch(4), 10.0)


def both(optimizer="adam"):
    """The same step as captured and as compiled."""
    training = captured(optimizer=optimizer)
    compiled = CompiledTraining(training)
    return training, [lambda *b: training.step(training.start, *b), compiled.step]


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), -1.0, "a", None])
def test_a_wrong_learning_rate_is_refused_as_by_the_optimizer(rate):
    model = Network(*layers(DEVICE))
    grads = GradientsParams.from_grads(loss(model, *batch(4)).backward(), model)
    with pytest.raises(ConfigError) as eager:
        AdamConfig().init().step(rate, model, grads)
    _, steps = both()
    for step in steps:
        with pytest.raises(ConfigError) as caught:
            step(rate, *batch(4))
        assert str(caught.value) == str(eager.value)


def test_a_later_step_refuses_a_wrong_learning_rate_too():
    training = captured()
    compiled = CompiledTraining(training)
    for _ in range(2):
        compiled.step(0.1, *batch(4))
    before = compiled.state
    with pytest.raises(ConfigError):
        compiled.step(float("nan"), *batch(4))
    after = compiled.state
    assert before.numbers == after.numbers
    for name, array in before.values.items():
        np.testing.assert_array_equal(after.values[name], array)


def test_a_forgotten_learning_rate_is_told_by_its_place():
    for step in both()[1]:
        with pytest.raises(ConfigError, match="learning rate, which comes first"):
            step(*batch(4))


def test_a_state_of_another_optimizer_is_refused():
    training, _ = both("adam")
    other, _ = both("momentum")
    state, _ = other.step(other.start, 0.1, *batch(4))
    for use in (
        lambda: CompiledTraining(training, state),
        lambda: training.step(state, 0.1, *batch(4)),
    ):
        with pytest.raises(RecordError) as caught:
            use()
        text = str(caught.value)
        assert "missing" in text
        assert "unexpected" in text
        assert "first.bias.m" in text


def test_a_state_of_another_model_is_refused():
    training, _ = both()
    values = dict(training.start.values)
    shape = values["first.weight"].shape
    values["first.weight"] = values["first.weight"].T
    with pytest.raises(RecordError, match=r"first\.weight \[8, 6\] f32"):
        CompiledTraining(training, TrainingState(values, training.start.numbers))
    assert shape == (6, 8)
    values = {f"other.{name}": v for name, v in training.start.values.items()}
    with pytest.raises(RecordError, match=r"other\.first"):
        CompiledTraining(training, TrainingState(values, training.start.numbers))


def test_what_is_no_state_is_refused():
    training, _ = both()
    with pytest.raises(ArgumentError, match=r"training\.start"):
        training.step(0.1, *batch(4))


@pytest.mark.parametrize("form", [lambda v: (v, v), lambda v: {"loss": v}])
def test_a_loss_function_that_gives_no_loss_is_refused(form):
    model = Network(*layers(DEVICE))
    with pytest.raises(ArgumentError, match="the loss function gave") as caught:
        capture_training(
            model, lambda *b: form(loss(*b)), AdamConfig().init(), *batch(4)
        )
    assert "a dataclass with a loss" in str(caught.value)


def test_numbers_in_what_a_step_gives_follow_the_batch():
    @dataclass
    class Counted:
        loss: Tensor
        rows: int

    def counted(model, x, y):
        return Counted(loss(model, x, y), x.dims()[0])

    model = Network(*layers(DEVICE))
    training = capture_training(model, counted, AdamConfig().init(), *batch(4))
    compiled = CompiledTraining(training)
    for size in (4, 4, 9):
        assert compiled.step(0.1, *batch(size)).rows == size
        assert training.step(training.start, 0.1, *batch(size))[1].rows == size


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_what_was_trained_is_taken_out_and_captured_again(optimizer):
    compiled = CompiledTraining(captured(optimizer=optimizer))
    for number in range(3):
        compiled.step(0.1, *batch(4, seed=number))
    model, optim = compiled.model, compiled.optimizer
    again = CompiledTraining(capture_training(model, loss, optim, *batch(4)))
    kept = {name: np.array(p.val()) for name, p in model.named_params()}
    for number in range(3, 6):
        compiled.step(0.1, *batch(4, seed=number))
        again.step(0.1, *batch(4, seed=number))
    for name, param in model.named_params():
        np.testing.assert_array_equal(param.val(), kept[name])
    assert compiled.state.numbers == again.state.numbers
    for name, array in compiled.state.values.items():
        np.testing.assert_allclose(again.state.values[name], array, rtol=1e-5)
    assert any(not np.array_equal(kept[n], again.state.values[n]) for n in kept)


@pytest.mark.parametrize("is_warm", [False, True])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_batch_of_another_kind_or_none_is_refused(is_compiled, is_warm):
    device = Autodiff(Numpy())
    model, loss_of = nn.LinearConfig(4, 3).init(device), CrossEntropyLossConfig()

    def loss(model, x, y):
        return loss_of.init(device).forward(model.forward(x), y)

    x, y = Tensor.ones([2, 4], device), Tensor.from_data([0, 2], device)
    training = capture_training(model, loss, SgdConfig().init(), x, y)
    compiled = CompiledTraining(training)

    def step(x, y):
        if is_compiled:
            return compiled.step(0.1, x, y)
        return training.step(training.start, 0.1, x, y)[1]

    if is_warm:
        step(x, y)
    wide = Tensor.ones([2, 4], Autodiff(Numpy("f64")))
    for bad in ((x, y.float() + 0.7), (x, y > 1), (x.int(), y), (x > 0.0, y)):
        with pytest.raises(ArgumentError, match=r"is (Float|Int|Bool)\n"):
            step(*bad)
    with pytest.raises(BackendError, match="elements of f64"):
        step(wide, y)
    with pytest.raises(ArgumentError, match="is empty"):
        step(Tensor.ones([0, 4], device), Tensor.from_numpy(NONE, device))
    assert step(x, y).into_scalar() > 0


def test_steps_of_several_threads_come_one_after_the_other():
    training = captured()
    alone, shared = CompiledTraining(training), CompiledTraining(training)
    x, y = batch(8)
    for _ in range(31):
        alone.step(1e-2, x, y)
    shared.step(1e-2, x, y)

    def go():
        for _ in range(10):
            shared.step(1e-2, x, y)
            assert shared.state.values

    threads = [threading.Thread(target=go) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, value in alone.state.values.items():
        np.testing.assert_array_equal(shared.state.values[name], value)
    assert shared.state.numbers == alone.state.numbers


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_waits_for_the_step_that_runs():
    training = captured()
    stopped, wanted = CompiledTraining(training), CompiledTraining(training)
    x, y = batch(8)
    for one in (stopped, wanted):
        one.step(1e-2, x, y)
        one.step(1e-2, x, y)
    plan = next(iter(stopped._plans.values()))
    middle = len(plan.calls) // 2
    plan.calls.insert(middle, lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        stopped.step(1e-2, x, y)
    wanted.step(1e-2, x, y)
    for name, value in wanted.state.values.items():
        np.testing.assert_array_equal(stopped.state.values[name], value)
    assert stopped.state.numbers == wanted.state.numbers
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_array_in_place_of_a_tensor_is_named():
    training = captured()
    x, y = batch(8)
    array = np.asarray(x)
    with pytest.raises(ArgumentError, match="a NumPy array came"):
        CompiledTraining(training).step(1e-2, array, y)
    with pytest.raises(ArgumentError, match="a NumPy array came"):
        training.step(training.start, 1e-2, array, y)


def test_a_model_that_teaches_may_be_new():
    student, teacher = [nn.LinearConfig(6, 3).init(DEVICE) for _ in range(2)]

    def distil(model, x):
        return (model.forward(x) - teacher.forward(x)).square().mean()

    x, _ = batch(4)
    training = capture_training(student, distil, SgdConfig().init(), x)
    found = CompiledTraining(training).step(0.1, x)
    wanted = distil(student, x)
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), 1e-5)


def test_a_batch_of_one_is_refused_where_the_eager_step_refuses_it():
    model = nn.BatchNormConfig(6).init(DEVICE)

    def spread(model, x):
        return model.forward(x).square().mean()

    training = capture_training(model, spread, SgdConfig().init(), batch(4)[0])
    compiled = CompiledTraining(training)
    for _ in range(3):
        compiled.step(0.1, batch(5)[0])
        with pytest.raises(ArgumentError, match="a batch of one"):
            compiled.step(0.1, batch(1)[0])
    with pytest.raises(ArgumentError, match="a batch of one"):
        training.step(training.start, 0.1, batch(1)[0])


def test_what_is_no_captured_training_is_told():
    with pytest.raises(ArgumentError, match="no captured training"):
        CompiledTraining(captured().program)
    with pytest.raises(ArgumentError, match="no model, which comes first"):
        capture_training(loss, Network(*layers(DEVICE)), SgdConfig().init(), *batch(4))
