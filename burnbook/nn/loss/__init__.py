"""Building blocks · Module. Losses: how wrong an answer is, as one number."""

from burnbook.nn.loss.cross_entropy import CrossEntropyLoss, CrossEntropyLossConfig

__all__ = ["CrossEntropyLoss", "CrossEntropyLossConfig"]
