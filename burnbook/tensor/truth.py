"""What a form of Python that asks for the truth of a tensor is, said with tensors.

`if`, `and`, `not`, `0 < x < 1`, `max(x, 0)` and the like ask whether a tensor is true;
with several elements there is no answer. The line that asked tells what was meant, so
the cure is that line in burnbook's functions, with the reader's names. All of this is
looked up only after a failure.
"""

import ast
from collections.abc import Sequence
from types import FrameType
from typing import NamedTuple

from burnbook.core.call_source import UNKNOWN, Asked, asked_at, value_of
from burnbook.core.dtypes import Bool
from burnbook.core.errors import ShapeError
from burnbook.tensor.facts import kind_and_shape
from burnbook.tensor.methods import NUMBERS, Methods

ALL_OR_ANY = "{0}.all().into_scalar(), or {0}.any().into_scalar()"
TESTS = (ast.If, ast.While, ast.IfExp, ast.Assert, ast.comprehension)


class Line(NamedTuple):
    """The reader's line, its frame, and the tensor that was asked."""

    asked: Asked
    frame: FrameType
    tensor: Methods

    def text(self, node: ast.expr) -> str:
        """An expression behind which a dot can stand."""
        return self.asked.text(node)

    def value(self, node: ast.expr) -> object:
        """What a name stands for; UNKNOWN for what is to be computed."""
        return value_of(node, self.frame)

    def is_number(self, node: ast.expr) -> bool:
        """Whether an expression is known to be a number."""
        return isinstance(self.value(node), NUMBERS)

    def may_be_tensor(self, node: ast.expr) -> bool:
        """Whether an expression is a tensor, or is not known before it is computed."""
        held = self.value(node)
        return held is UNKNOWN or isinstance(held, Methods)

    def mask(self, node: ast.expr) -> str:
        """A condition as a Bool tensor, element by element."""
        match node:
            case ast.Compare(ops=[_]) if _compares(node):
                return self.text(node)
            case ast.Compare(left=first, comparators=others) if _compares(node):
                parts, left = [], first
                for op, right in zip(node.ops, others, strict=True):
                    pair = ast.Compare(left, [op], [right])
                    parts.append(f"({ast.unparse(pair)})")
                    left = right
                return _folded(parts, "bool_and")
            case ast.BoolOp(op=op, values=values):
                name = "bool_and" if isinstance(op, ast.And) else "bool_or"
                return _folded([self.mask(each) for each in values], name)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"{self.mask(operand)}.bool_not()"
            case _:
                held = self.value(node)
                plain = isinstance(held, Methods) and held.kind is Bool
                return self.text(node) + ("" if plain else ".bool()")


def truth_error(tensor: Methods, frame: FrameType) -> ShapeError:
    """The error for a tensor of several elements whose truth is asked."""
    count = tensor.value.size
    what = f"{count} elements are neither true nor false"
    facts = [("tensor", kind_and_shape(tensor))]
    asked = asked_at(frame)
    cure = asked and _cure(Line(asked, frame, tensor))
    return ShapeError("truth value", what, facts, cure or ALL_OR_ANY.format("x"))


def _cure(line: Line) -> str | None:
    """The form that asks at a place of the reader's line, in burnbook's functions."""
    node = line.asked.node
    match node:
        case ast.Call():
            return _of_call(line, node)
        case ast.Compare(ops=[ast.In() | ast.NotIn() as op], comparators=[held]):
            one, many = line.text(node.left), ast.unparse(held)
            if isinstance(op, ast.In):
                return f"any({one} is each for each in {many})"
            return f"all({one} is not each for each in {many})"
        case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
            return _of_test(line, node.test, node)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            tests = [test for each in node.generators for test in each.ifs]
            return _of_test(line, tests[0], node) if len(tests) == 1 else None
        case ast.expr():
            return _of_condition(line, node)
        case _:
            return None


