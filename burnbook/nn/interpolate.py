"""Interpolate1d and Interpolate2d: lines and images resized."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burnbook.config import Config, ConfigEnum, unit
from burnbook.core.errors import ConfigError
from burnbook.module import Module
from burnbook.module.display import Present
from burnbook.nn.shared import Pair, at_least, build
from burnbook.tensor import Tensor
from burnbook.tensor.module import InterpolateOptions, interpolate

if TYPE_CHECKING:
    Scales = Sequence[float]  # what a config takes: [2.0, 2.0] as well as a tuple
else:
    Scales = tuple[float, float]  # what it holds


class InterpolateMode(ConfigEnum):
    """How values are interpolated: from the nearest 1, 2, 4 or 6 values along each dim.

    NearestExact takes the value whose center is nearest; Nearest rounds down.
    """

    Nearest = unit()
    NearestExact = unit()
    Linear = unit()
    Cubic = unit()
    Lanczos = unit()


_NAMES = {"Linear": "Bilinear", "Cubic": "Bicubic", "Lanczos": "Lanczos3"}


def _some_size(layer: Any) -> str:
    """The size that is given as Burn prints an option."""
    size = layer.output_size
    if size is None:
        return "None"
    return f"Some({list(size) if isinstance(size, tuple) else size})"


SHOWN = (
    "mode",
    ("output_size", _some_size),
    ("scale_factor", lambda layer: Present(layer.scale_factor)),
)


class Interpolate1dConfig(Config):
    """How to make an Interpolate1d: either output_size or scale_factor.

    output_size: the length of the output, at least 1; None, the default: given by
        scale_factor.
    scale_factor: output size over input size, above 0; None, the default: given by
        output_size.
    mode: how values between places are found: Nearest, NearestExact, Linear, Cubic or
        Lanczos (default Nearest).
    align_corners: whether first and last places of input and output coincide; Nearest
        and NearestExact have no such choice (default True).

    Example:
        >>> Interpolate1dConfig().with_output_size(20).init()
        Interpolate1d {mode: Nearest, output_size: Some(20), scale_factor: None}
    """

    newer = ("align_corners",)

    output_size: int | None
    scale_factor: float | None
    mode: InterpolateMode = InterpolateMode.Nearest
    align_corners: bool = True

    def validate(self) -> None:
        """Refuse an empty output, and a scale that is not above zero."""
        _check(self)

    def init(self) -> "Interpolate1d":
        """The layer; it has no parameters, so it needs no device."""
        _one_of_two(self)
        return build(Interpolate1d, self)


class Interpolate1d(Module):
    """Resize lines, to a length or by a factor: l' = ⌊l · scale_factor⌋.

    align_corners: whether the centers of the first and last values of input and output
        coincide, instead of their outer edges.

    Shapes: x [n, c, l] -> [n, c, l']
    """

    output_size: int | None
    scale_factor: float | None
    mode: InterpolateMode
    align_corners: bool
    shown = SHOWN
    shown_unless = (("align_corners", True),)
    newer_fields = shown_unless

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of lines."""
        size = self.output_size
        if size is None and self.scale_factor is not None:
            size = int(input.dims()[-1] * self.scale_factor)
        return interpolate(input, size or 0, _options(self))


class Interpolate2dConfig(Config):
    """How to make an Interpolate2d: either output_size or scale_factor.

    output_size: the size [height, width] of the output, each at least 1;
        None, the default: given by scale_factor.
    scale_factor: output size over input size, [height, width], each above 0;
        None, the default: given by output_size.
    mode: how values between places are found: Nearest, NearestExact, Linear, Cubic or
        Lanczos (default Nearest).
    align_corners: whether first and last places of input and output coincide; Nearest
        and NearestExact have no such choice (default True).

    Example:
        >>> Interpolate2dConfig().with_output_size([20, 20]).init().output_size
        (20, 20)
    """

    newer = ("align_corners",)

    output_size: Pair | None
    scale_factor: Scales | None
    mode: InterpolateMode = InterpolateMode.Nearest
    align_corners: bool = True

    def validate(self) -> None:
        """Refuse an empty output, and a scale that is not above zero."""
        _check(self)

    def init(self) -> "Interpolate2d":
        """The layer; it has no parameters, so it needs no device."""
        _one_of_two(self)
        return build(Interpolate2d, self)


class Interpolate2d(Module):
    """Resize images, to a size or by a factor per dim: h' = ⌊h · scale_factor⌋.

    align_corners: whether the centers of the corner pixels of input and output
        coincide, instead of the edges of the images.

    Shapes: x [n, c, h, w] -> [n, c, h', w']
    """

    output_size: Pair | None
    scale_factor: Scales | None
    mode: InterpolateMode
    align_corners: bool
    shown = SHOWN
    shown_unless = (("align_corners", True),)
    newer_fields = shown_unless

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of images."""
        size = self.output_size
        if size is None:
            pairs = zip(input.dims()[-2:], self.scale_factor or (), strict=False)
            size = [int(n * factor) for n, factor in pairs]
        return interpolate(input, size, _options(self))


def _options(layer: Any) -> InterpolateOptions:
    name: str = layer.mode.variant
    return InterpolateOptions(_NAMES.get(name, name), layer.align_corners)


def _check(config: Any) -> None:
    at_least(config, 1, "output_size")
    factor = config.scale_factor
    factors = (
        factor if isinstance(factor, tuple) else (1.0 if factor is None else factor,)
    )
    if not all(0 < one < float("inf") for one in factors):
        shown = list(factors) if isinstance(factor, tuple) else factor
        raise ConfigError(
            type(config).__name__, f"scale_factor is {shown}, it must be above 0"
        )


def _one_of_two(config: Any) -> None:
    if (config.output_size is None) == (config.scale_factor is None):
        found = "neither" if config.output_size is None else "both"
        raise ConfigError(
            type(config).__name__,
            f"{found} of output_size and scale_factor given, exactly one is needed",
            cure="with_output_size(…) or with_scale_factor(…)",
        )
