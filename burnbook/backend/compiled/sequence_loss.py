"""Advanced · Performance. CTC and RNN-T: the paths of each sequence in two sweeps.

States that cannot be reached yet, or from which the end is out of reach, are left out.
Sums are kept in float64, which costs nothing here: in float32, what is lost beside a
log probability of −700 is the fourth digit of a gradient.
"""

from typing import Any

import numpy as np

from burnbook.backend.compiled.jit import f32, kernel_code, part
from burnbook.backend.compiled.registry import kernel, plain_f32
from burnbook.backend.compiled.team import team
from burnbook.ops.sequence_loss import ctc_loss, rnnt_loss

f64 = np.float64
Lengths = tuple[int, ...]
NEVER = f64(-np.inf)


@part
def add_logs(a: Any, b: Any) -> Any:
    """log(exp a + exp b); NaN stays."""
    most, less = (b, a) if a < b else (a, b)
    if less == NEVER:
        return most
    return most + np.log1p(np.exp(less - most))


@part
def ctc_step(p: Any, s: int, y: Any) -> Any:
    """What comes into state s of a row with two spare places in front."""
    total = add_logs(p[s + 2], p[s + 1])
    k = s >> 1
    if s & 1 and s > 1 and y[k] != y[k - 1]:
        total = add_logs(total, p[s])
    return total


@part
def ctc_sweep(x: Any, i: int, y: Any, frames: int, blank: int, rows: Any) -> Any:
    """Fill the rows of alpha, one for each frame and one before, and add up the ends.

    Each row has two spare places in front.
    """
    m = 2 * y.size + 1
    rows[0, :] = NEVER
    rows[0, 2] = 0.0
    for t in range(frames):
        p, a, e = rows[t], rows[t + 1], x[t, i]
        a[:] = NEVER
        for s in range(max(0, m - 2 * (frames - t)), min(m, 2 * t + 2)):
            label = y[s >> 1] if s & 1 else blank
            a[s + 2] = ctc_step(p, s, y) + e[label]
    last = rows[frames]
    return add_logs(last[m + 1], last[m] if m > 1 else NEVER)


@kernel_code("void(f4[:,:,::1], i8[:,::1], i8[::1], i8[::1], i8, f4[::1], i8, i8)")
def ctc_range(
    x: Any,
    targets: Any,
    frames: Any,
    labels: Any,
    blank: int,
    out: Any,
    start: int,
    stop: int,
) -> None:
    """The loss of some sequences."""
    for i in range(start, stop):
        y = targets[i, : labels[i]]
        rows = np.empty((frames[i] + 1, 2 * y.size + 3), f64)
        out[i] = -ctc_sweep(x, i, y, frames[i], blank, rows)


@kernel_code(
    "void(f4[::1], f4[:,:,::1], i8[:,::1], i8[::1], i8[::1], i8, f4[:,:,::1], i8, i8)"
)
def ctc_back_range(
    g: Any,
    x: Any,
    targets: Any,
    frames: Any,
    labels: Any,
    blank: int,
    out: Any,
    start: int,
    stop: int,
) -> None:
    """The gradients of some sequences."""
    for i in range(start, stop):
        out[:, i] = 0.0
        y = targets[i, : labels[i]]
        m = 2 * y.size + 1
        rows = np.empty((frames[i] + 1, m + 2), f64)
        total = ctc_sweep(x, i, y, frames[i], blank, rows)
        if total == NEVER:
            continue
        beta, entered = np.empty(m, f64), np.empty(m + 2, f64)
        beta[:] = NEVER
        beta[m - 1] = 0.0
        if m > 1:
            beta[m - 2] = 0.0
        for t in range(frames[i] - 1, -1, -1):
            a, e, d = rows[t + 1], x[t, i], out[t, i]
            entered[:] = NEVER
            for s in range(max(0, m - 2 * (frames[i] - t)), min(m, 2 * t + 2)):
                label = y[s >> 1] if s & 1 else blank
                d[label] -= g[i] * np.exp(a[s + 2] + beta[s] - total)
                entered[s] = beta[s] + e[label]
            for s in range(m):
                ways = add_logs(entered[s], entered[s + 1])
                k = s >> 1
                if s & 1 and k + 1 < y.size and y[k] != y[k + 1]:
                    ways = add_logs(ways, entered[s + 2])
                beta[s] = ways


@kernel(ctc_loss)
def ctc_kernel(
    log_probs: Any,
    targets: Any,
    *,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int,
) -> Any:
    lengths = np.array(input_lengths, np.int64), np.array(target_lengths, np.int64)
    if not _ctc_fits(log_probs, targets, lengths[1], blank):
        return None
    out = np.empty(len(targets), f32)
    args = (log_probs, targets, *lengths, blank, out)
    team.run(ctc_range, args, len(targets))
    return out


