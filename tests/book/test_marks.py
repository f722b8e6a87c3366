"""What the pages of the book say of themselves."""

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
# Pages that show what a mistake looks like.
SHOWN = {"A3_coming_from.ipynb"}


def printed(page):
    """Each line that a cell of a page has printed."""
    for cell in json.loads(page.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            yield from "".join(output.get("text", [])).splitlines()


def test_no_page_was_committed_with_a_comparison_that_failed():
    pages = [p for p in FOLDER.rglob("*.ipynb") if p.name not in SHOWN]
    failed = [
        f"{page.name}: {line}"
        for page in pages
        if ".ipynb_checkpoints" not in page.parts
        for line in printed(page)
        if line.startswith("✘")
    ]
    assert len(pages) > 30
    assert failed == []
