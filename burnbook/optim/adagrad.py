"""AdaGrad: step sizes that fall with the sum of squared gradients."""

import dataclasses

from burnbook.grad_clipping.clipping import GradientClippingConfig
from burnbook.nn.shared import at_least
from burnbook.ops.optimizer_steps import adagrad_step
from burnbook.optim.adaptor import OptimizerConfig
from burnbook.optim.rule import (
    WeightDecayConfig,
    from_config,
    penalty_of,
    update,
    zeros,
)
from burnbook.tensor import Tensor


class AdaGradConfig(OptimizerConfig):
    """How to make an AdaGrad optimizer (Duchi, Hazan & Singer, 2011).

    lr_decay: the learning rate of step t is lr / (1 + (t − 1) lr_decay), at least 0
        (default 0.0).
    epsilon: added to the root in the denominator, at least 0 (default 1e-5).
    weight_decay: L2 penalty, added to the gradient; None, the default: no decay.
    grad_clipping: bound of the gradients; None, the default: no bound.

    Example:
        >>> AdaGradConfig().with_lr_decay(0.1).build()
        AdaGrad(lr_decay=0.1, epsilon=1e-05)
    """

    lr_decay: float = 0.0
    epsilon: float = 1e-5
    weight_decay: WeightDecayConfig | None = None
    grad_clipping: GradientClippingConfig | None = None

    def validate(self) -> None:
        """Refuse a learning rate that would grow."""
        at_least(self, 0, "lr_decay", "epsilon")

    def build(self) -> "AdaGrad":
        """The rule for one tensor."""
        return AdaGrad(self)


@dataclasses.dataclass(frozen=True)
class LrDecayState:
    """The sum of all squared gradients, and of how many."""

    time: int
    sum: Tensor


@dataclasses.dataclass(frozen=True)
class AdaGradState:
    """What AdaGrad remembers of one parameter."""

    lr_decay: LrDecayState


@from_config
class AdaGrad:
    """w ← w − lr g / (√s + ε), s ← s + g²: every step makes the next ones smaller."""

    state_type = AdaGradState
    reuses = True

    def __init__(self, config: AdaGradConfig):
        self.config = config
        self.attrs = {
            "epsilon": config.epsilon,
            "penalty": penalty_of(config.weight_decay),
        }

    def step(
        self,
        lr: float,
        tensor: Tensor,
        grad: Tensor,
        state: AdaGradState | None,
        reuse: bool = False,
    ) -> tuple[Tensor, AdaGradState]:
        """One step of one parameter."""
        old = LrDecayState(0, zeros(tensor)) if state is None else state.lr_decay
        rate = lr / (1 + old.time * self.config.lr_decay)
        attrs = {**self.attrs, "lr": rate, "reuse": reuse}
        made, total = update(adagrad_step, tensor, (grad, old.sum), attrs)
        return made, AdaGradState(LrDecayState(old.time + 1, total))
