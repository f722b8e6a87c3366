"""The test that a row of the ledger names speaks of the row's own thing."""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

from burnbook.data import DataLoaderBuilder
from burnbook.module import Module
from burnbook.tensor import Shape, Tensor, TensorData
from burnbook.train import LearnerBuilder
from tests.book.test_book import ROOT, entries

ROOMS = (
    "backend tensor module nn nn.loss optim lr_scheduler grad_clipping data record"
    " train train.metric config importers exporters tensor.activation tensor.module"
    " tensor.linalg tensor.signal tensor.grid tensor.quantization"
)
CLASSES = (Tensor, TensorData, Shape, Module, LearnerBuilder, DataLoaderBuilder)
ENDINGS = (
    "filerecorder recorder metric dataset config loss lrschedulerconfig lrscheduler"
)


def bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


@cache
def names() -> dict[str, set[str]]:
    """Public names by what a row may call them: in lower case, without an ending."""
    public: set[str] = set()
    for room in ROOMS.split():
        module = importlib.import_module(f"burnbook.{room}")
        public |= set(getattr(module, "__all__", None) or vars(module))
    for each in CLASSES:
        public |= {name for name in dir(each) if not name.startswith("_")}
    found: dict[str, set[str]] = {}
    for name in public:
        short = bare(name)
        for key in (short, short.removeprefix("with")):
            found.setdefault(key, set()).add(name)
            for ending in ENDINGS.split():
                found.setdefault(key.removesuffix(ending), set()).add(name)
    return found


def wanted(entry: dict) -> set[str]:
    """Texts of which one must occur; `api` says what the name of the row does not."""
    if "api" in entry:
        return {entry["api"]}
    return names().get(bare(entry["id"].removeprefix("nn-")), set())


@cache
def parts(path: str) -> dict[str, str | tuple[str, str]]:
    """What a file of tests defines, as text, or where it has it from."""
    text = (ROOT / path).read_text("utf-8")
    found: dict[str, str | tuple[str, str]] = {}
    for node in ast.parse(text).body:
        segment = ast.get_source_segment(text, node) or ""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            above = [ast.get_source_segment(text, d) or "" for d in node.decorator_list]
            found[node.name] = "\n".join([*above, segment])
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                    found[inner.id] = segment
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("tests."):
            file = f"{node.module}".replace(".", "/") + ".py"
            if (ROOT / file).is_file():
                for name in node.names:
                    found[name.asname or name.name] = (file, name.name)
    return found


def text_of_test(path: str, name: str, seen: set[tuple[str, str]] | None = None) -> str:
    """A test with its parameters, and the helpers and tables that it names."""
    seen = set() if seen is None else seen
    part = parts(path).get(name)
    if (path, name) in seen or part is None:
        return ""
    seen.add((path, name))
    if isinstance(part, tuple):
        return text_of_test(*part, seen)
    words = set(re.findall(r"\b[A-Za-z_]\w*\b", part)) & set(parts(path))
    return part + "".join(text_of_test(path, word, seen) for word in sorted(words))


def text_of_cell(path: str, name: str) -> str:
    page = Path(path).relative_to("notebooks").with_suffix(".py")
    source = (ROOT / "notebooks/src" / page).read_text("utf-8")
    for part in re.split(r"^(?=# %%)", source, flags=re.MULTILINE):
        if f'"cell:{name}"' in part.partition("\n")[0]:
            return part
    return ""


def evidence(reference: str) -> str:
    path, mark, place = reference.partition("::")
    if mark:
        test, _, row = place.partition("[")
        return f"{text_of_test(path, test)}\n{row}"
    path, _, cell = reference.partition("#")
    return text_of_cell(path, cell)


def speaks(entry: dict) -> bool:
    """Whether a test of the row, or where it has none a cell, names its thing."""
    tests = [one for one in entry["covered"] if "::" in one]
    text = "\n".join(map(evidence, tests or entry["covered"]))
    edges = r"(?<![A-Za-z_]){}(?![A-Za-z_])"
    return any(re.search(edges.format(re.escape(n)), text) for n in wanted(entry))


ROWS = {
    where: entry
    for where, entry in entries()
    if entry["kind"] == "row" and "covered" in entry and wanted(entry)
}


def test_rows_are_tied_to_names():
    assert len(ROWS) > 240


@pytest.mark.parametrize("where", ROWS)
def test_a_row_is_proved_by_a_test_that_speaks_of_it(where):
    entry = ROWS[where]
    assert speaks(entry), f"none of {sorted(wanted(entry))} in {entry['covered']}"


def test_a_test_beside_it_is_no_evidence():
    beside = "tests/record/test_record.py::test_files_give_back_the_tree"
    assert not speaks({"id": "bin", "covered": [beside]})
    assert speaks({"id": "named-mpk", "covered": [beside]})
