"""A drawing: lines, marks and words that become SVG or PNG.

One description, two renderings, so that the picture a notebook keeps looks the same
wherever it is read. The SVG follows the theme of the page; the PNG, which cannot, uses
tones that stand out on white and on black. Equal drawings give equal text: no times,
no random ids.
"""

from __future__ import annotations

import hashlib
import io
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from itertools import pairwise
from typing import Any

Point = tuple[float, float]

# Okabe and Ito's colors, which color-blind readers tell apart.
LIGHT = {"ink": "#24292f", "quiet": "#868e98", "train": "#0072b2", "valid": "#d55e00"}
DARK = {"ink": "#e3e6ea", "quiet": "#868d96", "train": "#56b4e9", "valid": "#e69f00"}
MIDDLE = {"ink": "#737b85", "quiet": "#868e98", "train": "#0f7dbd", "valid": "#d55e00"}
# Other runs beside one's own: "run0", "run1", …; a drawing names only those in it.
LIGHT_RUNS = ("#007a5a", "#a3477f", "#7a6300", "#4b5259", "#6f4bb0", "#9c2f2f")
DARK_RUNS = ("#1fc795", "#e08fbf", "#f0e442", "#c3c9d0", "#b9a1f2", "#ff8f8f")
MIDDLE_RUNS = ("#12966f", "#b85f97", "#94790a", "#737b85", "#8a6cc9", "#c14d4d")
RUNS = {
    f"run{place}": tones
    for place, tones in enumerate(zip(LIGHT_RUNS, DARK_RUNS, MIDDLE_RUNS, strict=True))
}

SANS = "var(--jp-ui-font-family,system-ui,sans-serif)"
HAN = "'Noto Sans CJK SC','PingFang SC','Microsoft YaHei'"  # where the first has none

WHITE = (255, 255, 255, 255)
CLEAR = (128, 128, 128, 0)  # gray, so that soft edges have no dark or bright rim


@dataclass(frozen=True)
class Line:
    """A line through points; `dash` is a pair of lengths or empty."""

    points: tuple[Point, ...]
    role: str
    width: float = 1.5
    opacity: float = 1.0
    dash: tuple[float, ...] = ()


@dataclass(frozen=True)
class Area:
    """A filled shape."""

    points: tuple[Point, ...]
    role: str
    opacity: float = 0.2


@dataclass(frozen=True)
class Mark:
    """A small circle or square."""

    at: Point
    role: str
    shape: str = "circle"
    size: float = 3.0


@dataclass(frozen=True)
class Words:
    """A line of text; `anchor` is start, middle or end."""

    at: Point
    text: str
    role: str = "ink"
    size: float = 12.0
    anchor: str = "start"
    bold: bool = False


Shape = Line | Area | Mark | Words


