"""The history of a run as a plotly figure to explore."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("anywidget", reason="the widgets need anywidget")
pytest.importorskip("plotly", reason="the history needs plotly")

from burnbook.train import MetricHistory
from burnbook_widgets import NotebookRenderer, history_figure
from tests.support.contrast import contrast
from tests.support.training_page import UNITS, Page, simulate


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
    paper = figure.layout.paper_bgcolor
    assert figure.layout.plot_bgcolor == paper
    assert contrast(figure.layout.font.color, paper) >= 4.5  # it was grey on black
    for note in figure.layout.annotations:
        assert contrast(note.font.color, paper) >= 4.5
    for trace in figure.data:
        assert contrast(trace.line.color, paper) >= 3.0


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
