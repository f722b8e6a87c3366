"""How the samples of a declaration grow to the sizes of the table.

A sample such as `normal(2, 3)` becomes `normal(256, 256)`; sizes of 1 stay 1, so what
stretches in the sample stretches in the table. Where attributes speak of sizes (a
shape, a slice, an index below a bound) the row of `GROWN` says what to take instead.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from burnbook.op import Op, indices, normal, split_sample

Grown = tuple[tuple[Any, ...], dict[str, Any]]
SIZES = ((8, 8), (256, 256), (4096, 1024))
PICTURES = {64: (1, 1, 8, 8), 65536: (4, 16, 32, 32), 4194304: (32, 32, 64, 64)}
FAMILIES_OF_PICTURES = "conv conv_nd conv_transpose pool pool_nd interpolate unfold"


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
    attrs = {"mode": "bilinear", "align_corners": True}
    return (normal(n, c, h // 2, w // 2),), {"output_size": (h, w), **attrs}


def _deformed(rows: int, cols: int) -> Grown:
    n, c, h, w = picture(rows * cols // 8 or 8, 4) if rows > 8 else (1, 1, 8, 8)
    attrs = dict.fromkeys(("stride", "padding", "dilation"), (1, 1))
    attrs |= {"kernel_size": (3, 3), "offset_groups": 1}
    return (normal(n, c, h, w), normal(n, 18, h, w)), attrs


def _squares(rows: int, cols: int) -> Grown:
    count = rows * cols // 1024 if rows != cols else 1
    side = 32 if rows != cols else rows
    return ((normal(count, side, side),), {})


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
    "rfft_pairs": lambda r, c: ((normal(r, c),), {}),
    "irfft_pairs": lambda r, c: ((normal(r, c // 2 + 1, 2),), {"n": c}),
    "fft_pairs": lambda r, c: ((normal(r, c // 2, 2),), {"inverse": False}),
}


def _drawn(rows: int, cols: int) -> Grown:
    return (), {"shape": (rows, cols), "key": (1, 2), "dtype": np.float32}


GROWN |= dict.fromkeys(("uniform", "bernoulli", "normal"), _drawn)
