"""Attention as a function, as in Burn's `tensor::module`."""

import math
from dataclasses import dataclass

import numpy as np

from burnbook.core.arrays import Shape
from burnbook.core.dtypes import Bool, Float
from burnbook.core.errors import GraphError, KindError
from burnbook.ops.attention import attention as attention_op, attention_fits
from burnbook.tensor import Tensor, apply
from burnbook.tensor.activation import softmax

SHORT = 1 << 12  # scores of a head


@dataclass(frozen=True)
class AttentionModuleOptions:
    """How scores become weights.

    scale: what scores are multiplied with, 1 / √d if not given. softcap: a score x
    becomes c tanh(x / c). is_causal: nobody sees what comes after; sequences of unequal
    length end at the same place, so that queries are the last ones. PyTorch's begin at
    the same place.
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
        raise no_bool_mask("attention", "mask", mask, "attn_bias=mask")
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


def no_bool_mask(
    where: str, name: str, mask: Tensor, added: str | None = None
) -> KindError:
    """The error for a mask of numbers: which numbers hide is told, not only the type.

    added: how a mask is given whose numbers are added to the scores.

    Why: 1 stands for a word in many libraries, and True hides here: `.bool()` would
    put all attention on the padding.
    """
    what = f"{name} must be Bool, it is {mask.kind.__name__}"
    facts = ["True hides a place; a mask that is 1 for what is seen is the opposite"]
    cure = (
        f"{name}.equal_elem(0) where 0 is padding, or {name}.not_equal_elem(0) where "
        "1 is padding"
    )
    if mask.kind is Float and _is_added(mask):
        facts = ["True hides a place; this mask is one that is added to the scores"]
        cure = f"{name}.lower_elem(0)" + (f", or {added}" if added else "")
    return KindError(where, what, facts, cure)


def _is_added(mask: Tensor) -> bool:
    """Whether a mask has numbers below zero, as one that is added to the scores."""
    try:
        return bool((np.asarray(mask) < 0).any())
    except GraphError:  # in a capture there are no values
        return False


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
