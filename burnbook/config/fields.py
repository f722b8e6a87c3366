"""How the values of a config are checked, read and written.

One method, `Reader.read`, fits a value to the type that a field declares: given by the
user it checks (and turns a list into the tuple that is meant), parsed from JSON it also
builds nested configs and choices. Every misfit is noted, so one error can list all.
"""

import collections.abc as abc
import dataclasses
import difflib
import enum
import math
import operator
import pathlib
import types
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from burnbook.core.converters import ANYTHING, TypeSpec, type_spec, type_specs
from burnbook.core.errors import ConfigError

SMALLEST, LARGEST = -(2**63), 2**64 - 1  # what i64 and u64 hold


class Problem(NamedTuple):
    """One field that does not fit: what is wrong, the cure, the names that exist."""

    text: str
    cure: str | None = None
    known: tuple[str, ...] = ()
    names: str = "fields"  # what the names are


class Choices:
    """What `Reader` and `encode` recognize a choice by (see `config.ConfigEnum`)."""

    __slots__ = ()

    @classmethod
    def holding_just(cls, value: object) -> Any:
        """The one variant that holds a value of this class alone; None if unclear."""
        return None


class Repeated(dict[str, Any]):
    """A JSON object, with the names that it has more than once."""

    def __init__(self, pairs: list[tuple[str, Any]]):
        super().__init__(pairs)
        names = [name for name, _ in pairs]
        self.again = tuple(name for name in self if names.count(name) > 1)

    def problems(self, path: str) -> list[Problem]:
        """One for each repeated name."""
        at = f"{path}." if path else ""
        return [Problem(f"{at}{cut(name)} appears twice") for name in self.again]


