"""Curves, biases and weights of few bits that an exporter took apart.

Exporters write swish as two nodes, hard swish as four, and the bias of a convolution as
an addition. Each becomes the operator that it means, so that the source says so, a
layer of `nn` can be found in it, and one kernel runs where many would. Norms and Gelu
are found by `patterns`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isclose
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.importers.onnx.graph import Graph, Node, fact_of_array
from burnbook.importers.onnx.simplify import keep_used, uses_of_graph

#: Inputs that are weights, wherever the file keeps its constants.
WEIGHTS = {
    "Conv": (1, 2),
    "ConvTranspose": (1, 2),
    "Gemm": (1, 2),
    "MatMul": (1,),
    "BatchNormalization": (1, 2, 3, 4),
    "InstanceNormalization": (1, 2),
    "LayerNormalization": (1, 2),
    "GroupNormalization": (1, 2),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), (1, 2, 3)),
}


def find_curves(graph: Graph) -> None:
    """Put operators in place of what they were taken apart to, inside as well."""
    graphs = {id(owner): owner for owner, _ in graph.walk()}
    for owner in graphs.values():
        _Finder(owner, graph).run()
    keep_used(graph)
    for owner in graphs.values():
        learn_constants(owner)


def learn_constants(graph: Graph) -> None:
    """Weights that stand in Constant nodes can be learned as those of the file's list.

    Some exporters know no other way to write them.
    """
    for node in graph.nodes:
        for place in () if node.domain else WEIGHTS.get(node.op, ()):
            name = node.inputs[place] if place < len(node.inputs) else ""
            array = graph.constants.get(name)
            if array is not None and array.dtype.kind == "f" and array.ndim:
                graph.trainable.add(name)


@dataclass
class _Product:
    """A number times values, as a tree of products gives it."""

    number: float
    parts: list[str]


class _Finder:
    def __init__(self, graph: Graph, whole: Graph):
        self.graph, self.uses = graph, uses_of_graph(graph)
        self.makers = {n.outputs[0]: n for n in graph.nodes if n.outputs}
        self.rules = (self.dequantized, self.curve, self.bias, self.flat_bias)

    def run(self) -> None:
        for k in range(len(self.graph.nodes) - 1, -1, -1):
            node = self.graph.nodes[k]
            if node.domain or len(node.outputs) != 1:
                continue
            made = next((m for rule in self.rules if (m := rule(node))), None)
            if made is not None:
                self.graph.nodes[k] = self.makers[node.outputs[0]] = made
                self.uses.update(n for n in made.inputs if n)
                self.release(node)

    def release(self, node: Node) -> None:
        """A node is gone; so is what it alone took."""
        gone = [node]
        while gone:
            for name in gone.pop().inputs:
                self.uses[name] -= 1
                maker = self.makers.get(name)
                if (
                    maker is not None
                    and not self.uses[name]
                    and len(maker.outputs) == 1
                ):
                    gone.append(maker)

    # What stands around a value

    def maker(self, name: str, *ops: str) -> Node | None:
        """The node that makes a value for one taker alone, if it is one of these."""
        node = self.makers.get(name)
        fits = node is not None and node.op in ops and not node.domain
        return node if fits and self.uses[name] == 1 else None

    def number(self, name: str) -> float | None:
        """The one element of a constant of floats."""
        array = self.graph.constants.get(name)
        if array is None or array.size != 1 or array.dtype.kind != "f":
            return None
        return float(array.reshape(-1)[0])

    def product(self, node: Node) -> _Product:
        """What a tree of Mul and Div multiplies."""
        found = _Product(1.0, [])
        for place, name in enumerate(node.inputs[:2]):
            number = self.number(name)
            inner = self.maker(name, "Mul", "Div")
            if number is not None and not (node.op == "Div" and not place):
                found.number *= 1 / number if node.op == "Div" and number else number
            elif node.op == "Div" and place:
                return _Product(1.0, [node.outputs[0]])
            elif inner is not None:
                below = self.product(inner)
                found.number *= below.number
                found.parts += below.parts
            else:
                found.parts.append(name)
        return found

    def product_of(self, name: str) -> _Product:
        node = self.maker(name, "Mul", "Div")
        return _Product(1.0, [name]) if node is None else self.product(node)

    def sum_with(self, name: str) -> tuple[str, float] | None:
        """A value and the number that is added to it."""
        node = self.maker(name, "Add")
        for place in (0, 1) if node is not None else ():
            number = self.number(node.inputs[place])  # type: ignore[union-attr]
            if number is not None:
                return node.inputs[1 - place], number  # type: ignore[union-attr]
        return None

    # Weights of few bits

    def dequantized(self, node: Node) -> Node | None:
        """A weight of whole numbers, cast to floats, times a number or one a column."""
        for place in (0, 1) if node.op == "Mul" else ():
            cast = self.makers.get(node.inputs[place])
            name = node.inputs[1 - place]
            scale = self.graph.constants.get(name)
            if cast is None or cast.op != "Cast" or scale is None:
                continue
            held = self.graph.constants.get(cast.inputs[0])
            if held is None or held.dtype not in (np.int8, np.uint8) or held.ndim != 2:
                continue
            columns = (
                scale.size == scale.shape[-1] == held.shape[1] if scale.ndim else 0
            )
            if scale.dtype != np.float32 or scale.ndim > 2:
                continue
            if scale.size > 1:
                if not columns:
                    continue
                name = self.flat(name)
            elif scale.ndim:
                name = self.copied(name, scale.reshape(()))
            inputs, words = [cast.inputs[0], name], {"axis": 1}
            return _made("DequantizeLinear", 23, node, inputs, words)
        return None

    # Curves

    def curve(self, node: Node) -> Node | None:
        """Swish, HardSwish: x times a number times a curve of x."""
        if node.op not in ("Mul", "Div"):
            return None
        found = self.product(node)
        if len(found.parts) == 1 and found.number != 1:
            return self.hard_sigmoid(found, node)
        if len(found.parts) != 2:
            return None
        for x, other in (found.parts, found.parts[::-1]):
            if self.is_single(x):
                continue
            op = self.swish(x, other, found.number)
            op = op or self.hard_swish(x, other, found.number)
            if op:
                words: dict[str, Any] = {}
                return _made(op, 24, node, [x], words)
        return None

    def is_single(self, name: str) -> bool:
        return name in self.graph.constants

    def swish(self, x: str, other: str, number: float) -> str:
        inner = self.maker(other, "Sigmoid")
        fits = inner is not None and inner.inputs[0] == x and number == 1
        return "Swish" if fits else ""

    def hard_swish(self, x: str, other: str, number: float) -> str:
        inner = self.maker(other, "HardSigmoid")
        if inner is not None and inner.inputs[0] == x and number == 1:
            alpha = inner.attributes.get("alpha", 0.2)
            is_sixth = isclose(alpha, 1 / 6, rel_tol=1e-6)
            fits = is_sixth and inner.attributes.get("beta", 0.5) == 0.5
            return "HardSwish" if fits else ""
        fits = self.held_six(other) == x and isclose(number, 1 / 6, rel_tol=1e-6)
        return "HardSwish" if fits else ""

    def held_six(self, name: str) -> str:
        """The x of clip(x + 3, 0, 6)."""
        clip = self.maker(name, "Clip")
        if clip is None or len(clip.inputs) < 3:
            return ""
        added = self.sum_with(clip.inputs[0])
        if (self.number(clip.inputs[1]), self.number(clip.inputs[2])) != (0.0, 6.0):
            return ""
        return added[0] if added is not None and added[1] == 3 else ""

    def hard_sigmoid(self, found: _Product, node: Node) -> Node | None:
        x = self.held_six(found.parts[0])
        if not x or not isclose(found.number, 1 / 6, rel_tol=1e-6):
            return None
        words = {"alpha": 1 / 6, "beta": 0.5}
        return _made("HardSigmoid", 22, node, [x], words)

    # Constants

    def line(self, name: str) -> Any:
        """A constant that has one dim, or is as long as its last one."""
        array = self.graph.constants.get(name)
        if array is None or array.dtype != np.float32 or not array.ndim:
            return None
        return array if array.size == array.shape[-1] and array.size > 1 else None

    def flat(self, name: str) -> str:
        """The name of a constant as a line."""
        array = self.graph.constants[name]
        return name if array.ndim == 1 else self.copied(name, array.reshape(-1))

    def copied(self, name: str, array: NDArray[Any]) -> str:
        made, k = f"{name}_line", 1
        while made in self.graph.constants or made in self.makers:
            made, k = f"{name}_line{k}", k + 1
        self.graph.constants[made] = array
        self.graph.facts[made] = fact_of_array(array)
        self.graph.trainable.add(made)
        return made

    # Biases

    def bias(self, node: Node) -> Node | None:
        """A convolution and a number for each channel of its result."""
        if node.op != "Add":
            return None
        for place in (0, 1):
            conv = self.maker(node.inputs[place], "Conv", "ConvTranspose")
            name = node.inputs[1 - place]
            array = self.graph.constants.get(name)
            if conv is None or array is None or any(conv.inputs[2:]):
                continue
            taps = self.graph.constants.get(conv.inputs[1])
            if taps is None or taps.dtype != array.dtype or taps.ndim < 3:
                continue
            count = taps.shape[0]
            if conv.op == "ConvTranspose":
                count = taps.shape[1] * conv.attributes.get("group", 1)
            shape = (count, *[1] * (taps.ndim - 2))
            if array.shape not in (shape, (1, *shape)):
                continue
            line = self.copied(name, array.reshape(-1))
            inputs = [*conv.inputs[:2], line]
            return replace(conv, inputs=inputs, outputs=node.outputs)
        return None

    def flat_bias(self, node: Node) -> Node | None:
        """A bias of a product with dims of size 1 before it, as a line."""
        for place in (0, 1) if node.op == "Add" else ():
            product = self.maker(node.inputs[place], "MatMul")
            name = node.inputs[1 - place]
            array = self.line(name)
            if product is None or array is None or array.ndim == 1:
                continue
            fact = self.graph.facts.get(product.inputs[0])
            weight = self.graph.constants.get(product.inputs[1])
            known = fact is not None and fact.shape is not None
            if weight is None or weight.ndim != 2 or not known:
                continue
            if array.ndim > len(fact.shape) or weight.shape[1] != array.size:  # type: ignore[union-attr,arg-type]
                continue
            inputs = list(node.inputs)
            inputs[1 - place] = self.copied(name, array.reshape(-1))
            return replace(node, inputs=inputs)
        return None


def _made(
    op: str, version: int, node: Node, inputs: list[str], words: dict[str, Any]
) -> Node:
    """Another operator in place of a node, in the same part of the model."""
    return replace(node, op=op, version=version, inputs=inputs, attributes=words)
