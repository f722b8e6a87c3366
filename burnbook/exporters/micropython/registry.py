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
    "log_sigmoid": "min(x, 0) - log1p(exp(-abs(x)))",
    "half_power": "power(x, 0.5)",
    "log1p": "log1p(x)",
    "round": "round(x) if abs(x) < 1e9 else x",
    "trunc": "trunc(x) if abs(x) < 1e9 else x",
    "sign": "(x > 0) - (x < 0)",
    "tan": "defined(tan, x, NAN)",
    "asin": "defined(asin, x, NAN)",
    "acos": "defined(acos, x, NAN)",
    "atan": "atan(x)",
    "sinh": "defined(sinh, x, x * INF)",
    "cosh": "defined(cosh, x, INF)",
    "asinh": "asinh(x)",
    "acosh": "defined(acosh, x, NAN)",
    "atanh": "defined(atanh, x, x * INF if abs(x) == 1 else NAN)",
    "is_nan": "x != x",
    "is_inf": "abs(x) == INF",
    "is_finite": "abs(x) < INF",
    "bool_not": "not x",
    "to_bool": "x != 0",
    "mish": "x * tanh(max(x, 0) + log1p(exp(-abs(x))))",
}
BINARY = {
    "add": "x + y",
    "sub": "x - y",
    "mul": "x * y",
    "div": "divide(x, y)",
    "max_pair": "x if x >= y or x != x else y",
    "min_pair": "x if x <= y or x != x else y",
    "powf": "power(x, y)",
    "remainder": "x % y if y else NAN",
    "fmod": "fmod(x, y) if y and abs(x) < INF else NAN",
    "atan2": "atan2(x, y)",
    "equal": "x == y",
    "not_equal": "x != y",
    "greater": "x > y",
    "greater_equal": "x >= y",
    "lower": "x < y",
    "lower_equal": "x <= y",
    "bool_and": "x and y",
    "bool_or": "x or y",
    "bool_xor": "x != y",
}
# Where y is a number, or weights, without zeros.
NEVER_ZERO = {"div": "x / y", "remainder": "x % y"}
MATH = (
    *("copysign", "erf", "exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "sinh"),
    *("cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2", "fmod"),
    *("floor", "ceil", "trunc"),
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
