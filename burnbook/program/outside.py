"""What a captured function takes from elsewhere: globals, closures and attributes.

A program has them as they were when it was captured. So they are found by the names
that the code loads, and compared at each call: other weights are refused, another
number is told. Generators of random numbers among them, and the global ones of Python
and NumPy, must not move while the function runs.
"""

import array
import collections
import copy
import functools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CellType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from burnbook.core.errors import ArgumentError, GraphError, warn_caller
from burnbook.core.rng import Stream
from burnbook.module import Module
from burnbook.program.call import are_equal, is_fact
from burnbook.program.reached import (
    GENERATORS,
    GONE,
    MOST_PARTS,
    PARTS,
    Names,
    Taken,
    content,
    parts_of,
)
from burnbook.program.recording import identity, where_facts
from burnbook.program.trees import held_arrays, lowest
from burnbook.tensor import Tensor

CONTAINERS = (list, dict, set, collections.deque, bytearray, array.array)
#: Bytes of an array from elsewhere that is compared at each call.
LARGEST = 1 << 20


class Source(NamedTuple):
    """A generator by its name: how to read its state, and how to put it back."""

    name: str
    state: Callable[[], Any]
    put: Callable[[Any], None]


class Generators:
    """Generators of random numbers that would make each run of a function another."""

    def __init__(
        self,
        function: object,
        modules: Iterable[Module] = (),
        examples: Sequence[Any] = (),
        how: str = "",
    ):
        self.how = how  # the capture lets a function draw
        of_numpy = functools.partial(np.random.get_state, legacy=False)
        self.sources = [
            Source("Python's random", random.getstate, random.setstate),
            Source("np.random", of_numpy, np.random.set_state),
        ]
        seen: set[int] = set()
        names = Names(function, modules)
        found = [(taken.name, taken.value) for taken in names.taken]
        found += [*names.fixed, *_fields(modules), ("an example", list(examples))]
        for name, held in found:
            for path, value in PARTS.leaves(held):
                if isinstance(value, GENERATORS) and id(value) not in seen:
                    seen.add(id(value))
                    name = ".".join((name, *path)) if name != "an example" else name
                    state = functools.partial(_state_of, value)
                    put = functools.partial(_put_state, value)
                    self.sources.append(Source(name, state, put))

    def states(self) -> list[Any]:
        """The state of each."""
        return [source.state() for source in self.sources]

    def put_back(self, before: Sequence[Any]) -> None:
        """Let each be what it was, so that a capture draws from none."""
        for source, old in zip(self.sources, before, strict=True):
            if not _is_same(source.state(), old):
                source.put(old)

    def check(self, before: Sequence[Any]) -> None:
        """Raise if one of them has moved since.

        Raises:
            GraphError: a number was drawn, which a program would repeat.
        """
        pairs = zip(self.sources, before, strict=True)
        for (name, state, _), old in pairs:
            if not _is_same(state(), old):
                self.drawn = name
                what = f"{name} draws here, and the program would repeat what it drew"
                cure = (
                    f"Tensor.random or dropout{self.how}, whose ops draw anew in each "
                    "run; or the numbers as a tensor among the examples"
                )
                raise GraphError("capture", what, where_facts(path=""), cure)


def _state_of(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, Stream):
        return generator.root, generator.position
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return getattr(generator, "bit_generator", generator).state


def _put_state(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, Stream):
        generator.root, generator.position = state
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        getattr(generator, "bit_generator", generator).state = state


