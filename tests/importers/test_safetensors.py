"""SafetensorsStore and SafetensorsFileRecorder: modules in safetensors, both ways."""

import json
import os

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.core.errors import ConfigError, RecordError
from burnbook.importers import (
    AdapterType,
    BurnToPyTorchAdapter,
    FloatCastAdapter,
    HalfPrecisionAdapter,
    NotApplied,
    PyTorchToBurnAdapter,
    SafetensorsFileRecorder,
    SafetensorsStore,
)
from burnbook.importers.safetensors import LoadArgs
from burnbook.module import Module
from burnbook.record import (
    FullPrecisionSettings,
    HalfPrecisionSettings,
    NamedMpkFileRecorder,
    SafetensorsRecorder,
)
from burnbook.record.safetensors_files import SafetensorsFile
from burnbook.tensor import Tensor, TensorData, activation
from tests.golden.shared import PYTORCH, digits, needs_mnist
from tests.support.cases import cases
from tests.support.quantizing import Q8S

D = Numpy()


class Net(Module):
    conv: nn.Conv2d
    norm: nn.BatchNorm
    square: nn.Linear
    rows: list[nn.Linear]


def net(seed=1):
    D.seed(seed)
    made = Net(
        nn.Conv2dConfig([2, 3], [2, 2]).init(D),
        nn.BatchNormConfig(3).init(D),
        nn.LinearConfig(3, 3).init(D),
        [nn.LinearConfig(3, 4).init(D), nn.LinearConfig(4, 2).init(D)],
    )
    rng = np.random.default_rng(seed)

    class Draw:
        def map_float(self, number, tensor):
            values = rng.normal(size=tensor.dims()).astype(np.float32)
            return Tensor.from_numpy(values, D)

    return made.map(Draw())


def values(module):
    return {path: np.asarray(param.val()) for path, param in module.named_params()}


def equal(one, other):
    first, second = values(one), values(other)
    assert first.keys() == second.keys()
    return all(np.array_equal(first[name], second[name]) for name in first)


def store_of(path, pytorch=False):
    store = SafetensorsStore.from_file(path)
    if pytorch:
        store = store.with_from_adapter(PyTorchToBurnAdapter())
        store = store.with_to_adapter(BurnToPyTorchAdapter())
    return store


# There and back


@pytest.mark.parametrize("pytorch", [False, True])
def test_a_module_is_saved_and_loaded(pytorch, tmp_path):
    path = tmp_path / "net.safetensors"
    first = net()
    assert first.save_into(store_of(path, pytorch)) == path
    found, result = net(2).load_from(store_of(path, pytorch))
    assert equal(found, first)
    assert result.is_success()
    assert not [*result.unused, *result.missing, *result.skipped]
    assert sorted(result.applied) == sorted(values(first))
    assert not equal(net(2), first)


@pytest.mark.parametrize("pytorch", [False, True])
def test_memory_holds_what_a_file_holds(pytorch, tmp_path):
    store = store_of(tmp_path / "a", pytorch)
    net().save_into(store)
    memory = SafetensorsStore.from_bytes(None)
    if pytorch:
        memory = memory.with_to_adapter(BurnToPyTorchAdapter())
        memory = memory.with_from_adapter(PyTorchToBurnAdapter())
    with pytest.raises(RecordError, match="nothing has been saved yet"):
        memory.get_bytes()
    with pytest.raises(RecordError, match="nothing has been saved into this store"):
        net().load_from(memory)
    data = net().save_into(memory)
    assert data == memory.get_bytes() == (tmp_path / "a").read_bytes()
    assert equal(net(2).load_from(memory)[0], net())
    with pytest.raises(RecordError, match="the store is in a file"):
        store.get_bytes()
    with pytest.raises(ConfigError, match=r"try: from_file\(path\)"):
        SafetensorsStore.from_bytes("net.safetensors")


def test_ids_stay_those_of_the_module(tmp_path):
    first, second = net(), net(2)
    first.save_into(store_of(tmp_path / "a"))
    found, _ = second.load_from(store_of(tmp_path / "a"))
    ids = [[param.id for _, param in m.named_params()] for m in (found, second)]
    assert ids[0] == ids[1]


def test_pytorch_reads_what_is_saved_for_it(tmp_path):
    torch = pytest.importorskip("torch")
    load_file = pytest.importorskip("safetensors.torch").load_file
    net().save_into(store_of(tmp_path / "a", True))
    t = torch.nn
    twin = t.ModuleDict(
        {
            "conv": t.Conv2d(2, 3, 2),
            "norm": t.BatchNorm2d(3),
            "square": t.Linear(3, 3),
            "rows": t.ModuleList([t.Linear(3, 4), t.Linear(4, 2)]),
        }
    )
    twin.load_state_dict(load_file(tmp_path / "a"), strict=True)
    weight = values(net())["rows.0.weight"]
    assert np.array_equal(twin["rows"][0].weight.detach().numpy(), weight.T)


