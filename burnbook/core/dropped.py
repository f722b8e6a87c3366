"""Whether the caller drops the result of a call.

Nothing in burnbook changes in place, so `model.valid()` on a line of its own does
nothing. The caller's next instruction tells: it throws the result away, or, as the last
line of a notebook's cell, shows it, which looks as if something had happened.
"""

import ast
import functools
import linecache
import sys
import warnings
from collections.abc import Callable
from itertools import islice
from opcode import opmap
from types import FrameType
from typing import Any, TypeVar

from burnbook.core.arguments import RAW, cause_of, explained
from burnbook.core.errors import ResultDropped, explain

POP_TOP, CACHE = opmap["POP_TOP"], opmap.get("CACHE", 0)
PRINT = opmap.get("PRINT_EXPR"), opmap.get("CALL_INTRINSIC_1")  # up to 3.11, from 3.12
TIMED = ("<timeit", "<magic-timeit")  # code that is run for its time
F = TypeVar("F", bound=Callable[..., Any])


def is_dropped(frame: FrameType) -> bool:
    """Whether the call that a frame makes now is a statement of its own.

    The last line of a notebook cell or of a prompt is shown, so it is not dropped.
    """
    return _next(frame) == POP_TOP


def is_shown(frame: FrameType) -> bool:
    """Whether the call is the last line of a cell or of a prompt, which is shown."""
    return _next(frame) in PRINT and frame.f_code.co_name == "<module>"


def _next(frame: FrameType) -> int | None:
    """The instruction after the call that a frame makes now."""
    code = frame.f_code.co_code
    at = frame.f_lasti + 2
    while at < len(code) and code[at] == CACHE:
        at += 2
    return code[at] if at < len(code) else None


def result_matters(
    cure: str, kept_in: int | str = 0, also: str = ""
) -> Callable[[F], F]:
    """Let a method warn when its result is thrown away: it changes nothing itself.

    cure: the line that keeps the result, such as "model = model.valid()", for where the
    caller's own line is not known. kept_in: which argument the result is a new form of;
    0 is the object itself, a name is that of something else. also: the name of a second
    result.
    """

    def wrap(method: F) -> F:
        @functools.wraps(method)
        def call(*args: Any, **named: Any) -> Any:
            try:
                made = method(*args, **named)
            except RAW as error:
                raise explained(error, method, args, named) from cause_of(error)
            frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
            after = _next(frame)
            if after == POP_TOP or after in PRINT:
                call = _call(frame)
                own = None if call is None else kept(call, kept_in, also)
                _tell(frame, args[0], method.__name__, own, own or cure)
            return made

        call.__again__ = wrap  # type: ignore[attr-defined] # around what checks more
        return call  # type: ignore[return-value] # the same signature

    return wrap


def _tell(frame: FrameType, owner: Any, name: str, own: str | None, cure: str) -> None:
    """Warn, unless the line shows what it makes on purpose, or is run for its time.

    Why: a tensor or a config is shown to be looked at. A model that is shown looks as
    if it had changed; `LinearConfig(2, 3).init(device).valid()` is shown on purpose.
    """
    if frame.f_code.co_filename.startswith(TIMED):
        return
    what = "the result is dropped, and nothing changes in place"
    if not is_dropped(frame):
        if own is None or not is_shown(frame) or not hasattr(owner, "into_record"):
            return
        what = "the result is shown, but not kept, and nothing changes in place"
    where = f"{type(owner).__name__}.{name}"
    warnings.warn(explain(where, what, cure=cure), ResultDropped, stacklevel=3)


def kept(call: ast.Call, kept_in: int | str = 0, also: str = "") -> str | None:
    """The statement that keeps the result of a call; None if it is of no variable.

    Example:
        >>> kept(ast.parse("net.fc1.no_grad()", mode="eval").body)
        'net = net.replace(fc1=net.fc1.no_grad())'
        >>> kept(ast.parse("net.blocks[0].eval()", mode="eval").body)
        'net = net.replace(blocks=[*net.blocks[:0], net.blocks[0].eval(), \
*net.blocks[0:][1:]])'

    Why: "model = model.no_grad()" for a part would freeze all of the model.
    """
    text = ast.unparse(call)
    if isinstance(kept_in, str):
        return f"{kept_in} = {text}"
    owner = _owner(call, kept_in)
    if also:
        known = isinstance(owner, ast.Name) and owner.id != "self"
        return f"{ast.unparse(owner)}, {also} = {text}" if owner and known else None
    while isinstance(owner, ast.Attribute | ast.Subscript):
        if isinstance(owner, ast.Attribute):
            owner, field = owner.value, owner.attr
            text = f"{ast.unparse(owner)}.replace({field}={text})"
        elif _is_position(owner.slice):
            place, owner = ast.unparse(owner.slice), owner.value
            held = ast.unparse(owner)
            text = f"[*{held}[:{place}], {text}, *{held}[{place}:][1:]]"
        else:
            return None
    known = isinstance(owner, ast.Name) and owner.id != "self"
    return f"{ast.unparse(owner)} = {text}" if owner and known else None


def _owner(call: ast.Call, kept_in: int) -> ast.expr | None:
    """What the result is a new form of: an argument, or what stands before the dot."""
    if kept_in:
        return call.args[kept_in - 1] if len(call.args) >= kept_in else None
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    inside = owner.value if isinstance(owner, ast.Subscript) else None
    if isinstance(inside, ast.Attribute) and inside.attr == "at":  # x.at[0].set(1.0)
        return inside.value
    return owner


def _is_position(place: ast.expr) -> bool:
    """Whether brackets hold a whole number or the name of one."""
    whole = isinstance(place, ast.Constant) and type(place.value) is int
    negative = isinstance(place, ast.UnaryOp) and _is_position(place.operand)
    return whole or negative or isinstance(place, ast.Name)


def _call(frame: FrameType) -> ast.Call | None:
    """The source of the call that a frame makes now, if it is at hand."""
    at = islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)
    first, last, start, end = next(at, (None, None, None, None))
    if first is None or last is None or start is None or end is None:
        return None
    name = frame.f_code.co_filename
    lines = linecache.getlines(name, frame.f_globals)[first - 1 : last]
    if not lines:
        return None
    lines[-1] = lines[-1].encode()[:end].decode(errors="replace")
    lines[0] = lines[0].encode()[start:].decode(errors="replace")
    try:
        found = ast.parse("".join(lines).strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return found if isinstance(found, ast.Call) else None
