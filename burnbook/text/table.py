"""A table of texts, for the terminal and for a page.

Whatever prints rows and columns (runs, sweeps, profiles) goes through this one class,
so that all of them look alike. A terminal has a width: columns that may be spared leave
from the right until the others fit, and a last line names them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from html import escape

NARROWEST = 12  # a first column is never cut below this
GAP = "  "


@dataclass(frozen=True, repr=False)
class TextTable:
    """Rows under a head; `numbers` are the columns that are aligned to the right.

    keep: how many columns, from the left, are never left out. indent: how deep each
    row lies below its branch. notes: lines below the table.

    Example:
        >>> table = TextTable(("run", "loss", "lr"), [("a", "0.5", "0.01")], {1, 2})
        >>> print(table)
        run  loss    lr
        ───────────────
        a     0.5  0.01
        >>> print(table.text(10))
        run  loss
        ─────────
        a     0.5
        not shown for lack of room: lr
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Collection[int] = ()
    keep: int = 1
    indent: Sequence[int] = ()
    notes: Sequence[str] = field(default=())

    def text(self, width: int | None = None) -> str:
        """The table in lines of at most `width` characters, if that can be."""
        cells = [[plain(cell) for cell in row] for row in (self.head, *self._moved())]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        shown = _that_fit(widths, width, self.keep)
        if width is not None:
            widths[0] = _first_width(widths, shown, width)
        lines = [self._line(row, widths, shown) for row in cells]
        rule = "─" * max(map(len, lines))
        lines = [lines[0], rule, *lines[1:], *([rule] if self.notes else [])]
        left_out = [cells[0][i] for i in range(len(self.head)) if i not in shown]
        if left_out:
            lines.append(f"not shown for lack of room: {', '.join(left_out)}")
        return "\n".join([*lines, *self._notes()])

    def html(self) -> str:
        """The table for a page; it takes colors and type from the page around it."""
        head = "".join(self._cell("th", i, name) for i, name in enumerate(self.head))
        depths = self.indent or [0] * len(self.rows)
        body = "".join(
            "<tr>"
            + "".join(
                self._cell("td", i, text, 0 if i else depth)
                for i, text in enumerate(row)
            )
            + "</tr>"
            for row, depth in zip(self.rows, depths, strict=True)
        )
        notes = "<br>".join(map(escape, self._notes()))
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return table + (f'<p style="opacity:.8">{notes}</p>' if notes else "")

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"TextTable({len(self.rows)} rows, {len(self.head)} columns)"

    def _repr_html_(self) -> str:
        return self.html()

    def _moved(self) -> list[list[str]]:
        depths = self.indent or [0] * len(self.rows)
        rows = zip(self.rows, depths, strict=True)
        return [["  " * depth + row[0], *row[1:]] for row, depth in rows]

    def _line(self, row: Sequence[str], widths: list[int], shown: list[int]) -> str:
        texts = [
            cut(row[i], widths[i]).rjust(widths[i])
            if i in self.numbers
            else cut(row[i], widths[i]).ljust(widths[i])
            for i in shown
        ]
        return GAP.join(texts).rstrip()

    def _cell(self, tag: str, column: int, text: str, depth: int = 0) -> str:
        side = "right" if column in self.numbers else "left"
        inner = f"padding-left:{0.6 + depth * 1.2:.1f}em;" if depth else ""
        style = f"{inner}text-align:{side};white-space:nowrap"
        return f'<{tag} style="{style}">{escape(plain(text))}</{tag}>'

    def _notes(self) -> list[str]:
        return ["\n".join(map(plain, note.split("\n"))) for note in self.notes]


class ShownAsTable:
    """The base of what shows itself, in a terminal and in a notebook, as a table."""

    def table(self) -> TextTable:
        """The table."""
        raise TypeError(f"{type(self).__name__} must define table")

    def __str__(self) -> str:
        return self.table().text()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.table().html()


def plain(text: str) -> str:
    """A text without what a terminal would obey: control characters are escaped.

    Example:
        >>> plain("97 %"), plain("\\x1b[2Jgone")
        ('97 %', '\\\\x1b[2Jgone')
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def cut(text: str, width: int) -> str:
    """At most `width` characters of a text, with "…" where the rest was.

    Example:
        >>> cut("a long name", 6), cut("short", 6)
        ('a lon…', 'short')
    """
    return text if len(text) <= width else text[: width - 1] + "…"


def _that_fit(widths: list[int], width: int | None, keep: int) -> list[int]:
    """The columns that have room; the first ones stay in any case."""
    shown: list[int] = []
    used = 0
    for i, wide in enumerate(widths):
        used += wide + (len(GAP) if i else 0)
        if width is None or used <= width or i < keep:
            shown.append(i)
        else:
            break
    return shown


def _first_width(widths: list[int], shown: list[int], width: int) -> int:
    """How wide the first column may be so that the ones shown fit."""
    others = sum(widths[i] + len(GAP) for i in shown if i)
    return max(min(widths[0], width - others), min(NARROWEST, widths[0]))
