"""Tensors, their data and shapes, and the random ones."""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from burnbook.core.dtypes import Bool, Float, Int
from burnbook.core.other_names import module_answers, unknown
from burnbook.tensor.backend import Device
from burnbook.tensor.closeness import ClosenessReport, check_closeness
from burnbook.tensor.custom_gradient import CustomGradient, custom_gradient
from burnbook.tensor.data import TensorData
from burnbook.tensor.display import PrintOptions, set_print_options
from burnbook.tensor.distribution import Distribution
from burnbook.tensor.element import ElementConversion
from burnbook.tensor.gradient_check import (
    GradientReport,
    GradientRow,
    check_gradient,
)
from burnbook.tensor.methods import apply, apply_with_extras
from burnbook.tensor.quantized import QuantizedTensor
from burnbook.tensor.shape import Shape
from burnbook.tensor.tensor import Tensor
from burnbook.tensor.transaction import Transaction

__all__ = [
    "Bool",
    "ClosenessReport",
    "CustomGradient",
    "Device",
    "Distribution",
    "ElementConversion",
    "Float",
    "GradientReport",
    "GradientRow",
    "Int",
    "PrintOptions",
    "QuantizedTensor",
    "Shape",
    "Tensor",
    "TensorData",
    "Transaction",
    "apply",
    "apply_with_extras",
    "check_closeness",
    "check_gradient",
    "custom_gradient",
    "set_print_options",
]


class _Package(ModuleType):
    """This package; called like PyTorch's function `tensor` it says what makes one."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise unknown("burnbook", "burnbook.tensor", "tensor")


sys.modules[__name__].__class__ = _Package

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
