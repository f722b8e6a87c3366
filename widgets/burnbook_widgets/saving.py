"""Building blocks · Tensor. What a saved page keeps of a live view: its still form.

A part of the Jupyter server. A view on the page needs its kernel; a page that is opened
again has another one, or none, and JupyterLab would only say "model not found". So what
is written to disk holds the still form alone. The page in the browser stays live.

A training draws itself anew all the time, and its live panel must stay where it is. So
the picture of how far it has come travels with the table below the panel, unseen, and
takes the panel's place in what is written.
"""

from collections.abc import Iterable, Mapping
from typing import Any

LIVE = "application/vnd.jupyter.widget-view+json"
SVG = "image/svg+xml"
MARK = {"burnbook": {"still": True}}  # metadata of an output with both forms
PANEL = {"burnbook": {"so_far": "panel"}}  # of the live panel of a training
PICTURE = {"burnbook": {"so_far": "picture"}}  # of what brings its picture so far


def keep_still(model: Mapping[str, Any], **_: Any) -> None:
    """Before a notebook is saved: of outputs with both forms keep the still one."""
    if model.get("type") != "notebook" or not isinstance(model.get("content"), dict):
        return
    for cell in model["content"].get("cells", ()):
        _keep_still(cell.get("outputs", ()))


def _keep_still(outputs: Iterable[Any]) -> None:
    panel = None
    for output in outputs:
        about = output.get("metadata", {}).get("burnbook")
        if about in (MARK["burnbook"], PANEL["burnbook"]):
            output["data"].pop(LIVE, None)
        if about == PANEL["burnbook"]:
            panel = output["data"]
        elif about == PICTURE["burnbook"]:
            picture = output["data"].pop(SVG, None)
            if panel is not None and picture is not None:
                del panel["text/html"]  # it said that there is no picture yet
                panel[SVG] = picture
            panel = None


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
