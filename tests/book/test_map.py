"""One table says which chapter explains which part of the source; chapters agree."""

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAP = tomllib.loads((ROOT / "tests/book/map.toml").read_text(encoding="utf-8"))
CHAPTERS: list[str] = MAP["chapters"]
SOURCES: dict[str, str] = MAP["sources"]  # "burnbook/ops/lstm.py": "04_04_module"
FILES = [
    path.relative_to(ROOT).as_posix()
    for folder in ("burnbook", "widgets/burnbook_widgets")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
WRITTEN = [name for name in CHAPTERS if (ROOT / f"notebooks/{name}.ipynb").is_file()]


def chapter_of(path: str) -> str | None:
    """The chapter of the longest entry that a file is, or lies in."""
    parts = path.split("/")
    for end in range(len(parts), 0, -1):
        if found := SOURCES.get("/".join(parts[:end])):
            return found
    return None


def named_in(chapter: str) -> list[str]:
    """The files and folders that the text of a chapter names."""
    text = (ROOT / f"notebooks/{chapter}.ipynb").read_text(encoding="utf-8")
    cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "markdown"]
    prose = "\n".join("".join(cell["source"]) for cell in cells)
    return re.findall(r"`((?:burnbook|widgets)/[\w/]+(?:\.\w+)?)`", prose)


def test_every_file_has_a_chapter():
    assert [path for path in FILES if chapter_of(path) is None] == []


def test_the_table_names_what_is_there():
    assert [path for path in SOURCES if not (ROOT / path).exists()] == []
    assert set(SOURCES.values()) <= set(CHAPTERS)


@pytest.mark.parametrize("chapter", WRITTEN)
def test_a_chapter_says_where_its_code_lives(chapter):
    named = named_in(chapter)
    assert named, "a chapter ends with the files that it explains"
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("chapter", WRITTEN)
def test_a_chapter_names_what_it_explains(chapter):
    """Each entry of the table is named, or a folder around it or a file within it."""
    named = named_in(chapter)
    lost = [
        path
        for path in (path for path, name in SOURCES.items() if name == chapter)
        if not any(path.startswith(n) or n.startswith(path) for n in named)
    ]
    assert lost == []


def test_every_notebook_is_a_chapter():
    found = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert found
    assert found <= set(CHAPTERS)