def test_pytorch_s_own_file_is_read(tmp_path):
    torch = pytest.importorskip("torch")
    save_file = pytest.importorskip("safetensors.torch").save_file
    theirs = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    save_file(theirs.state_dict(), tmp_path / "a")
    config = nn.TransformerEncoderConfig(8, 16, 2, 1)
    config = config.with_activation(nn.ActivationConfig.Relu)
    layer = config.init(D).layers[0]
    layer, result = layer.load_from(store_of(tmp_path / "a", True))
    assert result.is_success()
    assert not result.unused
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype(np.float32)
    wanted = theirs.eval()(torch.from_numpy(x)).detach().numpy()
    found = np.asarray(layer.forward(Tensor.from_numpy(x, D)))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not PYTORCH.is_dir(), reason="no golden files beside the project")
@needs_mnist
def test_the_trained_network_reads_digits():
    class Mnist(Module):
        conv1: nn.Conv2d
        conv2: nn.Conv2d
        conv3: nn.Conv2d
        norm1: nn.BatchNorm
        fc1: nn.Linear
        fc2: nn.Linear
        norm2: nn.BatchNorm

        def forward(self, x):
            for conv in (self.conv1, self.conv2, self.conv3):
                x = activation.relu(conv(x))
            x = self.norm1(x)
            x = activation.relu(self.fc1(x.flatten(1, 3)))
            return self.norm2(self.fc2(x))

    channels = [(1, 8), (8, 16), (16, 24)]
    convs = [nn.Conv2dConfig(list(pair), [3, 3]).init(D) for pair in channels]
    norms = [nn.BatchNormConfig(size).init(D) for size in (24, 10)]
    rows = [nn.LinearConfig(*pair).init(D) for pair in ((11616, 32), (32, 10))]
    blank = Mnist(*convs, norms[0], *rows, norms[1])
    path = PYTORCH / "mnist.safetensors"
    model, result = blank.load_from(store_of(path, True))
    assert not [*result.unused, *result.missing, *result.errors]
    images, labels = digits(200)
    pixels = images.reshape(-1, 1, 28, 28).astype(np.float32)
    pixels = Tensor.from_numpy((pixels / 255 - 0.1307) / 0.3081, D)
    found = np.asarray(model.forward(pixels))
    assert (found.argmax(1) == labels).mean() > 0.95
    record = SafetensorsFileRecorder(FullPrecisionSettings).load(path, D)
    again = blank.load_record(record)
    assert np.array_equal(np.asarray(again.forward(pixels)), found)


# What is written


def texts(path):
    return SafetensorsFile(path).texts


def test_the_texts_say_who_wrote_it_and_how(tmp_path):
    a, b, c, d = (tmp_path / name for name in "abcd")
    net().save_into(store_of(a))
    assert texts(a) == {
        "format": "safetensors",
        "producer": "burnbook",
        "version": "0.15.0",
    }
    net().save_into(store_of(b, True).metadata("author", "me"))
    assert texts(b)["format"] == "pt"
    assert texts(b)["author"] == "me"
    net().save_into(store_of(c).clear_metadata())
    assert texts(c) == {}
    net().save_into(store_of(d).clear_metadata().metadata("x", "1"))
    assert texts(d) == {"x": "1"} == store_of(d).texts()
    with pytest.raises(ConfigError, match="metadata are texts"):
        store_of(d).metadata("epoch", 3)


def test_the_recorder_knows_whose_layout_a_store_has_written(tmp_path):
    net().save_into(store_of(tmp_path / "burn.safetensors"))
    net().save_into(store_of(tmp_path / "torch.safetensors", True))
    recorder = SafetensorsRecorder()
    assert equal(net(2).load_file(tmp_path / "burn", recorder), net())
    with pytest.raises(RecordError, match="this is PyTorch's layout"):
        net(2).load_file(tmp_path / "torch", recorder)
    recorder = SafetensorsRecorder(layout="pytorch")
    assert equal(net(2).load_file(tmp_path / "torch", recorder), net())


def test_a_file_is_replaced_only_when_told(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"mine")
    with pytest.raises(RecordError, match=r"try: overwrite\(True\), or another path"):
        net().save_into(store_of(path))
    assert path.read_bytes() == b"mine"
    store = store_of(path).overwrite(True)
    net().save_into(store)
    net(2).save_into(store)
    assert equal(net().load_from(store)[0], net(2))
    assert list(tmp_path.iterdir()) == [path]


