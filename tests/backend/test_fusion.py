"""Fusion: what waits, what runs it, plans, errors, threads, what is never stored."""

import copy
import gc
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest

import burnbook
from burnbook import nn
from burnbook.backend import (
    Autodiff,
    Backend,
    Checked,
    Counting,
    Fusion,
    Numpy,
    Tracing,
)
from burnbook.backend.fusion import Deferred, fusion as decorator, stream as streams
from burnbook.core.errors import (
    ArgumentError,
    BackendError,
    DivisionError,
    ShapeError,
)
from burnbook.core.op import OPS, op
from burnbook.optim import AdamConfig, GradientsParams, SgdConfig
from burnbook.program import capture, capture_training
from burnbook.program.compiler import (
    RULES,
    binding,
    chains,
    fusion,
    streams as plans,
)
from burnbook.tensor import Int, Tensor
from tests.support.far_arrays import Far


class Inner(Counting):
    """A backend of its own for each test, that counts what really runs."""


@pytest.fixture
def counting():
    return Inner(Numpy())


def fresh(inner=None):
    """A Fusion that has not run anything."""
    device = Fusion(inner or Numpy(compiled=False))
    device.sync()
    device.forget()
    return device


@pytest.fixture
def fused():
    return fresh()


def again(function, times=4):
    """What a function gives, every time."""
    return [function() for _ in range(times)]


# What waits, and what runs it


def test_nothing_runs_before_a_value_is_read(counting):
    device = Fusion(counting)
    x = Tensor.from_floats([1.0, 2.0], device)
    _ = x + x
    counting.counts.clear()
    y = (x * 2.0 + 1.0) * x
    assert device.waiting > 0
    assert not counting.counts
    assert y.dims() == [2]
    assert y.dtype == "f32"
    assert device.waiting > 0
    assert y.to_data().to_list() == [3.0, 10.0]
    assert device.waiting == 0


READS = {
    "into_data": lambda x: x.into_data(),
    "into_scalar": lambda x: x.sum().into_scalar(),
    "str": str,
    "repr": repr,
    "html": lambda x: x._repr_html_(),
    "asarray": np.asarray,
    "float": lambda x: float(x.sum()),
    "bool": lambda x: bool(x.sum()),
    "format": lambda x: f"{x:.2}",
    "iterate": lambda x: [float(row) for row in x],
    "to_device": lambda x: x.to_device(Numpy()),
    "pickle": pickle.dumps,
    "deepcopy": copy.deepcopy,
    "dlpack": np.from_dlpack,
    "argwhere": lambda x: x.greater_elem(0.0).argwhere(),
    "sync": lambda x: x.device().sync(),
}


@pytest.mark.parametrize("name", READS)
def test_reading_runs_what_waits(name, fused):
    x = Tensor.from_floats([1.0, 2.0], fused)
    for _ in range(3):
        y = x * 2.0 + 1.0
        assert fused.waiting
        READS[name](y)
        assert fused.waiting == 0
        assert y.to_data().to_list() == [3.0, 5.0]


def test_asking_for_shapes_runs_nothing(fused):
    x = Tensor.ones([2, 3], fused)
    y = (x * 2.0 + 1.0).exp()
    asked = y.dims(), y.shape, y.rank, y.dtype, y.is_require_grad(), y.clone(), len(y)
    assert asked[0] == [2, 3]
    assert not hasattr(y.value, "node")
    assert fused.waiting == 3


def test_a_dropped_value_is_never_computed(counting):
    device = Fusion(counting)
    x = Tensor.from_floats([1.0, 2.0], device)
    again(lambda: ((x * 3.0).exp(), x + 1.0)[1].to_data(), 1)
    counting.counts.clear()
    y = (x * 3.0).exp()
    z = x + 1.0
    del y
    assert z.to_data().to_list() == [2.0, 3.0]
    assert counting.counts == {"add": 1}


def test_what_only_a_chain_needs_is_not_stored(fused):
    x = Tensor.from_numpy(np.ones((1 << 18,), np.float32), fused)

    def run():
        y = x * 2.0
        z = (y + 1.0).exp() - 3.0
        z.to_data()
        return y, z

    again(run)
    y, z = run()
    value = weakref.ref(y.value)
    del y
    (z * 2.0).to_data()
    gc.collect()
    assert value() is None


