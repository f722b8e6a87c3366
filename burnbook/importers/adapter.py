"""Adapters: between the layout of a file and that of a module.

PyTorchToBurnAdapter()                      a file of PyTorch, for reading
BurnToPyTorchAdapter()                      a file for PyTorch, for writing
IdentityAdapter()                           Burn's own names and layout
HalfPrecisionAdapter(), FloatCastAdapter.to("f16")
first.chain(second)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from burnbook.core.errors import ConfigError
from burnbook.importers.lazy_array import FLOATS, LazyArray
from burnbook.importers.torch_layers import Source, Spot, pytorch_arrays, spots


class Adapter:
    """Changes nothing: the names and the layout of the file are Burn's.

    An adapter of one's own overrides `adapt`, or `sources` for other names.
    """

    pytorch: ClassVar[bool] = False  # whether the file has PyTorch's names and layout

    def sources(self, spot: Spot) -> tuple[Source, ...]:
        """Where a file may have a parameter, the likeliest place first."""
        return spot.theirs if self.in_pytorch else spot.own

    def adapt(self, array: LazyArray, spot: Spot) -> LazyArray:
        """What becomes of the array on its way into the module or the file."""
        return array

    @property
    def in_pytorch(self) -> bool:
        """Whether the file has PyTorch's names and layout."""
        return self.pytorch

    def chain(self, following: Adapter) -> Adapter:
        """This adapter, then another one.

        Example:
            >>> PyTorchToBurnAdapter().chain(HalfPrecisionAdapter())
            PyTorchToBurnAdapter().chain(HalfPrecisionAdapter())
        """
        return ChainedAdapter(self, following)

    def collect(
        self,
        module: object,
        skip_variants: bool = True,
        chosen: Callable[[Spot], bool] | None = None,
    ) -> dict[str, LazyArray]:
        """The arrays of a module under the names that the file is to have.

        chosen: says which parameters to take. An array in which PyTorch joins several
        is taken whole, if one of them is chosen.
        """
        if self.in_pytorch:
            return pytorch_arrays(module, self.adapt, chosen)
        rows = spots(module, skip_variants=skip_variants)
        rows = rows if chosen is None else filter(chosen, rows)
        made = (
            self.adapt(LazyArray.of(spot.path, spot.param.to_saved()), spot)
            for spot in rows
        )
        return {array.name: array for array in made}

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class IdentityAdapter(Adapter):
    """Changes nothing."""


class PyTorchToBurnAdapter(Adapter):
    """Reads PyTorch's names and layout by the table in `torch_layers`.

    The weight of a Linear is turned, the parameters of norms are renamed, and the
    blocks of nn.LSTM, nn.GRU, nn.RNN and nn.MultiheadAttention are taken apart.
    """

    pytorch = True


class BurnToPyTorchAdapter(Adapter):
    """Writes PyTorch's names and layout by the table in `torch_layers`."""

    pytorch = True


@dataclass(frozen=True)
class ChainedAdapter(Adapter):
    """One adapter after the other."""

    first: Adapter
    second: Adapter

    @property
    def in_pytorch(self) -> bool:
        """Whether one of them speaks of PyTorch's names and layout."""
        return self.first.in_pytorch or self.second.in_pytorch

    def sources(self, spot: Spot) -> tuple[Source, ...]:
        """Where the first of them that looks elsewhere than Burn finds a parameter."""
        found = self.first.sources(spot)
        return self.second.sources(spot) if found == spot.own else found

    def adapt(self, array: LazyArray, spot: Spot) -> LazyArray:
        """What becomes of the array in both."""
        return self.second.adapt(self.first.adapt(array, spot), spot)

    def __repr__(self) -> str:
        return f"{self.first!r}.chain({self.second!r})"


CONVOLUTIONS = ("Conv1d", "Conv2d", "Conv3d", "DeformConv2d")
TRANSPOSED = ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
NORMS = ("LayerNorm", "GroupNorm", "InstanceNorm", "RmsNorm")
HALVED = frozenset(("Linear", "Embedding", "PRelu", *CONVOLUTIONS, *TRANSPOSED, *NORMS))


@dataclass(frozen=True)
class HalfPrecisionAdapter(Adapter):
    """f32 becomes f16 and f16 becomes f32, in layers that bear it; not in BatchNorm.

    modules: the names of their classes.

    Example:
        >>> HalfPrecisionAdapter().without_module("LayerNorm").halves("LayerNorm")
        False
    """

    modules: frozenset[str] = HALVED

    def with_module(self, name: str) -> HalfPrecisionAdapter:
        """Also in layers of this class."""
        return replace(self, modules=self.modules | {name})

    def without_module(self, name: str) -> HalfPrecisionAdapter:
        """Not in layers of this class."""
        return replace(self, modules=self.modules - {name})

    def halves(self, name: str) -> bool:
        """Whether layers of this class change."""
        return name in self.modules

    def adapt(self, array: LazyArray, spot: Spot) -> LazyArray:
        """The array in the other precision."""
        other = {"f32": "f16", "f16": "f32"}.get(array.dtype)
        if other is None or not self.halves(spot.layer_type):
            return array
        return array.cast(other)

    def __repr__(self) -> str:
        return "HalfPrecisionAdapter()"


@dataclass(frozen=True)
class FloatCastAdapter(Adapter):
    """Every float array becomes of one type: `FloatCastAdapter.to("f16")`."""

    dtype: str

    def __post_init__(self) -> None:
        if self.dtype not in FLOATS:
            what = f"{self.dtype!r} is no float type"
            raise ConfigError("FloatCastAdapter", what, cure=", ".join(FLOATS))

    @classmethod
    def to(cls, dtype: str) -> FloatCastAdapter:
        """An adapter to this type: f16, bf16, f32 or f64, also written F16.

        Raises:
            ConfigError: there is no such float type.
        """
        return cls(dtype.lower() if isinstance(dtype, str) else dtype)

    def adapt(self, array: LazyArray, spot: Spot) -> LazyArray:
        """The array in that type."""
        return array.cast(self.dtype)
