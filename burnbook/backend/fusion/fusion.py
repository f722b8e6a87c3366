"""The decorator `Fusion`: a backend whose operations wait until somebody reads."""

import threading
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, ClassVar
from weakref import ref

import numpy as np

from burnbook.backend.base import (
    AnyOp,
    Attrs,
    Backend,
    BackendWrapper,
    Value,
    Values,
    plain_backend,
)
from burnbook.backend.fusion.deferred import (
    Deferred,
    Spec,
    plain,
    plain_tree,
    spec_of,
)
from burnbook.backend.fusion.signature import (
    FALSE,
    FLOAT,
    INT,
    KEY,
    MOST,
    TRUE,
    Key,
    Signature,
    elementwise,
    frozen,
    is_known,
    numbers_alone,
    probed,
    runs_at_once,
)
from burnbook.backend.fusion.stream import (
    HAS_GIL,
    MANY,
    NUMBER,
    MakePlan,
    Nest,
    Plans,
    Segment,
    Stream,
    new,
    place,
)
from burnbook.core.errors import BackendError

SMALL = 128  # whole numbers up to here fit every element type


class Fusion(BackendWrapper):
    """Decorate a backend so that operations are fused: `Fusion(Numpy())`.

    Operations are written down and run together when a value is read: by `into_data`,
    `into_scalar`, a display, NumPy, an operation that looks at elements (`select`, a
    loss with class numbers, `inverse` …), or `sync`. What no tensor holds by then is
    never stored, so keep tensors short-lived. A stream of operations that comes again,
    as in a training loop, has a plan by then.

    Shapes are checked at the call, and an operation that can fail for its elements runs
    at once, so errors come where they are made. Below `Autodiff` also the gradients and
    the optimizer's steps are fused: `Autodiff(Fusion(Numpy()))`.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> from burnbook.tensor import Tensor
        >>> x = Tensor.ones([2, 3], Fusion(Numpy()))
        >>> y = (x * 2.0 + 1.0).exp().log()
        >>> y.device().waiting
        4
        >>> y.sum().into_scalar()
        18.0
        >>> y.device().waiting
        0

    Why: a chain of operations over large arrays goes through memory once, not once for
    each of them. Over small arrays writing down costs more than it saves.
    """

    planner: ClassVar[str] = "burnbook.program.compiler.streams"  # found when needed

    def __init__(self, inner: Backend):
        super().__init__(inner)
        if inner.ad_enabled:
            what = f"{inner!r} keeps what ran, and nothing has run yet"
            cure = f"Autodiff(Fusion({_below_autodiff(inner)!r}))"
            raise BackendError("Fusion", what, cure=cure)
        if _is_fused(inner):
            what = f"{inner!r} fuses already"
            raise BackendError("Fusion", what, cure=repr(inner))
        self._plain = plain_backend(inner)  # no decorator sees what is tried out
        self.space = FusedSpace(self)
        self.plans = Plans(inner, self._planner)
        self.signatures: dict[Any, Signature] = {}
        self.quick: dict[Any, Signature] = {}  # those of `run` itself: one result
        self._here = _Here(self.plans)

    @property
    def xp(self) -> Any:
        return self.space

    @property
    def waiting(self) -> int:
        """How many operations of this thread wait."""
        return len(self._here.stream.segment.steps)

    def sync(self) -> None:
        """Run all that waits in this thread."""
        self._here.stream.segment.flush()
        self._inner.sync()

    def run(self, op: AnyOp, values: Values, attrs: Attrs) -> Value:  # noqa: C901, PLR0915 - hot
        """Write an operation down; run it at once where that is needed."""
        if attrs:
            return self._run_any(op, values, attrs)
        # what _run_any does, without its loops, for one input and for two
        stream = self._here.stream
        segment = stream.segment
        count = len(values)
        y: Any = None
        if count == 2:
            x, y = values
            if type(x) is not Deferred:
                return self._run_any(op, values, attrs)
            if type(y) is Deferred:
                signature = self.quick.get((op, x.spec, y.spec))
                if y.stream is not segment and y.stream is not None:
                    return self._run_any(op, values, attrs)
            elif type(y) is float:
                signature = self.quick.get((op, x.spec, FLOAT))
            else:
                return self._run_any(op, values, attrs)
        elif count == 1:
            x = values[0]
            if type(x) is not Deferred:
                return self._run_any(op, values, attrs)
            signature = self.quick.get((op, x.spec))
        else:
            return self._run_any(op, values, attrs)
        if signature is None or (x.stream is not segment and x.stream is not None):
            return self._run_any(op, values, attrs)
        stream.busy = True
        try:
            if stream.segment is not segment:  # another thread has just closed it
                made = None
            else:
                one = x.number if x.stream is segment else segment.input(x)
                if count == 1:
                    step: Any = (signature, (one,))
                elif type(y) is Deferred:
                    two = y.number if y.stream is segment else segment.input(y)
                    step = (signature, (one, two))
                else:
                    step = (signature, (one, NUMBER))
                    segment.numbers.append(y)
                outs = segment.outs
                made = new(Deferred)  # what Segment.record does, without the call
                made.spec = spec = signature.outs[0]
                made.shape = spec.shape
                made.stream, made.number = segment, len(outs)
                if not signature.elementwise:
                    segment.places[len(segment.steps)] = place()
                segment.steps.append(step)
                outs.append(ref(made))
        finally:
            stream.busy = False
        if made is None:
            return self._run_any(op, values, attrs)
        if not made.number & 15:
            segment.look_at_size()
        return made

    def _run_any(self, op: AnyOp, values: Values, attrs: Attrs) -> Value:
        """The same for any values and attributes."""
        known: list[Any] = [op]
        for value in values:
            kind = type(value)
            if kind is Deferred:
                known.append(value.spec)
            elif kind is float:
                known.append(FLOAT)
            elif value is None:
                known.append(None)
            else:
                return self._run_other(op, values, attrs)
        if attrs:
            try:
                known.append(_key_of(op, attrs))
            except TypeError:
                return self.run_now(op, values, attrs)
        signature = self.signatures.get(tuple(known))
        if signature is None:
            call = (op, values, attrs)
            return self._first(tuple(known), known[1 : len(values) + 1], call)
        return self._written(signature, values, attrs)

    def _written(self, signature: Signature, values: Values, attrs: Attrs) -> Any:
        """Write down an operation whose signature is known."""
        stream = self._here.stream
        while True:
            segment = stream.segment
            _settle(values, segment)
            if HAS_GIL:
                stream.busy = True
                try:
                    out = _recorded(stream, segment, signature, values, attrs)
                finally:
                    stream.busy = False
            else:
                with stream.lock:
                    out = _recorded(stream, segment, signature, values, attrs)
            if out is not None:
                break
        if not len(segment.steps) & 15:
            segment.look_at_size()
        return out

    def _run_other(self, op: AnyOp, values: Values, attrs: Attrs) -> Value:
        """The same for values that are no arrays or fractions: sizes, whole numbers."""
        if not is_known(op):  # a step that a graph made for itself, in terms of values
            return op.forward(self.space, *values, **attrs)
        try:
            values = tuple([self._taken(value) for value in values])
        except TypeError:  # a capture is running, or what is no value at all
            return self._inner.run(op, plain_tree(values), plain_tree(attrs))
        try:
            known = [_known(value) for value in values]
            key = (op, *known, _key_of(op, attrs)) if attrs else (op, *known)
            signature = self.signatures.get(key)
        except TypeError:
            return self.run_now(op, values, attrs)
        if signature is None:
            return self._first(key, known, (op, values, attrs))
        return self._written(signature, values, attrs)

    def _taken(self, value: Value) -> Value:
        """A value of the backend below as one of ours."""
        if type(value) is Deferred or value is None or type(value) in _NUMBERS:
            return value
        if type(value) in (tuple, list):
            return tuple([self._taken(part) for part in value])
        if hasattr(value, "from_input") or not hasattr(value, "dtype"):
            raise TypeError(type(value).__name__)
        if isinstance(value, np.generic):
            return value
        return Deferred(value)

    def _first(
        self, key: Any, known: list[Any], call: tuple[AnyOp, Values, Attrs]
    ) -> Any:
        """An op with inputs of these shapes for the first time."""
        op, values, attrs = call
        if not is_known(op):
            return op.forward(self.space, *values, **attrs)
        if runs_at_once(op, tuple(known)):
            return self.run_now(op, values, attrs)
        if len(self.signatures) > MOST:
            self.forget()
        if op in elementwise():
            given = [v.spec if type(v) is Deferred else v for v in values]
            made = probed(self._plain, op, tuple(given), attrs)
            if made is not None:
                found = Signature(op, _specs(known, values), attrs, (made,), False)
                self._note(key, found)
                return self.run(op, values, attrs)
        out = self.run_now(op, values, attrs)
        outs = out if type(out) is tuple else (out,)
        if all(one is None or type(one) is Deferred for one in outs):
            extras = len(outs) - len(op.extras)
            specs = tuple(
                [
                    spec_of(one) if i >= extras or one is not None else None
                    for i, one in enumerate(outs)
                ]
            )
            is_tuple = type(out) is tuple
            found = Signature(op, _specs(known, values), attrs, specs, is_tuple)
            self._note(key, found)
        return out

    def _note(self, key: Any, signature: Signature) -> None:
        self.signatures[key] = signature
        is_short = (
            HAS_GIL and len(key) - 1 <= 2 and len(signature.specs) == len(key) - 1
        )
        if is_short and not signature.is_tuple:
            self.quick[key] = signature

    def forget(self) -> None:
        """Forget what is known of operations and streams; what waits is not lost."""
        self.signatures.clear()
        self.quick.clear()
        self.plans.clear()

    def run_now(self, op: AnyOp, values: Values, attrs: Attrs) -> Value:
        """Run an operation at once, and what it needs before it."""
        out = self._inner.run(op, plain_tree(values), plain_tree(attrs))
        if type(out) is tuple:
            extras = len(out) - len(op.extras)
            return tuple(
                [
                    Deferred(one) if i >= extras and one is None else _wrapped(one)
                    for i, one in enumerate(out)
                ]
            )
        return _wrapped(out)

    def _planner(self) -> MakePlan:
        """What makes plans of streams: the compiler of programs, loaded by now.

        Why by name: it stands on a higher floor, and nothing is planned before all
        floors are there.
        """
        return import_module(self.planner).plan_of

    def may_cut(self) -> None:
        """Run what waits if there is much of it: here is a good place to cut.

        Why: streams that are cut at the same places in each step are equal.
        """
        segment = self._here.stream.segment
        if len(segment.steps) > MANY:
            segment.flush()

    def next_key(self) -> tuple[int, int]:
        key = self._inner.next_key()
        return Key(key) if type(key) is tuple else key

    def from_numpy(self, array: np.ndarray) -> Value:
        return _wrapped(self._inner.from_numpy(array))

    def to_numpy(self, value: Value) -> np.ndarray:
        return self._inner.to_numpy(plain(value))

    def read(self, values: Values) -> list[np.ndarray]:
        return self._inner.read(tuple([plain(value) for value in values]))


