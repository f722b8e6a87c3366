"""What you know, and what it is here: a table for each library that people come from.

    coming_from("PyTorch")                the topics, and how many rows each has
    coming_from("PyTorch", "shapes")      one topic: theirs, ours, what differs
    coming_from("PyTorch", find="sum")    the rows with this in them

The rows are those of `burnbook/core/other_names.txt`, which also feed the errors about
names that are not there. Tests run both columns and compare what they give.
"""

import functools
import re
from html import escape
from pathlib import Path

from burnbook.core.errors import ConfigError
from burnbook.core.other_names import Row, Theirs, all_rows, tables

LIBRARIES = {"PyTorch": "torch", "Keras": "keras", "NumPy": "numpy", "Burn": "burn"}
TOPICS = {
    "making": "Making tensors",
    "random": "Random numbers",
    "facts": "What a tensor is",
    "shapes": "Shapes",
    "indexing": "Picking and changing elements",
    "elementwise": "Element by element",
    "comparing": "Comparing",
    "reductions": "Sums, means, largest elements",
    "matrices": "Matrices",
    "activations": "Activations",
    "functions": "Functions of images and losses",
    "layers": "Layers",
    "losses": "Losses",
    "modules": "Models and their parameters",
    "gradients": "Gradients",
    "optimizers": "Optimizers",
    "schedules": "Learning rates",
    "data": "Data",
    "training": "Training",
    "saving": "Saving and loading",
    "devices": "Devices",
    "tools": "Tools: compiling, measuring, other programs",
    "Rust and Burn": "Rust, and Python",
}
HOWS = {
    "random": "other numbers, of the same shape",
    "differs": "",  # the remark says it
    "": "",
    "runs": "both run; not compared",
}
# Where code may be broken into lines: JupyterLab drops `overflow-wrap`.
PLACES = re.compile(
    r"(?<=[(\[_])(?![)\]])|(?=\.[a-zA-Z])|(?<=[a-z0-9])(?=[A-Z])|(?<=::)|(?<=[=&])"
)


