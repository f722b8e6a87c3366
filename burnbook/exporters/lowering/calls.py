"""What a program becomes: memory, and the kernels that work on it.

A `Call` runs a kernel that has a name and a text of its own (matmul, conv2d); a `Chain`
is a loop of its own: ops that go through elements one by one, fused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from burnbook.exporters.lowering.sizes import product, strides_of, times
from burnbook.program import Shape, Size, Value
from burnbook.program.sizes import Dim

KINDS = {"f": "f32", "i": "i32", "u": "i32", "b": "bool"}


@dataclass(eq=False)
class Storage:
    """Elements that lie one behind the other.

    role: "input", "constant" or "result". kind: "f32", "i32" or "bool". slot: which
    buffer holds a result. array: the elements of a constant. codes: those of quantized
    weights with one scale and no offset, and what a step of them stands for.
    """

    name: str
    role: str
    kind: str
    size: Size
    slot: int = -1
    array: np.ndarray | None = None
    codes: tuple[np.ndarray, float] | None = None

    @property
    def place(self) -> str:
        """What a file calls it: its own name, or that of its buffer, as "b0"."""
        return f"b{self.slot}" if self.role == "result" else self.name


@dataclass(frozen=True)
class View:
    """A storage as an array: which element lies where.

    Example:
        >>> x = Storage("x", "input", "f32", 12)
        >>> View.whole(x, (3, 4)).permuted((1, 0)).strides
        (1, 4)
    """

    storage: Storage
    shape: Shape
    strides: Shape
    offset: Size = 0

    @classmethod
    def whole(cls, storage: Storage, shape: Shape) -> View:
        """All elements in the order in which they lie."""
        return cls(storage, shape, strides_of(shape))

    @property
    def is_straight(self) -> bool:
        """Whether the elements lie one behind the other."""
        pairs = zip(self.shape, self.strides, strides_of(self.shape), strict=True)
        return all(size == 1 or one == other for size, one, other in pairs)

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the storage, in order."""
        size = product(self.shape)
        return self.is_straight and self.offset == 0 and size == self.storage.size

    def permuted(self, axes: tuple[int, ...]) -> View:
        """The dims in another order."""
        shape = tuple(self.shape[axis] for axis in axes)
        strides = tuple(self.strides[axis] for axis in axes)
        return View(self.storage, shape, strides, self.offset)

    def stretched(self, shape: Shape) -> View:
        """Dims of size 1, and missing ones ahead, repeated to a shape."""
        ahead = len(shape) - len(self.shape)
        pairs = zip(shape[ahead:], self.shape, self.strides, strict=True)
        strides = tuple(0 if n == 1 and m != 1 else step for m, n, step in pairs)
        return View(self.storage, shape, (0,) * ahead + strides, self.offset)

    def reshaped(self, shape: Shape) -> View | None:
        """The same elements in another shape, where no copy is needed for it."""
        if self.is_straight:
            return View(self.storage, shape, strides_of(shape), self.offset)
        wide = [(n, s) for n, s in zip(self.shape, self.strides, strict=True) if n != 1]
        if [n for n, _ in wide] != [n for n in shape if n != 1]:
            return None
        steps = iter([step for _, step in wide])
        strides = tuple(0 if n == 1 else next(steps) for n in shape)
        return View(self.storage, shape, strides, self.offset)


@dataclass(frozen=True)
class Read:
    """An element that a chain reads: the number of the view."""

    place: int


@dataclass(frozen=True)
class Made:
    """The result of an earlier line of a chain."""

    place: int


Argument = Read | Made | float | int | bool | Dim


@dataclass(frozen=True)
class Line:
    """One op of a chain: its name, its arguments, the kinds that it takes and gives.

    args: what it is computed from; a form gives Values and Views, for which the chain
    has a `Read` then. attrs: numbers that it is called with.
    """

    op: str
    args: tuple[Argument | View | Value, ...]
    takes: str
    gives: str
    attrs: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def kinds_taken(self) -> list[str]:
        """The kind of each argument: what `where` chooses by is a bool."""
        if self.op == "where":
            return ["bool", self.gives, self.gives]
        return [self.takes] * len(self.args)


@dataclass
class Chain:
    """A loop over elements: lines, the views that they read, and where results go.

    The last line is the result. `out` may be a part of its storage. note: the module
    and the sizes, for a comment.
    """

    lines: list[Line]
    reads: list[View]
    out: View
    note: str = ""

    @property
    def name(self) -> str:
        """The ops: "mul_add_relu"."""
        words = [line.op for line in self.lines]
        if len(words) > 3:
            words = [words[0], "to", words[-1]]
        return "_".join(words)

    @property
    def target(self) -> Storage:
        """Where the results go."""
        return self.out.storage

    @property
    def inputs(self) -> list[Storage]:
        """The storages that are read, each once."""
        return list(dict.fromkeys(view.storage for view in self.reads))

    def loops(self) -> tuple[list[Size], list[list[Size]]]:
        """The sizes of as few loops as will do, and the steps of each view in them.

        The steps of `out` stand last.
        """
        views = [*self.reads, self.out]
        sizes: list[Size] = []
        steps: list[list[Size]] = [[] for _ in views]
        for d, size in enumerate(self.out.shape):
            if size == 1:
                continue
            here = [view.strides[d] for view in views]
            joins = bool(sizes) and all(
                one[-1] == times(step, size)
                for one, step in zip(steps, here, strict=True)
                if _fits(step, size)
            )
            joins = joins and all(_fits(step, size) for step in here)
            if joins:
                sizes[-1] = times(sizes[-1], size)
            else:
                sizes.append(size)
            for one, step in zip(steps, here, strict=True):
                if joins:
                    one[-1] = step
                else:
                    one.append(step)
        return sizes or [1], steps if sizes else [[0] for _ in views]


def _fits(step: Size, size: Size) -> bool:
    return not (isinstance(step, Dim) and isinstance(size, Dim))


@dataclass
class Call:
    """A kernel with what it reads, where its results go, and its sizes and numbers."""

    kernel: str
    reads: dict[str, Storage]
    out: Storage
    sizes: dict[str, Any]
    note: str = ""

    @property
    def target(self) -> Storage:
        """Where the results go."""
        return self.out

    @property
    def inputs(self) -> list[Storage]:
        """The storages that are read, each once."""
        return list(dict.fromkeys(self.reads.values()))


@dataclass
class Plan:
    """A whole program: what is read, run and given, and how large its memory is.

    buffers: for each, its kind and the sizes of which the largest counts. names: of the
    outputs, each once.
    """

    name: str
    inputs: list[tuple[Value, Storage]]
    outputs: list[tuple[Value, Storage]]
    constants: list[Storage]
    calls: list[Call | Chain]
    buffers: list[tuple[str, list[Size]]]
    names: list[str]
