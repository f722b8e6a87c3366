"""Building blocks · Config. How the values of a config are checked, read and written.

One function, `read`, fits a value to the type that a field declares: given by the user
it checks (and turns a list into the tuple that is meant), parsed from JSON it also
builds nested configs and choices. Every misfit is noted, so one error can list all.
"""

import dataclasses
import difflib
import enum
import json
import math
import operator
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from burnbook.errors import ConfigError


class Problem(NamedTuple):
    """One field that does not fit: what is wrong, the cure, the names that exist."""

    text: str
    cure: str | None = None
    known: tuple[str, ...] = ()
    names: str = "fields"  # what the names are


class Choices:
    """What `read` and `encode` recognise a choice by (see `config.ConfigEnum`)."""

    __slots__ = ()


def read(
    value: Any, hint: Any, path: str, problems: list[Problem], parsed: bool
) -> Any:
    """The value as the type wants it; a misfit is added to `problems`.

    parsed: the value comes from JSON, so configs and choices are still plain data.
    """
    origin, arms = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or isinstance(hint, typing.TypeVar):
        return value
    if origin is typing.Annotated:
        return read(value, arms[0], path, problems, parsed)
    if origin in (typing.Union, types.UnionType):
        return _read_union(value, hint, arms, path, problems, parsed)
    if origin is typing.Literal:
        return value if value in arms else _misfit(value, hint, path, problems)
    if hint in (None, types.NoneType):
        return None if value is None else _misfit(value, hint, path, problems)
    if hint in _PLAIN:
        fitted = _PLAIN[hint](value)
        return _misfit(value, hint, path, problems) if fitted is None else fitted
    kind = origin or hint
    if kind in (list, tuple, dict):
        return _read_container(value, hint, kind, arms, path, problems, parsed)
    if not isinstance(kind, type):
        return value
    if parsed and isinstance(value, (dict, str)) and not isinstance(value, kind):
        return _read_parsed(value, kind, path, problems)
    return value if isinstance(value, kind) else _misfit(value, hint, path, problems)


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


