"""An ONNX file as a module: at once, or as a package of source and record."""

from __future__ import annotations

import linecache
from importlib.util import find_spec
from itertools import count
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.backend.base import Backend
from burnbook.backend.numpy import Numpy
from burnbook.core.errors import ArgumentError, RecordError
from burnbook.core.files import printable, read_whole
from burnbook.importers.onnx.apart import take_apart
from burnbook.importers.onnx.curves import find_curves
from burnbook.importers.onnx.damage import as_damage, check_bodies
from burnbook.importers.onnx.file import WHOLE, WORDS, OnnxFile
from burnbook.importers.onnx.folding import fold
from burnbook.importers.onnx.graph import Model, read_model
from burnbook.importers.onnx.inference import ONNX, fixed_sizes, inferred
from burnbook.importers.onnx.layers import to_layers
from burnbook.importers.onnx.order import sorted_file
from burnbook.importers.onnx.patterns import find_patterns
from burnbook.importers.onnx.report import OnnxReport, report_of
from burnbook.importers.onnx.simplify import simplify
from burnbook.importers.onnx.source import (
    IN_TRAINING,
    Field,
    Part,
    Source,
    write,
)
from burnbook.importers.onnx.tensors import Files
from burnbook.importers.onnx.upgrades import upgrade
from burnbook.module import Module
from burnbook.module.param import ParamId, ParamRecord
from burnbook.record.foreign import FROM_TORCH, guess
from burnbook.tensor import TensorData

_numbers = count(1)


def load(model: Any, device: Backend | None = None, *, training: bool = False) -> Any:
    """The module that an ONNX file describes, with its weights, on a device.

    model: a path, the file's bytes, or an onnx.ModelProto. The module's `forward` takes
    and gives tensors in the graph's order, several results as a tuple; its source is in
    `source_of(module)`. Needs the package onnx.
    training: BatchNorm and Dropout do what they do in training. At first they compute
    what the file says, also under Autodiff, where their weights still learn: a module
    with such layers comes in eval mode, which `module.train()` takes back.

    Raises: RecordError for a damaged file; ArgumentError with all operators that are
    not known, and where they stand.
    """
    source = source_for(model)
    made = built(source, device or Numpy())
    return as_written(made, source) if not training else made


def as_written(module: Any, source: Source) -> Any:
    """A module that computes what its file says, wherever it lives."""
    differs = any(f.layer and f.layer.kind in IN_TRAINING for f in source.fields)
    return module.eval() if differs else module


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


def source_of_file(file: OnnxFile) -> tuple[Source, Model]:
    """The source of an opened file, and what is known of its values.

    The weights stay in the file, which is mapped: so this takes little memory, however
    large it is. Needs the package onnx.
    """
    title = file.path.name or "a model"
    text, files = file.slim()
    plain = prepared(parsed(text, title), title, files)
    with as_damage(title):
        return write(plain, title), plain


def types_of(model: Model) -> dict[str, str]:
    """What is known of a graph's values, by name: "f32 [1, 10]"."""
    found: dict[str, str] = {}
    graphs = {id(owner): owner for owner, _ in model.graph.walk()}
    for graph in graphs.values():
        for name, fact in graph.facts.items():
            if fact.kind != "tensor" or not fact.dtype:
                continue
            sizes = (
                None
                if fact.shape is None
                else ["?" if n is None else str(n) for n in fact.shape]
            )
            text = "" if sizes is None else f"[{', '.join(sizes)}]"
            found[name] = f"{WORDS.get(fact.dtype, fact.dtype)} {text}".strip()
    return found


def known(model: Any) -> tuple[Model, str]:
    """A file whose operators are all known, as it is written; and its name."""
    path = Path(model) if isinstance(model, (str, PathLike)) else None
    title = path.name if path else "a model"
    files = Files(path.parent if path else None)
    return prepared(read_proto(model), title, files), title


def prepared(proto: Any, title: str, files: Files) -> Model:
    """A model in its newest form, with the layers and parts that are found in it."""
    with as_damage(title):
        plain = read_model(inferred(proto), files)
        check_bodies(plain.graph, title)
        plain.graph.fixed = fixed_sizes(proto)
        plain.written = dict(plain.graph.constants)
    found = report_of(plain, title)
    if not found.is_supported():
        raise found.error()
    with as_damage(title):
        take_apart(plain.graph)
        upgrade(plain.graph)
        simplify(plain.graph)
        fold(plain.graph)
        find_patterns(plain.graph)
        find_curves(plain.graph)
        to_layers(plain.graph)
    return plain


