"""How close two tensors are, at eight tolerances at once.

`check_closeness(a, b)` returns a report: `print` shows the book's text, a notebook
shows a table, and `.data` has the numbers. Two modules and their inputs are compared
layer by layer, two records parameter by parameter.
"""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from burnbook.core.dropped import is_dropped
from burnbook.core.dtypes import Float
from burnbook.core.errors import KindError, ShapeError
from burnbook.tensor.closeness_layers import is_module, is_torch, layers, parameters
from burnbook.tensor.data import TensorData
from burnbook.tensor.facts import kind_and_shape
from burnbook.tensor.tensor import Tensor

EPSILONS = tuple(float(f"1e-{k}") for k in range(1, 9))
EPSILON = 1e-4  # the tolerance by which whole layers are judged
WORST = 8  # of the elements that differ, as many are kept with their values
VERDICTS = {
    "PASS": "All elements are within tolerance",
    "WARN": "Most elements are within tolerance",
    "FAIL": "Significant differences detected",
}


def check_closeness(output: Any, expected: Any, inputs: Any = None) -> Any:
    """Compare two tensors, NumPy arrays or PyTorch tensors, element by element.

    The report is returned; a call whose result nobody takes prints it, as in Burn.

    An element is close where |output − expected| ≤ ε + ε |expected|, for ε = 1e-1 …
    1e-8. Two modules, ours or PyTorch's, are run on `inputs` (one tensor, or a tuple of
    arguments) and compared layer by layer; two records, dicts of arrays, or modules
    without inputs, parameter by parameter.

    Example:
        >>> report = check_closeness(np.float32([1, 2]), np.float32([1, 2.1]))
        >>> report.level(1e-1).close, report.level(1e-2).close
        (2, 1)
    """
    report = _compared(output, expected, inputs)
    if is_dropped(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage] - documented
        sys.stdout.write(f"{report}\n")
    return report


def _compared(output: Any, expected: Any, inputs: Any) -> Any:
    """The report on two tensors, modules or records."""
    if is_module(output) and is_module(expected):
        if inputs is None:
            return _compare(parameters(output), parameters(expected), "Parameter")
        given = inputs if isinstance(inputs, tuple) else (inputs,)
        return _compare(layers(output, given), layers(expected, given), "Layer")
    if isinstance(output, dict) and isinstance(expected, dict):
        return _compare(
            dict(_leaves(output, "")), dict(_leaves(expected, "")), "Parameter"
        )
    return _report(_array("output", output), _array("expected", expected))


@dataclass(frozen=True)
class Level:
    """How many elements are close at one tolerance."""

    epsilon: float
    close: int
    total: int

    @property
    def percent(self) -> float:
        """The share of close elements; all of nothing is everything."""
        return self.close / self.total * 100 if self.total else 100.0

    @property
    def percent_text(self) -> str:
        """The share with two decimals; never rounded to all or to none.

        Example:
            >>> Level(1e-5, 999_998, 1_000_000).percent_text
            '99.99%'
        """
        if 0 < self.close < self.total:
            return f"{min(max(self.percent, 0.01), 99.99):.2f}%"
        return f"{self.percent:.2f}%"

    @property
    def verdict(self) -> str:
        """PASS when all are close, WARN when at least 90 % are, FAIL otherwise."""
        if self.close == self.total:
            return "PASS"
        return "WARN" if self.percent >= 90 else "FAIL"

    @property
    def data(self) -> dict[str, Any]:
        """The same as a dict."""
        numbers = {"epsilon": self.epsilon, "close": self.close, "total": self.total}
        return {**numbers, "percent": self.percent, "verdict": self.verdict}


@dataclass(frozen=True)
class Difference:
    """One element that differs: its place, both values, how far they are apart."""

    place: tuple[int, ...]
    output: float
    expected: float
    apart: float


