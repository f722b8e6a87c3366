"""Steps bound to arrays: what was decided once is not asked again.

A binder looks at a step with the arrays that it will always work on (their place in
memory is planned) and gives a `Bound`: a function without arguments. Where every array
falls into equal stretches that do not need each other (the images of a batch, the rows
of a table, the elements of a sum), it also gives a function for some of them, so that
several steps can go over a batch together, stretch by stretch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook import ops
from burnbook.backend.base import Backend
from burnbook.backend.compiled.runtime.buffers import buffers
from burnbook.backend.numpy import RUN, many_times
from burnbook.backend.products import dot
from burnbook.core.formulas import Formula
from burnbook.core.op import OPS
from burnbook.ops.reduce import MANY
from burnbook.program.compiler.fusion import FusedOp
from burnbook.program.sizes import mapped
from burnbook.program.values import Step, Value

BYTES = 60.0  # bytes of memory that a pass goes over in a nanosecond
QUICK = 15_000  # nanoseconds; threads whose calls are shorter wait for Python's lock
SLOW = 20.0  # the same for functions such as exp, in operations of an element


@dataclass
class Given:
    """What each run brings along: keys of random numbers, and numbers by name."""

    keys: dict[Value, Any] = field(default_factory=dict[Value, Any])
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])
    #: Masks that were drawn, by key, size and threshold, for the gradient of dropout.
    masks: dict[tuple[Value, int, int], Any] = field(
        default_factory=dict[tuple[Value, int, int], Any]
    )
    #: Weights laid out for kernels, by where they stand: steps that share one share it.
    laid: dict[Any, Any] = field(default_factory=dict[Any, Any])
    #: What is known to be relu of dropout: the result, and the key.
    rectified: set[tuple[Value, Value]] = field(
        default_factory=set[tuple[Value, Value]]
    )


@dataclass(frozen=True)
class Call:
    """A step and the arrays it works on.

    values: its inputs; attrs: with all sizes as numbers. outs: where results belong,
    None for those that nobody wants. fixed: which inputs never change. is_compiled:
    whether compiled kernels may be used. given: what each run brings along, for which
    values and formulas stand in attrs.
    """

    step: Step
    values: tuple[Any, ...]
    attrs: dict[str, Any]
    outs: tuple[Any, ...]
    fixed: tuple[bool, ...]
    backend: Backend
    is_compiled: bool
    given: Given

    @property
    def out(self) -> Any:
        """The first result."""
        return next(array for array in self.outs if array is not None)


@dataclass(frozen=True)
class Bound:
    """A step that is ready to run.

    run: all of it. units: into how many equal stretches the result falls, and the
    inputs at the places `stretched`; part: some of them. cost: nanoseconds that all of
    it takes, roughly. before, after: what `run` does around all of its parts.

    together: makes one function of several such steps in a row, each of which says in
    `about` what it is about.
    """

    run: Callable[[], Any]
    units: int = 0
    part: Callable[[int, int], Any] | None = None
    cost: float = 0.0
    how: str = "op"
    stretched: tuple[int, ...] = ()
    before: Callable[[], Any] | None = None
    after: Callable[[], Any] | None = None
    together: "Callable[[Sequence[Bound]], Callable[[], Any]] | None" = None
    about: Any = None


# Whose binders know of numbers and keys that each run brings.
WITH_FORMULAS = {
    *("adam_step", "sgd_step", "dropout", "dropout.backward"),
    *("dropped_block", "dropped_slopes", "pooled_slopes"),
}
Binder = Callable[[Call], Bound | None]
BINDERS: dict[str, list[Binder]] = {}


def binder(*names: str) -> Callable[[Binder], Binder]:
    """Register a function as one that binds steps of these names; the newest is asked
    first, and may give None."""

    def register(function: Binder) -> Binder:
        for name in names:
            BINDERS.setdefault(name, []).insert(0, function)
        return function

    return register


def bind(call: Call) -> Bound:
    """A step, bound by whoever can, else as a call of its op."""
    leaves = leaves_of((call.attrs, call.values))
    changes = any(type(leaf) in (Value, Formula) for leaf in leaves)
    if changes and call.step.op.name not in WITH_FORMULAS:
        return called(call)
    for function in BINDERS.get(call.step.op.name, ()):
        found = function(call)
        if found is not None:
            return found
    return called(call)


def leaves_of(tree: Any) -> list[Any]:
    """What a tree of tuples, lists and dicts holds."""
    found: list[Any] = []
    mapped(tree, found.append)
    return found


def called(call: Call) -> Bound:
    """Any step: its op is run as always, and makes its results in their places.

    A result that came to lie elsewhere is copied there.
    """
    step, backend, outs = call.step, call.backend, call.outs
    values, attrs = call.values, call.attrs
    several, given = step.is_tuple, call.given
    changes = any(type(leaf) in (Value, Formula) for leaf in leaves_of((attrs, values)))

    def put(leaf: Any) -> Any:
        if type(leaf) is Value:
            return given.keys[leaf]
        return leaf(given.numbers) if type(leaf) is Formula else leaf

    places = [out for out in outs if out is not None and _is_free(out, values)]
    unseen = [step.op] if isinstance(step.op, FusedOp) else []  # until the first run

    def run() -> None:
        named = mapped(attrs, put) if changes else attrs
        inputs = mapped(values, put) if changes else values
        made = partial(backend.run, step.op, inputs, named)
        if unseen:
            found = unseen[0].first(partial(buffers.offering, places, made), call.out)
            unseen.clear()
        else:
            found = buffers.offering(places, made)
        put_in_place(outs, found if several else (found,))

    size = sum(a.nbytes for a in (*outs, *values) if isinstance(a, np.ndarray))
    return Bound(run, cost=2000 + size / BYTES)


def _is_free(out: Any, values: Sequence[Any]) -> bool:
    """Whether a place can be written to while all inputs are still read."""
    found = leaves_of(values)
    arrays = [leaf for leaf in found if isinstance(leaf, np.ndarray)]
    return bool(out.flags.c_contiguous) and not any(
        np.may_share_memory(out, array) for array in arrays
    )


def put_in_place(places: Sequence[Any], found: Sequence[Any]) -> None:
    """Copy results to their places, but for those that are there already."""
    pairs = zip(places, found, strict=True)
    late = [pair for pair in pairs if pair[0] is not None and not _same(*pair)]
    if len(late) > 1:  # one may lie in the place of another
        late = [
            (place, array.copy() if _lies_in(array, places) else array)
            for place, array in late
        ]
    for place, array in late:
        np.copyto(place, array, casting="unsafe")


def _same(place: np.ndarray, array: np.ndarray) -> bool:
    """Whether an array is what stands in a place."""
    if place is array:
        return True
    if place.size < 256 or type(array) is not np.ndarray or place.dtype != array.dtype:
        return False  # a copy is as quick as a look
    return (
        place.shape == array.shape
        and place.strides == array.strides
        and place.__array_interface__["data"] == array.__array_interface__["data"]
    )


def _lies_in(array: NDArray[Any], places: Sequence[Any]) -> bool:
    return isinstance(array, np.ndarray) and any(
        place is not None and np.may_share_memory(array, place) for place in places
    )


def by_sample(call: Call, cost: float) -> Bound | None:
    """An op that works on each element of the first dim by itself, some at a time."""
    step, backend, out = call.step, call.backend, call.out
    first, *others = call.values
    if len([o for o in call.outs if o is not None]) > 1 or not out.flags.c_contiguous:
        return None
    if first.shape[:1] != out.shape[:1] or not len(out):
        return None
    attrs, picks = call.attrs, step.is_tuple

    def part(start: int, stop: int) -> None:
        found = backend.run(step.op, (first[start:stop], *others), attrs)
        out[start:stop] = found[0] if picks else found

    run = partial(part, 0, len(out))
    return Bound(run, len(out), part, cost, "op by sample", (0,))


UFUNCS: dict[str, Any] = {
    **{name: getattr(np, name) for name in ("add", "exp", "log", "sqrt", "tanh")},
    **{name: getattr(np, name) for name in ("cos", "sin", "log1p", "floor", "ceil")},
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "abs": np.absolute,
    "round": np.rint,
}
COSTLY = {"exp", "log", "tanh", "cos", "sin", "log1p"}
IN_PLACE = {*UFUNCS, "relu", "square", "batch_norm_known"}  # may write over an input


def elements(call: Call) -> tuple[int, list[Any], list[bool]] | None:
    """How an elementwise step falls into stretches: how many there are, its arrays and
    result with one stretch a row, and which of the arrays are the same for all."""
    out = call.out
    if not out.flags.c_contiguous or not out.size:
        return None
    arrays = [v for v in call.values if isinstance(v, np.ndarray) and v.ndim]
    if all(v.shape == out.shape and v.flags.c_contiguous for v in arrays):
        flat = [
            v.reshape(-1) if isinstance(v, np.ndarray) and v.ndim else v
            for v in (*call.values, out)
        ]
        return (
            out.size,
            flat,
            [not isinstance(v, np.ndarray) or not v.ndim for v in flat],
        )
    values = [*call.values, out]
    same = [
        not isinstance(v, np.ndarray) or v.ndim < out.ndim or v.shape[0] == 1
        for v in values
    ]
    if out.shape[0] == 1:
        return None
    return len(out), values, same


@binder(*UFUNCS)
def bind_ufunc(call: Call) -> Bound | None:
    """A function of NumPy that writes where it is told."""
    ufunc, out = UFUNCS[call.step.op.name], call.out
    if any(isinstance(v, np.ndarray) and v.dtype != out.dtype for v in call.values):
        return None
    if out.dtype.kind not in "f" and call.step.op.name not in ("add", "sub", "mul"):
        return None
    run = partial(ufunc, *call.values, out=out)
    cost = out.nbytes * (len(call.values) + 1) / BYTES
    if call.step.op.name in COSTLY:
        cost = out.size * SLOW / 10
    found = elements(call)
    if found is None:
        return Bound(run, cost=cost, how="in place")
    units, arrays, same = found
    if len(arrays) == 2:
        x, y = arrays

        def part_of_one(start: int, stop: int) -> None:
            ufunc(x[start:stop], out=y[start:stop])

        return Bound(run, units, part_of_one, cost, "in place", (0,))
    x, y, z = arrays
    one_x, one_y = same[:2]
    stretched = tuple([i for i in (0, 1) if not same[i]])

    def part(start: int, stop: int) -> None:
        ufunc(
            x if one_x else x[start:stop],
            y if one_y else y[start:stop],
            out=z[start:stop],
        )

    return Bound(run, units, part, cost, "in place", stretched)


@binder("relu")
def bind_relu(call: Call) -> Bound | None:
    """The larger of each element and zero, by a function that has vector registers."""
    (x,), out = call.values, call.out
    if x.dtype != out.dtype or not (x.flags.c_contiguous and out.flags.c_contiguous):
        return None
    zeros = many_times(0, x.dtype)
    flat, to = x.reshape(-1), out.reshape(-1)

    def part(start: int, stop: int) -> None:
        for first in range(start, stop, RUN):
            last = min(first + RUN, stop)
            np.maximum(flat[first:last], zeros[: last - first], out=to[first:last])

    run = partial(part, 0, out.size)
    if out.size <= RUN:
        run = partial(np.maximum, flat, zeros[: out.size], out=to)
    return Bound(run, out.size, part, 2 * out.nbytes / BYTES, "in place", (0,))


@binder("matmul")
def bind_matmul(call: Call) -> Bound | None:
    """A product of two matrices, written where it belongs."""
    x, y = call.values
    if x.ndim != 2 or x.dtype.kind != "f" or not call.out.flags.c_contiguous:
        return None
    if not x.dtype == y.dtype == call.out.dtype:
        return None
    return Bound(product(x, y, call.out), cost=x.size * y.shape[1] / 30, how="out")


def product(x: Any, y: Any, out: Any) -> Callable[[], Any]:
    """out = x · y, by BLAS alone where that is small."""
    if x.size * y.shape[1] <= 1 << 16 and x.shape[0] > 1 < y.shape[1]:
        return partial(np.dot, x, y, out)
    return partial(dot, x, y, out)


def rows_of(x: Any) -> Any:
    """An array as a table of its last dim; None where it is not in one piece."""
    if x.ndim == 2:
        return x
    return x.reshape(-1, x.shape[-1]) if x.flags.c_contiguous and x.ndim else None


@binder("linear")
def bind_linear(call: Call) -> Bound | None:
    """A product written where it belongs, and the bias added there."""
    x, weight, *rest = call.values
    bias = rest[0] if rest else None
    rows, out = rows_of(x), rows_of(call.out)
    if rows is None or out is None or not call.out.flags.c_contiguous or x.ndim < 2:
        return None
    if not rows.dtype == weight.dtype == out.dtype or out.dtype.kind != "f":
        return None
    multiply = product(rows, weight, out)
    cost = rows.size * weight.shape[1] / 30
    if bias is None:
        return Bound(multiply, cost=cost, how="out")

    def run() -> None:
        multiply()
        np.add(out, bias, out)

    return Bound(run, cost=cost, how="out")


@binder("linear_block")
def bind_linear_block(call: Call) -> Bound | None:
    """The same, and an activation in place."""
    first = bind_linear(call)
    if first is None:
        return None
    name = call.attrs["chain"][1]
    step = Step(OPS[name], (), {}, call.step.outputs)
    then = bind(
        Call(step, (call.out,), {}, call.outs, (False,), call.backend, False, Given())
    )

    def run() -> None:
        first.run()
        then.run()

    return Bound(run, cost=first.cost + then.cost, how="out")


def _column_sums(backend: Backend, table: Any, out: Any) -> Callable[[], Any]:
    """The sum of each column, as exact as the op's."""
    if len(table) <= MANY and table.itemsize > 2:
        return partial(np.add.reduce, table, 0, None, out)

    def run() -> None:
        np.copyto(out, backend.run(ops.sum_dim, (table,), {"dim": 0})[0])

    return run


@binder("linear.backward")
def bind_linear_backward(call: Call) -> Bound | None:
    """The gradients of a linear layer, each written where it belongs."""
    g, x, weight = call.values[:3]
    outs = [*call.outs, None, None][:3]
    arrays = [a for a in (g, x, weight, *outs) if isinstance(a, np.ndarray)]
    if g.ndim != 2 or any(a.dtype != g.dtype for a in arrays) or g.dtype.kind != "f":
        return None
    runs: list[Callable[[], Any]] = []
    cost = 0.0
    dx, dw, db = outs
    if dx is not None:
        runs.append(product(g, weight.T, dx))
        cost += g.size * weight.shape[0] / 30
    if dw is not None:
        if x.ndim != 2:
            return None
        runs.append(product(x.T, g, dw))
        cost += g.size * x.shape[1] / 30
    if db is not None:
        runs.append(_column_sums(call.backend, g, db))
        cost += g.nbytes / BYTES

    def run() -> None:
        for one in runs:
            one()

    return Bound(run, cost=cost, how="out")
