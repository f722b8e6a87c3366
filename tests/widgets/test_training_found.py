"""Dashboards found again, named, closely looked at: what there is without a browser."""

from __future__ import annotations

import functools
import json
import threading
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("anywidget", reason="the widgets need anywidget")

from burnbook.core.errors import TrainingError
from burnbook.data import Progress
from burnbook.train import (
    Interrupter,
    MetricEntry,
    MetricHistory,
    MetricState,
    TrainingProgress,
    TrainingResult,
)
from burnbook_widgets import Dashboard, NotebookRenderer, live
from burnbook_widgets.saving import LIVE
from burnbook_widgets.training import dashboard as dashboard_module, open_dashboards
from burnbook_widgets.training.chart_options import smooth
from burnbook_widgets.training.curves import Trace, thin
from burnbook_widgets.training.pages import Pages
from burnbook_widgets.training.points import Points
from burnbook_widgets.training.still import picture
from tests.support.run_folders import write_logs
from tests.support.training_page import (
    METRICS,
    Page,
    click,
    finish,
    run_info,
    set_look,
    simulate,
    some_curves,
    started,
)
from tests.support.widget_state import widget_count


@pytest.fixture(autouse=True)
def alone():
    """No dashboards of tests before, wherever they stood."""
    for dashboard in live():
        dashboard.close()


def opened(name, page=None, **others):
    return Dashboard(run_info(name=name, **others), page or Page())


# ── names ───────────────────────────────────────────────────────────────────


def test_the_name_of_a_run_is_on_panel_still_export_and_terminal(tmp_path):
    name = "spirals <b>& co"
    page = Page()
    renderer = started(page=page, name=name)
    dashboard = renderer.dashboard
    assert dashboard.chart.about["name"] == name
    assert "<b>spirals &lt;b&gt;&amp; co</b>" in page.places[0][0]["text/html"]
    dashboard.curves = some_curves()
    finish(renderer, MetricHistory(), Interrupter(), 3)
    assert "spirals &lt;b&gt;&amp; co</text>" in page.places[0][-1]["image/svg+xml"]
    html, text = (page.places[1][-1][f"text/{kind}"] for kind in ("html", "plain"))
    assert "<b>spirals &lt;b&gt;&amp; co</b> · Trained" in html
    assert text.startswith("spirals <b>& co: Trained 3 epochs")
    exported = dashboard.export(tmp_path / "run.html").read_text(encoding="utf-8")
    assert "<title>Training spirals &lt;b&gt;&amp; co</title>" in exported


def test_a_long_name_is_cut_in_the_picture_only():
    sheet = picture(some_curves(), name="x" * 300)
    words = [shape.text for shape in sheet.shapes if hasattr(shape, "text")]
    (short,) = [text for text in words if text.startswith("xxx")]
    assert len(short) < 100
    assert short.endswith("…")
    assert "x" * 300 in sheet.title


