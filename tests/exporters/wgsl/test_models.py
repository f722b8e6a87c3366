"""Networks as kernels: what they give, what they are made of, what names may do."""

import json
import re
import subprocess

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.core.errors import ArgumentError
from burnbook.exporters.wgsl import to_wgsl, unsupported
from burnbook.exporters.wgsl.writer import MOST_GROUPS, spread
from burnbook.program import capture
from burnbook.tensor import Tensor, linalg
from tests.support.gpu_here import needs_gpu
from tests.support.node_models import NODE, needs_node
from tests.support.written_models import MODELS, digits, guide, numbers, taught

DEVICE = Numpy()


@needs_gpu
@pytest.mark.parametrize("name", MODELS)
def test_a_network_gives_the_same_for_any_batch(name, tmp_path):
    make, inputs = MODELS[name]
    model = make().valid()
    made = to_wgsl(model, tmp_path / "model.js", inputs(3))
    for n in (1, 4):
        (found,) = made.run(inputs(n))
        wanted = np.asarray(model.forward(inputs(n)))
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


@needs_gpu
def test_100_digits_are_read_as_they_are_here(tmp_path):
    model = taught()
    images, _ = digits("test", 100)
    x = Tensor.from_numpy(images, DEVICE)
    (found,) = to_wgsl(model, tmp_path / "model.js", x).run(x)
    wanted = np.asarray(model.forward(x))
    assert (found.argmax(1) == wanted.argmax(1)).all()
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


@needs_gpu
@pytest.mark.parametrize("precision", ["f32", "f16", "int8"])
def test_a_run_has_the_weights_of_the_file(precision, tmp_path):
    layer, x = nn.LinearConfig(32, 32).init(DEVICE), numbers(2, 32)
    made = to_wgsl(layer, tmp_path / "model.js", x, precision=precision)
    weight = np.asarray(layer.weight.val())
    step = np.abs(weight).max() / 127
    codes = np.rint(weight / step)
    kept = {
        "f32": weight,
        "f16": weight.astype(np.float16).astype(np.float32),
        "int8": (codes * step).astype(np.float32),
    }
    wanted = np.asarray(x) @ kept[precision] + np.asarray(layer.bias.val())
    np.testing.assert_allclose(made.run(x)[0], wanted, 1e-5, 1e-6)


def test_the_guide_is_seven_kernels_and_its_chains_are_fused(tmp_path):
    made = to_wgsl(guide(), tmp_path / "model.js", numbers(1, 28, 28))
    assert made.steps == (
        *("conv2d", "conv2d_2", "relu", "avg_pool2d"),
        *("linear", "relu_2", "linear_2"),
    )
    text = made.kernels["conv2d"]
    assert text.startswith("// Slide weight over images")
    assert "const KERNEL_HEIGHT = 3u;" in text
    assert "BATCH" not in text, "what is not used is not declared"

    def run(x):
        return ((x * 2.0).exp() + 1.0).log().tanh()

    made = to_wgsl(run, tmp_path / "chain.js", Tensor.ones([2, 3]))
    assert made.steps == ("mul_to_tanh",)
    assert (
        "if (place < (batch.n * 3u)) { by_thread(place); }"
        in made.kernels["mul_to_tanh"]
    )


def test_equal_kernels_are_held_once(tmp_path):
    def run(x):
        for _ in range(4):
            x = nn.LayerNormConfig(8).init(DEVICE).forward(x)
        return x

    made = to_wgsl(run, tmp_path / "model.js", Tensor.ones([2, 8], DEVICE))
    assert len(made.steps) == 4
    assert list(made.kernels) == ["layer_norm"]


@needs_gpu
def test_matrices_larger_than_a_tile_and_no_multiple_of_it(tmp_path):
    layer = nn.LinearConfig(45, 37).init(DEVICE)

    def run(x, y):
        return layer.forward(x), x.matmul(y)

    x, y = numbers(50, 45), numbers(45, 19, seed=1)
    made = to_wgsl(run, tmp_path / "model.js", x, y, batch=None)
    for one, other in zip(made.run(x, y), run(x, y), strict=True):
        np.testing.assert_allclose(one, np.asarray(other), 1e-5, 1e-5)


