"""The tensors that an object holds which was given in place of one of them.

`lstm(x)` gives a tuple, attention an MhaOutput: who hands them on as they are is told
which part is the tensor. Looked at only after a failure.
"""

import ast
import dataclasses
import sys
from collections import abc
from types import FrameType
from typing import Any

from burnbook.core.call_source import Asked, asked_at, call_at
from burnbook.core.errors import ArgumentError, UnknownNameError
from burnbook.core.other_names import closest

#: Of several tensors, those that are usually meant.
MEANT = ("context", "output", "logits", "hidden", "tensor")
MOST = 6  # tensors that a message lists


def is_tensor(value: object) -> bool:
    """Whether it is a tensor, which this floor knows only by what it has."""
    return hasattr(type(value), "into_data") and hasattr(value, "kind")


def tensors_in(value: object) -> dict[str, Any]:
    """The ways to the tensors of an object, the one that is usually meant first.

    Example:
        >>> list(tensors_in({"image": None})), list(tensors_in(3))
        ([], [])
    """
    found = {way: held for way, held in _members(value) if is_tensor(held)}
    first = [f".{name}" for name in MEANT if f".{name}" in found][:1]
    return {way: found[way] for way in dict.fromkeys([*first, *found])}


def _members(value: object) -> list[tuple[str, Any]]:
    if isinstance(value, type) or is_tensor(value):
        return []
    if isinstance(value, abc.Mapping):
        return [(f"[{key!r}]", value[key]) for key in value]
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return [(f"[{i}]", held) for i, held in enumerate(value)]
    names = getattr(value, "_fields", None) or getattr(type(value), "__slots__", ())
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    public = [name for name in names if not name.startswith("_")]
    return [(f".{name}", getattr(value, name, None)) for name in public]


def facts_of_tensors(value: object) -> list[tuple[str, str]]:
    """One line for each tensor of an object: the way to it, its kind and its shape."""
    found = list(tensors_in(value).items())[:MOST]
    return [(way, f"{held.kind.__name__} {list(held.shape)}") for way, held in found]


def cure_for_holder(value: object, name: str) -> str | None:
    """The tensor of an object that was given as `name`; None if it holds none."""
    ways = list(tensors_in(value))
    if not ways:
        return None
    if isinstance(value, list) and len(ways) == len(value) > 1:
        return f"{name}[0] of them, or Tensor.stack({name}, 0) for all"
    return name + ways[0]


def holds_tensors(*classes: type) -> None:
    """Let the objects of classes say which of their tensors has a name they lack.

    Why: other libraries give tuples and tensors there; `mha(x)[0]` and `mha(x).mean()`
    are answered with `.context`. No decorator: chapters show the classes' source.
    """
    for cls in classes:
        held: Any = cls
        held.__getattr__ = _of_a_tensor
        held.__getitem__ = _no_item
        held.__iter__ = _no_tuple


def _of_a_tensor(self: Any, name: str) -> Any:
    cls = type(self)
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
    ours = str(frame.f_globals.get("__name__", "")).startswith("burnbook.")
    if ours or name.startswith("_"):
        text = f"{cls.__name__!r} object has no attribute {name!r}"
        raise AttributeError(text, name=name, obj=self)
    call = call_at(frame, name)
    of = call.of if call else cls.__name__
    where, facts = f"{cls.__name__}.{name}", facts_of_tensors(self)
    ways = [way for way, held in tensors_in(self).items() if name in dir(held)]
    if not ways:
        near = closest(name, [n for n in dir(cls) if not n.startswith("_")])
        near = near or closest(name, [way.lstrip(".") for way in tensors_in(self)])
        cure = f"{of}.{near}" if near else None
        raise UnknownNameError(where, "there is no such name", facts, cure)
    way = ".loss" if name == "backward" and ".loss" in ways else ways[0]
    called = "" if call is None or call.args is None else "(…)"
    if call is not None and call.args is not None:
        named = [f"{key}={text}" for key, text in (call.named or {}).items()]
        called = f"({', '.join([*call.args, *named])})"
    what = f"{cls.__name__} holds tensors and is none itself"
    raise UnknownNameError(where, what, facts, f"{of}{way}.{name}{called}")


def _no_item(self: Any, place: object) -> Any:
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
    raise _named(self, f"{type(self).__name__}[…]", frame)


def _no_tuple(self: Any) -> Any:
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
    raise _named(self, type(self).__name__, frame)


def _named(holder: object, where: str, frame: FrameType) -> ArgumentError:
    """The error for an object that is read as a tuple: its parts have names."""
    found, ways = asked_at(frame), list(tensors_in(holder))
    what = "its parts have names, it is no tuple"
    cure = _by_names(found, ways) if found and ways else None
    cure = cure or " and ".join(ways)
    return ArgumentError(where, what, facts_of_tensors(holder), cure or None)


def _by_names(found: Asked, ways: list[str]) -> str | None:
    """What the reader wrote, with the names of the parts: `h = state.hidden`."""
    node: Any = found.node
    above: Any = found.parents.get(node)
    if isinstance(node, ast.Subscript):
        return found.text(node.value) + ways[0]
    if not isinstance(node, ast.Tuple):
        return None
    names = [ast.unparse(each) for each in node.elts]
    if isinstance(above, ast.Assign):
        of = found.text(above.value)
        pairs = zip(names, ways, strict=False)
        return "; ".join(f"{name} = {of}{way}" for name, way in pairs)
    whole = found.parents.get(above) if isinstance(above, ast.Tuple) else None
    if not isinstance(whole, ast.Assign) or whole.targets != [above]:
        return None
    places: list[ast.expr] = above.elts
    outer = [ast.unparse(e) if e is not node else "state" for e in places]
    line = f"{', '.join(outer)} = {ast.unparse(whole.value)}"
    parts = [f"state{way}" for way in ways[: len(names)]]
    return f"{line}; {', '.join(names[: len(parts)])} = {', '.join(parts)}"
