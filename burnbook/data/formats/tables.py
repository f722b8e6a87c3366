"""Rows of JSON and CSV files become items.

A dataclass says what an item is: its fields name the columns, its annotations say what
each text becomes. A row that does not fit stops the reading with its line number.
"""

from __future__ import annotations

import csv
import enum
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import numpy as np

from burnbook.core.converters import TypeSpec, type_spec
from burnbook.core.errors import ConfigError, DataError
from burnbook.core.files import PathLike, open_regular, printable, within_memory
from burnbook.data.formats.compressed import opened_text
from burnbook.data.formats.fields import (
    Converter,
    Field,
    fields_of,
    first_of,
    from_json,
    named,
    object_builder,
    of_spec,
    shown,
)

LONGEST_LINE = 1 << 24  # characters
SMALL, PACKING = 64 << 20, 100  # how far a compressed table may unpack
WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def read_json_rows(path: PathLike, item: type[Any] | None) -> list[Any]:
    """Read one JSON object per line."""
    rows: list[Any] = []
    build = None if item is None else object_builder(item)
    with _opened(path, "json rows") as file:
        for number, line in enumerate(file, 1):
            with _row(path, number):
                row = json.loads(line.rstrip("\r\n"))
                rows.append(row if build is None else build(row))
    return rows


def read_csv(
    path: PathLike,
    item: type[Any] | None,
    delimiter: str,
    quote: str | None,
    has_headers: bool,
    columns: dict[str, str],
) -> list[Any]:
    """Read one item per row of a table."""
    with _opened(path, "csv") as file:
        reader = _reader(file, delimiter, quote)
        lines = _lines(path, reader)
        header = next(lines, None) if has_headers else None
        build = _row_builder(path, item, header, columns)
        rows: list[Any] = []
        for line in lines:
            with _row(path, reader.line_num):
                rows.append(build(line))
    return rows


def _reader(file: Any, delimiter: str, quote: str | None) -> Any:
    quoting = csv.QUOTE_NONE if quote is None else csv.QUOTE_MINIMAL
    options: dict[str, Any] = {"quotechar": quote, "quoting": quoting, "strict": True}
    try:
        return csv.reader(file, delimiter=delimiter, **options)
    except (TypeError, ValueError):
        what = f"columns cannot be separated by {delimiter!r} and quoted by {quote!r}"
        cure = "one character each, such as delimiter='\\t', quote='\"'; quote=None"
        raise ConfigError("csv", what, cure=cure) from None


def _lines(path: PathLike, reader: Any) -> Iterator[list[str]]:
    while True:
        with _row(path, reader.line_num + 1):
            line = next(reader, None)
        if line is None:
            return
        if line:  # an empty line is no row
            yield line


def _row_builder(
    path: PathLike,
    item: type[Any] | None,
    header: list[str] | None,
    columns: dict[str, str],
) -> Callable[[list[str]], Any]:
    if item is None:
        if header is not None:
            _once(path, header, header)

        def as_dict(line: list[str]) -> Any:
            keys = header or [str(i) for i in range(len(line))]
            _same_length(line, len(keys))
            return dict(zip(keys, line, strict=True))

        return as_dict
    fields = fields_of(item)
    wanted = {name: columns.get(name, name) for name in fields}
    places = _places(path, item, fields, wanted, header)
    reads = {name: of_text(field.spec) for name, field in fields.items()}
    width = len(header) if header is not None else len(places)

    def as_item(line: list[str]) -> Any:
        _same_length(line, width)
        pairs = [(name, reads[name], line[place]) for name, place in places]
        return item(**{name: named(name, read, text) for name, read, text in pairs})

    return as_item


def _places(
    path: PathLike,
    item: type[Any],
    fields: dict[str, Field],
    wanted: dict[str, str],
    header: list[str] | None,
) -> list[tuple[str, int]]:
    """Say in which column each field is; one with a default may have none."""
    if header is None:
        return [(name, place) for place, name in enumerate(fields)]
    missing = [
        column
        for name, column in wanted.items()
        if column not in header and not fields[name].optional
    ]
    if missing:
        what = f"{os.fspath(path)} has no column {', '.join(missing)}"
        facts = [
            ("columns", shown_names(header)),
            (item.__name__, shown_names(wanted.values())),
        ]
        cure = "columns={'field': 'name of its column'}, or another delimiter"
        raise DataError("csv", what, facts, cure)
    _once(path, header, wanted.values())
    found = [(name, column) for name, column in wanted.items() if column in header]
    return [(name, header.index(column)) for name, column in found]


