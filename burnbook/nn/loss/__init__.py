"""Losses."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.nn.loss.binary_cross_entropy import (
    BinaryCrossEntropyLoss,
    BinaryCrossEntropyLossConfig,
)
from burnbook.nn.loss.cosine_embedding import (
    CosineEmbeddingLoss,
    CosineEmbeddingLossConfig,
)
from burnbook.nn.loss.cross_entropy import CrossEntropyLoss, CrossEntropyLossConfig
from burnbook.nn.loss.ctc import CTCLoss, CTCLossConfig
from burnbook.nn.loss.gaussian_nll import GaussianNLLLoss, GaussianNLLLossConfig
from burnbook.nn.loss.gram_matrix import GramMatrixLoss, GramMatrixLossConfig, Vgg19
from burnbook.nn.loss.hinge_embedding import (
    HingeEmbeddingLoss,
    HingeEmbeddingLossConfig,
)
from burnbook.nn.loss.huber import HuberLoss, HuberLossConfig
from burnbook.nn.loss.kl_div import KLDivLoss, KLDivLossConfig
from burnbook.nn.loss.lp_loss import LpLoss, LpLossConfig
from burnbook.nn.loss.margin_ranking import MarginRankingLoss, MarginRankingLossConfig
from burnbook.nn.loss.mse import MseLoss
from burnbook.nn.loss.multi_margin import MultiMarginLoss, MultiMarginLossConfig
from burnbook.nn.loss.poisson_nll import PoissonNllLoss, PoissonNllLossConfig
from burnbook.nn.loss.reduction import Reduction
from burnbook.nn.loss.rnnt import RNNTLoss, RNNTLossConfig
from burnbook.nn.loss.smooth_l1 import SmoothL1Loss, SmoothL1LossConfig
from burnbook.nn.loss.soft_margin import SoftMarginLoss
from burnbook.nn.loss.triplet_margin import TripletMarginLoss, TripletMarginLossConfig

__all__ = [
    "BinaryCrossEntropyLoss",
    "BinaryCrossEntropyLossConfig",
    "CTCLoss",
    "CTCLossConfig",
    "CosineEmbeddingLoss",
    "CosineEmbeddingLossConfig",
    "CrossEntropyLoss",
    "CrossEntropyLossConfig",
    "GaussianNLLLoss",
    "GaussianNLLLossConfig",
    "GramMatrixLoss",
    "GramMatrixLossConfig",
    "HingeEmbeddingLoss",
    "HingeEmbeddingLossConfig",
    "HuberLoss",
    "HuberLossConfig",
    "KLDivLoss",
    "KLDivLossConfig",
    "LpLoss",
    "LpLossConfig",
    "MarginRankingLoss",
    "MarginRankingLossConfig",
    "MseLoss",
    "MultiMarginLoss",
    "MultiMarginLossConfig",
    "PoissonNllLoss",
    "PoissonNllLossConfig",
    "RNNTLoss",
    "RNNTLossConfig",
    "Reduction",
    "SmoothL1Loss",
    "SmoothL1LossConfig",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginLossConfig",
    "Vgg19",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
