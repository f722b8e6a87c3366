"""Callbacks: objects that see the model while it trains, and may replace it."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.train.callback.averages import AveragedWeights, Ema
from burnbook.train.callback.base import Callback, FunctionCallback, TrainingState
from burnbook.train.callback.best import RestoreBest
from burnbook.train.callback.runner import CallbackRunner

__all__ = [
    "AveragedWeights",
    "Callback",
    "CallbackRunner",
    "Ema",
    "FunctionCallback",
    "RestoreBest",
    "TrainingState",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
