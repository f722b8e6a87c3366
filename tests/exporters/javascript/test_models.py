"""Networks in Node: their predictions, their weights, and what names may do."""

import json
import re
import subprocess

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ArgumentError
from burnbook.examples.guide.model import ModelConfig
from burnbook.exporters.javascript import to_javascript, unsupported
from burnbook.module import Module, Quantizer
from burnbook.program import capture
from burnbook.tensor import Tensor, linalg
from burnbook.tensor.attention import AttentionModuleOptions as Options, attention
from burnbook.tensor.quantization import MinMaxCalibration, QuantizationScheme
from tests.support.node_models import NODE, needs_node, predicted
from tests.support.written_models import MODELS, digits, guide, numbers, taught

DEVICE = Numpy()


@needs_node
@pytest.mark.parametrize("name", MODELS)
def test_a_network_is_the_same_in_node_for_any_batch(name, tmp_path):
    make, inputs = MODELS[name]
    model = make().valid()
    made = to_javascript(model, tmp_path / "net.mjs", inputs(3))
    for n in (1, 4):
        (found,) = predicted(made, inputs(n)).values()
        wanted = np.asarray(model.forward(inputs(n)))
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


@needs_node
@pytest.mark.parametrize(
    ("precision", "weights"),
    [("f32", "embedded"), ("f16", "embedded"), ("int8", "beside"), ("f32", "beside")],
)
def test_100_digits_are_read_as_they_are_here(precision, weights, tmp_path):
    model = taught()
    images, labels = digits("test", 100)
    x = Tensor.from_numpy(images, DEVICE)
    asked = {"precision": precision, "weights": weights}
    made = to_javascript(model, tmp_path / "net.mjs", x, **asked)
    (found,) = predicted(made, x).values()
    wanted = np.asarray(model.forward(x))
    assert (wanted.argmax(1) == labels).mean() > 0.6, "it has learned something"
    assert (found.argmax(1) == wanted.argmax(1)).all()
    sizes = {"f32": 4, "f16": 2, "int8": 1}
    assert made.weights < sizes[precision] * model.num_params() + 1024
    assert (made.beside is not None) == (weights == "beside")
    assert len(list(tmp_path.iterdir())) == (2 if made.beside else 1)


@needs_node
def test_quantized_weights_keep_their_codes(tmp_path):
    scheme = QuantizationScheme.PerTensorSymmetric()
    model = guide(16).quantize_weights(Quantizer(MinMaxCalibration(), scheme))
    made = to_javascript(model, tmp_path / "net.mjs", numbers(2, 28, 28))
    assert made.weights < 1.2 * model.num_params() + 1024
    (found,) = predicted(made, numbers(2, 28, 28)).values()
    wanted = np.asarray(model.forward(numbers(2, 28, 28)))
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("scheme", "stays"),
    [
        (QuantizationScheme.PerTensorSymmetric(), True),
        (QuantizationScheme.PerTensorAffine(), False),
    ],
)
def test_codes_stay_codes_where_one_scale_is_all_that_they_need(
    scheme, stays, tmp_path
):
    model = guide(16).quantize_weights(Quantizer(MinMaxCalibration(), scheme))
    made = to_javascript(model, tmp_path / "net.mjs", numbers(2, 28, 28))
    assert ('"int8"' in made.path.read_text()) == stays


def test_ops_that_go_element_by_element_share_a_loop(tmp_path):
    def run(x):
        return ((x * 2.0).exp() + 1.0).log().tanh()

    made = to_javascript(run, tmp_path / "net.mjs", Tensor.ones([2, 3]))
    text = made.path.read_text()
    assert text.count("for (let i = 0;") == 1
    assert "new Float32Array(n * 3)" in text


def test_memory_is_used_again(tmp_path):
    layers = [nn.LinearConfig(64, 64).init(DEVICE) for _ in range(10)]

    def run(x):
        for layer in layers:
            x = layer.forward(x).relu()
        return x

    made = to_javascript(run, tmp_path / "net.mjs", Tensor.ones([1, 64], DEVICE))
    assert made.path.read_text().count("new Float32Array(n * 64)") == 2


def test_views_move_nothing(tmp_path):
    def run(x):
        return x.swap_dims(0, 1).reshape([3, 2, 1])[0:2].flip([0]) + 1.0

    made = to_javascript(run, tmp_path / "net.mjs", Tensor.ones([2, 3]), batch=None)
    assert made.path.read_text().count("element by element") == 1
    assert "copy" not in made.path.read_text()


