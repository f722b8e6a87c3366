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
from burnbook.exporters.forms import output_names, refuse_compiled
from burnbook.exporters.onnx.files import write_model
from burnbook.exporters.onnx.forms import FORMS, NoForm
from burnbook.exporters.onnx.writer import Name, Writer
from burnbook.program import Dim, Program, Step, Value, capture, mapped
from burnbook.program.capture import Batch

OLDEST, USUAL = 17, 18
LARGEST = 1 << 30  # bytes of weights in the file itself; protobuf ends at 2 GiB
KEPT_AS_CODES = "from_codes"  # weights that stay quantized are not computed here


OTHERS = {
    **dict.fromkeys((".pt", ".pth"), ("a file of PyTorch", "to_pytorch(model, path)")),
    ".safetensors": ("safetensors", "model.save_into(SafetensorsStore(path))"),
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
    path = Path(path)
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
    try:
        from onnx import defs
    except ImportError:
        what = "writing an .onnx file needs the package onnx"
        raise ArgumentError("to_onnx", what, cure="pip install onnx") from None
    newest = defs.onnx_opset_version()
    if not OLDEST <= opset <= newest:
        what = f"opset {opset} is not one of {OLDEST} to {newest}"
        raise ArgumentError("to_onnx", what, cure=f"opset={USUAL}")
    program = _program(model, examples, batch)
    return Export(program, opset).model(
        list(input_names), list(output_names), dict(metadata or {})
    )


def unsupported(
    model: Any, *examples: Any, opset: int = USUAL, batch: Batch = 0
) -> list[tuple[str, str, str]]:
    """What of a model ONNX has no form for: op, where it stands, and why.

    Example:
        >>> from burnbook.tensor import Tensor
        >>> unsupported(lambda x: x.cummax(0), Tensor.ones([2, 3]), batch=None)
        [('cummax', '', 'ONNX has no such operator')]
    """
    export = Export(_program(model, examples, batch), opset)
    export.write_steps()
    return export.problems


def _program(model: Any, examples: tuple[Any, ...], batch: Any) -> Program:
    refuse_compiled("to_onnx", model)
    if isinstance(model, Program):
        if examples:
            what = "a program is captured already, and takes no examples"
            raise ArgumentError("to_onnx", what)
        return model
    return capture(model, *examples, batch=batch)


class Export:
    """One export: the steps of a program as nodes."""

    def __init__(self, program: Program, opset: int):
        self.program = program
        self.writer = Writer(program, opset)
        self.writer.taken.update(value.name for value in program.values)
        self.problems: list[tuple[str, str, str]] = []
        self.counts: dict[str, int] = {}
        self.kept: set[str] = set()  # names of outputs, which other results leave free

    def model(self, inputs: list[str], outputs: list[str], metadata: Any) -> Any:
        """The whole file."""
        from onnx import helper

        self._name_inputs(inputs)
        names = output_names("to_onnx", self.program, outputs)
        pairs = zip(names, self.program.outputs, strict=True)
        self.kept = {name for name, value in pairs if name != value.name}
        self.write_steps()
        if self.problems:
            facts = [
                (op, f"{at}: {why}" if at else why) for op, at, why in self.problems
            ]
            one = len(facts) == 1
            what = (
                f"{len(facts)} operation{' has' if one else 's have'} no form in ONNX"
            )
            cure = None
            if any("training" in why for _, _, why in self.problems):
                cure = "model.valid()"
            raise ArgumentError("to_onnx", what, facts, cure)
        w = self.writer
        ends = [self._output(v, i, names) for i, v in enumerate(self.program.outputs)]
        values = self.program.outputs
        graph = helper.make_graph(
            w.nodes,
            self.program.name.strip("<>") or "program",
            [self._info(v, w.names[v]) for v in self.program.inputs],
            [self._info(v, name) for v, name in zip(values, ends, strict=True)],
            [
                w.numpy_helper.from_array(np.asarray(array, order="C"), name)
                for name, array in w.constants.items()
                if name in self._used(ends)
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

    def _name_inputs(self, given: list[str]) -> None:
        values = self.program.inputs
        if len(given) not in (0, len(values)):
            what = f"{len(given)} names came, and there are {len(values)} inputs"
            raise ArgumentError("to_onnx", what)
        for i, value in enumerate(values):
            name = given[i] if given else value.name
            if given and name != value.name:
                name = self.writer.fresh(name)
            self.writer.names[value] = name

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
                w.constants[value.name] = np.asarray(backend.to_numpy(array))
                w.names[value] = value.name
        return True

    def _named(self, value: Value, name: Name, begin: int) -> Name:
        """Give a result the value's own name, where a node of this step made it."""
        made = self.writer.nodes[begin:]
        if not any(name in node.output for node in made):
            return name
        own = value.name
        if own in self.kept:
            own = self.writer.fresh(own)
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
        if wished == name and first and value.kind == "result":
            return name
        is_free = wished not in w.taken
        if wished in self.kept and not is_free:  # by a result that has left it free
            given = {v.name for v in (*self.program.inputs, *self.program.constants)}
            made = {one for node in w.nodes for one in node.output}
            is_free = wished not in given | made | w.constants.keys()
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
        return [
            self._info(value, name)
            for value, name in self.writer.names.items()
            if value.kind == "result" and name in made and name not in ends
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
