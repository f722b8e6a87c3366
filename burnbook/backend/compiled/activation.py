"""Advanced · Performance. Relu and its gradient, each in one pass."""

from typing import Any

from burnbook.backend.compiled.buffers import empty
from burnbook.backend.compiled.jit import f32, kernel_code
from burnbook.backend.compiled.registry import flat, kernel, plain_f32
from burnbook.backend.compiled.team import team
from burnbook.ops.elementwise import relu

GRAIN = 1 << 15


@kernel_code("void(f4[::1], f4[::1], i8, i8)")
def relu_range(x: Any, out: Any, start: int, stop: int) -> None:
    x, out = x[start:stop], out[start:stop]
    for i in range(x.size):
        u = x[i]
        out[i] = f32(0) if u < f32(0) else u  # NaN stays


@kernel_code("void(f4[::1], f4[::1], f4[::1], i8, i8)")
def relu_back_range(g: Any, y: Any, out: Any, start: int, stop: int) -> None:
    g, y, out = g[start:stop], y[start:stop], out[start:stop]
    for i in range(g.size):
        out[i] = g[i] * (f32(1) if y[i] > f32(0) else f32(0))


@kernel(relu)
def relu_kernel(x: Any) -> Any:
    if not plain_f32(x):
        return None
    out = empty(x.shape)
    team.run(relu_range, (flat(x), flat(out)), x.size, GRAIN)
    return out


@kernel(relu.backward)
def relu_backward(g: Any, y: Any, *, needs: tuple[bool, ...]) -> Any:
    if not (plain_f32(g) and plain_f32(y)):
        return None
    out = empty(g.shape)
    team.run(relu_back_range, (flat(g), flat(y), flat(out)), g.size, GRAIN)
    return (out,)
