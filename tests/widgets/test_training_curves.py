"""What a dashboard remembers, how far it is, and the picture that it leaves."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("anywidget", reason="the widgets need anywidget")

from burnbook_widgets.axes import ticks
from burnbook_widgets.drawing import Drawing, Line, Mark, Words
from burnbook_widgets.training.curves import Curves, Trace, thin
from burnbook_widgets.training.progress import Meter, duration
from burnbook_widgets.training.still import describe, epoch_table, picture
from tests.support.training_page import METRICS, UNITS, some_curves

# ── curves ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("steps", [1, 7, 8, 9, 16, 17, 100, 1001])
def test_a_trace_stays_small_and_keeps_every_batch_in_its_mean_and_range(steps):
    trace = Trace(buckets=8)
    values = np.sin(np.arange(steps))
    for x, value in enumerate(values):
        trace.add(float(x), float(value))
    table = trace.table()
    assert len(table) <= 9
    assert table[:, 2].min() == pytest.approx(values.min())
    assert table[:, 3].max() == pytest.approx(values.max())
    counts = [trace.stride] * trace.rows + [steps - trace.stride * trace.rows]
    weights = counts[: len(table)]
    assert np.average(table[:, 1], weights=weights) == pytest.approx(values.mean())
    assert np.average(table[:, 0], weights=weights) == pytest.approx((steps - 1) / 2)


def test_a_value_that_is_not_a_number_leaves_a_gap_and_spoils_nothing_else():
    curves = Curves(["Loss"])
    for step, value in enumerate([1.0, math.nan, 3.0, math.inf, 2.0]):
        curves.update("Loss", value)
        curves.step("train", step / 5)
    svg = picture(curves).svg()
    assert "nan" not in svg
    assert "inf" not in svg
    ElementTree.fromstring(svg)


def test_thinning_keeps_the_range_of_what_it_merges():
    table = np.column_stack([np.arange(1000.0)] + [np.arange(1000.0) % 7] * 3)
    small = thin(table, 100)
    assert len(small) <= 100
    assert small[:, 2].min() == 0
    assert small[:, 3].max() == 6
    assert np.all(np.diff(small[:, 0]) > 0)


def test_a_metric_without_a_number_is_left_out():
    curves = Curves(["Loss"])
    curves.update("Loss", None)
    curves.update("Text", 1.0)
    curves.step("train", 0.5)
    assert curves.is_empty()


# ── progress ────────────────────────────────────────────────────────────────


def test_time_left_follows_the_pace_and_leaves_pauses_out():
    time_now = [0.0]
    meter = Meter(num_epochs=2, clock=lambda: time_now[0])
    meter.note("train", 1, 10, 100, 1)
    time_now[0] = 10.0
    meter.note("train", 1, 100, 100, 10)
    assert meter.speed() == pytest.approx(9.0)
    before = meter.seconds_left()
    meter.pause()
    time_now[0] = 500.0
    assert meter.seconds_left() == before
    meter.resume()
    assert meter.seconds_left() == before
    assert meter.seconds() == 10.0
    meter.note("valid", 1, 100, 100, 1)
    assert meter.done() == pytest.approx(0.5)
    assert meter.seconds_left() == pytest.approx(10.0)


def test_progress_of_a_resumed_run_counts_from_where_it_resumed():
    meter = Meter(num_epochs=10, start_epoch=6, clock=lambda: 0.0)
    meter.note("train", 6, 0, 100, 1)
    assert meter.done() == 0.0
    meter.note("valid", 10, 100, 100, 1)
    assert meter.done() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (12.4, "12 s"), (61, "1 min 1 s"), (7320, "2 h 2 min")],
)
def test_durations_name_their_two_largest_units(seconds, text):
    assert duration(seconds) == text


# ── pictures ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (-3, 3, [-3, -2, -1, 0, 1, 2, 3]),
        (90, 100, [90, 92, 94, 96, 98, 100]),
        (5, 5, [5]),
    ],
)
def test_ticks_are_round_numbers(low, high, expected):
    assert ticks(low, high) == pytest.approx(expected)


def test_equal_runs_give_equal_pictures():
    one, other = picture(some_curves(), UNITS), picture(some_curves(), UNITS)
    assert one.svg() == other.svg()
    assert one.png() == other.png()
    assert picture(some_curves(epochs=4), UNITS).svg() != one.svg()


def test_the_picture_is_well_formed_and_names_everything():
    svg = picture(some_curves(), UNITS).svg()
    tree = ElementTree.fromstring(svg)
    words = [node.text for node in tree.iter("{http://www.w3.org/2000/svg}text")]
    for word in ("train", "valid", "Loss", "Accuracy (%)", "epoch"):
        assert word in words
    assert "train Loss from 1.5 to 0.5" in tree.attrib["aria-label"]
    assert "<script" not in svg
    assert "prefers-color-scheme:dark" in svg
    assert 'data-jp-theme-light="false"' in svg


def test_every_point_lies_on_the_sheet():
    sheet = picture(some_curves(), UNITS)
    for shape in sheet.shapes:
        points = shape.points if hasattr(shape, "points") else (shape.at,)
        for x, y in points:
            assert 0 <= x <= sheet.width
            assert 0 <= y <= sheet.height


def test_a_picture_of_nothing_still_has_axes():
    svg = picture(Curves(METRICS)).svg()
    assert ElementTree.fromstring(svg) is not None
    assert "Curves of 0 epochs" in svg


def test_text_from_metric_names_cannot_break_the_page():
    curves = Curves(["<b>&\"'"])
    curves.update("<b>&\"'", 1.0)
    curves.step("train", 1.0)
    curves.end_epoch(1, "train", {"<b>&\"'": 1.0})
    ElementTree.fromstring(picture(curves).svg())
    assert "<b>" not in epoch_table(curves)
    assert "<b>" not in picture(curves).svg()


def test_png_and_svg_show_dashes_marks_and_words():
    pytest.importorskip("PIL", reason="PNG needs pillow")
    from io import BytesIO

    from PIL import Image

    sheet = Drawing(60, 40, "shapes")
    sheet.add(Line(((0, 10), (60, 10)), "valid", 2.0, dash=(7, 4)))
    sheet.add(Mark((30, 25), "train", "square", 4), Words((5, 38), "w"))
    image = Image.open(BytesIO(sheet.png())).convert("RGBA")
    assert image.size == (120, 80)
    row = np.asarray(image)[20, :, 3] > 100
    assert 0.5 < row.mean() < 0.8  # seven of eleven pixels
    assert np.asarray(image)[50, 60, 3] > 200
    assert np.asarray(image)[60, 110, 3] == 0  # clear where nothing is drawn


def test_long_tables_fold_and_short_ones_do_not():
    assert epoch_table(some_curves(10)).startswith("<table>")
    folded = epoch_table(some_curves(11))
    assert folded.startswith("<details><summary>All 11 epochs</summary>")
    assert folded.count("<tr>") == 12


def test_the_description_says_from_where_to_where():
    assert describe(some_curves(), UNITS) == (
        "Curves of 3 epochs. train Loss from 1.5 to 0.5; valid Loss from 1.5 to 0.5; "
        "train Accuracy from 20% to 73.33%; valid Accuracy from 20% to 73.33%"
    )
