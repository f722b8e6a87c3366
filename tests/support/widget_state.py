"""The widgets that a process holds: how many, and how large a saved page gets."""

import json

import ipywidgets


def widget_state():
    """The state of each widget by its id."""
    return ipywidgets.Widget.get_manager_state()["state"]


def widget_count():
    return len(widget_state())


def state_size(**options):
    """The characters that all widgets take in a saved page, buffers included."""
    return len(json.dumps(ipywidgets.Widget.get_manager_state(**options)))
