"""What an ONNX file says, as plain Python: nodes, constants, and facts of values.

Everything that differs between files is settled here: constants lie in one table
wherever the file keeps them, functions of the file stand in place of their calls, and
every node knows which version of its operator it follows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.core.errors import RecordError
from burnbook.importers.onnx.growth import check_numbers
from burnbook.importers.onnx.inference import ONNX
from burnbook.importers.onnx.operators.registry import OPERATORS, RULES_OF_OTHERS
from burnbook.importers.onnx.schemas import MICROSOFT
from burnbook.importers.onnx.scopes import numbered, part_of
from burnbook.importers.onnx.tensors import Files, array_of, sparse_array
from burnbook.importers.onnx.values import DTYPES
from burnbook.record.tree import short

MOST_NODES = 1_000_000
MOST_DEPTH = 60  # functions that call functions, graphs in graphs
CONTROL = frozenset({"If", "Loop", "Scan", "SequenceMap"})  # a graph runs in them
DOMAINS = {"ai.onnx": ""}


@dataclass
class Fact:
    """What is known of a value before it runs.

    kind: tensor, sequence, optional or "" (unknown). dtype: NumPy's name. shape: None
    where not even the rank is known; a size is a number, a name, or None.
    """

    kind: str = ""
    dtype: str = ""
    shape: tuple[int | str | None, ...] | None = None


@dataclass
class Node:
    """A call of an operator: names of values, and attributes as Python has them."""

    op: str
    domain: str
    version: int  # in which its operator was last changed, for this file's opset
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    name: str = ""
    scope: tuple[str, ...] = ()  # the functions of the file that it stands in
    path: tuple[str, ...] | None = None  # the part of the model it stands in, if known

    @property
    def label(self) -> str:
        """How a report names it."""
        return self.name or next((o for o in self.outputs if o), self.op)


@dataclass
class Graph:
    """Nodes in order, with the names of what goes in and what comes out."""

    name: str
    inputs: list[str]
    outputs: list[str]
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    doubled: list[str] = field(default_factory=list)  # names of several constants
    trainable: set[str] = field(default_factory=set)  # the file's own initializers
    facts: dict[str, Fact] = field(default_factory=dict)
    # Sizes that are the same whatever the sizes of the inputs are.
    fixed: dict[str, tuple[int | None, ...]] = field(default_factory=dict)

    def walk(self) -> Iterator[tuple[Graph, Node]]:
        """All nodes with their graph, those of inner graphs as well."""
        for node in self.nodes:
            yield self, node
            for inner in node.attributes.values():
                if isinstance(inner, Graph):
                    yield from inner.walk()


def names_taken(nodes: Iterable[Node]) -> list[str]:
    """The values that nodes take, as often as they do, and the graphs in them as well.

    Why: without recursion, as every level of graphs in graphs asks for all inside.
    """
    found: list[str] = []
    waiting = [nodes]
    while waiting:
        for node in waiting.pop():
            found += node.inputs
            for inner in node.attributes.values():
                if isinstance(inner, Graph):
                    found += inner.outputs
                    waiting.append(inner.nodes)
    return [name for name in found if name]


@dataclass
class Model:
    """A file: its graph, and what it says of itself."""

    graph: Graph
    ir_version: int
    opsets: dict[str, int]
    producer: str
    doc: str = ""
    kinds: dict[tuple[str, ...], str] = field(default_factory=dict)  # classes of parts
    written: dict[str, Any] = field(default_factory=dict)  # constants of the file


def read_model(proto: Any, files: Files) -> Model:
    """The plain form of an onnx.ModelProto."""
    opsets = {_domain(o.domain): o.version for o in proto.opset_import}
    opsets.setdefault("", 1)
    reader = _Reader(proto, opsets, files)
    producer = f"{proto.producer_name} {proto.producer_version}".strip()
    graph = reader.graph(proto.graph, opsets, {}, 0)
    ir, doc = proto.ir_version, proto.doc_string
    return Model(graph, ir, opsets, producer, doc, reader.kinds)


class _Reader:
    def __init__(self, proto: Any, opsets: dict[str, int], files: Files):
        self.files, self.count, self.fresh = files, 0, Counter[str]()
        self.kinds: dict[tuple[str, ...], str] = {}
        self.inside: tuple[str, ...] = ()  # the part whose function is read
        self.functions = {
            (_domain(f.domain), f.name, getattr(f, "overload", "")): f
            for f in proto.functions
        }

    def graph(
        self,
        proto: Any,
        opsets: Mapping[str, int],
        facts: Mapping[str, Fact],
        depth: int,
    ) -> Graph:
        """A graph of the file, or of a node in it, which sees what is known outside."""
        if depth > MOST_DEPTH:
            raise RecordError("onnx", f"graphs lie {depth} deep in each other")
        constants = {t.name: array_of(t, self.files) for t in proto.initializer}
        for sparse in proto.sparse_initializer:
            constants[sparse.values.name] = sparse_array(sparse, self.files)
        named = [*proto.initializer, *(s.values for s in proto.sparse_initializer)]
        counts = Counter(str(tensor.name) for tensor in named)
        found = Graph(
            proto.name,
            [str(v.name) for v in proto.input if v.name not in constants],
            [str(v.name) for v in proto.output],
            constants=constants,
            doubled=[*(counts - Counter([*counts])).elements()],
            trainable=set(constants),
            facts=dict(facts),
        )
        for value in [*proto.input, *proto.value_info, *proto.output]:
            fact = fact_of(value.type)
            if fact.kind and not (fact.shape is None and value.name in found.facts):
                found.facts[value.name] = fact
        for name, array in constants.items():
            found.facts[name] = fact_of_array(array)
        found.nodes = list(self.nodes(proto.node, opsets, found, {}, {}, (), depth))
        return found

    def nodes(
        self,
        protos: Iterable[Any],
        opsets: Mapping[str, int],
        graph: Graph,
        names: dict[str, str],
        given: Mapping[str, Any],
        scope: tuple[str, ...],
        depth: int,
    ) -> Iterator[Node]:
        """Nodes in order. names: of values inside a function; given: its attributes."""
        for proto in protos:
            self.count += 1
            if self.count > MOST_NODES:
                raise RecordError("onnx", f"the file has over {MOST_NODES:,} nodes")
            node = self.node(proto, opsets, graph, names, given, scope, depth)
            if node.op in ("Constant", "Identity") and not node.domain:
                if node.op == "Constant":
                    array = self.constant(node)
                    if node.outputs[0] in graph.constants:
                        graph.doubled.append(node.outputs[0])
                    graph.constants[node.outputs[0]] = array
                    graph.facts[node.outputs[0]] = fact_of_array(array)
                    continue
                known = graph.facts.get(node.inputs[0])
                if known is not None:
                    graph.facts.setdefault(node.outputs[0], known)
            body = self.body_of(proto, node, opsets, graph, depth)
            if body is None:
                yield node
                continue
            yield from self.inlined(body, node, opsets, graph, depth)

    def node(
        self,
        proto: Any,
        opsets: Mapping[str, int],
        graph: Graph,
        names: dict[str, str],
        given: Mapping[str, Any],
        scope: tuple[str, ...],
        depth: int,
    ) -> Node:
        # Names that are no UTF-8 come as bytes: as texts they are at least told apart.
        op, domain = str(proto.op_type), _domain(str(proto.domain))
        schema = schema_of(op, domain, opsets.get(domain, 1))
        attributes = {}
        known = attributes_of(op, domain) if schema is None else None
        for a in proto.attribute:
            if schema is not None and not _fits(a, schema, proto):
                continue
            if known is not None and a.name not in known:
                raise _unknown(a.name, op, known, proto)
            check_numbers(a, op, domain, map(str, proto.output))
            if a.ref_attr_name:
                if a.ref_attr_name in given:
                    attributes[a.name] = given[a.ref_attr_name]
                continue
            attributes[a.name] = self.attribute(a, opsets, graph, names, given, depth)
        return Node(
            op,
            domain,
            0 if schema is None else schema.since_version,
            [names.get(n, n) for n in map(str, proto.input)],
            [names.get(n, n) for n in map(str, proto.output)],
            attributes,
            str(proto.name),
            scope,
            self.path(proto),
        )

    def path(self, proto: Any) -> tuple[str, ...] | None:
        """The part of the model that a node stands in, as the file's exporter said."""
        path, kinds = part_of(proto)
        self.kinds |= {(*self.inside, *part): kind for part, kind in kinds.items()}
        if path is None:
            return self.inside or None
        return (*self.inside, *path)

    def attribute(
        self,
        proto: Any,
        opsets: Mapping[str, int],
        graph: Graph,
        names: dict[str, str],
        given: Mapping[str, Any],
        depth: int,
    ) -> Any:
        kind = proto.type
        if kind in _PLAIN:
            return _PLAIN[kind](proto)
        if kind == _TENSOR:
            return array_of(proto.t, self.files)
        if kind == _TENSORS:
            return [array_of(t, self.files) for t in proto.tensors]
        if kind == _SPARSE:
            return sparse_array(proto.sparse_tensor, self.files)
        if kind == _GRAPH:
            return self.inner(proto.g, opsets, graph, names, given, depth)
        what = f"attribute {proto.name!r} is of a type that no operator has"
        raise RecordError("onnx", what)

    def inner(
        self,
        proto: Any,
        opsets: Mapping[str, int],
        graph: Graph,
        names: dict[str, str],
        given: Mapping[str, Any],
        depth: int,
    ) -> Graph:
        """A graph in a node: it sees the values around it."""
        if not names and not given:
            return self.graph(proto, opsets, graph.facts, depth + 1)
        copy = type(proto)()
        copy.CopyFrom(proto)
        _rename(copy, names, given)
        return self.graph(copy, opsets, graph.facts, depth + 1)

    def constant(self, node: Node) -> Any:
        kinds: dict[str, Any] = {"float": np.float32, "int": np.int64, "string": object}
        for key, value in node.attributes.items():
            if key in ("value", "sparse_value"):
                return value
            kind = key.removeprefix("value_").removesuffix("s")
            if kind in kinds:
                return np.array(value, kinds[kind])
        raise RecordError("onnx", f"the constant {node.outputs[0]!r} has no value")

    def body_of(
        self,
        proto: Any,
        node: Node,
        opsets: Mapping[str, int],
        graph: Graph,
        depth: int,
    ) -> Any:
        """The function that a node calls: of the file, or of the operator's definition.

        Operators that are known here are not taken apart.
        """
        own = self.functions.get((node.domain, node.op, getattr(proto, "overload", "")))
        if own is not None:
            return own
        if (node.domain, node.op) in OPERATORS or node.op in CONTROL:
            return None
        return definition_of(proto, node, opsets.get(node.domain, 1), graph)

    def inlined(
        self, body: Any, call: Node, opsets: Mapping[str, int], graph: Graph, depth: int
    ) -> Iterator[Node]:
        if len(call.scope) > MOST_DEPTH:
            what = f"functions call functions {MOST_DEPTH} deep: {call.op}"
            raise RecordError("onnx", what, [("at most", str(MOST_DEPTH))])
        self.fresh[body.name] += 1
        prefix = f"{body.name}_{self.fresh[body.name]}"
        scope = (*call.scope, prefix)
        names = {"": ""}
        for k, name in enumerate(body.input):
            names[name] = call.inputs[k] if k < len(call.inputs) else ""
        for k, name in enumerate(body.output):
            used = call.outputs[k] if k < len(call.outputs) else ""
            names.setdefault(name, used or f"{prefix}/{name}")
        for inner in body.node:
            for name in inner.output:
                names.setdefault(name, f"{prefix}/{name}")
        given = dict(call.attributes)
        for a in body.attribute_proto:
            if a.name not in given:
                given[a.name] = self.attribute(a, {}, graph, {}, {}, depth)
        own = {_domain(o.domain): o.version for o in body.opset_import}
        opsets = {**opsets, **own}
        before = self.inside
        if (call.domain, call.op, body.overload) in self.functions:
            count = self.fresh[body.name]
            self.inside = (*(call.path or ()), numbered(body.name, count))
            self.kinds[self.inside] = str(body.name)
        yield from self.nodes(body.node, opsets, graph, names, given, scope, depth + 1)
        self.inside = before
        yield from _passed_on(body, call, names, scope)


