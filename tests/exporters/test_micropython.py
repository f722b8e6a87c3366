"""Small models as one file: in this Python, and in MicroPython where it is there."""

import base64
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ArgumentError
from burnbook.core.rng import Stream, use_stream
from burnbook.examples.guide.model import ModelConfig
from burnbook.exporters import to_micropython
from burnbook.module import Module, Param, Quantizer
from burnbook.program import capture
from burnbook.tensor import Int, Tensor, activation
from burnbook.tensor.quantization import MinMaxCalibration, QuantizationScheme
from tests.nn.test_every import name_of
from tests.program.test_every import BATCHED, captured

DEVICE = Numpy()
MACHINE = shutil.which("micropython") or os.environ.get("MICROPYTHON")
NODE = shutil.which("node")
WASM = (
    Path(__file__).parents[2]
    / ".venv/node/node_modules/@micropython/micropython-webassembly-pyscript"
)
needs_micropython = pytest.mark.skipif(MACHINE is None, reason="no micropython here")
needs_wasm = pytest.mark.skipif(
    NODE is None or not WASM.is_dir(), reason="no MicroPython for node here"
)


class Sine(Module):
    """The network of 321 parameters that learns the sine."""

    first: nn.Linear
    second: nn.Linear
    third: nn.Linear

    def forward(self, x):
        x = self.first.forward(x).relu()
        return self.third.forward(self.second.forward(x).relu())


def sine():
    with use_stream(Stream(1)):
        sizes = [(1, 16), (16, 16), (16, 1)]
        return Sine(*[nn.LinearConfig(*size).init(DEVICE) for size in sizes])


def guide(hidden=512):
    with use_stream(Stream(2)):
        return ModelConfig(10, hidden).init(DEVICE).valid()


def digits(count, size=28):
    rng = np.random.default_rng(0)
    images = rng.random((count, size, size), np.float32)
    return Tensor.from_numpy(images, DEVICE)


def forward(model, x):
    return np.asarray(model.forward(x))


SUPPORTED = {  # layers of a small machine, by the beginning of their test's name
    *("Linear", "Conv1d", "Conv2d", "MaxPool1d", "MaxPool2d", "AvgPool1d", "AvgPool2d"),
    *("AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "BatchNorm", "LayerNorm", "Embedding"),
    *("Relu", "Gelu", "Sigmoid", "Tanh", "Dropout", "LeakyRelu", "HardSigmoid"),
}


@pytest.mark.parametrize("row", BATCHED, ids=name_of)
def test_a_layer_gives_the_same_or_is_refused_by_name(row, tmp_path):
    program, run, given = captured(row)
    name = name_of(row)
    if len(program.inputs) != 1 or len(program.outputs) != 1:
        with pytest.raises(ArgumentError, match="one input and one output"):
            to_micropython(program, tmp_path / "net.py")
        return
    refused = []
    try:
        made = to_micropython(program, tmp_path / "net.py")
    except ArgumentError as error:
        refused.append(str(error))
    if refused:
        assert "no form" in refused[0]
        kind = name.partition("Config")[0].partition("-")[0]
        assert kind.partition(" ")[0] not in SUPPORTED, refused
        return
    x = np.asarray(given[0])[:1]
    found = made.predict(x)
    wanted = np.asarray(run(Tensor.from_numpy(x, DEVICE)))
    np.testing.assert_allclose(found, wanted, 1e-4, 1e-5)


def test_the_guide_in_whole_numbers_predicts_as_it_does_here(tmp_path):
    model, x = guide(64), digits(20)
    made = to_micropython(model, tmp_path / "net.py", x, int8=True)
    wanted = forward(model, x)
    found = np.concatenate([made.predict(image) for image in np.asarray(x)])
    spread = wanted.std(0).mean()
    assert np.abs(found - wanted).max() < 0.6 * spread
    assert made.weights < 1.1 * model.num_params()
    assert made.memory < 32 << 10


def test_quantized_weights_keep_their_codes(tmp_path):
    scheme = QuantizationScheme.PerTensorSymmetric()
    model = guide(16).quantize_weights(Quantizer(MinMaxCalibration(), scheme))
    made = to_micropython(model, tmp_path / "net.py", digits(8), int8=True)
    text = made.path.read_text()
    codes = model.conv2.weight.val().to_data().to_numpy().astype(np.int8)
    shown = base64.b64encode(codes.reshape(16, -1)[0].tobytes()).decode()[:60]
    assert shown in text.replace('"\n    b"', "")


def test_activations_of_whole_numbers_are_tables(tmp_path):
    def run(x):
        return second.forward(activation.gelu(first.forward(x)))

    first, second = (nn.LinearConfig(8, 8).init(DEVICE) for _ in range(2))
    values = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)
    x = Tensor.from_numpy(values, DEVICE)
    made = to_micropython(run, tmp_path / "net.py", x, int8=True)
    assert "by_table(" in made.path.read_text()
    found = np.concatenate([made.predict(row) for row in values])
    np.testing.assert_allclose(found, np.asarray(run(x)), atol=0.05)


