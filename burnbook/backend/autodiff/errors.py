"""What is said when a gradient cannot be had, and where.

While a graph is built nothing is recorded for this (unless a decorator below asks for
places). When a backward pass fails, the layer is found by the parameter that is nearest
to the failing op.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from burnbook.backend.autodiff.tape import Node, Parents, note, notes_of
from burnbook.core.error_context import modules_around, running_modules
from burnbook.core.errors import BurnbookError, GraphError
from burnbook.core.graph_ends import graph_ends

MOST_ENDS = 3  # lines that are shown where a graph may have been cut
MOST_NODES = 10_000  # how far back the nearest parameter is looked for


def cut_or_tracked(
    op: Any, out: Any, parents: Parents, attrs: dict[str, Any], tracked: Any
) -> Any:
    """The result of an op without gradient: whole numbers and truth values are free.

    Why: a Float stays tracked, so that a gradient wanted through it is an error and
    not silently zero.
    """
    if type(out) is tuple:
        return tuple([cut_or_tracked(op, v, parents, attrs, tracked) for v in out])
    if out.dtype.kind != "f":
        return out
    return tracked(out, Node(op, parents, (), attrs, out.shape))


def nothing_tracked(where: str) -> GraphError:
    """Why no gradient reaches this tensor, as far as the reader's models tell.

    Why: a frozen model, a weight that is no parameter and a graph that was cut need
    three different lines, and only one of them is `require_grad()` on an input.
    """
    what = "no tensor behind this one requires a gradient"
    cut = "argmax, comparisons, int(), detach(), inner() and NumPy end the graph"
    models = modules_around()
    for name, model in models.items():
        kind, params = type(model).__name__, list(model.named_params())
        floats = [param for _, param in params if param.kind.__name__ == "Float"]
        if not floats:
            facts = [f"{kind} has no parameter: a field of type Tensor is not trained"]
            cure = "Param.from_tensor(…) for a weight, in a field of type Param"
            return GraphError(where, what, facts, cure)
        if not any(param.is_require_grad for param in floats):
            facts = [f"all parameters of {kind} are frozen, or it came from valid()"]
            cure = f"{_kept(name)} = {name}.unfreeze_group(ParamGroup.all())"
            if name == "self":
                cure = "model = model.unfreeze_group(ParamGroup.all()), before training"
            return GraphError(where, what, [*facts, PARAM_GROUP], cure)
    ends = graph_ends(models.values())
    if ends and (models or ends[0].is_likely):
        facts = ["the graph may end here:", *[end.where for end in ends[:MOST_ENDS]]]
        return GraphError(where, what, facts, ends[0].cure)
    if models:
        kinds = ", ".join(dict.fromkeys(type(m).__name__ for m in models.values()))
        facts = [f"parameters of {kinds} do, so the graph was cut on the way: {cut}"]
        cure = "a loss of what forward gave, by operations on Float tensors"
        return GraphError(where, what, facts, cure)
    cure = f"require_grad() on the inputs, before they are used; {cut}"
    return GraphError(where, what, cure=cure)


PARAM_GROUP = "from burnbook.optim import ParamGroup"


def _kept(name: str) -> str:
    return name if name.isidentifier() else "model"


def no_rule(op: Any, parents: Parents, parts: tuple[Any, ...]) -> None:
    """Complain about an input that wants a gradient and has no rule for one."""
    for i, (parent, part) in enumerate(zip(parents, parts, strict=True)):
        name = op.inputs[0 if op.many else i]
        if parent is not None and part is None and name not in op.rules:
            raise GraphError(
                op.name,
                f"there is no gradient for its input {name}, and one is needed",
                cure=f"detach() on {name}, or {op.name}.grad({name}=…)",
            )


def used_up(op: Any) -> GraphError:
    """The error for a node that an earlier backward pass has been at."""
    return GraphError(
        op.name,
        "the graph behind this tensor was used up by an earlier backward",
        cure="backward(keep_graph=True) but for the last one, or add the losses "
        "first, or compute the tensor again",
    )


def explain_failure(error: Exception, node: Node) -> Exception:
    """An error of a backward pass, with the op it happened in and the layer.

    Errors of ours get the layer's path; others keep their class and text, and get a
    note.
    """
    op = node.op
    if op is not None and op.backward is None and not isinstance(error, GraphError):
        error = GraphError(
            op.name,
            "it has no gradient, and one is needed through it",
            cure=f"detach() on its result, or {op.name}.grad(…) with a rule",
        )
    place, near = str(notes_of(node).get("place", "")), ""
    if not place:
        near, own = _nearest_parameter(node)
        place = near.rpartition(".")[0] if own else ""
    if isinstance(error, BurnbookError):
        error.path = place
        if op is not None and error.where.partition(".")[0] != op.name:
            text = f"{op.name}, result Float {list(node.shape)}"
            error.facts.append(("gradient of", text))
        if near:
            error.facts.append(("nearest parameter behind it", near))
        return error
    name = op.name if op is not None else "a leaf"
    where = f" in {place}" if place else f", after {near}" if near else ""
    error.add_note(f"in the gradient of {name}{where}, result {list(node.shape)}")
    return error


def remembering_places(run: Callable[..., Any], tracked: Any) -> Callable[..., Any]:
    """A `run` that notes on every node which layer it was made in."""

    def run_here(op: Any, values: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        out = run(op, values, attrs)
        if hasattr(op, "source"):  # a gradient; its place is that of its op
            return out
        for made in out if type(out) is tuple else (out,):
            if type(made) is tracked:
                note(made.node, "place", running_modules())
        return out

    return run_here


def _nearest_parameter(node: Node) -> tuple[str, bool]:
    """The name of the parameter nearest to a node, and whether its op takes it."""
    names = dict(_parameters_at_hand())
    if not names:
        return "", False
    seen = {node}
    pending = deque([node])
    while pending and len(seen) < MOST_NODES:
        at = pending.popleft()
        if at in names:
            return names[at], at in node.parents
        for parent in at.parents:
            if parent is not None and parent not in seen:
                seen.add(parent)
                pending.append(parent)
    return "", False


def _parameters_at_hand() -> Iterator[tuple[Node, str]]:
    """Every parameter of the modules that the callers hold, by node."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - the documented way
    met: set[int] = set()
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if hasattr(type(value), "named_params") and id(value) not in met:
                met.add(id(value))
                for path, param in value.named_params():
                    held = param.val().value if param.is_initialized else None
                    leaf = getattr(held, "node", None)
                    if leaf is not None:
                        yield leaf, f"{type(value).__name__}.{path}"
        frame = frame.f_back
