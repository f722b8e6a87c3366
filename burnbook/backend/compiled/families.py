"""Which file has the kernels of which ops, and from which size.

The list stands here and not in `__init__.py`, where its ops would hide the files of the
same names: `from burnbook.backend.compiled import conv` must give the file.
"""

from collections.abc import Mapping
from typing import Any

from burnbook.backend.compiled.axis_families import ALONG_LINES
from burnbook.backend.compiled.elementwise_families import ELEMENTWISE
from burnbook.ops.attention import attention
from burnbook.ops.batch_norm import batch_norm, batch_norm_known
from burnbook.ops.conv.conv import conv, conv2d
from burnbook.ops.conv.conv_transpose import conv_transpose
from burnbook.ops.embedding import embedding_weight
from burnbook.ops.gru import gru
from burnbook.ops.interpolate import interpolate, interpolate_x
from burnbook.ops.lbfgs import lbfgs_direction
from burnbook.ops.linear import linear
from burnbook.ops.loss import cross_entropy, cross_entropy_logits
from burnbook.ops.lstm import lstm
from burnbook.ops.norm import group_norm, layer_norm, rms_norm
from burnbook.ops.optimizer_steps import (
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
from burnbook.ops.pool.pool import (
    adaptive_avg_pool,
    adaptive_avg_pool2d,
    adaptive_avg_pool2d_x,
    adaptive_avg_pool_x,
    avg_pool,
    avg_pool2d,
    avg_pool2d_x,
    avg_pool_x,
    max_pool,
    max_pool2d,
    max_pool2d_x,
    max_pool_indices,
    max_pool_x,
)
from burnbook.ops.random import dropout, normal
from burnbook.ops.sequence_loss import ctc_loss, log_softmax_at, rnnt_loss
from burnbook.ops.softmax import log_softmax, softmax
from burnbook.ops.solve import cofactor, det, inverse

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
    "dropout": {dropout: 4096},
    "random": {normal: 1024},
    **ELEMENTWISE,
    "pool": {
        adaptive_avg_pool2d: 4096,
        adaptive_avg_pool2d_x: 512,
        avg_pool2d: 4096,
        avg_pool2d_x: 512,
    },
    "max_pool": {max_pool2d: 256, max_pool2d_x: 64},
    "max_pool_nd": {max_pool: 256, max_pool_indices: 256, max_pool_x: 64},
    "interpolate": {**dict.fromkeys(TAPS, 256), adaptive_avg_pool: 1 << 18},
    "solve": {det: 256, inverse: 256, cofactor: 16, det.backward: (16, 1)},
    "loss": {cross_entropy: 64, cross_entropy_logits: 1},
    "optimizer_steps": {
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
    "lbfgs": {lbfgs_direction: 4096},
    "lstm": {lstm: 64, lstm.backward: 64},
    "gru": {gru: 64, gru.backward: 64},
    "linear": {linear: 256},
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
    "batch_norm": {
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
