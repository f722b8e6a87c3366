"""What a file calls the layers and weights of the module that was made of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Protocol

from numpy.typing import NDArray

from burnbook.importers.onnx.tensors import memory_of

MADE_UP = re.compile(r"(val|const|constant|tmp)?_?\d*(_output_\d+)?", re.IGNORECASE)
PLAIN = re.compile(r"[\w.-]+")  # a name as PyTorch has it
#: Last words of what a layer of PyTorch has; another one is a parameter's own name.
OF_LAYERS = re.compile(
    r"(in_proj_)?(weight|bias)|running_(mean|var)|(weight|bias)_[ih]h_l\d+(_reverse)?"
)
LEARNED = ("weight", "layer")  # forms of what has names there
THEIRS: dict[str, str] = {"gamma": "weight", "beta": "bias", "alpha": "weight"}

Known = dict[tuple[int, int], tuple[str, NDArray[Any]]]  # names by the places of arrays


class Held(Protocol):
    """A layer or a weight: its values by the paths of parameters, below "" if alone."""

    values: dict[str, Any]
    layer: Any
    form: str


def original_names(
    scopes: Iterable[tuple[str, str, Any]], written: dict[str, Any]
) -> dict[str, str]:
    """The file's names by the paths of layers, and of weights that no layer has.

    scopes: our path, the path that the file's names of parts tell, and what is there.
    written: the constants of the file by their names. A constant that is still what the
    file has, or a view of it, tells its name: of the layer, as "fc.weight" does, or of
    the parameter itself, as "text_projection" does. That one has an entry of its own,
    if it lies here as it does there.
    """
    known: Known = {}
    for name, array in written.items():
        if array.size and array.dtype.kind == "f" and not is_made_up(name):
            known.setdefault(memory_of(array), (name, array))
    scopes = list(scopes)
    owners = {told: path for path, told, _ in scopes}
    given = {path for path, _, held in scopes if held.form not in LEARNED}
    found: dict[str, str] = {}
    waiting: list[tuple[str, str, list[str]]] = []
    for path, told, held in scopes:
        if held.form not in LEARNED:
            continue
        layers, alone = _told(held, known)
        alone = {word: name for word, name in alone.items() if name not in given}
        found |= {_join(path, word): name for word, name in alone.items()}
        given.update(alone.values())
        words = [THEIRS.get(word, word) for word in map(str, held.values)]
        rest = [word for word in words if word not in alone]
        if not rest:
            continue
        free = (n for n in layers if owners.get(n, path) == path)
        best = next((n for n in free if not given & _names(n, rest)), None)
        if best is None:
            waiting.append((path, told, rest))
            continue
        found[path] = best
        given |= _names(best, rest)
    for path, told, rest in waiting:
        best = next(n for n in _others(told, path) if not given & _names(n, rest))
        found[path] = best
        given |= _names(best, rest)
    return found


def _told(held: Held, known: Known) -> tuple[list[str], dict[str, str]]:
    """What names tell of a layer, and of those of its parameters that name themselves.

    Why: a weight that lies otherwise here, as of F.linear(x, self.w), has no such name;
    nothing could say how it is to be turned.
    """
    layers: list[str] = []
    alone: dict[str, str] = {}
    for word, array in held.values.items():
        name, theirs = known.get(memory_of(array), ("", array))
        around, _, last = name.rpartition(".")
        if held.layer is not None and OF_LAYERS.fullmatch(last):
            layers.append(around)
        elif PLAIN.fullmatch(name) and _lies_as(array, theirs):
            alone[THEIRS.get(word, word)] = name
    return layers, alone


def is_made_up(name: str) -> bool:
    """Whether an exporter has numbered a value that nobody has named.

    Example:
        >>> is_made_up("onnx::MatMul_7"), is_made_up("val_3"), is_made_up("prompts.0")
        (True, True, False)
    """
    cut = max(name.rfind("."), name.rfind("/")) + 1
    before, last = name[:cut], name[cut:]
    if name.startswith("onnx::") or not last:
        return True
    if last.isdigit():  # one of a list, or nothing but a number
        return not (before.endswith(".") and before[:-1].strip("/."))
    return last[-1].isdigit() and MADE_UP.fullmatch(last) is not None


def _others(*names: str) -> Iterable[str]:
    """Names to choose from, where the file has none."""
    yield from names
    count = 2
    while True:
        yield f"{names[-1]}_{count}"
        count += 1


def _names(around: str, words: list[str]) -> set[str]:
    return {_join(around, word) for word in words}


def _join(around: str, word: str) -> str:
    return f"{around}.{word}" if around and word else around or word


def _lies_as(array: NDArray[Any], theirs: NDArray[Any]) -> bool:
    """Whether two views of the same elements have them in the same places."""
    same = array.flags.c_contiguous == theirs.flags.c_contiguous
    return same and array.shape == theirs.shape
