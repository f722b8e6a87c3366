"""One call of NumPy, shared out over the threads.

Nothing is compiled here: NumPy's own loops are quick. But one thread runs them, and a
large result costs more to map into the process than to fill. So a call works on a range
of elements, writes into memory that was used before, and threads take ranges. What
comes out is equal to the plain code's, bit for bit.

Measured by the families elementwise, compare, trigonometry, rounding, of tests/bench.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.registry import kernel
from burnbook.backend.compiled.runtime.thread_pool import (
    ALONE,
    SLOW_ALONE,
    threads,
)
from burnbook.ops import compare, elementwise, rounding as rounded, trigonometry
from burnbook.ops.bits import bitwise_not

Call = Callable[..., Any]
GRAIN = 1 << 16  # elements of a part
BLOCK = 1 << 15  # elements that stay in the cache from one call to the next
BOOL = np.dtype(bool)

# op: the call, of its inputs
ALIKE: dict[Any, Call] = {
    elementwise.neg: np.negative,
    elementwise.abs: np.absolute,
    elementwise.floor: np.floor,
    elementwise.ceil: np.ceil,
    elementwise.round: np.rint,
    elementwise.sqrt: np.sqrt,
    elementwise.recip: lambda x, out: np.divide(1, x, out=out),
    elementwise.exp: np.exp,
    elementwise.log: np.log,
    elementwise.log1p: np.log1p,
    elementwise.cos: np.cos,
    elementwise.sin: np.sin,
    elementwise.tanh: np.tanh,
    elementwise.powf: np.power,
    rounded.trunc: np.trunc,
    rounded.square: np.square,
    bitwise_not: np.invert,
    trigonometry.tan: np.tan,
    trigonometry.asin: np.arcsin,
    trigonometry.acos: np.arccos,
    trigonometry.atan: np.arctan,
    trigonometry.sinh: np.sinh,
    trigonometry.cosh: np.cosh,
    trigonometry.asinh: np.arcsinh,
    trigonometry.acosh: np.arccosh,
    trigonometry.atanh: np.arctanh,
    trigonometry.atan2: np.arctan2,
}
TRUTHS: dict[Any, Call] = {
    compare.equal: np.equal,
    compare.not_equal: np.not_equal,
    compare.greater: np.greater,
    compare.greater_equal: np.greater_equal,
    compare.lower: np.less,
    compare.lower_equal: np.less_equal,
    compare.is_nan: lambda x, out: np.not_equal(x, x, out=out),
    compare.is_inf: np.isinf,
    compare.is_finite: np.isfinite,
    compare.to_bool: lambda x, out: np.not_equal(x, 0, out=out),
}


def in_blocks(call: Call) -> Call:
    """Several calls of NumPy as one: block by block, so that each finds the last's."""

    def run(*inputs: Any, out: Any) -> None:
        rows = max(1, BLOCK // max(1, out[:1].size))
        for first in range(0, len(out), rows):
            at = slice(first, first + rows)
            call(*[v[at] if np.shape(v)[:1] > (1,) else v for v in inputs], out[at])

    return run


@in_blocks
def cos_slope(g: Any, x: Any, out: Any) -> None:
    np.sin(x, out=out)
    np.multiply(out, g, out=out)
    np.negative(out, out=out)


def times(function: Call) -> Call:
    """g · function(x)."""

    @in_blocks
    def slope(g: Any, x: Any, out: Any) -> None:
        function(x, out=out)
        np.multiply(g, out, out=out)

    return slope


# op: the call, of the gradient of its result and what the tape keeps
SLOPES: dict[Any, Call] = {
    elementwise.neg: np.negative,
    elementwise.exp: np.multiply,
    elementwise.log: np.divide,
    elementwise.cos: cos_slope,
    elementwise.sin: times(np.cos),
    trigonometry.sinh: times(np.cosh),
    trigonometry.cosh: times(np.sinh),
    **dict.fromkeys(
        (
            *(elementwise.floor, elementwise.ceil, elementwise.round),
            *(elementwise.sign, rounded.trunc),
        ),
        lambda g, out: np.multiply(g, 0, out=out),
    ),
}


# what is shared out already where there is less of it
SLOW = {
    *(elementwise.powf, trigonometry.atan2, trigonometry.asinh),
    *(trigonometry.acosh, trigonometry.atanh),
}


def in_ranges(
    call: Call, inputs: tuple[Any, ...], dtype: np.dtype, alone: int = ALONE
) -> Any:
    """Run a call on ranges of its inputs; numbers among them are the same for all.

    alone: bytes of the largest array below which one thread does it.
    """
    arrays = [v for v in inputs if isinstance(v, np.ndarray)]
    shape = arrays[0].shape
    if all(v.shape == shape and v.flags.c_contiguous for v in arrays):
        out = empty(shape, dtype)
        inputs = tuple(
            v.reshape(-1) if isinstance(v, np.ndarray) else v for v in inputs
        )
        target, each = out.reshape(-1), 1
    else:
        shape = np.broadcast_shapes(*[v.shape for v in arrays])
        out = target = empty(shape, dtype)
        each = max(1, out.size // max(1, shape[0]))

    def part(start: int, stop: int) -> None:
        at = slice(start, stop)
        pieces = [v[at] if np.shape(v)[:1] > (1,) else v for v in inputs]
        with np.errstate(all="ignore"):
            call(*pieces, out=target[at])

    if max(out.nbytes, *(v.nbytes for v in arrays)) < alone:
        part(0, len(target))
    else:
        threads.run(part, (), len(target), max(1, GRAIN // each))
    return out


def serve(*inputs: Any) -> np.dtype | None:
    """The element type, where all arrays have the same one."""
    types = {v.dtype for v in inputs if isinstance(v, np.ndarray)}
    return types.pop() if len(types) == 1 else None


def register(op: Any, call: Call, truth: bool) -> None:
    """Make a call the kernel of an op."""

    alone = SLOW_ALONE if op in SLOW else ALONE

    def run(*inputs: Any) -> Any:
        dtype = serve(*inputs)
        if dtype is None or (op is elementwise.powf and dtype.kind != "f"):
            return None
        return in_ranges(call, inputs, BOOL if truth else dtype, alone)

    kernel(op)(run)


def register_slope(op: Any, call: Call) -> None:
    """Make a call the kernel of an op's gradient."""

    def run(*inputs: Any, needs: Any) -> Any:
        dtype = serve(*inputs)
        return None if dtype is None else (in_ranges(call, inputs, dtype),)

    kernel(op.backward)(run)


for _op, _call in ALIKE.items():
    register(_op, _call, truth=False)
for _op, _call in TRUTHS.items():
    register(_op, _call, truth=True)
for _op, _call in SLOPES.items():
    register_slope(_op, _call)
