"""CTC and RNN-T: the paths of each sequence in two sweeps.

A row of CTC has the blanks and the labels apart, so that its steps are plain loops, and
log Σ exp is made of polynomials, so that they run in vector registers. What no path
reaches is far below everything rather than −inf. Rows are moved toward 0 now and then,
or float32 would lose the fourth digit beside a log probability of −700.

Measured by the family sequence_loss, of tests/bench.
"""

import math
from typing import Any

import numpy as np

from burnbook.backend.compiled.recurrent import exponential
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import (
    counting_part,
    f32,
    kernel_code,
    part,
)
from burnbook.backend.compiled.runtime.registry import kernel, plain_f32
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.compiled.runtime.vector_math import float_of
from burnbook.ops.sequence_loss import ctc_loss, log_softmax_at, rnnt_loss

f64 = np.float64
Lengths = tuple[int, ...]
FAR, NEVER, OFTEN = f32(-1e30), f32(-1e28), 8
NOWHERE = f64(-np.inf)
LEAST, ONE, HALF, MORE = f32(-80), f32(1), f32(0.5), f32(1.5)
LN2 = f32(math.log(2))
LOWEST, SIGN, REST = np.int32(-(2**31)), np.int32(31), np.int32(2**31 - 1)
GRAIN = 16  # rows
A1, A3, A5, A7, A9 = f32(2), f32(2 / 3), f32(2 / 5), f32(2 / 7), f32(2 / 9)


@part
def low_exp(x):
    """eˣ for x ≤ 0; what is below e⁻⁸⁰ counts as that."""
    s, p = exponential(LEAST if x < LEAST else x)
    return s + s * p


@part
def near_log(v):
    """log v for 1 ≤ v ≤ 3, by 2 artanh((v − 1) / (v + 1)), v halved above 1.5."""
    w = v * HALF if v > MORE else v
    z = (w - ONE) / (w + ONE)
    q = z * z
    log = z * (A1 + q * (A3 + q * (A5 + q * (A7 + q * A9))))
    return log + LN2 if v > MORE else log


@part
def two_logs(a, b):
    """log(exp a + exp b)."""
    most, less = (b, a) if a < b else (a, b)
    return most + near_log(ONE + low_exp(less - most))


@part
def three_logs(a, b, c):
    """log(exp a + exp b + exp c)."""
    high, low = (b, a) if a < b else (a, b)
    most, next_ = (c, high) if high < c else (high, c)
    return most + near_log(ONE + low_exp(low - most) + low_exp(next_ - most))


@part
def ctc_emit(row, y, blank, e):
    """The log probabilities of the labels, from place 1 on, and that of the blank."""
    for k in range(y.size):
        u = row[y[k]]
        e[k + 1] = FAR if u < FAR else u  # NaN stays
    u = row[blank]
    return FAR if u < FAR else u


@part
def ctc_skips(y, skip):
    """0 where a label may follow the label before, with no blank between."""
    skip[:] = FAR
    for k in range(1, y.size):
        if y[k] != y[k - 1]:
            skip[k] = f32(0)


@kernel_code("void(f4[::1], f4[::1], f4[::1], f4, f4[::1], f4[::1], f4[::1])")
def ctc_ahead(b, a, e, eb, skip, nb, na):
    """One frame more: blank k comes from label k − 1, label k from blank k.

    Label k stands at place k + 1 of its row.
    """
    for k in range(nb.size):
        nb[k] = two_logs(b[k], a[k]) + eb
    here, there, said = a[1:], na[1:], e[1:]
    for k in range(skip.size - 1):
        there[k] = three_logs(here[k], b[k], a[k] + skip[k]) + said[k]


