"""Conv3d: convolution over the three dims of volumes."""

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.module import Module, Param
from burnbook.nn.conv.shared import SHOWN, check_sizes, convolve, filters
from burnbook.nn.initializer import KAIMING, Initializer
from burnbook.nn.shared import PaddingConfig3d, Pair, Triple, build
from burnbook.ops.conv.conv import conv
from burnbook.tensor import Tensor


class Conv3dConfig(Config):
    """How to make a Conv3d layer: channels [in, out], kernel_size [d, h, w].

    channels: how many channels go in and come out, [in, out], each at least 1.
    kernel_size: size of the filter [depth, height, width], each at least 1.
    stride: by how many places the filter moves, each at least 1 (default (1, 1, 1)).
    dilation: distance between places that the filter reads, each at least 1
        (default (1, 1, 1)).
    groups: into how many groups the channels are split, each with filters of its own;
        it divides both numbers of channels (default 1).
    padding: how many zeros surround the input: Valid (none), Same or Explicit
        (default Valid).
    bias: whether a bias is added to every channel of the output (default True).
    initializer: how weight and bias are drawn (default KaimingUniform with gain 1/√3).
        For another bias: `initializer.with_bias(Initializer.Zeros)`.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> Conv3dConfig([1, 8], [3, 3, 3]).init(Numpy()).num_params()
        224
    """

    channels: Pair
    kernel_size: Triple
    stride: Triple = (1, 1, 1)
    dilation: Triple = (1, 1, 1)
    groups: int = 1
    padding: PaddingConfig3d = PaddingConfig3d.Valid
    bias: bool = True
    initializer: Initializer = KAIMING

    def validate(self) -> None:
        """Refuse sizes below 1, and groups that the channels cannot be split into."""
        check_sizes(self)

    def init(self, device: Backend) -> "Conv3d":
        """The layer on a device; its numbers are drawn at the first use."""
        drawn = filters(self, self.channels, self.groups, device)
        return build(Conv3d, self, **drawn)


class Conv3d(Module):
    """Slide filters through volumes: out = bias + Σ over the window of x · weight.

    Shapes: x [n, c_in, d, h, w] -> [n, c_out, d', h', w'];
        weight [c_out, c_in / groups, kd, kh, kw], bias [c_out];
        h' = ⌊(h + 2 padding − dilation (kh − 1) − 1) / stride⌋ + 1
    """

    weight: Param
    bias: Param | None
    stride: Triple
    kernel_size: Triple
    dilation: Triple
    groups: int
    padding: PaddingConfig3d
    shown = SHOWN

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of volumes."""
        return convolve(conv, self, input)
