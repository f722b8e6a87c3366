"""The convolution and attention views in a real JupyterLab, by clicks and keys."""

from __future__ import annotations

import pytest

from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser

CONVOLUTION = """
import numpy as np
from burnbook.backend import Numpy
from burnbook.nn import Conv2dConfig
from burnbook_widgets import AttentionView, ConvolutionView

picture = np.arange(49).reshape(7, 7) % 5
view = ConvolutionView(picture, [[1, 0, -1], [2, 0, -2], [1, 0, -1]])
view
"""
LAYER = """
layer = Conv2dConfig([2, 3], [3, 3]).init(Numpy())
other = ConvolutionView(np.ones((2, 5, 5)), layer)
other
"""
STATE = "print(view.at, view.stride, view.padding, view.dilation)"
ATTENTION = """
weights = np.random.default_rng(1).dirichlet(np.ones(5), (2, 5))
looks = AttentionView(weights, ["one", "two", "three", "four", "five"])
looks
"""
LOOKS = "print(looks.head, looks.query, looks.key, '|', looks.reading)"


def shown(page, text):
    """Wait for a text among the outputs."""
    wait_until(lambda: page.locator(".jp-OutputArea", has_text=text).count() > 0)


def says(book, cell, code_says):
    """Run a cell that prints, until it says what the page shows.

    Why: while the kernel is busy the page keeps its last change back, so that a cell
    may run before it arrives.
    """

    def said():
        book.run_cell(cell)
        try:
            wait_until(lambda: code_says in book.output(cell), seconds=3.0)
        except AssertionError:
            return False
        return True

    wait_until(said)


def pixels(page, part):
    return page.evaluate(
        "part => document.querySelector(`${part} canvas`).toDataURL()", part
    )


def test_windows_and_rows_are_read_by_keys_clicks_and_sliders(open_book):
    cells = [CONVOLUTION, STATE, LAYER, "view.close()"]
    cells += [ATTENTION, LOOKS, "looks.close()"]
    book = open_book("layers", cells)
    book.wait_for_kernel()
    book.run_cell(0)
    move_the_window(book)
    turn_the_knobs(book)
    choose_channels(book)
    book.run_cell(3)
    wait_until(lambda: book.page.locator(".bb-conv").count() == 1)
    assert "output[2, 2] is the sum" in book.output(0)  # the still form took the place
    book.run_cell(4)
    read_rows(book)
    choose_heads(book)
    book.run_cell(6)
    wait_until(lambda: book.page.locator(".bb-look").count() == 0)
    assert "“one” attends to" in book.output(4)  # the still form took the place
    assert book.faults == []


def move_the_window(book):
    page = book.page
    page.wait_for_selector(".bb-conv-output canvas")
    shown(page, "output[0, 0]")
    before = pixels(page, ".bb-conv-input")
    page.locator(".bb-conv-output canvas").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    shown(page, "output[2, 1]")
    shown(page, "0·1 + 1·0 + 2·(−1) + 2·2 + 3·0 + 4·(−2) + 4·1 + 0·0 + 1·(−1)")
    assert pixels(page, ".bb-conv-input") != before
    live = page.locator(".bb-conv .bb-live")
    wait_until(lambda: live.text_content() == "row 2, column 1: −3")
    page.keyboard.press("Control+End")
    shown(page, "output[4, 4]")
    page.keyboard.press("Space")  # on and on, row by row: here it stays at the end
    shown(page, "output[4, 4]")


def turn_the_knobs(book):
    page = book.page
    page.locator(".bb-conv-output canvas").click(position={"x": 60, "y": 15})
    shown(page, "output[0, 1]")
    page.locator(".bb-conv-input canvas").click(position={"x": 150, "y": 150})
    shown(page, "output[2, 2]")
    for name, key in (("Padding", "ArrowRight"), ("Stride", "ArrowRight")):
        page.get_by_role("slider", name=name).focus()
        page.keyboard.press(key)
    shown(page, "output · 4 × 4")
    page.get_by_role("slider", name="Position").focus()
    page.keyboard.press("End")
    shown(page, "output[3, 3]")
    says(book, 1, "(3, 3) (2, 2) (1, 1) (1, 1)")
    page.get_by_role("slider", name="Padding").focus()
    page.keyboard.press("Home")
    shown(page, "output · 3 × 3")
    dilation = page.get_by_role("slider", name="Dilation")
    dilation.focus()
    page.keyboard.press("End")
    alert = page.locator(".bb-conv .bb-fault")
    wait_until(lambda: "a window of 9 rows does not fit" in alert.inner_text())
    wait_until(lambda: dilation.get_attribute("aria-valuetext") == "1")  # put back
    book.in_both_themes("convolution")


def choose_channels(book):
    page = book.page
    book.run_cell(2)
    shown(page, "kernel, channel 0 → 0")
    page.get_by_label("Out channel").select_option("2")
    page.get_by_label("In channel").select_option("1")
    shown(page, "kernel, channel 1 → 2")
    shown(page, "(other channel)")


def read_rows(book):
    page = book.page
    canvas = page.locator(".bb-look-map canvas")
    canvas.wait_for()
    reading = page.locator(".bb-look-reading")
    assert reading.inner_text().startswith("“one” attends to")
    canvas.focus()
    page.keyboard.press("ArrowDown")
    wait_until(lambda: reading.inner_text().startswith("“two” attends to"))
    page.keyboard.press("ArrowRight")
    wait_until(lambda: reading.inner_text().startswith("“two” attends to “one”:"))
    live = page.locator(".bb-look .bb-live")
    wait_until(lambda: live.text_content() == reading.inner_text())
    says(book, 5, "None 1 0 | “two” attends to “one”:")
    box = canvas.bounding_box()
    canvas.hover(position={"x": box["width"] - 40, "y": box["height"] - 10})
    wait_until(lambda: reading.inner_text().startswith("“five” attends to “five”:"))


def choose_heads(book):
    page, reading = book.page, book.page.locator(".bb-look-reading")
    page.locator(".bb-look-heads button", has_text="head 1").click()
    shown(page, "head 1 of 0 … 1")
    says(book, 5, "1 4 4 | “five” attends to “five”:")
    chosen = page.locator('.bb-look-heads [aria-pressed="true"]')
    assert chosen.inner_text() == "head 1"
    page.get_by_label("Head", exact=True).select_option("mean of all")
    shown(page, "mean of 2 heads")
    page.get_by_role("slider", name="Query").focus()
    page.keyboard.press("Home")
    wait_until(lambda: reading.inner_text().startswith("“one” attends to"))
    page.locator(".bb-look-map canvas").focus()
    page.keyboard.press("Escape")
    assert page.locator(".bb-look table tbody tr").count() == 5
    book.in_both_themes("attention")
