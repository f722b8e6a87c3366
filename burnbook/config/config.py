"""Configs: frozen dataclasses that save themselves as JSON.

A config holds every value that a module, an optimizer or a run is made from. Fields
without a default are positional arguments; a field `X | None` starts as None; both
those and fields with a default have a builder, `with_<field>(value)`. Values are
checked when the config is made, so a config that exists is one that can be used.

    class ModelConfig(Config):
        num_classes: int
        hidden_size: int
        dropout: float = 0.5

The JSON is the one that Burn writes: required fields first, then optional ones, then
those with a default; choices as "Valid" or {"Explicit": [1, 1]}.
"""

import copy
import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any, ClassVar, Self, dataclass_transform

from burnbook.config.fields import Reader, cut, explain
from burnbook.config.text import Place, decode, encode
from burnbook.core.converters import (
    TypeSpec,
    remember_scope,
    syntax_of,
    type_spec,
    type_specs,
)
from burnbook.core.dropped import result_matters
from burnbook.core.errors import (
    ArgumentError,
    ConfigError,
    FrozenError,
    UnknownNameError,
    explain_fields,
)
from burnbook.core.files import (
    PathLike,
    atomic_write,
    printable,
    read_whole,
    within_memory,
)
from burnbook.core.other_names import ListedABC, answers, closest, tables, unknown
from burnbook.core.versions import VERSION, release_of

LONGEST = 64 << 20  # bytes of a file; a config is a page


