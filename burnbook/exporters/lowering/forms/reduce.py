"""Sums, means and extremes along dims, running sums, softmax, sorting, losses."""

from __future__ import annotations

from typing import Any

from burnbook.exporters.lowering.calls import Line, Storage, View
from burnbook.exporters.lowering.lowering import Lowering, straight
from burnbook.exporters.lowering.registry import NoForm, form
from burnbook.exporters.lowering.sizes import product
from burnbook.program import Shape, Step, Value

WORDS = ("sum", "mean", "max", "min", "prod", "all", "any")
ALONG = (*[f"{word}_dim" for word in WORDS], "argmax", "argmin", "length_dim")


def _along(shape: Shape, dim: int) -> dict[str, Any]:
    dim %= len(shape)
    return {
        "outer": product(shape[:dim]),
        "count": shape[dim],
        "inner": product(shape[dim + 1 :]),
    }


@form(*WORDS, "length")
def of_all(w: Lowering, step: Step) -> None:
    x = step.inputs[0]
    _no_whole_mean(step, x)
    sizes = {"outer": 1, "count": product(x.shape), "inner": 1}
    w.call(f"reduce_{step.op.name}", w.result(step.out), sizes=sizes, x=w.whole(x))


@form(*ALONG)
def of_dim(w: Lowering, step: Step, *, dim: int) -> None:
    x = step.inputs[0]
    _no_whole_mean(step, x)
    word = step.op.name.removesuffix("_dim")
    sizes = _along(x.shape, dim)
    w.call(f"reduce_{word}", w.result(step.out), sizes=sizes, x=w.whole(x))


def _no_whole_mean(step: Step, x: Value) -> None:
    if step.op.name.startswith("mean") and x.dtype.kind != "f":
        raise NoForm("a mean of whole numbers is refused where it is no whole number")


@form("sum_to")
def sum_to(w: Lowering, step: Step, *, shape: Shape) -> None:
    """One dim after the other, those at the end first."""
    x = step.inputs[0]
    ahead = len(x.shape) - len(step.out.shape)
    sizes, given = list(x.shape), w.whole(x)
    for dim in reversed(range(len(sizes))):
        stays = dim >= ahead and step.out.shape[dim - ahead] == sizes[dim]
        if stays or sizes[dim] == 1:
            continue
        along = _along(tuple(sizes), dim)
        sizes[dim] = 1
        made = w.new(f"{step.out.name}_part", tuple(sizes), given.kind)
        w.call("reduce_sum", made, sizes=along, x=given)
        given = made
    w.views[step.out] = straight(given, step.out.shape)


@form("softmax", "log_softmax")
def softmax(w: Lowering, step: Step, *, dim: int) -> None:
    x = step.inputs[0]
    out = w.result(step.out)
    w.call(step.op.name, out, sizes=_along(x.shape, dim), x=w.whole(x))


@form("log_softmax_at")
def log_softmax_at(w: Lowering, step: Step) -> None:
    x, indices = step.inputs
    picked = _picked(w, x, x.shape, indices, step.out.shape)
    w.views[step.out] = straight(picked, step.out.shape)


@form("cross_entropy")
def cross_entropy(w: Lowering, step: Step) -> None:
    """The logarithms of the shares of the targets, their mean, and its negative."""
    logits, targets = step.inputs
    picked = _picked(w, logits, logits.shape, targets, targets.shape)
    mean = w.new(f"{step.out.name}_mean", (1,))
    sizes = {"outer": 1, "count": picked.size, "inner": 1}
    w.call("reduce_mean", mean, sizes=sizes, x=picked)
    w.grow(step.out, [Line("neg", (straight(mean, (1,)),), "f32", "f32")])


def _picked(w: Lowering, x: Value, shape: Shape, indices: Value, out: Shape) -> Storage:
    """log softmax along the last dim, and of each row the number at an index."""
    logs = w.new(f"{x.name}_logs", shape)
    along = _along(shape, -1)
    w.call("log_softmax", logs, sizes=along, x=w.whole(x))
    made = w.new(f"{x.name}_picked", out)
    rows = product(shape[:-1])
    sizes = {
        "outer": rows,
        "count": shape[-1],
        "inner": 1,
        "picks": indices.shape[-1] if len(indices.shape) == len(shape) else 1,
    }
    w.call("gather", made, sizes=sizes, x=logs, indices=w.whole(indices))
    return made


@form("cumsum", "cumprod", "cummax", "cummin")
def running(w: Lowering, step: Step, *, dim: int) -> None:
    x = step.inputs[0]
    out = w.result(step.out)
    w.call(step.op.name, out, sizes=_along(x.shape, dim), x=w.whole(x))


@form("linear_scan")
def linear_scan(w: Lowering, step: Step, *, dim: int) -> None:
    x, a = step.inputs
    sizes = _along(x.shape, dim)
    out = w.result(step.out)
    w.call("linear_scan", out, sizes=sizes, x=w.whole(x), a=w.whole(a))


@form("sort", "argsort")
def sort(w: Lowering, step: Step, *, dim: int, descending: bool) -> None:
    x = step.inputs[0]
    places = step.out if step.op.name == "argsort" else None
    ranked = (
        w.result(places)
        if places is not None
        else w.new(f"{x.name}_places", x.shape, "i32")
    )
    along = _along(x.shape, dim)
    sizes = {**along, "descending": bool(descending)}
    w.call("argsort", ranked, sizes=sizes, x=w.whole(x))
    if places is None:
        _gathered(w, step, x, ranked, along)


def _gathered(
    w: Lowering, step: Step, x: Value, places: Storage, along: dict[str, Any]
) -> None:
    sizes = {**along, "picks": along["count"]}
    out = w.result(step.out)
    w.call("gather", out, sizes=sizes, x=w.whole(x), indices=places)


@form("argtopk", "argmedian")
def ranked(w: Lowering, step: Step, *, dim: int, k: int = 1) -> None:
    """All places in order, and of these the first ones, or the one in the middle."""
    x = step.inputs[0]
    dim %= len(x.shape)
    along = _along(x.shape, dim)
    is_top = step.op.name == "argtopk"
    places = w.new(f"{x.name}_places", x.shape, "i32")
    w.call("argsort", places, sizes={**along, "descending": is_top}, x=w.whole(x))
    if not is_top:
        reads = {"x": w.whole(x), "places": places}
        w.call("median_place", w.result(step.out), sizes=along, **reads)
        return
    if not isinstance(x.shape[dim], int):
        raise NoForm("it sorts along the batch")
    strides = straight(places, x.shape).strides
    w.views[step.out] = View(places, step.out.shape, strides)


@form("neighbor_sum")
def neighbor_sum(w: Lowering, step: Step, *, before: int, after: int) -> None:
    x = step.inputs[0]
    sizes = {**_along(x.shape, 1), "before": before, "after": after}
    w.call("neighbor_sum", w.result(step.out), sizes=sizes, x=w.whole(x))
