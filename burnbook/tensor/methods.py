"""The tensor methods, made from the declarations of the ops.

Each op becomes a method (and an operator) of `Methods`, which Tensor inherits. A method
checks what is nearly free (same backend, same rank, kinds in the table), runs the op,
and only when that fails does it look for an explanation.
`python -m burnbook.reference.stubs --write` writes the typing stub.
"""

import inspect
import math
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from burnbook.backend.base import Attrs, Backend
from burnbook.core import op as ops_table
from burnbook.core.call_source import is_reflected, operands_at
from burnbook.core.cures import REDUCED, cure_of, for_argument, for_ranks
from burnbook.core.dtypes import Bool, Float, Int, KindType, kind_of
from burnbook.core.error_context import running_modules, way_to
from burnbook.core.errors import (
    ArgumentError,
    BackendError,
    BurnbookError,
    DivisionError,
    FractionDropped,
    GraphError,
    KindError,
    ShapeError,
    explain,
)
from burnbook.core.formulas import Unknown
from burnbook.core.held_tensors import cure_for_holder, facts_of_tensors
from burnbook.core.op import Op
from burnbook.ops.conv.windows import Pair
from burnbook.ops.shape import cast
from burnbook.tensor.facts import facts_of
from burnbook.tensor.readers_words import in_readers_words
from burnbook.tensor.shape import per_dim

NO_ATTRS: dict[str, Any] = {}
new = object.__new__
NUMBERS = (int, float, bool, np.number, np.bool_)
Tensors = tuple[Any, ...]  # the inputs of an op; an optional one may be None
FRACTIONS = (float, np.floating)
NO_RESULT = (  # the cure for None
    "`return` in the function that should have made it; "
    "where it is a gradient, x = x.require_grad() before x is used"
)
WINDOW = ("kernel_size", "stride", "padding", "dilation", "output_size")
OPERATORS = {
    "+": ("__add__", "__radd__"),
    "-": ("__sub__", "__rsub__"),
    "*": ("__mul__", "__rmul__"),
    "/": ("__truediv__", "__rtruediv__"),
    "%": ("__mod__", "__rmod__"),
    "**": ("__pow__", "__rpow__"),
    "@": ("__matmul__",),
    "==": ("__eq__",),
    "!=": ("__ne__",),
    "<": ("__lt__",),
    "<=": ("__le__",),
    ">": ("__gt__",),
    ">=": ("__ge__",),
    "&": ("__and__",),
    "|": ("__or__",),
    "^": ("__xor__",),
    "~": ("__invert__",),
    "neg": ("__neg__",),
    "abs": ("__abs__",),
    "round": ("__round__",),
}


class Methods:
    """A raw value with its kind, backend and rank, and every op as a method."""

    __slots__ = ("backend", "kind", "rank", "value")

    def __init__(
        self,
        value: Any,
        kind: KindType = None,  # type: ignore[assignment] # the next lines ask
        backend: Backend = None,  # type: ignore[assignment]
        rank: int = 0,
    ):
        if backend is None:  # pyright: ignore[reportUnnecessaryComparison] - see above
            raise _no_constructor(value)
        self.value = value
        self.kind = kind
        self.backend = backend
        self.rank = rank


def apply(op: Op, *tensors: Any, **attrs: Any) -> Any:
    """Run any op on tensors: kinds, ranks and errors as with the methods.

    Optional inputs may be None. The result is a tensor, or a tuple of them where the
    op has several outputs.
    """
    kind, out = _run(op, tensors, attrs)
    if op.extras:
        out = out[0]
    first = tensors[0]
    make, backend = first.__class__, first.backend
    if kind is Int:
        out = _as_int(backend, out)
    elif type(kind) is tuple:
        return tuple(
            make(v, k, backend, len(v.shape)) for v, k in zip(out, kind, strict=True)
        )
    return make(out, kind, backend, len(out.shape))


def apply_with_extras(op: Op, *tensors: Any, **attrs: Any) -> tuple[Any, ...]:
    """The same for an op with extras: they follow the result, as tensors of its kind.

    Extras need no gradient, whatever the inputs do.
    """
    kind, out = _run(op, tensors, attrs)
    make, backend = tensors[0].__class__, tensors[0].backend
    return tuple(make(value, kind, backend, len(value.shape)) for value in out)


