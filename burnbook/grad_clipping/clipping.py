"""Clipping: no gradient larger than this.

One extreme batch can throw a model far away. Clipping bounds the gradient of each
parameter on its own: every element (Value), or its length (Norm).
"""

from burnbook.config import ConfigEnum, holding
from burnbook.core.errors import ConfigError
from burnbook.ops.lbfgs import length
from burnbook.tensor import Tensor


class GradientClippingConfig(ConfigEnum):
    """How gradients are bounded: by `Value(threshold)` or by `Norm(threshold)`.

    Example:
        >>> GradientClippingConfig.Norm(1.0)
        GradientClippingConfig.Norm(1.0)
    """

    Value = holding(float)
    Norm = holding(float)

    def validate(self) -> None:
        """Refuse a threshold that would stop or turn every gradient."""
        if not self.values[0] > 0:
            raise ConfigError(
                f"GradientClippingConfig.{self.variant}",
                f"the threshold is {self.values[0]}, not above 0",
            )

    def init(self) -> "GradientClipping":
        """The clipping itself."""
        return GradientClipping(self)


class GradientClipping:
    """Bounds the gradient g of one parameter: |gᵢ| ≤ t, or ‖g‖ ≤ t.

    Example:
        >>> clip = GradientClippingConfig.Norm(1.0).init()
        >>> grad = clip.clip_gradient(Tensor.from_data([3.0, 4.0]))
        >>> [round(x, 4) for x in grad.to_data().to_list()]
        [0.6, 0.8]
    """

    def __init__(self, config: GradientClippingConfig):
        self.config = config

    @classmethod
    def by_value(cls, threshold: float) -> "GradientClipping":
        """Bound every element."""
        return GradientClippingConfig.Value(threshold).init()

    @classmethod
    def by_norm(cls, threshold: float) -> "GradientClipping":
        """Bound the length √Σg²."""
        return GradientClippingConfig.Norm(threshold).init()

    def clip_gradient(self, grad: Tensor) -> Tensor:
        """The gradient, bounded."""
        threshold = self.config.values[0]
        if self.config.variant == "Value":
            return grad.clamp(min=-threshold, max=threshold)
        device = grad.backend
        norm = float(device.to_numpy(device.run(length, (grad.value,), {}))[0])
        return grad * (threshold / norm) if norm > threshold else grad

    def __repr__(self) -> str:
        return f"GradientClipping({self.config!r})"
