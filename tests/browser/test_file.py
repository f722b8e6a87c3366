"""The file view in a real JupyterLab, driven by clicks and keys."""

from __future__ import annotations

import re

import pytest

from tests.browser import views
from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser

TREE = """
import tempfile
from burnbook.prelude import *
from burnbook.examples.guide.model import ModelConfig
from burnbook.record import DefaultRecorder
from burnbook_widgets import FileView

model = ModelConfig(10, 512).init(Numpy())
path = model.save_file(tempfile.mkdtemp() + "/digits", DefaultRecorder())
view = FileView(path)
view
"""
MANY = """
import json, struct, tempfile
from pathlib import Path
from burnbook_widgets import FileView

names = [f"layers.{k // 100}.w{k % 100}" for k in range(100_000)]
held = {
    name: {"dtype": "F32", "shape": [1], "data_offsets": [4 * at, 4 * at + 4]}
    for at, name in enumerate(names)
}
head = json.dumps(held).encode()
head += b" " * (-len(head) % 8)
path = Path(tempfile.mkdtemp()) / "many.safetensors"
path.write_bytes(struct.pack("<Q", len(head)) + head + bytes(4 * len(names)))
view = FileView(path)
view.unfold_all()
view
"""
SELECTED = "print('selected', view.selected, 'known', sorted(view._known))"
ROW = ".bb-file-rows .bb-file-row"
ACTIVE = """() => document.getElementById(
    document.activeElement.getAttribute("aria-activedescendant"),
).getAttribute("aria-label")"""


def rows(page):
    told = "rows => rows.map(row => row.getAttribute('aria-label'))"
    return page.locator(ROW).evaluate_all(told)


def open_view(open_book, name, cell, *more):
    book = open_book(name, [cell, *more])
    book.wait_for_kernel()
    book.run_cell(0)
    book.page.wait_for_selector(".bb-file", timeout=60_000)
    return book, book.page


def test_keys_walk_fold_and_read_a_tensor(open_book):
    book, page = open_view(open_book, "file_keys", TREE, SELECTED)
    page.wait_for_selector(ROW)
    assert rows(page)[0] == "conv1, 2 tensors, 320 B"
    page.locator(".bb-file-list").focus()
    page.keyboard.press("ArrowDown")
    wait_until(lambda: page.evaluate(ACTIVE).startswith("weight, [8, 1, 3, 3]"))
    page.keyboard.press("ArrowDown")
    assert page.evaluate(ACTIVE).startswith("bias")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(ACTIVE).startswith("conv1")
    page.keyboard.press("ArrowLeft")
    wait_until(lambda: rows(page)[1].startswith("conv2"))
    page.keyboard.press("ArrowRight")
    wait_until(lambda: rows(page)[1].startswith("weight"))
    tensor = page.locator(".bb-file-tensor")
    assert "only then is it read" in tensor.inner_text()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.locator(".bb-file-bars").wait_for()
    assert "conv1.weight" in tensor.inner_text()
    assert page.locator(".bb-file-bars").get_attribute("aria-label").startswith("hist")
    assert page.locator(f'{ROW}[aria-selected="true"]').count() == 1
    page.keyboard.press("End")
    assert page.evaluate(ACTIVE).startswith("bias, [10]")
    page.keyboard.press("Home")
    assert page.evaluate(ACTIVE).startswith("conv1")
    book.in_both_themes("file_tree")
    book.run_cell(1)
    told = "selected conv1.weight known ['conv1.weight']"  # no other one was read
    wait_until(lambda: told in book.output(1))
    assert book.faults == []


def test_clicks_find_fold_and_leave_a_still_form(open_book):
    book, page = open_view(open_book, "file_clicks", TREE, "view.close()")
    page.wait_for_selector(ROW)
    page.get_by_label("Find").fill("linear2.b")
    page.keyboard.press("Enter")
    wait_until(lambda: len(rows(page)) == 1)
    page.locator(ROW).click()
    wait_until(lambda: "linear2.bias" in page.locator(".bb-file-tensor").inner_text())
    page.get_by_label("Find").fill("")
    page.keyboard.press("Enter")
    wait_until(lambda: len(rows(page)) > 8)
    page.locator(".widget-button", has_text=re.compile(r"^\W*Fold all$")).click()
    wait_until(lambda: len(rows(page)) == 4)
    page.locator(ROW).nth(1).click()
    wait_until(lambda: len(rows(page)) == 6)
    page.set_viewport_size({"width": 560, "height": 960})
    page.wait_for_timeout(500)
    book.picture("file_narrow_light")
    list_box = page.locator(".bb-file-table").bounding_box()
    output = page.locator(".jp-OutputArea").first.bounding_box()
    assert list_box["x"] + list_box["width"] <= output["x"] + output["width"] + 1
    book.run_cell(1)
    wait_until(lambda: page.locator(ROW).count() == 0)
    assert "linear2.bias" in book.output(0)  # the still form took the place
    assert book.faults == []


