"""Small still pictures for chapters: images, bars, lines.

Each is made of plain arrays or tensors and shows itself as PNG (as SVG where its words
are in Chinese). `repr` says in one line what it is; `words` say what is to be seen,
for those who do not see it.
"""

import base64
import io
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from burnbook_widgets.axes import Axes, log_ticks, ticks
from burnbook_widgets.chapters.answers import as_array
from burnbook_widgets.drawing import Area, Drawing, Line, Mark, Words, columns
from burnbook_widgets.picture_file import page, write

BAR_HEIGHT = 16
BAR_WIDTH = 300
LETTER = 7  # the width of a letter, about
INK, PAPER = (36, 41, 47, 255), (255, 255, 255, 255)
STYLES: tuple[tuple[str, tuple[float, ...]], ...] = (
    ("train", ()),
    ("valid", (6.0, 3.0)),
    ("ink", (2.0, 2.0)),
    ("run0", (10.0, 3.0, 2.0, 3.0)),
    ("run1", (5.0, 2.0)),
    ("run2", (14.0, 4.0)),
    ("run3", (2.0, 2.0, 6.0, 2.0)),
    ("run4", (1.0, 4.0)),
)
SAID = 12  # lines or bars that are put into words
# On a dark page of JupyterLab what is drawn on white paper turns dark as well: light
# and dark change places, hues stay. (SVG knows both themes.)
DARK_PAPER = (
    "<style>[data-jp-theme-light=false] .bb-drawn"
    "{filter:invert(.93) hue-rotate(180deg)}</style>"
)


