"""Cards: what the page is told of items, and of a batch.

A card is a small dictionary of words and of places in a block of bytes; the live view
and the still picture are both made from it, so they show the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from burnbook.data import DataLoaderBuilder, InMemDataset
from burnbook.tensor import Tensor
from burnbook_widgets.dataset.items import Seen, brief, clip, fault, look, plain
from burnbook_widgets.dataset.pixels import Pack, is_stretched

PAGE = 40_000  # bytes for all pictures of a page
LARGE = 24_000  # bytes for the pictures of the item that is looked at
PAGES = {"image": 24, "sound": 12, "text": 6, "row": 12, "fault": 12}
SHOWN = 16  # pictures or rows of a batch
COLUMNS = 12  # of a table


def see(item: Any) -> Seen:
    """Recognize an item; an error in its place is shown as such."""
    return fault(item) if isinstance(item, Exception) else look(item)


def card(index: int, seen: Seen, pack: Pack, budget: int, most: int) -> dict[str, Any]:
    """An item for the page: `budget` bytes of pictures, texts of `most` letters."""
    made: dict[str, Any] = {"i": index, "kind": seen.kind}
    if seen.title:
        made["title"] = clip(seen.title, most)
    if seen.text:
        made["text"] = clip(seen.text, most)
    fields = list(seen.fields.items())[: COLUMNS if most < 1000 else None]
    made["fields"] = [[key, clip(value, most)] for key, value in fields]
    if seen.array is not None and seen.kind == "sound":
        made["wave"] = pack.wave(seen.array)
        made["sounds"] = bool(seen.rate)
    elif seen.array is not None:
        share = budget if seen.mask is None else budget // 2
        made["pic"] = pack.picture(seen.array, share)
        height, width = _size(seen.array)
        made["boxes"] = [
            [x / width, y / height, w / width, h / height]
            for (x, y, w, h), _ in seen.boxes
        ]
        if seen.mask is not None:
            made["mask"] = pack.picture(_spread(seen.mask), share)
    return made


def facts(seen: Seen) -> list[list[str]]:
    """What is known of an item beside its picture: sizes, types, ranges, fields."""
    known: list[list[str]] = []
    array = seen.array
    if array is not None and seen.kind == "sound":
        known.append(["samples", f"{len(array):,} {array.dtype}"])
        if seen.rate:
            known.append(["length", f"{len(array) / seen.rate:.2f} s"])
            known.append(["rate", f"{seen.rate:,} Hz"])
    elif array is not None:
        known.append(["size", f"{'×'.join(map(str, array.shape))} {array.dtype}"])
    if array is not None:
        tones = (
            ", shown stretched" if seen.kind == "image" and is_stretched(array) else ""
        )
        known.append(["values", _extent(array) + tones])
        known.append(["mean", f"{float(np.mean(array)):.4g}"])
    if seen.text:
        words = len(seen.text.split())
        known.append(["length", f"{words:,} words, {len(seen.text):,} characters"])
    return known


def _extent(array: np.ndarray) -> str:
    return f"{float(np.min(array)):.4g} … {float(np.max(array)):.4g}"


def _size(array: np.ndarray) -> tuple[int, int]:
    if array.ndim == 3 and array.shape[2] > 4:
        return array.shape[1], array.shape[2]
    return array.shape[0], array.shape[1]


def _spread(mask: np.ndarray) -> np.ndarray:
    """The classes of a mask as tones that lie far apart."""
    tones = np.linspace(0, 255, int(mask.max(initial=1)) + 1).astype(np.uint8)
    return tones[np.clip(mask, 0, len(tones) - 1)]


# ── a batch ─────────────────────────────────────────────────────────────────


def batch_cards(batcher: Any, items: Sequence[Any], pack: Pack) -> list[dict[str, Any]]:
    """What a batcher makes of items: one card for each tensor of the batch."""
    loader = DataLoaderBuilder(batcher).batch_size(len(items))
    batch = next(iter(loader.build(InMemDataset(list(items)))))
    named = _named(batch)
    return [_tensor_card(name, value, pack, len(named)) for name, value in named]


def _named(batch: Any, prefix: str = "") -> list[tuple[str, Any]]:
    """The parts of a batch with names, parts of parts too."""
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        parts = {f.name: getattr(batch, f.name) for f in dataclasses.fields(batch)}
    elif isinstance(batch, Mapping):
        parts = {str(key): value for key, value in batch.items()}
    elif isinstance(batch, tuple):
        parts = {f"[{place}]": value for place, value in enumerate(batch)}
    else:
        return [(prefix or "batch", batch)]
    found: list[tuple[str, Any]] = []
    for name, value in parts.items():
        dot = "." if prefix and name[0] != "[" else ""
        found += _named(value, f"{prefix}{dot}{name}")
    return found


def _tensor_card(name: str, value: Any, pack: Pack, among: int) -> dict[str, Any]:
    array = plain(value)
    if not isinstance(array, np.ndarray):
        return {"name": name, "about": type(value).__name__, "values": brief(value)}
    kind = value.kind.__name__ if isinstance(value, Tensor) else str(array.dtype)
    made: dict[str, Any] = {
        "name": name,
        "about": f"{kind} [{', '.join(map(str, array.shape))}]",
    }
    if array.size and array.dtype.kind in "fiub":
        mean, spread = float(np.mean(array)), float(np.std(array))
        made["range"] = f"{_extent(array)}, mean {mean:.4g}, std {spread:.4g}"
    pictures = _pictures(array)
    if pictures is not None:
        share = PAGE // max(1, among * len(pictures))
        made["pics"] = [pack.picture(one, share) for one in pictures]
        made["of"] = len(array) if len(pictures) > 1 else 1
        made["wide"] = array.ndim == 2
    elif array.size:
        shown = array.ravel()[: 2 * SHOWN].tolist()
        more = " …" if array.size > len(shown) else ""
        made["values"] = ", ".join(brief(one) for one in shown) + more
    return made


def _pictures(array: np.ndarray) -> list[np.ndarray] | None:
    """The images of a batch; of a table one picture with a row for each item."""
    if array.dtype.kind not in "fiub" or not array.size:
        return None
    if array.ndim == 3 or (
        array.ndim == 4 and (array.shape[1] <= 4 or array.shape[3] <= 4)
    ):
        return list(array[:SHOWN])
    if array.ndim == 2 and array.shape[1] > 1:
        return [array[: 4 * SHOWN, :512]]
    return None
