"""Random items: a pipeline is tried before its data."""

from __future__ import annotations

import enum
import operator
import typing
from typing import Any, TypeVar

import numpy as np

from burnbook.core.errors import ConfigError
from burnbook.data.dataset.base import Dataset, check_count
from burnbook.data.formats.fields import fields_of, is_item_class, is_union, name_of
from burnbook.data.shuffle import FAKE, check_seed

Item = TypeVar("Item")
LETTERS = "abcdefghijklmnopqrstuvwxyz      "  # as many as 5 bits can tell
MOST = 12  # letters of a text, bytes, numbers of an array


class FakeDataset(Dataset[Item]):
    """`size` random items of a class, item i the same for a seed in every process.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class Text:
        ...     text: str
        ...     label: int
        >>> texts = FakeDataset(3, Text, seed=1)
        >>> len(texts), texts.get(0) == texts.get(0), texts.get(3)
        (3, True, None)
    """

    def __init__(self, size: int, item: Any = str, seed: int = 0) -> None:
        self.size = check_count("FakeDataset", "size", size, at_least=0)
        self.item = item
        self.seed = check_seed("FakeDataset", seed)
        self.get(0)  # says at once that no such item can be made

    def get(self, index: int) -> Item | None:
        """Return random item `index`, or None where there is none."""
        index = operator.index(index)
        if not 0 <= index < self.size:
            return None
        key = np.array([self.seed % 2**64, (FAKE << 56) + index], dtype=np.uint64)
        return _made(self.item, np.random.Philox(key=key))

    def __len__(self) -> int:
        return self.size


def _made(kind: Any, bits: np.random.Philox) -> Any:
    if kind in _PLAIN:
        return _PLAIN[kind](bits)
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if is_union(kind) or origin is typing.Literal:
        part = parts[_below(len(parts), bits)]
        return part if origin is typing.Literal else _made(part, bits)
    if origin in (list, set, frozenset) or (origin is tuple and Ellipsis in parts):
        return origin(_made(parts[0], bits) for _ in range(_below(5, bits)))
    if origin is tuple:
        return tuple(_made(part, bits) for part in parts)
    if origin is dict:
        keys = [_made(parts[0], bits) for _ in range(_below(5, bits))]
        return {key: _made(parts[1], bits) for key in keys}
    if origin is np.ndarray:
        dtypes = [part for one in parts[1:] for part in typing.get_args(one)]
        each = dtypes[0] if dtypes and isinstance(dtypes[0], type) else np.float32
        return np.array([_made(each, bits) for _ in range(MOST)], each)
    return _object(kind, bits)


def _object(kind: Any, bits: np.random.Philox) -> Any:
    if isinstance(kind, type):
        if issubclass(kind, enum.Enum):
            members = list(kind)
            return members[_below(len(members), bits)]
        if issubclass(kind, np.integer):
            info = np.iinfo(kind)
            return kind(_below(int(info.max) - int(info.min) + 1, bits) + int(info.min))
        if issubclass(kind, np.floating):
            return kind(_share(bits))
        if is_item_class(kind):
            fields = fields_of(kind).items()
            return kind(**{name: _made(field.kind, bits) for name, field in fields})
    what = f"no random {name_of(kind)} can be made"
    cure = "a dataclass of numbers, texts, bytes, lists, arrays; or int, float, str"
    raise ConfigError("FakeDataset", what, cure=cure)


def _below(end: int, bits: np.random.Philox) -> int:
    return int(bits.random_raw()) % end


def _share(bits: np.random.Philox) -> float:
    return (int(bits.random_raw()) >> 11) * 2.0**-53  # [0, 1)


def _text(bits: np.random.Philox) -> str:
    raw = int(bits.random_raw())
    letters = [LETTERS[raw >> (5 * i) & 31] for i in range(MOST)]
    return "".join(letters)[: 1 + _below(MOST, bits)]


_PLAIN: dict[Any, Any] = {
    bool: lambda bits: bool(_below(2, bits)),
    int: lambda bits: _below(100, bits),
    float: _share,
    str: _text,
    bytes: lambda bits: bits.random_raw(2).tobytes()[: 1 + _below(MOST, bits)],
    type(None): lambda bits: None,
    None: lambda bits: None,
}
