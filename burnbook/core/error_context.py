"""Where an error happened: the layers that were running.

All of this is read off the call stack and off the graph, and only when an error is made
(or where a decorator asks for it), so layers and operations pay nothing for it.
"""

import re
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

MOST_STEPS = 8  # how much of the way to a mismatch is drawn
MOST_TENSORS = 6


def running_modules(above: int = 1) -> str:
    """The path of the module whose code is running, "Model.conv1"; usually none is.

    above: how many callers to leave out.
    """
    return ".".join(name for name, _ in _layers(sys._getframe(above + 1)))  # pyright: ignore[reportPrivateUsage] - the documented way


def running_shapes(above: int = 1) -> list[tuple[str, str]]:
    """For each layer that is running, the shapes of the tensors in its `forward`.

    The rows read from the outermost layer inward: ("Model", "x [32, 784]").
    """
    rows: list[tuple[str, str]] = []
    found = _layers(sys._getframe(above + 1))  # pyright: ignore[reportPrivateUsage]
    if len(found) == 1 and _module_of(found[0][1]).startswith("burnbook.nn."):
        return rows  # a layer of ours says it all itself
    for depth, (name, frame) in enumerate(found):
        shapes = [
            f"{local} {list(value.shape)}"
            for local, value in _locals_in_order(frame)
            if local != "self" and _is_tensor(value)
        ]
        indent = "  " * (depth - 1) + "└ " if depth else ""
        rows.append((indent + name, ", ".join(shapes[:MOST_TENSORS]) or "no tensors"))
    return rows


def names_around(cls: type, texts: str) -> dict[str, Any]:
    """What the names in `texts` mean in the functions in which a class is made."""
    names, found = set(re.findall(r"\w+", texts)), {}
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_name != "<module>":
        if frame.f_globals.get("__name__") == cls.__module__:
            seen = {n: held for n, held in frame.f_locals.items() if n in names}
            found = seen | found
        frame = frame.f_back
    return found


def modules_around() -> dict[str, Any]:
    """The modules that the reader's own code names where something went wrong.

    Those of the innermost function outside of this library, and of its callers.
    """
    found: dict[str, Any] = {}
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    inner = False
    while frame is not None:
        if not _module_of(frame).startswith("burnbook."):
            if frame.f_code.co_name == "<module>" and inner:
                return found  # what runs a function need not be about its models
            inner = True
            names = (*frame.f_code.co_varnames, *frame.f_code.co_freevars)
            scopes = [{n: frame.f_locals[n] for n in names if n in frame.f_locals}]
            scopes += [
                {n: scope[n] for n in frame.f_code.co_names if n in scope}
                for scope in (frame.f_locals, frame.f_globals)
            ]
            for scope in scopes:
                for name, held in scope.items():
                    if hasattr(type(held), "named_params"):
                        found.setdefault(name, held)
            if found or frame.f_code.co_name == "<module>":
                return found
        frame = frame.f_back
    return found


def way_to(value: Any) -> str:
    """The last ops that a tracked value went through, with the shapes between them.

    It reads "[2, 3] → matmul [2, 4] → relu [2, 4]"; values without a graph have none.
    """
    node = getattr(value, "node", None)
    steps: list[str] = []
    while node is not None and node.op is not None and len(steps) < MOST_STEPS:
        steps.append(f"{node.op.name} {list(node.shape)}")
        node = _data(node.parents)
    if not steps:
        return ""
    if node is not None:
        steps.append(str(list(node.shape)) if node.op is None else "…")
    return " → ".join(reversed(steps))


def _data(parents: tuple[Any, ...]) -> Any:
    """The parent that the data came through: a result, or else the first input."""
    made = [node for node in parents if node is not None and node.op is not None]
    return min(made, key=lambda node: node.number) if made else parents[0]


def _layers(frame: FrameType | None) -> list[tuple[str, FrameType]]:
    """The modules whose methods are on the stack, the outermost first, with names."""
    chain: list[tuple[Any, FrameType]] = []
    while frame is not None:
        owner = _owner(frame)
        if owner is not None and not (chain and chain[-1][0] is owner):
            chain.append((owner, frame))
        frame = frame.f_back
    chain.reverse()
    found: list[tuple[str, FrameType]] = []
    above: Any = None
    for module, its_frame in chain:
        inside = above.find_part(module) if above is not None else None
        found.append((inside or type(module).__name__, its_frame))
        above = module
    return found


def _owner(frame: FrameType) -> Any:
    """The module that a frame runs a method of, or None."""
    code = frame.f_code
    if code.co_varnames[:1] != ("self",) or not code.co_argcount:
        return None
    if _module_of(frame).startswith("burnbook.module."):
        return None
    owner = frame.f_locals.get("self")
    return owner if hasattr(type(owner), "find_part") else None


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _locals_in_order(frame: FrameType) -> Iterator[tuple[str, Any]]:
    values = frame.f_locals
    for name in frame.f_code.co_varnames:
        if name in values:
            yield name, values[name]


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(type(value), "backend")
