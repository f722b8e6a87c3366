"""Parameter updates in one pass over the memory.

An optimizer reads a parameter, its gradient and what it remembers of older gradients,
and writes the new ones; what is given stays as it is, unless the memories are given
away: with `reuse` the new ones take their place. In all of them `penalty`, L2 weight
decay, is added to the gradient first: g ← g + penalty p.
"""

from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import above, normal, op, positive, unit
from burnbook.ops.blocked import (
    add_penalty,
    average,
    in_blocks,
    same_shapes,
    sqrt_plus,
)


@op("FF>F", check=same_shapes, method=False, takes_half=True)
def sgd_step(
    xp: ArrayNamespace, param: Array, grad: Array, *, lr: float, penalty: float = 0.0
) -> Array:
    """One step down the slope: p ← p − lr g.

    Shapes: param [...], grad [...] -> [...]
    """

    def block(part: Array) -> None:
        (p, g), (p_new,), (scratch,) = part
        xp.multiply(add_penalty(xp, g, p, penalty, scratch), lr, out=scratch)
        xp.subtract(p, scratch, out=p_new)

    return in_blocks(xp, [param, grad], False, 1, block)[0]


sgd_step.examples(
    samples=[
        (normal(3, 4), normal(3, 4), {"lr": 0.1}),
        (normal(5), normal(5), {"lr": 0.1, "penalty": 0.5}),
    ],
    rejects=[(normal(3, 4), normal(4), {"lr": 0.1})],
)


@op("FFF>FF", check=same_shapes, method=False, takes_half=True)
def momentum_step(
    xp: ArrayNamespace,
    param: Array,
    grad: Array,
    velocity: Array,
    *,
    lr: float,
    momentum: float = 0.9,
    dampening: float = 0.0,
    nesterov: bool = False,
    penalty: float = 0.0,
    reuse: bool = False,
) -> Any:
    """One step with momentum μ: v ← μv + (1−dampening) g, p ← p − lr v.

    Nesterov looks one step ahead: p ← p − lr (μv + g), with the new v.

    Shapes: param [...], grad [...], velocity [...] -> [...], [...]
    """
    inputs = [param, grad, velocity]

    def block(part: Array) -> None:
        (p, g, v), (p_new, v_new), (scratch, t) = part
        g = add_penalty(xp, g, p, penalty, scratch)
        xp.multiply(g, 1 - dampening, out=t)
        xp.multiply(v, momentum, out=v_new)
        xp.add(v_new, t, out=v_new)
        if nesterov:
            xp.multiply(v_new, momentum, out=t)
            xp.add(t, g, out=t)
            xp.multiply(t, lr, out=t)
        else:
            xp.multiply(v_new, lr, out=t)
        xp.subtract(p, t, out=p_new)

    return in_blocks(xp, inputs, reuse, 2, block)


momentum_step.examples(
    samples=[
        (normal(3, 4), normal(3, 4), normal(3, 4), {"lr": 0.1}),
        (
            *(normal(5), normal(5), normal(5)),
            {"lr": 0.1, "penalty": 0.5, "dampening": 0.1, "nesterov": True},
        ),
    ],
    rejects=[(normal(3, 4), normal(3, 4), normal(3), {"lr": 0.1})],
)


@op("FFFF>FFF", check=same_shapes, method=False, takes_half=True)
def adam_step(
    xp: ArrayNamespace,
    param: Array,
    grad: Array,
    moment_1: Array,
    moment_2: Array,
    *,
    lr: float = 1e-3,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-5,
    penalty: float = 0.0,
    decay: float = 0.0,
    cautious: bool = False,
    time: int,
    reuse: bool = False,
) -> Any:
    """One step of Adam: m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g²,
    p ← p − lr m̂ / (√v̂ + ε), where m̂ = m / (1−β₁ᵗ) and v̂ = v / (1−β₂ᵗ).

    AdamW takes lr · decay · p off as well (cautious: where p and m have one sign).

    Shapes: param [...], grad [...], moment_1 [...], moment_2 [...] -> [...], [...], [...]
    Why: m and v start at zero and are too small at first; dividing corrects that.
    """
    inputs = [param, grad, moment_1, moment_2]
    factors = (beta_1, beta_2, epsilon, penalty)
    return adam(xp, inputs, lr, *factors, decay, cautious, time, reuse)


