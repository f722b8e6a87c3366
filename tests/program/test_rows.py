"""Elementwise steps in a row, as one loop of machine code."""

import functools

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.backend.compiled.runtime import cache
from burnbook.core.rng import Stream, use_stream
from burnbook.nn.loss import MseLoss, Reduction
from burnbook.optim import AdamConfig
from burnbook.program import CompiledTraining, capture, capture_training
from burnbook.program.compiler import loops, plan as plans
from burnbook.tensor import Tensor, activation

pytestmark = pytest.mark.skipif(not cache.has_numba(), reason="numba is not installed")


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    """Loops as they are before any was compiled, whatever this machine has kept."""
    monkeypatch.setattr(loops, "is_kept", lambda text, signature: False)


@functools.cache
def device():
    """A device whose rows are compiled at once."""
    return Numpy(compiled=True)


def drawn(*shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return Tensor.from_numpy(values, device())


def several(x):
    y = x * 2.0 + 1.0
    z = (y * x - 3).abs()
    return y, z, (z.sqrt() + y).clamp(-1.0, 4.0)


def with_steps_between(x):
    y = (x * 2 - 1).abs() * 0.5
    y = y.sum_dim(1) + (y + y.mean_dim(1)).sum_dim(1)
    return (y * 3.0 + 1.0) / 2.0


def with_a_view(x):
    y = x * 2.0 + 1.0
    seen = y.swap_dims(0, 1).swap_dims(0, 1)  # the same memory
    return (seen * 3.0 + y).abs() + seen


FUNCTIONS = {
    "one result": (lambda x: ((x * 2.0 + 1.0) * x - 3.0).abs(), 1),
    "several results": (several, 1),
    "two rows": (with_steps_between, 2),
    "a large whole number": (lambda x: (x * 2**70 + 1).abs() * 0.5, 1),
    "numbers of the batch": (lambda x: (x * x.dims()[0] + 1.0 / x.dims()[0]).abs(), 1),
    "activations": (lambda x: activation.relu(x * 0.5 + 0.1) * x, 1),
    "in place after a layer": (lambda x: (x.cumsum(1) * 2.0 + 1.0).abs() * 3.0, 1),
    "a view between": (lambda x: (x * 2.0 + 1.0).swap_dims(0, 1) * 3.0 + 1.0, 1),
    "a view of what a row makes": (with_a_view, 2),
    "an input twice": (lambda x: (x + x) * (x - x * 0.5), 1),
    "nothing in a row": (lambda x: (x * 2.0).sum_dim(1), 0),
}


@pytest.mark.parametrize("size", [(3, 5), (300, 400)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_give_bit_for_bit_what_their_steps_give(name, size):
    function, rows = FUNCTIONS[name]
    x = drawn(*size)
    compiled = capture(function, x).compile()
    before = np.array(x)
    wanted = function(x)
    for _ in range(5):
        found = compiled(x)
        pairs = (
            zip(found, wanted, strict=True)
            if isinstance(wanted, tuple)
            else [(found, wanted)]
        )
        for made, right in pairs:
            np.testing.assert_array_equal(np.asarray(made), np.asarray(right))
        np.testing.assert_array_equal(np.asarray(x), before)
    (kept,) = compiled._plans.values()
    assert len(kept[0].rows.found) == len(kept[0].rows._loops) == rows


def test_a_row_is_one_call():
    x = drawn(3, 5)
    compiled = capture(FUNCTIONS["one result"][0], x).compile()
    plan = compiled.plan_for(3)
    assert len(plan.calls) == 5
    plan.run([np.asarray(x)])
    assert len(plan.calls) == 1
    assert plan.steps_of == [[0, 1, 2, 3, 4]]


def test_loops_whose_machine_code_is_kept_are_used_at_once(monkeypatch):
    x, function = drawn(3, 5), FUNCTIONS["one result"][0]
    capture(function, x).compile()(x)  # which keeps it
    monkeypatch.undo()
    if not loops.machine_code.is_supported():
        pytest.skip("machine code is not kept here")
    plan = capture(function, x).compile().plan_for(3)
    assert len(plan.calls) == 1
    assert plan.rows.cost == 0
    (found,) = plan.run([np.asarray(x)])
    np.testing.assert_array_equal(found, np.asarray(function(x)))


def test_explain_tells_of_a_row():
    x = drawn(3, 5)
    _, first, *rest, _ = capture(with_steps_between, x).compile().explain(3).split("\n")
    assert first == "  1  mul [3, 5]  in place, in time one loop with the next 3"
    assert sum("in time one loop" in line for line in rest) == 1


def test_long_rows_are_several_loops():
    def by_numbers(x):
        for k in range(20):
            x = x * (1.0 + k / 100) + 0.1
        return x

    def by_arrays(x):
        y = x
        for _ in range(50):
            y = (x * y - x).abs()
        return y

    x = drawn(30, 50)
    for function, most in ((by_numbers, 23), (by_arrays, 32)):
        compiled = capture(function, x).compile()
        for _ in range(2):
            found, wanted = compiled(x), function(x)
            np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))
        (kept,) = compiled._plans.values()
        lengths = [len(row) for row in kept[0].rows.found]
        assert max(lengths) == most
        assert sum(lengths) == len(kept[0].what.steps)


def test_rows_are_compiled_once_it_pays(monkeypatch):
    monkeypatch.setattr(plans, "WORTH", 0.01)
    x = Tensor.from_numpy(np.asarray(drawn(100, 100)), Numpy())
    compiled = capture(FUNCTIONS["one result"][0], x).compile()
    plan = compiled.plan_for(100)
    if not plan.rows.found:
        pytest.skip("the kernels are not ready")
    each = plan.rows.cost
    assert 1e-6 < each < 0.01
    for _ in range(int(0.01 / each)):
        plan.run([np.asarray(x)])
    assert len(plan.calls) == 5
    plan.run([np.asarray(x)])
    plan.run([np.asarray(x)])
    assert len(plan.calls) == 1
    (found,) = plan.run([np.asarray(x)])
    wanted = FUNCTIONS["one result"][0](x)
    np.testing.assert_array_equal(found, np.asarray(wanted))


def fails(self, plan):
    raise RuntimeError("no compiler here")


def test_what_cannot_be_compiled_runs_as_it_did(monkeypatch):
    monkeypatch.setattr(plans.Rows, "compile", fails)
    x = drawn(30, 50)
    function = FUNCTIONS["one result"][0]
    compiled = capture(function, x).compile()
    for _ in range(3):
        found, wanted = compiled(x), function(x)
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


OPS = (
    *(lambda a, b: a + b, lambda a, b: a - b * 0.5, lambda a, b: a * 0.3 + 1.0),
    *(lambda a, b: (a * b).clamp(-2.0, 2.0), lambda a, b: a.abs().sqrt()),
    *(lambda a, b: activation.sigmoid(a), lambda a, b: -a, lambda a, b: a.cumsum(1)),
    lambda a, b: a.swap_dims(0, 1).swap_dims(0, 1) * 0.9 + b,
    lambda a, b: a.reshape([-1, 5, 6]).reshape([-1, 30]) - b,
)


@pytest.mark.parametrize("seed", range(20))
def test_random_rows_give_bit_for_bit_what_their_steps_give(seed):
    rng = np.random.default_rng(seed)
    picks = rng.integers(0, len(OPS), (12, 3))

    def function(x):
        found = [x, x * 0.5]
        for op, i, j in picks.tolist():
            a, b = found[i % len(found)], found[j % len(found)]
            found.append(OPS[op](a, b))
        return tuple(found[2:][-(1 + seed % 3) :])

    x = drawn(40, 30, seed=seed)
    compiled = capture(function, x).compile()
    for turn in range(3):
        x = drawn(40, 30, seed=100 + turn)
        for made, right in zip(compiled(x), function(x), strict=True):
            np.testing.assert_array_equal(np.asarray(made), np.asarray(right))


def test_training_with_rows_learns_what_steps_learn(monkeypatch):
    def trained():
        learns = Autodiff(device())
        values = np.asarray(drawn(64, 20))
        x = Tensor.from_numpy(values, learns)
        y = Tensor.from_numpy(values[:, :4].copy(), learns)
        with use_stream(Stream(3)):
            model = nn.LinearConfig(20, 4).init(learns)

        def loss(model, x, y):
            out = (model.forward(x) * 0.5 + 0.1).abs() * 2.0 - 0.3
            return MseLoss().forward(out * out + out, y, Reduction.Mean)

        training = CompiledTraining(
            capture_training(model, loss, AdamConfig().init(), x, y)
        )
        losses = [float(training.step(1e-2, x, y)) for _ in range(5)]
        (plan,) = training._plans.values()
        return losses, plan.rows

    losses, rows = trained()
    monkeypatch.setattr(plans.Rows, "compile", fails)
    wanted, others = trained()
    assert losses == wanted
    assert rows._loops
    assert not others._loops
    assert losses[-1] < losses[0]
