"""How the values of a config are checked, read and written.

One function, `read`, fits a value to the type that a field declares: given by the user
it checks (and turns a list into the tuple that is meant), parsed from JSON it also
builds nested configs and choices. Every misfit is noted, so one error can list all.
"""

import collections.abc as abc
import dataclasses
import difflib
import enum
import operator
import pathlib
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from burnbook.core.errors import ConfigError

SMALLEST, LARGEST = -(2**63), 2**64 - 1  # what i64 and u64 hold


class Problem(NamedTuple):
    """One field that does not fit: what is wrong, the cure, the names that exist."""

    text: str
    cure: str | None = None
    known: tuple[str, ...] = ()
    names: str = "fields"  # what the names are


class Choices:
    """What `read` and `encode` recognise a choice by (see `config.ConfigEnum`)."""

    __slots__ = ()


class Repeated(dict[str, Any]):
    """What JSON holds in braces, with the names that are there more than once."""

    def __init__(self, pairs: list[tuple[str, Any]]):
        super().__init__(pairs)
        names = [name for name, _ in pairs]
        self.again = tuple(name for name in self if names.count(name) > 1)

    def problems(self, path: str) -> list[Problem]:
        """One for each name that is there again."""
        at = f"{path}." if path else ""
        return [Problem(f"{at}{cut(name)} is there twice") for name in self.again]


def read(
    value: Any, hint: Any, path: str, problems: list[Problem], parsed: bool
) -> Any:
    """The value as the type wants it; a misfit is added to `problems`.

    parsed: the value comes from JSON, so configs and choices are still plain data.
    """
    while hasattr(hint, "__value__"):  # type Sizes = list[int]
        hint = hint.__value__
    origin, arms = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(value, Repeated):
        problems += value.problems(path)
    if hint is Any or isinstance(hint, typing.TypeVar):
        return _read_any(value, path, problems, parsed)
    if origin is typing.Annotated:
        return read(value, arms[0], path, problems, parsed)
    if origin in (typing.Union, types.UnionType):
        return _read_union(value, hint, arms, path, problems, parsed)
    if hint in _PLAIN or origin is typing.Literal:
        return _read_plain(value, hint, arms, path, problems)
    kind = origin or hint
    if not isinstance(kind, type):
        return value
    if kind in _CONTAINERS:
        return _read_container(value, hint, kind, arms, path, problems, parsed)
    if isinstance(value, kind):
        return value
    return _read_other(value, kind, path, problems, parsed)


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


def type_text(hint: Any) -> str:
    """How a type reads in an error: "tuple[int, int]", "float or None"."""
    origin, arms = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(type_text(arm) for arm in arms)
    if origin is typing.Literal:
        return " or ".join(map(repr, arms))
    if hint in (None, types.NoneType):
        return "None"
    if origin is not None and arms:
        inside = ", ".join("..." if arm is ... else type_text(arm) for arm in arms)
        return f"{origin.__name__}[{inside}]"
    return getattr(hint, "__name__", str(hint))


def cut(text: str, width: int = 60) -> str:
    """The start of a text, on one line, without signs that nobody can see."""
    text = " ".join(text[: 2 * width].split()) if len(text) > width else text
    text = text if text.isprintable() else repr(text)[1:-1]
    return text if len(text) <= width else text[: width - 1] + "…"


def closest(name: str, known: typing.Iterable[str]) -> str | None:
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


def _truth(value: Any) -> bool | None:
    return bool(value) if isinstance(value, (bool, np.bool_)) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and not has_half(value) else None


def has_half(text: str) -> bool:
    """Whether a text holds half a character, which no file can."""
    return any("\ud800" <= sign <= "\udfff" for sign in text)


def _read_any(value: Any, path: str, problems: list[Problem], parsed: bool) -> Any:
    if parsed and _half_inside(value):
        problems.append(Problem(f"{path} holds half a character"))
    return value


def _half_inside(value: Any) -> bool:
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
    None: lambda value: None,
    types.NoneType: lambda value: None,
}
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


