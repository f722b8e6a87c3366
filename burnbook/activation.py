"""Building blocks · Tensor. Activation functions, as in Burn's `activation` module.

Each takes a tensor first; the fused ones are ops, the rest is ordinary tensor code.
"""

from burnbook.methods import apply
from burnbook.ops import elementwise
from burnbook.ops.softmax import log_softmax as log_softmax_op
from burnbook.ops.softmax import softmax as softmax_op
from burnbook.tensor import Tensor


def relu(x: Tensor) -> Tensor:
    """Keep what is above zero: out = max(x, 0)."""
    return apply(elementwise.relu, x)


def sigmoid(x: Tensor) -> Tensor:
    """Squash to (0, 1): out = 1 / (1 + e⁻ˣ)."""
    return apply(elementwise.sigmoid, x)


def tanh(x: Tensor) -> Tensor:
    """Squash to (−1, 1)."""
    return apply(elementwise.tanh, x)


def softmax(x: Tensor, dim: int) -> Tensor:
    """Positive numbers with sum 1 along a dim: outᵢ = eˣᵢ / Σⱼ eˣⱼ."""
    return apply(softmax_op, x, dim=dim)


def log_softmax(x: Tensor, dim: int) -> Tensor:
    """The logarithm of softmax, without overflow."""
    return apply(log_softmax_op, x, dim=dim)