class Still:
    """A picture that a notebook keeps: PNG to see, words for those who do not see.

    sharp: drawn with twice the pixels that it takes on the page.
    """

    sharp = True
    look = ""  # a style that goes before the picture
    name = "bb-picture"  # the classes of the picture

    def png(self) -> bytes | None:
        """The picture as PNG; None without Pillow."""
        raise TypeError(f"{type(self).__name__} draws nothing")

    @property
    def words(self) -> str:
        """What is to be seen, in words."""
        return repr(self)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the picture to a file, and return its path: .png or .html.

        Bars and Lines are .svg as well, sharp at any size:
        `Lines({"loss": losses}).save("loss.svg")`.

        Raises:
            ConfigError: the path ends otherwise, the file cannot be written, or Pillow
                is not there.
        """
        return write(self, path, self._forms())

    def _forms(self) -> dict[str, Callable[[], bytes | str | None]]:
        return {".png": self.png, ".html": self._as_page}

    def _as_page(self) -> str | None:
        bundle, _ = self._repr_mimebundle_()
        return page(repr(self), bundle["text/html"]) if "text/html" in bundle else None

    def _repr_png_(self) -> tuple[bytes, dict[str, int]] | bytes | None:
        data = self.png()
        if data is None or not self.sharp:
            return data
        width, height = _size(data)
        return data, {"width": width // 2, "height": height // 2}

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """HTML with the words, as a page that shows a bare PNG has none for it."""
        data = self.png()
        if data is None:
            return {"text/plain": repr(self)}, {}
        width, height = (side // (2 if self.sharp else 1) for side in _size(data))
        text = base64.b64encode(data).decode("ascii")
        said = escape(self.words, quote=True)
        html = (
            f'{self.look}<img class="{self.name}" alt="{said}" '
            f'width="{width}" height="{height}" style="max-width:100%;height:auto" '
            f'src="data:image/png;base64,{text}">'
        )
        size = {"width": width, "height": height, "alt": self.words}
        bundle = {"text/html": html, "image/png": data, "text/plain": repr(self)}
        return bundle, {"image/png": size}


class Images(Still):
    """Images side by side: gray from lowest to highest value of each, or in color.

    images: gray ones, or color with values 0 to 1 (0 to 255 if whole numbers).
    alt: what is to be seen on them, for those who do not see it.

    Shapes: images [n, height, width], [n, 3, height, width] or [n, height, width, 3]
    """

    sharp = False

    def __init__(
        self,
        images: Any,
        titles: Sequence[Any] = (),
        columns: int = 10,
        zoom: int = 3,
        alt: str = "",
    ):
        self.images = _channels_last(as_array(images))
        self.titles = [str(title) for title in titles]
        self.columns = columns
        self.zoom = zoom
        self.alt = alt

    def png(self) -> bytes | None:
        """The picture as PNG; None without Pillow."""
        try:
            from PIL import Image, ImageDraw, ImageFont
        except ImportError:
            return None
        count, height, width = self.images.shape[:3]
        gap, head = 6, 18 if self.titles else 0
        step = (width * self.zoom + gap, height * self.zoom + gap + head)
        columns = max(1, min(count, self.columns))
        rows = max(1, -(-count // columns))
        paper = PAPER if self.titles else (0, 0, 0, 0)  # words need one to be read
        sheet = Image.new("RGBA", (columns * step[0], rows * step[1]), paper)
        pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(12)
        for i, image in enumerate(self.images):
            left, top = (i % columns) * step[0], (i // columns) * step[1]
            one = Image.fromarray(as_bytes(image)).resize(
                (width * self.zoom, height * self.zoom), Image.Resampling.NEAREST
            )
            sheet.paste(one, (left, top + head))
            if i < len(self.titles):
                title = _fitting(self.titles[i], step[0] - 4, font.getlength)
                pen.text((left + 1, top + 1), title, INK, font)
        return save(sheet)

    @property
    def words(self) -> str:
        """What is to be seen: `alt` or how many of what size, then the titles."""
        count, height, width = self.images.shape[:3]
        kind = "gray" if self.images.ndim == 3 else "color"
        several = f"{count} {kind} images" if count != 1 else f"One {kind} image"
        said = self.alt or f"{several} of {width} by {height} pixels"
        titles = f": {', '.join(self.titles)}" if self.titles else ""
        return f"{said}{titles}"

    def __repr__(self) -> str:
        count, height, width = self.images.shape[:3]
        titles = f": {', '.join(self.titles)}" if self.titles else ""
        return f"Images({count} of {height} × {width}{titles})"


class Sketch(Still):
    """A picture of lines, areas and words; on a dark page its paper is dark."""

    look = DARK_PAPER
    name = "bb-picture bb-drawn"

    def drawing(self) -> Drawing:
        """What is drawn."""
        raise TypeError(f"{type(self).__name__} draws nothing")

    def png(self) -> bytes | None:
        """The picture as PNG; None if it cannot be one."""
        return self.drawing().png(paper=True)

    def _forms(self) -> dict[str, Callable[[], bytes | str | None]]:
        return {".svg": self.drawing().svg, **super()._forms()}

    def _repr_svg_(self) -> str | None:
        return None if self.png() else self.drawing().svg()

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        svg = self._repr_svg_()
        if svg is None:
            return super()._repr_mimebundle_()
        html = f'<div style="overflow-x:auto">{svg}</div>'
        bundle = {"text/html": html, "image/svg+xml": svg, "text/plain": repr(self)}
        return bundle, {}


class Bars(Sketch):
    """One horizontal bar per name; the longest bar fills the width.

    Values below zero go to the left; NaN and infinity have no bar, only their name.
    """

    def __init__(self, values: Mapping[Any, float], title: str = ""):
        self.values = {str(name): float(value) for name, value in values.items()}
        self.title = title

    def drawing(self) -> Drawing:
        """A row per bar, its name before it and its value behind."""
        height = (len(self.values) + 1) * (BAR_HEIGHT + 6) + 6
        left = 16 + LETTER * max(map(columns, self.values), default=0)
        texts = same_digits(list(self.values.values()))
        room = max(80, 12 + LETTER * max(map(len, texts), default=0))
        sheet = Drawing(left + BAR_WIDTH + room, height, self.words)
        sheet.add(Words((8, BAR_HEIGHT), self.title, bold=True))
        finite = [v for v in self.values.values() if math.isfinite(v)]
        low, high = min(0.0, *finite, 0.0), max(0.0, *finite, 0.0)
        scale = BAR_WIDTH / ((high - low) or 1.0)
        zero = left - low * scale
        rows = zip(self.values.items(), texts, strict=True)
        for row, ((name, value), text) in enumerate(rows, start=1):
            top = row * (BAR_HEIGHT + 6)
            end = zero + (value * scale if math.isfinite(value) else 0.0)
            box = ((zero, top), (end, top))
            box += ((end, top + BAR_HEIGHT), (zero, top + BAR_HEIGHT))
            middle = top + BAR_HEIGHT - 4
            sheet.add(
                Area(box, "train", 0.7),
                Words((left - 8, middle), name, anchor="end"),
                Words((max(zero, end) + 6, middle), text, "ink"),
            )
        bottom = height - 4
        sheet.add(Line(((zero, BAR_HEIGHT + 4), (zero, bottom)), "quiet", 1.0))
        return sheet

    @property
    def words(self) -> str:
        """The bars from top to bottom with their values."""
        items = list(self.values.items())
        texts = same_digits([value for _, value in items])
        said = [f"{name}: {text}" for (name, _), text in zip(items, texts, strict=True)]
        more = f"; and {len(said) - SAID} more" if len(said) > SAID else ""
        head = f"{self.title}. " if self.title else ""
        return f"{head}Bar chart: {'; '.join(said[:SAID])}{more}"

    def __repr__(self) -> str:
        return f"Bars({self.title}; {', '.join(self.values)})"


class Lines(Sketch):
    """Numbers over their positions, one line each, told apart by color and dashes.

    x: where the numbers stand, for all lines; without it 0, 1, 2, …
    x_label, y_label: what the axes measure, with its unit.
    log: the axis of x is logarithmic (all of x above 0).

    Values that are NaN or infinite leave a gap.
    """

    def __init__(
        self,
        lines: Mapping[str, Any],
        title: str = "",
        x: Any = None,
        x_label: str = "position",
        y_label: str = "",
        log: bool = False,
    ):
        self.lines = {
            str(name): as_array(values).astype(float).ravel()
            for name, values in lines.items()
        }
        self.title = title
        self.x = None if x is None else as_array(x).astype(float).ravel()
        self.x_label, self.y_label, self.log = x_label, y_label, log

    def places(self, count: int) -> np.ndarray:
        """Where so many numbers stand on the axis of x."""
        return np.arange(count, dtype=float) if self.x is None else self.x[:count]

    def drawing(self) -> Drawing:
        """The lines over their axes, their names below."""
        width, names = 520, list(self.lines)
        shown = names if len(names) > 1 or any(names) else []
        rows = _legend_rows(shown, width - 60)
        top = 30 + (16 if self.y_label else 0)
        bottom = top + 176
        under = bottom + (50 if self.x_label else 34)
        sheet = Drawing(width, under - 10 + 20 * len(rows), self.words)
        sheet.add(Words((8, 16), self.title, bold=True))
        if self.y_label:
            sheet.add(Words((8, 34), self.y_label, "ink", 11))
        self._draw_axes(sheet, top, bottom)
        for down, row in enumerate(rows):
            for left, place in row:
                y = under + 20 * down
                mark = ((left, y), (left + 24, y))
                role, dash = STYLES[place % len(STYLES)]
                sheet.add(Line(mark, role, 2.0, 1.0, dash))
                sheet.add(Words((left + 30, y + 4), names[place], "ink"))
        return sheet

    def _draw_axes(self, sheet: Drawing, top: float, bottom: float) -> None:
        """Axes with round numbers, and the lines between them."""
        (first, last), (low, high) = self._ranges()
        marks = ticks(low, high, 4)
        texts = same_digits(marks)
        left = 18 + LETTER * max(map(len, texts), default=1)
        across = math.log if self.log else float
        span = (across(first), across(last))
        box = Axes(span, (low, high), left, sheet.width - 26, top, bottom)
        for value, text in zip(marks, texts, strict=True):
            x, y = box.at(span[0], value)
            sheet.add(Line(((x, y), (box.right, y)), "quiet", 0.6, 0.5))
            sheet.add(Words((x - 6, y + 4), text, "ink", 11, "end"))
        if self.log:
            numbers = log_ticks(first, last)
        else:
            numbers = ticks(first, last, 6, whole=self.x is None)
        names = [*map(plain, numbers)] if self.log else same_digits(numbers)
        for value, text in zip(numbers, names, strict=True):
            x, y = box.at(across(value), low)
            sheet.add(Line(((x, y), (x, y + 4)), "quiet", 1.0))
            sheet.add(Words((x, y + 17), text, "ink", 11, "middle"))
        corner = ((box.left, box.top), (box.left, box.bottom), (box.right, box.bottom))
        sheet.add(Line(corner, "quiet", 1.0))
        if self.x_label:
            middle = (box.left + box.right) / 2
            sheet.add(Words((middle, bottom + 31), self.x_label, "ink", 11, "middle"))
        for place, values in enumerate(self.lines.values()):
            role, dash = STYLES[place % len(STYLES)]
            at = [across(x) for x in self.places(len(values)).tolist()]
            for piece in _pieces(at, values):
                points = tuple(box.at(x, y) for x, y in piece)
                alone = len(points) == 1
                line = Line(points, role, 2.0, 1.0, dash)
                sheet.add(Mark(points[0], role) if alone else line)

    def _ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """From where to where both axes go; that of y holds zero."""
        every = np.concatenate([*self.lines.values(), np.empty(0)])
        every = every[np.isfinite(every)]
        low, high = min(0.0, *every.tolist(), 0.0), max(0.0, *every.tolist(), 0.0)
        if low == high:
            high = low + 1.0
        longest = max((len(line) for line in self.lines.values()), default=1)
        at = self.places(longest)
        first, last = (float(at.min()), float(at.max())) if len(at) else (0.0, 1.0)
        if first == last:
            first, last = (first, first + 1) if not self.log else (first, first * 10)
        return (first, last), (low, high)

    @property
    def words(self) -> str:
        """Where each line begins and ends, and how far down and up it goes."""
        said = [self._said(*item) for item in list(self.lines.items())[:SAID]]
        more = len(self.lines) - SAID
        said += [f"and {more} more lines"] if more > 0 else []
        head = f"{self.title}. " if self.title else ""
        over = f"Line chart over {self.x_label or 'x'}"
        return f"{head}{over}: {'; '.join(said) or 'no lines'}"

    def _said(self, name: str, values: np.ndarray) -> str:
        at = self.places(len(values))
        kept = np.isfinite(values)
        if not kept.any():
            return f"{name} has no finite numbers"
        x, y = at[kept], values[kept]
        ends = (
            f"from {plain(y[0])} at {plain(x[0])} to {plain(y[-1])} at {plain(x[-1])}"
        )
        extremes = (f"lowest {plain(y.min())}", f"highest {plain(y.max())}")
        return f"{name} {ends}, {', '.join(extremes)}"

    def __repr__(self) -> str:
        count = max((len(line) for line in self.lines.values()), default=0)
        return f"Lines({self.title}; {', '.join(self.lines)}; {count} points)"


def plain(value: float) -> str:
    """A number as people write it, with three digits that count.

    Example:
        >>> plain(1234567.0), plain(0.00081), plain(99.95), plain(2e-9)
        ('1,230,000', '0.00081', '100', '2e-9')
    """
    if not math.isfinite(value):
        return f"{value:f}".replace("nan", "NaN")
    rounded = float(f"{value:.3g}")
    size = abs(rounded)
    if rounded and not 1e-4 <= size < 1e7:
        return f"{rounded:g}".replace("e-0", "e-").replace("e+0", "e")
    return f"{rounded:,.8f}".rstrip("0").rstrip(".")


def same_digits(values: Sequence[float]) -> list[str]:
    """Numbers side by side, with as many decimals as the largest of them needs.

    What is too small to be told from zero so says "<0.1": the longest bar has the say.
    Numbers on an even scale (ticks) get the decimals of their step.

    Example:
        >>> same_digits([98.7, 1.04, 0.0008113, 0])
        ['98.7', '1.0', '<0.1', '0']
        >>> same_digits([0, 0.25, 0.5]), same_digits([12, 3456])
        (['0', '0.25', '0.50'], ['12', '3,456'])
    """
    finite = [abs(value) for value in values if math.isfinite(value) and value]
    if not finite:
        return [plain(value) for value in values]
    if max(finite) >= 1e10 or max(finite) < 1e-3:
        return [plain(value) for value in values]
    whole = all(value == int(value) for value in finite)
    digits = 0 if whole else max(0, 2 - math.floor(math.log10(max(finite))))
    while digits and all(math.isclose(v, round(v, digits - 1)) for v in finite):
        digits -= 1
    return [_with_digits(value, digits) for value in values]


def _with_digits(value: float, digits: int) -> str:
    if not math.isfinite(value):
        return plain(value)
    if not value:
        return "0"
    least = 10.0**-digits
    if abs(value) < least / 2:
        return f"<{least:.{digits}f}" if value > 0 else f">-{least:.{digits}f}"
    return f"{value:,.{digits}f}"


def as_bytes(image: np.ndarray) -> np.ndarray:
    """Stretch gray values to 0 … 255; NaN is the lowest. Colors keep their scale."""
    if image.ndim == 3:
        scale = 1 if image.dtype.kind in "iu" else 255
        clear = np.nan_to_num(image.astype(float), nan=0.0)
        return np.clip(np.round(clear * scale), 0, 255).astype(np.uint8)
    known = image[np.isfinite(image)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    kept = np.nan_to_num(image.astype(float), nan=low, posinf=high, neginf=low)
    return ((kept - low) / ((high - low) or 1.0) * 255).astype(np.uint8)


def save(image: Any) -> bytes:
    """Return a Pillow image as the bytes of a PNG file."""
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def _size(data: bytes) -> tuple[int, int]:
    """Width and height, with which every PNG file begins."""
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def _channels_last(images: np.ndarray) -> np.ndarray:
    """Gray images as they are, colors as the last dim."""
    if images.ndim == 4 and images.shape[1] == 3 and images.shape[3] != 3:
        return np.moveaxis(images, 1, -1)
    return images


def _fitting(text: str, width: float, measure: Any) -> str:
    """As much of a text as there is room for."""
    if measure(text) <= width:
        return text
    while text and measure(f"{text}…") > width:
        text = text[:-1]
    return f"{text}…"


def _legend_rows(names: Sequence[str], width: float) -> list[list[tuple[float, int]]]:
    """Rows of (left, place): each name after its line, as many in a row as fit."""
    rows: list[list[tuple[float, int]]] = []
    left = width
    for place, name in enumerate(names):
        wide = 48 + LETTER * columns(name)
        if not rows or left + wide > 40 + width:
            rows.append([])
            left = 40.0
        rows[-1].append((left, place))
        left += wide
    return rows


def _pieces(at: Sequence[float], values: np.ndarray) -> list[list[tuple[float, float]]]:
    """The points of each unbroken piece of a line."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for x, y in zip(at, values.tolist(), strict=False):
        if math.isfinite(y):
            pieces[-1].append((x, y))
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]