def _recorded(
    stream: Stream, segment: Segment, signature: Signature, values: Values, attrs: Attrs
) -> Any:
    """An operation as the next step; None where the segment has just been closed."""
    if stream.segment is not segment:
        return None
    refs = tuple([_ref(value, segment) for value in values])
    for name in signature.holes:
        segment.numbers.append(attrs[name])
    return segment.record(signature, refs)


class _Here(threading.local):
    """The stream of this thread."""

    def __init__(self, plans: Plans):
        self.stream = Stream(plans)


class FusedSpace:
    """The `xp` of `Fusion`: functions of arrays; those that wait are computed first."""

    def __init__(self, backend: Fusion):
        self.backend = backend
        self.below = backend.inner.xp
        self.__name__ = self.below.__name__
        self.module = getattr(self.below, "module", self.below)

    def run_op(self, op: AnyOp, values: Values, attrs: Attrs) -> Value:
        """An op that is called by name inside another one."""
        return self.backend.run(op, values, attrs)

    def ones(self, shape: Any, dtype: Any = None) -> Any:
        """Ones, as a value that is there: how a backward begins."""
        self.backend.may_cut()
        return _wrapped(self.below.ones(shape, dtype=dtype))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("backend", "below"):
            raise AttributeError(name)
        found = getattr(self.below, name)
        if isinstance(found, type) or not callable(found):
            return found
        made = partial(_with_arrays, found)
        setattr(self, name, made)
        return made


