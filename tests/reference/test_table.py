"""No function of the book is missing from the table."""

import io
import re

import pytest

from burnbook.reference import stubs, table
from burnbook.tensor import Tensor, activation

SECTIONS = (
    "Basic", "Numeric", "Float", "Int", "Bool", "Quantization", "Activation",
)  # fmt: skip


def test_every_function_of_the_book_is_present():
    missing = [row for row in table.rows() if not row.present]
    assert not missing, [(row.section, row.name) for row in missing]


def test_every_row_can_be_called_or_read():
    for row in table.rows():
        home = table.HOMES.get(row.section, Tensor)
        found = getattr(home, row.name)
        assert callable(found) or row.name in ("shape", "dtype", "rank", "at"), row
        assert row.name == "rank" or found.__doc__, f"{row.name} explains nothing"


def test_the_table_prints():
    out = io.StringIO()
    assert stubs.main(["--table"], out) == 0
    lines = out.getvalue().splitlines()
    assert lines[0].split()[:2] == ["Burn", "here"]
    assert len(lines) == len(table.rows()) + 2
    assert re.fullmatch(r"(\d+) of \1 functions are present", lines[-1])
    matmul = next(line for line in lines if line.startswith("matmul"))
    assert matmul.split() == [
        "matmul", "matmul", "float", "book", "FF>F", "II>I", "yes", "matmul",
    ]  # fmt: skip


def test_a_missing_function_is_noticed(monkeypatch):
    monkeypatch.setitem(table.BOOK, "basic", "cat:cat nonsense")
    row = next(row for row in table.rows() if row.burn == "nonsense")
    assert not row.present
    assert "MISSING" in table.text()


def test_the_table_holds_every_row_of_the_real_book(shared):
    book = shared / "book" / "burn_book_0.15.txt"
    if not book.is_file():
        pytest.skip("the book's text is not there")
    known = {(row.section, row.burn) for row in table.rows() if row.edition == "book"}
    found = list(rows_of_the_book(book.read_text("utf-8")))
    assert len(found) > 150
    lost = [pair for pair in found if pair not in known]
    assert not lost, lost


def test_activations_take_a_tensor_first():
    for row in table.rows():
        if row.section == "activation":
            function = getattr(activation, row.name)
            assert next(iter(function.__annotations__.values())) is Tensor


def rows_of_the_book(text):
    """(section, function) for each row of the tables of tensor operations."""
    for section in SECTIONS:
        title = f"{section} {'Functions' if section == 'Activation' else 'Operations'}"
        part = text[text.index(f"\n{title}\n") :]
        part = part[part.index("---|---|") :]
        for line in part.splitlines()[1:]:
            if "|" not in line:
                break
            cell = line.split("|")[0]
            for name in re.findall(r"(?:ensor|activation)(?:::|\.)(\w+)\(", cell):
                yield section.lower(), name
