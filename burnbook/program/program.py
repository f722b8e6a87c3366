"""The program itself: what it holds, and how it runs."""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from burnbook.backend.base import Backend, plain_backend
from burnbook.core.dtypes import kind_of, unpickled
from burnbook.core.errors import ArgumentError, RecordError, ShapeError
from burnbook.core.formulas import Formula
from burnbook.module import Module
from burnbook.program.call import Call, taken
from burnbook.program.compiler.compiled_program import CompiledProgram
from burnbook.program.compiler.fusion import FusionRule
from burnbook.program.compiler.passes import Source, keys_for
from burnbook.program.simplify import flops_of, simplified
from burnbook.program.sizes import Dim, at, mapped, size_text
from burnbook.program.trees import ARGUMENTS, arrays_of_record, held_arrays
from burnbook.program.values import Step, Value
from burnbook.tensor import Tensor
from burnbook.tensor.closeness import LayersReport, Pair, check_closeness


@dataclass(frozen=True, eq=False, repr=False)
class Program:
    """A function of tensors as a flat list of ops, without the Python around them.

    name: of the model or function. inputs: the Values that a run is given. steps: the
    ops in the order in which they ran; a step uses inputs, constants and results of
    earlier steps. outputs: the Values that a run gives; among them may be inputs and
    constants. constants: the array of each parameter, buffer and other tensor that was
    there. keys: the keys of random numbers that a run draws. backend: where it was
    captured. updates: pairs of a value and what takes its place in the next run, as of
    running statistics; the new ones are the last of `outputs`. numbers: Python numbers
    that a run is given by name, and the formula of the next one where it has one.
    frozen: constants of which Python made numbers, with the line that did.
    fails_for_one: what the function says of a batch of one, if it refuses that.
    takes, gives: the trees of the arguments and of the result.

    `run` is the definition: whatever else runs or writes a program must agree with it.
    """

    name: str
    inputs: tuple[Value, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Value, ...]
    constants: Mapping[Value, Any]
    backend: Backend
    keys: tuple[Value, ...] = ()
    takes: Callable[[tuple[Any, ...], dict[str, Any]], list[Any]] | None = None
    gives: Callable[..., Any] | None = None
    updates: tuple[tuple[Value, Value], ...] = ()
    numbers: Mapping[str, Formula | None] = field(default_factory=dict[str, Any])
    frozen: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fails_for_one: str = ""
    _at_home: dict[Backend, dict[Value, Any]] = field(
        default_factory=dict[Backend, dict[Value, Any]], init=False
    )

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        own = {value: unpickled(array) for value, array in self.constants.items()}
        object.__setattr__(self, "constants", own)
        self._at_home.clear()

    @property
    def results(self) -> tuple[Value, ...]:
        """The outputs without the updates."""
        return self.outputs[: len(self.outputs) - len(self.updates)]

    @property
    def parameters(self) -> dict[str, Any]:
        """The arrays that training changes, by their module path."""
        return {v.name: a for v, a in self.constants.items() if v.kind == "parameter"}

    @property
    def values(self) -> tuple[Value, ...]:
        """All values: inputs, keys, constants, results."""
        results = [v for step in self.steps for v in step.outputs if v is not None]
        return (*self.inputs, *self.keys, *self.constants, *results)

    @functools.cached_property
    def uses(self) -> "Counter[Value]":
        """How many steps and outputs use each value."""
        found = Counter(v for step in self.steps for v in step.values)
        found.update(self.outputs)
        return found

    @property
    def has_batch(self) -> bool:
        """Whether some size follows the batch size n."""
        return any(type(size) is Dim for v in self.inputs for size in v.shape)

    def batch_size(self, *shapes: Iterable[int]) -> int | None:
        """The n of inputs with these shapes; None where nothing follows it.

        Raises:
            ShapeError: the shapes are not those of the inputs, or disagree about n.
            ArgumentError: there are more or fewer, or n is 1, which was refused.
        """
        if len(shapes) != len(self.inputs):
            what = f"it takes {len(self.inputs)} inputs, and {len(shapes)} came"
            raise ArgumentError(self.name, what, self._facts())
        n: int | None = None
        for value, shape in zip(self.inputs, map(tuple, shapes), strict=True):
            fits = len(shape) == len(value.shape)
            for wanted, size in zip(value.shape, shape, strict=False):
                if type(wanted) is Dim:
                    found = wanted.batch_of(size)
                    fits = fits and found is not None and n in (None, found)
                    n = found if n is None else n
                elif wanted != size:
                    fits = False
            if not fits:
                what = f"{value.name} has another shape than the program is made for"
                facts = [(value.name, size_text(shape)), ("made for", str(value))]
                facts += [] if n is None else [("batch size", str(n))]
                cure = "the shapes that it is made for; or capture with these"
                raise ShapeError(self.name, what, facts, cure)
        if n == 1 and self.fails_for_one:
            what, cure = "the captured function fails for a batch of one", "two or more"
            raise ArgumentError(self.name, what, [("says", self.fails_for_one)], cure)
        return n

    def run(
        self,
        *inputs: Any,
        backend: Backend | None = None,
        keys: Iterable[tuple[int, int]] | None = None,
        numbers: Mapping[str, float] | None = None,
    ) -> tuple[Any, ...]:
        """Run step by step on raw values, by any backend: the values of the outputs.

        inputs: an array of the backend for each of `inputs`. backend: if none is given,
        where the program was captured. keys: of random numbers, else the next ones.
        numbers: a number for each name in `numbers`.

        Example:
            >>> import numpy as np
            >>> from burnbook.program import capture
            >>> program = capture(lambda x: (x * 2.0).exp(), Tensor.ones([3, 2]))
            >>> program.run(np.zeros((1, 2), np.float32))
            (array([[1., 1.]], dtype=float32),)
        """
        backend = self.backend if backend is None else backend
        if any(type(value) is Tensor for value in inputs):
            cure = "program(…), which takes tensors"
            raise ArgumentError(f"{self.name}.run", "it takes raw values", cure=cure)
        n = self.batch_size(*[np.shape(v) for v in inputs])
        held: dict[Value, Any] = dict(self._constants_on(backend))
        held.update(zip(self.inputs, inputs, strict=True))
        given = iter(()) if keys is None else iter(keys_for(self.name, self.keys, keys))
        for value in self.keys:
            held[value] = backend.next_key() if keys is None else next(given)
        given_numbers = self._numbers(numbers)
        last = self._last_uses

        def put(leaf: Any) -> Any:
            if type(leaf) is Value:
                return held[leaf]
            if type(leaf) is Formula:
                return leaf(given_numbers)
            return at(leaf, n) if type(leaf) is Dim else leaf

        for number, step in enumerate(self.steps):
            out = backend.run(
                step.op, mapped(step.inputs, put), mapped(step.attrs, put)
            )
            outs = out if step.is_tuple else (out,)
            for value, array in zip(step.outputs, outs, strict=True):
                if value is not None:
                    held[value] = array
            for value in last.get(number, ()):
                del held[value]
        return tuple([held[value] for value in self.outputs])

    def _numbers(self, given: Mapping[str, float] | None) -> Mapping[str, float]:
        """The numbers of a run, of which none is missing."""
        given = {} if given is None else given
        missing = [name for name in self.numbers if name not in given]
        if missing:
            names = ", ".join(missing)
            cure = f"numbers={{{missing[0]!r}: …}}"
            raise ArgumentError(self.name, f"{names} is missing", cure=cure)
        return given

    def __call__(self, *tensors: Any, **named: Any) -> Any:
        """Run on tensors: the arguments and the result of what was captured."""
        given = taken(self.name, self.takes, tensors, named)
        if not given:
            backend: Backend = self.backend
        else:
            backend = given[0].backend
        for value, tensor in zip(self.inputs, given, strict=False):
            if tensor.kind is not kind_of(value.dtype):
                what = f"{value.name} is {tensor.kind.__name__}"
                raise ArgumentError(self.name, what, [("made for", str(value))])
        out = self.run(*[tensor.value for tensor in given], backend=backend)
        out = out[: len(self.results)]
        made = tuple(
            Tensor(array, kind_of(value.dtype), backend, len(array.shape))
            for value, array in zip(self.results, out, strict=True)
        )
        if self.gives is None:
            return made[0] if len(made) == 1 else made
        if not getattr(self.gives, "follows", False):
            return self.gives(made)
        return self.gives(made, self.batch_size(*[tensor.dims() for tensor in given]))

    def compile(
        self,
        backend: Backend | None = None,
        rules: Sequence[FusionRule] | None = None,
    ) -> CompiledProgram:
        """The same as a plan: steps fused, kernels bound, memory given out once.

        backend: where it will run; if none is given, where it was captured. rules: what
        is fused; if none are given, all rules that were declared.

        Example:
            >>> from burnbook.program import capture
            >>> program = capture(lambda x: (x * 2.0).exp(), Tensor.ones([3, 2]))
            >>> compiled = program.compile()
            >>> compiled
            CompiledProgram(<lambda>, 2 steps as 2)
            >>> compiled.run(np.zeros((1, 2), np.float32))
            (array([[1., 1.]], dtype=float32),)
        """
        source = Source(
            *(self.name, self.inputs, self.steps, self.outputs, len(self.results)),
            *(self.constants, self.backend, self.keys, self.takes, self.gives),
            self.batch_size,
        )
        return CompiledProgram(source, backend, rules)

    @functools.cached_property
    def _last_uses(self) -> dict[int, list[Value]]:
        """After which step a result is wanted no more."""
        last: dict[Value, int] = {}
        for number, step in enumerate(self.steps):
            for value in (*step.values, *[v for v in step.outputs if v is not None]):
                if value.kind == "result":
                    last[value] = number
        found: dict[int, list[Value]] = {}
        for value, number in last.items():
            if value not in self.outputs:
                found.setdefault(number, []).append(value)
        return found

    def _constants_on(self, backend: Backend) -> dict[Value, Any]:
        """The constants where they are needed, moved there once."""
        moved = self._at_home
        found = moved.get(backend)
        if found is None:
            home = self.backend
            if plain_backend(backend) is home:
                found = dict(self.constants)
            else:
                found = {}
                for value, held in self.constants.items():
                    array = np.asarray(home.to_numpy(held))
                    if array.dtype == home.float_dtype:
                        array = array.astype(backend.float_dtype, copy=False)
                    found[value] = backend.from_numpy(array)
            moved[backend] = found
        return found

    def check(self, model: Any, *inputs: Any) -> LayersReport:
        """Compare the program with what it was captured from, output by output.

        model: a model, which runs as `valid()`, or a function. inputs: of both; a model
        takes those on an Autodiff device too.

        Example:
            >>> from burnbook.backend import Numpy
            >>> from burnbook.nn import LinearConfig
            >>> from burnbook.program import capture
            >>> model, x = LinearConfig(3, 2).init(Numpy()), Tensor.ones([4, 3])
            >>> print(capture(model, x).check(model, x))
            Output Closeness Check Results (epsilon 1e-4):
            ===============================
              [PASS] linear  [4, 2]  within 1e-8, largest difference 0
            <BLANKLINE>
            All 1 are close.
        """
        call = model
        if isinstance(model, Module):  # as capture does it
            call, inputs = model.valid(), ARGUMENTS.map(inputs, _without_graph)
        made, wanted = (
            ARGUMENTS.collect(run(*inputs), Tensor, []) for run in (self, call)
        )
        pairs: list[Pair] = []
        for value, one, other in zip(self.results, made, wanted, strict=True):
            if one.dims() != other.dims():
                shapes = f"shapes {list(one.dims())} and {list(other.dims())}"
                pairs.append(Pair(value.name, None, shapes))
                continue
            report = check_closeness(one, other)
            pairs.append(Pair(value.name, report))
        return LayersReport(tuple(pairs), "Output")

    def with_constants(self, source: Any) -> Self:
        """The same program with newer weights: of a model, a record, or by name.

        source: a model like the captured one, its record, or a dict of arrays. Values
        that it does not have stay as they are.

        Raises:
            RecordError: a shape differs, nothing has a name of the program, or Python
                looked at an element of one when the program was captured.

        Example:
            >>> from burnbook.backend import Numpy
            >>> from burnbook.nn import LinearConfig
            >>> from burnbook.program import capture
            >>> program = capture(LinearConfig(3, 2).init(Numpy()), Tensor.ones([1, 3]))
            >>> newer = program.with_constants(LinearConfig(3, 2).init(Numpy()))
            >>> (newer.parameters["weight"] == program.parameters["weight"]).all()
            np.False_
        """
        if isinstance(source, Module):
            found = {path: array for path, _, array in held_arrays(source)}
            home = plain_backend(source.devices()[0])
            found = {path: home.to_numpy(array) for path, array in found.items()}
        else:
            found = dict(arrays_of_record(source))
        named = [v for v in self.constants if v.name in found]
        frozen = [name for name in self.frozen if name in found]
        if not named and not frozen:
            facts = [("given", ", ".join(found)[:200])]
            facts.append(("constants", ", ".join(v.name for v in self.constants)[:200]))
            raise RecordError(self.name, "nothing has a name of the program", facts)
        problems: list[str] = []
        for name in frozen:
            array, line = self.frozen[name]
            held = np.asarray(self.backend.to_numpy(array))
            if not np.array_equal(held, found[name], equal_nan=held.dtype.kind == "f"):
                at = "" if line is None else f": {line}  {line.text}"
                problems.append(f"{name}: Python made numbers of its elements{at}")
        made = dict(self.constants)
        for value in named:
            array = np.asarray(found[value.name])
            if array.shape != value.shape:
                shapes = f"{list(array.shape)}, not {size_text(value.shape)}"
                problems.append(f"{value.name}: {shapes}")
            elif value.name.endswith(".codes"):
                if not np.array_equal(array, self.array(value)):
                    what = "codes go with their scales: capture the quantized model"
                    problems.append(f"{value.name}: {what}")
            else:
                array = array.astype(value.dtype, copy=False)
                made[value] = self.backend.from_numpy(array)
        if problems:
            raise RecordError(self.name, "these values do not fit", problems)
        takes = self.takes.alone() if isinstance(self.takes, Call) else self.takes
        return replace(self, constants=made, takes=takes)

    def simplify(self, constants: bool = False) -> Self:
        """The same program without steps that nobody needs, or that stand twice.

        constants: compute what follows from constants alone now, as the joined weights
        of an Lstm. Those constants are new ones then, which `with_constants` does not
        know.

        Example:
            >>> from burnbook.program import capture
            >>> def function(x):
            ...     x.log()
            ...     return x.exp() * x.exp()
            >>> program = capture(function, Tensor.ones([2]))
            >>> [step.op.name for step in program.steps]
            ['log', 'exp', 'exp', 'mul']
            >>> [step.op.name for step in program.simplify().steps]
            ['exp', 'mul']
        """
        return simplified(self, constants)

    def flops(self, n: int = 1) -> int:
        """The operations of one run with a batch of n, as `summary` counts them.

        A gradient counts as twice its op: one product for each of two inputs.

        Example:
            >>> from burnbook.backend import Numpy
            >>> from burnbook.nn import LinearConfig
            >>> from burnbook.program import capture
            >>> program = capture(LinearConfig(3, 2).init(Numpy()), Tensor.ones([4, 3]))
            >>> program.flops(), program.flops(10)
            (14, 140)
        """
        return sum(flops_of(step, n) for step in self.steps)

    def array(self, value: Value) -> np.ndarray:
        """A constant as a NumPy array."""
        return np.asarray(self.backend.to_numpy(self.constants[value]))

    def _facts(self) -> list[tuple[str, str]]:
        return [("inputs", ", ".join(map(str, self.inputs)) or "none")]

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        count = len(self.steps)
        return f"Program({self.name}, {count} step{'' if count == 1 else 's'})"

    def text(self, lines: bool = True) -> str:
        """The program as a listing; lines: with the user's line behind each step.

        Example:
            >>> from burnbook.program import capture
            >>> print(capture(lambda x: x.exp() + 1.0, Tensor.ones([3, 2])).text(False))
            <lambda>(x [n, 2] f32):
              exp [n, 2] = exp(x)
              add [n, 2] = add(exp, 1.0)
              return add
        """
        rows: list[tuple[str, str]] = []
        for value in self.constants:
            rows.append((f"{value}", value.kind))
        for step in self.steps:
            at = [step.path] if step.path else []
            at += [str(step.line)] if lines and step.line is not None else []
            rows.append((str(step), ", ".join(at)))
        wide = min(max([len(text) for text, _ in rows], default=0), 72)
        given = ", ".join(map(str, (*self.inputs, *self.numbers, *self.keys)))
        shown = [f"{self.name}({given}):"]
        shown += [
            f"  {text:<{wide}}  # {note}" if note else f"  {text}"
            for text, note in rows
        ]
        shown += [f"  {old.name} ← {new.name}" for old, new in self.updates]
        shown += [
            f"  {n} ← {new}" for n, new in self.numbers.items() if new is not None
        ]
        shown.append(f"  return {', '.join(v.name for v in self.results)}")
        return "\n".join(row.rstrip() for row in shown)


def _without_graph(leaf: Any) -> Any:
    """A tensor below every level of Autodiff."""
    while isinstance(leaf, Tensor) and leaf.backend.ad_enabled:
        leaf = leaf.inner()
    return leaf
