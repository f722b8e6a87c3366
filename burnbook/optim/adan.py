"""Adan: Adam with Nesterov momentum, from the differences of gradients."""

import dataclasses

from burnbook.grad_clipping.clipping import GradientClippingConfig
from burnbook.nn.shared import at_least
from burnbook.ops.optimizer_steps import adan_step
from burnbook.optim.adaptor import OptimizerConfig
from burnbook.optim.rule import fractions, from_config, in_f32, is_f64, update, zeros
from burnbook.tensor import Tensor


class AdanConfig(OptimizerConfig):
    """How to make an Adan optimizer (Xie et al., 2022).

    beta_1: decay rate of the average of gradients, in [0, 1) (default 0.98).
    beta_2: decay rate of the average of differences of gradients, in [0, 1)
        (default 0.92).
    beta_3: decay rate of the average of squares, in [0, 1) (default 0.99).
    epsilon: added to the root in the denominator, at least 0 (default 1e-8).
    weight_decay: decoupled weight decay, at least 0 (default 0.0).
    no_prox: whether weights decay before the step, as in AdamW, instead of after it
        (default False).
    grad_clipping: bound of the gradients; None, the default: no bound.

    Example:
        >>> AdanConfig().with_weight_decay(0.02).build()
        Adan(beta_1=0.98, beta_2=0.92, beta_3=0.99, epsilon=1e-08, weight_decay=0.02)
    """

    beta_1: float = 0.98
    beta_2: float = 0.92
    beta_3: float = 0.99
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    no_prox: bool = False
    grad_clipping: GradientClippingConfig | None = None

    def validate(self) -> None:
        """Refuse averages that forget nothing, and weights that would grow."""
        fractions(self, beta_1=self.beta_1, beta_2=self.beta_2, beta_3=self.beta_3)
        at_least(self, 0, "epsilon", "weight_decay")

    def build(self) -> "Adan":
        """The rule for one tensor."""
        return Adan(self)


@dataclasses.dataclass(frozen=True)
class AdaptiveNesterovMomentumState:
    """The averages of Adan, and the gradient before with its sign turned."""

    time: int
    exp_avg: Tensor
    exp_avg_sq: Tensor
    exp_avg_diff: Tensor
    neg_pre_grad: Tensor


@dataclasses.dataclass(frozen=True)
class AdanState:
    """What Adan remembers of one parameter."""

    momentum: AdaptiveNesterovMomentumState


@from_config
class Adan:
    """w ← (w − lr (m̂ + β₂ ŵ) / (√n̂ + ε)) / (1 + lr λ), with d = g − the g before.

    m averages g, w averages d, n averages (g + β₂ d)²; the first d is 0.
    """

    state_type = AdanState
    reuses = True

    def __init__(self, config: AdanConfig):
        self.config = config
        self.attrs = {
            "beta_1": config.beta_1,
            "beta_2": config.beta_2,
            "beta_3": config.beta_3,
            "epsilon": config.epsilon,
            "decay": config.weight_decay,
            "no_prox": config.no_prox,
        }
        self.rounded = in_f32(self.attrs, "beta_1", "beta_2", "beta_3")

    def step(
        self,
        lr: float,
        tensor: Tensor,
        grad: Tensor,
        state: AdanState | None,
        reuse: bool = False,
    ) -> tuple[Tensor, AdanState]:
        """One step of one parameter."""
        if state is None:
            blank = zeros(tensor)
            old = AdaptiveNesterovMomentumState(0, blank, blank, blank, -grad)
        else:
            old = state.momentum
        time = old.time + 1
        memories = (old.exp_avg, old.exp_avg_sq, old.exp_avg_diff, old.neg_pre_grad)
        own = self.attrs if is_f64(tensor) else self.rounded
        attrs = {**own, "lr": lr, "time": time, "reuse": reuse}
        made, *outputs = update(adan_step, tensor, (grad, *memories), attrs)
        return made, AdanState(AdaptiveNesterovMomentumState(time, *outputs))
