"""Attention as a function, as in Burn's `tensor::module`."""

import math
from dataclasses import dataclass

from burnbook.core.arrays import Shape
from burnbook.core.dtypes import Bool
from burnbook.core.errors import KindError
from burnbook.ops.attention import attention as attention_op, attention_fits
from burnbook.tensor import Tensor, apply
from burnbook.tensor.activation import softmax

SHORT = 1 << 12  # scores of a head


@dataclass(frozen=True)
class AttentionModuleOptions:
    """How scores become weights.

    scale: what scores are multiplied with, 1 / √d if not given. softcap: a score x
    becomes c tanh(x / c). is_causal: nobody sees what comes after.
    """

    scale: float | None = None
    softcap: float | None = None
    is_causal: bool = False


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    attn_bias: Tensor | None = None,
    options: AttentionModuleOptions | None = None,
) -> Tensor:
    """Mix values by what queries and keys have in common: softmax(q kᵀ scale) v.

    mask hides where it is True; attn_bias is added to the scores. A query from which
    all is hidden gets zeros.

    Shapes: query [b, h, s, d], key [b, h, t, d], value [b, h, t, e] -> [b, h, s, e];
        mask and attn_bias [b, h, s, t], or 1 in place of any size
    Example:
        >>> x = Tensor.from_data([[[[1.0, 0.0], [0.0, 1.0]]]])
        >>> first = AttentionModuleOptions(is_causal=True)
        >>> attention(x, x, x, options=first).narrow(2, 0, 1).to_data().to_list()
        [[[[1.0, 0.0]]]]
    """
    options = options or AttentionModuleOptions()
    scale = options.scale
    if scale is None:
        scale = 1 / math.sqrt(max(query.dims()[-1], 1))
    if mask is not None and mask.kind is not Bool:
        what = f"mask must be Bool, it is {mask.kind.__name__}"
        cure = "mask.bool(), or attn_bias=… for what is added"
        raise KindError("attention", what, cure=cure)
    shapes = [x.dims() for x in (query, key, value)]
    is_plain = mask is None and attn_bias is None and options.softcap is None
    if is_plain and not options.is_causal and _is_short(*shapes):
        weights = softmax((query * scale) @ key.swap_dims(2, 3), 3)
        return weights @ value
    if attn_bias is not None:
        mask = attn_bias if mask is None else _hidden(attn_bias, mask)
    return apply(
        attention_op,
        query,
        key,
        value,
        mask,
        scale=scale,
        causal=options.is_causal,
        softcap=options.softcap,
    )


def _is_short(query: Shape, key: Shape, value: Shape) -> bool:
    """Whether the parts of attention take less time than all of it at once.

    Why: at once, the weights are computed again for the gradient, and not kept. That
    saves memory where sequences are long; short ones are widened to vector registers.
    """
    fit = attention_fits(query, key, value, None, None) is None
    return fit and 0 < query[2] * key[2] <= SHORT


def _hidden(bias: Tensor, mask: Tensor) -> Tensor:
    """A bias that hides as well, by −∞; both stretch."""
    pairs = zip(bias.dims(), mask.dims(), strict=False)
    return bias.expand([max(pair) for pair in pairs]).mask_fill(mask, -math.inf)