def read(model: Any) -> tuple[Model, str]:
    """A file in its plain form, and its name."""
    path = Path(model) if isinstance(model, (str, PathLike)) else None
    folder, title = (path.parent, path.name) if path else (None, "a model")
    proto = read_proto(model)
    with as_damage(title):
        plain = read_model(inferred(proto), Files(folder))
        check_bodies(plain.graph, title)
        return plain, title


def read_proto(model: Any) -> Any:
    """An onnx.ModelProto of a path or of a file's bytes; one that is given stays."""
    needs_onnx()
    title = "a model"
    if isinstance(model, (str, PathLike)):
        path = Path(model)
        title = path.name
        model = read_whole(path, RecordError, f"read {printable(path)}")
    if isinstance(model, (bytes, bytearray, memoryview)):
        return parsed(bytes(model), title)
    from onnx import ModelProto

    if not isinstance(model, ModelProto):
        what = f"{type(model).__name__} is no ONNX model"
        cure = "a path, the bytes of a file, or an onnx.ModelProto"
        raise ArgumentError("onnx", what, cure=cure)
    return with_graph(model, title)


def needs_onnx() -> None:
    """Raise where the package onnx is not installed."""
    if find_spec("onnx") is None:
        what = "reading an .onnx file needs the package onnx"
        raise ArgumentError("onnx", what, cure="pip install onnx")
    ONNX.start()


def parsed(data: bytes, title: str) -> Any:
    """The onnx.ModelProto that the bytes of a file are."""
    needs_onnx()
    if not data:
        raise RecordError("onnx", f"{title} is empty", [("size", "0 bytes")], WHOLE)
    import onnx
    from google.protobuf.message import DecodeError

    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except (DecodeError, UnicodeDecodeError, RuntimeError, RecursionError):
        raise _other(data, title, f"{title} is no ONNX file, or damaged") from None
    return with_graph(proto, title, data)


def with_graph(proto: Any, title: str, data: bytes = b"") -> Any:
    """An onnx.ModelProto with a graph, sorted. data: what it was made of."""
    if not proto.HasField("graph"):
        raise _other(data, title, f"{title} has no graph, so it is no model")
    return sorted_file(proto)


def _other(data: bytes, title: str, what: str) -> RecordError:
    """What is wrong with a file; if it is one of another format, which."""
    kind, cure = guess(data[:64]) if data else ("", "")
    if not kind and data[257:262] == b"ustar":
        kind, cure = "a tar archive, perhaps of PyTorch", FROM_TORCH
    if not kind or kind == "an ONNX model":
        return RecordError("onnx", what, cure=WHOLE)
    return RecordError("onnx", f"{title} is {kind}, no ONNX model", cure=cure)


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
    cls.originals = source.originals
    return cls


def source_of(module: Any) -> str:
    """The Python source that a loaded module was made of."""
    return type(module).source


def original_names(model: Any) -> dict[str, str]:
    """What the file calls the layers and weights of an imported module, by our paths.

    model: a module that `load` gave, or the ONNX file of one: a path, its bytes or an
    onnx.ModelProto. A layer is called as the file's names of its weights tell, a weight
    of no layer as its initializer; what nothing tells stays as it is here. A weight of
    a layer here that the file names as a parameter by itself has its own entry. No two
    have one name.

    Example: {"h.0.mlp.1": "h.0.mlp.2", "wpe_weight": "wpe.weight", "linear.weight":
    "text_projection", …}, which `to_pytorch(module, path, names=…)` takes.
    """
    held = getattr(type(model), "originals", None)
    if held is not None:
        return dict(held)
    if isinstance(model, Module):
        what = f"{type(model).__name__} does not know of which file it was made"
        cure = 'original_names("model.onnx"), which reads it'
        raise ArgumentError("original_names", what, cure=cure)
    return source_for(model).originals


def record_of(source: Source) -> dict[str, Any]:
    """The record of a module that a source describes."""
    return _record_of(source.root)


def _record_of(held: Part | Field) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if isinstance(held, Field):
        for path, array in held.values.items():
            *around, name = path.split(".")
            inner = found
            for word in around:
                inner = inner.setdefault(word, {})
            inner[name] = _param(array)
        return found
    for member in held.members:
        if isinstance(member, Field):
            found[member.name] = _param(member.values[""])
            continue
        entries = [_record_of(entry.held) for entry in member.entries]
        listed = tuple(entries) if member.is_mixed else entries
        found[member.name] = listed if member.is_list else entries[0]
    return found


def _param(array: NDArray[Any]) -> ParamRecord:
    held = np.ascontiguousarray(array.reshape(array.shape or (1,)))
    return ParamRecord(ParamId.new().serialize(), TensorData.of(held))
