"""The dataset browser in a real JupyterLab, driven by clicks and keys."""

from __future__ import annotations

import pytest

from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser

SETUP = """
import numpy as np
from burnbook.data import DigitsDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook_widgets import DatasetBrowser
digits = DigitsDataset.test()
labels = np.array([item.label for item in digits])
scores = np.zeros((359, 10))
scores[np.arange(359), labels] = 3.0
scores[7] = np.eye(10)[(labels[7] + 1) % 10] * 9  # the one mistake
"""
SOUNDS = """
import burnbook_widgets.dataset.browser
from burnbook.data import SpeechCommandClass, SpeechItem
burnbook_widgets.dataset.browser.PATIENCE = 0.0  # so that labels are left to read
wave = np.sin(np.arange(8000) / 9).astype(np.float32)
DatasetBrowser([SpeechItem(wave, 8000, SpeechCommandClass.Yes)] * 300)
"""
SETUP_TABLE = "from burnbook_widgets import DatasetBrowser"
TABLE = """
rows = [{"rooms": i % 4, "price": 223300.0 + 1000 * (7 * i % 50)} for i in range(500)]
table = DatasetBrowser(rows, page_size=5)
table
"""
HEARD = "document.querySelector('.bbi-sound audio')?.duration"
CARD = ".bbi-card"


@pytest.fixture
def book(open_book):
    """A notebook that shows a dataset browser."""
    cells = [
        SETUP,
        "view = DatasetBrowser(digits, predictions=scores, batcher=MnistBatcher())"
        "\nview",
        "print(repr(view), view.selected, view.page)\nview.close()",
        SOUNDS,
    ]
    book = open_book("browser", cells)
    book.wait_for_kernel()
    book.run_cell(0)
    book.run_cell(1)
    book.page.wait_for_selector(CARD, timeout=60_000)
    return book


def says(book, text):
    head = book.page.locator(".bbi-head")
    wait_until(lambda: text in head.inner_text())


def press(book, name):
    book.page.get_by_role("button", name=name, exact=True).click()


def closely(book, text):
    panel = book.page.locator(".bbi-detail")
    wait_until(lambda: text in panel.inner_text())


def test_every_control_of_the_dataset_browser_does_what_it_says(book):
    turn_pages(book)
    find(book)
    walk_with_keys(book)
    follow_the_mistake(book)
    book.run_cell(2)
    wait_until(lambda: "batch, page 1 of 1; 1 mistake) 7 1" in book.output(2))
    wait_until(lambda: book.page.locator(".bbi").count() == 0)
    hear_a_sound(book)
    assert book.faults == []


def turn_pages(book):
    page = book.page
    assert page.locator(CARD).count() == 24
    says(book, "page 1 of 15")
    page.get_by_title("Next page").click()
    says(book, "page 2 of 15")
    page.get_by_title("Previous page").click()
    says(book, "page 1 of 15")
    page.locator(".widget-slider .noUi-handle").focus()
    page.keyboard.press("ArrowRight")
    says(book, "page 2 of 15")


def find(book):
    page, cards = book.page, book.page.locator(CARD)
    page.locator(".widget-dropdown select").select_option(label="3 (37)")
    says(book, "37 of 359 items")
    four = page.locator(".bbi-class").nth(4)
    four.click()
    says(book, "36 of 359 items")
    wait_until(lambda: four.get_attribute("aria-pressed") == "true")
    press(book, "Show all")
    says(book, "page 1 of 15")
    page.get_by_role("textbox", name="Search").fill("#17")
    page.keyboard.press("Enter")
    says(book, "“#17”")
    wait_until(lambda: cards.first.get_attribute("data-item") == "17")
    press(book, "Show all")
    wait_until(lambda: cards.count() == 24)


def walk_with_keys(book):
    page, cards = book.page, book.page.locator(CARD)
    cards.first.focus()
    for key in ("ArrowRight", "ArrowDown", "Home", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    closely(book, "Item 1")
    wait_until(lambda: cards.nth(1).get_attribute("aria-pressed") == "true")
    book.picture("browser_items_light")
    page.keyboard.press("Escape")
    wait_until(lambda: page.locator(".bbi-detail").inner_text() == "")
    page.keyboard.press("PageDown")
    says(book, "page 2 of 15")


def follow_the_mistake(book):
    page, cards = book.page, book.page.locator(CARD)
    press(book, "Mistakes")
    says(book, "1 mistake")
    press(book, "Confusion")
    page.wait_for_selector(".bbi-cell")
    book.theme("Dark")
    book.picture("browser_confusion_dark")
    wrong = page.locator('.bbi-cell:not(.bbi-hit):not(:text-is("·"))')
    assert wrong.count() == 1
    wrong.click()
    says(book, "1 of 359 items")
    wait_until(lambda: cards.count() == 1)
    cards.first.click()
    closely(book, "✗ predicted")
    page.get_by_role("button", name="close the item").click()
    wait_until(lambda: page.locator(".bbi-detail").inner_text() == "")
    cards.first.click()
    closely(book, "Item 7")
    press(book, "Batch")
    page.get_by_text("What the batcher makes of the item of this page").wait_for()
    page.get_by_text("Float [1, 28, 28]").wait_for()
    book.picture("browser_batch_dark")


def hear_a_sound(book):
    page = book.page
    book.run_cell(3)
    page.wait_for_selector(".bbi-rows")
    says(book, "labels of the first 256 read")
    press(book, "Read all labels")
    wait_until(lambda: "labels of the first" not in text_of(page, ".bbi-head"))
    assert "300" in text_of(page, ".bbi-class")
    page.locator(CARD).first.click()
    press(book, "▶ Play")
    wait_until(lambda: page.evaluate(HEARD) == 1)
    page.get_by_role("button", name="play item 1", exact=True).click()
    closely(book, "Item 1")
    wait_until(lambda: page.evaluate(HEARD) == 1)


def test_tables_sort_by_their_heads_and_turn_to_any_page(open_book):
    book = open_book("table", [SETUP_TABLE, TABLE, "table.close()"])
    page = book.page
    book.wait_for_kernel()
    for cell in (0, 1):
        book.run_cell(cell)
    page.wait_for_selector(CARD, timeout=60_000)
    first = page.locator(".bbi tbody tr").first
    assert "223300" in first.inner_text()
    head = page.get_by_role("button", name="price")
    head.focus()
    page.keyboard.press("Enter")
    says(book, "by price, low to high")
    page.keyboard.press("Enter")  # the head is made anew and keeps the focus
    says(book, "by price, high to low")
    wait_until(lambda: "272300" in first.inner_text())
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("price")
    assert "247800" in page.locator(".bbi-statistics").inner_text()
    number = page.locator("input[type=number]")
    number.fill("77")
    number.press("Enter")
    says(book, "page 77 of 100")
    book.in_both_themes("browser_table")
    assert book.faults == []


def text_of(page, selector):
    return page.locator(selector).first.inner_text()
