"""Compiled training steps of many networks: as uncompiled, and as Autodiff takes them.

Each network is trained for a few steps three ways: by the plan, by the captured
program, and without a capture.
"""

import inspect

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.backend.compiled.runtime.buffers import buffers
from burnbook.core.op import OPS
from burnbook.module import Module, Param
from burnbook.nn import PaddingConfig2d
from burnbook.nn.conv import Conv2dConfig
from burnbook.nn.loss import CrossEntropyLossConfig
from burnbook.nn.pool import AvgPool2dConfig, MaxPool2dConfig
from burnbook.nn.transformer import TransformerEncoderConfig, TransformerEncoderInput
from burnbook.optim import AdamConfig, GradientsParams, SgdConfig
from burnbook.program import capture_training
from burnbook.program.compiled_training import CompiledTraining
from burnbook.program.compiler.bound import put_in_place
from burnbook.tensor import Tensor, apply

pytestmark = pytest.mark.usefixtures("every_kernel")
DEVICES = {
    "compiled": Autodiff(Numpy()),
    "plain": Autodiff(Numpy(compiled=False)),
    "double": Autodiff(Numpy("f64")),
}


class Row(Module):
    """Layers one after the other, and what is no layer."""

    layers: list[Module]
    chain: str

    def forward(self, x):
        layers = iter(self.layers)
        for word in self.chain.split():
            if word == "layer":
                x = next(layers).forward(x)
            elif word == "flat":
                x = x.reshape([x.dims()[0], -1])
            else:
                x = apply(OPS[word], x)
        return x


