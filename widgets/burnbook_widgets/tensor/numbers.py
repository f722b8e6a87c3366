"""What a tensor view counts: planes, statistics, histograms.

All of it works on plain arrays. NaN and infinity never reach an average: they are
counted, marked, and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, gcd, isfinite

import numpy as np

MOST_CELLS = 20_000  # of a picture on the page
MOST_SIDE = 400
MOST_COUNTED = 1_000_000  # elements that a histogram looks at
BARS = 40
COLORS = ("around 0", "low to high")
WHOLE, MIDDLE, LOG = SCALES = ("whole range", "middle 98 %", "logarithmic")

NAN, INF, MINUS_INF = ODD = 1, 2, 4  # bits of a cell's mark
FAR = 8  # an element far outside of what the colors span
EMPTY = -128  # the code of a cell that has nothing finite


@dataclass(frozen=True)
class Plane:
    """A matrix as cells; a cell stands for `step` elements down and across.

    mean, least, most [rows, columns] of the finite elements, NaN where there are none;
    marks [rows, columns] say what is not finite.
    """

    mean: np.ndarray
    least: np.ndarray
    most: np.ndarray
    marks: np.ndarray
    shape: tuple[int, int]
    step: tuple[int, int]

    @property
    def whole(self) -> bool:
        """Whether every element has a cell of its own."""
        return self.step == (1, 1)

    def ends(self) -> tuple[float, float]:
        """The lowest and the highest mean; 0 and 0 where nothing is finite."""
        known = self.mean[~np.isnan(self.mean)]
        return (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)

    def far(self, low: float, high: float) -> np.ndarray:
        """The marks of cells with an element far outside of low to high."""
        room = float(high) - float(low)
        with np.errstate(invalid="ignore"):
            where = (self.most > high + room) | (self.least < low - room)
        return np.where(where, FAR, 0).astype(np.uint8)

    def through(self, bend: Callable[[np.ndarray], np.ndarray]) -> Plane:
        """The same plane with its means on another scale."""
        return replace(self, mean=bend(self.mean))

    def codes(self, low: float, high: float, signed: bool) -> np.ndarray:
        """Colors as int8: share of the largest size, or of the way from low to high.

        Example:
            >>> plane = cells(np.array([[-2.0, 0.0, 1.0, np.nan]]))
            >>> plane.codes(-2, 1, signed=True).tolist()
            [[-127, 0, 64, -128]]
            >>> plane.codes(-2, 1, signed=False).tolist()
            [[0, 85, 127, -128]]
        """
        known = ~np.isnan(self.mean)
        values = np.where(known, self.mean, 0.0) / 2  # so nothing overflows
        low, high = low / 2, high / 2
        with np.errstate(all="ignore"):
            if signed:
                share = values / (max(abs(low), abs(high)) or 1.0)
            elif high > low:
                share = (values - low) / (high - low)
            else:
                share = np.full(values.shape, 0.5)
        share = np.clip(np.nan_to_num(share), -1.0, 1.0)
        return np.where(known, np.rint(127 * share), EMPTY).astype(np.int8)


def cells(matrix: np.ndarray, most: int = MOST_CELLS, side: int = MOST_SIDE) -> Plane:
    """Divide a matrix into at most `most` cells, at most `side` down and across.

    Example:
        >>> plane = cells(np.arange(24.0).reshape(4, 6), most=6)
        >>> plane.step, plane.mean.tolist()
        ((2, 2), [[3.5, 5.5, 7.5], [15.5, 17.5, 19.5]])
    """
    height, width = matrix.shape
    steps = (1, 1)
    for cap in range(side, 0, -1):
        steps = (max(1, ceil(height / cap)), max(1, ceil(width / cap)))
        if ceil(height / steps[0]) * ceil(width / steps[1]) <= most:
            break
    if not matrix.size:
        nothing = np.zeros((0, 0))
        marks = nothing.astype(np.uint8)
        return Plane(nothing, nothing, nothing, marks, (height, width), (1, 1))
    counts = _counts(height, steps[0])[:, None] * _counts(width, steps[1])
    marks = np.zeros(counts.shape, np.uint8)
    finite = np.isfinite(matrix) if matrix.dtype.kind == "f" else None
    if finite is not None and not finite.all():
        rows, columns = np.nonzero(~finite)
        owners = rows // steps[0] * counts.shape[1] + columns // steps[1]
        for bit, where in zip(ODD, _odd(matrix[rows, columns]), strict=True):
            marks.reshape(-1)[owners[where]] |= bit
        counts -= np.bincount(owners, minlength=counts.size).reshape(counts.shape)
    clear = matrix if finite is None else np.where(finite, matrix, 0)
    sums = _sums(clear, steps)
    with np.errstate(all="ignore"):
        mean = np.where(counts > 0, sums / counts, np.nan)
    smallest = largest = mean
    if steps != (1, 1):
        wide = matrix.astype(np.float64)
        low = wide if finite is None else np.where(finite, wide, np.inf)
        high = wide if finite is None else np.where(finite, wide, -np.inf)
        smallest = np.where(counts > 0, _blocks(np.minimum, low, steps), np.nan)
        largest = np.where(counts > 0, _blocks(np.maximum, high, steps), np.nan)
    return Plane(mean, smallest, largest, marks, (height, width), steps)


def _counts(size: int, step: int) -> np.ndarray:
    """How many elements each cell holds along one dim; the last one may hold fewer."""
    starts = np.arange(0, size, step)
    return np.minimum(starts + step, size) - starts


def _sums(matrix: np.ndarray, steps: tuple[int, int]) -> np.ndarray:
    """The sum of every cell in float64."""
    if steps == (1, 1):
        return matrix.astype(np.float64)
    down = np.arange(0, matrix.shape[0], steps[0])
    across = np.arange(0, matrix.shape[1], steps[1])
    with np.errstate(all="ignore"):
        rows = np.add.reduceat(matrix, down, axis=0, dtype=np.float64)
        return np.add.reduceat(rows, across, axis=1)


def _blocks(of: np.ufunc, matrix: np.ndarray, steps: tuple[int, int]) -> np.ndarray:
    """The least or the largest element of every cell."""
    down = np.arange(0, matrix.shape[0], steps[0])
    across = np.arange(0, matrix.shape[1], steps[1])
    return of.reduceat(of.reduceat(matrix, down, axis=0), across, axis=1)


def _odd(array: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where an array is NaN, +inf, −inf."""
    return np.isnan(array), np.isposinf(array), np.isneginf(array)


