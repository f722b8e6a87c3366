"""Sweeps: many configs, the best of them trained furthest."""

from burnbook.train.sweep.space import Choice, LogUniform, Uniform, Whole
from burnbook.train.sweep.sweep import Sweep, sweep
from burnbook.train.sweep.trial import Trial

__all__ = ["Choice", "LogUniform", "Sweep", "Trial", "Uniform", "Whole", "sweep"]
