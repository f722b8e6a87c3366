"""Turns chapter sources into executed notebooks, and says which are stale.

A chapter is written in `notebooks/src/NAME.py` (jupytext's percent format: plain text
that diffs and reviews well) and committed executed as `notebooks/NAME.ipynb`; examples
and translations likewise, in folders `examples` and `zh` of both. What a cell shows of
Rust ("The same in Rust") comes from the programs in `notebooks/rust`.

    python -m burnbook_widgets.build notebooks            run the chapters that changed
    python -m burnbook_widgets.build notebooks --all      run every chapter
    python -m burnbook_widgets.build notebooks --check    say what is stale, run nothing
    python -m burnbook_widgets.build notebooks --pages    list all, in random order
    python -m burnbook_widgets.build notebooks --measure  run every page, keep nothing
                                                          but its time and its memory
"""

import argparse
import os
import random
import shutil
import sys
import time
import warnings
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.warnings import DuplicateCellId

from burnbook_widgets.chapters import contents
from burnbook_widgets.chapters.solutions import WORDS, solutions_last
from burnbook_widgets.chapters.tidy import tidy
from burnbook_widgets.chapters.twins import program_of, with_twins

SECONDS_PER_CELL = 60
SHELVES = ("examples", "zh")


def read_source(source: Path) -> NotebookNode:
    """Read a chapter's text as a notebook without outputs."""
    import jupytext

    text = source.read_text(encoding="utf-8")
    # Ids of cells are drawn here; where two are alike, nbformat draws again.
    with warnings.catch_warnings(category=DuplicateCellId, action="ignore"):
        notebook = jupytext.reads(text, fmt="py:percent")
    language = source.parent.name if source.parent.name in WORDS else "en"
    notebook = with_twins(notebook, program_of(source), language)
    return tidy(solutions_last(notebook, language))


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
    for target in files(folder, "*.ipynb"):
        if target not in pages.values():
            where = target.parent.relative_to(folder) / f"{target.stem}.py"
            found.append(f"{target.name}: has no source {folder.name}/src/{where}")
    return found


def pages_of(folder: Path) -> dict[Path, Path]:
    """Every source below `folder/src`, and the notebook that it is built into."""
    root = folder / "src"
    return {
        source: folder / source.relative_to(root).with_suffix(".ipynb")
        for source in files(root, "*.py")
    }


def files(folder: Path, pattern: str) -> list[Path]:
    """The files of a folder and of its shelves."""
    places = [folder, *(folder / shelf for shelf in SHELVES)]
    return sorted(path for place in places for path in place.glob(pattern))


def name_of(folder: Path, target: Path) -> str:
    """What a page is called: `01_overview`, `zh/03_3_training`."""
    return target.relative_to(folder).with_suffix("").as_posix()


def execute(source: Path, target: Path) -> float:
    """Run a chapter in a fresh kernel, write it, and return the seconds it took."""
    notebook = read_source(source)
    seconds = run(notebook, target)
    text = nbformat.writes(tidy(notebook)) + "\n"
    unfinished = target.with_suffix(".tmp")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, target)
    return seconds


def run(notebook: NotebookNode, target: Path) -> float:
    """Run a notebook where its page lies, and return the seconds it took."""
    from nbclient import NotebookClient

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
    return time.perf_counter() - start


def measure(source: Path, target: Path) -> contents.Figures:
    """Run a chapter in a fresh kernel, write nothing, and say what it took."""
    notebook = read_source(source)
    notebook.cells.append(nbformat.v4.new_code_cell(contents.PEAK))
    seconds = run(notebook, target)
    return contents.Figures(seconds, int(notebook.cells[-1].outputs[0].text))


def main(arguments: list[str] | None = None) -> int:
    """Build the chapters of a folder, or check them."""
    parser = argparse.ArgumentParser(prog="burnbook_widgets.build")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="chapters to run, e.g. 01_overview")
    parser.add_argument("--check", action="store_true", help="only say what is stale")
    parser.add_argument("--all", action="store_true", help="run the fresh ones too")
    parser.add_argument("--pages", action="store_true", help="list them, shuffled")
    parser.add_argument("--measure", action="store_true", help="time, memory of each")
    asked = parser.parse_intermixed_args(arguments)
    folder = asked.folder
    if asked.check:
        return tell(stale(folder))
    pages = {
        source: target
        for source, target in pages_of(folder).items()
        if not asked.names or {source.stem, name_of(folder, target)} & {*asked.names}
    }
    if asked.pages:
        order = [str(target) for target in pages.values()]
        random.shuffle(order)  # no page may need what another one leaves behind
        tell(order)
        return 0
    os.environ["BURNBOOK_DISPLAY"] = "static"  # as in the tests: what is shown stays
    for place in (folder, *(folder / shelf for shelf in SHELVES)):
        shutil.rmtree(place / "artifacts", ignore_errors=True)  # each from nothing
    if asked.measure:
        return measure_all(folder, pages)
    for source, target in pages.items():
        if asked.all or asked.names or problems(source, target):
            tell([f"{name_of(folder, target)}: {execute(source, target):.0f} s"])
    return 0


def measure_all(folder: Path, pages: dict[Path, Path]) -> int:
    """Write what pages take into the table of contents; 1 if it lacks one of them."""
    missing = contents.unlisted(folder, [name_of(folder, p) for p in pages.values()])
    if missing:
        return tell([f"{contents.CONTENTS}: no row for {name}" for name in missing])
    for source, target in pages.items():
        figures = measure(source, target)
        contents.update(folder, {name_of(folder, target): figures})
        took = f"{figures.seconds:.1f} s, {figures.bytes / 1e6:.0f} MB"
        tell([f"{name_of(folder, target)}: {took}"])
    return 0


def tell(lines: list[str]) -> int:
    """Write lines for whoever called; 1 if there are any."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
