"""Quantized tensors in a record, as each release of Burn has them.

Until Burn 0.15 the bytes are the codes, one each, and what they stand for is inside the
dtype: {QFloat: {PerTensorAffineInt8: {scale, offset, _a}}}. Since 0.16 the dtype has
the scheme alone, and offset and scales follow the codes. Burn 0.19 has schemes with
smaller codes and blocks, {value, param, store, level, mode}; 0.22, which writes
burnpack alone, has {value, store, mode, tensor, block}: two levels of scales.
"""

from __future__ import annotations

from math import prod
from typing import Any, NoReturn

import numpy as np

from burnbook.core.errors import BurnbookError
from burnbook.module.releases import Release
from burnbook.record.tree import Marker, Path, Single, Trouble, named, short
from burnbook.tensor.data import TensorData
from burnbook.tensor.qfloat import (
    PerTensorAffineInt8,
    PerTensorSymmetricInt8,
    QFloat,
    QuantizationStrategy,
    SchemeStrategy,
)
from burnbook.tensor.quantization_scheme import (
    QuantMode,
    QuantScheme,
    QuantStore,
    QuantValue,
    ScaleDtype,
)

AFFINE, SYMMETRIC = "PerTensorAffineInt8", "PerTensorSymmetricInt8"
AFTER = {"PerTensorAffine": AFFINE, "PerTensorSymmetric": SYMMETRIC}  # Burn 0.16
BURNPACK = (0, 22)  # the release that wrote it first as its only format
BLOCK_DIMS = 5  # sizes that a block has room for
DEQUANTIZE = "model.map(Dequantize()) before saving"

# --- what the payload of the dtype is: fields and variants in their order -------------

Form = str | list[Any] | tuple[Any, ...] | dict[str, Any]
_INT8: list[Any] = [("QInt8", None)]
_MODE: list[Any] = [("Symmetric", None)]
_BLOCK = {"storage": ("u8",) * BLOCK_DIMS, "len": "u8"}
_VALUES = [
    (name, None)
    for name in ("Q8F", "E5M2", "E4M3", "Q4F", "E2M1", "Q2F", "Q8S", "Q4S", "Q2S")
]
_SCALES = [(name, None) for name in ("F32", "F16", "BF16", "UE8M0", "UE4M3")]


def form(release: Release) -> Form:
    """How bincode of a release writes the payload.

    A dict is a struct, a tuple a tuple, a list of pairs an enum: each variant with what
    it holds; "f32", "i8", "u8", "usize" is a number, "" nothing.
    """
    if release < (0, 16):
        affine = {"scale": "f32", "offset": "i8", "_a": ""}
        return [(AFFINE, affine), (SYMMETRIC, {"scale": "f32", "_q": ""})]
    if release < (0, 17):
        return [(name, _INT8) for name in AFTER]
    if release < (0, 18):
        return [("PerTensor", (_MODE, _INT8))]
    if release < (0, 19):
        return {
            "level": [("Tensor", None)],
            "mode": _MODE,
            "q_type": _INT8,
            "acc_precision": [("Full", None), ("Half", None)],
            "propagation": [("Propagate", None), ("Inhibit", None)],
        }
    stores = [("Native", None), ("U32", None)]
    if release >= (0, 20):
        stores = [("Native", None), ("PackedNative", "usize"), ("PackedU32", "usize")]
    return {
        "value": _VALUES,
        "param": _SCALES,
        "store": stores,
        "level": [("Tensor", None), ("Block", _BLOCK)],
        "mode": _MODE,
    }


# --- writing --------------------------------------------------------------------------


