"""Checkpoints in bincode: the state of optimizer, schedule.

An optimizer's record is a map: for each parameter its id, a byte 0 (the version), its
rank, and the fields of the state back to back. What those fields are follows from the
state's type, so only the optimizer itself can read such a file. A schedule is one
number, and a constant rate is nothing at all.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator
from typing import Any, NoReturn

from burnbook.core.converters import TypeSpec, type_spec
from burnbook.lr_scheduler.base import Numbers, WholePlace
from burnbook.optim.state import StateRecord, fields_at
from burnbook.record.bincode import Reader, Writer, signed_number, text, whole_number
from burnbook.record.tree import OTHERWISE, Path, Trouble, named
from burnbook.tensor import Tensor

RANKS = 9  # Rank0 to Rank8
# The schedules inside a composed one, in Burn's order; it has the first four.
SCHEDULES = (
    "Linear Cosine Exponential Noam Constant Step Composed Sequential "  # noqa: SIM905
    "Polynomial WarmupCosine OneCycle ReduceOnPlateau".split()
)


def write_state(writer: Writer, record: Any) -> Iterator[Any]:
    """The bytes of the record of an optimizer or a schedule, piece by piece."""
    if isinstance(record, dict) and "schedulers" in record:
        yield from _write_schedules(record)
    elif isinstance(record, Numbers):
        yield from map(_number, record.values())
    elif isinstance(record, dict):
        kinds: set[type] = set()
        yield whole_number(len(record))
        for name, held in record.items():
            rank, state = _state_in(held, ("item", str(name)))
            kinds.add(state.kind)
            if len(kinds) > 1:
                refuse("an optimizer with groups")
            yield text(name) + b"\0" + whole_number(rank)
            spec = type_spec(state.kind)
            yield from _write(writer, spec, state, ("item", name))
    else:
        yield _number(record)


def is_state(record: object) -> bool:
    """Whether something is the record of an optimizer or of a schedule."""
    if isinstance(record, Numbers):
        return True
    if isinstance(record, dict):
        return "schedulers" in record or all(
            isinstance(held, dict) and list(held) == ["V1"] for held in record.values()
        )
    return isinstance(record, int | float) and not isinstance(record, bool)


def _state_in(held: Any, path: Path) -> tuple[int, StateRecord]:
    """The rank and the state in {"V1": {"Rank2": state}}."""
    inner = held.get("V1") if isinstance(held, dict) else None
    rank, state = next(iter(inner.items())) if isinstance(inner, dict) else ("", None)
    if not isinstance(state, StateRecord):
        what = f"{named(path)} does not say of which optimizer it is"
        cure = "optim.load_record(record), then optim.into_record()"
        raise Trouble(what, "optim.into_record()", type(state).__name__, cure)
    return int(rank.removeprefix("Rank")), state


def _write_schedules(record: dict[str, Any]) -> Iterator[bytes]:
    if "step" in record:
        yield whole_number(record["step"])
    yield whole_number(len(record["schedulers"]))
    for row in record["schedulers"]:
        ((name, held),) = row.items()
        yield whole_number(SCHEDULES.index(name))
        if isinstance(held, Numbers):
            yield from map(_number, held.values())
        elif isinstance(held, dict):
            yield from _write_schedules(held)
        else:
            yield _number(held)


def _number(held: Any) -> bytes:
    if isinstance(held, float):
        return struct.pack("<d", held)
    if _is_signed(held):
        return signed_number(held)
    return b"" if held is None else whole_number(held)


def read_state(reader: Reader, part: Any) -> Any:
    """What `write_state` wrote for such an optimizer or schedule."""
    path: Path = ("item",)
    if not hasattr(part, "step_multi"):
        return _read_schedule(reader, part, path)
    spec, found = type_spec(state_type(part)), {}
    for _ in range(reader.number(path)):
        name = reader.text(path)
        at = (*path, name)
        if reader.take(1, at) != b"\0":
            raise Trouble(f"{named(at)} has another version", "V1")
        rank = reader.number(at)
        if rank >= RANKS:
            raise Trouble(f"{named(at)} has an impossible rank", "0 to 8", f"{rank}")
        found[name] = {"V1": {f"Rank{rank}": _read(reader, spec, at)}}
    return found


def state_type(optim: Any) -> Any:
    """The one type that all states of an optimizer have."""
    rules = [optim.optim, *(group.rule for group in optim.groups)]
    kinds = {rule.state_type for rule in rules}
    if len(kinds) != 1:
        refuse(type(optim).__name__)
    return kinds.pop()


def _read_schedule(reader: Reader, part: Any, path: Path) -> Any:
    inside = getattr(part, "schedulers", None)
    if isinstance(inside, list):
        return _read_schedules(reader, part, path)
    before = getattr(part, "before_0_15", ())
    if before and reader.metadata.release < (0, 15):
        return [_read_number(reader, kind, path) for kind in before]
    example = part.into_record()
    if example is None:  # a constant; as the record of a module it is one byte
        if reader.data[reader.at :] == b"\0":
            reader.take(1, path)
        return None
    if isinstance(example, Numbers):
        rows = example.items()
        return {name: _read_number(reader, type(held), path) for name, held in rows}
    if _is_signed(example):
        return reader.signed(path)
    return _read_number(reader, type(example), path)


def _read_schedules(reader: Reader, part: Any, path: Path) -> dict[str, Any]:
    if not hasattr(part, "config"):
        refuse(type(part).__name__)
    own = {"step": reader.number(path)} if hasattr(part, "field") else {}
    count, rows = reader.number(path), []
    if count != len(part.schedulers):
        what = f"{named(path)} has another number of schedules"
        raise Trouble(what, f"{len(part.schedulers)}", f"{count}")
    for each in part.schedulers:
        place = reader.number(path)
        if place >= len(SCHEDULES):
            raise Trouble(f"{named(path)} holds an unknown schedule", found=f"{place}")
        held = (
            None if each.into_record() is None else _read_schedule(reader, each, path)
        )
        rows.append({SCHEDULES[place]: held})
    return {**own, "schedulers": rows}


def _read_number(reader: Reader, kind: type, path: Path) -> Any:
    if issubclass(kind, float):
        return struct.unpack("<d", reader.take(8, path))[0]
    return reader.number(path)


def _is_signed(place: object) -> bool:
    """Whether Burn keeps this number of a schedule as one that may be below 0."""
    return isinstance(place, WholePlace) and place.scalar == "Int"


def _write(
    writer: Writer, spec: TypeSpec, node: Any, path: Path
) -> Iterator[bytes | memoryview]:
    if spec.optional:
        yield bytes([node is not None])
        if node is None:
            return
    kind = spec.meant[0].kind
    if dataclasses.is_dataclass(kind):
        known = fields_at(kind, writer.metadata.release)
        for name, inner in known.items():
            yield from _write(writer, inner, node.get(name), (*path, name))
        newer = sorted(set(node) - set(known))
        if newer:
            what = f"{named((*path, newer[0]))} came with a newer Burn than bincode's"
            raise Trouble(
                what, cure=f"version='0.21.0' on the recorder, or {OTHERWISE}"
            )
    elif kind is Tensor:
        low = writer.lower(node, path)
        yield from writer.tensor(low, path)
    elif kind is list:
        yield whole_number(len(node))
        for i, one in enumerate(node):
            yield from _write(writer, spec.item, one, (*path, str(i)))
    elif kind is int:
        yield whole_number(node)
    else:
        yield struct.pack("<d", node)


def _read(reader: Reader, spec: TypeSpec, path: Path) -> Any:
    if spec.optional and not reader.flag(path):
        return None
    kind = spec.meant[0].kind
    if dataclasses.is_dataclass(kind):
        fields = fields_at(kind, reader.metadata.release).items()
        return {name: _read(reader, inner, (*path, name)) for name, inner in fields}
    if kind is Tensor:
        return reader.tensor(path)
    if kind is list:
        count = reader.number(path)
        return [_read(reader, spec.item, (*path, str(i))) for i in range(count)]
    if kind is int:
        return reader.number(path)
    return struct.unpack("<d", reader.take(8, path))[0]


def refuse(name: str) -> NoReturn:
    """Say that a format without names cannot hold this."""
    raise Trouble(f"{name} has parts that only names can tell apart", cure=OTHERWISE)
