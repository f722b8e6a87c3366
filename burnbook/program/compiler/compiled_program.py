"""A program that runs as a plan: one for each batch size, made when it first comes."""

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

from burnbook.backend.base import Backend, plain_backend
from burnbook.backend.numpy import Numpy
from burnbook.core.dtypes import dtype_name, kind_of
from burnbook.core.errors import ArgumentError, BackendError
from burnbook.core.formulas import Formula
from burnbook.program.call import taken
from burnbook.program.compiler import (
    gradients as gradients,
    kernels as kernels,
    patterns as patterns,
    recurrent_kernels as recurrent_kernels,
    training_kernels as training_kernels,
)
from burnbook.program.compiler.fusion import RULES, FusedOp, FusionRule
from burnbook.program.compiler.graph_plan import GraphPlan, plan_of
from burnbook.program.compiler.passes import Lowered, Source, lower, results_of
from burnbook.program.compiler.plan import Part, Plan
from burnbook.program.compiler.profiling import ProgramProfile, profiled
from burnbook.program.sizes import Dim, at
from burnbook.program.trees import Place, lowest
from burnbook.program.values import Step, Value
from burnbook.tensor import Tensor

MOST_PLANS = 8  # of batch sizes; the one that was not used for longest is given up
MOST_SPARE = 4  # plans of one batch size that wait for the next call


