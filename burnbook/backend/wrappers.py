"""Decorators of a backend: small, because `run` is one verb.

Each works below Autodiff, where gradients are ops like all others, and above it, where
it sees what the user calls, and gradients through `backward`.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any
from weakref import ref

import numpy as np

from burnbook.backend.base import (
    AnyOp,
    Attrs,
    Backend,
    Decorator,
    Value,
    Values,
    Watch,
)
from burnbook.core.arrays import Array, not_finite
from burnbook.core.error_context import running_modules
from burnbook.core.errors import NotFiniteError


class Counting(Decorator):
    """Count how often each op runs; `Autodiff(Counting(B))` counts gradients as well.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> Counting(Numpy()).counts
        Counter()
    """

    interned = False

    def __init__(self, inner: Backend):
        super().__init__(inner)
        self.counts: Counter[str] = Counter()

    def run(self, op: AnyOp, values: Values, attrs: Attrs) -> Value:
        self.counts[op.name] += 1
        return self.inner.run(op, values, attrs)


class Watching(Decorator):
    """A decorator that looks at every op after it has run: give it `look`.

    Why: above Autodiff the gradient ops do not come through `run`, so `backward` is
    asked to show them.
    """

    interned = False
    wants_places = True  # Autodiff above shall note which layer an op was called in

    def look(self, op: AnyOp, values: Values, attrs: Attrs, out: Value) -> None:
        """What to do with an op, its inputs, its attributes and its result."""
        raise TypeError(f"{type(self).__name__} must say what to look at")

    def run(self, op: AnyOp, values: Values, attrs: Attrs) -> Value:
        out = self.inner.run(op, values, attrs)
        self.look(op, values, attrs, out)
        return out

    def backward(
        self, root: Value, watch: Watch | None = None, keep_graph: bool = False
    ) -> Any:
        def look(op: AnyOp, values: Values, attrs: Attrs, out: Value) -> None:
            self.look(op, values, attrs, out)
            if watch is not None:
                watch(op, values, attrs, out)

        return self.inner.backward(root, look, keep_graph)


@dataclass(frozen=True)
class Step:
    """One op that ran: its name, shapes, attributes, and where its inputs came from.

    sources: for each input the number of the step that made it, or None.
    place: the layer it was called in, "Model.conv1".
    """

    number: int
    name: str
    inputs: tuple[tuple[str, tuple[int, ...] | None, str], ...]
    outputs: tuple[tuple[tuple[int, ...], str], ...]
    attrs: dict[str, Any]
    sources: tuple[int | None, ...]
    place: str

    @property
    def is_gradient(self) -> bool:
        """Whether this is the gradient of an op."""
        return self.name.endswith(".backward")

    def __str__(self) -> str:
        given = [
            f"{name} {list(shape)}" + (f" ← {source}" if source is not None else "")
            for (name, shape, _), source in zip(self.inputs, self.sources, strict=True)
            if shape is not None
        ]
        made = ", ".join(str(list(shape)) for shape, _ in self.outputs)
        place = f"  in {self.place}" if self.place else ""
        return f"{self.number:>3}  {self.name}({', '.join(given)}) → {made}{place}"


class Tracing(Watching):
    """Write down the ops that run, with their shapes, for a picture of the graph.

    limit: how many steps are written down; later ones are only counted (`dropped`).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> from burnbook.ops import add
        >>> traced = Tracing(Numpy())
        >>> _ = traced.run(add, (np.ones((2, 3)), np.ones((1, 3))), {})
        >>> print(traced.steps[0])
          0  add(x [2, 3], y [1, 3]) → [2, 3]
    """

    def __init__(self, inner: Backend, limit: int = 10_000):
        super().__init__(inner)
        self.limit = limit
        self.arguments = (inner, limit)
        self.steps: list[Step] = []
        self.dropped = 0
        self._makers: dict[int, tuple[Any, int]] = {}

    def look(self, op: AnyOp, values: Values, attrs: Attrs, out: Value) -> None:
        if len(self.steps) >= self.limit:
            self.dropped += 1
            return
        number = len(self.steps)
        outs = [v for v in (out if type(out) is tuple else (out,)) if _is_array(v)]
        step = Step(
            number,
            op.name,
            tuple(
                (name, tuple(v.shape) if _is_array(v) else None, _dtype(v))
                for name, v in zip(_names(op, values), values, strict=True)
            ),
            tuple((tuple(v.shape), _dtype(v)) for v in outs),
            {k: v for k, v in attrs.items() if k != "needs"},
            tuple(self._maker(v) for v in values),
            "" if hasattr(op, "source") else running_modules(),
        )
        self.steps.append(step)
        for value in outs:
            self._remember(value, number)

    def clear(self) -> None:
        """Forget the steps, to trace something else."""
        self.steps, self.dropped = [], 0
        self._makers.clear()

    def text(self) -> str:
        """One line per step: number, op, inputs and the steps they came from."""
        lines = [str(step) for step in self.steps]
        return "\n".join([*lines, f"… {self.dropped} more"] if self.dropped else lines)

    def _remember(self, value: Value, number: int) -> None:
        """Know a value again, for as long as it lives."""
        held = getattr(value, "node", value)
        try:
            self._makers[id(held)] = (ref(held), number)
        except TypeError:  # a value that cannot be known again has no source
            return

    def _maker(self, value: Value) -> int | None:
        held = getattr(value, "node", value)
        known, number = self._makers.get(id(held), (None, None))
        return number if known is not None and known() is held else None


class Checked(Watching):
    """Stop at the first NaN, and at the first infinity that nobody asked for.

    The error names the op, its inputs, and the layer. An op may return infinity only
    where one of its inputs or attributes is infinite already, as a mask of −inf is.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> from burnbook.ops import log
        >>> Checked(Numpy()).run(log, (np.array([0.0, 1.0]),), {})
        Traceback (most recent call last):
        burnbook.core.errors.NotFiniteError: log: the result holds 1 infinity of 2
        elements
          x  f64 [2], finite, from 0 to 1
          try: a clamp or an epsilon before log
    """

    def run(self, op: AnyOp, values: Values, attrs: Attrs) -> Value:
        with np.errstate(all="ignore"):  # our error says more than NumPy's warning
            return super().run(op, values, attrs)

    def look(self, op: AnyOp, values: Values, attrs: Attrs, out: Value) -> None:
        outs = out if type(out) is tuple else (out,)
        for position, made in enumerate(outs):
            if not _is_float(made):
                continue
            array = _bare(made)
            if self.xp.isfinite(array).all():
                continue
            broken = not_finite(self._plain(array))
            endless = [a for a in attrs.values() if _is_endless(a)]
            if "NaN" not in broken and (endless or any(map(self._endless, values))):
                continue
            raise self._stop(op, values, position, broken)

    def _stop(
        self, op: AnyOp, values: Values, position: int, broken: str
    ) -> NotFiniteError:
        facts: list[tuple[str, str]] = []
        sick = ""
        for name, value in zip(_names(op, values), values, strict=True):
            if _is_float(value):
                array = self._plain(_bare(value))
                found = not_finite(array)
                sick = sick or (name if found else "")
                state = f"{found} elements" if found else _range(array)
                facts.append((name, f"{_dtype(value)} {list(array.shape)}, {state}"))
            elif _is_array(value):
                facts.append((name, f"{_dtype(value)} {list(value.shape)}"))
        source = getattr(op, "source", None)
        what = "the result"
        if source is not None:
            names = source.inputs * len(values) if source.many else source.inputs
            what = f"the gradient of {names[position]}"
        cure = f"a clamp or an epsilon before {source.name if source else op.name}"
        if sick:
            cure = f"a look at where {sick} comes from; it came in like this"
        return NotFiniteError(op.name, f"{what} holds {broken} elements", facts, cure)

    def _plain(self, array: Array) -> np.ndarray:
        return self.to_numpy(array)

    def _endless(self, value: Value) -> bool:
        """Whether an input is infinite already."""
        if isinstance(value, float):
            return _is_endless(value)
        return _is_float(value) and bool(self.xp.isinf(_bare(value)).any())


def _names(op: AnyOp, values: Values) -> list[str]:
    """A name for each value: the op's inputs, or `xs[0]`, `xs[1]` …"""
    names = list(op.inputs)
    if len(names) == len(values) and not getattr(op, "many", False):
        return names
    return [f"{names[0]}[{i}]" for i in range(len(values))]


def _is_array(value: Value) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _is_float(value: Value) -> bool:
    return _is_array(value) and value.dtype.kind == "f"


def _is_endless(value: Value) -> bool:
    return isinstance(value, float) and value in (float("inf"), float("-inf"))


def _bare(value: Value) -> Any:
    """The array below every level of tracking."""
    while hasattr(value, "node"):
        value = value.value
    return value


def _dtype(value: Value) -> str:
    if not _is_array(value):
        return type(value).__name__
    kind, size = value.dtype.kind, value.dtype.itemsize * 8
    return "bool" if kind == "b" else f"{kind}{size}"


def _range(array: np.ndarray) -> str:
    if not array.size:
        return "no elements"
    return f"finite, from {array.min():.4g} to {array.max():.4g}"
