"""Basic workflow · Data. Small still pictures for chapters: images, bars, lines.

Each is made of plain arrays or tensors, shows itself as PNG (as SVG where its words are
in Chinese), and says in one line of text what it shows, so that a page reads the same
without its pictures.
"""

import io
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from burnbook_widgets.chapters.answers import as_array
from burnbook_widgets.drawing import Area, Drawing, Line, Words, columns

BAR_HEIGHT = 16
BAR_WIDTH = 300
LETTER = 7  # the width of a letter, about
GREY = (115, 123, 133, 255)


class Still:
    """A picture that a notebook keeps: PNG to see, one line of text to read.

    sharp: drawn with twice the pixels that it takes on the page.
    """

    sharp = True

    def png(self) -> bytes | None:
        """The picture as PNG; None without Pillow."""
        raise TypeError(f"{type(self).__name__} draws nothing")

    def _repr_png_(self) -> tuple[bytes, dict[str, int]] | bytes | None:
        data = self.png()
        if data is None or not self.sharp:
            return data
        width, height = struct.unpack(">II", data[16:24])  # as every PNG file begins
        return data, {"width": width // 2, "height": height // 2}


class Images(Still):
    """Grey images side by side, dark to light from the lowest to the highest value.

    Shapes: images [n, height, width]
    """

    sharp = False

    def __init__(
        self, images: Any, titles: Sequence[Any] = (), columns: int = 10, zoom: int = 3
    ):
        self.images = as_array(images)
        self.titles = [str(title) for title in titles]
        self.columns = columns
        self.zoom = zoom

    def png(self) -> bytes | None:
        """The picture as PNG; None without Pillow."""
        try:
            from PIL import Image, ImageDraw, ImageFont
        except ImportError:
            return None
        count, height, width = self.images.shape
        gap, head = 6, 16 if self.titles else 0
        step = (width * self.zoom + gap, height * self.zoom + gap + head)
        columns = min(count, self.columns)
        rows = -(-count // columns)
        sheet = Image.new("RGBA", (columns * step[0], rows * step[1]), (0, 0, 0, 0))
        pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(12)
        for i, image in enumerate(self.images):
            left, top = (i % columns) * step[0], (i // columns) * step[1]
            grey = Image.fromarray(as_bytes(image)).resize(
                (width * self.zoom, height * self.zoom), Image.Resampling.NEAREST
            )
            sheet.paste(grey, (left, top + head))
            if i < len(self.titles):
                pen.text((left, top), self.titles[i], GREY, font)
        return save(sheet)

    def __repr__(self) -> str:
        count, height, width = self.images.shape
        titles = f": {', '.join(self.titles)}" if self.titles else ""
        return f"Images({count} of {height} × {width}{titles})"


class Sketch(Still):
    """A picture of lines, areas and words."""

    def drawing(self) -> Drawing:
        """What is drawn."""
        raise TypeError(f"{type(self).__name__} draws nothing")

    def png(self) -> bytes | None:
        """The picture as PNG; None if it cannot be one."""
        return self.drawing().png()

    def _repr_svg_(self) -> str | None:
        return None if self.png() else self.drawing().svg()


class Bars(Sketch):
    """One horizontal bar per name; the longest bar fills the width."""

    def __init__(self, values: Mapping[Any, float], title: str = ""):
        self.values = {str(name): float(value) for name, value in values.items()}
        self.title = title

    def drawing(self) -> Drawing:
        """A row per bar, its name before it and its value behind."""
        height = (len(self.values) + 1) * (BAR_HEIGHT + 6) + 6
        left = 16 + LETTER * max(map(columns, self.values), default=0)
        sheet = Drawing(left + BAR_WIDTH + 80, height, self.title)
        sheet.add(Words((8, BAR_HEIGHT), self.title, bold=True))
        longest = max(self.values.values(), default=0) or 1
        for row, (name, value) in enumerate(self.values.items(), start=1):
            top = row * (BAR_HEIGHT + 6)
            right = left + BAR_WIDTH * value / longest
            box = ((left, top), (right, top))
            box += ((right, top + BAR_HEIGHT), (left, top + BAR_HEIGHT))
            middle = top + BAR_HEIGHT - 4
            sheet.add(
                Area(box, "train", 0.7),
                Words((left - 8, middle), name, anchor="end"),
                Words((right + 6, middle), f"{value:.4g}", "ink"),
            )
        return sheet

    def __repr__(self) -> str:
        return f"Bars({self.title}; {', '.join(self.values)})"


class Lines(Sketch):
    """Numbers over their positions, one line each, told apart by colour and dashes."""

    def __init__(self, lines: Mapping[str, Any], title: str = ""):
        self.lines = {name: as_array(values) for name, values in lines.items()}
        self.title = title

    def drawing(self) -> Drawing:
        """The lines over an axis, their names below."""
        sheet = Drawing(480, 220, self.title)
        sheet.add(Words((40, 16), self.title, bold=True))
        every = np.concatenate([line.ravel() for line in self.lines.values()])
        low, high = min(0.0, float(every.min())), float(every.max())
        span = (high - low) or 1.0
        sheet.add(Line(((40, 26), (40, 196), (470, 196)), "quiet", 1.0))
        sheet.add(Words((36, 34), f"{high:.3g}", "ink", 10, "end"))
        sheet.add(Words((36, 196), f"{low:.3g}", "ink", 10, "end"))
        styles = (("train", ()), ("valid", (6.0, 3.0)), ("ink", (2.0, 2.0)))
        for i, (name, values) in enumerate(self.lines.items()):
            role, dash = styles[i % len(styles)]
            across = np.linspace(40, 470, len(values))
            down = 196 - 170 * (values - low) / span
            points = tuple(zip(across.tolist(), down.tolist(), strict=True))
            sheet.add(Line(points, role, 2.0, 1.0, dash))
            left = 48 + 130 * i
            sheet.add(Line(((left, 210), (left + 24, 210)), role, 2.0, 1.0, dash))
            sheet.add(Words((left + 30, 214), name, "ink"))
        return sheet

    def __repr__(self) -> str:
        count = max((len(line) for line in self.lines.values()), default=0)
        return f"Lines({self.title}; {', '.join(self.lines)}; {count} points)"


def as_bytes(image: np.ndarray) -> np.ndarray:
    """Stretch values to 0 … 255."""
    low, high = float(image.min()), float(image.max())
    return ((image - low) / ((high - low) or 1.0) * 255).astype(np.uint8)


def save(image: Any) -> bytes:
    """Return a Pillow image as the bytes of a PNG file."""
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()
