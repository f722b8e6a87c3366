"""Embedding: a learned vector for every token."""

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.module import Module, Param
from burnbook.nn.initializer import Initializer
from burnbook.nn.shared import at_least
from burnbook.ops.embedding import embedding
from burnbook.tensor import Tensor, apply


class EmbeddingConfig(Config):
    """How to make an Embedding: how many tokens, and the size of their vectors.

    n_embedding: how many tokens there are, at least 1.
    d_model: size of the vector of a token, at least 1.
    initializer: how the table is drawn (default Normal(mean=0, std=1)).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> EmbeddingConfig(100, 10).init(Numpy())
        Embedding {n_embedding: 100, d_model: 10, params: 1000}
    """

    n_embedding: int
    d_model: int
    initializer: Initializer = Initializer.Normal(mean=0.0, std=1.0)

    def validate(self) -> None:
        """Refuse a table without rows or columns."""
        at_least(self, 1, "n_embedding", "d_model")

    def init(self, device: Backend) -> "Embedding":
        """The layer on a device; its numbers are drawn at the first use."""
        size = [self.n_embedding, self.d_model]
        return Embedding(self.initializer.init(size, device))


class Embedding(Module):
    """Look up the vectors of tokens: out[i, j] = weight[input[i, j]].

    Shapes: input [b, s] -> [b, s, d]; weight [n, d]
    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> layer = EmbeddingConfig(100, 10).init(Numpy())
        >>> layer.forward(Tensor.from_ints([[3, 1, 3]], Numpy())).shape
        (1, 3, 10)

    Why: a word that stands in several places collects the gradients of all of them.
    """

    weight: Param
    shown = (
        ("n_embedding", lambda layer: layer.weight.shape[0]),
        ("d_model", lambda layer: layer.weight.shape[1]),
    )

    def forward(self, input: Tensor) -> Tensor:
        """The vectors of a batch of sequences of token ids; the rank may be any."""
        return apply(embedding, self.weight.val(), input)
