"""Building blocks · Backend. Where tensors live and how operations run."""

from burnbook.backend.base import Backend, Decorator
from burnbook.backend.cupy import Cupy
from burnbook.backend.decorators import Checked, Counting, Step, Tracing
from burnbook.backend.numpy import Numpy

Device = Backend

__all__ = [
    "Backend",
    "Checked",
    "Counting",
    "Cupy",
    "Decorator",
    "Device",
    "Numpy",
    "Step",
    "Tracing",
]
