"""The files of Burn's own import tests give the values that Burn's tests list."""

import io
from contextlib import redirect_stdout

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.config import Config
from burnbook.core.dtypes import Bool, Int
from burnbook.core.errors import RecordError
from burnbook.importers.pytorch import (
    LoadArgs,
    PyTorchFileRecorder,
    PytorchStore,
    config_from_file,
)
from burnbook.importers.pytorch_reader import PytorchReader
from burnbook.module import Module, Param
from burnbook.nn.conv import (
    Conv1d,
    Conv1dConfig,
    Conv2d,
    Conv2dConfig,
    ConvTranspose1d,
    ConvTranspose1dConfig,
)
from burnbook.record import (
    DoublePrecisionSettings,
    FullPrecisionSettings,
    HalfPrecisionSettings,
    NamedMpkFileRecorder,
)
from burnbook.tensor import Tensor, activation
from tests.golden.shared import PYTORCH, digits, needs_mnist

pytestmark = pytest.mark.skipif(
    not PYTORCH.is_dir(), reason="no files of PyTorch lie beside the project"
)
DEVICE = Numpy()
LINEAR_INPUT = [
    [[0.63968194, 0.97427773], [0.8300299, 0.04443115]],
    [[0.0245958, 0.25883394], [0.93905586, 0.4167155]],
]


def same_conv(channels, size, bias=True):
    config = Conv2dConfig(channels, [size, size]).with_bias(bias)
    return config.with_padding(nn.PaddingConfig2d.Same).init(DEVICE)


class Linears(Module):
    fc1: nn.Linear
    fc2: nn.Linear

    def forward(self, x):
        return self.fc2(activation.relu(self.fc1(x)))


class OneLinear(Module):
    fc1: nn.Linear

    def forward(self, x):
        return self.fc1(x)


class Norm(Module):
    norm1: nn.BatchNorm

    def forward(self, x):
        return self.norm1(x)


class Turned(Module):
    conv1: ConvTranspose1d
    conv2: ConvTranspose1d

    def forward(self, x):
        return self.conv2(self.conv1(x))


class Embed(Module):
    embed: nn.Embedding

    def forward(self, x):
        return self.embed(x)


class Flags(Module):
    buffer: Param[Tensor[1, Bool]]


class Gaps(Module):
    fc: list[Conv2d]

    def forward(self, x):
        for layer in self.fc:
            x = activation.relu(layer(x))
        return x


class Block(Module):
    conv: Conv2d
    norm: nn.BatchNorm

    def forward(self, x):
        return self.norm(self.conv(x))


class Nested(Module):
    conv_blocks: list[Block]
    norm1: nn.BatchNorm
    fc1: nn.Linear
    fc2: nn.Linear

    def forward(self, x):
        for block in self.conv_blocks:
            x = block(x)
        x = self.norm1(x).reshape([x.shape[0], -1])
        return activation.log_softmax(self.fc2(activation.relu(self.fc1(x))), 1)


class Partial(Module):
    conv1: Block

    def forward(self, x):
        return self.conv1(x)


class Depthwise(Module):
    dconv: Conv2d
    pconv: Conv2d


class Choice(Module):
    conv: Depthwise | Conv2d


def linears(bias=True):
    return Linears(
        nn.LinearConfig(2, 3).init(DEVICE),
        nn.LinearConfig(3, 4).with_bias(False).init(DEVICE),
    )


def block(*channels):
    norm = nn.BatchNormConfig(channels[1]).init(DEVICE)
    return Block(Conv2dConfig(channels, [3, 2]).init(DEVICE), norm)


def nested():
    return Nested(
        [block(2, 4), block(4, 6)],
        nn.BatchNormConfig(6).init(DEVICE),
        nn.LinearConfig(120, 12).init(DEVICE),
        nn.LinearConfig(12, 10).init(DEVICE),
    )


