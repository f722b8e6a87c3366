"""The terminal renderer: a live dashboard in text.

It redraws at most five times a second, whatever the speed of training, and between two
redraws costs a look at the clock. Keys: q stops, p pauses, arrows choose the plot.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import TextIO

from burnbook.train.metric import MetricState
from burnbook.train.renderer.base import (
    MetricsRenderer,
    RunInfo,
    TrainingProgress,
    TrainingResult,
)
from burnbook.train.renderer.canvas import Canvas
from burnbook.train.renderer.dashboard import (
    COLORLESS,
    Curve,
    TerminalDashboard,
    Theme,
    clock,
    draw,
    draw_plot,
    in_words,
)
from burnbook.train.renderer.plain import metrics_line
from burnbook.train.renderer.screen import Screen

SECONDS_BETWEEN_DRAWINGS = 0.2
SECONDS_BEFORE_ETA = 3.0


class TerminalRenderer(MetricsRenderer):
    """Draw the training on a terminal while it runs, and leave its plots at the end."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        self.theme = COLORLESS if os.environ.get("NO_COLOR") else Theme()
        self.screen = Screen(self.stream)

    def start(self, run: RunInfo) -> None:
        """Take over the screen; the notice waits below it."""
        if run.notice:
            self.stream.write(run.notice + "\n")
        self.dashboard = TerminalDashboard(
            run, curves={name: Curve() for name in run.metrics}
        )
        self.dashboard.callbacks = list(run.callbacks)
        self.means: dict[str, dict[str, float]] = {}
        self.began = time.monotonic()
        self.drawn = 0.0
        self.seen = (self.began, 0)
        self.repaired = self.began
        self.screen.enter()
        self._draw(self.began)

    def update_train(self, state: MetricState) -> None:
        """Keep the text, and the value for the plot."""
        name = state.entry.name
        self.dashboard.texts.setdefault(name, {})["train"] = state.entry.formatted
        if state.value is not None:
            self.dashboard.curves.setdefault(name, Curve()).add(state.value)

    def update_valid(self, state: MetricState) -> None:
        """Keep the text."""
        texts = self.dashboard.texts.setdefault(state.entry.name, {})
        texts["valid"] = state.entry.formatted

    def render_train(self, progress: TrainingProgress) -> None:
        """Redraw, if it is time to."""
        self._render("train", progress)

    def render_valid(self, progress: TrainingProgress) -> None:
        """Redraw, if it is time to."""
        self._render("valid", progress)

    def _render(self, split: str, progress: TrainingProgress) -> None:
        dashboard = self.dashboard
        if split != dashboard.split:
            dashboard.split = split
            self.seen = (time.monotonic(), progress.progress.items_processed)
        dashboard.progress = progress
        now = time.monotonic()
        if now - self.drawn >= SECONDS_BETWEEN_DRAWINGS:
            self._measure(now, progress)
            self._draw(now)

    def end_epoch(self, epoch: int, split: str, means: dict[str, float]) -> None:
        """One more point of every metric."""
        self.means[split] = means
        for name, value in means.items():
            curve = self.dashboard.curves.setdefault(name, Curve())
            curve.end_epoch(epoch, split, value)

    def update_callbacks(self, callbacks: Sequence[tuple[str, str]]) -> None:
        """Show how they stand with the next drawing."""
        self.dashboard.callbacks = list(callbacks)

    def tick(self) -> None:
        """Stay awake while training is paused."""
        now = time.monotonic()
        if now - self.drawn >= SECONDS_BETWEEN_DRAWINGS:
            self._draw(now)

    def finish(self, result: TrainingResult) -> None:
        """Give the screen back and leave the final plots and numbers in the shell."""
        self.close()
        width, _ = self.screen.size()
        names = list(self.dashboard.curves)[:2]
        canvas = Canvas(min(width, 120), 10)
        for i, name in enumerate(names):
            left = canvas.width * i // len(names)
            right = canvas.width * (i + 1) // len(names)
            area = (left, 0, right - left, canvas.height)
            self.dashboard.zoomed = False
            draw_plot(canvas, self.dashboard, self.theme, name, area)
        lines = canvas.lines() if names else []
        self.stream.write("\n".join([*lines, self._last_line(result)]) + "\n")
        self.stream.flush()

    def end_test(
        self, name: str, means: dict[str, float], units: dict[str, str]
    ) -> None:
        """Leave a line in the shell."""
        self.stream.write(f"test {name}  {metrics_line(means, units)}\n")

    def close(self) -> None:
        """Give the screen back."""
        self.screen.leave()

    def _measure(self, now: float, progress: TrainingProgress) -> None:
        dashboard, run = self.dashboard, self.dashboard.run
        items = progress.progress
        dashboard.elapsed = now - self.began
        dashboard.epoch_share = items.items_processed / max(items.items_total, 1)
        trained = dashboard.epoch_share if dashboard.split == "train" else 1.0
        epochs = run.num_epochs - run.start_epoch + 1
        dashboard.share = (progress.epoch - run.start_epoch + trained) / epochs
        if dashboard.elapsed >= SECONDS_BEFORE_ETA and dashboard.share > 0:
            dashboard.eta = in_words(
                dashboard.elapsed * (1 - dashboard.share) / dashboard.share
            )
        since, done = self.seen
        if now > since and items.items_processed > done:
            speed = (items.items_processed - done) / (now - since)
            dashboard.speed = (
                speed if not dashboard.speed else 0.7 * dashboard.speed + 0.3 * speed
            )
        self.seen = (now, items.items_processed)

    def _draw(self, now: float) -> None:
        self.drawn = now
        for key in self.screen.pressed():
            self._press(key)
        if now - self.repaired > 2.0:  # repair what others may have overwritten
            self.repaired = now
            self.screen.forget()
        width, height = self.screen.size()
        self.screen.show(draw(self.dashboard, width, height, self.theme))

    def _press(self, key: str) -> None:
        dashboard, control = self.dashboard, self.dashboard.run.control
        if key == "q":
            control.stop("stopped with q")
        elif key in ("p", " "):
            (control.resume if control.paused else control.pause)()
        elif key in ("left", "right"):
            dashboard.first += 1 if key == "right" else -1
        elif key in ("up", "down"):
            dashboard.zoomed = not dashboard.zoomed

    def _last_line(self, result: TrainingResult) -> str:
        count = f"{result.epochs} epoch{'s' * (result.epochs != 1)}"
        what = f"{result.interrupted} after" if result.interrupted else "trained"
        run = self.dashboard.run
        name = f"{run.name}: " if run.named else ""
        parts = [f"{name}{what} {count} in {clock(result.seconds)}"]
        for split, means in self.means.items():
            parts.append(f"{split} {metrics_line(means, run.units, run.digits)}")
        return "  ·  ".join(parts)
