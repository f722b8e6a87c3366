"""Gradients that never grow beyond a bound."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.grad_clipping.clipping import GradientClipping, GradientClippingConfig

__all__ = ["GradientClipping", "GradientClippingConfig"]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
