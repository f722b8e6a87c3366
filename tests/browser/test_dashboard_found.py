"""Dashboards that outlive things: reloads, ends, kernels; two runs, closer looks."""

from __future__ import annotations

import json
import re

import pytest

from tests.browser.conftest import ROOT, open_without_kernel
from tests.browser.test_dashboard import (
    CANVAS,
    KINDS_AT_THE_END,
    LABEL,
    PICTURE,
    button,
    kernel_6_hears_later,
    run_until_curves,
    text_of,
    wait_for_epoch,
    wait_for_headline,
    wait_for_text,
    wait_until,
)

pytestmark = pytest.mark.browser

SLOW = """
import pathlib, tempfile, time
import numpy as np
from burnbook.optim import AdamConfig
from burnbook.record import CompactRecorder
from burnbook.train import AccuracyMetric, LearnerBuilder, LossMetric
from tiny_training import Batches, DEVICE, DataLoaderBuilder, InMemDataset, tiny

rng = np.random.default_rng(0)

class Slow(Batches):
    "Batches that take their time, so that a training lasts while one looks."
    def batch(self, items, device=None):
        time.sleep(PAUSE)
        return super().batch(items, device)

def loader(count):
    labels = rng.integers(0, 3, count)
    points = rng.normal(0, 1, (count, 4)) + labels[:, None] * [1.5, -1, 0.5, 0]
    pairs = [(list(map(float, p)), int(label)) for p, label in zip(points, labels)]
    return DataLoaderBuilder(Slow()).batch_size(16).build(InMemDataset(pairs))

PAUSE = 0.02
train, valid = loader(320), loader(64)

def learner_for(epochs, name="digits", folder=None):
    return (
        LearnerBuilder(folder or pathlib.Path(tempfile.mkdtemp()) / name)
        .metrics([AccuracyMetric(), LossMetric()])
        .with_file_checkpointer(CompactRecorder())
        .devices([DEVICE]).num_epochs(epochs)
        .build(tiny(), AdamConfig().init(), 0.003)
    )
"""
WAYS = {
    "start": "handle = learner.start(train, valid)",
    "await": "model = await learner.fit_async(train, valid)",
    "fit": "model = learner.fit(train, valid)",
}
LOST = ".bb-lost:not([hidden])"
HEADLINE = ".bb-headline"
GOES_ON = re.compile("training|validating")


@pytest.fixture(autouse=True)
def slow(server):
    """What every notebook here starts from, as modules beside it."""
    (server.notebooks / "slow.py").write_text(SLOW)
    tiny = (ROOT / "tests" / "support" / "tiny_training.py").read_text()
    (server.notebooks / "tiny_training.py").write_text(tiny)


def start(open_book, name, *cells, epochs=3):
    """Open a notebook, run all of it, and wait until training has come so far."""
    book = run_until_curves(open_book, name, "from slow import *", *cells)
    wait_for_epoch(book, epochs)
    return book


def reload(book):
    """Load the page again, as a reader does."""
    book.page.goto(
        f"{book.server.url}/lab/tree/{book.path.name}?token={book.server.token}"
    )
    book.page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=60_000)


@kernel_6_hears_later
@pytest.mark.parametrize("saved", [True, False], ids=["saved", "unsaved"])
@pytest.mark.parametrize("way", WAYS)
def test_a_page_loaded_anew_finds_the_live_panel_and_shows_the_end(
    open_book, way, saved
):
    cell = f"learner = learner_for(30)\n{WAYS[way]}"
    book = start(open_book, f"reload_{way}_{saved}", cell)
    if saved:
        book.save()
    reload(book)
    page = book.page
    cells = page.locator(".jp-CodeCell")
    cells.nth(1).locator(CANVAS).first.wait_for(timeout=60_000)
    assert text_of(book, ".bb-name") == "digits"
    seen = text_of(book, HEADLINE)
    wait_until(lambda: text_of(book, HEADLINE) != seen, 60)  # it is live
    book.picture(f"found_{way}_{saved}")
    page.locator(HEADLINE, has_text="Trained 30 epochs in").wait_for(timeout=90_000)
    assert page.locator(CANVAS).count() == 2
    assert "valid Loss" in text_of(book, HEADLINE)
    wait_until(lambda: "30" in page.locator(".bb-report tbody th").all_text_contents())
    wait_until(lambda: "Trained 30" in json.dumps(book.save()["cells"][1]["outputs"]))
    outputs = [output["data"] for output in book.save()["cells"][1]["outputs"]]
    assert [set(data) for data in outputs] == KINDS_AT_THE_END
    assert book.faults == []


