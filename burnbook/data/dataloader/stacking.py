"""The batcher of a loader that was given none: items are stacked, part by part."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from burnbook.backend import Backend
from burnbook.core.errors import DataError, ShapeError
from burnbook.data.dataloader.batcher import Batcher
from burnbook.data.formats.arrays import is_array, library_of, to_numpy
from burnbook.tensor import Tensor, TensorData

NUMBERS = (bool, int, float, complex, np.number, np.bool_)


class DefaultBatcher(Batcher[Any, Any]):
    """Stack the items of a batch: n items of one form become one item of tensors.

    Numbers and arrays become a tensor with n as its first dim: Bool for truth values,
    Int for whole numbers, Float for others. Tuples, dicts and dataclasses stay what
    they are, with each part stacked; a list of numbers is an array. Texts, dates and
    whatever else is no number stay a list. A dataclass is not constructed anew: its
    `__post_init__` does not see the tensors.

    Shapes: n numbers -> [n]; n arrays [...] -> [n, ...]
    Example:
        >>> batch = DefaultBatcher().batch([([1.0, 2.0], 7), ([3.0, 4.0], 8)])
        >>> [(part.kind, part.shape) for part in batch]
        [(Float, (2, 2)), (Int, (2,))]
        >>> DefaultBatcher().batch([{"text": "good"}, {"text": "bad"}])
        {'text': ['good', 'bad']}

    Raises:
        ShapeError: arrays differ in shape.
        DataError: items differ in form, or a number is missing.
    """

    def batch(self, items: list[Any], device: Backend | None = None) -> Any:
        """Return one item whose numbers are tensors on the device."""
        return _stacked(items, device, "")

    def of_stacked(self, arrays: Any, device: Backend | None = None) -> Any:
        """Return the same for items that a dataset gives as arrays already.

        arrays: an array, or a tuple or dict of arrays: `Dataset.get_stacked`
        """
        if isinstance(arrays, Mapping):
            return {name: _tensor(part, device) for name, part in arrays.items()}
        if isinstance(arrays, tuple):
            made = [_tensor(part, device) for part in arrays]
            return getattr(arrays, "_make", tuple)(made)
        return _tensor(arrays, device)

    def __repr__(self) -> str:
        return "DefaultBatcher()"


def _stacked(items: Sequence[Any], device: Backend | None, path: str) -> Any:
    first = items[0]
    if isinstance(first, Mapping):
        return _dicts(items, device, path)
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        return _objects(items, device, path)
    if isinstance(first, tuple):
        parts = _places(items, device, path)
        return getattr(first, "_make", tuple)(parts)
    if isinstance(first, Tensor):
        _same_kind(items, path, lambda one: type(one) is type(first))
        moved = [one if device is None else one.to_device(device) for one in items]
        return Tensor.stack(moved)
    if isinstance(first, list) and not all(map(_is_numeric, items)):
        return _lists(items, device, path)
    return _numbers([_plain(item) for item in items], device, path)


def _plain(item: Any) -> Any:
    """Arrays of other libraries and pictures of Pillow as arrays of NumPy."""
    if isinstance(item, np.ndarray):
        return item.tolist() if item.dtype.kind == "O" else item
    return to_numpy(item) if is_array(item) or library_of(item) == "PIL" else item


def _numbers(items: list[Any], device: Backend | None, path: str) -> Any:
    """A tensor of numbers or arrays; a list of anything else."""
    known = [isinstance(one, (*NUMBERS, np.ndarray, list)) for one in items]
    if not any(known):
        return items
    if not all(known):
        place = known.index(False)
        raise _differs(items, place, path)
    if not all(map(_is_numeric, items)):
        return items
    arrays = [np.asarray(one) for one in items]
    shapes = {one.shape for one in arrays}
    if len(shapes) > 1:
        place = [one.shape == arrays[0].shape for one in arrays].index(False)
        what = "arrays of different shape cannot be stacked"
        facts = [
            (_item(0, path), str(list(arrays[0].shape))),
            (_item(place, path), str(list(arrays[place].shape))),
        ]
        cure = "resize, crop or pad them, in a MapperDataset or a Batcher of your own"
        raise ShapeError("DefaultBatcher", what, facts, cure)
    numbers = not arrays[0].shape
    stacked = np.array(items) if numbers else np.stack(arrays)
    if stacked.dtype.kind not in "biuf":
        what = f"{_named(path)}holds {stacked.dtype}, which is no number of a tensor"
        raise DataError("DefaultBatcher", what, cure="int64 or float64 before")
    return _tensor(stacked, device)


def _tensor(array: np.ndarray, device: Backend | None) -> Tensor:
    return Tensor.from_data(TensorData.of(array), device)


def _is_numeric(value: Any) -> bool:
    """Whether it is a number, an array of numbers, or nested lists of numbers."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufc"
    if isinstance(value, list):
        return _list_shape(value) is not None
    return isinstance(value, NUMBERS)