def _run(op: Op, tensors: Tensors, attrs: Attrs) -> tuple[Any, Any]:
    """The kind of the result, and what the backend gave."""
    try:
        kind = _kind_of_result(op, tensors)
    except AttributeError:
        raise in_readers_words(_no_tensor(op, tensors), named(op, tensors)) from None
    if kind is None:
        raise complaint(op, tensors, attrs)
    if op.validator is not None:
        try:
            is_valid = op.validator(tensors, attrs) is None
        except KeyError:  # an attribute is missing, as the slow way will say
            is_valid = False
        if not is_valid:
            wrong = _explanation(op, tensors, attrs, op.check)
            if wrong is not None:
                raise wrong
    if len(tensors) == 1:
        values = (tensors[0].value,)
    else:
        values = tuple([None if t is None else t.value for t in tensors])
    if op.optional and len(values) < len(op.inputs):
        values += (None,) * (len(op.inputs) - len(values))
    try:
        return kind, tensors[0].backend.run(op, values, attrs)
    except Exception as error:
        raise explained(op, tensors, attrs, error) from None


def _kind_of_result(op: Op, tensors: Tensors) -> Any:
    """The kind that the inputs give, or None if they do not go together."""
    first = tensors[0]
    if len(tensors) == 1:
        return op.kinds.get((first.kind,))
    backend, rank, kinds = first.backend, first.rank, [first.kind]
    for t in tensors[1:]:
        if t is None:
            continue
        if t.backend is not backend or (op.same_rank and t.rank != rank):
            return None
        kinds.append(t.kind)
    if op.many:
        return op.kinds.get((kinds[0],)) if len(set(kinds)) == 1 else None
    return op.kinds.get(tuple(kinds))


def complaint(op: Op, tensors: Tensors, attrs: Attrs) -> Exception:
    """The error for inputs that an op cannot take, in the names of the reader."""
    return in_readers_words(_complaint(op, tensors, attrs), named(op, tensors))


def _complaint(op: Op, tensors: Tensors, attrs: Attrs) -> Exception:
    """The same in the op's own names: backend, kind, rank, then shape."""
    given = [t for t in tensors if isinstance(t, Methods)]
    names = [name for name, t in named(op, tensors) if isinstance(t, Methods)]
    if any(t.backend is not given[0].backend for t in given):
        what = "all inputs must live on one backend"
        return BackendError(op.name, what, facts(op, tensors), _move(names, given))
    kinds = tuple(t.kind for t in given)
    if (kinds[:1] if op.many else kinds) not in op.kinds or (
        op.many and len(set(kinds)) > 1
    ):
        rows = [row * len(kinds) if op.many else row for row in op.kinds]
        texts = [" and ".join(k.__name__ for k in row) for row in op.kinds]
        if len({kind for row in rows for kind in row}) == 1:
            texts = [rows[0][0].__name__]
        what = f"takes {', or '.join(texts)}"
        cure = _with_ranks(op, _cast(names, kinds, rows), names, given)
        cut = [
            t
            for name, t in zip(names, given, strict=True)
            if t.kind is Float and f"{name}.int()" in (cure or "").split(" and ")
        ]
        if any(map(_has_fractions, cut)):
            cure = "whole numbers, such as Tensor.from_ints(…, device)"
        if op.name.startswith("mask_") and cure == "mask.bool()":
            cure = (
                "mask.not_equal_elem(0) to take the places that are not 0, or "
                "mask.equal_elem(0) for those that are"
            )
        return KindError(op.name, what, facts(op, tensors), cure)
    if op.same_rank and len({t.rank for t in given}) > 1:
        ranks = " and ".join(str(t.rank) for t in given)
        shapes = [tuple(t.value.shape) for t in given]
        return ShapeError(
            op.name,
            f"the ranks {ranks} differ",
            facts(op, tensors, ways=True),
            for_ranks(op.name, shapes[0], shapes[1], names[:2]),
        )
    return _explanation(op, tensors, attrs, op.reason) or ShapeError(
        op.name, "the shapes do not fit together", facts(op, tensors, ways=True)
    )


