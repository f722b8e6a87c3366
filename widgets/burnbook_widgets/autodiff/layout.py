"""A layered picture of a graph: where boxes and lines go.

Sugiyama's way: every step stands below what it was made from; a line that passes rows
gets a place in each of them; rows are put in order by the middle of their neighbors,
a few times, and the order with the fewest crossings stays. No random numbers: equal
graphs give equal pictures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Point = tuple[float, float]
Edge = tuple[int, int]

WIDTH, HEIGHT = 156, 74  # of a box
ACROSS, DOWN = 20, 38  # free between boxes
LANE = 18  # what a line takes that passes between boxes
MARGIN = 8
SWEEPS = 12


@dataclass
class Layout:
    """Where each box has its middle, and the points that each line goes through."""

    width: int
    height: int
    middles: list[Point]
    lines: list[list[Point]]


@dataclass
class _Rows:
    """The rows from top to bottom; numbers from `count` on are lines passing by."""

    count: int
    rows: list[list[int]]
    above: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    below: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))


def lay_out(count: int, edges: Sequence[Edge]) -> Layout:
    """Place `count` boxes; an edge (a, b) says that a, with a < b, goes into b.

    Example:
        >>> placed = lay_out(3, [(0, 2), (1, 2)])
        >>> placed.middles
        [(76.0, 45.0), (232.0, 45.0), (154.0, 157.0)]
    """
    depth = _depths(count, edges)
    made, chains = _rows_of(count, edges, depth)
    _order(made)
    across = _positions(made)
    low = min((x - _half(made, v) for v, x in across.items()), default=0.0)
    across = {v: x - low + MARGIN for v, x in across.items()}
    right = max((x + _half(made, v) for v, x in across.items()), default=0.0)
    tops = [MARGIN + row * (HEIGHT + DOWN) for row in range(len(made.rows))]
    place = {v: (across[v], tops[r] + HEIGHT / 2) for r, v in _places(made)}
    middles = [place[v] for v in range(count)]
    ends = _ends(edges, middles)
    lines = [
        [start, *[point for v in chain for point in _through(place[v])], end]
        for chain, (start, end) in zip(chains, ends, strict=True)
    ]
    bottom = (tops[-1] if tops else 0) + HEIGHT
    return Layout(round(right) + MARGIN, bottom + MARGIN, middles, lines)


def _places(made: _Rows) -> list[tuple[int, int]]:
    return [(r, v) for r, row in enumerate(made.rows) for v in row]


def _half(made: _Rows, v: int) -> float:
    return WIDTH / 2 if v < made.count else LANE / 2


def _through(place: Point) -> list[Point]:
    """A line that passes a row goes straight down beside its boxes."""
    x, y = place
    return [(x, y - HEIGHT / 2), (x, y + HEIGHT / 2)]


def _depths(count: int, edges: Sequence[Edge]) -> list[int]:
    """The row of each box: below all it is made from; inputs just above their use."""
    comes, goes = [[] for _ in range(count)], [[] for _ in range(count)]
    for a, b in edges:
        comes[b].append(a)
        goes[a].append(b)
    depth = [0] * count
    for v in range(count):
        depth[v] = max((depth[a] + 1 for a in comes[v]), default=0)
    for v in range(count):
        if not comes[v] and goes[v]:
            depth[v] = min(depth[b] for b in goes[v]) - 1
    return depth


def _rows_of(
    count: int, edges: Sequence[Edge], depth: list[int]
) -> tuple[_Rows, list[list[int]]]:
    rows: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for v in range(count):
        rows[depth[v]].append(v)
    made = _Rows(count, rows)
    chains: list[list[int]] = []
    following = count
    for a, b in edges:
        chain: list[int] = []
        for row in range(depth[a] + 1, depth[b]):
            rows[row].append(following)
            chain.append(following)
            following += 1
        path = [a, *chain, b]
        for upper, lower in pairwise(path):
            made.below[upper].append(lower)
            made.above[lower].append(upper)
        chains.append(chain)
    return made, chains


def _order(made: _Rows) -> None:
    """Put every row in the order of its neighbors' middles; keep the best found."""
    best, fewest = [list(row) for row in made.rows], _crossings(made)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        turn = range(len(made.rows))
        neighbors = made.above if down else made.below
        for r in turn if down else reversed(turn):
            _sort(made.rows[r], neighbors, _ranks(made))
        found = _crossings(made)
        if found < fewest:
            best, fewest = [list(row) for row in made.rows], found
    made.rows[:] = best


def _ranks(made: _Rows) -> dict[int, int]:
    return {v: i for row in made.rows for i, v in enumerate(row)}


def _sort(row: list[int], near: dict[int, list[int]], rank: dict[int, int]) -> None:
    def middle(v: int) -> float:
        others = near[v]
        return sum(rank[o] for o in others) / len(others) if others else rank[v]

    row.sort(key=lambda v: (middle(v), rank[v]))


def _crossings(made: _Rows) -> int:
    """How many pairs of lines cross between neighboring rows."""
    rank, total = _ranks(made), 0
    for row in made.rows:
        ends = [r for a in row for r in sorted(rank[b] for b in made.below[a])]
        total += sum(
            1 for i, one in enumerate(ends) for other in ends[i + 1 :] if other < one
        )
    return total


def _positions(made: _Rows) -> dict[int, float]:
    """The x of every box: near the middle of its neighbors, never overlapping."""
    across: dict[int, float] = {}
    for row in made.rows:
        x = 0.0
        for v in row:
            across[v] = x + _half(made, v)
            x += 2 * _half(made, v) + ACROSS
    wide = max(across[row[-1]] + _half(made, row[-1]) for row in made.rows if row)
    for row in made.rows:  # rows start in the middle
        shift = (wide - across[row[-1]] - _half(made, row[-1])) / 2 if row else 0
        for v in row:
            across[v] += shift
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        neighbors = made.above if down else made.below
        for row in made.rows if down else reversed(made.rows):
            _settle(made, row, neighbors, across)
    return across


def _settle(
    made: _Rows, row: list[int], near: dict[int, list[int]], across: dict[int, float]
) -> None:
    wish = [
        sum(across[o] for o in near[v]) / len(near[v]) if near[v] else across[v]
        for v in row
    ]
    apart = [_half(made, a) + _half(made, b) + ACROSS for a, b in pairwise(row)]
    right, left = list(wish), list(wish)
    for i in range(1, len(row)):
        right[i] = max(wish[i], right[i - 1] + apart[i - 1])
    for i in reversed(range(len(row) - 1)):
        left[i] = min(wish[i], left[i + 1] - apart[i])
    for v, one, other in zip(row, left, right, strict=True):
        across[v] = (one + other) / 2


def _ends(edges: Sequence[Edge], middles: list[Point]) -> list[tuple[Point, Point]]:
    """Where lines leave and enter: side by side, in the order of the inputs."""
    enter: dict[int, list[int]] = defaultdict(list)
    for i, (_, b) in enumerate(edges):
        enter[b].append(i)
    ends: list[tuple[Point, Point]] = []
    for i, (a, b) in enumerate(edges):
        (from_x, from_y), (to_x, to_y) = middles[a], middles[b]
        among = sorted(enter[b], key=lambda e: (middles[edges[e][0]][0], e))
        step = min(34.0, (WIDTH - 24) / max(1, len(among)))
        shift = (among.index(i) - (len(among) - 1) / 2) * step
        ends.append(((from_x, from_y + HEIGHT / 2), (to_x + shift, to_y - HEIGHT / 2)))
    return ends
