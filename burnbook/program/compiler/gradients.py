"""Gradients bound to functions of NumPy that write where they are told."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from burnbook.program.compiler.bound import BYTES, Bound, Call, binder, product


@binder("mul.backward")
def bind_mul_backward(call: Call) -> Bound | None:
    """The gradients of a product of elements, where nothing was stretched."""
    g, *others = call.values
    runs: list[Callable[[], Any]] = []
    for out, other in zip(call.outs, reversed(others), strict=True):
        if out is None:
            continue
        if not _alike(g, out) or not (_alike(g, other) or isinstance(other, float)):
            return None
        runs.append(partial(np.multiply, g, other, out))
    return in_a_row(runs, g.nbytes * 3 * len(runs) / BYTES)


@binder("sub.backward")
def bind_sub_backward(call: Call) -> Bound | None:
    """The gradients of a difference, where nothing was stretched."""
    g, (first, second) = call.values[0], call.outs
    if any(out is not None and not _alike(g, out) for out in call.outs):
        return None
    runs: list[Callable[[], Any]] = []
    if first is not None:
        runs.append(partial(np.copyto, first, g))
    if second is not None:
        runs.append(partial(np.negative, g, second))
    return in_a_row(runs, g.nbytes * 2 * len(runs) / BYTES)


@binder("exp.backward")
def bind_exp_backward(call: Call) -> Bound | None:
    """The gradient of exp, from what it gave."""
    g, y = call.values
    if not _alike(g, y) or not _alike(g, call.out):
        return None
    run = partial(np.multiply, g, y, call.out)
    return Bound(run, cost=g.nbytes * 3 / BYTES, how="in place")


@binder("matmul.backward")
def bind_matmul_backward(call: Call) -> Bound | None:
    """The gradients of a product of two matrices."""
    g, x, y = call.values
    dx, dy = call.outs
    arrays = [a for a in (g, x, y, dx, dy) if a is not None]
    if any(
        type(a) is not np.ndarray or a.ndim != 2 or a.dtype != g.dtype for a in arrays
    ):
        return None
    if g.dtype.kind != "f" or not all(a.flags.c_contiguous for a in arrays[3:]):
        return None
    runs: list[Callable[[], Any]] = []
    if dx is not None:
        runs.append(product(g, y.T, dx))
    if dy is not None:
        runs.append(product(x.T, g, dy))
    return in_a_row(runs, len(runs) * g.size * x.shape[1] / 30)


def in_a_row(runs: list[Callable[[], Any]], cost: float) -> Bound:
    """One or two functions as a step."""
    if len(runs) == 1:
        return Bound(runs[0], cost=cost, how="out")
    first, second = runs

    def both() -> None:
        first()
        second()

    return Bound(both, cost=cost, how="out")


def _alike(one: Any, other: Any) -> bool:
    """Whether two arrays have one shape and one floating type."""
    return (
        type(one) is type(other) is np.ndarray
        and one.shape == other.shape
        and one.dtype == other.dtype
        and one.dtype.kind == "f"
    )
