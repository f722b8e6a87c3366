"""From a program to compute kernels in WGSL, and a driver that runs them on WebGPU.

    made = to_wgsl(model, "model.js", x)      x: an example; its first dim is the batch
    made.kernels["conv2d"]                    the text of a kernel
    made.run(x)                               here, where the package wgpu is

The file is one module of JavaScript with the kernels, the weights, and a class:

    import { Model } from "./model.js";
    const model = await Model.load();
    const { linear } = await model.forward({ x: new Float32Array(784) });
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from burnbook.core.errors import ArgumentError
from burnbook.core.files import PathLike
from burnbook.exporters.forms import refuse_extension
from burnbook.exporters.lowering import Plan, files, lowered, problems
from burnbook.exporters.lowering.files import MODULES, Packed, Precision, Weights
from burnbook.exporters.paths import export_path
from burnbook.exporters.wgsl.device import Runner
from burnbook.exporters.wgsl.page import text_of
from burnbook.exporters.wgsl.writer import Kernels, kernels_of
from burnbook.program.capture import Batch
from burnbook.program.sizes import Dim


@dataclass(frozen=True)
class WgslFile:
    """A file that was written: where, how large its weights are, and its kernels.

    kernels: the text of each by name. steps: their names, in the order in which they
    run. beside: the file with the weights, where they are not in the file.
    """

    path: Path
    weights: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kernels: dict[str, str]
    steps: tuple[str, ...]
    beside: Path | None
    _plan: Plan = field(repr=False)
    _kernels: Kernels = field(repr=False)
    _made: Packed = field(repr=False)
    _runner: list[Runner] = field(default_factory=list[Runner], init=False, repr=False)

    def run(self, *inputs: object) -> tuple[np.ndarray, ...]:
        """What the kernels give for inputs, run by the package wgpu.

        The weights are those of the file, in its precision.

        inputs: arrays or tensors of the shapes that the program takes, of any batch.
        """
        arrays = [np.asarray(one) for one in inputs]
        n = _batch_size(self._plan, arrays)
        if not self._runner:
            self._runner.append(Runner(self._plan, self._kernels, self._made))
        return tuple(self._runner[0].run(arrays, n))


def to_wgsl(
    model: object,
    path: PathLike,
    *examples: object,
    weights: Weights = "embedded",
    precision: Precision = "f32",
    batch: Batch = 0,
    output_names: Sequence[str] = (),
) -> WgslFile:
    """Write a model as kernels of WGSL in one module of JavaScript, as it infers.

    model: a module, a function of tensors, or a `Program`. examples: tensors that it
    takes; of a Program none. weights: "embedded" in the file, or "beside" it in
    `<name>.<hash>.weights`, where the file finds them. precision: of the weights in the
    file: "f32", "f16" or "int8"; kernels compute with f32. Codes of weights that were
    quantized symmetrically, with one scale for a whole tensor, stay codes in the file;
    other quantized weights are written as the numbers that they stand for. batch: the
    dim of the examples that may have any size, or None. output_names: one for each
    output, all different; without them they are called as the keys or fields that they
    stand under in the result, else as the operations.

    The page gets the model by `const model = await Model.load()`, and `await
    model.forward` takes flat arrays by the names of the inputs, and gives `{ data,
    shape }` by the names of the outputs. Constants of fewer than 256 numbers (biases,
    the parameters of norms) stay f32 at each precision, as do those with NaN, with
    infinity, with numbers beyond 65504 at "f16", or of zeros alone at "int8".

    Ops that go through elements one by one are fused to one kernel; all memory is
    planned here, so that a run in the browser only binds and dispatches. Kernels
    cannot raise: an index beyond a table reads its last row.

    WGSL lets compilers take it that there is no NaN and no infinity. Activations,
    comparisons, extremes, and tests of NaN look at the bits of what they are given, so
    that NaN is as it is here and a broken input gives a broken result. But a compiler
    may reckon as if numbers were exact: it may take x - x for 0, and x + 1e8 - 1e8
    for x, even where x is NaN or is too small for the sum.

    Floats have 32 bits there: f64 and f16 are computed with f32 as well, and a cast
    that rounds to f16 is refused. Whole numbers have 32 bits as well, not 64: a literal
    or a constant beyond them is refused, and what is computed wraps around.

    Raises: ArgumentError with all operations that have no kernel, and where they stand;
    GraphError where the model cannot be captured.

    Example:
        >>> import tempfile
        >>> from burnbook.backend import Numpy
        >>> from burnbook.nn import LinearConfig
        >>> from burnbook.tensor import Tensor
        >>> layer = LinearConfig(3, 2).init(Numpy())
        >>> def model(x):
        ...     return layer.forward(x).relu() * 2.0
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     to_wgsl(model, f"{folder}/model.js", Tensor.ones([1, 3])).steps
        ('linear', 'relu_mul')
    """
    target = export_path("to_wgsl", model, path, examples)
    refuse_extension("to_wgsl", path, MODULES)
    files.asked("to_wgsl", weights, precision)
    plan = lowered("to_wgsl", model, examples, batch, (), output_names)
    kernels = kernels_of(plan)
    made = files.packed(plan.constants, precision)
    files.fits("to_wgsl", made, weights)
    text = text_of(plan, kernels, made, weights, target)
    beside = files.written(target, text, made, weights)
    return WgslFile(
        target,
        len(made.data),
        tuple(value.name for value, _ in plan.inputs),
        tuple(plan.names),
        dict(kernels.texts),
        tuple(one.kernel for one in kernels.dispatches),
        beside,
        plan,
        kernels,
        made,
    )


def unsupported(
    model: object, *examples: object, batch: Batch = 0
) -> list[tuple[str, str, str]]:
    """What of a model has no kernel: op, where it stands, and why.

    Example:
        >>> from burnbook.tensor import Tensor, linalg
        >>> unsupported(linalg.det, Tensor.ones([2, 2]), batch=None)
        [('det', '', 'it has no kernel there')]
    """
    return problems("to_wgsl", model, examples, batch)


def _batch_size(plan: Plan, arrays: list[np.ndarray]) -> int:
    """The n of arrays; other shapes are refused."""
    if len(arrays) != len(plan.inputs):
        what = f"it takes {len(plan.inputs)} inputs, and {len(arrays)} came"
        raise ArgumentError(plan.name, what)
    found: set[int] = set()
    for (value, _), array in zip(plan.inputs, arrays, strict=True):
        sizes = zip(value.shape, array.shape, strict=False)
        fits = len(value.shape) == array.ndim
        for wanted, size in sizes:
            n = wanted.batch_of(size) if isinstance(wanted, Dim) else None
            fits = fits and (
                n is not None if isinstance(wanted, Dim) else wanted == size
            )
            found |= {n} if n is not None else set()
        if not fits:
            facts = [(value.name, str(list(array.shape))), ("made for", str(value))]
            raise ArgumentError(plan.name, f"{value.name} has another shape", facts)
    if len(found) > 1:
        facts = [("batch sizes", ", ".join(map(str, sorted(found))))]
        raise ArgumentError(plan.name, "the inputs are of different batches", facts)
    return next(iter(found), 1)
