"""A linear layer of a few rows: reading the weight is the work.

For one example the matrix product reads every weight once and uses it once, so memory
is the limit. BLAS wakes its other threads for it, which takes longer than they save.

Measured by inference with one image and the family linear, of tests/bench.
"""

import numpy as np

from burnbook.backend.compiled.runtime.jit import f32, kernel_code
from burnbook.backend.compiled.runtime.registry import kernel, plain_f32
from burnbook.ops.linear import linear

MOST_ROWS = 2
LEAST_WEIGHTS = 1 << 16  # below, BLAS works alone as well


@kernel_code("void(f4[:,::1], f4[:,::1], f4[:,::1])")
def add_product(x, weight, out):
    """out += x · weight, four rows of the weight at a time."""
    fours = weight.shape[0] // 4 * 4
    for row in range(x.shape[0]):
        y = out[row]
        for k in range(0, fours, 4):
            a, b, c, d = x[row, k], x[row, k + 1], x[row, k + 2], x[row, k + 3]
            wa, wb, wc, wd = weight[k], weight[k + 1], weight[k + 2], weight[k + 3]
            for j in range(y.size):
                y[j] += a * wa[j] + b * wb[j] + c * wc[j] + d * wd[j]
        for k in range(fours, weight.shape[0]):
            a, wa = x[row, k], weight[k]
            for j in range(y.size):
                y[j] += a * wa[j]


@kernel(linear)
def linear_kernel(x, weight, bias=None):
    if (
        x.ndim != 2
        or x.shape[0] > MOST_ROWS
        or weight.size < LEAST_WEIGHTS
        or not (plain_f32(x) and plain_f32(weight))
    ):
        return None
    out = np.zeros((x.shape[0], weight.shape[1]), f32)
    if bias is not None:
        out += bias
    add_product(x, weight, out)
    return out