def explained(op: Op, tensors: Tensors, attrs: Attrs, error: Exception) -> Exception:
    """Replace an error by an explanation, but only one that the op confirms."""
    found = _explained(op, tensors, attrs, error)
    return in_readers_words(found, named(op, tensors))


def _explained(op: Op, tensors: Tensors, attrs: Attrs, error: Exception) -> Exception:
    if isinstance(error, BurnbookError):
        if error.where == op.name and not error.facts:
            error.facts.extend(facts(op, tensors))
        return error
    if isinstance(error, ZeroDivisionError):
        what = "an Int tensor is divided by zero"
        cure = ".float() on every side, which gives inf or NaN there"
        return DivisionError(op.name, what, facts(op, tensors), cure)
    return (
        _explanation(op, tensors, attrs, op.check)
        or _explanation(op, tensors, attrs, op.reason)
        or _wrong_argument(op, tensors, attrs, error)
        or error
    )


def _wrong_argument(
    op: Op, tensors: Tensors, attrs: Attrs, error: Exception
) -> Exception | None:
    """An argument that the op does not take, or that is of a wrong type."""
    wrong = _odd_argument(op, tensors, attrs)
    if wrong is not None:
        return wrong
    if isinstance(error, MemoryError):
        what = "there is not enough memory for the result"
        return ShapeError(op.name, what, facts(op, tensors), "smaller batches")
    odd = [(name, value) for name, value in attrs.items() if not _plain(value)]
    if not odd or not isinstance(error, (TypeError, ValueError, AttributeError)):
        return None
    name, value = odd[0]
    shown = f"Tensor of {value.kind.__name__}" if isinstance(value, Methods) else ""
    what = f"{name} is {shown or repr(value)[:40]}"
    cure = "into_scalar()" if shown else "a whole number" if name == "dim" else None
    return ArgumentError(op.name, what, facts(op, tensors), cure)


def _odd_argument(op: Op, tensors: Tensors, attrs: Attrs) -> ArgumentError | None:
    """The error for an argument that an op does not know, or that is missing."""
    for name in attrs:
        if name not in op.attrs:
            return _wrong_call(op, tensors[0], name)
    for name, value in {**op.attrs, **attrs}.items():
        if value is inspect.Parameter.empty:
            cure = _with_missing(op, attrs, name)
            return ArgumentError(
                op.name, f"{name} is missing", facts(op, tensors), cure
            )
    return None


def _with_missing(op: Op, attrs: Attrs, missing: str) -> str:
    """The same call with the argument that it lacks, and what it had before that."""
    given = op.inputs[1:]
    for name in op.attrs:
        if name == missing:
            break
        if name in attrs and _plain(attrs[name]):
            given += (f"{name}={_shown(attrs[name])}",)
    value = "1" if missing == "dim" else f"{missing}=…"
    if missing == "stride" and _plain(attrs.get("kernel_size")):
        value = f"stride={_shown(attrs['kernel_size'])}"  # windows side by side
    if len(op.inputs) == 1 and value == "1" and len(given) == 0:
        return f"x.{op.name}(1)"
    return f"x.{op.name}({', '.join([*given, value])})"


def _shown(value: object) -> str:
    """A size, or sizes as a list; of equal ones one stands for all."""
    if not isinstance(value, (list, tuple)):
        return repr(value)
    return repr(value[0] if len(set(value)) == 1 else list(value))


def _plain(value: object) -> bool:
    """Whether an attribute is a number, or some; not a truth value, text or tensor."""
    if isinstance(value, (list, tuple)):
        return all(map(_plain, value))
    return value is None or (type(value) is not bool and isinstance(value, NUMBERS))


def _no_constructor(value: object) -> ArgumentError:
    name = type(value).__name__
    what = f"a tensor is not made by calling the class, here with {name}"
    return ArgumentError("Tensor", what, cure="Tensor.from_data(…, device)")


