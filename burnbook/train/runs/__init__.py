"""Runs: read, list, compare, filter, export, delete them."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.train.runs.comparison import RunComparison
from burnbook.train.runs.run import Checkpoint, MetricPoint, Run, is_run
from burnbook.train.runs.store import RunStore

__all__ = [
    "Checkpoint",
    "MetricPoint",
    "Run",
    "RunComparison",
    "RunStore",
    "is_run",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
