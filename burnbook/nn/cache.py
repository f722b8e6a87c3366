"""TensorCache: what was computed for the steps before.

A model that writes a text step by step sees the whole text so far in every step. What
it computed for the old steps has not changed; the cache keeps it, and only the newest
step is computed.
"""

from collections.abc import Callable

from burnbook.core.errors import ShapeError
from burnbook.tensor import Tensor

Compute = Callable[[Tensor], Tensor]


class TensorCache:
    """Holds one tensor, or nothing yet.

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
        """A cache with nothing in it."""
        return cls()

    def forward_autoregressive(
        self, tensor: Tensor, dim_cat: int, func: Compute
    ) -> Tensor:
        """`func` of a sequence, computed for its last step only if the rest is known.

        tensor is the whole sequence so far, [batch, steps, d], one step longer than the
        time before. dim_cat: the dim of the result that the steps run along.
        """
        if self.value is None:
            self.value = func(tensor)
        else:
            steps = tensor.dims()[1]
            known = self.value.dims()[dim_cat]
            if steps != known + 1:
                raise ShapeError(
                    "TensorCache",
                    f"the sequence has {steps} steps, the cache knows {known}",
                    cure="the whole sequence so far, one step longer each time",
                )
            self.append(func(tensor.narrow(1, known, 1)), dim_cat)
        return self.value

    def forward_full(self, tensor: Tensor, func: Compute) -> Tensor:
        """`func` of the first tensor that was ever given: for what never changes."""
        if self.value is None:
            self.value = func(tensor)
        return self.value

    def append(self, step: Tensor, dim: int) -> Tensor:
        """Add the result of one more step; gives all of them."""
        old = self.value
        self.value = step if old is None else Tensor.cat([old, step], dim)
        return self.value

    def __repr__(self) -> str:
        held = "" if self.value is None else str(list(self.value.dims()))
        return f"TensorCache({held})"