def loaded(
    model,
    name,
    settings=FullPrecisionSettings,
    change=lambda args: args,
    rest=lambda record: record,
):
    args = change(LoadArgs(PYTORCH / name))
    record = PyTorchFileRecorder(settings).load(args, DEVICE)
    return model.load_record(rest(record))


def output(model, x):
    return np.asarray(model.valid().forward(Tensor.from_data(x, DEVICE)))


BOTH = pytest.mark.parametrize(
    ("settings", "digits"),
    [
        (FullPrecisionSettings, 7),
        (HalfPrecisionSettings, 3),
        (DoublePrecisionSettings, 7),
    ],
)


@BOTH
def test_linear(settings, digits):
    wanted = [
        [
            [0.09778349, -0.13756673, 0.04962806, 0.08856435],
            [0.03163241, -0.02848549, 0.01437942, 0.11905234],
        ],
        [
            [0.07628226, -0.10757702, 0.03656857, 0.03824598],
            [0.05443089, -0.06904714, 0.02744314, 0.09997337],
        ],
    ]
    found = output(loaded(linears(), "linear.pt", settings), LINEAR_INPUT)
    np.testing.assert_allclose(found, wanted, atol=0.1**digits)


def test_a_bias_that_the_file_lacks_is_refused():
    full = Linears(
        nn.LinearConfig(2, 3).init(DEVICE), nn.LinearConfig(3, 4).init(DEVICE)
    )
    with pytest.raises(RecordError, match=r"fc2\.bias +not in the record"):
        loaded(full, "linear.pt")


@BOTH
def test_linear_with_bias(settings, digits):
    wanted = [
        [[-0.00432095, -1.1071012, 0.8706914], [0.0245955, -0.9544629, 0.48518157]],
        [[0.34315687, -0.7573842, 0.548288], [-0.06608963, -1.0720727, 0.6458005]],
    ]
    model = OneLinear(nn.LinearConfig(2, 3).init(DEVICE))
    found = output(loaded(model, "linear_with_bias.pt", settings), LINEAR_INPUT)
    np.testing.assert_allclose(found, wanted, atol=5 * 0.1 ** min(digits, 6))


def test_batch_norm():
    model = loaded(Norm(nn.BatchNormConfig(5).init(DEVICE)), "batch_norm2d.pt")
    found = output(model, np.full((1, 5, 2, 2), 0.7, np.float32))
    np.testing.assert_allclose(found, 0.68515635, atol=1e-5)


def test_transposed_convolutions_of_which_one_has_no_bias():
    def layer(bias):
        return ConvTranspose1dConfig([2, 2], 2).with_bias(bias).init(DEVICE)

    model = loaded(Turned(layer(True), layer(False)), "conv_transpose1d.pt")
    x = [[[0.93708336, 0.65559506], [0.31379688, 0.19801933]]]
    wanted = [
        [
            [0.02935525, 0.01119324, -0.01356167, -0.00682688],
            [0.01644749, -0.01429807, 0.00083987, 0.00279229],
        ]
    ]
    np.testing.assert_allclose(output(model, x), wanted, atol=1e-8)


def test_embedding():
    model = loaded(Embed(nn.EmbeddingConfig(10, 3).init(DEVICE)), "embedding.pt")
    found = model.forward(Tensor.from_data([[1, 2, 4, 5]], DEVICE, Int))
    wanted = [-1.6094849, -0.10016718, -0.6091889]
    np.testing.assert_allclose(np.asarray(found)[0, 0], wanted, atol=1e-7)


def test_bools():
    model = Flags(Param.from_data([False, False, False], DEVICE, Bool))
    found = loaded(model, "boolean.pt")
    assert np.asarray(found.buffer.val()).tolist() == [True, False, True]


