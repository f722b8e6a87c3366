"""The training page in other forms: in Chinese, and for other versions of Burn."""

import ast
import linecache
import re
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("jupytext", reason="pages are read with the [lab,test] extras")
pytest.importorskip("plotly", reason="chapters import the [lab] extra")

from burnbook_widgets import build

FOLDER = Path(__file__).resolve().parents[2] / "notebooks" / "src"
TRANSLATIONS = sorted((FOLDER / "zh").glob("*.py"))
HAN = re.compile(r"[\u4e00-\u9fff]")
FENCED = re.compile(r"^```\w+\n.*?^```$", re.DOTALL | re.MULTILINE)
RUST_OR_CODE = re.compile(r"`[^`\n]+`")

each = pytest.mark.parametrize("path", TRANSLATIONS, ids=lambda path: path.stem)


SVG = "nbval-ignore-output"  # of a picture with Chinese words; else it is a PNG


def tags(cell):
    """What a cell is for; its name in the ledger is its own in every edition."""
    found = set(cell.metadata.get("tags", [])) - {SVG}
    return {tag for tag in found if not tag.startswith("cell:")}


def cells(path, kind):
    return [c for c in build.read_source(path).cells if c.cell_type == kind]


def both(path, kind):
    """The cells of a translation beside those of the original."""
    theirs, ours = cells(path, kind), cells(FOLDER / path.name, kind)
    assert len(theirs) == len(ours)
    return list(zip(theirs, ours, strict=True))


def is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def same_code(theirs, ours):
    """Whether two cells are one program, but for texts that are now in Chinese."""
    a, b = list(ast.walk(ast.parse(theirs))), list(ast.walk(ast.parse(ours)))
    if len(a) != len(b):
        return False
    for one, other in zip(a, b, strict=True):
        if is_text(one) and is_text(other) and HAN.search(one.value):
            one.value = other.value
    return ast.dump(a[0]) == ast.dump(b[0])


@each
def test_a_translation_has_the_cells_of_the_original(path):
    for theirs, ours in both(path, "code"):
        assert same_code(theirs.source, ours.source), theirs.source
        assert tags(theirs) == tags(ours)


@each
def test_its_comments_stand_where_the_original_has_them(path):
    for theirs, ours in both(path, "code"):
        lines = [c.source.splitlines() for c in (theirs, ours)]
        starts = [[i for i, x in enumerate(some) if x[:1] == "#"] for some in lines]
        assert starts[0] == starts[1], theirs.source


@each
def test_its_prose_has_the_parts_of_the_original(path):
    parts = {
        "headings": r"^#+ ",
        "points": r"^- ",
        "rows": r"^\|",
        "folds": r"<details>",
        "formulas": r"\$\$",
        "notebooks": r"\.ipynb\)",
    }
    for theirs, ours in both(path, "markdown"):
        assert tags(theirs) == tags(ours)
        for name, mark in parts.items():
            found = [len(re.findall(mark, c.source, re.M)) for c in (theirs, ours)]
            if name == "notebooks" and "goals" in tags(ours):
                assert found[0] >= 2
            else:
                assert found[0] == found[1], f"{name} of:\n{theirs.source}"


@each
def test_it_says_everything_in_chinese(path):
    for cell in cells(path, "markdown"):
        for paragraph in re.split(r"\n\n+", FENCED.sub("", cell.source)):
            words = re.findall(r"[A-Za-z]+", RUST_OR_CODE.sub("", paragraph))
            prose = paragraph[:1] not in "$|" and len(words) > 3
            assert not prose or HAN.search(paragraph), paragraph


@each
def test_names_in_code_marks_are_those_of_the_original(path):
    for theirs, ours in both(path, "markdown"):
        names = [set(RUST_OR_CODE.findall(c.source)) for c in (theirs, ours)]
        assert names[0] == names[1], theirs.source


@each
def test_original_and_translation_lead_to_each_other(path):
    ours = "\n".join(c.source for c in cells(FOLDER / path.name, "markdown"))
    theirs = "\n".join(c.source for c in cells(path, "markdown"))
    assert f"](zh/{path.stem}.ipynb)" in ours
    assert f"](../{path.stem}.ipynb)" in theirs


