"""Losses of sequences that nobody has aligned: CTC and RNN-T.

A sequence of frames can be read as a sequence of labels in many ways: each way is a path
through a lattice, and its log probability the sum of those of its edges. A loss is −log
of the sum over all paths. Forward, alpha adds up the paths from the start to each node;
for the gradient, beta adds up those from each node to the end, and alpha + beta says how
likely a path comes along there. Everything stays in the log space, where nothing
underflows; a node that no path reaches has −inf.
"""

import functools
from typing import Any

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.errors import DimError, ShapeError
from burnbook.core.op import indices, normal, op
from burnbook.ops.index import gather, scatter
from burnbook.ops.softmax import softmax

Lengths = tuple[int, ...]
CTC = {"input_lengths": (6, 4, 5), "target_lengths": (2, 1, 0), "blank": 3}
RNNT = {"logit_lengths": (4, 2, 3), "target_lengths": (2, 2, 0)}


@op("I>I", method=False)
def ctc_labels(
    xp: ArrayNamespace, targets: Array, *, target_lengths: Lengths, blank: int
) -> Array:
    """The states of a path: the labels with blanks around them, b l₁ b l₂ b.

    Shapes: targets [n, s] -> [n, m]; m = 2s + 1
    """
    n, s = targets.shape
    known = xp.arange(s) < _column(xp, target_lengths)
    out = xp.full((n, 2 * s + 1), blank, targets.dtype)
    out[:, 1::2] = xp.where(known, targets, blank)
    return out


ctc_labels.examples(
    samples=[(indices(3, 3, 2), {"target_lengths": (2, 1, 0), "blank": 3})]
)


@op("I>B", method=False)
def ctc_skips(xp: ArrayNamespace, labels: Array, *, blank: int) -> Array:
    """Which states may be entered from the one before the last: new labels.

    Shapes: labels [n, m] -> [n, m]
    """
    out = labels != blank
    out[:, :2] = False
    out[:, 2:] &= labels[:, 2:] != labels[:, :-2]
    return out


ctc_skips.examples(samples=[(indices(2, 3, 5), {"blank": 0})])


def ctc_fits(
    log_probs: tuple[int, ...],
    targets: tuple[int, ...],
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int,
) -> Any:
    """Why a CTC loss cannot be, or None if it can."""
    if len(log_probs) != 3 or len(targets) != 2 or log_probs[1] != targets[0]:
        return "log_probs must be [t, n, c] and targets [n, s]"
    t, n, c = log_probs
    return (
        _blank_fits(blank, c)
        or _lengths_fit("input_lengths", input_lengths, n, 0, t)
        or _lengths_fit("target_lengths", target_lengths, n, 0, targets[1])
    )


@op("FI>F", check=ctc_fits, method=False)
def ctc_loss(
    xp: ArrayNamespace,
    log_probs: Array,
    targets: Array,
    *,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int,
) -> Array:
    """How surprising labels are: out = −log Σ over paths Πₜ p(state at t).

    A path stays in a state, goes to the next, or skips a blank between two different
    labels; it starts and ends with the first or last label or the blank beside it.

    Shapes: log_probs [t, n, c], targets [n, s] -> [n]
    Why: labels that no path spells in time have the loss inf.
    """
    _all_labels(xp, "ctc_loss", targets, target_lengths, log_probs.shape[2], blank)
    path = CtcPath(xp, log_probs, targets, input_lengths, target_lengths, blank)
    return -path.total(path.alphas()[-1])


def ctc_loss_log_probs(
    xp: ArrayNamespace,
    g: Array,
    log_probs: Array,
    targets: Array,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int,
) -> Any:
    """Minus the chance that a path comes along: −exp(α + β − log Σ), for each class."""
    path = CtcPath(xp, log_probs, targets, input_lengths, target_lengths, blank)
    alphas = path.alphas()
    total = path.total(alphas[-1])
    total = xp.where(total == -np.inf, 0.0, total).reshape(-1, 1)
    rows = [
        xp.exp(alpha + beta - total).reshape(1, *path.shape)
        for alpha, beta in zip(alphas[1:], path.betas(), strict=True)
    ]
    chances = xp.concatenate(rows, axis=0) if rows else path.emit
    chances = xp.where(path.in_time, chances, 0.0) * -g.reshape(1, -1, 1)
    zeros = xp.zeros(log_probs.shape, log_probs.dtype)
    return scatter(xp, zeros, path.places, chances, dim=2)


ctc_loss.grad(log_probs=ctc_loss_log_probs)

ctc_loss.examples(
    samples=[(normal(6, 3, 4), indices(3, 3, 2), CTC)],
    rejects=[
        (normal(6, 3, 4), indices(3, 2, 2), CTC),
        (normal(5, 3, 4), indices(3, 3, 2), CTC),
        (normal(6, 3, 3), indices(3, 3, 2), CTC),
    ],
)


