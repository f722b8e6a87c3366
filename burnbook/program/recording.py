"""Writing down what runs: for the time of a capture, a backend's verb is ours.

A recording stands in front of one plain backend (`Numpy()`, `Cupy(0)`). Every op that
reaches it runs, and is written down. What it gives back is not the array but a
`Recorded`, which knows where it came from and has no values for Python to look at: so
whatever would be frozen silently (`if x.sum() > 0`, `np.asarray(x)`, `print(x)`) is
refused with the line that asked.

Why not a decorator: tensors must live on one backend, and a function brings its own
models and tensors along. Other threads do not notice: theirs runs as before.
"""

import linecache
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from burnbook import ops
from burnbook.backend.autodiff import Autodiff
from burnbook.backend.base import AnyOp, Attrs, Backend, Interned, Values, plain_backend
from burnbook.backend.fusion import Fusion
from burnbook.core.dtypes import dtype_name
from burnbook.core.error_context import running_modules
from burnbook.core.errors import Fact, GraphError
from burnbook.core.formulas import Unknown, known
from burnbook.core.op import BackwardOp
from burnbook.module.running import RunningState, watched
from burnbook.program.sizes import Key, leaves as mapped_leaves, mapped
from burnbook.program.values import Line
from burnbook.tensor import Tensor
from burnbook.tensor.numeric import is_written_down

BELOW = tuple(
    f"burnbook.{name}."
    for name in ("program", "backend", "tensor", "core", "ops", "module")
)
Origin = tuple[Any, ...]
D = TypeVar("D", bound=Backend)


