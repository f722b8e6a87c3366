"""Clipping: no gradient larger than this.

One extreme batch can throw a model far away. Clipping bounds the gradient of each
parameter on its own, every element (Value) or its length (Norm); or the length of all
gradients together (GlobalNorm), which keeps the direction of the step.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np

from burnbook.config import ConfigEnum, holding
from burnbook.core.arrays import has_no_elements
from burnbook.core.dropped import result_matters
from burnbook.core.errors import ConfigError, GraphError
from burnbook.core.roles import GRADIENTS, wrong_form
from burnbook.ops.lbfgs import clip_scale, length
from burnbook.tensor import Tensor, apply

SMALL = 1e-15  # shorter gradients may have lost squares that are 0
TINY = 1e-6  # added to the global norm before dividing, as PyTorch does


class GradientsById(Protocol):
    """Gradients of many parameters, as GradientsParams holds them."""

    def items(self) -> Iterator[tuple[Any, Tensor]]:
        """Ids and gradients."""
        ...


G = TypeVar("G", bound=GradientsById)


class GradientClippingConfig(ConfigEnum):
    """How gradients are bounded: `Value(t)`, `Norm(t)` or `GlobalNorm(t)`.

    `Value` bounds every element, |gᵢ| ≤ t; `Norm` the length of each parameter's
    gradient, ‖g‖ ≤ t; `GlobalNorm` the length of all gradients of a step taken as one
    vector, √Σ‖g‖² ≤ t, as PyTorch's `clip_grad_norm_`. The threshold is above 0.

    Example:
        >>> GradientClippingConfig.GlobalNorm(1.0)
        GradientClippingConfig.GlobalNorm(1.0)

    Raises:
        ConfigError: the threshold is not above 0.
    """

    Value = holding(float)
    Norm = holding(float)
    GlobalNorm = holding(float)

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
    """Bounds the gradient g of one parameter, |gᵢ| ≤ t or ‖g‖ ≤ t, or all at once.

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
        """Bound the length √Σg² of each parameter's gradient."""
        return GradientClippingConfig.Norm(threshold).init()

    @classmethod
    def by_global_norm(cls, threshold: float) -> "GradientClipping":
        """Bound the length of all gradients together."""
        return GradientClippingConfig.GlobalNorm(threshold).init()

    @property
    def is_global(self) -> bool:
        """Whether it needs the gradients of all parameters at once."""
        return self.config.variant == "GlobalNorm"

    def clip_gradient(self, grad: Tensor) -> Tensor:
        """The gradient of one parameter, bounded.

        Raises:
            ConfigError: this clips by the global norm, of which one gradient is only a
                part.
        """
        threshold = self.config.values[0]
        if self.config.variant == "Value":
            return grad.clamp(min=-threshold, max=threshold)
        if self.is_global:
            raise ConfigError(
                "clip_gradient",
                "the global norm is that of all gradients, and this is one",
                cure="clip_gradients(grads) with GradientsParams, or by_norm(…)",
            )
        if has_no_elements(grad.value):
            return scaled(grad, _scale([grad], threshold, 0.0))
        norm = global_norm([grad])
        return scaled(grad, threshold / norm) if norm > threshold else grad

    @result_matters("grads = clipping.clip_gradients(grads)", kept_in=1)
    def clip_gradients(self, grads: G) -> G:
        """The GradientsParams of a module, bounded; those given stay as they are.

        An optimizer with this clipping does it by itself, in each step.

        Example:
            >>> from burnbook.module import ParamId
            >>> from burnbook.optim import GradientsParams
            >>> grads = GradientsParams()
            >>> grads.register(ParamId(1), Tensor.from_data([3.0, 0.0]))
            >>> grads.register(ParamId(2), Tensor.from_data([0.0, 4.0]))
            >>> clipped = GradientClipping.by_global_norm(1.0).clip_gradients(grads)
            >>> clipped, round(clipped.norm(), 3)
            (GradientsParams(2 gradients), 1.0)
        """
        if not hasattr(grads, "items"):
            raise not_gradients("clip_gradients", 0, grads)
        found = dict(grads.items())
        spent = getattr(grads, "spent", {})
        if spent and not found:
            by = next(iter(spent.values())).where
            what = f"{by} has used the gradients up: there is nothing to clip"
            cure = f"grads = clipping.clip_gradients(grads), before {by}"
            raise GraphError("clip_gradients", what, cure=cure)
        made: Any = type(grads)
        if not self.is_global:
            return made(
                {name: self.clip_gradient(grad) for name, grad in found.items()}
            )
        scale = self.scale_of(found.values())
        if scale is None:
            return made(found)
        return made({name: scaled(grad, scale) for name, grad in found.items()})

    def scale_of(self, grads: Iterable[Tensor]) -> float | Tensor | None:
        """What all gradients are multiplied by; None where they stay as they are.

        min(1, t / (n + 10⁻⁶)) for the norm n of them all: PyTorch's formula. It is a
        tensor [1] where a step is captured, which has another norm in each run.
        """
        grads = list(grads)
        if any(has_no_elements(grad.value) for grad in grads):
            return _scale(grads, self.config.values[0], TINY)
        scale = self.config.values[0] / (global_norm(grads) + TINY)
        return None if scale >= 1.0 else scale

    def __repr__(self) -> str:
        return f"GradientClipping({self.config!r})"


def not_gradients(
    where: str, place: int, grads: object, model: int | None = None
) -> GraphError:
    """The error for what is no GradientsParams; place, model: among the arguments."""
    found = wrong_form(where, place, grads, GRADIENTS, model)
    what = f"{type(grads).__name__} is not GradientsParams"
    cure = "GradientsParams.from_grads(loss.backward(), model)"
    what, cure = found or (what, cure)
    return GraphError(where, what, cure=cure)


def scaled(grad: Tensor, scale: float | Tensor) -> Tensor:
    """A gradient times what `scale_of` gives."""
    if isinstance(scale, Tensor):
        scale = scale.reshape([1] * grad.rank)
    elif 0 < scale < np.finfo(grad.backend.float_dtype).tiny:
        root = math.sqrt(scale)  # the type has the number itself with few digits only
        return grad * root * root
    return grad * scale


def _scale(grads: Iterable[Tensor], threshold: float, tiny: float) -> Tensor:
    """What gradients are multiplied by, as a tensor [1]."""
    parts = [apply(length, grad) for grad in grads]
    return apply(clip_scale, *parts, threshold=threshold, tiny=tiny)


def global_norm(grads: Iterable[Tensor]) -> float:
    """The length of all gradients taken as one vector: √Σ‖g‖²; 0 without any.

    Example:
        >>> global_norm([Tensor.from_data([3.0]), Tensor.from_data([[4.0]])])
        5.0
    """
    total = 0.0
    for grad in grads:
        device = grad.backend
        found = float(device.to_numpy(device.run(length, (grad.value,), {}))[0])
        if not SMALL < found < math.inf:
            found = _length(grad)
        total = math.hypot(total, found)
    return total


def _length(grad: Tensor) -> float:
    """The length of a gradient whose squares the type does not hold."""
    largest = float(np.abs(grad.backend.to_numpy(grad.value)).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    device = grad.backend
    value = (grad / largest).value
    found = device.to_numpy(device.run(length, (value,), {}))
    return float(found[0]) * largest
