"""Products of matrices."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from burnbook import ops
from burnbook.importers.onnx.operators.registry import operator
from burnbook.importers.onnx.values import Value, aligned, reshape
from burnbook.tensor import Tensor
from burnbook.tensor.methods import apply


@operator("MatMul")
def mat_mul(x: Tensor, y: Tensor) -> Tensor:
    """The matrix product over the last two dims; a vector is a row, or a column."""
    if x.rank > 2 and y.rank == 2:  # all rows at once
        *rows, depth = tuple(x.value.shape)
        found = apply(ops.matmul, *aligned(reshape(x, (prod(rows), depth)), y))
        return reshape(found, (*rows, y.value.shape[1]))
    first, second = len(x.value.shape) == 1, len(y.value.shape) == 1
    if first:
        x = reshape(x, (1, *x.value.shape))
    if second:
        y = reshape(y, (*y.value.shape, 1))
    found = apply(ops.matmul, *aligned(x, y))
    shape = list(found.value.shape)
    if second:
        shape.pop(-1)
    if first:
        shape.pop(-1 if second else -2)
    return reshape(found, shape)


@mat_mul.host
def _(x: Value, y: Value) -> Any:
    return np.matmul(x, y).astype(np.result_type(x, y), copy=False)


@operator("Gemm")
def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    """alpha a b + beta c; a and b may be turned first, c broadcasts."""
    a = apply(ops.permute, a, axes=(1, 0)) if transA else a
    b = apply(ops.permute, b, axes=(1, 0)) if transB else b
    found = apply(ops.matmul, *aligned(a, b))
    found = found if alpha == 1 else found * alpha
    if c is None or beta == 0:
        return found
    return apply(ops.add, *aligned(found, c if beta == 1 else c * beta))


@gemm.host
def _(
    a: Value,
    b: Value,
    c: Value = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Any:
    found = (a.T if transA else a) @ (b.T if transB else b) * alpha
    return (found if c is None else found + c * beta).astype(a.dtype)


@operator("Einsum")
def einsum(*factors: Tensor, equation: str) -> Tensor:
    """Sums of products as the letters of an equation say."""
    equation = equation.replace(" ", "")
    found = Tensor.einsum(equation, *factors)
    letters = equation.split("->")[0].replace(",", "")
    implicit = "->" not in equation and all(letters.count(c) > 1 for c in letters)
    is_number = implicit or equation.endswith("->")
    return reshape(found, ()) if is_number else found


@einsum.host
def _(*factors: Value, equation: str) -> Any:
    if factors[0].dtype.kind == "V" or factors[0].dtype.name == "bfloat16":
        wide = [factor.astype(np.float32) for factor in factors]
        return np.asarray(np.einsum(equation, *wide)).astype(factors[0].dtype)
    return np.asarray(np.einsum(equation, *factors))


@operator("Det")
def det(x: Tensor) -> Tensor:
    """The determinants of square matrices."""
    return reshape(apply(ops.det, x), tuple(x.value.shape)[:-2])