class CompiledProgram:
    """A program as a plan of bound kernels; called like the program.

    A plan belongs to one batch size and one call at a time. The first call with another
    batch size makes one; those of the last eight sizes are kept. Calls from several
    threads at once each have a plan of their own. Results are new arrays, which no
    later call touches. Arrays of 128 KiB and more are not copied where the same memory
    comes again, and elementwise steps in a row that have taken half a second in all
    become one loop of machine code, which takes a second once.

    On a GPU a plan is made of CUDA graphs, and steps stay as they are. Where there is
    no plan (another backend than `Numpy` and `Cupy`, or an empty batch), the fused
    steps run one by one.

    Example:
        >>> from burnbook.program import capture
        >>> program = capture(lambda x: (x * 2.0).exp(), Tensor.ones([3, 2]))
        >>> compiled = program.compile()
        >>> compiled(Tensor.zeros([1, 2]))
        Tensor Float [1, 2] on Numpy()  mean 1  std 0  min 1  max 1
    """

    def __init__(
        self,
        program: Source,
        backend: Backend | None = None,
        rules: Sequence[FusionRule] | None = None,
    ):
        self.program = program
        self.backend = program.backend if backend is None else plain_backend(backend)
        _refuse_other_types(program, self.backend)
        self._given_rules = rules
        if rules is None:  # which are written for CPUs
            rules = () if self.backend.has_graphs else RULES
        self.lowered: Lowered = lower(program, rules)
        self._outside = getattr(program.takes, "outside", None)
        self._kinds = [kind_of(value.dtype) for value in program.inputs]
        self._dtypes = [value.dtype for value in program.inputs]
        self._tensors = [Tensor] * len(program.inputs)
        tree = getattr(program.gives, "tree", None)
        self._is_one = program.results == 1 and (
            program.gives is None or type(tree) is Place
        )
        results = program.outputs[: program.results]
        self._made_kinds = [kind_of(value.dtype) for value in results]
        self._plans: OrderedDict[Any, list[Plan | GraphPlan]] = OrderedDict()
        self._latest: list[Plan | GraphPlan] | None = None  # of these, last in use
        self._lock = threading.Lock()
        _programs.add(self)

    def __reduce__(self) -> Any:
        """What it is made of; plans and their memory are made anew."""
        return CompiledProgram, (self.program, self.backend, self._given_rules)

    def __call__(self, *tensors: Any, **named: Any) -> Any:
        """Run on tensors: the arguments and the result of what was captured."""
        given: Sequence[Tensor] = tensors
        if self._outside is not None:
            self._outside.check()
        if named or [type(t) for t in tensors] != self._tensors:
            takes = self.program.takes
            given = taken(self.program.name, takes, tensors, named)
        arrays: list[Any] = []
        for kind, dtype, tensor in zip(self._kinds, self._dtypes, given, strict=True):
            if tensor.kind is not kind:
                raise self._another_kind(given)
            array = tensor.value
            if hasattr(array, "node"):
                raise self._no_gradients()
            if array.dtype != dtype:
                told = [f"{_name_of(t.value)} on {t.backend!r}" for t in given]
                self._refuse_elements(array.dtype, dtype, told)
            arrays.append(array)
        backend = given[0].backend if given else self.backend
        found = self._run(arrays)
        if self._is_one:
            return Tensor(found[0], self._made_kinds[0], backend, found[0].ndim)
        pairs = zip(found, self._made_kinds, strict=False)
        made = tuple(
            [Tensor(array, kind, backend, array.ndim) for array, kind in pairs]
        )
        gives = self.program.gives
        if gives is None:
            return made
        if not getattr(gives, "follows", False):
            return gives(made)
        return gives(made, self.program.batch_size(*[array.shape for array in arrays]))

    def _another_kind(self, given: Sequence[Tensor]) -> ArgumentError:
        """The error for a tensor of another kind than the program was captured with."""
        for value, tensor in zip(self.program.inputs, given, strict=True):
            if tensor.kind is not kind_of(value.dtype):
                what = f"{value.name} is {tensor.kind.__name__}"
                return ArgumentError(
                    self.program.name, what, [("made for", str(value))]
                )
        raise AssertionError("no tensor is of another kind")

    def _no_gradients(self) -> ArgumentError:
        """The error for a tensor whose gradient a plan would lose."""
        what = "a plan remembers no gradients, and a tensor came that wants one"
        cure = "x.detach(), the program itself, or capture_training for a whole step"
        return ArgumentError(self.program.name, what, cure=cure)

    def _refuse_elements(self, dtype: Any, wanted: Any, given: Sequence[str]) -> None:
        """Raise for other elements; whole numbers of fewer bits fit."""
        if wanted.kind != "f" and np.can_cast(dtype, wanted):
            return
        program = self.program
        facts = [("given", one) for one in given]
        facts += [("made for", str(value)) for value in program.inputs]
        what = f"it computes with {dtype_name(wanted)}, and {dtype_name(dtype)} came"
        cure = f"tensors of {program.backend!r}, or capture with tensors of this device"
        raise BackendError(program.name, what, facts, cure)

    def run(
        self,
        *inputs: Any,
        keys: Iterable[tuple[int, int]] | None = None,
        numbers: Mapping[str, float] | None = None,
    ) -> tuple[Any, ...]:
        """Run on raw arrays: the arrays of the outputs, as `Program.run` gives them."""
        for array, dtype in zip(inputs, self._dtypes, strict=False):
            if getattr(array, "dtype", None) != dtype:
                if not hasattr(array, "dtype"):
                    what = f"{type(array).__name__} is no array"
                    cure = "np.asarray(…), or a call with tensors"
                    raise ArgumentError(self.program.name, what, cure=cure)
                self._refuse_elements(array.dtype, dtype, list(map(_name_of, inputs)))
        return self._run(inputs, keys, numbers)

    def _run(
        self,
        inputs: Sequence[Any],
        keys: Iterable[tuple[int, int]] | None = None,
        numbers: Mapping[str, float] | None = None,
    ) -> tuple[Any, ...]:
        shapes = tuple([array.shape for array in inputs])
        if keys is not None:
            keys = self.program.checked_keys(keys)
        spare, plan = self._take_plan(shapes)
        if plan is None:
            n = self.program.batch_size(*shapes)
            if not self._has_plans or 0 in [len(s) and s[0] for s in shapes]:
                steps, held = self.lowered.steps, self.lowered.constants
                args = (n, inputs, keys, numbers or {})
                return self._one_by_one(steps, held, self.backend, *args)
            plan = self.plan_for(n)
        drawn: Any = ()
        if self.program.keys:
            draw = self.backend.next_key
            drawn = [draw() for _ in self.program.keys] if keys is None else keys
        out = plan.run(inputs, drawn, numbers)
        if spare is None:
            with self._lock:
                spare = self._latest = self._plans.setdefault(shapes, [])
                while len(self._plans) > MOST_PLANS:
                    self._plans.popitem(last=False)
        if len(spare) < MOST_SPARE:
            spare.append(plan)
        return tuple(out)

    def _take_plan(
        self, shapes: tuple[tuple[int, ...], ...]
    ) -> tuple[list[Plan | GraphPlan] | None, Plan | GraphPlan | None]:
        """The plans of these sizes, and one of them that nobody uses, if there is."""
        spare = self._plans.get(shapes)
        if spare is None:
            return None, None
        if spare is not self._latest:
            with self._lock:
                if shapes in self._plans:
                    self._plans.move_to_end(shapes)
                self._latest = spare
        try:
            return spare, spare.pop()
        except IndexError:  # other threads use them all
            return spare, None

    @property
    def _has_plans(self) -> bool:
        return isinstance(self.backend, Numpy) or self.backend.has_graphs

    def plan_for(self, n: int | None) -> Plan | GraphPlan:
        """A new plan for a batch of n."""
        what = Part(
            self.program.inputs,
            self.lowered.steps,
            self.program.outputs,
            self.lowered.constants,
            self.program.keys,
        )
        return plan_of(what, n, self.backend)

    def _one_by_one(
        self,
        steps: Sequence[Step],
        constants: Mapping[Value, Any],
        backend: Backend,
        n: int | None,
        inputs: Sequence[Any],
        keys: Any,
        numbers: Mapping[str, float],
    ) -> tuple[Any, ...]:
        """Steps as calls of their ops, on any backend."""
        held: dict[Value, Any] = dict(constants)
        held.update(zip(self.program.inputs, inputs, strict=True))
        given = iter(keys or ())
        for value in self.program.keys:
            held[value] = backend.next_key() if keys is None else next(given)

        def put(leaf: Any) -> Any:
            if type(leaf) is Value:
                return held[leaf]
            if type(leaf) is Formula:
                return leaf(numbers)
            return at(leaf, n) if type(leaf) is Dim else leaf

        for step in steps:
            outs = results_of(step, backend, put, n)
            held.update(
                (v, a) for v, a in zip(step.outputs, outs, strict=True) if v is not None
            )
        kept = [*constants.values(), *inputs]
        return tuple([_apart(held[value], kept) for value in self.program.outputs])

    def explain(self, n: int = 1) -> str:
        """What runs for a batch of n: regions, fused steps, and memory.

        n: the batch size, at least 0; programs without one ignore it.

        An arrow joins steps that one kernel computes. Behind each step stands how: by a
        `compiled` kernel, by an `op` of the backend whose result is copied to its
        place (`op by sample`: for some examples at a time), by a function of NumPy that
        writes to its place (`out`), which may be that of its input (`in place`), or not
        at all, as a `view`. Steps `in turns` go over the batch together, a stretch of
        it at a time, while what they give is in the cache.

        Example:
            >>> from burnbook.program import capture
            >>> program = capture(lambda x: (x * 2.0).exp(), Tensor.ones([3, 2]))
            >>> print(program.compile().explain(3))
            <lambda> for n = 3: 2 steps in 2 calls
              1  mul [3, 2]  in place
              2  exp [3, 2]  in place
            memory: 64 bytes planned, 48 bytes one by one
        """
        size: Any = n
        if not isinstance(size, (int, np.integer)) or size < 0:
            what = f"{size!r} is no batch size"
            raise ArgumentError("explain", what, cure="explain(64)")
        plan = self.plan_for(int(n))
        return listing(self.program.name, plan)

    def profile(
        self,
        *tensors: Any,
        rounds: int = 5,
        numbers: Mapping[str, float] | None = None,
    ) -> ProgramProfile:
        """How long each call of the plan takes, and its steps one by one.

        tensors: as those of a call. numbers: as in `run`.

        Example:
            >>> from burnbook.program import capture
            >>> program = capture(lambda x: (x * 2.0).exp(), Tensor.ones([3, 2]))
            >>> found = program.compile().profile(Tensor.ones([3, 2]))
            >>> [(call.what, call.ops, call.planned > 0) for call in found.calls]
            [('mul', 1, True), ('exp', 1, True)]
        """
        if rounds < 1:
            what = f"{rounds} rounds measure nothing"
            raise ArgumentError("profile", what, cure="rounds=5")
        if not isinstance(self.backend, Numpy):
            what = f"on {self.backend!r} nothing can be timed call by call"
            raise BackendError("profile", what, cure="compile(Numpy())")
        program = self.program
        given = taken(program.name, program.takes, tensors, {})
        arrays = [lowest(tensor.value) for tensor in given]
        n = program.batch_size(*[array.shape for array in arrays])
        keys = [self.backend.next_key() for _ in program.keys]
        named, plan = numbers or {}, self.plan_for(n)
        assert isinstance(plan, Plan)  # as the backend is Numpy

        def one_by_one(backend: Backend) -> None:
            args = (program.steps, program.constants, backend)
            self._one_by_one(*args, n, arrays, keys, named)

        return profiled(
            *(program.name, program.steps, plan, one_by_one),
            *(lambda: plan.times(arrays, keys, named), rounds),
        )

    def __repr__(self) -> str:
        count, before = len(self.lowered.steps), len(self.program.steps)
        return f"CompiledProgram({self.program.name}, {before} steps as {count})"


