"""From a module and its captured calls to Rust structs with configs and methods.

Each of our classes becomes a struct with the names of its fields, so that a record
fits; two instances that hold or do different things become two structs. What is a
number or a truth value in Python stands as such in the methods, and has no field.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.core.errors import RecordError
from burnbook.exporters.rust.calls import TREE, Call
from burnbook.exporters.rust.functions import Function, Made, arguments_of
from burnbook.exporters.rust.layers import BOTH, NEW, Layer, layer_of, module_of
from burnbook.exporters.rust.methods import layer_call, layer_uses
from burnbook.exporters.rust.operations import kind_of
from burnbook.exporters.rust.text import (
    Dialect,
    Reported,
    Untranslatable,
    field_name,
    identifier,
    literal,
    number,
    type_name,
)
from burnbook.module import Module, Param, ParamId, RunningState
from burnbook.module.param import ParamRecord
from burnbook.module.records import ModuleRecord, to_record
from burnbook.module.reparameterization import Reparameterized
from burnbook.module.tree import Tree, children
from burnbook.program import Program, Value
from burnbook.tensor import Tensor
from burnbook.tensor.qfloat import QFloat

SHORT = 16  # elements of a constant that stands where it is used
LONGEST_TUPLE = 10  # of modules, in Burn


@dataclass
class Config:
    """A field of a config: its name, type and default."""

    name: str
    kind: str
    default: str
    debug: bool = True


@dataclass
class Node:
    """A part of a module, as a field of a struct.

    path: in the model. kind: its type. init: what makes it, in the `init` of a config.
    configs: the fields of that config which it needs. record: what a record has.
    """

    path: str
    kind: str
    init: str
    configs: list[Config] = field(default_factory=list)
    record: Any = None
    parts: dict[str, tuple[str, Node]] = field(default_factory=dict)  # access, part
    layer: Layer | None = None
    struct: Struct | None = None
    module: Any = None


@dataclass
class Struct:
    """A struct with its config and methods."""

    name: str
    about: str
    fields: list[tuple[str, Node]]
    functions: list[Function]
    configs: list[Config]
    doc: str = ""

    @property
    def generic(self) -> bool:
        """Whether a field has the backend in its type."""
        return any(re.search(r"<B[,>]", part.kind) for _, part in self.fields)

    @property
    def needs_device(self) -> bool:
        """Whether making one takes a device."""
        return any(re.search(r"\bdevice\b", part.init) for _, part in self.fields)

    @property
    def debug(self) -> bool:
        """Whether its config can derive Debug."""
        return all(config.debug for config in self.configs)


class Modules:
    """All structs of a model, made from its program."""

    def __init__(
        self,
        model: Module,
        program: Program,
        call: Call,
        dialect: Dialect,
        name: str,
    ) -> None:
        self.dialect, self.program = dialect, program
        self.calls: dict[str, list[Call]] = {}
        for one in call.all():
            self.calls.setdefault(one.path, []).append(one)
        self.structs: list[Struct] = []
        self.uses: dict[str, set[str]] = {}  # names that are imported, by module
        self.refused: dict[str, str] = {}
        self.methods: dict[int, str] = {}  # of calls: the name of the function
        self.shared: dict[int, str] = {}
        self.root = self._struct(model, "", name, "model")

    def use(self, module: str, name: str) -> None:
        """Import a name of Burn."""
        self.uses.setdefault(module, set()).add(name)

    # Parts

    def _node(self, value: Any, path: str, name: str) -> Node | None:
        """What becomes of a field; None for what needs none."""
        if isinstance(value, (Param, Tensor)):
            return self.tensor(value, path)
        if isinstance(value, Tree):
            return self._module(value, path, name)
        if isinstance(value, (list, tuple)) and any(_holds(part) for part in value):
            return self._several(value, path, name)
        if isinstance(value, dict) and any(map(_holds, value.values())):
            return self._struct(value, path, type_name(name), name)
        return None

    def _module(self, module: Any, path: str, name: str) -> Node:
        try:
            layer = layer_of(module, self.dialect)
        except Untranslatable as reason:
            return self._instead(module, path, name, str(reason))
        if layer is None:
            spread = bool(module.spread)
            kind = type_name(name if spread else type(module).__name__)
            return self._struct(module, path, kind, name)
        self.use(layer.module, layer.kind)
        self._also(layer.config + layer.init)
        rank = self._rank(path)
        kind = layer.type_in(self.dialect, rank)
        record = to_record(module)
        if isinstance(record, dict) and not self.dialect.new:
            release = tuple(map(int, self.dialect.version.split(".")))
            record = ModuleRecord(record, module).at_release(release)
        node = Node(path, kind, layer.init, record=record, layer=layer, module=module)
        if layer.config:
            self.use(layer.module, layer.config_type)
            rust = field_name(name)
            node.configs = [Config(rust, layer.config_type, layer.config, layer.debug)]
            node.init = layer.init.format(f"self.{rust}")
            if layer.kind.startswith("Interpolate"):  # its init consumes the config
                node.init = f"self.{rust}.clone().init()"
        return node

    def _also(self, text: str) -> None:
        """Import the choices that an expression names."""
        for name, module in CHOICES.items():
            if f"{name}::" in text:
                self.use(module, name)
        for name in ("PReluConfig", "LeakyReluConfig", "HardSigmoidConfig"):
            if f"({name}::" in text:
                self.use("nn", name)
        for name in NEW:
            if f"({name}Config::" in text:
                self.use(module_of(name), f"{name}Config")

    def _rank(self, path: str) -> int | None:
        for call in self.calls.get(path, ()):
            for value in call.arguments:
                return len(value.shape)
        return None

    def _instead(self, module: Any, path: str, name: str, reason: str) -> Node:
        """A layer that Burn lacks, as a struct with the operations that it runs."""
        before, self.refused = self.refused, {}
        count, uses = len(self.structs), {k: set(v) for k, v in self.uses.items()}
        kind = type(module).__name__
        known = kind in BOTH or kind in NEW
        node = self._struct(module, path, f"{kind}Layer" if known else kind, name)
        failed, self.refused = self.refused, before
        if failed or not self.calls.get(path):
            del self.structs[count:]
            self.uses = uses
            self.refused[path or kind] = reason
        return node

    def tensor(self, value: Any, path: str) -> Node:
        """A parameter, a running state, or a constant tensor, which is saved here."""
        param: Any = value if isinstance(value, Param) else None
        if isinstance(value, Reparameterized):
            self.refused[path] = "it is computed from others: fold them in first"
            return Node(path, "", "")
        held: Any = param.val() if param is not None else value
        data = held.to_data()
        if isinstance(data.dtype, QFloat):
            self.refused[path] = "its weights are quantized: dequantize them first"
            return Node(path, "", "")
        rank, kind = len(data.shape), held.kind.__name__
        made, shape = self.dialect.made(rank, kind), list(data.shape)
        self.use("module", "RunningState" if _running(value) else "Param")
        if _running(value):
            text = f"RunningState::new({made}::zeros({shape}, device))"
            kind_text = f"RunningState<{self.dialect.tensor(rank, kind)}>"
        else:
            kind_text = f"Param<{self.dialect.tensor(rank, kind)}>"
            text = self._initial(param, data, made, kind)
        if param is not None:
            record = to_record(param)
        else:
            record = ParamRecord(ParamId.new().serialize(), data)
        return Node(path, kind_text, text, record=record, module=value)

    def _initial(self, param: Param | None, data: Any, made: str, kind: str) -> str:
        """What a parameter is before a record fills it."""
        shape, values = list(data.shape), np.asarray(data.array)
        if param is None or kind != "Float":
            self.use("module", "ParamId")
            zeros = f"{made}::zeros({shape}, device)"
            if kind == "Bool":
                ints = self.dialect.made(len(shape), "Int")
                zeros = f"{ints}::zeros({shape}, device).bool()"
            return f"Param::initialized(ParamId::new(), {zeros})"
        self.use("nn", "Initializer")
        first = float(values.flat[0]) if values.size else 0.0
        if values.size == 0 or (values == first).all():
            rule = {0.0: "Zeros", 1.0: "Ones"}.get(first)
            rule = rule or f"Constant {{ value: {number(float(f'{first:.7g}'))} }}"
        else:
            mean, std = (float(f"{x:.2g}") for x in (values.mean(), values.std()))
            rule = f"Normal {{ mean: {number(mean)}, std: {number(std)} }}"
        return f"Initializer::{rule}.init({shape}, device)"

    def _several(self, value: Any, path: str, name: str) -> Node:
        """A list or tuple of parts: a Vec of one type, or a tuple of several."""
        found = [
            self._node(part, f"{path}.{i}", f"{name.rstrip('_')}_{i}")
            for i, part in enumerate(value)
        ]
        nodes = [node for node in found if node is not None]
        if len(nodes) != len(found):
            self.refused[path] = "a list of modules and other things"
            return Node(path, "", "")
        rust = field_name(name)
        kinds = {node.kind for node in nodes}
        record: Any = [node.record for node in nodes]
        if len(kinds) == 1:
            kind = f"Vec<{kinds.pop()}>"
            access = "[{}]"
            if all(len(node.configs) == 1 for node in nodes):
                defaults = ", ".join(node.configs[0].default for node in nodes)
                first = nodes[0].configs[0]
                config = Config(
                    rust, f"Vec<{first.kind}>", f"vec![{defaults}]", first.debug
                )
                each = nodes[0].init.replace(f"self.{first.name}", "config", 1)
                init = f"self.{rust}.iter().map(|config| {each}).collect()"
                configs = [config]
            else:
                init = f"vec![{', '.join(node.init for node in nodes)}]"
                configs = [c for node in nodes for c in node.configs]
        elif len(nodes) <= LONGEST_TUPLE:
            kind = f"({', '.join(node.kind for node in nodes)})"
            access = ".{}"
            init = f"({', '.join(node.init for node in nodes)})"
            configs = [config for node in nodes for config in node.configs]
            record = tuple(record)
        else:
            return self._struct(
                {f"{i}": part for i, part in enumerate(value)},
                path,
                type_name(name),
                name,
            )
        node = Node(path, kind, init, configs, record, module=value)
        for i, part in enumerate(nodes):
            node.parts[str(i)] = (access.format(i), part)
        return node

    # Structs

    def _struct(self, module: Any, path: str, name: str, at: str) -> Node:
        """A struct of one's own. at: the name of the field that holds it."""
        node = Node(path, "", "", module=module)
        parts = list(children(module))
        if isinstance(module, dict):
            parts = list(module.items())
        fields: list[tuple[str, Node]] = []
        for key, value in parts:
            place = f"{path}.{key}" if path else str(key)
            rust = field_name(str(key), [known for known, _ in fields])
            part = self._node(value, place, rust)
            if part is None:
                continue
            fields.append((rust, part))
            node.parts[str(key)] = (f".{rust}", part)
        functions = self._functions(node, fields)
        configs = [config for _, part in fields for config in part.configs]
        struct = self._known(name, type(module), fields, functions, configs)
        node.struct = struct
        generic = struct.generic and not self.dialect.new
        node.kind = f"{struct.name}{self.dialect.backend if generic else ''}"
        rust = field_name(at)
        node.init = f"self.{rust}.init({'device' if struct.needs_device else ''})"
        usual = {config.name: config.default for config in struct.configs}
        changed = "".join(
            f".with_{config.name}({config.default})"
            for config in configs
            if config.default != usual[config.name]
        )
        default = f"{struct.name}Config::new(){changed}"
        node.configs = [Config(rust, f"{struct.name}Config", default, struct.debug)]
        node.record = {rust_name: part.record for rust_name, part in fields}
        if not (generic or self.dialect.new):
            node.record = None  # nothing in it is on a backend: a constant
        return node

    def _known(
        self,
        name: str,
        cls: type,
        fields: list[tuple[str, Node]],
        functions: list[Function],
        configs: list[Config],
    ) -> Struct:
        """A struct that holds and does the same, or a new one."""
        kinds = [(rust, part.kind) for rust, part in fields]
        names = [(config.name, config.kind) for config in configs]
        keys = {function.key for function in functions}
        for struct in self.structs:
            same = [(rust, part.kind) for rust, part in struct.fields] == kinds
            same &= [(c.name, c.kind) for c in struct.configs] == names
            if same and struct.about == cls.__qualname__:
                theirs = {function.key for function in struct.functions}
                if keys <= theirs or theirs <= keys:
                    _blur(struct.functions, functions)
                    if theirs < keys:
                        struct.functions = functions
                    return struct
        known = [one.name + end for one in self.structs for end in DERIVED_ENDS]
        taken = TAKEN.union(known)
        wanted, count = name, 1
        while any(wanted + end in taken for end in DERIVED_ENDS):
            count += 1
            wanted = f"{name}{count}"
        struct = Struct(wanted, cls.__qualname__, fields, functions, configs)
        struct.doc = _first_line(cls)
        self.structs.append(struct)
        return struct

    def _functions(self, node: Node, fields: list[tuple[str, Node]]) -> list[Function]:
        """The methods of a module that ran, each text once."""
        made: list[Function] = []
        names: dict[str, str] = {}
        for call in reversed(self.calls.get(node.path, ())):
            places = _Here(self, node, fields)
            function = Function(call, places)
            plain = identifier(call.method)
            try:
                function.write(plain)
            except Reported:
                continue
            except Untranslatable as reason:
                at = node.path or type(call.layer).__name__
                self.refused.setdefault(f"{at}.{call.method}", str(reason))
                continue
            same = [one for one in made if one.key[1:] == function.key[1:]]
            same = [
                one
                for one in same
                if one.signature.partition("(")[2]
                == function.signature.partition("(")[2]
                and one.call.method == call.method
            ]
            if same:
                self.methods[id(call)] = names[same[0].signature]
                continue
            count = sum(one.call.method == call.method for one in made)
            name = plain if not count else f"{plain}_{count + 1}"
            function.signature = name + function.signature[len(plain) :]
            names[function.signature] = name
            self.methods[id(call)] = name
            made.append(function)
        return made[::-1]


