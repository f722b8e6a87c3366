"""An ONNX file without its weights, which stay where they are: in the file.

They are said to lie in a file of their own, as ONNX's external data, which is this one;
so everything that reads ONNX works as before, and reads a weight when it looks at it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from burnbook.core.errors import RecordError
from burnbook.core.files import release
from burnbook.importers.onnx.tensors import Files
from burnbook.importers.onnx.wire import CHUNK, Message, as_chunk, as_varint
from burnbook.record.tree import Trouble

MOST_DEPTH = 60  # graphs in graphs
SLIM = 4096  # bytes of a weight that stays
OWN = "\0the file itself"


class OwnFiles(Files):
    """The folder of a model, and the model's own file as a place of weights."""

    def __init__(self, data: memoryview, path: Path) -> None:
        super().__init__(path.parent if path.name else None)
        self.own = np.frombuffer(data, np.uint8)

    def read(self, name: str, offset: int, length: int | None, where: str) -> Any:
        """Bytes of a file beside the model, or of the model's own, not copied."""
        if name != OWN:
            return super().read(name, offset, length, where)
        stop = len(self.own) if length is None else offset + length
        if not 0 <= offset <= stop <= len(self.own):
            raise RecordError("onnx", f"{where} lies outside of the file")
        return self.own[offset:stop]


# Which parts of a message hold others that may hold weights: number, and of what kind.
_HOLDS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}


def slim(message: Message, kind: str, depth: int = 0) -> bytes:
    """A message without the raw bytes of larger tensors."""
    if depth > 4 * MOST_DEPTH:
        raise Trouble(f"graphs lie {MOST_DEPTH} deep in each other")
    if kind == "tensor":
        return _slim_tensor(message)
    holds, pieces, data = _HOLDS[kind], [], message.data
    for number, written, value in message.fields():
        if isinstance(value, int):
            pieces.append(as_varint(number << 3) + as_varint(value))
            continue
        start, end = value
        inner = holds.get(number) if written == CHUNK else None
        if inner and end - start > SLIM:
            content = slim(message.part(value), inner, depth + 1)
        else:
            content = bytes(data[start:end])
        if written == CHUNK:
            pieces.append(as_chunk(number, content))
        else:
            pieces.append(as_varint(number << 3 | written) + content)
    return b"".join(pieces)


def _slim_tensor(message: Message) -> bytes:
    """A tensor whose bytes are said to lie in the file; others stay as they are."""
    pieces, place, number = [], None, 0
    data = message.data
    for key, written, value in message.fields():
        if key == 2 and isinstance(value, int):
            number = value
        plain = key == 9 or (key == 4 and number == 1 and place is None)
        if not isinstance(value, int) and plain and value[1] - value[0] > SLIM:
            place = value
            release(data)
            continue
        if isinstance(value, int):
            pieces.append(as_varint(key << 3) + as_varint(value))
        elif written == CHUNK:
            pieces.append(as_chunk(key, bytes(data[slice(*value)])))
        else:
            pieces.append(as_varint(key << 3 | written) + bytes(data[slice(*value)]))
    if place is not None:
        about = {"location": OWN, "offset": place[0], "length": place[1] - place[0]}
        for word, found in about.items():
            pair = as_chunk(1, word.encode()) + as_chunk(2, str(found).encode())
            pieces.append(as_chunk(13, pair))
        pieces.append(as_varint(14 << 3) + as_varint(1))
    return b"".join(pieces)
