"""Kernels of single elements and of pairs: equal to the plain code, whatever comes.

Every op of the five families is found in its list, so a new kernel is tested by itself.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from burnbook import ops
from burnbook.backend import Autodiff, Numpy
from burnbook.backend.compiled.families import FAMILIES
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.core.op import BackwardOp, split_sample
from burnbook.tensor import Tensor, activation, apply
from tests.support.kernel_checks import normal

SPECIAL = np.array(
    [
        *(np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1e-30, 0.5, -0.5, 1, -1),
        *(3, -7, 20, -20, 87, -87, 88, 89, 100, -100, 1e5, 2.5e9, 1e38, -1e38, 3.4e38),
    ],
    np.float32,
)
EXACT = {"fmod", "remainder", "add", "sub", "mul", "div", "max_pair", "min_pair"}
ELEMENTWISE = ("activation", "binary", "binary_gradients", "threaded_ufuncs")
LISTED = [op for family in ELEMENTWISE for op in FAMILIES[family]]
FORWARD = [op for op in LISTED if not isinstance(op, BackwardOp)]
BACK = [op for op in LISTED if isinstance(op, BackwardOp)]


def kinds_of(op):
    """The element types that an op has samples of."""
    given, _ = split_sample(op.samples[0])
    if "I" in op.row.split(">")[0] and op.name.startswith("bit"):
        return ["int64"]
    return ["bool"] if given[0][0] == "truths" else ["float32"]


def values(op, *shape, seed=0):
    """Ordinary values that an op takes: small whole numbers for bits, truths …"""
    (kind,) = kinds_of(op)
    rng = np.random.default_rng(seed)
    if kind == "int64":
        return rng.integers(-3, 70, shape)
    if kind == "bool":
        return rng.random(shape) < 0.5
    low, high = {"acosh": (1.1, 9), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9)}.get(
        op.name, (-0.9, 0.9) if op.name == "atanh" else (-6, 6)
    )
    return rng.uniform(low, high, shape).astype(np.float32)


def attrs_of(op):
    return split_sample(op.samples[0])[1]


def same(op, found, expected):
    """The same type and shape, and values: exactly, or to a few units."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if op.name.split(".")[0] in EXACT or found.dtype != np.float32:
        assert np.array_equal(found, expected, equal_nan=found.dtype == np.float32)
    else:
        assert np.allclose(found, expected, rtol=2e-6, atol=2e-6, equal_nan=True)


def forward(kernels, op, *inputs, serves=True):
    """Run kernel and plain code; the kernel serves or leaves it to the plain code."""
    with np.errstate(all="ignore"):
        found = kernels[op](*inputs, **attrs_of(op))
        expected = op.forward(np, *inputs, **attrs_of(op))
    if found is None:
        assert not serves, f"{op.name} serves no {[np.shape(v) for v in inputs]}"
        return
    same(op, found, expected)


@pytest.mark.parametrize("op", FORWARD, ids=lambda o: o.name)
@pytest.mark.parametrize("shape", [(1,), (33, 7), (3, 5, 40, 41), (300_001,), (0, 4)])
def test_an_op_of_each_element(kernels, op, shape):
    inputs = [values(op, *shape, seed=s) for s in range(len(op.inputs))]
    few = op.name in ("add", "sub", "mul", "div") and inputs[0].size < 1 << 17
    forward(kernels, op, *inputs, serves=not few)


@pytest.mark.parametrize("op", FORWARD, ids=lambda o: o.name)
def test_special_values(kernels, op):
    if kinds_of(op) != ["float32"]:
        pytest.skip("whole numbers have none")
    lists = [SPECIAL] * len(op.inputs)
    inputs = [np.ascontiguousarray(a.reshape(-1)) for a in np.meshgrid(*lists)]
    few = op.name in ("add", "sub", "mul", "div")
    forward(kernels, op, *inputs, serves=not few)