@dataclass
class Drawing:
    """Shapes on a sheet of `width` × `height`, with a sentence that says what it shows.

    Example:
        >>> sheet = Drawing(20, 10, "a rising line")
        >>> sheet.add(Line(((0, 10), (20, 0)), "train"))
        >>> sheet.svg().startswith("<svg")
        True
    """

    width: int
    height: int
    title: str
    shapes: list[Shape] = field(default_factory=list)

    def add(self, *shapes: Shape) -> None:
        """Put shapes on top of what is there."""
        self.shapes.extend(shapes)

    def svg(self) -> str:
        """The drawing as SVG that follows light and dark pages."""
        body = "\n".join(_svg_shape(shape) for shape in self.shapes)
        family = f"{SANS},{HAN},sans-serif" if self.has_wide_words else SANS
        key = hashlib.sha256((self.title + body).encode()).hexdigest()[:8]
        name = f"bb-{key}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{name}" role="img" '
            f'width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" '
            f'style="max-width:100%;height:auto" '
            f'aria-label="{escape(self.title, quote=True)}">\n'
            f"<style>{_stylesheet(name, family, self._runs())}</style>\n{body}\n</svg>"
        )

    @property
    def has_wide_words(self) -> bool:
        """Whether words are in Chinese, Japanese, Korean or pictures."""
        return any(columns(text) > len(text) for text in self._texts())

    def _texts(self) -> list[str]:
        return [shape.text for shape in self.shapes if isinstance(shape, Words)]

    def _runs(self) -> list[str]:
        """The roles of other runs that are drawn."""
        return sorted({shape.role for shape in self.shapes} & RUNS.keys())

    def png(self, scale: int = 2, paper: bool = False) -> bytes | None:
        """The drawing as PNG; None if it cannot be one.

        paper: on white, in the tones of light pages; otherwise its background is clear
        and its tones stand out on both, though small words are easier to read on paper.

        Why: without Pillow there is nothing to draw with, and its font has neither
        arrows nor Chinese letters. The SVG takes those from the reader's own fonts.
        """
        try:
            from PIL import Image, ImageDraw
        except ImportError:
            return None
        if not all(map(_in_pillows_font, set("".join(self._texts())))):
            return None
        zoom = scale * 2  # drawn at twice the size, then halved: smooth edges
        size = (self.width * zoom, self.height * zoom)
        sheet = Image.new("RGBA", size, WHITE if paper else CLEAR)
        tones = LIGHT if paper else MIDDLE
        for shape in self.shapes:
            if isinstance(shape, Mark | Words) or shape.opacity == 1.0:
                _png_shape(ImageDraw.Draw(sheet), shape, zoom, tones)
                continue
            left, top, right, bottom = _extent(shape.points)
            layer = Image.new(
                "RGBA",
                (zoom * (right - left), zoom * (bottom - top)),
                CLEAR,
            )
            points = tuple((x - left, y - top) for x, y in shape.points)
            moved = replace(shape, points=points)
            _png_shape(ImageDraw.Draw(layer), moved, zoom, tones)
            sheet.alpha_composite(layer, (left * zoom, top * zoom))
        sheet = sheet.resize(
            (self.width * scale, self.height * scale), Image.Resampling.LANCZOS
        )
        with io.BytesIO() as stream:
            sheet.quantize(128, method=Image.Quantize.FASTOCTREE).save(
                stream, "PNG", optimize=True
            )
            return stream.getvalue()


@cache
def _in_pillows_font(letter: str) -> bool:
    """Whether a letter is more than the box that stands for all that are not there."""
    from PIL import ImageFont

    font: Any = ImageFont.load_default(24)
    drawn, box = (font.getmask(some) for some in (letter, "\uffff"))
    return drawn.size != box.size or bytes(drawn) != bytes(box)


def columns(text: str) -> int:
    """How wide a text is, in letters: a Chinese one is as wide as two Latin ones.

    Example:
        >>> columns("loss"), columns("损失")
        (4, 4)
    """
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide


def _tone(role: str) -> str:
    return LIGHT[role] if role in LIGHT else RUNS[role][0]


def _stylesheet(name: str, family: str, runs: Sequence[str] = ()) -> str:
    def block(colors: dict[str, str]) -> str:
        more = {role: RUNS[role][colors is DARK] for role in runs}
        return "".join(
            f"--bb-{role}:{tone};" for role, tone in {**colors, **more}.items()
        )

    roles = "".join(
        f".{name} .{role}-line{{stroke:var(--bb-{role})}}"
        f".{name} .{role}-fill{{fill:var(--bb-{role})}}"
        for role in (*LIGHT, *runs)
    )
    return (
        f".{name}{{{block(LIGHT)}}}"
        f"@media(prefers-color-scheme:dark){{.{name}{{{block(DARK)}}}}}"
        f'[data-jp-theme-light="true"] .{name}{{{block(LIGHT)}}}'
        f'[data-jp-theme-light="false"] .{name}{{{block(DARK)}}}'
        f".{name} text{{font-family:{family}}}" + roles
    )


def _number(value: float) -> str:
    text = f"{value:.1f}"
    return text.removesuffix(".0").replace("-0", "0") if text == "-0.0" else text


