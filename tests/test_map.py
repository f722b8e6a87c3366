"""Every file names its chapter, and every chapter says where its code lives."""

import ast
import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAP = tomllib.loads((ROOT / "tests" / "map.toml").read_text(encoding="utf-8"))
CHAPTERS: dict[str, str] = MAP[
    "chapters"
]  # "Basic workflow · Model": "03_1_model.ipynb"
WAITING: dict[str, str] = {
    path: chapter for chapter, files in MAP["waiting"].items() for path in files
}
FILES = sorted(
    str(path.relative_to(ROOT))
    for folder in ("burnbook", "widgets/burnbook_widgets")
    for path in (ROOT / folder).rglob("*.py")
)


def chapter_of(source: str) -> str | None:
    """The first docstring line is `Chapter. What the file is.`"""
    line = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
    for chapter in sorted(CHAPTERS, key=len, reverse=True):
        if line.startswith(chapter + ". ") and len(line) > len(chapter) + 2:
            return chapter
    return None


def where_this_lives(notebook: Path) -> list[str]:
    """The files that a chapter's summary lists."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    text = "\n".join(
        "".join(c["source"]) for c in cells if c["cell_type"] == "markdown"
    )
    _, found, rest = text.partition("Where this lives")
    return re.findall(r"`((?:burnbook|widgets)/[\w/]+\.py)`", rest if found else "")


def notebook_of(chapter: str) -> Path | None:
    path = ROOT / "notebooks" / CHAPTERS[chapter]
    return path if path.is_file() else None


def chapter_problem(path: str) -> str | None:
    chapter = chapter_of((ROOT / path).read_text(encoding="utf-8"))
    if chapter is None:
        return f"{path}: the first docstring line names no chapter of tests/map.toml"
    notebook = notebook_of(chapter)
    if notebook is None:
        if WAITING.get(path) != chapter:
            return f"{path}: tests/map.toml does not let it wait for {chapter}"
    elif path not in where_this_lives(notebook):
        if path not in WAITING:
            return f"{path}: {notebook.name} does not list it under Where this lives"
    elif path in WAITING:
        return f"{path}: has its chapter {notebook.name}, take it from waiting"
    return None


def test_every_file_belongs_to_a_chapter():
    problems = [p for path in FILES if (p := chapter_problem(path))]
    assert not problems, "\n".join(["lost files:", *problems])


def test_chapters_list_only_files_that_exist():
    listed = {
        (name, path)
        for chapter, name in CHAPTERS.items()
        if (notebook := notebook_of(chapter))
        for path in where_this_lives(notebook)
    }
    assert listed, "no chapter has a Where this lives list"
    gone = [f"{name}: {path}" for name, path in sorted(listed) if path not in FILES]
    assert not gone, "\n".join(gone)


def test_waiting_files_exist():
    gone = [path for path in WAITING if path not in FILES]
    assert not gone, f"tests/map.toml waits for files that are gone: {gone}"


def test_every_notebook_is_a_chapter():
    found = {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert found, "no chapter is there"
    assert found <= set(CHAPTERS.values())


def test_a_docstring_must_name_a_known_chapter():
    assert (
        chapter_of('"""Basic workflow · Model. The network."""')
        == "Basic workflow · Model"
    )
    assert chapter_of('"""Basic workflow · Model."""') is None
    assert chapter_of('"""The network of the guide."""') is None
    assert chapter_of("x = 1") is None
