"""What a function reaches by the names in its code: globals, closures, attributes.

The code of the function and of what it calls is read for the names that it loads. What
stands behind them is followed through lists, dicts and objects, by the attributes that
the code asks for, so that what a program was made from can be compared later.
"""

import array
import collections
import dis
import functools
import inspect
import io
import random
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.core.rng import Stream
from burnbook.core.tree import Pytree
from burnbook.module import Module
from burnbook.module.tree import MODULES
from burnbook.tensor import Tensor

DEPTH = 3  # of functions that call functions, and of things in things
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
#: What may hold other parts tomorrow.
CHANGING = (list, dict, set, collections.deque, bytearray, array.array, np.ndarray)
#: What is known by what it is: its inside is compared elsewhere, or never changes.
WHOLE = (Module, Tensor, Backend, *GENERATORS)
#: Methods that Python calls by signs, not by their names.
UNNAMED = frozenset(
    {
        *("__call__", "__getitem__", "__getattr__", "__iter__", "__len__", "__array__"),
        *("__contains__", "__float__", "__int__", "__bool__", "__index__", "__enter__"),
        *("__exit__", "__add__", "__radd__", "__sub__", "__rsub__", "__mul__"),
        *("__rmul__", "__truediv__", "__rtruediv__", "__pow__", "__rpow__", "__neg__"),
        *("__matmul__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__"),
    }
)
GONE = object()  # no value at all


class Slots(Mapping[str, Any]):
    """The attributes of an object that has no dict, as one."""

    def __init__(self, owner: object):
        self.owner = owner

    def __getitem__(self, key: str) -> Any:
        try:
            return object.__getattribute__(self.owner, key)
        except AttributeError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[str]:
        found = (vars(cls).get("__slots__", ()) for cls in type(self.owner).__mro__)
        return (key for keys in found for key in keys if key in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True, eq=False)
class Taken:
    """A value that code finds by a name: in a cell of a closure, or in a dict.

    owner: the object or class whose attributes the dict is.
    """

    name: str
    holder: CellType | Mapping[str, Any]
    key: str
    value: Any
    owner: Any = None

    def now(self) -> Any:
        """What the name stands for now."""
        if isinstance(self.holder, CellType):
            return content(self.holder)
        return self.holder.get(self.key, GONE)

    def put_back(self) -> None:
        """Let the name stand for what it did."""
        if isinstance(self.holder, CellType):
            self.holder.cell_contents = self.value
        elif self.owner is None and isinstance(self.holder, dict):
            self.holder[self.key] = self.value
        elif isinstance(self.owner, type):
            setattr(self.owner, self.key, self.value)
        elif self.value is GONE:
            object.__delattr__(self.owner, self.key)
        else:
            object.__setattr__(self.owner, self.key, self.value)


def content(cell: CellType) -> Any:
    """What a cell of a closure holds; GONE where that is nothing."""
    try:
        return cell.cell_contents
    except ValueError:  # nothing is there yet, or any more
        return GONE


def parts_of(modules: Iterable[Module]) -> Iterator[Module]:
    """Every module of some models."""
    for module in modules:
        for _, node in MODULES.nodes(module):
            if isinstance(node, Module):
                yield node


