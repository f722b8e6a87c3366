"""Attention: layers, their masks and their caches."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.nn.attention.cross_attention import (
    CrossAttention,
    CrossAttentionCache,
    CrossAttentionConfig,
)
from burnbook.nn.attention.mask import (
    GeneratePaddingMask,
    SeqLengthOption,
    generate_autoregressive_mask,
    generate_padding_mask,
)
from burnbook.nn.attention.mha import (
    MhaCache,
    MhaInput,
    MhaOutput,
    MultiHeadAttention,
    MultiHeadAttentionConfig,
)

__all__ = [
    "CrossAttention",
    "CrossAttentionCache",
    "CrossAttentionConfig",
    "GeneratePaddingMask",
    "MhaCache",
    "MhaInput",
    "MhaOutput",
    "MultiHeadAttention",
    "MultiHeadAttentionConfig",
    "SeqLengthOption",
    "generate_autoregressive_mask",
    "generate_padding_mask",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
