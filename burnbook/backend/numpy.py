"""NumPy on the CPU, with a few compiled kernels."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy

from burnbook.backend.base import AnyOp, Attrs, Backend, Value, Values
from burnbook.backend.compiled import kernels_for, limits_for
from burnbook.backend.compiled.runtime.buffers import buffers
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.products import dot, matmul

# What `numpy.errstate(all="ignore")` does, at a sixth of its price; a NumPy that keeps
# its error state elsewhere gets the dear way.
no_errors: Any
set_errstate: Any
reset_errstate: Any
try:
    from numpy._core.umath import (
        _extobj_contextvar,  # pyright: ignore[reportPrivateUsage] - as said above
        _make_extobj,  # pyright: ignore[reportPrivateUsage] - as said above
    )

    no_errors = _make_extobj(all="ignore")
    set_errstate, reset_errstate = _extobj_contextvar.set, _extobj_contextvar.reset
except ImportError:
    no_errors = "ignore"
    set_errstate, reset_errstate = numpy.seterr, lambda before: numpy.seterr(**before)


@contextmanager
def ignoring_errors() -> Generator[None]:
    """NumPy does not warn of NaN and infinity in this block."""
    before = set_errstate(no_errors)
    try:
        yield
    finally:
        reset_errstate(before)


ENOUGH = 1 << 19  # elements to write that are worth another thread


def empty_array(shape: Any, dtype: Any = numpy.float64) -> numpy.ndarray:
    """`numpy.empty`, in memory that is used again once nobody holds it."""
    sizes = shape if isinstance(shape, tuple) else tuple(numpy.atleast_1d(shape))
    return buffers.empty(sizes, numpy.dtype(dtype))


def ones_like(x: numpy.ndarray) -> numpy.ndarray:
    """`numpy.ones_like`, in memory that is used again, written by all threads."""
    out = buffers.empty(x.shape, x.dtype)
    flat = out.reshape(-1)
    threads.run(lambda start, stop: flat[start:stop].fill(1), (), out.size, ENOUGH)
    return out


RUN = 1 << 14  # how often a number that is compared with many is written down


@lru_cache(maxsize=16)
def many_times(number: float, dtype: numpy.dtype) -> numpy.ndarray:
    """A number, RUN times."""
    return numpy.full(RUN, number, dtype=dtype)


def maximum(x: Any, y: Any, **options: Any) -> numpy.ndarray:
    """`numpy.maximum`, quicker where an array is compared with one number.

    Why: NumPy compares two arrays in vector registers, but an array and a number not.
    """
    if (
        options
        or type(x) is not numpy.ndarray
        or type(y) not in (int, float)
        or x.dtype.kind != "f"
        or not x.flags.c_contiguous
    ):
        return numpy.maximum(x, y, **options)
    numbers = many_times(y, x.dtype)
    if x.size <= RUN:
        return numpy.maximum(x, numbers[: x.size].reshape(x.shape))
    out = buffers.empty(x.shape, x.dtype)
    flat, to = x.reshape(-1), out.reshape(-1)
    whole = x.size - x.size % RUN
    lines, to_lines = flat[:whole].reshape(-1, RUN), to[:whole].reshape(-1, RUN)

    def work(start: int, stop: int) -> None:
        numpy.maximum(lines[start:stop], numbers, out=to_lines[start:stop])

    threads.run(work, (), len(lines), ENOUGH // RUN)
    numpy.maximum(flat[whole:], numbers[: x.size - whole], out=to[whole:])
    return out


for _name in ("accumulate", "at", "outer", "reduce", "reduceat"):
    setattr(maximum, _name, getattr(numpy.maximum, _name))


class Numpy(Backend):
    """Tensors as NumPy arrays on the CPU.

    float: "f32", "f64" or "f16". int: "i64", "i32" … compiled: None uses compiled
    kernels when they are ready, True compiles them first, False never uses them.

    Example:
        >>> Numpy() is Numpy("f32")
        True
    """

    name = "numpy"

    def __init__(
        self,
        float: str = "f32",  # noqa: A002 - public name
        int: str = "i64",  # noqa: A002 - public name
        compiled: bool | None = None,
    ):
        super().__init__(numpy, float, int)
        self.compiled = compiled
        space = self.xp
        space.empty, space.share = empty_array, threads.run
        space.ones_like, space.maximum = ones_like, maximum
        space.dot, space.matmul = dot, matmul
        if float == "f32":
            self.kernels = kernels_for(compiled)
        self.limits = limits_for(self.kernels)

    def run(self, op: AnyOp, values: Values, attrs: Attrs) -> Value:
        """Run one op; NaN and infinity are answers, of which NumPy shall not warn."""
        if not attrs and len(values) == 2:  # hot
            x, y = values
            if op not in self.kernels or (
                type(x) is numpy.ndarray and x.size < self.limits.get(op, 0)
            ):
                before = set_errstate(no_errors)
                try:
                    return op.forward(self.xp, x, y)
                finally:
                    reset_errstate(before)
        before = set_errstate(no_errors)
        try:
            kernel = self.kernels.get(op)
            if kernel is not None:
                out = kernel(*values, **attrs)
                if out is not None:
                    return out
            if len(values) == 1:  # quicker than a starred call
                return op.forward(self.xp, values[0], **attrs)
            return op.forward(self.xp, *values, **attrs)
        finally:
            reset_errstate(before)

    def from_numpy(self, array: numpy.ndarray) -> Value:
        return numpy.array(array, order="C")

    def to_numpy(self, value: Value) -> numpy.ndarray:
        return value

    def __repr__(self) -> str:
        shown = []
        if self.float != "f32":
            shown.append(f"float={self.float!r}")
        if self.int != "i64":
            shown.append(f"int={self.int!r}")
        if self.compiled is not None:
            shown.append(f"compiled={self.compiled}")
        return f"Numpy({', '.join(shown)})"
