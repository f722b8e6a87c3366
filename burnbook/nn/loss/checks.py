"""The checks of the inputs of losses."""

from typing import Any

import numpy as np

from burnbook.core.arrays import has_no_elements
from burnbook.core.dtypes import Bool, Float, Int, Kind
from burnbook.core.errors import (
    BackendError,
    ConfigError,
    DataError,
    DimError,
    KindError,
    ShapeError,
    explain,
    warn_caller,
)
from burnbook.core.held_tensors import cure_for_holder, facts_of_tensors
from burnbook.ops.activation import log_sigmoid
from burnbook.ops.elementwise import sigmoid
from burnbook.ops.shape import permute, reshape, swap_dims
from burnbook.ops.softmax import log_softmax, softmax
from burnbook.tensor import Tensor
from burnbook.tensor.facts import facts_of

MOVES = (reshape, permute, swap_dims)
MOST_OFF = 0.02  # how far from 1 a sum of probabilities may be
SQUASHES = (sigmoid, log_sigmoid, softmax, log_softmax)
INTS = "whole numbers: Tensor.from_ints(…, device)"


def fit(where: str, given: dict[str, Tensor], **kinds: Kind) -> None:
    """Refuse inputs that are no tensors, of another kind, or on several backends.

    kinds: those that are not Float.
    """
    all_tensors(where, given)
    refuse_swapped(where, given, kinds)
    for name, t in given.items():
        kind = kinds.get(name, Float)
        if t.kind is not kind:
            if kind is Float and where in OF_SCORES and name == next(iter(given)):
                refuse_chosen(where, given)
            what = f"{name} must be {kind.__name__}"
            cure = f"{name}.{kind.__name__.lower()}()"
            if kind is Int and t.kind is Float:
                raise not_whole(where, given, name, INTS) or KindError(
                    where, what, facts_of(**given), cure
                )
            raise KindError(where, what, facts_of(**given), cure)
    first = next(iter(given.values())).device()
    for name, t in given.items():
        if t.device() is not first:
            what = "all inputs must live on one backend"
            raise BackendError(
                where, what, facts_of(**given), f"{name}.to_device({first!r})"
            )


def all_tensors(where: str, given: dict[str, Any]) -> None:
    """Refuse what is no tensor; None is what a forward without `return` gives."""
    for name, t in given.items():
        if not isinstance(t, Tensor):
            what = f"{name} is {type(t).__name__}, not a tensor"
            cure = "Tensor.from_data(…, device)"
            if t is None:
                what = f"{name} is None, not a tensor"
                cure = "return … at the end of the forward that made it"
            held = [(f"{name}{way}", text) for way, text in facts_of_tensors(t)]
            cure = cure_for_holder(t, name) or cure
            raise KindError(where, what, held, cure)


def refuse_swapped(
    where: str, given: dict[str, Tensor], kinds: dict[str, Kind]
) -> None:
    """Refuse (targets, scores) where (scores, targets) is wanted: both kinds differ."""
    wanted = {name: kinds.get(name, Float) for name in given}
    first, second = list(given)[:2]
    turned = wanted[first], wanted[second]
    found = given[second].kind, given[first].kind
    if turned[0] is not turned[1] and turned == found:
        what = f"{first} and {second} are swapped"
        cure = f"forward({first}, {second}), the Float tensor first"
        raise KindError(where, what, facts_of(**given), cure)


#: Losses whose first input is a score of each class, or of a yes.
OF_SCORES = frozenset(
    ["cross_entropy", "binary_cross_entropy", "multi_margin", "soft_margin"]
)


def refuse_chosen(where: str, given: dict[str, Tensor]) -> None:
    """Refuse classes that are chosen already where their scores are wanted.

    Why: it looks at the values of one column, so it is called only after a failure.
    """
    name, x = next(iter(given.items()))
    column = x.rank == 1 or (x.rank == 2 and x.dims()[1] == 1)
    if x.kind is Float and not (column and _are_classes(x)):
        return
    what = f"{name} are classes that are chosen already, not their scores"
    cure = "the scores themselves, without .argmax(1) or a comparison"
    if x.kind is not Float and not column:
        what = f"{name} must be Float: a score for each class"
        cure = f"the scores before they were rounded, or {name}.float()"
    raise KindError(where, what, facts_of(**given), cure)


def _are_classes(x: Tensor) -> bool:
    """Whether Float numbers are whole and from 0 up, with one above 0."""
    if has_no_elements(x.value):
        return False
    values = np.asarray(x)
    whole = bool((values == np.round(values)).all()) and values.min() >= 0
    return len(values) > 1 and whole and bool(values.max() > 0)


def not_whole(
    where: str, given: dict[str, Tensor], name: str, cure: str
) -> KindError | None:
    """The error for Float targets that no Int could hold; None if all are whole."""
    values = np.asarray(given[name])
    odd = values[values != np.round(values)]
    if not odd.size:
        return None
    what = f"{name} must be Int, and {odd.flat[0]:.4g} is no whole number"
    return KindError(where, what, facts_of(**given), cure)


