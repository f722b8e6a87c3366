"""From a program to one module of JavaScript.

    to_javascript(model, "net.js", x)      x: an example; its first dim is the batch

The file holds the functions that the model needs (kernels.js), its weights, and this:

    import { Model } from "./net.js";
    const model = await Model.load();
    const { linear } = model.forward({ x: new Float32Array(784) });

It runs in browsers and in Node, and needs nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from burnbook.core.files import PathLike
from burnbook.exporters.forms import refuse_extension
from burnbook.exporters.javascript.writer import reserved, text_of
from burnbook.exporters.lowering import files, lowered, problems
from burnbook.exporters.lowering.files import MODULES, Precision, Weights
from burnbook.exporters.paths import export_path
from burnbook.program.capture import Batch


@dataclass(frozen=True)
class JavaScriptFile:
    """A file that was written: where, and how large it is.

    weights: bytes of its weights, in the file as base64, or beside it. inputs, outputs:
    their names. beside: the file with the weights, where they are not in the file.
    """

    path: Path
    weights: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    beside: Path | None = None


def to_javascript(
    model: object,
    path: PathLike,
    *examples: object,
    weights: Weights = "embedded",
    precision: Precision = "f32",
    batch: Batch = 0,
    output_names: Sequence[str] = (),
) -> JavaScriptFile:
    """Write a model as one module of JavaScript, as it infers.

    model: a module, a function of tensors, or a `Program`. examples: tensors that it
    takes; of a Program none. weights: "embedded" in the file, or "beside" it in
    `<name>.<hash>.weights`, where the file finds them. precision: of the weights in the
    file: "f32", "f16" (half the size) or "int8" (a quarter); it computes with float32
    all the same. Codes of weights that were quantized symmetrically, with one scale for
    a whole tensor, stay codes; other quantized weights are written as the numbers that
    they stand for. batch: the dim of the examples that may have any size, or None.
    output_names: one for each output, all different; without them they are called as
    the keys or fields that they stand under in the result, else as the operations.

    The page gets the model by `const model = await Model.load()`, and `model.forward`
    takes flat arrays by the names of the inputs, and gives `{ data, shape }` by the
    names of the outputs. Floats may come in any array of numbers and become float32;
    bools, as anything that counts as true or false.

    Each op that goes through elements one by one rounds its result to float32, as it
    does here. Within kernels that sum (products of matrices, convolutions, norms,
    reductions), partial sums may be doubles; what they store is float32.

    Constants of fewer than 256 numbers (biases, the parameters of norms) stay float32
    at each precision, as do those with NaN, with infinity, with numbers beyond 65504 at
    "f16", or of zeros alone at "int8".

    Floats have 32 bits there: f64 and f16 are computed with float32 as well, and a cast
    that rounds to f16 is refused. Whole numbers have 32 bits as well, not 64: a literal
    or a constant beyond them is refused, and what is computed wraps around.

    Raises: ArgumentError with all operations that have no form there, and where they
    stand; GraphError where the model cannot be captured.

    Example:
        >>> import tempfile
        >>> from burnbook.backend import Numpy
        >>> from burnbook.nn import LinearConfig
        >>> from burnbook.tensor import Tensor
        >>> model = LinearConfig(3, 2).init(Numpy())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = to_javascript(model, f"{folder}/net.js", Tensor.ones([1, 3]))
        ...     made.inputs, made.outputs, made.weights
        (('input',), ('linear',), 32)
    """
    target = export_path("to_javascript", model, path, examples)
    refuse_extension("to_javascript", path, MODULES)
    files.asked("to_javascript", weights, precision)
    plan = lowered("to_javascript", model, examples, batch, reserved(), output_names)
    made = files.packed(plan.constants, precision)
    files.fits("to_javascript", made, weights)
    text = text_of(plan, made, weights, target)
    beside = files.written(target, text, made, weights)
    names = tuple(value.name for value, _ in plan.inputs)
    return JavaScriptFile(target, len(made.data), names, tuple(plan.names), beside)


def unsupported(
    model: object, *examples: object, batch: Batch = 0
) -> list[tuple[str, str, str]]:
    """What of a model has no form in JavaScript: op, where it stands, and why.

    Example:
        >>> from burnbook.tensor import Tensor, linalg
        >>> unsupported(linalg.det, Tensor.ones([2, 2]), batch=None)
        [('det', '', 'it has no kernel there')]
    """
    return problems("to_javascript", model, examples, batch)
