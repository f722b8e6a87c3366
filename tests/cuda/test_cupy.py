"""CuPy: what can be proven without a GPU, and what a machine with one adds.

Run the second part there with `python -m pytest tests/cuda/test_cupy.py -m gpu`.
"""

import ast
import inspect
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import burnbook
from burnbook.backend import Autodiff, Fusion
from burnbook.backend.base import ArraySpace
from burnbook.backend.cupy import Cupy
from burnbook.backend.numpy import Numpy
from burnbook.core.errors import BackendError, DimError
from burnbook.core.op import OPS
from burnbook.ops.conv.conv import conv2d
from burnbook.ops.loss import cross_entropy
from burnbook.ops.random import bernoulli, normal, philox, random_bits, uniform
from burnbook.tensor import Tensor
from tests.support.cuda_on_cpu import Cuda
from tests.support.far_arrays import Far, assert_as_plain, assert_same
from tests.support.refusals import refused

SOURCES = Path(burnbook.__file__).parent
OUR_OWN = {"__name__", "run_op", "philox", "module"}  # of ArraySpace, not of CuPy


# Without a GPU: every name and keyword that ops use exists in CuPy.


def uses_of_xp(source):
    """Each (line, dotted name, positional count, keywords) of `xp.…` in a file."""
    tree = ast.parse(source)
    calls = {
        id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)
    }
    inside = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        dotted = dotted_name(node)
        call = calls.get(id(node))
        given = call_shape(call) if call else (0, ())
        if dotted and id(node) not in inside:
            yield node.lineno, f"xp.{dotted}", *given
        elif dotted is None and is_of_an_array(node):
            yield node.lineno, f"ndarray.{node.attr}", *given


def dotted_name(node):
    """`lib.stride_tricks.as_strided` for `self.xp.lib.stride_tricks.as_strided`."""
    names = []
    while isinstance(node, ast.Attribute) and node.attr != "xp":
        names.append(node.attr)
        node = node.value
    is_xp = isinstance(node, ast.Attribute) or (
        isinstance(node, ast.Name) and node.id == "xp"
    )
    return ".".join(reversed(names)) if names and is_xp else None


def is_of_an_array(node):
    """Whether this may be a method of an array (and not a function of NumPy's)."""
    of_module = isinstance(node.value, ast.Name) and node.value.id in ("np", "math")
    return hasattr(np.ndarray, node.attr) and not of_module


def call_shape(call):
    starred = any(isinstance(arg, ast.Starred) for arg in call.args)
    count = 0 if starred else len(call.args)
    return count, tuple(word.arg for word in call.keywords if word.arg)


def missing_in_cupy(cupy, name, count, keywords):
    """What CuPy lacks for one use, in words, or None."""
    found = cupy
    for part in name.removeprefix("xp.").split("."):
        found = getattr(found, part, None)
        if found is None:
            return f"{name} does not exist"
    if not (count or keywords):
        return None
    offset = 1 if name.startswith("ndarray.") else 0
    try:
        inspect.signature(found).bind_partial(
            *[None] * (count + offset), **dict.fromkeys(keywords)
        )
    except TypeError as error:
        return f"{name}: {error}"
    except ValueError:  # written in Cython: the first line of the docstring tells
        known = documented_words(found)
        wrong = [word for word in keywords if word not in known]
        return f"{name} has no {wrong}" if wrong else None
    return None


def documented_words(function):
    head = re.search(r"\((.*)\)", (function.__doc__ or "").split("\n\n")[0], re.S)
    assert head, f"{function} has neither a signature nor a documented one"
    words = re.sub(r"[\\*/]", "", head.group(1)).split(",")
    return {word.split("=")[0].split()[-1] for word in words if word.strip()}


@pytest.fixture(scope="module")
def cupy_module():
    return pytest.importorskip("cupy")