class CtcPath:
    """The states and steps of all paths of a batch; every row is [n, m]."""

    def __init__(
        self,
        xp: ArrayNamespace,
        log_probs: Array,
        targets: Array,
        input_lengths: Lengths,
        target_lengths: Lengths,
        blank: int,
    ):
        self.xp = xp
        t, n, _ = log_probs.shape
        labels = ctc_labels(xp, targets, target_lengths=target_lengths, blank=blank)
        m = labels.shape[1]
        self.shape = (n, m)
        self.places = xp.broadcast_to(labels.reshape(1, n, m), (t, n, m))
        self.emit = gather(xp, log_probs, self.places, dim=2)
        self.skips = ctc_skips(xp, labels, blank=blank)
        self.lengths = np.asarray(input_lengths, np.int64).reshape(n, 1)
        self.in_time = xp.asarray(np.arange(t)[:, None, None] < self.lengths)
        ends = 2 * np.asarray(target_lengths, np.int64).reshape(n, 1) - np.array(
            [[0, 1]]
        )
        self.ends, self.there = np.maximum(ends, 0), ends >= 0

    def alphas(self) -> list[Any]:
        """The paths so far: before the first frame, and after each."""
        xp, (n, m) = self.xp, self.shape
        alpha = _start(xp, n, m, self.emit.dtype)
        rows = [alpha]
        for t in range(self.emit.shape[0]):
            skipped = xp.where(self.skips, shifted(xp, alpha, 2), -np.inf)
            entered = log_add(xp, alpha, shifted(xp, alpha, 1), skipped)
            alpha = self._while_in_time(t, entered + self._emit(t), alpha)
            rows.append(alpha)
        return rows

    def betas(self) -> list[Any]:
        """The paths to come, after each frame."""
        xp, (n, m) = self.xp, self.shape
        last = np.full((n, m), -np.inf)
        np.put_along_axis(last, self.ends, np.where(self.there, 0.0, -np.inf), axis=1)
        last[:, 0] = np.where(self.there[:, 1], last[:, 0], 0.0)  # no label at all
        end = xp.asarray(last, dtype=self.emit.dtype)
        beta, rows = end, []
        for t in range(self.emit.shape[0] - 1, -1, -1):
            rows.append(beta)
            entered = beta + self._emit(t)
            skipped = shifted(xp, xp.where(self.skips, entered, -np.inf), -2)
            entered = log_add(xp, entered, shifted(xp, entered, -1), skipped)
            beta = self._while_in_time(t, entered, end)
        return rows[::-1]

    def total(self, alpha: Any) -> Any:
        """All paths that end where they may: in the last label or the blank after."""
        xp = self.xp
        ends = gather(xp, alpha, xp.asarray(self.ends), dim=1)
        ends = xp.where(xp.asarray(self.there), ends, -np.inf)
        return log_add(xp, ends[:, :1], ends[:, 1:]).reshape(-1)

    def _emit(self, t: int) -> Any:
        return self.emit[t : t + 1].reshape(self.shape)

    def _while_in_time(self, t: int, row: Array, otherwise: Any) -> Any:
        if (t < self.lengths).all():
            return row
        return self.xp.where(self.xp.asarray(t < self.lengths), row, otherwise)


@op("FI>F", method=False)
def log_softmax_at(xp: ArrayNamespace, x: Array, indices: Array) -> Array:
    """Some elements of the log of softmax: outⱼ = x[indicesⱼ] − log Σᵢ exp xᵢ.

    Shapes: x [..., d], indices [..., k] -> [..., k]
    Why: of a large vocabulary only two labels count at each node of a lattice.
    """
    most = xp.max(x, axis=-1, keepdims=True)
    total = xp.sum(xp.exp(x - most), axis=-1, keepdims=True)
    return gather(xp, x, indices, dim=-1) - (xp.log(total) + most)


def log_softmax_at_x(xp: ArrayNamespace, g: Array, x: Array, indices: Array) -> Any:
    """The gradient where elements were picked, minus softmax times all of it."""
    last = len(x.shape) - 1
    shared = softmax(xp, x, dim=last) * -xp.sum(g, axis=last, keepdims=True)
    return scatter(xp, shared, indices, g, dim=last)


log_softmax_at.grad(x=log_softmax_at_x)

log_softmax_at.examples(
    samples=[(normal(2, 3, 5), indices(5, 2, 3, 2)), (normal(4, 3), indices(3, 4, 1))]
)


