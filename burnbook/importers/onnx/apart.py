"""Fused operators of ONNX Runtime, as the operators of ONNX that they were made of.

Its optimizer writes a bias and Gelu as BiasGelu, a sum and a norm as
SkipLayerNormalization. Taken apart, the layers in them are found as in any other file,
and all that works with ONNX's operators works with them. For those that are taken
apart, and for the functions of `operators.microsoft`, `stand_in` says which operators
of ONNX give a result of the same shape and type: shape inference knows no others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from burnbook.importers.onnx.graph import Fact, Graph, Node, fact_of_array
from burnbook.importers.onnx.operators.registry import OPERATORS, RULES_OF_OTHERS

Rule = Callable[["Parts"], None]
RULES: dict[tuple[str, str], Rule] = RULES_OF_OTHERS


@dataclass
class Parts:
    """What a node is taken apart to: `add` puts a node of ONNX to it."""

    node: Node
    graph: Graph
    facts: dict[str, Fact]
    made: list[Node] = field(default_factory=list)

    def given(self, place: int) -> str:
        """The name of an input, "" where none is given."""
        inputs = self.node.inputs
        return inputs[place] if place < len(inputs) else ""

    def wanted(self, place: int) -> str:
        """The name of a result, "" where nothing takes it."""
        outputs = self.node.outputs
        return outputs[place] if place < len(outputs) else ""

    def attribute(self, name: str, usual: Any = None) -> Any:
        """An attribute of the node, or what it is without."""
        return self.node.attributes.get(name, usual)

    def fresh(self) -> str:
        """A name for a value between the parts."""
        return f"{next(filter(None, self.node.outputs))}/{len(self.made)}"

    def fact(self, name: str) -> Fact:
        """What is known of a value."""
        return self.facts.get(name, Fact())

    def add(
        self,
        op: str,
        *inputs: str,
        to: str = "",
        fact: Fact | None = None,
        **words: Any,
    ) -> str:
        """A node more, and the name of its first result. fact: what is known of it."""
        inputs = (*inputs,)
        while inputs and not inputs[-1]:
            inputs = inputs[:-1]
        made = to or self.fresh()
        version = max(OPERATORS["", op].versions)
        node = replace(
            self.node, op=op, domain="", version=version, inputs=[*inputs],
            outputs=[made], attributes=words,
        )  # fmt: skip
        self.made.append(node)
        if fact is not None and fact.kind:
            self.facts.setdefault(made, fact)
            self.graph.facts.setdefault(made, fact)
        return made

    def constant(self, value: Any, dtype: str = "float32") -> str:
        """A constant of this node alone."""
        name = f"{next(filter(None, self.node.outputs))}/c{len(self.graph.constants)}"
        array = np.asarray(value, dtype)
        self.graph.constants[name] = array
        self.graph.facts[name] = self.facts[name] = fact_of_array(array)
        return name

    def finish(self, *results: tuple[int, str]) -> None:
        """Say which value is which result of the node."""
        for place, name in results:
            wanted = self.wanted(place)
            if wanted and wanted != name:
                self.add("Identity", name, to=wanted, fact=self.fact(name))


def take_apart(graph: Graph, around: dict[str, Fact] | None = None) -> None:
    """Put ONNX's operators in place of fused ones, in inner graphs as well."""
    facts = {**(around or {}), **graph.facts}
    nodes: list[Node] = []
    for node in graph.nodes:
        for inner in node.attributes.values():
            if isinstance(inner, Graph):
                take_apart(inner, facts)
        rule = RULES.get((node.domain, node.op))
        parts = Parts(node, graph, facts)
        if rule is not None:
            rule(parts)
        nodes += parts.made or [node]
    graph.nodes = nodes


def apart(*names: str, domain: str = "com.microsoft") -> Callable[[Rule], Rule]:
    """A decorator: how operators are taken apart; they stay if nothing is added."""

    def decorate(rule: Rule) -> Rule:
        RULES.update({(domain, name): rule for name in names})
        return rule

    return decorate


@apart("QuantizeLinear", "DequantizeLinear")
def _as_in_onnx(parts: Parts) -> None:
    to, words = parts.wanted(0), parts.node.attributes
    parts.add(parts.node.op, *parts.node.inputs, to=to, **words)


