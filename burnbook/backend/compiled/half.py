"""Half precision by the processor's own instructions: float16 and the bits of bf16.

NumPy rounds to float16 number by number, in branches; a processor has one instruction
for eight or sixteen of them. The results are the same bit for bit, but for a NaN that
signals: it becomes a quiet one.

Measured by the family shape (cast), of tests/bench.
"""

from types import SimpleNamespace

import numpy as np

from burnbook.backend.compiled.runtime import cache
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import exact_code, intrinsic, ir, types
from burnbook.backend.compiled.runtime.thread_pool import threads

GRAIN = 1 << 16  # numbers of a part
F16, F32, U16 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.uint16)
SERVED = cache.has_half_instructions()


@intrinsic
def rounded_half(_context, number):
    """The bits of the float16 that is nearest to a float32, ties to even."""

    def code(_context, builder, _signature, arguments):
        half = builder.fptrunc(arguments[0], ir.HalfType())
        return builder.bitcast(half, ir.IntType(16))

    return types.uint16(types.float32), code


@intrinsic
def widened_half(_context, bits):
    """The float32 that has the value of a float16, given by its bits."""

    def code(_context, builder, _signature, arguments):
        half = builder.bitcast(arguments[0], ir.HalfType())
        return builder.fpext(half, ir.FloatType())

    return types.float32(types.uint16), code


@exact_code("void(f4[::1], u2[::1], i8, i8)")
def to_half_range(x, out, start, stop):
    """The bits of float16, rounded once."""
    for i in range(start, stop):
        out[i] = rounded_half(x[i])


@exact_code("void(u2[::1], f4[::1], i8, i8)")
def from_half_range(x, out, start, stop):
    """The numbers behind the bits of float16, exactly."""
    for i in range(start, stop):
        out[i] = widened_half(x[i])


@exact_code("void(u4[::1], u2[::1], i8, i8)")
def to_upper_range(x, out, start, stop):
    """The upper half of the bits, rounded to nearest even; a NaN stays a quiet NaN."""
    for i in range(start, stop):
        bits = x[i]
        upper = bits >> np.uint32(16)
        if bits & np.uint32(0x7FFFFFFF) > np.uint32(0x7F800000):
            out[i] = upper | np.uint32(0x40)
        else:
            raised = bits + (np.uint32(0x7FFF) + (upper & np.uint32(1)))
            out[i] = np.uint32(raised) >> np.uint32(16)


def half_cast(x: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Float32 as float16 or the other way round; None where that is not served."""
    if not SERVED or not (x.flags.c_contiguous and x.flags.aligned):
        return None
    row = _lent(x.reshape(-1))
    if x.dtype == F32 and dtype == F16:
        out = empty(row.shape, U16)
        threads.run(to_half_range, (row, out), row.size, GRAIN)
        return out.view(F16).reshape(x.shape)
    if x.dtype == F16 and dtype == F32:
        out = empty(row.shape, F32)
        threads.run(from_half_range, (row.view(U16), out), row.size, GRAIN)
        return out.reshape(x.shape)
    return None


def upper_halves(x: np.ndarray) -> np.ndarray | None:
    """The bits of bf16 of float32 numbers in a row; None where that is not served."""
    if not (x.flags.c_contiguous and x.flags.aligned):
        return None
    out = empty(x.shape, U16)
    threads.run(to_upper_range, (_lent(x).view(np.uint32), out), x.size, GRAIN)
    return out


def _lent(x: np.ndarray) -> np.ndarray:
    """The same memory as an array that may be written, as kernels ask for.

    Why: what records read is locked; these kernels only read it as well. Whoever calls
    them holds the array meanwhile.
    """
    if x.flags.writeable:
        return x
    about = {**x.__array_interface__, "data": (x.ctypes.data, False)}
    return np.asarray(SimpleNamespace(__array_interface__=about))
