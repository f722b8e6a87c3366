"""What a function takes from elsewhere: random numbers, weights, and plain numbers."""

import functools
import pickle
import random
import warnings

import numpy as np
import pytest

from burnbook import nn, seed
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ArgumentError, GraphError
from burnbook.core.rng import Stream
from burnbook.module import Module
from burnbook.optim import AdamConfig, GradientsParams, SgdConfig
from burnbook.program import CompiledTraining, capture, capture_training
from burnbook.tensor import Tensor, activation

DEVICE = Autodiff(Numpy())
X = Tensor.ones([4, 3], DEVICE)

# Random numbers: every source in every place, in a branch that is rare or always taken

SOURCES = {
    "random": lambda: random,
    "random.Random": lambda: random.Random(0),
    "np.random": lambda: np.random,
    "default_rng": lambda: np.random.default_rng(0),
    "RandomState": lambda: np.random.RandomState(0),
    "Stream": lambda: Stream(0),
}
GLOBAL = None
TABLE = {}


def drawn(source):
    """A number that a source draws."""
    if isinstance(source, Stream):
        return source.key()[1] % 2
    return source.random()


class Noisy(Module):
    """A layer that draws from what it has as a field."""

    layer: nn.Linear
    source: object

    def forward(self, x):
        return self.layer(x) if drawn(self.source) >= 0 else x


class Holder:
    """An object that is no module."""

    def __init__(self, source):
        self.source = source

    def scaled(self, x):
        return x * 2.0 if drawn(self.source) >= 0 else x

    def __call__(self, x):
        return self.scaled(x)


def by_closure(source):
    return lambda x: x * 2.0 if drawn(source) >= 0 else x


def by_global(source):
    global GLOBAL
    GLOBAL = source
    return lambda x: x * 2.0 if drawn(GLOBAL) >= 0 else x


def by_table(source):
    TABLE["source"] = source
    return lambda x: x * 2.0 if drawn(TABLE["source"]) >= 0 else x


def by_method(source):
    return Holder(source).scaled


def by_attribute(source):
    held = Holder(source)
    return lambda x: x * 2.0 if drawn(held.source) >= 0 else x


def by_call(source):
    return Holder(source)


def by_default(source):
    def function(x, source=source):
        return x * 2.0 if drawn(source) >= 0 else x

    return function


def by_partial(source):
    return functools.partial(lambda source, x: x * drawn(source), source)


def by_inner_function(source):
    inner = by_closure(source)
    return lambda x: inner(x) + 1.0


def by_field(source):
    return Noisy(nn.LinearConfig(3, 3).init(Numpy()), source)


def by_module_of_a_closure(source):
    model = by_field(source)
    return lambda x: model.forward(x)


