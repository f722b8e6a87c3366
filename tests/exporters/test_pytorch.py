"""Files for PyTorch: its own layers load them strictly, and compute the same."""

import collections
import pickletools
import zipfile

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import RecordError
from burnbook.exporters import to_pytorch, write_state_dict
from burnbook.importers import (
    BurnToPyTorchAdapter,
    FloatCastAdapter,
    HalfPrecisionAdapter,
    PyTorchToBurnAdapter,
    SafetensorsStore,
    pytorch_arrays,
)
from burnbook.module import Lora, Module
from burnbook.nn import LinearLayout
from burnbook.tensor import Tensor, TensorData
from tests.support.cases import cases
from tests.support.quantizing import Q8S
from tests.torch.shared import torch

D = Numpy()
ENDINGS = (".pt", ".safetensors")
# Layers alone: the config, its twin in PyTorch, and the shape of an input.
ALONE = {
    "linear": (nn.LinearConfig(4, 3), lambda t: t.Linear(4, 3), (2, 4)),
    "linear square": (nn.LinearConfig(4, 4), lambda t: t.Linear(4, 4), (2, 4)),
    "linear by columns": (
        nn.LinearConfig(4, 3).with_layout(LinearLayout.Col),
        lambda t: t.Linear(4, 3),
        (2, 4),
    ),
    "linear without bias": (
        nn.LinearConfig(4, 3, bias=False),
        lambda t: t.Linear(4, 3, bias=False),
        (2, 4),
    ),
    "conv1d": (nn.Conv1dConfig(2, 4, 3), lambda t: t.Conv1d(2, 4, 3), (2, 2, 9)),
    "conv2d": (
        nn.Conv2dConfig([4, 6], [3, 2]).with_groups(2),
        lambda t: t.Conv2d(4, 6, (3, 2), groups=2),
        (2, 4, 7, 7),
    ),
    "conv3d": (
        nn.Conv3dConfig([2, 3], [2, 2, 2]),
        lambda t: t.Conv3d(2, 3, 2),
        (1, 2, 4, 4, 4),
    ),
    "conv_transpose1d": (
        nn.ConvTranspose1dConfig([2, 3], 3),
        lambda t: t.ConvTranspose1d(2, 3, 3),
        (2, 2, 5),
    ),
    "conv_transpose2d": (
        nn.ConvTranspose2dConfig([2, 3], [3, 2]),
        lambda t: t.ConvTranspose2d(2, 3, (3, 2)),
        (2, 2, 5, 5),
    ),
    "conv_transpose3d": (
        nn.ConvTranspose3dConfig([2, 3], [2, 2, 2]),
        lambda t: t.ConvTranspose3d(2, 3, 2),
        (1, 2, 3, 3, 3),
    ),
    "batch_norm": (nn.BatchNormConfig(3), lambda t: t.BatchNorm2d(3), (2, 3, 4, 4)),
    "group_norm": (
        nn.GroupNormConfig(2, 6).with_epsilon_inside(True),
        lambda t: t.GroupNorm(2, 6),
        (2, 6, 5),
    ),
    "instance_norm": (
        nn.InstanceNormConfig(3).with_epsilon_inside(True),
        lambda t: t.InstanceNorm1d(3, affine=True),
        (2, 3, 6),
    ),
    "layer_norm": (nn.LayerNormConfig(5), lambda t: t.LayerNorm(5), (3, 5)),
    "layer_norm without bias": (
        nn.LayerNormConfig(5).with_bias(False),
        lambda t: t.LayerNorm(5, bias=False),
        (3, 5),
    ),
    "rms_norm": (
        nn.RmsNormConfig(5),
        lambda t: t.RMSNorm(5, eps=nn.RmsNormConfig(5).epsilon),
        (3, 5),
    ),
    "prelu": (nn.PReluConfig().with_num_parameters(3), lambda t: t.PReLU(3), (2, 3, 4)),
}
RECURRENT = {
    "lstm": (nn.LstmConfig(3, 4, True), lambda t: t.LSTM(3, 4, batch_first=True)),
    "lstm without bias": (
        nn.LstmConfig(3, 4, False),
        lambda t: t.LSTM(3, 4, bias=False, batch_first=True),
    ),
    "gru": (nn.GruConfig(3, 4, True), lambda t: t.GRU(3, 4, batch_first=True)),
    "rnn": (nn.RnnConfig(3, 4, True), lambda t: t.RNN(3, 4, batch_first=True)),
    "bi_lstm": (
        nn.BiLstmConfig(3, 4, True),
        lambda t: t.LSTM(3, 4, batch_first=True, bidirectional=True),
    ),
    "bi_gru": (
        nn.BiGruConfig(3, 4, True),
        lambda t: t.GRU(3, 4, batch_first=True, bidirectional=True),
    ),
    "bi_rnn": (
        nn.BiRnnConfig(3, 4, True),
        lambda t: t.RNN(3, 4, batch_first=True, bidirectional=True),
    ),
}


