"""Points on a plane, and the boundary of a network while it learns.

playground = Playground(data="spiral", hidden=[16, 16])
playground.advance(50)
playground.start(); playground.pause()
print(playground.code())
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import numpy as np
import traitlets

from burnbook.core.errors import ConfigError
from burnbook_widgets.number_controls import Number, NumberControls
from burnbook_widgets.page import script, sheet
from burnbook_widgets.playground import script as engine
from burnbook_widgets.playground.script import (
    ACTIVATIONS,
    DATA,
    OPTIMIZERS,
    PlaygroundConfig,
    Training,
)
from burnbook_widgets.playground.still import CELLS, SPAN, WIDE, picture
from burnbook_widgets.view import View, in_short, row

INTERVAL = 0.25  # seconds between two messages to the page
PACE = 1 / 40  # seconds that an epoch takes at least, so that one can watch
GRID = 56  # cells of the live map along each side
KEPT = 200  # points of a loss curve that are sent
LONGEST = 5000  # epochs


class PlaygroundPanel(anywidget.AnyWidget):
    """The page of a playground: what Python sends is what it draws."""

    _esm = script("playground")
    _css = sheet("playground")

    points = traitlets.Bytes().tag(sync=True)
    heat = traitlets.Bytes().tag(sync=True)
    losses = traitlets.Bytes().tag(sync=True)
    status = traitlets.Dict().tag(sync=True)
    code = traitlets.Unicode().tag(sync=True)
    said = traitlets.Unicode().tag(sync=True)
    fault = traitlets.Unicode().tag(sync=True)

    def __repr__(self) -> str:
        return "PlaygroundPanel()"


class Playground(View):
    """Two classes of points, a small network, and buttons: see it learn, live.

    Settings are the fields of `PlaygroundConfig`. Every control has a twin: `set`,
    `start` (Train), `pause`, `advance` (Step), `reset`, `code`; `training` holds the
    network as it stands, `running` says whether it trains now.

    Example:
        >>> playground = Playground(points=60, hidden=[4])
        >>> playground.advance(20)
        >>> playground
        Playground(moons, 60 points; [4] tanh; adam 0.01; epoch 20)
    """

    def __init__(self, **settings: Any):
        super().__init__()
        given: dict[str, Any] = {"noise": 0.15, "learning_rate": 0.01, **settings}
        self._training = Training(PlaygroundConfig(**given))
        self._lock = threading.RLock()
        self._turn = 0  # a number for each time that Train was pressed
        self._running = False
        self._worker: threading.Thread | None = None
        self._grid = _grid(GRID)
        self.open()

    # ── what one can set and do ─────────────────────────────────────────────

    @property
    def training(self) -> Training:
        """Points, network and optimizer as they stand."""
        return self._training

    @property
    def config(self) -> PlaygroundConfig:
        """The settings."""
        return self._training.config

    @property
    def running(self) -> bool:
        """Whether a thread trains now."""
        return self._running

    def set(self, **settings: Any) -> None:
        """Change settings; the training begins anew, and goes on if it ran."""
        known = {name: kept for name, _, kept in PlaygroundConfig.json_fields()}
        for name in settings:
            if name not in known:
                what = f"there is no setting {name!r}"
                raise ConfigError("Playground", what, [("known", ", ".join(known))])
        now = {name: getattr(self.config, name) for name in known}
        made = Training(PlaygroundConfig(**{**now, **settings}))
        with self._lock:
            self._training = made
        self._show()

    def reset(self) -> None:
        """Stop, and begin anew with the same settings."""
        self.pause()
        self.set()

    def start(self) -> None:
        """Train until `pause`, in a thread; the cell need not wait for it."""
        if self._running:
            return
        self._turn += 1
        self._running = True
        worker = threading.Thread(target=self._work, args=(self._turn,), daemon=True)
        try:
            worker.start()
        except RuntimeError:  # a browser has no threads
            self._running = False
            self.advance(50)
            return
        self._worker = worker
        self._show()

    def pause(self) -> None:
        """Stop after this epoch; returns when it has stopped."""
        self._running = False
        worker, self._worker = self._worker, None
        if worker is not None and worker is not threading.current_thread():
            worker.join(5)
        self._show()

    def advance(self, epochs: int = 1) -> None:
        """Train a number of epochs, here and now."""
        self.pause()
        for _ in range(epochs):
            with self._lock:
                self._training.step()
        self._show()

    def code(self) -> str:
        """A whole script that trains to the same numbers, for a file of one's own."""
        text = Path(engine.__file__).read_text(encoding="utf-8")
        config, epochs = self.config, self._training.epochs
        said = '"""A small network that learns to separate two classes of points."""'
        text = re.sub(r'^""".*?"""', said, text, count=1, flags=re.DOTALL)
        text = text.replace("CONFIG = PlaygroundConfig()", f"CONFIG = {config!r}")
        return text.replace("EPOCHS = 100", f"EPOCHS = {epochs or 100}")

    def losses(self) -> list[tuple[float, float]]:
        """The losses of train and test, before the first epoch and after each."""
        return list(self._training.losses)

    # ── the thread ──────────────────────────────────────────────────────────

    def _work(self, turn: int) -> None:
        following = time.monotonic() + INTERVAL
        try:
            while self._running and self._turn == turn:
                begun = time.monotonic()
                with self._lock:
                    self._training.step()
                    ended = self._training.epochs >= LONGEST
                if ended:
                    self._running = False
                elif time.monotonic() >= following:
                    following = time.monotonic() + INTERVAL
                    self._send()
                time.sleep(max(0.001, PACE - (time.monotonic() - begun)))
        except Exception as fault:  # a thread has nobody to tell but the view
            self._running = False
            self.say_fault(in_short(fault))
        if self._turn == turn:
            self._show()

    # ── live ────────────────────────────────────────────────────────────────

    def _build(self) -> ipywidgets.VBox:
        self.panel = PlaygroundPanel()
        self.panel.on_msg(self.act(self._told))

        def button(
            text: str, icon: str, tooltip: str, act: Callable[[], Any]
        ) -> ipywidgets.Button:
            made = ipywidgets.Button(
                description=text, icon=icon, tooltip=tooltip, layout={"width": "auto"}
            )
            made.on_click(self.act(lambda _: act()))
            return made

        self.train_control = button("Train", "play", "Train until Pause", self.start)
        self.pause_control = button(
            "Pause", "pause", "Stop after this epoch", self.pause
        )
        self.step_control = button("Step", "step-forward", "One epoch", self.advance)
        self.reset_control = button("Reset", "undo", "Start over", self.reset)
        self.code_control = button(
            "Code", "code", "Show a script that trains to the same numbers", self._code
        )
        self._controls = self._settings()
        for name, control in self._controls.items():
            act = self.act(lambda event, name=name: self._changed(name, event["new"]))
            control.observe(act, "value")
        self.numbers = self._numbers()
        self.numbers.observe_numbers(self.act(self._changed))
        buttons = (self.train_control, self.pause_control, self.step_control)
        return ipywidgets.VBox(
            [
                row(*buttons, self.reset_control, self.code_control),
                row(*self._controls.values(), self.numbers),
                self.panel,
            ]
        )

    def _settings(self) -> dict[str, Any]:
        """A control for each setting."""
        look: dict[str, Any] = {
            "style": {"description_width": "auto"},
            "continuous_update": False,
        }
        short, long = {"width": "170px"}, {"width": "260px"}
        config = self.config

        def choice(name: str, options: Any) -> ipywidgets.Dropdown:
            return ipywidgets.Dropdown(
                options=list(options),
                value=getattr(config, name),
                description=name.capitalize(),
                layout=short,
                style={"description_width": "auto"},
            )

        def slider(name: str, low: int, high: int, text: str) -> ipywidgets.IntSlider:
            value = getattr(config, name)
            return ipywidgets.IntSlider(
                value, low, max(high, value), description=text, layout=long, **look
            )

        return {
            "data": choice("data", DATA),
            "hidden": ipywidgets.Text(
                _widths(config.hidden),
                description="Hidden",
                tooltip="Widths of the hidden layers, such as 8, 8",
                layout=short,
                **look,
            ),
            "activation": choice("activation", ACTIVATIONS),
            "optimizer": choice("optimizer", OPTIMIZERS),
            "points": slider("points", 20, 600, "Points"),
            "batch_size": slider("batch_size", 1, 256, "Batch size"),
            "seed": ipywidgets.BoundedIntText(
                config.seed,
                min=0,
                max=2**31,
                description="Seed",
                layout={"width": "130px"},
                style={"description_width": "auto"},
            ),
        }

    def _numbers(self) -> NumberControls:
        """The settings that are not whole, which a page must not round."""
        rate, noise = self.config.learning_rate, self.config.noise
        low = min(rate, 1e-4) if rate > 0 else 1e-4
        return NumberControls(
            {
                "learning_rate": Number("Learning rate", rate, low, 10.0, log=True),
                "noise": Number("Noise", noise, 0.0, max(0.5, noise)),
            }
        )

    def _changed(self, name: str, value: Any) -> None:
        now = getattr(self.config, name)
        if name == "hidden":
            try:
                value = _read_widths(value)
            except ValueError:
                what, cure = f"hidden is {value!r}", "widths such as 8, 8"
                raise ConfigError("Playground", what, cure=cure) from None
        if value != now:
            self.set(**{name: value})

    def _code(self) -> None:
        self.panel.code = "" if self.panel.code else self.code()

    def _told(self, _: Any, message: Any, __: Any) -> None:
        """A key in the panel."""
        match message.get("do"):
            case "toggle":
                (self.pause if self._running else self.start)()
            case "step":
                self.advance()
            case "reset":
                self.reset()
            case _:
                pass

    def _show(self) -> None:
        """Bring controls and picture to the state of the training."""
        panel = self.panel
        if panel is None:
            return
        for name, control in self._controls.items():
            value = getattr(self.config, name)
            if name == "hidden":
                value = _widths(value)
                if control.value and _safe_widths(control.value) == self.config.hidden:
                    continue
            control.value = value
        settings = {name: getattr(self.config, name) for name in self.numbers.numbers}
        self.numbers.put(settings)
        self.train_control.disabled = self._running
        self.pause_control.disabled = not self._running
        training = self._training
        table = np.column_stack([training.points, training.labels, training.for_test])
        panel.points = table.astype("<f4").tobytes()
        if panel.code:
            panel.code = self.code()
        self._send()
        if not self._running:
            panel.said = self.summary()

    def _send(self) -> None:
        """Send the map, the losses and a line of text as one message."""
        panel = self.panel
        if panel is None:
            return
        with self._lock:
            training = self._training
            heat = training.chances(self._grid)
            losses = np.array(training.losses)
            line = self.summary()
        at = np.arange(len(losses))
        if len(at) > KEPT:
            at = np.unique(np.linspace(0, len(at) - 1, KEPT).round().astype(int))
        rows = np.column_stack([at, losses[at]])
        clear = np.nan_to_num(heat, nan=0.5)
        with panel.hold_sync():
            panel.heat = np.round(255 * clear).astype("u1").tobytes()
            panel.losses = rows.astype("<f4").tobytes()
            panel.status = {
                "line": line,
                "running": self._running,
                "epochs": training.epochs,
                "grid": GRID,
                "span": SPAN,
            }

    def summary(self) -> str:
        """How far it is and how well it does, in a line."""
        training = self._training
        parts = [f"Epoch {training.epochs}"]
        for name, test in (("train", False), ("test", True)):
            loss, accuracy = training.measure(test)
            parts.append(f"{name}: loss {loss:.3f}, {100 * accuracy:.1f} % right")
        return " · ".join(parts)

    def close(self) -> None:
        """Stop the thread and free the widgets; a still form stays."""
        self.pause()
        super().close()

    # ── still ───────────────────────────────────────────────────────────────

    def drawing(self) -> Any:
        """Regions, points and losses as a drawing: `.svg()` and `.png()`."""
        training = self._training
        with self._lock:
            chances = training.chances(_grid(CELLS)).reshape(CELLS, CELLS)
            return picture(
                training.points,
                training.labels,
                training.for_test,
                np.nan_to_num(chances, nan=0.5),
                training.losses,
                (self._title(), self.summary()),
            )

    def still(self) -> str:
        """The drawing, in HTML without JavaScript."""
        return f'<div style="overflow-x:auto">{self.drawing().svg()}</div>'

    def bundle(self) -> dict[str, Any]:
        """What a page gets; a static one gets a PNG, as trained numbers differ.

        Why: pages are compared letter by letter, and the last digit of a loss depends
        on the machine.
        """
        data = self.drawing().png() if self._static else None
        if data is None:
            return super().bundle()
        return {"image/png": data, "text/plain": repr(self)}

    def _ipython_display_(self) -> None:
        if not self._static:
            super()._ipython_display_()
            return
        from IPython.display import display

        size = {"image/png": {"width": WIDE}}  # drawn with twice the pixels
        display(self.bundle(), raw=True, metadata=size)

    def _title(self) -> str:
        config = self.config
        return (
            f"{config.data}, {config.points} points; {config.hidden} "
            f"{config.activation}; {config.optimizer} {config.learning_rate:.3g}"
        )

    def __repr__(self) -> str:
        return f"Playground({self._title()}; epoch {self._training.epochs})"


def _grid(count: int) -> np.ndarray:
    """The middles of the cells of the plane, row by row from the top.

    Shapes: -> [count · count, 2]
    """
    at = (np.arange(count) + 0.5) / count * 2 * SPAN - SPAN
    x, y = np.meshgrid(at, -at)
    return np.stack([x.ravel(), y.ravel()], axis=1)


def _widths(hidden: list[int]) -> str:
    return ", ".join(map(str, hidden))


def _read_widths(text: str) -> list[int]:
    return [int(part) for part in text.replace(",", " ").split()]


def _safe_widths(text: str) -> list[int] | None:
    try:
        return _read_widths(text)
    except ValueError:
        return None
