"""Scales of the finished picture: ticks, axes, marks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from burnbook_widgets.drawing import Area, Point


def ticks(low: float, high: float, count: int = 5, whole: bool = False) -> list[float]:
    """Round numbers between low and high: multiples of 1, 2 or 5 times a power of ten.

    Example:
        >>> ticks(0.0, 2.3)
        [0.0, 0.5, 1.0, 1.5, 2.0]
        >>> ticks(0, 3, whole=True)
        [0.0, 1.0, 2.0, 3.0]
    """
    rough = (high - low) / max(count, 1)
    if not math.isfinite(rough) or rough <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = min(
        (m * power for m in (1, 2, 5, 10)), key=lambda s: abs(math.log(s / rough))
    )
    if whole:
        step = max(1.0, round(step))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    digits = 1 - math.floor(math.log10(step))  # those of a step, however small it is
    return [round(k * step, digits) + 0.0 for k in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten, with twos and fives within two decades.

    Example:
        >>> log_ticks(0.09, 4.0), log_ticks(1e-6, 1.0)[:2]
        ([0.1, 0.2, 0.5, 1.0, 2.0], [1e-06, 1e-05])
    """
    decades = math.log10(high / low)
    if decades < 0.7:
        return ticks(low, high, 4)
    steps = (1, 2, 5) if decades <= 2 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    kept = [k for k in powers if k % math.ceil(decades / 7) == 0]
    values = [float(f"{m}e{k}") for k in kept for m in steps]
    return [value for value in values if low <= value <= high]


@dataclass(frozen=True)
class Axes:
    """A box on the sheet with the ranges of values it shows."""

    x: tuple[float, float]
    y: tuple[float, float]
    left: float
    right: float
    top: float
    bottom: float
    log: bool = False

    def at(self, x: float, y: float) -> Point:
        """Where a value lies on the sheet, kept inside the box."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        low, high = self.y
        if self.log:
            y, low, high = math.log(max(y, low)), math.log(low), math.log(high)
        up = (y - low) / (high - low)
        across, up = min(max(across, 0.0), 1.0), min(max(up, 0.0), 1.0)
        return (
            self.left + across * (self.right - self.left),
            self.bottom - up * (self.bottom - self.top),
        )


RUN_MARK = ("up", "diamond", "plus", "down", "cross", "bar")
OUTLINES = {
    "up": ((0, -1.2), (1.1, 0.8), (-1.1, 0.8)),
    "down": ((0, 1.2), (1.1, -0.8), (-1.1, -0.8)),
    "diamond": ((0, -1.3), (1.1, 0), (0, 1.3), (-1.1, 0)),
    "plus": (
        *((-1.2, -0.35), (-0.35, -0.35), (-0.35, -1.2), (0.35, -1.2), (0.35, -0.35)),
        *((1.2, -0.35), (1.2, 0.35), (0.35, 0.35), (0.35, 1.2), (-0.35, 1.2)),
        *((-0.35, 0.35), (-1.2, 0.35)),
    ),
    "cross": (
        *((-1.2, -0.8), (-0.8, -1.2), (0, -0.4), (0.8, -1.2), (1.2, -0.8), (0.4, 0)),
        *((1.2, 0.8), (0.8, 1.2), (0, 0.4), (-0.8, 1.2), (-1.2, 0.8), (-0.4, 0)),
    ),
    "bar": ((-0.4, -1.3), (0.4, -1.3), (0.4, 1.3), (-0.4, 1.3)),
}


def run_mark(at: Point, run: int, size: float = 3.6) -> Area:
    """The mark of another run: a shape of its own, so that color is not needed."""
    points = tuple(
        (at[0] + x * size, at[1] + y * size) for x, y in OUTLINES[RUN_MARK[run]]
    )
    return Area(points, f"run{run}", 1.0)
