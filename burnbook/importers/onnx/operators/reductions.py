"""Operators that make one number of many along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnbook import ops
from burnbook.importers.onnx.operators.registry import host_operator, operator
from burnbook.importers.onnx.values import Value, aligned, as_array, ints, reshape
from burnbook.tensor import Tensor
from burnbook.tensor.methods import apply

OnTensor = Callable[[Tensor, int], Tensor]


def _axes(rank: int, axes: Value | None, noop: int) -> list[int]:
    """The axes to go over, none where an empty list means that."""
    wanted = [] if axes is None else sorted({a % rank for a in ints(axes)})
    return wanted if wanted or noop else list(range(rank))


def _reduction(
    name: str,
    one: OnTensor,
    host: Callable[[Any, tuple[int, ...]], Any],
    first: Callable[[Tensor], Tensor] | None = None,
    last: Callable[[Tensor], Tensor] | None = None,
) -> Any:
    """first and last: what happens before and after, where nothing is reduced too."""

    def on_tensor(
        x: Tensor,
        axes: Value | None = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Tensor:
        shape = list(x.value.shape)
        over = _axes(len(shape), axes, noop_with_empty_axes) if shape else []
        x = x if first is None else first(x)
        if any(shape[a] == 0 for a in over):
            found = on_array(np.zeros(shape, np.dtype(x.value.dtype)), axes)
            x = Tensor.of(x.backend.from_numpy(found), x.kind, x.backend)
        else:
            for axis in over:
                x = one(x, axis)
            x = x if last is None else last(x)
        kept = [1 if i in over else n for i, n in enumerate(shape)]
        if not keepdims:
            kept = [n for i, n in enumerate(shape) if i not in over]
        return reshape(x, kept)

    def on_array(
        x: Value,
        axes: Value | None = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Any:
        over = tuple(_axes(x.ndim, axes, noop_with_empty_axes)) if x.ndim else ()
        with np.errstate(all="ignore"):
            found = host(x, over) if over or name not in ("ReduceMean",) else x
            if not over and not x.ndim:
                found = host(x.reshape(1), (0,)).reshape(())
            elif not over:
                found = host(x[None], (0,))[0]
        if keepdims and over:
            found = np.expand_dims(found, over)
        return as_array(found).astype(x.dtype)

    on_tensor.__name__ = "".join(
        "_" + c.lower() if c.isupper() else c for c in name
    ).strip("_")
    on_tensor.__doc__ = f"{name} along axes, all of them where none are given."
    return operator(name, lists=True)(on_tensor).host(on_array)


def _sum(x: Tensor, axis: int) -> Tensor:
    return apply(ops.sum_dim, x, dim=axis)


def _largest_along(x: Tensor, axis: int) -> Tensor:
    return apply(ops.max_dim, x, dim=axis)


def _least_along(x: Tensor, axis: int) -> Tensor:
    return apply(ops.min_dim, x, dim=axis)


def _log(x: Tensor) -> Tensor:
    return apply(ops.log, x)


def _logsumexp(x: Value, over: tuple[int, ...]) -> Any:
    top = np.max(x, over, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    return np.log(np.sum(np.exp(x - top), over)) + np.squeeze(top, over)


def _least(dtype: Value) -> Any:
    if dtype.kind == "b":
        return False
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _most(dtype: Value) -> Any:
    if dtype.kind == "b":
        return True
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.inf


_reduction("ReduceSum", _sum, lambda x, a: np.sum(x, a))
_reduction(
    "ReduceMean", lambda x, a: apply(ops.mean_dim, x, dim=a), lambda x, a: np.mean(x, a)
)
_reduction(
    "ReduceMax", _largest_along, lambda x, a: np.max(x, a, initial=_least(x.dtype))
)
_reduction("ReduceMin", _least_along, lambda x, a: np.min(x, a, initial=_most(x.dtype)))
_reduction(
    "ReduceProd", lambda x, a: apply(ops.prod_dim, x, dim=a), lambda x, a: np.prod(x, a)
)
_reduction(
    "ReduceL1",
    _sum,
    lambda x, a: np.sum(np.abs(x), a),
    first=lambda x: apply(ops.abs, x),
)
_reduction(
    "ReduceL2",
    _sum,
    lambda x, a: np.sqrt(np.sum(np.square(x.astype(np.float64)), a)),
    first=lambda x: apply(ops.square, x),
    last=lambda x: apply(ops.sqrt, x),
)
_reduction(
    "ReduceSumSquare",
    _sum,
    lambda x, a: np.sum(np.square(x), a),
    first=lambda x: apply(ops.square, x),
)
_reduction("ReduceLogSum", _sum, lambda x, a: np.log(np.sum(x, a)), last=_log)


@operator("ReduceLogSumExp", lists=True)
def reduce_log_sum_exp(
    x: Tensor,
    axes: Value | None = None,
    *,
    keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Tensor:
    """log Σ exp(x) along axes, without overflow."""
    shape = tuple(x.value.shape)
    over = _axes(len(shape), axes, noop_with_empty_axes) if shape else []
    if any(shape[a] == 0 for a in over) or not over:
        found = reduce_log_sum_exp.on_arrays(  # type: ignore[misc]
            x.backend.to_numpy(x.value),
            axes,
            keepdims=keepdims,
            noop_with_empty_axes=noop_with_empty_axes,
        )
        return Tensor.of(x.backend.from_numpy(found), x.kind, x.backend)
    top = x
    for axis in over:
        top = _largest_along(top, axis)
    unbounded = apply(ops.bool_not, apply(ops.is_finite, top.detach()))
    top = apply(ops.mask_fill, top.detach(), unbounded, value=0.0)
    total = apply(ops.exp, apply(ops.sub, *aligned(x, top)))
    for axis in over:
        total = _sum(total, axis)
    found = apply(ops.add, _log(total), top)
    kept = [1 if i in over else n for i, n in enumerate(shape)]
    return reshape(
        found, kept if keepdims else [n for i, n in enumerate(shape) if i not in over]
    )


@reduce_log_sum_exp.host
def _(
    x: Value,
    axes: Value | None = None,
    *,
    keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Any:
    over = tuple(_axes(x.ndim, axes, noop_with_empty_axes)) if x.ndim else ()
    with np.errstate(all="ignore"):
        found = _logsumexp(x.astype(np.float64) if x.dtype.kind in "iu" else x, over)
    return (np.expand_dims(found, over) if keepdims else found).astype(x.dtype)


def _extreme(name: str, find: Callable[..., Any]) -> None:
    def on_array(
        x: Value, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
    ) -> Any:
        if x.dtype.kind == "V":
            x = x.astype(np.float32)
        if select_last_index:
            found = x.shape[axis] - 1 - find(np.flip(x, axis), axis)
        else:
            found = find(x, axis)
        found = as_array(found).astype(np.int64, copy=False)
        return np.expand_dims(found, axis) if keepdims else found

    on_array.__name__ = "arg_max" if name == "ArgMax" else "arg_min"
    on_array.__doc__ = f"Where the {name[3:].lower()}imum along an axis stands."
    host_operator(name)(on_array)


_extreme("ArgMax", np.argmax)
_extreme("ArgMin", np.argmin)


@operator("CumSum", lists=True)
def cum_sum(x: Tensor, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    """Sums of all elements up to each along an axis."""
    (dim,) = ints(axis)
    dim %= len(x.value.shape)
    if reverse:
        x = apply(ops.flip, x, axes=(dim,))
    found = apply(ops.cumsum, x, dim=dim)
    if exclusive:
        found = apply(ops.sub, found, x)
    return apply(ops.flip, found, axes=(dim,)) if reverse else found


@cum_sum.host
def _(x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Any:
    (dim,) = ints(axis)
    x = np.flip(x, dim) if reverse else x
    found = np.cumsum(x, dim, dtype=x.dtype)
    if exclusive:
        found = found - x
    return np.flip(found, dim) if reverse else found


@host_operator("CumProd")
def cum_prod(x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Any:
    """Products of all elements up to each along an axis."""
    (dim,) = ints(axis)
    x = np.moveaxis(np.flip(x, dim) if reverse else x, dim, 0)
    if exclusive:
        x = np.concatenate([np.ones_like(x[:1]), x[:-1]])
    found = np.moveaxis(np.cumprod(x, 0, dtype=x.dtype), 0, dim)
    return np.flip(found, dim) if reverse else found
