"""Arguments are compared with the annotations of the functions that take them.

What an annotation says is all that is declared: `checks_arguments` lets the public
functions, constructors and methods of a package compare with it what they are given,
and `misfit` compares after something has failed. Who gives an array where a tensor
belongs, a config for a layer or a dtype for a kind is told so at the call, with a cure
made of what was given (`argument_cures`).

Why the function itself is asked first: where it has an error of its own for what was
given, that one knows more. What it would take in silence is refused.
"""

import functools
import inspect
import itertools
import os
import sys
import types
import typing
import weakref
from collections import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeVar

import numpy as np

from burnbook.core.argument_cures import (
    cure_of,
    given,
    habit_cure,
    misfit_of_call,
    number_cure,
    wanted,
)
from burnbook.core.call_source import callee_at
from burnbook.core.converters import ANYTHING, TypeSpec, resolved, type_spec
from burnbook.core.errors import ArgumentError, BurnbookError, UnknownNameError
from burnbook.core.held_tensors import facts_of_tensors
from burnbook.core.other_names import ON_PACKAGE

F = TypeVar("F", bound=Callable[..., Any])
#: What Python raises where an argument is of another kind than was meant.
RAW = (
    TypeError,
    AttributeError,
    ValueError,
    LookupError,
    ArithmeticError,
    AssertionError,
    NotImplementedError,
    RecursionError,
)
MOST_ITEMS = 32  # of a list that are looked at, and
MOST_SWAPPED = 4  # arguments that are put into other orders
READS = ("read", "write")  # what a file is known by
TEXTS = (str, bytes, bytearray, memoryview)


class Parameter(NamedTuple):
    """What a function takes in one place.

    quick: classes whose objects always fit.
    """

    name: str
    spec: TypeSpec
    default: object
    quick: tuple[type, ...]

    def takes(self, value: object) -> bool:
        """Whether a value is one that the annotation means, or the default itself."""
        return value is self.default or fits(value, self.spec)


class Misfit(NamedTuple):
    """An argument that is none of what its annotation says."""

    name: str
    value: object
    spec: TypeSpec
    default: object = inspect.Parameter.empty


def fits(value: object, spec: TypeSpec) -> bool:
    """Whether a value is one that an annotation means; what is not known fits.

    Example:
        >>> wanted = type_spec(list[int] | None)
        >>> fits([1, 2], wanted), fits((1, 2), wanted), fits(["a"], wanted)
        (True, True, False)
    """
    match spec.form:
        case "any" | "name" | "other":
            return True
        case "none":
            return value is None
        case "literal":
            return any(type(v) is type(value) and v == value for v in spec.values)
        case "union":
            return any(fits(value, part) for part in spec.parts)
        case "tuple":
            return _fits_tuple(value, spec)
        case "items" if not _is_of(spec.kind, OURS):
            return _fits_items(value, spec)
        case "dict":
            return isinstance(value, abc.Mapping) and _all_fit(value.values(), spec)
        case _:
            return _fits_class(value, spec)


def _fits_class(value: object, spec: TypeSpec) -> bool:
    if spec.kind is type:
        return _fits_type(value, spec)
    if spec.kind is abc.Iterable:
        arms = typing.get_args(spec.annotation)
        return _fits_items(value, TypeSpec("items", kind=spec.kind, arms=arms))
    return _is_one(value, spec.kind)


def _is_one(value: object, kind: Any) -> bool:
    """Whether it is an object of a class, or what may stand for one."""
    if isinstance(value, kind) if _can_ask(kind) else _has_all(value, kind):
        return True
    if getattr(type(value), "stands_for", None) == kind.__name__:
        return True  # a value that is recorded, of a captured program
    if kind is int:
        return _is_plain(value, Integral)
    if kind is float:
        return _is_plain(value, Real)
    if kind is bool:
        return isinstance(value, np.bool_)
    if kind is bytes:
        return isinstance(value, (bytearray, memoryview))
    if kind.__module__ == "typing":  # BinaryIO and the like
        return any(hasattr(value, name) for name in READS)
    if kind is os.PathLike:
        return isinstance(value, str)
    if kind is np.ndarray and isinstance(value, np.generic):
        return True
    return _may_stand_for(value, kind)