class Reader:
    """Fits values to types, and notes what does not fit.

    parsed: the values come from JSON, so configs and choices are still plain data.
    """

    def __init__(self, parsed: bool):
        self.parsed = parsed
        self.problems: list[Problem] = []

    def read(self, value: object, spec: TypeSpec, path: str) -> Any:
        """The value as the type wants it; a misfit is added to `problems`."""
        if isinstance(value, Repeated):
            self.problems += value.problems(path)
        if spec.form == "any" and self.parsed and _half_inside(value):
            self.note(f"{path} holds an unpaired surrogate")
        if spec.form in ("any", "other"):
            return value
        if spec.form == "union":
            return self._union(value, spec, path)
        if spec.form == "literal":
            same = any(type(v) is type(value) and v == value for v in spec.values)
            return value if same else self._misfit(value, spec, path)
        if spec.kind in _PLAIN:
            return self._plain(value, spec, path)
        if spec.kind in _CONTAINERS:
            return self._container(value, spec, path)
        return value if isinstance(value, spec.kind) else self._other(value, spec, path)

    def note(
        self,
        text: str,
        cure: str | None = None,
        known: Iterable[str] = (),
        names: str = "fields",
    ) -> None:
        """Remember one field that does not fit."""
        self.problems.append(Problem(text, cure, tuple(known), names))

    def _misfit(
        self, value: object, spec: TypeSpec, path: str, cure: str | None = None
    ) -> Any:
        got = "None" if value is None else f"{type(value).__name__} {_shown(value)}"
        text = f"{path} must be {type_text(spec)}, not {got}"
        if not path:
            text = f"the JSON must hold the fields of {type_text(spec)} in braces"
        self.note(text, cure or _choices(value, spec) or _converted(value, spec, path))
        return value

    def _plain(self, value: object, spec: TypeSpec, path: str) -> Any:
        fitted = _PLAIN[spec.kind](value)
        if fitted is not None or (value is None and spec.form == "none"):
            return fitted
        if spec.kind is int and self._is_too_long(value):
            self.note(f"{path} is a whole number of more than 64 bits")
        elif spec.kind is str and isinstance(value, str):
            self.note(f"{path} holds an unpaired surrogate: {cut(repr(value))}")
        else:
            self._misfit(value, spec, path)
        return value

    def _is_too_long(self, value: object) -> bool:
        """Whether this is a whole number without a place; JSON makes floats of them."""
        if isinstance(value, float):
            return self.parsed and math.isfinite(value) and abs(value) >= 2**63
        return isinstance(value, int) and not isinstance(value, bool)

    def _union(self, value: object, spec: TypeSpec, path: str) -> Any:
        """The first type that fits; if only one could be meant, its problems."""
        if value is None and spec.optional:
            return None
        fits, tries = [], []
        for arm in spec.meant:
            one = Reader(self.parsed)
            fitted = one.read(value, arm, path)
            if one.problems:
                tries.append(one.problems)
            else:
                fits.append(fitted)
        made = (one for one in fits if dataclasses.is_dataclass(one))
        alike = {type(one).__name__: None for one in made}
        if self.parsed and len(alike) > 1:
            text = f"{path} may be {' or '.join(alike)}: the JSON does not say which"
            self.note(text, "a ConfigEnum with a variant for each")
            return value
        if fits:
            return fits[0]
        deeper = [all_ for all_ in tries if not all_[0].text.startswith(f"{path} must")]
        if len(deeper) == 1:
            self.problems += deeper[0]
            return value
        return self._misfit(value, spec, path)

    def _container(self, value: object, spec: TypeSpec, path: str) -> Any:
        made = _CONTAINERS[spec.kind]
        if made is not dict:
            places = spec.parts if spec.form == "tuple" else None
            return self._list(value, spec, made, places, path)
        if not isinstance(value, abc.Mapping):
            return self._misfit(value, spec, path)
        key, item = spec.parts or (ANYTHING, ANYTHING)
        return {
            self._key(name, key, path): self.read(
                held, item, f"{path}.{cut(str(name))}"
            )
            for name, held in value.items()
        }

    def _key(self, name: Any, spec: TypeSpec, path: str) -> Any:
        """A key as the type wants it; in JSON the number 3 is the text "3"."""
        spec = spec if spec.kind in (str, int) or spec.of_class(enum.Enum) else _STR
        inner = Reader(self.parsed)
        if self.parsed and spec.kind is int:
            digits = name[1:] if name[:1] == "-" else name
            plain = digits.isdecimal() and len(digits) <= 20 and str(int(name)) == name
            key = inner.read(int(name) if plain else name, spec, path)
        else:
            key = inner.read(name, spec, path)
        if inner.problems:
            shown = cut(repr(name))
            self.note(f"{path}: the key {shown} must be {type_text(spec)}")
        return key

    def _list(
        self,
        value: object,
        spec: TypeSpec,
        kind: type[Any],
        places: tuple[TypeSpec, ...] | None,
        path: str,
    ) -> Any:
        """A list, tuple or set; `places` are the types of one that has its length."""
        if isinstance(value, np.ndarray):
            value = value.tolist()
        only_lists = self.parsed or kind in (list, tuple)
        if not isinstance(value, (list, tuple) if only_lists else (*LISTS, abc.Set)):
            count = 1 if places is None else len(places)
            plain = isinstance(value, (int, float))
            cure = f"[{', '.join([str(value)] * count)}]" if plain else None
            return self._misfit(value, spec, path, cure)
        held = list(value)
        wanted = spec.places(len(held)) if places is None else places
        if len(wanted) != len(held):
            cure = f"[{', '.join(map(type_text, wanted))}]"
            return self._misfit(value, spec, path, cure)
        rows, before = enumerate(zip(held, wanted, strict=True)), len(self.problems)
        fitted = [self.read(v, w, f"{path}[{i}]") for i, (v, w) in rows]
        same = type(value) is kind and all(map(operator.is_, fitted, held))
        if same or len(self.problems) > before:
            return value
        try:
            return kind(fitted)
        except TypeError:  # a set of what has no hash
            return self._misfit(value, spec, path)

    def _other(self, value: object, spec: TypeSpec, path: str) -> Any:
        """A path, or what JSON has as a text or in braces: a choice, a config."""
        kind, before = spec.kind, len(self.problems)
        if issubclass(kind, Choices) and dataclasses.is_dataclass(value):
            made = kind.holding_just(value)
            if made is not None:
                return made
        if issubclass(kind, pathlib.PurePath) and isinstance(value, str):
            return kind(value)
        if hasattr(kind, "_fields") and isinstance(value, LISTS):  # a NamedTuple
            places = tuple(type_specs(kind).values())
            held = self._list(value, spec, tuple, places, path)
            return kind(*held) if len(self.problems) == before else None
        if self.parsed and isinstance(value, (dict, str)):
            if dataclasses.is_dataclass(kind):
                return self._config(value, spec, path)
            if issubclass(kind, Choices):
                return self._choice(value, spec, path)
            if issubclass(kind, enum.Enum) and isinstance(value, str):
                known = kind.__members__
                if value in known:
                    return known[value]
                return self._unknown(value, known, kind.__name__, path)
        return self._misfit(value, spec, path, _made_of(value, kind, path))

    def _config(self, tree: object, spec: TypeSpec, path: str) -> Any:
        if not isinstance(tree, dict):
            return self._misfit(tree, spec, path)
        cls, at, before = spec.kind, f"{path}." if path else "", len(self.problems)
        rows = _dataclass_fields(cls)
        names = tuple(name for name, _, _ in rows)
        tree = _as_ours(cls, tree)
        for name in tree:
            if name not in names:
                text = f"{at}{cut(name)} is not a field of {cls.__name__}"
                near = closest(name, [n for n in names if n not in tree] or names)
                cure = near and f"{at}{near} in place of {at}{cut(name)}"
                self.note(text, cure, names)
        values = {}
        for name, inner, default in rows:
            if name in tree:
                field = attribute(cls, name)
                values[field] = self.read(tree[name], inner, f"{at}{name}")
            elif default is dataclasses.MISSING:
                self.note(f"{at}{name} ({type_text(inner)}) is missing", known=names)
        if len(self.problems) > before:
            return None
        try:
            return cls(**values)
        except ConfigError as error:
            self.note(f"{at}{error.what}", error.cure)
        except (TypeError, ValueError) as error:  # of the reader's own checks
            self.note(f"{path or cls.__name__}: {cut(str(error))}")
        return None

    def _choice(self, tree: object, spec: TypeSpec, path: str) -> Any:
        """ "Valid" or {"Explicit": [1, 1]}, {"Value": 1.0}, {"Normal": {"mean": 0}}."""
        cls, before = spec.kind, len(self.problems)
        name, held = (tree, None) if isinstance(tree, str) else (None, None)
        if isinstance(tree, dict) and len(tree) == 1:
            ((name, held),) = tree.items()
        if name is None:
            return self._misfit(tree, spec, path)
        variant = cls.variants.get(name)
        if variant is None:
            return self._unknown(name, cls.variants, cls.__name__, path)
        if not variant.types and held is None:
            return cls.make(name)
        types = variant.form(len(held) if isinstance(held, list) else 1)
        specs = tuple(map(type_spec, types))
        parts = _parts(held, variant.names, specs, isinstance(tree, dict))
        if parts is None:
            takes = variant.signature() or "nothing"
            self.note(f"{path}: {name} takes {takes}")
            return None
        at, count = f"{path}.{name}", len(parts)
        places = [f"{at}.{label}" for label in variant.names]
        places = places or [f"{at}[{i}]" if count > 1 else at for i in range(count)]
        checked = list(map(self.read, parts, specs, places))
        if len(self.problems) > before:
            return None
        try:
            return getattr(cls, name)(*checked)
        except ConfigError as error:
            return self.note(f"{path}: {error.what}", error.cure)

    def _unknown(self, name: str, known: Iterable[str], kind: str, path: str) -> None:
        text = f"{path}: {kind} has no {cut(name)!r}"
        self.note(text, closest(name, known), known, "known")


