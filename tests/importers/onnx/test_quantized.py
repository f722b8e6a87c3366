"""Quantized networks of PyTorch, as its exporter and ONNX Runtime's tools write them.

Results are equal but for numbers that lie in the middle between two steps of a scale:
either may round them up, and layers behind make more of it.
"""

import io
import logging
from collections import Counter

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime", reason="it is the oracle here")
torch = pytest.importorskip("torch", reason="it quantizes and exports")

from burnbook.importers.onnx import Backend, load, source_of

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch.ao and the exporters
RNG = np.random.default_rng(0)
BEGIN = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def same_inputs():
    """Every test has the same inputs, whatever ran before it."""
    RNG.bit_generator.state = BEGIN


def classifier():
    tn = torch.nn

    class Classifier(tn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn = tn.Conv2d(1, 8, 3, padding=1), tn.BatchNorm2d(8)
            self.conv2 = tn.Conv2d(8, 8, 3, stride=2, groups=2)
            self.relu, self.pool = tn.ReLU(), tn.MaxPool2d(2)
            self.fc = tn.Linear(8 * 2 * 2, 10)

        def forward(self, x):
            x = self.relu(self.bn(self.conv1(x)))
            x = self.pool(self.relu(self.conv2(x)))
            return self.fc(torch.flatten(x, 1))

    torch.manual_seed(0)
    return Classifier().eval(), (1, 12, 12)


def residual():
    tn = torch.nn

    class Block(tn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = (tn.Conv2d(4, 4, 3, padding=1) for _ in range(2))

        def forward(self, x):
            return torch.relu(x + self.conv2(torch.relu(self.conv1(x))))

    torch.manual_seed(1)
    blocks = [tn.Conv2d(3, 4, 1), Block(), tn.AvgPool2d(2), Block()]
    return tn.Sequential(*blocks).eval(), (3, 8, 8)


def perceptron():
    tn = torch.nn
    torch.manual_seed(2)
    layers = [tn.Linear(12, 32), tn.ReLU(), tn.Linear(32, 32), tn.Sigmoid()]
    return tn.Sequential(*layers, tn.Linear(32, 5)).eval(), (12,)


NETWORKS = [classifier, residual, perceptron]


def given(shape, count=16):
    return RNG.standard_normal((count, *shape)).astype(np.float32)


def exported(module, x, **words):
    file, level = io.BytesIO(), logging.root.level
    logging.disable(logging.WARNING)
    try:
        torch.onnx.export(module, (torch.from_numpy(x),), file, dynamo=False, **words)
    finally:
        logging.disable(level if level > logging.WARNING else logging.NOTSET)
    return onnx.load_from_string(file.getvalue())


def compare(model, x):
    """Ours beside ONNX Runtime's, without its optimizer, which calculates otherwise."""
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (wanted,) = session.run(None, {session.get_inputs()[0].name: x})
    (found,) = Backend.prepare(model).run([x])
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    step = np.ptp(wanted) / 255
    apart = np.abs(found - wanted)
    assert apart.max() <= 10 * step
    assert (apart > 0.01 * step).mean() < 0.02, "more than what lies between two steps"
    assert len(np.unique(wanted)) > 8  # there is something to compare
    return found


@pytest.mark.parametrize("make", NETWORKS)
@pytest.mark.parametrize("engine", ["x86", "qnnpack"])  # by channel; by tensor
def test_what_pytorch_quantizes_and_exports(make, engine):
    from torch.ao.quantization import get_default_qconfig_mapping, quantize_fx

    if engine not in torch.backends.quantized.supported_engines:
        pytest.skip(f"this PyTorch has no {engine}")
    torch.backends.quantized.engine = engine
    network, shape = make()
    x = given(shape)
    sample = (torch.from_numpy(x),)
    mapping = get_default_qconfig_mapping(engine)
    watched = quantize_fx.prepare_fx(network, mapping, sample)
    for _ in range(4):
        watched(torch.from_numpy(given(shape)))
    model = exported(quantize_fx.convert_fx(watched), x, opset_version=19)
    counts = Counter(node.op_type for node in model.graph.node)
    assert counts["QuantizeLinear"] >= 2
    assert counts["DequantizeLinear"] >= 4
    found = compare(model, x)
    plain = network(torch.from_numpy(x)).detach().numpy()
    assert np.abs(found - plain).max() < 0.2 * np.abs(plain).max()  # it is that network


@pytest.mark.parametrize("make", NETWORKS)
def test_what_learned_with_rounding_in_mind(make):
    """Fake quantization becomes a pair of QuantizeLinear and DequantizeLinear."""
    from torch.ao.quantization import (
        disable_observer,
        get_default_qat_qconfig_mapping,
        quantize_fx,
    )

    network, shape = make()
    x = given(shape)
    sample = (torch.from_numpy(x),)
    mapping = get_default_qat_qconfig_mapping("qnnpack", version=0)
    learning = quantize_fx.prepare_qat_fx(network.train(), mapping, sample)
    optimizer = torch.optim.SGD(learning.parameters(), lr=1e-2)
    for _ in range(5):
        optimizer.zero_grad()
        learning(torch.from_numpy(given(shape))).square().mean().backward()
        optimizer.step()
    learning.eval().apply(disable_observer)
    model = exported(learning, x, opset_version=19)
    assert sum(node.op_type == "QuantizeLinear" for node in model.graph.node) >= 3
    compare(model, x)


@pytest.mark.parametrize(
    ("make", "form"),
    [
        *((make, "QDQ") for make in NETWORKS),
        # Beside convolutions this form has operators that only ONNX Runtime knows.
        *((make, "QOperator") for make in (classifier, residual)),
    ],
)
def test_what_onnx_runtime_quantizes(make, form, tmp_path):
    tools = pytest.importorskip("onnxruntime.quantization")
    network, shape = make()
    x = given(shape)
    onnx.save(exported(network, x, opset_version=19), tmp_path / "plain.onnx")

    class Samples(tools.CalibrationDataReader):
        def __init__(self):
            name = onnx.load(tmp_path / "plain.onnx").graph.input[0].name
            self.left = [{name: given(shape)} for _ in range(4)]

        def get_next(self):
            return self.left.pop() if self.left else None

    tools.quantize_static(
        str(tmp_path / "plain.onnx"),
        str(tmp_path / "small.onnx"),
        Samples(),
        quant_format=tools.QuantFormat[form],
        per_channel=form == "QDQ",
        op_types_to_quantize=["Conv"] if form == "QOperator" else None,
    )
    model = onnx.load(tmp_path / "small.onnx")
    kinds = {node.op_type for node in model.graph.node}
    assert ("QLinearConv" in kinds) == (form == "QOperator")
    assert "DequantizeLinear" in kinds
    compare(model, x)


def test_what_onnx_runtime_quantizes_as_it_runs(tmp_path):
    """Scales of what goes in are those of each call: DynamicQuantizeLinear.

    Of weights it takes seven bits: with eight, sums overflow in ONNX Runtime.
    """
    tools = pytest.importorskip("onnxruntime.quantization")
    network, shape = perceptron()
    x = given(shape)
    onnx.save(exported(network, x, opset_version=19), tmp_path / "plain.onnx")
    path = tmp_path / "small.onnx"
    tools.quantize_dynamic(str(tmp_path / "plain.onnx"), str(path), reduce_range=True)
    model = onnx.load(path)
    assert any(node.op_type == "DynamicQuantizeLinear" for node in model.graph.node)
    compare(model, x)


def test_weights_of_eight_bits_stay_as_narrow_as_the_file_has_them():
    from torch.ao.quantization import get_default_qconfig_mapping, quantize_fx

    torch.backends.quantized.engine = "qnnpack"
    network, shape = perceptron()
    sample = (torch.from_numpy(given(shape)),)
    watched = quantize_fx.prepare_fx(
        network, get_default_qconfig_mapping("qnnpack"), sample
    )
    watched(*sample)
    model = exported(quantize_fx.convert_fx(watched), given(shape), opset_version=19)
    module = load(model)
    kinds = {np.asarray(param.val()).dtype.name for _, param in module.named_params()}
    assert "int8" in kinds
    assert "dequantize" in source_of(module)
