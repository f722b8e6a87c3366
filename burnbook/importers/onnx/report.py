"""What a file holds and whether all of it is known: said before anything is built."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from difflib import get_close_matches

from burnbook.core.errors import ArgumentError, BurnbookError, RecordError
from burnbook.importers.onnx.apart import RULES
from burnbook.importers.onnx.graph import CONTROL, Fact, Model
from burnbook.importers.onnx.layers import Layer
from burnbook.importers.onnx.naming import comment
from burnbook.importers.onnx.operators.registry import OPERATORS
from burnbook.importers.onnx.originals import is_made_up
from burnbook.importers.onnx.ties import transposed
from burnbook.importers.onnx.wiring import Fault, faults_of

MOST_SHOWN = 100  # faults of a report
COMPARED = 20  # unknown operators whose names are compared with all known ones


@dataclass
class Unsupported:
    """An operator that is not known, and the nodes where it stands.

    newest: the newest version that is known, where only this one is not.
    """

    op: str
    domain: str
    version: int
    newest: int = 0
    nodes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """With the domain, where that is not ONNX's own."""
        return f"{self.domain}.{self.op}" if self.domain else self.op

    @property
    def nearest(self) -> str:
        """The known operator whose name is most alike, if one is."""
        names = [op for _, op in (*OPERATORS, *RULES)]
        return next(iter(get_close_matches(self.op, names, 1, 0.6)), "")

    @property
    def place(self) -> str:
        """Where it stands."""
        shown = ", ".join(self.nodes[:3]) + (" …" if len(self.nodes) > 3 else "")
        return f"at {shown}"

    @property
    def why(self) -> str:
        """Where it stands, and what is known instead."""
        if self.newest:
            return f"{self.place} (version {self.version}; known up to {self.newest})"
        return self.place + (f" (known: {self.nearest})" if self.nearest else "")


