"""The playground as a drawing: regions, points, losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from burnbook_widgets.axes import Axes, ticks
from burnbook_widgets.drawing import Area, Drawing, Line, Mark, Words

SIDE = 320  # of the plane
SPAN = 2.0  # the plane goes from −SPAN to SPAN
CELLS = 40
LEVELS = 5  # of certainty for each class
WIDE = 720
MOST = 601  # points are drawn; of more, every second, third …
ROLES = ("train", "valid")  # the first class, the second


def picture(
    points: np.ndarray,
    labels: np.ndarray,
    for_test: np.ndarray,
    chances: np.ndarray,
    losses: Sequence[tuple[float, float]],
    texts: tuple[str, str],
) -> Drawing:
    """Where which class is likely, the points, and the losses of train and test.

    Shapes: points [n, 2], chances [CELLS, CELLS] (from the top row down)
    """
    title, line = texts
    sheet = Drawing(WIDE, SIDE + 34, f"{title}: {line}")
    _regions(sheet, chances)
    some = slice(None, None, 1 + len(points) // MOST)  # more cannot be told apart
    for (x, y), label, test in zip(
        points[some], labels[some], for_test[some], strict=True
    ):
        if max(abs(x), abs(y)) <= SPAN:
            shape = ("circle", "square")[label]
            across, down = _place(x), _place(-y)
            sheet.add(Mark((across, down), ROLES[label], shape, 3.4 if test else 2.6))
            if test:
                sheet.add(Mark((across, down), "ink", shape, 1.4))
    frame = ((0, 0), (SIDE, 0), (SIDE, SIDE), (0, SIDE), (0, 0))
    sheet.add(Line(tuple((x + 2.0, y + 2.0) for x, y in frame), "quiet", 1.0))
    _legend(sheet)
    _losses(sheet, losses)
    sheet.add(Words((370, 18), title, bold=True))
    for row, part in enumerate(line.split(" · ")):
        sheet.add(Words((370, 38 + 17 * row), part, "ink", 12))
    return sheet


def _place(at: float) -> float:
    return 2 + SIDE * (float(at) + SPAN) / (2 * SPAN)


def level(chance: np.ndarray) -> np.ndarray:
    """How sure, in steps: −LEVELS (surely the first class) to LEVELS."""
    steps = np.ceil(np.abs(chance - 0.5) * 2 * LEVELS - 1e-9)
    return (np.sign(chance - 0.5) * steps).astype(int)


def _regions(sheet: Drawing, chances: np.ndarray) -> None:
    """Stripes of one shade, as long as the shade lasts."""
    size = SIDE / len(chances)
    for down, line in enumerate(level(chances)):
        start = 0
        for across in range(1, len(line) + 1):
            if across < len(line) and line[across] == line[start]:
                continue
            if line[start]:
                left, right = 2 + start * size, 2 + across * size
                top, bottom = 2 + down * size, 2 + (down + 1) * size
                box = ((left, top), (right, top), (right, bottom), (left, bottom))
                shade = 0.06 + 0.34 * abs(int(line[start])) / LEVELS
                sheet.add(Area(box, ROLES[int(line[start] > 0)], round(shade, 3)))
            start = across


def _legend(sheet: Drawing) -> None:
    down = SIDE + 22
    for left, role, shape, text in (
        (10, "train", "circle", "first class"),
        (110, "valid", "square", "second class"),
    ):
        sheet.add(Mark((left, down - 4), role, shape, 3.4))
        sheet.add(Words((left + 9, down), text, "ink", 11))
    sheet.add(Mark((224, down - 4), "quiet", "circle", 3.4))
    sheet.add(Mark((224, down - 4), "ink", "circle", 1.4))
    sheet.add(Words((233, down), "test points", "ink", 11))


def _losses(sheet: Drawing, losses: Sequence[tuple[float, float]]) -> None:
    table = np.array(losses, dtype=float).reshape(-1, 2)
    good = table[np.isfinite(table)]
    high = float(good.max()) * 1.05 if good.size else 1.0
    span = (0.0, float(max(1, len(table) - 1)))
    box = Axes(span, (0.0, high or 1.0), 410, WIDE - 12, 88, SIDE - 44)
    for value in ticks(0.0, box.y[1], 4):
        (x, y), (end, _) = box.at(0, value), box.at(span[1], value)
        sheet.add(Line(((x, y), (end, y)), "quiet", 0.6, 0.5))
        sheet.add(Words((x - 6, y + 4), f"{value:g}", "ink", 11, "end"))
    for value in ticks(*span, 5, whole=True):
        x, y = box.at(value, 0)
        sheet.add(Words((x, y + 17), f"{value:g}", "ink", 11, "middle"))
    corner = ((box.left, box.top), (box.left, box.bottom), (box.right, box.bottom))
    sheet.add(Line(corner, "quiet", 1.0))
    for column, (role, dash) in enumerate((("train", ()), ("valid", (7.0, 4.0)))):
        line = table[:, column]
        kept = np.flatnonzero(np.isfinite(line))[:: max(1, len(line) // 300)]
        points = tuple(box.at(float(i), float(line[i])) for i in kept)
        sheet.add(Line(points, role, 2.0, 1.0, dash))
        left = 410 + 150 * column
        down = SIDE + 18
        sheet.add(Line(((left, down - 4), (left + 30, down - 4)), role, 2.0, 1.0, dash))
        name = ("training loss", "test loss")[column]
        sheet.add(Words((left + 38, down), name, "ink", 11))
    middle = (box.left + box.right) / 2
    sheet.add(Words((middle, box.bottom + 34), "epoch", "ink", 11, "middle"))