@dataclass(frozen=True, repr=False)
class ClosenessReport:
    """The eight tolerances, and the largest differences with their places.

    `print(report)` is the book's text, in colors on a terminal (unless NO_COLOR is
    set); a notebook shows a table; `.data` is a list of plain dicts; `.worst` are the
    elements that differ most.
    """

    levels: tuple[Level, ...]
    shape: tuple[int, ...]
    largest: float
    place: tuple[int, ...] | None
    worst: tuple[Difference, ...] = ()

    @property
    def data(self) -> list[dict[str, Any]]:
        """One dict per tolerance: epsilon, close, total, percent, verdict."""
        return [level.data for level in self.levels]

    def level(self, epsilon: float) -> Level:
        """The result at one of the tolerances: `report.level(1e-3)`."""
        return next(x for x in self.levels if np.isclose(x.epsilon, epsilon, atol=0))

    @property
    def within(self) -> float | None:
        """The smallest tolerance that all elements keep; None if there is none."""
        kept = [level.epsilon for level in self.levels if level.verdict == "PASS"]
        return min(kept, default=None)

    def text(self, color: bool | None = None) -> str:
        """The book's report; `color` None means: on a terminal without NO_COLOR."""
        paint = _painter(color)
        lines = [paint("bold", "Tensor Closeness Check Results:"), RULE]
        for level in self.levels:
            tag = paint(level.verdict, f"[{level.verdict}]")
            count = f"{level.close}/{level.total} ({level.percent_text})"
            lines.append(f"{paint('bold', 'Epsilon:')} {_power(level.epsilon)}")
            lines.append(f"  Close elements: {count}")
            lines.append(f"  {tag} {VERDICTS[level.verdict]}")
            lines.append("")
        return "\n".join([*lines, paint("bold", "Closeness check complete.")])

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            (
                _power(level.epsilon),
                f"{level.close}/{level.total}",
                _bar(level),
                _badge(level.verdict),
                VERDICTS[level.verdict],
            )
            for level in self.levels
        ]
        head = ("epsilon", "close", "", "", "")
        note = f"shape {list(self.shape)} · {self.difference}"
        return _table("Tensor closeness", note, head, rows)

    @property
    def difference(self) -> str:
        """The largest difference and its place, in words."""
        where = "" if self.place is None else f" at {list(self.place)}"
        return f"largest difference {self.largest:.4g}{where}"


@dataclass(frozen=True)
class Pair:
    """One layer, or one parameter, of two modules: its report, or why there is none."""

    name: str
    report: ClosenessReport | None
    problem: str = ""

    def verdict(self, epsilon: float) -> str:
        """PASS, WARN or FAIL at one tolerance; FAIL where nothing can be compared."""
        return self.report.level(epsilon).verdict if self.report else "FAIL"


@dataclass(frozen=True, repr=False)
class LayersReport:
    """Two modules layer by layer, or two records parameter by parameter.

    Each is judged at one tolerance, `epsilon`; `report["conv1"]` has all eight.
    """

    pairs: tuple[Pair, ...]
    what: str
    epsilon: float = EPSILON

    @property
    def first_difference(self) -> str | None:
        """The name of the first layer that is not close everywhere."""
        names = (p.name for p in self.pairs if p.verdict(self.epsilon) != "PASS")
        return next(names, None)

    @property
    def data(self) -> list[dict[str, Any]]:
        """One dict per layer: name, verdict, and its report's data or its problem."""
        return [
            {
                "name": pair.name,
                "verdict": pair.verdict(self.epsilon),
                "levels": pair.report.data if pair.report else [],
                "largest": pair.report.largest if pair.report else None,
                "problem": pair.problem,
            }
            for pair in self.pairs
        ]

    def __getitem__(self, name: str) -> ClosenessReport | None:
        """The report of one layer: its eight tolerances."""
        return next(pair.report for pair in self.pairs if pair.name == name)

    def text(self, color: bool | None = None) -> str:
        """One line per layer; `color` as with ClosenessReport."""
        paint = _painter(color)
        width = max((len(pair.name) for pair in self.pairs), default=0)
        title = f"{self.what} Closeness Check Results (epsilon {_power(self.epsilon)}):"
        lines = [paint("bold", title), RULE]
        for pair in self.pairs:
            verdict = pair.verdict(self.epsilon)
            tag = paint(verdict, f"[{verdict}]")
            lines.append(f"  {tag} {pair.name:<{width}}  {_facts(pair)}")
        return "\n".join([*lines, "", paint("bold", self._summary())])

    def _summary(self) -> str:
        first = self.first_difference
        if first is None:
            return f"All {len(self.pairs)} are close."
        return f"The first difference is in {first}."

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            (escape(p.name), _badge(p.verdict(self.epsilon)), escape(_facts(p)))
            for p in self.pairs
        ]
        note = f"epsilon {_power(self.epsilon)} · {self._summary()}"
        return _table(f"{self.what} closeness", note, (self.what.lower(), "", ""), rows)


