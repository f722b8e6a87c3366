"""How the answer of an exercise is looked at: type, shape, value.

A wrong answer gets a sentence that says in what respect it is wrong: one that the
exercise wrote for a typical slip, or one that fits what differs (see mistakes.py). The
right answer is never said.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from burnbook.prelude import Tensor
from burnbook_widgets.chapters.mistakes import (
    COUNTS,
    NUMBERS,
    TOLERANCE,
    in_array,
    in_number,
    is_rounded,
)

Slip = tuple[Any, str]  # a wrong value that readers give, and what to tell them


def as_array(value: Any) -> np.ndarray:
    """Return tensors, arrays, lists and numbers as one kind of thing."""
    if isinstance(value, Tensor):
        return np.asarray(value.to_data().to_numpy())
    return np.asarray(value)


def count_different(a: np.ndarray, b: np.ndarray) -> int:
    """Count the values that differ by more than rounding; whole numbers may not."""
    if a.dtype.kind in NUMBERS and b.dtype.kind in NUMBERS:
        relative = 0 if a.dtype.kind in COUNTS else TOLERANCE
        near = np.isclose(b, a, rtol=relative, atol=TOLERANCE, equal_nan=True)
        return int((~near).sum())
    return int((a != b).sum())


@dataclass(frozen=True)
class Kind:
    """What sort of thing an exercise asks for: its name, and whether a thing is one."""

    name: str
    fits: Callable[[Any], bool]

    def trouble(self, answer: Any) -> str | None:
        """Say that an answer is another sort of thing; nothing if it is this one."""
        if self.fits(answer):
            return None
        if self.fits(type(answer)):
            name = type(answer).__name__
            return f"it is an object; give the class itself: {name}, without ( )"
        return wrong_kind(answer, self.name)


def an(*kinds: type, called: str) -> Kind:
    """An object of one of these classes."""
    return Kind(called, lambda thing: isinstance(thing, kinds))


def a_class(of: type, called: str) -> Kind:
    """A class, not an object of it."""
    return Kind(called, lambda thing: isinstance(thing, type) and issubclass(thing, of))


FUNCTION = Kind(
    "a function", lambda thing: callable(thing) and not isinstance(thing, type)
)


@dataclass(frozen=True)
class Value:
    """An exercise whose answer is a value; `slips` are wrong ones that readers give.

    Why: `right` is a function, so that nothing is computed when a chapter is imported.
    """

    right: Callable[[], Any]
    hint: str
    slips: Sequence[Slip] = ()

    def trouble(self, answer: Any) -> str | None:
        """Say in what respect an answer is wrong; nothing if it is right."""
        return compare(self.right(), answer, self.slips)


@dataclass(frozen=True)
class Holds:
    """An exercise whose answer is judged by what it does: `asks` says what is wrong."""

    wants: Kind
    asks: Callable[[Any], str | None]
    hint: str

    def trouble(self, answer: Any) -> str | None:
        """Say in what respect an answer is wrong; nothing if it is right."""
        if trouble := self.wants.trouble(answer):
            return trouble
        try:
            return self.asks(answer)
        except Exception as error:
            first = str(error).partition("\n")[0]
            return f"using it raised {type(error).__name__}: {first}"


def compare(right: Any, answer: Any, slips: Sequence[Slip] = ()) -> str | None:
    """Say in what respect a value is wrong; nothing if it is right."""
    if trouble := another_type(right, answer):
        return trouble
    if isinstance(right, str):
        return in_text(right, answer, slips)
    try:
        mine, theirs = as_array(right), as_array(answer)
    except ValueError:
        return "its rows differ in length"
    if trouble := another_element(mine, theirs, answer):
        return trouble
    for wrong, told in slips:
        if alike(as_array(wrong), theirs):
            return told
    if mine.shape != theirs.shape:
        return another_shape(mine, theirs)
    return another_value(mine, theirs)


def alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether shape and values are the same, but for rounding."""
    if one.shape != other.shape:
        return False
    return not count_different(one, other) or is_rounded(one, other)


def another_value(right: np.ndarray, answer: np.ndarray) -> str | None:
    """Say what differs where the shape is right."""
    if alike(right, answer):
        return None
    if right.dtype.kind not in NUMBERS:
        return in_words(right, answer)
    if right.size == 1:
        return in_number(right.item(), answer.item())
    return in_array(right, answer)