def _passed_on(
    body: Any, call: Node, names: Mapping[str, str], scope: tuple[str, ...]
) -> Iterator[Node]:
    """What a function gives out as it came in, or a second time."""
    for name, target in zip(body.output, call.outputs, strict=False):
        source = names[name]
        if target and target != source:
            yield Node("Identity", "", 1, [source], [target], {}, scope=scope)


def definition_of(proto: Any, node: Node, opset: int, graph: Graph) -> Any:
    """The body that ONNX's definition gives an operator, if it gives one."""
    import onnx
    from onnx import defs

    try:
        schema: Any = defs.get_schema(node.op, opset, node.domain)
    except defs.SchemaError:
        return None
    body = onnx.FunctionProto()
    if schema.has_context_dependent_function:
        types = [type_of(graph.facts.get(n)) for n in node.inputs]
        found = ONNX.function(node.op, node.domain, opset, proto, types)
        if found is None:
            return None
        body = found
    elif schema.has_function:
        body.CopyFrom(schema.function_body)
    if not body.node:
        return None
    for name, attribute in schema.attributes.items():
        if attribute.default_value.name and not any(
            a.name == name for a in body.attribute_proto
        ):
            body.attribute_proto.append(attribute.default_value)
    if not any(_domain(o.domain) == node.domain for o in body.opset_import):
        body.opset_import.add(domain=node.domain, version=opset)
    return body


