"""Advanced · Performance. Compiled kernels, for the few ops where they were measured.

`Numpy()` starts with a stub for each op of the list below. The first value that is
large enough decides, once for the process: when all kernels were compiled before (by
`burnbook warmup`), the file with the kernel is loaded; when not, the plain code runs
and one notice says so. numba itself is imported by the first kernel that runs.
"""

import sys
import threading
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from math import prod
from typing import Any, TextIO

from burnbook.backend.compiled import store
from burnbook.backend.compiled.lists import ALONG_LINES
from burnbook.backend.compiled.sizes import ELEMENTWISE
from burnbook.op import Op
from burnbook.ops.attention import attention
from burnbook.ops.batch_norm import batch_norm, batch_norm_known
from burnbook.ops.conv import conv2d
from burnbook.ops.conv_nd import conv
from burnbook.ops.conv_transpose import conv_transpose
from burnbook.ops.curvature import lbfgs_direction
from burnbook.ops.embedding import embedding_weight
from burnbook.ops.gru import gru
from burnbook.ops.interpolate import interpolate, interpolate_x
from burnbook.ops.linear import linear
from burnbook.ops.norm import group_norm, layer_norm, rms_norm
from burnbook.ops.pool import (
    adaptive_avg_pool2d,
    adaptive_avg_pool2d_x,
    avg_pool2d,
    avg_pool2d_x,
    max_pool2d,
    max_pool2d_x,
)
from burnbook.ops.pool_nd import (
    adaptive_avg_pool,
    adaptive_avg_pool_x,
    avg_pool,
    avg_pool_x,
    max_pool,
    max_pool_indices,
    max_pool_x,
)
from burnbook.ops.random import dropout, normal
from burnbook.ops.recurrent import lstm
from burnbook.ops.sequence_loss import ctc_loss, log_softmax_at, rnnt_loss
from burnbook.ops.softmax import (
    cross_entropy,
    cross_entropy_logits,
    log_softmax,
    softmax,
)
from burnbook.ops.solve import cofactor, det, inverse
from burnbook.ops.update import (
    adagrad_step,
    adam_step,
    adan_step,
    amsgrad_step,
    momentum_step,
    rmsprop_centered_step,
    rmsprop_momentum_step,
    rmsprop_step,
    sgd_step,
)

Kernel = Callable[..., Any]

# Ops that mix a few places, weighted.
TAPS = (interpolate, interpolate_x, avg_pool, avg_pool_x, adaptive_avg_pool_x)

# Which file has the kernels of which ops, and the size from which they win: the number
# of elements of the first value (of the result, where there is none), or a pair of a
# number and the place of the value.
FAMILIES: dict[str, Mapping[Any, int | tuple[int, int]]] = {
    "conv": {conv2d: 1, conv2d.backward: 1},
    "conv_line": {
        conv: 1024,
        conv.backward: 1024,
        conv_transpose: 1024,
        conv_transpose.backward: 1024,
    },
    "noise": {dropout: 4096},
    "bell": {normal: 1024},
    **ELEMENTWISE,
    "pool": {
        adaptive_avg_pool2d: 4096,
        adaptive_avg_pool2d_x: 512,
        avg_pool2d: 4096,
        avg_pool2d_x: 512,
    },
    "max_pool": {max_pool2d: 256, max_pool2d_x: 64},
    "max_pool_nd": {max_pool: 256, max_pool_indices: 256, max_pool_x: 64},
    "taps": {**dict.fromkeys(TAPS, 256), adaptive_avg_pool: 1 << 18},
    "solve": {det: 256, inverse: 256, cofactor: 16, det.backward: (16, 1)},
    "loss": {cross_entropy: 64, cross_entropy_logits: 1},
    "update": {
        adagrad_step: 1,
        adam_step: 1,
        adan_step: 1,
        amsgrad_step: 1,
        momentum_step: 1,
        rmsprop_centered_step: 1,
        rmsprop_momentum_step: 1,
        rmsprop_step: 1,
        sgd_step: 1,
    },
    "curvature": {lbfgs_direction: 4096},
    "recurrent": {gru: 64, gru.backward: 64, lstm: 64, lstm.backward: 64},
    "rows": {linear: 256},
    **ALONG_LINES,
    "sequence_loss": {
        ctc_loss: 64,
        ctc_loss.backward: (64, 1),
        log_softmax_at: 4096,
        log_softmax_at.backward: (4096, 1),
        rnnt_loss: 64,
        rnnt_loss.backward: (64, 1),
    },
    "norm": {
        layer_norm: 256,
        layer_norm.backward: 256,
        rms_norm: 256,
        rms_norm.backward: 256,
    },
    "channels": {
        group_norm: 256,
        group_norm.backward: 256,
        batch_norm: 256,
        batch_norm.backward: 256,
        batch_norm_known: 256,
    },
    "attention": {attention: 256, attention.backward: 256},
    "softmax": {
        softmax: 256,
        softmax.backward: 256,
        log_softmax: 256,
        log_softmax.backward: 256,
    },
    "embedding": {embedding_weight: 1024},
}

