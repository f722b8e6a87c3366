"""Renderers: how a training is shown to people."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
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

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