def test_a_value_that_is_held_is_stored(fused):
    x = Tensor.from_floats([1.0, 2.0], fused)

    def run():
        y = x * 2.0
        z = y + 1.0
        return z.to_data().to_list(), y.to_data().to_list()

    assert again(run) == [([3.0, 5.0], [2.0, 4.0])] * 4


def test_a_stream_that_comes_again_has_a_plan(fused):
    x = Tensor.ones([4, 5], fused)
    plan = fused.plans
    again(lambda: (x * 2.0 + 1.0).sum().into_scalar(), 5)
    assert (len(plan.known), plan.made, plan.hits) == (2, 1, 3)


def test_a_number_that_changes_needs_no_new_plan(fused):
    x = Tensor.ones([4, 5], fused)
    found = [(x * float(i) + 1.0).sum().into_scalar() for i in range(20)]
    assert found == [20.0 * (i + 1) for i in range(20)]
    assert len(fused.plans.known) <= 2


def test_whole_numbers_that_change_need_no_new_plan(fused):
    x = Tensor[1, Int].from_ints([1, 2], fused)
    found = [(x * i + 1).to_data().to_list() for i in range(1, 20)]
    assert found == [[i + 1, 2 * i + 1] for i in range(1, 20)]
    assert len(fused.plans.known) <= 2


def test_another_shape_has_another_plan(fused):
    for size in (2, 3, 2, 3, 2, 3):
        x = Tensor.ones([size], fused)
        assert (x * 2.0 + 1.0).to_data().to_list() == [3.0] * size
    assert fused.plans.made == 2


def test_long_streams_are_run_in_between(fused, monkeypatch):
    monkeypatch.setattr(streams, "MOST", 20)
    x = Tensor.ones([3], fused)
    for _ in range(100):
        x = x + 1.0
        assert fused.waiting <= 36
    assert x.to_data().to_list() == [101.0] * 3


def test_large_streams_are_run_in_between(fused, monkeypatch):
    monkeypatch.setattr(streams, "MOST_BYTES", 10_000)
    x = Tensor.ones([500], fused)
    for _ in range(100):
        x = x + 1.0
        assert fused.waiting <= 20
    assert x.to_data().to_list() == [101.0] * 500


def test_a_loop_that_never_reads_is_cut_at_equal_places(monkeypatch):
    monkeypatch.setattr(decorator, "MANY", 60)
    fused = fresh()
    device = Autodiff(fused)
    weight = Tensor.ones([3, 2], device).require_grad()
    x = Tensor.ones([4, 3], device)
    for _ in range(60):
        loss = (x.matmul(weight).tanh() - 0.5).square().mean()
        gradient = weight.grad(loss.backward())
        stepped = weight.inner() - gradient * 0.1
        weight = Tensor.from_inner(stepped, device).require_grad()
    made, hits = fused.plans.made, fused.plans.hits
    assert hits > 4
    assert made <= 2


def test_few_plans_are_kept(fused, monkeypatch):
    monkeypatch.setattr(streams, "MOST_PLANS", 4)
    for size in range(1, 12):
        (Tensor.ones([size], fused) * 2.0).to_data()
    assert len(fused.plans.known) == 4


def test_places_are_given_up_where_they_are_too_many(fused, monkeypatch):
    monkeypatch.setattr(plans, "PLACES", 0)
    x = Tensor.ones([4], fused)
    found = again(lambda: (x * 2.0 + 1.0).to_data().to_list(), 8)
    assert found == [[3.0] * 4] * 8


# Chains and rules


def chain(x, y):
    z = (x * 2.0 + y).exp()
    return ((z - 1.0) * y).tanh() + (z * 0.5).sqrt().sigmoid()


