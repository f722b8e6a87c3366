"""How metrics read tensors: as arrays of fitting shapes.

Metrics are computed with NumPy on the CPU, wherever the model trains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from burnbook.core.dtypes import Float
from burnbook.core.errors import (
    ConfigError,
    DataError,
    KindError,
    ShapeError,
)

if TYPE_CHECKING:
    from burnbook.tensor import Tensor

ONE_SCORE = (
    "AccuracyMetric.binary(), which says yes above a threshold: 0.5 for probabilities, "
    "0.0 for logits"
)


def values(tensor: Tensor) -> np.ndarray:
    """The numbers of a tensor as a NumPy array; do not change them."""
    return tensor.backend.to_numpy(tensor.value)


def scores_of(
    where: str, outputs: Tensor, targets: Tensor, *, k: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of at least k classes, and the right class of each row.

    Shapes: outputs [n, classes]; targets [n]
    """
    check_swapped(where, outputs, targets)
    shape, right = tuple(outputs.shape), tuple(targets.shape)
    if len(shape) == 1 or shape[1:] == (1,):
        check_scores(where, outputs, targets)
        if _are_classes(outputs, targets):
            raise _chosen(where, outputs, targets)
        what = "one score for each example: the best of one class says nothing"
        raise ShapeError(where, what, _facts(outputs, targets), ONE_SCORE)
    if len(shape) != 2 or right != shape[:1]:
        wanted = "outputs [n, classes] and targets [n]"
        if len(shape) == 2 and right == shape:  # a probability for each class
            wanted += ": targets.argmax(1).squeeze_dim(1), the likeliest classes"
        raise _unfit(where, wanted, outputs, targets)
    check_scores(where, outputs, targets)
    check_best_of(where, k, outputs, targets)
    return values(outputs), values(targets)


def one_score_of(
    where: str, outputs: Tensor, targets: Tensor
) -> tuple[np.ndarray, np.ndarray]:
    """One score for each example, and its target.

    Shapes: outputs [n] or [n, 1]; targets [n] or [n, 1] -> [n] and [n]
    """
    check_swapped(where, outputs, targets)
    shapes = [tuple(tensor.shape) for tensor in (outputs, targets)]
    if any(len(s) not in (1, 2) or s[1:] not in ((), (1,)) for s in shapes) or (
        shapes[0][0] != shapes[1][0]
    ):
        wanted = "one score for each example: outputs [n] or [n, 1], targets the same"
        raise _unfit(where, wanted, outputs, targets)
    check_scores(where, outputs, targets)
    return values(outputs).reshape(-1), values(targets).reshape(-1)


def check_yes_or_no(where: str, targets: np.ndarray) -> None:
    """Refuse targets that are neither 0 nor 1."""
    wrong = targets[(targets != 0) & (targets != 1)]
    if len(wrong):
        raise DataError(
            where,
            f"target {wrong[0]} is neither 0 nor 1",
            cure="targets that are 0 (no) or 1 (yes), or Bool",
        )


def check_probabilities(where: str, scores: np.ndarray, cure: str) -> None:
    """Refuse scores that are not between 0 and 1; NaN passes."""
    wrong = scores[(scores < 0) | (scores > 1)]
    if len(wrong):
        what = f"score {wrong[0]:.4g} is not a probability, from 0 to 1"
        raise DataError(where, what, cure=cure)


def check_not_probabilities(where: str, scores: np.ndarray) -> None:
    """Refuse probabilities where scores are wanted, to which a softmax is applied.

    Why: the first row tells nearly always, so the rest is seldom looked at; a single
    row, or whole numbers, may be so by chance.

    Shapes: scores [n, classes]
    """
    if len(scores) < 2 or not _are_shares(scores[:1]) or not _are_shares(scores):
        return
    if (scores % 1 != 0).any():
        what = "outputs have been through a softmax, which this metric applies itself"
        raise DataError(where, what, cure="the scores before it, or output.log()")


def _are_shares(rows: np.ndarray) -> bool:
    near = 0.01 if rows.dtype == np.float16 else 1e-4
    one = np.abs(rows.sum(-1, dtype=np.float64) - 1.0) < near
    return bool(one.all() and ((rows >= 0) & (rows <= 1)).all())


def check_pixels(where: str, images: np.ndarray, most: float) -> None:
    """Refuse images with pixels above the largest that was said."""
    high = images.max(initial=0.0)
    if high > most * 1.001:
        what = f"a pixel of the targets is {high:.4g}, and the largest is said to be "
        cure = f"255.0 in the config of the metric, or images / {high:.4g}"
        if high > 255.0:
            cure = f"{high:.4g} in the config of the metric"
        raise DataError(where, f"{what}{most:g}", cure=cure)


