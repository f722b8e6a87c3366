"""Visitors look at every parameter, mappers replace each one.

A visitor or mapper is any object with the methods below; the book's two names, `visit`
and `map`, stand for all three kinds.
"""

import inspect
from collections.abc import Callable
from typing import Any

from burnbook.core.argument_cures import given
from burnbook.core.dtypes import Float, Int
from burnbook.core.errors import ArgumentError, BurnbookError
from burnbook.module.param import ParamId
from burnbook.tensor import Tensor


class ModuleVisitor:
    """Looks at every parameter of a module; override what you want to see.

    Example:
        >>> class Names(ModuleVisitor):
        ...     def visit(self, id, tensor): ...
    """

    def visit(self, id: ParamId, tensor: Tensor) -> None:  # noqa: A002 - Burn's word
        """Look at a parameter of any kind."""

    def visit_float(self, id: ParamId, tensor: Tensor) -> None:  # noqa: A002
        """Look at a Float parameter."""
        self.visit(id, tensor)

    def visit_int(self, id: ParamId, tensor: Tensor) -> None:  # noqa: A002
        """Look at an Int parameter."""
        self.visit(id, tensor)

    def visit_bool(self, id: ParamId, tensor: Tensor) -> None:  # noqa: A002
        """Look at a Bool parameter."""
        self.visit(id, tensor)


class ModuleMapper:
    """Makes a tensor from every parameter of a module; override what you change.

    Example:
        >>> class Halve(ModuleMapper):
        ...     def map_float(self, id, tensor):
        ...         return tensor * 0.5
    """

    def map(self, id: ParamId, tensor: Tensor) -> Tensor:  # noqa: A002 - Burn's word
        """Replace a parameter of any kind."""
        return tensor

    def map_float(self, id: ParamId, tensor: Tensor) -> Tensor:  # noqa: A002
        """Replace a Float parameter."""
        return self.map(id, tensor)

    def map_int(self, id: ParamId, tensor: Tensor) -> Tensor:  # noqa: A002
        """Replace an Int parameter."""
        return self.map(id, tensor)

    def map_bool(self, id: ParamId, tensor: Tensor) -> Tensor:  # noqa: A002
        """Replace a Bool parameter."""
        return self.map(id, tensor)


class Labeled:
    """A mapper of Float parameters that knows their paths: for groups, and for errors.

    Why: what is wrong with one parameter of many should say which one it is.
    """

    def __init__(self, mapper: Any, params: list[tuple[str, Any]], group: Any = None):
        if isinstance(mapper, type) or not hasattr(mapper, "map_float"):
            what = f"{given(mapper)} is not a quantizer"
            cure = "Quantizer(Calibration.MinMax, QuantScheme())"
            raise ArgumentError("quantize_weights", what, cure=cure)
        self.mapper = mapper
        self.paths = {param.id: path for path, param in params}
        self.group = group or getattr(mapper, "group", None)

    def map_float(self, id: ParamId, tensor: Tensor) -> Tensor:  # noqa: A002
        """What the mapper makes of a parameter, if it is one of the group."""
        path = self.paths[id]
        if self.group is not None and not self.group.matches(id, path):
            return tensor
        try:
            return self.mapper.map_float(id, tensor)
        except BurnbookError as error:
            error.facts.append(("param", path))
            raise


Act = Callable[[ParamId, Tensor], Any]


def per_kind(helper: Any, verb: str) -> tuple[Act | None, Act | None, Act | None]:
    """What to call for Float, Int and Bool: `visit_float`, else `visit`, else nothing.

    Nothing is told from "does nothing", so that a kind nobody asks for costs nothing.
    """
    names = (f"{verb}_float", f"{verb}_int", f"{verb}_bool")
    acts = [
        getattr(helper, name, None) or getattr(helper, verb, None) for name in names
    ]
    if not any(acts):
        name = type(helper).__name__
        what = f"{name} has none of {', '.join(names)} or {verb}"
        cure = f"an object of a class with def {verb}_float(self, id, tensor)"
        raise ArgumentError(verb, what, cure=cure)
    if isinstance(helper, type):
        name = helper.__name__
        what = f"{name} is a class, where an object of it is needed"
        raise ArgumentError(verb, what, cure=f"model.{verb}({name}())")
    for act in acts:
        _takes_two(act, type(helper).__name__)
    return acts[0], acts[1], acts[2]


def _takes_two(act: Act | None, name: str) -> None:
    """Refuse a method that does not take the id and the tensor."""
    if act is None:
        return
    try:
        inspect.signature(act).bind(None, None)
    except TypeError:
        called = getattr(act, "__name__", "map")
        what = f"it does not take the id and the tensor: {inspect.signature(act)}"
        cure = f"def {called}(self, id, tensor)"
        raise ArgumentError(f"{name}.{called}", what, cure=cure) from None
    except ValueError:  # a builtin that does not say what it takes
        return


def pick(acts: tuple[Act | None, Act | None, Act | None], kind: object) -> Act | None:
    """The one of the three for this kind."""
    return acts[0] if kind is Float else acts[1] if kind is Int else acts[2]
