"""Every layer keeps its promises: one row each, and no layer without a row.

A row is a config (or a module) and what its forward takes: the shape of a Float input,
an array of whole numbers, or a function of a device. `More` holds the rest of what
`check_module` takes.
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.config import Config
from burnbook.module import Module, Param
from burnbook.nn.check import check_module
from burnbook.nn.initializer import KAIMING
from burnbook.tensor import Tensor, activation

ROOT = Path(__file__).resolve().parents[2]


def signs(device):
    """Targets of 1 and −1."""
    return Tensor.from_data([1.0, -1.0, 1.0, -1.0], device)


class Features(Module):
    """What a style loss looks at, in place of a large network: two kinds of edges."""

    def forward(self, x):
        across, down = x.narrow(3, 1, 4) - x.narrow(3, 0, 4), x.narrow(2, 1, 3).tanh()
        return [across.flatten(2, 3), down.flatten(2, 3)]


def attend(layer, query, key, value):
    """What an attention layer makes of three sequences."""
    return layer.forward(nn.MhaInput.new(query, key, value)).context


def encode(encoder, x):
    """What an encoder makes of a sequence."""
    return encoder.forward(nn.TransformerEncoderInput.new(x))


def decode(decoder, x, memory):
    """What a decoder, or a layer of one, makes of two sequences."""
    made = decoder.forward(nn.TransformerDecoderInput.new(x, memory))
    return made if isinstance(made, Tensor) else made.target


def of_logs(loss, scores, targets):
    """A loss of log-probabilities, made of scores."""
    return loss.forward(scores.log_softmax(1), targets)


def key_biases(*paths):
    """A bias of all keys moves all scores alike, and so no weight."""
    return tuple(f"{path}key.bias" for path in paths)


class More(NamedTuple):
    """What a row says besides its inputs."""

    differs: bool = False
    unreached: tuple[str, ...] = ()
    forward: Any = None


MHA = nn.MultiHeadAttentionConfig(4, 2)
ENCODER = nn.TransformerEncoderConfig(4, 6, 2, 1).with_dropout(0.0)
DECODER = nn.TransformerDecoderConfig(4, 6, 2, 1).with_dropout(0.0)
OF_DECODER = key_biases("layers.0.cross_attn.", "layers.0.self_attn.")
IMAGES = [2, 4, 5, 6]
CLASSES = np.array([0, 2, 1, 1])
WHICH = np.array([1, -1, 1, -1])
PAIRS = np.array([[1, 2], [3, 1]])
SHARES = np.random.default_rng(4).uniform(0.2, 0.8, (4, 3))
EVERY: list[tuple[Any, ...]] = [
    # general
    (nn.LinearConfig(3, 5), [2, 4, 3]),
    (nn.LinearConfig(3, 5).with_bias(False), [3]),
    (nn.DropoutConfig(0.5), [4, 6], More(differs=True)),
    (nn.GaussianNoiseConfig(0.5), [4, 6], More(differs=True)),
    (nn.Identity(), [2, 3]),
    (nn.Sequential(nn.Tanh(), activation.relu), [2, 3]),
    (nn.PixelShuffleConfig(2), IMAGES),
    (nn.PixelUnshuffleConfig(2), [2, 3, 4, 6]),
    (nn.CosineSimilarityConfig(), [4, 3], [4, 3]),
    (nn.PairwiseDistanceConfig(), [4, 3], [4, 3]),
    (nn.Interpolate1dConfig().with_output_size(7), [2, 3, 4]),
    (nn.Interpolate2dConfig().with_scale_factor([2.0, 1.5]), IMAGES),
    (nn.Unfold4dConfig([2, 3]), IMAGES),
    (nn.Fold4dConfig([4, 5], [2, 3]), [2, 12, 9]),
    # normalization
    (nn.LayerNormConfig(6), [4, 3, 6]),
    (nn.LayerNormConfig(6).with_bias(False), [4, 6]),
    (nn.BatchNormConfig(4), IMAGES, More(differs=True)),
    (nn.BatchNormConfig(4), [5, 4], More(differs=True)),
    (nn.GroupNormConfig(2, 4), IMAGES),
    (nn.GroupNormConfig(2, 4).with_epsilon_inside(True), [3, 4, 5]),
    (nn.GroupNormConfig(2, 4).with_affine(False), IMAGES),
    (nn.InstanceNormConfig(4), IMAGES),
    (nn.RmsNormConfig(6), [4, 3, 6]),
    (nn.LocalResponseNormConfig(3), IMAGES),
    (nn.NormalizationConfig.Layer(nn.LayerNormConfig(6)), [4, 6]),
    (nn.NormalizationConfig.Identity, [4, 6]),
    # activations
    *((made, [4, 6]) for made in (nn.Relu(), nn.Relu6(), nn.Gelu(), nn.Gelu(True))),
    *((made, [4, 6]) for made in (nn.Sigmoid(), nn.LogSigmoid(), nn.Tanh(), nn.SiLU())),
    *((made, [4, 6]) for made in (nn.Tanhshrink(), nn.Softsign(), nn.HardSwish())),
    *((made, [4, 6]) for made in (nn.Mish(), nn.Selu(), nn.Glu(1))),
    *((made, [4, 6]) for made in (nn.Softmax(1), nn.LogSoftmax(0))),
    *((made, [4, 6]) for made in (nn.Softmin(1), nn.QuietSoftmax(1))),
    (nn.LeakyReluConfig(), [4, 6]),
    (nn.PReluConfig(), [4, 6]),
    (nn.PReluConfig(num_parameters=4), IMAGES),
    (nn.RReluConfig(), [4, 6], More(differs=True)),
    (nn.EluConfig(), [4, 6]),
    (nn.CeluConfig(), [4, 6]),
    (nn.ThresholdConfig(0.1, 0.2), [4, 6]),
    (nn.ThresholdedReluConfig(alpha=0.1), [4, 6]),
    (nn.HardSigmoidConfig(), [4, 6]),
    (nn.HardtanhConfig(), [4, 6]),
    (nn.SoftplusConfig(), [4, 6]),
    (nn.ShrinkConfig(), [4, 6]),
    (nn.HardShrinkConfig(), [4, 6]),
    (nn.SoftShrinkConfig(), [4, 6]),
    (nn.SwiGluConfig(3, 5), [4, 3]),
    (nn.SwiGluConfig(3, 5, layout=nn.LinearLayout.Col), [4, 3]),
    (nn.ActivationConfig.SwiGlu(nn.SwiGluConfig(3, 5)), [4, 3]),
    (nn.ActivationConfig.Gelu, [4, 3]),
    # convolutions
    (nn.Conv1dConfig(4, 6, 3), [2, 4, 7]),
    (nn.Conv2dConfig([4, 6], [3, 2]).with_groups(2), IMAGES),
    (nn.Conv3dConfig([2, 3], [2, 2, 2]), [2, 2, 3, 4, 3]),
    (nn.ConvTranspose1dConfig([4, 6], 3), [2, 4, 5]),
    (nn.ConvTranspose2dConfig([4, 6], [3, 2]), IMAGES),
    (nn.ConvTranspose3dConfig([2, 3], [2, 2, 2]), [2, 2, 2, 3, 2]),
    (nn.DeformConv2dConfig([4, 2], [2, 2]), [1, 4, 4, 5], [1, 8, 3, 4], [1, 4, 3, 4]),
    # pooling
    (nn.AvgPool1dConfig(3), [2, 3, 7]),
    (nn.AvgPool2dConfig([2, 3]), IMAGES),
    (nn.MaxPool1dConfig(3), [2, 3, 7]),
    (nn.MaxPool2dConfig([2, 3]), IMAGES),
    (nn.AdaptiveAvgPool1dConfig(3), [2, 3, 7]),
    (nn.AdaptiveAvgPool2dConfig([3, 2]), IMAGES),
    (nn.AdaptiveAvgPool3dConfig([2, 2, 2]), [1, 2, 3, 4, 3]),
    # recurrent
    (nn.GateController.new(2, 3, True, KAIMING, Numpy()), [4, 2], [4, 3]),
    (nn.LstmConfig(2, 3, True), [2, 4, 2]),
    (nn.LstmConfig(2, 3, False).with_reverse(True), [2, 4, 2]),
    (nn.BiLstmConfig(2, 3, True), [2, 4, 2]),
    (nn.GruConfig(2, 3, True), [2, 4, 2]),
    (nn.GruConfig(2, 3, False), [2, 4, 2], [2, 3]),
    (nn.BiGruConfig(2, 3, True), [2, 4, 2]),
    (nn.RnnConfig(2, 3, True), [2, 4, 2]),
    (nn.BiRnnConfig(2, 3, True), [2, 4, 2]),
    # attention and transformers
    (nn.EmbeddingConfig(5, 3), np.array([[4, 1, 0], [2, 3, 1]])),
    (nn.PositionalEncodingConfig(4, max_sequence_size=9), [2, 3, 4]),
    (nn.RotaryEncodingConfig(9, 4), [2, 3, 4]),
    (
        MHA.with_dropout(0.0),
        *([2, 3, 4], [2, 5, 4], [2, 5, 4]),
        More(unreached=key_biases(""), forward=attend),
    ),
    (
        MHA.with_dropout(0.0).with_quiet_softmax(True),
        *([2, 3, 4], [2, 5, 4], [2, 5, 4]),
        More(forward=attend),
    ),
    (
        MHA.with_dropout(0.5),
        *([2, 3, 4], [2, 5, 4], [2, 5, 4]),
        More(differs=True, forward=attend),
    ),
    (
        nn.CrossAttentionConfig(4, 5, 4, 2, 3).with_dropout(0.0),
        *([2, 3, 4], [2, 5, 5]),
        More(unreached=key_biases("")),
    ),
    (nn.PositionWiseFeedForwardConfig(4, 6).with_dropout(0.0), [2, 3, 4]),
    (
        *(ENCODER.with_norm_first(True), [2, 3, 4]),
        More(unreached=key_biases("layers.0.mha."), forward=encode),
    ),
    (
        *(nn.TransformerEncoderLayer.new(ENCODER, Numpy()), [2, 3, 4]),
        More(unreached=key_biases("mha.")),
    ),
    (
        *(DECODER.with_norm_first(True), [2, 3, 4], [2, 5, 4]),
        More(unreached=OF_DECODER, forward=decode),
    ),
    (
        *(nn.TransformerDecoderLayer.new(DECODER, Numpy()), [2, 3, 4], [2, 5, 4]),
        More(unreached=key_biases("cross_attn.", "self_attn."), forward=decode),
    ),
    # losses
    (nn.CrossEntropyLossConfig(), [4, 3], CLASSES),
    (
        nn.CrossEntropyLossConfig().with_weights([1.0, 2.0, 3.0]).with_smoothing(0.1),
        [4, 3],
        CLASSES,
    ),
    (nn.BinaryCrossEntropyLossConfig().with_logits(True), [4], np.array([0, 1, 1, 0])),
    (nn.MseLoss(), [4, 3], [4, 3]),
    (nn.HuberLossConfig(0.5), [4, 3], [4, 3]),
    (nn.SmoothL1LossConfig(), [4, 3], [4, 3]),
    (nn.LpLossConfig(3.0), [4, 3], [4, 3]),
    (nn.KLDivLossConfig(), [4, 3], SHARES, More(forward=of_logs)),
    (nn.PoissonNllLossConfig(), [4, 3], SHARES),
    (nn.GaussianNLLLossConfig(), [4, 3], [4, 3], SHARES),
    (nn.CosineEmbeddingLossConfig(), [4, 3], [4, 3], WHICH),
    (nn.HingeEmbeddingLossConfig(), [4], signs),
    (nn.MarginRankingLossConfig(), [4], [4], signs),
    (nn.MultiMarginLossConfig(), [4, 3], CLASSES),
    (nn.SoftMarginLoss(), [4], signs),
    (nn.TripletMarginLossConfig(), [4, 3], [4, 3], [4, 3]),
    (nn.GramMatrixLoss([1.0, 0.5], Features()), [2, 3, 4, 5], [2, 3, 4, 5]),
    (nn.CTCLossConfig(), [5, 2, 4], PAIRS, np.array([5, 4]), np.array([2, 1])),
    (nn.RNNTLossConfig(), [2, 4, 3, 4], PAIRS, np.array([4, 3]), np.array([2, 1])),
]

# Layers whose row is still to come; this list must become empty.
PENDING: set[str] = set()


def name_of(row):
    subject = row[0]
    if isinstance(subject, Module):
        return str(subject)
    return repr(subject).replace("Config", "", 1)[:70]


@pytest.mark.parametrize("row", EVERY, ids=name_of)
def test_a_layer_keeps_its_promises(row):
    subject, *inputs = row
    more = inputs.pop() if isinstance(inputs[-1], More) else More()
    report = check_module(subject, *inputs, **more._asdict())
    assert report.passed, f"\n{report}"


def layers():
    """The classes of all layers that nn names."""
    found = {name: getattr(nn, name) for name in nn.__all__}
    return {
        made.__name__
        for made in found.values()
        if isinstance(made, type) and issubclass(made, Module)
    }


def test_every_layer_has_a_row():
    checked = set()
    for subject, *_ in EVERY:
        if isinstance(subject, Module):
            checked.add(type(subject).__name__)
        elif isinstance(subject, Config):
            checked.add(type(subject).__name__.removesuffix("Config"))
    assert layers() - checked == PENDING


# What check_module finds


class Scale(Module):
    """A layer as a reader writes it, with a parameter too many."""

    factor: Param
    offset: Param | None

    def forward(self, x):
        return x * self.factor.val()

    @classmethod
    def make(cls, device, offset=False):
        two = Param.from_tensor(Tensor.full([1, 3], 2.0, device))
        more = Param.from_tensor(Tensor.full([1, 3], 1.0, device)) if offset else None
        return cls(two, more)


class Cut(Scale):
    def forward(self, x):
        return x * self.factor.val() + (x * x).detach()


class Hidden(Scale):
    def forward(self, x):
        table = vars(self).setdefault("_table", Tensor.ones([1, 3], x.backend))
        return x * self.factor.val() * table


class Shaken(Scale):
    def forward(self, x):
        count = vars(self)["_count"] = vars(self).get("_count", 0) + 1
        return x * self.factor.val() * float(count)


AD = Autodiff(Numpy(float="f64"))


def failed(module, **more):
    """The promises that a module breaks, and the first one's text."""
    report = check_module(module, [4, 3], **more)
    return {promise.split(":")[0]: text for promise, text in report.failed.items()}