@pytest.mark.parametrize(
    "shapes",
    [
        ([300_000], [300_000]),
        ([600, 500], [600, 500]),
        ([600, 500], [1, 500]),
        ([600, 500], [600, 1]),
        ([600, 500], [1, 1]),
        ([1, 300_000], [1, 300_000]),
        ([40, 60, 70], [1, 60, 70]),
        ([1, 600, 500], [30, 1, 500]),
    ],
    ids=str,
)
def test_large_chains_give_the_same_bits(shapes, fused):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]

    def run(device):
        return np.asarray(chain(*[Tensor.from_numpy(a, device) for a in arrays]))

    wanted = run(fused.inner)
    for found in again(lambda: run(fused)):
        np.testing.assert_array_equal(found, wanted)


def test_arrays_that_are_not_in_one_piece_are_read_right(fused):
    array = np.random.default_rng(0).standard_normal((700, 600)).astype(np.float32)

    def run(device):
        x = Tensor.from_numpy(array, device).swap_dims(0, 1)
        return np.asarray(chain(x, x.flip([0])))

    wanted = run(fused.inner)
    for found in again(lambda: run(fused)):
        np.testing.assert_array_equal(found, wanted)


def test_inputs_are_never_written_over(fused):
    array = np.linspace(-1, 1, 1 << 18).astype(np.float32)
    x = Tensor.from_numpy(array, fused)
    again(lambda: chain(x, x).to_data())
    np.testing.assert_array_equal(np.asarray(x), array)


def test_results_stay_when_the_plan_runs_again(fused):
    x = Tensor.from_floats([1.0, 2.0], fused)
    kept = [x * float(i) + 1.0 for i in range(8)]
    for tensor in kept:
        tensor.to_data()
    first = [(x * 2.0 + 1.0, i) for i in range(8)]
    read = [np.asarray(t) for t, _ in first]
    more = again(lambda: np.asarray(x * 2.0 + 1.0), 8)
    assert [r.tolist() for r in (*read, *more)] == [[3.0, 5.0]] * 16


def test_views_of_a_result_are_not_written_over(fused):
    x = Tensor.from_floats([[1.0, 2.0], [3.0, 4.0]], fused)

    def run():
        y = x * 2.0
        flat = y.reshape([4])
        z = y + 1.0
        del y
        return flat.to_data().to_list(), z.to_data().to_list()

    assert again(run) == [([2.0, 4.0, 6.0, 8.0], [[3.0, 5.0], [7.0, 9.0]])] * 4


@pytest.fixture
def rules():
    before = list(RULES)
    yield RULES
    RULES[:] = before


def test_a_rule_of_ones_own_holds_in_streams(rules, fused):
    calls = []

    @fusion("mul add")
    def multiply_add(xp, x, y, z):
        calls.append(1)
        return x * y + z

    x = Tensor.ones([3, 3], fused)
    found = again(lambda: (x * x + x).matmul(x).sum().into_scalar(), 3)
    assert found == [54.0] * 3
    assert calls


def test_a_rule_that_gives_another_shape_is_told(rules, fused):
    @fusion("exp log")
    def first_row(xp, x):
        return x[:1]

    def run():
        return np.asarray((Tensor.ones([3, 2], fused) * 2.0).exp().log())

    with pytest.raises(ArgumentError, match="the rule first_row gives another shape"):
        again(run, 3)


def test_zero_below_zero_is_another_number():
    device = fresh(Numpy())
    x, w = Tensor.ones([2, 3], device), Tensor.ones([3, 2], device)
    for number in (0.0, 0.0, 0.0, 0.0, 0.0, -0.0, 0.0):
        found = np.asarray(x.matmul(w) / number)
        np.testing.assert_array_equal(
            found, np.copysign(np.inf, np.full((2, 2), number))
        )


@pytest.fixture
def loud(monkeypatch):
    """An error in a plan, which one after the other does not have, is an error here."""
    plain = streams.Segment._one_by_one

    def one_by_one(segment, held):
        wrong = sys.exc_info()[1]
        found, error = plain(segment, held)
        assert wrong is None or error is not None, f"a plan failed: {wrong!r}"
        return found, error

    monkeypatch.setattr(streams.Segment, "_one_by_one", one_by_one)
    bind = plans.StreamPlan._bind

    def bound(plan, *given):
        bind(plan, *given)
        assert plan._bound is not None, "a plan could not be bound"

    monkeypatch.setattr(plans.StreamPlan, "_bind", bound)


