"""What Python asks of numbers: operators beyond Burn's."""

from typing import Any, Self

import numpy as np

from burnbook.backend.base import Backend
from burnbook.backend.numpy import Numpy
from burnbook.core.dtypes import Float, Int, kind_of
from burnbook.core.errors import DataError, KindError
from burnbook.tensor.create import Creation
from burnbook.tensor.facts import kind_and_shape
from burnbook.tensor.methods import NUMBERS, Methods
from burnbook.tensor.numeric import Numeric

CPU = 1  # DLPack's number for memory that the processor reads


class Protocol(Creation, Numeric):
    """Python's operators, mapped to Burn's functions."""

    __slots__ = ()

    def __pos__(self) -> Self:
        return self

    def __floordiv__(self, other: Any) -> Self:
        """The quotient rounded down, as Python does; `/` of Int cuts toward zero."""
        if self.kind is Float:
            return (self / other).floor()
        return (self - self % other).div(other)

    def __rfloordiv__(self, other: Any) -> Self:
        if self.kind is Float:
            return (other / self).floor()
        return (other - other % self).div(self)

    def __divmod__(self, other: Any) -> tuple[Self, Self]:
        return self // other, self % other

    def __round__(self, digits: int | None = None) -> Self:
        """`round(x)`, or to some digits behind the point: `round(x, 2)`."""
        if not digits:
            return self.round()
        return (self * 10.0**digits).round() / 10.0**digits

    def __and__(self, other: Any) -> Self:
        return self.bitwise_and(other) if self.kind is Int else self.bool_and(other)

    def __or__(self, other: Any) -> Self:
        return self.bitwise_or(other) if self.kind is Int else self.bool_or(other)

    def __xor__(self, other: Any) -> Self:
        return self.bitwise_xor(other) if self.kind is Int else self.bool_xor(other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Self:
        return self.bitwise_not() if self.kind is Int else self.bool_not()

    def __lshift__(self, other: Any) -> Self:
        return self.bitwise_left_shift(other)

    def __rshift__(self, other: Any) -> Self:
        return self.bitwise_right_shift(other)

    def __contains__(self, value: Any) -> bool:
        """Whether some element equals a number."""
        if not isinstance(value, NUMBERS) and not isinstance(value, Methods):
            return False
        other: Any = value
        return bool(self.backend.to_numpy(self.equal(other).any().value)[0])

    def __index__(self) -> int:
        """The only element of an Int tensor, where Python wants a whole number."""
        array = self.backend.to_numpy(self.value)
        if self.kind is not Int or array.size != 1:
            raise KindError(
                "index",
                "only an Int tensor of one element counts as a whole number",
                [("tensor", kind_and_shape(self))],
            )
        return int(array.reshape(-1)[0])

    @classmethod
    def from_dlpack(cls, array: Any, device: Backend | None = None) -> Self:
        """Copy an array of another library: whatever has `__dlpack__`.

        Example:
            >>> import numpy as np
            >>> from burnbook.tensor import Tensor
            >>> Tensor.from_dlpack(np.ones([2, 3])).shape
            (2, 3)
        """
        backend = device or Numpy()
        place = getattr(array, "__dlpack_device__", None)
        if place is None:
            raise DataError(
                "from_dlpack",
                f"a {type(array).__name__} does not support DLPack",
                cure="Tensor.from_data(…)",
            )
        try:
            if place()[0] == CPU:
                return cls.from_numpy(np.from_dlpack(array), backend)
            value = backend.xp.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError) as error:
            what = f"the array cannot be handed over: {error}"
            raise DataError("from_dlpack", what) from None
        kind = kind_of(np.dtype(value.dtype))
        value = backend.xp.array(value, dtype=backend.dtype(kind), copy=True)
        return cls(value, kind, backend, len(value.shape))