def _with_arrays(function: Callable[..., Any], *given: Any, **named: Any) -> Any:
    return function(*plain_tree(given), **plain_tree(named))


_NUMBERS = (float, int, bool)


def _key_of(op: AnyOp, attrs: Attrs) -> Any:
    """The attributes as a part of a key. Raises: TypeError where that cannot be."""
    parts: list[Any] = []
    for name, value in attrs.items():
        kind = type(value)
        if kind is float:
            value = FLOAT
        elif kind is Key:
            value = KEY
        elif kind is int and numbers_alone(op):
            value = INT
        elif kind is not int:
            value = frozen(value)
        parts.append((name, value))
    return tuple(parts)


def _known(value: Value) -> Any:
    """What a signature says of a value."""
    kind = type(value)
    if kind is Deferred:
        return value.spec
    if kind is float:
        return FLOAT
    if kind is int:
        # zero may not divide, and a large number may not fit
        return INT if 0 < abs(value) < SMALL else (INT, value)
    if kind is bool:
        return TRUE if value else FALSE
    if kind is tuple:
        if _holds_arrays(value):
            return tuple([_known(part) for part in value])
        return (FALSE, frozen(value))
    if value is None:
        return None
    return (kind, value.dtype, repr(value.item()))  # −0.0 is not 0.0


