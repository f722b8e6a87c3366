"""The module tree in a real JupyterLab, driven by clicks and keys."""

from __future__ import annotations

import re

import pytest

from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser

TREE = """
from burnbook.prelude import *
from burnbook.examples.guide.model import ModelConfig
from burnbook_widgets import ModuleTree

tree = ModuleTree(ModelConfig(10, 512).init(Autodiff(Numpy())), [1, 28, 28])
tree
"""
FROZEN = """
print("frozen:", [n for n, p in tree.module.named_params() if not p.is_require_grad])
"""
ROW = ".bb-tree-rows .bb-tree-row"
HIDDEN = "box => box.scrollWidth - box.clientWidth"
FOCUSED = "document.activeElement.dataset.path"


def paths(page):
    rows = "rows => rows.map(row => row.dataset.path)"
    return page.locator(ROW).evaluate_all(rows)


def open_tree(open_book, name, *more):
    book = open_book(name, [TREE, *more])
    book.wait_for_kernel()
    book.run_cell(0)
    book.page.wait_for_selector(ROW)
    return book, book.page


def test_keys_walk_fold_unfold_and_freeze(open_book):
    book, page = open_tree(open_book, "tree_keys", FROZEN)
    assert len(paths(page)) == 8
    facts = page.locator(".bb-tree-facts")
    page.locator(ROW).first.focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate(FOCUSED) == "conv1"
    wait_until(lambda: "Conv2d" in facts.inner_text())
    page.keyboard.press("ArrowRight")
    wait_until(lambda: "conv1.weight" in paths(page))
    assert page.evaluate(FOCUSED) == "conv1"  # focus outlives the redrawing
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(FOCUSED) == "conv1.bias"
    page.keyboard.press("f")
    frozen = page.locator(f'{ROW}[data-path="conv1.bias"] .bb-tree-frozen')
    frozen.wait_for()
    assert "◐ partly" in page.locator(ROW).first.inner_text()
    book.in_both_themes("tree")
    page.locator(f'{ROW}[data-path="conv1.bias"]').focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(FOCUSED) == "conv1"
    page.keyboard.press("ArrowLeft")
    wait_until(lambda: len(paths(page)) == 8)
    page.keyboard.press("End")
    assert page.evaluate(FOCUSED) == "activation"
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    wait_until(lambda: paths(page) == [""])
    page.keyboard.press("Space")
    wait_until(lambda: len(paths(page)) == 8)
    book.run_cell(1)
    wait_until(lambda: "frozen: ['conv1.bias']" in book.output(1))
    assert book.faults == []


def test_every_column_is_in_sight_on_a_small_screen(open_book):
    book, page = open_tree(open_book, "tree_small")
    stage = page.locator(".bb-tree-stage")
    for wide in (1280, 768):
        page.set_viewport_size({"width": wide, "height": 900})
        wait_until(lambda: stage.evaluate(HIDDEN) <= 0)
        book.in_both_themes(f"tree_{wide}")
    assert book.faults == []


def test_clicks_choose_fold_freeze_and_find(open_book):
    book, page = open_tree(open_book, "tree_clicks", FROZEN, "tree.close()")

    def button(name):
        return page.locator(".widget-button", has_text=re.compile(rf"^\W*{name}$"))

    line = page.locator(f'{ROW}[data-path="linear1"]')
    line.locator(".bb-tree-fold").click()
    wait_until(lambda: "linear1.weight" in paths(page))
    line.click()
    wait_until(lambda: "524,800" in page.locator(".bb-tree-facts").inner_text())
    button("Freeze").click()
    line.locator(".bb-tree-frozen").wait_for()
    assert button("Freeze").is_disabled()
    assert "524,800 frozen" in page.locator(".bb-tree-head").inner_text()
    book.run_cell(1)
    wait_until(lambda: "['linear1.weight', 'linear1.bias']" in book.output(1))
    button("Unfreeze").click()
    wait_until(lambda: line.locator(".bb-tree-learns").count() == 1)
    button("Unfold all").click()
    wait_until(lambda: len(paths(page)) == 16)
    button("Fold all").click()
    wait_until(lambda: len(paths(page)) == 8)
    page.get_by_label("Find").fill("bias")
    page.keyboard.press("Enter")
    wait_until(lambda: "conv2.bias" in paths(page) and "pool" not in paths(page))
    book.picture("tree_found_light")
    page.get_by_label("Find").fill("")
    page.keyboard.press("Enter")
    wait_until(lambda: len(paths(page)) == 8)
    book.run_cell(2)
    wait_until(lambda: page.locator(ROW).count() == 0)
    assert "▸ conv1" in book.output(0)  # the still form took the place
    book.picture("tree_closed_light")
    assert book.faults == []
