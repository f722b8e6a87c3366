"""Stochastic gradient descent, with momentum or not."""

import dataclasses

from burnbook.grad_clipping.clipping import GradientClippingConfig
from burnbook.ops.optimizer_steps import momentum_step, sgd_step
from burnbook.optim.adaptor import OptimizerAdaptor, OptimizerConfig
from burnbook.optim.rule import (
    MomentumConfig,
    WeightDecayConfig,
    from_config,
    penalty_of,
    update,
    zeros,
)
from burnbook.tensor import Tensor


class SgdConfig(OptimizerConfig):
    """How to make an optimizer that steps along the negative gradient.

    weight_decay: L2 penalty, added to the gradient; None, the default: no decay.
    momentum: how much of earlier updates goes on; None, the default: nothing.
    gradient_clipping: bound of the gradients; None, the default: no bound.

    Example:
        >>> SgdConfig().with_momentum(MomentumConfig().with_dampening(0.0)).build()
        Sgd(momentum=MomentumConfig(momentum=0.9, dampening=0.0, nesterov=False))

    Why: the clipping is called gradient_clipping here and grad_clipping in all other
    configs, as in Burn.
    """

    weight_decay: WeightDecayConfig | None = None
    momentum: MomentumConfig | None = None
    gradient_clipping: GradientClippingConfig | None = None

    def build(self) -> "Sgd":
        """The rule for one tensor."""
        return Sgd(self)

    def init(self) -> OptimizerAdaptor:
        """The optimizer; the learning rate is given to each step."""
        return OptimizerAdaptor.of(self.build(), self.gradient_clipping)


@dataclasses.dataclass(frozen=True)
class MomentumState:
    """The running sum of updates."""

    velocity: Tensor


@dataclasses.dataclass(frozen=True)
class SgdState:
    """What Sgd remembers of one parameter."""

    momentum: MomentumState | None


@from_config
class Sgd:
    """w ← w − lr g; with momentum w ← w − lr v, where v ← μ v + (1 − dampening) g.

    The first v is g itself; Nesterov's form goes on from there: w ← w − lr (μ v + g).
    """

    state_type = SgdState
    reuses = True

    def __init__(self, config: SgdConfig):
        self.config = config
        self.penalty = penalty_of(config.weight_decay)

    def step(
        self,
        lr: float,
        tensor: Tensor,
        grad: Tensor,
        state: SgdState | None,
        reuse: bool = False,
    ) -> tuple[Tensor, SgdState]:
        """One step of one parameter."""
        momentum = self.config.momentum
        attrs = {"lr": lr, "penalty": self.penalty}
        if momentum is None:
            return update(sgd_step, tensor, (grad,), attrs)[0], SgdState(None)
        old = None if state is None else state.momentum
        velocity = zeros(tensor) if old is None else old.velocity
        dampening = 0.0 if old is None else momentum.dampening
        attrs |= {
            "momentum": momentum.momentum,
            "dampening": dampening,
            "nesterov": momentum.nesterov,
            "reuse": reuse and old is not None,
        }
        made, velocity = update(momentum_step, tensor, (grad, velocity), attrs)
        return made, SgdState(MomentumState(velocity))
