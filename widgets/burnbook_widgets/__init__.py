"""The moving pictures: what burnbook shows in a notebook.

Each name is imported when it is first asked for, so a chapter loads only its own views.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from burnbook.core.arguments import checks_arguments

if TYPE_CHECKING:
    from burnbook_widgets.autodiff.graph_view import GraphView
    from burnbook_widgets.closeness import ClosenessView
    from burnbook_widgets.dataset.browser import DatasetBrowser
    from burnbook_widgets.file.file_view import FileView
    from burnbook_widgets.module.attention import AttentionView
    from burnbook_widgets.module.convolution import ConvolutionView
    from burnbook_widgets.module.tree import ModuleTree
    from burnbook_widgets.playground.playground import Playground
    from burnbook_widgets.schedule.schedule_plot import SchedulePlot
    from burnbook_widgets.tensor.tensor_view import TensorView
    from burnbook_widgets.training.chart import Chart
    from burnbook_widgets.training.dashboard import Dashboard
    from burnbook_widgets.training.history import history_figure
    from burnbook_widgets.training.notebook_renderer import NotebookRenderer
    from burnbook_widgets.training.open_dashboards import live
    from burnbook_widgets.training.plotly_renderer import PlotlyRenderer
    from burnbook_widgets.training.runs_browser import RunsBrowser

_HOMES = {
    "AttentionView": "module.attention",
    "Chart": "training.chart",
    "ClosenessView": "closeness",
    "ConvolutionView": "module.convolution",
    "Dashboard": "training.dashboard",
    "DatasetBrowser": "dataset.browser",
    "FileView": "file.file_view",
    "GraphView": "autodiff.graph_view",
    "ModuleTree": "module.tree",
    "NotebookRenderer": "training.notebook_renderer",
    "Playground": "playground.playground",
    "PlotlyRenderer": "training.plotly_renderer",
    "RunsBrowser": "training.runs_browser",
    "SchedulePlot": "schedule.schedule_plot",
    "TensorView": "tensor.tensor_view",
    "history_figure": "training.history",
    "live": "training.open_dashboards",
}

__all__ = [
    "AttentionView",
    "Chart",
    "ClosenessView",
    "ConvolutionView",
    "Dashboard",
    "DatasetBrowser",
    "FileView",
    "GraphView",
    "ModuleTree",
    "NotebookRenderer",
    "Playground",
    "PlotlyRenderer",
    "RunsBrowser",
    "SchedulePlot",
    "TensorView",
    "history_figure",
    "live",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_HOMES[name]}")
    checks_arguments(home, [name])
    found = getattr(home, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
