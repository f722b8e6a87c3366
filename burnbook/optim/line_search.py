"""Line search: how far to go in a direction.

A good step lowers the loss by its share of what the slope promised (enough gained), and
ends where the slope is much flatter (far enough). These two are the strong conditions
of Wolfe; the search first walks until they lie between two points, then closes in.

Source: Nocedal & Wright, Numerical Optimization, chapter 3.5.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from burnbook.tensor import Tensor

ENOUGH, FLAT = 1e-4, 0.9  # c₁ and c₂
MOST = 25  # points to look at after the first


class Point(NamedTuple):
    """A place on the line: how far, the loss there, its gradient, the slope."""

    t: float
    loss: float
    grad: Tensor
    slope: float


Look = Callable[[float], Point]


def strong_wolfe(
    look: Look, start: Point, t: float, reach: float, tolerance: float, most: int = MOST
) -> tuple[Point, int]:
    """The best point that was found from t on, and how many were looked at.

    reach: the largest element of the direction. Closing in ends where what lies between
    the two points moves no parameter by more than the tolerance.
    """
    search = _Search(look, start)
    low, high, tries, done = _walk(search, t, most)
    if done or high is None:
        return low, search.count
    return _close_in(search, low, high, reach, tolerance, most - tries)


class _Search:
    """Where the search began, and how many points it has looked at."""

    def __init__(self, look: Look, start: Point):
        self.start = start
        self.count = 0
        self._look = look

    def look(self, t: float) -> Point:
        """The point at t."""
        self.count += 1
        return self._look(t)

    def too_high(self, point: Point) -> bool:
        """Whether the loss is not low enough for the way gone; NaN is not."""
        promised = ENOUGH * point.t * self.start.slope
        return not point.loss <= self.start.loss + promised

    def is_flat(self, point: Point) -> bool:
        """Whether the slope is flat enough."""
        return abs(point.slope) <= -FLAT * self.start.slope


def _walk(
    search: _Search, t: float, most: int
) -> tuple[Point, Point | None, int, bool]:
    """Go on until a minimum must lie between two points.

    Gives the two, the lower first, how many steps were gone, and whether the first
    already fulfills both conditions. After the last step it is the better of the ends.
    """
    before, now = search.start, search.look(t)
    for tries in range(most):
        if search.too_high(now) or (tries > 1 and now.loss >= before.loss):
            return *_ordered(before, now), tries, False
        if search.is_flat(now):
            return now, None, tries, True
        if now.slope >= 0:
            return *_ordered(before, now), tries, False
        bounds = (now.t + 0.01 * (now.t - before.t), now.t * 10)
        t = cubic_minimum(before, now, bounds)
        before, now = now, search.look(t)
    return *_ordered(search.start, now), most, False


def _close_in(
    search: _Search, low: Point, high: Point, reach: float, tolerance: float, most: int
) -> tuple[Point, int]:
    """Narrow the two points down until one fulfills both conditions."""
    stuck = False
    for _ in range(most):
        left, right = sorted((low.t, high.t))
        if (right - left) * reach < tolerance:
            break
        t = cubic_minimum(*sorted((low, high), key=lambda p: p.t), (left, right))
        edge = 0.1 * (right - left)
        near = min(right - t, t - left) < edge
        if near and (stuck or t >= right or t <= left):
            t = right - edge if abs(t - right) < abs(t - left) else left + edge
            near = False
        stuck = near
        now = search.look(t)
        if search.too_high(now) or now.loss >= low.loss:
            low, high = _ordered(low, now)
            continue
        if search.is_flat(now):
            return now, search.count
        if now.slope * (high.t - low.t) >= 0:
            high = low
        low = now
    return low, search.count


def cubic_minimum(a: Point, b: Point, bounds: tuple[float, float]) -> float:
    """Where the cubic through two points with their slopes is lowest, within bounds.

    d₁ = s₁ + s₂ − 3 (f₁ − f₂) / (t₁ − t₂), d₂ = √(d₁² − s₁ s₂),
    t = t₂ − (t₂ − t₁) (s₂ + d₂ − d₁) / (s₂ − s₁ + 2 d₂)
    """
    low, high = bounds
    first, last = (a, b) if a.t <= b.t else (b, a)
    chord = 3 * (a.loss - b.loss) / (a.t - b.t)
    bend = a.slope + b.slope - chord
    square = bend * bend - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    root = math.sqrt(square)
    under = last.slope - first.slope + 2 * root
    share = (last.slope + root - bend) / under if under else math.nan
    if not math.isfinite(share):
        return (low + high) / 2
    return min(max(last.t - (last.t - first.t) * share, low), high)


def _ordered(a: Point, b: Point) -> tuple[Point, Point]:
    """The two with the lower loss first; a where they are equal or b has none."""
    return (b, a) if b.loss < a.loss else (a, b)
