"""The buttons that save and restore, without a browser: what they send and take."""

from __future__ import annotations

import shutil
import zipfile

import pytest

pytest.importorskip("anywidget", reason="the widgets need anywidget")

from burnbook.cli.workspace import save_work
from burnbook.core.errors import DataError
from burnbook_widgets.chapters import work
from tests.support.work_files import page, tree


@pytest.fixture
def chapters(tmp_path, monkeypatch):
    """A folder of chapters, one of them changed; the current folder."""
    shipped = tmp_path / "shipped"
    for name in ("01_overview", "02_start"):
        page(shipped / f"{name}.ipynb", "1 + 1")
    for module in ("burnbook.cli.work", work.__name__):
        monkeypatch.setattr(f"{module}.chapters_folder", lambda: shipped)
    folder = tmp_path / "chapters"
    shutil.copytree(shipped, folder)
    page(folder / "02_start.ipynb", "'mine'")
    monkeypatch.chdir(folder)
    return folder


class Page:
    """A page that sends what the script sends, and keeps what it is told."""

    def __init__(self, view):
        self.view, self.told = view, []
        view.panel.send = lambda content, buffers=(): self.told.append(
            (content, b"".join(buffers or ()))
        )

    def say(self, content, *buffers):
        self.told.clear()
        self.view.panel._handle_custom_msg(content, [*map(memoryview, buffers)])
        return self.told[-1] if self.told else None

    def download(self):
        content, _ = self.say({"do": "save"})
        assert content["do"] == "take"
        data = b""
        while len(data) < content["size"]:
            _, part = self.say({"do": "piece", "at": len(data)})
            data += part
        return content["name"], data

    def upload(self, name, data, piece):
        at, told = 0, ({"do": "more", "at": 0}, b"")
        while told and told[0]["do"] == "more":
            at = told[0]["at"]
            part = data[at : at + piece]
            about = {"do": "bring", "name": name, "size": len(data), "at": at}
            told = self.say(about, part)
        return told


def test_the_first_button_gives_the_file_piece_by_piece(
    chapters, tmp_path, monkeypatch
):
    monkeypatch.setattr(work, "PIECE", 100)
    view = work.SaveMyWork()
    before = tree(chapters)
    name, data = Page(view).download()
    assert name.startswith("burnbook-work-")
    assert name.endswith(".zip")
    (tmp_path / "got.zip").write_bytes(data)
    with zipfile.ZipFile(tmp_path / "got.zip") as archive:
        assert archive.namelist() == ["02_start.ipynb", "burnbook-work.json"]
    assert view.panel.said.startswith(f"{name}: 1 page, ")
    assert view.panel.lines == ["02_start.ipynb"]
    assert tree(chapters) == before  # nothing stays here
    assert view._sending is None


def test_the_second_button_takes_a_file_in_pieces_and_restores_it(chapters, tmp_path):
    view = work.SaveMyWork()
    name, data = Page(view).download()
    page(chapters / "02_start.ipynb", "'of today'")
    assert Page(view).upload(name, data, 64) is None
    assert "'mine'" in (chapters / "02_start.ipynb").read_text()
    kept = (chapters / "02_start.before-restore.ipynb").read_text()
    assert "'of today'" in kept
    assert view.panel.said == f"1 page came back to {chapters}"
    assert view.panel.fault == ""


def test_a_file_that_is_no_saved_work_leaves_a_line(chapters):
    view = work.SaveMyWork()
    before = tree(chapters)
    for name in ("photo.zip", "../../photo.zip", ""):
        told, _ = Page(view).upload(name, b"PK" * 200, 64)
        assert told == {"do": "end"}
        shown = "work.zip" if not name else "photo.zip"
        assert (view.panel.said, view.panel.lines) == ("", [])
        text = f"restore {shown}: this is not saved work, or it is damaged · try: "
        assert view.panel.fault.startswith(text)
    assert tree(chapters) == before


def test_pieces_out_of_order_and_too_many_are_refused(chapters):
    view = work.SaveMyWork()
    page_ = Page(view)
    about = {"do": "bring", "name": "a.zip", "size": 10, "at": 5}
    assert page_.say(about, b"12345") == ({"do": "end"}, b"")
    told = "restore: a piece was lost · try: the button once more"
    assert view.panel.fault == told
    page_.say({**about, "at": 0, "size": 10**10}, b"1")
    assert view.panel.fault == "restore: 10,000 MB are more than 500"
    assert page_.say({"do": "piece", "at": 0}) == ({"do": "end"}, b"")
    assert view.panel.fault == "save: the file is gone · try: the button once more"


def test_the_buttons_have_python_twins(chapters, tmp_path):
    view = work.SaveMyWork(chapters)
    done = view.save(tmp_path / "mine.zip")
    assert done.pages == ["02_start.ipynb"]
    page(chapters / "02_start.ipynb", "1 + 1")
    assert view.restore(done.path).pages == ["02_start.ipynb"]
    assert "'mine'" in (chapters / "02_start.ipynb").read_text()
    with pytest.raises(DataError, match="not saved work"):
        view.restore(chapters / "02_start.ipynb")


def test_where_nothing_is_live_it_says_what_to_type(static):
    view = work.SaveMyWork()
    assert view.box is None
    assert repr(view) == "SaveMyWork()"
    assert "<code>burnbook restore FILE</code>" in view.still()
    assert "<script" not in view.still()


def test_closing_frees_everything(chapters, same_widgets):
    view = work.SaveMyWork()
    Page(view).say({"do": "save"})
    assert view._sending is not None
    view.close()
    assert (view.box, view.panel, view._sending) == (None, None, None)


def test_a_saved_file_made_elsewhere_comes_back_here(chapters, tmp_path):
    other = tmp_path / "other"
    page(other / "examples" / "text.ipynb", "'there'")
    done = save_work(tmp_path / "a.zip", folder=other, shipped=tmp_path / "nothing")
    work.SaveMyWork().restore(done.path)
    assert "'there'" in (chapters / "examples/text.ipynb").read_text()
