"""What inference kernels give is what the ops give, for shapes that are bound apart."""

import numpy as np
import pytest

from burnbook import nn, ops
from burnbook.backend import Numpy
from burnbook.backend.compiled import usable
from burnbook.program import capture
from burnbook.tensor import Tensor
from burnbook.tensor.methods import apply


def drawn(*shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return Tensor.from_numpy(values, Numpy())


def with_holes(*shape):
    """Values among which are NaN and both infinities."""
    values = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    flat = values.reshape(-1)
    flat[::17], flat[1::29], flat[2::31] = np.nan, np.inf, -np.inf
    return Tensor.from_numpy(values, Numpy())


def hows(compiled):
    """How the calls of the only plan are computed."""
    (kept,) = compiled._plans.values()
    return [bound.how for bound in kept[0].bounds.values()]


def check(function, *inputs, near=0.0):
    """A program gives what its function gives, three times; how its calls run."""
    compiled = capture(function, *inputs, batch=None).compile()
    wanted = function(*inputs)
    for _ in range(3):
        found = compiled(*inputs)
        assert found.dims() == wanted.dims()
        ours, theirs = np.asarray(found), np.asarray(wanted)
        if near:
            np.testing.assert_allclose(ours, theirs, rtol=near, atol=near)
        else:
            np.testing.assert_array_equal(ours, theirs)
    return hows(compiled)


def places(*numbers):
    return Tensor.from_ints(list(numbers), Numpy())


SMALL = {
    "lower": lambda x: x.lower(x.flip([1])).int().float(),
    "greater_equal": lambda x: x.greater_equal(x.flip([1])).int().float(),
    "equal": lambda x: x.equal(x).int().float(),
    "is_nan": lambda x: x.is_nan().int().float(),
    "square": lambda x: x.square(),
    "square of a view": lambda x: x.swap_dims(0, 1).square(),
    "mask_where": lambda x: x.mask_where(x.lower(x.flip([0])), x * 2.0),
    "reshape of a view": lambda x: x.swap_dims(0, 1).reshape([-1]),
    "cat": lambda x: Tensor.cat([x, x.swap_dims(0, 1).swap_dims(0, 1), x * 2.0], 1),
    "select in a row": lambda x: x.select(1, places(1, 2, 3)),
    "select": lambda x: x.select(1, places(3, 0, 3)),
    "mean_dim": lambda x: x.mean_dim(1) + x.mean_dim(0),
    "sum_dim": lambda x: x.sum_dim(1) + x.sum_dim(0),
    "max_dim": lambda x: x.max_dim(1) + x.min_dim(0),
    "max_pair": lambda x: x.max_pair(x.flip([1])).min_pair(x * 2.0),
    "bool_not": lambda x: x.mask_where(x.lower(x.flip([0])).bool_not(), x * 2.0),
    "bool_and": lambda x: x.mask_where(x.lower(0.5) & x.greater(-0.5), x * 2.0),
    "cast": lambda x: x.lower(x.flip([0])).float(),
}


@pytest.mark.parametrize("shape", [(4, 6), (1, 5), (7, 4)])
@pytest.mark.parametrize("name", SMALL)
def test_small_steps_are_bound_and_equal(name, shape):
    assert "op" not in check(lambda x: SMALL[name](x + 0.0), drawn(*shape)) or (
        name in ("lower", "greater_equal", "equal", "is_nan", "mask_where")
    )
    check(lambda x: SMALL[name](x + 0.0), with_holes(*shape))


@pytest.mark.parametrize("widths", [((0, 0), (1, 2)), ((2, 0), (0, 3)), ((1, 1),) * 2])
@pytest.mark.parametrize("value", [0.0, -1.5])
def test_padding_is_written_anew_in_each_run(widths, value):
    def padded(x):
        return apply(ops.pad, x * 1.0, widths=widths, value=value) * 2.0

    check(padded, drawn(3, 4))


POOLS = [
    ((2, 2), (2, 2), (0, 0), (1, 1)),
    ((3, 3), (2, 2), (1, 1), (1, 1)),
    ((3, 2), (1, 2), (1, 0), (1, 1)),
    ((2, 3), (1, 1), (0, 1), (2, 2)),
    ((1, 1), (2, 2), (0, 0), (1, 1)),
]


@pytest.mark.parametrize("case", POOLS)
@pytest.mark.parametrize("make", [drawn, with_holes])
@pytest.mark.parametrize("view", [False, True])
def test_maxima_of_windows_are_those_of_the_op(case, make, view):
    names = ("kernel_size", "stride", "padding", "dilation")
    attrs = dict(zip(names, case, strict=True))

    def pooled(x):
        x = x.swap_dims(2, 3) if view else x + 0.0
        return apply(ops.max_pool2d, x, **attrs)[0]

    assert "op" not in check(pooled, make(2, 3, 9, 11))


@pytest.mark.parametrize("case", POOLS)
@pytest.mark.parametrize("make", [drawn, with_holes])
def test_maxima_of_long_lines_are_those_of_the_op(case, make):
    names = ("kernel_size", "stride", "padding", "dilation")
    attrs = dict(zip(names, case, strict=True))
    x = make(2, 5, 40, 70)
    assert "op" not in check(lambda x: apply(ops.max_pool2d, x + 0.0, **attrs)[0], x)


STATES = [("both", 2), ("both", 1), ("none", 1), ("hidden", 2)]


@pytest.mark.parametrize(("states", "rows"), STATES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("size", [16, 20])
def test_one_step_of_an_lstm_is_what_the_op_gives(states, rows, bias, size):
    weight, recurrent = drawn(8, 4 * size, seed=1), drawn(4 * size, size, seed=2)
    recurrent = recurrent.swap_dims(0, 1)
    line = drawn(4 * size, seed=3) if bias else None

    def step(x, cell, hidden):
        held = {"both": (cell, hidden), "none": (None, None), "hidden": (None, hidden)}
        return apply(ops.lstm, x, weight, recurrent, line, *held[states])[0]

    inputs = drawn(rows, 1, 8), drawn(rows, size, seed=4), drawn(rows, size, seed=5)
    hows = check(step, *inputs, near=1e-5)
    if usable() >= {"linear", "conv"}:
        assert hows == ["compiled"]


def test_longer_sequences_of_an_lstm_are_left_to_its_kernel():
    weight, recurrent = drawn(8, 64, seed=1), drawn(16, 64, seed=2)
    x = drawn(1, 3, 8)
    assert check(lambda x: apply(ops.lstm, x, weight, recurrent)[0], x) == ["op"]


@pytest.mark.parametrize("shape", [(1, 40), (2, 40), (5, 40), (3, 1, 40), (2, 3, 40)])
@pytest.mark.parametrize("rank", [2, 3])
def test_rows_by_a_fixed_matrix_are_what_the_op_gives(shape, rank):
    if len(shape) != rank:
        shape = (1, *shape) if rank == 3 else (shape[0] * shape[1], 40)
    weight = drawn(*[1] * (rank - 2), 40, 70, seed=1)
    assert "op" not in check(lambda x: (x + 0.0) @ weight, drawn(*shape), near=1e-5)


@pytest.mark.parametrize("numbers", [[0], [3, 1, 3]])
def test_few_picks_by_what_a_run_brings_are_those_of_the_op(numbers):
    table = drawn(300, 20)
    index = places(*numbers)
    hows = check(lambda i: table.select(0, i + 0), index)
    assert hows[-1] == "in place"
    compiled = capture(lambda i: table.select(0, i + 0), index, batch=None).compile()
    compiled(index)
    with pytest.raises(IndexError, match="select"):
        compiled(places(*[300] * len(numbers)))
    assert compiled(index).dims() == (len(numbers), 20)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 10), (1, 2, 6, 7, 5)])
