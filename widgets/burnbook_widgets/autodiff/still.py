"""Building blocks · Autodiff. A graph as a drawing that needs no script."""

from __future__ import annotations

from collections.abc import Sequence

from burnbook_widgets.autodiff.layout import HEIGHT, WIDTH, Edge, Layout, Point
from burnbook_widgets.drawing import Area, Drawing, Line, Words

LETTERS = 19  # of a text in a box
DASHES: dict[str, tuple[float, ...]] = {
    "op": (),
    "leaf": (),
    "data": (5.0, 3.0),
    "lost": (2.0, 3.0),
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
    role = "ink" if kind in ("op", "leaf") else "quiet"
    if kind == "leaf":
        sheet.add(Area(corners, "train", 0.12))
    outline = (*corners, corners[0])
    sheet.add(Line(outline, role, 2.5 if now else 1.0, 1.0, DASHES[kind]))
    sheet.add(Words((x, top + 17), head(label), anchor="middle", bold=True))
    small = 11.0
    sheet.add(Words((x, top + 33), _cut(shape or "not kept"), "ink", small, "middle"))
    if seen:
        shown = value or "value not kept"
        tone = "train" if value else "ink"
        if kind != "lost":
            sheet.add(Words((x, top + 49), _cut(shown), tone, small, "middle"))
    if seen == 2:
        text = _cut(f"∂ {gradient}")
        sheet.add(Words((x, top + 65), text, "ink", small, "middle"))


def head(label: str, most: int = 17) -> str:
    """A label as long as a box; of a path the end says the most."""
    if len(label) <= most:
        return label
    return f"…{label[1 - most :]}" if "." in label else _cut(label, most)


def _cut(text: str, most: int = LETTERS) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
