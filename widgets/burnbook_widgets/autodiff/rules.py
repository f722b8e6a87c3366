"""What an op and its gradient rules say, in a line each.

A rule is mostly one formula, written as a lambda where the op is declared: that text is
the best there is to say about it. A rule that is a function says it in its docstring.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any


def sentence(thing: Any) -> str:
    """The first sentence of a docstring, in one line.

    Example:
        >>> from burnbook.ops import matmul
        >>> sentence(matmul)
        'Multiply matrices: outᵢⱼ = Σₖ xᵢₖ yₖⱼ.'
    """
    head = (inspect.getdoc(thing) or "").partition("\n\n")[0]
    return " ".join(head.split())


def rules_of(op: Any) -> list[tuple[str, str]]:
    """Each input that has a gradient, and what is done to get it.

    Example:
        >>> from burnbook.ops import mul
        >>> rules_of(mul)
        [('x', 'g * y'), ('y', 'g * x')]
    """
    rules = getattr(op, "rules", None)
    if not isinstance(rules, dict):  # a step between devices
        return []
    return [(name, rule_text(rule)) for name, rule in rules.items()]


def rule_text(rule: Any) -> str:
    """A rule as a formula, or as the first sentence of its docstring."""
    code = getattr(rule, "__code__", None)
    if code is not None and code.co_name == "<lambda>":
        return _formula(rule) or "a formula"
    name = getattr(rule, "__name__", type(rule).__name__)
    said = sentence(rule)
    return f"{name}: {said}" if said else f"{name}({', '.join(_parameters(rule))})"


def _parameters(rule: Any) -> list[str]:
    return list(inspect.signature(rule).parameters)


def _formula(rule: Any) -> str:
    """The body of a lambda, as it is written in its file."""
    code = rule.__code__
    for made in _lambdas(code.co_filename):
        if made.lineno != code.co_firstlineno:
            continue
        if _fingerprint(_compiled(made)) == _fingerprint(code):
            return ast.unparse(made.body).replace("xp.", "").replace("xp, ", "")
    return ""


@cache
def _lambdas(file: str) -> list[ast.Lambda]:
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):  # typed into a cell, or a module's zip
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]


def _compiled(made: ast.Lambda) -> CodeType:
    whole = compile(ast.Expression(made), "rule", "eval")
    return next(_codes_in(whole))


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    return (part for part in code.co_consts if isinstance(part, CodeType))


def _fingerprint(code: CodeType) -> tuple[Any, ...]:
    plain = tuple(c for c in code.co_consts if not isinstance(c, CodeType))
    inner = tuple(_fingerprint(part) for part in _codes_in(code))
    return code.co_varnames, code.co_names, plain, inner
