"""The source that readers see: of ops with their gradients, and of generated code."""

import inspect
import traceback

import numpy as np
import pytest

from burnbook import ops
from burnbook.backend.numpy import Numpy
from burnbook.core.op import OPS, op
from burnbook.tensor import Tensor


@pytest.mark.parametrize("thing", [ops.matmul, Tensor.matmul])
def test_the_source_of_an_op_shows_formula_and_gradient(thing):
    text = inspect.getsource(inspect.unwrap(thing))
    assert text.startswith("@op(")
    assert "return xp.matmul(x, y)" in text
    assert "# matmul.grad(" in text
    assert "xp.matmul(g, y.swapaxes(-1, -2))" in text
    assert "samples" not in text
    compile(text, "shown", "exec")


@pytest.mark.parametrize("name", ["conv2d", "attention", "slice", "conv_transpose"])
def test_the_bodies_of_gradient_rules_are_shown_once(name):
    text = OPS[name].listing()
    rules = {getattr(rule, "forward", rule) for rule in OPS[name].rules.values()}
    assert f"def {OPS[name].__name__}(" in text
    assert ".grad(" in text
    for rule in rules:
        if rule.__name__ != "<lambda>":
            assert text.count(inspect.getsource(rule).rstrip()) == 1


def test_the_signature_is_that_of_the_formula():
    for made in OPS.values():
        assert inspect.signature(made.__wrapped__) == inspect.signature(made.forward)
        assert made.__wrapped__.__doc__ == made.__doc__


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (ops.exp.keep, "return (out, )"),
        (ops.sub.backward.forward, "rule_1(g)"),
        (ops.mul.backward.of_two[0], "return None, rule_1(g, x)"),
        (ops.conv2d.validator, "return check("),
    ],
)
def test_generated_functions_have_a_source(function, line):
    assert line in inspect.getsource(function)


def test_a_traceback_shows_the_generated_lines():
    @op("F>F", method=False)
    def broken_rule(xp, x):
        """The same."""
        return x

    OPS.pop("broken_rule")
    broken_rule.grad(x=lambda g, x: g / "no number")
    values = (np.ones(2), np.ones(2))
    with pytest.raises(TypeError) as caught:
        Numpy().run(broken_rule.backward, values, {"needs": (True,)})
    shown = "".join(traceback.format_exception(caught.value))
    assert 'File "<broken_rule.backward>", line 4, in backward' in shown
    assert "return ((rule_0(g, x)) if needs[0] else None,)" in shown
    assert 'lambda g, x: g / "no number"' in shown
