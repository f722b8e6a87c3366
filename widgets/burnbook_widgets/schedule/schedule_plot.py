"""Schedules side by side, to turn and read.

plot = SchedulePlot({"linear": linear, "cosine": cosine}, steps=200)
plot.set("cosine", "num_iters", 80)
config = plot["cosine"]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import anywidget
import ipywidgets
import numpy as np
import traitlets

from burnbook.config import ConfigEnum
from burnbook.core.errors import ConfigError
from burnbook.lr_scheduler.base import check_schedule
from burnbook_widgets.axes import ticks
from burnbook_widgets.number_controls import Number, NumberControls
from burnbook_widgets.page import script, sheet
from burnbook_widgets.schedule.curves import (
    STYLES,
    chosen_steps,
    picture,
    rates,
    tick_text,
    y_range,
    y_ticks,
)
from burnbook_widgets.schedule.fields import changed, most, numbers_of
from burnbook_widgets.view import View, figure, row, table

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_STEPS = 100_000
SLIDERS = 24  # at most for one schedule
TONES = (
    *("#0f7dbd", "#d55e00", "#12966f", "#b85f97"),
    *("#94790a", "#737b85", "#8a6cc9", "#c14d4d"),
)
PLOTLY_DASH = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


class SchedulePanel(anywidget.AnyWidget):
    """The page of a plot: what Python sends is what it draws."""

    _esm = script("schedule")
    _css = sheet("schedule")

    frame = traitlets.Dict().tag(sync=True)
    data = traitlets.Bytes().tag(sync=True)
    at = traitlets.Int(-1).tag(sync=True)
    said = traitlets.Unicode().tag(sync=True)
    fault = traitlets.Unicode().tag(sync=True)

    def __repr__(self) -> str:
        names = [line["name"] for line in self.frame.get("lines", ())]
        return f"SchedulePanel({', '.join(names)})"


class SchedulePlot(View):
    """Learning rates over steps, of one schedule or several, with knobs to turn.

    schedules: a config (or a scheduler, or a number), a list of them, or a dict that
    names them. Every control has a twin: `set(name, field, value)`, `show`, `hide`,
    `steps`, `log`, `at`; `plot[name]` is the config as it stands, and may be set.

    Example:
        >>> from burnbook.lr_scheduler import LinearLrSchedulerConfig
        >>> plot = SchedulePlot(LinearLrSchedulerConfig(0.9, 0.5, 4), steps=6)
        >>> plot
        SchedulePlot(linear; 6 steps)
        >>> plot.set("linear", "final_lr", 0.1)
        >>> plot.rates("linear").round(2).tolist()
        [0.9, 0.7, 0.5, 0.3, 0.1, 0.1]
    """

    def __init__(self, schedules: Any, steps: int = 100, log: bool = False):
        super().__init__()
        self._configs = _named(schedules)
        if not 0 < len(self._configs) <= len(STYLES):
            what = f"{len(self._configs)} schedules cannot be told apart"
            raise ConfigError("SchedulePlot", what, cure=f"1 to {len(STYLES)}")
        self._hidden: set[str] = set()
        self._log, self._at = bool(log), -1
        self._steps = _whole(steps)
        self._checks: dict[str, Any] = {}
        self._rates = {n: rates(c, self._steps) for n, c in self._configs.items()}
        self.open()

    # ── what one can set ────────────────────────────────────────────────────

    @property
    def names(self) -> list[str]:
        """The schedules, in their order."""
        return list(self._configs)

    def __getitem__(self, name: str) -> Any:
        """The config of a schedule as it stands now."""
        return self._configs[self._known(name)]

    def __setitem__(self, name: str, config: Any) -> None:
        """Let another config take the place of one."""
        found = rates(config, self._steps)  # before anything is changed
        alike = numbers_of(config).keys() == numbers_of(self[name]).keys()
        if self.box is not None and not alike:
            what = f"{name} has other numbers than the controls of the open view"
            raise ConfigError("SchedulePlot", what, cure="a SchedulePlot of its own")
        self._configs[name], self._rates[name] = config, found
        self._show()

    def set(self, name: str, field: str, value: float) -> None:
        """Turn one number of a schedule: `plot.set("cosine", "num_iters", 80)`."""
        self[name] = changed(self[name], field, value)

    def rates(self, name: str) -> np.ndarray:
        """The learning rates of a schedule, one per step."""
        return self._rates[self._known(name)]

    def hide(self, name: str) -> None:
        """Leave a schedule out of the picture."""
        self._hidden.add(self._known(name))
        self._show()

    def show(self, name: str) -> None:
        """Take a schedule back into the picture."""
        self._hidden.discard(self._known(name))
        self._show()

    @property
    def shown(self) -> list[str]:
        """The schedules that are in the picture."""
        return [name for name in self._configs if name not in self._hidden]

    @property
    def steps(self) -> int:
        """How many steps are looked at."""
        return self._steps

    @steps.setter
    def steps(self, count: int) -> None:
        self._steps = _whole(count)
        self._rates = {n: rates(c, self._steps) for n, c in self._configs.items()}
        self._at = min(self._at, self._steps - 1)
        self._show()

    @property
    def log(self) -> bool:
        """Whether rates stand on a logarithmic scale."""
        return self._log

    @log.setter
    def log(self, log: bool) -> None:
        self._log = bool(log)
        self._show()

    @property
    def at(self) -> int:
        """The step whose rates are read out; −1 for none."""
        return self._at

    @at.setter
    def at(self, step: int) -> None:
        if not -1 <= step < self._steps:
            what = f"there is no step {step}"
            raise ConfigError("SchedulePlot", what, cure=f"0 to {self._steps - 1}")
        self._at = int(step)
        self._show()

    def readings(self) -> dict[str, float]:
        """The rate of each shown schedule at the step that is read."""
        if self._at < 0:
            return {}
        return {name: float(self._rates[name][self._at]) for name in self.shown}

    def _known(self, name: str) -> str:
        if name not in self._configs:
            what, known = f"there is no schedule {name!r}", ", ".join(self._configs)
            raise ConfigError("SchedulePlot", what, [("known", known)])
        return name

    # ── for plotly ──────────────────────────────────────────────────────────

    def figure(self) -> go.Figure:
        """The same as a plotly figure, to zoom into and to save."""
        try:
            import plotly.graph_objects as go
        except ImportError:
            what, cure = "a figure needs plotly", 'pip install "burnbook[lab]"'
            raise ConfigError("SchedulePlot", what, cure=cure) from None
        figure = go.Figure()
        at = chosen_steps(self._steps)
        for place, name in enumerate(self._configs):
            style = {
                "color": TONES[place],
                "dash": PLOTLY_DASH[place % len(PLOTLY_DASH)],
            }
            figure.add_scatter(
                x=at,
                y=self._rates[name][at],
                name=name,
                line=style,
                visible=True if name in self.shown else "legendonly",
            )
        kind = "log" if self._log else "linear"
        figure.update_layout(
            xaxis_title="step",
            yaxis={"title": "learning rate", "type": kind},
            hovermode="x unified",
            margin={"l": 60, "r": 20, "t": 30, "b": 50},
        )
        return figure

    # ── live ────────────────────────────────────────────────────────────────

    def _build(self) -> ipywidgets.VBox:
        self.panel = SchedulePanel()
        self.panel.on_msg(self.act(self._told))
        self.log_control = ipywidgets.Button(
            icon="line-chart", tooltip="Linear or logarithmic", layout={"width": "auto"}
        )
        self.log_control.on_click(self.act(self._turn_log))
        self.steps_control = ipywidgets.BoundedIntText(
            self._steps,
            min=1,
            max=MOST_STEPS,
            description="Steps",
            style={"description_width": "auto"},
            layout={"width": "150px"},
        )
        self.steps_control.observe(self.act(self._set_steps), "value")
        self._wide = ipywidgets.Layout(min_width="110px", width="auto")
        for name in self._configs:
            check = ipywidgets.Checkbox(
                True, description=name, indent=False, layout=self._wide
            )
            act = self.act(lambda e, name=name: self._checked(name, e["new"]))
            check.observe(act, "value")
            self._checks[name] = check
        self.numbers = self._number_controls()
        buttons = row(self.log_control, self.steps_control, *self._checks.values())
        return ipywidgets.VBox([buttons, self.panel, self.numbers])

    def _number_controls(self) -> NumberControls:
        """A slider and a box for each number of each schedule."""
        numbers: dict[str, Number] = {}
        self._paths: dict[str, tuple[str, str]] = {}
        for name, config in self._configs.items():
            for path, value in list(numbers_of(config).items())[:SLIDERS]:
                key = str(len(numbers))
                self._paths[key] = name, path
                top = most(value, self._steps)
                about, label = f"{name}: {path}", _said(path)
                numbers[key] = Number(
                    label, value, min(0, value), top, about=about, group=name
                )
        controls = NumberControls(numbers)
        turn = self.act(lambda key, value: self.set(*self._paths[key], value))
        controls.observe_numbers(turn)
        return controls

    def _checked(self, name: str, shown: bool) -> None:
        (self.show if shown else self.hide)(name)

    def _turn_log(self, _: Any) -> None:
        self.log = not self._log
        self.panel.said = "logarithmic scale" if self._log else "linear scale"

    def _set_steps(self, event: Any) -> None:
        if event["new"] != self._steps:
            self.steps = event["new"]

    def _told(self, _: Any, message: Any, __: Any) -> None:
        """The pointer or a key has moved the line that reads."""
        if message.get("do") == "read":
            self._at = max(-1, min(int(message.get("at", -1)), self._steps - 1))

    def _show(self) -> None:
        if self.panel is None:
            return
        for name, check in self._checks.items():
            check.value = name not in self._hidden
        now = {name: numbers_of(config) for name, config in self._configs.items()}
        paths = self._paths.items()
        self.numbers.put({key: now[name][path] for key, (name, path) in paths})
        self.steps_control.value = self._steps
        self.log_control.description = "Linear scale" if self._log else "Log scale"
        at, names = chosen_steps(self._steps), self.shown
        if self._at >= 0:
            at = np.union1d(at, [self._at])  # what is read is among what is sent
        lines = [self._rates[name] for name in names]
        low, high = y_range(lines, self._log)
        places = [self.names.index(name) for name in names]
        marks = [[v, tick_text(v)] for v in y_ticks(low, high, self._log)]
        across = [[v, f"{v:g}"] for v in ticks(0, max(1, self._steps - 1), 6, True)]
        with self.panel.hold_sync():
            self.panel.data = np.array(
                [at, *[line[at] for line in lines]], "<f4"
            ).tobytes()
            self.panel.frame = {
                "lines": [
                    {"name": name, "place": place, "dash": list(STYLES[place][1])}
                    for name, place in zip(names, places, strict=True)
                ],
                "x": [0, max(1, self._steps - 1)],
                "y": [low, high],
                "log": self._log,
                "rows": marks,
                "columns": across,
                "turn": int(self.panel.frame.get("turn", 0)) + 1,
            }
            self.panel.at = self._at

    # ── still ───────────────────────────────────────────────────────────────

    def still(self) -> str:
        """The curves as a drawing, and what makes each, in a table."""
        names = self.shown
        lines = {name: self._rates[name] for name in names}
        drawing = picture(lines, [self.names.index(n) for n in names], self._log)
        head = ["schedule", "first", "highest", "last", "made by"]
        read = [f"step {self._at}"] if self._at >= 0 else []
        rows = []
        for name, line in lines.items():
            numbers = (float(line[0]), float(line.max()), float(line[-1]))
            cells = [escape(name), *map(figure, numbers)]
            cells.append(f"<code>{escape(_text(self._configs[name]))}</code>")
            extra = [figure(float(line[self._at]))] if read else []
            rows.append([*cells, *extra])
        return (
            f'<div style="line-height:1.5;overflow-x:auto">{drawing}\n'
            f"{table([*head, *read], rows)}</div>"
        )

    def __repr__(self) -> str:
        scale = ", log scale" if self._log else ""
        return f"SchedulePlot({', '.join(self.shown)}; {self._steps} steps{scale})"


def _named(schedules: Any) -> dict[str, Any]:
    """Schedules by name: those of a dict, or short forms of their classes' names."""
    if isinstance(schedules, Mapping):
        for config in schedules.values():
            check_schedule("SchedulePlot", config)
        return {str(name): config for name, config in schedules.items()}
    several = isinstance(schedules, Sequence) and not isinstance(schedules, str)
    found: dict[str, Any] = {}
    for config in schedules if several else [schedules]:
        check_schedule("SchedulePlot", config)
        base = name = _short(config)
        turn = 1
        while name in found:
            turn += 1
            name = f"{base} {turn}"
        found[name] = config
    return found


def _short(config: Any) -> str:
    if isinstance(config, (int, float)):
        return "constant"
    kind = config.variant if isinstance(config, ConfigEnum) else type(config).__name__
    for end in ("Config", "LrScheduler", "Lr", "Annealing"):
        kind = kind.removesuffix(end)
    return kind.lower() or "schedule"


def _text(config: Any) -> str:
    text = repr(config)
    return text if len(text) <= 160 else f"{text[:159]}…"


def _said(path: str) -> str:
    if not path:
        return "learning rate"
    return path.replace("schedulers.", "").replace("_", " ").replace(".", " · ")


def _whole(steps: int) -> int:
    if not 1 <= steps <= MOST_STEPS:
        what, cure = f"{steps:,} steps cannot be drawn", f"1 to {MOST_STEPS:,}"
        raise ConfigError("SchedulePlot", what, cure=cure)
    return int(steps)