def refuse_classes(where: str, given: dict[str, Tensor]) -> None:
    """Raise what is wrong with scores [n, c] and classes [n], if it is known.

    Why: it looks at the values, so it is called only when a loss has failed.
    """
    all_tensors(where, given)
    (scores, x), (name, targets) = given.items()
    refuse_swapped(where, given, {name: Int})
    refuse_chosen(where, given)
    if targets.dims() == x.dims() and x.rank == 2 and targets.kind is not Bool:
        _refuse_rows(where, given)
    if targets.kind is Float:
        cure = f"CrossEntropyLoss with {name} [n, c], the probability of each class"
        error = not_whole(where, given, name, f"{cure}; MseLoss takes any number")
        what, cure = f"{name} must be Int", f"{name}.int()"
        raise error or KindError(where, what, facts_of(**given), cure)
    if targets.kind is not Int:
        raise KindError(
            where, f"{name} must be Int", facts_of(**given), f"{name}.int()"
        )
    dims = x.dims()
    if x.rank > 2 and targets.dims() == (dims[0], *dims[2:]):
        axes = [0, *range(2, x.rank), 1]
        cure = (
            f"{scores}.permute({axes}).reshape([-1, {dims[1]}])"
            f" and {name}.reshape([-1])"
        )
    elif x.rank > 2 and targets.dims() == dims[:-1]:
        cure = f"{scores}.reshape([-1, {dims[-1]}]) and {name}.reshape([-1])"
    elif x.rank == 2 and targets.dims() == (dims[0], 1):
        cure = f"{name}.squeeze_dim(1)"
    else:
        cure = None
    if x.rank != 2 or targets.dims() != dims[:1]:
        what = f"{scores} must be [n, c] and {name} [n]"
        if x.rank == 2 and targets.rank == 1:
            counts = f"{targets.dims()[0]} ≠ {dims[0]}"
            what = f"{counts}: one target is needed for each row of {scores}"
        raise ShapeError(where, what, facts_of(**given), cure)


def _refuse_rows(where: str, given: dict[str, Tensor]) -> None:
    """Raise for targets with a row for each example: one-hot or probabilities."""
    (scores, _), (name, targets) = given.items()
    values = np.asarray(targets)
    whole = bool(((values == 0) | (values == 1)).all())
    if not values.size or not np.isfinite(values).all() or values.min() < 0:
        return
    one = abs(values.sum(1) - 1).max() < 1e-3
    if whole and not one:
        what = f"{name} are yes or no for each class, not one class per row"
        cure = "BinaryCrossEntropyLossConfig().with_logits(True), with Int targets"
    elif not one:
        return
    elif whole:
        what = f"{name} are one-hot, not one class per row"
        cure = f"{name}.argmax(1).squeeze_dim(1)"
    else:
        what = f"{name} are probabilities, not one class per row"
        cure = f"CrossEntropyLossConfig().init(device).forward({scores}, {name})"
    raise KindError(where, what, facts_of(**given), cure)


def fit_one_shape(where: str, given: dict[str, Tensor], **kinds: Kind) -> None:
    """Refuse in addition inputs whose shapes differ.

    Why: sizes of 1 would stretch, and [32, 1] against [1, 32] give 32 · 32 losses.
    """
    fit(where, given, **kinds)
    refuse_lone_softmax(where, given)
    if len({t.dims() for t in given.values()}) > 1:
        *names, last = given
        what = f"{', '.join(names)} and {last} must have one shape"
        raise ShapeError(where, what, facts_of(**given), _same_rank(given))


def _same_rank(given: dict[str, Tensor]) -> str | None:
    """How [n, 1] and [n] become one shape."""
    if len(given) != 2:
        return None
    (first, a), (second, b) = given.items()
    if a.dims() == (*b.dims(), 1):
        return f"{first}.squeeze_dim({b.rank}), or {second}.unsqueeze_dim({b.rank})"
    if b.dims() == (*a.dims(), 1):
        return f"{second}.squeeze_dim({a.rank}), or {first}.unsqueeze_dim({a.rank})"
    return None


def one_class_each(where: str, given: dict[str, Tensor]) -> None:
    """Refuse targets, the second input, that are not a class for each row of scores."""
    (_, x), (name, targets) = given.items()
    all_tensors(where, given)
    if x.dims()[1:] == (1,):
        refuse_chosen(where, given)
        raise nothing_to_choose(where, given)
    if has_no_elements(targets.value):
        return
    refuse_classes(where, given)
    fit(where, given, **{name: Int})
    classes, low, high = x.dims()[1], *extremes(targets)
    if low < 0 or high >= classes:
        wrong = low if low < 0 else high
        what = f"{name} {wrong} is not one of the {classes} classes"
        cure = f"{name} from 0 to {classes - 1}"
        raise DimError(where, what, facts_of(**given), cure)


def signs(where: str, given: dict[str, Tensor], name: str) -> None:
    """Refuse elements that are neither 1 nor −1 in one of the inputs."""
    one_of(where, given, name, (1, -1), "1 nor −1")


