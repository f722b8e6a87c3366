"""Advanced · Performance. Steps of the optimizers: each array goes by once.

A step is some short loops over a block that stays in the first cache, because a loop
over many arrays at once does not run in vector registers. What is left of 1 − β is
taken in double precision, where the compiler cannot make x + β (old − x) of an average:
that is NaN where x is infinite.
"""

import math
from typing import Any

import numpy as np

from burnbook.backend.compiled.buffers import empty
from burnbook.backend.compiled.jit import f32, kernel_code, part
from burnbook.backend.compiled.registry import F32, kernel
from burnbook.backend.compiled.team import team
from burnbook.ops.update import (
    adagrad_step,
    adam_step,
    adan_step,
    amsgrad_step,
    momentum_step,
    rmsprop_centered_step,
    rmsprop_momentum_step,
    rmsprop_step,
    sgd_step,
)

GRAIN = 1 << 14
SERIAL = 1 << 14
BLOCK = 1 << 10  # elements that stay in the first cache between the loops
ndarray, np_empty = np.ndarray, np.empty
NONE = np_empty(0, F32)  # in the place of what a variant does not use


def run(
    code: Any, olds: tuple[Any, ...], places: tuple[int, ...], *numbers: Any
) -> Any:
    """New arrays like the old ones at these places, filled by a kernel.

    The kernel takes the old arrays and the new ones, of one dim each, and the numbers;
    None in the place of an array is one that this variant does not use.
    """
    for x in olds:
        if x is None:
            continue
        if type(x) is not ndarray or x.dtype is not F32 or not x.flags.carray:
            return None
    shape, size = olds[0].shape, olds[0].size
    if size < SERIAL:  # one thread and plain memory are as fast
        news = [None if olds[i] is None else np_empty(shape, F32) for i in places]
    else:
        news = [None if olds[i] is None else empty(shape) for i in places]
    rows = [NONE if x is None else x.reshape(size) for x in (*olds, *news)]
    if size < SERIAL:
        code(*rows, *numbers, 0, size)
    else:
        team.run(code, (*rows, *numbers), size, GRAIN)
    return news


@part
def decayed(out: Any, g: Any, p: Any, penalty: Any) -> None:
    """out = g + penalty · p."""
    for i in range(out.size):
        out[i] = g[i] + penalty * p[i]


@part
def mix(new: Any, old: Any, g: Any, keep: Any, rest: Any) -> None:
    """new = keep · old + rest · g."""
    for i in range(new.size):
        new[i] = keep * old[i] + rest * g[i]


@part
def mix_square(new: Any, old: Any, g: Any, keep: Any, rest: Any) -> None:
    """new = keep · old + rest · g²."""
    for i in range(new.size):
        new[i] = keep * old[i] + rest * (g[i] * g[i])


@part
def largest(new: Any, old: Any, x: Any) -> None:
    """new = max(old, x); NaN where x is NaN."""
    for i in range(new.size):
        new[i] = old[i] if old[i] > x[i] else x[i]


@part
def move(
    new: Any, p: Any, m: Any, v: Any, step: Any, scale: Any, epsilon: Any, keep: Any
) -> None:
    """new = keep · p − step · m / (√v · scale + epsilon)."""
    for i in range(new.size):
        new[i] = keep * p[i] - step * m[i] / (math.sqrt(v[i]) * scale + epsilon)


@part
def shrink(new: Any, p: Any, m: Any, keep: Any) -> None:
    """new = new − (1 − keep) · p where p and m have one sign."""
    rest = f32(1) - keep
    for i in range(new.size):
        same = (p[i] >= 0) == (m[i] >= 0)
        new[i] -= rest * p[i] if same else f32(0)


