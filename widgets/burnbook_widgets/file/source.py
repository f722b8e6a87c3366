"""The Python source that an ONNX file becomes, written when it is first looked at."""

from __future__ import annotations

from typing import Any

from burnbook.core.errors import BurnbookError
from burnbook.importers.onnx.file import OnnxFile
from burnbook_widgets.file.nodes import Box

MOST_LINES = 400  # of source that a page gets
WIDEST = 400  # letters of a line


class SourceText:
    """Source, and which lines values come from; `trouble` says why there is none."""

    def __init__(self, file: OnnxFile) -> None:
        self.file, self.trouble = file, ""
        self._text: str | None = None
        self._lines: list[str] = []
        self._places: dict[str, list[tuple[int, int]]] = {}
        self.types: dict[str, str] = {}

    @property
    def is_written(self) -> bool:
        """Whether there is source yet."""
        return self._text is not None

    def text(self) -> str:
        """All of the source.

        Raises:
            ArgumentError: the package onnx is missing, or operators are not known.
        """
        if self._text is None:
            from burnbook.importers.onnx.load import source_of_file, types_of

            source, model = source_of_file(self.file)
            self._text, self._lines = source.text, source.text.splitlines()
            self._places, self.types = source.lines, types_of(model)
            self.trouble = ""
        return self._text

    def lines_of(self, box: Box) -> tuple[int, int] | None:
        """First and last line of what makes a box's value; None if nothing does.

        Raises:
            ArgumentError: as `text`.
        """
        try:
            self.text()
        except BurnbookError as error:
            self.trouble = str(error)
            return None
        for name in self._names(box):
            found = self._places.get(name)
            if found:
                return found[min(box.turn, len(found) - 1)]
        if box.kind == "leaf":
            return self._of_forward()
        return None

    def _names(self, box: Box) -> list[str]:
        """What may have the line of a box: the values that it gives, or its name."""
        if box.node is None:
            return [] if box.kind == "leaf" else [box.value]
        return [*box.node.outputs, box.node.name]

    def _of_forward(self) -> tuple[int, int] | None:
        """Where an input comes in."""
        for at, line in enumerate(self._lines, 1):
            if line.startswith("    def forward("):
                return at, at
        return None

    def excerpt(
        self, line: tuple[int, int] | None, most: int = MOST_LINES
    ) -> dict[str, Any]:
        """Lines around some: the number of the first, texts, and which are meant."""
        if self._text is None:
            return {"trouble": self.trouble} if self.trouble else {}
        start, end = line or (0, 0)
        total = len(self._lines)
        first = 0
        if total > most:
            first = max(0, min(start - 1 - most // 3, total - most))
        shown = [text[:WIDEST] for text in self._lines[first : first + most]]
        return {
            "first": first + 1,
            "lines": shown,
            "from": start,
            "to": end,
            "total": total,
        }
