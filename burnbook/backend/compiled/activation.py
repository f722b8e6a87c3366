"""Functions of each element and their slopes, in one pass.

The tables say what happens to one number; a loop for each is compiled in one go.

Measured by W1 (relu) and the families activation, elementwise, erf, trigonometry, of
tests/bench.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.loops import compile_loops, run_loop
from burnbook.backend.compiled.runtime.registry import kernel, plain_f32
from burnbook.backend.compiled.runtime.thread_pool import ALONE, SLOW_ALONE
from burnbook.backend.compiled.runtime.vector_math import (
    HALF,
    INV_SQRT_2PI,
    ONE,
    SQRT_HALF,
    TWO,
    TWO_OVER_SQRT_PI,
    ZERO,
    erf_of,
    exp_low,
    expm1_low,
    f32,
    hypot_of,
    log1p_unit,
    mish_of,
    mish_slope,
    sigmoid_of,
    sign_of,
    softplus_of,
    vectorizable,
)
from burnbook.backend.compiled.shape import whole
from burnbook.ops.activation import (
    elu,
    gelu,
    leaky_relu,
    log_sigmoid,
    mish,
    silu,
    softplus,
)
from burnbook.ops.elementwise import (
    abs as abs_op,
    clamp,
    log1p,
    recip,
    relu,
    sigmoid,
    sign,
    sqrt,
    tanh,
)
from burnbook.ops.erf import erf
from burnbook.ops.rounding import square
from burnbook.ops.trigonometry import acos, acosh, asin, asinh, atan, atanh, tan

Table = dict[Any, Callable[..., Any]]
#: Of each op of one input: the function with its loop, which one that is, and the names
#: of the attributes that it is given as numbers.
LOOPS: dict[Any, tuple[Any, int, list[str]]] = {}
#: The same for the gradients of such ops, by the op.
SLOPE_LOOPS: dict[Any, tuple[Any, int, list[str]]] = {}


@vectorizable
def silu_slope(g, x):
    gate = sigmoid_of(x)
    return g * (gate * (ONE + x * (ONE - gate)))


@vectorizable
def gelu_slope(g, x):
    below = HALF * (ONE + erf_of(x * SQRT_HALF))
    return g * (below + x * exp_low(-HALF * x * x) * INV_SQRT_2PI)


@vectorizable
def clamp_of(x, low, high):
    raised = low if x < low else x
    return high if raised > high else raised


# op: what it does to an element x
VALUES: Table = {
    relu: vectorizable(lambda x: ZERO if x < ZERO else x),  # NaN stays
    sigmoid: sigmoid_of,
    sign: sign_of,
    erf: erf_of,
    gelu: vectorizable(lambda x: HALF * x * (ONE + erf_of(x * SQRT_HALF))),
    silu: vectorizable(lambda x: x * sigmoid_of(x)),
    mish: mish_of,
    log_sigmoid: vectorizable(
        lambda x: (x if x < ZERO else ZERO) - log1p_unit(exp_low(-abs(x)))
    ),
}
# op with attributes a and b
VALUES_BY_NUMBER: Table = {
    leaky_relu: vectorizable(lambda x, a, b: x * a if x < ZERO else x),
    elu: vectorizable(lambda x, a, b: x if x > ZERO else expm1_low(x) * a),
    softplus: vectorizable(lambda x, a, b: softplus_of(x * a) * (ONE / a)),
    clamp: clamp_of,
}
# op: its gradient, from that of its result and what the tape keeps: x, or the result y
SLOPES: Table = {
    relu: vectorizable(lambda g, y: g * (ONE if y > ZERO else ZERO)),
    sigmoid: vectorizable(lambda g, y: g * y * (ONE - y)),
    tanh: vectorizable(lambda g, y: g * (ONE - y * y)),
    sqrt: vectorizable(lambda g, y: g / (TWO * y)),
    recip: vectorizable(lambda g, y: -g * y * y),
    log1p: vectorizable(lambda g, x: g / (ONE + x)),
    square: vectorizable(lambda g, x: g * (TWO * x)),
    abs_op: vectorizable(
        lambda g, x: g * (ONE if x > ZERO else -ONE if x < ZERO else x)
    ),
    erf: vectorizable(lambda g, x: g * TWO_OVER_SQRT_PI * exp_low(-x * x)),
    gelu: gelu_slope,
    silu: silu_slope,
    mish: mish_slope,
    log_sigmoid: vectorizable(lambda g, x: g * sigmoid_of(-x)),
    tan: vectorizable(lambda g, y: g * (ONE + y * y)),
    asin: vectorizable(lambda g, x: g / np.sqrt((ONE - x) * (ONE + x))),
    acos: vectorizable(lambda g, x: -g / np.sqrt((ONE - x) * (ONE + x))),
    atan: vectorizable(lambda g, x: g / (ONE + x * x)),
    asinh: vectorizable(lambda g, x: g / hypot_of(x, ONE)),
    acosh: vectorizable(lambda g, x: g / (np.sqrt(x - ONE) * np.sqrt(x + ONE))),
    atanh: vectorizable(lambda g, x: g / ((ONE - x) * (ONE + x))),
}
# the same for ops with attributes a and b
SLOPES_BY_NUMBER: Table = {
    leaky_relu: vectorizable(lambda g, x, a, b: g * a if x < ZERO else g),
    elu: vectorizable(lambda g, x, a, b: g if x > ZERO else g * (exp_low(x) * a)),
    softplus: vectorizable(lambda g, x, a, b: g * sigmoid_of(x * a)),
    clamp: vectorizable(lambda g, x, a, b: g if (x >= a) & (x <= b) else ZERO),
}
SLOW = {mish, log_sigmoid, softplus}  # shared out where there is less of it
OPEN = {"min": -np.inf, "max": np.inf}  # bounds that are not given


def register(table: Table, name: str, arrays: int, numbers: int) -> None:
    """Compile the loops of a table and make them the kernels of its ops."""
    loops = compile_loops(__file__, name, list(table.values()), arrays, numbers)
    for code, op in enumerate(table):
        names = [*op.attrs, "", ""][:numbers]
        if arrays == 1:
            LOOPS[op] = loops, code, names
            kernel(op)(_value(loops, code, names, SLOW_ALONE if op in SLOW else ALONE))
        else:
            SLOPE_LOOPS[op] = loops, code, names
            kernel(op.backward)(_slope(loops, code, names))


def _value(loops: Any, code: int, names: list[str], alone: int) -> Callable[..., Any]:
    def value(x: Any, **attrs: Any) -> Any:
        if not plain_f32(x):
            return None
        return run_loop(loops, code, (x,), *numbers_of(names, attrs), alone=alone)

    def bare_value(x: Any) -> Any:
        if not plain_f32(x):
            return None
        if x.nbytes >= alone:
            return run_loop(loops, code, (x,), alone=alone)
        out = empty(x.shape)  # quickly
        loops(code, x.reshape(-1), out.reshape(-1), 0, x.size)
        return out

    return value if names else bare_value


def _slope(loops: Any, code: int, names: list[str]) -> Callable[..., Any]:
    def slope(g: Any, kept: Any, *, needs: Any = None, **attrs: Any) -> Any:
        g = whole(g)
        if g is None or not plain_f32(kept):
            return None
        return (run_loop(loops, code, (g, kept), *numbers_of(names, attrs)),)

    return slope


def numbers_of(names: list[str], attrs: dict[str, Any]) -> list[Any]:
    """The attributes of these names; a bound that is not given is open."""
    numbers = []
    for name in names:
        value = attrs.get(name)
        numbers.append(f32(OPEN.get(name, 0) if value is None else value))
    return numbers


register(VALUES, "values", 1, 0)
register(VALUES_BY_NUMBER, "values_by_number", 1, 2)
register(SLOPES, "slopes", 2, 0)
register(SLOPES_BY_NUMBER, "slopes_by_number", 2, 2)