def test_memory_is_used_again(tmp_path):
    layers = [nn.LinearConfig(64, 64).init(DEVICE) for _ in range(10)]

    def run(x):
        for layer in layers:
            x = layer.forward(x).relu()
        return x

    x = Tensor.ones([1, 64], DEVICE)
    made = to_micropython(run, tmp_path / "net.py", x)
    assert made.memory == 2 * 64 * 4
    np.testing.assert_allclose(made.predict(np.ones(64)), np.asarray(run(x)), 1e-4)


def test_the_file_is_the_same_each_time_and_says_what_it_is(tmp_path):
    model, x = sine(), Tensor.ones([1, 1], DEVICE)
    texts = [
        to_micropython(model, tmp_path / f"{i}.py", x).path.read_text()
        for i in range(2)
    ]
    assert texts[0] == texts[1]
    assert texts[0].startswith('"""Sine, written by burnbook')
    assert "Weights 1,284 bytes, memory 128 bytes." in texts[0]
    assert "import numpy" not in texts[0]
    assert "burnbook" not in texts[0].partition('"""\n\n')[2], "it stands on its own"


def test_names_of_a_model_never_become_code(tmp_path):
    class Net(Module):
        größe: nn.Linear

        def forward(self, x):
            return self.größe.forward(x)

    net = Net(nn.LinearConfig(2, 2).init(DEVICE))
    x = Tensor.ones([1, 2], DEVICE)
    made = to_micropython(net, tmp_path / "net.py", x)
    np.testing.assert_allclose(made.predict([1, 1]), forward(net, x), 1e-5)


def test_parameters_called_as_the_memory_keep_their_numbers(tmp_path):
    class Net(Module):
        memory: list[Param]

        def forward(self, x):
            for one in self.memory:
                x = x.exp() * one.val()
            return x

    rows = [Tensor.from_data([[0.5 * i, 0.2]], DEVICE) for i in range(4)]
    net, x = Net([Param.from_tensor(row) for row in rows]), Tensor.ones([1, 2], DEVICE)
    made = to_micropython(net, tmp_path / "net.py", x)
    np.testing.assert_allclose(made.predict([1, 1]), forward(net, x), 1e-5)


def test_a_layer_may_be_used_for_one_row_and_for_several(tmp_path):
    with use_stream(Stream(4)):
        layer = nn.LinearConfig(64, 64).init(DEVICE)

    def run(x):
        return layer.forward(layer.forward(x).expand([2, 64])).reshape([1, 128])

    values = np.random.default_rng(0).standard_normal((1, 64)).astype(np.float32)
    x = Tensor.from_numpy(values, DEVICE)
    made = to_micropython(run, tmp_path / "net.py", x, int8=True, batch=None)
    assert "Rows(__file__" in made.path.read_text(), "weights in the file"
    np.testing.assert_allclose(made.predict(values), np.asarray(run(x)), atol=0.1)


def same_as_here(run, rows, folder, **options):
    """Whether a file gives what burnbook does, in this Python and in MicroPython."""
    rows = np.float32(rows)
    x = Tensor.from_numpy(rows, DEVICE)
    made = to_micropython(run, folder / "net.py", x[:1], **options)
    with np.errstate(all="ignore"):
        wanted = np.asarray(run(x)).astype(np.float32)
    found = [np.concatenate([made.predict(row) for row in rows])]
    if MACHINE:
        found.append(in_micropython(folder, "net", rows, 64 << 10))
    for one in found:
        np.testing.assert_allclose(one.reshape(wanted.shape), wanted, 2e-6, 1e-7)


