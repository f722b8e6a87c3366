"""The same in Rust: what a chapter folds under its cells compiles and prints the same.

Without cargo, or without the crates of shared/burn, the programs are only looked at:
the tests that build and run them are left out, with the reason.
"""

import math
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip(
    "jupytext", reason="chapters are checked with the [lab,test] extras"
)

import nbformat

from burnbook_widgets import build
from burnbook_widgets.chapters import twins
from tests.support import cargo

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "notebooks"
PROJECT = FOLDER / "rust"
PROGRAMS = sorted((PROJECT / "src/bin").glob("*.rs"))
PAGES = {
    source: page
    for source, page in build.pages_of(FOLDER).items()
    if twins.program_of(source) in PROGRAMS
}
AT_LEAST = 60  # twins that print what their cell prints
MOST_LINES, MOST_COLUMNS = 40, 79
CELLS = """\
# %% tags=["run-me", "rust:add"]
print(1 + 1)

# %% tags=["run-me"]
print("no twin")
"""
PROGRAM = """\
// ANCHOR: add
fn add(x: i32) -> i32 {
    x + 1
}

// ANCHOR_END: add
fn main() {
    // ANCHOR: add
    println!("{}", add(1));
    // ANCHOR_END: add
}
"""

programs = pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)


def shown(program: Path) -> dict[str, str]:
    return twins.snippets(program.read_text(encoding="utf-8"))


# What the pages and the programs say of each other.


def asked(source: Path) -> list[str]:
    text = source.read_text(encoding="utf-8")
    return re.findall(rf'"{twins.TAG}([^"]+)"', text)


def test_every_anchor_is_shown_by_its_chapter_once():
    assert len(PAGES) > len(PROGRAMS) > 0  # one of them is a translation
    for source in PAGES:
        known, names = set(shown(twins.program_of(source))), asked(source)
        assert len(names) == len(set(names)), source
        if source.parent.name == "src":
            assert known == set(names), source.stem
        else:
            assert set(names) <= known, source


def test_no_page_asks_for_a_program_that_is_not_there():
    sources = build.pages_of(FOLDER)
    assert [s for s in sources if asked(s) and s not in PAGES] == []


@programs
def test_a_twin_is_short_and_fits_beside_its_cell(program):
    for name, lines in shown(program).items():
        assert lines.strip(), name
        assert lines.count("\n") < MOST_LINES, name
        # A comment behind a line may stand out: rustfmt does not break those.
        codes = [line.partition(" //")[0] for line in lines.splitlines()]
        assert max(map(len, codes)) <= MOST_COLUMNS, name


@programs
def test_a_program_is_formatted(program):
    if not cargo.at_hand("rustfmt"):
        pytest.skip("no rustfmt here")
    command = ["rustfmt", "--check", "--edition", "2021", program]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_twin_stands_below_its_cell(tmp_path):
    source = tmp_path / "src" / "page.py"
    source.parent.mkdir()
    source.write_text(CELLS, encoding="utf-8")
    program = twins.program_of(source)
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM, encoding="utf-8")
    code, twin, other = build.read_source(source).cells
    assert code.source == "print(1 + 1)"
    assert other.source == 'print("no twin")'
    assert twin.cell_type == "markdown"
    assert twin.source == (
        "<details><summary><b>🦀 The same in Rust</b></summary>\n\n"
        "```rust\nfn add(x: i32) -> i32 {\n    x + 1\n}\n\n"
        'println!("{}", add(1));\n```\n\n</details>'
    )


def test_a_translation_has_the_twins_of_the_chapter_it_translates():
    source = FOLDER / "src/zh/03_3_training.py"
    assert twins.program_of(source) == PROJECT / "src/bin/03_3_training.rs"
    cells = build.read_source(source).cells
    found = [c.source for c in cells if c.metadata.get("tags") == ["rust"]]
    assert len(found) == len(asked(source)) > 1
    assert all(twins.WORDS["zh"][0] in text for text in found)


def test_the_first_twin_leads_to_a_heading_that_is_there():
    page = (FOLDER / "src/02_getting_started.py").read_text(encoding="utf-8")
    heads = re.findall(r"(?m)^# #+ (.*)$", page)
    for _, note in twins.WORDS.values():
        (place,) = re.findall(r"02_getting_started\.ipynb#([\w-]+)\)", note)
        assert place.replace("-", " ") in heads


def test_a_missing_twin_is_named(tmp_path):
    program = tmp_path / "page.rs"
    program.write_text(PROGRAM.replace("add\n", "sum\n"), encoding="utf-8")
    code = nbformat.v4.new_code_cell("1", metadata={"tags": ["rust:add"]})
    page = nbformat.v4.new_notebook(cells=[code])
    with pytest.raises(LookupError, match=r"page\.rs has no // ANCHOR: add"):
        twins.with_twins(page, program)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("// ANCHOR: a\n", "never closed: a"),
        ("// ANCHOR_END: a\n", "line 1 closes a, never opened"),
        ("// ANCHOR: a\n// ANCHOR: a\n", "line 2 opens a a second time"),
    ],
)
def test_an_anchor_left_open_or_closed_twice_is_an_error(text, what):
    with pytest.raises(ValueError, match=what):
        twins.snippets(text)


# What the programs print, beside what the cells print.

TOKEN = re.compile(
    r"(?P<true>✔|\b[Tt]rue\b)|(?P<false>✘|\b[Ff]alse\b)"
    r"|(?<![\w.])(?P<number>-?\d+(?:\.\d*)?(?:e[+-]?\d+)?|nan|-?inf)(?![\w])",
    re.IGNORECASE,
)
Token = bool | tuple[float, int]  # of a number: how many decimals are shown


