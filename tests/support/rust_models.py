"""Modules that are written as Rust: every layer of Burn once, and models of one's own.

Each row is made anew with the seed 0: a module, and what it is called with.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import burnbook
from burnbook import nn
from burnbook.backend import Numpy
from burnbook.examples.guide.model import ModelConfig
from burnbook.module import Module, Param
from burnbook.nn.attention import MhaInput
from burnbook.nn.conv import (
    Conv1dConfig,
    Conv2d,
    Conv2dConfig,
    Conv3dConfig,
    ConvTranspose1dConfig,
    ConvTranspose2dConfig,
    ConvTranspose3dConfig,
    DeformConv2dConfig,
)
from burnbook.nn.pool import (
    AdaptiveAvgPool1dConfig,
    AdaptiveAvgPool2dConfig,
    AdaptiveAvgPool3dConfig,
    AvgPool1dConfig,
    AvgPool2dConfig,
    MaxPool1dConfig,
    MaxPool2dConfig,
)
from burnbook.nn.transformer import TransformerDecoderInput, TransformerEncoderInput
from burnbook.tensor import Tensor, activation
from tests.support.written_models import by_batch

DEVICE = Numpy()
Row = tuple[Module, tuple[Any, ...]]
Example = tuple[str, Any, tuple[Any, ...]]  # a name, a config or module, inputs


def floats(*shape: int, seed: int = 1) -> Tensor:
    """Numbers between −1 and 1, the same in each run."""
    rng = np.random.default_rng(seed)
    return Tensor.from_numpy(rng.uniform(-1, 1, shape).astype(np.float32), DEVICE)


def ints(*shape: int, below: int) -> Tensor:
    rng = np.random.default_rng(2)
    return Tensor.from_numpy(rng.integers(0, below, shape), DEVICE)


def mask(*shape: int) -> Tensor:
    rng = np.random.default_rng(3)
    return Tensor.from_numpy(rng.random(shape) < 0.3, DEVICE)


def causal(batch: int, steps: int) -> Tensor:
    return nn.generate_autoregressive_mask(batch, steps, DEVICE)


def _made(config: Any) -> Any:
    if not hasattr(config, "init"):
        return config
    try:
        return config.init(DEVICE)
    except TypeError:
        return config.init()


def _lstm_state(batch: int, size: int) -> Any:
    return nn.LstmState(floats(batch, size, seed=5), floats(batch, size, seed=6))


def layers() -> Iterator[Example]:
    """A name, a config and inputs for each layer that Burn 0.15 has."""
    same1, same2 = nn.PaddingConfig1d.Same, nn.PaddingConfig2d.Same
    image, line = floats(2, 4, 8, 8), floats(2, 4, 9)
    yield "linear", nn.LinearConfig(3, 4), (floats(2, 3),)
    yield "linear_no_bias", nn.LinearConfig(3, 4, bias=False), (floats(2, 5, 3),)
    yield "embedding", nn.EmbeddingConfig(7, 4), (ints(2, 5, below=7),)
    yield "conv1d", Conv1dConfig(4, 6, 3).with_padding(same1).with_groups(2), (line,)
    wide = Conv2dConfig([4, 3], [3, 2]).with_stride([1, 2]).with_dilation([2, 1])
    yield "conv2d", wide.with_padding(nn.PaddingConfig2d.Explicit(1, 0)), (image,)
    yield "conv2d_same", Conv2dConfig([4, 2], [3, 3]).with_padding(same2), (image,)
    yield from more_convolutions()
    yield from norms_and_activations()
    yield from pools()
    yield from sequences()
    yield from losses()


def more_convolutions() -> Iterator[Example]:
    image, line = floats(2, 4, 8, 8), floats(2, 4, 9)
    deep = floats(2, 1, 4, 5, 5)
    yield "conv3d", Conv3dConfig([1, 2], [2, 2, 3]).with_bias(False), (deep,)
    turned = ConvTranspose1dConfig([4, 3], 3).with_stride(2)
    yield "conv_transpose1d", turned.with_padding(1).with_padding_out(1), (line,)
    turned2 = ConvTranspose2dConfig([4, 6], [2, 3]).with_stride([2, 1])
    yield "conv_transpose2d", turned2.with_groups(2), (image,)
    yield "conv_transpose3d", ConvTranspose3dConfig([1, 2], [2, 2, 2]), (deep,)
    deform = DeformConv2dConfig([4, 3], [2, 2])
    offset = floats(2, 8, 7, 7)
    yield "deform_conv2d", deform, (image, offset)
    yield "deform_conv2d_mask", deform, (image, offset, floats(2, 4, 7, 7))


def norms_and_activations() -> Iterator[Example]:
    image, line = floats(2, 4, 8, 8), floats(2, 4, 9)
    yield "batch_norm1", nn.BatchNormConfig(4), (line,)
    yield "batch_norm2", nn.BatchNormConfig(4).with_epsilon(1e-3), (image,)
    yield "layer_norm", nn.LayerNormConfig(8).with_epsilon(1e-4), (image,)
    yield "rms_norm", nn.RmsNormConfig(8), (image,)
    yield "dropout", nn.DropoutConfig(0.4), (line,)
    yield "relu", nn.Relu(), (line,)
    yield "gelu", nn.Gelu(), (line,)
    yield "sigmoid", nn.Sigmoid(), (line,)
    yield "tanh", nn.Tanh(), (line,)
    yield "leaky_relu", nn.LeakyReluConfig().with_negative_slope(0.1), (line,)
    yield "hard_sigmoid", nn.HardSigmoidConfig(), (line,)
    yield "prelu", nn.PReluConfig().with_num_parameters(4), (line,)
    yield "swiglu", nn.SwiGluConfig(8, 3).with_bias(True), (image,)


def pools() -> Iterator[Example]:
    image, line = floats(2, 4, 8, 8), floats(2, 4, 9)
    yield "avg_pool1d", AvgPool1dConfig(3).with_stride(2), (line,)
    yield "avg_pool2d", AvgPool2dConfig([2, 2]).with_count_include_pad(False), (image,)
    yield "max_pool1d", MaxPool1dConfig(3).with_dilation(2), (line,)
    padded = MaxPool2dConfig([3, 3]).with_padding(nn.PaddingConfig2d.Explicit(1, 1))
    yield "max_pool2d", padded.with_strides([2, 2]), (image,)
    yield "adaptive_avg_pool1d", AdaptiveAvgPool1dConfig(3), (line,)
    yield "adaptive_avg_pool2d", AdaptiveAvgPool2dConfig([2, 3]), (image,)
    yield "interpolate1d", nn.Interpolate1dConfig().with_output_size(7), (line,)
    smooth = nn.Interpolate2dConfig().with_scale_factor([2.0, 1.5])
    yield "interpolate2d", smooth.with_mode(nn.InterpolateMode.Linear), (image,)
    yield "unfold4d", nn.Unfold4dConfig([2, 2]).with_stride([1, 2]), (image,)


def sequences() -> Iterator[Example]:
    words, memory = floats(2, 5, 4), floats(2, 3, 4, seed=4)
    attention = nn.MultiHeadAttentionConfig(4, 2)
    masked = MhaInput.self_attn(words).mask_attn(causal(2, 5)).mask_pad(mask(2, 5))
    yield "attention", attention, (masked,)
    yield "attention_cross", attention, (MhaInput(words, memory, memory),)
    yield "feed_forward", nn.PositionWiseFeedForwardConfig(4, 6), (words,)
    encoder = nn.TransformerEncoderConfig(4, 6, 2, 2)
    given = TransformerEncoderInput(words).mask_attn(causal(2, 5))
    yield "encoder", encoder, (given,)
    first = nn.TransformerEncoderConfig(4, 6, 2, 1).with_norm_first(True)
    yield "encoder_norm_first", first, (TransformerEncoderInput(words),)
    both = TransformerDecoderInput(words, memory).target_mask_attn(causal(2, 5))
    yield "decoder", nn.TransformerDecoderConfig(4, 6, 2, 2), (both,)
    sinusoids = nn.PositionalEncodingConfig(4).with_max_sequence_size(8)
    yield "positional", sinusoids, (words,)
    yield "rotary", nn.RotaryEncodingConfig(8, 4), (floats(2, 3, 5, 4),)
    yield "lstm", nn.LstmConfig(4, 3, True), (words,)
    yield "lstm_state", nn.LstmConfig(4, 3, False), (words, _lstm_state(2, 3))
    yield "bi_lstm", nn.BiLstmConfig(4, 3, True), (words,)


def losses() -> Iterator[Example]:
    scores, classes = floats(6, 4), ints(6, below=4)
    entropy = nn.CrossEntropyLossConfig().with_weights([1.0, 2.0, 3.0, 4.0])
    yield "cross_entropy", entropy.with_smoothing(0.1), (scores, classes)
    binary = nn.BinaryCrossEntropyLossConfig().with_logits(True)
    yield "binary_cross_entropy", binary, (floats(6), ints(6, below=2))
    others = floats(6, 4, seed=7)
    yield "mse", nn.MseLoss(), (scores, others, nn.Reduction.Mean)
    yield "huber", nn.HuberLossConfig(0.5), (scores, others, nn.Reduction.Sum)


def newer_layers() -> Iterator[Example]:
    """The same for what only the newest Burn has."""
    image, line, words = floats(2, 4, 8, 8), floats(2, 4, 9), floats(2, 5, 4)
    group, instance = nn.GroupNormConfig(2, 4), nn.InstanceNormConfig(4)
    yield "group_norm", group.with_epsilon_inside(True), (image,)
    yield "instance_norm", instance.with_epsilon_inside(True), (image,)
    yield "gru", nn.GruConfig(4, 3, True), (words,)
    yield "gru_state", nn.GruConfig(4, 3, True), (words, floats(2, 3, seed=5))
    yield "bi_gru", nn.BiGruConfig(4, 3, True), (words,)
    yield "bi_rnn", nn.BiRnnConfig(4, 3, True), (words,)
    yield "rnn", nn.RnnConfig(4, 3, True), (words,)
    coupled = nn.LstmConfig(4, 3, True).with_input_forget(True).with_clip(2.0)
    yield "lstm_coupled", coupled.with_reverse(True), (words,)
    yield (
        "adaptive_avg_pool3d",
        AdaptiveAvgPool3dConfig([2, 2, 2]),
        (floats(2, 2, 4, 5, 5),),
    )
    yield (
        "ceil_pool",
        MaxPool2dConfig([3, 3]).with_ceil_mode(True).with_strides([2, 2]),
        (image,),
    )
    for config in (
        nn.CeluConfig(), nn.EluConfig(alpha=0.5), nn.HardShrinkConfig(),
        nn.HardtanhConfig(), nn.SoftShrinkConfig(), nn.ShrinkConfig(),
        nn.SoftplusConfig(beta=2.0), nn.ThresholdConfig(0.1, 2.0),
        nn.ThresholdedReluConfig(alpha=0.3), nn.HardSwish(), nn.LogSigmoid(), nn.Mish(),
        nn.Relu6(), nn.Selu(), nn.SiLU(), nn.Softsign(), nn.Tanhshrink(),
        nn.Gelu(approximate=True), nn.Identity(),
    ):  # fmt: skip
        name = type(config).__name__.removesuffix("Config").lower()
        yield f"{name}_new", config, (line,)
    yield "local_response", nn.LocalResponseNormConfig(3), (image,)
    yield "pixel_shuffle", nn.PixelShuffleConfig(2), (image,)
    yield "pixel_unshuffle", nn.PixelUnshuffleConfig(2), (image,)
    yield "cosine", nn.CosineSimilarityConfig(), (floats(5, 4), floats(5, 4, seed=4))
    yield "pairwise", nn.PairwiseDistanceConfig(), (floats(5, 4), floats(5, 4, seed=4))
    fold = nn.Fold4dConfig([4, 4], [2, 2])
    yield "fold4d", fold, (floats(2, 8, 9),)
    cross = nn.CrossAttentionConfig(4, 6, 2, 1, 3)
    yield "cross_attention", cross, (words, floats(2, 3, 6))
    yield "layer_norm_plain", nn.LayerNormConfig(4).with_bias(False), (words,)
    warm = nn.TransformerEncoderConfig(4, 6, 2, 1).with_layer_norm_eps(1e-3)
    yield (
        "encoder_relu",
        warm.with_activation(nn.ActivationConfig.Relu),
        (TransformerEncoderInput(words),),
    )
    sides = Conv2dConfig([4, 2], [3, 3])
    yield (
        "conv2d_sides",
        sides.with_padding(nn.PaddingConfig2d.Explicit(1, 0, 2, 1)),
        (image,),
    )


class Block(Module):
    """Two convolutions, and the input added where it fits."""

    conv1: Conv2d
    norm: nn.BatchNorm
    conv2: Conv2d
    shortcut: Conv2d | None

    @classmethod
    def new(cls, c_in: int, c_out: int) -> "Block":
        same = nn.PaddingConfig2d.Same
        conv1 = Conv2dConfig([c_in, c_out], [3, 3]).with_padding(same).init(DEVICE)
        conv2 = Conv2dConfig([c_out, c_out], [3, 3]).with_padding(same).init(DEVICE)
        norm = nn.BatchNormConfig(c_out).init(DEVICE)
        short = Conv2dConfig([c_in, c_out], [1, 1]).init(DEVICE)
        return cls(conv1, norm, conv2, short if c_in != c_out else None)

    def forward(self, x):
        y = activation.relu(self.norm.forward(self.conv1.forward(x)))
        y = self.conv2.forward(y)
        left = x if self.shortcut is None else self.shortcut.forward(x)
        return activation.relu(y + left)


class Residual(Module):
    """Blocks in a list, a mean over the image, and a linear layer."""

    blocks: list[Block]
    head: nn.Linear

    @classmethod
    def new(cls) -> "Residual":
        blocks = [Block.new(2, 3), Block.new(3, 3), Block.new(3, 4)]
        return cls(blocks, nn.LinearConfig(4, 5).init(DEVICE))

    def forward(self, images):
        x = images
        for block in self.blocks:
            x = block.forward(x)
        n, c, _, _ = x.dims()
        x = x.mean_dim(3).mean_dim(2).reshape([n, c])
        return activation.log_softmax(self.head.forward(x), 1)


class Stack(Module):
    """Linears of one type in a list, called in turn, twice."""

    layers: list[nn.Linear]
    gain: Param
    shift: Tensor
    count: int = 3

    @classmethod
    def new(cls) -> "Stack":
        layers = [nn.LinearConfig(4, 4).init(DEVICE) for _ in range(3)]
        return cls(layers, Param.from_tensor(floats(4, seed=8)), floats(4, seed=9))

    def forward(self, x):
        for layer in self.layers:
            x = activation.tanh(layer.forward(x)) * self.gain.val().unsqueeze(2)
        return x / self.count - self.shift.unsqueeze(2)


class Attention(Module):
    """Self-attention by hand, with a mask that Python makes."""

    qkv: nn.Linear
    out: nn.Linear
    heads: int

    @classmethod
    def new(cls) -> "Attention":
        qkv = nn.LinearConfig(8, 24).init(DEVICE)
        return cls(qkv, nn.LinearConfig(8, 8).init(DEVICE), 2)

    def forward(self, x):
        n, steps, width = x.dims()
        q, k, v = (
            part.reshape([n, steps, self.heads, width // self.heads]).swap_dims(1, 2)
            for part in self.qkv.forward(x).chunk(3, 2)
        )
        scores = q.matmul(k.transpose()) / (width // self.heads) ** 0.5
        later = np.triu(np.ones((steps, steps), bool), 1)
        hidden = Tensor.from_numpy(later, x.device()).reshape([1, 1, steps, steps])
        scores = scores.mask_fill(hidden.expand(scores.dims()), -1e9)
        y = activation.softmax(scores, 3).matmul(v)
        return self.out.forward(y.swap_dims(1, 2).reshape([n, steps, width]))


class Tagger(Module):
    """Embedding, Lstm and Linear; it gives scores and the last state."""

    embedding: nn.Embedding
    lstm: nn.Lstm
    head: nn.Linear

    @classmethod
    def new(cls) -> "Tagger":
        embedding = nn.EmbeddingConfig(9, 4).init(DEVICE)
        lstm = nn.LstmConfig(4, 3, True).init(DEVICE)
        return cls(embedding, lstm, nn.LinearConfig(3, 2).init(DEVICE))

    def forward(self, tokens):
        x, state = self.lstm.forward(self.embedding.forward(tokens))
        return self.head.forward(x), state.hidden


class Operations(Module):
    """One of each operation that Burn has, in a row."""

    def forward(self, x, y):
        n, c = x.dims()
        z = (x - y) * 2.0 + 1.0 - x / 3.0
        z = z.max_pair(y).min_pair(x + 1.0).clamp(-2.0, 2.0)
        z = z.mask_where(z > 0.5, -z).mask_fill(y < x, 0.25)
        z = 1.0 - z.abs().sqrt().exp().recip() + z.powf_scalar(2.0)
        z = Tensor.cat([z, x.flip([1])], 1).slice([(0, n), (1, c + 2)])
        z = z.reshape([n, 1, c + 1]).expand([n, 2, c + 1]).permute([0, 2, 1])
        z = z - z.mean_dim(1) + z.max_dim(2) + z.sum_dim(2) * 0.1
        index = z.argmax(1)
        z = z.gather(1, index).float().squeeze(1) + index.float().squeeze(1)
        z = z.sort_descending(1) + (z.cos() + z.sin().log1p()).tanh()
        z = activation.gelu(z) + activation.silu(z) + activation.sigmoid(z)
        z = z.pad((1, 2, 0, 0), 0.5) if z.rank > 2 else z
        return 2.0 / (z + 4.0) + z.equal(z).float()


class Shared(Module):
    """A weight that two places use, and a part that is called twice."""

    embedding: nn.Embedding
    inner: nn.Linear

    @classmethod
    def new(cls) -> "Shared":
        embedding = nn.EmbeddingConfig(9, 4).init(DEVICE)
        return cls(embedding, nn.LinearConfig(4, 4).init(DEVICE))

    def forward(self, tokens):
        x = self.embedding.forward(tokens)
        x = self.inner.forward(self.inner.forward(x))
        weight = self.embedding.weight.val().transpose()
        return x.matmul(weight.unsqueeze(3))


class Pair(Module):
    """Parts of several types in a tuple and in a dict."""

    both: tuple[nn.Linear, nn.LayerNorm]
    named: dict[str, nn.Linear]

    @classmethod
    def new(cls) -> "Pair":
        linear = nn.LinearConfig(4, 4).init(DEVICE)
        norm = nn.LayerNormConfig(4).init(DEVICE)
        named = {k: nn.LinearConfig(4, 2).init(DEVICE) for k in ("left", "right")}
        return cls((linear, norm), named)

    def forward(self, x):
        x = self.both[1].forward(self.both[0].forward(x))
        return self.named["left"].forward(x) + self.named["right"].forward(x)


def _holder(name: str) -> type[Module]:
    """A class of this name with a Linear."""

    def forward(self: Any, x: Tensor) -> Tensor:
        return self.linear.forward(x)

    fields = {"__annotations__": {"linear": nn.Linear}, "forward": forward}
    return type(Module)(name, (Module,), {**fields, "__module__": __name__})


HOLDERS = ("B", "Self", "Default", "Clone", "NamesRecord", "Some", "Visitor")


class Names(Module):
    """Fields and classes with names that Rust or Burn's derives have for themselves."""

    b: nn.Sequential
    s: nn.Sequential
    device: nn.Linear
    mapper: nn.Linear
    visitor: nn.Relu
    record: list[Module]
    content: tuple[Module, ...]
    type: Param
    constant1: Param

    @classmethod
    def new(cls) -> "Names":
        def linear() -> nn.Linear:
            return nn.LinearConfig(4, 4).init(DEVICE)

        shifts = [Param.from_tensor(floats(4, seed=seed)) for seed in (5, 6)]
        holders = [_holder(name)(linear()) for name in HOLDERS]
        alike = nn.Sequential(**{"a-b": linear(), "a_b": linear()})
        rows = nn.Sequential(linear()), alike
        lists = [holders[0], holders[0].replace()], tuple(holders[1:])
        return cls(*rows, linear(), linear(), nn.Relu(), *lists, *shifts)

    def forward(self, device):
        x = self.device.forward(self.s.forward(self.b.forward(device)))
        x = self.visitor.forward(self.mapper.forward(x))
        for part in (*self.record, *self.content):
            x = part.forward(x)
        many = Tensor.from_numpy(np.arange(20, dtype=np.float32), x.device())
        for shift in (self.type, self.constant1):
            x = x + shift.val().unsqueeze(2)
        return x.sum_dim(1) + many.reshape([1, 20])


