"""Layers: linear, convolution, pooling, norms, attention, recurrent, resizing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnbook.exporters.forms import later
from burnbook.exporters.onnx.forms.elementwise import first_value
from burnbook.exporters.onnx.forms.registry import NoForm, form
from burnbook.exporters.onnx.writer import Name, Writer
from burnbook.ops.conv.windows import Windows, count_up, output_size
from burnbook.ops.interpolate import tables
from burnbook.ops.pool.pool import adaptive_tables
from burnbook.ops.resample import Taps
from burnbook.program import Dim, Step

Sizes = tuple[int, ...]


@form("linear")
def linear(w: Writer, step: Step, x: Name, weight: Name, bias: Name = "") -> Name:
    if len(first_value(step).shape) == 2:
        return w.node("Gemm", x, weight, bias)
    product = w.node("MatMul", x, weight)
    return w.node("Add", product, bias) if bias else product


# ── convolution and windows ──────────────────────────────────────────────────


def _windows(kernel: Sizes, stride: Sizes, padding: Sizes, **more: Any) -> Any:
    """The attributes that all operators with windows share."""
    both = [*padding, *padding]
    return {
        "kernel_shape": list(kernel),
        "strides": list(stride),
        "pads": both,
        **more,
    }


@form("conv2d", "conv")
def conv(
    w: Writer, step: Step, x: Name, weight: Name, bias: Name = "", **given: Any
) -> Name:
    kernel = w.fixed(step, 1, 2)
    attrs = _windows(kernel, given["stride"], given["padding"])
    attrs["dilations"] = list(given["dilation"])
    return w.node("Conv", x, weight, bias, group=given["groups"], **attrs)


@form("conv_transpose")
def conv_transpose(
    w: Writer, step: Step, x: Name, weight: Name, bias: Name = "", **given: Any
) -> Name:
    attrs = _windows(w.fixed(step, 1, 2), given["stride"], given["padding"])
    attrs["dilations"] = list(given["dilation"])
    attrs["output_padding"] = list(given["padding_out"])
    pairs = zip(given["padding_out"], given["stride"], strict=True)
    if any(more >= stride > 0 for more, stride in pairs):
        raise NoForm("padding_out must be less than the stride")
    return w.node("ConvTranspose", x, weight, bias, group=given["groups"], **attrs)


@form("max_pool2d", "max_pool")
def max_pool(w: Writer, step: Step, x: Name, **given: Any) -> Name:
    return w.node("MaxPool", x, **_max_windows(step, given))


@form("max_pool_indices")
def max_pool_indices(w: Writer, step: Step, x: Name, **given: Any) -> Name:
    """ONNX counts through the whole tensor, we count through an image."""
    found = w.node_of("MaxPool", 2, x, **_max_windows(step, given))[1]
    count = w.constant(np.array(math.prod(w.fixed(step, since=2)), np.int64))
    return w.cast(w.node("Mod", found, count), step.out.dtype)


def _max_windows(step: Step, given: Any) -> Any:
    attrs = _windows(given["kernel_size"], given["stride"], given["padding"])
    attrs["dilations"] = list(given["dilation"])
    return {**attrs, **_last_windows(step, **given)}


@form("avg_pool2d", "avg_pool")
def avg_pool(w: Writer, step: Step, x: Name, **given: Any) -> Name:
    attrs = _windows(given["kernel_size"], given["stride"], given["padding"])
    attrs["count_include_pad"] = int(given["count_include_pad"])
    return w.node("AveragePool", x, **{**attrs, **_last_windows(step, **given)})


def _last_windows(
    step: Step,
    *,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes = (),
    ceil_mode: bool = False,
    **_: Any,
) -> Any:
    """Whether a last window may reach beyond the padding, only where one does.

    Why: a window that would begin beyond the image is dropped, which older versions of
    ONNX count nevertheless when they infer shapes. Along a dim that drops one, the
    padding that no window reaches is left out.
    """
    if not ceil_mode:
        return {"ceil_mode": 0}
    sizes = [n for n in first_value(step).shape[2:] if isinstance(n, int)]
    if len(sizes) < len(kernel_size):
        return {"ceil_mode": 1}
    steps = dilation or (1,) * len(kernel_size)
    rows = [*zip(sizes, kernel_size, stride, padding, steps, strict=True)]
    dropped = [count_up(*row) == output_size(*row) for row in rows]
    ends = list(padding)
    for i, (n, k, s, p, d) in enumerate(rows):
        rest = (n + 2 * p - d * (k - 1) - 1) % s
        if dropped[i] and not all(dropped) and rest <= p:
            ends[i] = p - rest
    return {"ceil_mode": int(not all(dropped)), "pads": [*padding, *ends]}


@form("adaptive_avg_pool2d", "adaptive_avg_pool")
def adaptive_avg_pool(
    w: Writer, step: Step, x: Name, *, output_size: tuple[Any, ...]
) -> Name:
    sizes = w.fixed(step, since=2)
    if all(n == 1 for n in output_size):
        return w.node("GlobalAveragePool", x)
    if all(n % m == 0 for n, m in zip(sizes, output_size, strict=True)):
        kernel = [n // m for n, m in zip(sizes, output_size, strict=True)]
        return w.node("AveragePool", x, kernel_shape=kernel, strides=kernel)
    return _mixed(w, step, x, adaptive_tables(sizes, tuple(output_size)))


@form("interpolate")
def interpolate(
    w: Writer,
    step: Step,
    x: Name,
    *,
    output_size: tuple[Any, ...],
    mode: str,
    align_corners: bool,
) -> Name:
    sizes = w.sizes((*first_value(step).shape[:2], *output_size))
    attrs: dict[str, Any] = {"mode": mode}
    if mode in ("linear", "cubic"):
        corners = "align_corners" if align_corners else "half_pixel"
        attrs["coordinate_transformation_mode"] = corners
    elif mode == "nearest":
        attrs["coordinate_transformation_mode"] = "asymmetric"
        attrs["nearest_mode"] = "floor"
    if mode not in ("linear", "nearest") or len(output_size) > 2:
        found = tables(w.fixed(step, since=2), output_size, mode, align_corners)
        return _mixed(w, step, x, found)
    return w.node("Resize", x, "", "", sizes, **attrs)


def _mixed(w: Writer, step: Step, x: Name, found: list[Taps]) -> Name:
    """Every place as a weighted sum of others along its dim: a product each."""
    like, rank = first_value(step), len(first_value(step).shape)
    for i, taps in enumerate(found):
        if taps.changes_nothing:
            continue
        matrix = np.zeros((taps.size_in, taps.size), like.dtype)
        np.add.at(matrix, (taps.places, taps.rows), taps.weights)
        order = [n for n in range(rank) if n != i + 2] + [i + 2]
        back = [order.index(n) for n in range(rank)]
        x = w.node("MatMul", w.transpose(x, *order), w.constant(matrix, "mix"))
        x = w.transpose(x, *back)
    return x


@form("unfold4d")
def unfold4d(w: Writer, step: Step, x: Name, **given: Any) -> Name:
    """A convolution whose kernels pick one tap each."""
    like, channels = first_value(step), w.fixed(step, since=1)[0]
    kernel = tuple(given["kernel_size"])
    count = math.prod(kernel)
    taps = np.eye(count, dtype=like.dtype).reshape(count, 1, *kernel)
    weight = w.constant(np.tile(taps, (channels, 1, 1, 1)), "taps")
    attrs = _windows(kernel, given["stride"], given["padding"])
    attrs["dilations"] = list(given["dilation"])
    return w.reshape(w.node("Conv", x, weight, group=channels, **attrs), step.out.shape)


@form("fold4d")
def fold4d(w: Writer, step: Step, x: Name, **given: Any) -> Name:
    w.at_least(18, "Col2Im")
    pads = [*given["padding"], *given["padding"]]
    sizes = w.ints(*given["output_size"]), w.ints(*given["kernel_size"])
    steps = {"strides": list(given["stride"]), "dilations": list(given["dilation"])}
    return w.node("Col2Im", x, *sizes, pads=pads, **steps)


# ── norms ────────────────────────────────────────────────────────────────────


@form("layer_norm")
def layer_norm(
    w: Writer, step: Step, x: Name, gamma: Name = "", beta: Name = "", *, epsilon: float
) -> Name:
    if not gamma:
        size = w.fixed(step, since=-1)
        gamma = w.constant(np.ones(size, first_value(step).dtype), "ones")
    return w.node("LayerNormalization", x, gamma, beta, axis=-1, epsilon=epsilon)


@form("rms_norm")
def rms_norm(
    w: Writer, step: Step, x: Name, gamma: Name = "", *, epsilon: float
) -> Name:
    like = first_value(step)
    if w.opset >= 23 and gamma:
        return w.node("RMSNormalization", x, gamma, axis=-1, epsilon=epsilon)
    power = w.reduce("ReduceMean", w.node("Mul", x, x), [-1])
    root = w.node("Sqrt", w.node("Add", power, w.number(epsilon, like)))
    out = w.node("Div", x, root)
    return w.node("Mul", out, gamma) if gamma else out


@form("group_norm")
def group_norm(
    w: Writer,
    step: Step,
    x: Name,
    gamma: Name = "",
    beta: Name = "",
    *,
    groups: int,
    epsilon: float,
    inside: bool,
) -> Name:
    like = first_value(step)
    rows = w.node("Reshape", x, w.ints(0, groups, -1))
    if inside:
        ones = w.constant(np.ones(groups, like.dtype), "ones")
        zeros = w.constant(np.zeros(groups, like.dtype), "zeros")
        out = w.node("InstanceNormalization", rows, ones, zeros, epsilon=epsilon)
    else:
        centered = w.node("Sub", rows, w.reduce("ReduceMean", rows, [-1]))
        var = w.reduce("ReduceMean", w.node("Mul", centered, centered), [-1])
        spread = w.node("Add", w.node("Sqrt", var), w.number(epsilon, like))
        out = w.node("Div", centered, spread)
    out = w.reshape(out, step.out.shape)
    line = (like.shape[1], *[1] * (len(like.shape) - 2))
    if gamma:
        out = w.node("Mul", out, w.reshape(gamma, line))
    return w.node("Add", out, w.reshape(beta, line)) if beta else out


@form("batch_norm")
def batch_norm(w: Writer, step: Step, *inputs: Name, **_: Any) -> Name:
    raise NoForm("it normalizes by its batch, which only training does")


@form("batch_norm_known")
def batch_norm_known(w: Writer, step: Step, *inputs: Name, epsilon: float) -> Name:
    return w.node("BatchNormalization", *inputs, epsilon=epsilon)


@form("neighbor_sum")
def neighbor_sum(w: Writer, step: Step, x: Name, *, before: int, after: int) -> Name:
    """An average over the channels, times how many they are."""
    like = first_value(step)
    channels, *rest = w.fixed(step, since=1)
    before, after = min(before, channels - 1), min(after, channels - 1)
    count = before + after + 1
    flat = w.reshape(x, (like.shape[0], 1, channels, math.prod(rest)))
    mean = w.node(
        "AveragePool",
        flat,
        kernel_shape=[count, 1],
        pads=[before, 0, after, 0],
        strides=[1, 1],
        count_include_pad=1,
    )
    return w.reshape(w.node("Mul", mean, w.number(count, like)), step.out.shape)


# ── attention ────────────────────────────────────────────────────────────────


@form("attention")
def attention(
    w: Writer,
    step: Step,
    query: Name,
    key: Name,
    value: Name,
    mask: Name = "",
    **given: Any,
) -> Any:
    if given["prob"]:
        raise NoForm("it drops weights, which only training does")
    like = first_value(step)
    scaled = w.node("Mul", query, w.number(given["scale"], like))
    scores = w.node("MatMul", scaled, w.transpose(key, 0, 1, 3, 2))
    cap = given["softcap"]
    if cap is not None:
        bent = w.node("Tanh", w.node("Div", scores, w.number(cap, like)))
        scores = w.node("Mul", bent, w.number(cap, like))
    with np.errstate(over="ignore"):  # in half precision −1e9 is −∞, here as in eager
        hidden = np.asarray(given["hidden"], like.dtype)
    may_hide_all = False
    if mask:
        held, is_truth = w.array(mask), step.inputs[3].dtype.kind == "b"
        nothing = True if is_truth else -math.inf
        may_hide_all = bool(held is None or np.any(held == nothing))
        if is_truth:
            may_hide_all = may_hide_all and bool(hidden == -math.inf)
            scores = w.node("Where", mask, w.constant(hidden), scores)
        else:
            scores = w.node("Add", scores, mask)
    if given["causal"]:
        s, t = step.inputs[0].shape[-2], step.inputs[1].shape[-2]
        if not (isinstance(s, int) and isinstance(t, int)):
            raise NoForm("its sequence follows the batch")
        may_hide_all |= s > t and bool(hidden == -math.inf)
        after = w.constant(later(s, t), "later")
        scores = w.node("Where", after, w.constant(hidden), scores)
    weights = _shares(w, step, scores, given["quiet"], may_hide_all)
    return w.node("MatMul", weights, value), weights


def _shares(
    w: Writer, step: Step, scores: Name, quiet: bool, may_hide_all: bool
) -> Name:
    """Softmax along the keys; where every score is −∞, each share is 0.

    Why: softmax alone would divide 0 by 0 there. A lowest number in place of −∞ would
    spread the shares over what is hidden.
    """
    like = first_value(step)
    zero = w.number(0, like)
    if not quiet and not may_hide_all:
        return w.node("Softmax", scores, axis=-1)
    most = w.reduce("ReduceMax", scores, [-1])
    if not quiet:
        is_hidden = w.node("Equal", most, w.number(-math.inf, like))
        shares = w.node("Softmax", w.node("Where", is_hidden, zero, scores), axis=-1)
        return w.node("Where", is_hidden, zero, shares)
    peak = w.node("Max", most, zero)
    raised = w.node("Exp", w.node("Sub", scores, peak))
    total = w.reduce("ReduceSum", raised, [-1])
    return w.node(
        "Div", raised, w.node("Add", total, w.node("Exp", w.node("Neg", peak)))
    )


# ── recurrent ────────────────────────────────────────────────────────────────


def _gates(w: Writer, name: Name, order: Sizes) -> Name:
    """Columns of gates in ONNX's order, one row for each: [1, gates · h, i]."""
    turned = w.transpose(_reordered(w, name, order), 1, 0)
    held = w.array(turned)
    if held is not None:
        return w.constant(held[None], f"{name}.gates")
    return w.node("Unsqueeze", turned, w.ints(0))


