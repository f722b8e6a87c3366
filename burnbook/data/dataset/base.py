"""A dataset is a length and a way to get the i-th item.

That is all a dataset must define: `get(i)` and `len`. Everything else (transforms,
loaders, batches) is built on these two, so a dataset never knows in which order it is
read. A dataset that can fetch many items faster than one by one may also define
`get_many`.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

from burnbook.core.argument_cures import given
from burnbook.core.errors import ArgumentError, ConfigError, DataError
from burnbook.core.other_names import answers

Item = TypeVar("Item")


@answers("Dataset")
class Dataset(Generic[Item]):
    """A collection of items with random access: item i = get(i), 0 ≤ i < len.

    Example:
        >>> class Squares(Dataset):
        ...     def get(self, index):
        ...         return index**2 if 0 <= index < len(self) else None
        ...     def __len__(self):
        ...         return 4
        >>> list(Squares()), Squares().get(9)
        ([0, 1, 4, 9], None)
    """

    def get(self, index: int) -> Item | None:
        """Return item `index`, or None where there is none."""
        raise _missing(self, "get(index)")

    def __len__(self) -> int:
        raise _missing(self, "__len__()")

    def get_many(self, indices: Sequence[int]) -> list[Item]:
        """Return the items of several indices, in their order; all of them must exist.

        Why: loaders fetch a batch at once, and an array gives 64 rows almost as fast
        as one. A subclass that defines only `get` is asked item by item.
        """
        items = [self.get(i) for i in indices]
        for i, item in zip(indices, items, strict=True):
            if item is None:
                raise no_item(self, i)
        return items  # type: ignore[return-value]  # None was refused above

    def get_stacked(self, indices: Sequence[int]) -> Any:
        """Return several items stacked, as one item of arrays; None: ask `get_many`.

        Only for datasets whose items are rows of NumPy's arrays, which give a batch at
        once: NumPy then copies every column by one call, and no item is made.
        """
        return None

    def at_epoch(self, epoch: int) -> Dataset[Item]:
        """Return this dataset as it is in that epoch: itself, unless it draws anew."""
        return self

    def __getitem__(self, index: int) -> Item:
        """Return item `index`, as `get` does, or raise an IndexError."""
        item = self.get(index)
        if item is None:
            raise IndexError(f"{type(self).__name__} has no item {index}")
        return item

    def __iter__(self) -> Iterator[Item]:
        """Walk from item 0 up to the last one.

        Raises:
            DataError: an item is missing before the end.
        """
        index = 0
        while (item := self.get(index)) is not None:
            yield item
            index += 1
        if index < len(self):
            raise no_item(self, index)

    def is_empty(self) -> bool:
        """Say whether there is no item at all."""
        return len(self) == 0

    def window(self, start: int, size: int) -> list[Item] | None:
        """Return items start … start + size − 1, or None if one of them is missing."""
        if start < 0 or start + size > len(self):
            return None
        return self.get_many(range(start, start + size))

    def windows(self, size: int) -> Iterator[list[Item]]:
        """Iterate over all windows of `size` neighbors, each one item further on."""
        check_count("windows", "window size", size, at_least=1)
        start = 0
        while (found := self.window(start, size)) is not None:
            yield found
            start += 1

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self):,} items)"

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "get" in vars(cls) and "get_many" not in vars(cls):
            # An inherited shortcut must not bypass the new get.
            cls.get_many = Dataset[Item].get_many
        changed = "get" in vars(cls) or "get_many" in vars(cls)
        if changed and "get_stacked" not in vars(cls):
            cls.get_stacked = Dataset[Item].get_stacked


def no_item(dataset: Dataset[Any], index: int) -> DataError:
    """Build the error for an index without an item."""
    size = len(dataset)
    why = "get() returned None" if 0 <= index < size else "the index is out of range"
    facts = [("dataset", repr(dataset)), ("index", f"{index}: {why}")]
    return DataError(type(dataset).__name__, f"there is no item {index}", facts)


def no_number(dataset: Dataset[Any], index: object) -> ArgumentError:
    """Build the error for an index that is no whole number."""
    where = f"{type(dataset).__name__}.get"
    what = f"index must be a whole number, not {given(index)}"
    cure = "a whole number, such as 0; get_many([0, 1]) gives several items"
    return ArgumentError(where, what, cure=cure)


def size_of(dataset: Dataset[Any]) -> int:
    """Return `len(dataset)`, or say what its `__len__` did instead."""
    try:
        return len(dataset)
    except DataError:  # it has no __len__ of its own
        raise
    except (TypeError, ValueError, OverflowError) as error:
        name = type(dataset).__name__
        what = f"len() gives no size: {error}"
        cure = f"__len__ of {name} returns a whole number of 0 or more"
        raise DataError(name, what, cure=cure) from None


def check_count(where: str, name: str, value: Any, at_least: int) -> int:
    """Return `value` as an int, or say that it is not a count."""
    least = {0: "0 or more", 1: "1 or more"}.get(at_least, f"at least {at_least}")
    try:
        if isinstance(value, bool):
            raise TypeError
        count = operator.index(value)
    except TypeError:
        what = f"{name} must be a whole number, got {value!r}"
        raise ConfigError(where, what, cure=f"{name}: {least}") from None
    if count < at_least:
        what = f"{name} must be {least}, got {count}"
        raise ConfigError(where, what)
    return count


def _missing(dataset: Dataset[Any], method: str) -> DataError:
    name = type(dataset).__name__
    cure = f"define get(index) and __len__() in {name}"
    own = next(c for c in type(dataset).__mro__ if "__getitem__" in vars(c))
    if method == "get(index)" and own is not Dataset:
        cure = f"def get(self, index) in {name}, in place of __getitem__"
    held = [vars(cls).get("len") for cls in type(dataset).__mro__]
    if method == "__len__()" and any(map(inspect.isfunction, held)):
        cure = f"def __len__(self) in {name}, in place of def len(self)"
    return DataError(name, f"the dataset does not define {method}", cure=cure)
