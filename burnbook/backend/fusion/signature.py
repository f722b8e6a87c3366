"""What an op gives for inputs of some shapes, known before it runs.

A signature is an op with the shapes and element types of its inputs, and its
attributes. Numbers that do not decide shapes (a learning rate, the other side of
`x * 2.0`, a key of random numbers) are left out of it: they come with each run. An op
that works element by element tells its result from arrays with one element; any other
runs at once when a signature is met for the first time, and from then on what it gives
is known.
"""

from typing import Any

import numpy as np

from burnbook.backend.base import AnyOp, Attrs, Backend
from burnbook.backend.fusion.deferred import Spec, spec
from burnbook.core.op import OPS, BackwardOp, Op

MOST = 1 << 14  # signatures; then all are forgotten


class Key(tuple[int, int]):
    """A key of random numbers: drawn when an op is called, used when it runs."""

    __slots__ = ()


class Mark:
    """What stands in a signature for something that is not part of it."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


FLOAT, INT, TRUE, FALSE, KEY = map(Mark, ("float", "int", "True", "False", "key"))

_FAMILIES = (
    *("elementwise", "erf", "activation", "bits", "compare", "rounding"),
    "trigonometry",
)
_BY_ELEMENTS = {  # ops whose errors, or whose shapes, depend on elements
    *("gather", "scatter", "select", "select_assign", "select_put", "hot_rows"),
    *("argwhere", "embedding", "cross_entropy", "cross_entropy_logits"),
    *("inverse", "solve", "log_det", "det_sign", "det", "orthogonal"),
    *("ctc_labels", "ctc_skips", "ctc_loss", "rnnt_labels", "rnnt_loss"),
    *("log_softmax_at", "bitwise_left_shift", "bitwise_right_shift", "power"),
}
_WHOLE_NUMBERS = {"div", "remainder", "fmod", "powf"}  # of them the same is true


class Signature:
    """What is known of an op with these inputs.

    specs: of each input a Spec, a mark for a number, or what it is. attrs: those that
    are part of the signature; holes: the names of the others. outs: the specs of the
    results, None for one that nobody gets. count: how many numbers a call brings.
    """

    __slots__ = (
        *("attrs", "count", "elementwise", "holes", "is_tuple", "nbytes"),
        *("op", "outs", "specs"),
    )

    def __init__(
        self,
        op: AnyOp,
        specs: tuple[Any, ...],
        attrs: Attrs,
        outs: tuple[Any, ...],
        is_tuple: bool,
    ):
        self.op, self.specs, self.outs, self.is_tuple = op, specs, outs, is_tuple
        always_holes = numbers_alone(op)
        self.holes = tuple([n for n, v in attrs.items() if is_hole(v, always_holes)])
        self.attrs = {n: v for n, v in attrs.items() if n not in self.holes}
        self.count = _numbers_in(specs) + len(self.holes)
        self.nbytes = sum(out.nbytes for out in outs if out is not None)
        source = getattr(op, "source", op)
        made = {out for out in outs if out is not None}
        self.elementwise = source in elementwise() and (
            source is op or {out.shape for out in made} == {specs[0].shape}
        )

    def __repr__(self) -> str:
        return f"Signature({self.op.name}, {self.specs}, {self.outs})"


def _numbers_in(specs: tuple[Any, ...]) -> int:
    """How many numbers stand among the inputs, in tuples of inputs too."""
    return sum(
        _numbers_in(part) if type(part) is tuple else part is FLOAT or part is INT
        for part in specs
    )


_tables: dict[str, frozenset[Any]] = {}


def elementwise() -> frozenset[Any]:
    """The ops whose every element is computed from the same place of the inputs."""
    found = _tables.get("elementwise")
    if found is None:
        modules = {f"burnbook.ops.{name}" for name in _FAMILIES}
        found = _tables["elementwise"] = frozenset(
            made
            for made in OPS.values()
            if made.forward.__module__ in modules or made.name in _MORE
        )
    return found


_MORE = {"cast", "mask_where", "mask_fill"}


def runs_at_once(op: AnyOp, specs: tuple[Any, ...]) -> bool:
    """Whether an op looks at elements for its errors or its shapes."""
    if op.name in _BY_ELEMENTS:
        return True
    if op.name not in _WHOLE_NUMBERS:
        return False
    return any(type(part) is Spec and part.dtype.kind in "iu" for part in specs)


def numbers_alone(op: AnyOp) -> bool:
    """Whether whole numbers among the attributes decide no shapes."""
    return getattr(op, "source", op).forward.__module__ == _STEPS


_STEPS = "burnbook.ops.optimizer_steps"


def is_hole(value: object, whole_numbers: bool) -> bool:
    """Whether an attribute comes with each run."""
    kind = type(value)
    return kind is float or kind is Key or (whole_numbers and kind is int)


def frozen(value: Any) -> Any:
    """An attribute as a part of a key. Raises: TypeError where that cannot be."""
    kind = type(value)
    if kind is int or kind is str or value is None:
        return value
    if kind is bool:
        return TRUE if value else FALSE
    if kind is tuple:
        try:
            hash(value)
        except TypeError:
            return (tuple, *map(frozen, value))
        return value
    if kind is list:
        return (list, *map(frozen, value))
    if kind is slice:
        return (slice, value.start, value.stop, value.step)
    if isinstance(value, (np.dtype, type, np.generic, frozenset)) or callable(value):
        hash(value)
        return value
    raise TypeError(kind.__name__)


def probed(
    backend: Backend, op: AnyOp, values: tuple[Any, ...], attrs: Attrs
) -> Spec | None:
    """What an elementwise op gives, from arrays with one element each; None if unsure.

    values: specs and numbers.
    """
    shapes = [value.shape for value in values if type(value) is Spec]
    if len({len(shape) for shape in shapes}) != 1:
        return None
    try:
        shape = np.broadcast_shapes(*shapes)
        ones = (1,) * len(shape)
        given = [
            backend.xp.ones(ones, value.dtype) if type(value) is Spec else value
            for value in values
        ]
        out = backend.run(op, tuple(given), attrs)
    except Exception:
        return None  # the call itself will say what is wrong
    if type(out) is tuple or tuple(out.shape) != ones:
        return None
    return spec(tuple(shape), out.dtype)


def is_known(op: AnyOp) -> bool:
    """Whether an op is a declared one, not a step that a graph made for itself."""
    return type(op) is Op or type(op) is BackwardOp
