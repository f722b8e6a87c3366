"""Numbers kept in 8, 4 or 2 bits: schemes, calibration, whole modules.

    quantizer = Quantizer(MinMaxCalibration(), QuantizationScheme.PerTensorSymmetric())
    small = model.valid().quantize_weights(quantizer)
    model = small.map(Dequantize())

A calibration looks at a tensor and says which numbers it holds; a scheme turns this
range into a scale, and an offset or none; with them `Tensor.quantize` finds the codes.
Computing is done with numbers: a quantized tensor turns into them whenever it is used.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from burnbook.core.dtypes import Bool
from burnbook.core.errors import ConfigError
from burnbook.core.other_names import module_answers
from burnbook.tensor.qfloat import (
    PerTensorAffineInt8 as PerTensorAffineInt8,
    PerTensorSymmetricInt8 as PerTensorSymmetricInt8,
    QFloat as QFloat,
    QuantizationStrategy as QuantizationStrategy,
    SchemeStrategy as SchemeStrategy,
)
from burnbook.tensor.quantization_scheme import (
    CalibrationRange as CalibrationRange,
    QuantizationParameters as QuantizationParameters,
    QuantizationScheme as QuantizationScheme,
    QuantizationType as QuantizationType,
    QuantMode as QuantMode,
    QuantScheme as QuantScheme,
    QuantStore as QuantStore,
    QuantValue as QuantValue,
    ScaleDtype as ScaleDtype,
    Scheme as Scheme,
)
from burnbook.tensor.quantized import QuantizedTensor as QuantizedTensor
from burnbook.tensor.quantizing import cut_off, min_max, over_blocks
from burnbook.tensor.tensor import Tensor

WHOLE = QuantizationScheme.PerTensorSymmetric()  # one range for the whole tensor


class Calibration:
    """How the range of a tensor is found: MinMax or AbsMean."""

    __slots__ = ()

    MinMax: ClassVar["MinMaxCalibration"]
    AbsMean: ClassVar["AbsMeanCalibration"]

    def compute_range(self, tensor: Tensor, scheme: Scheme = WHOLE) -> CalibrationRange:
        """The range of a tensor, or of each block where the scheme has blocks."""
        raise TypeError(f"{type(self).__name__} must define how the range is found")


@dataclass(frozen=True)
class MinMaxCalibration(Calibration):
    """From the smallest to the largest number: nothing is cut off.

    Example:
        >>> found = MinMaxCalibration().compute_range(Tensor.from_data([-1.8, 0.5]))
        >>> found.min.into_scalar() < -1.7, found.max.into_scalar()
        (True, 0.5)
    """

    def compute_range(self, tensor: Tensor, scheme: Scheme = WHOLE) -> CalibrationRange:
        """The smallest and the largest number."""
        return min_max(tensor, scheme)


@dataclass(frozen=True)
class AbsMeanCalibration(Calibration):
    """From −γ to γ, where γ is the mean size: out = Σ |xᵢ| / n.

    Why: with codes of −1, 0 and 1 (Q2S) this is how BitNet b1.58 rounds its weights
    (Ma et al., 2024); what is larger than γ is cut off.
    """

    def compute_range(self, tensor: Tensor, scheme: Scheme = WHOLE) -> CalibrationRange:
        """The mean size and its opposite."""
        if scheme.has_global:
            what = "a mean size does not split into two levels of scales"
            cure = "a scheme with per_block or per_tensor alone"
            raise ConfigError("AbsMean", what, [("scheme", repr(scheme))], cure)
        size = tensor.dequantize().abs()
        if scheme.block(tensor.dims()) is None:
            mean = size.mean()
        else:
            mean = over_blocks(size, scheme, lambda t, dim: t.mean_dim(dim))
        return CalibrationRange(-mean, mean)


Calibration.MinMax = MinMaxCalibration()
Calibration.AbsMean = AbsMeanCalibration()


def compute_range(
    scheme: Scheme, tensor: Tensor, calibration: Calibration
) -> CalibrationRange:
    """The range of a tensor; newer Burn's way to say it."""
    return calibration.compute_range(tensor, scheme)


def compute_q_params(scheme: Scheme, range: CalibrationRange) -> QuantizationParameters:
    """The scale and the offset for a range; newer Burn's way to say it."""
    return scheme.compute_q_params(range)


def fake_quantize(
    x: Tensor, scheme: Scheme, qparams: QuantizationParameters | None = None
) -> Tensor:
    """What x would be after quantizing; the gradient goes straight through.

    Example:
        >>> from burnbook.backend.autodiff import Autodiff
        >>> from burnbook.backend import Numpy
        >>> x = Tensor.from_data([0.11, 0.52], Autodiff(Numpy())).require_grad()
        >>> params = QuantizationParameters(0.5)
        >>> y = fake_quantize(x, QuantizationScheme.PerTensorSymmetric(), params)
        >>> y.into_data().to_list(), x.grad(y.backward()).into_data().to_list()
        ([0.0, 0.5], [1.0, 1.0])

    Why: rounding is flat, so its own gradient is 0 and nothing would be learned; what
    is cut off at an end of the range has none all the same (Jacob et al., 2018).
    """
    plain = x.set_require_grad(False)
    if qparams is None:
        qparams = scheme.compute_q_params(min_max(plain, scheme))
    codes: Any = plain.quantize(scheme, qparams)
    cut = Tensor(
        cut_off(plain.value, codes.strategy, x.backend), Bool, x.backend, x.rank
    )
    return x.mask_where(cut, plain) + (codes.dequantize() - plain)


__all__ = [
    "AbsMeanCalibration",
    "Calibration",
    "CalibrationRange",
    "MinMaxCalibration",
    "PerTensorAffineInt8",
    "PerTensorSymmetricInt8",
    "QFloat",
    "QuantMode",
    "QuantScheme",
    "QuantStore",
    "QuantValue",
    "QuantizationParameters",
    "QuantizationScheme",
    "QuantizationStrategy",
    "QuantizationType",
    "QuantizedTensor",
    "ScaleDtype",
    "Scheme",
    "SchemeStrategy",
    "compute_q_params",
    "compute_range",
    "fake_quantize",
]
if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