def test_a_right_module_passes_whatever_device_it_is_on():
    assert failed(Scale.make(AD)) == {}
    assert failed(Scale.make(Numpy())) == {}


def test_a_parameter_that_nothing_reaches_is_named():
    made = Scale.make(AD, offset=True)
    assert failed(made) == {"gradients": "no gradient reaches offset"}
    assert failed(made, unreached=["offset"]) == {}


def test_a_gradient_that_is_cut_is_found():
    found = failed(Cut.make(AD))
    assert list(found) == ["gradients"]
    numbers = r"the gradient of input 0 says -?[\d.]+, the slope is -?[\d.]+$"
    assert re.match(numbers, found["gradients"])


def test_a_layer_that_trains_as_it_infers_must_not_say_that_it_differs():
    found = failed(Scale.make(AD), differs=True)
    assert found == {"valid": "training and inference give the same results"}
    layer = nn.DropoutConfig(0.5).init()
    assert failed(layer) == {"valid": "training and inference give different results"}


def test_a_tensor_that_stays_behind_is_found():
    found = failed(Hidden.make(AD))
    assert "all inputs must live on one backend" in found["devices"]
    assert "all inputs must live on one backend" in found["valid"]


def test_random_inference_is_found():
    found = failed(Shaken.make(AD))
    assert found["forward"] == "a second run gives another result"