@pytest.mark.parametrize(
    ("theirs", "ours", "same"),
    [
        ('print("损失", x)', 'print("the loss", x)', True),
        ('print("the loss", x)', 'print("the loss", x)', True),
        ("x = 1  # 一", "x = 1  # one", True),
        ('print("损失", y)', 'print("the loss", x)', False),
        ('print("a loss", x)', 'print("the loss", x)', False),
        ('print("损失")', 'print("the loss", x)', False),
        ('print("损失")', "print(1)", False),
        ("x = 1", "x = 2", False),
    ],
)
def test_what_counts_as_the_same_code(theirs, ours, same):
    assert same_code(theirs, ours) is same


# The versions of the page, each in one cell.


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """The page, run without a kernel up to its exercises."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("versions"))
        patch.setenv("BURNBOOK_DISPLAY", "static")
        page = {"__name__": "page"}
        for i, cell in enumerate(cells(FOLDER / "03_3_training_versions.py", "code")):
            if {"setup", "run-me"} & tags(cell):
                name = f"<cell {i} of the versions>"
                lines = cell.source.splitlines(keepends=True)
                linecache.cache[name] = len(cell.source), None, lines, name
                exec(compile(cell.source, name, "exec"), page)
        yield page


def test_all_forms_are_there_in_their_order(versions):
    forms = ["0.11", "0.15", "0.17", "0.19", "0.20", "0.22"]
    assert list(versions["versions"]) == forms


def test_every_form_gives_the_same_weights_to_the_bit(versions):
    found = {name: versions["weights"](name) for name in versions["versions"]}
    assert all(len(some) == 8 for some in found.values())
    assert all(found[a] == found[b] for a, b in pairwise(found))


def test_every_form_logs_the_same_numbers(versions):
    found = {name: versions["logs"](name) for name in versions["versions"]}
    kinds = [(split, name) for split, name, _ in found["0.15"]]
    assert kinds == [
        (split, f"{metric}.log")
        for split in ("train", "valid")
        for metric in ("Accuracy", "Loss")
    ]
    assert [log.count(b"\n") for _, _, log in found["0.15"]] == [23, 23, 6, 6]
    assert all(found[a] == found[b] for a, b in pairwise(found))


def test_every_form_saves_its_model_and_config(versions):
    for name in versions["versions"]:
        files = {path.name for path in (versions["home"] / name).iterdir()}
        saved = "model.bpk" if name == "0.22" else "model.mpk"
        assert {"config.json", saved, "checkpoint", "experiment.log"} <= files


def test_what_the_newest_form_saves_is_read_without_a_recorder(versions):
    record = versions["ModuleRecord"].load(versions["home"] / "0.22" / "model")
    again = versions["config"].model.init(versions["device"].inner)
    again = again.try_load_record(record)
    trained = [p.val().to_data() for _, p in versions["models"]["0.22"].named_params()]
    assert [p.val().to_data() for _, p in again.named_params()] == trained


def test_the_newest_form_keeps_what_else_is_in_the_folder(versions):
    """Only the log of an earlier run goes."""
    folder = versions["home"] / "0.22"
    (folder / "notes.txt").write_text("mine")
    before = (folder / "experiment.log").read_text()
    versions["train_0_22"](folder)
    assert (folder / "notes.txt").exists()
    assert len((folder / "experiment.log").read_text()) < 2 * len(before)


def test_newer_forms_give_a_model_without_gradients(versions):
    tracked = {
        name: model.devices()[0].ad_enabled
        for name, model in versions["models"].items()
    }
    assert tracked == {
        "0.11": True, "0.15": True, "0.17": True, "0.19": False, "0.20": False,
        "0.22": False,
    }  # fmt: skip


def test_what_changed_is_read_from_the_cells(versions):
    lines = versions["changes"]("0.17", "0.19")
    assert "-     model = learner.fit(train, valid)" in lines
    assert "+     learner.fit(train, valid)" in lines
    assert versions["changes"]("0.17", "0.17") == []
