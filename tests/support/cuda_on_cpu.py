"""The GPU's kernels on a CPU: their text compiled as C++, and run thread by thread.

`Cuda` is a backend whose arrays NumPy may not touch (far_arrays.py), with the kernels
of burnbook/backend/cuda/. Threads of a block that wait for each other are fibers: those
of a warp run as far as they can, then the next warp. A thread that others wait for in
vain, which hangs a GPU, ends the run with an error.
"""

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from burnbook.backend.base import ArraySpace
from burnbook.backend.cuda import draw_words, kernels
from burnbook.backend.cuda.source import C_TYPES
from tests.support.far_arrays import Far, FarModule, unwrap, wrap

GPP = ["g++", "-O0", "-ffp-contract=off", "-fPIC", "-w"]
SHIM = r"""
#include <math.h>
#include <ucontext.h>
#define __device__ static
#define __global__
#define __shared__ static
#define __forceinline__ inline
struct Dim { unsigned x, y, z; };
static Dim blockIdx, threadIdx, blockDim, gridDim;
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{ return (unsigned long long)(((unsigned __int128)a * b) >> 64); }

enum { MOST = 1024, STACK = 1 << 15 };
static ucontext_t home, fiber[MOST];
static char stack[MOST][STACK];
static int threads, now, hung, ended[MOST], waits[2][MOST];  // of a warp, of the block
static double shown[MOST];
static void (*work)();

static void stand_at(int t) {
    now = t;
    threadIdx.x = t % blockDim.x, threadIdx.y = t / blockDim.x;
}
// Wait until all of a group, threads first to last (not last), have waited as often.
static void wait_for(int kind, int first, int last) {
    int wanted = ++waits[kind][now];
    for (int t = first; t < last; ++t)
        while (waits[kind][t] < wanted) swapcontext(&fiber[now], &home);
}
static void __syncthreads() { wait_for(1, 0, threads); }
template <class T> static T __shfl_xor_sync(unsigned mask, T value, int far) {
    int warp = now / 32 * 32;
    shown[now] = value;
    wait_for(0, warp, warp + 32);
    T other = (T)shown[now ^ far];
    wait_for(0, warp, warp + 32);
    return other;
}
static void enter() { work(); ended[now] = 1; }
static int came_to(int first, int last) {
    int far = 0;
    for (int t = first; t < last; ++t) far += ended[t] + waits[0][t] + waits[1][t];
    return far;
}
// One warp runs as far as it can, then the next: who forgot to wait reads too early.
static void run_fibers() {
    for (int t = 0; t < threads; ++t) {
        ended[t] = waits[0][t] = waits[1][t] = 0;
        getcontext(&fiber[t]);
        fiber[t].uc_stack.ss_sp = stack[t], fiber[t].uc_stack.ss_size = STACK;
        fiber[t].uc_link = &home;
        makecontext(&fiber[t], enter, 0);
    }
    for (int came = -1, left = 1; left;) {
        int before = came;
        for (int warp = came = left = 0; warp < threads; warp += 32) {
            int last = min(warp + 32, threads), far = -1, farther = came_to(warp, last);
            for (; far < farther; far = farther, farther = came_to(warp, last))
                for (int t = warp; t < last; ++t)
                    if (!ended[t]) stand_at(t), swapcontext(&home, &fiber[t]);
            came += far;
            for (int t = warp; t < last; ++t) left += !ended[t];
        }
        if (left && came == before) { hung = 1; return; }
    }
}
static int run_grid(const Dim* sizes, bool waiting) {
    gridDim = sizes[0], blockDim = sizes[1];
    threads = blockDim.x * blockDim.y, hung = 0;
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
            if (hung) return 1;
            else if (waiting) run_fibers();
            else for (int t = 0; t < threads; ++t) stand_at(t), work();
    return hung;
}
"""
HEAD = re.compile(r'extern "C" __global__ void (\w+)\(([^{]*?)\)\s*\{')
C_NUMBERS = {"f": ctypes.c_float, "d": ctypes.c_double, "i": ctypes.c_int32}
C_NUMBERS |= {"l": ctypes.c_int64, "L": ctypes.c_uint64, "I": ctypes.c_uint32}


