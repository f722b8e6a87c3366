"""A canvas of characters, and lines drawn with Braille dots.

A Braille character holds 2 × 4 dots, so a plot of 40 × 8 characters has 80 × 32 dots:
enough for a smooth curve in any terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

BRAILLE = 0x2800
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # [row][column]
RESET = "\x1b[0m"


class Canvas:
    """A rectangle of characters, each with a style (an ANSI sequence, or "").

    What is written outside the rectangle is cut off.

    Example:
        >>> canvas = Canvas(8, 1)
        >>> canvas.text(2, 0, "hello world")
        >>> canvas.lines()
        ['  hello ']
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.chars = [[" "] * width for _ in range(height)]
        self.styles = [[""] * width for _ in range(height)]

    def text(self, x: int, y: int, text: str, style: str = "") -> None:
        """Write a text from (x, y) to the right."""
        if not 0 <= y < self.height or x >= self.width:
            return
        text = text[max(-x, 0) : self.width - x]
        x = max(x, 0)
        self.chars[y][x : x + len(text)] = text
        self.styles[y][x : x + len(text)] = [style] * len(text)

    def right(self, x: int, y: int, text: str, style: str = "") -> None:
        """Write a text that ends before x."""
        self.text(x - len(text), y, text, style)

    def box(self, x: int, y: int, w: int, h: int, title: str, style: str = "") -> None:
        """Draw a frame with a title."""
        if w < 2 or h < 2:
            return
        self.text(x, y, "╭" + "─" * (w - 2) + "╮", style)
        for row in range(y + 1, y + h - 1):
            self.text(x, row, "│", style)
            self.text(x + w - 1, row, "│", style)
        self.text(x, y + h - 1, "╰" + "─" * (w - 2) + "╯", style)
        self.text(x + 2, y, f" {title} "[: w - 4])

    def bar(self, x: int, y: int, w: int, share: float, style: str, rest: str) -> None:
        """Draw a progress bar filled to a share of its width."""
        halves = round(2 * w * min(max(share, 0.0), 1.0))
        full, half = divmod(halves, 2)
        self.text(x, y, "─" * w, rest)
        self.text(x, y, "━" * full + "╸" * half, style)

    def lines(self) -> list[str]:
        """The rows as texts with ANSI styles, each closed at its end."""
        return [
            _styled(chars, styles)
            for chars, styles in zip(self.chars, self.styles, strict=True)
        ]


def _styled(chars: list[str], styles: list[str]) -> str:
    parts: list[str] = []
    start = 0
    for style, group in groupby(styles):
        end = start + sum(1 for _ in group)
        text = "".join(chars[start:end])
        parts.append(f"{style}{text}{RESET}" if style else text)
        start = end
    return "".join(parts)


Points = Sequence[tuple[float, float]]


class Plot:
    """Curves in a rectangle of Braille characters, drawn over one another.

    Example:
        >>> plot = Plot(4, 1, x_range=(0, 7), y_range=(0, 3))
        >>> plot.curve([(0, 0), (7, 3)])
        >>> canvas = Canvas(4, 1)
        >>> plot.paint(canvas, 0, 0)
        >>> canvas.lines()
        ['⣀⠤⠒⠉']
    """

    def __init__(
        self,
        width: int,
        height: int,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
    ) -> None:
        self.width, self.height = width, height
        self.x_low, x_high = x_range
        self.y_low, y_high = y_range
        self.x_scale = (2 * width - 1) / ((x_high - self.x_low) or 1)
        self.y_scale = (4 * height - 1) / ((y_high - self.y_low) or 1)
        self.cells: dict[tuple[int, int], int] = {}
        self.styles: dict[tuple[int, int], str] = {}

    def curve(self, points: Points, style: str = "", dotted: bool = False) -> None:
        """Draw straight lines from point to point; dotted leaves gaps."""
        places = [self._place(x, y) for x, y in points]
        for start, end in zip(places, places[1:] or places, strict=False):
            self._segment(start, end, style, 2 if dotted else 1)

    def marks(self, points: Points, style: str = "") -> None:
        """Draw a small cross at every point."""
        for x, y in points:
            column, row = self._place(x, y)
            for dx, dy in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)):
                self._dot(column + dx, row + dy, style)

    def _place(self, x: float, y: float) -> tuple[int, int]:
        column = round((x - self.x_low) * self.x_scale)
        row = 4 * self.height - 1 - round((y - self.y_low) * self.y_scale)
        return column, row

    def _segment(
        self, start: tuple[int, int], end: tuple[int, int], style: str, stride: int
    ) -> None:
        (x0, y0), (x1, y1) = start, end
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        for i in range(0, steps + 1, stride):
            x = x0 + round((x1 - x0) * i / steps)
            y = y0 + round((y1 - y0) * i / steps)
            self._dot(x, y, style)

    def _dot(self, column: int, row: int, style: str) -> None:
        if 0 <= column < 2 * self.width and 0 <= row < 4 * self.height:
            cell = (column // 2, row // 4)
            self.cells[cell] = self.cells.get(cell, 0) | DOTS[row % 4][column % 2]
            self.styles[cell] = style

    def paint(self, canvas: Canvas, x: int, y: int) -> None:
        """Copy the dots onto a canvas, with the upper left corner at (x, y)."""
        for (column, row), dots in self.cells.items():
            style = self.styles[column, row]
            canvas.text(x + column, y + row, chr(BRAILLE + dots), style)
