"""The exercises of chapters 7.1 and 7.2: files of other frameworks.

See exercises.py for the others. Importers are imported when an answer is judged: every
chapter imports its exercises, and most need no importer.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from burnbook.module import Module
from burnbook.nn import Linear, LinearConfig
from burnbook.prelude import Numpy
from burnbook.record import SafetensorsRecorder
from burnbook.tensor import TensorData
from burnbook_widgets.chapters.answers import (
    FUNCTION,
    Holds,
    Kind,
    Value,
    compare,
    described,
)

# y = OP(x) in ONNX, with an operator of four letters.
HEAD, TAIL = (
    b'\x08\x08:5\n\x0c\n\x01x\x12\x01y"\x04',
    (
        b"\x12\x01gZ\x10\n\x01x\x12\x0b\n\t\x08\x01\x12\x05\n\x03\x12\x01n"
        b"b\x10\n\x01y\x12\x0b\n\t\x08\x01\x12\x05\n\x03\x12\x01nB\x02\x10\x11"
    ),
)


class Classifier(Module):
    """A module as `load` makes one: two layers."""

    hidden: Linear
    output: Linear


def file_kinds(kind_of: Any) -> str | None:
    """Ask for the kinds of three files, and None for a picture."""
    from burnbook.exporters import write_state_dict

    numbers = {"weight": TensorData([[1.0, 2.0]])}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        safe = SafetensorsRecorder().record({"weight": numbers["weight"]}, folder / "a")
        files = {
            "pytorch": write_state_dict(numbers, folder / "a.pt").read_bytes(),
            "safetensors": safe.read_bytes(),
            "onnx": HEAD + b"Relu" + TAIL,
            None: b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
        }
    for kind, data in files.items():
        if (found := kind_of(data)) != kind:
            told = "a picture (PNG)" if kind is None else f"a file of kind {kind!r}"
            return f"of {told} it says {found!r}, and should say {kind!r}"
    return None


def transposed_weights(to_burn: Any) -> str | None:
    """Ask for the same names, weights transposed and biases as they are."""
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    given = {"a.weight": weight, "a.bias": np.ones(2, np.float32)}
    found = to_burn(dict(given))
    if not isinstance(found, dict):
        return f"it returns {described(found)}, and should return a dict"
    if list(found) != list(given):
        return f"its names are {list(found)}, and should be {list(given)}"
    if trouble := compare(
        weight.T, found["a.weight"], [(weight, "it is not transposed")]
    ):
        return f"the weight: {trouble}"
    if trouble := compare(given["a.bias"], found["a.bias"]):
        return f"the bias: {trouble}"
    return None


def numbers_read(read: Any) -> str | None:
    """Ask for whole numbers of one to five bytes, and where they end."""
    cases = [
        (b"\x05", 0, (5, 1)),
        (b"\x08\xac\x02:", 1, (300, 3)),
        (b"\x7f\x80\x01", 0, (127, 1)),
        (b"\x80\x80\x01\x00", 0, (16_384, 3)),
        (b"\xff\xff\xff\xff\x0f", 0, (4_294_967_295, 5)),
    ]
    for data, at, wanted in cases:
        found = read(data, at)
        if found != wanted:
            return f"read({data!r}, {at}) is {found!r}, and should be {wanted}"
    return None


def one_small_file(generator: Any) -> str | None:
    """Ask for half precision and weights inside the source."""
    from burnbook.importers.onnx import RecordType

    if [str(path) for path in generator.inputs] != ["net.onnx"]:
        return f"it reads {[str(path) for path in generator.inputs]}"
    if str(generator.folder) != "app":
        return f"it writes to {generator.folder}"
    if not generator.half:
        return "the weights have 32 bits"
    if not generator.embedded:
        return "the weights lie in a file beside the source"
    if generator.kind is not RecordType.Bincode:
        return f"weights in the source are bincode, not {generator.kind.name}"
    return None


def another_head(with_classes: Any) -> str | None:
    """Ask for a new last layer of the right size, and the old first one."""
    device = Numpy()
    hidden, output = (LinearConfig(*size).init(device) for size in ((6, 4), (4, 10)))
    model = Classifier(hidden, output)
    made = with_classes(model, 3, device)
    if not isinstance(made, Classifier):
        return f"it returns {described(made)}, and should return the model"
    sizes = [*made.output.weight.shape]
    if sizes != [4, 3]:
        return f"the weight of the last layer is {sizes}, and should be [4, 3]"
    if made.hidden is not model.hidden:
        return "the first layer is another one; it should stay"
    return None


def unknown_names(unknown: Any) -> str | None:
    """Ask for what is not known in two files."""
    with tempfile.TemporaryDirectory() as name:
        for op, wanted in (("Relu", []), ("Relo", ["Relo"])):
            path = Path(name) / f"{op}.onnx"
            path.write_bytes(HEAD + op.encode() + TAIL)
            found = unknown(path)
            if found != wanted:
                told = "known" if not wanted else "not known"
                return f"{op} is {told}, and it returns {found!r}, not {wanted}"
    return None


GENERATOR = Kind("a ModelGen", lambda thing: type(thing).__name__ == "ModelGen")


IMPORTING: dict[str, Value | Holds] = {
    "7.1.1": Value(
        lambda: "ModelGen",
        "which of them writes source code?",
        [
            ("load", "it gives a module to run and train, but no file to change"),
            ("PytorchStore", "it reads weights only, from .pt"),
            ("SafetensorsStore", "it reads weights only, from .safetensors"),
        ],
    ),
    "7.1.2": Holds(FUNCTION, file_kinds, "data[:2], data[8:9], data[:1]"),
    "7.1.3": Holds(
        FUNCTION, transposed_weights, "array.T, if the name ends with .weight"
    ),
    "7.2.1": Value(
        lambda: [40, 200, 1],
        "the key is 8 · 5; then seven bits a byte, with 128 added if more follow",
        [
            ([40, 200], "200 needs eight bits, so two bytes"),
            ([5, 200, 1], "the key is 8 · number + type"),
            ([40, 1, 200], "the lowest bits come first"),
            ([40, 72, 1], "add 128 to the first byte: more follows"),
        ],
    ),
    "7.2.2": Holds(
        FUNCTION, numbers_read, "the sum of (byte % 128) · 128ⁱ, until a byte < 128"
    ),
    "7.2.3": Holds(
        GENERATOR,
        one_small_file,
        "record_type, half_precision, embed_states; do not run it",
    ),
    "7.2.4": Holds(
        FUNCTION, another_head, "model.replace(output=…); sizes: model.output.weight"
    ),
    "7.2.5": Holds(FUNCTION, unknown_names, "check_onnx(path) has a list unsupported"),
}
