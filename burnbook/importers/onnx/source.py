"""The Python source of an imported graph: one module class that reads like the model.

A constant of a few elements stands where it is used; others become fields, named after
the file's names, trainable where the file keeps them as initializers of numbers. The
inner graphs of If, Loop and Scan become functions inside `forward`, which see the names
around them.

Nothing of a file is taken over as it is: names become identifiers, numbers and texts
are written by repr, so that no file decides what runs.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from burnbook.core.errors import RecordError
from burnbook.importers.onnx.graph import CONTROL, Fact, Graph, Model, Node
from burnbook.importers.onnx.layers import Layer, Layers
from burnbook.importers.onnx.operators.registry import OPERATORS
from burnbook.importers.onnx.operators.sequences import AsItIs
from burnbook.importers.onnx.tensors import PACKED, packed
from burnbook.module import Module

SHORT = 16  # elements of a constant that stands where it is used
WIDTH = 88
FLOATS = ("float32", "float64", "float16")
OURS = "self cls np nn ops device values Self Module Param Tensor Model"
TAKEN = {*OURS.split(), *["Backend", "Numpy", "Path", "STATES", "b85decode"]}


@dataclass
class Field:
    """A constant or a layer that the module holds.

    form: weight, constant, whole or layer. values: those of a layer by name, else
    below "".
    """

    name: str
    form: str
    values: dict[str, Any]
    dtype: str = "float32"
    layer: Layer | None = None

    @property
    def annotation(self) -> str:
        """The type of the field."""
        return f"nn.{self.layer.kind}" if self.layer else "Param[Tensor]"


@dataclass
class Source:
    """The text of a module, and the values of its fields."""

    text: str
    fields: list[Field]
    lines: dict[str, int] = field(default_factory=dict)  # of each node, by its label


@dataclass(frozen=True)
class Loading:
    """How generated source finds its weights: a file beside it, and what reads that.

    embedded: the bytes stand in the source itself, as text.
    """

    recorder: str
    settings: str
    file: str
    embedded: bool = False


def write(model: Model, title: str, loading: Loading | None = None) -> Source:
    """The source of a model. title: the file's name, for the first line."""
    return _Writer(model, title, loading).write()


def settings_for(fields: list[Field], half: bool) -> str:
    """The precision that loses nothing of a model's fields, unless half is wanted."""
    if half:
        return "HalfPrecisionSettings"
    for one in fields:
        for array in arrays_of(one.values):
            if array.dtype == np.float64:
                return "DoublePrecisionSettings"
            wide = array.dtype == np.int64 and array.size
            if wide and (array.max() >= 1 << 31 or array.min() < -1 << 31):
                return "DoublePrecisionSettings"
    return "FullPrecisionSettings"


def arrays_of(values: dict[str, Any]) -> Iterator[Any]:
    """All arrays of a field's values, those of its parts as well."""
    for value in values.values():
        if isinstance(value, dict):
            yield from arrays_of(value)
        else:
            yield value


