"""Cleans executed notebooks, so that a page changes only when its text does.

`python -m burnbook_widgets.chapters.tidy notebooks/` removes what a kernel, an editor
or a machine leaves behind: times, editor state, widget state, cell ids drawn at random,
and the frames of a traceback that lie outside the notebook (they hold paths).
Outputs are kept: what a cell prints is a test.
"""

import hashlib
import re
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
CELL_KEYS = {"tags", "jupyter"}
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def tidy(notebook: NotebookNode) -> NotebookNode:
    """Clean a notebook in place and return it; doing it twice changes nothing."""
    notebook.metadata = NotebookNode(
        kernelspec=NotebookNode(KERNEL), language_info=NotebookNode(name="python")
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        cell.metadata = NotebookNode(
            {key: cell.metadata[key] for key in sorted(CELL_KEYS & set(cell.metadata))}
        )
        cell.id = stable_id(cell, seen)
        if cell.cell_type == "code":
            cell.outputs = [tidy_output(output) for output in join_streams(cell)]
    return notebook


def stable_id(cell: NotebookNode, seen: dict[str, int]) -> str:
    """Return an id made of the text; equal cells are numbered."""
    digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]
    seen[digest] = seen.get(digest, 0) + 1
    return digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"


def join_streams(cell: NotebookNode) -> list[NotebookNode]:
    """Join pieces of one stream: where they are cut depends on the clock."""
    joined: list[NotebookNode] = []
    for output in cell.outputs:
        last = joined[-1] if joined else None
        if (
            last is not None
            and output.output_type == last.output_type == "stream"
            and output.name == last.name
        ):
            last.text += output.text
        else:
            joined.append(output)
    return joined


def tidy_output(output: NotebookNode) -> NotebookNode:
    """Drop metadata but the size of images, and frames outside the notebook."""
    if output.output_type == "error":
        output.traceback = [
            frame
            for frame in output.traceback
            if not ANSI.sub("", frame).lstrip().startswith("File ")
        ]
    elif "metadata" in output:
        sizes = {"width", "height"}
        output.metadata = NotebookNode(
            {
                kind: NotebookNode({k: v for k, v in told.items() if k in sizes})
                for kind, told in output.metadata.items()
                if kind.startswith("image/") and sizes & set(told)
            }
        )
    return output


def main(arguments: list[str] | None = None) -> int:
    """Tidy every notebook of the folders and files named."""
    places = sys.argv[1:] if arguments is None else arguments
    if not places:
        sys.stderr.write(
            "usage: python -m burnbook_widgets.chapters.tidy FOLDER_OR_FILE ...\n"
        )
        return 2
    for place in map(Path, places):
        paths = sorted(place.glob("*.ipynb")) if place.is_dir() else [place]
        for path in paths:
            before = path.read_text(encoding="utf-8")
            after = nbformat.writes(tidy(nbformat.reads(before, as_version=4))) + "\n"
            if after != before:
                path.write_text(after, encoding="utf-8")
                sys.stdout.write(f"tidied {path}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
