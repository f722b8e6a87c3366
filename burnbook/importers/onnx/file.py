"""OnnxFile: what an ONNX file holds, without the package onnx and without its weights.

    file = OnnxFile("model.onnx")
    file.nodes[0].op, file.weights["conv1.weight"].shape      # in milliseconds
    file.load("conv1.weight")                                 # reads this one

`slim` gives the same model with its weights left in the file, for what needs the
package: shapes that follow from others, and the source of the module.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from burnbook.core.errors import RecordError
from burnbook.core.files import PathLike, map_file, printable, release, within_memory
from burnbook.importers.onnx.slim import MOST_DEPTH, OwnFiles, slim
from burnbook.importers.onnx.tensors import Files, array_of
from burnbook.importers.onnx.values import DTYPES
from burnbook.importers.onnx.wire import CHUNK, Message, Span
from burnbook.record.foreign import guess
from burnbook.record.tree import Trouble, short

MOST_NODES = 1_000_000
WHOLE = "the file as it was written: copy or download it again"
# Element types in burnbook's words; the rest is as NumPy names it.
WORDS = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "c64",
    "complex128": "c128",
    "str": "text",
    **{f"int{bits}": f"i{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (2, 4, 8, 16, 32, 64)},
}
_BITS = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2, 8: 0}
_SIZES = {
    1: 4,
    2: 1,
    3: 1,
    4: 2,
    5: 2,
    6: 4,
    7: 8,
    9: 1,
    10: 2,
    11: 8,
    12: 4,
    13: 8,
    14: 8,
    15: 16,
    16: 2,
    17: 1,
    18: 1,
    19: 1,
    20: 1,
    24: 1,
}


@dataclass(frozen=True, slots=True)
class OnnxWeight:
    """A constant of the file: its shape, its element type, and where it stands."""

    name: str
    shape: tuple[int, ...]
    number: int  # ONNX's of the element type
    span: Span

    @property
    def dtype(self) -> str:
        """The element type in burnbook's words: f32."""
        name = DTYPES.get(self.number, f"type {self.number}")
        return WORDS.get(name, name.replace("float8_", "f8_"))

    @property
    def num_bytes(self) -> int:
        """How many bytes its elements take; 0 for texts."""
        bits = _BITS.get(self.number, 8 * _SIZES.get(self.number, 0))
        return -(-prod(self.shape) * bits // 8)


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """A node: its operator, the names of what goes in and out, attributes as texts.

    around: names of the nodes in whose inner graphs it stands, and of these graphs.
    graphs: outputs of the graphs inside it, which come out through it.
    """

    op: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...]
    around: tuple[str, ...] = ()
    graphs: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """How a report names it."""
        return self.name or next((out for out in self.outputs if out), self.op)


@dataclass
class _Found:
    nodes: list[OnnxNode] = field(default_factory=list)
    weights: dict[str, OnnxWeight] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


