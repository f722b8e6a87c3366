"""GaussianNLLLoss: negative log-likelihood of a value."""

import math

from burnbook.config import Config
from burnbook.core.errors import ShapeError
from burnbook.module import Module
from burnbook.nn.loss.checks import fit, fit_one_shape, not_below_zero
from burnbook.nn.loss.reduction import Reduction, reduced
from burnbook.nn.shared import above_zero
from burnbook.tensor import Tensor
from burnbook.tensor.facts import facts_of


class GaussianNLLLossConfig(Config):
    """How to make a GaussianNLLLoss.

    eps: the least variance, above 0 (default 1e-6).
    full: whether to add the constant log(2π)/2 (default False).

    Example:
        >>> GaussianNLLLossConfig().with_eps(0.5).init()
        GaussianNLLLoss {eps: 0.5, full: false}
    """

    eps: float = 1e-6
    full: bool = False

    def validate(self) -> None:
        """Refuse an eps that is not above 0."""
        above_zero(self, "eps")

    def init(self) -> "GaussianNLLLoss":
        """The loss."""
        return GaussianNLLLoss(self.eps, self.full)


class GaussianNLLLoss(Module):
    """Negative log-likelihood of y ~ N(μ, v): loss = mean (log v + (μ − y)²/v) / 2.

    Shapes: input [...], target [...], var [...] -> [1]
    Example:
        >>> mean, y = Tensor.from_data([[0.0, 1.0]]), Tensor.from_data([[1.0, 1.0]])
        >>> loss = GaussianNLLLossConfig().init()
        >>> loss.forward(mean, y, Tensor.from_data([[1.0, 1.0]])).into_scalar()
        0.25

    Why: sizes of 1 in var stretch, for one variance that many elements share. One below
    eps counts as eps, and keeps its gradient, so that it can grow again.
    """

    eps: float
    full: bool
    shown = ("eps", "full")

    def forward(
        self,
        input: Tensor,
        target: Tensor,
        var: Tensor,
        reduction: Reduction = Reduction.Auto,
    ) -> Tensor:
        """The loss of all elements as one number."""
        return reduced(self.forward_no_reduction(input, target, var), reduction)

    def forward_no_reduction(
        self, input: Tensor, target: Tensor, var: Tensor
    ) -> Tensor:
        """The loss of each element.

        Shapes: input [...], target [...], var [...] -> [...]
        """
        given = {"input": input, "target": target, "var": var}
        fit("gaussian_nll", given)
        fit_one_shape("gaussian_nll", {"input": input, "target": target})
        wanted = input.dims()
        sizes = zip(var.dims(), wanted, strict=False)
        if var.rank != input.rank or any(v not in (1, n) for v, n in sizes):
            what = f"var must be {list(wanted)}, or 1 where it is shared"
            raise ShapeError("gaussian_nll", what, facts_of(**given))
        not_below_zero("gaussian_nll", given, "var")
        var = var + (self.eps - var).relu().detach()
        losses = (var.log() + ((input - target) / var.sqrt()).square()) * 0.5
        return losses + 0.5 * math.log(2 * math.pi) if self.full else losses
