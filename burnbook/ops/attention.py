"""Attention: each query takes a mixture of the values.

How much of a value a query takes says the score between the query and the key of that
value; softmax turns the scores of a query into shares that add up to 1. What shall not
be seen is hidden before: its score becomes `hidden`, and its share nothing.
"""

import math
from functools import wraps
from typing import Any

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace, Shape
from burnbook.core.errors import ConfigError
from burnbook.core.op import normal, op, truths
from burnbook.ops.blocked import SHARED, on_threads
from burnbook.ops.random import Key, dropout
from burnbook.ops.reduce import sum_to
from burnbook.ops.softmax import softmax

HEADS = "[batch, heads, sequence, size]"


def attention_fits(
    query: Shape,
    key: Shape,
    value: Shape,
    mask: Shape | None,
    softcap: float | None,
) -> Any:
    """Why these do not go together, or None if they do."""
    for name, shape in (("query", query), ("key", key), ("value", value)):
        if len(shape) != 4:
            return f"{name} must be {HEADS}, it has {len(shape)} dims"
        if shape[:2] != query[:2]:
            return (
                f"{name} has {shape[0]} · {shape[1]} batches · heads, "
                f"query {query[0]} · {query[1]}"
            )
    if key[3] != query[3]:
        return f"{query[3]} ≠ {key[3]}: a query and a key must have the same size"
    if value[2] != key[2]:
        return f"{key[2]} ≠ {value[2]}: every key needs a value"
    if key[2] == 0:
        return "there is nothing to attend to"
    if softcap is not None and not softcap > 0:
        return ConfigError, f"softcap is {softcap}, it must be above 0"
    wanted = (*query[:3], key[2])
    if mask is not None and (
        len(mask) != 4
        or any(m not in (1, n) for m, n in zip(mask, wanted, strict=True))
    ):
        return f"the mask is {list(mask)}, the scores are {list(wanted)}"
    return None


def sample_by_sample(forward: Any) -> Any:
    """A decorator for `attention`: on all threads, what a sample makes in the cache."""

    @wraps(forward)
    def run(
        xp: ArrayNamespace,
        query: Array,
        key: Array,
        value: Array,
        mask: Array | None = None,
        **attrs: Any,
    ) -> Any:
        n, h, s, _ = query.shape
        size = n * h * s * key.shape[2]
        if xp.__name__ != "numpy" or n < 2 or size < SHARED or attrs.get("prob"):
            return forward(xp, query, key, value, mask, **attrs)
        out = xp.empty((n, h, s, value.shape[3]), dtype=value.dtype)
        weights = xp.empty((n, h, s, key.shape[2]), dtype=query.dtype)

        def work(start: int, stop: int) -> None:
            for i in range(start, stop):
                one = slice(i, i + 1)
                seen = _of_sample(mask, one)
                out[one], weights[one] = forward(
                    xp, query[one], key[one], value[one], seen, **attrs
                )

        on_threads(xp, work, n, True)
        return out, weights

    return run


def _of_sample(mask: Array | None, one: slice) -> Array | None:
    return mask if mask is None or mask.shape[0] == 1 else mask[one]


@op(
    "FFF>F FFFB>F FFFF>F",
    check=attention_fits,
    extra="weights",
    method=False,
    through=sample_by_sample,
    takes_half=True,  # a hidden score beyond it is −∞; sums are widened below
)
def attention(
    xp: ArrayNamespace,
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    *,
    scale: float,
    hidden: float = -math.inf,
    causal: bool = False,
    quiet: bool = False,
    softcap: float | None = None,
    prob: float = 0.0,
    noise: Key = (0, 0),
    drop_weights: bool = False,
) -> Any:
    """Mix values by how well their keys meet the query: out = softmax(scale q kᵀ) v.

    Shapes: query [..., d], key [..., t, d], value [..., t, e], mask [...] -> [..., e]
    Why: a Bool mask hides where it is True (the score becomes `hidden`), a Float one is
    added to the scores. causal: nobody sees what comes after; both sequences end at the
    same time. quiet: the shares of a query may add up to less than 1, as if there were
    one more key of score 0. softcap: a score x becomes c tanh(x / c). prob: scores (or
    weights) are dropped with this chance, as `noise` chooses.
    Source: Vaswani and others, "Attention is all you need", 2017 (arXiv 1706.03762).
    """
    early = 0.0 if drop_weights else prob
    scores = _scores(xp, query, key, scale, softcap, early, noise)
    weights = _shares(xp, _hide(xp, scores, mask, causal, hidden), quiet)
    late = prob if drop_weights else 0.0
    return xp.matmul(_drop(xp, weights, late, noise), value), weights


