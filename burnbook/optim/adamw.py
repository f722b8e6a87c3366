"""AdamW: Adam with weights that decay on their own."""

import dataclasses

from burnbook.grad_clipping.clipping import GradientClippingConfig
from burnbook.nn.shared import at_least
from burnbook.optim.adam import AdaptiveMomentum, AdaptiveMomentumState
from burnbook.optim.adaptor import OptimizerConfig
from burnbook.optim.rule import fractions, from_config, in_f32


class AdamWConfig(OptimizerConfig):
    """How to make an AdamW optimizer (Loshchilov & Hutter, 2019).

    beta_1: decay rate of the average of gradients, in [0, 1) (default 0.9).
    beta_2: decay rate of the average of squared gradients, in [0, 1) (default 0.999).
    epsilon: added to the root in the denominator, at least 0 (default 1e-5).
    weight_decay: decoupled weight decay; each step takes lr · weight_decay · w from the
        weight w, at least 0 (default 0.0001).
    cautious_weight_decay: whether only weights decay whose decay and step have the same
        direction (Chen et al., 2025) (default False).
    grad_clipping: bound of the gradients; None, the default: no bound.
    amsgrad: whether to divide by the largest average of squared gradients so far
        (Reddi, Kale & Kumar, 2018) (default False).

    Example:
        >>> AdamWConfig().with_weight_decay(0.01).build()
        AdamW(beta_1=0.9, beta_2=0.999, epsilon=1e-05, weight_decay=0.01)

    Why: weight_decay is a plain number here, 1e-4 as in Burn; PyTorch has 1e-2.
    """

    newer = ("cautious_weight_decay", "amsgrad")

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-5
    weight_decay: float = 1e-4
    cautious_weight_decay: bool = False
    grad_clipping: GradientClippingConfig | None = None
    amsgrad: bool = False

    def validate(self) -> None:
        """Refuse averages that forget nothing, and weights that would grow."""
        fractions(self, beta_1=self.beta_1, beta_2=self.beta_2)
        at_least(self, 0, "epsilon", "weight_decay")

    def build(self) -> "AdamW":
        """The rule for one tensor."""
        return AdamW(self)


@dataclasses.dataclass(frozen=True)
class AdamWState:
    """What AdamW remembers of one parameter."""

    momentum: AdaptiveMomentumState


@from_config
class AdamW(AdaptiveMomentum):
    """Adam whose weights decay beside the step: w ← (1 − lr λ) w − lr m̂ / (√v̂ + ε).

    Why: L2 decay in the gradient would be divided by √v̂ too, so that weights with large
    gradients would hardly decay.
    """

    state_type = AdamWState

    def __init__(self, config: AdamWConfig):
        self.config = config
        self.attrs = {
            "beta_1": config.beta_1,
            "beta_2": config.beta_2,
            "epsilon": config.epsilon,
            "decay": config.weight_decay,
            "cautious": config.cautious_weight_decay,
        }
        self.rounded = in_f32(self.attrs, "beta_1", "beta_2")
