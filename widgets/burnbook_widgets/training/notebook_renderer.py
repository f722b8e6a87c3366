"""The renderer of notebooks, which feeds a dashboard."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from burnbook.core.errors import TrainingError
from burnbook.train import (
    MetricsRenderer,
    MetricState,
    RunInfo,
    TrainingProgress,
    TrainingResult,
)
from burnbook_widgets.training.dashboard import Dashboard
from burnbook_widgets.training.other_runs import Runs
from burnbook_widgets.training.screen import Screen


class NotebookRenderer(MetricsRenderer):
    """Show a training in a notebook; nothing that goes wrong here stops the training.

    overlay: runs to lay over the curves from the start: a run, a store, a folder, or
    several of them. norms: whether to show the norms of the layers from the start.

    Why: a picture is not worth a model. The first fault of the view is shown once, the
    view ends, and the run goes on.
    """

    def __init__(
        self,
        screen: Screen | None = None,
        *,
        overlay: Runs | Iterable[Runs] = (),
        norms: bool = False,
    ) -> None:
        self._screen = screen
        self._overlay, self._norms = overlay, norms
        self._static = os.environ.get("BURNBOOK_DISPLAY") == "static"
        self._broken = False
        self.dashboard: Dashboard | None = None

    def start(self, run: RunInfo) -> None:
        """Open the dashboard below the running cell."""
        self._broken = False
        self._try(self._start, run)

    def _start(self, run: RunInfo) -> None:
        before = self.dashboard
        if before is not None and before.state != "finished":
            before.close()
        self.dashboard = Dashboard(run, self._screen, live=not self._static)
        if self._overlay:
            self.dashboard.overlay(self._overlay)
        if self._norms:
            self.dashboard.show_norms()

    @property
    def inspects(self) -> bool:
        """Whether the norms of gradients are shown."""
        return self.dashboard is not None and self.dashboard.norms_shown

    def inspect(self, model: Any, grads: Any) -> None:
        """A batch's gradients: measured while their norms are shown."""
        dashboard = self.dashboard
        if dashboard is not None and dashboard.norms_shown and not self._broken:
            self._try(dashboard.inspect, model, grads)

    def update_train(self, state: MetricState) -> None:
        """Note a metric of a training batch."""
        self._call("update", state)

    def update_valid(self, state: MetricState) -> None:
        """Note a metric of a validation batch."""
        self._call("update", state)

    def render_train(self, progress: TrainingProgress) -> None:
        """A training batch has ended."""
        self._call("step", "train", progress)

    def render_valid(self, progress: TrainingProgress) -> None:
        """A validation batch has ended."""
        self._call("step", "valid", progress)

    def end_epoch(self, epoch: int, split: str, means: dict[str, float]) -> None:
        """An epoch of one split has ended."""
        self._call("end_epoch", epoch, split, means)

    def update_callbacks(self, callbacks: Sequence[tuple[str, str]]) -> None:
        """How the callbacks stand."""
        self._call("update_callbacks", callbacks)

    def saved(self, epoch: int, path: str, trouble: str = "") -> None:
        """A checkpoint was written, or could not be."""
        self._call("saved", epoch, path, trouble)

    def tick(self) -> None:
        """Training is paused."""
        self._call("follow")

    def finish(self, result: TrainingResult) -> None:
        """Leave the finished picture."""
        self._call("finish_still" if self._static else "finish", result)

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write the dashboard as one HTML file that needs no kernel and no network."""
        if self.dashboard is None:
            raise TrainingError(
                "NotebookRenderer.export",
                "nothing has been trained yet",
                cure="learner.fit(train, valid) first",
            )
        return self.dashboard.export(path)

    def close(self) -> None:
        """Training is over, however it ended; its chart stays until it is closed."""
        if not self._static:
            self._call("finish", None)

    def _call(self, name: str, *args: Any) -> None:
        if self.dashboard is not None and not self._broken:
            self._try(getattr(self.dashboard, name), *args)

    def _try(self, act: Any, *args: Any) -> None:
        try:
            act(*args)
        except Exception as fault:
            self._broken = True
            if self.dashboard is not None:
                with contextlib.suppress(Exception):
                    self.dashboard.free()
            print(f"dashboard: {type(fault).__name__}: {fault}; training continues")

    def __repr__(self) -> str:
        return f"NotebookRenderer({self.dashboard or 'no run yet'})"
