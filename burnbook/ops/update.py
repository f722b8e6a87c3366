"""Building blocks · Optimizer. Parameter updates in one pass over the memory.

An optimizer reads a parameter, its gradient and what it remembers of older gradients,
and writes the new ones. Done expression by expression, every step of the formula would
go through the whole memory again; done block by block, a block stays in the cache.
"""

from typing import Any

from burnbook.op import normal, op, positive

BLOCK = 1 << 14  # elements


def _one_shape(
    param: tuple[int, ...],
    grad: tuple[int, ...],
    moment_1: tuple[int, ...],
    moment_2: tuple[int, ...],
) -> str | None:
    if param == grad == moment_1 == moment_2:
        return None
    return "the gradient and both moments must have the shape of the parameter"


@op(
    "FFFF>FFF",
    check=_one_shape,
    method=False,
    samples=[(normal(3, 4), normal(3, 4), normal(3, 4), positive(3, 4), {"time": 3})],
    rejects=[(normal(3, 4), normal(3), normal(3, 4), positive(3, 4), {"time": 3})],
)
def adam_step(
    xp: Any,
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
    """One step of Adam: m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g²,
    p ← p − lr m̂ / (√v̂ + ε), where m̂ = m / (1−β₁ᵗ) and v̂ = v / (1−β₂ᵗ).

    Shapes: param [...], grad [...], moment_1 [...], moment_2 [...] -> [...], [...], [...]
    Why: m and v start at zero and are too small at first; dividing corrects that.
    """
    step = param.dtype.type(lr / (1 - beta_1**time))
    correction = param.dtype.type((1 - beta_2**time) ** -0.5)
    news = [xp.empty(param.shape, dtype=param.dtype) for _ in range(3)]
    flats = [a.reshape(-1) for a in (*news, param, grad, moment_1, moment_2)]
    block = BLOCK if xp.__name__ == "numpy" else max(param.size, 1)
    work = xp.empty(min(block, param.size), dtype=param.dtype)
    for first in range(0, param.size, block):
        p_new, m_new, v_new, p, g, m, v = (a[first : first + block] for a in flats)
        t = work[: p.size]
        xp.multiply(m, beta_1, out=m_new)
        xp.multiply(g, 1 - beta_1, out=t)
        xp.add(m_new, t, out=m_new)
        xp.multiply(v, beta_2, out=v_new)
        xp.multiply(g, g, out=t)
        xp.multiply(t, 1 - beta_2, out=t)
        xp.add(v_new, t, out=v_new)
        xp.sqrt(v_new, out=t)
        xp.multiply(t, correction, out=t)
        xp.add(t, epsilon, out=t)
        xp.divide(m_new, t, out=t)
        xp.multiply(t, step, out=t)
        xp.subtract(p, t, out=p_new)
    return tuple(news)
