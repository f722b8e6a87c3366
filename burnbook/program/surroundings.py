"""What a captured call must leave alone, and what must be as it was.

A plan does nothing but compute. So while a function is written down, whatever else it
does is looked for: what it prints and logs, and what it puts into lists, objects and
globals. Where it does, it goes on step by step.
"""

import collections
import logging
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any, TextIO

import numpy as np

from burnbook.backend.base import Backend
from burnbook.module import Module
from burnbook.module.tree import MODULES
from burnbook.optim import GradientsAccumulator
from burnbook.optim.adaptor import OptimizerAdaptor
from burnbook.program.call import are_equal, facts_of
from burnbook.program.call_form import refused
from burnbook.program.outside import CONTAINERS, LARGEST, Outside, copied, differs
from burnbook.program.reached import MOST_PARTS, Names
from burnbook.tensor import Tensor

DEPTH = 4  # of things in things
# A backend keeps what it finds out about ops, which is no change.
SKIPPED = (Module, Tensor, OptimizerAdaptor, Backend, type, ModuleType, FunctionType)
OUTSIDE = "return it, and do that with what comes out"


class Changed(Exception):
    """What the function takes from elsewhere is something else now."""


class Surroundings(Outside):
    """What a function takes from elsewhere, compared before each run of its plan."""

    def __init__(
        self,
        function: Callable[..., Any],
        modules: Iterable[Module],
        constants: set[Any],
    ):
        modules = list(modules)
        super().__init__(function, modules, constants, takes_modules=True)
        self.methods = [
            (cls, name, held)
            for cls in classes_of(modules)
            for name, held in vars(cls).items()
            if isinstance(held, FunctionType)
        ]

    def check(self) -> None:
        """Raise Changed where something has changed, the methods of models included."""
        for cls, name, held in self.methods:
            if vars(cls).get(name) is not held:
                raise Changed(f"{cls.__name__}.{name}")
        super().check()

    def _changed(self, name: str, before: object, now: object) -> None:
        if not are_equal(now, before):
            raise Changed(name)

    def _too_large(self, name: str, array: object) -> None:
        size = np.asarray(array).nbytes
        what = f"{name} is an array of {size:,} bytes that may be changed in place"
        raise refused(what, f"{name} as a tensor among the arguments")


def classes_of(modules: Iterable[Module]) -> list[type]:
    """The classes of some models and their parts, but those of the library."""
    found: dict[type, None] = {}
    for module in modules:
        for _, node in MODULES.nodes(module):
            if isinstance(node, Module):
                found.update(dict.fromkeys(type(node).__mro__))
    return [c for c in found if c.__module__.partition(".")[0] not in OURS]


OURS = ("burnbook", "builtins", "abc", "typing")


class Watched:
    """The things that a function may change, and what they are before it runs."""

    def __init__(
        self,
        function: Callable[..., Any],
        modules: Iterable[Module],
        owners: Iterable[Any],
    ):
        self.names = Names(function, modules)
        self.held: list[tuple[str, Any, Any]] = []
        self.seen: set[int] = set()
        for name in self.names.iterators:
            what = f"{name} is an iterator, and every try would take what comes next"
            raise refused(what, f"next({name}) before the call, as an argument")
        for taken in self.names.taken:
            self._add(taken.name, taken.value, DEPTH)
        for name, value in self.names.fixed:
            self._add(name, value, DEPTH)
        self._add("self", getattr(function, "__self__", None), DEPTH)
        for owner in owners:
            self._add(type(owner).__name__, owner, DEPTH)

    def _add(self, name: str, value: object, depth: int) -> None:
        """Remember what a thing holds, and the things that it has."""
        if isinstance(value, GradientsAccumulator):
            what = f"{name} sums gradients from call to call"
            raise refused(what, "sums.accumulate(model, grads) with what comes out")
        if isinstance(value, SKIPPED) or id(value) in self.seen or depth == 0:
            return
        self.seen.add(id(value))
        if isinstance(value, np.ndarray):
            if value.nbytes <= LARGEST:
                self.held.append((name, value, copied(value)))
        elif isinstance(value, CONTAINERS):
            self.held.append((name, value, copied(value)))
            parts = value.values() if isinstance(value, dict) else value
            for part in list(parts)[:MOST_PARTS]:
                self._add(name, part, depth - 1)
        elif isinstance(getattr(value, "__dict__", None), dict):
            self.held.append((name, value, facts_of(value)))
            for key, part in list(vars(value).items()):
                self._add(f"{name}.{key}", part, depth - 1)

    def check(self) -> None:
        """Raise if something has changed; lists and dicts are as they were again.

        Raises:
            Refused: the function does more than compute.
        """
        for name, value, before in self.held:
            _put_back(name, value, before)
        for taken in self.names.taken:
            now = taken.now()
            if now is not taken.value and not are_equal(now, taken.value):
                taken.put_back()
                raise refused(f"it sets {taken.name}, which a plan would not", OUTSIDE)


