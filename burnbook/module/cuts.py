"""Where a graph was cut: a new leaf that was computed from other leaves knows them.

A parameter is a leaf, so what a mapper or `Param.from_tensor` makes of a tracked tensor
is cut from its graph. A loss that goes through such a parameter has no gradient for
what it was computed from, and says so instead of giving a part of it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple
from weakref import WeakSet

from burnbook.backend.autodiff.tape import Node, note, notes_of
from burnbook.core.errors import GraphError
from burnbook.tensor import Tensor

NOTE = "cut"  # the name of the note on a leaf
MOST = 4  # parameters in an error


class Cut(NamedTuple):
    """Who cut a leaf from its graph, and the leaves that it was computed from.

    Why weak: a leaf would otherwise keep all that came before it, step by step.
    """

    where: str
    behind: WeakSet[Node]


def note_cut(made: Tensor, value: Tensor, where: str) -> Tensor:
    """The leaf, which knows what it was computed from if it was computed."""
    if value.is_require_grad() or not hasattr(value.value, "node"):
        return made
    cut = Cut(where, WeakSet(_leaves_behind(value)))
    if cut.behind:
        for node in _levels(made.value):
            note(node, NOTE, cut)
    return made


def check_whole(where: str, grads: Any, module: Any) -> None:
    """Raise if gradients reach leaves that were cut from the parameters of a module."""
    cuts = [found for node in grads.nodes() if (found := notes_of(node).get(NOTE))]
    if not cuts:
        return
    paths: dict[str, str] = {}
    for path, param in module.named_params():
        nodes = list(_levels(param.val().value)) if param.is_initialized else []
        by = [cut.where for cut in cuts if any(node in cut.behind for node in nodes)]
        if by:
            paths[path] = by[0]
    if not paths:
        return
    first = next(iter(paths))
    more = ", …" if len(paths) > MOST else ""
    facts = [
        ("cut by", ", ".join(dict.fromkeys(paths.values()))),
        ("without their whole gradient", ", ".join(list(paths)[:MOST]) + more),
    ]
    raise GraphError(
        where,
        "the graph is cut: the loss goes through copies computed from the "
        f"parameters of {type(module).__name__}",
        facts,
        f'functional_call(model, {{"{first}": tensor}}, x) with the computed tensor '
        "itself; for a copy that learns on its own, tensor.detach() before its change",
    )


def _levels(raw: Any) -> Iterator[Node]:
    """The node of each Autodiff around a value."""
    while hasattr(raw, "node"):
        yield raw.node
        raw = raw.value


def _leaves_behind(value: Tensor) -> Iterator[Node]:
    """The leaves that a tensor was computed from, also through earlier cuts."""
    waiting = list(_levels(value.value))
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if node.op is None:
            yield node
            cut = notes_of(node).get(NOTE)
            found = list(cut.behind) if cut else []
        else:
            found = [parent for parent in node.parents if parent is not None]
        new = [one for one in found if one not in seen]
        seen.update(new)
        waiting.extend(new)
