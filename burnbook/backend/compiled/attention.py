"""Attention, some queries at a time, without leaving the cache.

The scores of a block of queries stay in the second cache: they become weights there and
are used up. So the weights, the largest tensor of all, are never written to memory; the
gradient computes them again. Heads are read and written where they stand, side by side
in the columns of a sequence.

Measured by W3 and the family attention, of tests/bench.
"""

from typing import Any, NamedTuple

import numpy as np

from burnbook.backend.compiled.dropout import draw
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.gemm import (
    ROWS,
    WIDTH,
    lay_panels,
    lay_transposed,
    multiply,
    whole,
)
from burnbook.backend.compiled.runtime.jit import (
    f32,
    inlined_part,
    kernel_code,
    part,
)
from burnbook.backend.compiled.runtime.registry import F32, kernel
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.compiled.runtime.vector_rows import (
    exp_and_sum,
    exp_below,
    largest,
)
from burnbook.backend.kernels import defaults_of, needed
from burnbook.ops.attention import attention
from burnbook.ops.random import dropout_limits

TILE = 1 << 13  # scores of a block
LEAST = f32(np.finfo(np.float32).min)
TINY = f32(np.finfo(np.float32).tiny)
EARLY, LATE = 1, 2  # what is dropped: scores or weights


@part
def lay_rows(x, h, scale, out):
    """out[:, 0] = x[:, h] · scale."""
    for i in range(x.shape[0]):
        row, line = x[i, h], out[i, 0]
        for q in range(row.size):
            line[q] = row[q] * scale


@part
def store_rows(x, scale, out, h):
    """out[:, h] = x · scale, for all rows of out."""
    for i in range(out.shape[0]):
        row, line = x[i], out[i, h]
        for q in range(line.size):
            line[q] = row[q] * scale


@inlined_part
def mask_row(held, first, i):
    """The row of a mask for query first + i; a mask of one row serves all."""
    return held[first + i] if held.shape[0] > 1 else held[0]


@part
def words_for(count):
    """How many words hold the bits of so many elements, wherever the first one is."""
    return (count + 32) // 16 * 4


