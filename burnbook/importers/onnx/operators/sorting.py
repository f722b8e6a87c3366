"""Operators that put elements in order, and pick by it."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnbook.importers.onnx.operators.registry import host_operator, operator
from burnbook.importers.onnx.traced import TracedArray, take_along
from burnbook.importers.onnx.values import Value, as_array, number, rearranged
from burnbook.tensor import Tensor


@operator("TopK", many=True)
def top_k(
    x: Tensor,
    k: Value,
    *,
    axis: int = -1,
    largest: int = 1,
    sorted: int = 1,
    outputs: int,
) -> tuple[Any, ...]:
    """The k largest (or least) elements along an axis, and where they stand."""
    order = _order(as_array(x), k, axis, largest)
    if isinstance(order, TracedArray):
        held = TracedArray(x, x.value.dtype)
        return take_along(held, order, axis).tensor, order
    picked = rearranged(x, lambda at: np.take_along_axis(at, order, axis))
    return picked, order


@top_k.host
def _(
    x: Value,
    k: Value,
    *,
    axis: int = -1,
    largest: int = 1,
    sorted: int = 1,
    outputs: int,
) -> tuple[Any, ...]:
    order = _order(x, k, axis, largest)
    return np.take_along_axis(x, order, axis), order


def _order(x: Value, k: Value, axis: int, largest: int) -> Any:
    if largest:  # of equals, the first comes first
        order = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
        order = x.shape[axis] - 1 - order
    else:
        order = np.argsort(x, axis, kind="stable")
    return np.take(order, np.arange(number(k)), axis).astype(np.int64)


@host_operator("Unique", many=True)
def unique(
    x: Value, *, axis: int | None = None, sorted: int = 1, outputs: int
) -> tuple[Any, ...]:
    """What there is at least once: values, first places, back again, and how often."""
    values, first, back, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    back = back.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        places = np.argsort(order)
        values = np.take(values, order, 0 if axis is None else axis)
        first, counts, back = first[order], counts[order], places[back]
    kinds = (first, back, counts)
    return (values, *(part.astype(np.int64) for part in kinds))


@host_operator("NonMaxSuppression")
def non_max_suppression(
    boxes: Value,
    scores: Value,
    most: Value = None,
    iou_threshold: Value = None,
    score_threshold: Value = None,
    *,
    center_point_box: int = 0,
) -> Any:
    """Boxes of the highest scores that overlap no better one: batch, class, box."""
    limit = 0 if most is None else number(most)
    worst = 0.0 if iou_threshold is None else number(iou_threshold)
    found = []
    if center_point_box:
        middle, half = boxes[..., :2], boxes[..., 2:] / 2
        corners = np.concatenate([middle - half, middle + half], -1)
    else:
        corners = np.concatenate(
            [
                np.minimum(boxes[..., :2], boxes[..., 2:]),
                np.maximum(boxes[..., :2], boxes[..., 2:]),
            ],
            -1,
        )
    for batch, classes in enumerate(scores):
        for kind, row in enumerate(classes):
            order = np.argsort(-row, kind="stable")
            if score_threshold is not None:
                order = order[row[order] > number(score_threshold)]
            kept: list[int] = []
            for i in order:
                if len(kept) >= limit:
                    break
                box = corners[batch, i]
                if all(_overlap(box, corners[batch, j]) <= worst for j in kept):
                    kept.append(int(i))
            found += [(batch, kind, i) for i in kept]
    return np.array(found, np.int64).reshape(-1, 3)


def _overlap(a: Value, b: Value) -> float:
    """The area two boxes share, of the area they cover."""
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    shared = np.prod(np.maximum(high - low, 0))
    total = np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - shared
    return float(shared / total) if total > 0 else 0.0