def _list_shape(value: list[Any]) -> tuple[int, ...] | None:
    """The shape of nested lists of numbers; None where they are not regular."""
    if all(isinstance(one, NUMBERS) for one in value):
        return (len(value),)
    if not all(isinstance(one, list) for one in value):
        return None
    shapes = {_list_shape(one) for one in value}
    inner = shapes.pop()
    return None if shapes or inner is None else (len(value), *inner)


def _dicts(items: Sequence[Any], device: Backend | None, path: str) -> Any:
    first = items[0]
    _same_kind(items, path, lambda one: isinstance(one, Mapping))
    for place, one in enumerate(items):
        if one.keys() != first.keys():
            raise _differs(items, place, path)
    return {
        key: _stacked([one[key] for one in items], device, _below(path, str(key)))
        for key in first
    }


def _objects(items: Sequence[Any], device: Backend | None, path: str) -> Any:
    kind = type(items[0])
    _same_kind(items, path, lambda one: type(one) is kind)
    made = object.__new__(kind)
    for field in dataclasses.fields(kind):
        values = [getattr(one, field.name) for one in items]
        stacked = _stacked(values, device, _below(path, field.name))
        object.__setattr__(made, field.name, stacked)
    return made


def _places(items: Sequence[Any], device: Backend | None, path: str) -> list[Any]:
    first = items[0]
    _same_kind(items, path, lambda one: type(one) is type(first))
    for place, one in enumerate(items):
        if len(one) != len(first):
            raise _differs(items, place, path)
    columns = zip(*items, strict=True)
    return [
        _stacked(column, device, f"{path}[{place}]")
        for place, column in enumerate(columns)
    ]


def _lists(items: Sequence[Any], device: Backend | None, path: str) -> Any:
    """Lists that hold more than numbers: of arrays and texts, place by place."""
    _same_kind(items, path, lambda one: isinstance(one, list))
    lengths = {len(one) for one in items}
    parts = [part for one in items for part in one]
    if any(is_array(part) or isinstance(part, Tensor | list) for part in parts):
        if len(lengths) > 1:
            place = [len(one) == len(items[0]) for one in items].index(False)
            raise _differs(items, place, path)
        return _places(items, device, path)
    if any(part is None or isinstance(part, NUMBERS) for part in parts):
        gaps = [None in one for one in items]
        if any(gaps):
            raise _missing(gaps.index(True), path)
    return list(items)


def _same_kind(items: Sequence[Any], path: str, fits: Any) -> None:
    for place, one in enumerate(items):
        if not fits(one):
            raise _differs(items, place, path)


def _form(item: Any) -> str:
    """What an item is, with its keys or its length."""
    name = type(item).__name__
    if isinstance(item, Mapping):
        return f"{name} of {', '.join(map(str, item))}"
    return f"{name} of {len(item)}" if isinstance(item, tuple | list) else name


def _differs(items: Sequence[Any], place: int, path: str) -> DataError:
    other = items[place]
    if other is None or items[0] is None:
        return _missing(place if other is None else 0, path)
    what = f"{_named(path)}items of different form cannot be stacked"
    facts = [(_item(0, path), _form(items[0])), (_item(place, path), _form(other))]
    cure = "items of one form, or a Batcher of your own"
    error = DataError("DefaultBatcher", what, facts, cure)
    vars(error)["place"] = place  # for the loader, which knows the items' numbers
    return error


def _missing(place: int, path: str) -> DataError:
    what = f"{_named(path)}a number is missing (None) in item {place} of the batch"
    cure = "rows without gaps: frame.dropna(), frame.drop_nulls(), or a MapperDataset"
    error = DataError("DefaultBatcher", what, cure=cure)
    vars(error)["place"] = place
    return error


def _item(place: int, path: str) -> str:
    return f"item {place}" + (f" {path}" if path else "")


def _named(path: str) -> str:
    return f"{path}: " if path else ""


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
