"""Weights that a file has once and several layers use: one parameter here, too.

What is trained stays one weight then, as where the model comes from: of layers that are
tied PyTorch's exporters write one initializer, which all of them take. Where weights
are equal by chance (copies of a layer that nothing has trained yet), the older exporter
writes an Identity for each, and they are several here; the newer one does not, so what
it merges is tied.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.importers.onnx.tensors import memory_of

MOST_NAMED = 8  # transposed pairs that a source tells of
SMALLEST = 4  # elements of a table: smaller ones are equal by chance
Leaf = tuple[str, Any]  # a parameter's path, and its values


def ties(layers: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, ...]]:
    """The paths of parameters that are one weight of the file.

    layers: the path of each, and its values by name. Lines, as biases are, count only
    beside a table that is tied: equal ones are written once, which were several.
    """
    groups: dict[tuple[Any, ...], list[str]] = {}
    tables = [(at, name, a) for at, values in layers for name, a in values.items()]
    for at, name, array in tables:
        if array.ndim > 1 and array.dtype.kind == "f":
            groups.setdefault(_memory(array), []).append(_join(at, name))
    found = [tuple(paths) for paths in groups.values() if len(paths) > 1]
    parts = dict(layers)
    for paths in list(found):
        owners = [path.rpartition(".")[0] for path in paths]
        first = parts.get(owners[0], {})
        for name, array in first.items():
            if array.ndim != 1 or name.startswith("running_"):
                continue
            same = [at for at in owners if _is_same(parts.get(at, {}).get(name), array)]
            line = tuple(_join(at, name) for at in same)
            if len(same) > 1 and line not in found:
                found.append(line)
    return found


def transposed(layers: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, str]]:
    """Pairs of tables of which one is the other's transpose, as of an embedding."""
    found: list[tuple[str, str]] = []
    waiting: dict[bytes, list[str]] = {}
    tables = list(_tables(layers))
    tastes = {_taste(array) for _, array in tables}
    for path, array in tables:
        if _taste(array.T) not in tastes:
            continue
        for other in waiting.get(_print(array.T), ()):
            found.append((other, path))
            if len(found) == MOST_NAMED:
                return found
        waiting.setdefault(_print(array), []).append(path)
    return found


def _tables(layers: list[tuple[str, dict[str, Any]]]) -> Iterator[Leaf]:
    for at, values in layers:
        for name, array in values.items():
            is_table = array.ndim == 2 and array.dtype.kind == "f"
            if is_table and array.size >= SMALLEST and array.shape[0] != array.shape[1]:
                yield _join(at, name), array


def _join(at: str, name: str) -> str:
    return f"{at}.{name}" if at and name else at or name


def _memory(array: NDArray[Any]) -> tuple[Any, ...]:
    """Where an array lies, and how."""
    return (*memory_of(array), array.dtype.str, array.shape, array.strides)


def _is_same(one: NDArray[Any] | None, other: NDArray[Any]) -> bool:
    return one is not None and _memory(one) == _memory(other)


def _taste(array: NDArray[Any]) -> tuple[Any, ...]:
    """What equal arrays have in common, found at a glance."""
    rows, columns = array.shape
    few = array[:: max(1, rows // 4), :: max(1, columns // 4)]
    return array.shape, array.dtype.str, few.tobytes()


def _print(array: NDArray[Any]) -> bytes:
    """What only equal arrays have in common.

    Why: where many tables begin alike, each is read once, and not with every other.
    """
    held = np.ascontiguousarray(array).view(np.uint8)
    named = f"{array.shape} {array.dtype.str}".encode()
    return blake2b(held.data, key=blake2b(named).digest()).digest()
