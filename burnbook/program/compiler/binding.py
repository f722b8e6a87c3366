"""The calls of a plan: its steps, bound to arrays, and joined where threads share them.

A plan has arrays of its own, to which inputs are copied and from which outputs are.
That takes long where they are large. But memory comes again: a loop gives up its arrays
and gets the same places for the next ones. So where it does, the steps that touch a
large input or output are bound to it where it lies, and nothing is copied.
"""

import ctypes
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.thread_pool import cores, threads
from burnbook.program.compiler.bound import QUICK, Bound
from burnbook.program.compiler.rows import Arrays, Planned, Rows
from burnbook.program.values import Step, Value

NEAR = 1 << 19  # bytes that a stretch of a region may touch: a second cache
WORTH = 60_000  # nanoseconds of work that are worth waking another thread
LARGE = 1 << 17  # bytes of an input or output whose copy costs more than a look for it
MOST_BOUND = 8  # bindings that are kept
MOST_MADE = 64  # bindings that are made in all, as each takes as long as some copies
Addresses = tuple[int, ...]


@dataclass
class Region:
    """Steps that may go over their arrays together, in so many stretches.

    in_turns: whether they do, as there is enough to compute or to hold.
    """

    numbers: list[int]
    count: int = 1
    in_turns: bool = False
    written: set[Value] = field(default_factory=set[Value])
    read_whole: set[Value] = field(default_factory=set[Value])


class Bindable(Planned, Protocol):
    """What of a plan is asked here."""

    rows: Rows

    def bound(self, step: Step, arrays: Arrays) -> Bound:
        """A step on these arrays."""
        ...

    def arrays_with(self, moved: Arrays) -> Arrays:
        """The arrays of a run for which some places lie elsewhere."""
        ...


