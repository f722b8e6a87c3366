"""RMSProp: steps as long as gradients usually are.

The name stands for the root of the mean of the squares, which divides the gradient.
"""

import dataclasses

from burnbook.core.errors import ConfigError
from burnbook.grad_clipping.clipping import GradientClippingConfig
from burnbook.nn.shared import at_least
from burnbook.ops.optimizer_steps import (
    rmsprop_centered_step,
    rmsprop_momentum_step,
    rmsprop_step,
)
from burnbook.optim.adaptor import OptimizerConfig
from burnbook.optim.rule import (
    WeightDecayConfig,
    from_config,
    in_f32,
    is_f64,
    penalty_of,
    update,
    zeros,
)
from burnbook.optim.state import ALWAYS
from burnbook.tensor import Tensor


class RmsPropConfig(OptimizerConfig):
    """How to make an RmsProp optimizer (Tieleman & Hinton, 2012).

    alpha: decay rate of the average of squared gradients, in [0, 1] (default 0.99).
    momentum: how much of the last update goes on, at least 0 (default 0.9).
    epsilon: added to the denominator, at least 0 (default 1e-5).
    centered: whether to divide by the standard deviation of gradients instead of the
        root of their mean square (Graves, 2013) (default False).
    weight_decay: L2 penalty, added to the gradient; None, the default: no decay.
    grad_clipping: bound of the gradients; None, the default: no bound.

    Example:
        >>> RmsPropConfig().with_momentum(0.0).build()
        RmsProp(alpha=0.99, momentum=0.0, epsilon=1e-05)

    Why: momentum is 0.9 as in Burn; PyTorch has 0.
    """

    alpha: float = 0.99
    momentum: float = 0.9
    epsilon: float = 1e-5
    centered: bool = False
    weight_decay: WeightDecayConfig | None = None
    grad_clipping: GradientClippingConfig | None = None

    def validate(self) -> None:
        """Refuse averages that would forget backwards."""
        if not 0.0 <= self.alpha <= 1.0:
            what = f"alpha is {self.alpha}, not in [0, 1]"
            raise ConfigError("RmsPropConfig", what)
        at_least(self, 0, "momentum", "epsilon")

    def build(self) -> "RmsProp":
        """The rule for one tensor."""
        return RmsProp(self)


@dataclasses.dataclass(frozen=True)
class SquareAvgState:
    """The running average of squared gradients."""

    square_avg: Tensor


@dataclasses.dataclass(frozen=True)
class CenteredState:
    """The running average of gradients, if centered; and what divides, squared.

    Why: the second follows from the others, so it is made only for a record.
    """

    grad_avg: Tensor | None
    avg: Tensor | None = dataclasses.field(metadata=ALWAYS)


@dataclasses.dataclass(frozen=True)
class RmsPropMomentumState:
    """The running sum of updates."""

    buf: Tensor


@dataclasses.dataclass(frozen=True)
class RmsPropState:
    """What RmsProp remembers of one parameter."""

    square_avg: SquareAvgState
    centered: CenteredState
    momentum: RmsPropMomentumState | None

    def recorded(self) -> "RmsPropState":
        """The state with all that its record holds."""
        avg, mean = self.square_avg.square_avg, self.centered.grad_avg
        if self.centered.avg is not None:
            return self
        if mean is not None:
            avg = avg - mean * mean
        return dataclasses.replace(self, centered=CenteredState(mean, avg))


@from_config
class RmsProp:
    """w ← w − lr u, u = g / (√s + ε), where s ← α s + (1 − α) g².

    Centered, the average gradient a counts: √(s − a²). With momentum μ it is
    b ← μ b + u that is taken off.
    """

    state_type = RmsPropState
    reuses = True

    def __init__(self, config: RmsPropConfig):
        self.config = config
        self.attrs = {
            "alpha": config.alpha,
            "epsilon": config.epsilon,
            "penalty": penalty_of(config.weight_decay),
        }
        self.rounded = in_f32(self.attrs, "alpha")

    def step(
        self,
        lr: float,
        tensor: Tensor,
        grad: Tensor,
        state: RmsPropState | None,
        reuse: bool = False,
    ) -> tuple[Tensor, RmsPropState]:
        """One step of one parameter."""
        square, buf, mean = self._memory(tensor, state)
        own = self.attrs if is_f64(tensor) else self.rounded
        attrs = {**own, "lr": lr, "reuse": reuse}
        if mean is not None:
            attrs["momentum"] = self.config.momentum
            inputs = (grad, square, zeros(tensor) if buf is None else buf, mean)
            found = update(rmsprop_centered_step, tensor, inputs, attrs)
            tensor, square, swing, mean = found
            buf = None if buf is None else swing
        elif buf is not None:
            attrs["momentum"] = self.config.momentum
            inputs = (grad, square, buf)
            tensor, square, buf = update(rmsprop_momentum_step, tensor, inputs, attrs)
        else:
            tensor, square = update(rmsprop_step, tensor, (grad, square), attrs)
        momentum = None if buf is None else RmsPropMomentumState(buf)
        centered = CenteredState(mean, None)
        return tensor, RmsPropState(SquareAvgState(square), centered, momentum)

    def _memory(
        self, tensor: Tensor, state: RmsPropState | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The averages and the sum so far, zeros where they begin; None if unused."""
        square = buf = mean = None
        if state is not None:
            square, mean = state.square_avg.square_avg, state.centered.grad_avg
            buf = None if state.momentum is None else state.momentum.buf
        if square is None:
            square = zeros(tensor)
        if self.config.momentum == 0:
            buf = None
        elif buf is None:
            buf = zeros(tensor)
        if not self.config.centered:
            mean = None
        elif mean is None:
            mean = zeros(tensor)
        return square, buf, mean