def _move(names: list[str], given: list[Any]) -> str:
    """How all inputs come to one backend: with a model, that is to train or to ask it.

    Why: what is asked of a trained model wants no gradient, so it goes below Autodiff.
    """
    known = [name for name in ("weight", "gamma") if name in names]
    wanted = given[names.index(known[0]) if known else 0].backend
    pairs = zip(names, given, strict=True)
    odd, tensor = next((n, t) for n, t in pairs if t.backend is not wanted)
    other = tensor.backend
    asks = "model.valid() to ask the model"
    to = f"{odd}.to_device({wanted!r})"
    if wanted.ad_enabled and wanted.inner is other:
        trained = known or _is_trained(given, wanted)
        with_graph = names[next(i for i, t in enumerate(given) if t.backend is wanted)]
        return f"{to} to train, or {asks if trained else f'{with_graph}.inner()'}"
    if other.ad_enabled and other.inner is wanted:
        if not known:
            first = next(n for n, t in zip(names, given, strict=True) if t is not other)
            if _is_trained(given, other):
                return f"{first}.to_device({other!r}) to train, or {asks}"
            return f"{first}.to_device({other!r}), or {odd}.inner()"
        return f"{odd}.inner(); the batcher of validation data works on device.inner"
    return to


def _is_trained(given: list[Any], device: Any) -> bool:
    """Whether a layer runs whose parameter is the input on this device."""
    held = (tensor for tensor in given if tensor.backend is device)
    return bool(running_modules()) and any(t.is_require_grad() for t in held)


def _no_tensor(op: Op, tensors: Tensors) -> KindError:
    given = [(name, t) for name, t in named(op, tensors) if t is not None]
    rest = [pair for pair in given if not isinstance(pair[1], Methods)]
    if not rest:
        name = next((n for n, t in named(op, tensors) if t is None), op.inputs[0])
        what = f"{name} is None, not a tensor"
        cure = NO_RESULT
        return KindError(op.name, what, facts(op, tensors), cure)
    name, odd = rest[0]
    known = [repr(t.backend) for _, t in given if isinstance(t, Methods)]
    what = f"{name} is {type(odd).__name__}, not a tensor"
    cure = f"Tensor.from_data(…, {[*known, 'device'][0]})"
    if op.name == "mask_where" and isinstance(odd, NUMBERS):
        cure = f"x.mask_fill(mask, {odd!r})"
    held = [(f"{name}{way}", text) for way, text in facts_of_tensors(odd)]
    cure = cure_for_holder(odd, name) or cure
    return KindError(op.name, what, [*facts(op, tensors), *held], cure)


def _cast(names: list[str], kinds: tuple[KindType, ...], rows: list[Any]) -> str | None:
    """Which inputs to convert so that the kinds become those of the nearest row."""
    tries = [
        [
            f"{name}.{wanted.__name__.lower()}()"
            for name, kind, wanted in zip(names, kinds, row, strict=False)
            if kind is not wanted
        ]
        for row in rows
    ]
    if len(kinds) == 2 and kinds not in rows and kinds[::-1] in rows:
        return f"{names[0]} first, then {names[1]}: the two are swapped"
    return " and ".join(min((t for t in tries if t), key=len, default=[])) or None


def _with_ranks(
    op: Op, cure: str | None, names: list[str], given: list[Any]
) -> str | None:
    """The change of the kinds, and of the ranks where they differ as well."""
    if not cure or not op.same_rank or len(given) != 2 or ": " in cure:
        return cure
    one, other = [tuple(t.value.shape) for t in given]
    if len(one) == len(other):
        return cure
    way = for_ranks(op.name, one, other, names).partition(", ")[0]
    name, _, change = way.partition(".")
    pieces = cure.split(" and ")
    changed = [f"{p}.{change}" if p.startswith(f"{name}.") else p for p in pieces]
    return " and ".join(changed if changed != pieces else [*pieces, f"{name}.{change}"])


def _has_fractions(tensor: Any) -> bool:
    """Whether a Float tensor holds, or may hold, what `.int()` would cut off."""
    try:
        values = np.asarray(tensor)
    except GraphError:  # in a capture the next run may have fractions
        return True
    return bool((values != np.trunc(values)).any())


def named(op: Op, tensors: Tensors) -> list[tuple[str, Any]]:
    """The inputs with their names."""
    names = op.inputs
    if op.many:
        names = tuple(f"{op.inputs[0]}[{i}]" for i in range(len(tensors)))
    return list(zip(names, tensors, strict=False))


