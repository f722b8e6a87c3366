"""A graph as a drawing that needs no script."""

from __future__ import annotations

from collections.abc import Sequence

from burnbook_widgets.autodiff.layout import HEIGHT, WIDTH, Edge, Layout, Point
from burnbook_widgets.autodiff.parts import fitted
from burnbook_widgets.drawing import Area, Drawing, Line, Words

ROOM = WIDTH - 12  # for a text in a box
DASHES: dict[str, tuple[float, ...]] = {
    "op": (),
    "leaf": (),
    "data": (5.0, 3.0),
    "lost": (2.0, 3.0),
    "group": (),
}
Shown = tuple[str, str, str, str, str]  # kind, label, shape, value, gradient


def picture(
    parts: Sequence[Shown],
    seen: Sequence[int],
    now: int,
    edges: Sequence[Edge],
    layout: Layout,
    title: str,
) -> str:
    """The graph as SVG; `seen` says which values and gradients are there."""
    sheet = Drawing(layout.width, layout.height, title)
    for (a, b), points in zip(edges, layout.lines, strict=True):
        back = seen[a] == 2 and seen[b] == 2
        there = seen[a] and seen[b]
        role = "valid" if back else "train" if there else "quiet"
        sheet.add(Line(tuple(points), role, 1.5, 1.0, (6.0, 3.0) if back else ()))
        sheet.add(_arrow(points, role, back))
    for i, (part, middle) in enumerate(zip(parts, layout.middles, strict=True)):
        _box(sheet, part, seen[i], middle, i == now)
    return sheet.svg()


def _arrow(points: Sequence[Point], role: str, back: bool) -> Area:
    """The head of a line: down where values go, up where gradients do."""
    x, y = points[0] if back else points[-1]
    sign = 1 if back else -1
    tip = ((x, y), (x - 4, y + 8 * sign), (x + 4, y + 8 * sign))
    return Area(tip, role, 1.0)


def _box(sheet: Drawing, part: Shown, seen: int, middle: Point, now: bool) -> None:
    kind, label, shape, value, gradient = part
    x, y = middle
    left, top, right, bottom = (
        x - WIDTH / 2,
        y - HEIGHT / 2,
        x + WIDTH / 2,
        y + HEIGHT / 2,
    )
    corners = ((left, top), (right, top), (right, bottom), (left, bottom))
    role = "ink" if kind in ("op", "leaf", "group") else "quiet"
    if kind == "leaf":
        sheet.add(Area(corners, "train", 0.12))
    if kind == "group":  # a sheet behind, as there is more below
        behind = ((left + 5, top), (left + 5, top - 5), (right + 5, top - 5))
        behind += ((right + 5, bottom - 5), (right, bottom - 5))
        sheet.add(Line(behind, "ink", 1.0))
    outline = (*corners, corners[0])
    sheet.add(Line(outline, role, 2.5 if now else 1.0, 1.0, DASHES[kind]))
    title = fitted(label, ROOM, 12.0, True)
    sheet.add(Words((x, top + 17), title, anchor="middle", bold=True))
    small = 11.0

    def write(down: float, text: str, tone: str = "ink") -> None:
        short = fitted(text, ROOM, small)
        sheet.add(Words((x, top + down), short, tone, small, "middle"))

    write(33, shape or "not kept")
    if seen and kind != "lost":
        write(49, value or "value not kept", "train" if value else "ink")
    if seen == 2:
        write(65, f"∂ {gradient}")
