"""The dashboard without a browser: what it remembers, sends, leaves and frees."""

from __future__ import annotations

import json
import math
import re
import sys
import threading
import time
import types
from importlib.metadata import entry_points
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("anywidget", reason="the widgets need anywidget")
pytest.importorskip("plotly", reason="the history needs plotly")

import ipywidgets

from burnbook.data import Progress
from burnbook.train import (
    Interrupter,
    MetricEntry,
    MetricHistory,
    MetricState,
    RunInfo,
    TrainingProgress,
    TrainingResult,
)
from burnbook_widgets import Dashboard, NotebookRenderer, history_figure
from burnbook_widgets.drawing import Drawing, Line, Mark, Words
from burnbook_widgets.training.chart import Chart, pack
from burnbook_widgets.training.curves import Curves, Trace
from burnbook_widgets.training.dashboard import NOTES, buttons_are
from burnbook_widgets.training.progress import Meter, duration
from burnbook_widgets.training.still import describe, epoch_table, picture, thin, ticks

METRICS = ("Loss", "Accuracy")
UNITS = {"Accuracy": "%"}


@pytest.fixture(autouse=True)
def live(monkeypatch):
    """Tests run with static pages; these are about live ones unless they say so."""
    monkeypatch.delenv("BURNBOOK_DISPLAY", raising=False)


class Page:
    """A screen that remembers what it was asked to show."""

    def __init__(self):
        self.places: list[list] = []

    def put(self, content):
        self.places.append([content])
        shown = self.places[-1]

        class Place:
            def replace(self, bundle, metadata=None):
                shown.append(bundle)

        return Place()

    def show(self, bundle, metadata=None):
        self.places.append([bundle])


def run_info(control=None, epochs=4, mode="fit", start=1):
    return RunInfo(
        directory="run",
        metrics=METRICS,
        num_epochs=epochs,
        start_epoch=start,
        control=control or Interrupter(),
        model_text="Model",
        mode=mode,
        units=UNITS,
    )


def simulate(renderer, epochs=4, batches=(20, 5), control=None, mode="fit", pause=0.0):
    """What a learner tells a renderer: a loss that falls and an accuracy that rises."""
    control = control or Interrupter()
    history = MetricHistory()
    renderer.start(run_info(control, epochs, mode))
    step = 0
    for epoch in range(1, epochs + 1):
        for split, count in zip(("train", "valid"), batches, strict=True):
            update = getattr(renderer, f"update_{split}")
            total = dict.fromkeys(METRICS, 0.0)
            for batch in range(1, count + 1):
                control.wait_while_paused(renderer.tick)
                if control.should_stop():
                    return finish(renderer, history, control, epoch)
                step += split == "train"
                values = {"Loss": 2 * 0.97**step, "Accuracy": 100 - 90 * 0.97**step}
                for name, value in values.items():
                    update(MetricState(MetricEntry(name, f"{value}", ""), value))
                    history.add(name, split, value)
                    total[name] += value / count
                at = Progress(64 * batch, 64 * count)
                progress = TrainingProgress(at, epoch, epochs, batch)
                getattr(renderer, f"render_{split}")(progress)
                time.sleep(pause)
            renderer.end_epoch(epoch, split, total)
            history.end_epoch(epoch, split, total)
    return finish(renderer, history, control, epochs)


def finish(renderer, history, control, epoch):
    result = TrainingResult("model", history, control.reason, epoch, 1.5, "run")
    renderer.finish(result)
    renderer.close()
    return result


def some_curves(epochs=3, batches=8):
    curves = Curves(METRICS)
    for epoch in range(1, epochs + 1):
        for batch in range(batches):
            curves.update("Loss", 2.0 / (epoch + batch / batches))
            curves.update("Accuracy", 100.0 - 90.0 / epoch)
            curves.step("train", epoch - 1 + (batch + 1) / batches)
        for split in ("train", "valid"):
            means = {"Loss": 1.5 / epoch, "Accuracy": 100 - 80 / epoch}
            curves.end_epoch(epoch, split, means)
    return curves


def widget_count():
    return len(ipywidgets.Widget.get_manager_state()["state"])


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


# ── the dashboard ───────────────────────────────────────────────────────────


