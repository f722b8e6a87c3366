"""`restore_work`: everything comes back, and nothing is lost for it.

First the whole file is unpacked beside the pages, in a hidden folder, while sizes and
sums are compared. Only then names change: a page or a training that stands in the way
is kept under another name. When a step fails, those before it are taken back; when the
program is killed, restoring once more does the rest.

Nothing that comes back runs before its reader runs it: see `places`.
"""

from __future__ import annotations

import contextlib
import filecmp
import hashlib
import os
import shutil
import time
import uuid
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from burnbook.cli.workspace.contents import Entry, explained, opened
from burnbook.cli.workspace.pages import leave_out_what_runs
from burnbook.cli.workspace.places import (
    AS_TEXT,
    CODE,
    PAGE,
    as_it_came,
    folded,
    imported_name,
    is_code,
)
from burnbook.cli.workspace.saving import counted
from burnbook.core.errors import DataError
from burnbook.core.files import PathLike, sync_folder

CHUNK = 1 << 20
STAGE = ".burnbook-restore-"
ABANDONED = 600.0  # seconds after which a hidden folder belongs to a killed program


@dataclass
class Restored:
    """What came back.

    pages, units: what was written. kept: what stood there before, and its name now.
    same: how many pages and units were there already. as_text: Python files that came
    back under a name from which nothing can be imported. shadowing: those of them that
    have the name of a known module, and that name. without: what was left out of the
    metadata of pages, because it could run.
    """

    folder: Path
    pages: list[str] = field(default_factory=list)
    units: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    same: int = 0
    as_text: dict[str, str] = field(default_factory=dict)
    shadowing: dict[str, str] = field(default_factory=dict)
    without: dict[str, list[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{counted(self.pages, self.units)} came back to {self.folder}"]
        lines += [f"  {name}" for name in [*self.pages, *self.units]]
        lines += [f"  kept: {name} as {kept}" for name, kept in self.kept.items()]
        if self.same:
            lines.append(f"  already there, identical: {self.same}")
        for name, left in self.without.items():
            known = ", ".join(ascii(each[:30])[1:-1] for each in left[:5])
            lines.append(f"  {name} without metadata that could run: {known}")
        return "\n".join([*lines, *self._about_code()])

    def _about_code(self) -> list[str]:
        if not self.as_text:
            return []
        lines = ["  Python files came back as text, because a page could run them:"]
        for name, text in self.as_text.items():
            known = self.shadowing.get(name)
            why = f", for Python imports another {known}" if known else ""
            lines.append(f"    {name} as {text}{why}")
        if len(self.as_text) > len(self.shadowing):
            lines += [
                "  if you saved it yourself: burnbook restore FILE --with-modules",
                "  if not, read them, and take .txt off those that you trust",
            ]
        return lines


def restore_work(
    file: PathLike,
    *,
    folder: PathLike,
    shipped: PathLike | None = None,
    modules: bool = False,
) -> Restored:
    """Bring the work of a saved file back to a folder.

    shipped: where the chapters lie as they came: a page that was not changed since
    makes room without being kept. modules: bring Python files back as what they are,
    not as text; only for a file that you saved yourself, because a page may run them as
    soon as it is opened.
    """
    path, place = Path(file), Path(os.path.realpath(folder))
    where = f"restore {path.name}"
    original = None if shipped is None else Path(shipped)
    with opened(path) as (archive, entries):
        try:
            place.mkdir(parents=True, exist_ok=True)
            restoring = _Restoring(where, place, original, archive, entries)
            return restoring.run(modules)
        except OSError as cause:
            name = Path(cause.filename).name if cause.filename else place
            what = f"{name} cannot be written: {cause.strerror or cause}"
            cure = "another folder, or free space; what was there is kept"
            raise DataError(where, what, cure=cure) from None


class _Restoring:
    """One restoring, from the first look to the last name."""

    def __init__(
        self,
        where: str,
        folder: Path,
        shipped: Path | None,
        archive: zipfile.ZipFile,
        entries: list[Entry],
    ) -> None:
        self.where, self.folder, self.shipped = where, folder, shipped
        self.archive, self.entries = archive, entries
        self.stage = folder / f"{STAGE}{uuid.uuid4().hex}"
        self.done = Restored(folder)
        self.back: list[Callable[[], None]] = []  # how to take the steps back
        self.names: dict[str, str] = {}  # under which each file comes back

    def run(self, modules: bool) -> Restored:
        """Unpack, then change names."""
        remove_abandoned(self.folder)
        self._choose_names(modules)
        parts = {entry.unit or self.names[entry.path]: entry for entry in self.entries}
        for part, entry in parts.items():
            self._look(part, entry)
        self._look_for_room()
        try:
            for entry in self.entries:
                self._unpack(entry)
            if hasattr(os, "sync"):
                os.sync()  # once for all files: the names below must not outlive them
            self._move(parts)
        finally:
            shutil.rmtree(self.stage, ignore_errors=True)
        return self.done

    def _choose_names(self, modules: bool) -> None:
        """Give the name of a text to what could be imported and is not here already."""
        taken = {folded(entry.path) for entry in self.entries}
        entries, self.entries = self.entries, []
        for entry in entries:
            known = imported_name(entry.path) if is_code(entry.path) else None
            self.names[entry.path] = entry.path
            if is_code(entry.path) and (known or not modules):
                if self._is_there(entry):
                    self.done.same += 1
                    continue
                self.names[entry.path] = _text_name(entry.path, taken)
                self.done.as_text[entry.path] = self.names[entry.path]
                if known is not None:
                    self.done.shadowing[entry.path] = known
            self.entries.append(entry)

    def _is_there(self, entry: Entry) -> bool:
        """Whether the folder holds a file of this name with the same bytes."""
        target = self.folder / entry.path
        if any(path.is_symlink() for path in (target, *target.parents)):
            return False
        if not target.is_file() or target.stat().st_size != entry.size:
            return False
        return hashlib.sha256(target.read_bytes()).hexdigest() == entry.sha256

    def _look(self, part: str, entry: Entry) -> None:
        """Nothing on the way to a part may be a link, or of another kind than it."""
        names = part.split("/")
        for end in range(1, len(names) + 1):
            path = self.folder.joinpath(*names[:end])
            shown = "/".join(names[:end])
            if path.is_symlink():
                what = f"{shown} is a link here, so it may lead anywhere"
                raise DataError(self.where, what, cure="removing the link by hand")
            if path.is_file() and end < len(names):
                what = f"{shown} is a file here, so it cannot hold {names[end]}"
                raise DataError(self.where, what, cure="moving that file away")
        if not entry.path.startswith(f"{part}/") and (self.folder / part).is_dir():
            what = f"{part} is a folder here"
            raise DataError(self.where, what, cure="moving that folder away")

    def _look_for_room(self) -> None:
        needed = sum(entry.size for entry in self.entries)
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            what = f"it needs {needed / 1e6:,.0f} MB, and {free / 1e6:,.0f} are free"
            raise DataError(self.where, what, cure="free some space first")

    def _unpack(self, entry: Entry) -> None:
        """Write one file to the hidden folder while its size and sum are compared."""
        target = self.stage / self.names[entry.path]
        target.parent.mkdir(parents=True, exist_ok=True)
        digest, left = hashlib.sha256(), entry.size
        with explained(self.where, (OSError,)), open(target, "xb") as out:
            with self.archive.open(entry.path) as source:
                while left >= 0 and (part := source.read(CHUNK)):
                    left -= len(part)
                    digest.update(part)
                    out.write(part)
            if left or digest.hexdigest() != entry.sha256:
                raise ValueError
        if not entry.unit and folded(entry.path).endswith(PAGE):
            left_out = leave_out_what_runs(target, entry.path, self.where)
            if left_out:
                self.done.without[entry.path] = left_out

    def _move(self, parts: dict[str, Entry]) -> None:
        """Give everything its name; when that fails, take back what was done."""
        try:
            for part, entry in parts.items():
                self._place(part, entry)
            sync_folder(self.folder)
        except BaseException:
            for undo in reversed(self.back):
                with contextlib.suppress(OSError):
                    undo()
            raise

    def _place(self, part: str, entry: Entry) -> None:
        """Give one page or unit its name; what has the name now keeps another one."""
        new, target = self.stage / part, self.folder / part
        if target.exists() and same(new, target):
            self.done.same += 1
            return
        if target.is_dir():
            kept = beside(target)
            os.rename(target, kept)
            self.back.append(lambda: os.rename(kept, target))
            self.done.kept[part] = kept.relative_to(self.folder).as_posix()
        elif target.exists():  # at no moment is there no file of this name
            kept = self._copied(target, entry)
            self.back.append(lambda: os.replace(kept, target))
        target.parent.mkdir(parents=True, exist_ok=True)
        taken = target.exists()
        os.replace(new, target)
        if not taken:
            self.back.append(lambda: os.replace(target, new))
        (self.done.units if entry.unit else self.done.pages).append(part)

    def _copied(self, target: Path, entry: Entry) -> Path:
        """A copy of a file: beside it, or hidden when it is as it came."""
        if self._as_it_came(target, entry):
            kept = self.stage / f"{uuid.uuid4().hex}.old"
        else:
            kept = beside(target)
            name = target.relative_to(self.folder).as_posix()
            self.done.kept[name] = kept.relative_to(self.folder).as_posix()
        shutil.copy2(target, kept)
        return kept

    def _as_it_came(self, target: Path, entry: Entry) -> bool:
        """Whether a page is the book's own, the one that the saved page was made from.

        Why: a page of a newer book is kept too, so that both can be compared.
        """
        if self.shipped is None or not entry.original:
            return False
        original = self.shipped / entry.path
        if not as_it_came(target, original):
            return False
        return hashlib.sha256(original.read_bytes()).hexdigest() == entry.original


def _text_name(path: str, taken: set[str]) -> str:
    """A free name that nothing can be imported from: `helpers.py.txt`."""
    stem, number = path[: -len(CODE)], 1
    name = stem + AS_TEXT
    while folded(name) in taken:
        number += 1
        name = f"{stem}-{number}{AS_TEXT}"
    taken.add(folded(name))
    return name


def beside(target: Path) -> Path:
    """A free name next to a file or folder: `02_model.before-restore.ipynb`."""
    number = 1
    while True:
        more = "" if number == 1 else f"-{number}"
        kept = target.with_name(f"{target.stem}.before-restore{more}{target.suffix}")
        if not os.path.lexists(kept):
            return kept
        number += 1


def same(one: Path, other: Path) -> bool:
    """Whether two files, or all files of two folders, have the same bytes."""
    if one.is_file() or other.is_file():
        alike = one.is_file() and other.is_file()
        return alike and filecmp.cmp(one, other, shallow=False)
    names = [sorted(p.name for p in place.iterdir()) for place in (one, other)]
    return names[0] == names[1] and all(
        same(one / name, other / name) for name in names[0]
    )


def remove_abandoned(folder: Path) -> None:
    """Remove the hidden folders that killed programs have left."""
    for path in folder.glob(f"{STAGE}*"):
        with contextlib.suppress(OSError):
            if not path.is_symlink() and time.time() - path.stat().st_mtime > ABANDONED:
                shutil.rmtree(path)
