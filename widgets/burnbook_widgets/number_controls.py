"""Sliders and boxes that keep a number.

Why: a FloatSlider of ipywidgets snaps its value to its step when it is displayed, and
writes that back: 0.9995 becomes 1.0 by being looked at. Here the page never sends a
number that nobody moved or typed; the box holds every digit, the slider moves nearby.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import anywidget
import traitlets

from burnbook_widgets.page import script, sheet


@dataclass(frozen=True)
class Number:
    """One number to turn: its label, and from where to where its slider goes.

    log: the slider moves in even factors; then `low` is above 0.
    group: a heading that it shares with its neighbors.
    """

    label: str
    value: float
    low: float
    high: float
    log: bool = False
    about: str = ""
    group: str = ""


class NumberControls(anywidget.AnyWidget):
    """A slider and a number box for each of several numbers, by key.

    `changed(key, value)` hears what the reader moves or types; it may raise, and then
    the page goes back to the number that is so.
    """

    _esm = script("numbers")
    _css = sheet("numbers")

    rows = traitlets.List().tag(sync=True)
    answers = traitlets.Int().tag(sync=True)

    def __init__(self, numbers: Mapping[str, Number]):
        super().__init__()
        self.numbers = dict(numbers)
        self._listener: Callable[[str, float], None] = lambda k, v: self.put({k: v})
        self.on_msg(self._told)
        self._tell()

    def observe_numbers(self, listener: Callable[[str, float], None]) -> None:
        """Have a function called with the key and the new value of each change."""
        self._listener = listener

    def put(self, values: Mapping[str, float]) -> None:
        """Show these values, to the last digit; a slider grows to hold its value."""
        for key, value in values.items():
            if key in self.numbers:
                old = self.numbers[key]
                fits = math.isfinite(value) and not (old.log and value <= 0)
                low = min(old.low, value) if fits else old.low
                high = max(old.high, value) if fits else old.high
                self.numbers[key] = replace(old, value=value, low=low, high=high)
        self._tell()

    def turn(self, key: str, value: float) -> None:
        """What happens when a reader moves a slider or types a number."""
        whole = isinstance(self.numbers[key].value, int) and value == value // 1
        try:
            self._listener(key, int(value) if whole else float(value))
        finally:
            self.answers += 1  # a refused number disappears from the page

    def _told(self, _: Any, message: Any, __: Any) -> None:
        if message.get("do") != "turn" or message.get("key") not in self.numbers:
            return
        value = message.get("value")
        if isinstance(value, int | float) and not isinstance(value, bool):
            self.turn(message["key"], value)

    def _tell(self) -> None:
        self.rows = [
            {"key": key, "whole": isinstance(number.value, int), **asdict(number)}
            for key, number in self.numbers.items()
        ]

    def __repr__(self) -> str:
        return f"NumberControls({', '.join(self.numbers)})"