def lowered(
    data: TensorData, release: Release, path: Path
) -> tuple[memoryview, dict[str, Any]]:
    """The bytes of quantized data, and the dtype that says what they stand for."""
    known = getattr(data.dtype, "strategy", None)
    codes = np.ascontiguousarray(data.array, np.int8)
    if release >= (0, 19):
        newer = _with_scheme(known)
        plain = newer and _plain(newer.scheme, release)
        if newer is None or plain is None:
            _refuse(path, known, release)
        return newer.write(codes), {"QFloat": plain}
    strategy = _int8(known)
    affine = isinstance(strategy, PerTensorAffineInt8)
    if strategy is None or (affine and release >= (0, 17)):
        _refuse(path, known, release)
    if release < (0, 16):
        held = {"scale": Single(strategy.scale)}
        held |= {"offset": strategy.offset, "_a": Marker} if affine else {"_q": Marker}
        return _bytes(codes), {"QFloat": {AFFINE if affine else SYMMETRIC: held}}
    offset = np.array([strategy.offset], "<i4").tobytes() if affine else b""
    content = codes.tobytes() + offset + np.array([strategy.scale], "<f4").tobytes()
    payload: Any = {"PerTensorAffine" if affine else "PerTensorSymmetric": "QInt8"}
    if release >= (0, 17):
        payload = {"PerTensor": ["Symmetric", "QInt8"]}
    if release >= (0, 18):
        payload = {
            "level": "Tensor",
            "mode": "Symmetric",
            "q_type": "QInt8",
            "acc_precision": "Full",
            "propagation": "Inhibit",
        }
    return memoryview(content), {"QFloat": payload}


def _plain(scheme: QuantScheme, release: Release) -> dict[str, Any] | None:
    """The payload of a scheme since Burn 0.19; None where the release has none."""
    store, size = _plain_store(scheme.store, release), None
    dims = len(scheme.block_size or ())
    if store is None or dims > BLOCK_DIMS:
        return None
    if scheme.block_size is not None:
        storage = [*scheme.block_size, *[1] * (BLOCK_DIMS - dims)]
        size = {"storage": storage, "len": dims}
    value, mode = scheme.value.name, scheme.mode.name
    if release >= BURNPACK:
        tensor, block = scheme.tensor_scale, None
        if size is not None:
            block = {"size": size, "dtype": scheme.scale_dtype.name}
        whole = tensor.name if tensor else None
        names = {"value": value, "store": store, "mode": mode}
        return names | {"tensor": whole, "block": block}
    if scheme.has_global:
        return None
    level = "Tensor" if size is None else {"Block": size}
    names = {"value": value, "param": scheme.scale_dtype.name, "store": store}
    return names | {"level": level, "mode": mode}


def _plain_store(store: QuantStore, release: Release) -> Any:
    if not store.word:
        return store.name
    if release >= (0, 20):
        return {store.name: store.dim}
    return "U32" if (store.name, store.dim) == ("PackedU32", 0) else None


def _bytes(codes: np.ndarray) -> memoryview:
    return codes.reshape(-1).view(np.uint8).data


def _refuse(path: Path, strategy: object, release: Release) -> NoReturn:
    burn = ".".join(map(str, release[:2] or (0, 15)))
    what = (
        f"{named(path)} is quantized in a way that records of Burn {burn} cannot hold"
    )
    expected = "PerTensorAffine (Burn 0.15 and 0.16), PerTensorSymmetric, or Q8S"
    if release >= (0, 19):
        expected = "codes without an offset"
        expected += "" if release >= BURNPACK else ", scales on one level"
    raise Trouble(what, expected, short(repr(strategy)), DEQUANTIZE)


def _with_scheme(strategy: QuantizationStrategy | None) -> SchemeStrategy | None:
    """A strategy of newer Burn: itself, or what says the same as Burn 0.15's."""
    if isinstance(strategy, PerTensorSymmetricInt8):
        scheme = QuantScheme(QuantValue.Q8S, QuantStore.Native).per_tensor()
        return SchemeStrategy(scheme, strategy.scale)
    return strategy if isinstance(strategy, SchemeStrategy) else None


def _int8(strategy: QuantizationStrategy | None) -> Any:
    """A strategy of Burn 0.15: itself, or the one that says the same as a newer one."""
    if not isinstance(strategy, SchemeStrategy):
        return strategy
    scheme = strategy.scheme
    one = scheme.block_size is None and scheme.scale_dtype is ScaleDtype.F32
    if scheme.value is not QuantValue.Q8S or not one:
        return None
    return PerTensorSymmetricInt8(float(strategy.params().scales[0]))


# --- reading --------------------------------------------------------------------------


