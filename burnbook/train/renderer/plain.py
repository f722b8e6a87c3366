"""The plain renderer: one line per epoch, on any stream."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from burnbook.train.numbers import number_text
from burnbook.train.renderer.base import MetricsRenderer, RunInfo, TrainingResult


class PlainRenderer(MetricsRenderer):
    """Write a line when an epoch is over, and one at the end.

    Example:
        >>> means = {"Loss": 0.61243, "Accuracy": 83.287}
        >>> metrics_line(means, {"Accuracy": "%"})
        'Loss 0.612  Accuracy 83.29 %'
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream
        self.means: dict[str, str] = {}
        self.prefix = ""  # the name of the run, where it tells runs apart

    def start(self, run: RunInfo) -> None:
        """Remember the run, and show the notice before training starts."""
        self.run = run
        self.prefix = f"{run.name}  " if run.named else ""
        self.began = time.monotonic()
        if run.notice:
            self._write(run.notice)

    def end_epoch(self, epoch: int, split: str, means: dict[str, float]) -> None:
        """Write the line when all splits are known."""
        self.means[split] = metrics_line(means, self.run.units, self.run.digits)
        if split == "valid" or not self.run.validates:
            total = self.run.num_epochs
            seconds = time.monotonic() - self.began
            told = [
                f"{name} {self.means[name]}" for name in self.means if self.means[name]
            ]
            line = "  ·  ".join([*told, f"{seconds:.1f} s"])
            self._write(
                f"{self.prefix}epoch {epoch:>{len(str(total))}}/{total}  {line}"
            )

    def end_test(
        self, name: str, means: dict[str, float], units: dict[str, str]
    ) -> None:
        """Write a line."""
        self._write(f"test {name}  {metrics_line(means, units)}")

    def finish(self, result: TrainingResult) -> None:
        """Say why training ended early, if it did."""
        if result.interrupted:
            epochs = "1 epoch" if result.epochs == 1 else f"{result.epochs} epochs"
            after = f"{result.interrupted} after {epochs}"
            self._write(f"{self.prefix}{after}; the model so far is kept")

    def _write(self, line: str) -> None:
        stream = self.stream or sys.stdout
        stream.write(line + "\n")
        stream.flush()


def metrics_line(
    means: dict[str, float],
    units: dict[str, str],
    digits: dict[str, int] | None = None,
) -> str:
    """The means of an epoch in one line.

    digits: how many decimals, for metrics that say it.
    """
    places = digits or {}
    return "  ".join(
        f"{name} {number_text(value, places.get(name))}"
        + (f" {units[name]}" if name in units else "")
        for name, value in means.items()
    )
