"""The names that chapters import all at once, with a star."""

from typing import TYPE_CHECKING

from burnbook import nn
from burnbook.backend import Backend, Cupy, Device, Numpy
from burnbook.backend.autodiff import Autodiff
from burnbook.config import Config
from burnbook.core.other_names import module_answers
from burnbook.module import Module, Param
from burnbook.tensor import (
    Bool,
    Distribution,
    ElementConversion,
    Float,
    Int,
    Shape,
    Tensor,
    TensorData,
)

__all__ = [
    "Autodiff",
    "Backend",
    "Bool",
    "Config",
    "Cupy",
    "Device",
    "Distribution",
    "ElementConversion",
    "Float",
    "Int",
    "Module",
    "Numpy",
    "Param",
    "Shape",
    "Tensor",
    "TensorData",
    "nn",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
