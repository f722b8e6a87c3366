"""The still form of a tensor view: SVG and tables, no script.

The colors are those of the live view: blue above zero, orange below, deeper for
larger; a dash stands in negative cells, a cross for NaN, triangles for infinities.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from burnbook_widgets.drawing import DARK, LIGHT
from burnbook_widgets.tensor.numbers import (
    EMPTY,
    FAR,
    INF,
    LOG,
    MIDDLE,
    MINUS_INF,
    NAN,
    Curve,
    short,
)

LEVELS = 8
HEIGHT = 300
LEFT, TOP = 56, 20
THIN = 6.0  # below this, cells need not be square


def heat_map(
    codes: np.ndarray,
    marks: np.ndarray,
    frame: Mapping[str, Any],
    title: str,
    over: Sequence[str] = (),
) -> str:
    """Cells as SVG: one path per color, so that a page stays small.

    over: more of it on top of the cells, which are as large as `cell_size` says.
    """
    rows, columns = codes.shape
    width, height = cell_size(rows, columns)
    body: list[str] = []
    levels = np.rint(codes.astype(int) / 127 * LEVELS).astype(int)
    levels[codes == EMPTY] = 0
    for level in range(-LEVELS, LEVELS + 1):
        if level and (levels == level).any():
            role = "train" if level > 0 else "valid"
            path = runs(levels == level, width, height)
            body.append(
                f'<path class="{role}-fill" fill="{LIGHT[role]}" '
                f'opacity="{strength(level):g}" d="{path}"/>'
            )
    body += _signs(codes, marks, width, height)
    body += over
    right, bottom = columns * width, rows * height
    body.append(
        f'<rect class="quiet-line" stroke="{LIGHT["quiet"]}" fill="none" '
        f'width="{right:g}" height="{bottom:g}"/>'
    )
    down, across = frame["names"]
    (top, first), ends = frame.get("corner", (0, 0)), frame["shape"]
    last = [max(0, first + ends[1] - 1), top + ends[0] - 1]
    body += [
        words(right / 2, -6, f"{across}: {first} … {last[0]} →", "middle"),
        words(-6, bottom / 2, f"{down} ↓", "end") if down else "",
        words(-6, 10, str(top), "end") if bottom >= 40 else "",
        words(-6, bottom, str(last[1]), "end") if bottom >= 40 else "",
    ]
    left = LEFT if down else 4
    return drawn(title, right + left + 4, bottom + TOP + 4, (left, TOP), body)


def curve(
    line: Curve, frame: Mapping[str, Any], ends: tuple[float, float], title: str
) -> str:
    """A tensor of rank 1 as a line over its places, with a band from least to most."""
    width, height = 400.0, 150.0
    low, high = min(0.0, *ends), max(0.0, *ends)
    high = high if high > low else low + 1.0
    count = len(line.mean)

    def at(place: int, value: float) -> str:
        share = (min(max(value, low), high) - low) / (high - low)
        return f"{(place + 0.5) * width / count:.5g} {height - share * height:.4g}"

    body: list[str] = []
    zero = height + low / (high - low) * height
    quiet = f'class="quiet-line" stroke="{LIGHT["quiet"]}" fill="none"'
    body.append(f'<path {quiet} d="M0 {zero:.4g}h{width:g}"/>')
    for first, last in line.pieces():
        places = range(first, last + 1)
        band = [at(i, line.most[i]) for i in places]
        band += [at(i, line.least[i]) for i in reversed(places)]
        if frame["step"][1] > 1:
            body.append(
                f'<path class="train-fill" fill="{LIGHT["train"]}" opacity="0.25" '
                f'd="M{"L".join(band)}z"/>'
            )
        points = [at(i, line.mean[i]) for i in places]
        points = points if len(points) > 1 else [*points, points[0]]
        body.append(
            f'<path class="train-line" stroke="{LIGHT["train"]}" stroke-width="1.6" '
            f'stroke-linecap="round" fill="none" d="M{"L".join(points)}"/>'
        )
    start, size = frame["corner"][1], frame["shape"][1]
    body += [
        f'<rect {quiet} width="{width:g}" height="{height:g}"/>',
        words(-6, 10, short(high), "end"),
        words(-6, height, short(low), "end"),
        words(0, height + 15, str(start)),
        words(width, height + 15, str(start + size - 1), "end"),
        words(width / 2, height + 15, f"{frame['names'][1]} →", "middle"),
    ]
    return drawn(title, width + 76, height + 32, (70, 8), body)


def colored(pixels: np.ndarray, title: str) -> str:
    """Red, green and blue as a picture; empty without Pillow."""
    try:
        from PIL import Image
    except ImportError:
        return ""
    rows, columns = pixels.shape[:2]
    zoom = max(1, min(8, 320 // max(rows, columns)))
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", optimize=True)
    text = base64.b64encode(buffer.getvalue()).decode("ascii")
    return (
        f'<img alt="picture, {escape(title, quote=True)}" width="{columns * zoom}" '
        f'height="{rows * zoom}" style="image-rendering:pixelated" '
        f'src="data:image/png;base64,{text}">'
    )


def cell_size(rows: int, columns: int) -> tuple[float, float]:
    """Pixels across and down: square where the shape allows it."""
    across = min(36.0, 400 / max(columns, 1))
    down = min(36.0, HEIGHT / max(rows, 1))
    side = min(across, down)
    wide, high = (max(side, min(room, THIN)) for room in (across, down))
    return round(wide, 2), round(high, 2)


def histogram(bars: Sequence[int], own: Sequence[int], low: str, high: str) -> str:
    """Bars of all elements; a dashed outline, on its own scale, for the plane."""
    title = (
        f"histogram from {low} to {high}; the highest bar has {max(bars, default=0):,}"
    )
    wide = 240 / max(1, len(bars))
    body: list[str] = []
    path = "".join(
        f"M{i * wide:.5g} 80v-{60 * count / max(bars):.4g}h{wide - 1:.4g}V80z"
        for i, count in enumerate(bars)
        if count
    )
    body.append(f'<path class="train-fill" fill="{LIGHT["train"]}" d="{path}"/>')
    if any(own) and list(own) != list(bars):
        line = "M0 80" + "".join(
            f"V{80 - 60 * count / max(own):.4g}H{(i + 1) * wide:.5g}"
            for i, count in enumerate(own)
        )
        body.append(
            f'<path class="valid-line" stroke="{LIGHT["valid"]}" stroke-width="1.5" '
            f'stroke-dasharray="5 3" fill="none" d="{line}V80"/>'
        )
        body.append(words(0, 12, "bars: all · dashes: this plane, own scale"))
    else:
        body.append(words(0, 12, "how often which value"))
    body += [
        f'<path class="quiet-line" stroke="{LIGHT["quiet"]}" d="M0 80h240"/>',
        words(0, 95, low),
        words(240, 95, high, "end"),
    ]
    return drawn(title, 250, 102, (4, 2), body)


def facts_table(rows: Sequence[tuple[str, ...]]) -> str:
    """Statistics as a table; the first row holds the headings."""
    head = "<td></td>" + "".join(
        f'<th scope="col">{escape(name)}</th>' for name in rows[0][1:]
    )
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{escape(text)}</td>" for text in texts)
        + "</tr>"
        for name, *texts in rows[1:]
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def legend(frame: Mapping[str, Any], marks: np.ndarray) -> str:
    """What the colors and signs of the cells mean, in words."""
    low, high = frame["ends"]
    if frame["signed"]:
        deepest = f"deepest: ±{high}"
        if frame["scale"] == MIDDLE:
            deepest = f"deepest: ±{high.removeprefix('≥ ')} and beyond"
        parts = ["blue: above 0", "orange with a dash: below 0", deepest]
    else:
        parts = [f"pale: {low}", f"deep blue: {high}"]
    names = {NAN: "✕ NaN", INF: "▲ inf", MINUS_INF: "▼ -inf", FAR: "◆ far outside"}
    if frame["scale"] == LOG:
        parts.append("logarithmic colors")
    parts += [name for bit, name in names.items() if (marks & bit).any()]
    return " · ".join(parts)


def strength(level: int) -> float:
    """How opaque a color of this level is, of LEVELS."""
    return round(0.06 + 0.79 * abs(level) / LEVELS, 3)


def runs(where: np.ndarray, width: float, height: float) -> str:
    """Rectangles along the rows, one for neighbors of the same color."""
    parts = []
    for row, line in enumerate(where):
        edges = np.flatnonzero(np.diff(np.concatenate(([0], line.astype(int), [0]))))
        for first, last in edges.reshape(-1, 2).tolist():
            size = (last - first) * width
            parts.append(
                f"M{first * width:.5g} {row * height:.5g}"
                f"h{size:.5g}v{height:g}h-{size:.5g}z"
            )
    return "".join(parts)


def _signs(
    codes: np.ndarray, marks: np.ndarray, width: float, height: float
) -> list[str]:
    """Dashes in negative cells with room for one, and signs of what is not finite."""
    found: list[str] = []
    if min(width, height) >= 9:
        dashes = "".join(
            f"M{(c + 0.5) * width - 3:.5g} {(r + 0.5) * height:.5g}h6"
            for r, c in np.argwhere((codes < 0) & (codes != EMPTY)).tolist()
        )
        if dashes:
            found.append(stroke(dashes, 1.2))
    size = min(max(min(width, height) * 0.32, 2.0), 6.0)
    shapes = {
        NAN: f"m-{size:g} -{size:g}l{2 * size:g} {2 * size:g}"
        f"m0 -{2 * size:g}l-{2 * size:g} {2 * size:g}",
        INF: f"m0 -{size:g}l{size:g} {2 * size:g}h-{2 * size:g}z",
        MINUS_INF: f"m0 {size:g}l{size:g} -{2 * size:g}h-{2 * size:g}z",
        FAR: f"m0 -{size:g}l{size:g} {size:g}l-{size:g} {size:g}l-{size:g} -{size:g}z",
    }
    for bit, shape in shapes.items():
        places = np.argwhere(marks & bit).tolist()
        path = "".join(
            f"M{(c + 0.5) * width:.5g} {(r + 0.5) * height:.5g}{shape}"
            for r, c in places
        )
        if path:
            found.append(stroke(path, 1.4))
    return found


def stroke(path: str, width: float) -> str:
    """Lines in the color of the text."""
    return (
        f'<path class="ink-line" stroke="{LIGHT["ink"]}" stroke-width="{width}" '
        f'fill="none" d="{path}"/>'
    )


def words(x: float, y: float, text: str, anchor: str = "start") -> str:
    """A short text in the color of the page's."""
    return (
        f'<text class="ink-fill" x="{x:g}" y="{y:g}" font-size="11" '
        f'text-anchor="{anchor}" fill="{LIGHT["ink"]}">{escape(text)}</text>'
    )


