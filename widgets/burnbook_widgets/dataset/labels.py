"""The labels of a dataset: their names, counts and items.

Labels are read from the items, a few hundred at a time and only for so long, as images
in folders take minutes; who knows them already hands them over.
"""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from burnbook.core.errors import ConfigError, DataError
from burnbook.data import Dataset, as_dataset
from burnbook_widgets.dataset.items import Key, as_labels, label_reader
from burnbook_widgets.training.still import ticks

STEP = 256  # items asked for at once
RANGES = 20  # more different numbers than this may become ranges


def items_at(dataset: Dataset[Any], indices: Sequence[int]) -> list[Any]:
    """The items of some indices; where one cannot be read, the error in its place."""
    try:
        return dataset.get_many(indices)
    except Exception:  # whichever it was: the others can still be shown
        return [_one(dataset, index) for index in indices]


def _one(dataset: Dataset[Any], index: int) -> Any:
    try:
        item = dataset.get(index)
    except Exception as error:
        return error
    if item is None:
        return DataError("dataset", f"there is no item {index:,}")
    return item


def listed(labels: Any) -> list[Any]:
    """Labels that are handed over: of a list, an array, a tensor, a column."""
    if isinstance(labels, list | tuple):
        return list(labels)
    rows = as_dataset(labels)
    return rows.get_many(range(len(rows)))


class Labels:
    """Which classes there are and which items belong to each.

    names: one per class, in their order
    codes: for every item read so far, the places of its classes in `names`
    """

    def __init__(
        self, dataset: Dataset[Any], label: Any = None, classes: Any = None
    ) -> None:
        self.dataset = dataset
        self.given = list(classes) if classes is not None else _classes_of(dataset)
        self.extra: list[Key] = []  # classes that no item needs to have
        self.keys: list[tuple[Key, ...]] = []
        given = label is not None and not isinstance(label, str) and not callable(label)
        if given:
            self.keys = [as_labels(one) for one in listed(label)]
            if len(self.keys) != len(dataset):
                raise ConfigError(
                    "DatasetBrowser",
                    f"{len(self.keys):,} labels for {len(dataset):,} items",
                    cure="one label for each item, in the same order",
                )
        self._read_one = label_reader(None if given else label)
        self.sort()

    @property
    def read_count(self) -> int:
        """How many items have been read."""
        return len(self.keys)

    @property
    def complete(self) -> bool:
        """Whether the labels of all items are known."""
        return self.read_count >= len(self.dataset)

    def read(self, seconds: float | None = None) -> None:
        """Read on, until the end or until so much time has passed."""
        ends = None if seconds is None else time.monotonic() + seconds
        total = len(self.dataset)
        while self.read_count < total:
            start = self.read_count
            wanted = range(start, min(start + STEP, total))
            for item in items_at(self.dataset, wanted):
                broken = isinstance(item, Exception)
                self.keys.append(() if broken else self._read_one(item))
            if ends is not None and time.monotonic() >= ends:
                break
        self.sort()

    def sort(self) -> None:
        """Put the classes in order and give every item its codes."""
        found = {key for keys in self.keys for key in keys} | set(self.extra)
        self._edges: list[float] = []
        if not self.given and not self.extra and _is_measured(found, len(self.keys)):
            self._edges = _edges(found)
            pairs = zip(self._edges[:-1], self._edges[1:], strict=True)
            self.names = [f"{low:g} … {high:g}" for low, high in pairs]
            self._code: dict[Key, int] = {}
            places = np.searchsorted(self._edges[1:-1], sorted(found), side="right")
            self._code = dict(zip(sorted(found), places.tolist(), strict=True))
        else:
            order = self._order(found)
            self.names = [self._name(key) for key in order]
            self._code = {key: place for place, key in enumerate(order)}
        code = self._code
        self.codes = [tuple(code[key] for key in keys) for keys in self.keys]

    def _order(self, found: set[Key]) -> list[Key]:
        whole = all(isinstance(key, int) and key >= 0 for key in found)
        if self.given and whole:
            highest = max((int(key) for key in found), default=-1) + 1
            return list(range(max(len(self.given), highest)))
        if self.given:
            return [*self.given, *sorted(found - set(self.given), key=str)]
        try:
            return sorted(found)
        except TypeError:  # numbers and names
            return sorted(found, key=str)

    def _name(self, key: Key) -> str:
        whole = isinstance(key, int) and not isinstance(key, bool)
        if self.given and whole and 0 <= key < len(self.given):
            return str(self.given[key])
        return key.name if isinstance(key, enum.Enum) else str(key)

    def counts(self, items: Iterable[int] | None = None) -> list[int]:
        """How many items each class has, among those given or among all."""
        tally = [0] * len(self.names)
        chosen = range(self.read_count) if items is None else items
        for index in chosen:
            for code in self.codes[index] if index < self.read_count else ():
                tally[code] += 1
        return tally

    def code_of(self, label: Any) -> int:
        """The place of a class, by its label or its name; −1 for items without."""
        if isinstance(label, Hashable) and label in self._code:
            return self._code[label]
        if str(label) in self.names:
            return self.names.index(str(label))
        some = ", ".join(self.names[:12]) + (" …" if len(self.names) > 12 else "")
        raise ConfigError(
            "DatasetBrowser",
            f"no class {label!r}",
            [("classes", some or "none")],
            "None shows every class",
        )

    def names_of(self, index: int) -> list[str]:
        """The names of the classes of an item."""
        codes = self.codes[index] if index < self.read_count else ()
        return [self.names[code] for code in codes]

    def of_item(self, item: Any) -> list[str]:
        """The names of the classes of an item that may not have been read yet."""
        return [self._name(key) for key in self._read_one(item)]


def _classes_of(dataset: Any) -> list[Any]:
    """The names that a dataset gives its classes, perhaps below its transforms."""
    for _ in range(8):
        names = getattr(dataset, "classes", None)
        if isinstance(names, list | tuple) and names:
            return list(names)
        dataset = getattr(dataset, "dataset", None)
        if dataset is None:
            break
    return []


def _is_measured(keys: set[Key], count: int) -> bool:
    """Whether labels measure and do not name: many numbers, most of them rare."""
    numbers = all(isinstance(k, int | float) and math.isfinite(k) for k in keys)
    if not numbers or len(keys) <= RANGES:
        return False
    return 3 * len(keys) > count or any(k != int(k) for k in keys)


def _edges(keys: set[Key]) -> list[float]:
    low, high = float(min(keys)), float(max(keys))
    inner = ticks(low, high, 8)
    step = inner[1] - inner[0] if len(inner) > 1 else 1.0
    first = inner[0] - step if inner[0] > low else inner[0]
    last = inner[-1] + step if inner[-1] < high else inner[-1]
    middle = [edge for edge in inner if first < edge < last]
    return [round(first, 12), *middle, round(last, 12)]
