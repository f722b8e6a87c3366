"""`SaveMyWork`: one button hands you your work, another takes it back.

A server on the web forgets a reader some minutes after the last click. The first button
downloads what `burnbook save` would write, the second restores such a file. The bytes
travel in pieces, as the page asks for them or as it has them, and stay in no notebook.
"""

from __future__ import annotations

import tempfile
from datetime import datetime
from html import escape
from pathlib import Path
from typing import IO, Any

import anywidget
import ipywidgets
import traitlets

from burnbook.cli.learn import chapters_folder
from burnbook.cli.work import save
from burnbook.cli.workspace import Restored, Saved, find_folder, restore_work
from burnbook.cli.workspace.contents import MOST_BYTES
from burnbook.core.errors import DataError
from burnbook_widgets.page import script, sheet
from burnbook_widgets.view import View

PIECE = 1 << 20
HINT = (
    "Pages are taken as they were last saved: press Ctrl+S (⌘S) in each one first. "
    "Files that are there already are kept under another name."
)


class WorkPanel(anywidget.AnyWidget):
    """The page's side: two buttons, and what came of the last click."""

    _esm = script("work")
    _css = sheet("work")

    hint = traitlets.Unicode(HINT).tag(sync=True)
    said = traitlets.Unicode().tag(sync=True)
    lines = traitlets.List(traitlets.Unicode()).tag(sync=True)
    fault = traitlets.Unicode().tag(sync=True)

    def __repr__(self) -> str:
        return "WorkPanel()"


class SaveMyWork(View):
    """Your changed chapters and trainings as one file to download, and back again.

    folder: where the chapters are; without, they are looked for near this page.

    Example:
        >>> work = SaveMyWork()
        >>> work
        SaveMyWork()
    """

    def __init__(self, folder: str | Path | None = None):
        super().__init__()
        self.folder = None if folder is None else Path(folder)
        self._sending: IO[bytes] | None = None
        self._coming: IO[bytes] | None = None
        self.open()

    def save(self, file: str | Path | None = None) -> Saved:
        """Write the file here: next to this page, with date and time in its name."""
        done = save(Path(file) if file else None, self.folder)
        self._tell(str(done))
        return done

    def restore(self, file: str | Path) -> Restored:
        """Bring back what a file holds; nothing that is here gets lost."""
        shipped = chapters_folder()
        place = self.folder or find_folder(Path.cwd(), shipped) or Path.cwd()
        done = restore_work(file, folder=place, shipped=shipped)
        self._tell(f"{done}\nOpen the pages again to see them.")
        return done

    def _tell(self, text: str) -> None:
        """Show what came of a click: a line that is read aloud, and details."""
        if self.panel is not None:
            first, *rest = text.splitlines()
            self.panel.lines = [line.strip() for line in rest]
            self.panel.said = first

    # ── live ────────────────────────────────────────────────────────────────

    def _build(self) -> ipywidgets.VBox:
        self.panel = WorkPanel()
        self.panel.on_msg(self.act(self._told))
        return ipywidgets.VBox([self.panel])

    def _told(self, _: Any, message: Any, buffers: Any) -> None:
        """What the page asks for, or hands over; a fault frees its buttons too."""
        try:
            self._heard(message, b"".join(bytes(each) for each in buffers or ()))
        except Exception:
            self._drop()
            self.panel.said, self.panel.lines = "", []
            self.panel.send({"do": "end"})
            raise

    def _heard(self, message: Any, part: bytes) -> None:
        match message.get("do"):
            case "save":
                self._send_first()
            case "piece":
                self._send_piece(int(message["at"]))
            case "bring":
                self._take(message, part)
            case _:
                pass

    def _send_first(self) -> None:
        """Make the file, and tell the page how long it is."""
        self._drop()
        with tempfile.TemporaryDirectory() as folder:
            name = f"burnbook-work-{datetime.now():%Y-%m-%d-%H%M}.zip"
            done = save(Path(folder) / name, self.folder)
            file = tempfile.TemporaryFile()  # noqa: SIM115 - _drop closes it
            with open(done.path, "rb") as source:
                while part := source.read(PIECE):
                    file.write(part)
            text = str(done).replace(str(done.path), name, 1)
        self._sending = file
        self._tell(text)
        self.panel.send({"do": "take", "name": name, "size": file.tell()})

    def _send_piece(self, at: int) -> None:
        """Hand over the piece that begins there; forget the file after the last."""
        if self._sending is None:
            raise DataError("save", "the file is gone", cure="the button once more")
        size = self._sending.seek(0, 2)
        self._sending.seek(min(max(at, 0), size))
        part = self._sending.read(PIECE)
        self.panel.send({"do": "piece", "at": at}, buffers=[part])
        if at + len(part) >= size:
            self._drop()

    def _take(self, message: Any, part: bytes) -> None:
        """Put the pieces of a file together, and restore it when it is whole."""
        at, size = int(message["at"]), int(message["size"])
        if at == 0:
            self._drop()
            self._coming = tempfile.TemporaryFile()  # noqa: SIM115 - as above
        if self._coming is None or self._coming.tell() != at:
            raise DataError("restore", "a piece was lost", cure="the button once more")
        if max(size, at + len(part)) > MOST_BYTES:
            what = f"{size / 1e6:,.0f} MB are more than {MOST_BYTES / 1e6:,.0f}"
            raise DataError("restore", what)
        self._coming.write(part)
        if at + len(part) < size:
            self.panel.send({"do": "more", "at": at + len(part)})
            return
        whole, self._coming = self._coming, None
        with whole, tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / (Path(str(message.get("name"))).name or "work.zip")
            whole.seek(0)
            with open(path, "wb") as target:
                while piece := whole.read(PIECE):
                    target.write(piece)
            self.restore(path)

    def _drop(self) -> None:
        """Forget what was under way."""
        for file in (self._sending, self._coming):
            if file is not None:
                file.close()
        self._sending = self._coming = None

    def close(self) -> None:
        """Free the widgets and what was under way."""
        self._drop()
        super().close()

    # ── still ───────────────────────────────────────────────────────────────

    def still(self) -> str:
        """What to do where there is no button."""
        return (
            '<div style="line-height:1.5"><b>Save my work.</b> In a live page '
            "there are two buttons here. In a terminal: <code>burnbook save</code>, "
            f"and <code>burnbook restore FILE</code>. {escape(HINT)}</div>"
        )

    def __repr__(self) -> str:
        return f"SaveMyWork({self.folder or ''})"
