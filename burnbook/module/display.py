"""The text of a module, as `print(model)` shows it.

A module prints its type and its attributes. A class that names some in `shown` prints
these, on one line. What a class wants otherwise it says with `custom_settings` (one
line or many, indentation, …) and `custom_content` (which attributes); settings that a
parent sets win over those of its children.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Self

import numpy as np

from burnbook.core.decimals import positional_text
from burnbook.core.dtypes import Kind
from burnbook.core.errors import ConfigError
from burnbook.module.param import Param
from burnbook.module.running import RunningState
from burnbook.module.tree import spelled
from burnbook.tensor import Tensor


@dataclass(frozen=True)
class DisplaySettings:
    """How modules print; what is not set is left to the module, or has its default.

    Example:
        >>> DisplaySettings().with_new_line_after_attribute(False)
        DisplaySettings(new_line_after_attribute=False)
    """

    show_all_attributes: bool | None = None
    new_line_after_attribute: bool | None = None
    show_num_parameters: bool | None = None
    indentation_size: int | None = None
    show_param_id: bool | None = None
    show_mode: bool | None = None
    show_param_kinds: bool | None = None
    around_in_eval: bool | None = None  # the mode of the module above

    def with_show_all_attributes(self, flag: bool) -> Self:
        """Every field of the struct, whatever the module prefers (default: no)."""
        return replace(self, show_all_attributes=flag)

    def with_new_line_after_attribute(self, flag: bool) -> Self:
        """One attribute per line, or all on one line (default: per line)."""
        return replace(self, new_line_after_attribute=flag)

    def with_show_num_parameters(self, flag: bool) -> Self:
        """Show how many parameters a module has (default: yes)."""
        return replace(self, show_num_parameters=flag)

    def with_indentation_size(self, size: int) -> Self:
        """Spaces per level (default: 2)."""
        return replace(self, indentation_size=size)

    def with_show_param_id(self, flag: bool) -> Self:
        """Show the ids of parameters (default: no)."""
        return replace(self, show_param_id=flag)

    def with_show_mode(self, flag: bool) -> Self:
        """Say where `mode: eval` begins, and where it ends inside (default: yes)."""
        return replace(self, show_mode=flag)

    def with_show_param_kinds(self, flag: bool) -> Self:
        """Show how many numbers are trainable, frozen or statistics (default: no)."""
        return replace(self, show_param_kinds=flag)

    def optional(self) -> Self:
        """The settings; Burn wraps them in an option here."""
        return self

    def inherit(self, above: "DisplaySettings") -> Self:
        """These settings, overruled by what the module above has set."""
        given = {k: v for k, v in vars(above).items() if v is not None}
        return replace(self, **given)

    def __repr__(self) -> str:
        given = ", ".join(f"{k}={v}" for k, v in vars(self).items() if v is not None)
        return f"DisplaySettings({given})"


#: How a class with `shown` prints, whatever is around it.
ONE_LINE = DisplaySettings().with_new_line_after_attribute(False)

#: What a class shows: fields by name, and names with what computes their values.
Shown = tuple[str | tuple[str, Callable[[Any], object]], ...]


class Content:
    """The attributes that a module shows, formatted as they are added."""

    def __init__(self, settings: DisplaySettings, level: int = 1):
        self.settings = settings
        self.level = level
        self.attributes: list[tuple[str, str]] = []
        self.single: str | None = None
        self.top_level_type: str | None = None

    def add(self, name: str, value: object) -> Self:
        """Show an attribute: a module, a parameter, a number, a text, a list, …"""
        if self.single is not None:
            raise _mixed(name)
        self.attributes.append((name, describe(value, self.settings, self.level)))
        return self

    def add_fields(
        self, module: object, shown: Shown, unless: tuple[tuple[str, object], ...]
    ) -> Self:
        """Show these fields of a module, and a tuple such as (3, 3) as [3, 3].

        unless: fields that follow, each only where it has another value than this.
        """
        for entry in shown:
            if isinstance(entry, str):
                held = getattr(module, entry)
                text = str(list(held)) if isinstance(held, tuple) else held
                self.add(spelled(entry), text)
            else:
                name, compute = entry
                self.add(name, compute(module))
        for name, usual in unless:
            if not is_usual(held := getattr(module, name), usual):
                self.add(name, held)
        for name, held in vars(module).items():
            if isinstance(held, Param) and (by := _attached(held)):
                self.add(spelled(name), by)
        return self

    def add_single(self, value: object) -> Self:
        """Show this value alone, without the name of the module around it."""
        return self.add_formatted(describe(value, self.settings, self.level))

    def add_formatted(self, text: str) -> Self:
        """Show this text alone."""
        if self.attributes or self.single is not None:
            raise _mixed(text)
        self.single = text
        return self

    def set_top_level_type(self, name: str) -> Self:
        """Show another name than that of the class."""
        self.top_level_type = name
        return self

    def optional(self) -> Self:
        """The content; Burn wraps it in an option here."""
        return self


def is_usual(held: object, usual: object) -> bool:
    """Whether a field has its usual value; that of a module is how it prints."""
    return held == usual or (isinstance(usual, str) and str(held) == usual)


@dataclass(frozen=True)
class Present:
    """What a field `A | None` holds: Burn indents what is in an Option once more."""

    value: Any


@dataclass(frozen=True)
class Chosen:
    """What a field `A | B` holds, a module mostly: shown as Burn shows an enum."""

    value: Any
    name: str
    num_params: int


def describe(value: Any, settings: DisplaySettings, level: int = 1) -> str:
    """The text of any value that a module may hold."""
    if isinstance(value, RunningState):
        return "RunningState"
    if isinstance(value, Param):
        return _param(value, settings)
    if isinstance(value, Tensor):
        return f"Tensor {{rank: {len(value.shape)}, shape: {list(value.shape)}}}"
    if isinstance(value, Present):
        return describe(value.value, settings, level + 1)
    if isinstance(value, Chosen):
        inside = [("_0", describe(value.value, settings, level + 1))]
        return layout(value.name, inside, value.num_params, settings, level)
    if hasattr(value, "custom_content"):
        return value.format(settings, level)
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, (float, np.floating)):
        return positional_text(value) if np.isfinite(value) else str(value)
    if isinstance(value, (list, tuple, dict)):
        return _container(value, settings, level)
    return function_text(value) if isinstance(value, FUNCTIONS) else str(value)


FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, functools.partial)


def function_text(function: Any) -> str:
    """A function as people say it: its name, without an address."""
    if isinstance(function, functools.partial):
        return f"{function_text(function.func)}(…)"
    name = getattr(function, "__name__", None) or type(function).__name__
    return "lambda" if name == "<lambda>" else name


def layout(
    name: str,
    attributes: list[tuple[str, str]],
    num_params: int,
    settings: DisplaySettings,
    level: int,
) -> str:
    """`Name {a: 1, params: 2}` on one line or, by default, over several."""
    rows = [f"{key}: {text}" for key, text in attributes]
    if num_params and settings.show_num_parameters is not False:
        rows.append(f"params: {num_params}")
    if settings.new_line_after_attribute is False:
        return f"{name} {{{', '.join(rows)}}}"
    size = 2 if settings.indentation_size is None else settings.indentation_size
    inner, outer = " " * (level * size), " " * ((level - 1) * size)
    return f"{name} {{\n" + "".join(f"{inner}{row}\n" for row in rows) + f"{outer}}}"


def _param(param: Param, settings: DisplaySettings) -> str:
    shape = param.shape
    text = f"rank: {len(shape)}, shape: {list(shape)}, kind: {_kind(param.kind)}"
    if settings.show_param_id:
        text += f", id: {param.id}"
    if by := _attached(param):
        text += f", computed by: {by}"
    return f"ParamTensor {{{text}}}"


def _attached(param: Param) -> str:
    """What a parameter is computed by, if it is computed from others."""
    return getattr(param.reparameterization(), "NAME", "")


def _kind(kind: Kind) -> str:
    return kind.__name__.lower()


def _container(value: Any, settings: DisplaySettings, level: int) -> str:
    if isinstance(value, dict):
        rows, name = list(value.items()), f"Map<0..{len(value)}>"
    else:
        rows = list(enumerate(value))
        if isinstance(value, list):
            name = f"Vec<0..{len(value)}>"
        elif len({type(held) for held in value}) > 1:
            name = f"({', '.join(f'L{i}' for i in range(len(value)))})"
        else:
            name = f"[0..{len(value)}]"
    if not rows:
        return name
    inside = [(str(key), describe(held, settings, level + 1)) for key, held in rows]
    return layout(name, inside, 0, settings, level)


def _mixed(name: str) -> ConfigError:
    return ConfigError(
        "Content",
        f"{name[:40]!r} cannot be added: single content and attributes do not mix",
        cure="either add_single or add",
    )
