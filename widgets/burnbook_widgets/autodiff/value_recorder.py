"""Run a computation with every value of every step kept.

The tape keeps what gradient rules ask for, so of `x + 1` neither the 1 nor the sum. To
show them the computation is run once while its devices write each value down; nobody
else pays for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from burnbook.backend import Autodiff
from burnbook.backend.autodiff import Graph, GraphNode
from burnbook.core.errors import ConfigError
from burnbook.tensor import Tensor

RecordedValues = dict[GraphNode, tuple[np.ndarray, tuple[np.ndarray | None, ...]]]


class ValueRecorder:
    """The values of all steps that ran: of each node its result and its inputs."""

    def __init__(self) -> None:
        self._steps: list[tuple[Any, Any, tuple[Any, ...], Autodiff]] = []

    @contextmanager
    def on(self, device: Autodiff) -> Any:
        """Write down what runs on a device, until the end of the block."""
        plain, tracked = device.run, device.tracked
        own = "run" in vars(device)

        def run(op: Any, values: tuple[Any, ...], attrs: Any) -> Any:
            out = plain(op, values, attrs)
            first = out[0] if isinstance(out, tuple) else out
            if type(first) is tracked:
                given = tuple(v.value if type(v) is tracked else v for v in values)
                self._steps.append((first.node, first.value, given, device))
            return out

        device.run = run
        try:
            yield self
        finally:
            if own:
                device.run = plain
            else:
                del device.run

    def compute(self, make: Callable[[], Any], tensors: Iterable[Tensor]) -> Tensor:
        """The tensor that a function makes, run on the devices of these tensors."""
        devices = {id(t.backend): t.backend for t in tensors}
        with ExitStack() as stack:
            for device in devices.values():
                if isinstance(device, Autodiff):
                    stack.enter_context(self.on(device))
            made = make()
        if not isinstance(made, Tensor):
            what = f"the function gives {type(made).__name__}, not a tensor"
            raise ConfigError("GraphView", what, cure="lambda: loss")
        return made

    def of(self, graph: Graph) -> RecordedValues:
        """What was written down, by the steps of a graph."""
        found: RecordedValues = {}
        for node, value, given, device in self._steps:
            array = _array(value, device)
            if array is not None:
                inputs = tuple(_array(one, device) for one in given)
                found[GraphNode(graph, node)] = (array, inputs)
        return found


def _array(value: Any, device: Autodiff) -> np.ndarray | None:
    if isinstance(value, int | float | np.generic):
        return np.asarray(value)
    try:
        return np.asarray(device.inner.to_numpy(value))
    except (AttributeError, TypeError, ValueError):
        return None