def type_of(fact: Fact | None) -> Any:
    """An onnx.TypeProto that says what is known of a value."""
    import onnx

    found = onnx.TypeProto()
    if fact is None or fact.kind != "tensor" or not fact.dtype:
        return found
    number = next(k for k, name in DTYPES.items() if name == fact.dtype)
    found.tensor_type.elem_type = number
    if fact.shape is not None:
        found.tensor_type.shape.SetInParent()
        for size in fact.shape:
            dim = found.tensor_type.shape.dim.add()
            if isinstance(size, int):
                dim.dim_value = size
            elif size:
                dim.dim_param = size
    return found


def fact_of(proto: Any) -> Fact:
    """What an onnx.TypeProto says."""
    kind = proto.WhichOneof("value") or ""
    if kind in ("tensor_type", "sparse_tensor_type"):
        inner = getattr(proto, kind)
        shape = None
        if inner.HasField("shape"):
            shape = tuple(map(_size, inner.shape.dim))
        return Fact("tensor", DTYPES.get(inner.elem_type, ""), shape)
    if kind in ("sequence_type", "optional_type"):
        return Fact(kind[:-5], fact_of(getattr(proto, kind).elem_type).dtype)
    return Fact("map" if kind else "")


def _size(dim: Any) -> int | str | None:
    """A size, or its name; one below zero is none."""
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None
    return dim.dim_param or None


