"""What encoder and decoder share: checks and display."""

from typing import Any

from burnbook.core.errors import ConfigError
from burnbook.nn.shared import at_least
from burnbook.tensor import Tensor

#: What an encoder or decoder shows: its sizes and options.
SHOWN = (
    *("d_model", "d_ff", "n_heads", "n_layers"),
    *("dropout", "norm_first", "quiet_softmax"),
)


def check_sizes(config: Any) -> None:
    """Raise a ConfigError for empty sizes, and heads that do not divide the width."""
    at_least(config, 1, "d_model", "d_ff", "n_heads")
    at_least(config, 0, "n_layers")
    if config.d_model % config.n_heads:
        raise ConfigError(
            type(config).__name__,
            f"d_model {config.d_model} does not divide into {config.n_heads} heads",
            cure="n_heads that divides d_model",
        )


def run_cached(layer: Any, name: str, x: Tensor, cache: Any) -> Tensor:
    """A part of a layer, for all steps; with a cache, for the last one only."""
    part = getattr(layer, name)
    if cache is None:
        return part.forward(x)
    return getattr(cache, name).forward_autoregressive(x, 1, part.forward)
