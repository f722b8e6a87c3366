"""What the reader wrote where something went wrong: a name, a call, its arguments.

Asked only after a failure, so that a cure can have the reader's own names and numbers.
There is no answer where there is no source: in `python -c`, or a prompt.
"""

import ast
import functools
import inspect
import linecache
import re
from collections.abc import Sequence
from types import FrameType
from typing import Any, NamedTuple

LONGEST = 48  # letters of the reader's own that are put into a cure
JUMPS = ("LOAD_ATTR", "LOAD_METHOD")


class Call(NamedTuple):
    """A name that is read, and the call of it: `x.view(3, 2)`.

    of: the text before the dot, "x". args, named: the texts of the arguments; both
    None where the name is not called.
    """

    of: str
    args: tuple[str, ...] | None
    named: dict[str, str] | None


def operands_at(frame: FrameType) -> tuple[str, str] | None:
    """The texts on both sides of the operator that a frame runs now."""
    found = _node_at(frame, ast.BinOp)
    if found is None:
        return None
    node, _, text = found
    left, right = _shown(text, node.left), _shown(text, node.right)
    return (left, right) if left and right else None


def call_at(frame: FrameType, name: str) -> Call | None:
    """The name that a frame reads now, as the reader wrote it, with its arguments."""
    found = _node_at(frame, ast.Attribute)
    if found is None or found[0].attr != name:
        return None
    node, parents, text = found
    of = _shown(text, node.value)
    if of is None:
        return None
    outer = parents.get(node)
    if not isinstance(outer, ast.Call) or outer.func is not node:
        return Call(of, None, None)
    args = [_piece(text, each) for each in outer.args]
    named = {each.arg or "": _piece(text, each.value) for each in outer.keywords}
    if "" in named or None in args or None in named.values():
        return Call(of, None, None)
    return Call(of, tuple(map(str, args)), {k: str(v) for k, v in named.items()})


def callee_at(frame: FrameType, name: str) -> str | None:
    """What stands before the dot where a frame calls a method of this name now.

    Example:
        AdamConfig() of the line `optim = AdamConfig().init(model)`
    """
    found = _node_at(frame, ast.Call)
    if found is None:
        return None
    node, _, text = found
    called = node.func
    named = isinstance(called, ast.Attribute) and called.attr == name
    return _shown(text, called.value) if named else None


def fill(pattern: str, code: str, call: Call, first: str) -> str | None:
    """A line of code with the reader's names and numbers in place of the example's.

    pattern: parameters as in a definition, "*shape" or "k, dim=-1"; code: what has
    their names in it; first: the name in the code for what the call is asked of. None
    where the arguments are others.

    Example:
        >>> call = Call("image", ("2", "-1"), {})
        >>> fill("*shape", "x.reshape([*shape])", call, "x")
        'image.reshape([2, -1])'
    """
    texts = _bound(pattern, call)
    if texts is None:
        return None
    texts[first] = call.of
    if any(len(text) > LONGEST for text in texts.values()):
        return None
    return re.sub(
        r"(?<![\w.\"'])\*?([a-zA-Z_]\w*)(?![\w\"'])(?!=[^=])",
        lambda found: texts.get(found[1], found[0]),
        code,
    )


def _bound(pattern: str, call: Call) -> dict[str, str] | None:
    """The text for each parameter of a pattern; None if the call has others."""
    space: dict[str, Any] = {}
    exec(f"def taken({pattern}): ...", space)
    signature = inspect.signature(space["taken"])
    if call.args is None or call.named is None:
        return None
    try:
        bound = signature.bind(*call.args, **call.named)
    except TypeError:
        return None
    texts: dict[str, str] = {}
    for name, parameter in signature.parameters.items():
        value = bound.arguments.get(name, parameter.default)
        if parameter.kind is parameter.VAR_POSITIONAL:
            parts = [_spread(text) for text in bound.arguments.get(name, ())]
            texts[name] = ", ".join(parts)
            if not parts:
                return None
        else:
            texts[name] = value if name in bound.arguments else repr(value)
    return texts


def _spread(text: str) -> str:
    """The elements of a list or a tuple that is written out; anything else as it is."""
    match ast.parse(text, mode="eval").body:
        case ast.List() | ast.Tuple():
            return text.strip()[1:-1].rstrip(", ")
        case ast.Attribute() | ast.Starred():
            return f"*{text}"
        case _:
            return text


def _piece(text: str, node: ast.AST) -> str | None:
    return ast.get_source_segment(text, node)


def _shown(text: str, node: ast.expr) -> str | None:
    """An expression that a name can stand behind, as it was written."""
    piece = _piece(text, node)
    if piece is None or len(piece) > LONGEST or "\n" in piece:
        return None
    plain = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)
    return piece if isinstance(node, plain) else f"({piece})"


def _node_at(frame: FrameType, kind: type) -> Any:
    """The node that a frame runs now, the parents of all nodes, and the text."""
    code = frame.f_code
    try:
        where = list(code.co_positions())[frame.f_lasti // 2]
        lines = linecache.getlines(code.co_filename, frame.f_globals)
        text = "".join(lines)
        tree, parents = _parsed(text)
    except (SyntaxError, ValueError, IndexError, RecursionError):
        return None
    for node in ast.walk(tree) if text else ():
        if isinstance(node, kind) and _place(node) == where:
            return node, parents, text
    return None


def _place(node: ast.AST) -> tuple[int | None, ...]:
    names = ("lineno", "end_lineno", "col_offset", "end_col_offset")
    return tuple(getattr(node, name, None) for name in names)


@functools.lru_cache(maxsize=2)
def _parsed(text: str) -> tuple[ast.AST, dict[ast.AST, ast.AST]]:
    tree = ast.parse(text)
    inside: Sequence[ast.AST] = list(ast.walk(tree))
    return tree, {
        below: node for node in inside for below in ast.iter_child_nodes(node)
    }
