"""Fields are checked when a module is made.

Rust knows the type of every field before a program runs. Here the annotations say it,
and each module is compared with them once: when its class is called, or `replace` is.
Modules that come from modules (a step of an optimizer, `map`, `valid`) are not compared
again, so the check costs nothing in training. Nothing is assigned after that.
"""

import ast
import collections.abc
import dataclasses
import difflib
import functools
import inspect
import itertools
import numbers
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

from burnbook.core.errors import FieldError, FrozenError
from burnbook.core.other_names import unknown
from burnbook.module.param import Param
from burnbook.module.tree import Tree, field_hints, has_place, resolved, spelled
from burnbook.tensor import Tensor
from burnbook.tensor.spec import TensorSpec

Misfit = tuple[str, Any, "Wanted"]  # where, the value, and what should stand there


class Wanted:
    """What an annotation accepts; this one accepts everything."""

    text = "anything"

    def fits(self, value: Any) -> bool:
        """Whether the value may stand in the field."""
        return True

    def misfits(self, value: Any, at: str) -> Iterator[Misfit]:
        """The parts of the value that do not fit."""
        if not self.fits(value):
            yield at, value, self


class Of(Wanted):
    """An instance of a class, or of a class of that name that was defined again."""

    def __init__(self, cls: type, text: str = ""):
        self.cls = cls
        self.text = text or cls.__name__

    def fits(self, value: Any) -> bool:
        """Whether it is an instance."""
        try:
            return isinstance(value, self.cls) or self._again(type(value))
        except TypeError:  # a Protocol that says nothing at run time
            return True

    def _again(self, cls: type) -> bool:
        """Whether a notebook's cell or a reload has made the class anew."""
        name = self.cls.__module__, self.cls.__qualname__
        return any((c.__module__, c.__qualname__) == name for c in cls.__mro__)


class Number(Of):
    """A number, also one of NumPy's: int, float, complex or bool."""

    ABSTRACT: typing.ClassVar[dict[type, Any]] = {
        int: numbers.Integral,
        float: numbers.Real,
        complex: numbers.Complex,
        bool: numbers.Integral,
    }

    def fits(self, value: Any) -> bool:
        """Whether it is such a number; NumPy's bool is no number to NumPy."""
        kind = type(value)
        return (
            kind is self.cls
            or isinstance(value, self.ABSTRACT[self.cls])
            or kind.__name__.startswith("bool")
        )


class Parameter(Of):
    """A Param, and with `Param[Tensor[2]]` one of that rank and kind."""

    def __init__(self, cls: type, inside: Any = None):
        self.spec = inside if isinstance(inside, TensorSpec) else None
        inner = "" if inside is None else f"[{_spell(inside)}]"
        super().__init__(cls, cls.__name__ + inner)

    def fits(self, value: Any) -> bool:
        """Whether it is one; a lazy one of unknown shape is not drawn to find out."""
        if not super().fits(value):
            return False
        if self.spec is None or not value.is_shaped:
            return True
        return self.spec.allows(len(value.shape), value.kind, value.device)


class Named(Wanted):
    """A name that cannot be looked up: only its config is known to be wrong."""

    def __init__(self, text: str):
        self.text = text

    def fits(self, value: Any) -> bool:
        """Whether it is anything but the config of that name."""
        return type(value).__name__ != f"{self.text}Config"


class Exactly(Wanted):
    """None, or one of the values of a Literal."""

    def __init__(self, values: tuple[Any, ...]):
        self.values = values
        self.text = " | ".join(map(repr, values))

    def fits(self, value: Any) -> bool:
        """Whether it is one of them."""
        return any(value is one or _equal(value, one) for one in self.values)