def facts(op: Op, tensors: Tensors, ways: bool = False) -> list[tuple[str, str]]:
    """One line per input: its name, kind, shape and backend.

    With `ways`, also the ops that its shape came from, where there is a graph.
    """
    rows: list[tuple[str, str]] = []
    for name, t in named(op, tensors):
        if isinstance(t, Methods):
            rows += facts_of(**{name: t})
        elif isinstance(t, NUMBERS):
            rows.append((name, f"the number {t!r}"))
    if ways:
        came = [(n, way_to(getattr(t, "value", None))) for n, t in named(op, tensors)]
        rows += [(f"{name} came by", way) for name, way in came if way]
    return rows


def make_method(op: Op) -> Callable[..., Any]:
    """The method of one op, specialized for one input, two inputs, or many."""
    if len(op.inputs) == 2 and op.same_rank:
        method = _method_of_two(op)
    elif len(op.inputs) == 1 and not op.attrs and not op.check:
        method = _method_of_one(op)
    else:
        method = _method_of_many(op)
    method.__name__ = op.name
    method.__qualname__ = f"Tensor.{op.name}"
    method.__doc__ = op.__doc__
    method.__wrapped__ = op.__wrapped__  # type: ignore[attr-defined]  # help shows the source
    method.__signature__ = _signature(op)  # type: ignore[attr-defined]  # without xp
    return method


def _method_of_one(op: Op) -> Callable[..., Any]:
    kinds = {row[0]: out for row, out in op.kinds.items()}
    to_int = any(row is not Int and out is Int for row, out in kinds.items())

    def method(self: Methods) -> Any:
        kind = kinds.get(self.kind)
        if kind is None:
            raise complaint(op, (self,), NO_ATTRS)
        backend = self.backend
        try:
            out = backend.run(op, (self.value,), NO_ATTRS)
        except Exception as error:
            raise explained(op, (self,), NO_ATTRS, error) from None
        if to_int and kind is Int:
            out = _as_int(backend, out)
        return self.__class__(out, kind, backend, len(out.shape))

    def of_all(
        self: Any,
        dim: Any = None,
        keepdim: Any = None,
        axis: Any = None,
        dtype: Any = None,
        out: Any = NO_ATTRS,
    ) -> Any:
        # as `method`, written out: one call more would show in small sums
        asked = dim is not None or axis is not None or keepdim is not None
        if asked or dtype is not None or out is not NO_ATTRS:
            raise _not_of_all(op, self, dim if axis is None else axis, keepdim, asked)
        kind = kinds.get(self.kind)
        if kind is None:
            raise complaint(op, (self,), NO_ATTRS)
        backend = self.backend
        try:
            out = backend.run(op, (self.value,), NO_ATTRS)
        except Exception as error:
            raise explained(op, (self,), NO_ATTRS, error) from None
        if to_int and kind is Int:
            out = _as_int(backend, out)
        return self.__class__(out, kind, backend, len(out.shape))

    return of_all if op.name in REDUCED else method


def _not_of_all(
    op: Op, self: Methods, dim: object, keepdim: object, asked: bool
) -> ArgumentError:
    """The error for a dim, or for NumPy's `out` and `dtype`."""
    if asked:
        return _wrong_call(op, self, "dim", dim, keepdim)
    what = "the result has the element type of the device, and memory of its own"
    cure = f"x.{op.name}()"
    return ArgumentError(op.name, what, facts(op, (self,)), cure)


def _wrong_call(
    op: Op, self: Methods, name: str | None, dim: object = None, keepdim: object = False
) -> ArgumentError:
    """The error for an argument that a method does not take."""
    takes = [*op.inputs[1:], *op.attrs]
    what, cure = for_argument(op.name, name, takes, dim, keepdim)
    error = ArgumentError(op.name, what, facts(op, (self,)), cure)
    return in_readers_words(error, [("x", self)])