@kernel_code("void(f4[::1], f4[::1], f4[::1], f4, f4[::1], f4[::1], f4[::1])")
def ctc_back(b, a, e, eb, skip, nb, na):
    """One frame less, the other way round."""
    here, said = a[1:], e[1:]
    for k in range(nb.size):
        nb[k] = two_logs(b[k] + eb, here[k] + said[k])
    there, last, final, later = na[1:], a[2:], e[2:], skip[1:]
    ahead = b[1:]
    for k in range(skip.size - 1):
        skipped = last[k] + final[k] + later[k]
        there[k] = three_logs(here[k] + said[k], ahead[k] + eb, skipped)


@kernel_code("f4(f4[::1], f4[::1])")
def to_zero(b, a):
    """Move a row so that its largest element is 0; gives by how much."""
    most = FAR
    for k in range(b.size):
        most = max(most, max(b[k], a[k]))
    if most < NEVER:
        return f32(0)
    for k in range(b.size):
        b[k] -= most
        a[k] -= most
    return most


@kernel_code("void(f4[:,::1], f4[::1], f4[::1], f4, f4, i8[::1], i8, f4[::1])")
def ctc_share(row, b, a, shift, g, y, blank, out):
    """Take from each class the chance that a path is there at this frame, times g.

    The chances are those of all states, so they add up to 1.
    """
    u, v = row[0], row[1]
    silent, total = f32(0), f32(0)
    for k in range(u.size):
        silent += low_exp(u[k] + b[k] + shift)
    for k in range(v.size):
        v[k] = low_exp(v[k] + a[k] + shift)
        total += v[k]
    share = g / (silent + total)
    out[blank] -= silent * share
    for k in range(y.size):
        out[y[k]] -= v[k + 1] * share


@counting_part
def ctc_sweep(x, i, y, frames, blank, rows, moved):
    """Fill the rows of alpha, one before the first frame, and add up the ends."""
    s = y.size
    e, skip = np.empty(s + 2, f32), np.empty(s + 1, f32)
    ctc_skips(y, skip)
    rows[0] = FAR
    rows[:, 1, 0] = FAR
    rows[0, 0, 0] = f32(0)
    moved[0] = 0.0
    for t in range(frames):
        old, new = rows[t], rows[t + 1]
        eb = ctc_emit(x[t, i], y, blank, e)
        ctc_ahead(old[0], old[1], e, eb, skip, new[0], new[1])
        moved[t + 1] = moved[t]
        if t % OFTEN == OFTEN - 1:
            moved[t + 1] += to_zero(new[0], new[1])
    end = two_logs(rows[frames, 0, s], rows[frames, 1, s])
    return -np.inf if end < NEVER else end + moved[frames]


@kernel_code("void(f4[:,:,::1], i8[:,::1], i8[::1], i8[::1], i8, f4[::1], i8, i8)")
def ctc_range(x, targets, frames, labels, blank, out, start, stop):
    """The loss of some sequences."""
    for i in range(start, stop):
        y, count = targets[i, : labels[i]], frames[i]
        rows, moved = np.empty((count + 1, 2, y.size + 1), f32), np.empty(count + 1)
        out[i] = -ctc_sweep(x, i, y, count, blank, rows, moved)


@kernel_code(
    "void(f4[::1], f4[:,:,::1], i8[:,::1], i8[::1], i8[::1], i8, f4[:,:,::1], i8, i8)"
)
def ctc_back_range(g, x, targets, frames, labels, blank, out, start, stop):
    """The gradients of some sequences."""
    for i in range(start, stop):
        out[:, i] = f32(0)
        y, count = targets[i, : labels[i]], frames[i]
        s = y.size
        rows, moved = np.empty((count + 1, 2, s + 1), f32), np.empty(count + 1)
        total = ctc_sweep(x, i, y, count, blank, rows, moved)
        if total == -np.inf:
            continue
        e, skip = np.empty(s + 2, f32), np.empty(s + 1, f32)
        e[s + 1] = FAR
        ctc_skips(y, skip)
        pair, spare = np.empty((2, s + 2), f32), np.empty((2, s + 2), f32)
        pair[:], spare[:] = FAR, FAR
        pair[0, s] = f32(0)
        if s:
            pair[1, s] = f32(0)
        done = 0.0
        for t in range(count - 1, -1, -1):
            b, a = pair[0, : s + 1], pair[1]
            eb = ctc_emit(x[t, i], y, blank, e)
            shift = f32(moved[t + 1] + done - total)
            ctc_share(rows[t + 1], b, a, shift, g[i], y, blank, out[t, i])
            ctc_back(b, a, e, eb, skip, spare[0, : s + 1], spare[1])
            pair, spare = spare, pair
            if t % OFTEN == 0:
                done += to_zero(pair[0, : s + 1], pair[1, : s + 1])


