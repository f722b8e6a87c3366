"""BatchNorm: every channel normalized over the batch and the other dims."""

import math
from typing import ClassVar

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.core.errors import ConfigError, ShapeError
from burnbook.module import Module, Param, RunningState
from burnbook.nn.initializer import Initializer
from burnbook.nn.shared import at_least, from_zero_to_one
from burnbook.ops.batch_norm import batch_norm, batch_norm_known
from burnbook.ops.shape import cast
from burnbook.tensor import Tensor, apply, apply_with_extras
from burnbook.tensor.facts import facts_of


class BatchNormConfig(Config):
    """How to make a BatchNorm: num_features, the number of channels.

    num_features: how many channels there are, at least 1.
    epsilon: added to the variance before dividing, at least 0 (default 1e-5).
    momentum: the weight of the newest batch in the running averages, in [0, 1]
        (default 0.1).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> BatchNormConfig(3).init(Numpy())
        BatchNorm {num_features: 3, momentum: 0.1, epsilon: 0.00001, params: 12}
    """

    num_features: int
    epsilon: float = 1e-5
    momentum: float = 0.1

    def validate(self) -> None:
        """Refuse no channels, an epsilon below 0, a momentum outside [0, 1]."""
        at_least(self, 1, "num_features")
        at_least(self, 0, "epsilon")
        from_zero_to_one(self, "momentum")

    def init(self, device: Backend, dims: int | None = None) -> "BatchNorm":
        """The layer on a device.

        dims: how many dims inputs have after the channels, at least 0: 2 for images.
            Burn 0.15 always says it, by the type `BatchNorm<B, 2>`; None, the default,
            takes any number, as newer Burn does.
        """
        if dims is not None and dims < 0:
            raise ConfigError(
                "BatchNormConfig", f"dims is {dims}, it must be at least 0"
            )
        size = [self.num_features]
        made = BatchNorm(
            Initializer.Ones.init(size, device),
            Initializer.Zeros.init(size, device),
            RunningState.of(Initializer.Zeros.init(size, device)),
            RunningState.of(Initializer.Ones.init(size, device)),
            self.momentum,
            self.epsilon,
        )
        if dims is not None:
            vars(made)["dims"] = dims
        return made


class BatchNorm(Module):
    """Normalize channels to mean 0 and variance 1: out = γ (x − μ) / √(σ² + ε) + β.

    In training (under Autodiff) μ and σ² are those of the batch, and update the running
    averages: running ← (1 − momentum) · running + momentum · batch. On any other
    backend, and after `model.eval()`, the running averages are used, so the output for
    an example does not depend on the others. After `model.no_grad()` they stay as they
    are, and the batch normalizes.

    Shapes: x [n, c, ...] -> [n, c, ...]; gamma [c], beta [c], running_mean [c],
        running_var [c]
    Why: σ² is the biased variance, Σ (x − μ)² divided by the number n of elements of a
    channel, in the running averages too, as in Burn. PyTorch's running_var averages the
    unbiased one, divided by n − 1: of a batch [0, 2] it takes in 2, not 1.
    Source: Ioffe, Szegedy, "Batch normalization", 2015 (arXiv 1502.03167).
    """

    gamma: Param
    beta: Param
    running_mean: RunningState
    running_var: RunningState
    momentum: float
    epsilon: float
    dims: ClassVar[int | None] = None  # of inputs after the channels; a type in Burn
    shown = (
        ("num_features", lambda norm: norm.beta.shape[0]),
        "momentum",
        "epsilon",
    )

    def forward(self, input: Tensor) -> Tensor:
        """Normalize by the batch in training, else by the running averages.

        Raises:
            ShapeError: in training, a batch has one value for each channel; the
            input has another rank than `init` was told.
        """
        if self.dims is not None and input.rank != self.dims + 2:
            what = f"inputs of this layer have rank {self.dims + 2}, not {input.rank}"
            cure = f"init(device, dims={input.rank - 2})" if input.rank > 1 else None
            raise ShapeError("batch_norm", what, facts_of(x=input), cure)
        if self.is_training(input):
            return self.forward_train(input)
        return apply(
            batch_norm_known,
            input,
            self.gamma.val(),
            self.beta.val(),
            self.running_mean.val(),
            self.running_var.val(),
            epsilon=self.epsilon,
        )

    def forward_train(self, input: Tensor) -> Tensor:
        """Normalize by the batch, and update the running averages.

        Raises:
            ShapeError: the batch has one value for each channel, so no variance.
        """
        dims = input.dims()
        if dims[:1] == (1,) and len(dims) > 1 and math.prod(dims) == dims[1]:
            raise _of_one(input)
        out, mean, var = apply_with_extras(
            batch_norm,
            input,
            self.gamma.val(),
            self.beta.val(),
            epsilon=self.epsilon,
        )
        self._update(self.running_mean, mean)
        self._update(self.running_var, var)
        return out

    def _update(self, state: RunningState, batch: Tensor) -> None:
        old = state.value_sync()
        batch = apply(cast, batch, dtype=old.backend.float_dtype)
        state.update(old * (1.0 - self.momentum) + batch * self.momentum)


def _of_one(input: Tensor) -> ShapeError:
    """The error for a batch without variance: the output would be β, whatever x."""
    what = "one value per channel has no variance to train with"
    cure = "a larger last batch (another batch_size), or model.valid() to predict"
    return ShapeError("batch_norm", what, facts_of(x=input), cure)
