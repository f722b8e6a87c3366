"""Building blocks · Tensor. Tensors, their data and shapes, and the random ones."""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from burnbook.kinds import Bool, Float, Int
from burnbook.methods import apply, apply_with_extras
from burnbook.other_names import module_answers, unknown
from burnbook.tensor.data import TensorData
from burnbook.tensor.distribution import Distribution
from burnbook.tensor.element import ElementConversion
from burnbook.tensor.quantized import QuantizedTensor
from burnbook.tensor.shape import Shape
from burnbook.tensor.tensor import Tensor

__all__ = [
    "Bool",
    "ClosenessReport",
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
    "check_closeness",
]


class _Package(ModuleType):
    """This package; called like PyTorch's function `tensor` it says what makes one."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise unknown("burnbook", "burnbook.tensor", "tensor")


sys.modules[__name__].__class__ = _Package

if TYPE_CHECKING:
    from burnbook.closeness import ClosenessReport, check_closeness
else:
    _answer = module_answers(__name__)

    def __getattr__(name: str) -> Any:
        """What compares tensors is made of them, so it is imported when asked for."""
        if name not in ("ClosenessReport", "check_closeness"):
            return _answer(name)
        from burnbook import closeness

        globals()[name] = found = getattr(closeness, name)
        return found