def test_a_hundred_thousand_tensors_scroll(open_book):
    book, page = open_view(open_book, "file_many", MANY)
    page.wait_for_selector(ROW)
    assert page.locator(ROW).count() < 60
    page.locator(".bb-file-list").focus()
    page.keyboard.press("End")
    wait_until(lambda: rows(page)[-1].startswith("w99, [1]"))
    page.keyboard.press("ArrowLeft")  # its group, which is a hundred rows above
    wait_until(lambda: page.evaluate(ACTIVE).startswith("999, 100 tensors"))
    middle = "list => { list.scrollTop = list.scrollHeight / 2; }"
    page.locator(".bb-file-list").evaluate(middle)
    wait_until(lambda: any(label.startswith(("49", "50", "w")) for label in rows(page)))
    wait_until(lambda: "not there yet" not in rows(page))
    page.locator(ROW).nth(3).click()
    wait_until(lambda: page.locator(f'{ROW}[aria-selected="true"]').count() == 1)
    assert page.locator(ROW).count() < 60
    assert book.faults == []


def test_what_is_selected_before_the_view_is_shown_is_in_sight(open_book):
    far = MANY.removesuffix("view\n") + "view.selected = 'layers.700.w3'\nview\n"
    book, page = open_view(open_book, "file_far", far)
    chosen = page.locator(f'{ROW}[aria-selected="true"]')
    chosen.wait_for()
    assert chosen.get_attribute("aria-label").startswith("w3, [1]")
    list_box = page.locator(".bb-file-list").bounding_box()
    row_box = chosen.bounding_box()
    assert list_box["y"] <= row_box["y"] < list_box["y"] + list_box["height"] - 20
    names = page.locator(".bb-file-names > span").nth(1).bounding_box()
    shape = chosen.locator("> span").nth(1).bounding_box()
    assert abs(names["x"] - shape["x"]) < 1  # each column stands below its name
    assert book.faults == []


def test_a_list_is_as_high_as_its_rows_and_says_that_there_are_none(open_book):
    nothing = MANY.replace("range(100_000)", "range(0)").replace("4 * len(names)", "0")
    book, page = open_view(open_book, "file_none", nothing)
    page.get_by_text("the file holds no tensors").wait_for()
    assert page.locator(".bb-file-list").bounding_box()["height"] < 110
    assert page.locator(".bb-file-tensor").inner_text() == ""
    assert book.faults == []


def test_a_click_on_a_node_goes_to_its_line(open_book):
    cells = [views.SETUP, views.CELLS["FileView, graph"] + "view.node = ''\nview"]
    book = open_book("file_graph", [*cells, "print('node', view.node, view.line)"])
    book.wait_for_kernel()
    book.run_cell(0)
    book.run_cell(1)
    page = book.page
    box = page.locator(".bb-graph-box")
    wait_until(lambda: box.count() == 5)
    node = page.locator('.bb-graph-box[aria-label^="Relu, [1, 8]"]')
    node.wait_for()  # its shape follows from those of others
    node.click()
    line = page.locator(".bb-file-meant")
    wait_until(lambda: line.count() == 1 and "ops.relu(" in line.inner_text())
    facts = page.locator(".bb-file-node")
    assert "f32 [1, 8]" in facts.inner_text()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    wait_until(lambda: "self.fc2.forward" in line.inner_text())
    page.get_by_role("button", name="larger").click()
    page.get_by_text("125 %").wait_for()
    book.in_both_themes("file_graph")
    book.run_cell(2)
    wait_until(lambda: "node /fc2/MatMul (" in book.output(2))
    page.get_by_role("button", name="Tensors").click()
    page.wait_for_selector(ROW)
    wait_until(lambda: rows(page)[0].startswith("fc1.weight"))
    page.get_by_role("button", name="Graph").click()
    wait_until(lambda: page.locator(".bb-graph-floor").is_visible())
    assert book.faults == []
