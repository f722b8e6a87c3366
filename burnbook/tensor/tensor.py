"""The tensor: a value, its kind, its rank, its backend.

A tensor never changes. Its methods come from the declarations of the ops (`Methods`)
and from functions made of ops, by family; this file holds what remains: what a tensor
says about itself, and how it leaves for Python, NumPy and other libraries.
"""

import sys
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from burnbook.backend.base import Backend
from burnbook.core.dropped import result_matters
from burnbook.core.dtypes import dtype_name
from burnbook.core.errors import ShapeError
from burnbook.core.other_names import Listed, answers
from burnbook.tensor import display
from burnbook.tensor.contraction import Contraction
from burnbook.tensor.create import some_device
from burnbook.tensor.data import TensorData
from burnbook.tensor.facts import kind_and_shape
from burnbook.tensor.foreign_functions import ForeignFunctions
from burnbook.tensor.masks import Masks
from burnbook.tensor.precision import Precision
from burnbook.tensor.protocol import Protocol
from burnbook.tensor.quantizing import Quantizing
from burnbook.tensor.sampling import Sampling
from burnbook.tensor.shape import Shape
from burnbook.tensor.sorting import Sorting
from burnbook.tensor.spec import TensorSpec, spec_of
from burnbook.tensor.truth import truth_error
from burnbook.tensor.unpacking import names_unpacked, unpacking_error


