"""The training chapter as a reader meets it: live while it trains, still afterwards."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
SOURCE = Path(__file__).resolve().parents[2] / "notebooks" / "src" / "03_3_training.py"


@pytest.fixture
def training_cells():
    """The chapter's code cells, up to the one that reads the history."""
    build = pytest.importorskip("burnbook_widgets.build")
    code = [c.source for c in build.read_source(SOURCE).cells if c.cell_type == "code"]
    last = next(i for i, text in enumerate(code) if "learner.result.history" in text)
    return code[: last + 1]


def test_the_training_chapter_is_live_and_then_still(open_book, training_cells):
    book = open_book("training_chapter", training_cells)
    book.run_all()
    live = book.page.locator("text=/Epoch [2-9] of 10/").first
    live.wait_for(timeout=60_000)
    assert book.page.locator("text=live: buttons act at once").count() == 1

    read = ".jp-OutputArea-output:has-text('accuracy on unseen digits after epoch 1')"
    book.page.locator(read).wait_for(state="attached", timeout=60_000)
    assert book.faults == []
    outputs = [cell.get("outputs", []) for cell in book.save()["cells"]]
    assert [o for some in outputs for o in some if o["output_type"] == "error"] == []
    pictures = [kind for o in outputs[-2] for kind in o.get("data", {})]
    assert "image/svg+xml" in pictures
    assert not any("widget-view" in kind for kind in pictures)
