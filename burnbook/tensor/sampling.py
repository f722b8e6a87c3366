"""Building blocks · Tensor. Reading a picture at places between its pixels."""

from typing import Self, TypeVar

from burnbook.errors import ShapeError
from burnbook.tensor.picking import Picking

METHODS = ("bilinear", "nearest")
PADDINGS = ("zeros", "border", "reflection")


class Sampling(Picking):
    """Sampling by a grid of places; it can be differentiated for picture and grid."""

    __slots__ = ()

    def grid_sample_2d(
        self,
        grid: Self,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: bool = False,
    ) -> Self:
        """Read a picture at the places of a grid, (x, y) from −1 to 1.

        Shapes: x [b, c, h, w], grid [b, i, j, 2] -> [b, c, i, j]
        Why: with align_corners −1 and 1 are the middles of the outer pixels, without
        it their outer edges.
        """
        if mode not in METHODS or padding_mode not in PADDINGS:
            raise ShapeError(
                "grid_sample_2d",
                f"mode {mode!r} with padding {padding_mode!r} is not known",
                cure=f"{' or '.join(METHODS)}; {', '.join(PADDINGS)}",
            )
        batch, _, height, width = self.dims()
        if grid.dims()[0] != batch or grid.dims()[-1] != 2 or grid.rank != 4:
            raise ShapeError(
                "grid_sample_2d", f"a grid [{batch}, i, j, 2], not {list(grid.dims())}"
            )
        places = [
            _pixels(grid.narrow(3, i, 1).squeeze(3), size, align_corners, padding_mode)
            for i, size in ((0, width), (1, height))
        ]
        x, y = (place.unsqueeze_dim(1) for place in places)  # [b, 1, i, j]
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


def _pixels(place: S, size: int, align_corners: bool, padding: str) -> S:
    """Places from −1 to 1 as pixel numbers, brought inside as `padding` says."""
    if align_corners:
        out, low, high = (place + 1) * ((size - 1) / 2), 0.0, size - 1.0
    else:
        out, low, high = ((place + 1) * size - 1) / 2, -0.5, size - 0.5
    if padding == "zeros":
        return out
    if padding == "reflection":
        span = high - low
        if span == 0:
            return out * 0
        out = span - ((out - low).remainder_scalar(2 * span) - span).abs() + low
    return out.clamp(0.0, size - 1.0)
