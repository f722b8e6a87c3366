"""The ledger: every item of the book, and the test or the cell that covers it."""

import ast
import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import burnbook.tensor  # noqa: F401 - declares every op
from burnbook.core.op import OPS

ROOT = Path(__file__).resolve().parents[2]
KINDS = {"row", "snippet", "output", "figure", "rust-note", "note", "list"}


@cache
def ledger():
    return tomllib.loads((ROOT / "tests/book/ledger.toml").read_text("utf-8"))


def entries():
    for section in ledger()["section"]:
        for entry in section["entries"]:
            yield f"{section['id']}.{entry['id']}", entry


@cache
def functions(path):
    """The names of the tests in a file."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}


@cache
def cells(path):
    """The named cells of a chapter's source: whether each is one of code."""
    page = Path(path).relative_to("notebooks").with_suffix(".py")  # zh/ and examples/
    source = ROOT / "notebooks/src" / page
    if not source.exists():
        return None
    heads = re.findall(r"^# %%(.*)", source.read_text("utf-8"), flags=re.M)
    named = [
        (name, not head.startswith(" [markdown]"))
        for head in heads
        for name in re.findall(r'"cell:([^"]+)"', head)
    ]
    assert len(named) == len(dict(named)), f"{path} names two cells the same"
    return dict(named)


def fault(reference):
    """Why a reference points nowhere, or None."""
    path, mark, place = reference.partition("::")
    if mark:
        name, _, row = place.partition("[")
        if not (ROOT / path).is_file():
            return f"{path} does not exist"
        if name not in functions(path):
            return f"{path} has no {name}"
        if row and row.rstrip("]") not in OPS:
            return f"there is no op {row.rstrip(']')}"
        return None
    path, mark, cell = reference.partition("#")
    if not mark or not path.startswith("notebooks/"):
        return f"{reference} is neither a test nor a place in a chapter"
    found = cells(path)
    if found is None:
        return f"{path} has no source"
    return None if cell in found else f"{path} has no cell {cell!r}"


def test_every_entry_of_the_ledger_points_to_something():
    faults = [
        f"{name}: {problem}"
        for name, entry in entries()
        for problem in map(fault, entry.get("covered", []))
        if problem
    ]
    assert not faults, "\n".join(faults)


def test_every_entry_is_whole_and_named_once():
    names = Counter(name for name, _ in entries())
    assert [name for name, count in names.items() if count > 1] == []
    for name, entry in entries():
        assert entry["kind"] in KINDS, name
        assert entry["what"], name
        assert len(entry["what"]) <= 90, f"{name}: in one's own words, and few"
        covered, issue = entry.get("covered", []), entry.get("issue")
        assert bool(covered) != (issue is not None), f"{name}: covered or planned"
        assert issue is None or issue == "later" or issue in range(2, 100), name


def test_nothing_of_a_finished_issue_is_open():
    done = ledger()["finished"]
    late = [n for n, e in entries() if isinstance(e.get("issue"), int)
            and e["issue"] <= done]  # fmt: skip
    assert late == []


def test_the_ledger_says_how_much_is_covered(capsys):
    total = Counter()
    covered = Counter()
    for section in ledger()["section"]:
        part = section["title"].split(" · ")[0]
        total[part] += len(section["entries"])
        covered[part] += sum("covered" in entry for entry in section["entries"])
    rows = [f"  {covered[part]:3} of {total[part]:3}  {part}" for part in total]
    with capsys.disabled():
        sums = covered.total(), total.total()
        print("\n".join(["", f"The book: {sums[0]} of {sums[1]} covered", *rows]))
    assert sums == (ledger()["done"], ledger()["items"]), "a row came or went: say so"


def test_what_the_book_has_is_proved_without_pytorch():
    """A plain install covers everything; the comparisons with PyTorch come on top."""
    alone = [
        name
        for name, entry in entries()
        if "covered" in entry
        and all(each.startswith("tests/torch/") for each in entry["covered"])
    ]
    assert alone == []


def test_every_row_of_the_module_tables_is_in_their_chapter():
    (section,) = [s for s in ledger()["section"] if s["id"] == "module"]
    page = "notebooks/04_04_module.ipynb#"
    lost = [
        entry["id"]
        for entry in section["entries"]
        if not any(each.startswith(page) for each in entry["covered"])
    ]
    assert lost == []


BY_TEST = {"module", "learner", "metric", "dataset", "tensor-numeric", "tensor-float"}


def test_rows_and_snippets_of_the_building_blocks_run():
    """A test, or a cell of code, stands behind each of them; prose alone does not."""
    told = []
    for section in ledger()["section"]:
        if section["id"] not in BY_TEST:
            continue
        for entry in section["entries"]:
            if entry["kind"] in ("row", "snippet") and not any(
                map(runs, entry.get("covered", []))
            ):
                told.append(f"{section['id']}.{entry['id']}")
    assert told == []


def runs(reference):
    """Whether a reference is a test, or lies in a cell of code."""
    path, mark, cell = reference.partition("#")
    return not mark or cells(path)[cell]


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("tests/test_nothing.py::test_a", "tests/test_nothing.py does not exist"),
        (
            "tests/book/test_book.py::test_gone",
            "tests/book/test_book.py has no test_gone",
        ),
        (
            "tests/ops/test_ops.py::test_backends_agree[nonsense]",
            "there is no op nonsense",
        ),
        ("notebooks/99_nothing.ipynb#cell", "notebooks/99_nothing.ipynb has no source"),
        ("notebooks/01_overview.ipynb#no-such-cell", "has no cell 'no-such-cell'"),
        ("notebooks/01_overview.ipynb", "is neither a test nor a place"),
        ("notebooks/03_3_training.ipynb#prose", "has no cell 'prose'"),
        ("notebooks/zh/03_3_training.ipynb#learner", "has no cell 'learner'"),
        ("notebooks/text_generation.ipynb#model", "has no source"),
        ("README.md#text", "is neither a test nor a place"),
    ],
)
def test_a_reference_that_points_nowhere_is_seen(reference, problem):
    assert problem in fault(reference)


def test_a_reference_that_holds_is_accepted():
    assert (
        fault("tests/book/test_book.py::test_a_reference_that_holds_is_accepted")
        is None
    )
    assert fault("tests/ops/test_ops.py::test_backends_agree[add]") is None
    assert fault("notebooks/01_overview.ipynb#parts") is None
    assert fault("notebooks/zh/03_3_training.ipynb#prose") is None