def drawn(
    title: str,
    width: float,
    height: float,
    origin: tuple[float, float],
    body: Sequence[str],
) -> str:
    """An SVG that follows light and dark pages; its class is made of its content."""
    inner = "\n".join(part for part in body if part)
    key = hashlib.sha256((title + inner).encode()).hexdigest()[:8]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="bb-{key}" role="img" '
        f'width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:100%;height:auto" '
        f'aria-label="{escape(title, quote=True)}">\n<style>{_style(f"bb-{key}")}'
        f'</style>\n<g transform="translate({origin[0]},{origin[1]})">\n{inner}\n'
        "</g>\n</svg>"
    )


def _style(name: str) -> str:
    def rules(tones: Mapping[str, str], before: str = "") -> str:
        return "".join(
            f"{before}.{name} .{role}-fill{{fill:{tone}}}"
            f"{before}.{name} .{role}-line{{stroke:{tone}}}"
            for role, tone in tones.items()
        )

    return (
        f"{rules(LIGHT)}@media(prefers-color-scheme:dark){{{rules(DARK)}}}"
        + rules(LIGHT, '[data-jp-theme-light="true"] ')
        + rules(DARK, '[data-jp-theme-light="false"] ')
        + f".{name} text{{font-family:var(--jp-ui-font-family,system-ui,sans-serif)}}"
    )
