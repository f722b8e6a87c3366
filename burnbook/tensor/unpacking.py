"""A tensor is unpacked into a number of names that is not that of its rows.

`out, state = gru(x)` asks for two results where there is one: the error says so. The
caller's own instruction tells how many names there are.
"""

import ast
from opcode import opmap
from types import FrameType
from typing import Any

from burnbook.core.call_source import asked_at
from burnbook.core.errors import ShapeError
from burnbook.tensor.facts import facts_of
from burnbook.tensor.methods import Methods

UNPACK = opmap["UNPACK_SEQUENCE"]


def names_unpacked(frame: FrameType) -> int | None:
    """How many names a frame unpacks something into now; None if it does not."""
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at + 1] if code[at] == UNPACK else None


def unpacking_error(tensor: Methods, count: int, frame: FrameType) -> ShapeError:
    """The error for more names, or fewer, than a tensor has rows."""
    rows = int(tensor.value.shape[0])
    what = f"one tensor with {rows} row{'s' * (rows != 1)}, and {count} names for it"
    return ShapeError("unpacking", what, facts_of(tensor=tensor), _cure(tensor, frame))


def _cure(tensor: object, frame: FrameType) -> str:
    """The line with one name for one tensor, or the method that gives two."""
    found = asked_at(frame)
    node: Any = found and found.node
    above: Any = found and found.parents.get(node)
    if not isinstance(node, ast.Tuple) or not isinstance(above, ast.Assign):
        return "one name for it; iter_dim(0) gives its rows"
    asked = getattr(above.value, "func", None)
    if isinstance(asked, ast.Attribute):
        method, both = asked.attr, f"{asked.attr}_with_indices"
        if hasattr(tensor, both) and len(node.elts) == 2:
            call = ast.unparse(above.value).replace(f".{method}(", f".{both}(", 1)
            return f"{ast.unparse(node).strip('()')} = {call}"
    return f"{ast.unparse(node.elts[0])} = {ast.unparse(above.value)}"