@needs_gpu
def test_lines_longer_than_a_workgroup_are_reduced_and_normalized(tmp_path):
    def run(x):
        return (
            *(x.sum_dim(1), x.max_dim(1), x.argmin(1), x.mean(), x.mean_dim(0)),
            *(nn.LayerNormConfig(300).init(DEVICE).forward(x), x.cumsum(1)),
        )

    x = numbers(3, 300)
    made = to_wgsl(run, tmp_path / "model.js", x, batch=None)
    for one, other in zip(made.run(x), run(x), strict=True):
        np.testing.assert_allclose(one, np.asarray(other), 1e-5, 2e-5)


@needs_gpu
def test_numbers_that_no_literal_may_be(tmp_path):
    low = float("-inf")

    def run(x):
        hidden = x.mask_fill(x.greater_elem(0.0), low)
        return hidden, hidden.is_inf(), x * 3.4e38, x * 1e-38, (x - x) / (x - x)

    x = Tensor.from_floats([1.0, -2.0], DEVICE)
    made = to_wgsl(run, tmp_path / "model.js", x, batch=None)
    with np.errstate(all="ignore"):
        wanted = run(x)
    for one, other in zip(made.run(x), wanted, strict=True):
        np.testing.assert_allclose(one, np.asarray(other), 1e-5)


def test_so_many_workgroups_that_one_dim_holds_too_few():
    for count in (0, 1, MOST_GROUPS, MOST_GROUPS + 1, 10_000_019):
        across, down, _ = spread(count)
        assert across * down >= count
        assert max(across, down) <= MOST_GROUPS
        assert across * down - count < max(down, 2)


@needs_gpu
def test_more_elements_than_one_dim_of_workgroups_holds(tmp_path):
    count = 64 * MOST_GROUPS + 100
    x = np.zeros((count,), np.float32)
    x[-1] = 1.0
    made = to_wgsl(lambda x: x + 1.0, tmp_path / "model.js", numbers(5), batch=0)
    (found,) = made.run(x)
    assert found[-1] == 2.0
    assert (found[:-1] == 1.0).all()


@needs_gpu
def test_more_tiles_than_one_dim_of_workgroups_holds(tmp_path):
    rows = 16 * MOST_GROUPS + 20
    layer = nn.LinearConfig(1, 2).init(DEVICE)
    made = to_wgsl(layer, tmp_path / "model.js", numbers(3, 1))
    x = np.zeros((rows, 1), np.float32)
    x[-1] = 1.0
    (found,) = made.run(x)
    weight, bias = (np.asarray(p.val()) for p in (layer.weight, layer.bias))
    np.testing.assert_allclose(found[-1], weight[0] + bias, 1e-6)
    np.testing.assert_allclose(found[:-1], np.broadcast_to(bias, (rows - 1, 2)), 1e-6)


@needs_gpu
def test_more_matrices_than_one_dim_of_workgroups_holds(tmp_path):
    x, y = numbers(3, 2, 3), numbers(3, 3, 2, seed=1)
    made = to_wgsl(lambda x, y: x.matmul(y), tmp_path / "model.js", x, y)
    count = MOST_GROUPS + 2
    x = np.ones((count, 2, 3), np.float32)
    y = np.broadcast_to(np.arange(count)[:, None, None], (count, 3, 2))
    (found,) = made.run(x, y.astype(np.float32))
    assert (found == 3.0 * np.arange(count)[:, None, None]).all()


@needs_gpu
def test_whole_numbers_are_multiplied_as_matrices(tmp_path):
    x = Tensor.from_ints([[1, -2], [3, 1 << 24]], DEVICE)
    y = Tensor.from_ints([[5, 6], [7, 3]], DEVICE)
    made = to_wgsl(lambda x, y: x.matmul(y), tmp_path / "model.js", x, y, batch=None)
    np.testing.assert_array_equal(made.run(x, y)[0], np.asarray(x.matmul(y)))


def test_names_never_become_code(tmp_path):
    program = capture(lambda x: x + 1.0, Tensor.ones([2]), batch=None)
    name = "*/ `${alert(1)}` \n </script> \u2028"
    object.__setattr__(program.inputs[0], "name", name)
    object.__setattr__(program, "name", name)
    made = to_wgsl(program, tmp_path / "model.js")
    text = made.path.read_text()
    assert "</script>" not in text
    assert "${alert" not in re.sub(r'"[^"\n]*"', "", text)
    assert all("alert" not in kernel for kernel in made.kernels.values())


