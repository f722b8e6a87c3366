"""What is rewritten before it is planned gives what it gave, in fewer steps."""

import numpy as np
import pytest

from burnbook import nn, ops
from burnbook.backend import Autodiff, Numpy
from burnbook.core.rng import Stream, use_stream
from burnbook.optim import SgdConfig
from burnbook.program import CompiledTraining, capture, capture_training
from burnbook.tensor import Tensor
from burnbook.tensor.methods import apply


def drawn(*shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return Tensor.from_numpy(values, Numpy())


def made(config, seed=3):
    with use_stream(Stream(seed)):
        return config.init(Numpy())


CONV = made(nn.Conv2dConfig([3, 4], [3, 3]))
PLAIN = made(nn.Conv2dConfig([4, 5], [1, 1]).with_bias(False))
LINE = made(nn.Conv1dConfig(3, 4, 2))
LINEAR = made(nn.LinearConfig(6, 4))
LAST, FIRST = drawn(1, 1, 1, 4, seed=1), drawn(1, 4, 1, 1, seed=2)


def steps_of(function, *inputs, near=1e-5, batch=0):
    """The names of the steps that are left; results are those of the function."""
    compiled = capture(function, *inputs, batch=batch).compile()
    wanted = function(*inputs)
    for _ in range(2):
        found = compiled(*inputs)
        pairs = zip(found, wanted, strict=True) if type(wanted) is tuple else None
        for ours, theirs in pairs or [(found, wanted)]:
            assert ours.dims() == theirs.dims()
            np.testing.assert_allclose(
                np.asarray(ours), np.asarray(theirs), rtol=near, atol=near
            )
    text = [getattr(s.op, "chain", (s.op.name,)) for s in compiled.lowered.steps]
    return [name for chain in text for name in chain]


def channels_last(x):
    """As files of another convention have it: dims in order, computed, and back."""
    x = CONV.forward(x).permute([0, 2, 3, 1])
    x = ((x + LAST - LAST * 2.0) * LAST + 1.0).relu()
    return PLAIN.forward(x.permute([0, 3, 1, 2]))


def two_orders(x):
    """A sum of two tensors in one order, which two others read."""
    one, other = (CONV.forward(y).permute([0, 2, 3, 1]) for y in (x, x * 2.0))
    both = one + other
    return (both * LAST).relu().permute([0, 3, 1, 2]), (both - 1.0).permute(
        [0, 3, 1, 2]
    )


def test_permutations_come_after_elementwise_steps():
    names = steps_of(channels_last, drawn(2, 3, 6, 7))
    assert names[:2] == ["conv2d", "relu"]
    assert not {"add", "sub", "mul"} & {*names}
    names = steps_of(two_orders, drawn(2, 3, 6, 7))
    assert names.index("add") < names.index("permute")


def test_who_reads_in_a_row_is_given_it_in_a_row():
    def rows(x):
        return x.permute([1, 0]).relu().reshape([-1])

    assert steps_of(rows, drawn(4, 5), batch=None) == ["permute", "relu", "reshape"]


LINES = {
    "numbers of channels": lambda x: (CONV.forward(x) * FIRST + FIRST) / 2.0,
    "taken away": lambda x: 3.0 - (CONV.forward(x) - FIRST) / FIRST,
    "without a bias": lambda x: PLAIN.forward(Tensor.cat([x, x], 1)[:, :4]) * 2.0 + 1.0,
    "of a sequence": lambda x: LINE.forward(x.mean_dim(3).squeeze(3)) * -0.5,
    "a norm": lambda x: apply(
        ops.batch_norm_known,
        CONV.forward(x) * 2.0,
        *(t.abs() + 0.1 for t in (FIRST.reshape([4]),) * 4),
        epsilon=1e-3,
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_straight_lines_go_into_the_weights(name):
    names = steps_of(LINES[name], drawn(2, 3, 6, 7))
    assert sum("conv" in name for name in names) == 1
    assert not {"add", "sub", "mul", "div", "batch_norm_known"} & {*names}


OTHERS = {
    "read twice": lambda x: (lambda y: y * FIRST + y)(CONV.forward(x)),
    "of each place": lambda x: CONV.forward(x) * x[:, :1, :4, :5],
    "a divisor": lambda x: 2.0 / (CONV.forward(x).abs() + 1.0),
    "of columns": lambda x: CONV.forward(x) * drawn(1, 1, 1, 5),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_line_of_channels_stays(name):
    names = steps_of(OTHERS[name], drawn(2, 3, 6, 7))
    assert {"mul", "div"} & {*names}


def test_two_results_of_a_convolution_stay_two():
    def both(x):
        y = CONV.forward(x)
        return y, y * FIRST

    assert steps_of(both, drawn(2, 3, 6, 7)) == ["conv2d", "mul"]


def by_steps(x, count):
    """A layer of each step of a sequence [steps, n, 6], and what comes of them."""
    state = None
    for t in range(count):
        y = LINEAR.forward(x[t : t + 1].reshape([-1, 6]))
        state = y if state is None else (y + state).tanh()
    return state


def test_a_layer_of_each_step_is_one_layer():
    x = drawn(5, 2, 6)
    names = steps_of(lambda x: by_steps(x, 5), x, batch=None)
    assert names.count("linear") == 1
    names = steps_of(lambda x: by_steps(x, 2), x, batch=None)
    assert names.count("linear") == 2  # too few to be worth it
    long = drawn(12, 2, 6)
    names = steps_of(lambda x: by_steps(x, 3), long, batch=None)
    assert names.count("linear") == 3  # of few of them


def test_constants_that_are_equal_are_one():
    numbers = np.random.default_rng(5).standard_normal((20, 20)).astype(np.float32)

    def function(x):
        for _ in range(4):  # as a loop does that makes its weights anew
            x = (x @ Tensor.from_numpy(numbers.copy(), Numpy())).tanh()
        return x @ Tensor.from_numpy(numbers + 1, Numpy())

    x = drawn(2, 20)
    compiled = capture(function, x).compile()
    for _ in range(2):
        found, wanted = np.asarray(compiled(x)), np.asarray(function(x))
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    factors = [s.inputs[1] for s in compiled.lowered.steps if s.op.name == "matmul"]
    assert len(factors) == 5
    assert len({*factors}) == 2
    ((plan,),) = compiled._plans.values()
    assert len(plan.given.laid) in (0, 2)  # none where kernels are not ready


WIDE = made(
    nn.Conv1dConfig(3, 4, 5)
    .with_padding(nn.PaddingConfig1d.Explicit(64))
    .with_dilation(32)
)
TALL = made(nn.Conv2dConfig([3, 6], [4, 1]).with_groups(3).with_bias(False))


def test_taps_that_meet_padding_alone_are_left_out():
    x = drawn(2, 3, 20)
    compiled = capture(WIDE.forward, x).compile()
    (step,) = [s for s in compiled.lowered.steps if s.op.name == "conv"]
    assert step.inputs[1].shape == (4, 3, 1)
    assert steps_of(WIDE.forward, x)[-1] == "conv"
    near = made(nn.Conv1dConfig(3, 4, 5).with_padding(nn.PaddingConfig1d.Explicit(2)))
    (step,) = capture(near.forward, x).compile().lowered.steps
    assert step.inputs[1].shape == (4, 3, 5)


def test_images_of_one_column_are_lines():
    x = drawn(2, 3, 20, 1)
    assert steps_of(TALL.forward, x) == ["reshape", "conv2d", "reshape"]
    assert steps_of(TALL.forward, drawn(2, 3, 20, 2)) == ["conv2d"]


@pytest.mark.parametrize("slope", [0.1, 1.5])
def test_maxima_of_windows_come_before_leaky_units(slope):
    pool = nn.MaxPool2dConfig([2, 2]).with_strides([2, 2]).init()
    unit = nn.LeakyReluConfig().with_negative_slope(slope).init()
    names = steps_of(lambda x: pool.forward(unit.forward(x * 2.0)), drawn(2, 3, 6, 8))
    assert names == ["mul", "max_pool", "leaky_relu"]
    falling = nn.LeakyReluConfig().with_negative_slope(-0.5).init()
    names = steps_of(lambda x: pool.forward(falling.forward(x)), drawn(2, 3, 6, 8))
    assert names == ["leaky_relu", "max_pool"]


@pytest.mark.parametrize(
    ("slope", "is_larger"), [(0.25, True), (1.5, False), (0, False)]
)
def test_a_choice_by_sign_is_the_larger_of_two(slope, is_larger):
    slopes = drawn(1, 3, 1, 1).zeros_like() + slope

    def chosen(x):
        return x.mask_where(x.lower(0.0), x * slopes)

    x = drawn(2, 3, 6, 8)
    names = steps_of(chosen, x)
    assert ("max_pair" in names) == is_larger
    assert ("mask_where" in names) != is_larger


def test_a_program_that_learns_is_left_alone():
    device = Autodiff(Numpy())
    with use_stream(Stream(1)):
        model = nn.Conv2dConfig([3, 4], [1, 1]).init(device)
    x = Tensor.from_numpy(np.asarray(drawn(2, 3, 4, 4)), device)

    def loss(model, x):
        y = model.forward(x).permute([0, 2, 3, 1])
        return (y * 2.0).permute([0, 3, 1, 2]).square().mean()

    program = capture_training(model, loss, SgdConfig().init(), x)
    text = CompiledTraining(program).explain(x)
    assert text.count("permute") == str(program).count(" permute ") or "mul" in text
    order = [line.split()[1] for line in text.splitlines()[1:] if line.strip()]
    assert order.index("permute") < order.index("mul")