@part
def draw_bits(words, noise, at, count):
    """Draw the bits of some elements; gives where in `words` the first one stands."""
    draw(words[: whole(at % 16 + count, 16) // 4], np.uint64(at // 16 + 1), *noise)
    return at % 16


@part
def drop(row, bits, threshold, scale):
    """The product with 0 or scale; not a choice, so that NaN stays NaN."""
    for c in range(row.size):
        row[c] *= scale if bits[c] >= threshold else f32(0)


@part
def fill_masked(row, mask, by):
    for c in range(row.size):
        row[c] = by if mask[c] else row[c]


@part
def softmax_row(row, seen, quiet):
    """Scores become weights; what lies beyond those that are seen gets none."""
    for c in range(seen, row.size):
        row[c] = -np.inf
    peak = largest(row)
    if peak < LEAST:
        peak = LEAST
    if quiet and peak < f32(0):
        peak = f32(0)
    total = exp_and_sum(row, peak)
    if quiet:
        total += exp_below(-peak)
    share = f32(1) / (TINY if total < TINY else total)
    for c in range(row.size):
        row[c] *= share


@part
def softmax_gradient(row, weights):
    """Slopes of weights become slopes of scores: P (x − Σ P x)."""
    along = f32(0)
    for c in range(row.size):
        along += weights[c] * row[c]
    for c in range(row.size):
        row[c] = (row[c] - along) * weights[c]


@part
def add(row, bias):
    for c in range(row.size):
        row[c] += bias[c]


@inlined_part
def of_head(held, plane, heads):
    """The mask of one head of one batch; dims of size 1 serve all."""
    return held[plane // heads % held.shape[0], plane % heads % held.shape[1]]


@part
def visible_keys(edge, hidden, last, keys):
    """How many keys at least one of the queries before `last` can see."""
    if hidden != -np.inf:
        return keys  # what is hidden may still get a share
    return max(min(edge + last - 1, keys), 0)


@part
def scores_to_weights(scores, seen, masks, bits, t, first, how):
    """The scores of some queries become weights; `seen` keys are in sight of them."""
    _, hidden, edge, quiet, dropped, threshold, keep = how
    mask, bias = masks
    for i in range(scores.shape[0]):
        row, size = scores[i, : whole(seen, WIDTH)], seen
        if dropped == EARLY:
            drop(row[:seen], bits[i * t :], threshold, keep)
        if bias.shape[0]:
            add(row[:seen], mask_row(bias, first, i))
        if mask.shape[0]:
            fill_masked(row[:seen], mask_row(mask, first, i), hidden)
        limit = max(edge + first + i, 0)
        if limit < seen:
            if hidden == -np.inf:
                size = limit
            else:
                row[limit:seen] = hidden
        softmax_row(row, size, quiet)


@part
def weights_gradient(slopes, weights, seen, mask, bits, t, first, how):
    """The slopes of weights become those of scores; dropped weights become 0."""
    _, _, edge, _, dropped, threshold, keep = how
    across = whole(seen, WIDTH)
    for i in range(weights.shape[0]):
        row, shares = slopes[i, :across], weights[i, :across]
        if dropped == LATE:
            drop(row[:seen], bits[i * t :], threshold, keep)
        softmax_gradient(row, shares)
        if mask.shape[0]:
            fill_masked(row[:seen], mask_row(mask, first, i), f32(0))
        limit = max(edge + first + i, 0)
        if limit < seen:
            row[limit:seen] = f32(0)
        if dropped:
            late = shares if dropped == LATE else row
            drop(late[:seen], bits[i * t :], threshold, keep)


FOUR = "f4[:,:,:,::1]"
TOLD = (
    f"u1[:,:,:,::1], {FOUR}, Tuple((f4, f4, i8, b1, i8, u2, f4)), UniTuple(u8, 2), "
    "i8, i8, i8, i8"
)


@kernel_code(f"void({FOUR}, {FOUR}, {FOUR}, {FOUR}, {TOLD})")
def attend(query, key, value, out, mask, bias, how, noise, heads, block, start, stop):
    """Attention for some blocks of queries, counted through all heads.

    The tensors are [n, s, heads, d], or [n · heads, s, 1, d] where a head has rows of
    its own; heads is the number of those of the mask.
    """
    _, s, among, d = query.shape
    t, e = value.shape[1], value.shape[3]
    cols, wide = whole(t, WIDTH), whole(e, WIDTH)
    keys, values = np.empty(d * cols, f32), np.empty(t * wide, f32)
    queries, scores = np.zeros((block, 1, d), f32), np.zeros((block, cols), f32)
    made = np.empty((block, wide), f32)
    words = np.empty(words_for(block * t) if how[4] else 4, np.uint64)
    blocks, before = (s + block - 1) // block, -1
    for item in range(start, stop):
        plane, first = item // blocks, item % blocks * block
        n, h = plane // among, plane % among
        if plane != before:
            lay_transposed(key[n], h, keys)
            lay_panels(value[n], h, values)
            before = plane
        last = min(first + block, s)
        seen, used = visible_keys(how[2], how[1], last, t), last - first
        lay_rows(query[n, first:last], h, how[0], queries)
        multiply(queries, False, keys, d, d, scores, whole(seen, WIDTH), False)
        bits = words.view(np.uint16)
        if how[4]:
            bits = bits[draw_bits(words, noise, (plane * s + first) * t, used * t) :]
        masks = of_head(mask, plane, heads), of_head(bias, plane, heads)
        scores_to_weights(scores[:used], seen, masks, bits, t, first, how)
        if how[4] == LATE:
            for i in range(used):
                drop(scores[i, :seen], bits[i * t :], how[5], how[6])
        multiply(scores, False, values, t, seen, made, wide, False)
        store_rows(made, f32(1), out[n, first:last], h)


@kernel_code(f"void({', '.join([FOUR] * 7)}, {TOLD})")
def attend_back(
    g,
    query,
    key,
    value,
    to_query,
    to_key,
    to_value,
    mask,
    bias,
    how,
    noise,
    heads,
    block,
    start,
    stop,
):
    """The gradients of attention, for some heads."""
    _, s, among, d = query.shape
    t, e = value.shape[1], value.shape[3]
    cols, wide, broad = whole(t, WIDTH), whole(e, WIDTH), whole(d, WIDTH)
    keys, transposed_keys = np.empty(t * broad, f32), np.empty(d * cols, f32)
    values, panels = np.empty(e * cols, f32), np.empty(block * max(wide, broad), f32)
    queries, slopes = np.zeros((block, 1, d), f32), np.zeros((block, 1, e), f32)
    weights, score_slopes = np.zeros((block, cols), f32), np.zeros((block, cols), f32)
    made = np.empty((block, broad), f32)
    made_key, made_value = np.empty((cols, broad), f32), np.empty((cols, wide), f32)
    words = np.empty(words_for(block * t) if how[4] else 4, np.uint64)
    for plane in range(start, stop):
        n, h = plane // among, plane % among
        lay_panels(key[n], h, keys)
        lay_transposed(key[n], h, transposed_keys)
        lay_transposed(value[n], h, values)
        made_key[:], made_value[:] = f32(0), f32(0)
        masks = of_head(mask, plane, heads), of_head(bias, plane, heads)
        for first in range(0, s, block):
            last = min(first + block, s)
            seen, used = visible_keys(how[2], how[1], last, t), last - first
            across = whole(seen, WIDTH)
            lay_rows(query[n, first:last], h, how[0], queries)
            lay_rows(g[n, first:last], h, f32(1), slopes)
            bits = words.view(np.uint16)
            if how[4]:
                bits = bits[
                    draw_bits(words, noise, (plane * s + first) * t, used * t) :
                ]
            multiply(queries, False, transposed_keys, d, d, weights, across, False)
            scores_to_weights(weights[:used], seen, masks, bits, t, first, how)
            multiply(slopes, False, values, e, e, score_slopes, across, False)
            weights_gradient(
                score_slopes[:used], weights[:used], seen, masks[0], bits, t, first, how
            )
            lay_panels(slopes[:used], 0, panels)
            multiply(weights, True, panels, used, used, made_value[:across], wide, True)
            lay_panels(queries[:used], 0, panels)
            multiply(
                score_slopes, True, panels, used, used, made_key[:across], broad, True
            )
            multiply(score_slopes, False, keys, t, seen, made, broad, False)
            store_rows(made, how[0], to_query[n, first:last], h)
        store_rows(made_key, f32(1), to_key[n], h)
        store_rows(made_value, f32(1), to_value[n], h)


class Plan(NamedTuple):
    """What both kernels are told beside the tensors."""

    tensors: tuple[Any, ...]  # by position, not by head
    masks: tuple[Any, Any]
    how: tuple[Any, ...]
    noise: tuple[Any, Any]
    sizes: tuple[int, int]  # heads of the mask, queries of a block
    apart: bool  # whether each head has rows of its own

    def empty(self, n: int, h: int, s: int, d: int) -> Any:
        """Memory for a result, laid out as the tensors are."""
        return empty((n * h, s, 1, d) if self.apart else (n, s, h, d))

    def by_head(self, x: Any, h: int) -> Any:
        """A result as the op gives it, [n, h, s, d]; no copy."""
        if self.apart:
            return x.reshape(-1, h, x.shape[1], x.shape[3])
        return x.transpose(0, 2, 1, 3)


@defaults_of(attention)
def make_plan(
    tensors,
    mask,
    *,
    scale,
    hidden,
    causal,
    quiet,
    softcap,
    prob,
    noise,
    drop_weights,
):
    """The plan, or None where the kernels do not serve."""
    if softcap is not None or prob >= 1.0 or not all(map(_f32, tensors)):
        return None
    _, h, s, _ = tensors[-3].shape
    t = tensors[-1].shape[2]
    if not (s and t and tensors[-1].size and tensors[-3].size):
        return None
    apart = all(x.flags.c_contiguous for x in tensors)
    threshold, keep = dropout_limits(prob)
    how = (
        *(f32(scale), f32(hidden), t - s + 1 if causal else 1 << 40, quiet),
        *((LATE if drop_weights else EARLY) if prob else 0, np.uint16(threshold)),
        f32(keep),
    )
    block = max(ROWS, min(s, TILE // t))
    return Plan(
        tuple([_by_position(x, apart) for x in tensors]),
        _masks(mask, t),
        how,
        (np.uint64(noise[0]), np.uint64(noise[1])),
        (h, -(-block // ROWS) * ROWS),
        apart,
    )


def _f32(x: Any) -> bool:
    return type(x) is np.ndarray and x.dtype is F32 and x.flags.behaved


def _by_position(x: Any, apart: bool) -> Any:
    """[n, h, s, d] as [n, s, h, d], or as [n · h, s, 1, d] where that is its memory."""
    if apart:
        return x.reshape(-1, x.shape[2], 1, x.shape[3])
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3))


def _masks(mask: Any, t: int) -> tuple[Any, Any]:
    """The mask as one that hides or one that is added; dims that repeat have size 1."""
    if mask is None:
        return NO_MASK, NO_BIAS
    steps = mask.strides[:3]
    once = mask[tuple([slice(None) if step else slice(1) for step in steps])]
    full = np.require(np.broadcast_to(once, (*once.shape[:3], t)), None, "CW")
    if mask.dtype == bool:
        return full.view(np.uint8), NO_BIAS
    return NO_MASK, full


NO_MASK = np.empty((1, 1, 0, 0), np.uint8)
NO_BIAS = np.empty((1, 1, 0, 0), np.float32)


@kernel(attention)
def attention_kernel(query, key, value, mask=None, **attrs):
    plan = make_plan((query, key, value), mask, **attrs)
    if plan is None:
        return None
    n, h, s, _ = query.shape
    out = plan.empty(n, h, s, value.shape[3])
    args = (*plan.tensors, out, *plan.masks, plan.how, plan.noise, *plan.sizes)
    threads.run(attend, args, n * h * -(-s // plan.sizes[1]))
    return plan.by_head(out, h), None


@kernel(attention.backward)
def attention_backward(g, query, key, value, mask, weights, *, needs, **attrs):
    plan = make_plan((g, query, key, value), mask, **attrs)
    if plan is None or needs[3]:
        return None
    n, h, s, d = query.shape
    t, e = value.shape[2:]
    outs = plan.empty(n, h, s, d), plan.empty(n, h, t, d), plan.empty(n, h, t, e)
    args = (*plan.tensors, *outs, *plan.masks, plan.how, plan.noise, *plan.sizes)
    threads.run(attend_back, args, n * h)
    return *needed(tuple([plan.by_head(x, h) for x in outs]), needs), None
