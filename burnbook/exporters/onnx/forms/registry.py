"""Which op is written how: one function for each form.

A form is called with the writer, the step, and the names of its inputs ("" for one
that is left out); attributes come by keyword. It adds nodes and gives the name of the
result, a tuple of names, or a function that joins the result where it is wanted whole.
"""

from collections.abc import Callable
from typing import Any

Form = Callable[..., Any]

FORMS: dict[str, Form] = {}


class NoForm(Exception):
    """A step that ONNX cannot express as it stands; the text says why."""


def form(*names: str) -> Callable[[Form], Form]:
    """Declare how the ops with these names are written."""

    def declare(function: Form) -> Form:
        for name in names:
            FORMS[name] = function
        return function

    return declare
