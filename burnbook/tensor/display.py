"""One description of a tensor, three renderings.

`tensor_text` is the book's display, `tensor_line` one line for a notebook's prompt,
`tensor_html` a small still picture. All three take plain arrays and facts, so they know
no class of ours and work below it.
"""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, isinf, isnan, prod
from typing import Any

import numpy as np

from burnbook.core.decimals import positional_text, scientific_text
from burnbook.core.errors import ConfigError
from burnbook.text.png import png


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


def array_text(
    array: np.ndarray,
    dtype: str,
    precision: int | None = None,
    options: PrintOptions | None = None,
) -> str:
    """The elements in nested brackets, one line per row; many are summarized.

    Why: a dim of up to 2·edge_items prints in full even then, as in Burn.
    """
    options = options or _options
    places = options.precision if precision is None else precision
    many = max(array.size, prod(array.shape[:-1])) > options.threshold
    edge = options.edge_items if many else None
    return _block(array, 0, edge, lambda x: number_text(x, dtype, places))


def flat_text(array: np.ndarray, dtype: str) -> str:
    """The elements in one row, all of them: `[0.0, 0.5]`."""
    return "[" + ", ".join(number_text(x, dtype) for x in array.reshape(-1)) + "]"


def number_text(value: object, dtype: str, precision: int | None = None) -> str:
    """One element as Rust prints it: the fewest digits that read back as the same.

    Why: a float below 1e-4 or from 1e16 on is written with an exponent.
    Example:
        >>> [number_text(np.float32(x), "f32") for x in (1, 0.1, 1e-5, 3e38)]
        ['1.0', '0.1', '1e-5', '3e38']
        >>> number_text(np.float32(2.345), "f32", precision=2)
        '2.35'
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
        text = positional_text(short)
        return text if "." in text else f"{text}.0"
    return scientific_text(short)


def plain_text(number: Any, dtype: str) -> str:
    """One number as Rust writes it with `{}`: without an exponent, `1` and not `1.0`.

    Example:
        >>> [plain_text(np.float32(x), "f32") for x in (1, -0.0, 1e-5, 2.5)]
        ['1', '-0', '0.00001', '2.5']
    """
    if dtype not in _FLOATS or not np.isfinite(widened := float(number)):
        return number_text(number, dtype)
    return positional_text(_shortest(widened, dtype))


def tensor_line(
    array: np.ndarray | None, *, shape: Sequence[int], backend: str, kind: object
) -> str:
    """One line: kind, shape, backend, and statistics when `array` is at hand and small.

    Why: it never raises, because a failing repr hides the error one is looking for.
    Example:
        >>> tensor_line(np.eye(2), shape=[2, 2], backend="Numpy()", kind="Float")
        'Tensor Float [2, 2] on Numpy()  mean 0.5  std 0.5  min 0  max 1'
    """
    head = f"Tensor {kind} {list(shape)} on {backend}"
    facts = [f"{name} {text}" for name, text in _statistics(array)]
    return "  ".join([head, *facts])


def tensor_html(
    array: np.ndarray | None,
    *,
    shape: Sequence[int],
    device: str,
    backend: str,
    kind: object,
    dtype: str,
) -> str:
    """A still picture of a tensor: facts, statistics, histogram, elements as colors.

    Why: it is HTML without scripts that takes its colors from the page, so it reads the
    same in a light theme, in a dark theme, in print and without a kernel.
    """
    facts = f"{list(shape)} · {dtype} · {device} · {backend}"
    line = " · ".join(f"{name} {text}" for name, text in _statistics(array))
    parts = [
        f"<div><b>Tensor {escape(str(kind))}</b> {escape(facts)}</div>",
        f'<div style="opacity:.75">{escape(line)}</div>',
    ]
    if array is not None and 0 < array.size <= MOST_ELEMENTS:
        pictures = [_attempt(make, array) for make in (_elements, _histogram)]
        parts.append(f'<div style="{_ROW}">{"".join(pictures)}</div>')
        parts.append(_attempt(_values, array, dtype))
    body = "".join(parts)
    name = hashlib.blake2b(body.encode(), digest_size=6).hexdigest()
    return f'<div id="tensor-{name}" style="{_BOX}">{body}</div>'


MOST_ELEMENTS = 10_000_000  # above this nothing is computed just to be looked at
MOST_PIXELS = 9_000
MOST_CELLS = 12  # rows and columns of a table of numbers
_BOX = "font-size:13px;line-height:1.5;max-width:48em"
_ROW = "display:flex;flex-wrap:wrap;gap:16px;align-items:flex-end;margin:6px 0"
_MONO = "font-family:monospace;font-size:11px"
_LOW, _HIGH = (213, 94, 0), (0, 114, 178)  # safe for color-blind eyes


def _statistics(array: np.ndarray | None) -> list[tuple[str, str]]:
    """Names and numbers to four digits, over the finite elements; [] when unknown."""
    try:
        with np.errstate(all="ignore"):
            return _known_statistics(array)
    except Exception:  # a repr is total, whatever the array is
        return []


def _known_statistics(array: np.ndarray | None) -> list[tuple[str, str]]:
    if array is None or array.size > MOST_ELEMENTS:
        return []
    if array.size == 0:
        return [("no", "elements")]
    if array.dtype.kind == "b":
        return [("true", f"{np.count_nonzero(array)} of {array.size}")]
    known = _finite(array)
    facts: list[tuple[str, str]] = []
    if known.size:
        numbers = {
            "mean": known.mean(dtype=np.float64),
            "std": known.std(dtype=np.float64),
            "min": known.min(),
            "max": known.max(),
        }
        facts = [(name, _short(number)) for name, number in numbers.items()]
    if known.size < array.size:
        nans = int(np.isnan(array).sum())
        counts = {"nan": nans, "inf": array.size - known.size - nans}
        facts += [(name, str(count)) for name, count in counts.items() if count]
    return facts


def _short(number: np.generic) -> str:
    if number.dtype.kind in "iu":
        return str(int(number))
    return f"{float(number) + 0.0:.4g}"


def _finite(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "f":
        return array
    finite = np.isfinite(array)
    return array if finite.all() else array[finite]


def _attempt(make: Callable[..., str], *args: object) -> str:
    try:
        with np.errstate(all="ignore"):
            return make(*args)
    except Exception:  # a picture that cannot be drawn is left out
        return ""


def _values(array: np.ndarray, dtype: str) -> str:
    """The book's text of the elements, folded, when it is short enough."""
    if prod(min(size, 6) for size in array.shape) > 600:
        return ""
    text = array_text(array, dtype)
    if len(text) > 6000:
        text = array_text(array, dtype, options=PrintOptions(threshold=0))
    pre = f'<pre style="{_MONO};margin:4px 0">{escape(text)}</pre>'
    return f"<details><summary>elements</summary>{pre}</details>"


