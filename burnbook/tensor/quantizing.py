"""From a tensor of numbers to one of codes: what Tensor has for it."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Self

import numpy as np

from burnbook.core.dtypes import Float
from burnbook.core.errors import DataError, GraphError, KindError, ShapeError
from burnbook.ops.quantize import from_codes, to_codes
from burnbook.ops.shape import cast
from burnbook.tensor.indexing import Indexing
from burnbook.tensor.qfloat import (
    Params,
    PerTensorAffineInt8,
    PerTensorSymmetricInt8,
    QuantizationStrategy,
    SchemeStrategy,
)
from burnbook.tensor.quantization_scheme import (
    NO_SCALE,
    CalibrationRange,
    QuantizationParameters,
    QuantScheme,
    Scheme,
)
from burnbook.tensor.quantized_packing import Shape, beside, divided

F32 = np.dtype(np.float32)


class Quantizing(Indexing):
    """Float tensors as codes of a few bits; gradients end here."""

    __slots__ = ()

    def quantize(self, scheme: Scheme, qparams: QuantizationParameters) -> Self:
        """The nearest codes by a scheme: round(x / scale + offset), kept in its range.

        The result is a Float tensor that holds codes: see `tensor/quantization.py`.

        Example:
            >>> from burnbook.tensor.quantization import QuantizationScheme
            >>> from burnbook.tensor import Tensor
            >>> x = Tensor.from_data([-1.8, -1.0, 0.0, 0.5])
            >>> codes = x.quantize_dynamic(QuantizationScheme.PerTensorSymmetric())
            >>> codes.to_data().to_list()
            [-127, -71, 0, 35]
        """
        x = _plain("quantize", self)
        shape = self.dims()
        strategy = known_strategy(scheme, qparams, shape)
        backend, xp = self.backend, self.backend.xp
        if x.dtype != F32:
            x = backend.run(cast, (x,), {"dtype": F32})
        if bool(xp.isnan(x).any()):
            what = "the tensor holds NaN, which no code represents"
            raise DataError("quantize", what, [("x", f"Float {list(shape)}")])
        scale, offset = spread(backend, strategy, shape)
        parts = xp.reshape(x, divided(shape, scheme))
        values = (parts, scale, offset)
        codes = backend.run(to_codes, values, {"value": scheme.value.name})
        return type(self).holder.of_codes(xp.reshape(codes, shape), strategy, backend)

    def quantize_dynamic(self, scheme: Scheme) -> Self:
        """Quantize by the smallest and the largest number of this tensor itself."""
        x = self.dequantize()
        _plain("quantize_dynamic", x)
        return x.quantize(scheme, scheme.compute_q_params(min_max(x, scheme)))

    def dequantize(self) -> Self:
        """The numbers that codes stand for; other tensors are what they are."""
        return self


def known_strategy(
    scheme: Any, qparams: QuantizationParameters, shape: Shape
) -> QuantizationStrategy:
    """A scheme with its parameters as numbers outside any backend, checked."""
    if not isinstance(scheme, Scheme):
        what = f"{type(scheme).__name__} is not a scheme"
        cure = "QuantizationScheme.PerTensorSymmetric() or QuantScheme()"
        raise KindError("quantize", what, cure=cure)
    scales = np.asarray(qparams.scale, np.float32)
    wanted = scheme.params_shape(shape)
    if scales.size != prod(wanted):
        facts = [("tensor", str(list(shape))), ("scheme", repr(scheme))]
        what = f"the scheme has {prod(wanted)} scales, not {scales.size}"
        raise ShapeError("quantize", what, facts, f"scales of shape {list(wanted)}")
    odd = scales[~((scales >= 0) & np.isfinite(scales))]
    if odd.size:
        what = f"a scale is {odd[0]:g}"
        cure = "a look at the numbers for NaN and infinity; a scale is 0 or above"
        raise DataError("quantize", what, cure=cure)
    if isinstance(scheme, QuantScheme):
        whole = qparams.global_scale
        if whole is not None:
            whole = np.asarray(whole, np.float32).reshape(-1)[0]
        return SchemeStrategy(scheme, scales.reshape(wanted), whole)
    if not scheme.is_affine:
        return PerTensorSymmetricInt8(scales.reshape(-1)[0])
    if qparams.offset is None:
        raise DataError("quantize", f"{scheme!r} needs an offset")
    offset = np.asarray(qparams.offset).reshape(-1)[0]
    return PerTensorAffineInt8(scales.reshape(-1)[0], offset)


def _plain(where: str, tensor: Any) -> Any:
    """The raw numbers of a Float tensor, through which no gradient goes."""
    kind, value = tensor.kind, tensor.value
    shown = [("x", f"{kind.__name__} {list(value.shape)}  on {tensor.backend!r}")]
    if kind is not Float:
        raise KindError(where, f"takes Float, not {kind.__name__}", shown, "x.float()")
    if hasattr(value, "node"):
        raise GraphError(
            where,
            "rounding to codes has no gradient, and this tensor requires one",
            shown,
            "model.valid() or x.inner(); fake_quantize(x, scheme) to train for codes",
        )
    return value


def spread(backend: Any, strategy: QuantizationStrategy, shape: Shape) -> Any:
    """Scale and offset on a backend, to stretch over numbers that are `divided`."""
    params: Params = strategy.params()
    scale = params.scales
    if params.global_scale is not None:
        scale = scale * params.global_scale
    scale = np.where(scale == 0, np.float32(NO_SCALE), scale)
    scale = backend.from_numpy(beside(scale, shape, strategy.scheme))
    if params.offset is None:
        return scale, None
    return scale, backend.from_numpy(params.offset.reshape((1,) * len(shape)))


def numbers_of(
    codes: Any, strategy: QuantizationStrategy, shape: Shape, backend: Any
) -> Any:
    """The raw Float value that codes stand for."""
    scheme = strategy.scheme
    scale, offset = spread(backend, strategy, shape)
    parts = divided(shape, scheme)
    values = (codes if parts == shape else codes.reshape(parts), scale, offset)
    out = backend.run(from_codes, values, {"value": scheme.value.name})
    out = out if parts == shape else out.reshape(shape)
    if backend.float_dtype == F32:
        return out
    return backend.run(cast, (out,), {"dtype": backend.float_dtype})


def cut_off(x: Any, strategy: QuantizationStrategy, backend: Any) -> Any:
    """Where raw numbers lie beyond the codes at both ends, and half a code more."""
    scheme, xp, shape = strategy.scheme, backend.xp, tuple(x.shape)
    scale, offset = spread(backend, strategy, shape)
    ratio = xp.reshape(x, divided(shape, scheme)) / scale
    ratio = ratio if offset is None else ratio + offset
    low, high = scheme.value.range()
    half = 0.0 if scheme.value.type.exponent else 0.5
    return xp.reshape((ratio < low - half) | (ratio > high + half), shape)


def min_max(tensor: Any, scheme: Scheme) -> CalibrationRange:
    """The smallest and the largest number, of the tensor or of each block."""
    if not prod(tensor.dims()):
        raise DataError("quantize", "a tensor without elements has no range")
    tensor = tensor.dequantize().cast("f32")  # the scale of small f16 would underflow
    if scheme.block(tensor.dims()) is None:
        return CalibrationRange(tensor.min(), tensor.max())
    lowest = over_blocks(tensor, scheme, lambda t, dim: t.min_dim(dim))
    return CalibrationRange(
        lowest, over_blocks(tensor, scheme, lambda t, dim: t.max_dim(dim))
    )


def over_blocks(tensor: Any, scheme: Scheme, reduce: Callable[[Any, int], Any]) -> Any:
    """One number for each block of a tensor: its dims reduced one after the other."""
    shape = tensor.dims()
    parts = divided(shape, scheme)
    out = tensor.reshape_to(parts)
    for dim in range(1, len(parts), 2):
        out = reduce(out, dim) if parts[dim] > 1 else out
    return out.reshape_to(scheme.params_shape(shape))
