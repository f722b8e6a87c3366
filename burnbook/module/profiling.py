"""A profile: time and memory of each layer, measured.

    print(profile(model, [64, 1, 28, 28]))

The model is copied (its values are shared) and runs a few times; of every layer the
median counts. Forward is timed on the model's own kind of backend with nothing in
between but the clock of each layer. Backward is attributed op by op: a decorator above
Autodiff notes which layer made a node, one below times the gradient of that node.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from statistics import median
from typing import Any

from burnbook.backend.autodiff import Autodiff
from burnbook.backend.base import Backend, Decorator, Value
from burnbook.core.dtypes import Float
from burnbook.core.errors import ConfigError
from burnbook.core.rng import use_stream
from burnbook.module.layers import layers_of, listen
from burnbook.module.module import Module
from burnbook.module.param import Param, leaf
from burnbook.module.summaries import argument, check_inputs, size_text, unique_params
from burnbook.module.tree import rebuild
from burnbook.tensor import Tensor
from burnbook.text.table import ShownAsTable, TextTable

DEEPEST = 3  # objects in objects that a forward pass may return


@dataclass
class LayerProfile:
    """What one layer takes: seconds, and bytes.

    forward, backward: with all layers in it; own_forward, own_backward: without them.
    weights: of all its parameters. results: what its ops made. kept: what the tape held
    for the backward pass. calls: how often it ran.
    """

    path: str
    type: str
    depth: int
    calls: int = 0
    forward: float = 0.0
    own_forward: float = 0.0
    backward: float = 0.0
    own_backward: float = 0.0
    weights: int = 0
    results: int = 0
    kept: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        return dict(vars(self))


@dataclass(repr=False)
class ModuleProfile(ShownAsTable):
    """The layers of a model with their time and memory; the first row is the model.

    rounds: of how many runs the medians are. with_backward: whether there was one.
    """

    rows: list[LayerProfile]
    rounds: int
    with_backward: bool
    depth: int | None = field(default=None)

    def __getitem__(self, path: str) -> LayerProfile:
        """The row of a layer: `found["encoder.layers.0"]`."""
        for row in self.rows:
            if row.path == path:
                return row
        known = [row.path for row in self.rows if row.path]
        facts = [("layers", ", ".join(known))]
        raise ConfigError("profile", f"there is no layer {path!r}", facts)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "layers": [row.to_dict() for row in self.rows],
            "rounds": self.rounds,
            "with_backward": self.with_backward,
        }

    def table(self) -> TextTable:
        """The layers as a table; the shares are of the whole model."""
        whole = self.rows[0]
        shown = [r for r in self.rows if self.depth is None or r.depth <= self.depth]
        head = ["layer", "forward", "%"]
        head += ["backward", "%"] if self.with_backward else []
        head += ["weights", "results"] + (["kept"] if self.with_backward else [])
        rows: list[list[str]] = []
        for row in shown:
            cells = [_name(row), *_time(row.forward, whole.forward, row.calls)]
            if self.with_backward:
                cells += _time(row.backward, whole.backward, row.calls)
            cells += [_bytes(row.weights), _bytes(row.results)]
            rows.append([*cells, _bytes(row.kept)] if self.with_backward else cells)
        notes = [f"medians of {self.rounds} rounds; a layer includes those inside it"]
        depths = [row.depth for row in shown]
        right = set(range(1, len(head)))
        return TextTable(head, rows, right, 3, indent=depths, notes=notes)


def profile(
    model: Module,
    *inputs: object,
    method: str = "forward",
    rounds: int = 5,
    backward: bool = True,
    depth: int | None = None,
) -> ModuleProfile:
    """How long each layer takes, forward and backward, and what memory it needs.

    inputs: for each argument its shape, which becomes zeros, or the argument itself.
    backward: False measures inference, without gradients and dropout. depth: how deep
    the printed table goes.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> class Twice(Module):
        ...     factor: Param
        ...     def forward(self, x):
        ...         return x @ self.factor.val() @ self.factor.val()
        >>> model = Twice(Param.from_tensor(Tensor.ones([3, 3], Numpy())))
        >>> found = profile(model, [2, 3])
        >>> found[""].weights, found[""].results, found[""].forward > 0
        (36, 48, True)

    Why: layers that run one after the other share caches, so times differ a little from
    those of a layer alone; that is how they run in training.
    """
    if not callable(getattr(model, method, None)):
        what = f"{type(model).__name__} has no method {method!r}"
        raise ConfigError("profile", what, cure='method="…"')
    if type(rounds) is not int or rounds < 1:
        what = f"rounds={rounds!r} is not a number of at least 1"
        raise ConfigError("profile", what, cure="rounds=5")
    devices = model.devices() + [v.device() for v in inputs if isinstance(v, Tensor)]
    plain = devices[0] if devices else None
    if plain is None:
        what = "a model without tensors does not say on which device to run"
        raise ConfigError("profile", what, cure="Tensor.zeros([32, 10], device)")
    while plain.ad_enabled:
        plain = plain.inner
    rows = [_row(*found) for found in layers_of(model)]
    clock = Clock(rows, plain)
    with use_stream(plain.stream.split("profile")):
        ways = Ways(model if backward else model.valid(), inputs, method, clock)
        clock.measure_forward(ways, rounds, tracked=backward)
        seen = clock.measure_backward(ways, rounds, backward=backward)
    return ModuleProfile(rows, rounds, seen, depth)


class Ways:
    """A model and its inputs, to be put on one backend after another."""

    def __init__(
        self, model: Module, inputs: Sequence[Any], method: str, clock: "Clock"
    ) -> None:
        self.model, self.inputs, self.method = model, inputs, method
        self.clock = clock

    def on(self, device: Backend) -> Callable[[], Any]:
        """A call of the model there: values are shared, every layer is timed."""

        def move(tensor: Tensor) -> Tensor:
            while tensor.device().ad_enabled:
                tensor = tensor.inner()
            if type(tensor) is not Tensor:  # codes
                return tensor.to_device(device)
            return Tensor(tensor.value, tensor.kind, device, tensor.rank)

        def move_param(param: Param) -> Param:
            plain = move(param.val())
            self.clock.weights.append(plain.value)
            value = leaf(plain, param.is_require_grad())
            return param.initialized(param.id, value)

        made = rebuild(self.model, move_param, move)
        for row, (_, layer, _) in zip(self.clock.rows, layers_of(made), strict=True):
            listen(layer, lambda run, row=row: self.clock.timing(run, row))
        check_inputs("profile", getattr(made, self.method), len(self.inputs))
        given = [
            argument(move, value, [device], place, "profile")
            for place, value in enumerate(self.inputs)
        ]
        run = self.clock.timing(getattr(made, self.method), self.clock.rows[0])
        return lambda: run(*given)


class Clock:
    """Knows which layers are open, and how long each one was."""

    def __init__(self, rows: list[LayerProfile], device: Backend) -> None:
        self.rows, self.device = rows, device
        self.open: list[LayerProfile] = []
        self.inside: list[float] = []  # the time of the layers in each open one
        self.passed: dict[int, tuple[float, float, int]] = {}
        self.weights: list[Any] = []  # the arrays of the parameters

    def timing(self, run: Callable[..., Any], row: LayerProfile) -> Callable[..., Any]:
        """The same function, with the time it takes added to a layer."""

        def timed(*args: object, **named: object) -> Any:
            if self.open and self.open[-1] is row:  # one of its own methods
                return run(*args, **named)
            self.open.append(row)
            self.inside.append(0.0)
            began = self.now()
            try:
                return run(*args, **named)
            finally:
                took = self.now() - began
                self.open.pop()
                inner = self.inside.pop()
                if self.inside:
                    self.inside[-1] += took
                whole, own, calls = self.passed.get(id(row), (0.0, 0.0, 0))
                self.passed[id(row)] = (whole + took, own + took - inner, calls + 1)

        return timed

    def now(self) -> float:
        """The time; on a GPU after all it has been asked to do."""
        cuda = getattr(self.device.xp, "cuda", None)
        if cuda is not None:
            cuda.get_current_stream().synchronize()
        return time.perf_counter()

    def measure_forward(self, ways: Ways, rounds: int, *, tracked: bool) -> None:
        """Fill in calls and forward times."""
        call = ways.on(self.device.autodiff() if tracked else self.device)
        found: list[dict[int, tuple[float, float, int]]] = []
        for _ in range(rounds + 1):
            self.passed = {}
            call()
            found.append(self.passed)
        for row in self.rows:
            seen = [each[id(row)] for each in found[1:] if id(row) in each]
            if seen:
                row.forward = median(whole for whole, _, _ in seen)
                row.own_forward = median(own for _, own, _ in seen)
                row.calls = seen[-1][2]

    def measure_backward(self, ways: Ways, rounds: int, *, backward: bool) -> bool:
        """Fill in memory and backward times; False where nothing has a gradient."""
        below = Stopwatch(self.device, self)
        tape = type.__call__(Autodiff, below)  # not kept for others, as interning does
        above = Labels(tape if backward else below, self)
        call = ways.on(above)
        runs: list[dict[int, tuple[float, float]]] = []
        for number in range(rounds + 1 if backward else 1):
            above.start(count=not number)
            out = call()
            above.done()
            tracked = [t for t in _tensors(out) if _node(t) is not None]
            if not (backward and tracked):
                return False
            runs.append(self._backward(tracked, above, below, first=not number))
        for row in self.rows:
            seen = [each[id(row)] for each in runs[1:] if id(row) in each]
            if seen:
                row.backward = median(whole for whole, _ in seen)
                row.own_backward = median(own for _, own in seen)
        return True

    def _backward(
        self, out: list[Tensor], above: "Labels", below: "Stopwatch", *, first: bool
    ) -> dict[int, tuple[float, float]]:
        """One backward pass: for each layer its time, and its own."""
        total = out[0].sum()
        for tensor in out[1:]:
            total = total + tensor.sum()
        order = list(_behind(_node(total)))
        if first:
            _count_kept(order, above)
        below.passed = []
        total.backward()
        found: dict[int, tuple[float, float]] = {}
        steps = iter(order)
        for op, took in below.passed:
            node = next((n for n in steps if n.op.backward is op), None)
            layers = above.layers.get(node, ())
            for row in dict.fromkeys(map(id, layers)):
                whole, own = found.get(row, (0.0, 0.0))
                mine = took if row == id(layers[-1]) else 0.0
                found[row] = (whole + took, own + mine)
        above.layers.clear()
        return found


class Stopwatch(Decorator):
    """Below Autodiff: how long the gradient of each op takes, one after the other."""

    interned = False

    def __init__(self, inner: Backend, clock: Clock) -> None:
        super().__init__(inner)
        self.clock = clock
        self.passed: list[tuple[Any, float]] = []

    def run(self, op: Any, values: tuple[Value, ...], attrs: dict[str, Any]) -> Value:
        """Run the op below; what adds gradients up counts for the step before."""
        began = self.clock.now()
        out = self.inner.run(op, values, attrs)
        took = self.clock.now() - began
        if hasattr(op, "source"):
            self.passed.append((op, took))
        elif self.passed:
            last, before = self.passed[-1]
            self.passed[-1] = (last, before + took)
        return out

    def __repr__(self) -> str:
        return repr(self.inner)  # errors name the device of the reader


class Labels(Decorator):
    """Above Autodiff: which layers were open when a node was made."""

    interned = False

    def __init__(self, inner: Backend, clock: Clock) -> None:
        super().__init__(inner)
        self.clock = clock
        self.layers: dict[Any, tuple[LayerProfile, ...]] = {}
        self.counts = False

    def start(self, *, count: bool) -> None:
        """Begin a round; with `count`, the bytes of results are added up."""
        self.layers.clear()
        self.counts = count

    def done(self) -> None:
        """The forward pass is over: what follows belongs to no layer."""
        self.counts = False

    def run(self, op: Any, values: tuple[Value, ...], attrs: dict[str, Any]) -> Value:
        """Run the op below, and note whose it is."""
        out = self.inner.run(op, values, attrs)
        layers = tuple(self.clock.open)
        for made in out if type(out) is tuple else (out,):
            node = getattr(made, "node", None)
            if node is not None:
                self.layers[node] = layers
            if self.counts:
                _add(layers, "results", _size_of(made))
        return out

    def __repr__(self) -> str:
        return repr(self.inner)


def _row(path: str, layer: Module, depth: int) -> LayerProfile:
    weights = sum(
        prod(param.shape) * param.device.dtype(param.kind).itemsize
        for param in unique_params(layer)
    )
    return LayerProfile(path, type(layer).__name__, depth, weights=weights)


def _node(tensor: Tensor) -> Any:
    return getattr(tensor.value, "node", None)


def _behind(node: Any) -> Iterator[Any]:
    """The steps that a backward pass takes from a node, in its order."""
    seen: dict[Any, None] = {}
    todo = [node]
    while todo:
        found = todo.pop()
        if found is None or found.op is None or found in seen:
            continue
        seen[found] = None
        todo += found.parents
    return iter(sorted(seen, key=lambda each: each.number))


def _count_kept(order: Iterable[Any], above: Labels) -> None:
    """Add up what the tape holds; an array held twice counts where it was first."""
    known = {id(array) for array in above.clock.weights}
    for node in reversed(list(order)):
        for held in node.kept or ():
            if _size_of(held) and id(held) not in known:
                known.add(id(held))
                _add(above.layers.get(node, ()), "kept", _size_of(held))


def _add(layers: Iterable[LayerProfile], name: str, count: int) -> None:
    for row in {id(row): row for row in layers}.values():
        setattr(row, name, getattr(row, name) + count)


def _size_of(value: Any) -> int:
    """The bytes of an array, tracked or not; 0 for what is none."""
    while hasattr(value, "node"):
        value = value.value
    size = getattr(value, "nbytes", 0)
    return size if isinstance(size, int) else 0


def _tensors(value: object, depth: int = 0) -> Iterator[Tensor]:
    """The Float tensors in what a forward pass returned."""
    if isinstance(value, Tensor):
        if value.kind is Float:
            yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part, depth)
    elif depth < DEEPEST:
        held = value if isinstance(value, dict) else getattr(value, "__dict__", {})
        for part in held.values():
            yield from _tensors(part, depth + 1)


def _name(row: LayerProfile) -> str:
    """The last part of the path and the type: "conv1 (Conv2d)"."""
    parts = row.path.split(".")
    name = ".".join(parts[-2:]) if parts[-1].isdigit() else parts[-1]
    again = f" × {row.calls}" if row.calls > 1 else ""
    return f"{name} ({row.type}){again}" if name else row.type + again


def _time(seconds: float, whole: float, calls: int) -> list[str]:
    """A time and its share of the whole."""
    if not calls:
        return ["–", ""]
    return [time_text(seconds), f"{100 * seconds / (whole or 1.0):.0f}"]


def time_text(seconds: float) -> str:
    """A time as people say it.

    Example:
        >>> time_text(0.0000123), time_text(0.01234), time_text(2.5)
        ('12.3 µs', '12.3 ms', '2.50 s')
    """
    for size, unit in ((1e-6, "µs"), (1e-3, "ms")):
        if seconds < 1000 * size * 0.9995:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2f} s"


def _bytes(count: int) -> str:
    return size_text(count) if count else "–"
