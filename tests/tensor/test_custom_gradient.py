"""Functions with a gradient of their own, and the check that compares it."""

import pickle

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.backend.autodiff import BalancedCheckpointing
from burnbook.backend.wrappers import Checked, Counting, Tracing
from burnbook.core.errors import (
    ArgumentError,
    BackendError,
    GraphError,
    KindError,
    NotFiniteError,
    ShapeError,
)
from burnbook.tensor import Int, Tensor, check_gradient, custom_gradient

WIDE = Numpy(float="f64")
DEVICES = [
    pytest.param(Autodiff(Numpy(float="f64", compiled=False)), id="plain"),
    pytest.param(Autodiff(WIDE), id="compiled"),
    pytest.param(
        Autodiff(WIDE, checkpointing=BalancedCheckpointing()), id="checkpointing"
    ),
]


@custom_gradient
def product(x, y):
    """x · y, element by element."""
    return x * y


@product.backward
def _(g, x, y):
    return g * y, g * x


@custom_gradient(keep="power")
def scaled_exp(x, factor):
    power = x.exp()
    return power * factor, power


@scaled_exp.backward
def _(g, power, factor):
    return g * power * factor


@custom_gradient
def polar(x, y):
    """Length and angle; both have a gradient."""
    return (x * x + y * y).sqrt(), y.atan2(x)


@polar.backward
def _(g, out, x, y):
    length, _ = out
    along, around = g[0] / length, g[1] / (length * length)
    return along * x - around * y, along * y + around * x


@custom_gradient
def rounded(x):
    return x.round()


@rounded.backward
def _(g):
    return g


@custom_gradient
def total(*xs):
    return sum(xs[1:], xs[0])


@total.backward
def _(g, xs, xs_shape):
    assert tuple(x.dims() for x in xs) == xs_shape
    return tuple(g for _ in xs)


@custom_gradient
def picked(x, indices, *, scale=1.0):
    return x.select(0, indices) * scale


@picked.backward
def _(g, indices, x_shape):
    zeros = Tensor.zeros(list(x_shape), g.device())
    return zeros.select_assign(0, indices, g), None


def leaf(*values, device=DEVICES[1].values[0]):
    return Tensor.from_floats(list(values), device).require_grad()


def numbers(tensor):
    return np.asarray(tensor).tolist()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (product, ([2, 3], [2, 3])),
        (product, ([2, 3], [1, 3])),  # the engine adds up along what was stretched
        (scaled_exp, ([2, 3], 2.5)),
        (polar, ([4], [4])),
        (total, ([2], [2], [2])),
        (picked, ([4, 2], np.array([3, 0, 3]))),
    ],
)
def test_gradients_of_first_and_second_order_are_the_slopes(device, function, inputs):
    report = check_gradient(function, *inputs, device=device, second=True)
    assert report.passed, report


def test_a_gradient_that_is_meant_to_differ_is_the_one_that_is_used():
    x = leaf(0.4, 1.6)
    grads = (rounded(x) * x).sum().backward()
    np.testing.assert_allclose(np.asarray(x.grad(grads)), [0.4, 3.6])
    report = check_gradient(rounded, Tensor.from_floats([0.4, 1.6]))
    assert not report.passed
    assert report.failed[0].worst[2] == 0.0  # the slope of a step


def test_second_order_goes_through_the_code_of_the_gradient_at_every_level():
    """The gradient of round is said to be 1, so x · round(x) has the slope 2 there."""
    inner = Autodiff(WIDE)
    low = leaf(0.4, 1.6, device=inner)
    high = Tensor.from_inner(low, Autodiff(inner)).require_grad()
    first = high.grad((rounded(high) * high).sum().backward())
    np.testing.assert_allclose(np.asarray(first), [0.4, 3.6])
    np.testing.assert_allclose(np.asarray(low.grad(first.sum().backward())), [2, 2])