@dataclass(frozen=True)
class Facts:
    """What there is to know about all elements of an array.

    Example:
        >>> facts = facts_of(np.array([1.0, 3.0, np.nan, np.inf]))
        >>> facts.mean, facts.std, facts.low, facts.high, facts.nan, facts.inf
        (2.0, 1.0, 1.0, 3.0, 1, 1)
    """

    size: int
    known: int  # the finite ones, over which the rest is taken
    zeros: int
    nan: int
    inf: int
    minus_inf: int
    mean: float
    std: float
    low: float  # exact: a Python int for whole numbers
    high: float

    def rows(self, kind: str = "f") -> list[tuple[str, str]]:
        """Names and texts in the order of a table; kind as in NumPy's dtype."""
        count = f"{self.size:,}"
        if kind == "b":
            true = self.known - self.zeros
            share = f" ({true / self.size:.1%})" if self.size else ""
            return [
                ("elements", count),
                ("true", f"{true:,}{share}"),
                ("false", f"{self.zeros:,}"),
            ]
        rows = [("elements", count)]
        if self.known:
            rows += [
                ("mean", short(self.mean)),
                ("std", short(self.std)),
                ("min", short(self.low)),
                ("max", short(self.high)),
            ]
        rows.append(("zeros", f"{self.zeros:,}"))
        if kind != "f":
            return rows
        odd = {"NaN": self.nan, "inf": self.inf, "-inf": self.minus_inf}
        return rows + [(name, f"{found:,}") for name, found in odd.items()]


def facts_of(array: np.ndarray) -> Facts:
    """Count and average an array of bools, whole numbers or floats."""
    nan = inf = minus = 0
    known = array
    finite = np.isfinite(array) if array.dtype.kind == "f" else None
    if finite is not None and not finite.all():
        nan, inf, minus = (int(where.sum()) for where in _odd(array[~finite]))
        known = array[finite]
    if not known.size:
        return Facts(array.size, 0, 0, nan, inf, minus, 0.0, 0.0, 0.0, 0.0)
    zeros = known.size - int(np.count_nonzero(known))
    with np.errstate(all="ignore"):
        mean = float(known.mean(dtype=np.float64))
        std = float(known.std(dtype=np.float64))
    low, high = known.min().item(), known.max().item()
    return Facts(array.size, known.size, zeros, nan, inf, minus, mean, std, low, high)


def short(number: float) -> str:
    """A number with four significant digits; a whole one in full.

    Example:
        >>> short(0.123456), short(-0.0), short(1234567)
        ('0.1235', '0', '1234567')
    """
    if isinstance(number, bool | int):
        return str(int(number))
    if not isfinite(number):
        return "too large" if number == number else "NaN"
    return f"{number + 0.0:.4g}"


