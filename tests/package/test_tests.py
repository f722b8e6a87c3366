"""The tests themselves: collected and run without any package that is optional."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.programs import python

ROOT = Path(__file__).resolve().parents[2]
OPTIONAL = (
    "cupy datasets mygrad onnx onnxruntime pandas playwright polars pyarrow torch "
    "torchvision transformers"
)

# As if they were not installed, in the process that it is imported by.
HIDE = f"""
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL.split()!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hide())
"""


def imports_at_the_top(text):
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def may_skip_whole(text):
    """Whether importing the file can skip it: outside of functions, that is."""
    calls = [
        call.func.attr
        for node in ast.parse(text).body
        if not isinstance(node, ast.FunctionDef | ast.ClassDef)
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    ]
    return bool({"importorskip", "skip"} & {*calls})


def test_nothing_is_imported_from_a_file_that_may_skip():
    texts = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text("utf-8")
        for path in (ROOT / "tests").rglob("*.py")
    }
    skips = {n for n, text in texts.items() if "skip" in text and may_skip_whole(text)}
    assert "tests.book.test_contents" in skips
    assert not [name for name in skips if name.startswith("tests.torch.")]
    wrong = [
        f"{name} imports {target}, which skips itself where a package is missing"
        for name, text in texts.items()
        if "tests" in text
        for target in imports_at_the_top(text)
        if target in skips
    ]
    assert wrong == [], "\n".join(wrong)


@pytest.mark.slow
def test_all_tests_are_collected_without_what_is_optional(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(HIDE)
    command = ["-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = python(*command, "-m", "not bench and not browser", first=tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    collected = re.search(r"([\d,]+)(?:/[\d,]+)? tests collected", done.stdout)
    assert int(collected[1]) > 10_000


def test_comparisons_skip_one_by_one_without_the_other_library(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(HIDE)
    file = "tests/torch/test_torch_norm.py"
    command = ["-m", "pytest", file, "-q", "-rs", "-p", "no:cacheprovider"]
    done = python(*command, first=tmp_path)
    skipped = re.search(r"^(\d+) skipped", done.stdout, re.M)
    assert skipped, done.stdout[-3000:] + done.stderr[-3000:]
    assert int(skipped[1]) > 200
    assert "PyTorch is the oracle here" in done.stdout
