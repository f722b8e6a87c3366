"""Slow loops for what slides a window over an image: convolution, pooling, unfold."""

import itertools
import math

import numpy as np


def stops_of(size, kernel, stride, padding, dilation):
    return [
        len(range(0, n + 2 * p - d * (k - 1), s))
        for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    ]


def window(size, stop, kernel, stride, padding, dilation):
    """(place inside the window, place on the image) for all places on the image."""
    for place in np.ndindex(*kernel):
        at = [
            i * s - p + j * d
            for i, j, s, p, d in zip(
                stop, place, stride, padding, dilation, strict=True
            )
        ]
        if all(0 <= i < n for i, n in zip(at, size, strict=True)):
            yield place, tuple(at)


def conv_terms(x_shape, weight_shape, stops, stride, padding, dilation, groups):
    """(where in x, where in weight, where in out) for every product that counts."""
    outs = weight_shape[0] // groups
    inside = weight_shape[1]
    sizes = (weight_shape[2:], stride, padding, dilation)
    for stop in itertools.product(*map(range, stops)):
        for place, at in window(x_shape[2:], stop, *sizes):
            for n, o, c in np.ndindex(x_shape[0], weight_shape[0], inside):
                channel = o // outs * inside + c
                yield (n, channel, *at), (o, c, *place), (n, o, *stop)


def per_channel(out, bias):
    return out if bias is None else out + bias.reshape(-1, *[1] * (out.ndim - 2))