@kernel(ctc_loss.backward)
def ctc_backward_kernel(
    g: Any,
    log_probs: Any,
    targets: Any,
    *,
    needs: tuple[bool, ...],
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int,
) -> Any:
    lengths = np.array(input_lengths, np.int64), np.array(target_lengths, np.int64)
    if not (plain_f32(g) and _ctc_fits(log_probs, targets, lengths[1], blank)):
        return None
    out = np.empty(log_probs.shape, f32)
    args = (g, log_probs, targets, *lengths, blank, out)
    team.run(ctc_back_range, args, len(targets))
    return out, None


def _ctc_fits(log_probs: Any, targets: Any, lengths: Any, blank: int) -> bool:
    """Whether a kernel serves these; what is no label is left to the plain code."""
    if not (plain_f32(log_probs) and _whole(targets)):
        return False
    known = np.arange(targets.shape[1]) < lengths[:, None]
    size = log_probs.shape[2]
    odd = (targets < 0) | (targets >= size) | (targets == blank)
    return not (odd & known).any()


@part
def rnnt_sweep(e: Any, frames: int, labels: int, alpha: Any) -> Any:
    """Fill the nodes (t, u) of alpha and give the sum of all paths."""
    for t in range(frames):
        for u in range(labels + 1):
            total = NEVER
            if t == 0 and u == 0:
                total = 0.0
            if t > 0:
                total = alpha[t - 1, u] + e[t - 1, u, 0]
            if u > 0:
                total = add_logs(total, alpha[t, u - 1] + e[t, u - 1, 1])
            alpha[t, u] = total
    return alpha[frames - 1, labels] + e[frames - 1, labels, 0]


@kernel_code("void(f4[:,:,:,::1], i8[::1], i8[::1], f4[::1], i8, i8)")
def rnnt_range(
    edges: Any, frames: Any, labels: Any, out: Any, start: int, stop: int
) -> None:
    """The loss of some sequences."""
    for i in range(start, stop):
        alpha = np.empty((frames[i], labels[i] + 1), f64)
        out[i] = -rnnt_sweep(edges[i], frames[i], labels[i], alpha)


@kernel_code("void(f4[::1], f4[:,:,:,::1], i8[::1], i8[::1], f4[:,:,:,::1], i8, i8)")
def rnnt_back_range(
    g: Any, edges: Any, frames: Any, labels: Any, out: Any, start: int, stop: int
) -> None:
    """The gradients of some sequences."""
    for i in range(start, stop):
        out[i] = 0.0
        e, d, last, most = edges[i], out[i], frames[i] - 1, labels[i]
        alpha = np.empty((last + 1, most + 1), f64)
        total = rnnt_sweep(e, last + 1, most, alpha)
        if total == NEVER:
            continue
        beta = np.empty(most + 2, f64)
        beta[:] = NEVER
        beta[most] = 0.0
        for t in range(last, -1, -1):
            for u in range(most, -1, -1):
                ahead = NEVER
                if t < last or u == most:
                    ahead = e[t, u, 0] + beta[u]
                    d[t, u, 0] = -g[i] * np.exp(alpha[t, u] + ahead - total)
                if u < most:
                    said = e[t, u, 1] + beta[u + 1]
                    d[t, u, 1] = -g[i] * np.exp(alpha[t, u] + said - total)
                    ahead = add_logs(ahead, said)
                beta[u] = ahead


@kernel(rnnt_loss)
def rnnt_kernel(edges: Any, *, logit_lengths: Lengths, target_lengths: Lengths) -> Any:
    if not plain_f32(edges):
        return None
    lengths = np.array(logit_lengths, np.int64), np.array(target_lengths, np.int64)
    out = np.empty(len(edges), f32)
    team.run(rnnt_range, (edges, *lengths, out), len(edges))
    return out


@kernel(rnnt_loss.backward)
def rnnt_backward_kernel(
    g: Any,
    edges: Any,
    *,
    needs: tuple[bool, ...],
    logit_lengths: Lengths,
    target_lengths: Lengths,
) -> Any:
    if not (plain_f32(g) and plain_f32(edges)):
        return None
    lengths = np.array(logit_lengths, np.int64), np.array(target_lengths, np.int64)
    out = np.empty(edges.shape, f32)
    team.run(rnnt_back_range, (g, edges, *lengths, out), len(edges))
    return (out,)


def _whole(x: Any) -> bool:
    return type(x) is np.ndarray and x.dtype == np.int64 and x.flags.carray