class Either(Wanted):
    """One of several: `DwsConv | Conv2d`, `Linear | None`."""

    def __init__(self, arms: list[Wanted]):
        self.arms = arms
        self.text = " | ".join(arm.text for arm in arms)

    def fits(self, value: Any) -> bool:
        """Whether it is one of them."""
        return any(arm.fits(value) for arm in self.arms)

    def misfits(self, value: Any, at: str) -> Iterator[Misfit]:
        """The parts that do not fit the one arm that looks like the value."""
        if self.fits(value):
            return
        likely = [arm for arm in self.arms if isinstance(arm, Parts)]
        if len(likely) == 1 and likely[0].looks(value):
            yield from likely[0].misfits(value, at)
        else:
            yield at, value, self


class Parts(Wanted):
    """Something with parts; lists and tuples stand in for each other."""

    outer: Any = (list, tuple)

    def looks(self, value: Any) -> bool:
        """Whether the value is such a container, whatever is inside."""
        return isinstance(value, self.outer)

    def rows(self, value: Any) -> Iterator[tuple[str, Any, Wanted]]:
        """Every part: its place, itself, and what it should be."""
        raise NotImplementedError

    def fits(self, value: Any) -> bool:
        """Whether the container and every part fit."""
        return self.looks(value) and all(w.fits(v) for _, v, w in self.rows(value))

    def misfits(self, value: Any, at: str) -> Iterator[Misfit]:
        """The parts that do not fit."""
        if not self.looks(value):
            yield at, value, self
            return
        for place, part, wanted in self.rows(value):
            yield from wanted.misfits(part, f"{at}[{place}]")


class Many(Parts):
    """Any number of one thing: list[Linear], tuple[Linear, ...], Sequence[int]."""

    def __init__(self, outer: Any, item: Wanted, text: str):
        self.outer, self.item, self.text = outer, item, text

    def rows(self, value: Any) -> Iterator[tuple[str, Any, Wanted]]:
        """Every item."""
        return ((str(i), part, self.item) for i, part in enumerate(value))


class Fixed(Parts):
    """One thing for each place: tuple[int, str]."""

    def __init__(self, items: list[Wanted], text: str):
        self.items, self.text = items, text

    def looks(self, value: Any) -> bool:
        """Whether it is a tuple or list of that length."""
        return super().looks(value) and len(value) == len(self.items)

    def rows(self, value: Any) -> Iterator[tuple[str, Any, Wanted]]:
        """Every item with what stands at its place."""
        pairs = zip(value, self.items, strict=True)
        return ((str(i), part, item) for i, (part, item) in enumerate(pairs))


class Table(Parts):
    """A dict; only its values are looked at."""

    outer = collections.abc.Mapping

    def __init__(self, item: Wanted, text: str):
        self.item, self.text = item, text

    def rows(self, value: Any) -> Iterator[tuple[str, Any, Wanted]]:
        """Every value."""
        return ((repr(key), part, self.item) for key, part in value.items())


ANYTHING = Wanted()


def wanted(annotation: Any, owner: type) -> Wanted:
    """What an annotation of a class accepts."""
    annotation = resolved(annotation, owner)
    if isinstance(annotation, ast.expr):
        return _from_text(annotation, owner)
    origin, arms = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return wanted(arms[0], owner)
    if origin is typing.Literal:
        return Exactly(arms)
    if origin in (typing.Union, types.UnionType):
        return _either([wanted(arm, owner) for arm in arms])
    if origin is not None:
        return _generic(origin, arms, owner)
    return _plain(annotation, owner)


def _plain(annotation: Any, owner: type) -> Wanted:
    """What an annotation without parts accepts."""
    if annotation is None or annotation is types.NoneType:
        return Exactly((None,))
    if isinstance(annotation, TensorSpec):
        return Of(annotation, repr(annotation))  # type: ignore[arg-type] # asked as a class
    if isinstance(annotation, typing.NewType):
        return wanted(annotation.__supertype__, owner)
    if isinstance(annotation, typing.TypeVar):
        bound = annotation.__bound__
        return ANYTHING if bound is None else wanted(bound, owner)
    if annotation in (Callable, typing.Callable):
        return Of(collections.abc.Callable, "function")  # type: ignore[arg-type]
    if annotation in (Any, object) or not isinstance(annotation, type):
        return ANYTHING
    if annotation in Number.ABSTRACT:
        return Number(annotation)
    if issubclass(annotation, Param):
        return Parameter(annotation)
    return Of(annotation)


