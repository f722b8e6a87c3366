"""Adafactor: Adam's step sizes with hardly any memory.

Of a matrix of squared gradients only the averages of its rows and of its columns are
kept, whose product is close to it: for m × n weights m + n numbers instead of 2 m n.
"""

import dataclasses
import math

from burnbook.core.errors import ConfigError
from burnbook.core.formulas import deferred
from burnbook.grad_clipping.clipping import GradientClippingConfig
from burnbook.nn.shared import at_least
from burnbook.optim.adaptor import OptimizerConfig
from burnbook.optim.rule import as_f32, from_config, narrowed, widened
from burnbook.tensor import Tensor


class AdafactorConfig(OptimizerConfig):
    """How to make an Adafactor optimizer (Shazeer & Stern, 2018).

    epsilon_1: added to squared gradients, above 0 (default 1e-30).
    epsilon_2: the least root mean square of a parameter that its step is scaled by,
        above 0 (default 1e-3).
    clip_threshold: the largest root mean square of an update before it is scaled, above
        0 (default 1.0).
    decay_rate: the averages take tᵈᵉᶜᵃʸ⁻ʳᵃᵗᵉ of what is new in step t, below 0
        (default -0.8).
    relative_step: whether a step is at most 1/√t long (default True).
    scale_parameter: whether a step is scaled by the root mean square of its parameter
        (default True).
    weight_decay: decoupled weight decay, at least 0 (default 0.0).
    grad_clipping: bound of the gradients; None, the default: no bound.

    With the defaults a learning rate of 0.01 is that of the paper; for an absolute one,
    switch off relative_step and scale_parameter.

    Example:
        >>> AdafactorConfig().with_relative_step(False).with_weight_decay(0.1).init()
        OptimizerAdaptor(Adafactor(epsilon_1=1e-30, epsilon_2=0.001, clip_threshold=1.0,
        decay_rate=-0.8, scale_parameter=True, weight_decay=0.1), 0 states)
    """

    epsilon_1: float = 1e-30
    epsilon_2: float = 1e-3
    clip_threshold: float = 1.0
    decay_rate: float = -0.8
    relative_step: bool = True
    scale_parameter: bool = True
    weight_decay: float = 0.0
    grad_clipping: GradientClippingConfig | None = None

    def validate(self) -> None:
        """Refuse bounds that are none, and averages that would not begin."""
        for name in ("epsilon_1", "epsilon_2", "clip_threshold"):
            value = getattr(self, name)
            if not 0.0 < value < math.inf:
                raise ConfigError("AdafactorConfig", f"{name} is {value}, not above 0")
        if not -math.inf < self.decay_rate < 0.0:
            what = f"decay_rate is {self.decay_rate}, not below 0"
            raise ConfigError("AdafactorConfig", what)
        at_least(self, 0, "weight_decay")

    def build(self) -> "Adafactor":
        """The rule for one tensor."""
        return Adafactor(self)


@dataclasses.dataclass(frozen=True)
class AdafactorState:
    """The averages of squared gradients, and how many steps they are made of.

    Shapes: of a parameter [..., m, n] second_moment is [..., m, 1] and
        column_second_moment [..., 1, n]; of a vector second_moment is whole, and there
        is no other.
    """

    time: int
    second_moment: Tensor
    column_second_moment: Tensor | None


@from_config
class Adafactor:
    """w ← (1 − lr λ) w − s u / max(1, rms(u) / d), with u = g / √(r c / mean r).

    r and c average g² + ε₁ over rows and columns, s = min(lr, 1/√t) max(ε₂, rms(w)).

    Why: half precision is computed and remembered in single, as its squares vanish.
    """

    state_type = AdafactorState

    def __init__(self, config: AdafactorConfig):
        self.config = config
        self.decay = as_f32(config.weight_decay)

    @staticmethod
    def shapes(shape: tuple[int, ...]) -> set[tuple[int, ...]]:
        """The shapes that the state of a parameter of this shape has."""
        if len(shape) < 2:
            return {shape}
        *outer, rows, cols = shape
        return {(*outer, rows, 1), (*outer, 1, cols)}

    def step(
        self, lr: float, tensor: Tensor, grad: Tensor, state: AdafactorState | None
    ) -> tuple[Tensor, AdafactorState]:
        """One step of one parameter."""
        config, rank = self.config, tensor.rank
        w, g = widened(tensor), widened(grad)
        row, column = g.square() + as_f32(config.epsilon_1), None
        if rank >= 2:
            row, column = row.mean_dim(rank - 1), row.mean_dim(rank - 2)
        time = 1
        if state is not None:
            time = state.time + 1
            new = _newest(time, config.decay_rate)
            row = self._average(state.second_moment, row, new)
            if column is not None and state.column_second_moment is not None:
                column = self._average(state.column_second_moment, column, new)
        if column is None:
            update = g / row.sqrt()
        else:  # in this order small numbers are not multiplied
            update = g / (row / row.mean_dim(rank - 2)).sqrt() / column.sqrt()
        bound = (_rms(update) / as_f32(config.clip_threshold)).clamp_min(1.0)
        update = update / bound
        if config.scale_parameter:
            update = update * _rms(w).clamp_min(as_f32(config.epsilon_2))
        length = _length(lr, time) if config.relative_step else lr
        if self.decay:
            w = w * (1.0 - lr * self.decay)
        made = narrowed(w - update * length, tensor)
        return made, AdafactorState(time, row, column)

    def _average(self, old: Tensor, new: Tensor, share: float) -> Tensor:
        """The average with its new part; never below what was added to every square."""
        made = widened(old) * (1.0 - share) + new * share
        return made.clamp_min(as_f32(self.config.epsilon_1))


@deferred
def _newest(time: int, rate: float) -> float:
    """The share of what is new in a step."""
    return float(time) ** rate


@deferred
def _length(lr: float, time: int) -> float:
    """How long a step is at most."""
    return min(lr, 1.0 / math.sqrt(time))


def _rms(x: Tensor) -> Tensor:
    """The root of the mean of squares, in a shape that stretches over x."""
    return x.square().mean().sqrt().reshape([1] * x.rank)
