"""Errors of operators and methods in the names that the reader's line has.

An op knows its inputs as x and y; the line that failed has `images + bias`. Looked up
only for an error, so what works pays nothing.
"""

import re
from collections.abc import Sequence
from typing import TypeVar

from burnbook.core.call_source import texts_of
from burnbook.core.errors import BurnbookError

LONGEST_NAME = 20  # letters; a longer text is only in the cure
E = TypeVar("E", bound=Exception)


def in_readers_words(error: E, inputs: Sequence[tuple[str, object]]) -> E:
    """The error with the reader's text in place of the name of each input.

    inputs: the op's names, with the values that were given. The names stay where the
    line is not known, or has nothing that can stand for the value.
    """
    if not isinstance(error, BurnbookError):
        return error
    texts = texts_of(error.where, [value for _, value in inputs])
    words = {
        name: text
        for (name, _), text in zip(inputs, texts, strict=True)
        if text is not None and name != text
    }
    short = {name: text for name, text in words.items() if len(text) <= LONGEST_NAME}
    rest = {name for name, _ in inputs} - short.keys()
    if not words or any(text in rest for text in words.values()):
        return error  # one name would stand for two things
    error.what = _reworded(error.what, short)
    rows = [
        row if isinstance(row, str) else (_of_fact(row[0], short), row[1])
        for row in error.facts
    ]
    error.facts[:] = dict.fromkeys(rows)
    if error.cure and not error.cure.startswith("`return`"):
        pieces = _reworded(error.cure, words).split(" and ")
        error.cure = " and ".join(dict.fromkeys(pieces))  # x + x has one name
    error.args = (error.where, error.what, error.facts, error.cure)
    return error


def _of_fact(name: str, words: dict[str, str]) -> str:
    """The name of a fact: that of an input, or "x came by"."""
    first, space, more = name.partition(" ")
    return words.get(first, first) + space + more


def _reworded(text: str, words: dict[str, str]) -> str:
    """A sentence or code with the reader's words: a long name only as an object.

    Why: "weight" may also be a word of the sentence; `weight.transpose()` is code.
    """
    return re.sub(
        r"(?<![\w.\"'])([a-z]\w*(?:\[\d+\])?)(?=(\.)?)(?![\w(\"'])",
        lambda found: (
            words.get(found[1], found[1])
            if found[2] or len(found[1]) == 1
            else found[1]
        ),
        text,
    )