def test_the_report_is_a_page():
    report = check_module(Scale.make(AD, offset=True), [4, 3])
    lines = str(report).splitlines()
    assert lines[0].startswith("check_module Scale { factor: ParamTensor")
    assert lines[4:6] == [
        "  ✘ gradients: each is the slope, for every parameter and input",
        "      no gradient reaches offset",
    ]
    assert repr(report) == str(report)
    assert not report.passed


# The book's list

BUILT_IN = """
    BatchNorm Dropout Embedding Gelu GroupNorm HardSigmoid InstanceNorm
    LayerNorm LeakyRelu Linear Prelu Relu RmsNorm SwiGlu Interpolate1d
    Interpolate2d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d
    ConvTranspose3d DeformConv2d AdaptiveAvgPool1d AdaptiveAvgPool2d AvgPool1d
    AvgPool2d MaxPool1d MaxPool2d Gru Lstm BiLstm GateController
    MultiHeadAttention TransformerDecoder TransformerEncoder PositionalEncoding
    RotaryEncoding CrossEntropyLoss MseLoss HuberLoss
"""

# Modules of the book that are still to come; this list must become empty.
TO_COME: set[str] = set()


def test_every_module_of_the_book_is_there():
    assert {name for name in BUILT_IN.split() if not hasattr(nn, name)} == TO_COME


def test_the_list_is_that_of_the_book():
    book = ROOT.parent / "shared/book/burn_book_0.15.txt"
    if not book.exists():
        pytest.skip("the book's text is not here")
    text = book.read_text("utf-8")
    part = text[text.index("\nBuilt-in Modules\n") :]
    part = part[: part.index("\nLearner\n")]
    rows = [line.split(" | ")[0] for line in part.splitlines() if " | " in line]
    named = [n.strip() for row in rows for n in row.split("/") if row != "Burn API"]
    assert named == BUILT_IN.split()
