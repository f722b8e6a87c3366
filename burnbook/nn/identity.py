"""Identity: a layer that returns its input, as a placeholder."""

from burnbook.module import Module
from burnbook.tensor import Tensor


class Identity(Module):
    """Return the input: out = x.

    Shapes: x [...] -> [...]
    """

    def forward(self, input: Tensor) -> Tensor:
        """The input itself."""
        return input
