"""Transforms: datasets made of datasets, nothing copied.

A transform holds its source and answers `get(i)` by asking the source for another index
or by changing the item it gets. What is random is drawn from a seed alone, so a
transform gives the same items in every process and every run.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any, Generic, TypeVar

from burnbook.core.errors import ConfigError
from burnbook.data.dataset.base import Dataset, check_count, no_item, no_number
from burnbook.data.dataset.convert import as_dataset, refuse_columns

Item = TypeVar("Item")
Out = TypeVar("Out")


class Mapper(Generic[Item, Out]):
    """A change of one item: out = map(item); `map_many` changes many at once."""

    def map(self, item: Item) -> Out:
        """Return the changed item."""
        name = type(self).__name__
        what = "the mapper does not define map(item)"
        raise ConfigError(name, what, cure=f"define map(item) in {name}")

    def map_many(self, items: list[Item]) -> list[Out]:
        """Return the changed items, in their order."""
        return [self.map(item) for item in items]

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "map" in vars(cls) and "map_many" not in vars(cls):
            # An inherited shortcut must not bypass the new map.
            cls.map_many = Mapper[Item, Out].map_many


class MapperDataset(Dataset[Out]):
    """Change every item when it is asked for: item i = mapper(source item i).

    Example:
        >>> from burnbook.data import InMemDataset
        >>> dataset = MapperDataset(InMemDataset([1, 2, 3]), lambda x: x * 10)
        >>> list(dataset)
        [10, 20, 30]
    """

    def __init__(
        self,
        dataset: Dataset[Item] | Any,
        mapper: Mapper[Item, Out] | Callable[[Item], Out],
    ) -> None:
        self.dataset: Dataset[Any] = as_dataset(dataset)
        self.mapper: Any = mapper

    def get(self, index: int) -> Out | None:
        """Return the changed item, or None where the source has none."""
        item = self.dataset.get(index)
        if item is None:
            return None
        return getattr(self.mapper, "map", self.mapper)(item)

    def get_many(self, indices: Sequence[int]) -> list[Out]:
        """Return the changed items of several indices."""
        items = self.dataset.get_many(indices)
        if map_many := getattr(self.mapper, "map_many", None):
            return map_many(items)
        change = getattr(self.mapper, "map", self.mapper)
        return [change(item) for item in items]

    def at_epoch(self, epoch: int) -> Dataset[Out]:
        """Return this view of the source as it is in that epoch."""
        source = self.dataset.at_epoch(epoch)
        return self if source is self.dataset else MapperDataset(source, self.mapper)

    def __len__(self) -> int:
        return len(self.dataset)


class PartialDataset(Dataset[Item]):
    """A view of the items start … end − 1.

    Example:
        >>> from burnbook.data import InMemDataset
        >>> dataset = InMemDataset("abcdefg")
        >>> [list(part) for part in PartialDataset.split(dataset, 3)]
        [['a', 'b'], ['c', 'd'], ['e', 'f', 'g']]
    """

    def __init__(self, dataset: Dataset[Item] | Any, start: int, end: int) -> None:
        self.dataset: Dataset[Item] = as_dataset(dataset)
        self.start = check_count("PartialDataset", "start", start, at_least=0)
        self.end = check_count("PartialDataset", "end", end, at_least=0)

    @classmethod
    def split(
        cls, dataset: Dataset[Item] | Any, num: int
    ) -> list[PartialDataset[Item]]:
        """Cut into `num` views of ⌊n / num⌋ items; the last one takes the rest."""
        num = check_count("PartialDataset.split", "num", num, at_least=1)
        dataset = as_dataset(dataset)
        step = len(dataset) // num
        edges = [*(i * step for i in range(num)), len(dataset)]
        return [cls(dataset, a, b) for a, b in pairwise(edges)]

    @classmethod
    def split_chunks(
        cls, dataset: Dataset[Item] | Any, num: int, batch_size: int
    ) -> list[PartialDataset[Item]]:
        """Cut into at most `num` views of whole batches; earlier views get the extra.

        Why: only the very last batch may be partial, however many views there are.
        """
        num = check_count("PartialDataset.split_chunks", "num", num, at_least=1)
        size = check_count("PartialDataset.split_chunks", "batch_size", batch_size, 1)
        dataset = as_dataset(dataset)
        each, extra = divmod(-(-len(dataset) // size), num)
        counts = [each + (i < extra) for i in range(num)]
        edges = [min(size * end, len(dataset)) for end in accumulate([0, *counts])]
        pairs = pairwise(edges)
        return [cls(dataset, a, b) for a, b in pairs if a < b]

    def get(self, index: int) -> Item | None:
        """Return item start + index, or None past the end."""
        try:
            index = operator.index(index)
        except TypeError as error:
            raise no_number(self, index) from error
        inside = 0 <= index < self.end - self.start
        return self.dataset.get(self.start + index) if inside else None

    def get_many(self, indices: Sequence[int]) -> list[Item]:
        """Return the items of several indices of the view."""
        return self.dataset.get_many(checked(self, indices, offset=self.start))

    def get_stacked(self, indices: Sequence[int]) -> Any:
        """Return several items stacked, where the source has them so."""
        return self.dataset.get_stacked(checked(self, indices, offset=self.start))

    def at_epoch(self, epoch: int) -> Dataset[Item]:
        """Return this view of the source as it is in that epoch."""
        source = self.dataset.at_epoch(epoch)
        if source is self.dataset:
            return self
        return PartialDataset(source, self.start, self.end)

    def __len__(self) -> int:
        return max(min(self.end, len(self.dataset)) - self.start, 0)


class ComposedDataset(Dataset[Item]):
    """Several datasets, one after the other.

    Example:
        >>> from burnbook.data import InMemDataset
        >>> list(ComposedDataset([InMemDataset("ab"), InMemDataset("c")]))
        ['a', 'b', 'c']
    """

    def __init__(self, datasets: Iterable[Dataset[Item] | Any]) -> None:
        parts = list(datasets)
        refuse_columns(parts, tables_are_items=True)
        self.datasets: list[Dataset[Item]] = list(map(as_dataset, parts))

    def get(self, index: int) -> Item | None:
        """Return the item from the dataset in which the index falls."""
        try:
            index = operator.index(index)
        except TypeError as error:
            raise no_number(self, index) from error
        if not 0 <= index < len(self):
            return None
        which, inner = self._place(index, list(accumulate(map(len, self.datasets))))
        return self.datasets[which].get(inner)

    def get_many(self, indices: Sequence[int]) -> list[Item]:
        """Return the items of several indices, asking each dataset once."""
        ends = list(accumulate(map(len, self.datasets)))
        places = [self._place(i, ends) for i in checked(self, indices)]
        found: dict[tuple[int, int], Item] = {}
        for which, dataset in enumerate(self.datasets):
            inner = [place[1] for place in places if place[0] == which]
            if inner:
                pairs = zip(inner, dataset.get_many(inner), strict=True)
                found.update({(which, i): item for i, item in pairs})
        return [found[place] for place in places]

    def at_epoch(self, epoch: int) -> Dataset[Item]:
        """Return the chain of the sources as they are in that epoch."""
        sources = [dataset.at_epoch(epoch) for dataset in self.datasets]
        pairs = zip(sources, self.datasets, strict=True)
        return self if all(a is b for a, b in pairs) else ComposedDataset(sources)

    def _place(self, index: int, ends: list[int]) -> tuple[int, int]:
        which = bisect_right(ends, index)
        return which, index - (ends[which - 1] if which else 0)

    def __len__(self) -> int:
        return sum(map(len, self.datasets))


class WindowsDataset(Dataset[list[Item]]):
    """Overlapping windows: item i = [source i, …, source i + size − 1].

    Example:
        >>> from burnbook.data import InMemDataset
        >>> list(WindowsDataset(InMemDataset("abcd"), 3))
        [['a', 'b', 'c'], ['b', 'c', 'd']]
    """

    def __init__(self, dataset: Dataset[Item] | Any, size: int) -> None:
        self.dataset: Dataset[Item] = as_dataset(dataset)
        self.size = check_count("WindowsDataset", "window size", size, at_least=1)

    def get(self, index: int) -> list[Item] | None:
        """Return the window that begins at `index`, or None if it is not whole."""
        try:
            index = operator.index(index)
        except TypeError as error:
            raise no_number(self, index) from error
        return self.dataset.window(index, self.size)

    def at_epoch(self, epoch: int) -> Dataset[list[Item]]:
        """Return the windows over the source as it is in that epoch."""
        source = self.dataset.at_epoch(epoch)
        return self if source is self.dataset else WindowsDataset(source, self.size)

    def __len__(self) -> int:
        return max(len(self.dataset) - self.size + 1, 0)


def checked(
    dataset: Dataset[Any], indices: Sequence[int], offset: int = 0
) -> list[int]:
    """Return the indices moved by `offset`, or say which of them is out of range."""
    size = len(dataset)
    for i in indices:
        if not 0 <= i < size:
            raise no_item(dataset, i)
    return [i + offset for i in indices]
