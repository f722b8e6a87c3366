"""`use burn::a::b::C` of the book is `from burnbook.a.b import C` here."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

BOOK = Path(__file__).resolve().parents[3] / "shared" / "book"
LINE = re.compile(r"\buse (burn(?:_\w+)?(?:::[^;]*)?);")

# What has no counterpart, and why.
WITHOUT = {
    "burn::backend::NdArray": "Numpy stands in its place",
    "burn::backend::Wgpu": "Cupy stands in its place",
    "burn::backend::backend::": "a slip of the book: there is one `backend`",
    "burn_ndarray::": "a crate of its own: Numpy stands in its place",
    "burn_import::onnx": "importing ONNX is a chapter that is not written yet",
}


def expanded(path: str) -> Iterator[str]:
    """`a::{b, c::{d}}` as `a::b` and `a::c::d`."""
    start, brace, rest = path.strip().partition("{")
    if not brace:
        yield start
        return
    depth, part = 0, ""
    for letter in rest.rstrip().removesuffix("}") + ",":
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if part.strip():
                yield from (start + each for each in expanded(part))
            part = ""
        else:
            part += letter


def use_lines() -> list[str]:
    """Every path that a listing of the book takes a name from."""
    found: set[str] = set()
    for file in sorted(BOOK.glob("*")):
        lines = file.read_text(encoding="utf-8").split("\n")
        bare = (re.sub(r"^\s*# ", "", line).partition("//")[0] for line in lines)
        for path in LINE.findall("\n".join(bare)):
            found.update(re.sub(r"\s+", "", each) for each in expanded(path))
    return sorted(found)


def counterpart(path: str) -> object:
    """The module or name of ours that stands where Burn's does."""
    *parts, name = path.split("::")
    if parts[:1] == ["burn_import"]:  # a crate of its own
        parts.insert(1, "importers")
    package = ".".join(["burnbook", *parts[1:]])
    if name == "*":
        return importlib.import_module(package)
    module = importlib.import_module(package)
    if hasattr(module, name):
        return getattr(module, name)
    return importlib.import_module(f"{package}.{name}")


def reason(path: str) -> str | None:
    return next((why for start, why in WITHOUT.items() if path.startswith(start)), None)


def test_every_use_line_of_the_book_has_its_import():
    if not BOOK.is_dir():
        pytest.skip("the text of the book is not beside the repository")
    lines = use_lines()
    assert len(lines) > 40
    lost = []
    for path in lines:
        try:
            counterpart(path)
        except (ImportError, AttributeError) as error:
            if reason(path) is None:
                lost.append(f"{path}: {error}")
    assert not lost, "\n".join(lost)


def test_few_lines_have_no_counterpart():
    assert len(WITHOUT) <= 5


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("burn::nn", ["burn::nn"]),
        ("burn::{nn::{conv::Conv2d, Relu}, tensor::Tensor}", None),
        ("burn::prelude::*", ["burn::prelude::*"]),
    ],
)
def test_braces_are_expanded(path, names):
    several = ["burn::nn::conv::Conv2d", "burn::nn::Relu", "burn::tensor::Tensor"]
    found = [re.sub(r"\s+", "", each) for each in expanded(path)]
    assert found == (names or several)