@kernel(ctc_loss)
def ctc_kernel(log_probs, targets, *, input_lengths, target_lengths, blank):
    lengths = np.array(input_lengths, np.int64), np.array(target_lengths, np.int64)
    if not _ctc_fits(log_probs, targets, lengths[1], blank):
        return None
    out = np.empty(len(targets), f32)
    args = (log_probs, targets, *lengths, blank, out)
    threads.run(ctc_range, args, len(targets))
    return out


@kernel(ctc_loss.backward)
def ctc_backward_kernel(
    g, log_probs, targets, *, needs, input_lengths, target_lengths, blank
):
    lengths = np.array(input_lengths, np.int64), np.array(target_lengths, np.int64)
    if not _ctc_fits(log_probs, targets, lengths[1], blank):
        return None
    out = empty(log_probs.shape)
    args = (_line(g), log_probs, targets, *lengths, blank, out)
    threads.run(ctc_back_range, args, len(targets))
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
def largest(bits):
    """The largest of some float32, by their bits, which compare in registers."""
    most = LOWEST
    for j in range(bits.size):
        b = bits[j]
        most = max(most, b ^ ((b >> SIGN) & REST))  # in the order of the numbers
    return float_of(most ^ ((most >> SIGN) & REST))


@kernel_code("void(f4[:,::1], i4[:,::1], i8[:,::1], f4[:,::1], i8, i8)")
def pick_range(x, bits, picked, out, start, stop):
    """Some elements of log softmax of some rows."""
    for i in range(start, stop):
        row, most, total = x[i], largest(bits[i]), f32(0)
        for j in range(row.size):
            total += low_exp(row[j] - most)
        log = most + np.log(total)
        for k in range(picked.shape[1]):
            out[i, k] = row[picked[i, k]] - log


@kernel_code("void(f4[:,::1], f4[:,::1], i4[:,::1], i8[:,::1], f4[:,::1], i8, i8)")
def pick_back_range(g, x, bits, picked, out, start, stop):
    """The gradients of some rows: −softmax Σ g, and g where it was picked."""
    for i in range(start, stop):
        row, made, most, total = x[i], out[i], largest(bits[i]), f32(0)
        for j in range(row.size):
            made[j] = low_exp(row[j] - most)
            total += made[j]
        share = f32(0)
        for k in range(g.shape[1]):
            share -= g[i, k]
        share /= total
        for j in range(row.size):
            made[j] *= share
        for k in range(g.shape[1]):
            made[picked[i, k]] += g[i, k]


@kernel(log_softmax_at)
def pick_kernel(x, indices):
    if not _pick_fits(x, indices):
        return None
    rows, picked = _rows(x), _rows(indices)
    out = np.empty(indices.shape, f32)
    args = (rows, rows.view(np.int32), picked, _rows(out))
    threads.run(pick_range, args, len(rows), GRAIN)
    return out


@kernel(log_softmax_at.backward)
def pick_backward_kernel(g, x, indices, *, needs):
    if not _pick_fits(x, indices):
        return None
    rows, picked, out = _rows(x), _rows(indices), empty(x.shape)
    args = (_rows(g), rows, rows.view(np.int32), picked, _rows(out))
    threads.run(pick_back_range, args, len(rows), GRAIN)
    return out, None


