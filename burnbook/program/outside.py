"""What a captured function takes from elsewhere: globals, closures and attributes.

A program has them as they were when it was captured. So they are found by the names
that the code loads, and compared at each call: other weights are refused, another
number is told. Generators of random numbers among them, and the global ones of Python
and NumPy, must not move while the function runs.
"""

import copy
import dis
import functools
import inspect
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from burnbook.core.errors import ArgumentError, GraphError, warn_caller
from burnbook.core.rng import Stream
from burnbook.core.tree import Pytree
from burnbook.module import Module
from burnbook.module.tree import MODULES
from burnbook.program.call import are_equal, is_fact
from burnbook.program.recording import identity, where_facts
from burnbook.program.trees import held_arrays, lowest
from burnbook.tensor import Tensor

DEPTH = 3  # of functions that call functions
MOST_PARTS = 100  # of a list that is looked through
PARTS = Pytree({})  # lists, tuples and dicts
LIBRARIES = {*sys.stdlib_module_names, "burnbook", "numpy", "scipy"}
LOADS = ("LOAD_GLOBAL", "LOAD_NAME")
STORES = ("STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR", "DELETE_GLOBAL")
ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
GENERATORS = (
    random.Random,
    np.random.Generator,
    np.random.RandomState,
    np.random.BitGenerator,
    Stream,
)


@dataclass(frozen=True, eq=False)
class Taken:
    """A value that code finds by a name: in a cell of a closure, or in a dict."""

    name: str
    holder: CellType | Mapping[str, Any]
    key: str
    value: Any

    def now(self) -> Any:
        """What the name stands for now."""
        if isinstance(self.holder, CellType):
            return _content(self.holder)
        return self.holder.get(self.key, GONE)


GONE = object()  # no value at all
SourceOf = tuple[str, Callable[[], Any]]  # the name of a generator, and its state