def shown_names(names: Iterable[str]) -> str:
    """Name the columns of a table, some of them if there are many."""
    listed = [shown(name)[1:-1] for name in names]
    more = ", …" if len(listed) > 12 else ""
    return ", ".join(listed[:12]) + more or "none"


def _once(path: PathLike, header: list[str], names: Iterable[str]) -> None:
    """Refuse a table in which a column that is asked for appears twice."""
    counts = Counter(header)
    twice = next((name for name in names if counts[name] > 1), None)
    if twice is not None:
        what = f"{os.fspath(path)} has the column {shown(twice)} twice"
        cure = "other names in the first line, or has_headers=False"
        raise DataError("csv", what, [("columns", shown_names(header))], cure)


def _same_length(line: list[str], width: int) -> None:
    if len(line) != width:
        raise ValueError(f"{len(line)} values where the table has {width} columns")


def text_converter(kind: object) -> Converter:
    """Turn an annotation into a function text -> value, as a table of text needs it.

    Example:
        >>> text_converter(float | None)(""), text_converter(bool)("yes")
        (None, True)
    """
    return of_text(type_spec(kind))


def of_text(spec: TypeSpec) -> Converter:
    """The same for an annotation that has been read already."""
    if spec.form == "union":
        return first_of(spec, [of_text(part) for part in spec.meant], lambda t: t == "")
    if spec.kind in (int, float) or spec.of_class(np.number):
        return _number(spec)
    if spec.kind is bool:
        return _word
    if spec.kind is bytes:
        return str.encode
    convert = of_spec(spec)
    if spec.kind is str or spec.form == "any":
        return convert
    if spec.of_class(enum.Enum):
        values = {str(member.value): member for member in spec.kind}
        return lambda text: values[text] if text in values else convert(text)
    return lambda text: convert(from_json(text))


def _number(spec: TypeSpec) -> Converter:
    """Why: Python reads 1_000 as a number, a table does not mean one."""

    def convert(text: str) -> Any:
        with suppress(ValueError, OverflowError, TypeError):
            if "_" not in text:
                return spec.kind(text)
        empty = f"; {spec.text()} | None takes an empty cell" if not text else ""
        raise ValueError(f"{shown(text)} is not {spec.text()}{empty}")

    return convert


def _word(text: str) -> bool:
    found = WORDS.get(text.strip().lower())
    if found is None:
        raise ValueError(f"{shown(text)} is not bool")
    return found


@contextmanager
def _opened(path: PathLike, where: str) -> Generator[Iterator[str], None, None]:
    """The lines of a text file, compressed or not, none longer than allowed."""
    name = printable(path)
    with ExitStack() as stack:
        file = stack.enter_context(open_regular(path, DataError, f"{where} {name}"))
        size = os.fstat(file.fileno()).st_size
        plain: Any = opened_text(file, SMALL + PACKING * size, name, where)
        text = io.TextIOWrapper(plain, encoding="utf-8-sig", newline="")
        try:
            with within_memory(f"{where} {name}"):
                yield _bounded(text, name, where)
        except UnicodeDecodeError as error:
            what = f"{name} is not UTF-8 text: byte {error.start}"
            raise DataError(where, what, cure="saving the table as UTF-8") from None


def _bounded(text: io.TextIOWrapper, name: str, where: str) -> Iterator[str]:
    number = 0
    while line := text.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            what = f"{name}, line {number} is longer than {LONGEST_LINE:,} characters"
            raise DataError(where, what)
        yield line


@contextmanager
def _row(path: PathLike, number: int) -> Generator[None, None, None]:
    try:
        yield
    except (UnicodeDecodeError, DataError):
        raise
    except (ValueError, TypeError, OverflowError, csv.Error, RecursionError) as error:
        why = str(error)
        if isinstance(error, json.JSONDecodeError):
            why = f"not JSON from column {error.colno} on: {error.msg.lower()}"
        what = f"{os.fspath(path)}, line {number} does not fit: {why}"
        raise DataError("rows", what) from None
