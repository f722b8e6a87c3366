"""Sweeps: many configs, the best of them trained furthest."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.train.sweep.space import Choice, LogUniform, Uniform, Whole
from burnbook.train.sweep.sweep import Sweep, sweep
from burnbook.train.sweep.trial import Trial

__all__ = ["Choice", "LogUniform", "Sweep", "Trial", "Uniform", "Whole", "sweep"]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
