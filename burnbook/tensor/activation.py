"""Activation functions, as in Burn's `activation` module.

Each takes a tensor first; the fused ones are ops, the rest is ordinary tensor code.
"""

import math

from burnbook.core.cures import explains_call
from burnbook.core.errors import ShapeError
from burnbook.ops import activation, elementwise
from burnbook.ops.softmax import log_softmax as log_softmax_op, softmax as softmax_op
from burnbook.tensor import Tensor
from burnbook.tensor.half import in_full_precision
from burnbook.tensor.methods import apply

SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805


def relu(x: Tensor) -> Tensor:
    """Keep what is above zero: out = max(x, 0)."""
    return apply(elementwise.relu, x)


def leaky_relu(x: Tensor, negative_slope: float) -> Tensor:
    """Flatten what is below zero: out = slope · x there, x elsewhere."""
    return apply(activation.leaky_relu, x, negative_slope=negative_slope)


def prelu(x: Tensor, alpha: Tensor) -> Tensor:
    """A leaky relu whose slope is learned: one for all, or one for each channel.

    Shapes: x [n, c, ...], alpha [1] or [c] -> [n, c, ...]
    """
    (slopes,) = alpha.dims() if alpha.rank == 1 else (0,)
    if slopes != 1 and (x.rank < 2 or slopes != x.dims()[1]):
        raise ShapeError(
            "prelu",
            f"alpha {list(alpha.dims())} gives no slope for each channel of x",
            [("x", str(list(x.dims())))],
            "alpha of shape [1], or [c] where c is the size of dim 1 of x",
        )
    line = [1] * x.rank
    if slopes != 1:
        line[1] = slopes
    return x.mask_where(x.lower(0), x * alpha.reshape(line))


def gelu(x: Tensor) -> Tensor:
    """x times P(z < x) for a standard normal z: out = x (1 + erf(x/√2)) / 2."""
    return apply(activation.gelu, x)


@in_full_precision
def gelu_approximate(x: Tensor) -> Tensor:
    """Gelu by a tanh: out = x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2.

    Why: (1 + tanh u) / 2 is the sigmoid of 2u, which keeps all digits of what is small;
    from ±30 on it is 1 or 0, and x³ would overflow.
    """
    near = x.clamp(-30.0, 30.0)
    twice = 2 * math.sqrt(2 / math.pi)
    return x * sigmoid((near.square() * (0.044715 * twice) + twice) * near)


def sigmoid(x: Tensor) -> Tensor:
    """Squash to (0, 1): out = 1 / (1 + e⁻ˣ)."""
    return apply(elementwise.sigmoid, x)


def log_sigmoid(x: Tensor) -> Tensor:
    """The logarithm of the sigmoid, without overflow: −300 -> −300, 300 -> 0."""
    return apply(activation.log_sigmoid, x)


@in_full_precision
def hard_sigmoid(x: Tensor, alpha: float, beta: float) -> Tensor:
    """A piecewise linear sigmoid: out = clamp(α x + β, 0, 1)."""
    return (x * alpha + beta).clamp(0.0, 1.0)


def silu(x: Tensor) -> Tensor:
    """x, gated by its own sigmoid: out = x σ(x)."""
    return apply(activation.silu, x)


@in_full_precision
def hard_swish(x: Tensor) -> Tensor:
    """A silu with a piecewise linear sigmoid: out = x · clamp(x/6 + 1/2, 0, 1)."""
    return x * hard_sigmoid(x, 1 / 6, 0.5)


def softplus(x: Tensor, beta: float) -> Tensor:
    """A smooth relu: out = ln(1 + e^(βx)) / β, without overflow."""
    return apply(activation.softplus, x, beta=beta)


@in_full_precision
def softplus_with_threshold(x: Tensor, beta: float, threshold: float) -> Tensor:
    """The softplus of x; where βx is above the threshold, x itself."""
    return softplus(x, beta).mask_where(x * beta > threshold, x)


def mish(x: Tensor) -> Tensor:
    """x, gated by the tanh of its softplus: out = x tanh(softplus(x))."""
    return apply(activation.mish, x)


def tanh(x: Tensor) -> Tensor:
    """Squash to (−1, 1)."""
    return apply(elementwise.tanh, x)


