"""`save_work`: changed pages and artifacts, in one zip file."""

from __future__ import annotations

import contextlib
import hashlib
import json
import stat
import time
import zipfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from burnbook.cli.workspace.contents import LIST, MOST_BYTES, MOST_FILES, is_saved_work
from burnbook.cli.workspace.places import Found, Piece, find_work, units_of
from burnbook.core.errors import DataError
from burnbook.core.files import PathLike, atomic_write, open_regular

CHUNK = 1 << 20
FORMAT = 1


@dataclass(frozen=True)
class Saved:
    """What went into the file, and what did not.

    pages: changed or new. units: folders of trainings. left_out: (path, reason).
    """

    path: Path
    pages: list[str]
    units: list[str]
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def __str__(self) -> str:
        size = self.path.stat().st_size / 1e6 if self.path.is_file() else 0.0
        lines = [f"{self.path}: {counted(self.pages, self.units)}, {size:.1f} MB"]
        lines += [f"  {name}" for name in [*self.pages, *self.units]]
        lines += [f"  not {name}: {reason}" for name, reason in self.left_out]
        return "\n".join(lines)


def counted(pages: list[str], units: list[str]) -> str:
    """How much there is, in words.

    Example:
        >>> counted(["01_overview.ipynb"], ["artifacts/a", "artifacts/b"])
        '1 page, 2 of artifacts'
    """
    parts = [f"{len(pages)} page{'s' * (len(pages) != 1)}"] if pages else []
    parts += [f"{len(units)} of artifacts"] if units else []
    return ", ".join(parts) or "nothing"


def save_work(
    file: PathLike, *, folder: PathLike, shipped: PathLike, artifacts: bool = True
) -> Saved:
    """Put the work of a folder into one zip file: the whole file, or none.

    folder: where the chapters lie that were worked on. shipped: where they lie as they
    came. artifacts: whether folders of trainings go along.
    """
    path, place = Path(file), Path(folder)
    if path.exists() and not is_saved_work(path):
        what = f"{path} already exists, and is not saved work"
        raise DataError("save", what, cure="another name")
    found = find_work(place, Path(shipped), artifacts)
    _check_size(place, found)
    gone: list[tuple[str, str]] = []
    with atomic_write(path) as out, zipfile.ZipFile(out, "w") as archive:
        entries = []
        for piece in found.pieces:
            entry = _add(archive, place, piece, Path(shipped))
            if entry is None:
                gone.append((piece.path, "it has disappeared, or cannot be read"))
            else:
                entries.append(entry)
        archive.writestr(
            _info(LIST, time.time()), json.dumps(_contents(entries), indent=1)
        )
    there = {entry["path"] for entry in entries}
    kept = [piece for piece in found.pieces if piece.path in there]
    pages = [piece.path for piece in kept if not piece.unit]
    return Saved(path, pages, units_of(kept), [*found.left_out, *gone])


def _check_size(folder: Path, found: Found) -> None:
    if not found.pieces:
        what = f"there is nothing to save in {folder}"
        why = "no page was changed, and no training left artifacts"
        raise DataError("save", what, [why, *_reasons(found)])
    sizes: dict[str, int] = {}
    for piece in found.pieces:
        key = piece.unit or piece.path
        sizes[key] = sizes.get(key, 0) + _size(folder / piece.path)
    total, count = sum(sizes.values()), len(found.pieces)
    if total <= MOST_BYTES and count <= MOST_FILES:
        return
    largest = sorted(sizes, key=lambda key: -sizes[key])[:5]
    raise DataError(
        "save",
        f"{total / 1e6:,.0f} MB in {count:,} files are too much for one file",
        [
            ("at most", f"{MOST_FILES:,} files, {MOST_BYTES / 1e6:,.0f} MB"),
            *((name, f"{sizes[name] / 1e6:,.1f} MB") for name in largest),
        ],
        "deleting trainings (burnbook runs), or save --without-artifacts",
    )


def _reasons(found: Found) -> list[str]:
    return [f"not {name}: {reason}" for name, reason in found.left_out[:5]]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _add(
    archive: zipfile.ZipFile, folder: Path, piece: Piece, shipped: Path
) -> dict[str, Any] | None:
    """Add a file as it is now; None when it has gone or cannot be read."""
    path = folder / piece.path
    digest, size = hashlib.sha256(), 0
    with contextlib.ExitStack() as stack:
        try:
            about = path.lstat()
            if not stat.S_ISREG(about.st_mode):
                return None
            source = stack.enter_context(open_regular(path))
        except (OSError, DataError):
            return None
        target = stack.enter_context(
            archive.open(_info(piece.path, about.st_mtime), "w")
        )
        left = about.st_size  # what a training appends from now on stays out
        while left and (part := source.read(min(CHUNK, left))):
            digest.update(part)
            target.write(part)
            size += len(part)
            left -= len(part)
    entry = {"path": piece.path, "size": size, "sha256": digest.hexdigest()}
    if piece.unit:
        return {**entry, "unit": piece.unit}
    original = shipped / piece.path
    if original.is_file():
        entry["original"] = hashlib.sha256(original.read_bytes()).hexdigest()
    return entry


def _info(name: str, when: float) -> zipfile.ZipInfo:
    """The head of an ordinary file, compressed."""
    info = zipfile.ZipInfo(name, max(time.gmtime(when)[:6], (1980, 1, 1, 0, 0, 0)))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    return info


def _contents(entries: list[dict[str, Any]]) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        ours = version("burnbook")
    except PackageNotFoundError:  # run from a checkout that is not installed
        ours = ""
    return {"format": FORMAT, "burnbook": ours, "saved": now, "files": entries}
