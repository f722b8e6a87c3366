"""The protocol of a backend: one verb, `run`.

A backend is what the book calls a backend and a device: it owns an array module, the
element types of Float and Int, a stream of random numbers, and a short dict of kernels
that run instead of an op's plain code where a measured kernel wins. A decorator is a
backend that holds another one and forwards `run`; decorators stack.
"""

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from burnbook.core.arguments import misfit, refusal
from burnbook.core.cut_source import cut_behind
from burnbook.core.dtypes import Bool, Float, KindType, numpy_dtype
from burnbook.core.errors import ArgumentError, BackendError, KindError
from burnbook.core.op import BackwardOp, Op
from burnbook.core.other_names import answers
from burnbook.core.rng import Stream, current_stream

AnyOp = Op | BackwardOp
Value = Any
Values = tuple[Value, ...]
Attrs = dict[str, Any]
Kernel = Callable[..., Any]
Watch = Callable[[AnyOp, Values, Attrs, Value], None]


class Interned(type):
    """Equal arguments give the same backend: `Numpy() is Numpy()`."""

    interned: bool
    _made: ClassVar[dict[tuple[Any, ...], Any]] = {}

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not cls.interned:
            return super().__call__(*args, **kwargs)
        if not (args or kwargs):  # the most frequent call, and quick
            made = Interned._made.get((cls,))
            if made is not None:
                return made
        known = _signature(cls)
        try:
            bound = known.bind(None, *args, **kwargs)
        except TypeError as error:
            names = list(known.parameters)[1:]
            what = f"{error}; it takes {', '.join(names) or 'nothing'}"
            ways = {"dtype": "float", "precision": "float"}
            near = [ways[name] for name in kwargs if ways.get(name) in names]
            cure = f'{cls.__name__}({near[0]}="f64")' if near else None
            raise ArgumentError(cls.__name__, what, cure=cure) from None
        wrong = misfit(cls.__init__, (None, *args), kwargs)
        if wrong is not None:
            super().__call__(*args, **kwargs)  # it may say more
            raise refusal(cls.__name__, wrong)
        bound.apply_defaults()
        key = (cls, *list(bound.arguments.values())[1:])
        made = Interned._made.get(key)
        if made is None:
            made = Interned._made.setdefault(key, super().__call__(*args, **kwargs))
            made.arguments = key[1:]
        if not (args or kwargs):
            Interned._made[cls,] = made
        return made


@cache
def _signature(cls: type) -> inspect.Signature:
    """What a class of backends takes; reading it is slow."""
    return inspect.signature(cls.__init__)


@answers("Backend")
class Backend(metaclass=Interned):
    """Where tensors live and how operations run; also what the book calls a device.

    xp: the array module, as ops see it. float, int: names of the element types.
    """

    interned = True
    name = "backend"
    device_name = "Cpu"
    ad_enabled = False
    has_graphs = False  # whether it has a `recorder`, which records ops as a graph
    arguments: tuple[Any, ...] = ()
    autodiff_class: ClassVar[type["BackendWrapper"]]  # set where Autodiff is exported

    def __init__(self, xp: Any, float: str = "f32", int: str = "i64"):  # noqa: A002 - public names
        self.xp = ArraySpace(xp, self)
        self.float = float
        self.int = int
        where = type(self).__name__
        self.float_dtype = _element(where, "float", float, "f")
        self.int_dtype = _element(where, "int", int, "iu")
        self.kernels: dict[AnyOp, Kernel] = {}
        self.stream = Stream(None)

    @property
    def inner(self) -> "Backend":
        """The backend below a decorator; a plain backend is its own."""
        return self

    def run(self, op: AnyOp, values: Values, attrs: Attrs) -> Value:
        """Run one op on raw values: its kernel where one fits, its plain code else."""
        kernel = self.kernels.get(op)
        if kernel is not None:
            out = kernel(*values, **attrs)
            if out is not None:
                return out
        if not attrs:  # plain calls are quicker than starred ones
            if len(values) == 2:
                return op.forward(self.xp, values[0], values[1])
            if len(values) == 1:
                return op.forward(self.xp, values[0])
        elif len(attrs) == 1 and len(values) == 3 and "needs" in attrs:
            g, x, y = values
            return op.forward(self.xp, g, x, y, needs=attrs["needs"])
        return op.forward(self.xp, *values, **attrs)

    def autodiff(self) -> "Backend":
        """This backend, decorated so that it remembers how to differentiate."""
        return self.autodiff_class(self)

    def dtype(self, kind: KindType) -> np.dtype:
        """The element type that tensors of a kind have here."""
        if kind is Float:
            return self.float_dtype
        return np.dtype(bool) if kind is Bool else self.int_dtype

    def seed(self, seed: int) -> None:
        """Start this backend's stream of random numbers again, from a seed."""
        self.stream = Stream(seed)

    def next_key(self) -> tuple[int, int]:
        """Reserve the next random numbers: a key that a random op draws from."""
        return (current_stream() or self.stream).key()

    def aside(self) -> AbstractContextManager[None]:
        """For what lasts, as a parameter that is drawn late: no capture sees it."""
        return nullcontext()

    def leaf(self, value: Value) -> Value:
        """A value that gradients are collected for; without autodiff, the value."""
        return value

    def backward(
        self, root: Value, watch: Watch | None = None, keep_graph: bool = False
    ) -> Any:
        """Gradients for every leaf behind a value; only `Autodiff` has them.

        watch: sees every gradient op that runs: (op, values, attrs, result).
        keep_graph: leave the graph as it is, for another backward.
        """
        found = cut_behind()
        cure = found and found.cure()
        raise BackendError(
            "backward",
            f"{self!r} does not remember its operations",
            [found.fact()] if found else [],
            cure
            or f"Autodiff({self!r}) as the device, or the model before valid(); "
            f"for the derivative of a gradient Autodiff(Autodiff({self!r}))",
        )

    def sync(self) -> None:
        """Wait until all that was asked for is done; here nothing waits."""

    def from_numpy(self, array: np.ndarray) -> Value:
        """Copy a NumPy array to this backend, as it is."""
        raise TypeError(f"{type(self).__name__} must say how arrays come in")

    def to_numpy(self, value: Value) -> np.ndarray:
        """Copy a raw value to a NumPy array (or view it, where it already is one)."""
        raise TypeError(f"{type(self).__name__} must say how arrays go out")

    def read(self, values: Values) -> list[np.ndarray]:
        """Copy several values to NumPy arrays, and wait for the device only once."""
        return [self.to_numpy(value) for value in values]

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __reduce__(self) -> Any:
        return type(self), self.arguments


