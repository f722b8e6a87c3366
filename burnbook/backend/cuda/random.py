"""Random bits on the GPU, drawn where they are needed.

Ten rounds of Philox4x64 per thread give four words of 64 bits each, the same ones that
NumPy's generator gives.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from burnbook.backend.cuda.source import C_TYPES, THREADS, blocks, kernel, program
from burnbook.ops.random import CHANCES, Key, dropout, dropout_limits

PHILOX = r"""
typedef unsigned long long u64;
__device__ __forceinline__ void philox(u64 block, u64 low, u64 high, u64 word[4]) {
    u64 a = block + 1, b = 0, c = 0, d = 0;  // numpy.random.Philox begins at 1
    for (int round = 0; round < 10; ++round) {
        u64 a_high = __umul64hi(0xD2E7470EE14C6C93ULL, a);
        u64 a_low = 0xD2E7470EE14C6C93ULL * a;
        u64 c_high = __umul64hi(0xCA5A826395121157ULL, c);
        u64 c_low = 0xCA5A826395121157ULL * c;
        a = c_high ^ b ^ low;
        b = c_low;
        c = a_high ^ d ^ high;
        d = a_low;
        low += 0x9E3779B97F4A7C15ULL;
        high += 0xBB67AE8584CAA73BULL;
    }
    word[0] = a; word[1] = b; word[2] = c; word[3] = d;
}
"""

WORDS = (
    PHILOX
    + r"""
extern "C" __global__ void draw_words(u64* out, u64 count, u64 low, u64 high) {
    u64 block = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * block >= count) return;
    u64 word[4];
    philox(block, low, high, word);
    for (int j = 0; j < 4 && 4 * block + j < count; ++j) out[4 * block + j] = word[j];
}
"""
)

DROPOUT = (
    PHILOX
    + r"""
extern "C" __global__ void draw_dropout(
    const REAL* x, REAL* out, u64 count, u64 low, u64 high,
    unsigned int threshold, REAL scale
) {
    u64 block = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (16 * block >= count) return;
    u64 word[4];
    philox(block, low, high, word);
    for (int j = 0; j < 16 && 16 * block + j < count; ++j) {
        unsigned int chance = (word[j / 4] >> (16 * (j % 4))) & 0xFFFF;
        out[16 * block + j] = x[16 * block + j] * (chance >= threshold ? scale : 0);
    }
}
"""
)


@dataclass(frozen=True)
class DeviceKey:
    """A key whose two numbers stand in GPU memory, where each run may write others.

    Shapes: array [2] of uint64, and the same on the CPU
    """

    array: Any
    here: np.ndarray

    def set(self, key: Key) -> None:
        """Note the numbers of a key, which are sent there before the next run."""
        self.here[:] = key


def draw_words(xp: Any, count: int, key: Key | DeviceKey) -> Any:
    """The first `count` words of a key's sequence, as 64-bit integers.

    Shapes: -> [count]
    """
    out = xp.empty(count, dtype=np.uint64)
    if count:
        code, numbers = _keyed(WORDS, key)
        run = program(xp, code, "draw_words")
        run(blocks(count, 4 * THREADS), (THREADS,), (out, np.uint64(count), *numbers))
    return out


def _keyed(code: str, key: Key | DeviceKey) -> tuple[str, tuple[Any, ...]]:
    """A kernel's text and arguments for a key, as two numbers or as their address."""
    if not isinstance(key, DeviceKey):
        return code, (np.uint64(key[0]), np.uint64(key[1]))
    code = code.replace("count, u64 low, u64 high", "count, const u64* key")
    return code.replace("block, low, high", "block, key[0], key[1]"), (key.array,)


@kernel(dropout)
def draw_dropout(xp, x, *, prob, key):
    """dropout in one pass: each thread draws the bits of sixteen elements.

    Shapes: x [...] -> [...]
    """
    threshold, scale = dropout_limits(prob)
    real = C_TYPES.get(x.dtype.char)
    if real is None or threshold == CHANCES or x.size == 0:
        return None
    x = xp.ascontiguousarray(x)
    out = xp.empty(x.shape, dtype=x.dtype)
    code, numbers = _keyed(DROPOUT, key)
    given = (x, out, np.uint64(x.size), *numbers)
    limits = (np.uint32(threshold), x.dtype.type(scale))
    run = program(xp, code, "draw_dropout", REAL=real)
    run(blocks(x.size, 16 * THREADS), (THREADS,), (*given, *limits))
    return out
