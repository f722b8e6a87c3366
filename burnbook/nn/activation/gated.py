"""Gated activations: the product of values and a function of other values."""

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.module import Module
from burnbook.nn.initializer import KAIMING, Initializer
from burnbook.nn.linear import Linear, LinearConfig, LinearLayout
from burnbook.nn.shared import at_least
from burnbook.tensor import Tensor, activation


class Glu(Module):
    """Gated linear unit: one half of x times the sigmoid of the other: out = a σ(b).

    dim: the dim that is split; it may count from the end.

    Shapes: x [..., 2d, ...] -> [..., d, ...]
    Source: Dauphin, Fan, Auli, Grangier, "Language modeling with gated convolutional
    networks", 2016 (arXiv 1612.08083).
    Example:
        >>> Glu(1)
        Glu {dim: 1}
    """

    dim: int
    shown = ("dim",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer; the dim comes out half as long."""
        return activation.glu(input, self.dim)


class SwiGluConfig(Config):
    """How to make a SwiGlu.

    d_input: size of the last dim of the input, at least 1.
    d_output: size of the last dim of the output, at least 1.
    bias: whether both linear layers have a bias (default False).
    initializer: how weights and biases are drawn (default KaimingUniform with gain
        1/√3). For other biases: `initializer.with_bias(Initializer.Zeros)`.
    layout: how records hold both weights: Row or Col (default Row).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> SwiGluConfig(3, 5).init(Numpy())
        SwiGlu {d_input: 3, d_output: 5, bias: false, params: 30}
    """

    newer = ("layout",)

    d_input: int
    d_output: int
    bias: bool = False
    initializer: Initializer = KAIMING
    layout: LinearLayout = LinearLayout.Row

    def validate(self) -> None:
        """Refuse layers without inputs or outputs."""
        at_least(self, 1, "d_input", "d_output")

    def init(self, device: Backend) -> "SwiGlu":
        """The layer on a device; its numbers are drawn at the first use."""
        linear = LinearConfig(
            self.d_input,
            self.d_output,
            bias=self.bias,
            initializer=self.initializer,
            layout=self.layout,
        )
        return SwiGlu(linear.init(device), linear.init(device))


class SwiGlu(Module):
    """One linear layer times the swish of another: out = silu(x A) · (x B).

    Shapes: x [..., d_input] -> [..., d_output]; linear_inner is A, linear_outer B
    Source: Shazeer, "GLU variants improve transformer", 2020 (arXiv 2002.05202).
    """

    linear_inner: Linear
    linear_outer: Linear
    shown = (
        ("d_input", lambda layer: layer.linear_inner.weight.shape[0]),
        ("d_output", lambda layer: layer.linear_inner.weight.shape[1]),
        ("bias", lambda layer: layer.linear_inner.bias is not None),
    )

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer; the input may have any rank."""
        gate = activation.silu(self.linear_inner.forward(input))
        return gate * self.linear_outer.forward(input)