CHOICES = {
    "ActivationConfig": "nn::activation",
    "Initializer": "nn",
    "InterpolateMode": "nn::interpolate",
    "LinearLayout": "nn",
    "PaddingConfig1d": "nn",
    "PaddingConfig2d": "nn",
    "PaddingConfig3d": "nn",
}
#: What the derives of Burn make beside a struct: its name with each of these endings.
DERIVED_ENDS = ("", "Config", "Record", "RecordItem")
#: What the text imports or names, besides layers: of Burn, of its derives, of Rust.
NAMED = """
ActivationConfig AutodiffModule AvgPoolOptions Backend Bool Config ConvOptions
ConvTransposeOptions Device Distribution ElementConversion Float FullPrecisionSettings
HalfPrecisionSettings IndexingUpdateOp Int LstmState Mapper MaxPoolOptions MhaInput
Module ModuleRecord NamedMpkFileRecorder Param ParamId Path PathBuf Record RecordError
Recorder RecorderError Reduction RnnState RunningState Tensor TransformerDecoderInput
TransformerEncoderInput Visitor
AsMut AsRef Box Clone Copy Debug Default Display DoubleEndedIterator Drop Eq Err
ExactSizeIterator Extend Fn FnMut FnOnce From FromIterator Hash Into IntoIterator
Iterator None Ok Option Ord PartialEq PartialOrd Result Self Send Sized Some String Sync
ToOwned ToString TryFrom TryInto Unpin Vec
"""
#: Names that a struct cannot have; a letter is a type parameter in the derives.
TAKEN = {
    *BOTH, *NEW, *[f"{name}Config" for name in (*BOTH, *NEW)], *CHOICES,
    *NAMED.split(), *string.ascii_uppercase,
}  # fmt: skip