def test_two_runs_that_open_at_once_do_not_mix_their_outputs():
    page = Page()
    put, order = page.put, []

    def slow(bundle, metadata=None):
        mark = metadata["burnbook"]
        order.append(mark.get("panel") or mark["below"])
        threading.Event().wait(0.02)
        return put(bundle)

    page.put = slow
    threads = [
        threading.Thread(target=opened, args=(f"run {i}", page)) for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert order[::2] == order[1::2]
    assert len(set(order)) == 4


# ── found again ─────────────────────────────────────────────────────────────


def test_live_has_every_dashboard_by_name_and_the_newest_of_a_name():
    assert repr(live()) == "[]"
    one, two, again = opened("one"), opened("two"), opened("one")
    assert list(live()) == [one, two, again]
    assert live("one") is again
    assert repr(live()) == "[one (training), two (training), one (training)]"
    with pytest.raises(TrainingError, match="no run here has the name 'three'") as told:
        live("three")
    assert "one, two, one" in str(told.value)
    two.close()
    assert list(live()) == [one, again]


def test_only_the_newest_charts_of_ended_runs_stay_alive():
    training = opened("training")
    before, pages = widget_count(), []
    for _ in range(open_dashboards.ENDED + 5):
        pages.append(Page())
        simulate(NotebookRenderer(pages[-1]), epochs=1, batches=(2, 1))
    assert training in live()
    assert len(live()) <= open_dashboards.ENDED + 1
    assert widget_count() <= before + 2 * open_dashboards.ENDED
    assert LIVE not in pages[0].places[0][-1]  # the picture is left
    assert LIVE in pages[-1].places[0][-1]


def test_a_page_that_could_not_ask_is_told_of_the_panel(monkeypatch):
    told = []
    monkeypatch.setattr(dashboard_module.PAGES, "count", 3)
    dashboard = Dashboard(run_info(), Page())
    dashboard.chart.open_again = lambda: told.append(1)
    dashboard._send(0.0)
    monkeypatch.setattr(dashboard_module.PAGES, "count", 4)
    dashboard._send(10.0)
    dashboard._send(11.0)
    assert told == []  # it has two seconds to ask by itself
    dashboard._send(12.5)
    dashboard._send(20.0)
    assert told == [1]
    monkeypatch.setattr(dashboard_module.PAGES, "count", 5)
    dashboard._send(30.0)
    click(dashboard, "here")  # it has found the panel
    dashboard._send(40.0)
    assert told == [1]


def test_a_widget_that_is_opened_again_says_all_of_its_state(monkeypatch):
    dashboard = Dashboard(run_info(), Page())
    dashboard.curves = some_curves()
    dashboard._send(0.0)
    sent = []

    def note(widget, **facts):
        sent.append((widget, facts))

    for widget in (dashboard.chart.layout, dashboard.chart):
        monkeypatch.setattr(widget.comm, "open", functools.partial(note, widget))
    dashboard.chart.open_again()
    assert [widget for widget, _ in sent] == [dashboard.chart.layout, dashboard.chart]
    facts = sent[1][1]
    state, paths = facts["data"]["state"], facts["data"]["buffer_paths"]
    assert state["about"]["view"] == dashboard.chart.model_id
    assert state["layout"] == f"IPY_MODEL_{dashboard.chart.layout.model_id}"
    assert facts["buffers"][paths.index(["data"])] == dashboard.chart.data
    json.dumps(state)


def test_subscriptions_are_counted_and_others_are_handled_as_usual(monkeypatch):
    handled, later = [], []
    thread = SimpleNamespace(
        _xpub_stream=SimpleNamespace(on_recv=later.append),
        _handle_subscription=handled.append,
        io_loop=SimpleNamespace(add_callback=lambda act, *args: act(*args)),
        socket=SimpleNamespace(setsockopt=lambda *_: None),
    )
    shell = SimpleNamespace(kernel=SimpleNamespace(iopub_thread=thread))
    modules = {
        "IPython": SimpleNamespace(get_ipython=lambda: shell),
        "zmq": SimpleNamespace(XPUB_VERBOSE=40),
    }
    system = SimpleNamespace(modules=modules)
    monkeypatch.setattr("burnbook_widgets.training.pages.sys", system)
    pages = Pages()
    pages.watch()
    pages.watch()
    (handle,) = later
    handle([b"\x01"])
    handle([b"\x01topic"])
    handle([b"\x00"])
    assert pages.count == 1
    assert handled == [[b"\x01topic"], [b"\x00"]]


def test_another_kernel_counts_nothing_and_breaks_nothing(monkeypatch):
    system = SimpleNamespace(modules={})
    monkeypatch.setattr("burnbook_widgets.training.pages.sys", system)
    pages = Pages()
    pages.watch()
    assert pages.count == 0


# ── the end ─────────────────────────────────────────────────────────────────


def test_a_stop_without_a_reason_is_said_once():
    for reason, words in (("stopped", "Stopped in epoch"), ("x", "Stopped (x) in")):
        control = Interrupter()
        renderer = started(control)
        control.stop(reason)
        finish(renderer, MetricHistory(), control, 0)
        assert words in renderer.dashboard.line


def test_the_end_is_on_the_model_for_whichever_page_looks():
    renderer = NotebookRenderer(Page())
    simulate(renderer)
    dashboard = renderer.dashboard
    status, ending = dashboard.chart.status, dashboard.chart.ending
    assert status["state"] == "finished"
    assert status["headline"].startswith("Trained 4 epochs in")
    assert "92.13" in dashboard.chart.report
    assert set(ending["panel"]["data"]) == {"image/svg+xml", "image/png", "text/plain"}
    assert ending["panel"]["metadata"]["burnbook"]["panel"] == dashboard.chart.key
    assert "Trained 4 epochs" in ending["report"]["data"]["text/html"]
    json.dumps(ending)
    click(dashboard, "seen")
    assert dashboard.chart.about["seen"]


def test_after_the_end_the_look_still_changes():
    renderer = NotebookRenderer(Page())
    simulate(renderer)
    dashboard = renderer.dashboard
    dashboard.axis, dashboard.splits, dashboard.log = "step", ("valid",), True
    chart = dashboard.chart
    assert (chart.axis, chart.splits, chart.log) == (1, ["valid"], True)
    click(dashboard, "stop")  # comes late
    click(dashboard, "pause")
    assert dashboard.state == "finished"
    assert dashboard.chart.heard == ["stop 1", "pause 1"]


# ── closer looks ────────────────────────────────────────────────────────────


def write_epochs(folder, epochs, batches, metric="Loss"):
    values = np.sin(np.arange(epochs * batches))
    for epoch, part in enumerate(values.reshape(epochs, batches).tolist(), 1):
        lines = [f"{value!r},16" for value in part]
        write_logs(folder, "train", epoch, **{metric: lines})
    return values


def test_every_batch_is_read_where_buckets_have_merged(tmp_path):
    values = write_epochs(tmp_path, epochs=80, batches=46)
    trace = Trace()
    for step, value in enumerate(values, 1):
        trace.add(step / 46, float(value), step, step / 10)
    coarse = trace.table()
    inside = (coarse[:, 0] >= 2) & (coarse[:, 0] <= 4)
    assert inside.sum() < 15  # what a zoom saw so far
    table = Points(str(tmp_path)).table("Loss", (2.0, 4.0), coarse)
    assert len(table) == 2 * 46 + 1
    assert table[:, 1] == pytest.approx(values[91:184], abs=1e-6)
    assert table[:, 0] == pytest.approx(np.arange(92, 185) / 46)
    assert table[:, 4] == pytest.approx(np.arange(92, 185), abs=1e-6)
    assert table[:, 5] == pytest.approx(np.arange(92, 185) / 10, abs=1e-6)


def test_the_epoch_that_runs_is_placed_by_how_far_it_has_come(tmp_path):
    write_epochs(tmp_path, epochs=1, batches=10)
    points = Points(str(tmp_path))
    coarse = np.zeros((0, 6))
    table = points.table("Loss", (0.0, 1.0), coarse, reached=(1, 0.5, 20))
    assert table[:, 0] == pytest.approx(np.arange(1, 11) * 0.025)  # ten are on the disk


def test_logs_of_a_later_run_in_the_folder_are_not_shown(tmp_path):
    write_epochs(tmp_path, epochs=2, batches=10)
    points, coarse = Points(str(tmp_path)), np.zeros((0, 6))
    assert len(points.table("Loss", (0.0, 2.0), coarse, newest=1.0)) == 0
    assert len(points.table("Loss", (0.0, 2.0), coarse)) == 20
    assert len(points.table("Other", (0.0, 2.0), coarse)) == 0


def test_what_is_kept_of_logs_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("burnbook_widgets.training.points.MOST_KEPT", 25)
    values = write_epochs(tmp_path, epochs=9, batches=10)
    points = Points(str(tmp_path))
    for _ in range(2):
        table = points.table("Loss", (0.0, 9.0), np.zeros((0, 6)))
        assert table[:, 1] == pytest.approx(values, abs=1e-6)
        assert points._size <= 25
    path = tmp_path / "train" / "epoch-9" / "Loss.log"
    path.write_text(path.read_text() + "0.5,16\n")  # it goes on
    assert len(points.table("Loss", (8.0, 9.0), np.zeros((0, 6)))) == 12  # with 8.0


def tell(dashboard, epochs, batches):
    for epoch in range(1, epochs + 1):
        for batch in range(1, batches + 1):
            for name in METRICS:
                dashboard.update(MetricState(MetricEntry(name, "", ""), 0.5))
            at = TrainingProgress(Progress(batch, batches), epoch, epochs, batch)
            dashboard.step("train", at)
        dashboard.end_epoch(epoch, "train", dict.fromkeys(METRICS, 0.5))


def test_a_zoom_on_the_page_or_in_python_is_answered_from_the_logs(tmp_path):
    for metric in METRICS:
        write_epochs(tmp_path, epochs=5, batches=300, metric=metric)
    dashboard = opened("fine", directory=str(tmp_path))
    tell(dashboard, 5, 300)
    assert dashboard.chart.fine == {}
    set_look(dashboard, zoom=[1.0, 2.0])
    assert dashboard.chart.fine["span"] == [1.0, 2.0]
    assert dashboard.chart.fine["parts"] == [[0, 301], [1, 301]]
    rows = np.frombuffer(dashboard.chart.fine_data, "<f4").reshape(-1, 6)
    assert len(rows) == 602
    assert rows[1, 4] == 301
    dashboard.zoom = (4.5, 9.0)
    assert dashboard.chart.fine["span"] == [4.5, 5.0]  # so far, and no farther
    finish(NotebookRenderer(Page()), MetricHistory(), Interrupter(), 5)
    dashboard.finish(TrainingResult(None, MetricHistory(), None, 5, 1.0, str(tmp_path)))
    dashboard.zoom = (0, 0.5)
    assert dashboard.chart.fine["parts"][0] == [0, 150]


def test_a_look_that_would_read_too_much_keeps_the_buckets(tmp_path, monkeypatch):
    monkeypatch.setattr(dashboard_module, "MOST_READ", 500)
    for metric in METRICS:
        write_epochs(tmp_path, epochs=2, batches=300, metric=metric)
    dashboard = opened("much", directory=str(tmp_path))
    tell(dashboard, 2, 300)
    dashboard.zoom = (0, 2)
    assert dashboard.chart.fine == {}
    dashboard.zoom = (0, 0.5)
    assert dashboard.chart.fine["parts"] == [[0, 150], [1, 150]]


def test_smoothing_counts_steps_not_buckets():
    rng = np.random.default_rng(1)
    values = np.cumsum(rng.normal(size=4096)) * 0.05
    whole = Trace(buckets=10_000)
    for step, value in enumerate(values, 1):
        whole.add(step / 100, float(value), step)
    every = whole.table()
    few = thin(every, 512)
    fine = smooth(every, 0.99)
    coarse = smooth(few, 0.99)
    there = np.interp(coarse[:, 4], fine[:, 4], fine[:, 1])
    assert len(few) == 512
    assert np.abs(coarse[:, 1] - there)[50:].max() < 0.12
    naive = smooth(few[:, :2], 0.99)  # in buckets: eight times as slow
    assert np.abs(naive[:, 1] - there)[50:].max() > 0.5


def test_a_run_that_goes_on_counts_its_steps_from_the_beginning():
    dashboard = opened("on", start=3)
    dashboard.update(MetricState(MetricEntry("Loss", "", ""), 0.5))
    at = Progress(16, 320)  # twenty batches an epoch
    dashboard.step("train", TrainingProgress(at, 3, 4, 1))
    assert dashboard.curves.curve("Loss", "train").steps.table()[0, 4] == 41