def _path(points: Sequence[Point]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _extent(points: Sequence[Point]) -> tuple[int, int, int, int]:
    """The whole-numbered box around points, with room for the width of a line."""
    across, down = zip(*points, strict=True)
    low, high = math.floor, math.ceil
    return (
        max(0, low(min(across)) - 3),
        max(0, low(min(down)) - 3),
        high(max(across)) + 3,
        high(max(down)) + 3,
    )


def _svg_shape(shape: Shape) -> str:
    tone = _tone(shape.role)
    match shape:
        case Line(points, role, width, opacity, dash):
            dashes = f' stroke-dasharray="{" ".join(map(str, dash))}"' if dash else ""
            faint = f' opacity="{opacity}"' if opacity < 1 else ""
            return (
                f'<polyline class="{role}-line" points="{_path(points)}" fill="none" '
                f'stroke="{tone}" stroke-width="{width}" stroke-linejoin="round"'
                f"{dashes}{faint}/>"
            )
        case Area(points, role, opacity):
            return (
                f'<polygon class="{role}-fill" points="{_path(points)}" '
                f'fill="{tone}" opacity="{opacity}"/>'
            )
        case Mark((x, y), role, "circle", size):
            return (
                f'<circle class="{role}-fill" cx="{_number(x)}" cy="{_number(y)}" '
                f'r="{size}" fill="{tone}"/>'
            )
        case Mark((x, y), role, _, size):
            return (
                f'<rect class="{role}-fill" x="{_number(x - size)}" '
                f'y="{_number(y - size)}" width="{2 * size:g}" height="{2 * size:g}" '
                f'fill="{tone}"/>'
            )
        case Words((x, y), text, role, size, anchor, bold):
            weight = ' font-weight="600"' if bold else ""
            return (
                f'<text class="{role}-fill" x="{_number(x)}" y="{_number(y)}" '
                f'font-size="{size:g}" text-anchor="{anchor}" fill="{tone}"{weight}>'
                f"{escape(text)}</text>"
            )


def _png_shape(pen: Any, shape: Shape, zoom: int, tones: dict[str, str]) -> None:
    of_run = 0 if tones is LIGHT else 2
    tone = RUNS[shape.role][of_run] if shape.role in RUNS else tones[shape.role]
    match shape:
        case Line(points, _, width, opacity, dash):
            color = tone + f"{round(255 * opacity):02x}"
            for piece in _dashes(points, dash):
                pen.line(
                    [(x * zoom, y * zoom) for x, y in piece],
                    fill=color,
                    width=max(1, round(width * zoom)),
                    joint="curve",
                )
        case Area(points, _, opacity):
            color = tone + f"{round(255 * opacity):02x}"
            pen.polygon([(x * zoom, y * zoom) for x, y in points], fill=color)
        case Mark((x, y), _, kind, size):
            box = [(x - size) * zoom, (y - size) * zoom]
            box += [(x + size) * zoom, (y + size) * zoom]
            (pen.ellipse if kind == "circle" else pen.rectangle)(box, fill=tone)
        case Words((x, y), text, _, size, anchor, bold):
            from PIL import ImageFont

            pen.text(
                (x * zoom, y * zoom),
                text,
                fill=tone,
                font=ImageFont.load_default(size * zoom),
                anchor={"start": "ls", "middle": "ms", "end": "rs"}[anchor],
                stroke_width=zoom // 4 if bold else 0,
            )


def _dashes(points: Sequence[Point], dash: Sequence[float]) -> list[list[Point]]:
    """Cut a line into the pieces that its dash pattern draws."""
    if not dash:
        return [list(points)] if len(points) > 1 else []
    pieces: list[list[Point]] = []
    index, left, drawing = 0, dash[0], True
    piece = [points[0]] if points else []
    for (x, y), (to_x, to_y) in pairwise(points):
        length = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5
        done = 0.0
        while length - done > left:
            done += left
            cut = (x + (to_x - x) * done / length, y + (to_y - y) * done / length)
            if drawing:
                pieces.append([*piece, cut])
            index += 1
            left, drawing = dash[index % len(dash)], not drawing
            piece = [cut]
        left -= length - done
        piece.append((to_x, to_y))
    if drawing and len(piece) > 1:
        pieces.append(piece)
    return pieces