CONV = nn.Conv2dConfig([1, 4], [3, 3])
TRAINED = {
    "linear": ([nn.LinearConfig(6, 3)], (6,)),
    "dropout": ([nn.LinearConfig(6, 32), nn.DropoutConfig(0.3)], (6,)),
    "max pool": (
        [nn.Conv2dConfig([1, 4], [3, 3]), nn.MaxPool2dConfig([2, 2])],
        (1, 8, 8),
    ),
    "average": (
        [nn.Conv2dConfig([1, 4], [3, 3]), nn.AvgPool2dConfig([2, 2])],
        (1, 8, 8),
    ),
}


@pytest.mark.usefixtures("loud")
@pytest.mark.parametrize("config", [SgdConfig(), AdamConfig()], ids=["sgd", "adam"])
@pytest.mark.parametrize("name", TRAINED)
def test_no_plan_of_a_training_fails_unseen(name, config):
    configs, shape = TRAINED[name]
    results = []
    for device in (Autodiff(fresh(Numpy())), Autodiff(Numpy())):
        burnbook.seed(5)
        made = [_made(one, device) for one in configs]
        optim = config.init()
        model, *rest = made
        rng = np.random.default_rng(0)
        losses = []
        for _ in range(12):
            given = rng.standard_normal((4, *shape)).astype(np.float32)
            out = model.forward(Tensor.from_numpy(given, device))
            for layer in rest:
                out = layer.forward(out)
            loss = out.relu().square().mean()
            grads = GradientsParams.from_grads(loss.backward(), model)
            model = optim.step(0.05, model, grads)
            losses.append(loss.into_scalar())
        results.append(losses)
    np.testing.assert_allclose(*results, 1e-4)


def _made(config, device):
    try:
        return config.init(device)
    except TypeError:  # what has no parameters
        return config.init()


def test_the_plan_can_be_read(fused):
    x = Tensor.from_numpy(np.ones((1 << 18,), np.float32), fused)
    again(lambda: (x * 2.0 + 1.0).exp().sum().into_scalar())
    (plan,) = [p for known in fused.plans.known.values() for p in known.spare][-1:]
    assert "# mul, add, exp" in plan.source


@pytest.mark.parametrize(
    ("function", "is_shared"),
    [
        (lambda x: (x * 2.0 + 1.0) * x - 3.0, False),
        (lambda x: (x.exp() * 2.0).tanh().log(), True),
    ],
    ids=["cheap", "costly"],
)
@pytest.mark.parametrize("is_captured", [True, False])
def test_threads_share_chains_of_long_calls_alone(
    function, is_shared, is_captured, monkeypatch
):
    seen = []
    run = chains.threads.run

    def watched(kernel, args, total, *rest, **named):
        seen.append(getattr(kernel, "__name__", "in turns"))
        run(kernel, args, total, *rest, **named)

    monkeypatch.setattr(chains.threads, "run", watched)
    monkeypatch.setattr(binding, "cores", lambda: 2)
    device = Numpy(compiled=False) if is_captured else fresh(Numpy(compiled=False))
    x = Tensor.from_numpy(np.full((1024, 1024), 0.5, np.float32), device)
    if is_captured:
        function = capture(function, x).compile()
    again(lambda: np.asarray(function(x)))
    assert bool({"work", "in turns"} & {*seen}) is is_shared


def test_stretches_have_the_length_that_is_asked_for(fused, monkeypatch):
    monkeypatch.setattr(chains, "STRETCH", 4 * 1000)
    array = np.random.default_rng(0).standard_normal(123_457).astype(np.float32)

    def run(device):
        x = Tensor.from_numpy(array, device)
        return np.asarray(chain(x, x))

    wanted = run(fused.inner)
    for found in again(lambda: run(fused)):
        np.testing.assert_array_equal(found, wanted)


# Errors


def test_wrong_shapes_are_refused_at_the_call(fused):
    x, y = Tensor.ones([2, 3], fused), Tensor.ones([2, 4], fused)
    _ = x + x
    with pytest.raises(ShapeError, match=r"^add: 3 ≠ 4 at dim 1"):
        x + y
    with pytest.raises(ShapeError, match=r"^matmul: 3 ≠ 2"):
        x.matmul(x)


