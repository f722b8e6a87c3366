"""The bytes of an ONNX file, field by field, without the package onnx.

An ONNX file is one protobuf message. Here it is walked where it lies, in a mapped file:
what holds weights is skipped, so a file of gigabytes opens in the time of its names.
Nothing is believed before the bytes behind it have been counted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from burnbook.record.tree import Trouble

VARINT, DOUBLE, CHUNK, SINGLE = 0, 1, 2, 5  # how a field is written
MOST_FIELDS = 8_000_000  # of a whole file
_WIDTHS = {DOUBLE: 8, SINGLE: 4}
_MASK = (1 << 64) - 1
Span = tuple[int, int]


class Budget:
    """How many fields may still be looked at, so that no file keeps us for long."""

    def __init__(self, most: int = MOST_FIELDS) -> None:
        self.left = self.most = most

    def spend(self) -> None:
        """One more field."""
        self.left -= 1
        if self.left < 0:
            raise Trouble("the file has too many parts", f"at most {self.most:,}")


class Message:
    """A part of a file that is a protobuf message.

    Example:
        >>> message = Message(memoryview(b"\\x08\\x96\\x01\\x12\\x02hi"))
        >>> [(number, value) for number, _, value in message.fields()]
        [(1, 150), (2, (5, 7))]
        >>> message.text((5, 7))
        'hi'
    """

    __slots__ = ("budget", "data", "span")

    def __init__(
        self,
        data: memoryview,
        span: Span | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.data = data
        self.span = (0, len(data)) if span is None else span
        self.budget = Budget() if budget is None else budget

    def fields(self) -> Iterator[tuple[int, int, int | Span]]:
        """Number, kind and value of each field; of a chunk where it begins and ends."""
        data, (at, end) = self.data, self.span
        while at < end:
            self.budget.spend()
            key, at = varint(data, at, end)
            number, kind = key >> 3, key & 7
            if kind == VARINT:
                value, at = varint(data, at, end)
                yield number, kind, value
                continue
            if kind == CHUNK:
                length, at = varint(data, at, end)
            elif kind in _WIDTHS:
                length = _WIDTHS[kind]
            else:
                raise Trouble("this is no ONNX file, or damaged", found=f"byte {at}")
            if length > end - at:
                what = "the file ends inside one of its parts"
                raise Trouble(what, f"{length:,} bytes", f"{end - at:,} bytes")
            if not number:
                raise Trouble("this is no ONNX file, or damaged", found=f"byte {at}")
            yield number, kind, (at, at + length)
            at += length

    def part(self, span: int | Span) -> Message:
        """The message in a chunk."""
        if isinstance(span, int):
            raise Trouble("a number stands where a part of the model belongs")
        return Message(self.data, span, self.budget)

    def text(self, span: int | Span, most: int = 1 << 20) -> str:
        """The text in a chunk; what is no UTF-8 becomes question marks."""
        if isinstance(span, int):
            raise Trouble("a number stands where a text belongs")
        start, end = span
        if end - start > most:
            raise Trouble("a name is longer than any", f"at most {most:,} bytes")
        return bytes(self.data[start:end]).decode("utf-8", "replace")

    def numbers(self, kind: int, value: int | Span) -> Iterator[int]:
        """Whole numbers of a field that may hold several."""
        if isinstance(value, int):
            yield signed(value)
            return
        if kind != CHUNK:
            raise Trouble("a whole number is written as something else")
        at, end = value
        while at < end:
            self.budget.spend()
            number, at = varint(self.data, at, end)
            yield signed(number)

    def floats(self, value: int | Span) -> Iterator[float]:
        """Single floats of a field that may hold several."""
        if isinstance(value, int) or (value[1] - value[0]) % 4:
            raise Trouble("a float is written as something else")
        for (number,) in struct.iter_unpack("<f", self.data[slice(*value)]):
            self.budget.spend()
            yield number


def varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """A whole number of one to ten bytes, and where it ends."""
    found, shift = 0, 0
    while at < end and shift < 70:
        byte = data[at]
        found |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return found & _MASK, at
    raise Trouble("this is no ONNX file, or damaged", found=f"byte {at}")


def signed(number: int) -> int:
    """The number that 64 bits stand for."""
    return number - (1 << 64) if number >> 63 else number


def as_varint(number: int) -> bytes:
    """The bytes of a whole number from 0 up.

    Example:
        >>> as_varint(150).hex()
        '9601'
    """
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def as_chunk(number: int, content: bytes) -> bytes:
    """A field that holds bytes."""
    return as_varint(number << 3 | CHUNK) + as_varint(len(content)) + content
