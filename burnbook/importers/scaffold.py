"""A module for a record: the classes, configs and sizes that its names and shapes tell.

    print(scaffold("model.mpk"))

The layers are inferred: a weight of two dims with a bias is a Linear, query, key, value
and output are attention, gates are an Lstm or Gru, parts called 0, 1, … are a list. A
record has no settings: where the same numbers fit several layers or settings, a comment
says so. What runs when, `forward`, is not in a record at all.
"""

from __future__ import annotations

import ast
import keyword
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burnbook.core.errors import ArgumentError, RecordError
from burnbook.core.files import PathLike, printable
from burnbook.core.source_code import python_source
from burnbook.module import Module
from burnbook.module.param import ParamRecord
from burnbook.module.tree import spelled
from burnbook.record.binary import SealedRecord
from burnbook.record.inspection import recorder_for
from burnbook.record.tree import short
from burnbook.tensor.data import TensorData
from burnbook.tensor.qfloat import QFloat

WIDTH = 88
LONGEST = 200  # letters of a name
HINTS = {  # what a part without numbers is likely to be, by its name
    "dropout": "nn.Dropout",
    "leaky": "nn.LeakyRelu",
    "relu": "nn.Relu",
    "gelu": "nn.Gelu",
    "tanh": "nn.Tanh",
    "sigmoid": "nn.Sigmoid",
    "activation": "nn.Relu or another activation",
    "adaptive": "nn.AdaptiveAvgPool2d",
    "avg_pool": "nn.AvgPool2d",
    "max_pool": "nn.MaxPool2d",
    "pool": "nn.MaxPool2d or another pool",
    "loss": "a loss",
    "positional": "nn.PositionalEncoding",
    "rotary": "nn.RotaryEncoding",
}
WITHOUT_NUMBERS = (
    "The record names these, and holds no numbers for them: layers that have none, "
    "numbers, or parts that are None."
)
NOT_STORED = {"_b", "phantom"}


@dataclass
class Found:
    """A part of a module: its type, its config, and what the record leaves open.

    init: what makes it, with `{}` for its config; of an own class, `own` is that.
    """

    annotation: str
    config: str = ""
    init: str = "{}.init(device)"
    open: str = ""
    many: tuple[Found, ...] = ()
    own: Class | None = None

    @property
    def config_type(self) -> str:
        """The type of the config, or ""."""
        if self.many:
            parts = [part.config_type for part in self.many]
            if not all(parts):
                return ""
            same = len(set(parts)) == 1
            inner = f"{parts[0]}, ..." if same else ", ".join(parts)
            return f"tuple[{inner}]"
        return self.config.partition("(")[0]


@dataclass
class Class:
    """A class of one's own, with the parts that it has."""

    name: str
    parts: dict[str, Found]
    constants: list[str] = field(default_factory=list)
    theirs: dict[str, str] = field(default_factory=dict)  # names no field can have

    @property
    def signature(self) -> tuple[tuple[str, str], ...]:
        """Equal for instances of one class."""
        rows = [(name, part.annotation) for name, part in self.parts.items()]
        return (*rows, *[(name, "") for name in self.constants])