class Recorded(NDArrayOperatorsMixin):
    """A value of a recording: what it is, not what it holds.

    origin: ("input", i), ("constant", i) or ("result", step, output). inputs, names:
    whether it was computed from inputs, and from which named constants. array: what it
    is in this run; None for an extra result that a kernel has left out.
    """

    __slots__ = ("__weakref__", "array", "from_input", "names", "origin", "recording")

    def __init__(
        self,
        array: Any,
        origin: Origin,
        recording: "Recording",
        from_input: bool = False,
        names: frozenset[str] = frozenset(),
    ):
        self.array = array
        self.origin = origin
        self.recording = recording
        self.from_input = from_input
        self.names = names

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes, which are those of this run."""
        return self.array.shape if self.array is not None else ()

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return self.array.dtype if self.array is not None else np.dtype(np.float32)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(self.array.size)

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return self.array.ndim

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.array.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.array.nbytes

    def __len__(self) -> int:
        return len(self.array)

    def astype(self, dtype: Any, copy: bool = True) -> "Recorded":
        """The values in another element type, as a step."""
        if not copy and np.dtype(dtype) == self.dtype:
            return self
        return self.recording.run(ops.cast, (self,), {"dtype": np.dtype(dtype)})

    def reshape(self, *shape: Any) -> "Recorded":
        """The values in another shape, as a step."""
        sizes = tuple(shape[0]) if isinstance(shape[0], (tuple, list)) else shape
        return self.recording.run(ops.reshape, (self,), {"shape": sizes})

    def swapaxes(self, dim1: int, dim2: int) -> "Recorded":
        """The values with two dims exchanged, as a step."""
        return self.recording.run(ops.swap_dims, (self,), {"dim1": dim1, "dim2": dim2})

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(np.ndarray, name):
            self.recording.refuse_other_type(self)
        what = f"a value of a capture has no {name}"
        raise AttributeError(what, name=name, obj=self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = self.recording.elements(self, "np.asarray")
        return np.array(found, dtype, copy=copy)

    def __array_ufunc__(
        self, ufunc: Any, method: str, *given: Any, **named: Any
    ) -> Any:
        return self._by_numpy(ufunc, given, named if method == "__call__" else None)

    def __array_function__(
        self, function: Any, types: Any, given: Any, named: Any
    ) -> Any:
        return self._by_numpy(function, given, named)

    def _by_numpy(self, function: Any, given: Any, named: Any) -> Any:
        """The op that does the same; or the plain result, if no input is involved."""
        name = function.__name__
        if name in ("reshape", "swapaxes") and self is given[0]:
            return getattr(self, name)(*given[1:])
        if name in OF_SHAPE:
            return function(self.array, *given[1:], **(named or {}))
        op = SAME.get(name)
        if op is not None and not named and len(op.inputs) == len(given):
            return self.recording.run(op, tuple(given), {})
        if name in PLACES and self is given[0] and set(named or ()) <= {"axis"}:
            return self._place(PLACES[name], *given[1:], **(named or {}))
        if name == "expand_dims" and self is given[0]:
            at = given[1] % (self.ndim + 1)
            return self.reshape(*self.shape[:at], 1, *self.shape[at:])
        self.recording.refuse_other_type(self)
        plain = [self.recording.elements(v, f"np.{name}") for v in given]
        return function(*plain, **(named or {}))

    def _place(self, op: AnyOp, axis: int | None = None) -> "Recorded":
        """Where the largest or smallest element is: in a line, or of all."""
        if axis is None:
            return self.reshape(self.size)._place(op, 0).reshape(())
        dim = axis % self.ndim
        found = self.recording.run(op, (self,), {"dim": dim})
        return found.reshape((*found.shape[:dim], *found.shape[dim + 1 :]))


def _of_elements(name: str) -> Callable[..., Any]:
    """A method of arrays that looks at elements, or tells that it may not."""

    def method(self: Recorded, *given: Any) -> Any:
        return getattr(self.recording.elements(self, f"{name}()"), name)(*given)

    return method


for _name in ("view", "item", "tolist", "copy"):
    setattr(Recorded, _name, _of_elements(_name))
SAME: dict[str, AnyOp] = {  # what library code does to arrays by itself, as ops
    "add": ops.add,
    "subtract": ops.sub,
    "multiply": ops.mul,
    "negative": ops.neg,
    "floor": ops.floor,
    "ceil": ops.ceil,
    "rint": ops.round,
    "trunc": ops.trunc,
    "sign": ops.sign,
    "isnan": ops.is_nan,
    "equal": ops.equal,
    "not_equal": ops.not_equal,
    "less": ops.lower,
    "less_equal": ops.lower_equal,
    "greater": ops.greater,
    "greater_equal": ops.greater_equal,
}
PLACES: dict[str, AnyOp] = {"argmax": ops.argmax, "argmin": ops.argmin}
OF_SHAPE = {"shape", "ndim", "size", "zeros_like", "ones_like", "empty_like"}
SIZED_BY_ELEMENTS: tuple[AnyOp, ...] = (ops.argwhere,)


@dataclass(frozen=True, eq=False)
class RecordedStep:
    """An op that ran, as a recording has it."""

    op: AnyOp
    inputs: tuple[Any, ...]
    attrs: dict[str, Any]
    outputs: tuple[Recorded | None, ...]
    path: str
    line: Line | None
    is_tuple: bool


class Recording:
    """The ops of one run, in order; `with recording.on(backend):` writes them down.

    named: what arrays are called that are part of a model, by their identity: a path,
    and "parameter" or "buffer". keys: whether random numbers may be drawn; each key is
    an input of the program then.
    """

    def __init__(
        self,
        named: Mapping[Any, tuple[str, str, Any]] | None = None,
        keys: bool = False,
    ):
        self.named = named or {}
        self.may_draw = keys
        self.steps: list[RecordedStep] = []
        self.constants: list[Recorded] = []
        self.keys: list[Key] = []
        self.lines_of_constants: list[Line | None] = []
        self.frozen: dict[str, tuple[Any, Line | None]] = {}
        self.backend: Backend | None = None
        self.is_over = False
        self.look: Callable[[], None] | None = None  # called before each op
        self._lines_of_keys: dict[int, list[Fact]] = {}  # until an op draws from them
        self._moved: dict[int, tuple[RunningState, Tensor, list[Fact]]] = {}
        self._inside = False
        self._taken_back: set[int] = set()  # steps whose gradient has been taken
        self._by_array: dict[Any, Recorded] = {}
        self._plain: dict[str, Callable[..., Any]] = {}
        self._owner = threading.get_ident()

    @contextmanager
    def on(self, backend: Backend) -> Generator["Recording"]:
        """Write down what this thread runs on a plain backend."""
        if "run" in vars(backend) and isinstance(
            getattr(vars(backend)["run"], "__self__", None), Recording
        ):
            what = "a capture is running on this device already"
            raise GraphError("capture", what, cure="one capture after the other")
        self.backend = backend
        ours = {
            "run": self.run,
            "from_numpy": self._from_numpy,
            "to_numpy": self._to_numpy,
            "next_key": self._next_key,
            "aside": self._aside,
        }
        self._plain = {name: getattr(backend, name) for name in ours}
        before = {name: vars(backend).get(name) for name in ours}
        run_op = vars(backend.xp).get("run_op")
        with _asking_below(backend), watched(self._note_move):
            vars(backend).update(ours)
            if run_op is not None:
                backend.xp.run_op = self.run
            try:
                yield self
                self._refuse_keys_of_python()
                self._refuse_moves()
            finally:
                self.is_over = True
                for name, held in before.items():
                    if held is None:
                        del vars(backend)[name]
                    else:
                        setattr(backend, name, held)
                if run_op is not None:
                    backend.xp.run_op = run_op
                for state, old, _ in self._moved.values():
                    state.swap(old)

    def input(self, array: Any, number: int) -> Recorded:
        """An input: a value whose elements the program does not know."""
        return Recorded(array, ("input", number), self, from_input=True)

    def run(self, op: AnyOp, values: Values, attrs: Attrs) -> Any:
        """Run an op on the backend, and write it down."""
        run = self._plain["run"]
        if self._inside or threading.get_ident() != self._owner:
            return run(op, values, attrs)
        self._before_op()
        given: tuple[Any, ...] = mapped(tuple(values), self._as_recorded)
        if op is ops.mul and len(given) == 2:
            op, given = self._of_truths(*given)
        named = dict(
            attrs
        )  # arrays in attributes stay as they are: they are no tensors
        found: list[Recorded] = []

        def bare(leaf: Any) -> Any:
            if type(leaf) is Recorded:
                found.append(leaf)
                return leaf.array
            return known(leaf) if isinstance(leaf, Unknown) else leaf

        plain, plain_attrs = mapped(given, bare), mapped(named, bare)
        if op in SIZED_BY_ELEMENTS and any(value.from_input for value in found):
            raise _sized_by_elements(op)
        self._inside = True
        try:
            out = run(op, plain, plain_attrs)
            if op.extras and any(part is None for part in out):
                out = self._with_extras(op, plain, plain_attrs, out)
        finally:
            self._inside = False
        drawn = [leaf for leaf in mapped_leaves(attrs) if type(leaf) is Key]
        for key in drawn:
            self._lines_of_keys.pop(key.number, None)
        random = bool(drawn)
        from_input = random or any(value.from_input for value in found)
        names = frozenset().union(*[value.names for value in found])
        outs = out if type(out) is tuple else (out,)
        number = len(self.steps)
        made = tuple(
            Recorded(array, ("result", number, i), self, from_input, names)
            if hasattr(array, "shape") or (i and op.extras)
            else None
            for i, array in enumerate(outs)
        )
        path, line = running_modules(), user_line()
        if isinstance(op, BackwardOp):
            path, line = self._place_of_forward(op, given) or (path, line)
        is_tuple = type(out) is tuple
        step = RecordedStep(op, given, named, made, path, line, is_tuple)
        self.steps.append(step)
        return made if is_tuple else made[0]

    def _before_op(self) -> None:
        """Refuse an op after the run; and let whoever watches the run look."""
        if self.is_over:
            raise _used_afterwards()
        if self.look is not None:
            self.look()

    def _of_truths(self, x: Any, y: Any) -> tuple[AnyOp, tuple[Any, Any]]:
        """A product in which a formula of ours counts true as 1, by ops of a kind."""
        kinds = [np.dtype(getattr(v, "dtype", float)).kind for v in (x, y)]
        if kinds == ["b", "b"]:
            return ops.bool_and, (x, y)
        if "b" in kinds and hasattr(x, "dtype") and hasattr(y, "dtype"):
            dtype = (y if kinds[0] == "b" else x).dtype
            x, y = [
                self.run(ops.cast, (v,), {"dtype": dtype}) if k == "b" else v
                for v, k in zip((x, y), kinds, strict=True)
            ]
        return ops.mul, (x, y)

    def _with_extras(
        self, op: AnyOp, values: Values, attrs: Attrs, out: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """Results with the extras that a kernel has left out, for their shapes."""
        backend = self.backend
        assert backend is not None  # an op runs
        with np.errstate(all="ignore"):
            found = op.forward(backend.xp, *values, **attrs)
        return (out[0], *[a if b is None else b for a, b in zip(found[1:], out[1:])])  # noqa: B905 - equal

    def _place_of_forward(
        self, op: BackwardOp, given: tuple[Any, ...]
    ) -> tuple[str, Line | None] | None:
        """Module and line of the step that a gradient is of.

        It is the newest one of this op that has the shape of the gradient, and all that
        the gradient keeps of it; backward goes from the newest to the oldest.
        """
        kept = [value for value in given[1:] if type(value) is Recorded]
        for number in range(len(self.steps) - 1, -1, -1):
            step = self.steps[number]
            if step.op is not op.source or number in self._taken_back:
                continue
            out = step.outputs[0]
            own = (*mapped_leaves(step.inputs), *step.outputs)
            fits = out is not None and out.shape == given[0].shape
            if fits and all(any(value is one for one in own) for value in kept):
                self._taken_back.add(number)
                return step.path, step.line
        return None

    def elements(self, value: Any, asked: str | None = None) -> Any:
        """The array of a value that depends on no input; the others are refused."""
        if type(value) is not Recorded:
            name, _, array = self.named.get(identity(value), ("", "", None))
            if array is not None:
                self.frozen.setdefault(name, (array, user_line()))
            return value
        if value.recording.is_over:
            raise _used_afterwards()
        if value.from_input:
            raise refused(asked)
        for name, _, array in self.named.values():
            if name in value.names:
                self.frozen.setdefault(name, (array, user_line()))
        return value.array

    def refuse_other_type(self, value: Recorded) -> None:
        """Raise for a value that was cast to a type with which the device does not
        compute: its ops run on another one, where nothing is written down."""
        backend = self.backend
        if backend is None or not value.from_input or value.dtype.kind not in "fi":
            return
        is_float = value.dtype.kind == "f"
        own = backend.float_dtype if is_float else backend.int_dtype
        if value.dtype != own:
            cast, kept = dtype_name(value.dtype), dtype_name(own)
            what = f"a value was cast to {cast}, and {backend!r} computes with {kept}"
            kind = "float" if is_float else "int"
            cure = f'a model and inputs on Numpy({kind}="{cast}"); or no cast'
            raise GraphError("capture", what, where_facts(), cure)

    def let_go(self) -> None:
        """Forget what results hold; a program needs their shapes and types alone.

        Why: each run of a training step holds every activation and every gradient.
        """
        for step in self.steps:
            for value in step.outputs:
                if value is not None and value.array is not None:
                    nothing = np.zeros((), value.dtype)
                    value.array = np.broadcast_to(nothing, value.shape)

    def constant(self, array: Any, line: Line | None = None) -> Recorded:
        """The constant that an array is; the same array is one constant."""
        found = self._by_array.get(identity(array))
        if found is None:
            name = self.named.get(identity(array))
            names = frozenset[str]() if name is None else frozenset({name[0]})
            origin = ("constant", len(self.constants))
            found = self._by_array[identity(array)] = Recorded(
                array, origin, self, False, names
            )
            self.constants.append(found)
            self.lines_of_constants.append(line)
        return found

    def _refuse_keys_of_python(self) -> None:
        """Raise for random numbers that no op has drawn: Python has made constants."""
        for facts in self._lines_of_keys.values():
            what = "random numbers are drawn by Python, and each run would repeat them"
            cure = "Tensor.random or dropout, whose ops draw anew in each run"
            raise GraphError("capture", what, facts, cure)

    def _note_move(self, state: RunningState) -> None:
        """Keep what a running statistic was before this run."""
        before = state.val()
        if not is_written_down(before.value):
            self._moved.setdefault(id(state), (state, before, where_facts()))

    def _refuse_moves(self) -> None:
        """Raise for running statistics that moved and are in no captured module."""
        for state, before, facts in self._moved.values():
            if state.val() is not before:
                what = "a module moves its running statistics, and is no part of what "
                what += "is captured"
                cure = "module.eval() or module.no_grad() before the capture; or one "
                cure += "module that holds it and the model"
                raise GraphError("capture", what, facts, cure)

    def _as_recorded(self, leaf: Any) -> Any:
        if isinstance(leaf, np.generic) or not hasattr(leaf, "__array__"):
            return leaf
        if type(leaf) is not Recorded:
            return self.constant(leaf, user_line())
        if leaf.recording is not self:
            raise _used_afterwards()
        return leaf

    def _from_numpy(self, array: np.ndarray) -> Any:
        plain = self._plain["from_numpy"]
        if self._inside or threading.get_ident() != self._owner:
            return plain(array)
        return self.constant(plain(array), user_line())

    def _to_numpy(self, value: Any) -> np.ndarray:
        return self._plain["to_numpy"](self.elements(value))

    @contextmanager
    def _aside(self) -> Generator[None]:
        before, is_ours = self._inside, threading.get_ident() == self._owner
        self._inside = before or is_ours
        try:
            yield
        finally:
            self._inside = before if is_ours else self._inside

    def _next_key(self) -> tuple[int, int]:
        if self._inside or threading.get_ident() != self._owner:
            return self._plain["next_key"]()
        if not self.may_draw:
            cure = (
                "model.valid(), where Dropout and its like do nothing; or capture(…, "
                "keys=True), which draws new numbers in each run"
            )
            what = "random numbers are drawn here, and the program would repeat them"
            raise GraphError("capture", what, where_facts(), cure)
        key = Key((0, len(self.keys)), len(self.keys))  # no run's own is used up
        self.keys.append(key)
        self._lines_of_keys[key.number] = where_facts()
        return key


def identity(array: Any) -> Any:
    """What tells an array from others: the memory that it looks at, and how."""
    if type(array) is np.ndarray and array.size:
        place = array.__array_interface__["data"][0]
        return place, array.shape, array.strides, array.dtype.str
    return id(array)


@contextmanager
def _asking_below(backend: Backend) -> Generator[None]:
    """Every Autodiff above a backend hands all ops to it, the smallest ones too."""
    before: list[tuple[Any, dict[str, Any]]] = []
    for device in autodiffs_above(backend):
        held = {n: vars(device).get(n) for n in ("plain_below", "prepare", "run")}
        before.append((device, held))
        device.plain_below = _Never()
        device.prepare = _one_by_one
        if device.checkpointing != type(device.checkpointing)() or held["run"]:
            vars(device).pop("run", None)
    for fused in devices_above(backend, Fusion):  # what it would keep back runs now
        fused.sync()
        before.append((fused, {"run": vars(fused).get("run")}))
        fused.run = fused.run_now  # type: ignore[method-assign]
    try:
        yield
    finally:
        for device, held in before:
            for name, value in held.items():
                if value is not None:
                    setattr(device, name, value)
                elif type(device) is Fusion:
                    vars(device).pop(name, None)


def autodiffs_above(backend: Backend) -> Iterator[Autodiff]:
    """The Autodiff devices whose plain backend this is."""
    return devices_above(backend, Autodiff)


def devices_above(backend: Backend, kind: type[D]) -> Iterator[D]:
    """The decorators of a kind whose plain backend this is."""
    for device in list(Interned._made.values()):  # pyright: ignore[reportPrivateUsage] - all that there are
        if isinstance(device, kind) and plain_backend(device) is backend:
            yield device


class _Never(dict[Any, float]):
    """Below which size an op may pass the backend by: none may."""

    def get(self, key: Any, default: Any = None) -> Any:
        return 0


def _one_by_one(run: Callable[..., Any]) -> Callable[..., Any]:
    """Gradients one op at a time, through the backend."""
    return run


def user_line(error: BaseException | None = None) -> Line | None:
    """The line of the user's code that is running; of a layer of ours if none is.

    error: the line that was running when it was raised.
    """
    ours: tuple[FrameType, int] | None = None
    for frame, number in _running() if error is None else _running_at(error):
        name = str(frame.f_globals.get("__name__", ""))
        if frame.f_code.co_name in ("capture", "capture_training") and name.startswith(
            "burnbook.program."
        ):
            break
        if not name.startswith("burnbook.") or name.startswith("burnbook.examples"):
            passed = ("functools.py", "contextlib.py")
            if frame.f_code.co_filename.endswith(passed) or name.startswith("numpy."):
                continue
            return _line_of(frame, number)
        if ours is None and not name.startswith(BELOW) and name != "burnbook.core":
            ours = frame, number
    return None if ours is None else _line_of(*ours)


def _running() -> Iterator[tuple[FrameType, int]]:
    """The frames that run and their lines, from the inside out."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - the documented way
    while frame is not None:
        yield frame, frame.f_lineno
        frame = frame.f_back


