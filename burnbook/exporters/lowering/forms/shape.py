"""Shapes and places: views where that is enough, else strided copies."""

from __future__ import annotations

from typing import Any

from burnbook.exporters.lowering.calls import KINDS, Line, Made, View
from burnbook.exporters.lowering.lowering import Lowering, refuse_numbers, straight
from burnbook.exporters.lowering.registry import NoForm, form
from burnbook.exporters.lowering.sizes import fixed, plus, product, times
from burnbook.program import Shape, Size, Step
from burnbook.program.sizes import Dim


@form("reshape")
def reshape(w: Lowering, step: Step, *, shape: Shape) -> None:
    view = w.view(step.inputs[0])
    made = view.reshaped(step.out.shape)
    if made is None:
        made = straight(w.whole(step.inputs[0]), step.out.shape)
    w.views[step.out] = made


@form("permute")
def permute(w: Lowering, step: Step, *, axes: tuple[int, ...]) -> None:
    rank = len(axes)
    view = w.view(step.inputs[0])
    w.views[step.out] = view.permuted(tuple(axis % rank for axis in axes))


@form("swap_dims")
def swap_dims(w: Lowering, step: Step, *, dim1: int, dim2: int) -> None:
    order = list(range(len(step.out.shape)))
    order[dim1], order[dim2] = order[dim2], order[dim1]
    w.views[step.out] = w.view(step.inputs[0]).permuted(tuple(order))


@form("expand")
def expand(w: Lowering, step: Step, *, shape: Shape) -> None:
    w.views[step.out] = w.view(step.inputs[0]).stretched(step.out.shape)


@form("slice")
def slice_(w: Lowering, step: Step, *, index: tuple[slice, ...]) -> None:
    w.views[step.out] = part(w.view(step.inputs[0]), index)


def part(view: View, index: tuple[slice, ...]) -> View:
    """A block of a view; steps may be negative."""
    shape, strides, offset = list(view.shape), list(view.strides), view.offset
    for axis, one in enumerate(index):
        size, pace = shape[axis], 1 if one.step is None else one.step
        if (
            isinstance(size, Dim)
            or isinstance(one.start, Dim)
            or isinstance(one.stop, Dim)
        ):
            start, count = _of_batch(size, one, pace)
        else:
            begin, stop, _ = one.indices(size)
            start, count = begin, len(range(begin, stop, pace))
        offset = plus(offset, times(start, strides[axis]))
        strides[axis] = times(strides[axis], pace)
        shape[axis] = count
    return View(view.storage, tuple(shape), tuple(strides), offset)


def _of_batch(size: Size, one: slice, pace: int) -> tuple[Size, Size]:
    """Where a range begins, and how long it is, in a dim that follows the batch."""
    if pace == -1 and one.start is None and one.stop is None:
        return plus(size, -1), size
    if pace != 1:
        raise NoForm("it takes every n-th place of the batch")
    ends: list[Size] = []
    for end, usual in ((one.start, 0), (one.stop, size)):
        end = usual if end is None else end
        if not isinstance(end, Dim) and end < 0:
            end = plus(size, end)
        ends.append(end)
    count = plus(ends[1], times(ends[0], -1))
    if isinstance(size, Dim) and not isinstance(ends[1], Dim) and ends[1] != 1:
        raise NoForm("it takes so many places of the batch")
    return ends[0], count


@form("flip")
def flip(w: Lowering, step: Step, *, axes: tuple[int, ...]) -> None:
    rank = len(step.out.shape)
    turned = {axis % rank for axis in axes}
    index = tuple(slice(None, None, -1 if i in turned else 1) for i in range(rank))
    w.views[step.out] = part(w.view(step.inputs[0]), index)


@form("slide")
def slide(w: Lowering, one: Step, *, dim: int, size: int, step: int) -> None:
    view = w.view(one.inputs[0])
    dim %= len(view.shape)
    strides = list(view.strides)
    own = strides[dim]
    strides[dim] = times(own, step)
    w.views[one.out] = View(view.storage, one.out.shape, (*strides, own), view.offset)


@form("roll")
def roll(w: Lowering, step: Step, *, shift: int, dim: int) -> None:
    view = w.view(step.inputs[0])
    dim %= len(view.shape)
    size = fixed(view.shape[dim], "the dim along which it rolls")
    cut = (size - shift % size) % size if size else 0
    ahead = (slice(None),) * dim
    parts = [
        part(view, (*ahead, slice(cut, None))),
        part(view, (*ahead, slice(0, cut))),
    ]
    _join(w, step, [one for one in parts if one.shape[dim] != 0], dim)