@kernel_6_hears_later
def test_a_cell_that_runs_again_has_no_picture_of_its_earlier_run(open_book):
    """The file still holds that picture, and the page that is loaded gets it back."""
    cell = f"learner = learner_for(4 if first else 40)\n{WAYS['start']}"
    book = start(open_book, "again", "first = True", cell, epochs=1)
    page = book.page
    page.locator(HEADLINE, has_text="Trained 4 epochs in").wait_for(timeout=90_000)
    wait_until(lambda: "Trained 4 " in json.dumps(book.save()["cells"][2]["outputs"]))
    page.evaluate(
        "() => { const kernel = window.jupyterapp.shell.currentWidget.context"
        ".sessionContext.session.kernel;"
        " const run = kernel.requestExecute({ code: 'first = False' });"
        " return run.done.then(() => {}); }"
    )
    book.run_cell(2)
    page.locator(HEADLINE, has_text=GOES_ON).wait_for(timeout=60_000)
    reload(book)
    page.locator(CANVAS).first.wait_for(timeout=60_000)
    page.locator(HEADLINE, has_text=GOES_ON).wait_for(timeout=60_000)
    assert "Trained 4 epochs" not in book.output(2)
    assert book.faults == []


def test_a_blocking_fit_is_seen_at_its_end_after_a_reload_in_any_kernel(open_book):
    book = start(open_book, "reload_short", f"learner = learner_for(6)\n{WAYS['fit']}")
    reload(book)
    headline = book.page.locator(HEADLINE, has_text="Trained 6 epochs in")
    headline.wait_for(timeout=60_000)
    assert book.faults == []


@kernel_6_hears_later
def test_a_cell_that_is_gone_leaves_its_training_in_a_corner(open_book):
    book = start(open_book, "corner", f"learner = learner_for(500)\n{WAYS['start']}")
    page = book.page
    page.evaluate(
        "() => { const { model } = window.jupyterapp.shell.currentWidget.content;"
        " model.sharedModel.deleteCell(1); }"
    )
    book.save()
    reload(book)
    page.get_by_text("its cell is not on this page").wait_for(timeout=60_000)
    page.locator(".bb-corner").get_by_role("button", name="Show").click()
    page.locator(f".bb-corner {CANVAS}").first.wait_for()
    book.picture("corner")
    button(book, "Stop").click()
    page.locator(HEADLINE, has_text="Stopped (stop button)").wait_for(timeout=60_000)
    page.locator(".bb-corner").get_by_label("Close").click()
    assert page.locator(".bb-corner").count() == 0
    assert book.faults == []


@kernel_6_hears_later
def test_live_brings_back_what_a_page_has_lost(open_book):
    shows = "from burnbook_widgets import live\nlive()"
    start_it = f"learner = learner_for(500, 'spirals')\n{WAYS['start']}"
    stop_it = "live('spirals').stop('enough'); model = handle.wait(); print('over')"
    book = start(open_book, "live", start_it)
    page = book.page
    book.page.evaluate(
        "cells => { const { model } = window.jupyterapp.shell.currentWidget.content;"
        " cells.forEach(source => model.sharedModel.addCell("
        "{ cell_type: 'code', source })); }",
        [shows, stop_it],
    )
    book.run_cell(2)
    cells = page.locator(".jp-CodeCell")
    cells.nth(2).locator(CANVAS).first.wait_for()
    seen = cells.nth(2).locator(HEADLINE).inner_text()
    wait_until(lambda: cells.nth(2).locator(HEADLINE).inner_text() != seen)
    book.run_cell(3)
    for cell in (1, 2):  # the end, wherever one looks
        found = cells.nth(cell).locator(HEADLINE, has_text="Stopped (enough)")
        found.wait_for(timeout=30_000)
        assert cells.nth(cell).locator(CANVAS).count() == 2
    assert book.faults == []


@kernel_6_hears_later
def test_a_restarted_kernel_is_said_and_buttons_are_off(open_book):
    book = start(
        open_book, "restart", f"learner = learner_for(500)\n{WAYS['start']}", epochs=4
    )
    page = book.page
    # As the toolbar's button does, and the command: the kernel is told as changed, too.
    page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()"
    )
    page.wait_for_selector(LOST)
    said = text_of(book, LOST)
    assert "The kernel was restarted: this run is gone." in said
    assert re.search(r"Last seen in epoch \d+ of 500", said)
    seen = re.search(r"Newest checkpoint seen: epoch (\d+), in .*checkpoint", said)
    assert seen is not None
    assert f"the same cell with .checkpoint({seen[1]}) goes on from it" in said
    assert "training" not in text_of(book, HEADLINE)
    for name in ("Stop", "Pause", "Save checkpoint", "Other runs", "Export HTML"):
        assert button(book, name).is_disabled()
    page.get_by_text("log scale").click()  # the curves can still be looked at
    page.locator(".bb-split", has_text="valid").click()
    wait_until(lambda: "logarithmic" in page.evaluate(LABEL))
    wait_until(lambda: "valid" not in page.evaluate(LABEL))
    book.picture("kernel_restarted")
    saved = book.save()["cells"][1]["outputs"]
    assert "Saved in epoch" in json.dumps(saved)
    assert book.faults == []


