"""From which size on the kernels of each element win.

Measured one by one: a function that is many NumPy calls gains at once; one call of
NumPy gains only from a second thread, and that comes to help after some microseconds.
"""

from typing import Any

from burnbook.ops import (
    activation,
    bits,
    compare,
    elementwise,
    rounding as rounded,
    trigonometry,
)
from burnbook.ops.erf import erf

Sizes = dict[Any, int]

TINY, SMALL, ROWS = 1, 4096, 1 << 14
DEAR, CHEAP, BITS = 1 << 17, 1 << 18, 1 << 20  # a call for each element; moving memory

NONLINEAR = (
    *(activation.gelu, activation.silu, activation.mish, activation.log_sigmoid),
    *(activation.elu, activation.softplus, erf, elementwise.sigmoid),
)
ONE_PASS = (
    *(elementwise.tanh, elementwise.sqrt, elementwise.recip, elementwise.log1p),
    *(rounded.square, elementwise.abs, elementwise.clamp, trigonometry.tan),
    *(trigonometry.asin, trigonometry.acos, trigonometry.atan, trigonometry.asinh),
    *(trigonometry.acosh, trigonometry.atanh),
)
ACTIVATION: Sizes = {
    **dict.fromkeys(NONLINEAR, TINY),
    **{op.backward: TINY for op in NONLINEAR},
    **{op.backward: SMALL for op in ONE_PASS},
    elementwise.relu: ROWS,
    elementwise.relu.backward: SMALL,
    activation.leaky_relu: SMALL,
    activation.leaky_relu.backward: SMALL,
    elementwise.sign: SMALL,
    elementwise.clamp: ROWS,
}
PAIRS: Sizes = {
    **dict.fromkeys(
        (elementwise.add, elementwise.sub, elementwise.mul, elementwise.div), ROWS
    ),
    **dict.fromkeys((elementwise.max_pair, elementwise.min_pair), 1024),
    **dict.fromkeys((trigonometry.hypot, rounded.fmod, elementwise.remainder), 512),
    **dict.fromkeys((bits.bitwise_and, bits.bitwise_or, bits.bitwise_xor), ROWS),
    **dict.fromkeys((bits.bitwise_left_shift, bits.bitwise_right_shift), ROWS),
    **dict.fromkeys((compare.bool_not, compare.bool_and), BITS),
    **dict.fromkeys((compare.bool_or, compare.bool_xor), BITS),
}
SLOPES: Sizes = {
    **{op.backward: ROWS for op in (elementwise.mul, elementwise.sub, elementwise.div)},
    **{op.backward: 512 for op in (elementwise.max_pair, elementwise.min_pair)},
    **{op.backward: SMALL for op in (trigonometry.hypot, trigonometry.atan2)},
    **{op.backward: SMALL for op in (rounded.fmod, elementwise.remainder)},
}
THREADED: Sizes = {
    **dict.fromkeys((elementwise.neg, elementwise.abs, elementwise.floor), CHEAP),
    **dict.fromkeys((elementwise.ceil, elementwise.round, rounded.trunc), CHEAP),
    **dict.fromkeys((elementwise.sqrt, elementwise.recip, rounded.square), CHEAP),
    **dict.fromkeys((bits.bitwise_not, compare.is_nan), CHEAP),
    **dict.fromkeys((compare.is_inf, compare.is_finite, compare.to_bool), CHEAP),
    **dict.fromkeys((compare.equal, compare.not_equal, compare.greater), CHEAP),
    **dict.fromkeys((compare.greater_equal, compare.lower), CHEAP),
    **dict.fromkeys((compare.lower_equal,), CHEAP),
    **dict.fromkeys((elementwise.exp, elementwise.log, elementwise.log1p), DEAR),
    **dict.fromkeys((elementwise.cos, elementwise.sin, elementwise.tanh), DEAR),
    **dict.fromkeys((trigonometry.tan, trigonometry.asin, trigonometry.acos), DEAR),
    **dict.fromkeys((trigonometry.atan, trigonometry.sinh, trigonometry.cosh), DEAR),
    **dict.fromkeys((trigonometry.asinh, trigonometry.acosh), DEAR),
    **dict.fromkeys((trigonometry.atanh, trigonometry.atan2), DEAR),
    elementwise.powf: DEAR,
    **{op.backward: CHEAP for op in (elementwise.neg, elementwise.exp)},
    **{op.backward: CHEAP for op in (elementwise.log, elementwise.floor)},
    **{op.backward: CHEAP for op in (elementwise.ceil, elementwise.round)},
    **{op.backward: CHEAP for op in (elementwise.sign, rounded.trunc)},
    **{op.backward: DEAR for op in (elementwise.cos, elementwise.sin)},
    **{op.backward: DEAR for op in (trigonometry.sinh, trigonometry.cosh)},
}
ELEMENTWISE = {
    "activation": ACTIVATION,
    "binary": PAIRS,
    "binary_gradients": SLOPES,
    "threaded_ufuncs": THREADED,
}