def test_no_input_or_weight_has_the_key_of_a_buffer(tmp_path):
    layer = nn.LinearConfig(2, 3).init(DEVICE)
    x = numbers(2, 2)
    program = capture(lambda x: (layer.forward(x).exp() + 1.0).softmax(1), x)
    for i, value in enumerate([*program.inputs, *program.constants]):
        object.__setattr__(value, "name", f"b{i}")
    made = to_wgsl(program, tmp_path / "model.js")
    text = made.path.read_text()
    (given,) = re.findall(r'"b0": \{ name: "(\w+)"', text)
    held = re.findall(r'^  \["(\w+)", "f32", ', text, re.MULTILINE)
    bound = [re.findall(r'"(\w+)"', row) for row in re.findall(r"bind: (.*)", text)]
    assert len(held) == 2
    assert set(bound[0][:3]) == {given, *held}
    buffers = {name for row in bound for name in row} - {given, *held}
    assert buffers == {"b0", "b1"}, "each buffer has a key of its own"


def test_a_name_that_looks_like_the_row_of_an_input_stays_a_name(tmp_path):
    program = capture(lambda x: x + 1.0, Tensor.ones([2]), batch=None)
    name = "a{ scale:b { scale: 1"
    object.__setattr__(program.inputs[0], "name", name)
    text = to_wgsl(program, tmp_path / "model.js").path.read_text()
    (row,) = re.findall(r"const INPUTS = \{\n  (.*)\n\};", text)
    assert row.startswith(f'"{name}": {{ name: "a__scale_b___scale__1", type: "f32", ')


@needs_node
def test_the_page_writes_bools_as_0_and_1_and_gives_results_by_any_key(tmp_path):
    """A device that computes nothing: it keeps what is written to it."""

    def run(b):
        return {"__proto__": b.bool_not(), "a b": b.any()}

    b = Tensor.from_numpy(np.array([True, False]), DEVICE)
    made = to_wgsl(run, tmp_path / "model.mjs", b, batch=None)
    device = """
      globalThis.GPUBufferUsage = globalThis.GPUMapMode = {};
      const written = [];
      const read = (size) => ({
        mapAsync() {}, destroy() {}, getMappedRange: () => new ArrayBuffer(size),
      });
      const any = { getBindGroupLayout() {} };
      const nothing = new Proxy({}, { get: (_, name) =>
        name === "beginComputePass" ? () => nothing : () => {} });
      const device = {
        queue: { writeBuffer: (_, at, data) => written.push([...data]), submit() {} },
        createBuffer: ({ size }) => read(size), createShaderModule() {},
        createComputePipelineAsync: () => any, createBindGroup() {},
        createCommandEncoder: () => nothing,
      };
    """
    code = (
        device
        + f"""
      const {{ Model }} = await import({json.dumps(made.path.as_uri())});
      const model = await Model.load(device);
      const found = await model.forward([0.5, 0]);
      console.log(JSON.stringify([Object.keys(found), written.at(-1)]));
    """
    )
    asked = [NODE, "--input-type=module", "-e", code]
    keys, bools = json.loads(subprocess.check_output(asked, text=True))
    assert keys == ["__proto__", "a b"]
    assert bools == [1, 0]


def test_other_shapes_and_batches_are_refused(tmp_path):
    def run(x, y):
        return x + y

    made = to_wgsl(run, tmp_path / "model.js", numbers(2, 3), numbers(2, 3))
    with pytest.raises(ArgumentError, match="y has another shape"):
        made.run(np.zeros((2, 3)), np.zeros((2, 4)))
    with pytest.raises(ArgumentError, match="of different batches"):
        made.run(np.zeros((2, 3)), np.zeros((3, 3)))
    with pytest.raises(ArgumentError, match="it takes 2 inputs, and 1 came"):
        made.run(np.zeros((2, 3)))


def test_all_that_has_no_kernel_is_said_at_once(tmp_path):
    with pytest.raises(ArgumentError, match="1 operation has no form"):
        to_wgsl(linalg.inv, tmp_path / "model.js", numbers(3, 3), batch=None)
    found = unsupported(linalg.inv, numbers(3, 3), batch=None)
    assert found == [("inverse", "", "it has no kernel there")]
