"""Attention in the forms that ONNX Runtime has for language models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burnbook import ops
from burnbook.core.errors import ArgumentError
from burnbook.importers.onnx.operators.elementwise import add
from burnbook.importers.onnx.operators.indexing import gather
from burnbook.importers.onnx.operators.joining import concat, narrow
from burnbook.importers.onnx.operators.products import mat_mul
from burnbook.importers.onnx.operators.registry import operator
from burnbook.importers.onnx.values import Value, as_array, as_tensor, ints, reshape
from burnbook.tensor import Tensor, activation
from burnbook.tensor.methods import apply

DOMAIN = "com.microsoft"
FILTER = -10000.0  # what is added where a mask hides
LOWEST = float(np.finfo(np.float32).min)  # where what comes later hides itself


def _axes(x: Tensor, *axes: int) -> Tensor:
    return apply(ops.permute, x, axes=axes)


def _size(x: Tensor, dim: int) -> int:
    return int(x.value.shape[dim])


def by_heads(x: Tensor, heads: int) -> Tensor:
    """[b, s, heads · d] -> [b, heads, s, d]."""
    batch, length, width = x.value.shape
    return _axes(reshape(x, (batch, length, heads, width // heads)), 0, 2, 1, 3)


def _joined(x: Tensor) -> Tensor:
    """[b, heads, s, d] -> [b, s, heads · d]."""
    batch, heads, length, width = x.value.shape
    return reshape(_axes(x, 0, 2, 1, 3), (batch, length, heads * width))


def _scores(q: Tensor, k: Tensor, scale: float | None) -> Tensor:
    """q kᵀ times scale, which is 1/√d where none is said."""
    scale = scale or _size(q, 3) ** -0.5
    return mat_mul(q, _axes(k, 0, 1, 3, 2)) * scale


def _later(rows: int, columns: int, begin: int, window: int = -1) -> Any:
    """The lowest number where a column comes after its row, or long before it.

    begin: the column of the first row.
    """
    at = np.arange(columns)[None, :] - np.arange(rows)[:, None] - begin
    hidden = at > 0 if window < 0 else (at > 0) | (at <= -window)
    return np.where(hidden, np.float32(LOWEST), np.float32(0))[None, None]


def _padding(mask: Value, batch: int, total: int, filtered: float) -> Any:
    """What a mask adds to the scores: [b, 1, 1 or s, total]."""
    mask = as_array(mask)
    places = np.arange(total)[None, :]
    if mask.ndim == 1:
        if mask.shape[0] == 3 * batch + 2:  # of lengths, and of where rows begin
            mask = mask[:batch]
        kept = places < mask[:batch].reshape(-1, 1)
        if mask.shape[0] == 2 * batch:
            kept = kept & (places >= mask[batch:].reshape(-1, 1))
        mask = kept
    else:
        mask = mask > 0
    if mask.ndim == 4:
        raise ArgumentError("onnx Attention", "a mask of 4 dims is not known here")
    hidden = (~mask).astype(np.float32) * np.float32(filtered)
    shape = tuple(hidden.shape)
    middle = (1, 1) if len(shape) == 2 else (1, shape[1])
    return hidden.reshape((shape[0], *middle, shape[-1]))


def _attended(scores: Tensor, v: Tensor, *masks: Value) -> Tensor:
    for mask in masks:
        if mask is not None:
            scores = add(scores, as_tensor(mask, scores.backend))
    return mat_mul(activation.softmax(scores, 3), v)


def _rotated(x: Tensor, cos: Tensor, sin: Tensor, interleaved: int) -> Tensor:
    """Pairs of numbers turned by an angle that grows with the position.

    Shapes: x [b, heads, s, d]; cos, sin [b or 1, 1, s, half of what is turned]
    """
    half = _size(cos, 3)
    turned, rest = 2 * half, _size(x, 3) - 2 * half
    part = narrow(x, 3, 0, turned) if rest else x
    sizes = tuple(part.value.shape)
    if interleaved:
        pairs = reshape(part, (*sizes[:3], half, 2))
        first, second = (
            reshape(narrow(pairs, 4, k, 1), (*sizes[:3], half)) for k in (0, 1)
        )
    else:
        first, second = narrow(part, 3, 0, half), narrow(part, 3, half, half)
    real, imag = first * cos - second * sin, first * sin + second * cos
    if interleaved:
        shape = (*sizes[:3], half, 1)
        both = [reshape(real, shape), reshape(imag, shape)]
        made = reshape(concat(*both, axis=4), sizes)
    else:
        made = concat(real, imag, axis=3)
    return concat(made, narrow(x, 3, turned, rest), axis=3) if rest else made


def _angles(cache: Tensor, places: Value) -> Tensor:
    """The rows of a cache for positions [b, s]: [b, 1, s, half]."""
    found = gather(cache, places, axis=0)
    batch, length, half = found.value.shape
    return reshape(found, (batch, 1, length, half))


@operator("RotaryEmbedding", domain=DOMAIN)
def rotary_embedding_of_runtime(
    x: Tensor,
    position_ids: Value,
    cos_cache: Tensor,
    sin_cache: Tensor,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Tensor:
    """Queries or keys turned by their positions: [b, s, h · d] or [b, h, s, d]."""
    rank = len(x.value.shape)
    width = 2 * _size(cos_cache, 1)
    if rank == 3:
        heads = num_heads or _size(x, 2) // width
        wide = by_heads(x, heads)
    else:
        wide = x
    places = as_array(position_ids)
    if places.ndim < 2:
        places = places.reshape(1, 1) + np.arange(_size(wide, 2))[None, :]
    cos, sin = _angles(cos_cache, places), _angles(sin_cache, places)
    found = _rotated(wide, cos, sin, interleaved)
    return _joined(found) if rank == 3 else found


@operator("Attention", domain=DOMAIN, many=True)
def attention(
    x: Tensor,
    weights: Tensor,
    bias: Tensor | None = None,
    mask_index: Value = None,
    past: Tensor | None = None,
    attention_bias: Tensor | None = None,
    past_sequence_length: Value = None,
    *,
    num_heads: int,
    unidirectional: int = 0,
    qkv_hidden_sizes: Sequence[int] = (),
    scale: float | None = None,
    mask_filter_value: float = FILTER,
    do_rotary: int = 0,
    rotary_embedding_dim: int = 0,
    past_present_share_buffer: int = 0,
    outputs: int = 1,
) -> tuple[Any, ...]:
    """softmax(q kᵀ / √d + mask) v of q, k, v = x W + b; and all keys and values."""
    if do_rotary or past_present_share_buffer:
        what = "do_rotary and a shared buffer are not known here"
        raise ArgumentError("onnx Attention", what)
    rows = mat_mul(x, weights)
    rows = rows if bias is None else add(rows, bias)
    sizes = list(qkv_hidden_sizes) or [_size(rows, 2) // 3] * 3
    starts = [0, sizes[0], sizes[0] + sizes[1]]
    q, k, v = (
        by_heads(narrow(rows, 2, start, size), num_heads)
        for start, size in zip(starts, sizes, strict=True)
    )
    about = (mask_index, attention_bias, unidirectional, scale, mask_filter_value)
    return attend_parts((q, k, v), past, *about)


def attend_parts(
    parts: Sequence[Tensor],
    past: Tensor | None,
    mask: Value,
    bias: Value,
    causal: int,
    scale: float | None,
    filtered: float,
) -> tuple[Any, ...]:
    """Attention of q, k, v, and k, v with those before.

    Shapes: past, and the second result [2, b, heads, s, d]
    """
    q, k, v = parts
    if past is not None:
        before = [_first(past, i) for i in (0, 1)]
        k, v = concat(before[0], k, axis=2), concat(before[1], v, axis=2)
    total, length = _size(k, 2), _size(q, 2)
    masks: list[Value] = []
    if mask is not None:
        masks.append(_padding(mask, _size(q, 0), total, filtered))
    if causal:
        masks.append(_later(length, total, total - length))
    found = _attended(_scores(q, k, scale), v, *masks, bias)
    present: Value = None
    if _size(k, 3) == _size(v, 3):
        wide = [reshape(one, (1, *one.value.shape)) for one in (k, v)]
        present = concat(*wide, axis=0)
    return _joined(found), present


def _first(x: Tensor, place: int) -> Tensor:
    """One of what lies along the first dim."""
    return reshape(narrow(x, 0, place, 1), tuple(x.value.shape)[1:])


@operator("MultiHeadAttention", domain=DOMAIN, many=True)
def multi_head_attention(
    query: Tensor,
    key: Tensor | None = None,
    value: Tensor | None = None,
    bias: Tensor | None = None,
    key_padding_mask: Value = None,
    attention_bias: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    past_sequence_length: Value = None,
    cache_indirection: Value = None,
    *,
    num_heads: int,
    mask_filter_value: float = FILTER,
    scale: float | None = None,
    unidirectional: int = 0,
    outputs: int = 1,
) -> tuple[Any, ...]:
    """softmax(q kᵀ / √d + mask) v; and all keys and values."""
    q, k, v = _separate(query, key, value, bias, num_heads)
    if past_key is not None and past_value is not None:
        k, v = concat(past_key, k, axis=2), concat(past_value, v, axis=2)
    total, length = _size(k, 2), _size(q, 2)
    masks: list[Value] = []
    if key_padding_mask is not None:
        batch = _size(q, 0)
        masks.append(_padding(key_padding_mask, batch, total, mask_filter_value))
    if unidirectional:
        masks.append(_later(length, total, total - length))
    scores = _scores(q, k, scale)
    found = _joined(_attended(scores, v, *masks, attention_bias))
    return found, k, v, scores


def _separate(
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    bias: Tensor | None,
    heads: int,
) -> list[Tensor]:
    """q, k, v as [b, heads, s, d], of any of the packings, with their biases."""
    parts: list[Tensor] = []
    if key is None:  # [b, s, heads, 3, d]
        parts = [_packed(query, k) for k in range(3)]
    elif value is None:  # the keys and values: [b, s, heads, 2, d]
        parts = [query, _packed(key, 0), _packed(key, 1)]
    else:
        parts = [query, key, value]
    if bias is not None:
        sizes = [
            _size(p, 2) if len(p.value.shape) == 3 else _size(p, 1) * _size(p, 3)
            for p in parts
        ]
        starts = np.cumsum([0, *sizes]).tolist()
        for k, part in enumerate(parts):
            line = narrow(bias, 0, starts[k], sizes[k])
            if len(part.value.shape) == 4:  # [b, heads, s, d]
                line = reshape(line, (_size(part, 1), 1, _size(part, 3)))
            parts[k] = add(part, line)
    return [by_heads(p, heads) if len(p.value.shape) == 3 else p for p in parts]


def _packed(x: Tensor, place: int) -> Tensor:
    """One of n in the last dim but one: [b, s, heads, n, d] -> [b, s, heads · d]."""
    batch, length, heads, _, width = x.value.shape
    return reshape(narrow(x, 3, place, 1), (batch, length, heads * width))


@operator("GroupQueryAttention", domain=DOMAIN, many=True)
def group_query_attention(
    query: Tensor,
    key: Tensor | None = None,
    value: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    seqlens_k: Value = None,
    total_sequence_length: Value = None,
    cos_cache: Tensor | None = None,
    sin_cache: Tensor | None = None,
    position_ids: Value = None,
    attention_bias: Tensor | None = None,
    head_sink: Tensor | None = None,
    *,
    num_heads: int,
    kv_num_heads: int,
    scale: float | None = None,
    do_rotary: int = 0,
    rotary_interleaved: int = 0,
    local_window_size: int = -1,
    softcap: float = 0.0,
    smooth_softmax: int = 0,
    outputs: int = 1,
) -> tuple[Any, ...]:
    """Causal attention where several heads of queries share one of keys and values.

    seqlens_k: how many keys each example has in all, less one.
    """
    if smooth_softmax == 1 or head_sink is not None:
        what = "smooth_softmax and head_sink are not known here"
        raise ArgumentError("onnx GroupQueryAttention", what)
    parts = _grouped(query, key, value, num_heads, kv_num_heads)
    ends = [n + 1 for n in ints(seqlens_k)]
    room = max([int(as_array(total_sequence_length).reshape(-1)[0]), *ends])
    room = room if past_key is None else max(room, _size(past_key, 2))
    turn = None
    if do_rotary and cos_cache is not None and sin_cache is not None:
        turn = cos_cache, sin_cache, position_ids, rotary_interleaved
    rows: list[tuple[Tensor, ...]] = []
    for i, end in enumerate(ends):
        begin = max(0, end - _size(query, 1))  # so many keys were there before
        q, k, v = _turned([narrow(x, 0, i, 1) for x in parts], turn, i, begin)
        if begin and past_key is not None and past_value is not None:
            held = [narrow(p, 0, i, 1) for p in (past_key, past_value)]
            held = [narrow(p, 2, 0, begin) for p in held]
            k, v = (
                concat(old, new, axis=2) for old, new in zip(held, (k, v), strict=True)
            )
        else:  # what comes after its end is padding
            k, v = (narrow(x, 2, 0, min(end, _size(x, 2))) for x in (k, v))
        bias = _bias_of(attention_bias, i, _size(k, 2))
        about = (bias, scale, softcap, local_window_size, begin)
        made = _of_group(q, k, v, *about)
        rows.append((made, _lengthened(k, room), _lengthened(v, room)))
    found = [concat(*row, axis=0) for row in zip(*rows, strict=True)]
    return _joined(found[0]), found[1], found[2]


def _turned(
    parts: list[Tensor], turn: tuple[Any, ...] | None, example: int, begin: int
) -> list[Tensor]:
    """q, k, v of an example, the first two turned by their positions."""
    if turn is None:
        return parts
    cos_cache, sin_cache, positions, interleaved = turn
    places = np.arange(_size(parts[0], 2))[None, :] + begin
    if positions is not None:
        places = as_array(positions)[example : example + 1]
    cos, sin = _angles(cos_cache, places), _angles(sin_cache, places)
    turned = [_rotated(x, cos, sin, interleaved) for x in parts[:2]]
    return [*turned, parts[2]]


def _bias_of(bias: Tensor | None, example: int, length: int) -> Tensor | None:
    """What is added to the scores of an example."""
    if bias is None:
        return None
    one = narrow(bias, 0, example if _size(bias, 0) > 1 else 0, 1)
    return narrow(one, 3, 0, length)


def _grouped(
    query: Tensor, key: Tensor | None, value: Tensor | None, heads: int, shared: int
) -> list[Tensor]:
    """q [b, heads, s, d], and k, v [b, shared, s, d]."""
    if key is not None and value is not None:
        return [by_heads(query, heads), by_heads(key, shared), by_heads(value, shared)]
    width = _size(query, 2) // (heads + 2 * shared)
    starts = [0, heads * width, (heads + shared) * width]
    counts = [heads, shared, shared]
    return [
        by_heads(narrow(query, 2, start, count * width), count)
        for start, count in zip(starts, counts, strict=True)
    ]


def _of_group(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    scale: float | None,
    softcap: float,
    window: int,
    begin: int,
) -> Tensor:
    """Attention of one example; row r stands at begin + r."""
    heads, shared = _size(q, 1), _size(k, 1)
    if heads > shared:
        k, v = (_repeated(x, heads // shared) for x in (k, v))
    scores = _scores(q, k, scale)
    if softcap:
        scores = activation.tanh(scores * (1 / softcap)) * softcap
    mask = _later(_size(q, 2), _size(k, 2), begin, window)
    return _attended(scores, v, bias, mask)


def _repeated(x: Tensor, times: int) -> Tensor:
    """Each head so often: [b, h, s, d] -> [b, h · times, s, d]."""
    batch, heads, length, width = x.value.shape
    wide = reshape(x, (batch, heads, 1, length, width))
    wide = apply(ops.expand, wide, shape=(batch, heads, times, length, width))
    return reshape(wide, (batch, heads * times, length, width))


def _lengthened(x: Tensor, length: int) -> Tensor:
    """With zeros behind, as the buffer of keys is as long as the longest example."""
    more = length - _size(x, 2)
    if more <= 0:
        return x
    return apply(ops.pad, x, widths=((0, 0), (0, 0), (0, more), (0, 0)), value=0.0)