def test_three_levels():
    @custom_gradient
    def fourth(x):
        return x**4

    @fourth.backward
    def _(g, x):
        return g * 4 * x**3

    devices = [Autodiff(WIDE)]
    for _ in range(2):
        devices.append(Autodiff(devices[-1]))
    leaves = [leaf(2.0, device=devices[0])]
    for device in devices[1:]:
        leaves.append(Tensor.from_inner(leaves[-1], device).require_grad())
    value = fourth(leaves[-1])
    for expected, at in zip((32.0, 48.0, 48.0), reversed(leaves), strict=True):
        value = at.grad(value.sum().backward())
        assert numbers(value) == [expected]


def test_only_the_level_below_tracks():
    inner = Autodiff(WIDE)
    low = leaf(3.0, device=inner)
    out = product(*2 * (Tensor.from_inner(low, Autodiff(inner)),))
    grads = out.inner().sum().backward()
    assert numbers(low.grad(grads)) == [6.0]


def test_without_autodiff_or_gradients_it_is_the_function():
    x = Tensor.from_floats([1.0, 2.0])
    assert numbers(product(x, x)) == [1.0, 4.0]
    plain = Tensor.from_floats([1.0, 2.0], Autodiff(Numpy()))
    out = scaled_exp(plain, 2.0)
    assert out.backend is plain.backend
    with pytest.raises(GraphError, match="no tensor behind this one requires"):
        out.backward()
    linear = nn.LinearConfig(2, 2).init(Autodiff(Numpy())).no_grad()
    frozen = rounded(linear.forward(plain.unsqueeze_dim(0)))
    with pytest.raises(GraphError, match="no tensor behind this one requires"):
        frozen.backward()


def test_results_that_are_not_float_have_no_gradient():
    @custom_gradient
    def largest(x):
        return x.max_dim(1), x.argmax(1)

    seen = []

    @largest.backward
    def _(g, out, x_shape):
        seen.append(g[1])
        zeros = Tensor.zeros(list(x_shape), g[0].device())
        return zeros.scatter(1, out[1], g[0])

    x = Tensor.from_floats([[1.0, 5.0, 2.0]], Autodiff(WIDE)).require_grad()
    values, indices = largest(x)
    assert indices.kind is Int
    assert numbers(x.grad((values * values).sum().backward())) == [[0.0, 10.0, 0.0]]
    assert seen == [None]


def test_a_result_that_is_not_used_has_a_gradient_of_zeros():
    seen = []

    @custom_gradient
    def pair(x):
        return x * 2, x * 3

    @pair.backward
    def _(g):
        seen.append([numbers(part) for part in g])
        return g[0] * 2 + g[1] * 3

    x = leaf(1.0, 2.0)
    _, b = pair(x)
    assert numbers(x.grad(b.sum().backward())) == [3.0, 3.0]
    assert seen == [[[0.0, 0.0], [1.0, 1.0]]]


def test_the_gradient_runs_once_for_all_results_and_knows_who_wants_one():
    calls = []

    @custom_gradient
    def both(x, y):
        return x * y, x + y

    @both.backward
    def _(g, x, y, needs):
        calls.append(needs)
        return g[0] * y + g[1], (g[0] * x + g[1]) if needs[1] else None

    x, y = leaf(2.0), Tensor.from_floats([5.0], DEVICES[1].values[0])
    a, b = both(x, y)
    assert numbers(x.grad((a * b).sum().backward())) == [2 * 2 * 5 + 25.0]
    assert calls == [(True, False)]


def test_none_cuts_the_graph():
    @custom_gradient
    def first(x, y):
        return x + y

    @first.backward
    def _(g):
        return g, None

    x, y = leaf(1.0), leaf(2.0)
    grads = first(x, y).sum().backward()
    assert numbers(x.grad(grads)) == [1.0]
    assert y.grad(grads) is None


def test_what_is_kept_is_freed_and_counted():
    x = leaf(1.0, 2.0)
    out = scaled_exp(x, 2.0)
    (step,) = [node for node in out.graph() if node.name == "scaled_exp"]
    assert step.kept == ("power", "factor")
    assert out.graph().kept_bytes == 16
    assert step["factor"].value == 2.0
    loss = out.sum()
    loss.backward()
    assert step.used_up
    with pytest.raises(GraphError, match=r"scaled_exp: .* used up"):
        out.sum().backward()