def _is_same(a: object, b: object) -> bool:
    """Whether two states of a generator are the same."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_is_same(a[k], b[k]) for k in a)  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType] - a state may hold anything
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return bool(a == b)


def _fields(modules: Iterable[Module]) -> Iterator[tuple[str, Any]]:
    """What the modules of some models have as attributes."""
    for part in parts_of(modules):
        name = type(part).__name__
        yield from ((f"{name}.{key}", value) for key, value in vars(part).items())


class Outside:
    """What a program has taken from elsewhere, to compare it at each call.

    constants: the identities of the arrays that the program has. takes_modules: whether
    a module may come among the inputs. weights: names of modules and tensors whose
    arrays are among the constants.
    """

    def __init__(
        self,
        function: object,
        modules: Iterable[Module],
        constants: set[Any],
        takes_modules: bool = False,
    ):
        self.takes_modules = takes_modules
        self.dicts: list[tuple[Mapping[str, Any], str, Any]] = []
        self.cells: list[tuple[CellType, Any]] = []
        self.parts: list[tuple[Any, Any]] = []  # a list, dict or array, and a copy
        self.names: dict[tuple[int, str], str] = {}
        self.weights: list[str] = []
        names = Names(function, modules)
        for root, name, held in names.held:
            weights = [part for _, part in _weights_in(name, held)]
            is_stored = root is not None and root.key in names.stored
            if is_stored or (
                weights and not any(_is_used(p, constants) for p in weights)
            ):
                continue
            if getattr(held, "nbytes", 0) > LARGEST:
                self._too_large(name, held)
            else:
                self.parts.append((held, copied(held)))
                self.names[id(held), ""] = name
        for taken in names.taken:
            value = taken.value
            weights = _weights_in(taken.name, value)
            used = [name for name, part in weights if _is_used(part, constants)]
            if taken.key in names.stored or not (
                used or (not weights and (value is GONE or _is_plain(value)))
            ):
                continue
            self.weights += used
            self._add(taken)
        self.weights = list(dict.fromkeys(self.weights))

    def _add(self, taken: Taken) -> None:
        holder, value = taken.holder, taken.value
        if isinstance(holder, CellType):
            self.cells.append((holder, value))
        else:
            self.dicts.append((holder, taken.key, value))
        self.names[id(holder), taken.key] = taken.name
        self.names[id(holder), ""] = taken.name

    def _too_large(self, name: str, array: object) -> None:
        """What is done where comparing an array would take longer than a step."""

    def __bool__(self) -> bool:
        return bool(self.dicts or self.cells or self.parts)

    def check(self) -> None:
        """Compare what the names stand for with what they did at the capture.

        Raises:
            ArgumentError: other weights have taken the place of some in the program.
        """
        for holder, key, value in self.dicts:  # hot
            if holder.get(key, GONE) is not value:
                self._changed(self.names[id(holder), key], value, holder.get(key, GONE))
        for cell, value in self.cells:
            if content(cell) is not value:
                self._changed(self.names[id(cell), ""], value, content(cell))
        for held, before in self.parts:
            if differs(held, before):
                self._changed(self.names[id(held), ""], before, held)

    def _changed(self, name: str, before: object, now: object) -> None:
        """Refuse other weights; tell another number once."""
        if are_equal(now, before):
            return
        if _weights_in(name, before):
            kind = type(before).__name__
            what = f"{name} is another {kind} now than when it was captured"
            if type(now) is not type(before):
                what = f"{name} is not the {kind} any more that it was at the capture"
            what += ", and the program has the weights of that one"
            cure = "capture again with it"
            if name.isidentifier() and self.takes_modules:
                cure += f"; or {name} as an argument of the function, which is among "
                cure += "the examples and comes with each step"
            if name.isidentifier():
                cure += f"; or {name}={name} among the parameters of the function, "
                cure += "which keeps the old one"
            raise ArgumentError("program", what, cure=cure)
        self._forget(before)
        new = "gone" if now is GONE else f"{_short(now)} now"
        warn_caller(
            f"program: {name} is {new}, and the program goes on with "
            f"{_short(before)}; try: capture again; or a tensor among the examples"
        )

    def _forget(self, value: object) -> None:
        """Compare a value no more, as its change has been told."""
        self.dicts = [entry for entry in self.dicts if entry[2] is not value]
        self.cells = [entry for entry in self.cells if entry[1] is not value]
        self.parts = [pair for pair in self.parts if pair[1] is not value]


def copied(held: object) -> Any:
    """A list or dict with the same parts, or the numbers of an array."""
    return copy.copy(held) if isinstance(held, CONTAINERS) else np.array(held)


def differs(held: object, before: object) -> bool:
    """Whether a list or dict has other parts than it had, or an array other numbers."""
    try:
        if isinstance(before, np.ndarray):
            return not are_equal(np.asarray(held), before)
        return bool(held != before)
    except Exception:  # a tensor among them is another one
        return True


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _weights_in(name: str, value: object) -> list[tuple[str, Any]]:
    """The modules and tensors that a value is, or has as parts, with their names."""
    if isinstance(value, (Module, Tensor)):
        return [(name, value)]
    if not isinstance(value, (list, tuple, dict)) or len(value) > MOST_PARTS:  # pyright: ignore[reportUnknownArgumentType] - of anything
        return []
    found = PARTS.leaves(value)
    return [
        (".".join((name, *path)), part)
        for path, part in found
        if isinstance(part, (Module, Tensor))
    ]


def _is_used(part: Module | Tensor, constants: set[Any]) -> bool:
    """Whether a program has arrays of this; a module without any may matter, too."""
    if isinstance(part, Tensor):
        return identity(lowest(part.value)) in constants
    arrays = [array for _, _, array in held_arrays(part)]
    return not arrays or any(identity(array) in constants for array in arrays)


def _is_plain(value: object) -> bool:
    return not isinstance(value, (type, ModuleType)) and is_fact(value)
