"""What all exporters share: tables of forms for ops, and what none of them takes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from burnbook.core.errors import ArgumentError
from burnbook.core.files import PathLike, printable
from burnbook.program.compiler import CompiledProgram

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


def refuse_compiled(where: str, model: object) -> None:
    """Raise for a compiled program, whose kernels are of this machine."""
    if isinstance(model, CompiledProgram):
        what = "a compiled program came, which is for this machine"
        cure = f"{where}(program, …), with the program that compile() was called on"
        raise ArgumentError(where, what, [("given", repr(model))], cure)


def refuse_extension(where: str, path: PathLike, wanted: Sequence[str]) -> None:
    """Raise where a path is named like a file of another format."""
    path = Path(path)
    if path.suffix.lower() not in wanted:
        ends = " or ".join(wanted)
        what = f"{printable(path)} is not named like what it writes: {ends}"
        raise ArgumentError(where, what, cure=f'"{path.stem}{wanted[0]}"')
