"""The summary of a model: one traced forward, layer by layer.

    print(summary(model, [1, 28, 28]))

The model runs once, on the backend below Autodiff, with zeros of the given shapes. Each
layer notes what went in and came out, and each op what it took; nothing of the model
changes.
"""

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from math import prod
from typing import Any

from burnbook.backend.base import Backend, Decorator, Value
from burnbook.core.dtypes import Float
from burnbook.core.errors import ArgumentError, ConfigError
from burnbook.module.flops import flops
from burnbook.module.layers import layers_of, listen
from burnbook.module.module import Module
from burnbook.module.param import Param
from burnbook.module.running import RunningState
from burnbook.module.tree import params_of, rebuild
from burnbook.tensor import Tensor


@dataclass
class LayerSummary:
    """One layer of a summary.

    path: where it is in the model, "" for the model itself. params, flops: those of its
    own and of all layers in it. trainable, statistics: how many of the params are
    learned, and how many forward passes keep up to date. calls: how often it ran.
    fused: it did not run, but the layer around it used its parameters, as an Lstm uses
    those of its gates.
    """

    path: str
    type: str
    depth: int
    inputs: Any = None
    outputs: Any = None
    params: int = 0
    trainable: int = 0
    statistics: int = 0
    flops: int = 0
    calls: int = 0
    fused: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        return dict(vars(self))


