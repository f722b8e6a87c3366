"""The Python source of an imported graph: module classes that read like the model.

The parts that the file's names tell become classes of their own, one for all that do
the same. A constant of a few elements stands where it is used; others become fields,
named after the file's names, trainable where the file keeps them as initializers of
numbers. The inner graphs of If, Loop and Scan become functions inside `forward`, which
see the names around them.

Nothing of a file is taken over as it is: see `naming`.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from inspect import getattr_static
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.core.errors import RecordError
from burnbook.core.other_names import OtherName
from burnbook.core.source_code import python_source
from burnbook.importers.onnx.damage import as_damage
from burnbook.importers.onnx.folding import needs
from burnbook.importers.onnx.graph import CONTROL, Fact, Graph, Model, Node
from burnbook.importers.onnx.layers import Layer
from burnbook.importers.onnx.naming import (
    WIDTH,
    class_name,
    comment,
    filled,
    identifier,
    literal,
    own_word,
    short_name,
    singular,
    snake,
)
from burnbook.importers.onnx.operators.registry import OPERATORS, Added
from burnbook.importers.onnx.operators.sequences import AsItIs
from burnbook.importers.onnx.originals import original_names
from burnbook.importers.onnx.scopes import base_of, keys_of
from burnbook.importers.onnx.structure import Group, structure_of
from burnbook.importers.onnx.tensors import PACKED, packed
from burnbook.importers.onnx.ties import ties, transposed
from burnbook.importers.onnx.values import DTYPES
from burnbook.module import Module
from burnbook.module.module import MAY_HIDE
from burnbook.module.tree import spelled

Lines = tuple[int, int]
SHORT = 16  # elements of a constant that stands where it is used
FLOATS = ("float32", "float64", "float16")
OURS = "self cls np nn ops device values Self Module Param Tensor Model"
BUILTINS = "classmethod float list object range str tuple"  # that the source uses
TAKEN = {
    *(*OURS.split(), *BUILTINS.split()),
    *("Backend", "Numpy", "Path", "STATES", "b85decode"),
}
METHODS = {
    *(n for n in dir(Module) if not isinstance(getattr_static(Module, n), OtherName)),
    *("compute", "default", "forward", "from_embedded", "from_file", "new"),
} - {MAY_HIDE}
# A field may be called as a builtin is, which stands behind no self.
FIELDS = {
    *(TAKEN - {*BUILTINS.split()}),
    *(*METHODS, *keyword.kwlist, *keyword.softkwlist),
}
_NAME = re.compile(r"\w+")
#: Layers that do something else in training; a file says what they do without.
IN_TRAINING = frozenset({"BatchNorm", "Dropout"})
SIGNS = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}


@dataclass
class Field:
    """A constant or a layer that a module holds.

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

    @property
    def identity(self) -> tuple[Any, ...]:
        """By what a layer is known; nothing, where it has no weights."""
        layer = self.layer
        return (layer.config, layer.weights) if layer and layer.parts else ()

    @property
    def made(self) -> str:
        """The expression that makes it."""
        if self.layer is not None:
            return f"{self.layer.config}.init({'device' if self.values else ''})"
        shape = list(self.values[""].shape) or [1]
        word = {"weight": "weight", "constant": "frozen", "whole": "whole"}[self.form]
        kind = f", {self.dtype!r}" if self.dtype in ("float16", "float64") else ""
        if self.form == "whole" and self.values[""].dtype != np.int64:
            kind = f", {self.values[''].dtype.name!r}"
        return f"ops.{word}({shape}, device{kind})"


@dataclass
class Entry:
    """A layer or a part that a module holds, and the weights by which it is known."""

    identity: tuple[Any, ...]
    held: Field | Part
    number: int | None = None

    @property
    def annotation(self) -> str:
        """The type of what is held."""
        return self.held.annotation

    @property
    def made(self) -> str:
        """The expression that makes it."""
        return self.held.made


@dataclass
class Slot:
    """A field for a layer, for a part, or for a list of them."""

    name: str
    is_list: bool
    entries: list[Entry] = field(default_factory=list)
    base: str = ""  # as in the file

    def is_again(self, identity: tuple[Any, ...]) -> bool:
        """Whether what it holds is called again."""
        return bool(identity) and self.entries[0].identity == identity

    @property
    def is_mixed(self) -> bool:
        """Whether it is a tuple: what it lists is of several classes."""
        return self.is_list and len({e.annotation for e in self.entries}) > 1

    @property
    def annotation(self) -> str:
        """The type of the field."""
        types = [e.annotation for e in self.entries]
        if self.is_mixed:
            return f"tuple[{', '.join(types)}]"
        return f"list[{types[0]}]" if self.is_list else types[0]

    @property
    def made(self) -> str:
        """The expression that makes it."""
        made = [e.made for e in self.entries]
        if not self.is_list:
            return made[0]
        if len(set(made)) == 1 and len(made) > 1:
            return f"[{made[0]} for _ in range({len(made)})]"
        inner = ", ".join(made) + ("," if self.is_mixed and len(made) == 1 else "")
        return f"({inner})" if self.is_mixed else f"[{inner}]"


Scope = tuple[str, str, Field]  # our path, the file's, and what is there


