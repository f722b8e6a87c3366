"""Nodes that are a layer of `nn`: convolution, linear, norms, dropout.

A node is a layer where its weights are constants of the file that nothing else uses,
and where the layer does in every case what the node does; else it stays a function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from burnbook.importers.onnx.graph import Graph, Node


@dataclass
class Layer:
    """How a layer is declared and made, its values, and what it takes.

    replaced: nodes that it stands for, by their first output. word: a name, where the
    file has none. function: of the operators, which runs the layer where ONNX lays out
    values otherwise; it gives all of `outputs`.
    """

    kind: str
    config: str
    parts: dict[str, Any]
    inputs: list[str]
    output: str
    word: str
    source: str = ""  # the file's name of the first weight
    replaced: set[str] = field(default_factory=set)
    function: str = ""
    outputs: list[str] = field(default_factory=list)


class Layers:
    """Which nodes of a graph are layers."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.uses = Counter(
            name for _, node in graph.walk() for name in node.inputs if name
        )
        self.uses.update(graph.outputs)
        for inner, _ in graph.walk():
            if inner is not graph:
                self.uses.update(inner.outputs)
        self.makers = {n.outputs[0]: n for n in graph.nodes if n.outputs}
        self.readers: dict[str, Node] = {}
        for node in graph.nodes:
            for name in node.inputs:
                self.readers[name] = node

    def find(self, node: Node) -> Layer | None:
        """The layer that a node is, if it is one."""
        rule = RULES.get(node.op) if not node.domain else None
        many = node.op in ("LSTM", "GRU")
        if rule is None or (any(node.outputs[1:]) and not many):
            return None
        return rule(node, self)

    def weight(self, node: Node, place: int, rank: int) -> Any:
        """A float32 constant that this node alone uses, or None.

        Lines are an exception: exporters write equal biases once, which were two.
        """
        name = node.inputs[place] if place < len(node.inputs) else ""
        array = self.graph.constants.get(name)
        if array is None or name not in self.graph.trainable:
            return None
        if self.uses[name] > 1 and rank > 1:
            return None
        fits = array.dtype == np.float32 and array.ndim == rank and array.size
        return array if fits else None

    def has(self, node: Node, place: int) -> bool:
        """Whether an input is given."""
        return place < len(node.inputs) and bool(node.inputs[place])


def _sizes(values: Any) -> str:
    numbers = [int(n) for n in values]
    return str(numbers[0]) if len(numbers) == 1 else str(numbers)


def _said(word: str, values: Any, usual: int) -> str:
    return "" if set(values) == {usual} else f".with_{word}({_sizes(values)})"


def _conv(node: Node, layers: Layers) -> Layer | None:
    taps = next(
        (w for r in (3, 4, 5) if (w := layers.weight(node, 1, r)) is not None), None
    )
    about = node.attributes
    if taps is None or about.get("auto_pad", "NOTSET") != "NOTSET":
        return None
    bias = layers.weight(node, 2, 1)
    if layers.has(node, 2) and bias is None:
        return None
    dims = taps.ndim - 2
    groups = int(about.get("group", 1))
    pads = about.get("pads") or [0] * (2 * dims)
    if pads[:dims] != pads[dims:] or min(pads) < 0:
        return None
    strides = about.get("strides") or [1] * dims
    dilations = about.get("dilations") or [1] * dims
    kernel = taps.shape[2:]
    backwards = node.op == "ConvTranspose"
    if backwards:
        if about.get("output_shape"):
            return None
        channels = [taps.shape[0], taps.shape[1] * groups]
    else:
        channels = [taps.shape[1] * groups, taps.shape[0]]
    if dims == 1 and not backwards:
        begin = f"{channels[0]}, {channels[1]}, {kernel[0]}"
    else:
        begin = f"{channels}, {_sizes(kernel)}"
    config = f"nn.{node.op}{dims}dConfig({begin})"
    config += _said("stride", strides, 1) + _said("dilation", dilations, 1)
    config += "" if groups == 1 else f".with_groups({groups})"
    if backwards:
        config += _said("padding", pads[:dims], 0)
        config += _said("padding_out", about.get("output_padding") or [0] * dims, 0)
    elif any(pads):
        inner = ", ".join(str(p) for p in pads[:dims])
        config += f".with_padding(nn.PaddingConfig{dims}d.Explicit({inner}))"
    config += "" if bias is not None else ".with_bias(False)"
    parts = {"weight": taps} if bias is None else {"weight": taps, "bias": bias}
    return Layer(
        f"{node.op}{dims}d",
        config,
        parts,
        node.inputs[:1],
        node.outputs[0],
        f"{'conv_transpose' if backwards else 'conv'}{dims}d",
        node.inputs[1],
    )


