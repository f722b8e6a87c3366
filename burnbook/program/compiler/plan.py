"""A plan: a program for one batch size, with every array in its place.

What is decided here, once: which steps are views of what is there already, which write
over what they read, which go over a batch together (a region), where everything stands
in memory, and by what each step is computed. A run then copies the inputs in, calls one
function after the other, and copies the outputs out; large ones stay where they are
(binding.py). Elementwise steps in a row become one loop in time (rows.py).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.backend.base import Backend
from burnbook.backend.compiled.runtime.buffers import SMALLEST, empty
from burnbook.backend.numpy import no_errors, reset_errstate, set_errstate
from burnbook.program.compiler.binding import (
    Binding,
    DirectArrays,
    Region,
)
from burnbook.program.compiler.bound import (
    BINDERS,
    IN_PLACE,
    Bound,
    Call,
    Given,
    bind,
)
from burnbook.program.compiler.fusion import FusedOp, attrs_of
from burnbook.program.compiler.memory import Lifetime, block, peak, placed
from burnbook.program.compiler.passes import folded
from burnbook.program.compiler.rows import WORTH, Arrays, Rows
from burnbook.program.sizes import Dim, at, mapped
from burnbook.program.values import Step, Value

#: Of steps that may write over what they read: for each result, that input.
UPDATES = {"adam_step": (0, 2, 3)}
VIEWS = {
    *("reshape", "swap_dims", "permute", "slice", "expand", "flip"),
    *("reshape.backward", "swap_dims.backward", "permute.backward", "flip.backward"),
    "add.backward",  # where nothing was stretched
}


@dataclass(frozen=True)
class Part:
    """What a plan is made from: steps, values and constants of a lowered program.

    held: arrays of inputs that no run is given, which stay from run to run. updates:
    pairs of such an input and the result that takes its place after each run.
    """

    inputs: tuple[Value, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Value, ...]
    constants: Mapping[Value, Any]
    keys: tuple[Value, ...] = ()
    held: Mapping[Value, Any] = field(default_factory=dict[Value, Any])
    updates: tuple[tuple[Value, Value], ...] = ()


class Plan:
    """A program for a batch of n, ready to run; for one thread at a time.

    bytes: of the block in which all values stand. eager_bytes: the most that is held at
    once where every result is allocated by itself, and given up after its last use.
    """

    def __init__(self, what: Part, n: int | None, backend: Backend, is_compiled: bool):
        left, known = folded(what.steps, what.constants, backend, n)
        what = replace(what, steps=tuple(left), constants=known)
        self.what, self.n, self.backend = what, n, backend
        self.is_compiled = is_compiled
        self.given = Given()
        self.roots: dict[Value, Value] = {}
        self.views: set[int] = set()
        trial = self._trial_arrays()
        steps = tuple(self._split(trial))
        if len(steps) > len(what.steps):
            self.what = what = replace(what, steps=steps)
            self.roots, self.views = {}, set()
            trial = self._trial_arrays()
        self._merge_in_place(trial)
        bounds = {
            i: self.bound(step, trial)
            for i, step in enumerate(what.steps)
            if i not in self.views
        }
        self.regions = self._regions(bounds, trial)
        starts, self.bytes = self._place(trial)
        memory = block(self.bytes)
        self.arrays = self._placed_arrays(memory, starts, trial)
        self.bounds = {i: self.bound(what.steps[i], self.arrays) for i in bounds}
        self.rows = Rows(self)
        self._spent = 0.0  # seconds in rows, until these are loops
        own = Binding(self, self.arrays, self.bounds)
        self.calls, self.steps_of = own.calls, own.steps_of
        self.updates: list[Callable[[], Any]] = []  # once the outputs are copied
        for old, new in what.updates:
            if self.roots.get(new) is not old:
                target, found = self.arrays[old], self.arrays[new]
                self.updates.append(partial(np.copyto, target, found))
        self._ins = [self.arrays[value] for value in what.inputs]
        outs = [self.arrays[value] for value in what.outputs]
        self._outs = [(copy_of(a.nbytes), a) for a in outs]
        self.eager_bytes = self._eager_bytes()
        direct = DirectArrays(self)
        self._direct = direct if direct else None

    def run(
        self,
        inputs: Sequence[Any],
        keys: Iterable[Any] = (),
        numbers: Mapping[str, float] | None = None,
    ) -> list[Any]:
        """The outputs for these arrays, each in memory of its own."""
        if self.rows.cost:
            self._count()
        direct, found, made = self._direct, None, ()
        if direct is not None:
            made = direct.new_outputs()
            found = direct.binding(self, inputs, made)
        self._take(inputs, keys, numbers, found)
        before = set_errstate(no_errors)
        try:
            for call in self.calls if found is None else found.calls:
                call()
        finally:
            reset_errstate(before)
        if direct is None:
            outs = [copy(out) for copy, out in self._outs]
        else:
            outs = self._given_out(direct, made, found is None)
        for update in self.updates:
            update()
        return outs

    def _count(self) -> None:
        """Compile rows as soon as they have run so long that it pays."""
        self._spent += self.rows.cost
        if self._spent < WORTH and not getattr(self.backend, "compiled", None):
            return
        self.rows.cost = 0.0
        with suppress(Exception):  # what cannot be compiled here runs as it did
            self.rows.compile(self)
            own = Binding(self, self.arrays, self.bounds)
            self.calls, self.steps_of = own.calls, own.steps_of
            if self._direct is not None:
                self._direct.forget()

    def _given_out(
        self, direct: DirectArrays, made: Sequence[Any], is_copied: bool
    ) -> list[Any]:
        """The outputs, of which large ones are to be in memory that was made for them;
        is_copied: they are not there yet."""
        large = dict(zip(direct.outs, made, strict=True))
        outs: list[Any] = []
        for value, (copy, out) in zip(self.what.outputs, self._outs, strict=True):
            array = large.get(value)
            if array is None:
                outs.append(copy(out))
                continue
            array = array.reshape(out.shape)
            if is_copied:
                array[...] = out
            outs.append(array)
        return outs

    def _split(self, arrays: Arrays) -> list[Step]:
        """The steps, with those of a chain by themselves where nothing gains by it.

        That is where a rule has kernels, and none of them serves these arrays.
        """
        found: list[Step] = []
        for step in self.what.steps:
            chain = step.op.steps if isinstance(step.op, FusedOp) else ()
            is_ours = chain and step.op.name in BINDERS
            is_idle = is_ours and self.bound(step, arrays).how == "op"
            found += chain if is_idle else (step,)
        return found

    def times(
        self,
        inputs: Sequence[Any],
        keys: Iterable[Any] = (),
        numbers: Mapping[str, float] | None = None,
    ) -> list[float]:
        """The same run, watched: the seconds of each of its calls."""
        self._take(inputs, keys, numbers)
        found: list[float] = []
        before = set_errstate(no_errors)
        try:
            for call in (*self.calls, *self.updates):
                began = perf_counter()
                call()
                found.append(perf_counter() - began)
        finally:
            reset_errstate(before)
        for copy, out in self._outs:  # which a whole run does as well
            copy(out)
        return found

    def _take(
        self,
        inputs: Sequence[Any],
        keys: Iterable[Any],
        numbers: Mapping[str, float] | None,
        found: Binding | None = None,
    ) -> None:
        """Put what a run brings along where its calls look for it; found: the binding
        for which large inputs stay where they are."""
        if found is None or self._direct is None:
            for place, array in zip(self._ins, inputs, strict=True):
                place[...] = array
        else:
            for i in self._direct.copied:
                self._ins[i][...] = inputs[i]
        if self.what.keys:
            self.given.keys.update(zip(self.what.keys, keys, strict=True))
        if numbers is not None:
            self.given.numbers = numbers

    def _trial_arrays(self) -> Arrays:
        """An array for each value, all apart; views are views of these.

        Nothing is written to them, so the system gives no memory for them.
        """
        arrays: Arrays = {**self.what.constants, **self.what.held}
        for value in self.what.held:
            self.roots[value] = value
        for value in self.what.inputs:
            arrays[value] = self._fresh(value)
            self.roots[value] = value
        for i, step in enumerate(self.what.steps):
            source = step.inputs[0] if step.inputs else None
            if step.op.name in VIEWS and type(source) is Value and source in self.roots:
                found = self._views(step, arrays)
                views = found.values()
                if all(np.may_share_memory(view, arrays[source]) for view in views):
                    arrays.update(found)
                    self.roots.update(dict.fromkeys(found, self.roots[source]))
                    self.views.add(i)
                    continue
            for value in step.outputs:
                if value is not None:
                    arrays[value] = self._fresh(value)
                    self.roots[value] = value
        return arrays

    def _fresh(self, value: Value) -> Any:
        return np.empty(value.shape_at(self.n), value.dtype)

    def _views(self, step: Step, arrays: Arrays) -> Arrays:
        """What a step that only looks at its first input another way gives."""
        call = self._call(step, arrays)
        found = step.op.forward(self.backend.xp, *call.values, **call.attrs)
        results = found if step.is_tuple else (found,)
        pairs = zip(step.outputs, results, strict=True)
        return {value: array for value, array in pairs if value is not None}

    def last_uses(self) -> dict[Value, int]:
        """The step that uses each place last; outputs are used after all of them."""
        last: dict[Value, int] = {}
        for i, step in enumerate(self.what.steps):
            for value in (*step.values, *(v for v in step.outputs if v is not None)):
                if value in self.roots:
                    last[self.roots[value]] = i
        for value in (*self.what.outputs, *(new for _, new in self.what.updates)):
            if value in self.roots:
                last[self.roots[value]] = len(self.what.steps)
        return last

    def _merge_in_place(self, arrays: Arrays) -> None:
        """Let steps write over what they read, where nobody reads it afterwards."""
        last = self.last_uses()
        self._update_in_place(arrays, last)
        for i, step in enumerate(self.what.steps):
            if i in self.views or not self._may_be_in_place(step):
                continue
            out = step.out
            for value in step.inputs:
                if type(value) is not Value or value not in self.roots:
                    continue
                root = self.roots[value]
                if root in self.what.held:
                    continue
                array, target = arrays[value], arrays[out]
                alike = array.shape == target.shape and array.dtype == target.dtype
                uses = sum(v is value for v in step.inputs)
                if last[root] == i and alike and array.flags.c_contiguous and uses == 1:
                    whole = arrays[root].nbytes == array.nbytes
                    others = [
                        v
                        for v in step.values
                        if v is not value and self.roots.get(v) is root
                    ]
                    if whole and not others:
                        self._move(out, root, arrays)
                        last[root] = last.pop(out, i)
                        break

    def _update_in_place(self, arrays: Arrays, last: dict[Value, int]) -> None:
        """Let steps that give what takes the place of an input write it there."""
        olds = {new: old for old, new in self.what.updates}
        for i, step in enumerate(self.what.steps):
            places = UPDATES.get(step.op.name, ())
            pairs = zip(step.outputs, places, strict=False)
            for out, place in pairs:
                old = step.inputs[place]
                if out is None or olds.get(out) is not old or last[old] != i:
                    continue
                if self.roots[old] is old and sum(v is old for v in step.inputs) == 1:
                    self._move(out, old, arrays)

    def _may_be_in_place(self, step: Step) -> bool:
        return step.op.name in IN_PLACE and len(step.outputs) == 1

    def _move(self, value: Value, root: Value, arrays: Arrays) -> None:
        """Let a value, and all that are views of it, stand where another one does."""
        arrays[value] = arrays[root].reshape(arrays[value].shape)
        for other, its in self.roots.items():
            if its is value:
                self.roots[other] = root
        for i in sorted(self.views):
            step = self.what.steps[i]
            if self.roots[step.out] is root:
                arrays.update(self._views(step, arrays))

    def _call(self, step: Step, arrays: Arrays) -> Call:
        def put(leaf: Any) -> Any:
            if type(leaf) is Value:
                return arrays.get(leaf, leaf)  # a key stays what it is
            return at(leaf, self.n) if type(leaf) is Dim else leaf

        return Call(
            step,
            mapped(step.inputs, put),
            mapped(attrs_of(step), put),
            tuple([None if v is None else arrays.get(v) for v in step.outputs]),
            tuple([type(v) is not Value or v not in self.roots for v in step.inputs]),
            self.backend,
            self.is_compiled,
            self.given,
        )

    def bound(self, step: Step, arrays: Arrays) -> Bound:
        """A step on these arrays."""
        return bind(self._call(step, arrays))

    def _regions(self, bounds: dict[int, Bound], arrays: Arrays) -> list[Region]:
        """Steps in a row that can go over the batch together."""
        found: list[Region] = []
        now: Region | None = None
        for i, bound in bounds.items():
            step = self.what.steps[i]
            written = {self.roots[v] for v in step.outputs if v is not None}
            whole = self._read_whole(step, bound, arrays)
            units = bound.units if bound.part is not None else 0
            count = math.gcd(now.count, units) if now and now.count > 1 < units else 1
            fits = (
                now is not None
                and count > 1
                and not whole & now.written
                and not written & (now.read_whole | whole)
            )
            if now is None or not fits:
                now = Region([], units if not written & whole else 1)
                found.append(now)
                count = now.count
            now.numbers.append(i)
            now.count = max(count, 1)
            now.written |= written
            now.read_whole |= whole
        return found

    def _read_whole(self, step: Step, bound: Bound, arrays: Arrays) -> set[Value]:
        """The places of which a step needs more than the stretch it works on."""
        found: set[Value] = set()
        for i, value in enumerate(step.inputs):
            leaves: list[Any] = []
            mapped(value, leaves.append)
            for leaf in leaves:
                if type(leaf) is Value and leaf in self.roots:
                    root = self.roots[leaf]
                    by_stretch = i in bound.stretched
                    if not by_stretch or not _in_stretches(arrays[leaf], arrays[root]):
                        found.add(root)
        return found

    def _place(self, arrays: Arrays) -> tuple[dict[Value, int], int]:
        """Where each place of the block begins, and how long the block is."""
        first, last = self._times()
        roots = list(first)
        lifetimes = [Lifetime(arrays[r].nbytes, first[r], last[r]) for r in roots]
        starts, size = placed(lifetimes)
        return dict(zip(roots, starts, strict=True)), size

    def _times(self) -> tuple[dict[Value, int], dict[Value, int]]:
        """From which to which region each place is needed."""
        held = self.what.held
        first: dict[Value, int] = {self.roots[v]: -1 for v in self.what.inputs}
        last = dict(first)
        region_of = {i: k for k, r in enumerate(self.regions) for i in r.numbers}
        made: dict[Value, int] = dict(first)
        for i, step in enumerate(self.what.steps):
            if i in self.views:
                continue
            for value in (*step.values, *(v for v in step.outputs if v is not None)):
                if value in self.roots and self.roots[value] not in held:
                    root = self.roots[value]
                    made.setdefault(root, region_of[i])
                    last[root] = max(last.get(root, -1), region_of[i])
        for value in (*self.what.outputs, *(new for _, new in self.what.updates)):
            if value in self.roots and self.roots[value] not in held:
                root = self.roots[value]
                last[root] = len(self.regions)
                made.setdefault(root, -1)
        return made, last

    def _placed_arrays(
        self, memory: np.ndarray, starts: dict[Value, int], trial: Arrays
    ) -> Arrays:
        arrays: Arrays = {**self.what.constants, **self.what.held}
        for value, root in self.roots.items():
            if value is root and root in starts:
                like = trial[root]
                arrays[root] = np.ndarray(like.shape, like.dtype, memory, starts[root])
        for i, step in enumerate(self.what.steps):
            if i in self.views:
                arrays.update(self._views(step, arrays))
                continue
            for value in step.outputs:
                if value is not None and value not in arrays:
                    root = arrays[self.roots[value]]
                    arrays[value] = root.reshape(trial[value].shape)
        return arrays

    def arrays_with(self, moved: Arrays) -> Arrays:
        """The arrays of a run for which some places lie elsewhere."""
        arrays: Arrays = {**self.arrays, **moved}
        for i, step in enumerate(self.what.steps):
            outs = [v for v in step.outputs if self.roots.get(v) in moved]  # type: ignore[arg-type] - no result has no place
            if outs and i in self.views:
                arrays.update(self._views(step, arrays))
                continue
            for value in outs:
                if value is not None and value not in moved:
                    place = moved[self.roots[value]]
                    arrays[value] = place.reshape(self.arrays[value].shape)
        return arrays

    def _eager_bytes(self) -> int:
        """What a run without a plan holds at its peak."""
        made: dict[Value, int] = {self.roots[v]: -1 for v in self.what.inputs}
        lives: list[Lifetime] = []
        roots: dict[Value, Value] = {v: v for v in self.what.inputs}
        for i, step in enumerate(self.what.steps):
            for value in step.outputs:
                if value is not None:
                    source = roots.get(step.inputs[0]) if i in self.views else None
                    roots[value] = value if source is None else source
                    made.setdefault(roots[value], i)
        last = dict.fromkeys(made, -1)
        for i, step in enumerate(self.what.steps):
            for value in (*step.values, *(v for v in step.outputs if v is not None)):
                if value in roots:
                    last[roots[value]] = i
        for value in self.what.outputs:
            if value in roots:
                last[roots[value]] = len(self.what.steps)
        for root, start in made.items():
            size = math.prod(root.shape_at(self.n)) * root.dtype.itemsize
            lives.append(Lifetime(size, start, last[root]))
        return peak(lives)


def copy_of(size: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """How an array of so many bytes is copied: a large one to memory that is there."""
    return np.ndarray.copy if size < SMALLEST else _copied


def _copied(array: NDArray[Any]) -> NDArray[Any]:
    made = empty(array.shape, array.dtype)
    made[...] = array
    return made


def _in_stretches(array: NDArray[Any], root: NDArray[Any]) -> bool:
    """Whether equal stretches of an array stand in equal stretches of its place."""
    if array.flags.c_contiguous:
        return array.nbytes == root.nbytes
    if not array.ndim or array.strides[0] * array.shape[0] != root.nbytes:
        return False
    if array.ctypes.data != root.ctypes.data:
        return False
    pairs = zip(array.shape[1:], array.strides[1:], strict=True)
    reach = sum((size - 1) * stride for size, stride in pairs) + array.itemsize
    return min(array.strides) >= 0 and reach <= array.strides[0]