class Names:
    """What a function and the methods of some models find by names of their own.

    taken: what they load; it may be another value later. held: the lists, dicts and
    arrays among it, which may have other parts later. fixed: what stays, as defaults of
    parameters. stored: the names to which the code itself gives new values. iterators:
    the names of what gives its next value when it is asked.
    """

    def __init__(self, function: object, modules: Iterable[Module] = ()):
        self.taken: list[Taken] = []
        self.held: list[tuple[Taken | None, str, Any]] = []
        self.fixed: list[tuple[str, Any]] = []
        self.stored: set[str] = set()
        self.iterators: list[str] = []
        self.seen: set[Any] = set()
        self._met: dict[int, Any] = {}
        self._root: Taken | None = None
        self._look_into(function, DEPTH)
        classes = {type(part) for part in parts_of(modules)}
        for cls in sorted(classes, key=lambda one: one.__qualname__):
            for base in cls.__mro__:
                if not _is_library(base):
                    for held in vars(base).values():
                        self._look_into(getattr(held, "__func__", held), DEPTH)

    def _look_into_partial(self, value: functools.partial[Any], depth: int) -> None:
        given = [(str(i), part) for i, part in enumerate(value.args)]
        given += value.keywords.items()
        self.fixed += given
        for name, part in given:
            self._follow(name, part, (), depth)
        for part in (value.func, *value.args, *value.keywords.values()):
            self._look_into(part, depth)

    def _look_into(self, value: Any, depth: int) -> None:
        """Add what a callable takes from elsewhere."""
        if isinstance(value, functools.partial):
            self._look_into_partial(value, depth)
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
        given = [(p.name, p.default) for p in parameters if p.default is not p.empty]
        self.fixed += given
        for name, part in given:
            self._follow(name, part, attributes, depth)
        cells = zip(code.__code__.co_freevars, code.__closure__ or (), strict=True)
        held: list[Taken] = [
            Taken(name, cell, name, content(cell)) for name, cell in cells
        ]
        held += [
            Taken(name, code.__globals__, name, code.__globals__[name])
            for name in names
            if name in code.__globals__
        ]
        held += [
            Taken(name, sys.modules, name, sys.modules[name])
            for name in names
            if name not in code.__globals__ and name in sys.modules
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
        before, self._root = self._root, taken
        self._follow(taken.name, value, attributes, depth)
        self._root = before

    def _follow(
        self, name: str, value: object, attributes: Sequence[str], depth: int
    ) -> None:
        """Add what stands in a list or dict, or what code takes of an object."""
        if isinstance(value, WHOLE) or (depth < 0 or id(value) in self._met):
            return
        if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
            self.iterators.append(name)
            return
        of_python = type(value).__module__.partition(".")[0] in LIBRARIES
        is_foreign_array = not of_python and hasattr(type(value), "__array__")
        if isinstance(value, (*CHANGING, tuple)) or is_foreign_array:
            self._met[id(value)] = value
            if not isinstance(value, tuple):
                self.held.append((self._root, name, value))
            for key, part in _inside(value):
                if callable(part) and not isinstance(part, (Module, type)):
                    self._look_into(part, depth - 1)
                self._follow(f"{name}[{key!r}]", part, attributes, depth - 1)
        elif isinstance(value, (type, ModuleType, FunctionType)) or not of_python:
            if not _is_library(value):
                self._add_attributes(name, value, attributes, depth)
        elif isinstance(value, Config):
            self._add_attributes(name, value, attributes, depth)

    def _add_attributes(
        self, name: str, owner: object, attributes: Sequence[str], depth: int
    ) -> None:
        """Add what code takes of an object, by the attributes that it asks for."""
        own = getattr(owner, "__dict__", None)
        held: Mapping[str, Any] = Slots(owner) if own is None else own
        bases = () if isinstance(owner, (type, ModuleType)) else type(owner).__mro__
        bases = [base for base in bases if not _is_library(base)]
        unnamed = {n for base in bases for n in vars(base) if n in UNNAMED}
        for key in [*attributes, *sorted(unnamed)]:
            value = held.get(key, GONE)
            base = next((base for base in bases if key in vars(base)), None)
            above = GONE if base is None else vars(base)[key]
            if isinstance(above, FunctionType) and value is GONE:
                self._look_into(above.__get__(owner), depth - 1)
            elif isinstance(above, property) and above.fget is not None:
                self._look_into(above.fget.__get__(owner), depth - 1)
            elif value is not GONE:
                is_code = isinstance(value, (FunctionType, ModuleType))
                if not is_code and depth > 0:
                    taken = Taken(f"{name}.{key}", held, key, value, owner)
                    self._add(taken, attributes, depth - 1)
            elif above is not GONE and not hasattr(type(above), "__get__"):
                # the class has it, and the object may have its own tomorrow
                self.taken.append(Taken(f"{name}.{key}", held, key, GONE, owner))
                taken = Taken(f"{name}.{key}", vars(base), key, above, base)
                self._add(taken, attributes, depth - 1)

    def _read(self, code: CodeType) -> tuple[list[str], list[str]]:
        """The globals and the attributes that code loads, of inner functions too."""
        names: dict[str, None] = {}
        attributes: dict[str, None] = {}
        for step in dis.get_instructions(code):
            if step.opname in LOADS or step.opname == "IMPORT_NAME":
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
            elif isinstance(inner, str) and inner.isidentifier():  # of getattr
                attributes.setdefault(inner)
        return list(names), list(attributes)


def _inside(value: object) -> Iterable[tuple[Any, Any]]:
    """What stands in a container, with its places; nothing of a long one."""
    if isinstance(value, dict):
        return list(value.items())[:MOST_PARTS]
    if isinstance(value, (list, tuple, collections.deque)):
        return list(enumerate(value))[:MOST_PARTS]
    return ()


def _is_library(value: object) -> bool:
    """Whether code or a module of Python is of a library, which changes nothing."""
    name = value.__name__ if isinstance(value, ModuleType) else None
    name = name or getattr(value, "__module__", None)
    return isinstance(name, str) and name.partition(".")[0] in LIBRARIES
