"""Conv1d: convolution over one dim, such as time."""

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.module import Module, Param
from burnbook.nn.conv.shared import SHOWN, convolve, parameters
from burnbook.nn.initializer import KAIMING, Initializer
from burnbook.nn.shared import PaddingConfig1d, at_least, build, divide_into
from burnbook.ops.conv.conv import conv
from burnbook.tensor import Tensor


class Conv1dConfig(Config):
    """How to make a Conv1d layer: channels_in, channels_out, kernel_size.

    channels_in: how many channels go in, at least 1.
    channels_out: how many channels come out, at least 1.
    kernel_size: size of the filter, at least 1.
    stride: by how many places the filter moves, at least 1 (default 1).
    dilation: distance between places that the filter reads, at least 1 (default 1).
    groups: into how many groups the channels are split, each with filters of its own;
        it divides both numbers of channels (default 1).
    padding: how many zeros surround the input: Valid (none), Same or Explicit
        (default Valid).
    bias: whether a bias is added to every channel of the output (default True).
    initializer: how weight and bias are drawn (default KaimingUniform with gain 1/√3).
        For another bias: `initializer.with_bias(Initializer.Zeros)`.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> Conv1dConfig(2, 8, 5).with_groups(2).init(Numpy()).weight.shape
        (8, 1, 5)
    """

    channels_in: int
    channels_out: int
    kernel_size: int
    stride: int = 1
    dilation: int = 1
    groups: int = 1
    padding: PaddingConfig1d = PaddingConfig1d.Valid
    bias: bool = True
    initializer: Initializer = KAIMING

    def validate(self) -> None:
        """Refuse sizes below 1, and groups that the channels cannot be split into."""
        sizes = ("channels_in", "channels_out", "kernel_size", "stride", "dilation")
        at_least(self, 1, *sizes, "groups")
        divide_into(self.groups, self, (self.channels_in, self.channels_out))

    def init(self, device: Backend) -> "Conv1d":
        """The layer on a device; its numbers are drawn at the first use."""
        shape = [self.channels_out, self.channels_in // self.groups, self.kernel_size]
        drawn = parameters(self, shape, self.channels_out, device)
        return build(Conv1d, self, **drawn)


class Conv1d(Module):
    """Slide filters along lines: outₙₒᵢ = biasₒ + Σ over the window of x · weightₒ.

    Shapes: x [n, c_in, l] -> [n, c_out, l'];
        weight [c_out, c_in / groups, k], bias [c_out];
        l' = ⌊(l + 2 padding − dilation (k − 1) − 1) / stride⌋ + 1
    """

    weight: Param
    bias: Param | None
    stride: int
    kernel_size: int
    dilation: int
    groups: int
    padding: PaddingConfig1d
    shown = SHOWN

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of lines."""
        return convolve(conv, self, input)
