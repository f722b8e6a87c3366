"""A cell becomes a program: its arguments, and the file that is compiled.

The file has the cell's lines at the cell's numbers: line 1, where the notebook has
`%%rust`, holds what comes before, and what comes after follows the last line. So every
message of rustc names the line that the reader sees.
"""

import argparse
import difflib
import keyword
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from burnbook.core.errors import Fact
from burnbook.rust.errors import WHERE, Layout, RustError

RUST_WORDS = """
abstract as async await become box break const continue crate do dyn else enum extern
false final fn for if impl in let loop macro match mod move mut override priv pub ref
return self Self static struct super trait true try type typeof unsafe unsized use
virtual where while yield
"""
MAIN = re.compile(r"\bfn\s+main\s*\(")
ASIDE = re.compile(
    r"//[^\n]*|/\*.*?\*/"  # comments
    r'|\br(#*)".*?"\1|"(?:\\.|[^"\\])*"'  # texts
    r"|'(?:\\[^\n]*?|[^\\'\n])'",  # letters, but not lifetimes
    re.DOTALL,
)
USAGE = "%%rust [-i NAME ...] [-o NAME ...] [-O] [--crates FOLDER]"


@dataclass(frozen=True)
class Arguments:
    """What stands behind `%%rust`."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    optimized: bool = False
    crates: str | None = None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise RustError(WHERE, message, [("usage", USAGE)])


def parse(line: str) -> Arguments:
    """Read the arguments of `%%rust`.

    Names are separated by spaces or commas; an option may stand more than once.

    Example:
        >>> parse("-i x, y -o z")
        Arguments(inputs=('x', 'y'), outputs=('z',), optimized=False, crates=None)

    Raises:
        RustError: an unknown option, or a name that no variable can have.
    """
    parser = _Parser(prog=WHERE, add_help=False, allow_abbrev=False)
    parser.add_argument("-i", "--input", nargs="+", action="extend", default=[])
    parser.add_argument("-o", "--output", nargs="+", action="extend", default=[])
    parser.add_argument("-O", "--optimized", action="store_true")
    parser.add_argument("--crates")
    try:
        words = shlex.split(line, posix=os.name != "nt")
    except ValueError as cause:
        raise RustError(WHERE, f"{cause}".lower(), [("usage", USAGE)]) from None
    given = parser.parse_args(words)
    crates = given.crates.strip("\"'") if given.crates else None
    inputs, outputs = _names("-i", given.input), _names("-o", given.output)
    return Arguments(inputs, outputs, given.optimized, crates)


def _names(option: str, words: Iterable[str]) -> tuple[str, ...]:
    """The names of an option, each once."""
    found: list[str] = []
    for word in words:
        for name in re.split(r"\s*,\s*", word.strip("\"', ")):
            _check_name(option, name)
            if name not in found:
                found.append(name)
    return tuple(found)


def _check_name(option: str, name: str) -> None:
    where = f"{WHERE} {option}"
    if not name.isidentifier() or keyword.iskeyword(name):
        cure = f"{WHERE} {option} x y" if " " in name else None
        raise RustError(where, f"{name!r} is not the name of a variable", cure=cure)
    if name in RUST_WORDS.split():
        cure = f"{name}_ = {name} in a cell before, then {option} {name}_"
        raise RustError(where, f"{name} is a word of Rust, no name there", cure=cure)
    if name == "_":
        raise RustError(where, "_ is no name in Rust")


def look_up(names: Sequence[str], values: Mapping[str, object]) -> dict[str, object]:
    """The values of Python's variables.

    Raises:
        RustError: there is no such variable; the nearest names are shown.
    """
    found: dict[str, object] = {}
    for name in names:
        if name not in values:
            near = difflib.get_close_matches(name, list(values), 3)
            facts: list[Fact] = [("near it", ", ".join(near))] if near else []
            cure = f"-i {near[0]}" if near else f"{name} = … in a cell before this one"
            what = f"there is no variable {name} in the notebook"
            raise RustError(f"{WHERE} -i {name}", what, facts, cure)
        found[name] = values[name]
    return found


@dataclass(frozen=True)
class Program:
    """The text of a cell's file, and which of its lines are whose."""

    text: str
    layout: Layout


def program(
    code: str, inputs: Mapping[str, str] | None = None, outputs: Sequence[str] = ()
) -> Program:
    """The file for a cell.

    inputs: expressions in Rust, by the names that the cell knows them by.

    Raises:
        RustError: the cell has its own `fn main`, and names to hand over.
    """
    inputs = inputs or {}
    lines = code.rstrip().splitlines()
    layout = Layout(1 + len(lines), tuple(outputs))
    ours = "mod burnbook; use burnbook::prelude::*;"
    if has_main(code):
        if inputs or outputs:
            option = "-i" if inputs else "-o"
            what = f"a cell with fn main has no variables for {option}"
            cure = "the inside of main alone: it is put into one"
            raise RustError(WHERE, what, cure=cure)
        text = "\n".join(["#![allow(dead_code)]", *lines, ours])
        return Program(f"{text}\n", layout)
    lets = " ".join(f"let {name} = {value};" for name, value in inputs.items())
    first = f"#![allow(dead_code)] {ours} fn main() {{ {lets}".rstrip()
    # The ; ends a last line that has none, as in Python.
    given = [f';crate::burnbook::output("{name}", &{name});' for name in outputs]
    return Program("\n".join([first, *lines, *given, "}"]) + "\n", layout)


def has_main(code: str) -> bool:
    """Whether a `fn main` stands at the top level of some Rust code.

    Example:
        >>> has_main("fn main() {}"), has_main("let main = 1; // fn main()")
        (True, False)
    """
    bare = ASIDE.sub(" ", code)
    for found in MAIN.finditer(bare):
        before = bare[: found.start()]
        if before.count("{") == before.count("}"):
            return True
    return False
