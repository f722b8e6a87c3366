"""Quantized tensors in burnpack, as Burn 0.22 has them.

The bytes are the codes, the scales of the blocks, the scale over all; the element type
is the scheme alone: {QFloat: {value, store, mode, tensor, block}}.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from burnbook.core.errors import ConfigError, DataError, DimError, ShapeError
from burnbook.record.tree import Path, Trouble, named, short
from burnbook.tensor.data import TensorData
from burnbook.tensor.qfloat import (
    PerTensorSymmetricInt8,
    QFloat,
    SchemeStrategy,
)
from burnbook.tensor.quantization_scheme import (
    QuantMode,
    QuantScheme,
    QuantStore,
    QuantValue,
    ScaleDtype,
)

FIELDS = ("value", "store", "mode", "tensor", "block")
MOST_DIMS = 5  # of a block
CURE = "model.map(Dequantize()) before saving"


def is_scheme(plain: object) -> TypeGuard[dict[str, Any]]:
    """Whether the payload of an element type is a scheme of Burn 0.22."""
    return isinstance(plain, dict) and plain.keys() == set(FIELDS)


def write_scheme(data: TensorData, path: Path) -> tuple[Any, memoryview]:
    """The element type of quantized data, and its bytes."""
    strategy: Any = data.dtype.strategy  # type: ignore[union-attr] # it is quantized
    if isinstance(strategy, PerTensorSymmetricInt8):
        scheme = QuantScheme(QuantValue.Q8S, QuantStore.Native).per_tensor()
        strategy = SchemeStrategy(scheme, strategy.scale)
    if not isinstance(strategy, SchemeStrategy):
        what = f"{named(path)} is quantized in a way that Burn 0.22 does not know"
        raise Trouble(what, "codes without an offset", short(repr(strategy)), CURE)
    return {"QFloat": _plain(strategy.scheme)}, strategy.write(np.asarray(data.array))


def read_scheme(
    plain: dict[str, Any], content: memoryview, dims: tuple[int, ...], path: Path
) -> TensorData:
    """Quantized data from the payload of its element type and its bytes."""
    try:
        name = QFloat(SchemeStrategy(_scheme(plain)))
    except (ConfigError, KeyError, TypeError, ValueError, IndexError) as cause:
        what = f"{named(path)} is quantized in an unknown way"
        raise Trouble(what, "a scheme of Burn 0.22", short(repr(cause))) from None
    try:
        return TensorData.from_bytes(content, dims, name)
    except (DataError, DimError, ShapeError) as cause:
        raise Trouble(f"{named(path)}: {cause.what}") from None


def _plain(scheme: QuantScheme) -> dict[str, Any]:
    store = scheme.store
    block = None
    if scheme.block_size is not None and scheme.block_scale is not None:
        size = list(scheme.block_size)
        storage = size + [1] * (MOST_DIMS - len(size))
        block = {
            "size": {"storage": storage, "len": len(size)},
            "dtype": scheme.block_scale.name,
        }
    return {
        "value": scheme.value.name,
        "store": {store.name: store.dim} if store.word else store.name,
        "mode": scheme.mode.name,
        "tensor": scheme.tensor_scale.name if scheme.tensor_scale else None,
        "block": block,
    }


def _scheme(plain: dict[str, Any]) -> QuantScheme:
    """The scheme; anything that is none raises whatever comes of it."""
    scheme = QuantScheme(
        QuantValue[plain["value"]], _store(plain["store"]), QuantMode[plain["mode"]]
    )
    if plain["tensor"] is not None:
        scheme = scheme.per_tensor(ScaleDtype[plain["tensor"]])
    block = plain["block"]
    if block is not None:
        size, length = block["size"]["storage"], block["size"]["len"]
        if not all(type(n) is int for n in (length, *size)):
            raise TypeError("sizes of blocks are whole numbers")
        scheme = scheme.per_block(size[:length], ScaleDtype[block["dtype"]])
    return scheme


def _store(plain: object) -> QuantStore:
    if plain == "Native":
        return QuantStore.Native
    if isinstance(plain, dict) and len(plain) == 1:
        ((name, dim),) = plain.items()
        makers = {
            s.__name__: s for s in (QuantStore.PackedNative, QuantStore.PackedU32)
        }
        if name in makers and type(dim) is int and dim >= 0:
            return makers[name](dim)
    raise ValueError(f"the store is {short(repr(plain))}")