@cases(
    "adapter dtypes",
    (HalfPrecisionAdapter(), {"F16", "F32"}),
    (HalfPrecisionAdapter().with_module("BatchNorm"), {"F16"}),
    (FloatCastAdapter.to("bf16"), {"BF16"}),
    (BurnToPyTorchAdapter().chain(FloatCastAdapter.to("f64")), {"F64", "I64"}),
)
def test_adapters_change_the_element_types(adapter, dtypes, tmp_path):
    net().save_into(store_of(tmp_path / "a").with_to_adapter(adapter))
    found = SafetensorsFile(tmp_path / "a")
    assert {entry.dtype for entry in found.entries.values()} == dtypes
    store = store_of(tmp_path / "a", adapter.in_pytorch)
    loaded = values(net(2).load_from(store)[0])
    for name, value in values(net()).items():
        np.testing.assert_allclose(loaded[name], value, rtol=1e-2, atol=1e-6)


def test_a_filter_and_rules_apply_to_saving_too(tmp_path):
    store = store_of(tmp_path / "a").with_regex(r"^rows\.")
    net().save_into(store.with_key_remapping(r"^rows\.(\d)", "layer$1"))
    names = ["layer0.bias", "layer0.weight", "layer1.bias", "layer1.weight"]
    assert sorted(SafetensorsFile(tmp_path / "a")) == names
    one = store_of(tmp_path / "b").with_key_remapping(r"rows\.\d", "rows")
    with pytest.raises(RecordError, match=r"two parameters would have the name rows\."):
        net().save_into(one)
    assert not (tmp_path / "b").exists()


def test_a_filter_takes_joined_arrays_whole(tmp_path):
    layer = nn.LstmConfig(2, 3, True).init(D)
    store = store_of(tmp_path / "a", True).with_full_path(
        "input_gate.input_transform.weight"
    )
    layer.save_into(store)
    found = SafetensorsFile(tmp_path / "a")
    assert found.keys() == ["weight_ih_l0"]
    whole = store_of(tmp_path / "b", True)
    layer.save_into(whole)
    assert found["weight_ih_l0"] == SafetensorsFile(tmp_path / "b")["weight_ih_l0"]


def test_quantized_weights_are_refused_by_name(tmp_path):
    layer = nn.LinearConfig(8, 4).init(D)
    coded = layer.replace(weight=layer.weight.map(lambda w: w.quantize_dynamic(Q8S)))
    with pytest.raises(RecordError, match="weight is quantized, which this format"):
        coded.save_into(store_of(tmp_path / "a"))
    assert not (tmp_path / "a").exists()


# What is read


def write(path, tree):
    SafetensorsRecorder().record(tree, path)
    return path.with_name(f"{path.name}.safetensors")


def test_shards_are_loaded_as_one(tmp_path):
    arrays = {name: TensorData(value) for name, value in values(net()).items()}
    index = {}
    for i, name in enumerate(arrays):
        file = f"model-{i % 3}.safetensors"
        index[name] = file
    for i in range(3):
        part = {
            n: arrays[n]
            for n, file in index.items()
            if file == f"model-{i}.safetensors"
        }
        SafetensorsRecorder().record(part, tmp_path / f"model-{i}")
    assert equal(net(2).load_from(store_of(tmp_path))[0], net())
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": index}))
    assert equal(net(2).load_from(store_of(tmp_path))[0], net())
    assert equal(net(2).load_from(store_of(path))[0], net())


@cases(
    "dtype bits wanted",
    ("F8_E4M3", b"\x38\xc4\x01", [1.0, -3.0, 2.0**-9]),
    ("F8_E5M2", b"\x3c\xc2\x01", [1.0, -3.0, 2.0**-16]),
    ("BF16", b"\x80\x3f\x40\xc0\x01\x00", [1.0, -3.0, 2.0**-133]),
)
def test_small_floats_become_numbers_of_the_module(dtype, bits, wanted, tmp_path):
    class One(Module):
        w: nn.BatchNorm

    about = {"dtype": dtype, "shape": [3], "data_offsets": [0, len(bits)]}
    text = json.dumps({"w.gamma": about}).encode()
    path = tmp_path / "a"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bits)
    store = store_of(path).allow_partial(True)
    found, result = One(nn.BatchNormConfig(3).init(D)).load_from(store)
    assert result.applied == ("w.gamma",)
    assert np.asarray(found.w.gamma.val()).tolist() == wanted