@pytest.fixture(autouse=True)
def pytorch():
    return pytest.importorskip("torch", reason="PyTorch is the oracle here")


def drawn(module, seed=5):
    """The module with numbers that no default has, running statistics too."""
    rng = np.random.default_rng(seed)

    class Draw:
        def map_float(self, number, tensor):
            values = rng.uniform(0.1, 0.9, tensor.dims()).astype(np.float32)
            return Tensor.from_numpy(values, tensor.backend)

    return module.map(Draw())


def loaded(path):
    """What PyTorch makes of a file."""
    if path.suffix == ".safetensors":
        return pytest.importorskip("safetensors.torch").load_file(path)
    return torch.load(path, weights_only=True)


def exported(module, theirs, folder, ending):
    """PyTorch's twin with the weights of a module, by way of a file."""
    path = to_pytorch(module, folder / f"model{ending}")
    theirs.load_state_dict(loaded(path), strict=True)
    return theirs.eval(), path


def both(shape, seed=2):
    x = np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)
    return Tensor.from_numpy(x, D), torch.from_numpy(x)


def close(ours, theirs):
    wanted = theirs.detach().numpy()
    np.testing.assert_allclose(np.asarray(ours), wanted, rtol=1e-5, atol=1e-5)


def comes_back(module, blank, path):
    """A blank module that reads the file has every parameter, bit for bit."""
    store = SafetensorsStore.from_file(path.with_suffix(".safetensors"))
    if path.suffix == ".pt":
        from burnbook.importers.pytorch import PytorchStore

        store = PytorchStore.from_file(path)
    else:
        store = store.with_from_adapter(PyTorchToBurnAdapter())
    found, result = blank.load_from(store)
    assert result.is_success()
    assert not result.unused
    mine, theirs = dict(module.named_params()), dict(found.named_params())
    assert mine.keys() == theirs.keys()
    for name, param in mine.items():
        assert np.array_equal(np.asarray(param.val()), np.asarray(theirs[name].val()))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", ALONE)
def test_a_layer_goes_to_pytorch_and_back(name, ending, tmp_path):
    config, make, shape = ALONE[name]
    module = drawn(config.init(D))
    theirs, path = exported(module, make(torch.nn), tmp_path, ending)
    x, y = both(shape)
    close(module.forward(x), theirs(y))
    comes_back(module, config.init(D), path)


@pytest.mark.parametrize("name", RECURRENT)
def test_a_recurrent_layer_goes_to_pytorch_and_back(name, tmp_path):
    config, make = RECURRENT[name]
    module = drawn(config.init(D))
    theirs, path = exported(module, make(torch.nn), tmp_path, ".pt")
    x, y = both((2, 6, 3))
    out = module.forward(x)
    close(out[0] if isinstance(out, tuple) else out, theirs(y)[0])
    comes_back(module, config.init(D), path)


def test_an_embedding_goes_to_pytorch_and_back(tmp_path):
    config = nn.EmbeddingConfig(7, 7)
    module = drawn(config.init(D))
    theirs, path = exported(module, torch.nn.Embedding(7, 7), tmp_path, ".pt")
    ids = np.array([[1, 6, 3]])
    close(module.forward(Tensor.from_numpy(ids, D)), theirs(torch.from_numpy(ids)))
    comes_back(module, config.init(D), path)