@kernel_6_hears_later
def test_a_kernel_that_dies_is_said(open_book):
    book = start(
        open_book,
        "dies",
        f"learner = learner_for(500)\n{WAYS['start']}",
        "import os, threading\nthreading.Timer(6, os._exit, [1]).start()",
        epochs=1,
    )
    book.page.wait_for_selector(LOST, timeout=60_000)
    assert "The kernel died" in text_of(book, LOST)
    assert book.faults == []


@kernel_6_hears_later
def test_two_runs_of_one_cell_have_names_and_stand_one_below_the_other(open_book):
    cell = (
        "first = learner_for(500, 'first').start(train, valid)\n"
        "second = learner_for(500, 'second').start(train, valid)"
    )
    book = start(open_book, "two", cell, "1 + 1")
    page = book.page
    wait_until(lambda: page.locator(".bb-name").count() == 2)
    assert set(page.locator(".bb-name").all_inner_texts()) == {"first", "second"}
    outputs = book.save()["cells"][1]["outputs"]
    marks = [output["metadata"]["burnbook"] for output in outputs]
    keys = [mark.get("panel") or mark.get("below") for mark in marks]
    assert keys[0] == keys[1] != keys[2] == keys[3]
    wait_until(lambda: page.locator(".bb-report tbody tr").count() >= 2)
    second = page.locator(".bb-chart", has_text="second")
    second.get_by_role("button", name="Stop").click()
    page.locator(HEADLINE, has_text="Stopped (stop button)").wait_for(timeout=60_000)
    assert page.locator(HEADLINE, has_text=GOES_ON).count() == 1
    for name in ("first", "second"):
        assert f">{name}</text>" in json.dumps(book.save()["cells"][1]["outputs"])
    assert book.faults == []


@kernel_6_hears_later
def test_a_cell_that_runs_again_cannot_train_unseen(open_book):
    cell = (
        "folder = globals().get('folder') or tempfile.mkdtemp()\n"
        "learner = learner_for(500, folder=folder)\n"
        "handle = learner.start(train, valid, replace=True)"
    )
    book = start(open_book, "again", cell, "from burnbook_widgets import live\nlive()")
    page = book.page
    cells = page.locator(".jp-CodeCell")
    cells.nth(2).locator(CANVAS).first.wait_for()
    book.run_cell(1)
    told = cells.nth(2).locator(HEADLINE, has_text="Stopped (replaced by a newer")
    told.wait_for(timeout=30_000)  # what the first panel says
    newer = cells.nth(1).locator(HEADLINE, has_text=GOES_ON)
    newer.wait_for(timeout=30_000)
    button(book, "Stop").first.click()
    wait_for_headline(cells.nth(1), "Stopped (stop button)")
    assert book.faults == []


@kernel_6_hears_later
def test_after_the_end_the_chart_is_a_chart_and_a_page_without_kernel_its_picture(
    open_book,
):
    cell = "learner = learner_for(3)\n" + WAYS["fit"]
    book = run_until_curves(open_book, "ended", "from slow import *", cell)
    page = book.page
    width = page.locator(CANVAS).first.bounding_box()["width"]
    page.locator(HEADLINE, has_text="Trained 3 epochs").wait_for(timeout=60_000)
    wait_until(lambda: "image/png" in json.dumps(book.save()))  # all of it has ended
    assert page.locator(CANVAS).count() == 2
    assert page.locator(CANVAS).first.bounding_box()["width"] == width  # no jump
    every_look(book)
    reload(book)  # with the kernel: the chart
    page.locator(HEADLINE, has_text="Trained 3 epochs").wait_for(timeout=60_000)
    every_look(book)
    assert book.faults == []
    open_without_kernel(book)
    page.wait_for_selector(PICTURE)
    assert page.locator(CANVAS).count() == 0
    assert "Trained 3 epochs in" in book.output(1)
    for wide in (1180, 768):
        page.set_viewport_size({"width": wide, "height": 900})
        page.wait_for_timeout(300)
        book.picture(f"ended_{wide}")
        assert is_whole(page)


def is_whole(page):
    """Whether the picture lies within its output, neither cut off nor distorted."""
    picture = page.locator(PICTURE).first.bounding_box()
    frame = page.locator(".jp-CodeCell .jp-OutputArea").last.bounding_box()
    square = picture["width"] / picture["height"]
    inside = picture["x"] + picture["width"] <= frame["x"] + frame["width"] + 1
    return inside and 2 < square < 3.2


