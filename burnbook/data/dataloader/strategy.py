"""A batch strategy decides when a batch is full.

Items are added one by one; `batch(force)` gives the items of a batch when it is full,
or, at the end of the dataset (force), what is left. The usual strategy counts.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from burnbook.core.errors import ConfigError
from burnbook.data.dataset.base import check_count

Item = TypeVar("Item")


class BatchStrategy(Generic[Item]):
    """Collect items and give them back as batches."""

    def add(self, item: Item) -> None:
        """Take one more item."""
        raise self._missing("add(item)")

    def batch(self, force: bool) -> list[Item] | None:
        """Give a batch if it is full (or if forced, and there is any item), or None."""
        raise self._missing("batch(force)")

    def clone_dyn(self) -> BatchStrategy[Item]:
        """Return a new, empty strategy of the same settings."""
        raise self._missing("clone_dyn()")

    def batch_size(self) -> int | None:
        """Return the number of items in a full batch, or None if it varies."""
        return None

    def _missing(self, method: str) -> ConfigError:
        name = type(self).__name__
        what = f"the batch strategy does not define {method}"
        return ConfigError(name, what, cure=f"define {method} in {name}")


class FixBatchStrategy(BatchStrategy[Item]):
    """Batches of a fixed size; the last one holds what is left.

    Example:
        >>> strategy = FixBatchStrategy(2)
        >>> for item in "abc":
        ...     strategy.add(item)
        ...     strategy.batch(force=False)
        ['a', 'b']
        >>> strategy.batch(force=True)
        ['c']
    """

    def __init__(self, batch_size: int) -> None:
        self._size = check_count("FixBatchStrategy", "batch_size", batch_size, 1)
        self._items: list[Item] = []

    def add(self, item: Item) -> None:
        """Take one more item."""
        self._items.append(item)

    def batch(self, force: bool) -> list[Item] | None:
        """Give the items once there are enough of them, or if forced, what there is."""
        if not self._items or (len(self._items) < self._size and not force):
            return None
        items, self._items = self._items, []
        return items

    def clone_dyn(self) -> BatchStrategy[Any]:
        """Return an empty strategy of the same size."""
        return FixBatchStrategy(self._size)

    def batch_size(self) -> int:
        """Return the number of items in a full batch."""
        return self._size