def scaffold(path: PathLike, name: str = "Model") -> str:
    """Python source of a module that a record fits: classes, configs, and `load`.

    path: a record with names: .mpk, .json, both also with .gz, .bpk, or safetensors.
    name: of the outermost class.

    Raises:
        RecordError: the file cannot be read, its format has no names (.bin), or there
            are no parameters in it.
        ArgumentError: no class can have this name.

    Example:
        >>> import tempfile
        >>> from burnbook.backend import Numpy
        >>> from burnbook.nn import LinearConfig
        >>> from burnbook.record import CompactRecorder
        >>> folder = tempfile.TemporaryDirectory()
        >>> class Net(Module):
        ...     fc: Module
        >>> net = Net(LinearConfig(3, 2).init(Numpy()))
        >>> path = net.save_file(folder.name + "/net", CompactRecorder())
        >>> "fc: nn.LinearConfig = nn.LinearConfig(3, 2)" in scaffold(path)
        True
        >>> folder.cleanup()
    """
    where = f"scaffold {printable(path)}"
    _refuse_name(name, where)
    recorder = recorder_for(Path(path), where)
    read = recorder.read(path)
    item = read.item
    if isinstance(item, SealedRecord):
        what = "this format has no names, so nothing tells which layer a number is of"
        raise RecordError(where, what, cure="the same record as .mpk or .bpk")
    if not isinstance(item, dict) or _is_tensor(item) or not any(_tensors(item)):
        what = "there are no parameters with names in it"
        raise RecordError(where, what, cure="the record of a module")
    if all("V1" in part for part in item.values() if isinstance(part, dict)) and any(
        isinstance(part, dict) for part in item.values()
    ):
        what = "this is the record of an optimizer, whose names are ids"
        raise RecordError(where, what, cure="the record of the model beside it")
    flat = recorder.extension in ("bpk", "safetensors")
    made = Scaffold(name, flat, read.metadata.release)
    return made.source(item, Path(path).name, recorder)


def _refuse_name(name: str, where: str) -> None:
    """Raise for what cannot be the name of the outermost class."""
    if not name.isidentifier() or keyword.iskeyword(name):
        what = f"{name!r} is no name of a class in Python"
        cure = "letters, digits and underscores, not beginning with a digit"
        cure = "another word" if keyword.iskeyword(name) else cure
        raise ArgumentError(where, what, cure=cure)
    if name in HIDING or name in IN_LOAD or name.endswith("Recorder"):
        what = f"the source needs the name {name!r} for something else"
        raise ArgumentError(where, what, cure="another name")


