"""Float16 goes into a formula as float32, and comes out rounded once.

Half precision keeps 11 bits and ends at 65,504: a square, a sum or a difference inside
a formula would overflow, vanish or cancel although the result fits. So an op, and every
gradient rule, sees float32 instead. An op that moves numbers, rounds once, or widens by
itself says so (`takes_half=True`) and gets float16 as it is.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from burnbook.core.casting import HALF, SINGLE, cast
from burnbook.core.source_code import generate


def in_single(
    function: Callable[..., Any],
    xp: Any,
    values: tuple[Any, ...],
    attrs: dict[str, Any],
    extras: int = 0,
) -> Any:
    """Call array code with float32 for float16, and round what it gives to float16.

    extras: how many of its outputs only gradient rules see; they stay as they are.
    """
    out = function(xp, *map(_widened, values), **attrs)
    if not isinstance(out, tuple):
        return _narrowed(out)
    seen = len(out) - extras
    return (*map(_narrowed, out[:seen]), *out[seen:])


def _widened(value: Any) -> Any:
    if getattr(value, "dtype", None) != HALF:
        return value
    recording = getattr(value, "recording", None)
    if recording is not None:  # a capture of another type tells of the cast
        recording.refuse_other_type(value)
    return cast(value, SINGLE)


def _narrowed(value: Any) -> Any:
    return cast(value, HALF) if getattr(value, "dtype", None) == SINGLE else value


def computed_in_single(
    forward: Callable[..., Any], place: int, extras: int
) -> Callable[..., Any]:
    """The forward code of an op, in float32 where its input at this place is float16.

    Why: written for the very parameters of the code, as calls with stars take longer.
    """
    params = list(inspect.signature(forward).parameters.values())
    tensors = [p for p in params[1:] if p.kind is not p.KEYWORD_ONLY]
    attrs = [p.name for p in params if p.kind is p.KEYWORD_ONLY]
    star = tensors[0].kind is tensors[0].VAR_POSITIONAL
    scope: dict[str, Any] = {"forward": forward, "in_single": in_single, "HALF": HALF}
    heads = ["xp", *(f"*{p.name}" if star else _head(p, scope) for p in tensors)]
    heads += [] if star or not attrs else ["*"]
    heads += [_head(p, scope) for p in params if p.kind is p.KEYWORD_ONLY]
    names = [f"*{p.name}" if star else p.name for p in tensors]
    words = [f"{name}={name}" for name in attrs]
    first = f"{tensors[0].name}[0]" if star else tensors[place].name
    plain = f"forward({', '.join(['xp', *names, *words])})"
    given = f"({', '.join(names)},), dict({', '.join(words)})"
    wide = f"in_single(forward, xp, {given}, {extras})"
    made = generate(
        f"{forward.__name__}: float16 as float32",
        f"{forward.__name__}({', '.join(heads)})",
        plain,
        scope,
        (f"{first}.dtype is HALF", wide),
    )
    return functools.update_wrapper(made, forward)


def _head(param: inspect.Parameter, scope: dict[str, Any]) -> str:
    if param.default is param.empty:
        return param.name
    scope[f"_default_{param.name}"] = param.default
    return f"{param.name}=_default_{param.name}"