def _method_of_two(
    op: Op, of_ints: Callable[[Any, object], object] | None = None
) -> Callable[..., Any]:
    """The method of an op with two inputs; of_ints: what it does for Int, if other."""
    kinds = op.kinds
    if of_ints is not None:
        kinds = {row: out for row, out in kinds.items() if row[0] is not Int}
    by_kind = {row[0]: out for row, out in kinds.items() if row[0] is row[1]}

    def method(self: Any, other: Any) -> Any:
        backend = self.backend
        make = type(self)
        if type(other) is make:
            kind = self.kind
            if kind is other.kind:
                kind = by_kind.get(kind)
            else:
                kind = kinds.get((kind, other.kind))
            if kind is None or other.backend is not backend or other.rank != self.rank:
                if of_ints is not None and self.kind is Int:
                    return of_ints(self, other)
                raise complaint(op, (self, other), NO_ATTRS)
            value = other.value
        else:
            kind = by_kind.get(self.kind)
            if kind is None and of_ints is not None:
                return of_ints(self, other)
            value = lift(op, self, other)
        try:
            out = backend.run(op, (self.value, value), NO_ATTRS)
        except Exception as error:
            raise explained(op, (self, other), NO_ATTRS, error) from None
        made = new(make)  # make(out, kind, backend, rank), without the call
        made.value, made.kind, made.backend, made.rank = out, kind, backend, self.rank
        return made

    return method


def _method_of_many(op: Op) -> Callable[..., Any]:
    tensors = len(op.inputs) - 1
    names = tuple(op.attrs)
    pairs = _pairs_of(op)
    most = 1000 if op.many else tensors + len(names)
    needs_dim = op.attrs.get("dim", 0) is inspect.Parameter.empty

    def method(self: Methods, *args: Any, **attrs: Any) -> Any:
        if len(args) > most:
            raise _wrong_call(op, self, None)
        others = list(args[:tensors])
        for name in op.inputs[1 + len(others) :]:
            others.append(attrs.pop(name, None))
        for name, value in zip(names, args[tensors:], strict=False):
            attrs[name] = value
        for name in pairs:
            if name in attrs:
                attrs[name] = _pair(op, self, name, attrs[name])
        if needs_dim and attrs.get("dim", 0) is None:  # NumPy would take all dims
            what = "dim is None, not a whole number"
            raise ArgumentError(op.name, what, facts(op, (self,)), "dim=0")
        return apply(op, self, *others, **attrs)

    return method


def _pairs_of(op: Op) -> tuple[str, ...]:
    """The attributes with a number for the height of an image and one for its width."""
    params = inspect.signature(op.forward).parameters
    return tuple([n for n in WINDOW if n in params and params[n].annotation == Pair])


def _pair(op: Op, tensor: Methods, name: str, given: object) -> tuple[int, ...]:
    """Both numbers, where one may have been given for both."""
    if type(given) is tuple and [*map(type, given)] == [int, int]:  # hot
        return given
    try:
        return per_dim(op.name, name, given, 2, low=int(name != "padding"))
    except BurnbookError as error:
        error.facts.extend(facts(op, (tensor,)))
        raise


def lift(op: Op, tensor: Methods, other: Any) -> Any:
    """A Python number as the element type of a tensor: it never changes the kind."""
    kind, number = tensor.kind, isinstance(other, NUMBERS)
    if number and op.symbol == "@":
        what, shown = "the other side is a number", facts(op, (tensor, other))
        raise in_readers_words(
            KindError(op.name, what, shown, f"x * {other!r}"), [("x", tensor)]
        )
    if not number:
        if isinstance(other, Methods):
            return _of_another_class(op, tensor, other)
        raise in_readers_words(
            _no_operand(op, tensor, other), [("x", tensor), ("y", other)]
        )
    if (kind, kind) not in op.kinds:
        raise complaint(op, (tensor, other), NO_ATTRS)
    if kind is Float:
        if type(other) is float or isinstance(other, Unknown):
            return other
        return float(other)
    if kind is Bool:
        if other not in (0, 1):
            what = f"the other side is the number {other!r}, neither true nor false"
            raise in_readers_words(
                KindError(op.name, what, facts(op, (tensor,)), "x.int()"),
                [("x", tensor)],
            )
        return bool(other)
    if isinstance(other, FRACTIONS) and not _same_whole(op, kind, other):
        raise in_readers_words(_fraction(op, tensor, other), [("x", tensor)])
    return int(other)


