"""A plan for a GPU: the steps of a program as graphs that are launched as a whole.

Each step is recorded once, for arrays that stay where they are; a run copies the inputs
in, launches, and copies the outputs out. What cannot be recorded (a step that reads
values back, or takes a number that changes from run to run) is a call between two
graphs, whose results are copied to where the next graph reads them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from burnbook.backend.base import AnyOp, Attrs, Values
from burnbook.core.formulas import Formula
from burnbook.program.compiler.bound import Given
from burnbook.program.compiler.fusion import FusedOp, attrs_of
from burnbook.program.compiler.plan import Part, Plan
from burnbook.program.sizes import Dim, at, leaves, mapped
from burnbook.program.values import Step, Value

T = TypeVar("T")
Arrays = dict[Value, Any]


class Numbers(Protocol):
    """Factors of an op in memory that graphs read, set before each run."""

    def set(self, attrs: Mapping[str, Any]) -> None:
        """Compute the factors from the attributes, and write them there."""
        ...

    def step(self, xp: Any, values: Values) -> Any:
        """Run or record the op with them."""
        ...


class ChangingNumbers(Protocol):
    """What graphs read that is another number in each run."""

    def keys(self, count: int) -> Sequence[Any]:
        """So many keys; each has `set`."""
        ...

    def factors(self, op: AnyOp, values: Values) -> Numbers | None:
        """Room for the factors of an op; None where it has none."""
        ...

    def send(self) -> None:
        """Let graphs see what was set."""
        ...


class Records(Protocol):
    """What a backend that has graphs records them with."""

    xp: Any

    def run(self, op: AnyOp, values: Values, attrs: Attrs) -> Any:
        """Run or record one op."""
        ...

    def numbers(self) -> ChangingNumbers:
        """Room for numbers that change."""
        ...

    def write(self, place: Any, array: Any) -> None:
        """Write an array over another one, in each launch."""
        ...

    def rehearse(self, work: Callable[[], T]) -> T:
        """Do some work before it is recorded."""
        ...

    def record(self, work: Callable[[], T]) -> tuple[Callable[[], None], T]:
        """What does the work again, and what it gave this time."""
        ...


class GraphPlan:
    """A program for a batch of n as graphs, for one thread at a time.

    graphs: how many there are. loose: the numbers of the steps between them.
    """

    def __init__(self, what: Part, n: int | None, backend: Any):
        self.what, self.n, self.backend = what, n, backend
        self.given = Given()
        self.loose: list[int] = []
        self.graphs = 0
        self._records: Records = backend.recorder
        self._xp = backend.xp
        self._factors: dict[Any, tuple[Numbers, Step]] = {}
        self._last = self._last_uses()
        with backend.on_device():
            self._numbers = self._records.numbers()
            keys = self._numbers.keys(len(what.keys))
            self._keys = dict(zip(what.keys, keys, strict=True))
            self._ins = [
                self._xp.zeros(v.shape_at(n), dtype=v.dtype) for v in what.inputs
            ]
            arrays: Arrays = {**what.constants, **what.held}
            arrays.update(zip(what.inputs, self._ins, strict=True))
            self._parts: list[Callable[[], Any]] = []
            self._cut(arrays)
            self._outs = [arrays[value] for value in what.outputs]

    def run(
        self,
        inputs: Sequence[Any],
        keys: Iterable[Any] = (),
        numbers: Mapping[str, float] | None = None,
    ) -> list[Any]:
        """The outputs for these arrays, each in memory of its own."""
        with self.backend.on_device():
            for place, array in zip(self._ins, inputs, strict=True):
                place[...] = array
            for value, key in zip(self.what.keys, keys, strict=True):
                self.given.keys[value] = key
                self._keys[value].set(key)
            if numbers is not None:
                self.given.numbers = numbers
            for factors, step in self._factors.values():
                factors.set(mapped(step.attrs, self._resolved))
            self._numbers.send()
            for part in self._parts:
                part()
            return [out.copy() for out in self._outs]

    @property
    def bytes(self) -> int:
        """How many bytes the graphs keep for their values."""
        return sum(getattr(part, "bytes", 0) for part in self._parts)

    def __str__(self) -> str:
        count = len(self.what.steps)
        text = f"{count} step{'s' * (count != 1)} in {self.graphs} CUDA graph"
        text += "s" * (self.graphs != 1)
        if self.loose:
            names = [self.what.steps[i].op.name for i in self.loose]
            text += f", between them {', '.join(names)}"
        return text

    def _last_uses(self) -> dict[Value, int]:
        last: dict[Value, int] = {}
        for i, step in enumerate(self.what.steps):
            last.update(dict.fromkeys(step.values, i))
        for value in (*self.what.outputs, *(new for _, new in self.what.updates)):
            last[value] = len(self.what.steps)
        return last

    def _cut(self, arrays: Arrays) -> None:
        """Record as many steps as can be at a time; one that cannot runs by itself."""
        count = len(self.what.steps)
        start = 0
        while start <= count:  # after the last step, the updates
            stop = start
            while stop < count and not self._is_loose(stop):
                stop += 1
            self._rehearse(range(start, stop), arrays)
            if start == count and not self.what.updates:
                return
            stop = self._recorded(start, stop, arrays)
            if stop < count:
                self._call_between(stop, arrays)
            start = stop + 1

    def _is_loose(self, number: int) -> bool:
        """Whether a step takes a number that changes and stands in no memory."""
        step = self.what.steps[number]
        if not any(type(leaf) is Formula for leaf in leaves(step.attrs)):
            return False
        return not getattr(step.op, "name", "").endswith("_step")

    def _rehearse(self, numbers: range, arrays: Arrays) -> None:
        """Do the steps once, so that kernels and libraries are ready."""
        trial = dict(arrays)

        def work() -> None:
            for i in numbers:
                try:
                    self._do(i, trial)
                except Exception:  # shown again, where it is known what it means
                    return

        self._records.rehearse(work)

    def _recorded(self, start: int, stop: int, arrays: Arrays) -> int:
        """Record steps from `start` on: before which step the graph ends."""
        reached, before = start, dict(arrays)

        def work() -> Arrays:
            nonlocal reached
            made = dict(before)
            for i in range(start, stop):
                reached = i
                self._do(i, made)
                for value in self.what.steps[i].values:
                    if self._last.get(value) == i and value not in self.what.held:
                        made.pop(value, None)
            reached = stop
            if stop == len(self.what.steps):
                self._update(made)
            return made

        while True:
            if start == stop and stop < len(self.what.steps):
                return stop
            try:
                graph, made = self._records.record(work)
            except Exception:
                if reached == start == stop:
                    raise
                # Where an error shows only at the end, every step is tried by itself.
                stop = reached if reached < stop else start
                self.loose.append(stop)
                continue
            arrays.clear()
            arrays.update(made)
            self._parts.append(graph)
            self.graphs += 1
            return stop

    def _do(self, number: int, arrays: Arrays) -> None:
        """One step as it is recorded: its results among the arrays."""
        step = self.what.steps[number]

        def put(leaf: Any) -> Any:
            if type(leaf) is Value:
                return self._keys[leaf] if leaf in self._keys else arrays[leaf]
            return at(leaf, self.n) if type(leaf) is Dim else leaf

        values = mapped(step.inputs, put)
        if any(type(leaf) is Formula for leaf in leaves(step.attrs)):
            out = self._factors_of(step, values).step(self._records.xp, values)
        else:
            out = self._records.run(step.op, values, mapped(attrs_of(step), put))
        if isinstance(step.op, FusedOp):
            like = np.zeros((), step.out.dtype)
            step.op.checked(out, np.broadcast_to(like, step.out.shape_at(self.n)))
        self._keep(step, out, arrays)

    def _factors_of(self, step: Step, values: Values) -> Numbers:
        """Where the factors of a step stand: steps that compute the same share them."""
        dtype = values[0].dtype
        same = (step.op, dtype, tuple(sorted(step.attrs.items(), key=_first)))
        found = self._factors.get(same)
        if found is None:
            made = self._numbers.factors(step.op, values)
            if made is None:
                raise TypeError(f"{step.op.name} takes numbers that change")
            found = self._factors[same] = made, step
        return found[0]

    def _update(self, arrays: Arrays) -> None:
        """Let results take the place of what stays from run to run."""
        held = self.what.held
        if self.what.updates:
            for value in self.what.outputs:
                if value in held or self._shares(arrays[value], held.values()):
                    arrays[value] = arrays[value].copy()
        for old, new in self.what.updates:
            if arrays[new] is not held[old]:
                self._records.write(held[old], arrays[new])

    def _shares(self, array: Any, others: Iterable[Any]) -> bool:
        return any(self._xp.may_share_memory(array, other) for other in others)

    def _call_between(self, number: int, arrays: Arrays) -> None:
        """A step that runs by itself, into arrays that the next graph reads."""
        step = self.what.steps[number]
        if number not in self.loose:
            self.loose.append(number)
        places: list[Any] = []
        leaves_of = {v: arrays[v] for v in step.values if v in arrays}

        def put(leaf: Any) -> Any:
            if type(leaf) is Value:
                return leaves_of[leaf] if leaf in leaves_of else self._resolved(leaf)
            return self._resolved(leaf)

        def run() -> Any:
            attrs = mapped(attrs_of(step), put)
            return self.backend.run(step.op, mapped(step.inputs, put), attrs)

        def call() -> None:
            found = run()
            outs = found if step.is_tuple else (found,)
            for place, out in zip(places, outs, strict=True):
                if place is not None:
                    place[...] = out

        for value in step.outputs:
            place = None
            if value is not None:
                place = self._xp.zeros(value.shape_at(self.n), dtype=value.dtype)
                arrays[value] = place
            places.append(place)
        self._parts.append(call)

    def _resolved(self, leaf: Any) -> Any:
        """What stands for a leaf in this run."""
        if type(leaf) is Value:
            return self.given.keys[leaf]
        if type(leaf) is Formula:
            return leaf(self.given.numbers)
        return at(leaf, self.n) if type(leaf) is Dim else leaf

    @staticmethod
    def _keep(step: Step, out: Any, arrays: Arrays) -> None:
        outs = out if step.is_tuple else (out,)
        for value, array in zip(step.outputs, outs, strict=True):
            if value is not None:
                arrays[value] = array


def _first(pair: tuple[str, Any]) -> str:
    return pair[0]


def plan_of(what: Part, n: int | None, backend: Any) -> Plan | GraphPlan:
    """The plan for a batch of n on a backend: graphs where it has them."""
    if backend.has_graphs:
        return GraphPlan(what, n, backend)
    return Plan(what, n, backend, bool(getattr(backend, "kernels", None)))