adam_step.examples(
    samples=[
        (normal(3, 4), normal(3, 4), normal(3, 4), positive(3, 4), {"time": 3}),
        (
            *(normal(5), normal(5), normal(5), positive(5)),
            {"time": 2, "lr": 0.1, "penalty": 0.3},
        ),
        (
            *(normal(30), normal(30), normal(30), positive(30)),
            {"time": 2, "lr": 0.1, "decay": 0.5, "cautious": True},
        ),
    ],
    rejects=[(normal(3, 4), normal(3), normal(3, 4), positive(3, 4), {"time": 3})],
)


@op("FFFFF>FFFF", check=same_shapes, method=False, takes_half=True)
def amsgrad_step(
    xp: ArrayNamespace,
    param: Array,
    grad: Array,
    moment_1: Array,
    moment_2: Array,
    max_moment_2: Array,
    *,
    lr: float = 1e-3,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-5,
    penalty: float = 0.0,
    decay: float = 0.0,
    cautious: bool = False,
    time: int,
    reuse: bool = False,
) -> Any:
    """One step of Adam that divides by the largest v so far: x ← max(x, v).

    Shapes: param [...], grad [...], moment_1 [...], moment_2 [...], max_moment_2 [...] -> [...], [...], [...], [...]
    """
    inputs = [param, grad, moment_1, moment_2, max_moment_2]
    factors = (beta_1, beta_2, epsilon, penalty)
    return adam(xp, inputs, lr, *factors, decay, cautious, time, reuse)


amsgrad_step.examples(
    samples=[
        (
            *(normal(5), normal(5), normal(5), positive(5), positive(5)),
            {"time": 2, "lr": 0.1, "penalty": 0.3},
        ),
    ],
    rejects=[
        (
            *(normal(5), normal(5), normal(5), positive(5), positive(4)),
            {"time": 2},
        )
    ],
)


def adam(
    xp: ArrayNamespace,
    inputs: list[Any],
    lr: float,
    beta_1: float,
    beta_2: float,
    epsilon: float,
    penalty: float,
    decay: float,
    cautious: bool,
    time: int,
    reuse: bool,
) -> tuple[Any, ...]:
    """Both forms of Adam: what they remember is [m, v] or [m, v, x]."""
    correction = (1 - beta_2**time) ** 0.5  # of √v: here it moves to what is above it
    step, epsilon = lr / (1 - beta_1**time) * correction, epsilon * correction

    def block(part: Array) -> None:
        (p, g, m, v, *top), new, (scratch, t) = part
        p_new, m_new, v_new, *top_new = new
        g = add_penalty(xp, g, p, penalty, scratch)
        average(xp, m, g, beta_1, m_new, t)
        xp.multiply(g, g, out=t)
        average(xp, v, t, beta_2, v_new, t)
        if top:
            v_new = xp.maximum(top[0], v_new, out=top_new[0])
        sqrt_plus(xp, v_new, epsilon, t)
        xp.divide(m_new, t, out=t)
        xp.multiply(t, step, out=t)
        if decay:
            xp.multiply(p, 1 - lr * decay, out=scratch)
            p = xp.where((p >= 0) == (m_new >= 0), scratch, p) if cautious else scratch
        xp.subtract(p, t, out=p_new)

    return in_blocks(xp, inputs, reuse, 2, block)


@op("FFF>FF", check=same_shapes, method=False, takes_half=True)
def adagrad_step(
    xp: ArrayNamespace,
    param: Array,
    grad: Array,
    total: Array,
    *,
    lr: float,
    epsilon: float = 1e-5,
    penalty: float = 0.0,
    reuse: bool = False,
) -> Any:
    """One step of AdaGrad: s ← s + g², p ← p − lr g / (√s + ε).

    Shapes: param [...], grad [...], total [...] -> [...], [...]
    """
    inputs = [param, grad, total]

    def block(part: Array) -> None:
        (p, g, s), (p_new, s_new), (scratch, t) = part
        g = add_penalty(xp, g, p, penalty, scratch)
        xp.multiply(g, g, out=t)
        xp.add(s, t, out=s_new)
        sqrt_plus(xp, s_new, epsilon, t)
        xp.divide(g, t, out=t)
        xp.multiply(t, lr, out=t)
        xp.subtract(p, t, out=p_new)

    return in_blocks(xp, inputs, reuse, 2, block)


