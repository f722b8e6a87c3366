"""From a program to an ONNX file.

    to_onnx(model, "model.onnx", x)      x: an example; its first dim is the batch

A model is captured as a program (burnbook.program), and each of its steps is written by
the form of its op (forms/). What has no form is said at once, with the modules where it
stands, before anything is written.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from burnbook.core.errors import ArgumentError
from burnbook.core.files import PathLike, printable
from burnbook.core.op import BackwardOp
from burnbook.exporters.forms import (
    input_names,
    output_names,
    program_of,
    refuse_twice,
    refuse_without_form,
)
from burnbook.exporters.onnx.files import write_model
from burnbook.exporters.onnx.forms import FORMS, NoForm
from burnbook.exporters.onnx.rank_zero import with_rank_zero
from burnbook.exporters.onnx.writer import Name, Writer
from burnbook.exporters.paths import export_path
from burnbook.program import Dim, Program, Step, Value, mapped
from burnbook.program.capture import Batch

OLDEST, USUAL = 17, 18
LARGEST = 1 << 30  # bytes of weights in the file itself; protobuf ends at 2 GiB
KEPT_AS_CODES = "from_codes"  # weights that stay quantized are not computed here


OTHERS = {
    **dict.fromkeys((".pt", ".pth"), ("a file of PyTorch", "to_pytorch(model, path)")),
    ".safetensors": ("safetensors", "model.save_into(SafetensorsStore(path))"),
    ".py": ("a file of Python", "to_micropython(model, path, x)"),
    **dict.fromkeys((".js", ".mjs"), ("JavaScript", "to_javascript(model, path, x)")),
    **dict.fromkeys((".mpk", ".bpk"), ("a record", "model.save_file(path, recorder)")),
}


def to_onnx(
    model: Any,
    path: PathLike,
    *examples: Any,
    opset: int = USUAL,
    batch: Batch = 0,
    input_names: Sequence[str] = (),
    output_names: Sequence[str] = (),
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """Write a model as an ONNX file, as it infers.

    model: a module, a function of tensors, or a `Program`. examples: tensors that it
    takes; of a Program none. opset: from 17 on; newer ones have more operators (gelu
    from 20, RMS norm from 23), older ones are read by more programs. batch: the dim of
    the examples that may have any size, or None (see `capture`). metadata: texts by
    name, kept in the file. Weights have the names that they have in the module, and
    outputs, where `output_names` gives none, those of the keys or fields that they
    stand under in the result, else of the operations.

    Inputs and results of rank 0 of an imported model have rank 0 again; a sum of
    burnbook's own has shape [1], as the model gives it. The results are those of the
    model, but for the sign of NaN, and extremes and
    medians (also their places) of lines that hold NaN, which ONNX leaves open. ONNX
    Runtime multiplies by quantized weights in whole numbers, which is off by some 1 %;
    its sessions keep to floats with the config entry
    `session.qdq_matmulnbits_accuracy_level` "1".

    Weights beyond 1 GiB are written beside it, to `<path>.<digest>.data`, named after
    its contents, and what an earlier export under the same path had there is removed;
    a write that fails leaves the earlier model whole. Needs the package onnx.

    Raises: ArgumentError with all operations that ONNX has no form for, and where they
    stand, or where `path` is named like a file of another format; GraphError where the
    model cannot be captured.

    Example:
        >>> import tempfile
        >>> from burnbook.backend import Numpy
        >>> from burnbook.nn import LinearConfig
        >>> from burnbook.tensor import Tensor
        >>> model = LinearConfig(3, 2).init(Numpy())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     to_onnx(model, f"{folder}/m.onnx", Tensor.ones([1, 3])).name
        'm.onnx'
    """
    path = export_path("to_onnx", model, path, examples)
    if other := OTHERS.get(path.suffix.lower()):
        what = f"{printable(path)} is named like {other[0]}, and this writes ONNX"
        raise ArgumentError("to_onnx", what, cure=f'"{path.stem}.onnx", or {other[1]}')
    made = onnx_model(
        model,
        *examples,
        opset=opset,
        batch=batch,
        input_names=input_names,
        output_names=output_names,
        metadata=metadata,
    )
    write_model(made, path, LARGEST)
    return path


def onnx_model(
    model: Any,
    *examples: Any,
    opset: int = USUAL,
    batch: Batch = 0,
    input_names: Sequence[str] = (),
    output_names: Sequence[str] = (),
    metadata: Mapping[str, str] | None = None,
) -> Any:
    """The same as an `onnx.ModelProto`, without a file."""
    opset = _known_opset("to_onnx", opset)
    texts = _texts(metadata or {})
    program = program_of("to_onnx", model, examples, batch)
    return Export(program, opset).model(input_names, output_names, texts)


def unsupported(
    model: Any, *examples: Any, opset: int = USUAL, batch: Batch = 0
) -> list[tuple[str, str, str]]:
    """What of a model ONNX has no form for: op, where it stands, and why.

    Example:
        >>> from burnbook.tensor import Tensor
        >>> unsupported(lambda x: x.cummax(0), Tensor.ones([2, 3]), batch=None)
        [('cummax', '', 'ONNX has no such operator')]
    """
    opset = _known_opset("unsupported", opset)
    export = Export(program_of("unsupported", model, examples, batch), opset)
    export.write_steps()
    return export.problems


def _known_opset(where: str, opset: Any) -> int:
    """The opset as a number; raises where the package onnx is not there or older."""
    try:
        from onnx import defs
    except ImportError:
        what = "writing an .onnx file needs the package onnx"
        raise ArgumentError(where, what, cure="pip install onnx") from None
    newest = defs.onnx_opset_version()
    if not isinstance(opset, int | np.integer) or not OLDEST <= opset <= newest:
        what = f"opset {opset!r} is not one of {OLDEST} to {newest}"
        raise ArgumentError(where, what, cure=f"opset={USUAL}")
    return int(opset)


def _texts(metadata: Any) -> dict[str, str]:
    """Metadata, whose keys and values are texts."""
    if not isinstance(metadata, Mapping):
        what = f"metadata is {type(metadata).__name__}, not texts by name"
        raise ArgumentError("to_onnx", what, cure='metadata={"author": "…"}')
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            what = f"the metadata {key!r}: {value!r} is no text"
            cure = f"metadata={{{str(key)!r}: {str(value)!r}}}"
            raise ArgumentError("to_onnx", what, cure=cure)
    return dict(metadata)


class Export:
    """One export: the steps of a program as nodes."""

    def __init__(self, program: Program, opset: int):
        self.program = program = with_rank_zero(program)
        self.writer = Writer(program, opset)
        self.writer.taken.update(value.name for value in program.values)
        self.problems: list[tuple[str, str, str]] = []
        self.counts: dict[str, int] = {}

    def model(self, inputs: Any, outputs: Any, metadata: dict[str, str]) -> Any:
        """The whole file."""
        from onnx import helper

        names = self._name(inputs, outputs)
        self.write_steps()
        refuse_without_form("to_onnx", self.problems, " in ONNX")
        w = self.writer
        ends = [self._output(v, i, names) for i, v in enumerate(self.program.outputs)]
        values, used = self.program.outputs, self._used(ends)
        graph = helper.make_graph(
            w.nodes,
            self.program.name.strip("<>") or "program",
            [self._info(v, w.names[v]) for v in self.program.inputs],
            [self._info(v, name) for v, name in zip(values, ends, strict=True)],
            [
                w.numpy_helper.from_array(np.asarray(array, order="C"), name)
                for name, array in w.constants.items()
                if name in used
            ],
            value_info=self._inner(ends),
        )
        imports = [helper.make_opsetid("", w.opset)]
        made = helper.make_model(
            graph,
            opset_imports=imports,
            producer_name="burnbook",
            ir_version=helper.find_min_ir_version_for(imports),
        )
        helper.set_model_props(made, metadata)
        return made

    def _name(self, inputs: Any, outputs: Any) -> list[str]:
        """Name the inputs, and keep these names and those of the outputs free."""
        w, program = self.writer, self.program
        found = input_names("to_onnx", program, inputs)
        names = output_names("to_onnx", program, outputs)
        refuse_twice("to_onnx", "output", list(outputs))
        weights = {v.name for v in program.constants if v.kind == "parameter"}
        for kind, given, others in (
            ("input", found if inputs else [], weights),
            ("output", names if outputs else [], {*found, *weights}),
        ):
            if taken := [name for name in given if name in others]:
                of = "a weight" if taken[0] in weights else "an input"
                what = f"{taken[0]!r}, given to an {kind}, is the name of {of}"
                raise ArgumentError("to_onnx", what, cure="another name")
        w.names.update(zip(program.inputs, found, strict=True))
        pairs = [*zip(found, program.inputs, strict=True)]
        pairs += zip(names, program.outputs, strict=True)
        w.kept = {name for name, value in pairs if name != value.name} - weights
        w.taken |= w.kept
        return names

    def write_steps(self) -> None:
        """Add the nodes of every step; what has no form is noted."""
        w = self.writer
        for value in self.program.inputs:
            w.names.setdefault(value, value.name)
        seen: set[tuple[str, str]] = set()
        for step in self.program.steps:
            try:
                self._write(step)
            except NoForm as why:
                if (step.op.name, step.path) not in seen:
                    seen.add((step.op.name, step.path))
                    self.problems.append((step.op.name, step.path, str(why)))
                for value in step.outputs:
                    if value is not None:
                        w.names[value] = value.name

    def _write(self, step: Step) -> None:
        w = self.writer
        if isinstance(step.op, BackwardOp):
            raise NoForm("it is a gradient, which only training needs")
        if self._compute(step):
            return
        form = FORMS.get(step.op.name)
        if form is None:
            raise NoForm("ONNX has no such operator")
        arrays = [v for v in step.inputs if isinstance(v, Value)]
        like = arrays[0].dtype if arrays else None
        begin = len(w.nodes)
        names = [w.name(value, like) for value in step.inputs]
        attrs = {
            name: value
            for name, value in {**step.op.attrs, **step.attrs}.items()
            if value is not inspect.Parameter.empty
        }
        found: Any = form(w, step, *names, **attrs)
        if not isinstance(found, (str, tuple)):
            w.delayed[step.out] = found
        else:
            given = found if isinstance(found, tuple) else (found,)
            for value, name in zip(step.outputs, given, strict=False):
                if value is not None:
                    w.names[value] = self._named(value, name, begin)
        wanted = [v for v in step.outputs[1:] if v is not None and self.program.uses[v]]
        if any(v not in w.names for v in wanted):
            raise NoForm("its further results are for gradients, which need training")
        self._label(step, begin)

    def _compute(self, step: Step) -> bool:
        """Run a step that depends on constants only; codes stay codes."""
        w = self.writer
        if step.op.name == KEPT_AS_CODES or _moves(step) or not step.values:
            return False
        arrays = [
            w.array(w.name(value)) for value in step.values if _is_ready(w, value)
        ]
        if len(arrays) < len(step.values) or any(array is None for array in arrays):
            return False
        known = dict(zip(step.values, arrays, strict=True))
        backend = self.program.backend
        values = tuple(
            backend.from_numpy(np.asarray(known[v])) if isinstance(v, Value) else v
            for v in step.inputs
        )
        out = backend.run(step.op, values, step.attrs)
        outs = out if step.is_tuple else (out,)
        for value, array in zip(step.outputs, outs, strict=True):
            if value is not None:
                name = w.names[value] = w.own_name(value)
                w.constants[name] = np.asarray(backend.to_numpy(array))
        return True

    def _named(self, value: Value, name: Name, begin: int) -> Name:
        """Give a result the value's own name, where a node of this step made it."""
        made = self.writer.nodes[begin:]
        if not any(name in node.output for node in made):
            return name
        own = self.writer.own_name(value)
        for node in made:
            for names in (node.input, node.output):
                for i, one in enumerate(names):
                    if one == name:
                        names[i] = own
        return own

    def _label(self, step: Step, begin: int) -> None:
        """Name the nodes after the module that they stand in: "/conv1/Conv"."""
        path = step.path.partition(".")[2].replace(".", "/")
        for node in self.writer.nodes[begin:]:
            title = f"/{path}/{node.op_type}" if path else f"/{node.op_type}"
            count = self.counts[title] = self.counts.get(title, 0) + 1
            node.name = title if count == 1 else f"{title}_{count - 1}"

    def _output(self, value: Value, place: int, names: list[str]) -> Name:
        """The name of an output, which nothing else may have."""
        w = self.writer
        name = w.name(value)
        first = self.program.outputs.index(value) == place
        wished = names[place]
        is_own = wished == name or wished == value.name in w.kept  # an input has it
        if is_own and first and value.kind == "result":
            return name
        used = {one for node in w.nodes for one in node.output}
        used |= {w.names[v] for v in self.program.inputs} | w.constants.keys()
        is_free = wished not in (used if wished in w.kept else used | w.taken)
        label = wished if is_free else w.fresh(wished)
        w.taken.add(label)
        end = w.helper.make_node("Identity", [name], [label], name=f"/{label}")
        w.nodes.append(end)
        return label

    def _used(self, ends: list[Name]) -> set[Name]:
        found = {name for node in self.writer.nodes for name in node.input}
        return found | set(ends)

    def _inner(self, ends: list[Name]) -> list[Any]:
        """Types and shapes of what lies between, for whoever looks at the file."""
        made = {name for node in self.writer.nodes for name in node.output}
        outer = set(ends)
        return [
            self._info(value, name)
            for value, name in self.writer.names.items()
            if value.kind == "result" and name in made and name not in outer
        ]

    def _info(self, value: Value, name: Name) -> Any:
        helper = self.writer.helper
        shape = [_label_of(n) if isinstance(n, Dim) else int(n) for n in value.shape]
        dtype = helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype))
        return helper.make_tensor_value_info(name, dtype, shape)


def _is_ready(w: Writer, value: Value) -> bool:
    return value.is_constant or w.names.get(value) in w.constants


def _moves(step: Step) -> bool:
    """Whether something of a step follows the batch."""
    sizes = [n for v in step.outputs if v is not None for n in v.shape]
    found: list[Any] = []
    mapped((step.inputs, step.attrs), found.append)
    return any(isinstance(one, Dim) for one in [*sizes, *found])


def _label_of(dim: Dim) -> str:
    """A size that follows the batch, as ONNX's tools show it."""
    return (
        "batch" if (dim.scale, dim.offset) == (1, 0) else str(dim).replace("n", "batch")
    )
