"""Cross-entropy and its gradient, row by row."""

import math
from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.jit import f32, kernel_code
from burnbook.backend.compiled.runtime.registry import kernel, plain_f32
from burnbook.backend.compiled.runtime.vector_rows import largest, raise_all
from burnbook.backend.compiled.softmax import shift
from burnbook.ops.softmax import cross_entropy, cross_entropy_logits


@kernel_code("f4(f4[:,::1], i8[::1])")
def mean_surprise(logits: Any, targets: Any) -> Any:
    """The mean over rows of log Σ exp(x − m) + m − xₜ; −1 where a target is wrong."""
    total = 0.0
    room = np.empty(logits.shape[1], f32)
    for i in range(logits.shape[0]):
        x, target = logits[i], targets[i]
        if target < 0 or target >= x.size:
            return f32(-1)
        shift(x, f32(0), room)
        most = largest(room)
        total += math.log(raise_all(room, most)) + most - x[target]
    return f32(total / logits.shape[0])


@kernel_code("b1(f4[:,::1], i8[::1], f4, f4[:,::1])")
def surprise_slope(logits: Any, targets: Any, scale: Any, out: Any) -> Any:
    """out = (softmax(logits) − one-hot(targets)) · scale; False for a wrong target."""
    for i in range(logits.shape[0]):
        x, y, target = logits[i], out[i], targets[i]
        if target < 0 or target >= x.size:
            return False
        shift(x, f32(0), y)
        share = scale / raise_all(y, largest(y))
        for c in range(x.size):
            y[c] *= share
        y[target] -= scale
    return True


@kernel(cross_entropy)
def cross_entropy_kernel(logits: Any, targets: Any) -> Any:
    if not (plain_f32(logits) and _whole(targets)):
        return None
    mean = mean_surprise(logits, targets)
    return None if mean < 0 else np.array([mean], f32)


@kernel(cross_entropy_logits)
def cross_entropy_slope_kernel(dout: Any, logits: Any, targets: Any) -> Any:
    if not (plain_f32(logits) and plain_f32(dout) and _whole(targets)):
        return None
    out = np.empty(logits.shape, f32)
    scale = f32(dout[0] / logits.shape[0])
    return out if surprise_slope(logits, targets, scale, out) else None


def _whole(x: Any) -> bool:
    return type(x) is np.ndarray and x.dtype is _I64 and x.flags.carray


_I64 = np.dtype(np.int64)
