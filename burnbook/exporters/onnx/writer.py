"""Nodes, constants and sizes of an ONNX graph, as forms ask for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from burnbook.exporters.onnx.forms.registry import NoForm
from burnbook.program import Dim, Program, Step, Value

Name = str
INT64, F64 = np.dtype(np.int64), np.dtype(np.float64)


class Writer:
    """What a graph consists of so far.

    opset: the version of ONNX's operators that is written. A name that a form gets is
    that of a value of the graph; "" stands for an input that is left out.
    """

    def __init__(self, program: Program, opset: int):
        from onnx import helper, numpy_helper

        self.helper, self.numpy_helper = helper, numpy_helper
        self.program, self.opset = program, opset
        self.nodes: list[Any] = []
        self.constants: dict[Name, np.ndarray] = {}
        self.names: dict[Value, Name] = {}
        self.taken: set[Name] = set()
        self.kept: set[Name] = set()  # of inputs and outputs, which others leave free
        self.delayed: dict[Value, Callable[[], Name]] = {}
        self.parts: dict[
            Value, tuple[Name, Name, Any]
        ] = {}  # states and memory of an LSTM
        self._same: dict[tuple[Any, ...], Name] = {}
        self._same_node: dict[tuple[Any, ...], Any] = {}
        self._batch: Name = ""
        self._sizes: dict[Dim, Name] = {}

    # ── names ───────────────────────────────────────────────────────────────

    def fresh(self, hint: str) -> Name:
        """A name that nothing has yet, made of a hint."""
        name, number = hint, 1
        while name in self.taken:
            name, number = f"{hint}_{number}", number + 1
        self.taken.add(name)
        return name

    def name(self, value: Any, like: np.dtype[Any] | None = None) -> Name:
        """What an input of a step is called here; numbers become constants.

        like: the element type that a number takes, as NumPy would.
        """
        if value is None:
            return ""
        if isinstance(value, Value):
            known = self.names.get(value)
            if known is None:
                late = self.delayed.pop(value, None)
                known = self._constant_of(value) if late is None else late()
                self.names[value] = known
            return known
        if isinstance(value, Dim):
            made = self.power(value) if value.is_float else self.size(value)
            return self.cast(made, like or INT64)
        return self.constant(np.asarray(value, like))

    def own_name(self, value: Value) -> Name:
        """The name of a value of the program, or one like it where that is kept."""
        return self.fresh(value.name) if value.name in self.kept else value.name

    def _constant_of(self, value: Value) -> Name:
        name = self.own_name(value)
        self.constants[name] = self.program.array(value)
        return name

    def array(self, name: Name) -> np.ndarray | None:
        """The elements of a constant; None for a value that is computed."""
        return self.constants.get(name)

    # ── constants ───────────────────────────────────────────────────────────

    def constant(self, array: Any, hint: str = "constant") -> Name:
        """The name of a constant; equal ones are held once."""
        array = np.asarray(array)
        key = (array.dtype.str, array.shape, array.tobytes())
        if array.size > 1 << 16:
            key = (id(array),)
        known = self._same.get(key)
        if known is None:
            known = self._same[key] = self.fresh(hint)
            self.constants[known] = array
        return known

    def ints(self, *numbers: int) -> Name:
        """A constant list of whole numbers."""
        return self.constant(np.array(numbers, INT64), "sizes")

    # ── nodes ───────────────────────────────────────────────────────────────

    def node(self, op: str, *inputs: Name, **attrs: Any) -> Name:
        """Add a node with one result."""
        return self.node_of(op, 1, *inputs, **attrs)[0]

    def node_of(
        self,
        op: str,
        count: int,
        *inputs: Name,
        wanted: Sequence[bool] = (),
        **attrs: Any,
    ) -> tuple[Name, ...]:
        """Add a node with several results; `wanted` leaves some of them out.

        A node that is there already, with the same inputs, is taken again.
        """
        given = list(inputs)
        while given and not given[-1]:
            given.pop()
        flags = wanted or (True,) * count
        outputs = [self.fresh(f"{op.lower()}_out") if w else "" for w in flags]
        attrs = {name: value for name, value in attrs.items() if value is not None}
        key = (op, *given, *flags, repr(sorted(attrs.items())))
        known = self._same_node.get(key)
        if known is not None:
            return tuple(known.output)
        made = self.helper.make_node(op, given, outputs, **attrs)
        self.nodes.append(made)
        self._same_node[key] = made
        return tuple(outputs)

    def cast(self, name: Name, dtype: Any) -> Name:
        """The same values as another element type."""
        dtype = np.dtype(dtype)
        held = self.array(name)
        if held is not None:
            return name if held.dtype == dtype else self.constant(held.astype(dtype))
        to = self.helper.np_dtype_to_tensor_dtype(dtype)
        return self.node("Cast", name, to=to)

    def transpose(self, name: Name, *perm: int) -> Name:
        """The dims in another order; of a constant at once."""
        if perm == tuple(range(len(perm))):
            return name
        held = self.array(name)
        if held is not None:
            turned = np.ascontiguousarray(held.transpose(perm))
            return self.constant(turned, f"{name}.transposed")
        return self.node("Transpose", name, perm=list(perm))

    def reshape(self, name: Name, shape: Sequence[Any]) -> Name:
        """The same elements in another shape; of a constant at once."""
        held = self.array(name)
        if held is not None and all(isinstance(n, int) for n in shape):
            return self.constant(held.reshape([int(n) for n in shape]), name)
        moving = [i for i, n in enumerate(shape) if isinstance(n, Dim)]
        still = all(n for n in shape if not isinstance(n, Dim))
        if len(moving) == 1 and still:
            sizes = [-1 if isinstance(n, Dim) else int(n) for n in shape]
            return self.node("Reshape", name, self.ints(*sizes))
        allow = None if still else 1
        return self.node("Reshape", name, self.sizes(shape), allowzero=allow)

    def reduce(
        self, op: str, name: Name, axes: Sequence[int] | None, keepdims: bool = True
    ) -> Name:
        """A reduction; before opset 18 its axes are an attribute, but for a sum."""
        keep = int(keepdims)
        if axes is None:
            return self.node(op, name, keepdims=keep)
        if op == "ReduceSum" or self.opset >= 18:
            return self.node(op, name, self.ints(*axes), keepdims=keep)
        return self.node(op, name, axes=list(axes), keepdims=keep)

    def slice(
        self,
        name: Name,
        axis: int,
        start: int | Dim,
        stop: int | Dim,
        step: int = 1,
    ) -> Name:
        """A range along one axis."""
        ends = self.sizes((start,)), self.sizes((stop,))
        return self.node("Slice", name, *ends, self.ints(axis), self.ints(step))

    def every_second(self, name: Name, axis: int, start: int) -> Name:
        """Every second element along an axis."""
        ends = self.ints(start), self.ints(1 << 62)
        return self.node("Slice", name, *ends, self.ints(axis), self.ints(2))

    # ── sizes that follow the batch ─────────────────────────────────────────

    def batch(self) -> Name:
        """The batch size, as a list of one whole number, read off an input."""
        if not self._batch:
            value, axis, dim = next(
                (value, axis, size)
                for value in self.program.inputs
                for axis, size in enumerate(value.shape)
                if isinstance(size, Dim)
            )
            shape = self.node("Shape", self.name(value))
            size = self.node("Gather", shape, self.ints(axis), axis=0)
            if dim.offset:
                size = self.node("Sub", size, self.ints(dim.offset))
            if dim.scale != 1:
                size = self.node("Div", size, self.ints(dim.scale))
            self._batch = size
        return self._batch

    def size(self, dim: Dim) -> Name:
        """A size that follows the batch, as a list of one whole number."""
        known = self._sizes.get(dim)
        if known is None:
            known = self.batch()
            if dim.scale != 1:
                known = self.node("Mul", known, self.ints(dim.scale))
            if dim.offset:
                known = self.node("Add", known, self.ints(dim.offset))
            self._sizes[dim] = known
        return known

    def power(self, dim: Dim) -> Name:
        """A float that follows the batch, as a list of one."""
        made = self.cast(self.size(Dim(dim.scale, dim.offset)), F64)
        if abs(dim.power) == 0.5:
            made = self.node("Sqrt", made)
        if abs(dim.power) == 2:
            made = self.node("Mul", made, made)
        if dim.power > 0 and dim.factor == 1:
            return made
        factor = self.constant(np.array([dim.factor], F64))
        return self.node("Mul" if dim.power > 0 else "Div", factor, made)

    def sizes(self, shape: Sequence[Any]) -> Name:
        """A shape as a list of whole numbers."""
        if not any(isinstance(size, Dim) for size in shape):
            return self.ints(*[int(size) for size in shape])
        parts = [
            self.size(size) if isinstance(size, Dim) else self.ints(int(size))
            for size in shape
        ]
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=0)

    # ── what forms ask ──────────────────────────────────────────────────────

    def number(self, value: float | Dim, like: Value) -> Name:
        """A number of the element type of a value."""
        if isinstance(value, Dim):
            return self.node("Squeeze", self.name(value, like.dtype))
        return self.constant(np.asarray(value, like.dtype))

    def at_least(self, opset: int, op: str) -> None:
        """Raises NoForm where an operator is newer than what is written."""
        if self.opset < opset:
            raise NoForm(f"{op} needs opset {opset}")

    def still(self, value: float | Dim) -> float:
        """A number of which ONNX makes an attribute, so that no run may change it."""
        if isinstance(value, Dim):
            raise NoForm(f"{value} follows the batch")
        return float(value)

    def fixed(self, step: Step, place: int = 0, since: int = 0) -> tuple[int, ...]:
        """The sizes of an input from a dim on, which must not follow the batch."""
        shape = step.inputs[place].shape[since:]
        if any(isinstance(size, Dim) for size in shape):
            raise NoForm("its sizes follow the batch")
        return tuple(int(size) for size in shape)