def test_decorators_see_it():
    counting = Counting(WIDE)
    x = leaf(1.0, 2.0, device=Autodiff(counting))
    product(x, x).sum().backward()
    assert counting.counts["product.backward"] == 1
    assert counting.counts["mul"] == 3
    tracing = Tracing(Autodiff(WIDE))
    x = Tensor.from_floats([1.0], tracing).require_grad()
    out = product(x, x)
    assert out.backend is tracing
    out.backward()
    assert "product.backward(" in tracing.text()


def test_checked_names_the_function_whose_gradient_is_not_finite():
    @custom_gradient
    def root(x):
        return x.sqrt()

    @root.backward
    def _(g, out):
        return g / out

    x = leaf(0.0, device=Autodiff(Checked(WIDE)))
    with pytest.raises(NotFiniteError, match=r"div: .*infinity"):
        root(x).sum().backward()


def test_in_a_module_it_trains_and_is_pickled():
    layer = nn.LinearConfig(2, 2).init(Autodiff(WIDE))
    x = Tensor.ones([1, 2], Autodiff(WIDE))
    grads = rounded(layer.forward(x)).sum().backward()
    assert numbers(layer.weight.val().grad(grads)) == [[1.0, 1.0], [1.0, 1.0]]
    assert pickle.loads(pickle.dumps(product)) is product
    assert product.__doc__.startswith("x · y")


@pytest.mark.parametrize(
    ("gradient", "error", "text"),
    [
        (
            lambda g: g,
            GraphError,
            r"f.backward: it returns one gradient for 2 inputs, x, y\n.*try: return ∂x",
        ),
        (lambda g: (g,), GraphError, r"it returns 1 gradient for 2 inputs"),
        (lambda g: None, GraphError, r"it returns nothing for 2 inputs"),
        (
            lambda g, x: (g, x.transpose()),
            ShapeError,
            r"f.backward: the gradient of y has shape \[3, 2\], y has \[2, 3\]\n"
            r"  try: transpose\(\)",
        ),
        (
            lambda g: (g, g.sum_dim(0)),
            ShapeError,
            r"the gradient of y has shape \[1, 3\], .*\n  try: expand\(\[2, 3\]\)",
        ),
        (
            lambda g: (g.unsqueeze_dim(0), g),
            ShapeError,
            r"the gradient of x has shape \[1, 2, 3\]",
        ),
        (lambda g: (1.0, g), KindError, r"the gradient of x is float, not a tensor"),
        (lambda g: (g.int(), g), KindError, r"the gradient of x is Int"),
        (
            lambda g: (Tensor.zeros([2, 3], Numpy(float="f16")), g),
            BackendError,
            "the gradient of x is on another backend",
        ),
    ],
)
def test_a_wrong_gradient_names_function_input_and_shapes(gradient, error, text):
    @custom_gradient
    def f(x, y):
        return x * y

    f.backward(gradient)
    x, y = (Tensor.ones([2, 3], Autodiff(WIDE)).require_grad() for _ in range(2))
    with pytest.raises(error, match=text):
        f(x, y).sum().backward()


