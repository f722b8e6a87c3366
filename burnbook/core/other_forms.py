"""Forms of Python that an object does not have: `loader[0]`, `metric(x, y)`, `m * 0.9`.

Other libraries have them, so they are tried first; the error has the line that works.
The table says for each class which forms it answers, and with what.
"""

import ast
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple, TypeVar

from burnbook.core.call_source import asked_at
from burnbook.core.errors import ArgumentError

C = TypeVar("C", bound=type)


class Form(NamedTuple):
    """What is said of a form of Python.

    cure: code with {of} for the object as it was written, {key} for what stands in the
    brackets and {args} for the arguments of a call, {other} for the other operand.
    """

    shown: str
    what: str
    cure: str


ARITHMETIC = ("__add__", "__sub__", "__mul__", "__rmul__", "__truediv__")
SUMS = (
    "accumulator = GradientsAccumulator(); accumulator.accumulate(model, {of}); "
    "accumulator.accumulate(model, {other}); accumulator.grads()"
)

FORMS: dict[str, dict[str, Form]] = {
    "DataLoader": {
        "__next__": Form(
            "next",
            "a loader is iterated, each time from its start",
            ("next(iter({of}))"),
        ),
        "__getitem__": Form(
            "[…]",
            "a loader gives batches one after the other",
            ("next(iter({of})) for a batch, or {of}.dataset.get({key}) for an item"),
        ),
    },
    "Metric": {
        "__call__": Form(
            "(…)",
            "a metric takes items, and is not called",
            ("{of}.update({of}.Input({args}), metadata)"),
        ),
    },
    "GradientsParams": {
        "__add__": Form("+", "a GradientsAccumulator adds gradients up", SUMS),
    },
    "Module": {
        **dict.fromkeys(
            ARITHMETIC,
            Form(
                "",
                "a module is no number",
                (
                    "Ema(0.999) as a callback, which averages the weights, or "
                    "AveragedWeights(8); {of}.map(mapper) changes each of them"
                ),
            ),
        ),
        "__getitem__": Form("[…]", "a module has its parts as fields", "{of}.{path}"),
    },
}
CALLED = {  # where the reader's own word is not known
    "DataLoader": "loader",
    "Metric": "metric",
    "GradientsParams": "grads",
    "Module": "model",
}
ITERATED = Form(
    "", "a module is not iterated", "{of}.named_params(), pairs of a path and a Param"
)


def answers_forms(of: str) -> Callable[[C], C]:
    """Let the objects of a class answer to the forms of the table that it has not."""

    def fill(cls: C) -> C:
        for name, form in FORMS[of].items():
            if name not in vars(cls):
                setattr(cls, name, _answering(name, form))
        return cls

    return fill


def _answering(name: str, form: Form) -> Callable[..., Any]:
    def asked(self: Any, *args: object, **named: object) -> Any:
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
        is_walked = form.cure.endswith("{path}") and args == (0,)
        raise _error(self, form, frame, is_walked)

    asked.__name__ = name
    asked.__qualname__ = name
    return asked


def _error(
    held: object, form: Form, frame: FrameType, is_walked: bool
) -> ArgumentError:
    """The error of a form; is_walked: asked for item 0, as `for` and `list` do."""
    name = type(held).__name__
    of = next(CALLED[c.__name__] for c in type(held).__mro__ if c.__name__ in CALLED)
    texts = {"of": of, "key": "0", "args": "…", "other": "y", "path": "name"}
    found = asked_at(frame)
    node: Any = found and found.node
    text: Callable[[Any], str] = found.text if found else ast.unparse
    if is_walked and not isinstance(node, ast.Subscript):
        given = node.args[:1] if isinstance(node, ast.Call) else []
        form, texts["of"] = ITERATED, text(given[0]) if given else of
        node = None
    if isinstance(node, ast.Subscript):
        texts |= {"of": text(node.value), "key": ast.unparse(node.slice)}
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            texts["path"] = node.slice.value
    elif isinstance(node, ast.BinOp):
        texts |= {"of": text(node.left), "other": text(node.right)}
        if form.shown == "" and isinstance(node.left, ast.Constant):
            texts["of"] = text(node.right)
    elif isinstance(node, ast.Call) and form.shown == "next":
        texts["of"] = text(node.args[0])
    elif isinstance(node, ast.Call):
        given = [*map(ast.unparse, node.args)]
        given += [f"{k.arg}={ast.unparse(k.value)}" for k in node.keywords if k.arg]
        texts |= {"of": text(node.func), "args": ", ".join(given)}
    return ArgumentError(_where(name, form), form.what, cure=form.cure.format(**texts))


def _where(name: str, form: Form) -> str:
    if form.shown == "next":
        return f"next({name})"
    return f"{name} {form.shown}" if form.shown == "+" else f"{name}{form.shown}"