def _generic(origin: Any, arms: tuple[Any, ...], owner: type) -> Wanted:
    """What an annotation with parts accepts: list[Linear], Param[Tensor[2]]."""
    if not isinstance(origin, type):
        return ANYTHING
    if issubclass(origin, Param):
        return Parameter(origin, resolved(arms[0], owner))
    if origin is collections.abc.Callable:
        return Of(origin, "function")
    inside = [ANYTHING if arm is ... else wanted(arm, owner) for arm in arms]
    text = f"{origin.__name__}[{', '.join(arm.text for arm in inside)}]"
    if origin is tuple and ... not in arms:
        return Fixed(inside, text)
    if issubclass(origin, collections.abc.Mapping):
        return Table(inside[-1], text)
    if issubclass(origin, collections.abc.Collection):
        pair = (list, tuple) if origin in (list, tuple) else origin
        return Many(pair, inside[0], text.replace(", anything", ", …"))
    return Of(origin)


def _from_text(tree: ast.expr, owner: type) -> Wanted:
    """What an annotation accepts that names something which cannot be looked up."""
    if isinstance(tree, ast.BinOp):
        parts = [wanted(ast.unparse(arm), owner) for arm in (tree.left, tree.right)]
        return _either(parts)
    if not isinstance(tree, ast.Subscript):
        return Named(ast.unparse(tree).rpartition(".")[2])
    inside = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
    arms = [wanted(ast.unparse(arm), owner) for arm in inside]
    name = ast.unparse(tree.value).rpartition(".")[2]
    if name in ("Optional", "Union"):
        return _either([*arms, *([Exactly((None,))] if name == "Optional" else [])])
    if name in ("list", "List"):
        return Many((list, tuple), arms[0], f"list[{arms[0].text}]")
    if name in ("dict", "Dict"):
        return Table(arms[-1], f"dict[str, {arms[-1].text}]")
    return ANYTHING


def _either(arms: list[Wanted]) -> Wanted:
    flat = [a for arm in arms for a in (arm.arms if isinstance(arm, Either) else [arm])]
    return ANYTHING if any(type(arm) is Wanted for arm in flat) else Either(flat)


@functools.cache
def wanted_fields(cls: type) -> tuple[tuple[str, Wanted, Any], ...]:
    """Name, what is accepted and the default of each field of a module class."""
    rows = []
    for field in dataclasses.fields(cls):
        owners = (c for c in cls.__mro__ if field.name in inspect.get_annotations(c))
        accepts = wanted(field.type, next(owners, cls))
        rows.append((field.name, accepts, field.default))
    return tuple(rows)


# Modules whose constructor is running: only to these values are assigned.
_MAKING: set[int] = set()


def guard_constructor(cls: type) -> None:
    """Let the constructor of a module class compare the fields when it has filled them.

    Why a set of ids: the module itself keeps no mark, and one that is built anew from
    another never passes here.
    """
    make = cls.__init__

    @functools.wraps(make)
    def init(self: Any, *args: Any, **named: Any) -> None:
        number = id(self)
        if number in _MAKING:  # of a class below: its own constructor goes on
            make(self, *args, **named)
            return
        _MAKING.add(number)
        try:
            try:
                make(self, *args, **named)
            except FieldError as error:
                if error.where == type(self).__name__:
                    _refuse_sizes(type(self), args, named)
                raise
        finally:
            _MAKING.discard(number)
        if not all(
            accepts.fits(self.__dict__[name]) if name in self.__dict__ else False
            for name, accepts, _ in wanted_fields(type(self))
        ):
            check_fields(self, args, named)

    cls.__init__ = init


