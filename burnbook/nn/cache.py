"""TensorCache: results of earlier steps of an autoregressive model.

A model that generates a sequence token by token gets the whole sequence so far in every
step. The results for earlier steps do not change; the cache keeps them, and only the
newest step is computed.
"""

from collections.abc import Callable

from burnbook.core.errors import ShapeError
from burnbook.tensor import Tensor

Compute = Callable[[Tensor], Tensor]


class TensorCache:
    """A tensor that grows by one step with each call, or nothing yet.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> cache = TensorCache.empty()
        >>> text = Tensor.ones([1, 3, 2], Numpy())
        >>> for steps in (1, 2, 3):
        ...     so_far = text.slice([None, (0, steps)])
        ...     out = cache.forward_autoregressive(so_far, 1, lambda t: t * 2)
        >>> out.shape, cache
        ((1, 3, 2), TensorCache([1, 3, 2]))
    """

    __slots__ = ("value",)

    def __init__(self, value: Tensor | None = None):
        self.value = value

    @classmethod
    def empty(cls) -> "TensorCache":
        """An empty cache."""
        return cls()

    def forward_autoregressive(
        self, tensor: Tensor, dim_cat: int, func: Compute
    ) -> Tensor:
        """`func` of a sequence, computed for the last step only if the rest is cached.

        tensor: the whole sequence so far, [batch, steps, d], one step longer than in
            the last call.
        dim_cat: the dim of the result along which the steps lie.

        Raises:
            ShapeError: the sequence did not grow by exactly one step.
        """
        if self.value is None:
            self.value = func(tensor)
        else:
            steps = tensor.dims()[1]
            known = self.value.dims()[dim_cat]
            if steps != known + 1:
                raise ShapeError(
                    "TensorCache",
                    f"the sequence has {steps} steps, the cache holds {known}",
                    cure="the whole sequence so far, one step longer each time",
                )
            self.append(func(tensor.narrow(1, known, 1)), dim_cat)
        return self.value

    def forward_full(self, tensor: Tensor, func: Compute) -> Tensor:
        """`func` of the tensor of the first call, for inputs that do not change."""
        if self.value is None:
            self.value = func(tensor)
        return self.value

    def append(self, step: Tensor, dim: int) -> Tensor:
        """Append the result of one more step along `dim`; returns all results."""
        old = self.value
        self.value = step if old is None else Tensor.cat([old, step], dim)
        return self.value

    def __repr__(self) -> str:
        held = "" if self.value is None else str(list(self.value.dims()))
        return f"TensorCache({held})"
