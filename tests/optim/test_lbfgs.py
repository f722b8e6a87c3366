"""L-BFGS: curvature from the last steps, the line search, records that go on."""

import math

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.dtypes import Int
from burnbook.core.errors import (
    BurnbookError,
    ConfigError,
    RecordError,
    ShapeError,
    TrainingError,
)
from burnbook.module import Module, Param
from burnbook.optim import LBFGS, GradientsParams, LBFGSConfig, LineSearchFn
from burnbook.optim.line_search import MOST, Point, cubic_minimum, strong_wolfe
from burnbook.record import DoublePrecisionSettings
from burnbook.tensor import Tensor
from tests.support.cases import cases
from tests.support.recorders import every_recorder

WIDE = Numpy(float="f64")
WOLFE = LBFGSConfig(line_search_fn=LineSearchFn.StrongWolfe)


class Pair(Module):
    x: Param
    y: Param
    count: Param  # an Int, which no gradient moves


def pair(device=None, x=-1.5, y=2.0) -> Pair:
    device = device or Autodiff(WIDE)
    floats = [Param.from_tensor(Tensor.from_data([v], device)) for v in (x, y)]
    return Pair(*floats, Param.from_tensor(Tensor.from_data([1], device, Int)))


def rosenbrock(module):
    """The valley of Rosenbrock, with its lowest point at (1, 1)."""
    x, y = module.x.val(), module.y.val()
    loss = (x * -1.0 + 1.0) ** 2.0 + (y - x * x) ** 2.0 * 100.0
    return loss.sum(), GradientsParams.from_grads(loss.sum().backward(), module)


def place(module):
    return [np.asarray(p.val()).item() for p in (module.x, module.y)]


def test_it_finds_the_end_of_rosenbrocks_valley():
    module, optim = pair(), WOLFE.init()
    for _ in range(5):
        old = module
        module, loss = optim.step(1.0, module, rosenbrock)
        assert loss == pytest.approx(rosenbrock(old)[0].into_scalar())
    assert place(module) == pytest.approx([1.0, 1.0], abs=1e-5)
    assert place(pair()) == [-1.5, 2.0]
    assert module.x.is_require_grad
    assert repr(optim).startswith("LBFGS(max_iter=20, history_size=100, Strong")


def test_a_layer_is_fitted_better_than_its_data_are_noisy():
    device = Autodiff(WIDE)
    device.seed(2)
    rng = np.random.default_rng(0)
    x = Tensor.from_numpy(rng.normal(size=(50, 4)), device)
    y = x @ Tensor.from_numpy(rng.normal(size=(4, 2)), device) + 0.5
    layer, optim = nn.LinearConfig(4, 2).init(device), LBFGSConfig().init()

    def closure(layer):
        error = layer.forward(x) - y
        loss = (error * error).mean()
        return loss.into_scalar(), GradientsParams.from_grads(loss.backward(), layer)

    for _ in range(3):
        layer, loss = optim.step(0.5, layer, closure)
    assert loss < 1e-9
    assert np.allclose(layer.bias.val(), 0.5, atol=1e-4)


@pytest.mark.parametrize(
    ("plain", "tolerance"), [(Numpy(), 1e-2), (Numpy(float="f16"), 0.3)]
)
def test_narrow_parameters_are_summed_in_single(plain, tolerance):
    module, optim = pair(Autodiff(plain), 0.5, 0.5), WOLFE.init()
    for _ in range(10):
        module, _ = optim.step(1.0, module, rosenbrock)
    assert place(module) == pytest.approx([1.0, 1.0], abs=tolerance)
    assert module.x.val().device() is Autodiff(plain)
    assert optim.into_record()["d"].dtype == "f32"


def test_a_parameter_without_gradient_and_one_on_another_device():
    far = Autodiff(Numpy(float="f64", compiled=False))
    y = Param.from_tensor(Tensor.from_data([3.0], far))
    near = pair()
    module = Pair(near.x, y, near.count)

    def closure(module):
        loss = (module.y.val() - 1.0) ** 2.0
        return loss.sum(), GradientsParams.from_grads(loss.sum().backward(), module)

    module, _ = WOLFE.init().step(1.0, module, closure)
    assert place(module) == pytest.approx([-1.5, 1.0])
    assert module.x.id == near.x.id
    assert module.y.val().device() is far
    assert module.count is near.count


def test_a_flat_place_is_left_as_it_is():
    module = pair(x=1.0, y=1.0)
    optim = LBFGSConfig().init()
    made, loss = optim.step(1.0, module, rosenbrock)
    assert made is module
    assert loss == 0.0
    assert optim.into_record()["g_iter"] == 0


