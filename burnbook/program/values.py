"""What a program is made of: values, and the steps between them."""

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from burnbook.core.dtypes import dtype_name
from burnbook.core.op import BackwardOp, Op
from burnbook.program.sizes import Shape, leaves, resolved, size_text


@dataclass(frozen=True, eq=False)
class Value:
    """One array of a program: what goes in, a constant, or the result of a step.

    name: unique in its program. kind: "input", "parameter" (learned), "buffer" (a
    constant tensor or running statistic of the model), "constant" (any other tensor
    that was there), "key" (of random numbers) or "result".

    Two values are equal only where they are the same object.
    """

    name: str
    kind: str
    dtype: np.dtype[Any]
    shape: Shape

    def __reduce__(self) -> Any:
        return _value, (self.name, self.kind, self.dtype.str, self.shape)

    @property
    def is_constant(self) -> bool:
        """Whether the program holds its array."""
        return self.kind in ("parameter", "buffer", "constant")

    @property
    def dtype_name(self) -> str:
        """The element type as text: "f32"."""
        return "key" if self.kind == "key" else dtype_name(self.dtype)

    def shape_at(self, n: int | None) -> tuple[int, ...]:
        """The shape for a batch of n."""
        return resolved(self.shape, n)

    def __str__(self) -> str:
        return f"{self.name} {size_text(self.shape)} {self.dtype_name}"

    def __repr__(self) -> str:
        return f"Value({self})"


def _value(name: str, kind: str, dtype: str, shape: Shape) -> Value:
    return Value(name, kind, np.dtype(dtype), shape)


def is_same(one: Any, other: Any) -> bool:
    """Whether two numbers are the same: of one type, and zeros of one sign.

    Example:
        >>> is_same(2, 2), is_same(2, 2.0), is_same(0.0, -0.0)
        (True, False, False)
    """
    if type(one) is not type(other) or one != other:
        return False
    return bool(one) or repr(one) == repr(other)


CELL = re.compile(r"^<ipython-input-|ipykernel_\d+[/\\]\d+\.py$")


@dataclass(frozen=True)
class Line:
    """A line of source: the file, the number and the text.

    Example:
        >>> print(Line("/home/me/net.py", 7, "x = x.relu()"))
        net.py:7
        >>> print(Line("/tmp/ipykernel_42/1234567.py", 2, "x = x.relu()"))
        cell:2
    """

    file: str
    number: int
    text: str

    def __str__(self) -> str:
        if CELL.search(self.file):
            return f"cell:{self.number}"
        name = self.file.replace("\\", "/").rpartition("/")[2]
        return f"{name}:{self.number}"


@dataclass(frozen=True, eq=False)
class Step:
    """One op of a program, with what goes in and what comes out.

    op: the declared op (or the gradient of one, a `BackwardOp`). inputs: in its order;
    each is a Value, a Python number, None, or a tuple of these and of sizes (gradient
    ops take the shapes of inputs). attrs: what it is called with; a number in it may be
    a `Dim`, and a key of random numbers is a Value. outputs: one Value for each result,
    None for a gradient that nobody wants. path: the module that called it,
    "Model.conv1", or "". line: the user's line that it came from.
    """

    op: Op | BackwardOp
    inputs: tuple[Any, ...]
    attrs: dict[str, Any]
    outputs: tuple[Value | None, ...]
    path: str = ""
    line: Line | None = None
    is_tuple: bool = field(default=False, repr=False)  # the op gives a tuple

    @property
    def out(self) -> Value:
        """The first result: of most ops the only one."""
        return next(v for v in self.outputs if v is not None)

    @property
    def values(self) -> tuple[Value, ...]:
        """The values among the inputs and attributes, in order, each once."""
        found = [*leaves(self.inputs), *leaves(self.attrs)]
        return tuple(dict.fromkeys(leaf for leaf in found if type(leaf) is Value))

    def call(self) -> str:
        """The step as it would be written: "conv2d(x, conv1.weight, stride=(1, 1))"."""
        given = [_text(value) for value in self.inputs]
        while given and given[-1] == "None":
            given.pop()
        given += [f"{name}={_text(value)}" for name, value in self.attrs.items()]
        return f"{self.op.name}({', '.join(given)})"

    def __str__(self) -> str:
        made = ", ".join("_" if v is None else v.name for v in self.outputs)
        shapes = ", ".join(size_text(v.shape) for v in self.outputs if v is not None)
        return f"{made} {shapes} = {self.call()}"


def _text(value: Any) -> str:
    if isinstance(value, Value):
        return value.name
    if isinstance(value, np.ndarray):
        if value.size <= 4:
            return str(value.tolist())
        return f"<{dtype_name(value.dtype)} {size_text(value.shape)}>"
    if isinstance(value, np.dtype) or (
        isinstance(value, type) and issubclass(value, np.generic)
    ):
        return dtype_name(np.dtype(value))
    if isinstance(value, np.generic):
        return str(value.item())
    if type(value) is tuple:
        inner = ", ".join(map(_text, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if type(value) is list:
        return f"[{', '.join(map(_text, value))}]"
    if type(value) is slice:
        start, stop, step = (
            "" if v is None else _text(v) for v in (value.start, value.stop, value.step)
        )
        return f"{start}:{stop}" + (f":{step}" if step else "")
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return str(value) if isinstance(value, str) is False else repr(value)
