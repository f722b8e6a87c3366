"""Every error that a reader can meet: its class, where, facts and cure.

The rows stand in tests/errors/*.txt, one file per part of the library:

    names that the rows of this file share (optional)
    === an id
    the code that goes wrong, with the prelude's names, np and tmp_path
    ---
    ShapeError: where: … 784 100
      the facts and the cure

The sentence after `where` is free: of it only the numbers, names and lists are kept,
behind a `…`. About sixty rows, the errors that people meet most, have the full
sentence instead: whoever changes one sees the whole text change.

`python -m tests.core.test_errors` lists the places that raise and have no row yet;
`python -m tests.core.test_errors id` prints what a row gives now; `--write` puts
into all files what their rows give now (a new row needs no text): then read the
difference.
"""

import ast
import builtins
import inspect
import io
import os
import re
import sys
import tempfile
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

import burnbook
from burnbook.core import errors

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(burnbook.__file__).parent
OURS = {
    name
    for name, found in vars(errors).items()
    if isinstance(found, type) and issubclass(found, errors.BurnbookError)
}
# Exceptions that never leave their own part: another error of ours tells their text.
INNER = {"ArgumentTypeError", "Broken", "Trouble", "URLError", "Unusable"}
INNER |= {"NotRegularError", "IsADirectoryError", "NoForm"}

# Places that no row can reach, each with its reason.
EXEMPT = {
    "backend/autodiff/errors.py _cut_by": "see tests/optim/test_cut_losses.py",
    "core/other_names.py OtherName.__get__": "made a line before: see name-of-pytorch",
    "core/dropped.py result_matters.wrap.call": "as for core/arguments.py",
    "core/other_names.py _near_name": "of names in a table: see test_other_names",
    "cli/records.py _called": "see tests/cli",
    "data/dataset/arrays.py SequenceDataset.get": "an index",
    "data/dataset/arrays.py ArrayDataset.get": "an index",
    "data/dataset/audio/speech.py Recordings.get": "an index",
    "data/dataset/csv_rows.py LabeledTexts.get": "an index",
    "data/dataset/dataframe.py DataframeDataset.get": "an index",
    "data/dataset/fake.py FakeDataset.get": "an index",
    "data/dataset/nlp/text_folder.py TextFolderDataset.get": "an index",
    "data/dataset/sqlite.py SqliteDataset.get": "an index",
    "data/dataset/transform/selection.py SamplerDataset.get": "an index",
    "data/dataset/transform/selection.py SelectionDataset.get": "an index",
    "data/dataset/transform/transform.py WindowsDataset.get": "an index",
    "data/dataset/transform/transform.py ComposedDataset.get": "an index",
    "data/dataset/transform/transform.py PartialDataset.get": "an index",
    "data/dataset/vision/cifar.py SmallImages.get": "an index",
    "data/dataset/vision/image_folder.py ImageFolderDataset.get": "an index",
    "data/dataset/vision/mnist.py LabeledImages.get": "an index",
    "data/dataloader/workers.py ProcessPool.run": "see tests/data/test_processes",
    "data/dataloader/workers.py ProcessPool.run.submit": "the same",
    "data/dataloader/workers.py _lost": "the same",
    "exporters/forms.py _given_names": "ONNX alone: see test_onnx_models.py",
    "exporters/forms.py refuse_twice": "the same",
    "exporters/wgsl/device.py gpu": "it needs a machine without wgpu, or without a GPU",
    "rust/cargo.py cargo": "it needs a machine without cargo: see tests/rust",
    "rust/cargo.py Project.build": "it needs cargo: see tests/rust",
    "rust/cargo.py Project.crate_names": "the same",
    "rust/magic.py run": "the same",
    "rust/magic.py _run": "the same",
    "tensor/methods.py _method_of_one.method": "its ops of one input have no reasons",
    "tensor/methods.py _complaint": "its last return: ops that refuse without a reason",
}


# What one call in a row cannot reach: it needs the package onnx, a model and a function
# to capture, or files of others. Each has tests of its own, with what they say.
OPTIONAL = (
    "core/arguments.py",  # see tests/core/test_arguments.py
    "importers/onnx/",  # see tests/importers/onnx
    "exporters/onnx/",  # see tests/exporters
    "exporters/micropython/",
    "exporters/rust/",  # see tests/exporters/rust
    "program/",  # see tests/program, where the line of the user is looked at as well
)


class Outcome(NamedTuple):
    """What a row gave: the error, its text, with a free sentence, and who made it."""

    error: Exception | None
    text: str
    free: str
    lines: frozenset[tuple[str, int]]


@cache
def rows():
    found = {}
    for file in sorted((ROOT / "tests/errors").glob("*.txt")):
        shared, *parts = re.split(r"^=== ", file.read_text("utf-8"), flags=re.M)
        for part in parts:
            head, _, text = part.partition("\n---")
            name, _, code = head.partition("\n")
            assert name not in found, f"{file.name}: {name} is there twice"
            found[name] = (shared + code, text.strip())
    return found


