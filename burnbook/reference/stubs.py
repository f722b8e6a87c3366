"""The typing stub of tensor methods, written from the ops.

`python -m burnbook.reference.stubs --write` writes `burnbook/tensor/methods.pyi`, so
that editors know every method and operator; a test fails when the file is stale.
"""

import inspect
import sys
from pathlib import Path
from typing import TextIO

from burnbook.core.op import OPS, Op
from burnbook.ops.conv.windows import Pair
from burnbook.reference import table
from burnbook.tensor import methods

PATH = Path(methods.__file__).with_suffix(".pyi")
HEADER = '''\
"""Building blocks · Tensor. Written by `python -m burnbook.reference.stubs --write`."""

from collections.abc import Callable, Sequence
from typing import Any, Self

from burnbook.backend.base import Backend
from burnbook.core.dtypes import KindType
from burnbook.core.op import Op

NO_ATTRS: dict[str, Any]
NUMBERS: tuple[type, ...]
OPERATORS: dict[str, tuple[str, ...]]
FRACTIONS: tuple[type, ...]
WINDOW: tuple[str, ...]

def apply(op: Op, *tensors: Any, **attrs: Any) -> Any: ...
def apply_with_extras(op: Op, *tensors: Any, **attrs: Any) -> tuple[Any, ...]: ...
def complaint(op: Op, tensors: tuple[Any, ...], attrs: dict[str, Any]) -> Exception: ...
def explained(
    op: Op, tensors: tuple[Any, ...], attrs: dict[str, Any], error: Exception
) -> Exception: ...
def facts(op: Op, tensors: tuple[Any, ...]) -> list[tuple[str, str]]: ...
def lift(op: Op, tensor: Any, other: Any) -> Any: ...
def make_method(op: Op) -> Callable[..., Any]: ...
def attach(op: Op) -> None: ...

class Methods:
    value: Any
    kind: KindType
    backend: Backend
    rank: int
    def __init__(
        self, value: Any, kind: KindType, backend: Backend, rank: int
    ) -> None: ...
'''


def text() -> str:
    """The whole stub as text."""
    operators = methods.OPERATORS
    lines = [HEADER]
    for op in OPS.values():
        if op.method and op.inputs and op.forward.__module__.startswith("burnbook."):
            lines.append(_method(op))
            lines += [
                _operator(op, name) for name in operators.get(op.symbol or "", ())
            ]
    return "".join(lines)


def _method(op: Op) -> str:
    parts = ["self"]
    params = list(inspect.signature(op.forward).parameters.values())[2:]
    for p in params:
        if p.kind is p.KEYWORD_ONLY:
            default = "" if p.default is p.empty else f" = {p.default!r}"
            parts.append(f"{p.name}: {_annotation(p)}{default}")
        elif p.default is None:
            parts.append(f"{p.name}: Self | None = None")
        else:
            parts.append(f"{p.name}: Self{' | float' if op.same_rank else ''}")
    results = {out for out in op.kinds.values() if isinstance(out, tuple)}
    size = len(next(iter(results))) if results else 1
    out = "Self" if size == 1 else f"tuple[{', '.join(['Self'] * size)}]"
    return f"    def {op.name}({', '.join(parts)}) -> {out}: ...\n"


def _annotation(p: inspect.Parameter) -> str:
    """The annotation as written, or Any."""
    if p.annotation is p.empty:
        return "Any"
    if p.annotation == Pair and p.name in methods.WINDOW:  # one number is for both dims
        return "int | Sequence[int]"
    return inspect.formatannotation(p.annotation).replace("typing.", "")


def _operator(op: Op, name: str) -> str:
    if len(op.inputs) == 1:
        return f"    def {name}(self) -> Self: ...\n"
    reason = ""
    if name in ("__eq__", "__ne__"):
        reason = "  # type: ignore[override] # element by element"
    other = "float" if name.startswith("__r") else "Self | float"
    return f"    def {name}(self, other: {other}) -> Self: ...{reason}\n"


def main(arguments: list[str], out: TextIO) -> int:
    """Write the stub (`--write`), print the table (`--table`), or say what is stale."""
    if "--table" in arguments:
        out.write(table.text())
        return 0
    wanted = text()
    if "--write" in arguments:
        PATH.write_text(wanted, encoding="utf-8")
        return 0
    fresh = PATH.exists() and PATH.read_text(encoding="utf-8") == wanted
    out.write("up to date\n" if fresh else "stale: add --write\n")
    return 0 if fresh else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sys.stdout))
