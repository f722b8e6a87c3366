"""How the samples of a declaration grow to the sizes of the table.

A sample such as `normal(2, 3)` becomes `normal(256, 256)`; sizes of 1 stay 1, so what
stretches in the sample stretches in the table. Where attributes speak of sizes (a
shape, a slice, an index below a bound) the row of `GROWN` says what to take instead.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from burnbook.core.op import Op, indices, normal, positive, split_sample, unit

Grown = tuple[tuple[Any, ...], dict[str, Any]]
SIZES = ((8, 8), (256, 256), (4096, 1024))
PICTURES = {64: (1, 1, 8, 8), 65536: (4, 16, 32, 32), 4194304: (32, 32, 64, 64)}
FAMILIES_OF_PICTURES = "conv conv_transpose pool interpolate unfold"


def grow(op: Op, rows: int, cols: int) -> Grown:
    """The inputs and attributes of an op for a size of the table."""
    if op.name in GROWN:
        return GROWN[op.name](rows, cols)
    specs, attrs = split_sample(op.samples[0])
    if family_of(op) in FAMILIES_OF_PICTURES.split():
        target = picture(rows * cols, len(specs[0][1]))
    else:
        target = spread_out(rows, cols, len(specs[0][1]) if specs else 2)
    return tuple(_stretched(spec, target) for spec in specs), attrs


def family_of(op: Op) -> str:
    """The name of the file that declares an op."""
    return op.forward.__module__.rpartition(".")[2]


def spread_out(rows: int, cols: int, rank: int) -> tuple[int, ...]:
    """rows · cols elements in a shape of some rank: the last dim stays whole."""
    if rank == 1:
        return (rows * cols,)
    lead = (2,) * (rank - 2)
    return (*lead, rows // 2 ** len(lead), cols)


def picture(count: int, rank: int) -> tuple[int, ...]:
    """The same for a batch of lines, pictures or volumes with channels."""
    n, c, h, w = PICTURES[count]
    return {3: (n, c, h * w), 4: (n, c, h, w), 5: (n, c, h, w // 4, 4)}[rank]


def _stretched(spec: Any, target: tuple[int, ...]) -> Any:
    """The same kind of values in the new shape; a size of 1 stays."""
    how, shape, *rest = spec
    grown = zip(shape, target[len(target) - len(shape) :], strict=True)
    return (how, tuple(1 if old == 1 else new for old, new in grown), *rest)


def _convolution(rank: int, transposed: bool = False) -> Callable[[int, int], Grown]:
    def grown(rows: int, cols: int) -> Grown:
        x = picture(rows * cols, rank)
        inside = rank - 2
        weight, bias = normal(x[1], x[1], *(3,) * inside), normal(x[1])
        attrs: dict[str, Any] = {}
        if rank != 4:
            attrs = dict.fromkeys(("stride", "padding", "dilation"), (1,) * inside)
            attrs["groups"] = 1
        if transposed:
            attrs["padding_out"] = (0,) * inside
        return (normal(*x), weight, bias), attrs

    return grown


def _pictures(**attrs: Any) -> Callable[[int, int], Grown]:
    return lambda r, c: ((normal(*picture(r * c, 4)),), attrs)


def _halved(rank: int) -> Callable[[int, int], Grown]:
    def grown(rows: int, cols: int) -> Grown:
        x = picture(rows * cols, rank)
        return (normal(*x),), {"output_size": tuple(n // 2 for n in x[2:])}

    return grown


def _doubled(rows: int, cols: int) -> Grown:
    n, c, h, w = picture(rows * cols, 4)
    attrs = {"mode": "linear", "align_corners": True}
    return (normal(n, c, h // 2, w // 2),), {"output_size": (h, w), **attrs}


def _deformed(rows: int, cols: int) -> Grown:
    n, c, h, w = picture(rows * cols, 4)
    n, c = -(-n // 2), -(-c // 4)  # an eighth: each element is asked for nine times
    attrs = dict.fromkeys(("stride", "padding", "dilation"), (1, 1))
    attrs |= {"kernel_size": (3, 3), "offset_groups": 1}
    return (normal(n, c, h, w), normal(n, 18, h, w)), attrs


def _squares(rows: int, cols: int) -> Grown:
    count = rows * cols // 1024 if rows != cols else 1
    side = 32 if rows != cols else rows
    return ((normal(count, side, side),), {})


def _sequence(count: int) -> tuple[int, int, int]:
    """Examples, steps and numbers at each."""
    return {64: (2, 4, 8), 65536: (16, 32, 128), 4194304: (64, 128, 512)}[count]


def _recurrent(gates: int) -> Callable[[int, int], Grown]:
    def grown(rows: int, cols: int) -> Grown:
        n, steps, d = _sequence(rows * cols)
        weights = [normal(d, gates * d), normal(d, gates * d), normal(gates * d)]
        if gates == 3:
            weights.append(normal(gates * d))
        states = [normal(n, d)] * (2 if gates == 4 else 1)
        attrs = {"reset_after": True} if gates == 3 else {}
        return (normal(n, steps, d), *weights, *states), attrs

    return grown


def _normed(known: int = 0, **attrs: Any) -> Callable[[int, int], Grown]:
    def grown(rows: int, cols: int) -> Grown:
        x = picture(rows * cols, 4)
        each = [positive(x[1]) if n == 3 else normal(x[1]) for n in range(2 + known)]
        if "groups" in attrs:
            return (normal(*x), *each), {**attrs, "groups": -(-x[1] // 8)}
        return (normal(*x), *each), attrs

    return grown


def _turned(rows: int, cols: int) -> Grown:
    n, steps, d = _sequence(rows * cols)
    return (normal(n, steps, d), unit(steps, d // 2, 2)), {}


def _aligned(rows: int, cols: int) -> Grown:
    n, steps, d = _sequence(rows * cols)
    attrs = {"input_lengths": (steps,) * n, "target_lengths": (steps // 2,) * n}
    values = normal(steps, n, d), indices(d - 1, n, steps // 2)
    return values, {**attrs, "blank": d - 1}


def _transduced(rows: int, cols: int) -> Grown:
    n, steps, d = _sequence(rows * cols)
    lengths = {"logit_lengths": (steps,) * n, "target_lengths": (d // 2 - 1,) * n}
    return (normal(n, steps, d // 2, 2),), lengths


def _labelled(**attrs: Any) -> Callable[[int, int], Grown]:
    def grown(rows: int, cols: int) -> Grown:
        lengths = (cols,) * rows
        return (indices(9, rows, cols),), {"target_lengths": lengths, **attrs}

    return grown


WINDOWS = {"kernel_size": (3, 3), "stride": (1, 1)}
WINDOWS |= {"padding": (1, 1), "dilation": (1, 1)}
GROWN: dict[str, Callable[[int, int], Grown]] = {
    "matmul": lambda r, c: ((normal(r, c), normal(c, c)), {}),
    "linear": lambda r, c: ((normal(r, c), normal(c, c), normal(c)), {}),
    "conv2d": _convolution(4),
    "conv": _convolution(3),
    "conv_transpose": _convolution(3, transposed=True),
    "deform_patches": _deformed,
    "adaptive_avg_pool2d": _halved(4),
    "adaptive_avg_pool": _halved(3),
    "interpolate": _doubled,
    "unfold4d": _pictures(**WINDOWS),
    "fold4d": lambda r, c: (
        (normal(1, 9 * 4, r * c // 4),),
        {**WINDOWS, "output_size": (r // 2, c // 2)},
    ),
    "inverse": _squares,
    "det": _squares,
    "sum_to": lambda r, c: ((normal(r, c),), {"shape": (1, c)}),
    "gather": lambda r, c: ((normal(r, c), indices(c, r, c)), {"dim": 1}),
    "scatter": lambda r, c: (
        (normal(r, c), indices(c, r, c), normal(r, c)),
        {"dim": 1},
    ),
    "embedding": lambda r, c: ((normal(r, c), indices(r, 8, r // 8)), {}),
    "select": lambda r, c: ((normal(r, c), indices(r, r)), {"dim": 0}),
    "select_assign": lambda r, c: (
        (normal(r, c), indices(r, r), normal(r, c)),
        {"dim": 0},
    ),
    "select_put": lambda r, c: ((normal(r, c), indices(r, r), normal(r, c)), {}),
    "last_of_equals": lambda r, c: ((indices(r * c, r * c),), {"size": r * c}),
    "reshape": lambda r, c: ((normal(r, c),), {"shape": (c, r)}),
    "expand": lambda r, c: ((normal(1, c),), {"shape": (r, c)}),
    "cat": lambda r, c: ((normal(r // 2, c), normal(r // 2, c)), {"dim": 0}),
    "slice": lambda r, c: (
        (normal(r, c),),
        {"index": (slice(r // 4, r), slice(0, c, 2))},
    ),
    "slice_assign": lambda r, c: (
        (normal(r, c), normal(r // 2, c)),
        {"index": (slice(r // 4, r // 4 + r // 2),)},
    ),
    "cross_entropy": lambda r, c: ((normal(r, c), indices(c, r)), {}),
    "rnn": _recurrent(1),
    "gru": _recurrent(3),
    "lstm": _recurrent(4),
    "rotary": _turned,
    "batch_norm": _normed(epsilon=1e-5),
    "batch_norm_known": _normed(known=2),
    "group_norm": _normed(groups=0, epsilon=1e-5),
    "ctc_loss": _aligned,
    "ctc_labels": _labelled(blank=9),
    "rnnt_loss": _transduced,
    "rnnt_labels": _labelled(blank=9, size=10),
    "slice_spread": lambda r, c: (
        (normal(r // 2, c),),
        {"index": (slice(r // 4, r // 4 + r // 2), slice(None)), "shape": (r, c)},
    ),
    "slide_back": lambda r, c: (
        (normal(r // 8, c // 4, 8, 4),),
        {"dim": 1, "size": 4, "step": 4, "shape": (r // 8, c, 8)},
    ),
    "rfft_pairs": lambda r, c: ((normal(r, c),), {}),
    "rfft_back": lambda r, c: ((normal(r, c // 2 + 1, 2),), {"n": c}),
    "irfft_pairs": lambda r, c: ((normal(r, c // 2 + 1, 2),), {"n": c}),
    "fft_pairs": lambda r, c: ((normal(r, c // 2, 2),), {"inverse": False}),
}


def _drawn(rows: int, cols: int) -> Grown:
    return (), {"shape": (rows, cols), "key": (1, 2), "dtype": np.float32}


GROWN |= dict.fromkeys(("uniform", "bernoulli", "normal"), _drawn)
