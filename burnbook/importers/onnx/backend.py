"""burnbook as an ONNX backend, for onnx.backend.test and the public scoreboard.

from burnbook.importers.onnx import Backend
Backend.prepare(model).run(arrays)
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from burnbook.backend.numpy import Numpy
from burnbook.importers.onnx.load import built, source_for
from burnbook.importers.onnx.values import lifted, lowered, settled_input

OnnxBackend: Any = object
BackendRep: Any = object
with suppress(ImportError):  # without onnx this file can be read, and models cannot
    from onnx.backend.base import Backend as OnnxBackend, BackendRep


class Representation(BackendRep):
    """A model that is ready to run."""

    def __init__(self, module: Any, device: Any):
        self.module, self.device = module, device

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Arrays in the graph's order of inputs; arrays in its order of outputs."""
        given = [lifted(settled_input(x), self.device) for x in inputs]
        found = getattr(self.module, "compute", self.module.forward)(*given)
        found = found if isinstance(found, tuple) else (found,)
        return tuple(lowered(value) for value in found)


class Backend(OnnxBackend):
    """ONNX's interface to what runs models."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> Representation:
        """A model that is ready to run."""
        return Representation(built(source_for(model), Numpy()), Numpy())

    @classmethod
    def run_model(
        cls, model: Any, inputs: Sequence[Any], device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        """A model's outputs."""
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether there is such a device."""
        return device == "CPU"
