"""Advanced · Performance. NumPy's own functions, shared out among threads.

NumPy is quick with one element after the other; what it lacks is a second thread, and
memory that was used before.
"""

from typing import Any

import numpy as np

from burnbook.backend.compiled.buffers import empty
from burnbook.backend.compiled.registry import kernel
from burnbook.backend.compiled.team import team
from burnbook.ops import bits
from burnbook.ops.whole import square, trunc

GRAIN = 1 << 17  # less is done by one thread


def one_range(function: Any, x: Any, out: Any, start: int, stop: int) -> None:
    function(x[start:stop], out=out[start:stop])


def two_range(function: Any, x: Any, y: Any, out: Any, start: int, stop: int) -> None:
    function(x[start:stop], y[start:stop], out=out[start:stop])


def one_piece(x: Any) -> bool:
    return type(x) is np.ndarray and x.flags.carray and x.dtype.kind in "fi"


def share_one(op: Any, function: Any) -> None:
    """Register a function of one array for an op."""

    @kernel(op)
    def run(x: Any) -> Any:
        if not one_piece(x):
            return None
        out = empty(x.shape, x.dtype)
        views = (function, x.reshape(-1), out.reshape(-1))
        team.run(one_range, views, x.size, GRAIN)
        return out


def share_two(op: Any, function: Any) -> None:
    """Register a function of two arrays of one shape for an op."""

    @kernel(op)
    def run(x: Any, y: Any) -> Any:
        if not (one_piece(x) and one_piece(y)):
            return None
        if x.shape != y.shape or x.dtype is not y.dtype:
            return None
        out = empty(x.shape, x.dtype)
        views = (function, x.reshape(-1), y.reshape(-1), out.reshape(-1))
        team.run(two_range, views, x.size, GRAIN)
        return out


share_one(square, np.square)
share_one(trunc, np.trunc)
share_one(bits.bitwise_not, np.invert)
share_two(bits.bitwise_and, np.bitwise_and)
share_two(bits.bitwise_or, np.bitwise_or)
share_two(bits.bitwise_xor, np.bitwise_xor)
share_two(bits.bitwise_left_shift, np.left_shift)
share_two(bits.bitwise_right_shift, np.right_shift)
