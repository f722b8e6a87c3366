"""Compiled programs: equal to the program, whatever is asked of them, and when."""

import os
import pickle
import subprocess
import sys
import textwrap
import threading
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from burnbook import nn
from burnbook.backend import Autodiff, Counting, Numpy
from burnbook.core.errors import ArgumentError, BackendError, ShapeError
from burnbook.core.op import OPS
from burnbook.examples.guide.model import ModelConfig
from burnbook.module import Module
from burnbook.optim import SgdConfig
from burnbook.program import capture, capture_training
from burnbook.program.compiler.compiled_program import MOST_PLANS
from burnbook.program.compiler.memory import Lifetime, peak, placed
from burnbook.tensor import Int, Tensor, apply
from tests.support.far_arrays import Far

pytestmark = pytest.mark.usefixtures("every_kernel")
PLAIN = Numpy(compiled=False)
DEVICE = Numpy()


class Held(Module):
    """A layer, and dropout behind it."""

    layer: nn.Linear
    drop: nn.Dropout


def drawn(*shape, device=DEVICE, seed=0):
    array = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return Tensor.from_numpy(array, device)


def guide(device=DEVICE):
    device.seed(1)
    return ModelConfig(10, 32).init(device)


def close(one, other):
    np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("device", [DEVICE, PLAIN], ids=["compiled", "plain"])
@pytest.mark.parametrize("size", [1, 2, 3, 70])
def test_the_guides_network_gives_what_it_gives_uncaptured(device, size):
    model, x = guide(device), drawn(size, 28, 28, device=device)
    close(capture(model, x).compile()(x), model.forward(x))


class Wide(Module):
    """Two convolutions with many channels, one of them with a pool behind it."""

    first: nn.Conv2d
    second: nn.Conv2d
    pool: nn.MaxPool2d

    def forward(self, x):
        x = self.pool.forward(self.first.forward(x).relu())
        return self.second.forward(x).sigmoid()


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_few_images_with_many_channels_give_what_they_give_uncaptured(size):
    model = Wide(
        nn.Conv2dConfig([20, 70], [3, 3]).init(DEVICE),
        nn.Conv2dConfig([70, 40], [3, 3]).init(DEVICE),
        nn.MaxPool2dConfig([2, 2]).init(),
    )
    x = drawn(size, 20, 14, 15)
    compiled = capture(model, x).compile()
    for _ in range(3):
        close(compiled(x), model.forward(x))


def test_chains_are_fused():
    compiled = capture(guide(), drawn(2, 28, 28)).compile()
    chains = [getattr(step.op, "chain", None) for step in compiled.lowered.steps]
    assert chains == [
        None,
        None,
        ("conv2d", "relu", "adaptive_avg_pool2d"),
        None,
        ("linear", "relu"),
        None,
    ]


def test_results_are_not_touched_by_later_calls():
    model = guide()
    compiled = capture(model, drawn(2, 28, 28)).compile()
    first = compiled(drawn(2, 28, 28, seed=1))
    before = np.array(first)
    compiled(drawn(2, 28, 28, seed=2))
    np.testing.assert_array_equal(np.asarray(first), before)


def test_a_result_that_is_an_input_is_an_array_of_its_own():
    program = capture(lambda x: (x, x.reshape([3, -1]), x + 1.0), drawn(2, 3))
    x = drawn(2, 3)
    compiled = program.compile()
    same, view, more = compiled(x)
    compiled(drawn(2, 3, seed=5))
    np.testing.assert_array_equal(np.asarray(same), np.asarray(x))
    np.testing.assert_array_equal(np.asarray(view), np.asarray(x).reshape(3, -1))
    np.testing.assert_array_equal(np.asarray(more), np.asarray(x) + 1)


def test_inputs_stay_as_they_were():
    program = capture(lambda x: (x + 1.0).relu() * 2.0, drawn(4, 5))
    x = drawn(4, 5)
    before = np.array(x)
    program.compile()(x)
    np.testing.assert_array_equal(np.asarray(x), before)


def test_repeated_runs_are_equal_bit_for_bit():
    x = drawn(33, 28, 28)
    compiled = capture(guide(), x).compile()
    first = np.asarray(compiled(x))
    for _ in range(5):
        np.testing.assert_array_equal(np.asarray(compiled(x)), first)


