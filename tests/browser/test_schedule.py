"""The plot of schedules in a real JupyterLab, turned and read by clicks and keys."""

from __future__ import annotations

import re

import pytest

from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser

PLOT = """
from burnbook import lr_scheduler
from burnbook_widgets import SchedulePlot

linear = lr_scheduler.LinearLrSchedulerConfig(0.8, 0.1, 50)
cosine = lr_scheduler.CosineAnnealingLrSchedulerConfig(0.8, 50).with_min_lr(0.1)
plot = SchedulePlot([linear, cosine])
plot
"""
STATE = "print('at', plot.at, plot['linear'].num_iters, plot.shown, plot.log)"
STAGE = ".bb-rates-stage"


def test_sliders_boxes_keys_and_the_pointer(open_book):
    book = open_book("schedule", [PLOT, STATE, "plot.close()"])
    book.wait_for_kernel()
    book.run_cell(0)
    page = book.page
    page.wait_for_selector(f"{STAGE} path.bb-rates-1")
    stage, tip = page.locator(STAGE), page.locator(".bb-rates-tip")
    assert "linear from 0.8 to 0.1" in stage.get_attribute("aria-label")
    stage.focus()
    for key in ("Home", "ArrowRight", "ArrowRight", "PageUp", "ArrowLeft"):
        page.keyboard.press(key)
    wait_until(lambda: "step 11" in tip.inner_text())
    assert "linear 0.646" in tip.inner_text()
    live = page.locator(".bb-rates .bb-live")
    assert live.inner_text().startswith("step 11, linear 0.646")
    stage.hover(position={"x": 500, "y": 150})
    wait_until(lambda: "step 11" not in tip.inner_text())
    page.get_by_role("slider", name="num iters").first.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.get_by_role("checkbox", name="cosine").uncheck()
    wait_until(lambda: page.locator(f"{STAGE} path.bb-rates-1").count() == 0)
    page.locator(".widget-button", has_text=re.compile("Log scale")).click()
    page.get_by_text("learning rate, logarithmic").wait_for()
    book.in_both_themes("schedule")
    book.run_cell(1)
    wait_until(lambda: "at 11 48 ['linear'] True" in book.output(1))
    book.run_cell(2)
    wait_until(lambda: page.locator(STAGE).count() == 0)
    assert "LinearLrSchedulerConfig(initial_lr=0.8" in book.output(0)
    assert book.faults == []


OFF_STEP = """
plot = SchedulePlot({
    "exp": lr_scheduler.ExponentialLrSchedulerConfig(3e-4, 0.9995),
    "a schedule whose name is much longer than the others": 1.23456e-5,
}, steps=10_000)
plot
"""
NUMBERS = "print('numbers', plot['exp'].initial_lr, plot['exp'].gamma)"


def test_what_is_shown_stays_to_the_last_digit(open_book):
    """N2 and N3: numbers between the places of a slider, typed ones, refused ones."""
    book = open_book("schedule_numbers", [PLOT, OFF_STEP, NUMBERS, "plot.close()"])
    book.wait_for_kernel()
    for cell in range(3):
        book.run_cell(cell)
    page = book.page
    wait_until(lambda: "numbers 0.0003 0.9995" in book.output(2))
    cell = page.locator(".jp-CodeCell").nth(1)
    box = cell.get_by_label("gamma, value")
    assert box.input_value() == "0.9995"
    assert cell.get_by_label("initial lr, value").input_value() == "3e-4"
    labels = cell.locator(f"{STAGE} text.bb-rates-end").all_text_contents()
    assert len(labels) > 3
    assert len(set(labels)) == len(labels)
    for typed in ("0.99951234", "2"):  # a factor of 2 is none: it is refused
        box.fill(typed)
        box.press("Enter")
        page.wait_for_timeout(400)
    wait_until(lambda: box.input_value() == "0.99951234")
    assert "gamma is 2" in cell.locator(".bb-rates .bb-fault").inner_text()
    slider = cell.get_by_role("slider", name="initial lr")
    slider.focus()
    page.keyboard.press("ArrowRight")
    wait_until(lambda: cell.get_by_label("initial lr, value").input_value() != "3e-4")
    book.run_cell(2)
    wait_until(lambda: "numbers 0.000301 0.99951234" in book.output(2))
    book.in_both_themes("schedule_numbers")
    assert book.faults == []
