"""Where the pixels of a convolution stand once they are laid out in blocks of channels.

The kernels of conv_blocked.py add up products of what stands in some places; the lists
here say in which. So one kernel serves every stride, padding and dilation, and the way
back: an input pixel is a sum over the taps that have read it. With stride 2 those are
other taps for odd than for even rows and columns; pixels that share them are a phase.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from burnbook.backend.compiled.runtime.jit import LANES
from burnbook.ops.conv.windows import Pair

PIXELS = 8  # of one phase, that are taken at once

Sizes = tuple[tuple[int, ...], ...]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


class Plan(NamedTuple):
    """The lists, for `many` images side by side in each block of channels."""

    inside: Numbers  # [pixels]: where each pixel of an image of the input goes
    places: Numbers  # where each pixel of the result reads, at a tap with offset 0
    targets: Numbers  # and which pixel that is
    phases: Numbers  # [phases, 5]: from and to which place; steps from, whole to, to
    steps: Numbers  # [steps, 2]: offset in the input, and place of the weights
    plane: int  # numbers of a block of channels of one image
    many: int


class Side(NamedTuple):
    """One dim: what is read, with zeros around, and by whom."""

    size: int  # of what is read
    grown: int  # with the zeros around
    before: int  # zeros before
    #: For each phase: pixels of the result, where each reads, taps and their offsets
    phases: list[tuple[Numbers, Numbers, list[tuple[int, int]]]]


def forward_side(
    size: int, stops: int, kernel: int, stride: int, padding: int, dilation: int
) -> Side:
    """One dim of a convolution."""
    pixels = np.arange(stops)
    taps = [(k, k * dilation) for k in range(kernel)]
    grown = max(size + 2 * padding, (stops - 1) * stride + (kernel - 1) * dilation + 1)
    return Side(size, grown, padding, [(pixels, pixels * stride, taps)])


def backward_side(
    size: int, stops: int, kernel: int, stride: int, padding: int, dilation: int
) -> Side:
    """The same dim on the way back, from the result to the input."""
    phases, reach = [], [0, stops - 1]
    for phase in range(stride):
        first = (phase - padding) % stride
        pixels = np.arange(first, size, stride)
        reads = (pixels + padding) // stride
        taps = [
            (k, -(k * dilation // stride))
            for k in range(kernel)
            if k * dilation % stride == phase
        ]
        if taps and pixels.size:
            phases.append((pixels, reads, taps))
            offsets = [offset for _, offset in taps]
            reach = [
                min(reach[0], int(reads[0]) + min(offsets)),
                max(reach[1], int(reads[-1]) + max(offsets)),
            ]
    before = -reach[0]
    shifted = [(pixels, reads + before, taps) for pixels, reads, taps in phases]
    return Side(stops, reach[1] + before + 1, before, shifted)


def numbers_of(sizes: Sizes) -> int:
    """How many numbers a block of channels of one image takes, with zeros around."""
    down, right = (forward_side(*size) for size in sizes)
    return down.grown * right.grown * LANES


@lru_cache(maxsize=64)
def plan_of(
    side: Callable[..., Side],
    sizes: Sizes,
    result: Pair,
    channels: int,
    many: int,
) -> Plan:
    """The plan for images of so many channels.

    sizes: what `side` wants, for both dims; result: the size of what comes out.
    """
    down, right = (side(*size) for size in sizes)
    width = right.grown
    plane = down.grown * width * LANES
    rows = np.arange(down.size) + down.before
    columns = np.arange(right.size) + right.before
    inside = _grid(rows * width, columns) * LANES
    blocks, whole = -(-channels // LANES), channels // LANES
    kernel = sizes[0][2] * sizes[1][2]
    images = np.arange(many)
    count = result[0] * result[1]
    places, targets, phases, steps = [], [], [], []
    done = 0
    for pixels, reads, taps in down.phases:
        for pixels_, reads_, taps_ in right.phases:
            where = _grid(images * plane, _grid(reads * width, reads_) * LANES)
            which = _grid(images * count, _grid(pixels * result[1], pixels_))
            rest = -where.size % PIXELS  # they go to a row that nobody reads
            places.append(np.append(where, np.full(rest, where[-1])))
            targets.append(np.append(which, np.full(rest, many * count)))
            first = len(steps)
            steps += [
                (
                    b * many * plane + (offset * width + offset_) * LANES,
                    (b * kernel + k * sizes[1][2] + k_) * LANES,
                )
                for b in range(blocks)
                for k, offset in taps
                for k_, offset_ in taps_
            ]
            each = len(taps) * len(taps_)
            size = where.size + rest
            phases.append((done, done + size, first, first + whole * each, len(steps)))
            done += size
    return Plan(
        inside,
        _joined(places),
        _joined(targets),
        np.array(phases, np.int64).reshape(-1, 5),
        np.array(steps, np.int64).reshape(-1, 2),
        plane,
        many,
    )


def _grid(down: Numbers, right: Numbers) -> Numbers:
    """Every sum of a number of each list."""
    return np.add.outer(down, right).reshape(-1)


def _joined(lists: list[Numbers]) -> Numbers:
    return np.concatenate([np.zeros(0, np.int64), *lists])
