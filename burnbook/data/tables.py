"""Building blocks · Dataset. Rows of JSON and CSV files become items.

A dataclass says what an item is: its fields name the columns, its annotations say what
each text becomes. A row that does not fit stops the reading with its line number.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import types
import typing
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from burnbook.errors import DataError

PathLike = str | os.PathLike[str]
WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def read_json_rows(path: PathLike, item: type[Any] | None) -> list[Any]:
    """Read one JSON object per line."""
    rows: list[Any] = []
    with _opened(path, "json rows") as file:
        for number, line in enumerate(file, 1):
            with _row(path, number):
                row = json.loads(line.rstrip("\r\n"))
                rows.append(row if item is None else _from_object(item, row))
    return rows


def read_csv(
    path: PathLike,
    item: type[Any] | None,
    delimiter: str,
    quote: str,
    has_headers: bool,
    columns: dict[str, str],
) -> list[Any]:
    """Read one item per row of a table."""
    with _opened(path, "csv") as file:
        reader = csv.reader(file, delimiter=delimiter, quotechar=quote, strict=True)
        lines = _lines(path, reader)
        header = next(lines, None) if has_headers else None
        build = _row_builder(path, item, header, columns)
        rows: list[Any] = []
        for line in lines:
            with _row(path, reader.line_num):
                rows.append(build(line))
    return rows


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
        names = header

        def as_dict(line: list[str]) -> Any:
            keys = names or [str(i) for i in range(len(line))]
            _same_length(line, len(keys))
            return dict(zip(keys, line, strict=True))

        return as_dict
    converters = _field_types(item)
    wanted = [columns.get(name, name) for name in converters]
    places = _places(path, item, wanted, header)
    width = len(header) if header is not None else len(wanted)

    def as_item(line: list[str]) -> Any:
        _same_length(line, width)
        values: dict[str, Any] = {}
        for (name, kind), place in zip(converters.items(), places, strict=True):
            values[name] = _convert(name, kind, line[place])
        return item(**values)

    return as_item


def _places(
    path: PathLike, item: type[Any], wanted: list[str], header: list[str] | None
) -> list[int]:
    if header is None:
        return list(range(len(wanted)))
    missing = [name for name in wanted if name not in header]
    if missing:
        what = f"{os.fspath(path)} has no column {', '.join(missing)}"
        facts = [("columns", ", ".join(header)), (item.__name__, ", ".join(wanted))]
        cure = "columns={'field': 'name of its column'}, or another delimiter"
        raise DataError("csv", what, facts, cure)
    return [header.index(name) for name in wanted]


def _same_length(line: list[str], width: int) -> None:
    if len(line) != width:
        raise ValueError(f"{len(line)} values where the table has {width} columns")


def _field_types(item: type[Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(item)
    if dataclasses.is_dataclass(item):
        return {f.name: hints[f.name] for f in dataclasses.fields(item) if f.init}
    if hints:
        return hints
    cure = "a dataclass, or no class at all to get dicts"
    raise DataError("rows", f"{item.__name__} does not name its fields", cure=cure)


def _from_object(item: type[Any], row: Any) -> Any:
    if not isinstance(row, dict):
        raise TypeError(f"an object in braces is needed, got {type(row).__name__}")
    known = _field_types(item)  # like serde: what the item does not name is left out
    for field in dataclasses.fields(item) if dataclasses.is_dataclass(item) else ():
        optional = {field.default, field.default_factory} != {dataclasses.MISSING}
        if field.init and not optional and field.name not in row:
            raise ValueError(f"{field.name} is missing")
    return item(**{name: row[name] for name in known if name in row})


def _convert(name: str, kind: Any, text: str) -> Any:
    options = [kind]
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        options = list(typing.get_args(kind))
    if type(None) in options and text == "":
        return None
    for option in options:
        if option is type(None):
            continue
        try:
            return WORDS[text.strip().lower()] if option is bool else option(text)
        except (ValueError, KeyError):
            continue
    wanted = getattr(kind, "__name__", str(kind))
    raise ValueError(f"{name}: {text!r} is not {wanted}")


@contextmanager
def _opened(path: PathLike, where: str) -> Generator[Any, None, None]:
    try:
        file = open(path, encoding="utf-8-sig", newline="")  # noqa: SIM115 (used below)
    except OSError as error:
        what = f"{os.fspath(path)} cannot be read: {error.strerror or error}"
        raise DataError(where, what) from None
    with file:
        try:
            yield file
        except UnicodeDecodeError as error:
            what = f"{os.fspath(path)} is not UTF-8 text: byte {error.start}"
            raise DataError(where, what, cure="saving the table as UTF-8") from None


@contextmanager
def _row(path: PathLike, number: int) -> Generator[None, None, None]:
    try:
        yield
    except UnicodeDecodeError:
        raise
    except (ValueError, TypeError, csv.Error, RecursionError) as error:
        why = str(error)
        if isinstance(error, json.JSONDecodeError):
            why = f"not JSON from column {error.colno} on: {error.msg.lower()}"
        what = f"{os.fspath(path)}, line {number} does not fit: {why}"
        raise DataError("rows", what) from None