PLACES = [
    by_closure,
    by_global,
    by_table,
    by_method,
    by_attribute,
    by_call,
    by_default,
    by_partial,
    by_inner_function,
    by_field,
    by_module_of_a_closure,
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_a_random_number_of_any_source_in_any_place_is_refused(place, source):
    subject = place(SOURCES[source]())
    with pytest.raises(GraphError, match=r"draws here|another number in each run"):
        capture(subject, X.inner())


@pytest.mark.parametrize("source", ["random.Random", "default_rng", "Stream"])
def test_a_source_among_the_examples_is_refused(source):
    given = SOURCES[source]()

    def function(x, source):
        return x * 2.0 if drawn(source) >= 0 else x

    with pytest.raises(GraphError, match=r"an example draws here"):
        capture(function, X.inner(), given)


@pytest.mark.parametrize("rare", [0.5, 0.05, 0.0])
@pytest.mark.parametrize("draw", [random.random, lambda: np.random.rand()])
def test_a_rare_branch_is_refused_however_the_draws_fall(draw, rare):
    random.seed(0)
    np.random.seed(0)

    def function(x):
        return x.tanh() if draw() >= rare else x

    def loss(model, x):
        return function(model.forward(x)).square().mean()

    model = nn.LinearConfig(3, 1).init(DEVICE)
    for _ in range(5):
        with pytest.raises(GraphError, match=r"draws here"):
            capture(function, X.inner())
        with pytest.raises(GraphError, match=r"draws here"):
            capture_training(model, loss, SgdConfig().init(), X)


def test_the_line_behind_the_draw_is_named():
    def function(x):
        number = random.random()
        return x.exp() if number < 2 else x

    with pytest.raises(GraphError, match=r"line .*return x.exp\(\) if number < 2"):
        capture(function, X.inner())


def test_a_function_that_draws_nothing_leaves_the_generators_alone():
    before = random.getstate(), np.random.get_state(legacy=False)
    capture(lambda x: x * 2.0, X.inner())
    assert random.getstate() == before[0]
    assert (
        np.random.get_state(legacy=False)["state"]["pos"] == before[1]["state"]["pos"]
    )


# Something else in each run: not the batch's fault


def with_noise(x):
    noise = np.random.default_rng().normal(size=(1, 3)).astype(np.float32)
    return x + Tensor.from_numpy(noise, x.backend)


def with_counter(x, held=[0]):  # noqa: B006 - it shall last
    held[0] += 1
    return x * float(held[0])


def with_branch(x, held=[0]):  # noqa: B006 - it shall last
    held[0] += 1
    return x.exp() if held[0] % 2 else x.tanh()


@pytest.mark.parametrize("function", [with_noise, with_counter, with_branch])
def test_what_two_runs_do_otherwise_is_not_laid_on_the_batch(function):
    with pytest.raises(GraphError) as caught:
        capture(function, X.inner())
    assert "for a batch of" not in str(caught.value)
    assert "for the batch" not in str(caught.value)
    assert "batch=None" not in str(caught.value)
    assert "run" in caught.value.what


def test_what_follows_the_batch_alone_is_still_said_so():
    with pytest.raises(GraphError, match="does not follow the batch"):
        capture(lambda x: x * float(x.dims()[0] ** 3), X.inner())


# Numbers and weights that are others later

NUMBER = 2.0
OPTIONS = {"scale": 2.0}
NAMES = [2.0, 3.0]
LAYER: nn.Linear | None = None


class Settings:
    """An object with a number."""

    scale = 2.0

    def __init__(self):
        self.scale = 2.0


def number_of_a_global():
    def change(value):
        globals()["NUMBER"] = value

    change(2.0)
    return lambda x: x * NUMBER, change


def number_of_a_closure():
    number = 2.0

    def change(value):
        nonlocal number
        number = value

    return lambda x: x * number, change


def number_of_a_dict():
    OPTIONS["scale"] = 2.0
    return lambda x: x * OPTIONS["scale"], lambda v: OPTIONS.update(scale=v)


def number_of_a_list():
    NAMES[0] = 2.0
    return lambda x: x * NAMES[0], lambda v: NAMES.__setitem__(0, v)


def number_of_an_object():
    settings = Settings()
    return lambda x: x * settings.scale, lambda v: setattr(settings, "scale", v)


def number_of_a_method():
    class Scaled:
        def __init__(self):
            self.scale = 2.0

        def run(self, x):
            return x * self.scale

    held = Scaled()
    return held.run, lambda v: setattr(held, "scale", v)


def number_of_an_inner_function():
    inner, change = number_of_a_closure()
    return lambda x: inner(x) + 1.0, change


def number_of_a_models_method():
    class Scaled(Module):
        layer: nn.Linear

        def forward(self, x):
            return self.layer(x) * NUMBER

    return Scaled(nn.LinearConfig(3, 2).init(Numpy())), number_of_a_global()[1]


NUMBERS = [
    number_of_a_global,
    number_of_a_closure,
    number_of_a_dict,
    number_of_a_list,
    number_of_an_object,
    number_of_a_method,
    number_of_an_inner_function,
    number_of_a_models_method,
]


@pytest.mark.parametrize("make", NUMBERS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_number_that_is_another_one_now_is_told_once(make, compiled):
    function, change = make()
    program = capture(function, X.inner())
    program = program.compile() if compiled else program
    first = program(X.inner())
    change(2.0)  # the same again
    program(X.inner())
    change(3.0)
    with pytest.warns(UserWarning, match=r"3\.0.* now, and the program goes on with"):
        found = program(X.inner())
    np.testing.assert_array_equal(np.asarray(found), np.asarray(first))
    program(X.inner())
    change(2.0)


def test_a_number_that_the_function_itself_counts_is_not_told():
    calls = 0

    def function(x):
        nonlocal calls
        calls += 1
        return x * 2.0

    program = capture(function, X.inner())
    calls += 1
    program(X.inner())


def layer():
    return nn.LinearConfig(3, 2).init(DEVICE)


def weights_of_a_closure():
    held = layer()

    def change(other):
        nonlocal held
        held = other

    return lambda x: held.forward(x).mean(), change


def weights_of_a_global():
    globals()["LAYER"] = layer()
    return lambda x: LAYER.forward(x).mean(), lambda v: globals().update(LAYER=v)


def weights_of_a_list():
    held = [layer()]
    return lambda x: held[0].forward(x).mean(), lambda v: held.__setitem__(0, v)


def weights_of_a_dict():
    held = {"one": layer()}
    return lambda x: held["one"].forward(x).mean(), lambda v: held.update(one=v)


def weights_of_an_object():
    held = Holder(layer())
    return lambda x: held.source.forward(x).mean(), lambda v: setattr(held, "source", v)


def tensor_of_a_closure():
    held = Tensor.ones([1, 3], DEVICE)

    def change(_):
        nonlocal held
        held = held * 2.0

    return lambda x: (x * held).mean(), change


WEIGHTS = [
    weights_of_a_closure,
    weights_of_a_global,
    weights_of_a_list,
    weights_of_a_dict,
    weights_of_an_object,
    tensor_of_a_closure,
]


@pytest.mark.parametrize("make", WEIGHTS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("way", ["program", "compiled", "training", "its plan"])
def test_other_weights_than_those_of_the_program_are_refused(make, way):
    function, change = make()
    if way in ("program", "compiled"):
        program = capture(function, X)
        run = program if way == "program" else program.compile()
        again = functools.partial(run, X.inner())
    else:
        model = layer()

        def loss(model, x):
            return model.forward(x).square().mean() + function(x)

        training = capture_training(model, loss, AdamConfig().init(), X)
        assert training.program.takes.outside.weights
        again = functools.partial(training.step, training.start, 0.1, X)
        if way == "its plan":
            compiled = CompiledTraining(training)
            again = functools.partial(compiled.step, 0.1, X)
    again()
    again()
    change(layer())
    with pytest.raises(ArgumentError, match=r"the program has the weights of that one"):
        again()


def test_the_constants_of_a_training_are_named():
    critic, model = layer(), layer()

    def loss(model, x):
        return (model.forward(x) - critic.forward(x)).square().mean()

    training = capture_training(model, loss, SgdConfig().init(), X)
    assert repr(training).endswith("steps, critic as captured)")
    assert set(training.program.parameters) == {"critic.weight", "critic.bias"}


def test_a_weight_that_a_parameter_keeps_may_be_bound_anew():
    critic = layer()
    program = capture(lambda x, critic=critic: critic.forward(x).mean(), X)
    critic = layer()
    program(X.inner())
    assert critic is not None


def test_newer_weights_of_a_program_are_its_own():
    held = layer()
    program = capture(lambda x: held.forward(x), X)
    held = layer()
    newer = program.with_constants(held)
    wanted = held.forward(X)
    np.testing.assert_array_equal(np.asarray(newer(X.inner())), np.asarray(wanted))


def test_a_copy_of_a_program_compares_nothing():
    number = 2.0
    program = pickle.loads(pickle.dumps(capture(lambda x: x * number, X.inner())))
    number = 3.0
    assert program(X.inner()).max().into_scalar() == 2.0
    assert number == 3.0


# Models as inputs


class Critic(Module):
    """A model with all that a model may hold."""

    first: nn.Linear
    norm: nn.BatchNorm
    last: nn.Linear

    def forward(self, x):
        return self.last(self.norm(self.first(x)).relu())


def critic(trains=False):
    made = Critic(
        nn.LinearConfig(2, 5).init(DEVICE),
        nn.BatchNormConfig(5).init(DEVICE),
        nn.LinearConfig(5, 1).init(DEVICE),
    )
    return made if trains else made.no_grad()


def adversarial(model, judge, x):
    return activation.softplus(-judge.forward(model.forward(x)), 1.0).mean()


@pytest.mark.parametrize("compiled", [False, True])
def test_a_model_that_is_another_one_in_each_step_is_an_input(compiled):
    seed(0)
    model, optim, judge = layer(), AdamConfig().init(), critic()
    training = capture_training(model, adversarial, optim, judge, X)
    assert [v.name for v in training.program.inputs][:2] == [
        "judge.first.weight",
        "judge.first.bias",
    ]
    runner, state = CompiledTraining(training), training.start
    for turn in range(4):
        judge = judge if turn == 2 else critic()
        value = adversarial(model, judge, X)
        grads = GradientsParams.from_grads(value.backward(), model)
        model = optim.step(0.1, model, grads)
        if compiled:
            found = runner.step(0.1, judge, X)
        else:
            state, found = training.step(state, 0.1, judge, X)
        np.testing.assert_allclose(np.asarray(found), np.asarray(value), rtol=1e-5)


def test_models_in_containers_are_inputs_as_well():
    judges = [nn.LinearConfig(2, 1).init(DEVICE) for _ in range(2)]

    def loss(model, held, x):
        found = [judge.forward(model.forward(x)).mean() for judge in held["judges"]]
        return found[0] + found[1] * held["scale"]

    model = layer()
    example = {"judges": judges, "scale": Tensor.ones([1], DEVICE)}
    training = capture_training(model, loss, SgdConfig().init(), example, X)
    example = {"judges": judges[::-1], "scale": Tensor.ones([1], DEVICE) * 2.0}
    _, found = training.step(training.start, 0.1, example, X)
    wanted = np.asarray(loss(model, example, X))
    np.testing.assert_array_equal(np.asarray(found), wanted)


def test_a_model_of_another_form_is_refused():
    training = capture_training(
        layer(), adversarial, SgdConfig().init(), nn.LinearConfig(2, 1).init(DEVICE), X
    )
    for other in (nn.LinearConfig(2, 3).init(DEVICE), critic(), 3):
        with pytest.raises(ArgumentError, match=r"judge (has another form|is int)"):
            training.step(training.start, 0.1, other, X)


def test_a_model_among_the_arguments_moves_no_statistics():
    with pytest.raises(GraphError, match="moves its running statistics"):
        capture_training(
            layer(), adversarial, SgdConfig().init(), critic(trains=True), X
        )


def test_a_batch_is_not_taken_for_a_size_of_a_model():
    judge = nn.LinearConfig(2, 1).init(DEVICE)
    x = Tensor.ones([2, 3], DEVICE)
    training = capture_training(layer(), adversarial, SgdConfig().init(), judge, x)
    training.step(training.start, 0.1, judge, X)


# What stands in the place of a model or a loss


def test_a_class_is_no_model():
    with pytest.raises(ArgumentError, match="Critic is a class, and no model of it"):
        capture(Critic, X)


def test_a_loss_layer_is_no_function_of_a_model():
    loss = nn.MseLoss()
    with pytest.raises(ArgumentError, match=r"loss.forward\(model.forward\(x\), y\)"):
        capture_training(layer(), loss, SgdConfig().init(), X, X)


def test_a_compiled_training_says_which_model_it_trains():
    training = capture_training(
        layer(), lambda m, x: m.forward(x).mean(), SgdConfig().init(), X
    )
    assert repr(CompiledTraining(training)).endswith("it trains its .model)")


def test_nothing_is_told_where_nothing_has_changed():
    function, _ = number_of_a_global()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = capture(function, X.inner())
        program(X.inner())