#: What nothing else can stand for: the library reads what is inside of them.
EXACT = frozenset(["Tensor", "Backend", "KindType"])


def _may_stand_for(value: object, kind: type) -> bool:
    """Whether an object of a class of the reader's own may do for one of ours.

    Why: a dataset is what has `get` and a length, whether or not it inherits.
    """
    if isinstance(value, type) or not _is_of(kind, OURS) or kind.__name__ in EXACT:
        return False
    above = type(value).__mro__[:-1]
    return bool(above) and not any(_is_known(cls) for cls in above)


MADE_IN_PYTHON = 1 << 9  # the flag of classes that are made by a class statement


def _is_known(cls: type) -> bool:
    """Whether a class is the library's, NumPy's or Python's own."""
    if _is_of(cls, (*OURS, "numpy", "pathlib")):
        return True
    return not cls.__flags__ & MADE_IN_PYTHON


def _is_of(cls: type, tops: tuple[str, ...]) -> bool:
    return cls.__module__.partition(".")[0] in tops


def _is_plain(value: object, numbers: type) -> bool:
    """Whether it is one number: of Python, of NumPy, or an array of rank 0."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    return isinstance(value, (numbers, np.bool_))


def _fits_type(value: object, spec: TypeSpec) -> bool:
    """Whether it is a class, of those that `type[…]` names."""
    if not isinstance(value, type):
        return typing.get_origin(value) is not None or value is None
    above = typing.get_args(spec.annotation)
    wanted = type_spec(above[0], spec.resolve) if above else ANYTHING
    kinds = [part.kind for part in wanted.meant if part.form != "any"]
    known = [kind for kind in kinds if isinstance(kind, type) and _can_ask(kind)]
    return not known or len(known) < len(kinds) or issubclass(value, tuple(known))


def _fits_tuple(value: object, spec: TypeSpec) -> bool:
    if not isinstance(value, (tuple, list, np.ndarray)) or len(value) != len(spec.arms):
        return False
    pairs = zip(value, spec.parts, strict=True)
    return all(fits(item, part) for item, part in pairs)


def _fits_items(value: object, spec: TypeSpec) -> bool:
    """Whether it is a container of such items; one that runs out is not looked into."""
    item = spec.item
    if isinstance(value, TEXTS):
        return spec.kind in (abc.Iterable, abc.Collection) and item.form == "any"
    if isinstance(value, np.ndarray):
        return value.ndim > 0 and item.kind in (None, int, float, bool)
    if isinstance(value, spec.kind):
        return _all_fit(value, spec)
    if issubclass(spec.kind, abc.Set):
        return isinstance(value, (list, tuple, abc.Set)) and _all_fit(value, spec)
    ordered = hasattr(value, "__len__") and hasattr(type(value), "__getitem__")
    return ordered and not isinstance(value, abc.Mapping) and _all_fit(value, spec)


def _all_fit(values: Any, spec: TypeSpec) -> bool:
    if not isinstance(values, (list, tuple, set, frozenset, abc.ValuesView)):
        return True
    item = spec.item
    few = (value for value, _ in zip(values, range(MOST_ITEMS), strict=False))
    return item.form == "any" or all(fits(value, item) for value in few)


def _can_ask(kind: type) -> bool:
    """Whether `isinstance` answers; protocols without a run-time check do not."""
    return not getattr(kind, "_is_protocol", False) or getattr(
        kind, "_is_runtime_protocol", False
    )


def _has_all(value: object, protocol: type) -> bool:
    """Whether an object has the names that a protocol asks for."""
    return all(hasattr(value, name) for name in _names(protocol))


@functools.cache
def _names(protocol: type) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for base in protocol.__mro__:
        if getattr(base, "_is_protocol", False) and base.__module__ != "typing":
            found |= dict.fromkeys([*vars(base), *inspect.get_annotations(base)])
    special = ("__call__", "__len__", "__getitem__", "__iter__", "__array__")
    return tuple(n for n in found if n in special or not n.startswith("_"))


class Signature(NamedTuple):
    """What a function takes: by position, by name, and any number of both."""

    places: tuple[Parameter, ...]
    named: dict[str, Parameter]
    several: Parameter | None
    options: Parameter | None

    def misfit(
        self, args: tuple[Any, ...], named: dict[str, Any], skip: int = 0
    ) -> Misfit | None:
        """The first argument that does not fit; `skip` are not looked at."""
        for parameter, value in self._pairs(args, named, skip):
            if not isinstance(value, parameter.quick) and not parameter.takes(value):
                return Misfit(parameter.name, value, parameter.spec, parameter.default)
        return None

    def fits_by_type(
        self, args: tuple[Any, ...], named: dict[str, Any], skip: int
    ) -> bool:
        """Whether all other arguments of these types fit, whatever their values."""
        return all(
            _is_subclass(type(value), parameter.quick)
            for parameter, value in self._pairs(args, named, skip)
        )

    def other_order(self, args: tuple[Any, ...], skip: int) -> list[str] | None:
        """The names of what was given, if all of it fits in another order."""
        given, places = args[skip:], self.places[skip : len(args)]
        if not 1 < len(given) <= MOST_SWAPPED or len(places) != len(given):
            return None
        for order in itertools.permutations(given):
            pairs = zip(places, order, strict=True)
            if all(place.takes(value) for place, value in pairs):
                return [place.name for place in places]
        return None

    def _pairs(
        self, args: tuple[Any, ...], named: dict[str, Any], skip: int
    ) -> Iterator[tuple[Parameter, Any]]:
        yield from zip(self.places[skip:], args[skip:], strict=False)
        if self.several is not None:
            for value in args[max(skip, len(self.places)) :]:
                yield self.several, value
        for name, value in named.items():
            parameter = self.named.get(name, self.options)
            if parameter is not None:
                yield parameter, value


@functools.cache
def signature_of(function: Callable[..., Any]) -> Signature:
    """What the annotations of a function say, read once."""
    inner: Any = inspect.unwrap(function)
    places: list[Parameter] = []
    named: dict[str, Parameter] = {}
    several = options = None
    for name, each in inspect.signature(function).parameters.items():
        spec = ANYTHING
        if each.annotation is not each.empty:
            spec = type_spec(each.annotation, functools.partial(resolved, inner))
        made = Parameter(name, spec, each.default, _quick(spec))
        match each.kind:
            case each.VAR_POSITIONAL:
                several = made
            case each.VAR_KEYWORD:
                options = made
            case each.KEYWORD_ONLY:
                named[name] = made
            case _:
                places.append(made)
                named[name] = made
    return Signature(tuple(places), named, several, options)


def _is_subclass(cls: type, kinds: tuple[type, ...]) -> bool:
    try:
        return issubclass(cls, kinds)
    except TypeError:  # a protocol that asks for more than methods
        return False


def _quick(spec: TypeSpec) -> tuple[type, ...]:
    """The classes of which every object fits."""
    if spec.form == "any":
        return (object,)
    found: list[type] = []
    for part in spec.parts if spec.form == "union" else (spec,):
        if part.form == "none":
            found.append(type(None))
        plain = part.form == "class" or (part.form == "items" and not part.contains)
        kind: Any = part.kind
        if plain and kind not in (type, abc.Iterable, None) and _can_ask(kind):
            found.append(kind)
    return tuple(found)


def misfit(
    function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> Misfit | None:
    """The argument of a call that is none of what the annotation says; None if all are.

    The object of a method is not looked at.
    """
    signature = signature_of(function)
    return signature.misfit(args, named, _own(signature))


def _own(signature: Signature) -> int:
    first = signature.places[:1]
    return int(bool(first) and first[0].name in ("self", "cls"))  # of a method


def refusal(
    where: str, found: Misfit, order: Sequence[str] | None = None
) -> ArgumentError:
    """The error for an argument that does not fit.

    order: the names of what was given by position, where another order would do.
    """
    what = f"{found.name} must be {wanted(found.spec)}, not {given(found.value)}"
    cure = f"{where}({', '.join(order)})" if order else None
    cure = cure or cure_of(found.value, found.spec, where)
    if cure is None and type(found.default) in (int, float, str):
        cure = f"{found.name}={found.default!r}"
    held = any(getattr(a.kind, "__name__", "") == "Tensor" for a in found.spec.meant)
    facts = facts_of_tensors(found.value) if held else []
    return ArgumentError(where, what, facts, cure)


def explained(
    error: Exception,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    named: dict[str, Any],
    where: str = "",
    count: bool = True,
) -> Exception:
    """What to raise for an error of Python: ours, if it was an argument that was wrong.

    Errors of the library, and those of code of the reader's own, stay as they are.
    count: whether to say also that arguments are missing, or too many.
    """
    if isinstance(error, BurnbookError) or _is_of_the_reader(error, function):
        return error
    where = where or place_of(function, args)
    found = misfit(function, args, named)
    if found is not None:
        signature = signature_of(function)
        return refusal(where, found, signature.other_order(args, _own(signature)))
    if count and isinstance(error, TypeError) and _never_began(error, function):
        return _wrong_number(error, where, function, args, named) or error
    return error


def _is_of_the_reader(error: BaseException, function: Callable[..., Any]) -> bool:
    """Whether an error comes of code of the reader's own that the library has called.

    Of the two ends of the way to it one is the reader's anyway; so it is one if the
    library has called it.
    """
    trace, inside = error.__traceback__, False
    code = inspect.unwrap(function).__code__
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__", ""))
        ours = name.partition(".")[0] in OURS or trace.tb_frame.f_code is code
        if inside and not ours and not name.startswith(LIBRARIES):
            return True
        inside = inside or ours
        trace = trace.tb_next
    return False


#: Code that the library calls itself, besides what readers give it.
LIBRARIES = (
    *sys.stdlib_module_names,
    "numpy",
    "numba",
    "traitlets",
    "ipywidgets",
    "anywidget",
    "plotly",
    "cupy",
    "msgpack",
    "onnx",
)


def _never_began(error: Exception, function: Callable[..., Any]) -> bool:
    """Whether the call itself failed, before a line of the function ran."""
    code = inspect.unwrap(function).__code__
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is code:
            return False
        trace = trace.tb_next
    return True


def _wrong_number(
    error: Exception,
    where: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    named: dict[str, Any],
) -> ArgumentError | None:
    """The error for arguments too many, missing or of an unknown name."""
    what = misfit_of_call(inspect.unwrap(function), args, named)
    if what is None:
        return None
    of = _written(function)
    cure = habit_cure(function.__name__, args, named, of)
    cure = cure or number_cure(where, inspect.unwrap(function), of)
    return ArgumentError(where, what, cure=cure)


def _written(function: Callable[..., Any]) -> str | None:
    """What stands before the dot in the reader's own call of a method."""
    frame: Any = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in OURS:
            return callee_at(frame, function.__name__)
        frame = frame.f_back
    return None