def encode(value: Any, indent: int = 0, path: str = "") -> str:
    """The JSON text of a value; two spaces per level.

    Numbers read as in Rust: 0.00001 and 1e-7, never 1e-05.
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return float_text(float(value), path)
    if isinstance(value, Choices):
        return _encode_choice(value, indent, path)
    if isinstance(value, (list, tuple)):
        rows = [encode(v, indent + 1, f"{path}[{i}]") for i, v in enumerate(value)]
        return _block("[", rows, "]", indent)
    if isinstance(value, dict) or dataclasses.is_dataclass(value):
        return _encode_fields(value, indent, path)
    text = value.name if isinstance(value, enum.Enum) else str(value)
    return json.dumps(text, ensure_ascii=False)


def float_text(x: float, path: str = "") -> str:
    """A float as Rust writes it in JSON: shortest digits, 0.00001, 1e-7, 1e16."""
    if not math.isfinite(x):
        what = f"{x} has no place in JSON"
        raise ConfigError(path or "config", what, cure="a finite number")
    digits, _, exponent = f"{_shortest(x)}".partition("e")
    power = int(exponent)
    if -6 < power < 16:
        text = np.format_float_positional(x, trim="0")
        return str(text)
    return f"{digits}e{power}"


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
    """The start of a text, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def closest(name: str, known: typing.Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    found = difflib.get_close_matches(name, list(known), 1, 0.6)
    return found[0] if found else None


def _index(value: Any) -> int | None:
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def _number(value: Any) -> float | None:
    if isinstance(value, (float, np.floating)):
        return float(value)
    whole = _index(value)
    try:
        return None if whole is None else float(whole)
    except OverflowError:
        return None


def _truth(value: Any) -> bool | None:
    return bool(value) if isinstance(value, (bool, np.bool_)) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


_PLAIN: dict[Any, Callable[[Any], Any]] = {
    bool: _truth,
    int: _index,
    float: _number,
    str: _text,
}


def _misfit(
    value: Any, hint: Any, path: str, problems: list[Problem], cure: str | None = None
) -> Any:
    got = "None" if value is None else f"{type(value).__name__} {cut(repr(value))}"
    text = f"{path} must be {type_text(hint)}, not {got}"
    if not path:
        text = f"the JSON must hold the fields of {type_text(hint)} in braces"
    problems.append(Problem(text, cure))
    return value


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
    meant = [arm for arm in arms if arm is not types.NoneType]
    tries = []
    for arm in meant:
        found: list[Problem] = []
        fitted = read(value, arm, path, found, parsed)
        if not found:
            return fitted
        tries.append(found)
    deeper = [found for found in tries if not found[0].text.startswith(f"{path} must")]
    if len(deeper) == 1:
        problems.extend(deeper[0])
        return value
    return _misfit(value, hint, path, problems)


def _read_container(
    value: Any,
    hint: Any,
    kind: type,
    arms: tuple[Any, ...],
    path: str,
    problems: list[Problem],
    parsed: bool,
) -> Any:
    if kind is dict:
        if not isinstance(value, dict):
            return _misfit(value, hint, path, problems)
        arm = arms[1] if arms else Any
        rows = value.items()
        return {k: read(v, arm, f"{path}.{k}", problems, parsed) for k, v in rows}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    wanted = arms or (Any, ...)
    if not isinstance(value, (list, tuple)):
        count = 1 if kind is list or wanted[-1] is ... else len(wanted)
        plain = isinstance(value, (int, float))
        cure = f"[{', '.join([str(value)] * count)}]" if plain else None
        return _misfit(value, hint, path, problems, cure)
    if kind is list or wanted[-1] is ...:
        wanted = (wanted[0],) * len(value)
    if len(wanted) != len(value):
        cure = f"[{', '.join(map(type_text, wanted))}]"
        return _misfit(value, hint, path, problems, cure)
    rows = enumerate(zip(value, wanted, strict=True))
    fitted = [read(v, w, f"{path}[{i}]", problems, parsed) for i, (v, w) in rows]
    same = type(value) is kind and all(map(operator.is_, fitted, value))
    return value if same else kind(fitted)


def _read_parsed(
    value: Any, kind: type[Any], path: str, problems: list[Problem]
) -> Any:
    """Build a config, a choice or an enum member from what the JSON holds."""
    if hasattr(kind, "json_fields"):
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
    rows = cls.json_fields()
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
        return cls(**{_attribute(cls, name): held for name, held in values.items()})
    except ConfigError as error:
        problems.append(Problem(f"{at}{error.what}", error.cure))
        return None


def _attribute(cls: type[Any], name: str) -> str:
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
    parts = _parts(held, variant)
    if parts is None:
        takes = variant.signature() or "nothing"
        problems.append(Problem(f"{path}: {name} takes {takes}"))
        return None
    before = len(problems)
    pairs = zip(parts, variant.types, strict=True)
    checked = [read(v, t, f"{path}.{name}", problems, parsed=True) for v, t in pairs]
    if len(problems) > before:
        return None
    try:
        return getattr(cls, name)(*checked)
    except ConfigError as error:
        problems.append(Problem(f"{path}: {error.what}", error.cure))
        return None


def _parts(held: Any, variant: Any) -> list[Any] | None:
    """The values that a choice holds in JSON, in order; None when they do not fit."""
    count = len(variant.types)
    if variant.names:
        fits = isinstance(held, dict) and set(held) == set(variant.names)
        return [held[name] for name in variant.names] if fits else None
    if count == 1:
        return None if held is None else [held]
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


def _encode_fields(value: Any, indent: int, path: str) -> str:
    """A dict, or the fields of a config in the order of its JSON."""
    if hasattr(type(value), "json_fields"):
        cls, rows = type(value), value.json_fields()
        held = {n: (getattr(value, _attribute(cls, n)), was) for n, _, was in rows}
        newer = cls.newer
        value = {n: x for n, (x, was) in held.items() if n not in newer or x != was}
    elif not isinstance(value, dict):
        names = [field.name for field in dataclasses.fields(value)]
        value = {name: getattr(value, name) for name in names}
    rows = []
    for key, held in value.items():
        at = f"{path}.{key}" if path else str(key)
        text = json.dumps(str(key), ensure_ascii=False)
        rows.append(f"{text}: {encode(held, indent + 1, at)}")
    return _block("{", rows, "}", indent)


def _encode_choice(value: Any, indent: int, path: str) -> str:
    name = json.dumps(value.variant)
    if not value.values:
        return name
    if value.names:
        held: Any = dict(zip(value.names, value.values, strict=True))
    else:
        held = value.values[0] if len(value.values) == 1 else value.values
    return _block("{", [f"{name}: {encode(held, indent + 1, path)}"], "}", indent)


def _block(start: str, rows: list[str], end: str, indent: int) -> str:
    if not rows:
        return start + end
    inner = "  " * (indent + 1)
    lines = ",\n".join(inner + row for row in rows)
    return f"{start}\n{lines}\n{'  ' * indent}{end}"


def _shortest(x: float) -> str:
    return str(np.format_float_scientific(x, trim="-", exp_digits=1))