def _biases(
    w: Writer, step: Step, bias: Name, recurrent_bias: Name, order: Sizes, size: int
) -> Name:
    """Both biases in one row: [1, 2 · gates · h]."""
    if not (bias or recurrent_bias):
        return ""
    zeros = w.constant(np.zeros(len(order) * size, first_value(step).dtype), "zeros")
    rows = [_reordered(w, name or zeros, order) for name in (bias, recurrent_bias)]
    held = [w.array(row) for row in rows]
    if all(array is not None for array in held):
        joined = np.concatenate([a for a in held if a is not None])[None]
        return w.constant(joined, f"{bias or recurrent_bias}.gates")
    return w.node("Unsqueeze", w.node("Concat", *rows, axis=0), w.ints(0))


def _reordered(w: Writer, name: Name, order: Sizes) -> Name:
    """The columns of gates in another order."""
    held = w.array(name)
    if order == tuple(range(len(order))):
        return name
    if held is not None:
        parts = np.split(held, len(order), axis=-1)
        joined = np.concatenate([parts[i] for i in order], axis=-1)
        return w.constant(joined, f"{name}.gates")
    count = len(order)
    parts = w.node_of(
        "Split", count, name, axis=-1, num_outputs=count if w.opset >= 18 else None
    )
    return w.node("Concat", *[parts[i] for i in order], axis=-1)


