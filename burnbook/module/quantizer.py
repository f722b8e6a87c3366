"""Whole modules: every Float parameter as codes, and as numbers again."""

from dataclasses import dataclass
from typing import Any

from burnbook.module.param import ParamId
from burnbook.module.visitor import ModuleMapper
from burnbook.tensor import Tensor
from burnbook.tensor.quantization import Calibration
from burnbook.tensor.quantization_scheme import Scheme


@dataclass
class Quantizer(ModuleMapper):
    """Quantizes every Float parameter of a module, or those of a group.

    Example:
        >>> from burnbook.nn import LinearConfig
        >>> from burnbook.tensor.quantization import MinMaxCalibration
        >>> from burnbook.tensor.quantization import QuantizationScheme
        >>> from burnbook.backend import Numpy
        >>> layer = LinearConfig(2, 3).init(Numpy())
        >>> scheme = QuantizationScheme.PerTensorSymmetric()
        >>> layer = layer.quantize_weights(Quantizer(MinMaxCalibration(), scheme))
        >>> layer.weight.val().scheme
        PerTensorSymmetric(QInt8)
        >>> layer.forward(Tensor.ones([1, 2])).shape
        (1, 3)

    group: an object whose `matches(id, path)` says which parameters are meant.
    """

    calibration: Calibration
    scheme: Scheme
    group: Any = None

    def set_param_group(self, group: Any) -> None:
        """Quantize the parameters of this group only."""
        self.group = group

    def map_float(self, id: ParamId, tensor: Tensor) -> Tensor:  # noqa: A002
        """The codes of a parameter; of one that is quantized, anew."""
        numbers = tensor.dequantize()
        found = self.calibration.compute_range(numbers, self.scheme)
        return numbers.quantize(self.scheme, self.scheme.compute_q_params(found))


class Dequantize(ModuleMapper):
    """Turns the codes of a module into numbers: `model.map(Dequantize())`."""

    def map_float(self, id: ParamId, tensor: Tensor) -> Tensor:  # noqa: A002
        """The numbers of a parameter."""
        return tensor.dequantize()
