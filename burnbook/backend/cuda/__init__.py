"""The kernels of the GPU: short, and only where they win.

A kernel takes the place of an op's plain code: it is called with the same values and
attributes, and answers None when it does not fit, so that the plain code runs. What is
here saves passes over the memory (norms, softmax, pooling, activations, dropout, steps
of optimizers), launches (lstm and gru), or makes one large product out of many small
ones (convolution). Each family is a file; all work with float32 and float64.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from burnbook.backend.cuda import (
    activation,
    attention,
    batch_norm,
    conv,
    embedding,
    gru,
    loss,
    lstm,
    norm,
    optimizer_steps,
    pool,
    random,
    softmax,
)
from burnbook.backend.cuda.random import draw_words
from burnbook.backend.cuda.source import KERNELS

#: Importing a family adds its kernels to the list.
FAMILIES = (
    attention,
    batch_norm,
    conv,
    activation,
    random,
    embedding,
    gru,
    norm,
    pool,
    loss,
    lstm,
    softmax,
    optimizer_steps,
)

__all__ = ["FAMILIES", "KERNELS", "draw_words", "kernels"]


def kernels(xp: Any) -> dict[Any, Callable[..., Any]]:
    """All kernels by op, for one array module."""
    return {op: partial(function, xp) for op, function in KERNELS.items()}
