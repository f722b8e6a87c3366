"""How the layers of Burn are called: with tensors, options of them, and inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnbook.exporters.rust.calls import TREE, Call
from burnbook.exporters.rust.functions import Function, Made
from burnbook.exporters.rust.text import Untranslatable, number
from burnbook.program import Value

Use = Callable[[str, str], None]

#: Arguments that Burn takes as an Option.
OPTIONS = {
    "CrossAttention": ("mask",),
    "DeformConv2d": ("mask",),
    "BiGru": ("state",),
    "BiLstm": ("state",),
    "BiRnn": ("state",),
    "Gru": ("state",),
    "Lstm": ("state",),
    "Rnn": ("state",),
}
MASKS = {"pad": "mask_pad", "attn": "mask_attn"}
DECODER_MASKS = {
    "target_pad": "target_mask_pad",
    "target_attn": "target_mask_attn",
    "memory_pad": "memory_mask_pad",
    "memory_attn": "memory_mask_attn",
}
#: Losses that take a Reduction, and those that take it as an Option.
REDUCED = ("MseLoss", "HuberLoss")
WITHOUT_METHOD = ("GateController", "RotaryEncoding")


def layer_call(call: Call, text: str, out: Function, use: Use) -> Made:
    """The call of a method of a layer of Burn.

    Raises:
        Untranslatable: Burn's layer has no such method, or takes no such argument.
    """
    kind = type(call.layer).__name__
    method = call.method
    if kind == "GateController":
        method = "gate_product"
    known = method in ("forward", "gate_product", "apply", "forward_no_reduction")
    if not known:
        raise Untranslatable(f"{kind}.{method}, which is not written in Rust")
    args = _arguments(call, kind, out, use)
    made = f"{text}.{method}({', '.join(args)})"
    return Made(made, _places(call, kind), pattern=kind in PAIRS)


def layer_uses(call: Call) -> list[Value]:
    """The tensors that a call reads, as often as it names them."""
    found: list[Value] = []
    for value in call.given.values():
        if type(value).__name__ == "MhaInput" and (
            value.query is value.key and value.key is value.value
        ):
            masks = (value.pad, value.attn)
            found += [value.query, *(mask for mask in masks if mask is not None)]
        else:
            found += TREE.collect([value], Value, [])
    return found


PAIRS = ("BiGru", "BiLstm", "BiRnn", "Lstm", "Rnn")


def _arguments(call: Call, kind: str, out: Function, use: Use) -> list[str]:
    given = call.given
    if kind == "Embedding" and len(given["input"].shape) != 2:
        raise Untranslatable("Burn's Embedding looks up indices [batch, sequence]")
    if kind == "RotaryEncoding" and len(given["x"].shape) != 4 and not out.dialect.new:
        raise Untranslatable("Burn 0.15 rotates tensors of four dims")
    args: list[str] = []
    for name, value in given.items():
        if name in OPTIONS.get(kind, ()):
            args.append("None" if value is None else f"Some({_one(value, out, use)})")
        elif type(value).__name__ == "Reduction":
            if kind in REDUCED:
                use("nn::loss", "Reduction")
                args.append(f"Reduction::{value.variant}")
            elif value.variant != "Auto":
                raise Untranslatable(f"{kind} with {value!r}")
        elif value is None:
            continue
        else:
            args.append(_one(value, out, use))
    return args


def _one(value: Any, out: Function, use: Use) -> str:
    """One argument: a tensor, a number, a state, or an input with masks."""
    kind = type(value).__name__
    if isinstance(value, (Value, int, float, bool)):
        return out.expression(value) if isinstance(value, Value) else number(value)
    if kind in ("LstmState", "RnnState"):
        use("nn", kind)
        parts = TREE.collect(value, Value, [])
        return f"{kind}::new({', '.join(map(out.expression, parts))})"
    if kind == "MhaInput":
        use("nn::attention", kind)
        if value.query is value.key and value.key is value.value:
            made = f"MhaInput::self_attn({out.expression(value.query)})"
        else:
            parts = map(out.expression, (value.query, value.key, value.value))
            made = f"MhaInput::new({', '.join(parts)})"
        return made + _masks(value, MASKS, out)
    if kind == "TransformerEncoderInput":
        use("nn::transformer", kind)
        made = f"TransformerEncoderInput::new({out.expression(value.tensor)})"
        return made + _masks(value, MASKS, out)
    if kind == "TransformerDecoderInput":
        use("nn::transformer", kind)
        parts = map(out.expression, (value.target, value.memory))
        made = f"TransformerDecoderInput::new({', '.join(parts)})"
        return made + _masks(value, DECODER_MASKS, out)
    raise Untranslatable(f"an argument of the type {kind}")


def _masks(value: Any, names: dict[str, str], out: Function) -> str:
    rows = [(method, getattr(value, name)) for name, method in names.items()]
    return "".join(
        f".{method}({out.expression(mask)})"
        for method, mask in rows
        if mask is not None
    )


def _places(call: Call, kind: str) -> dict[Value, str]:
    """Where each tensor of the result stands."""
    made = call.made
    if isinstance(made, Value):
        return {made: ""}
    if kind in ("Lstm", "BiLstm"):
        output, state = made
        return {output: ".0", state.cell: ".1.cell", state.hidden: ".1.hidden"}
    if kind in ("Rnn", "BiRnn"):
        output, state = made
        return {output: ".0", state.hidden: ".1.hidden"}
    if kind == "BiGru":
        return {made[0]: ".0", made[1]: ".1"}
    if kind == "MultiHeadAttention":
        return {made.context: ".context", made.weights: ".weights"}
    raise Untranslatable(f"what {kind}.{call.method} gives")
