"""Metrics without a number, too large a number, or none yet: every renderer copes."""

import io
import json
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from burnbook import train
from burnbook.data import Progress
from burnbook.train.renderer.dashboard import COLORLESS, Curve, TerminalDashboard, draw

NAN, INF = math.nan, math.inf
EPOCHS = 4
# What a batch and an epoch say; None: nothing before the epoch is over.
STORIES = {
    "Loss": lambda t: (1 / t, 1 / t),
    "Never": lambda t: (NAN, NAN),
    "Sometimes": lambda t: (NAN, 1.0) if t % 2 else (-1.0, NAN),
    "Perplexity": lambda t: (INF, INF) if t < 3 else (2.0, 3.0),
    "Both ends": lambda t: (INF, -INF) if t % 2 else (-INF, INF),
    "AUROC [Macro]": lambda t: (None, 50.0 + t),
}


def tell(renderer, epochs=EPOCHS, batches=30):
    """Everything a learner tells a renderer; gives the history of it."""
    history = train.MetricHistory()
    run = train.RunInfo("run", tuple(STORIES), epochs, 1, train.Interrupter(), "Model")
    renderer.start(run)
    for epoch in range(1, epochs + 1):
        for split in ("train", "valid"):
            update = getattr(renderer, f"update_{split}")
            for batch in range(1, batches + 1):
                for name, story in STORIES.items():
                    value = story(epoch)[0]
                    text = "epoch N/A % - batch N/A %" if value is None else f"{value}"
                    update(train.MetricState(train.MetricEntry(name, text, ""), value))
                    if value is not None:
                        history.add(name, split, value)
                at = Progress(batch, batches)
                progress = train.TrainingProgress(at, epoch, epochs, batch)
                getattr(renderer, f"render_{split}")(progress)
            means = {name: story(epoch)[1] for name, story in STORIES.items()}
            history.end_epoch(epoch, split, means)
            renderer.end_epoch(epoch, split, means)
    renderer.finish(train.TrainingResult(None, history, None, epochs, 1.0, "run"))
    renderer.close()
    return history


# The terminal


def test_the_plain_renderer_writes_what_there_is():
    stream = io.StringIO()
    tell(train.PlainRenderer(stream), epochs=1)
    line = stream.getvalue().splitlines()[0]
    assert "Never NaN  Sometimes 1.000  Perplexity inf" in line
    assert "Both ends -inf  AUROC [Macro] 51.00" in line


def test_the_terminal_ends_with_its_plots():
    stream = io.StringIO()
    renderer = train.TerminalRenderer(stream)
    tell(renderer)
    assert "trained 4 epochs" in stream.getvalue()
    renderer.dashboard.zoomed = True
    for first, name in enumerate(STORIES):
        for size in ((160, 50), (70, 20), (20, 6)):
            renderer.dashboard.first = first
            rows = draw(renderer.dashboard, *size, COLORLESS)
            assert len(rows) == size[1]
        assert name[:8] in "\n".join(draw(renderer.dashboard, 160, 50, COLORLESS))


def plot_of(curve, zoomed=False):
    run = train.RunInfo("run", ("M",), EPOCHS, 1, train.Interrupter(), "Model")
    dashboard = TerminalDashboard(run, curves={"M": curve}, zoomed=zoomed)
    return "\n".join(draw(dashboard, 100, 30, COLORLESS))


@pytest.mark.parametrize("zoomed", [False, True])
def test_points_without_a_place_are_left_out_of_a_plot(zoomed):
    clean, mixed = Curve(), Curve()
    for value in (1.0, 2.0, 3.0):
        clean.add(value)
    for value in (1.0, 2.0, 3.0, NAN, INF, -INF):
        mixed.add(value)
    clean.end_epoch(1, "valid", 2.0)
    mixed.end_epoch(1, "valid", INF)
    assert "3.00" in plot_of(mixed, zoomed)
    assert "batch 3 " in plot_of(mixed, zoomed)
    assert "waiting" not in plot_of(clean, zoomed)
    nothing = Curve()
    nothing.add(NAN)
    assert "waiting" in plot_of(nothing, zoomed)


