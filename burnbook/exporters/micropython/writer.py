"""A file for MicroPython as it is written: its calls, its memory, its weights."""

from __future__ import annotations

import base64
import builtins
import inspect
import keyword
import math
import re
import textwrap
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from burnbook.core.op import BackwardOp
from burnbook.exporters.forms import codes_of, refuse_without_form
from burnbook.exporters.lowering.files import shown
from burnbook.exporters.lowering.lowering import plain
from burnbook.exporters.micropython import kernels
from burnbook.exporters.micropython.registry import (
    FORMS,
    MATH,
    UNARY,
    NoForm,
    literal,
)
from burnbook.program import Program, Step, Value, mapped, resolved

IN_FILE = 4096  # bytes of weights from which on they are read line by line
SIZES = {"f": 4, "i": 4, "b": 1}  # bytes of an element
OWN = {"x", "array", "predict"}  # what a file itself names
RESERVED = {*dir(builtins), *keyword.kwlist, *vars(kernels), *MATH, *OWN}
OFFERED = {  # the constants, functions and classes of kernels.py itself
    name
    for name, one in vars(kernels).items()
    if isinstance(one, float) or getattr(one, "__module__", "") == kernels.__name__
}
BY_TABLE = {*UNARY, "leaky_relu", "elu", "softplus", "clamp", "power"}
INSTEAD = {  # of ops without a form: what has one
    **dict.fromkeys(
        ("mean_dim", "mean"), "nn.AdaptiveAvgPool1d(1) or AdaptiveAvgPool2d"
    ),
    "mask_where": "mask_fill, with one number",
    "max_dim": "a max pool as long as the dim",
}
TAKES_INT8 = {
    *("conv2d", "conv", "linear", "max_pool2d", "max_pool"),
    *("adaptive_avg_pool2d", "adaptive_avg_pool", "avg_pool2d", "avg_pool"),
}


def _without_form(step: Step) -> str:
    other = INSTEAD.get(step.op.name)
    return "files of MicroPython have none" + (f"; but {other}" if other else "")


@dataclass
class Buffer:
    """Memory that several values use, one after the other."""

    name: str
    code: str
    length: int = 0


@dataclass
class View:
    """What a value is called, and the memory behind it; scale: of int8."""

    name: str
    buffer: Buffer | None
    length: int
    scale: float = 1.0


