"""PositionWiseFeedForward: the same two-layer network at every position."""

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.module import Module
from burnbook.nn.activation import Activation, ActivationConfig, Gelu
from burnbook.nn.dropout import Dropout, DropoutConfig
from burnbook.nn.initializer import KAIMING, Initializer
from burnbook.nn.linear import Linear, LinearConfig
from burnbook.nn.shared import at_least
from burnbook.tensor import Tensor


class PositionWiseFeedForwardConfig(Config):
    """How to make a PositionWiseFeedForward: width of input and output, and inside.

    d_model: width of input and output, at least 1.
    d_ff: width between both linear layers, at least 1.
    dropout: with which probability values are dropped in training, in [0, 1]
        (default 0.1).
    initializer: how weights and biases are drawn (default KaimingUniform with gain
        1/√3). For other biases: `initializer.with_bias(Initializer.Zeros)`.
    activation: activation between both linear layers (default Gelu).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> PositionWiseFeedForwardConfig(2, 4).init(Numpy())
        PositionWiseFeedForward {d_model: 2, d_ff: 4, prob: 0.1, params: 22}
    """

    newer = ("activation",)

    d_model: int
    d_ff: int
    dropout: float = 0.1
    initializer: Initializer = KAIMING
    activation: ActivationConfig = ActivationConfig.Gelu

    def validate(self) -> None:
        """Refuse widths below 1."""
        at_least(self, 1, "d_model", "d_ff")

    def init(self, device: Backend) -> "PositionWiseFeedForward":
        """The layer on a device; its numbers are drawn at the first use."""
        inner, outer = (
            LinearConfig(*sizes).with_initializer(self.initializer).init(device)
            for sizes in ((self.d_model, self.d_ff), (self.d_ff, self.d_model))
        )
        dropout = DropoutConfig(self.dropout).init()
        other = None
        if self.activation != ActivationConfig.Gelu:
            other = self.activation.init(device)
        return PositionWiseFeedForward(inner, outer, dropout, Gelu(), other)


class PositionWiseFeedForward(Module):
    """Two linear layers around an activation: outer(dropout(gelu(inner(x)))).

    Shapes: input [..., d_model] -> [..., d_model]
    Why: `gelu` is a field of Burn 0.15's records; another activation, if one is chosen,
    has a field of its own.
    """

    linear_inner: Linear
    linear_outer: Linear
    dropout: Dropout
    gelu: Gelu
    activation: Activation | None = None
    shown = (
        ("d_model", lambda layer: layer.linear_inner.weight.shape[0]),
        ("d_ff", lambda layer: layer.linear_inner.weight.shape[1]),
        ("prob", lambda layer: layer.dropout.prob),
    )
    newer_fields = (("activation", None),)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer; the input may have any rank."""
        inner = self.linear_inner.forward(input)
        active = self.gelu if self.activation is None else self.activation
        return self.linear_outer.forward(self.dropout.forward(active(inner)))
