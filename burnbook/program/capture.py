"""From a model or function to a program: run with several batch sizes, and compare."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from burnbook.backend.base import Backend, plain_backend
from burnbook.backend.numpy import Numpy
from burnbook.core.dtypes import Float
from burnbook.core.errors import ArgumentError, BurnbookError, GraphError, KindError
from burnbook.core.formulas import Formula
from burnbook.module import Module
from burnbook.program.call import Call, are_equal
from burnbook.program.module_inputs import ModuleInput
from burnbook.program.outside import Generators, Outside
from burnbook.program.program import Program
from burnbook.program.recording import (
    Recorded,
    Recording,
    identity,
    user_line,
    where_facts,
)
from burnbook.program.sizes import Dim
from burnbook.program.trees import (
    ARGUMENTS,
    WITH_MODELS,
    Named,
    Result,
    arguments,
    kept,
    lowest,
    named_arrays,
    running_states,
    tensors_of_result,
)
from burnbook.program.unify import FIXED, Unifier
from burnbook.program.values import Value
from burnbook.tensor import Tensor
from burnbook.tensor.precision import sibling

INDEX_BITS = 32  # of an Int type that counts; a narrower one holds weights or masks
OWN = ("capture", "capture_training")  # where an error of ours is from
R = TypeVar("R")
Batch = int | None | Sequence[int | None]


def capture(
    subject: Module | Callable[..., Any],
    *examples: Any,
    batch: Batch = 0,
    keys: bool = False,
    method: str = "forward",
) -> Program:
    """Run a model or function once, and keep what it did as a program.

    subject: a model, whose `method` is captured as `valid()` runs it, or a function of
    tensors. examples: what it is called with; tensors, and lists, tuples, dicts and
    dataclasses of tensors are inputs of the program, everything else stays as it is:
    a call with another value of it is refused.

    batch: the dim whose size is the batch, which may be another one in each run: every
    example that is as long there as the first one; or a dim (or None) for each tensor;
    None fixes all sizes. keys: whether random numbers may be drawn, anew in each run.

    Raises:
        GraphError: Python looks at elements that depend on the inputs, draws random
            numbers, or does something else for another batch size. The error names the
            line.

    Example:
        >>> from burnbook.backend import Numpy
        >>> from burnbook.nn import LinearConfig
        >>> model = LinearConfig(3, 2).init(Numpy())
        >>> print(capture(model, Tensor.ones([1, 3])).text(lines=False))
        Linear(input [n, 3] f32):
          weight [3, 2] f32                         # parameter
          bias [2] f32                              # parameter
          linear [n, 2] = linear(input, weight, bias)  # Linear
          return linear

    Why several runs: one run does not tell which of its numbers are sizes of the batch.
    So it runs with three batch sizes, the one of the examples, and a batch of one, for
    which code likes to go another way (`x.squeeze()`). Sizes that differ become a·n + b
    by the first two, and the others must agree. Floats may be a power of that as well
    (1 / n, √(n − 1), n²); constants may be ranges, rows that are alike, masks of n × n
    and its identity matrix. What happens for sizes beyond the tried ones
    (`if x.dims()[0] > 100`) nobody sees: `program.check` compares a batch of such a
    size. Where it fails for a batch of one, the program refuses that. What an operation
    refuses as it looks at elements, a program computes: `.int()` of NaN gives some
    number.

    What the function takes from elsewhere (globals, closures, attributes) stays as it
    was: what is to change must be a tensor among the examples. Each call compares it:
    other weights are refused, another number is told once. Generators of random numbers
    (Python's, NumPy's, those that the function or a module has) must not move; one that
    it reaches in another way is not seen. Running statistics that it would move stay
    too; `updates` of the program pairs them with what they become.
    """
    asked = _subject(subject, method)
    examples = tuple(asked.moved(example) for example in examples)
    arguments = Arguments(asked.function, examples)
    backend = _one_device(asked, arguments.tensors)
    plan = BatchPlan.of(batch, arguments.tensors)
    named = named_arrays(asked.modules)
    states = running_states(asked.modules)
    modules = [module for _, module in asked.modules]
    generators = Generators(
        *(asked.function, modules, examples), how=" and capture(…, keys=True)"
    )

    def attempt(runs: Runs, size: int) -> None:
        def run(recording: Recording) -> Any:
            given = arguments.recorded(recording, plan, size)

            def call() -> tuple[Any, list[tuple[Any, Any]]]:
                with kept(states) as newest:
                    return asked.function(*given), newest()

            return runs.one(recording, backend, size, call)

        recording, found = observed(generators, lambda: Recording(named, keys), run)
        if found:
            runs.add(recording, *found)

    def captured(plan: BatchPlan) -> tuple[Runs, Program]:
        runs = Runs(plan, arguments, named)
        for size in plan.sizes:
            try:
                attempt(runs, size)
                continue
            except GraphError as error:
                problem = error
            if size != plan.given and size == plan.sizes[0]:
                attempt(runs, plan.given)  # an error of the examples themselves
            raise problem
        return runs, runs.program(asked.name, backend)

    runs, program = plan.repeated(captured)
    outside = Outside(asked.function, modules, runs.identities())
    arguments.call.outside = outside or None
    return program


def observed(
    generators: Generators,
    start: Callable[[], Recording],
    run: Callable[[Recording], R],
) -> tuple[Recording, R]:
    """A recording of a run that leaves all generators of random numbers alone.

    Raises:
        GraphError: one has moved. The line is found by a second run, whose ops look at
            the generators one by one.
    """
    recording, before = start(), generators.states()
    try:
        found = run(recording)
        try:
            generators.check(before)
        except GraphError:
            generators.put_back(before)
            recording = start()
            recording.look = functools.partial(generators.check, before)
            run(recording)
            raise
    except BaseException:
        generators.put_back(before)  # as if it had not been tried
        raise
    return recording, found


def _one_device(asked: "Subject", tensors: Sequence[Tensor]) -> Backend:
    """The device that a capture writes down, the inputs' one where there are inputs.

    Tensors of narrow whole numbers, as quantized weights and masks are, may live on a
    sibling of it: what Python makes of them is a constant.
    """
    devices = [plain_backend(t.backend) for t in tensors]
    devices += [plain_backend(d) for m in asked.modules for d in m[1].devices()]
    if not devices:
        return Numpy()
    first = devices[0]
    wrong = {d for d in devices if d is not first and not _holds_whole(d, first, asked)}
    if wrong:
        names = ", ".join(sorted(map(repr, {first, *wrong})))
        what = f"it works on one device, and there are {names}"
        raise ArgumentError("capture", what, cure="to_device of one of them")
    return first


def _holds_whole(device: Backend, main: Backend, asked: "Subject") -> bool:
    """Whether a device differs in its Int type alone, and has no tensor of floats."""
    if sibling(device, int=main.int) is not main:
        return False
    held = [p for m in asked.modules for _, p in m[1].named_params()]
    return not any(p.kind is Float and plain_backend(p.device) is device for p in held)


def _main_device(model: Module) -> Backend | None:
    """Where inputs of a model go: where its weights are, and not its whole numbers."""
    floats = [p.device for _, p in model.named_params() if p.kind is Float]
    devices = floats or model.devices()
    if not floats and devices and np.iinfo(devices[0].int_dtype).bits < INDEX_BITS:
        return sibling(devices[0], int="i64")
    return devices[0] if devices else None


class Runs:
    """The runs of one function with several batch sizes, which become a program."""

    def __init__(self, plan: "BatchPlan", arguments: "Arguments", named: Named):
        self.plan, self.arguments, self.named = plan, arguments, named
        self.recordings: list[Recording] = []
        self.results: list[list[Recorded]] = []
        self.others: list[list[Any]] = []
        self.of_one_row: list[np.ndarray] | None = None  # what came out
        self.numbers: Mapping[str, float] | None = None
        self.updates: list[list[tuple[Recorded, Recorded]]] = []
        self.example: Any = None
        self.fails_for_one = ""  # what was wrong with a batch of one

    def one(
        self, recording: Recording, backend: Backend, size: int, run: Callable[[], R]
    ) -> R | None:
        """What one run gives, which is written down; None for a batch of one in vain.

        Raises:
            BurnbookError: it fails; for another size than that of the examples, the
                error says so.
        """
        is_extra = size == 1 != self.plan.given
        try:
            with recording.on(backend):
                return run()
        except Exception as error:
            ours = isinstance(error, BurnbookError)
            if ours and error.where in OWN:
                raise
            if is_extra:  # other sizes are what it is for
                self.fails_for_one = _told(error)
                return None
            # no size would change a kind
            if size == self.plan.given or isinstance(error, KindError):
                raise
            raise _one_size_only(error, size) from error

    def identities(self) -> set[Any]:
        """The identities of the arrays that were constants of the runs."""
        found = [c for recording in self.recordings for c in recording.constants]
        return {identity(constant.array) for constant in found}

    def add(
        self,
        recording: Recording,
        result: Any,
        updates: Sequence[tuple[Any, Any]] = (),
        numbers: Mapping[str, float] | None = None,
    ) -> None:
        """One run more: what it gave, what took the place of what, and its numbers."""
        tensors = tensors_of_result(result)
        self.recordings.append(recording)
        self.results.append([_seen(recording, lowest(t.value)) for t in tensors])
        leaves = ARGUMENTS.leaves(result)
        self.others.append([v for _, v in leaves if not isinstance(v, Tensor)])
        self.updates.append(
            [(_seen(recording, old), _seen(recording, new)) for old, new in updates]
        )
        self.example = result if self.example is None else self.example
        if self.plan.sizes[-1] == 1 and len(self.recordings) == len(self.plan.sizes):
            to_numpy = recording.backend.to_numpy  # type: ignore[union-attr] - it ran
            news = [new for _, new in self.updates[-1]]
            out = [v.array for v in (*self.results[-1], *news)]
            self.of_one_row = [np.array(to_numpy(array)) for array in out]
            self.numbers = numbers
        recording.let_go()

    def program(
        self,
        name: str,
        backend: Backend,
        numbers: Mapping[str, Formula | None] | None = None,
    ) -> Program:
        """What all runs have in common.

        For one row other ops may run, where nothing is stretched or summed, and give
        the same: then the program of the other sizes is right if it gives that too.
        """
        count = len(self.recordings)
        try:
            return self._common(name, backend, numbers, count)
        except GraphError as error:
            if self.of_one_row is None:
                raise
            made = self._common(name, backend, numbers, count - 1)
            if not self._gives_one_row(made):
                raise error from None
            return made

    def _gives_one_row(self, program: Program) -> bool:
        """Whether a program gives what the run of one row gave."""
        keys = [(key[0], key[1]) for key in self.recordings[-1].keys]
        arrays = self.arguments.arrays_of(self.plan, 1)
        found = program.run(*arrays, keys=keys, numbers=self.numbers)
        assert program.gives is not None  # it has been captured
        tensors = tuple(tensors_of_result(self.example))
        leaves = ARGUMENTS.leaves(program.gives(tensors, 1))
        others = [v for _, v in leaves if not isinstance(v, Tensor)]
        if not all(map(are_equal, others, self.others[-1])):
            return False
        wanted = self.of_one_row or ()
        made = [np.asarray(program.backend.to_numpy(array)) for array in found]
        return len(made) == len(wanted) and all(
            a.shape == b.shape and np.allclose(a, b, 1e-4, 1e-6, equal_nan=True)
            for a, b in zip(made, wanted, strict=True)
        )

    def _common(
        self,
        name: str,
        backend: Backend,
        numbers: Mapping[str, Formula | None] | None,
        count: int,
    ) -> Program:
        """What the first runs have in common."""
        results, others = self.results[:count], self.others[:count]
        inputs = self.arguments.values(self.plan)
        names = {value.name for value in inputs}
        names |= {path for path, _, _ in self.named.values()}
        made = Unifier(self.recordings[:count], self.plan.sizes[:count], inputs, names)
        made.unify()
        for rows, what in (results, "tensors"), (others, "numbers"):
            if len({len(row) for row in rows}) > 1:
                what = f"the batch size decides how many {what} come out"
                raise GraphError("capture", what, cure=FIXED)
        made.seen_at, made.path = None, ""
        tensors = zip(*results, strict=True)
        outputs = [made.alike(list(row), "the result") for row in tensors]
        rest = zip(*others, strict=True)
        sizes = [made.alike(list(row), "the result") for row in rest]
        updates = [
            tuple(
                [made.alike(list(half), "an update") for half in zip(*row, strict=True)]
            )
            for row in zip(*self.updates[:count], strict=True)
        ]
        frozen = {n: held for r in self.recordings for n, held in r.frozen.items()}
        return Program(
            name,
            tuple(inputs),
            tuple(made.steps),
            (*outputs, *[new for _, new in updates]),
            made.arrays,
            backend,
            tuple(made.keys),
            self.arguments.call,
            Result(self.example, sizes),
            tuple(updates),
            numbers or {},
            frozen,
            self.fails_for_one,
        )


def _seen(recording: Recording, value: Any) -> Recorded:
    return value if type(value) is Recorded else recording.constant(value)


@dataclass(frozen=True)
class Subject:
    """What is captured: how it is called, its name and the modules that it uses."""

    name: str
    function: Callable[..., Any]
    modules: list[tuple[str, Module]]
    device: Backend | None = None

    def moved(self, example: Any) -> Any:
        """An example where the model is; a function gets what it would get."""
        if isinstance(example, np.ndarray):
            example = Tensor.from_numpy(example, self.device or Numpy())
        return ARGUMENTS.map(example, self._moved)

    def _moved(self, leaf: Any) -> Any:
        if self.device is None or not isinstance(leaf, Tensor):
            return leaf
        while leaf.backend is not self.device and leaf.backend.ad_enabled:
            leaf = leaf.inner()
        if sibling(leaf.backend, int=self.device.int) is self.device:
            held = [p for _, m in self.modules for _, p in m.named_params()]
            if held and all(p.device is leaf.backend for p in held):
                return leaf
        return leaf.to_device(self.device)


def _subject(subject: Any, method: str) -> Subject:
    if isinstance(subject, Module):
        if not callable(getattr(subject, method, None)):
            what = f"{type(subject).__name__} has no method {method!r}"
            raise ArgumentError("capture", what, cure='method="…"')
        model = subject
        while any(device.ad_enabled for device in model.devices()):
            model = model.valid()
        device = _main_device(model)
        name = type(subject).__name__
        return Subject(name, getattr(model, method), [("", model)], device)
    if isinstance(subject, type) and issubclass(subject, Module):
        what = f"{subject.__name__} is a class, and no model of it"
        cure = (
            f"capture(model, …) with a model of it, as {subject.__name__}(…) makes it"
        )
        raise ArgumentError("capture", what, cure=cure)
    if not callable(subject):
        what = f"{type(subject).__name__} is neither a model nor a function"
        raise ArgumentError("capture", what, cure="capture(model, x)")
    name = getattr(subject, "__name__", type(subject).__name__)
    found = list(modules_of(subject))
    if len(found) == 1:
        found = [("", found[0][1])]
    return Subject(name, subject, found)


def modules_of(function: Any, depth: int = 3) -> Iterator[tuple[str, Module]]:
    """The modules that a function uses by its own, with the names that it has for them.

    They are looked for in its closure, its globals, its defaults and its `self`.
    """
    seen: set[int] = set()
    for name, value in _held_by(function, depth):
        if isinstance(value, Module) and id(value) not in seen:
            seen.add(id(value))
            yield name, value


def _held_by(function: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(function, functools.partial):
        held: list[tuple[str, Any]] = [("self", function.func)]
        held += [(str(i), value) for i, value in enumerate(function.args)]
        held += list(function.keywords.items())
    else:
        owner = getattr(function, "__self__", None)
        held = [] if owner is None else [("self", owner)]
        function = inspect.unwrap(getattr(function, "__func__", function))
        if isinstance(function, FunctionType):
            found = inspect.getclosurevars(function)
            held += [*found.nonlocals.items(), *found.globals.items()]
            defaults = inspect.signature(function).parameters.values()
            held += [(p.name, p.default) for p in defaults]
    for name, value in held:
        if isinstance(value, Module):
            yield name, value
        elif isinstance(value, (list, tuple)):
            for i, part in enumerate(value[:100]):  # type: ignore[var-annotated]
                if isinstance(part, Module):
                    yield f"{name}.{i}", part
        elif depth and _is_function(value):
            yield from _held_by(value, depth - 1)


def _is_function(value: Any) -> bool:
    """Whether a value is a function that may use modules, or a method of one."""
    owner = getattr(value, "__self__", None)
    return isinstance(value, (FunctionType, functools.partial)) or (
        inspect.ismethod(value) and isinstance(owner, Module)
    )


@dataclass(frozen=True)
class BatchPlan:
    """With which batch sizes a function runs, and which dim of each input that is."""

    sizes: tuple[int, ...]
    dims: tuple[int | None, ...]
    given: int

    @classmethod
    def of(cls, batch: Batch, tensors: Sequence[Tensor]) -> "BatchPlan":
        """The plan for some examples."""
        if batch is None or not tensors:
            return cls((0, 0), (None,) * len(tensors), 0)
        if isinstance(batch, int):
            ranks = [tensor.rank for tensor in tensors]
            inside = [-rank <= batch < rank for rank in ranks]
            if not inside[0]:
                what = f"dim {batch} does not exist in the first example"
                facts = [("example", str(list(tensors[0].dims())))]
                raise ArgumentError("capture", what, facts, "batch=0, or batch=None")
            given = tensors[0].dims()[batch]
            dims = tuple(
                batch % tensor.rank if fits and tensor.dims()[batch] == given else None
                for tensor, fits in zip(tensors, inside, strict=True)
            )
        else:
            if not isinstance(batch, (list, tuple)):
                what = f"batch is {batch!r}, and no dim"
                cure = "batch=0, batch=None, or a list of a dim or None for each tensor"
                raise ArgumentError("capture", what, cure=cure)
            dims = tuple(batch)
            if len(dims) != len(tensors):
                what = f"batch has {len(dims)} dims for {len(tensors)} tensors"
                raise ArgumentError("capture", what, cure="a dim or None for each")
            pairs = [
                (t, d) for t, d in zip(tensors, dims, strict=True) if d is not None
            ]
            if not pairs:
                return cls((0, 0), dims, 0)
            found = {tensor.dims()[dim] for tensor, dim in pairs}
            if len(found) > 1:
                what = f"the batch has {' and '.join(map(str, sorted(found)))} rows"
                raise ArgumentError("capture", what, cure="examples of one batch size")
            given = found.pop()
        if given == 0:
            what = "the examples have no rows"
            raise ArgumentError("capture", what, cure="a batch of one or more")
        first = min(given, 8) if given > 1 else 2
        sizes = (first, first + 1, first + 3)
        return cls((*sizes, *sorted({given, 1} - {*sizes}, reverse=True)), dims, given)

    def repeated(self, captured: Callable[["BatchPlan"], R]) -> R:
        """What a capture with this plan gives, or the better reason why it fails.

        Why: a function that does something else in each run does so in a larger batch
        as well, which is not the batch's fault. So the same size is tried twice.
        """
        try:
            return captured(self)
        except GraphError as error:
            problem = error
        if len({*self.sizes}) > 1:
            try:
                captured(replace(self, sizes=(self.sizes[0],) * 2))
            except GraphError as error:
                raise error from None
        raise problem


class Arguments:
    """The examples: their tensors, with other batch sizes, and how they are passed."""

    def __init__(
        self,
        function: Callable[..., Any],
        examples: tuple[Any, ...],
        opens: Callable[[Module], ModuleInput | None] | None = None,
    ):
        self.call = Call(function, examples, opens)
        self.examples = examples
        self.tensors: list[Tensor] = []
        self.is_weight: list[bool] = []  # of a model among the examples
        for path, leaf in arguments(list(examples)):
            opened = self.call.opened.get(path)
            if isinstance(leaf, Tensor):
                self.tensors.append(leaf)
                self.is_weight.append(False)
            elif opened is not None:
                self.tensors += opened.tensors(leaf, "")
                self.is_weight += [True] * len(opened.names)

    def plan(self, batch: Batch) -> BatchPlan:
        """The plan for these examples; the weights of a model have no batch."""
        pairs = list(zip(self.tensors, self.is_weight, strict=True))
        plan = BatchPlan.of(
            batch, [tensor for tensor, is_weight in pairs if not is_weight]
        )
        dims = iter(plan.dims)
        found = [None if is_weight else next(dims) for is_weight in self.is_weight]
        return replace(plan, dims=tuple(found))

    def values(self, plan: BatchPlan) -> list[Value]:
        """The inputs of the program."""
        made: list[Value] = []
        seen: set[str] = set()
        paths = self.call.paths
        for path, tensor, dim in zip(paths, self.tensors, plan.dims, strict=True):
            shape: list[Any] = list(tensor.dims())
            if dim is not None:
                shape[dim] = Dim(1)
            name, count = path, 1
            while name in seen:
                count += 1
                name = f"{path}_{count}"
            seen.add(name)
            made.append(Value(name, "input", tensor.value.dtype, tuple(shape)))
        return made

    def arrays_of(self, plan: BatchPlan, size: int) -> list[Any]:
        """The arrays of the examples, with so many rows; the first ones come again."""
        made: list[Any] = []
        for tensor, dim in zip(self.tensors, plan.dims, strict=True):
            array = lowest(tensor.value)
            if dim is not None and size != tensor.dims()[dim]:
                plain = np.asarray(tensor.backend.to_numpy(array))
                rows = np.arange(size) % plain.shape[dim]
                plain = np.take(plain, rows, dim)
                array = plain_backend(tensor.backend).from_numpy(plain)
            made.append(array)
        return made

    def recorded(self, recording: Recording, plan: BatchPlan, size: int) -> list[Any]:
        """The arguments for one run: the same trees with tensors that are recorded."""
        arrays = self.arrays_of(plan, size)
        values = iter([recording.input(array, i) for i, array in enumerate(arrays)])
        leaves, opened = arguments(list(self.examples)), self.call.opened
        models = iter([opened.get(at) for at, v in leaves if isinstance(v, Module)])

        def change(leaf: Any) -> Any:
            if isinstance(leaf, Module):
                form = next(models)
                own = [next(values) for _ in form.names] if form else []
                return form.recorded(leaf, own) if form else leaf
            if not isinstance(leaf, Tensor):
                return leaf
            made = Tensor(next(values), leaf.kind, leaf.backend, leaf.rank)
            return made.require_grad() if leaf.is_require_grad() else made

        return [WITH_MODELS.map(example, change) for example in self.examples]


def _told(error: Exception) -> str:
    """The first line of an error: "shape: …", "ValueError: …"."""
    kind, text = type(error).__name__, str(error).partition("\n")[0]
    if isinstance(error, BurnbookError):
        return text
    return f"{kind}: {text}" if text else kind


def _one_size_only(error: Exception, size: int) -> GraphError:
    what = f"a batch of {size} fails: {_told(error)}"
    facts = list(error.facts) if isinstance(error, BurnbookError) else []
    cure = (
        "capture(…, batch=None) for one size; or a dim or None for each tensor, as in "
        "batch=[0, None], where another dim is the batch or an input has none"
    )
    return GraphError("capture", what, [*where_facts(user_line(error)), *facts], cure)
