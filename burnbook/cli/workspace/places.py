"""Which files are a reader's work, and under which names they may come back.

Work is pages (notebooks and Python files that are not as they came) and units: what
lies in `artifacts`, and every other folder that a training wrote. A unit comes back
whole, because half of one training and half of another is none.

A kernel looks for modules in the folder of its page first, and starts by importing
hundreds of them, some only where they exist. So a Python file there may run as soon as
a page is opened, whatever its name. Therefore it comes back as text, `helpers.py.txt`,
unless the reader vouches for the file; and even then not under the name of a module
that Python or an installed package would import.
"""

from __future__ import annotations

import functools
import json
import os
import pkgutil
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Any

from burnbook.cli.workspace.pages import MOST_PAGE
from burnbook.train.runs.run import is_run

ARTIFACTS = "artifacts"
PAGE, CODE, AS_TEXT = ".ipynb", ".py", ".py.txt"
PAGES = (PAGE, CODE, AS_TEXT)
DEEPEST = 10  # levels of folders
LONGEST = 240  # characters of a path
KEPT = {
    *(".mpk", ".bin", ".bpk", ".gz", ".safetensors", ".pt", ".onnx", ".npy", ".npz"),
    *(".json", ".jsonl", ".log", ".csv", ".tsv", ".txt", ".md", ".toml", ".html"),
    *(".db", ".sqlite", ".png", ".jpg", ".jpeg", ".svg", ".wav"),
}
# Python, Jupyter and other tools read these by themselves when they start in a folder.
RUN_BY_THEMSELVES = re.compile(
    r"(jupyter\w*|ipython\w*)_config\..+|(site|user)customize\.py|conftest\.py"
    r"|pyproject\.toml|package\.json|overrides\.json"
)
# Modules that Python, Jupyter and this library import only where they exist.
OPTIONAL = frozenset(
    (
        *(
            "burnbook",
            "burnbook_widgets",
            "conftest",
            "cupy",
            "cupyx",
            "debugpy",
            "ipykernel_launcher",
            "matplotlib",
        ),
        *(
            "numba",
            "onnx",
            "onnxruntime",
            "pandas",
            "PIL",
            "plotly",
            "polars",
            "psutil",
        ),
        *("pydevd", "pynvml", "scipy", "setup", "sitecustomize", "sklearn", "torch"),
        *("usercustomize", "winloop", "uvloop", "appnope", "readline", "rich", "black"),
    )
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
        if not top and not path.name.endswith(PAGES):
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
    """Whether a file is as its original was copied; not when it is the original.

    Why: what a copy says of the kernel that is installed here is no change of a page.
    """
    try:
        if path.samefile(original):
            return False
        if path.suffix == PAGE and path.stat().st_size <= MOST_PAGE:
            return _without_kernel(path) == _without_kernel(original)
        same_size = path.stat().st_size == original.stat().st_size
        return same_size and path.read_bytes() == original.read_bytes()
    except (OSError, RecursionError):
        return False


def _without_kernel(page: Path) -> Any:
    text = page.read_bytes()
    try:
        tree = json.loads(text)
    except ValueError:
        return text
    if isinstance(tree, dict) and isinstance(tree.get("metadata"), dict):
        for name in ("kernelspec", "language_info"):
            tree["metadata"].pop(name, None)
    return tree


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
    name = folded(parts[-1])
    if not (PurePosixPath(name).suffix in KEPT if unit else name.endswith(PAGES)):
        what = "no training writes" if unit else "no page has"
        return f"{what} files that end in {PurePosixPath(name).suffix or 'nothing'}"
    return "it would run by itself" if RUN_BY_THEMSELVES.fullmatch(name) else None


def folded(path: str) -> str:
    """A path as systems compare it that see no difference in some letters."""
    folds = unicodedata.normalize("NFKC", path).casefold()
    return unicodedata.normalize("NFKC", folds)


def is_code(path: str) -> bool:
    """Whether Python could import a file of this name."""
    return folded(path).endswith(CODE)


def imported_name(path: str) -> str | None:
    """The first part of a path to a Python file that is the name of a known module.

    Every part counts, because a page, and with it a kernel, may lie in any folder.

    Example:
        >>> imported_name("examples/Random.py"), imported_name("my_model.py")
        ('Random', None)
        >>> imported_name("IPython/__init__.py")
        'IPython'
    """
    *folders, name = path.split("/")
    parts = [*folders, name[: name.rfind(".")]]
    return next((part for part in parts if folded(part) in _importable()), None)


@functools.cache
def _importable() -> frozenset[str]:
    """The names of the modules that an import finds here, or might look for in vain."""
    found = {*sys.stdlib_module_names, *sys.builtin_module_names, *OPTIONAL}
    found |= {*metadata.packages_distributions()}
    elsewhere = [place for place in sys.path if place and place != os.getcwd()]
    found |= {module.name for module in pkgutil.iter_modules(elsewhere)}
    return frozenset(folded(name.partition(".")[0]) for name in found)


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
