"""How names, numbers and texts of a file are written in Python.

Nothing of a file is taken over as it is: names become identifiers, numbers and texts
are written by repr, so that no file decides what runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.core.errors import RecordError
from burnbook.importers.onnx.operators.registry import OPERATORS

WIDTH = 88
#: Names that say no more than a number would.
EMPTY = frozenset(
    ["constant", "getitem", "out", "output", "onnx", "tmp", "v", "val", "value", "x"]
)


def snake(op: str) -> str:
    """An operator's name as a function's: MatMul -> mat_mul."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", op)
    return re.sub(r"\W", "_", text, flags=re.ASCII).lower()


def identifier(name: str) -> str:
    """A name of the file as an identifier, or "" where little is left of it.

    PyTorch writes /layer1/layer1.0/conv1/Conv_output_0, which is layer1_0_conv1_conv.
    """
    parts = [p for p in name.split("/") if p]
    kept = [
        p
        for p, after in zip(parts, [*parts[1:], ""], strict=False)
        if not after.startswith(f"{p}.")
    ]
    text = re.sub(r"_output_0$", "", "_".join(kept)).replace("onnx::", "")
    word = re.sub(r"[^0-9a-z_]+", "_", snake(text)).strip("_")
    word = re.sub(r"_+", "_", word)[:60].strip("_")
    if not re.search(r"[a-z]", word):
        return ""
    return f"v{word}" if word[0].isdigit() else word


def short_name(name: str) -> str:
    """What a value is called within its part, without counts; "" where that is nothing.

    Example:
        >>> short_name("/encoder/layer.0/Add_1_output_0"), short_name("val_12")
        ('add', '')
    """
    last = name.partition("@")[0].rstrip("/").rpartition("/")[2]
    word = identifier(re.sub(r"_output_\d+$", "", last))
    word = re.sub(r"(_\d+)+$", "", word)
    return "" if word in EMPTY or last[:1].isdigit() else word


def own_word(value: str, word: str, op: str) -> str:
    """The word for a value of the file; PyTorch's for its user becomes its operator's.

    Why: "onnx::MatMul_18" is what a MatMul takes, whatever made it.

    Example:
        >>> own_word("onnx::MatMul_18", "mat_mul_18", "Add")
        'add_18'
        >>> own_word("range", "range", "Add")
        'range'
    """
    first = re.sub(r"(_\d+)+$", "", word)
    if "::" not in value or first == snake(op) or first not in operator_words():
        return word
    return snake(op) + word[len(first) :]


@cache
def operator_words() -> frozenset[str]:
    """The operators of ONNX as the first words of names."""
    return frozenset(snake(op) for domain, op in OPERATORS if not domain)


def class_name(word: str) -> str:
    """A name as that of a class: self_attn -> SelfAttn; of a list, of one in it.

    Example:
        >>> class_name("layers"), class_name("self_attn"), class_name("ResNetBlock")
        ('Layer', 'SelfAttn', 'ResNetBlock')
    """
    parts = [p for p in re.split(r"[^0-9A-Za-z]+", word) if p]
    made = "".join(p[0].upper() + p[1:] for p in parts)[:60]
    made = made if re.match(r"[A-Za-z]", made) else f"Part{made}"
    return singular(made)


def singular(word: str) -> str:
    """One of many: layers -> layer, classes -> class; others stay."""
    if re.search(r"(ss|us|is)$", word) or len(word) < 4:
        return word
    return re.sub(r"(?<=ss)es$|(?<=[xz])es$|s$", "", word)


def comment(text: str) -> str:
    """A text of the file that may stand in a comment or a docstring."""
    return re.sub(r"[^ !#-\[\]-~]", "?", text)[:80]


def filled(parts: list[str], indent: str) -> Iterator[str]:
    """Arguments in lines, as many as fit."""
    line = indent
    for part in parts:
        if len(line) + len(part) + 2 > WIDTH and line.strip():
            yield line.rstrip()
            line = indent
        line += f"{part}, "
    yield line.rstrip()


def literal(value: object) -> str:
    """A constant or attribute as Python writes it."""
    if isinstance(value, np.ndarray):
        return _array_literal(value)
    if isinstance(value, (bool, int, str)) or value is None:
        return repr(value)
    if isinstance(value, float):
        return _number(value, np.float32)
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    raise RecordError("onnx", f"an attribute of type {type(value).__name__}")


def _number(value: float, of: Any = float) -> str:
    """The shortest text of a number: of a float32, as it was meant."""
    if not np.isfinite(value):
        return f'float("{value}")'
    short = float(str(of(value)))
    return repr(short if of is not float and of(short) == of(value) else value)


def _array_literal(array: NDArray[Any]) -> str:
    name = array.dtype.name
    if array.dtype == object:
        return f"np.array({array.tolist()!r}, object)"
    plain = array.astype(np.float32) if array.dtype.kind == "V" else array
    held = plain.tolist()
    if name == "float32":
        held = [float(str(n)) for n in array.reshape(-1)]
        held = _nested(held, array.shape)
    text = _written(held)
    if name in ("float32", "int64", "bool") and array.ndim < 2 and array.size:
        return text
    shape = f", {list(array.shape)}" if not array.size else ""
    return f"ops.const({text}, {name!r}{shape})"


def _nested(flat: list[float], shape: Iterable[int]) -> Any:
    return np.array(flat, object).reshape(tuple(shape)).tolist()


def _written(held: Any) -> str:
    if isinstance(held, list):
        return f"[{', '.join(map(_written, held))}]"
    return _number(held) if isinstance(held, float) else repr(held)
