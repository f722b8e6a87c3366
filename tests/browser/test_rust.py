"""Rust as a reader meets it: folded below a cell, and in a cell of its own."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support import cargo
from tests.support.contrast import contrast
from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser

SOURCE = Path(__file__).resolve().parents[2] / "notebooks/src/03_1_model.py"
STRUCT = "@dataclass\nclass Point:\n    x: float\n\n    def double(self): return 2.0"
CELL = """%%rust -i x -o y
let y = x * 2.0;
println!("{}", y.to_data());"""

# The words of some code, as [word, color, font].
WORDS = """root => {
    const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const found = [];
    for (let node; (node = walk.nextNode()); ) {
        const style = getComputedStyle(node.parentElement);
        found.push([node.data.trim(), style.color, style.fontFamily]);
    }
    return found;
}"""
PAPER = """node => {
    for (; node; node = node.parentElement) {
        const paper = getComputedStyle(node).backgroundColor;
        if (!/, 0\\)$/.test(paper)) return paper;
    }
}"""
# What is wider than the place it stands in, so that the page would scroll sideways.
WIDER = """() => [document.scrollingElement, ...document.querySelectorAll(
    ".jp-WindowedPanel-outer, .jp-RenderedMarkdown")]
    .filter(node => node.scrollWidth > node.clientWidth + 1)
    .map(node => `${node.className}: ${node.scrollWidth} > ${node.clientWidth}`)"""


def numbers(color):
    return [float(part) for part in re.findall(r"[\d.]+", color)][:3]


def test_a_fold_opens_and_its_code_looks_like_other_code(open_book):
    build = pytest.importorskip("burnbook_widgets.build")
    cells = build.read_source(SOURCE).cells
    folds = [cell for cell in cells if "rust" in cell.metadata.get("tags", [])]
    (fold,) = [cell for cell in folds if "struct Model<" in cell.source]
    book = open_book("folds", [STRUCT, fold])
    page = book.page
    page.set_viewport_size({"width": 768, "height": 900})
    code = page.locator(".jp-RenderedMarkdown pre")
    code.wait_for(state="attached")
    assert not code.is_visible()
    summary = page.locator("summary")
    assert summary.inner_text() == "🦀 The same in Rust"
    summary.focus()
    page.keyboard.press("Enter")
    assert code.is_visible()
    for theme in ("Light", "Dark"):
        book.theme(theme)
        book.picture(f"fold_{theme.lower()}")
        words, cell = code.evaluate(WORDS), page.locator(".jp-CodeCell .cm-content")
        wait_until(lambda: "class" in [w for w, *_ in cell.evaluate(WORDS)])  # noqa: B023
        python = cell.evaluate(WORDS)
        paper = numbers(code.evaluate(PAPER))
        letters = [numbers(color) for word, color, *_ in words if word[:1].isalpha()]
        assert min(contrast(color, paper) for color in letters) > 3
        kinds = {word: style for word, *style in words}
        assert kinds["struct"] == next(s for word, *s in python if word == "class")
    assert page.evaluate(WIDER) == []
    assert book.faults == []


def test_a_cell_of_rust_prints_and_gives(open_book):
    place = cargo.folder_of_crates()
    there = {
        "HOME": str(Path.home()),  # where rustup has its compilers
        "PATH": os.environ["PATH"],
        "BURNBOOK_CACHE": str(place / "cells of tests"),
        "BURNBOOK_CRATES": str(place / "crates"),
        "CARGO_TARGET_DIR": str(place / "target"),
    }
    setup = (
        f"import os\nos.environ |= {there}\n%load_ext burnbook.rust\n"
        "from burnbook.prelude import *\nx = Tensor.from_floats([1.0, 2.0])"
    )
    cells = [setup, CELL, "print(y.to_data())", CELL.replace("2.0;", "two;")]
    book = open_book("rust", cells)
    book.run_all()
    wait_until(lambda: "cannot find value" in book.output(3), 600)
    book.in_both_themes("cell_of_rust")
    assert "[2.0, 4.0]" in book.output(1)
    assert "[2.0, 4.0]" in book.output(2)
    assert "the cell does not compile: 1 error, line 2" in book.output(3)
    assert "Traceback" not in book.output(3)
    assert book.faults == []