class Scaffold:
    """The classes of one record, as they are found."""

    def __init__(self, name: str, flat: bool, release: tuple[int, ...] = ()):
        self.name, self.flat, self.release = name, flat, release
        self.classes: list[Class] = []

    def source(self, item: dict[str, Any], file: str, recorder: Any) -> str:
        """The text of the whole file."""
        self.own(item, self.name)
        root = self.classes[-1]
        kind = type(recorder).__name__
        settings = "" if self.flat else "FullPrecisionSettings"
        text = "\n\n\n".join("\n".join(self._class(one)) for one in self.classes)
        load = [
            f"def load(path: str, device: Backend) -> {root.name}:",
            '    """The module with the numbers of the record."""',
            f"    module = {root.name}Config().init(device)",
            f"    return module.load_file(path, {kind}({settings}))",
        ]
        used = list(_imports("\n".join([text, *load]), kind))
        head = [
            f'"""A module for the record {_in_docstring(file)}.',
            "",
            "Layers and sizes are those that its names and shapes tell; a comment says",
            "what they leave open. `forward` is for you to write.",
            '"""',
            "",
            *used,
        ]
        whole = "\n".join([*head, "", "", text, "", "", *load]) + "\n"
        return python_source(whole, "scaffold")

    # What a part is

    def part(self, node: Any, name: str) -> Found | None:
        """What stands in a field; None where the record has nothing there."""
        if _is_tensor(node):
            return _parameter(node)
        if isinstance(node, dict):
            return self._of_dict(node, name)
        if isinstance(node, (list, tuple)):
            return self._several(list(node), name)
        return None

    def _of_dict(self, node: dict[str, Any], name: str) -> Found | None:
        if not any(_tensors(node)):
            return _without_numbers(node)
        layer = self._layer(node)
        if layer is not None:
            return layer
        if all(key.isdecimal() for key in node):
            count = 1 + max(map(int, node))
            if count <= 4 * len(node):
                return self._several([node.get(str(i)) for i in range(count)], name)
        if len(node) == 1:
            ((variant, held),) = node.items()
            is_name = variant[:1].isupper() and variant.isidentifier()
            if is_name and isinstance(held, dict):
                return self._variant(variant, held)
        known = self.own(node, _type_name(name))
        config = _config_of(known[0], known[1])
        return Found(known[0].name, config, own=known[1])

    def _variant(self, name: str, node: dict[str, Any]) -> Found:
        """One variant of an enum: the record knows no other."""
        inner = self.part(node, name)
        assert inner is not None
        other = "OtherVariant"
        if all(one.name != other for one in self.classes):
            self.classes.insert(0, Class(other, {}))
        return Found(
            f'Annotated[{inner.annotation}, "{name}"] | {other}',
            inner.config,
            inner.init,
            inner.open or f"an enum, of which the record holds {name}",
            own=inner.own,
        )

    def _several(self, nodes: list[Any], name: str) -> Found | None:
        single = name[:-1] if name.endswith("s") and len(name) > 2 else name
        parts = [self.part(node, single) for node in nodes]
        if not any(parts):
            return None
        found = [
            part or Found("nn.Identity", "", "nn.Identity()", "a part without numbers")
            for part in parts
        ]
        kinds = [part.annotation for part in found]
        if len(set(kinds)) == 1:
            annotation = f"list[{kinds[0]}]"
        else:
            annotation = f"tuple[{', '.join(kinds)}]"
        notes = dict.fromkeys(part.open for part in found if part.open)
        return Found(annotation, "", "", "; ".join(notes), tuple(found))

    def _layer(self, node: dict[str, Any]) -> Found | None:
        """The layer of burnbook.nn that has these parts."""
        held = {k for k, v in node.items() if v is not None and any(_tensors(v))}
        for needed, optional, rule in RULES:
            if needed <= held <= needed | optional:
                found = rule(self, node)
                if found is not None:
                    return found
        return None

    def own(self, node: dict[str, Any], name: str) -> tuple[Class, Class]:
        """A class with these parts: the one that is written, and this instance."""
        made = Class(name, {})
        for key, value in node.items():
            if key in NOT_STORED:
                continue
            part = self.part(value, key)
            if part is None:
                made.constants.append(key)
            else:
                field_name = _field_name(key, made.parts)
                made.parts[field_name] = part
                if spelled(field_name) != spelled(key):
                    made.theirs[field_name] = key
        for known in self.classes:
            if known.parts and known.signature == made.signature:
                return known, made
        taken, count = {one.name for one in self.classes}, 1
        if name != self.name:
            taken.add(self.name)
        taken |= {f"{one}Config" for one in taken}
        while (
            made.name in taken
            or f"{made.name}Config" in taken
            or made.name in RESERVED
            or keyword.iskeyword(made.name)
        ):
            count += 1
            made.name = f"{name}{count}"
        self.classes.append(made)
        return made, made

    # Text

    def _class(self, one: Class) -> Iterator[str]:
        yield f"class {one.name}(Module):"
        if not one.parts:
            if one.name == "OtherVariant":
                yield '    """Stands for the variants that the record does not hold."""'
            else:
                yield '    """A part without numbers."""'
            return
        yield f'    """{_about(one)}"""'
        yield ""
        for name, part in one.parts.items():
            yield from _comment(part.open, 1)
            if name in one.theirs:
                yield from _comment(f"in the record: {short(one.theirs[name])!r}", 1)
            yield f"    {name}: {part.annotation}"
        if one.constants:
            yield from _comment(WITHOUT_NUMBERS, 1)
        for name in one.constants:
            hint = next((v for k, v in HINTS.items() if k in name.lower()), None)
            yield f"    # {short(name)}" + (f": perhaps {hint}" if hint else "")
        yield ""
        yield ""
        yield f"class {one.name}Config(Config):"
        yield f'    """The sizes of {one.name}."""'
        yield ""
        configs = {n: p for n, p in one.parts.items() if p.config_type}
        for name, part in configs.items():
            yield from _wrapped(f"{name}: {part.config_type} = ", _config(part))
        if configs:
            yield ""
        yield f'    def init(self, device: Backend) -> "{one.name}":'
        yield '        """The module on a device, with initial numbers."""'
        yield f"        return {one.name}("
        for name, part in one.parts.items():
            yield from _wrapped_call(_init(part, f"self.{name}"))
        yield "        )"


