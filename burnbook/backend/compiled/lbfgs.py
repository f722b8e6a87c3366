"""The direction of L-BFGS: a step and the next product at once.

The plain code goes three times through the memory for every remembered pair; here the
dot product with the next vector is taken while a block is in the cache anyway. Sums of
blocks are added in the same order whatever the number of threads.

Measured by the family lbfgs, of tests/bench.
"""

from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import f32, kernel_code
from burnbook.backend.compiled.runtime.registry import kernel, plain_f32
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.ops.lbfgs import lbfgs_direction

GRAIN = 1 << 14


@kernel_code("void(f4[::1], f4[::1], f4[::1], f8[::1], f4, f4, i8, i8)")
def step_range(out, y, s, sums, keep, a, start, stop):
    """out = keep · out + a · y, and the sums of out · s over blocks."""
    for first in range(start, stop, GRAIN):
        last = min(first + GRAIN, stop)
        line, along, beside = out[first:last], y[first:last], s[first:last]
        total = f32(0)
        for i in range(line.size):
            line[i] = keep * line[i] + a * along[i]
            total += line[i] * beside[i]
        sums[first // GRAIN] = total


@kernel(lbfgs_direction)
def lbfgs_kernel(*vectors, rho, scale):
    if not all(map(plain_f32, vectors)):
        return None
    grad, count = vectors[0], len(rho)
    steps, changes = vectors[1 : count + 1], vectors[count + 1 :]
    out, sums = empty(grad.shape), np.empty(-(-grad.size // GRAIN), np.float64)
    out[...] = grad

    def step(keep: float, a: float, y: Any, beside: Any) -> float:
        """One sweep; gives the product of the new out with what stands beside it."""
        threads.run(
            step_range, (out, y, beside, sums, f32(keep), f32(a)), grad.size, GRAIN
        )
        return float(sums.sum())

    alphas, keep, a, y = [], -1.0, 0.0, grad
    for number in reversed(range(count)):
        alphas.append(step(keep, a, y, steps[number]) * rho[number])
        keep, a, y = 1.0, -alphas[-1], changes[number]
    if not count:
        step(-scale, 0.0, grad, grad)
        return out
    # The last change of q and the scaling to r are one sweep.
    beside = step(keep * scale, a * scale, y, changes[0])
    for number in range(count):
        factor = alphas.pop() - beside * rho[number]
        following = changes[min(number + 1, count - 1)]
        beside = step(1.0, factor, steps[number], following)
    return out