@dataclass
class ModuleSummary:
    """The layers of a model with their shapes, parameters and FLOPs.

    The first row is the model itself. Printed it is a table of text, in a notebook one
    of HTML; `rows` and `to_dict()` are the data.
    """

    rows: list[LayerSummary]
    param_bytes: int = 0
    depth: int | None = field(default=None)

    @property
    def params(self) -> int:
        """How many numbers its parameters have, with running statistics, as in Burn."""
        return self.rows[0].params

    @property
    def statistics(self) -> int:
        """How many of them forward passes keep up to date, as BatchNorm's means."""
        return self.rows[0].statistics

    @property
    def trainable(self) -> int:
        """How many of them an optimizer may change."""
        return self.rows[0].trainable

    @property
    def flops(self) -> int:
        """The operations of one forward pass."""
        return self.rows[0].flops

    def __getitem__(self, path: str) -> LayerSummary:
        """The row of a layer: `found["encoder.layers.0"]`."""
        for row in self.rows:
            if row.path == path:
                return row
        known = [row.path for row in self.rows if row.path]
        raise ConfigError(
            "summary", f"there is no layer {path!r}", [("layers", ", ".join(known))]
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON or a table of another library."""
        layers = [row.to_dict() for row in self.rows]
        return {
            "layers": layers,
            "params": self.params,
            "trainable": self.trainable,
            "statistics": self.statistics,
            "param_bytes": self.param_bytes,
            "flops": self.flops,
        }

    def __str__(self) -> str:
        table = [HEAD, *self._cells()]
        widths = [max(len(row[i]) for row in table) for i in range(len(HEAD))]
        lines = [_line(row, widths) for row in table]
        rule = "─" * max(map(len, lines))
        return "\n".join([lines[0], rule, *lines[1:], rule, *self._totals()])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th style='text-align:left'>{name}</th>" for name in HEAD)
        body = "".join(f"<tr>{_html_row(row)}</tr>" for row in self._cells())
        totals = "<br>".join(escape(line) for line in self._totals())
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{totals}</p>"
        )

    def _cells(self) -> Iterator[tuple[str, ...]]:
        """The texts of each row, those below a branch moved to the right."""
        for row in self.rows:
            if self.depth is not None and row.depth > self.depth:
                continue
            name = row.path.rpartition(".")[2] or row.type
            if row.path and row.path.rpartition(".")[2].isdigit():
                name = ".".join(row.path.split(".")[-2:])
            yield (
                "  " * row.depth + name,
                row.type + (f" × {row.calls}" if row.calls > 1 else ""),
                _shapes(row.inputs),
                _shapes(row.outputs),
                f"{row.params:,}",
                _flops(row),
            )

    def _totals(self) -> list[str]:
        frozen = self.params - self.trainable - self.statistics
        kept = f", {frozen:,} of them frozen" if frozen else ""
        kept += f", {self.statistics:,} running statistics" if self.statistics else ""
        return [
            f"parameters: {self.params:,}{kept} ({size_text(self.param_bytes)})",
            f"FLOPs of one forward pass: {self.flops:,}",
        ]


HEAD = ("layer", "type", "input", "output", "params", "FLOPs")


def summary(
    model: Module, *inputs: object, method: str = "forward", depth: int | None = None
) -> ModuleSummary:
    """What a forward pass does in each layer: shapes, parameters, FLOPs.

    inputs: for each argument its shape, [1, 28, 28], which becomes zeros; or the
    argument itself, such as an Int tensor. method: another one than forward. depth: how
    deep the printed table goes.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> class Twice(Module):
        ...     factor: Param
        ...     def forward(self, x):
        ...         return x @ self.factor.val() @ self.factor.val()
        >>> model = Twice(Param.from_tensor(Tensor.ones([3, 3], Numpy())))
        >>> print(summary(model, [2, 3]))
        layer  type   input   output  params  FLOPs
        ───────────────────────────────────────────
        Twice  Twice  [2, 3]  [2, 3]       9     72
        ───────────────────────────────────────────
        parameters: 9 (36 B)
        FLOPs of one forward pass: 72
    """
    if not callable(getattr(model, method, None)):
        what = f"{type(model).__name__} has no method {method!r}"
        raise ConfigError("summary", what, cure='method="…"')
    trace = Trace()
    rows = _rows(model)
    traced = trace.copy(model.valid(), rows)
    devices = traced.devices()
    check_inputs("summary", getattr(model, method), len(inputs))
    given = [argument(trace.tensor, v, devices, i) for i, v in enumerate(inputs)]
    getattr(traced, method)(*given)
    for row, (_, layer, _) in zip(rows, layers_of(traced), strict=True):
        used = (id(param.val().value) in trace.used for param in unique_params(layer))
        row.fused = not row.calls and any(used)
    _add_up(rows)
    total = 0
    for param in unique_params(model):
        total += prod(param.shape) * param.device.dtype(param.kind).itemsize
    return ModuleSummary(rows, total, depth)


class Trace:
    """What runs: the layers that are open, and an op at a time for the innermost."""

    def __init__(self) -> None:
        self.open: list[LayerSummary] = []
        self.used: set[int] = set()  # the ids of all inputs; parameters stay alive
        self.devices: dict[Backend, Backend] = {}

    def device(self, device: Backend) -> Backend:
        """The backend that counts for this one."""
        if isinstance(device, Noting):
            return device
        plain = device.inner if device.ad_enabled else device
        return self.devices.setdefault(plain, Noting(plain, self))

    def tensor(self, tensor: Tensor) -> Tensor:
        """The same values on the backend that counts, not copied."""
        plain = tensor.inner() if tensor.device().ad_enabled else tensor
        device = self.device(plain.device())
        return Tensor(plain.value, plain.kind, device, plain.rank)

    def copy(self, model: Module, rows: list[LayerSummary]) -> Module:
        """The model on counting backends, every layer noting what it does."""

        def move(param: Param) -> Param:
            return param.initialized(param.id, self.tensor(param.val()))

        made = rebuild(model, move, self.tensor)
        by_path = {row.path: row for row in rows}
        for path, layer, _ in layers_of(made):
            self._listen(layer, by_path[path])
        return made

    def _listen(self, layer: Module, row: LayerSummary) -> None:
        """Put a method in front of each `forward…` of this one layer."""
        listen(layer, lambda run: self._noting(run, row))

    def _noting(self, run: Callable[..., Any], row: LayerSummary) -> Callable[..., Any]:
        def noting(*args: object, **named: object) -> Any:
            if self.open and self.open[-1] is row:  # one of its own methods
                return run(*args, **named)
            self.open.append(row)
            try:
                out = run(*args, **named)
            finally:
                self.open.pop()
            if not row.calls:
                row.inputs = [_shape_of(value) for value in (*args, *named.values())]
                row.outputs = _shape_of(out)
            row.calls += 1
            return out

        return noting


class Noting(Decorator):
    """A backend that tells a trace what each op took."""

    interned = False

    def __init__(self, inner: Backend, trace: Trace):
        super().__init__(inner)
        self.trace = trace

    def run(self, op: Any, values: tuple[Value, ...], attrs: dict[str, Any]) -> Value:
        """Run the op below, and count it for the innermost layer."""
        out = self.inner.run(op, values, attrs)
        self.trace.used.update(map(id, values))
        if self.trace.open:
            first = out[0] if type(out) is tuple else out
            shapes = [tuple(v.shape) for v in values if hasattr(v, "shape")]
            window = prod(attrs.get("kernel_size", (1,)))
            count = flops(op.name, shapes, tuple(first.shape), window)
            self.trace.open[-1].flops += count
        return out

    def __repr__(self) -> str:
        return repr(self.inner)  # errors name the device of the reader


def _rows(model: Module) -> list[LayerSummary]:
    rows: list[LayerSummary] = []
    for path, layer, depth in layers_of(model):
        row = LayerSummary(path, type(layer).__name__, depth)
        for param in unique_params(layer):
            size = prod(param.shape) if param.kind is Float else 0
            row.params += size
            row.trainable += size if param.is_require_grad else 0
            row.statistics += size if isinstance(param, RunningState) else 0
        rows.append(row)
    return rows


def _add_up(rows: list[LayerSummary]) -> None:
    """Give every layer the FLOPs of those in it as well."""
    open_: list[LayerSummary] = []
    for row in [*rows, LayerSummary("", "", 0)]:
        while open_ and open_[-1].depth >= row.depth:
            done = open_.pop()
            if open_:
                open_[-1].flops += done.flops
        open_.append(row)


def unique_params(module: Module) -> Iterable[Param]:
    """The parameters of a module, those in several places once."""
    return dict.fromkeys(params_of(module))


def check_inputs(
    where: str,
    forward: Callable[..., Any],
    count: int,
    kinds: str = "shape or tensor",
) -> None:
    """Refuse too few or too many inputs for a forward.

    kinds: what may stand for an argument.

    Raises:
        ArgumentError: `forward` cannot be called with so many positional arguments.
    """
    try:
        signature = inspect.signature(forward)
    except ValueError:  # a builtin may have no signature
        return
    try:
        signature.bind(*[None] * count)
    except TypeError:
        takes = [p for p in signature.parameters.values() if p.kind in PLACES]
        least = sum(p.default is p.empty for p in takes)
        if least <= count <= len(takes):  # it is a named argument that is missing
            return
        missing = [p.name for p in takes[count:] if p.default is p.empty]
        name = getattr(forward, "__name__", "forward")
        what = f"{name} takes {len(takes)} arguments, {count} are given"
        if missing:
            what = f"no input for {', '.join(missing)} of {name}"
        facts = [("arguments", ", ".join(p.name for p in takes) or "none")]
        cure = f"one {kinds} for each argument"
        raise ArgumentError(where, what, facts, cure) from None


PLACES = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


def argument(
    move: Callable[[Tensor], Tensor],
    value: Any,
    devices: Sequence[Backend],
    place: int,
    where: str = "summary",
) -> Any:
    """A shape becomes zeros; whatever holds tensors gets them moved."""
    sizes = isinstance(value, (list, tuple)) and all(type(n) is int for n in value)
    if not sizes:
        return _moved(move, value)
    if not devices:
        raise ConfigError(
            where,
            "a model without tensors does not say on which device to create the zeros",
            [(f"input {place}", str(list(value)))],
            f"Tensor.zeros({list(value)}, device)",
        )
    return Tensor.zeros(list(value), devices[0])


def _moved(move: Callable[[Tensor], Tensor], value: object) -> Any:
    if isinstance(value, Tensor):
        return move(value)
    if isinstance(value, (list, tuple)):
        parts = [_moved(move, part) for part in value]
        return type(value)(parts) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {key: _moved(move, part) for key, part in value.items()}
    held = getattr(value, "__dict__", None)
    if held and any(isinstance(part, Tensor) for part in held.values()):
        made = copy.copy(value)
        made.__dict__.update({k: _moved(move, v) for k, v in held.items()})
        return made
    return value


def _shape_of(value: object) -> Any:
    """The shape of a tensor, or those of the tensors in something."""
    if isinstance(value, Tensor):
        return list(value.dims())
    if isinstance(value, (list, tuple)):
        return tuple(_shape_of(part) for part in value)
    held = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    found = {name: _shape_of(part) for name, part in held.items()}
    return {name: shape for name, shape in found.items() if shape} or None


def _shapes(found: Any) -> str:
    """Shapes as text: "[2, 3]", or several with commas between."""
    if isinstance(found, dict):
        return ", ".join(f"{name} {_shapes(shape)}" for name, shape in found.items())
    if found is None:
        return "–"
    if isinstance(found, list) and all(type(n) is int for n in found) and found:
        return str(found)
    return ", ".join(text for text in map(_shapes, found) if text != "–") or "–"


def _flops(row: LayerSummary) -> str:
    """The operations as text, or why there are none."""
    if row.calls:
        return f"{row.flops:,}"
    if row.params and not row.fused:
        return "not run"
    return "above" if row.fused else "–"


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    texts = [
        text.rjust(width) if i >= len(HEAD) - 2 else text.ljust(width)
        for i, (text, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(texts).rstrip()


def _html_row(cells: tuple[str, ...]) -> str:
    parts: list[str] = []
    for i, text in enumerate(cells):
        side = "right" if i >= len(HEAD) - 2 else "left"
        shown = escape(text.lstrip())
        if i == 0:
            shown = "&emsp;" * ((len(text) - len(text.lstrip())) // 2) + shown
        parts.append(f"<td style='text-align:{side}'>{shown}</td>")
    return "".join(parts)


def size_text(count: int) -> str:
    """Bytes as people say them."""
    power = min(len(str(count)) - 1, 11) // 3
    return f"{count / 1000**power:.{min(power, 1)}f} {('B', 'kB', 'MB', 'GB')[power]}"
