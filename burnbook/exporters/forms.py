"""Which op is written how: a table of forms, one for each thing that is written."""

from collections.abc import Callable
from typing import Any

Form = Callable[..., Any]


class NoForm(Exception):
    """A step that cannot be written as it stands; the text says why."""


class Forms(dict[str, Form]):
    """The forms by the names of their ops: `@form("relu", "tanh")` declares one."""

    def declare(self, *names: str) -> Callable[[Form], Form]:
        """Declare how the ops with these names are written."""

        def keep(function: Form) -> Form:
            self.update(dict.fromkeys(names, function))
            return function

        return keep
