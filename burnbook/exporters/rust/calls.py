"""Which layer ran with what: the calls in a captured program.

A program is a flat list of ops. Rust has functions: so each tensor that enters or
leaves a layer passes a mark, an op that does nothing, and the program says where it
stands. What a layer is given beside tensors (None, a number, the masks in an
`MhaInput`) is kept as it was.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from burnbook.core.op import Op
from burnbook.core.tree import DATACLASS, Kind, Pytree
from burnbook.exporters.rust.decompose import with_products
from burnbook.module import Module
from burnbook.module.layers import layers_of
from burnbook.nn.attention.mha import MhaOutput
from burnbook.program import Program, Step, Value, capture
from burnbook.program.trees import OPAQUE
from burnbook.tensor import Tensor, apply

ATTENDED = Kind(
    parts=lambda out: [("context", out.context), ("weights", out.weights)],
    map=lambda out, go: _attended(go(out.context), go(out.weights)),
    values=lambda out: [out.context, out.weights],
)
TREE = Pytree({Module: OPAQUE, MhaOutput: ATTENDED}, dataclass=DATACLASS)
TREE.known[Value] = None  # a leaf, though it is a dataclass
#: Methods that are called from outside, besides those named forward….
METHODS = {"GateController": ("gate_product",), "RotaryEncoding": ("apply",)}


def _mark(xp: Any, x: Any, *, call: int, leaf: int, leaving: bool) -> Any:
    """Nothing: x as it is. It says that a tensor enters or leaves a call."""
    return x


MARK = Op(_mark, "F>F I>I B>B")


def _attended(context: Tensor, weights: Tensor) -> MhaOutput:
    return MhaOutput(context, lambda: weights)


@dataclass(eq=False)
class Call:
    """One call of a method of one layer.

    path: of the layer in the model, "" for the model itself. given: the arguments by
    name, with a Value for each tensor, as the caller has it; inside: as the layer has
    it. gives, made: what it returned, inside and for the caller. body: the ops and
    calls in it, in order.
    """

    path: str
    layer: Any
    method: str
    given: dict[str, Any]
    inside: dict[str, Any] = field(default_factory=dict)
    gives: Any = None
    made: Any = None
    body: list[Step | Call] = field(default_factory=list)

    @property
    def arguments(self) -> list[Value]:
        """The tensors that go in, as the layer has them."""
        return TREE.collect(self.inside, Value, [])

    def all(self) -> Iterator[Call]:
        """This call and those in it, the outermost first."""
        yield self
        for part in self.body:
            if isinstance(part, Call):
                yield from part.all()


class Seat:
    """Where a tensor stood in what a layer was given or gave."""

    __slots__ = ("number",)

    def __init__(self, number: int):
        self.number = number


@dataclass
class _Noted:
    """A call as it happened: trees with a Seat for each tensor."""

    path: str
    layer: Any
    method: str
    given: dict[str, Any]
    made: Any = None


def captured(
    model: Module, examples: tuple[Any, ...], method: str, batch: Any
) -> tuple[Program, Call]:
    """The program of a model, and the calls in it as one tree.

    Raises:
        GraphError: it cannot be captured, see `burnbook.program.capture`.
    """
    copy = _plain(model).clone()
    notes = Notes()
    seen: set[int] = set()
    for path, layer, _ in layers_of(copy):
        if id(layer) in seen:  # in two places: it has the path of the first
            continue
        seen.add(id(layer))
        extra = METHODS.get(type(layer).__name__, ())
        for name in dir(type(layer)):
            wanted = name.startswith("forward") or name in extra
            if path == "" and name == method:
                wanted = True
            if wanted and inspect.isroutine(getattr(layer, name, None)):
                run = getattr(layer, name)
                layer.__dict__[name] = notes.around(path, layer, name, run)
    program = with_products(capture(copy, *examples, method=method, batch=batch))
    return program, notes.tree(program)


def _plain(model: Module) -> Module:
    while any(device.ad_enabled for device in model.devices()):
        model = model.valid()
    return model


class Notes:
    """Notes the calls of a run; a run starts with the call of the model itself."""

    def __init__(self) -> None:
        self.calls: list[_Noted] = []  # of the last run that came to its end
        self.running: list[_Noted] = []
        self.depth = 0

    def around(
        self, path: str, layer: Any, method: str, run: Callable[..., Any]
    ) -> Callable[..., Any]:
        """What stands in the place of a method."""
        signature = inspect.signature(run)

        def noting(*args: Any, **named: Any) -> Any:
            if self.depth == 0:
                self.running = []
            bound = signature.bind(*args, **named)
            bound.apply_defaults()
            number = len(self.running)
            seats, marked = _passed(dict(bound.arguments), number, leaving=False)
            note = _Noted(path, layer, method, seats)
            self.running.append(note)
            bound.arguments.update(marked)
            self.depth += 1
            try:
                out = run(*bound.args, **bound.kwargs)
            finally:
                self.depth -= 1
            note.made, out = _passed(out, number, leaving=True)
            if self.depth == 0:
                self.calls = self.running
            return out

        return noting

    def tree(self, program: Program) -> Call:
        """The calls of the last run, with the values of the program."""
        ins: dict[tuple[int, int], tuple[Value, Value]] = {}
        outs: dict[tuple[int, int], tuple[Value, Value]] = {}
        stack: list[tuple[int, list[Step | Call]]] = [(-1, [])]
        open_calls: dict[int, Call] = {}
        for step in program.steps:
            if step.op is not MARK:
                stack[-1][1].append(step)
                continue
            number, leaf = step.attrs["call"], step.attrs["leaf"]
            pair = step.inputs[0], step.out
            if not step.attrs["leaving"]:
                if number not in open_calls:
                    note = self.calls[number]
                    call = Call(note.path, note.layer, note.method, {})
                    open_calls[number] = call
                    stack[-1][1].append(call)
                    stack.append((number, call.body))
                ins[number, leaf] = pair
                continue
            if number not in open_calls:  # it was given no tensor: a step of its caller
                stack[-1][1].append(step)
                continue
            outs[number, leaf] = pair
            if number in [held for held, _ in stack]:
                while stack[-1][0] != number:
                    stack.pop()
                stack.pop()
        for number, call in open_calls.items():
            note = self.calls[number]
            call.given = _seated(note.given, number, ins, 0)
            call.inside = _seated(note.given, number, ins, 1)
            call.gives = _seated(note.made, number, outs, 0)
            call.made = _seated(note.made, number, outs, 1)
        return next(iter(open_calls.values()))


def _passed(tree: Any, number: int, *, leaving: bool) -> tuple[Any, Any]:
    """A tree with a Seat for each tensor, and one with each tensor behind a mark.

    A tensor that stands in several places stays one.
    """
    seats: dict[int, Seat] = {}
    marked: dict[int, Tensor] = {}

    def change(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        if id(leaf) not in marked:
            seats[id(leaf)] = Seat(len(seats))
            attrs = {"call": number, "leaf": len(marked), "leaving": leaving}
            marked[id(leaf)] = apply(MARK, leaf, **attrs)
        return marked[id(leaf)]

    made = TREE.map(tree, change)
    told = TREE.map(
        tree, lambda leaf: seats[id(leaf)] if isinstance(leaf, Tensor) else leaf
    )
    return told, made


def _seated(
    tree: Any,
    number: int,
    pairs: dict[tuple[int, int], tuple[Value, Value]],
    side: int,
) -> Any:
    """A tree with values in place of the seats."""

    def change(leaf: Any) -> Any:
        if not isinstance(leaf, Seat):
            return leaf
        return pairs[number, leaf.number][side]

    return TREE.map(tree, change)
