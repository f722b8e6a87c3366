"""The exercises about weights of PyTorch and in safetensors.

They belong to chapters 7.3 and 7.4; see exercises.py for the others.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from burnbook.exporters import write_state_dict
from burnbook.importers import KeyRemapper, SafetensorsStore
from burnbook.module import Module
from burnbook.nn import Linear, LinearConfig
from burnbook.prelude import Numpy
from burnbook.record.safetensors_files import SafetensorsFile
from burnbook.tensor import TensorData
from burnbook_widgets.chapters.answers import FUNCTION, Holds, Kind, Value, compare

RULE = Kind(
    "two texts: (pattern, replacement)",
    lambda thing: (
        isinstance(thing, (tuple, list))
        and len(thing) == 2
        and all(isinstance(text, str) for text in thing)
    ),
)


class Layers(Module):
    """Two layers, of which a file may have one."""

    body: Linear
    head: Linear


def layers() -> Layers:
    """Return new ones."""
    device = Numpy()
    return Layers(LinearConfig(2, 3).init(device), LinearConfig(3, 2).init(device))


def without_module(rule: Any) -> str | None:
    """Ask for a rule that removes the first "module." only."""
    remapper = KeyRemapper((tuple(rule),))
    for key, wanted in (
        ("module.conv.weight", "conv.weight"),
        ("sub_module.weight", "sub_module.weight"),
        ("net.module.weight", "net.module.weight"),
        ("modules.0.weight", "modules.0.weight"),
        ("module.module.weight", "module.weight"),
    ):
        found = remapper.renamed(key)
        if found != wanted:
            return f"{key} becomes {found!r}, and should be {wanted!r}"
    return None


def row_by_row(function: Any) -> str | None:
    """Ask for the strides of arrays in C's order."""
    for sizes in ([2, 2, 2, 2], [3, 4], [5], [2, 3, 4]):
        right = [step // 8 for step in np.empty(sizes).strides]
        slips = [
            (right[::-1], "the last dim is the fastest: its stride is 1"),
            (np.cumprod(sizes[::-1])[::-1], "one size too many in each product"),
        ]
        if trouble := compare(right, function(sizes), slips * (len(sizes) > 1)):
            return f"for {sizes}: {trouble}"
    return None


def checkpoint_loader(load: Any) -> str | None:
    """Ask for the part under a key, and for what it lacks."""
    weight = TensorData(np.arange(6, dtype=np.float32).reshape(3, 2))
    state = {"body.weight": weight, "body.bias": TensorData([1.0, 2.0, 3.0])}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.pt"
        write_state_dict({"epoch": 3, "state": state}, path)
        model = layers()
        found = load(model, path, "state")
    if not isinstance(found, tuple) or len(found) != 2:
        return "it should return two things: the model, and the missing paths"
    made, missing = found
    if not isinstance(made, Layers):
        return "the first thing that it returns is not the model"
    if trouble := compare(weight.array.T, np.asarray(made.body.weight.val())):
        return f"body.weight: {trouble}"
    kept = np.asarray(model.head.weight.val())
    if trouble := compare(kept, np.asarray(made.head.weight.val())):
        return f"head.weight, which the file lacks: {trouble}"
    if sorted(map(str, missing)) != ["head.bias", "head.weight"]:
        return f"head.weight and head.bias are missing, and it says {list(missing)}"
    return None


def header_reader(names: Any) -> str | None:
    """Ask for sorted names, without the free texts."""
    model = layers()
    data = model.save_into(SafetensorsStore.from_bytes(None))
    right = ["body.bias", "body.weight", "head.bias", "head.weight"]
    cut = data[: 8 + int.from_bytes(data[:8], "little")]
    for given, what in ((data, "a whole file"), (cut, "a file without its elements")):
        found = names(given)
        if not isinstance(found, (list, tuple)):
            return "it should return a list of names"
        if "__metadata__" in found:
            return "__metadata__ is no tensor"
        if list(found) != right:
            return f"for {what} it gives {list(found)}, and should give {right}"
    return None


def publisher(publish: Any) -> str | None:
    """Ask for PyTorch's layout, floats of 16 bits, and a file that is replaced."""
    model = layers()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.safetensors"
        path.write_bytes(b"an older file")
        publish(model, path)
        with SafetensorsFile(path) as file:
            kinds = {entry.dtype for entry in file.entries.values()}
            shape = file.entries["body.weight"].shape
    if kinds != {"F16"}:
        return f"the element types are {', '.join(sorted(kinds))}, not F16"
    if shape != (3, 2):
        return "body.weight is laid out as in Burn; PyTorch has [3, 2]"
    return None


WEIGHTS: dict[str, Value | Holds] = {
    "7.3.1": Value(
        lambda: [128, 784],
        "PyTorch's weight has the outputs first",
        [([784, 128], "that is the shape it has here")],
    ),
    "7.3.2": Holds(RULE, without_module, "^ is the beginning of a key, \\. is a dot"),
    "7.3.3": Holds(FUNCTION, row_by_row, "each is the product of the sizes behind it"),
    "7.3.4": Holds(
        FUNCTION, checkpoint_loader, "with_top_level_key, allow_partial, load_from"
    ),
    "7.4.1": Value(
        lambda: 4024,
        "two bytes for BF16, eight for I64",
        [
            (2003, "that is the number of elements, not of bytes"),
            (4012, "I64 has 64 bits: eight bytes"),
            (8024, "BF16 has 16 bits: two bytes"),
            (4000, "the tensor of type I64 is missing"),
        ],
    ),
    "7.4.2": Holds(FUNCTION, header_reader, "the cell of By hand reads the header"),
    "7.4.3": Holds(
        FUNCTION, publisher, "an adapter for writing, one chained to it, overwrite"
    ),
}
