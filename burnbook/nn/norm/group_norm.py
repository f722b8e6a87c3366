"""GroupNorm and InstanceNorm: normalized over groups of channels, or each channel."""

from typing import TypeVar

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.core.cures import channels_moved
from burnbook.core.errors import ShapeError
from burnbook.module import Module, Param
from burnbook.nn.initializer import Initializer
from burnbook.nn.shared import at_least, build, divide_into, tensor_of
from burnbook.ops.norm import group_norm
from burnbook.tensor import Tensor, apply
from burnbook.tensor.facts import facts_of


class GroupNormConfig(Config):
    """How to make a GroupNorm: how many groups, and channels in all.

    num_groups: into how many groups the channels are split; it divides num_channels.
    num_channels: how many channels there are, at least 1.
    epsilon: added to the standard deviation, or with epsilon_inside to the variance,
        before dividing, at least 0 (default 1e-5).
    affine: whether γ and β are learned (default True).
    epsilon_inside: whether to divide by √(σ² + ε), as PyTorch and newer Burn do,
        instead of σ + ε (default False).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> GroupNormConfig(3, 6).with_affine(False).init(Numpy())
        GroupNorm {num_groups: 3, num_channels: 6, epsilon: 0.00001, affine: false}
    """

    newer = ("epsilon_inside",)
    num_groups: int
    num_channels: int
    epsilon: float = 1e-5
    affine: bool = True
    epsilon_inside: bool = False

    def validate(self) -> None:
        """Refuse sizes below 1, and groups that the channels cannot be split into."""
        at_least(self, 1, "num_groups", "num_channels")
        at_least(self, 0, "epsilon")
        divide_into(self.num_groups, self, [self.num_channels])

    def init(self, device: Backend) -> "GroupNorm":
        """The layer on a device, which at first scales by 1 and shifts by 0."""
        return _built(GroupNorm, self, device)


class GroupNorm(Module):
    """Normalize groups of channels, each example alone: out = γ (x − μ) / (σ + ε) + β.

    Shapes: x [n, c, ...] -> [n, c, ...]; gamma [c], beta [c]
    Why: it needs no batch, so it works where a batch has one example. ε stands outside
    the root, as in Burn 0.15.
    Source: Wu, He, "Group normalization", 2018 (arXiv 1803.08494).
    """

    gamma: Param | None
    beta: Param | None
    num_groups: int
    num_channels: int
    epsilon: float
    affine: bool
    epsilon_inside = False  # no field: Burn's records have no place for it
    shown = ("num_groups", "num_channels", "epsilon", "affine")
    shown_unless = (("epsilon_inside", False),)
    newer_fields = shown_unless

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of any rank from 2 on."""
        _same_channels("group_norm", input, self.num_channels)
        return _normalize(self, input, self.num_groups)


class InstanceNormConfig(Config):
    """How to make an InstanceNorm: num_channels.

    num_channels: how many channels there are, at least 1.
    epsilon: added to the standard deviation, or with epsilon_inside to the variance,
        before dividing, at least 0 (default 1e-5).
    affine: whether γ and β are learned (default True).
    epsilon_inside: whether to divide by √(σ² + ε), as PyTorch and newer Burn do,
        instead of σ + ε (default False).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> InstanceNormConfig(6).init(Numpy())
        InstanceNorm {num_channels: 6, epsilon: 0.00001, affine: true, params: 12}
    """

    newer = ("epsilon_inside",)
    num_channels: int
    epsilon: float = 1e-5
    affine: bool = True
    epsilon_inside: bool = False

    def validate(self) -> None:
        """Refuse no channels, and an epsilon below zero."""
        at_least(self, 1, "num_channels")
        at_least(self, 0, "epsilon")

    def init(self, device: Backend) -> "InstanceNorm":
        """The layer on a device, which at first scales by 1 and shifts by 0."""
        return _built(InstanceNorm, self, device)


class InstanceNorm(Module):
    """Normalize every channel of every example alone: out = γ (x − μ) / (σ + ε) + β.

    Shapes: x [n, c, ...] -> [n, c, ...]; gamma [c], beta [c]
    Source: Ulyanov, Vedaldi, Lempitsky, "Instance normalization: the missing ingredient
    for fast stylization", 2016 (arXiv 1607.08022).
    """

    gamma: Param | None
    beta: Param | None
    num_channels: int
    epsilon: float
    affine: bool
    epsilon_inside = False  # no field: Burn's records have no place for it
    shown = ("num_channels", "epsilon", "affine")
    shown_unless = (("epsilon_inside", False),)
    newer_fields = shown_unless

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of any rank from 2 on."""
        _same_channels("instance_norm", input, self.num_channels)
        return _normalize(self, input, self.num_channels)


Layer = GroupNorm | InstanceNorm
L = TypeVar("L", GroupNorm, InstanceNorm)


def _built(
    made: type[L], config: GroupNormConfig | InstanceNormConfig, device: Backend
) -> L:
    gamma, beta = None, None
    if config.affine:
        gamma = Initializer.Ones.init([config.num_channels], device)
        beta = Initializer.Zeros.init([config.num_channels], device)
    layer = build(made, config, gamma=gamma, beta=beta)
    object.__setattr__(layer, "epsilon_inside", config.epsilon_inside)
    return layer


def _same_channels(where: str, x: Tensor, channels: int) -> None:
    dims = x.dims()
    if len(dims) < 2 or dims[1] != channels:
        found = f"{dims[1]} channels" if len(dims) > 1 else "no channels"
        raise ShapeError(
            where,
            f"x has {found}, the layer {channels}",
            facts_of(x=x),
            channels_moved(dims, channels) or f"an input [n, {channels}, ...]",
        )


def _normalize(layer: Layer, x: Tensor, groups: int) -> Tensor:
    return apply(
        group_norm,
        x,
        tensor_of(layer.gamma),
        tensor_of(layer.beta),
        groups=groups,
        epsilon=layer.epsilon,
        inside=layer.epsilon_inside,
    )