PATTERNS = [
    # x, y: rows, columns, blocks and single numbers that stretch
    *[((300, 256), (1, 256)), ((300, 256), (300, 1)), ((1, 256), (300, 256))],
    *[((300, 1), (300, 256)), ((300, 1), (1, 256)), ((300, 256), (1, 1))],
    *[((1, 1), (300, 256)), ((5, 6, 40, 30), (5, 6, 1, 1)), ((4, 1, 1), (4, 60, 1))],
    *[((4, 60, 1), (4, 1, 1)), ((4, 1, 1), (1, 60, 30)), ((200, 1, 3), (200, 40, 3))],
    *[((7, 1, 30), (1, 40, 30)), ((2000, 3), (2000, 1)), ((300_001,), (1,))],
]
PAIRS = [op for op in FORWARD if len(op.inputs) == 2]


@pytest.mark.parametrize("op", PAIRS, ids=lambda o: o.name)
@pytest.mark.parametrize(("x", "y"), PATTERNS, ids=str)
def test_what_stretches(kernels, op, x, y):
    """Kernels may leave odd patterns to the plain code, but must not be wrong."""
    forward(kernels, op, values(op, *x), values(op, *y, seed=1), serves=False)


@pytest.mark.parametrize("name", ["mul", "div", "max_pair", "hypot", "remainder"])
@pytest.mark.parametrize(("x", "y"), PATTERNS[:5], ids=str)
def test_rows_and_columns_are_served(kernels, name, x, y):
    op = getattr(ops, name)
    forward(kernels, op, values(op, *x), values(op, *y, seed=1))


@pytest.mark.parametrize("op", PAIRS, ids=lambda o: o.name)
def test_a_number_on_either_side(kernels, op):
    x = values(op, 300, 1000)
    if x.dtype == bool:
        pytest.skip("truths are not lifted")
    forward(kernels, op, x, 3)
    forward(kernels, op, 2, x)


@pytest.mark.parametrize("back", BACK, ids=lambda o: o.name)
@pytest.mark.parametrize("shape", [(33, 7), (300_001,)])
def test_a_gradient(kernels, back, shape):
    op = back.source
    inputs = [values(op, *shape, seed=s) for s in range(len(op.inputs))]
    gradient(kernels, back, normal(*shape, seed=5), inputs)


@pytest.mark.parametrize("back", BACK, ids=lambda o: o.name)
def test_a_gradient_of_special_values(kernels, back):
    lists = [SPECIAL] * len(back.source.inputs)
    inputs = [np.ascontiguousarray(a.reshape(-1)) for a in np.meshgrid(*lists)]
    gradient(kernels, back, normal(inputs[0].size), inputs)


@pytest.mark.parametrize("back", BACK, ids=lambda o: o.name)
def test_a_gradient_that_is_one_number_seen_often(kernels, back):
    op = back.source
    inputs = [values(op, 40, 50, seed=s) for s in range(len(op.inputs))]
    g = np.broadcast_to(np.float32(1.5), (40, 50))
    gradient(kernels, back, g, inputs)


@pytest.mark.parametrize(
    "back", [b for b in BACK if len(b.source.inputs) == 2], ids=lambda o: o.name
)
@pytest.mark.parametrize(("x", "y"), PATTERNS[:8], ids=str)
def test_the_gradient_of_what_stretches(kernels, back, x, y):
    inputs = [values(back.source, *x), values(back.source, *y, seed=1)]
    gradient(kernels, back, normal(*np.broadcast_shapes(x, y), seed=5), inputs)


