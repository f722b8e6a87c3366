"""Overview. Which files are a reader's work, and under which names they may come back.

Work is pages (notebooks and Python files that are not as they came) and units: what
lies in `artifacts`, and every other folder that a training wrote. A unit comes back
whole, because half of one training and half of another is none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from burnbook.train.runs.run import is_run

ARTIFACTS = "artifacts"
PAGES = (".ipynb", ".py")
DEEPEST = 10  # levels of folders
LONGEST = 240  # characters of a path
KEPT = {
    *(".mpk", ".bin", ".bpk", ".gz", ".safetensors", ".pt", ".onnx", ".npy", ".npz"),
    *(".json", ".jsonl", ".log", ".csv", ".tsv", ".txt", ".md", ".toml", ".html"),
    *(".db", ".sqlite", ".png", ".jpg", ".jpeg", ".svg", ".wav"),
}
# Python and Jupyter run these by themselves when they start in a folder.
RUN_BY_THEMSELVES = re.compile(
    r"(jupyter\w*|ipython\w*)_config\.py|(site|user)customize\.py|conftest\.py"
)
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_ODD = re.compile(r'[\\:*?"<>|]')


@dataclass(frozen=True)
class Piece:
    """A file of a reader's work.

    path: from the folder of the chapters on, with slashes. unit: the part of the path
    that comes back whole; empty for a page.
    """

    path: str
    unit: str = ""


@dataclass(frozen=True)
class Found:
    """What is work in a folder, and what is not, with the reason."""

    pieces: list[Piece]
    left_out: list[tuple[str, str]]


def find_folder(start: Path, chapters: Path) -> Path | None:
    """The folder near `start` that holds chapters, named as those of `chapters`."""
    names = {path.name for path in chapters.glob("*.ipynb")}
    near = ["", "..", "burnbook-chapters", "notebooks", "book/notebooks"]
    for place in near:
        folder = (start / place).resolve()
        if any((folder / name).is_file() for name in names):
            return folder
    return None


def find_work(folder: Path, shipped: Path, artifacts: bool = True) -> Found:
    """Every page that is not as it came, and every file of a training."""
    found = Found([], [])
    for path, unit in _walk(folder, _sources(folder, shipped)):
        name = path.relative_to(folder).as_posix()
        top = unit.relative_to(folder).as_posix() if unit else ""
        if top and not artifacts:
            continue
        if not top and path.suffix not in PAGES:
            continue
        if not top and as_it_came(path, shipped / name):
            continue
        reason = "a link" if path.is_symlink() else trouble_with(name, top)
        if reason is None:
            found.pieces.append(Piece(name, top))
        else:
            found.left_out.append((name, reason))
    return found


def as_it_came(path: Path, original: Path) -> bool:
    """Whether a file has the bytes of its original; not when it is the original."""
    try:
        if path.samefile(original) or path.stat().st_size != original.stat().st_size:
            return False
        return path.read_bytes() == original.read_bytes()
    except OSError:
        return False


def trouble_with(path: str, unit: str) -> str | None:
    """Why a file cannot be part of the work; None when it can.

    Example:
        >>> trouble_with("artifacts/guide/model.mpk", "artifacts/guide")
        >>> trouble_with("../.bashrc", "")
        'its path leads elsewhere'
        >>> trouble_with("jupyter_server_config.py", "")
        'it would run by itself'
    """
    parts = path.split("/")
    if not path.isprintable() or _ODD.search(path) or "" in parts or ".." in parts:
        return "its path leads elsewhere"
    if any(part.startswith(".") for part in parts):
        return "it is hidden"
    if any(part.endswith((" ", ".")) or _RESERVED.fullmatch(part) for part in parts):
        return "not every system can have a file of this name"
    if len(path) > LONGEST or len(parts) > DEEPEST:
        return "its path is too long"
    if unit and not (path == unit or path.startswith(f"{unit}/")):
        return "its path leads elsewhere"
    ending = PurePosixPath(path).suffix.lower()
    if ending not in (KEPT if unit else PAGES):
        what = "no training writes" if unit else "no page has"
        return f"{what} files that end in {ending or 'nothing'}"
    return "it would run by itself" if RUN_BY_THEMSELVES.fullmatch(parts[-1]) else None


def _sources(folder: Path, shipped: Path) -> Path:
    """In a checkout the chapters lie beside their sources, which no reader edits."""
    sources = folder / "src"
    known = (sources / f"{path.stem}.py" for path in shipped.glob("*.ipynb"))
    return sources if any(path.is_file() for path in known) else folder / "."


def _walk(folder: Path, without: Path) -> Iterator[tuple[Path, Path | None]]:
    """Every file that is not hidden, with the unit it belongs to, in order."""
    todo: list[tuple[Path, Path | None, int]] = [(folder, None, 0)]
    while todo:
        place, unit, depth = todo.pop()
        inner = []
        for path in _entries(place):
            own = unit
            if unit is None and place == folder / ARTIFACTS:
                own = path
            if path.is_symlink() or not path.is_dir():
                yield path, own
            elif depth + 1 < DEEPEST and path != without:
                if own is None and path != folder / ARTIFACTS and is_run(path):
                    own = path
                inner.append((path, own, depth + 1))
        todo += reversed(inner)


def _entries(place: Path) -> list[Path]:
    try:
        names = os.listdir(place)
    except OSError:  # gone, or not ours to read
        return []
    seen = (name for name in names if not name.startswith((".", "__pycache__")))
    return [place / name for name in sorted(seen)]


def units_of(pieces: Iterable[Piece]) -> list[str]:
    """The units of pieces, each once, in order."""
    return list(dict.fromkeys(piece.unit for piece in pieces if piece.unit))
