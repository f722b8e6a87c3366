"""Which op becomes which call, and the functions of one and of two numbers."""

import math
from typing import Any

from burnbook.exporters.forms import Forms, NoForm as NoForm

FORMS = Forms()
form = FORMS.declare

# Functions of one number, as Python expressions of x.
UNARY = {
    "relu": "x if x > 0 else 0.0",
    "sigmoid": "sigmoid(x)",
    "tanh": "tanh(x)",
    "gelu": "x * (1 + erf(x * 0.7071067811865476)) / 2",
    "silu": "x * sigmoid(x)",
    "exp": "exp(x)",
    "log": "log(x)",
    "sqrt": "sqrt(x)",
    "sin": "sin(x)",
    "cos": "cos(x)",
    "abs": "abs(x)",
    "neg": "-x",
    "recip": "1 / x",
    "square": "x * x",
    "erf": "erf(x)",
    "floor": "floor(x)",
    "ceil": "ceil(x)",
    "log_sigmoid": "min(x, 0) - log(1 + exp(-abs(x)))",
    "mish": "x * tanh(max(x, 0) + log(1 + exp(-abs(x))))",
}
BINARY = {
    "add": "x + y",
    "sub": "x - y",
    "mul": "x * y",
    "div": "x / y",
    "max_pair": "max(x, y)",
    "min_pair": "min(x, y)",
    "powf": "x ** y",
}
MATH = ("erf", "exp", "log", "sqrt", "sin", "cos", "tanh", "floor", "ceil")


def literal(value: Any) -> str:
    """A number as a file has it: a plain float, or INF and NAN of kernels.py.

    Example:
        >>> literal(2), literal(float("-inf")), literal(float("nan"))
        ('2.0', '-INF', 'NAN')
    """
    number = float(value)
    if math.isnan(number):
        return "NAN"
    if math.isinf(number):
        return "INF" if number > 0 else "-INF"
    return repr(number)
