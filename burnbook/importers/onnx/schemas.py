"""The attributes of ONNX Runtime's operators, and which shapes their results have.

The package onnx defines neither. What stands here is read by the importer before a node
is taken apart, and by shape inference, which sees a function of ONNX's operators in
place of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

_CONV = frozenset(("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"))
_NORM = frozenset(("axis", "epsilon", "stash_type"))
_NONE = frozenset[str]()
#: Of operators that are taken apart; those of others are their functions' parameters.
MICROSOFT: dict[str, frozenset[str]] = {
    "BiasAdd": _NONE,
    "BiasGelu": _NONE,
    "DequantizeLinear": frozenset(("axis", "block_size")),
    "EmbedLayerNormalization": frozenset(("epsilon", "mask_index_type")),
    "FastGelu": _NONE,
    "FusedConv": _CONV | {"activation", "activation_params"},
    "FusedGemm": frozenset(
        (
            *("activation", "activation_alpha", "activation_beta", "activation_gamma"),
            *("alpha", "beta", "transA", "transB"),
        )
    ),
    "FusedMatMul": frozenset(
        ("alpha", "transA", "transB", "transBatchA", "transBatchB")
    ),
    "Gelu": _NONE,
    "NhwcConv": _CONV,
    "QuantizeLinear": frozenset(("axis", "block_size", "output_dtype", "saturate")),
    "QuickGelu": frozenset(("alpha",)),
    "SimplifiedLayerNormalization": _NORM,
    "SkipLayerNormalization": frozenset(("epsilon",)),
    "SkipSimplifiedLayerNormalization": frozenset(("epsilon",)),
    "TransposeMatMul": frozenset(("alpha", "transA", "transB")),
}
#: Operators whose first result is like their first input.
LIKE_FIRST = frozenset(
    (
        *("BiasAdd", "BiasGelu", "BiasSoftmax", "FastGelu", "Gelu", "QuickGelu"),
        *("MultiHeadAttention", "QLinearLeakyRelu", "QLinearSigmoid"),
        *("QLinearSoftmax", "RotaryEmbedding", "SimplifiedLayerNormalization"),
        *("GroupQueryAttention", "LayerNormalization", "RMSNormalization"),
        *("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
    )
)
#: Operators of ONNX that a result is shaped by, and the inputs that they take.
SHAPED: dict[str, tuple[str, tuple[int, ...]]] = {
    "QLinearAdd": ("Add", (0, 3)),
    "QLinearMul": ("Add", (0, 3)),
    "FusedConv": ("Conv", (0, 1)),
    "FusedGemm": ("Gemm", (0, 1)),
    "DynamicQuantizeMatMul": ("MatMul", (0, 1)),
    "MatMulIntegerToFloat": ("MatMul", (0, 1)),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", (0,)),
    "QLinearAveragePool": ("AveragePool", (0,)),
    "QGemm": ("Gemm", (0, 3)),
    "FusedMatMul": ("MatMul", (0, 1)),
    "TransposeMatMul": ("MatMul", (0, 1)),
}
#: Where numbers are quantized, shapes are those of floats, in a type of their own.
QUANTIZED = frozenset(("QLinearAveragePool", "QLinearGlobalAveragePool", "QGemm"))
TO_FLOATS = frozenset(("DynamicQuantizeMatMul", "MatMulIntegerToFloat"))
FLOAT = 1

Make = Callable[..., Any]


def stand_in(node: Any) -> list[Any]:
    """Nodes of ONNX whose results have the shapes and types of a fused node's.

    node: an onnx.NodeProto; the nodes take "i0", "i1", … and give "o0", "o1", ….
    """
    from onnx import helper

    return [*_stand_in(node, helper.make_node)]


def _stand_in(node: Any, make: Make) -> Iterator[Any]:
    op = node.op_type
    if op in LIKE_FIRST:
        yield make("Identity", ["i0"], ["o0"])
        if op.startswith("Skip") and len(node.output) > 3:
            yield make("Identity", ["i0"], ["o3"])
    elif op == "EmbedLayerNormalization":
        yield make("Gather", ["i2", "i0"], ["o0"])
    elif op in SHAPED:
        yield from _shaped(node, make)


def _shaped(node: Any, make: Make) -> Iterator[Any]:
    """An operator of ONNX whose result has the shape, of floats where it needs them."""
    op = node.op_type
    like, places = SHAPED[op]
    names = [f"i{k}" for k in places]
    if op in QUANTIZED or op in TO_FLOATS:
        for k, name in enumerate(names):
            yield make("Cast", [name], [f"f{k}"], to=FLOAT)
        names = [f"f{k}" for k in range(len(names))]
    held = {a.name: a for a in node.attribute}
    for k, word in enumerate(("transA", "transB")):
        if like == "MatMul" and word in held and held[word].i:
            yield make("Einsum", [names[k]], [f"t{k}"], equation="...ij->...ji")
            names[k] = f"t{k}"
    is_float = op not in QUANTIZED or (op == "QGemm" and len(node.input) < 8)
    made = make(like, names, ["o0" if is_float else "y"])
    known = TAKEN.get(like, _NONE)
    made.attribute.extend(a for a in node.attribute if a.name in known)
    yield made
    if not is_float:
        yield make("CastLike", ["y", "i0"], ["o0"])


#: Attributes that say shapes.
TAKEN = {
    "Conv": _CONV,
    "Gemm": frozenset(("transA", "transB")),
    "AveragePool": frozenset(
        (
            *("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape"),
            *("pads", "strides"),
        )
    ),
}
