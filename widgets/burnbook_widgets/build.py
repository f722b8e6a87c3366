"""Overview. Turns chapter sources into executed notebooks, and says which are stale.

A chapter is written in `notebooks/src/NAME.py` (jupytext's percent format: plain text
that diffs and reviews well) and committed executed as `notebooks/NAME.ipynb`; examples
likewise, in a folder `examples` of both.

    python -m burnbook_widgets.build notebooks            run the chapters that changed
    python -m burnbook_widgets.build notebooks --all      run every chapter
    python -m burnbook_widgets.build notebooks --check    say what is stale, run nothing
"""

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from burnbook_widgets.chapters.tidy import tidy

SECONDS_PER_CELL = 60


def read_source(source: Path) -> NotebookNode:
    """Read a chapter's text as a notebook without outputs."""
    import jupytext

    text = source.read_text(encoding="utf-8")
    notebook = jupytext.reads(text, fmt="py:percent")
    for cell in notebook.cells:
        if "solution" in cell.metadata.get("tags", []):
            cell.metadata["jupyter"] = {"source_hidden": True}
    return tidy(notebook)


def problems(source: Path, target: Path) -> list[str]:
    """Say why the committed notebook is not what its source would give."""
    if not target.is_file():
        return [f"{target.name}: not built yet"]
    built = nbformat.read(target, as_version=4)
    wanted = read_source(source)
    found = []
    if [outline(cell) for cell in built.cells] != [outline(c) for c in wanted.cells]:
        found.append(f"{target.name}: its cells are not those of {source.name}")
    counts = [c.execution_count for c in built.cells if c.cell_type == "code"]
    if counts != list(range(1, len(counts) + 1)):
        found.append(f"{target.name}: not executed from top to bottom")
    if nbformat.writes(built) != nbformat.writes(tidy(built)):
        found.append(f"{target.name}: not tidy")
    return found


def outline(cell: NotebookNode) -> tuple[str, str, tuple[tuple[str, object], ...]]:
    """Return what a source decides about a cell."""
    return cell.cell_type, cell.source, tuple(sorted(cell.metadata.items()))


def stale(folder: Path) -> list[str]:
    """Say everything that is wrong between `folder/src` and `folder`."""
    pages = pages_of(folder)
    found = []
    for source, target in pages.items():
        found += problems(source, target)
    for target in sorted([*folder.glob("*.ipynb"), *folder.glob("examples/*.ipynb")]):
        if target not in pages.values():
            where = target.parent.relative_to(folder) / f"{target.stem}.py"
            found.append(f"{target.name}: has no source {folder.name}/src/{where}")
    return found


def pages_of(folder: Path) -> dict[Path, Path]:
    """Every source below `folder/src`, and the notebook that it is built into."""
    root = folder / "src"
    return {
        source: folder / source.relative_to(root).with_suffix(".ipynb")
        for source in sorted([*root.glob("*.py"), *root.glob("examples/*.py")])
    }


def execute(source: Path, target: Path) -> float:
    """Run a chapter in a fresh kernel, write it, and return the seconds it took."""
    from nbclient import NotebookClient

    notebook = read_source(source)
    target.parent.mkdir(exist_ok=True)
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        store_widget_state=False,
        resources={"metadata": {"path": str(target.parent)}},
    )
    start = time.perf_counter()
    client.execute()
    seconds = time.perf_counter() - start
    text = nbformat.writes(tidy(notebook)) + "\n"
    unfinished = target.with_suffix(".tmp")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, target)
    return seconds


def main(arguments: list[str] | None = None) -> int:
    """Build the chapters of a folder, or check them."""
    parser = argparse.ArgumentParser(prog="burnbook_widgets.build")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="chapters to run, e.g. 01_overview")
    parser.add_argument("--check", action="store_true", help="only say what is stale")
    parser.add_argument("--all", action="store_true", help="run the fresh ones too")
    asked = parser.parse_args(arguments)
    if asked.check:
        found = stale(asked.folder)
        sys.stdout.write("".join(f"{line}\n" for line in found))
        return 1 if found else 0
    os.environ["BURNBOOK_DISPLAY"] = "static"  # as in the tests: what is shown stays
    shutil.rmtree(asked.folder / "artifacts", ignore_errors=True)  # each from nothing
    for source, target in pages_of(asked.folder).items():
        chosen = source.stem in asked.names if asked.names else True
        fresh = not (asked.all or asked.names) and not problems(source, target)
        if chosen and not fresh:
            seconds = execute(source, target)
            sys.stdout.write(f"{target.name}: {seconds:.0f} s\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
