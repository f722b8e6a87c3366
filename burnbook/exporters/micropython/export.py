"""From a program to one Python file without dependencies.

    to_micropython(model, "net.py", x)                  floats
    to_micropython(model, "net.py", images, int8=True)  whole numbers where it counts

The file holds the functions that the model needs (kernels.py), its weights as bytes,
the memory that it works in, and `predict(x)`, which takes one example. It runs in
MicroPython and in any Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from burnbook.core.errors import ArgumentError
from burnbook.core.files import PathLike, atomic_write
from burnbook.core.source_code import python_source
from burnbook.exporters.forms import program_of, refuse_extension
from burnbook.exporters.micropython import forms as forms
from burnbook.exporters.micropython.writer import Writer
from burnbook.exporters.paths import export_path
from burnbook.program import Program, Value, mapped, resolved
from burnbook.program.capture import Batch

MIB = 1 << 20
MOST_BYTES = 16 * MIB  # the flash of large boards
FLOAT = 4  # bytes of a number


@dataclass(frozen=True)
class MicroPythonFile:
    """A file that was written: where, how large, and how much memory it works in.

    memory: bytes of its arrays. weights: bytes of its weights; those beyond 4 KiB a
    layer stay in the file and are read line by line.
    """

    path: Path
    memory: int
    weights: int
    outputs: tuple[int, ...]

    def predict(self, x: Any) -> np.ndarray:
        """What the file gives for one example, run by this Python.

        x: an array of the example's size.
        """
        scope: dict[str, Any] = {"__file__": str(self.path), "__name__": "burnbook"}
        text = self.path.read_text("utf-8")
        exec(compile(text, str(self.path), "exec"), scope)
        found = scope["predict"](np.asarray(x, np.float32).ravel().tolist())
        return np.array(list(found), np.float32).reshape(self.outputs)


def to_micropython(
    model: Any, path: PathLike, *examples: Any, int8: bool = False, batch: Batch = 0
) -> MicroPythonFile:
    """Write a model as one Python file for MicroPython, as it infers one example.

    model: a module, a function of one tensor, or a `Program`. examples: a tensor that
    it takes; with `int8` its rows also say how large the numbers between the layers
    get, so some hundred real ones are right; of a Program only then. int8: weights and
    inputs of convolutions and linear layers as whole numbers from −127 to 127, of
    quantized weights their own codes; a quarter of the size, and no floats in the inner
    loops.

    `predict(x)` in the file takes a flat list of numbers, and gives one. Weights of a
    layer beyond 4 KiB stay in the file, as lines of comments at its end, and are read
    one by one: the heap holds what the file calls memory, and little more.

    Raises: ArgumentError with all operations that have no form there; or where the
    weights are more than any board keeps.

    Example:
        >>> import tempfile
        >>> from burnbook.backend import Numpy
        >>> from burnbook.nn import LinearConfig
        >>> from burnbook.tensor import Tensor
        >>> model = LinearConfig(3, 2).init(Numpy())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = to_micropython(model, f"{folder}/net.py", Tensor.ones([1, 3]))
        ...     made.memory, made.weights, made.predict([1, 2, 3]).shape
        (8, 32, (1, 2))
    """
    target = export_path("to_micropython", model, path, examples)
    refuse_extension("to_micropython", path, (".py",))
    for_program = () if int8 and len(examples) == 1 else examples
    given = for_program if isinstance(model, Program) else examples
    program = program_of("to_micropython", model, given, batch)
    if len(program.inputs) != 1 or len(program.outputs) != 1:
        what = "it writes models with one input and one output"
        raise ArgumentError("to_micropython", what)
    _refuse_size(program, int8)
    if int8 and not examples:
        what = "int8 needs examples, which say how large the numbers get"
        raise ArgumentError(
            "to_micropython", what, cure="to_micropython(model, path, x)"
        )
    largest = _largest(program, examples[0]) if int8 else {}
    writer = Writer(program, largest if int8 else None)
    text, memory, weights = writer.text()
    _ = python_source(text.partition("# Weights")[0], "to_micropython")
    with atomic_write(target) as file:
        file.write(text.encode())
    shape = resolved(program.outputs[0].shape, 1)
    return MicroPythonFile(target, memory, weights, shape)


def _refuse_size(program: Program, int8: bool) -> None:
    """Raise for more weights than the flash of a board keeps."""
    count = sum(np.size(array) for array in program.constants.values())
    size = count * (1 if int8 else FLOAT)
    if size > MOST_BYTES:
        what = f"the weights take {size / MIB:.1f} MiB, and boards keep up to "
        what += f"{MOST_BYTES / MIB:.0f} MiB"
        facts = [("numbers", f"{count:,}")]
        cure = "a smaller model; or to_javascript or to_onnx, which write large ones"
        if not int8 and count <= MOST_BYTES:
            cure = "int8=True with examples, a quarter of the size"
        raise ArgumentError("to_micropython", what, facts, cure)


def _largest(program: Program, example: Any) -> dict[Value, float]:
    """The largest size of a finite number in each value, over the examples."""
    backend = program.backend
    rows = backend.from_numpy(np.asarray(example))
    n = program.batch_size(rows.shape)
    held: dict[Value, Any] = {**program.constants, program.inputs[0]: rows}

    def put(leaf: Any) -> Any:
        if isinstance(leaf, Value):
            return held[leaf]
        return resolved(leaf, n)

    for step in program.steps:
        values, attrs = mapped(step.inputs, put), mapped(step.attrs, put)
        out = backend.run(step.op, values, attrs)
        for value, array in zip(
            step.outputs, out if step.is_tuple else (out,), strict=True
        ):
            if value is not None and array is not None:  # kernels leave extras out
                held[value] = array
    return {
        value: float(np.abs(array).max(initial=0, where=np.isfinite(array)))
        for value, array in ((v, backend.to_numpy(a)) for v, a in held.items())
        if value.dtype.kind == "f"
    }
