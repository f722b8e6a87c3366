"""The chapters: fresh, tidy, in the rhythm of the book, every exercise solvable."""

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest

pytest.importorskip(
    "jupytext", reason="chapters are checked with the [lab,test] extras"
)
pytest.importorskip("plotly", reason="chapters are checked with the [lab,test] extras")

import nbformat

from burnbook_widgets import build
from burnbook_widgets.chapters import tidy
from burnbook_widgets.chapters.exercises import EXERCISES

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "notebooks"
SOURCES = sorted((FOLDER / "src").glob("*.py"))
EXAMPLES = sorted((FOLDER / "src/examples").glob("*.py"))
TRANSLATIONS = sorted((FOLDER / "src/zh").glob("*.py"))
CHAPTERS = [path for path in SOURCES if path.stem[0] != "A"]  # an appendix is looked up
RHYTHM = [
    "goals", "setup", "run-me", "widget", "peek", "raises-exception",
    "exercise", "solution", "recall", "summary",
]  # fmt: skip
MAX_LINES, MAX_COLUMNS, MAX_IGNORED = 15, 79, 2
MAX_EXAMPLE = 40  # a network that writes fits into one cell, so does a page of the book
MAX_BYTES = 340_000  # of a saved page: it opens at once, also on GitHub
ONE_CHAPTER = """\
# %% [markdown] tags=["goals"]
# # A page

# %% tags=["run-me"]
print(1 + 1)

# %% tags=["solution"]
print("solved")

# %% tags=["raises-exception"]
1 / 0
"""


def cells(source: Path, tag: str | None = None) -> list[nbformat.NotebookNode]:
    every = build.read_source(source).cells
    return [c for c in every if tag is None or tag in c.metadata.get("tags", [])]


def exercise_numbers(source: Path, tag: str) -> list[str]:
    found = [re.findall(r'check\("([\d.]+)"', c.source) for c in cells(source, tag)]
    assert all(len(numbers) == 1 for numbers in found)
    return [numbers[0] for numbers in found]


def name(path: Path) -> str:
    return str(path.relative_to(FOLDER / "src").with_suffix(""))


PAGES = [*SOURCES, *EXAMPLES, *TRANSLATIONS]
pages = pytest.mark.parametrize("source", PAGES, ids=name)
chapters = pytest.mark.parametrize("source", CHAPTERS, ids=lambda path: path.stem)


def test_committed_chapters_are_what_their_sources_give():
    stale = build.stale(FOLDER)
    assert not stale, "\n".join([*stale, "rebuild them: make notebooks"])


def test_there_are_chapters():
    assert len(SOURCES) >= 7


@chapters
def test_a_chapter_keeps_the_rhythm(source):
    tags = {tag for c in cells(source) for tag in c.metadata.get("tags", [])}
    assert [step for step in RHYTHM if step not in tags] == []


@pages
def test_a_cell_shows_one_idea(source):
    for cell in cells(source):
        if cell.cell_type == "code":
            tags = cell.metadata.get("tags", [])
            lines = cell.source.splitlines()["solution" in tags :]  # its name aside
            if "setup" not in tags:
                long = source in EXAMPLES or "version" in tags
                most = MAX_EXAMPLE if long else MAX_LINES
                assert len(lines) <= most, cell.source
            assert max(map(len, lines)) <= MAX_COLUMNS, cell.source


@pages
def test_few_cells_escape_the_check(source):
    assert len(cells(source, "nbval-ignore-output")) <= MAX_IGNORED


@chapters
def test_every_exercise_has_its_solution(source):
    exercises = exercise_numbers(source, "exercise")
    assert 3 <= len(exercises) <= 5
    assert exercise_numbers(source, "solution") == exercises


WITH_EXERCISES = [path for path in PAGES if cells(path, "exercise")]


@pytest.mark.parametrize("source", WITH_EXERCISES, ids=name)
def test_no_solution_is_seen_beside_its_question(source):
    """In no viewer: they come last, and the line that a folded cell shows is bare."""
    page = nbformat.read(build.pages_of(FOLDER)[source], as_version=4)
    tags = [set(cell.metadata.get("tags", [])) for cell in page.cells]
    first = next(i for i, some in enumerate(tags) if "solutions" in some)
    assert all("solution" in some for some in tags[first + 1 :])
    assert not any("solution" in some for some in tags[:first])
    assert max(i for i, some in enumerate(tags) if "summary" in some) < first
    for cell in page.cells[first + 1 :]:
        shown = cell.source.splitlines()[0]
        assert re.fullmatch(r"# (solution|答案) [\d.]+", shown), shown
        assert cell.metadata["jupyter"] == {"source_hidden": True}


@pytest.mark.parametrize("source", WITH_EXERCISES, ids=name)
def test_the_questions_say_where_the_solutions_are(source):
    page = build.read_source(source).cells
    heading = next(c.source for c in page if "solutions" in c.metadata.get("tags", []))
    title = heading.partition("\n")[0].removeprefix("## ")
    asked = next(
        i for i, c in enumerate(page) if "exercise" in c.metadata.get("tags", [])
    )
    assert f"](#{title})" in page[asked - 1].source


