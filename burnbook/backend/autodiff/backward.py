"""The walk back: from the newest node to the leaves.

`walk` is the definition. `walk_arrays` does the same where nobody watches, no node has
a hook and every value is a plain array of one `Numpy`: what most training is. It calls
the rules of small ops without asking the backend, and adds up in place.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from burnbook.backend.autodiff.errors import explain_failure, no_rule, used_up
from burnbook.backend.autodiff.tape import Node
from burnbook.backend.numpy import Numpy
from burnbook.ops.elementwise import add
from burnbook.ops.reduce import sum_to
from burnbook.ops.shape import slice_

NO_ATTRS: dict[str, Any] = {}


def walk(  # noqa: C901 - one loop
    node: Node,
    grads: dict[Node, Any],
    run: Callable[..., Any],
    keep_graph: bool = False,
) -> dict[Node, Any]:
    """The gradients of the leaves behind `node`, whose own gradient is in `grads`.

    Where nodes have hooks, `grads` is a dict that calls them when a gradient is whole.
    keep_graph: leave what the nodes keep for another pass.
    """
    leaves: dict[Node, Any] = {}
    pending = [(node.number, node)]
    try:
        while pending:
            node = heappop(pending)[1]  # the newest one that has a gradient
            g = grads.pop(node)
            op, kept, parents = node.op, node.kept, node.parents
            if op is None:
                leaves[node] = g
                continue
            if kept is None:
                raise used_up(op)
            if not keep_graph:
                node.kept = None
            parts = run(op.backward, (g, *kept), _attrs(node, parents))
            for parent, part in zip(parents, parts):  # noqa: B905 - equal, and hot
                if parent is None:
                    continue
                if part is None:
                    no_rule(op, parents, parts)
                    continue
                if part.shape != parent.shape:
                    part = run(sum_to, (part,), {"shape": parent.shape})
                held = grads.get(parent)
                if held is None:
                    grads[parent] = part
                    heappush(pending, (parent.number, parent))
                else:
                    grads[parent] = run(add, (held, part), NO_ATTRS)
    except Exception as error:
        explained = explain_failure(error, node)
        if explained is error:
            raise
        raise explained from None
    return leaves


def walk_arrays(  # noqa: C901, PLR0915 - one loop, and hot
    node: Node, g: Any, device: Numpy, keep_graph: bool = False
) -> dict[Node, Any]:
    """The same for arrays: `g` is the gradient of `node`.

    The first gradient that an op hands on stays out of the heap: mostly the next
    one in turn is its own.
    """
    xp, run, kernels, limits = device.xp, device.run, device.kernels, device.limits
    leaves: dict[Node, Any] = {}
    sums: dict[Node, Any] = {}  # gradients among them that only we hold
    grads: dict[Node, Any] = {}  # of the nodes in the heap
    pending: list[tuple[int, Node]] = []
    spread: dict[Node, Any] = {}  # made of a first slice; others are added in place

    def collect(leaf: Node, part: Any) -> None:
        held = leaves.get(leaf)
        if held is None:
            leaves[leaf] = part
        elif leaf in sums:
            held += part
        else:
            leaves[leaf] = sums[leaf] = run(add, (held, part), NO_ATTRS)

    def queue(parent: Node, part: Any) -> None:
        held = grads.get(parent)
        if held is None:
            grads[parent] = part
            heappush(pending, (parent.number, parent))
        else:
            grads[parent] = run(add, (held, part), NO_ATTRS)

    def fold(part: Any, shape: tuple[int, ...]) -> Any:
        return run(sum_to, (part,), {"shape": shape})

    if node.op is None:
        return {node: g}
    try:
        while True:
            op, kept, parents = node.op, node.kept, node.parents
            if kept is None:
                raise used_up(op)
            if not keep_graph:
                node.kept = None
            following: Node | None = None
            back = op.backward
            if op.fast_path and (back not in kernels or g.size < limits.get(back, 0)):
                first, second = parents
                which = 0 if first is None else 1 if second is None else 2
                rules = back.of_two[which]
                if len(kept) == 2:
                    x, y = kept
                    left, right = rules(xp, g, x, y)
                else:
                    left, right = rules(xp, g, *kept) if kept else rules(xp, g)
                if first is not None and left is not None:
                    if left.shape != first.shape:
                        left = fold(left, first.shape)
                    if first.op is None:
                        collect(first, left)
                    elif grads:
                        queue(first, left)
                    else:
                        following, g = first, left
                if second is not None and right is not None:
                    if right.shape != second.shape:
                        right = fold(right, second.shape)
                    if second.op is None:
                        if second in sums:  # what collect does, without the call
                            held = sums[second]
                            held += right
                        else:
                            collect(second, right)
                    elif second is following:
                        g = run(add, (g, right), NO_ATTRS)
                    elif grads or following is not None:
                        queue(second, right)
                    else:
                        following, g = second, right
                if left is None or right is None:
                    no_rule(op, parents, (left, right))
            elif op is slice_ and (parent := parents[0]) is not None:
                held = (leaves if parent.op is None else grads).get(parent)
                if held is not None and held is spread.get(parent):
                    held[node.attrs["index"]] += g
                else:
                    (part,) = run(back, (g, *kept), _attrs(node, parents))
                    spread[parent] = part
                    (collect if parent.op is None else queue)(parent, part)
            else:
                parts = run(back, (g, *kept), _attrs(node, parents))
                for parent, part in zip(parents, parts, strict=True):
                    if parent is None:
                        continue
                    if part is None:
                        no_rule(op, parents, parts)
                        continue
                    if part.shape != parent.shape:
                        part = fold(part, parent.shape)
                    (collect if parent.op is None else queue)(parent, part)
            if following is None:
                if not pending:
                    return leaves
                node = heappop(pending)[1]
            elif pending:
                queue(following, g)
                node = heappop(pending)[1]
            else:
                node = following
                continue
            g = grads.pop(node)
    except Exception as error:
        explained = explain_failure(error, node)
        if explained is error:
            raise
        raise explained from None


def _attrs(node: Node, parents: tuple[Node | None, ...]) -> dict[str, Any]:
    """The attributes of a gradient: those of the op, and which inputs want one."""
    needs = {"needs": tuple([parent is not None for parent in parents])}
    return {**node.attrs, **needs} if node.attrs else needs
