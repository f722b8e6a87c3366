"""Building blocks · Optimizer. Adam: every parameter gets a step size of its own.

Adam remembers two running averages of a gradient: of itself (where to go) and of its
square (how loud it usually is). The step is one divided by the root of the other, so
parameters with small gradients move as fast as those with large ones.
"""

from dataclasses import dataclass

from burnbook.config import Config
from burnbook.errors import ConfigError
from burnbook.nn.settings import at_least
from burnbook.ops.update import adam_step
from burnbook.optim.adaptor import OptimizerAdaptor
from burnbook.optim.clipping import GradientClippingConfig
from burnbook.tensor import Float, Tensor


class WeightDecayConfig(Config):
    """L2 weight decay: `penalty` times the weight is added to its gradient."""

    penalty: float

    def validate(self) -> None:
        """Refuse a negative penalty, which would make weights grow."""
        at_least(self, 0, penalty=self.penalty)


class AdamConfig(Config):
    """How to make an Adam optimizer.

    Example:
        >>> config = AdamConfig().with_weight_decay(WeightDecayConfig(5e-5))
        >>> config.beta_1, config.weight_decay.penalty
        (0.9, 5e-05)

    Why: epsilon is 1e-5 as in Burn; PyTorch has 1e-8.
    """

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-5
    weight_decay: WeightDecayConfig | None = None
    grad_clipping: GradientClippingConfig | None = None

    def validate(self) -> None:
        """Refuse averages that forget nothing, or never start."""
        for name, beta in (("beta_1", self.beta_1), ("beta_2", self.beta_2)):
            if not 0.0 <= beta < 1.0:
                raise ConfigError("AdamConfig", f"{name} is {beta}, not in [0, 1)")
        at_least(self, 0, epsilon=self.epsilon)

    def init(self) -> OptimizerAdaptor:
        """The optimizer; the learning rate is given to each step."""
        optim = Adam(self.beta_1, self.beta_2, self.epsilon, self.weight_decay)
        clipping = self.grad_clipping.init() if self.grad_clipping else None
        return OptimizerAdaptor(optim, clipping)


@dataclass(frozen=True)
class AdaptiveMomentumState:
    """The averages of Adam, and how many steps they are made of."""

    time: int
    moment_1: Tensor
    moment_2: Tensor


@dataclass(frozen=True)
class AdamState:
    """What Adam remembers of one parameter."""

    momentum: AdaptiveMomentumState


class Adam:
    """w ← w − lr m̂ / (√v̂ + ε): m and v average the gradient and its square.

    m ← β₁ m + (1 − β₁) g, m̂ = m / (1 − β₁ᵗ); v ← β₂ v + (1 − β₂) g², v̂ = v / (1 − β₂ᵗ)
    """

    state_type = AdamState

    def __init__(
        self,
        beta_1: float,
        beta_2: float,
        epsilon: float,
        weight_decay: WeightDecayConfig | None = None,
    ):
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.weight_decay = weight_decay

    def step(
        self, lr: float, tensor: Tensor, grad: Tensor, state: AdamState | None
    ) -> tuple[Tensor, AdamState]:
        """One step of one parameter."""
        if self.weight_decay is not None:
            grad = tensor * self.weight_decay.penalty + grad
        if state is None:
            time, moment_1 = 0, tensor.zeros_like()
            moment_2 = moment_1
        else:
            old = state.momentum
            time, moment_1, moment_2 = old.time, old.moment_1, old.moment_2
        attrs = {
            "lr": lr,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "time": time + 1,
        }
        values = (tensor.value, grad.value, moment_1.value, moment_2.value)
        new, m, v = tensor.backend.run(adam_step, values, attrs)
        make, device, rank = type(tensor), tensor.backend, tensor.rank
        momentum = AdaptiveMomentumState(
            time + 1, make(m, Float, device, rank), make(v, Float, device, rank)
        )
        return make(new, Float, device, rank), AdamState(momentum)

    def __repr__(self) -> str:
        betas = f"beta_1={self.beta_1}, beta_2={self.beta_2}, epsilon={self.epsilon}"
        decay = f", {self.weight_decay!r}" if self.weight_decay else ""
        return f"Adam({betas}{decay})"