OTHER = Tensor.ones([1], Autodiff(WIDE)).require_grad()


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda x: total(x, Tensor.ones([1])), BackendError, r"xs\[0\] and xs\[1\]"),
        (lambda x: total(), KindError, r"total: none of its inputs \(xs\) is a tensor"),
        (lambda x: total([x, x]), KindError, r"xs\[0\] is a list with tensors in it"),
        (lambda x: product(x), ArgumentError, "missing a required argument: 'y'"),
        (
            lambda x: picked(x, Tensor.from_ints([0], x.device()), scale=x),
            GraphError,
            r"the option scale wants a gradient.*\n.*front of the \*",
        ),
        (
            lambda x: custom_gradient(lambda x: x * 2)(x),
            GraphError,
            "it has no code for its gradient, and one is needed",
        ),
        (
            lambda x: custom_gradient(lambda x: x.into_scalar())(x),
            KindError,
            "its result is float, not a tensor",
        ),
        (
            lambda x: custom_gradient(lambda x: x * OTHER)(x),
            BackendError,
            r"one backend(.|\n)*try: every tensor that <lambda> uses as one of its in",
        ),
        (
            lambda x: custom_gradient(lambda x: x, keep="mask")(x),
            ArgumentError,
            "it returns 1 of its results and mask, which is kept",
        ),
        (
            lambda x: custom_gradient(lambda x: x).backward(lambda g, mask: g),
            ArgumentError,
            r"its gradient asks for mask(.|\n)*try: @custom_gradient\(keep=\"mask\"\)",
        ),
        (
            lambda x: custom_gradient(lambda **xs: xs),
            ArgumentError,
            "names all its parameters",
        ),
        (lambda x: custom_gradient(lambda: 1), ArgumentError, "takes tensors"),
        (
            lambda x: rounded(nn.LinearConfig(1, 1).init(Numpy()).weight),
            KindError,
            r"x is a Param, not a tensor\n  try: x.val\(\)",
        ),
    ],
)
def test_mistakes_in_the_function_or_its_call(make, error, text):
    with pytest.raises(error, match=text):
        make(leaf(1.0))


# check_gradient


def test_a_wrong_gradient_is_reported_with_input_element_and_both_numbers():
    @custom_gradient
    def f(x, y):
        return x * y

    @f.backward
    def _(g, x, y):
        factor = [[1.0, 1.0], [1.0, 2.0]]
        return g * y, g * x * Tensor.from_data(factor, g.device())

    x = Tensor.from_floats([[1.0, 2.0], [3.0, 4.0]])
    report = check_gradient(f, x, x)
    assert not report.passed
    (row,) = report.failed
    index, given, slope = row.worst
    assert (row.name, index, row.checked) == ("y", (1, 1), 4)
    assert given == pytest.approx(2 * slope)
    assert f"✘ y  Float [2, 2]: at [1, 1] the gradient is {given:.6g}" in str(report)


def test_a_wrong_gradient_of_the_gradient():
    @custom_gradient
    def square(x):
        return x * x

    @square.backward
    def _(g, x):
        return g * x.detach() * 2  # right, and cut from the graph

    report = check_gradient(square, [3], second=True)
    assert [(row.order, row.passed) for row in report.rows] == [(1, True), (2, False)]


def test_many_elements_are_sampled_and_single_precision_has_its_limits():
    report = check_gradient(lambda x: (x * x).tanh(), [40, 40], elements=20)
    assert report.passed
    assert report.rows[0].checked == 20
    assert "20 of 1600 elements" in str(report)
    narrow = check_gradient(lambda x: x.sin(), [5], device=Autodiff(Numpy()))
    assert narrow.passed, narrow


def test_it_checks_layers_losses_and_random_ops():
    linear = nn.LinearConfig(3, 2).init(Autodiff(WIDE))
    assert check_gradient(linear.forward, [4, 3]).passed
    targets = np.array([0, 1, 1, 0])
    loss = nn.CrossEntropyLossConfig().init(Autodiff(WIDE))
    assert check_gradient(loss.forward, [4, 2], targets).passed
    dropout = nn.DropoutConfig(0.5).init()
    assert check_gradient(dropout.forward, [6]).passed


def test_what_it_cannot_check():
    with pytest.raises(KindError, match="none of the inputs is a Float tensor"):
        check_gradient(lambda n: n, np.array([1]))
    with pytest.raises(KindError, match="the function gives float"):
        check_gradient(lambda x: x.sum().into_scalar(), [2])
    with pytest.raises(BackendError, match=r"does not track(.|\n)*try: Autodiff"):
        check_gradient(lambda x: x, [2], device=Numpy())
