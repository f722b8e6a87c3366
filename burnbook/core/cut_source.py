"""Where the reader's own lines end the graph behind a loss.

Asked only after `backward()` has failed: from the loss back through the names that it
was made of, to the first step that gives no gradient to what a model gave.
"""

import ast
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from burnbook.core.call_source import PACKAGE, Asked, asked_at, value_of

# Steps that give the same values without a graph: they can be left out.
ENDS = ("inner", "detach", "valid")
# Steps that give other things than Float tensors: another loss is needed.
CHANGES = (
    *("argmax", "argmin", "int", "bool", "sign", "topk_with_indices"),
    *("equal", "greater", "lower", "greater_equal", "lower_equal"),
)
LEAVES = ("into_scalar", "into_data", "to_data", "item", "tolist", "numpy")
CONVERTS = ("asarray", "array", "float")  # of NumPy, and Python's own
MAKES = ("from_numpy", "from_data", "from_floats", "require_grad")  # around those
MOST = 64  # expressions that are looked at


class Cut(NamedTuple):
    """The step that ends a graph, as it was written, and what it was asked of.

    kept: the same without the step, where that is what was meant.
    """

    step: str
    line: int
    kept: str | None

    def fact(self) -> tuple[str, str]:
        """The row of an error."""
        return "cut by", f"{self.step}, line {self.line}"

    def cure(self) -> str | None:
        """What to write in its place."""
        return self.kept and f"{self.kept} in place of {self.step}"


def cut_behind() -> Cut | None:
    """The step in the reader's lines that cut the graph of the failing line."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    asked = frame and asked_at(frame)
    if frame is None or not asked:
        return None
    call = asked.node
    if not isinstance(call, ast.Call):
        return None
    inner = [each for each in ast.walk(call) if _is_method(each, ("backward",))]
    start = inner[0] if inner else call
    assert isinstance(start, ast.expr)
    return _Search(asked, frame).cut(start)


def _is_method(node: ast.AST, names: tuple[str, ...]) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr in names


class _Search:
    """The expressions behind one, through the names of the reader's own function."""

    def __init__(self, asked: Asked, frame: FrameType):
        self.asked, self.frame = asked, frame
        scope: Any = asked.node
        while scope in asked.parents and not isinstance(scope, ast.FunctionDef):
            scope = asked.parents[scope]
        self.made: list[tuple[int, str, ast.expr]] = []
        for node in ast.walk(scope):
            if isinstance(node, ast.Assign):
                self.made += [
                    (node.lineno, target.id, node.value)
                    for target in node.targets
                    if isinstance(target, ast.Name)
                ]

    def cut(self, start: ast.expr) -> Cut | None:
        for node, _ in self.behind(start):
            of = _cut_of(node)
            if of is not None and any(self.is_model(each) for each in self.behind(of)):
                whole = self.whole(node)
                step = _text(self.asked, whole)
                plain = _is_method(node, ENDS) or whole is not node
                line = getattr(node, "lineno", 0)
                return Cut(step, line, _text(self.asked, of) if plain else None)
        return None

    def whole(self, node: ast.AST) -> ast.AST:
        """A step with what makes a tensor again of what it gave."""
        while (above := self.asked.parents.get(node)) is not None:
            inside = isinstance(above, ast.List) and len(above.elts) == 1
            if not inside and not _is_method(above, MAKES):
                called = self.asked.parents.get(above)
                is_asked = isinstance(above, ast.Attribute) and above.attr in MAKES
                if not (is_asked and isinstance(called, ast.Call)):
                    break
            node = above
        return node

    def behind(self, start: ast.expr) -> Iterator[tuple[ast.expr, int]]:
        """An expression, its parts, and what the names in it were set to."""
        waiting, seen = [(start, start.lineno)], 0
        while waiting and seen < MOST:
            node, line = waiting.pop(0)
            seen += 1
            yield node, line
            if isinstance(node, ast.Name):
                before = [row for row in self.made if row[1] == node.id]
                before = [row for row in before if row[0] < line]
                if before:
                    waiting.append((before[-1][2], before[-1][0]))
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    waiting.append((child, line))

    def is_model(self, found: tuple[ast.expr, int]) -> bool:
        """Whether an expression is a module, or a tensor that has a graph."""
        held: Any = value_of(found[0], self.frame)
        leaf = hasattr(getattr(held, "value", None), "node")
        return leaf or (
            hasattr(type(held), "named_params") and any(held.named_params())
        )


def _cut_of(node: ast.expr) -> ast.expr | None:
    """What a step is asked of that gives no gradient; None for any other."""
    match node:
        case ast.Call(func=ast.Attribute(value=of, attr=name), args=args):
            if name in (*ENDS, *CHANGES, *LEAVES):
                return of
            return args[0] if name in CONVERTS and args else None
        case ast.Call(func=ast.Name(id=name), args=[of]) if name in CONVERTS:
            return of
        case ast.Compare(left=of):
            return of
        case _:
            return None


def _text(asked: Asked, node: ast.AST) -> str:
    return ast.get_source_segment(asked.source, node) or ast.unparse(node)
