"""What both writers put into their files: weights, names, sizes, helpers."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from burnbook.core.errors import ArgumentError
from burnbook.core.files import atomic_write
from burnbook.exporters.lowering.calls import Plan, Storage
from burnbook.program import Size, size_text
from burnbook.program.sizes import Dim

Precision = Literal["f32", "f16", "int8"]
Weights = Literal["embedded", "beside"]
MOST_EMBEDDED = 1 << 28  # bytes: a browser's strings end at twice as many letters
MODULES = (".js", ".mjs")  # how files of JavaScript are named
FEW = 256  # numbers: fewer stay floats, as biases do
HALF_MOST = 65504.0
LINE = 96
HASH = 12  # digits of a hash in the name of a file of weights


@dataclass(frozen=True)
class Packed:
    """Weights as bytes, and where each lies: (name, form, start, count, scale)."""

    data: bytes
    table: list[tuple[str, str, int, int, float]]


def packed(constants: Iterable[Storage], precision: str) -> Packed:
    """All constants, one behind the other; those that have codes, as codes."""
    data = bytearray()
    table: list[tuple[str, str, int, int, float]] = []
    for one in constants:
        array, form, scale = _form(one, precision)
        data += bytes(-len(data) % 4)
        table.append((one.name, form, len(data), array.size, scale))
        data += array.astype(array.dtype.newbyteorder("<")).tobytes()
    return Packed(bytes(data), table)


def unpacked(made: Packed) -> dict[str, np.ndarray]:
    """The constants by name as a page reads them: f32, i32, or bytes of 0 and 1."""
    types = {"f32": "<f4", "i32": "<i4", "bool": "u1", "f16": "<f2", "int8": "i1"}
    found: dict[str, np.ndarray] = {}
    for name, form, start, count, scale in made.table:
        array = np.frombuffer(made.data, types[form], count, start)
        if form == "int8":
            array = array * np.float64(scale)
        found[name] = array.astype(np.float32) if array.dtype.kind == "f" else array
    return found


def _form(one: Storage, precision: str) -> tuple[np.ndarray, str, float]:
    array = one.array
    if array is None:
        raise AssertionError(f"{one.name} is no constant")
    if one.codes is not None:
        codes, scale = one.codes
        return codes, "int8", scale
    if one.kind != "f32" or array.size < FEW or precision == "f32":
        return array, one.kind, 1.0
    most = float(np.abs(array).max(initial=0))
    if precision == "f16" and most <= HALF_MOST:
        return array.astype(np.float16), "f16", 1.0
    if precision == "int8" and 0 < most < np.inf:
        scale = most / 127
        return np.rint(array / scale).astype(np.int8), "int8", scale
    return array, "f32", 1.0


def asked(where: str, weights: str, precision: str) -> None:
    """Refuse other choices than there are."""
    if precision not in ("f32", "f16", "int8"):
        what = f"precision {precision!r} is not one of f32, f16, int8"
        raise ArgumentError(where, what, cure='precision="f32"')
    if weights not in ("embedded", "beside"):
        what = f"weights {weights!r} is neither embedded nor beside"
        raise ArgumentError(where, what, cure='weights="embedded"')


def fits(where: str, made: Packed, weights: str) -> None:
    """Refuse more weights in a file than a browser would read."""
    size = len(made.data)
    if weights == "embedded" and size > MOST_EMBEDDED:
        what = f"{size:,} bytes of weights are too many for the text of a file"
        raise ArgumentError(where, what, cure='weights="beside"')


def weight_lines(made: Packed, weights: str, target: Path) -> list[str]:
    """The weights as lines of JavaScript; those beside the file are named."""
    rows = [
        f"  [{quoted(name)}, {quoted(form)}, {start}, {count}, {number(scale)}],"
        for name, form, start, count, scale in made.table
    ]
    table = ["const TABLE = [", *rows, "];"]
    if weights == "beside":
        return [*table, f"const WEIGHTS = {quoted(beside(target, made).name)};"]
    text = base64.b64encode(made.data).decode()
    parts = [text[i : i + LINE] for i in range(0, len(text), LINE)] or [""]
    if len(parts) == 1:
        return [*table, f'const WEIGHTS = "{parts[0]}";']
    lines = " +\n".join(f'  "{part}"' for part in parts)
    return [*table, f"const WEIGHTS =\n{lines};"]


def beside(target: Path, made: Packed) -> Path:
    """The file with the weights beside a file of JavaScript: "net.js.<hash>.weights".

    Why: no record ends in .weights, so none is overwritten; and by the hash of what it
    holds, a module finds the weights that it was written with, or none.
    """
    code = hashlib.sha256(made.data).hexdigest()[:HASH]
    return target.with_name(f"{target.name}.{code}.weights")


def written(target: Path, text: str, made: Packed, weights: str) -> Path | None:
    """Write the file, and the weights beside it where that was asked for.

    Gives where the weights beside it are. Those of the file that had this name before
    are removed last, so that it stays whole with them if something cannot be written.
    """
    found = beside(target, made) if weights == "beside" else None
    is_new = found is not None and not found.exists()
    if found is not None:
        with atomic_write(found) as file:
            file.write(made.data)
    try:
        with atomic_write(target) as file:
            file.write(text.encode())
    except BaseException:
        if found is not None and is_new:
            with contextlib.suppress(OSError):
                found.unlink()
        raise
    ours = re.compile(rf"{re.escape(target.name)}\.[0-9a-f]{{{HASH}}}\.weights")
    for path in target.parent.iterdir():
        if ours.fullmatch(path.name) and path != found:
            with contextlib.suppress(OSError):
                path.unlink()
    return found


def quoted(text: str) -> str:
    """A text of JavaScript, whatever is in it.

    Example:
        >>> quoted('a"b'), quoted("</script>"), quoted("größe")
        ('"a\\\\"b"', '"\\\\u003c/script>"', '"gr\\\\u00f6\\\\u00dfe"')
    """
    return json.dumps(text).replace("<", "\\u003c")


def key(name: str) -> str:
    """A name as the key of an object; what would set its prototype is computed."""
    return '["__proto__"]' if name == "__proto__" else quoted(name)


def shown(text: str) -> str:
    """A text for a comment: one line, of letters that end none.

    Example:
        >>> shown("net */ alert(1)")
        'net __ alert(1)'
    """
    return re.sub(r"[^\w .,:\[\]()<>+-]", "_", text, flags=re.ASCII)[:200]


def number(value: Any) -> str:
    """A number of JavaScript, which reads back as the same.

    Example:
        >>> number(0.1), number(float("-inf")), number(3), number(True)
        ('0.1', '-Infinity', '3', 'true')
    """
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    found = float(value)
    if found != found:
        return "NaN"
    if found in (float("inf"), float("-inf")):
        return "Infinity" if found > 0 else "-Infinity"
    return repr(found)


def size(value: Size) -> str:
    """A size as JavaScript: "n * 49"."""
    if not isinstance(value, Dim):
        return str(int(value))
    text = "n" if value.scale == 1 else f"n * {value.scale}"
    if value.offset:
        text += f" {'+' if value.offset > 0 else '-'} {abs(value.offset)}"
    return text


def largest_text(sizes: list[Size]) -> str:
    """The largest of some sizes, whatever the batch is."""
    if len(sizes) == 1:
        return size(sizes[0])
    return f"Math.max({', '.join(map(size, sizes))})"


def factor(value: Size) -> str:
    """A size that is multiplied: in brackets where it is a sum."""
    text = size(value)
    return f"({text})" if isinstance(value, Dim) and value.offset else text


def camel(name: str) -> str:
    """A name as JavaScript has it: "kernelHeight".

    Example:
        >>> camel("kernel_height")
        'kernelHeight'
    """
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def input_lines(plan: Plan, *, named: bool = False) -> list[str]:
    """What `batchOf` is told of the inputs.

    named: also what each is called among the buffers, and its type.
    """
    lines = ["const INPUTS = {"]
    for value, storage in plan.inputs:
        whole = storage.size
        scale, offset = (
            (whole.scale, whole.offset) if isinstance(whole, Dim) else (0, int(whole))
        )
        shape = quoted(size_text(value.shape))
        parts = f"scale: {scale}, offset: {offset}, shape: {shape}"
        if named:
            parts = f'name: {quoted(storage.name)}, type: "{storage.kind}", {parts}'
        lines.append(f"  {key(value.name)}: {{ {parts} }},")
    return [*lines, "};"]


def head(plan: Plan, target: Path, sizes: str, *, waits: bool = False) -> list[str]:
    """The comment at the beginning of a file.

    sizes: a sentence about them. waits: whether a page waits for a device to answer.
    """
    given = ", ".join(shown(value.name) for value, _ in plan.inputs)
    usage = [
        f'  import {{ Model }} from "./{shown(target.name)}";',
        f"  const model = await Model.load();{'  // or load(device)' if waits else ''}",
        f"  const results = {'await ' if waits else ''}model.forward({{ {given} }});",
        "",
        "Inputs are flat arrays, row by row; n is the batch size, and may be any.",
    ]
    rows = [
        f"{role} {shown(name)} {shown(size_text(value.shape))} {storage.kind}"
        for role, names, values in (
            ("in ", [value.name for value, _ in plan.inputs], plan.inputs),
            ("out", plan.names, plan.outputs),
        )
        for name, (value, storage) in zip(names, values, strict=True)
    ]
    lines = [f"{shown(plan.name)}, written by burnbook.", "", *usage, "", *rows]
    return [f"// {line}".rstrip() for line in [*lines, "", sizes]]


def functions_of(text: str) -> dict[str, str]:
    """The functions of a file of JavaScript by name, each with its comment."""
    pattern = r"(?:/\*\*(?:(?!\*/).)*?\*/\n)?(?:async )?function (\w+)\(.*?\n}\n"
    return {
        match[1]: match[0].rstrip() for match in re.finditer(pattern, text, re.DOTALL)
    }


def needed(functions: dict[str, str], names: Iterable[str]) -> list[str]:
    """The text of functions, and of those that they call, in the order of the file."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in found or name not in functions:
            continue
        found.add(name)
        called = set(
            re.findall(
                r"\b\w+\b", functions[name].partition("*/")[2] or functions[name]
            )
        )
        todo += called & functions.keys()
    return [text for name, text in functions.items() if name in found]


@cache
def helpers() -> dict[str, str]:
    """The functions of weights.js."""
    return functions_of(Path(__file__).with_name("weights.js").read_text("utf-8"))
