"""Cross-entropy and its gradient, row by row.

Measured by W1, W2 and the family loss, of tests/bench.
"""

import math
from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.jit import f32, kernel_code
from burnbook.backend.compiled.runtime.registry import kernel, plain_f32
from burnbook.backend.compiled.runtime.vector_rows import exp_and_sum, largest
from burnbook.backend.compiled.softmax import shift
from burnbook.ops.loss import cross_entropy, cross_entropy_logits


@kernel_code("f4(f4[:,::1], i8[::1])")
def mean_nll(logits, targets):
    """The mean over rows of log Σ exp(x − m) + m − xₜ; −1 where a target is wrong."""
    total = 0.0
    scratch = np.empty(logits.shape[1], f32)
    for i in range(logits.shape[0]):
        x, target = logits[i], targets[i]
        if target < 0 or target >= x.size:
            return f32(-1)
        shift(x, f32(0), scratch)
        most = largest(scratch)
        total += math.log(exp_and_sum(scratch, most)) + most - x[target]
    return f32(total / logits.shape[0])


@kernel_code("b1(f4[:,::1], i8[::1], f4, f4[:,::1])")
def nll_gradient(logits, targets, scale, out):
    """out = (softmax(logits) − one-hot(targets)) · scale; False for a wrong target."""
    for i in range(logits.shape[0]):
        x, y, target = logits[i], out[i], targets[i]
        if target < 0 or target >= x.size:
            return False
        shift(x, f32(0), y)
        share = scale / exp_and_sum(y, largest(y))
        for c in range(x.size):
            y[c] *= share
        y[target] -= scale
    return True


@kernel(cross_entropy)
def cross_entropy_kernel(logits, targets):
    if not (plain_f32(logits) and _whole(targets)):
        return None
    mean = mean_nll(logits, targets)
    return None if mean < 0 else np.array([mean], f32)


@kernel(cross_entropy_logits)
def cross_entropy_slope_kernel(dout, logits, targets):
    if not (plain_f32(logits) and plain_f32(dout) and _whole(targets)):
        return None
    out = np.empty(logits.shape, f32)
    scale = f32(dout[0] / logits.shape[0])
    return out if nll_gradient(logits, targets, scale, out) else None


def _whole(x: Any) -> bool:
    return type(x) is np.ndarray and x.dtype is _I64 and x.flags.carray


_I64 = np.dtype(np.int64)