def fact_of_array(array: NDArray[Any]) -> Fact:
    """What is known of a constant: all."""
    name = "str" if array.dtype == object else array.dtype.name
    return Fact("tensor", name, tuple(array.shape))


_SCHEMAS: dict[tuple[str, str, int], Any] = {}


def schema_of(op: str, domain: str, opset: int) -> Any:
    """ONNX's definition of an operator as of an opset, or None."""
    key = op, domain, opset
    if key not in _SCHEMAS:
        from onnx import defs

        try:
            _SCHEMAS[key] = defs.get_schema(op, opset, domain)
        except defs.SchemaError:
            return None
    return _SCHEMAS[key]


def _fits(attribute: Any, schema: Any, proto: Any) -> bool:
    """Whether an attribute belongs to an operator; a wrong type is an error.

    Why: names and values of attributes come to stand in source, so they are those of
    ONNX's definition and nothing else.
    """
    known = schema.attributes.get(attribute.name)
    if known is None:
        return False
    if attribute.ref_attr_name or int(known.type) == attribute.type:
        return True
    what = f"attribute {attribute.name!r} of {proto.op_type} has a wrong type"
    where = proto.name or next(iter(proto.output), "")
    raise RecordError("onnx", what, [("node", where)])


def attributes_of(op: str, domain: str) -> frozenset[str] | None:
    """The attributes of a known operator that ONNX does not define; None of others.

    Why: as `_fits`; what is not known would be another result, without a word.
    """
    operator = OPERATORS.get((domain, op))
    if op in MICROSOFT and (operator is None or (domain, op) in RULES_OF_OTHERS):
        return MICROSOFT[op]
    return None if operator is None else operator.attributes()


def _unknown(name: str, op: str, known: frozenset[str], proto: Any) -> RecordError:
    """What is said of an attribute that an operator here does not have."""
    told = ", ".join(sorted(known)) or "none"
    where = proto.name or next(iter(proto.output), "")
    what = f"{short(op)} has the attribute {short(name)!r}, which is not known here"
    return RecordError("onnx", what, [("node", where), ("known", told)])


def _rename(proto: Any, names: Mapping[str, str], given: Mapping[str, Any]) -> None:
    """Give the names outside to what a graph inside a function takes from there."""
    for node in proto.node:
        for k, name in enumerate(node.input):
            node.input[k] = names.get(name, name)
        for k, name in enumerate(node.output):
            node.output[k] = names.get(name, name)
        for a in node.attribute:
            if a.HasField("g"):
                _rename(a.g, names, given)
            if a.ref_attr_name and a.ref_attr_name in given:
                import onnx

                made = onnx.helper.make_attribute(a.name, given[a.ref_attr_name])
                a.CopyFrom(made)
    for value in proto.output:
        value.name = names.get(value.name, value.name)


def _domain(name: str) -> str:
    return DOMAINS.get(name, name)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


# AttributeProto's types, and how those without tensors and graphs become Python's.
_TENSOR, _GRAPH, _TENSORS, _SPARSE = 4, 5, 9, 11
_PLAIN: dict[int, Callable[[Any], Any]] = {
    1: lambda a: float(a.f),
    2: lambda a: int(a.i),
    3: lambda a: _text(a.s),
    6: lambda a: [float(n) for n in a.floats],
    7: lambda a: [int(n) for n in a.ints],
    8: lambda a: [_text(s) for s in a.strings],
    13: lambda a: a.tp,
}
