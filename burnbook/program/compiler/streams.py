"""Plans of streams: what `Fusion` runs when a stream comes again.

The same rules fuse here as in a program that was captured. A plan is one function that
is written for the stream: it calls one op after the other, gives up each result after
its last use, and goes over chains of elementwise ops in stretches (chains.py). Once it
is seen that most of what comes in stays the same, as the weights of a model that is
asked, and little has to be copied, the plan of a program takes over (plan.py), with
every array in its place and weights laid out for the kernels. On a GPU that plan is a
CUDA graph (graph_plan.py), which takes over wherever copies are small beside launches.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import ref

import numpy as np

from burnbook.backend.base import Backend
from burnbook.backend.compiled.runtime.locks import held_in_forks
from burnbook.backend.fusion.deferred import Deferred, Spec
from burnbook.backend.fusion.signature import Key, elementwise
from burnbook.backend.fusion.stream import NUMBER, Nest, Step as Recorded
from burnbook.backend.numpy import Numpy, no_errors, reset_errstate, set_errstate
from burnbook.core.formulas import Formula
from burnbook.program.compiler import kernels as kernels, patterns as patterns
from burnbook.program.compiler.chains import Writer
from burnbook.program.compiler.fusion import RULES, FusedOp, fused_steps
from burnbook.program.compiler.graph_plan import GraphPlan, plan_of as program_plan
from burnbook.program.compiler.loops import can_compile
from burnbook.program.compiler.passes import lower_steps, results_of, used_steps
from burnbook.program.compiler.plan import Part, Plan
from burnbook.program.sizes import mapped
from burnbook.program.values import Step, Value, is_same

COPIED = 1 << 20  # bytes that a run may copy to and from places of their own
COPIED_THERE = 1 << 26  # the same on a GPU
PATIENCE = 3  # how often what stayed the same may turn out not to
WORTH = 0.5  # seconds in chains after which they are compiled: what that takes
PLACES = 1 << 28  # bytes of all places together that plans keep from run to run


def plan_of(
    steps: Sequence[Recorded], held: Sequence[bool], backend: Backend
) -> "StreamPlan":
    """A plan for a stream; held: which of its results somebody has."""
    return StreamPlan(steps, held, backend)


class StreamPlan:
    """A stream as a function that was written for it.

    source: that function, to be read. is_compiled: whether chains in it are loops of
    machine code.
    """

    def __init__(
        self, steps: Sequence[Recorded], held: Sequence[bool], backend: Backend
    ):
        self.backend = backend
        read = Reader(steps)
        self.inputs, self.steps = read.inputs, read.steps
        self.outputs = [v for v, one in zip(read.results, held, strict=True) if one]
        self.numbers = read.numbers
        wanted = used_steps(self.steps, self.outputs)
        self.is_plain = type(backend) is Numpy
        if self.is_plain:  # the rules are written for CPUs
            wanted = fused_steps(wanted, self.outputs, RULES)
        self.wanted = wanted
        self._unseen = any(isinstance(step.op, FusedOp) for step in wanted)
        self._spent = 0.0
        cost = self._write(False).cost
        self._cost = cost if self.is_plain and can_compile(backend) else 0.0
        # an elementwise step needs no places; there is nothing to lay out for it
        self._may_bind = backend.has_graphs or any(
            getattr(step.op, "source", step.op) not in elementwise() for step in wanted
        )
        self._seen: list[ref[Deferred]] = []
        self._bound: BoundStream | None = None
        self._patience = PATIENCE if self.is_plain or backend.has_graphs else 0

    def run(self, inputs: Sequence[Deferred], numbers: Sequence[Any]) -> Sequence[Any]:
        """The results that are held."""
        bound = self._bound
        if bound is not None:
            if bound.fits(inputs, numbers):
                try:
                    return bound.run(inputs, numbers)
                except Exception:  # what is wrong shows where the function runs
                    self.give_up_places()
            self._bound, self._seen = None, []
        if self._patience and self._may_bind:
            self._look(inputs, numbers)
        if self._cost:
            self._count()
        before = set_errstate(no_errors)
        try:
            if self._unseen:
                return self._checked(inputs, numbers)
            return self.function([value.array for value in inputs], numbers)
        except Exception:
            if not self.is_compiled:
                raise
            self._write(False)  # a chain could not be compiled here
            return self.function([value.array for value in inputs], numbers)
        finally:
            reset_errstate(before)

    def _checked(
        self, inputs: Sequence[Deferred], numbers: Sequence[Any]
    ) -> Sequence[Any]:
        """The first run, step by step: whether rules give what their chains would."""
        held: dict[Any, Any] = {
            **dict(zip(self.numbers.values, numbers, strict=True)),
            **{v: one.array for v, one in zip(self.inputs, inputs, strict=True)},
        }

        def put(leaf: Any) -> Any:
            return held[leaf] if type(leaf) is Value else leaf

        for step in self.wanted:
            outs = results_of(step, self.backend, put, None)
            held.update(zip(step.outputs, outs, strict=True))
        self._unseen = False
        return [held[value] for value in self.outputs]

    def _write(self, is_compiled: bool) -> Writer:
        made = Writer(self.wanted, self.inputs, self.outputs, self.backend, is_compiled)
        self.source, self.function = made.source, made.function
        self.is_compiled = is_compiled
        return made

    def _count(self) -> None:
        """Compile chains as soon as they have run so long that it pays."""
        self._spent += self._cost
        if self._spent > WORTH or getattr(self.backend, "compiled", None):
            self._cost = 0.0
            self._write(True)

    def _look(self, inputs: Sequence[Deferred], numbers: Sequence[Any]) -> None:
        """See what has stayed the same since the last run; the next one may use it."""
        seen, self._seen = self._seen, [ref(value) for value in inputs]
        if not seen:
            return
        same = [old() is new for old, new in zip(seen, inputs, strict=True)]
        copied = sum(
            value.nbytes for value, one in zip(inputs, same, strict=True) if not one
        )
        copied += sum(_bytes(value) for value in self.outputs)
        self._patience -= 1
        if self.backend.has_graphs:
            if copied <= COPIED_THERE:
                self._bind(inputs, same, numbers)
        elif copied <= COPIED and any(same):
            self._bind(inputs, same, numbers)

    def _bind(
        self, inputs: Sequence[Deferred], same: Sequence[bool], numbers: Sequence[Any]
    ) -> None:
        """Let a plan or a CUDA graph take over, where one can be made."""
        try:
            self._bound = BoundStream(self, inputs, same, numbers)
        except Exception:  # what is wrong shows where the function runs
            self._patience = 0
        else:
            _kept.add(self)

    @property
    def places(self) -> int:
        """How many bytes are kept for it from run to run."""
        plan = None if self._bound is None else self._bound.plan
        return 0 if plan is None else plan.bytes

    def give_up_places(self) -> None:
        """Go back to the function."""
        self._bound, self._seen, self._patience = None, [], 0


class BoundStream:
    """A stream with some of its inputs as constants, as the plan of a program."""

    def __init__(
        self,
        whole: StreamPlan,
        inputs: Sequence[Deferred],
        same: Sequence[bool],
        numbers: Sequence[Any],
    ):
        pairs = list(zip(whole.inputs, inputs, same, strict=True))
        self.is_over = False
        self.changing = [i for i, one in enumerate(same) if not one]
        # when the owner of a constant is gone, the plan need not hold it
        self.same = [
            (i, ref(inputs[i], self._end)) for i, one in enumerate(same) if one
        ]
        self.fixed = [(i, numbers[i]) for i in whole.numbers.inputs]
        self.keys = [i for i in whole.numbers.holes if type(numbers[i]) is Key]
        self.named = [i for i in whole.numbers.holes if type(numbers[i]) is not Key]

        def put(leaf: Any) -> Any:
            if type(leaf) is not Value or leaf.kind != "number":
                return leaf
            i = int(leaf.name[1:])
            if i in whole.numbers.inputs:
                return numbers[i]
            return leaf if type(numbers[i]) is Key else Formula(leaf.name)

        steps = [
            Step(
                step.op,
                mapped(step.inputs, put),
                mapped(step.attrs, put),
                step.outputs,
                is_tuple=step.is_tuple,
            )
            for step in whole.steps
        ]
        constants = {value: given.array for value, given, one in pairs if one}
        backend = whole.backend
        rules = () if backend.has_graphs else RULES
        lowered = lower_steps(steps, whole.outputs, constants, backend, rules)
        part = Part(
            tuple([value for value, _, one in pairs if not one]),
            lowered.steps,
            tuple(whole.outputs),
            lowered.constants,
            tuple([whole.numbers.values[i] for i in self.keys]),
        )
        self.plan: Plan | GraphPlan | None = program_plan(part, None, backend)

    def _end(self, _: Any) -> None:
        self.plan, self.is_over = None, True

    def fits(self, inputs: Sequence[Deferred], numbers: Sequence[Any]) -> bool:
        """Whether what was the same is so still."""
        return (
            not self.is_over
            and all(inputs[i] is one() for i, one in self.same)
            and all(is_same(numbers[i], number) for i, number in self.fixed)
        )

    def run(self, inputs: Sequence[Deferred], numbers: Sequence[Any]) -> Sequence[Any]:
        """The results that are held, each in memory of its own."""
        assert self.plan is not None  # fits
        given = [inputs[i].array for i in self.changing]
        named = {f"n{i}": numbers[i] for i in self.named}
        return self.plan.run(given, [numbers[i] for i in self.keys], named)


class _Kept:
    """The plans that keep places; where they are too many, the oldest give them up."""

    def __init__(self) -> None:
        self.plans: list[ref[StreamPlan]] = []
        self.lock = held_in_forks(threading.Lock())

    def add(self, plan: StreamPlan) -> None:
        """Count one more."""
        with self.lock:
            self.plans.append(ref(plan))
            alive = [one for one in (at() for at in self.plans) if one is not None]
            total = sum(one.places for one in alive)
            while total > PLACES and alive:
                oldest = alive.pop(0)
                total -= oldest.places
                oldest.give_up_places()
            self.plans = [ref(one) for one in alive if one.places]


_kept = _Kept()


class Numbers:
    """The numbers of a stream: which are inputs of ops, and which attributes."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.inputs: set[int] = set()
        self.holes: list[int] = []

    def value(self, is_input: bool) -> Value:
        """The next number."""
        number = len(self.values)
        made = Value(f"n{number}", "number", np.dtype(np.float64), ())
        self.values.append(made)
        if is_input:
            self.inputs.add(number)
        else:
            self.holes.append(number)
        return made


