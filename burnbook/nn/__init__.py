"""Layers and losses.

A star brings the classes and functions. It leaves out the modules (`nn.loss`, ...),
so that it does not replace the reader's own `activation` or `loss`.
"""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.nn import (
    activation as activation,
    attention as attention,
    cache as cache,
    conv as conv,
    loss as loss,
    norm as norm,
    pool as pool,
    rnn as rnn,
    transformer as transformer,
)
from burnbook.nn.activation import (
    GLU,
    Activation,
    ActivationConfig,
    Celu,
    CeluConfig,
    Elu,
    EluConfig,
    Gelu,
    Glu,
    HardShrink,
    HardShrinkConfig,
    HardSigmoid,
    HardSigmoidConfig,
    HardSwish,
    Hardtanh,
    HardtanhConfig,
    LeakyRelu,
    LeakyReluConfig,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PRelu,
    Prelu,
    PReluConfig,
    PreluConfig,
    QuietSoftmax,
    Relu,
    Relu6,
    RRelu,
    RReluConfig,
    Selu,
    Shrink,
    ShrinkConfig,
    Sigmoid,
    SiLU,
    Silu,
    Softmax,
    Softmin,
    Softplus,
    SoftplusConfig,
    SoftShrink,
    SoftShrinkConfig,
    Softsign,
    SwiGlu,
    SwiGluConfig,
    Swish,
    Tanh,
    Tanhshrink,
    Threshold,
    ThresholdConfig,
    ThresholdedRelu,
    ThresholdedReluConfig,
)
from burnbook.nn.attention import (
    CrossAttention,
    CrossAttentionCache,
    CrossAttentionConfig,
    GeneratePaddingMask,
    MhaCache,
    MhaInput,
    MhaOutput,
    MultiHeadAttention,
    MultiHeadAttentionConfig,
    SeqLengthOption,
    generate_autoregressive_mask,
    generate_padding_mask,
)
from burnbook.nn.cache import TensorCache
from burnbook.nn.check import ModuleReport, check_module
from burnbook.nn.conv import (
    Conv1d,
    Conv1dConfig,
    Conv2d,
    Conv2dConfig,
    Conv3d,
    Conv3dConfig,
    ConvTranspose1d,
    ConvTranspose1dConfig,
    ConvTranspose2d,
    ConvTranspose2dConfig,
    ConvTranspose3d,
    ConvTranspose3dConfig,
    DeformConv2d,
    DeformConv2dConfig,
)
from burnbook.nn.distance import (
    CosineSimilarity,
    CosineSimilarityConfig,
    PairwiseDistance,
    PairwiseDistanceConfig,
)
from burnbook.nn.dropout import Dropout, DropoutConfig
from burnbook.nn.embedding import Embedding, EmbeddingConfig
from burnbook.nn.identity import Identity
from burnbook.nn.initializer import Initializer
from burnbook.nn.interpolate import (
    Interpolate1d,
    Interpolate1dConfig,
    Interpolate2d,
    Interpolate2dConfig,
    InterpolateMode,
)
from burnbook.nn.linear import Linear, LinearConfig, LinearLayout
from burnbook.nn.loss import (
    BinaryCrossEntropyLoss,
    BinaryCrossEntropyLossConfig,
    CosineEmbeddingLoss,
    CosineEmbeddingLossConfig,
    CrossEntropyLoss,
    CrossEntropyLossConfig,
    CTCLoss,
    CTCLossConfig,
    GaussianNLLLoss,
    GaussianNLLLossConfig,
    GramMatrixLoss,
    GramMatrixLossConfig,
    HingeEmbeddingLoss,
    HingeEmbeddingLossConfig,
    HuberLoss,
    HuberLossConfig,
    KLDivLoss,
    KLDivLossConfig,
    LpLoss,
    LpLossConfig,
    MarginRankingLoss,
    MarginRankingLossConfig,
    MseLoss,
    MultiMarginLoss,
    MultiMarginLossConfig,
    PoissonNllLoss,
    PoissonNllLossConfig,
    Reduction,
    RNNTLoss,
    RNNTLossConfig,
    SmoothL1Loss,
    SmoothL1LossConfig,
    SoftMarginLoss,
    TripletMarginLoss,
    TripletMarginLossConfig,
)
from burnbook.nn.noise import GaussianNoise, GaussianNoiseConfig
from burnbook.nn.norm import (
    BatchNorm,
    BatchNormConfig,
    GroupNorm,
    GroupNormConfig,
    InstanceNorm,
    InstanceNormConfig,
    LayerNorm,
    LayerNormConfig,
    LocalResponseNorm,
    LocalResponseNormConfig,
    Normalization,
    NormalizationConfig,
    RmsNorm,
    RmsNormConfig,
)
from burnbook.nn.pixel_shuffle import (
    PixelShuffle,
    PixelShuffleConfig,
    PixelUnshuffle,
    PixelUnshuffleConfig,
)
from burnbook.nn.pool import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool1dConfig,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool2dConfig,
    AdaptiveAvgPool3d,
    AdaptiveAvgPool3dConfig,
    AvgPool1d,
    AvgPool1dConfig,
    AvgPool2d,
    AvgPool2dConfig,
    MaxPool1d,
    MaxPool1dConfig,
    MaxPool2d,
    MaxPool2dConfig,
)
from burnbook.nn.positional_encoding import (
    PositionalEncoding,
    PositionalEncodingConfig,
    generate_sinusoids,
)
from burnbook.nn.rnn import (
    BiGru,
    BiGruConfig,
    BiLstm,
    BiLstmConfig,
    BiRnn,
    BiRnnConfig,
    GateController,
    Gru,
    GruConfig,
    Lstm,
    LstmConfig,
    LstmState,
    Rnn,
    RnnConfig,
    RnnState,
)
from burnbook.nn.rope_encoding import RotaryEncoding, RotaryEncodingConfig
from burnbook.nn.sequential import Sequential
from burnbook.nn.shared import PaddingConfig1d, PaddingConfig2d, PaddingConfig3d
from burnbook.nn.transformer import (
    PositionWiseFeedForward,
    PositionWiseFeedForwardConfig,
    TransformerDecoder,
    TransformerDecoderAutoregressiveCache,
    TransformerDecoderConfig,
    TransformerDecoderInput,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderAutoregressiveCache,
    TransformerEncoderConfig,
    TransformerEncoderInput,
    TransformerEncoderLayer,
)
from burnbook.nn.unfold import Fold4d, Fold4dConfig, Unfold4d, Unfold4dConfig

