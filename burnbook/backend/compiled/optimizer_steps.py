"""Steps of the optimizers: each array is read and written once.

A step is some short loops over a block that stays in the first cache, because a loop
over many arrays at once does not run in vector registers. What is left of 1 − β is
taken in double precision, where the compiler cannot make x + β (old − x) of an average:
that is NaN where x is infinite. Memories change in place; where they are not given
away, each block of them is copied first.

Measured by W1, W2, W3 and the family optimizer_steps, of tests/bench.
"""

import math
from typing import Any

import numpy as np

from burnbook import ops
from burnbook.backend.compiled.runtime.board import share_out
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import (
    counting_part,
    f32,
    floats_at,
    kernel_code,
    part,
)
from burnbook.backend.compiled.runtime.registry import F32, kernel
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.kernels import defaults_of

GRAIN = 1 << 16
SERIAL = 1 << 17  # elements: with fewer, a second thread comes too late
POOLED = 1 << 14  # elements: fewer come from plain memory as fast
BLOCK = 1 << 10  # elements that stay in the first cache between the loops
ndarray, np_empty = np.ndarray, np.empty
NONE = np_empty(0, F32)  # in the place of what a variant does not use


def run(code: Any, inputs: tuple[Any, ...], reuse: bool, *numbers: Any) -> Any:
    """New arrays for the parameter and the memories, filled by a kernel.

    inputs: parameter, gradient, memories; None is one that this variant does not use.
    The kernel takes all of them, the new ones, each of one dim, and the numbers.
    """
    for x in inputs:
        if x is None:
            continue
        if type(x) is not ndarray or x.dtype is not F32 or not x.flags.carray:
            return None
    shape, size = inputs[0].shape, inputs[0].size
    small = size < POOLED
    outputs: list[Any] = [np_empty(shape, F32) if small else empty(shape)]
    for x in inputs[2:]:
        if x is None or reuse:
            outputs.append(x)
        else:
            outputs.append(np_empty(shape, F32) if small else empty(shape))
    before, after = (
        tuple([NONE if x is None else x.reshape(size) for x in rows])
        for rows in (inputs, outputs)
    )
    if size < SERIAL:
        code(before, after, *numbers, reuse, 0, size)
    else:
        threads.run(code, (before, after, *numbers, reuse), size, GRAIN)
    return tuple([x for x in outputs if x is not None])


@part
def copy(new, old):
    """new = old."""
    for i in range(new.size):
        new[i] = old[i]


@part
def mix(new, g, keep, rest):
    """new = keep · new + rest · g."""
    for i in range(new.size):
        new[i] = keep * new[i] + rest * g[i]


@part
def mix_square(new, g, keep, rest):
    """new = keep · new + rest · g²."""
    for i in range(new.size):
        new[i] = keep * new[i] + rest * (g[i] * g[i])


@part
def add(new, x, y, keep, factor):
    """new = keep · x + factor · y."""
    for i in range(new.size):
        new[i] = keep * x[i] + factor * y[i]


@part
def largest(new, x):
    """new = max(new, x); NaN where x is NaN."""
    for i in range(new.size):
        new[i] = new[i] if new[i] > x[i] else x[i]


@part
def move(new, p, m, v, step, scale, epsilon, keep):
    """new = keep · p − step · m / (√v · scale + epsilon)."""
    for i in range(new.size):
        new[i] = keep * p[i] - step * m[i] / (math.sqrt(v[i]) * scale + epsilon)


@part
def shrink(new, p, m, keep):
    """new = new − (1 − keep) · p where p and m have one sign."""
    rest = f32(1) - keep
    for i in range(new.size):
        same = (p[i] >= 0) == (m[i] >= 0)
        new[i] -= rest * p[i] if same else f32(0)


