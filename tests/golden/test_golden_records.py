"""Files that Rust's Burn wrote: read, used, written back."""

import pytest

from burnbook.backend.numpy import Numpy
from burnbook.record import (
    CompactRecorder,
    DoublePrecisionSettings,
    FullPrecisionSettings,
    HalfPrecisionSettings,
    JsonGzFileRecorder,
    NamedMpkFileRecorder,
    NamedMpkGzFileRecorder,
    RecordError,
    describe,
)
from tests.golden.shared import BURN, needs_burn, needs_mnist, read_right

FILES = [
    "c4",
    "cnn_half_0.15",
    "playground_adam_0.16",
    "playground_model_0.16",
    "playground_scheduler_0.16",
]

pytestmark = needs_burn


def golden(name):
    return BURN / f"{name}.mpk"


@pytest.mark.parametrize("name", FILES)
def test_reading_and_writing_back_gives_the_same_bytes(name, tmp_path):
    recorder = CompactRecorder()
    path = recorder.write(recorder.read(golden(name)), tmp_path / "again")
    assert path.read_bytes() == golden(name).read_bytes()


@pytest.mark.parametrize("name", FILES)
def test_loading_and_recording_give_the_same_bytes(name, tmp_path):
    """Also through the precision of the device: f16 to f32 and back loses nothing."""
    metadata = CompactRecorder().read(golden(name)).metadata
    settings = {"HalfPrecisionSettings": HalfPrecisionSettings}
    precision = settings.get(metadata.settings, FullPrecisionSettings)
    recorder = NamedMpkFileRecorder(precision, version=metadata.version)
    for device in (Numpy(), Numpy(float="f64", int="i32")):
        item = recorder.load(golden(name), device)
        path = recorder.record(item, tmp_path / "again")
        assert path.read_bytes() == golden(name).read_bytes()


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, NamedMpkGzFileRecorder) for name in FILES] + [("c4", JsonGzFileRecorder)],
)
def test_other_formats_and_more_precision_keep_everything(name, kind, tmp_path):
    item = NamedMpkFileRecorder(DoublePrecisionSettings).load(golden(name))
    other = kind(DoublePrecisionSettings)
    assert other.load(other.record(item, tmp_path / "other")) == item


def test_the_model_of_the_guide_is_described():
    found = describe(golden("playground_model_0.16"))
    assert [tuple(row) for row in found] == [
        ("conv1.weight", (8, 1, 3, 3), "f16"),
        ("conv1.bias", (8,), "f16"),
        ("conv2.weight", (16, 8, 3, 3), "f16"),
        ("conv2.bias", (16,), "f16"),
        ("linear1.weight", (1024, 512), "f16"),
        ("linear1.bias", (512,), "f16"),
        ("linear2.weight", (512, 10), "f16"),
        ("linear2.bias", (10,), "f16"),
    ]
    assert found.num_elements == 531_178
    assert found.metadata.version == "0.16.1"
    assert found.metadata.settings == "HalfPrecisionSettings"


def test_the_state_of_adam_belongs_to_the_parameters_of_the_model():
    model = CompactRecorder().read(golden("playground_model_0.16"))
    params = {row.id: row.shape for row in describe(golden("playground_model_0.16"))}
    state = CompactRecorder().load(golden("playground_adam_0.16"))
    assert state.keys() == params.keys()
    for name, shape in params.items():
        momentum = state[name]["V1"][f"Rank{len(shape)}"]["momentum"]
        assert momentum["time"] == 9400  # ten epochs of 940 batches
        assert momentum["moment_1"].shape == shape
        assert momentum["moment_2"].shape == shape
        assert (momentum["moment_2"].array >= 0).all()
    assert model.item["conv1"]["stride"] == [None, None]


def test_the_constant_schedule_has_nothing_to_remember():
    path = golden("playground_scheduler_0.16")
    assert CompactRecorder().load(path) is None
    assert path.stat().st_size == 207


def test_arrays_of_modules_are_lists():
    item = CompactRecorder().load(golden("cnn_half_0.15"))
    assert [len(item[name]) for name in ("conv", "linear", "dropout")] == [2, 2, 2]
    assert item["dropout"] == [None, None]
    fields = "weight bias stride kernel_size dilation groups padding"
    assert list(item["conv"][0]) == fields.split()


@pytest.mark.parametrize("name", ["mnist_model.bin", "mnist_head.bpk"])
def test_other_formats_of_burn_are_named_when_they_cannot_be_read(name, tmp_path):
    path = tmp_path / "model.mpk"
    path.write_bytes((BURN / name).read_bytes())
    kind = {"bin": "bincode", "bpk": "burnpack"}[name[-3:]]
    with pytest.raises(RecordError, match=f"this is {kind}, not named MessagePack"):
        CompactRecorder().load(path)


# --- in a real model ---------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    """The guide's model with the weights of the Rust run."""
    from burnbook.examples.guide.model import ModelConfig

    device = Numpy()
    blank = ModelConfig(num_classes=10, hidden_size=512).init(device)
    record = CompactRecorder().load(golden("playground_model_0.16"), device)
    return blank.load_record(record)


def test_the_guides_model_writes_the_rust_file_back_byte_for_byte(model, tmp_path):
    recorder = CompactRecorder(version="0.16.1")
    path = recorder.record(model.into_record(), tmp_path / "model")
    assert path.read_bytes() == golden("playground_model_0.16").read_bytes()


def test_adam_resumes_from_the_rust_state_and_writes_it_back(model, tmp_path):
    from burnbook.optim import AdamConfig

    recorder = CompactRecorder(version="0.16.1")
    record = recorder.load(golden("playground_adam_0.16"), Numpy())
    optim = AdamConfig().init().load_record(record)
    path = recorder.record(optim.to_record(), tmp_path / "optim")
    assert path.read_bytes() == golden("playground_adam_0.16").read_bytes()


@needs_mnist
def test_the_rust_weights_read_94_percent_of_the_mnist_test_digits(model):
    right = read_right(model, 10_000, 500, (-1, 28, 28), Numpy())
    assert abs(right - 9402) <= 3  # PyTorch with the same weights: 9402
