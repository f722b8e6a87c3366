"""Which op becomes which call, and the functions of one and of two numbers."""

import math
from typing import Any

from burnbook.exporters.forms import Forms, NoForm as NoForm

FORMS = Forms()
form = FORMS.declare

# Functions of one number, as Python expressions of x. Where Python has an error, they
# have the infinities and NaN that burnbook has.
UNARY = {
    "relu": "0.0 if x < 0 else x",
    "sigmoid": "sigmoid(x)",
    "tanh": "tanh(x)",
    "gelu": "x * (1 + erf(x * 0.7071067811865476)) / 2",
    "silu": "x * sigmoid(x)",
    "exp": "defined(exp, x, INF)",
    "log": "log(x) if x > 0 else NAN if x else -INF",
    "sqrt": "sqrt(x) if x >= 0 else NAN",
    "sin": "defined(sin, x, NAN)",
    "cos": "defined(cos, x, NAN)",
    "abs": "abs(x)",
    "neg": "-x",
    "recip": "divide(1, x)",
    "square": "x * x",
    "erf": "erf(x)",
    "floor": "floor(x) if abs(x) < 1e9 else x",
    "ceil": "ceil(x) if abs(x) < 1e9 else x",
    "log_sigmoid": "min(x, 0) - log(1 + exp(-abs(x)))",
    "mish": "x * tanh(max(x, 0) + log(1 + exp(-abs(x))))",
}
BINARY = {
    "add": "x + y",
    "sub": "x - y",
    "mul": "x * y",
    "div": "divide(x, y)",
    "max_pair": "max(x, y)",
    "min_pair": "min(x, y)",
    "powf": "power(x, y)",
}
NEVER_ZERO = {"div": "x / y"}  # where y is a number, or weights, without zeros
MATH = (
    "copysign",
    *("erf", "exp", "log", "sqrt", "sin", "cos", "tanh", "floor", "ceil"),
)


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
