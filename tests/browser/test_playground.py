"""The playground in a real JupyterLab, trained and changed by clicks and keys."""

from __future__ import annotations

import re

import pytest

from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser

PLAY = """
from burnbook_widgets import Playground

playground = Playground(points=120)
playground
"""
STATE = (
    "print('at', playground.running, playground.config.data, playground.config.hidden)"
)
AWAIT = """
import asyncio
playground.start()
for _ in range(200):
    await asyncio.sleep(0.05)
    if not playground.running:
        break
print("paused while awaiting:", not playground.running)
"""
PLANE = ".bb-play-plane"


def open_playground(open_book, name, *more):
    book = open_book(name, [PLAY, *more])
    book.wait_for_kernel()
    book.run_cell(0)
    book.page.wait_for_selector(".bb-play-chart svg")
    line = book.page.locator(".bb-play-line")

    def epoch():
        return int(re.match(r"Epoch (\d+)", line.inner_text()).group(1))

    return book, book.page, epoch


def button(page, name):
    return page.locator(".widget-button", has_text=re.compile(rf"^\W*{name}$"))


def blue(page):
    """How many pixels of the plane are more blue than red."""
    return page.locator(PLANE).evaluate(
        """plane => {
            const pen = plane.getContext("2d");
            const all = pen.getImageData(0, 0, plane.width, plane.height).data;
            let count = 0;
            for (let i = 0; i < all.length; i += 4) count += all[i + 2] > all[i] + 8;
            return count;
        }"""
    )


def test_train_pause_step_reset_and_settings(open_book):
    book, page, epoch = open_playground(
        open_book, "playground", STATE, "playground.close()"
    )
    button(page, "Step").click()
    wait_until(lambda: epoch() == 1)
    before = blue(page)
    button(page, "Train").click()
    wait_until(lambda: epoch() > 30)
    assert button(page, "Train").is_disabled()
    page.get_by_label("Data").select_option("circles")
    wait_until(lambda: epoch() < 30)
    wait_until(lambda: epoch() > 30)
    assert blue(page) != before
    button(page, "Pause").click()
    wait_until(lambda: button(page, "Pause").is_disabled())
    stood = epoch()
    page.wait_for_timeout(400)
    assert epoch() == stood
    book.in_both_themes("playground")
    page.get_by_label("Hidden").fill("3 2")
    page.keyboard.press("Enter")
    wait_until(lambda: epoch() == 0)
    page.get_by_label("Hidden").fill("3 x")
    page.keyboard.press("Enter")
    fault = page.locator(".bb-play .bb-fault")
    wait_until(lambda: "hidden is '3 x'" in fault.inner_text())
    button(page, "Code").click()
    code = page.locator(".bb-play-code")
    wait_until(lambda: code.is_visible())
    assert "hidden=[3, 2]" in code.input_value()
    button(page, "Reset").click()
    book.run_cell(1)
    wait_until(lambda: "at False circles [3, 2]" in book.output(1))
    book.run_cell(2)
    wait_until(lambda: page.locator(PLANE).count() == 0)
    assert page.locator("svg[aria-label^='circles, 120 points']").count() == 1
    assert book.faults == []


def test_keys_and_a_click_while_a_cell_awaits(open_book):
    book, page, epoch = open_playground(open_book, "playground_keys", AWAIT)
    plane = page.locator(PLANE)
    plane.focus()
    page.keyboard.press("s")
    wait_until(lambda: epoch() == 1)
    page.keyboard.press("Space")
    wait_until(lambda: epoch() > 10)
    page.keyboard.press("Space")
    wait_until(lambda: button(page, "Pause").is_disabled())
    page.keyboard.press("r")
    wait_until(lambda: epoch() == 0)
    book.run_cell(1)
    wait_until(lambda: epoch() > 10)
    button(page, "Pause").click()
    wait_until(lambda: "paused while awaiting: True" in book.output(1))
    assert epoch() < 180
    assert "test: loss" in plane.get_attribute("aria-label")
    assert book.faults == []
