"""One part of a dataset that comes in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from burnbook.data.dataset.base import Dataset

Item = TypeVar("Item")


class Part(Dataset[Item]):
    """The train, test or other part of a source: passes every call on to it."""

    def __init__(self, dataset: Dataset[Item], split: str) -> None:
        self.dataset = dataset
        self.split = split

    def get(self, index: int) -> Item | None:
        """Return item `index`, or None where there is none."""
        return self.dataset.get(index)

    def get_many(self, indices: Sequence[int]) -> list[Item]:
        """Return several items."""
        return self.dataset.get_many(indices)

    def get_stacked(self, indices: Sequence[int]) -> Any:
        """Return several items stacked, where the source has them so."""
        return self.dataset.get_stacked(indices)

    def __len__(self) -> int:
        return len(self.dataset)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.split}, {len(self):,} items)"


class SplitDataset(Part[Item]):
    """A part of a source whose classes have names."""

    classes: Sequence[str] = ()  # their places are the labels

    @classmethod
    def num_classes(cls) -> int:
        """Return how many classes there are."""
        return len(cls.classes)

    @classmethod
    def class_name(cls, label: int) -> str:
        """Return what a label means."""
        return cls.classes[label]