def test_inputs_need_not_be_in_one_piece():
    program = capture(lambda x: x.exp().sum_dim(1), drawn(6, 4))
    x = np.asarray(drawn(4, 12)).T[::2]
    assert not x.flags.c_contiguous
    np.testing.assert_array_equal(program.compile().run(x)[0], program.run(x)[0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_go_where_they_go_uncaptured(bad):
    model = guide()
    x = np.array(drawn(3, 28, 28))
    x[1, 3, 4] = bad
    x = Tensor.from_numpy(x, DEVICE)
    found, wanted = (np.asarray(f(x)) for f in (capture(model, x).compile(), model))
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    np.testing.assert_allclose(found[::2], wanted[::2], rtol=1e-5, atol=1e-6)


def test_no_warning_for_nan():
    program = capture(lambda x: x.log() / x, drawn(4, 5))
    with np.errstate(all="raise"):
        found = program.compile().run(np.zeros((2, 5), np.float32))
    assert np.isinf(found[0]).all()


def test_threads_may_call_at_once():
    model = guide()
    compiled = capture(model, drawn(2, 28, 28)).compile()
    inputs = [drawn(1 + i % 5, 28, 28, seed=i) for i in range(24)]
    wanted = [np.asarray(compiled(x)) for x in inputs]
    failed = []

    def work(first):
        for i in range(first, len(inputs), 4):
            for _ in range(10):
                if not np.array_equal(np.asarray(compiled(inputs[i])), wanted[i]):
                    failed.append(i)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failed == []


def test_plans_of_few_batch_sizes_are_kept():
    compiled = capture(lambda x: x + 1.0, drawn(2, 3)).compile()
    for size in range(1, 40):
        compiled.run(np.zeros((size, 3), np.float32))
    assert len(compiled._plans) <= 8


def test_an_empty_batch_is_computed():
    program = capture(guide(), drawn(2, 28, 28))
    assert program.compile().run(np.zeros((0, 28, 28), np.float32))[0].shape == (0, 10)


def test_another_backend_runs_the_fused_steps():
    program = capture(guide(), drawn(2, 28, 28))
    x = drawn(2, 28, 28)
    compiled = program.compile(PLAIN)
    close(compiled.run(np.asarray(x))[0], program(x))


def test_a_wrong_shape_is_refused():
    compiled = capture(lambda x: x + 1.0, drawn(2, 3)).compile()
    with pytest.raises(ShapeError, match="another shape"):
        compiled(drawn(2, 4))


def test_a_wrong_kind_is_refused():
    compiled = capture(lambda x: x + 1.0, drawn(2, 3)).compile()
    with pytest.raises(ArgumentError, match="x is Int"):
        compiled(Tensor.zeros([2, 3], DEVICE, Int))


def test_random_numbers_are_new_in_each_run_and_follow_the_keys():
    dropout = nn.DropoutConfig(0.5).init()
    device = DEVICE.autodiff()
    x = Tensor.ones([8, 50], device)
    program = capture(lambda x: dropout.forward(x), x, keys=True)
    compiled = program.compile()
    array = np.ones((8, 50), np.float32)
    first, second = (compiled.run(array, keys=[(1, key)])[0] for key in (1, 2))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, program.run(array, keys=[(1, 1)])[0])


def test_constants_are_computed_once():
    w = drawn(3, 4)
    program = capture(
        lambda x: x @ (w.exp() * 2.0).transpose().transpose(), drawn(2, 3)
    )
    lowered = program.compile().lowered
    assert [step.op.name for step in lowered.steps] == ["matmul"]
    assert lowered.folded == len(program.steps) - 1


def test_steps_that_nobody_needs_are_left_out():
    def function(x):
        x.exp().sum()
        return x + 1.0

    lowered = capture(function, drawn(2, 3)).compile().lowered
    assert [step.op.name for step in lowered.steps] == ["add"]


def test_a_plan_takes_less_memory_than_values_that_are_all_kept():
    def function(x):
        for _ in range(20):
            x = (x * 1.5).exp().tanh()
        return x

    program = capture(function, drawn(4, 100))
    plan = program.compile().plan_for(50)
    one = 50 * 100 * 4
    assert plan.bytes <= 2 * one
    assert plan.bytes <= plan.eager_bytes


def test_views_take_no_memory_and_no_call():
    program = capture(
        lambda x: x.reshape([-1, 2, 6]).swap_dims(1, 2).sum_dim(1), drawn(4, 12)
    )
    plan = program.compile().plan_for(4)
    assert len(plan.views) == 2
    assert len(plan.calls) == len(program.steps) - 2


def test_what_a_view_shows_lives_as_long_as_the_view():
    def function(x):
        y = x.exp()
        view = y.swap_dims(0, 1)
        z = (x * 2.0).exp()
        z = (z + 1.0).log() + (z * 3.0)
        return z.sum_dim(0), view + 1.0

    program = capture(function, drawn(4, 5), batch=None)
    x = np.asarray(drawn(4, 5))
    for found, wanted in zip(program.compile().run(x), program.run(x), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_explain_says_what_is_fused_and_what_memory_is_planned():
    text = capture(guide(PLAIN), drawn(2, 28, 28, device=PLAIN)).compile().explain(2)
    assert "linear → relu [2, 32]" in text
    assert "reshape [2, 1, 28, 28]  view" in text
    assert text.splitlines()[-1].startswith("memory: ")


@pytest.mark.parametrize("n", [-1, 2.5, "8", None])
def test_what_is_no_batch_size_is_not_explained(n):
    compiled = capture(guide(), drawn(2, 28, 28)).compile()
    with pytest.raises(ArgumentError, match="is no batch size"):
        compiled.explain(n)


def test_a_pickled_copy_gives_the_same():
    compiled, x = capture(guide(), drawn(2, 28, 28)).compile(), drawn(3, 28, 28)
    again = pickle.loads(pickle.dumps(compiled))
    assert again.explain(3) == compiled.explain(3)
    np.testing.assert_array_equal(np.asarray(again(x)), np.asarray(compiled(x)))


def test_steps_of_a_chain_that_no_kernel_serves_run_by_themselves():
    text = capture(guide(PLAIN), drawn(2, 28, 28, device=PLAIN)).compile().explain(2)
    assert "conv2d [2, 16, 24, 24]" in text
    assert "relu [2, 16, 24, 24]  in place" in text


@pytest.mark.skipif(find_spec("numba") is None, reason="kernels need numba")
def test_a_chain_that_a_kernel_serves_is_one_step():
    text = capture(guide(), drawn(2, 28, 28)).compile().explain(2)
    assert "conv2d → relu → adaptive_avg_pool2d [2, 16, 8, 8]" in text


def test_a_decorated_device_runs_the_plan_of_the_plain_one_below():
    program = capture(lambda x: x.exp() + 1.0, drawn(2, 3))
    compiled = program.compile(Counting(DEVICE))
    assert compiled.backend is DEVICE


# Random programs

UNARY = ["exp", "relu", "tanh", "sigmoid", "abs", "neg", "gelu", "silu"]
BINARY = ["add", "sub", "mul"]


@st.composite
def recipes(draw):
    """How to make a function: steps that take earlier values by their number."""
    steps = []
    for count in range(2, draw(st.integers(3, 14))):
        kind = draw(st.sampled_from(["unary", "binary", "view", "mean", "number"]))
        one, other = (draw(st.integers(0, count - 1)) for _ in "xy")
        name = draw(st.sampled_from(UNARY if kind == "unary" else BINARY))
        steps.append((kind, name, one, other))
    outputs = draw(st.sets(st.integers(0, len(steps) + 1), min_size=1, max_size=3))
    return steps, sorted(outputs)


def made_by(recipe):
    steps, outputs = recipe

    def function(x, y):
        values = [x, y]
        for kind, name, one, other in steps:
            a, b = values[one], values[other]
            if kind == "unary":
                values.append(apply(OPS[name], a.clamp(-4.0, 4.0)))
            elif kind == "binary":
                values.append(getattr(a, name)(b))
            elif kind == "view":
                values.append(a.swap_dims(1, 2).reshape([0, 3, 4]))
            elif kind == "mean":
                values.append(a - a.mean_dim(2))
            else:
                values.append(a * 0.5 + 1.0)
        return [values[i] for i in outputs]

    return function


@settings(max_examples=60)
@given(recipes(), st.sampled_from([1, 2, 5, 300]))
def test_random_programs_give_what_they_give_uncompiled(recipe, size):
    x, y = drawn(2, 3, 4), drawn(2, 3, 4, seed=1)
    program = capture(made_by(recipe), x, y)
    compiled = program.compile()
    arrays = [np.asarray(drawn(size, 3, 4, seed=seed)) for seed in (2, 3)]
    for _ in range(2):
        pairs = zip(compiled.run(*arrays), program.run(*arrays), strict=True)
        for found, wanted in pairs:
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


# Memory

LIVES = st.lists(
    st.tuples(st.integers(1, 500), st.integers(0, 9), st.integers(0, 9)), max_size=30
)


@given(LIVES)
def test_places_that_are_needed_at_the_same_time_do_not_overlap(lives):
    given_ = [Lifetime(size, min(a, b), max(a, b)) for size, a, b in lives]
    starts, end = placed(given_)
    for i, one in enumerate(given_):
        assert starts[i] % 64 == 0
        assert starts[i] + one.size <= end
        for j, other in enumerate(given_[:i]):
            if one.first <= other.last and other.first <= one.last:
                apart = starts[i] >= starts[j] + other.size
                assert apart or starts[j] >= starts[i] + one.size


@given(LIVES)
def test_no_plan_is_smaller_than_the_peak(lives):
    given_ = [Lifetime(size, min(a, b), max(a, b)) for size, a, b in lives]
    assert placed(given_)[1] >= peak(given_)


def test_a_profile_sets_every_call_beside_its_steps():
    model, x = guide(PLAIN), drawn(4, 28, 28, device=PLAIN)
    program = capture(model, x)
    found = program.compile().profile(x, rounds=2)
    assert [(call.what, call.ops) for call in found.calls] == [
        ("conv2d", 1),
        ("conv2d", 1),
        ("relu", 1),
        ("adaptive_avg_pool2d", 1),
        ("linear → relu", 2),
        ("linear", 1),
        ("views, and steps that left", 2),
    ]
    assert sum(call.ops for call in found.calls) == len(program.steps)
    assert all(call.one_by_one > 0 for call in found.calls)
    assert [call.planned > 0 for call in found.calls] == [True] * 6 + [False]
    assert found.calls[3].shape == (4, 16, 8, 8)
    assert found.planned > sum(call.planned for call in found.calls) > 0


def test_a_profile_is_a_table_with_the_whole_run_last():
    x = drawn(3, 2)
    shown = str(capture(lambda x: (x * 2.0).exp(), x).compile().profile(x, rounds=1))
    lines = shown.splitlines()
    assert lines[0].split() == [
        *("calls", "of", "the", "plan", "result", "steps"),
        *("one", "by", "one", "planned", "how"),
    ]
    assert lines[4].startswith("a whole run")
    assert "the least of 1 runs, n = 3" in lines
    assert "memory: 48 B one by one, 64 B planned" in lines


def test_what_is_folded_takes_no_call():
    w = drawn(3, 3, seed=2)
    program = capture(lambda x: x @ w.exp(), drawn(2, 3))
    found = program.compile().profile(drawn(2, 3), rounds=1)
    assert [(c.what, c.ops) for c in found.calls] == [
        ("matmul", 1),
        ("views, and steps that left", 1),
    ]


def test_another_backend_has_no_profile():
    compiled = capture(lambda x: x.exp(), drawn(2, 3)).compile(Far())
    with pytest.raises(BackendError, match="nothing can be timed"):
        compiled.profile(drawn(2, 3))


def test_a_program_is_compiled_only_for_the_elements_it_was_captured_with():
    program = capture(lambda x: x + 0.1, Tensor.ones([3], DEVICE))
    with pytest.raises(BackendError, match=r"captured with f32, and .* with f64"):
        program.compile(Numpy("f64"))
    there = Numpy("f64")
    x = Tensor.ones([3], there)
    made = capture(lambda x: x + 0.1, x).compile()(x)
    assert np.asarray(made).dtype == np.float64
    np.testing.assert_array_equal(np.asarray(made), np.asarray(x + 0.1))


def test_tensors_with_other_elements_are_refused():
    compiled = capture(lambda x: x + 0.1, Tensor.ones([3], DEVICE)).compile()
    with pytest.raises(BackendError, match="computes with f32, and f64 came"):
        compiled(Tensor.ones([3], Numpy("f64")))


@pytest.mark.parametrize("is_compiled", [False, True])
def test_an_array_in_place_of_a_tensor_is_named(is_compiled):
    program = capture(lambda x: x + 0.1, Tensor.ones([3], DEVICE))
    call = program.compile() if is_compiled else program
    with pytest.raises(ArgumentError, match="a NumPy array came") as error:
        call(np.ones(3, np.float32))
    assert "Tensor.from_numpy(array, device)" in str(error.value)


def test_results_of_an_empty_batch_share_no_memory_with_the_model():
    layer = nn.LinearConfig(3, 2).init(DEVICE)
    before = np.array(layer.weight.val().value)
    compiled = capture(
        lambda x: (
            layer.weight.val().transpose(),
            x.reshape([-1, 3]),
            layer.forward(x),
        ),
        drawn(2, 3),
    ).compile()
    for array in compiled.run(np.ones((0, 3), np.float32)):
        array[...] = 7
    np.testing.assert_array_equal(layer.weight.val().value, before)


def test_a_tensor_that_wants_a_gradient_is_refused():
    device = Autodiff(DEVICE)
    compiled = capture(lambda x: x * 2.0, drawn(2, 3)).compile()
    x = Tensor.ones([2, 3], device)
    close(compiled(x), np.full((2, 3), 2.0))
    with pytest.raises(ArgumentError, match="remembers no gradients"):
        compiled(x.require_grad())


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize("keys", [[], [(1, 2), (3, 4)]])
def test_fewer_or_more_keys_than_draws_are_told(is_compiled, keys):
    model = nn.DropoutConfig(0.5).init()
    program = capture_training(
        Held(nn.LinearConfig(3, 2).init(Autodiff(DEVICE)), model),
        lambda model, x: model.drop.forward(model.layer.forward(x)).mean(),
        SgdConfig().init(),
        Tensor.ones([2, 3], Autodiff(DEVICE)),
    ).program
    found = program.compile() if is_compiled else program
    arrays = [np.ones(v.shape_at(2), np.float32) for v in program.inputs]
    with pytest.raises(ArgumentError, match="draws with 1 keys"):
        found.run(*arrays, keys=keys, numbers={"lr": 0.1})


def test_what_is_no_array_is_told():
    compiled = capture(lambda x: x * 2.0, drawn(2, 3)).compile()
    with pytest.raises(ArgumentError, match="list is no array"):
        compiled.run([[1.0, 2.0, 3.0]])
    with pytest.raises(BackendError, match="it computes with f32, and f64 came"):
        compiled.run(np.ones((1, 3)))


def test_no_rounds_measure_nothing():
    compiled = capture(lambda x: x * 2.0, drawn(2, 3)).compile()
    with pytest.raises(ArgumentError, match="0 rounds measure nothing"):
        compiled.profile(drawn(2, 3), rounds=0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_process_runs_a_program_that_threads_are_using():
    script = textwrap.dedent("""
        import os, signal, threading
        import numpy as np
        from burnbook.program import capture
        from burnbook.tensor import Tensor

        x = np.ones((1, 2), np.float32)
        compiled = capture(lambda x: x * 2.0, Tensor.ones([3, 2])).compile()

        def work():
            while True:
                compiled.run(x)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(8):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                compiled.run(x)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        os._exit(0)
    """)
    done = subprocess.run([sys.executable, "-c", script], timeout=200, check=False)
    assert done.returncode == 0


def test_zeros_of_other_signs_are_other_arguments():
    program = capture(lambda x, by: x / by, drawn(2, 3), 0.0)
    with pytest.raises(ArgumentError, match="by is another value"):
        program(drawn(2, 3), -0.0)


def test_a_plan_runs_again_for_its_batch_size():
    compiled = capture(lambda x: x * 2.0, drawn(3, 4)).compile()
    compiled(drawn(3, 4))
    (plans,) = compiled._plans.values()
    (first,) = plans
    compiled(drawn(3, 4))
    assert plans == [first]


def test_plans_that_were_not_used_for_longest_are_given_up():
    compiled = capture(lambda x: x * 2.0, drawn(3, 4)).compile()
    for size in range(1, MOST_PLANS + 1):
        compiled(drawn(size, 4))
    compiled(drawn(1, 4))
    compiled(drawn(50, 4))
    sizes = [shape[0] for (shape,) in compiled._plans]
    assert sizes == [*range(3, MOST_PLANS + 1), 1, 50]


def test_large_results_lie_apart_from_the_plan_and_from_each_other():
    compiled = capture(lambda x: (x * 2.0).exp(), drawn(3, 40_000)).compile()
    x, y = drawn(3, 40_000), drawn(3, 40_000, seed=1)
    first = compiled(x)
    kept = np.array(first)
    compiled(y)
    np.testing.assert_array_equal(np.asarray(first), kept)
    np.testing.assert_allclose(kept, np.exp(np.asarray(x) * 2), 1e-6)
