"""What goes in and comes out as trees, and what a model holds by name."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from burnbook.backend.fusion.deferred import plain
from burnbook.core.errors import GraphError
from burnbook.core.tree import DATACLASS, PLAIN, Go, Kind, Path, Pytree
from burnbook.module import Module, Param, RunningState
from burnbook.module.tree import walk
from burnbook.nn.attention.mha import MhaOutput
from burnbook.program.recording import identity
from burnbook.program.sizes import Dim, at
from burnbook.tensor import Tensor, TensorData
from burnbook.tensor.quantized import QuantizedTensor

OPAQUE = Kind(parts=lambda value: (), map=lambda value, go: value, values=lambda v: ())


def _no_weights() -> Tensor:
    what = "a program computes what was asked for when it was captured"
    cure = "capture(lambda x: layer.forward(x).weights, …)"
    raise GraphError("weights", what, cure=cure)


#: What an attention gives, without the weights that nobody has asked for.
ATTENTION = Kind(
    parts=lambda value: [("context", value.context)],
    map=lambda value, go: MhaOutput(go(value.context), _no_weights),
    values=lambda value: [value.context],
)
#: Arguments and results: containers and dataclasses of tensors; models are leaves.
ARGUMENTS = Pytree({Module: OPAQUE, MhaOutput: ATTENTION}, dataclass=DATACLASS)


#: The same, where models are leaves that may be replaced.
WITH_MODELS = Pytree(
    {Module: OPAQUE._replace(map=lambda value, go: go.change(value))}
    | {MhaOutput: ATTENTION},
    dataclass=DATACLASS,
)


def arguments(value: Any) -> Iterator[tuple[Path, Any]]:
    """The leaves of arguments, and models among them, each with the path to it."""
    for path, node in ARGUMENTS.nodes(value):
        if isinstance(node, Module) or ARGUMENTS.kind(type(node)) is None:
            yield path, node


Named = dict[Any, tuple[str, str, Any]]  # identity of an array: path, kind, array


def named_arrays(
    modules: Sequence[tuple[str, Module]],
) -> Named:
    """Path, kind and array of all that the modules hold, by identity of the array.

    What several places share has the path of the first.
    """
    found: Named = {}
    for prefix, module in modules:
        for path, kind, array in held_arrays(module):
            name = f"{prefix}.{path}" if prefix else path
            found.setdefault(identity(array), (name, kind, array))
    return found


def held_arrays(module: Module) -> Iterator[tuple[str, str, Any]]:
    """Path, kind and array of each parameter, statistic and constant of a module."""
    for path, held in walk(module):
        kind, tensor = "buffer", held
        if isinstance(held, Param):
            kind = "buffer" if isinstance(held, RunningState) else "parameter"
            tensor = held.val()
        if isinstance(tensor, QuantizedTensor):
            yield f"{path}.codes", "buffer", tensor.kept
            continue
        array = lowest(getattr(tensor, "value", None))
        if hasattr(array, "dtype"):
            yield path, kind, array


def running_states(modules: Sequence[tuple[str, Module]]) -> list[RunningState]:
    """The running statistics of some modules, each once."""
    found: dict[int, RunningState] = {}
    for _, module in modules:
        for _, held in walk(module):
            if isinstance(held, RunningState):
                found[id(held)] = held
    return list(found.values())


@contextmanager
def kept(
    states: Sequence[RunningState],
) -> Generator[Callable[[], list[tuple[Any, Any]]]]:
    """Leave running statistics as they were; gives a function that tells the new ones.

    It gives pairs of an old and a new value, for those that a forward pass updated.
    """
    before = [state.val() for state in states]

    def newest() -> list[tuple[Any, Any]]:
        pairs = [
            (lowest(old.value), lowest(state.val().value))
            for old, state in zip(before, states, strict=True)
        ]
        return [(old, new) for old, new in pairs if new is not old]

    try:
        yield newest
    finally:
        for old, state in zip(before, states, strict=True):
            state.swap(old)


def lowest(value: Any) -> Any:
    """The value below every level of tracking, computed if it still waits."""
    while hasattr(value, "node"):
        value = value.value
    return plain(value)


def tensors_of_result(result: Any) -> list[Tensor]:
    """The tensors in what a captured function returned.

    Raises:
        GraphError: something in it may hold tensors that nobody can find.
    """
    found: list[Tensor] = []
    for path, leaf in ARGUMENTS.leaves(result):
        if isinstance(leaf, Tensor):
            found.append(leaf)
        elif type(leaf) not in PLAIN and not isinstance(leaf, (np.generic, np.ndarray)):
            where = f" at {'.'.join(path)}" if path else ""
            what = f"the result holds {type(leaf).__name__}{where}, which is no tensor"
            cure = "tensors, and lists, tuples, dicts or dataclasses of them"
            raise GraphError("capture", what, cure=cure)
    if not found:
        what = "no tensor comes out"
        raise GraphError("capture", what, cure="return the tensors that are wanted")
    return found


class Result:
    """How the tensors that come out stand in what the captured function returned.

    others: what stands in the place of the other leaves, in order; a `Dim` is the
    number that it is for the batch size of a run, and the program's result follows it.
    """

    def __init__(self, example: Any, others: Sequence[Any] = ()):
        numbers, rest = iter(range(1 << 30)), iter(others)

        def place(leaf: Any) -> Any:
            if isinstance(leaf, Tensor):
                return Place(next(numbers))
            found = next(rest, leaf)
            return Size(found) if type(found) is Dim else found

        self.follows = any(type(other) is Dim for other in others)
        self.tree = EveryLeaf(ARGUMENTS, place)(example)

    def __call__(self, made: tuple[Any, ...], n: int | None = None) -> Any:
        """The same tree with these tensors, for a batch of n."""

        def put(leaf: Any) -> Any:
            if type(leaf) is Size:
                return at(leaf.dim, n)
            return made[leaf.at] if type(leaf) is Place else leaf

        return ARGUMENTS.map(self.tree, put)


class EveryLeaf(Go):
    """A walk that changes numbers, texts and None as well."""

    __slots__ = ()

    def __call__(self, value: Any) -> Any:
        """What becomes of a value, with everything inside it."""
        kind = self.tree.kind(type(value))
        return self.change(value) if kind is None else kind.map(value, self)


class Size:
    """Where a number stands that follows the batch size."""

    def __init__(self, dim: Dim):
        self.dim = dim


class Place:
    """Where a result stands."""

    def __init__(self, at: int):
        self.at = at


def arrays_of_record(record: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every array of a record or dict, with its path: "conv1.weight"."""
    data = getattr(record, "param", record)
    if isinstance(data, (TensorData, Tensor, np.ndarray)):
        yield path, np.asarray(data)
    elif isinstance(data, (dict, list, tuple)):
        parts: Any = data.items() if isinstance(data, dict) else enumerate(data)  # type: ignore[arg-type]
        for name, held in parts:
            yield from arrays_of_record(held, f"{path}.{name}" if path else str(name))
