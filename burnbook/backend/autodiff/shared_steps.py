"""Values that were computed from parameters, to be used again while a graph holds them.

A layer that is called step by step joins the weights of its gates at every call. Within
a graph one such value will do for all of them: one step forward, one step back.
"""

from collections.abc import Sequence
from typing import Any
from weakref import ref

from burnbook.backend.autodiff.tape import Node, SharedNode, Tracked, notes_of

Step = tuple[Any, tuple[Any, ...] | None]  # a weak reference to a node, what it keeps
Level = tuple[type[Tracked], list[Step]]  # the newest node of its steps is the first


class SharedValue:
    """A tracked value of which nothing is held: a graph does, or it is gone."""

    __slots__ = ("_array", "_levels")

    def __init__(self, array: Any, levels: list[Level]):
        self._array = ref(array)
        self._levels = levels

    def again(self) -> Any:
        """The value once more; None where nobody holds it, or its steps have hooks.

        Why: a hook is meant for the graph that it was put on, not for a later one.
        """
        value = self._array()
        if value is None:
            return None
        for kind, steps in reversed(self._levels):
            nodes = [at() for at, _ in steps]
            for node, (_, kept) in zip(nodes, steps, strict=True):
                if node is None or notes_of(node) or node.kept is not kept:
                    return None
            value = kind(value, nodes[0])
        return value


def share(value: Any, inputs: Sequence[Any]) -> SharedValue | None:
    """Let graphs have a tracked value in common, with the steps from `inputs` to it.

    None where one of these steps keeps more than shapes: it may be used up.
    """
    levels: list[Level] = []
    while isinstance(value, Tracked):
        kind = type(value)
        ends = {v.node for v in inputs if type(v) is kind}
        nodes = _between(value.node, ends)
        if any(_holds_values(node.kept) or notes_of(node) for node in nodes):
            return None
        for node in nodes:
            node.__class__ = SharedNode
        first = nodes or [value.node]
        levels.append((kind, [(ref(node), node.kept) for node in first]))
        value = value.value
        inputs = [v.value if type(v) is kind else v for v in inputs]
    return SharedValue(value, levels)


def _between(last: Node, ends: set[Node]) -> list[Node]:
    """A node and those before it, up to the ends; leaves are none of them."""
    found = [] if last in ends or last.op is None else [last]
    for node in found:
        for parent in node.parents:
            if parent is None or parent.op is None:
                continue
            if parent not in ends and parent not in found:
                found.append(parent)
    return found


def _holds_values(kept: Any) -> bool:
    """Whether something that is kept is more than numbers and shapes."""
    if type(kept) in (list, tuple):
        return any(map(_holds_values, kept))
    return not (kept is None or isinstance(kept, int))