@apart("Gelu", "BiasGelu", "FastGelu")
def _gelu(parts: Parts) -> None:
    x = parts.given(0)
    if parts.given(1):
        x = parts.add("Add", x, parts.given(1), fact=parts.fact(x))
    words = {"approximate": "tanh"} if parts.node.op == "FastGelu" else {}
    parts.add("Gelu", x, to=parts.wanted(0), fact=parts.fact(x), **words)


@apart("QuickGelu")
def _quick_gelu(parts: Parts) -> None:
    x, alpha = parts.given(0), parts.attribute("alpha", 1.702)
    parts.add("Swish", x, to=parts.wanted(0), fact=parts.fact(x), alpha=alpha)


@apart("BiasAdd")
def _bias_add(parts: Parts) -> None:
    x = parts.given(0)
    total = parts.add("Add", x, parts.given(1), fact=parts.fact(x))
    to = parts.wanted(0)
    parts.add("Add", total, parts.given(2), to=to, fact=parts.fact(x))


@apart("SimplifiedLayerNormalization")
@apart("SimplifiedLayerNormalization", domain="")
def _rms_norm(parts: Parts) -> None:
    _norm(parts, parts.given(0), parts.given(1), "", 1e-5, {1: "inverse"})


@apart("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
def _skip_norm(parts: Parts) -> None:
    x, skip = parts.given(0), parts.given(1)
    is_simple = parts.node.op == "SkipSimplifiedLayerNormalization"
    bias = parts.given(3 if is_simple else 4)
    fact = parts.fact(x)
    if bias:
        x = parts.add("Add", x, bias, fact=fact)
    total = parts.add("Add", x, skip, to=parts.wanted(3), fact=fact)
    beta = "" if is_simple else parts.given(3)
    names = {2: "inverse"} if is_simple else {1: "mean", 2: "inverse"}
    _norm(parts, total, parts.given(2), beta, 1e-12, names)


def _norm(
    parts: Parts, x: str, gamma: str, beta: str, usual: float, names: dict[int, str]
) -> None:
    """A norm of the last dims, and what else of it is taken."""
    epsilon = parts.attribute("epsilon", usual)
    axis = parts.attribute("axis", -1)
    words = {"epsilon": epsilon, "axis": axis}
    is_simple = "Simplified" in parts.node.op
    op = "RMSNormalization" if is_simple else "LayerNormalization"
    given = [x, gamma] if is_simple else [x, gamma, beta]
    if parts.wanted(0):
        parts.add(op, *given, to=parts.wanted(0), fact=parts.fact(x), **words)
    for place, word in names.items():
        if parts.wanted(place):
            _moment(parts, word, x, epsilon, axis, is_simple, parts.wanted(place))


def _moment(
    parts: Parts, word: str, x: str, epsilon: float, axis: int, simple: bool, to: str
) -> None:
    """The mean, or one over the deviation, along the last dims."""
    shape = parts.fact(x).shape
    first = axis if axis < 0 or shape is None else axis - len(shape)
    axes = parts.constant([*range(first, 0)], "int64")
    if word == "mean":
        parts.add("ReduceMean", x, axes, to=to)
        return
    if not simple:
        x = parts.add("Sub", x, parts.add("ReduceMean", x, axes), fact=parts.fact(x))
    square = parts.add("Mul", x, x, fact=parts.fact(x))
    total = parts.add("ReduceMean", square, axes)
    root = parts.add("Sqrt", parts.add("Add", total, parts.constant(epsilon)))
    parts.add("Reciprocal", root, to=to)


@apart("EmbedLayerNormalization")
def _embeddings(parts: Parts) -> None:
    ids, segments, words, places, kinds, gamma, beta, mask, at = (
        parts.given(k) for k in range(9)
    )
    known = parts.fact(ids).shape
    width = parts.fact(words).shape
    shape = (*known, width[-1]) if known and width else None
    fact = Fact("tensor", parts.fact(words).dtype, shape)
    total = parts.add("Gather", words, ids, fact=fact)
    if at:
        total = parts.add("Add", total, parts.add("Gather", places, at), fact=fact)
    else:
        one, zero = parts.constant(1, "int64"), parts.constant(0, "int64")
        size = parts.add("Shape", ids, start=1, end=2)
        length = parts.add("Squeeze", size, fact=Fact("tensor", "int64", ()))
        row = Fact("tensor", "int64", (None,))
        order = parts.add("Range", zero, length, one, fact=row)
        total = parts.add("Add", total, parts.add("Gather", places, order), fact=fact)
    if kinds:
        found = parts.add("Gather", kinds, segments, fact=fact)
        total = parts.add("Add", total, found, fact=fact)
    epsilon = parts.attribute("epsilon", 1e-12)
    about = {"epsilon": epsilon, "axis": -1}
    to = parts.wanted(0)
    parts.add("LayerNormalization", total, gamma, beta, to=to, fact=fact, **about)
    if parts.wanted(1):
        counted = mask or ids
        axes = parts.constant([1], "int64")
        if not mask:
            counted = parts.add("Mul", ids, parts.constant(0, "int32"))
        parts.add("ReduceSum", counted, axes, to=parts.wanted(1), keepdims=0)
    parts.finish((2, total))


@apart("FusedConv")
def _conv(parts: Parts) -> None:
    words = dict(parts.node.attributes)
    name, numbers = words.pop("activation", ""), words.pop("activation_params", [])
    fact, more = parts.fact(parts.wanted(0)), parts.given(3)
    end = parts.wanted(0)
    x = parts.add("Conv", *parts.node.inputs[:3], fact=fact, **words)
    if more:
        x = parts.add("Add", x, more, fact=fact)
    _activated(parts, x, name, numbers, end, fact)


@apart("FusedGemm")
def _gemm(parts: Parts) -> None:
    words = dict(parts.node.attributes)
    name = words.pop("activation", "")
    numbers = [words.pop(f"activation_{k}", None) for k in ("alpha", "beta", "gamma")]
    fact = parts.fact(parts.wanted(0))
    x = parts.add("Gemm", *parts.node.inputs, fact=fact, **words)
    _activated(parts, x, name, [n for n in numbers if n is not None], "", fact)


def _activated(
    parts: Parts, x: str, name: str, numbers: list[float], end: str, fact: Fact
) -> None:
    """An activation by ONNX's name and its numbers; "" is none."""
    end = end or parts.wanted(0)
    words: dict[str, Any] = {}
    more: list[str] = []
    if name == "Clip":
        more = [parts.constant(n) for n in numbers[:2]]
    elif name in ("HardSigmoid", "LeakyRelu", "Elu", "ThresholdedRelu"):
        words = dict(zip(("alpha", "beta"), numbers, strict=False))
    parts.add(name or "Identity", x, *more, to=end, fact=fact, **words)


@apart("NhwcConv")
def _channels_last(parts: Parts) -> None:
    shape = parts.fact(parts.given(1)).shape
    if shape is None:
        return
    rank = len(shape)
    first, last = [0, rank - 1, *range(1, rank - 1)], [0, *range(2, rank), 1]
    x = parts.add("Transpose", parts.given(0), perm=first)
    weight = parts.add("Transpose", parts.given(1), perm=first)
    made = parts.add("Conv", x, weight, parts.given(2), **parts.node.attributes)
    parts.add("Transpose", made, to=parts.wanted(0), perm=last)


@apart("FusedMatMul", "TransposeMatMul")
def _mat_mul(parts: Parts) -> None:
    if parts.attribute("transBatchA", 0) or parts.attribute("transBatchB", 0):
        return
    names: list[str] = []
    for place, word in enumerate(("transA", "transB")):
        name, shape = parts.given(place), parts.fact(parts.given(place)).shape
        if parts.attribute(word, 0):
            if shape is None:
                parts.made.clear()
                return
            if len(shape) > 1:
                order = [*range(len(shape))]
                order[-2:] = order[-1], order[-2]
                turned = replace(parts.fact(name), shape=tuple(shape[k] for k in order))
                name = parts.add("Transpose", name, fact=turned, perm=order)
        names.append(name)
    alpha, fact = parts.attribute("alpha", 1.0), parts.fact(parts.wanted(0))
    end = parts.wanted(0)
    if alpha == 1:
        parts.add("MatMul", *names, to=end, fact=fact)
        return
    made = parts.add("MatMul", *names, fact=fact)
    parts.add("Mul", made, parts.constant(alpha, fact.dtype or "float32"), to=end)