def test_every_array_function_of_the_library_exists_in_cupy(cupy_module):
    problems, seen = [], set()
    for file in sorted(SOURCES.rglob("*.py")):
        for line, name, count, keywords in uses_of_xp(file.read_text("utf-8")):
            if name.split(".")[1] in OUR_OWN:
                continue
            if name.startswith("ndarray.") and file.parent.name != "ops":
                continue  # elsewhere a method may well be called on a NumPy array
            seen.add(name)
            problem = missing_in_cupy(cupy_module, name, count, keywords)
            if problem:
                problems.append(f"{file.relative_to(SOURCES)}:{line}: {problem}")
    assert not problems, "\n".join(problems)
    assert {"xp.matmul", "xp.lib.stride_tricks.as_strided", "ndarray.reshape"} <= seen


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("xp.nonsense(x)", "xp.nonsense does not exist"),
        ("self.xp.lib.nonsense", "xp.lib.nonsense does not exist"),
        ("xp.sum(x, axes=1)", "xp.sum: got an unexpected keyword argument 'axes'"),
        ("xp.max(x, initial=0)", "unexpected keyword argument 'initial'"),
        ("xp.add(x, y, subok=True)", "xp.add has no ['subok']"),
        ("x.astype(y, casting='safe', device=1)", "ndarray.astype has no ['device']"),
        ("x.sum(axis=0).ctypes", "ndarray.ctypes does not exist"),
        ("xp.where(a, b, c, d)", "xp.where: too many positional arguments"),
    ],
)
def test_the_comparison_with_cupy_notices_what_is_missing(cupy_module, line, problem):
    found = [missing_in_cupy(cupy_module, *use[1:]) for use in uses_of_xp(line)]
    assert any(problem in text for text in found if text), found


def test_without_a_gpu_the_error_says_what_to_install(monkeypatch):
    module = pytest.importorskip("cupy")

    def no_driver():
        raise RuntimeError("the driver is too old\nmore")

    monkeypatch.setattr(module.cuda.runtime, "getDeviceCount", no_driver)
    facts = (
        "\n  driver  the driver is too old\n"
        "  try: pip install burnbook[cuda12], on a machine with an NVIDIA GPU"
    )
    refused(BackendError, lambda: Cupy(0, "f32", "i16"), "Cupy(0): ", facts)


# Without a GPU: everything runs on arrays that NumPy may not touch (far_arrays.py).


ROWS = [
    pytest.param(op, row, id=f"{name}-{number}")
    for name, op in sorted(OPS.items())
    for number, row in enumerate(op.samples)
]


@pytest.mark.parametrize(("op", "row"), ROWS)
def test_ops_never_mix_arrays_of_two_devices(op, row):
    assert_same(op, row, Far())


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 1000])
def test_philox_as_array_code_gives_numpys_bits(count):
    key = (2**64 - 3, 7)
    expected = np.random.Philox(key=key[1] << 64 | key[0]).random_raw(max(count, 1))
    assert (philox(np, count, key) == expected[:count]).all()


# With a GPU.


@pytest.mark.gpu
@pytest.mark.parametrize(("op", "row"), ROWS)
def test_op_and_its_gradient_agree_with_numpy_on_the_gpu(gpu, op, row):
    assert_same(op, row, gpu)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("count", [1, 5, 100_003])
def test_random_bits_on_the_gpu_equal_numpys(gpu, dtype, count):
    found = random_bits(gpu.xp, count, (123, 2**63), dtype)
    expected = random_bits(np, count, (123, 2**63), dtype)
    assert (gpu.to_numpy(found) == expected).all()


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_random_tensors_on_the_gpu_equal_numpys(gpu, dtype):
    cpu = Numpy(compiled=False)
    attrs = {"shape": (301, 7), "key": (9, 8), "dtype": dtype}
    for op in (uniform, bernoulli):
        assert (gpu.to_numpy(gpu.run(op, (), attrs)) == cpu.run(op, (), attrs)).all()
    normals = gpu.to_numpy(gpu.run(normal, (), attrs)).astype(np.float64)
    expected = cpu.run(normal, (), attrs).astype(np.float64)
    limit = 2e-3 if dtype == np.float16 else 1e-6
    assert np.abs(normals - expected).max() < limit


@pytest.mark.gpu
def test_kernels_on_the_gpu_agree_with_the_plain_code_at_the_guides_sizes(gpu):
    rng = np.random.default_rng(0)
    for x_shape, w_shape in (
        ((64, 1, 28, 28), (8, 1, 3, 3)),
        ((64, 8, 26, 26), (16, 8, 3, 3)),
    ):
        x, weight = rng.random(x_shape), rng.random(w_shape)
        arrays = [x.astype(np.float32), weight.astype(np.float32)]
        assert_as_plain(conv2d, arrays, {}, gpu, rtol=1e-3, atol=1e-2)
    logits, targets = rng.random((64, 10)).astype(np.float32), rng.integers(0, 10, 64)
    assert_as_plain(cross_entropy, [logits, targets], {}, gpu, rtol=1e-4, atol=1e-7)