def _of_condition(line: Line, node: ast.expr) -> str | None:
    """A condition, or the test that it is a part of."""
    parent = line.asked.parents.get(node)
    while isinstance(parent, ast.BoolOp) or (
        isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    ):
        node, parent = parent, line.asked.parents.get(parent)
    if isinstance(parent, TESTS):
        tests = getattr(parent, "ifs", [getattr(parent, "test", None)])
        if node in tests:
            return _of_test(line, node, parent)
    if not _is_condition(line, node):
        return None
    if _is_mixed(line, node):
        return _one_truth(line, node)
    whole = line.mask(node)
    if isinstance(node, ast.UnaryOp):
        one = f"not {line.mask(node.operand)}.any().into_scalar()"
        return f"{whole} for each element, or {one} for one answer"
    default = _default(line, node)
    return f"{default}; or {whole} for each element" if default else whole


def _default(line: Line, node: ast.expr) -> str | None:
    """`x = given or other`, where what is given is no mask: the other is a default."""
    match node:
        case ast.BoolOp(op=ast.Or(), values=[ast.Name(id=name) as given, other]):
            held = line.value(given)
            if isinstance(held, Methods) and held.kind is not Bool:
                return f"{name} if {name} is not None else {ast.unparse(other)}"
        case _:
            pass
    return None


def _of_test(line: Line, test: ast.expr, of: ast.AST) -> str | None:
    """The test of an if, a while, an assert or a filter; a choice for each element."""
    if not _is_condition(line, test):
        return None
    if isinstance(of, ast.IfExp) and not _is_mixed(line, test):
        chosen = _choice(line, test, of)
        if chosen:
            return chosen
    one = _one_truth(line, test)
    match test:
        case ast.Name(id=name) if line.tensor.kind is not Bool:
            return f"{name} is not None, to ask whether there is one; or {one}"
        case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)):
            if line.tensor.kind is not Bool:
                return f"{name} is None, to ask whether there is none; or {one}"
        case _:
            pass
    if isinstance(of, ast.Assert) or _equals(test):
        return _one_truth(line, test, "all")
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq):
        return one
    if one.count(".any().into_scalar()") == 1 and not isinstance(test, ast.UnaryOp):
        return f"{one}, or {_one_truth(line, test, 'all')}"
    return one


def _is_mixed(line: Line, node: ast.expr) -> bool:
    """Whether an `and` or `or` is also of something that is no tensor."""
    of = node.values if isinstance(node, ast.BoolOp) else []
    return not all(map(line.may_be_tensor, of))


def _equals(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq)


def _one_truth(line: Line, node: ast.expr, way: str = "any") -> str:
    """A condition with one answer: for all elements, or for any of them."""
    match node:
        case ast.BoolOp(values=values) if _is_mixed(line, node):
            word = " and " if isinstance(node.op, ast.And) else " or "
            return word.join(
                _one_truth(line, each, way)
                if line.may_be_tensor(each) and _is_condition(line, each)
                else ast.unparse(each)
                for each in values
            )
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"not {line.mask(operand)}.{way}().into_scalar()"
        case _:
            return f"{line.mask(node)}.{way}().into_scalar()"


def _choice(line: Line, test: ast.expr, of: ast.IfExp) -> str | None:
    """`a if condition else b` for each element; None where a or b is something else."""
    both = (of.body, of.orelse)
    if not all(line.may_be_tensor(each) or line.is_number(each) for each in both):
        return None
    mask = line.mask(test)
    yes, no = _written(line, of.body), _written(line, of.orelse)
    if not line.is_number(of.orelse):
        way = "mask_fill" if line.is_number(of.body) else "mask_where"
        return f"{no}.{way}({mask}, {yes})"
    if not line.is_number(of.body):
        return f"{yes}.mask_fill({mask}.bool_not(), {no})"
    values = [line.value(each) for each in both]
    kind = "int" if all(type(each) is int for each in values) else "float"
    if values == [1, 0]:
        return f"{mask}.{kind}()"
    return f"{mask}.{kind}().full_like({no}).mask_fill({mask}, {yes})"


