"""What the reader wrote where something went wrong: a name, a call, its arguments.

Asked only after a failure, so that a cure can have the reader's own names and numbers.
There is no answer where there is no source: in `python -c`, or a prompt.
"""

import ast
import dis
import functools
import inspect
import linecache
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

LONGEST = 48  # letters of the reader's own that are put into a cure
PACKAGE = str(Path(__file__).parents[1]) + os.sep
OF_NUMPY = "__array_ufunc__"  # what NumPy asks of the tensor beside an array
UNKNOWN = object()  # a value that is not looked up
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "lower",
    ast.LtE: "lower_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}
BETWEEN = tuple(f"{PACKAGE}{part}{os.sep}" for part in ("core", "tensor", "exporters"))


class Call(NamedTuple):
    """A name that is read, and the call of it: `x.view(3, 2)`.

    of: the text before the dot, "x". args, named: the texts of the arguments; both
    None where the name is not called.
    """

    of: str
    args: tuple[str, ...] | None
    named: dict[str, str] | None


CALLS = (ast.UnaryOp, ast.Call)


def operands_at(frame: FrameType) -> tuple[str, str] | None:
    """The texts on both sides of the operator that a frame runs now."""
    found = _node_at(frame, ast.BinOp)
    if found is None:
        return None
    node, _, text = found
    left, right = _shown(text, node.left), _shown(text, node.right)
    return (left, right) if left and right else None


def texts_of(op: str, values: Sequence[object]) -> list[str | None]:
    """What the reader wrote for each value, where an operator or a method was asked.

    op: the name of what was asked. None for what the reader's line does not have: what
    came of a step in between, or where a function of the library asked.
    """
    asked = _asked()
    if asked is None:
        return [None] * len(values)
    frame, outermost = asked
    found = _node_at(frame, (ast.BinOp, ast.AugAssign, ast.Compare, *CALLS))
    if found is None:
        return [None] * len(values)
    node, _, text = found
    pairs = [*_by_name(node, frame), *_in_places(node, op, outermost)]
    shown: list[str | None] = []
    for value in values:
        at = next((each for each, held in pairs if _same(held, value)), None)
        shown.append(None if at is None else _shown(text, at))
    return shown


class Asked(NamedTuple):
    """What a frame runs now: the outermost node at its place, and the text around."""

    node: ast.AST
    parents: dict[ast.AST, ast.AST]
    source: str

    def text(self, node: ast.expr) -> str:
        """An expression as it was written, in parentheses where a dot may follow."""
        return _shown(self.source, node) or f"({ast.unparse(node)})"


def asked_at(frame: FrameType) -> Asked | None:
    """What a frame runs now, for forms of Python that are no call."""
    found = _node_at(frame, (ast.expr, ast.If, ast.While, ast.Assert, ast.AugAssign))
    return found and Asked(*found)


def _asked() -> tuple[FrameType, FrameType] | None:
    """The reader's frame, and that of the function of ours that it calls."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
    outermost = frame
    while frame is not None and frame.f_code.co_filename.startswith(BETWEEN):
        frame, outermost = frame.f_back, frame
    if frame is None or frame.f_code.co_filename.startswith(PACKAGE):
        return None
    return frame, outermost


def is_reflected() -> bool:
    """Whether the operator that runs now was asked by what stands on its right."""
    asked = _asked()
    return asked is not None and _is_reflected(asked[1])


def _is_reflected(method: FrameType) -> bool:
    name = method.f_code.co_qualname
    if name.endswith(OF_NUMPY):
        return method.f_locals["inputs"][0] is not method.f_locals["self"]
    return "_reflected" in name or name.rpartition(".")[2].startswith("__r")


def _same(one: object, other: object) -> bool:
    """Whether two values are one object, or equal numbers of Python."""
    number = isinstance(one, int | float) and type(one) is type(other)
    return one is other or (number and one == other)


def _in_places(
    node: ast.AST, op: str, outermost: FrameType
) -> Iterator[tuple[ast.expr, object]]:
    """What is written at the places of the arguments of a function, with the values."""
    names, given = _given(outermost)
    of_numpy = outermost.f_code.co_name == OF_NUMPY
    match node:
        case ast.BinOp(left=a, right=b) | ast.AugAssign(target=a, value=b):
            exprs = [a, b]
            if _is_reflected(outermost) and not of_numpy:
                exprs.reverse()
        case ast.Compare(left=a, ops=[sign], comparators=[b]):
            exprs = [a, b]
            if COMPARISONS.get(type(sign), op) != op:  # 5 > x is x.lower(5)
                exprs.reverse()
        case ast.UnaryOp(operand=a):
            exprs = [a]
        case ast.Call(func=of, args=exprs):
            asked = names[:1] == ("self",) or len(given) == len(exprs) + 1
            if isinstance(of, ast.Attribute) and asked:
                exprs = [of.value, *exprs]
        case _:
            return
    if not any(isinstance(each, ast.Starred) for each in exprs):
        yield from zip(exprs, given, strict=False)


def _given(frame: FrameType) -> tuple[tuple[str, ...], list[object]]:
    """The parameters of a function that runs, and what they were given by position."""
    code, held = frame.f_code, frame.f_locals
    names = code.co_varnames[: code.co_argcount]
    given = [held[name] for name in names if name in held]
    if code.co_flags & inspect.CO_VARARGS:
        rest = held[code.co_varnames[code.co_argcount + code.co_kwonlyargcount]]
        given = [*rest] if code.co_name == OF_NUMPY else [*given, *rest]
    return names, given


def _by_name(node: ast.AST, frame: FrameType) -> Iterator[tuple[ast.expr, object]]:
    """The names below a node with what they stand for."""
    for each in ast.walk(node):
        if isinstance(each, ast.expr):
            value = value_of(each, frame)
            if value is not UNKNOWN:
                yield each, value


def value_of(node: ast.expr, frame: FrameType) -> object:
    """What a name stands for, or a constant; UNKNOWN for what is to be computed."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
            return -value if isinstance(value, int | float) else UNKNOWN
        case ast.Name(id=name):
            return frame.f_locals.get(name, frame.f_globals.get(name, UNKNOWN))
        case ast.Attribute(value=of, attr=name):
            return getattr(value_of(of, frame), "__dict__", {}).get(name, UNKNOWN)
        case _:
            return UNKNOWN