@explains_call("softmax", "softmax(x, 1)")
def softmax(x: Tensor, dim: int) -> Tensor:
    """Positive numbers with sum 1 along a dim: outᵢ = eˣᵢ / Σⱼ eˣⱼ."""
    return apply(softmax_op, x, dim=dim)


@explains_call("log_softmax", "log_softmax(x, 1)")
def log_softmax(x: Tensor, dim: int) -> Tensor:
    """The logarithm of softmax, without overflow."""
    return apply(log_softmax_op, x, dim=dim)


def softmin(x: Tensor, dim: int) -> Tensor:
    """Softmax of the negated scores, largest where x is smallest: softmax(−x)."""
    return softmax(-x, dim)


@in_full_precision
def quiet_softmax(x: Tensor, dim: int) -> Tensor:
    """A softmax that may be near zero everywhere: outᵢ = eˣᵢ / (1 + Σⱼ eˣⱼ).

    Why: m = max(x, 0) is subtracted inside every exp, and the 1 becomes e⁻ᵐ; so no
    exp overflows and the value is the one above.
    """
    shift = x.detach().max_dim(dim).clamp_min(0.0)
    raised = (x - shift).exp()
    return raised / (raised.sum_dim(dim) + (-shift).exp())


def relu6(x: Tensor) -> Tensor:
    """Cut off at both ends: out = clamp(x, 0, 6)."""
    return x.clamp(0.0, 6.0)


def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Cut off at both ends: out = clamp(x, min, max)."""
    return x.clamp(min_val, max_val)


def elu(x: Tensor, alpha: float) -> Tensor:
    """Bend what is below zero toward −α: out = α (eˣ − 1) there, x above."""
    return apply(activation.elu, x, alpha=alpha)


@in_full_precision
def celu(x: Tensor, alpha: float) -> Tensor:
    """An elu without a kink, whatever α: out = α (e^(x/α) − 1) below zero, x above."""
    return apply(activation.elu, x / alpha, alpha=1.0) * alpha


@in_full_precision
def selu(x: Tensor) -> Tensor:
    """An elu that keeps mean 0 and variance 1 from layer to layer."""
    return elu(x, SELU_ALPHA) * SELU_SCALE


@in_full_precision
def glu(x: Tensor, dim: int) -> Tensor:
    """One half of x, gated by the sigmoid of the other: out = a σ(b).

    Shapes: x [..., 2d, ...] -> [..., d, ...]
    """
    size = x.dims()[dim]
    if size % 2:
        raise ShapeError("glu", f"dim {dim} of size {size} does not split in half")
    a, b = x.chunk(2, dim)
    return a * sigmoid(b)


@in_full_precision
def softsign(x: Tensor) -> Tensor:
    """Squash to (−1, 1), slowly: out = x / (1 + |x|)."""
    return x / (x.abs() + 1)


@in_full_precision
def tanhshrink(x: Tensor) -> Tensor:
    """What tanh takes away: out = x − tanh(x)."""
    return x - x.tanh()


def threshold(x: Tensor, threshold: float, value: float) -> Tensor:
    """Keep what is above a threshold, replace the rest by a value."""
    return x.mask_fill(x.lower_equal(threshold), value)


def thresholded_relu(x: Tensor, alpha: float) -> Tensor:
    """Keep what is above α; zero elsewhere."""
    return threshold(x, alpha, 0.0)


def shrink(x: Tensor, lambda_: float, bias: float) -> Tensor:
    """Pull toward zero: out = x ∓ bias beyond ±λ, zero between."""
    pulled = x - x.sign() * bias
    return pulled.mask_fill(x.abs().lower_equal(lambda_), 0.0)


def hard_shrink(x: Tensor, lambda_: float) -> Tensor:
    """Zero between −λ and λ, unchanged beyond."""
    return shrink(x, lambda_, 0.0)


def soft_shrink(x: Tensor, lambda_: float) -> Tensor:
    """Pull toward zero by λ; zero between −λ and λ."""
    return shrink(x, lambda_, lambda_)


@in_full_precision
def cross_entropy_with_logits(logits: Tensor, target_probs: Tensor) -> Tensor:
    """Cross entropy with probabilities: out = −mean Σ log softmax(logits) · target.

    Shapes: logits [..., c], target_probs [..., c] -> [1]
    """
    last = logits.rank - 1
    return -(log_softmax(logits, last) * target_probs).sum_dim(last).mean()