def test_attention_goes_to_pytorch_and_back(tmp_path):
    config = nn.MultiHeadAttentionConfig(8, 2)
    module = drawn(config.init(D))
    twin = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    theirs, path = exported(module, twin, tmp_path, ".pt")
    x, y = both((2, 5, 8))
    out = module.forward(nn.MhaInput.self_attn(x)).context
    close(out, theirs(y, y, y, need_weights=False)[0])
    comes_back(module, config.init(D), path)


@cases("norm_first", False, True)
def test_an_encoder_goes_to_pytorch_and_back(norm_first, tmp_path):
    config = nn.TransformerEncoderConfig(8, 16, 2, 3).with_norm_first(norm_first)
    module = drawn(config.init(D))
    layer = torch.nn.TransformerEncoderLayer(
        8, 2, 16, activation="gelu", batch_first=True, norm_first=norm_first
    )
    twin = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    theirs, path = exported(module, twin, tmp_path, ".pt")
    x, y = both((2, 5, 8))
    close(module.forward(nn.TransformerEncoderInput.new(x)), theirs(y))
    comes_back(module, config.init(D), path)


@cases("norm_first", False, True)
def test_a_decoder_goes_to_pytorch_and_back(norm_first, tmp_path):
    config = nn.TransformerDecoderConfig(8, 16, 2, 2).with_norm_first(norm_first)
    module = drawn(config.init(D))
    layer = torch.nn.TransformerDecoderLayer(
        8, 2, 16, activation="gelu", batch_first=True, norm_first=norm_first
    )
    theirs, path = exported(
        module, torch.nn.TransformerDecoder(layer, 2), tmp_path, ".pt"
    )
    (x, y), (memory, theirs_memory) = both((2, 5, 8)), both((2, 4, 8), seed=8)
    out = module.forward(nn.TransformerDecoderInput.new(x, memory))
    close(out, theirs(y, theirs_memory))
    comes_back(module, config.init(D), path)


# Networks


class Net(Module):
    stem: nn.Sequential
    rows: list[nn.Linear]
    norm: nn.BatchNorm

    def forward(self, x):
        x = self.norm(self.stem(x)).flatten(1, 3)
        for layer in self.rows:
            x = layer(x)
        return x


def net(seed=5):
    conv = nn.Conv2dConfig([1, 4], [3, 3]).init(D)
    stem = nn.Sequential(
        conv, nn.Relu(), nn.MaxPool2dConfig([2, 2]).with_strides([2, 2]).init()
    )
    sizes = [(36, 12), (12, 5)]
    rows = [nn.LinearConfig(*size).init(D) for size in sizes]
    return drawn(Net(stem, rows, nn.BatchNormConfig(4).init(D)), seed)


def their_net():
    class Twin(torch.nn.Module):
        def __init__(self):
            super().__init__()
            t = torch.nn
            self.stem = t.Sequential(t.Conv2d(1, 4, 3), t.ReLU(), t.MaxPool2d(2))
            self.rows = t.ModuleList([t.Linear(36, 12), t.Linear(12, 5)])
            self.norm = t.BatchNorm2d(4)

        def forward(self, x):
            x = self.norm(self.stem(x)).flatten(1)
            for layer in self.rows:
                x = layer(x)
            return x

    return Twin()


@pytest.mark.parametrize("ending", [*ENDINGS, ".pth", ".bin"])
def test_a_network_goes_to_pytorch(ending, tmp_path):
    module = net()
    theirs, path = exported(module, their_net(), tmp_path, ending)
    assert list(tmp_path.iterdir()) == [path]
    x, y = both((2, 1, 8, 8))
    close(module.forward(x), theirs(y))
    assert theirs.norm.num_batches_tracked.dtype == torch.int64


def test_a_network_that_learns_is_exported_as_it_is(tmp_path):
    device = Autodiff(D)
    module = net().fork(device)
    first = to_pytorch(module, tmp_path / "a.pt").read_bytes()
    second = to_pytorch(module.valid(), tmp_path / "b.pt").read_bytes()
    assert first == second


def test_stacked_layers_are_one_of_pytorch(tmp_path):
    class Stack(Module):
        rnn: list[nn.Lstm]

    rows = [nn.LstmConfig(size, 4, True).init(D) for size in (3, 4)]
    module = drawn(Stack(rows))
    twin = torch.nn.Module()
    twin.rnn = torch.nn.LSTM(3, 4, num_layers=2, batch_first=True)
    exported(module, twin, tmp_path, ".pt")
    x, y = both((2, 6, 3))
    for layer in module.rnn:
        x, _ = layer.forward(x)
    close(x, twin.rnn(y)[0])


