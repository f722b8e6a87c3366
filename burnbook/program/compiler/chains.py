"""A stream as one function, written out; chains of elementwise ops go in stretches.

A chain over large arrays goes through memory once: of a stretch of each input all ops
are computed while it is near, and only results that somebody holds are written. What is
between stands in a few short buffers, which are used again and again.

    def stream(xs, ns):
        x0, x1, = xs
        v2, = chain0(x0, x1, ns[0])   # mul, add, exp
        v3 = run(c1, (v2,), c2)       # sum
        return v3,
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from burnbook.backend.base import Backend
from burnbook.backend.compiled.runtime.buffers import buffers
from burnbook.backend.compiled.runtime.thread_pool import ALONE, threads
from burnbook.backend.fusion.signature import elementwise
from burnbook.backend.numpy import Numpy
from burnbook.core.source_code import define
from burnbook.program.compiler.bound import COSTLY, QUICK, UFUNCS
from burnbook.program.compiler.loops import Loop, expressions
from burnbook.program.values import Step, Value

STRETCH = 1 << 16  # bytes of an array that are gone over at once
SLOW, BRIEF = 2.0, 0.2  # nanoseconds of an element, in functions such as exp, in others
LARGE = 1 << 18  # bytes from which on stretches are worth their slices
EXACT = ("add", "sub", "mul")  # of whole numbers, too


class Writer:
    """Writes the function of a stream: xs are the inputs, ns the numbers."""

    def __init__(
        self,
        steps: Sequence[Step],
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        backend: Backend,
        is_compiled: bool = False,
    ):
        self.steps, self.outputs, self.is_compiled = steps, outputs, is_compiled
        self.held = set(outputs)
        self.is_plain = type(backend) is Numpy
        self.scope: dict[str, Any] = {"run": backend.run}
        self.lines: list[str] = []
        self.cost = 0.0  # seconds that loops of machine code could save, roughly
        self.last = self._last_uses()
        self.own = self._of_our_own()
        names = "".join([f"{value.name}, " for value in inputs])
        if names:
            self.lines.append(f"{names}= xs")
        for group in self._groups():
            if len(group) > 1:
                self.cost += self._cost(group)
            if self._is_chain(group):
                self._chain(group)
            else:
                for i in group:
                    self._line(i)
            self._give_up(group)
        found = "".join([f"{value.name}, " for value in outputs])
        self.lines.append(f"return {found or '()'}")
        self.source = _text("stream(xs, ns)", self.lines)
        self.function: Callable[..., Any] = define("stream", self.source, self.scope)

    def _last_uses(self) -> dict[Value, int]:
        last: dict[Value, int] = {}
        for i, step in enumerate(self.steps):
            for value in (*step.outputs, *step.values):
                if value is not None:
                    last[value] = i
        return last

    def _of_our_own(self) -> set[Value]:
        """Results of functions of NumPy that only such functions read.

        They are new arrays and nobody has a view of them: their memory may be used
        again.
        """
        made = {s.out for s in self.steps if self._ufunc(s) is not None}
        for step in self.steps:
            if self._ufunc(step) is None:
                made.difference_update(step.values)
        return made - self.held

    def _ufunc(self, step: Step) -> Any:
        """The function of NumPy that does what a step does, and may write anywhere."""
        name = step.op.name
        if not self.is_plain or name not in UFUNCS or step.attrs:
            return None
        out = step.out.dtype
        arrays = [v for v in step.inputs if _is_array(v)]
        if any(v.dtype != out for v in arrays) or (
            out.kind != "f" and name not in EXACT
        ):
            return None
        return UFUNCS[name]

    def _groups(self) -> list[list[int]]:
        """Steps in a row that are one chain, and the others alone."""
        found: list[list[int]] = []
        shape: Any = None
        for i, step in enumerate(self.steps):
            its = self._shape_of_chain(step)
            if its is not None and its == shape:
                found[-1].append(i)
            else:
                found.append([i])
            shape = its
        return found

    def _shape_of_chain(self, step: Step) -> Any:
        """The shape of all results of an elementwise step; None for others."""
        if not self.is_plain:
            return None
        op: Any = step.op
        if getattr(op, "source", op) not in elementwise():
            return None
        shapes = {value.shape for value in step.outputs if value is not None}
        if len(shapes) != 1:
            return None
        shape = shapes.pop()
        arrays = [v for v in step.inputs if _is_array(v)]
        if any(type(v) is tuple for v in step.inputs) and op is not getattr(
            op, "source", op
        ):
            return None if any(v.shape != shape for v in arrays) else shape
        return shape if all(len(v.shape) == len(shape) for v in arrays) else None

    def _is_chain(self, group: list[int]) -> bool:
        """Whether a function of their own computes some steps in a row.

        That is so for large arrays, which go in stretches, and where machine code does
        several steps at once.
        """
        shape = self.steps[group[0]].out.shape_at(None)
        if len(group) == 1 or not shape or not math.prod(shape):
            return False
        if not (_is_large(self.steps[group[0]].out) or self._has_loops(group)):
            return False
        sizes = {v.shape_at(None)[0] for i in group for v in _arrays(self.steps[i])}
        return sizes <= {shape[0], 1}

    def _has_loops(self, group: list[int]) -> bool:
        """Whether steps in a row become machine code."""
        if not self.is_compiled:
            return False
        shape = self.steps[group[0]].out.shape_at(None)
        arrays = [v.shape_at(None) for i in group for v in _arrays(self.steps[i])]
        if any(one != shape and math.prod(one) != 1 for one in arrays):
            return False
        known = [expressions(self.steps[i]) is not None for i in group]
        return any(one and other for one, other in pairwise(known))

    def _cost(self, group: list[int]) -> float:
        """Seconds that steps in a row take one by one, where machine code may help."""
        known = sum(expressions(self.steps[i]) is not None for i in group)
        size = math.prod(self.steps[group[0]].out.shape_at(None))
        return known * (0.3e-6 + size * 0.1e-9) if known > 1 else 0.0

    # one line for a step

    def _line(self, i: int) -> None:
        step = self.steps[i]
        ufunc = self._ufunc(step)
        if ufunc is not None:
            given = [self._at(value) for value in step.inputs]
            place = self._place(step, i)
            name = self._constant(ufunc, step.op.name)
            to = [] if place is None else [place]
            self.lines.append(f"{step.out.name} = {name}({', '.join([*given, *to])})")
            return
        outs = ", ".join("_" if v is None else v.name for v in step.outputs)
        to = f"{outs}, " if step.is_tuple else outs
        self.lines.append(f"{to} = {self._call(step)}")

    def _place(self, step: Step, i: int) -> str | None:
        """An input that is needed no longer, and may be written over."""
        for value in step.inputs:
            if (
                type(value) is Value
                and value in self.own
                and self.last[value] == i
                and value.shape == step.out.shape
                and value.dtype == step.out.dtype
            ):
                return value.name
        return None

    def _call(self, step: Step, named: dict[Value, str] | None = None) -> str:
        """A call of the op of a step."""
        given = "".join([f"{self._at(value, named)}, " for value in step.inputs])
        op = self._constant(step.op)
        return f"run({op}, ({given}), {self._attrs(step, named)})"

    def _attrs(self, step: Step, named: dict[Value, str] | None = None) -> str:
        fixed = {n: v for n, v in step.attrs.items() if not _is_number(v)}
        holes = [
            f"{name!r}: {self._at(value, named)}"
            for name, value in step.attrs.items()
            if _is_number(value)
        ]
        base = self._constant(fixed)
        return f"{{**{base}, {', '.join(holes)}}}" if holes else base

    def _at(self, value: Any, named: dict[Value, str] | None = None) -> str:
        """How a function refers to an input of a step."""
        if type(value) is Value:
            if named is not None and value in named:
                return named[value]
            return f"ns[{value.name[1:]}]" if _is_number(value) else value.name
        if type(value) is tuple and any(type(part) in (Value, tuple) for part in value):
            return f"({''.join([f'{self._at(part, named)}, ' for part in value])})"
        return self._constant(value)

    def _constant(self, value: object, name: str = "") -> str:
        if value is None:
            return "None"
        name = f"np_{name}" if name else f"c{len(self.scope)}"
        self.scope[name] = value
        return name

    def _give_up(self, group: list[int]) -> None:
        """Let go of what nobody reads after these steps."""
        ended = group[-1]
        inside = self._inside(group)
        gone = [
            value.name
            for value, i in self.last.items()
            if group[0] <= i <= ended and value not in self.held and value not in inside
            if value.kind in ("result", "input")
        ]
        if gone:
            self.lines.append(f"del {', '.join(gone)}")

    def _inside(self, group: list[int]) -> set[Value]:
        """What only a chain in stretches itself sees."""
        if not self._is_chain(group):
            return set()
        made = {v for i in group for v in self.steps[i].outputs if v is not None}
        return {v for v in made if v not in self.held and self.last[v] <= group[-1]}

    # chains in stretches

    def _chain(self, group: list[int]) -> None:
        """A function for a chain, and the line that calls it."""
        steps = [self.steps[i] for i in group]
        name = f"chain{len(self.scope)}"
        inside = self._inside(group)
        made = list(dict.fromkeys(v for s in steps for v in s.outputs if v is not None))
        outs = [value for value in made if value not in inside]
        given = [v for s in steps for v in s.values if v not in made]
        given = list(dict.fromkeys(given))
        chain = _Chain(self, group, given, outs)
        self.scope[name] = define(name, chain.source(name), self.scope)
        to = "".join([f"{value.name}, " for value in outs])
        args = ", ".join(self._at(value) for value in given)
        what = ", ".join(step.op.name for step in steps)
        self.lines.append(
            f"{to}= {name}({args})  # {what}" if to else f"{name}({args})"
        )


class _Chain:
    """The text of a chain."""

    def __init__(
        self,
        writer: Writer,
        group: list[int],
        given: Sequence[Value],
        outs: Sequence[Value],
    ):
        self.writer, self.group, self.given, self.outs = writer, group, given, outs
        out = writer.steps[group[0]].out
        self.shape = out.shape_at(None)
        self.arrays = [value for value in given if not _is_number(value)]
        small = [v for v in self.arrays if math.prod(v.shape_at(None)) == 1]
        full = [v for v in self.arrays if v.shape_at(None) == self.shape]
        self.whole = [v for v in self.arrays if v.shape_at(None)[0] != self.shape[0]]
        self.is_flat = len(small) + len(full) == len(self.arrays)
        if self.is_flat:
            self.whole = small
        size = math.prod(self.shape)
        self.is_large = _is_large(out)
        self.loops: dict[int, Loop] = {}  # by the first step that each computes
        self.count = size if self.is_flat else self.shape[0]
        each = size // self.count * max(v.dtype.itemsize for v in (out, *outs))
        self.step = max(1, STRETCH // each)
        self.grain = max(self.step, ALONE // each // len(group))
        if writer.is_compiled and self.is_flat:
            self._find_loops()
        if not self.is_large:
            self.step = self.count

    def source(self, name: str) -> str:
        """The function: it takes what is given, and gives what is held."""
        scope, writer = self.writer.scope, self.writer
        scope.update(empty=buffers.empty, share=threads.run)
        lines: list[str] = []
        for value in self.outs:
            dtype, shape = writer._constant(value.dtype), writer._constant(self.shape)  # pyright: ignore[reportPrivateUsage] - one file
            lines.append(f"{value.name} = empty({shape}, {dtype})")
        if self.group[0] in self.loops and len(self.loops) == 1:
            (loop,) = self.loops.values()
            if loop.end == self.group[-1]:  # nothing stands in between
                self.step = max(self.grain, 1 << 16)
        flat = ".reshape(-1)" if self.is_flat else ""
        scope["in_one_piece"] = np.ascontiguousarray
        for value in self.arrays:
            text = f"{value.name}{flat}"
            if self.loops:  # which step from one number to the next
                text = f"in_one_piece({text})"
            lines.append(f"f_{value.name} = {text}")
        for value in self.outs:
            lines.append(f"f_{value.name} = {value.name}{flat}")
        if self.is_large:
            lines.append("def work(start, stop):")
            lines += [f"    {line}" for line in self._work()]
            if self._is_shared():
                lines.append(f"share(work, (), {self.count}, {self.grain})")
            else:
                lines.append(f"work(0, {self.count})")
        else:
            lines += self._work()
        found = "".join([f"{value.name}, " for value in self.outs])
        lines.append(f"return {found or '()'}")
        args = ", ".join(v.name for v in self.given)
        return _text(f"{name}({args})", lines)

    def _is_shared(self) -> bool:
        """Whether calls are long enough for threads that wait for Python's lock."""
        steps = [self.writer.steps[i] for i in self.group]
        cost = sum(SLOW if step.op.name in COSTLY else BRIEF for step in steps)
        calls = len(steps) - sum(loop.length - 1 for loop in self.loops.values())
        each = self.step * math.prod(self.shape) // self.count
        return cost * each >= QUICK * calls

    def _find_loops(self) -> None:
        """Find steps in a row that one loop can compute."""
        steps, row = self.writer.steps, list[int]()
        for i in [*self.group, -1]:
            if i >= 0 and expressions(steps[i]) is not None:
                row.append(i)
                continue
            if len(row) > 1:
                self.loops[row[0]] = self._loop(row)
            row = []

    def _loop(self, row: list[int]) -> "Loop":
        steps, last = self.writer.steps, self.writer.last
        made = [v for i in row for v in steps[i].outputs if v is not None]
        outs = [v for v in made if v in self.outs or last[v] > row[-1]]
        return Loop([steps[i] for i in row], outs, row[-1], set(self.whole))

    def _work(self) -> list[str]:  # noqa: C901, PLR0915 - one loop
        """All ops for some stretches."""
        writer, steps = self.writer, self.writer.steps
        named = {v: v.name for v in self.given if _is_number(v)}
        named |= {v: f"f_{v.name}" for v in self.whole}
        kept = set(self.outs)
        inner: list[str] = []
        for value in (*self.arrays, *self.outs):
            if value not in self.whole:
                named[value] = f"p_{value.name}"
                part = "[start_:stop_]" if self.is_large else ""
                inner.append(f"p_{value.name} = f_{value.name}{part}")
        buffers_ = _Buffers(self, named)
        skipped = -1
        for i in self.group:
            if i <= skipped:
                continue
            loop = self.loops.get(i)
            if loop is not None:
                skipped = loop.end
                for value in loop.outs:
                    if value not in kept:
                        buffers_.take(value)
                inner.append(loop.call(writer, named))
                for value in loop.reads:
                    if writer.last[value] <= loop.end:
                        buffers_.give_up(value)
                continue
            step = steps[i]
            ufunc = writer._ufunc(step)  # pyright: ignore[reportPrivateUsage] - one file
            ends = [v for v in step.values if writer.last[v] == i]
            if ufunc is None:
                outs = ["_" if v is None else f"t_{v.name}" for v in step.outputs]
                to = ", ".join(outs) + (", " if step.is_tuple else "")
                inner.append(f"{to} = {writer._call(step, named)}")  # pyright: ignore[reportPrivateUsage]
                for value in step.outputs:
                    if value in kept:
                        inner.append(f"p_{value.name}[...] = t_{value.name}")
                    elif value is not None:
                        named[value] = f"t_{value.name}"
                for one in step.values:  # what it gave may be a view of what it took
                    buffers_.keep(one)
                continue
            given = [writer._at(v, named) for v in step.inputs]  # pyright: ignore[reportPrivateUsage]
            if step.out in kept:
                for one in ends:
                    buffers_.give_up(one)
            else:
                for one in ends:  # written over where it is read
                    buffers_.give_up(one)
                buffers_.take(step.out)
            name = writer._constant(ufunc, step.op.name)  # pyright: ignore[reportPrivateUsage]
            inner.append(f"{name}({', '.join([*given, named[step.out]])})")
        if not self.is_large:
            return [*buffers_.lines, *inner]
        head = f"for start_ in range(start, stop, {self.step}):"
        last = [f"stop_ = min(start_ + {self.step}, stop)"]
        if buffers_.names:
            last.append(f"if stop_ - start_ < {self.step}:")
            last += [f"    {name} = {name}[:stop_ - start_]" for name in buffers_.names]
        return [*buffers_.lines, head, *[f"    {line}" for line in (*last, *inner)]]