def attention_all(
    xp: ArrayNamespace,
    g: Array,
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    weights: Array | None,
    needs: tuple[bool, ...],
    scale: float,
    hidden: float,
    causal: bool,
    quiet: bool,
    softcap: float | None,
    prob: float,
    noise: Key,
    drop_weights: bool,
) -> tuple[Any, ...]:
    """With P the weights: ∂v = Pᵀg, ∂scores = P (gvᵀ − Σ P gvᵀ), ∂q and ∂k from these.

    Why: a kernel does not keep the weights, and where steps are remembered (a gradient
    of a gradient) they depend on query and key; then they are computed again.
    """
    early, late = (0.0, prob) if drop_weights else (prob, 0.0)
    if weights is None or xp.__name__ == "burnbook":
        scores = _scores(xp, query, key, scale, softcap, early, noise)
        shares = _shares if xp.__name__ != "burnbook" else _remembered_shares
        weights = shares(xp, _hide(xp, scores, mask, causal, hidden), quiet)
    to_value = None
    if needs[2]:
        mixed = _drop(xp, weights, late, noise)
        to_value = xp.matmul(mixed.swapaxes(-1, -2), g)
    slope = _drop(xp, xp.matmul(g, value.swapaxes(-1, -2)), late, noise)
    slope -= xp.sum(slope * weights, axis=-1, keepdims=True)
    slope *= weights
    slope = _hide(xp, slope, mask if _hides(mask) else None, causal, 0.0)
    to_mask = None
    if mask is not None and needs[3]:
        to_mask = sum_to(xp, slope, shape=mask.shape)
    slope = _drop(xp, slope, early, noise)
    if softcap is not None:
        bent = _scores(xp, query, key, scale / softcap, 1.0, 0.0, noise)
        slope = slope * (1 - bent * bent)
    slope *= scale
    return (
        xp.matmul(slope, key) if needs[0] else None,
        xp.matmul(slope.swapaxes(-1, -2), query) if needs[1] else None,
        to_value,
        to_mask,
    )


def attention_gradients(
    xp: ArrayNamespace,
    g: Array,
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    weights: Array | None,
    needs: tuple[bool, ...],
    scale: float,
    hidden: float,
    causal: bool,
    quiet: bool,
    softcap: float | None,
    prob: float,
    noise: Key,
    drop_weights: bool,
) -> tuple[Any, ...]:
    """What `attention_all` gives; on all threads, as `sample_by_sample` says."""
    attrs = scale, hidden, causal, quiet, softcap, prob, noise, drop_weights
    n, h, s, _ = query.shape
    size = n * h * s * key.shape[2]
    is_small = xp.__name__ != "numpy" or n < 2 or size < SHARED
    if is_small or prob or needs[3]:
        return attention_all(xp, g, query, key, value, mask, weights, needs, *attrs)
    found = [
        xp.empty(x.shape, dtype=x.dtype) if needed else None
        for x, needed in zip((query, key, value), needs[:3], strict=True)
    ]

    def work(start: int, stop: int) -> None:
        for i in range(start, stop):
            one = slice(i, i + 1)
            parts = attention_all(
                xp,
                g[one],
                query[one],
                key[one],
                value[one],
                _of_sample(mask, one),
                None if weights is None else weights[one],
                needs,
                *attrs,
            )
            for out, made in zip(found, parts[:3], strict=True):
                if out is not None:
                    out[one] = made

    on_threads(xp, work, n, True)
    return *found, None


attention.grad(**dict.fromkeys(attention.inputs, attention_gradients))

