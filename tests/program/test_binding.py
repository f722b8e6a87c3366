"""Plans whose large inputs and outputs stay where the caller has them."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.nn.loss import MseLoss, Reduction
from burnbook.optim import SgdConfig
from burnbook.program import CompiledTraining, capture, capture_training
from burnbook.program.compiler import binding
from burnbook.tensor import Tensor, activation

DEVICE = Numpy()
ROWS, COLUMNS = 256, 300  # 307,200 bytes


@pytest.fixture(autouse=True)
def made(monkeypatch):
    """The bindings that are made, by the addresses they are for."""
    found = []
    whole = binding.DirectArrays._bound_to

    def bound_to(self, plan, addresses):
        found.append(addresses)
        return whole(self, plan, addresses)

    monkeypatch.setattr(binding.DirectArrays, "_bound_to", bound_to)
    return found


def drawn(seed=0, shape=(ROWS, COLUMNS)):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return Tensor.from_numpy(values, DEVICE)


def chain(x):
    return (x * 2.0 + 1.0).exp() * x


FUNCTIONS = {
    "chain": chain,
    "first in place": lambda x: (x * 2.0).exp().tanh(),
    "one op": lambda x: x + 1.0,
    "reshaped": lambda x: (x.reshape([-1, 3, 100]) * 2.0).swap_dims(1, 2).exp(),
    "flat at the end": lambda x: (x * x).reshape([-1, 100]),
    "transposed": lambda x: x.transpose() * 2.0,
    "the input too": lambda x: (x, x * 2.0),
    "a view of the input": lambda x: (x.reshape([-1]), x.exp()),
    "one result twice": lambda x: (y := x.exp(), y.reshape([-1]), y * 2.0),
    "part of a result": lambda x: (
        x.exp().slice([slice(None), slice(0, 9)]),
        x.exp() + x,
    ),
    "by samples": lambda x: x.sort(1).cumsum(1),
    "sums": lambda x: (x.sum_dim(1), x - x.mean_dim(1)),
    "softmax": lambda x: (x * 0.5).softmax(1).log(),
}


def values_of(found):
    one = found if isinstance(found, tuple) else (found,)
    return [np.asarray(tensor) for tensor in one]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("batch", [0, None])
def test_every_run_gives_the_same_and_touches_nothing_else(name, batch):
    function, x = FUNCTIONS[name], drawn()
    compiled = capture(function, x, batch=batch).compile()
    wanted, before = values_of(function(x)), np.array(x)
    kept = []
    for _ in range(6):
        kept.append(values_of(compiled(x)))
        np.testing.assert_array_equal(np.asarray(x), before)
    for arrays in kept:
        for array, right in zip(arrays, wanted, strict=True):
            np.testing.assert_allclose(array, right, 1e-6, 1e-6)


def test_memory_that_comes_again_is_bound_once_and_its_numbers_are_new(made):
    compiled = capture(chain, drawn()).compile()
    held = np.empty((ROWS, COLUMNS), np.float32)
    for seed in range(12):
        held[...] = np.asarray(drawn(seed))
        (found,) = compiled.run(held)
        np.testing.assert_array_equal(found, np.asarray(chain(drawn(seed))))
    assert 1 <= len(made) <= 3  # the result takes turns between two places
    assert len(set(made)) == len(made)


def test_memory_that_never_comes_again_is_copied(made):
    compiled = capture(chain, drawn()).compile()
    kept = [(x := drawn(seed), compiled(x)) for seed in range(10)]
    assert made == []
    for x, found in kept:
        np.testing.assert_array_equal(np.asarray(found), np.asarray(chain(x)))


def test_bindings_are_few_however_many_places_take_turns(made, monkeypatch):
    monkeypatch.setattr(binding, "MOST_MADE", 6)
    compiled = capture(chain, drawn()).compile()
    inputs = [drawn(seed) for seed in range(3)]
    outs = []
    for turn in range(60):
        x = inputs[turn % 3]
        outs = [*outs[-(turn % 5) :], compiled(x)]
        np.testing.assert_array_equal(np.asarray(outs[-1]), np.asarray(chain(x)))
    assert len(made) <= 6
    (plans,) = compiled._plans.values()
    assert len(plans[0]._direct._bindings) <= binding.MOST_BOUND


def test_no_plan_keeps_the_memory_of_a_caller(made):
    compiled = capture(lambda x: (x.exp() * x).sum_dim(1), drawn()).compile()
    values = np.asarray(drawn(1)).copy()
    for _ in range(3):
        compiled.run(values)
    assert len(made) == 1
    gone = weakref.ref(values)
    del values
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    "layout",
    {
        "columns first": np.asfortranarray,
        "every second": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
        "read only": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
        "off by a byte": lambda a: np.ndarray(
            a.shape, a.dtype, b"." + a.tobytes(), offset=1
        ),
    }.items(),
    ids=lambda pair: pair[0],
)
def test_inputs_may_lie_in_memory_in_any_way(layout):
    compiled = capture(chain, drawn()).compile()
    given = layout[1](np.asarray(drawn(3)))
    for _ in range(4):
        (found,) = compiled.run(given)
        np.testing.assert_array_equal(found, np.asarray(chain(drawn(3))))


def test_an_array_of_fewer_bits_is_copied_to_its_place():
    x = Tensor.from_numpy(np.arange(50_000).reshape(500, 100), DEVICE)
    compiled = capture(lambda x: x * 3 + 1, x).compile()
    small = (np.arange(50_000) % 100).astype(np.int8).reshape(500, 100)
    for given in (np.asarray(x), small, np.asarray(x), small, np.asarray(x)):
        (found,) = compiled.run(given)
        np.testing.assert_array_equal(found, given.astype(np.int64) * 3 + 1)


def test_threads_call_one_program_on_arrays_of_their_own():
    compiled = capture(chain, drawn()).compile()
    inputs = [drawn(seed) for seed in range(4)]
    wanted = [np.asarray(chain(x)) for x in inputs]

    def work(i):
        return all(
            np.array_equal(np.asarray(compiled(inputs[i])), wanted[i])
            for _ in range(40)
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_convolutions_and_linear_layers_read_a_large_batch_where_it_lies(made):
    conv = nn.Conv2dConfig([8, 16], [3, 3]).init(DEVICE)
    head = nn.LinearConfig(16 * 26 * 26, 64).init(DEVICE)
    x = drawn(5, (32, 8, 28, 28))

    def function(x):
        return head.forward(activation.gelu(conv.forward(x)).flatten(1, 3)).softmax(1)

    compiled = capture(function, x).compile()
    for _ in range(4):
        found = compiled(x)
        wanted = np.asarray(function(x))
        np.testing.assert_allclose(np.asarray(found), wanted, 1e-5, 1e-6)
    assert len(made) == 1


def test_a_training_step_learns_the_same_from_a_batch_that_stays():
    device = Autodiff(Numpy())
    model = nn.LinearConfig(COLUMNS, 4).init(device)
    x = Tensor.from_numpy(np.asarray(drawn(1)), device)
    y = Tensor.from_numpy(np.asarray(drawn(2, (ROWS, 4))), device)

    def loss(model, x, y):
        return MseLoss().forward(model.forward(x), y, Reduction.Mean)

    training = capture_training(model, loss, SgdConfig().init(), x, y)
    one, other = CompiledTraining(training), CompiledTraining(training)
    for _ in range(6):
        again = Tensor.from_numpy(np.asarray(x).copy(), device)
        assert float(one.step(0.1, x, y)) == float(other.step(0.1, again, y))