@kernel_code(
    "void(f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], "
    "f4[::1], f8, f8, f8, f8, f8, f8, f8, b1, i8, i8)"
)
def adam_range(
    p: Any,
    g: Any,
    m: Any,
    v: Any,
    x: Any,
    p_new: Any,
    m_new: Any,
    v_new: Any,
    x_new: Any,
    step: Any,
    beta_1: Any,
    beta_2: Any,
    scale: Any,
    epsilon: Any,
    penalty: Any,
    keep: Any,
    cautious: bool,
    start: int,
    stop: int,
) -> None:
    rest_1, rest_2 = f32(1 - beta_1), f32(1 - beta_2)
    step, beta_1, beta_2, scale = f32(step), f32(beta_1), f32(beta_2), f32(scale)
    epsilon, penalty, keep = f32(epsilon), f32(penalty), f32(keep)
    room = np.empty(BLOCK, f32)
    for a in range(start, stop, BLOCK):
        b = min(a + BLOCK, stop)
        slope = g[a:b]
        if penalty != 0:
            slope = room[: b - a]
            decayed(slope, g[a:b], p[a:b], penalty)
        mix(m_new[a:b], m[a:b], slope, beta_1, rest_1)
        mix_square(v_new[a:b], v[a:b], slope, beta_2, rest_2)
        below = v_new[a:b]
        if x.size:
            below = x_new[a:b]
            largest(below, x[a:b], v_new[a:b])
        now = f32(1) if cautious else keep
        move(p_new[a:b], p[a:b], m_new[a:b], below, step, scale, epsilon, now)
        if cautious:
            shrink(p_new[a:b], p[a:b], m_new[a:b], keep)


def adam_numbers(
    lr: float = 1e-3,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-5,
    penalty: float = 0.0,
    decay: float = 0.0,
    cautious: bool = False,
    time: int = 1,
) -> tuple[Any, ...]:
    return (
        lr / (1 - beta_1**time),
        beta_1,
        beta_2,
        (1 - beta_2**time) ** -0.5,
        epsilon,
        penalty,
        1 - lr * decay,
        cautious,
    )


@kernel(adam_step)
def adam_kernel(param: Any, grad: Any, m: Any, v: Any, **attrs: Any) -> Any:
    olds = (param, grad, m, v, None)
    news = run(adam_range, olds, (0, 2, 3, 4), *adam_numbers(**attrs))
    return None if news is None else tuple(news[:3])


@kernel(amsgrad_step)
def amsgrad_kernel(param: Any, grad: Any, m: Any, v: Any, x: Any, **attrs: Any) -> Any:
    olds = (param, grad, m, v, x)
    news = run(adam_range, olds, (0, 2, 3, 4), *adam_numbers(**attrs))
    return None if news is None else tuple(news)


@kernel_code(
    "void(f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f8, f8, f8, f8, b1, i8, i8)"
)
def momentum_range(
    p: Any,
    g: Any,
    v: Any,
    p_new: Any,
    v_new: Any,
    lr: Any,
    penalty: Any,
    momentum: Any,
    rest: Any,
    nesterov: bool,
    start: int,
    stop: int,
) -> None:
    lr, penalty, momentum, rest = f32(lr), f32(penalty), f32(momentum), f32(rest)
    room, ahead = np.empty(BLOCK, f32), np.empty(BLOCK, f32)
    for a in range(start, stop, BLOCK):
        b = min(a + BLOCK, stop)
        slope = g[a:b]
        if penalty != 0:
            slope = room[: b - a]
            decayed(slope, g[a:b], p[a:b], penalty)
        if v.size == 0:
            mix(p_new[a:b], slope, p[a:b], -lr, f32(1))
            continue
        mix(v_new[a:b], v[a:b], slope, momentum, rest)
        if nesterov:
            mix(ahead[: b - a], v_new[a:b], slope, momentum, f32(1))
            mix(p_new[a:b], ahead[: b - a], p[a:b], -lr, f32(1))
        else:
            mix(p_new[a:b], v_new[a:b], p[a:b], -lr, f32(1))


@kernel(sgd_step)
def sgd_kernel(param: Any, grad: Any, *, lr: float, penalty: float = 0.0) -> Any:
    numbers = (lr, penalty, 0.0, 1.0, False)
    news = run(momentum_range, (param, grad, None), (0, 2), *numbers)
    return None if news is None else news[0]


@kernel(momentum_step)
def momentum_kernel(
    param: Any,
    grad: Any,
    velocity: Any,
    *,
    lr: float,
    momentum: float = 0.9,
    dampening: float = 0.0,
    nesterov: bool = False,
    penalty: float = 0.0,
) -> Any:
    numbers = (lr, penalty, momentum, 1 - dampening, nesterov)
    news = run(momentum_range, (param, grad, velocity), (0, 2), *numbers)
    return None if news is None else tuple(news)


