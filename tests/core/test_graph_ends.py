"""A loss that has no graph: the line that ended it, and what to write there."""

import linecache

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import GraphError
from burnbook.module import Module
from burnbook.nn import Linear, LinearConfig
from burnbook.tensor import Tensor

AD = Autodiff(Numpy())
LINES = {
    "argmax": ("y.argmax(1).float().mean()", "CrossEntropyLoss, in place of argmax"),
    "argmin": ("y.argmin(1).float().mean()", "CrossEntropyLoss, in place of argmin"),
    "argsort": ("y.argsort(1).float().mean()", "in place of argsort"),
    "equal": ("y.equal(y).float().mean()", "(a - b).square().mean(), not equal"),
    "greater_elem": ("y.greater_elem(0).float().mean()", "not greater_elem"),
    "int": ("y.int().float().mean()", "the Float tensor as it is, in place of int()"),
    "bool": ("y.bool().float().mean()", "in place of bool()"),
    "detach": ("y.detach().mean()", "the same line without detach()"),
    ">": ("(y > y).float().mean()", "as (a - b).square().mean(), not >"),
    "float": ("Tensor.from_floats([float(y.sum())], AD)", "in place of float()"),
    "np": (
        "Tensor.from_numpy(np.exp(np.asarray(y)), AD).sum()",
        "in place of those of NumPy",
    ),
    "into_scalar": ("Tensor.from_floats([y.sum().into_scalar()], AD)", "into_scalar()"),
    "into_data": ("Tensor.from_data(y.into_data(), AD).mean()", "into_data()"),
}


class Net(Module):
    linear: Linear

    def forward(self, x):
        return self.linear(x)


def told(source, **names):
    """What is said of a piece of code that calls backward."""
    file = f"<lines {source}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    scope = {"Tensor": Tensor, "np": np, "AD": AD, "__name__": "lines", **names}
    with pytest.raises(GraphError) as found:
        exec(compile(source, file, "exec"), scope)
    return str(found.value)


def places(line):
    """The same line in the running code, in a function of it, and in a forward."""
    x = "x = Tensor.ones([2, 3], AD)\n"
    yield f"{x}y = model(x)\nloss = {line}\nloss.backward()", 3
    yield (
        f"def train(model):\n  y = model(x)\n  ({line}).backward()\n{x}train(model)",
        3,
    )
    yield f"def lost(y):\n  return {line}\n{x}lost(model(x)).backward()", 2


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("word", LINES)
def test_the_line_that_ends_the_graph_is_shown_with_its_cure(word, place):
    line, cure = LINES[word]
    source, number = [*places(line)][place]
    text = told(source, model=Net(LinearConfig(3, 2).init(AD)))
    assert text.startswith("backward: no tensor behind this one requires a gradient")
    assert f"line {number}: " in text
    assert line in text
    assert text.splitlines()[-1].endswith(cure)


@pytest.mark.parametrize("word", LINES)
def test_a_forward_is_looked_through_as_well(word):
    line, cure = LINES[word]
    source = f"""
class Ended(Net):
  def forward(self, x):
    y = self.linear(x)
    return {line}
model = Ended(model.linear)
model(Tensor.ones([2, 3], AD)).backward()
"""
    text = told(source, model=Net(LinearConfig(3, 2).init(AD)), Net=Net)
    assert f"line 5: return {line}" in text
    assert text.splitlines()[-1].endswith(cure)


@pytest.mark.parametrize("word", LINES)
def test_without_a_model_too(word):
    """Unless it is as usual for making inputs, whose require_grad() was forgotten."""
    line, cure = LINES[word]
    if word in (">", "float", "np"):
        cure = "NumPy end the graph"
    text = told(
        f"y = Tensor.ones([2, 3], AD).require_grad() * 2.0\n({line}).backward()"
    )
    assert text.splitlines()[-1].endswith(cure)


def test_without_such_a_line_the_inputs_are_asked_for():
    text = told("Tensor.ones([2], AD).exp().sum().backward()")
    assert "try: require_grad() on the inputs" in text


def test_what_stands_after_it_or_is_not_called_is_not_shown():
    source = """
def other(y):
  return y.argmax(1)
x = np.ones((2, 2))
y = model(Tensor.from_numpy(x, AD))
loss = y.detach().mean()
loss.backward()
other(y.detach())
"""
    text = told(source, model=LinearConfig(2, 2).init(AD))
    assert "argmax" not in text
    assert text.index("line 6") < text.index("line 4")
    assert "line 8" not in text
    assert text.endswith("try: the same line without detach()")
