"""Transforms that choose: shuffle, sample, select, split.

Each of them is a list of indices into its source. The list is drawn once, from a seed,
so `get(i)` is as fast as the source and the same in every process.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from burnbook.core.errors import ConfigError, DataError
from burnbook.data.dataset.base import Dataset, check_count, no_item, no_number
from burnbook.data.dataset.convert import as_dataset
from burnbook.data.dataset.transform.transform import PartialDataset, checked
from burnbook.data.shuffle import (
    SAMPLE,
    SHUFFLE,
    SPLIT,
    Indices,
    check_seed,
    draws,
    permutation,
)

Item = TypeVar("Item")


class SelectionDataset(Dataset[Item]):
    """The items of a list of indices, in that order; an index may occur twice.

    Example:
        >>> from burnbook.data import InMemDataset
        >>> dataset = InMemDataset("abcdef")
        >>> list(SelectionDataset.from_indices_checked(dataset, [4, 0, 4]))
        ['e', 'a', 'e']
    """

    def __init__(self, dataset: Dataset[Item] | Any, indices: Iterable[int]) -> None:
        self.dataset: Dataset[Item] = as_dataset(dataset)
        self.indices: Indices = as_indices(type(self).__name__, indices)

    @classmethod
    def from_indices_checked(
        cls, dataset: Dataset[Item] | Any, indices: Iterable[int]
    ) -> SelectionDataset[Item]:
        """Select items; every index must exist now.

        Raises:
            ConfigError: `indices` are not whole numbers.
            DataError: the dataset has no item of one of them.
        """
        chosen, dataset = as_indices(cls.__name__, indices), as_dataset(dataset)
        outside = chosen[(chosen < 0) | (chosen >= len(dataset))]
        if len(outside):
            raise no_item(dataset, int(outside[0]))
        return cls(dataset, chosen)

    @classmethod
    def from_indices_unchecked(
        cls, dataset: Dataset[Item] | Any, indices: Iterable[int]
    ) -> SelectionDataset[Item]:
        """Select items; an index that does not exist gives None when asked for."""
        return cls(dataset, indices)

    @classmethod
    def new_select_all(cls, dataset: Dataset[Item] | Any) -> SelectionDataset[Item]:
        """Select every item, in order."""
        return cls(dataset := as_dataset(dataset), np.arange(len(dataset)))

    @classmethod
    def new_shuffled(
        cls, dataset: Dataset[Item] | Any, seed: int = 0
    ) -> SelectionDataset[Item]:
        """Select every item, in an order drawn from the seed."""
        return cls.new_select_all(dataset).shuffle(seed)

    def shuffle(self, seed: int = 0) -> SelectionDataset[Item]:
        """Return the same selection in another order, drawn from the seed."""
        seed = check_seed("SelectionDataset.shuffle", seed)
        order = permutation(len(self), seed, SHUFFLE)
        return SelectionDataset(self.dataset, self.indices[order])

    def slice(self, start: int, end: int) -> SelectionDataset[Item]:
        """Return the selected items start … end − 1."""
        start = check_count("SelectionDataset.slice", "start", start, at_least=0)
        end = check_count("SelectionDataset.slice", "end", end, at_least=0)
        return SelectionDataset(self.dataset, self.indices[start:end])

    def split(self, num: int) -> list[SelectionDataset[Item]]:
        """Cut into `num` selections of ⌊n / num⌋ items; the last takes the rest."""
        parts = PartialDataset[Item].split(self, num)
        return [self.slice(part.start, part.end) for part in parts]

    def get(self, index: int) -> Item | None:
        """Return the item that was selected as number `index`."""
        try:
            index = operator.index(index)
        except TypeError as error:
            raise no_number(self, index) from error
        inside = 0 <= index < len(self.indices)
        return self.dataset.get(int(self.indices[index])) if inside else None

    def get_many(self, indices: Sequence[int]) -> list[Item]:
        """Return several of the selected items."""
        places = checked(self, indices)
        return self.dataset.get_many(self.indices[places].tolist())

    def get_stacked(self, indices: Sequence[int]) -> Any:
        """Return several items stacked, where the source has them so."""
        places = checked(self, indices)
        return self.dataset.get_stacked(self.indices[places].tolist())

    def at_epoch(self, epoch: int) -> Dataset[Item]:
        """Return the selection from the source as it is in that epoch."""
        source = self.dataset.at_epoch(epoch)
        return (
            self if source is self.dataset else SelectionDataset(source, self.indices)
        )

    def __len__(self) -> int:
        return len(self.indices)


class ShuffledDataset(Dataset[Item]):
    """Every item once, in an order that the seed fixes.

    Example:
        >>> from burnbook.data import InMemDataset
        >>> list(ShuffledDataset.with_seed(InMemDataset("abcde"), 42))
        ['d', 'b', 'a', 'e', 'c']
    """

    def __init__(self, dataset: Dataset[Item] | Any, seed: int = 0) -> None:
        self.seed = check_seed("ShuffledDataset", seed)
        self.selection = SelectionDataset[Item].new_shuffled(dataset, self.seed)

    @classmethod
    def with_seed(
        cls, dataset: Dataset[Item] | Any, seed: int
    ) -> ShuffledDataset[Item]:
        """Shuffle with this seed."""
        return cls(dataset, seed)

    def get(self, index: int) -> Item | None:
        """Return the item that the order puts at `index`."""
        return self.selection.get(index)

    def get_many(self, indices: Sequence[int]) -> list[Item]:
        """Return the items that the order puts at several indices."""
        return self.selection.get_many(indices)

    def get_stacked(self, indices: Sequence[int]) -> Any:
        """Return several items stacked, where the source has them so."""
        return self.selection.get_stacked(indices)

    def at_epoch(self, epoch: int) -> Dataset[Item]:
        """Return the same order over the source as it is in that epoch."""
        selection = self.selection.at_epoch(epoch)
        return self if selection is self.selection else selection

    def __len__(self) -> int:
        return len(self.selection)


@dataclass(frozen=True)
class SamplerDatasetOptions:
    """How a sampler draws: with or without replacement, and how many items.

    replace_samples: whether an item may be drawn again before all were drawn
        (default True).
    size: how many items are drawn, at least 0; None, the default: given by ratio.
    ratio: how many items are drawn over how many there are, at least 0 (default 1.0).
    seed: the number that decides the draw, at least 0 (default 0).

    Example:
        >>> from burnbook.data import InMemDataset
        >>> half = SamplerDatasetOptions().without_replacement().with_size_ratio(0.5)
        >>> len(SamplerDataset(InMemDataset(range(9)), half))
        4
    """

    replace_samples: bool = True
    size: int | None = None
    ratio: float = 1.0
    seed: int = 0

    def with_replacement(self) -> SamplerDatasetOptions:
        """Let every draw give any item."""
        return replace(self, replace_samples=True)

    def without_replacement(self) -> SamplerDatasetOptions:
        """Let no item come twice before all have come once."""
        return replace(self, replace_samples=False)

    def with_default_size(self) -> SamplerDatasetOptions:
        """Draw as many items as the dataset has."""
        return replace(self, size=None, ratio=1.0)

    def with_fixed_size(self, size: int) -> SamplerDatasetOptions:
        """Draw `size` items."""
        return replace(self, size=size)

    def with_size_ratio(self, ratio: float) -> SamplerDatasetOptions:
        """Draw ⌊ratio · n⌋ items of the n that the dataset has.

        Raises:
            ConfigError: `ratio` is negative or infinite.
        """
        if not 0 <= ratio < float("inf"):
            what = f"the ratio must be 0 or more, got {ratio}"
            raise ConfigError("SamplerDatasetOptions", what)
        return replace(self, size=None, ratio=ratio)

    def with_seed(self, seed: int) -> SamplerDatasetOptions:
        """Draw from this seed."""
        return replace(self, seed=seed)

    def size_of(self, dataset: Dataset[Any] | Any) -> int:
        """Return how many items are drawn from a dataset."""
        dataset = as_dataset(dataset)
        return int(self.ratio * len(dataset)) if self.size is None else self.size


class SamplerDataset(Dataset[Item]):
    """`size` items drawn from a dataset; a loader gets a new draw in every epoch.

    With replacement (the default) every draw may give every item. Without replacement,
    the items are dealt like cards: none comes twice before all have come once, and the
    deck is shuffled again when it is used up, so `size` may exceed the number of items.

    Example:
        >>> from burnbook.data import InMemDataset
        >>> cards = SamplerDataset.without_replacement(InMemDataset("abc"), 5, seed=1)
        >>> list(cards), list(cards.at_epoch(2))
        (['c', 'a', 'b', 'c', 'b'], ['a', 'c', 'b', 'b', 'a'])

        One batch that is trained on again and again, such as a whole graph:

        >>> from burnbook.data import DataLoaderBuilder
        >>> whole = {"nodes": 2465}
        >>> builder = DataLoaderBuilder(lambda items: items[0])
        >>> steps = builder.build(SamplerDataset([whole], 200))
        >>> len(steps), all(batch is whole for batch in steps)
        (200, True)
    """

    def __init__(
        self,
        dataset: Dataset[Item] | Any,
        size: int | SamplerDatasetOptions,
        *,
        replacement: bool = True,
        seed: int = 0,
        epoch: int = 1,
    ) -> None:
        dataset = as_dataset(dataset)
        if isinstance(size, SamplerDatasetOptions):
            replacement, seed = size.replace_samples, size.seed
            size = size.size_of(dataset)
        self.dataset: Dataset[Item] = dataset
        self.size = check_count("SamplerDataset", "size", size, at_least=0)
        self.seed = check_seed("SamplerDataset", seed)
        self.replacement = replacement
        self.epoch = epoch
        if self.size and not len(dataset):
            facts = [("dataset", repr(dataset)), ("draws", str(size))]
            raise DataError("SamplerDataset", "there is nothing to draw from", facts)
        self.indices = self._draw()

    @classmethod
    def with_replacement(
        cls, dataset: Dataset[Item] | Any, size: int, seed: int = 0
    ) -> SamplerDataset[Item]:
        """Draw so that any item may come at any draw."""
        return cls(dataset, size, seed=seed)

    @classmethod
    def without_replacement(
        cls, dataset: Dataset[Item] | Any, size: int, seed: int = 0
    ) -> SamplerDataset[Item]:
        """Draw so that no item comes twice before all have come once."""
        return cls(dataset, size, replacement=False, seed=seed)

    def get(self, index: int) -> Item | None:
        """Return the item that draw `index` gave, or None past the last draw."""
        try:
            index = operator.index(index)
        except TypeError as error:
            raise no_number(self, index) from error
        inside = 0 <= index < self.size
        return self.dataset.get(int(self.indices[index])) if inside else None

    def get_many(self, indices: Sequence[int]) -> list[Item]:
        """Return the items of several draws."""
        places = checked(self, indices)
        return self.dataset.get_many(self.indices[places].tolist())

    def get_stacked(self, indices: Sequence[int]) -> Any:
        """Return several items stacked, where the source has them so."""
        places = checked(self, indices)
        return self.dataset.get_stacked(self.indices[places].tolist())

    def at_epoch(self, epoch: int) -> Dataset[Item]:
        """Return the draws of that epoch."""
        return SamplerDataset(
            self.dataset.at_epoch(epoch),
            self.size,
            replacement=self.replacement,
            seed=self.seed,
            epoch=epoch,
        )

    def _draw(self) -> Indices:
        source = len(self.dataset)
        if self.replacement:
            return draws(self.size, source, self.seed, SAMPLE, self.epoch)
        packs = -(-self.size // source) if source else 0
        # Deck k of epoch e has a stream of its own: 2²⁴ decks before one repeats.
        streams = [(self.epoch << 24) + pack for pack in range(packs)]
        dealt = [permutation(source, self.seed, SAMPLE, one) for one in streams]
        return np.concatenate([*dealt, np.zeros(0, np.int64)])[: self.size]

    def __len__(self) -> int:
        return self.size


def random_split(
    dataset: Dataset[Item] | Any,
    parts: Sequence[float],
    seed: int = 0,
    *,
    key: Callable[[Item], Any] | None = None,
) -> list[SelectionDataset[Item]]:
    """Split at random into parts: counts that sum to n, or fractions that sum to 1.

    With `key` the split is stratified: the items of every key are split separately, so
    each part has the same mix of keys (`key=lambda item: item.label`).

    Example:
        >>> from burnbook.data import InMemDataset
        >>> train, test = random_split(InMemDataset(range(10)), [0.8, 0.2], seed=1)
        >>> sorted([*train, *test]), len(test)
        ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 2)

    Raises:
        ConfigError: there is no part, one is negative, or they sum to neither n nor 1.
    """
    seed, dataset = check_seed("random_split", seed), as_dataset(dataset)
    if isinstance(parts, (int, float)):
        rest = len(dataset) - parts if type(parts) is int else round(1.0 - parts, 9)
        what = f"parts are several, and {parts} is one of them"
        raise ConfigError("random_split", what, cure=f"[{parts}, {rest}]")
    if key is None:
        groups = [np.arange(len(dataset))]
    else:
        members: dict[Any, list[int]] = {}
        for i, item in enumerate(dataset):
            members.setdefault(key(item), []).append(i)
        groups = [np.array(indices) for indices in members.values()]
    chosen: list[list[Indices]] = [[] for _ in parts]
    for number, group in enumerate(groups):
        shuffled = group[permutation(len(group), seed, SPLIT, number)]
        edges = _edges(len(group), parts, stratified=key is not None)
        for part, (a, b) in zip(chosen, pairwise(edges), strict=True):
            part.append(shuffled[a:b])
    empty = np.zeros(0, np.int64)
    return [
        SelectionDataset(dataset, np.sort(np.concatenate([empty, *part])))
        for part in chosen
    ]


def as_indices(where: str, indices: Any) -> Indices:
    """Return indices as a read-only int64 array."""
    found = np.array(indices if hasattr(indices, "dtype") else list(indices))
    found = found.reshape(-1)
    if found.size and found.dtype.kind not in "iu":
        what = f"indices must be whole numbers, got {found.dtype}"
        raise ConfigError(where, what)
    found = found.astype(np.int64)
    found.flags.writeable = False
    return found


def _edges(size: int, parts: Sequence[float], stratified: bool) -> list[int]:
    """Where to cut `size` items: cumulative shares, rounded to the nearest item."""
    total = sum(parts)
    counts = all(isinstance(part, int) for part in parts)
    if not parts or any(part < 0 for part in parts):
        raise ConfigError("random_split", f"parts must be 0 or more, got {parts}")
    if counts and not stratified:
        if total != size:
            what = f"the parts sum to {total}, the dataset has {size} items"
            raise ConfigError(
                "random_split", what, cure="fractions, such as [0.8, 0.2]"
            )
    elif counts or abs(total - 1.0) > 1e-9:
        what = f"the fractions sum to {total:g}, not to 1"
        raise ConfigError("random_split", what, cure="[0.8, 0.2]")
    share, edges = 0.0, [0]
    for part in parts:
        share += part
        edges.append(int(share) if counts else int(np.floor(share * size + 0.5)))
    edges[-1] = size
    return edges
