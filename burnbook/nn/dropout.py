"""Dropout: random elements set to 0 in training, as regularization."""

from numbers import Real

from burnbook.config import Config
from burnbook.core.errors import ConfigError
from burnbook.module import Module
from burnbook.nn.shared import from_zero_to_one
from burnbook.ops.random import dropout
from burnbook.tensor import Tensor, apply


class DropoutConfig(Config):
    """How to make a Dropout layer: with which probability a value is dropped.

    prob: the probability with which a value is dropped in training, in [0, 1].

    Example:
        >>> DropoutConfig(0.5).init()
        Dropout {prob: 0.5}
    """

    prob: float

    def validate(self) -> None:
        """Refuse what is not a probability."""
        from_zero_to_one(self, "prob")

    def init(self) -> "Dropout":
        """The layer; it has no parameters, so it needs no device."""
        return Dropout(self.prob)


class Dropout(Module):
    """Set values to 0 with probability p and scale the rest: out = x · mask / (1 − p).

    Shapes: x [...] -> [...]
    Why: it acts only under Autodiff, which is where training happens; `model.valid()`
    is on the backend below and keeps every value, so there is no training flag, as in
    Burn. `model.eval()` stays under Autodiff and keeps every value, too.
    """

    prob: float
    shown = ("prob",)

    def __post_init__(self) -> None:
        """Refuse what is not a probability, also where the layer is made by hand."""
        if not _is_probability(self.prob):
            what = f"{self.prob} is not between 0 and 1"
            raise ConfigError("prob", what, cure="Dropout(0.5), to drop half")

    def forward(self, input: Tensor) -> Tensor:
        """Drop values in training, else return the input."""
        if self.prob == 0.0 or not self.is_training(input):
            return input
        return apply(dropout, input, prob=self.prob, key=input.backend.next_key())


def _is_probability(prob: float) -> bool:
    """Whether it lies in [0, 1]; of what is no number, the check of the field tells."""
    return not isinstance(prob, Real) or 0.0 <= float(prob) <= 1.0