class _Here:
    """Where the methods of one module find parameters, constants and parts."""

    def __init__(
        self, modules: Modules, node: Node, fields: list[tuple[str, Node]]
    ) -> None:
        self.modules, self.node, self.fields = modules, node, fields
        self.dialect = modules.dialect

    def of_value(self, value: Value, function: Function) -> str:
        """A parameter by its path below this module; a constant as it is."""
        if value.kind in ("parameter", "buffer"):
            path = value.name
            prefix = f"{self.node.path}." if self.node.path else ""
            if not path.startswith(prefix):
                raise Untranslatable(f"{path}, which is not a part of this module")
            return self._access(path[len(prefix) :], path)
        if value.kind == "constant":
            return self._constant(value, function)
        raise Untranslatable("a tensor that is not among its arguments")

    def _access(self, rest: str, path: str) -> str:
        node, text = self.node, "self"
        steps = rest.split(".")
        while steps and steps[0] in node.parts:
            access, node = node.parts[steps.pop(0)]
            text += access
        if steps and node.layer is not None:  # inside a layer of Burn
            text += "".join(f"[{s}]" if s.isdigit() else f".{s}" for s in steps)
            node = Node(path, "", "")
        elif steps:
            raise Untranslatable(f"{path}, which has no place here")
        state = node.kind.startswith("RunningState") or "running_" in text
        return f"{text}.{'value' if state else 'val'}()"

    def _constant(self, value: Value, function: Function) -> str:
        """A constant tensor: filled, written out, or a field of its own."""
        array = self.modules.program.array(value)
        rank, kind = array.ndim, kind_of(value)
        made = self.dialect.made(rank, kind)
        shape = list(array.shape)
        if kind != "Bool" and array.size and (array == array.flat[0]).all():
            fill = number(array.flat[0].item())
            return f"{made}::full({shape}, {fill}, {function.device()})"
        if array.size <= SHORT:
            return f"{made}::from_data({_nested(array)}, {function.device()})"
        for known, part in self.fields:
            if part.module is value:
                return f"self.{known}.val()"
        taken, count = {known for known, _ in self.fields}, 1
        while f"constant{count}" in taken:
            count += 1
        name = f"constant{count}"
        tensor = Tensor.from_numpy(array)
        part = self.modules.tensor(tensor, f"{self.node.path}.{name}".lstrip("."))
        part.module = value
        self.fields.append((name, part))
        return f"self.{name}.val()"

    def call(self, call: Call, function: Function) -> Made:
        """A call of a part: of a layer of Burn, or of a struct."""
        text, node = self._part(call)
        if node.layer is None:
            return self._own(call, function, text)
        try:
            return layer_call(call, text, function, self.modules.use)
        except Untranslatable as reason:
            self.modules.refused.setdefault(call.path, str(reason))
            raise Reported from None

    def uses(self, call: Call) -> list[Value]:
        """The tensors that such a call reads, as often as it names them."""
        _, node = self._part(call)
        return layer_uses(call) if node.layer is not None else list(_given(call))

    def _part(self, call: Call) -> tuple[str, Node]:
        """How the part that is called is reached from here."""
        prefix = f"{self.node.path}." if self.node.path else ""
        if call.path == self.node.path:
            return "self", self.node
        if not call.path.startswith(prefix):
            raise Untranslatable(f"{call.path} runs here and is no part of this module")
        node, text = self.node, "self"
        for step in call.path[len(prefix) :].split("."):
            if step not in node.parts:
                raise Untranslatable(f"{call.path} has no place in the struct")
            access, node = node.parts[step]
            text += access
        return text, node

    def _own(self, call: Call, function: Function, text: str) -> Made:
        name = self.modules.methods.get(id(call))
        if name is None:
            if call.path == self.node.path:
                raise Untranslatable(f"{call.method}, which calls itself")
            raise Reported(f"{call.path}.{call.method}")
        args = ", ".join(function.expression(value) for value in _given(call))
        results = TREE.collect(call.made, Value, [])
        if len(results) == 1:
            return Made(f"{text}.{name}({args})", {results[0]: ""})
        places = {value: f".{i}" for i, value in enumerate(results)}
        return Made(f"{text}.{name}({args})", places, pattern=True)