@kernel_code(
    "void(UniTuple(f4[::1], 5), UniTuple(f4[::1], 4), UniTuple(f8, 7), b1, b1, i8, i8)"
)
def adam_range(inputs, outputs, numbers, cautious, reuse, start, stop):
    p, g, m, v, x = inputs
    p_new, m_new, v_new, x_new = outputs
    beta_1, beta_2 = f32(numbers[1]), f32(numbers[2])
    rest_1, rest_2 = f32(1 - numbers[1]), f32(1 - numbers[2])
    step, scale, epsilon = f32(numbers[0]), f32(numbers[3]), f32(numbers[4])
    penalty, keep, one = f32(numbers[5]), f32(numbers[6]), f32(1)
    scratch = np.empty(BLOCK, f32)
    in_place = p.ctypes.data == p_new.ctypes.data
    moved = np.empty(BLOCK if in_place else 0, f32)
    for a in range(start, stop, BLOCK):
        b = min(a + BLOCK, stop)
        slope = g[a:b]
        if penalty != 0:
            slope = scratch[: b - a]
            add(slope, g[a:b], p[a:b], one, penalty)
        if not reuse:
            copy(m_new[a:b], m[a:b])
            copy(v_new[a:b], v[a:b])
            copy(x_new[a:b], x[a:b])
        mix(m_new[a:b], slope, beta_1, rest_1)
        mix_square(v_new[a:b], slope, beta_2, rest_2)
        below = v_new[a:b]
        if x.size:
            below = x_new[a:b]
            largest(below, v_new[a:b])
        now, to = one if cautious else keep, moved[: b - a]
        if not in_place:
            to = p_new[a:b]
        move(to, p[a:b], m_new[a:b], below, step, scale, epsilon, now)
        if cautious:
            shrink(to, p[a:b], m_new[a:b], keep)
        if in_place:
            copy(p_new[a:b], to)


@counting_part
def adam_piece(pieces, numbers, cautious, i):
    """The same for a piece of a parameter, in place."""
    none = np.empty(0, f32)
    size = pieces[i, 4]
    p, g = floats_at(pieces[i, 0], size), floats_at(pieces[i, 1], size)
    m, v = floats_at(pieces[i, 2], size), floats_at(pieces[i, 3], size)
    before, after = (p, g, m, v, none), (p, m, v, none)
    adam_range(before, after, numbers, cautious, True, 0, size)


@kernel_code("void(i8[::1], i8[:,::1], UniTuple(f8, 7), b1)")
def adam_pieces(board, pieces, numbers, cautious):
    """The same for all pieces of many parameters, by threads that look at the board.

    pieces: where parameter, gradient and both memories begin in memory, and how many
    elements each piece has.
    """
    share_out(board, adam_piece, (pieces, numbers, cautious), pieces.shape[0])


@defaults_of(ops.adam_step)
def adam(inputs, *, lr, beta_1, beta_2, epsilon, penalty, decay, cautious, time, reuse):
    step, scale = lr / (1 - beta_1**time), (1 - beta_2**time) ** -0.5
    numbers = (step, beta_1, beta_2, scale, epsilon, penalty, 1.0 - lr * decay)
    return run(adam_range, inputs, reuse, numbers, cautious)


@kernel(ops.adam_step)
def adam_kernel(param, grad, m, v, **attrs):
    return adam((param, grad, m, v, None), **attrs)


@kernel(ops.amsgrad_step)
def amsgrad_kernel(param, grad, m, v, x, **attrs):
    return adam((param, grad, m, v, x), **attrs)


@kernel_code(
    "void(UniTuple(f4[::1], 3), UniTuple(f4[::1], 2), UniTuple(f8, 4), b1, b1, i8, i8)"
)
def momentum_range(inputs, outputs, numbers, nesterov, reuse, start, stop):
    p, g, v = inputs
    p_new, v_new = outputs
    back, penalty, one = f32(-numbers[0]), f32(numbers[1]), f32(1)
    momentum, rest = f32(numbers[2]), f32(numbers[3])
    scratch, ahead = np.empty(BLOCK, f32), np.empty(BLOCK, f32)
    for a in range(start, stop, BLOCK):
        b = min(a + BLOCK, stop)
        slope = g[a:b]
        if penalty != 0:
            slope = scratch[: b - a]
            add(slope, g[a:b], p[a:b], one, penalty)
        if v.size == 0:
            add(p_new[a:b], p[a:b], slope, one, back)
            continue
        if not reuse:
            copy(v_new[a:b], v[a:b])
        mix(v_new[a:b], slope, momentum, rest)
        if nesterov:
            add(ahead[: b - a], slope, v_new[a:b], one, momentum)
            add(p_new[a:b], p[a:b], ahead[: b - a], one, back)
        else:
            add(p_new[a:b], p[a:b], v_new[a:b], one, back)


