"""A tree as a flat list of named tensors, and back.

Burnpack and safetensors know no tree: each tensor has a name, the path joined with
dots ("conv1.weight", "layers.0.bias"), and what is constant is absent. Going back, all
parts become dicts; a module takes "0", "1", … for the parts of its lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from burnbook.module.param import ParamRecord
from burnbook.record import quantized
from burnbook.record.layout import Lowering, Raw, read_tensor
from burnbook.record.mpk import container_room
from burnbook.record.tree import (
    MAX_DEPTH,
    OTHERWISE,
    Marker,
    Path,
    Trouble,
    named,
    short,
)
from burnbook.tensor.data import TensorData
from burnbook.tensor.qfloat import QFloat

ATTACHED = "lora"  # what stands beside the stored weight: {base, lora}


class Named(NamedTuple):
    """One tensor with its name, ready to write."""

    name: str
    dtype: Any  # in Burn's words: "F32"; of codes, their scheme
    shape: list[int]
    content: memoryview
    id: str = ""  # of a parameter


def flatten(item: object, lower: Lowering) -> Iterator[Named | tuple[str, Any]]:
    """The tensors of a tree in its order; a number comes as (name, number).

    Why: the stored weight below a LoRA adapter has the name of the weight, as in Burn:
    "fc.weight" and "fc.weight.lora.a".
    """
    seen: set[str] = set()
    for path, leaf in _leaves(item, lower, ("item",)):
        name = ".".join(path[1:])
        if name in seen:
            raise Trouble(f"two parts have the name {short(name)}", "one each")
        seen.add(name)
        yield leaf._replace(name=name) if isinstance(leaf, Named) else (name, leaf)


def _leaves(node: Any, lower: Lowering, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(node, ParamRecord):
        ((_, leaf),) = _leaves(node.param, lower, path)
        yield path, leaf._replace(id=node.id)
        return
    node = node.into_data() if hasattr(node, "into_data") else node
    if isinstance(node, TensorData) and isinstance(node.dtype, QFloat):
        content, dtype = quantized.lowered(node, quantized.BURNPACK, path)
        yield path, Named("", dtype, list(node.shape), content)
        return
    low = lower(node, path)
    if isinstance(node, TensorData) or _lowered_tensor(low):
        yield path, _named(low, path)
    elif isinstance(low, dict) and set(low) == {"base", ATTACHED} and path[1:]:
        yield from _leaves(low["base"], lower, path)
        yield from _leaves(low[ATTACHED], lower, (*path, ATTACHED))
    elif isinstance(low, dict | list):
        pairs = low.items() if isinstance(low, dict) else enumerate(low)
        for key, value in pairs:
            yield from _leaves(value, lower, (*path, str(key)))
    elif isinstance(low, str):
        what = f"{named(path)} is text; only tensors fit here"
        raise Trouble(what, cure=OTHERWISE)
    elif low is not None and low is not Marker:
        yield path, low


def _lowered_tensor(low: Any) -> bool:
    """Whether a node was an object with a tensor inside."""
    return isinstance(low, dict) and isinstance(low.get("bytes"), Raw)


def _named(low: dict[str, Any], path: Path) -> Named:
    content = low["bytes"].content
    return Named("", low["dtype"], low["shape"], memoryview(content).cast("B"))


class Slot(NamedTuple):
    """What a header says about one tensor: where its bytes are, and what they mean."""

    name: str
    dtype: Any
    shape: Any
    offsets: Any
    id: str = ""


def read_slots(slots: list[Slot], data: memoryview) -> dict[str, Any]:
    """The leaves by name, in the order of their bytes; zeros may stand between them."""
    found: dict[str, Any] = {}
    for slot, start, end in placed(slots, len(data), data):
        tensor = read_tensor(data[start:end], slot.shape, slot.dtype, (slot.name,))
        found[slot.name] = ParamRecord(slot.id, tensor) if slot.id else tensor
    return found


def placed(
    slots: list[Slot], size: int, padded: memoryview | None = None
) -> Iterator[tuple[Slot, int, int]]:
    """The slots in the order of their bytes, with start and end; claims are checked.

    size: of all elements together, in bytes. padded: the elements, where zeros may
    stand between tensors; without, nothing may.

    Why: if two tensors could share bytes, a small file could make a large model.
    """
    before = 0
    for slot in slots:
        if not is_span(slot.offsets):
            what = f"{short(slot.name)} has an impossible position"
            raise Trouble(what, "a start and an end", short(repr(slot.offsets)))
    for slot in sorted(slots, key=lambda slot: tuple(slot.offsets)):
        start, end = slot.offsets
        start, end = (start, end) if start < end else (before, before)
        if end > size:
            missing = f"{end - size} bytes are missing"
            what = f"the file ends before {short(slot.name)} does"
            raise Trouble(what, found=missing)
        if start < before:
            raise Trouble(f"{short(slot.name)} lies over another tensor", "one each")
        if start > before and (padded is None or any(padded[before:start])):
            what = f"{start - before} bytes belong to no tensor"
            raise Trouble(what, "none", f"before {short(slot.name)}")
        before = end
        yield slot, start, end
    if before != size:
        raise Trouble(f"{size - before} bytes belong to no tensor", "none")


def is_span(offsets: Any) -> bool:
    """Whether offsets are a start and an end."""
    whole = isinstance(offsets, list) and all(type(n) is int for n in offsets)
    return whole and len(offsets) == 2 and 0 <= offsets[0] <= offsets[1] < 2**62


def nest(leaves: dict[str, Any], size: int) -> dict[str, Any]:
    """The tree that the names of a file of `size` bytes speak of.

    Example:
        >>> nest({"conv.weight": 1, "conv.bias": 2, "layers.0.weight": 3}, 100)
        {'conv': {'weight': 1, 'bias': 2}, 'layers': {'0': {'weight': 3}}}
    """
    top: dict[str, Any] = {}
    room = container_room(size)
    for name, leaf in leaves.items():
        if name.count(".") >= MAX_DEPTH:
            raise Trouble(f"{short(name)} nests too deeply", f"{MAX_DEPTH} levels")
        *outer, last = name.split(".")
        node = top
        for key in outer:
            inner = node.get(key)
            if not isinstance(inner, dict):
                room -= 1
                inner = {} if inner is None else {"base": inner}
                node[key] = inner
            node = inner
        if isinstance(node.get(last), dict):
            node[last] = {"base": leaf, **node[last]}
        else:
            node[last] = leaf
        if room < 0:
            raise Trouble("the file is nested more deeply than any record")
    return top