def edges_of(low: float, high: float, kind: str, bars: int = BARS) -> np.ndarray:
    """Where the bars of a histogram begin and end: one bar per whole number if few.

    Example:
        >>> edges_of(0, 3, "i").tolist()
        [-0.5, 0.5, 1.5, 2.5, 3.5]
        >>> edges_of(0.0, 1.0, "f", bars=2).tolist()
        [0.0, 0.5, 1.0]
    """
    if kind in "biu" and high - low < bars:
        return np.arange(int(low), int(high) + 2) - 0.5
    if high == low:
        margin = abs(low) / 2 or 0.5
        low, high = low - margin, high + margin
    share = np.linspace(0.0, 1.0, bars + 1)
    return low * (1 - share) + high * share  # low + (high - low) … could overflow


def bars_of(array: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, int]:
    """How many finite elements lie in each bar, and of how many one was looked at.

    Example:
        >>> counts, every = bars_of(np.array([0, 1, 1, 3]), edges_of(0, 3, "i"))
        >>> counts.tolist(), every
        ([1, 2, 0, 1], 1)
    """
    every = max(1, ceil(array.size / MOST_COUNTED))
    while every > 1 and any(gcd(every, size) > 1 for size in array.shape):
        every += 1  # or it would look at the same columns again and again
    values = array.reshape(-1)[::every].astype(np.float64)
    values = values[np.isfinite(values)]
    last = len(edges) - 2
    places = np.searchsorted(edges, values, side="right") - 1
    return np.bincount(np.clip(places, 0, last), minlength=last + 1), every


def middle_of(array: np.ndarray) -> tuple[float, float]:
    """From where to where the middle 98 % of the finite elements lie.

    Example:
        >>> low, high = middle_of(np.append(np.arange(101.0), 1e6))
        >>> round(low), round(high)
        (1, 100)
    """
    values = _sample(array)
    if not values.size:
        return 0.0, 0.0
    low, high = np.percentile(values, [1.0, 99.0])
    return float(low), float(high)


def _sample(array: np.ndarray) -> np.ndarray:
    every = max(1, ceil(array.size / MOST_COUNTED))
    values = array.reshape(-1)[::every].astype(np.float64)
    return values[np.isfinite(values)]


def has_outliers(facts: Facts, middle: tuple[float, float]) -> bool:
    """Whether a few elements would leave the colors of all others pale."""
    room = middle[1] - middle[0]
    whole = float(facts.high) / 2 - float(facts.low) / 2
    return room > 0 and whole > 5 * room


def unit_of(array: np.ndarray) -> float:
    """Below which size a logarithmic scale is even: that of the smallest 5 %."""
    sizes = np.abs(_sample(array))
    sizes = sizes[sizes > 0]
    if not sizes.size:
        return 1.0
    return max(float(np.percentile(sizes, 5.0)), float(sizes.max()) * 1e-9)


def bend(values: np.ndarray, unit: float) -> np.ndarray:
    """A logarithmic scale for both signs: sign(v) · log(1 + |v| / unit).

    Example:
        >>> bend(np.array([-9.0, 0.0, 99.0]), 1.0).round(3).tolist()
        [-2.303, 0.0, 4.605]
    """
    return np.sign(values) * np.log1p(np.abs(values) / unit)


def unbend(values: np.ndarray, unit: float) -> np.ndarray:
    """The way back from `bend`."""
    return np.sign(values) * np.expm1(np.abs(values)) * unit


@dataclass(frozen=True)
class Curve:
    """A row of numbers as a line: of each place its mean, least and largest element."""

    mean: np.ndarray
    least: np.ndarray
    most: np.ndarray

    def pieces(self) -> list[tuple[int, int]]:
        """First and last place of each unbroken piece; NaN and infinity leave gaps."""
        known = np.concatenate(([0], ~np.isnan(self.mean), [0])).astype(int)
        edges = np.flatnonzero(np.diff(known)).reshape(-1, 2)
        return [(int(first), int(last) - 1) for first, last in edges]


def span(first: int, step: int, size: int) -> str:
    """The positions that a cell stands for: `5`, or `32…63`."""
    last = min(first + step, size) - 1
    return str(first) if last <= first else f"{first}…{last}"


def printed(shape: Sequence[int], threshold: int, edge_items: int) -> int:
    """How many elements a text of these options holds."""
    size = int(np.prod(shape, dtype=object)) if shape else 1
    rows = int(np.prod(shape[:-1], dtype=object)) if len(shape) > 1 else 1
    if max(size, rows) <= threshold:
        return size
    kept = [min(n, 2 * edge_items) if n > 2 * edge_items else n for n in shape]
    return int(np.prod(kept, dtype=object))
