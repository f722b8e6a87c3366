"""CTCLoss: sequences of labels without an alignment to the frames."""

from burnbook.config import Config
from burnbook.core.dtypes import Int
from burnbook.module import Module
from burnbook.nn.loss.checks import fit, lengths_of
from burnbook.nn.loss.reduction import Reduction, check_reduction, reduced
from burnbook.nn.shared import at_least
from burnbook.ops.sequence_loss import ctc_loss
from burnbook.tensor import Tensor, apply


class CTCLossConfig(Config):
    """How to make a CTCLoss.

    blank: the class that means "no label", at least 0 (default 0).
    zero_infinity: whether sequences too short for their labels have the loss 0 instead
        of inf (default False).

    Example:
        >>> CTCLossConfig().with_zero_infinity(True).init().blank
        0
    """

    blank: int = 0
    zero_infinity: bool = False

    def validate(self) -> None:
        """Refuse a blank below 0."""
        at_least(self, 0, "blank")

    def init(self) -> "CTCLoss":
        """The loss."""
        return CTCLoss(self.blank, self.zero_infinity)


class CTCLoss(Module):
    """Connectionist temporal classification: loss = −log Σ over paths Πₜ p(path at t).

    A path gives each frame a label or a blank; it counts where it spells the target
    once repetitions and then blanks are dropped. Targets are padded to one length and
    hold no blank.

    Shapes: log_probs [t, n, c], targets [n, s], lengths [n] -> [n]
    Example:
        >>> scores = Tensor.zeros([3, 1, 2])  # three frames, a label and the blank
        >>> target, one = Tensor.from_ints([[1]]), Tensor.from_ints([1])
        >>> loss = CTCLossConfig().init()
        >>> out = loss.forward(
        ...     scores.log_softmax(2), target, Tensor.from_ints([3]), one
        ... )
        >>> round(out.exp().into_scalar(), 4)  # 6 of 8 paths spell it
        1.3333

    Why: a sequence that is too short for its labels has the loss inf and no gradient.
    Source: Graves et al., Connectionist Temporal Classification, 2006.
    """

    blank: int
    zero_infinity: bool

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor,
        target_lengths: Tensor,
        reduction: Reduction | None = None,
    ) -> Tensor:
        """The loss of each sequence; with a reduction, that of all as one number.

        The rest is that of `forward_with_reduction`.
        """
        given = (log_probs, targets, input_lengths, target_lengths)
        if reduction is None:
            return self.forward_no_reduction(*given)
        return self.forward_with_reduction(*given, reduction)

    def forward_no_reduction(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor,
        target_lengths: Tensor,
    ) -> Tensor:
        """The loss of each sequence; log_probs are logarithms of probabilities.

        Shapes: log_probs [t, n, c], targets [n, s], lengths [n] -> [n]
        """
        given = {
            "log_probs": log_probs,
            "targets": targets,
            "input_lengths": input_lengths,
            "target_lengths": target_lengths,
        }
        fit("ctc_loss", given, targets=Int, input_lengths=Int, target_lengths=Int)
        losses = apply(
            ctc_loss,
            log_probs,
            targets,
            input_lengths=lengths_of(input_lengths),
            target_lengths=lengths_of(target_lengths),
            blank=self.blank,
        )
        return losses.mask_fill(losses.is_inf(), 0.0) if self.zero_infinity else losses

    def forward_with_reduction(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor,
        target_lengths: Tensor,
        reduction: Reduction = Reduction.Auto,
    ) -> Tensor:
        """The loss of the batch as one number; a mean divides by target lengths first.

        Shapes: log_probs [t, n, c], targets [n, s], lengths [n] -> [1]
        """
        losses = self.forward_no_reduction(
            log_probs, targets, input_lengths, target_lengths
        )
        check_reduction(reduction)
        if reduction in (Reduction.Mean, Reduction.Auto):
            losses = losses / target_lengths.clamp_min(1).float()
        return reduced(losses, reduction)
