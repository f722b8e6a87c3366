"""What a convolution is given: pictures, kernels, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burnbook.backend import Numpy
from burnbook.core.errors import ConfigError, DimError, ShapeError
from burnbook.module import Param
from burnbook.tensor import Tensor

MOST = 2048  # pixels of a side
PART = 64  # of them that are shown at once: a window must be seen in it
LARGEST = 11  # of a kernel's side
WHERE = "ConvolutionView"
Pair = tuple[int, int]


def read_array(values: Any) -> np.ndarray:
    """Numbers of a tensor, an array or a list, as float32."""
    if isinstance(values, Tensor):
        values = values.to_data().to_numpy()
    return np.asarray(values, dtype=np.float32)


def read_picture(picture: Any) -> np.ndarray:
    """A picture as [c, h, w]."""
    found = read_array(picture)
    shape = found.shape
    if found.ndim == 4 and shape[0] == 1:
        found = found[0]
    if found.ndim == 2:
        found = found[None]
    if found.ndim != 3 or not found.size or max(found.shape[1:]) > MOST:
        cure = f"[h, w] or [c, h, w] with h and w from 1 to {MOST}, as picture[0]"
        what = f"{list(shape)} is not one picture of at most {MOST} × {MOST}"
        raise ShapeError(WHERE, what, cure=cure)
    return found


def read_kernel(kernel: Any) -> np.ndarray:
    """A kernel as [o, c, kh, kw]."""
    found = read_array(kernel)
    shape = found.shape
    if found.ndim in (2, 3):
        found = found.reshape((1,) * (4 - found.ndim) + shape)
    if found.ndim != 4 or not found.size or max(found.shape[2:]) > LARGEST:
        cure = f"[kh, kw], [c, kh, kw] or [o, c, kh, kw], sides from 1 to {LARGEST}"
        raise ShapeError(WHERE, f"{list(shape)} is not a kernel", cure=cure)
    return found


def param_of(values: np.ndarray, device: Numpy) -> Param:
    """Numbers as a parameter."""
    return Param.from_tensor(Tensor.from_numpy(values, device))


def read_pair(name: str, value: Any, low: int) -> Pair:
    """One number for both directions, or one for each."""
    both = (value, value) if isinstance(value, int) else tuple(value)
    if len(both) != 2 or not all(isinstance(n, int) and n >= low for n in both):
        what = f"{name} is {value!r}"
        cure = f"a whole number from {low} on, or a pair of them"
        raise ConfigError(WHERE, what, cure=cure)
    return both


def read_place(name: str, place: int, count: int) -> int:
    """A place from 0 on; negative ones count from the end."""
    if not -count <= place < count:
        what = f"there is no {name} {place}: there are {count}"
        raise DimError(WHERE, what, cure=f"0 … {count - 1}")
    return int(place) % count


def size_text(shape: Sequence[int]) -> str:
    """Sizes with crosses between them."""
    return " × ".join(map(str, shape))


def part_around(
    first: int, span: int, size: int, begin: int, most: int = PART
) -> tuple[int, int]:
    """Which places of a side are shown: those from `begin`, if the window is in them.

    Example:
        >>> part_around(3, 3, 40, 0), part_around(100, 3, 200, 0)
        ((0, 40), (69, 64))
        >>> part_around(100, 3, 200, 60)
        (60, 64)
    """
    if size <= most:
        return 0, size
    if not begin <= first <= first + span <= begin + most:
        begin = first + span // 2 - most // 2
    return min(max(begin, 0), size - most), most
