"""Transformers: encoder, decoder and their position-wise feed-forward network."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.nn.transformer.decoder import (
    TransformerDecoder,
    TransformerDecoderAutoregressiveCache,
    TransformerDecoderConfig,
    TransformerDecoderInput,
    TransformerDecoderLayer,
)
from burnbook.nn.transformer.encoder import (
    TransformerEncoder,
    TransformerEncoderAutoregressiveCache,
    TransformerEncoderConfig,
    TransformerEncoderInput,
    TransformerEncoderLayer,
)
from burnbook.nn.transformer.pwff import (
    PositionWiseFeedForward,
    PositionWiseFeedForwardConfig,
)

__all__ = [
    "PositionWiseFeedForward",
    "PositionWiseFeedForwardConfig",
    "TransformerDecoder",
    "TransformerDecoderAutoregressiveCache",
    "TransformerDecoderConfig",
    "TransformerDecoderInput",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderAutoregressiveCache",
    "TransformerEncoderConfig",
    "TransformerEncoderInput",
    "TransformerEncoderLayer",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
