"""Saving and restoring in a real JupyterLab: a file down, and the same one up again."""

from __future__ import annotations

import json
import zipfile

import pytest

from burnbook.cli.workspace import restore_work
from tests.support.waiting import wait_until
from tests.support.work_files import forged

pytestmark = pytest.mark.browser

SHOW = """
from burnbook_widgets.chapters.work import SaveMyWork

work = SaveMyWork("chapters")
work
"""
CHAPTERS = """
from pathlib import Path
from burnbook.cli.learn import copy_chapters

copy_chapters(Path("chapters"))
Path("chapters/02_getting_started.ipynb").write_text("mine")
big = Path("chapters/artifacts/guide/model.mpk")
big.parent.mkdir(parents=True)
big.write_bytes(bytes(range(256)) * 20_000)  # several pieces
"""
SAID = ".bb-work-said"


def test_work_is_downloaded_and_brought_back_by_buttons(open_book, server, tmp_path):
    book = open_book("saving_work", [CHAPTERS, SHOW])
    page = book.page
    book.run_all()
    save = page.get_by_role("button", name="Save my work")
    save.wait_for()
    book.picture("work_light")
    with page.expect_download() as coming:
        save.focus()
        page.keyboard.press("Enter")
    file = tmp_path / coming.value.suggested_filename
    coming.value.save_as(file)
    assert file.name.startswith("burnbook-work-")
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        assert archive.read("02_getting_started.ipynb") == b"mine"
        assert len(archive.read("artifacts/guide/model.mpk")) == 5_120_000
    assert "of artifacts" in page.locator(SAID).inner_text()

    chapter = server.notebooks / "chapters" / "02_getting_started.ipynb"
    chapter.write_text("lost")
    with page.expect_file_chooser() as choosing:
        page.get_by_role("button", name="Bring it back").click()
    choosing.value.set_files(file)
    wait_until(lambda: "came back to" in page.locator(SAID).inner_text())
    assert chapter.read_text() == "mine"
    kept = chapter.with_name("02_getting_started.before-restore.ipynb")
    assert kept.read_text() == "lost"

    book.theme("Dark")
    book.picture("work_dark")
    (tmp_path / "photo.zip").write_bytes(b"PK" * 100)
    with page.expect_file_chooser() as choosing:
        page.get_by_role("button", name="Bring it back").click()
    choosing.value.set_files(tmp_path / "photo.zip")
    fault = page.locator(".bb-work .bb-fault")
    wait_until(lambda: "not saved work" in fault.inner_text())
    for name in ("Save my work", "Bring it back"):
        button = page.get_by_role("button", name=name)
        assert button.get_attribute("aria-disabled") == "false"
    assert book.faults == []


RUNS = """
document.body.dataset.ran = "yes";
export default { initialize() {}, render() {} };
"""


def test_a_page_that_was_restored_runs_nothing_when_it_is_opened(
    open_book, server, tmp_path
):
    book = open_book("before", ["1 + 1"])
    version = pytest.importorskip("anywidget").__version__
    kind = {"module": "anywidget", "module_version": f"~{version.rpartition('.')[0]}.*"}
    names = {f"_{side}_{k}": v for side in ("model", "view") for k, v in kind.items()}
    held = {"_esm": RUNS, "_css": "", "_anywidget_id": "a.b", "layout": "IPY_MODEL_b"}
    held |= {**names, "_model_name": "AnyModel", "_view_name": "AnyView"}
    layout = {"model_module": "@jupyter-widgets/base", "model_module_version": "2.0.0"}
    state = {
        "a": {
            "model_name": "AnyModel",
            **{f"model_{name}": each for name, each in kind.items()},
            "state": held,
        },
        "b": {"model_name": "LayoutModel", **layout, "state": {}},
    }
    saved = {"version_major": 2, "version_minor": 0, "state": state}
    page = json.loads(book.path.read_text())
    page["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": saved}
    shown = {"model_id": "a", "version_major": 2, "version_minor": 0}
    data = {
        "application/vnd.jupyter.widget-view+json": shown,
        "text/html": "<img src=x onerror='document.body.dataset.ran = 1'>",
    }
    output = {"output_type": "display_data", "metadata": {}, "data": data}
    page["cells"][0] |= {"outputs": [output], "execution_count": 1}
    file = forged(tmp_path / "work.zip", {"hostile.ipynb": json.dumps(page).encode()})
    done = restore_work(file, folder=server.notebooks)
    assert done.without == {"hostile.ipynb": ["widgets"]}
    book.path = server.notebooks / "hostile.ipynb"
    book.open()
    book.run_all()  # the kernel is ready, so saved widgets would have been made
    book.page.get_by_text("[1]:").first.wait_for()
    book.page.wait_for_timeout(2000)
    assert book.page.evaluate("document.body.dataset.ran") is None