class Reader:
    """A stream as steps of a program."""

    def __init__(self, recorded: Sequence[Recorded]):
        self.results: list[Value] = []
        self.numbers = Numbers()
        self._inputs: dict[int, Value] = {}
        self.steps = [self._step(signature, refs) for signature, refs in recorded]
        count = -min(self._inputs, default=0)
        self.inputs = [self._inputs[-1 - i] for i in range(count)]

    def _step(self, signature: Any, refs: Sequence[Any]) -> Step:
        given = tuple(self._given(refs, signature.specs))
        attrs = dict(signature.attrs)
        for name in signature.holes:
            attrs[name] = self.numbers.value(False)
        outs: list[Value | None] = []
        for spec in signature.outs:
            made = None
            if spec is not None:
                name = f"v{len(self.results)}"
                made = Value(name, "result", spec.dtype, spec.shape)
                self.results.append(made)
            outs.append(made)
        return Step(
            signature.op, given, attrs, tuple(outs), is_tuple=signature.is_tuple
        )

    def _given(self, refs: Sequence[Any], specs: Sequence[Any]) -> Iterator[Any]:
        for one, spec in zip(refs, specs, strict=True):
            if one is NUMBER:
                yield self.numbers.value(True)
            elif type(one) is Nest:
                yield tuple(self._given(one, spec))
            elif type(one) is int:
                yield self.results[one] if one >= 0 else self._input(one, spec)
            else:
                yield spec

    def _input(self, one: int, spec: Spec) -> Value:
        found = self._inputs.get(one)
        if found is None:
            name = f"x{-1 - one}"
            found = self._inputs[one] = Value(name, "input", spec.dtype, spec.shape)
        return found


def _bytes(value: Value) -> int:
    size = value.dtype.itemsize
    for length in value.shape:
        size *= int(length)  # type: ignore[arg-type] - a stream has no batch
    return size