def _about(one: Class) -> str:
    count = len(one.parts)
    return f"What the record holds: {count} part{'s' * (count > 1)}."


def _comment(text: str, depth: int) -> Iterator[str]:
    if not text:
        return
    space = "    " * depth + "# "
    row = space
    for word in text.split():
        if len(row) + len(word) > WIDTH and row != space:
            yield row.rstrip()
            row = space
        row += word + " "
    yield row.rstrip()


def _wrapped(start: str, value: str) -> Iterator[str]:
    """A field with its default, over several lines where it is long."""
    if len(start) + len(value) + 4 <= WIDTH or not value.startswith("("):
        yield f"    {start}{value}"
        return
    yield f"    {start}("
    for part in _split(value[1:-1].rstrip(",")):
        yield f"        {part},"
    yield "    )"


def _wrapped_call(text: str) -> Iterator[str]:
    """An argument, over several lines where it is a long list, tuple or loop."""
    if len(text) + 13 <= WIDTH or text[0] not in "[(":
        yield f"            {text},"
        return
    yield f"            {text[0]}"
    if isinstance(ast.parse(text, mode="eval").body, ast.ListComp):
        made, _, rest = text[1:-1].partition(" for ")
        yield from (f"                {part}" for part in (made, f"for {rest}"))
    else:
        yield from (f"                {part}," for part in _split(text[1:-1]))
    yield f"            {text[-1]},"


def _split(text: str) -> Iterator[str]:
    """What stands between the outer commas."""
    depth, begin = 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            yield text[begin:place].strip()
            begin = place + 1
    if text[begin:].strip():
        yield text[begin:].strip()


def _config(part: Found) -> str:
    """The expression of a config, or of a tuple of configs."""
    if not part.many:
        return part.config
    inner = ", ".join(map(_config, part.many))
    return f"({inner},)" if len(part.many) == 1 else f"({inner})"


def _init(part: Found, place: str) -> str:
    """What makes a part of a config that stands in a place."""
    if not part.many:
        return part.init.format(place)
    same = part.annotation.startswith("list[")
    plain = all(not one.many for one in part.many)
    if same and plain and part.config_type and part.many[0].init == "{}.init(device)":
        return f"[config.init(device) for config in {place}]"
    if part.config_type:
        inner = [_init(one, f"{place}[{i}]") for i, one in enumerate(part.many)]
    else:
        inner = [_init(one, _config(one)) for one in part.many]
    text = ", ".join(inner)
    if same:
        return f"[{text}]"
    return f"({text},)" if len(inner) == 1 else f"({text})"


def _config_of(known: Class, made: Class) -> str:
    """The config of an instance: where it differs from the first of its class."""
    rows: list[str] = []
    for name, part in made.parts.items():
        usual = known.parts[name]
        if part.config_type and _config(part) != _config(usual):
            rows.append(f"{name}={_config(part)}")
    return f"{known.name}Config({', '.join(rows)})"


def _imports(text: str, recorder: str) -> Iterator[str]:
    """The imports that a text needs, in order."""
    if "Annotated[" in text:
        yield "from typing import Annotated"
        yield ""
    offered = {
        "burnbook": ["nn"],
        "burnbook.backend": ["Backend"],
        "burnbook.config": ["Config"],
        "burnbook.module": ["Module", "Param"],
        "burnbook.record": sorted(["FullPrecisionSettings", recorder]),
        "burnbook.tensor": ["Tensor"],
    }
    for module, names in offered.items():
        kept = [name for name in names if re.search(rf"\b{name}\b", text)]
        if kept:
            yield f"from {module} import {', '.join(kept)}"


RESERVED = {"Module", "Param", "Tensor", "Config", "Backend", "Annotated"}
HIDING = {
    *RESERVED,
    "nn",
    "tuple",
    "list",
    "device",
    "init",
    "self",
}  # a class needs these names
IN_LOAD = {"load", "str", "FullPrecisionSettings", "OtherVariant"}