@op("I>I", method=False)
def rnnt_labels(
    xp: ArrayNamespace,
    targets: Array,
    *,
    target_lengths: Lengths,
    blank: int,
    size: int,
) -> Array:
    """The two classes that lead on after u labels: the blank, and label u + 1.

    Shapes: targets [n, s] -> [n, u, 2]; u = s + 1
    Why: after the last label there is only the blank, so it stands there twice.
    """
    n, s = targets.shape
    wrong = _blank_fits(blank, size)
    wrong = wrong or _lengths_fit("target_lengths", target_lengths, n, 0, s)
    if wrong:
        error, what = wrong if isinstance(wrong, tuple) else (ShapeError, wrong)
        raise error("rnnt_loss", what, [("targets", str([n, s]))])
    _all_labels(xp, "rnnt_loss", targets, target_lengths, size, blank)
    known = xp.arange(s) < _column(xp, target_lengths)
    out = xp.full((n, s + 1, 2), blank, targets.dtype)
    out[:, :s, 1] = xp.where(known, targets, blank)
    return out


rnnt_labels.examples(
    samples=[(indices(3, 3, 2), {"target_lengths": (2, 1, 0), "blank": 3, "size": 4})]
)


def rnnt_fits(
    edges: tuple[int, ...], logit_lengths: Lengths, target_lengths: Lengths
) -> Any:
    """Why a transducer loss cannot be, or None if it can."""
    if len(edges) != 4 or edges[3] != 2:
        return "edges must be [n, t, u, 2]"
    n, t, u, _ = edges
    return _lengths_fit("logit_lengths", logit_lengths, n, 1, t) or _lengths_fit(
        "target_lengths", target_lengths, n, 0, u - 1
    )


@op("F>F", check=rnnt_fits, method=False)
def rnnt_loss(
    xp: ArrayNamespace, edges: Array, *, logit_lengths: Lengths, target_lengths: Lengths
) -> Array:
    """How surprising labels are: out = −log Σ over paths Π p(edge).

    A path goes from (0, 0) to the last frame with all labels: edge 0 at (t, u), the
    blank, leads to the next frame, edge 1 says the next label. The last edge is a blank.

    Shapes: edges [n, t, u, 2] -> [n]
    """
    lattice = RnntLattice(xp, edges, logit_lengths, target_lengths)
    return -lattice.total(lattice.alphas())


def rnnt_loss_edges(
    xp: ArrayNamespace,
    g: Array,
    edges: Array,
    logit_lengths: Lengths,
    target_lengths: Lengths,
) -> Any:
    """Minus the chance that a path takes an edge: −exp(α + edge + β − log Σ)."""
    lattice = RnntLattice(xp, edges, logit_lengths, target_lengths)
    alphas, betas = lattice.alphas(), lattice.betas()
    total = lattice.total(alphas)
    total = xp.where(total == -np.inf, 0.0, total).reshape(-1, 1)
    n, u = lattice.shape
    rows = []
    for d in range(lattice.count):
        blank, label = lattice.edges(d)
        ways = alphas[d] + blank + betas[d + 1], alphas[d] + label
        ways = ways[0], ways[1] + shifted(xp, betas[d + 1], -1)
        pair = [xp.exp(way - total).reshape(n, 1, u, 1) for way in ways]
        rows.append(xp.concatenate(pair, axis=3))
    chances = xp.concatenate(rows, axis=1) * -g.reshape(-1, 1, 1, 1)
    return gather(xp, chances, xp.asarray(lattice.back), dim=1)


rnnt_loss.grad(edges=rnnt_loss_edges)

rnnt_loss.examples(
    samples=[(normal(3, 4, 3, 2), RNNT)],
    rejects=[(normal(3, 4, 2, 2), RNNT), (normal(3, 3, 3, 2), RNNT)],
)


