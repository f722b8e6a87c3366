"""State dicts of PyTorch's layers, in and out: the outputs are PyTorch's."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.core.errors import RecordError
from burnbook.importers import (
    BurnToPyTorchAdapter,
    LazyArray,
    ModuleStore,
    PyTorchToBurnAdapter,
    pytorch_arrays,
)
from burnbook.importers.pytorch import PyTorchFileRecorder, PytorchStore
from burnbook.module import Module
from burnbook.nn.transformer import (
    TransformerDecoderConfig,
    TransformerDecoderInput,
    TransformerEncoderConfig,
    TransformerEncoderInput,
)
from burnbook.tensor import Tensor
from tests.support.cases import cases

torch = pytest.importorskip("torch", reason="PyTorch is the oracle here")

DEVICE = Numpy()
RNG = np.random.default_rng(5)


class Given(ModuleStore):
    """Arrays that are there already."""

    enum_variants_skipped = indices_contiguous = True

    def __init__(self, arrays):
        super().__init__(PyTorchToBurnAdapter())
        self.given = arrays

    def read_arrays(self):
        return self.given

    @property
    def source(self):
        return "memory"


def both_ways(theirs, ours, tmp_path):
    """Ours with PyTorch's weights, by store and recorder; and back."""
    theirs.eval()
    with torch.no_grad():
        for value in theirs.parameters():
            value.copy_(torch.from_numpy(RNG.normal(size=value.shape) / 3))
    path = tmp_path / "layer.pt"
    torch.save(theirs.state_dict(), path)
    made, result = ours.load_from(PytorchStore.from_file(path))
    assert result.is_success()
    assert result.unused == ()
    assert result.missing == ()
    recorded = ours.load_record(PyTorchFileRecorder().load(path, DEVICE))
    first, second = made.named_params(), recorded.named_params()
    for (name, a), (_, b) in zip(first, second, strict=True):
        assert np.array_equal(np.asarray(a.val()), np.asarray(b.val())), name
    back = pytorch_arrays(made)
    state = {k: torch.from_numpy(np.array(v.load().array)) for k, v in back.items()}
    theirs.load_state_dict(state, strict=True)
    for name, value in torch.load(path).items():
        if not name.endswith("num_batches_tracked"):
            assert torch.equal(value, state[name]), name
    again, _ = ours.load_from(Given(BurnToPyTorchAdapter().collect(made)))
    for (name, a), (_, b) in zip(first, again.named_params(), strict=True):
        assert np.array_equal(np.asarray(a.val()), np.asarray(b.val())), name
    return made.valid()


def near(ours, theirs):
    wanted = theirs.detach().numpy()
    np.testing.assert_allclose(np.asarray(ours), wanted, atol=1e-5, rtol=1e-5)


def inputs(*shape):
    x = RNG.normal(size=shape).astype(np.float32)
    return Tensor.from_numpy(x, DEVICE), torch.from_numpy(x)


RECURRENT = {
    "LSTM": (nn.LstmConfig, nn.BiLstmConfig),
    "GRU": (nn.GruConfig, nn.BiGruConfig),
    "RNN": (nn.RnnConfig, nn.BiRnnConfig),
}


@pytest.mark.parametrize("name", RECURRENT)
@cases("bias bidirectional", (True, False), (True, True), (False, False), (False, True))
def test_recurrent_layers(name, bias, bidirectional, tmp_path):
    options = {"batch_first": True, "bias": bias, "bidirectional": bidirectional}
    theirs = getattr(torch.nn, name)(3, 4, **options)
    ours = RECURRENT[name][bidirectional](3, 4, bias).init(DEVICE)
    made = both_ways(theirs, ours, tmp_path)
    x, y = inputs(2, 5, 3)
    out = made.forward(x)
    out = out[0] if isinstance(out, tuple) else out
    near(out, theirs(y)[0])