def _state(w: Writer, name: Name) -> Name:
    return w.node("Unsqueeze", name, w.ints(0)) if name else ""


def _direction(given: Any) -> str:
    return "reverse" if given["reverse"] else "forward"


@form("lstm")
def lstm(
    w: Writer,
    step: Step,
    x: Name,
    weight: Name,
    recurrent: Name,
    bias: Name = "",
    cell: Name = "",
    hidden: Name = "",
    **given: Any,
) -> Any:
    """Our gates are i f o n, ONNX's are i o f c; it takes the sequence first."""
    order, size = (0, 2, 1, 3), w.fixed(step, 2)[0]
    states, _, memory = w.node_of(
        "LSTM",
        3,
        w.transpose(x, 1, 0, 2),
        _gates(w, weight, order),
        _gates(w, recurrent, order),
        _biases(w, step, bias, "", order, size),
        "",
        _state(w, hidden),
        _state(w, cell),
        wanted=(True, False, True),
        hidden_size=size,
        direction=_direction(given),
    )
    batch, length, _ = first_value(step).shape
    rows = _product(batch, length)
    states = w.transpose(w.node("Squeeze", states, w.ints(1)), 1, 0, 2)
    states = w.reshape(states, (rows, size))
    memory = w.node("Squeeze", memory, w.ints(0))
    w.parts[step.out] = (states, memory, rows)

    def joined() -> Name:
        return w.node("Concat", states, memory, axis=0)

    return joined


