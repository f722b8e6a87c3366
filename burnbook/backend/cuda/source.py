"""What the GPU's kernels share: their list, sources, sizes.

A kernel takes CuPy before what its op takes. Its text is C++ with a few macros left
open (`REAL`, the element type; `LANES`, how many threads share a row); every choice of
them is one program, which CuPy compiles when it is first wanted and keeps on disk for
the next process.
"""

import math
from functools import cache
from typing import Any

import numpy as np

from burnbook.backend.kernels import Kernel, kernels_in

KERNELS: dict[Any, Kernel] = {}
kernel = kernels_in(KERNELS)
THREADS = 256  # of a block
WARP = 32  # threads that run in step and read each other's registers
NARROW = 1024  # elements of a row that one warp still takes
MOST = 1 << 30  # elements that kernels number with 32 bits; beyond, the plain code runs
NOTHING = np.uint64(0)  # the address of an array that is not there
C_TYPES = {"f": "float", "d": "double"}


def served(*arrays: Any) -> bool:
    """Whether these are all of one type that kernels are written for.

    None stands for an input that is not there.
    """
    chars = {array.dtype.char for array in arrays if array is not None}
    return len(chars) == 1 and chars <= C_TYPES.keys()


@cache
def program(xp: Any, code: str, name: str, **words: Any) -> Any:
    """One kernel of a source whose open words are filled in, compiled once."""
    lines = [f"#define {word} {value}\n" for word, value in words.items()]
    return xp.RawKernel("".join(lines) + code, name)


def blocks(count: int, per_block: int = THREADS) -> tuple[int]:
    """How many blocks of threads it takes for so many elements."""
    return (math.ceil(count / per_block),)


def each(
    xp: Any, code: str, name: str, count: int, args: tuple[Any, ...], **words: Any
) -> None:
    """Run a kernel with a thread for each of `count` elements; it is told the count."""
    if count:
        run = program(xp, code, name, **words)
        run(blocks(count), (THREADS,), (np.int64(count), *args))


def each_row(
    xp: Any,
    code: str,
    name: str,
    sizes: tuple[int, int],
    args: tuple[Any, ...],
    **words: Any,
) -> None:
    """Run a kernel with a warp for each row, or a block where rows are long.

    sizes: how many rows of how many elements; the kernel is told both first.
    """
    rows, size = sizes
    if rows and size:
        lanes = WARP if size <= NARROW else THREADS
        run = program(xp, code, name, LANES=lanes, **words)
        per_block = THREADS // lanes
        given = (np.int64(rows), np.int64(size), *args)
        run(blocks(rows, per_block), (lanes, per_block), given)


def whole(xp: Any, *arrays: Any) -> tuple[Any, ...]:
    """These arrays, each in one piece; a missing one as the address of nothing."""
    return tuple([NOTHING if a is None else xp.ascontiguousarray(a) for a in arrays])


def product(xp: Any, x: Any, y: Any) -> Any:
    """x · y, of matrices or stacks of them, in one piece for a kernel to write on."""
    return xp.ascontiguousarray(xp.matmul(x, y))


# Sums and maxima over the LANES threads that share a row, known to all of them. The
# order of addition is fixed, so the same numbers give the same sum.

ROWS = r"""
#define ROW ((long long)blockIdx.x * blockDim.y + threadIdx.y)
#define LOWEST log((REAL)0)  // minus infinity
#define EACH(j) for (long long j = threadIdx.x; j < size; j += LANES)

__device__ __forceinline__ REAL larger(REAL a, REAL b) { return b > a ? b : a; }
__device__ __forceinline__ REAL plus(REAL a, REAL b) { return a + b; }

#if LANES > 32
#define ACROSS(join) \
    __shared__ REAL part[LANES / 32]; \
    __syncthreads(); \
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value; \
    __syncthreads(); \
    value = part[0]; \
    for (int warp = 1; warp < LANES / 32; ++warp) value = join(value, part[warp]);
#else
#define ACROSS(join)
#endif
#define OVER_LANES(name, join) \
__device__ __forceinline__ REAL name(REAL value) { \
    for (int far = 16; far > 0; far /= 2) \
        value = join(value, __shfl_xor_sync(0xffffffffu, value, far)); \
    ACROSS(join) \
    return value; \
}
OVER_LANES(total_of, plus)
OVER_LANES(largest_of, larger)
"""
