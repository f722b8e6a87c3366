"""The history of a run as a plotly figure to explore.

Hover reads values, dragging zooms, the slider below chooses a range of epochs, and a
button changes the losses to a logarithmic scale.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from burnbook_widgets.training.curves import SPLITS, Curves
from burnbook_widgets.training.still import picture

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from burnbook.train import MetricHistory

LIGHT = {
    "train": "#0072b2",
    "valid": "#d55e00",
    "ink": "#24292f",
    "grid": "#d9dde2",
    "paper": "#ffffff",
    "text": "#24292f",
}
DARK = {
    "train": "#56b4e9",
    "valid": "#e69f00",
    "ink": "#e3e6ea",
    "grid": "#3a4048",
    "paper": "#1f242b",
    "text": "#e3e6ea",
}
BOTH = LIGHT  # on white paper: no gray can be read on white and on black
PLOTLY = "application/vnd.plotly.v1+json"


def history_figure(
    history: MetricHistory,
    units: Mapping[str, str] | None = None,
    theme: str = "auto",
) -> go.Figure:
    """Draw every metric of a history over the epochs, train solid and valid dashed.

    theme: "light", "dark", or "auto": white paper, which pages of both themes can hold.

    Why: with BURNBOOK_DISPLAY=static it shows a PNG instead, because pages are compared
    by their plotly data and trained numbers differ in the last digit.
    """
    from plotly.subplots import make_subplots

    metrics = history.metrics
    figure: Any = make_subplots(
        rows=max(1, len(metrics)),
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.09,
        subplot_titles=[_title(name, units) for name in metrics],
        figure=_figure_class()(),
    )
    tones = {"light": LIGHT, "dark": DARK}.get(theme, BOTH)
    for row, metric in enumerate(metrics, start=1):
        for split in SPLITS:
            for line in _traces(history, metric, split, tones, first=row == 1):
                figure.add_trace(line, row=row, col=1)
    _dress(figure, len(metrics), tones, theme)
    figure.still_curves = as_curves(history)
    figure.still_units = dict(units or {})
    return figure


def as_curves(history: MetricHistory) -> Curves:
    """A history in the form that the still picture draws."""
    curves = Curves(history.metrics)
    for metric in history.metrics:
        for split in SPLITS:
            curve = curves.curve(metric, split)
            for x, value in _in_epochs(history, metric, split):
                curve.steps.add(x, value)
            for epoch, mean in history.epochs(metric, split):
                curve.end_epoch(epoch, mean, split)
    return curves


def _in_epochs(
    history: MetricHistory, metric: str, split: str
) -> list[tuple[float, float]]:
    """The values of batches, placed between the first epoch and the last."""
    points = history.points(metric, split)
    epochs = [epoch for epoch, _ in history.epochs(metric, split)]
    if not points:
        return []
    first, last = (epochs[0] - 1, epochs[-1]) if epochs else (0, 1)
    batches = points[-1][0]
    scale = (last - first) / max(1, batches)
    return [(first + number * scale, value) for number, value in points]


def _traces(
    history: MetricHistory,
    metric: str,
    split: str,
    tones: Mapping[str, str],
    first: bool,
) -> list[Any]:
    import plotly.graph_objects as go

    style = {"color": tones[split], "dash": "solid" if split == "train" else "dash"}
    steps = _in_epochs(history, metric, split)
    epochs = history.epochs(metric, split)
    back = 0.5 if split == "train" else 0.0  # where the dashboard draws them, too
    lines: list[Any] = []
    if steps:
        lines.append(
            go.Scatter(
                x=[x for x, _ in steps],
                y=[y for _, y in steps],
                name=f"{split}, batches",
                legendgroup=f"{split} batches",
                showlegend=first,
                visible=True if split == "train" else "legendonly",
                mode="lines",
                line={"color": tones[split], "width": 1},
                opacity=0.4,
                hovertemplate="%{y:.4g}",
            )
        )
    if epochs:
        lines.append(
            go.Scatter(
                x=[epoch - back for epoch, _ in epochs],
                y=[mean for _, mean in epochs],
                name=f"{split}, epoch means",
                legendgroup=f"{split} epochs",
                showlegend=first,
                mode="lines+markers",
                line={**style, "width": 2.5},
                marker={"symbol": "circle" if split == "train" else "square"},
                hovertemplate="%{y:.4g}",
            )
        )
    return lines


def _dress(figure: Any, rows: int, tones: Mapping[str, str], theme: str) -> None:
    """Axes, legend, the range slider and the button for a logarithmic scale."""
    scale = {
        kind: {
            f"yaxis{row if row > 1 else ''}.type": kind for row in range(1, rows + 1)
        }
        for kind in ("linear", "log")
    }
    plot = 230 * max(1, rows) - 10  # pixels; legend and buttons keep their distance
    figure.update_layout(
        template={"dark": "plotly_dark"}.get(theme, "plotly_white"),
        height=plot + 160,
        margin={"l": 60, "r": 20, "t": 120, "b": 40},
        hovermode="x unified",
        font={"color": tones["ink"]},
        hoverlabel={"bgcolor": tones["paper"], "font": {"color": tones["text"]}},
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1 + 30 / plot,
            "yanchor": "bottom",
            "yref": "paper",
            "font": {"size": 13},
        },
        updatemenus=[
            {
                "type": "buttons",
                "direction": "right",
                "x": 1.0,
                "xanchor": "right",
                "y": 1.0,
                "yanchor": "bottom",
                "pad": {"b": 76},
                "bgcolor": "rgba(128,128,128,0.15)",
                "bordercolor": tones["grid"],
                "buttons": [
                    {"label": f"{kind} y", "method": "relayout", "args": [changes]}
                    for kind, changes in scale.items()
                ],
            }
        ],
    )
    figure.update_layout(paper_bgcolor=tones["paper"], plot_bgcolor=tones["paper"])
    figure.update_xaxes(
        gridcolor=tones["grid"],
        zeroline=False,
        unifiedhovertitle={"text": "epoch %{x:.2f}"},
        showspikes=False,  # their outline is a white bar on a dark page
    )
    figure.update_yaxes(gridcolor=tones["grid"], zeroline=False, nticks=7)
    figure.update_xaxes(
        title_text="epoch", rangeslider={"visible": True, "thickness": 0.06}, row=rows
    )
    figure.update_annotations(font={"color": tones["ink"], "size": 14})


def _title(metric: str, units: Mapping[str, str] | None) -> str:
    unit = (units or {}).get(metric, "")
    return f"{metric} ({unit})" if unit else metric


def _figure_class() -> Any:
    """plotly's Figure with a plain text, and a page of PNG when that must be stable."""
    import plotly.graph_objects as go

    class HistoryFigure(go.Figure):
        still_curves: Curves | None = None
        still_units: Mapping[str, str] = {}

        def __setattr__(self, name: str, value: Any) -> None:
            if name.startswith("still_"):
                object.__setattr__(self, name, value)
            else:
                super().__setattr__(name, value)

        _ipython_display_ = _repr_html_ = None  # plotly's own have random ids

        def _repr_mimebundle_(self, *_: Any, **__: Any) -> Any:
            bundle: dict[str, Any] = {"text/plain": repr(self)}
            if os.environ.get("BURNBOOK_DISPLAY") != "static":
                return {**bundle, PLOTLY: json.loads(self.to_json() or "{}")}
            sheet = picture(self.still_curves or Curves(()), dict(self.still_units))
            size = {"width": sheet.width, "height": sheet.height}
            png = sheet.png()
            if png is None:
                return {**bundle, "image/svg+xml": sheet.svg()}
            bundle["image/png"] = base64.b64encode(png).decode("ascii")
            return bundle, {"image/png": size}

        def __repr__(self) -> str:
            names = ", ".join(self.still_curves.metrics) if self.still_curves else ""
            return f"HistoryFigure({names})"

    return HistoryFigure