#: Instructions that read an attribute.
READS = {dis.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD") if name in dis.opmap}


def call_at(frame: FrameType, name: str) -> Call | None:
    """The name that a frame reads now, as the reader wrote it, with its arguments.

    None where `getattr` or `hasattr` reads it: that is not worth a search.
    """
    if frame.f_code.co_code[frame.f_lasti] not in READS:
        return None
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


class OwnCall(NamedTuple):
    """A call of the reader's own: what is called, and the arguments by position."""

    of: str
    args: tuple[str, ...]


def own_call(name: str) -> OwnCall | None:
    """The reader's own call of a function that runs now, as it was written."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    found = None if frame is None else _node_at(frame, ast.Call)
    if found is None:
        return None
    node, _, text = found
    of, args = _piece(text, node.func), [_piece(text, each) for each in node.args]
    is_it = not name or (of is not None and re.split(r"\W", of)[-1] == name)
    if of is None or not is_it or "\n" in of:
        return None
    if any(arg is None or len(arg) > 2 * LONGEST or "\n" in arg for arg in args):
        return None
    return OwnCall(of if len(of) <= LONGEST else name, tuple(map(str, args)))


def own_call_of() -> OwnCall | None:
    """The reader's own call that runs now, whatever is called: `model(x)`."""
    return own_call("")


def texts_of_call(name: str) -> tuple[str, ...]:
    """The arguments by position of the reader's own call of a function; or none."""
    found = own_call(name)
    return () if found is None else found.args


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
        lambda found: _in_place(texts.get(found[1]), found),
        code,
    )


SIGNS = r"[-+*/@%&|^<>~]"  # operators, beside which a longer expression is in brackets
WHOLE = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Dict)


def _in_place(text: str | None, found: re.Match[str]) -> str:
    """What stands for a name, in brackets where what is around would tear it apart."""
    if text is None:
        return found[0]
    before, after = found.string[: found.start()], found.string[found.end() :]
    beside = re.search(SIGNS + r"\s*$", before) or re.match(r"\s*" + SIGNS, after)
    if not (after.startswith(".") or (beside and not found[0].startswith("*"))):
        return text
    is_number = isinstance(_expression(text), ast.Constant)
    return text if is_number and not after.startswith(".") else in_brackets(text)


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:  # several, as of *shape
        return None


def in_brackets(text: str) -> str:
    """An expression that a dot may follow."""
    node = _expression(text)
    closed = text.startswith("(") and text.endswith(")") and _closes(text)
    return text if node is None or isinstance(node, WHOLE) or closed else f"({text})"


def _closes(text: str) -> bool:
    """Whether the first bracket is closed by the last one."""
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return i == len(text) - 1
    return False


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
    plain = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List)
    return piece if isinstance(node, plain) else f"({piece})"


def _node_at(frame: FrameType, kind: type | tuple[type, ...]) -> Any:
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