def _put_back(name: str, value: object, before: Any) -> None:
    """Make a thing what it was, and raise if it was not."""
    if isinstance(value, np.ndarray):
        if differs(value, before):
            value[...] = before
            raise refused(f"it changes {name}, which a plan would not", OUTSIDE)
        return
    if isinstance(value, CONTAINERS):
        if not _is_as_before(value, before):
            _restore(value, before)
            raise refused(f"it changes {name}, which a plan would not", OUTSIDE)
        return
    now = facts_of(value)
    keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    for key in keys:
        if key in before:
            object.__setattr__(value, key, before[key])
    if keys:
        raise refused(f"it sets {name}.{keys[0]}, which a plan would not", OUTSIDE)


def _is_as_before(value: Any, before: Any) -> bool:
    if len(value) != len(before):
        return False
    if isinstance(value, list):
        return all(a is b for a, b in zip(value, before, strict=True))
    if isinstance(value, dict):
        pairs = zip(value.items(), before.items(), strict=True)
        return all(a[0] == b[0] and a[1] is b[1] for a, b in pairs)
    return bool(value == before)


def _restore(value: Any, before: Any) -> None:
    if isinstance(value, (dict, set)):
        value.clear()
        value.update(before)
    elif isinstance(value, collections.deque):
        value.clear()
        value.extend(before)
    else:
        value[:] = before


class Silent:
    """A stream that swallows what one thread writes, and remembers that it did."""

    def __init__(self, stream: TextIO, tell: Callable[[str], None]):
        self._stream, self._tell = stream, tell
        self._thread = threading.get_ident()

    def write(self, text: str) -> int:
        """Note what the captured function writes; pass on all else."""
        caller = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0]  # pyright: ignore[reportPrivateUsage] - as the library of Python does
        if threading.get_ident() != self._thread or caller in ("burnbook", "warnings"):
            return self._stream.write(text)
        self._tell("prints")
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def silence() -> Generator[list[str]]:
    """What this thread prints or logs in the block, which nobody sees."""
    found: list[str] = []
    thread, out, err = threading.get_ident(), sys.stdout, sys.stderr
    handle = logging.Logger.handle

    def note(logger: logging.Logger, record: logging.LogRecord) -> None:
        if threading.get_ident() == thread:
            found.append("logs")
        else:
            handle(logger, record)

    mine = Silent(out, found.append), Silent(err, found.append)
    sys.stdout, sys.stderr = mine
    logging.Logger.handle = note  # type: ignore[method-assign] # for this block
    try:
        yield found
    finally:
        if sys.stdout is mine[0]:
            sys.stdout = out
        if sys.stderr is mine[1]:
            sys.stderr = err
        logging.Logger.handle = handle  # type: ignore[method-assign]


@contextmanager
def only(optimizers: Iterable[OptimizerAdaptor]) -> Generator[None]:
    """Refuse steps of other optimizers in this thread: nobody would put them back."""
    known, thread, step = list(optimizers), threading.get_ident(), OptimizerAdaptor.step
    run: Callable[..., Any] = step

    def checked(self: OptimizerAdaptor, *args: object, **named: object) -> Any:
        mine = threading.get_ident() == thread
        if mine and not any(self is optim for optim in known):
            what = "it steps with an optimizer that is neither an argument nor a global"
            raise refused(what, "the optimizer as an argument of the function")
        return run(self, *args, **named)

    OptimizerAdaptor.step = checked  # type: ignore[method-assign] # for this block
    try:
        yield
    finally:
        OptimizerAdaptor.step = step  # type: ignore[method-assign]
