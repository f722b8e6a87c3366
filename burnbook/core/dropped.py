"""Whether the caller drops the result of a call.

Nothing in burnbook changes in place, so `model.valid()` on a line of its own does
nothing. The caller's next instruction tells: it throws the result away.
"""

import functools
import sys
import warnings
from collections.abc import Callable
from opcode import opmap
from types import FrameType
from typing import Any, TypeVar

from burnbook.core.errors import ResultDropped, explain

POP_TOP, CACHE = opmap["POP_TOP"], opmap.get("CACHE", 0)
F = TypeVar("F", bound=Callable[..., Any])


def is_dropped(frame: FrameType) -> bool:
    """Whether the call that a frame makes now is a statement of its own.

    The last line of a notebook cell or of a prompt is shown, so it is not dropped.
    """
    code = frame.f_code.co_code
    at = frame.f_lasti + 2
    while at < len(code) and code[at] == CACHE:
        at += 2
    return at < len(code) and code[at] == POP_TOP


def result_matters(cure: str) -> Callable[[F], F]:
    """Let a method warn when its result is thrown away: it changes nothing itself.

    cure: the line that keeps the result, such as "model = model.valid()".
    """

    def wrap(method: F) -> F:
        @functools.wraps(method)
        def call(*args: Any, **named: Any) -> Any:
            made = method(*args, **named)
            frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
            if is_dropped(frame):
                name = f"{type(args[0]).__name__}.{method.__name__}"
                what = "the result is dropped, and nothing changes in place"
                warnings.warn(
                    explain(name, what, cure=cure), ResultDropped, stacklevel=2
                )
            return made

        return call  # type: ignore[return-value] # the same signature

    return wrap
