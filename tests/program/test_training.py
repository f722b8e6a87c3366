"""capture_training: a whole training step as one program, bit for bit the eager one."""

import numpy as np
import pytest

from burnbook import nn, seed
from burnbook.backend import Autodiff, Numpy
from burnbook.backend.autodiff import BalancedCheckpointing
from burnbook.core.errors import ArgumentError, GraphError
from burnbook.core.op import BackwardOp
from burnbook.examples.guide.data import MnistBatch
from burnbook.examples.guide.model import Model, ModelConfig
from burnbook.grad_clipping import GradientClippingConfig
from burnbook.lr_scheduler import CosineAnnealingLrSchedulerConfig
from burnbook.module import Lora, Module, summary
from burnbook.optim import (
    AdafactorConfig,
    AdaGradConfig,
    AdamConfig,
    AdamWConfig,
    AdanConfig,
    GradientsParams,
    LambConfig,
    LBFGSConfig,
    LionConfig,
    MomentumConfig,
    MuonConfig,
    ParamGroup,
    RmsPropConfig,
    SgdConfig,
)
from burnbook.program import capture, capture_training
from burnbook.tensor import Tensor
from tests.support.cases import cases

DEVICE = Numpy()
AD = Autodiff(DEVICE)
STEPS = 20


def drawn(*shape, number=0):
    array = np.random.default_rng(number).standard_normal(shape).astype(np.float32)
    return Tensor.from_numpy(array, AD)


def classes(count, high, number=0):
    array = np.random.default_rng(number).integers(0, high, count)
    return Tensor.from_ints(array, AD)


def ready(model):
    """A model whose weights are drawn."""
    for _, param in model.named_params():
        param.val()
    return model


class Mlp(Module):
    first: nn.Linear
    second: nn.Linear
    dropout: nn.Dropout

    def forward(self, x):
        return self.second.forward(self.dropout.forward(self.first.forward(x).relu()))

    def loss(self, x, targets):
        loss = nn.CrossEntropyLossConfig().init(x.device())
        return loss.forward(self.forward(x), targets)

    @classmethod
    def make(cls, device=AD):
        seed(3)
        first, second = nn.LinearConfig(6, 8), nn.LinearConfig(8, 3)
        dropout = nn.DropoutConfig(0.3).init()
        return ready(cls(first.init(device), second.init(device), dropout))


def batch_of_mlp(number, count=8):
    return drawn(count, 6, number=number), classes(count, 3, number)


class Encoder(Module):
    embedding: nn.Embedding
    body: nn.TransformerEncoder
    head: nn.Linear

    def loss(self, tokens, targets):
        x = nn.TransformerEncoderInput.new(self.embedding.forward(tokens))
        scores = self.head.forward(self.body.forward(x).mean_dim(1).flatten(1, 2))
        return (
            nn.CrossEntropyLossConfig().init(scores.device()).forward(scores, targets)
        )


class Reader(Module):
    lstm: nn.Lstm
    head: nn.Linear

    def loss(self, x, targets):
        out, _ = self.lstm.forward(x, None)
        return (self.head.forward(out) - targets).square().mean()


class Normed(Module):
    conv: nn.Conv2d
    norm: nn.BatchNorm

    def loss(self, x):
        return self.norm.forward(self.conv.forward(x)).tanh().square().mean()


def encoder():
    seed(4)
    config = nn.TransformerEncoderConfig(8, 16, 2, 2).with_dropout(0.1)
    embedding, head = nn.EmbeddingConfig(7, 8), nn.LinearConfig(8, 3)
    return ready(Encoder(embedding.init(AD), config.init(AD), head.init(AD)))


def reader():
    seed(5)
    lstm, head = nn.LstmConfig(3, 5, True).init(AD), nn.LinearConfig(5, 1).init(AD)
    return ready(Reader(lstm, head))


def normed():
    seed(6)
    conv, norm = nn.Conv2dConfig([1, 3], [3, 3]), nn.BatchNormConfig(3)
    return ready(Normed(conv.init(AD), norm.init(AD)))


def images(number):
    return drawn(4, 12, 12, number=number), classes(4, 10, number)


def small_guide():
    seed(7)
    return ready(ModelConfig(10, 8).init(AD))


