"""How the dashboard is looked at: smoothing, scale, zoom, norms, save, export."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("anywidget", reason="the widgets need anywidget")

from burnbook import nn
from burnbook.core.errors import ConfigError, TrainingError
from burnbook.data import Progress
from burnbook.module import Module
from burnbook.optim import GradientsParams
from burnbook.train import Interrupter, MetricHistory, TrainingProgress, TrainingResult
from burnbook_widgets import Dashboard, NotebookRenderer
from burnbook_widgets.axes import log_ticks
from burnbook_widgets.training.chart_options import ChartOptions, smooth
from burnbook_widgets.training.norms import LAYERS, Norms, norms_of
from burnbook_widgets.training.progress import Meter, facts_of, memory_used
from burnbook_widgets.training.still import picture
from tests.support.cases import cases
from tests.support.tiny_training import (
    Batches,
    builder,
    checkpointed,
    fitted,
    items,
    tiny,
)
from tests.support.training_page import (
    UNITS,
    Page,
    click,
    finish,
    run_info,
    set_look,
    simulate,
    some_curves,
    started,
)
from tests.support.widget_state import state_size


@pytest.fixture
def dashboard():
    return Dashboard(run_info(), Page())


# ── smoothing, scale, detail, zoom ──────────────────────────────────────────


def test_smoothing_is_an_exponential_mean_without_a_pull_to_zero():
    table = np.column_stack([np.arange(50.0), np.full(50, 3.0)])
    assert smooth(table, 0.9)[:, 1] == pytest.approx(np.full(50, 3.0))
    values = np.array([1.0, 5.0, 2.0])
    weights = 0.5 ** np.arange(2, -1, -1)
    rows = smooth(np.column_stack([np.arange(3.0), values]), 0.5)
    assert rows[-1, 1] == pytest.approx(np.average(values, weights=weights))


def test_smoothing_of_nothing_leaves_the_curve():
    table = np.column_stack([np.arange(5.0), np.arange(5.0)])
    assert smooth(table, 0.0).tolist() == table.tolist()


@cases(
    "name value sent",
    ("smoothing", 0.9, 0.9),
    ("log", True, True),
    ("detail", "steps", 1),
    ("axis", "time", 2),
    ("splits", ("valid",), ["valid"]),
)
def test_what_is_set_in_python_reaches_the_chart(dashboard, name, value, sent):
    setattr(dashboard, name, value)
    assert getattr(dashboard.chart, name) == sent
    assert getattr(dashboard, name) == value


def test_what_is_set_on_the_page_is_known_and_stays_in_the_picture(dashboard):
    dashboard.curves = some_curves()
    plain = dashboard.drawing().svg()
    look = {"smoothing": 0.5, "log": True, "detail": 2, "axis": 1, "splits": ["valid"]}
    set_look(dashboard, **look, zoom=[1, 2], shown=[3])
    found = (dashboard.smoothing, dashboard.log, dashboard.detail)
    assert found == (0.5, True, "epochs")
    assert (dashboard.axis, dashboard.splits) == ("step", ("valid",))
    assert dashboard.chart.log  # a page that is loaded anew gets it too
    assert dashboard.zoom == (1, 2)
    assert dashboard.shown_runs == []  # there is no fourth run
    assert dashboard.drawing().svg() != plain


def test_zoom_is_set_and_given_back(dashboard):
    dashboard.zoom = (2, 3)
    assert dashboard.chart.zoom == [2.0, 3.0]
    dashboard.zoom = None
    assert dashboard.chart.zoom == []


def test_a_look_that_makes_no_sense_is_refused(dashboard):
    for name, value, told in (
        ("smoothing", 1, r"smoothing=1\.0 is not from 0"),
        ("detail", "all", "detail='all' is none that can be shown"),
        ("axis", "hour", "axis='hour' is none that can be shown"),
        ("splits", "train", "splits='train' are not splits"),
        ("zoom", (3, 2), "begins after it ends"),
    ):
        with pytest.raises(ConfigError, match=told):
            setattr(dashboard, name, value)
    found = (dashboard.smoothing, dashboard.detail, dashboard.zoom)
    assert found == (0.0, "both", None)


def test_the_picture_follows_the_look():
    curves = some_curves()
    usual = picture(curves, UNITS).svg()
    for look in (
        ChartOptions(0.9),
        ChartOptions(log=True),
        ChartOptions(detail="steps"),
        ChartOptions(detail="epochs"),
        ChartOptions(axis="step"),
        ChartOptions(axis="time"),
        ChartOptions(splits=("valid",)),
        ChartOptions(splits=()),
    ):
        svg = picture(curves, UNITS, look).svg()
        ElementTree.fromstring(svg)
        assert svg != usual
    batches = 'opacity="0.15"'
    assert batches in usual
    assert batches not in picture(curves, UNITS, ChartOptions(detail="epochs")).svg()


def test_a_logarithmic_picture_leaves_out_what_has_no_logarithm():
    curves = some_curves()
    curves.update("Loss", 0.0)
    curves.update("Accuracy", -1.0)
    curves.step("train", 3.0)
    sheet = picture(curves, UNITS, ChartOptions(log=True))
    assert "nan" not in sheet.svg()
    assert "inf" not in sheet.svg()


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.9, 110, [1, 10, 100]), (0.9, 12, [1, 2, 5, 10]), (1.0, 2.0, [1, 1.2])],
)
def test_logarithmic_ticks_are_powers_of_ten_and_their_halves(low, high, expected):
    assert log_ticks(low, high)[: len(expected)] == pytest.approx(expected)


# ── the line of facts, notices, endings ─────────────────────────────────────


def test_the_line_below_the_bar_has_rate_memory_speed_and_time_left():
    clock = [0.0]
    meter = Meter(2, clock=lambda: clock[0])
    meter.note("train", 1, 0, 100, 1, 0.001)
    clock[0] = 10.0
    meter.note("train", 1, 50, 100, 5, 0.0005)
    facts = facts_of(meter)
    assert facts[:2] == ["50 of 100 items", "5 items/s"]
    assert facts[2].startswith("about ")
    assert facts[3:5] == ["iteration 5", "learning rate 0.0005"]
    if memory_used() is not None:
        assert re.fullmatch(r"memory \d+ MB|memory [\d.]+ GB", facts[5])
    meter.note("valid", 1, 50, 100, 5)
    assert meter.lr == 0.0005  # validation has none; the last one stays


def test_memory_is_that_of_this_process():
    psutil = pytest.importorskip("psutil", reason="it says how much memory there is")
    held = psutil.Process().memory_info().rss
    assert memory_used() == pytest.approx(held, rel=0.1)


def test_a_notice_of_the_run_stands_above_it():
    dashboard = started(notice="resuming after epoch 2").dashboard
    assert dashboard.chart.status["notice"] == "resuming after epoch 2"


def test_a_run_with_nothing_left_says_so():
    page = Page()
    renderer = started(page=page, epochs=4, start=5)
    renderer.finish(TrainingResult(None, MetricHistory(), None, 4, 0.1, "run"))
    text = page.places[1][-1]["text/plain"]
    assert text == "run: Nothing was left to train: 4 epochs had been trained before."


def test_a_stop_before_the_first_epoch_ends_counts_no_epoch():
    page, control = Page(), Interrupter()
    renderer = started(control, page)
    control.stop("<b>enough</b>")
    result = TrainingResult(None, MetricHistory(), control.reason, 0, 0.25, "run")
    renderer.finish(result)
    html = page.places[1][-1]["text/html"]
    assert "in epoch 1, before an epoch had ended, after 0.2 s" in html
    assert "<b>enough" not in html


# ── saving a checkpoint ─────────────────────────────────────────────────────


def test_save_asks_the_run_and_says_when_it_is_done():
    control = Interrupter()
    renderer = started(control, saves=True)
    dashboard = renderer.dashboard
    click(dashboard, "save")
    assert control.checkpoint_wanted
    assert dashboard.chart.status["waiting"]
    assert "is saved when it ends" in dashboard.chart.status["said"]
    control.checkpoint_wanted = False  # as the learner does
    renderer.saved(3, "run/checkpoint")
    status = dashboard.chart.status
    assert not status["waiting"]
    assert (status["kept"], status["folder"]) == ([3], "run/checkpoint")
    assert dashboard.checkpoints == [3]
    assert "checkpoint 3" in status["detail"]


def test_a_checkpoint_that_could_not_be_written_is_said():
    renderer = started(saves=True)
    renderer.saved(2, "run/checkpoint", "the disk is full")
    notice = renderer.dashboard.chart.status["notice"]
    assert notice == "The checkpoint of epoch 2 was not saved: the disk is full"


def test_a_run_that_stops_first_says_that_no_checkpoint_was_written():
    control = Interrupter()
    renderer = started(control, saves=True)
    dashboard = renderer.dashboard
    dashboard.save_checkpoint()
    dashboard.stop("enough")
    assert dashboard.chart.status["state"] == "stopping"
    finish(renderer, MetricHistory(), control, 0)
    text = "No checkpoint was written, as the epoch did not end."
    assert dashboard.line.endswith(text)


def test_without_a_checkpointer_the_button_is_off_and_the_twin_says_why(dashboard):
    assert dashboard.chart.about["saves"] is False
    with pytest.raises(TrainingError, match="this run has no checkpointer"):
        dashboard.save_checkpoint()


def test_the_button_writes_a_checkpoint_through_the_learner(tmp_path):
    renderer = NotebookRenderer(Page())
    asked = []
    step = renderer.render_train

    def click_once(progress):
        step(progress)
        if not asked:
            asked.append(progress)
            click(renderer.dashboard, "save")

    renderer.render_train = click_once
    fitted(checkpointed(tmp_path, 3).renderer(renderer))
    assert renderer.dashboard.checkpoints[0] == 1
    assert (tmp_path / "checkpoint" / "model-1.mpk").is_file()  # two are kept usually


# ── norms ───────────────────────────────────────────────────────────────────


def model_and_grads():
    model = tiny()
    output = model.train_step(Batches().batch(items(8)))
    return model, output.grads


def test_norms_are_those_of_all_elements_of_a_layer():
    model, grads = model_and_grads()
    assert isinstance(grads, GradientsParams)
    found = norms_of(model, grads)
    assert list(found) == ["first", "last"]
    params = dict(model.named_params())
    both = [params["first.weight"], params["first.bias"]]
    weights = np.concatenate([np.asarray(p.val()).ravel() for p in both])
    slopes = np.concatenate([np.asarray(grads.get(p.id)).ravel() for p in both])
    assert found["first"] == pytest.approx(
        (np.linalg.norm(weights), np.linalg.norm(slopes)), rel=1e-5
    )


def test_norms_are_measured_at_most_every_ten_steps():
    model, grads = model_and_grads()
    norms = Norms(share=1e9)
    assert [norms.look(model, grads) for _ in range(21)].count(True) == 3
    about, data = norms.pack()
    table = np.frombuffer(data, "<f4").reshape(2, about["width"])
    assert about["layers"] == ["first", "last"]
    assert about["width"] == 2 + 3
    assert table[:, 1] == pytest.approx(table[:, 4])


def test_norms_take_no_more_than_their_share_of_the_time():
    model, grads = model_and_grads()
    norms = Norms(every=1, share=1e-9)
    assert [norms.look(model, grads) for _ in range(5)] == [True] + [False] * 4


class Many(Module):
    layers: list[nn.Linear]


def test_many_layers_stay_small_on_the_page():
    device = tiny().devices()[0]
    model = Many([nn.LinearConfig(2, 2).init(device) for _ in range(LAYERS + 30)])
    for _, param in model.named_params():
        param.val()  # else they wait for their first use
    norms = Norms(every=1, share=1e9)
    for _ in range(100):
        norms.look(model, GradientsParams())
    about, data = norms.pack()
    assert len(about["layers"]) == LAYERS
    assert about["more"] == "and 30 layers more"
    assert len(data) < 12_000


def test_norms_are_measured_only_while_they_are_shown(tmp_path):
    renderer = NotebookRenderer(Page())
    fitted(builder(tmp_path, 1).renderer(renderer))
    assert renderer.dashboard.norms is None
    shown = NotebookRenderer(Page(), norms=True)
    fitted(builder(tmp_path, 1).renderer(shown))
    rows = shown.dashboard.norms.rows()
    assert [row["layer"] for row in rows] == ["first", "last"]
    assert all(row["weights"] > 0 and row["gradients"] > 0 for row in rows)
    assert "Norms when last measured" in shown.dashboard.still()


def test_the_button_shows_and_hides_the_norms(dashboard):
    click(dashboard, "norms")
    assert dashboard.norms_shown
    assert dashboard.chart.norms["open"]
    dashboard.inspect(*model_and_grads())
    assert dashboard.chart.norms["layers"] == []
    dashboard._send(0.0)
    assert dashboard.chart.norms["layers"] == ["first", "last"]
    assert dashboard.chart.norms["open"]
    click(dashboard, "norms")
    assert not dashboard.norms_shown
    assert not dashboard.chart.norms["open"]


# ── export ──────────────────────────────────────────────────────────────────


def test_the_exported_page_needs_nothing_and_holds_everything(tmp_path):
    (tmp_path / "config.json").write_text('{"rate": 0.5, "name": "<i>&"}')
    dashboard = Dashboard(run_info(directory=str(tmp_path)), Page())
    dashboard.curves = some_curves()
    path = dashboard.export(tmp_path / "pages" / "run.html")
    page = path.read_text(encoding="utf-8")
    assert "<script" not in page
    assert not re.search(r"(src|href)=|@import|url\(", page)
    for part in ("<svg", "prefers-color-scheme: dark", "valid Loss", "<td>0.5</td>"):
        assert part in page
    assert "<i>" not in page
    assert "&lt;i&gt;&amp;" in page
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("directory", "name"),
    [("runs/first try", "first-try.html"), ("runs/опыт", "training.html")],
)
def test_a_click_hands_the_same_file_to_the_page(
    directory, name, tmp_path, monkeypatch
):
    dashboard = Dashboard(run_info(directory=directory), Page())
    dashboard.curves = some_curves()
    sent = []
    dashboard.chart.send = lambda content, buffers: sent.append((content, *buffers))
    click(dashboard, "export")
    ((content, page),) = sent
    assert content == {"do": "export", "name": name}
    assert page == dashboard.export(tmp_path / "run.html").read_bytes()
    assert name in dashboard.chart.status["said"]
    dashboard.end_epoch(2, "train", {"Loss": 0.5})  # it was not heard yet
    dashboard.saved(2, "epoch-2")
    assert name in dashboard.said
    monkeypatch.setattr(dashboard, "_answered", dashboard._answered - 60)
    dashboard.saved(2, "epoch-2")
    assert dashboard.said == "Checkpoint of epoch 2 saved."
    dashboard.end_epoch(3, "train", {"Loss": 0.4})
    assert dashboard.said == "Epoch 3, train: Loss 0.4"


def test_an_export_that_fails_leaves_the_old_page(tmp_path, monkeypatch):
    renderer = NotebookRenderer(Page())
    simulate(renderer, epochs=1)
    path = renderer.export(tmp_path / "run.html")
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(TrainingError):
        renderer.export(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_export_that_cannot_be_opened_or_has_nothing_is_refused(tmp_path, dashboard):
    with pytest.raises(TrainingError, match=r"does not end in \.html"):
        dashboard.export(tmp_path / "run.txt")
    with pytest.raises(TrainingError, match="nothing has been trained yet"):
        NotebookRenderer().export(tmp_path / "run.html")


# ── faults and memory ───────────────────────────────────────────────────────


def test_a_fault_of_a_click_is_said_on_the_panel(dashboard, monkeypatch):
    def broken(directory):
        raise OSError("the folder is gone")

    monkeypatch.setattr("burnbook_widgets.training.dashboard.runs_beside", broken)
    click(dashboard, "runs")
    assert dashboard.chart.status["notice"] == "the folder is gone"
    click(dashboard, "norms")
    assert dashboard.chart.status["notice"] == ""


def test_everything_open_stays_small_and_is_freed(same_widgets):
    dashboard = Dashboard(run_info(epochs=2), Page())
    dashboard.show_norms()
    dashboard.inspect(*model_and_grads())
    dashboard.smoothing, dashboard.log, dashboard.zoom = 0.5, True, (0, 1)
    for batch in range(1, 3000):
        dashboard.curves.update("Loss", 1.0 / batch)
        at = TrainingProgress(Progress(batch, 3000), 1, 2, batch, 0.1)
        dashboard.step("train", at)
    assert state_size() < 100_000
    dashboard.close()