def _made_of(value: object, kind: type, path: str) -> str | None:
    """The call that makes a config of a dict with its fields."""
    if not isinstance(value, dict) or not dataclasses.is_dataclass(kind):
        return None
    fields: dict[Any, Any] = value
    if not {*fields} <= {field.name for field in dataclasses.fields(kind)}:
        return None
    given = [f"{name}={_shown(held)}" for name, held in fields.items()]
    return f"{path}={kind.__name__}({', '.join(given)})"


def _as_ours(cls: Any, tree: dict[str, Any]) -> dict[str, Any]:
    """What newer Burn has written, by the names of 0.15; both names may be there."""
    if not hasattr(cls, "renamed"):
        return tree
    for name, nothing in cls.absent.items():
        if tree.get(name) == nothing:
            tree = tree | {name: None}
    for name, later in cls.renamed.items():
        if later in tree and tree.get(name, tree[later]) == tree[later]:
            value = tree[later]
            tree = {k: v for k, v in tree.items() if k != later} | {name: value}
    return tree


def explain(where: str, cls: str, problems: list[Problem]) -> ConfigError:
    """One error for all misfits of one config."""
    facts: list[Any] = []
    what = problems[0].text
    if len(problems) > 1:
        what = f"{len(problems)} fields do not fit {cls}".rstrip()
        facts = [one.text for one in problems]
    elif problems[0].known:
        facts = [(problems[0].names, ", ".join(problems[0].known))]
    cures = dict.fromkeys(one.cure for one in problems if one.cure)
    return ConfigError(where, what, facts, "; ".join(cures) or None)


