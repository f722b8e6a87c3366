"""Rates, and a still picture of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from burnbook.core.errors import ConfigError
from burnbook.lr_scheduler import ModuleLrScheduler, as_scheduler
from burnbook_widgets.axes import Axes, log_ticks, ticks
from burnbook_widgets.drawing import Drawing, Line, Words, columns

STYLES: tuple[tuple[str, tuple[float, ...]], ...] = (
    ("train", ()),
    ("valid", (8.0, 4.0)),
    ("run0", (2.0, 3.0)),
    ("run1", (10.0, 3.0, 2.0, 3.0)),
    ("run2", (5.0, 2.0)),
    ("run3", (14.0, 4.0)),
    ("run4", (2.0, 2.0, 6.0, 2.0)),
    ("run5", (1.0, 4.0)),
)
WIDE, HIGH = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 14, 26, 46
POINTS = 400  # of a line that is sent


def rates(config: Any, steps: int) -> np.ndarray:
    """The first `steps` learning rates of a config, a scheduler or a number.

    A scheduler is copied first: it stays where it stands.

    Example:
        >>> from burnbook.lr_scheduler import LinearLrSchedulerConfig
        >>> rates(LinearLrSchedulerConfig(1.0, 0.5, 2), 4).tolist()
        [1.0, 0.75, 0.5, 0.5]
    """
    ready = hasattr(config, "step") and not hasattr(config, "init")
    made = config.init() if hasattr(config, "init") else copy.deepcopy(config)
    schedule = made if ready or hasattr(made, "step") else as_scheduler(made)
    if isinstance(schedule, ModuleLrScheduler):
        raise ConfigError(
            "SchedulePlot",
            "ModuleLrScheduler gives a rate for each group, not one",
            cure="a plot of the schedules of its groups",
        )
    return np.array([schedule.step() for _ in range(steps)], dtype=float)


def chosen_steps(steps: int) -> np.ndarray:
    """Which steps are drawn: all, or some that are spread evenly."""
    if steps <= POINTS:
        return np.arange(steps)
    return np.unique(np.linspace(0, steps - 1, POINTS).round().astype(int))


def y_range(lines: Sequence[np.ndarray], log: bool) -> tuple[float, float]:
    """From where to where rates are shown; a logarithmic axis has no zero."""
    every = np.concatenate(lines) if lines else np.empty(0)
    every = every[np.isfinite(every)]
    if log:
        every = every[every > 0]
    if not every.size:
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = float(every.min()), float(every.max())
    if log:
        low, high = low / 1.15, high * 1.15
        return (low, high) if high / low > 1.5 else (low / 2, high * 2)
    return 0.0, 1.06 * high or 1.0


def y_ticks(low: float, high: float, log: bool) -> list[float]:
    """The round numbers of the axis of rates."""
    return log_ticks(low, high) if log else ticks(low, high)


def tick_text(value: float) -> str:
    """A rate at an axis, with the digits that tell it from its neighbors.

    Example:
        >>> tick_text(0.05), tick_text(1e-6), tick_text(1.5e-4)
        ('0.05', '1e−6', '1.5e−4')
    """
    if value >= 1e-3 or not value:
        text = f"{value:g}"
    else:
        every = (f"{value:.{digits}e}" for digits in range(6))
        text = next((t for t in every if math.isclose(float(t), value)), f"{value:.5e}")
    return text.replace("e-0", "e-").replace("-", "−")


def picture(lines: Mapping[str, np.ndarray], places: Sequence[int], log: bool) -> str:
    """The rates as SVG; `places` give each line its color and dashes."""
    steps = max((len(line) for line in lines.values()), default=1)
    rows = math.ceil(len(lines) / 3)
    about = f"learning rates over {steps} steps: {', '.join(lines)}"
    sheet = Drawing(WIDE, HIGH + 22 * rows, about)
    low, high = y_range(list(lines.values()), log)
    span = (0.0, float(max(1, steps - 1)))
    box = Axes(
        span, (low, high), LEFT, WIDE - RIGHT, TOP, HIGH - BOTTOM, log
    )  # fmt: skip
    for value in y_ticks(low, high, log):
        (x, y), (end, _) = box.at(span[0], value), box.at(span[1], value)
        sheet.add(Line(((x, y), (end, y)), "quiet", 0.6, 0.5))
        sheet.add(Words((x - 7, y + 4), tick_text(value), "ink", 11, "end"))
    for value in ticks(*span, 6, whole=True):
        x, y = box.at(value, low)
        sheet.add(Line(((x, y), (x, y + 4)), "quiet", 1.0))
        sheet.add(Words((x, y + 17), f"{value:g}", "ink", 11, "middle"))
    corner = ((box.left, box.top), (box.left, box.bottom), (box.right, box.bottom))
    sheet.add(Line(corner, "quiet", 1.0))
    middle = (box.left + box.right) / 2
    sheet.add(Words((middle, box.bottom + 36), "step", "ink", 11, "middle"))
    scale = "learning rate, logarithmic" if log else "learning rate"
    sheet.add(Words((4, 13), scale, "ink", 11))
    for place, line in zip(places, lines.values(), strict=True):
        role, dash = STYLES[place]
        for part in _pieces(line, log):
            points = tuple(box.at(float(i), float(line[i])) for i in part)
            sheet.add(Line(points, role, 2.0, 1.0, dash))
    for i, (name, place) in enumerate(zip(lines, places, strict=True)):
        role, dash = STYLES[place]
        left, down = LEFT + 190 * (i % 3), HIGH + 22 * (i // 3) + 8
        sheet.add(Line(((left, down - 4), (left + 34, down - 4)), role, 2.0, 1.0, dash))
        short = name if columns(name) <= 19 else f"{name[:18]}…"
        sheet.add(Words((left + 42, down), short, "ink", 12))
    return sheet.svg()


def _pieces(line: np.ndarray, log: bool) -> list[list[int]]:
    """The steps of each unbroken piece of a line; a log axis leaves zeros out."""
    pieces: list[list[int]] = [[]]
    for i in chosen_steps(len(line)).tolist():
        if np.isfinite(line[i]) and (line[i] > 0 or not log):
            pieces[-1].append(i)
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]