class Binding:
    """The steps of a plan on certain arrays.

    calls: functions to call one after the other. steps_of: the steps of each.
    """

    def __init__(self, plan: Bindable, arrays: Arrays, bounds: dict[int, Bound]):
        self.arrays = arrays
        self.bounds, self._rows = plan.rows.joined(arrays, bounds)
        self._steps, self._roots = plan.what.steps, plan.roots
        self.calls: list[Callable[[], Any]] = []
        self.steps_of: list[list[int]] = []
        self._join_calls(plan.regions)

    def _join_calls(self, regions: Sequence[Region]) -> None:
        """The calls of all regions; steps that can be taken together are one."""
        waiting: list[int] = []

        def join() -> None:
            bounds = [self.bounds[i] for i in waiting]
            if len(bounds) > 1 and bounds[0].together is not None:
                self.calls.append(bounds[0].together(bounds))
                self.steps_of.append(list(waiting))
            else:
                self.calls.extend(bound.run for bound in bounds)
                self.steps_of.extend([i] for i in waiting)
            waiting.clear()

        for region in regions:
            numbers = [i for i in region.numbers if i in self.bounds]
            together = self.bounds[numbers[0]].together
            if together is None or len(numbers) > 1:
                join()
                made = self._calls_of(region)
                self.calls += made
                of_each = [self._rows.get(i, [i]) for i in numbers]
                is_one = len(made) == 1
                self.steps_of += [region.numbers] if is_one else of_each
                continue
            if waiting and self.bounds[waiting[0]].together is not together:
                join()
            waiting += numbers
        join()

    def _calls_of(self, region: Region) -> list[Callable[[], Any]]:
        """A region as functions to call one after the other."""
        bounds = [self.bounds[i] for i in region.numbers if i in self.bounds]
        cost = sum(bound.cost for bound in bounds)
        size = self._touched(region)
        tile = self._tile(region)
        is_shared = cost >= WORTH and cores() > 1
        if len(bounds) > 1:
            calls = len(bounds) * -(-region.count // tile)
            is_shared = is_shared and cost >= QUICK * calls
        if region.count < 2 or not (is_shared or (size > NEAR and len(bounds) > 1)):
            return [bound.run for bound in bounds]
        region.in_turns = len(bounds) > 1
        work = partial(_in_turns, _steps_of(bounds, region.count), tile)
        call = partial(work, 0, region.count)
        if is_shared:
            most = tile if region.in_turns else None
            call = partial(threads.run, work, (), region.count, most=most)
        before = [bound.before for bound in bounds if bound.before is not None]
        after = [bound.after for bound in bounds if bound.after is not None]
        return [
            partial(_in_a_row, (*before, call, *after)) if before or after else call
        ]

    def _touched(self, region: Region) -> int:
        """The most bytes that two steps of a region touch."""
        sizes = [
            sum(
                self.arrays[v].nbytes
                for v in (*self._steps[i].values, *self._steps[i].outputs)
                if v in self._roots
            )
            for i in region.numbers
        ]
        return max(sizes)

    def _tile(self, region: Region) -> int:
        """How many stretches to take at once, so that what they give stays near."""
        each = -(-self._touched(region) // region.count)
        return max(1, NEAR // max(each, 1))


class DirectArrays:
    """Inputs and outputs of a plan that may stay where a caller has them.

    A binding knows memory by its address and owns none of it: it runs only while the
    caller holds arrays there. What comes for the first time is copied, so that memory
    that never comes again costs nothing.
    """

    def __init__(self, plan: Bindable):
        inputs = plan.what.inputs
        news = [new for _, new in plan.what.updates]
        taken = {plan.roots.get(v) for v in (*plan.what.outputs, *news)}
        for i in plan.bounds:  # what is written over has to be a copy
            taken |= {plan.roots.get(v) for v in plan.what.steps[i].outputs}
        places = [
            i
            for i, value in enumerate(inputs)
            if value not in taken and plan.arrays[value].nbytes >= LARGE
        ]
        self.copied = [i for i in range(len(inputs)) if i not in places]
        self._ins = places
        #: Outputs by the place in which they are made.
        found = self._large_outputs(plan)
        self.outs = list(found.values())
        self._roots = [*(inputs[i] for i in places), *found]
        like = [plan.arrays[root] for root in self._roots]
        self._forms = [(array.shape, array.dtype) for array in like]
        self._bindings: OrderedDict[Addresses, Binding] = OrderedDict()
        self._met: OrderedDict[Addresses, None] = OrderedDict()
        self._made = 0

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._roots)

    @staticmethod
    def _large_outputs(plan: Bindable) -> dict[Value, Value]:
        """Outputs by the place where they are made, which is all theirs."""
        roots = [plan.roots.get(value) for value in plan.what.outputs]
        others = {*plan.what.inputs, *plan.what.held}
        others |= {plan.roots[new] for _, new in plan.what.updates if new in plan.roots}
        found: dict[Value, Value] = {}
        for value, root in zip(plan.what.outputs, roots, strict=True):
            if root is None or root in others or roots.count(root) > 1:
                continue
            array, place = plan.arrays[value], plan.arrays[root]
            is_whole = array.flags.c_contiguous and array.nbytes == place.nbytes
            if is_whole and place.nbytes >= LARGE:
                found[root] = value
        return found

    def forget(self) -> None:
        """Bind steps anew: they are others now."""
        self._bindings.clear()

    def new_outputs(self) -> list[NDArray[Any]]:
        """Memory for the large outputs of a run."""
        return [empty(*form) for form in self._forms[len(self._ins) :]]

    def binding(
        self, plan: Bindable, inputs: Sequence[Any], outs: Sequence[NDArray[Any]]
    ) -> Binding | None:
        """The steps on these arrays; None where they are to be copied."""
        arrays = [*(inputs[i] for i in self._ins), *outs]
        if not all(map(_fits, arrays, self._forms)):
            return None
        addresses = tuple([a.__array_interface__["data"][0] for a in arrays])
        found = self._bindings.get(addresses)
        if found is not None:
            self._bindings.move_to_end(addresses)
            return found
        if addresses not in self._met or self._made >= MOST_MADE:
            self._met[addresses] = None
            if len(self._met) > 2 * MOST_BOUND:
                self._met.popitem(last=False)
            return None
        self._made += 1
        found = self._bindings[addresses] = self._bound_to(plan, addresses)
        if len(self._bindings) > MOST_BOUND:
            self._bindings.popitem(last=False)
        return found

    def _bound_to(self, plan: Bindable, addresses: Addresses) -> Binding:
        places = zip(self._roots, addresses, self._forms, strict=True)
        moved = {root: _lying_at(address, *form) for root, address, form in places}
        arrays = plan.arrays_with(moved)
        bounds = {
            i: plan.bound(step, arrays) if _touches(step, plan, moved) else bound
            for i, bound in plan.bounds.items()
            for step in (plan.what.steps[i],)
        }
        return Binding(plan, arrays, bounds)


def _fits(array: Any, form: tuple[tuple[int, ...], np.dtype[Any]]) -> bool:
    """Whether an array is in memory what a plan's own one is."""
    if not isinstance(array, np.ndarray) or (array.shape, array.dtype) != form:
        return False
    return array.flags.c_contiguous and array.flags.aligned


def _touches(step: Step, plan: Bindable, moved: Arrays) -> bool:
    values = (*step.values, *(v for v in step.outputs if v is not None))
    return any(plan.roots.get(value) in moved for value in values)


def _lying_at(address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """An array of memory that is not its own."""
    size = math.prod(shape) * dtype.itemsize
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.ndarray(shape, dtype, memory)


def _in_a_row(calls: Sequence[Callable[[], Any]]) -> None:
    for call in calls:
        call()


def _steps_of(
    bounds: list[Bound], count: int
) -> list[tuple[Callable[[int, int], Any], int]]:
    """The functions of a region, and how many of its units make a stretch for each."""
    return [(b.part, b.units // count) for b in bounds if b.part is not None]


def _in_turns(
    parts: list[tuple[Callable[[int, int], Any], int]],
    tile: int,
    start: int,
    stop: int,
) -> None:
    """All steps of a region for some stretches, a few stretches at a time."""
    for first in range(start, stop, tile):
        last = min(first + tile, stop)
        for part, each in parts:
            part(first * each, last * each)