class _Writer:
    def __init__(self, model: Model, title: str, loading: Loading | None):
        self.model, self.title, self.loading = model, title, loading
        words = {*TAKEN, *keyword.kwlist, *keyword.softkwlist}
        self.taken, self.taken_fields = set(words), words | set(dir(Module))
        self.names: dict[str, str] = {}  # of values: an expression
        self.fields: dict[str, Field] = {}
        self.constants: dict[str, Any] = {}
        self.trainable: set[str] = set()
        self.facts: dict[str, Fact] = {}
        self.counts: dict[str, int] = {}
        self.layers: Layers | None = None
        self.replaced: set[str] = set()  # by a layer
        self.tensors: set[str] = set()  # values that are tensors for certain
        self.made_of: dict[str, list[tuple[Any, str]]] = {}  # constants with a field

    def write(self) -> Source:
        graph = self.model.graph
        for name in dict.fromkeys((*graph.inputs, *graph.outputs)):
            self.facts[name] = graph.facts.get(name, Fact())
        inputs = [self.new_name(n, "input") for n in graph.inputs]
        self.layers = Layers(graph)
        self.tensors |= {n for n in graph.inputs if self.is_float(n)}
        body = list(self.body(graph, "        "))
        outputs = [self.expression(n) for n in graph.outputs]
        plain = all(self.is_plain(graph.facts.get(n)) for n in graph.inputs)
        plain = plain and all(self.is_plain(graph.facts.get(n)) for n in graph.outputs)
        plain = plain and all(n in self.tensors for n in graph.outputs)
        result = ", ".join(outputs)
        returned = f"        return {result}"
        text = [self.head(), "", "", "class Model(Module):"]
        text += [f'    """{_comment(self.title)}, as a module."""', ""]
        text += [f"    {f.name}: {f.annotation}" for f in self.fields.values()]
        text += ["", "    @classmethod", "    def new(cls, device: Backend) -> Self:"]
        text += ['        """The module before a record is loaded."""']
        text += ["        return cls("]
        for f in self.fields.values():
            text += self.made_in_lines(f)
        text += ["        )", ""]
        text += self.loaders()
        if plain:
            text += [f"    def forward(self, {', '.join(inputs)}):"]
            text += [f'        """{self.signature(graph)}"""', *body, returned]
        else:
            types = [graph.facts.get(n, Fact()).dtype for n in graph.inputs]
            given = ", ".join(
                f"({n}, {t!r})" for n, t in zip(inputs, types, strict=True)
            )
            text += [f"    def forward(self, {', '.join(inputs)}):"]
            text += [f'        """{self.signature(graph)}"""']
            comma = "," if len(inputs) == 1 else ""
            text += [f"        values = ops.from_tensors(self, ({given}{comma}))"]
            text += ["        return ops.to_tensors(self, self.compute(*values))", ""]
            text += [f"    def compute(self, {', '.join(inputs)}):"]
            text += ['        """The same with the element types and ranks of ONNX."""']
            text += [*body, returned]
        lines = "\n".join(text) + "\n"
        return Source(lines.replace("(self, )", "(self)"), list(self.fields.values()))

    def loaders(self) -> list[str]:
        """The ways to get the module with its weights."""
        if self.loading is None:
            return []
        how, file = self.loading, self.loading.file
        text = f"""
    @classmethod
    def from_file(cls, path: str | Path, device: Backend) -> Self:
        \"\"\"With the weights of a record.\"\"\"
        record = {how.recorder}({how.settings}).load(path, device)
        return cls.new(device).load_record(record)
"""
        default = f"cls.from_file(Path(__file__).with_name({file!r}), Numpy())"
        if how.embedded:
            text += f"""
    @classmethod
    def from_embedded(cls, device: Backend) -> Self:
        \"\"\"With the weights that stand in this file.\"\"\"
        recorder = BinBytesRecorder({how.settings})
        return cls.new(device).load_record(recorder.load(b85decode(STATES), device))
"""
            default = "cls.from_embedded(Numpy())"
        text += f"""
    @classmethod
    def default(cls) -> Self:
        \"\"\"With its weights, on the processor.\"\"\"
        return {default}
"""
        return [*text.strip("\n").split("\n"), ""]

    def imports(self) -> str:
        """What the loaders need, in order."""
        if self.loading is None:
            return ""
        how = self.loading
        names = {how.recorder, how.settings} | (
            {"BinBytesRecorder"} if how.embedded else set()
        )
        return f"\nfrom burnbook.record import {', '.join(sorted(names))}"

    def head(self) -> str:
        producer = (
            f", made by {_comment(self.model.producer)}" if self.model.producer else ""
        )
        return (
            f'"""Written by burnbook from {_comment(self.title)}{producer}."""\n\n'
            f"{self.standard()}from typing import Self\n\n"
            "import numpy as np\n\n"
            "from burnbook import nn\n"
            f"from burnbook.backend import Backend{', Numpy' if self.loading else ''}\n"
            "from burnbook.importers.onnx import operators as ops\n"
            f"from burnbook.module import Module, Param{self.imports()}\n"
            "from burnbook.tensor import Tensor"
        )

    def standard(self) -> str:
        """Of Python's own library."""
        if self.loading is None:
            return ""
        embedded = "from base64 import b85decode\n" if self.loading.embedded else ""
        return f"{embedded}from pathlib import Path\n"

    def signature(self, graph: Graph) -> str:
        def shown(name: str) -> str:
            return f"{_comment(name)} {self.shape_of(name)}".strip()

        ins = ", ".join(map(shown, graph.inputs))
        outs = ", ".join(map(shown, graph.outputs))
        return f"{ins} -> {outs}"

    def is_plain(self, fact: Fact | None) -> bool:
        """Whether a value is a tensor inside as outside."""
        if fact is None or fact.kind != "tensor" or fact.dtype != "float32":
            return False
        return fact.shape is not None and len(fact.shape) > 0

    def body(self, graph: Graph, indent: str) -> Iterator[str]:
        self.constants |= graph.constants
        self.trainable |= graph.trainable
        self.facts |= graph.facts
        for node in graph.nodes:
            yield from self.statement(node, indent)

    def statement(self, node: Node, indent: str) -> Iterator[str]:
        if node.op == "Identity" and not node.domain:
            self.names[node.outputs[0]] = self.expression(node.inputs[0])
            if node.inputs[0] in self.tensors:
                self.tensors.add(node.outputs[0])
            return
        if node.op in CONTROL and not node.domain:
            yield from self.control(node, indent)
            return
        if node.outputs[0] in self.replaced:
            return
        found = self.layers.find(node) if self.layers else None
        if found is not None:
            yield from self.layer(found, node, indent)
            return
        operator = OPERATORS[node.domain, node.op]
        certain = any(n in self.tensors for n in node.inputs)
        if certain and not isinstance(operator, AsItIs):
            self.tensors |= {n for n in node.outputs if self.is_float(n)}
        short = self.infix(node)
        if short:
            target = [self.new_name(node.outputs[0], node.op)]
            yield from self.assignment(target, short, indent, node.outputs)
            return
        inputs = [self.expression(n) for n in node.inputs]
        while inputs and inputs[-1] == "None":
            inputs.pop()
        words = [
            f"{k}={self.literal(v)}"
            for k, v in sorted(node.attributes.items())
            if not is_type(v) and not operator.is_usual(k, v)
        ]
        used = [i for i, n in enumerate(node.outputs) if n]
        count = used[-1] + 1 if used else 1
        if operator.many and count > 1:
            words.append(f"outputs={count}")
        targets = [
            self.new_name(n, node.op) if n else "_" for n in node.outputs[:count]
        ]
        call = f"ops.{operator.__name__}"
        parts = [*inputs, *words]
        yield from self.assignment(targets, call, indent, node.outputs[:count], parts)

    def layer(self, found: Layer, node: Node, indent: str) -> Iterator[str]:
        """A call of a layer of nn, which becomes a field."""
        word = _layer_name(found, node)
        if not word:
            self.counts[found.word] = self.counts.get(found.word, 0) + 1
            word = f"{found.word}{self.counts[found.word]}"
        word = self.unused(word, self.taken_fields)
        self.fields[word] = Field(word, "layer", found.parts, layer=found)
        self.replaced |= found.replaced
        if found.function:
            given = [self.expression(n) for n in found.inputs]
            while given[-1] == "None":
                given.pop()
            targets = [self.new_name(n, node.op) if n else "_" for n in found.outputs]
            self.tensors |= {n for n in found.outputs if n}
            call, parts = f"ops.{found.function}", [f"self.{word}", *given]
            yield from self.assignment(targets, call, indent, found.outputs, parts)
            return
        given = self.expression(found.inputs[0])
        if found.inputs[0] not in self.tensors:
            given = f"ops.tensor({given}, self)"
        self.tensors.add(found.output)
        target = [self.new_name(found.output, node.op)]
        call = f"self.{word}.forward({given})"
        yield from self.assignment(target, call, indent, [found.output])

    def infix(self, node: Node) -> str:
        """Arithmetic as Python writes it, where both sides are tensors of one rank."""
        sign = SIGNS.get(node.op) if not node.domain and not node.attributes else None
        if sign is None or len(node.inputs) != 2:
            return ""
        texts, shapes = [], []
        for name in node.inputs:
            array = self.constants.get(name)
            if name in self.tensors:
                fact = self.facts.get(name, Fact())
                shapes.append(None if fact.shape is None else len(fact.shape))
                texts.append(self.expression(name))
            elif array is not None and array.dtype == np.float32 and not array.ndim:
                texts.append(self.literal(array))
            else:
                return ""
        if not shapes or None in shapes or len(set(shapes)) > 1 or 0 in shapes:
            return ""
        if any(c in texts[0] + texts[1] for c in "("):
            return ""
        return f"{texts[0]} {sign} {texts[1]}"

    def is_float(self, name: str) -> bool:
        """Whether a value is known to be a tensor of floats."""
        fact = self.facts.get(name) or self.model.graph.facts.get(name)
        return fact is not None and fact.kind == "tensor" and fact.dtype in FLOATS

    def assignment(
        self,
        targets: list[str],
        call: str,
        indent: str,
        values: list[str],
        parts: list[str] | None = None,
    ) -> Iterator[str]:
        """A statement with the shapes of what it makes; a long one in several lines."""
        start = f"{indent}{', '.join(targets)} = {call}"
        line = start if parts is None else f"{start}({', '.join(parts)})"
        note = ", ".join(t for n in values if n and (t := self.shape_of(n)))
        note = f"  # {note}" if note else ""
        if parts and len(line) > WIDTH:
            yield f"{start}({note}"
            yield from _filled(parts, indent + "    ")
            yield f"{indent})"
        elif len(line) + len(note) > WIDTH:
            yield from ([f"{indent}{note[2:]}"] if note else [])
            yield line
        else:
            yield line + note

    def control(self, node: Node, indent: str) -> Iterator[str]:
        """If, Loop, Scan, SequenceMap: inner graphs as functions, then a call."""
        functions = {}
        for word, inner in node.attributes.items():
            if isinstance(inner, Graph):
                functions[word] = self.unused(f"{_snake(node.op)}_{word}")
                yield from self.function(functions[word], inner, indent)
        inputs = [self.expression(n) for n in node.inputs]
        targets = [self.new_name(n, node.op) if n else "_" for n in node.outputs]
        words = {k: v for k, v in node.attributes.items() if not isinstance(v, Graph)}
        match node.op:
            case "If":
                parts = [inputs[0], functions["then_branch"], functions["else_branch"]]
            case "Loop":
                body = node.attributes["body"]
                trips, cond, *states = [*inputs, "None", "None"][: max(2, len(inputs))]
                parts = [trips, cond, f"[{', '.join(states)}]", functions["body"]]
                scans = len(body.outputs) - 1 - len(states)
                words["scans"] = scans
            case "Scan":
                body = node.attributes["body"]
                if node.version < 9:  # several sequences at once, and their lengths
                    words["lengths"], words["batched"] = inputs.pop(0), 1
                count = words.pop("num_scan_inputs")
                cut = len(inputs) - count
                words["scans"] = len(body.outputs) - cut
                parts = [f"[{', '.join(inputs[:cut])}]"]
                parts += [f"[{', '.join(inputs[cut:])}]", functions["body"]]
            case _:
                parts = [f"[{', '.join(inputs)}]", functions["body"]]
        said = [
            f"{k}={v if k == 'lengths' else self.literal(v)}"
            for k, v in sorted(words.items())
        ]
        call = f"ops.{_snake(node.op)}_({', '.join([*parts, *said])})"
        left = ", ".join(targets) + ("," if len(targets) == 1 else "")
        yield f"{indent}{left} = {call}"

    def function(self, name: str, graph: Graph, indent: str) -> Iterator[str]:
        """An inner graph; what it names is forgotten after it, as another may too."""
        before = self.names, self.constants, self.trainable, self.facts, self.tensors
        self.names, self.constants, self.trainable, self.facts, self.tensors = (
            part.copy() for part in before
        )
        inputs = [self.new_name(n, "input") for n in graph.inputs]
        yield f"{indent}def {name}({', '.join(inputs)}):"
        yield from self.body(graph, indent + "    ")
        outputs = ", ".join(self.expression(n) for n in graph.outputs)
        yield f"{indent}    return {outputs}{',' if len(graph.outputs) == 1 else ''}"
        self.names, self.constants, self.trainable, self.facts, self.tensors = before

    # Names and constants

    def expression(self, name: str) -> str:
        """How a value is written: a name, a field, or a short constant."""
        if not name:
            return "None"
        if name in self.names:
            return self.names[name]
        if name in self.constants:
            return self.constant(name, self.constants[name])
        raise RecordError("onnx", f"a node takes {name!r}, which nothing makes")

    def constant(self, name: str, array: Any) -> str:
        if array.dtype == object or (array.size <= SHORT and not self.is_weight(name)):
            return self.literal(array)
        dtype = array.dtype.name
        made = next((t for a, t in self.made_of.get(name, ()) if _same(a, array)), None)
        if made is not None:  # in another inner graph
            self.names[name] = made
            return made
        word = self.unused(_identifier(name) or "constant", self.taken_fields)
        if dtype in FLOATS:
            form = "weight" if name in self.trainable else "constant"
            self.fields[word] = Field(word, form, {"": array}, dtype)
            text = f"self.{word}.val()"
            if dtype != "float32":
                text = f"ops.of_type({text}, {dtype!r})"
            if not array.ndim:
                text = f"ops.scalar({text})"
        else:
            self.fields[word] = Field(word, "whole", {"": _whole(array)}, dtype)
            text = f"ops.array(self.{word}.val(), {dtype!r}, {list(array.shape)})"
        self.names[name] = text
        self.made_of.setdefault(name, []).append((array, text))
        return text

    def is_weight(self, name: str) -> bool:
        array = self.constants[name]
        return (
            name in self.trainable
            and array.ndim > 0
            and array.dtype.name == "float32"
            and array.size > 1
        )

    def made_in_lines(self, f: Field) -> list[str]:
        """How a field is made, a step of its config in each line where it is long."""
        line, indent = f"{f.name}={self.made(f)},", " " * 12
        if len(line) + len(indent) <= WIDTH:
            return [indent + line]
        start, *steps = re.split(r"(?=\.with_|\.init\()", self.made(f))
        inner = [f"{indent}    {start}", *[f"{indent}    {step}" for step in steps]]
        return [f"{indent}{f.name}=(", *inner, f"{indent}),"]

    def made(self, f: Field) -> str:
        if f.layer is not None:
            return f"{f.layer.config}.init({'device' if f.values else ''})"
        shape = list(f.values[""].shape) or [1]
        word = {"weight": "weight", "constant": "frozen", "whole": "whole"}[f.form]
        kind = f", {f.dtype!r}" if f.dtype in ("float16", "float64") else ""
        if f.form == "whole" and f.values[""].dtype != np.int64:
            kind = f", {f.values[''].dtype.name!r}"
        return f"ops.{word}({shape}, device{kind})"

    def literal(self, value: object) -> str:
        """A constant or attribute as Python writes it."""
        if isinstance(value, np.ndarray):
            return _array_literal(value)
        if isinstance(value, (bool, int, str)) or value is None:
            return repr(value)
        if isinstance(value, float):
            return _number(value)
        if isinstance(value, list):
            return f"[{', '.join(map(self.literal, value))}]"
        raise RecordError("onnx", f"an attribute of type {type(value).__name__}")

    def new_name(self, value: str, op: str) -> str:
        """An identifier for a value of the file."""
        made = _identifier(value)
        if not made:
            word = _snake(op)
            self.counts[word] = self.counts.get(word, 0) + 1
            made = f"{word}{self.counts[word]}"
        self.names[value] = self.unused(made)
        return self.names[value]

    def unused(self, word: str, taken: set[str] | None = None) -> str:
        """A word that no name of the same sort has yet."""
        taken = self.taken if taken is None else taken
        made, k = word, 1
        while made in taken:
            k += 1
            made = f"{word}_{k}"
        taken.add(made)
        return made

    def shape_of(self, name: str) -> str:
        fact = self.facts.get(name)
        if fact is None or fact.shape is None:
            return ""
        sizes = (_comment(str(n)) if n is not None else "?" for n in fact.shape)
        return f"[{', '.join(sizes)}]"


