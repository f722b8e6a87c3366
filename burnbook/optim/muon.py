"""Muon: momentum whose updates of matrices are made orthogonal.

The update of a weight matrix is mostly a few directions. Muon replaces it by the
nearest orthogonal matrix, in which every direction counts as much as the others. It is
for the matrices inside a network; biases, embeddings and the last layer take Adam, in
another parameter group.
"""

import dataclasses
import math

from burnbook.config import ConfigEnum, unit
from burnbook.core.errors import ShapeError
from burnbook.nn.shared import at_least
from burnbook.ops.lbfgs import newton_schulz
from burnbook.optim.adaptor import OptimizerConfig
from burnbook.optim.rule import (
    MomentumConfig,
    WeightDecayConfig,
    from_config,
    penalty_of,
    update,
)
from burnbook.optim.sgd import MomentumState
from burnbook.tensor import Tensor


class AdjustLrFn(ConfigEnum):
    """How long Muon's step is for a matrix of m rows and n columns.

    Original: lr √max(1, m / n). MatchRmsAdamW: 0.2 lr √max(m, n), about as long as a
    step of AdamW, so that its learning rates can be kept.
    """

    Original = unit()
    MatchRmsAdamW = unit()

    def ratio(self, rows: int, cols: int) -> float:
        """What the learning rate is multiplied by."""
        if self.variant == "Original":
            return math.sqrt(max(1.0, rows / cols))
        return 0.2 * math.sqrt(max(rows, cols))


class MuonConfig(OptimizerConfig):
    """How to make a Muon optimizer (Jordan et al., 2024).

    weight_decay: decoupled weight decay; None, the default: no decay.
    momentum: momentum of the gradients, from which the update is made
        (default MomentumConfig(momentum=0.95, dampening=0.0, nesterov=True)).
    ns_coefficients: coefficients (a, b, c) of the Newton–Schulz iteration
        (default (3.4445, -4.775, 2.0315)).
    epsilon: the least norm that the update is divided by before the iteration, at least
        0 (default 1e-7).
    ns_steps: how many Newton–Schulz iterations, at least 1 (default 5).
    adjust_lr_fn: how the learning rate depends on the shape of the matrix: Original or
        MatchRmsAdamW (default Original).

    Example:
        >>> MuonConfig().with_ns_steps(3).momentum
        MomentumConfig(momentum=0.95, dampening=0.0, nesterov=True)
    """

    weight_decay: WeightDecayConfig | None = None
    momentum: MomentumConfig = MomentumConfig(
        momentum=0.95, dampening=0.0, nesterov=True
    )
    ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315)
    epsilon: float = 1e-7
    ns_steps: int = 5
    adjust_lr_fn: AdjustLrFn = AdjustLrFn.Original

    def validate(self) -> None:
        """Refuse a number of steps that would do nothing."""
        at_least(self, 1, "ns_steps")
        at_least(self, 0, "epsilon")

    def build(self) -> "Muon":
        """The rule for one tensor."""
        return Muon(self)


@dataclasses.dataclass(frozen=True)
class MuonState:
    """What Muon remembers of one matrix."""

    momentum: MomentumState


@from_config
class Muon:
    """W ← (1 − lr λ) W − lr ratio X, where X is the orthogonal matrix nearest to u.

    v ← μ v + (1 − dampening) g, and u = v, or μ v + g as Nesterov has it.
    """

    state_type = MuonState

    def __init__(self, config: MuonConfig):
        self.config = config
        self.penalty = penalty_of(config.weight_decay)

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse a parameter that is no matrix."""
        if len(shape) != 2:
            raise ShapeError(
                "Muon",
                "only matrices can be made orthogonal",
                [("param", str(list(shape)))],
                'optim.with_group(ParamGroup.from_predicate("bias"), AdamConfig())',
            )

    def step(
        self, lr: float, tensor: Tensor, grad: Tensor, state: MuonState | None
    ) -> tuple[Tensor, MuonState]:
        """One step of one matrix."""
        momentum = self.config.momentum
        velocity = grad
        if state is not None:
            share = 1.0 - momentum.dampening
            velocity = state.momentum.velocity * momentum.momentum + grad * share
        ahead = velocity * momentum.momentum + grad if momentum.nesterov else velocity
        attrs = {
            "coefficients": self.config.ns_coefficients,
            "steps": self.config.ns_steps,
            "epsilon": self.config.epsilon,
        }
        (direction,) = update(newton_schulz, ahead, (), attrs)
        rows, cols = tensor.dims()
        length = lr * self.config.adjust_lr_fn.ratio(rows, cols)
        if lr * self.penalty:
            tensor = tensor * (1.0 - lr * self.penalty)
        return tensor - direction * length, MuonState(MomentumState(velocity))