def own() -> Iterator[tuple[str, Module, tuple[Any, ...]]]:
    """Modules of one's own."""
    yield "guide", ModelConfig(10, 32).init(DEVICE), (floats(2, 28, 28),)
    yield "residual", Residual.new(), (floats(2, 2, 6, 6),)
    yield "stack", Stack.new(), (floats(3, 4),)
    yield "own_attention", Attention.new(), (floats(2, 5, 8),)
    yield "tagger", Tagger.new(), (ints(2, 5, below=9),)
    yield "operations", Operations(), (floats(3, 4), floats(3, 4, seed=4))
    yield "shared", Shared.new(), (ints(2, 5, below=9),)
    yield "pair", Pair.new(), (floats(3, 4),)
    yield "names", Names.new(), (floats(3, 4),)
    yield "by_batch", by_batch(), (floats(3, 4),)
    linear, relu = nn.LinearConfig(4, 4), activation.relu
    inner = nn.Sequential(linear.init(DEVICE), nn.Relu())
    row = nn.Sequential(inner, relu, linear.init(DEVICE))
    yield "sequential", row, (floats(3, 4),)
    yield "silu_layer", nn.Sequential(linear.init(DEVICE), nn.SiLU()), (floats(3, 4),)


def rows(
    source: Callable[[], Iterator[Example]],
) -> dict[str, Row]:
    """Modules with their inputs, by name; made with the seed 0."""
    burnbook.seed(0)
    made: dict[str, Row] = {}
    for name, config, inputs in source():
        made[name] = _made(config), inputs
    return made
