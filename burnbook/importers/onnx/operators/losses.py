"""Losses."""

from __future__ import annotations

import numpy as np

from burnbook import ops
from burnbook.importers.onnx.operators.registry import operator
from burnbook.importers.onnx.values import (
    Value,
    aligned,
    as_array,
    as_tensor,
    rearranged,
    reshape,
)
from burnbook.tensor import Tensor, activation
from burnbook.tensor.methods import apply


@operator("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(
    x: Tensor,
    target: Value,
    weight: Tensor | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """−x at the target class, weighted; the mean is over the weights."""
    kept = np.ones(target.shape, bool)
    if ignore_index is not None:
        kept = target != ignore_index
    classes = np.where(kept, target, 0).astype(np.int64)
    places = np.expand_dims(classes, 1)
    at = rearranged(x, lambda p: np.take_along_axis(p, places, 1)[:, 0])
    scale = kept.astype(np.dtype(x.value.dtype))
    if weight is not None:
        scale = scale * as_array(weight)[classes]
    loss = apply(ops.mul, *aligned(-at, as_tensor(scale, x.backend)))
    if reduction == "none":
        return loss
    total = reshape(apply(ops.sum, loss), ())
    return total if reduction == "sum" else total * (1.0 / float(scale.sum()))


@operator("SoftmaxCrossEntropyLoss", many=True)
def softmax_cross_entropy_loss(
    x: Tensor,
    target: Value,
    weight: Tensor | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
    outputs: int = 1,
) -> tuple[Tensor, ...]:
    """The negative log-likelihood of softmax; and the log-probabilities."""
    logs = activation.log_softmax(x, 1)
    loss = negative_log_likelihood_loss(
        logs, target, weight, ignore_index=ignore_index, reduction=reduction
    )
    return loss, logs
