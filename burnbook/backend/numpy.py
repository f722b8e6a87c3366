"""Building blocks · Backend. NumPy on the CPU, with a few compiled kernels."""

import numpy

from burnbook.backend.base import Backend, Value
from burnbook.backend.compiled import kernels_for


class Numpy(Backend):
    """Tensors as NumPy arrays on the CPU.

    float: "f32", "f64" or "f16". int: "i64", "i32" … compiled: None uses compiled
    kernels when they are ready, True compiles them first, False never uses them.

    Example:
        >>> Numpy() is Numpy("f32")
        True
    """

    name = "numpy"

    def __init__(
        self,
        float: str = "f32",  # noqa: A002 - public name
        int: str = "i64",  # noqa: A002 - public name
        compiled: bool | None = None,
    ):
        super().__init__(numpy, float, int)
        self.compiled = compiled
        if float == "f32":
            self.kernels = kernels_for(compiled)

    def from_numpy(self, array: numpy.ndarray) -> Value:
        return numpy.array(array, order="C")

    def to_numpy(self, value: Value) -> numpy.ndarray:
        return value

    def __repr__(self) -> str:
        shown = []
        if self.float != "f32":
            shown.append(f"float={self.float!r}")
        if self.int != "i64":
            shown.append(f"int={self.int!r}")
        if self.compiled is not None:
            shown.append(f"compiled={self.compiled}")
        return f"Numpy({', '.join(shown)})"