def test_what_depends_on_elements_is_refused_at_the_call(fused):
    x = Tensor[1, Int].from_ints([1, 2], fused)
    for divisor in ([1, 1], [1, 0]):
        y = Tensor[1, Int].from_ints(divisor, fused)
        if 0 in divisor:
            with pytest.raises(DivisionError):
                x / y
        else:
            assert (x / y).to_data().to_list() == [1, 2]
    with pytest.raises(DivisionError):
        x % 0
    rows = Tensor.ones([3, 2], fused)
    at = Tensor[1, Int].from_ints([0, 7], fused)
    with pytest.raises(Exception, match="select"):
        rows.select(0, at)
    singular = Tensor.zeros([2, 2], fused)
    assert fused.waiting == 0 or singular is not None


@pytest.fixture
def moody():
    @op("F>F")
    def moody(xp, x):
        """Fail for large elements.

        Shapes: x [...] -> [...]
        """
        if xp.any(x > 5):
            raise ValueError("too large")
        return x * 1.0

    yield moody
    del OPS["moody"]


def late(number, device):
    x = Tensor.from_floats([number, 1.0], device)
    alone = x + 1.0
    after = x.moody() * 2.0
    return alone, after


@pytest.mark.parametrize("times", [1, 2, 4], ids=["first", "second", "planned"])
def test_a_late_error_names_the_op_and_the_line(times, fused, moody):
    for _ in range(times):
        for tensor in late(1.0, fused):
            tensor.to_data()
    alone, after = late(9.0, fused)
    wanted = r"^moody: ValueError: too large\n  called at  test_fusion.py:\d+ in late"
    with pytest.raises(BackendError, match=wanted):
        fused.sync()
    assert alone.to_data().to_list() == [10.0, 2.0]
    with pytest.raises(BackendError, match=wanted):
        after.to_data()
    with pytest.raises(BackendError, match=wanted):
        after + 1.0
    alone, after = late(2.0, fused)
    assert after.to_data().to_list() == [4.0, 2.0]


def test_ctrl_c_leaves_the_stream_as_it_was(fused, monkeypatch):
    x = Tensor.from_floats([1.0, 2.0], fused)
    y = x.exp() * 2.0
    run = fused.inner.run

    def interrupted(*call):
        raise KeyboardInterrupt

    monkeypatch.setattr(fused.inner, "run", interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt):
        y.to_data()
    monkeypatch.setattr(fused.inner, "run", run, raising=False)
    np.testing.assert_allclose(np.asarray(y), 2 * np.exp([1.0, 2.0]), rtol=1e-6)


def test_autodiff_below_fusion_is_refused():
    with pytest.raises(BackendError, match=r"try: Autodiff\(Fusion\(Numpy\(\)\)\)"):
        Fusion(Autodiff(Numpy()))
    with pytest.raises(BackendError, match="fuses already"):
        Fusion(Fusion(Numpy()))


# With others


def test_it_is_one_object_also_through_a_pickle():
    assert Fusion(Numpy()) is Fusion(Numpy())
    assert pickle.loads(pickle.dumps(Fusion(Numpy()))) is Fusion(Numpy())
    assert repr(Autodiff(Fusion(Numpy()))) == "Autodiff(Fusion(Numpy()))"
    assert Fusion(Numpy()).name == "fusion<numpy>"


def test_other_decorators_go_below_and_above():
    x = [[1.0, 2.0], [3.0, 4.0]]
    for device in (
        Fusion(Counting(Numpy())),
        Counting(Fusion(Numpy())),
        Tracing(Fusion(Numpy())),
        Checked(Fusion(Numpy())),
        Fusion(Checked(Numpy())),
        Autodiff(Autodiff(Fusion(Numpy()))),
    ):
        t = Tensor.from_data(x, device)
        for found in again(lambda t=t: (t * 2.0 + 1.0).matmul(t).to_data().to_list()):
            assert found == [[18.0, 26.0], [34.0, 50.0]]