def test_a_whole_run_ends_as_picture_table_and_line():
    page = Page()
    renderer = NotebookRenderer(page)
    simulate(renderer)
    panel, report = page.places
    assert isinstance(panel[0], ipywidgets.VBox)
    assert set(panel[-1]) == {"image/svg+xml", "image/png", "text/plain"}
    assert panel[-1]["text/plain"] == "Dashboard(Loss, Accuracy; 4 epochs)"
    html = report[-1]["text/html"]
    assert (
        "Trained 4 epochs in 1.5 s. valid Loss 0.1749, valid Accuracy 92.13 %" in html
    )
    assert html.count("<tr>") == 5
    assert "<script" not in html
    assert repr(renderer) == "NotebookRenderer(Dashboard(Loss, Accuracy; 4 epochs))"
    assert "<svg" in renderer.dashboard.still()
    assert "<table>" in renderer.dashboard.still()


def test_close_frees_every_widget():
    before = widget_count()
    renderer = NotebookRenderer(Page())
    renderer.start(run_info())
    assert widget_count() > before + 4
    renderer.close()
    assert widget_count() == before
    renderer.close()
    assert renderer.dashboard.still()


def test_a_run_that_fails_leaves_its_picture_so_far():
    page = Page()
    renderer = NotebookRenderer(page)
    renderer.start(run_info())
    renderer.close()
    assert "image/svg+xml" in page.places[0][-1]
    assert "Training ended early, after 0 epochs" in page.places[1][-1]["text/html"]


def test_controls_and_their_twins_set_the_flags_of_the_run():
    control = Interrupter()
    renderer = NotebookRenderer(Page())
    renderer.start(run_info(control, mode="await"))
    board = renderer.dashboard
    assert "live" in board.note.value
    board.pause_button.click()
    assert control.paused
    assert board.state == "paused"
    assert board.pause_button.description == "Resume"
    board.resume()
    assert not control.paused
    assert board.pause_button.description == "Pause"
    board.pause()
    board.pause_button.click()
    assert not control.paused
    board.stop_button.click()
    assert control.should_stop()
    assert control.reason == "stop button"
    assert board.stop_button.disabled
    assert board.chart.status["headline"].endswith("stopping after this batch")
    renderer.close()
    board.pause()
    board.resume()
    board.stop()
    assert control.reason == "stop button"


def test_a_pause_from_elsewhere_shows_on_the_panel():
    control = Interrupter()
    renderer = NotebookRenderer(Page())
    renderer.start(run_info(control))
    control.pause()
    renderer.tick()
    assert renderer.dashboard.state == "paused"
    assert renderer.dashboard.pause_button.description == "Resume"
    control.resume()
    renderer.tick()
    assert renderer.dashboard.state == "training"
    control.stop("enough")
    renderer.tick()
    assert renderer.dashboard.stop_button.disabled
    renderer.close()


@pytest.mark.parametrize(
    ("mode", "word"), [("fit", "queued"), ("await", "live"), ("thread", "live")]
)
def test_the_panel_says_whether_its_buttons_are_live(mode, word):
    renderer = NotebookRenderer(Page())
    renderer.start(run_info(mode=mode))
    assert word in renderer.dashboard.note.value
    if mode == "fit":
        assert "interrupt" in renderer.dashboard.note.value
    renderer.close()


@pytest.mark.parametrize(("major", "word"), [(6, "queued"), (7, "live")])
def test_an_awaiting_cell_hears_clicks_only_with_a_newer_kernel(
    monkeypatch, major, word
):
    kernel = types.SimpleNamespace(version_info=(major, 0, 0))
    monkeypatch.setitem(sys.modules, "ipykernel", kernel)
    assert word in NOTES[buttons_are("await")]


def test_stop_from_another_thread_ends_the_run_and_says_so():
    page, control = Page(), Interrupter()
    renderer = NotebookRenderer(page)
    worker = threading.Thread(
        target=simulate,
        args=(renderer, 1000),
        kwargs={"control": control, "pause": 0.01},
    )
    worker.start()
    time.sleep(0.6)
    renderer.dashboard.pause()
    time.sleep(0.2)
    iteration = renderer.dashboard.meter.iteration
    time.sleep(0.2)
    assert renderer.dashboard.meter.iteration == iteration
    renderer.dashboard.stop("seen enough")
    worker.join(2)
    assert not worker.is_alive()
    assert "Stopped (seen enough) in epoch" in page.places[1][-1]["text/html"]


def test_messages_are_rare_however_fast_the_batches_come():
    renderer = NotebookRenderer(Page())
    began = time.monotonic()
    simulate(renderer, epochs=20, batches=(50, 10), pause=0.0005)
    seconds = time.monotonic() - began
    assert 1 <= renderer.dashboard.sent <= 4 * seconds + 1


