"""The closeness view in a real JupyterLab, driven by clicks and keys."""

from __future__ import annotations

import pytest

from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser

LAYERS = """
import numpy as np
from burnbook_widgets import ClosenessView

names = ["conv1.weight", "conv1.bias", "norm.gamma", "linear.weight", "linear.bias"]
a = {name: np.linspace(-1, 1, 96).reshape(8, 12) for name in names}
b = {name: array.copy() for name, array in a.items()}
b["norm.gamma"][2, :4] += 0.02
b["linear.weight"] += 0.3 * np.sin(np.arange(96)).reshape(8, 12)
b["linear.bias"] = np.ones(3)
b["conv1.bias"] += 1e-7
view = ClosenessView(a, b)
view
"""
ROWS = ".bb-close-list tbody tr"


def rows(page):
    return page.locator(f"{ROWS} .bb-name").all_inner_texts()


def open_view(open_book, name, *more):
    book = open_book(name, [LAYERS, *more])
    book.wait_for_kernel()
    book.run_cell(0)
    book.page.wait_for_selector(ROWS)
    return book, book.page.locator(".bb-close-ladder .bb-close-title")


def test_a_layer_is_chosen_by_click_and_by_keys(open_book):
    book, title = open_view(
        open_book,
        "closeness",
        "view.close()",
        "ClosenessView(np.float32([1, 2, 3]), np.float32([1, 2.001, 3.5]))",
    )
    page = book.page
    assert "norm.gamma" in title.inner_text()  # the first difference
    assert page.locator(".bb-rungs tr").count() == 8
    book.in_both_themes("closeness")

    page.locator(ROWS, has_text="linear.weight").click()
    wait_until(lambda: "linear.weight" in title.inner_text())
    assert "✗ FAIL" in page.locator(".bb-rungs").inner_text()
    page.locator('.bb-name[aria-pressed="true"]').focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    wait_until(lambda: "norm.gamma" in title.inner_text())
    focused = "document.activeElement.dataset.key"
    assert page.evaluate(focused) == "row norm.gamma"  # focus outlives the redrawing
    page.keyboard.press("End")
    page.keyboard.press("Space")
    wait_until(lambda: "linear.bias" in title.inner_text())
    assert "cannot be compared" in title.inner_text()

    book.run_cell(1)
    wait_until(lambda: page.locator(ROWS).count() == 0)
    assert "✗ FAIL" in book.output(0)  # the still form took the place
    book.run_cell(2)
    page.wait_for_selector(".bb-rungs")
    page.locator(".bb-worst").scroll_into_view_if_needed()
    book.picture("closeness_tensors_dark")
    assert page.locator(".bb-close-list:visible").count() == 0
    assert book.faults == []


def test_layers_are_sorted_found_and_judged(open_book):
    book, title = open_view(
        open_book,
        "closeness_sorted",
        "print(view.layer, view.epsilon, view.only_differences)",
    )
    page = book.page
    page.locator(".bb-sort", has_text="largest").click()
    wait_until(lambda: rows(page)[:2] == ["linear.bias", "linear.weight"])
    page.locator(".bb-sort", has_text="largest").press("Enter")
    wait_until(lambda: rows(page)[-1] == "linear.bias")
    assert page.locator('th[aria-sort="ascending"]').inner_text().startswith("largest")
    page.get_by_label("Sort by").select_option("name")
    wait_until(lambda: rows(page)[0] == "conv1.bias")

    page.get_by_label("Compare at").select_option("1e-8")
    wait_until(lambda: "1e-8" in page.locator(".bb-close-head").inner_text())
    page.locator(".widget-toggle-button", has_text="Only differences").click()
    wait_until(lambda: len(rows(page)) == 4)
    page.get_by_label("Find").fill("norm")
    page.keyboard.press("Enter")
    wait_until(lambda: rows(page) == ["norm.gamma"])
    page.locator(".widget-button", has_text="First difference").click()
    wait_until(lambda: "conv1.bias" in title.inner_text())
    book.picture("closeness_sorted_light")
    book.run_cell(1)
    wait_until(lambda: "conv1.bias 1e-08 True" in book.output(1))
    assert book.faults == []
