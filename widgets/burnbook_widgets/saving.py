"""What a saved page keeps of a live view: its still form.

A part of the Jupyter server. A view on the page needs its kernel; a page that is opened
again has another one, or none, and JupyterLab would only say "model not found". So what
is written to disk holds the still form alone. The page in the browser stays live.

A training draws itself anew all the time, and its live panel must stay where it is. So
the picture of how far it has come travels with the table below the panel, unseen, and
takes the panel's place in what is written. Outputs keep a mark that says which panel
they belong to: a page that is loaded anew gives them the live panel back, as long as
the kernel has it (js/chart_panel.js).
"""

from collections.abc import Iterable, Mapping
from typing import Any

LIVE = "application/vnd.jupyter.widget-view+json"
SVG = "image/svg+xml"
MARK = {"burnbook": {"still": True}}  # metadata of an output with both forms
Metadata = dict[str, Any]


def still_mark(key: str) -> Metadata:
    """Of an output with both forms, where a panel is shown in another cell."""
    return {"burnbook": {"still": True, "panel": key}}


def panel_mark(key: str, ended: bool = False) -> Metadata:
    """Of the output that holds the live panel of a training."""
    return {"burnbook": {"so_far": "panel", "panel": key, "ended": ended}}


def picture_mark(key: str, ended: bool = False) -> Metadata:
    """Of the output below it, which brings its table and its picture so far."""
    return {"burnbook": {"so_far": "picture", "below": key, "ended": ended}}


def keep_still(model: Mapping[str, Any], **_: Any) -> None:
    """Before a notebook is saved: of outputs with both forms keep the still one.

    Why: a page may come from anywhere, so what is no cell or output is left alone.
    """
    content = model.get("content")
    if model.get("type") != "notebook" or not isinstance(content, dict):
        return
    for cell in _dicts(content.get("cells")):
        _keep_still(_dicts(cell.get("outputs")))


def _dicts(found: Any) -> list[dict[str, Any]]:
    """The dicts in a list; none where there is no list."""
    listed = found if isinstance(found, list | tuple) else []
    return [each for each in listed if isinstance(each, dict)]


def _keep_still(outputs: Iterable[dict[str, Any]]) -> None:
    panels: dict[str, dict[str, Any]] = {}
    for output in outputs:
        metadata, data = output.get("metadata"), output.get("data")
        if not isinstance(metadata, dict) or not isinstance(data, dict):
            continue
        about = metadata.get("burnbook")
        about = about if isinstance(about, dict) else {}
        role = about.get("so_far")
        if about.get("still") or role == "panel":
            data.pop(LIVE, None)
        if role == "panel":
            panels[str(about.get("panel"))] = data
        elif role == "picture":
            picture = data.pop(SVG, None)
            panel = panels.get(str(about.get("below")))
            if panel is not None and picture is not None:
                panel.pop("text/html", None)  # it said that there is no picture yet
                panel[SVG] = picture


def jupyter_server_extension_points() -> list[dict[str, str]]:
    """Where the Jupyter server finds what follows."""
    return [{"module": "burnbook_widgets.saving"}]


def load_jupyter_server_extension(app: Any) -> None:
    """Called by the Jupyter server when it starts.

    Why: other extensions (Jupytext) put a manager of their own in the place of the
    first one, so the one that saves is known when all are loaded and the loop runs.
    """

    def register() -> None:
        app.web_app.settings["contents_manager"].register_pre_save_hook(keep_still)

    app.io_loop.add_callback(register)


# The names that the server looks for.
_jupyter_server_extension_points = jupyter_server_extension_points
_load_jupyter_server_extension = load_jupyter_server_extension
