"""Building blocks · Tensor. Tensors, their data and shapes, and the random ones."""

from burnbook.kinds import Bool, Float, Int
from burnbook.methods import apply, apply_with_extras
from burnbook.tensor.data import TensorData
from burnbook.tensor.distribution import Distribution
from burnbook.tensor.element import ElementConversion
from burnbook.tensor.quantized import QuantizedTensor
from burnbook.tensor.shape import Shape
from burnbook.tensor.tensor import Tensor

__all__ = [
    "Bool",
    "Distribution",
    "ElementConversion",
    "Float",
    "Int",
    "QuantizedTensor",
    "Shape",
    "Tensor",
    "TensorData",
    "apply",
    "apply_with_extras",
]