def test_long_runs_stay_small_on_the_wire_and_in_the_notebook():
    board = Dashboard(run_info(epochs=40), Page())
    state = [MetricState(MetricEntry(name, "", ""), 0.5) for name in METRICS]
    for epoch in range(1, 41):
        for split in ("train", "valid"):
            for batch in range(1, 501):
                for one in state:
                    board.update(one)
                at = Progress(batch, 500)
                board.step(split, TrainingProgress(at, epoch, 40, batch))
            board.end_epoch(epoch, split, {"Loss": 0.5, "Accuracy": 0.5})
    board._send(time.monotonic())
    assert 2000 < len(board.chart.data) < 50_000
    assert len(json.dumps(ipywidgets.Widget.get_manager_state())) < 100_000
    board.close()


def test_the_chart_packs_rows_that_its_frame_describes():
    curves = some_curves()
    frame, data = pack(curves)
    rows = np.frombuffer(data, "<f4").reshape(-1, 4)
    assert sum(part[3] for part in frame["parts"]) == len(rows)
    assert frame["parts"][0] == [0, "train", "steps", 24]
    assert frame["span"] == [0, 3]
    assert rows[0, 1] == pytest.approx(2.0)
    assert json.loads(json.dumps(frame)) == frame


def test_chart_traits_follow_the_run():
    chart = Chart(METRICS, UNITS)
    chart.show(some_curves(), {"headline": "Epoch 3"})
    first = chart.frame["turn"]
    chart.show(some_curves(), {"headline": "Epoch 3"})
    assert chart.frame["turn"] == first + 1  # equal data is still news to the page
    assert chart.panels == [
        {"name": "Loss", "unit": ""},
        {"name": "Accuracy", "unit": "%"},
    ]
    assert repr(chart) == "Chart(Loss, Accuracy)"
    chart.close()


def test_the_script_of_the_chart_is_our_own_and_needs_nothing():
    assert not re.search(r"^\s*import\b|import\(|https?:", Chart._esm, re.MULTILINE)
    assert len(Chart._esm) < 30_000


def test_a_fault_of_the_view_is_told_once_and_training_goes_on(capsys):
    renderer = NotebookRenderer(Page())
    before = widget_count()
    renderer.start(run_info())

    def broken(*_):
        raise RuntimeError("no pixels left")

    renderer.dashboard.curves.step = broken
    at = TrainingProgress(Progress(1, 2), 1, 4, 1)
    for _ in range(3):
        renderer.render_train(at)
    out = capsys.readouterr().out
    assert out == "dashboard: RuntimeError: no pixels left; training goes on\n"
    assert widget_count() == before


def test_a_screen_that_fails_does_not_stop_the_training(capsys):
    class NoScreen:
        def put(self, content):
            raise OSError("no page")

    result = simulate(NotebookRenderer(NoScreen()))
    assert result.epochs == 4
    assert capsys.readouterr().out.count("training goes on") == 1


# ── static pages ────────────────────────────────────────────────────────────


@pytest.fixture
def static(live, monkeypatch):
    monkeypatch.setenv("BURNBOOK_DISPLAY", "static")


def test_static_pages_get_one_fixed_line_and_a_png(static):
    page, before = Page(), widget_count()
    simulate(NotebookRenderer(page))
    assert widget_count() == before
    line, curves = (place[0] for place in page.places)
    assert line == {
        "text/plain": "Trained 4 epochs: Loss and Accuracy, train and valid."
    }
    assert set(curves) == {"image/png", "text/plain"}
    assert curves["text/plain"] == "Dashboard(Loss, Accuracy; 4 epochs)"


def test_static_pages_say_when_a_run_was_stopped(static):
    page, control = Page(), Interrupter()
    renderer = NotebookRenderer(page)
    renderer.start(run_info(control))
    renderer.dashboard.stop("enough")
    finish(renderer, MetricHistory(), control, 1)
    assert page.places[0][0]["text/plain"] == (
        "Stopped: enough. The model so far is kept."
    )


