"""Every error that a reader can meet, with its full text.

The rows stand in tests/errors/*.txt, one file per part of the library:

    === an id
    the code that goes wrong, with the prelude's names, np and tmp_path
    ---
    ShapeError: the full text

`python -m tests.test_errors` lists the places that raise and have no row yet;
`python -m tests.test_errors id` prints what a row gives now.
"""

import ast
import re
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import burnbook
from burnbook import errors

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = Path(burnbook.__file__).parent
OURS = {
    name
    for name, found in vars(errors).items()
    if isinstance(found, type) and issubclass(found, errors.BurnbookError)
}
WHOLE = ("kinds.py", "methods.py", "tensor")  # each of their errors has a row


@cache
def rows():
    found = {}
    for file in sorted((ROOT / "tests/errors").glob("*.txt")):
        for part in re.split(r"^=== ", file.read_text("utf-8"), flags=re.M)[1:]:
            head, _, text = part.partition("\n---\n")
            name, _, code = head.partition("\n")
            assert name not in found, f"{file.name}: {name} is there twice"
            found[name] = (code, text.strip())
    return found


def run(code, tmp_path):
    """The error that some code raises, or None."""
    names = {"np": np, "tmp_path": tmp_path, "burnbook": burnbook}
    exec("from burnbook.prelude import *", names)
    try:
        exec(compile(code, "<row>", "exec"), names)
    except Exception as error:
        return error
    return None


def whole_text(error, tmp_path):
    text = f"{type(error).__name__}: {error}"
    return text.replace(str(tmp_path), "tmp_path")


@pytest.mark.parametrize("name", rows())
def test_the_error_has_its_text(name, tmp_path):
    code, text = rows()[name]
    error = run(code, tmp_path)
    assert error is not None, "nothing was raised"
    assert whole_text(error, tmp_path) == text


@pytest.mark.parametrize("name", rows())
def test_the_error_is_ours_and_hides_what_is_below(name, tmp_path):
    error = run(rows()[name][0], tmp_path)
    assert isinstance(error, errors.BurnbookError)
    assert error.__context__ is None or error.__suppress_context__
    assert not re.search(r" at 0x[0-9a-f]+|\binvalid\b|\bplease\b", str(error))
    assert len(str(error).splitlines()[0]) < 120


def test_every_class_of_error_is_explained_by_example():
    shown = {text.split(":")[0] for _, text in rows().values()}
    assert {"ShapeError", "DimError", "KindError", "BackendError"} <= shown
    assert shown <= OURS


def places(file):
    """The lines of a file that raise one of our errors."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call):
            continue
        name = getattr(node.exc.func, "id", "")
        if name in OURS or name == "complaint":
            yield range(node.lineno, node.end_lineno + 1)


def missing(files):
    """The places in some files that no row reaches."""
    reached = set()
    with tempfile.TemporaryDirectory() as folder:
        for code, _ in rows().values():
            error = run(code, Path(folder))
            frames = traceback.extract_tb(error.__traceback__) if error else []
            reached |= {(frame.filename, frame.lineno) for frame in frames}
    return [
        f"{file.relative_to(ROOT)}:{lines[0]}"
        for file in files
        for lines in places(file)
        if not any((str(file), line) in reached for line in lines)
    ]


def files_of(names):
    for name in names:
        path = LIBRARY / name
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def test_every_place_that_raises_has_a_row():
    assert missing(files_of(WHOLE)) == []


if __name__ == "__main__":
    scratch = Path(tempfile.mkdtemp())
    for asked in sys.argv[1:]:
        print(whole_text(run(rows()[asked][0], scratch), scratch))
    if not sys.argv[1:]:
        print("\n".join(missing(sorted(LIBRARY.rglob("*.py")))))