def _pick_fits(x: Any, indices: Any) -> bool:
    if not plain_f32(x) or indices.dtype != np.int64 or not x.size:
        return False
    return bool(indices.min() >= 0 and indices.max() < x.shape[-1])


def _rows(x: Any) -> Any:
    """An array in one piece, as a matrix of its last dim."""
    return np.ascontiguousarray(x).reshape(-1, x.shape[-1])


@part
def add_logs(a, b):
    """log(exp a + exp b) in float64; NaN stays."""
    most, less = (b, a) if a < b else (a, b)
    if less == NOWHERE:
        return most
    return most + np.log1p(np.exp(less - most))


@part
def rnnt_sweep(e, frames, labels, alpha):
    """Fill the nodes (t, u) of alpha and give the sum of all paths."""
    for t in range(frames):
        for u in range(labels + 1):
            total = NOWHERE
            if t == 0 and u == 0:
                total = 0.0
            if t > 0:
                total = alpha[t - 1, u] + e[t - 1, u, 0]
            if u > 0:
                total = add_logs(total, alpha[t, u - 1] + e[t, u - 1, 1])
            alpha[t, u] = total
    return alpha[frames - 1, labels] + e[frames - 1, labels, 0]


@kernel_code("void(f4[:,:,:,::1], i8[::1], i8[::1], f4[::1], i8, i8)")
def rnnt_range(edges, frames, labels, out, start, stop):
    """The loss of some sequences."""
    for i in range(start, stop):
        alpha = np.empty((frames[i], labels[i] + 1), f64)
        out[i] = -rnnt_sweep(edges[i], frames[i], labels[i], alpha)


@kernel_code("void(f4[::1], f4[:,:,:,::1], i8[::1], i8[::1], f4[:,:,:,::1], i8, i8)")
def rnnt_back_range(g, edges, frames, labels, out, start, stop):
    """The gradients of some sequences."""
    for i in range(start, stop):
        out[i] = 0.0
        e, d, last, most = edges[i], out[i], frames[i] - 1, labels[i]
        alpha = np.empty((last + 1, most + 1), f64)
        total = rnnt_sweep(e, last + 1, most, alpha)
        if total == NOWHERE:
            continue
        beta = np.empty(most + 2, f64)
        beta[:] = NOWHERE
        beta[most] = 0.0
        for t in range(last, -1, -1):
            for u in range(most, -1, -1):
                ahead = NOWHERE
                if t < last or u == most:
                    ahead = e[t, u, 0] + beta[u]
                    d[t, u, 0] = -g[i] * np.exp(alpha[t, u] + ahead - total)
                if u < most:
                    said = e[t, u, 1] + beta[u + 1]
                    d[t, u, 1] = -g[i] * np.exp(alpha[t, u] + said - total)
                    ahead = add_logs(ahead, said)
                beta[u] = ahead


@kernel(rnnt_loss)
def rnnt_kernel(edges, *, logit_lengths, target_lengths):
    if not plain_f32(edges):
        return None
    lengths = np.array(logit_lengths, np.int64), np.array(target_lengths, np.int64)
    out = np.empty(len(edges), f32)
    threads.run(rnnt_range, (edges, *lengths, out), len(edges))
    return out


@kernel(rnnt_loss.backward)
def rnnt_backward_kernel(g, edges, *, needs, logit_lengths, target_lengths):
    if not plain_f32(edges):
        return None
    lengths = np.array(logit_lengths, np.int64), np.array(target_lengths, np.int64)
    out = empty(edges.shape)
    threads.run(rnnt_back_range, (_line(g), edges, *lengths, out), len(edges))
    return (out,)


def _line(g: Any) -> Any:
    """The gradients in one piece; those of a sum are one number, many times."""
    return np.array(g, f32)


def _whole(x: Any) -> bool:
    return type(x) is np.ndarray and x.dtype == np.int64 and x.flags.carray