@needs_node
def test_inputs_may_be_called_anything(tmp_path):
    def run(x, y):
        return x + y

    program = capture(run, Tensor.ones([2]), Tensor.ones([2]), batch=None)
    evil = ['var"]; throw 1; //', "*/ ${process.exit()} </script>\u2028\n` __proto__"]
    for value, name in zip(program.inputs, evil, strict=True):
        object.__setattr__(value, "name", name)
    object.__setattr__(program, "name", "*/ throw 1\nthrow 2")
    made = to_javascript(program, tmp_path / "net.mjs")
    (found,) = predicted(made, [1.0, 2.0], [3.0, 4.0]).values()
    assert found.tolist() == [4.0, 6.0]


@needs_node
@pytest.mark.parametrize("name", ["select", "n", "b0", "var", "__proto__", "Model"])
def test_names_of_the_language_are_no_trap(name, tmp_path):
    layer = nn.LinearConfig(2, 2).init(DEVICE)

    def run(x):
        return layer.forward(x).select(0, Tensor.from_ints([0], DEVICE)).relu()

    program = capture(run, Tensor.ones([2, 2], DEVICE), batch=None)
    object.__setattr__(program.inputs[0], "name", name)
    for value in program.constants:
        object.__setattr__(value, "name", f"{name}")
    made = to_javascript(program, tmp_path / "net.mjs")
    (found,) = predicted(made, np.ones((2, 2), np.float32)).values()
    np.testing.assert_allclose(
        found, np.asarray(run(Tensor.ones([2, 2], DEVICE))), 1e-5
    )


@needs_node
def test_outputs_keep_the_keys_that_they_stand_under(tmp_path):
    keys = [
        "fc.weight",
        "a b",
        "in",
        "weights",
        "__proto__",
        'a"\\',
        "2x",
        "größe",
        "n",
    ]

    def run(weights):
        return {key: weights + float(i) for i, key in enumerate(keys)}

    made = to_javascript(run, tmp_path / "net.mjs", Tensor.zeros([2]))
    assert made.outputs == tuple(keys)
    found = predicted(made, np.zeros(2, np.float32))
    assert {key: found[key].tolist() for key in keys} == {
        key: [i, i] for i, key in enumerate(keys)
    }


@needs_node
def test_wrong_inputs_are_refused_in_words(tmp_path):
    made = to_javascript(guide(4), tmp_path / "net.mjs", numbers(1, 28, 28))
    with pytest.raises(RuntimeError, match=r"images has 100 numbers; .*\[n, 28, 28\]"):
        predicted(made, np.zeros(100, np.float32))


@needs_node
def test_indices_beyond_a_table_are_an_error(tmp_path):
    layer = nn.EmbeddingConfig(4, 2).init(DEVICE)
    rows = Tensor.from_ints([[0, 3]], DEVICE)
    made = to_javascript(layer, tmp_path / "net.mjs", rows)
    with pytest.raises(RuntimeError, match="index 4 of 4"):
        predicted(made, np.array([[0, 4]]))


@needs_node
def test_weights_are_found_beside_a_file_with_any_name(tmp_path):
    x = numbers(1, 28, 28)
    made = to_javascript(guide(4), tmp_path / "a:b #1?%.mjs", x, weights="beside")
    (found,) = predicted(made, x).values()
    np.testing.assert_allclose(found, np.asarray(guide(4).forward(x)), 1e-5, 1e-5)


@needs_node
def test_cut_off_weights_are_an_error(tmp_path):
    asked = {"weights": "beside"}
    made = to_javascript(guide(4), tmp_path / "net.mjs", numbers(1, 28, 28), **asked)
    made.beside.write_bytes(made.beside.read_bytes()[:-100])
    with pytest.raises(RuntimeError, match="the weights are cut off"):
        predicted(made, numbers(1, 28, 28))


def test_the_file_is_the_same_each_time_and_says_what_it_is(tmp_path):
    texts = [
        to_javascript(guide(4), tmp_path / f"{i}/net.mjs", numbers(1, 28, 28))
        for i in map(str, range(2))
        if (tmp_path / i).mkdir() is None
    ]
    first, second = (made.path.read_text() for made in texts)
    assert first == second
    assert first.startswith("// Model, written by burnbook.")
    assert "// in  images [n, 28, 28] f32" in first
    assert max(map(len, first.splitlines())) <= 120
    assert not re.search(r"\brequire\(|^import .* from", first, re.MULTILINE)


def test_all_that_has_no_form_is_said_at_once(tmp_path):
    def run(x):
        return linalg.inv(x) + linalg.det(x.cumsum(1)).reshape([1, 1])

    with pytest.raises(ArgumentError, match="2 operations have no form") as caught:
        to_javascript(run, tmp_path / "net.mjs", numbers(3, 3), batch=None)
    assert "inverse" in str(caught.value)
    assert "det" in str(caught.value)
    assert not (tmp_path / "net.mjs").exists()
    assert [op for op, _, _ in unsupported(run, numbers(3, 3), batch=None)] == [
        "inverse",
        "det",
    ]


