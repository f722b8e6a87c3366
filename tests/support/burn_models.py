"""The modules whose records Burn 0.15 wrote, with its fields and configs.

They mirror check-0.15/src/models.rs and training.rs beside the project: the names of
classes, variants and fields are those in the records.
"""

from typing import Annotated

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.examples.guide.model import ModelConfig
from burnbook.module import Module, Param, ParamId
from burnbook.nn import attention, transformer
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
from burnbook.nn.pool import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool1dConfig,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool2dConfig,
    AvgPool1d,
    AvgPool1dConfig,
    AvgPool2d,
    AvgPool2dConfig,
    MaxPool1d,
    MaxPool1dConfig,
    MaxPool2d,
    MaxPool2dConfig,
)
from burnbook.tensor import Tensor, activation


class Everything(Module):
    """Every module of Burn 0.15's nn once, some of them twice."""

    linear: nn.Linear
    linear_no_bias: nn.Linear
    conv1d: Conv1d
    conv2d: Conv2d
    conv2d_groups: Conv2d
    conv3d: Conv3d
    conv_transpose1d: ConvTranspose1d
    conv_transpose2d: ConvTranspose2d
    conv_transpose3d: ConvTranspose3d
    deform_conv2d: DeformConv2d
    embedding: nn.Embedding
    batch_norm0: nn.BatchNorm
    batch_norm1: nn.BatchNorm
    batch_norm2: nn.BatchNorm
    batch_norm3: nn.BatchNorm
    layer_norm: nn.LayerNorm
    group_norm: nn.GroupNorm
    group_norm_plain: nn.GroupNorm
    instance_norm: nn.InstanceNorm
    rms_norm: nn.RmsNorm
    prelu: nn.PRelu
    swiglu: nn.SwiGlu
    gate: nn.GateController
    lstm: nn.Lstm
    lstm_no_bias: nn.Lstm
    bi_lstm: nn.BiLstm
    gru: nn.Gru
    attention: nn.MultiHeadAttention
    feed_forward: nn.PositionWiseFeedForward
    encoder: nn.TransformerEncoder
    encoder_norm_first: nn.TransformerEncoder
    decoder: nn.TransformerDecoder
    decoder_norm_first: nn.TransformerDecoder
    positional: nn.PositionalEncoding
    rotary: nn.RotaryEncoding
    avg_pool1d: AvgPool1d
    avg_pool2d: AvgPool2d
    max_pool1d: MaxPool1d
    max_pool2d: MaxPool2d
    adaptive_avg_pool1d: AdaptiveAvgPool1d
    adaptive_avg_pool2d: AdaptiveAvgPool2d
    dropout: nn.Dropout
    relu: nn.Relu
    gelu: nn.Gelu
    sigmoid: nn.Sigmoid
    tanh: nn.Tanh
    leaky_relu: nn.LeakyRelu
    hard_sigmoid: nn.HardSigmoid
    interpolate1d: nn.Interpolate1d
    interpolate2d: nn.Interpolate2d
    unfold: nn.Unfold4d
    cross_entropy: nn.CrossEntropyLoss
    binary_cross_entropy: nn.BinaryCrossEntropyLoss
    mse: nn.MseLoss
    huber: nn.HuberLoss

    def outputs(self, name, inputs):
        """What the part of this name computes, as Burn's program asks it."""
        part = getattr(self, name.partition(".")[0])
        if name in SPECIAL:
            return SPECIAL[name](part, *inputs)
        return [part.forward(*inputs)]


def _lstm(part, x, cell=None, hidden=None):
    state = None if cell is None else nn.LstmState(cell, hidden)
    y, state = part.forward(x, state)
    return [y, state.cell, state.hidden]


def _attention(part, x, attn, pad):
    given = attention.MhaInput.self_attn(x).mask_attn(attn).mask_pad(pad)
    found = part.forward(given)
    return [found.context, found.weights]


def _cross_attention(part, x, other):
    found = part.forward(attention.MhaInput(x, other, other))
    return [found.context, found.weights]


def _encoder(part, x, attn, pad):
    given = transformer.TransformerEncoderInput(x).mask_pad(pad)
    return [part.forward(given.mask_attn(attn))]


