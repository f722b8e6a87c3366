"""From a program to kernels: views, chains of ops that are fused, and memory."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.core.op import BackwardOp
from burnbook.exporters.forms import (
    codes_of,
    output_names,
    program_of,
    refuse_twice,
    refuse_without_form,
)
from burnbook.exporters.lowering.calls import (
    KINDS,
    Argument,
    Call,
    Chain,
    Line,
    Made,
    Plan,
    Read,
    Storage,
    View,
)
from burnbook.exporters.lowering.registry import FORMS, NoForm
from burnbook.exporters.lowering.sizes import largest, product, strides_of
from burnbook.program import Program, Shape, Step, Value, size_text
from burnbook.program.capture import Batch
from burnbook.program.sizes import Dim, at

MOST_READS = 6  # of a chain: WebGPU promises eight buffers in a kernel
MOST_LINES = 48
MOST_COPIED = 1 << 16  # elements that a constant may have when it is laid anew
LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1  # of whole numbers
NUMBERS = (int, float, np.integer, np.floating)  # that literals may be
DIVISIONS = ("div", "remainder", "fmod")
OF_BUFFER = re.compile(r"b[0-9]+")  # see Storage.place
USUAL_BATCH = 8  # by which buffers are compared where the batch says how large they are


class Lowering:
    """One program on its way to kernels."""

    def __init__(
        self,
        program: Program,
        reserved: Iterable[str] = (),
        output_names: Sequence[str] = (),
    ):
        self.output_names = output_names
        self.program = program.simplify(constants=True)
        self.codes = _codes(program)
        self.calls: list[Call | Chain] = []
        self.views: dict[Value, View] = {}
        self.waiting: dict[Value, Chain] = {}  # chains that may grow
        self.constants: list[Storage] = []
        self.names: set[str] = set(reserved)
        self.problems: list[tuple[str, str, str]] = []
        self.note = ""

    # ── the whole ───────────────────────────────────────────────────────────

    def run(self) -> Plan | None:
        """Every step as kernels; None where something has no form, see `problems`."""
        program = self.program
        inputs: list[tuple[Value, Storage]] = []
        for value in program.inputs:
            try:
                made = self._input(value)
            except NoForm as why:
                self.problems.append(("input", value.name, str(why)))
                made = self._nothing(value)
            inputs.append((value, made))
        for step in program.steps:
            try:
                self._write(step)
            except NoForm as why:
                problem = (step.op.name, step.path, str(why))
                if problem not in self.problems:
                    self.problems.append(problem)
                for value in step.outputs:
                    if value is not None:
                        self._nothing(value)
        if self.problems:
            return None
        outputs = [(value, self._output(value)) for value in program.outputs]
        used = {one for call in self.calls for one in call.inputs}
        constants = [one for one in self.constants if one in used]
        keep = {storage for _, storage in outputs}
        buffers = self._placed(keep)
        parts = (inputs, outputs, constants, self.calls, buffers)
        return Plan(program.name, *parts, list(self.output_names))

    def _input(self, value: Value) -> Storage:
        """The storage of an input."""
        kind = KINDS.get(value.dtype.kind)
        if kind is None:
            raise NoForm(f"there are no elements of type {value.dtype_name}")
        size = product(value.shape)
        made = Storage(self.fresh(value.name), "input", kind, size)
        self.views[value] = View.whole(made, value.shape)
        return made

    def _nothing(self, value: Value) -> Storage:
        """Something in place of a value that cannot be there, for the steps behind."""
        kind = KINDS.get(value.dtype.kind, "f32")
        made = Storage(self.fresh(value.name), "input", kind, 1)
        self.views[value] = View(made, value.shape, (0,) * len(value.shape))
        return made

    def _write(self, step: Step) -> None:
        if isinstance(step.op, BackwardOp):
            raise NoForm("it is a gradient, which only training needs")
        form = FORMS.get(step.op.name)
        if form is None:
            raise NoForm("it has no kernel there")
        for value in step.outputs:
            if value is not None and value.dtype.kind not in KINDS:
                raise NoForm(f"there are no elements of type {value.dtype_name}")
        attrs = {
            name: value
            for name, value in {**step.op.attrs, **step.attrs}.items()
            if value is not inspect.Parameter.empty
        }
        title = step.path.partition(".")[2] or step.op.name
        self.note = f"{title} {size_text(step.out.shape)}"
        form(self, step, **attrs)
        more = [v for v in step.outputs[1:] if v is not None and v not in self.views]
        if any(self.program.uses[value] for value in more):
            raise NoForm("its further results are for gradients, which need training")

    def _output(self, value: Value) -> Storage:
        """The storage of an output, which is one of the results."""
        view = self.view(value)
        if view.storage.role == "result" and view.is_whole:
            return view.storage
        self.note = f"{value.name} {size_text(value.shape)}"
        made = self.new(value.name, value.shape, view.storage.kind)
        self.copy(view, View.whole(made, value.shape))
        return made

    # ── what forms ask ──────────────────────────────────────────────────────

    def fresh(self, name: str) -> str:
        """A name that nothing else has, of letters, digits and underscores.

        None is that of a buffer.
        """
        first = plain(name)
        found, count = first, 2
        while found in self.names or OF_BUFFER.fullmatch(found):
            found = f"{first}_{count}"
            count += 1
        self.names.add(found)
        return found

    def view(self, value: Value) -> View:
        """A value as a view; a chain that waits for it is closed."""
        chain = self.waiting.pop(value, None)
        if chain is not None:
            self.calls.append(chain)
        if value not in self.views:
            self.views[value] = self._constant_of(value)
        return self.views[value]

    def whole(self, value: Value | View) -> Storage:
        """The storage of a value, in which it lies in order and alone."""
        view = self.view(value) if isinstance(value, Value) else value
        if view.is_whole:
            return view.storage
        made = self._copied(view, view.storage.name)
        if isinstance(value, Value):
            self.views[value] = View.whole(made, value.shape)
        return made

    def result(self, value: Value) -> Storage:
        """A new storage for the result of a step."""
        kind = KINDS.get(value.dtype.kind, "f32")
        made = self.new(value.name, value.shape, kind)
        self.views[value] = View.whole(made, value.shape)
        return made

    def new(self, name: str, shape: Shape, kind: str = "f32") -> Storage:
        """A new storage for something between."""
        return Storage(self.fresh(name), "result", kind, product(shape))

    def array(self, array: NDArray[Any], name: str) -> Storage:
        """Numbers that a kernel needs beside the weights: tables, biases of zeros."""
        array = np.ascontiguousarray(array)
        for one in self.constants:
            known = one.array
            if known is not None and one.codes is None and one.kind != "bool":
                same = known.dtype == array.dtype and known.size == array.size
                if same and np.array_equal(known, array.ravel()):
                    return one
        return self._constant(array, name)

    def known(self, value: Value | None) -> np.ndarray | None:
        """The numbers of a constant; None where they are known only in a run."""
        if value is None or value not in self.program.constants:
            return None
        return self.program.array(value)

    def call(self, kernel: str, out: Storage, *, sizes: Any, **reads: Storage) -> None:
        """Add a call of a kernel."""
        self.calls.append(Call(kernel, reads, out, sizes, self.note))

    def element(self, step: Step, op: str = "", **attrs: Any) -> None:
        """The step as one line of a chain, fused with what it is computed from.

        op: what the line is called, where it is not called as the op is.
        """
        takes = next(
            (KINDS[v.dtype.kind] for v in step.inputs if isinstance(v, Value)), "f32"
        )
        gives = KINDS[step.out.dtype.kind]
        line = Line(op or step.op.name, tuple(step.inputs), takes, gives, attrs)
        self.grow(step.out, [line])

    def grow(self, out: Value, lines: list[Line]) -> None:
        """A chain of lines whose arguments are Values, Views, numbers and `Made`.

        A chain that only one op reads, and that goes through the same elements, becomes
        part of the chain of that op.
        """
        made: list[Line] = []
        reads: list[View] = []
        places: list[int] = []  # of each of our lines in the chain
        begun: dict[Value, int] = {}

        def place(argument: Any) -> Argument:
            if isinstance(argument, Made):
                return Made(places[argument.place])
            if not isinstance(argument, (Value, View)):
                return argument
            if isinstance(argument, Value) and argument in begun:
                return Made(begun[argument])
            if isinstance(argument, Value) and self._joins(argument, out, made, reads):
                chain = self.waiting.pop(argument)
                begun[argument] = _append(made, reads, chain)
                return Made(begun[argument])
            view = self.view(argument) if isinstance(argument, Value) else argument
            view = view.stretched(out.shape)
            if view not in reads:
                reads.append(view)
            return Read(reads.index(view))

        for line in lines:
            refuse_numbers(line)
            args = tuple(place(argument) for argument in line.args)
            made.append(Line(line.op, args, line.takes, line.gives, line.attrs))
            places.append(len(made) - 1)
        storage = self.result(out)
        chain = Chain(made, reads, View.whole(storage, out.shape), self.note)
        if self.program.uses[out] == 1 and out not in self.program.outputs:
            self.waiting[out] = chain
        else:
            self.calls.append(chain)

    def copy(self, view: View, out: View, op: str = "copy") -> None:
        """Elements from one place to another."""
        kind = view.storage.kind
        line = Line(op, (Read(0),), kind, out.storage.kind)
        self.calls.append(Chain([line], [view.stretched(out.shape)], out, self.note))

    def fill(self, number: Any, out: View) -> None:
        """One number everywhere."""
        kind = out.storage.kind
        self.put([Line("copy", (number,), kind, kind)], out)

    def put(self, lines: list[Line], out: View) -> None:
        """A chain of lines whose arguments are Views, numbers and `Made`."""
        reads: list[View] = []

        def place(argument: Any) -> Argument:
            if not isinstance(argument, View):
                return argument
            view = argument.stretched(out.shape)
            if view not in reads:
                reads.append(view)
            return Read(reads.index(view))

        made: list[Line] = []
        for line in lines:
            refuse_numbers(line)
            args = tuple(map(place, line.args))
            made.append(Line(line.op, args, line.takes, line.gives))
        self.calls.append(Chain(made, reads, out, self.note))

    # ── between ─────────────────────────────────────────────────────────────

    def _joins(
        self, value: Value, out: Value, made: list[Line], reads: list[View]
    ) -> bool:
        """Whether a chain that waits may become part of one with this result."""
        chain = self.waiting.get(value)
        if chain is None or value.shape != out.shape:
            return False
        views = {view.storage for view in [*reads, *chain.reads]}
        return len(views) < MOST_READS and len(made) + len(chain.lines) < MOST_LINES

    def _copied(self, view: View, name: str) -> Storage:
        """A view in order; of a constant it is another constant."""
        array, kind = view.storage.array, view.storage.kind
        sizes = [n for n in (*view.shape, *view.strides) if not isinstance(n, Dim)]
        is_fixed = len(sizes) == 2 * len(view.shape)
        if array is not None and is_fixed and not isinstance(view.offset, Dim):
            shape, strides = sizes[: len(view.shape)], sizes[len(view.shape) :]
            if prod(shape) <= max(array.size, MOST_COPIED):
                places = np.array(view.offset)
                for size, step in zip(shape, strides, strict=True):
                    places = places[..., None] + np.arange(size) * step
                return self.array(array[places.astype(np.int64)], name)
        made = self.new(name, view.shape, kind)
        self.copy(view, View.whole(made, view.shape))
        return made

    def _constant_of(self, value: Value) -> View:
        made = self._constant(self.program.array(value), value.name)
        made.codes = self.codes.get(value.name)
        return View.whole(made, value.shape)

    def _constant(self, array: np.ndarray, name: str) -> Storage:
        kind = KINDS.get(array.dtype.kind)
        if kind is None:
            raise NoForm(f"there are no elements of type {array.dtype}")
        flat = array.ravel()
        if (
            kind == "i32"
            and flat.size
            and (flat.max() > HIGHEST or flat.min() < LOWEST)
        ):
            raise NoForm("a whole number of it has more than 32 bits")
        flat = flat.astype({"f32": np.float32, "i32": np.int32}.get(kind, np.uint8))
        made = Storage(self.fresh(name), "constant", kind, flat.size, array=flat)
        self.constants.append(made)
        return made

    def _placed(self, keep: set[Storage]) -> list[tuple[str, list[Any]]]:
        """Give every result a buffer; one that is read no more makes room."""
        last: dict[Storage, int] = {}
        for number, call in enumerate(self.calls):
            for storage in [*call.inputs, call.target]:
                last[storage] = number
        slots: list[tuple[str, list[Any]]] = []
        free: list[int] = []
        for number, call in enumerate(self.calls):
            out = call.target
            if out.slot < 0:
                out.slot = _room(out, slots, free)
            ends = {s for s in [*call.inputs, out] if last[s] == number}
            for storage in sorted(ends - keep, key=lambda s: s.slot):
                if storage.role == "result" and storage.slot not in free:
                    free.append(storage.slot)
        return [(kind, largest(sizes)) for kind, sizes in slots]


def _room(out: Storage, slots: list[tuple[str, list[Any]]], free: list[int]) -> int:
    """A free buffer, the smallest that is large enough; or it grows."""
    wanted = _usual(out.size)
    fits = [slot for slot in free if slots[slot][0] == out.kind]
    sizes = {slot: max(map(_usual, slots[slot][1])) for slot in fits}
    enough = [slot for slot in fits if sizes[slot] >= wanted]
    if enough:
        found = min(enough, key=lambda slot: sizes[slot])
    elif fits:
        found = max(fits, key=lambda slot: sizes[slot])
    else:
        slots.append((out.kind, [out.size]))
        return len(slots) - 1
    free.remove(found)
    slots[found][1].append(out.size)
    return found


def _usual(size: Any) -> float:
    return at(size, USUAL_BATCH) if isinstance(size, Dim) else size


def _append(made: list[Line], reads: list[View], chain: Chain) -> int:
    """Put the lines of a chain behind others; the place of its result."""
    begin = len(made)
    for view in chain.reads:
        if view not in reads:
            reads.append(view)

    def moved(argument: Any) -> Argument:
        if isinstance(argument, Made):
            return Made(argument.place + begin)
        if isinstance(argument, Read):
            return Read(reads.index(chain.reads[argument.place]))
        return argument

    for line in chain.lines:
        args = tuple(map(moved, line.args))
        made.append(Line(line.op, args, line.takes, line.gives, line.attrs))
    return len(made) - 1


def plain(name: str) -> str:
    """A name of letters, digits and underscores, which begins with a letter.

    Example:
        >>> plain("conv1.weight"), plain("*/ größe"), plain("1")
        ('conv1_weight', 'v____gr__e', 'v_1')
    """
    found = re.sub(r"\W", "_", name, flags=re.ASCII)[:80].rstrip("_") or "v"
    return found if found[0].isalpha() else f"v_{found}"


def refuse_numbers(line: Line) -> None:
    """Raise for literals among whole numbers that their 32 bits do not hold."""
    for argument, kind in zip(line.args, line.kinds_taken, strict=True):
        number = argument if isinstance(argument, NUMBERS) else 0
        if kind == "i32" and not LOWEST <= number <= HIGHEST:
            raise NoForm(f"the whole number {number} has more than 32 bits")
    if line.op in DIVISIONS and line.takes == "i32" and line.args[1] == 0:
        raise NoForm("it divides a whole number by zero")


def _codes(program: Program) -> dict[str, tuple[np.ndarray, float]]:
    """The codes of quantized weights that fit 8 bits, by the names of the weights."""
    found: dict[str, tuple[np.ndarray, float]] = {}
    for step in program.steps:
        if step.op.name != "from_codes":
            continue
        if all(value in program.constants for value in step.values):
            known = codes_of(step, program.array)
            if known is not None:
                found[step.out.name] = known[0].ravel(), known[1]
    return found


def lowered(
    where: str,
    model: object,
    examples: tuple[Any, ...],
    batch: Batch = 0,
    reserved: Iterable[str] = (),
    names: Sequence[str] = (),
) -> Plan:
    """A model as kernels.

    where: who asks, for errors. reserved: names that inputs and constants must not get.
    names: what the outputs are called, see `output_names`.

    Raises: ArgumentError with all operations that have no kernel, and where they stand.
    """
    program = program_of(where, model, examples, batch)
    outputs = output_names(where, program, names, any_key=True)
    refuse_twice(where, "output", list(names))
    lowering = Lowering(program, reserved, outputs)
    plan = lowering.run()
    if plan is None:
        refuse_without_form(where, lowering.problems)
        raise AssertionError("there is a plan where nothing is wrong")
    return plan


def problems(
    where: str, model: Any, examples: tuple[Any, ...], batch: Batch = 0
) -> list[tuple[str, str, str]]:
    """What of a model has no kernel: op, where it stands, and why."""
    lowering = Lowering(program_of(where, model, examples, batch))
    lowering.run()
    return lowering.problems


def straight(storage: Storage, shape: Shape) -> View:
    """A storage as an array of a shape."""
    return View(storage, shape, strides_of(shape))