attention.examples(
    samples=[
        (normal(2, 2, 3, 4), normal(2, 2, 5, 4), normal(2, 2, 5, 3), {"scale": 0.5}),
        (
            *(normal(1, 2, 4, 3), normal(1, 2, 4, 3), normal(1, 2, 4, 3)),
            truths(1, 1, 4, 4),
            {"scale": 0.5, "hidden": -1e4, "quiet": True},
        ),
        (
            *(normal(1, 2, 3, 2), normal(1, 2, 5, 2), normal(1, 2, 5, 2)),
            normal(1, 2, 1, 5),
            {"scale": 0.7, "causal": True, "softcap": 2.0},
        ),
        (
            *(normal(2, 1, 4, 3), normal(2, 1, 6, 3), normal(2, 1, 6, 3)),
            truths(2, 1, 1, 6),
            {"scale": 0.5, "prob": 0.3, "noise": (3, 4), "quiet": True},
        ),
        (
            *(normal(1, 2, 3, 2), normal(1, 2, 4, 2), normal(1, 2, 4, 3)),
            {"scale": 1.0, "prob": 0.3, "noise": (5, 6), "drop_weights": True},
        ),
    ],
    rejects=[
        (normal(1, 2, 3, 4), normal(1, 2, 3, 5), normal(1, 2, 3, 4), {"scale": 1.0}),
        (normal(1, 2, 3, 4), normal(1, 1, 3, 4), normal(1, 2, 3, 4), {"scale": 1.0}),
        (normal(2, 3, 4), normal(2, 3, 4), normal(2, 3, 4), {"scale": 1.0}),
    ],
)


def _scores(
    xp: ArrayNamespace,
    query: Array,
    key: Array,
    scale: float,
    softcap: float | None,
    prob: float,
    noise: Key,
) -> Any:
    """How well each query meets each key. [n, h, s, t]"""
    scores = xp.matmul(query * scale, key.swapaxes(-1, -2))
    if softcap is not None:
        scores = xp.tanh(scores * (1 / softcap)) * softcap
    return _drop(xp, scores, prob, noise)


def _drop(xp: ArrayNamespace, x: Array, prob: float, noise: Key) -> Any:
    return dropout(xp, x, prob=prob, key=noise) if prob else x


def _hides(mask: Array | None) -> bool:
    return mask is not None and mask.dtype.kind == "b"


def _hide(
    xp: ArrayNamespace, scores: Array, mask: Array | None, causal: bool, hidden: float
) -> Any:
    """The scores with a mask applied, and what comes later hidden."""
    if _hides(mask):
        scores = xp.where(mask, hidden, scores)
    elif mask is not None:
        scores = scores + mask
    if causal:
        s, t = scores.shape[-2:]
        now = xp.arange(t - s, t).reshape(-1, 1)
        scores = xp.where(xp.arange(t) > now, hidden, scores)
    return scores


def _shares(xp: ArrayNamespace, scores: Array, quiet: bool) -> Array:
    """Softmax along the last dim; where all is hidden by −∞, every share is 0."""
    narrow = scores.dtype
    if narrow.itemsize < 4:
        scores = scores.astype(xp.float32)  # half precision has too few digits for sums
    limits = np.finfo(scores.dtype)
    peak = xp.max(scores, axis=-1, keepdims=True)
    peak = xp.maximum(peak, 0.0 if quiet else float(limits.min))
    raised = scores - peak
    xp.exp(raised, out=raised)
    total = xp.sum(raised, axis=-1, keepdims=True)
    if quiet:
        total += xp.exp(-peak)
    raised /= xp.maximum(total, float(limits.tiny))
    return raised.astype(narrow, copy=False)


def _remembered_shares(xp: ArrayNamespace, scores: Array, quiet: bool) -> Array:
    """The same of ops that have gradients: a score of 0 more, or one that is lowest."""
    n, h, s, t = scores.shape
    lowest = float(np.finfo(scores.dtype).min) / 2
    more = xp.zeros((n, h, s, 1), dtype=scores.dtype)
    more = more if quiet else more + lowest
    return softmax(xp, xp.concatenate([scores, more], axis=3), dim=3)[:, :, :, :t]