class OnnxFile:
    """The nodes and constants of an ONNX file; opening reads no weights.

    nodes: in the order of the file, those of inner graphs before the node around them;
    Constant nodes are `weights`. types: what the file says of values, by name.

    Raises:
        RecordError: there is no such file, it is damaged or of another format.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)
        self.where = f"read {printable(path)}"
        self._open(map_file(path, RecordError, self.where))

    @classmethod
    def from_bytes(cls, data: bytes) -> OnnxFile:
        """What a file in memory holds."""
        made = object.__new__(cls)
        made.path, made.where = Path(), "read bytes"
        made._open(memoryview(data))
        return made

    def _open(self, data: memoryview) -> None:
        self._data = data
        self.ir_version, self.model_version, self.opsets = 0, 0, {}
        self.producer = self.domain = self.doc = self.graph_name = ""
        self.functions: list[str] = []
        self.texts: dict[str, str] = {}
        self._found = _Found()
        with within_memory(self.where, RecordError):
            try:
                self._read(Message(data))
            except Trouble as trouble:
                kind, cure = guess(bytes(data[:64]))
                if data and kind and kind != "an ONNX model":
                    what = f"this is {kind}, no ONNX model"
                    raise RecordError(self.where, what, cure=cure) from None
                raise trouble.explain(self.where, [], WHOLE) from None

    @property
    def nodes(self) -> list[OnnxNode]:
        """All nodes but Constant, in the order of the file."""
        return self._found.nodes

    @property
    def weights(self) -> dict[str, OnnxWeight]:
        """The constants by name: initializers, and what Constant nodes hold."""
        return self._found.weights

    @property
    def types(self) -> dict[str, str]:
        """Element type and shape of values as far as the file says: "f32 [1, 10]"."""
        return self._found.types

    @property
    def inputs(self) -> list[str]:
        """The names of what the graph takes."""
        return self._found.inputs

    @property
    def outputs(self) -> list[str]:
        """The names of what the graph gives."""
        return self._found.outputs

    def facts(self) -> list[tuple[str, str]]:
        """What the file says of itself."""
        opsets = [f"{short(d) or 'ai.onnx'} {n}" for d, n in self.opsets.items()]
        rows = [
            ("IR version", str(self.ir_version)),
            ("opset", ", ".join(opsets[:8])),
            ("producer", short(self.producer, 80)),
            ("domain", short(self.domain, 80)),
            ("model version", str(self.model_version or "")),
            ("graph", short(self.graph_name, 80)),
            ("functions", ", ".join(map(short, self.functions[:8]))),
            ("description", short(self.doc, 300)),
        ]
        more = [(short(key), short(text, 120)) for key, text in self.texts.items()]
        return [row for row in [*rows, *more[:12]] if row[1]]

    def load(self, name: str) -> np.ndarray:
        """The elements of a constant; those in the file itself are not copied.

        Raises:
            RecordError: there is none of that name, or it is damaged.
            ArgumentError: its element type needs the package ml_dtypes.
        """
        if name not in self.weights:
            raise RecordError(self.where, f"there is no constant {short(name)}")
        weight = self.weights[name]
        with within_memory(f"{self.where}: {short(name)}", RecordError):
            try:
                proto = _tensor_of(Message(self._data, weight.span))
                files = Files(self.path.parent if self.path.name else None)
                return np.asarray(array_of(proto, files))
            except Trouble as trouble:
                raise trouble.explain(self.where, [], WHOLE) from None

    def slim(self) -> tuple[bytes, Files]:
        """The model without its larger weights, and where those are found."""
        with within_memory(self.where, RecordError):
            try:
                text = slim(Message(self._data), "model")
            except Trouble as trouble:
                raise trouble.explain(self.where, [], WHOLE) from None
        release(self._data)
        return text, OwnFiles(self._data, self.path)

    def _read(self, model: Message) -> None:
        texts: dict[int, str] = {}
        graph = None
        for number, kind, value in model.fields():
            if number in (1, 5) and isinstance(value, int):
                self.ir_version = value if number == 1 else self.ir_version
                self.model_version = value if number == 5 else self.model_version
            elif number in (2, 3, 4, 6) and kind == CHUNK:
                texts[number] = model.text(value)
            elif number == 7 and kind == CHUNK:
                graph = model.part(value)
            elif number in (8, 14, 25) and kind == CHUNK:
                self._about(number, model.part(value))
        self.producer = f"{texts.get(2, '')} {texts.get(3, '')}".strip()
        self.domain, self.doc = texts.get(4, ""), texts.get(6, "")
        if graph is None or not self.opsets:
            missing = "has no graph" if graph is None else "names no opset"
            what = f"this is no ONNX file: it {missing}"
            raise Trouble(what, found=_begin(model.data))
        self._graph(graph, ())

    def _about(self, number: int, message: Message) -> None:
        """An opset, a text, or a function of the file."""
        if number == 8:
            self._opset(message)
        elif number == 14:
            key, text = _pair(message)
            self.texts[key] = text
        else:
            self.functions.append(_function(message))

    def _opset(self, message: Message) -> None:
        domain, version = "", 0
        for number, kind, value in message.fields():
            if number == 1 and kind == CHUNK:
                domain = message.text(value)
            elif number == 2 and isinstance(value, int):
                version = value
        self.opsets["" if domain == "ai.onnx" else domain] = version

    def _graph(self, graph: Message, around: tuple[str, ...]) -> tuple[str, ...]:
        """Read a graph; the names of what it gives."""
        if len(around) > 2 * MOST_DEPTH:
            raise Trouble(f"graphs lie {MOST_DEPTH} deep in each other")
        parts: dict[int, list[Span]] = {n: [] for n in (1, 2, 5, 11, 12, 13, 15)}
        for number, _, value in graph.fields():
            if number in parts and not isinstance(value, int):
                parts[number].append(value)
                self._release(value)
        for span in parts[2][:1]:
            self.graph_name = self.graph_name or graph.text(span)
        constants = {self._weight(graph.part(span)).name for span in parts[5]}
        for span in parts[15]:
            self._sparse(graph.part(span))
        names: dict[int, list[str]] = {}
        for number in (11, 12, 13):
            names[number] = [self._value(graph.part(span)) for span in parts[number]]
        for span in parts[1]:
            self._node(graph.part(span), around)
        if not around:
            self._found.inputs = [n for n in names[11] if n not in constants]
            self._found.outputs = names[12]
        return tuple(names[12])

    def _value(self, message: Message) -> str:
        """The name of a value, whose type is noted."""
        name, text = _value(message)
        if text:
            self._found.types[name] = text
        return name

    def _release(self, span: Span) -> None:
        """Forget the pages of what was skipped."""
        if span[1] - span[0] > 1 << 20:
            release(self._data)

    def _weight(self, message: Message, name: str = "") -> OnnxWeight:
        shape: list[int] = []
        own, number = "", 0
        for field_number, kind, value in message.fields():
            if field_number == 1:
                shape += message.numbers(kind, value)
                if len(shape) > 64 or any(n < 0 for n in shape):
                    raise Trouble("a constant has an impossible shape")
            elif field_number == 2 and isinstance(value, int):
                number = value
            elif field_number == 8:
                own = message.text(value)
        self._release(message.span)
        made = OnnxWeight(name or own, tuple(shape), number, message.span)
        if name or own:
            self._found.weights[made.name] = made
        return made

    def _sparse(self, message: Message) -> None:
        """The elements of a sparse constant that are not zero, under its name."""
        for number, kind, value in message.fields():
            if number == 1 and kind == CHUNK:
                self._weight(message.part(value))

    def _node(self, message: Message, around: tuple[str, ...]) -> None:
        texts: dict[int, list[str]] = {n: [] for n in (1, 2, 3, 4, 7)}
        attributes: list[Span] = []
        for number, kind, value in message.fields():
            if kind != CHUNK:
                continue
            if number in texts:
                texts[number].append(message.text(value))
            elif number == 5:
                attributes.append(value)  # type: ignore[arg-type] # a chunk
        (name, op, domain) = ("".join(texts[n][-1:]) for n in (3, 4, 7))
        domain = "" if domain == "ai.onnx" else domain
        outputs = tuple(texts[2])
        label = name or next((out for out in outputs if out), op)
        said: list[tuple[str, str]] = []
        inner: list[str] = []
        for span in attributes:
            key, text, graph, tensor = _attribute(message.part(span))
            if graph is not None:
                inner += self._graph(message.part(graph), (*around, label, key))
            if tensor is not None and op == "Constant" and not domain and outputs:
                self._weight(message.part(tensor), outputs[0])
                return
            said.append((key, text))
        if op == "Constant" and not domain:
            self._constant(outputs, said)
            return
        if len(self._found.nodes) >= MOST_NODES:
            raise Trouble(f"the file has over {MOST_NODES:,} nodes")
        made = OnnxNode(
            op, domain, name, tuple(texts[1]), outputs, tuple(said), around,
            tuple(inner),
        )  # fmt: skip
        self._found.nodes.append(made)

    def _constant(self, outputs: tuple[str, ...], said: list[tuple[str, str]]) -> None:
        """A number or a list of some: known by what is written, no weight."""
        if outputs and said:
            self._found.types.setdefault(outputs[0], said[0][1])


def _tensor_of(message: Message) -> Any:
    """What `array_of` reads of an onnx.TensorProto."""
    proto: Any = SimpleNamespace(
        name="", dims=[], data_type=0, data_location=0, external_data=[],
        float_data=[], int32_data=[], string_data=[], int64_data=[],
        raw_data=None, double_data=[], uint64_data=[], segment=None,
    )  # fmt: skip
    proto.HasField = lambda name: getattr(proto, name) is not None
    for number, kind, value in message.fields():
        word = _TENSOR.get(number, "")
        if word in ("data_type", "data_location", "segment"):
            setattr(proto, word, value)
        elif word in ("dims", "int32_data", "int64_data", "uint64_data"):
            held = getattr(proto, word)
            mask = (1 << 64) - 1 if word == "uint64_data" else -1
            held += (n & mask for n in message.numbers(kind, value))
        elif not isinstance(value, int):
            _chunk_of(proto, word, message, value)
    return proto


def _chunk_of(proto: Any, word: str, message: Message, span: Span) -> None:
    """A part of a tensor that is a chunk of bytes."""
    piece = message.data[slice(*span)]
    if word in ("float_data", "double_data"):
        dtype = "<f4" if word == "float_data" else "<f8"
        if len(piece) % int(dtype[-1]):
            raise Trouble("a float is written as something else")
        numbers, held = np.frombuffer(piece, dtype), getattr(proto, word)
        joined = numbers if not len(held) else np.concatenate([held, numbers])
        setattr(proto, word, joined)
    elif word == "raw_data":
        proto.raw_data = piece
    elif word == "string_data":
        proto.string_data.append(bytes(piece))
    elif word == "name":
        proto.name = message.text(span)
    elif word == "external_data":
        key, text = _pair(message.part(span))
        proto.external_data.append(SimpleNamespace(key=key, value=text))


_TENSOR = {
    1: "dims",
    2: "data_type",
    3: "segment",
    4: "float_data",
    5: "int32_data",
    6: "string_data",
    7: "int64_data",
    8: "name",
    9: "raw_data",
    10: "double_data",
    11: "uint64_data",
    13: "external_data",
    14: "data_location",
}


def _begin(data: memoryview) -> str:
    return short(bytes(data[:12])) if len(data) else "an empty file"


def _pair(message: Message) -> tuple[str, str]:
    """A key and a text."""
    found = ["", ""]
    for number, kind, value in message.fields():
        if number in (1, 2) and kind == CHUNK:
            found[number - 1] = message.text(value)
    return found[0], found[1]


def _function(message: Message) -> str:
    for number, kind, value in message.fields():
        if number == 1 and kind == CHUNK:
            return message.text(value)
    return ""


def _value(message: Message) -> tuple[str, str]:
    """The name of a value, and what is said of it."""
    name, text = "", ""
    for number, kind, value in message.fields():
        if kind == CHUNK and number == 1:
            name = message.text(value)
        elif kind == CHUNK and number == 2:
            text = _type(message.part(value), 0)
    return name, text


_TYPES = {1: "", 4: "sequence of ", 5: "map", 8: "sparse ", 9: "optional "}


def _type(message: Message, depth: int) -> str:
    for number, kind, value in message.fields():
        if number not in _TYPES or kind != CHUNK or depth > 8:
            continue
        inner = message.part(value)
        if number in (1, 8):
            return _TYPES[number] + _tensor_type(inner)
        if number == 5:
            return "map"
        held = [v for n, k, v in inner.fields() if n == 1 and k == CHUNK]
        return _TYPES[number] + "".join(_type(inner.part(v), depth + 1) for v in held)
    return ""


def _tensor_type(message: Message) -> str:
    dtype, shape = "", ""
    for number, _, value in message.fields():
        if number == 1 and isinstance(value, int):
            name = DTYPES.get(value, "")
            dtype = WORDS.get(name, name.replace("float8_", "f8_"))
        elif number == 2:
            sizes = [*_dims(message.part(value))]
            shape = f"[{', '.join(sizes[:64])}]"
    return f"{dtype} {shape}".strip()


def _dims(message: Message) -> Iterator[str]:
    for number, kind, value in message.fields():
        if number != 1 or kind != CHUNK:
            continue
        size, dim = "?", message.part(value)
        for inner, _, held in dim.fields():
            if inner == 1 and isinstance(held, int):
                size = str(held)
            elif inner == 2:
                size = short(dim.text(held), 30) or "?"
        yield size


def _attribute(message: Message) -> tuple[str, str, Span | None, Span | None]:
    """Name and text of an attribute; where its graph or its tensor stands."""
    name, parts = "", []
    graph = tensor = None
    for number, kind, value in message.fields():
        chunk = kind == CHUNK
        match number:
            case 1:
                name = message.text(value)
            case 2 | 7 if not isinstance(value, int):
                parts += [f"{n:.6g}" for n in _first(message.floats(value))]
            case 3 | 8:
                parts += [str(n) for n in _first(message.numbers(kind, value))]
            case 4 | 9 if chunk:
                parts.append(repr(short(_start(message, value), 40)))
            case 5 if chunk:
                tensor = value
                parts.append("a tensor")
            case 6 if chunk:
                graph = value
                parts.append("a graph")
            case 21 if chunk:
                parts.append(f"as {short(message.text(value))}")
            case _:
                pass
        if len(parts) > 40:
            break
    text = ", ".join(parts[:12]) + (", …" if len(parts) > 12 else "")
    many = len(parts) > 1
    found = f"[{text}]" if many else text
    return name, found, graph, tensor  # type: ignore[return-value] # spans


def _first(numbers: Iterator[Any], most: int = 16) -> list[Any]:
    return [number for number, _ in zip(numbers, range(most), strict=False)]


def _start(message: Message, value: Any) -> str:
    start, end = value
    return bytes(message.data[start : min(end, start + 60)]).decode("utf-8", "replace")