def _read_plain(
    value: Any, hint: Any, arms: tuple[Any, ...], path: str, problems: list[Problem]
) -> Any:
    if typing.get_origin(hint) is typing.Literal:
        same = any(type(arm) is type(value) and arm == value for arm in arms)
        return value if same else _misfit(value, hint, path, problems)
    fitted = _PLAIN[hint](value)
    if fitted is not None or (value is None and hint in (None, types.NoneType)):
        return fitted
    if hint is int and isinstance(value, int) and not isinstance(value, bool):
        problems.append(Problem(f"{path} is a whole number of more than 64 bits"))
    elif hint is str and isinstance(value, str):
        problems.append(Problem(f"{path} holds half a character: {cut(repr(value))}"))
    else:
        _misfit(value, hint, path, problems)
    return value


def _misfit(
    value: Any, hint: Any, path: str, problems: list[Problem], cure: str | None = None
) -> Any:
    got = "None" if value is None else f"{type(value).__name__} {_shown(value)}"
    text = f"{path} must be {type_text(hint)}, not {got}"
    cure = cure or _choices(value, hint)
    if not path:
        text = f"the JSON must hold the fields of {type_text(hint)} in braces"
    problems.append(Problem(text, cure))
    return value


def _choices(value: Any, hint: Any) -> str | None:
    """What can stand where a choice belongs: the one that is meant, or all of them."""
    arms = [arm for arm in typing.get_args(hint) if arm is not types.NoneType]
    if len(arms) == 1 and isinstance(value, (int, float)):
        return _of_number(value, arms[0])
    variants = getattr(hint, "variants", None)
    if not isinstance(hint, type) or not variants:
        return None
    ways = {
        name: f"{hint.__name__}.{name}"
        + (f"({variant.signature()})" if variant.types else "")
        for name, variant in variants.items()
    }
    meant = [ways[name] for name in ways if name.lower() == str(value).lower()]
    return ", ".join(meant or ways.values())


def _of_number(value: float, kind: Any) -> str | None:
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


def _shown(value: Any) -> str:
    try:
        return cut(repr(value))
    except (ValueError, RecursionError):  # too many digits, or in itself
        return "too large to show"


def _read_union(
    value: Any,
    hint: Any,
    arms: tuple[Any, ...],
    path: str,
    problems: list[Problem],
    parsed: bool,
) -> Any:
    """The first arm that fits; when only one could have been meant, its problems."""
    if value is None and types.NoneType in arms:
        return None
    fits, tries = [], []
    for arm in (arm for arm in arms if arm is not types.NoneType):
        found: list[Problem] = []
        fitted = read(value, arm, path, found, parsed)
        if found:
            tries.append(found)
        else:
            fits.append(fitted)
    alike = {type(one).__name__: None for one in fits if dataclasses.is_dataclass(one)}
    if parsed and len(alike) > 1:
        text = f"{path} may be {' or '.join(alike)}: the JSON does not say which"
        problems.append(Problem(text, "a ConfigEnum with a variant for each"))
        return value
    if fits:
        return fits[0]
    deeper = [found for found in tries if not found[0].text.startswith(f"{path} must")]
    if len(deeper) == 1:
        problems.extend(deeper[0])
        return value
    return _misfit(value, hint, path, problems)


def _read_container(
    value: Any,
    hint: Any,
    kind: type[Any],
    arms: tuple[Any, ...],
    path: str,
    problems: list[Problem],
    parsed: bool,
) -> Any:
    if kind is abc.Sequence and arms:
        arms = (*arms, ...)
    made = _CONTAINERS[kind]
    if made is dict:
        return _read_dict(value, hint, arms, path, problems, parsed)
    return _read_list(value, hint, made, arms, path, problems, parsed)


def _read_dict(
    value: Any,
    hint: Any,
    arms: tuple[Any, ...],
    path: str,
    problems: list[Problem],
    parsed: bool,
) -> Any:
    if not isinstance(value, abc.Mapping):
        return _misfit(value, hint, path, problems)
    key_hint, arm = arms or (Any, Any)
    fitted = {}
    for name, held in value.items():
        at = f"{path}.{cut(str(name))}"
        key = _read_key(name, key_hint, path, problems, parsed)
        fitted[key] = read(held, arm, at, problems, parsed)
    return fitted