@answers("Tensor")
class Tensor(
    Protocol,
    Masks,
    Sorting,
    Sampling,
    Contraction,
    Precision,
    Quantizing,
    ForeignFunctions,
    metaclass=Listed,
):
    """A block of numbers with a rank and a kind, on a backend.

    Example:
        >>> x = Tensor[2].from_data([[2.0, 3.0], [4.0, 5.0]])
        >>> (x + Tensor.ones_like(x)).into_data().to_list()
        [[3.0, 4.0], [5.0, 6.0]]
    """

    __slots__ = ("__weakref__",)

    def __class_getitem__(cls, item: Any) -> TensorSpec:
        return spec_of(cls, item)

    @property
    def shape(self) -> Shape:
        """The sizes, one per dim; a tuple."""
        return Shape.of(tuple(self.value.shape))

    def device(self) -> Backend:
        """The backend that this tensor lives on."""
        return self.backend

    @property
    def dtype(self) -> str:
        """The name of the element type: "f32", "i64", "bool" …"""
        return dtype_name(self.value.dtype)

    @result_matters("x = x.to_device(device)")
    def to_device(self, device: Backend) -> Self:
        """The same values on another backend, in its element type.

        Between two Autodiff backends this is a step of the graph: gradients come back.
        """
        if device is self.backend:
            return self
        device = some_device("to_device", device)
        receive = getattr(device, "receive", None)
        if receive is not None and self._tracked():
            moved = receive(self.value, self.backend)
            return type(self)(moved, self.kind, device, self.rank)
        array = self.backend.to_numpy(self.value)
        return type(self).from_data(TensorData.of(array), device, self.kind)

    def to_data(self) -> TensorData:
        """The elements outside any backend, row by row; the tensor stays as it is."""
        return TensorData(self.backend.to_numpy(self.value))

    def into_data(self) -> TensorData:
        """The elements outside any backend, row by row."""
        return self.to_data()

    def into_scalar(self) -> Any:
        """The only element, as a Python number.

        Example:
            >>> Tensor.from_data([[1.0, 2.0]]).sum().into_scalar()
            3.0
        """
        array = self.backend.to_numpy(self.value)
        if array.size != 1:
            raise ShapeError(
                "into_scalar",
                f"the tensor has {array.size} elements, not one",
                [("tensor", kind_and_shape(self))],
                "into_data().to_list() for all of them",
            )
        return array.item()

    def __bool__(self) -> bool:
        if self.shape.num_elements() != 1:
            raise truth_error(self, sys._getframe(1))  # pyright: ignore[reportPrivateUsage] - documented
        return bool(self.into_scalar())

    def __float__(self) -> float:
        return float(self.into_scalar())

    def __int__(self) -> int:
        return int(self.into_scalar())

    def __len__(self) -> int:
        return int(self.value.shape[0])

    def __iter__(self) -> Iterator[Self]:
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
        count = names_unpacked(frame)
        if count is not None and count != len(self):
            raise unpacking_error(self, count, frame)
        return (self[i] for i in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """A read-only view for NumPy, or a copy where one is needed."""
        array = self.backend.to_numpy(self.value)
        if copy or (dtype is not None and np.dtype(dtype) != array.dtype):
            return np.array(array, dtype or array.dtype)
        view = array.view()
        view.flags.writeable = False
        return view

    def __dlpack__(self, **asked: Any) -> Any:
        """Hand a copy of the values to another library, on the same device.

        Why: some consumers write to what is marked read-only, so a view is not safe.
        """
        asked.pop("copy", None)
        return self._bare().copy().__dlpack__(**asked)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._bare().__dlpack_device__()

    def _bare(self) -> Any:
        """The array itself, below every level of tracking."""
        value = self.value
        while hasattr(value, "node"):
            value = value.value
        return value

    def __reduce__(self) -> Any:
        return _restore, (
            self.to_data(),
            self.backend,
            self.kind,
            self.is_require_grad(),
        )

    def clone(self) -> Self:
        """Another name for the same values, at no cost: what Burn's `clone` gives.

        A tracked leaf stays the same leaf, so both names find one gradient.
        """
        return type(self)(self.value, self.kind, self.backend, self.rank)

    __copy__ = clone

    def __str__(self) -> str:
        return self._text(None)

    def __format__(self, spec: str) -> str:
        if not spec:
            return self._text(None)
        if spec[0] == "." and spec[1:].isdigit():
            return self._text(int(spec[1:]))
        if self.shape.num_elements() == 1:
            return format(self.into_scalar(), spec)  # f"{loss:.3f}"
        raise ShapeError(
            f"format {spec!r}",
            f"{self.shape.num_elements()} elements are not one number",
            [("tensor", kind_and_shape(self))],
            '"{x:.2}" for all of them with two decimals, or into_scalar() of one',
        )

    def __repr__(self) -> str:
        return display.tensor_line(
            self._at_hand(),
            shape=self.dims(),
            backend=repr(self.backend),
            kind=self.kind.__name__,
        )

    def _repr_html_(self) -> str:
        return display.tensor_html(
            self._at_hand(),
            shape=self.dims(),
            device=self.backend.device_name,
            backend=self.backend.name,
            kind=self.kind.__name__,
            dtype=self.dtype,
        )

    def _text(self, precision: int | None) -> str:
        array = self.backend.to_numpy(self.value)
        return display.tensor_text(
            array,
            shape=tuple(array.shape),
            device=self.backend.device_name,
            backend=self.backend.name,
            kind=self.kind.__name__,
            dtype=self.dtype,
            precision=precision,
        )

    def _at_hand(self) -> np.ndarray | None:
        """The elements where looking at them costs nothing: not on a GPU."""
        on_cpu = self.backend.device_name == "Cpu"
        return self.backend.to_numpy(self.value) if on_cpu else None


def _restore(data: TensorData, backend: Backend, kind: Any, leaf: bool) -> Tensor:
    tensor = Tensor.from_data(data, backend, kind)
    return tensor.require_grad() if leaf else tensor


def _known_as_tensor() -> None:
    """Let Python's own errors say Tensor.zeros, not the name of the part it is in."""
    for part in Tensor.__mro__[1:-1]:
        for name, held in vars(part).items():
            function: Any = getattr(held, "__func__", held)
            while hasattr(function, "__code__"):
                function.__qualname__ = f"Tensor.{name}"
                inner = getattr(function, "__wrapped__", None)  # an op's is its formula
                own = getattr(inner, "__module__", "").startswith("burnbook.tensor.")
                function = inner if own else None


_known_as_tensor()