def place_of(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """What a reader calls a function: "Learner.fit", "AdamConfig.init", "capture"."""
    inner: Any = inspect.unwrap(function)
    owner, _, name = inner.__qualname__.rpartition(".")
    if not owner or owner.endswith("<locals>"):
        return name
    if args and signature_of(function).places[:1]:
        first = signature_of(function).places[0].name
        if first == "self":
            owner = type(args[0]).__name__
        elif first == "cls":
            owner = getattr(args[0], "__name__", owner)
    return owner if name == "__init__" else f"{owner}.{name}"


def _gives_nothing(function: Callable[..., Any]) -> bool:
    return function.__annotations__.get("return", "") in (None, "None")


def _remember(known: set[tuple[object, ...]], types: tuple[object, ...]) -> None:
    if len(known) >= MOST_KNOWN:
        known.clear()
    known.add(types)


MOST_KNOWN = 100  # types of arguments that a function remembers


def checked(function: F) -> F:
    """Let a function compare what it is given with its annotations."""
    signature: Signature | None = None
    own = 0
    known: set[tuple[object, ...]] = set()  # types of arguments that fit
    # A function that gives nothing is called for what it changes.
    acts = "." not in function.__qualname__ and _gives_nothing(function)

    @functools.wraps(function)
    def call(*args: object, **named: object) -> Any:
        nonlocal signature, own
        types = tuple(map(type, args))
        if named:
            types = (types, *named, *map(type, named.values()))
        found = None
        if types not in known:
            if signature is None:
                signature = signature_of(function)
                own = _own(signature)
            found = signature.misfit(args, named, own)
            if found is None and signature.fits_by_type(args, named, own):
                _remember(known, types)
        if acts and found is not None:
            raise refusal(place_of(function, args), found)
        try:
            made = function(*args, **named)
        except RAW as error:
            if found is not None and isinstance(error, UnknownNameError):
                # It asked the wrong object.
                order = signature_of(function).other_order(args, own)
                raise refusal(place_of(function, args), found, order) from None
            raise explained(error, function, args, named) from cause_of(error)
        if found is not None:
            order = signature_of(function).other_order(args, own)
            raise refusal(place_of(function, args), found, order)
        return made

    call.__checked__ = True  # type: ignore[attr-defined] # not a second time
    return call  # type: ignore[return-value] # the same signature


def guarded(function: F) -> F:
    """Let a function compare with its annotations what it has failed with.

    Why: for what is called in each step. What it does not fail with costs nothing.
    """

    @functools.wraps(function)
    def call(*args: object, **named: object) -> Any:
        try:
            return function(*args, **named)
        except UnknownNameError as error:
            found = misfit(function, args, named)
            if found is None:
                raise
            raise refusal(place_of(function, args), found) from cause_of(error)
        except RAW as error:
            raise explained(error, function, args, named) from cause_of(error)

    call.__checked__ = True  # type: ignore[attr-defined] # not a second time
    return call  # type: ignore[return-value] # the same signature


def cause_of(error: BaseException) -> BaseException | None:
    """What an error is raised from: itself, or its own cause if it is ours."""
    return error.__cause__ if isinstance(error, BurnbookError) else error


#: Methods that are called for each batch: only their failures are looked at.
PER_BATCH = frozenset(
    [
        "step",
        "batch",
        "update",
        "compute",
        "clear",
        "backward",
        "get_many",
        "get_stacked",
        "forward",
    ]
)
#: Methods that are called for each item or op: nothing stands before them,
PER_ITEM = frozenset(["get", "map", "value", "run", "val"])
#: nor before the layers that hand what they are given to one op, which says it itself.
ONE_OP = frozenset(
    [
        "Linear",
        "Relu",
        "Gelu",
        "Sigmoid",
        "Tanh",
        "LogSigmoid",
        "SiLU",
        "Silu",
        "Swish",
        "Softplus",
        "Softmax",
        "LogSoftmax",
        "LeakyRelu",
        "Elu",
        "Mish",
        "Dropout",
        "LayerNorm",
        "RmsNorm",
        "BatchNorm",
        "Embedding",
        "Conv1d",
        "Conv2d",
        "Conv3d",
        "ConvTranspose1d",
        "ConvTranspose2d",
        "ConvTranspose3d",
    ]
)
#: Classes that are made or asked in each op or step, with all that inherit from them,
LIGHT = frozenset(
    ["Methods", "TensorData", "Shape", "Param", "Gradients", "GradientsParams"]
)
#: and files that hold nothing else.
LIGHT_HOMES = ("burnbook.backend", "burnbook.ops", "burnbook.optim.")
#: What is called now and then of these classes, and so is checked.
SELDOM = {
    name: frozenset(methods.split())
    for name, methods in {
        "Masks": "triu_mask tril_mask diag_mask cartesian_grid triu tril one_hot_fill",
        "Sampling": "grid_sample_2d",
        "Precision": "cast from_primitive inplace",
        "Quantizing": "quantize quantize_dynamic",
        "Indexing": "scatter_nd",
        "Layout": "unsqueeze_dims movedim split_with_sizes roll slice_fill reshape_to",
        "Basic": "slice_assign scatter iter_dim",
        "Tracking": "set_require_grad from_inner",
        "Protocol": "from_dlpack",
        "QuantizedTensor": "of_codes",
        "TensorData": """zeros ones full quantized to_numpy as_slice to_vec iter random
            assert_approx_eq assert_approx_eq_diff assert_eq from_bytes
            assert_within_range with_quantization""",
        "Param": "from_tensor from_data uninitialized set_require_grad initialized",
        "RunningState": "of set_require_grad",
        "BalancedCheckpointing": "__init__",
        "GradientsParams": """from_grads from_module from_params to_device register
            remove""",
        "MultiGradientsParams": "add remove __init__",
    }.items()
}
NOT_LIGHT = frozenset(("burnbook.optim." + n) for n in ["adaptor", "groups", "lbfgs"])


def checks_arguments(owner: types.ModuleType, names: Iterable[str]) -> None:
    """Let the public functions and classes of a package check their arguments."""
    held = vars(owner)
    for name in names:
        found = held.get(name)
        if isinstance(found, type):
            _check_class(found)
        elif isinstance(found, types.FunctionType) and _is_to_wrap(found):
            home = sys.modules.get(found.__module__)
            made = checked(found)
            for place in filter(None, (home, owner)):
                if vars(place).get(name) is found:
                    setattr(place, name, made)


def _is_to_wrap(function: Any) -> bool:
    """Whether it is ours, not checked yet, and does not look at who calls it."""
    ours = function.__module__.partition(".")[0] in OURS
    if not ours or getattr(function, "__checked__", False):
        return False
    if inspect.iscoroutinefunction(function):  # what it raises is for who awaits it
        return False
    return "_getframe" not in function.__code__.co_names


def _check_class(cls: type) -> None:
    """Let a class check what it is made with, and its methods what they are given."""
    for base in cls.__mro__:
        if not _is_of(base, OURS) or base in _CHECKED:
            continue
        _CHECKED.add(base)
        if getattr(base, "_is_protocol", False):
            continue
        chosen = SELDOM.get(base.__name__, frozenset()) if _is_light(base) else None
        for name, member in list(vars(base).items()):
            if chosen is not None and name not in chosen:
                continue
            inner = getattr(member, "__func__", member)
            if isinstance(member, (types.FunctionType, classmethod, staticmethod)):
                made = _wrapped(base, name, inner)
                if made is not inner:
                    of: Any = type(member)
                    setattr(base, name, made if inner is member else of(made))


OURS = ("burnbook", "burnbook_widgets")
_CHECKED: weakref.WeakSet[type] = weakref.WeakSet()


def _is_of_nn(cls: type) -> bool:
    return cls.__module__.startswith("burnbook.nn.")


def _is_light(cls: type) -> bool:
    home = cls.__module__
    if home.startswith(LIGHT_HOMES) and home not in NOT_LIGHT:
        return True
    if issubclass(cls, (Enum, Exception)):
        return True
    if home.startswith("burnbook.optim.") and cls.__name__.endswith("State"):
        return True
    return any(base.__name__ in LIGHT for base in cls.__mro__)


def _wrapped(cls: type, name: str, inner: object) -> Any:
    """A method that checks; the same method where it need not, or must not."""
    special = name.startswith("_") and name != "__init__"
    if name == "forward" and cls.__name__ in ONE_OP:
        return inner
    if special or name in PER_ITEM or not isinstance(inner, types.FunctionType):
        return inner
    if name == "__init__" and (hasattr(cls, "to_json") or hasattr(cls, "find_part")):
        return inner  # configs and modules check their fields themselves
    through = ("State", "Output", "Input")
    if name == "__init__" and cls.__name__.endswith(through) and _is_of_nn(cls):
        return inner  # what goes through a layer: placeholders and arrays of others too
    way = guarded if name in PER_BATCH else checked
    again = getattr(inner, "__again__", None)
    if again is not None:  # it looks at who calls it, so that must stay outside
        held: Any = inner
        return again(way(held.__wrapped__)) if _is_to_wrap(held.__wrapped__) else inner
    return way(inner) if _is_to_wrap(inner) else inner


ON_PACKAGE.append(checks_arguments)
