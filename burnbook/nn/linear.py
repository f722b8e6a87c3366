"""Linear: every output is a weighted sum of all inputs."""

from burnbook.backend.base import Backend
from burnbook.config import Config, ConfigEnum, unit
from burnbook.module import Module, Param
from burnbook.module.param import TransposedParam
from burnbook.nn.initializer import KAIMING, Initializer
from burnbook.nn.shared import at_least
from burnbook.ops.linear import linear
from burnbook.tensor import Tensor, apply


class LinearLayout(ConfigEnum):
    """How records hold the weight of a Linear: Row [d_input, d_output], Col turned.

    Why: newer Burn lets a weight be kept by columns, and saves it so. What the layer
    computes, and its `weight`, are the same.
    """

    Row = unit()
    Col = unit()


class LinearConfig(Config):
    """How to make a Linear layer.

    d_input: size of the last dim of the input, at least 1.
    d_output: size of the last dim of the output, at least 1.
    bias: whether b is added (default True).
    initializer: draws the weight and, as in Burn, the bias (default KaimingUniform with
        gain 1/√3). For another bias: `initializer.with_bias(Initializer.Zeros)`.
    layout: how records hold the weight: Row or Col (default Row).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> LinearConfig(3, 5).init(Numpy())
        Linear {d_input: 3, d_output: 5, bias: true, params: 20}
    """

    newer = ("layout",)

    d_input: int
    d_output: int
    bias: bool = True
    initializer: Initializer = KAIMING
    layout: LinearLayout = LinearLayout.Row

    def validate(self) -> None:
        """Refuse layers without inputs or outputs."""
        at_least(self, 1, "d_input", "d_output")

    def init(self, device: Backend) -> "Linear":
        """The layer on a device; its numbers are drawn at the first use."""
        fans = (self.d_input, self.d_output)
        weight = self.initializer.init_with(list(fans), *fans, device)
        if self.layout == LinearLayout.Col:
            weight = TransposedParam.of(weight)
        bias = None
        if self.bias:
            bias = self.initializer.init_bias(self.d_output, *fans, device)
        return Linear(weight, bias)


class Linear(Module):
    """Weighted sums of all inputs: out = x · weight + bias.

    Shapes: x [..., d_input] -> [..., d_output]; weight [d_input, d_output],
        bias [d_output]
    """

    weight: Param
    bias: Param | None
    shown = (
        ("d_input", lambda layer: layer.weight.shape[0]),
        ("d_output", lambda layer: layer.weight.shape[1]),
        ("bias", lambda layer: layer.bias is not None),
    )

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer; the input may have any rank."""
        bias = self.bias
        return apply(
            linear, input, self.weight.val(), None if bias is None else bias.val()
        )