def _same(x: Any, y: Any) -> bool:
    """Whether two constants are one: the file may hold it in several inner graphs."""
    if x is y:
        return True
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


SIGNS = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}


def _layer_name(found: Layer, node: Node) -> str:
    """What the file calls a layer: before .weight, or as the node's scope."""
    source, _, last = found.source.rpartition(".")
    if source and last in ("weight", "gamma", "w", "W", "scale"):
        return _identifier(source)
    scope = node.name.strip("/").rpartition("/")[0]
    return _identifier(scope)


def is_type(value: object) -> bool:
    """Whether an attribute is a type, which nothing here needs to be told."""
    return type(value).__name__ == "TypeProto"


def _snake(op: str) -> str:
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", op)
    return re.sub(r"\W", "_", text, flags=re.ASCII).lower()


def _identifier(name: str) -> str:
    """A name of the file as an identifier, or "" where little is left of it.

    PyTorch writes /layer1/layer1.0/conv1/Conv_output_0, which is layer1_0_conv1_conv.
    """
    parts = [p for p in name.split("/") if p]
    kept = [
        p
        for p, after in zip(parts, [*parts[1:], ""], strict=False)
        if not after.startswith(f"{p}.")
    ]
    text = re.sub(r"_output_0$", "", "_".join(kept)).replace("onnx::", "")
    word = re.sub(r"[^0-9a-z_]+", "_", _snake(text)).strip("_")
    word = re.sub(r"_+", "_", word)[:60].strip("_")
    if not re.search(r"[a-z]", word):
        return ""
    return f"v{word}" if word[0].isdigit() else word


