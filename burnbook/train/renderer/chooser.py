"""Which renderer fits the place where training runs."""

from __future__ import annotations

import os
import sys
from importlib.metadata import entry_points
from typing import TextIO

from burnbook.core.errors import ConfigError
from burnbook.train.renderer.base import MetricsRenderer
from burnbook.train.renderer.plain import PlainRenderer
from burnbook.train.renderer.terminal import TerminalRenderer

VARIABLE = "BURNBOOK_DISPLAY"


def choose(stream: TextIO | None = None) -> MetricsRenderer:
    """A notebook's dashboard, a terminal's dashboard, or one line per epoch.

    The environment variable BURNBOOK_DISPLAY overrides this: `static` shows only
    what stays the same from run to run, `plain` one line per epoch, `none` nothing.
    """
    wish = os.environ.get(VARIABLE, "")
    if wish not in ("", "static", "plain", "none"):
        raise ConfigError(
            VARIABLE,
            f"{wish!r} is not a display",
            cure="static, plain, none or nothing",
        )
    if wish == "none":
        return MetricsRenderer()
    if wish != "plain" and in_notebook():
        found = entry_points(group="burnbook.renderers", name="notebook")
        for entry in found:
            return entry.load()()
    if not wish and is_terminal(stream or sys.stdout):
        return TerminalRenderer(stream)
    return PlainRenderer(stream)


def in_notebook() -> bool:
    """Whether this process is a Jupyter kernel; never imports IPython to find out."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def is_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can draw."""
    try:
        "⠿╭━".encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