@form("cat")
def cat(w: Lowering, step: Step, *, dim: int) -> None:
    dim %= len(step.out.shape)
    _join(w, step, [w.view(value) for value in step.inputs], dim)


def _join(w: Lowering, step: Step, parts: list[View], dim: int) -> None:
    whole = View.whole(w.result(step.out), step.out.shape)
    start: Size = 0
    for view in parts:
        offset = plus(whole.offset, times(start, whole.strides[dim]))
        w.copy(view, View(whole.storage, view.shape, whole.strides, offset))
        start = plus(start, view.shape[dim])


@form("pad")
def pad(w: Lowering, step: Step, *, widths: Any, value: Any) -> None:
    view = w.view(step.inputs[0])
    whole = View.whole(w.result(step.out), step.out.shape)
    kind = KINDS[step.out.dtype.kind]
    w.fill(bool(value) if kind == "bool" else value, whole)
    offset: Size = 0
    for (low, _), step_ in zip(widths, whole.strides, strict=True):
        offset = plus(offset, times(low, step_))
    w.copy(view, View(whole.storage, view.shape, whole.strides, offset))


@form("slice_assign")
def slice_assign(w: Lowering, step: Step, *, index: tuple[slice, ...]) -> None:
    x, values = (w.view(value) for value in step.inputs)
    whole = View.whole(w.result(step.out), step.out.shape)
    w.copy(x, whole)
    w.copy(values, part(whole, index))


@form("slice_spread")
def slice_spread(
    w: Lowering, step: Step, *, index: tuple[slice, ...], shape: Shape
) -> None:
    x = w.view(step.inputs[0])
    whole = View.whole(w.result(step.out), step.out.shape)
    w.fill(0.0, whole)
    w.copy(x, part(whole, index))


@form("rotary")
def rotary(w: Lowering, step: Step, *, back: bool) -> None:
    """Pairs (a, b) are turned: two chains, one for each half of a pair."""
    x, turns = step.inputs
    given = w.view(x)
    angles = w.view(turns)
    half = (slice(None),) * (len(step.out.shape) - 1)
    whole = View.whole(w.result(step.out), step.out.shape)
    a, b = (part(given, (*half, slice(i, None, 2))) for i in (0, 1))
    last = (slice(None),) * 2
    cos, sin = (_last(part(angles, (*last, slice(i, i + 1)))) for i in (0, 1))
    signs = ("add", "sub") if back else ("sub", "add")
    for i, sign, one, other in ((0, signs[0], a, b), (1, signs[1], b, a)):
        lines = [
            Line("mul", (one, cos), "f32", "f32"),
            Line("mul", (other, sin), "f32", "f32"),
            Line(sign, (Made(0), Made(1)), "f32", "f32"),
        ]
        w.put(lines, part(whole, (*half, slice(i, None, 2))))


def _last(view: View) -> View:
    """A view without its last dim, which has size 1."""
    return View(view.storage, view.shape[:-1], view.strides[:-1], view.offset)


@form("gather")
def gather(w: Lowering, step: Step, *, dim: int) -> None:
    indices = step.inputs[1]
    _picked(w, step, "gather", dim, indices.shape[dim])


@form("select")
def select(w: Lowering, step: Step, *, dim: int) -> None:
    indices = step.inputs[1]
    _picked(w, step, "select", dim, product(indices.shape))


def _picked(w: Lowering, step: Step, kernel: str, dim: int, picks: Size) -> None:
    x, indices = step.inputs
    dim %= len(x.shape)
    sizes = {
        "outer": product(x.shape[:dim]),
        "count": x.shape[dim],
        "inner": product(x.shape[dim + 1 :]),
        "picks": picks,
    }
    reads = {"x": w.whole(x), "indices": w.whole(indices)}
    w.call(kernel, w.result(step.out), sizes=sizes, **reads)


@form("embedding")
def embedding(w: Lowering, step: Step) -> None:
    """Rows of a table: a selection along its first dim."""
    weight, indices = step.inputs
    sizes = {
        "outer": 1,
        "count": weight.shape[0],
        "inner": weight.shape[1],
        "picks": product(indices.shape),
    }
    reads = {"x": w.whole(weight), "indices": w.whole(indices)}
    w.call("select", w.result(step.out), sizes=sizes, **reads)


@form("hot_rows")
def hot_rows(w: Lowering, step: Step, *, size: int, on: Any, off: Any) -> None:
    (x,) = step.inputs
    kind = KINDS[step.out.dtype.kind]
    refuse_numbers(Line("copy", (on, off), kind, kind))
    sizes = {"rows": product(x.shape), "size": size, "on": on, "off": off}
    w.call("one_hot", w.result(step.out), sizes=sizes, x=w.whole(x))