def _read_key(
    name: Any, hint: Any, path: str, problems: list[Problem], parsed: bool
) -> Any:
    """A key as the type wants it; in JSON the number 3 is the text "3"."""
    found: list[Problem] = []
    known = hint in (str, int) or (isinstance(hint, type) and issubclass(hint, KEYS))
    hint = hint if known else str
    if parsed and hint is int:
        digits = name[1:] if name[:1] == "-" else name
        plain = digits.isdecimal() and len(digits) <= 20 and str(int(name)) == name
        key = read(int(name) if plain else name, int, path, found, parsed=True)
    else:
        key = read(name, hint, path, found, parsed)
    if found:
        text = f"{path}: the key {cut(repr(name))} must be {type_text(hint)}"
        problems.append(Problem(text))
    return key


KEYS = (str, int, enum.Enum)


def _read_list(
    value: Any,
    hint: Any,
    kind: type[Any],
    arms: tuple[Any, ...],
    path: str,
    problems: list[Problem],
    parsed: bool,
) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    wanted = arms or (Any, ...)
    alike = kind is not tuple or wanted[-1] is ...  # any number, of one type
    taken = (list, tuple) if parsed or kind in (list, tuple) else (list, tuple, abc.Set)
    if not isinstance(value, taken):
        count = 1 if alike else len(wanted)
        plain = isinstance(value, (int, float))
        cure = f"[{', '.join([str(value)] * count)}]" if plain else None
        return _misfit(value, hint, path, problems, cure)
    held = list(value)
    if alike:
        wanted = (wanted[0],) * len(held)
    if len(wanted) != len(held):
        cure = f"[{', '.join(map(type_text, wanted))}]"
        return _misfit(value, hint, path, problems, cure)
    rows, before = enumerate(zip(held, wanted, strict=True)), len(problems)
    fitted = [read(v, w, f"{path}[{i}]", problems, parsed) for i, (v, w) in rows]
    same = type(value) is kind and all(map(operator.is_, fitted, held))
    if same or len(problems) > before:
        return value
    try:
        return kind(fitted)
    except TypeError:  # a set of what has no hash
        return _misfit(value, hint, path, problems)


def _read_other(
    value: Any, kind: type[Any], path: str, problems: list[Problem], parsed: bool
) -> Any:
    """A path, or what JSON has as a text or in braces: a choice, a config."""
    if issubclass(kind, pathlib.PurePath) and isinstance(value, str):
        return kind(value)
    if hasattr(kind, "_fields") and isinstance(value, (list, tuple)):  # a NamedTuple
        arms, before = tuple(typing.get_type_hints(kind).values()), len(problems)
        held = _read_list(value, kind, tuple, arms, path, problems, parsed)
        return kind(*held) if len(problems) == before else None
    if parsed and isinstance(value, (dict, str)):
        return _read_parsed(value, kind, path, problems)
    return _misfit(value, kind, path, problems)


def _read_parsed(
    value: Any, kind: type[Any], path: str, problems: list[Problem]
) -> Any:
    """Build a config, a choice or an enum member from what the JSON holds."""
    if dataclasses.is_dataclass(kind):
        return _read_config(value, kind, path, problems)
    if issubclass(kind, Choices):
        return _read_choice(value, kind, path, problems)
    if issubclass(kind, enum.Enum) and isinstance(value, str):
        if value in kind.__members__:
            return kind[value]
        return _unknown(value, kind.__members__, kind.__name__, path, problems)
    return _misfit(value, kind, path, problems)