@kernel(ops.sgd_step)
def sgd_kernel(param, grad, *, lr, penalty):
    numbers = (lr, penalty, 0.0, 1.0)
    outputs = run(momentum_range, (param, grad, None), False, numbers, False)
    return None if outputs is None else outputs[0]


@kernel(ops.momentum_step)
def momentum_kernel(
    param, grad, velocity, *, lr, momentum, dampening, nesterov, penalty, reuse
):
    numbers = (lr, penalty, momentum, 1.0 - dampening)
    return run(momentum_range, (param, grad, velocity), reuse, numbers, nesterov)


@kernel_code(
    "void(UniTuple(f4[::1], 3), UniTuple(f4[::1], 2), UniTuple(f8, 3), b1, i8, i8)"
)
def adagrad_range(inputs, outputs, numbers, reuse, start, stop):
    p, g, s = inputs
    p_new, s_new = outputs
    lr, epsilon = f32(numbers[0]), f32(numbers[1])
    penalty, one = f32(numbers[2]), f32(1)
    scratch = np.empty(BLOCK, f32)
    for a in range(start, stop, BLOCK):
        b = min(a + BLOCK, stop)
        slope = g[a:b]
        if penalty != 0:
            slope = scratch[: b - a]
            add(slope, g[a:b], p[a:b], one, penalty)
        if not reuse:
            copy(s_new[a:b], s[a:b])
        mix_square(s_new[a:b], slope, one, one)
        move(p_new[a:b], p[a:b], slope, s_new[a:b], lr, one, epsilon, one)


@kernel(ops.adagrad_step)
def adagrad_kernel(param, grad, total, *, lr, epsilon, penalty, reuse):
    inputs, numbers = (param, grad, total), (lr, epsilon, penalty)
    return run(adagrad_range, inputs, reuse, numbers)


@part
def variance(new, s, a):
    """new = max(s − a², 0)."""
    for i in range(new.size):
        gap = s[i] - a[i] * a[i]
        new[i] = f32(0) if gap < 0 else gap


@part
def quotient(new, g, s, keep, epsilon):
    """new = keep · new + g / (√s + epsilon)."""
    for i in range(new.size):
        new[i] = keep * new[i] + g[i] / (math.sqrt(s[i]) + epsilon)


@kernel_code(
    "void(UniTuple(f4[::1], 5), UniTuple(f4[::1], 4), UniTuple(f8, 5), b1, i8, i8)"
)
def rmsprop_range(inputs, outputs, numbers, reuse, start, stop):
    p, g, s, buf, avg = inputs
    p_new, s_new, buf_new, avg_new = outputs
    lr, alpha, momentum = f32(numbers[0]), f32(numbers[1]), f32(numbers[2])
    epsilon, penalty = f32(numbers[3]), f32(numbers[4])
    rest, one = f32(1 - numbers[1]), f32(1)
    scratch, gap = np.empty(BLOCK, f32), np.empty(BLOCK, f32)
    for a in range(start, stop, BLOCK):
        b = min(a + BLOCK, stop)
        slope = g[a:b]
        if penalty != 0:
            slope = scratch[: b - a]
            add(slope, g[a:b], p[a:b], one, penalty)
        if not reuse:
            copy(s_new[a:b], s[a:b])
            copy(buf_new[a:b], buf[a:b])
            copy(avg_new[a:b], avg[a:b])
        mix_square(s_new[a:b], slope, alpha, rest)
        square = s_new[a:b]
        if avg.size:
            mix(avg_new[a:b], slope, alpha, rest)
            square = gap[: b - a]
            variance(square, s_new[a:b], avg_new[a:b])
        if buf.size:
            quotient(buf_new[a:b], slope, square, momentum, epsilon)
            add(p_new[a:b], p[a:b], buf_new[a:b], one, -lr)
        else:
            move(p_new[a:b], p[a:b], slope, square, lr, one, epsilon, one)