def _element(where: str, option: str, name: str, kinds: str) -> np.dtype:
    """The element type that a backend was asked for, if it is of that kind."""
    dtype = numpy_dtype(name)
    if dtype.kind not in kinds:
        known = "f32, f64 or f16" if kinds == "f" else "i64, i32, i16, i8, u8 …"
        raise KindError(where, f"{option}={name!r} is of another kind", cure=known)
    return dtype


class BackendWrapper(Backend):
    """A backend that holds another one and forwards the protocol to it."""

    def __init__(self, inner: Backend):
        if not isinstance(inner, Backend):
            name = type(self).__name__
            shown = inner.__name__ if isinstance(inner, type) else repr(inner)
            what, cure = f"{shown} is not a backend", f"{name}(Numpy())"
            raise BackendError(name, what, cure=cure)
        self._inner = inner
        self.name = f"{type(self).__name__.lower()}<{inner.name}>"
        self.device_name = inner.device_name
        self.float, self.int = inner.float, inner.int
        self.float_dtype, self.int_dtype = inner.float_dtype, inner.int_dtype
        self.ad_enabled = inner.ad_enabled
        self.arguments = (inner,)
        self.kernels = {}

    @property
    def inner(self) -> Backend:
        return self._inner

    @property
    def xp(self) -> Any:
        return self._inner.xp

    def run(self, op: AnyOp, values: Values, attrs: Attrs) -> Value:
        return self._inner.run(op, values, attrs)

    def seed(self, seed: int) -> None:
        self._inner.seed(seed)

    @property
    def stream(self) -> Stream:
        return self._inner.stream

    def next_key(self) -> tuple[int, int]:
        return self._inner.next_key()

    def leaf(self, value: Value) -> Value:
        return self._inner.leaf(value)

    def backward(
        self, root: Value, watch: Watch | None = None, keep_graph: bool = False
    ) -> Any:
        return self._inner.backward(root, watch, keep_graph)

    def sync(self) -> None:
        self._inner.sync()

    def from_numpy(self, array: np.ndarray) -> Value:
        return self._inner.from_numpy(array)

    def to_numpy(self, value: Value) -> np.ndarray:
        return self._inner.to_numpy(value)

    def read(self, values: Values) -> list[np.ndarray]:
        return self._inner.read(values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inner!r})"


class Decorator(BackendWrapper):
    """A layer that forwards everything else as well: what to subclass.

    Why: looking up any attribute is slower in a class that answers for missing ones.
    Autodiff, which every op of a training step goes through, is a bare BackendWrapper.
    """

    def __getattr__(self, name: str) -> Any:
        if name == "_inner":
            raise AttributeError(name)
        return getattr(self._inner, name)


class ArraySpace:
    """The `xp` of a backend: its array module, plus `run_op` for ops inside ops.

    Why: Python finds a name in an object's own dict at once, and far more slowly where
    a class answers for names that are missing; so names are copied when they can be.
    """

    def __new__(cls, module: Any, backend: Backend) -> Any:
        if cls is not ArraySpace or type(module) is not ModuleType:
            return super().__new__(cls)
        space: Any = ModuleType(module.__name__)
        space.__dict__.update(vars(module), module=module)
        space.run_op = backend.run
        return space

    def __init__(self, module: Any, backend: Backend):
        self.module = module
        self.__name__ = module.__name__
        self._backend = backend

    def run_op(self, op: Op, values: Values, attrs: Attrs) -> Value:
        return self._backend.run(op, values, attrs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "module":
            raise AttributeError(name)
        found = getattr(self.module, name)
        setattr(self, name, found)
        return found


def plain_backend(device: Backend) -> Backend:
    """The backend below all decorators."""
    while device.inner is not device:
        device = device.inner
    return device
