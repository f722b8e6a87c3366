"""Slow attention, rotation and lookups."""

import math

import numpy as np

from burnbook.ops.random import CHANCES, random_bits


def kept(shape, prob, noise):
    """What dropout multiplies with."""
    bits = random_bits(np, math.prod(shape), noise, np.uint16).reshape(shape)
    return (bits >= round(prob * CHANCES)) / (1 - prob)


def attention(
    query,
    key,
    value,
    mask=None,
    *,
    scale,
    hidden=-math.inf,
    causal=False,
    quiet=False,
    softcap=None,
    prob=0.0,
    noise=(0, 0),
    drop_weights=False,
):
    n, h, s = query.shape[:3]
    t, e = value.shape[2:]
    factor = kept((n, h, s, t), prob, noise) if prob else np.ones((n, h, s, t))
    if mask is not None:
        mask = np.broadcast_to(mask, (n, h, s, t))
    out = np.zeros((n, h, s, e))
    for b, head, i in np.ndindex(n, h, s):
        scores = []
        for j in range(t):
            pairs = zip(query[b, head, i], key[b, head, j], strict=True)
            score = scale * math.fsum(x * y for x, y in pairs)
            if softcap is not None:
                score = softcap * math.tanh(score / softcap)
            score *= 1 if drop_weights else factor[b, head, i, j]
            if mask is not None and mask.dtype == bool:
                score = hidden if mask[b, head, i, j] else score
            elif mask is not None:
                score += mask[b, head, i, j]
            scores.append(hidden if causal and j > i + t - s else score)
        shares = [math.exp(score) for score in scores]
        total = math.fsum(shares) + (1 if quiet else 0)
        for j, share in enumerate(shares):
            share *= factor[b, head, i, j] if drop_weights else 1
            out[b, head, i] += share / total * value[b, head, j]
    return out


def rotary(x, turns, back=False):
    out = np.empty(x.shape)
    for place in np.ndindex(*x.shape[:-1], x.shape[-1] // 2):
        *rest, i = place
        cos, sin = turns[rest[-1], i]
        pair = complex(x[(*rest, 2 * i)], x[(*rest, 2 * i + 1)])
        turned = pair * complex(cos, -sin if back else sin)
        out[(*rest, 2 * i)], out[(*rest, 2 * i + 1)] = turned.real, turned.imag
    return out


def rotary_turns(dout, x, back=False):
    out = np.zeros((*x.shape[-2:-1], x.shape[-1] // 2, 2))
    for place in np.ndindex(*x.shape[:-1], x.shape[-1] // 2):
        *rest, i = place
        pair = complex(x[(*rest, 2 * i)], -x[(*rest, 2 * i + 1)])
        slope = pair * complex(dout[(*rest, 2 * i)], dout[(*rest, 2 * i + 1)])
        out[rest[-1], i] += slope.real, -slope.imag if back else slope.imag
    return out


def embedding(weight, indices):
    return np.array([weight[i] for i in indices.ravel()]).reshape(*indices.shape, -1)


def embedding_weight(dout, indices, weight_shape):
    out = np.zeros(weight_shape)
    for place in np.ndindex(indices.shape):
        out[indices[place]] += dout[place]
    return out
