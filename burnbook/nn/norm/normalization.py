"""Normalization: the norm that a NormalizationConfig chooses."""

from dataclasses import replace
from typing import Annotated, Self

from burnbook.backend.base import Backend
from burnbook.config import ConfigEnum, holding, unit
from burnbook.nn.identity import Identity
from burnbook.nn.norm.batch_norm import BatchNorm, BatchNormConfig
from burnbook.nn.norm.group_norm import (
    GroupNorm,
    GroupNormConfig,
    InstanceNorm,
    InstanceNormConfig,
)
from burnbook.nn.norm.layer_norm import LayerNorm, LayerNormConfig
from burnbook.nn.norm.rms_norm import RmsNorm, RmsNormConfig

#: A field that holds any of the norms; records and prints say which, as Burn's enum.
Normalization = (
    Annotated[Identity, "Identity"]
    | Annotated[BatchNorm, "Batch"]
    | Annotated[GroupNorm, "Group"]
    | Annotated[InstanceNorm, "Instance"]
    | Annotated[LayerNorm, "Layer"]
    | Annotated[RmsNorm, "Rms"]
)


class NormalizationConfig(ConfigEnum):
    """Which norm to make, and how; or Identity, which is none.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> any_norm = NormalizationConfig.Batch(BatchNormConfig(1))
        >>> any_norm.with_num_features(8).init(Numpy())
        BatchNorm {num_features: 8, momentum: 0.1, epsilon: 0.00001, params: 32}
    """

    Identity = unit()
    Batch = holding(BatchNormConfig)
    Group = holding(GroupNormConfig)
    Instance = holding(InstanceNormConfig)
    Layer = holding(LayerNormConfig)
    Rms = holding(RmsNormConfig)

    def init(self, device: Backend) -> Normalization:
        """The norm on a device."""
        return self.values[0].init(device) if self.values else Identity()

    @property
    def num_features(self) -> int:
        """For how many channels, or values of the last dim; 0 for Identity."""
        return getattr(self.values[0], _SIZE[self.variant]) if self.values else 0

    def with_num_features(self, num_features: int) -> Self:
        """The same norm for another number of channels, or size of the last dim."""
        if not self.values:
            return self
        config = replace(self.values[0], **{_SIZE[self.variant]: num_features})
        return type(self).make(self.variant, (config,))


_SIZE = {
    "Batch": "num_features",
    "Group": "num_channels",
    "Instance": "num_channels",
    "Layer": "d_model",
    "Rms": "d_model",
}
