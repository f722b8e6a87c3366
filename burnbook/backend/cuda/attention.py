"""CuPy kernels for attention: one pass between two products.

The products are cuBLAS's, for all heads at once. All that lies between them (scale,
masks, softmax) is one kernel that writes the shares of a query over its scores; the
gradient of it is another one.
"""

from typing import Any

import numpy as np

from burnbook.backend.cuda.random import draw_dropout
from burnbook.backend.cuda.source import (
    C_TYPES,
    NOTHING,
    ROWS,
    each_row,
    kernel,
    product,
    served,
)
from burnbook.ops.attention import attention
from burnbook.ops.random import CHANCES, dropout_limits
from burnbook.ops.reduce import sum_to

NONE, HIDES, ADDS = 0, 1, 2  # what a mask does

CODE = (
    ROWS
    + r"""
#if MASK == 1
#define MASK_TYPE unsigned char
#else
#define MASK_TYPE REAL
#endif
// A row is query number row % queries of head row / queries % heads of a batch.
#define MASK_LINE (mask + row / queries / heads * by_batch \
    + row / queries % heads * by_head + row % queries * by_query)
#define SEEN (causal ? row % queries + size - queries + 1 : size)

extern "C" __global__ void share_out(
    long long rows, long long size, REAL* scores, const MASK_TYPE* mask,
    long long queries, long long heads, long long by_batch, long long by_head,
    long long by_query, long long by_key, int causal, REAL scale, int quiet,
    REAL hidden, REAL lowest, REAL tiny
) {
    long long row = ROW;
    if (row >= rows) return;
    scores += row * size;
    mask = MASK_LINE;
    long long seen = SEEN;
    REAL peak = quiet ? 0 : lowest, total = 0;
    EACH(j) {
        REAL score = scores[j] * scale;
#if MASK == 1
        if (mask[j * by_key]) score = hidden;
#elif MASK == 2
        score += mask[j * by_key];
#endif
        if (j >= seen) score = hidden;
        scores[j] = score;
        peak = larger(peak, score);
    }
    peak = largest_of(peak);
    EACH(j) {
        REAL share = exp(scores[j] - peak);
        scores[j] = share;
        total += share;
    }
    total = total_of(total);
    if (quiet) total += exp(-peak);
    total = 1 / (total < tiny ? tiny : total);
    EACH(j) scores[j] *= total;
}
extern "C" __global__ void share_slopes(
    long long rows, long long size, const REAL* shares, REAL* slopes,
    const MASK_TYPE* mask, long long queries, long long heads, long long by_batch,
    long long by_head, long long by_query, long long by_key, int causal, REAL scale
) {
    long long row = ROW;
    if (row >= rows) return;
    shares += row * size, slopes += row * size;
    mask = MASK_LINE;
    long long seen = SEEN;
    REAL along = 0;
    EACH(j) along += shares[j] * slopes[j];
    along = total_of(along);
    EACH(j) {
        REAL slope = shares[j] * (slopes[j] - along) * scale;
#if MASK == 1
        if (mask[j * by_key]) slope = 0;
#endif
        slopes[j] = j < seen ? slope : 0;
    }
}
"""
)


@kernel(attention)
def attend(
    xp,
    query,
    key,
    value,
    mask=None,
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
    """attention, with one pass over the scores; also gives the shares.

    Shapes: query [..., d], key [..., t, d], value [..., t, e], mask [...] -> [..., e]
    """
    if softcap is not None or not _fits(prob, mask, query, key, value):
        return None
    scores = product(xp, query, key.swapaxes(-1, -2))
    if prob and not drop_weights:
        scores = draw_dropout(xp, scores, prob=prob, key=noise)
    real, limits = scores.dtype.type, np.finfo(scores.dtype)
    numbers = (np.int32(causal), real(scale), np.int32(quiet), real(hidden))
    numbers += (limits.min, limits.tiny)
    args = (scores, *_mask_lines(xp, mask, scores.shape), *numbers)
    each_row(xp, CODE, "share_out", _rows(scores), args, **_words(scores, mask))
    mixed = scores
    if prob and drop_weights:
        mixed = draw_dropout(xp, scores, prob=prob, key=noise)
    return xp.matmul(mixed, value), scores


@kernel(attention.backward)
def attention_slopes(
    xp,
    g,
    query,
    key,
    value,
    mask,
    weights,
    *,
    needs,
    scale,
    hidden,
    causal,
    quiet,
    softcap,
    prob,
    noise,
    drop_weights,
):
    """The gradients of attention, with one pass over those of the scores."""
    fits = _fits(prob, mask, g, query, key, value, weights)
    if softcap is not None or weights is None or not fits:
        return None
    slope, mixed = product(xp, g, value.swapaxes(-1, -2)), weights
    if prob and drop_weights:
        mixed = draw_dropout(xp, weights, prob=prob, key=noise)
        slope = draw_dropout(xp, slope, prob=prob, key=noise)
    to_mask, asked = None, mask is not None and needs[3]
    real = slope.dtype.type
    lines = _mask_lines(xp, mask, slope.shape)
    args = (xp.ascontiguousarray(weights), slope, *lines)
    numbers = (np.int32(causal), real(1 if asked else scale))
    words = _words(slope, mask)
    each_row(xp, CODE, "share_slopes", _rows(slope), (*args, *numbers), **words)
    if mask is not None and asked:
        to_mask = sum_to(xp, slope, shape=mask.shape)
        slope *= real(scale)
    if prob and not drop_weights:
        slope = draw_dropout(xp, slope, prob=prob, key=noise)
    return (
        xp.matmul(slope, key) if needs[0] else None,
        xp.matmul(slope.swapaxes(-1, -2), query) if needs[1] else None,
        xp.matmul(mixed.swapaxes(-1, -2), g) if needs[2] else None,
        to_mask,
    )


def _fits(prob: float, mask: Any, *arrays: Any) -> bool:
    """Whether the kernels serve these."""
    if mask is not None and mask.dtype.kind != "b":
        arrays += (mask,)
    drops = dropout_limits(prob)[0] == CHANCES
    return served(*arrays) and all(a is None or a.size for a in arrays) and not drops


def _rows(scores: Any) -> tuple[int, int]:
    return scores.size // scores.shape[-1], scores.shape[-1]


def _mask_lines(xp: Any, mask: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The mask, the queries and heads, and how far to step in it along each dim."""
    sizes = (np.int64(shape[2]), np.int64(shape[1]))
    if mask is None:
        return (NOTHING, *sizes, *[np.int64(0)] * 4)
    mask = xp.ascontiguousarray(mask)
    steps = [
        np.int64(step // mask.dtype.itemsize if size > 1 else 0)
        for step, size in zip(mask.strides, mask.shape, strict=True)
    ]
    return (mask, *sizes, *steps)


def _words(scores: Any, mask: Any) -> dict[str, Any]:
    does = NONE if mask is None else HIDES if mask.dtype.kind == "b" else ADDS
    return {"REAL": C_TYPES[scores.dtype.char], "MASK": does}
