"""Other sizes for images, and values between pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from burnbook import ops
from burnbook.importers.onnx.operators.registry import host_operator, operator
from burnbook.importers.onnx.traced import take
from burnbook.importers.onnx.values import (
    Value,
    aligned,
    as_array,
    as_tensor,
    indices_of,
    ints,
    mask_of,
    rearranged,
    reshape,
)
from burnbook.ops.interpolate import positions
from burnbook.tensor import Tensor
from burnbook.tensor.methods import apply

NOISE = 1e-5  # of rounding, in sums that are whole numbers


def _place(
    mode: str,
    out: Value,
    scale: float,
    size: int,
    new: int,
    wanted: float,
    roi: tuple[float, float],
) -> Any:
    """Where in x a place of the result lies."""
    match mode:
        case "asymmetric":
            return out / scale
        case "align_corners":
            return out * ((size - 1) / (wanted - 1)) if wanted != 1 else out * 0.0
        case "pytorch_half_pixel":
            return (out + 0.5) / scale - 0.5 if wanted > 1 else out * 0.0
        case "half_pixel_symmetric":
            middle = size / 2 * (1 - new / (scale * size))
            return middle + (out + 0.5) / scale - 0.5
        case "tf_half_pixel_for_nn":
            return (out + 0.5) / scale
        case "tf_crop_and_resize":
            start, end = roi
            if wanted > 1:
                return start * (size - 1) + out * (end - start) * (size - 1) / (
                    wanted - 1
                )
            return out * 0.0 + 0.5 * (start + end) * (size - 1)
        case _:
            return (out + 0.5) / scale - 0.5


def _nearest(place: Value, mode: str) -> Any:
    match mode:
        case "round_prefer_ceil":
            return np.floor(place + 0.5)
        case "floor":
            return np.floor(place)
        case "ceil":
            return np.ceil(place)
        case _:
            return np.ceil(place - 0.5)


def _linear(distance: Value) -> Any:
    return np.maximum(0, 1 - np.abs(distance))


def _cubic(a: float) -> Callable[[Any], Any]:
    def weight(distance: Value) -> Any:
        d = np.abs(distance)
        near = (a + 2) * d**3 - (a + 3) * d**2 + 1
        far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
        return np.where(d <= 1, near, np.where(d < 2, far, 0))

    return weight


def _matrix(
    size: int,
    new: int,
    scale: float,
    mode: str,
    places: str,
    nearest_mode: str,
    cubic: float,
    exclude: int,
    antialias: int,
    roi: tuple[float, float],
    extrapolated: list[Any],
) -> Any:
    """[new, size]: how much of each place of x each place of the result takes."""
    out = np.arange(new, dtype=np.float64)
    at = _place(places, out, scale, size, new, scale * size, roi)
    extrapolated.append((at < 0) | (at > size - 1))
    if mode == "nearest":
        picked = np.clip(_nearest(at, nearest_mode), 0, size - 1).astype(int)
        return np.eye(size)[picked]
    curve, reach = (_linear, 1) if mode == "linear" else (_cubic(cubic), 2)
    shrink = min(1.0, scale) if antialias else 1.0
    wide = int(np.ceil(reach / shrink))
    first = np.floor(at).astype(int)[:, None] + np.arange(-wide + 1, wide + 1)
    weights = curve((first - at[:, None]) * shrink)
    if exclude:
        weights = np.where((first < 0) | (first >= size), 0, weights)
    if exclude or antialias:
        total = weights.sum(1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
    found = np.zeros((new, size))
    rows = np.broadcast_to(np.arange(new)[:, None], first.shape)
    np.add.at(found, (rows, np.clip(first, 0, size - 1)), weights)
    return found


def _sizes(
    own: Sequence[int],
    scales: Value,
    sizes: Value,
    axes: Sequence[int],
    policy: str,
) -> tuple[list[float], list[int]]:
    """The scale of each dim, and its new size."""
    rank = len(own)
    along = [a % rank for a in axes] or list(range(rank))
    factors, new = [1.0] * rank, list(own)
    if scales is not None and np.size(as_array(scales)):
        for axis, s in zip(along, as_array(scales).reshape(-1), strict=True):
            factors[axis], new[axis] = float(s), int(np.floor(own[axis] * float(s)))
        return factors, new
    wanted = ints(sizes)
    ratios = [w / own[a] for a, w in zip(along, wanted, strict=True)]
    if policy in ("not_larger", "not_smaller"):
        one = min(ratios) if policy == "not_larger" else max(ratios)
        for axis in along:
            factors[axis], new[axis] = one, int(np.floor(own[axis] * one + 0.5))
        return factors, new
    for axis, w, ratio in zip(along, wanted, ratios, strict=True):
        factors[axis], new[axis] = ratio, w
    return factors, new


@operator("Resize")
def resize(
    x: Tensor,
    roi: Value = None,
    scales: Value = None,
    sizes: Value = None,
    *,
    antialias: int = 0,
    axes: Sequence[int] = (),
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Tensor:
    """Other sizes: the nearest value, or a linear or cubic mix of what lies around.

    Each dim is resized by a matrix, so gradients of any order flow.
    """
    own = [int(n) for n in x.value.shape]
    rank = len(own)
    factors, new = _sizes(own, scales, sizes, axes, keep_aspect_ratio_policy)
    along = [a % rank for a in axes] or list(range(rank))
    frame = dict.fromkeys(range(rank), (0.0, 1.0))
    if coordinate_transformation_mode == "tf_crop_and_resize":
        held = as_array(roi).reshape(-1)
        for i, axis in enumerate(along):
            frame[axis] = float(held[i]), float(held[i + len(along)])
    if mode in ("linear", "bilinear") and not antialias and not exclude_outside:
        places = coordinate_transformation_mode
        if (found := _interpolated(x, factors, new, places)) is not None:
            return found
    outside: dict[int, Any] = {}
    for axis in range(rank):
        told: list[Any] = []
        if factors[axis] == 1 and new[axis] == own[axis] and axis not in along:
            continue
        if (
            factors[axis] == 1
            and new[axis] == own[axis]
            and coordinate_transformation_mode != "tf_crop_and_resize"
        ):
            continue
        made = _matrix(
            own[axis],
            new[axis],
            factors[axis],
            mode.replace("bilinear", "linear"),
            coordinate_transformation_mode,
            nearest_mode,
            cubic_coeff_a,
            exclude_outside,
            antialias,
            frame[axis],
            told,
        )
        outside[axis] = told[0]
        x = _along(x, made, axis, mode == "nearest")
    if coordinate_transformation_mode == "tf_crop_and_resize":
        shape = tuple(x.value.shape)
        gone = np.zeros(shape, bool)
        for axis, row in outside.items():
            gone |= row.reshape([-1 if i == axis else 1 for i in range(rank)])
        x = apply(ops.mask_fill, x, mask_of(gone, x), value=extrapolation_value)
    return x


def _interpolated(
    x: Tensor, factors: list[float], new: list[int], places: str
) -> Tensor | None:
    """The linear mix of an image as one operation, where there is one for its places.

    Why: what writes a program knows that operation; of matrices it sees the numbers.
    """
    own = [int(n) for n in x.value.shape]
    if not 3 <= len(own) <= 5 or new[:2] != own[:2] or min(*own[2:], *new[2:]) < 1:
        return None
    if places in SAME_PLACES:
        for corners in (False, True):
            pairs = [
                (_places(n, m, factor, places), positions(n, m, corners))
                for n, m, factor in zip(own[2:], new[2:], factors[2:], strict=True)
            ]
            if all(np.allclose(a, b, rtol=0, atol=1e-9) for a, b in pairs):
                size = tuple(new[2:])
                how = {"output_size": size, "mode": "linear", "align_corners": corners}
                return apply(ops.interpolate, x, **how)
    return None


SAME_PLACES = {
    "half_pixel",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
    "align_corners",
    "asymmetric",
}


def _places(size: int, new: int, scale: float, mode: str) -> Any:
    """Where the places of a result lie on a dim, within it."""
    out = np.arange(new, dtype=np.float64)
    if scale == 1 and size == new:
        return out
    return _place(mode, out, scale, size, new, scale * size, (0.0, 1.0))


@resize.host
def _(x: Value, *inputs: Value, extrapolation_value: float = 0.0, **how: Value) -> Any:
    if how.get("mode", "nearest") != "nearest":
        more: dict[str, Any] = {"extrapolation_value": extrapolation_value, **how}
        return _cut_off(resize(x.astype(np.float64), *inputs, **more), x.dtype)
    places = np.arange(x.size, dtype=np.float64).reshape(x.shape)
    picked = resize(places, *inputs, extrapolation_value=-1.0, **how).astype(np.int64)
    found = take(x.reshape(-1), np.maximum(picked, 0).reshape(-1), 0)
    found = found.reshape(picked.shape)
    if (picked >= 0).all():
        return found
    return np.where(picked < 0, np.asarray(extrapolation_value, x.dtype), found)


def _cut_off(found: Value, dtype: Value) -> Any:
    """Floats as whole numbers, as ONNX casts them: without what is behind the point."""
    near = as_array(found)
    if dtype.kind == "f":
        return near.astype(dtype)
    whole = np.rint(near)  # 2.9999999 is 3
    near = np.where(np.abs(near - whole) < NOISE, whole, np.trunc(near))
    info = np.iinfo(dtype)
    return np.clip(near, info.min, info.max).astype(dtype)


def _along(x: Tensor, matrix: Value, axis: int, picks: bool) -> Tensor:
    """A matrix times one dim of a tensor."""
    rank = len(x.value.shape)
    if picks:
        order = np.argmax(matrix, 1)
        return rearranged(x, lambda at: np.take(at, order, axis))
    front = [i for i in range(rank) if i != axis]
    moved = apply(ops.permute, x, axes=(*front, axis)) if rank > 1 else x
    shape = tuple(moved.value.shape)
    rows = reshape(moved, (int(np.prod(shape[:-1])), shape[-1]))
    held = as_tensor(matrix.T.astype(np.dtype(x.value.dtype)), x.backend)
    done = reshape(apply(ops.matmul, rows, held), (*shape[:-1], matrix.shape[0]))
    back = np.argsort([*front, axis])
    return (
        apply(ops.permute, done, axes=tuple(int(b) for b in back)) if rank > 1 else done
    )


OLD: dict[str, Any] = {
    "coordinate_transformation_mode": "asymmetric",
    "nearest_mode": "floor",
}


@operator("Upsample")
def upsample(x: Tensor, scales: Value, *, mode: str = "nearest") -> Tensor:
    """The old form of Resize."""
    return resize(x, None, scales, mode=mode, **OLD)


@upsample.host
def _(x: Value, scales: Value, *, mode: str = "nearest") -> Any:
    return resize(x, None, scales, mode=mode, **OLD)


@operator("GridSample")
def grid_sample(
    x: Tensor,
    grid: Tensor,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Tensor:
    """Values of x at places of a grid, whose edges are −1 and 1.

    Gradients flow to x; the places are given.
    """
    n, c, *sizes = (int(k) for k in x.value.shape)
    places = as_array(grid).astype(np.float64)
    out = places.shape[1:-1]
    at = [
        _pixel(places[..., len(sizes) - 1 - i], size, align_corners)
        for i, size in enumerate(sizes)
    ]
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if padding_mode == "border" and mode != "cubic":
        at = [np.clip(p, 0, s - 1) for p, s in zip(at, sizes, strict=True)]
    elif padding_mode == "reflection" and mode != "cubic":
        at = [_mirrored(p, s, align_corners) for p, s in zip(at, sizes, strict=True)]
    taps: list[list[tuple[Any, Any]]] = []
    for p in at:
        if mode == "nearest":
            taps.append([(np.rint(p).astype(int), np.ones_like(p))])
        elif mode == "linear":
            low = np.floor(p).astype(int)
            taps.append([(low, low + 1 - p), (low + 1, p - low)])
        else:
            low, curve = np.floor(p).astype(int), _cubic(-0.75)
            taps.append([(low + k, curve(low + k - p)) for k in (-1, 0, 1, 2)])
    flat = reshape(x, (n, c, int(np.prod(sizes))))
    total: Tensor | None = None
    for choice in np.ndindex(*[len(t) for t in taps]):
        index, weight = np.zeros((n, *out), int), np.ones((n, *out))
        for axis, k in enumerate(choice):
            place, part = taps[axis][k]
            size = sizes[axis]
            if padding_mode == "zeros":
                part = np.where((place >= 0) & (place < size), part, 0)
            elif padding_mode == "reflection":
                place = np.rint(_mirrored(place.astype(float), size, align_corners))
            index = index * size + np.clip(place, 0, size - 1).astype(int)
            weight = weight * part
        picked = _of_samples(flat, index.reshape(n, -1))
        line = weight.reshape(n, 1, -1).astype(np.dtype(x.value.dtype))
        part = apply(ops.mul, *aligned(picked, as_tensor(line, x.backend)))
        total = part if total is None else apply(ops.add, total, part)
    return reshape(total, (n, c, *out))  # type: ignore[arg-type] # one tap at least


def _of_samples(flat: Tensor, index: Value) -> Tensor:
    """[n, c, p] at index [n, q] -> [n, c, q]"""
    return rearranged(
        flat,
        lambda at: np.take_along_axis(
            at, np.broadcast_to(index[:, None], (*at.shape[:2], index.shape[1])), 2
        ),
    )


def _pixel(place: Value, size: int, align_corners: int) -> Any:
    if align_corners:
        return (place + 1) / 2 * (size - 1)
    return ((place + 1) * size - 1) / 2


def _mirrored(place: Value, size: int, align_corners: int) -> Any:
    low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
    span = high - low
    if span <= 0:
        return np.zeros_like(place)
    rest = np.mod(place - low, 2 * span)
    found = low + np.where(rest > span, 2 * span - rest, rest)
    return np.clip(found, 0, size - 1) if not align_corners else found


@grid_sample.host
def _(x: Value, grid: Value, **how: Any) -> Any:
    wide = x.astype(np.float64)
    return _cut_off(grid_sample(wide, grid.astype(np.float64), **how), x.dtype)


@operator("AffineGrid")
def affine_grid(theta: Tensor, size: Value, *, align_corners: int = 0) -> Tensor:
    """Places of an image (or volume) that a matrix turns, stretches and moves."""
    n, _, *sizes = ints(size)
    lines = [
        np.linspace(-1, 1, k) if align_corners else (np.arange(k) * 2 + 1) / k - 1
        for k in sizes
    ]
    mesh = np.meshgrid(*lines, indexing="ij")
    base = np.stack([*mesh[::-1], np.ones_like(mesh[0])], -1)
    flat = base.reshape(1, -1, len(sizes) + 1)
    held = np.broadcast_to(flat, (n, *flat.shape[1:])).astype(
        np.dtype(theta.value.dtype)
    )
    turned = apply(ops.permute, theta, axes=(0, 2, 1))
    found = apply(ops.matmul, as_tensor(held, theta.backend), turned)
    return reshape(found, (n, *sizes, len(sizes)))


@operator("Col2Im")
def col2_im(
    x: Tensor,
    image_shape: Value,
    block_shape: Value,
    *,
    dilations: Sequence[int] = (),
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Tensor:
    """Columns of blocks put back to where they were cut out, and added up."""
    image, block = ints(image_shape), ints(block_shape)
    dims = len(image)
    step, gap = list(strides) or [1] * dims, list(dilations) or [1] * dims
    around = list(pads) or [0] * (2 * dims)
    wide = [image[i] + around[i] + around[i + dims] for i in range(dims)]
    n, rows, _ = (int(k) for k in x.value.shape)
    channels = rows // int(np.prod(block))
    index = np.zeros((1, 1), int)
    for i in range(dims):
        starts = np.arange(0, wide[i] - (block[i] - 1) * gap[i], step[i])
        place = np.arange(block[i])[:, None] * gap[i] + starts
        index = index[:, None, :, None] * wide[i] + place[None, :, None, :]
        index = index.reshape(index.shape[0] * index.shape[1], -1)
    total = int(np.prod(wide))
    lead = np.arange(n * channels).reshape(n, channels, 1, 1) * total
    where = (lead + index).reshape(-1)
    zeros = as_tensor(
        np.zeros(n * channels * total, np.dtype(x.value.dtype)), x.backend
    )
    flat = reshape(x, (where.size,))
    summed = apply(ops.select_assign, zeros, indices_of(where, x), flat, dim=0)
    full = reshape(summed, (n, channels, *wide))
    cut = [slice(0, n), slice(0, channels)]
    cut += [slice(around[i], around[i] + image[i]) for i in range(dims)]
    return apply(ops.slice_, full, index=tuple(cut))


@host_operator("RoiAlign")
def roi_align(
    x: Value,
    rois: Value,
    batches: Value,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Any:
    """Regions of images in one size: the mean or largest of samples in each cell."""
    shift = 0.5 if coordinate_transformation_mode == "half_pixel" else 0.0
    _, channels, height, width = x.shape
    found = np.zeros((len(rois), channels, output_height, output_width), x.dtype)
    for r, (roi, batch) in enumerate(zip(rois, batches, strict=True)):
        x1, y1, x2, y2 = (float(k) * spatial_scale - shift for k in roi)
        wide, high = x2 - x1, y2 - y1
        if not shift:
            wide, high = max(wide, 1.0), max(high, 1.0)
        tall, broad = high / output_height, wide / output_width
        down = sampling_ratio or int(np.ceil(high / output_height))
        over = sampling_ratio or int(np.ceil(wide / output_width))
        down, over = max(down, 1), max(over, 1)
        for i in range(output_height):
            for j in range(output_width):
                ys = y1 + (i + (np.arange(down) + 0.5) / down) * tall
                xs = x1 + (j + (np.arange(over) + 0.5) / over) * broad
                parts = _corners(x[int(batch)], ys, xs, height, width)
                if mode == "avg":
                    found[r, :, i, j] = parts.sum(0).reshape(channels, -1).mean(-1)
                else:
                    found[r, :, i, j] = parts.max(0).reshape(channels, -1).max(-1)
    return found


def _corners(image: Value, ys: Value, xs: Value, height: int, width: int) -> Any:
    """[4, c, y, x]: the four pixels around each sample, weighted."""
    gone = ((ys < -1) | (ys > height))[:, None] | ((xs < -1) | (xs > width))[None]
    ys, xs = np.maximum(ys, 0), np.maximum(xs, 0)
    y0, x0 = (
        np.minimum(ys.astype(int), height - 1),
        np.minimum(xs.astype(int), width - 1),
    )
    y1, x1 = np.minimum(y0 + 1, height - 1), np.minimum(x0 + 1, width - 1)
    ly = np.where(y0 >= height - 1, 0.0, ys - y0)[:, None]
    lx = np.where(x0 >= width - 1, 0.0, xs - x0)[None]
    parts = [
        (y0, x0, (1 - ly) * (1 - lx)),
        (y0, x1, (1 - ly) * lx),
        (y1, x0, ly * (1 - lx)),
        (y1, x1, ly * lx),
    ]
    made = [image[:, a[:, None], b[None]] * w for a, b, w in parts]
    return np.where(gone, 0, np.stack(made))
