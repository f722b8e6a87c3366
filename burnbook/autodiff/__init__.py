"""Building blocks · Autodiff. Gradients of anything, by decorating a backend."""

from burnbook.autodiff.autodiff import Autodiff
from burnbook.autodiff.gradients import Gradients

__all__ = ["Autodiff", "Gradients"]