def _product(size: int | Dim, times: int | Dim) -> Any:
    """A product of two sizes of which at most one follows the batch."""
    if isinstance(size, Dim) and isinstance(times, int):
        return Dim(size.scale * times, size.offset * times)
    if isinstance(times, Dim) and isinstance(size, int):
        return _product(times, size)
    if isinstance(size, Dim) or isinstance(times, Dim):
        raise NoForm("both its batch and its length follow the batch")
    return size * times


@form("gru")
def gru(
    w: Writer,
    step: Step,
    x: Name,
    weight: Name,
    recurrent: Name,
    bias: Name = "",
    recurrent_bias: Name = "",
    hidden: Name = "",
    **given: Any,
) -> Any:
    order, size = (0, 1, 2), w.fixed(step, 2)[0]
    (states,) = w.node_of(
        "GRU",
        1,
        w.transpose(x, 1, 0, 2),
        _gates(w, weight, order),
        _gates(w, recurrent, order),
        _biases(w, step, bias, recurrent_bias, order, size),
        "",
        _state(w, hidden),
        hidden_size=size,
        linear_before_reset=int(given["reset_after"]),
        direction=_direction(given),
    )
    return w.transpose(w.node("Squeeze", states, w.ints(1)), 1, 0, 2)


@form("rnn")
def rnn(
    w: Writer,
    step: Step,
    x: Name,
    weight: Name,
    recurrent: Name,
    bias: Name = "",
    hidden: Name = "",
    **given: Any,
) -> Name:
    size = w.fixed(step, 2)[0]
    (states,) = w.node_of(
        "RNN",
        1,
        w.transpose(x, 1, 0, 2),
        _gates(w, weight, (0,)),
        _gates(w, recurrent, (0,)),
        _biases(w, step, bias, "", (0,), size),
        "",
        _state(w, hidden),
        hidden_size=size,
        direction=_direction(given),
    )
    return w.transpose(w.node("Squeeze", states, w.ints(1)), 1, 0, 2)