@dataclass
class OnnxReport:
    """A file's opsets, inputs, outputs, operators with counts, and what is missing.

    layers: what was found again of the layers, by name, with counts. faults: where the
    nodes do not fit together, and how.
    turned: pairs of weights, of which the second is the first one transposed.
    """

    title: str
    ir_version: int
    producer: str
    opsets: dict[str, int]
    inputs: list[tuple[str, str]]
    outputs: list[tuple[str, str]]
    operators: dict[str, int]
    weights: int
    numbers: int
    unsupported: list[Unsupported]
    layers: dict[str, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    turned: list[tuple[str, str]] = field(default_factory=list)

    def is_supported(self) -> bool:
        """Whether everything in the file is known, and the nodes fit together."""
        return not (self.unsupported or self.faults)

    def reasons(self) -> list[tuple[str, str]]:
        """What is not known, and why; with similar names for the first of them."""
        rows = enumerate(self.unsupported)
        return [(one.name, one.why if i < COMPARED else one.place) for i, one in rows]

    def error(self) -> BurnbookError:
        """The error that names everything that is not known or does not fit."""
        count = len(self.unsupported)
        what = f"{count} operator{'s are' if count > 1 else ' is'} not known"
        if not self.faults:
            return ArgumentError("onnx", what, self.reasons())
        facts = [*self.faults, *self.reasons()]
        broken = f"the nodes of {self.title} do not fit together"
        what = f"{broken}, and {what}" if count else broken
        return RecordError("onnx", what, facts, "onnx.checker.check_model")

    def __str__(self) -> str:
        opsets = ", ".join(
            f"{name or 'ai.onnx'} {n}" for name, n in self.opsets.items()
        )
        made = f", made by {self.producer}" if self.producer else ""
        lines = [f"{self.title}: ONNX, IR {self.ir_version}, opset {opsets}{made}"]
        for word, values in (("input", self.inputs), ("output", self.outputs)):
            lines += [f"  {word:8}{name}  {what}" for name, what in values]
        lines.append(f"  {self.weights} constants with {self.numbers:,} elements")
        total, kinds = sum(self.operators.values()), len(self.operators)
        nodes = "1 node" if total == 1 else f"{total} nodes"
        mixed = "operators and layers" if self.layers else "operators"
        mixed = "operator" if kinds == 1 else mixed
        lines.append(f"  {nodes} of {kinds} {mixed}:")
        shown = sorted(self.operators.items(), key=lambda row: (-row[1], row[0]))
        lines += [f"    {count:6} {op}" for op, count in shown]
        if self.layers:
            lines.append("  layers (nn.…) are found again in the file's operators")
        if self.faults:
            lines.append("  does not fit together:")
            lines += [f"    {where} {what}" for where, what in self.faults[:MOST_SHOWN]]
            more = len(self.faults) - MOST_SHOWN
            lines += [f"    … and {more} more"] * (more > 0)
        if self.unsupported:
            lines.append("  not known:")
            lines += [f"    {name} {why}" for name, why in self.reasons()]
        else:
            lines.append("  all operators are known")
        for first, second in self.turned:
            what = "transposed: they are trained apart"
            lines.append(f"  {second} equals {first} {what}")
        if self.turned:
            first, second = self.turned[0]
            lines.append(
                f"    try: in the source, ops.transpose of {first} in place of {second}"
            )
        return "\n".join(lines)


def report_of(
    model: Model, title: str = "a model", as_written: bool = True
) -> OnnxReport:
    """What a model holds. as_written: it is as in the file, so its order counts."""
    graph = model.graph
    counts, layers = Counter[str](), Counter[str]()
    missing: dict[tuple[str, str, int], Unsupported] = {}
    for _, node in graph.walk():
        if isinstance(node.attributes.get("layer"), Layer):
            layers[f"nn.{node.op}"] += 1
            continue
        counts[node.op] += 1
        if node.op in CONTROL | {"Identity"} and not node.domain:
            continue
        if (node.domain, node.op) in RULES:
            continue
        known = OPERATORS.get((node.domain, node.op))
        newest = max(known.versions) if known is not None else 0
        if known is not None and node.version <= newest:
            continue
        key = node.domain, node.op, node.version
        made = Unsupported(node.op, node.domain, node.version, newest)
        missing.setdefault(key, made).nodes.append(node.label)
    facts = graph.facts
    arrays = [*graph.constants.values()]
    return OnnxReport(
        title,
        model.ir_version,
        model.producer,
        model.opsets,
        [(n, _shown(facts.get(n))) for n in graph.inputs],
        [(n, _shown(facts.get(n))) for n in graph.outputs],
        {**counts, **layers},
        len(arrays),
        sum(int(a.size) for a in arrays),
        [*missing.values()],
        dict(layers),
        faults_of(graph) if as_written else [],
        _turned(model),
    )


def _turned(model: Model) -> list[tuple[str, str]]:
    """Weights that the file has twice, as of an embedding and the layer after it.

    A name that an exporter made up says less than the part that takes the weight.
    """
    graph = model.graph
    weights = [(n, {"": a}) for n, a in graph.constants.items() if n in graph.trainable]
    found = transposed(weights)
    found = [(b, a) if is_made_up(a) else (a, b) for a, b in found]
    users = {n: node for node in graph.nodes for n in node.inputs if found}

    def part(name: str) -> str:
        path = users[name].path if name in users else None
        return f"{'.'.join(path)}.weight" if path else name

    shown: list[tuple[str, str]] = []
    for first, second in found:
        second = part(second) if is_made_up(second) else second
        first = part(first) if first == second else first
        shown.append((comment(first), comment(second)))
    return shown


def _shown(fact: Fact | None) -> str:
    if fact is None or not fact.kind:
        return "of unknown type"
    sizes = "of unknown rank" if fact.shape is None else ""
    if fact.shape is not None:
        sizes = f"[{', '.join('?' if n is None else str(n) for n in fact.shape)}]"
    return f"{fact.kind if fact.kind != 'tensor' else ''} {fact.dtype} {sizes}".strip()