def _filled(parts: list[str], indent: str) -> Iterator[str]:
    """Arguments in lines, as many as fit."""
    line = indent
    for part in parts:
        if len(line) + len(part) + 2 > WIDTH and line.strip():
            yield line.rstrip()
            line = indent
        line += f"{part}, "
    yield line.rstrip()


def _comment(text: str) -> str:
    """A text of the file that may stand in a comment or a docstring."""
    return re.sub(r"[^ !#-\[\]-~]", "?", text)[:80]


def _number(value: float) -> str:
    return repr(value) if np.isfinite(value) else f'float("{value}")'


def _array_literal(array: Any) -> str:
    name = array.dtype.name
    if array.dtype == object:
        return f"np.array({array.tolist()!r}, object)"
    plain = array.astype(np.float32) if array.dtype.kind == "V" else array
    held = plain.tolist()
    if name == "float32":
        held = [float(str(n)) for n in array.reshape(-1)]
        held = _nested(held, array.shape)
    text = _written(held)
    if name in ("float32", "int64", "bool") and array.ndim < 2 and array.size:
        return text
    shape = f", {list(array.shape)}" if not array.size else ""
    return f"ops.const({text}, {name!r}{shape})"


def _nested(flat: list[float], shape: Iterable[int]) -> Any:
    return np.array(flat, object).reshape(tuple(shape)).tolist()


def _written(held: Any) -> str:
    if isinstance(held, list):
        return f"[{', '.join(map(_written, held))}]"
    return _number(held) if isinstance(held, float) else repr(held)


def _whole(array: Any) -> Any:
    """Whole numbers, truths, or the bits of a type that tensors do not have.

    As narrow as they are in the file: a weight of 8 bits takes a byte, one of 4 half.
    """
    name = array.dtype.name
    if name in PACKED:
        return packed(array)
    if name in ("int8", "int16", "int32", "uint8", "uint16"):
        return array
    if name == "bool":
        return array.astype(np.uint8)
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array.dtype.kind == "c":
        return (
            array.view(np.float64 if array.itemsize == 16 else np.float32)
            .astype(np.float64)
            .view(np.int64)
        )
    bits = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
    plain = np.ascontiguousarray(array)
    return plain.view(bits[array.dtype.itemsize]).reshape(array.shape)
