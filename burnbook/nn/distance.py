"""CosineSimilarity and PairwiseDistance of pairs of vectors."""

from burnbook.config import Config
from burnbook.core.errors import ShapeError
from burnbook.module import Module
from burnbook.nn.shared import at_least
from burnbook.tensor import Tensor
from burnbook.tensor.facts import facts_of
from burnbook.tensor.linalg import cosine_similarity, lp_norm


class CosineSimilarityConfig(Config):
    """How to make a CosineSimilarity: the dim along which vectors lie.

    dim: the dim along which vectors lie; it may count from the end (default 1).
    eps: the least length that a vector counts with, at least 0 (default 1e-8).

    Example:
        >>> CosineSimilarityConfig().init()
        CosineSimilarity {dim: 1, eps: 0.00000001}
    """

    dim: int = 1
    eps: float = 1e-8

    def validate(self) -> None:
        """Refuse an eps below zero."""
        at_least(self, 0, "eps")

    def init(self) -> "CosineSimilarity":
        """The layer; it has no parameters, so it needs no device."""
        return CosineSimilarity(self.dim, self.eps)


class CosineSimilarity(Module):
    """The cosine of the angle between pairs of vectors: out = x · y / (‖x‖ ‖y‖).

    Shapes: x1 [n, d], x2 [n, d] -> [n]
    Why: norms are at least eps, so the cosine with a zero vector is 0.
    """

    dim: int
    eps: float
    shown = ("dim", "eps")

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """One cosine for each pair."""
        _same_shapes("cosine_similarity", x1, x2)
        dim = self.dim % x1.rank if -x1.rank <= self.dim < x1.rank else self.dim
        return cosine_similarity(x1, x2, dim, self.eps).squeeze_dim(dim)


class PairwiseDistanceConfig(Config):
    """How to make a PairwiseDistance: by which norm.

    p: which norm: 1 sums absolute differences, 2 is the Euclidean distance
        (default 2.0).
    eps: added to every difference, so that equal vectors have a gradient
        (default 1e-6).

    Example:
        >>> PairwiseDistanceConfig().init()
        PairwiseDistance {p: 2, eps: 0.000001}
    """

    p: float = 2.0
    eps: float = 1e-6

    def init(self) -> "PairwiseDistance":
        """The layer; it has no parameters, so it needs no device."""
        return PairwiseDistance(self.p, self.eps)


class PairwiseDistance(Module):
    """The p-norm distance of pairs of vectors: out = (Σ |xᵢ − yᵢ + eps|ᵖ)^(1/p).

    Shapes: x1 [n, d], x2 [n, d] -> [n]
    Why: with eps the distance of equal vectors has a gradient.
    """

    p: float
    eps: float
    shown = ("p", "eps")

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """One distance for each pair."""
        _same_shapes("pairwise_distance", x1, x2)
        return lp_norm(x1 - x2 + self.eps, self.p, 1).squeeze_dim(1)


def _same_shapes(where: str, x1: Tensor, x2: Tensor) -> None:
    if x1.rank < 2 or x1.dims() != x2.dims():
        what = "x1 and x2 must be vectors [n, d] of the same shape"
        raise ShapeError(where, what, facts_of(x1=x1, x2=x2))
