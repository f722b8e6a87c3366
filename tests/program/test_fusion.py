"""Rules of fusion: which chains are found, and what a rule of one's own is given."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.core.errors import ArgumentError
from burnbook.program import capture
from burnbook.program.compiler import RULES, fusion, without_rule
from burnbook.tensor import Tensor

pytestmark = pytest.mark.usefixtures("every_kernel")
DEVICE = Numpy()


def drawn(*shape, seed=0):
    array = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return Tensor.from_numpy(array, DEVICE)


def names(program, **asked):
    return [step.op.name for step in program.compile(**asked).lowered.steps]


@pytest.fixture
def rules():
    before = list(RULES)
    yield RULES
    RULES[:] = before


def multiply_add(xp, x, y, z):
    """x · y + z."""
    out = xp.multiply(x, y)
    out += z
    return out


def test_a_rule_of_ones_own_computes_every_chain(rules):
    fusion("mul add")(multiply_add)
    y, z = drawn(4, 5, seed=1), drawn(4, 5, seed=2)
    program = capture(lambda x: (x * y + z).relu() * y + z, drawn(4, 5), batch=None)
    assert names(program) == ["multiply_add", "relu", "multiply_add"]
    x = np.asarray(drawn(4, 5, seed=3))
    np.testing.assert_array_equal(program.compile().run(x)[0], program.run(x)[0])


def test_the_result_of_a_chain_may_come_second_where_order_does_not_matter(rules):
    fusion("mul add")(multiply_add)
    z = drawn(1, 5)
    assert names(capture(lambda x: z + x * 2.0, drawn(4, 5))) == ["multiply_add"]


def test_a_result_that_is_used_twice_is_no_link(rules):
    fusion("mul add")(multiply_add)

    def function(x):
        y = x * 2.0
        return (y + 1.0) * y.exp()

    assert names(capture(function, drawn(4, 5))) == ["mul", "add", "exp", "mul"]


def test_a_result_that_comes_out_is_no_link(rules):
    fusion("mul add")(multiply_add)

    def function(x):
        y = x * 2.0
        return y, y + 1.0

    assert names(capture(function, drawn(4, 5))) == ["mul", "add"]


def test_the_other_input_of_a_subtraction_is_no_link(rules):
    @fusion("mul sub")
    def multiply_subtract(xp, x, y, z):
        return x * y - z

    program = capture(lambda x: x - x.exp() * 2.0, drawn(4, 5))
    assert names(program) == ["exp", "mul", "sub"]


def test_links_may_be_one_of_several_or_missing(rules):
    @fusion("exp neg|abs? add")
    def chain_of(xp, x, y, *, chain):
        out = np.exp(x)
        for name in chain[1:-1]:
            out = {"neg": np.negative, "abs": np.abs}[name](out)
        return out + y

    program = capture(
        lambda x: (x.exp() + 1.0, x.exp().neg() + 1.0, x.exp().abs() + 2.0),
        drawn(3, 2),
    )
    chains = [step.op.chain for step in program.compile().lowered.steps]
    assert chains == [("exp", "add"), ("exp", "neg", "add"), ("exp", "abs", "add")]
    x = np.asarray(drawn(3, 2))
    for found, wanted in zip(program.compile().run(x), program.run(x), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_attributes_that_share_a_name_are_told_apart(rules):
    seen = {}

    @fusion("softmax log_softmax")
    def two(xp, x, *, dim, log_softmax_dim):
        seen.update(dim=dim, log_softmax_dim=log_softmax_dim)
        return x

    from burnbook.tensor import activation

    program = capture(
        lambda x: activation.log_softmax(activation.softmax(x, 1), 2), drawn(2, 3, 4)
    )
    program.compile().run(np.zeros((2, 3, 4), np.float32))
    assert seen == {"dim": 1, "log_softmax_dim": 2}


def test_a_condition_decides(rules):
    fusion("mul add", when=lambda steps: steps[0].out.shape[-1] == 5)(multiply_add)
    assert names(capture(lambda x: x * 2.0 + 1.0, drawn(4, 5))) == ["multiply_add"]
    assert names(capture(lambda x: x * 2.0 + 1.0, drawn(4, 6))) == ["mul", "add"]


def test_the_newest_rule_is_used(rules):
    fusion("mul add")(multiply_add)

    @fusion("mul add relu?")
    def newer(xp, x, y, z, *, chain):
        return x * y + z

    assert names(capture(lambda x: x * 2.0 + 1.0, drawn(4, 5))) == ["newer"]
    without_rule("newer")
    assert names(capture(lambda x: x * 2.0 + 1.0, drawn(4, 5))) == ["multiply_add"]


def test_no_rules_fuse_nothing():
    layer = nn.LinearConfig(4, 3).init(DEVICE)
    program = capture(lambda x: layer.forward(x).relu(), drawn(2, 4))
    assert names(program) == ["linear_block"]
    assert names(program, rules=()) == ["linear", "relu"]


def test_pools_whose_windows_overlap_are_not_fused():
    conv = nn.conv.Conv2dConfig([1, 4], [3, 3]).init(DEVICE)
    pool = nn.pool.MaxPool2dConfig([3, 3]).with_strides([1, 1]).init()
    program = capture(lambda x: pool.forward(conv.forward(x).relu()), drawn(2, 1, 9, 9))
    steps = program.compile().lowered.steps
    assert [getattr(s.op, "chain", s.op.name) for s in steps] == [
        ("conv2d", "relu"),
        "max_pool",
    ]


POOLS = [
    nn.pool.MaxPool2dConfig([3, 3]).with_strides([3, 3]),
    nn.pool.AvgPool2dConfig([2, 3]).with_strides([2, 3]),
    nn.pool.AdaptiveAvgPool2dConfig([2, 7]),
]


@pytest.mark.parametrize("pool", POOLS, ids=lambda config: type(config).__name__)
@pytest.mark.parametrize("channels", [2, 20])
def test_pools_whose_windows_lie_side_by_side_are_fused(pool, channels):
    conv = nn.conv.Conv2dConfig([channels, channels], [3, 3]).init(DEVICE)
    layer = pool.init()
    x = drawn(3, channels, 16, 16)
    program = capture(lambda x: layer.forward(conv.forward(x).relu()), x)
    compiled = program.compile()
    assert len(compiled.lowered.steps) == 1
    np.testing.assert_allclose(
        np.asarray(compiled(x)), np.asarray(program(x)), rtol=1e-5, atol=1e-6
    )


def test_a_pool_that_rounds_up_is_not_fused():
    conv = nn.conv.Conv2dConfig([1, 4], [2, 2]).init(DEVICE)
    pool = nn.pool.MaxPool2dConfig([3, 3]).with_strides([3, 3]).with_ceil_mode(True)
    layer = pool.init()
    program = capture(lambda x: layer.forward(conv.forward(x)), drawn(2, 1, 9, 9))
    assert len(program.compile().lowered.steps) == 2


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("mul nothing_of_this", "there is no op 'nothing_of_this'"),
        ("sub divide", "(?s)there is no op 'divide'.*try: 'div'"),
        ("mul? add", "begins with an op that is always there"),
        ("", "begins with an op that is always there"),
    ],
)
def test_a_wrong_pattern_is_explained(pattern, words):
    with pytest.raises(ArgumentError, match=words):
        fusion(pattern)


def test_a_rule_that_is_not_there_cannot_be_taken_back():
    with pytest.raises(ArgumentError, match="there is no rule 'never'"):
        without_rule("never")


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda xp, x, m: None, "NoneType, which is no array"),
        (lambda xp, x, m: xp.exp(x - m).mean(), "another shape than its chain"),
        (lambda xp, x, m: xp.exp(x - m)[:2], "another shape than its chain"),
        (lambda xp, x, m: (x - m) + 1j, "other elements than its chain"),
        (lambda xp, x, m: x @ m, "fails"),
        (lambda xp, x: xp.exp(x), "cannot be called"),
        (lambda xp, x, m, *, dim: xp.exp(x - m), "cannot be called"),
    ],
)
def test_a_rule_that_does_not_give_what_its_chain_gives_is_refused(
    rules, function, told
):
    function.__name__ = "ours"
    fusion("sub exp")(function)
    program = capture(lambda x: (x - drawn(1, 5)).exp(), drawn(4, 5))
    with pytest.raises(ArgumentError) as error:
        program.compile()(drawn(4, 5))
    assert "the rule ours" in str(error.value)
    assert told in str(error.value)
    assert "sub → exp" in str(error.value)


def test_a_rule_is_looked_at_where_there_is_no_plan_too(rules):
    fusion("sub exp")(lambda xp, x, m: None)
    program = capture(lambda x: (x - drawn(1, 5)).exp(), drawn(4, 5))
    with pytest.raises(ArgumentError, match="which is no array"):
        program.compile()(Tensor.zeros([0, 5], DEVICE))


def test_the_error_of_a_shape_has_both_shapes(rules):
    fusion("sub exp")(lambda xp, x, m: xp.exp(x - m).sum(-1))
    program = capture(lambda x: (x - drawn(1, 5)).exp(), drawn(4, 5))
    with pytest.raises(ArgumentError, match=r"(?s)got +\[3\].*expected +\[3, 5\]"):
        program.compile()(drawn(3, 5))


@pytest.mark.parametrize("given", [["x"], "x", 3])
def test_what_is_no_rule_is_refused(given):
    program = capture(lambda x: x.exp(), drawn(4, 5))
    with pytest.raises(ArgumentError, match="is no rule of fusion"):
        program.compile(rules=given)