def test_what_cannot_be_loaded_is_named(tmp_path):
    tree = {name: TensorData(value) for name, value in values(net()).items()}
    tree["square.weight"] = TensorData.zeros([3, 3], "i32")
    tree["conv.weight"] = TensorData.zeros([3, 2, 1, 1])
    tree["norm.gama"] = tree.pop("norm.gamma")
    path = write(tmp_path / "a", tree)
    with pytest.raises(NotApplied) as error:
        net().load_from(store_of(path))
    text = str(error.value)
    assert "1 missing and 2 cannot be loaded" in text
    assert "file [3, 2, 1, 1], module [3, 2, 2, 2]" in text
    assert "file i32, module Float" in text
    assert "did you mean norm.gama?" in text
    store = store_of(path).validate(False).allow_partial(True)
    found, result = net(2).load_from(store)
    assert len(result.errors) == 2
    assert result.unused == ("norm.gama",)
    assert np.array_equal(values(found)["rows.0.bias"], values(net())["rows.0.bias"])
    kept = values(net(2))
    for name in ("square.weight", "conv.weight", "norm.gamma"):
        assert np.array_equal(values(found)[name], kept[name])


def test_indices_keep_their_gaps_unless_told(tmp_path):
    tree = {name: TensorData(value) for name, value in values(net()).items()}
    moved = {name.replace("rows.1", "rows.4"): held for name, held in tree.items()}
    path = write(tmp_path / "a", moved)
    with pytest.raises(NotApplied, match="2 missing"):
        net(2).load_from(store_of(path))
    store = store_of(path).map_indices_contiguous(True)
    assert equal(net(2).load_from(store)[0], net())
    assert "rows.1.weight" in store.keys()  # noqa: SIM118 - a method of stores


def test_only_what_a_module_needs_is_read(tmp_path, monkeypatch):
    tree = {name: TensorData(value) for name, value in values(net()).items()}
    path = write(tmp_path / "a", tree | {"other.weight": TensorData.zeros([1000])})
    asked = []
    get = SafetensorsFile.__getitem__
    monkeypatch.setattr(
        SafetensorsFile,
        "__getitem__",
        lambda file, name: asked.append(name) or get(file, name),
    )
    store = store_of(path).with_regex("^rows")
    assert len(store.keys()) == len(tree) + 1
    assert store.get_snapshot("other.weight").shape == (1000,)
    assert not asked
    net().load_from(store)
    assert sorted(asked) == sorted(name for name in tree if name.startswith("rows"))


def test_parameters_do_not_depend_on_the_file_any_more(tmp_path):
    path = tmp_path / "a"
    net().save_into(store_of(path))
    found, _ = net(2).load_from(store_of(path))
    os.truncate(path, 10)
    assert equal(found, net())
    with pytest.raises(RecordError, match="the file ends inside its names"):
        net(2).load_from(store_of(path))


# The recorder of Burn 0.18 to 0.20


def test_the_recorder_reads_pytorch_s_layout_unless_told(tmp_path):
    net().save_into(store_of(tmp_path / "torch", True))
    net().save_into(store_of(tmp_path / "burn"))
    recorder = SafetensorsFileRecorder(FullPrecisionSettings)
    found = net(2).load_record(recorder.load(tmp_path / "torch", D))
    assert equal(found, net())
    args = LoadArgs.new(tmp_path / "burn").with_adapter_type(AdapterType.NoAdapter)
    assert equal(net(2).load_record(recorder.load(args, D)), net())
    with pytest.raises(RecordError, match=r"norm\.gamma"):
        net(2).load_record(
            recorder.load(
                LoadArgs(tmp_path / "torch").with_adapter_type(AdapterType.NoAdapter), D
            )
        )


def test_the_recorder_remaps_and_prints_keys(tmp_path, capsys):
    rows = {f"fc.{n}": v for n, v in values(net().square).items()}
    tree = {name: TensorData(v.T) for name, v in rows.items()}
    path = write(tmp_path / "a", tree)
    args = LoadArgs(path).with_key_remap(r"^fc\.(.*)", "$1").with_debug_print()
    recorder = SafetensorsFileRecorder(HalfPrecisionSettings)
    found = net(2).square.load_record(recorder.load(args, D))
    for name, value in values(net().square).items():
        half = value.astype(np.float16).astype(np.float32)
        assert np.array_equal(values(found)[name], half)
    assert capsys.readouterr().out.splitlines()[:6] == [
        "Debug information of keys and tensor shapes:",
        "---",
        "Original Key: fc.bias",
        "Remapped Key: bias",
        "Shape: [3]",
        "Dtype: F32",
    ]


def test_what_the_recorder_has_read_goes_into_any_record(tmp_path):
    net().save_into(store_of(tmp_path / "torch", True))
    recorder = SafetensorsFileRecorder(FullPrecisionSettings)
    record = recorder.load(tmp_path / "torch", D, module=net(2))
    mpk = NamedMpkFileRecorder(FullPrecisionSettings)
    path = mpk.record(record, tmp_path / "net")
    assert equal(net(3).load_file(path, mpk), net())
    with pytest.raises(RecordError, match="only reads"):
        recorder.record(record, tmp_path / "no")
