"""TransformerDecoder: layers of self-attention, cross-attention and feed-forward.

The target sequence attends to itself, then to the memory, which is the output of an
encoder. All three parts of a layer have a residual connection: their output is added to
their input.
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


class TransformerDecoderConfig(TransformerConfig):
    """How to make a TransformerDecoder.

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
        >>> TransformerDecoderConfig(8, 16, 2, 3).init(Numpy()).num_params()
        2712
    """

    def init(self, device: Backend) -> "TransformerDecoder":
        """The decoder on a device; its numbers are drawn at the first use."""
        made = [TransformerDecoderLayer.new(self, device) for _ in range(self.n_layers)]
        return build(TransformerDecoder, self, layers=made)


@dataclass(frozen=True)
class TransformerDecoderInput:
    """The target and the memory that a TransformerDecoder gets, and their masks.

    Shapes: target [b, s, d], memory [b, t, d]; target_pad [b, s],
        target_attn [b, s, s], memory_pad [b, t], memory_attn [b, s, t]
    """

    target: Tensor
    memory: Tensor
    target_pad: Tensor | None = None
    target_attn: Tensor | None = None
    memory_pad: Tensor | None = None
    memory_attn: Tensor | None = None

    @classmethod
    def new(cls, target: Tensor, memory: Tensor) -> "TransformerDecoderInput":
        """Target [b, s, d] and memory [b, t, d] without masks."""
        return cls(target, memory)

    @result_matters("input = input.target_mask_pad(mask)")
    def target_mask_pad(self, mask: Tensor) -> "TransformerDecoderInput":
        """Mask positions of the target for all queries, where mask [b, s] is True."""
        return replace(self, target_pad=mask)

    @result_matters("input = input.target_mask_attn(mask)")
    def target_mask_attn(self, mask: Tensor) -> "TransformerDecoderInput":
        """Mask the target for single queries, where mask [b, s, s] is True."""
        return replace(self, target_attn=mask)

    @result_matters("input = input.memory_mask_pad(mask)")
    def memory_mask_pad(self, mask: Tensor) -> "TransformerDecoderInput":
        """Mask positions of the memory for all queries, where mask [b, t] is True."""
        return replace(self, memory_pad=mask)

    @result_matters("input = input.memory_mask_attn(mask)")
    def memory_mask_attn(self, mask: Tensor) -> "TransformerDecoderInput":
        """Mask the memory for single queries, where mask [b, s, t] is True."""
        return replace(self, memory_attn=mask)


class TransformerDecoderLayerAutoregressiveCache:
    """The results of one layer for earlier steps."""

    __slots__ = ("cross_attn", "norm_1", "norm_2", "norm_3", "pwff", "self_attn")

    def __init__(self) -> None:
        self.cross_attn = MhaCache.autoregressive_cross_attention()
        self.self_attn, self.pwff = MhaCache.autoregressive(), TensorCache.empty()
        self.norm_1, self.norm_2 = TensorCache.empty(), TensorCache.empty()
        self.norm_3 = TensorCache.empty()


class TransformerDecoderAutoregressiveCache:
    """The results of a TransformerDecoder for earlier steps, layer by layer."""

    __slots__ = ("layers",)

    def __init__(self, layers: int):
        make = TransformerDecoderLayerAutoregressiveCache
        self.layers = [make() for _ in range(layers)]

    def __repr__(self) -> str:
        first = self.layers[0].self_attn if self.layers else ""
        return f"TransformerDecoderAutoregressiveCache({first!r})"


class TransformerDecoderLayer(Module):
    """One layer: self-attention, cross-attention, feed-forward, each with a residual.

    x ← norm_1(x + self_attn(x)), x ← norm_2(x + cross_attn(x, memory)),
    out = norm_3(x + pwff(x)); or, norm_first: x ← x + self_attn(norm_3(x)),
    x ← x + cross_attn(norm_1(x), memory), out = x + pwff(norm_2(x))

    Shapes: target [b, s, d_model], memory [b, t, d_model] -> target [b, s, d_model]
    """

    cross_attn: MultiHeadAttention
    self_attn: MultiHeadAttention
    pwff: PositionWiseFeedForward
    norm_1: LayerNorm
    norm_2: LayerNorm
    norm_3: LayerNorm
    dropout: Dropout
    norm_first: bool

    @classmethod
    def new(
        cls, config: TransformerDecoderConfig, device: Backend
    ) -> "TransformerDecoderLayer":
        """A layer as the config of the decoder says."""
        attention = build(MultiHeadAttentionConfig, config)
        own = attention.init(device)
        norm = LayerNormConfig(config.d_model).with_epsilon(config.layer_norm_eps)
        return cls(
            attention.init(device),
            own,
            build(PositionWiseFeedForwardConfig, config).init(device),
            norm.init(device),
            norm.init(device),
            norm.init(device),
            DropoutConfig(config.dropout).init(),
            config.norm_first,
        )

    def forward(self, input: TransformerDecoderInput) -> TransformerDecoderInput:
        """Apply the layer: the input with another target."""
        return self._run(input, None)

    def forward_autoregressive_inference(
        self,
        input: TransformerDecoderInput,
        cache: TransformerDecoderLayerAutoregressiveCache,
    ) -> TransformerDecoderInput:
        """Apply the layer to a target that grew by one step since the last call."""
        return self._run(input, cache)

    def _run(
        self,
        given: TransformerDecoderInput,
        cache: TransformerDecoderLayerAutoregressiveCache | None,
    ) -> TransformerDecoderInput:
        first, drop = self.norm_first, self.dropout.forward
        x = given.target
        normed = run_cached(self, "norm_3", x, cache) if first else x
        own = MhaInput(normed, normed, normed, given.target_pad, given.target_attn)
        x = x + drop(self._attend("self_attn", own, cache))
        normed = run_cached(self, "norm_1", x, cache)
        x = x if first else normed
        memory, masks = given.memory, (given.memory_pad, given.memory_attn)
        other = MhaInput(normed, memory, memory, *masks)
        x = x + drop(self._attend("cross_attn", other, cache))
        normed = run_cached(self, "norm_2", x, cache)
        x = x if first else normed
        x = x + drop(run_cached(self, "pwff", normed, cache))
        x = x if first else run_cached(self, "norm_3", x, cache)
        return replace(given, target=x)

    def _attend(
        self,
        name: str,
        given: MhaInput,
        cache: TransformerDecoderLayerAutoregressiveCache | None,
    ) -> Tensor:
        layer: MultiHeadAttention = getattr(self, name)
        if cache is None:
            return layer.forward(given).context
        return layer.forward_cache(given, getattr(cache, name)).context


class TransformerDecoder(Module):
    """A stack of layers of self-attention, cross-attention and feed-forward.

    Shapes: target [b, s, d_model], memory [b, t, d_model] -> [b, s, d_model]
    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> decoder = TransformerDecoderConfig(8, 16, 2, 3).init(Numpy())
        >>> target, memory = Tensor.ones([1, 5, 8]), Tensor.ones([1, 7, 8])
        >>> decoder.forward(TransformerDecoderInput.new(target, memory)).shape
        (1, 5, 8)

    Source: Vaswani and others, "Attention is all you need", 2017 (arXiv 1706.03762).
    """

    layers: list[TransformerDecoderLayer]
    d_model: int
    d_ff: int
    n_heads: int
    n_layers: int
    dropout: float
    norm_first: bool
    quiet_softmax: bool
    shown = SHOWN

    def forward(self, input: TransformerDecoderInput) -> Tensor:
        """Apply all layers."""
        for layer in self.layers:
            input = layer.forward(input)  # noqa: A001 - Burn's word
        return input.target

    def forward_autoregressive_inference(
        self,
        input: TransformerDecoderInput,
        cache: TransformerDecoderAutoregressiveCache,
    ) -> Tensor:
        """Apply all layers to a target that grew by one step since the last call.

        Why: the result is that of `forward` with an autoregressive mask, but only the
        newest position is computed, and the keys and values of the memory only once.
        """
        for layer, known in zip(self.layers, cache.layers, strict=True):
            input = layer.forward_autoregressive_inference(input, known)  # noqa: A001
        return input.target

    def new_autoregressive_cache(self) -> TransformerDecoderAutoregressiveCache:
        """An empty cache for this decoder."""
        return TransformerDecoderAutoregressiveCache(len(self.layers))


holds_tensors(TransformerDecoderInput)
