"""RNNTLoss: the loss of an RNN transducer, over all alignments."""

from burnbook.config import Config
from burnbook.core.dtypes import Int
from burnbook.core.errors import ShapeError
from burnbook.module import Module
from burnbook.nn.loss.checks import fit, lengths_of
from burnbook.nn.loss.reduction import Reduction, reduced
from burnbook.nn.shared import at_least
from burnbook.ops.sequence_loss import log_softmax_at, rnnt_labels, rnnt_loss
from burnbook.tensor import Tensor, apply
from burnbook.tensor.facts import facts_of


class RNNTLossConfig(Config):
    """How to make an RNNTLoss.

    blank: the class that means "next frame", at least 0 (default 0).
    logits: whether the input holds logits instead of log-probabilities (default True).

    Example:
        >>> RNNTLossConfig().with_blank(3).init().blank
        3
    """

    blank: int = 0
    logits: bool = True

    def validate(self) -> None:
        """Refuse a blank below 0."""
        at_least(self, 0, "blank")

    def init(self) -> "RNNTLoss":
        """The loss."""
        return RNNTLoss(self.blank, self.logits)


class RNNTLoss(Module):
    """The transducer's loss: −log Σ over all paths Π p(step at frame t after u labels).

    At each frame a path emits any number of labels and then the blank, which leads to
    the next frame; the last blank ends it. Targets are padded to one length.

    Shapes: logits [n, t, u + 1, c], targets [n, u], lengths [n] -> [n]
    Example:
        >>> scores = Tensor.zeros([1, 2, 2, 2])  # two frames, one label
        >>> target, two = Tensor.from_ints([[1]]), Tensor.from_ints([2])
        >>> loss = RNNTLossConfig().init()
        >>> out = loss.forward(scores, target, two, Tensor.from_ints([1]))
        >>> round((-out).exp().into_scalar(), 4)  # two paths of three steps
        0.25

    Source: Graves, Sequence Transduction with Recurrent Neural Networks, 2012.
    """

    blank: int
    logits: bool

    def forward(
        self,
        logits: Tensor,
        targets: Tensor,
        logit_lengths: Tensor,
        target_lengths: Tensor,
        reduction: Reduction | None = None,
    ) -> Tensor:
        """The loss of each sequence; with a reduction, that of all as one number.

        The rest is that of `forward_with_reduction`.
        """
        given = (logits, targets, logit_lengths, target_lengths)
        if reduction is None:
            return self.forward_no_reduction(*given)
        return self.forward_with_reduction(*given, reduction)

    def forward_no_reduction(
        self,
        logits: Tensor,
        targets: Tensor,
        logit_lengths: Tensor,
        target_lengths: Tensor,
    ) -> Tensor:
        """The loss of each sequence.

        Shapes: logits [n, t, u + 1, c], targets [n, u], lengths [n] -> [n]
        """
        given = {
            "logits": logits,
            "targets": targets,
            "logit_lengths": logit_lengths,
            "target_lengths": target_lengths,
        }
        fit("rnnt_loss", given, targets=Int, logit_lengths=Int, target_lengths=Int)
        if logits.rank != 4 or targets.rank != 2 or not self._fits(logits, targets):
            what = "logits must be [n, t, u + 1, c] and targets [n, u]"
            raise ShapeError("rnnt_loss", what, facts_of(**given))
        frames, labels = lengths_of(logit_lengths), lengths_of(target_lengths)
        n, t, u, c = logits.dims()
        lead: Tensor = apply(
            rnnt_labels, targets, target_lengths=labels, blank=self.blank, size=c
        )
        lead = lead.reshape([n, 1, u, 2]).expand([n, t, u, 2])
        if self.logits:
            edges = apply(log_softmax_at, logits, lead)
        else:
            edges = logits.gather(3, lead)
        return apply(rnnt_loss, edges, logit_lengths=frames, target_lengths=labels)

    def forward_with_reduction(
        self,
        logits: Tensor,
        targets: Tensor,
        logit_lengths: Tensor,
        target_lengths: Tensor,
        reduction: Reduction = Reduction.Auto,
    ) -> Tensor:
        """The loss of the batch as one number.

        Shapes: logits [n, t, u + 1, c], targets [n, u], lengths [n] -> [1]
        """
        losses = self.forward_no_reduction(
            logits, targets, logit_lengths, target_lengths
        )
        return reduced(losses, reduction)

    @staticmethod
    def _fits(logits: Tensor, targets: Tensor) -> bool:
        n, u = targets.dims()
        return logits.dims()[0] == n and logits.dims()[2] == u + 1