class Generators:
    """Generators of random numbers that would make each run of a function another."""

    def __init__(
        self,
        function: Any,
        modules: Iterable[Module] = (),
        examples: Sequence[Any] = (),
        how: str = "",
    ):
        self.how = how  # the capture lets a function draw
        self.sources: list[SourceOf] = [
            ("Python's random", random.getstate),
            ("np.random", lambda: np.random.get_state(legacy=False)),
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
                    self.sources.append((name, functools.partial(_state_of, value)))

    def states(self) -> list[Any]:
        """The state of each."""
        return [state() for _, state in self.sources]

    def check(self, before: Sequence[Any]) -> None:
        """Raise if one of them has moved since.

        Raises:
            GraphError: a number was drawn, which a program would repeat.
        """
        pairs = zip(self.sources, before, strict=True)
        for (name, state), old in pairs:
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


def _is_same(a: object, b: object) -> bool:
    """Whether two states of a generator are the same."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_is_same(a[k], b[k]) for k in a)  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType] - a state may hold anything
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return bool(a == b)


def _parts_of(modules: Iterable[Module]) -> Iterator[Module]:
    """Every module of some models."""
    for module in modules:
        for _, node in MODULES.nodes(module):
            if isinstance(node, Module):
                yield node


def _fields(modules: Iterable[Module]) -> Iterator[tuple[str, Any]]:
    """What the modules of some models have as attributes."""
    for part in _parts_of(modules):
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
        function: Any,
        modules: Iterable[Module],
        constants: set[Any],
        takes_modules: bool = False,
    ):
        self.takes_modules = takes_modules
        self.dicts: list[tuple[Mapping[str, Any], str, Any]] = []
        self.cells: list[tuple[CellType, Any]] = []
        self.parts: list[tuple[Any, Any]] = []  # a list or dict, and a copy of it
        self.names: dict[tuple[int, str], str] = {}
        self.weights: list[str] = []
        names = Names(function, modules)
        for taken in names.taken:
            value = taken.value
            weights = _weights_in(taken.name, value)
            used = [name for name, part in weights if _is_used(part, constants)]
            if taken.key in names.stored or not (
                used or (not weights and _is_plain(value))
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
        if isinstance(value, (list, dict, set)):
            self.parts.append((value, copy.copy(value)))
            self.names[id(value), ""] = taken.name

    def __bool__(self) -> bool:
        return bool(self.dicts or self.cells)

    def check(self) -> None:
        """Compare what the names stand for with what they did at the capture.

        Raises:
            ArgumentError: other weights have taken the place of some in the program.
        """
        for holder, key, value in self.dicts:  # hot
            if holder.get(key, GONE) is not value:
                self._changed(self.names[id(holder), key], value, holder.get(key, GONE))
        for cell, value in self.cells:
            if _content(cell) is not value:
                self._changed(self.names[id(cell), ""], value, _content(cell))
        for held, before in self.parts:
            if _differs(held, before):
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


def _differs(held: object, before: object) -> bool:
    """Whether a list or dict has other parts than it had."""
    try:
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


def _is_plain(value: Any) -> bool:
    return not isinstance(value, (type, ModuleType)) and is_fact(value)


class Names:
    """What a function and the methods of some models find by names of their own.

    taken: what they load; it may be another value later. fixed: what stays, as defaults
    of parameters. stored: the names to which the code itself gives new values.
    """

    def __init__(self, function: Any, modules: Iterable[Module] = ()):
        self.taken: list[Taken] = []
        self.fixed: list[tuple[str, Any]] = []
        self.stored: set[str] = set()
        self.seen: set[Any] = set()
        self._look_into(function, DEPTH)
        classes = {type(part) for part in _parts_of(modules)}
        for cls in sorted(classes, key=lambda one: one.__qualname__):
            for base in cls.__mro__:
                if not _is_library(base):
                    for held in vars(base).values():
                        self._look_into(getattr(held, "__func__", held), DEPTH)

    def _look_into(self, value: Any, depth: int) -> None:
        """Add what a callable takes from elsewhere."""
        if isinstance(value, functools.partial):
            self.fixed += [(str(i), part) for i, part in enumerate(value.args)]
            self.fixed += value.keywords.items()
            for part in (value.func, *value.args, *value.keywords.values()):
                self._look_into(part, depth)
            return
        owner = getattr(value, "__self__", None)
        code = inspect.unwrap(getattr(value, "__func__", value))
        if not isinstance(code, FunctionType):
            call = "__call__"  # a method of an object that may be called
            owner, code = value, getattr(type(value), call, None)
            if isinstance(value, (Module, type)) or not isinstance(code, FunctionType):
                return
        key = id(code.__code__), id(code.__closure__), id(owner)
        if depth == 0 or key in self.seen or _is_library(code):
            return
        self.seen.add(key)
        names, attributes = self._read(code.__code__)
        if owner is not None and not isinstance(owner, (Module, type, ModuleType)):
            self._add_attributes("self", owner, attributes, depth)
        parameters = inspect.signature(code).parameters.values()
        self.fixed += [
            (p.name, p.default) for p in parameters if p.default is not p.empty
        ]
        cells = zip(code.__code__.co_freevars, code.__closure__ or (), strict=True)
        held: list[Taken] = [
            Taken(name, cell, name, _content(cell)) for name, cell in cells
        ]
        held += [
            Taken(name, code.__globals__, name, code.__globals__[name])
            for name in names
            if name in code.__globals__
        ]
        for taken in held:
            self._add(taken, attributes, depth)

    def _add(self, taken: Taken, attributes: Sequence[str], depth: int) -> None:
        """Add a value, and what may be reached through it."""
        value = taken.value
        if callable(value) and not isinstance(value, (Module, type)):
            self._look_into(value, depth - 1)
        if isinstance(value, FunctionType) or value is GONE:
            return
        self.taken.append(taken)
        is_whole = isinstance(value, (Module, Tensor, *GENERATORS))
        if not is_whole and PARTS.kind(type(value)) is None and not _is_library(value):
            self._add_attributes(taken.name, value, attributes, depth)

    def _add_attributes(
        self, name: str, owner: Any, attributes: Sequence[str], depth: int
    ) -> None:
        """Add what code takes of an object, by the attributes that it asks for."""
        held = getattr(owner, "__dict__", None)
        for key in attributes:
            value = GONE if held is None else held.get(key, GONE)
            if isinstance(getattr(type(owner), key, None), FunctionType):
                self._look_into(getattr(owner, key), depth - 1)
                continue
            is_code = isinstance(value, (FunctionType, ModuleType))
            if held is not None and value is not GONE and not is_code and depth > 0:
                taken = Taken(f"{name}.{key}", held, key, value)
                self._add(taken, attributes, depth - 1)

    def _read(self, code: CodeType) -> tuple[list[str], list[str]]:
        """The globals and the attributes that code loads, of inner functions too."""
        names: dict[str, None] = {}
        attributes: dict[str, None] = {}
        for step in dis.get_instructions(code):
            if step.opname in LOADS:
                names[step.argval] = None
            elif step.opname in ATTRIBUTES:
                attributes[step.argval] = None
            elif step.opname in STORES:
                self.stored.add(step.argval)
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                more, others = self._read(inner)
                names |= dict.fromkeys(more)
                attributes |= dict.fromkeys(others)
        return list(names), list(attributes)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing is there yet, or any more
        return GONE


def _is_library(value: Any) -> bool:
    """Whether code or a module of Python is of a library, which changes nothing."""
    name = value.__name__ if isinstance(value, ModuleType) else None
    name = name or getattr(value, "__module__", None)
    return isinstance(name, str) and name.partition(".")[0] in LIBRARIES
