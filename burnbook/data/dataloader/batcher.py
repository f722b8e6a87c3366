"""A batcher turns a list of items into one batch.

It is where items become tensors. The book writes `batch(items)` with a batcher that
holds its device; later versions write `batch(items, device)`. Both are accepted here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from burnbook.core.errors import ConfigError

Item = TypeVar("Item")
Batch = TypeVar("Batch")


class Batcher(Generic[Item, Batch]):
    """Turn a list of items into one batch.

    Example:
        >>> class Mean(Batcher):
        ...     def batch(self, items):
        ...         return sum(items) / len(items)
        >>> Mean().batch([1, 2, 6])
        3.0
    """

    def batch(self, items: list[Item], device: Any = None) -> Batch:
        """Return the batch of these items, on the device when one is given."""
        name = type(self).__name__
        raise ConfigError(
            name,
            "the batcher does not define batch(items)",
            cure=f"define batch(items, device) in {name}",
        )


def bound(batcher: Any, device: Any) -> Callable[[list[Any]], Any]:
    """Return `items -> batch`, passing the device to batchers that want one.

    Why: `batch(items, device)` without a default gets the default backend when the
    loader was given no device; `batch(items, device=None)` is left to its default.
    """
    if isinstance(batcher, type) and hasattr(batcher, "batch"):
        what = f"{batcher.__name__} is the class of a batcher"
        raise ConfigError("data loader", what, cure=f"{batcher.__name__}()")
    method = getattr(batcher, "batch", batcher)
    if not callable(method):
        what, cure = f"{type(batcher).__name__} has no method batch(items)", None
        if hasattr(batcher, "get") and hasattr(batcher, "__len__"):
            what = f"{type(batcher).__name__} is a dataset, and this a batcher's place"
            cure = "DataLoaderBuilder().batch_size(32).build(dataset)"
        raise ConfigError("data loader", what, cure=cure or "a subclass of Batcher")
    second = _second_parameter(method)
    if second is None or (device is None and second.default is not second.empty):
        return method
    if device is None and second.kind is second.VAR_POSITIONAL:
        return method
    if device is None:
        from burnbook.backend import Numpy

        device = Numpy()
    return lambda items: method(items, device)


def _second_parameter(method: Callable[..., Any]) -> inspect.Parameter | None:
    try:
        parameters = list(inspect.signature(method).parameters.values())
    except (TypeError, ValueError):  # some built-in functions say nothing
        return None
    positional = [p for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD]
    if len(positional) >= 2:
        return positional[1]
    rest = [p for p in parameters if p.kind is p.VAR_POSITIONAL]
    return rest[0] if rest else None