def _no_operand(op: Op, tensor: Methods, other: object) -> KindError:
    """What stands beside a tensor and is none, and how it becomes one."""
    cure = f"{_as_tensor(op, tensor, other)} in its place"
    if hasattr(other, "val"):  # a Param
        cure = "y.val(), which is its tensor"
    elif other is None:
        cure = NO_RESULT
    elif isinstance(other, str | bytes | type) or callable(other):
        cure = "a tensor or a number in its place"
    cure = cure_for_holder(other, "y") or cure
    held = [(f"y{way}", text) for way, text in facts_of_tensors(other)]
    what = f"the other side is {type(other).__name__}, not a tensor or a number"
    return KindError(op.name, what, [*facts(op, (tensor,)), *held], cure)


def _as_tensor(op: Op, tensor: Methods, other: Any) -> str:
    """Code that makes a tensor of numbers that an op takes beside another one."""
    try:
        array = np.asarray(other)
        kind = kind_of(array.dtype)
    except (TypeError, ValueError, KindError):
        return "Tensor.from_data(…, x.device())"
    asked = "" if kind is tensor.kind or kind is Float else f", {tensor.kind.__name__}"
    code = f"Tensor.from_data(y, x.device(){asked})"
    if asked and tensor.kind is Bool:
        code = "Tensor.from_data(y, x.device()).bool()"
    if op.same_rank and 0 < array.ndim < tensor.rank:
        way = for_ranks(op.name, array.shape, tensor.value.shape, ("y", "x"))
        code += way.removeprefix("y").partition(",")[0] if way[:2] == "y." else ""
    return code


def _same_whole(op: Op, kind: KindType, other: Any) -> bool:
    """Whether a comparison with a float is one with a whole number: x > 2.0."""
    compares = op.kinds.get((kind, kind)) is Bool
    return compares and math.isfinite(other) and other == int(other)


def _fraction(op: Op, tensor: Methods, other: Any) -> KindError:
    """An Int tensor and a float: cutting the number off would be wrong in silence."""
    what = f"an Int tensor takes whole numbers, not the float {other!r}"
    whole = op.symbol not in ("/", "**") and math.isfinite(other)
    cure = f"x.float() {op.symbol} {other!r}" if op.symbol else "x.float()"
    if op.symbol and is_reflected():
        cure = f"{other!r} {op.symbol} x.float()"
    if whole and other == int(other):
        cure = f"{int(other)} in its place, or {cure}"
    return KindError(op.name, what, facts(op, (tensor,)), cure)


def _of_another_class(op: Op, tensor: Methods, other: Methods) -> Any:
    """The raw value of a tensor whose class is not that of the first: one of codes."""
    known = op.kinds.get((tensor.kind, other.kind))
    if (
        known is None
        or other.backend is not tensor.backend
        or other.rank != tensor.rank
    ):
        raise complaint(op, (tensor, other), NO_ATTRS)
    return other.value


def _divide_ints(self: Any, other: object) -> Any:
    """`/` of an Int tensor: as `div`, and it says so where a rest is cut off.

    Why: in Python `/` gives the fraction; an accuracy of 3 / 4 is then 0 in silence.
    """
    out = self.div(other)
    _check_rest(self, other, 4)
    return out


def _leaves_rest(x: object, y: object) -> bool:
    """Whether a division of whole numbers cuts something off, where that is known."""
    try:
        values = np.asarray(x), np.asarray(y)
    except GraphError:  # in a capture there are no values
        return False
    return bool(np.fmod(*values).any())


def _check_rest(x: object, y: object, depth: int = 3) -> None:
    """depth: how many calls above this one's own helper the reader's line is."""
    if _leaves_rest(x, y):
        _warn_of_rest(x, y, depth)


def _warn_of_rest(x: object, y: object, depth: int) -> None:
    """Warn at the line of the reader, in the names that stand there."""
    frame = sys._getframe(depth)  # pyright: ignore[reportPrivateUsage] - documented
    above, below = operands_at(frame) or (
        "x" if isinstance(x, Methods) else str(x),
        "y" if isinstance(y, Methods) else str(y),
    )
    floats = [
        f"{text}.float()" if isinstance(value, Methods) else text
        for text, value in ((above, x), (below, y))
    ]
    cure = f"{' / '.join(floats)}, or {above} // {below}, which rounds down"
    if isinstance(x, Methods) and len(above) <= 12:
        cure += f"; {above}.div({below}) cuts in silence"
    pairs = {n: t for n, t in (("x", x), ("y", y)) if isinstance(t, Methods)}
    what = "Int / Int is Int: a rest is cut off"
    text = explain("div", what, facts_of(**pairs), cure)
    warnings.warn(text, FractionDropped, stacklevel=depth + 1)


