"""Fields and constants of an imported module, and what goes in and comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from burnbook.backend.base import Backend
from burnbook.core.dtypes import Float, Int, dtype_name
from burnbook.importers.onnx.operators.joining import narrow
from burnbook.importers.onnx.tensors import PACKED, unpacked
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
from burnbook.module.tree import rebuild
from burnbook.nn import Embedding, Gru, Lstm, LstmState
from burnbook.tensor import Tensor
from burnbook.tensor.precision import sibling

M = TypeVar("M", bound=Module)
NARROW = ("i8", "i16", "u8", "u16")


def weight(shape: Sequence[int], device: Backend, dtype: str = "float32") -> Param:
    """A parameter that learns; zeros until a record is loaded."""
    return _param(shape, float_backend(device, dtype_of(dtype)), True)


def frozen(shape: Sequence[int], device: Backend, dtype: str = "float32") -> Param:
    """A parameter that does not learn."""
    return _param(shape, float_backend(device, dtype_of(dtype)), False)


def whole(shape: Sequence[int], device: Backend, dtype: str = "int64") -> Param:
    """Whole numbers that belong to the model, as narrow as the file has them."""
    if device.int_dtype != dtype:
        device = sibling(device, int=dtype_name(np.dtype(dtype)))
    zeros = Tensor.zeros(list(shape), device, Int)
    return Param(ParamId.new(), zeros, require_grad=False, kind=Int)


def tied(module: M, *paths: Sequence[str]) -> M:
    """The module in which the parameters of each list of paths are one."""
    held = dict(module.named_params())
    one = {held[path]: held[first] for first, *more in paths for path in more}
    return rebuild(module, lambda param: one.get(param, param), lambda tensor: tensor)


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
    if dtype in PACKED:
        return unpacked(held.astype(np.uint8, copy=False), dtype, shape)
    if dtype.startswith(("int", "uint", "bool")):
        return held.astype(wanted, copy=False).reshape(tuple(shape))
    if wanted.kind == "c":
        pairs = held.view(np.float64)
        return pairs.view(np.complex128).astype(wanted).reshape(tuple(shape))
    bits = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[wanted.itemsize]
    return held.astype(bits, copy=False).view(wanted).reshape(tuple(shape))


def tensor(x: Value, model: Module) -> Tensor:
    """A value as a tensor on the model's device, for a layer."""
    if isinstance(x, Tensor):
        return x
    return as_tensor(x, main_device(model))


_main: WeakKeyDictionary[Module, Backend] = WeakKeyDictionary()


def main_device(model: Module) -> Backend:
    """The device of a model, with the types that inputs have: not those of a weight."""
    found = _main.get(model)
    if found is None:
        held = [p.device for _, p in model.named_params() if p.kind is Float]
        held = held or model.devices()
        own = next((d for d in held if d.float == "f32"), held[0] if held else None)
        found = default_device() if own is None else own
        if found.int in NARROW:
            found = sibling(found, int="i64")
        _main[model] = found
    return found


def indices(ids: Value, table: Embedding) -> Tensor:
    """Ids as a tensor on the device of a table, counted from its end where below 0."""
    rows, device = table.weight.val().value.shape[0], table.devices()[0]
    held = as_array(ids)
    return as_tensor(np.where(held < 0, held + rows, held), device)


def first_state(layer: Module, h: Tensor, c: Tensor | None = None) -> Any:
    """The state that a recurrent layer begins with, of ONNX's [directions, b, d]."""
    given = [h] if c is None else [c, h]
    if isinstance(layer, (Lstm, Gru)):
        given = [reshape(s, tuple(s.value.shape)[1:]) for s in given]
    return given[0] if c is None else LstmState(*given)


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


def from_tensors(model: Module, inputs: Sequence[tuple[Any, ...]]) -> list[Value]:
    """What a caller gives, as the graph has it: whole numbers and truths as arrays.

    inputs: of each its value and element type, and 0 where one element has rank 0.
    """
    return [
        _of_rank_zero(_inside(*given[:2])) if len(given) > 2 else _inside(*given)
        for given in inputs
    ]


def _of_rank_zero(value: Value) -> Value:
    """One element in the shape [], which a tensor of the caller cannot have."""
    if isinstance(value, Tensor):
        return reshape(value, ()) if value.dims() == (1,) else value
    return value.reshape(()) if getattr(value, "shape", None) == (1,) else value


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


NUMBERS = (bool, int, float)  # a constant in the source that is written out


def to_tensors(model: Module, results: Value) -> Any:
    """Results as tensors: whole numbers and truths too, rank 0 as one element."""
    device = main_device(model)
    if isinstance(results, tuple):
        return tuple(_outside(value, device) for value in results)
    return _outside(results, device)


def _outside(value: Value, device: Backend) -> Value:
    """A result for the caller; numbers in a list are a short vector, not a sequence."""
    is_vector = isinstance(value, list) and value and type(value[0]) in NUMBERS
    if isinstance(value, list) and not is_vector:
        return [_outside(part, device) for part in value]
    if value is None or isinstance(value, dict):
        return value
    found = lifted(value, device)
    if not isinstance(found, Tensor):
        if found.dtype.kind not in "fiub":
            return found
        found = as_tensor(found, device)
    return found if len(found.value.shape) else reshape(found, (1,))
