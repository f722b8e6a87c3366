"""Along dims: sums, extremes, running sums, softmax, sorting.

What ReduceMax, ReduceMin, ArgMax, ArgMin and TopK make of NaN, ONNX leaves open. Here a
line that holds one has NaN as its extreme, and its place as that of the extreme and of
the median; ONNX Runtime passes over it, or takes the first element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnbook.exporters.onnx.forms.elementwise import first_value
from burnbook.exporters.onnx.forms.registry import NoForm, form
from burnbook.exporters.onnx.writer import Name, Writer
from burnbook.program import Step

WORDS = {"sum": "Sum", "mean": "Mean", "max": "Max", "min": "Min", "prod": "Prod"}


@form(*WORDS)
def of_all(w: Writer, step: Step, x: Name) -> Name:
    _no_whole_mean(step)
    total = w.reduce(f"Reduce{WORDS[step.op.name]}", x, None, keepdims=False)
    return w.node("Reshape", total, w.ints(1))


@form(*[f"{name}_dim" for name in WORDS])
def of_dim(w: Writer, step: Step, x: Name, *, dim: int) -> Name:
    _no_whole_mean(step)
    word = WORDS[step.op.name.removesuffix("_dim")]
    return w.reduce(f"Reduce{word}", x, [dim])


def _no_whole_mean(step: Step) -> None:
    if step.op.name.startswith("mean") and first_value(step).dtype.kind != "f":
        raise NoForm("a mean of whole numbers is refused where it is no whole number")


@form("length_dim")
def length_dim(w: Writer, step: Step, x: Name, *, dim: int) -> Name:
    return w.reduce("ReduceL2", x, [dim])


@form("length")
def length(w: Writer, step: Step, x: Name) -> Name:
    total = w.reduce("ReduceL2", x, None, keepdims=False)
    return w.node("Reshape", total, w.ints(1))


@form("argmax", "argmin")
def arg(w: Writer, step: Step, x: Name, *, dim: int) -> Name:
    return w.node("ArgMax" if step.op.name == "argmax" else "ArgMin", x, axis=dim)


@form("all", "any")
def truth_of_all(w: Writer, step: Step, x: Name) -> Name:
    found = _truth(w, step, x, None)
    return w.node("Reshape", found, w.ints(1))


@form("all_dim", "any_dim")
def truth_of_dim(w: Writer, step: Step, x: Name, *, dim: int) -> Name:
    return _truth(w, step, x, [dim])


def _truth(w: Writer, step: Step, x: Name, axes: list[int] | None) -> Name:
    if first_value(step).dtype.kind != "b":
        zero = w.number(0, first_value(step))
        x = w.node("Not", w.node("Equal", x, zero))
    word = "ReduceMin" if step.op.name.startswith("all") else "ReduceMax"
    found = w.reduce(word, w.cast(x, np.int32), axes, keepdims=axes is not None)
    return w.cast(found, bool)


@form("sum_to")
def sum_to(w: Writer, step: Step, x: Name, *, shape: tuple[Any, ...]) -> Name:
    given = first_value(step).shape
    ahead = len(given) - len(shape)
    pairs = zip(given[ahead:], shape, strict=True)
    axes = [ahead + i for i, (n, m) in enumerate(pairs) if m == 1 and n != 1]
    axes = [*range(ahead), *axes]
    if not axes:
        return w.node("Identity", x)
    return w.reshape(w.reduce("ReduceSum", x, axes), shape)


@form("softmax", "log_softmax")
def softmax(w: Writer, step: Step, x: Name, *, dim: int) -> Name:
    return w.node("Softmax" if step.op.name == "softmax" else "LogSoftmax", x, axis=dim)


@form("log_softmax_at")
def log_softmax_at(w: Writer, step: Step, x: Name, indices: Name) -> Name:
    picked = w.node("GatherElements", x, indices, axis=-1)
    return w.node("Sub", picked, w.reduce("ReduceLogSumExp", x, [-1]))


@form("cross_entropy")
def cross_entropy(w: Writer, step: Step, logits: Name, targets: Name) -> Name:
    loss = w.node("SoftmaxCrossEntropyLoss", logits, targets, reduction="mean")
    return w.node("Reshape", loss, w.ints(1))


@form("cumsum")
def cumsum(w: Writer, step: Step, x: Name, *, dim: int) -> Name:
    return w.node("CumSum", x, w.constant(np.array(dim, np.int64)))


@form("cumprod")
def cumprod(w: Writer, step: Step, x: Name, *, dim: int) -> Name:
    w.at_least(26, "CumProd")
    return w.node("CumProd", x, w.constant(np.array(dim, np.int64)))


@form("sort", "argsort")
def sort(w: Writer, step: Step, x: Name, *, dim: int, descending: bool) -> Name:
    values, places = _top(w, x, _count(step, dim), dim, descending)
    return values if step.op.name == "sort" else places


@form("argtopk")
def argtopk(w: Writer, step: Step, x: Name, *, k: int, dim: int) -> Name:
    return _top(w, x, k, dim, True)[1]


@form("argmedian")
def argmedian(w: Writer, step: Step, x: Name, *, dim: int) -> Name:
    count = _count(step, dim)
    middle = (count - 1) // 2
    places = _top(w, x, count, dim, False)[1]
    return w.slice(places, dim, middle, middle + 1)


def _count(step: Step, dim: int) -> int:
    count = first_value(step).shape[dim]
    if not isinstance(count, int):
        raise NoForm("it sorts along the batch")
    return count


def _top(w: Writer, x: Name, k: int, dim: int, largest: bool) -> tuple[Name, ...]:
    return w.node_of("TopK", 2, x, w.ints(k), axis=dim, largest=int(largest))


@form("rfft_pairs")
def rfft_pairs(w: Writer, step: Step, x: Name) -> Name:
    x = w.node("Unsqueeze", x, w.ints(-1))
    return _spectrum(w, x, len(first_value(step).shape) - 1, onesided=1)


@form("fft_pairs")
def fft_pairs(w: Writer, step: Step, x: Name, *, inverse: bool) -> Name:
    axis = len(first_value(step).shape) - 2
    found = _spectrum(w, x, axis, inverse=int(inverse))
    if not inverse:
        return found
    count = w.number(_count(step, axis), first_value(step))
    return w.node("Mul", found, count)


@form("irfft_pairs")
def irfft_pairs(w: Writer, step: Step, x: Name, *, n: int) -> Name:
    """A product: each number of the result is a sum over the spectrum."""
    *rest, count, _ = first_value(step).shape
    if not isinstance(count, int):
        raise NoForm("its spectrum follows the batch")
    basis = np.fft.irfft(np.eye(count), n=n), np.fft.irfft(1j * np.eye(count), n=n)
    matrix = np.stack(basis, 1).reshape(2 * count, n).astype(step.out.dtype)
    flat = w.reshape(x, (*rest, 2 * count))
    return w.node("MatMul", flat, w.constant(matrix, "waves"))


@form("det")
def det(w: Writer, step: Step, x: Name) -> Name:
    return w.reshape(w.node("Det", x), step.out.shape)


def _spectrum(w: Writer, x: Name, axis: int, **flags: int) -> Name:
    if w.opset >= 20:
        return w.node("DFT", x, "", w.constant(np.array(axis, np.int64)), **flags)
    return w.node("DFT", x, axis=axis, **flags)
