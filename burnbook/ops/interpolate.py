"""Interpolation: an image of another size.

Every place of the output has a position on the input, and is mixed from the input's
places around it: the nearest one, two (linear), four (cubic) or six (lanczos) of them
along each dim.
"""

import functools
from typing import Any

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace, Shape
from burnbook.core.op import normal, op
from burnbook.ops.conv.windows import LETTERS, Sizes
from burnbook.ops.resample import Taps, apply_all


def _fits(x: Shape, output_size: Sizes, mode: str) -> str | None:
    dims = len(output_size)
    if dims not in LETTERS or len(x) != dims + 2:
        return f"x must be [n, c, {LETTERS.get(dims, 'h, w')}], one size for each dim"
    if min(output_size) < 1:
        return f"output_size {list(output_size)} must be at least 1 in every dim"
    if min(x[2:]) < 1:
        return f"an image of size {list(x[2:])} has no pixel to read"
    if mode not in TABLES:
        return f"mode {mode!r} is not one of {', '.join(TABLES)}"
    return None


def _sample(mode: str, align_corners: bool, *size: int) -> dict[str, Any]:
    return {"output_size": size, "mode": mode, "align_corners": align_corners}


@op("F>F", check=_fits, method=False)
def interpolate(
    xp: ArrayNamespace, x: Array, *, output_size: Sizes, mode: str, align_corners: bool
) -> Array:
    """Stretch or shrink an image: out = Σ weight · x over the places around a position.

    align_corners: the corners of both images meet; otherwise their edges do.

    Shapes: x [n, c, ...] -> [n, c, ...]
    """
    mixed = tables(x.shape[2:], output_size, mode, align_corners)
    return apply_all(xp, x, mixed)


@op("F>F", method=False)
def interpolate_x(
    xp: ArrayNamespace,
    dout: Array,
    *,
    x_shape: Shape,
    output_size: Sizes,
    mode: str,
    align_corners: bool,
) -> Array:
    """The gradient of interpolate: every place gets back what it gave, weighted.

    Shapes: dout [n, c, ...] -> [n, c, ...]
    """
    mixed = tables(x_shape[2:], output_size, mode, align_corners)
    return apply_all(xp, dout, [table.turned() for table in mixed])


interpolate.grad(x=interpolate_x)

interpolate.examples(
    samples=[
        (normal(2, 3, 4, 5), _sample("nearest", True, 6, 3)),
        (normal(2, 3, 4), _sample("nearest_exact", True, 7)),
        (normal(2, 3, 4, 5), _sample("linear", True, 7, 3)),
        (normal(1, 2, 3, 4, 2), _sample("linear", False, 5, 2, 4)),
        (normal(2, 3, 4, 5), _sample("cubic", True, 6, 9)),
        (normal(2, 3, 6, 5), _sample("cubic", False, 4, 9)),
        (normal(2, 3, 6, 4), _sample("lanczos", True, 9, 3)),
        (normal(2, 3, 7), _sample("lanczos", False, 5)),
    ],
    rejects=[
        (normal(2, 3, 4), _sample("linear", True, 4, 4)),
        (normal(2, 3, 4), _sample("linear", True, 0)),
        (normal(2, 3, 4), _sample("closest", True, 4)),
    ],
)
interpolate_x.grad(dout=lambda xp, g, x_shape, **options: interpolate(xp, g, **options))


def tables(
    size: Sizes, output_size: Sizes, mode: str, align_corners: bool
) -> list[Taps]:
    """What every dim of the output is mixed from."""
    pairs = zip(size, output_size, strict=True)
    return [_table(n, m, mode, bool(align_corners)) for n, m in pairs]


@functools.lru_cache(64)
def _table(size: int, size_out: int, mode: str, align_corners: bool) -> Taps:
    """What one dim of the output is mixed from."""
    places, weights = TABLES[mode](size, size_out, align_corners)
    rows = np.broadcast_to(np.arange(size_out)[:, None], places.shape)
    return Taps(size_out, size, rows.ravel(), places.ravel(), weights.ravel())


def positions(size: int, size_out: int, align_corners: bool) -> np.ndarray:
    """Where each place of the output lies on the input, as floats.

    Example:
        >>> positions(3, 5, align_corners=True)
        array([0. , 0.5, 1. , 1.5, 2. ])
    """
    i = np.arange(size_out)
    if align_corners:
        return i * (size - 1) / max(size_out - 1, 1)
    return (i + 0.5) * size / size_out - 0.5


def _nearest(size: int, size_out: int, align_corners: bool) -> Any:
    places = np.arange(size_out)[:, None] * size // size_out
    return places, np.ones(places.shape)


def _nearest_exact(size: int, size_out: int, align_corners: bool) -> Any:
    places = (2 * np.arange(size_out)[:, None] + 1) * size // (2 * size_out)
    return places, np.ones(places.shape)


def _linear(size: int, size_out: int, align_corners: bool) -> Any:
    at = positions(size, size_out, align_corners).clip(0, size - 1)[:, None]
    low = np.floor(at)
    places = np.concatenate([low, np.minimum(low + 1, size - 1)], axis=1)
    return places.astype(int), np.concatenate([low + 1 - at, at - low], axis=1)


def _cubic(size: int, size_out: int, align_corners: bool) -> Any:
    """Keys' cubic with a = −0.75; beyond the edge the edge is repeated."""
    at = positions(size, size_out, align_corners)[:, None]
    places = np.floor(at).astype(int) + np.arange(-1, 3)
    d, a = np.abs(at - places), -0.75
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return places.clip(0, size - 1), np.where(d <= 1, near, far)


def _lanczos(size: int, size_out: int, align_corners: bool) -> Any:
    """sinc(d) · sinc(d / 3) for d < 3; places beyond the edge are left out."""
    at = positions(size, size_out, align_corners)[:, None]
    places = np.floor(at).astype(int) + np.arange(-2, 4)
    d = at - places
    weights = np.where(np.abs(d) < 3, np.sinc(d) * np.sinc(d / 3), 0.0)
    weights[(places < 0) | (places >= size)] = 0.0
    weights[np.abs(weights) < 1e-15] = 0.0  # sinc of a whole number
    weights /= weights.sum(axis=1, keepdims=True)
    return places.clip(0, size - 1), weights


TABLES = {
    "nearest": _nearest,
    "nearest_exact": _nearest_exact,
    "linear": _linear,
    "cubic": _cubic,
    "lanczos": _lanczos,
}
