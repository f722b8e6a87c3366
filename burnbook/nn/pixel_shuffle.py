"""PixelShuffle and PixelUnshuffle: channels rearranged to pixels, and back."""

from burnbook.config import Config
from burnbook.core.errors import ShapeError
from burnbook.module import Module
from burnbook.nn.shared import at_least
from burnbook.tensor import Tensor
from burnbook.tensor.facts import facts_of


class PixelShuffleConfig(Config):
    """How to make a PixelShuffle: how many times larger the image gets.

    upscale_factor: how many times higher and wider the image gets, at least 1.

    Example:
        >>> PixelShuffleConfig(2).init()
        PixelShuffle {upscale_factor: 2}
    """

    upscale_factor: int

    def validate(self) -> None:
        """Refuse a factor below 1."""
        at_least(self, 1, "upscale_factor")

    def init(self) -> "PixelShuffle":
        """The layer; it has no parameters, so it needs no device."""
        return PixelShuffle(self.upscale_factor)


class PixelShuffle(Module):
    """Rearrange r² channels to r × r pixels: out[n, c, hr + i, wr + j] = x[n, k, h, w].

    k = c r² + i r + j is the channel that a pixel comes from.

    Shapes: x [n, c r², h, w] -> [n, c, h r, w r]
    Source: Shi et al., "Real-time single image and video super-resolution using an
    efficient sub-pixel convolutional neural network", 2016 (arXiv 1609.05158).
    """

    upscale_factor: int
    shown = ("upscale_factor",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of images."""
        n, c, h, w = _image("pixel_shuffle", input)
        r = self.upscale_factor
        if c % (r * r):
            raise ShapeError(
                "pixel_shuffle",
                f"{c} channels do not make blocks of {r} × {r} pixels",
                facts_of(input=input),
                f"a multiple of {r * r} channels",
            )
        blocks = input.reshape([n, c // (r * r), r, r, h, w])
        return blocks.permute([0, 1, 4, 2, 5, 3]).reshape(
            [n, c // (r * r), h * r, w * r]
        )


class PixelUnshuffleConfig(Config):
    """How to make a PixelUnshuffle: how many times smaller the image gets.

    downscale_factor: how many times lower and narrower the image gets, at least 1.

    Example:
        >>> PixelUnshuffleConfig(2).init()
        PixelUnshuffle {downscale_factor: 2}
    """

    downscale_factor: int

    def validate(self) -> None:
        """Refuse a factor below 1."""
        at_least(self, 1, "downscale_factor")

    def init(self) -> "PixelUnshuffle":
        """The layer; it has no parameters, so it needs no device."""
        return PixelUnshuffle(self.downscale_factor)


class PixelUnshuffle(Module):
    """Rearrange blocks of r × r pixels to channels: the inverse of PixelShuffle.

    Shapes: x [n, c, h r, w r] -> [n, c r², h, w]
    """

    downscale_factor: int
    shown = ("downscale_factor",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of images."""
        n, c, h, w = _image("pixel_unshuffle", input)
        r = self.downscale_factor
        if h % r or w % r:
            raise ShapeError(
                "pixel_unshuffle",
                f"an image of {h} × {w} pixels does not make blocks of {r} × {r}",
                facts_of(input=input),
                f"a height and a width that {r} divides",
            )
        blocks = input.reshape([n, c, h // r, r, w // r, r])
        return blocks.permute([0, 1, 3, 5, 2, 4]).reshape(
            [n, c * r * r, h // r, w // r]
        )


def _image(where: str, x: Tensor) -> tuple[int, int, int, int]:
    if x.rank != 4:
        what = "the input must be a batch [n, c, h, w]"
        raise ShapeError(where, what, facts_of(input=x))
    n, c, h, w = x.dims()
    return n, c, h, w