def _running_at(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    """The frames that an error came through and their lines, from the inside out."""
    return reversed(list(traceback.walk_tb(error.__traceback__)))


def _line_of(frame: FrameType, number: int) -> Line:
    file = frame.f_code.co_filename
    text = linecache.getline(file, number, frame.f_globals).strip()
    return Line(file, number, text)


def where_facts(line: Line | None = None, path: str | None = None) -> list[Fact]:
    """The line and the module that an error is about, as facts."""
    line = user_line() if line is None else line
    path = running_modules() if path is None else path
    facts: list[Fact] = []
    if line is not None:
        facts.append(("line", f"{line}  {line.text}"))
    if path:
        facts.append(("module", path))
    return facts


def _used_afterwards() -> GraphError:
    what = "a tensor of a capture is used after it"
    cure = (
        "what the captured function returns; a cache that it filled must be cleared, "
        "and filled by a call before the next capture"
    )
    return GraphError("capture", what, where_facts(), cure)


def _sized_by_elements(op: AnyOp) -> GraphError:
    what = f"the size of what {op.name} gives depends on elements of the inputs"
    cure = "mask_where or mask_fill, which keep the shape"
    return GraphError("capture", what, where_facts(), cure)


READS = {  # what a method of Tensor is called by those who use it
    "__bool__": "a truth value (if, while, and, or, not)",
    "__float__": "float(…)",
    "__int__": "int(…)",
    "__str__": "print(…) or str(…)",
    "__repr__": "repr(…)",
    "__format__": "a formatted text",
    "__array__": "NumPy (np.asarray(…))",
    "__dlpack__": "another library",
    "_repr_html_": "the notebook's display",
    "into_scalar": "into_scalar()",
    "into_data": "into_data()",
    "to_data": "to_data()",
}
COMPILED = "a compiled program"
ELSEWHERE = (
    "ops that decide for each element, as mask_where, clamp or max_dim; "
    "or this part outside the captured function"
)
CURES = {
    "print(…) or str(…)": "print its shape; or print what the program returns",
    COMPILED: "the program itself, before compile(), in a captured function",
}


def refused(asked: str | None = None) -> GraphError:
    """The error for Python that looks at values which each run has anew."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    found = asked
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(
        "burnbook."
    ):
        name = frame.f_code.co_name
        if name in READS and "self" in frame.f_locals:
            found = READS[name]
        elif frame.f_globals["__name__"].startswith("burnbook.tensor."):
            found = found or f"{name}()"
        elif frame.f_globals["__name__"].startswith("burnbook.program.compiler."):
            found = COMPILED
        frame = frame.f_back
    what = (
        f"{found or 'Python'} asks for elements that depend on the inputs, "
        "and the program has others in each run"
    )
    cure = CURES.get(found or "", ELSEWHERE)
    return GraphError("capture", what, where_facts(), cure)
