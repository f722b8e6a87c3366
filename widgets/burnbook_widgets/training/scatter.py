"""A metric of several runs over a field of their configs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from burnbook.train import Run
from burnbook.train.runs.show import different_fields
from burnbook_widgets.axes import Axes, log_ticks, ticks
from burnbook_widgets.drawing import Drawing, Line, Mark, Words, columns
from burnbook_widgets.pictures import plain, same_digits

WIDE, HIGH = 560, 260
NAMED = 14  # runs that have their names beside their marks
MOST_KINDS = 12  # different texts along an axis
LETTER = 6.6


@dataclass(frozen=True)
class Spot:
    """A run in the picture: the field's value and the metric's best one."""

    run: str
    x: Any
    y: float
    chosen: bool = False


def fields_of(runs: Sequence[Run]) -> list[str]:
    """The fields that differ between runs, and that a run can stand over."""
    configs = [run.config for run in runs]
    found: list[str] = []
    for name in different_fields(configs):
        values = [config[name] for config in configs if name in config]
        if all(isinstance(value, int | float | str | None) for value in values):
            found.append(name)
    return found


def bests(runs: Sequence[Run], metric: str) -> dict[str, float]:
    """The metric's best of each run that has one; it is read from the run's files."""
    found: dict[str, float] = {}
    for run in runs:
        splits = {split for name, split in run.metrics if name == metric}
        split = next((s for s in ("valid", "test", "train") if s in splits), None)
        best = run.best(metric, split) if split else None
        if best is not None and math.isfinite(best[1]):
            found[run.name] = best[1]
    return found


def spots(
    runs: Sequence[Run], metric: str, field: str, chosen: Sequence[str] = ()
) -> list[Spot]:
    """The runs that have both the metric and the field."""
    found = bests(runs, metric)
    return [
        Spot(run.name, run.config[field], found[run.name], run.name in chosen)
        for run in runs
        if run.name in found and field in run.config
    ]


def scatter(found: Sequence[Spot], metric: str, field: str) -> Drawing:
    """A mark for each run; numbers that span decades stand on a logarithmic axis."""
    kinds = _kinds(found)
    places = [_place(spot.x, kinds) for spot in found]
    log = not kinds and len(places) > 1 and min(places) > 0
    log = log and max(places) / min(places) >= 50
    across = math.log if log else float
    low, high = _ends([across(place) for place in places])
    bottom, top = _ends([spot.y for spot in found])
    marks = ticks(bottom, top, 5)
    texts = same_digits(marks)
    left = 20 + LETTER * max(map(len, texts), default=1)
    room = (left, WIDE - 20, 40, HIGH - 46)
    box = Axes((low, high), (bottom, top), *room)
    sheet = Drawing(WIDE, HIGH, _words(found, metric, field))
    sheet.add(Words((8, 16), f"best {metric} over {field}", bold=True))
    for value, text in zip(marks, texts, strict=True):
        x, y = box.at(low, value)
        sheet.add(Line(((x, y), (box.right, y)), "quiet", 0.6, 0.5))
        sheet.add(Words((x - 6, y + 4), text, "ink", 11, "end"))
    for value, text in _stops(places, kinds, log):
        x, y = box.at(across(value), bottom)
        sheet.add(Line(((x, y), (x, y + 4)), "quiet", 1.0))
        sheet.add(Words((x, y + 17), text, "ink", 11, "middle"))
    corner = ((box.left, box.top), (box.left, box.bottom), (box.right, box.bottom))
    sheet.add(Line(corner, "quiet", 1.0))
    middle = (box.left + box.right) / 2
    scale = f"{field}, logarithmic" if log else field
    sheet.add(Words((middle, HIGH - 10), scale, "ink", 11, "middle"))
    taken: list[tuple[float, float, float]] = []
    for spot, place in zip(found, places, strict=True):
        x, y = box.at(across(place), spot.y)
        role, shape = ("valid", "square") if spot.chosen else ("train", "circle")
        sheet.add(Mark((x, y), role, shape, 5.0 if spot.chosen else 4.0))
        if len(found) <= NAMED or spot.chosen:
            _name(sheet, spot.run, (x, y), taken)
    return sheet


def _name(
    sheet: Drawing,
    name: str,
    at: tuple[float, float],
    taken: list[tuple[float, float, float]],
) -> None:
    """The name of a run beside its mark, where no other name stands."""
    short = name if columns(name) <= 22 else f"…{name[-21:]}"
    wide = LETTER * columns(short)
    x, y = at
    left = x + 9 if x + 9 + wide < sheet.width else x - 9 - wide
    for down in (4, 16, -8, 28, -20):
        here = (left, left + wide, y + down)
        if all(
            here[1] < a or b < here[0] or abs(here[2] - c) > 10 for a, b, c in taken
        ):
            taken.append(here)
            sheet.add(Words((left, y + down), short, "ink", 10))
            return


def _kinds(found: Sequence[Spot]) -> list[str]:
    """The different texts along the axis; none if all are numbers."""
    if all(isinstance(s.x, int | float) and not isinstance(s.x, bool) for s in found):
        return []
    return sorted({str(spot.x) for spot in found})


def _place(value: Any, kinds: Sequence[str]) -> float:
    return float(kinds.index(str(value))) if kinds else float(value)


def _stops(
    places: Sequence[float], kinds: Sequence[str], log: bool
) -> list[tuple[float, str]]:
    """Where the axis of the field has a word or a number."""
    if kinds:
        most = max(4, 84 // max(1, min(len(kinds), MOST_KINDS)))
        cut = [kind if len(kind) <= most else f"{kind[: most - 1]}…" for kind in kinds]
        every = max(1, math.ceil(len(kinds) / MOST_KINDS))
        return [(float(i), cut[i]) for i in range(0, len(cut), every)]
    low, high = min(places, default=0.0), max(places, default=1.0)
    if log:
        found = log_ticks(low, high)
        return [(value, plain(value)) for value in found]
    different = sorted(set(places))
    if len(different) <= 6:
        return [(value, plain(value)) for value in different]
    found = ticks(low, high, 6)
    return list(zip(found, same_digits(found), strict=True))


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """A little more than the values span."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.06 * (high - low) or 0.1 * abs(high) or 0.5
    return low - room, high + room


def _words(found: Sequence[Spot], metric: str, field: str) -> str:
    head = f"best {metric} over {field}"
    said = [f"{s.run}: {plain(s.y)} at {_said(s.x)}" for s in found[:NAMED]]
    more = f"; and {len(found) - NAMED} more runs" if len(found) > NAMED else ""
    return f"{head}. {'; '.join(said) or 'no run has both'}{more}"


def _said(value: Any) -> str:
    return plain(float(value)) if isinstance(value, int | float) else str(value)