def conv(inputs, outputs, stride=1, groups=1, size=3):
    config = Conv2dConfig([inputs, outputs], [size, size]).with_groups(groups)
    config = config.with_stride([stride, stride])
    edge = PaddingConfig2d.Explicit(size // 2, size // 2)
    return config.with_padding(edge)


def average(size, stride=None):
    config = AvgPool2dConfig([size, size])
    return config.with_strides([stride or size, stride or size])


def largest(size):
    return MaxPool2dConfig([size, size]).with_strides([size, size])


DROP = nn.DropoutConfig(0.4)
#: Of each network: the shape of a sample, its layers, and the order of all parts.
NETWORKS = {
    "conv relu average": (
        (3, 12, 12),
        [conv(3, 5), average(2), nn.LinearConfig(180, 4)],
        "layer relu layer flat layer",
    ),
    "conv dropout relu average": (
        (4, 18, 18),
        [conv(4, 6), DROP, average(3), nn.LinearConfig(216, 4)],
        "layer layer relu layer flat layer",
    ),
    "conv dropout relu, pooled with overlap": (
        (4, 16, 16),
        [conv(4, 6), DROP, average(3, 1), nn.LinearConfig(6 * 14 * 14, 4)],
        "layer layer relu layer flat layer",
    ),
    "dropout of samples that are no whole counts": (
        (7,),
        [nn.LinearConfig(7, 9), DROP, nn.LinearConfig(9, 4)],
        "layer layer relu layer",
    ),
    "dropout alone": (
        (32,),
        [nn.LinearConfig(32, 16), DROP, nn.LinearConfig(16, 4)],
        "layer layer tanh layer",
    ),
    "many channels": (
        (16, 8, 8),
        [conv(16, 32), conv(32, 16, stride=2), nn.LinearConfig(256, 4)],
        "layer relu layer gelu flat layer",
    ),
    "max pool": (
        (3, 12, 12),
        [conv(3, 4), largest(2), nn.LinearConfig(144, 4)],
        "layer relu layer flat layer",
    ),
    "max pool right behind a convolution": (
        (3, 12, 12),
        [conv(3, 4), largest(2), nn.LinearConfig(144, 4)],
        "layer layer relu flat layer",
    ),
    "a pool of 2 leaves 1 of 3": (
        (3, 3, 3),
        [conv(3, 4), average(2), nn.LinearConfig(4, 4)],
        "layer relu layer flat layer",
    ),
    "dropout, and a pool of 3 leaves 2 of 8": (
        (2, 8, 8),
        [conv(2, 4), DROP, average(3), nn.LinearConfig(16, 4)],
        "layer layer relu layer flat layer",
    ),
    "a pool of 5 leaves 4 of 9": (
        (2, 9, 9),
        [conv(2, 4), average(5), nn.LinearConfig(4, 4)],
        "layer relu layer flat layer",
    ),
    "depthwise, and one tap": (
        (6, 10, 10),
        [conv(6, 6, groups=6), conv(6, 8, size=1), nn.LinearConfig(800, 4)],
        "layer relu layer sigmoid flat layer",
    ),
    "groups": (
        (4, 9, 9),
        [conv(4, 6, groups=2), nn.LinearConfig(486, 4)],
        "layer silu flat layer",
    ),
    "batch norm": (
        (4, 8, 8),
        [conv(4, 6), nn.BatchNormConfig(6), nn.LinearConfig(384, 4)],
        "layer layer relu flat layer",
    ),
    "layer norm": (
        (20,),
        [nn.LinearConfig(20, 24), nn.LayerNormConfig(24), nn.LinearConfig(24, 4)],
        "layer layer exp layer",
    ),
}


def dtype_of(device):
    return {"f32": np.float32, "f64": np.float64}[device.inner.float]


def made(name, device):
    """A network, and four batches for it: the last one smaller."""
    shape, configs, chain = NETWORKS[name]
    device.seed(3)
    model = Row([layer(config, device) for config in configs], chain)
    for _, param in model.named_params():
        param.val()
    return model, batches(shape, device)


def layer(config, device):
    """The layer of a config, whether or not it has anything to put on a device."""
    takes = "device" in inspect.signature(config.init).parameters
    return config.init(device) if takes else config.init()


def batches(shape, device, sizes=(8, 8, 8, 5)):
    rng = np.random.default_rng(5)
    found = []
    for size in sizes:
        x = rng.standard_normal((size, *shape)).astype(dtype_of(device))
        y = rng.integers(0, 4, size)
        found.append((Tensor.from_numpy(x, device), Tensor.from_numpy(y, device)))
    return found


def classify(model, x, y):
    criterion = CrossEntropyLossConfig().init(x.device())
    return criterion.forward(model.forward(x), y)


def agree(found, wanted, device):
    exact = device.inner.float == "f64"
    for name, array in wanted.items():
        np.testing.assert_allclose(
            found[name],
            array,
            rtol=1e-9 if exact else 2e-4,
            atol=1e-12 if exact else 5e-6,
            err_msg=name,
        )


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_plan_takes_the_steps_of_its_program(name, device):
    model, given = made(name, device)
    training = capture_training(model, classify, AdamConfig().init(), *given[0])
    compiled, state = CompiledTraining(training), training.start
    for number, batch in enumerate(given):
        keys = [(number, i) for i in range(len(training.program.keys))]
        state, wanted = training.step(state, 0.01, *batch, keys=keys)
        found = compiled.step(0.01, *batch, keys=keys)
        np.testing.assert_allclose(
            np.asarray(found), np.asarray(wanted), rtol=1e-4, atol=1e-6
        )
    agree(compiled.state.values, state.values, device)


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
@pytest.mark.parametrize("name", [n for n in NETWORKS if "dropout" not in n])
def test_a_plan_takes_the_steps_that_a_loop_takes(name, device):
    model, given = made(name, device)
    training = capture_training(model, classify, AdamConfig().init(), *given[0])
    compiled, optim = CompiledTraining(training), AdamConfig().init()
    for batch in given:
        compiled.step(0.01, *batch)
        loss = classify(model, *batch)
        grads = GradientsParams.from_grads(loss.backward(), model)
        model = optim.step(0.01, model, grads)
    wanted = {path: np.asarray(param.val()) for path, param in model.named_params()}
    agree(compiled.state.values, wanted, device)


class Chain(Module):
    """Small products, sums and differences, as W5 has them."""

    w: Param
    b: Param

    def forward(self, x):
        for _ in range(5):
            x = (x @ self.w.val() + self.b.val()) * self.b.val()
            x = (x - x.exp() * 0.1) @ self.w.val()
        return x


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
def test_small_ops_in_a_row_have_their_gradients(device):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((6, 6)).astype(dtype_of(device)) for _ in "wbx"]
    w, b, x = (Tensor.from_numpy(0.3 * array, device) for array in arrays)
    model = Chain(Param.from_tensor(w), Param.from_tensor(b))
    given = model, lambda model, x: model.forward(x).sum(), SgdConfig().init(), x
    training = capture_training(*given, batch=None)
    compiled, state = CompiledTraining(training), training.start
    for _ in range(3):
        state, wanted = training.step(state, 0.01, x)
        found = compiled.step(0.01, x)
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))
    agree(compiled.state.values, state.values, device)


def squares(model, x):
    out = model.forward(x)
    out = out[0] if isinstance(out, tuple) else out
    return (out * out).mean()


