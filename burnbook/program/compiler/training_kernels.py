"""Steps of training bound to compiled kernels: gradients, dropout, the optimizer.

As in kernels.py, everything that no kernel serves runs as in bound.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.core.formulas import Formula
from burnbook.core.op import OPS
from burnbook.ops.random import CHANCES, dropout_limits
from burnbook.program.compiler.bound import Bound, Call, Given, binder
from burnbook.program.compiler.kernels import F32, RATE, is_ready, laid_anew, plain
from burnbook.program.compiler.patterns import window_of
from burnbook.program.values import Value

DRAW = 0.9  # nanoseconds that a random number takes
WORDS = 16  # random numbers that are drawn from one count
PIECE = 1 << 13  # elements of a parameter that one call of a kernel takes
MOST_PIECES = 1 << 15  # and one more for each parameter; threads share twice as many
MANY = 1 << 20  # elements of all parameters that are worth waking another thread for


# Convolutions and pools


@binder("conv2d.backward")
def bind_conv_backward(call: Call) -> Bound | None:
    """The gradients of a convolution with few channels, some samples at a time."""
    g, x, weight, *_ = call.values
    dx, dw, db = [*call.outs, None, None][:3]
    attrs = call.attrs
    stride, padding = tuple(attrs["stride"]), tuple(attrs["padding"])
    dilation, groups = tuple(attrs["dilation"]), attrs["groups"]
    if not is_ready(call, "conv") or not plain(g, x, weight) or not g.size:
        return None
    from burnbook.backend.compiled import conv

    shares = min(conv.SHARES, len(x))
    if conv.in_blocks(x, weight, g.shape[2:], stride, dilation, groups):
        return None
    found = conv.shared_gradients(g, x, weight, stride, padding, dilation, groups, dx)
    if found is None or len(x) % shares:
        return None
    lay, work, total = found

    def after() -> None:
        total(dw, db)

    cost = 2 * g.size * weight[0].size / RATE
    return laid_anew(lay, work, shares, cost, (0, 1), after)


@binder("adaptive_avg_pool2d", "avg_pool2d")
def bind_average(call: Call) -> Bound | None:
    """Averages of windows that lie side by side."""
    (x,), out = call.values, call.out
    if not is_ready(call, "pool") or not plain(x, out) or not out.size:
        return None
    name = call.step.op.name
    window = window_of(name, call.attrs, x.shape[2:], out.shape[2:])
    if window is None:
        return None
    from burnbook.backend.compiled import pool

    planes = [a.reshape(-1, *a.shape[2:]) for a in (x, out)]
    part = partial(pool.average_range, *planes, *window)
    run = partial(part, 0, len(planes[0]))
    return Bound(run, len(planes[0]), part, x.size * 0.2, "compiled", (0,))


# Gradients of elementwise ops


@binder("relu.backward", "sigmoid.backward", "tanh.backward", "gelu.backward")
@binder("silu.backward", "square.backward", "sqrt.backward", "softplus.backward")
@binder("leaky_relu.backward", "elu.backward", "clamp.backward", "abs.backward")
def bind_slope(call: Call) -> Bound | None:
    """The gradient of a function of each element."""
    g, kept, *more = call.values
    out = call.out
    if more or not is_ready(call, "activation") or not plain(g, kept, out):
        return None
    if not out.size or g.shape != kept.shape:
        return None
    from burnbook.backend.compiled import activation

    op = OPS[call.step.op.name.removesuffix(".backward")]
    loops, code, names = activation.SLOPE_LOOPS[op]
    numbers = activation.numbers_of(names, call.attrs)
    arrays = g.reshape(-1), kept.reshape(-1), out.reshape(-1)

    def part(start: int, stop: int) -> None:
        loops(code, *arrays, *numbers, start, stop)

    run = partial(loops, code, *arrays, *numbers, 0, out.size)
    return Bound(run, out.size, part, out.size * 0.3, "compiled", (0, 1))


# Dropout


@dataclass(frozen=True)
class Chance:
    """What a run of dropout draws by: its key, a limit and the factor of the rest."""

    key: Value
    threshold: int
    scale: float
    given: Given

    @classmethod
    def of(cls, call: Call) -> "Chance | None":
        """Of a step; None where everything is dropped, the key is always one, or how
        much is dropped changes from run to run."""
        key, prob = call.attrs.get("key"), call.attrs["prob"]
        if type(key) is not Value or type(prob) is Formula:
            return None
        threshold, scale = dropout_limits(prob)
        return None if threshold == CHANCES else cls(key, threshold, scale, call.given)

    def numbers(self) -> tuple[Any, ...]:
        """What kernels take, in this run."""
        first, second = self.given.keys[self.key]
        limits = np.uint16(self.threshold), F32.type(self.scale)
        return (np.uint64(first), np.uint64(second), *limits)


def by_stretch(
    arrays: Sequence[Any], work: Callable[[int, int], Any], cost: float, size: int = 1
) -> Bound:
    """Work on elements of arrays of one shape, sample by sample where these are whole
    numbers of `size` elements."""
    out = arrays[0]
    count = len(out) if out.ndim else 1
    run = partial(work, 0, out.size)
    each = out.size // count
    if out.size % count or each % size:

        def shared() -> None:
            threads.run(work, (), out.size, 1 << 15)

        return Bound(shared, cost=cost, how="compiled")

    def part(start: int, stop: int) -> None:
        work(start * each, stop * each)

    return Bound(run, count, part, cost, "compiled", tuple(range(len(arrays))))


@binder("dropout", "dropped_block")
def bind_dropout(call: Call) -> Bound | None:
    """Dropout, with the mask kept for the gradient; or with relu after it, and none."""
    (x,), out, chance = call.values, call.out, Chance.of(call)
    if chance is None or not is_ready(call, "dropout") or not plain(x, out):
        return None
    if not x.size:
        return None
    from burnbook.backend.compiled import dropout

    flat, to = x.reshape(-1), out.reshape(-1)
    if call.step.op.name == "dropped_block":
        call.given.rectified.add((call.step.out, chance.key))

        def rectify(start: int, stop: int) -> None:
            dropout.draw_and_rectify(flat, to, *chance.numbers(), start, stop)

        return by_stretch((x,), rectify, x.size * DRAW, WORDS)
    name = (chance.key, x.size, chance.threshold)
    mask = call.given.masks.get(name)
    if mask is None:
        mask = call.given.masks[name] = np.empty(x.size, bool)

    def draw(start: int, stop: int) -> None:
        dropout.draw_and_drop(flat, to, mask, *chance.numbers(), start, stop)

    return by_stretch((x,), draw, x.size * DRAW, WORDS)


@binder("dropout.backward")
def bind_dropout_backward(call: Call) -> Bound | None:
    """The gradient of dropout, with the mask that was drawn."""
    (g,), out, chance = call.values, call.out, Chance.of(call)
    if chance is None or not is_ready(call, "dropout") or not plain(g, out):
        return None
    mask = call.given.masks.get((chance.key, g.size, chance.threshold))
    if mask is None or not g.size:
        return None
    from burnbook.backend.compiled import dropout

    args = (g.reshape(-1), out.reshape(-1), mask, F32.type(chance.scale))
    return by_stretch((g,), partial(dropout.drop_again, *args), g.size * 0.3)


@binder("dropped_slopes")
def bind_dropped_slopes(call: Call) -> Bound | None:
    """The gradient of relu and dropout before it, whose result was y."""
    (g, y), out, chance = call.values, call.out, Chance.of(call)
    if chance is None or not is_ready(call, "dropout") or not plain(g, y, out):
        return None
    if (call.step.inputs[1], chance.key) not in call.given.rectified:
        return None
    from burnbook.backend.compiled import dropout

    args = (g.reshape(-1), y.reshape(-1), out.reshape(-1), F32.type(chance.scale))
    return by_stretch((g, y), partial(dropout.rectified_slopes, *args), g.size * 0.3)


@binder("pooled_slopes")
def bind_pooled_slopes(call: Call) -> Bound | None:
    """The gradient of an average pool, of relu, and of dropout before that."""
    (g, _, y), out = call.values, call.out
    if not (is_ready(call, "pool") and is_ready(call, "dropout")):
        return None
    if not plain(g, y, out) or not g.size:
        return None
    scale = 1.0
    if len(call.attrs["chain"]) > 2:
        chance = Chance.of(call)
        if chance is None:
            return None
        if (call.step.inputs[2], chance.key) not in call.given.rectified:
            return None
        scale = chance.scale
    from burnbook.backend.compiled import pool

    planes = [a.reshape(-1, *a.shape[2:]) for a in (g, y, out)]
    name = call.attrs["chain"][0].removesuffix(".backward")
    window = window_of(name, call.attrs, out.shape[2:], g.shape[2:])
    if window is None:
        raise AssertionError(f"{name} was fused with windows that overlap")
    args = (*planes, *window, F32.type(scale))
    part = partial(pool.share_rectified, *args)
    run = partial(part, 0, len(planes[0]))
    return Bound(run, len(planes[0]), part, out.size * 0.5, "compiled", (0, 2))


# Loss


@binder("cross_entropy")
def bind_cross_entropy(call: Call) -> Bound | None:
    """The loss of a table of scores; a wrong class is told by the op itself."""
    logits, targets = call.values
    if not _serves_loss(call, logits, targets, call.out):
        return None
    from burnbook.backend.compiled import loss

    out, op, backend = call.out.reshape(-1), call.step.op, call.backend

    def run() -> None:
        found = loss.mean_nll(logits, targets)
        if found < 0:
            backend.run(op, (logits, targets), {})
        out[0] = found

    return Bound(run, cost=logits.size * 2.0, how="compiled")


@binder("cross_entropy.backward")
def bind_cross_entropy_backward(call: Call) -> Bound | None:
    """The gradient of the loss for the scores."""
    g, logits, targets = call.values
    if not _serves_loss(call, logits, targets, call.out) or not plain(g):
        return None
    if call.out.shape != logits.shape:
        return None
    from burnbook.backend.compiled import loss

    out, op, backend, attrs = call.out, call.step.op, call.backend, call.attrs
    slope, count = g.reshape(-1), F32.type(len(logits))

    def run() -> None:
        scale = slope[0] / count
        if not loss.nll_gradient(logits, targets, scale, out):
            backend.run(op, (g, logits, targets), attrs)

    return Bound(run, cost=logits.size * 2.0, how="compiled")


def _serves_loss(call: Call, logits: Any, targets: Any, out: Any) -> bool:
    return (
        is_ready(call, "loss")
        and plain(logits, out)
        and logits.ndim == 2
        and logits.size > 0
        and type(targets) is np.ndarray
        and targets.dtype == np.int64
        and targets.flags.c_contiguous
    )


# Optimizers


@dataclass(frozen=True)
class AdamPart:
    """A step of Adam on one parameter.

    arrays: parameter, gradient and the two memories; is_in_place: whether the new ones
    stand where the old ones did.
    """

    arrays: tuple[Any, ...]
    attrs: dict[str, Any]
    given: Given
    is_in_place: bool

    def numbers(self) -> tuple[tuple[Any, ...], bool]:
        """What the kernels take in this run: factors, and whether it is cautious."""
        named = known_in(self.attrs, self.given)
        time, lr = named["time"], named["lr"]
        beta_1, beta_2 = named["beta_1"], named["beta_2"]
        step, scale = lr / (1 - beta_1**time), (1 - beta_2**time) ** -0.5
        rest = (named["epsilon"], named["penalty"], 1.0 - lr * named["decay"])
        return (step, beta_1, beta_2, scale, *rest), named["cautious"]


def known_in(attrs: dict[str, Any], given: Given) -> dict[str, Any]:
    """Attributes as they are in this run."""
    return {
        name: value(given.numbers) if type(value) is Formula else value
        for name, value in attrs.items()
    }


@binder("sgd_step")
def bind_sgd(call: Call) -> Bound | None:
    """A step of plain gradient descent."""
    param, grad = call.values
    if not is_ready(call, "optimizer_steps") or not plain(param, grad, call.out):
        return None
    from burnbook.backend.compiled import optimizer_steps as kernels

    none, attrs, given = np.empty(0, F32), call.attrs, call.given
    before = (param.reshape(-1), grad.reshape(-1), none)
    after, size = (call.out.reshape(-1), none), param.size

    def run() -> None:
        named = known_in(attrs, given)
        numbers = (named["lr"], named["penalty"], 0.0, 1.0)
        args = (before, after, numbers, False, False)
        if size >= kernels.SERIAL:
            threads.run(kernels.momentum_range, args, size, kernels.GRAIN)
        else:
            kernels.momentum_range(*args, 0, size)

    return Bound(run, cost=size * 0.3, how="compiled")


@binder("adam_step")
def bind_adam(call: Call) -> Bound | None:
    """A step of Adam, over the parameter and what is remembered of its gradients."""
    if not is_ready(call, "optimizer_steps"):
        return None
    if any(out is None for out in call.outs) or not plain(*call.values, *call.outs):
        return None
    from burnbook.backend.compiled import optimizer_steps as kernels

    none = np.empty(0, F32)
    flat = tuple([a.reshape(-1) for a in call.values])
    new = tuple([a.reshape(-1) for a in call.outs])
    before, after = (*flat, none), (*new, none)
    old = (flat[0], *flat[2:])
    same = [_begins_at(a) == _begins_at(b) for a, b in zip(old, new, strict=True)]
    reuse, size = all(same[1:]), flat[0].size
    part = AdamPart(flat, call.attrs, call.given, all(same))

    def run() -> None:
        args = (before, after, *part.numbers(), reuse)
        if size >= kernels.SERIAL:
            threads.run(kernels.adam_range, args, size, kernels.GRAIN)
        else:
            kernels.adam_range(*args, 0, size)

    together = adam_together if part.is_in_place else None
    return Bound(run, cost=size * 1.0, how="compiled", together=together, about=part)


def adam_together(bounds: Sequence[Bound]) -> Callable[[], Any]:
    """Steps of Adam on many parameters as one call, where their numbers are alike."""
    from burnbook.backend.compiled import optimizer_steps as kernels

    parts: list[AdamPart] = [bound.about for bound in bounds]
    first, names = parts[0], dict[str, set[str]]()
    for part in parts[1:]:
        pairs: dict[str, str] = {}
        if not _alike(first.attrs, part.attrs, pairs):
            return partial(_one_by_one, bounds)
        for name, other in pairs.items():
            names.setdefault(name, set()).add(other)
    equal = [(name, tuple(others - {name})) for name, others in names.items()]
    pieces = _pieces([part.arrays for part in parts])
    size = sum(part.arrays[0].size for part in parts)

    def run() -> None:
        known = first.given.numbers
        for name, others in equal:
            number = known[name]
            for other in others:
                if known[other] != number:
                    _one_by_one(bounds)
                    return
        threads.attend(size >= MANY)
        kernels.adam_pieces(threads.board, pieces, *first.numbers())

    return run


def _one_by_one(bounds: Sequence[Bound]) -> None:
    for bound in bounds:
        bound.run()


def _alike(one: Any, other: Any, pairs: dict[str, str]) -> bool:
    """Whether attributes are the same formulas, of names that belong to each other."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            _alike(one[key], other[key], pairs) for key in one
        )
    if not isinstance(one, Formula):
        return bool(one == other)
    if isinstance(one.function, str) and isinstance(other.function, str):
        return pairs.setdefault(one.function, other.function) == other.function
    return (
        one.function is other.function
        and one.part == other.part
        and len(one.arguments) == len(other.arguments)
        and all(map(partial(_alike, pairs=pairs), one.arguments, other.arguments))
    )


def _pieces(parameters: Sequence[tuple[Any, ...]]) -> Any:
    """Where the pieces of parameters, gradients and memories begin, and their sizes."""
    rows: list[list[int]] = []
    total = sum(arrays[0].size for arrays in parameters)
    most = max(PIECE, -(-total // MOST_PIECES))
    for arrays in parameters:
        places = [_begins_at(array) for array in arrays]
        for start in range(0, prod(arrays[0].shape), most):
            size = min(most, arrays[0].size - start)
            rows.append([*[place + start * F32.itemsize for place in places], size])
    return np.array(rows, np.int64)


def _begins_at(array: NDArray[Any]) -> int:
    return array.__array_interface__["data"][0]
