"""What is remembered about a value: a node of the graph."""

from itertools import count
from typing import Any

next_number = count(0, -1).__next__


class Node:
    """One remembered step: the op, where its inputs came from, and what rules need.

    A leaf (a tensor that requires a gradient) has no op. Numbers fall with time, so a
    node always has a smaller number than the nodes it was made from.
    Why: `notes` (hooks, the path of a layer) is not even set until somebody has some.
    """

    __slots__ = (
        *("__weakref__", "attrs", "kept", "notes", "number"),
        *("op", "parents", "shape"),
    )
    notes: dict[str, Any]

    def __init__(
        self,
        op: Any,
        parents: tuple["Node | None", ...],
        kept: tuple[Any, ...] | None,
        attrs: dict[str, Any],
        shape: tuple[int, ...],
    ):
        self.op = op
        self.parents = parents
        self.kept = kept
        self.attrs = attrs
        self.shape = shape
        self.number = next_number()

    def __repr__(self) -> str:
        return f"Node({self.op.name if self.op else 'leaf'} {list(self.shape)})"


Parents = tuple[Node | None, ...]  # the nodes of the inputs that are tracked


def notes_of(node: Node) -> dict[str, Any]:
    """What was noted about a node: hooks, where it was made; mostly nothing."""
    return getattr(node, "notes", None) or {}


def note(node: Node, name: str, value: Any) -> None:
    """Write something down about a node."""
    node.notes = {**notes_of(node), name: value}


class Tracked:
    """A value of the backend below, and the node that knows how it was made."""

    __slots__ = ("node", "shape", "value")

    def __init__(self, value: Any, node: Node):
        self.value = value
        self.node = node
        self.shape = node.shape

    @property
    def dtype(self) -> Any:
        return self.value.dtype

    @property
    def size(self) -> int:
        return self.value.size


class SharedNode(Node):
    """A step that several graphs have in common; no backward pass uses it up.

    What it keeps lives as long as it does, so it may only be shapes.
    """

    __slots__ = ()

    @property
    def kept(self) -> tuple[Any, ...] | None:
        """What the rules ask for."""
        return _kept.__get__(self)

    @kept.setter
    def kept(self, held: tuple[Any, ...] | None) -> None:
        if held is not None:
            _kept.__set__(self, held)


_kept: Any = Node.kept  # type: ignore[attr-defined] # the slot, as a descriptor