def test_following_next_leads_through_the_whole_book():
    """From the first page to the last, in the order of the table of contents."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\|.*\]\(([\w/]+)\.ipynb\)", text, re.MULTILINE)
    aside = {"03_3_training_versions", "zh/03_3_training"}
    seen, here = ["01_overview"], FOLDER / "src/01_overview.py"
    while following := next_page(here):
        assert following not in seen
        seen.append(following)
        here = FOLDER / "src" / f"{following}.py"
    assert seen == [page for page in listed if page not in aside]
    assert "](01_overview.ipynb)" in cells(here, "summary")[0].source
    for page in aside:
        assert next_page(FOLDER / "src" / f"{page}.py") == "03_4_backend"


def next_page(source: Path) -> str | None:
    """The page that the last line of a summary leads to."""
    (summary,) = cells(source, "summary")
    last = summary.source.rstrip().splitlines()[-1]
    found = re.search(r"(?:[Nn]ext|下一章)[:：] ?\[[^\]]+\]\(([\w./]+)\.ipynb\)", last)
    if found is None:
        return None
    target = (source.parent / f"{found.group(1)}.py").resolve()
    return target.relative_to(FOLDER / "src").with_suffix("").as_posix()


def test_the_first_chapter_lists_every_page():
    text = "\n".join(cell.source for cell in cells(FOLDER / "src/01_overview.py"))
    _, _, table = text.partition("## The chapters")
    linked = set(re.findall(r"\]\(([\w/]+)\.ipynb\)", table.partition("\n## ")[0]))
    others = {name(path) for path in PAGES} - {"01_overview"}
    assert linked == others


UNWRITTEN = re.compile(
    r"in (?:a )?later versions?|not written yet|of its own later|will follow"
    r"|(?:chapters?|pages?|examples?) (?:[\d.]+ (?:to|and) [\d.]+ )?follow\b",
    re.IGNORECASE,
)


def test_the_first_chapter_alone_says_what_is_not_written_and_says_it_right():
    """What is said about the future in many places nobody reads again."""
    for path in PAGES:
        text = " ".join(cell.source for cell in cells(path))
        said = UNWRITTEN.findall(text)
        assert said == (["Not written yet"] if path.stem == "01_overview" else []), path
    planned = tomllib.loads((ROOT / "tests/book/map.toml").read_text())["chapters"]
    left = [one for one in planned if one not in {name(path) for path in PAGES}]
    left = [one for one in left if one != "11_examples"]  # a folder of pages
    numbers = [re.match(r"\d+(?:_\d+)*", one)[0].split("_") for one in left]
    wanted = ", ".join(".".join(str(int(part)) for part in one) for one in numbers)
    text = "\n".join(cell.source for cell in cells(FOLDER / "src/01_overview.py"))
    assert f"Not written yet: {wanted} (" in text


def test_chapter_two_lists_every_example():
    """Those of the package by their command, those that are pages by their link."""
    text = "\n".join(
        cell.source for cell in cells(FOLDER / "src/02_getting_started.py")
    )
    table = text.partition("| example |")[2].partition("\n\n")[0]
    linked = set(re.findall(r"\(examples/(\w+)\.ipynb\)", table))
    assert linked == {path.stem for path in EXAMPLES}
    commands = set(re.findall(r"^\| (\w+) \|", table, re.MULTILINE))
    folder = ROOT / "burnbook/examples"
    assert commands == {path.parent.name for path in folder.glob("*/__init__.py")}


def test_every_curve_says_what_it_is_drawn_over():
    """Points over "position 0 … 80" hide the rate, step or x that they are of."""
    found = 0
    for path in PAGES:
        drawing = [
            ast.parse(cell.source)
            for cell in cells(path)
            if cell.cell_type == "code" and "Lines(" in cell.source
        ]
        for node in (node for tree in drawing for node in ast.walk(tree)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Lines":
                given = {keyword.arg for keyword in node.keywords}
                assert len(node.args) > 3 or "x_label" in given, (path, node.lineno)
                found += 1
    assert found > 10


def test_every_known_exercise_is_in_a_chapter():
    asked = [n for source in SOURCES for n in exercise_numbers(source, "exercise")]
    assert sorted(asked) == sorted(EXERCISES)


@pages
def test_links_lead_to_chapters(source):
    text = "\n".join(cell.source for cell in cells(source))
    linked = set(re.findall(r"\]\(([\w./]+)\.ipynb\)", text))
    assert linked
    here = source.parent
    assert [p for p in linked if not (here / f"{p}.py").resolve().is_file()] == []


@chapters
def test_a_chapter_asks_three_questions_and_compares_with_burn(source):
    (recall,) = cells(source, "recall")
    asked = re.findall(r"<summary>(.+?)</summary>", recall.source, re.DOTALL)
    assert len([question for question in asked if question[-1] in "?."]) >= 3
    (summary,) = cells(source, "summary")
    _, _, table = summary.source.partition("**The same in Burn**")
    assert len(re.findall(r"^\| .+ \| .+ \|$", table, re.MULTILINE)) >= 3


@pages
def test_a_saved_page_is_small_and_holds_no_state(source):
    path = build.pages_of(FOLDER)[source]
    assert path.stat().st_size < MAX_BYTES
    page = nbformat.read(path, as_version=4)
    assert "widgets" not in page.metadata
    shown = [o for c in page.cells for o in c.get("outputs", [])]
    kinds = {kind for output in shown for kind in output.get("data", {})}
    assert "application/vnd.jupyter.widget-view+json" not in kinds


@pages
def test_the_committed_page_is_good(source):
    """Exercises wait, solutions pass, nothing goes to stderr, no path of a machine."""
    path = build.pages_of(FOLDER)[source]
    page = nbformat.read(path, as_version=4)
    for cell in page.cells:
        if cell.cell_type != "code":
            continue
        tags = cell.metadata.get("tags", [])
        assert [o for o in cell.outputs if o.get("name") == "stderr"] == []
        shown = "".join(o.text for o in cell.outputs if o.output_type == "stream")
        assert ("exercise" in tags) == shown.startswith("✎"), shown
        assert ("solution" in tags) == shown.startswith("✔ ") or "same" in shown
        errors = [o for o in cell.outputs if o.output_type == "error"]
        assert ("raises-exception" in tags) == bool(errors)
    outputs = json.dumps([c.get("outputs") for c in page.cells])
    assert re.search(r"/(home|root|tmp|Users|work)/", outputs) is None


def test_chapter_two_lists_the_prelude_as_it_is():
    (listing,) = [
        block
        for cell in cells(FOLDER / "src" / "02_getting_started.py")
        for block in re.findall(r"```python\n(.*?)```", cell.source, re.DOTALL)
        if "burnbook.tensor" in block
    ]
    shown: dict[str, object] = {}
    exec(listing, shown)
    prelude: dict[str, object] = {}
    exec("from burnbook.prelude import *", prelude)
    assert shown.keys() == prelude.keys()
    assert all(shown[name] is prelude[name] for name in shown if name != "__builtins__")


# The builder and the broom, on a page of four cells.


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("BURNBOOK_DISPLAY", "static")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "page.py").write_text(ONE_CHAPTER, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_building_executes_and_is_fresh_until_the_source_changes(folder, capsys):
    assert build.stale(folder) == ["page.ipynb: not built yet"]
    assert build.main([str(folder), "--check"]) == 1
    assert build.main([str(folder)]) == 0
    assert build.stale(folder) == []
    page = nbformat.read(folder / "page.ipynb", as_version=4)
    assert page.cells[1].outputs[0].text == "2\n"
    assert page.cells[2].outputs[0].ename == "ZeroDivisionError"
    assert page.cells[3].source.startswith("## Solutions")
    assert page.cells[4].source == '# solution\nprint("solved")'
    assert page.cells[4].metadata.jupyter == {"source_hidden": True}
    capsys.readouterr()
    assert build.main([str(folder)]) == 0
    assert capsys.readouterr().out == ""  # nothing to do the second time

    source = folder / "src" / "page.py"
    source.write_text(ONE_CHAPTER.replace("1 + 1", "1 + 2"), encoding="utf-8")
    assert build.stale(folder) == ["page.ipynb: its cells are not those of page.py"]


def test_a_page_without_source_or_run_is_stale(folder):
    page = build.read_source(folder / "src" / "page.py")
    nbformat.write(page, folder / "page.ipynb")
    nbformat.write(page, folder / "orphan.ipynb")
    assert build.stale(folder) == [
        "page.ipynb: not executed from top to bottom",
        f"orphan.ipynb: has no source {folder.name}/src/orphan.py",
    ]


def test_tidying_twice_changes_nothing_more(folder):
    page = build.read_source(folder / "src" / "page.py")
    page.cells[1].outputs = [
        nbformat.v4.new_output("stream", name="stdout", text="a"),
        nbformat.v4.new_output("stream", name="stdout", text="b\n"),
    ]
    page.cells[2].outputs = [
        nbformat.v4.new_output(
            "error",
            ename="E",
            evalue="e",
            traceback=["\x1b[36mFile \x1b[39m/home/me/x.py:1", "Cell In[1], line 1"],
        )
    ]
    page.cells[0].metadata["execution"] = {"when": "now"}
    page.metadata["widgets"] = {"state": 1}
    path = folder / "page.ipynb"
    nbformat.write(page, path)
    assert tidy.main([str(folder)]) == 0
    once = path.read_text(encoding="utf-8")
    assert "/home/me" not in once
    assert "widgets" not in once
    clean = nbformat.reads(once, as_version=4)
    assert [o.text for o in clean.cells[1].outputs] == ["ab\n"]
    assert tidy.main([str(folder)]) == 0
    assert path.read_text(encoding="utf-8") == once