def gradient(kernels, back, g, inputs):
    """The kernel of a gradient gives what the rules give, for each choice of inputs."""
    op = back.source
    attrs = attrs_of(op)
    with np.errstate(all="ignore"):
        out = op.forward(np, *inputs, **attrs)
        kept = op.keep(tuple(inputs), out)
        choices = [(True,)]
        if len(inputs) == 2:
            choices = [(True, True), (True, False), (False, True)]
        for needs in choices:
            found = kernels[back](g, *kept, needs=needs, **attrs)
            expected = back.forward(np, g, *kept, needs=needs, **attrs)
            assert found is not None, "the kernel's guard does not fit"
            for a, b, need in zip(found, expected, needs, strict=True):
                if need:
                    same(back, np.asarray(a), np.broadcast_to(b, a.shape))


@pytest.mark.parametrize("family", ["activation", "binary"])
def test_other_types_and_layouts_run_plain(kernels, family):
    x = normal(20, 30)
    locked = x.copy()
    locked.flags.writeable = False
    for op in FAMILIES[family]:
        if op in BACK or kinds_of(op) != ["float32"]:
            continue
        for other in (x.astype(np.float64), np.asfortranarray(x), locked):
            inputs = [other] * len(op.inputs)
            assert kernels[op](*inputs, **attrs_of(op)) is None


def test_numbers_that_no_float_holds_make_no_noise_in_any_thread(kernels):
    x = np.full(1 << 20, 3e38, np.float32)
    for op in (ops.square, ops.exp, ops.log, ops.sqrt, ops.recip):
        with np.errstate(all="ignore"):
            forward(kernels, op, -x)


def test_results_share_no_memory_with_inputs_or_each_other(kernels):
    x, y = normal(400, 500), normal(400, 500, seed=1)
    first = kernels[ops.mul](x, y[:1].copy())
    kept = first.copy()
    second = kernels[ops.mul](y, x[:1].copy())
    assert not np.shares_memory(first, second)
    assert np.array_equal(first, kept)


def test_many_threads_at_once_get_what_one_gets(kernels):
    def work():
        x = Tensor.from_numpy(normal(300, 400), Autodiff(Numpy())).require_grad()
        row = Tensor.from_numpy(normal(1, 400, seed=1), x.device())
        out = (apply(ops.gelu, x) * row).tanh().max_pair(x / 3).exp()
        return np.asarray(x.grad(out.backward()))

    expected = work()
    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(work) for _ in range(4)]
    assert all(np.array_equal(expected, other.result()) for other in found)


def test_a_number_divided_by_a_tensor(kernels):
    x = Tensor.from_numpy(normal(400, 400) + 9, Numpy())
    assert np.array_equal(np.asarray(1 / x), 1 / np.asarray(x))


@pytest.mark.parametrize(
    ("call", "dtype", "few", "many"),
    [
        (lambda x: x + x, "f4", (500, 1000), (1100, 500)),
        (lambda x: x + x, "i8", (250, 1000), None),
        (lambda x: x * 2.0, "f4", (500, 1000), None),
        (lambda x: x + x[:1], "f4", (500, 1000), (1100, 500)),
        (lambda x: x.exp(), "f4", (500, 1000), (1100, 500)),
        (lambda x: x.bitwise_and(x), "i8", (250, 1000), (550, 500)),
        (lambda x: x.greater(x), "f4", (500, 1000), (1100, 500)),
        (lambda x: activation.relu(x), "f4", (500, 1000), (1100, 500)),
        (lambda x: activation.mish(x), "f4", (250, 1000), (300, 1000)),
        (lambda x: x.fmod(x), "f4", (250, 1000), (300, 1000)),
        (lambda x: x.asinh(), "f4", (250, 1000), (300, 1000)),
    ],
)
def test_threads_share_what_takes_one_of_them_long(monkeypatch, call, dtype, few, many):
    shared, run = [], threads.run

    def noted(*given):
        shared.append(given)
        run(*given)

    monkeypatch.setattr(threads, "run", noted)
    device = Numpy(float="f64") if dtype == "f8" else Numpy()
    for shape, wanted in ((few, False), (many, True)):
        if shape is not None:
            shared.clear()
            call(Tensor.from_numpy(np.ones(shape, dtype), device))
            assert bool(shared) is wanted
