"""The live plotly figure: what it shows, sends, leaves and frees."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

pytest.importorskip("anywidget", reason="the widgets need anywidget")
pytest.importorskip("plotly", reason="the figure needs plotly")

from burnbook.train import Interrupter, MetricEntry, MetricState
from burnbook_widgets import PlotlyRenderer
from burnbook_widgets.training.plotly_renderer import live_figure, show
from tests.support.tiny_training import builder, fitted
from tests.support.training_page import (
    METRICS,
    UNITS,
    Page,
    run_info,
    simulate,
    some_curves,
)


def test_curves_travel_as_arrays_in_one_message(monkeypatch):
    figure = live_figure(METRICS, UNITS)
    sent = []
    figure.observe(lambda change: sent.append(change["new"]), "_py2js_update")
    show(figure, some_curves())
    sent = [message for message in sent if message]
    assert len(sent) == 1
    style = sent[0]["style_data"]
    assert isinstance(style["y"][0], np.ndarray)
    assert style["y"][0].dtype == np.float32
    assert list(figure.data[2].x) == [1, 2, 3]
    assert [trace.line.dash for trace in figure.data[:3]] == ["solid", "solid", "dash"]


def test_texts_stay_the_same_and_the_script_is_text():
    figure = live_figure(METRICS, UNITS)
    assert repr(figure) == "LiveFigure(Loss, Accuracy)"
    assert isinstance(figure._esm, str)
    assert repr(PlotlyRenderer(Page())) == "PlotlyRenderer(no run yet)"


def test_a_training_has_one_figure_which_goes_when_it_ends(tmp_path, same_widgets):
    page = Page()
    renderer = PlotlyRenderer(page)
    fitted(builder(tmp_path, 2).renderer(renderer))
    (place,) = page.places
    assert "Accuracy" in place[0]["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in place[0]
    assert "saved during training" in place[0]["text/html"]
    assert "Trained 2 epochs" in place[-1]["text/html"]
    assert "<svg" in place[-1]["text/html"]
    assert renderer.figure is None


def test_static_pages_get_what_the_dashboard_gives_them(tmp_path, static):
    page = Page()
    fitted(builder(tmp_path, 1).renderer(PlotlyRenderer(page)))
    line, picture = (place[0] for place in page.places)
    text = "Trained 1 epoch: Accuracy and Loss, train and valid."
    assert line == {"text/plain": text}
    assert set(picture) == {"image/png", "text/plain"}


def test_closed_figures_are_gone():
    kept = []
    for _ in range(3):
        renderer = PlotlyRenderer(Page())
        renderer.start(run_info())
        kept.append(weakref.ref(renderer.figure))
        renderer.close()
    gc.collect()
    assert [ref() for ref in kept] == [None] * 3


def test_stop_and_pause_act():
    control = Interrupter()
    renderer = PlotlyRenderer(Page())
    renderer.start(run_info(control, mode="await"))
    stop, pause, note = renderer.box.children[0].children
    assert "live" in note.value
    pause.click()
    assert control.paused
    assert pause.description == "Resume"
    pause.click()
    assert not control.paused
    stop.click()
    assert control.reason == "stop button"
    renderer.close()


def test_the_figure_follows_and_says_where_it_is():
    renderer = PlotlyRenderer(Page())
    renderer._finish = lambda result: None  # keep it open, to look at it
    simulate(renderer, epochs=2, batches=(3, 1), pause=0.3)
    assert renderer.figure is None  # close() has freed it
    assert "Epoch 2 of 2" in renderer.facts.value


def test_a_fault_is_told_once_and_training_goes_on(capsys):
    renderer = PlotlyRenderer(Page())
    renderer.start(run_info())
    renderer.dashboard.curves.update = None
    state = MetricState(MetricEntry("Loss", "", ""), 1.0)
    for _ in range(3):
        renderer.update_train(state)
    assert capsys.readouterr().out.count("training continues") == 1
    renderer.close()
    assert renderer.figure is None
