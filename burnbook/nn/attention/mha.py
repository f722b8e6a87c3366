"""MultiHeadAttention: scaled dot-product attention in several heads.

The output at each position is a weighted average of the values. The weights are the
softmax of the dot products of the position's query with all keys. Every head does this
with its own d_k columns of queries, keys and values.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.core.dropped import result_matters
from burnbook.core.errors import ConfigError
from burnbook.core.held_tensors import holds_tensors
from burnbook.module import Module
from burnbook.nn.activation import Gelu
from burnbook.nn.attention.heads import (
    check_sequences,
    hidden_score,
    join_masks,
    merge_heads,
    split_heads,
)
from burnbook.nn.cache import Compute, TensorCache
from burnbook.nn.dropout import Dropout, DropoutConfig
from burnbook.nn.initializer import KAIMING, Initializer
from burnbook.nn.linear import Linear, LinearConfig
from burnbook.nn.shared import at_least
from burnbook.ops.attention import attention
from burnbook.ops.random import Key, dropout
from burnbook.tensor import Tensor, apply
from burnbook.tensor.activation import quiet_softmax, softmax


class MultiHeadAttentionConfig(Config):
    """How to make a MultiHeadAttention: the width, and the number of heads.

    d_model: width of inputs and output, at least 1.
    n_heads: how many heads, at least 1; each is d_model // n_heads wide.
    dropout: with which probability attention weights are dropped in training, in [0, 1]
        (default 0.1).
    min_float: the score of masked positions (default -10000.0); of -10000 and less it
        is far below every other score, so that what is masked is never seen.
    quiet_softmax: whether softmax has 1 more in its denominator, so that a head may
        attend to nothing (default False).
    initializer: how weights and biases are drawn (default KaimingUniform with gain
        1/√3). For other biases: `initializer.with_bias(Initializer.Zeros)`.
    key_bias: whether the linear layer of the keys has a bias (default True).
    value_bias: whether the linear layer of the values has a bias (default True).
    query_bias: whether the linear layer of the queries has a bias (default True).
    output_bias: whether the linear layer of the output has a bias (default True).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> MultiHeadAttentionConfig(8, 2).init(Numpy()).d_k
        4
    """

    newer = ("key_bias", "value_bias", "query_bias", "output_bias")

    d_model: int
    n_heads: int
    dropout: float = 0.1
    min_float: float = -1.0e4
    quiet_softmax: bool = False
    initializer: Initializer = KAIMING
    key_bias: bool = True
    value_bias: bool = True
    query_bias: bool = True
    output_bias: bool = True

    def validate(self) -> None:
        """Refuse a layer without columns or heads."""
        at_least(self, 1, "d_model", "n_heads")

    def init(self, device: Backend) -> "MultiHeadAttention":
        """The layer on a device; its numbers are drawn at the first use."""

        def linear(bias: bool) -> Linear:
            config = LinearConfig(self.d_model, self.d_model).with_bias(bias)
            return config.with_initializer(self.initializer).init(device)

        return MultiHeadAttention(
            linear(self.query_bias),
            linear(self.key_bias),
            linear(self.value_bias),
            linear(self.output_bias),
            DropoutConfig(self.dropout).init(),
            Gelu(),
            self.d_model,
            self.n_heads,
            self.d_model // self.n_heads,
            self.min_float,
            self.quiet_softmax,
        )


@dataclass(frozen=True)
class MhaInput:
    """The inputs of MultiHeadAttention: query, key and value, and what is masked.

    Shapes: query [b, s, d], key [b, t, d], value [b, t, d]; pad [b, t], attn [b, s, t]
    """

    query: Tensor
    key: Tensor
    value: Tensor
    pad: Tensor | None = None
    attn: Tensor | None = None

    @classmethod
    def new(cls, query: Tensor, key: Tensor, value: Tensor) -> "MhaInput":
        """Queries of one sequence attend to keys and values of another."""
        return cls(query, key, value)

    @classmethod
    def self_attn(cls, tensor: Tensor) -> "MhaInput":
        """Self-attention: query, key and value are the same sequence [b, s, d]."""
        return cls(tensor, tensor, tensor)

    @result_matters("input = input.mask_pad(mask)")
    def mask_pad(self, mask: Tensor) -> "MhaInput":
        """Mask keys for all queries, where mask [b, t] is True."""
        return replace(self, pad=mask)

    @result_matters("input = input.mask_attn(mask)")
    def mask_attn(self, mask: Tensor) -> "MhaInput":
        """Mask keys for single queries, where mask [b, s, t] is True."""
        return replace(self, attn=mask)


class MhaOutput:
    """The outputs of MultiHeadAttention.

    context: the output [b, s, d]. weights: the attention weights [b, heads, s, t].
    Why: the weights are the largest tensor of all and seldom needed, so they are
    computed at the first access.
    """

    __slots__ = ("_make", "_weights", "context")

    def __init__(self, context: Tensor, make: Callable[[], Tensor]):
        self.context = context
        self._make = make
        self._weights: Tensor | None = None

    @property
    def weights(self) -> Tensor:
        """The attention weights: how much each query attends to each key."""
        if self._weights is None:
            self._weights = self._make()
        return self._weights

    def __repr__(self) -> str:
        return f"MhaOutput(context {list(self.context.dims())})"


class MhaCache:
    """Queries, keys, values and outputs of MultiHeadAttention for earlier steps.

    Example:
        >>> MhaCache.autoregressive()
        MhaCache(0 steps)
    """

    __slots__ = ("fixed", "key", "output", "query", "value")

    def __init__(self, fixed: bool):
        self.fixed = fixed
        self.query, self.key = TensorCache.empty(), TensorCache.empty()
        self.value, self.output = TensorCache.empty(), TensorCache.empty()

    @classmethod
    def autoregressive(cls) -> "MhaCache":
        """For self-attention of a sequence that grows by one step with each call."""
        return cls(fixed=False)

    @classmethod
    def autoregressive_cross_attention(cls) -> "MhaCache":
        """For a growing sequence that attends to another one, which does not change."""
        return cls(fixed=True)

    def others(self, held: TensorCache, tensor: Tensor, make: Compute) -> Tensor:
        """Keys or values of all steps so far, computed for new steps only."""
        if self.fixed:
            return held.forward_full(tensor, make)
        return held.forward_autoregressive(tensor, 2, make)

    def __repr__(self) -> str:
        known = self.output.value
        return f"MhaCache({0 if known is None else known.dims()[1]} steps)"


class MultiHeadAttention(Module):
    """Multi-head attention: averages of the values, weighted by query · key.

    context = output(softmax(q kᵀ / √d_k) v), q = query(x), k = key(y), v = value(z)

    Shapes: query [b, s, d], key [b, t, d], value [b, t, d] -> [b, s, d]
    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> layer = MultiHeadAttentionConfig(8, 2).init(Numpy())
        >>> out = layer.forward(MhaInput.self_attn(Tensor.ones([1, 3, 8], Numpy())))
        >>> out.context.shape, out.weights.shape
        ((1, 3, 8), (1, 2, 3, 3))

    Why: dropout is applied to the scores, as in Burn; PyTorch drops weights.
    Source: Vaswani and others, "Attention is all you need", 2017 (arXiv 1706.03762).
    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    dropout: Dropout
    activation: Gelu
    d_model: int
    n_heads: int
    d_k: int
    min_float: float
    quiet_softmax: bool
    shown = (
        "d_model",
        "n_heads",
        "d_k",
        ("dropout", lambda layer: layer.dropout.prob),
        "min_float",
        "quiet_softmax",
    )

    def forward(self, input: MhaInput) -> MhaOutput:
        """Attend to all keys that no mask hides."""
        mask = self._check(input)
        query = self._heads(self.query, input.query)
        key = self._heads(self.key, input.key)
        value = self._heads(self.value, input.value)
        noise = self._noise(query)
        mixed = self._mix(query, key, value, mask, noise)
        context = self.output.forward(merge_heads(mixed))
        return MhaOutput(context, lambda: self._weigh(query, key, mask, noise))

    def forward_cache(self, input: MhaInput, cache: MhaCache) -> MhaOutput:
        """Apply the layer to a sequence that grew by one step since the last call.

        Why: only the newest query is computed; outputs of the older ones are cached.
        """
        mask = self._check(input)
        steps = cache.query.forward_autoregressive(
            input.query, 2, lambda t: self._heads(self.query, t)
        )
        key = cache.others(cache.key, input.key, lambda t: self._heads(self.key, t))
        value = cache.others(
            cache.value, input.value, lambda t: self._heads(self.value, t)
        )
        query, seen = steps, mask
        if cache.output.value is not None:
            query = steps.narrow(2, steps.dims()[2] - 1, 1)
            if mask is not None and mask.dims()[2] > 1:
                seen = mask.narrow(2, mask.dims()[2] - 1, 1)
        mixed = self._mix(query, key, value, seen, self._noise(query))
        context = cache.output.append(self.output.forward(merge_heads(mixed)), 1)
        return MhaOutput(context, lambda: self._weigh(steps, key, mask, None))

    def _check(self, input: MhaInput) -> Tensor | None:
        """Refuse shapes that do not fit; both masks as one."""
        if self.d_model % self.n_heads:
            raise ConfigError(
                "attention",
                f"d_model {self.d_model} does not divide into {self.n_heads} heads",
                cure="n_heads that divides d_model",
            )
        d = self.d_model
        check_sequences(input.query, input.key, input.value, (d, d, d))
        return join_masks(input.query, input.key, input.pad, input.attn)

    def _heads(self, layer: Linear, x: Tensor) -> Tensor:
        return split_heads(layer.forward(x), self.n_heads)

    def _noise(self, query: Tensor) -> Key | None:
        """The random key of dropout; None outside of training."""
        drops = self.dropout.prob > 0.0 and self.dropout.is_training(query)
        return query.backend.next_key() if drops else None

    def _mix(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        noise: Key | None,
    ) -> Tensor:
        """softmax(q kᵀ / √d_k) v for all heads at once. [b, heads, s, d_k]"""
        drop = {} if noise is None else {"prob": self.dropout.prob, "noise": noise}
        return apply(
            attention,
            query,
            key,
            value,
            mask,
            scale=1 / math.sqrt(self.d_k),
            hidden=hidden_score(self.min_float, key),
            quiet=self.quiet_softmax,
            **drop,
        )

    def _weigh(
        self, query: Tensor, key: Tensor, mask: Tensor | None, noise: Key | None
    ) -> Tensor:
        """The weights alone, step by step. [b, heads, s, t]"""
        scores = query.matmul(key.transpose()) * (1 / math.sqrt(self.d_k))
        if noise is not None:
            scores = apply(dropout, scores, prob=self.dropout.prob, key=noise)
        if mask is not None:
            scores = scores.mask_fill(mask, hidden_score(self.min_float, scores))
        return quiet_softmax(scores, 3) if self.quiet_softmax else softmax(scores, 3)


holds_tensors(MhaInput, MhaOutput)
