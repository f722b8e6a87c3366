"""Building blocks · Backend. Decorators of a backend: short, as `run` is one verb."""

from collections import Counter
from typing import Any

from burnbook.backend.base import Backend, Decorator, Value


class Counting(Decorator):
    """Count how often each op runs; `Autodiff(Counting(B))` counts gradients as well.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> Counting(Numpy()).counts
        Counter()
    """

    interned = False

    def __init__(self, inner: Backend):
        super().__init__(inner)
        self.counts: Counter[str] = Counter()

    def run(self, op: Any, values: tuple[Value, ...], attrs: dict[str, Any]) -> Value:
        self.counts[op.name] += 1
        return self.inner.run(op, values, attrs)