def _given(call: Call) -> list[Value]:
    """What a method of a struct is given, once for each of its arguments."""
    given = TREE.collect(call.given, Value, [])
    within = TREE.collect(call.inside, Value, [])
    by_inside = dict(zip(within, given, strict=True))
    return [by_inside[value] for _, value in arguments_of(call.inside)]


def _blur(first: list[Function], second: list[Function]) -> None:
    """Leave out the shapes in which two instances of one struct differ."""
    for one in first:
        for other in second:
            if one.key == other.key:
                rows = zip(one.lines, other.lines, strict=True)
                one.lines = [(c, s if s == t else "") for (c, s), (_, t) in rows]
                other.lines = one.lines
                if one.tail_shape != other.tail_shape:
                    one.tail_shape = other.tail_shape = ""


def _nested(array: NDArray[Any]) -> str:
    return literal(array.tolist()) if array.ndim else number(array.item())


def _holds(value: Any) -> bool:
    """Whether something in it needs a field."""
    if isinstance(value, (list, tuple)):
        return any(map(_holds, value))
    if isinstance(value, dict):
        return any(map(_holds, value.values()))
    return isinstance(value, (Param, Tensor, Tree))


def _running(value: Any) -> bool:
    return isinstance(value, RunningState)


def _first_line(cls: type) -> str:
    text = (cls.__doc__ or "").strip().splitlines()
    general = cls.__module__ in ("builtins", "burnbook.nn.sequential")
    return text[0] if text and not general else ""


def refuse(refused: dict[str, str], dialect: Dialect, name: str) -> None:
    """Raise one error that lists by name all that Burn cannot say."""
    if not refused:
        return
    rows = [(name, line) for name, why in refused.items() for line in why.split("\n")]
    count = len(rows)
    what = f"Burn {dialect.version} has no word for {count} part{'s' * (count > 1)}"
    cure = "a layer or operation that Burn has"
    if not dialect.new:
        cure += ', or version="0.22" where the newest has it'
    raise RecordError(f"export_rust {name}", what, rows, cure)