def _in_docstring(name: str) -> str:
    """A name that ends no text and escapes nothing."""
    return re.sub(r'["\\]', "_", printable(name))


def _word(name: str) -> str:
    """The letters, digits and underscores of a name, as Python reads them."""
    plain = unicodedata.normalize("NFKC", name[:LONGEST])
    return "".join(c if f"a{c}".isidentifier() else "_" for c in plain)


def _field_name(name: str, taken: Collection[str] = ()) -> str:
    """A field for a part of a record, which none of those before it has."""
    made = _word(name)
    is_plain = made[:1].isidentifier() and made[:2] != "__"
    made = made if is_plain else f"part_{made}" if made else "part"
    is_used = keyword.iskeyword(made) or hasattr(Module, made) or made in HIDING
    made = word = f"{made}_" if is_used else made
    count = 1
    while made in taken:
        count += 1
        made = f"{word.rstrip('_')}_{count}"
    return made


def _type_name(name: str) -> str:
    parts = _word(name).split("_")
    made = "".join(part[:1].upper() + part[1:] for part in parts)
    return made if made[:1].isidentifier() else f"Part{made}"


# Tensors of a record


def _is_tensor(node: Any) -> bool:
    return isinstance(node, (ParamRecord, TensorData))


def _data(node: Any) -> Any:
    return node.param if isinstance(node, ParamRecord) else node


def _tensors(node: Any) -> Iterator[Any]:
    """Every tensor of a part of a record."""
    if _is_tensor(node):
        yield node
    elif isinstance(node, dict):
        for part in node.values():
            yield from _tensors(part)
    elif isinstance(node, (list, tuple)):
        for part in node:
            yield from _tensors(part)


def _shape(node: Any) -> tuple[int, ...]:
    return tuple(_data(node).shape) if _is_tensor(node) else ()


def _parameter(node: Any) -> Found:
    """A parameter of an own class."""
    data = _data(node)
    shape, kind = list(data.shape), data.kind.__name__
    zeros = {"Int": ".int()", "Bool": ".bool()"}.get(kind)
    if isinstance(data.dtype, QFloat):
        zeros = ""
    if zeros is None:
        return Found("Param", init=f"nn.Initializer.Zeros.init({shape}, device)")
    text = f"Param.from_tensor(Tensor.zeros({shape}, device){zeros})"
    return Found("Param", init=text)


def _without_numbers(node: dict[str, Any]) -> Found | None:
    """The losses and tables that a record names but holds nothing of."""
    return None


# Layers

Rule = Callable[[Scaffold, dict[str, Any]], Found | None]


def _absent(*names: str) -> str:
    """What a comment says of settings that no record has."""
    *first, last = names
    are = "are" if first else "is"
    return f"{', '.join(first)}{' and ' * bool(first)}{last} {are} not in the record"


CONV = _absent("stride", "dilation", "groups", "padding")
LSTM = _absent("batch_first", "reverse", "clip", "the activations")
BI_LSTM = _absent("batch_first", "clip", "the activations")


def _bias(node: dict[str, Any]) -> str:
    return "" if _is_tensor(node.get("bias")) else ", bias=False"


