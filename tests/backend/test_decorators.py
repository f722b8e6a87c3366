"""Decorators: a trace of ops, a stop at the first NaN."""

import gc
import weakref

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Checked, Counting, Numpy, Tracing
from burnbook.backend.autodiff import BalancedCheckpointing
from burnbook.backend.wrappers import Watching
from burnbook.core.errors import NotFiniteError
from burnbook.module import Module
from burnbook.tensor import Tensor
from tests.support.far_arrays import Far
from tests.support.refusals import refused


def leaf(values, device):
    return Tensor.from_data(values, device).require_grad()


class Net(Module):
    first: nn.Linear
    second: nn.Linear

    def forward(self, x):
        return self.second.forward(self.first.forward(x).log())


def net(device, first=1.0):
    ones = nn.Initializer.Constant(first)
    return Net(
        nn.LinearConfig(2, 3).with_initializer(ones).init(device),
        nn.LinearConfig(3, 1).with_initializer(ones).init(device),
    )


# Tracing


def test_a_trace_has_ops_shapes_and_where_inputs_came_from():
    device = Tracing(Numpy())
    x = Tensor.from_data([[1.0, 2.0]], device)
    y = x * x + 1.0
    y.swap_dims(0, 1)
    assert [step.name for step in device.steps] == ["mul", "add", "swap_dims"]
    assert [step.sources for step in device.steps] == [(None, None), (0, None), (1,)]
    assert device.steps[2].outputs == (((2, 1), "f32"),)
    assert device.steps[2].attrs == {"dim1": 0, "dim2": 1}
    assert device.text() == (
        "  0  mul(x [1, 2], y [1, 2]) → [1, 2]\n"
        "  1  add(x [1, 2] ← 0) → [1, 2]\n"
        "  2  swap_dims(x [1, 2] ← 1) → [2, 1]"
    )


def test_below_autodiff_a_trace_has_the_gradients_too():
    device = Tracing(Numpy())
    x = leaf([[1.0, 2.0]], Autodiff(device))
    x.grad(x.exp().sum().backward())
    names = [step.name for step in device.steps]
    assert names == ["exp", "sum", "sum.backward", "exp.backward"]
    last = device.steps[-1]
    assert last.is_gradient
    assert dict(zip((n for n, _, _ in last.inputs), last.sources, strict=True)) == {
        "g": 2,
        "out": 0,
    }


def test_above_autodiff_a_trace_has_the_same_steps():
    device = Tracing(Autodiff(Numpy()))
    x = leaf([[1.0, 2.0]], device)
    x.grad(x.exp().sum().backward())
    names = [step.name for step in device.steps]
    assert names == ["exp", "sum", "sum.backward", "exp.backward"]
    assert device.steps[1].sources == (0,)


def test_a_trace_names_the_layer_of_every_step():
    device = Tracing(Numpy())
    net(device).forward(Tensor.ones([4, 2], device))
    places = {step.name: step.place for step in device.steps}
    assert places == {"linear": "Net.second", "log": "Net"}
    assert [s.place for s in device.steps] == ["Net.first", "Net", "Net.second"]


def test_a_trace_is_bounded_and_keeps_no_values_alive():
    device = Tracing(Numpy(), limit=3)
    x = Tensor.ones([4], device)
    for _ in range(10):
        x = x + 1.0
    assert len(device.steps) == 3
    assert device.dropped == 7
    assert device.text().endswith("… 7 more")
    device.clear()
    y = x * 2.0
    assert len(device.steps) == 1
    alive = weakref.ref(y.value)
    del y
    gc.collect()
    assert alive() is None


# Checked


def test_an_infinity_that_was_asked_for_goes_on_until_it_makes_nan():
    device = Checked(Numpy())
    x = Tensor.from_data([[1.0, 2.0]], device)
    mask = Tensor.from_data([[True, False]], device)
    masked = x.mask_fill(mask, -np.inf)
    assert np.asarray(masked.softmax(1)).tolist() == [[0.0, 1.0]]
    with pytest.raises(NotFiniteError, match="sub: the result holds 1 NaN"):
        masked - masked


