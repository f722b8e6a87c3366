"""Layers: linear, convolution, pooling, norms, attention, recurrent, resizing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burnbook.exporters.forms import later
from burnbook.exporters.lowering.calls import Line, Made, Storage, View
from burnbook.exporters.lowering.lowering import Lowering, straight
from burnbook.exporters.lowering.registry import NoForm, form
from burnbook.exporters.lowering.sizes import fixed, product, times
from burnbook.ops.interpolate import tables
from burnbook.ops.pool.pool import adaptive_tables, average_tables
from burnbook.ops.resample import Taps
from burnbook.program import Dim, Shape, Size, Step, Value

Ints = tuple[int, ...]
AXES = ("depth", "height", "width")
WIDEST = 1024  # of a recurrent layer: its state lies in the memory of a workgroup


def _or_filled(
    w: Lowering, step: Step, place: int, count: Size, number: float, name: str
) -> Storage:
    """An input of a step; where it is left out, an array of one number."""
    given = step.inputs[place] if len(step.inputs) > place else None
    if given is not None:
        return w.whole(given)
    size = fixed(count, f"the size of {name}")
    return w.array(np.full(size, number, np.float32), name)


# ── products ────────────────────────────────────────────────────────────────


@form("linear")
def linear(w: Lowering, step: Step) -> None:
    x, weight = step.inputs[:2]
    inputs, outputs = weight.shape
    bias = _or_filled(w, step, 2, outputs, 0.0, "zeros")
    sizes = {
        "rows": product(step.out.shape[:-1]),
        "inputs": inputs,
        "outputs": outputs,
    }
    reads = {"x": w.whole(x), "weight": w.whole(weight), "bias": bias}
    w.call("linear", w.result(step.out), sizes=sizes, **reads)


@form("matmul")
def matmul(w: Lowering, step: Step) -> None:
    x, y = step.inputs
    x_ahead, y_ahead = x.shape[:-2], y.shape[:-2]
    ahead = step.out.shape[:-2]
    operands: list[Storage] = []
    strides: list[Any] = []
    for value, own in ((x, x_ahead), (y, y_ahead)):
        if all(size == 1 for size in own):
            operands.append(w.whole(value))
            strides.append(0)
            continue
        wide = (*ahead, *value.shape[-2:])
        view = w.view(value)
        if value.shape != wide:
            view = view.stretched(wide)
        operands.append(w.whole(value) if value.shape == wide else w.whole(view))
        strides.append(times(value.shape[-2], value.shape[-1]))
    _matmul(w, w.result(step.out), operands, strides, ahead, x.shape[-2:], y.shape[-1])


def _matmul(
    w: Lowering,
    out: Storage,
    operands: list[Storage],
    strides: list[Any],
    ahead: Shape,
    rows: Shape,
    columns: Size,
) -> None:
    sizes = {
        "count": product(ahead),
        "rows": rows[0],
        "inner": rows[1],
        "columns": columns,
        "x_stride": strides[0],
        "y_stride": strides[1],
    }
    w.call("matmul", out, sizes=sizes, x=operands[0], y=operands[1])


@form("attention")
def attention(
    w: Lowering,
    step: Step,
    *,
    scale: float,
    hidden: float,
    causal: bool,
    quiet: bool,
    softcap: float | None,
    prob: float,
    **noise: Any,
) -> None:
    """Scores, what is hidden of them, their shares, and the mixture of the values."""
    if prob:
        raise NoForm("its scores are dropped, which only training needs")
    query, key, value, *rest = step.inputs
    mask = rest[0] if rest else None
    ahead, (s, d), t = query.shape[:2], query.shape[2:], key.shape[2]
    turned = w.whole(w.view(key).permuted((0, 1, 3, 2)))
    shape = (*ahead, s, t)
    scores = w.new(f"{step.out.name}_scores", shape)
    strides = [times(s, d), times(d, t)]
    _matmul(w, scores, [w.whole(query), turned], strides, ahead, (s, d), t)
    lines = [Line("mul", (straight(scores, shape), _number(scale)), "f32", "f32")]
    if softcap is not None:
        lines.append(Line("div", (Made(0), _number(softcap)), "f32", "f32"))
        lines.append(Line("tanh", (Made(1),), "f32", "f32"))
        lines.append(Line("mul", (Made(2), _number(softcap)), "f32", "f32"))
    if mask is not None and mask.dtype.kind == "b":
        made = (w.view(mask), hidden, Made(len(lines) - 1))
        lines.append(Line("where", made, "f32", "f32"))
    elif mask is not None:
        lines.append(Line("add", (Made(len(lines) - 1), w.view(mask)), "f32", "f32"))
    if causal:
        mask = _later(w, fixed(s, "the sequence"), fixed(t, "the sequence"))
        made = (mask, hidden, Made(len(lines) - 1))
        lines.append(Line("where", made, "f32", "f32"))
    seen = w.new(f"{step.out.name}_seen", shape)
    w.put(lines, View.whole(seen, shape))
    shares = w.new(f"{step.out.name}_shares", shape)
    sizes = {"rows": product(shape[:-1]), "count": t, "quiet": bool(quiet)}
    w.call("shares", shares, sizes=sizes, x=seen)
    size = value.shape[3]
    operands, strides = [shares, w.whole(value)], [times(s, t), times(t, size)]
    _matmul(w, w.result(step.out), operands, strides, ahead, (s, t), size)


def _later(w: Lowering, s: int, t: int) -> View:
    """True where a key comes after its query. [1, 1, s, t]"""
    if s * t > 1 << 24:
        raise NoForm("its sequence is too long for a mask")
    return View.whole(w.array(later(s, t), "later"), (1, 1, s, t))


# ── convolutions ────────────────────────────────────────────────────────────


def _spread(axes: tuple[str, ...], **places: Sequence[Any]) -> dict[str, Any]:
    """Sizes along each axis, by name; an image of fewer dims is filled up.

    places: those of windows by their words, and, as `size`, those of the image itself.
    """
    found: dict[str, Any] = {}
    for word, sizes in places.items():
        more = 0 if word == "padding" else 1
        filled = (more,) * (len(axes) - len(sizes)) + tuple(sizes)
        for axis, one in zip(axes, filled, strict=True):
            found[axis if word == "size" else f"{word}_{axis}"] = one
    return found


@form("conv2d", "conv")
def conv(w: Lowering, step: Step, *, groups: int, **windows: Ints) -> None:
    weight = step.inputs[1]
    rank = len(weight.shape) - 2
    axes = AXES if rank == 3 else AXES[1:]
    _conv(w, step, f"conv{max(rank, 2)}d", axes, weight.shape[0], groups, windows)


@form("conv_transpose")
def conv_transpose(
    w: Lowering, step: Step, *, groups: int, padding_out: Ints, **windows: Ints
) -> None:
    filters = step.out.shape[1]
    _conv(w, step, "conv_transpose", AXES, filters, groups, windows)


def _conv(
    w: Lowering,
    step: Step,
    kernel: str,
    axes: tuple[str, ...],
    filters: Size,
    groups: int,
    windows: dict[str, Ints],
) -> None:
    x, weight = step.inputs[:2]
    if len(weight.shape) > 5:
        raise NoForm("it has more than three dims of places")
    sizes = {
        "batch": x.shape[0],
        "channels": x.shape[1],
        "filters": filters,
        "groups": groups,
    } | _spread(
        axes,
        size=x.shape[2:],
        out=step.out.shape[2:],
        kernel=weight.shape[2:],
        **windows,
    )
    bias = _or_filled(w, step, 2, filters, 0.0, "zeros")
    reads = {"x": w.whole(x), "weight": w.whole(weight), "bias": bias}
    w.call(kernel, w.result(step.out), sizes=sizes, **reads)


@form("deform_patches")
def deform_patches(
    w: Lowering,
    step: Step,
    *,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    offset_groups: int,
) -> None:
    x, offset = step.inputs[:2]
    stops = offset.shape[2:]
    sizes = {
        "batch": x.shape[0],
        "channels": x.shape[1],
        "offset_groups": offset_groups,
    } | _spread(
        AXES[1:],
        size=x.shape[2:],
        out=stops,
        kernel=kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
    )
    given = step.inputs[2] if len(step.inputs) > 2 else None
    if given is None:
        ones = w.new("ones", (x.shape[0], offset.shape[1] // 2, *stops))
        w.fill(1.0, View.whole(ones, (ones.size,)))
        mask = ones
    else:
        mask = w.whole(given)
    reads = {"x": w.whole(x), "offset": w.whole(offset), "mask": mask}
    w.call("deform_patches", w.result(step.out), sizes=sizes, **reads)


@form("unfold4d")
def unfold4d(w: Lowering, step: Step, **sizes: Any) -> None:
    x = step.inputs[0]
    _fold(w, step, "unfold", x, x.shape[1], x.shape[2:], sizes)


@form("fold4d")
def fold4d(w: Lowering, step: Step, *, output_size: Ints, **sizes: Any) -> None:
    channels = step.out.shape[1]
    _fold(w, step, "fold", step.inputs[0], channels, output_size, sizes)


def _fold(
    w: Lowering,
    step: Step,
    kernel: str,
    x: Value,
    channels: Size,
    size: Shape,
    given: Any,
) -> None:
    names = ("kernel_size", "stride", "padding", "dilation")
    taps, paces, pads, gaps = (given[name] for name in names)
    stops = [
        (n + 2 * p - g * (k - 1) - 1) // s + 1
        for n, k, s, p, g in zip(size, taps, paces, pads, gaps, strict=True)
    ]
    sizes = {"batch": x.shape[0], "channels": channels} | _spread(
        AXES[1:],
        size=size,
        out=stops,
        kernel=taps,
        stride=paces,
        padding=pads,
        dilation=gaps,
    )
    w.call(kernel, w.result(step.out), sizes=sizes, x=w.whole(x))


# ── pooling and resizing ────────────────────────────────────────────────────


@form("max_pool2d", "max_pool")
def max_pool(
    w: Lowering,
    step: Step,
    *,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    **more: Any,
) -> None:
    """Images at once; of volumes the slices first, then along the depth."""
    x = step.inputs[0]
    windows = list(zip(kernel_size, stride, padding, dilation, strict=True))
    planes = times(x.shape[0], x.shape[1])
    given, size, stops = w.whole(x), x.shape[2:], step.out.shape[2:]
    if len(windows) > 3:
        raise NoForm("it has more than three dims of places")
    if len(windows) == 3:
        between = (planes, size[0], *stops[1:])
        out = w.new(f"{step.out.name}_slices", between)
        _max_pool(
            w, out, given, times(planes, size[0]), size[1:], stops[1:], windows[1:]
        )
        whole = (1, 1, 0, 1)
        places = product(stops[1:])
        given, windows = out, [windows[0], whole]
        size, stops = (size[0], places), (stops[0], places)
    _max_pool(w, w.result(step.out), given, planes, size, stops, windows)


def _max_pool(
    w: Lowering,
    out: Storage,
    x: Storage,
    planes: Size,
    size: Shape,
    stops: Shape,
    windows: list[tuple[Any, ...]],
) -> None:
    kernel_size, stride, padding, dilation = zip(*windows, strict=True)
    sizes = {"planes": planes} | _spread(
        AXES[1:],
        size=size,
        out=stops,
        kernel=kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
    )
    w.call("max_pool2d", out, sizes=sizes, x=x)


@form("avg_pool2d", "avg_pool")
def avg_pool(
    w: Lowering,
    step: Step,
    *,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    count_include_pad: bool,
    ceil_mode: bool = False,
) -> None:
    """Images whose windows are all inside in one kernel, others dim by dim."""
    x = step.inputs[0]
    size = _places(x)
    if any(padding) or ceil_mode or len(kernel_size) > 2:
        flags = count_include_pad, ceil_mode
        _mix(w, step, average_tables(size, kernel_size, stride, padding, *flags))
        return
    _average(w, step, size, kernel_size, stride)


def _average(w: Lowering, step: Step, size: Shape, taps: Ints, stride: Ints) -> None:
    x = step.inputs[0]
    sizes = {"planes": times(x.shape[0], x.shape[1])} | _spread(
        AXES[1:],
        size=size,
        out=step.out.shape[2:],
        kernel=taps,
        stride=stride,
    )
    w.call("avg_pool2d", w.result(step.out), sizes=sizes, x=w.whole(x))


@form("adaptive_avg_pool2d", "adaptive_avg_pool")
def adaptive_avg_pool(w: Lowering, step: Step, *, output_size: Ints) -> None:
    """Windows of one size in one kernel, others dim by dim."""
    size = _places(step.inputs[0])
    divides = not any(n % m for n, m in zip(size, output_size, strict=True))
    if not divides or len(size) > 2:
        _mix(w, step, adaptive_tables(size, output_size))
        return
    taps = tuple(n // m for n, m in zip(size, output_size, strict=True))
    _average(w, step, size, taps, taps)


@form("interpolate")
def interpolate(
    w: Lowering, step: Step, *, output_size: Ints, mode: str, align_corners: bool
) -> None:
    size = _places(step.inputs[0])
    _mix(w, step, tables(size, output_size, mode, align_corners))


def _places(x: Value) -> tuple[int, ...]:
    return tuple(fixed(size, "the size of an image") for size in x.shape[2:])


def _mix(w: Lowering, step: Step, mixed: list[Taps]) -> None:
    """Each place of the output is a weighted sum of some of the input, dim by dim."""
    x = step.inputs[0]
    shape, given = list(x.shape), w.whole(x)
    todo = [(i + 2, table) for i, table in enumerate(mixed)]
    todo = [one for one in todo if not one[1].changes_nothing]
    if not todo:
        w.copy(straight(given, x.shape), View.whole(w.result(step.out), x.shape))
        return
    for number, (dim, table) in enumerate(todo):
        places, weights = _even_rows(table)
        sizes = {
            "outer": product(shape[:dim]),
            "size_in": table.size_in,
            "size_out": table.size,
            "inner": product(shape[dim + 1 :]),
            "taps": places.shape[1],
        }
        shape[dim] = table.size
        is_last = number + 1 == len(todo)
        out = w.result(step.out) if is_last else w.new(step.out.name, tuple(shape))
        reads = {
            "x": given,
            "places": w.array(places, "places"),
            "weights": w.array(weights, "weights"),
        }
        w.call("mix", out, sizes=sizes, **reads)
        given = out


def _even_rows(table: Taps) -> tuple[np.ndarray, np.ndarray]:
    """Places and weights, as many for each row: a shorter one ends in zeros."""
    first = np.searchsorted(table.rows, table.rows)
    turn = np.arange(len(table.rows)) - first
    taps = int(turn.max(initial=0)) + 1
    places = np.zeros((table.size, taps), np.int32)
    weights = np.zeros((table.size, taps), np.float32)
    places[table.rows, turn], weights[table.rows, turn] = table.places, table.weights
    short = weights == 0
    places[short] = np.broadcast_to(places[:, :1], places.shape)[short]
    return places, weights


# ── norms ───────────────────────────────────────────────────────────────────


@form("layer_norm")
def layer_norm(w: Lowering, step: Step, *, epsilon: float) -> None:
    x = step.inputs[0]
    size = x.shape[-1]
    sizes = {"rows": product(x.shape[:-1]), "count": size, "epsilon": float(epsilon)}
    reads = {
        "x": w.whole(x),
        "gamma": _or_filled(w, step, 1, size, 1.0, "ones"),
        "beta": _or_filled(w, step, 2, size, 0.0, "zeros"),
    }
    w.call("layer_norm", w.result(step.out), sizes=sizes, **reads)


@form("rms_norm")
def rms_norm(w: Lowering, step: Step, *, epsilon: float) -> None:
    x = step.inputs[0]
    size = x.shape[-1]
    sizes = {"rows": product(x.shape[:-1]), "count": size, "epsilon": float(epsilon)}
    gamma = _or_filled(w, step, 1, size, 1.0, "ones")
    w.call("rms_norm", w.result(step.out), sizes=sizes, x=w.whole(x), gamma=gamma)


@form("group_norm")
def group_norm(
    w: Lowering, step: Step, *, groups: int, epsilon: float, inside: bool
) -> None:
    x = step.inputs[0]
    channels = fixed(x.shape[1], "the number of channels")
    sizes = {
        "rows": times(x.shape[0], groups),
        "groups": groups,
        "channels": channels // groups,
        "places": product(x.shape[2:]),
        "epsilon": float(epsilon),
        "inside": bool(inside),
    }
    reads = {
        "x": w.whole(x),
        "gamma": _or_filled(w, step, 1, channels, 1.0, "ones"),
        "beta": _or_filled(w, step, 2, channels, 0.0, "zeros"),
    }
    w.call("group_norm", w.result(step.out), sizes=sizes, **reads)


# ── recurrent ───────────────────────────────────────────────────────────────


def _gates(w: Lowering, step: Step, size: int, bias: int) -> Storage:
    """What every step sees of its input: x W + b, all at once."""
    x, weight = step.inputs[:2]
    columns = fixed(weight.shape[1], "a layer")
    if size > WIDEST:
        raise NoForm(f"its state has more than {WIDEST} numbers")
    rows = product(x.shape[:2])
    gates = w.new(f"{step.out.name}_gates", (rows, columns))
    given = _or_filled(w, step, bias, columns, 0.0, "zeros")
    sizes = {"rows": rows, "inputs": weight.shape[0], "outputs": columns}
    reads = {"x": w.whole(x), "weight": w.whole(weight), "bias": given}
    w.call("linear", gates, sizes=sizes, **reads)
    return gates


def _state(w: Lowering, step: Step, place: int, size: int, name: str) -> Storage:
    """A state at the beginning: given, or zeros."""
    given = step.inputs[place] if len(step.inputs) > place else None
    if given is not None:
        return w.whole(given)
    made = w.new(name, (step.inputs[0].shape[0], size))
    w.fill(0.0, View.whole(made, (made.size,)))
    return made


def _recurrent(step: Step, size: int, reverse: bool) -> dict[str, Any]:
    batch, steps, _ = step.inputs[0].shape
    found = {"batch": batch, "steps": fixed(steps, "the sequence"), "size": size}
    return {**found, "reverse": bool(reverse)}


@form("lstm")
def lstm(w: Lowering, step: Step, *, reverse: bool) -> None:
    size = fixed(step.inputs[2].shape[0], "a state")
    reads = {
        "gates": _gates(w, step, size, 3),
        "recurrent": w.whole(step.inputs[2]),
        "cell": _state(w, step, 4, size, "cell"),
        "hidden": _state(w, step, 5, size, "hidden"),
    }
    sizes = _recurrent(step, size, reverse)
    w.call("lstm", w.result(step.out), sizes=sizes, **reads)


@form("gru")
def gru(w: Lowering, step: Step, *, reset_after: bool, reverse: bool) -> None:
    size = fixed(step.inputs[2].shape[0], "a state")
    reads = {
        "gates": _gates(w, step, size, 3),
        "recurrent": w.whole(step.inputs[2]),
        "bias": _or_filled(w, step, 4, 3 * size, 0.0, "zeros"),
        "hidden": _state(w, step, 5, size, "hidden"),
    }
    sizes = {**_recurrent(step, size, reverse), "reset_after": bool(reset_after)}
    w.call("gru", w.result(step.out), sizes=sizes, **reads)


@form("rnn")
def rnn(w: Lowering, step: Step, *, reverse: bool) -> None:
    size = fixed(step.inputs[2].shape[0], "a state")
    reads = {
        "gates": _gates(w, step, size, 3),
        "recurrent": w.whole(step.inputs[2]),
        "hidden": _state(w, step, 4, size, "hidden"),
    }
    sizes = _recurrent(step, size, reverse)
    w.call("rnn", w.result(step.out), sizes=sizes, **reads)


def _number(value: Any) -> Any:
    """A float, which may follow the batch."""
    return value if isinstance(value, Dim) else float(value)
