"""Bincode, burnpack and safetensors that others wrote."""

import gzip

import pytest

from burnbook import nn
from burnbook.backend.numpy import Numpy
from burnbook.module import Module
from burnbook.module.records import ModuleRecord
from burnbook.nn.conv import Conv2d, Conv2dConfig
from burnbook.nn.norm import BatchNorm, BatchNormConfig
from burnbook.nn.pool import MaxPool2d, MaxPool2dConfig
from burnbook.record import (
    BinFileRecorder,
    BinGzFileRecorder,
    BurnpackRecorder,
    BurnRecord,
    FullPrecisionSettings,
    SafetensorsRecorder,
    describe,
)
from burnbook.tensor import activation
from tests.golden.shared import BURN, PYTORCH, needs_burn, needs_mnist, read_right

pytestmark = needs_burn


class ConvBlock(Module):
    conv: Conv2d
    norm: BatchNorm
    activation: nn.Gelu

    def forward(self, x):
        return self.activation.forward(self.norm.forward(self.conv.forward(x)))


class Model(Module):
    """The model of Burn's MNIST example at 0.15, in the order of its fields."""

    conv1: ConvBlock
    conv2: ConvBlock
    conv3: ConvBlock
    dropout: nn.Dropout
    fc1: nn.Linear
    fc2: nn.Linear
    activation: nn.Gelu

    def forward(self, x):
        for block in (self.conv1, self.conv2, self.conv3):
            x = block.forward(x)
        x = self.activation.forward(self.fc1.forward(x.flatten(1, 3)))
        return self.fc2.forward(x)


class PoolBlock(Module):
    conv: Conv2d
    norm: BatchNorm
    pool: MaxPool2d

    def forward(self, x):
        x = activation.relu(self.norm.forward(self.conv.forward(x)))
        return self.pool.forward(x)


class NewModel(Module):
    """The same example in Burn's main branch."""

    conv1: PoolBlock
    conv2: PoolBlock
    dropout: nn.Dropout
    fc1: nn.Linear
    fc2: nn.Linear
    fc3: nn.Linear
    activation: nn.Gelu

    def forward(self, x):
        x = self.conv2.forward(self.conv1.forward(x)).flatten(1, 3)
        x = self.activation.forward(self.fc1.forward(x))
        x = self.activation.forward(self.fc2.forward(x))
        return self.fc3.forward(x)


def conv(d_input, d_output):
    device = Numpy()
    conv = Conv2dConfig([d_input, d_output], [3, 3]).init(device)
    return conv, BatchNormConfig(d_output).init(device)


def linear(d_input, d_output, bias):
    return nn.LinearConfig(d_input, d_output, bias=bias).init(Numpy())


def old_model():
    blocks = [ConvBlock(*conv(*c), nn.Gelu()) for c in ((1, 8), (8, 16), (16, 24))]
    layers = linear(11616, 32, False), linear(32, 10, False)
    return Model(*blocks, nn.DropoutConfig(0.5).init(), *layers, nn.Gelu())


def new_model():
    pool = MaxPool2dConfig([2, 2], strides=[2, 2]).init()
    blocks = [PoolBlock(*conv(*c), pool) for c in ((1, 64), (64, 64))]
    sizes = ((1600, 128), (128, 128), (128, 10))
    layers = [linear(*size, True) for size in sizes]
    return NewModel(*blocks, nn.DropoutConfig(0.25).init(), *layers, nn.Gelu())


def test_bincode_is_read_to_its_last_byte_and_written_back(tmp_path):
    golden, recorder, model = BURN / "mnist_model.bin", BinFileRecorder(), old_model()
    record = recorder.read(golden)
    item = record.item.for_module(model)  # a byte too many would be an error
    assert item["fc1"]["bias"] is None
    assert item["conv1"]["norm"]["gamma"].param.shape == (8,)
    whole = BurnRecord(record.metadata, ModuleRecord(item, model))
    assert recorder.write(whole, tmp_path / "again").read_bytes() == golden.read_bytes()
    assert recorder.write(record, tmp_path / "b").read_bytes() == golden.read_bytes()


def test_bincode_gives_the_same_through_the_module_and_gzip(tmp_path):
    first = old_model().load_file(BURN / "mnist_model.bin", BinFileRecorder())
    path = BinGzFileRecorder().record(first.into_record(), tmp_path / "m")
    plain = BinFileRecorder().record(first.into_record(), tmp_path / "m")
    assert gzip.decompress(path.read_bytes())[140:] == plain.read_bytes()[138:]
    second = old_model().load_file(path, BinGzFileRecorder())
    assert second.into_record() == first.into_record()


def test_bincode_is_described_without_its_module():
    found = describe(BURN / "mnist_model.bin")
    assert found.num_elements == 376_952
    assert len(found) == 20
    assert found.metadata.version == "0.14.0"
    assert found.entries[18].shape == (11616, 32)


def test_burnpack_is_written_back_byte_for_byte(tmp_path):
    golden, recorder = BURN / "mnist_head.bpk", BurnpackRecorder()
    path = recorder.write(recorder.read(golden), tmp_path / "again")
    assert path.read_bytes() == golden.read_bytes()
    model = new_model().load_file(golden, recorder)
    path = recorder.record(model.into_record(), tmp_path / "model")
    assert path.read_bytes() == golden.read_bytes()  # ids and order too


def test_safetensors_are_written_back_byte_for_byte(tmp_path):
    golden, recorder = PYTORCH / "mnist.safetensors", SafetensorsRecorder()
    path = recorder.write(recorder.read(golden), tmp_path / "again")
    assert path.read_bytes() == golden.read_bytes()
    rows = {row.name: (row.shape, row.dtype) for row in describe(golden)}
    assert rows["fc1.weight"] == ((32, 11616), "f32")
    assert rows["norm1.num_batches_tracked"] == ((), "i64")
    assert len(rows) == 20


@needs_mnist
@pytest.mark.parametrize(
    ("name", "make", "recorder", "right"),
    [
        ("mnist_model.bin", old_model, BinFileRecorder, 986),
        ("mnist_head.bpk", new_model, BurnpackRecorder, 982),
    ],
)
def test_the_weights_read_the_first_thousand_test_digits(name, make, recorder, right):
    device = Numpy()
    model = make().load_file(BURN / name, recorder(FullPrecisionSettings), device)
    found = read_right(model, 1000, 250, (-1, 1, 28, 28), device)
    assert abs(found - right) <= 1
