"""Fields and constants of an imported module, and what goes in and comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burnbook.backend.base import Backend
from burnbook.core.dtypes import Float, Int
from burnbook.importers.onnx.operators.joining import narrow
from burnbook.importers.onnx.values import (
    FLOATS,
    Value,
    as_array,
    as_tensor,
    default_device,
    dtype_of,
    float_backend,
    lifted,
    moved,
    reshape,
)
from burnbook.module import Module, Param
from burnbook.module.param import ParamId
from burnbook.nn import Embedding, Gru
from burnbook.tensor import Tensor


def weight(shape: Sequence[int], device: Backend, dtype: str = "float32") -> Param:
    """A parameter that learns; zeros until a record is loaded."""
    return _param(shape, float_backend(device, dtype_of(dtype)), True)


def frozen(shape: Sequence[int], device: Backend, dtype: str = "float32") -> Param:
    """A parameter that does not learn."""
    return _param(shape, float_backend(device, dtype_of(dtype)), False)


def whole(shape: Sequence[int], device: Backend) -> Param:
    """Whole numbers that belong to the model."""
    zeros = Tensor.zeros(list(shape), device, Int)
    return Param(ParamId.new(), zeros, require_grad=False, kind=Int)


def _param(shape: Sequence[int], device: Backend, learns: bool) -> Param:
    def init(device: Backend, require_grad: bool) -> Tensor:
        zeros = Tensor.zeros(list(shape), device)
        return zeros.require_grad() if require_grad and device.ad_enabled else zeros

    return Param.uninitialized(ParamId.new(), init, device, learns, shape)


def const(values: Value, dtype: str, shape: Sequence[int] | None = None) -> Any:
    """A short constant of an element type."""
    wide = np.float32 if "float" in dtype and dtype not in ("float64",) else None
    found = np.array(values, wide).astype(dtype_of(dtype))
    return found if shape is None else found.reshape(tuple(shape))


def array(x: Tensor, dtype: str, shape: Sequence[int]) -> Any:
    """Whole numbers of a field in their own element type, or bits as what they mean."""
    held, wanted = as_array(x), dtype_of(dtype)
    if dtype.startswith(("int", "uint", "bool")):
        return held.astype(wanted).reshape(tuple(shape))
    if wanted.kind == "c":
        pairs = held.view(np.float64)
        return pairs.view(np.complex128).astype(wanted).reshape(tuple(shape))
    bits = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[wanted.itemsize]
    return held.astype(bits).view(wanted).reshape(tuple(shape))


def tensor(x: Value, model: Module) -> Tensor:
    """A value as a tensor on the model's device, for a layer."""
    if isinstance(x, Tensor):
        return x
    devices = model.devices()
    return as_tensor(x, devices[0] if devices else default_device())


def indices(ids: Value, table: Embedding) -> Tensor:
    """Ids as a tensor on the device of a table, counted from its end where below 0."""
    rows, device = table.weight.val().value.shape[0], table.devices()[0]
    held = as_array(ids)
    return as_tensor(np.where(held < 0, held + rows, held), device)


def last_state(output: Tensor, layer: Gru) -> Tensor:
    """The state after the last step that a Gru took, as ONNX has it: [1, b, d]."""
    steps = 1 if layer.batch_first else 0
    place = 0 if layer.reverse else output.value.shape[steps] - 1
    b, d = output.value.shape[1 - steps], output.value.shape[2]
    return reshape(narrow(output, steps, place, 1), (1, b, d))


def of_type(x: Tensor, dtype: str) -> Tensor:
    """A tensor in another float type."""
    return moved(x, float_backend(x.backend, dtype_of(dtype)))


def scalar(x: Tensor) -> Tensor:
    """The one element of a tensor, as a tensor of rank 0."""
    return reshape(x, ())


def from_tensors(model: Module, inputs: Sequence[tuple[Value, str]]) -> list[Value]:
    """What a caller gives, as the graph has it: whole numbers and truths as arrays."""
    return [_inside(value, dtype) for value, dtype in inputs]


def _inside(value: Value, dtype: str) -> Value:
    if value is None or isinstance(value, list):
        return value if value is None else [_inside(part, dtype) for part in value]
    wanted = dtype_of(dtype) if dtype else None
    if isinstance(value, Tensor) and value.kind is Float:
        if wanted is None or wanted in FLOATS:
            return value if wanted is None else of_type(value, dtype)
        return as_array(value).astype(wanted)
    found = as_array(value)
    return found if wanted is None else found.astype(wanted, copy=False)


def to_tensors(model: Module, results: Value) -> Any:
    """Results as tensors: whole numbers and truths too, rank 0 as one element."""
    devices = model.devices()
    device = devices[0] if devices else default_device()
    if isinstance(results, tuple):
        return tuple(_outside(value, device) for value in results)
    return _outside(results, device)


def _outside(value: Value, device: Backend) -> Value:
    if isinstance(value, list):
        return [_outside(part, device) for part in value]
    if value is None or isinstance(value, dict):
        return value
    found = lifted(value, device)
    if not isinstance(found, Tensor):
        if found.dtype.kind not in "fiub":
            return found
        found = as_tensor(found, device)
    return found if len(found.value.shape) else reshape(found, (1,))
