"""What the kernels of lstm and gru share."""

from typing import Any

from burnbook.backend.cuda.source import C_TYPES

# Thread k serves number j of the state of sequence b. AT is its place at step t of an
# array [b, steps, n]; blocks of gates are n numbers apart.
STEP = r"""
#define STAND \
    long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x; \
    if (k >= count) return; \
    long long b = k / n, j = k % n;
#define AT(t) ((b * steps + (t)) * n + j)
#define GATES(t, gates) ((b * steps + (t)) * (gates) * n + j)
__device__ __forceinline__ REAL soft(REAL x) {
    REAL low = exp(-fabs(x));
    return (x >= 0 ? (REAL)1 : low) / ((REAL)1 + low);
}
"""


def first_state(xp: Any, given: Any, shape: tuple[int, int], dtype: Any) -> Any:
    """Memory for the state that steps hand on, with the first one in it."""
    return xp.zeros(shape, dtype) if given is None else xp.array(given, order="C")


def step_before(t: int, steps: int, reverse: bool) -> int:
    """The step that was taken before step t; -1 where there was none."""
    if reverse:
        return t + 1 if t + 1 < steps else -1
    return t - 1


def words_for(x: Any) -> dict[str, str]:
    """The open words of the kernels of recurrent layers."""
    return {"REAL": C_TYPES[x.dtype.char]}