adagrad_step.examples(
    samples=[
        (normal(3, 4), normal(3, 4), positive(3, 4), {"lr": 0.1}),
        (normal(5), normal(5), positive(5), {"lr": 0.1, "penalty": 0.5}),
    ],
    rejects=[(normal(3, 4), normal(3, 4), positive(3), {"lr": 0.1})],
)


@op("FFF>FF", check=same_shapes, method=False, takes_half=True)
def rmsprop_step(
    xp: ArrayNamespace,
    param: Array,
    grad: Array,
    square_avg: Array,
    *,
    lr: float,
    alpha: float = 0.99,
    epsilon: float = 1e-5,
    penalty: float = 0.0,
    reuse: bool = False,
) -> Any:
    """One step of RMSProp: s ← αs + (1−α)g², p ← p − lr g / (√s + ε).

    Shapes: param [...], grad [...], square_avg [...] -> [...], [...]
    """
    inputs = [param, grad, square_avg]
    return rmsprop(xp, inputs, lr, alpha, 0.0, epsilon, penalty, reuse)


rmsprop_step.examples(
    samples=[
        (normal(3, 4), normal(3, 4), positive(3, 4), {"lr": 0.1}),
        (normal(5), normal(5), positive(5), {"lr": 0.1, "penalty": 0.5}),
    ],
    rejects=[(normal(3, 4), normal(3, 4), positive(3), {"lr": 0.1})],
)


@op("FFFF>FFF", check=same_shapes, method=False, takes_half=True)
def rmsprop_momentum_step(
    xp: ArrayNamespace,
    param: Array,
    grad: Array,
    square_avg: Array,
    buf: Array,
    *,
    lr: float,
    alpha: float = 0.99,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    penalty: float = 0.0,
    reuse: bool = False,
) -> Any:
    """RMSProp with momentum: s ← αs + (1−α)g², b ← μb + g / (√s + ε), p ← p − lr b.

    Shapes: param [...], grad [...], square_avg [...], buf [...] -> [...], [...], [...]
    """
    inputs = [param, grad, square_avg, buf]
    return rmsprop(xp, inputs, lr, alpha, momentum, epsilon, penalty, reuse)


rmsprop_momentum_step.examples(
    samples=[
        (
            *(normal(5), normal(5), positive(5), normal(5)),
            {"lr": 0.1, "momentum": 0.8, "penalty": 0.1},
        ),
    ],
    rejects=[(normal(5), normal(5), positive(5), normal(1), {"lr": 0.1})],
)


@op("FFFFF>FFFF", check=same_shapes, method=False, takes_half=True)
def rmsprop_centered_step(
    xp: ArrayNamespace,
    param: Array,
    grad: Array,
    square_avg: Array,
    buf: Array,
    grad_avg: Array,
    *,
    lr: float,
    alpha: float = 0.99,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    penalty: float = 0.0,
    reuse: bool = False,
) -> Any:
    """RMSProp by the spread: a ← αa + (1−α)g, and c = s − a² in place of s.

    Shapes: param [...], grad [...], square_avg [...], buf [...], grad_avg [...] -> [...], [...], [...], [...]
    Why: rounding may put s − a² below zero; under the root it counts as zero then.
    """
    inputs = [param, grad, square_avg, buf, grad_avg]
    return rmsprop(xp, inputs, lr, alpha, momentum, epsilon, penalty, reuse)


rmsprop_centered_step.examples(
    samples=[
        (
            *(normal(5), normal(5), above(4, 5), normal(5), unit(5)),
            {"lr": 0.1, "momentum": 0.8, "alpha": 0.7},
        ),
    ],
    rejects=[(normal(5), normal(5), positive(5), normal(5), normal(1), {"lr": 0.1})],
)