NOTICE = (
    "burnbook: the fast kernels are not compiled on this machine yet, so plain NumPy "
    "runs. Compile them once, in some ten seconds: burnbook warmup\n"
)


def kernels_for(compiled: bool | None) -> dict[Any, Kernel]:
    """The kernels of a backend: `Numpy(compiled=...)`.

    None: use them where they are ready. True: compile them first. False: never.
    """
    if compiled is False or not store.has_numba():
        return {}
    if compiled:
        warm_up(sys.stderr)
    kernels: dict[Any, Kernel] = {}
    for family, ops in FAMILIES.items():
        for op in ops:
            kernels[op] = _stub(op, family, kernels, always=compiled is True)
    return kernels


def limits_for(kernels: dict[Any, Kernel]) -> dict[Any, int]:
    """Below which size of the first value there is no need to ask a kernel."""
    sizes = {op: size for ops in FAMILIES.values() for op, size in ops.items()}
    return {
        op: size for op, size in sizes.items() if op in kernels and type(size) is int
    }


def warm_up(stream: TextIO | None = None) -> bool:
    """Compile every kernel, unless that was done before; False without numba."""
    if not store.has_numba():
        return False
    if store.is_warm():
        return True
    started = time.perf_counter()
    for number, family in enumerate(FAMILIES, 1):
        _say(stream, f"compiling kernels {number}/{len(FAMILIES)}: {family}\n")
        _load(family)
    store.write_note()
    _say(stream, f"kernels compiled in {time.perf_counter() - started:.0f} s\n")
    return True


def in_use() -> bool | None:
    """Whether this process runs compiled kernels; None before that was decided."""
    return _decided


def _say(stream: TextIO | None, text: str) -> None:
    if stream is not None:
        stream.write(text)
        stream.flush()


def _stub(op: Any, family: str, kernels: dict[Any, Kernel], always: bool) -> Kernel:
    """Stand in for a kernel until it is needed, and ask for the size."""
    from_size = FAMILIES[family][op]
    smallest, place = from_size if isinstance(from_size, tuple) else (from_size, 0)
    bare = place == 0 and isinstance(op, Op) and not op.attrs and not op.many
    kernel: Kernel | None = None

    def run(*values: Any, **attrs: Any) -> Any:
        nonlocal kernel
        try:
            size = values[place].size if values else prod(attrs["shape"])
            if size < smallest:
                return None
        except AttributeError:  # a Python number
            return None
        if kernel is None:
            if not always and not _decide():
                return None
            kernel = _load(family)[op]
            if bare and len(op.inputs) in (1, 2):
                kernels[op] = _of_one_or_two(kernel, smallest, len(op.inputs))
        return kernel(*values, **attrs)

    return run


def _of_one_or_two(kernel: Kernel, smallest: int, inputs: int) -> Kernel:
    """The same once the kernel is there: without stars, which take time."""

    def one(x: Any) -> Any:
        return None if x.size < smallest else kernel(x)

    def two(x: Any, y: Any) -> Any:
        try:
            if x.size < smallest:
                return None
        except AttributeError:  # a Python number
            return None
        return kernel(x, y)

    return one if inputs == 1 else two


def _decide() -> bool:
    """Once for the process, so that results do not change in the middle of a run."""
    global _decided
    with _lock:
        if _decided is None:
            _decided = store.is_warm()
            if not _decided:
                _say(sys.stderr, NOTICE)
    return _decided


def _load(family: str) -> dict[Any, Kernel]:
    """Import the file of a family; numba compiles what its cache does not have."""
    with _lock, store.keeping_code():
        import_module(f"{__name__}.awake")
        import_module(f"{__name__}.{family}")
        registry = import_module(f"{__name__}.registry")
    return registry.KERNELS


_decided: bool | None = None
_lock = threading.RLock()
