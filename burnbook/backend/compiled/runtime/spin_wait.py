"""Spin waiting: some microseconds that save many.

A thread that has done its part of a kernel waits for the others. They are about to be
done as well, and to be put to sleep and called again takes longer than that. So it
looks at a flag for a while, without Python's lock, before it sleeps.
"""

import os
import platform
from typing import Any

from burnbook.backend.compiled.runtime.jit import (
    cgutils,
    intrinsic,
    ir,
    kernel_code,
    types,
)
from burnbook.backend.compiled.runtime.thread_pool import ThreadPool

# What tells a processor that a loop only waits, so that a sister thread may go first,
# and what it takes. Each is some 20 ns, by which looks are counted in thread_pool.py.
PAUSE: dict[str, tuple[str, tuple[int, ...]]] = {
    **dict.fromkeys(("x86_64", "AMD64", "i686"), ("llvm.x86.sse2.pause", ())),
    **dict.fromkeys(("aarch64", "arm64", "ARM64"), ("llvm.aarch64.isb", (15,))),
}


@intrinsic
def pause(typing):
    """Tell the processor that a loop only waits."""

    def build(context, builder, signature, args):
        _build_pause(builder)
        return context.get_dummy_value()

    return types.void(), build


def _build_pause(builder: Any) -> None:
    name, numbers = PAUSE.get(platform.machine(), ("", ()))
    if name:
        whole = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [whole] * len(numbers))
        pause = cgutils.get_or_insert_function(builder.module, kind, name)
        builder.call(pause, [whole(number) for number in numbers])


@intrinsic
def rest(typing):
    """Sleep for some 60 µs, so that another thread has the processor.

    Where there is no `usleep`, it is a pause.
    """

    def build(context, builder, signature, args):
        if os.name == "posix":
            whole = ir.IntType(32)
            kind = ir.FunctionType(whole, [whole])
            sleep = cgutils.get_or_insert_function(builder.module, kind, "usleep")
            builder.call(sleep, [whole(10)])
        else:
            _build_pause(builder)
        return context.get_dummy_value()

    return types.void(), build


@intrinsic
def load_flag(typing, flag):
    """The first byte of an array as it is now, after a pause."""

    def build(context, builder, signature, args):
        place = context.make_array(signature.args[0])(context, builder, args[0]).data
        _build_pause(builder)
        return builder.load_atomic(place, "acquire", 1)

    return types.uint8(flag), build


@kernel_code("void(u1[::1], i8)")
def spin(flag, most):
    """Return when the flag is set, or after so many looks."""
    for _ in range(most):
        if load_flag(flag):
            return


ThreadPool.spin = staticmethod(spin)
