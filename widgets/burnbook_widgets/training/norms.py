"""How large weights and gradients are, layer by layer.

Measured on the thread that trains, only while somebody looks: at most every ten steps,
and so seldom that it takes no more than a hundredth of the time.
"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Any

import numpy as np

from burnbook.core.dtypes import Float

EVERY = 10  # steps between two looks, at least
SHARE = 0.01  # of the time, at most
LAYERS = 40  # that are shown
PAST = 60  # looks that are remembered


class Norms:
    """The Euclidean norms of a model's layers: ‖w‖ and ‖∂loss/∂w‖, now and before.

    A layer is what holds parameters directly: "conv1" has a weight and a bias.
    """

    def __init__(self, every: int = EVERY, share: float = SHARE):
        self.every, self.share = every, share
        self.layers: list[str] = []
        self.count = 0  # looks so far
        self.seconds = 0.0  # spent on them
        self._steps = every  # the first step is looked at
        self._next = 0.0
        self._now: dict[str, tuple[float, float]] = {}
        self._past: dict[str, deque[float]] = {}

    def look(self, model: Any, grads: Any) -> bool:
        """Measure, if it is time to; True when there is something new."""
        self._steps += 1
        if self._steps < self.every:
            return False
        began = time.perf_counter()
        if began < self._next:
            return False
        self._now = norms_of(model, grads)
        if list(self._now) != self.layers:
            self.layers = list(self._now)
            self._past = {name: deque(maxlen=PAST) for name in self.layers}
        for name, (_, grad) in self._now.items():
            self._past[name].append(grad)
        ended = time.perf_counter()
        self._steps = 0
        self.count += 1
        self.seconds += ended - began
        self._next = ended + (ended - began) / self.share
        return True

    def rows(self) -> list[dict[str, Any]]:
        """One dict per layer: "layer", "weights", "gradients"."""
        return [
            {"layer": name, "weights": weight, "gradients": grad}
            for name, (weight, grad) in self._now.items()
        ]

    def pack(self) -> tuple[dict[str, Any], bytes]:
        """What the page gets: names, and for each layer both norms and the past."""
        shown = self.layers[:LAYERS]
        width = 2 + max((len(self._past[name]) for name in shown), default=0)
        table = np.full((len(shown), width), np.nan, dtype="<f4")
        for row, name in zip(table, shown, strict=True):
            row[:2] = self._now[name]
            row[2 : 2 + len(self._past[name])] = self._past[name]
        more = len(self.layers) - len(shown)
        return {
            "open": True,
            "layers": [name or "(itself)" for name in shown],
            "width": width,
            "caption": f"Norms per layer, at most every {self.every} steps",
            "more": f"and {more} layers more" if more else "",
            "turn": self.count,
        }, table.tobytes()


def norms_of(model: Any, grads: Any) -> dict[str, tuple[float, float]]:
    """{layer: (norm of its weights, norm of its gradients)}; 0 without gradients."""
    squares: dict[str, list[float]] = {}
    for path, param in model.named_params():
        if param.kind is not Float or not param.is_initialized:
            continue
        sums = squares.setdefault(path.rpartition(".")[0], [0.0, 0.0])
        sums[0] += square(param.val())
        grad = grads.get(param.id)
        if grad is not None:
            sums[1] += square(grad)
    return {name: (math.sqrt(w), math.sqrt(g)) for name, (w, g) in squares.items()}


def square(tensor: Any) -> float:
    """The sum of the squares of all elements: Σ xᵢ².

    Why: the product of a float16 with itself overflows beyond 256; a float32 is safe.
    """
    flat = np.asarray(tensor).reshape(-1)
    if flat.dtype.itemsize < 4:
        flat = flat.astype(np.float32)
    return float(np.dot(flat, flat))