def test_log_softmax_takes_logits_that_are_far_apart(tmp_path):
    def run(x):
        return activation.log_softmax(x, 1)

    rows = [[-1, 2, 3, 200], [0, 0, 0, 0], [-900, 5, 5, 5], [-np.inf, 1, 2, 3]]
    same_as_here(run, rows, tmp_path)


NUMBERS = {
    "clamp from -inf on": lambda x: x.clamp(-np.inf, 1.0),
    "clamp up to inf": lambda x: x.clamp(-1.0, np.inf),
    "times inf": lambda x: x * np.inf,
    "plus nan": lambda x: x + np.nan,
    "minus -inf": lambda x: x - -np.inf,
    "leaky_relu": lambda x: activation.leaky_relu(x, np.float32(0.1)),
    "elu": lambda x: activation.elu(x, np.float64(0.5)),
    "softplus": lambda x: activation.softplus(x, np.float64(2.0)),
    "clamp": lambda x: x.clamp(np.float32(-0.5), np.float64(0.5)),
    "times a number of NumPy": lambda x: x * np.float32(0.5),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_in_functions_may_be_infinite_or_of_numpy(name, tmp_path):
    same_as_here(NUMBERS[name], [[-2, -0.25, 0, 0.75, 3]], tmp_path)


EDGES = [0.0, -0.0, 1, -1, 0.5, -1.5, 3, 90, 2000, -2000, 3e38, np.inf, -np.inf, np.nan]
HALVES = Tensor.from_data([[0.5, 0.0, -0.0, 1.5, -2.0, np.inf, np.nan]], DEVICE)
FUNCTIONS = {
    "by zero": lambda x: x / 0.0,
    "by minus zero": lambda x: x / -0.0,
    "by itself": lambda x: x / x,
    "by weights": lambda x: x.reshape([-1, 1]).div(HALVES),
    "two by it": lambda x: 2.0 / x,
    "one by it": lambda x: x.recip(),
    "log": lambda x: x.log(),
    "exp": lambda x: x.exp(),
    "sqrt": lambda x: x.sqrt(),
    "sin": lambda x: x.clamp(-9.0, np.inf).sin(),
    "floor": lambda x: x.floor(),
    "ceil": lambda x: x.ceil(),
    "to 1.5": lambda x: x.powf_scalar(1.5),
    "to -1": lambda x: x.powf_scalar(-1.0),
    "to -2.5": lambda x: x.powf_scalar(-2.5),
    "to 3": lambda x: x.powf_scalar(3.0),
    "to 12": lambda x: x.powf_scalar(12.0),
    "to itself": lambda x: x.powf(x),
    "to weights": lambda x: x.reshape([-1, 1]).powf(HALVES),
    "relu": lambda x: x.relu(),
    "leaky_relu": lambda x: activation.leaky_relu(x, 0.1),
    "elu": lambda x: activation.elu(x, 0.5),
    "gelu": activation.gelu,
    "silu": activation.silu,
    "sigmoid": activation.sigmoid,
    "tanh": lambda x: x.tanh(),
    "softplus": lambda x: activation.softplus(x, 1.0),
    "log_sigmoid": activation.log_sigmoid,
    "mish": activation.mish,
    "clamp": lambda x: x.clamp(-1.0, 1.0),
    "square": lambda x: x.square(),
    "neg": lambda x: -x,
    "abs": lambda x: x.abs(),
    "erf": lambda x: x.erf(),
    "to a half": lambda x: x.powf_scalar(0.5),
    "log1p": lambda x: (x * 1e-3).log1p(),
    "log1p of -1": lambda x: x.log1p(),
    "round": lambda x: x.round(),
    "trunc": lambda x: x.trunc(),
    "sign": lambda x: x.sign(),
    "tan": lambda x: x.clamp(-9.0, np.inf).tan(),
    "asin": lambda x: x.asin(),
    "acos": lambda x: x.acos(),
    "atan": lambda x: x.atan(),
    "sinh": lambda x: x.sinh(),
    "cosh": lambda x: x.cosh(),
    "asinh": lambda x: x.asinh(),
    "acosh": lambda x: x.acosh(),
    "atanh": lambda x: x.atanh(),
    "remainder": lambda x: x.remainder(3.0),
    "remainder by zero": lambda x: x.remainder(0.0),
    "remainder by weights": lambda x: x.reshape([-1, 1]).remainder(HALVES),
    "fmod": lambda x: x.fmod(1.25),
    "fmod by weights": lambda x: x.reshape([-1, 1]).fmod(HALVES),
    "atan2": lambda x: x.reshape([-1, 1]).atan2(HALVES),
    "is_nan": lambda x: x.is_nan().float(),
    "is_inf": lambda x: x.is_inf().float(),
    "is_finite": lambda x: x.is_finite().float(),
    "equal": lambda x: x.equal(x).float(),
    "equal to 0.1": lambda x: (x * 0.2).equal_elem(0.1).float(),
    "not_equal": lambda x: x.not_equal(x.abs()).float(),
    "greater": lambda x: x.greater_elem(0.5).float(),
    "greater_equal": lambda x: x.greater_equal_elem(0.5).float(),
    "lower": lambda x: x.lower_elem(0.5).float(),
    "lower_equal": lambda x: x.lower_equal_elem(0.5).float(),
    "not": lambda x: x.lower_elem(0.5).bool_not().float(),
    "and": lambda x: x.lower_elem(0.5).bool_and(x.greater_elem(-1.0)).float(),
    "or": lambda x: x.lower_elem(0.0).bool_or(x.greater_elem(1.0)).float(),
    "xor": lambda x: x.lower_elem(0.5).bool_xor(x.greater_elem(0.0)).float(),
    "truth": lambda x: x.bool().float(),
    "mask_fill": lambda x: x.mask_fill(x.is_nan(), -np.inf),
    "whole numbers": lambda x: (
        x.clamp(-9.5, 9.5).mask_fill(x.is_nan(), 2.5).int().float()
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_infinities_and_nan_come_out_as_they_do_here(name, tmp_path):
    run = FUNCTIONS[name]
    same_as_here(lambda x: run(x).reshape([1, -1]), [EDGES], tmp_path, batch=None)


def test_tables_of_whole_numbers_cross_where_a_function_is_not_defined(tmp_path):
    with use_stream(Stream(3)):
        first, second = (nn.LinearConfig(8, 8).init(DEVICE) for _ in range(2))

    def run(x):
        return second.forward(first.forward(x).exp().log())

    values = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)
    x = Tensor.from_numpy(values, DEVICE)
    made = to_micropython(run, tmp_path / "net.py", x, int8=True)
    assert "log_table" in made.path.read_text().lower()
    found = np.concatenate([made.predict(row) for row in values])
    np.testing.assert_allclose(found, np.asarray(run(x)), atol=0.3)


@pytest.mark.parametrize("name", ["to a half", "log1p", "sign", "greater", "truth"])
def test_functions_between_layers_of_whole_numbers_are_tables(name, tmp_path):
    with use_stream(Stream(3)):
        first, second = (nn.LinearConfig(8, 8).init(DEVICE) for _ in range(2))

    def run(x):
        return second.forward(FUNCTIONS[name](first.forward(x).abs()))

    values = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)
    x = Tensor.from_numpy(values, DEVICE)
    made = to_micropython(run, tmp_path / "net.py", x, int8=True)
    found = np.concatenate([made.predict(row) for row in values])
    near = np.abs(found - np.asarray(run(x))) < 0.2
    assert near.mean() > 0.97, "all but those beside a jump"


def test_helpers_stand_only_in_files_that_call_them(tmp_path):
    text = to_micropython(
        lambda x: (x / 2.0).relu() * 3.0, tmp_path / "net.py", Tensor.ones([1, 2])
    ).path.read_text()
    for name in ("divide", "defined", "power", "INF", "NAN", "copysign"):
        assert name not in text
    text = to_micropython(
        lambda x: x / x, tmp_path / "net.py", Tensor.ones([1, 2])
    ).path.read_text()
    assert "def divide(" in text
    assert 'INF = float("inf")' in text
    assert "NAN" not in text


def test_whole_numbers_are_divided_toward_zero(tmp_path):
    x = Tensor.from_data([[-7, 7, 8, -1]], DEVICE, Int)
    made = to_micropython(lambda x: x / 2, tmp_path / "net.py", x)
    assert made.predict([-7, 7, 8, -1]).tolist() == [[-3, 3, 4, 0]]


BREAKS = (
    *('a\n    print("PWNED")  #', 'a\r    print("PWNED")  #', "a\u2028print(1)"),
    *('"""\nprint("PWNED")\n"""', "\\", "'\nprint('PWNED')#", "a" * 400, "if", ""),
)


def hostile(place, name):
    """A model with a name that is made to become code, in one place."""
    with use_stream(Stream(5)):
        layer = nn.LinearConfig(2, 2).init(DEVICE)

    class Net(Module):
        layers: dict[str, nn.Linear]
        param: dict[str, Param]

        def forward(self, x):
            for one in self.layers.values():
                x = one.forward(x).exp()
            for one in self.param.values():
                x = x + one.val()
            return x

    param = Param.from_tensor(Tensor.ones([1, 2], DEVICE))
    if place == "module":
        return Net({name: layer}, {"a": param})
    if place == "parameter":
        return Net({"a": layer}, {name: param})
    if place == "class":
        Net.__name__ = Net.__qualname__ = name
        return Net({"a": layer}, {"a": param})
    if place == "output":
        return lambda x: {name: layer.forward(x)}
    if place == "input":
        return lambda x: layer.forward(x[name])

    def run(x):
        return layer.forward(x)

    run.__name__ = run.__qualname__ = name
    return run


@pytest.mark.parametrize("name", BREAKS)
@pytest.mark.parametrize(
    "place", ["module", "parameter", "class", "function", "input", "output"]
)
def test_a_name_made_to_become_code_stays_a_name(place, name, tmp_path, capfd):
    model, x = hostile(place, name), Tensor.ones([3, 2], DEVICE)
    given = {name: x} if place == "input" else x
    (wanted,) = capture(model, given).run(np.asarray(x))
    for int8 in (False, place != "input"):
        made = to_micropython(model, tmp_path / "net.py", given, int8=int8)
        found = made.predict([1, 1])
        np.testing.assert_allclose(found[0], wanted[0], atol=0.1 if int8 else 1e-4)
        text = made.path.read_text()
        assert text.isascii()
        assert max(map(len, re.findall(r"\w+", text.partition("# Weights")[0]))) < 250
    assert "PWNED" not in capfd.readouterr().out


def test_what_has_no_form_is_said_at_once(tmp_path):
    def run(x):
        return x.cumsum(1) + x.sort(1)

    with pytest.raises(ArgumentError, match="2 operations have no form") as caught:
        to_micropython(run, tmp_path / "net.py", Tensor.ones([1, 3], DEVICE))
    assert "cumsum" in str(caught.value)
    assert not (tmp_path / "net.py").exists()
    program = capture(sine(), Tensor.ones([1, 1], DEVICE))
    with pytest.raises(ArgumentError, match="int8 needs examples"):
        to_micropython(program, tmp_path / "net.py", int8=True)


def test_what_has_a_form_instead_is_told_and_has_it(tmp_path):
    x = Tensor.ones([1, 4, 8], DEVICE)
    with pytest.raises(ArgumentError, match=r"AdaptiveAvgPool1d\(1\)"):
        to_micropython(lambda x: x.mean_dim(2), tmp_path / "net.py", x)
    pool = nn.AdaptiveAvgPool1dConfig(1).init()
    made = to_micropython(lambda x: pool.forward(x), tmp_path / "net.py", x)
    assert made.predict(np.ones(32)).tolist() == [[[1.0]] * 4]


def test_a_program_takes_an_example_only_for_whole_numbers(tmp_path):
    x = Tensor.ones([1, 1], DEVICE)
    program = capture(sine(), x)
    with pytest.raises(ArgumentError, match="and takes no examples"):
        to_micropython(program, tmp_path / "net.py", x)
    with pytest.raises(ArgumentError, match="and takes no examples"):
        to_micropython(program, tmp_path / "net.py", x, x, int8=True)
    assert not (tmp_path / "net.py").exists()
    assert to_micropython(program, tmp_path / "net.py", x, int8=True).weights


def test_a_model_on_autodiff_is_written_as_it_infers(tmp_path):
    model = ModelConfig(10, 8).init(Autodiff(Numpy()))
    made = to_micropython(model, tmp_path / "net.py", digits(1))
    image = np.asarray(digits(1))
    np.testing.assert_allclose(
        made.predict(image), forward(model.valid(), digits(1)), 1e-4, 1e-5
    )


def test_damaged_weights_are_an_error(tmp_path):
    made = to_micropython(guide(16), tmp_path / "net.py", digits(4), int8=True)
    text = made.path.read_text()
    made.path.write_text(text.replace("\n#: ", "\n#; "))
    with pytest.raises(ValueError, match="lines with the weights are damaged"):
        made.predict(np.zeros(784))
    with pytest.raises(ValueError, match="x must have 784 numbers"):
        made.predict(np.zeros(10))


def in_micropython(folder, name, inputs, heap):
    """What MicroPython gives for each input, in a heap of so many bytes."""
    (folder / "inputs").write_bytes(np.float32(inputs).tobytes())
    size = inputs[0].nbytes
    code = (
        "import sys\n"
        "from array import array\n"
        f"sys.path.append({str(folder)!r})\n"
        f"import {name}\n"
        f"file = open({str(folder / 'inputs')!r}, 'rb')\n"
        f"for _ in range({len(inputs)}):\n"
        f"    print(*{name}.predict(array('f', file.read({size}))))\n"
    )
    found = subprocess.run(
        [MACHINE, "-X", f"heapsize={heap}", "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split() for line in found.stdout.splitlines()]
    return np.float32([[float(number) for number in row] for row in rows])


@needs_micropython
def test_the_sine_runs_in_20_kib(tmp_path):
    model = sine()
    made = to_micropython(model, tmp_path / "net.py", Tensor.ones([1, 1], DEVICE))
    values = np.linspace(0, 6, 20, dtype=np.float32)[:, None]
    found = in_micropython(tmp_path, "net", values, 20 << 10)
    here = np.concatenate([made.predict(x) for x in values])
    np.testing.assert_allclose(found, here, 1e-6, 1e-6)
    np.testing.assert_allclose(
        found, forward(model, Tensor.from_numpy(values, DEVICE)), 1e-4, 1e-6
    )


@needs_micropython
@pytest.mark.slow
def test_the_guide_runs_in_256_kib_with_the_same_100_predictions(tmp_path):
    model, x = guide(), digits(100)
    made = to_micropython(model, tmp_path / "net.py", x, int8=True)
    images = np.asarray(x)
    found = in_micropython(tmp_path, "net", images, 256 << 10)
    here = np.concatenate([made.predict(image) for image in images])
    np.testing.assert_allclose(found, here, 1e-6, 1e-6)
    assert (found.argmax(1) == here.argmax(1)).all()


@needs_wasm
def test_it_runs_in_micropython_for_the_web(tmp_path):
    made = to_micropython(guide(16), tmp_path / "net.py", digits(4), int8=True)
    image = np.asarray(digits(1)).round(3)
    code = tmp_path / "code.py"
    values = ", ".join(map(repr, image.ravel().tolist()))
    code.write_text(f"import net\nprint(net.predict([{values}]))\n")
    script = Path(__file__).with_name("wasm.mjs")
    found = subprocess.run(
        [NODE, script, WASM, made.path, code],
        capture_output=True,
        text=True,
        check=True,
    )
    numbers = np.float32(json.loads(found.stdout))
    np.testing.assert_allclose(numbers, made.predict(image)[0], 1e-6, 1e-6)


@pytest.mark.parametrize("int8", [False, True])
def test_what_has_no_form_is_named_with_whole_numbers_too(int8, tmp_path):
    encoder = nn.TransformerEncoderConfig(8, 16, 2, 1).init(DEVICE)

    def model(x):
        return encoder.forward(nn.TransformerEncoderInput(x))

    x = Tensor.ones([2, 4, 8], DEVICE)
    with pytest.raises(ArgumentError, match="1 operation has no form") as error:
        to_micropython(model, tmp_path / "q.py", x, int8=int8)
    assert "attention" in str(error.value)


@pytest.mark.parametrize(
    ("dtype", "why"), [("f16", "rounds to f16"), ("u8", "wraps to u8")]
)
def test_a_cast_to_fewer_bits_is_refused(dtype, why, tmp_path):
    with pytest.raises(ArgumentError, match=f"it {why}"):
        to_micropython(lambda x: x.cast(dtype), tmp_path / "a.py", Tensor.ones([1, 3]))


@pytest.mark.parametrize("int8", [False, True])
def test_more_weights_than_a_board_keeps_are_refused_at_once(int8, tmp_path):
    weight = Tensor.zeros([4200, 4200], DEVICE)
    x = Tensor.ones([1, 4200], DEVICE)
    with pytest.raises(ArgumentError, match=r"MiB, and boards keep up to 16 MiB"):
        to_micropython(lambda x: x.matmul(weight), tmp_path / "a.py", x, int8=int8)
    assert not (tmp_path / "a.py").exists()
