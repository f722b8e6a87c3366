"""Adam: every parameter gets a step size of its own.

Adam remembers two running averages of a gradient: of itself (where to go) and of its
square (how large it usually is). The step is one divided by the root of the other, so
parameters with small gradients move as fast as those with large ones.
"""

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from burnbook.core.formulas import deferred
from burnbook.grad_clipping.clipping import GradientClippingConfig
from burnbook.nn.shared import at_least
from burnbook.ops.optimizer_steps import adam_step, amsgrad_step
from burnbook.optim.adaptor import OptimizerConfig
from burnbook.optim.rule import (
    WeightDecayConfig,
    fractions,
    from_config,
    in_f32,
    is_f64,
    penalty_of,
    update,
    zeros,
)
from burnbook.optim.state import SINCE_0_21
from burnbook.tensor import Tensor


class AdamConfig(OptimizerConfig):
    """How to make an Adam optimizer (Kingma & Ba, 2015).

    beta_1: decay rate of the average of gradients, in [0, 1) (default 0.9).
    beta_2: decay rate of the average of squared gradients, in [0, 1) (default 0.999).
    epsilon: added to the root in the denominator, at least 0 (default 1e-5).
    weight_decay: L2 penalty, added to the gradient; None, the default: no decay.
    grad_clipping: bound of the gradients; None, the default: no bound.
    amsgrad: whether to divide by the largest average of squared gradients so far
        (Reddi, Kale & Kumar, 2018) (default False).

    Example:
        >>> config = AdamConfig().with_weight_decay(WeightDecayConfig(5e-5))
        >>> config.beta_1, config.weight_decay.penalty
        (0.9, 5e-05)

    Why: epsilon is 1e-5 as in Burn; PyTorch has 1e-8. In float32 the corrections 1 − βᵗ
    are Burn's, of float32 too, so a run goes on as Burn's would: ten steps along a
    constant gradient at rate 1 end at −9.99996 in both. `Numpy(float="f64")` is exact.
    """

    newer = ("amsgrad",)

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-5
    weight_decay: WeightDecayConfig | None = None
    grad_clipping: GradientClippingConfig | None = None
    amsgrad: bool = False

    def validate(self) -> None:
        """Refuse averages that forget nothing, or never start."""
        fractions(self, beta_1=self.beta_1, beta_2=self.beta_2)
        at_least(self, 0, "epsilon")

    def build(self) -> "Adam":
        """The rule for one tensor."""
        return Adam(self)


@dataclasses.dataclass(frozen=True)
class AdaptiveMomentumState:
    """The averages of Adam, and how many steps they are made of."""

    time: int
    moment_1: Tensor
    moment_2: Tensor
    max_moment_2: Tensor | None = dataclasses.field(default=None, metadata=SINCE_0_21)


@dataclasses.dataclass(frozen=True)
class AdamState:
    """What Adam remembers of one parameter."""

    momentum: AdaptiveMomentumState


class AdaptiveMomentum:
    """The step that Adam and AdamW share; they differ in how weights decay."""

    state_type: type[Any]
    reuses = True
    config: Any
    attrs: dict[str, Any]
    rounded: dict[str, Any]  # the same with betas of f32

    def step(
        self,
        lr: float,
        tensor: Tensor,
        grad: Tensor,
        state: Any | None,
        reuse: bool = False,
    ) -> tuple[Tensor, Any]:
        """One step of one parameter."""
        if state is None:
            blank = zeros(tensor)
            old = AdaptiveMomentumState(0, blank, blank)
        else:
            old = state.momentum
        time, inputs = old.time + 1, (grad, old.moment_1, old.moment_2)
        attrs = self.numbers(lr, time, is_f64(tensor))
        attrs["reuse"] = reuse
        if not self.config.amsgrad:
            made, *averages = update(adam_step, tensor, inputs, attrs)
        else:
            top = old.max_moment_2
            if top is None:  # amsgrad begins here
                top, attrs["reuse"] = old.moment_2, False
            made, *averages = update(amsgrad_step, tensor, (*inputs, top), attrs)
        return made, self.state_type(AdaptiveMomentumState(time, *averages))

    def numbers(self, lr: float, time: int, exact: bool) -> dict[str, Any]:
        """The numbers of a step; unless `exact`, those that Burn has in f32."""
        if exact:
            return {**self.attrs, "lr": lr, "time": time}
        attrs = {**self.rounded, "time": time}
        rate, root = as_in_burn(attrs["beta_1"], attrs["beta_2"], time)
        attrs["lr"], attrs["epsilon"] = lr * rate, attrs["epsilon"] * root
        if "decay" in attrs:
            attrs["decay"] /= rate
        return attrs


@deferred
@functools.lru_cache(maxsize=64)
def as_in_burn(beta_1: float, beta_2: float, time: int) -> tuple[float, float]:
    """What makes the corrections of a step those of Burn: factors of lr and epsilon.

    Burn takes 1 − βᵗ in f32, which differs in the fifth digit where βᵗ is near 1; the
    step itself computes it in f64.
    """
    exact = 1 - beta_1**time, 1 - beta_2**time
    first, second = (1 - _power(beta, time) for beta in (beta_1, beta_2))
    root = math.sqrt(second / exact[1])
    return exact[0] / first * root, root


def _power(beta: float, time: int) -> float:
    """βᵗ in f32, by squaring."""
    square, found = np.float32(beta), np.float32(1)
    while time:
        found = found * square if time & 1 else found
        square, time = square * square, time >> 1
    return float(found)


@from_config
class Adam(AdaptiveMomentum):
    """w ← w − lr m̂ / (√v̂ + ε): m and v average the gradient and its square.

    m ← β₁ m + (1 − β₁) g, m̂ = m / (1 − β₁ᵗ); v ← β₂ v + (1 − β₂) g², v̂ = v / (1 − β₂ᵗ)
    """

    state_type = AdamState

    def __init__(self, config: AdamConfig):
        self.config = config
        self.attrs = {
            "beta_1": config.beta_1,
            "beta_2": config.beta_2,
            "epsilon": config.epsilon,
            "penalty": penalty_of(config.weight_decay),
        }
        self.rounded = in_f32(self.attrs, "beta_1", "beta_2")
