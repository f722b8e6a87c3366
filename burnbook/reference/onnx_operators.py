"""The table of ONNX's operators as pages: one for each family.

    onnx_operators("convolution")         the operators of one family
    onnx_operators(find="pool")           those with this in the name
    onnx_totals()                         all cases of ONNX's suite, by kind

The counts are those of `onnx_operators.json`, which `python -m
tests.importers.onnx.conformance` writes when it has run all cases; a test compares it
with the suite of the package onnx.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from burnbook.core.errors import ConfigError
from burnbook.importers.onnx.apart import RULES
from burnbook.importers.onnx.graph import CONTROL
from burnbook.importers.onnx.naming import snake
from burnbook.importers.onnx.operators import OPERATORS
from burnbook.importers.onnx.source import SIGNS
from burnbook.importers.onnx.versions import VERSIONS
from burnbook.reference.appendix import LEFT, page_table

MICROSOFT = "com.microsoft"
FILE = Path(__file__).with_name("onnx_operators.json")
FAMILIES = {
    "elementwise": "Element by element",
    "products": "Products",
    "convolution": "Convolution",
    "pooling": "Pooling",
    "norms": "Norms, softmax, dropout",
    "recurrent": "Recurrent layers",
    "reductions": "Reductions",
    "shapes": "Shapes",
    "joining": "Joining and splitting",
    "indexing": "Picking and changing elements",
    "sorting": "Order",
    "resampling": "Images",
    "signal": "Signals",
    "losses": "Losses",
    "random": "Random numbers",
    "types": "Element types",
    "quantized": "Quantized numbers",
    "sequences": "Sequences and optional values",
    "texts": "Texts",
    "control": "Control flow and constants",
    "composed": "Operators that ONNX defines by others",
    "ml": "ai.onnx.ml: linear models, trees, what comes before and after",
    "svm": "ai.onnx.ml: support vector machines",
    "training": "Training",
    "microsoft": "com.microsoft: what ONNX Runtime's optimizer and tools write",
}
LAYERS = {  # what an operator becomes where its weights are the file's own
    "BatchNormalization": "nn.BatchNorm",
    "Conv": "nn.Conv1d, 2d, 3d",
    "ConvTranspose": "nn.ConvTranspose1d, 2d, 3d",
    "Dropout": "nn.Dropout",
    "GRU": "nn.Gru, nn.BiGru",
    "Gather": "nn.Embedding",
    "Gemm": "nn.Linear",
    "LSTM": "nn.Lstm, nn.BiLstm",
    "LayerNormalization": "nn.LayerNorm",
    "MatMul": "nn.Linear",
    "RMSNormalization": "nn.RmsNorm",
}
HEADS = {"operator": 24, "versions": 20, "becomes": 24, "cases": 12, "remarks": 20}


@dataclass(frozen=True)
class OnnxRow:
    """An operator: its versions, what it becomes, and how many cases it passes.

    cases: all that are about it, those that pass by execution, and by written source.
    """

    name: str
    domain: str
    family: str
    versions: tuple[int, ...]
    becomes: str
    cases: tuple[int, int, int]
    remarks: str


@cache
def _held() -> dict[str, Any]:
    return json.loads(FILE.read_text(encoding="utf-8"))


@cache
def onnx_rows() -> tuple[OnnxRow, ...]:
    """All operators that are known, in order of family and name."""
    found: list[OnnxRow] = []
    for domain, versions in VERSIONS.items():
        for name, numbers in versions.items():
            own = domain == MICROSOFT  # ONNX's suite has none of them
            counts = [0] * 3 if own else _held()["operators"].get(name, [0] * 3)
            family = _family(domain, name)
            becomes, remarks = _becomes(domain, name), _remarks(domain, name)
            first, second, third = counts
            cases = (first, second, third)
            found.append(
                OnnxRow(name, domain, family, numbers, becomes, cases, remarks)
            )
    order = list(FAMILIES)
    return tuple(sorted(found, key=lambda row: (order.index(row.family), row.name)))


def _family(domain: str, name: str) -> str:
    if domain == MICROSOFT:
        return "microsoft"
    operator = OPERATORS.get((domain, name))
    if operator is None:
        plain = not domain and name in CONTROL | {"Constant", "Identity"}
        return (
            "control" if plain else "training" if "training" in domain else "composed"
        )
    function: Any = operator.on_tensors or operator.on_arrays
    module = str(function.__module__).rpartition(".")[2]
    return module if module in FAMILIES else "elementwise"


def _becomes(domain: str, name: str) -> str:
    if (domain, name) in RULES:
        return "the operators that it was made of"
    operator = OPERATORS.get((domain, name))
    if operator is None:
        if name == "Constant":
            return "a number, or a field"
        if name == "Identity":
            return "the same name"
        if name in CONTROL:
            return f"functions, and ops.{snake(name)}_"
        return "" if "training" in domain else "the operators that define it"
    made = f"ops.{operator.__name__}"
    if domain:
        return made
    if name in LAYERS:
        return f"{LAYERS[name]}; {made}"
    return f"{SIGNS[name]}; {made}" if name in SIGNS else made


def _remarks(domain: str, name: str) -> str:
    if domain == MICROSOFT:
        return ""
    operator = OPERATORS.get((domain, name))
    said = {why for op, why in _held()["failed"].values() if op == name}
    told = sorted(said)
    if operator is not None and operator.on_tensors is None and not domain:
        told.append("without gradient")
    if operator is None and "training" in domain:
        told = told or ["not known"]
    return "; ".join(told)


class OnnxPage:
    """Some rows of the table, to be looked at."""

    def __init__(self, title: str, found: Iterable[OnnxRow]):
        self.title = title
        self.rows = tuple(found)

    def __repr__(self) -> str:
        cases = [sum(row.cases[k] for row in self.rows) for k in range(3)]
        count = len(self.rows)
        return (
            f"{self.title}: {count} operator{'' if count == 1 else 's'}, {cases[0]} "
            f"cases, {cases[1]} pass by execution, {cases[2]} by written source"
        )

    def _repr_html_(self) -> str:
        return page_table(HEADS, map(_line, self.rows))


def onnx_operators(family: str = "", *, find: str = "") -> OnnxPage:
    """The operators of one family, or those with this in the name.

    Raises:
        ConfigError: there is no such family.
    """
    if find:
        rows = (row for row in onnx_rows() if find.lower() in row.name.lower())
        return OnnxPage(f"find={find!r}", rows)
    if family not in FAMILIES:
        what = f"there is no family {family!r}"
        raise ConfigError("onnx_operators", what, cure=", ".join(FAMILIES))
    rows = (row for row in onnx_rows() if row.family == family)
    return OnnxPage(FAMILIES[family], rows)


class OnnxTotals:
    """How many cases of ONNX's suite pass, by kind."""

    def __init__(self) -> None:
        self.version: str = _held()["onnx"]
        self.kinds: dict[str, list[int]] = dict(_held()["kinds"])
        rows = self.kinds.values()
        self.kinds["all"] = [sum(row[k] for row in rows) for k in range(3)]

    def __repr__(self) -> str:
        lines = [f"onnx {self.version}"]
        for kind, (count, run, written) in self.kinds.items():
            told = f"{run:5} by execution  {written:5} by written source"
            lines.append(f"  {kind:18}{count:5} cases  {told}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        heads = ("kind", "cases", "by execution", "by written source")
        head = "".join(f'<th style="{LEFT}">{text}</th>' for text in heads)
        cell = f'<td style="{LEFT}">'
        rows = "".join(
            f"<tr>{''.join(f'{cell}{text}</td>' for text in (kind, *row))}</tr>"
            for kind, row in self.kinds.items()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def onnx_totals() -> OnnxTotals:
    """How many cases of ONNX's suite pass, by kind."""
    return OnnxTotals()


def _line(row: OnnxRow) -> str:
    """One line of the table."""
    count, run, written = row.cases
    passed = str(run) if run == written else f"{run}, {written}"
    texts = [
        f"<b><tt>{escape(row.name)}</tt></b>",
        escape(", ".join(map(str, row.versions))),
        escape(row.becomes).replace("_", "_<wbr>").replace("; ", "<br>"),
        f"{passed} / {count}" if count else "",
        escape(row.remarks),
    ]
    cells = "".join(f'<td style="{LEFT}">{text}</td>' for text in texts)
    return f"<tr>{cells}</tr>"
