"""The graph behind a tensor, to look at and to hook into.

Nothing of this runs while a graph is built: a hook is noted on a node, and a backward
pass looks for notes only when its backend knows that there are some.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any
from weakref import ref

import numpy as np

from burnbook.backend.autodiff.checkpointing import Recipe, computed
from burnbook.backend.autodiff.tape import Node, note, notes_of
from burnbook.core.errors import GraphError

Act = Callable[[Any], Any]


class Hook:
    """A function that sees the gradient of one node on its way; `remove()` ends it.

    Why a weak reference: the node knows its hooks, and a graph with a circle in it
    would stay until Python looks for circles.
    """

    __slots__ = ("_node", "_text", "act")

    def __init__(self, node: Node, act: Act):
        self.act = act
        self._node = ref(node)
        self._text = f"{node.op.name if node.op else 'leaf'} {list(node.shape)}"

    def remove(self) -> None:
        """Take the hook off; a second call does nothing."""
        node = self._node()
        if node is not None:
            hooks = notes_of(node).get("hooks", ())
            note(node, "hooks", tuple(h for h in hooks if h is not self))

    def __repr__(self) -> str:
        return f"Hook(on {self._text})"


class HookedGradients(dict[Node, Any]):
    """The gradients on their way, where some nodes have hooks."""

    def pop(self, node: Node, *default: Any) -> Any:
        """The whole gradient of a node, after its hooks have seen it."""
        g = super().pop(node, *default)
        for hook in notes_of(node).get("hooks", ()):
            changed = hook.act(g)
            if changed is None:
                continue
            if tuple(changed.shape) != tuple(node.shape):
                raise GraphError(
                    "hook",
                    f"the gradient has shape {list(node.shape)}, "
                    f"what the hook returned {list(changed.shape)}",
                )
            g = changed
        return g


def add_hook(backend: Any, node: Node, act: Act) -> Hook:
    """Let `act` see (and replace) the raw gradient of a node of a backend."""
    hook = Hook(node, act)
    note(node, "hooks", (*notes_of(node).get("hooks", ()), hook))
    backend.hooked.add(node)
    return hook


class GraphNode:
    """One step of a graph: its op, its shape, what it keeps, where it came from.

    `node["out"]` is a value that the tape keeps for the gradient rules, and may be
    replaced; `node.hook(act)` shows the gradient to a function.
    """

    __slots__ = ("_graph", "_node")

    def __init__(self, graph: "Graph", node: Node):
        self._graph = graph
        self._node = node

    @property
    def name(self) -> str:
        """The name of the op; "leaf" for a tensor that requires a gradient."""
        return self._node.op.name if self._node.op else "leaf"

    @property
    def op(self) -> Any:
        """The op as it is declared: inputs, rules, doc; None for a leaf."""
        return self._node.op

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return tuple(self._node.shape)

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes that the op was called with."""
        return dict(self._node.attrs)

    @property
    def place(self) -> str:
        """The layer it was made in, where a decorator below asked for places."""
        return str(notes_of(self._node).get("place", ""))

    @property
    def used_up(self) -> bool:
        """Whether a backward pass has been here: what was kept is gone."""
        return self._node.op is not None and self._node.kept is None

    @property
    def inputs(self) -> tuple["GraphNode | None", ...]:
        """The steps that the inputs came from; None for an input without gradient."""
        return tuple(
            None if parent is None else GraphNode(self._graph, parent)
            for parent in self._node.parents
        )

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of what the tape keeps here: inputs, "out", shapes."""
        if self._node.op is None or self._node.kept is None:
            return ()
        return self._node.op.kept

    def __getitem__(self, name: str) -> Any:
        """One of the things that are kept, as a tensor of the backend below."""
        held = (self._node.kept or ())[self._position(name)]
        return self._graph.wrap(computed(held, self._graph.backend.inner.run))

    def __setitem__(self, name: str, tensor: Any) -> None:
        """Let the gradient rules see another value."""
        at = self._position(name)
        kept = self._node.kept or ()
        self._node.kept = (*kept[:at], self._graph.unwrap(tensor), *kept[at + 1 :])

    def _position(self, name: str) -> int:
        if name not in self.kept:
            known = ", ".join(self.kept) or "nothing"
            raise GraphError(self.name, f"it keeps {known}, not {name}")
        return self.kept.index(name)

    def hook(self, act: Act) -> Hook:
        """Let `act` see the gradient of this step; what it returns replaces it."""
        graph = self._graph
        return add_hook(graph.backend, self._node, graph.on_tensors(act))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphNode) and other._node is self._node

    def __hash__(self) -> int:
        return hash(self._node)

    def __repr__(self) -> str:
        return f"GraphNode({self.name} {list(self.shape)})"


class Graph:
    """Everything behind a tensor that gradients flow through, the newest step first."""

    def __init__(
        self,
        root: Node,
        backend: Any,
        wrap: Callable[[Any], Any],
        unwrap: Callable[[Any], Any],
        dtype: Any = np.float32,
    ):
        self.backend = backend
        self.wrap = wrap
        self.unwrap = unwrap
        self._root = root
        self._dtype = dtype

    @property
    def root(self) -> GraphNode:
        """The newest step: that of the tensor itself."""
        return GraphNode(self, self._root)

    @cached_property
    def _nodes(self) -> list[Node]:
        return _newest_first(self._root)

    def on_tensors(self, act: Act) -> Act:
        """A hook on tensors as a hook on raw values; it does not hold the graph."""
        wrap, unwrap = self.wrap, self.unwrap

        def act_on_raw(g: Any) -> Any:
            changed = act(wrap(g))
            return None if changed is None else unwrap(changed)

        return act_on_raw

    def __iter__(self) -> Iterator[GraphNode]:
        return (GraphNode(self, node) for node in self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, position: int) -> GraphNode:
        return GraphNode(self, self._nodes[position])

    def gradients(self) -> list[tuple[GraphNode, Any]]:
        """The gradient of every step, in the order of the way back; none is used up.

        It is `backward()` with a look at each gradient once it is whole, of results as
        well as of leaves. Afterwards the graph keeps what it kept; hooks of others run.
        """
        found: list[tuple[GraphNode, Any]] = []
        kept = [(node, node.kept) for node in self._nodes]
        recipes = recipes_behind(self._root)
        backend = self.backend
        nothing = backend.inner.from_numpy(np.zeros(self._root.shape, self._dtype))
        hooked = set(backend.hooked)
        hooks = [node.hook(lambda g, at=node: found.append((at, g))) for node in self]
        try:
            backend.backward(backend.tracked(nothing, self._root))
        finally:
            for hook in hooks:
                hook.remove()
            backend.hooked.difference_update(set(self._nodes) - hooked)
            for node, held in kept:
                node.kept = held
            for recipe in recipes:
                recipe.value = None
        return found

    @property
    def kept_bytes(self) -> int:
        """How many bytes the tape keeps alive for the gradient rules."""
        return sum(_arrays_kept(self._nodes).values())

    def __str__(self) -> str:
        """One line per step, the oldest first; long graphs are cut in the middle."""
        number = {node: i for i, node in enumerate(reversed(self._nodes))}
        lines = [repr(self)]
        for node, i in number.items():
            if len(number) > 40 and 20 <= i < len(number) - 20:
                if i == 20:
                    lines.append(f"  … {len(number) - 40} more")
                continue
            come = [str(number[p]) if p is not None else "·" for p in node.parents]
            came = f"  from {', '.join(come)}" if come else ""
            name = node.op.name if node.op else "leaf"
            lines.append(f"  {i:>3}  {name} {list(node.shape)}{came}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Graph({len(self)} steps)"


def _newest_first(root: Node) -> list[Node]:
    seen = {root}
    found = [root]
    for node in found:
        for parent in node.parents:
            if parent is not None and parent not in seen:
                seen.add(parent)
                found.append(parent)
    return sorted(found, key=lambda node: node.number)


def recipes_behind(root: Node) -> list[Recipe]:
    """The recipes behind a node that have not been carried out."""
    pending: list[Any] = [node.kept for node in _newest_first(root)]
    found: dict[int, Recipe] = {}
    while pending:
        held = pending.pop()
        if type(held) in (list, tuple):
            pending += held
        elif type(held) is Recipe and held.value is None and id(held) not in found:
            found[id(held)] = held
            pending += held.inputs
    return list(found.values())


def _arrays_kept(nodes: list[Node]) -> dict[int, int]:
    """The size of every array that is kept, each once, by its identity.

    Views count as what they keep alive: the array that owns the memory.
    """
    sizes: dict[int, int] = {}
    seen: set[int] = set()
    pending: list[Any] = [node.kept for node in nodes if node.kept]
    while pending:
        held = pending.pop()
        if id(held) in seen:
            continue
        seen.add(id(held))
        if type(held) in (list, tuple):
            pending += held
        elif type(held) is Recipe:
            pending.append(held.inputs if held.value is None else held.value)
        elif hasattr(held, "node"):
            pending.append(held.value)
        elif hasattr(held, "nbytes"):
            owner = held
            while getattr(owner, "base", None) is not None and hasattr(
                owner.base, "nbytes"
            ):
                owner = owner.base
            sizes[id(owner)] = owner.nbytes
    return sizes