class Pairs:
    """Some rows of a library, to be looked at."""

    def __init__(self, library: str, title: str, rows: list[tuple[Row, Theirs]]):
        self.library = library
        self.title = title
        self.rows = tuple(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        count = len(self.rows)
        return f"{self.library}, {self.title}: {count} row{'' if count == 1 else 's'}"

    def __str__(self) -> str:
        """All rows: theirs, and below it ours with what differs."""
        lines = [repr(self)]
        for row, theirs in self.rows:
            code, remark = _ours(row, theirs)
            told = "".join(f"\n    # {remark}" for remark in [remark] if remark)
            lines.append(f"  {theirs.code}\n    {code}{told}")
        return "\n".join(lines)

    @property
    def imports(self) -> list[str]:
        """The lines that import what our code names, beside the prelude."""
        homes, known = tables()["imports"], names_in_prelude()
        lines: dict[str, list[str]] = {}
        for row, _ in self.rows:
            for name in re.findall(r"(?<![\w.])[a-zA-Z_]\w*", row.advice.code):
                if name in homes and name not in known:
                    start, _, held = homes[name].code.rpartition("import ")
                    names = lines.setdefault(start, [])
                    names += [held] * (held not in names)
        return [
            f"{start}import {', '.join(sorted(lines[start]))}"
            for start in sorted(lines)
        ]

    def _repr_html_(self) -> str:
        head = '<th style="text-align:left;width:{}%">{}</th>'
        heads = [
            head.format(width, text)
            for width, text in ((37, self.library), (37, "burnbook"), (26, "remarks"))
        ]
        lines = "<br>".join(_code(line) for line in self.imports)
        above = (
            f'<p style="text-align:left"><small>{lines}</small></p>' if lines else ""
        )
        return (
            f'{above}<table style="width:100%"><thead><tr>{"".join(heads)}</tr></thead>'
            f"<tbody>{''.join(_line(*pair) for pair in self.rows)}</tbody></table>"
        )


class Topics:
    """The topics of a library, and how many rows each has."""

    def __init__(self, library: str, counts: dict[str, int]):
        self.library = library
        self.counts = counts

    def __len__(self) -> int:
        return sum(self.counts.values())

    def __repr__(self) -> str:
        lines = [f"{self.library}: {len(self)} rows"]
        lines += [f"  {name:<14} {count:>3}" for name, count in self.counts.items()]
        return "\n".join(lines)


def coming_from(
    library: str, topic: str | None = None, *, find: str | None = None
) -> Pairs | Topics:
    """What there is for people who know a library: PyTorch, Keras, NumPy or Burn.

    topic: one of the parts that the call without a topic lists. find: only rows with
    this text in their code, their remark or the names that they answer to.

    Example:
        >>> coming_from("NumPy", find="concatenate")
        NumPy, with 'concatenate': 2 rows
        >>> print(coming_from("PyTorch", find="grad_fn"))
        PyTorch, with 'grad_fn': 1 row
          loss.grad_fn
            loss.graph()
            # a picture of what was computed, with a row for each op; ...
    """
    where = "coming_from"
    known = {name.lower(): name for name in LIBRARIES}
    name = known.get(library.lower())
    if name is None:
        what = f"there is no table for {library!r}"
        raise ConfigError(where, what, cure=", ".join(LIBRARIES))
    pairs = [
        (row, theirs)
        for row in all_rows()
        for theirs in row.theirs
        if theirs.library == LIBRARIES[name]
    ]
    counts = {key: sum(row.topic == key for row, _ in pairs) for key in TOPICS}
    counts = {key: count for key, count in counts.items() if count}
    if find is not None:
        found = [pair for pair in pairs if find.lower() in _text(*pair)]
        return Pairs(name, f"with {find!r}", found)
    if topic is None:
        return Topics(name, counts)
    if topic not in counts:
        what = f"there is no topic {topic!r} for {name}"
        raise ConfigError(where, what, cure=", ".join(counts))
    return Pairs(
        name, TOPICS[topic], [pair for pair in pairs if pair[0].topic == topic]
    )


@functools.cache
def names_in_prelude() -> frozenset[str]:
    """What `from burnbook.prelude import *` gives; read, as its floor is higher."""
    text = (Path(__file__).parents[1] / "prelude.py").read_text("utf-8")
    listed = text.partition("__all__ = [")[2].partition("]")[0]
    return frozenset(re.findall(r'"(\w+)"', listed))


def _text(row: Row, theirs: Theirs) -> str:
    words = (theirs.code, *row.names, row.advice.code, row.advice.remark)
    return " ".join(words).lower()


def _ours(row: Row, theirs: Theirs) -> tuple[str, str]:
    """The code here, and what is to be said about it."""
    code, remark = row.advice.code, row.advice.remark
    remarks = "; ".join(filter(None, (remark, HOWS[theirs.how])))
    return (code if code != "-" else "not needed"), remarks


def _line(row: Row, theirs: Theirs) -> str:
    left = 'style="text-align:left"'  # JupyterLab turns tables to the right
    code, remarks = _ours(row, theirs)
    ours = _code(code) if row.advice.code != "-" else code
    cells = [_code(theirs.code), ours]
    cells += [f"<small>{escape(remarks)}</small>"] * bool(remarks)
    columns = "".join(f"<td {left}>{cell}</td>" for cell in cells)
    columns += "<td></td>" * (not remarks)
    return f'<tr style="vertical-align:top">{columns}</tr>'


def _code(text: str) -> str:
    """Code in its own letters; what a call has behind a `;` is a line of its own."""
    lines = [PLACES.sub("\0", line) for line in text.split("; ")]
    shown = "<br>".join(escape(line).replace("\0", "<wbr>") for line in lines)
    return f"<tt>{shown}</tt>"
