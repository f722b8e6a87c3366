"""A first call of every public class and function, for processes that have run nothing.

The rows stand in fresh_calls.txt: the name that a reader imports, and an expression
that uses it as a reader does, with everything at its default. `n` is 2 or 32: the size
of what it is given. Names that are used in the row of another need no row of their own
(`LinearConfig` makes `Linear`).
"""

import importlib
import re
from pathlib import Path
from typing import NamedTuple

SIZES = {"small": 2, "large": 32}


class Table(NamedTuple):
    """The rows for the names of one module, and names that are used by others."""

    module: str
    rows: dict[str, str]
    used_by: dict[str, str]


def tables() -> dict[str, Table]:
    found: dict[str, Table] = {}
    text = Path(__file__).with_suffix(".txt").read_text("utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.M).replace("\n    ", " ")
    for part in re.split(r"^\[", text, flags=re.M)[1:]:
        head, *lines = filter(None, part.split("\n"))
        name, module = head.rstrip("]").split()
        table = found[name] = Table(module, {}, {})
        given = {}
        for line in lines:
            left, _, right = line.partition(": ")
            for short, long in given.items():
                right = re.sub(rf"\b{short}\b", long, right)
            mark, *names = left.split()
            if mark == "=":
                given[names[0]] = right
            elif mark == "<":
                table.used_by.update(dict.fromkeys(right.split(), names[0]))
            else:
                rows = {each: right.replace("NAME", each) for each in (mark, *names)}
                table.rows.update(rows)
    return found


TABLES = tables()


def rows() -> list[str]:
    """`nn.Linear`, `optim.Adam`, … : every row."""
    return [f"{name}.{row}" for name, table in TABLES.items() for row in table.rows]


def missing(name: str) -> set[str]:
    """The public names that no row uses."""
    module, made, used_by = TABLES[name]
    assert not {*used_by.values()} - {*made}, "used by a row that is not there"
    words = {word for text in made.values() for word in re.findall(r"\w+", text)}
    words |= {*made, *used_by} | {word.removesuffix("Config") for word in words}
    words |= {f"{name}Config" for name in made if f"{name}Config(" in made[name]}
    return {*importlib.import_module(module).__all__} - words
