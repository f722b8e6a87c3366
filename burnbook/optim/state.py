"""What an optimizer remembers, as a record and back.

A state is a frozen dataclass of numbers, tensors and smaller states, so its record
follows from its fields. A record has no device: loaded values wait as they are until
the first gradient says where to go.
"""

import dataclasses
import functools
import types
import typing
from typing import Any

from burnbook.backend.base import Backend
from burnbook.module import ParamRecord
from burnbook.tensor import Float, Tensor, TensorData

#: Of a field that came with a newer Burn: where it is None, no record mentions it.
LATER = {"later": True}


def state_to_record(state: Any) -> Any:
    """The record of a state: its fields by name, tensors as their elements."""
    if isinstance(state, Tensor):
        return state.to_data()
    if isinstance(state, list):
        return [state_to_record(part) for part in state]
    if dataclasses.is_dataclass(state):
        whole = getattr(state, "recorded", lambda: state)()
        held = [(f, getattr(whole, f.name)) for f in dataclasses.fields(whole)]
        return {
            field.name: state_to_record(value)
            for field, value in held
            if value is not None or "later" not in field.metadata
        }
    return state


def state_from_record(
    kind: Any, record: Any, device: Backend | None, path: str, problems: list[str]
) -> Any:
    """The state of this type; with no device, its tensors stay TensorData."""
    origin, arms = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if record is None:
            return None
        kind = next(arm for arm in arms if arm is not types.NoneType)
    if kind is Tensor:
        if isinstance(record, ParamRecord):
            record = record.param
        if not isinstance(record, TensorData):
            problems.append(f"{path} is not a tensor")
            return None
        return record if device is None else Tensor.from_data(record, device, Float)
    if dataclasses.is_dataclass(kind):
        return _from_fields(kind, record, device, path, problems)
    if origin is list:
        if not isinstance(record, list):
            problems.append(f"{path} is not a list")
            return None
        rows = enumerate(record)
        read = state_from_record
        return [read(arms[0], row, device, f"{path}.{i}", problems) for i, row in rows]
    fits = isinstance(record, (int, float)) and not isinstance(record, bool)
    if not fits or (kind is int and not isinstance(record, int)):
        problems.append(f"{path} is not a number")
        return None
    return kind(record)


def _from_fields(
    kind: Any, record: Any, device: Backend | None, path: str, problems: list[str]
) -> Any:
    if not isinstance(record, dict):
        problems.append(f"{path} is not a part with fields")
        return None
    values: dict[str, Any] = {}
    for name in record:
        if name not in _types(kind):
            problems.append(f"{path} has a part {str(name)[:40]}, which is not known")
    for name, inner in _types(kind).items():
        at = f"{path}.{name}"
        if name not in record and type(None) not in typing.get_args(inner):
            problems.append(f"{at} is not in the record")
            continue
        held = record.get(name)
        values[name] = state_from_record(inner, held, device, at, problems)
    return None if len(values) < len(_types(kind)) else kind(**values)


def state_to_device(state: Any, device: Backend) -> Any:
    """The state with its tensors on a device."""
    if isinstance(state, Tensor):
        return state.to_device(device)
    if isinstance(state, TensorData):
        return Tensor.from_data(state, device, Float)
    if isinstance(state, list):
        return [state_to_device(part, device) for part in state]
    if not dataclasses.is_dataclass(state):
        return state
    names = [field.name for field in dataclasses.fields(state)]
    moved = {name: state_to_device(getattr(state, name), device) for name in names}
    return type(state)(**moved)  # type: ignore[call-overload,operator] # an instance


def state_tensors(state: Any) -> list[Tensor | TensorData]:
    """Every tensor in a state."""
    if isinstance(state, (Tensor, TensorData)):
        return [state]
    if not dataclasses.is_dataclass(state) and not isinstance(state, list):
        return []
    parts = (
        state
        if isinstance(state, list)
        else (getattr(state, field.name) for field in dataclasses.fields(state))
    )
    return [tensor for part in parts for tensor in state_tensors(part)]


@functools.cache
def _types(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)
