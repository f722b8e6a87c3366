"""Products of matrices by cuBLAS, called directly.

Why: CuPy refuses to call cuBLAS while a stream records a graph, which NVIDIA allows.
Matrices stand row by row here and column by column there: what is x · y here is
yᵀ · xᵀ there, in the same memory.
"""

import ctypes
from typing import Any

import numpy as np

WORKSPACE = 32 << 20  # bytes that products may use beside their inputs and results
REAL = {"e": 2, "f": 0, "d": 1}  # cudaDataType
COMPUTE = {"e": 68, "f": 68, "d": 70}  # CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_64F
DEFAULT = -1  # CUBLAS_GEMM_DEFAULT
Matrix = tuple[int, int, int, int]  # address, turned (1) or not, row length, step


class Cublas:
    """Products on one stream, into new arrays."""

    def __init__(self, cupy: Any, stream: Any):
        self.cupy = cupy
        cupy.cuda.device.get_cublas_handle()  # by now the library is loaded
        major = cupy.cuda.runtime.runtimeGetVersion() // 1000
        self._library = _library(major)
        self._handle = ctypes.c_void_p()
        self._check(self._library.cublasCreate_v2(ctypes.byref(self._handle)))
        self._workspace = cupy.empty(WORKSPACE, np.uint8)
        self.use(stream)

    def use(self, stream: Any) -> None:
        """From now on, products are computed on this stream."""
        library, handle = self._library, self._handle
        self._check(library.cublasSetStream_v2(handle, ctypes.c_void_p(stream.ptr)))
        where = ctypes.c_void_p(self._workspace.data.ptr)
        size = ctypes.c_size_t(WORKSPACE)
        self._check(library.cublasSetWorkspace_v2(handle, where, size))

    def matmul(self, x: Any, y: Any) -> Any:
        """x · y, of matrices or stacks of them; None for what cuBLAS does not take.

        Shapes: x [..., m, k], y [..., k, n] -> [..., m, n]
        """
        char = x.dtype.char
        if x.dtype != y.dtype or char not in REAL or x.ndim < 2 or y.ndim < 2:
            return None
        (m, k), n = x.shape[-2:], y.shape[-1]
        if y.shape[-2] != k:
            return None
        lead = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        count = int(np.prod(lead))
        if 0 in (m, k, n, count):
            return self.cupy.zeros((*lead, m, n), x.dtype)
        out = self.cupy.empty((*lead, m, n), x.dtype)
        x, x_step = self._stack(x, lead)
        y, y_step = self._stack(y, lead)
        (x, x_turned, x_length), (y, y_turned, y_length) = self._rows(x), self._rows(y)
        scalar = ctypes.c_double if char == "d" else ctypes.c_float
        real = ctypes.c_int(REAL[char])
        self._check(
            self._library.cublasGemmStridedBatchedEx(
                self._handle,
                ctypes.c_int(y_turned),
                ctypes.c_int(x_turned),
                *map(ctypes.c_int, (n, m, k)),
                ctypes.byref(scalar(1)),
                *_given(y, real, y_length, y_step),
                *_given(x, real, x_length, x_step),
                ctypes.byref(scalar(0)),
                *_given(out, real, n, m * n),
                ctypes.c_int(count),
                ctypes.c_int(COMPUTE[char]),
                ctypes.c_int(DEFAULT),
            )
        )
        return out

    def _stack(self, a: Any, lead: tuple[int, ...]) -> tuple[Any, int]:
        """A stack of matrices along one axis, and the step from one to the next."""
        inner = a.shape[-2:]
        if a.size == inner[0] * inner[1]:
            return a.reshape(1, *inner), 0
        stack = self.cupy.broadcast_to(a, (*lead, *inner)).reshape(-1, *inner)
        if _row_length(stack) is None:
            stack = self.cupy.ascontiguousarray(stack)
        return stack, stack.strides[0] // stack.itemsize

    def _rows(self, stack: Any) -> tuple[Any, int, int]:
        """A stack whose matrices stand row by row, or turned; and a row's length."""
        found = _row_length(stack)
        if found is None:
            stack = self.cupy.ascontiguousarray(stack)
            return stack, 0, stack.shape[-1]
        return stack, *found

    def _check(self, status: int) -> None:
        if status:
            raise RuntimeError(f"cuBLAS answered {status}")


def _row_length(stack: Any) -> tuple[int, int] | None:
    """Whether matrices stand turned (1) or not (0), and how far apart rows are."""
    rows, columns = stack.shape[-2:]
    down, across = (s // stack.itemsize for s in stack.strides[-2:])
    if across == 1 and down >= columns:
        return 0, down
    if down == 1 and across >= rows:
        return 1, across
    return None


def _given(array: Any, real: Any, length: int, step: int) -> tuple[Any, ...]:
    return (
        ctypes.c_void_p(array.data.ptr),
        real,
        ctypes.c_int(length),
        ctypes.c_longlong(step),
    )


def _library(major: int) -> Any:
    """cuBLAS of a CUDA version, as CuPy has loaded it."""
    names = [f"libcublas.so.{major}", f"cublas64_{major}.dll", "libcublas.so"]
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise RuntimeError(f"cuBLAS was not found: {', '.join(names)}")