MODELS = {
    "mlp": (Mlp.make, Mlp.loss, batch_of_mlp),
    "guide": (
        small_guide,
        lambda model, x, y: model.forward_classification(x, y),
        images,
    ),
    "transformer": (
        encoder,
        Encoder.loss,
        lambda i: (classes((4, 5), 7, i), classes(4, 3, i)),
    ),
    "lstm": (
        reader,
        Reader.loss,
        lambda i: (drawn(3, 5, 3, number=i), drawn(3, 5, 1, number=i + 50)),
    ),
    "batch norm": (normed, Normed.loss, lambda i: (drawn(4, 1, 6, 6, number=i),)),
}
GLOBAL, NORM, VALUE = (
    GradientClippingConfig.GlobalNorm(0.05),
    GradientClippingConfig.Norm(0.02),
    GradientClippingConfig.Value(0.01),
)
MOMENTUM = MomentumConfig(momentum=0.8, dampening=0.2, nesterov=True)
OPTIMIZERS = {
    "sgd": SgdConfig(),
    "momentum": SgdConfig(momentum=MOMENTUM),
    "adam": AdamConfig(),
    "adamw": AdamWConfig(),
    "rmsprop": RmsPropConfig(),
}
MORE_OPTIMIZERS = {
    "amsgrad": AdamConfig(amsgrad=True),
    "cautious adamw": AdamWConfig(cautious_weight_decay=True),
    "centered rmsprop": RmsPropConfig(centered=True),
    "rmsprop without momentum": RmsPropConfig(momentum=0.0),
    "adagrad": AdaGradConfig(lr_decay=0.1),
    "adan": AdanConfig(),
    "lamb": LambConfig(),
    "lion": LionConfig(),
    "adafactor": AdafactorConfig(),
    "clipped by the global norm": AdamConfig(grad_clipping=GLOBAL),
    "clipped by the norm": SgdConfig(gradient_clipping=NORM),
    "clipped by value": AdamConfig(grad_clipping=VALUE),
    "hardly ever clipped": AdamConfig(grad_clipping=GradientClippingConfig.Norm(1e9)),
}


def arrays_of(model):
    return {path: np.asarray(param.val()) for path, param in model.named_params()}


def eager(model, loss, optim, batches, rate):
    losses = []
    for number, batch in enumerate(batches):
        out = loss(model, *batch)
        out = getattr(out, "loss", out)
        losses.append(out.into_scalar())
        grads = GradientsParams.from_grads(out.backward(), model)
        model = optim.step(rate(number), model, grads)
    return model, losses


def run(training, batches, rate, state=None):
    state = training.start if state is None else state
    losses = []
    for number, batch in enumerate(batches):
        state, out = training.step(state, rate(number), *batch)
        losses.append(getattr(out, "loss", out).into_scalar())
    return state, losses


def falling(number):
    return 0.02 / (1 + number)


def equal(a, b):
    a, b = arrays_of(a), arrays_of(b)
    assert a.keys() == b.keys()
    for path in a:
        np.testing.assert_array_equal(a[path], b[path], err_msg=path)


def compared(make, loss, batch, config):
    """The eager loop and the program, from the same start with the same keys."""
    batches = [batch(number) for number in range(STEPS)]
    model, optim = make(), config.init()
    training = capture_training(make(), loss, config.init(), *batches[0])
    seed(11)
    wanted, losses = eager(model, loss, optim, batches, falling)
    seed(11)
    state, made = run(training, batches, falling)
    assert made == losses
    assert len(set(losses)) == STEPS
    equal(training.model(state), wanted)
    return training, state, optim


