"""The table of contents of the chapters: whole, true, and filled in by measuring."""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("jupytext", reason="chapters are read with the [lab,test] extras")

from burnbook.cli.learn import chapters_folder, copy_chapters
from burnbook.cli.workspace.places import find_work
from burnbook_widgets import build
from burnbook_widgets.chapters.contents import Figures, fill_in, settled, unlisted

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
TEXT = (FOLDER / "README.md").read_text(encoding="utf-8")
ROWS = {
    link: [part.strip() for part in line.split("|")[1:-1]]
    for line in TEXT.splitlines()
    for link in re.findall(r"^\|.*\]\(([\w/]+)\.ipynb\)", line)
}
SOURCES = {
    build.name_of(FOLDER, page): source
    for source, page in build.pages_of(FOLDER).items()
}
FIGURES = {"a": Figures(8.0, 333_000_000)}
PAGE = '# %% tags=["run-me"]\nkept = bytearray(60_000_000)\nprint(len(kept))\n'


def test_every_page_is_listed_and_every_row_is_a_page():
    assert sorted(ROWS) == sorted(SOURCES)
    assert unlisted(FOLDER, [*SOURCES, "99_gone"]) == ["99_gone"]


def test_chapters_stand_in_their_order():
    chapters = [name for name in ROWS if name[0] in "0123456789"]
    assert chapters == sorted(chapters)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_row_has_number_title_aim_data_and_figures(name):
    number, title, aim, data, seconds, memory = ROWS[name]
    source = SOURCES[name].read_text(encoding="utf-8")
    heading = re.search(r"^# # (.+)$", source, re.MULTILINE)
    assert heading
    assert number in heading.group(1)
    assert title.startswith("[")
    assert re.fullmatch(r"[^.。]+[.。]", aim), "one sentence"
    uses_digits = re.search(r"DigitsDataset|choose_digits", source) is not None
    assert ("digits" in data) == uses_digits
    assert re.fullmatch(r"[1-9]\d* s", seconds)
    assert re.fullmatch(r"[1-9]\d* MB", memory)


def test_figures_keep_what_the_book_promises_where_memory_is_short():
    """A chapter runs in under a minute, and in less than 700 MB."""
    for *_, seconds, memory in ROWS.values():
        assert int(seconds.removesuffix(" s")) <= 60
        assert int(memory.removesuffix(" MB")) < 700


def test_the_copy_of_the_chapters_has_every_page_that_is_linked(tmp_path):
    copy_chapters(tmp_path)
    for name in ["README", *ROWS]:
        suffix = "md" if name == "README" else "ipynb"
        page = tmp_path / f"{name}.{suffix}"
        links = re.findall(r"\]\(([\w./]+\.ipynb)\)", page.read_text(encoding="utf-8"))
        assert links
        assert [link for link in links if not (page.parent / link).is_file()] == []


def test_a_copied_page_says_what_the_kernel_here_says(tmp_path):
    """So JupyterLab has nothing to add when it opens it, and it stays unchanged."""
    from ipykernel.ipkernel import IPythonKernel

    copy_chapters(tmp_path)
    pages = sorted(tmp_path.rglob("*.ipynb"))
    assert len(pages) >= len(ROWS)
    for page in pages:
        told = json.loads(page.read_text(encoding="utf-8"))["metadata"]
        assert told["language_info"] == IPythonKernel.language_info
        assert told["kernelspec"]["display_name"] == "Python 3 (ipykernel)"
    assert [*find_work(tmp_path, chapters_folder()).pieces] == []
    said = pages[0].read_text(encoding="utf-8")
    pages[0].write_text(said.replace("Burn", "Born", 1), encoding="utf-8")
    assert [p.path for p in find_work(tmp_path, chapters_folder()).pieces] == [
        pages[0].relative_to(tmp_path).as_posix()
    ]


@pytest.mark.parametrize(
    ("old", "value", "new"),
    [
        (" 10 s ", 8.0, " 10 s "),
        (" 10 s ", 10.9, " 10 s "),
        (" 10 s ", 11.1, " 15 s "),
        (" 10 s ", 5.9, " 7 s "),
        (" ", 0.4, " 2 s "),
        (" 5 s ", 999.0, " 20 s "),
    ],
)
def test_a_figure_stays_while_the_new_one_is_near(old, value, new):
    assert settled(old, value, (2, 7, 10, 15, 20), "s") == new


def test_only_rows_of_measured_pages_change():
    rows = "| [A](a.ipynb) | x | 0 s | 0 MB |\n| [B](zh/a.ipynb) | x | 0 s | 0 MB |\n"
    text = f"[A](a.ipynb)\n\n{rows}"
    assert fill_in(text, FIGURES) == text.replace("0 s | 0 MB", "10 s | 350 MB", 1)


def test_pages_are_listed_in_any_order(capsys, monkeypatch):
    assert build.main([str(FOLDER), "--pages"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert sorted(listed) == sorted(map(str, build.pages_of(FOLDER).values()))
    monkeypatch.setattr(build.random, "shuffle", list.reverse)
    build.main([str(FOLDER), "--pages", "03_3_training"])
    names = ["zh/03_3_training.ipynb", "03_3_training.ipynb"]
    assert capsys.readouterr().out.splitlines() == [str(FOLDER / n) for n in names]


def test_measuring_wants_a_row_first(tmp_path, capsys):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "page.py").write_text(PAGE)
    (tmp_path / "README.md").write_text("| [Other](other.ipynb) | 0 s | 0 MB |\n")
    assert build.main([str(tmp_path), "--measure"]) == 1
    assert capsys.readouterr().out == "README.md: no row for page\n"


@pytest.mark.slow
def test_measuring_fills_in_time_and_memory_and_writes_no_page(tmp_path, monkeypatch):
    monkeypatch.setenv("BURNBOOK_DISPLAY", "static")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "page.py").write_text(PAGE)
    (tmp_path / "README.md").write_text("| [A page](page.ipynb) | 0 s | 0 MB |\n")
    assert build.main([str(tmp_path), "--measure"]) == 0
    row = (tmp_path / "README.md").read_text()
    found = re.fullmatch(
        r"\| \[A page\]\(page.ipynb\) \| (\d+) s \| (\d+) MB \|\n", row
    )
    assert found
    assert 1 <= int(found.group(1)) <= 60
    assert 100 <= int(found.group(2)) <= 400  # a kernel, and sixty megabytes
    assert not (tmp_path / "page.ipynb").exists()
