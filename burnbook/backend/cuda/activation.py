"""CuPy kernels for activation functions: one pass, forward and back.

As array code gelu takes some thirty passes over the memory, because NumPy has no error
function; a GPU has one built in.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from burnbook.backend.cuda.source import kernel, served
from burnbook.ops.activation import gelu, log_sigmoid, mish, silu
from burnbook.ops.elementwise import sigmoid

LOW = "T low = exp(-fabs(x));"
SOFT = LOW + "T soft = (x >= T(0) ? T(1) : low) / (T(1) + low);"  # the sigmoid of x
ROUND = "T rise = tanh(log1p(exp(-fabs(x))) + fmax(x, T(0)));"  # tanh(ln(1 + eˣ))

# What goes in beside the gradient, the value, and the slope times the gradient.
FORMULAS: dict[Any, tuple[str, str, str]] = {
    gelu: (
        "x",
        "y = x * T(0.5) * (1 + erf(x * T(0.7071067811865476)));",
        "T below = T(0.5) * (1 + erf(x * T(0.7071067811865476)));"
        "y = g * (below + x * exp(T(-0.5) * x * x) * T(0.3989422804014327));",
    ),
    silu: (
        "x",
        f"{SOFT} y = x * soft;",
        f"{SOFT} y = g * soft * (1 + x * (1 - soft));",
    ),
    sigmoid: ("out", f"{SOFT} y = soft;", "y = g * out * (1 - out);"),
    log_sigmoid: (
        "x",
        "y = fmin(x, T(0)) - log1p(exp(-fabs(x)));",
        LOW + "y = g * (x <= T(0) ? T(1) : low) / (T(1) + low);",
    ),
    mish: (
        "x",
        f"{ROUND} y = x * rise;",
        f"{ROUND} {SOFT} y = g * (rise + x * soft * (1 - rise * rise));",
    ),
}


@cache
def curve(xp: Any, op: Any, takes: str, formula: str) -> Any:
    """CuPy's element-by-element kernel for a formula, for float and double."""
    name = f"burnbook_{op.name}".replace(".", "_")
    return xp.ElementwiseKernel(takes, "T y", formula, name)


def value_of(op: Any) -> Callable[..., Any]:
    """The kernel of an activation function."""

    def run(xp: Any, x: Any) -> Any:
        return curve(xp, op, "T x", FORMULAS[op][1])(x) if served(x) else None

    return run


def slope_of(op: Any) -> Callable[..., Any]:
    """The kernel of the gradient of an activation function."""
    given, _, formula = FORMULAS[op]

    def run(xp: Any, g: Any, kept: Any, *, needs: tuple[bool, ...]) -> Any:
        if not served(g, kept):
            return None
        return (curve(xp, op.backward, f"T g, T {given}", formula)(g, kept),)

    return run


for _op in FORMULAS:
    kernel(_op)(value_of(_op))
    kernel(_op.backward)(slope_of(_op))
