"""The dashboard without a browser: what it shows, sends, hears and frees."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
import types
from importlib.metadata import entry_points

import numpy as np
import pytest

pytest.importorskip("anywidget", reason="the widgets need anywidget")

from burnbook.data import Progress
from burnbook.train import (
    Interrupter,
    MetricEntry,
    MetricHistory,
    MetricState,
    TrainingProgress,
)
from burnbook_widgets import Dashboard, NotebookRenderer
from burnbook_widgets.saving import LIVE, SVG, still_mark
from burnbook_widgets.training.chart import Chart, Panel, pack
from burnbook_widgets.training.controls import NOTES, buttons_are
from tests.support.training_page import (
    METRICS,
    UNITS,
    Page,
    click,
    finish,
    run_info,
    simulate,
    some_curves,
    started,
)
from tests.support.waiting import wait_until
from tests.support.widget_state import state_size, widget_count

# ── the dashboard ───────────────────────────────────────────────────────────


def test_a_whole_run_ends_as_picture_table_and_line():
    page = Page()
    renderer = NotebookRenderer(page)
    simulate(renderer)
    panel, report = page.places
    assert set(panel[0]) == {LIVE, "text/html", "text/plain"}
    assert "first epoch of training" in panel[0]["text/html"]
    assert "valid Loss from" in report[1][SVG]  # how far it has come
    assert SVG not in report[-1]
    assert set(panel[-1]) == {LIVE, "image/svg+xml", "image/png", "text/plain"}
    assert panel[-1]["text/plain"] == "Dashboard(Loss, Accuracy; 4 epochs)"
    html = report[-1]["text/html"]
    assert "<b>run</b> · Trained 4 epochs in 1.5 s. valid Loss 0.1749, valid" in html
    assert html.count("<tr>") == 5
    assert "<script" not in html
    assert repr(renderer) == "NotebookRenderer(Dashboard(Loss, Accuracy; 4 epochs))"
    assert "<svg" in renderer.dashboard.still()
    assert "<table>" in renderer.dashboard.still()
    assert ">run</text>" in panel[-1][SVG]  # the name of the run
    renderer.dashboard.close()
    assert LIVE not in panel[-1]


def test_close_frees_every_widget(same_widgets):
    before = widget_count()
    renderer = started()
    assert widget_count() > before
    renderer.close()
    dashboard = renderer.dashboard
    assert (dashboard.state, widget_count() > before) == ("finished", True)
    dashboard.close()
    renderer.close()
    dashboard.close()
    assert dashboard.still()


def test_another_cell_shows_the_panel_again_while_it_lives():
    dashboard = Dashboard(run_info(), Page())
    dashboard.curves = some_curves()
    bundle, metadata = dashboard._repr_mimebundle_()
    assert set(bundle) == {LIVE, "text/html", "text/plain"}
    assert bundle[LIVE]["model_id"] == dashboard.chart.model_id
    assert metadata == still_mark(dashboard.chart.key)  # a saved page holds the picture
    dashboard.close()
    bundle, _ = dashboard._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert "<svg" in bundle["text/html"]


def test_a_run_that_fails_leaves_its_picture_so_far():
    page = Page()
    started(page=page).close()
    assert "image/svg+xml" in page.places[0][-1]
    html = page.places[1][-1]["text/html"]
    assert "Training ended early, before an epoch had ended" in html


def test_controls_and_their_twins_set_the_flags_of_the_run():
    control = Interrupter()
    renderer = started(control, mode="await")
    dashboard = renderer.dashboard
    assert "live" in dashboard.chart.about["note"]
    click(dashboard, "pause")
    assert control.paused
    assert dashboard.state == dashboard.chart.status["state"] == "paused"
    assert dashboard.chart.heard == ["pause 1"]  # so the page stops saying "queued"
    dashboard.resume()
    assert not control.paused
    assert dashboard.chart.status["state"] == "training"
    dashboard.pause()
    click(dashboard, "resume")
    assert not control.paused
    click(dashboard, "stop")
    assert control.should_stop()
    assert control.reason == "stop button"
    assert dashboard.chart.status["state"] == "stopping"
    assert dashboard.chart.status["headline"].endswith("stopping after this batch")
    renderer.close()
    dashboard.pause()
    dashboard.resume()
    dashboard.stop()
    assert control.reason == "stop button"


def test_a_pause_from_elsewhere_shows_on_the_panel():
    control = Interrupter()
    renderer = started(control)
    control.pause()
    renderer.tick()
    assert renderer.dashboard.state == "paused"
    assert renderer.dashboard.chart.status["state"] == "paused"
    control.resume()
    renderer.tick()
    assert renderer.dashboard.state == "training"
    control.stop("enough")
    renderer.tick()
    assert renderer.dashboard.chart.status["state"] == "stopping"


@pytest.mark.parametrize(
    ("mode", "word"), [("fit", "queued"), ("await", "live"), ("thread", "live")]
)
def test_the_panel_says_whether_its_buttons_are_live(mode, word):
    note = started(mode=mode).dashboard.chart.about["note"]
    assert word in note
    if mode == "fit":
        assert "interrupt" in note


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
    told = {"control": control, "pause": 0.01}
    worker = threading.Thread(target=simulate, args=(renderer, 1000), kwargs=told)
    worker.start()
    wait_until(lambda: renderer.dashboard and renderer.dashboard.meter.iteration, 30)
    renderer.dashboard.pause()
    steps, ends = -1, time.monotonic() + 30  # for a busy machine
    while steps != (steps := renderer.dashboard.meter.iteration):
        assert time.monotonic() < ends
        time.sleep(0.3)
    assert worker.is_alive()
    renderer.dashboard.stop("seen enough")
    worker.join(20)
    assert not worker.is_alive()
    assert "Stopped (seen enough) in epoch" in page.places[1][-1]["text/html"]


def test_messages_are_rare_however_fast_the_batches_come():
    renderer = NotebookRenderer(Page())
    began = time.monotonic()
    simulate(renderer, epochs=20, batches=(50, 10), pause=0.0005)
    seconds = time.monotonic() - began
    assert 1 <= renderer.dashboard.sent <= 4 * seconds + 1


def test_long_runs_stay_small_on_the_wire_and_in_the_notebook():
    dashboard = Dashboard(run_info(epochs=40), Page())
    state = [MetricState(MetricEntry(name, "", ""), 0.5) for name in METRICS]
    for epoch in range(1, 41):
        for split in ("train", "valid"):
            for batch in range(1, 501):
                for one in state:
                    dashboard.update(one)
                at = Progress(batch, 500)
                dashboard.step(split, TrainingProgress(at, epoch, 40, batch))
            dashboard.end_epoch(epoch, split, {"Loss": 0.5, "Accuracy": 0.5})
    dashboard._send(time.monotonic())
    assert 2000 < len(dashboard.chart.data) < 50_000
    assert state_size() < 100_000


def test_the_chart_packs_rows_that_its_frame_describes():
    curves = some_curves()
    frame, data = pack(curves)
    rows = np.frombuffer(data, "<f4").reshape(-1, 6)
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
    loss, accuracy = {"name": "Loss", "unit": ""}, {"name": "Accuracy", "unit": "%"}
    assert chart.panels == [loss, accuracy]
    assert repr(chart) == "Chart(Loss, Accuracy)"


def test_the_script_of_the_chart_is_our_own_and_needs_nothing():
    script = Panel._esm.replace("http://www.w3.org/2000/svg", "")  # a name of SVG
    assert not re.search(r"^\s*import\b|import\(|https?:", script, re.MULTILINE)
    assert len(script) < 70_000


def test_a_fault_of_the_view_is_told_once_and_training_goes_on(capsys, same_widgets):
    renderer = started()

    def broken(*_):
        raise RuntimeError("no pixels left")

    renderer.dashboard.curves.step = broken
    at = TrainingProgress(Progress(1, 2), 1, 4, 1)
    for _ in range(3):
        renderer.render_train(at)
    out = capsys.readouterr().out
    assert out == "dashboard: RuntimeError: no pixels left; training continues\n"


def test_a_screen_that_fails_does_not_stop_the_training(capsys):
    class NoScreen:
        def put(self, content):
            raise OSError("no page")

    result = simulate(NotebookRenderer(NoScreen()))
    assert result.epochs == 4
    assert capsys.readouterr().out.count("training continues") == 1


# ── static pages ────────────────────────────────────────────────────────────


def test_static_pages_get_one_fixed_line_and_a_png(static):
    page = Page()
    simulate(NotebookRenderer(page))
    line, curves = (place[0] for place in page.places)
    text = "Trained 4 epochs: Loss and Accuracy, train and valid."
    assert line == {"text/plain": text}
    assert set(curves) == {"image/png", "text/plain"}
    assert curves["text/plain"] == "Dashboard(Loss, Accuracy; 4 epochs)"


def test_static_pages_say_when_a_run_was_stopped(static):
    page, control = Page(), Interrupter()
    renderer = started(control, page)
    renderer.dashboard.stop("enough")
    finish(renderer, MetricHistory(), control, 1)
    text = page.places[0][0]["text/plain"]
    assert text == "Stopped: enough. The model so far is kept."


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


# ── cost ────────────────────────────────────────────────────────────────────


@pytest.mark.bench
def test_the_dashboard_costs_less_than_one_percent_of_three_millisecond_steps():
    dashboard = Dashboard(run_info(epochs=10), Page())
    state = [MetricState(MetricEntry(name, "", ""), 0.5) for name in METRICS]
    steps = 20_000
    told = [
        TrainingProgress(Progress(i % 200 + 1, 200), 1 + i // 2000, 10, i)
        for i in range(steps)
    ]
    began = time.perf_counter()
    for progress in told:
        for one in state:
            dashboard.update(one)
        dashboard.step("train", progress)
    per_step = (time.perf_counter() - began) / steps
    dashboard.close()
    print(f"dashboard: {per_step * 1e6:.1f} µs per batch")
    assert per_step < 0.003 * 0.01


# ── callbacks ───────────────────────────────────────────────────────────────


def test_callbacks_stand_on_the_dashboard_and_in_what_stays(tmp_path):
    page = Page()
    callbacks = (("Ema", "decay 0.9, 0 steps"), ("<b>", ""))
    renderer = started(page=page, callbacks=callbacks)
    board = renderer.dashboard
    assert "decay 0.9, 0 steps" in board.chart.report
    for epoch in (1, 2):
        renderer.update_train(MetricState(MetricEntry("Loss", "1", ""), 1.0))
        renderer.render_train(TrainingProgress(Progress(1, 1), epoch, 4, 1))
        for split in ("train", "valid"):
            renderer.end_epoch(epoch, split, {"Loss": 1.0, "Accuracy": 50.0})
        renderer.update_callbacks([("Ema", f"decay 0.9, {epoch} steps"), ("<b>", "")])
    finish(renderer, MetricHistory(), board.run.control, 2)
    report = page.places[1][-1]["text/html"]
    assert "decay 0.9, 2 steps" in report
    assert "&lt;b&gt;" in report
    path = board.export(tmp_path / "run.html")
    assert "<h2>Callbacks</h2>" in path.read_text()


def test_a_training_without_callbacks_has_no_table_of_them():
    page = Page()
    renderer = NotebookRenderer(page)
    simulate(renderer)
    assert "Callbacks" not in page.places[1][-1]["text/html"]
