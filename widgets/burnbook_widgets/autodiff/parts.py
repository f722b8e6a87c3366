"""The parts of a graph with their values and gradients.

The tape keeps only what gradient rules ask for. A part's value is taken from where it
can be had: the tensors that the reader holds, what its own op or a later one keeps, or
the op run once more on inputs that are known. What is nowhere is shown as forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from burnbook.backend.autodiff import Graph, GraphNode
from burnbook.core.errors import BurnbookError, GraphError
from burnbook.core.op import OPS
from burnbook.module import Module
from burnbook.tensor import Tensor, apply
from burnbook_widgets.autodiff.value_recorder import RecordedValues, ValueRecorder

MOST = 5000  # steps of a graph that can be looked at
KINDS = {
    "op": "op",
    "leaf": "asks for its gradient",
    "data": "input without gradient",
    "lost": "input without gradient, not kept",
}


@dataclass(frozen=True)
class ProgramStep:
    """A step of a captured program, as the view asks for it."""

    name: str
    op: Any
    attrs: dict[str, Any]


@dataclass
class Part:
    """A step of a graph, a leaf, or an input that no gradient flows to.

    origin: where its value was found. inputs: for each input of the op its name and the
    number of the part that it came from. whole: whether these are all its inputs.
    turn: which of several nameless ops of its kind it is, from 1. note: what it is,
    where its kind does not say it. path: the module that ran it, where that is known.
    """

    kind: str
    step: GraphNode | ProgramStep | None = None
    name: str = ""
    shape: tuple[Any, ...] | None = None
    value: np.ndarray | None = None
    origin: str = ""
    gradient: np.ndarray | None = None
    inputs: list[tuple[str, int]] = field(default_factory=list)
    whole: bool = True
    turn: int = 0
    note: str = ""
    path: str | None = None

    @property
    def op(self) -> str:
        """The name of the op; empty for what is no op."""
        return self.step.name if self.step is not None and self.kind == "op" else ""

    @property
    def label(self) -> str:
        """What stands at its head: "y = tanh", "w", "2"."""
        if self.op and self.name:
            return f"{self.name} = {self.op}"
        return self.called

    @property
    def called(self) -> str:
        """Its name, or what one may call it: "y", "mul 2", "0.5"."""
        if self.name:
            return self.name
        if self.op:
            return f"{self.op} {self.turn}" if self.turn else self.op
        if self.kind == "leaf":
            return "a leaf"
        number = self.value is not None and self.value.size == 1
        return brief(self.value) if number else "a constant"

    @property
    def size(self) -> str:
        """The shape as text."""
        if self.shape is None:
            return ""
        return str(list(self.shape)) if self.shape else "a number"


@dataclass
class Parts:
    """All parts, inputs before what is made of them, and the order of the way back."""

    parts: list[Part]
    back: list[int]

    @property
    def forward(self) -> list[int]:
        """The ops in the order in which they ran."""
        return [i for i, part in enumerate(self.parts) if part.kind == "op"]

    @property
    def edges(self) -> list[tuple[int, int]]:
        """From which part to which values flow, each pair once for each input."""
        parts = enumerate(self.parts)
        return [(came, i) for i, part in parts for _, came in part.inputs]


def read(
    loss: Tensor, named: Mapping[str, Any], recorder: ValueRecorder | None = None
) -> Parts:
    """The parts of the graph behind a tensor; `named` are tensors and modules.

    recorder: values that were written down while it was computed.
    """
    graph = loss.graph()
    if len(graph) > MOST:
        raise GraphError(
            "GraphView",
            f"the graph has {len(graph):,} steps, more than {MOST:,} are too many",
            cure="the graph of one layer, or print(loss.graph())",
        )
    found = _Reader(graph, loss, named, recorder.of(graph) if recorder else {})
    found.collect()
    found.compute_again()
    _count_nameless(found.parts)
    order = {step: i for i, step in enumerate(p.step for p in found.parts) if step}
    back: list[int] = []
    for step, gradient in graph.gradients():
        found.parts[order[step]].gradient = as_array(gradient)
        back.append(order[step])
    return Parts(found.parts, back)


class _Reader:
    """Reads one graph into parts."""

    def __init__(
        self, graph: Graph, loss: Tensor, named: Mapping[str, Any], kept: RecordedValues
    ):
        self.graph = graph
        self._kept = kept
        self.parts: list[Part] = []
        self._number: dict[GraphNode, int] = {}
        self._data: dict[Any, int] = {}
        self._known: dict[GraphNode, tuple[str, np.ndarray]] = {}
        self._names: dict[Any, str] = {}
        for name, tensor in tensors_in(named):
            step = step_of(tensor)
            array = np.asarray(tensor)
            if step is not None:
                self._known.setdefault(step, (name, array))
            else:
                self._names.setdefault(_identity(array), name)
        root = graph.root
        name = self._known.get(root, ("", None))[0]
        self._known[root] = (name, np.asarray(loss))

    def collect(self) -> None:
        """Every step from the oldest to the newest, each after its inputs."""
        for step in reversed(list(self.graph)):
            part = Part("leaf" if step.op is None else "op", step, shape=step.shape)
            _, given = self._kept.get(step, (None, ()))
            for place, (name, value, came) in enumerate(_inputs_of(step)):
                if value is None and place < len(given):
                    value = given[place]
                self._join(part, name, value, came)
            name, array = self._known.get(step, ("", None))
            part.name = name
            if array is not None:
                part.value, part.origin = array, "the tensor itself"
            elif "out" in step.kept:
                part.value = as_array(step["out"])
                part.origin = f"the tape keeps it: the rules of {step.name} ask for it"
            elif step in self._kept:
                part.value, part.origin = self._kept[step][0], WRITTEN
            self._number[step] = len(self.parts)
            self.parts.append(part)

    def _join(self, part: Part, name: str, value: Any, came: GraphNode | None) -> None:
        array = as_array(value)
        step = part.step
        assert isinstance(step, GraphNode)
        if came is not None:
            number = self._number[came]
            source = self.parts[number]
            if source.value is None and array is not None:
                source.value = array
                source.origin = f"the tape keeps it: {step.name} asks for its {name}"
            part.inputs.append((name, number))
        elif array is not None:
            kept = name in step.kept or name.partition("[")[0] in step.kept
            number = self._constant(array, step.name, name)
            if not kept:
                self.parts[number].origin = WRITTEN
            part.inputs.append((name, number))
        elif name in getattr(step.op, "optional", ()):
            part.whole = False  # it may have been left out, or not be kept
        else:
            part.inputs.append((name, len(self.parts)))
            self.parts.append(Part("lost", origin=FORGOTTEN))

    def _constant(self, array: np.ndarray, op: str, name: str) -> int:
        key = _identity(array)
        if array.ndim and key in self._data:
            return self._data[key]
        said = self._names.get(key, name if array.size > 1 else "")
        origin = f"the tape keeps it: {op} asks for its {name}"
        part = Part("data", None, said, array.shape, array, origin)
        self._data[key] = len(self.parts)
        self.parts.append(part)
        return self._data[key]

    def compute_again(self) -> None:
        """Find what is not kept by running ops whose inputs are known."""
        for part in self.parts:
            if part.value is not None:
                continue
            part.origin = FORGOTTEN
            known = [self.parts[came].value is not None for _, came in part.inputs]
            if part.kind == "op" and part.whole and all(known):
                part.value = self._run(part)
            if part.value is not None:
                part.origin = "not kept, so computed again from its inputs"

    def _run(self, part: Part) -> np.ndarray | None:
        step = part.step
        assert isinstance(step, GraphNode)
        op = step.op
        if OPS.get(step.name) is not op:
            return None
        rank, device = len(step.shape), self.graph.backend.inner
        given: list[Tensor] = []
        for _, came in part.inputs:
            array = self.parts[came].value
            assert array is not None
            whole = array if array.ndim else array.reshape((1,) * rank)
            given.append(Tensor.from_numpy(whole, device))
        try:
            made = as_array(apply(op, *given, **step.attrs))
        except BurnbookError:  # its inputs are not all that it was given
            return None
        return made if made is not None and made.shape == step.shape else None


def _count_nameless(parts: list[Part]) -> None:
    """Tell ops of one kind apart that have no names."""
    alike: dict[str, list[Part]] = {}
    for part in parts:
        if part.op and not part.name:
            alike.setdefault(part.op, []).append(part)
    for several in alike.values():
        for turn, part in enumerate(several, start=1):
            part.turn = turn if len(several) > 1 else 0


WRITTEN = "recorded as it ran"
FORGOTTEN = (
    "not kept: no rule of the backward pass asks for it; "
    "GraphView(lambda: …) around the computation shows it"
)


def _inputs_of(step: GraphNode) -> Iterator[tuple[str, Any, GraphNode | None]]:
    """Each input of a step: its name, its value where it is kept, its own step."""
    if step.op is None:
        return
    names, came = list(step.op.inputs), step.inputs
    many = getattr(step.op, "many", False)
    for i, source in enumerate(came):
        name = names[0] if many else names[i]
        held = step[name] if name in step.kept else None
        if many:
            held = held[i] if isinstance(held, (list, tuple)) else None
            name = f"{name}[{i}]"
        yield name, held, source


def tensors_in(named: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a mapping, those of modules under "model.linear.weight"."""
    for name, thing in named.items():
        if isinstance(thing, Tensor):
            yield name, thing
        elif isinstance(thing, Module):
            for path, param in thing.named_params():
                if param.is_initialized:
                    yield f"{name}.{path}", param.val()


