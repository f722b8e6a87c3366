"""What all exporters share: tables of forms for ops, and what none of them takes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from burnbook.core.errors import ArgumentError
from burnbook.core.files import PathLike, printable
from burnbook.ops.quantize import CODE_TYPES
from burnbook.program import (
    CompiledProgram,
    CompiledTraining,
    Program,
    Step,
    Training,
    Value,
    capture,
)
from burnbook.program.capture import Batch
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


def refuse_others(where: str, model: object) -> None:
    """Raise for a training, and for a compiled program, which is for this machine."""
    if isinstance(model, CompiledProgram):
        what = "a compiled program came, which is for this machine"
        cure = f"{where}(program, …), with the program that compile() was called on"
    elif isinstance(model, (CompiledTraining, Training)):
        what = f"a {type(model).__name__} came, and a model is what can be written"
        holds_state = isinstance(model, CompiledTraining)
        cure = f"{where}(training.model{'' if holds_state else '(state)'}, …)"
    else:
        return
    raise ArgumentError(where, what, [("given", repr(model))], cure)


def program_of(
    where: str, model: Any, examples: tuple[Any, ...], batch: Batch = 0
) -> Program:
    """The program that is written: a model's, captured, or a program as it came.

    where: who asks, for errors.
    """
    refuse_others(where, model)
    if not isinstance(model, Program):
        return capture(model, *examples, batch=batch)
    if examples:
        what = "a program is captured already, and takes no examples"
        raise ArgumentError(where, what)
    return model


def refuse_without_form(
    where: str, problems: Sequence[tuple[str, str, str]], target: str = ""
) -> None:
    """Raise for all operations that cannot be written, if there are any.

    problems: of each its op, where it stands, and why. target: what has no form for
    them, as " in ONNX".
    """
    if not problems:
        return
    facts = [(op, f"{at}: {why}" if at else why) for op, at, why in problems]
    have = "operation has" if len(facts) == 1 else "operations have"
    what = f"{len(facts)} {have} no form{target}"
    cure = "model.valid()" if any("training" in p[2] for p in problems) else None
    raise ArgumentError(where, what, facts, cure)


def refuse_extension(where: str, path: PathLike, wanted: Sequence[str]) -> None:
    """Raise where a path is named like a file of another format."""
    path = Path(path)
    if path.suffix.lower() not in wanted:
        ends = " or ".join(wanted)
        what = f"{printable(path)} is not named like what it writes: {ends}"
        raise ArgumentError(where, what, cure=f'"{path.stem}{wanted[0]}"')


def input_names(where: str, program: Program, given: Sequence[str] = ()) -> list[str]:
    """A name for each input of a program: the given ones, each once, else their own."""
    own = [value.name for value in program.inputs]
    names = _given_names(where, "input", given, own) or own
    refuse_twice(where, "input", names)
    return names


def output_names(
    where: str,
    program: Program,
    given: Sequence[str] = (),
    *,
    any_key: bool = False,
) -> list[str]:
    """A name for each output of a program, each once.

    They are the given ones; else the keys or fields that the results stand under, as
    "loss" or "logits.0" (where the first is an identifier); else those of the values.
    any_key: a key of a dict may be any text, as "fc.weight".

    Example:
        >>> from burnbook.program import capture
        >>> from burnbook.tensor import Tensor
        >>> x = Tensor.ones([2, 3])
        >>> output_names("", capture(lambda x: {"size": x.abs(), "2x": x * 2.0}, x))
        ['size', 'mul']
    """
    wished = [value.name for value in program.outputs]
    tree = getattr(program.gives, "tree", None)
    is_free = any_key and isinstance(tree, dict)
    for path, leaf in ARGUMENTS.leaves(tree):
        if isinstance(leaf, Place) and path and (is_free or path[0].isidentifier()):
            wished[leaf.at] = ".".join(path)
    own = _numbered(wished)
    return _numbered(_given_names(where, "output", given, own) or own)


def _numbered(names: list[str]) -> list[str]:
    """The same names, with a number where one came before."""
    found: list[str] = []
    for first in names:
        name, count = first, 2
        while name in found:
            name, count = f"{first}_{count}", count + 1
        found.append(name)
    return found


def _given_names(
    where: str, kind: str, given: Sequence[str], own: list[str]
) -> list[str]:
    """The given names, where they are texts and one for each; or none."""
    names, facts = [*given], [(f"{kind}s", ", ".join(own))]
    if isinstance(given, str):
        what = f"{kind}_names is a text, not a list of texts"
        raise ArgumentError(where, what, facts, f"{kind}_names=[{given!r}]")
    what = ""
    if wrong := [name for name in names if not isinstance(name, str) or not name]:
        what = f"{wrong[0]!r} is no name of an {kind}"
    elif names and len(names) != len(own):
        came = "1 name" if len(names) == 1 else f"{len(names)} names"
        what = f"{came} came, and there are {len(own)} {kind}s"
    if what:
        cure = f"{kind}_names=[…], one for each {kind}"
        raise ArgumentError(where, what, facts, cure)
    return names


def refuse_twice(where: str, kind: str, names: Sequence[str]) -> None:
    """Raise where a name is given to two inputs or to two outputs."""
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        what = f"{twice[0]!r} is given to two {kind}s"
        raise ArgumentError(where, what, cure=f"{kind}_names=[…], each another")


def narrows(step: Step) -> str:
    """Whether a cast "rounds" to f16 or "wraps" to whole numbers of 8 or 16 bits.

    Files have no such numbers; there, they would go on with digits that are lost here.
    """
    before, after = step.inputs[0].dtype, step.out.dtype
    if after.itemsize >= 4 or np.can_cast(before, after):
        return ""
    if after.kind == "f":
        return "rounds"
    return "wraps" if before.kind in "iu" else ""


def refuse_narrower(step: Step, *refused: str) -> None:
    """Raise for a cast that does what is refused, see `narrows`."""
    does = narrows(step)
    if does in refused:
        name = step.out.dtype_name
        raise NoForm(f"it {does} to {name}, and there are no numbers of {name}")


def later(queries: int, keys: int) -> np.ndarray:
    """Which keys come after a query, where both sequences end at the same time. [q, k]

    Example:
        >>> later(2, 3).tolist()
        [[False, False, True], [False, False, False]]
    """
    return np.arange(keys) > np.arange(keys - queries, keys)[:, None]


def codes_of(
    step: Step, array: Callable[[Value], np.ndarray]
) -> tuple[np.ndarray, float] | None:
    """The codes of a quantized weight and their scale, if whole numbers of 8 bits with
    one scale for all of them are enough.

    step: a `from_codes`. array: the elements of each of its inputs.
    """
    codes, scale, *offset = step.inputs
    kind = CODE_TYPES[step.attrs["value"]]
    if kind.low < -128 or kind.exponent or any(one is not None for one in offset):
        return None
    scales = array(scale)
    if scales.size != 1:
        return None
    return array(codes).astype(np.int8), float(scales.ravel()[0])
