"""CrossAttention: queries of one sequence attend to another, which may be wider.

Several heads of queries may share one head of keys and values, which saves computation
and memory: grouped-query attention, or multi-query attention if all share one head.
"""

import math

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.core.errors import ConfigError
from burnbook.module import Module
from burnbook.nn.attention.heads import (
    check_sequences,
    hidden_score,
    join_masks,
    merge_heads,
    repeat_heads,
    split_heads,
)
from burnbook.nn.cache import TensorCache
from burnbook.nn.dropout import Dropout, DropoutConfig
from burnbook.nn.initializer import Initializer
from burnbook.nn.linear import Linear, LinearConfig
from burnbook.nn.shared import at_least
from burnbook.ops.attention import attention
from burnbook.tensor import Tensor, apply


class CrossAttentionConfig(Config):
    """How to make a CrossAttention: widths, numbers of heads, width of a head.

    d_model: width of the queries and of the output, at least 1.
    d_context: width of the context, from which keys and values are made, at least 1.
    n_heads: how many heads of queries, at least 1.
    n_heads_kv: how many heads of keys and values; it divides n_heads.
    d_head: width of one head, at least 1.
    dropout: with which probability attention weights are dropped in training, in [0, 1]
        (default 0.1).
    min_float: the score of masked positions (default -10000.0); of -10000 and less it
        is far below every other score, so that what is masked is never seen.
    quiet_softmax: whether softmax has 1 more in its denominator, so that a head may
        attend to nothing (default False).
    """

    d_model: int
    d_context: int
    n_heads: int
    n_heads_kv: int
    d_head: int
    dropout: float = 0.1
    min_float: float = -1.0e4
    quiet_softmax: bool = False

    def validate(self) -> None:
        """Refuse sizes below 1, and an n_heads_kv that does not divide n_heads."""
        at_least(self, 1, "d_model", "d_context", "n_heads", "n_heads_kv", "d_head")
        if self.n_heads % self.n_heads_kv:
            raise ConfigError(
                "CrossAttentionConfig",
                f"{self.n_heads} heads of queries cannot share {self.n_heads_kv} heads "
                "of keys evenly",
                cure="n_heads_kv that divides n_heads",
            )

    def init(self, device: Backend) -> "CrossAttention":
        """The layer on a device; its numbers are drawn at the first use."""
        gain = 1 / math.sqrt(self.d_head)
        rule = Initializer.KaimingUniform(gain=gain, fan_out_only=False)

        def linear(inputs: int, outputs: int) -> Linear:
            return LinearConfig(inputs, outputs).with_initializer(rule).init(device)

        d_query, d_key = self.n_heads * self.d_head, self.n_heads_kv * self.d_head
        return CrossAttention(
            linear(self.d_model, d_query),
            linear(self.d_context, d_key),
            linear(self.d_context, d_key),
            linear(d_query, self.d_model),
            DropoutConfig(self.dropout).init(),
            self.n_heads,
            self.n_heads_kv,
            self.d_head,
            1 / math.sqrt(self.d_head),
            self.min_float,
            self.quiet_softmax,
        )


class CrossAttentionCache:
    """The keys and values of a context that does not change between calls."""

    __slots__ = ("k", "v")

    def __init__(self) -> None:
        self.k, self.v = TensorCache.empty(), TensorCache.empty()

    @classmethod
    def new(cls) -> "CrossAttentionCache":
        """An empty cache."""
        return cls()

    def __repr__(self) -> str:
        return f"CrossAttentionCache({self.k!r})"


class CrossAttention(Module):
    """Attention from a query sequence to a context: averages of the context's values.

    Shapes: query [b, s, d_model], context [b, t, d_context] -> [b, s, d_model]
    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> layer = CrossAttentionConfig(8, 6, 4, 2, 3).init(Numpy())
        >>> query, context = Tensor.ones([1, 2, 8]), Tensor.ones([1, 5, 6])
        >>> layer.forward(query, context).shape
        (1, 2, 8)

    Source: Ainslie and others, "GQA", 2023 (arXiv 2305.13245).
    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    dropout: Dropout
    n_heads: int
    n_heads_kv: int
    d_head: int
    scale: float
    min_float: float
    quiet_softmax: bool

    def forward(
        self, query: Tensor, context: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Attend to the context, except where mask [b, t] is True."""
        hidden = self._check(query, context, mask)
        key = split_heads(self.key.forward(context), self.n_heads_kv)
        value = split_heads(self.value.forward(context), self.n_heads_kv)
        return self._attend(query, key, value, hidden)

    def forward_cache(
        self,
        query: Tensor,
        context: Tensor,
        mask: Tensor | None,
        cache: CrossAttentionCache,
    ) -> Tensor:
        """The same with the cached keys and values of the cache's first context."""
        hidden = self._check(query, context, mask)
        key = cache.k.forward_full(
            context, lambda t: split_heads(self.key.forward(t), self.n_heads_kv)
        )
        value = cache.v.forward_full(
            context, lambda t: split_heads(self.value.forward(t), self.n_heads_kv)
        )
        return self._attend(query, key, value, hidden)

    def _check(
        self, query: Tensor, context: Tensor, mask: Tensor | None
    ) -> Tensor | None:
        """Refuse shapes that do not fit; the mask for all heads and queries."""
        d_model, d_context = self.query.weight.shape[0], self.key.weight.shape[0]
        widths = (d_model, d_context, d_context)
        check_sequences(query, context, context, widths)
        return join_masks(query, context, mask, None)

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> Tensor:
        times = self.n_heads // self.n_heads_kv
        drop = {}
        if self.dropout.prob > 0.0 and self.dropout.is_training(query):
            drop = {"prob": self.dropout.prob, "noise": query.backend.next_key()}
        mixed = apply(
            attention,
            split_heads(self.query.forward(query), self.n_heads),
            repeat_heads(key, times),
            repeat_heads(value, times),
            mask,
            scale=self.scale,
            hidden=hidden_score(self.min_float, key),
            quiet=self.quiet_softmax,
            drop_weights=True,
            **drop,
        )
        return self.output.forward(merge_heads(mixed))