def _weight(made: Scaffold, node: dict[str, Any]) -> Found | None:
    """A Linear, an Embedding or a convolution, by the dims of the weight."""
    shape = _shape(node["weight"])
    rank = len(shape)
    keys = set(node)
    bias = _bias(node)
    if rank == 2:
        named = "bias" in keys
        if named or (made.flat and not keys - {"weight"} and bias == ""):
            if named and bias == "" and _shape(node["bias"]) != (shape[1],):
                return None
            config = f"nn.LinearConfig({shape[0]}, {shape[1]}{bias})"
            return Found("nn.Linear", config)
        note = "or a Linear without bias: the names are the same" if made.flat else ""
        return Found(
            "nn.Embedding", f"nn.EmbeddingConfig({shape[0]}, {shape[1]})", open=note
        )
    if rank not in (3, 4, 5):
        return None
    sizes = f"{shape[2]}" if rank == 3 else str(list(shape[2:]))
    dims = rank - 2
    if "padding_out" in keys or "channels" in keys:
        return _transposed(node, shape, sizes)
    if "weight_groups" in keys:
        config = f"nn.DeformConv2dConfig([{shape[1]}, {shape[0]}], {sizes}{bias})"
        return Found("nn.DeformConv2d", config, open=CONV)
    note = CONV
    if bias == "" and made.flat and _shape(node["bias"]) != (shape[0],):
        return _transposed(node, shape, sizes)
    if made.flat and shape[0] == shape[1]:
        note += f"; it could be a ConvTranspose{dims}d as well"
    channels = f"{shape[1]}, {shape[0]}"
    channels = channels if rank == 3 else f"[{channels}]"
    config = f"nn.Conv{dims}dConfig({channels}, {sizes}{bias})"
    return Found(f"nn.Conv{dims}d", config, open=note)


def _transposed(node: dict[str, Any], shape: tuple[int, ...], sizes: str) -> Found:
    """A transposed convolution; its bias tells how many groups there are."""
    dims, out, groups = len(shape) - 2, shape[1], ""
    if _is_tensor(node.get("bias")) and _shape(node["bias"])[0] % out == 0:
        count = _shape(node["bias"])[0] // out
        groups = f", groups={count}" if count > 1 else ""
        out *= count
    first = f"nn.ConvTranspose{dims}dConfig([{shape[0]}, {out}], {sizes}"
    return Found(
        f"nn.ConvTranspose{dims}d", f"{first}{groups}{_bias(node)})", open=CONV
    )


def _batch_norm(made: Scaffold, node: dict[str, Any]) -> Found:
    config = f"nn.BatchNormConfig({_shape(node['gamma'])[0]})"
    return Found("nn.BatchNorm", config, open=_absent("epsilon", "momentum"))


def _norm(made: Scaffold, node: dict[str, Any]) -> Found | None:
    """LayerNorm, GroupNorm, InstanceNorm or RmsNorm."""
    if len(_shape(node["gamma"])) != 1:
        return None
    size, keys = _shape(node["gamma"])[0], set(node)
    if "num_groups" in keys:
        note = _absent("the number of groups", "epsilon", "epsilon_inside")
        return Found("nn.GroupNorm", f"nn.GroupNormConfig(1, {size})", open=note)
    if "num_channels" in keys:
        note = _absent("epsilon", "epsilon_inside")
        return Found("nn.InstanceNorm", f"nn.InstanceNormConfig({size})", open=note)
    note, alike = _absent("epsilon"), "the names are the same; " if made.flat else ""
    if not _is_tensor(node.get("beta")):
        if "beta" in keys:
            config = f"nn.LayerNormConfig({size}, bias=False)"
            return Found("nn.LayerNorm", config, open=note)
        other = alike and f"or a LayerNorm without bias: {alike}"
        return Found("nn.RmsNorm", f"nn.RmsNormConfig({size})", open=other + note)
    other = alike and f"or a GroupNorm or InstanceNorm: {alike}"
    return Found("nn.LayerNorm", f"nn.LayerNormConfig({size})", open=other + note)


def _prelu(made: Scaffold, node: dict[str, Any]) -> Found | None:
    shape = _shape(node["alpha"])
    if len(shape) != 1 or not (made.flat or "alpha_value" in node):
        return None
    return Found("nn.PRelu", f"nn.PReluConfig(num_parameters={shape[0]})")


def _gate_of(node: Any) -> tuple[int, int, bool] | None:
    """The sizes of a GateController, and whether it has biases."""
    if not isinstance(node, dict) or "input_transform" not in node:
        return None
    inside = node["input_transform"]
    if not isinstance(inside, dict) or len(_shape(inside.get("weight"))) != 2:
        return None
    d_input, d_hidden = _shape(inside["weight"])
    return d_input, d_hidden, _is_tensor(inside.get("bias"))