def test_arrays_that_numpy_may_not_touch(monkeypatch):
    device = Fusion(Far())
    x = Tensor.from_floats([[1.0, 2.0], [3.0, 4.0]], device)
    found = again(lambda: (x * 2.0 + x.exp().log()).matmul(x).to_data().to_list())
    np.testing.assert_allclose(found, [[[21.0, 30.0], [45.0, 66.0]]] * 4, rtol=1e-5)


def test_random_numbers_are_those_without_fusion(fused):
    def run(device):
        burnbook.seed(5)
        dropout = nn.DropoutConfig(0.5).init()
        x = Tensor.ones([4, 5], Autodiff(device)).require_grad()
        found = []
        for _ in range(4):
            y = dropout.forward(x) * 2.0
            noise = Tensor.random([4, 5], device=Autodiff(device))
            found += [np.asarray(y), np.asarray(noise)]
        return found

    np.testing.assert_array_equal(run(fused), run(fused.inner))


def test_second_derivatives(fused):
    def run(device):
        outer = Autodiff(Autodiff(device))
        x = Tensor.from_floats([0.3, 0.7], outer).require_grad()
        low = x.grad((x * x * x).sum().backward())
        return low.to_data().to_list()

    wanted = run(fused.inner)
    assert again(lambda: run(fused)) == [wanted] * 4


class Small(nn.Linear):
    pass


def trained(device, steps=6):
    burnbook.seed(1)
    model = nn.LinearConfig(6, 3).init(device)
    optimizer = AdamConfig().init()
    rng = np.random.default_rng(0)
    losses = []
    for step in range(steps):
        x = Tensor.from_numpy(rng.standard_normal((8, 6)).astype(np.float32), device)
        loss = model.forward(x).tanh().square().mean()
        grads = GradientsParams.from_grads(loss.backward(), model)
        model = optimizer.step(0.01 / (step + 1), model, grads)
        losses.append(loss)
    return [loss.into_scalar() for loss in losses], model


def test_training_gives_the_same_and_finds_its_plan():
    inner = Numpy(compiled=False)
    fused = fresh(inner)
    wanted, _ = trained(Autodiff(inner))
    found, _ = trained(Autodiff(fused))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    trained(Autodiff(fused))
    found, _ = trained(Autodiff(fused))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert fused.plans.made > 0


def test_a_step_is_one_stream():
    fused = fresh()
    device = Autodiff(fused)
    _, model = trained(device, 3)
    fused.sync()
    x = Tensor.ones([8, 6], device)
    waits = fused.waiting
    loss = model.forward(x).tanh().square().mean()
    gradients = loss.backward()
    assert gradients is not None
    assert fused.waiting > waits + 6


def test_records_models_and_devices(tmp_path, fused):
    device = Autodiff(fused)
    model = nn.LinearConfig(3, 2).init(device)
    x = Tensor.ones([4, 3], device)
    wanted = model.forward(x).to_data().to_list()
    loaded = nn.LinearConfig(3, 2).init(device).load_record(model.into_record())
    assert loaded.forward(x).to_data().to_list() == wanted
    moved = model.to_device(Numpy()).to_device(fused)
    assert moved.forward(x.inner()).to_data().to_list() == wanted
    assert copy.deepcopy(model).forward(x).to_data().to_list() == wanted
    asked = model.valid()
    assert asked.devices() == [fused]
    assert (
        again(lambda: asked.forward(x.inner()).to_data().to_list(), 6) == [wanted] * 6
    )


def test_a_model_that_is_gone_is_not_held_by_its_plans(fused):
    x = Tensor.ones([4, 3], fused)

    def asked(model):
        again(lambda: model.forward(x).to_data(), 6)
        return weakref.ref(model.weight.val().value.array)

    weight = asked(nn.LinearConfig(3, 2).init(fused))
    gc.collect()
    assert weight() is None


