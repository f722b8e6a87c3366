"""Renderers: how a training is shown to people."""

from burnbook.train.renderer.base import (
    MetricsRenderer,
    RunInfo,
    TrainingProgress,
    TrainingResult,
)
from burnbook.train.renderer.chooser import choose
from burnbook.train.renderer.cli import CliMetricsRenderer
from burnbook.train.renderer.plain import PlainRenderer
from burnbook.train.renderer.terminal import TerminalRenderer

__all__ = [
    "CliMetricsRenderer",
    "MetricsRenderer",
    "PlainRenderer",
    "RunInfo",
    "TerminalRenderer",
    "TrainingProgress",
    "TrainingResult",
    "choose",
]
