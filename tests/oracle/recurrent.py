"""Slow functions of sequences: every gate of every step, number by number."""

import math

import numpy as np


def dot(line, weight, column):
    return sum(u * weight[k, column] for k, u in enumerate(line))


def sigma(z):
    return 1 / (1 + math.exp(-z))


def steps_of(x, reverse):
    return range(x.shape[1])[:: -1 if reverse else 1]


def rnn(x, weight, recurrent, bias=None, hidden=None, reverse=False):
    n = len(recurrent)
    out = np.zeros((*x.shape[:2], n))
    for b in range(len(x)):
        h = [0.0] * n if hidden is None else list(hidden[b])
        for t in steps_of(x, reverse):
            z = [dot(x[b, t], weight, j) + dot(h, recurrent, j) for j in range(n)]
            h = [
                math.tanh(u + (0 if bias is None else bias[j])) for j, u in enumerate(z)
            ]
            out[b, t] = h
    return out


def lstm(x, weight, recurrent, bias=None, cell=None, hidden=None, reverse=False):
    """A row for every state h, then one for the last memory c of every sequence."""
    n = len(recurrent)
    bias = np.zeros(4 * n) if bias is None else bias
    states, last = np.zeros((*x.shape[:2], n)), np.zeros((len(x), n))
    for b in range(len(x)):
        h = [0.0] * n if hidden is None else list(hidden[b])
        c = [0.0] * n if cell is None else list(cell[b])
        for t in steps_of(x, reverse):
            z = [
                dot(x[b, t], weight, j) + dot(h, recurrent, j) + bias[j]
                for j in range(4 * n)
            ]
            for j in range(n):
                i, f, o, new = (z[k * n + j] for k in range(4))
                c[j] = sigma(f) * c[j] + sigma(i) * math.tanh(new)
                h[j] = sigma(o) * math.tanh(c[j])
            states[b, t] = h
        last[b] = c
    return np.concatenate([states.reshape(-1, n), last])


def gru(
    x,
    weight,
    recurrent,
    bias=None,
    recurrent_bias=None,
    hidden=None,
    reset_after=True,
    reverse=False,
):
    n = len(recurrent)
    bias = np.zeros(3 * n) if bias is None else bias
    more = np.zeros(3 * n) if recurrent_bias is None else recurrent_bias
    out = np.zeros((*x.shape[:2], n))
    for b in range(len(x)):
        h = [0.0] * n if hidden is None else list(hidden[b])
        for t in steps_of(x, reverse):
            given = [dot(x[b, t], weight, j) + bias[j] for j in range(3 * n)]
            soft = [
                sigma(given[j] + dot(h, recurrent, j) + more[j]) for j in range(2 * n)
            ]
            z, r = soft[:n], soft[n:]
            scaled = [r[j] * h[j] for j in range(n)]
            new = []
            for j in range(n):
                column = 2 * n + j
                held = dot(h if reset_after else scaled, recurrent, column)
                held += more[column]
                new.append(
                    math.tanh(given[column] + (r[j] * held if reset_after else held))
                )
            h = [(1 - z[j]) * new[j] + z[j] * h[j] for j in range(n)]
            out[b, t] = h
    return out