def _gate(made: Scaffold, node: dict[str, Any]) -> Found | None:
    sizes = _gate_of(node)
    if sizes is None:
        return None
    drawn = "nn.Initializer.XavierNormal(1.0)"
    init = f"nn.GateController.new({', '.join(map(str, sizes))}, {drawn}, device)"
    return Found("nn.GateController", init=init)


def _lstm_config(name: str, node: dict[str, Any]) -> str | None:
    sizes = _gate_of(node["input_gate"])
    if sizes is None:
        return None
    forget = node.get("forget_gate")
    coupled = "" if forget and any(_tensors(forget)) else ", input_forget=True"
    return f"nn.{name}Config({', '.join(map(str, sizes))}{coupled})"


def _lstm(made: Scaffold, node: dict[str, Any]) -> Found | None:
    config = _lstm_config("Lstm", node)
    return None if config is None else Found("nn.Lstm", config, open=LSTM)


def _gru_config(
    made: Scaffold, name: str, node: dict[str, Any], others: str
) -> tuple[str, str] | None:
    """The config of a Gru, and what the record leaves open of it.

    Why: before Burn 0.17 there is no reset_after, and a Gru computes as with False; a
    record of such a release has the name only where that does not hold.
    """
    sizes = _gate_of(node["update_gate"])
    if sizes is None:
        return None
    old = () < made.release < (0, 17)
    text = f"nn.{name}Config({', '.join(map(str, sizes))}"
    if old and "reset_after" not in node:
        release = ".".join(map(str, made.release[:2]))
        note = f"Burn {release} computes as with reset_after=False; {others}"
        return f"{text}, reset_after=False)", note
    note = others if old else f"whether reset_after holds, {others}"
    return f"{text})", note


def _gru(made: Scaffold, node: dict[str, Any]) -> Found | None:
    found = _gru_config(made, "Gru", node, LSTM)
    return None if found is None else Found("nn.Gru", found[0], open=found[1])


def _rnn(made: Scaffold, node: dict[str, Any]) -> Found | None:
    sizes = _gate_of(node["gate"])
    if sizes is None:
        return None
    config = f"nn.RnnConfig({', '.join(map(str, sizes))})"
    return Found("nn.Rnn", config, open=LSTM)


def _both_ways(made: Scaffold, node: dict[str, Any]) -> Found | None:
    """A BiLstm, BiGru or BiRnn."""
    inner = node["forward"]
    if not isinstance(inner, dict):
        return None
    if "input_gate" in inner:
        config = _lstm_config("BiLstm", inner)
        return None if config is None else Found("nn.BiLstm", config, open=BI_LSTM)
    if "update_gate" in inner:
        found = _gru_config(made, "BiGru", inner, BI_LSTM)
        return None if found is None else Found("nn.BiGru", found[0], open=found[1])
    sizes = _gate_of(inner.get("gate"))
    if sizes is None:
        return None
    config = f"nn.BiRnnConfig({', '.join(map(str, sizes))})"
    return Found("nn.BiRnn", config, open=BI_LSTM)


def _swiglu(made: Scaffold, node: dict[str, Any]) -> Found | None:
    inner, outer = node["linear_inner"], node["linear_outer"]
    if not (isinstance(inner, dict) and isinstance(outer, dict)):
        return None
    first, second = _shape(inner.get("weight")), _shape(outer.get("weight"))
    if len(first) != 2 or len(second) != 2:
        return None
    is_feed = "dropout" in node or (made.flat and first != second)
    if is_feed and second == first[::-1]:
        config = f"nn.PositionWiseFeedForwardConfig({first[0]}, {first[1]})"
        note = _absent("dropout", "the activation")
        return Found("nn.PositionWiseFeedForward", config, open=note)
    if first != second:
        return None
    bias = ", bias=True" if _is_tensor(inner.get("bias")) else ""
    return Found("nn.SwiGlu", f"nn.SwiGluConfig({first[0]}, {first[1]}{bias})")


