"""Building blocks · Learner. The moving pictures: what burnbook shows in a notebook.

Each name is imported when it is first asked for, so a chapter loads only its own views.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burnbook_widgets.browser import DatasetBrowser
    from burnbook_widgets.chart import Chart
    from burnbook_widgets.closeness import ClosenessView
    from burnbook_widgets.dashboard import Dashboard, NotebookRenderer
    from burnbook_widgets.history import history_figure
    from burnbook_widgets.tensor import TensorView
    from burnbook_widgets.tree import ModuleTree

_HOMES = {
    "Chart": "chart",
    "ClosenessView": "closeness",
    "Dashboard": "dashboard",
    "DatasetBrowser": "browser",
    "ModuleTree": "tree",
    "NotebookRenderer": "dashboard",
    "TensorView": "tensor",
    "history_figure": "history",
}

__all__ = [
    "Chart",
    "ClosenessView",
    "Dashboard",
    "DatasetBrowser",
    "ModuleTree",
    "NotebookRenderer",
    "TensorView",
    "history_figure",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
