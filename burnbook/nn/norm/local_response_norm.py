"""LocalResponseNorm: channels divided by a function of their neighbors' squares."""

import numpy as np

from burnbook.config import Config
from burnbook.core.errors import ShapeError
from burnbook.module import Module
from burnbook.nn.shared import at_least, build
from burnbook.ops.batch_norm import neighbor_sum
from burnbook.ops.shape import cast
from burnbook.tensor import Tensor, apply
from burnbook.tensor.facts import facts_of


class LocalResponseNormConfig(Config):
    """How to make a LocalResponseNorm: size, how many channels a window has.

    size: how many neighboring channels are summed, at least 1.
    alpha: the weight of their mean square (default 0.0001).
    beta: the power of the denominator (default 0.75).
    k: what the denominator starts from (default 1.0).

    Example:
        >>> LocalResponseNormConfig(5).init()
        LocalResponseNorm {size: 5, alpha: 0.0001, beta: 0.75, k: 1}
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0

    def validate(self) -> None:
        """Refuse an empty window."""
        at_least(self, 1, "size")

    def init(self) -> "LocalResponseNorm":
        """The layer; it has no parameters, so it needs no device."""
        return build(LocalResponseNorm, self)


class LocalResponseNorm(Module):
    """Normalize by squares of neighboring channels: out = x / (k + α/size · Σ x²)^β.

    The sum runs over ⌊(size − 1) / 2⌋ channels before and ⌊size / 2⌋ after, as in ONNX;
    of an even size, PyTorch has the odd channel before.

    Shapes: x [n, c, d, ...] -> [n, c, d, ...]
    Source: Krizhevsky, Sutskever, Hinton, "ImageNet classification with deep
    convolutional neural networks", 2012.
    """

    size: int
    alpha: float
    beta: float
    k: float
    shown = ("size", "alpha", "beta", "k")

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of lines, images or volumes."""
        if input.rank < 3:
            what = f"the input needs at least 3 dims [n, c, d, ...], not {input.rank}"
            raise ShapeError("local_response_norm", what, facts_of(input=input))
        before, after = (self.size - 1) // 2, self.size // 2
        dtype = input.backend.float_dtype
        wide = input
        if dtype.itemsize == 2:  # the square of 300 has no place in half precision
            wide = apply(cast, input, dtype=np.dtype(np.float32))
        power = apply(neighbor_sum, wide.square(), before=before, after=after)
        out = wide / (power * (self.alpha / self.size) + self.k) ** self.beta
        return out if wide is input else apply(cast, out, dtype=dtype)
