"""A model as one file, or as two: large weights stand in a file beside it.

The second file is named after its contents. So the one that an earlier model refers to
is never written over: a write that fails leaves that model whole.
"""

from __future__ import annotations

import contextlib
from hashlib import blake2b
from pathlib import Path
from typing import Any

from burnbook.core.files import atomic_write

SMALL = 1024  # bytes of a tensor that stays in the model's file
PAGE = 4096  # where tensors begin, so that they can be mapped


def write_model(made: Any, path: Path, most: int) -> None:
    """Write a ModelProto; beyond so many bytes of weights, with a file beside it.

    made: its weights are moved out of it where they go to the other file. A file beside
    it that only the model before it needed is removed.
    """
    before = _beside(path)
    weights = made.graph.initializer
    if sum(len(one.raw_data) for one in weights) <= most:
        _write(path, made.SerializeToString())
        _remove(path, before)
        return
    large = [one for one in weights if len(one.raw_data) >= SMALL]
    side = path.with_name(f"{path.name}.{_digest(large)}.data")
    was_there = side.exists()
    try:
        with atomic_write(side) as file:
            for one in large:
                file.write(bytes(-file.tell() % PAGE))
                start, data = file.tell(), one.raw_data
                file.write(data)
                _refer(one, side.name, start, len(data))
        _write(path, made.SerializeToString())
    except BaseException:
        if not was_there:
            _remove(path, {side.name})
        raise
    _remove(path, before - {side.name})


def _write(path: Path, data: bytes) -> None:
    with atomic_write(path) as file:
        file.write(data)


def _digest(tensors: list[Any]) -> str:
    """What names a file of these tensors: their bytes, and where each ends."""
    found = blake2b(digest_size=8)
    for one in tensors:
        found.update(len(one.raw_data).to_bytes(8, "little"))
        found.update(one.raw_data)
    return found.hexdigest()


def _refer(tensor: Any, name: str, start: int, length: int) -> None:
    """Let a tensor say that its elements lie in another file."""
    from onnx import TensorProto

    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", name), ("offset", start), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))


def _beside(path: Path) -> set[str]:
    """The files of weights that we wrote for the model that stands there now."""
    if not path.is_file():
        return set()
    from onnx import ModelProto

    from burnbook.importers.onnx.file import OnnxFile  # here, as it takes a while

    try:
        made = ModelProto.FromString(OnnxFile(path).slim()[0])
    except Exception:  # what stands there is no model: protobuf's errors have no base
        return set()
    if made.producer_name != "burnbook":
        return set()
    entries = (e for one in made.graph.initializer for e in one.external_data)
    names = {entry.value for entry in entries if entry.key == "location"}
    return {n for n in names if n.startswith(f"{path.name}.") and n.endswith(".data")}


def _remove(path: Path, names: set[str]) -> None:
    for name in names:
        if Path(name).name == name:
            with contextlib.suppress(OSError):
                path.with_name(name).unlink()