@cases(
    "config most",
    (LBFGSConfig(max_iter=4), 5),
    (LBFGSConfig(max_iter=50, max_eval=7), 7),
    (WOLFE.with_max_eval(7), 7),
    (WOLFE.with_max_iter(8), 10),
)
def test_the_closure_is_not_asked_more_often_than_allowed(config, most):
    calls = 0

    def counted(module):
        nonlocal calls
        calls += 1
        return rosenbrock(module)

    config.init().step(1e-3, pair(), counted)
    assert 2 <= calls <= most


def test_the_history_forgets_its_oldest_pairs():
    optim, module = LBFGSConfig(history_size=3, max_iter=10).init(), pair()
    for _ in range(2):
        module, _ = optim.step(1e-3, module, rosenbrock)
    assert len(optim.state.history_s) == len(optim.state.history_y) == 3


# Records


@pytest.mark.parametrize("config", [LBFGSConfig(max_iter=3), WOLFE.with_max_iter(3)])
@pytest.mark.parametrize("steps", [0, 1, 4])
@every_recorder
def test_resuming_is_equal_bit_for_bit(config, steps, kind, tmp_path):
    optim, module = config.init(), pair()
    for _ in range(steps):
        module, _ = optim.step(1e-3, module, rosenbrock)
    recorder = kind(DoublePrecisionSettings)
    recorder.record(optim, tmp_path / "optim")
    again = config.init().load_record(recorder.load(tmp_path / "optim"))
    assert again.into_record() == optim.to_record()
    other = module
    for _ in range(3):
        module, loss = optim.step(1e-3, module, rosenbrock)
        other, same = again.step(1e-3, other, rosenbrock)
        assert (loss, place(module)) == (same, place(other))
    assert list(optim.into_record()) == [
        *("history_s", "history_y", "d", "t"),
        *("prev_flat_grad", "prev_loss", "g_iter"),
    ]


def test_a_history_of_two_lengths_is_refused():
    optim, module = LBFGSConfig().init(), pair()
    optim.step(1e-3, module, rosenbrock)
    record = optim.into_record()
    record["history_y"].pop()
    with pytest.raises(RecordError, match="history_s and history_y have"):
        LBFGSConfig().init().load_record(record)


def test_a_record_of_another_module_is_refused():
    optim = LBFGSConfig().init()
    optim.step(1e-3, pair(), rosenbrock)
    layer = nn.LinearConfig(2, 2).init(Autodiff(WIDE))
    again = LBFGSConfig().init().load_record(optim.into_record())
    with pytest.raises(ShapeError, match="belongs to another module"):
        again.step(1e-3, layer, rosenbrock)


# Errors


def test_a_loss_that_breaks_says_so_and_changes_nothing():
    optim, module = LBFGSConfig().init(), pair()
    module, _ = optim.step(1e-3, module, rosenbrock)
    before = optim.into_record()
    with pytest.raises(TrainingError, match=r"the loss is (nan|inf) at evaluation"):
        optim.step(1e200, module, rosenbrock)
    assert optim.into_record() == before


def test_a_line_search_walks_back_from_where_the_loss_is_nan():
    def closure(module):
        x = module.x.val()
        loss = (x.log() - x).neg().sum()  # no logarithm below 0
        return loss, GradientsParams.from_grads(loss.backward(), module)

    module = pair(x=0.1)
    optim = WOLFE.init()
    for rate in (300.0, 1.0):
        module, _ = optim.step(rate, module, closure)
    assert place(module)[0] == pytest.approx(1.0, abs=1e-4)


@cases("answer text", (None, "NoneType, not a pair"), ((1.0,), "tuple, not a pair"))
def test_a_closure_that_gives_something_else(answer, text):
    with pytest.raises(TrainingError, match=text):
        LBFGSConfig().init().step(1.0, pair(), lambda module: answer)


def test_a_gradient_of_another_shape_is_explained():
    module = pair()
    grads = GradientsParams({module.y.id: Tensor.ones([2], WIDE)})
    with pytest.raises(ShapeError, match=r"step of Pair.y: the gradient does not have"):
        LBFGSConfig().init().step(1.0, module, lambda module: (1.0, grads))


