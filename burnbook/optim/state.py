"""What an optimizer remembers, as a record and back.

A state is a frozen dataclass of numbers, tensors and smaller states, so its record
follows from its fields. A record has no device: loaded values wait as they are until
the first gradient says where to go.
"""

import dataclasses
from typing import Any, NamedTuple, TypeVar

from burnbook.backend.base import Backend
from burnbook.core.converters import TypeSpec, type_spec, type_specs
from burnbook.core.tree import DATACLASS, Kind, Pytree
from burnbook.module import ParamRecord
from burnbook.tensor import Float, Tensor, TensorData

S = TypeVar("S")

#: Of a field that came with Burn 0.21: where it is None, older records leave it out.
SINCE_0_21 = {"since": (0, 21)}
#: Of a field that is None in memory alone: records always hold it.
ALWAYS = {"always": True}


class StateRecord(dict[str, Any]):
    """The record of a state: a dict that knows its type, for formats without names."""

    def __init__(self, record: dict[str, Any], kind: type):
        super().__init__(record)
        self.kind = kind

    def at_release(self, release: tuple[int, ...]) -> dict[str, Any]:
        """The record with every field that this release of Burn has."""
        names = fields_at(self.kind, release)
        return {**dict.fromkeys(names), **self}

    def __reduce__(self) -> Any:
        return StateRecord, (dict(self), self.kind)


def fields_at(kind: Any, release: tuple[int, ...]) -> dict[str, TypeSpec]:
    """The fields that the record of a state has in a release, with their types."""
    specs, found = type_specs(kind), {}
    for field in dataclasses.fields(kind):
        spec = specs[field.name]
        if "always" in field.metadata:
            (spec,) = spec.meant
        if field.metadata.get("since", ()) <= release:
            found[field.name] = spec
    return found


def _recorded(state: Any) -> list[tuple[str, Any]]:
    """The fields of a state that its record has."""
    whole = getattr(state, "recorded", lambda: state)()
    held = [(field, getattr(whole, field.name)) for field in dataclasses.fields(whole)]
    return [
        (field.name, value)
        for field, value in held
        if value is not None or "since" not in field.metadata
    ]


STATES = Pytree({}, DATACLASS)
RECORDS = Pytree(
    {},
    Kind(
        parts=_recorded,
        map=lambda state, go: StateRecord(
            {name: go(part) for name, part in _recorded(state)}, type(state)
        ),
        values=lambda state: dict(_recorded(state)).values(),
    ),
)


def state_to_record(state: object) -> Any:
    """The record of a state: its fields by name, tensors as their elements."""
    return RECORDS.map(state, _to_data)


def _to_data(leaf: object) -> object:
    return leaf.to_data() if isinstance(leaf, Tensor) else leaf


def state_from_record(
    kind: type, record: object, device: Backend | None, path: str, problems: list[str]
) -> Any:
    """The state of this type; with no device, its tensors stay TensorData."""
    return _Reading(device, problems).read(type_spec(kind), record, path)


class _Reading(NamedTuple):
    """Makes states of records, and notes what does not fit."""

    device: Backend | None
    problems: list[str]

    def read(self, spec: TypeSpec, record: Any, path: str) -> Any:
        if spec.optional and record is None:
            return None
        spec = spec.meant[0]
        if spec.kind is Tensor:
            return self._tensor(record, path)
        if isinstance(spec.kind, type) and dataclasses.is_dataclass(spec.kind):
            return self._struct(spec.kind, record, path)
        if spec.kind is list:
            if not isinstance(record, list):
                return self._note(f"{path} is not a list")
            rows = enumerate(record)
            return [self.read(spec.item, row, f"{path}.{i}") for i, row in rows]
        fits = isinstance(record, (int, float)) and not isinstance(record, bool)
        if not fits or (spec.kind is int and not isinstance(record, int)):
            return self._note(f"{path} is not a number")
        return spec.kind(record)

    def _note(self, problem: str) -> None:
        self.problems.append(problem)

    def _tensor(self, record: object, path: str) -> Tensor | TensorData | None:
        data = record.param if isinstance(record, ParamRecord) else record
        if not isinstance(data, TensorData):
            return self._note(f"{path} is not a tensor")
        device = self.device
        return data if device is None else Tensor.from_data(data, device, Float)

    def _struct(self, kind: type, record: object, path: str) -> Any:
        if not isinstance(record, dict):
            return self._note(f"{path} is not a part with fields")
        specs, values = type_specs(kind), {}
        for name in record:
            if name not in specs:
                self._note(f"{path} has a part {str(name)[:40]}, which is unknown")
        for name, inner in specs.items():
            if name in record or inner.optional:
                values[name] = self.read(inner, record.get(name), f"{path}.{name}")
            else:
                self._note(f"{path}.{name} is not in the record")
        return None if len(values) < len(specs) else kind(**values)


def state_to_device(state: S, device: Backend) -> S:
    """The state with its tensors on a device."""

    def move(leaf: object) -> object:
        if isinstance(leaf, TensorData):
            return Tensor.from_data(leaf, device, Float)
        return leaf.to_device(device) if isinstance(leaf, Tensor) else leaf

    return STATES.map(state, move)


def state_tensors(state: object) -> list[Tensor | TensorData]:
    """Every tensor in a state."""
    leaves = (leaf for _, leaf in STATES.leaves(state))
    return [leaf for leaf in leaves if isinstance(leaf, (Tensor, TensorData))]
