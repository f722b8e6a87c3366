"""The tensor view in a real JupyterLab, driven by clicks and keys."""

from __future__ import annotations

import json

import pytest

from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser

SETUP = """
import numpy as np
from burnbook.prelude import *
from burnbook_widgets import TensorView
values = np.arange(120, dtype=np.float32).reshape(4, 5, 6) - 30
values[0, 1, 2], values[0, 2, 3], values[0, 4, 4] = np.nan, np.inf, -np.inf
view = TensorView(Tensor.from_data(values, Autodiff(Numpy())))
view
"""
LARGE = """
waves = np.sin(np.linspace(0, 9, 4000, dtype=np.float32))
large = TensorView(Tensor.from_data(waves[:, None] * waves))
large
"""
STATE = "print(view.dims, dict(view.index), view.colors, view.own_range, view.cell)"
OPTIONS = "from burnbook.tensor.display import get_print_options\nget_print_options()"
PIXELS = "document.querySelector('.bb-tensor-map canvas').toDataURL()"


def text_of(page, selector):
    return page.locator(selector).first.inner_text()


def changes(page, act):
    """Do something that makes the picture another one."""
    before = page.evaluate(PIXELS)
    act()
    wait_until(lambda: page.evaluate(PIXELS) != before)


def test_every_control_of_the_tensor_view_does_what_it_says(open_book):
    book = open_book("tensors", [SETUP, LARGE, STATE, OPTIONS, "view.close()"])
    page = book.page
    complaints: list[str] = []
    page.on(
        "console",
        lambda said: complaints.append(said.text) if said.type == "error" else None,
    )
    book.wait_for_kernel()
    for number in (0, 1):
        book.run_cell(number)
    wait_until(lambda: page.locator(".bb-tensor-map canvas").count() == 2, 40)
    cell, large = (page.locator(".jp-CodeCell").nth(number) for number in (0, 1))
    read_by_pointer_and_keys(book, cell)
    choose_what_is_shown(book, cell)
    turn_the_knobs(book, cell)
    read_a_block(book, large)
    assert len(json.dumps(book.save())) < 300_000
    leave_the_still_form(book, cell)
    assert book.faults == []
    assert complaints == []


def read_by_pointer_and_keys(book, cell):
    page, reading = book.page, ".bb-tensor-reading"
    canvas = cell.locator(".bb-tensor-map canvas")
    canvas.hover(position={"x": 70, "y": 46})
    wait_until(lambda: text_of(page, reading) == "[0, 0, 0] = -30.0")
    canvas.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    wait_until(lambda: text_of(page, reading) == "[0, 1, 2] = NaN")
    live = page.locator(".bb-tensor .bb-live").first
    wait_until(lambda: live.text_content() == "[0, 1, 2] = NaN")
    page.keyboard.press("Control+End")
    wait_until(lambda: text_of(page, reading) == "[0, 4, 5] = -1.0")
    book.picture("tensor_light")
    page.keyboard.press("Escape")
    wait_until(lambda: "arrow keys" in text_of(page, reading))


def choose_what_is_shown(book, cell):
    page, choices = book.page, cell.locator(".widget-dropdown select")
    cell.get_by_role("slider", name="dim 0").focus()
    changes(page, lambda: page.keyboard.press("ArrowRight"))
    changes(page, lambda: choices.nth(0).select_option("dim 0 (size 4)"))
    # dim 0 is in the rows, so now the two change places
    changes(page, lambda: choices.nth(1).select_option("dim 0 (size 4)"))
    changes(page, lambda: choices.nth(2).select_option("low to high"))
    changes(page, lambda: cell.locator(".widget-checkbox input").check())
    book.run_cell(2)
    wait_until(lambda: "(2, 0) {1: 0} low to high True None" in book.output(2))


def turn_the_knobs(book, cell):
    page, printed = book.page, cell.locator(".widget-html pre")
    assert "-30.0, -29.0" in printed.inner_text()
    cell.get_by_label("Precision").select_option("2")
    wait_until(lambda: "-30.00, -29.00" in printed.inner_text())
    number = cell.locator("input[type=number]")
    number.fill("10")
    number.press("Enter")
    cell.locator(".noUi-handle").last.focus()
    for _ in range(2):
        page.keyboard.press("ArrowLeft")
    wait_until(lambda: "[[[-30.00, ..., -25.00]," in printed.inner_text())
    cell.locator(".widget-button", has_text="Use everywhere").click()
    wait_until(lambda: "every tensor prints like this" in cell.inner_text())
    book.run_cell(3)
    told = "PrintOptions(precision=2, threshold=10, edge_items=1)"
    wait_until(lambda: told in book.output(3))
    cell.locator(".widget-button", has_text="Reset").click()
    wait_until(lambda: "-30.0, -29.0" in printed.inner_text())
    shown = "node => node.selectedOptions[0]?.label"
    precision = cell.get_by_label("Precision")
    wait_until(lambda: precision.evaluate(shown) == "shortest")


def leave_the_still_form(book, cell):
    book.run_cell(4)
    wait_until(lambda: cell.locator(".bb-tensor").count() == 0)
    wait_until(lambda: cell.locator(".jp-RenderedHTMLCommon svg").count() == 2)
    book.picture("tensor_still_dark")


def read_a_block(book, large):
    """Sixteen million elements: a cell says what it stands for."""
    large.locator(".bb-tensor-map canvas").hover(position={"x": 60, "y": 38})
    wait_until(lambda: "[0…28, 0…28]: 841 elements" in large.inner_text())
    assert "overview: a cell is the mean of 29 × 29 elements" in large.inner_text()
    large.get_by_role("button", name="zoom in").click()
    wait_until(lambda: "mean of 15 × 15" in large.inner_text())
    assert "of 4000 × 4000" in large.inner_text()
    large.locator(".bb-tensor-map canvas").focus()
    for shown in ("8 × 8", "4 × 4", "2 × 2"):
        book.page.keyboard.press("+")
        wait_until(lambda shown=shown: f"mean of {shown}" in large.inner_text())
    book.page.keyboard.press("+")
    wait_until(lambda: "mean of" not in large.inner_text())  # true values
    book.theme("Dark")
    book.picture("tensor_dark")
    large.get_by_role("button", name="the whole plane").click()
    wait_until(lambda: "mean of 29 × 29" in large.inner_text())