def _converted(value: object, spec: TypeSpec, path: str) -> str | None:
    """The number that a text, a whole float or a list of one stands for."""
    kinds = {part.kind for part in spec.meant} & {int, float}
    if not kinds or not path.isidentifier():
        return None
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    elif hasattr(value, "with_grad_clipping"):  # an optimizer, as PyTorch wants it
        return f"{path}=0.1: the optimizer is given to the step, or to build"
    elif not isinstance(value, (str, float)):
        return None
    try:
        number = float(value)  # type: ignore[arg-type] # what is no number raises
    except (TypeError, ValueError):
        return None
    if not math.isfinite(number) or (float not in kinds and number != int(number)):
        return None
    return f"{path}={number if float in kinds else int(number)!r}"


def type_text(spec: TypeSpec) -> str:
    """How a type reads in an error: "tuple[int, int]", "float or None"."""
    return spec.text(" or ")


def cut(text: str, width: int = 60) -> str:
    """The start of a text, on one line, without invisible characters."""
    text = " ".join(text[: 2 * width].split()) if len(text) > width else text
    text = text if text.isprintable() else repr(text)[1:-1]
    return text if len(text) <= width else text[: width - 1] + "…"


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    found = difflib.get_close_matches(name, list(known), 1, 0.6)
    return found[0] if found else None


def _index(value: Any) -> int | None:
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        whole = operator.index(value)
    except TypeError:
        return None
    return whole if SMALLEST <= whole <= LARGEST else None


def _number(value: Any) -> float | None:
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return float(operator.index(value))
    except (TypeError, OverflowError):
        return None


def _truth(value: object) -> bool | None:
    return bool(value) if isinstance(value, (bool, np.bool_)) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and not has_half(value) else None


def has_half(text: str) -> bool:
    """Whether a text holds an unpaired surrogate, which no file can."""
    return any("\ud800" <= sign <= "\udfff" for sign in text)


