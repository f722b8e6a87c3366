"""The numbers of a config, and their change.

A config may hold others (a warm-up, then a cosine), so a number has a path:
"num_iters", or "schedulers.1.initial_lr".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from burnbook.config import Config, ConfigEnum
from burnbook.core.errors import ConfigError


def numbers_of(config: Any) -> dict[str, int | float]:
    """Every number of a config by its path, in the order of its fields.

    Example:
        >>> from burnbook.lr_scheduler import LinearLrSchedulerConfig
        >>> numbers_of(LinearLrSchedulerConfig(0.9, 0.5, 4))
        {'initial_lr': 0.9, 'final_lr': 0.5, 'num_iters': 4}
    """
    return dict(_walk(config, ""))


def _walk(value: Any, path: str) -> Iterator[tuple[str, int | float]]:
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        yield path, value
        return
    for name, part in _parts(value):
        yield from _walk(part, f"{path}.{name}" if path else name)


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, ConfigEnum):
        (held,) = value.values or (None,)
        return _parts(held) if isinstance(held, Config) else [("lr", held)]
    if isinstance(value, Config):
        names = [name for name, _, _ in value.json_fields()]
        return [(name, getattr(value, name)) for name in names]
    if isinstance(value, (list, tuple)):
        return [(str(place), part) for place, part in enumerate(value)]
    return []


def changed(config: Any, path: str, number: float) -> Any:
    """The config with another number at a path.

    Example:
        >>> from burnbook.lr_scheduler import LinearLrSchedulerConfig
        >>> changed(LinearLrSchedulerConfig(0.9, 0.5, 4), "num_iters", 8)
        LinearLrSchedulerConfig(initial_lr=0.9, final_lr=0.5, num_iters=8)
    """
    known = numbers_of(config)
    if path not in known:
        what = f"{type(config).__name__} has no number {path!r}"
        raise ConfigError("SchedulePlot", what, [("known", ", ".join(known))])
    return _changed(config, path.split(".") if path else [], number)


def _changed(value: Any, path: list[str], number: float) -> Any:
    if not path:
        return number
    if isinstance(value, ConfigEnum):
        (held,) = value.values
        rest = path if isinstance(held, Config) else []
        make = getattr(type(value), value.variant)
        return make(_changed(held, rest, number))
    first, rest = path[0], path[1:]
    if isinstance(value, Config):
        part = _changed(getattr(value, first), rest, number)
        # Config makes its subclasses dataclasses.
        return replace(value, **{first: part})  # pyright: ignore[reportArgumentType]
    place = int(first)
    return [
        _changed(part, rest, number) if i == place else part
        for i, part in enumerate(value)
    ]


def most(value: float, steps: int) -> float:
    """How far a slider goes: to a round number well above its value.

    Example:
        >>> most(0.03, 100), most(0.96, 100), most(50, 100)
        (0.1, 1.0, 200)
    """
    if isinstance(value, int):
        return max(4 * value, steps)
    if value <= 0:
        return 1.0
    above = 10.0 ** math.ceil(math.log10(2 * value) - 1e-9)
    return 1.0 if value <= 1.0 < above else round(above, 12)
