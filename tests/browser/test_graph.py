"""The graph view in a real JupyterLab, walked through by clicks and keys."""

from __future__ import annotations

import re
import time

import pytest

pytestmark = pytest.mark.browser

GRAPH = """
from burnbook.prelude import *
from burnbook_widgets import GraphView

device = Autodiff(Numpy())
x = Tensor[2].from_data([[1.0, 2.0], [3.0, 4.0]], device)
w = Tensor[2].from_data([[0.5], [-0.5]], device).require_grad()
b = Tensor[2].from_data([[0.1]], device).require_grad()
y = (x @ w + b).tanh()
loss = (y * y * 2.0).mean()
view = GraphView(loss)
view
"""
STEP = "print('at', view.step, 'of', view.steps, view.parts[view.chosen].called)"
BOX = ".bb-graph-box"
FOCUSED = "document.activeElement.getAttribute('aria-label')"


def wait_until(true, seconds=20.0):
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, "waited in vain"
        time.sleep(0.05)


def open_graph(open_book, name):
    book = open_book(name, [GRAPH, STEP, "view.close()"])
    book.wait_for_kernel()
    book.run_cell(0)
    book.page.wait_for_selector(BOX)
    return book, book.page, book.page.locator(".bb-graph-caption")


def button(page, name):
    return page.locator(".widget-button", has_text=re.compile(rf"^\W*{name}$"))


def box(page, name):
    return page.locator(f'{BOX}[aria-label^="{name},"]')


def test_keys_walk_through_steps_and_parts(open_book):
    book, page, caption = open_graph(open_book, "graph_keys")
    assert page.locator(BOX).count() == 10
    box(page, "w").click()
    page.keyboard.press("Home")
    wait_until(lambda: "Step 0 of 14" in caption.inner_text())
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    wait_until(lambda: "tanh makes y [2, 1] from add" in caption.inner_text())
    page.keyboard.press("End")
    wait_until(lambda: "Step 14 of 14" in caption.inner_text())
    page.keyboard.press("ArrowLeft")
    wait_until(lambda: "the gradient of b [1, 1] is whole" in caption.inner_text())
    box(page, "x").click()
    page.keyboard.press("ArrowDown")
    assert page.evaluate(FOCUSED).startswith("matmul,")
    page.keyboard.press("ArrowUp")
    assert page.evaluate(FOCUSED).startswith("x,")
    page.get_by_role("slider").first.focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    wait_until(lambda: "Step 8 of 14, back:" in caption.inner_text())
    for theme in ("Light", "Dark"):
        book.theme(theme)
        book.picture(f"graph_back_{theme.lower()}")
    book.run_cell(1)
    wait_until(lambda: "at 8 of 14 mul 2" in book.output(1))
    assert book.faults == []


def test_clicks_walk_choose_and_leave_a_still_picture(open_book):
    book, page, caption = open_graph(open_book, "graph_clicks")
    label = box(page, "y = tanh").get_attribute("aria-label")
    assert "gradient −0.76 −0.76" in label
    button(page, "Start").click()
    wait_until(lambda: "Step 0 of 14" in caption.inner_text())
    assert box(page, "y = tanh").get_attribute("aria-label") == "y = tanh, [2, 1]"
    assert button(page, "Back").is_disabled()
    button(page, "Forward").click()
    wait_until(lambda: "matmul makes [2, 1] from x and w" in caption.inner_text())
    box(page, "w").click()
    facts = page.locator(".bb-graph-facts")
    wait_until(lambda: "asks for its gradient" in facts.inner_text())
    assert "not there yet" in facts.inner_text()
    button(page, "Back").click()
    wait_until(lambda: "Step 0 of 14" in caption.inner_text())
    button(page, "End").click()
    wait_until(lambda: "Step 14 of 14" in caption.inner_text())
    book.run_cell(2)
    wait_until(lambda: page.locator(BOX).count() == 0)
    assert page.locator("svg[aria-label^='GraphView(loss = mean']").count() == 1
    assert book.faults == []