def one_of(
    where: str, given: dict[str, Tensor], name: str, two: tuple[int, int], text: str
) -> None:
    """Refuse elements that are neither of two numbers in one of the inputs."""
    if has_no_elements(given[name].value):
        return
    values = np.asarray(given[name])
    odd = values[(values != two[0]) & (values != two[1])]
    if odd.size:
        what = f"an element of {name} is {odd.flat[0]:g}, neither {text}"
        raise DataError(where, what, facts_of(**given))


def probabilities(
    where: str, given: dict[str, Tensor], name: str, cure: str, near: float = 0.0
) -> None:
    """Refuse elements outside [0, 1] in one of the inputs.

    near: how far outside they may be by rounding.
    """
    low, high = extremes(given[name])
    if low < -near or high > 1 + near:
        wrong = low if low < -near else high
        what = f"an element of {name} is {wrong:.4g}, not a probability from 0 to 1"
        raise DataError(where, what, facts_of(**given), cure)


def logarithms(where: str, given: dict[str, Tensor], name: str, cure: str) -> None:
    """Refuse elements above 0 in one of the inputs: no probability has such a log."""
    high = extremes(given[name])[1]
    if high > 1e-3:
        what = f"an element of {name} is {high:.4g}, not the logarithm of a probability"
        raise DataError(where, what, facts_of(**given), cure)


def made_by(x: Tensor) -> Any:
    """The op that made the values of a tensor, as its graph shows it; else None."""
    return getattr(_maker(x), "op", None)


def _maker(x: Tensor) -> Any:
    """The step of the graph that made the values, before they changed their shape."""
    node = getattr(x.value, "node", None)
    while node is not None and node.op in MOVES:
        node = node.parents[0]
    return node


def refuse_lone_softmax(where: str, given: dict[str, Tensor]) -> None:
    """Refuse predictions that a softmax over one column has made: all are 1."""
    x = next(iter(given.values()))
    node = _maker(x)
    if node is None or node.op not in (softmax, log_softmax) or not node.shape:
        return
    if node.shape[node.attrs["dim"]] == 1 and node.shape[-1] == 1:
        always = "1" if node.op is softmax else "0"
        what = f"a softmax over one column gives {always}, whatever the score"
        cure = "a sigmoid in its place, or the scores and a loss .with_logits(True)"
        raise ConfigError(where, what, facts_of(**given), cure)


def refuse_squashed(where: str, logits: Tensor, cure: str) -> None:
    """Refuse logits that a sigmoid or a softmax has made, as their graph shows."""
    op = made_by(logits)
    if op is not None and op in SQUASHES:
        what = f"logits have been through a {op.name} before the sigmoid"
        raise ConfigError(where, what, cure=cure)


def some_rows(x: Tensor) -> np.ndarray | None:
    """The first row and the last of an array of NumPy; None where there is none.

    Shapes: x [n, c] -> [1 or 2, c]
    Why: where scores stand for probabilities, nearly every row tells.
    """
    value = x.value
    while hasattr(value, "node"):
        value = value.value
    if not isinstance(value, np.ndarray) or value.ndim != 2 or not value.size:
        return None
    return value[:: max(1, len(value) - 1)]


def warn_of_sums(where: str, name: str, rows: np.ndarray | None, cure: str) -> None:
    """Warn if rows are no probabilities of all classes: the sum of each is not 1."""
    if rows is None or not rows.size:
        return
    if (np.abs(rows.sum(-1, dtype=np.float32) - 1.0) > MOST_OFF).any():
        what = f"a row of {name} does not sum to 1, as the probabilities of classes do"
        warn_caller(explain(where, what, cure=cure))


def nothing_to_choose(where: str, given: dict[str, Tensor]) -> ShapeError:
    """The error for scores of a single class, which is right whatever its score."""
    name = next(iter(given))
    what = f"{name} have one column, and of one class there is nothing to choose"
    cure = (
        "two outputs, a column for each class; or one for a yes or a no with "
        "BinaryCrossEntropyLossConfig().with_logits(True)"
    )
    return ShapeError(where, what, facts_of(**given), cure)


def whole_from_zero_to_one(x: Tensor) -> bool:
    """Whether all elements are 0 or 1; False where their values are not known yet."""
    if has_no_elements(x.value):
        return False
    values = np.asarray(x)
    return bool(((values == 0) | (values == 1)).all())


def not_below_zero(where: str, given: dict[str, Tensor], name: str) -> None:
    """Refuse negative elements in one of the inputs."""
    low = extremes(given[name])[0]
    if low < 0:
        what = f"an element of {name} is {low:g}, below 0"
        raise DataError(where, what, facts_of(**given))


def extremes(x: Tensor) -> tuple[Any, Any]:
    """The smallest and the largest element; of none, zero."""
    if has_no_elements(x.value):
        return 0, 0
    values = np.asarray(x)
    return (values.min(), values.max()) if values.size else (0, 0)


def lengths_of(x: Tensor) -> tuple[int, ...]:
    """The lengths of sequences as numbers of Python, which an op takes.

    Shapes: x [n] -> n numbers
    """
    return tuple(int(length) for length in np.asarray(x).reshape(-1))