@answers("Config")
@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
class Config(metaclass=ListedABC):
    """A frozen dataclass made by subclassing; saved and loaded as Burn's JSON.

    Example:
        >>> class BlockConfig(Config):
        ...     d_model: int
        ...     dropout: float = 0.1
        >>> config = BlockConfig(512).with_dropout(0.2)
        >>> config
        BlockConfig(d_model=512, dropout=0.2)
        >>> print(config)
        {
          "d_model": 512,
          "dropout": 0.2
        }
    """

    #: Fields that Burn 0.15 does not know; the JSON has them only where they are set.
    newer: ClassVar[tuple[str, ...]] = ()
    #: Fields that no Burn knows; every JSON has them only where they are set.
    ours: ClassVar[tuple[str, ...]] = ()
    #: What newer Burn calls a field: {name in 0.15: name since}.
    renamed: ClassVar[dict[str, str]] = {}
    #: Where to give what is no field here: {name in other libraries: the cure}.
    elsewhere: ClassVar[dict[str, str]] = {}
    #: What Burn's JSON has in place of null, where None is a choice: {field: its name}.
    absent: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        annotations = inspect.get_annotations(cls)
        for name, annotation in annotations.items():
            if not _is_class_variable(annotation):
                _check_name(cls, name)
                _prepare(cls, name, annotation)
        remember_scope(cls)
        dataclasses.dataclass(frozen=True, repr=False)(cls)
        cls.__setattr__ = _never_changes  # type: ignore[assignment] # says more
        explain_fields(cls)
        for field in dataclasses.fields(cls):  # type: ignore[arg-type] # a dataclass
            builder = f"with_{field.name.rstrip('_')}"
            if _has_default(field) and not hasattr(cls, builder):
                setattr(cls, builder, _builder(field.name))

    if typing.TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[[Any], Self]:
            """The builders, with_<field>."""
            ...

    else:

        def __getattr__(self, name: str) -> Any:
            raise _no_such_name(self, name)

    def __post_init__(self) -> None:
        specs = _specs(type(self))
        reader = Reader(parsed=False)
        for field in dataclasses.fields(self):  # type: ignore[arg-type] # a dataclass
            given = getattr(self, field.name)
            value = reader.read(given, specs[field.name], field.name)
            if value is not given:
                object.__setattr__(self, field.name, value)
        if reader.problems:
            raise explain(type(self).__name__, "", reader.problems)
        self.validate()

    def validate(self) -> None:
        """Raise a ConfigError for values that fit their types but not each other."""

    @result_matters("config = config.replace(…)")
    def replace(self, **fields: Any) -> Self:
        """A copy with other values in some fields, which are validated together.

        For fields that fit each other: `with_…` changes one, and validates after each.

        Example:
            >>> class RangeConfig(Config):
            ...     low: float = 0.0
            ...     high: float = 1.0
            ...     def validate(self):
            ...         assert self.low < self.high
            >>> RangeConfig().replace(low=2.0, high=3.0)
            RangeConfig(low=2.0, high=3.0)

        Raises:
            FieldError: there is no such field.
            ConfigError: a value does not fit its type, or values not each other.
        """
        held: Any = self  # a dataclass, which __init_subclass__ makes it
        return dataclasses.replace(held, **fields)

    def save(self, path: PathLike, *, version: str = VERSION) -> None:
        """Write the config as JSON: the whole file, or none of it.

        version: the release of Burn that is to read it, 0.15 to 0.22; the newer ones
        want every field that they have.

        Raises:
            ConfigError: the file cannot be written, JSON cannot hold one of its values,
            or there is no such version.
        """
        text = self.to_json(version=version)
        with atomic_write(path, ConfigError) as file:
            file.write(text.encode())

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read a config that `save` wrote, here or in Burn.

        A field that the file lacks keeps its default.

        Raises:
            ConfigError: the file cannot be read or is not JSON, it lacks a field
            without
                default, or it has a field that the config does not know, a value of
                another type or one that `validate` refuses.
        """
        where = f"load {printable(path)}"
        with within_memory(where, ConfigError):
            text = read_whole(path, ConfigError, most=LONGEST)
            return cls._parse(text, where)

    def to_json(self, *, version: str = VERSION) -> str:
        """The config as JSON text, two spaces per level; `str(config)` is the same.

        version: as in `save`.
        """
        release = release_of(version)
        if not (0, 15) <= release < (0, 23):
            what = f"version {version!r} cannot be written"
            facts = [("expected", "'0.15' to '0.22'")]
            raise ConfigError(type(self).__name__, what, facts)
        return encode(self, Place(release=release))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a config from JSON text.

        Raises:
            ConfigError: as in `load`, but for the file.
        """
        return cls._parse(text, f"read {cls.__name__}")

    @classmethod
    def load_binary(cls, data: bytes) -> Self:
        """Read a config from the bytes of a file, as Burn calls it."""
        return cls.from_json(data)

    @classmethod
    def _parse(cls, text: str | bytes, where: str) -> Self:
        reader = Reader(parsed=True)
        config = reader.read(decode(text, where), type_spec(cls), "")
        if reader.problems:
            raise explain(where, cls.__name__, reader.problems)
        return config

    @classmethod
    def json_fields(cls) -> list[tuple[str, Any, Any]]:
        """Name, type and default (or MISSING) of each field, in the order of JSON.

        The field `lambda_`, which Python cannot call `lambda`, is "lambda" there.
        """
        specs, groups = _specs(cls), ([], [], [])
        for field in dataclasses.fields(cls):  # type: ignore[arg-type] # a dataclass
            is_null = field.default is None and field.name not in cls.absent
            group = 0 if not _has_default(field) else 1 if is_null else 2
            hint = specs[field.name].annotation
            row = (field.name.rstrip("_"), hint, _default(field))
            groups[group].append(row)
        return [row for group in groups for row in group]

    def __call__(self, *args: object, **named: object) -> Any:
        """A config is not a layer; the error says what makes one."""
        name = type(self).__name__
        what = "a config is called as if it were the layer that it makes"
        raise ArgumentError(name, what, cure=f"{name}(…).init(device)(x)")

    def __str__(self) -> str:
        return self.to_json()

    def __repr__(self) -> str:
        fields = dataclasses.fields(self)  # type: ignore[arg-type] # a dataclass
        shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields)
        return f"{type(self).__name__}({shown})"