def another_type(right: Any, answer: Any) -> str | None:
    """Say that something cannot be compared at all with what is right."""
    if isinstance(right, Tensor):
        if not isinstance(answer, Tensor):
            return wrong_kind(answer, f"a tensor of kind {right.kind.__name__}")
        if right.kind is not answer.kind:
            wanted = right.kind.__name__
            return f"its kind is {answer.kind.__name__}, and should be {wanted}"
        return None
    if isinstance(right, str):
        return None if isinstance(answer, str) else wrong_kind(answer, "a string")
    single = np.ndim(right) == 0
    name = "a number" if single else "a list"
    if isinstance(answer, Tensor):
        cure = ".into_scalar()" if single else ".to_data().to_list()"
        return f"it is a tensor, and should be {name}: {cure} makes one"
    words = isinstance(answer, str) and not single
    if answer is None or words or callable(answer) or isinstance(answer, (dict, set)):
        return wrong_kind(answer, name)
    if not single and np.ndim(right) and isinstance(answer, (list, tuple)):
        return None if answer else "it is an empty list"
    return None


def another_element(right: np.ndarray, answer: np.ndarray, given: Any) -> str | None:
    """Say that there are numbers where words should be, or the other way round."""
    if right.dtype.kind not in NUMBERS:
        if answer.dtype.kind == "U":
            return None
        if answer.ndim:
            return "it is a list of other things, and should be one of names in quotes"
        return wrong_kind(given, "a list of names")
    if answer.dtype.kind in NUMBERS and answer.dtype.kind != "b":
        return None
    if isinstance(given, str):
        return "it is a string: leave out the quotes"
    wanted = "a number" if right.ndim == 0 else "a list of numbers"
    return wrong_kind(given, wanted)


def another_shape(right: np.ndarray, answer: np.ndarray) -> str:
    """Say both shapes, and what is so though."""
    if right.ndim == 0:
        return f"it is a list of {answer.size}, and one number is asked for"
    if answer.ndim == 0:
        return f"it is one number, and a list of {len(right)} is asked for"
    shapes = f"its shape is {list(answer.shape)}, and should be {list(right.shape)}"
    if right.ndim == 1 == answer.ndim:
        shapes = f"it has {answer.size} elements, and should have {right.size}"
    if right.size == answer.size:
        if right.shape == answer.T.shape and not count_different(right, answer.T):
            return f"it is transposed: {shapes}"
        if not count_different(right.ravel(), answer.ravel()):
            return f"the elements are right, but {shapes}"
    return shapes


def in_text(right: str, answer: str, slips: Sequence[Slip]) -> str | None:
    """Say in what respect a string is wrong."""
    if answer == right:
        return None
    for wrong, told in slips:
        if answer == wrong:
            return told
    if "".join(answer.lower().split()) == "".join(right.lower().split()):
        return "nearly: check the spaces, and upper and lower case"
    return "it is an empty string" if not answer else "it is another string"


def in_words(right: np.ndarray, answer: np.ndarray) -> str:
    """Say in what respect a list of words is wrong."""
    if sorted(right.ravel()) == sorted(answer.ravel()):
        return "the right words, in another order"
    strange = [word for word in answer.ravel() if word not in right]
    if strange:
        return f"{str(strange[0])!r} does not belong in it"
    return "a word comes twice, and another one is missing"


def wrong_kind(answer: Any, wanted: str) -> str:
    """Say what something is, and what it should be."""
    if answer is None:
        return f"it is None, and should be {wanted}; is a return missing?"
    if isinstance(answer, type):
        name = answer.__name__
        if wanted.startswith("a class"):
            return f"it is the class {name}, and should be {wanted}"
        return f"it is the class {name} itself, and should be {wanted}: {name}(…)?"
    return f"it is {described(answer)}, and should be {wanted}"


def described(answer: Any) -> str:
    """Name a sort of thing: a list, a function, a tensor, an object of some class."""
    if isinstance(answer, Tensor):
        return "a tensor"
    if answer is ...:
        return "the dots"
    if inspect.ismodule(answer):
        return "a Python module"
    if inspect.isroutine(answer):
        return "a function"
    if answer is None or isinstance(answer, (bool, np.bool_)):
        return str(answer)
    if isinstance(answer, (int, float, np.number)):
        return "a number" if math.isfinite(answer) else str(float(answer))
    if isinstance(answer, str):
        return "a string"
    return a_or_an(type(answer).__name__)


def a_or_an(name: str) -> str:
    """Return a name with its article."""
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"
