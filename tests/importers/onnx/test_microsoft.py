"""Operators of ONNX Runtime (com.microsoft), against ONNX Runtime itself."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime", reason="it is the oracle here")

from onnx import helper, numpy_helper

from burnbook.backend.numpy import Numpy
from burnbook.core.errors import ArgumentError, RecordError
from burnbook.importers.onnx import Backend, check, load, source_of
from burnbook.importers.onnx.apart import RULES
from burnbook.importers.onnx.operators import OPERATORS
from burnbook.importers.onnx.versions import VERSIONS
from burnbook.tensor import Tensor

DOMAIN = "com.microsoft"


def floats(*shape, seed=0, scale=1.0):
    rng = np.random.default_rng([seed, *shape])
    return (rng.normal(size=shape) * scale).astype(np.float32)


def bytes_(*shape, dtype=np.uint8, low=0, high=255, seed=0):
    rng = np.random.default_rng([seed, *shape])
    return rng.integers(low, high + 1, shape).astype(dtype)


def one(value, dtype=np.float32):
    return np.asarray(value, dtype)


class Case:
    """A node: its inputs (None: left out), attributes, and how many results.

    held: places of inputs that are constants of the file. steps: how many of a scale a
    quantized result may be off, in `few` of its elements.
    """

    def __init__(
        self, op, inputs, results=(1,), held=(), steps=0, domain=DOMAIN, **attributes
    ):
        self.op, self.inputs, self.attributes = op, inputs, attributes
        self.results, self.held, self.steps = results, held, steps
        self.domain = domain

    def model(self, fixed=False):
        values, constants, names = [], [], []
        for k, array in enumerate(self.inputs):
            name = "" if array is None else f"i{k}"
            names.append(name)
            if array is None:
                continue
            if k in self.held:
                constants.append(numpy_helper.from_array(array, name))
            else:
                kind = helper.np_dtype_to_tensor_dtype(array.dtype)
                shape = [f"d{k}_{i}" for i in range(array.ndim)]
                shape = list(array.shape) if fixed or self.op in FIXED else shape
                values.append(helper.make_tensor_value_info(name, kind, shape))
        outputs = [f"o{k}" if used else "" for k, used in enumerate(self.results)]
        words = self.attributes
        node = helper.make_node(self.op, names, outputs, domain=self.domain, **words)
        made = [onnx.ValueInfoProto(name=name) for name in outputs if name]
        graph = helper.make_graph([node], "g", values, made, constants)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def given(self):
        return {
            f"i{k}": array
            for k, array in enumerate(self.inputs)
            if array is not None and k not in self.held
        }


FIXED = {"NhwcConv", "FusedMatMul"}
HEADS, WIDTH = 2, 8
ATT = {"num_heads": HEADS}
MASK = one([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)


def attention(inputs, **more):
    x, w, b = floats(2, 4, 6), floats(6, 3 * WIDTH, scale=0.4), floats(3 * WIDTH)
    return Case("Attention", [x, w, b, *inputs], held=(1, 2), **ATT, **more)


def heads(*inputs, **more):
    return Case("MultiHeadAttention", list(inputs), **ATT, **more)


QKV = [floats(2, 4, WIDTH), floats(2, 5, WIDTH, seed=1), floats(2, 5, WIDTH, seed=2)]
SAME = [floats(2, 4, WIDTH), floats(2, 4, WIDTH, seed=1), floats(2, 4, WIDTH, seed=2)]
ANGLES = np.outer(np.arange(12), [1.0, 0.1])
COS, SIN = (f(ANGLES).astype(np.float32) for f in (np.cos, np.sin))
COS4, SIN4 = COS, SIN  # half of a head of 4 numbers
EIGHT = np.outer(np.arange(12), [1.0, 0.3, 0.1, 0.03])
COS8, SIN8 = (f(EIGHT).astype(np.float32) for f in (np.cos, np.sin))


def grouped(*inputs, past=None, lengths=(4, 4), total=4, angles=None, **more):
    given = [*inputs, *[None] * (3 - len(inputs)), *(past or [None, None])]
    given += [one([n - 1 for n in lengths], np.int32), one(total, np.int32)]
    given += list(angles or [])
    about = {"num_heads": 4, "kv_num_heads": 2, **more}
    return Case("GroupQueryAttention", given, results=(1, 1, 1), **about)


GROUPS = [floats(2, 4, 64), floats(2, 4, 32, seed=1), floats(2, 4, 32, seed=2)]
NEXT = [floats(2, 1, 64), floats(2, 1, 32, seed=1), floats(2, 1, 32, seed=2)]
PAST = [floats(2, 2, 4, 16, seed=3), floats(2, 2, 4, 16, seed=4)]
WIDE = np.outer(np.arange(12), 0.6 ** np.arange(8))
TURNS = [f(WIDE).astype(np.float32) for f in (np.cos, np.sin)]
SCALES = [one(0.05), one(128, np.uint8)]
OTHER = [one(0.08), one(120, np.uint8)]
OUT = [one(0.13), one(125, np.uint8)]  # no number lies between two steps


def quantized(op, *inputs, steps=1, **more):
    held = tuple(k for k, a in enumerate(inputs) if np.ndim(a) == 0 and a is not None)
    return Case(op, list(inputs), held=held, steps=steps, **more)


def lstm(direction, **more):
    ways = 1 + (direction == "bidirectional")
    held = {
        1: bytes_(ways, 5, 16, dtype=np.int8, low=-100, high=100),
        2: bytes_(ways, 4, 16, dtype=np.int8, low=-100, high=100),
        3: floats(ways, 32, scale=0.3),
        8: floats(ways) ** 2 * 0.002 + 0.003,
        9: np.zeros(ways, np.int8),
        10: floats(ways, seed=1) ** 2 * 0.002 + 0.003,
        11: np.zeros(ways, np.int8),
    }
    inputs = [floats(6, 3, 5), *[None] * 11]
    for k, array in held.items():
        inputs[k] = array
    if more.pop("states", False):
        inputs[5], inputs[6] = floats(ways, 3, 4), floats(ways, 3, 4, seed=1)
    return Case(
        "DynamicQuantizeLSTM",
        inputs,
        results=(1, 1, 1),
        held=tuple(held),
        hidden_size=4,
        direction=direction,
        steps=-1,
    )


def n_bits(bits, zeros="", columns=40, size=16, bias=False):
    rows, count = 6, -(-columns // size)
    blob = size * bits // 8
    weight = bytes_(rows, count, blob)
    scales = np.abs(floats(rows, count)) * 0.1
    zero = None
    if zeros == "packed":
        zero = bytes_(rows, -(-count * bits // 8), seed=1)
    elif zeros == "float":
        zero = np.abs(floats(rows, count, seed=2)) + 3
    inputs = [floats(2, 3, columns), weight, scales, zero, None]
    if bias:
        inputs.append(floats(rows, seed=3))
    held = tuple(range(1, len(inputs)))
    words = {"K": columns, "N": rows, "bits": bits, "block_size": size}
    return Case("MatMulNBits", inputs, held=held, **words)


def embedding(ids, *, segments=True, mask=False, places=None, results=(1, 1)):
    tables = [floats(20, 6), floats(9, 6, seed=1), floats(2, 6, seed=2)]
    kinds = bytes_(*ids.shape, dtype=np.int32, high=1) if segments else None
    inputs = [ids, kinds, *tables, floats(6, seed=3), floats(6, seed=4)]
    if not segments:
        inputs[4] = None
    inputs.append(MASK if mask else None)
    if places is not None:
        inputs.append(places)
    return Case("EmbedLayerNormalization", inputs, results, held=(2, 3, 4, 5, 6))


IDS = bytes_(2, 4, dtype=np.int32, high=19)
IMAGE, TAPS = floats(2, 3, 6, 6), floats(4, 3, 3, 3, scale=0.4)
Q_IMAGE = bytes_(2, 3, 6, 6)
Q_TAPS = bytes_(4, 3, 3, 3, dtype=np.int8, low=-90, high=90)
LINES = [floats(2, 3, 6), floats(6, seed=1), floats(6, seed=2)]

CASES = {
    "Gelu": Case("Gelu", [LINES[0]]),
    "FastGelu": Case("FastGelu", [LINES[0]]),
    "FastGelu of a sum": Case("FastGelu", LINES[:2], held=(1,)),
    "BiasGelu": Case("BiasGelu", LINES[:2], held=(1,)),
    "QuickGelu": Case("QuickGelu", [LINES[0]]),
    "QuickGelu by 1": Case("QuickGelu", [LINES[0]], alpha=1.0),
    "SkipLayerNormalization": Case("SkipLayerNormalization", [LINES[0], *LINES]),
    "SkipLayerNormalization without beta": Case(
        "SkipLayerNormalization", [LINES[0], LINES[0], LINES[1]], held=(2,)
    ),
    "SkipLayerNormalization, the sum": Case(
        "SkipLayerNormalization",
        [LINES[0], floats(2, 3, 6, seed=9), *LINES[1:], floats(6, seed=5)],
        results=(1, 0, 0, 1),
        held=(2, 3, 4),
        epsilon=0.1,
    ),
    "SkipLayerNormalization of one row": Case(
        "SkipLayerNormalization", [LINES[0], floats(1, 3, 6), *LINES[1:]], held=(2, 3)
    ),
    "SkipSimplifiedLayerNormalization": Case(
        "SkipSimplifiedLayerNormalization",
        [LINES[0], floats(2, 3, 6, seed=9), LINES[1], LINES[2]],
        results=(1, 0, 0, 1),
        held=(2, 3),
        epsilon=0.01,
    ),
    "SimplifiedLayerNormalization": Case(
        "SimplifiedLayerNormalization", LINES[:2], held=(1,), domain="", axis=-1
    ),
    "SimplifiedLayerNormalization, inverse": Case(
        "SimplifiedLayerNormalization",
        LINES[:2],
        results=(1, 1),
        held=(1,),
        domain="",
        epsilon=0.1,
        axis=2,
    ),
    "LayerNormalization": Case("LayerNormalization", LINES, held=(1, 2), domain=""),
    "FusedMatMul": Case("FusedMatMul", [floats(3, 4), floats(4, 5)], alpha=0.5),
    "FusedMatMul turned": Case(
        "FusedMatMul", [floats(2, 4, 3), floats(2, 5, 4)], transA=1, transB=1
    ),
    "FusedMatMul of a weight": Case(
        "FusedMatMul", [floats(2, 3, 4), floats(5, 4)], held=(1,), transB=1
    ),
    "FusedMatMul, batch": Case(
        "FusedMatMul",
        [floats(3, 2, 4), floats(2, 4, 5)],
        transBatchA=1,
    ),
    "FusedMatMul, both batches": Case(
        "FusedMatMul",
        [floats(3, 2, 4), floats(4, 2, 5)],
        transBatchA=1,
        transBatchB=1,
        alpha=2.0,
    ),
    "FusedMatMul, all": Case(
        "FusedMatMul",
        [floats(4, 2, 3), floats(5, 2, 4)],
        transBatchA=1,
        transBatchB=1,
        transA=1,
        transB=1,
    ),
    "TransposeMatMul": Case(
        "TransposeMatMul", [floats(4, 3), floats(4, 5)], transA=1, alpha=0.5
    ),
    "FusedConv": Case("FusedConv", [IMAGE, TAPS], held=(1,), activation="Relu"),
    "FusedConv and a sum": Case(
        "FusedConv",
        [IMAGE, TAPS, floats(4), floats(2, 4, 6, 6)],
        held=(1, 2),
        activation="Relu",
        pads=[1, 1, 1, 1],
    ),
    **{
        f"FusedConv, {name}": Case(
            "FusedConv",
            [IMAGE, TAPS, floats(4)],
            held=(1, 2),
            activation=name,
            **({"activation_params": numbers} if numbers else {}),
            strides=[2, 2],
        )
        for name, numbers in {
            "Tanh": [],
            "Sigmoid": [],
            "LeakyRelu": [0.3],
            "Clip": [-0.5, 0.7],
            "HardSigmoid": [0.3, 0.4],
        }.items()
    },
    "FusedGemm": Case(
        "FusedGemm",
        [floats(3, 4), floats(4, 5), floats(5)],
        held=(1, 2),
        activation="LeakyRelu",
        activation_alpha=0.2,
        alpha=0.5,
    ),
    "Attention": attention([]),
    "Attention without bias": Case(
        "Attention", [floats(2, 4, 6), floats(6, 24)], held=(1,), **ATT
    ),
    "Attention, causal": attention([], unidirectional=1),
    "Attention, mask": attention([MASK]),
    "Attention, lengths": attention([one([3, 2], np.int32)]),
    "Attention, ends and starts": attention([one([3, 4, 0, 1], np.int32)]),
    "Attention, mask of rows": attention(
        [np.tril(np.ones((2, 4, 4), np.int32))], mask_filter_value=-5.0
    ),
    "Attention, bias of scores": attention([None, None, floats(2, 2, 4, 4)]),
    "Attention, past": attention(
        [np.ones((2, 7), np.int32), floats(2, 2, 2, 3, 4)],
        results=(1, 1),
        unidirectional=1,
    ),
    "Attention, present": attention([], results=(1, 1)),
    "Attention, scale": attention([], scale=0.3),
    "Attention, sizes": Case(
        "Attention",
        [floats(2, 4, 6), floats(6, 20), floats(20)],
        held=(1, 2),
        qkv_hidden_sizes=[8, 8, 4],
        **ATT,
    ),
    "MultiHeadAttention": heads(*QKV),
    "MultiHeadAttention, bias": heads(*QKV, floats(3 * WIDTH)),
    "MultiHeadAttention, mask": heads(
        *SAME, None, one([[1, 1, 1, 0], [1, 0, 0, 0]], np.int32)
    ),
    "MultiHeadAttention, lengths": heads(*SAME, None, one([3, 2], np.int32)),
    "MultiHeadAttention, bias of scores": heads(*QKV, None, None, floats(2, 2, 4, 5)),
    "MultiHeadAttention, past": heads(
        *SAME,
        None,
        None,
        None,
        floats(2, 2, 3, 4),
        floats(2, 2, 3, 4, seed=1),
        results=(1, 1, 1),
    ),
    "MultiHeadAttention, causal": heads(*SAME, unidirectional=1, scale=0.7),
    "MultiHeadAttention, keys by heads": heads(
        QKV[0], floats(2, 2, 5, 4), floats(2, 2, 5, 4, seed=1)
    ),
    "GroupQueryAttention": grouped(*GROUPS),
    "GroupQueryAttention, packed": grouped(floats(2, 4, 128)),
    "GroupQueryAttention, past": grouped(*NEXT, past=PAST, lengths=(5, 5), total=5),
    "GroupQueryAttention, rotary": grouped(*GROUPS, angles=TURNS, do_rotary=1),
    "GroupQueryAttention, interleaved": grouped(
        *GROUPS, angles=TURNS, do_rotary=1, rotary_interleaved=1
    ),
    "GroupQueryAttention, past and rotary": grouped(
        *NEXT, past=PAST, lengths=(5, 5), total=5, angles=TURNS, do_rotary=1
    ),
    "GroupQueryAttention, packed, past and rotary": grouped(
        floats(2, 1, 128),
        past=PAST,
        lengths=(5, 5),
        total=5,
        angles=TURNS,
        do_rotary=1,
    ),
    "GroupQueryAttention, window": grouped(*GROUPS, local_window_size=2),
    "GroupQueryAttention, softcap": grouped(*GROUPS, softcap=0.5, scale=0.9),
    "RotaryEmbedding": Case(
        "RotaryEmbedding",
        [floats(2, 4, 16), one([[0, 1, 2, 3], [3, 4, 5, 6]], np.int64), COS8, SIN8],
        held=(2, 3),
    ),
    "RotaryEmbedding, heads": Case(
        "RotaryEmbedding", [floats(2, 2, 4, 8), one([2], np.int64), COS8, SIN8]
    ),
    "RotaryEmbedding, interleaved": Case(
        "RotaryEmbedding",
        [floats(2, 4, 16), one([0], np.int64), COS8, SIN8],
        interleaved=1,
    ),
    "RotaryEmbedding, a part": Case(
        "RotaryEmbedding",
        [floats(2, 4, 16), one([1], np.int64), COS4, SIN4],
        num_heads=2,
        rotary_embedding_dim=4,
    ),
    "EmbedLayerNormalization": embedding(IDS),
    "EmbedLayerNormalization without segments": embedding(IDS, segments=False),
    "EmbedLayerNormalization, mask and sum": embedding(
        IDS, mask=True, results=(1, 1, 1)
    ),
    "EmbedLayerNormalization, places": embedding(
        IDS, places=one([[2, 3, 4, 5], [0, 1, 2, 3]], np.int32)
    ),
    "QLinearAdd": quantized(
        "QLinearAdd", bytes_(2, 3, 4), *SCALES, bytes_(2, 3, 4, seed=1), *OTHER, *OUT
    ),
    "QLinearAdd, int8 and broadcast": quantized(
        "QLinearAdd",
        bytes_(2, 3, 4, dtype=np.int8, low=-128, high=127),
        one(0.05),
        one(3, np.int8),
        bytes_(4, dtype=np.int8, low=-128, high=127),
        one(0.07),
        one(-2, np.int8),
        one(0.09),
        one(1, np.int8),
    ),
    "QLinearMul": quantized(
        "QLinearMul", bytes_(2, 3, 4), *SCALES, bytes_(2, 3, 4, seed=1), *OTHER, *OUT
    ),
    "QLinearSigmoid": quantized(
        "QLinearSigmoid", bytes_(2, 30), *SCALES, one(1 / 256), one(0, np.uint8)
    ),
    "QLinearLeakyRelu": quantized(
        "QLinearLeakyRelu", bytes_(2, 30), *SCALES, *OTHER, alpha=0.2
    ),
    "QLinearSoftmax": quantized(
        "QLinearSoftmax",
        bytes_(2, 3, 10),
        *SCALES,
        one(1 / 256),
        one(0, np.uint8),
        axis=-1,
        opset=13,
    ),
    "QLinearSoftmax of opset 12": quantized(
        "QLinearSoftmax",
        bytes_(2, 3, 10),
        *SCALES,
        one(1 / 256),
        one(0, np.uint8),
        axis=1,
        opset=12,
    ),
    "QLinearConcat": Case(
        "QLinearConcat",
        [*OUT, bytes_(2, 3), *SCALES, bytes_(2, 5), *OTHER, bytes_(2, 1), *OUT],
        held=(0, 1, 3, 4, 6, 7, 9, 10),
        steps=1,
        axis=1,
    ),
    "QLinearWhere": quantized(
        "QLinearWhere",
        bytes_(2, 5, high=1).astype(bool),
        bytes_(2, 5),
        *SCALES,
        bytes_(2, 5, seed=1),
        *OTHER,
        *OUT,
    ),
    "QLinearAveragePool": quantized(
        "QLinearAveragePool",
        Q_IMAGE,
        *SCALES,
        *OTHER,
        kernel_shape=[3, 3],
        pads=[1, 1, 1, 1],
        strides=[2, 2],
    ),
    "QLinearAveragePool, all counted": quantized(
        "QLinearAveragePool",
        Q_IMAGE,
        *SCALES,
        *OTHER,
        kernel_shape=[2, 2],
        pads=[1, 1, 1, 1],
        count_include_pad=1,
    ),
    "QLinearAveragePool, channels last": quantized(
        "QLinearAveragePool",
        bytes_(2, 6, 6, 3),
        *SCALES,
        *OTHER,
        kernel_shape=[2, 2],
        channels_last=1,
    ),
    "QLinearGlobalAveragePool": quantized(
        "QLinearGlobalAveragePool", Q_IMAGE, *SCALES, *OTHER
    ),
    "QLinearGlobalAveragePool, channels last": quantized(
        "QLinearGlobalAveragePool",
        bytes_(2, 6, 6, 3),
        *SCALES,
        *OTHER,
        channels_last=1,
    ),
    "QLinearConv, channels last": Case(
        "QLinearConv",
        [
            bytes_(2, 6, 6, 3),
            *SCALES,
            Q_TAPS,
            one(0.01),
            one(0, np.int8),
            *OTHER,
            bytes_(4, dtype=np.int32, high=900),
        ],
        held=tuple(range(1, 9)),
        steps=1,
        channels_last=1,
        pads=[1, 1, 1, 1],
    ),
    "QGemm": Case(
        "QGemm",
        [
            bytes_(3, 4),
            *SCALES,
            bytes_(4, 5, dtype=np.int8, low=-60, high=60),
            one(0.02),
            one(0, np.int8),
            bytes_(5, dtype=np.int32, high=500),
            *OTHER,
        ],
        held=tuple(range(1, 9)),
        steps=1,
    ),
    "QGemm, turned, by columns": Case(
        "QGemm",
        [
            bytes_(3, 4),
            *SCALES,
            bytes_(5, 4, dtype=np.int8, low=-60, high=60),
            np.abs(floats(5)) * 0.01 + 0.01,
            np.zeros(5, np.int8),
            bytes_(5, dtype=np.int32, high=500),
            *OTHER,
        ],
        held=tuple(range(1, 9)),
        steps=1,
        transB=1,
        alpha=0.5,
    ),
    "QGemm to floats": Case(
        "QGemm",
        [
            bytes_(3, 4),
            *SCALES,
            bytes_(4, 5, dtype=np.int8, low=-60, high=60),
            one(0.02),
            one(0, np.int8),
        ],
        held=tuple(range(1, 6)),
    ),
    "QAttention": Case(
        "QAttention",
        [
            bytes_(2, 4, 6),
            bytes_(6, 24, dtype=np.int8, low=-60, high=60),
            floats(24),
            one(0.02),
            one(0.01),
            MASK,
            one(128, np.uint8),
            one(0, np.int8),
        ],
        held=(1, 2, 3, 4, 6, 7),
        **ATT,
    ),
    "QAttention, past": Case(
        "QAttention",
        [
            bytes_(2, 4, 6),
            bytes_(6, 24, dtype=np.int8, low=-60, high=60),
            floats(24),
            one(0.02),
            one(0.01),
            None,
            one(128, np.uint8),
            one(0, np.int8),
            floats(2, 2, 2, 3, 4),
        ],
        results=(1, 1),
        held=(1, 2, 3, 4, 6, 7),
        unidirectional=1,
        **ATT,
    ),
    "MatMulIntegerToFloat": Case(
        "MatMulIntegerToFloat",
        [
            bytes_(3, 4),
            bytes_(4, 5, dtype=np.int8, low=-60, high=60),
            one(0.02),
            np.abs(floats(5)) * 0.01,
            one(128, np.uint8),
            np.zeros(5, np.int8),
            floats(5),
        ],
        held=tuple(range(1, 7)),
    ),
    "DynamicQuantizeMatMul": Case(
        "DynamicQuantizeMatMul",
        [
            floats(2, 3, 4),
            bytes_(4, 5, dtype=np.int8, low=-60, high=60),
            one(0.02),
            one(0, np.int8),
            floats(5),
        ],
        held=tuple(range(1, 5)),
    ),
    "DynamicQuantizeLSTM": lstm("forward"),
    "DynamicQuantizeLSTM, reverse": lstm("reverse"),
    "DynamicQuantizeLSTM, both, states": lstm("bidirectional", states=True),
    "MatMulNBits": n_bits(4),
    "MatMulNBits, zeros": n_bits(4, "packed"),
    "MatMulNBits, floats as zeros": n_bits(4, "float"),
    "MatMulNBits, 8 bits": n_bits(8),
    "MatMulNBits, 8 bits, zeros": n_bits(8, "packed"),
    "MatMulNBits, bias": n_bits(4, bias=True),
    "MatMulNBits, 32": n_bits(4, "packed", columns=64, size=32),
    "GatherBlockQuantized": Case(
        "GatherBlockQuantized",
        [
            bytes_(10, 16),
            one([[1, 3], [9, 0]], np.int64),
            np.abs(floats(10, 2)),
        ],
        held=(0, 2),
        block_size=16,
    ),
    "QuantizeLinear": Case(
        "QuantizeLinear", [LINES[0], one(0.01), one(30000, np.uint16)], held=(1, 2)
    ),
    "DequantizeLinear": Case(
        "DequantizeLinear",
        [
            bytes_(2, 3, dtype=np.int16, low=-9000, high=9000),
            one(0.01),
            one(5, np.int16),
        ],
        held=(1, 2),
    ),
}
#: No kernel of ONNX Runtime runs them on a processor; their formula is tested below.
WITHOUT_KERNEL = {"BiasAdd", "BiasSplitGelu", "NhwcConv", "QLinearReduceMean"}
WITHOUT_KERNEL |= {"BiasSoftmax"}


def session(model):
    settings = runtime.SessionOptions()
    settings.log_severity_level = 4
    settings.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return runtime.InferenceSession(model.SerializeToString(), settings)


@pytest.mark.parametrize("name", CASES)
def test_operators_compute_what_onnx_runtime_does(name):
    case = CASES[name]
    model, given = case.model(), case.given()
    wanted = session(model).run(None, given)
    found = Backend.prepare(model).run(list(given.values()))
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        if case.steps > 0:
            off = np.abs(a.astype(int) - b.astype(int))
            assert off.max() <= case.steps
            assert (off > 0).mean() <= 0.03
        else:
            near = 5e-3 if case.steps else 1e-4
            np.testing.assert_allclose(a, b, rtol=near, atol=near / 5)


def test_every_known_operator_has_a_case():
    known = set(VERSIONS[DOMAIN])
    assert known == {op for d, op in (*OPERATORS, *RULES) if d == DOMAIN}
    assert {case.op for case in CASES.values()} | WITHOUT_KERNEL >= known


def run(op, *arrays, **attributes):
    return Backend.prepare(Case(op, list(arrays), **attributes).model()).run(arrays)[0]


def test_what_onnx_runtime_has_for_other_devices_follows_its_formula():
    x, bias, skip = floats(2, 3, 4), floats(4, seed=1), floats(2, 3, 4, seed=2)
    np.testing.assert_allclose(run("BiasAdd", x, bias, skip), x + bias + skip)
    gate = run("Gelu", (x + bias)[..., 2:])
    found = run("BiasSplitGelu", x, bias)
    np.testing.assert_allclose(found, (x + bias)[..., :2] * gate, rtol=1e-5)
    scores, inner, outer = floats(2, 3, 4, 5), floats(2, 1, 1, 5), floats(4, 5)
    for bias, axis, is_inner in ((inner, 3, 1), (outer, 2, 0)):
        about = {"axis": axis, "is_inner_broadcast": is_inner}
        found = run("BiasSoftmax", scores, bias, **about)
        flat = np.exp(scores + bias).reshape(*scores.shape[:axis], -1)
        wanted = (flat / flat.sum(-1, keepdims=True)).reshape(scores.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    q = bytes_(2, 3, 4)
    found = run("QLinearReduceMean", q, *SCALES, *OTHER, axes=[2])
    mean = ((q.astype(np.float32) - 128) * np.float32(0.05)).mean(2, keepdims=True)
    np.testing.assert_array_equal(found, np.rint(mean / np.float32(0.08)) + 120)
    image, taps = floats(2, 6, 6, 3), floats(4, 3, 3, 3)
    case = Case("NhwcConv", [image, taps], held=(1,), pads=[1, 1, 1, 1])
    found = Backend.prepare(case.model()).run([image])[0]
    first = [image.transpose(0, 3, 1, 2), taps.transpose(0, 3, 1, 2)]
    plain = Case("FusedConv", first, held=(1,), pads=[1, 1, 1, 1]).model()
    wanted = Backend.prepare(plain).run(first[:1])[0]
    np.testing.assert_allclose(found, wanted.transpose(0, 2, 3, 1), atol=1e-5)


LAYERS = {
    "BiasGelu": "ops.gelu",
    "SkipLayerNormalization, the sum": "nn.LayerNorm",
    "SkipSimplifiedLayerNormalization": "nn.RmsNorm",
    "SimplifiedLayerNormalization": "nn.RmsNorm",
    "LayerNormalization": "nn.LayerNorm",
    "FusedMatMul of a weight": "nn.Linear",
    "FusedConv": "nn.Conv2d",
    "FusedGemm": "nn.Linear",
    "EmbedLayerNormalization": "nn.Embedding",
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_found_in_fused_operators(name):
    if name == "FusedGemm":
        case = Case("FusedGemm", CASES[name].inputs, held=(1, 2), activation="Relu")
    else:
        case = CASES[name]
    model = case.model(fixed=True)
    if name == "LayerNormalization":  # as ONNX Runtime writes it in older files
        model.opset_import[0].version = 12
    assert LAYERS[name] in source_of(load(model))


def test_shapes_are_known_behind_fused_operators():
    node = helper.make_node
    nodes = [
        node("BiasGelu", ["x", "b"], ["h"], domain=DOMAIN),
        node("SkipLayerNormalization", ["h", "x", "b"], ["n"], domain=DOMAIN),
        node("FusedMatMul", ["n", "w"], ["y"], transB=1, domain=DOMAIN),
    ]
    values = [
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3, 6]),
        helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None),
    ]
    held = {"b": floats(6), "w": floats(5, 6)}
    constants = [numpy_helper.from_array(a, n) for n, a in held.items()]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], constants)
    opsets = [helper.make_opsetid("", 12), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=7)
    assert check(model).is_supported()
    source = source_of(load(model))
    assert "x [n, 3, 6] -> y [n, 3, 5]" in source


def test_weights_of_fused_operators_can_be_learned():
    device = Numpy().autodiff()
    model = load(CASES["Attention, mask"].model(), device)
    x = CASES["Attention, mask"].inputs[0]
    mask = Tensor.from_data(MASK, device)
    loss = model.forward(Tensor.from_data(x, device), mask).powf_scalar(2.0).sum()
    grads = loss.backward()
    (name, param), *_ = model.named_params()
    assert np.abs(np.asarray(param.val().grad(grads))).max() > 0, name


@pytest.mark.parametrize(
    ("op", "word"), [("QuickGelu", "alpah"), ("QGemm", "beta"), ("Attention", "x y")]
)
def test_an_attribute_that_is_not_known_is_refused(op, word):
    case = next(c for c in CASES.values() if c.op == op)
    words = {**case.attributes, word: 1.0}
    made = Case(op, case.inputs, held=case.held, **words)
    with pytest.raises(RecordError, match=f"{op} has the attribute '{word}'"):
        load(made.model())


def test_what_is_not_computed_here_says_so():
    case = CASES["Attention"]
    words = {**case.attributes, "do_rotary": 1}
    model = Case("Attention", case.inputs, held=case.held, **words).model()
    with pytest.raises(ArgumentError, match="do_rotary"):
        Backend.prepare(model).run([case.inputs[0]])
