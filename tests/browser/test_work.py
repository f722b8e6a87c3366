"""Saving and restoring in a real JupyterLab: a file down, and the same one up again."""

from __future__ import annotations

import time
import zipfile

import pytest

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


def wait_until(true, seconds=30.0):
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, "waited in vain"
        time.sleep(0.05)


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
    wait_until(lambda: "no saved work" in fault.inner_text())
    for name in ("Save my work", "Bring it back"):
        button = page.get_by_role("button", name=name)
        assert button.get_attribute("aria-disabled") == "false"
    assert book.faults == []