def every_look(book):
    """Hover with one crosshair, toggles, scale, smoothing, axis, zoom."""
    page = book.page
    canvas = page.locator(CANVAS)
    canvas.first.scroll_into_view_if_needed()
    canvas.first.hover(position={"x": 200, "y": 100})
    wait_until(lambda: page.locator(".bb-tip:not([hidden])").count() == 2)
    tips = page.locator(".bb-tip:not([hidden])").all_inner_texts()
    assert len({tip.partition(":")[0] for tip in tips}) == 1  # the same place
    page.mouse.move(5, 5)
    wait_until(lambda: page.locator(".bb-tip:not([hidden])").count() == 0)
    train = page.locator(".bb-split", has_text="train")
    train.focus()
    page.keyboard.press("Enter")
    wait_until(lambda: train.get_attribute("aria-pressed") == "false")
    wait_until(lambda: "train" not in page.evaluate(LABEL))
    page.keyboard.press("Space")
    wait_until(lambda: "train" in page.evaluate(LABEL))
    for axis in ("step", "time", "epoch"):
        page.get_by_role("button", name=axis, exact=True).click()
        wait_until(lambda axis=axis: f"by {axis}" in page.evaluate(LABEL))
    page.get_by_text("log scale").click()
    wait_until(lambda: "logarithmic" in page.evaluate(LABEL))
    page.get_by_text("log scale").click()
    page.locator(".bb-slider").focus()
    page.keyboard.press("End")
    wait_for_text(book, ".bb-amount", "about 100 steps")
    page.keyboard.press("Home")
    canvas.first.focus()
    page.keyboard.press("+")
    page.wait_for_selector(".bb-zoomed:not([hidden])")
    page.keyboard.press("0")
    page.wait_for_selector(".bb-zoomed", state="hidden")


@kernel_6_hears_later
def test_what_one_zooms_into_has_every_batch_however_long_the_run_is(open_book):
    quick = "import slow\nslow.PAUSE = 0.0\nlearner = learner_for(400)\n"
    book = start(open_book, "fine", quick + WAYS["start"], "1 + 1", epochs=60)
    page = book.page  # 20 steps an epoch: a bucket is four steps by now
    page.evaluate(SET_ZOOM, [2, 4])
    wait_for_text(book, ".bb-zoomed", "Epochs 2 to 4")
    wait_until(lambda: page.evaluate(ROWS_IN_SIGHT) >= 40)
    assert page.evaluate(ROWS_IN_SIGHT) == 41  # 2.0 itself, and 40 after it
    button(book, "Stop").click()
    page.locator(HEADLINE, has_text="Stopped (stop button)").wait_for(timeout=60_000)
    page.evaluate(SET_ZOOM, [5, 8])
    wait_until(lambda: page.evaluate(ROWS_IN_SIGHT) == 61)
    assert book.faults == []


MODEL = """
    const panels = globalThis[Symbol.for("burnbook.panels")];
    const { model } = [...panels.values()][0];
"""
SET_ZOOM = f"zoom => {{ {MODEL} model.set('zoom', zoom); model.save_changes(); }}"
ROWS_IN_SIGHT = f"""() => {{ {MODEL}
    const {{ span, parts }} = model.get("fine");
    const zoom = model.get("zoom");
    return span && span[0] === zoom[0] ? parts[0][1] : 0;
}}"""


def test_a_click_that_waits_says_queued(open_book):
    book = start(open_book, "queued", f"learner = learner_for(20)\n{WAYS['fit']}")
    page = book.page
    button(book, "Pause").click()
    wait_until(lambda: button(book, "Pause · queued").count() == 1)
    book.picture("queued")
    page.locator(HEADLINE, has_text="Trained 20 epochs").wait_for(timeout=60_000)
    wait_until(lambda: page.locator(".bb-queued").count() == 0)
    assert book.faults == []


def test_values_that_are_no_numbers_are_said_above_the_curve(open_book):
    cell = (
        "from burnbook.data import Progress\n"
        "from burnbook.train import *\n"
        "from burnbook_widgets import NotebookRenderer\n"
        "board = NotebookRenderer()\n"
        "board.start(RunInfo('run', ('Loss',), 6, 1, Interrupter(), ''))\n"
        "for epoch in range(1, 5):\n"
        "    value = 1.0 if epoch < 3 else float('nan')\n"
        "    for split in ('train', 'valid'):\n"
        "        board.end_epoch(epoch, split, {'Loss': value})\n"
        "board.render_train(TrainingProgress(Progress(1, 2), 5, 6, 1))"
    )
    book = run_until_curves(open_book, "gaps", cell)
    wait_for_text(book, ".bb-title", "not a number in epochs 3 to 4")
    assert book.faults == []