def test_a_model_that_changes_is_not_the_one_of_the_plan(fused):
    x = Tensor.ones([4, 3], fused)
    weight = Tensor.ones([3, 2], fused)
    for i in range(12):
        if i % 4 == 3:
            weight = weight + 1.0
        found = x.matmul(weight).to_data().to_list()
        assert found == [[3.0 * (1 + (i + 1) // 4)] * 2] * 4


def test_captures_see_the_ops(fused):
    model = nn.LinearConfig(3, 2).init(fused)
    x = Tensor.ones([4, 3], fused)
    program = capture(lambda x: model.forward(x).relu() * 2.0, x)
    assert [step.op.name for step in program.steps] == ["linear", "relu", "mul"]
    assert {value.kind for value in program.constants} == {"parameter"}
    found = np.asarray(program.compile()(x))
    np.testing.assert_allclose(found, np.asarray(model.forward(x).relu() * 2.0))
    assert "run" not in vars(fused)


def test_training_steps_are_captured(fused):
    device = Autodiff(fused)
    model, x = nn.LinearConfig(2, 1).init(device), Tensor.ones([4, 2], device)

    def loss(model, x):
        return model.forward(x).square().mean()

    training = capture_training(model, loss, AdamConfig().init(), x)
    names = [step.op.name for step in training.program.steps]
    assert names[-1] == "adam_step"
    _, first = training.step(training.start, 0.1, x)
    np.testing.assert_allclose(
        first.into_scalar(), loss(model, x).into_scalar(), rtol=1e-6
    )


# Threads


def test_a_tensor_of_another_thread_is_there(fused):
    x = Tensor.from_floats([1.0, 2.0], fused)
    y = x * 2.0 + 1.0
    found = []
    thread = threading.Thread(
        target=lambda: found.append((y * 2.0).to_data().to_list())
    )
    thread.start()
    thread.join()
    assert found == [[6.0, 10.0]]
    assert fused.waiting == 0  # the other thread has run it
    assert y.to_data().to_list() == [3.0, 5.0]


def test_a_thread_that_has_ended_leaves_its_tensors(fused):
    x = Tensor.from_floats([1.0, 2.0], fused)
    made = []
    thread = threading.Thread(target=lambda: made.append(x * 2.0 + 1.0))
    thread.start()
    thread.join()
    assert (made[0] + 1.0).to_data().to_list() == [4.0, 6.0]


def test_many_threads_share_tensors_and_plans(fused):
    shared = [Tensor.from_floats([float(i), 1.0], fused) * 2.0 for i in range(4)]
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(150):
            i, j = rng.integers(0, 4, 2)
            y = shared[i] * 3.0 + shared[j]
            if rng.random() < 0.2:
                shared[i] = shared[i] + 0.0
            if y.to_data().to_list() != [6.0 * i + 2.0 * j, 8.0]:
                wrong.append((seed, i, j))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_sync_is_a_method_of_every_backend():
    assert Numpy().sync() is None
    assert Autodiff(Numpy()).sync() is None
    assert isinstance(Numpy(), Backend)


def test_a_deferred_value_pickles_as_its_array(fused):
    value = (Tensor.from_floats([1.0], fused) + 1.0).value
    assert type(value) is Deferred
    assert pickle.loads(pickle.dumps(value)).computed().tolist() == [2.0]
    assert "is there" in repr(value)


# Loops of machine code


def numba_or_skip():
    pytest.importorskip("numba")


def loops_run(device):
    """Whether some plan has a chain as machine code, which no error took back."""
    kept = [plan for known in device.plans.known.values() for plan in known.spare]
    return any(plan.is_compiled and "chain" in plan.source for plan in kept)


def arithmetic(x, y):
    z = (x * 0.9 + y) * x - y / 2.5
    w = z.abs().sqrt().max_pair(y).min_pair(x.square()) - (-z)
    return w.relu() + z.sigmoid() * w.clamp(-1.0, 0.75)


@pytest.mark.parametrize("size", [1, 17, 300_000])
def test_loops_give_what_the_ops_give(size, monkeypatch):
    numba_or_skip()
    monkeypatch.setattr(plans, "WORTH", 0.0)
    device = fresh(Numpy())
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(size).astype(np.float32) for _ in range(2)]

    def run(on):
        x, y = [Tensor.from_numpy(array, on) for array in arrays]
        return np.asarray(arithmetic(x, y))

    wanted = run(Numpy(compiled=False))
    for found in again(lambda: run(device)):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    sources = [p.source for k in device.plans.known.values() for p in k.spare]
    assert any("chain" in source for source in sources)


def test_sums_products_and_quotients_in_loops_have_the_same_bits(monkeypatch):
    numba_or_skip()
    monkeypatch.setattr(plans, "WORTH", 0.0)
    device = fresh(Numpy())
    array = np.random.default_rng(0).standard_normal(100_003).astype(np.float32)

    def run(on):
        x = Tensor.from_numpy(array, on)
        return np.asarray(((x * 3.7 + x) / (x * x + 0.3) - x * 1.1) * x)

    wanted = run(Numpy(compiled=False))
    for found in again(lambda: run(device)):
        np.testing.assert_array_equal(found, wanted)


def test_gradients_in_loops(monkeypatch):
    numba_or_skip()
    monkeypatch.setattr(plans, "WORTH", 0.0)
    array = np.random.default_rng(0).standard_normal((30, 40)).astype(np.float32)

    def run(on):
        x = Tensor.from_numpy(array, on).require_grad()
        y = (x * 2.0 + 1.0).sigmoid() * x / (x.square() + 1.0) - x.exp()
        return np.asarray(x.grad(y.sum().backward()))

    wanted = run(Autodiff(Numpy(compiled=False)))
    assert np.isfinite(wanted).all()
    fused = fresh(Numpy(compiled=True))
    for found in again(lambda: run(Autodiff(fused)), 5):
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-6)
    assert loops_run(fused)


def test_loops_read_arrays_that_are_not_in_one_piece(monkeypatch):
    numba_or_skip()
    monkeypatch.setattr(plans, "WORTH", 0.0)
    array = np.random.default_rng(0).standard_normal((70, 80)).astype(np.float32)

    def run(on):
        x = Tensor.from_numpy(array, on)
        turned, one = x.flip([0, 1]), x.narrow(0, 3, 1).expand([70, 80])
        return np.asarray(
            (turned * 2.0 + one) * one - x.swap_dims(0, 1).reshape([70, 80])
        )

    wanted = run(Numpy(compiled=False))
    fused = fresh(Numpy(compiled=True))
    for found in again(lambda: run(fused), 5):
        np.testing.assert_array_equal(found, wanted)
    assert loops_run(fused)


def test_a_chain_that_cannot_be_compiled_runs_as_before(monkeypatch):
    numba_or_skip()
    from burnbook.program.compiler import loops

    def broken(text, signature):
        def kernel(*arrays):
            raise RuntimeError("no compiler")

        return kernel

    monkeypatch.setattr(plans, "WORTH", 0.0)
    monkeypatch.setattr(loops, "compiled", broken)
    device = fresh(Numpy())
    x = Tensor.from_floats([1.0, 2.0], device)
    found = again(lambda: ((x * 2.0 + 1.0) * x).to_data().to_list())
    assert found == [[3.0, 10.0]] * 4


def test_equal_chains_share_one_loop():
    numba_or_skip()
    from burnbook.program.compiler import loops

    text = "def chain(a0, o0):\n    for i in range(o0.size):\n        o0[i] = a0[i]\n"
    types = "void(f4[::1], f4[::1])"
    assert loops.compiled(text, types) is loops.compiled(text, types)


def test_the_learner_trains_the_guide_bit_for_bit(tmp_path, monkeypatch):
    from burnbook.data import InMemDataset, MnistItem
    from burnbook.examples.guide.model import ModelConfig
    from burnbook.examples.guide.training import TrainingConfig, train

    monkeypatch.setenv("BURNBOOK_DISPLAY", "none")
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (160, 28, 28)).astype(np.uint8)
    items = [MnistItem(image, int(rng.integers(0, 10))) for image in pixels]
    config = TrainingConfig(ModelConfig(10, 16), AdamConfig(), num_epochs=1)
    config = config.with_batch_size(32).with_num_workers(2)

    def weights(device, name):
        digits = InMemDataset(items), InMemDataset(items[:64])
        model = train(tmp_path / name, config, device, *digits)
        return [np.asarray(param.val()) for _, param in model.named_params()]

    wanted = weights(Autodiff(Numpy(compiled=False)), "plain")
    fused = fresh()
    found = weights(Autodiff(fused), "fused")
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    assert fused.plans.hits > 0
