"""What an item is to the eye: picture, sound, text or row.

Items are recognized by what they hold, so a dataclass of one's own, a dict, a tuple
and a bare array are shown like the items of burnbook.data.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from burnbook.data import BoundingBoxes, Label, MultiLabel, SegmentationMask
from burnbook.tensor import Tensor

LABELS = ("label", "labels", "target", "targets", "annotation", "class", "category")
TEXTS = ("text", "content", "sentence", "document")
ROW = 32  # a list of at most so many numbers is a row, a longer one a curve

Key = Any  # a label as its item has it: a number, a name, True or False


@dataclasses.dataclass
class Seen:
    """What there is to see of an item; `kind` is image, sound, text, row or fault."""

    kind: str
    fields: dict[str, str] = dataclasses.field(default_factory=dict)
    title: str = ""
    text: str = ""
    array: np.ndarray | None = None
    rate: int = 0
    boxes: list[tuple[tuple[float, ...], int]] = dataclasses.field(default_factory=list)
    mask: np.ndarray | None = None

    @property
    def words(self) -> str:
        """Everything that a search looks through."""
        return " ".join((self.title, self.text, *self.fields.values())).casefold()


def look(item: Any) -> Seen:
    """Recognize an item.

    Example:
        >>> look({"title": "Rain", "content": "It rains.", "label": 1}).kind
        'text'
        >>> look((np.zeros((8, 8)), 3)).kind, look({"age": 31, "pay": 2.5}).fields
        ('image', {'age': '31', 'pay': '2.5'})
    """
    parts = parts_of(item)
    name = label_name(parts)
    seen = Seen("row", {})
    rate = 0
    for key, value in parts.items():
        value = plain(value)
        if key == name:
            _annotate(seen, value)
        elif isinstance(value, np.ndarray) and seen.array is None and _shown(value):
            seen.kind = "sound" if value.ndim == 1 else "image"
            seen.array = value
        else:
            seen.fields[key] = brief(value)
            if "rate" in key and isinstance(value, int | float):
                rate = int(value)
    if seen.array is None:
        _read_text(seen, parts, name)
    seen.rate = rate if seen.kind == "sound" else 0
    return seen


def fault(error: Exception) -> Seen:
    """What is seen of an item that could not be read: why not."""
    return Seen("fault", text=f"{type(error).__name__}: {error}")


def parts_of(item: Any) -> dict[str, Any]:
    """The named parts of an item."""
    if isinstance(item, Mapping):
        return {str(key): value for key, value in item.items()}
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return {f.name: getattr(item, f.name) for f in dataclasses.fields(item)}
    if isinstance(item, tuple) and hasattr(item, "_asdict"):
        return dict(item._asdict())  # type: ignore[attr-defined]  # a NamedTuple
    if isinstance(item, tuple | list) and _is_pair(item):
        return {"x": item[0], "label": item[1]}
    if isinstance(item, tuple | list):
        return {f"x{place}": value for place, value in enumerate(item)}
    array = plain(item)
    if isinstance(array, np.ndarray) and array.ndim == 1 and len(array) <= ROW:
        return {f"x{place}": value for place, value in enumerate(array.tolist())}
    named = getattr(item, "__dict__", None)
    if named and not isinstance(item, Tensor | np.ndarray | enum.Enum):
        return {key: value for key, value in named.items() if key[0] != "_"}
    return {"x": item}


def label_name(parts: Mapping[str, Any]) -> str | None:
    """Which part of an item is its label, by its name."""
    for wanted in LABELS:
        for name in parts:
            if name.casefold() == wanted:
                return name
    return None


def label_reader(label: Any) -> Callable[[Any], tuple[Key, ...]]:
    """A function from an item to its labels; `label` names a part, or is a function."""
    if callable(label):
        return lambda item: as_labels(label(item))

    def read(item: Any) -> tuple[Key, ...]:
        parts = parts_of(item)
        name = label_name(parts) if label is None else str(label)
        if name is None:
            return ()
        value = parts[name] if name in parts else getattr(item, name)
        return as_labels(value)

    return read


def as_labels(value: Any) -> tuple[Key, ...]:
    """The labels that a value stands for: one, several or none.

    Example:
        >>> as_labels(np.int64(3)), as_labels(MultiLabel((1, 4))), as_labels(None)
        ((3,), (1, 4), ())
    """
    value = plain(value)
    if value is None or isinstance(value, SegmentationMask):
        return ()
    if isinstance(value, Label):
        return (value.label,)
    if isinstance(value, MultiLabel):
        return tuple(value.labels)
    if isinstance(value, BoundingBoxes):
        return tuple(sorted({box.label for box in value.boxes}))
    if isinstance(value, np.ndarray):
        return tuple(value.tolist()) if value.ndim == 1 and len(value) < ROW else ()
    if isinstance(value, list | tuple | set | frozenset):
        return tuple(one for part in value for one in as_labels(part))
    return (value,)


def plain(value: Any) -> Any:
    """Tensors and pictures of Pillow as arrays; arrays of one number as the number."""
    if isinstance(value, Tensor):
        value = np.asarray(value.to_data().to_numpy())
    elif hasattr(value, "getbands") and hasattr(value, "tobytes"):
        value = np.asarray(value)
    if isinstance(value, np.ndarray | np.generic) and value.ndim == 0:
        return value.item()
    if isinstance(value, list) and len(value) > ROW:
        numbers = all(isinstance(one, int | float) for one in value[:ROW])
        return np.asarray(value) if numbers else value
    return value


def brief(value: Any, most: int = 400) -> str:
    """A value in a few words."""
    value = plain(value)
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, float):
        return readable(value)
    if isinstance(value, np.ndarray):
        return f"{'×'.join(map(str, value.shape))} {value.dtype}"
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, list | tuple):
        value = ", ".join(brief(one, 80) for one in value[:ROW])
    return clip(str(value), most)


def readable(value: float) -> str:
    """A number as tables show it, with four digits that count; large ones with six.

    Example:
        >>> readable(223300.0), readable(0.1 + 0.2), readable(2.5e-7), readable(3)
        ('223300', '0.3', '2.5e-07', '3')
    """
    if isinstance(value, int) or value != value or abs(value) == math.inf:
        return str(value)
    rounded = float(f"{value:.{4 if abs(value) < 1e3 else 6}g}")
    if rounded and not 1e-4 <= abs(rounded) < 1e12:
        return f"{rounded:g}"
    return f"{rounded:.9f}".rstrip("0").rstrip(".") or "0"


def clip(text: str, most: int) -> str:
    """The beginning of a text, cut between two words."""
    if len(text) <= most:
        return text
    head = text[:most].rsplit(None, 1)[0] if " " in text[:most] else text[:most]
    return f"{head} …"


def _is_pair(item: Sequence[Any]) -> bool:
    """An input and its label: something large or long, and then something small."""
    if len(item) != 2:
        return False
    first, second = plain(item[0]), plain(item[1])
    small = isinstance(second, int | float | str | enum.Enum | Label | MultiLabel)
    return small and (isinstance(first, str) or not np.isscalar(first))


def _shown(array: np.ndarray) -> bool:
    if array.dtype.kind not in "fiub" or not array.size:
        return False
    if array.ndim == 3:
        return min(array.shape[0], array.shape[2]) <= 4
    return array.ndim == 2 or (array.ndim == 1 and len(array) > ROW)


def _annotate(seen: Seen, value: Any) -> None:
    if isinstance(value, BoundingBoxes):
        seen.boxes = [(tuple(box.coords), box.label) for box in value.boxes]
    elif isinstance(value, SegmentationMask):
        seen.mask = value.mask


def _read_text(seen: Seen, parts: Mapping[str, Any], label: str | None) -> None:
    """Take a text out of the fields, if that is what the item is about."""
    strings = {
        key: value
        for key, value in parts.items()
        if isinstance(value, str) and key != label
    }
    main = next((key for key in strings if key.casefold() in TEXTS), None)
    others = [key for key in parts if key != label]
    if main is None and len(strings) == len(others) == 1:
        main = others[0]
    if main is None:
        return
    seen.kind, seen.text = "text", strings[main]
    seen.fields.pop(main)
    if "title" in strings:
        seen.title = strings["title"]
        seen.fields.pop("title")