def encoded(model, x):
    out = model.forward(TransformerEncoderInput.new(x))
    return (out * out).mean()


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
@pytest.mark.parametrize("kind", ["lstm", "gru", "transformer"])
def test_sequences_are_trained_as_by_their_program(kind, device):
    config, loss = {
        "lstm": (nn.LstmConfig(6, 16, True), squares),
        "gru": (nn.GruConfig(6, 16, True), squares),
        "transformer": (
            TransformerEncoderConfig(16, 32, 4, 2, norm_first=True, dropout=0.0),
            encoded,
        ),
    }[kind]
    device.seed(4)
    model = config.init(device)
    width = 16 if kind == "transformer" else 6
    x = np.random.default_rng(0).standard_normal((9, 12, width))
    x = Tensor.from_numpy(x.astype(dtype_of(device)), device)
    training = capture_training(model, loss, AdamConfig().init(), x)
    compiled, state = CompiledTraining(training), training.start
    for _ in range(3):
        state, _ = training.step(state, 0.01, x)
        compiled.step(0.01, x)
    agree(compiled.state.values, state.values, device)


def test_parameters_that_joined_later_keep_their_own_count_of_steps():
    device = DEVICES["compiled"]
    model, given = made("layer norm", device)
    training = capture_training(model, classify, AdamConfig().init(), *given[0])
    state, _ = training.step(training.start, 0.01, *given[0])
    times = [name for name in state.numbers if name.endswith("time")]
    numbers = {**state.numbers, times[0]: 7}
    state = type(state)(state.values, numbers)
    compiled = CompiledTraining(training, state)
    for batch in given:
        state, _ = training.step(state, 0.01, *batch)
        compiled.step(0.01, *batch)
    assert compiled.state.numbers == state.numbers
    agree(compiled.state.values, state.values, device)


def test_a_class_that_is_not_there_is_told_as_by_the_op():
    device = DEVICES["compiled"]
    model, given = made("layer norm", device)
    training = capture_training(model, classify, AdamConfig().init(), *given[0])
    compiled = CompiledTraining(training)
    for _ in range(2):
        compiled.step(0.01, *given[0])
    x, y = given[0]
    wrong = np.array(np.asarray(y))
    wrong[2] = 9
    with pytest.raises(type(error_of(training, x, wrong, device)), match="not one of"):
        compiled.step(0.01, x, Tensor.from_numpy(wrong, device))


def error_of(training, x, wrong, device):
    try:
        training.step(training.start, 0.01, x, Tensor.from_numpy(wrong, device))
    except Exception as error:
        return error
    raise AssertionError("no error")


def test_what_follows_from_the_batch_size_is_computed_once():
    device = DEVICES["compiled"]
    model, given = made("layer norm", device)
    loss = lambda model, x, y: model.forward(x).sum()  # noqa: E731 - short
    training = capture_training(model, loss, SgdConfig().init(), *given[0])
    compiled, state = CompiledTraining(training), training.start
    for batch in given:
        state, _ = training.step(state, 0.01, *batch)
        compiled.step(0.01, *batch)
    agree(compiled.state.values, state.values, device)
    ran = {step.op.name for step in training.program.steps}
    plan = next(iter(compiled._plans.values()))
    assert "sum.backward" in ran
    assert "sum.backward" not in {step.op.name for step in plan.what.steps}


# Results in their places


def test_a_result_takes_a_place_that_was_offered_once():
    place = np.zeros((2, 3), np.float32)

    def run():
        return [buffers.empty((2, 3)), buffers.empty((2, 3)), buffers.empty((3, 2))]

    first, second, other = buffers.offering([place], run)
    assert first is place
    assert second is not place
    assert other is not place
    assert buffers.empty((2, 3)) is not place


def test_places_are_taken_back_after_an_error():
    def run():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        buffers.offering([np.zeros(3, np.float32)], run)
    assert buffers.offered == {}


def test_results_that_lie_in_each_others_places_are_exchanged():
    first, second = np.arange(400.0), np.arange(400.0) + 1000
    wanted = second.copy(), first.copy()
    put_in_place((first, second), (second, first))
    np.testing.assert_array_equal(first, wanted[0])
    np.testing.assert_array_equal(second, wanted[1])


def test_a_result_that_looks_back_to_front_is_copied():
    place = np.arange(400.0)
    put_in_place((place,), (place[::-1],))
    np.testing.assert_array_equal(place, np.arange(400.0)[::-1])


def test_every_bound_gradient_is_of_an_op():
    from burnbook.program.compiler.bound import BINDERS

    names = [name for name in BINDERS if name.endswith(".backward")]
    assert len(names) > 15
    for name in names:
        assert OPS[name.removesuffix(".backward")].backward is not None
