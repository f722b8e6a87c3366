"""Windows that slide over an image of any number of dims.

Along every dim a window has a size, a stride between its stops, zeros around the image
(padding) and gaps between its own places (dilation). Convolutions, pooling and unfold
ask here how often it stops, and read the image through it.
"""

import itertools
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace

Sizes = tuple[int, ...]
Pair = tuple[int, int]
Shape4 = tuple[int, int, int, int]

#: What the dims of an image are called, by their number.
DIMS = {1: ("length",), 2: ("height", "width"), 3: ("depth", "height", "width")}
LETTERS = {1: "l", 2: "h, w", 3: "d, h, w"}


def output_size(
    size: int, kernel: int, stride: int, padding: int, dilation: int
) -> int:
    """How many stops a kernel makes along one dim.

    Example:
        >>> output_size(28, kernel=3, stride=1, padding=0, dilation=1)
        26
    """
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def count_up(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """How many stops a window makes when the last may reach beyond the padding.

    Every window starts on the image or on the padding before it.

    Example:
        >>> count_up(5, kernel=2, stride=2, padding=0, dilation=1)
        3
    """
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    stops = -(-room // stride) + 1
    return stops - 1 if (stops - 1) * stride >= size + padding else stops


class Windows:
    """Where a window stops, along every dim of an image.

    stops: how often, where that is known already (a transposed convolution's input).

    Example:
        >>> Windows((5, 6), (3, 2), (1, 2), (0, 0), (1, 1)).stops
        (3, 3)
    """

    def __init__(
        self,
        size: Sizes,
        kernel: Sizes,
        stride: Sizes,
        padding: Sizes,
        dilation: Sizes,
        stops: Sizes | None = None,
        ceil_mode: bool = False,
    ):
        self.size, self.kernel = tuple(size), tuple(kernel)
        self.stride, self.padding = tuple(stride), tuple(padding)
        self.dilation = tuple(dilation)
        count = count_up if ceil_mode else output_size
        sizes = list(zip(size, kernel, stride, padding, dilation, strict=True))
        self.stops = tuple(stops or [count(*one) for one in sizes])
        self.grown = tuple(
            max(n + 2 * p, (stop - 1) * s + d * (k - 1) + 1)
            for stop, (n, k, s, p, d) in zip(self.stops, sizes, strict=True)
        )

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, *sizes: Any) -> "Windows":
        """The windows of these sizes, made once for all that are alike."""
        return cls(*sizes)

    def pad(self, xp: ArrayNamespace, x: Array, filler: float = 0.0) -> Array:
        """x [n, c, size...] with a filler around it, where the windows need any."""
        if self.grown == self.size:
            return x
        shape = (*x.shape[:2], *self.grown)
        if filler:
            grown = xp.full(shape, filler, dtype=x.dtype)
        else:  # quicker
            grown = xp.zeros(shape, dtype=x.dtype)
        self.unpad(grown)[...] = x
        return grown

    def unpad(self, grown: Array) -> Array:
        """The part of a padded array that belongs to the image."""
        return grown if self.grown == self.size else grown[self._inner]

    @cached_property
    def _inner(self) -> tuple[Any, ...]:
        pairs = zip(self.padding, self.size, strict=True)
        return (..., *[slice(p, p + n) for p, n in pairs])

    @cached_property
    def places(self) -> list[tuple[Sizes, tuple[slice, ...]]]:
        """Every place inside a window, and its index in all windows at once."""
        every = slice(None)
        return [
            (place, (every, every, *map(self._line, range(len(place)), place)))
            for place in itertools.product(*map(range, self.kernel))
        ]

    @cached_property
    def lines(self) -> list[list[tuple[slice, ...]]]:
        """For each dim, the index of every place along it, in all windows at once."""
        every = slice(None)
        return [
            [(*[every] * (2 + dim), self._line(dim, place)) for place in range(size)]
            for dim, size in enumerate(self.kernel)
        ]

    def _line(self, dim: int, place: int) -> slice:
        first, step = place * self.dilation[dim], self.stride[dim]
        return slice(first, first + (self.stops[dim] - 1) * step + 1, step)

    def positions(self, dim: int) -> np.ndarray:
        """Where on the image the places of every window lie, along one dim.

        Shapes: -> [stops, kernel]; below 0, and from the image's size on, is padding
        """
        starts = np.arange(self.stops[dim]) * self.stride[dim] - self.padding[dim]
        return starts[:, None] + np.arange(self.kernel[dim]) * self.dilation[dim]

    def view(self, xp: ArrayNamespace, grown: Array) -> Array:
        """All windows as a view: [n, c, kernel..., stops...]."""
        pitches = grown.strides[2:]
        inside = zip(pitches, self.dilation, strict=True)
        between = zip(pitches, self.stride, strict=True)
        return xp.lib.stride_tricks.as_strided(
            grown,
            (*grown.shape[:2], *self.kernel, *self.stops),
            (
                *grown.strides[:2],
                *[pitch * d for pitch, d in inside],
                *[pitch * s for pitch, s in between],
            ),
        )


def window_options(
    kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, **more: Any
) -> dict[str, Any]:
    """How a window moves, as the attributes of an op."""
    sizes = {"kernel_size": kernel_size, "stride": stride, "padding": padding}
    return {**sizes, "dilation": dilation, **more}


def refuse(dims: int, low: int, **sizes: Sizes) -> str | None:
    """Why these sizes are not one number per dim, `low` or more, or None if they are."""
    for name, given in sizes.items():
        if len(given) != dims:
            return f"{name} {list(given)} must have one number for each of {dims} dims"
    for name, given in sizes.items():
        if min(given) < low:
            return f"{name} {list(given)} must be at least {low} in every dim"
    return None


def fits_inside(
    what: str,
    size: Sizes,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
) -> str | None:
    """Why a window does not fit into a padded image, or None if it does."""
    dims = len(size)
    steps = {"kernel_size": kernel, "stride": stride, "dilation": dilation}
    wrong = refuse(dims, 1, **steps) or refuse(dims, 0, padding=padding)
    if wrong:
        return wrong
    for dim, name in enumerate(DIMS[dims]):
        span = dilation[dim] * (kernel[dim] - 1) + 1
        room = size[dim] + 2 * padding[dim]
        if span > room:
            return f"the {what} spans {span} but the padded {name} is {room}"
    return None
