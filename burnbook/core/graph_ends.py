"""Lines of the reader's code that end a graph of gradients, found where one is missed.

Nothing is recorded while a graph is built: the code that asked for a gradient is looked
through afterwards, with the functions of the reader's that it names and the forward of
its models.
"""

import dis
import linecache
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

MOST_FUNCTIONS = 20
PLACES = ("argmax", "argmin", "argsort", "argtopk", "argwhere", "nonzero")
COMPARED = ("equal", "not_equal", "greater", "greater_equal", "lower", "lower_equal")
ENDS = {
    **dict.fromkeys(PLACES, "places"),
    **dict.fromkeys((*COMPARED, *[f"{n}_elem" for n in COMPARED]), "truths"),
    **dict.fromkeys(("detach", "inner", "no_grad"), "cut"),
    **dict.fromkeys(("int", "bool"), "whole"),
    **dict.fromkeys(("into_scalar", "into_data", "to_data"), "taken out"),
}
NAMED = {"numpy": "NumPy", "np": "NumPy", "float": "taken out", "int": "whole"}
CURES = {
    "places": "a loss of the scores, as CrossEntropyLoss, in place of {word}",
    "truths": "a loss of the difference, as (a - b).square().mean(), not {word}",
    "cut": "the same line without {word}()",
    "whole": "the Float tensor as it is, in place of {word}()",
    "taken out": "the tensor as it is, in place of {word}()",
    "NumPy": "operations of the tensor in place of those of NumPy",
}


class GraphEnd(NamedTuple):
    """A line that ends a graph: what kind of end it is, the word, and the place."""

    kind: str
    word: str
    where: str
    is_likely: bool = True  # data are made with NumPy, and loops compare, too

    @property
    def cure(self) -> str:
        """What to write instead."""
        return CURES[self.kind].format(word=self.word)


def graph_ends(models: Iterable[Any]) -> list[GraphEnd]:
    """The lines that may end a graph, the likely ones first, and the latest of them.

    models: whose `forward` is looked through as well.
    """
    frame = _readers_frame()
    if frame is None:
        return []
    codes = [(frame.f_code, frame.f_globals, frame.f_lineno)]
    codes += [
        (forward.__code__, forward.__globals__, 0)
        for model in models
        if isinstance(forward := getattr(type(model), "forward", None), FunctionType)
    ]
    found: dict[GraphEnd, None] = {}
    met: set[CodeType] = set()
    while codes and len(met) < MOST_FUNCTIONS:
        code, names, last = codes.pop(0)
        if code in met or str(names.get("__name__")).startswith("burnbook."):
            continue
        met.add(code)
        loads = [one for one in dis.get_instructions(code) if _is_before(one, last)]
        found |= dict.fromkeys(_ends_among(loads, code, names))
        scope = {**names, **(frame.f_locals if code is frame.f_code else {})}
        for held in [scope.get(str(one.argval)) for one in loads]:
            if isinstance(held, FunctionType):
                codes.append((held.__code__, held.__globals__, 0))
    return sorted(found, key=lambda end: not end.is_likely)


def _readers_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if not str(frame.f_globals.get("__name__")).startswith("burnbook."):
            return frame
        frame = frame.f_back
    return None


def _is_before(one: dis.Instruction, last: int) -> bool:
    """Whether an instruction loads or compares, not after the last line, if any."""
    number = one.positions and one.positions.lineno
    is_kind = one.opname.startswith("LOAD") or one.opname == "COMPARE_OP"
    return is_kind and bool(number) and (not last or (number or 0) <= last)


def _ends_among(
    loads: list[dis.Instruction], code: CodeType, names: dict[str, Any]
) -> Iterator[GraphEnd]:
    """The ends in one function, the latest line first."""
    lines = linecache.getlines(code.co_filename, names)
    for one in reversed(loads):
        number = (one.positions and one.positions.lineno) or 0
        text = lines[number - 1].strip() if number <= len(lines) else ""
        if not text or text.startswith(("import ", "from ")):
            continue
        word, place = str(one.argval), f"line {number}: {text}"
        if one.opname == "COMPARE_OP":
            yield GraphEnd("truths", word, place, False)
        elif one.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            if word in ENDS:
                yield GraphEnd(ENDS[word], word, place)
        elif word in NAMED:
            yield GraphEnd(NAMED[word], word, place, False)