def _decoder(part, x, other, attn):
    given = transformer.TransformerDecoderInput(x, other)
    return [part.forward(given.target_mask_attn(attn))]


SPECIAL = {
    **dict.fromkeys(("lstm", "lstm_no_bias", "bi_lstm"), _lstm),
    "attention": _attention,
    "attention.cross": _cross_attention,
    **dict.fromkeys(("encoder", "encoder_norm_first"), _encoder),
    **dict.fromkeys(("decoder", "decoder_norm_first"), _decoder),
    "gru": lambda part, x, hidden: [part.forward(x, hidden.squeeze(1))],  # one step
    "gate": lambda part, x, hidden: [part.gate_product(x, hidden)],
    "mse": lambda part, x, t: [part.forward(x, t, nn.Reduction.Mean)],
    "huber": lambda part, x, t: [part.forward(x, t, nn.Reduction.Sum)],
}


def everything(device=None):
    """The module with numbers of its own; the Gru as before Burn 0.17."""
    device = device or Numpy()
    xavier = nn.Initializer.XavierNormal(1.0)
    no_bias = Conv2dConfig([4, 4], [3, 3]).with_groups(2).with_bias(False)
    spread = Conv2dConfig([2, 3], [3, 2]).with_stride([1, 2]).with_dilation([2, 1])
    made = {
        "linear": nn.LinearConfig(3, 4),
        "linear_no_bias": nn.LinearConfig(3, 2).with_bias(False),
        "conv1d": Conv1dConfig(2, 3, 3)
        .with_stride(2)
        .with_padding(nn.PaddingConfig1d.Explicit(1)),
        "conv2d": spread.with_padding(nn.PaddingConfig2d.Explicit(1, 0)),
        "conv2d_groups": no_bias.with_padding(nn.PaddingConfig2d.Same),
        "conv3d": Conv3dConfig([1, 2], [2, 2, 3]).with_padding(
            nn.PaddingConfig3d.Explicit(0, 1, 1)
        ),
        "conv_transpose1d": ConvTranspose1dConfig([2, 3], 3)
        .with_stride(2)
        .with_padding(1)
        .with_padding_out(1),
        "conv_transpose2d": ConvTranspose2dConfig([2, 6], [2, 3])
        .with_groups(2)
        .with_stride([2, 1]),
        "conv_transpose3d": ConvTranspose3dConfig([2, 1], [2, 2, 2]).with_stride(
            [1, 2, 1]
        ),
        "deform_conv2d": DeformConv2dConfig([2, 3], [2, 2]),
        "embedding": nn.EmbeddingConfig(7, 4),
        "batch_norm0": nn.BatchNormConfig(3),
        "batch_norm1": nn.BatchNormConfig(2).with_momentum(0.25),
        "batch_norm2": nn.BatchNormConfig(2).with_epsilon(1e-3),
        "batch_norm3": nn.BatchNormConfig(2),
        "layer_norm": nn.LayerNormConfig(4),
        "group_norm": nn.GroupNormConfig(2, 4),
        "group_norm_plain": nn.GroupNormConfig(2, 4).with_affine(False),
        "instance_norm": nn.InstanceNormConfig(3),
        "rms_norm": nn.RmsNormConfig(4),
        "prelu": nn.PReluConfig().with_num_parameters(3),
        "swiglu": nn.SwiGluConfig(3, 4).with_bias(True),
        "gate": nn.GateController.new(3, 2, True, xavier, device),
        "lstm": nn.LstmConfig(3, 2, True),
        "lstm_no_bias": nn.LstmConfig(3, 2, False),
        "bi_lstm": nn.BiLstmConfig(3, 2, True),
        "gru": nn.GruConfig(3, 2, True).with_reset_after(False),
        "attention": nn.MultiHeadAttentionConfig(4, 2),
        "feed_forward": nn.PositionWiseFeedForwardConfig(4, 6),
        "encoder": nn.TransformerEncoderConfig(4, 6, 2, 2),
        "encoder_norm_first": nn.TransformerEncoderConfig(4, 6, 2, 1).with_norm_first(
            True
        ),
        "decoder": nn.TransformerDecoderConfig(4, 6, 2, 2),
        "decoder_norm_first": nn.TransformerDecoderConfig(4, 6, 2, 1).with_norm_first(
            True
        ),
        "positional": nn.PositionalEncodingConfig(4).with_max_sequence_size(8),
        "rotary": nn.RotaryEncodingConfig(8, 4),
        "avg_pool1d": AvgPool1dConfig(3)
        .with_padding(nn.PaddingConfig1d.Explicit(1))
        .with_count_include_pad(False),
        "avg_pool2d": AvgPool2dConfig([2, 2]).with_strides([2, 1]),
        "max_pool1d": MaxPool1dConfig(3).with_stride(2),
        "max_pool2d": MaxPool2dConfig([2, 2]).with_padding(
            nn.PaddingConfig2d.Explicit(1, 1)
        ),
        "adaptive_avg_pool1d": AdaptiveAvgPool1dConfig(3),
        "adaptive_avg_pool2d": AdaptiveAvgPool2dConfig([2, 3]),
        "dropout": nn.DropoutConfig(0.4),
        "relu": nn.Relu(),
        "gelu": nn.Gelu(),
        "sigmoid": nn.Sigmoid(),
        "tanh": nn.Tanh(),
        "leaky_relu": nn.LeakyReluConfig().with_negative_slope(0.1),
        "hard_sigmoid": nn.HardSigmoidConfig(),
        "interpolate1d": nn.Interpolate1dConfig().with_output_size(7),
        "interpolate2d": nn.Interpolate2dConfig()
        .with_scale_factor([2.0, 1.5])
        .with_mode(nn.InterpolateMode.Linear),
        "unfold": nn.Unfold4dConfig([2, 2]).with_stride([1, 2]),
        "cross_entropy": nn.CrossEntropyLossConfig()
        .with_pad_tokens([1, 3])
        .with_weights([1.0, 2.0, 3.0, 4.0]),
        "binary_cross_entropy": nn.BinaryCrossEntropyLossConfig().with_logits(True),
        "mse": nn.MseLoss(),
        "huber": nn.HuberLossConfig(0.5),
    }
    return Everything(**{name: _made(part, device) for name, part in made.items()})