def rmsprop(
    xp: ArrayNamespace,
    inputs: list[Any],
    lr: float,
    alpha: float,
    momentum: float,
    epsilon: float,
    penalty: float,
    reuse: bool,
) -> tuple[Any, ...]:
    """All forms of RMSProp: what they remember is [s], [s, b] or [s, b, a]."""

    def block(part: Array) -> None:
        (p, g, s, *more), (p_new, s_new, *made), (scratch, t) = part
        g = add_penalty(xp, g, p, penalty, scratch)
        xp.multiply(g, g, out=t)
        average(xp, s, t, alpha, s_new, t)
        spread = s_new
        if len(more) == 2:
            average(xp, more[1], g, alpha, made[1], t)
            xp.multiply(made[1], made[1], out=t)
            xp.subtract(s_new, t, out=t)
            spread = xp.maximum(t, 0, out=t)
        sqrt_plus(xp, spread, epsilon, t)
        xp.divide(g, t, out=t)
        if more:
            xp.multiply(more[0], momentum, out=made[0])
            t = xp.add(made[0], t, out=made[0])
        xp.multiply(t, lr, out=scratch)
        xp.subtract(p, scratch, out=p_new)

    return in_blocks(xp, inputs, reuse, 2, block)


@op("FFFFFF>FFFFF", check=same_shapes, method=False, takes_half=True)
def adan_step(
    xp: ArrayNamespace,
    param: Array,
    grad: Array,
    exp_avg: Array,
    exp_avg_sq: Array,
    exp_avg_diff: Array,
    neg_pre_grad: Array,
    *,
    lr: float = 1e-3,
    beta_1: float = 0.98,
    beta_2: float = 0.92,
    beta_3: float = 0.99,
    epsilon: float = 1e-8,
    decay: float = 0.0,
    no_prox: bool = False,
    time: int,
    reuse: bool = False,
) -> Any:
    """One step of Adan, with d = g − the gradient before:
    m ← β₁m + (1−β₁)g, w ← β₂w + (1−β₂)d, n ← β₃n + (1−β₃)(g + β₂d)²,
    u = (m̂ + β₂ŵ) / (√n̂ + ε), p ← (p − lr u) / (1 + lr decay).

    no_prox decays as AdamW does: p ← (1 − lr decay) p − lr u.

    Shapes: param [...], grad [...], exp_avg [...], exp_avg_sq [...], exp_avg_diff [...], neg_pre_grad [...] -> [...], [...], [...], [...], [...]
    """
    correction = (1 - beta_3**time) ** 0.5  # of √n: here it moves to what is above it
    first = lr / (1 - beta_1**time) * correction
    second = lr * beta_2 / (1 - beta_2**time) * correction
    epsilon *= correction
    keep = 1 - lr * decay if no_prox else 1 / (1 + lr * decay)
    inputs = [param, grad, exp_avg, exp_avg_sq, exp_avg_diff, neg_pre_grad]

    def block(part: Array) -> None:
        (p, g, m, n, w, pre), new, (scratch, t) = part
        p_new, m_new, n_new, w_new, pre_new = new
        average(xp, m, g, beta_1, m_new, t)
        xp.add(pre, g, out=scratch)
        average(xp, w, scratch, beta_2, w_new, t)
        xp.multiply(scratch, beta_2, out=scratch)
        xp.add(scratch, g, out=scratch)
        xp.multiply(scratch, scratch, out=scratch)
        average(xp, n, scratch, beta_3, n_new, t)
        xp.negative(g, out=pre_new)
        xp.multiply(m_new, first, out=t)
        xp.multiply(w_new, second, out=scratch)
        xp.add(t, scratch, out=t)
        sqrt_plus(xp, n_new, epsilon, scratch)
        xp.divide(t, scratch, out=t)
        if no_prox:
            xp.multiply(p, keep, out=scratch)
            xp.subtract(scratch, t, out=p_new)
        else:
            xp.subtract(p, t, out=scratch)
            xp.multiply(scratch, keep, out=p_new)

    return in_blocks(xp, inputs, reuse, 2, block)


adan_step.examples(
    samples=[
        (
            *(normal(3, 4), normal(3, 4), normal(3, 4), positive(3, 4)),
            *(normal(3, 4), normal(3, 4), {"time": 3, "decay": 0.1}),
        ),
        (
            *(normal(5), normal(5), normal(5), positive(5), normal(5), normal(5)),
            {"time": 2, "lr": 0.1, "decay": 0.1, "no_prox": True},
        ),
    ],
    rejects=[
        (
            *(normal(5), normal(5), normal(5), positive(5), normal(5), normal(6)),
            {"time": 2},
        )
    ],
)