@cases(
    "build text",
    (lambda: LBFGSConfig(max_iter=0), "max_iter is 0"),
    (lambda: LBFGSConfig(history_size=0), "history_size is 0"),
    (lambda: LBFGSConfig(max_eval=0), "max_eval is 0"),
    (lambda: LBFGSConfig(tolerance_grad=-1.0), "tolerance_grad is -1.0"),
    (lambda: LBFGSConfig(tolerance_change=-1.0), "tolerance_change is -1.0"),
    (lambda: LBFGSConfig().init().step(math.nan, pair(), rosenbrock), "nan is not"),
)
def test_what_cannot_be_is_refused(build, text):
    with pytest.raises(ConfigError, match=text):
        build()


def test_a_module_of_whole_numbers_has_nothing_to_find():
    class Counter(Module):
        count: Param

    count = Param.from_tensor(Tensor.from_data([1], Autodiff(WIDE), Int))
    with pytest.raises(ShapeError, match="Counter has no Float parameter"):
        LBFGSConfig().init().step(1.0, Counter(count), rosenbrock)


def test_a_config_is_saved_and_loaded(tmp_path):
    WOLFE.with_max_eval(30).save(tmp_path / "optim.json")
    assert LBFGSConfig.load(tmp_path / "optim.json") == WOLFE.with_max_eval(30)
    assert isinstance(WOLFE.init(), LBFGS)


# The line search


GRAD = Tensor.ones([1], WIDE)
CURVES = {
    "a bowl": (lambda t: (t - 3) ** 2, lambda t: 2 * (t - 3)),
    "far away": (lambda t: (t - 900) ** 2, lambda t: 2 * (t - 900)),
    "very near": (lambda t: (t - 1e-4) ** 2, lambda t: 2 * (t - 1e-4)),
    "waves": (
        lambda t: math.cos(t) + 0.05 * t - 2 * t * math.exp(-t),
        lambda t: -math.sin(t) + 0.05 - 2 * (1 - t) * math.exp(-t),
    ),
    "a wall": (
        lambda t: math.nan if t > 2 else (t - 1.5) ** 4,
        lambda t: math.nan if t > 2 else 4 * (t - 1.5) ** 3,
    ),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("first", [1e-3, 1.0, 50.0])
def test_the_point_that_is_found_fulfills_both_conditions(name, first):
    loss, slope = CURVES[name]
    start = Point(0.0, loss(0.0), GRAD, slope(0.0))
    looks = []

    def look(t):
        looks.append(t)
        return Point(t, loss(t), GRAD, slope(t))

    found, count = strong_wolfe(look, start, first, 1.0, 1e-9)
    assert count == len(looks) <= MOST + 1
    assert found.loss <= start.loss + 1e-4 * found.t * start.slope
    assert abs(found.slope) <= -0.9 * start.slope


def test_the_cubic_through_two_points_is_exact_for_a_cubic():
    def at(t):
        return Point(t, t**3 - 3 * t, GRAD, 3 * t**2 - 3)

    for a, b in ((0.0, 2.0), (2.0, 0.0), (0.5, 3.0)):
        assert cubic_minimum(at(a), at(b), (-9, 9)) == pytest.approx(1.0)
    assert cubic_minimum(at(0.0), at(2.0), (1.5, 2.0)) == 1.5
    line = [Point(0.0, 0.0, GRAD, 1.0), Point(1.0, 1.0, GRAD, 1.0)]
    assert cubic_minimum(*line, (0.0, 1.0)) in (0.0, 0.5, 1.0)
    broken = [Point(0.0, 0.0, GRAD, 1.0), Point(1.0, math.inf, GRAD, 1.0)]
    assert cubic_minimum(*broken, (0.0, 1.0)) == 0.5


@cases(
    "ask what cure",
    (lambda model: LBFGSConfig(lr=0.8), "lr is not one of its fields", "step(lr, mod"),
    (lambda model: LBFGSConfig(params=model), "params is not one", "step(lr, model"),
    (
        lambda model: LBFGS([model], lr=0.8),
        "list is not LBFGSConfig",
        "Config().init()",
    ),
    (lambda model: LBFGS(), "nothing is not LBFGSConfig", "LBFGSConfig().init()"),
    (lambda model: LBFGSConfig().init().zero_grad(), "not needed: gradients", "leave"),
    (lambda model: LBFGSConfig().init().state_dict(), "this is into_record", "into_re"),
    (
        lambda model: LBFGSConfig().init().step(1.0, model, rosenbrock(model)[1]),
        "the closure is GradientsParams, not a function",
        "def closure(model): return loss, GradientsParams",
    ),
)
def test_what_people_type_for_it_in_pytorch_is_answered(ask, what, cure):
    with pytest.raises(BurnbookError) as caught:
        ask(pair())
    assert what in caught.value.what
    assert cure in caught.value.cure
    assert "model, grads" not in caught.value.cure  # those are what a closure returns