def _linear(
    node: Node, weight: Any, bias: Any, output: str, replaced: set[str]
) -> Layer:
    d_in, d_out = weight.shape
    end = "" if bias is not None else ".with_bias(False)"
    parts = {"weight": weight} if bias is None else {"weight": weight, "bias": bias}
    config = f"nn.LinearConfig({d_in}, {d_out}){end}"
    return Layer(
        "Linear",
        config,
        parts,
        node.inputs[:1],
        output,
        "linear",
        node.inputs[1],
        replaced,
    )


def _gemm(node: Node, layers: Layers) -> Layer | None:
    about = node.attributes
    plain = about.get("alpha", 1.0) == 1 == about.get("beta", 1.0)
    weight, bias = layers.weight(node, 1, 2), layers.weight(node, 2, 1)
    if not plain or about.get("transA", 0) or weight is None:
        return None
    weight = weight.T if about.get("transB", 0) else weight
    if layers.has(node, 2) and (bias is None or bias.size != weight.shape[1]):
        return None
    return _linear(node, weight, bias, node.outputs[0], set())


def _mat_mul(node: Node, layers: Layers) -> Layer | None:
    weight = layers.weight(node, 1, 2)
    fact = layers.graph.facts.get(node.inputs[0])
    if weight is None or fact is None or not fact.shape or len(fact.shape) < 2:
        return None
    output = node.outputs[0]
    after = layers.readers.get(output)
    if after is not None and after.op == "Add" and layers.uses[output] == 1:
        place = 1 - after.inputs.index(output)
        bias = layers.weight(after, place, 1)
        if bias is not None and bias.size == weight.shape[1]:
            made = after.outputs[0]
            return _linear(node, weight, bias, made, {made})
    return _linear(node, weight, None, output, set())


def _batch_norm(node: Node, layers: Layers) -> Layer | None:
    parts = [layers.weight(node, place, 1) for place in (1, 2, 3, 4)]
    about = node.attributes
    if any(p is None for p in parts) or about.get("training_mode", 0):
        return None
    fact = layers.graph.facts.get(node.inputs[0])
    if (
        about.get("per_element")
        or fact is None
        or not fact.shape
        or len(fact.shape) < 2
    ):
        return None
    names = ("gamma", "beta", "running_mean", "running_var")
    config = f"nn.BatchNormConfig({parts[0].size})"
    epsilon, momentum = about.get("epsilon", 1e-5), 1 - about.get("momentum", 0.9)
    config += _number("epsilon", epsilon, 1e-5) + _number("momentum", momentum, 0.1)
    return Layer(
        "BatchNorm",
        config,
        dict(zip(names, parts, strict=True)),
        node.inputs[:1],
        node.outputs[0],
        "batch_norm",
        node.inputs[1],
    )


def _layer_norm(node: Node, layers: Layers) -> Layer | None:
    gamma, beta = layers.weight(node, 1, 1), layers.weight(node, 2, 1)
    fact = layers.graph.facts.get(node.inputs[0])
    axis = node.attributes.get("axis", -1)
    if gamma is None or beta is None or fact is None or not fact.shape:
        return None
    if axis not in (-1, len(fact.shape) - 1) or fact.shape[-1] != gamma.size:
        return None
    config = f"nn.LayerNormConfig({gamma.size})"
    config += _number("epsilon", node.attributes.get("epsilon", 1e-5), 1e-5)
    parts = {"gamma": gamma, "beta": beta}
    made = node.outputs[0]
    return Layer(
        "LayerNorm",
        config,
        parts,
        node.inputs[:1],
        made,
        "layer_norm",
        node.inputs[1],
    )


