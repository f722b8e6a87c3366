"""Records in files without a recorder, as in Burn 0.22: burnpack, as they are.

Modules, records and optimizers look this file up when they save or load.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from burnbook.core.errors import RecordError
from burnbook.core.files import PathLike, within_memory
from burnbook.module.records import ModuleRecord
from burnbook.record.burnpack import BurnpackRecorder
from burnbook.record.inspection import recorder_for
from burnbook.record.recorder import EXTENSIONS, FileRecorder
from burnbook.record.tree import BurnRecord


def recorder_of(path: PathLike) -> FileRecorder:
    """The recorder that the ending of a path asks for; without one, burnpack's."""
    named = Path(path)
    if named.name.endswith(tuple(f".{known}" for known in EXTENSIONS)):
        return recorder_for(named, f"open {named}")
    return BurnpackRecorder()


def save(record: object, path: PathLike) -> Path:
    """Write a record with the element types that it has; returns the file's path.

    "model" is model.bpk; "model.mpk" is MessagePack, and so on.

    Raises:
        RecordError: `path` names no file, or it cannot be written.
    """
    recorder = recorder_of(path)
    return recorder.write(BurnRecord(recorder.metadata, record), path)


def load(path: PathLike) -> Any:
    """The record in a file, with the element types that it has there.

    Raises:
        RecordError: there is no such file, it is damaged or of another format.
    """
    recorder = recorder_of(path)
    target = recorder.find(path)
    where = f"load {target}"
    with within_memory(where, RecordError):
        record = recorder.read(target)
        recorder.accept(record, where)
    if type(record.item) is not dict:
        return record.item
    return ModuleRecord(record.item, release=record.metadata.release)
