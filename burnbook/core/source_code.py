"""Source code that readers see: of an op with its gradient, and of generated functions.

Python reads the lines of a file through `linecache`. What is entered there is shown by
tracebacks, debuggers, `inspect.getsource` and `??`, whether there is a file or not.
"""

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from burnbook.core import __name__ as library
from burnbook.core.errors import RecordError

LONGEST = 120  # letters of a line in an error


def generate(
    title: str,
    head: str,
    result: str,
    scope: dict[str, Any],
    otherwise: tuple[str, str] | None = None,
) -> Callable[..., Any]:
    """Make a function from its head and what it returns, as text.

    title: what tracebacks call its file. scope: the names that the text refers to.
    otherwise: a condition, and what is returned where it holds.

    Example:
        >>> generate("twice", "twice(x)", "two * x", {"two": 2})(4)
        8
    """
    name, lines = head.partition("(")[0], [f"def {head}:"]
    if otherwise:
        lines += [f"    if {otherwise[0]}:", f"        return {otherwise[1]}"]
    lines += [f"    return {result}", ""]
    return define(name, "\n".join(lines), scope, title)


def define(
    name: str, text: str, scope: dict[str, Any], title: str = ""
) -> Callable[..., Any]:
    """Make the function of a name from its whole text.

    Example:
        >>> define("twice", "def twice(x):\\n    return x + x\\n", {})(4)
        8
    """
    file = f"<{title or name}>"
    scope["__name__"] = library
    exec(compile(text, file, "exec"), scope)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return scope[name]


def python_source(text: str, where: str) -> str:
    """A text that was written as Python, if it is Python.

    where: what wrote it, for the error. Every writer of Python ends with this.

    Raises:
        RecordError: it does not parse, which is a fault of the writer.

    Example:
        >>> python_source("x = [1, 2]", "scaffold")
        'x = [1, 2]'
    """
    try:
        ast.parse(text)
    except (SyntaxError, ValueError) as error:
        what = "the source that was written for this is no Python"
        line = (getattr(error, "text", None) or "").strip()[:LONGEST]
        facts = [(f"line {getattr(error, 'lineno', None) or 1}", line or str(error))]
        raise RecordError(where, what, facts, cure="shorter, plainer names") from None
    return text


def listing(forward: FunctionType, rules: Iterable[Any]) -> str:
    """The source of an op: its formula, its call of `grad`, and the rules named there.

    rules: functions or ops. Raises: OSError where there is no source.
    """
    parts = [_source(forward)]
    forward = inspect.unwrap(forward)
    file = inspect.getsourcefile(forward) or ""
    text = "".join(linecache.getlines(file, forward.__globals__))
    for node in ast.parse(text).body:
        match node:
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "grad"))) if (
                name == forward.__name__
            ):
                parts.append(ast.get_source_segment(text, node) or "")
            case _:
                pass
    for rule in dict.fromkeys(getattr(rule, "forward", rule) for rule in rules):
        if inspect.isfunction(rule) and rule.__name__ != "<lambda>":
            parts.append(_source(rule))
    return "\n\n".join(parts)


def shown_as(forward: FunctionType, listed: Callable[[], str]) -> FunctionType:
    """A copy of a function whose source is what `listed()` gives, for `??` to show.

    All but the function itself is a comment in it. Why: Python takes the end of the
    first function for the end of the source, and a comment for a part of the function.
    """

    def text() -> str:
        formula = _source(forward)
        rest = listed().removeprefix(formula).strip().splitlines()
        lines = [formula, "", *(f"    # {line}".rstrip() for line in rest)]
        return "\n".join(lines) + "\n"

    if not inspect.isfunction(forward):
        return forward
    code = forward.__code__
    file = f"{code.co_filename}:{forward.__name__}"
    linecache.cache[file] = (text,)  # asked for when somebody looks
    shown = FunctionType(
        code.replace(co_filename=file, co_firstlineno=1),
        forward.__globals__,
        forward.__name__,
        forward.__defaults__,
        forward.__closure__,
    )
    shown.__kwdefaults__ = forward.__kwdefaults__
    shown.__annotations__ = forward.__annotations__
    shown.__doc__ = forward.__doc__
    return shown


def _source(function: FunctionType) -> str:
    return textwrap.dedent(inspect.getsource(function)).rstrip()