def conv(x, weight, bias=None, *, stride, padding, dilation, groups):
    stops = stops_of(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    out = np.zeros((x.shape[0], weight.shape[0], *stops))
    options = (stride, padding, dilation, groups)
    for a, b, c in conv_terms(x.shape, weight.shape, stops, *options):
        out[c] += x[a] * weight[b]
    return per_channel(out, bias)


def conv_x(dout, weight, *, x_shape, stride, padding, dilation, groups):
    out = np.zeros(x_shape)
    options = (stride, padding, dilation, groups)
    for a, b, c in conv_terms(x_shape, weight.shape, dout.shape[2:], *options):
        out[a] += dout[c] * weight[b]
    return out


def conv_weight(dout, x, *, weight_shape, stride, padding, dilation, groups):
    out = np.zeros(weight_shape)
    options = (stride, padding, dilation, groups)
    for a, b, c in conv_terms(x.shape, weight_shape, dout.shape[2:], *options):
        out[b] += dout[c] * x[a]
    return out


def conv_transpose(
    x, weight, bias=None, *, stride, padding, padding_out, dilation, groups
):
    size = [
        (n - 1) * s - 2 * p + d * (k - 1) + q + 1
        for n, k, s, p, q, d in zip(
            x.shape[2:],
            weight.shape[2:],
            stride,
            padding,
            padding_out,
            dilation,
            strict=True,
        )
    ]
    shape = (x.shape[0], weight.shape[1] * groups, *size)
    options = {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
    }
    return per_channel(conv_x(x, weight, x_shape=shape, **options), bias)


def pooled(x, kernel, stride, padding, dilation, ceil_mode, reduce):
    """reduce(numbers of a window, their places, the window's size) for every window."""
    stops = stops_of(x.shape[2:], kernel, stride, padding, dilation)
    if ceil_mode:
        stops = [
            stop + (stop * s < n + p and n + 2 * p - d * (k - 1) > (stop - 1) * s + 1)
            for stop, n, k, s, p, d in zip(
                stops, x.shape[2:], kernel, stride, padding, dilation, strict=True
            )
        ]
    out = np.zeros((*x.shape[:2], *stops))
    sizes = (kernel, stride, padding, dilation)
    for stop in itertools.product(*map(range, stops)):
        places = [at for _, at in window(x.shape[2:], stop, *sizes)]
        reach = [
            min(k, n + 2 * p - i * s)
            for i, n, k, s, p in zip(
                stop, x.shape[2:], kernel, stride, padding, strict=True
            )
        ]
        for n, c in np.ndindex(*x.shape[:2]):
            numbers = [x[(n, c, *at)] for at in places]
            out[(n, c, *stop)] = reduce(numbers, places, math.prod(reach))
    return out


def avg_pool(x, *, kernel_size, stride, padding, count_include_pad, ceil_mode):
    def average(numbers, places, reach):
        return math.fsum(numbers) / (reach if count_include_pad else len(numbers))

    ones = (1,) * len(kernel_size)
    return pooled(x, kernel_size, stride, padding, ones, ceil_mode, average)


def max_pool(x, *, kernel_size, stride, padding, dilation, ceil_mode):
    sizes = (kernel_size, stride, padding, dilation)
    return pooled(x, *sizes, ceil_mode, lambda numbers, places, reach: max(numbers))


def max_pool_indices(x, *, kernel_size, stride, padding, dilation, ceil_mode):
    def first(numbers, places, reach):
        place = places[numbers.index(max(numbers))]
        return np.ravel_multi_index(place, x.shape[2:])

    sizes = (kernel_size, stride, padding, dilation)
    return pooled(x, *sizes, ceil_mode, first)


def adaptive_avg_pool(x, *, output_size):
    out = np.zeros((*x.shape[:2], *output_size))
    for stop in itertools.product(*map(range, output_size)):
        part = [
            range(i * n // m, math.ceil((i + 1) * n / m))
            for i, n, m in zip(stop, x.shape[2:], output_size, strict=True)
        ]
        for n, c in np.ndindex(*x.shape[:2]):
            numbers = [x[(n, c, *at)] for at in itertools.product(*part)]
            out[(n, c, *stop)] = math.fsum(numbers) / len(numbers)
    return out


def unfold4d(x, *, kernel_size, stride, padding, dilation):
    stops = stops_of(x.shape[2:], kernel_size, stride, padding, dilation)
    out = np.zeros((x.shape[0], x.shape[1], *kernel_size, *stops))
    sizes = (kernel_size, stride, padding, dilation)
    for stop in itertools.product(*map(range, stops)):
        for place, at in window(x.shape[2:], stop, *sizes):
            out[(..., *place, *stop)] = x[(..., *at)]
    return out.reshape(x.shape[0], -1, math.prod(stops))


def fold4d(x, *, output_size, kernel_size, stride, padding, dilation):
    stops = stops_of(output_size, kernel_size, stride, padding, dilation)
    c = x.shape[1] // math.prod(kernel_size)
    parts = x.reshape(x.shape[0], c, *kernel_size, *stops)
    out = np.zeros((x.shape[0], c, *output_size))
    sizes = (kernel_size, stride, padding, dilation)
    for stop in itertools.product(*map(range, stops)):
        for place, at in window(output_size, stop, *sizes):
            out[(..., *at)] += parts[(..., *place, *stop)]
    return out


def interpolate(x, *, output_size, mode, align_corners):
    for dim, size in enumerate(output_size, 2):
        lines = [resized(line, size, mode, align_corners) for line in rows(x, dim)]
        shape = list(x.shape)
        shape[dim] = size
        moved = [shape[d] for d in range(x.ndim) if d != dim]
        x = np.moveaxis(np.array(lines).reshape(*moved, size), -1, dim)
    return x


def rows(x, dim):
    return np.moveaxis(x, dim, -1).reshape(-1, x.shape[dim])


def resized(line, size, mode, align_corners):
    """One line of another length, place by place."""
    n, out = len(line), []
    for i in range(size):
        at = (
            i * (n - 1) / max(size - 1, 1)
            if align_corners
            else (i + 0.5) * n / size - 0.5
        )
        if mode.startswith("nearest"):
            half = 0.5 if mode == "nearest_exact" else 0.0
            out.append(line[math.floor((i + half) * n / size + 1e-9)])
            continue
        if mode == "linear":
            at = min(max(at, 0), n - 1)
        low = math.floor(at)
        around = {"linear": (0, 1), "cubic": range(-1, 3), "lanczos": range(-2, 4)}
        total = weights = 0.0
        for place in (low + k for k in around[mode]):
            if mode == "lanczos" and not 0 <= place < n:
                continue
            weight = WEIGHTS[mode](abs(at - place))
            total += weight * line[min(max(place, 0), n - 1)]
            weights += weight
        out.append(total / weights)
    return out


def cubic(d, a=-0.75):
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a


def lanczos(d):
    if d == 0 or d >= 3:
        return float(d == 0)
    return 3 * math.sin(math.pi * d) * math.sin(math.pi * d / 3) / (math.pi * d) ** 2


WEIGHTS = {"linear": lambda d: 1 - d, "cubic": cubic, "lanczos": lanczos}


def pixel(image, y, x):
    inside = 0 <= y < image.shape[0] and 0 <= x < image.shape[1]
    return image[int(y), int(x)] if inside else 0.0


def wandering(x, offset, kernel_size, stride, padding, dilation, offset_groups):
    """(where in the patches, image, y, x, where in the mask) for every tap."""
    rows, cols = offset.shape[2:]
    kh, kw = kernel_size
    each = x.shape[1] // offset_groups
    for n, c, i, j, k, m in np.ndindex(*x.shape[:2], rows, cols, kh, kw):
        tap = (c // each) * kh * kw + k * kw + m
        dy, dx = offset[n, 2 * tap, i, j], offset[n, 2 * tap + 1, i, j]
        y = i * stride[0] - padding[0] + k * dilation[0] + dy
        at = j * stride[1] - padding[1] + m * dilation[1] + dx
        yield (n, i * cols + j, k * kw + m, c), x[n, c], y, at, (n, tap, i, j)


def deform_patches(x, offset, mask=None, **options):
    kh, kw = options["kernel_size"]
    rows, cols = offset.shape[2:]
    out = np.zeros((x.shape[0], rows * cols, kh * kw, x.shape[1]))
    for place, image, y, at, in_mask in wandering(x, offset, **options):
        total = 0.0
        for low, row in ((1 - y % 1, math.floor(y)), (y % 1, math.floor(y) + 1)):
            for part, col in (
                (1 - at % 1, math.floor(at)),
                (at % 1, math.floor(at) + 1),
            ):
                total += low * part * pixel(image, row, col)
        out[place] = total * (1.0 if mask is None else mask[in_mask])
    return out


def deform_corners(x, offset, **options):
    kh, kw = options["kernel_size"]
    rows, cols = offset.shape[2:]
    out = np.zeros((4, x.shape[0], rows * cols, kh * kw, x.shape[1]))
    for place, image, y, at, _ in wandering(x, offset, **options):
        for corner, (down, right) in enumerate(np.ndindex(2, 2)):
            row, col = math.floor(y) + down, math.floor(at) + right
            out[(corner, *place)] = pixel(image, row, col)
    return out