def test_numbers_with_gaps():
    model = Gaps([same_conv([2, 2], 3) for _ in range(5)])
    names = "\n".join(PytorchReader(PYTORCH / "non_contiguous_indexes.pt"))
    assert "fc.8.weight" in names
    assert "fc.1." not in names
    loaded(model, "non_contiguous_indexes.pt")
    _, result = model.load_from(
        PytorchStore.from_file(PYTORCH / "non_contiguous_indexes.pt")
    )
    assert (len(result.applied), result.unused) == (10, ())


@BOTH
def test_nested(settings, digits):
    wanted = [-2.306613, -2.0589454, -2.2983727, -2.358294, -2.2963955]
    wanted += [-2.4160905, -2.107669, -2.4284208, -2.526469, -2.3199186]
    model = loaded(nested(), "complex_nested.pt", settings)
    found = output(model, np.full((1, 2, 9, 6), 0.5, np.float32))
    np.testing.assert_allclose(found[0], wanted, atol=2 * 0.1 ** min(digits, 6))


def test_a_part_of_a_network_by_key_remap():
    def change(args):
        return args.with_key_remap(r"conv_blocks\.0\.(.*)", "conv1.$1")

    model = loaded(
        Partial(block(2, 4)),
        "complex_nested.pt",
        change=change,
        rest=lambda record: record.allow_unused(),
    )
    found = output(model, np.full((1, 2, 9, 6), 0.5, np.float32))
    np.testing.assert_allclose(found.sum(), 4.871538, atol=1e-5)


def test_the_variants_of_a_union():
    deep = Choice(Depthwise(same_conv([2, 2], 3), same_conv([2, 2], 1)))
    arrays = PytorchReader(PYTORCH / "enum_depthwise_true.pt")
    shapes = [arrays[f"conv.{name}.weight"].shape for name in ("dconv", "pconv")]
    layers = []
    for shape in shapes:
        groups = 2 // shape[1]
        config = Conv2dConfig([2, shape[0]], list(shape[2:])).with_groups(groups)
        layers.append(config.init(DEVICE))
    deep = loaded(Choice(Depthwise(*layers)), "enum_depthwise_true.pt")
    wanted = arrays["conv.pconv.weight"].load().array
    assert np.array_equal(np.asarray(deep.conv.pconv.weight.val()), wanted)
    plain = PytorchReader(PYTORCH / "enum_depthwise_false.pt")
    shape = plain["conv.weight"].shape
    config = Conv2dConfig([shape[1], shape[0]], list(shape[2:]))
    flat = loaded(Choice(config.init(DEVICE)), "enum_depthwise_false.pt")
    wanted = plain["conv.weight"].load().array
    assert np.array_equal(np.asarray(flat.conv.weight.val()), wanted)
    with pytest.raises(RecordError, match=r"did you mean conv\.weight"):
        loaded(Choice(Depthwise(*layers)), "enum_depthwise_false.pt")


class TwoConvs(Module):
    conv1: Conv2d
    conv2: Conv2d


def two_convs():
    second = Conv2dConfig([2, 2], [2, 2]).with_bias(False).init(DEVICE)
    return TwoConvs(Conv2dConfig([2, 2], [2, 2]).init(DEVICE), second)


def test_key_remap_and_the_debug_print():
    def change(args):
        return args.with_key_remap(r"conv\.(.*)", "$1").with_debug_print()

    printed = io.StringIO()
    with redirect_stdout(printed):
        model = loaded(two_convs(), "key_remap.pt", change=change)
    assert model.conv2.bias is None
    assert printed.getvalue() == (
        "Debug information of keys and tensor shapes:\n---\n"
        "Original Key: conv.conv1.bias\nRemapped Key: conv1.bias\n"
        "Shape: [2]\nDtype: F32\n---\n"
        "Original Key: conv.conv1.weight\nRemapped Key: conv1.weight\n"
        "Shape: [2, 2, 2, 2]\nDtype: F32\n---\n"
        "Original Key: conv.conv2.weight\nRemapped Key: conv2.weight\n"
        "Shape: [2, 2, 2, 2]\nDtype: F32\n---\n"
    )
    with pytest.raises(RecordError, match=r"did you mean conv\.conv1"):
        loaded(two_convs(), "key_remap.pt")