def _read_config(tree: Any, cls: type[Any], path: str, problems: list[Problem]) -> Any:
    if not isinstance(tree, dict):
        return _misfit(tree, cls, path, problems)
    at = f"{path}." if path else ""
    rows = cls.json_fields() if hasattr(cls, "json_fields") else _dataclass_fields(cls)
    names = tuple(name for name, _, _ in rows)
    before = len(problems)
    for name in tree:
        if name not in names:
            text = f"{at}{cut(name)} is not a field of {cls.__name__}"
            near = closest(name, [n for n in names if n not in tree] or names)
            cure = near and f"{at}{near} in place of {at}{cut(name)}"
            problems.append(Problem(text, cure, names))
    values = {}
    for name, hint, default in rows:
        if name in tree:
            values[name] = read(tree[name], hint, f"{at}{name}", problems, parsed=True)
        elif default is dataclasses.MISSING:
            text = f"{at}{name} ({type_text(hint)}) is missing"
            problems.append(Problem(text, known=names))
    if len(problems) > before:
        return None
    try:
        return cls(**{attribute(cls, name): held for name, held in values.items()})
    except ConfigError as error:
        problems.append(Problem(f"{at}{error.what}", error.cure))
    except (TypeError, ValueError) as error:  # of the reader's own checks
        problems.append(Problem(f"{path or cls.__name__}: {cut(str(error))}"))
    return None


def _dataclass_fields(cls: type[Any]) -> list[tuple[str, Any, Any]]:
    """Name, type and default (or MISSING) of a dataclass that is no config."""
    hints, rows = typing.get_type_hints(cls), []
    for field in dataclasses.fields(cls):
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = None
        if field.init:
            rows.append((field.name, hints[field.name], default))
    return rows


def attribute(cls: type[Any], name: str) -> str:
    """What the field of a config is called in Python: "lambda" is lambda_ there."""
    return name if name in cls.__dataclass_fields__ else f"{name}_"


def _read_choice(tree: Any, cls: type[Any], path: str, problems: list[Problem]) -> Any:
    """ "Valid" or {"Explicit": [1, 1]} or {"Value": 1.0} or {"Normal": {"mean": 0}}."""
    name, held = (tree, None) if isinstance(tree, str) else (None, None)
    if isinstance(tree, dict) and len(tree) == 1:
        ((name, held),) = tree.items()
    if name is None:
        return _misfit(tree, cls, path, problems)
    variant = cls.variants.get(name)
    if variant is None:
        return _unknown(name, cls.variants, cls.__name__, path, problems)
    if not variant.types and held is None:
        return cls.make(name)
    parts = _parts(held, variant, isinstance(tree, dict))
    if parts is None:
        takes = variant.signature() or "nothing"
        problems.append(Problem(f"{path}: {name} takes {takes}"))
        return None
    before = len(problems)
    at, count = f"{path}.{name}", len(parts)
    places = [f"{at}.{label}" for label in variant.names]
    places = places or [f"{at}[{i}]" if count > 1 else at for i in range(count)]
    rows = zip(parts, variant.types, places, strict=True)
    checked = [read(v, t, place, problems, parsed=True) for v, t, place in rows]
    if len(problems) > before:
        return None
    try:
        return getattr(cls, name)(*checked)
    except ConfigError as error:
        problems.append(Problem(f"{path}: {error.what}", error.cure))
        return None


def _parts(held: Any, variant: Any, named: bool) -> list[Any] | None:
    """The values that a choice holds in JSON, in order; None when they do not fit."""
    count = len(variant.types)
    if variant.names:
        if not isinstance(held, dict) or not set(held) <= set(variant.names):
            return None
        pairs = zip(variant.names, variant.types, strict=True)
        fits = all(n in held or types.NoneType in typing.get_args(t) for n, t in pairs)
        return [held.get(name) for name in variant.names] if fits else None
    if count == 1:
        return [held] if named else None
    return held if count and isinstance(held, list) and len(held) == count else None


def _unknown(
    name: str,
    known: typing.Iterable[str],
    kind: str,
    path: str,
    problems: list[Problem],
) -> Any:
    names, text = tuple(known), f"{path}: {kind} has no {cut(name)!r}"
    problems.append(Problem(text, closest(name, names), names, "known"))
    return None