def read(
    content: bytes | memoryview, dims: tuple[int, ...], plain: Any, path: Path
) -> TensorData:
    """The data behind the bytes of a file and the payload of their dtype."""
    try:
        strategy, after = _strategy(content, dims, plain, path)
        if strategy is not None:
            data = memoryview(content)[: len(content) - after]
            return TensorData.from_bytes(data, dims, QFloat(strategy))
    except (BurnbookError, OverflowError) as cause:
        raise Trouble(f"{named(path)}: {getattr(cause, 'what', cause)}") from None
    name = next(iter(plain), "") if isinstance(plain, dict) else plain
    raise Trouble(
        f"{named(path)} is quantized in an unknown way",
        f"{AFFINE} or {SYMMETRIC} with their numbers, or a scheme of Burn 0.16 to 0.22",
        short(name) if name else "",
        "dequantize the module in Burn before saving it",
    )


def _strategy(
    content: bytes | memoryview, dims: tuple[int, ...], plain: Any, path: Path
) -> tuple[QuantizationStrategy | None, int]:
    """What a payload says, and how many bytes after the codes belong to it."""
    if not isinstance(plain, dict) or not plain:
        return None, 0
    if {"value", "store"} <= plain.keys():
        return _scheme(plain), 0
    ((name, held), *others) = plain.items()
    if name in (AFFINE, SYMMETRIC):
        return _with_numbers(name, held), 0
    symmetric = name == "PerTensor" and held == ["Symmetric", "QInt8"]
    if plain.get("q_type") == "QInt8" and plain.get("level") == "Tensor":
        symmetric = plain.get("mode") == "Symmetric"  # Burn 0.18
    elif others or not (symmetric or (name in AFTER and held == "QInt8")):
        return None, 0
    tail = 8 if name == "PerTensorAffine" else 4
    if len(content) != prod(dims) + tail:
        expected = f"{prod(dims)} codes and {tail} bytes of parameters"
        what = f"{named(path)} does not fit its shape"
        raise Trouble(what, expected, f"{len(content)} bytes")
    scale = float(np.frombuffer(content[-4:], "<f4")[0])
    if name == "PerTensorAffine":
        offset = int(np.frombuffer(content[-8:-4], "<i4")[0])
        return PerTensorAffineInt8(scale, offset), tail
    return PerTensorSymmetricInt8(scale), tail


def _with_numbers(name: str, held: Any) -> QuantizationStrategy | None:
    """A strategy of Burn 0.15, with its numbers in the payload."""
    if isinstance(held, list):  # a struct written by position
        held = dict(zip(("scale", "offset"), held, strict=False))
    held = held if isinstance(held, dict) else {}
    scale, offset = held.get("scale"), held.get("offset")
    if not isinstance(scale, float | int):
        return None
    if name == SYMMETRIC:
        return PerTensorSymmetricInt8(scale)
    return PerTensorAffineInt8(scale, offset) if type(offset) is int else None


def _scheme(plain: dict[str, Any]) -> SchemeStrategy | None:
    """A scheme since Burn 0.19; its numbers stand behind the codes."""
    try:
        value, mode = plain["value"], plain.get("mode", "Symmetric")
        scheme = QuantScheme(QuantValue[value], _store(plain["store"]), QuantMode[mode])
        if "level" in plain:  # until Burn 0.21: one level of scales
            tensor, level = plain["param"], plain["level"]
            block = None
            if level != "Tensor":
                tensor, block = None, {"size": level["Block"], "dtype": tensor}
        else:
            tensor, block = plain["tensor"], plain["block"]
        if tensor is not None:
            scheme = scheme.per_tensor(ScaleDtype[tensor])
        if block is not None:
            size = _block_size(block["size"])
            scheme = scheme.per_block(size, ScaleDtype[block["dtype"]])
        return SchemeStrategy(scheme)
    except (KeyError, TypeError, ValueError):
        return None


def _block_size(plain: dict[str, Any]) -> list[int]:
    storage, count = plain["storage"], plain["len"]
    whole = isinstance(storage, list) and all(type(n) is int for n in storage)
    if not whole or type(count) is not int or not 0 <= count <= len(storage):
        raise ValueError("sizes of blocks are whole numbers")
    return storage[:count]


def _store(plain: object) -> QuantStore:
    if plain == "U32":  # Burn 0.19
        return QuantStore.PackedU32(0)
    if plain == "Native":
        return QuantStore.Native
    if isinstance(plain, dict) and len(plain) == 1:
        ((name, dim),) = plain.items()
        makers = {
            maker.__name__: maker
            for maker in (QuantStore.PackedNative, QuantStore.PackedU32)
        }
        if type(dim) is int and dim >= 0:
            return makers[name](dim)
    raise ValueError(f"codes are not stored as {plain!r}")
