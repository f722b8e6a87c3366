"""TransformerEncoder: layers of self-attention and feed-forward networks.

Both parts of a layer have a residual connection: their output is added to their input.
"""

from dataclasses import dataclass, replace

from burnbook.backend.base import Backend
from burnbook.core.dropped import result_matters
from burnbook.core.held_tensors import holds_tensors
from burnbook.module import Module
from burnbook.nn.attention import (
    MhaCache,
    MhaInput,
    MultiHeadAttention,
    MultiHeadAttentionConfig,
)
from burnbook.nn.cache import TensorCache
from burnbook.nn.dropout import Dropout, DropoutConfig
from burnbook.nn.norm import LayerNorm, LayerNormConfig
from burnbook.nn.shared import build
from burnbook.nn.transformer.pwff import (
    PositionWiseFeedForward,
    PositionWiseFeedForwardConfig,
)
from burnbook.nn.transformer.shared import SHOWN, TransformerConfig, run_cached
from burnbook.tensor import Tensor


class TransformerEncoderConfig(TransformerConfig):
    """How to make a TransformerEncoder.

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

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> TransformerEncoderConfig(8, 16, 2, 3).init(Numpy()).num_params()
        1800
    """

    def init(self, device: Backend) -> "TransformerEncoder":
        """The encoder on a device; its numbers are drawn at the first use."""
        made = [TransformerEncoderLayer.new(self, device) for _ in range(self.n_layers)]
        return build(TransformerEncoder, self, layers=made)


@dataclass(frozen=True)
class TransformerEncoderInput:
    """The input of a TransformerEncoder, and its masks.

    Shapes: tensor [b, s, d]; pad [b, s], attn [b, s, s]
    """

    tensor: Tensor
    pad: Tensor | None = None
    attn: Tensor | None = None

    @classmethod
    def new(cls, tensor: Tensor) -> "TransformerEncoderInput":
        """A sequence [b, s, d] without masks."""
        return cls(tensor)

    @result_matters("input = input.mask_pad(mask)")
    def mask_pad(self, mask: Tensor) -> "TransformerEncoderInput":
        """Mask positions for all queries, where mask [b, s] is True."""
        return replace(self, pad=mask)

    @result_matters("input = input.mask_attn(mask)")
    def mask_attn(self, mask: Tensor) -> "TransformerEncoderInput":
        """Mask positions for single queries, where mask [b, s, s] is True."""
        return replace(self, attn=mask)


class TransformerEncoderLayerAutoregressiveCache:
    """The results of one layer for earlier steps."""

    __slots__ = ("mha", "norm_1", "norm_2", "pwff")

    def __init__(self) -> None:
        self.mha, self.pwff = MhaCache.autoregressive(), TensorCache.empty()
        self.norm_1, self.norm_2 = TensorCache.empty(), TensorCache.empty()


class TransformerEncoderAutoregressiveCache:
    """The results of a TransformerEncoder for earlier steps, layer by layer."""

    __slots__ = ("layers",)

    def __init__(self, layers: int):
        make = TransformerEncoderLayerAutoregressiveCache
        self.layers = [make() for _ in range(layers)]

    def __repr__(self) -> str:
        first = self.layers[0].mha if self.layers else ""
        return f"TransformerEncoderAutoregressiveCache({first!r})"


class TransformerEncoderLayer(Module):
    """One layer: self-attention, then a feed-forward network, each with a residual.

    x ← norm_1(x + mha(x)), out = norm_2(x + pwff(x)); or, norm_first:
    x ← x + mha(norm_2(x)), out = x + pwff(norm_1(x))

    Shapes: input [b, s, d_model] -> [b, s, d_model]; mask_pad [b, s],
        mask_attn [b, s, s]
    """

    mha: MultiHeadAttention
    pwff: PositionWiseFeedForward
    norm_1: LayerNorm
    norm_2: LayerNorm
    dropout: Dropout
    norm_first: bool

    @classmethod
    def new(
        cls, config: TransformerEncoderConfig, device: Backend
    ) -> "TransformerEncoderLayer":
        """A layer as the config of the encoder says."""
        norm = LayerNormConfig(config.d_model).with_epsilon(config.layer_norm_eps)
        return cls(
            build(MultiHeadAttentionConfig, config).init(device),
            build(PositionWiseFeedForwardConfig, config).init(device),
            norm.init(device),
            norm.init(device),
            DropoutConfig(config.dropout).init(),
            config.norm_first,
        )

    def forward(
        self,
        input: Tensor,
        mask_pad: Tensor | None = None,
        mask_attn: Tensor | None = None,
    ) -> Tensor:
        """Apply the layer."""
        return self._run(MhaInput(input, input, input, mask_pad, mask_attn), None)

    def forward_autoregressive_inference(
        self,
        input: Tensor,
        mask_pad: Tensor | None,
        mask_attn: Tensor | None,
        cache: TransformerEncoderLayerAutoregressiveCache,
    ) -> Tensor:
        """Apply the layer to a sequence that grew by one step since the last call."""
        return self._run(MhaInput(input, input, input, mask_pad, mask_attn), cache)

    def _run(
        self,
        given: MhaInput,
        cache: TransformerEncoderLayerAutoregressiveCache | None,
    ) -> Tensor:
        x, first = given.query, self.norm_first
        if first:
            normed = run_cached(self, "norm_2", x, cache)
            given = replace(given, query=normed, key=normed, value=normed)
        attended = (
            self.mha.forward(given)
            if cache is None
            else self.mha.forward_cache(given, cache.mha)
        )
        x = x + self.dropout.forward(attended.context)
        normed = run_cached(self, "norm_1", x, cache)
        x = x if first else normed
        x = x + self.dropout.forward(run_cached(self, "pwff", normed, cache))
        return x if first else run_cached(self, "norm_2", x, cache)


class TransformerEncoder(Module):
    """A stack of layers of self-attention and feed-forward networks.

    Shapes: input [b, s, d_model] -> [b, s, d_model]
    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> encoder = TransformerEncoderConfig(8, 16, 2, 3).init(Numpy())
        >>> text = TransformerEncoderInput.new(Tensor.ones([1, 5, 8], Numpy()))
        >>> encoder.forward(text).shape
        (1, 5, 8)

    Source: Vaswani and others, "Attention is all you need", 2017 (arXiv 1706.03762).
    """

    layers: list[TransformerEncoderLayer]
    d_model: int
    d_ff: int
    n_heads: int
    n_layers: int
    dropout: float
    norm_first: bool
    quiet_softmax: bool
    shown = SHOWN

    def forward(self, input: TransformerEncoderInput) -> Tensor:
        """Apply all layers."""
        x = input.tensor
        for layer in self.layers:
            x = layer.forward(x, input.pad, input.attn)
        return x

    def forward_autoregressive_inference(
        self,
        input: TransformerEncoderInput,
        cache: TransformerEncoderAutoregressiveCache,
    ) -> Tensor:
        """Apply all layers to a sequence that grew by one step since the last call.

        Why: the result is that of `forward` with an autoregressive mask, but only the
        newest position is computed.
        """
        x = input.tensor
        for layer, known in zip(self.layers, cache.layers, strict=True):
            x = layer.forward_autoregressive_inference(x, input.pad, input.attn, known)
        return x

    def new_autoregressive_cache(self) -> TransformerEncoderAutoregressiveCache:
        """An empty cache for this encoder."""
        return TransformerEncoderAutoregressiveCache(len(self.layers))


holds_tensors(TransformerEncoderInput)
