"""Steps bound to compiled kernels, with weights laid out as they want them.

Only families of kernels that are ready are used; everything else runs as in bound.py.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from burnbook.backend.compiled import load, usable
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.numpy import Numpy
from burnbook.backend.products import dot, dot_plus
from burnbook.program.compiler.bound import (
    BYTES,
    Bound,
    Call,
    binder,
    by_sample,
    product,
    put_in_place,
    rows_of,
)
from burnbook.program.compiler.patterns import ACTIVATIONS, POOLS, pool_attrs, window_of
from burnbook.program.compiler.window_kernels import bind_columns, in_one_piece

F32 = np.dtype(np.float32)
ALONE = 1 << 16  # products that BLAS computes by itself
RATE = 25.0  # products and sums of a convolution in a nanosecond
LEAST_WINDOWS = 16  # side by side: what a vector register holds
MANY_WINDOWS = 1 << 12  # of all planes; fewer are quicker by functions of NumPy
KINDS: dict[str, str] = {"max_pool2d": "largest", "max_pool": "largest"}


def is_ready(call: Call, family: str) -> bool:
    """Whether a family of compiled kernels may be used for a call."""
    backend = call.backend
    if not call.is_compiled or not isinstance(backend, Numpy) or not backend.kernels:
        return False
    if backend.compiled or family in usable():
        load(family)
        return True
    return False


def plain(*arrays: Any) -> bool:
    """Whether arrays are of float32, each in one piece."""
    return all(
        type(a) is np.ndarray and a.dtype == F32 and a.flags.c_contiguous
        for a in arrays
    )


def _lies_apart(x: Any) -> bool:
    """Whether an array of float32 is a view that skips some of its memory."""
    return type(x) is np.ndarray and x.dtype == F32 and not x.flags.c_contiguous


@binder("conv2d", "conv_block")
def bind_conv(call: Call) -> Bound | None:
    """A convolution with what follows it, some images at a time."""
    x, weight, *rest = call.values
    bias, out, attrs = (rest[0] if rest else None), call.out, call.attrs
    per_sum = weight[0].size
    chain = attrs.get("chain", ("conv2d",))
    stops = stops_of(call)
    macs = len(x) * len(weight) * math.prod(stops) * per_sum
    cost = macs / RATE + 1000 * len(chain)
    if _lies_apart(x):
        return in_one_piece(call)
    if not is_ready(call, "conv") or not plain(x, weight, out):
        return None  # the plain code shares its own blocks out
    from burnbook.backend.compiled import conv

    stride, groups = tuple(attrs["stride"]), attrs["groups"]
    dilation, padding = tuple(attrs["dilation"]), tuple(attrs["padding"])
    activation, pool = followers(call, stops)
    if x.size and conv.in_blocks(x, weight, stops, stride, dilation, groups):
        lay, work, share = _in_blocks(call, bias, stops, activation, pool)
    elif x.size and conv.served(x, weight, stride):
        from burnbook.backend.compiled import finish

        taps = weight.shape[2:]
        how = (*padding, *dilation, groups, len(weight) // groups, *taps)
        how = tuple([int(number) for number in how])
        lay = partial(conv.laid_weights, weight, bias, stops[1], how)
        kind = None if pool is None else pool[0]
        window = (1, 1) if pool is None else pool[1]
        end = (finish.ACTIVATIONS[activation], finish.POOLS[kind], *window)
        work = partial(_correlate_laid, x, out, how, end)
        share = partial(_in_bands, x, out, how, end)
    elif conv.in_planes(x, weight, groups) and len(chain) == 1:
        return Bound(_in_planes(call, bias, stops), cost=cost, how="compiled")
    elif conv.in_planes(x, weight, groups) or not all(call.fixed[1:]):
        return None
    else:
        activate = partial(activation_in_place, call)
        return bind_columns(call, activate) or by_sample(call, 2 * cost)
    if all(call.fixed[1:]):
        laid = lay()
        part = partial(work, laid)
        run = share(laid) or partial(part, 0, len(x))
        return Bound(run, len(x), part, cost, "compiled", (0,))
    return laid_anew(lay, work, len(x), cost, (0,))


def _in_planes(call: Call, bias: Any, stops: tuple[int, int]) -> Callable[[], None]:
    """A convolution of every channel by itself."""
    from burnbook.backend.compiled import conv, conv_depthwise

    (x, weight), attrs = call.values[:2], call.attrs
    names = ("stride", "padding", "dilation")
    sizes = zip(x.shape[2:], weight.shape[2:], *(attrs[n] for n in names), strict=True)
    args = (x, weight, bias, conv.with_stops(sizes, stops), call.out)
    return partial(conv_depthwise.depthwise_conv2d, *args)


def _correlate_laid(
    x: Any, out: Any, how: Any, end: Any, laid: Any, start: int, stop: int
) -> None:
    """A convolution with few channels for some images."""
    from burnbook.backend.compiled import conv

    conv.correlate_laid(x, *laid, out, how, end, start, stop)


def _in_bands(
    x: Any, out: Any, how: Any, end: Any, laid: Any
) -> Callable[[], None] | None:
    """The same for so few images that threads share each of them, or None."""
    from burnbook.backend.compiled import conv

    return conv.in_bands(x, laid, out, how, end)


def laid_anew(
    lay: Callable[[], Any],
    work: Callable[[Any, int, int], Any],
    units: int,
    cost: float,
    stretched: tuple[int, ...],
    after: Callable[[], Any] | None = None,
) -> Bound:
    """A step whose weights are others in each run, as in training: laid out before."""
    held: list[Any] = [None]

    def before() -> None:
        held[0] = lay()

    def part(start: int, stop: int) -> None:
        work(held[0], start, stop)

    def run() -> None:
        work(lay(), 0, units)
        if after is not None:
            after()

    return Bound(run, units, part, cost, "compiled", stretched, before, after)


def stops_of(call: Call) -> tuple[int, int]:
    """The size of an image that a convolution gives, before it is pooled."""
    from burnbook.ops.conv.windows import output_size

    x, weight, attrs = call.values[0], call.values[1], call.attrs
    sizes = zip(
        *(x.shape[2:], weight.shape[2:]),
        *(attrs[name] for name in ("stride", "padding", "dilation")),
        strict=True,
    )
    down, right = [output_size(*size) for size in sizes]
    return down, right


def followers(
    call: Call, stops: tuple[int, int]
) -> tuple[str | None, tuple[str, tuple[int, int]] | None]:
    """The activation and the pool that follow a convolution, as kernels name them."""
    chain = call.attrs.get("chain", ())
    activation = next((name for name in chain if name in ACTIVATIONS), None)
    name = next((name for name in chain if name in POOLS), None)
    if name is None:
        return activation, None
    names = ("stride", "padding", "dilation", "groups", "chain")
    given = {k: v for k, v in call.attrs.items() if k not in names}
    window = window_of(name, pool_attrs(name, given), stops, call.out.shape[2:])
    if window is None:
        raise AssertionError(f"{name} was fused with windows that overlap")
    return activation, (KINDS.get(name, "average"), window)


def _in_blocks(
    call: Call,
    bias: Any,
    stops: tuple[int, int],
    activation: str | None,
    pool: tuple[str, tuple[int, int]] | None,
) -> tuple[Callable[[], Any], Callable[[Any, int, int], Any], Callable[[Any], Any]]:
    """A convolution with many channels.

    Three functions: one lays weights out, one takes some images, and one gives a
    function for so few images that threads share each of them, or None. What is pooled
    is made in between.
    """
    from burnbook.backend.compiled import conv, conv_blocked, finish

    (x, weight), out, attrs = call.values[:2], call.out, call.attrs
    names = ("stride", "padding", "dilation")
    sizes = zip(x.shape[2:], weight.shape[2:], *(attrs[n] for n in names), strict=True)
    sizes = conv.with_stops(sizes, stops)
    filters, channels = weight.shape[:2]
    lanes = conv_blocked.LANES
    offsets = np.zeros(-(-filters // lanes) * lanes, F32)
    many = conv_blocked.images_at_a_time(len(x), math.prod(stops))
    side = conv_blocked.forward_side
    where = conv_blocked.plan_of(side, sizes, stops, channels, many)
    which = finish.ACTIVATIONS[activation]

    def lay() -> Any:
        if bias is not None:
            offsets[:filters] = bias
        return conv_blocked.laid_weights(weight)

    def work(laid: Any, start: int, stop: int) -> None:
        if pool is None:
            args = (x, laid, offsets, out, *where, which)
            conv_blocked.correlate_images(*args, start, stop)
            return
        kind, window = pool
        between = empty((stop - start, filters, *stops))
        args = (x[start:stop], laid, offsets, between, *where, which)
        conv_blocked.correlate_images(*args, 0, stop - start)
        pool_images(kind, between, out[start:stop], *window)

    def share(laid: Any) -> Callable[[], None] | None:
        found = out if pool is None else np.empty((len(x), filters, *stops), F32)
        args = (x, laid, offsets, found, where, which)
        correlate = conv_blocked.by_filters(*args)
        if pool is None or correlate is None:
            return correlate
        kind, window = pool

        def run() -> None:
            correlate()
            pool_images(kind, found, out, *window)

        return run

    return lay, work, share


def pool_images(kind: str, x: Any, out: Any, rows: int, columns: int) -> None:
    """Pool images whose windows lie side by side."""
    from burnbook.backend.compiled import pool

    planes, to = x.reshape(-1, *x.shape[2:]), out.reshape(-1, *out.shape[2:])
    if kind == "average":
        pool.average_range(planes, to, rows, columns, 0, len(planes))
        return
    if out.shape[-1] >= LEAST_WINDOWS and "max_pool_nd" in usable():
        load("max_pool_nd")
        window = (rows, columns)
        largest_in_lines(x, out, (window, window, (0, 0), (1, 1)))
        return
    high, wide = to.shape[1:]
    lines = planes[:, : high * rows].reshape(len(planes), high, rows, planes.shape[2])
    line = lines[:, :, 0] if rows == 1 else np.maximum.reduce(lines, axis=2)
    parts = [line[:, :, k : wide * columns : columns] for k in range(columns)]
    np.copyto(to, parts[0])
    for part in parts[1:]:
        np.maximum(to, part, out=to)


def largest_in_lines(x: Any, out: Any, sizes: Any, ceil_mode: bool = False) -> bool:
    """The largest of every window, for lines that are wide; whether they were found.

    sizes: of windows, their strides, padding and dilation.
    """
    from burnbook.backend.compiled.max_pool_nd import max_pool_kernel
    from burnbook.backend.compiled.runtime.buffers import buffers

    names = ("kernel_size", "stride", "padding", "dilation")
    named: dict[str, Any] = dict(zip(names, sizes, strict=True))
    pool = partial(max_pool_kernel, x, **named, ceil_mode=ceil_mode)
    found = buffers.offering([out], pool)
    if found is None:
        return False
    put_in_place((out,), found[:1])
    return True


@binder("max_pool2d", "max_pool")
def bind_wide_max_pool(call: Call) -> Bound | None:
    """The largest of every window, for lines of windows that fill vectors."""
    (x,), out, attrs = call.values, call.outs[0], call.attrs
    if any(a is not None for a in call.outs[1:]) or out is None or not out.size:
        return None
    if not is_ready(call, "max_pool_nd") or not plain(x, out):
        return None
    if out.shape[-1] < LEAST_WINDOWS or out.size < MANY_WINDOWS:
        return None
    names = ("kernel_size", "stride", "padding", "dilation")
    sizes = [tuple(attrs[name]) for name in names]
    run = partial(largest_in_lines, x, out, sizes, attrs.get("ceil_mode", False))
    cost = x.nbytes * 2 / BYTES
    return Bound(run, cost=cost, how="compiled") if run() else None


@binder("linear", "linear_block")
def bind_linear(call: Call) -> Bound | None:
    """A linear layer: few rows are multiplied here, many by all threads."""
    x, weight, *rest = call.values
    bias = rest[0] if rest else None
    if _lies_apart(x):
        return in_one_piece(call)
    if not is_ready(call, "linear") or not plain(x, weight, call.out) or x.ndim < 2:
        return None
    rows, out = rows_of(x), rows_of(call.out)
    if rows is None or out is None or not rows.size:
        return None
    from burnbook.backend.compiled import linear

    chain = call.attrs.get("chain", ())
    act = activation_in_place(call, out, chain[1]) if len(chain) > 1 else None
    if act is None and len(chain) > 1:
        return None
    cost = rows.size * weight.shape[1] / RATE
    if len(rows) <= linear.MOST_ROWS and all(call.fixed[1:]):
        return _few_rows(call, rows, out, chain[1] if len(chain) > 1 else None)
    multiply = _product_and_bias(rows, weight, bias, out)
    if act is None:
        return Bound(multiply, cost=cost, how="compiled")

    def run() -> None:
        multiply()
        act()

    return Bound(run, cost=cost, how="compiled")


@binder("matmul")
def bind_few_rows(call: Call) -> Bound | None:
    """One row or two by a fixed matrix, or rows of a stack that all meet one."""
    (x, y), out = call.values, call.out
    is_alone = y.size == math.prod(y.shape[-2:])
    if not is_alone or not call.fixed[1] or x.ndim < 2 or not out.flags.c_contiguous:
        return None
    if not x.dtype == y.dtype == out.dtype == F32 or not x.flags.c_contiguous:
        return None
    rows, weight = rows_of(x), y.reshape(y.shape[-2:])
    if not rows.size or not weight.size:
        return None
    to = out.reshape(len(rows), weight.shape[1])
    if is_ready(call, "linear") and is_ready(call, "conv"):
        from burnbook.backend.compiled import linear

        if len(rows) <= linear.MOST_ROWS:
            return _few_rows(replace(call, values=(x, weight)), rows, to, None)
    if x.ndim == 2:
        return None
    cost = rows.size * weight.shape[1] / RATE
    return Bound(product(rows, weight, to), cost=cost, how="out")


def _product_and_bias(rows: Any, weight: Any, bias: Any, out: Any) -> Any:
    """A function for out = rows · weight + bias: a large bias goes into the product."""
    if bias is None:
        return product(rows, weight, out)
    if rows.size * weight.shape[1] <= ALONE:
        multiply = product(rows, weight, out)

        def small() -> None:
            multiply()
            np.add(out, bias, out)

        return small

    def large() -> None:
        if dot_plus(rows, weight, bias, out) is None:
            dot(rows, weight, out)
            np.add(out, bias, out)

    return large


def _few_rows(call: Call, rows: Any, out: Any, activation: str | None) -> Bound | None:
    """One row or two, by a weight that is laid out to be read in one stretch."""
    from burnbook.backend.compiled import finish, linear

    if activation is not None and activation not in finish.ACTIVATIONS:
        return None
    weight, *rest = call.values[1:]
    panels, line = panels_of(call, weight, rest[0] if rest else None)
    which = finish.ACTIVATIONS[activation]
    wide = out
    if line.size != out.shape[1]:
        wide = np.empty((len(out), line.size), F32)
    work = run = linear.FewRows(rows, panels, line, wide, which)
    if wide is not out:
        found = wide[:, : out.shape[1]]

        def cut() -> None:
            work()
            out[...] = found

        run = cut
    cost = rows.size * weight.shape[1] / RATE
    return Bound(run, cost=cost, how="compiled")


def panels_of(call: Call, weight: Any, bias: Any) -> tuple[Any, Any]:
    """A fixed weight in panels, and a bias as long.

    Loops that are written out ask for the same ones at every step.
    """
    from burnbook.backend.compiled import linear

    held = [None if a is None else a.__array_interface__ for a in (weight, bias)]
    key = repr([a and (a["data"], a["shape"], a["strides"]) for a in held])
    if key not in call.given.laid:
        call.given.laid[key] = linear.laid_panels(weight, bias)
    return call.given.laid[key]


def activation_in_place(call: Call, out: Any, name: str) -> Callable[[], Any] | None:
    """A function that activates numbers where they stand."""
    flat = out.reshape(-1)
    if name == "relu":
        zeros = np.zeros(flat.size, F32)
        return partial(np.maximum, flat, zeros, out=flat)
    if name == "tanh":
        return partial(np.tanh, flat, out=flat)
    if not is_ready(call, "activation"):
        return None
    from burnbook.backend.compiled import finish

    which = finish.ACTIVATIONS[name]
    return partial(finish.activate_some, flat, which, 0, flat.size)


@binder("softmax", "log_softmax")
def bind_softmax(call: Call) -> Bound | None:
    """Rows of scores."""
    (x,), out, dim = call.values, call.out, call.attrs["dim"]
    if not is_ready(call, "softmax") or not plain(x, out) or not x.size:
        return None
    if dim not in (-1, x.ndim - 1):
        return None
    from burnbook.backend.compiled import softmax

    is_log = call.step.op.name == "log_softmax"
    code = softmax.log_rows if is_log else softmax.softmax_rows
    rows, to = rows_of(x), rows_of(out)
    part = partial(code, rows, to)
    run = partial(part, 0, len(to))
    return Bound(run, len(to), part, x.size / 1.0, "compiled", (0,))


@binder("gelu", "silu", "mish", "sigmoid", "log_sigmoid", "erf", "softplus", "elu")
@binder("leaky_relu", "clamp", "sign")
def bind_activation(call: Call) -> Bound | None:
    """A function of each element."""
    (x,), out, op = call.values, call.out, call.step.op
    if not is_ready(call, "activation") or not plain(x, out) or not x.size:
        return None
    from burnbook.backend.compiled import activation

    loops, code, names = activation.LOOPS[op]
    numbers = activation.numbers_of(names, call.attrs)
    flat, to = x.reshape(-1), out.reshape(-1)

    def part(start: int, stop: int) -> None:
        loops(code, flat, to, *numbers, start, stop)

    run = partial(loops, code, flat, to, *numbers, 0, x.size)
    return Bound(run, x.size, part, x.size * 0.8, "compiled", (0,))


@binder("layer_norm")
def bind_layer_norm(call: Call) -> Bound | None:
    """Rows with mean 0 and variance 1, scaled and shifted."""
    x, *rest = call.values
    gamma, beta, *_ = (*rest, None, None)
    out, *others = call.outs
    if not is_ready(call, "norm") or not plain(x, out) or not all(call.fixed[1:]):
        return None
    from burnbook.backend.compiled import norm

    if not norm.served(x, gamma, beta):
        return None
    rows, to = rows_of(x), rows_of(out)
    lines = norm.line(gamma, x.shape[-1], 1), norm.line(beta, x.shape[-1], 0)
    kept = [np.empty(len(rows), F32) if a is None else a.reshape(-1) for a in others]
    if not plain(*kept):
        return None
    epsilon = norm.f32(call.attrs["epsilon"])
    part = partial(norm.layer_rows, rows, *lines, to, *kept, epsilon)
    run = partial(part, 0, len(rows))
    return Bound(run, len(rows), part, x.size * 1.0, "compiled", (0,))
