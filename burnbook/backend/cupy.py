"""CuPy on an NVIDIA GPU, with its own short list of kernels.

CuPy is NumPy's array module on a GPU, so every op runs there as it is written; only
where whole passes over the memory can be saved does a kernel take its place (see
the folder cuda/). CuPy is imported when the first `Cupy` is made, not before.
"""

import importlib
from functools import cached_property
from typing import Any

import numpy as np

from burnbook.backend.base import AnyOp, ArraySpace, Attrs, Backend, Value, Values
from burnbook.backend.cuda import draw_words, kernels
from burnbook.backend.cuda.graphs import Recorder
from burnbook.core.errors import BackendError


class Cupy(Backend):
    """Tensors as CuPy arrays on GPU number `index`: `Cupy(0)` is the first one.

    Why: `pip install burnbook[cuda12]` brings CuPy; without it a BackendError says so.
    """

    name = "cupy"
    has_graphs = True

    def __init__(
        self,
        index: int = 0,
        float: str = "f32",  # noqa: A002 - public name
        int: str = "i64",  # noqa: A002 - public name
    ):
        module = find_cupy(index)
        super().__init__(module, float, int)
        self.index = index
        self.device_name = f"Cuda({index})"
        self.xp = GpuSpace(module, self)
        self.kernels = kernels(module)
        self._device = module.cuda.Device(index)

    def run(self, op: AnyOp, values: Values, attrs: Attrs) -> Value:
        """Run one op on this GPU."""
        with self._device:
            return super().run(op, values, attrs)

    def sync(self) -> None:
        """Wait until this GPU has done all that this thread asked for."""
        with self._device:
            self.xp.module.cuda.get_current_stream().synchronize()

    def from_numpy(self, array: np.ndarray) -> Value:
        """Copy a NumPy array to this GPU."""
        with self._device:
            return self.xp.module.array(array, order="C")

    def to_numpy(self, value: Value) -> np.ndarray:
        """Copy a value back to the CPU."""
        return self.xp.module.asnumpy(value)

    def read(self, values: Values) -> list[np.ndarray]:
        """Copy values back to the CPU: all are asked for, then awaited once."""
        with self._device:
            stream = self.xp.module.cuda.get_current_stream()
            found = [value.get(stream=stream, blocking=False) for value in values]
            stream.synchronize()
        return found

    def on_device(self) -> Any:
        """Where arrays are made while it is entered: on this GPU."""
        return self._device

    @cached_property
    def recorder(self) -> Recorder:
        """What records the ops of this GPU as CUDA graphs."""
        return Recorder(self.xp.module, self)

    def __repr__(self) -> str:
        shown = [str(self.index)]
        if self.float != "f32":
            shown.append(f"float={self.float!r}")
        if self.int != "i64":
            shown.append(f"int={self.int!r}")
        return f"Cupy({', '.join(shown)})"


class GpuSpace(ArraySpace):
    """CuPy as ops see it, with Philox as one kernel for the random ops."""

    def philox(self, count: int, key: tuple[int, int]) -> Any:
        """The first 64-bit words of a key's sequence, drawn on the GPU."""
        return draw_words(self.module, count, key)


def find_cupy(index: int) -> Any:
    """CuPy itself, once GPU number `index` is known to be there."""
    where = f"Cupy({index})"
    cure = "pip install burnbook[cuda12], on a machine with an NVIDIA GPU"
    try:
        module = importlib.import_module("cupy")
    except ImportError as error:
        what, facts = "CuPy is not installed", [("import", str(error).splitlines()[0])]
        raise BackendError(where, what, facts, cure) from None
    try:
        found = module.cuda.runtime.getDeviceCount()
    except Exception as error:
        what, facts = "no GPU can be used", [("driver", str(error).splitlines()[0])]
        raise BackendError(where, what, facts, cure) from None
    if not 0 <= index < found:
        what = f"there is no GPU number {index}"
        raise BackendError(where, what, [("GPUs", str(found))], "Cupy(0)")
    return module