def test_the_error_names_the_layer():
    device = Checked(Numpy())
    with pytest.raises(NotFiniteError, match=r"^Net: log: the result holds 12 NaN"):
        net(device, first=-1.0).forward(Tensor.ones([4, 2], device))


@pytest.mark.parametrize("where", ["below", "above"])
@pytest.mark.parametrize("strategy", [None, BalancedCheckpointing()])
def test_a_gradient_that_is_not_finite_stops_too(where, strategy):
    how = {} if strategy is None else {"checkpointing": strategy}
    if where == "below":
        device = Autodiff(Checked(Numpy()), **how)
    else:
        device = Checked(Autodiff(Numpy(), **how))
    x = leaf([[0.0, 4.0]], device)
    y = x.sqrt().sum()
    fact = "\n  g    f32 [1, 2], finite, from 1 to 1\n"
    cure = "\n  try: a clamp or an epsilon before sqrt"
    refused(NotFiniteError, y.backward, "sqrt.backward: ", "1 infinity", fact, cure)


def test_a_gradient_below_autodiff_names_the_layer_of_its_forward_call():
    device = Autodiff(Checked(Numpy()))

    class Root(Module):
        weight: nn.Linear

        def forward(self, x):
            return self.weight.forward(x).sqrt()

    zero = nn.Initializer.Zeros
    layer = nn.LinearConfig(2, 2).with_initializer(zero).init(device)

    class Whole(Module):
        root: Root

        def forward(self, x):
            return self.root.forward(x).sum()

    loss = Whole(Root(layer)).forward(Tensor.ones([1, 2], device))
    with pytest.raises(NotFiniteError, match=r"^Whole.root: sqrt.backward: the gr"):
        loss.backward()


def test_what_is_finite_passes_and_is_the_same():
    for device in (Checked(Autodiff(Numpy())), Autodiff(Checked(Numpy()))):
        model = net(device)
        x = Tensor.ones([4, 2], device)
        grads = model.forward(x).sum().backward()
        plain = net(Autodiff(Numpy()))
        other = plain.forward(Tensor.ones([4, 2], Autodiff(Numpy()))).sum().backward()
        a = model.first.weight.val().grad(grads)
        b = plain.first.weight.val().grad(other)
        assert np.array_equal(np.asarray(a), np.asarray(b))


def test_second_derivatives_come_through_decorators():
    for wrap in (Checked, Tracing, Counting):
        inner = Autodiff(wrap(Numpy(float="f64")))
        low = leaf([0.5], inner)
        high = Tensor.from_inner(low, Autodiff(inner)).require_grad()
        first = high.grad(high.exp().sin().backward())
        second = low.grad(first.backward())
        e = np.exp(0.5)
        assert np.isclose(second.into_scalar(), e * np.cos(e) - e * e * np.sin(e))


def test_decorators_stack_and_print_as_written():
    tracing = Tracing(Counting(Numpy()))
    device = Checked(tracing)
    x = Tensor.ones([2], device)
    assert (x + x).shape == (2,)
    assert tracing.inner.counts == {"add": 1}
    assert len(tracing.steps) == 1
    assert repr(device) == "Checked(Tracing(Counting(Numpy())))"
    assert device.name == "checked<tracing<counting<numpy>>>"


def test_a_decorator_of_your_own_says_what_to_look_at():
    class Shapes(Watching):
        def __init__(self, inner):
            super().__init__(inner)
            self.seen = []

        def look(self, op, values, attrs, out):
            self.seen.append(op.name)

    device = Shapes(Numpy())
    Tensor.ones([2], device) * 3.0
    assert device.seen == ["mul"]
    with pytest.raises(TypeError, match="Watching must say what to look at"):
        Tensor.ones([2], Watching(Numpy())) * 3.0


def test_they_work_on_arrays_of_another_device():
    tracing = Tracing(Far())
    device = Autodiff(Checked(tracing))
    x = leaf([1.0, 0.0], device)
    loss = (x * 2.0).sqrt().sum()
    assert [step.name for step in tracing.steps] == ["mul", "sqrt", "sum"]
    with pytest.raises(NotFiniteError, match=r"sqrt.backward: the gradient of x holds"):
        loss.backward()