@pytest.mark.gpu
def test_a_wrong_target_on_the_gpu_is_explained(gpu):
    logits = gpu.from_numpy(np.zeros((2, 3), np.float32))
    with pytest.raises(DimError, match="target 3 is not one of the 3 classes"):
        gpu.run(cross_entropy, (logits, gpu.from_numpy(np.array([0, 3]))), {})


@pytest.mark.gpu
def test_the_backend_describes_itself_and_pickles(gpu):
    assert (gpu.name, gpu.device_name, repr(gpu)) == ("cupy", "Cuda(0)", "Cupy(0)")
    assert pickle.loads(pickle.dumps(gpu)) is gpu
    assert Cupy(0) is gpu
    assert repr(Cupy(0, float="f64", int="i32")) == "Cupy(0, float='f64', int='i32')"
    assert repr(Autodiff(gpu)) == "Autodiff(Cupy(0))"
    array = np.arange(6.0).reshape(2, 3)
    assert (gpu.to_numpy(gpu.from_numpy(array)) == array).all()
    assert isinstance(gpu.xp, ArraySpace)


def guide_steps(device, count=3):
    """The losses and parameters of some training steps of the guide's model."""
    from burnbook.examples.guide.model import ModelConfig
    from burnbook.nn import CrossEntropyLossConfig
    from burnbook.optim import AdamConfig, GradientsParams
    from burnbook.tensor import Int, Tensor

    rng = np.random.default_rng(0)
    images = Tensor.from_numpy(rng.random((8, 28, 28)).astype(np.float32), device)
    targets = Tensor[1, Int].from_numpy(rng.integers(0, 10, 8), device)
    device.seed(7)
    model = ModelConfig(10, 32).init(device)
    optim, losses = AdamConfig().init(), []
    for _ in range(count):
        output = model.forward(images)
        loss = CrossEntropyLossConfig().init(device).forward(output, targets)
        grads = GradientsParams.from_grads(loss.backward(), model)
        model = optim.step(1e-3, model, grads)
        losses.append(loss.into_scalar())
    weights = [model.conv1.weight, model.conv2.bias, model.linear1.weight]
    return losses, [np.asarray(weight.val()) for weight in weights]


def assert_same_steps(device):
    expected = guide_steps(Autodiff(Numpy(compiled=False)))
    losses, weights = guide_steps(Autodiff(device))
    np.testing.assert_allclose(losses, expected[0], rtol=1e-4)
    assert losses[0] != losses[2]
    for found, wanted in zip(weights, expected[1], strict=True):
        # Adam's first steps are ±lr whatever the size of a gradient near zero.
        assert (np.abs(found - wanted) < 1e-4).mean() > 0.98


@pytest.mark.parametrize("device", [Far, Cuda])
def test_the_guides_training_never_mixes_arrays_of_two_devices(device):
    assert_same_steps(device())


TEXT_KERNELS = {"embedding_weight"}
TEXT_KERNELS |= {
    f"{name}{end}"
    for name in ("attention", "dropout", "gelu", "gru", "layer_norm", "lstm")
    for end in (("",) if name == "dropout" else ("", ".backward"))
}


def slopes_of_text_models(device):
    """The gradients of a transformer, an LSTM and a GRU on embedded words."""
    from burnbook.nn import (
        EmbeddingConfig,
        GruConfig,
        LayerNormConfig,
        LstmConfig,
        TransformerEncoderConfig,
        TransformerEncoderInput,
    )
    from burnbook.tensor import Int, Tensor

    rng = np.random.default_rng(0)
    words = Tensor[2, Int].from_numpy(rng.integers(0, 11, (3, 5)), device)
    device.seed(7)
    table = EmbeddingConfig(11, 8).init(device)
    encoder = TransformerEncoderConfig(8, 16, 2, 1, dropout=0.1).init(device)
    lstm, gru = LstmConfig(8, 6, True).init(device), GruConfig(6, 4, True).init(device)
    norm = LayerNormConfig(4).init(device)
    x = encoder.forward(TransformerEncoderInput(table.forward(words)))
    x = norm.forward(gru.forward(lstm.forward(x)[0]))
    loss = (x * x * x).mean()
    grads = loss.backward()
    parameters = [
        table.weight,
        encoder.layers[0].mha.query.weight,
        lstm.input_gate.hidden_transform.weight,
        gru.new_gate.input_transform.weight,
        norm.gamma,
    ]
    return [np.asarray(loss), *(np.asarray(p.val().grad(grads)) for p in parameters)]