def _dropout(node: Node, layers: Layers) -> Layer | None:
    if layers.has(node, 2):  # training is said by the graph
        return None
    name = node.inputs[1] if layers.has(node, 1) else ""
    ratio = layers.graph.constants.get(name) if name else np.float32(0.5)
    if ratio is None:
        return None
    prob = round(float(ratio), 6)
    if not 0 <= prob < 1:
        return None
    config = f"nn.DropoutConfig({prob!r})"
    return Layer("Dropout", config, {}, node.inputs[:1], node.outputs[0], "dropout")


def _recurrent(node: Node, layers: Layers) -> Layer | None:
    """An LSTM or a GRU, one way or both, with the activations it mostly has."""
    about, is_lstm = node.attributes, node.op == "LSTM"
    gates = LSTM_GATES if is_lstm else GRU_GATES
    weights = [layers.weight(node, place, 3) for place in (1, 2)]
    bias = layers.weight(node, 3, 2)
    direction = about.get("direction", "forward")
    ways = 2 if direction == "bidirectional" else 1
    usual = ["Sigmoid", "Tanh", "Tanh"] if is_lstm else ["Sigmoid", "Tanh"]
    curves = [c.lower() for c in about.get("activations") or usual * ways]
    if (
        any(w is None or len(w) != ways for w in weights)
        or (bias is None and layers.has(node, 3))
        or layers.has(node, 4)  # lengths of sequences
        or layers.has(node, 7)  # peepholes
        or curves != [c.lower() for c in usual * ways]
        or about.get("clip") is not None
        or about.get("layout", 0)
        or about.get("input_forget", 0)
    ):
        return None
    size, d_input = weights[1].shape[2], weights[0].shape[2]
    parts = [_gates(gates, size, d, *weights, bias) for d in range(ways)]
    kind = f"{'Bi' if ways == 2 else ''}{'Lstm' if is_lstm else 'Gru'}"
    held = "False" if bias is None else "True"
    config = f"nn.{kind}Config({d_input}, {size}, {held}).with_batch_first(False)"
    config += ".with_reverse(True)" if direction == "reverse" else ""
    if not is_lstm and not about.get("linear_before_reset", 0):
        config += ".with_reset_after(False)"
    inputs = [node.inputs[0], *node.inputs[5:7]]
    return Layer(
        kind,
        config,
        {"forward": parts[0], "reverse": parts[1]} if ways == 2 else parts[0],
        inputs,
        node.outputs[0],
        node.op.lower(),
        node.inputs[1],
        function=f"run_{node.op.lower()}",
        outputs=[*node.outputs, "", ""][: 3 if is_lstm else 2],
    )


def _gates(
    gates: tuple[str, ...], size: int, d: int, weight: Any, across: Any, bias: Any
) -> dict[str, Any]:
    """The values of one direction, gate by gate."""
    found: dict[str, Any] = {}
    for k, gate in enumerate(gates):
        rows = slice(k * size, (k + 1) * size)
        found[gate] = {}
        for part, held, start in (
            ("input_transform", weight, 0),
            ("hidden_transform", across, len(gates) * size),
        ):
            found[gate][part] = {"weight": held[d, rows].T}
            if bias is not None:
                line = bias[d, start + k * size : start + (k + 1) * size]
                found[gate][part]["bias"] = line
    return found


LSTM_GATES = ("input_gate", "output_gate", "forget_gate", "cell_gate")
GRU_GATES = ("update_gate", "reset_gate", "new_gate")


def _number(word: str, value: float, usual: float) -> str:
    short = float(f"{value:.7g}")  # a float32 as it was meant
    return "" if short == usual else f".with_{word}({short!r})"


RULES: dict[str, Callable[[Node, Layers], Layer | None]] = {
    "Conv": _conv,
    "ConvTranspose": _conv,
    "Gemm": _gemm,
    "MatMul": _mat_mul,
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _layer_norm,
    "Dropout": _dropout,
    **dict.fromkeys(("LSTM", "GRU"), _recurrent),
}
