"""Powers with whole exponents, in one pass over memory.

Measured by the family rounding (power), of tests/bench.
"""

import numpy as np

from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import exact_code, exact_part, f32
from burnbook.backend.compiled.runtime.registry import flat, kernel, plain_f32
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.compiled.shape import whole
from burnbook.ops.rounding import power

LIGHT = 1 << 17  # elements of a part where each takes little time
BLOCK = 1 << 9


@exact_part
def times(out, x):
    for i in range(out.size):
        out[i] *= x[i]


@exact_code("void(f4[::1], f4[::1], f4[::1], i8, i8, i8)")
def power_range(x, g, out, exponent, start, stop):
    """out = xⁿ, by products in the order of the plain code; g (n + 1) xⁿ with a g."""
    scratch = np.empty(BLOCK, f32)
    for a in range(start, stop, BLOCK):
        b = min(a + BLOCK, stop)
        total, factor = out[a:b], scratch[: b - a]
        factor[:] = x[a:b]
        left, begun = exponent, False
        while left:
            if left % 2:
                if begun:
                    times(total, factor)
                else:
                    total[:] = factor
                begun = True
            left //= 2
            if left:
                for i in range(factor.size):
                    factor[i] *= factor[i]
        if g.size:
            many, slope = f32(exponent + 1), g[a:b]
            for i in range(total.size):
                total[i] = slope[i] * (total[i] * many)


@kernel(power)
def power_kernel(x, *, exponent):
    if not plain_f32(x):
        return None
    out, none = empty(x.shape), np.empty(0, f32)
    views = (flat(x), none, flat(out), exponent)
    threads.run(power_range, views, x.size, LIGHT)
    return out


@kernel(power.backward)
def power_back(g, x, *, exponent, needs):
    g = whole(g)
    if exponent < 2 or g is None or not plain_f32(x):
        return None
    out = empty(x.shape)
    threads.run(power_range, (flat(x), flat(g), flat(out), exponent - 1), x.size, LIGHT)
    return (out,)
