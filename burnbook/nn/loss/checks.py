"""Building blocks · Module. What the losses ask of their inputs, in one wording."""

from typing import Any

import numpy as np

from burnbook.errors import BackendError, DataError, DimError, KindError, ShapeError
from burnbook.kinds import Float, Int, Kind
from burnbook.tensor import Tensor


def rows(given: dict[str, Tensor]) -> list[tuple[str, str]]:
    """One line per input: its name, kind, shape and backend."""
    shown: list[tuple[str, str]] = []
    for name, t in given.items():
        shape = list(t.dims())
        shown.append((name, f"{t.kind.__name__} {shape}  on {t.device()!r}"))
    return shown


def fit(where: str, given: dict[str, Tensor], **kinds: Kind) -> None:
    """Refuse inputs that are no tensors, of another kind, or on several backends.

    kinds: those that are not Float.
    """
    for name, t in given.items():
        if not isinstance(t, Tensor):
            what = f"{name} is {type(t).__name__}, not a tensor"
            cure = "Tensor.from_data(…, device)"
            raise KindError(where, what, cure=cure)
    for name, t in given.items():
        kind = kinds.get(name, Float)
        if t.kind is not kind:
            what = f"{name} must be {kind.__name__}"
            cure = f"{name}.{kind.__name__.lower()}()"
            raise KindError(where, what, rows(given), cure)
    first = next(iter(given.values())).device()
    for name, t in given.items():
        if t.device() is not first:
            what = "all inputs must live on one backend"
            raise BackendError(where, what, rows(given), f"{name}.to_device({first!r})")


def fit_one_shape(where: str, given: dict[str, Tensor], **kinds: Kind) -> None:
    """Refuse in addition inputs whose shapes differ.

    Why: sizes of 1 would stretch, and [32, 1] against [1, 32] give 32 · 32 losses.
    """
    fit(where, given, **kinds)
    if len({t.dims() for t in given.values()}) > 1:
        *names, last = given
        what = f"{', '.join(names)} and {last} must have one shape"
        raise ShapeError(where, what, rows(given))


def one_class_each(where: str, given: dict[str, Tensor]) -> None:
    """Refuse targets, the second input, that are not a class for each row of scores."""
    (scores, x), (name, targets) = given.items()
    fit(where, given, **{name: Int})
    if x.rank != 2 or targets.dims() != x.dims()[:1]:
        raise ShapeError(where, f"{scores} must be [n, c] and {name} [n]", rows(given))
    classes, low, high = x.dims()[1], *extremes(targets)
    if low < 0 or high >= classes:
        wrong = low if low < 0 else high
        what = f"{name} {wrong} is not one of the {classes} classes"
        cure = f"{name} from 0 to {classes - 1}"
        raise DimError(where, what, rows(given), cure)


def signs(where: str, given: dict[str, Tensor], name: str) -> None:
    """Refuse elements that are neither 1 nor −1 in one of the inputs."""
    one_of(where, given, name, (1, -1), "1 nor −1")


def one_of(
    where: str, given: dict[str, Tensor], name: str, two: tuple[int, int], text: str
) -> None:
    """Refuse elements that are neither of two numbers in one of the inputs."""
    values = np.asarray(given[name])
    odd = values[(values != two[0]) & (values != two[1])]
    if odd.size:
        what = f"an element of {name} is {odd.flat[0]:g}, neither {text}"
        raise DataError(where, what, rows(given))


def not_below_zero(where: str, given: dict[str, Tensor], name: str) -> None:
    """Refuse negative elements in one of the inputs."""
    low = extremes(given[name])[0]
    if low < 0:
        what = f"an element of {name} is {low:g}, below 0"
        raise DataError(where, what, rows(given))


def extremes(x: Tensor) -> tuple[Any, Any]:
    """The smallest and the largest element; of none, zero."""
    values = np.asarray(x)
    return (values.min(), values.max()) if values.size else (0, 0)


def lengths_of(x: Tensor) -> tuple[int, ...]:
    """The lengths of sequences as numbers of Python, which an op takes.

    Shapes: x [n] -> n numbers
    """
    return tuple(int(length) for length in np.asarray(x).reshape(-1))
