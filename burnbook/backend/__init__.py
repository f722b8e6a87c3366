"""Where tensors live and how operations run."""

from typing import TYPE_CHECKING

from burnbook.backend.autodiff import Autodiff
from burnbook.backend.base import Backend, Decorator
from burnbook.backend.cupy import Cupy
from burnbook.backend.fusion import Fusion
from burnbook.backend.numpy import Numpy
from burnbook.backend.wrappers import Checked, Counting, Step, Tracing
from burnbook.core.other_names import module_answers

Device = Backend
Backend.autodiff_class = Autodiff

__all__ = [
    "Autodiff",
    "Backend",
    "Checked",
    "Counting",
    "Cupy",
    "Decorator",
    "Device",
    "Fusion",
    "Numpy",
    "Step",
    "Tracing",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
