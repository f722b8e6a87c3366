"""Burn's own plain renderer: the progress of every batch."""

from __future__ import annotations

import sys
from typing import TextIO

from burnbook.train.renderer.base import MetricsRenderer, RunInfo, TrainingProgress


class CliMetricsRenderer(MetricsRenderer):
    """Write one line per batch, in Burn's words, and no metrics.

    Example:
        >>> from burnbook.data import Progress
        >>> import io
        >>> stream = io.StringIO()
        >>> renderer = CliMetricsRenderer(stream)
        >>> renderer.render_train(TrainingProgress(Progress(64, 60000), 1, 10, 1))
        >>> stream.getvalue().count("items_processed: 64")
        1
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream

    def start(self, run: RunInfo) -> None:
        """Show the notice, if any, before training starts."""
        if run.notice:
            self._write(run.notice)

    def render_train(self, progress: TrainingProgress) -> None:
        """Write the line."""
        self._write(str(progress))

    def render_valid(self, progress: TrainingProgress) -> None:
        """Write the line."""
        self._write(str(progress))

    def render_test(self, progress: TrainingProgress) -> None:
        """Write the line."""
        self._write(str(progress))

    def _write(self, line: str) -> None:
        (self.stream or sys.stdout).write(line + "\n")
