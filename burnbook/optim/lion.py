"""Lion: steps of one length, along the signs of a momentum.

Found by a program that searched for optimizers. It remembers one average where Adam
remembers two, and every number moves by the learning rate, up or down; so its rates are
a tenth of Adam's, and its weight decay ten times as strong.
"""

import dataclasses

from burnbook.grad_clipping.clipping import GradientClippingConfig
from burnbook.nn.shared import at_least
from burnbook.optim.adaptor import OptimizerConfig
from burnbook.optim.rule import (
    as_f32,
    fractions,
    from_config,
    narrowed,
    one_minus,
    widened,
)
from burnbook.tensor import Tensor


class LionConfig(OptimizerConfig):
    """How to make a Lion optimizer (Chen et al., 2023).

    beta_1: share of the momentum in the direction of a step, in [0, 1) (default 0.9).
    beta_2: decay rate of the momentum, in [0, 1) (default 0.99).
    weight_decay: decoupled weight decay, at least 0 (default 0.0).
    grad_clipping: bound of the gradients; None, the default: no bound.

    Example:
        >>> LionConfig().with_weight_decay(0.1).build()
        Lion(beta_1=0.9, beta_2=0.99, weight_decay=0.1)
    """

    beta_1: float = 0.9
    beta_2: float = 0.99
    weight_decay: float = 0.0
    grad_clipping: GradientClippingConfig | None = None

    def validate(self) -> None:
        """Refuse averages that forget nothing, and weights that would grow."""
        fractions(self, beta_1=self.beta_1, beta_2=self.beta_2)
        at_least(self, 0, "weight_decay")

    def build(self) -> "Lion":
        """The rule for one tensor."""
        return Lion(self)


@dataclasses.dataclass(frozen=True)
class LionState:
    """The average of the gradients of one parameter."""

    momentum: Tensor


@from_config
class Lion:
    """w ← (1 − lr λ) w − lr sign(β₁ m + (1 − β₁) g), then m ← β₂ m + (1 − β₂) g.

    Why: the betas are numbers of 32 bits, as in Burn. Half precision is computed and
    remembered in single.
    """

    state_type = LionState

    def __init__(self, config: LionConfig):
        self.config = config
        self.first = as_f32(config.beta_1), one_minus(config.beta_1)
        self.second = as_f32(config.beta_2), one_minus(config.beta_2)
        self.decay = as_f32(config.weight_decay)

    def step(
        self, lr: float, tensor: Tensor, grad: Tensor, state: LionState | None
    ) -> tuple[Tensor, LionState]:
        """One step of one parameter."""
        w, g = widened(tensor), widened(grad)
        (keep, new), (keep_2, new_2) = self.first, self.second
        direction, momentum = g * new, g * new_2
        if state is not None:
            m = widened(state.momentum)
            direction, momentum = m * keep + direction, m * keep_2 + momentum
        if lr * self.decay:
            w = w * (1.0 - lr * self.decay)
        made = narrowed(w - direction.sign() * lr, tensor)
        return made, LionState(momentum)