@cache
def outcome(name):
    """Run a row once, in a folder and an environment of its own."""
    names: dict[str, Any] = {"np": np, "burnbook": burnbook}
    exec("from burnbook.prelude import *", names)
    with (
        redirect_stdout(io.StringIO()),
        tempfile.TemporaryDirectory() as folder,
        patch.dict(os.environ),
        patch.object(errors.BurnbookError, "__init__", remembering),
    ):
        names["tmp_path"] = Path(folder)
        try:
            exec(compile(rows()[name][0], f"<{name}>", "exec"), names)
        except Exception as error:
            text = f"{type(error).__name__}: {error}".replace(folder, "tmp_path")
            lines = getattr(error, "made_at", ())
            error.__traceback__ = None  # its frames hold graphs, and their hooks
            return Outcome(error, text, freed(error, folder), frozenset(lines))
        finally:
            names.clear()
    return Outcome(None, "nothing was raised", "", frozenset())


# What a sentence states whatever its words are: texts, lists, numbers, names in code.
STATED = r"(?<!\w)'[^']*'(?!\w)|\[[^]]*\]|(?<!\w)-?\d+(?:[.,]\d+)*|\w+_\w+"


def freed(error, folder):
    """The text of an error whose sentence is only what it states."""
    if not isinstance(error, errors.BurnbookError) or not error.what:
        return ""
    stated = re.findall(STATED, error.what.replace(folder, "tmp_path"))
    with patch.object(error, "what", " ".join(["…", *stated])):
        return f"{type(error).__name__}: {error}".replace(folder, "tmp_path")


def is_free(text):
    """Whether a row leaves the sentence of its error free; a new row does."""
    return not text or ": …" in text.partition("\n")[0]


make = errors.BurnbookError.__init__


def remembering(self, *args, **kwargs):
    """Make an error that knows all lines of the library that led to it."""
    make(self, *args, **kwargs)
    self.made_at = set()
    frame = inspect.currentframe()
    while frame := frame.f_back:
        self.made_at.add((frame.f_code.co_filename, frame.f_lineno))


@pytest.mark.parametrize("name", rows())
def test_the_error_has_its_text(name):
    wanted = rows()[name][1]
    found = outcome(name)
    assert (found.free if is_free(wanted) else found.text) == wanted


def test_the_errors_that_people_meet_most_have_their_full_text():
    golden = [text for _, text in rows().values() if not is_free(text)]
    assert 55 <= len(golden) <= 75
    assert {text.split(":")[0] for text in golden} == OURS - {
        "BurnbookError",
        "ImportFailed",
    }


@pytest.mark.parametrize("name", rows())
def test_the_error_is_ours_and_hides_what_is_below(name):
    error, text, *_ = outcome(name)
    assert isinstance(error, errors.BurnbookError)
    assert error.__context__ is None or error.__suppress_context__
    assert not re.search(r" at 0x[0-9a-f]+|\binvalid\b|\bplease\b", text)
    assert len(text.splitlines()[0]) < 120


def places(file):
    """The lines of a file that make or raise one of our errors, and their function."""
    inside = [(ast.parse(file.read_text("utf-8")), "")]
    while inside:
        node, function = inside.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".strip(".")
        inside += [(child, function) for child in ast.iter_child_nodes(node)]
        call = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func).rpartition(".")[2]
        raised = node is not call and not hasattr(builtins, name) and name not in INNER
        if name in OURS or raised:
            yield range(node.lineno, node.end_lineno + 1), function


def missing():
    """The places in the library that no row reaches and no reason exempts."""
    found: dict[str, None] = {}
    reached = set().union(*(outcome(name).lines for name in rows()))
    for file in sorted(LIBRARY.rglob("*.py")):
        for lines, function in places(file):
            where = f"{file.relative_to(LIBRARY).as_posix()} {function}"
            met = any((str(file), line) in reached for line in lines)
            if not met and where not in EXEMPT and not where.startswith(OPTIONAL):
                found[f"{where}, line {lines[0]}"] = None
    return list(found)


def test_every_place_that_raises_has_a_row():
    assert missing() == []


def test_every_exempt_place_is_still_there():
    found = {
        f"{file.relative_to(LIBRARY).as_posix()} {function}"
        for file in LIBRARY.rglob("*.py")
        for _, function in places(file)
    }
    assert set(EXEMPT) <= found


def write():
    """Put into every file what its rows give now."""
    for file in (ROOT / "tests/errors").glob("*.txt"):
        first, *parts = re.split(r"^=== ", file.read_text("utf-8"), flags=re.M)
        blocks = [first.rstrip() + "\n"] if first.strip() else []
        for part in parts:
            head, _, was = part.partition("\n---")
            head = head.rstrip()
            found = outcome(head.partition("\n")[0])
            text = found.free if is_free(was.strip()) else found.text
            blocks.append(f"=== {head}\n---\n{text}\n")
        file.write_text("\n".join(blocks), "utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    elif sys.argv[1:]:
        print("\n".join(outcome(asked).text for asked in sys.argv[1:]))
    else:
        print("\n".join(missing()))
