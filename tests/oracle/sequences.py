"""Slow losses of sequences: every path is written out and added up."""

import itertools
import math

import numpy as np


def ctc_labels(targets, target_lengths, blank):
    out = np.full((len(targets), 2 * targets.shape[1] + 1), blank)
    for i, length in enumerate(target_lengths):
        for k in range(length):
            out[i, 2 * k + 1] = targets[i, k]
    return out


def ctc_skips(labels, blank):
    out = np.zeros(labels.shape, bool)
    for i, row in enumerate(labels):
        for s in range(2, len(row)):
            out[i, s] = row[s] != blank and row[s] != row[s - 2]
    return out


def spelled(path, blank):
    """What a path spells: repetitions count once, blanks not at all."""
    return [label for label, _ in itertools.groupby(path) if label != blank]


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank):
    """All c^t sequences of classes, kept where they spell the target."""
    out = np.zeros(len(targets))
    classes = range(log_probs.shape[2])
    for i, row in enumerate(targets):
        wanted = list(row[: target_lengths[i]])
        total = 0.0
        for path in itertools.product(classes, repeat=input_lengths[i]):
            if spelled(path, blank) == wanted:
                total += math.exp(sum(log_probs[t, i, c] for t, c in enumerate(path)))
        out[i] = -math.log(total) if total else math.inf
    return out


def rnnt_labels(targets, target_lengths, blank, size):
    n, s = targets.shape
    out = np.full((n, s + 1, 2), blank)
    for i, length in enumerate(target_lengths):
        for u in range(length):
            out[i, u, 1] = targets[i, u]
    return out


def log_softmax_at(x, indices):
    out = np.zeros(indices.shape)
    for place in np.ndindex(indices.shape):
        row = x[place[:-1]]
        total = math.log(sum(math.exp(v) for v in row))
        out[place] = row[indices[place]] - total
    return out


def rnnt_loss(edges, logit_lengths, target_lengths):
    """All orders of the blanks and the labels; the last step is a blank."""
    out = np.zeros(len(edges))
    for i, (frames, labels) in enumerate(
        zip(logit_lengths, target_lengths, strict=True)
    ):
        total = 0.0
        steps = frames - 1 + labels
        for said in itertools.combinations(range(steps), labels):
            t = u = 0
            way = 0.0
            for step in range(steps):
                way += edges[i, t, u, int(step in said)]
                t, u = (t, u + 1) if step in said else (t + 1, u)
            total += math.exp(way + edges[i, t, u, 0])
        out[i] = -math.log(total)
    return out