def _refuse_other_types(program: Source, backend: Backend) -> None:
    """Raise where a backend has other element types than the program was made with.

    Why: its constants, and the types that its casts name, are those of the capture.
    """
    home = program.backend
    values = [*program.inputs, *program.outputs, *program.constants]
    kinds = {value.dtype.kind for value in values}
    pairs = [("f", home.float_dtype, backend.float_dtype)]
    pairs.append(("i", home.int_dtype, backend.int_dtype))
    for kind, made, asked in pairs:
        if kind in kinds and made != asked:
            what = f"it was captured with {dtype_name(made)}, and {backend!r} computes"
            what += f" with {dtype_name(asked)}"
            facts = [("captured on", repr(home))]
            cure = f"model.to({backend!r}), tensors there, and capture those"
            raise BackendError(program.name, what, facts, cure)


def _name_of(array: Any) -> str:
    return dtype_name(array.dtype) if hasattr(array, "dtype") else type(array).__name__


_programs: WeakSet[CompiledProgram] = WeakSet()


def _after_fork() -> None:
    """A child process has one thread, so nobody in it holds a lock."""
    for program in list(_programs):
        program._lock = threading.Lock()  # pyright: ignore[reportPrivateUsage] - ours


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _apart(array: Any, kept: Sequence[Any]) -> Any:
    """An array that shares no memory with those that are kept."""
    is_ours = isinstance(array, np.ndarray)
    if is_ours and any(np.may_share_memory(array, other) for other in kept):
        return array.copy()
    return array