def tokens(text: str) -> Iterator[Token]:
    """Truths and numbers of a text, in order.

    The 1 of log1p is none, nor are the digits of "f32".
    """
    for found in TOKEN.finditer(text.replace("−", "-")):
        number = found["number"]
        if number is None:
            yield found["true"] is not None
        else:
            mantissa, _, exponent = number.lower().partition("e")
            decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
            yield float(number), max(decimals, 0)


def agree(a: Token, b: Token) -> bool:
    """Whether two tokens are equal, numbers to the digits that both show."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    (x, m), (y, n) = a, b
    if math.isnan(x) or math.isinf(x):
        return x == y or (math.isnan(x) and math.isnan(y))
    # Without decimals a number is whole: "2" and NumPy's "2." are 2 exactly.
    width = 0.51 * 10.0 ** -min(m, n) if m and n else 0.0
    return abs(x - y) <= width + 1e-6 * abs(y)


def first_missing(found: list[Token], within: list[Token]) -> Token | None:
    """The first of `found` that does not follow in `within`; None: all do, in order."""
    rest = iter(within)
    for one in found:
        if not any(agree(one, other) for other in rest):
            return one
    return None


def test_numbers_agree_to_the_digits_that_both_show():
    python = list(tokens("a  [[2.00, -0.33]]  1e-3 True log1p [ 2. 3.] nan"))
    assert len(python) == 7
    assert first_missing(list(tokens("2.0 -0.33333334 true 3.0 NaN")), python) is None
    assert first_missing(list(tokens("-0.34")), python) == (-0.34, 2)
    assert first_missing(list(tokens("false")), python) is False
    assert first_missing(list(tokens("3 2")), python) == (2.0, 0)  # another order
    assert first_missing(list(tokens("0.001")), python) is None
    assert list(tokens("✔ the same: f32")) == [True]


def printed(page: Path) -> dict[str, str]:
    """What the cells of a page print, by the names of their twins."""
    cells = nbformat.read(page, as_version=4).cells
    return {
        name: "\n".join(_texts(cell))
        for cell in cells
        if cell.cell_type == "code"
        for name in twins.names(cell)
    }


def _texts(cell: nbformat.NotebookNode) -> Iterator[str]:
    for output in cell.outputs:
        yield output.get("text") or output.get("data", {}).get("text/plain", "")


@cache
def folder_of_programs() -> Path:
    """The folder of the built programs; skips where they cannot be built."""
    place = cargo.folder_of_crates()
    at = place / "book"
    shutil.rmtree(at, ignore_errors=True)
    left = shutil.ignore_patterns("target", ".cargo")
    shutil.copytree(PROJECT, at, ignore=left)  # with its times: old ones are not built
    _write_shown(at / "examples")
    (at / ".cargo").mkdir()
    (at / ".cargo/config.toml").write_text(cargo.settings())
    done = build_in(at)
    assert done.returncode == 0, done.stderr[-3000:]
    return place / "target/debug"


def build_in(at: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = ["cargo", "build", "--locked", "--offline", *more]
    there = {**os.environ, "CARGO_TARGET_DIR": str(cargo.folder_of_crates() / "target")}
    return subprocess.run(command, cwd=at, env=there, capture_output=True, text=True)


def _write_shown(folder: Path) -> None:
    """What the pages show, a program each: in their order, as the inside of `main`."""
    folder.mkdir()
    for source, page in PAGES.items():
        if page.parent != FOLDER:
            continue  # a translation
        program = twins.program_of(source)
        parts = shown(program)
        inside = "\n".join(parts[name] for name in asked(source))
        text = f"#![allow(warnings)]\nfn main() {{\n{inside}\n}}\n"
        path = folder / f"shown_{program.name}"
        path.write_text(text, encoding="utf-8")
        shutil.copystat(program, path)  # its time, too: an old one is not built


def outputs(program: Path) -> dict[str, str]:
    """What a program prints, by its twins."""
    path = folder_of_programs() / program.stem
    done = subprocess.run([path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    before, *parts = re.split(r"(?m)^--- ([\w-]+)\n", done.stdout)
    assert before == ""
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.slow
@programs
def test_a_twin_prints_what_its_cell_prints(program):
    page = next(p for s, p in PAGES.items() if s.stem == program.stem)
    python, rust = printed(page), outputs(program)
    assert rust
    for name, text in rust.items():
        assert name in python, f"{name} prints, but is not shown"
        missing = first_missing(list(tokens(text)), list(tokens(python[name])))
        assert missing is None, f"{name}: {missing}\n{text}\nbeside\n{python[name]}"


@pytest.mark.slow
def test_the_twins_of_a_chapter_compile_one_after_the_other():
    """As the first of each chapter says, and as in one cell of `%%rust`."""
    folder_of_programs()
    done = build_in(cargo.folder_of_crates() / "book", "--examples")
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
def test_enough_twins_print_what_can_be_compared():
    compared = [
        (program.stem, name)
        for program in PROGRAMS
        for name, text in outputs(program).items()
        if any(True for _ in tokens(text))
    ]
    assert len(compared) >= AT_LEAST


def test_the_programs_keep_the_order_of_their_chapters():
    for source, page in PAGES.items():
        names = asked(source)
        order = [name for name in printed(page) if name in names]
        assert order == names
        assert all(a != b for a, b in pairwise(names))