class RnntLattice:
    """The nodes (t, u) of a batch by diagonals d = t + u; every row is [n, u].

    All nodes of a diagonal depend only on the diagonal before, so they are done at once.
    """

    def __init__(
        self,
        xp: ArrayNamespace,
        edges: Array,
        logit_lengths: Lengths,
        target_lengths: Lengths,
    ):
        self.xp = xp
        n, t, u, _ = edges.shape
        self.shape, self.count = (n, u), t + u - 1
        frames = np.asarray(logit_lengths, np.int64).reshape(n, 1, 1)
        labels = np.asarray(target_lengths, np.int64).reshape(n, 1, 1)
        at = np.arange(u)
        time = np.arange(self.count).reshape(-1, 1) - at  # [d, u], of every node
        last = (time == frames - 1) & (at == labels)
        blank = (time >= 0) & (time < frames - 1) & (at <= labels) | last
        label = (time >= 0) & (time < frames) & (at < labels)
        wide = (n, self.count, u, 2)
        place = np.broadcast_to(np.clip(time, 0, t - 1)[None, :, :, None], wide)
        turned = gather(xp, edges, xp.asarray(place), dim=1)
        there = xp.asarray(np.stack([blank, label], axis=-1))
        self.turned = xp.where(there, turned, -np.inf)
        there_again = np.arange(t).reshape(-1, 1) + at
        self.back = np.broadcast_to(there_again[None, :, :, None], (n, t, u, 2))
        self.ends = (frames + labels).reshape(-1), labels.reshape(-1)

    def edges(self, d: int) -> tuple[Any, Any]:
        """The blanks and the labels that leave a diagonal."""
        row = self.turned[:, d : d + 1]
        blank, label = row[:, :, :, :1], row[:, :, :, 1:]
        return blank.reshape(self.shape), label.reshape(self.shape)

    def alphas(self) -> list[Any]:
        """The paths from the start to each diagonal."""
        alpha = _start(self.xp, *self.shape, self.turned.dtype)
        rows = [alpha]
        for d in range(self.count):
            blank, label = self.edges(d)
            said = shifted(self.xp, alpha + label, 1)
            alpha = log_add(self.xp, alpha + blank, said)
            rows.append(alpha)
        return rows

    def betas(self) -> list[Any]:
        """The paths from each diagonal to the end."""
        xp, (n, u) = self.xp, self.shape
        beta = self._end(self.count, xp.zeros((n, u), self.turned.dtype) - np.inf)
        rows = [beta]
        for d in range(self.count - 1, -1, -1):
            blank, label = self.edges(d)
            said = label + shifted(xp, beta, -1)
            beta = self._end(d, log_add(xp, blank + beta, said))
            rows.append(beta)
        return rows[::-1]

    def total(self, alphas: list[Any]) -> Any:
        """All paths to the end."""
        xp, (n, u) = self.xp, self.shape
        whole = xp.concatenate(alphas, axis=1)
        place = (self.ends[0] * u + self.ends[1]).reshape(n, 1)
        return gather(xp, whole, xp.asarray(place), dim=1).reshape(-1)

    def _end(self, d: int, row: Array) -> Any:
        """The row of a diagonal, with 0 for the ends that lie on it."""
        here = (self.ends[0] == d)[:, None]
        if not here.any():
            return row
        here = here & (np.arange(self.shape[1]) == self.ends[1][:, None])
        return self.xp.where(self.xp.asarray(here), 0.0, row)


def log_add(xp: ArrayNamespace, *xs: Array) -> Any:
    """log Σ exp x, element by element; −inf where every x is."""
    most = functools.reduce(xp.maximum, xs)
    dead = most == -np.inf
    most = xp.where(dead, 0.0, most)
    total = functools.reduce(xp.add, [xp.exp(x - most) for x in xs])
    return xp.where(dead, -np.inf, most + xp.log(xp.where(dead, 1.0, total)))


def shifted(xp: ArrayNamespace, x: Array, by: int) -> Any:
    """Columns moved to the right, or to the left where `by` < 0; −inf comes in."""
    n, m = x.shape
    width = min(abs(by), m)
    fill = xp.zeros((n, width), x.dtype) - np.inf
    parts = [fill, x[:, : m - width]] if by > 0 else [x[:, width:], fill]
    return xp.concatenate(parts, axis=1)


def _start(xp: ArrayNamespace, n: int, m: int, dtype: np.dtype[Any]) -> Any:
    """log 1 in the first column, log 0 in the others."""
    return xp.asarray(np.where(np.arange(m) > 0, -np.inf, np.zeros((n, m))), dtype)


def _column(xp: ArrayNamespace, lengths: Lengths) -> Any:
    return xp.asarray(lengths).reshape(-1, 1)


def _blank_fits(blank: int, size: int) -> Any:
    if not 0 <= blank < size:
        return DimError, f"blank {blank} is not one of the {size} classes"
    return None


def _lengths_fit(name: str, lengths: Lengths, n: int, low: int, high: int) -> Any:
    if len(lengths) != n:
        return f"{len(lengths)} ≠ {n}: {name} must hold one length for each sequence"
    for i, length in enumerate(lengths):
        if not low <= length <= high:
            return DimError, f"{name}[{i}] is {length}, not between {low} and {high}"
    return None


def _all_labels(
    xp: ArrayNamespace,
    where: str,
    targets: Array,
    lengths: Lengths,
    size: int,
    blank: int,
) -> None:
    """Refuse labels outside the classes, and blanks; padding may hold anything."""
    labels = targets[xp.arange(targets.shape[1]) < _column(xp, lengths)]
    wrong = labels[(labels < 0) | (labels >= size) | (labels == blank)]
    if wrong.size:
        label = int(wrong[0])
        if label == blank:
            what, cure = (
                f"label {label} is the blank",
                "another blank, or none in targets",
            )
        else:
            what = f"label {label} is not one of the {size} classes"
            cure = f"labels from 0 to {size - 1}"
        raise DimError(where, what, cure=cure)