def _made(part, device):
    if not hasattr(part, "init"):
        return part
    try:
        return part.init(device)
    except TypeError:  # a part without parameters is on no device
        return part.init()


class Inner(Module):
    """A module in a module, which holds a list of arrays."""

    gain: Param
    grid: list[tuple[nn.Linear]]


Choice = (
    Annotated[nn.Linear, "Dense"]
    | Annotated[Conv1d, "Narrow"]
    | Annotated[nn.Dropout, "Nothing"]
)


class Container(Module):
    """Every kind of field that a module of Burn 0.15 can have."""

    matrix: Param
    counts: Param
    flags: Param
    some: nn.Linear | None
    none: nn.Linear | None
    list: "list[nn.Linear]"
    empty: "list[nn.Linear]"
    pair: tuple[nn.Linear, nn.Linear]
    mixed: tuple[nn.Linear, nn.RmsNorm, nn.Dropout]
    choice: Choice
    other: Choice
    size: int
    rate: float
    active: bool
    name: str
    sizes: tuple[int, int]
    levels: "list[float]"
    limit: int | None
    no_limit: int | None
    kind: str
    inner: Inner
    table: Tensor
    backend: None

    def forward(self, x):
        x = x.matmul(self.matrix.val())
        x = x + self.counts.val().float().unsqueeze(2) * 0.01
        x = x.mask_fill(self.flags.val(), 0.1)
        x = activation.tanh(self.some.forward(x))
        for linear in (*self.list, *self.pair):
            x = linear.forward(x) * 3.0
        x = self.mixed[1].forward(self.mixed[0].forward(x))
        x = _chosen(self.other, _chosen(self.choice, x))
        x = x + self.inner.gain.val().unsqueeze(2)
        for (linear,) in self.inner.grid:
            x = linear.forward(x) * 2.0
        return x + self.table

    def outputs(self, name, inputs):
        return [self.forward(*inputs)]


def _chosen(part, x):
    if not isinstance(part, Conv1d):
        return part.forward(x)
    n, d = x.dims()
    return part.forward(x.reshape([n, 1, d])).reshape([n, d])


