"""Building blocks · Autodiff. A decorator of any backend that remembers its ops.

Forward: run the op below, and keep what its gradient rules ask for. Backward: walk the
nodes from the newest to the oldest; each hands its gradient to the nodes it came from.
A gradient is an op too, run by the backend below, so decorators see it and a backend
may have a kernel for it; when the backend below tracks as well, it can be
differentiated again.
"""

from heapq import heappop, heappush
from typing import Any

from burnbook.autodiff.gradients import Gradients
from burnbook.autodiff.space import TrackedSpace
from burnbook.autodiff.tape import Node, Tracked
from burnbook.backend.base import Backend, Layer, Value
from burnbook.errors import GraphError
from burnbook.op import BackwardOp, Op
from burnbook.ops.elementwise import add
from burnbook.ops.reduce import sum_to

NO_ATTRS: dict[str, Any] = {}
_tracked_types: list[type[Tracked]] = [Tracked]


class Autodiff(Layer):
    """Decorate a backend so that it can differentiate: `Autodiff(Numpy())`.

    Values that need no gradient are plain values of the backend below; the others are
    `Tracked`. `Autodiff(Autodiff(B))` differentiates twice.
    """

    def __init__(self, inner: Backend):
        super().__init__(inner)
        self.ad_enabled = True
        self.depth = inner.depth + 1 if isinstance(inner, Autodiff) else 0
        self.tracked = _tracked_type(self.depth)
        self.space = TrackedSpace(self)

    def run(
        self, op: Op | BackwardOp, values: tuple[Value, ...], attrs: dict[str, Any]
    ) -> Value:
        tracked = self.tracked
        if len(values) == 2:
            x, y = values
            if type(x) is tracked:
                if type(y) is tracked:
                    parents = (x.node, y.node)
                    values = (x.value, y.value)
                else:
                    parents = (x.node, None)
                    values = (x.value, y)
            elif type(y) is tracked:
                parents = (None, y.node)
                values = (x, y.value)
            else:
                return self._inner.run(op, values, attrs)
        else:
            parents = tuple([v.node if type(v) is tracked else None for v in values])
            if not any(parents):
                return self._inner.run(op, values, attrs)
            values = tuple([v.value if type(v) is tracked else v for v in values])
        if op.keep is None:
            if isinstance(op, BackwardOp):
                return self.space.trace(op, values, parents, attrs)
            return self._inner.run(op, values, attrs)
        out = self._inner.run(op, values, attrs)
        kept = op.keep(values, out)
        if not op.extras:
            return tracked(out, Node(op, parents, kept, attrs, out.shape))
        first = out[0]
        made = tracked(first, Node(op, parents, kept, attrs, first.shape))
        return (made, *out[1:])

    def leaf(self, value: Value) -> Tracked:
        """A value that gradients are collected for."""
        return self.tracked(value, Node(None, (), None, NO_ATTRS, value.shape))

    def backward(self, root: Value) -> Gradients:
        """Collect the gradient of the sum of `root` for every leaf behind it.

        The graph behind `root` is used up: what it kept is freed on the way.
        """
        if type(root) is not self.tracked:
            raise GraphError(
                "backward",
                "no tensor behind this one requires a gradient",
                cure="call require_grad() on the inputs of the computation",
            )
        run = self._inner.run
        ones = self._inner.xp.ones_like(_raw(root.value))
        grads: dict[Node, Any] = {root.node: ones}
        leaves: dict[Node, Any] = {}
        pending = [(root.node.number, root.node)]
        while pending:
            node = heappop(pending)[1]  # the newest one that has a gradient
            g = grads.pop(node)
            op, kept, parents = node.op, node.kept, node.parents
            if op is None:
                leaves[node] = g
                continue
            if kept is None:
                raise GraphError(
                    op.name,
                    "the graph behind this tensor was used up by an earlier backward",
                    cure="compute the tensor again, or add the losses first",
                )
            node.kept = None
            parts = run(op.backward, (g, *kept), _attrs_with_needs(node, parents))
            for parent, part in zip(parents, parts):  # noqa: B905 - equal, and hot
                if parent is None or part is None:
                    continue
                if part.shape != parent.shape:
                    part = run(sum_to, (part,), {"shape": parent.shape})
                held = grads.get(parent)
                if held is None:
                    grads[parent] = part
                    heappush(pending, (parent.number, parent))
                else:
                    grads[parent] = run(add, (held, part), NO_ATTRS)
        return Gradients(leaves)

    def to_numpy(self, value: Value) -> Any:
        if type(value) is self.tracked:
            value = value.value
        return self._inner.to_numpy(value)


def _attrs_with_needs(node: Node, parents: tuple[Node | None, ...]) -> dict[str, Any]:
    """The attributes of a gradient: those of the op, and which inputs want one."""
    if len(parents) == 2:
        needs = _NEEDS_OF_TWO[parents[0] is not None][parents[1] is not None]
    else:
        needs = {"needs": tuple([parent is not None for parent in parents])}
    return {**node.attrs, **needs} if node.attrs else needs


_NEEDS_OF_TWO = tuple(
    tuple({"needs": (first, second)} for second in (False, True))
    for first in (False, True)
)


def _raw(value: Any) -> Any:
    while isinstance(value, Tracked):
        value = value.value
    return value


def _tracked_type(depth: int) -> type[Tracked]:
    """A type of its own for every depth of nesting, so that values tell their level."""
    while len(_tracked_types) <= depth:
        name = f"Tracked{len(_tracked_types)}"
        _tracked_types.append(type(name, (Tracked,), {"__slots__": ()}))
    return _tracked_types[depth]