def _holds_arrays(value: tuple[Any, ...]) -> bool:
    return any(
        type(part) is Deferred or (type(part) is tuple and _holds_arrays(part))
        for part in value
    )


def _specs(known: Any, values: Values) -> tuple[Any, ...]:
    """What stands for each input: a spec, a mark, or, where it is fixed, itself."""
    found: list[Any] = []
    for part, value in zip(known, values, strict=True):
        if type(value) is tuple:
            arrays = _holds_arrays(value)
            found.append(_specs(part, value) if arrays else value)
        elif type(part) is Spec or part is FLOAT or part is INT:
            found.append(part)
        else:
            found.append(value)
    return tuple(found)


def _ref(value: Value, segment: Segment) -> Any:
    kind = type(value)
    if kind is Deferred:
        return value.number if value.stream is segment else segment.input(value)
    if kind is float or (kind is int and 0 < abs(value) < SMALL):
        segment.numbers.append(value)
        return NUMBER
    if kind is tuple and _holds_arrays(value):
        return Nest([_ref(part, segment) for part in value])
    return None


def _settle(values: Values, segment: Segment) -> None:
    """Let what waits in another thread run, and raise what is known to have failed."""
    for value in values:
        if type(value) is tuple:
            _settle(value, segment)
        elif type(value) is Deferred and value.stream is not segment:
            value.computed()


def _wrapped(value: Any) -> Any:
    """An array of the backend below as a value that is there."""
    if value is None or hasattr(value, "from_input") or not hasattr(value, "dtype"):
        return value
    return value if type(value) is Deferred else Deferred(value)


def _below_autodiff(backend: Backend) -> Backend:
    while backend.ad_enabled and backend.inner is not backend:
        backend = backend.inner
    return backend


def _is_fused(backend: Backend) -> bool:
    while backend.inner is not backend:
        if isinstance(backend, Fusion):
            return True
        backend = backend.inner
    return False