def test_the_top_level_key():
    name = "top_level_key.pt"
    reader = PytorchReader(PYTORCH / name, "my_state_dict")
    shape = reader["conv1.weight"].shape
    layer = Conv2dConfig([shape[1], shape[0]], list(shape[2:])).init(DEVICE)

    class Net(Module):
        conv1: Conv2d

    def below(args):
        return args.with_top_level_key("my_state_dict")

    found = loaded(Net(layer), name, change=below)
    wanted = reader["conv1.weight"].load().array
    assert np.array_equal(np.asarray(found.conv1.weight.val()), wanted)
    with pytest.raises(RecordError, match=r"did you mean my_state_dict\.conv1"):
        loaded(Net(layer), name)
    with pytest.raises(RecordError, match="my_state_dict"):
        PytorchReader(PYTORCH / name, "state_dict")


class NetConfig(Config):
    n_head: int
    n_layer: int
    d_model: int
    some_float: float
    some_int: int
    some_bool: bool
    some_str: str
    some_list_int: list[int]
    some_list_str: list[str]
    some_list_float: list[float]
    some_dict: dict[str, str]


def test_a_config_from_a_file():
    path = PYTORCH / "weights_with_config.pt"
    found = config_from_file(path, "my_config", NetConfig)
    assert found == NetConfig(
        n_head=2,
        n_layer=3,
        d_model=512,
        some_float=0.1,
        some_int=1,
        some_bool=True,
        some_str="hello",
        some_list_int=[1, 2, 3],
        some_list_str=["hello", "world"],
        some_list_float=[0.1, 0.2, 0.3],
        some_dict={"some_key": "some_value"},
    )
    assert config_from_file(path, "my_config")["n_head"] == 2
    with pytest.raises(RecordError, match="a config is a map"):
        config_from_file(PYTORCH / "reader_checkpoint.pt", "epoch")


READ = {
    "reader_float32": ("f32", [1, 2.5, -3.7, 0]),
    "reader_float16": ("f16", [1.5, -2.25, 3.125]),
    "reader_bfloat16": ("bf16", [1.5, -2.5, 3.5]),
}


@pytest.mark.parametrize("name", READ)
def test_element_types(name):
    dtype, values = READ[name]
    array = PytorchReader(PYTORCH / f"{name}.pt")["tensor"]
    assert array.dtype == dtype
    np.testing.assert_allclose(array.load().to_numpy().ravel(), values, rtol=1e-6)


def test_other_structures():
    checkpoint = PytorchReader(PYTORCH / "reader_checkpoint.pt")
    assert checkpoint.skipped["epoch"] == "42"
    assert any("state.0.momentum_buffer" in name for name in checkpoint)
    legacy = PytorchReader(PYTORCH / "reader_simple_legacy.pt")
    assert legacy.metadata().format_type == "legacy"
    assert all(legacy[name].load().num_elements() for name in legacy)
    assert PytorchReader(PYTORCH / "reader_parameter.pt")["param"].shape == (3, 3)
    state = PytorchReader(PYTORCH / "reader_state_dict.pt")
    assert state["weight"].shape == (3, 4)
    assert state["running_var"].load().to_vec() == [1.0] * 3
    with pytest.raises(RecordError, match="this is not a file of PyTorch"):
        PytorchReader(PYTORCH / "reader_broken.pt")


class Mnist(Module):
    conv1: Conv2d
    conv2: Conv2d
    conv3: Conv2d
    norm1: nn.BatchNorm
    fc1: nn.Linear
    fc2: nn.Linear
    norm2: nn.BatchNorm

    def forward(self, x):
        x = activation.relu(self.conv1(x))
        x = activation.relu(self.conv2(x))
        x = self.norm1(activation.relu(self.conv3(x)))
        x = activation.relu(self.fc1(x.reshape([x.shape[0], -1])))
        return activation.log_softmax(self.norm2(self.fc2(x)), 1)