def check_swapped(where: str, outputs: Tensor, targets: Tensor) -> None:
    """Refuse targets in the place of scores, and scores in that of targets."""
    if outputs.kind is not Float and targets.kind is Float:
        what = "outputs and targets are swapped: the scores are Float, the targets not"
        cure = "ClassificationOutput(loss, output, targets): the scores come first"
        raise KindError(where, what, _facts(outputs, targets), cure)


def check_scores(where: str, outputs: Tensor, targets: Tensor) -> None:
    """Refuse classes that are already chosen: their numbers are not scores."""
    check_swapped(where, outputs, targets)
    if outputs.kind is not Float:
        raise _chosen(where, outputs, targets)


def _chosen(where: str, outputs: Tensor, targets: Tensor) -> KindError:
    what = "outputs are classes that are chosen already, not their scores"
    cure = "the scores without .argmax(1): ClassificationOutput(loss, logits, targets)"
    return KindError(where, what, _facts(outputs, targets), cure)


def _are_classes(outputs: Tensor, targets: Tensor) -> bool:
    """Whether one column of Float is whole from 0 up, beside targets of several."""
    chosen = values(outputs)
    whole = len(chosen) > 0 and bool((chosen == np.round(chosen)).all())
    several = values(targets).max(initial=0) > 1
    return whole and several and chosen.min() >= 0


def check_best_of(where: str, k: int, outputs: Tensor, targets: Tensor) -> None:
    """Refuse to take the best k of fewer classes."""
    count = outputs.shape[1]
    if k > count:
        what = f"the best {k} cannot be taken from {count} classes"
        raise ShapeError(where, what, _facts(outputs, targets), f"{count} or fewer")


def check_several(where: str, outputs: Tensor, targets: Tensor) -> None:
    """Refuse to take the best class where there is only one: it always is."""
    if outputs.shape[1] < 2:
        what = "the best of one class is always that class"
        cure = "binary(), which says yes above a threshold"
        raise ShapeError(where, what, _facts(outputs, targets), cure)


def check_one_class(where: str, outputs: Tensor, targets: Tensor) -> None:
    """Refuse several classes where one was announced."""
    if outputs.rank == 2 and outputs.shape[1] != 1:
        what = f"binary() is for one class, and here are {outputs.shape[1]}"
        cure = "multilabel() for a yes or no each, multiclass() for one out of many"
        raise ShapeError(where, what, _facts(outputs, targets), cure)


def check_classes(where: str, targets: np.ndarray, count: int) -> None:
    """Refuse targets that are not classes."""
    wrong = targets[(targets < 0) | (targets >= count) | (targets % 1 != 0)]
    if len(wrong):
        raise DataError(
            where,
            f"target {wrong[0]} is not one of the {count} classes, 0 to {count - 1}",
            cure="a pad token, with_pad_token(...), if these targets are only padding",
        )


def same_shape(
    where: str, outputs: Tensor, targets: Tensor, wanted: str, rank: int
) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays that agree element by element."""
    shape = tuple(outputs.shape)
    if len(shape) != rank or shape != tuple(targets.shape):
        raise _unfit(where, f"both as {wanted}", outputs, targets)
    return values(outputs), values(targets)


def tokens_of(
    where: str, outputs: Tensor, targets: Tensor
) -> tuple[np.ndarray, np.ndarray]:
    """As many sequences as there are references; they may differ in length.

    Shapes: outputs [n, t]; targets [n, r]
    """
    shape, right = tuple(outputs.shape), tuple(targets.shape)
    if len(shape) != 2 or len(right) != 2 or shape[0] != right[0]:
        wanted = "outputs [n, t] and targets [n, r], a row per sequence"
        raise _unfit(where, wanted, outputs, targets)
    return values(outputs), values(targets)


def before_pad(tokens: np.ndarray, pad_token: int | None) -> list[int]:
    """One sequence up to its first pad token.

    Example:
        >>> before_pad(np.array([5, 7, 0, 9]), pad_token=0)
        [5, 7]
    """
    if pad_token is not None:
        ends = np.flatnonzero(tokens == pad_token)
        tokens = tokens[: ends[0]] if len(ends) else tokens
    return tokens.tolist()


def at_least_one(where: str, name: str, value: int) -> int:
    """Refuse a count below 1."""
    if type(value) is not int or value < 1:
        what = f"{name} = {value!r} is not a number of at least 1"
        raise ConfigError(where, what, cure=f"{name}=1 or more")
    return value


def _unfit(where: str, wanted: str, outputs: Tensor, targets: Tensor) -> ShapeError:
    what = "outputs and targets do not fit together"
    return ShapeError(where, what, _facts(outputs, targets), wanted)


def _facts(outputs: Tensor, targets: Tensor) -> list[tuple[str, str]]:
    return [
        (name, f"{tensor.kind.__name__} {list(tensor.shape)}")
        for name, tensor in (("outputs", outputs), ("targets", targets))
    ]