@form("rotary")
def rotary(w: Writer, step: Step, x: Name, turns: Name, *, back: bool) -> Name:
    """Pairs (a, b) turned: (a cos − b sin, a sin + b cos)."""
    axis = len(first_value(step).shape) - 1
    last = len(step.inputs[1].shape) - 1
    even, odd = (w.every_second(x, axis, i) for i in (0, 1))
    cos, sin = (
        w.node("Gather", turns, w.constant(np.array(i, np.int64)), axis=last)
        for i in (0, 1)
    )
    if back:
        sin = w.node("Neg", sin)
    a = w.node("Sub", w.node("Mul", even, cos), w.node("Mul", odd, sin))
    b = w.node("Add", w.node("Mul", even, sin), w.node("Mul", odd, cos))
    pairs = [w.node("Unsqueeze", part, w.ints(-1)) for part in (a, b)]
    return w.reshape(w.node("Concat", *pairs, axis=-1), step.out.shape)


@form("deform_patches")
def deform_patches(
    w: Writer, step: Step, x: Name, offset: Name, mask: Name = "", **given: Any
) -> Name:
    """Each place is read between pixels by GridSample, which counts from −1 to 1."""
    like, groups = first_value(step), given["offset_groups"]
    batch, (channels, *size) = like.shape[0], w.fixed(step, since=1)
    sizes = (given[k] for k in ("kernel_size", "stride", "padding", "dilation"))
    windows = Windows(tuple(size), *sizes)
    rows, cols = (windows.positions(dim) for dim in (0, 1))  # [stops, kernel]
    stops, taps = len(rows) * len(cols), rows.shape[1] * cols.shape[1]
    y = np.broadcast_to(
        rows[:, None, :, None], (len(rows), len(cols), rows.shape[1], cols.shape[1])
    )
    x_at = np.broadcast_to(cols[None, :, None, :], y.shape)
    at = np.stack([y, x_at], -1).reshape(stops, taps, 2)
    moved = w.reshape(offset, (batch, groups, taps, 2, stops))
    moved = w.node("Transpose", moved, perm=[0, 1, 4, 2, 3])
    places = w.node("Add", moved, w.constant(at.astype(like.dtype), "places"))
    scale = np.array([2 / size[0], 2 / size[1]], like.dtype)
    shift = np.array([1 / size[0] - 1, 1 / size[1] - 1], like.dtype)
    places = w.node("Mul", places, w.constant(scale))
    places = w.node("Add", places, w.constant(shift))
    places = w.node("Gather", places, w.ints(1, 0), axis=-1)
    many = _product(batch, groups)
    images = w.reshape(x, (many, channels // groups, *size))
    places = w.reshape(places, (many, stops, taps, 2))
    found = w.node("GridSample", images, places, align_corners=0)
    if mask:
        shares = w.reshape(mask, (many, 1, taps, stops))
        found = w.node("Mul", found, w.node("Transpose", shares, perm=[0, 1, 3, 2]))
    found = w.reshape(found, (batch, channels, stops, taps))
    return w.node("Transpose", found, perm=[0, 2, 3, 1])
