"""Files in PyTorch's layout: recognized, refused, or converted.

PyTorch keeps the weight of a Linear as [d_output, d_input], Burn and this book as
[d_input, d_output]; and what is `gamma` and `beta` of a norm here is `weight` and
`bias` there. A square weight would load silently and compute nonsense.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from burnbook.core.errors import RecordError
from burnbook.module.param import ParamRecord, TransposedParam
from burnbook.module.tree import Tree, children
from burnbook.nn import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, Linear, RmsNorm
from burnbook.tensor.data import TensorData

LAYOUTS = ("burn", "pytorch")
NORMS = (BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RmsNorm)
CURE = 'SafetensorsRecorder(layout="pytorch"), or layout="burn" to take it as it is'


class TorchRecord(dict[str, Any]):
    """The tree of a file in PyTorch's layout, which the module it is for sets right."""

    def for_module(self, module: Any) -> Any:
        """The record with the names and shapes that the module has."""
        return _ours(module, dict(self))


def _ours(part: object, record: object) -> Any:
    """A part of the record as its part of the module would write it."""
    if not isinstance(record, dict):
        return record
    if isinstance(part, Linear):
        if isinstance(part.weight, TransposedParam):  # as PyTorch has it
            return record
        return {name: _turned(name, held) for name, held in record.items()}
    if isinstance(part, NORMS):
        names = {"weight": "gamma", "bias": "beta"}
        rows = ((names.get(name, name), held) for name, held in record.items())
        return {name: held for name, held in rows if name != "num_batches_tracked"}
    inside = dict(children(part)) if isinstance(part, (Tree, list, tuple, dict)) else {}
    return {name: _ours(inside.get(name), held) for name, held in record.items()}


def _turned(name: str, held: object) -> Any:
    data = held.param if isinstance(held, ParamRecord) else held
    if name != "weight" or not isinstance(data, TensorData) or data.array.ndim != 2:
        return held
    turned = TensorData.of(np.ascontiguousarray(data.array.T), data.dtype)
    return ParamRecord(held.id, turned) if isinstance(held, ParamRecord) else turned


def layout_of(item: object, texts: dict[str, str]) -> tuple[str, str]:
    """Whose layout a file has, "" if it does not matter, "?" if nothing tells; and why.

    Example:
        >>> weight, bias = TensorData.zeros([3, 2]), TensorData.zeros([3])
        >>> layout_of({"fc": {"weight": weight, "bias": bias}}, {})
        ('pytorch', 'fc.weight is [3, 2], its bias [3]')
    """
    marks, doubts = _marks(item, ""), []
    for layout, why in marks:
        if layout == "?":
            doubts.append(why)
        else:
            return layout, why
    if doubts and texts.get("format") in ("pt", "pytorch"):
        return "pytorch", f"its metadata says format: {texts['format']}"
    if doubts and texts.get("producer", "").startswith("burn"):
        return "burn", "its metadata"
    return ("?", doubts[0]) if doubts else ("", "")


def _marks(node: object, path: str) -> Iterator[tuple[str, str]]:
    """What each layer of a file tells."""
    if isinstance(node, (list, tuple)):
        node = {str(place): held for place, held in enumerate(node)}
    if not isinstance(node, dict):
        return
    weight, bias = _dims(node.get("weight")), _dims(node.get("bias"))
    at = f"{path}.weight".strip(".")
    if "num_batches_tracked" in node or ("running_mean" in node and weight):
        yield "pytorch", f"{at} is the gamma of a batch norm"
    elif weight is not None and len(weight) == 2:
        shown = f"{at} is {list(weight)}, its bias {list(bias or ())}"
        if bias == weight[:1] and bias != weight[1:]:
            yield "pytorch", shown
        elif bias == weight[1:] and bias != weight[:1]:
            yield "burn", shown
        elif weight[0] == weight[1]:
            yield "?", f"{at} is square: {list(weight)}"
    for name, held in node.items():
        yield from _marks(held, f"{path}.{name}".strip("."))


def _dims(data: object) -> tuple[int, ...] | None:
    data = data.param if isinstance(data, ParamRecord) else data
    return tuple(data.shape) if isinstance(data, TensorData) else None


def foreign(where: str, why: str) -> RecordError:
    """The error for a file whose weights would have to be turned."""
    what = "this is PyTorch's layout, with Linear weights [d_output, d_input]"
    return RecordError(where, what, [("seen in", why)], CURE)


def doubtful(where: str, why: str) -> str:
    """The warning for a file that does not say whose layout it has."""
    return f"{where}: nothing says whether PyTorch wrote it: {why}. Say so: {CURE}"
