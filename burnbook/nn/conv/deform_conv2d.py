"""DeformConv2d: a convolution whose sampling points have offsets."""

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.module import Module, Param
from burnbook.nn.conv.shared import filters
from burnbook.nn.initializer import KAIMING, Initializer
from burnbook.nn.shared import (
    PaddingConfig2d,
    Pair,
    at_least,
    build,
    divide_into,
    padded,
    tensor_of,
)
from burnbook.tensor import Tensor
from burnbook.tensor.module import DeformConvOptions, deform_conv2d


class DeformConv2dConfig(Config):
    """How to make a DeformConv2d layer: channels [in, out], kernel_size [h, w].

    channels: how many channels go in and come out, [in, out], each at least 1.
    kernel_size: size of the filter [height, width], each at least 1.
    stride: by how many places the filter moves, each at least 1 (default (1, 1)).
    dilation: distance between places that the filter reads, each at least 1
        (default (1, 1)).
    weight_groups: into how many groups the channels are split, each with filters of its
        own; it divides both numbers of channels (default 1).
    offset_groups: into how many groups the input channels are split, each with offsets
        of its own; it divides channels[0] (default 1).
    padding: how many zeros surround the input: Valid (none), Same or Explicit
        (default Valid).
    bias: whether a bias is added to every channel of the output (default True).
    initializer: how weight and bias are drawn (default KaimingUniform with gain 1/√3).
        For another bias: `initializer.with_bias(Initializer.Zeros)`.
    """

    channels: Pair
    kernel_size: Pair
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    weight_groups: int = 1
    offset_groups: int = 1
    padding: PaddingConfig2d = PaddingConfig2d.Valid
    bias: bool = True
    initializer: Initializer = KAIMING

    def validate(self) -> None:
        """Refuse sizes below 1, and groups that the channels cannot be split into."""
        at_least(self, 1, "channels", "kernel_size", "stride", "dilation")
        at_least(self, 1, "offset_groups", "weight_groups")
        divide_into(self.weight_groups, self, self.channels)
        divide_into(self.offset_groups, self, self.channels[:1])

    def init(self, device: Backend) -> "DeformConv2d":
        """The layer on a device; its numbers are drawn at the first use."""
        drawn = filters(self, self.channels, self.weight_groups, device)
        return build(DeformConv2d, self, **drawn)


class DeformConv2d(Module):
    """Convolution with an offset for every sampling point of every window.

    Shapes: x [n, c_in, h, w], offset [n, 2 · offset_groups · kh · kw, h', w'],
        mask [n, offset_groups · kh · kw, h', w'] -> [n, c_out, h', w'];
        weight [c_out, c_in / weight_groups, kh, kw], bias [c_out]
    """

    weight: Param
    bias: Param | None
    stride: Pair
    kernel_size: Pair
    dilation: Pair
    weight_groups: int
    offset_groups: int
    padding: PaddingConfig2d
    shown = (
        "stride",
        "kernel_size",
        "dilation",
        "weight_groups",
        "offset_groups",
        "padding",
    )

    def forward(
        self, input: Tensor, offset: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Apply the layer to images; offsets are (dy, dx) for each weight."""
        x, padding = padded(self, input)
        options = DeformConvOptions(
            self.stride,
            padding,
            self.dilation,
            self.weight_groups,
            self.offset_groups,
        )
        weight, bias = self.weight.val(), tensor_of(self.bias)
        return deform_conv2d(x, offset, weight, mask, bias, options)