def test_quantized_weights_are_written_as_numbers(tmp_path):
    layer = drawn(nn.LinearConfig(8, 4).init(D))
    coded = layer.replace(weight=layer.weight.map(lambda w: w.quantize_dynamic(Q8S)))
    theirs, _ = exported(coded, torch.nn.Linear(8, 4), tmp_path, ".pt")
    x, y = both((2, 8))
    close(coded.forward(x), theirs(y))


def test_an_adapter_of_lora_stands_beside_the_weight(tmp_path):
    class Tuned(Module):
        fc: nn.Linear

    module = Tuned(nn.LinearConfig(4, 6).init(D)).apply_lora(Lora(2, 4.0))
    found = loaded(to_pytorch(module, tmp_path / "a.pt"))
    assert {"fc.weight", "fc.bias", "fc.weight.lora.a"} <= found.keys()


@cases(
    "adapter dtypes",
    (HalfPrecisionAdapter(), {"float16", "float32", "int64"}),
    (FloatCastAdapter.to("bf16"), {"bfloat16", "int64"}),
    (FloatCastAdapter.to("f64"), {"float64", "int64"}),
    (BurnToPyTorchAdapter().chain(FloatCastAdapter.to("f16")), {"float16", "int64"}),
)
@pytest.mark.parametrize("ending", ENDINGS)
def test_an_adapter_changes_the_element_types(adapter, dtypes, ending, tmp_path):
    path = to_pytorch(net(), tmp_path / f"a{ending}", adapter=adapter)
    found = loaded(path)
    assert {str(t.dtype).removeprefix("torch.") for t in found.values()} == dtypes
    for name, array in pytorch_arrays(net()).items():
        wanted = torch.from_numpy(array.load().array.copy()).to(found[name].dtype)
        assert torch.equal(found[name], wanted)


def test_a_state_dict_may_stand_below_a_key(tmp_path):
    path = to_pytorch(net(), tmp_path / "a.pt", top_level_key="state_dict")
    assert list(loaded(path)) == ["state_dict"]
    their_net().load_state_dict(loaded(path)["state_dict"])
    path = to_pytorch(net(), tmp_path / "a.safetensors", top_level_key="net")
    assert "net.rows.0.weight" in loaded(path)


def test_what_pytorch_has_not_is_refused_and_no_file_is_left(tmp_path):
    coupled = nn.BiLstmConfig(2, 3, True).with_input_forget(True).init(D)
    with pytest.raises(RecordError, match="PyTorch's LSTM has no input_forget"):
        to_pytorch(coupled, tmp_path / "a.pt")
    with pytest.raises(RecordError, match="the ending names no format of PyTorch"):
        to_pytorch(net(), tmp_path / "a.mpk")
    with pytest.raises(RecordError, match=r"load_record\(record\): a record alone"):
        to_pytorch(net().into_record(), tmp_path / "a.pt")
    (tmp_path / "b.pt").mkdir()
    with pytest.raises(RecordError, match="a folder has this name"):
        to_pytorch(net(), tmp_path / "b.pt")
    assert [path.name for path in tmp_path.iterdir()] == ["b.pt"]


# The file


EVERY = {
    "f64": TensorData([1.5, -2.0], dtype="f64"),
    "f32": TensorData([[1.5, -2.0, 3.0]]),
    "f16": TensorData([1.5, -2.0], dtype="f16"),
    "bf16": TensorData([1.5, -2.0], dtype="bf16"),
    "i64": TensorData([-(2**62), 5]),
    "i32": TensorData([-7, 5], dtype="i32"),
    "i16": TensorData([-7, 5], dtype="i16"),
    "i8": TensorData([-7, 5], dtype="i8"),
    "u8": TensorData([255, 5], dtype="u8"),
    "u16": TensorData([65535, 5], dtype="u16"),
    "u32": TensorData([2**32 - 1, 5], dtype="u32"),
    "u64": TensorData(np.array([2**64 - 1, 5], np.uint64)),
    "bool": TensorData([True, False, True]),
    "scalar": TensorData(np.float32(2.5)),
    "empty": TensorData.zeros([0, 3]),
    "large": TensorData(np.arange(600.0).reshape(20, 30)),
}