@pytest.mark.parametrize("config", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_twenty_steps_are_those_of_the_eager_loop_bit_for_bit(name, config):
    compared(*MODELS[name], OPTIMIZERS[config])


@pytest.mark.parametrize("config", MORE_OPTIMIZERS)
def test_every_optimizer_does_the_same(config):
    compared(*MODELS["mlp"], MORE_OPTIMIZERS[config])


def test_running_statistics_are_part_of_the_state():
    training, state, _ = compared(*MODELS["batch norm"], SgdConfig())
    names = {old.name for old, _ in training.program.updates}
    assert {"norm.running_mean", "norm.running_var"} <= names
    assert (state.values["norm.running_mean"] != 0).all()


def test_what_the_optimizer_remembers_can_be_taken_out():
    training, state, optim = compared(*MODELS["mlp"], AdamConfig())
    made = training.optimizer(state).into_record()
    wanted = optim.into_record()
    assert len(made) == len(wanted) == 4
    names = [name for name in state.values if "moment_1" in name]
    assert names[0] == "first.weight.momentum.moment_1"
    assert state.numbers["first.weight.momentum.time"] == STEPS


def test_a_loop_goes_on_where_the_program_stopped():
    make, loss, batch = MODELS["mlp"]
    batches = [batch(number) for number in range(8)]
    training = capture_training(make(), loss, AdamConfig().init(), *batches[0])
    seed(2)
    state, _ = run(training, batches[:4], falling)
    model, optim = training.model(state), training.optimizer(state)
    one, _ = eager(model, loss, optim, batches[4:], falling)
    model, optim = make(), AdamConfig().init()
    seed(2)
    model, _ = eager(model, loss, optim, batches[:4], falling)
    other, _ = eager(model, loss, optim, batches[4:], falling)
    equal(one, other)


def test_a_program_goes_on_where_a_loop_stopped():
    make, loss, batch = MODELS["mlp"]
    batches = [batch(number) for number in range(8)]
    model, optim = make(), AdamConfig().init()
    seed(2)
    model, _ = eager(model, loss, optim, batches[:4], falling)
    training = capture_training(model, loss, optim, *batches[0])
    assert training.first is None
    state, made = run(training, batches[4:], falling)
    model, optim = make(), AdamConfig().init()
    seed(2)
    model, _ = eager(model, loss, optim, batches[:4], falling)
    other, losses = eager(model, loss, optim, batches[4:], falling)
    assert made == losses
    equal(training.model(state), other)


def test_the_first_step_has_a_program_of_its_own_where_it_differs():
    make, loss, batch = MODELS["mlp"]
    plain = capture_training(make(), loss, SgdConfig().init(), *batch(0))
    momentum = capture_training(make(), loss, AdamConfig().init(), *batch(0))
    assert plain.first is None
    assert momentum.first is not None
    assert len(momentum.first.updates) == 4
    assert len(momentum.program.updates) == 12


def test_other_batch_sizes_train_as_well():
    make, loss, _ = MODELS["mlp"]
    config = AdamConfig()
    batches = [batch_of_mlp(number, 1 + number) for number in range(6)]
    training = capture_training(make(), loss, config.init(), *batches[3])
    seed(1)
    state, made = run(training, batches, falling)
    model = make()
    seed(1)
    model, losses = eager(model, loss, config.init(), batches, falling)
    assert made == losses
    equal(training.model(state), model)


def test_a_capture_changes_neither_model_nor_optimizer_nor_random_numbers():
    make, loss, batch = MODELS["batch norm"]
    model, optim = make(), AdamConfig().init()
    before = arrays_of(model)
    seed(9)
    key = DEVICE.next_key()
    seed(9)
    capture_training(model, loss, optim, *batch(0))
    assert DEVICE.next_key() == key
    assert optim.into_record() == {}
    after = arrays_of(model)
    for path, array in before.items():
        np.testing.assert_array_equal(after[path], array)
    assert type(model.norm.running_mean.val().value) is np.ndarray


def test_a_state_never_changes():
    make, loss, batch = MODELS["mlp"]
    training = capture_training(make(), loss, AdamConfig().init(), *batch(0))
    state, _ = run(training, [batch(0)], falling)
    copies = {name: array.copy() for name, array in state.values.items()}
    seed(1)
    once, _ = training.step(state, 0.1, *batch(1))
    seed(1)
    again, _ = training.step(state, 0.1, *batch(1))
    for name, array in copies.items():
        np.testing.assert_array_equal(state.values[name], array)
        np.testing.assert_array_equal(once.values[name], again.values[name])


def test_the_train_step_of_the_learner_is_captured():
    seed(7)
    model = small_guide()
    batches = [MnistBatch(*images(number)) for number in range(3)]
    training = capture_training(
        model, Model.train_step, AdamConfig().init(), batches[0]
    )
    seed(1)
    state, out = training.step(training.start, 0.1, batches[1])
    seed(1)
    wanted = model.train_step(batches[1])
    np.testing.assert_array_equal(out.loss, wanted.item.loss.inner())
    assert [v.name for v in training.program.inputs[:2]] == [
        *("batch.images", "batch.targets")
    ]
    assert state.values.keys() > training.start.values.keys()


def test_a_scheduler_gives_the_rates():
    make, loss, batch = MODELS["mlp"]
    training = capture_training(make(), loss, SgdConfig().init(), *batch(0))
    scheduler = CosineAnnealingLrSchedulerConfig(0.1, 10).init()
    rates = [scheduler.step() for _ in range(5)]
    batches = [batch(number) for number in range(5)]
    seed(1)
    state, _ = run(training, batches, rates.__getitem__)
    model = make()
    seed(1)
    model, _ = eager(model, loss, SgdConfig().init(), batches, rates.__getitem__)
    equal(training.model(state), model)


def test_frozen_parameters_are_constants():
    model = Mlp.make().freeze_group(ParamGroup.from_predicate("first"))
    training = capture_training(model, Mlp.loss, SgdConfig().init(), *batch_of_mlp(0))
    names = {value.name for value in training.program.constants}
    assert {"first.weight", "first.bias"} <= names
    assert [old.name for old, _ in training.program.updates] == [
        *("second.weight", "second.bias")
    ]


def test_groups_of_parameters_have_their_own_rules():
    def made():
        biases = ParamGroup.from_predicate("bias")
        return MuonConfig().init().with_group(biases, AdamConfig())

    make, loss, batch = MODELS["mlp"]
    batches = [batch(number) for number in range(5)]
    training = capture_training(make(), loss, made(), *batches[0])
    seed(1)
    state, _ = run(training, batches, falling)
    model = make()
    seed(1)
    model, _ = eager(model, loss, made(), batches, falling)
    equal(training.model(state), model)


def test_with_checkpointing_the_plain_graph_is_captured():
    device = Autodiff(DEVICE, BalancedCheckpointing())
    x, targets = (tensor.inner() for tensor in batch_of_mlp(0))
    given = [Tensor.from_inner(t, device) for t in (x, targets)]
    training = capture_training(Mlp.make(device), Mlp.loss, SgdConfig().init(), *given)
    plain = capture_training(Mlp.make(), Mlp.loss, SgdConfig().init(), *batch_of_mlp(0))
    assert [s.op for s in training.program.steps] == [s.op for s in plain.program.steps]


def test_gradients_stand_in_the_layer_of_their_op():
    make, loss, batch = MODELS["mlp"]
    program = capture_training(make(), loss, SgdConfig().init(), *batch(0)).program
    places = {step.path for step in program.steps if isinstance(step.op, BackwardOp)}
    assert {"Mlp.first", "Mlp.second", "Mlp.dropout"} <= places
    updates = [step.out.name for step in program.steps if step.op.name == "sgd_step"]
    assert updates[0] == "first.weight.sgd_step"


def test_numbers_are_listed_with_their_formulas():
    make, loss, batch = MODELS["mlp"]
    training = capture_training(make(), loss, AdamConfig().init(), *batch(0))
    text = str(training)
    assert "lr=lr * as_in_burn(0.8999999761581421, 0.9990000128746033, " in text
    assert "first.weight.momentum.time ← first.weight.momentum.time + 1" in text
    assert "first.weight ← first.weight.adam_step" in text


def test_keys_may_be_given():
    make, loss, batch = MODELS["mlp"]
    training = capture_training(make(), loss, SgdConfig().init(), *batch(0))
    outs = [
        training.step(training.start, 0.1, *batch(0), keys=[(1, 2)])[1]
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*outs)


def test_a_missing_number_is_named():
    make, loss, batch = MODELS["mlp"]
    program = capture_training(make(), loss, SgdConfig().init(), *batch(0)).program
    given = [np.zeros(value.shape_at(2), value.dtype) for value in program.inputs]
    with pytest.raises(ArgumentError, match="lr is missing"):
        program.run(*given)


def watched(model, x, targets):
    loss = model.loss(x, targets)
    return loss if loss.into_scalar() < 1e9 else loss * 0.0


@cases(
    "call error words",
    (
        lambda: capture_training(
            Mlp.make(DEVICE), Mlp.loss, SgdConfig().init(), *batch_of_mlp(0)
        ),
        ArgumentError,
        "not on an Autodiff device",
    ),
    (
        lambda: capture_training(
            Mlp.make(), Mlp.loss, LBFGSConfig().init(), *batch_of_mlp(0)
        ),
        ArgumentError,
        "no optimizer with a rule for a parameter",
    ),
    (
        lambda: capture_training(
            Mlp.make(), watched, SgdConfig().init(), *batch_of_mlp(0)
        ),
        GraphError,
        "asks for elements that depend on the inputs",
    ),
)
def test_wrong_steps_are_explained(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_low_rank_adapters_train():
    def make():
        return Mlp.make().apply_lora(Lora(2, 4.0))

    model = make()
    batches = [batch_of_mlp(number) for number in range(4)]
    training = capture_training(model, Mlp.loss, AdamConfig().init(), *batches[0])
    assert "first.weight.lora.a" in training.start.values
    seed(1)
    state, made = run(training, batches, falling)
    seed(1)
    other, losses = eager(model, Mlp.loss, AdamConfig().init(), batches, falling)
    assert made == losses
    equal(training.model(state), other)


# Running statistics of a function that is captured


def test_a_function_that_updates_statistics_gives_them_as_more_outputs():
    model = normed()
    x = drawn(4, 1, 6, 6)
    before = np.asarray(model.norm.running_mean.val()).copy()
    program = capture(lambda x: model.norm.forward(model.conv.forward(x)), x)
    assert [old.name for old, _ in program.updates] == [
        *("norm.running_mean", "norm.running_var")
    ]
    np.testing.assert_array_equal(model.norm.running_mean.val(), before)
    out, mean, _ = program.run(np.array(x))
    wanted = model.norm.forward(model.conv.forward(x))
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(mean, model.norm.running_mean.val())
    assert type(program(x)) is Tensor


def test_another_model_whose_statistics_would_move_is_refused_and_stays():
    judge, model, x = normed(), nn.LinearConfig(6, 6).init(AD), drawn(4, 1, 6, 6)
    before = np.array(judge.norm.running_var.val())

    def loss(model, x):
        return judge.norm.forward(judge.conv.forward(model.forward(x))).square().mean()

    with pytest.raises(GraphError, match="a module moves its running statistics"):
        capture_training(model, loss, SgdConfig().init(), x)
    np.testing.assert_array_equal(judge.norm.running_var.val(), before)
    judge = judge.eval()
    training = capture_training(model, loss, SgdConfig().init(), x)
    _, found = training.step(training.start, 0.0, x)
    wanted = loss(model, x).into_scalar()
    assert found.into_scalar() == pytest.approx(wanted, rel=1e-6)


# Simpler, and what it costs


def test_a_simpler_program_gives_the_same():
    layer = nn.LstmConfig(3, 5, True).init(DEVICE)
    x = Tensor.from_numpy(np.ones((2, 4, 3), np.float32), DEVICE)
    program = capture(layer, x, None)
    simple, folded = program.simplify(), program.simplify(constants=True)
    assert len(folded.steps) < len(simple.steps) == len(program.steps)
    assert "cat" not in [step.op.name for step in folded.steps]
    assert not folded.parameters
    for one in (simple, folded):
        np.testing.assert_array_equal(one(x, None)[0], program(x, None)[0])


def test_a_simpler_training_step_gives_the_same():
    make, loss, batch = MODELS["lstm"]
    training = capture_training(make(), loss, AdamConfig().init(), *batch(0))
    program = training.program
    simple = program.simplify(constants=True)
    assert len(simple.steps) < len(program.steps)
    rng = np.random.default_rng(0)
    given = []
    for value in program.inputs:
        shape = value.shape_at(3)
        whole = value.dtype.kind == "i"
        array = rng.integers(0, 3, shape) if whole else rng.random(shape)
        given.append(array.astype(value.dtype))
    numbers = dict.fromkeys(program.numbers, 2) | {"lr": 0.1}
    keys = [(1, i) for i in range(len(program.keys))]
    one = program.run(*given, numbers=numbers, keys=keys)
    other = simple.run(*given, numbers=numbers, keys=keys)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_operations_are_those_of_the_summary():
    model = ModelConfig(10, 16).init(DEVICE)
    program = capture(model, Tensor.ones([3, 28, 28], DEVICE))
    assert program.flops(5) == summary(model, [5, 28, 28]).flops


def test_a_step_costs_three_times_a_forward():
    make, loss, batch = MODELS["guide"]
    training = capture_training(make(), loss, SgdConfig().init(), *batch(0))
    forward = capture(make().valid(), batch(0)[0])
    share = training.program.flops(64) / forward.flops(64)
    assert 2.5 < share < 3.2


def test_an_example_of_one_row_may_do_without_the_sum_over_rows():
    def loss(model, x):
        weight = model.weight.val().slice([slice(0, 1)])
        return (model.forward(x) * weight).square().mean()

    model = ready(nn.LinearConfig(6, 3).init(AD))
    of_one, of_four = (
        capture_training(model, loss, AdamConfig().init(), drawn(n, 6)) for n in (1, 4)
    )
    for n in (1, 4, 9):
        x = drawn(n, 6, number=n)
        one, _ = of_one.step(of_one.start, 0.1, x)
        four, _ = of_four.step(of_four.start, 0.1, x)
        for name, array in four.values.items():
            np.testing.assert_array_equal(one.values[name], array)


def test_a_branch_for_one_row_is_refused_in_training_too():
    def loss(model, x):
        out = model.forward(x).square().mean()
        return out * 3.0 if x.dims()[0] == 1 else out

    with pytest.raises(GraphError, match="batch size"):
        capture_training(
            ready(nn.LinearConfig(6, 3).init(AD)),
            loss,
            SgdConfig().init(),
            drawn(1, 6),
        )
