"""How codes and scales are laid out: in blocks, in words, in few bits."""

from typing import Any

import numpy as np

from burnbook.core.errors import DimError
from burnbook.ops.quantize import WORDS, from_codes, pack, to_codes, unpack
from burnbook.tensor.quantization_scheme import QuantStore, ScaleDtype, Scheme

Shape = tuple[int, ...]


def divided(shape: Shape, scheme: Scheme) -> Shape:
    """A shape with every dim as (blocks, size of a block); as it is without blocks."""
    block = scheme.block(shape)
    if block is None:
        return tuple(shape)
    pairs = zip(shape, block, strict=True)
    return tuple(size for n, b in pairs for size in (n // b, b))


def beside(scales: Any, shape: Shape, scheme: Scheme) -> Any:
    """Scales in a shape that stretches over the numbers of a `divided` shape."""
    if scheme.block(shape) is None:
        return scales.reshape((1,) * len(shape))
    grid = scheme.params_shape(shape)
    return scales.reshape(tuple(size for n in grid for size in (n, 1)))


def same_in_blocks(scales: np.ndarray, scheme: Scheme) -> np.ndarray | None:
    """One scale for each block, from the scale of every number; None if they differ."""
    shape = scales.shape
    try:
        parts = scales.reshape(divided(shape, scheme))
    except ValueError:  # blocks do not fill this shape
        return None
    inside = tuple(range(1, 2 * len(shape), 2))
    if not scales.size or (parts.max(inside) != parts.min(inside)).any():
        return None
    return parts.max(inside)


def packed(xp: Any, codes: Any, scheme: Scheme) -> Any:
    """Codes as they are kept: bytes as they are, fewer bits together in words."""
    bits, store = scheme.value.size_bits(), scheme.store
    if bits == 8 or not store.word:
        return codes
    turned = codes.swapaxes(-1, axis_of(store, codes.ndim))
    return pack(xp, turned, bits=bits, word=store.word)


def unpacked(xp: Any, kept: Any, shape: Shape, scheme: Scheme) -> Any:
    """The codes of a tensor of a shape, each in an i8 of its own."""
    bits, store = scheme.value.size_bits(), scheme.store
    if bits == 8 or not store.word:
        return kept
    axis = axis_of(store, len(shape))
    signed = not scheme.value.type.exponent
    word, size = store.word, shape[axis]
    codes = unpack(xp, kept, bits=bits, word=word, size=size, signed=signed)
    return codes.swapaxes(-1, axis)


def kept_as(shape: Shape, scheme: Scheme) -> tuple[Shape, np.dtype]:
    """The shape and the element type of what holds the codes."""
    bits, store = scheme.value.size_bits(), scheme.store
    if bits == 8 or not store.word:
        return tuple(shape), np.dtype(np.int8)
    axis, sizes = axis_of(store, len(shape)), list(shape)
    sizes[axis], sizes[-1] = sizes[-1], -(-sizes[axis] * bits // store.word)
    return tuple(sizes), np.dtype(WORDS[store.word]).newbyteorder("<")


def axis_of(store: QuantStore, rank: int) -> int:
    """The dim along which codes share words."""
    if store.dim >= rank:
        what = f"codes of rank {rank} have no dim {store.dim} from the last"
        raise DimError("quantize", what, [("store", repr(store))])
    return rank - 1 - store.dim


SCALE_TYPES = {
    ScaleDtype.F32: np.dtype("<f4"),
    ScaleDtype.F16: np.dtype("<f2"),
    ScaleDtype.BF16: np.dtype("<u2"),
    ScaleDtype.UE8M0: np.dtype("u1"),
    ScaleDtype.UE4M3: np.dtype("u1"),
}


def narrow_scales(scales: np.ndarray, dtype: ScaleDtype) -> np.ndarray:
    """Scales in the bits they are stored in; they are numbers of that type already."""
    if dtype is ScaleDtype.UE4M3:
        one = np.ones(1, np.float32)
        return to_codes(np, scales, one, value="E4M3").view(np.uint8)
    if dtype is ScaleDtype.BF16:
        return (scales.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    if dtype is ScaleDtype.UE8M0:  # the exponent alone
        return (scales.view(np.uint32) >> np.uint32(23)).astype(np.uint8)
    return scales.astype(SCALE_TYPES[dtype])


def wide_scales(xp: Any, kept: Any, dtype: ScaleDtype) -> Any:
    """Stored scales as f32."""
    if dtype is ScaleDtype.UE4M3:
        return from_codes(xp, kept, xp.ones(1, dtype=xp.float32), value="E4M3")
    if dtype is ScaleDtype.BF16:
        return (kept.astype(xp.uint32) << 16).view(xp.float32)
    if dtype is ScaleDtype.UE8M0:
        bits = kept.astype(xp.uint32)
        lowest = xp.uint32(1 << 22)  # 2⁻¹²⁷, which f32 has no exponent for
        return xp.where(bits == 0, lowest, bits << 23).view(xp.float32)
    return kept.astype(xp.float32)
