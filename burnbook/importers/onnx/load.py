"""An ONNX file as a module: at once, or as a package of source and record."""

from __future__ import annotations

import linecache
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from burnbook.backend.base import Backend
from burnbook.backend.numpy import Numpy
from burnbook.core.errors import ArgumentError, BurnbookError, RecordError
from burnbook.importers.onnx.graph import Model, read_model
from burnbook.importers.onnx.report import OnnxReport, report_of
from burnbook.importers.onnx.source import Source, write
from burnbook.importers.onnx.tensors import Files
from burnbook.importers.onnx.upgrades import upgrade
from burnbook.module.param import ParamId, ParamRecord
from burnbook.tensor import TensorData

_numbers = count(1)


def load(model: Any, device: Backend | None = None) -> Any:
    """The module that an ONNX file describes, with its weights, on a device.

    model: a path, the file's bytes, or an onnx.ModelProto. The module's `forward` takes
    and gives tensors in the graph's order, several results as a tuple; its source is in
    `source_of(module)`. Needs the package onnx.

    Raises: RecordError for a damaged file; ArgumentError with all operators that are
    not known, and where they stand.
    """
    source = source_for(model)
    return built(source, device or Numpy())


def check(model: Any) -> OnnxReport:
    """What an ONNX file holds, and what of it is not known; nothing is built.

    model: a path, the file's bytes, or an onnx.ModelProto. Needs the package onnx.
    """
    plain, title = read(model)
    return report_of(plain, title)


def source_for(model: Any) -> Source:
    """The source and the values of a file's module."""
    plain, title = known(model)
    with as_damage(title):
        return write(plain, title)


def known(model: Any) -> tuple[Model, str]:
    """A file whose operators are all known, in their newest form; and its name."""
    plain, title = read(model)
    found = report_of(plain)
    if found.unsupported:
        raise found.error()
    with as_damage(title):
        upgrade(plain.graph)
    return plain, title


@contextmanager
def as_damage(title: str) -> Generator[None]:
    """What goes wrong while a file is taken apart is said as a fault of the file."""
    try:
        yield
    except BurnbookError:
        raise
    except (
        *(ArithmeticError, AttributeError, LookupError, MemoryError),
        *(RecursionError, SyntaxError, TypeError, ValueError),
    ) as error:
        told = " ".join(str(error).split())[:200]
        what = f"{title} does not follow ONNX's rules, or is damaged"
        facts = [(type(error).__name__, told)]
        raise RecordError(
            "onnx", what, facts, "onnx.checker names the fault"
        ) from error


def read(model: Any) -> tuple[Model, str]:
    """A file in its plain form, and its name."""
    path = Path(model) if isinstance(model, (str, PathLike)) else None
    folder, title = (path.parent, path.name) if path else (None, "a model")
    proto = inferred(read_proto(model))
    with as_damage(title):
        return read_model(proto, Files(folder)), title


def read_proto(model: Any) -> Any:
    """An onnx.ModelProto of a path or of a file's bytes; one that is given stays."""
    try:
        import onnx
    except ImportError:
        what = "reading an .onnx file needs the package onnx"
        raise ArgumentError("onnx", what, cure="pip install onnx") from None
    title = "a model"
    if isinstance(model, (str, PathLike)):
        path = Path(model)
        title = path.name
        try:
            model = path.read_bytes()
        except OSError as error:
            what = f"{path} cannot be read: {error.strerror}"
            raise RecordError("onnx", what) from None
    if isinstance(model, (bytes, bytearray, memoryview)):
        from google.protobuf.message import DecodeError

        proto = onnx.ModelProto()
        try:
            proto.ParseFromString(bytes(model))
        except (DecodeError, UnicodeDecodeError, RuntimeError, RecursionError):
            what = f"{title} is no ONNX file, or damaged"
            raise RecordError("onnx", what) from None
        model = proto
    return model


def inferred(model: Any) -> Any:
    """The model with the shapes and types that follow from it, where they do."""
    from onnx import shape_inference

    try:
        return shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # what does not follow stays unknown
        return model


def built(source: Source, device: Backend) -> Any:
    """The module that a source describes, with its values."""
    with as_damage("the model"):
        module = class_of(source).new(device)
        if not source.fields:
            return module
        return module.load_record(record_of(source))


def class_of(source: Source) -> Any:
    """The class that a source defines; its lines show in tracebacks."""
    number = next(_numbers)
    name = f"<onnx model {number}>"
    linecache.cache[name] = (len(source.text), None, source.text.splitlines(True), name)
    module = ModuleType(f"onnx_model_{number}")
    exec(compile(source.text, name, "exec", dont_inherit=True), module.__dict__)
    cls = module.Model
    cls.source = source.text
    return cls


def source_of(module: Any) -> str:
    """The Python source that a loaded module was made of."""
    return type(module).source


def record_of(source: Source) -> dict[str, Any]:
    """The record of a module that a source describes."""
    found: dict[str, Any] = {}
    for one in source.fields:
        if one.layer is None:
            found[one.name] = _param(one.values[""])
        else:
            found[one.name] = {k: _param(array) for k, array in one.values.items()}
    return found


def _param(array: Any) -> ParamRecord:
    held = np.ascontiguousarray(array.reshape(array.shape or (1,)))
    return ParamRecord(ParamId.new().serialize(), TensorData.of(held))
