"""Identity: a place where a layer may be, with none in it."""

from burnbook.module import Module
from burnbook.tensor import Tensor


class Identity(Module):
    """Give back what comes in: out = x.

    Shapes: x [...] -> [...]
    """

    def forward(self, input: Tensor) -> Tensor:
        """The input itself."""
        return input
