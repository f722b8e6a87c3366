"""What ONNX Runtime's tools make of four models: quantized twice, and optimized.

Quantized numbers may be a step off where a product lies in the middle between two, and
layers behind make more of it; so results are compared by their correlation.
"""

import io
import logging

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime", reason="it is the oracle here")
torch = pytest.importorskip("torch", reason="it exports the models")

from onnxruntime import quantization

from burnbook.importers.onnx import Backend

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
tn = torch.nn


class Lstm(tn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = tn.LSTM(8, 16, batch_first=True, bidirectional=True)
        self.fc = tn.Linear(32, 5)

    def forward(self, x):
        return self.fc(self.rnn(x)[0])


class Bert(tn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = tn.LayerNorm(32), tn.LayerNorm(32)
        self.q, self.k, self.v, self.o = (tn.Linear(32, 32) for _ in range(4))
        self.up, self.down = tn.Linear(32, 64), tn.Linear(64, 32)

    def heads(self, x):
        return x.reshape(x.shape[0], 6, 4, 8).transpose(1, 2)

    def forward(self, x):
        q, k, v = (self.heads(f(x)) for f in (self.q, self.k, self.v))
        a = torch.softmax(q @ k.transpose(2, 3) / 8**0.5, -1) @ v
        x = self.norm1(x + self.o(a.transpose(1, 2).reshape(x.shape)))
        return self.norm2(x + self.down(tn.functional.gelu(self.up(x))))


class Unet(tn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = tn.Conv2d(3, 8, 3, padding=1), tn.Conv2d(8, 16, 3, padding=1)
        self.up, self.c = tn.ConvTranspose2d(16, 8, 2, 2), tn.Conv2d(16, 4, 1)

    def forward(self, x):
        first = torch.relu(self.a(x))
        low = torch.nn.functional.leaky_relu(self.b(torch.max_pool2d(first, 2)))
        return torch.sigmoid(self.c(torch.cat([first, self.up(low)], 1)))


class ResNet(tn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = tn.Conv2d(3, 8, 3, padding=1), tn.Conv2d(8, 8, 3, padding=1)
        self.norm, self.fc = tn.BatchNorm2d(8), tn.Linear(8, 5)

    def forward(self, x):
        x = torch.relu(self.norm(self.a(x)))
        x = torch.relu(x + self.b(x))
        return self.fc(x.mean((2, 3)))


MODELS = {
    "lstm": (Lstm, (2, 6, 8)),
    "bert": (Bert, (2, 6, 32)),
    "unet": (Unet, (2, 3, 8, 8)),
    "resnet": (ResNet, (2, 3, 8, 8)),
}


class Readings(quantization.CalibrationDataReader):
    def __init__(self, shape):
        rng = np.random.default_rng(1)
        rows = [rng.normal(size=shape).astype(np.float32) for _ in range(8)]
        self.rows = iter([{"x": row} for row in rows])

    def get_next(self):
        return next(self.rows, None)


def dynamic(source, target, shape):
    quantization.quantize_dynamic(source, target)


def static(form):
    def quantized(source, target, shape):
        how = {"quant_format": form, "per_channel": False}
        quantization.quantize_static(source, target, Readings(shape), **how)

    return quantized


def optimized(source, target, shape):
    settings = runtime.SessionOptions()
    level = runtime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    settings.graph_optimization_level = level
    settings.optimized_model_filepath = str(target)
    runtime.InferenceSession(str(source), settings)


TOOLS = {
    "quantize_dynamic": dynamic,
    "quantize_static, QDQ": static(quantization.QuantFormat.QDQ),
    "quantize_static, QOperator": static(quantization.QuantFormat.QOperator),
    "optimized": optimized,
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tools")
    logging.disable(logging.WARNING)
    for name, (kind, shape) in MODELS.items():
        torch.manual_seed(0)
        file = io.BytesIO()
        about = {"input_names": ["x"], "opset_version": 17, "dynamo": False}
        torch.onnx.export(kind().eval(), torch.randn(shape), file, **about)
        (folder / f"{name}.onnx").write_bytes(file.getvalue())
    yield folder
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", MODELS)
def test_what_tools_make_of_a_model_is_equal(exported, name, tool, tmp_path):
    shape = MODELS[name][1]
    target = tmp_path / "made.onnx"
    TOOLS[tool](exported / f"{name}.onnx", target, shape)
    settings = runtime.SessionOptions()
    settings.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    x = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    (wanted,) = runtime.InferenceSession(str(target), settings).run(None, {"x": x})
    (found,) = Backend.prepare(target).run([x])
    off = np.abs(found - wanted).max() / np.abs(wanted).max()
    assert off < (1e-5 if tool == "optimized" else 0.02)