def test_other_choices_than_there_are_are_refused(tmp_path):
    x = Tensor.ones([1, 2], DEVICE)
    layer = nn.LinearConfig(2, 2).init(DEVICE)
    with pytest.raises(ArgumentError, match="is not one of f32, f16, int8"):
        to_javascript(layer, tmp_path / "a.js", x, precision="int4")
    with pytest.raises(ArgumentError, match="neither embedded nor beside"):
        to_javascript(layer, tmp_path / "a.js", x, weights="far")
    with pytest.raises(ArgumentError, match="captured already"):
        to_javascript(capture(layer, x), tmp_path / "a.js", x)


def test_a_model_on_autodiff_is_written_as_it_infers(tmp_path):
    model = ModelConfig(10, 4).init(Autodiff(Numpy()))
    made = to_javascript(model, tmp_path / "net.mjs", numbers(1, 28, 28))
    assert "dropout" not in made.path.read_text()


def test_random_numbers_and_gradients_are_refused_by_name(tmp_path):
    device = Autodiff(Numpy())

    def run(x):
        x = x.require_grad()
        loss = nn.DropoutConfig(0.5).init().forward(x).exp().sum()
        return x.grad(loss.backward())

    x = Tensor.ones([2, 3], device)
    program = capture(run, x, batch=None, keys=True)
    with pytest.raises(ArgumentError, match="have no form") as caught:
        to_javascript(program, tmp_path / "net.mjs")
    assert "dropout" in str(caught.value)
    assert "it is a gradient, which only training needs" in str(caught.value)


@needs_node
def test_outputs_may_be_inputs_constants_and_twice_the_same(tmp_path):
    held = Tensor.from_floats([1.0, 2.0], DEVICE)

    def run(x):
        y = x + 1.0
        return x, held, y, y

    made = to_javascript(run, tmp_path / "net.mjs", Tensor.ones([2]), batch=None)
    found = list(predicted(made, [3.0, 4.0]).values())
    assert [one.tolist() for one in found] == [[3, 4], [1, 2], [4, 5], [4, 5]]


@needs_node
def test_numbers_are_printed_so_that_they_read_back(tmp_path):
    values = [0.1, 1e-30, -3.4e38, float("inf"), 16777217.0]

    def run(x):
        return x.mask_fill(x.greater_elem(0.0), float("-inf")), *[x * v for v in values]

    made = to_javascript(run, tmp_path / "net.mjs", Tensor.ones([2]), batch=None)
    x = Tensor.from_floats([1.0, -2.0], DEVICE)
    with np.errstate(over="ignore"):
        wanted = run(x)
    for one, other in zip(predicted(made, x).values(), wanted, strict=True):
        np.testing.assert_allclose(one, np.asarray(other), 1e-6)


class Net(Module):
    """A module with a name of its own."""

    größe: nn.Linear

    def forward(self, x):
        return self.größe.forward(x)


@needs_node
def test_a_page_may_bring_the_weights_itself(tmp_path):
    net = Net(nn.LinearConfig(2, 2).init(DEVICE))
    x = Tensor.ones([1, 2], DEVICE)
    made = to_javascript(net, tmp_path / "net.mjs", x, weights="beside")
    moved = made.beside.rename(tmp_path / "moved.bin")
    code = (
        'import { readFileSync } from "node:fs";\n'
        f'import {{ Model }} from "{made.path.as_uri()}";\n'
        f"const bytes = readFileSync({json.dumps(str(moved))});\n"
        "const model = await Model.load(bytes);\n"
        "console.log(JSON.stringify(Object.values(model.forward([1, 1]))[0]));\n"
    )
    (tmp_path / "page.mjs").write_text(code)
    ran = subprocess.run(
        [NODE, tmp_path / "page.mjs"], capture_output=True, text=True, check=True
    )
    found = json.loads(ran.stdout)
    wanted = np.asarray(net.forward(x)).ravel()
    np.testing.assert_allclose(list(found["data"].values()), wanted, 1e-5)
    assert found["shape"] == [1, 2]


@needs_node
def test_attention_by_a_scale_that_follows_the_batch(tmp_path):
    def run(x):
        return attention(x, x, x, options=Options(scale=1 / x.dims()[0]))

    made = to_javascript(run, tmp_path / "net.mjs", numbers(4, 2, 5, 6))
    for n in (1, 3):
        x = numbers(n, 2, 5, 6)
        (found,) = predicted(made, x).values()
        np.testing.assert_allclose(found, np.asarray(run(x)), 1e-5, 1e-6)
