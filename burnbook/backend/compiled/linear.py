"""A linear layer: the bias goes into the product; few rows are multiplied here.

Before BLAS adds products up, it writes zeros; for a large product the bias is written
instead. For one example the product reads every weight once and uses it once, so memory
is the limit. BLAS wakes its other threads for it, which takes longer than they save;
those that still look for work take panels of a weight that is laid out (captured
programs lay it out once).

Measured by inference with one image and the family linear, of tests/bench.
"""

from typing import Any

import numpy as np

from burnbook.backend.compiled.finish import RELU, activate
from burnbook.backend.compiled.runtime.jit import LANES, f32, kernel_code
from burnbook.backend.compiled.runtime.registry import F32, kernel, plain_f32
from burnbook.backend.compiled.runtime.shared_product import WIDTH, multiply_panels
from burnbook.backend.compiled.runtime.simd import broadcast, larger, load, store
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.products import dot_plus
from burnbook.ops.linear import linear

MOST_ROWS = 2
LEAST_WEIGHTS = 1 << 16  # below, BLAS works alone as well
PART_WEIGHTS = 1 << 16  # what one thread multiplies in some 4 µs
WORTH = 1 << 22  # weights of a product that is worth waking another thread for


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


@kernel_code("void(i8[::1], f4[:,::1], f4[:,:,::1], f4[::1], f4[:,::1], i8, i8)")
def multiply_laid(board, x, panels, line, out, which, size):
    """out = act(x · weight + line), in parts of so many panels, by threads that look.

    board: of thread_pool.py. panels, line: from `laid_panels`; which: an activation,
    see finish.py. out has whole panels.
    """
    multiply_panels(board, x, panels, line, out, size)
    flat = out.reshape(out.size)
    if which == RELU:
        zeros = broadcast(f32(0))
        for i in range(0, flat.size, LANES):
            store(flat, i, larger(load(flat, i), zeros))
    else:
        activate(flat, 0, flat.size, which)


class FewRows:
    """A step that multiplies one row or two by a weight in panels."""

    def __init__(self, x: Any, panels: Any, line: Any, out: Any, which: int):
        self.given = x, panels, line, out, which
        each = panels.shape[1] * WIDTH
        self.size = min(-(-PART_WEIGHTS // each), len(panels))
        self.parts = -(-len(panels) // self.size)
        self.is_long = x.shape[0] * panels.size >= WORTH

    def __call__(self) -> None:
        if self.parts > 1:
            threads.attend(self.is_long)
        multiply_laid(threads.board, *self.given, self.size)


def laid_panels(weight: Any, bias: Any) -> tuple[Any, Any]:
    """A weight in panels of WIDTH columns and a bias as long, zeros at the end."""
    depth, columns = weight.shape
    count = -(-columns // WIDTH)
    panels, line = np.zeros((count, depth, WIDTH), f32), np.zeros(count * WIDTH, f32)
    for panel in range(count):
        some = weight[:, panel * WIDTH : (panel + 1) * WIDTH]
        panels[panel, :, : some.shape[1]] = some
    if bias is not None:
        line[:columns] = bias
    return panels, line


@kernel(linear)
def linear_kernel(x, weight, bias=None):
    if x.ndim < 2 or weight.size < LEAST_WEIGHTS:
        return None
    if x.size > MOST_ROWS * x.shape[-1] or x.ndim > 2:
        return None if bias is None else with_bias(x, weight, bias)
    if not (plain_f32(x) and plain_f32(weight)):
        return None
    out = np.zeros((x.shape[0], weight.shape[1]), f32)
    if bias is not None:
        out += bias
    add_product(x, weight, out)
    return out


def with_bias(x: Any, weight: Any, bias: Any) -> Any:
    """x · weight + bias in one pass, or None where it does not pay."""
    if not (plain_f32(x) and plain_f32(bias)) or weight.dtype is not F32:
        return None
    out = dot_plus(x.reshape(-1, x.shape[-1]), weight, bias)
    return None if out is None else out.reshape(*x.shape[:-1], weight.shape[1])
