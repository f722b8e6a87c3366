"""Where values stand in memory: one block, in which they follow each other.

A value takes its place from when it is made until it was used last; then others may
stand there. Which values are there at the same time is known before anything runs, so
places are given out once (largest first, each at the lowest place that is free for all
of its time), and nothing is allocated while a program runs.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

LINE = 64  # bytes of a cache line, where places begin


class Lifetime(NamedTuple):
    """How many bytes something takes, and from which to which step it is there."""

    size: int
    first: int
    last: int


def placed(lifetimes: Sequence[Lifetime]) -> tuple[list[int], int]:
    """Where each begins, and how many bytes all take together.

    Example:
        >>> placed([Lifetime(64, 0, 1), Lifetime(128, 1, 2), Lifetime(64, 2, 3)])
        ([128, 0, 128], 192)
    """
    starts = [0] * len(lifetimes)
    done: list[int] = []
    end = 0
    for i in sorted(range(len(lifetimes)), key=lambda i: (-lifetimes[i].size, i)):
        one = lifetimes[i]
        start = 0
        beside = sorted(
            (starts[j], starts[j] + rounded(lifetimes[j].size))
            for j in done
            if lifetimes[j].first <= one.last and one.first <= lifetimes[j].last
        )
        for begin, stop in beside:
            if start + one.size <= begin:
                break
            start = max(start, stop)
        starts[i] = start
        done.append(i)
        end = max(end, start + rounded(one.size))
    return starts, end


def peak(lifetimes: Sequence[Lifetime]) -> int:
    """The most bytes that are there at one time if each is allocated by itself."""
    steps = {one.first for one in lifetimes}
    return max(
        (
            sum(one.size for one in lifetimes if one.first <= step <= one.last)
            for step in steps
        ),
        default=0,
    )


def rounded(size: int) -> int:
    """A size in whole lines."""
    return -(-size // LINE) * LINE


def block(size: int) -> np.ndarray:
    """So many bytes, from the beginning of a line on."""
    memory = np.empty(size + LINE, np.uint8)
    return memory[-memory.ctypes.data % LINE :][:size]
