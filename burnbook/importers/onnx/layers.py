"""Nodes that are a layer of `nn`: convolution, linear, norms, embedding, dropout.

A node is a layer where its weights are constants of the file that nothing else uses,
and where the layer does in every case what the node does; else it stays a function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

import numpy as np

from burnbook.importers.onnx.folding import LARGE, drop_unused, graphs_of, uses_of
from burnbook.importers.onnx.graph import Graph, Node
from burnbook.importers.onnx.operators.convolution import adds_too_much
from burnbook.importers.onnx.order import put_in_order


@dataclass
class Layer:
    """How a layer is declared and made, its values, and what it takes.

    source: the file's name of the first weight. word: a name, where the file has none.
    parts: values by the path of the parameter. weights: the file's names of all.
    labels: of the nodes that it stands for, as a report names them.
    replaced: nodes that it stands for, by their first output. outputs: of a recurrent
    layer all hidden states, the last one, and the last cell state.
    """

    kind: str
    config: str
    parts: dict[str, Any]
    inputs: list[str]
    output: str
    word: str
    source: str = ""
    replaced: set[str] = field(default_factory=set)
    outputs: list[str] = field(default_factory=list)
    weights: tuple[str, ...] = ()
    labels: list[str] = field(default_factory=list)

    @property
    def results(self) -> list[str]:
        """The values that it makes."""
        return self.outputs or [self.output]


class Layers:
    """Which nodes of a graph are layers. outer: constants around an inner graph."""

    def __init__(self, graph: Graph, outer: Layers | None = None):
        self.graph = graph
        self.constants: dict[str, Any] = {**(outer.constants if outer else {})}
        self.constants |= graph.constants
        self.trainable = (outer.trainable if outer else set()) | graph.trainable
        self.facts = {**(outer.facts if outer else {}), **graph.facts}
        self.uses: Counter[str] = outer.uses if outer else uses_of(graph)
        self.users: dict[str, list[Node]] = outer.users if outer else {}
        if outer is None:
            for _, node in graph.walk():
                for name in node.inputs:
                    self.users.setdefault(name, []).append(node)
        self.makers = {n.outputs[0]: n for n in graph.nodes if n.outputs}
        self.readers: dict[str, Node] = {}
        for node in graph.nodes:
            for name in node.inputs:
                self.readers[name] = node

    def find(self, node: Node) -> Layer | None:
        """The layer that a node is, if it is one."""
        rule = RULES.get(node.op) if not node.domain else None
        return rule(node, self) if rule is not None else None

    def weight(self, node: Node, place: int, rank: int) -> Any:
        """A float32 constant that calls of this layer alone use, or None.

        Lines are an exception: exporters write equal biases once, which were two.
        """
        name = node.inputs[place] if place < len(node.inputs) else ""
        array = self.constants.get(name)
        if array is None or name not in self.trainable:
            return None
        if rank > 1 and self.uses[name] > 1 and not self.is_called_again(node, name):
            return None
        fits = array.dtype == np.float32 and array.ndim == rank and array.size
        return array if fits else None

    def is_called_again(self, node: Node, name: str) -> bool:
        """Whether all that uses a weight are calls of one layer."""
        given = 1 if node.op == "Gather" else 0  # where the input stands, not a weight
        users = self.users.get(name, [])

        def fixed(one: Node) -> list[str]:
            return [n for k, n in enumerate(one.inputs) if k != given]

        same = all(u.op == node.op and fixed(u) == fixed(node) for u in users)
        small = self.constants[name].nbytes <= LARGE  # each part may have its own
        return small and same and len(users) == self.uses[name]

    def has(self, node: Node, place: int) -> bool:
        """Whether an input is given."""
        return place < len(node.inputs) and bool(node.inputs[place])

    def only_reader(self, name: str, op: str) -> Node | None:
        """The one node that takes a value, if it is of this operator."""
        node = self.readers.get(name)
        fits = node is not None and node.op == op and not node.domain
        return node if fits and self.uses[name] == 1 else None


def to_layers(graph: Graph, outer: Layers | None = None) -> None:
    """Put a call of a layer, of the domain "nn", in place of the nodes that it is."""
    layers = Layers(graph, outer)
    for node in graph.nodes:
        for inner in graphs_of(node):
            to_layers(inner, layers)
    found: dict[str, Layer] = {}  # by the output where it stands
    gone: set[str] = set()
    for node in graph.nodes:
        if node.outputs[0] in gone or (any(node.outputs[1:]) and node.op not in MANY):
            continue
        layer = layers.find(node)
        if layer is not None:
            ends = [layers.makers[n] for n in sorted(layer.replaced)]
            used = [name for one in (node, *ends) for name in one.inputs]
            layer.labels = [one.label for one in (node, *ends)]
            layer.weights = tuple(n for n in used if n in layers.trainable)
            gone |= {node.outputs[0], *layer.replaced}
            found[layer.output] = layer
    if not found:
        return
    nodes: list[Node] = []
    for node in graph.nodes:
        layer = next((found[n] for n in node.outputs if n in found), None)
        if layer is not None:
            about = {"layer": layer}
            made = replace(node, op=layer.kind, domain="nn", attributes=about)
            made.inputs, made.outputs = list(layer.inputs), list(layer.results)
            nodes.append(made)
        elif node.outputs[0] not in gone:
            nodes.append(node)
    graph.nodes = nodes
    put_in_order(graph)  # who takes another result of a layer may stand before it
    drop_unused(graph)


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
    more = about.get("output_padding") or [0] * dims
    if backwards:
        too_much = map(adds_too_much, more, strides, dilations)
        if about.get("output_shape") or any(too_much):  # the operator refuses the last
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
        config += _said("padding_out", more, 0)
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
    fact = layers.facts.get(node.inputs[0])
    if weight is None or fact is None or not fact.shape or len(fact.shape) < 2:
        return None
    output = node.outputs[0]
    after = layers.only_reader(output, "Add")
    if after is not None:
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
    fact = layers.facts.get(node.inputs[0])
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
    fact = layers.facts.get(node.inputs[0])
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


def _rms_norm(node: Node, layers: Layers) -> Layer | None:
    gamma, fact = layers.weight(node, 1, 1), layers.facts.get(node.inputs[0])
    if gamma is None or fact is None or not fact.shape:
        return None
    axis = node.attributes.get("axis", -1)
    if axis not in (-1, len(fact.shape) - 1) or fact.shape[-1] != gamma.size:
        return None
    config = f"nn.RmsNormConfig({gamma.size})"
    config += _number("epsilon", node.attributes.get("epsilon", 1e-5), 1e-5)
    made, given = node.outputs[0], node.inputs[:1]
    parts, source = {"gamma": gamma}, node.inputs[1]
    return Layer("RmsNorm", config, parts, given, made, "rms_norm", source)


def _embedding(node: Node, layers: Layers) -> Layer | None:
    """A table that is looked up along its rows, by ids of a batch of sequences."""
    table, fact = layers.weight(node, 0, 2), layers.facts.get(node.inputs[1])
    if (
        table is None
        or node.attributes.get("axis", 0)
        or node.inputs[1] in layers.constants
    ):
        return None
    if fact is None or fact.shape is None or len(fact.shape) != 2:
        return None
    config = f"nn.EmbeddingConfig({table.shape[0]}, {table.shape[1]})"
    made, given = node.outputs[0], node.inputs[1:]
    parts, source = {"weight": table}, node.inputs[0]
    return Layer("Embedding", config, parts, given, made, "embedding", source)


def _dropout(node: Node, layers: Layers) -> Layer | None:
    if layers.has(node, 2):  # training is said by the graph
        return None
    name = node.inputs[1] if layers.has(node, 1) else ""
    ratio = layers.constants.get(name) if name else np.float32(0.5)
    if ratio is None:
        return None
    prob = round(float(ratio), 6)
    if not 0 <= prob < 1:
        return None
    config = f"nn.DropoutConfig({prob!r})"
    return Layer("Dropout", config, {}, node.inputs[:1], node.outputs[0], "dropout")


def _number(word: str, value: float, usual: float) -> str:
    short = float(f"{value:.7g}")  # a float32 as it was meant
    text = repr(short) if isfinite(short) else f'float("{short}")'
    return "" if short == usual else f".with_{word}({text})"


def _recurrent(node: Node, layers: Layers) -> Layer | None:
    """An Lstm or a Gru, in one or both directions, that begins with given states."""
    about, kind = node.attributes, node.op.title()
    w, r = layers.weight(node, 1, 3), layers.weight(node, 2, 3)
    b = layers.weight(node, 3, 2)
    direction = about.get("direction", "forward")
    known = {"direction", "hidden_size", "layout", "linear_before_reset"}
    unusual = any(v and k not in known for k, v in about.items())
    if w is None or r is None or unusual or about.get("layout", 0):
        return None
    if (layers.has(node, 3) and b is None) or layers.has(node, 4):
        return None
    states = _first_states(node, layers)
    if states is None:
        return None
    rows, ways = _all_states(node, layers), w.shape[0]
    size, d_input = r.shape[2], w.shape[2]
    if rows is None or ways != 1 + (direction == "bidirectional"):
        return None
    x, made, gone, first = rows
    made = made or f"{next((n for n in node.outputs if n), '')}_all"
    name = f"Bi{kind}" if ways == 2 else kind
    config = f"nn.{name}Config({d_input}, {size}, {b is not None})"
    config += "" if first else ".with_batch_first(False)"
    config += ".with_reverse(True)" if direction == "reverse" else ""
    if kind == "Gru" and not about.get("linear_before_reset", 0):
        config += ".with_reset_after(False)"
    parts: dict[str, Any] = {}
    for d in range(ways):
        before = "" if ways == 1 else ("forward.", "reverse.")[d]
        for k, gate in enumerate(GATES[kind]):
            cut = slice(k * size, (k + 1) * size)
            for j, (word, array) in enumerate((("input", w), ("hidden", r))):
                path = f"{before}{gate}.{word}_transform"
                parts[f"{path}.weight"] = array[d, cut].T
                if b is not None:
                    half = b[d, j * len(GATES[kind]) * size :]
                    parts[f"{path}.bias"] = half[cut]
    lasts = [*node.outputs[1:], "", ""][: 2 if kind == "Lstm" else 1]
    word = "lstm" if kind == "Lstm" else "gru"
    inputs = [x, *states]
    found = Layer(name, config, parts, inputs, made, word, node.inputs[1], gone)
    found.outputs = [made, *lasts]
    return found


def _first_states(node: Node, layers: Layers) -> list[str] | None:
    """What a recurrent node begins with, [] for zeros; None if no layer takes it."""
    states = [n for n in node.inputs[5:7] if n]
    if all(_is_zeros(n, layers) for n in states):
        states = []
    is_half = len(states) == 1 and node.op == "LSTM"
    return None if is_half or any(node.inputs[7:]) else states


def _all_states(node: Node, layers: Layers) -> tuple[str, str, set[str], bool] | None:
    """What a recurrent node takes and the value of all states, as a layer has them.

    Also the nodes between, and whether the batch stands first: ONNX's states are
    [s, directions, b, d], those of a layer [s, b, directions · d].
    """
    x, rows = node.inputs[0], node.outputs[0]
    gone: set[str] = set()
    if rows and layers.uses[rows]:
        squeeze = layers.only_reader(rows, "Squeeze")
        turn = layers.only_reader(rows, "Transpose")
        if squeeze is not None and _ints(squeeze, 1, layers) == [1]:
            rows = squeeze.outputs[0]
        elif turn is not None and turn.attributes.get("perm") == [0, 2, 1, 3]:
            flat = layers.only_reader(turn.outputs[0], "Reshape")
            sizes = _ints(flat, 1, layers) if flat is not None else None
            width = layers.constants[node.inputs[2]].shape[2]
            count = layers.constants[node.inputs[1]].shape[0]
            if sizes is None or len(sizes) != 3 or sizes[2] not in (-1, count * width):
                return None
            if flat is None or (flat.attributes.get("allowzero", 0) and 0 in sizes):
                return None
            rows = flat.outputs[0]
            gone.add(turn.outputs[0])
        else:
            return None
        gone.add(rows)
        before = layers.makers.get(x)
        after = layers.only_reader(rows, "Transpose")
        swaps = [1, 0, 2]
        if before is not None and before.op == "Transpose" and after is not None:
            both = before.attributes.get("perm"), after.attributes.get("perm")
            if both == (swaps, swaps):
                x, rows = before.inputs[0], after.outputs[0]
                return x, rows, gone | {rows}, True
    return x, rows, gone, False


def _ints(node: Node, place: int, layers: Layers) -> list[int] | None:
    name = node.inputs[place] if place < len(node.inputs) else ""
    array = layers.constants.get(name)
    return None if array is None else [int(n) for n in array.reshape(-1)]


def _is_zeros(name: str, layers: Layers) -> bool:
    """Whether a value is zeros, in whatever shape."""
    array, maker = layers.constants.get(name), layers.makers.get(name)
    if array is not None:
        return not array.any()
    if maker is None or maker.domain:
        return False
    if maker.op == "ConstantOfShape":
        value = maker.attributes.get("value")
        return value is None or not np.asarray(value).any()
    if maker.op in ("Expand", "Unsqueeze", "Squeeze", "Reshape", "Slice", "Transpose"):
        return _is_zeros(maker.inputs[0], layers)
    return False


GATES = {  # in ONNX's order
    "Lstm": ("input_gate", "output_gate", "forget_gate", "cell_gate"),
    "Gru": ("update_gate", "reset_gate", "new_gate"),
}
RULES: dict[str, Callable[[Node, Layers], Layer | None]] = {
    "Conv": _conv,
    "ConvTranspose": _conv,
    "Gemm": _gemm,
    "MatMul": _mat_mul,
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
    "Gather": _embedding,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "Dropout": _dropout,
}
MANY = frozenset({"LSTM", "GRU"})  # operators of several results that are layers