def listing(name: str, plan: Plan | GraphPlan) -> str:
    """A plan as text: its steps, by what each is computed, and its memory."""
    if isinstance(plan, GraphPlan):
        return f"{name} for n = {plan.n}: {plan}"
    rows: list[str] = []
    steps = plan.what.steps
    region_of = {i: r for r in plan.regions for i in r.numbers}
    loops = {row[0]: len(row) for row in plan.rows.found}
    for i, step in enumerate(steps):
        shape = ", ".join(str(size) for size in step.out.shape_at(plan.n))
        what = (
            " → ".join(step.op.chain) if isinstance(step.op, FusedOp) else step.op.name
        )
        how = "view" if i in plan.views else plan.bounds[i].how
        row = f"{i + 1:>3}  {what} [{shape}]  {how}"
        region = region_of.get(i)
        if region is not None and region.in_turns and i == region.numbers[0]:
            row += f", in turns with the next {len(region.numbers) - 1}"
        if i in loops:
            row += f", in time one loop with the next {loops[i] - 1}"
        rows.append(row)
    calls = len(plan.calls) + len(plan.updates)
    head = f"{name} for n = {plan.n}: {len(steps)} step{'s' * (len(steps) != 1)}"
    head += f" in {calls} call{'s' * (calls != 1)}"
    rest = f"memory: {plan.bytes} bytes planned, {plan.eager_bytes} bytes one by one"
    return "\n".join([head, *rows, rest])
