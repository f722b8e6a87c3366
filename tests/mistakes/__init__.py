"""Mistakes that beginners make: what the library says, and whether its cure repairs.

The programs stand in tests/mistakes/*.txt, one file per subject:

    === id
    the program with the mistake
    --- KindError | a piece of the first line | try: a piece of the cure
    the program with the cure applied

A program is graded by what it says: A when the message alone leads to the repair (the
class and every piece are there, it has a cure or the first line is one, and the
repaired program runs), B when it names the problem without the cure, C when it
misleads (a cure that does not repair, or an error from inside), D when it is silent and
wrong. `--- works` marks first guesses that simply work. A `!` before the class: the
first line is the cure; `!!`: Python's own first line is, as it names what is missing.
`python -m tests.mistakes` prints the score.
"""

import io
import os
import re
import tempfile
import warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import NamedTuple

from burnbook.core import errors

HERE = Path(__file__).parent
GRADES = ("A", "B", "C", "D", "works")


class Mistake(NamedTuple):
    """A program, what it should say, and the program that is right."""

    subject: str
    code: str
    wanted: tuple[str, ...]  # "works", or a class and pieces of the text
    repaired: str


@cache
def shared():
    """What every program may use."""
    return (HERE / "shared.py").read_text("utf-8")


@cache
def mistakes():
    found = {}
    for file in sorted(HERE.glob("*.txt")):
        for part in re.split(r"^=== ", file.read_text("utf-8"), flags=re.M)[1:]:
            head, wanted, repaired = re.split(r"\n--- (.*)\n?", part, maxsplit=1)
            name, _, code = head.partition("\n")
            assert name not in found, f"{file.name}: {name} is there twice"
            pieces = tuple(piece.strip() for piece in wanted.split(" | "))
            found[name] = Mistake(file.stem, code, pieces, repaired.strip())
    return found


def run(code):
    """What a program raises, or warns of, as an exception; None if nothing."""
    names = {"__name__": "program"}
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        os.chdir(folder)
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                exec(compile(shared(), "<shared>", "exec"), names)
                exec(compile(code, "<program>", "exec"), names)
        except (Exception, Warning) as error:
            error.__traceback__ = None
            return error
        finally:
            os.chdir(home)
            names.clear()
    return None


def grade(name):
    """The grade of a mistake, and why it is no better."""
    row = mistakes()[name]
    error = run(row.code)
    if row.wanted[0] == "works":
        return ("works", "") if error is None else ("B", f"{error}")
    if error is None:
        return "D", "silent"
    text = f"{type(error).__name__}: {error}"
    ours = isinstance(error, (errors.BurnbookError, UserWarning, ImportError))
    cure = text.partition("\n  try: ")[2]
    wanted, first_line = row.wanted[0].lstrip("!"), row.wanted[0].startswith("!")
    cures = [piece[5:] for piece in row.wanted if piece.startswith("try: ")]
    pieces = [piece for piece in row.wanted[1:] if not piece.startswith("try: ")]
    if not ours and not cure:  # Python's own words
        named = first_line and type(error).__name__ == wanted
        named = named and all(piece in text for piece in pieces)
        if not (named and row.wanted[0].startswith("!!")):
            return ("B" if named else "C"), text
    if cure and not all(piece in cure for piece in cures):
        return "C", text
    said = type(error).__name__ == wanted and all(piece in text for piece in pieces)
    if not said or not (cure or first_line):
        return "B", text
    again = run(row.repaired)
    return ("A", "") if again is None else ("C", f"repaired: {again}")


def score():
    """Every mistake with its grade and the reason."""
    return {name: grade(name) for name in mistakes()}
