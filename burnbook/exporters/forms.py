"""What all exporters share: tables of forms for ops, and what none of them takes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from burnbook.core.errors import ArgumentError
from burnbook.core.files import PathLike, printable
from burnbook.program import Program
from burnbook.program.compiler import CompiledProgram
from burnbook.program.trees import ARGUMENTS, Place

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


def output_names(where: str, program: Program, given: Sequence[str] = ()) -> list[str]:
    """A name for each output of a program, each once.

    They are the given ones; else the keys or fields that the results stand under, as
    "loss" or "logits.0" (where the first is an identifier); else those of the values.

    Example:
        >>> from burnbook.program import capture
        >>> from burnbook.tensor import Tensor
        >>> x = Tensor.ones([2, 3])
        >>> output_names("", capture(lambda x: {"size": x.abs(), "2x": x * 2.0}, x))
        ['size', 'mul']
    """
    values = program.outputs
    if isinstance(given, str) or len(given) not in (0, len(values)):
        count = "1 name" if isinstance(given, str) else f"{len(given)} names"
        what = f"{count} came, and there are {len(values)} outputs"
        facts = [("outputs", ", ".join(output_names(where, program)))]
        raise ArgumentError(where, what, facts, "output_names=[…], one for each output")
    wished = [value.name for value in values]
    for path, leaf in ARGUMENTS.leaves(getattr(program.gives, "tree", None)):
        if isinstance(leaf, Place) and path and path[0].isidentifier():
            wished[leaf.at] = ".".join(path)
    found: list[str] = []
    for first in given or wished:
        name, count = first, 2
        while name in found:
            name, count = f"{first}_{count}", count + 1
        found.append(name)
    return found


def later(queries: int, keys: int) -> np.ndarray:
    """Which keys come after a query, where both sequences end at the same time. [q, k]

    Example:
        >>> later(2, 3).tolist()
        [[False, False, True], [False, False, False]]
    """
    return np.arange(keys) > np.arange(keys - queries, keys)[:, None]