def test_maxima_of_any_dims_are_those_of_the_op(shape, ceil_mode):
    dims = len(shape) - 2
    sizes = {"kernel_size": (3,) * dims, "stride": (2,) * dims, "padding": (1,) * dims}
    sizes |= {"dilation": (1,) * dims, "ceil_mode": ceil_mode}
    check(lambda x: apply(ops.max_pool, x + 0.0, **sizes)[0], drawn(*shape))


CONVOLUTIONS = [
    nn.Conv2dConfig([3, 8], [3, 3]).with_stride([2, 2]),
    nn.Conv2dConfig([3, 8], [1, 1]),
    nn.Conv2dConfig([3, 8], [1, 1]).with_stride([2, 2]).with_bias(False),
    nn.Conv2dConfig([3, 8], [3, 3]).with_padding(nn.PaddingConfig2d.Explicit(1, 1)),
    nn.Conv2dConfig([3, 8], [5, 3])
    .with_stride([2, 1])
    .with_dilation([1, 2])
    .with_padding(nn.PaddingConfig2d.Explicit(2, 2)),
    nn.Conv2dConfig([3, 3], [3, 3]).with_groups(3),
]


@pytest.mark.parametrize("config", CONVOLUTIONS)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("relu", [False, True])
def test_convolutions_are_those_of_the_op(config, batch, view, relu):
    layer = config.init(Numpy())

    def convolved(x):
        x = layer.forward(x.permute([0, 3, 1, 2]) if view else x)
        return x.clamp_min(0.0) if relu else x

    shape = (batch, 9, 10, 3) if view else (batch, 3, 9, 10)
    check(convolved, drawn(*shape), near=1e-5)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", [0, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_convolutions_of_sequences_are_columns(stride, padding, bias):
    config = nn.Conv1dConfig(4, 6, 3).with_stride(stride).with_bias(bias)
    layer = config.with_padding(nn.PaddingConfig1d.Explicit(padding)).init(Numpy())
    assert check(layer.forward, drawn(2, 4, 12), near=1e-5) == ["columns"]


def normed(bias, groups):
    """A convolution with a norm of known moments, and the same with another use."""
    conv = nn.Conv2dConfig([4, 4], [3, 3]).with_bias(bias).with_groups(groups)
    layer = conv.init(Numpy())
    rng = np.random.default_rng(2)
    held = [rng.random(4).astype(np.float32) + 0.5 for _ in range(4)]
    line = [Tensor.from_numpy(array, Numpy()) for array in held]

    def once(x):
        return apply(ops.batch_norm_known, layer.forward(x), *line, epsilon=1e-3)

    def twice(x):
        seen = layer.forward(x)
        return apply(ops.batch_norm_known, seen, *line, epsilon=1e-3) + seen

    return once, twice


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_norm_goes_into_the_convolution_before_it(bias, groups):
    once, twice = normed(bias, groups)
    x = drawn(2, 4, 8, 8)
    for function, count in ((once, 1), (twice, 3)):
        compiled = capture(function, x).compile()
        assert len(compiled.lowered.steps) == count
        assert "conv2d" in str(compiled.profile(x, rounds=1))
        check(function, x, near=1e-5)
