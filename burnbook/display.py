"""Building blocks · Tensor. One description of a tensor, three renderings.

`tensor_text` is the book's display, `tensor_line` one line for a notebook's prompt,
`tensor_html` a small still picture. All three take plain arrays and facts, so they know
no class of ours and work below it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isinf, isnan, prod

import numpy as np

from burnbook.errors import ConfigError


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """How tensors print: decimals, when to summarize, how much to keep at the edges.

    Example:
        >>> PrintOptions(precision=2)
        PrintOptions(precision=2, threshold=1000, edge_items=3)
    """

    precision: int | None = None
    threshold: int = 1000  # more elements than this are summarized
    edge_items: int = 3  # then a dim longer than twice this is cut

    def __post_init__(self) -> None:
        for name in ("precision", "threshold", "edge_items"):
            value = getattr(self, name)
            if value is None and name == "precision":
                continue
            if not isinstance(value, int) or value < 0:
                what, cure = f"{name} is {value!r}", "a whole number ≥ 0"
                raise ConfigError("PrintOptions", what, cure=cure)


_options = PrintOptions()


def set_print_options(options: PrintOptions) -> None:
    """Make `options` those of every tensor printed from now on."""
    global _options
    _options = options


def get_print_options() -> PrintOptions:
    """The options that tensors print with now."""
    return _options


def tensor_text(
    array: np.ndarray,
    *,
    shape: Sequence[int],
    device: str,
    backend: str,
    kind: object,
    dtype: str,
    precision: int | None = None,
) -> str:
    """The book's display of a tensor, digit for digit.

    Example:
        >>> ones = np.ones((2, 2), np.float32)
        >>> print(tensor_text(ones, shape=[2, 2], device="Cpu", backend="numpy",
        ...                   kind="Float", dtype="f32"))
        Tensor {
          data:
        [[1.0, 1.0],
         [1.0, 1.0]],
          shape:  [2, 2],
          device:  Cpu,
          backend:  "numpy",
          kind:  "Float",
          dtype:  "f32",
        }
    """
    lines = [
        "Tensor {",
        "  data:",
        array_text(array, dtype, precision) + ",",
        f"  shape:  {list(shape)},",
        f"  device:  {device},",
        f'  backend:  "{backend}",',
        f'  kind:  "{kind}",',
        f'  dtype:  "{_RUST_NAMES.get(dtype, dtype)}",',
        "}",
    ]
    return "\n".join(lines)


def array_text(array: np.ndarray, dtype: str, precision: int | None = None) -> str:
    """The elements in nested brackets, one line per row; many are summarized.

    Why: a dim of up to 2·edge_items prints in full even then, as in Burn.
    """
    options = _options
    if precision is None:
        precision = options.precision
    rows = prod(array.shape[:-1])
    edge = options.edge_items if max(array.size, rows) > options.threshold else None
    return _block(array, 0, edge, lambda x: number_text(x, dtype, precision))


def flat_text(array: np.ndarray, dtype: str) -> str:
    """The elements in one row, all of them: `[0.0, 0.5]`."""
    return "[" + ", ".join(number_text(x, dtype) for x in array.reshape(-1)) + "]"


def number_text(value: object, dtype: str, precision: int | None = None) -> str:
    """One element as Rust prints it: the fewest digits that read back as the same.

    Example:
        >>> [number_text(np.float32(x), "f32") for x in (1, 0.1, 1e-5, 3e38)]
        ['1.0', '0.1', '1e-5', '3e38']
        >>> number_text(np.float32(2.345), "f32", precision=2)
        '2.35'
    Why: a float below 1e-4 or from 1e16 on is written with an exponent.
    """
    if dtype == "bool":
        return "true" if value else "false"
    if dtype not in _FLOATS:
        return str(int(value))  # type: ignore[call-overload] # a NumPy integer
    number = float(value)  # type: ignore[arg-type] # a NumPy float, exact as float
    if isnan(number):
        return "NaN"
    if isinf(number):
        return "inf" if number > 0 else "-inf"
    if precision is not None:
        return f"{number:.{precision}f}"
    low, high = _FLOATS[dtype]
    short = _shortest(number, dtype)
    if number == 0 or low <= abs(number) < high:
        return np.format_float_positional(short, unique=True, trim="0")
    text = np.format_float_scientific(short, unique=True, trim="-", exp_digits=1)
    return text.replace("e+", "e")


# Where the exponent form begins, in the numbers of each type: 1e-4 and 1e16, rounded.
_FLOATS = {
    "f64": (1e-4, 1e16),
    "f32": (float(np.float32(1e-4)), float(np.float32(1e16))),
    "f16": (float(np.float16(1e-4)), float("inf")),
    "bf16": (float.fromhex("0x1.a4p-14"), float.fromhex("0x1.1cp53")),
}
_RUST_NAMES = {"f16": "half::binary16::f16", "bf16": "half::bfloat::bf16"}
_NUMPY_FLOATS = {"f64": np.float64, "f32": np.float32, "f16": np.float16}


def _shortest(number: float, dtype: str) -> np.floating:
    """A number whose own shortest digits are the shortest that `dtype` can tell."""
    if dtype != "bf16":
        return _NUMPY_FLOATS[dtype](number)
    for digits in range(4):
        guess = np.float32(f"{number:.{digits}e}")
        bits = int(guess.view(np.uint32))
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        if np.uint32(rounded).view(np.float32) == np.float32(number):
            break
    return np.float64(f"{number:.{digits}e}")


def _block(
    array: np.ndarray, depth: int, edge: int | None, text: Callable[[object], str]
) -> str:
    """One dim in brackets; with `edge`, a long dim keeps only its two ends."""
    if array.ndim == 0:
        return text(array[()])
    size = array.shape[0]
    cut = edge is not None and size > 2 * edge
    head = range(edge if cut and edge is not None else size)
    tail = range(size - edge, size) if cut and edge is not None else range(0)
    if array.ndim == 1:
        parts = [text(array[i]) for i in head]
        parts += ["..."] * cut + [text(array[i]) for i in tail]
        return "[" + ", ".join(parts) + "]"
    line = "\n" + " " * (depth + 1)
    first = ("," + line).join(_block(array[i], depth + 1, edge, text) for i in head)
    last = ("," + line).join(_block(array[i], depth + 1, edge, text) for i in tail)
    middle = ("," + line if first else "") + "..." + (line if last else "")
    return "[" + first + (middle + last if cut else "") + "]"