def mnist_fitting():
    """The network with the sizes that the file has."""
    arrays = PytorchReader(PYTORCH / "mnist.pt")
    shapes = {name: arrays[name].shape for name in arrays}
    assert shapes["conv1.weight"][1] == 1, shapes
    return shapes


def test_the_file_of_the_book_s_example_names_what_the_network_has():
    shapes = mnist_fitting()
    assert {name.partition(".")[0] for name in shapes} >= {"conv1", "fc1", "norm1"}


@needs_mnist
def test_mnist_reads_digits_and_goes_through_messagepack(tmp_path):
    def norm_of(name):
        return nn.BatchNormConfig(shapes[f"{name}.weight"][0]).init(DEVICE)

    def linear_of(name):
        rows, columns = shapes[f"{name}.weight"]
        return nn.LinearConfig(columns, rows).init(DEVICE)

    def conv_of(name):
        out, into, *size = shapes[f"{name}.weight"]
        return Conv2dConfig([into, out], size).init(DEVICE)

    shapes = mnist_fitting()
    model = Mnist(
        *map(conv_of, ("conv1", "conv2", "conv3")),
        norm_of("norm1"),
        linear_of("fc1"),
        linear_of("fc2"),
        norm_of("norm2"),
    )
    recorder = PyTorchFileRecorder(FullPrecisionSettings)
    path = PYTORCH / "mnist.pt"
    read = model.load_record(recorder.load(path, DEVICE))
    images, labels = digits(200)
    pixels = (images.reshape(-1, 1, 28, 28).astype(np.float32) / 255 - 0.1307) / 0.3081
    found = output(read, pixels).argmax(1)
    assert (found == labels).mean() > 0.95
    mpk = NamedMpkFileRecorder(FullPrecisionSettings)
    record = recorder.load(path, DEVICE, module=model)
    saved = mpk.record(record, tmp_path / "mnist")
    again = model.load_record(mpk.load(saved, DEVICE))
    assert np.array_equal(output(again, pixels[:20]), output(read, pixels[:20]))


def test_a_record_that_needs_its_module_is_not_saved_without(tmp_path):
    record = PyTorchFileRecorder().load(PYTORCH / "linear.pt", DEVICE)
    mpk = NamedMpkFileRecorder(FullPrecisionSettings)
    with pytest.raises(RecordError, match=r"model\.load_record"):
        mpk.record(record, tmp_path / "no")


def test_convolutions_are_saved_without_their_module(tmp_path):
    """Their layout is Burn's: the book's way to pre-convert works as it stands."""
    args = LoadArgs(PYTORCH / "key_remap.pt").with_key_remap(r"conv\.(.*)", "$1")
    record = PyTorchFileRecorder().load(args, DEVICE)
    mpk = NamedMpkFileRecorder(FullPrecisionSettings)
    path = mpk.record(record, tmp_path / "convs")
    direct = two_convs().load_record(record)
    later = two_convs().load_record(mpk.load(path, DEVICE))
    x = np.ones((1, 2, 5, 5), np.float32)
    direct, later = (
        np.asarray(model.conv1(Tensor.from_numpy(x, DEVICE)))
        for model in (direct, later)
    )
    assert np.array_equal(direct, later)


class Convs1d(Module):
    conv1: Conv1d
    conv2: Conv1d


def test_conv1d():
    first = Conv1dConfig(2, 2, 2).init(DEVICE)
    second = Conv1dConfig(2, 2, 2).with_bias(False).init(DEVICE)
    model = loaded(Convs1d(first, second), "conv1d.pt", HalfPrecisionSettings)
    wanted = PytorchReader(PYTORCH / "conv1d.pt")["conv2.weight"].load().array
    halved = wanted.astype(np.float16).astype(np.float32)
    assert np.array_equal(np.asarray(model.conv2.weight.val()), halved)