@defaults_of(ops.rmsprop_centered_step)
def rmsprop(inputs, *, lr, alpha, momentum, epsilon, penalty, reuse):
    numbers = (lr, alpha, momentum, epsilon, penalty)
    return run(rmsprop_range, inputs, reuse, numbers)


@kernel(ops.rmsprop_step)
def rmsprop_kernel(param, grad, square, **attrs):
    return rmsprop((param, grad, square, None, None), **attrs)


@kernel(ops.rmsprop_momentum_step)
def rmsprop_momentum_kernel(param, grad, square, buf, **attrs):
    return rmsprop((param, grad, square, buf, None), **attrs)


@kernel(ops.rmsprop_centered_step)
def rmsprop_centered_kernel(param, grad, square, buf, avg, **attrs):
    return rmsprop((param, grad, square, buf, avg), **attrs)


@part
def opposite(new, x):
    """new = −x."""
    for i in range(new.size):
        new[i] = -x[i]


@part
def adan_direction(new, m, w, n, scales, epsilon):
    """new = (scales₀ · m + scales₁ · w) / (√n · scales₂ + epsilon)."""
    first, second, scale = scales
    for i in range(new.size):
        under = math.sqrt(n[i]) * scale + epsilon
        new[i] = (first * m[i] + second * w[i]) / under


@kernel_code(
    "void(UniTuple(f4[::1], 6), UniTuple(f4[::1], 5), UniTuple(f8, 9), b1, i8, i8)"
)
def adan_range(inputs, outputs, numbers, reuse, start, stop):
    p, g, m, n, w, pre = inputs
    p_new, m_new, n_new, w_new, pre_new = outputs
    scales = f32(numbers[0]), f32(numbers[1]), f32(numbers[2])
    beta_1, beta_2, beta_3 = f32(numbers[3]), f32(numbers[4]), f32(numbers[5])
    rest_1, rest_2 = f32(1 - numbers[3]), f32(1 - numbers[4])
    rest_3, one, epsilon = f32(1 - numbers[5]), f32(1), f32(numbers[6])
    keep_p, back_u = f32(numbers[7]), f32(-numbers[8])
    scratch, ahead = np.empty(BLOCK, f32), np.empty(BLOCK, f32)
    for a in range(start, stop, BLOCK):
        b = min(a + BLOCK, stop)
        change, slope = scratch[: b - a], g[a:b]
        if not reuse:
            copy(m_new[a:b], m[a:b])
            copy(n_new[a:b], n[a:b])
            copy(w_new[a:b], w[a:b])
        mix(m_new[a:b], slope, beta_1, rest_1)
        add(change, pre[a:b], slope, one, one)
        mix(w_new[a:b], change, beta_2, rest_2)
        add(ahead[: b - a], slope, change, one, beta_2)
        mix_square(n_new[a:b], ahead[: b - a], beta_3, rest_3)
        adan_direction(change, m_new[a:b], w_new[a:b], n_new[a:b], scales, epsilon)
        add(p_new[a:b], p[a:b], change, keep_p, back_u)
        opposite(pre_new[a:b], slope)


@kernel(ops.adan_step)
def adan_kernel(
    *inputs, lr, beta_1, beta_2, beta_3, epsilon, decay, no_prox, time, reuse
):
    first, second = lr / (1 - beta_1**time), lr * beta_2 / (1 - beta_2**time)
    scale, keep = (1 - beta_3**time) ** -0.5, 1 / (1 + lr * decay)
    keeps = (1.0 - lr * decay, 1.0) if no_prox else (keep, keep)
    numbers = (first, second, scale, beta_1, beta_2, beta_3, epsilon, *keeps)
    return run(adan_range, inputs, reuse, numbers)
