"""CBOR as Burn writes it: definite lengths, and every number as short as it can be."""

from __future__ import annotations

import math
import struct
from typing import Any

from burnbook.record.tree import Trouble

FLOATS = ((0xF9, ">e"), (0xFA, ">f"))  # the short forms: of 16 and of 32 bits


def encode(node: Any) -> bytes:
    """Maps with texts as keys, lists, texts, numbers, truth values and None.

    Example:
        >>> encode({"a": [1, -500, None]}).hex(" "), encode(0.5).hex(" ")
        ('a1 61 61 83 01 39 01 f3 f6', 'f9 38 00')
    """
    if isinstance(node, dict):
        pairs = (encode(key) + encode(value) for key, value in node.items())
        return _head(5, len(node)) + b"".join(pairs)
    if isinstance(node, list):
        return _head(4, len(node)) + b"".join(map(encode, node))
    if isinstance(node, str):
        try:
            text = node.encode()
        except UnicodeEncodeError:
            raise Trouble("a name is not Unicode", "whole characters") from None
        return _head(3, len(text)) + text
    if node is None or isinstance(node, bool):
        return bytes([{False: 0xF4, True: 0xF5, None: 0xF6}[node]])
    if isinstance(node, int):
        return _head(0, node) if node >= 0 else _head(1, -1 - node)
    return _float(float(node))


def _head(major: int, count: int) -> bytes:
    """The kind of an item, and its count, size or value."""
    if count < 24:
        return bytes([major << 5 | count])
    for low, form in ((24, ">B"), (25, ">H"), (26, ">I"), (27, ">Q")):
        if count < 1 << 8 * struct.calcsize(form):
            return bytes([major << 5 | low]) + struct.pack(form, count)
    raise Trouble(f"{count} is too large a number", "64 bits at most")


def _float(value: float) -> bytes:
    for head, form in FLOATS:
        try:
            short = struct.pack(form, value)
        except OverflowError:
            continue
        same = struct.unpack(form, short)[0] == value
        if same or math.isnan(value):
            return bytes([head]) + short
    return b"\xfb" + struct.pack(">d", value)