def assert_same_slopes(device):
    expected = slopes_of_text_models(Autodiff(Numpy(compiled=False)))
    found = slopes_of_text_models(Autodiff(device))
    for a, b in zip(found, expected, strict=True):
        assert np.abs(b).max() > 1e-6
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("device", [Far, Cuda])
def test_text_models_never_mix_arrays_of_two_devices(device):
    made = device()
    assert_same_slopes(made)
    if device is Cuda:
        answered = {op.name for op in made.answers}
        assert answered >= TEXT_KERNELS, TEXT_KERNELS - answered


def slopes_of_brackets(device):
    """What brackets, sums by equations, deviations and norms give, with a gradient."""
    from burnbook.tensor import Int, Tensor, linalg

    rng = np.random.default_rng(0)
    array = rng.standard_normal((3, 4, 5)).astype(np.float32)
    x = Tensor.from_numpy(array, device).require_grad()
    rows = Tensor[1, Int].from_ints([0, -1, 0], device)
    outs = [
        x[rows, [0, 1, -1]],
        x[:, ::-2, rows],
        x[x > 0.1],
        x[[True, False, True], 1:],
        x.gather_nd(Tensor.from_ints([[0, 1], [2, 3]], device)),
        x.at[rows, 1:, None].set(0.5),
        x.at[..., [0, 2], 1].set(x[:, :2, 0] * 2),
        x.at[::-2, 0].add(x.mean()),
        x.at[x > 0.1].add(1.0),
        x.at[x > 0.1].set(0.0),
        Tensor.einsum("aij,akj,bij->bk", x, x, x),
        Tensor.einsum("aij->j", x),
        x.std((0, 2)),
        x.logsumexp(),
        linalg.vector_norm(x, 3, (1, 2)),
    ]
    loss = sum((out * out).sum() for out in outs)
    return [np.asarray(t) for t in (*outs, x.grad(loss.backward()))]


def assert_same_brackets(device):
    expected = slopes_of_brackets(Autodiff(Numpy(compiled=False)))
    found = slopes_of_brackets(Autodiff(device))
    for a, b in zip(found, expected, strict=True):
        assert b.size
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", [Far, Cuda])
def test_brackets_and_equations_never_mix_arrays_of_two_devices(device):
    assert_same_brackets(device())


@pytest.mark.gpu
def test_brackets_and_equations_on_the_gpu_agree_with_numpy(gpu):
    assert_same_brackets(gpu)


@pytest.mark.gpu
def test_the_guides_training_steps_on_the_gpu_agree_with_numpy(gpu):
    assert_same_steps(gpu)


@pytest.mark.gpu
def test_the_guides_training_steps_on_the_gpu_are_the_same_with_fusion(gpu):
    losses, weights = guide_steps(Autodiff(Fusion(gpu)), 8)
    expected, others = guide_steps(Autodiff(gpu), 8)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for weight, other in zip(weights, others, strict=True):
        np.testing.assert_allclose(weight, other, rtol=1e-4, atol=1e-6)


@pytest.mark.gpu
def test_a_stream_that_comes_again_is_a_graph_on_the_gpu(gpu):
    device = Fusion(gpu)
    draw = np.random.default_rng(0).random
    for number in range(8):
        x = Tensor.from_numpy(draw((40, 5), np.float32), device)
        scale = float(number)
        found = ((x * scale + 1.0).relu() - 0.5).exp().sum_dim(1).into_data()
        array = np.asarray(x.into_data().to_numpy(), np.float64)
        wanted = np.exp(np.maximum(array * scale + 1, 0) - 0.5).sum(1, keepdims=True)
        np.testing.assert_allclose(found.to_numpy(), wanted, rtol=1e-5)


@pytest.mark.gpu
def test_text_models_on_the_gpu_agree_with_numpy(gpu):
    assert_same_slopes(gpu)


@pytest.mark.gpu
def test_several_values_are_read_at_once(gpu):
    far = [gpu.from_numpy(np.arange(n, dtype=np.float32)) for n in (5, 100_000)]
    product = gpu.xp.module.matmul(far[1][:400].reshape(20, 20), far[1][:20])
    found = gpu.read((*far, product))
    for array, value in zip(found, (*far, product), strict=True):
        np.testing.assert_array_equal(array, gpu.to_numpy(value))
    gpu.sync()
    assert gpu.xp.module.cuda.get_current_stream().done