def _half_inside(value: object) -> bool:
    if isinstance(value, dict):
        return any(_half_inside(part) for pair in value.items() for part in pair)
    if isinstance(value, list):
        return any(map(_half_inside, value))
    return isinstance(value, str) and has_half(value)


_PLAIN: dict[Any, Callable[[Any], Any]] = {
    bool: _truth,
    int: _index,
    float: _number,
    str: _text,
    types.NoneType: lambda value: None,
}
LISTS = (list, tuple)
_STR = type_spec(str)
_CONTAINERS: dict[Any, Any] = {kind: kind for kind in (dict, list, tuple)} | {
    set: set,
    frozenset: frozenset,
    abc.Sequence: tuple,
    abc.MutableSequence: list,
    abc.Mapping: dict,
    abc.MutableMapping: dict,
    abc.Set: frozenset,
    abc.MutableSet: set,
}


def _choices(value: object, spec: TypeSpec) -> str | None:
    """What can stand where a choice belongs: the one that is meant, or all of them."""
    arms = spec.meant if spec.form == "union" else spec.parts
    if len(arms) == 1 and isinstance(value, (int, float)):
        return _of_number(value, arms[0].kind)
    variants = getattr(spec.kind, "variants", None)
    if not variants:
        return None
    ways = {
        name: f"{spec.kind.__name__}.{name}"
        + (f"({variant.signature()})" if variant.types else "")
        for name, variant in variants.items()
    }
    meant = [ways[name] for name in ways if name.lower() == str(value).lower()]
    if type(value) is int and "Explicit" in variants:  # the padding of each side
        size = ", ".join([repr(value)] * len(variants["Explicit"].types))
        meant = [f"{spec.kind.__name__}.Explicit({size})"]
    return ", ".join(meant or ways.values())


def _of_number(value: float, kind: object) -> str | None:
    """The config or choice that a plain number stands for: of its first number."""
    if isinstance(value, bool) or not isinstance(kind, type):
        return None
    home = ".".join(kind.__module__.split(".")[:2])
    ways = [
        f"{kind.__name__}.{name}({value!r})"
        for name, variant in getattr(kind, "variants", {}).items()
        if variant.types == (float,)
    ]
    if hasattr(kind, "json_fields"):
        names = [name for name, hint, _ in kind.json_fields() if hint is float]
        ways = [f"{kind.__name__}({name}={value!r})" for name in names[:1]]
    made = ", or ".join(ways)
    return made and f"{made}; from {home} import {kind.__name__}"


def _shown(value: object) -> str:
    try:
        return cut(repr(value))
    except (ValueError, RecursionError):  # too many digits, or in itself
        return "too large to show"


def _dataclass_fields(cls: type[Any]) -> list[tuple[str, TypeSpec, object]]:
    """Name, type and default (or MISSING) of the fields of a config or dataclass."""
    if hasattr(cls, "json_fields"):
        return [(name, type_spec(hint), held) for name, hint, held in cls.json_fields()]
    specs, missing = type_specs(cls), dataclasses.MISSING
    return [
        (f.name, specs[f.name], f.default if f.default_factory is missing else None)
        for f in dataclasses.fields(cls)
        if f.init
    ]


def attribute(cls: type[Any], name: str) -> str:
    """What the field of a config is called in Python: "lambda" is lambda_ there."""
    return name if name in cls.__dataclass_fields__ else f"{name}_"


def _parts(
    held: object, names: tuple[str, ...], specs: tuple[TypeSpec, ...], named: bool
) -> list[object] | None:
    """The values that a choice holds in JSON, in order; None when they do not fit."""
    if names:
        if not isinstance(held, dict) or not set(held) <= set(names):
            return None
        pairs = zip(names, specs, strict=True)
        fits = all(name in held or spec.optional for name, spec in pairs)
        return [held.get(name) for name in names] if fits else None
    if len(specs) == 1:
        return [held] if named else None
    return (
        held if specs and isinstance(held, list) and len(held) == len(specs) else None
    )