class _Buffers:
    """The short buffers of a chain: which are free, and what stands in the others."""

    def __init__(self, chain: _Chain, named: dict[Value, str]):
        self.chain, self.named = chain, named
        self.lines: list[str] = []
        self.names: list[str] = []
        self.free: dict[Any, list[str]] = {}
        self.owner: dict[Value, str] = {}

    def take(self, value: Value) -> None:
        """A buffer for a value."""
        spare = self.free.setdefault(value.dtype, [])
        if not spare:
            chain = self.chain
            spare.append(f"b{len(self.names)}")
            self.names.append(spare[-1])
            rest = (chain.step, *(() if chain.is_flat else chain.shape[1:]))
            constant = chain.writer._constant  # pyright: ignore[reportPrivateUsage] - one file
            shape, dtype = constant(rest), constant(value.dtype)
            self.lines.append(f"{spare[-1]} = empty({shape}, {dtype})")
        self.owner[value] = self.named[value] = spare.pop()

    def give_up(self, value: Value) -> None:
        """What stands in a buffer is needed no longer."""
        name = self.owner.pop(value, None)
        if name is not None:
            self.free.setdefault(value.dtype, []).append(name)

    def keep(self, value: Value) -> None:
        """Never use a buffer for something else."""
        self.owner.pop(value, None)


def _is_large(value: Value) -> bool:
    return math.prod(value.shape_at(None)) * value.dtype.itemsize >= LARGE


def _arrays(step: Step) -> list[Value]:
    return [v for v in step.values if not _is_number(v)]


def _is_array(value: object) -> bool:
    return type(value) is Value and value.kind != "number"


def _is_number(value: object) -> bool:
    return type(value) is Value and value.kind == "number"


def _text(head: str, lines: Sequence[str]) -> str:
    return "\n".join([f"def {head}:", *[f"    {line}" for line in lines], ""])