def _attention(made: Scaffold, node: dict[str, Any]) -> Found | None:
    """MultiHeadAttention or CrossAttention."""
    parts = [node[name] for name in ("query", "key", "value", "output")]
    if not all(isinstance(part, dict) for part in parts):
        return None
    shapes = [_shape(part.get("weight")) for part in parts]
    if any(len(shape) != 2 for shape in shapes):
        return None
    d_model = shapes[0][0]
    heads = _absent("the number of heads", "dropout", "min_float", "quiet_softmax")
    if (
        all(shape == (d_model, d_model) for shape in shapes)
        and "n_heads_kv" not in node
    ):
        sizes = f"{d_model}, {_heads(d_model)}{_biases(parts)}"
        config = f"nn.MultiHeadAttentionConfig({sizes})"
        return Found("nn.MultiHeadAttention", config, open=heads)
    context, inner, inner_kv = shapes[1][0], shapes[0][1], shapes[1][1]
    if shapes[2] != shapes[1] or shapes[3] != (inner, d_model) or inner % inner_kv:
        return None
    sizes = f"{d_model}, {context}, {inner // inner_kv}, 1, {inner_kv}"
    return Found(
        "nn.CrossAttention",
        f"nn.CrossAttentionConfig({sizes})",
        open=heads,
    )


def _heads(size: int) -> int:
    return next(n for n in (8, 4, 2, 1) if size % n == 0)


def _biases(parts: list[Any]) -> str:
    names = ("query", "key", "value", "output")
    rows = zip(names, parts, strict=True)
    return "".join(
        f", {name}_bias=False"
        for name, part in rows
        if not _is_tensor(part.get("bias"))
    )


def _transformer(made: Scaffold, node: dict[str, Any]) -> Found | None:
    """A TransformerEncoder or TransformerDecoder, by what its layers hold."""
    layers: Any = node["layers"]
    if isinstance(layers, dict):
        layers = [layers.get(str(i)) for i in range(len(layers))]
    if not layers or not all(isinstance(layer, dict) for layer in layers):
        return None
    first = {k for k, v in layers[0].items() if any(_tensors(v))}
    if first == {"mha", "pwff", "norm_1", "norm_2"}:
        kind, attention = "TransformerEncoder", layers[0]["mha"]
    elif first == {"cross_attn", "self_attn", "pwff", "norm_1", "norm_2", "norm_3"}:
        kind, attention = "TransformerDecoder", layers[0]["self_attn"]
    else:
        return None
    inner = layers[0]["pwff"].get("linear_inner", {})
    shape = _shape(inner.get("weight"))
    if len(shape) != 2 or _attention(made, attention) is None:
        return None
    d_model, d_ff = shape
    sizes = f"{d_model}, {d_ff}, {_heads(d_model)}, {len(layers)}"
    note = _absent(
        "the number of heads",
        "norm_first",
        "dropout",
        "quiet_softmax",
        "the activation",
        "epsilon of the norms",
    )
    return Found(f"nn.{kind}", f"nn.{kind}Config({sizes})", open=note)


def _names(text: str) -> set[str]:
    return set(text.split())


#: Which parts hold numbers: all of the first, some of the second; and what that is.
RULES: tuple[tuple[set[str], set[str], Rule], ...] = (
    (_names("weight"), _names("bias"), _weight),
    (_names("gamma beta running_mean running_var"), set(), _batch_norm),
    (_names("gamma"), _names("beta"), _norm),
    (_names("alpha"), set(), _prelu),
    (_names("input_gate output_gate cell_gate"), _names("forget_gate"), _lstm),
    (_names("update_gate reset_gate new_gate"), set(), _gru),
    (_names("gate"), set(), _rnn),
    (_names("forward reverse"), set(), _both_ways),
    (_names("input_transform hidden_transform"), set(), _gate),
    (_names("linear_inner linear_outer"), set(), _swiglu),
    (_names("query key value output"), set(), _attention),
    (_names("layers"), set(), _transformer),
)
