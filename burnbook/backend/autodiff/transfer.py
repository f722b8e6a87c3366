"""Graphs that cross from one device to another.

Moving a tracked tensor is a step of the graph like any other: forward it copies the
values to the other device, back it copies the gradient to where the value came from.
"""

from collections.abc import Callable
from typing import Any

from burnbook.backend.autodiff.tape import Node, Tracked
from burnbook.backend.autodiff.traced_namespace import unwrap
from burnbook.core.op import BackwardOp


class Transfer:
    """The op of a node where the graph crosses to another device."""

    name = "to_device"
    inputs = ("x",)
    many = fast_path = False
    kept = ()
    rules: tuple[str, ...] = ("x",)
    backward: "TransferBackward"

    def __repr__(self) -> str:
        return "op to_device (F>F)"


class TransferBackward(BackwardOp):
    """The gradient of a move: the gradient, moved back, in the element type there."""

    def __init__(self, source: Transfer):
        self.source: Any = source
        self.name = f"{source.name}.backward"
        self.extras = ()
        self.fast_path = False
        self.rules = {}
        self.keep = self.keep_first = self.keep_second = None
        self.inputs = ("g",)
        self.forward = move_back

    def __reduce__(self) -> Any:
        raise TypeError("a graph cannot be pickled")


def move_back(
    xp: Any, g: Any, *, source: Any, target: Any, dtype: Any, needs: Any
) -> tuple[Any]:
    """The rule: (g,) on the backend below the target -> on that below the source."""
    return (move(unwrap(g), target.inner, source.inner, dtype),)


TRANSFER = Transfer()
TRANSFER.backward = TransferBackward(TRANSFER)


def move(value: Any, source: Any, target: Any, dtype: Any) -> Any:
    """A raw value on another backend; tracked ones stay tied to their graph."""
    if isinstance(value, Tracked) and hasattr(target, "tracked"):
        attrs = {"source": source, "target": target, "dtype": value.dtype}
        moved = move(value.value, source.inner, target.inner, dtype)
        target.homes[type(value.value)] = source
        target.homes.update(source.homes)
        node = Node(TRANSFER, (value.node,), (), attrs, value.shape)
        target.arrived.add(node)
        target.arrived.update(source.arrived)
        return target.tracked(moved, node)
    return target.from_numpy(source.to_numpy(value).astype(dtype))


def run_at_home(
    run: Callable[..., Any], homes: dict[type, Any], own: type
) -> Callable[..., Any]:
    """A `run` for gradient rules that goes to the device where the gradient is."""

    def run_there(op: Any, values: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        home = homes.get(type(values[0]))
        if home is None or type(values[0]) is own:
            return run(op, values, attrs)
        return home.inner.run(op, values, attrs)

    return run_there