@dataclass
class Part:
    """A class of the source, as one part of the model is an instance of it."""

    group: Group
    members: list[Field | Slot]
    lines: list[str]  # of the class below its docstring
    places: list[tuple[str, int, int]]  # first and last line of a node's statement
    name: str = ""

    @property
    def annotation(self) -> str:
        """Its class."""
        return self.name

    @property
    def made(self) -> str:
        """The expression that makes it."""
        return f"{self.name}.new(device)"

    @property
    def identity(self) -> tuple[Any, ...]:
        """The class and all weights: equal ones are one part that is called again."""
        found: list[Any] = [self.name]
        for member in self.members:
            if isinstance(member, Slot):
                found += [e.identity for e in member.entries]
            else:
                found += [id(array) for array in member.values.values()]
        return tuple(found)

    def learned(self, around: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
        """Weights and layers by their paths, with the values of each."""
        for member in self.members:
            at = f"{around}.{spelled(member.name)}".strip(".")
            if isinstance(member, Field):
                if member.form == "weight":
                    yield at, member.values
                continue
            for number, entry in enumerate(member.entries):
                inner = f"{at}.{number}" if member.is_list else at
                if isinstance(entry.held, Part):
                    yield from entry.held.learned(inner)
                else:
                    yield inner, entry.held.values

    def scopes(self, around: str = "", there: str = "") -> Iterator[Scope]:
        """Constants and layers by their paths, and by those that the file tells."""
        for member in self.members:
            at = f"{around}.{spelled(member.name)}".strip(".")
            if isinstance(member, Field):
                yield at, f"{there}.{member.name}".strip("."), member
                continue
            for place, entry in enumerate(member.entries):
                inner = f"{at}.{place}" if member.is_list else at
                base = f"{there}.{member.base}".strip(".")
                if member.is_list:
                    base = f"{base}.{place if entry.number is None else entry.number}"
                if isinstance(entry.held, Part):
                    yield from entry.held.scopes(inner, base)
                else:
                    yield inner, base, entry.held

    def fields(self) -> Iterator[Field]:
        """All constants and layers, those of parts as well."""
        for member in self.members:
            if isinstance(member, Field):
                yield member
                continue
            for entry in member.entries:
                if isinstance(entry.held, Part):
                    yield from entry.held.fields()
                else:
                    yield entry.held


@dataclass
class Source:
    """The text of a module, and the values of its fields.

    originals: what the file calls each layer and weight, by its path.
    lines: first and last line, counted from 1, of the statement that a node became: by
    the node's label, and by the names of its results; one for each node that has the
    name, as inner graphs may use one again.
    """

    text: str
    root: Part
    lines: dict[str, list[Lines]] = field(default_factory=dict)
    originals: dict[str, str] = field(default_factory=dict)

    @property
    def fields(self) -> list[Field]:
        """All constants and layers, those of parts as well."""
        return list(self.root.fields())


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
    """The source of a model. title: the file's name, for the first line.

    Raises:
        RecordError: the file does not follow ONNX's rules, as nobody can write it down.
    """
    with as_damage(title):
        found = _Writer(model, title, loading).write()
        return replace(found, text=python_source(found.text, title))


def settings_for(fields: list[Field], half: bool) -> str:
    """The precision that loses nothing of a model's fields, unless half is wanted."""
    if half:
        return "HalfPrecisionSettings"
    for one in fields:
        for array in one.values.values():
            if array.dtype == np.float64:
                return "DoublePrecisionSettings"
            wide = array.dtype == np.int64 and array.size
            if wide and (array.max() >= 1 << 31 or array.min() < -1 << 31):
                return "DoublePrecisionSettings"
    return "FullPrecisionSettings"


class _Writer:
    """Writes all classes, those of parts before what they are part of."""

    def __init__(self, model: Model, title: str, loading: Loading | None):
        self.model, self.title, self.loading = model, title, loading
        self.graph = model.graph
        self.tree = structure_of(self.graph)
        self.is_flat = not any(node.path for node in self.graph.nodes)
        self.facts = dict(self.graph.facts)
        for name in dict.fromkeys((*self.graph.inputs, *self.graph.outputs)):
            self.facts.setdefault(name, Fact())
        self.tensors: set[str] = set()  # values that are tensors for certain
        self.find_tensors()
        self.parts: dict[int, Part] = {}  # by group
        self.classes: dict[tuple[str, str], str] = {}
        self.drawn: dict[str, Part] = {}  # by class, as they are written
        self.instances: dict[str, list[Part]] = {}
        self.counts = Counter[str]()  # of classes that have a name
        self.taken = {*TAKEN, *_NAME.findall(self.imports())}
        self.mode = ""  # in which the model is loaded
        self.added: set[str] = set()  # modules that add operators

    def write(self) -> Source:
        root = _Class(self, self.tree).part()
        root.name = "Model"
        kinds = {one.layer.kind for one in root.fields() if one.layer}
        self.mode = ".eval()" if kinds & IN_TRAINING else ""
        self.tie(root)
        modules = sorted(filter(None, self.added)) if self.loading else []
        adding = [f"import {name}  # adds operators" for name in modules]
        text = ["\n".join([self.head(), "", *adding] if adding else [self.head()])]
        starts: dict[str, int] = {}
        for name, part in self.drawn.items():
            doc = self.about(name)
            self.start(text, name, doc)
            starts[name] = len(text)
            text += part.lines
        self.start(text, "Model", f"{comment(self.title)}, as a module.")
        starts["Model"] = len(text)
        loaders = self.loaders()
        cut = next(k for k, line in enumerate(root.lines) if "def forward(" in line)
        text += [*root.lines[:cut], *loaders, *root.lines[cut:]]
        count = "\n".join(text[:1]).count("\n")
        found: list[tuple[str, int, int]] = []
        for label, a, b in root.places:
            more = starts["Model"] + (len(loaders) if a >= cut else 0)
            found.append((label, a + more, b + more))
        for part in self.parts.values():
            drawn, more = self.drawn[part.name], starts[part.name]
            pairs = zip(part.places, drawn.places, strict=False)
            found += [(label, a + more, b + more) for (label, *_), (_, a, b) in pairs]
        whole = "\n".join(text) + "\n"
        short = self.with_imports(whole)
        count -= whole.count("\n") - short.count("\n")
        first = count + 1
        lines: dict[str, list[Lines]] = {}
        for label, a, b in found:
            lines.setdefault(label, []).append((a + first, b + first))
        named = original_names(root.scopes(), self.model.written)
        return Source(short, root, lines, named)

    @staticmethod
    def tie(root: Part) -> None:
        """Have what is one weight of the file be one parameter of the model."""
        layers = list(root.learned())
        tied, turned = ties(layers), transposed(layers)
        if not tied and not turned:
            return
        begin = root.lines.index("        return cls(")
        end = root.lines.index("        )", begin)
        extra = [
            f"        # {b} is {a}, transposed: trained on, they part."
            for a, b in turned
        ]
        if tied:
            root.lines[begin] = "        model = cls("
            extra += ["        # What the file has once is one parameter:"]
            extra += ["        return ops.tied(", "            model,"]
            for paths in tied:
                line = f"            {paths!r},".replace("'", '"')
                if len(line) > WIDTH:
                    rows = [f'                "{path}",' for path in paths]
                    extra += ["            (", *rows, "            ),"]
                else:
                    extra += [line]
            extra += ["        )"]
            root.lines[end + 1 : end + 1] = extra
        else:
            root.lines[begin:begin] = extra
        root.places = [(n, a + len(extra), b + len(extra)) for n, a, b in root.places]

    @staticmethod
    def start(text: list[str], name: str, doc: str) -> None:
        """The first lines of a class."""
        text += ["", "", f"class {name}(Module):", f'    """{doc}"""', ""]

    def about(self, name: str) -> str:
        """The first line about a class: where the file has such a part."""
        paths = [".".join(part.group.path) for part in self.instances[name]]
        paths = [re.sub(r"(?<![^.])\.|#\d+", "", path) for path in paths]
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        return f"{comment(paths[0])[: WIDTH - 20]}{more} of the file."

    def find_tensors(self) -> None:
        """Values that are tensors when the graph runs, in whatever way it is called."""
        self.tensors |= {n for n in self.graph.inputs if self.is_float(n)}
        for name, array in self.graph.constants.items():
            if array.dtype.name in FLOATS and not self.is_literal(name, array):
                self.tensors.add(name)
        for node in self.graph.nodes:
            self.mark(node)

    def mark(self, node: Node) -> None:
        """See which results of a node are tensors."""
        if node.domain == "nn":
            self.tensors |= {n for n in node.outputs if n}
        elif node.op == "Identity" and not node.domain:
            if node.inputs[0] in self.tensors:
                self.tensors.add(node.outputs[0])
        elif node.op not in CONTROL or node.domain:
            operator = OPERATORS[node.domain, node.op]
            certain = any(n in self.tensors for n in node.inputs)
            if certain and not isinstance(operator, AsItIs):
                self.tensors |= {n for n in node.outputs if self.is_float(n)}

    def is_float(self, name: str) -> bool:
        """Whether a value is known to be a tensor of floats."""
        fact = self.facts.get(name)
        return fact is not None and fact.kind == "tensor" and fact.dtype in FLOATS

    def is_literal(self, name: str, array: NDArray[Any]) -> bool:
        """Whether a constant stands where it is used."""
        if array.dtype == object:
            return True
        learned = array.ndim > 0 and array.dtype.name == "float32" and array.size > 1
        return array.size <= SHORT and not (learned and name in self.graph.trainable)

    def part(self, group: Group) -> Part:
        """The part that a group is; one class is written for all that are equal."""
        if id(group) in self.parts:
            return self.parts[id(group)]
        part = _Class(self, group, canonical=True).part()
        kind = self.model.kinds.get(group.path, "")
        key = kind, "\n".join(part.lines)
        if key not in self.classes:
            word = class_name(kind or base_of(group.key)[0])
            name, k = word, max(self.counts[word], 1)
            while name in self.taken or keyword.iskeyword(name):
                k += 1
                name = f"{word}{k}"
            self.counts[word] = k
            self.taken.add(name)
            self.classes[key] = name
            self.drawn[name] = _Class(self, group).part()
        part.name = self.classes[key]
        self.instances.setdefault(part.name, []).append(part)
        self.parts[id(group)] = part
        return part

    def with_imports(self, text: str) -> str:
        """Without the imports that nothing uses."""
        head, _, body = text.partition("\n\n\nclass ")
        for line, word in (
            ("import numpy as np\n\n", r"\bnp\."),
            ("from burnbook import nn\n", r"\bnn\."),
            ("from burnbook.importers.onnx import operators as ops\n", r"\bops\."),
        ):
            if not re.search(word, body):
                head = head.replace(line, "")
        if "Param[" not in body:
            head = head.replace("import Module, Param", "import Module")
            head = head.replace("\nfrom burnbook.tensor import Tensor", "")
        return f"{head}\n\n\nclass {body}"

    def loaders(self) -> list[str]:
        """The ways to get the module with its weights."""
        if self.loading is None:
            return []
        how, file = self.loading, self.loading.file
        told = ", in eval mode: train() takes it back" if self.mode else ""
        text = f"""
    @classmethod
    def from_file(cls, path: str | Path, device: Backend) -> Self:
        \"\"\"With the weights of a record{told}.\"\"\"
        record = {how.recorder}({how.settings}).load(path, device)
        return cls.new(device).load_record(record){self.mode}
"""
        default = f"cls.from_file(Path(__file__).with_name({file!r}), Numpy())"
        if how.embedded:
            text += f"""
    @classmethod
    def from_embedded(cls, device: Backend) -> Self:
        \"\"\"With the weights that stand in this file.\"\"\"
        recorder = BinBytesRecorder({how.settings})
        record = recorder.load(b85decode(STATES), device)
        return cls.new(device).load_record(record){self.mode}
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
            f", made by {comment(self.model.producer)}" if self.model.producer else ""
        )
        return (
            f'"""Written by burnbook from {comment(self.title)}{producer}."""\n\n'
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


class _Class:
    """Writes the class of one group.

    canonical: arguments are called by their places and values by what makes them, so
    that parts that do the same have the same text, whatever the file calls them.
    """

    def __init__(self, writer: _Writer, group: Group, *, canonical: bool = False):
        self.writer, self.group, self.canonical = writer, group, canonical
        self.is_root = group is writer.tree
        words = {*TAKEN, *keyword.kwlist, *keyword.softkwlist}
        self.taken, self.taken_fields = (
            dict.fromkeys(words, 1),
            dict.fromkeys(FIELDS, 1),
        )
        self.names: dict[str, str] = {}  # of values: an expression
        self.made_of: dict[str, list[tuple[Any, str]]] = {}  # constants that are fields
        self.members: list[Field | Slot] = []
        self.slots: dict[tuple[str, bool], Slot] = {}
        self.others: defaultdict[str, list[Slot]] = defaultdict(list)  # of a name again
        self.constants = dict(writer.graph.constants)
        self.trainable = writer.graph.trainable
        self.facts = writer.facts
        self.tensors = writer.tensors
        self.counts = Counter[str]()
        self.labels: list[tuple[str, int, int]] = []
        self.written: list[str] = []  # the statements so far
        keys = {i.key for i in group.items if isinstance(i, Group)}
        self.calls = Counter(base_of(key)[0] for key in keys if "#" in key)

    def part(self) -> Part:
        """The class, with what an instance of it holds."""
        group = self.group
        inputs = self.arguments()
        floats = {n for n in group.inputs if self.writer.is_float(n)}
        if not self.is_root:
            self.tensors = self.tensors | floats
        body: list[str] = []
        self.items(group.items, body)
        outputs = [self.expression(n) for n in group.outputs]
        returned = f"        return {', '.join(outputs)}"
        head = f"    def forward(self, {', '.join(inputs)}):".replace(
            "self, )", "self)"
        )
        told = f'        """{self.signature()}"""'
        text = [f"    {m.name}: {m.annotation}" for m in self.members]
        text += [""] if text else []
        text += ["    @classmethod", "    def new(cls, device: Backend) -> Self:"]
        text += ['        """The module before a record is loaded."""']
        if self.members:
            text += ["        return cls("]
            for member in self.members:
                text += _made_in_lines(member)
            text += ["        )", ""]
        else:
            text += ["        return cls()", ""]
        if not self.is_root or self.is_plain():
            text += [head, told]
        else:
            facts = [self.facts.get(n, Fact()) for n in group.inputs]
            given = ", ".join(
                f"({n}, {f.dtype!r}{', 0' * (f.shape == ())})"
                for n, f in zip(inputs, facts, strict=True)
            )
            comma = "," if len(inputs) == 1 else ""
            text += [head, told]
            text += [f"        values = ops.from_tensors(self, ({given}{comma}))"]
            text += ["        return ops.to_tensors(self, self.compute(*values))", ""]
            text += [head.replace("def forward", "def compute")]
            text += ['        """The same with the element types and ranks of ONNX."""']
        more = len(text)
        places = [(label, a + more, b + more) for label, a, b in self.labels]
        return Part(group, self.members, [*text, *body, returned], places)

    def arguments(self) -> list[str]:
        """What the inputs are called."""
        graph = self.writer.graph
        found: list[str] = []
        for k, name in enumerate(self.group.inputs):
            if self.canonical:
                word = f"argument{k}"
            elif self.writer.is_flat or self.is_root:
                word = identifier(name) or ("input" if self.is_root else "x")
                if not identifier(name) and len(self.group.inputs) > 1:
                    word += str(k + 1)
            elif k == 0 and self.writer.is_float(name):
                word = "x"
            elif name in graph.inputs:
                word = identifier(name) or "x"
            elif self.is_size(name):
                word = short_name(name) or "size"
            else:
                word = short_name(name) or "x"
            self.names[name] = self.unused(word)
            found.append(self.names[name])
        return found

    def is_size(self, name: str) -> bool:
        """Whether a value is whole numbers along no dim or one."""
        fact = self.facts.get(name, Fact())
        return fact.dtype == "int64" and len(fact.shape or (1, 1)) < 2

    def signature(self) -> str:
        """Inputs and outputs with their shapes."""

        def shown(name: str) -> str:
            told = self.names[name] if not self.is_root and name in self.names else name
            told = told if re.fullmatch(r"[\w.:/ ]+", told) else short_name(name) or "y"
            return f"{comment(told)} {self.shape_of(name)}".strip()

        group = self.group
        ins = ", ".join(map(shown, group.inputs))
        outs = map(shown, group.outputs)
        if not self.is_root:
            outs = (self.shape_of(n) or shown(n) for n in group.outputs)
        return f"{ins} -> {', '.join(outs)}".strip()

    def is_plain(self) -> bool:
        """Whether inputs and outputs are tensors inside as outside."""
        group = self.group
        for name in (*group.inputs, *group.outputs):
            fact = self.facts.get(name, Fact())
            if fact.kind != "tensor" or fact.dtype != "float32" or not fact.shape:
                return False
        return all(n in self.tensors for n in group.outputs)

    def items(self, items: list[Node | Group], body: list[str]) -> None:
        """The statements of a group, parts as calls."""
        indent, k = "        ", 0
        while k < len(items):
            item = items[k]
            if isinstance(item, Node):
                self.add(item, self.statement(item, indent), body)
                k += 1
                continue
            run = self.chain(items, k)
            if len(run) > 1:
                body += self.loop(run, items, indent)
            else:
                body += self.call(item, indent)
            k += len(run)

    def add(self, item: Node, lines: Iterator[str], body: list[str]) -> None:
        """A statement, and its lines, for all nodes that it is of."""
        self.written, place = body, len(body)
        for line in lines:  # one by one: inner graphs look how many there are
            body.append(line)
        self.note_lines(item, place)

    def note_lines(self, item: Node, place: int) -> None:
        """Note what a node became: the lines from a place on."""
        last = len(self.written) - 1
        if last < place:
            return
        labels = [item.label, *[name for name in item.outputs if name]]
        if item.domain == "nn":
            labels += item.attributes["layer"].labels
        self.labels += [(label, place, last) for label in dict.fromkeys(labels)]

    def chain(self, items: list[Node | Group], begin: int) -> list[Group]:
        """Parts of one list and class, each of which takes what the one before gave."""
        first = items[begin]
        assert isinstance(first, Group)
        base, number = base_of(first.key)
        run = [first]
        if number is None or len(first.outputs) != 1:
            return run
        kind = self.writer.part(first).name
        everything = [
            i for i in items if isinstance(i, Group) and base_of(i.key)[0] == base
        ]
        for item in items[begin + 1 :]:
            if not isinstance(item, Group) or base_of(item.key)[0] != base:
                break
            if self.writer.part(item).name != kind or not _follows(run[-1], item):
                break
            run.append(item)
        ends = [item.outputs[0] for item in run[:-1]]
        inside = {id(item) for item in run}
        used = {n for i in items if id(i) not in inside for n in _taken(i)}
        whole = len(run) == len(everything) == len({i.key for i in run})
        layered = (base, True) in self.slots
        if (
            not whole
            or layered
            or any(n in used or n in self.group.outputs for n in ends)
        ):
            return [first]
        return run if len(run) > 1 else [first]

    def loop(
        self, run: list[Group], items: list[Node | Group], indent: str
    ) -> Iterator[str]:
        """Parts of a list, each called with what the one before gave."""
        first, last = run[0], run[-1]
        place = next(k for k, n in enumerate(run[1].inputs) if n == first.outputs[0])
        parts = [self.writer.part(group) for group in run]
        slots = [
            self.held(group.key, part)[0]
            for group, part in zip(run, parts, strict=True)
        ]
        slot = slots[0]
        given, source = self.given(first), first.inputs[place]
        inside = {id(group) for group in run}
        after = items[items.index(first) :]
        used = {n for i in after if id(i) not in inside for n in _taken(i)} | {
            *self.group.outputs,
            *(n for k, n in enumerate(first.inputs) if k != place),
        }
        start = given[place]
        if source not in used and start.isidentifier():
            self.names[last.outputs[0]] = target = start
        else:
            target = self.new_name(last.outputs[0], "x", hint="x")
            yield f"{indent}{target} = {start}"
        given[place] = target
        one = self.unused(_one_of(slot.name, parts[0].name))
        yield f"{indent}for {one} in self.{slot.name}:"
        note = self.note(last.outputs)
        call = f"{one}.forward"
        yield from self.assignment([target], call, indent + "    ", note, given)

    def call(self, group: Group, indent: str) -> Iterator[str]:
        """The call of a part."""
        part = self.writer.part(group)
        slot, text = self.held(group.key, part)
        given = self.given(group)
        word = singular(slot.name) if slot.is_list else slot.name
        if len(group.outputs) == 1:
            targets = [self.new_name(group.outputs[0], word, hint=word)]
        else:
            targets = [self.new_name(n, word) for n in group.outputs]
        note = self.note(group.outputs)
        yield from self.assignment(targets, f"{text}.forward", indent, note, given)

    def given(self, group: Group) -> list[str]:
        """What a part is called with: floats as tensors."""
        found: list[str] = []
        for name in group.inputs:
            text = self.expression(name)
            if self.writer.is_float(name) and name not in self.tensors:
                text = f"ops.tensor({text}, self)"
            found.append(text)
        return found

    def held(self, key: str, made: Field | Part) -> tuple[Slot, str]:
        """The field for a part or a layer, and how it is written."""
        base, number = base_of(key)
        is_list = number is not None and ("#" not in key or self.calls[base] > 1)
        identity = made.identity
        slot = self.slots.get((base, is_list))
        if not is_list and slot is not None and not slot.is_again(identity):
            called = [s for s in self.others[base] if s.is_again(identity)]
            slot = next(iter(called), None)
            if slot is None:
                self.others[base].append(self.new_slot(base, False))
                slot = self.others[base][-1]
        elif not is_list and slot is None:
            first = self.slots.get((re.sub(r"_\d+$", "", base), False))
            slot = first if first is not None and first.is_again(identity) else None
        if is_list and slot is not None:
            entries = [e for e in slot.entries if e.number == number]
            if entries and not any(e.identity == identity for e in entries):
                base = f"{base}_rest"  # what the same part does later
                slot = self.slots.get((base, is_list))
        if slot is None:
            slot = self.slots[base, is_list] = self.new_slot(base, is_list)
        again = [
            k
            for k, e in enumerate(slot.entries)
            if e.identity == identity and (not is_list or e.number == number)
        ]
        place = again[0] if identity and again else len(slot.entries)
        if place == len(slot.entries):
            slot.entries.append(Entry(identity, made, number))
        return slot, f"self.{slot.name}" + (f"[{place}]" if is_list else "")

    def new_slot(self, base: str, is_list: bool) -> Slot:
        """A new field of the class."""
        word = self.unused(identifier(base) or "part", self.taken_fields)
        slot = Slot(word, is_list, base=base)
        self.members.append(slot)
        return slot

    def body(self, graph: Graph, indent: str) -> Iterator[str]:
        """The statements of an inner graph."""
        self.constants |= graph.constants
        self.trainable = self.trainable | graph.trainable
        self.facts = self.facts | graph.facts
        for node in graph.nodes:
            place = len(self.written)
            yield from self.statement(node, indent)
            self.note_lines(node, place)

    def statement(self, node: Node, indent: str) -> Iterator[str]:
        if node.op == "Identity" and not node.domain:
            self.names[node.outputs[0]] = self.expression(node.inputs[0])
            if node.inputs[0] in self.tensors:
                self.tensors.add(node.outputs[0])
            return
        if node.op in CONTROL and not node.domain:
            yield from self.control(node, indent)
            return
        if node.domain == "nn":
            yield from self.layer(node, indent)
            return
        operator = OPERATORS[node.domain, node.op]
        certain = any(n in self.tensors for n in node.inputs)
        if certain and not isinstance(operator, AsItIs):
            self.tensors |= {n for n in node.outputs if self.writer.is_float(n)}
        short = self.infix(node)
        if short:
            target = [self.new_name(node.outputs[0], node.op)]
            note = self.note(node.outputs)
            yield from self.assignment(target, short, indent, note)
            return
        inputs = [self.expression(n) for n in node.inputs]
        while inputs and inputs[-1] == "None":
            inputs.pop()
        words = [
            f"{k}={repr(DTYPES[v]) if k == 'to' and v in DTYPES else literal(v)}"
            for k, v in sorted(node.attributes.items())
            if not is_type(v) and not operator.is_usual(k, v)
        ]
        used = [i for i, n in enumerate(node.outputs) if n]
        count = used[-1] + 1 if used else 1
        if (operator.many or isinstance(operator, Added)) and count > 1:
            words.append(f"outputs={count}")
        outputs = node.outputs[:count]
        targets = [self.new_name(n, node.op) if n else "_" for n in outputs]
        call = f"ops.{operator.__name__}"
        if isinstance(operator, Added):
            call = f"ops.added({operator.domain!r}, {operator.name!r})"
            self.writer.added.add(operator.module)
        parts = [*inputs, *words]
        yield from self.assignment(targets, call, indent, self.note(outputs), parts)

    def layer(self, node: Node, indent: str) -> Iterator[str]:
        """A call of a layer of nn, which becomes a field."""
        found: Layer = node.attributes["layer"]
        made = Field("", "layer", found.parts, layer=found)
        slot, call = self.held(self.layer_key(found, node), made)
        made.name = slot.name
        given = self.expression(found.inputs[0])
        if found.kind == "Embedding":
            given = f"ops.indices({given}, {call})"
        elif found.inputs[0] not in self.tensors:
            given = f"ops.tensor({given}, self)"
        self.tensors |= {n for n in found.results if n}
        hint = "" if slot.is_list or self.writer.is_flat else slot.name
        word = hint or found.word
        target = self.new_name(found.output, word, hint=hint)
        note, call = self.note([found.output]), f"{call}.forward"
        lasts = found.outputs[1:]
        parts = [given]
        if len(found.inputs) > 1:
            first = [self.as_tensor(n) for n in found.inputs[1:]]
            layer = call.removesuffix(".forward")
            parts.append(f"ops.first_state({layer}, {', '.join(first)})")
        if found.kind == "Gru" or not lasts:
            yield from self.assignment([target], call, indent, note, parts)
            state = f"ops.last_state({target}, {call.removesuffix('.forward')})"
            texts = [state]
        else:
            state = self.unused("state") if any(lasts) else "_"
            yield from self.assignment([target, state], call, indent, note, parts)
            texts = [state]
            if found.kind != "BiGru":
                texts = [f"{state}.hidden", f"{state}.cell"]
            if found.kind == "Lstm":
                texts = [f"ops.unsqueeze({text}, [0])" for text in texts]
        for name, text in zip(lasts, texts, strict=False):
            if name and text.startswith("ops."):
                one = self.new_name(name, "hidden" if name == lasts[0] else "cell")
                yield from self.assignment([one], text, indent, self.note([name]))
            elif name:
                self.names[name] = text

    def as_tensor(self, name: str) -> str:
        """A value that a layer takes, as a tensor."""
        text = self.expression(name)
        return text if name in self.tensors else f"ops.tensor({text}, self)"

    def layer_key(self, found: Layer, node: Node) -> str:
        """What a layer is called: as its scope, as its weight's, or by its kind."""
        path, depth = node.path or (), len(self.group.path)
        own = self.writer.model.kinds.get(path, "")
        told = self.weight_key(found)
        if len(path) > depth and not self.writer.is_flat:
            is_other = own.startswith("BatchNorm") and found.kind != "BatchNorm"
            return told if is_other and told else path[depth]
        if not self.writer.is_flat:
            return told or found.word
        word = _layer_name(found, node)
        if not word:
            self.counts[found.word] += 1
            word = f"{found.word}{self.counts[found.word]}"
        return word

    def weight_key(self, found: Layer) -> str:
        """What a layer of this part is called in the names of its weights."""
        before = "".join(re.escape(f"{key}.") for key in self.group.path)
        before = re.sub(r"\d+", r"\\d+", before)  # equal weights are written once
        for name in found.weights:
            inner = re.sub(f"^{before}", "", name)
            word = re.sub(r"[._](weight|bias|gamma|beta|kernel|scale)(:0)?$", "", inner)
            fits = inner != name or not before
            if fits and word != inner and identifier(word):
                keys = keys_of(word.split("."))
                return keys[0] if len(keys) == 1 else ""
        return ""

    def infix(self, node: Node) -> str:
        """Arithmetic as Python writes it, where both sides are tensors of one rank."""
        sign = SIGNS.get(node.op) if not node.domain and not node.attributes else None
        if sign is None or len(node.inputs) != 2:
            return ""
        texts, shapes, few = [], [], []
        for name in node.inputs:
            array = self.constants.get(name)
            if name in self.tensors:
                fact = self.facts.get(name, Fact())
                shapes.append(None if fact.shape is None else len(fact.shape))
                texts.append(self.expression(name))
            elif array is not None and array.dtype == np.float32 and array.size == 1:
                texts.append(literal(array.reshape(())))
                few.append(array.ndim)
            else:
                return ""
        if not shapes or None in shapes or len(set(shapes)) > 1 or 0 in shapes:
            return ""
        if any(n > shapes[0] for n in few):
            return ""
        if any(c in texts[0] + texts[1] for c in "("):
            return ""
        return f"{texts[0]} {sign} {texts[1]}"

    def note(self, values: list[str]) -> str:
        """The shapes of what a statement makes, as a comment."""
        shapes = [t for n in values if n and (t := self.shape_of(n))]
        return f"  # {', '.join(dict.fromkeys(shapes))}" if shapes else ""

    def assignment(
        self,
        targets: list[str],
        call: str,
        indent: str,
        note: str,
        parts: list[str] | None = None,
    ) -> Iterator[str]:
        """A statement with the shapes of what it makes; a long one in several lines."""
        start = f"{indent}{', '.join(targets)} = {call}"
        line = start if parts is None else f"{start}({', '.join(parts)})"
        if parts and len(line) > WIDTH:
            if len(start) + len(note) + 1 > WIDTH:
                yield f"{indent}{note[2:]}"
                note = ""
            yield f"{start}({note}"
            yield from filled(parts, indent + "    ")
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
                functions[word] = self.unused(f"{snake(node.op)}_{word}")
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
                if scans and not self.takes_a_turn(node):
                    words["rows"] = self.rows(body, scans)
            case "Scan":
                body = node.attributes["body"]
                if node.version < 9:  # several sequences at once, and their lengths
                    words["lengths"], words["batched"] = inputs.pop(0), 1
                count = words.pop("num_scan_inputs")
                cut = len(inputs) - count
                words["scans"] = len(body.outputs) - cut
                if words["scans"] and not self.takes_a_turn(node):
                    words["rows"] = self.rows(body, words["scans"])
                parts = [f"[{', '.join(inputs[:cut])}]"]
                parts += [f"[{', '.join(inputs[cut:])}]", functions["body"]]
            case _:
                parts = [f"[{', '.join(inputs)}]", functions["body"]]
        said = [
            f"{k}={v if k in ('lengths', 'rows') else literal(v)}"
            for k, v in sorted(words.items())
            if k != "rows" or v
        ]
        call = f"ops.{snake(node.op)}_({', '.join([*parts, *said])})"
        left = ", ".join(targets) + ("," if len(targets) == 1 else "")
        yield f"{indent}{left} = {call}"

    def takes_a_turn(self, node: Node) -> bool:
        """Whether a Loop or Scan is known to run its graph once at least."""
        if node.op == "Loop":
            trips, cond = (self.constants.get(n) for n in node.inputs[:2])
            begins = not node.inputs[1] or (cond is not None and bool(cond.all()))
            return begins and trips is not None and bool((trips > 0).all())
        axes = node.attributes.get("scan_input_axes") or [0]
        fact = self.facts.get(node.inputs[-node.attributes["num_scan_inputs"]])
        size = fact.shape[axes[0]] if fact is not None and fact.shape else 0
        return isinstance(size, int) and size > 0

    def rows(self, body: Graph, scans: int) -> str:
        """What a body declares of what it yields in each turn; "" if it says nothing.

        Why: a size that it leaves open is 0 where no turn is taken, as in ONNX Runtime.
        """
        facts = [body.facts.get(name, Fact()) for name in body.outputs[-scans:]]
        if not all(fact.dtype for fact in facts):
            return ""
        texts: list[str] = []
        for fact in facts:
            sizes = [n if isinstance(n, int) else 0 for n in fact.shape or ()]
            texts.append(f"({fact.dtype!r}, {sizes})".replace("'", '"'))
        return f"[{', '.join(texts)}]"

    def function(self, name: str, graph: Graph, indent: str) -> Iterator[str]:
        """An inner graph; what it names is forgotten after it: another may as well."""
        names, constants, tensors = self.names, self.constants, self.tensors
        trainable, facts = self.trainable, self.facts
        self.names, self.constants = dict(names), dict(constants)
        self.tensors = set(tensors)
        inputs = [self.new_name(n, "input") for n in graph.inputs]
        yield f"{indent}def {name}({', '.join(inputs)}):"
        yield from self.body(graph, indent + "    ")
        outputs = ", ".join(self.expression(n) for n in graph.outputs)
        yield f"{indent}    return {outputs}{',' if len(graph.outputs) == 1 else ''}"
        self.names, self.constants, self.tensors = names, constants, tensors
        self.trainable, self.facts = trainable, facts

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

    def constant(self, name: str, array: NDArray[Any]) -> str:
        if array.dtype == object or (array.size <= SHORT and not self.is_weight(name)):
            return literal(array)
        dtype = array.dtype.name
        known = self.made_of.get(name, ())
        text = next((t for held, t in known if _is_same(held, array)), None)
        if text is not None:  # in another inner graph
            self.names[name] = text
            return text
        word = self.unused(self.field_name(name), self.taken_fields)
        if dtype in FLOATS:
            form = "weight" if name in self.trainable else "constant"
            self.members.append(Field(word, form, {"": array}, dtype))
            text = f"self.{word}.val()"
            if dtype != "float32":
                text = f"ops.of_type({text}, {dtype!r})"
            if not array.ndim:
                text = f"ops.scalar({text})"
        else:
            self.members.append(Field(word, "whole", {"": _whole(array)}, dtype))
            text = f"ops.array(self.{word}.val(), {dtype!r}, {list(array.shape)})"
        self.names[name] = text
        self.made_of.setdefault(name, []).append((array, text))
        return text

    def field_name(self, name: str) -> str:
        """What a constant is called: as in the file, less the part that it is of."""
        if self.writer.is_flat:
            return identifier(name) or "constant"
        path = ".".join(self.group.path) + "."
        last = name.removeprefix(path) if self.group.path else name
        last = last if last != name or self.is_root else name.rpartition(".")[2]
        if last == name and not self.is_root and re.search(r"\d", name):
            return "weight" if name in self.trainable else "constant"
        if last == name and "/" in name:
            return short_name(name) or "constant"
        word = identifier(last) if "::" not in last else ""
        word = word if not re.fullmatch(r"(val_?)?\d*", word) else ""
        return word or ("weight" if name in self.trainable else "constant")

    def is_weight(self, name: str) -> bool:
        array = self.constants[name]
        return (
            name in self.trainable
            and array.ndim > 0
            and array.dtype.name == "float32"
            and array.size > 1
        )

    def new_name(self, value: str, op: str, hint: str = "") -> str:
        """An identifier for a value of the file. hint: a better word, where one is."""
        if self.writer.is_flat:
            made = own_word(value, identifier(value), op)
            if not made:
                word = snake(op)
                self.counts[word] += 1
                made = f"{word}{self.counts[word]}"
        elif self.canonical:
            made = identifier(hint) or snake(op)
        else:
            short = own_word(value, short_name(value), op)
            made = identifier(hint) or short or snake(op)
        self.names[value] = self.unused(made)
        return self.names[value]

    def unused(self, word: str, taken: dict[str, int] | None = None) -> str:
        """A word that no name of the same sort has yet.

        taken: how often each word was asked for, so that the next number is known.
        """
        taken = self.taken if taken is None else taken
        made, k = word, taken.get(word, 0)
        while made in taken:
            k += 1
            made = f"{word}_{k}"
        taken[word] = max(k, 1)
        taken.setdefault(made, 1)
        return made

    def shape_of(self, name: str) -> str:
        fact = self.facts.get(name)
        if fact is None or fact.shape is None:
            return ""
        sizes = ("?" if n is None else _size(n) for n in fact.shape)
        return f"[{', '.join(sizes)}]"


def _size(size: int | str) -> str:
    """A size, or its name; names that shape inference made up say nothing."""
    return "?" if re.match(r"unk__\d", str(size)) else comment(str(size))


def _made_in_lines(member: Field | Slot) -> Iterator[str]:
    """How a field is made: a long list in lines, a config a step in each line."""
    made, indent = member.made, " " * 12
    line = f"{member.name}={made},"
    if len(line) + len(indent) <= WIDTH:
        yield indent + line
    elif isinstance(member, Slot) and member.is_list and made[0] in "([":
        ends = {"[": "]", "(": ")"}
        texts = [entry.made for entry in member.entries]
        inner = indent + "    "
        yield f"{indent}{member.name}={made[0]}"
        if " for _ in range(" in made:
            yield from _steps(texts[0], inner, "")
            yield f"{inner}for _ in range({len(texts)})"
        else:
            for text in texts:
                yield from _steps(text, inner, ",")
        yield f"{indent}{ends[made[0]]},"
    else:
        start, *steps = re.split(r"(?=\.with_|\.init\()", made)
        yield f"{indent}{member.name}=("
        yield from (f"{indent}    {step}" for step in (start, *steps))
        yield f"{indent}),"


def _steps(made: str, indent: str, end: str) -> Iterator[str]:
    """An expression, a step of its config in each line where it is long."""
    if len(indent) + len(made) + len(end) <= WIDTH:
        yield f"{indent}{made}{end}"
        return
    start, *steps = re.split(r"(?=\.with_|\.init\()", made)
    yield f"{indent}{start}"
    yield from (f"{indent}{step}" for step in steps[:-1])
    yield f"{indent}{steps[-1] if steps else ''}{end}"


def _one_of(name: str, kind: str) -> str:
    """What one of a list is called: as the list, less its plural, or as its class."""
    one = singular(name)
    word = snake(kind)
    return word if one == name and word != name and len(word) < 20 else one


def _taken(item: Node | Group) -> list[str]:
    return item.inputs if isinstance(item, Group) else needs(item)


def _follows(before: Group, after: Group) -> bool:
    """Whether a part takes the result of one before, and else what that took."""
    made = before.outputs[0]
    pairs = zip(before.inputs, after.inputs, strict=False)
    if len(before.inputs) != len(after.inputs) or len(after.outputs) != 1:
        return False
    changed = [(a, b) for a, b in pairs if a != b]
    return len(changed) == 1 and changed[0][1] == made


def _layer_name(found: Layer, node: Node) -> str:
    """What the file calls a layer: before .weight, or as the node's scope."""
    source, _, last = found.source.rpartition(".")
    if source and last in ("weight", "gamma", "w", "W", "scale"):
        return identifier(source)
    scope = node.name.strip("/").rpartition("/")[0]
    return identifier(scope)


def _is_same(x: NDArray[Any], y: NDArray[Any]) -> bool:
    """Whether two constants are one: a file may hold it in several inner graphs."""
    if x is y:
        return True
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def is_type(value: object) -> bool:
    """Whether an attribute is a type, which nothing here needs to be told."""
    return type(value).__name__ == "TypeProto"


def _whole(array: NDArray[Any]) -> Any:
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