def step_of(tensor: Tensor) -> GraphNode | None:
    """The step of a graph that a tensor is; None if it is in none."""
    try:
        return tensor.graph().root
    except BurnbookError:
        return None


def as_array(value: Any) -> np.ndarray | None:
    """A tensor, a number or an array as an array in the main memory."""
    if isinstance(value, Tensor):
        return np.asarray(value)
    plain = isinstance(value, (int, float, np.ndarray, np.generic))
    return np.asarray(value) if plain else None


def brief(array: np.ndarray | None, room: float = 1e9, size: float = 11.0) -> str:
    """A few of the numbers, never a part of one: "0.5 −0.25 1 …".

    room: the pixels that there are, for letters of a size.
    """
    if array is None:
        return ""
    flat = array.ravel()
    if flat.size == 1:  # alone, a number has room for its digits
        number = flat.tolist()[0]
        exact = f"{number:.6g}".replace("-", "−")
        if type(number) is float and text_width(exact, size) <= room:
            return exact
    figures = [_figure(number) for number in flat[:3].tolist()]
    for count in range(len(figures), 0, -1):
        text = " ".join(figures[:count]) + (" …" if count < flat.size else "")
        if text_width(text, size) <= room:
            return text
    return " ".join(figures[:1])


NARROW, BROAD = set(" .,:;'|!()[]{}ijltfrI1-/"), set("mwMW@%…→∂")


def text_width(text: str, size: float, bold: bool = False) -> float:
    """About how many pixels a text takes, rather too many than too few.

    Example:
        >>> text_width("will", 10.0) < text_width("mamma", 10.0)
        True
    """
    wide = sum(
        0.36 if c in NARROW else 1.0 if c in BROAD else 0.74 if c.isupper() else 0.67
        for c in text
    )
    return wide * size * (1.08 if bold else 1.0)


def fitted(text: str, room: float, size: float, bold: bool = False) -> str:
    """A text with as much as there is room for; of a path the end says the most."""
    if text_width(text, size, bold) <= room:
        return text
    path = "." in text and " " not in text
    while len(text) > 1:
        text = text[1:] if path else text[:-1]
        cut = f"…{text}" if path else f"{text}…"
        if text_width(cut, size, bold) <= room:
            return cut
    return "…"


def _figure(number: Any) -> str:
    return f"{number:.3g}".replace("-", "−") if type(number) is float else str(number)


def _identity(array: np.ndarray) -> Any:
    if not array.ndim:
        return object()  # numbers are not the same by being equal
    return array.__array_interface__["data"][0], array.shape, array.strides
