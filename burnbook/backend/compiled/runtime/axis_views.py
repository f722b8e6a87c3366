"""How kernels that work along a dim see an array: as lines.

An array of any rank is read as [outer, n, inner]: the dims before the one at work, that
one, and the dims behind it. A line has n elements, `inner` places apart. A part of the
work is one block of neighbouring lines, so that memory is read in whole cache lines.
"""

from math import prod

import numpy as np

GRAIN = 1 << 16  # elements of a part; smaller arrays stay on one thread
I64 = np.dtype(np.int64)


def as_lines(x: np.ndarray, dim: int) -> np.ndarray:
    """An array in one piece, not empty, as [outer, n, inner].

    Example:
        >>> as_lines(np.zeros((2, 3, 4, 5)), 1).shape
        (2, 3, 20)
    """
    dim %= x.ndim
    shape = x.shape
    if dim == len(shape) - 1:
        return x.reshape(-1, shape[dim], 1)
    outer = prod(shape[:dim]) if dim else 1
    return x.reshape(outer, shape[dim], -1)


def blocks(lines: np.ndarray, most: int, least: int = GRAIN) -> tuple[int, int, int]:
    """Neighbouring lines of a block, how many blocks there are, and blocks of a part.

    A block has `most` lines at most, a part `least` elements at least.

    Example:
        >>> blocks(np.zeros((2, 1000, 100)), 64)
        (64, 4, 1)
    """
    outer, n, inner = lines.shape
    width = min(inner, most)
    return width, outer * -(-inner // width), max(1, least // max(1, n * width))
