"""Checkpoints in bincode: the state of optimizer, schedule.

An optimizer's record is a map: for each parameter its id, a byte 0 (the version), its
rank, and the fields of the state back to back. What those fields are follows from the
state's type, so only the optimizer itself can write and read such a file. A schedule is
one number, and a constant rate is nothing at all.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator
from typing import Any, NoReturn

from burnbook.core.converters import TypeSpec, type_spec, type_specs
from burnbook.record.bincode import Reader, Writer, text, whole_number
from burnbook.record.tree import Path, Trouble, named
from burnbook.tensor import Tensor

RANKS = 9  # Rank0 to Rank8
OTHERWISE = "a recorder for named MessagePack, which holds every record"


def write_state(writer: Writer, part: Any) -> Iterator[Any]:
    """The bytes of an optimizer or a schedule, piece by piece."""
    record = part.into_record()
    if hasattr(part, "step_multi"):
        spec = type_spec(state_type(part))
        yield whole_number(len(record))
        for name, held in record.items():
            ((rank, fields),) = held["V1"].items()
            yield text(name) + b"\0" + whole_number(int(rank.removeprefix("Rank")))
            yield from _write(writer, spec, fields, ("item", name))
    elif isinstance(record, float):
        yield struct.pack("<d", record)
    elif isinstance(record, int):
        yield _signed(record) if _goes_below_0(part) else whole_number(record)
    elif record is not None:
        _refuse(part)


def read_state(reader: Reader, part: object) -> Any:
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
        _refuse(optim)
    return kinds.pop()


def _read_schedule(reader: Reader, part: Any, path: Path) -> Any:
    example = part.into_record()
    if isinstance(example, float):
        return struct.unpack("<d", reader.take(8, path))[0]
    if isinstance(example, int):
        number = reader.number(path)
        return (number >> 1) ^ -(number & 1) if _goes_below_0(part) else number
    if example is not None:
        _refuse(part)
    return None


def _write(
    writer: Writer, spec: TypeSpec, node: Any, path: Path
) -> Iterator[bytes | memoryview]:
    if spec.optional:
        yield bytes([node is not None])
        if node is None:
            return
    kind = spec.meant[0].kind
    if dataclasses.is_dataclass(kind):
        for name, inner in _fields(kind).items():
            yield from _write(writer, inner, node.get(name), (*path, name))
        newer = sorted(set(node) - set(_fields(kind)))
        if newer:
            what = f"{named((*path, newer[0]))} came with a newer Burn than bincode's"
            raise Trouble(what, cure=OTHERWISE)
    elif kind is Tensor:
        low = writer.lower(node, path)
        yield from writer.tensor(low, path)
    elif kind is int:
        yield whole_number(node)
    else:
        yield struct.pack("<d", node)


def _read(reader: Reader, spec: TypeSpec, path: Path) -> Any:
    if spec.optional and not reader.flag(path):
        return None
    kind = spec.meant[0].kind
    if dataclasses.is_dataclass(kind):
        fields = _fields(kind).items()
        return {name: _read(reader, inner, (*path, name)) for name, inner in fields}
    if kind is Tensor:
        return reader.tensor(path)
    if kind is int:
        return reader.number(path)
    return struct.unpack("<d", reader.take(8, path))[0]


def _fields(kind: Any) -> dict[str, TypeSpec]:
    """The fields that Burn 0.15 has, with their types."""
    known = (f.name for f in dataclasses.fields(kind) if "later" not in f.metadata)
    return {name: type_specs(kind)[name] for name in known}


def _goes_below_0(schedule: Any) -> bool:
    """Whether Burn keeps the schedule's number as a signed one."""
    return getattr(schedule, "field", "") == "iter_idx"


def _signed(value: int) -> bytes:
    return whole_number(2 * value if value >= 0 else -2 * value - 1)


def _refuse(part: object) -> NoReturn:
    what = f"{type(part).__name__} has parts that only names can tell apart"
    raise Trouble(what, cure=OTHERWISE)
