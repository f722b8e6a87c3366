"""Three helpers of the chapters: `same`, `check` and `peek`.

`same(a, b)` shows that two ways give one result, `check("2.1", answer)` looks at the
answer of an exercise and hints, `peek(thing)` prints the real source of a thing. They
live here and not in `burnbook`: they print, and they serve readers, not programs.
"""

import ast
import difflib
import inspect
import textwrap
from pathlib import Path
from typing import Any

from burnbook.core.errors import BurnbookError
from burnbook_widgets.chapters.answers import as_array, count_different
from burnbook_widgets.chapters.exercises import EXERCISES

PACKAGES = ("burnbook", "burnbook_widgets")


def same(one: Any, other: Any) -> None:
    """Print whether two results have the same shape and, up to rounding, values."""
    a, b = as_array(one), as_array(other)
    if a.shape != b.shape:
        print(f"✘ different shapes: {list(a.shape)} and {list(b.shape)}")
    elif wrong := count_different(a, b):
        print(f"✘ {wrong} of {a.size} values differ")
    else:
        print(f"✔ the same: {a.size} value{'s' * (a.size != 1)}, shape {list(a.shape)}")


def check(number: str, answer: Any) -> None:
    """Print whether an answer is right; if it is not, in what respect, and a hint.

    Raises: BurnbookError for a number that no exercise has.
    """
    number = str(number)
    if number not in EXERCISES:
        raise unknown(number)
    exercise = EXERCISES[number]
    if answer is ...:
        print(f"✎ {number} not tried yet")
        return
    trouble = exercise.trouble(answer)
    if trouble is None:
        print(f"✔ {number}")
    else:
        print(f"✘ {number}: {trouble}\n  hint: {exercise.hint}")


def unknown(number: str) -> BurnbookError:
    """The error for a number that no exercise has: it names those that are near."""
    within = [each for each in EXERCISES if each.startswith(f"{number}.")]
    beside = [e for e in EXERCISES if e.rpartition(".")[0] == number.rpartition(".")[0]]
    alike = difflib.get_close_matches(number, EXERCISES, 4, 0.5)
    near = sorted(within) or sorted(beside) or alike
    facts = [("near it", ", ".join(near))] if near else []
    cure = "the number in the first line of the exercise, as a text"
    return BurnbookError("check", f"there is no exercise {number!r}", facts, cure)


def peek(thing: Any) -> None:
    """Print the source of an op, a class or a function, and the file where it lives."""
    function = thing.forward if is_op(thing) else thing
    path = Path(inspect.getsourcefile(function) or "")
    lines = [f"# {short(path)}", textwrap.dedent(inspect.getsource(function)).rstrip()]
    if is_op(thing):
        lines += gradients(path, thing.name)
    print("\n".join(lines))


def is_op(thing: Any) -> bool:
    """Whether a thing is an op: a forward function with gradients beside it."""
    return callable(getattr(thing, "forward", None)) and hasattr(thing, "backward")


def gradients(path: Path, name: str) -> list[str]:
    """Return the lines `name.grad(...)` that follow an op in its file."""
    source = path.read_text(encoding="utf-8")
    found = []
    for node in ast.parse(source).body:
        call = node.value if isinstance(node, ast.Expr) else None
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and (call.func.value.id, call.func.attr) == (name, "grad")
        ):
            found += ["", ast.get_source_segment(source, node) or ""]
    return found


def short(path: Path) -> str:
    """Return a path from its package on, the same on every machine."""
    starts = [i for i, part in enumerate(path.parts) if part in PACKAGES]
    return "/".join(path.parts[starts[-1] :]) if starts else path.name