class CpuCuda(FarModule):
    """An array module with CuPy's two ways to compile a kernel, on a C++ compiler."""

    def RawKernel(self, code, name):  # noqa: N802 - CuPy's name
        run = getattr(library(code), f"run_{name}")

        def launch(grid, block, args):
            sizes = [*grid, 1, 1][:3] + [*block, 1, 1][:3]
            hung = run((ctypes.c_uint32 * 6)(*sizes), *map(as_c, args))
            assert not hung, f"{name}: threads wait for one that does not come"

        return launch

    def ElementwiseKernel(self, takes, gives, formula, name):  # noqa: N802
        takes, gives = ([w.split()[1] for w in t.split(",")] for t in (takes, gives))

        def launch(*values):
            values = [unwrap(v) for v in values]
            news = [np.empty(values[0].shape, values[0].dtype) for _ in gives]
            lone = [n for n, v in zip(takes, values, strict=True) if not np.ndim(v)]
            text = element_code(takes + gives, lone, formula, name, news[0].dtype)
            size, given = np.int64(news[0].size), (*values, *news)
            args = [wrap(np.ascontiguousarray(v)) if np.ndim(v) else v for v in given]
            self.RawKernel(text, name)((size // 256 + 1,), (256,), (size, *args))
            return wrap(news if len(news) > 1 else news[0])

        return launch


def element_code(names, lone, formula, name, dtype):
    """A kernel made of a formula for one element, as CuPy makes it."""
    header = ", ".join(f"T{'' if n in lone else '*'} {n}_" for n in names)
    for word in names:
        value = f"{word}_" if word in lone else f"{word}_[at]"
        formula = re.sub(rf"\b{word}\b", value, formula)
    return f"""
typedef {C_TYPES[dtype.char]} T;
extern "C" __global__ void {name}(long long size, {header}) {{
    long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= size) return;
    {formula}
}}
"""


_texts = []


def texts():
    """All that was compiled so far."""
    return tuple(_texts)


@cache
def library(code):
    """The kernels of a text, each with a function that runs it over a grid."""
    _texts.append(code)
    source, made = (shim().with_name(f"{len(_texts)}.{end}") for end in ("cpp", "so"))
    runners = "".join(runner(*head, "__shfl" in code) for head in HEAD.findall(code))
    source.write_text(code.replace('extern "C" __global__', "static") + runners)
    given = ["-shared", "-include", shim(), "-o", made, source]
    subprocess.run([*GPP, *given], check=True)
    return ctypes.CDLL(str(made))


@cache
def shim():
    """What stands in for CUDA, read by the compiler beforehand."""
    header = Path(tempfile.mkdtemp(dir=os.environ["BURNBOOK_CACHE"])) / "shim.h"
    header.write_text(SHIM)
    subprocess.run(
        [*GPP, "-x", "c++-header", "-o", f"{header}.gch", header], check=True
    )
    return header


def runner(name, params, waits):
    """A C function that runs a kernel over a grid of threads; fibers if they wait."""
    names = [part.split()[-1].lstrip("*") for part in params.split(",")]
    kept = "".join(f"static decltype({n}) kept_{n}; kept_{n} = {n}; " for n in names)
    call = f"{name}({', '.join(f'kept_{n}' for n in names)})"
    return (
        f'extern "C" int run_{name}(const Dim* sizes, {params}) {{ {kept}'
        f"work = [] {{ {call}; }}; return run_grid(sizes, {str(waits).lower()}); }}\n"
    )


def as_c(value):
    value = unwrap(value)
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous, "a kernel reads memory in one piece"
        return value.ctypes.data_as(ctypes.c_void_p)
    return C_NUMBERS[np.dtype(type(value)).char](value)


class Cuda(Far):
    """What `Cupy` is, with a C++ compiler for the GPU; it counts who answered."""

    interned = False

    def __init__(self, float="f32", int="i64"):  # noqa: A002 - as in Backend
        if not shutil.which("g++"):
            pytest.skip("no C++ compiler")
        super().__init__(float, int)
        self.answers = []  # the ops that a kernel answered
        self.xp = Space(CpuCuda(), self)
        self.kernels = {
            op: self.counted(op, kernel)
            for op, kernel in kernels(self.xp.module).items()
        }

    def counted(self, op, kernel):
        def run(*values, **attrs):
            out = kernel(*values, **attrs)
            if out is not None:
                self.answers.append(op)
            return out

        return run


class Space(ArraySpace):
    """As in cupy.py: random words come from a kernel."""

    def philox(self, count, key):
        return draw_words(self.module, count, key)