class Stack(Module):
    rnn: list[nn.Lstm] | list[nn.BiLstm] | list[nn.Gru]

    def forward(self, x):
        for layer in self.rnn:
            x = layer.forward(x)
            x = x[0] if isinstance(x, tuple) else x
        return x


class TheirStack(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.rnn = layer

    def forward(self, x):
        return self.rnn(x)[0]


@cases("name bidirectional", ("LSTM", False), ("LSTM", True), ("GRU", False))
def test_several_layers_are_a_list(name, bidirectional, tmp_path):
    options = {"batch_first": True, "num_layers": 3, "bidirectional": bidirectional}
    theirs = TheirStack(getattr(torch.nn, name)(3, 4, **options))
    config = RECURRENT[name][bidirectional]
    width = 8 if bidirectional else 4
    layers = [config(size, 4, True).init(DEVICE) for size in (3, width, width)]
    made = both_ways(theirs, Stack(layers), tmp_path)
    x, y = inputs(2, 5, 3)
    near(made.forward(x), theirs(y))


def test_a_list_of_recurrent_layers_in_pytorch_stays_one(tmp_path):
    class Theirs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = torch.nn.ModuleList([torch.nn.GRU(3, 4), torch.nn.GRU(3, 4)])

    torch.save(Theirs().state_dict(), tmp_path / "a.pt")
    ours = Stack([nn.GruConfig(3, 4, True).init(DEVICE) for _ in range(2)])
    _, result = ours.load_from(PytorchStore.from_file(tmp_path / "a.pt"))
    assert len(result.applied) == 24
    assert sorted(pytorch_arrays(ours)) == sorted(Theirs().state_dict())


@pytest.mark.parametrize("bias", [True, False])
def test_attention(bias, tmp_path):
    theirs = torch.nn.MultiheadAttention(8, 2, bias=bias, batch_first=True)
    config = nn.MultiHeadAttentionConfig(8, 2, dropout=0.0)
    for name in ("key", "value", "query", "output"):
        config = getattr(config, f"with_{name}_bias")(bias)
    made = both_ways(theirs, config.init(DEVICE), tmp_path)
    x, y = inputs(2, 5, 8)
    near(made.forward(nn.MhaInput.self_attn(x)).context, theirs(y, y, y)[0])


def test_attention_with_matrices_apart(tmp_path):
    """PyTorch keeps them apart where keys have another width; it may be the same."""
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    state = theirs.state_dict()
    whole = state.pop("in_proj_weight")
    for letter, part in zip("qkv", whole.chunk(3), strict=True):
        state[f"{letter}_proj_weight"] = part.clone()
    torch.save(state, tmp_path / "a.pt")
    ours = nn.MultiHeadAttentionConfig(8, 2, dropout=0.0).init(DEVICE)
    made, _ = ours.load_from(PytorchStore.from_file(tmp_path / "a.pt"))
    x, y = inputs(2, 5, 8)
    near(made.forward(nn.MhaInput.self_attn(x)).context, theirs(y, y, y)[0])


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_first", [True, False])
def test_encoder_and_decoder(norm_first, tmp_path):
    options = {"activation": "gelu", "norm_first": norm_first, "batch_first": True}
    sizes, ours = (8, 2, 16, 0.0), (8, 16, 2, 2)
    layer = torch.nn.TransformerEncoderLayer(*sizes, **options)
    theirs = torch.nn.TransformerEncoder(layer, 2)
    config = TransformerEncoderConfig(*ours, norm_first=norm_first, dropout=0.0)
    made = both_ways(theirs, config.init(DEVICE), tmp_path)
    x, y = inputs(2, 5, 8)
    near(made.forward(TransformerEncoderInput.new(x)), theirs(y))
    layer = torch.nn.TransformerDecoderLayer(*sizes, **options)
    theirs = torch.nn.TransformerDecoder(layer, 2)
    config = TransformerDecoderConfig(*ours, norm_first=norm_first, dropout=0.0)
    made = both_ways(theirs, config.init(DEVICE), tmp_path)
    memory, their_memory = inputs(2, 7, 8)
    wanted = theirs(y, their_memory)
    near(made.forward(TransformerDecoderInput.new(x, memory)), wanted)


def pairs():
    yield torch.nn.Linear(3, 4), nn.LinearConfig(3, 4), (2, 3)
    yield torch.nn.Linear(3, 3, bias=False), nn.LinearConfig(3, 3, bias=False), (2, 3)
    col = nn.LinearConfig(3, 4, layout=nn.LinearLayout.Col)
    yield torch.nn.Linear(3, 4), col, (2, 3)
    # Rows long enough that their variance is never near zero.
    yield torch.nn.LayerNorm(16), nn.LayerNormConfig(16), (2, 16)
    yield (
        torch.nn.GroupNorm(2, 4),
        nn.GroupNormConfig(2, 4).with_epsilon_inside(True),
        (2, 4, 20),
    )
    yield torch.nn.BatchNorm1d(4), nn.BatchNormConfig(4), (2, 4, 3)
    theirs = torch.nn.InstanceNorm1d(4, affine=True)
    yield theirs, nn.InstanceNormConfig(4).with_epsilon_inside(True), (2, 4, 20)
    yield torch.nn.RMSNorm(4, eps=1e-5), nn.RmsNormConfig(4), (2, 4)
    yield torch.nn.PReLU(), nn.PReluConfig(), (2, 4)
    yield torch.nn.Conv1d(2, 4, 3), nn.conv.Conv1dConfig(2, 4, 3), (2, 2, 6)
    conv = nn.conv.ConvTranspose1dConfig([2, 4], 3)
    yield torch.nn.ConvTranspose1d(2, 4, 3), conv, (2, 2, 6)


@pytest.mark.parametrize("row", range(11))
def test_other_layers(row, tmp_path):
    theirs, config, shape = list(pairs())[row]
    made = both_ways(theirs, config.init(DEVICE), tmp_path)
    x, y = inputs(*shape)
    near(made.forward(x), theirs(y))


def test_a_forget_gate_that_is_missing_has_no_twin():
    layer = nn.LstmConfig(2, 3, True).with_input_forget(True).init(DEVICE)
    with pytest.raises(RecordError, match="input_forget"):
        pytorch_arrays(layer)


def test_blocks_that_do_not_divide_are_an_error(tmp_path):
    torch.save({"weight_ih_l0": torch.zeros(7, 2)}, tmp_path / "a.pt")
    layer = nn.LstmConfig(2, 3, True).init(DEVICE)
    store = PytorchStore.from_file(tmp_path / "a.pt")
    _, result = store.apply_to(layer)
    assert "has no 4 blocks" in str(result.errors[0])


def test_names_of_burn_in_pytorch_s_layout(tmp_path):
    """A file whose gates are layers of their own, as some people write them."""
    names = ("query", "key", "value", "output")
    parts = torch.nn.ModuleDict({name: torch.nn.Linear(4, 4) for name in names})
    torch.save(parts.state_dict(), tmp_path / "a.pt")
    ours = nn.MultiHeadAttentionConfig(4, 2).init(DEVICE)
    made, _ = ours.load_from(PytorchStore.from_file(tmp_path / "a.pt"))
    wanted = parts["key"].weight.detach().numpy().T
    assert np.array_equal(np.asarray(made.key.weight.val()), wanted)


def test_arrays_wait(tmp_path):
    """Nothing is loaded before it is needed: the second has no elements at all."""

    def fail():
        raise AssertionError("read")

    arrays = {
        "weight": LazyArray("weight", (3, 2), "f32", fail),
        "bias": LazyArray("bias", (3,), "f32", fail),
    }
    store = Given(arrays).with_full_path("nothing").allow_partial()
    _, result = nn.LinearConfig(2, 3).init(DEVICE).load_from(store)
    assert result.skipped == ("weight", "bias")