def _linear(d_input, d_output, device, bias=True):
    return nn.LinearConfig(d_input, d_output, bias=bias).init(device)


def container(variants="container", device=None):
    """As the record "container" is, or "container2": with other variants."""
    device = device or Numpy()

    def linear():
        return _linear(4, 4, device)

    same = nn.PaddingConfig1d.Same
    narrow = Conv1dConfig(1, 1, 3).with_padding(same).init(device)
    nothing = nn.DropoutConfig(0.3).init()
    chosen = {"container": (linear(), narrow), "container2": (nothing, linear())}
    choice, other = chosen[variants]
    plain = _linear(4, 4, device, bias=False)
    return Container(
        matrix=_param(Tensor.ones([3, 4], device)),
        counts=_param(Tensor.from_ints([1, 2, 3, 4], device)),
        flags=_param(Tensor.from_ints([[0] * 4] * 2, device).bool()),
        some=linear(),
        none=None,
        list=[linear(), linear()],
        empty=[],
        pair=(linear(), plain),
        mixed=(
            linear(),
            nn.RmsNormConfig(4).init(device),
            nn.DropoutConfig(0.2).init(),
        ),
        choice=choice,
        other=other,
        size=5,
        rate=0.25,
        active=True,
        name="container",
        sizes=(3, 4),
        levels=[0.5, 1.5, 2.5],
        limit=9,
        no_limit=None,
        kind="Square",
        inner=Inner(_param(Tensor.ones([4], device)), [(linear(),), (linear(),)]),
        table=Tensor.ones([2, 4], device) * 0.5,
        backend=None,
    )


def _param(value):
    return Param.initialized(ParamId.new(), value)


class Extremes(Module):
    """Values and sizes at which formats change their ways."""

    floats: Param
    ints: Param
    long: Param
    deep: Param
    many: list[Param]
    a_name_that_is_longer_than_thirty_one_bytes: Param


def extremes(device=None):
    """As the record "extremes"."""
    device = device or Numpy()
    row = [_param(Tensor.ones([size], device)) for size in (12, 16385, 1)]
    return Extremes(
        row[0],
        _param(Tensor.from_ints([0] * 4, device)),
        row[1],
        _param(Tensor.ones([1, 2, 1, 3, 2, 1], device)),
        [_param(Tensor.ones([1], device)) for _ in range(300)],
        row[2],
    )


class Small(Module):
    """Two layers, and a parameter that never gets a gradient: what optimizers train."""

    first: nn.Linear
    second: nn.Linear
    unused: Param

    def forward(self, x):
        return self.second.forward(activation.tanh(self.first.forward(x)))


def small(device=None):
    """As the record "small"."""
    device = device or Numpy()
    unused = Param.from_tensor(Tensor.zeros([3], device))
    return Small(_linear(3, 4, device), _linear(4, 2, device), unused)


class Guide(Module):
    """The guide's model of Burn 0.15, with the fields in its order."""

    conv1: Conv2d
    conv2: Conv2d
    pool: AdaptiveAvgPool2d
    dropout: nn.Dropout
    linear1: nn.Linear
    linear2: nn.Linear
    activation: nn.Relu

    def outputs(self, name, inputs):
        (images,) = inputs
        n, height, width = images.dims()
        x = self.conv1.forward(images.reshape([n, 1, height, width]))
        x = self.pool.forward(self.activation.forward(self.conv2.forward(x)))
        x = self.activation.forward(self.linear1.forward(x.reshape([n, -1])))
        return [self.linear2.forward(x)]


def guide(hidden, device=None):
    """The book's model with this hidden size."""
    made = ModelConfig(10, hidden).init(device or Numpy())
    return Guide(**{name: getattr(made, name) for name in Guide.__annotations__})


def made_for(kind, hidden=2):
    """The module that a record of this kind belongs to."""
    if kind.startswith("layer-"):
        return getattr(everything(), kind.removeprefix("layer-"))
    if kind.startswith("container"):
        return container(kind)
    if kind == "guide":
        return guide(hidden)
    made = {"everything": everything, "extremes": extremes}
    return made.get(kind, small)()
