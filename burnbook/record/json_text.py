"""The same layout as JSON: large, but made to be looked at.

Bytes become lists of numbers from 0 to 255, None and the marker `_b` become null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from burnbook.record.layout import Lowering, Raw
from burnbook.record.mpk import container_room
from burnbook.record.tree import Marker, Path, Single, Trouble, named, short

#: The powers of ten of numbers without an exponent: those of f32, and those of f64.
WRITTEN_OUT = (-6, 12), (-5, 15)


def encode(top: Any, lower: Lowering, indent: int = 0) -> Iterator[bytes]:
    """The text of a record, piece by piece; `indent` spaces a level, 0 for one line."""
    try:
        for text in _pieces(top, lower, indent, ()):
            yield text.encode()
    except UnicodeEncodeError:
        raise Trouble("a text is not Unicode", "whole characters") from None


def _pieces(node: object, lower: Lowering, indent: int, path: Path) -> Iterator[str]:
    node = lower(node, path)
    comma, end = ",", ""
    if indent:
        end = "\n" + " " * (indent * len(path))
        comma = "," + end + " " * indent
    if isinstance(node, Raw):
        array = np.asarray(node.content).reshape(-1)
        texts = map(_number, array if array.dtype.kind == "f" else array.tolist())
        yield _list(texts, comma, end) if array.size else "[]"
    elif isinstance(node, dict | list) and node:
        is_dict = isinstance(node, dict)
        pairs = node.items() if is_dict else enumerate(node)
        before = ("{" if is_dict else "[") + comma[1:]
        for key, value in pairs:
            yield before
            if is_dict:
                yield _scalar(key, path) + (": " if indent else ":")
            yield from _pieces(value, lower, indent, (*path, str(key)))
            before = comma
        yield end + ("}" if is_dict else "]")
    elif isinstance(node, dict | list):
        yield "{}" if isinstance(node, dict) else "[]"
    else:
        yield _scalar(node, path)


def _list(items: Any, comma: str, end: str) -> str:
    return "[" + comma[1:] + comma.join(items) + end + "]"


def _scalar(node: object, path: Path) -> str:
    if node is Marker:
        return "null"
    if isinstance(node, float) and not math.isfinite(node):
        what = f"{named(path)} is {node}, which JSON cannot hold"
        raise Trouble(what, cure="a recorder for named MessagePack")
    if isinstance(node, Single):
        return _number(np.float32(node))
    if isinstance(node, float):
        return _number(np.float64(node))
    return json.dumps(node, ensure_ascii=False)


def _number(value: object) -> str:
    """A number as Rust's serde_json has it: the fewest digits that say which it is.

    Example:
        >>> _number(np.float32(0.1)), _number(np.float32(-3.747092e-6))
        ('0.1', '-0.000003747092')
        >>> _number(np.float64(1e-6)), _number(np.float64(1e16))
        ('1e-6', '1e+16')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, np.floating):
        return repr(value)
    if not np.isfinite(value):
        return "null"
    digits, _, text = np.format_float_scientific(value, trim="-").partition("e")
    least, most = WRITTEN_OUT[value.dtype.itemsize > 4]
    if least <= int(text) <= most or not value:
        return np.format_float_positional(value, trim="0")
    return f"{digits}e{int(text):+d}"


def decode(data: bytes) -> Any:
    """Read maps, lists and scalars; anything incomplete raises Trouble."""
    if data.count(b"{") + data.count(b"[") > container_room(len(data)):
        raise Trouble("the file is nested more deeply than any record")
    try:
        return json.loads(
            data.decode(), object_pairs_hook=_without_twins, parse_constant=_no_constant
        )
    except UnicodeDecodeError:
        raise Trouble("this is not JSON", "text in UTF-8", "other bytes") from None
    except json.JSONDecodeError as cause:
        found = f"{cause.msg} at line {cause.lineno}, column {cause.colno}"
        raise Trouble("this is not JSON", found=found) from None
    except (
        ValueError,
        RecursionError,
    ):  # a number of thousands of digits; deep nesting
        raise Trouble("this is not the JSON of a record") from None


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twin = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise Trouble(f"a map has {short(repr(twin))} twice")
    return found


def _no_constant(text: str) -> Any:
    raise Trouble(f"{text} is not JSON", "numbers, texts, lists, maps, null")
