"""The graph view in a real JupyterLab, walked through by clicks and keys."""

from __future__ import annotations

import re

import pytest

from tests.support.waiting import wait_until

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
    wait_until(lambda: "the gradient of b [1, 1] is complete" in caption.inner_text())
    box(page, "x").click()
    page.keyboard.press("ArrowDown")
    assert page.evaluate(FOCUSED).startswith("matmul,")
    page.keyboard.press("ArrowUp")
    assert page.evaluate(FOCUSED).startswith("x,")
    page.get_by_role("slider").first.focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    wait_until(lambda: "Step 8 of 14, back:" in caption.inner_text())
    book.in_both_themes("graph_back")
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


GROUPS = """
from burnbook.prelude import *
from burnbook import nn
from burnbook_widgets import GraphView

class Block(Module):
    first: nn.Linear
    second: nn.Linear

    def forward(self, x):
        return x + self.second.forward(self.first.forward(x).relu())

class Net(Module):
    blocks: list[Block]

    def forward(self, x):
        for block in self.blocks:
            x = block.forward(x)
        return x

device = Autodiff(Numpy())
def linear():
    return nn.LinearConfig(8, 8).init(device)

net = Net([Block(linear(), linear()) for _ in range(24)])
view = GraphView(net.forward(Tensor.ones([4, 8], device)).square().mean(), net=net)
view
"""
# The chosen box, or the one that the step is about, lies in the picture's frame.
IN_SIGHT = """(selector) => {
    const frame = document.querySelector(".bb-graph-floor").getBoundingClientRect();
    const box = document.querySelector(selector).getBoundingClientRect();
    return box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1
        && box.left >= frame.left - 1 && box.right <= frame.right + 1;
}"""
# Texts that are wider than the boxes that they stand in.
TOO_WIDE = """() => [...document.querySelectorAll(".bb-graph-box")].flatMap((group) => {
    const room = group.querySelector("rect").getBBox().width;
    return [...group.querySelectorAll("text")]
        .filter((text) => text.getComputedTextLength() > room)
        .map((text) => text.textContent);
})"""


def test_groups_open_and_close_and_the_chosen_box_stays_in_sight(open_book):
    """N13: 24 blocks are more steps than one can tell apart; texts left their boxes."""
    book = open_book("graph_groups", ["", GROUPS, STEP, "view.close()"])
    book.wait_for_kernel()
    book.run_cell(1)
    page = book.page
    page.wait_for_selector(BOX)
    chosen = f'{BOX}[aria-pressed="true"]'
    wait_until(lambda: page.evaluate(IN_SIGHT, chosen))
    assert page.locator(BOX).count() < 60
    assert page.evaluate(TOO_WIDE) == []
    group = page.locator(f'{BOX}[aria-label^="group net.blocks.20, closed"]')
    group.click()
    opened = page.get_by_role("button", name="close net.blocks.20", exact=True)
    opened.wait_for()
    wait_until(lambda: page.evaluate(IN_SIGHT, chosen))
    page.get_by_role("button", name="larger").click()
    page.get_by_text("125 %").wait_for()
    page.locator(chosen).focus()
    page.keyboard.press("0")
    wait_until(lambda: "125 %" not in page.locator(".bb-graph-bar").inner_text())
    page.keyboard.press("Home")
    for _ in range(9):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(80)
    caption = page.locator(".bb-graph-caption")
    wait_until(lambda: "Step 9 of" in caption.inner_text())
    assert page.evaluate(IN_SIGHT, ".bb-graph-now")
    page.get_by_role("button", name="close every group").click()
    wait_until(lambda: page.locator(BOX).count() < 6)
    book.in_both_themes("graph_groups")
    assert book.faults == []
