"""Three helpers of the chapters: `same`, `check` and `peek`.

`same(a, b)` shows that two ways give one result, `check("2.1", answer)` looks at the
answer of an exercise and hints, `peek(thing)` prints the real source of a thing. They
live here and not in `burnbook`: they print, and they serve readers, not programs.
"""

import difflib
import inspect
import textwrap
from pathlib import Path
from typing import Any

from burnbook.core.errors import BurnbookError
from burnbook.core.op import Op
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
    cure = "the number in the first line of the exercise, as a string"
    return BurnbookError("check", f"there is no exercise {number!r}", facts, cure)


def peek(thing: Any) -> None:
    """Print the source of an op, a class or a function, and the file where it lives.

    The source of an op ends with its gradient rules.
    """
    path = Path(inspect.getsourcefile(getattr(thing, "forward", thing)) or "")
    if isinstance(thing, Op):
        source = thing.listing()
    else:
        source = textwrap.dedent(inspect.getsource(thing)).rstrip()
    print(f"# {short(path)}\n{source}")


def short(path: Path) -> str:
    """Return a path from its package on, the same on every machine."""
    starts = [i for i, part in enumerate(path.parts) if part in PACKAGES]
    return "/".join(path.parts[starts[-1] :]) if starts else path.name
