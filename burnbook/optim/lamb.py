"""Lamb: Adam for very large batches.

Each parameter's step gets the length that its weights have, so no layer runs ahead of
the others, however large the learning rate that a large batch asks for.
"""

import dataclasses

import numpy as np

from burnbook.grad_clipping.clipping import GradientClippingConfig
from burnbook.nn.shared import at_least
from burnbook.optim.adaptor import OptimizerConfig
from burnbook.optim.rule import (
    as_f32,
    corrected,
    fractions,
    from_config,
    narrowed,
    one_minus,
    widened,
)
from burnbook.tensor import Tensor


class LambConfig(OptimizerConfig):
    """How to make a Lamb optimizer (You et al., 2020).

    beta_1: decay rate of the average of gradients, in [0, 1) (default 0.9).
    beta_2: decay rate of the average of squared gradients, in [0, 1) (default 0.999).
    epsilon: added to the root in the denominator, at least 0 (default 1e-6).
    weight_decay: how much of the weights is added to the step before it is scaled, at
        least 0 (default 0.0).
    use_trust_ratio: whether a step is scaled by the norm of its parameter
        (default True).
    grad_clipping: bound of the gradients; None, the default: no bound.

    Example:
        >>> LambConfig().with_weight_decay(0.01).with_use_trust_ratio(False).build()
        Lamb(beta_1=0.9, beta_2=0.999, epsilon=1e-06, weight_decay=0.01)
    """

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-6
    weight_decay: float = 0.0
    use_trust_ratio: bool = True
    grad_clipping: GradientClippingConfig | None = None

    def validate(self) -> None:
        """Refuse averages that forget nothing, and weights that would grow."""
        fractions(self, beta_1=self.beta_1, beta_2=self.beta_2)
        at_least(self, 0, "epsilon", "weight_decay")

    def build(self) -> "Lamb":
        """The rule for one tensor."""
        return Lamb(self)


@dataclasses.dataclass(frozen=True)
class LambState:
    """The averages of Lamb, and how many steps they are made of."""

    time: int
    moment_1: Tensor
    moment_2: Tensor


@from_config
class Lamb:
    """w ← w − lr r u, with u = m̂ / (√v̂ + ε) + λ w and r = ‖w‖ / ‖u‖, or 1 for a zero.

    m ← β₁ m + (1 − β₁) g, m̂ = m / (1 − β₁ᵗ); v ← β₂ v + (1 − β₂) g², v̂ = v / (1 − β₂ᵗ)

    Why: the betas are numbers of 32 bits, as in Burn. Half precision is computed and
    remembered in single, as small squares vanish in it.
    """

    state_type = LambState

    def __init__(self, config: LambConfig):
        self.config = config
        self.first = as_f32(config.beta_1), one_minus(config.beta_1)
        self.second = as_f32(config.beta_2), one_minus(config.beta_2)

    def step(
        self, lr: float, tensor: Tensor, grad: Tensor, state: LambState | None
    ) -> tuple[Tensor, LambState]:
        """One step of one parameter."""
        config = self.config
        w, g = widened(tensor), widened(grad)
        (keep, new), (keep_2, new_2) = self.first, self.second
        m, v, time = g * new, g.square() * new_2, 1
        if state is not None:
            m = widened(state.moment_1) * keep + m
            v = widened(state.moment_2) * keep_2 + v
            time = state.time + 1
        root = (v / corrected(config.beta_2, time)).sqrt()
        update = m / corrected(config.beta_1, time) / (root + as_f32(config.epsilon))
        if config.weight_decay:
            update = update + w * as_f32(config.weight_decay)
        if config.use_trust_ratio:
            update = update * _trust(w, update)
        made = narrowed(w - update * lr, tensor)
        return made, LambState(time, m, v)


def _trust(w: Tensor, update: Tensor) -> Tensor:
    """The norm of a parameter over that of its step; 1 where one of them is zero."""
    of_w, of_update = _norm(w), _norm(update)
    least = float(np.finfo(update.value.dtype).tiny)  # never 0 / 0
    ratio = of_w / of_update.clamp_min(least)
    either = of_w.equal(0.0).bool_or(of_update.equal(0.0))
    return ratio.mask_fill(either, 1.0).reshape([1] * w.rank)


def _norm(x: Tensor) -> Tensor:
    return x.square().sum().sqrt()