NOTEBOOK = """
import tempfile
from burnbook.prelude import *
from burnbook.data import DataLoaderBuilder, DigitsDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.examples.guide.model import ModelConfig
from burnbook.optim import AdamConfig
from burnbook.train import AccuracyMetric, LearnerBuilder
from burnbook_widgets import NotebookRenderer, history_figure

device = Autodiff(Numpy(compiled=False))
test = DataLoaderBuilder(MnistBatcher()).batch_size(64).build(DigitsDataset.test())
learner = (
    LearnerBuilder(tempfile.mkdtemp())
    .metric_train_numeric(AccuracyMetric())
    .metric_valid_numeric(AccuracyMetric())
    .num_epochs(1)
    .devices([device])
    .build(ModelConfig(10, 16).init(device), AdamConfig().init(), 1e-4)
)
model = learner.fit(test, test)
history_figure(learner.result.history)
"""


def test_a_notebook_chooses_the_dashboard_and_static_pages_show_what_stays(static):
    nbformat = pytest.importorskip("nbformat", reason="runs a notebook")
    nbclient = pytest.importorskip("nbclient", reason="runs a notebook")
    if not entry_points(group="burnbook.renderers", name="notebook"):
        pytest.skip("burnbook is not installed, so no entry point leads to us")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(NOTEBOOK)])
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    line, curves, history = (output["data"] for output in book.cells[0].outputs)
    assert line == {"text/plain": "Trained 1 epoch: Accuracy, train and valid."}
    assert set(curves) == set(history) == {"image/png", "text/plain"}
    assert history["text/plain"] == "HistoryFigure(Accuracy)"


# ── the history to explore ──────────────────────────────────────────────────


def history(epochs=3):
    return simulate(NotebookRenderer(Page()), epochs=epochs).history


def test_history_figure_tells_train_from_valid_by_more_than_colour():
    figure = history_figure(history(), UNITS)
    traces = {trace.name: trace for trace in figure.data[:4]}
    assert traces["train, epoch means"].line.dash == "solid"
    assert traces["valid, epoch means"].line.dash == "dash"
    assert traces["train, epoch means"].marker.symbol == "circle"
    assert traces["valid, epoch means"].marker.symbol == "square"
    assert list(traces["valid, epoch means"].x) == [1, 2, 3]
    assert max(traces["train, batches"].x) == pytest.approx(3)
    assert len(traces["train, batches"].x) == 60


def test_history_figure_has_log_buttons_a_range_slider_and_titles():
    figure = history_figure(history(), UNITS)
    buttons = figure.layout.updatemenus[0].buttons
    assert [button.label for button in buttons] == ["linear y", "log y"]
    assert buttons[1].args[0] == {"yaxis.type": "log", "yaxis2.type": "log"}
    assert figure.layout.xaxis2.rangeslider.visible
    assert figure.layout.hovermode == "x unified"
    titles = [note.text for note in figure.layout.annotations]
    assert titles == ["Loss", "Accuracy (%)"]


@pytest.mark.parametrize("theme", ["light", "dark", "auto"])
def test_history_figure_has_a_look_for_each_theme(theme):
    figure = history_figure(history(), theme=theme)
    clear = figure.layout.paper_bgcolor == "rgba(0,0,0,0)"
    assert clear == (theme == "auto")


def test_history_figure_shows_itself_by_plotly_data_and_plain_text():
    figure = history_figure(history())
    bundle = figure._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.plotly.v1+json", "text/plain"}
    assert bundle["text/plain"] == "HistoryFigure(Loss, Accuracy)"
    assert len(json.dumps(bundle)) < 100_000


def test_history_figure_is_a_png_on_static_pages(static):
    bundle, metadata = history_figure(history())._repr_mimebundle_()
    assert set(bundle) == {"image/png", "text/plain"}
    assert metadata["image/png"]["width"] == 800


def test_history_of_nothing_is_an_empty_figure():
    assert len(history_figure(MetricHistory()).data) == 0


# ── cost ────────────────────────────────────────────────────────────────────


@pytest.mark.bench
def test_the_dashboard_costs_less_than_one_percent_of_three_millisecond_steps():
    board = Dashboard(run_info(epochs=10), Page())
    state = [MetricState(MetricEntry(name, "", ""), 0.5) for name in METRICS]
    steps = 20_000
    told = [
        TrainingProgress(Progress(i % 200 + 1, 200), 1 + i // 2000, 10, i)
        for i in range(steps)
    ]
    began = time.perf_counter()
    for progress in told:
        for one in state:
            board.update(one)
        board.step("train", progress)
    per_step = (time.perf_counter() - began) / steps
    board.close()
    print(f"dashboard: {per_step * 1e6:.1f} µs per batch")
    assert per_step < 0.003 * 0.01
