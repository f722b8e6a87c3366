"""Burn's own ONNX files beside ONNX Runtime, and what Burn says their results are."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from burnbook.backend.numpy import Numpy
from burnbook.importers.onnx import Backend, ModelGen, check, load
from burnbook.importers.onnx.model_gen import module_name
from burnbook.tensor import Tensor
from tests.golden.shared import SHARED, digits, needs_mnist

ONNX = SHARED / "golden" / "onnx"
FILES = sorted(ONNX.glob("*.onnx"))
REFUSED = ("sum_int",)  # ONNX Runtime has no sum of whole numbers
RANDOM = ("random_normal", "dropout_opset16")  # nothing to compare number by number
SIZES = {  # of the dims that a file leaves open
    "conv3d": (2, 4, 4, 5, 7),
    "conv1d": (6, 4, 10),
    "conv_transpose2d": (2, 6, 18, 15),
}

pytestmark = pytest.mark.skipif(
    not FILES, reason="no golden files: shared/golden lies not beside the project"
)


def inputs_of(model, stem):
    """Numbers for the inputs of a file."""
    rng = np.random.default_rng(0)
    known = {t.name for t in model.graph.initializer}
    found = []
    for value in model.graph.input:
        if value.name in known:
            continue
        kind = value.type.tensor_type
        shape = [d.dim_value or 2 for d in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if dtype.kind == "f":
            array = rng.uniform(0.1, 2.0, shape).astype(dtype)
        elif dtype.kind == "b":
            array = rng.integers(0, 2, shape).astype(bool)
        else:
            array = rng.integers(0, 2, shape).astype(dtype)
        found.append((value.name, np.asarray(array)))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_results_are_those_of_onnx_runtime(path):
    runtime = pytest.importorskip("onnxruntime", reason="it is the oracle here")
    if path.stem in RANDOM + REFUSED:
        pytest.skip("random numbers, or refused by ONNX Runtime")
    model = onnx.load(path)
    given = inputs_of(model, path.stem)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    wanted = session.run(None, dict(given))
    found = Backend.prepare(model).run([array for _, array in given])
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_forward_takes_and_gives_tensors(path):
    module = load(path, Numpy())
    given = [
        Tensor.from_numpy(array if array.ndim else array.reshape(1), Numpy())
        for _, array in inputs_of(onnx.load(path), path.stem)
    ]
    if any(not array.ndim for _, array in inputs_of(onnx.load(path), path.stem)):
        return  # a number where the file wants rank 0
    found = module.forward(*given)
    for y in found if isinstance(found, tuple) else (found,):
        assert isinstance(y, Tensor)
        assert len(y.shape) >= 1


@needs_mnist
def test_mnist_reads_digits():
    module = load(ONNX / "mnist.onnx", Numpy())
    images, labels = digits(200)
    x = images[:, None].astype(np.float32) / 255
    x = (x - 0.1307) / 0.3081
    shape = check(ONNX / "mnist.onnx").inputs[0][1]
    if "[1, " in shape:
        rows = [
            module.forward(Tensor.from_numpy(x[i : i + 1], Numpy())) for i in range(50)
        ]
        read = np.concatenate([np.asarray(row) for row in rows]).argmax(1)
        assert (read == labels[:50]).mean() > 0.9
    else:
        read = np.asarray(module.forward(Tensor.from_numpy(x, Numpy()))).argmax(1)
        assert (read == labels).mean() > 0.9


def test_generated_packages_give_the_same(tmp_path):
    import importlib.util

    for path in FILES:
        if path.stem in RANDOM:
            continue
        (made,) = ModelGen().input(path).out_dir(tmp_path).run_from_cli()
        assert made.name == f"{module_name(path.stem)}.py"
        spec = importlib.util.spec_from_file_location(path.stem, made)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        ready = module.Model.default()
        given = [array for _, array in inputs_of(onnx.load(path), path.stem)]
        wanted = Backend.prepare(onnx.load(path)).run(given)
        from burnbook.importers.onnx.values import lifted, lowered

        run = getattr(ready, "compute", ready.forward)
        found = run(*[lifted(x, Numpy()) for x in given])
        found = found if isinstance(found, tuple) else (found,)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(lowered(a), b)
