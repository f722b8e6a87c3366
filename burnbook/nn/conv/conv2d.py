"""Conv2d: convolution over height and width of images."""

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.module import Module, Param
from burnbook.nn.conv.shared import SHOWN, check_sizes, convolve, filters
from burnbook.nn.initializer import KAIMING, Initializer
from burnbook.nn.shared import PaddingConfig2d, Pair, build
from burnbook.ops.conv.conv import conv2d
from burnbook.tensor import Tensor


class Conv2dConfig(Config):
    """How to make a Conv2d layer: channels [in, out], kernel_size [height, width].

    channels: how many channels go in and come out, [in, out], each at least 1.
    kernel_size: size of the filter [height, width], each at least 1.
    stride: by how many places the filter moves, each at least 1 (default (1, 1)).
    dilation: distance between places that the filter reads, each at least 1
        (default (1, 1)).
    groups: into how many groups the channels are split, each with filters of its own;
        it divides both numbers of channels (default 1).
    padding: how many zeros surround the input: Valid (none), Same or Explicit
        (default Valid).
    bias: whether a bias is added to every channel of the output (default True).
    initializer: how weight and bias are drawn (default KaimingUniform with gain 1/√3).
        For another bias: `initializer.with_bias(Initializer.Zeros)`.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> Conv2dConfig([1, 8], [3, 3]).with_bias(False).init(Numpy()).num_params()
        72
    """

    channels: Pair
    kernel_size: Pair
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    groups: int = 1
    padding: PaddingConfig2d = PaddingConfig2d.Valid
    bias: bool = True
    initializer: Initializer = KAIMING

    def validate(self) -> None:
        """Refuse sizes below 1, and groups that the channels cannot be split into."""
        check_sizes(self)

    def init(self, device: Backend) -> "Conv2d":
        """The layer on a device; its numbers are drawn at the first use."""
        drawn = filters(self, self.channels, self.groups, device)
        return build(Conv2d, self, **drawn)


class Conv2d(Module):
    """Slide filters over images: outₙₒᵢⱼ = biasₒ + Σ over the window of x · weightₒ.

    Shapes: x [n, c_in, h, w] -> [n, c_out, h', w'];
        weight [c_out, c_in / groups, kh, kw], bias [c_out];
        h' = ⌊(h + 2 padding − dilation (kh − 1) − 1) / stride⌋ + 1
    """

    weight: Param
    bias: Param | None
    stride: Pair
    kernel_size: Pair
    dilation: Pair
    groups: int
    padding: PaddingConfig2d
    shown = SHOWN

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of images."""
        return convolve(conv2d, self, input)