@part
def add_square(new: Any, old: Any, g: Any) -> None:
    """new = old + g²."""
    for i in range(new.size):
        new[i] = old[i] + g[i] * g[i]


@kernel_code("void(f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f8, f8, f8, i8, i8)")
def adagrad_range(
    p: Any,
    g: Any,
    s: Any,
    p_new: Any,
    s_new: Any,
    lr: Any,
    epsilon: Any,
    penalty: Any,
    start: int,
    stop: int,
) -> None:
    lr, epsilon, penalty = f32(lr), f32(epsilon), f32(penalty)
    room = np.empty(BLOCK, f32)
    one = f32(1)
    for a in range(start, stop, BLOCK):
        b = min(a + BLOCK, stop)
        slope = g[a:b]
        if penalty != 0:
            slope = room[: b - a]
            decayed(slope, g[a:b], p[a:b], penalty)
        add_square(s_new[a:b], s[a:b], slope)
        move(p_new[a:b], p[a:b], slope, s_new[a:b], lr, one, epsilon, one)


@kernel(adagrad_step)
def adagrad_kernel(
    param: Any,
    grad: Any,
    total: Any,
    *,
    lr: float,
    epsilon: float = 1e-5,
    penalty: float = 0.0,
) -> Any:
    olds = (param, grad, total)
    news = run(adagrad_range, olds, (0, 2), lr, epsilon, penalty)
    return None if news is None else tuple(news)


@part
def spread(new: Any, s: Any, a: Any) -> None:
    """new = s − a²."""
    for i in range(new.size):
        new[i] = s[i] - a[i] * a[i]


@part
def quotient(new: Any, old: Any, g: Any, s: Any, keep: Any, epsilon: Any) -> None:
    """new = keep · old + g / (√max(s, 0) + epsilon)."""
    for i in range(new.size):
        square = f32(0) if s[i] < 0 else s[i]
        new[i] = keep * old[i] + g[i] / (math.sqrt(square) + epsilon)


@kernel_code(
    "void(f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], "
    "f4[::1], f4[::1], f8, f8, f8, f8, f8, i8, i8)"
)
def rmsprop_range(
    p: Any,
    g: Any,
    s: Any,
    buf: Any,
    avg: Any,
    p_new: Any,
    s_new: Any,
    buf_new: Any,
    avg_new: Any,
    centered: Any,
    lr: Any,
    alpha: Any,
    momentum: Any,
    epsilon: Any,
    penalty: Any,
    start: int,
    stop: int,
) -> None:
    rest = f32(1 - alpha)
    lr, alpha, momentum, epsilon = f32(lr), f32(alpha), f32(momentum), f32(epsilon)
    penalty = f32(penalty)
    room = np.empty(BLOCK, f32)
    for a in range(start, stop, BLOCK):
        b = min(a + BLOCK, stop)
        slope = g[a:b]
        if penalty != 0:
            slope = room[: b - a]
            decayed(slope, g[a:b], p[a:b], penalty)
        mix_square(s_new[a:b], s[a:b], slope, alpha, rest)
        square = s_new[a:b]
        if avg.size:
            mix(avg_new[a:b], avg[a:b], slope, alpha, rest)
            square = centered[a:b]
            spread(square, s_new[a:b], avg_new[a:b])
        if buf.size:
            quotient(buf_new[a:b], buf[a:b], slope, square, momentum, epsilon)
            mix(p_new[a:b], buf_new[a:b], p[a:b], -lr, f32(1))
        else:
            one = f32(1)
            move(p_new[a:b], p[a:b], slope, square, lr, one, epsilon, one)


def rmsprop(
    olds: tuple[Any, ...],
    *,
    lr: float,
    alpha: float = 0.99,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    penalty: float = 0.0,
) -> Any:
    numbers = (lr, alpha, momentum, epsilon, penalty)
    return run(rmsprop_range, olds, (0, 2, 3, 4, 4), *numbers)


@kernel(rmsprop_step)
def rmsprop_kernel(param: Any, grad: Any, square: Any, **attrs: Any) -> Any:
    news = rmsprop((param, grad, square, None, None), **attrs)
    return None if news is None else tuple(news[:2])