def same(found, data):
    assert tuple(found.shape) == tuple(data.shape)
    assert found.is_contiguous()
    bits = found.contiguous().flatten().view(torch.uint8)
    assert bits.numpy().tobytes() == data.bytes
    assert not found.requires_grad


@cases("mapped", False, True)
def test_every_element_type_is_read_by_pytorch(mapped, tmp_path):
    path = write_state_dict(EVERY, tmp_path / "a.pt")
    found = torch.load(path, weights_only=True, mmap=mapped)
    assert list(found) == list(EVERY)
    for name, data in EVERY.items():
        kind = str(found[name].dtype)
        if name in ("f64", "i16", "u16", "u64", "bf16", "bool"):
            letters = {"f": "float", "i": "int", "u": "uint", "b": "bfloat"}
            wanted = letters[name[0]] + name.strip("abcdefghijklmnopqrstuvwxyz")
            assert kind == f"torch.{'bool' if name == 'bool' else wanted}"
        same(found[name], data)


def test_a_checkpoint_holds_more_than_tensors(tmp_path):
    values = {
        "epoch": 42,
        "numbers": [0, 255, 256, 65536, -1, -(2**31), 2**31, 2**62, -(2**63), 2**200],
        "loss": 0.125,
        "nested": {"a": [1, {"b": (2, None, True, False)}], 3: "drei · 三"},
        "model": {"fc.weight": EVERY["f32"]},
        "none": [[], (), {}],
    }
    path = write_state_dict(values, tmp_path / "a.pt")
    found = torch.load(path, weights_only=True)
    assert isinstance(found, collections.OrderedDict)
    same(found["model"].pop("fc.weight"), values["model"].pop("fc.weight"))
    assert found == values
    assert type(found["nested"]["a"][1]["b"]) is tuple


def test_every_storage_is_aligned_and_the_pickle_is_plain(tmp_path):
    path = write_state_dict(EVERY, tmp_path / "a.pt")
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for member in archive.infolist():
            assert member.compress_type == zipfile.ZIP_STORED
            start = member.header_offset
            sizes = [data[start + at : start + at + 2] for at in (26, 28)]
            start += 30 + sum(int.from_bytes(size, "little") for size in sizes)
            assert start % 64 == 0
        pickled = archive.read("archive/data.pkl")
        assert archive.read("archive/byteorder") == b"little"
        assert archive.read("archive/version") == b"3\n"
    rows = [(code.name, arg) for code, arg, _ in pickletools.genops(pickled)]
    names = [arg for code, arg in rows if code == "GLOBAL"]
    assert len(names) == len(set(names))
    assert {name.split()[0].partition(".")[0] for name in names} == {
        "collections",
        "torch",
    }


def test_the_same_values_make_the_same_bytes(tmp_path):
    first = write_state_dict(EVERY, tmp_path / "a.pt").read_bytes()
    assert write_state_dict(EVERY, tmp_path / "b.pt").read_bytes() == first


def test_a_file_of_more_than_two_gigabytes_is_aligned_too(tmp_path, monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)
    path = write_state_dict(EVERY, tmp_path / "a.pt")
    monkeypatch.undo()
    found = torch.load(path, weights_only=True, mmap=True)
    for name, data in EVERY.items():
        same(found[name], data)
        assert found[name].data_ptr() % 8 == 0


@cases(
    "values what",
    ({"a": object()}, "a: object has no place in a state dict"),
    ({"a": {"b": [np.float32(1)]}}, r"a\.b\.0: float32 has no place"),
    ({2.5: 1}, "2.5 is not a name"),
    ({True: 1}, "True is not a name"),
    ({"\ud800": 1}, "a text is not Unicode"),
)
def test_what_has_no_place_is_refused_by_name(values, what, tmp_path):
    with pytest.raises(RecordError, match=what):
        write_state_dict(values, tmp_path / "a.pt")
    assert not list(tmp_path.iterdir())


def test_endless_values_are_refused(tmp_path):
    values = {}
    values["a"] = values
    with pytest.raises(RecordError, match="nests deeper than 100 levels"):
        write_state_dict(values, tmp_path / "a.pt")