RULE = "==============================="
CODES = {"bold": "1", "PASS": "32", "WARN": "33", "FAIL": "31"}
SIGNS = {"PASS": "✓", "WARN": "!", "FAIL": "✗"}
TINTS = {"PASS": "0,158,115", "WARN": "230,159,0", "FAIL": "213,94,0"}


def _report(output: np.ndarray, expected: np.ndarray) -> ClosenessReport:
    if output.shape != expected.shape:
        raise ShapeError(
            "check_closeness",
            f"the shapes {list(output.shape)} and {list(expected.shape)} differ",
            [("output", str(list(output.shape))), ("expected", f"{[*expected.shape]}")],
        )
    dtype = np.result_type(output, expected, np.float32)
    a, b = output.astype(dtype, copy=False), expected.astype(dtype, copy=False)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.where(a == b, 0, np.abs(a - b))
        size = np.abs(b)
        # ∞ is close to itself alone, NaN to nothing, as with `is_close`.
        known = np.isfinite(apart)
        counts = [np.count_nonzero(known & (apart <= e + e * size)) for e in EPSILONS]
    levels = tuple(
        Level(e, int(n), a.size) for e, n in zip(EPSILONS, counts, strict=True)
    )
    worst = _worst(a, b, apart)
    largest, place = (worst[0].apart, worst[0].place) if worst else (0.0, None)
    return ClosenessReport(levels, tuple(a.shape), largest, place, worst)


def _worst(a: np.ndarray, b: np.ndarray, apart: np.ndarray) -> tuple[Difference, ...]:
    """The elements that differ most, NaN before all; among equals the first ones."""
    size = np.where(np.isnan(apart), np.inf, apart).ravel()
    count = min(WORST, int(np.count_nonzero(size)))
    if not count:
        return ()
    least = np.partition(size, -count)[-count]
    above = np.flatnonzero(size > least)
    at = np.concatenate([above, np.flatnonzero(size == least)[: count - len(above)]])
    found: list[Difference] = []
    for flat in at[np.argsort(-size[at], kind="stable")]:
        place = tuple(int(i) for i in np.unravel_index(int(flat), a.shape))
        values = (float(array[place]) for array in (a, b, apart))
        found.append(Difference(place, *values))
    return tuple(found)


def _array(where: str, value: Any) -> np.ndarray:
    """The numbers of a tensor of ours, of PyTorch's, or of anything NumPy reads."""
    if isinstance(value, Tensor):
        if value.kind is not Float:
            facts = [(where, kind_and_shape(value))]
            raise KindError("check_closeness", "takes Float", facts)
        return value.backend.to_numpy(value.value)
    if isinstance(value, TensorData):
        return value.to_numpy()
    if is_torch(value):
        value = value.detach().cpu()
        exact = "float64" in str(value.dtype)
        return (value.double() if exact else value.float()).numpy()
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        raise KindError(
            "check_closeness",
            "compares tensors, arrays, modules with modules, records with records",
            [(where, type(value).__name__)],
        )
    return array