@kernel(rmsprop_momentum_step)
def rmsprop_momentum_kernel(
    param: Any, grad: Any, square: Any, buf: Any, **attrs: Any
) -> Any:
    news = rmsprop((param, grad, square, buf, None), **attrs)
    return None if news is None else tuple(news[:3])


@kernel(rmsprop_centered_step)
def rmsprop_centered_kernel(
    param: Any, grad: Any, square: Any, buf: Any, avg: Any, **attrs: Any
) -> Any:
    news = rmsprop((param, grad, square, buf, avg), **attrs)
    return None if news is None else tuple(news)


@part
def opposite(new: Any, x: Any) -> None:
    """new = −x."""
    for i in range(new.size):
        new[i] = -x[i]


@part
def toward(
    new: Any, m: Any, w: Any, n: Any, first: Any, second: Any, scale: Any, epsilon: Any
) -> None:
    """new = (first · m + second · w) / (√n · scale + epsilon)."""
    for i in range(new.size):
        under = math.sqrt(n[i]) * scale + epsilon
        new[i] = (first * m[i] + second * w[i]) / under


@kernel_code(
    "void(f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], "
    "f4[::1], f4[::1], f4[::1], f8, f8, f8, f8, f8, f8, f8, f8, f8, i8, i8)"
)
def adan_range(
    p: Any,
    g: Any,
    m: Any,
    n: Any,
    w: Any,
    pre: Any,
    p_new: Any,
    m_new: Any,
    n_new: Any,
    w_new: Any,
    pre_new: Any,
    first: Any,
    second: Any,
    scale: Any,
    beta_1: Any,
    beta_2: Any,
    beta_3: Any,
    epsilon: Any,
    keep_p: Any,
    keep_u: Any,
    start: int,
    stop: int,
) -> None:
    rest_1, rest_2, rest_3 = f32(1 - beta_1), f32(1 - beta_2), f32(1 - beta_3)
    first, second, scale, beta_1 = f32(first), f32(second), f32(scale), f32(beta_1)
    beta_2, beta_3, epsilon, keep_p = (
        f32(beta_2),
        f32(beta_3),
        f32(epsilon),
        f32(keep_p),
    )
    keep_u = f32(keep_u)
    room = np.empty(BLOCK, f32)
    one = f32(1)
    for a in range(start, stop, BLOCK):
        b = min(a + BLOCK, stop)
        t = room[: b - a]
        mix(m_new[a:b], m[a:b], g[a:b], beta_1, rest_1)
        mix(t, pre[a:b], g[a:b], one, one)
        mix(w_new[a:b], w[a:b], t, beta_2, rest_2)
        mix(pre_new[a:b], t, g[a:b], beta_2, one)
        mix_square(n_new[a:b], n[a:b], pre_new[a:b], beta_3, rest_3)
        toward(t, m_new[a:b], w_new[a:b], n_new[a:b], first, second, scale, epsilon)
        mix(p_new[a:b], p[a:b], t, keep_p, -keep_u)
        opposite(pre_new[a:b], g[a:b])


@kernel(adan_step)
def adan_kernel(
    param: Any,
    grad: Any,
    exp_avg: Any,
    exp_avg_sq: Any,
    exp_avg_diff: Any,
    neg_pre_grad: Any,
    *,
    lr: float = 1e-3,
    beta_1: float = 0.98,
    beta_2: float = 0.92,
    beta_3: float = 0.99,
    epsilon: float = 1e-8,
    decay: float = 0.0,
    no_prox: bool = False,
    time: int,
) -> Any:
    keep = 1 - lr * decay if no_prox else 1 / (1 + lr * decay)
    numbers = (
        lr / (1 - beta_1**time),
        lr * beta_2 / (1 - beta_2**time),
        (1 - beta_3**time) ** -0.5,
        beta_1,
        beta_2,
        beta_3,
        epsilon,
        keep,
        1.0 if no_prox else keep,
    )
    olds = (param, grad, exp_avg, exp_avg_sq, exp_avg_diff, neg_pre_grad)
    news = run(adan_range, olds, (0, 2, 3, 4, 5), *numbers)
    return None if news is None else tuple(news)
