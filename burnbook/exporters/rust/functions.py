"""From the ops and calls of one run of a method to the body of a Rust function.

Each op or call is one line; the shape of its result stands behind it. A tensor that is
used again later is cloned, which in Burn shares its memory; the last use consumes it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from burnbook.exporters.rust.calls import TREE, Call
from burnbook.exporters.rust.operations import PUBLIC, kind_of, written
from burnbook.exporters.rust.text import (
    KEYWORDS,
    Dialect,
    Reported,
    Untranslatable,
    identifier,
    number,
)
from burnbook.program import Dim, Step, Value
from burnbook.program.sizes import size_text

WIDTH = 88  # of a line with its shape behind it


class Places(Protocol):
    """Where a function finds what is not among its arguments."""

    dialect: Dialect

    def of_value(self, value: Value, function: Function) -> str:
        """A parameter, a state or a constant."""
        ...

    def call(self, call: Call, function: Function) -> Made:
        """A call of a part of this module."""
        ...

    def uses(self, call: Call) -> list[Value]:
        """The tensors that such a call reads, as often as it names them."""
        ...


@dataclass
class Made:
    """A call in Rust: the expression, and how its result comes apart.

    places: for each tensor that it gives, where that is: "" for the result itself, ".0"
    or ".context" for a part of it.
    """

    text: str
    places: dict[Value, str]
    pattern: bool = False  # a tuple, that a `let` takes apart


@dataclass
class Function:
    """A method of a module, as Rust."""

    call: Call
    places: Places
    lines: list[tuple[str, str]] = field(default_factory=list)  # code, shape
    names: dict[Value, str] = field(default_factory=dict)
    left: Counter[Value] = field(default_factory=Counter)
    taken: set[str] = field(default_factory=set)
    needs_batch: bool = False
    needs_device: bool = False
    declared: list[str] = field(default_factory=list)  # the arguments with types
    signature: str = ""
    result: str = ""
    tail_shape: str = ""  # of the result, where that is a call
    refused: dict[str, None] = field(default_factory=dict)  # reasons, in order
    incomplete: bool = False  # a part that it calls was refused

    @property
    def dialect(self) -> Dialect:
        """The release that it is written for."""
        return self.places.dialect

    @property
    def key(self) -> tuple[str, ...]:
        """The code without the shapes: equal functions are equal in this."""
        return (self.signature, *[code for code, _ in self.lines], self.result)

    def write(self, name: str) -> Function:
        """Write the whole function.

        Raises:
            Untranslatable: Burn has no word for something in it: a line for each.
            Reported: it calls a part for which Burn has no word.
        """
        given = arguments_of(self.call.inside)
        body = self._alive()
        for path, value in given:
            plain = self._new_name(path)
            self.names[value] = plain
            kind = self.dialect.tensor(len(value.shape), kind_of(value))
            unused = "" if self.left[value] else "_"
            self.declared.append(f"{unused}{plain}: {kind}")
        for part in body:
            self._try_part(part)
        if self.refused:
            raise Untranslatable("\n".join(self.refused))
        if self.incomplete:
            raise Reported(name)
        gives = TREE.collect(self.call.gives, Value, [])
        if not gives:
            raise Untranslatable(f"{name} gives no tensor")
        kinds = [self.dialect.tensor(len(v.shape), kind_of(v)) for v in gives]
        results = [self.expression(value) for value in gives]
        self.result = results[0] if len(gives) == 1 else f"({', '.join(results)})"
        made = kinds[0] if len(gives) == 1 else f"({', '.join(kinds)})"
        self._tail()
        self.signature = f"{name}(&self, {', '.join(self.declared)}) -> {made}"
        if not given:
            raise Untranslatable(f"{name} takes no tensor")
        self._header(given)
        return self

    def expression(self, value: Any) -> str:
        """A tensor that may be consumed, or a number."""
        if isinstance(value, Dim):
            return self.element(value, value.is_float)
        if not isinstance(value, Value):
            return number(value)
        name = self.names.get(value)
        if name is None:
            return self.places.of_value(value, self)
        self.left[value] -= 1
        return f"{name}.clone()" if self.left[value] > 0 else name

    def size(self, size: Any) -> str:
        """A size, with n for that of the batch."""
        if not isinstance(size, Dim):
            return str(size)
        self.needs_batch = True
        text = "n" if size.scale == 1 else f"{size.scale} * n"
        if size.offset:
            sign = "+" if size.offset > 0 else "-"
            text += f" {sign} {abs(size.offset)}"
        return text

    def element(self, value: Any, is_float: bool) -> str:
        """A number as an element of a tensor: floats as f64, others as i64."""
        if not isinstance(value, Dim):
            return number(float(value) if is_float else int(value))
        self.needs_batch = True
        kind, change = ("f64", float) if is_float else ("i64", int)
        text = f"n as {kind}"
        text += "" if value.scale == 1 else f" * {number(change(value.scale))}"
        if value.offset:
            sign = "+" if value.offset > 0 else "-"
            text += f" {sign} {number(change(abs(value.offset)))}"
        if abs(value.power) == 0.5:
            text = f"({text}).sqrt()"
        elif abs(value.power) == 2:
            text = f"({text}).powi(2)"
        if value.power < 0:
            inner = f"({text})" if value.power == -1 else text
            return f"{number(float(value.factor))} / {inner}"
        return text if value.factor == 1 else f"{number(value.factor)} * ({text})"

    def device(self) -> str:
        """A reference to the device of the inputs."""
        self.needs_device = True
        return "&device"

    def _alive(self) -> list[Step | Call]:
        """What leads to the results, in order; how often each value is used."""
        wanted = Counter(TREE.collect(self.call.gives, Value, []))
        alive: list[Step | Call] = []
        for part in reversed(self.call.body):
            if isinstance(part, Call):
                made = TREE.collect(part.made, Value, [])
                used = self.places.uses(part)
            else:
                made = [v for v in part.outputs if v is not None]
                used = _inputs(part)
            if any(value in wanted for value in made):
                alive.append(part)
                wanted.update(used)
        self.left = wanted
        return alive[::-1]

    def _try_part(self, part: Step | Call) -> None:
        """Write a part, or note why it cannot be, and go on with the rest."""
        try:
            self._write_part(part)
        except Untranslatable as reason:
            if isinstance(reason, Reported):
                self.incomplete = True
            elif isinstance(part, Step) and part.line:
                self.refused[f"{reason}, {part.line}: {part.line.text}"] = None
            else:
                self.refused[str(reason)] = None
            if isinstance(part, Step):
                made = [value for value in part.outputs if value is not None]
            else:
                made = TREE.collect(part.made, Value, [])
            self.names.update(dict.fromkeys(made, "x"))

    def _write_part(self, part: Step | Call) -> None:
        if isinstance(part, Step):
            used = _inputs(part)
            text = written(part, self)
            outs = [v for v in part.outputs if v is not None]
            main = outs[0]
            extra = [v for v in outs[1:] if self.left[v]]
            if extra:
                name = PUBLIC.get(part.op.name, part.op.name)
                raise Untranslatable(f"Burn's {name} gives one result")
            self._let(main, text, used)
            return
        made = self.places.call(part, self)
        used = self.places.uses(part)
        wanted = [value for value in made.places if self.left[value]]
        if len(wanted) == 1 and made.places[wanted[0]] == "":
            self._let(wanted[0], made.text, used)
            return
        if made.pattern:
            self._take_apart(made, used)
            return
        if len(wanted) == 1 and made.places[wanted[0]].count(".") == 1:
            self._let(wanted[0], made.text + made.places[wanted[0]], used)
            return
        whole = self._new_name("found")
        self.lines.append((f"let {whole} = {made.text};", ""))
        for value in wanted:
            self.names[value] = whole + made.places[value]

    def _take_apart(self, made: Made, used: Sequence[Value]) -> None:
        """A `let` with a name for each part of a tuple that is wanted."""
        names: dict[str, str] = {}
        count = 1 + max(int(place.split(".")[1]) for place in made.places.values())
        for value, place in made.places.items():
            first, _, rest = place[1:].partition(".")
            if not self.left[value]:
                names.setdefault(first, "_")
                continue
            if names.get(first, "_") == "_":
                base = self._free(used) if not rest else None
                names[first] = base or self._new_name("state" if rest else "x")
            self.names[value] = names[first] + (f".{rest}" if rest else "")
        pattern = ", ".join(names.get(str(i), "_") for i in range(count))
        self.lines.append((f"let ({pattern}) = {made.text};", ""))

    def _let(self, value: Value, text: str, used: Sequence[Value]) -> None:
        name = self._free(used) or self._new_name("x")
        self.names[value] = name
        self.lines.append((f"let {name} = {text};", size_text(value.shape)))

    def _free(self, used: Sequence[Value]) -> str | None:
        """The name of an input that nobody needs any more: the result has it then."""
        kept = {identifier_of(text).lstrip("_") for text in self.declared} - {"x"}
        for value in used:
            name = self.names.get(value)
            if name in kept or name is None or "." in name:
                continue
            if not self.left[value]:
                return name
        return None

    def _new_name(self, base: str) -> str:
        wanted = identifier(base, "x").lower()
        if wanted in KEYWORDS or wanted in ("n", "device", "self"):
            wanted += "_"
        name, count = wanted, 1
        while name in self.taken:
            count += 1
            name = f"{wanted}{count}"
        self.taken.add(name)
        return name

    def _tail(self) -> None:
        """Let the last line be the result itself, where it is only named for that."""
        if not self.lines:
            return
        found = re.fullmatch(r"let (\w+) = (.*);", self.lines[-1][0], re.DOTALL)
        if found and found[1] == self.result:
            shape = self.lines.pop()[1]
            self.result = found[2]
            self.tail_shape = shape

    def _header(self, given: Sequence[tuple[str, Value]]) -> None:
        first: list[tuple[str, str]] = []
        if self.needs_device:
            first.append((f"let device = {self._argument(given[0][1])}.device();", ""))
        if self.needs_batch:
            first.append((self._batch(given), ""))
        self.lines[:0] = first

    def _argument(self, value: Value) -> str:
        """The name that an argument came with."""
        return next(
            identifier_of(text)
            for text, (_, one) in zip(
                self.declared, arguments_of(self.call.inside), strict=True
            )
            if one is value
        )

    def _batch(self, given: Sequence[tuple[str, Value]]) -> str:
        rows = [
            (size, value, dim)
            for _, value in given
            for dim, size in enumerate(value.shape)
            if isinstance(size, Dim)
        ]
        if not rows:
            raise Untranslatable("the size of the batch, which no argument has")
        size, value, dim = min(rows, key=lambda row: (row[0].scale, abs(row[0].offset)))
        text = f"{self._argument(value)}.dims()[{dim}]"
        if size.offset:
            text = f"({text} {'-' if size.offset > 0 else '+'} {abs(size.offset)})"
        return f"let n = {text}{f' / {size.scale}' if size.scale != 1 else ''};"


def identifier_of(declared: str) -> str:
    """The name in `name: Tensor<B, 2>`."""
    return declared.partition(":")[0]


def arguments_of(tree: dict[str, Any]) -> list[tuple[str, Value]]:
    """The tensors in what a method is given, each once, with a name for each."""
    found: dict[Value, str] = {}
    for path, leaf in TREE.leaves(tree):
        if isinstance(leaf, Value) and leaf not in found:
            found[leaf] = "_".join(_without_star(path))
    return [(path, value) for value, path in found.items()]


def _without_star(path: tuple[str, ...]) -> tuple[str, ...]:
    """The name of an argument; the first of `*inputs` is "input", the next "input2"."""
    if len(path) > 1 and path[0] == "inputs" and path[1].isdigit():
        number = int(path[1])
        return (f"input{number + 1}" if number else "input", *path[2:])
    return path


def _inputs(step: Step) -> list[Value]:
    """The values that a step reads, as often as it reads them."""
    found: list[Value] = []
    for given in step.inputs:
        parts = given if isinstance(given, (list, tuple)) else (given,)
        found += [value for value in parts if isinstance(value, Value)]
    return found
