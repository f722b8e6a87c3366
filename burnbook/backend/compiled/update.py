"""Advanced · Performance. A step of Adam: four reads and three writes per parameter."""

import math
from typing import Any

from burnbook.backend.compiled.buffers import empty
from burnbook.backend.compiled.jit import f32, kernel_code, part
from burnbook.backend.compiled.registry import flat, kernel, plain_f32
from burnbook.backend.compiled.team import team
from burnbook.ops.update import adam_step

GRAIN = 1 << 14
BLOCK = 1 << 10  # elements that stay in the first cache between the three loops


@part
def average(new: Any, old: Any, g: Any, beta: Any) -> None:
    """new = beta · old + (1 − beta) · g."""
    rest = f32(1) - beta
    for i in range(new.size):
        new[i] = beta * old[i] + rest * g[i]


@part
def average_square(new: Any, old: Any, g: Any, beta: Any) -> None:
    """new = beta · old + (1 − beta) · g²."""
    rest = f32(1) - beta
    for i in range(new.size):
        new[i] = beta * old[i] + rest * (g[i] * g[i])


@part
def move(new: Any, p: Any, m: Any, v: Any, step: Any, scale: Any, epsilon: Any) -> None:
    """new = p − step · m / (√v · scale + epsilon)."""
    for i in range(new.size):
        new[i] = p[i] - step * m[i] / (math.sqrt(v[i]) * scale + epsilon)


@kernel_code(
    "void(f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], "
    "f4, f4, f4, f4, f4, i8, i8)"
)
def adam_range(
    p: Any,
    g: Any,
    m: Any,
    v: Any,
    p_new: Any,
    m_new: Any,
    v_new: Any,
    step: Any,
    beta_1: Any,
    beta_2: Any,
    scale: Any,
    epsilon: Any,
    start: int,
    stop: int,
) -> None:
    for a in range(start, stop, BLOCK):
        b = min(a + BLOCK, stop)
        average(m_new[a:b], m[a:b], g[a:b], beta_1)
        average_square(v_new[a:b], v[a:b], g[a:b], beta_2)
        move(p_new[a:b], p[a:b], m_new[a:b], v_new[a:b], step, scale, epsilon)


@kernel(adam_step)
def adam_kernel(
    param: Any,
    grad: Any,
    moment_1: Any,
    moment_2: Any,
    *,
    lr: float = 1e-3,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-5,
    time: int,
) -> Any:
    olds = (param, grad, moment_1, moment_2)
    if not all(map(plain_f32, olds)):
        return None
    news = tuple([empty(param.shape) for _ in range(3)])
    numbers = (
        f32(lr / (1 - beta_1**time)),
        f32(beta_1),
        f32(beta_2),
        f32((1 - beta_2**time) ** -0.5),
        f32(epsilon),
    )
    args = (*map(flat, olds), *map(flat, news), *numbers)
    team.run(adam_range, args, param.size, GRAIN)
    return news