def check_fields(
    module: Any, args: tuple[Any, ...] = (), named: dict[str, Any] | None = None
) -> None:
    """Raise a FieldError if a field of a module is not what its annotation says."""
    cls, found = type(module), []
    for name, accepts, default in wanted_fields(cls):
        value = module.__dict__.get(name, dataclasses.MISSING)
        if value is dataclasses.MISSING:
            if not hasattr(cls, name):
                raise _never_set(cls, name)
        elif value is not default:
            found += accepts.misfits(value, name)
    if not found:
        return
    facts = [(at, f"{_given(v)}, must be {w.text}") for at, v, w in found]
    turned = _turned(found)
    if turned is not None:
        names = " and ".join(at for at, _, _ in found[:-1]), found[-1][0]
        verb = "swapped" if len(found) == 2 else "in another order"
        what = f"are {' and '.join(names)} {verb}?"
        first = ", ".join(f"{at}=…" for at, _, _ in found)
        raise FieldError(cls.__name__, what, facts, f"{cls.__name__}({first}) by name")
    at, value, accepts = found[0]
    what = f"this must be {_article(accepts.text)}, not {_given(value, short=True)}"
    if (args or named) and not isinstance(accepts, (Number, Many, Fixed)):
        _refuse_sizes(cls, args, named or {})
    cure = _cure(at, value, accepts)
    facts = facts[1:] if len(found) > 1 else _details(value)
    raise FieldError(f"{cls.__name__}.{at}", what, facts, cure)


def refuse_change(module: Any, name: str, value: Any = None, verb: str = "set") -> None:
    """Raise unless the constructor of the module is running, or Python marks it."""
    if id(module) in _MAKING or (name.startswith("__") and name.endswith("__")):
        return
    cls = type(module).__name__
    fields = list(field_hints(type(module)))
    where = f"{cls}.{name}"
    what = "a module never changes in place"
    if name in fields:
        kind = isinstance(value, Tensor) and isinstance(module.__dict__[name], Param)
        new = f"module.{name}.map(lambda _: …)" if kind else "…"
        cure = f"module = module.replace({name}={new}), a changed copy"
        if verb == "delete":
            cure = f"module = module.replace({name}=None), where None is allowed"
        raise FrozenError(where, what, cure=cure)
    if name == "requires_grad":
        raise unknown(cls, "Module", name)
    near = difflib.get_close_matches(name, fields, 1)
    facts = [("fields", ", ".join(fields) or "none")]
    cure = f"a field: the line `{name}: {type(value).__name__}` in the class"
    cure = f"module = module.replace({near[0]}=…)" if near else cure
    raise FrozenError(where, f"{what}, and {name} is not a field", facts, cure)


def known_fields(module: Any, names: collections.abc.Iterable[str]) -> dict[str, str]:
    """The fields that these names mean; a FieldError for one that is none."""
    cls = type(module)
    known = {spelled(name): name for name in field_hints(cls)}
    known |= {name: name for name in known.values()}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            facts = [("fields", ", ".join(field_hints(cls)) or "none")]
            cure = f"{near[0]}=…" if near else None
            what = f"{name} is not one of its fields"
            raise FieldError(f"{cls.__name__}.replace", what, facts, cure)
    return known


def _never_set(cls: type, name: str) -> FieldError:
    what = f"its constructor has set no {name}"
    cure = f"self.{name} = … in __init__, or no __init__ and {cls.__name__}({name}=…)"
    return FieldError(cls.__name__, what, cure=cure)


def _turned(found: list[Misfit]) -> list[Misfit] | None:
    """The misfits with their values in the order in which all fit, if there is one."""
    if not 2 <= len(found) <= 5 or any("[" in at for at, _, _ in found):
        return None
    for values in itertools.permutations([value for _, value, _ in found]):
        rows = [(at, v, w) for (at, _, w), v in zip(found, values, strict=True)]
        if all(accepts.fits(value) for _, value, accepts in rows):
            return rows
    return None