def test_a_metric_of_whole_epochs_is_drawn_from_epoch_to_epoch():
    curve = Curve()
    for epoch, value in enumerate((50.0, NAN, 70.0, 80.0), 3):
        curve.end_epoch(epoch, "train", value)
        curve.end_epoch(epoch, "valid", value - 10)
    train, valid, unit = curve.lines(recent=True)
    assert train == [(3, 50.0), (5, 70.0), (6, 80.0)]
    assert valid == [(3, 40.0), (5, 60.0), (6, 70.0)]
    assert unit == "epoch"
    assert "epoch 6 " in plot_of(curve)


def test_a_metric_of_batches_keeps_its_place_among_them():
    curve = Curve()
    for epoch in (1, 2):
        for batch in range(5):
            curve.add(float(batch))
        curve.end_epoch(epoch, "train", 2.0)
        curve.end_epoch(epoch, "valid", 2.5)
    train, valid, unit = curve.lines(recent=False)
    assert [x for x, _ in train] == list(range(1, 11))
    assert (valid, unit) == ([(5, 2.5), (10, 2.5)], "batch")


# The notebook


@pytest.fixture
def notebook(monkeypatch):
    pytest.importorskip("anywidget")
    monkeypatch.delenv("BURNBOOK_DISPLAY", raising=False)
    from burnbook_widgets import NotebookRenderer
    from tests.support.training_page import Page

    return NotebookRenderer(Page())


def test_the_dashboard_survives_and_leaves_its_picture(notebook, capsys):
    tell(notebook)
    assert capsys.readouterr().out == ""  # it would say that the dashboard broke
    dashboard = notebook.dashboard
    assert dashboard.state == "finished"
    svg = dashboard.drawing().svg()
    drawn = ElementTree.fromstring(svg)
    numbers = re.findall(r'(?:points|d|x|y|cx|cy)="([^"]*)"', svg)
    assert drawn.tag.endswith("svg")
    assert not any("nan" in text or "inf" in text for text in numbers)
    assert "AUROC [Macro]" in dashboard.still()
    assert dashboard.line.startswith("Trained 4 epochs")


def test_messages_to_the_page_are_numbers_that_json_has(notebook):
    from burnbook_widgets.training.chart import pack

    tell(notebook)
    frame, data = pack(notebook.dashboard.curves)
    json.dumps(frame, allow_nan=False)
    assert len(data) == 24 * sum(part[3] for part in frame["parts"])
    kinds = {(part[0], part[2]) for part in frame["parts"]}
    assert (5, "steps") not in kinds  # AUROC has no batches
    assert (5, "epochs") in kinds


def test_long_runs_with_gaps_stay_in_bounds(notebook, capsys):
    tell(notebook, epochs=3, batches=2000)
    assert capsys.readouterr().out == ""
    curves = notebook.dashboard.curves
    assert len(curves.curve("Loss", "train").steps.table()) <= 513
    seen = curves.curve("Perplexity", "train").steps.table()
    assert np.nanmax(seen[:, 1]) == 2.0  # its third epoch; the first two are gaps
    assert np.isnan(seen[0, 1])


def test_a_gap_does_not_grow_when_buckets_merge():
    pytest.importorskip("anywidget")
    from burnbook_widgets.training.curves import Trace

    trace = Trace(buckets=8)
    for step in range(64):
        trace.add(step, (2.0, NAN, 4.0, INF)[step % 4])
    table = trace.table()
    assert len(table) <= 9
    assert np.all(table[:, 1:4] == [3.0, 2.0, 4.0])


def test_the_history_can_be_explored(notebook):
    pytest.importorskip("plotly")
    from burnbook_widgets import history_figure

    history = tell(notebook)
    figure = history_figure(history)
    data = json.loads(figure.to_json())["data"]
    names = {(one["name"], one["yaxis"]) for one in data}
    assert ("train, batches", "y6") not in names
    assert ("valid, epoch means", "y6") in names
    assert history.line("valid").endswith("AUROC [Macro] 54.00")


def test_the_table_of_epochs_says_what_is_not_a_number(notebook):
    tell(notebook)
    from burnbook_widgets.training.report import report_bundle

    table = report_bundle(notebook.dashboard)["text/html"]
    row = re.search(r'<tr><th scope="row">1</th>(.*?)</tr>', table, re.DOTALL).group(1)
    assert re.findall(r"<td>(.*?)</td>", row)[2:6] == ["NaN", "NaN", "1", "1"]
