"""CuPy kernels for cross-entropy and its gradient, a row at a time, as softmax."""

from typing import Any

import numpy as np

from burnbook.backend.cuda.softmax import SUMS
from burnbook.backend.cuda.source import C_TYPES, each_row, kernel, served
from burnbook.ops.loss import cross_entropy, cross_entropy_logits

CODE = (
    SUMS
    + r"""
extern "C" __global__ void row_losses(
    long long rows, long long size, const REAL* x, const INDEX* targets,
    REAL* losses, int* wrong
) {
    long long row = ROW;
    if (row >= rows) return;
    const REAL* line = x + row * size;
    REAL peak = peak_of(line, size), rest = log(raised(line, size, peak));
    if (threadIdx.x > 0) return;
    long long target = targets[row];
    bool inside = 0 <= target && target < size;
    losses[row] = inside ? rest + peak - line[target] : 0;
    if (!inside) wrong[0] = 1;
}
extern "C" __global__ void loss_slopes(
    long long rows, long long size, const REAL* x, const INDEX* targets,
    const REAL* dout, REAL* out
) {
    long long row = ROW;
    if (row >= rows) return;
    const REAL* line = x + row * size;
    REAL peak = peak_of(line, size), share = 1 / raised(line, size, peak);
    REAL part = dout[0] / rows;
    EACH(j)
        out[row * size + j]
            = (exp(line[j] - peak) * share - (j == targets[row])) * part;
}
"""
)
INDEX_TYPES = {4: "int", 8: "long long"}


@kernel(cross_entropy)
def row_losses(xp, logits, targets):
    """cross_entropy, a row at a time; a wrong target is left to the plain code.

    Shapes: logits [n, c], targets [n] -> [1]
    """
    if not _row_by_row(logits, targets):
        return None
    losses = xp.empty(logits.shape[0], dtype=logits.dtype)
    wrong = xp.zeros(1, dtype=np.int32)
    _losses(xp, "row_losses", logits, targets, losses, wrong)
    return None if int(wrong[0]) else losses.mean(keepdims=True)


@kernel(cross_entropy_logits)
def loss_slopes(xp, dout, logits, targets):
    """The gradient of cross_entropy, a row at a time.

    Shapes: dout [1], logits [n, c], targets [n] -> [n, c]
    Why: the targets were looked at when the loss was computed, so not again.
    """
    if not _row_by_row(logits, targets) or not served(dout, logits):
        return None
    slopes = xp.empty(logits.shape, dtype=logits.dtype)
    _losses(xp, "loss_slopes", logits, targets, dout, slopes)
    return slopes


def _row_by_row(logits: Any, targets: Any) -> bool:
    whole = targets.dtype.kind == "i" and targets.dtype.itemsize in INDEX_TYPES
    return whole and served(logits) and logits.ndim == 2 and logits.size > 0


def _losses(xp: Any, name: str, logits: Any, targets: Any, *arrays: Any) -> None:
    given = [xp.ascontiguousarray(a) for a in (logits, targets)]
    words = _words(logits, targets.dtype.itemsize)
    each_row(xp, CODE, name, logits.shape, (*given, *arrays), **words)


def _words(x: Any, itemsize: int) -> dict[str, str]:
    return {"REAL": C_TYPES[x.dtype.char], "INDEX": INDEX_TYPES[itemsize]}