def _cure(at: str, value: Any, accepts: Wanted) -> str | None:
    """How to make of the value what the field wants."""
    arms = accepts.arms if isinstance(accepts, Either) else [accepts]
    param = next((arm for arm in arms if isinstance(arm, Parameter)), None)
    if value is None:
        field = at.partition("[")[0]
        return f"a value, or `{field}: {accepts.text} | None` in the class"
    if param is not None and not isinstance(value, Param):
        if isinstance(value, Tensor):
            return f"{param.cls.__name__}.from_tensor(…), which is learned and saved"
        return f"{param.cls.__name__}.from_data(…, device)"
    if param is not None and param.spec is not None:
        return f"a value of that shape, or `{at}: {param.cls.__name__}` for every rank"
    if isinstance(value, Param) and any("Tensor" in arm.text for arm in arms):
        return f"`{at}: Param` in the class, or param.val() for a constant"
    if is_config(value):
        return f"{type(value).__name__}(…){_init_call(type(value))}"
    if isinstance(value, type):
        config = config_of(value)
        made = f"{config.__name__}(…){_init_call(config)}" if config else ""
        return made or f"{value.__name__}()"
    if any(isinstance(arm, Many) and arm.item.fits(value) for arm in arms):
        return f"{at}=[…]"
    if inspect.isgenerator(value):
        return "list(…) of it: a generator can be read only once"
    return None


def is_config(value: Any) -> bool:
    """Whether a value looks like a config: frozen fields and an `init`."""
    cls = type(value)
    if isinstance(value, Tree) or not dataclasses.is_dataclass(cls):
        return False
    return hasattr(cls, "init") and hasattr(cls, "to_json")


def config_of(cls: type) -> Any:
    """The config that makes modules of a class, by its name; or None."""
    scope = vars(sys.modules.get(cls.__module__, types))
    config = scope.get(f"{cls.__name__}Config")
    return config if isinstance(config, type) and hasattr(config, "init") else None


def _refuse_sizes(cls: type, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Raise for `nn.Linear(3, 2)`: sizes, where a layer takes its finished parts."""
    config = config_of(cls)
    given = (*args, *named.values())
    parts = (Tree, Param, Tensor)
    if config is None or any(isinstance(v, parts) or is_config(v) for v in given):
        return
    try:
        config(*args, **named)
        shown = [repr(value) for value in args]
        shown += [f"{name}={value!r}" for name, value in named.items()]
    except Exception:  # whatever it says: these are not its arguments
        fields = inspect.signature(config).parameters.values()
        shown = [f.name for f in fields if f.default is f.empty]
    name = f"nn.{config.__name__}" if _is_ours(cls) else config.__name__
    kind = "sizes" if has_place(cls) else "settings"
    what = f"{kind} go into its config; {cls.__name__}(…) itself takes finished parts"
    facts = [("fields", ", ".join(field_hints(cls)))]
    cure = f"{name}({', '.join(shown)}){_init_call(config)}"
    raise FieldError(cls.__name__, what, facts, cure) from None


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("burnbook.nn")


def _init_call(config: type) -> str:
    """`.init(device)`, or `.init()` of what needs no device."""
    try:
        takes = list(inspect.signature(config.init).parameters)[1:]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        takes = ["device"]
    return f".init({'device' if takes else ''})"


def _details(value: Any) -> list[tuple[str, str]]:
    if isinstance(value, (Param, Tensor)):
        return [("given", _given(value))]
    return []


def _given(value: Any, short: bool = False) -> str:
    """What stands in the field, in a few words."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, (Param, Tensor)):
        kind, sizes = value.kind.__name__, list(value.shape)
        name = "Param" if isinstance(value, Param) else "Tensor"
        shape = f"rank {len(sizes)}" if short else f"{kind} {sizes}"
        return f"{_article(name)} of {shape}" if short else f"{name} {shape}"
    if isinstance(value, (int, float, str)):
        return repr(value)[:40]
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return _article(type(value).__name__)


def _article(text: str) -> str:
    sounds = text[:1].lower() in "aeio" or text.startswith("nd")
    return f"an {text}" if sounds else f"a {text}"


def _spell(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else repr(annotation)


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)
