"""Products, sums and curves that ONNX Runtime computes at once."""

from __future__ import annotations

from burnbook import ops
from burnbook.importers.onnx.operators.elementwise import add
from burnbook.importers.onnx.operators.joining import narrow
from burnbook.importers.onnx.operators.norms import softmax
from burnbook.importers.onnx.operators.products import mat_mul
from burnbook.importers.onnx.operators.registry import operator
from burnbook.importers.onnx.values import reshape
from burnbook.tensor import Tensor, activation
from burnbook.tensor.methods import apply

DOMAIN = "com.microsoft"


def _turned(x: Tensor, batch: int, last: int) -> Tensor:
    """The first dim behind the others of the batch, and the last two exchanged."""
    rank = len(x.value.shape)
    order = [*range(rank)]
    if batch and rank > 2:
        order = [*range(1, rank - 1), 0, rank - 1]
    if last and rank > 1:
        order[-2:] = order[-1], order[-2]
    return x if order == [*range(rank)] else apply(ops.permute, x, axes=tuple(order))


def _mat_mul(
    a: Tensor,
    b: Tensor,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Tensor:
    """alpha times the product of matrices, which may be turned first."""
    a, b = _turned(a, transBatchA, transA), _turned(b, transBatchB, transB)
    found = mat_mul(a, b)
    return found if alpha == 1 else found * alpha


fused_mat_mul = operator("FusedMatMul", domain=DOMAIN)(_mat_mul)
fused_mat_mul.__name__ = "fused_mat_mul"
transpose_mat_mul = operator("TransposeMatMul", domain=DOMAIN)(_mat_mul)
transpose_mat_mul.__name__ = "transpose_mat_mul"


@operator("BiasSoftmax", domain=DOMAIN)
def bias_softmax(
    x: Tensor, bias: Tensor, *, axis: int = 1, is_inner_broadcast: int
) -> Tensor:
    """softmax(x + bias) over all dims from axis on.

    is_inner_broadcast: the bias is repeated within a batch and not for each of them:
    its first dims are those of x, and it lacks the next.
    """
    shape, given = tuple(x.value.shape), tuple(bias.value.shape)
    axis %= len(shape)
    if is_inner_broadcast and len(given) < len(shape):
        inner = len(shape) - axis
        before = given[: len(given) - inner]
        ones = (1,) * (axis - len(before))
        bias = reshape(bias, (*before, *ones, *given[len(given) - inner :]))
    return softmax(add(x, bias), axis=axis, flattened=1)


@operator("BiasSplitGelu", domain=DOMAIN)
def bias_split_gelu(x: Tensor, bias: Tensor) -> Tensor:
    """Of (x + bias) the first half of the last dim, times gelu of the second."""
    total = add(x, bias)
    last = total.rank - 1
    half = total.value.shape[last] // 2
    first, second = narrow(total, last, 0, half), narrow(total, last, half, half)
    return first * activation.gelu(second)
