"""What a file calls the layers and weights of the module that was made of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Protocol

from numpy.typing import NDArray

MADE_UP = re.compile(r"onnx::|(.*[/.])?(val|const\w*|tmp)?_?\d*$")  # by an exporter


class Held(Protocol):
    """A layer or a weight: its values by the paths of parameters, below "" if alone."""

    values: dict[str, Any]
    layer: Any


def original_names(
    scopes: Iterable[tuple[str, str, Any]], written: dict[str, Any]
) -> dict[str, str]:
    """The file's names by the paths of layers, and of weights that no layer has.

    scopes: our path, the path that the file's names of parts tell, and what is there.
    written: the constants of the file by their names. A constant that is still what the
    file has, or a view of it, tells its name.
    """
    names: dict[tuple[int, int], str] = {}
    for name, array in written.items():
        if array.size and array.dtype.kind == "f" and not MADE_UP.match(name):
            names.setdefault(_memory(array), name)
    found: dict[str, str] = {}
    given: set[str] = set()
    scopes = list(scopes)
    owners = {told: path for path, told, _ in scopes}
    for path, told, held in scopes:
        known = [names.get(_memory(array), "") for array in held.values.values()]
        if held.layer is not None:
            known = [name.rpartition(".")[0] for name in known]
        free = [n for n in known if n and n not in given]  # not that of a tied one
        best = next((n for n in free if owners.get(n, path) == path), told)
        found[path] = best
        given.add(best)
    return found


def _memory(array: NDArray[Any]) -> tuple[int, int]:
    """Where the elements lie, in whatever order, and how many they are."""
    return array.__array_interface__["data"][0], array.nbytes