# The folders are not here: `from burnbook.nn import *` would hide the functions in
# burnbook.tensor.activation, and a `loss` or `norm` of the reader.
__all__ = [
    "CosineSimilarity",
    "CosineSimilarityConfig",
    "Dropout",
    "DropoutConfig",
    "Embedding",
    "EmbeddingConfig",
    "Fold4d",
    "Fold4dConfig",
    "GaussianNoise",
    "GaussianNoiseConfig",
    "Identity",
    "Initializer",
    "Interpolate1d",
    "Interpolate1dConfig",
    "Interpolate2d",
    "Interpolate2dConfig",
    "InterpolateMode",
    "Linear",
    "LinearConfig",
    "LinearLayout",
    "ModuleReport",
    "PaddingConfig1d",
    "PaddingConfig2d",
    "PaddingConfig3d",
    "PairwiseDistance",
    "PairwiseDistanceConfig",
    "PixelShuffle",
    "PixelShuffleConfig",
    "PixelUnshuffle",
    "PixelUnshuffleConfig",
    "PositionalEncoding",
    "PositionalEncodingConfig",
    "RotaryEncoding",
    "RotaryEncodingConfig",
    "Sequential",
    "TensorCache",
    "Unfold4d",
    "Unfold4dConfig",
    "check_module",
    "generate_sinusoids",
]
__all__ += activation.__all__
__all__ += attention.__all__
__all__ += conv.__all__
__all__ += loss.__all__
__all__ += norm.__all__
__all__ += pool.__all__
__all__ += rnn.__all__
__all__ += transformer.__all__
__all__.remove("Vgg19")  # a network for one loss, in burnbook.nn.loss

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