@dataclass
class Writer:
    """What a file consists of so far."""

    program: Program
    largest: dict[Value, float] | None
    lines: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=lambda: set(RESERVED))
    held: dict[str, str] = field(default_factory=dict)  # names of constants
    functions: dict[str, str] = field(default_factory=dict)
    views: dict[Value, dict[str, View]] = field(default_factory=dict)
    named: list[View] = field(default_factory=list)
    free: list[Buffer] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    waiting: list[tuple[str, int, int]] = field(default_factory=list)
    weights: int = 0
    note: str = ""

    def __post_init__(self) -> None:
        self.roots: dict[Value, Value] = {}
        self.left: dict[Value, int] = {}
        self.skipped: set[Step] = set()
        self.tables: dict[Any, str] = {}
        self.numbers: dict[Value, np.ndarray] = {}
        self.codes: dict[Value, tuple[np.ndarray, float]] = {}

    @property
    def is_int8(self) -> bool:
        """Whether layers compute with whole numbers."""
        return self.largest is not None

    # ── the file ────────────────────────────────────────────────────────────

    def text(self) -> tuple[str, int, int]:
        """The file, the bytes of its arrays, and the bytes of its weights."""
        program = self.program
        self._read_constants()
        steps = [step for step in program.steps if step.out not in self.numbers]
        for step in steps:
            for value in step.values:
                self.left[value] = self.left.get(value, 0) + 1
        self.left[program.outputs[0]] = self.left.get(program.outputs[0], 0) + 1
        source = program.inputs[0]
        count = math.prod(self.shape(source))
        self.views[source] = {"f": View("x", None, count)}
        problems: list[tuple[str, str, str]] = []
        for step in steps:
            if step in self.skipped:
                continue
            try:
                self._write(step)
            except NoForm as why:
                problem = step.op.name, step.path, str(why)
                if problem not in problems:
                    problems.append(problem)
                self.views[step.out] = {"f": View("_", None, 1)}
        refuse_without_form("to_micropython", problems)
        return self._assembled(source, count)

    def _read_constants(self) -> None:
        """The numbers of constants, and of what follows from them alone."""
        program, backend = self.program, self.program.backend
        self.numbers = {value: program.array(value) for value in program.constants}
        for step in program.steps:
            known = step.values and all(value in self.numbers for value in step.values)
            if not known or isinstance(step.op, BackwardOp):
                continue

            def put(leaf: Any) -> Any:
                if isinstance(leaf, Value):
                    return backend.from_numpy(self.numbers[leaf])
                return resolved(leaf, 1)

            found = backend.run(
                step.op, mapped(step.inputs, put), mapped(step.attrs, put)
            )
            outs = found if step.is_tuple else (found,)
            for value, array in zip(step.outputs, outs, strict=True):
                if value is not None:
                    self.numbers[value] = np.asarray(backend.to_numpy(array))
            if step.op.name == "from_codes":
                codes = codes_of(step, self.numbers.__getitem__)
                if codes is not None:
                    self.codes[step.out] = codes

    def _write(self, step: Step) -> None:
        if isinstance(step.op, BackwardOp):
            raise NoForm("it is a gradient, which only training needs")
        form = FORMS.get(step.op.name)
        if form is None:
            raise NoForm(_without_form(step))
        attrs = {**step.op.attrs, **step.attrs}
        place = step.path.partition(".")[2] or step.op.name
        self.note = shown(f"{place} {list(self.shape(step.out))}")
        form(self, step, attrs)
        for value in step.values:
            self._release(value)

    def _assembled(self, source: Value, count: int) -> tuple[str, int, int]:
        program = self.program
        result = self.floats(program.outputs[0])
        sizes = [self.shape(v) for v in (source, program.outputs[0])]
        memory = sum(b.length * SIZES[b.code] for b in self.buffers)
        head = [
            f'"""{shown(program.name)}, written by burnbook.',
            "",
            f"predict(x): {count} numbers, {list(sizes[0])} row by row, give",
            f"{math.prod(sizes[1])}, {list(sizes[1])}.",
            "",
            f"Weights {self.weights:,} bytes, memory {memory:,} bytes.",
            '"""',
            "",
            *self._imports(),
            "",
        ]
        body = [*self._sources(), *self.functions.values(), ""]
        body += ["# Weights", *self._weights(), "", "# Memory"]
        for buffer in self.buffers:
            size = SIZES[buffer.code] * buffer.length
            body.append(f'{buffer.name} = array("{buffer.code}", bytearray({size}))')
        for view in self.named:
            if view.buffer is not None:
                whole = f"memoryview({view.buffer.name})"
                body.append(f"{view.name} = {whole}[:{view.length}]")
        body += ["", "", "def predict(x):", '    """One example."""']
        body += [f"    if len(x) != {count}:"]
        body += [f'        raise ValueError("x must have {count} numbers")']
        body += [f"    {line}" for line in self.lines]
        body += [f"    return list({result})", ""]
        text = "\n".join([*head, *body])
        if self.rows:
            text += "\n# The larger weights, a row in each line. Do not change them.\n"
            text += "".join(f"#: {row.decode()}\n" for row in self.rows)
        return text, memory, self.weights

    def _imports(self) -> list[str]:
        text = "\n".join([*self._sources(), *self.functions.values()])
        names = [n for n in MATH if re.search(rf"\b{n}[(,]", text)]
        found = ["from array import array"]
        if self.weights:
            found.append("from binascii import a2b_base64")
        if names:
            found.append(f"from math import {', '.join(sorted(names))}")
        return found

    def _sources(self) -> list[str]:
        """The functions that are used, in the order of kernels.py."""
        found = []
        calls = [line.partition("#")[0] for line in self.lines]
        calls = " ".join([*self.functions.values(), *calls])
        used = {*self.used, *re.findall(r"\w+", calls)}
        if self.waiting:
            used.add("Rows")
        if any("Held(" in text for text in self.held.values()):
            used.add("Held")
        known = {n: one for n, one in vars(kernels).items() if n in OFFERED}
        todo = [*used & OFFERED]
        while todo:
            called = getattr(known[todo.pop()], "__code__", None)
            more = OFFERED.intersection(called.co_names if called else ()) - used
            used |= more
            todo += more
        for name, made in known.items():
            if name in used and isinstance(made, float):
                found.append(f'{name} = float("{made}")')
            elif name in used:
                source = inspect.getsource(made).rstrip()
                source = source.replace(
                    "  # noqa: SIM115 - closed after the last row", ""
                )
                found += ["", *source.split("\n"), ""]
        return found

    def _weights(self) -> list[str]:
        """The constants; where rows stand in the file is known from its end."""
        total = sum(len(row) + 4 for row in self.rows)
        at = [0]
        for row in self.rows:
            at.append(at[-1] + len(row) + 4)
        found = [f"{name} = {text}" for name, text in self.held.items()]
        for name, first, count in self.waiting:
            place = f"{at[first] - total}, {count}"
            found.append(f"{name} = Rows(__file__, {place})")
        return found

    # ── what forms ask ──────────────────────────────────────────────────────

    def shape(self, value: Value) -> tuple[int, ...]:
        """The sizes of a value for one example."""
        return resolved(value.shape, 1)

    def sized(self, attr: Any) -> Any:
        """An attribute for one example."""
        return resolved(attr, 1)

    def known(self, value: Any) -> np.ndarray:
        """The numbers of a constant."""
        if not isinstance(value, Value) or value not in self.numbers:
            raise NoForm("one of its weights is computed")
        return self.numbers[value].astype(np.float32)

    def may_be_zero(self, value: Any) -> bool:
        """Whether a number is zero, or one of a value's may be."""
        if isinstance(value, Value):
            return value not in self.numbers or not self.numbers[value].all()
        return not value

    def call(self, function: str, *given: Any) -> None:
        """Add a call of a kernel."""
        self.used.add(function)
        text = f"{function}({', '.join(_text(one) for one in given)})"
        self.lines.append(f"{text}  # {self.note}" if self.note else text)
        self.note = ""

    def floats(self, value: Any) -> str:
        """The name of a value's numbers, as floats."""
        if value in self.numbers:
            return self.constant(value)
        forms = self.views[self._root(value)]
        if "f" not in forms:
            whole = forms["b"]
            forms["f"] = self._view(value, "f", whole.length)
            self.call("to_float", whole.name, forms["f"].name, whole.scale)
        return forms["f"].name

    def whole(self, value: Value) -> View:
        """A value as whole numbers."""
        forms = self.views[self._root(value)]
        if "b" not in forms:
            floats = forms["f"]
            forms["b"] = self._view(value, "b", floats.length)
            forms["b"].scale = self.scale(value)
            self.call("to_int8", floats.name, forms["b"].name, forms["b"].scale)
        return forms["b"]

    def scale(self, value: Value) -> float:
        """What a step of whole numbers stands for, by the examples."""
        largest = (self.largest or {}).get(value, 0.0)
        return _short(largest / 127) or 1.0

    def as_it_is(self, value: Value) -> str:
        """The name of a value in the form that it has."""
        if value in self.numbers:
            return self.constant(value)
        forms = self.views[self._root(value)]
        return (forms.get("b") or forms["f"]).name

    def alike(self, value: Value, out: Value) -> str:
        """A place for a result in the form of an input."""
        forms = self.views.get(self._root(value), {})
        if "b" not in forms:
            return self.result(out)
        view = self._view(out, "b", math.prod(self.shape(out)))
        view.scale = forms["b"].scale
        self.views[out] = {"b": view}
        return view.name

    def any_scale(self, value: Value) -> tuple[str, float]:
        """A value in the form that it has, and what a step of it stands for."""
        forms = self.views[self._root(value)]
        view = forms.get("b") or forms["f"]
        return view.name, view.scale

    def result(self, value: Value) -> str:
        """A place for a result, as floats."""
        view = self._view(value, "f", math.prod(self.shape(value)))
        self.views[value] = {"f": view}
        return view.name

    def scratch(self, length: int) -> Any:
        """Memory for a moment; it is not used again."""
        buffer = self._buffer("f", length)
        name = self._new(f"{buffer.name}_view")
        self.named.append(View(name, buffer, length))
        return _Name(name)

    def same(self, step: Step) -> None:
        """The result is the input in another shape."""
        value = step.inputs[0]
        if value in self.numbers:
            raise NoForm("it reshapes a constant")
        root = self._root(value)
        self.roots[step.out] = root
        self.left[root] = self.left.get(root, 0) + self.left.get(step.out, 0)

    def unary(self, step: Step, text: str, place: int = 0) -> None:
        """A function of every number; of whole numbers a table."""
        value = step.inputs[place]
        forms = self.views[self._root(value)]
        if "b" in forms and self._wanted_whole(step.out):
            self._by_table(step, forms["b"], text)
            return
        x = self.floats(value)
        self.call("each", self.function(text), x, self.result(step.out))

    def _by_table(self, step: Step, given: View, text: str) -> None:
        scope = {name: getattr(math, name) for name in MATH}
        function = eval(f"lambda x: {text}", {**scope, **vars(kernels)})
        scale = self.scale(step.out)
        table = [_nearest(function(n * given.scale) / scale) for n in range(-127, 128)]
        name = self._held(np.array(table, np.int8), f"{step.op.name}_table", "b")
        view = self._view(step.out, "b", given.length)
        view.scale = scale
        self.views[step.out] = {"b": view}
        self.call("by_table", name, given.name, view.name)

    def pairs(self, step: Step, text: str) -> None:
        """A function of two arrays, of which one may be repeated."""
        x, y = step.inputs
        whole = self.shape(step.out)
        repeats = [n for value in (x, y) for n in _repeats(self.shape(value), whole)]
        names = self.floats(x), self.floats(y)
        self.call("pairs", self.function(text), *names, self.result(step.out), *repeats)

    def function(self, text: str) -> Any:
        """The name of a function of x, or of x and y."""
        names = "x, y" if re.search(r"\by\b", text) else "x"
        known = self.tables.get(text)
        if known is None:
            known = self.tables[text] = self._new(f"f{len(self.functions) + 1}")
            lines = f"def {known}({names}):\n    return {text}\n\n"
            self.functions[known] = lines
        return _Name(known)

    def table(self, content: Any, hint: str) -> Any:
        """A constant of nested tuples, by name."""
        text = repr(content)
        known = self.tables.get(text)
        if known is None:
            known = self.tables[text] = self._new(f"{hint}_{len(self.held) + 1}")
            self.held[known] = text
        return _Name(known)

    def constant(self, value: Value) -> str:
        """The name of a constant, as floats."""
        return self.array(self.known(value), value.name)

    def array(self, numbers: np.ndarray, hint: str = "bias") -> str:
        """The name of an array of floats that is held in the file."""
        return self._held(np.asarray(numbers, np.float32), hint, "f")

    def bias(self, step: Step, count: int, place: int = 2) -> np.ndarray:
        """The bias of a layer, zeros where it has none."""
        inputs = step.inputs
        if len(inputs) <= place or inputs[place] is None:
            return np.zeros(count, np.float32)
        return self.known(inputs[place])

    def int8(
        self,
        step: Step,
        weight: Value,
        bias: np.ndarray,
        rows: tuple[int, int],
        sizes: Any,
    ) -> None:
        """A linear layer or convolution of whole numbers, with the relu behind it."""
        x = self.whole(step.inputs[0])
        codes, scale = self._codes(weight)
        out, low = step.out, -127
        follower = self._only_relu(out)
        if follower is not None:
            self.skipped.add(follower)
            out, low = follower.out, 0
        factor = x.scale * scale
        length = math.prod(self.shape(out))
        if self._wanted_whole(out):
            view = self._view(out, "b", length)
            view.scale = self.scale(out)
            factor, bias = factor / view.scale, bias / view.scale
        else:
            view = self._view(out, "f", length)
        name = self._rows(codes.reshape(rows), weight.name)
        held = self._held(bias.astype(np.float32), "bias", "f")
        bound = low if view.buffer is not None and view.buffer.code == "b" else None
        count = len(bias) if sizes is None else sizes[2][2]
        sums = self._buffer("i", count)
        line = View(self._new(f"sums_{len(self.named)}"), sums, count)
        self.named.append(line)
        given = (x.name, name, held, view.name, line.name)
        if sizes is None:
            self.call("linear_int8", *given, _short(factor), bound)
        else:
            self.call("conv_int8", *given, sizes, _short(factor), bound)
        self.free.append(sums)
        self.views[out] = {view.buffer.code if view.buffer else "f": view}
        if follower is not None and bound is None:
            relu = self.function(UNARY["relu"])
            self.call("each", relu, view.name, view.name)
        if follower is not None:
            self.left[step.out] = 0

    def _codes(self, weight: Value) -> tuple[np.ndarray, float]:
        """Weights as whole numbers: their own codes, or the nearest."""
        known = self.codes.get(weight)
        if known is not None:
            return known
        numbers = self.known(weight)
        scale = float(np.abs(numbers).max(initial=0)) / 127 or 1.0
        return np.rint(numbers / scale).astype(np.int8), scale

    def _only_relu(self, value: Value) -> Step | None:
        users = [step for step in self.program.steps if value in step.values]
        is_output = value in self.program.outputs
        if len(users) != 1 or is_output or users[0].op.name != "relu":
            return None
        return users[0]

    def _wanted_whole(self, value: Value) -> bool:
        """Whether all that use a value take whole numbers."""
        if not self.is_int8 or value in self.program.outputs:
            return False
        users = [step for step in self.program.steps if value in step.values]
        for step in users:
            if step.op.name in BY_TABLE | {"reshape"}:
                if not self._wanted_whole(step.out):
                    return False
            elif step.op.name not in TAKES_INT8:
                return False
        return True

    def _new(self, name: str) -> str:
        """A name that nothing else in the file has."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    # ── memory ──────────────────────────────────────────────────────────────

    def _root(self, value: Value) -> Value:
        while value in self.roots:
            value = self.roots[value]
        return value

    def _view(self, value: Value, code: str, length: int) -> View:
        buffer = self._buffer(code, length)
        name = self._new(plain(value.name) + ("_q" if code == "b" else ""))
        view = View(name, buffer, length)
        self.named.append(view)
        return view

    def _buffer(self, code: str, length: int) -> Buffer:
        """Memory that is free, the smallest that is large enough; or it grows."""
        fits = [b for b in self.free if b.code == code]
        large = [b for b in fits if b.length >= length]
        if large:
            found = min(large, key=lambda b: b.length)
        elif fits:
            found = max(fits, key=lambda b: b.length)
        else:
            name = self._new(f"MEMORY_{len(self.buffers) + 1}")
            found = Buffer(name, code)
            self.buffers.append(found)
            found.length = length
            return found
        self.free.remove(found)
        found.length = max(found.length, length)
        return found

    def _release(self, value: Value) -> None:
        """Let memory go that nothing will read any more."""
        root = self._root(value)
        self.left[root] = self.left.get(root, 0) - 1
        if self.left[root] <= 0 and root in self.views:
            for view in self.views[root].values():
                if view.buffer is not None and view.buffer not in self.free:
                    self.free.append(view.buffer)

    def _held(self, array: np.ndarray, hint: str, code: str) -> str:
        """The name of an array in the file; equal ones are held once."""
        text = f'array("{code}", {_bytes_text(array)})'
        return self._named_once(text, hint, array.nbytes)

    def _named_once(self, text: str, hint: str, size: int) -> str:
        known = self.tables.get(text)
        if known is None:
            known = self._new(plain(hint).upper())
            self.tables[text] = known
            self.held[known] = text
            self.weights += size
        return known

    def _rows(self, codes: np.ndarray, hint: str) -> str:
        """Weights row by row: held, or as lines of the file where they are many."""
        if codes.nbytes < IN_FILE:
            text = f"Held({_bytes_text(codes)}, {codes.shape[1]})"
            return self._named_once(text, hint, codes.nbytes)
        name = self._new(plain(hint).upper())
        self.waiting.append((name, len(self.rows), len(codes)))
        self.rows += [base64.b64encode(row.tobytes()) for row in codes]
        self.weights += codes.nbytes
        return name


class _Name(str):
    """Text that is a name, and not a string in the file."""


def _text(given: Any) -> str:
    if isinstance(given, str):
        return given
    if isinstance(given, tuple):
        inner = ", ".join(map(_text, given))
        return f"({inner},)" if len(given) == 1 else f"({inner})"
    return literal(given) if isinstance(given, float) else repr(given)


def _short(number: float) -> float:
    """A float that single precision holds, as boards compute with."""
    return float(np.float32(number))


def _nearest(value: float) -> int:
    """The nearest whole number of 8 bits; they have no NaN, so it is 0."""
    return 0 if value != value else int(min(max(value, -127), 127) + 127.5) - 127


def _repeats(shape: tuple[int, ...], whole: tuple[int, ...]) -> tuple[int, int]:
    """How many numbers in a row use one element, and how many elements there are."""
    shape = (1,) * (len(whole) - len(shape)) + shape
    wide = [i for i, n in enumerate(shape) if n != 1]
    if not wide:
        return math.prod(whole), 1
    first, last = wide[0], wide[-1] + 1
    if shape[first:last] != whole[first:last]:
        raise NoForm("it stretches in the middle")
    return math.prod(whole[last:]), math.prod(whole[first:last])


def _bytes_text(array: np.ndarray) -> str:
    """The bytes of an array as text in lines of 76."""
    text = base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes())
    parts = textwrap.wrap(text.decode(), 76) or [""]
    if len(parts) == 1:
        return f'a2b_base64(b"{parts[0]}")'
    lines = "\n".join(f'    b"{part}"' for part in parts)
    return f"a2b_base64(\n{lines}\n)"
