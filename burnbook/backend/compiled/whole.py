"""Advanced · Performance. Whole powers, and what is left of a division, exactly.

The C library's fmod divides bit by bit. In double precision the quotient of two floats
and its product are exact up to 2²⁸; where a block has a larger one, or no number, its
elements go to the library one by one.
"""

import math
from typing import Any

import numpy as np

from burnbook.backend.compiled.buffers import empty
from burnbook.backend.compiled.copies import whole
from burnbook.backend.compiled.jit import exact_code, exact_part, f32
from burnbook.backend.compiled.registry import flat, kernel, plain_f32
from burnbook.backend.compiled.team import team
from burnbook.ops.whole import fmod, power

GRAIN = 1 << 15
LIGHT = 1 << 17  # elements of a part where each takes little time
BLOCK = 1 << 9
MOST = float(2**28)


@exact_code("void(f4[::1], f4[::1], f4[::1], i8, i8)")
def fmod_range(x: Any, y: Any, out: Any, start: int, stop: int) -> None:
    """out = x − y · trunc(x / y), with the sign of x."""
    for a in range(start, stop, BLOCK):
        b = min(a + BLOCK, stop)
        top, under, rest = x[a:b], y[a:b], out[a:b]
        hard = 0
        for i in range(rest.size):
            u, v = np.float64(top[i]), np.float64(under[i])
            q = np.trunc(u / v)
            r = u - q * v
            easy = (abs(q) < MOST) & (abs(v) < np.inf)
            hard += 0 if easy else 1
            rest[i] = f32(math.copysign(r, u))
        if hard:
            for i in range(rest.size):
                rest[i] = np.fmod(top[i], under[i])


@kernel(fmod)
def fmod_kernel(x: Any, y: Any) -> Any:
    if not (plain_f32(x) and plain_f32(y)) or x.shape != y.shape:
        return None
    out = empty(x.shape)
    team.run(fmod_range, (flat(x), flat(y), flat(out)), x.size, GRAIN)
    return out


@exact_part
def times(out: Any, x: Any) -> None:
    for i in range(out.size):
        out[i] *= x[i]


@exact_code("void(f4[::1], f4[::1], f4[::1], i8, i8, i8)")
def power_range(x: Any, g: Any, out: Any, exponent: int, start: int, stop: int) -> None:
    """out = xⁿ, by products in the order of the plain code; g (n + 1) xⁿ with a g."""
    room = np.empty(BLOCK, f32)
    for a in range(start, stop, BLOCK):
        b = min(a + BLOCK, stop)
        total, factor = out[a:b], room[: b - a]
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
def power_kernel(x: Any, *, exponent: int) -> Any:
    if not plain_f32(x):
        return None
    out, none = empty(x.shape), np.empty(0, f32)
    views = (flat(x), none, flat(out), exponent)
    team.run(power_range, views, x.size, LIGHT)
    return out


@kernel(power.backward)
def power_back(g: Any, x: Any, *, exponent: int, needs: tuple[bool, ...]) -> Any:
    g = whole(g)
    if exponent < 2 or g is None or not plain_f32(x):
        return None
    out = empty(x.shape)
    team.run(power_range, (flat(x), flat(g), flat(out), exponent - 1), x.size, LIGHT)
    return (out,)