def _written(line: Line, node: ast.expr) -> str:
    return ast.unparse(node) if line.is_number(node) else line.text(node)


def _of_call(line: Line, node: ast.Call) -> str | None:
    """A function of Python that compares what it is given."""
    args = node.args
    match node.func:
        case ast.Name(id="max" | "min" as name) if not node.keywords:
            listed = len(args) == 1 and isinstance(args[0], ast.List | ast.Tuple)
            return _extreme(line, name, args[0].elts if listed else args)  # type: ignore[attr-defined] # a list has elements
        case ast.Name(id="any" | "all" as name) if len(args) == 1:
            return _all_or_any(line, name, args[0])
        case ast.Name(id="bool") if len(args) == 1:
            return ALL_OR_ANY.format(line.mask(args[0]))
        case ast.Name(id="sorted") if len(args) == 1:
            names = [each.arg for each in node.keywords]
            whole = line.value(args[0])
            way = "sort_descending" if names == ["reverse"] else "sort"
            if names in ([], ["reverse"]) and isinstance(whole, Methods):
                last = whole.rank - 1
                return f"{line.text(args[0])}.{way}({last}), along the last dim"
        case ast.Attribute(value=held, attr="index") if len(args) == 1:
            one, many = line.text(args[0]), ast.unparse(held)
            return f"next(i for i, each in enumerate({many}) if each is {one})"
        case _:
            pass
    return None


def _all_or_any(line: Line, name: str, given: ast.expr) -> str | None:
    match given:
        case ast.GeneratorExp(elt=ast.expr() as each, generators=[ast.comprehension()]):
            inner = f"{line.mask(each)}.{name}().into_scalar()"
            part = ast.unparse(ast.GeneratorExp(ast.Name("_"), given.generators))
            return f"{name}({inner}{part[2:]}" if part.startswith("(_") else None
        case ast.List(elts=elts) | ast.Tuple(elts=elts):
            word = "bool_or" if name == "any" else "bool_and"
            masks = [line.mask(each) for each in elts]
            return f"{_folded(masks, word)}.{name}().into_scalar()"
        case _:
            return f"{line.mask(given)}.{name}().into_scalar()"


def _extreme(line: Line, name: str, args: Sequence[ast.expr]) -> str | None:
    """`max` and `min` of tensors and numbers, element by element."""
    if len(args) == 1:
        return f"{line.text(args[0])}.{name}()"
    tensors = [each for each in args if not line.is_number(each)]
    if not tensors or not all(map(line.may_be_tensor, tensors)):
        return None
    code = line.text(tensors[0])
    for each in args:
        if line.is_number(each):
            clamp = "clamp_min" if name == "max" else "clamp_max"
            code += f".{clamp}({ast.unparse(each)})"
        elif each is not tensors[0]:
            code += f".{name}_pair({ast.unparse(each)})"
    return code


def _is_condition(line: Line, node: ast.expr) -> bool:
    """Whether a node is what was asked: a comparison gives Bool, a name the tensor."""
    match node:
        case ast.Compare():
            return _compares(node) and line.tensor.kind is Bool
        case ast.BoolOp(values=values):
            return all(
                _is_condition(line, each) or not _comparing(each) for each in values
            )
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_condition(line, operand)
        case ast.Name():
            return line.value(node) is line.tensor
        case _:
            return True


def _comparing(node: ast.expr) -> bool:
    return isinstance(node, ast.Compare)


def _compares(node: ast.Compare) -> bool:
    odd = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
    return not any(isinstance(op, odd) for op in node.ops)


def _folded(parts: Sequence[str], name: str) -> str:
    code = parts[0]
    for each in parts[1:]:
        inner = each.removeprefix("(").removesuffix(")")
        code += f".{name}({inner if _alone(inner) else each})"
    return code


def _alone(text: str) -> bool:
    """Whether a text is code without the parentheses around it."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True