def _compare(a: dict[str, Any], b: dict[str, Any], what: str) -> LayersReport:
    """Pair by name; where the names differ but the number is equal, by order."""
    names = {name: name for name in a}
    same = (a.keys() & b.keys()) - {"output"}  # of whole modules, whatever their parts
    if not same and len(a) == len(b) and "output" not in [*a][:-1] + [*b][:-1]:
        names = dict(zip(a, b, strict=True))
    pairs: list[Pair] = []
    for name, other in names.items():
        label = name if name == other else f"{name} | {other}"
        if other not in b:
            pairs.append(Pair(label, None, "only in the first"))
        elif a[name].shape != b[other].shape:
            shapes = f"shapes {list(a[name].shape)} and {list(b[other].shape)}"
            pairs.append(Pair(label, None, shapes))
        else:
            pairs.append(Pair(label, _report(a[name], b[other])))
    taken = set(names.values())
    pairs += [Pair(name, None, "only in the second") for name in b if name not in taken]
    return LayersReport(tuple(pairs), what)


def _leaves(record: Any, path: str) -> Iterator[tuple[str, np.ndarray]]:
    """Every tensor of a record with its path: "conv1.weight"."""
    data = getattr(record, "param", record)
    if isinstance(data, (TensorData, Tensor, np.ndarray)) or is_torch(data):
        yield path, _array(path, data)
    elif isinstance(data, (dict, list, tuple)):
        items = data.items() if isinstance(data, dict) else enumerate(data)
        for name, held in items:
            yield from _leaves(held, f"{path}.{name}" if path else str(name))


def _facts(pair: Pair) -> str:
    report = pair.report
    if report is None:
        return pair.problem
    within = "" if report.within is None else f"within {_power(report.within)}, "
    return f"{list(report.shape)}  {within}{report.difference}"


def _power(epsilon: float) -> str:
    return np.format_float_scientific(epsilon, trim="-", exp_digits=1)


def _painter(color: bool | None) -> Callable[[str, str], str]:
    """A function that paints text as the terminal wants it, or leaves it plain."""
    if color is None:
        stream = sys.stdout
        terminal = stream is not None and stream.isatty()
        color = terminal and not os.environ.get("NO_COLOR")
    if not color:
        return _plain
    return _painted


def _plain(name: str, text: str) -> str:
    return text


def _painted(name: str, text: str) -> str:
    return f"\x1b[{CODES[name]}m{text}\x1b[0m"


def _badge(verdict: str) -> str:
    tint = TINTS[verdict]
    style = f"border:1px solid rgb({tint});background:rgba({tint},.18);padding:0 5px"
    return f'<span style="{style};border-radius:3px">{SIGNS[verdict]} {verdict}</span>'


def _bar(level: Level) -> str:
    outer = "display:inline-block;width:100px;height:9px;border:1px solid currentColor"
    wide = f"width:{level.percent:.0f}%"
    inner = f"display:block;{wide};height:9px;background:currentColor"
    text = level.percent_text
    label = f'role="img" aria-label="{text.removesuffix("%")} percent"'
    return (
        f'<span {label} style="{outer};opacity:.7"><span style="{inner}"></span></span>'
        f" {text}"
    )


def _table(title: str, note: str, head: tuple[str, ...], rows: Any) -> str:
    """A still table that takes its colors from the page."""
    cell = "text-align:left;padding:2px 10px 2px 0"
    top = "".join(f'<th scope="col" style="{cell}">{name}</th>' for name in head)
    body = "".join(
        "<tr>" + "".join(f'<td style="{cell}">{part}</td>' for part in row) + "</tr>"
        for row in rows
    )
    return (
        '<div style="font-size:13px;line-height:1.5;overflow-x:auto">'
        f'<b>{escape(title)}</b> <span style="opacity:.75">{escape(note)}</span>'
        f'<table style="border-collapse:collapse"><tr>{top}</tr>{body}</table></div>'
    )
