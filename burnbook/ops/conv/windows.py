"""Windows that slide over an image of any number of dims.

Along every dim a window has a size, a stride between its stops, zeros around the image
(padding) and gaps between its own places (dilation). Convolutions, pooling and unfold
ask here how often it stops, and read the image through it.
"""

import itertools
from collections.abc import Iterator
from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.ops.conv.im2col2d import output_size

Sizes = tuple[int, ...]
Shape = tuple[int, ...]

#: What the dims of an image are called, by their number.
DIMS = {1: ("length",), 2: ("height", "width"), 3: ("depth", "height", "width")}
LETTERS = {1: "l", 2: "h, w", 3: "d, h, w"}


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
        sizes = zip(size, kernel, stride, padding, dilation, strict=True)
        self.stops = tuple(stops or [count(*one) for one in sizes])
        self.grown = tuple(
            max(n + 2 * p, (stop - 1) * s + d * (k - 1) + 1)
            for n, p, stop, s, d, k in zip(
                self.size,
                self.padding,
                self.stops,
                self.stride,
                self.dilation,
                self.kernel,
                strict=True,
            )
        )

    def pad(self, xp: ArrayNamespace, x: Array, filler: float = 0.0) -> Any:
        """x [n, c, size...] with a filler around it, in one piece."""
        if self.grown == self.size:
            return xp.ascontiguousarray(x)
        grown = xp.full((*x.shape[:2], *self.grown), filler, dtype=x.dtype)
        self.unpad(grown)[...] = x
        return grown

    def unpad(self, grown: Array) -> Any:
        """The part of a padded array that belongs to the image."""
        if self.grown == self.size:
            return grown
        pairs = zip(self.padding, self.size, strict=True)
        return grown[(..., *[slice(p, p + n) for p, n in pairs])]

    def places(self) -> Iterator[tuple[Sizes, tuple[Any, ...]]]:
        """Every place inside a window, and its index in all windows at once."""
        for place in itertools.product(*map(range, self.kernel)):
            lines = [self.line(dim, at) for dim, at in enumerate(place)]
            yield place, (slice(None), slice(None), *lines)

    def line(self, dim: int, place: int) -> slice:
        """One place of every window, along one dim of the padded image."""
        first, step = place * self.dilation[dim], self.stride[dim]
        return slice(first, first + (self.stops[dim] - 1) * step + 1, step)

    def view(self, xp: ArrayNamespace, grown: Array) -> Any:
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


def same_length(dims: int, **sizes: Sizes) -> str | None:
    """Why these sizes do not all have one number per dim, or None if they do."""
    for name, given in sizes.items():
        if len(given) != dims:
            return f"{name} {list(given)} must have one number for each of {dims} dims"
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
    wrong = same_length(
        len(size),
        kernel_size=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
    )
    if wrong:
        return wrong
    for given, low, name in (
        (kernel, 1, "kernel_size"),
        (stride, 1, "stride"),
        (dilation, 1, "dilation"),
        (padding, 0, "padding"),
    ):
        if min(given) < low:
            return f"{name} {list(given)} must be at least {low} in every dim"
    for dim, name in enumerate(DIMS[len(size)]):
        span = dilation[dim] * (kernel[dim] - 1) + 1
        room = size[dim] + 2 * padding[dim]
        if span > room:
            return f"the {what} spans {span} but the padded {name} is {room}"
    return None
