"""What is done to a program before it is planned: folding, fusing, leaving out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from burnbook.backend.base import Backend
from burnbook.core.dtypes import unpickled
from burnbook.core.errors import ArgumentError
from burnbook.core.formulas import Formula
from burnbook.core.op import BackwardOp
from burnbook.program.compiler.fusion import (
    FusedOp,
    FusionRule,
    fused_steps,
    refuse_others,
)
from burnbook.program.compiler.rewriting import rewritten, with_equal_constants_once
from burnbook.program.sizes import Dim, at, mapped
from burnbook.program.values import Step, Value


@dataclass(frozen=True)
class Source:
    """A program as the compiler is given it; the fields are those of `Program`.

    results: how many of the outputs a call gives; the others are updates. batch_size:
    the batch size of inputs of some shapes, or an error.
    """

    name: str
    inputs: tuple[Value, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Value, ...]
    results: int
    constants: Mapping[Value, Any]
    backend: Backend
    keys: tuple[Value, ...]
    takes: Callable[..., Any] | None
    gives: Callable[..., Any] | None
    batch_size: Callable[..., int | None]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        own = {value: unpickled(array) for value, array in self.constants.items()}
        object.__setattr__(self, "constants", own)

    def checked_keys(self, keys: Iterable[Any]) -> list[Any]:
        """The keys of random numbers that a run is given, one for each draw."""
        return keys_for(self.name, self.keys, keys)


def keys_for(name: str, wanted: Sequence[Value], given: Iterable[Any]) -> list[Any]:
    """The keys of random numbers that a run is given, one for each draw.

    Raises:
        ArgumentError: there are fewer or more.
    """
    found = list(given)
    if len(found) != len(wanted):
        what = f"it draws with {len(wanted)} keys, and {len(found)} came"
        cure = "one key for each of program.keys, or none for the next ones"
        raise ArgumentError(name, what, cure=cure)
    return found


@dataclass(frozen=True)
class Lowered:
    """The steps that are left of a program, and its constants with those made of them.

    folded: how many steps gave constants; unused: how many nobody wanted.
    """

    steps: tuple[Step, ...]
    constants: Mapping[Value, Any]
    folded: int
    unused: int


def lower(program: Source, rules: Sequence[FusionRule]) -> Lowered:
    """Fold constants, leave out what no output needs, and fuse."""
    steps, constants = program.steps, program.constants
    steps = with_equal_constants_once(steps, constants)
    given = (steps, program.outputs, constants, program.backend)
    found = lower_steps(*given, rules)
    return replace(found, constants=_in_rows(found.steps, found.constants))


def _in_rows(steps: Sequence[Step], constants: Mapping[Value, Any]) -> dict[Value, Any]:
    """The constants, with those that steps read each in one piece.

    A weight is often kept the other way round than it is multiplied by.
    """
    found = dict(constants)
    for value in {value for step in steps for value in step.values}:
        array = found.get(value)
        if type(array) is np.ndarray and array.ndim > 1:
            found[value] = np.ascontiguousarray(array)
    return found


def lower_steps(
    steps: Sequence[Step],
    outputs: Sequence[Value],
    constants: Mapping[Value, Any],
    backend: Backend,
    rules: Sequence[FusionRule],
) -> Lowered:
    """The same for the parts of a program."""
    refuse_others(rules)
    left, known = folded(steps, constants, backend)
    wanted = used_steps(left, outputs)
    simpler = rewritten(wanted, outputs, known, used_steps)
    fused = fused_steps(simpler, outputs, rules)
    counts = len(steps) - len(left), len(left) - len(wanted)
    return Lowered(tuple(fused), known, *counts)


def folded(
    steps: Sequence[Step],
    given: Mapping[Value, Any],
    backend: Backend,
    n: int | None = None,
) -> tuple[list[Step], dict[Value, Any]]:
    """The steps that need an input or the batch size, and the results of the others.

    n: the batch size, if it is known by now.
    """
    constants: dict[Value, Any] = dict(given)
    kept: list[Step] = []
    for step in steps:
        if not _is_fixed(step, constants, n):
            kept.append(step)
            continue

        def put(leaf: Any) -> Any:
            if type(leaf) is Dim:
                return at(leaf, n)
            return constants[leaf] if type(leaf) is Value else leaf

        results = results_of(step, backend, put, n)
        for value, array in zip(step.outputs, results, strict=True):
            if value is not None:
                constants[value] = array
    return kept, constants


def results_of(
    step: Step, backend: Backend, put: Callable[[Any], Any], n: int | None
) -> tuple[Any, ...]:
    """What a step gives by its op, which a backend runs; what a rule gives is checked.

    put: the array or number that stands for a leaf of its inputs and attributes.
    """
    values, attrs = mapped(step.inputs, put), mapped(step.attrs, put)
    call = partial(backend.run, step.op, values, attrs)
    if isinstance(step.op, FusedOp):
        like = np.broadcast_to(np.zeros((), step.out.dtype), step.out.shape_at(n))
        found = step.op.first(call, like)
    else:
        found = call()
    return found if step.is_tuple else (found,)


def _is_fixed(step: Step, constants: Mapping[Value, Any], n: int | None) -> bool:
    """Whether a step gives the same in every run with a batch of n."""
    leaves: list[Any] = []
    mapped(step.inputs, leaves.append)
    mapped(step.attrs, leaves.append)
    return not any(
        type(leaf) is Formula
        or (type(leaf) is Dim and n is None)
        or (type(leaf) is Value and leaf not in constants)
        for leaf in leaves
    )


def used_steps(steps: Sequence[Step], outputs: Iterable[Value]) -> list[Step]:
    """The steps that some output needs, with the gradients that some output needs."""
    needed = set(outputs)
    kept: list[Step] = []
    for step in reversed(steps):
        if needed.intersection(v for v in step.outputs if v is not None):
            needed.update(step.values)
            kept.append(_needed_alone(step, needed))
    return kept[::-1]


def _needed_alone(step: Step, needed: set[Value]) -> Step:
    """A step without the results behind the first that no output needs, and a gradient
    step without the gradients."""
    if not isinstance(step.op, BackwardOp):
        first, *others = step.outputs
        if first is None or all(v in needed for v in others):
            return step
        kept = [v if v in needed else None for v in others]
        return replace(step, outputs=(first, *kept))
    wants = tuple([value in needed for value in step.outputs])
    has = tuple([value is not None for value in step.outputs])
    if wants == has:
        return step
    if step.attrs.get("needs") != has:  # they stand for something else
        return step
    outputs = [v if v in needed else None for v in step.outputs]
    return replace(step, outputs=tuple(outputs), attrs={**step.attrs, "needs": wants})