def _elements(array: np.ndarray) -> str:
    """Colors for a matrix (with its numbers when small), gray for pictures."""
    if array.ndim == 2 and max(array.shape) <= MOST_CELLS:
        return _table(array)
    if array.ndim == 2 and max(array.shape) <= 32 * min(array.shape):
        return _figure([_signed(array)], array.shape, _PALETTE, "color: sign and size")
    if array.ndim in (3, 4) and min(array.shape[-2:]) >= 8:
        stack, note = _pictures(array)
        step = _step(stack[0])
        room = max(1, MOST_PIXELS // stack[0, ::step, ::step].size)
        shown = [_gray(picture) for picture in stack[: min(8, room)]]
        return _figure(shown, stack.shape[1:], b"", f"{len(shown)} of {note}")
    return ""


def _pictures(array: np.ndarray) -> tuple[np.ndarray, str]:
    """A list of gray pictures, and what they are the first of."""
    if array.ndim == 3:
        return array, f"{len(array)} along dim 0"
    if len(array) == 1:
        return array[0], f"{array.shape[1]} channels"
    if array.shape[1] == 3:
        return array[:8].mean(axis=1), f"{len(array)}, mean of the channels"
    return array[:, 0], f"{len(array)}, channel 0"


def _table(matrix: np.ndarray) -> str:
    """A small matrix as numbers on colors: blue above 0, orange below."""
    known = np.abs(_finite(matrix).astype(np.float64))
    largest = max(known.max(initial=0.0), 1e-300)
    rows = []
    for row in matrix:
        cells = []
        for value in row:
            number = float(value)
            share = min(abs(number) / largest, 1.0) if number == number else 0.0
            red, green, blue = _HIGH if number > 0 else _LOW
            color = f"background:rgba({red},{green},{blue},{share / 2:.2f})"
            text = str(bool(value)).lower() if value.dtype.kind == "b" else ""
            cells.append(f'<td style="{color}">{text or f"{number:.3g}"}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    style = f"{_MONO};border-collapse:collapse;text-align:right"
    return f'<table cellpadding="3" style="{style}">{"".join(rows)}</table>'


def _signed(matrix: np.ndarray) -> np.ndarray:
    """Bytes that index the palette: 128 is 0, 255 the largest, 1 its opposite."""
    step = _step(matrix)
    values = matrix[::step, ::step].astype(np.float64)
    largest = max(np.abs(_finite(values)).max(initial=0.0), 1e-300)
    share = np.nan_to_num(np.clip(values / largest, -1.0, 1.0))
    return (128 + np.rint(127 * share)).astype(np.uint8)


def _gray(picture: np.ndarray) -> np.ndarray:
    step = _step(picture)
    values = picture[::step, ::step].astype(np.float64)
    known = _finite(values)
    low, high = known.min(initial=np.inf), known.max(initial=-np.inf)
    span = high - low if high > low else 1.0
    share = np.clip(np.nan_to_num((values - low) / span), 0.0, 1.0)
    return np.rint(255 * share).astype(np.uint8)


def _step(picture: np.ndarray) -> int:
    """Keep every how-manieth row and column so that a picture stays small."""
    height, width = picture.shape
    step = ceil(max(height, width) / 256)
    while ceil(height / step) * ceil(width / step) > MOST_PIXELS:
        step += 1
    return step


def _figure(
    pictures: Iterable[np.ndarray], shape: Sequence[int], palette: bytes, note: str
) -> str:
    height, width = shape
    pictures = list(pictures)
    side = 192 if len(pictures) == 1 else 84
    images = "".join(_image(pixels, palette, side) for pixels in pictures)
    label = f"{height} × {width}, {note}"
    caption = f'<div style="opacity:.75;font-size:11px">{escape(label)}</div>'
    return f'<div style="max-width:32em">{images}{caption}</div>'


def _image(pixels: np.ndarray, palette: bytes, side: int) -> str:
    """Bytes as an image tag."""
    height, width = pixels.shape
    scale = max(1, side // max(height, width))
    data = png(pixels.tobytes(), width, height, palette=palette, alpha=_ALPHA)
    text = binascii.b2a_base64(data, newline=False).decode()
    style = "image-rendering:pixelated;margin:0 4px 4px 0"
    size = f'width="{width * scale}" height="{height * scale}"'
    return f'<img alt="" {size} style="{style}" src="data:image/png;base64,{text}">'


_PALETTE = bytes(_LOW) * 128 + bytes(_HIGH) * 128
_ALPHA = bytes(min(255, 2 * abs(index - 128)) for index in range(256))


def _histogram(array: np.ndarray) -> str:
    """How often which size occurs: 24 bars over the finite elements."""
    every = ceil(array.size / 1_000_000)
    known = _finite(array.reshape(-1)[::every]).astype(np.float64)
    if known.size < 2 or array.dtype.kind == "b":
        return ""
    counts, edges = np.histogram(known, bins=24)
    heights = np.rint(60 * counts / counts.max()).astype(int)
    bars = "".join(
        f"M{10 * i} 60v-{height}h9v{height}z" for i, height in enumerate(heights)
    )
    ends = (f"{edges[0]:.4g}", f"{edges[-1]:.4g}")
    label = f"histogram from {ends[0]} to {ends[1]}, highest bar {counts.max()}"
    return (
        f'<svg role="img" aria-label="{label}" width="240" height="76" '
        'viewBox="0 0 240 76" fill="currentColor" font-size="11">'
        f'<path d="{bars}" opacity=".6"/><path d="M0 60h240v1h-240z"/>'
        f'<text x="0" y="74">{ends[0]}</text>'
        f'<text x="240" y="74" text-anchor="end">{ends[1]}</text></svg>'
    )


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
    digits = 0
    for digits in range(4):  # 8 bits of precision: four digits always do
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
        line, gap = " ", ", ..."
        first, last = ([text(array[i]) for i in part] for part in (head, tail))
        gap += ", " if last else ""
    else:
        line = "\n" + " " * (depth + 1)
        gap = f",{line}...{line}"  # also where no edge item stands before it
        first, last = (
            [_block(array[i], depth + 1, edge, text) for i in part]
            for part in (head, tail)
        )
    between = "," + line
    return f"[{between.join(first)}{(gap + between.join(last)) if cut else ''}]"
