"""What is wrong with a file, said at every entrance in the same way."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from burnbook.core.errors import BurnbookError, RecordError
from burnbook.importers.onnx.graph import Graph

CURE = "onnx.checker names the fault"
#: What control flow consists of, by its attributes.
BODIES = {
    "If": ("then_branch", "else_branch"),
    "Loop": ("body",),
    "Scan": ("body",),
    "SequenceMap": ("body",),
}


@contextmanager
def as_damage(title: str) -> Generator[None]:
    """What goes wrong while a file is taken apart is said as a fault of the file."""
    try:
        yield
    except BurnbookError:
        raise
    except (
        *(ArithmeticError, AttributeError, LookupError, MemoryError),
        *(RecursionError, SyntaxError, TypeError, ValueError),
    ) as error:
        told = " ".join(str(error).split())[:200]
        what = f"{title} does not follow ONNX's rules, or is damaged"
        facts = [(type(error).__name__, told)]
        raise RecordError("onnx", what, facts, CURE) from error


def check_bodies(graph: Graph, title: str) -> None:
    """Raise for control flow that has no graph to run.

    Raises:
        RecordError: an If has no branch, or a Loop or Scan no body.
    """
    for _, node in graph.walk():
        missing = [
            name
            for name in BODIES.get(node.domain or node.op, ())
            if not isinstance(node.attributes.get(name), Graph)
        ]
        if missing:
            what = f"{title} does not follow ONNX's rules, or is damaged"
            facts = [(f"{node.op} {node.name!r}", f"no {', no '.join(missing)}")]
            raise RecordError("onnx", what, facts, CURE)
