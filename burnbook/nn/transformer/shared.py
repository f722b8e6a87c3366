"""What encoder and decoder share: fields, checks and display."""

from typing import Any

from burnbook.config import Config
from burnbook.core.errors import ConfigError
from burnbook.nn.activation import ActivationConfig
from burnbook.nn.initializer import KAIMING, Initializer
from burnbook.nn.shared import at_least
from burnbook.tensor import Tensor

#: What an encoder or decoder shows: its sizes and options.
SHOWN = (
    *("d_model", "d_ff", "n_heads", "n_layers"),
    *("dropout", "norm_first", "quiet_softmax"),
)


class TransformerConfig(Config):
    """What encoders and decoders are made from.

    d_model: width of input and output; n_heads divides it.
    d_ff: width inside the feed-forward network, at least 1.
    n_heads: how many heads of attention, at least 1.
    n_layers: how many layers, at least 0.
    dropout: with which probability values are dropped in training, in [0, 1]
        (default 0.1).
    norm_first: whether to normalize before each part instead of after it
        (default False).
    quiet_softmax: whether softmax has 1 more in its denominator, so that a head may
        attend to nothing (default False).
    initializer: how weights and biases are drawn (default KaimingUniform with gain
        1/√3). For other biases: `initializer.with_bias(Initializer.Zeros)`.
    activation: activation inside the feed-forward network (default Gelu).
    layer_norm_eps: epsilon of the layer norms, at least 0 (default 1e-5).
    """

    newer = ("activation", "layer_norm_eps")

    d_model: int
    d_ff: int
    n_heads: int
    n_layers: int
    dropout: float = 0.1
    norm_first: bool = False
    quiet_softmax: bool = False
    initializer: Initializer = KAIMING
    activation: ActivationConfig = ActivationConfig.Gelu
    layer_norm_eps: float = 1e-5

    def validate(self) -> None:
        """Refuse empty sizes, and heads that do not divide the width."""
        at_least(self, 1, "d_model", "d_ff", "n_heads")
        at_least(self, 0, "n_layers")
        if self.d_model % self.n_heads:
            raise ConfigError(
                type(self).__name__,
                f"d_model {self.d_model} does not divide into {self.n_heads} heads",
                cure="n_heads that divides d_model",
            )


def run_cached(layer: Any, name: str, x: Tensor, cache: Any) -> Tensor:
    """A part of a layer, for all steps; with a cache, for the last one only."""
    part = getattr(layer, name)
    if cache is None:
        return part.forward(x)
    return getattr(cache, name).forward_autoregressive(x, 1, part.forward)
