"""Sequences and optional values: lists, and None."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnbook.importers.onnx.operators.joining import concat, split
from burnbook.importers.onnx.operators.registry import OPERATORS, Operator
from burnbook.importers.onnx.operators.shapes import squeeze, unsqueeze
from burnbook.importers.onnx.values import Value, as_array, ints, is_literal, number
from burnbook.importers.onnx.versions import VERSIONS
from burnbook.tensor import Tensor


class AsItIs(Operator):
    """An operator that looks at no element: values pass as they are."""

    def _run(self, inputs: tuple[Value, ...], attributes: dict[str, Any]) -> Any:
        return self.on_arrays(*map(settled, inputs), **attributes)  # type: ignore[misc]


def settled(value: Value) -> Value:
    """A short constant as an array; everything else as it is."""
    literal = isinstance(value, list) and is_literal(value)
    return as_array(value) if literal or isinstance(value, (int, float)) else value


def _as_it_is(name: str, many: bool = False) -> Callable[[Callable[..., Any]], Any]:
    def decorate(function: Callable[..., Any]) -> Any:
        made = AsItIs(name, "", (), many)
        made.versions = VERSIONS[""][name]
        made.on_arrays = function
        made.__name__, made.__doc__ = function.__name__, function.__doc__
        OPERATORS["", name] = made
        return made

    return decorate


@_as_it_is("SequenceConstruct")
def sequence_construct(*parts: Value) -> list[Value]:
    """A sequence of values."""
    return list(parts)


@_as_it_is("SequenceEmpty")
def sequence_empty(*, dtype: int = 1) -> list[Value]:
    """A sequence without values."""
    return []


@_as_it_is("SequenceAt")
def sequence_at(parts: list[Value], place: Value) -> Value:
    """One value of a sequence."""
    return parts[number(place)]


@_as_it_is("SequenceInsert")
def sequence_insert(
    parts: list[Value], value: Value, place: Value = None
) -> list[Value]:
    """A sequence with one value more: before a place, or at the end."""
    found = list(parts)
    at = len(found) if place is None else number(place)
    found.insert(at, value)
    return found


@_as_it_is("SequenceErase")
def sequence_erase(parts: list[Value], place: Value = None) -> list[Value]:
    """A sequence without one of its values, at first the last."""
    found = list(parts)
    del found[-1 if place is None else number(place)]
    return found


@_as_it_is("SequenceLength")
def sequence_length(parts: list[Value]) -> Any:
    """How many values a sequence has."""
    return np.array(len(parts), np.int64)


@_as_it_is("ConcatFromSequence")
def concat_from_sequence(parts: list[Value], *, axis: int, new_axis: int = 0) -> Value:
    """The values of a sequence one after another along an axis, perhaps a new one."""
    if new_axis:
        parts = [unsqueeze(part, np.array([axis])) for part in parts]
    return concat(*parts, axis=axis)


@_as_it_is("SplitToSequence")
def split_to_sequence(
    x: Value, sizes: Value = None, *, axis: int = 0, keepdims: int = 1
) -> list[Value]:
    """The pieces of a value along an axis."""
    length = x.value.shape[axis] if isinstance(x, Tensor) else x.shape[axis]
    if sizes is None:
        each = [1] * length
    elif as_array(sizes).ndim:
        each = ints(sizes)
    else:
        size = int(number(sizes))
        each = [size] * (length // size) + ([length % size] if length % size else [])
    found = split(x, np.array(each), axis=axis, outputs=max(2, len(each)))
    if sizes is None and not keepdims:
        return [squeeze(part, np.array([axis])) for part in found]
    return list(found)


@_as_it_is("Optional")
def optional(x: Value = None, *, type: Value = None) -> Value:
    """A value that may not be there."""
    return x


@_as_it_is("OptionalHasElement")
def optional_has_element(x: Value = None) -> Any:
    """Whether the value is there."""
    return np.array(x is not None)


@_as_it_is("OptionalGetElement")
def optional_get_element(x: Value) -> Value:
    """The value, which must be there."""
    return x
