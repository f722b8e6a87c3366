"""Random items: to try a pipeline before its data is there."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from burnbook.core.converters import TypeSpec, type_spec
from burnbook.core.errors import ConfigError
from burnbook.data.dataset.base import Dataset, check_count, no_number
from burnbook.data.formats.fields import dtype_of, fields_of, is_item_class
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

    def __init__(self, size: int, item: object = str, seed: int = 0) -> None:
        self.size = check_count("FakeDataset", "size", size, at_least=0)
        self.item = item
        self._spec = type_spec(item)
        self.seed = check_seed("FakeDataset", seed)
        self.get(0)  # says at once that no such item can be made

    def get(self, index: int) -> Item | None:
        """Return random item `index`, or None where there is none."""
        try:
            index = operator.index(index)
        except TypeError as error:
            raise no_number(self, index) from error
        if not 0 <= index < self.size:
            return None
        key = np.array([self.seed % 2**64, (FAKE << 56) + index], dtype=np.uint64)
        return _made(self._spec, np.random.Philox(key=key))

    def __len__(self) -> int:
        return self.size


def _made(spec: TypeSpec, bits: np.random.Philox) -> Any:
    if spec.kind in _PLAIN:
        return _PLAIN[spec.kind](bits)
    if spec.form == "literal":
        return spec.values[_below(len(spec.values), bits)]
    if spec.form == "union":
        return _made(spec.parts[_below(len(spec.parts), bits)], bits)
    if spec.contains and spec.kind in (list, tuple, set, frozenset):
        places = spec.parts if spec.form == "tuple" else spec.places(_below(5, bits))
        return spec.kind(_made(place, bits) for place in places)
    if spec.contains and spec.kind is dict:
        key, item = spec.parts
        keys = [_made(key, bits) for _ in range(_below(5, bits))]
        return {key: _made(item, bits) for key in keys}
    if spec.kind is np.ndarray:
        each = dtype_of(spec) or np.float32
        return np.array([_made(type_spec(each), bits) for _ in range(MOST)], each)
    return _object(spec, bits)


def _object(spec: TypeSpec, bits: np.random.Philox) -> Any:
    kind = spec.kind
    if spec.of_class(enum.Enum):
        members = list(kind)
        return members[_below(len(members), bits)]
    if spec.of_class(np.integer):
        info = np.iinfo(kind)
        return kind(_below(int(info.max) - int(info.min) + 1, bits) + int(info.min))
    if spec.of_class(np.floating):
        return kind(_share(bits))
    if is_item_class(kind):
        fields = fields_of(kind).items()
        return kind(**{name: _made(field.spec, bits) for name, field in fields})
    what = f"no random {spec.text()} can be made"
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


_PLAIN: dict[type, Callable[[np.random.Philox], object]] = {
    bool: lambda bits: bool(_below(2, bits)),
    int: lambda bits: _below(100, bits),
    float: _share,
    str: _text,
    bytes: lambda bits: bits.random_raw(2).tobytes()[: 1 + _below(MOST, bits)],
    type(None): lambda bits: None,
}