def _reflected(
    op: Op, of_ints: Callable[[Any, object], object] | None = None
) -> Callable[[Any, Any], Any]:
    by_kind = {row[0]: out for row, out in op.kinds.items() if row[0] is row[1]}

    def method(self: Any, other: object) -> Any:
        backend = self.backend
        value = lift(op, self, other)
        try:
            out = backend.run(op, (value, self.value), NO_ATTRS)
        except Exception as error:
            raise explained(op, (other, self), NO_ATTRS, error) from None
        if of_ints is not None and self.kind is Int:
            of_ints(other, self)
        return self.__class__(out, by_kind.get(self.kind), backend, self.rank)

    method.__doc__ = op.__doc__
    return method


def _only_tensors(method: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """== and != with something that is neither tensor nor number: not equal."""

    def compare(self: Methods, other: object) -> Any:
        if other.__class__ is self.__class__ or isinstance(other, NUMBERS):
            return method(self, other)
        if isinstance(other, np.ndarray):  # False would be wrong in silence
            return method(self, other)
        return NotImplemented

    return compare


def _explanation(op: Op, tensors: Tensors, attrs: Attrs, ask: Any) -> Exception | None:
    """What a reason or check says about a failure, as an error with the facts."""
    if ask is None:
        return None
    known: dict[str, Any] = {**op.attrs, **attrs}
    wrong = _odd_argument(op, tensors, attrs)
    if wrong is not None:
        return wrong
    if op.many:
        known[op.inputs[0]] = [tuple(t.value.shape) for t in tensors]
    else:
        known |= dict.fromkeys(op.inputs)
        for name, t in zip(op.inputs, tensors, strict=False):
            known[name] = tuple(t.value.shape) if isinstance(t, Methods) else None
    if len(op.inputs) == 2 and None in [
        known[n] for n in op.inputs if n not in op.optional
    ]:
        return None  # a number fits every shape
    answer = ask(known)
    if answer is None:
        return None
    kind, sentence = answer if isinstance(answer, tuple) else (ShapeError, answer)
    shapes = {n: known[n] for n in op.inputs if isinstance(known.get(n), tuple)}
    cure = cure_of(op.name, shapes, known) if issubclass(kind, ShapeError) else None
    return kind(op.name, sentence, facts(op, tensors, ways=True), cure)


def _as_int(backend: Backend, out: Any) -> Any:
    """Indices come as i64 from the array module; the backend may hold another type."""
    if out.dtype == backend.int_dtype:
        return out
    return backend.run(cast, (out,), {"dtype": backend.int_dtype})


def _signature(op: Op) -> inspect.Signature:
    """The signature of the method: tensors where the formula takes arrays."""
    signature = inspect.signature(op.forward)
    params = list(signature.parameters.values())[1:]
    if not params:
        return signature
    free = [
        p.replace(kind=p.POSITIONAL_OR_KEYWORD)
        if p.kind is p.KEYWORD_ONLY
        else p.replace(annotation=p.empty)
        for p in params[1:]
    ]
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    return inspect.Signature([first, *free])


def attach(op: Op) -> None:
    """Give Methods the method and the operators of an op."""
    if not op.method or not op.inputs:
        return
    method = make_method(op)
    setattr(Methods, op.name, method)
    if not op.symbol:
        return
    names = OPERATORS[op.symbol]
    shown = _only_tensors(method) if op.symbol in ("==", "!=") else method
    divides = op.symbol == "/"
    if divides:
        shown = _method_of_two(op, _divide_ints)
        shown.__name__, shown.__doc__ = names[0], op.__doc__
    setattr(Methods, names[0], shown)
    if len(names) == 2:
        setattr(Methods, names[1], _reflected(op, _check_rest if divides else None))


for _op in list(ops_table.OPS.values()):
    attach(_op)
ops_table.on_declare.append(attach)
Methods.__hash__ = object.__hash__
