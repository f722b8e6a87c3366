"""Reading a picture at places between its pixels."""

import operator
from functools import reduce
from typing import Self, TypeVar

from burnbook.core.errors import ShapeError
from burnbook.tensor.indexing import Indexing

METHODS = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
CUBIC = -0.75  # Keys' a, as PyTorch and ONNX take it


class Sampling(Indexing):
    """Sampling by a grid of places; it can be differentiated for picture and grid."""

    __slots__ = ()

    def grid_sample_2d(
        self,
        grid: Self,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: bool = False,
    ) -> Self:
        """Sample an image at the points of a grid, (x, y) from −1 to 1.

        Shapes: x [b, c, h, w], grid [b, i, j, 2] -> [b, c, i, j]
        Example:
            >>> from burnbook.tensor import Tensor
            >>> picture = Tensor.from_floats([[[[0.0, 1.0], [2.0, 3.0]]]])
            >>> middle = Tensor.zeros([1, 1, 1, 2])
            >>> picture.grid_sample_2d(middle).into_scalar()
            1.5

        Why: with align_corners −1 and 1 are the middles of the outer pixels, without
        it their outer edges. "bicubic" mixes 4 × 4 pixels, as `Interpolate2d` does.
        """
        if mode not in METHODS or padding_mode not in PADDINGS:
            raise ShapeError(
                "grid_sample_2d",
                f"mode {mode!r} with padding {padding_mode!r} is not known",
                cure=f"{', '.join(METHODS)}; {', '.join(PADDINGS)}",
            )
        batch, _, height, width = self.dims()
        if grid.dims()[0] != batch or grid.dims()[-1] != 2 or grid.rank != 4:
            raise ShapeError(
                "grid_sample_2d", f"a grid [{batch}, i, j, 2], not {list(grid.dims())}"
            )
        sizes = (width, height)
        places = [
            _pixels(grid.narrow(3, i, 1).squeeze(3), size, align_corners)
            for i, size in enumerate(sizes)
        ]
        x, y = (place.unsqueeze_dim(1) for place in places)  # [b, 1, i, j]
        inside = [_Inside(size, align_corners, padding_mode) for size in sizes]
        if mode == "bicubic":
            return self._cubic(_taps(x, inside[0]), _taps(y, inside[1]))
        x, y = inside[0](x), inside[1](y)
        if mode == "nearest":
            return self._read(x.round(), y.round())
        left, top = x.detach().floor(), y.detach().floor()
        right, low = x - left, y - top
        return (
            self._read(left, top) * (1 - right) * (1 - low)
            + self._read(left + 1, top) * right * (1 - low)
            + self._read(left, top + 1) * (1 - right) * low
            + self._read(left + 1, top + 1) * right * low
        )

    def _cubic(
        self, columns: list[tuple[Self, Self]], rows: list[tuple[Self, Self]]
    ) -> Self:
        """The sum of 4 × 4 pixels, each with the weights of its column and its row."""
        parts = [
            self._read(x, y) * across * down
            for y, down in rows
            for x, across in columns
        ]
        return reduce(operator.add, parts)

    def _read(self, x: Self, y: Self) -> Self:
        """The pixels at whole places; zero outside the picture."""
        batch, channels, height, width = self.dims()
        outside = _outside(x, width).bool_or(_outside(y, height))
        spots = y.mask_fill(outside, 0) * width + x.mask_fill(outside, 0)
        _, _, rows, columns = spots.dims()
        flat = self.reshape_to((batch, channels, height * width))
        shape = (batch, channels, rows * columns)
        index = spots.detach().int().reshape_to((batch, 1, rows * columns))
        out = flat.gather(2, index.expand(shape))
        return out.reshape_to((batch, channels, rows, columns)).mask_fill(outside, 0)


S = TypeVar("S", bound=Sampling)


def _outside(x: S, size: int) -> S:
    """True where a place is not on the picture; NaN is nowhere."""
    return x.greater_equal(0).bool_and(x.lower_equal(size - 1)).bool_not()


def _pixels(place: S, size: int, align_corners: bool) -> S:
    """Places from −1 to 1 as pixel numbers."""
    if align_corners:
        return (place + 1) * ((size - 1) / 2)
    return ((place + 1) * size - 1) / 2


class _Inside:
    """Brings pixel numbers onto the picture, as the padding says; "zeros" leaves them.

    Reflection happens at the middles of the outer pixels, or at their outer edges.
    """

    def __init__(self, size: int, align_corners: bool, padding: str):
        self.last, self.padding = size - 1.0, padding
        self.low = 0.0 if align_corners else -0.5
        self.span = self.last - 2 * self.low

    def __call__(self, place: S) -> S:
        if self.padding == "zeros":
            return place
        if self.padding == "reflection":
            if self.span == 0:
                return place * 0
            turn = (place - self.low).remainder_scalar(2 * self.span)
            place = self.span - (turn - self.span).abs() + self.low
        return place.clamp(0.0, self.last)


def _taps(place: S, inside: _Inside) -> list[tuple[S, S]]:
    """The four whole places around each place, and their weights (a = −0.75)."""
    first = place.detach().floor()
    taps: list[tuple[S, S]] = []
    for step in (-1, 0, 1, 2):
        d = place - (first + step) if step < 1 else first + step - place
        near = ((CUBIC + 2) * d - (CUBIC + 3)) * d * d + 1
        far = ((CUBIC * d - 5 * CUBIC) * d + 8 * CUBIC) * d - 4 * CUBIC
        taps.append((inside(first + step), near if step in (0, 1) else far))
    return taps
