"""Choices: a name, or a name with values, as Rust enums are.

`PaddingConfig2d.Valid`, `PaddingConfig2d.Explicit(1, 1)`: one of several variants, all
of one type, equal by value, saved as Burn saves its enums.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar

from burnbook.config.fields import Choices, Reader, explain, type_text
from burnbook.config.text import encode
from burnbook.core.argument_cures import init_of, made_by_config
from burnbook.core.call_source import Call, call_at
from burnbook.core.converters import type_spec
from burnbook.core.errors import ConfigError, UnknownNameError

E = TypeVar("E", bound="ConfigEnum")


class ConfigEnum(Choices):
    """A choice that a config holds: one of several names, some of which hold values.

    Example:
        >>> class Padding(ConfigEnum):
        ...     Valid = unit()
        ...     Explicit = holding(int, int)
        >>> Padding.Explicit(1, 2), Padding.Valid
        (Padding.Explicit(1, 2), Padding.Valid)
        >>> Padding.Explicit(1, 2).values
        (1, 2)
    """

    __slots__ = ("values", "variant")
    variants: ClassVar[dict[str, "unit | holding"]] = {}

    variant: str
    values: tuple[Any, ...]

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        found = vars(cls).items()
        cls.variants = {k: v for k, v in found if isinstance(v, (unit, holding))}

    @classmethod
    def make(cls, variant: str, values: tuple[Any, ...] = ()) -> Self:
        """The variant of this name with these values, already checked."""
        made = object.__new__(cls)
        object.__setattr__(made, "variant", variant)
        object.__setattr__(made, "values", values)
        return made

    @classmethod
    def holding_just(cls, value: object) -> Self | None:
        """The one variant that holds a value of this class alone; None if unclear.

        Why: Rust turns a config into its variant by `.into()`, which Python has not.
        """
        fits = [n for n, v in cls.variants.items() if v.types == (type(value),)]
        return cls.make(fits[0], (value,)) if len(fits) == 1 else None

    def validate(self) -> None:
        """Raise a ConfigError for values that fit their types but not the choice."""

    def values_in(self, release: tuple[int, ...]) -> tuple[Any, ...]:
        """The values as a release of Burn has them in its JSON."""
        return self.values

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the values; empty when they have only positions."""
        return self.variants[self.variant].names

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.names:
            return self.values[self.names.index(name)]
        made = None if name.startswith("_") else made_by_config(type(self))
        if made is not None and hasattr(made, name):
            frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
            raise _of_what_it_makes(self, made, name, call_at(frame, name))
        raise AttributeError(f"{self!r} has no {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.variant == other.variant and self.values == other.values

    def __hash__(self) -> int:
        return hash((type(self), self.variant, self.values))

    def __reduce__(self) -> Any:
        return type(self).make, (self.variant, self.values)

    def __str__(self) -> str:
        if self.names:
            rows = zip(self.names, self.values, strict=True)
            inside = ", ".join(f"{name}: {encode(value)}" for name, value in rows)
            return f"{self.variant} {{ {inside} }}"
        inside = ", ".join(map(encode, self.values))
        return f"{self.variant}({inside})" if inside else self.variant

    def __repr__(self) -> str:
        name = f"{type(self).__name__}.{self.variant}"
        if not self.values:
            return name
        labels = [f"{label}=" for label in self.names] or [""] * len(self.values)
        pairs = zip(labels, self.values, strict=True)
        return f"{name}({', '.join(label + repr(value) for label, value in pairs)})"


def _of_what_it_makes(
    config: ConfigEnum, made: type, name: str, call: Call | None
) -> UnknownNameError:
    """The error for a method of what the choice makes by `init`."""
    what = f"{made.__name__} has it, which the config makes"
    of = call.of if call else repr(config)
    given = "" if call is None or call.args is None else f"({', '.join(call.args)})"
    cure = f"{of}{init_of(type(config))}.{name}{given}"
    return UnknownNameError(f"{type(config).__name__}.{name}", what, cure=cure)


class unit:  # noqa: N801 - reads as a word of the declaration
    """Declare a variant that is only a name: `Valid = unit()`."""

    names: tuple[str, ...] = ()
    types: tuple[Any, ...] = ()

    def form(self, count: int) -> tuple[Any, ...]:
        """The types of its values: none."""
        return ()

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type[E]) -> E:
        return owner.make(self.name)

    def signature(self) -> str:
        """What it takes: nothing."""
        return ""


class holding:  # noqa: N801 - reads as a word of the declaration
    """Declare a variant with values: `holding(int, int)` or `holding(gain=float)`.

    `holding(int).also(int, int)` takes one value or two.
    """

    def __init__(self, *types: Any, **named: object):
        self.names = tuple(named)
        self.types = types or tuple(named.values())
        self.forms = (self.types,)

    def also(self, *types: Any) -> "holding":
        """The same variant, which may hold so many values, too."""
        self.forms = (*self.forms, types)
        return self

    def form(self, count: int) -> tuple[Any, ...]:
        """The types of so many values; else those of its first form."""
        return next((types for types in self.forms if len(types) == count), self.types)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type[E]) -> Callable[..., E]:
        return functools.partial(self._call, owner)

    def _call(self, owner: type[E], /, *args: object, **named: object) -> E:
        values = dict(zip(self.names, args, strict=False)) | named
        given = tuple(values.values()) if self.names else args
        wrong_names = self.names and tuple(sorted(values)) != tuple(sorted(self.names))
        types = self.form(len(given))
        if len(given) != len(types) or wrong_names:
            count, wrong = len(args) + len(named), sorted(set(named) - set(self.names))
            needed = " or ".join(str(len(form)) for form in self.forms)
            what = f"{needed} values are needed, not {count}"
            if wrong and self.names:
                what = f"{wrong[0]} is not one of its values"
            raise ConfigError(
                f"{owner.__name__}.{self.name}",
                what,
                cure=f"{owner.__name__}.{self.name}({self.signature(') or (')})",
            )
        if self.names:
            given = tuple(values[name] for name in self.names)
        reader = Reader(parsed=False)
        labels = self.names or tuple(f"value {i}" for i in range(len(given)))
        checked = tuple(map(reader.read, given, map(type_spec, types), labels))
        if reader.problems:
            raise explain(f"{owner.__name__}.{self.name}", "", reader.problems)
        made = owner.make(self.name, checked)
        made.validate()
        return made

    def signature(self, between: str = " or ") -> str:
        """What the call takes, for errors: "gain=float, fan_out_only=bool"."""
        if not self.names:
            rows = [map(type_text, map(type_spec, types)) for types in self.forms]
            return between.join(", ".join(row) for row in rows)
        texts = map(type_text, map(type_spec, self.types))
        pairs = zip(self.names, texts, strict=True)
        return ", ".join(f"{name}={text}" for name, text in pairs)
