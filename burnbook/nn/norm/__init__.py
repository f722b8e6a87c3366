"""Building blocks · Module. Normalization layers."""

from burnbook.nn.norm.layer_norm import LayerNorm, LayerNormConfig

__all__ = ["LayerNorm", "LayerNormConfig"]