def _builder(name: str) -> Callable[[Any, Any], Any]:
    def with_field(self: Any, value: object) -> Any:
        return dataclasses.replace(self, **{name: value})

    with_field.__name__ = with_field.__qualname__ = f"with_{name}"
    with_field.__doc__ = f"A copy of the config with another {name}."
    return result_matters(f"config = config.with_{name.rstrip('_')}(…)")(with_field)


def _no_such_name(config: Config, name: str) -> AttributeError:
    """The error for an attribute that a config does not have."""
    cls = type(config)
    if name.startswith("_"):  # what copy and pickle look for
        return AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")
    if name == "step" and cls.__name__.endswith("SchedulerConfig"):
        cure = f"scheduler = {cls.__name__}(…).init(), then scheduler.step()"
        what = "the config is the recipe; init() makes the scheduler"
        return UnknownNameError(f"{cls.__name__}.{name}", what, cure=cure)
    if name in tables()["Config"]:
        return unknown(cls.__name__, "Config", name)
    known = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type] # a dataclass
    facts = [("fields", ", ".join(known) or "none")]
    field = name.removeprefix("with_")
    at, near = f"{cls.__name__}.{name}", closest(field, known)
    if field in known:
        what, cure = f"{field} has no default, so it has no builder", f"{field}=…"
        return UnknownNameError(at, what, facts, f"{cls.__name__}({cure})")
    cure = near and (f"with_{near}(…)" if field != name else f"config.{near}")
    return UnknownNameError(at, f"it has no field {field}", facts, cure)


def _never_changes(config: Any, name: str, value: object) -> None:
    """The `__setattr__` of a config: how to make a changed copy."""
    cls = type(config)
    builder = hasattr(cls, f"with_{name.rstrip('_')}")
    cure = f"config = dataclasses.replace(config, {name}={cut(repr(value))})"
    if builder:
        cure = f"config = config.with_{name.rstrip('_')}({cut(repr(value))})"
    known = [f.name for f in dataclasses.fields(cls)]
    if name not in known:
        raise _no_such_name(config, name)
    raise FrozenError(f"{cls.__name__}.{name}", "a config never changes", cure=cure)


def _prepare(cls: type, name: str, annotation: Any) -> None:
    """Give one field what dataclass needs: keyword-only, a default, a fresh list."""
    default = cls.__dict__.get(name, dataclasses.MISSING)
    if isinstance(default, dataclasses.Field):
        if _has_default(default):
            default.kw_only = True
        return
    if default is dataclasses.MISSING and type_spec(annotation, syntax_of).optional:
        default = None
    if default is dataclasses.MISSING:
        return
    if isinstance(default, (list, dict, set)):
        fresh = functools.partial(copy.deepcopy, default)
        setattr(cls, name, dataclasses.field(default_factory=fresh, kw_only=True))
    else:
        setattr(cls, name, dataclasses.field(default=default, kw_only=True))


def _has_default(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _is_class_variable(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.removeprefix("typing.").startswith("ClassVar")
    return annotation is ClassVar or typing.get_origin(annotation) is ClassVar


def _check_name(cls: type, name: str) -> None:
    """Refuse a field that would hide a method, or be another one in the JSON."""
    if hasattr(Config, name):
        what = f"{name} is a method of every config, so no field can have that name"
        cure = f"{name}_, which the JSON calls {name}"
        raise ConfigError(cls.__name__, what, cure=cure)
    plain = name.rstrip("_")
    if plain != name and any(plain in inspect.get_annotations(c) for c in cls.__mro__):
        what = f"{plain} and {name} have the same name in JSON"
        raise ConfigError(cls.__name__, what, cure="another name for one of them")


def _specs(cls: type) -> dict[str, TypeSpec]:
    """The types of the fields."""
    try:
        return type_specs(cls)
    except NameError as error:
        what = f"{error.name} is the type of a field, and cannot be found"
        cure = f"defining or importing {error.name} before the config"
        raise ConfigError(cls.__name__, what, cure=cure) from None
