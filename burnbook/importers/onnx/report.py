"""What a file holds and whether all of it is known: said before anything is built."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from difflib import get_close_matches

from burnbook.core.errors import ArgumentError
from burnbook.importers.onnx.graph import CONTROL, Model
from burnbook.importers.onnx.operators.registry import OPERATORS


@dataclass
class Unsupported:
    """An operator that is not known, and the nodes where it stands."""

    op: str
    domain: str
    version: int
    nodes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """With the domain, where that is not ONNX's own."""
        return f"{self.domain}.{self.op}" if self.domain else self.op

    @property
    def nearest(self) -> str:
        """The known operator whose name is most alike, if one is."""
        names = [op for _, op in OPERATORS]
        return next(iter(get_close_matches(self.op, names, 1, 0.6)), "")


@dataclass
class OnnxReport:
    """A file's opsets, inputs, outputs, operators with counts, and what is missing."""

    opsets: dict[str, int]
    inputs: list[str]
    outputs: list[str]
    operators: dict[str, int]
    unsupported: list[Unsupported]

    def error(self) -> ArgumentError:
        """The error that names everything that is not known."""
        facts = []
        for one in self.unsupported:
            shown = ", ".join(one.nodes[:3]) + (" …" if len(one.nodes) > 3 else "")
            near = f" (known: {one.nearest})" if one.nearest else ""
            facts.append((one.name, f"at {shown}{near}"))
        count = len(self.unsupported)
        what = f"{count} operator{'s are' if count > 1 else ' is'} not known"
        return ArgumentError("onnx", what, facts)


def report_of(model: Model) -> OnnxReport:
    """What a model holds."""
    graph = model.graph
    counts = Counter[str]()
    missing: dict[tuple[str, str, int], Unsupported] = {}
    for _, node in graph.walk():
        counts[node.op] += 1
        if node.op in CONTROL | {"Identity"} and not node.domain:
            continue
        known = OPERATORS.get((node.domain, node.op))
        if known is not None and (
            not known.versions or node.version <= max(known.versions)
        ):
            continue
        key = node.domain, node.op, node.version
        found = missing.setdefault(key, Unsupported(node.op, node.domain, node.version))
        found.nodes.append(node.label)
    return OnnxReport(
        model.opsets, graph.inputs, graph.outputs, dict(counts), [*missing.values()]
    )
