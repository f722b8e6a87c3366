"""The same values in more or fewer digits, or replaced."""

import inspect
from collections.abc import Callable
from typing import Any, Self

from burnbook.backend.base import Backend
from burnbook.core.dtypes import Bool, Float, Int, KindType, kind_of, numpy_dtype
from burnbook.core.errors import KindError
from burnbook.ops.shape import recast
from burnbook.tensor.numeric import Numeric


class Precision(Numeric):
    """Element types belong to backends: another type is a sibling of the backend."""

    __slots__ = ()

    def into_full_precision(self) -> Self:
        """The same values on a sibling of this backend whose floats are f32."""
        return self._move(sibling(self.backend, float="f32"))

    def to_full_precision(self) -> Self:
        """The book's name of into_full_precision."""
        return self.into_full_precision()

    def from_full_precision(self, tensor: Self) -> Self:
        """The values of a full-precision tensor, back on this tensor's backend."""
        return tensor._move(self.backend)

    def cast(self, dtype: str) -> Self:
        """The same values as another element type, on a sibling of this backend.

        Example:
            >>> from burnbook.tensor import Tensor
            >>> Tensor.from_data([1.5]).cast("f64").device()
            Numpy(float='f64')
        """
        kind = kind_of(numpy_dtype(dtype))
        to: dict[Any, Any] = {Float: self.float, Int: self.int, Bool: self.bool}
        same = to[kind]()
        if kind is Bool:
            return same
        word = "float" if kind is Float else "int"
        return same._move(sibling(self.backend, **{word: dtype}))

    @classmethod
    def from_primitive(
        cls, primitive: Any, device: Backend, kind: KindType | None = None
    ) -> Self:
        """Wrap a raw array of the backend's array library, without a copy."""
        kind = kind or kind_of(primitive.dtype)
        return cls(primitive, kind, device, len(primitive.shape))

    def into_primitive(self) -> Any:
        """The raw value that the backend works with; nobody may write to it."""
        return self.value

    def inplace(self, function: Callable[[Self], Self]) -> None:
        """Replace this tensor by what a function of it returns."""
        if self.kind is not Float:
            raise KindError("inplace", f"takes Float, not {self.kind.__name__}")
        new = function(self)
        self.value, self.rank = new.value, new.rank
        self.kind, self.backend = new.kind, new.backend

    def _move(self, target: Backend) -> Self:
        """On a sibling backend, differentiably: gradients come back in the old type."""
        if target is self.backend:
            return self
        wanted, given = target.dtype(self.kind), self.backend.dtype(self.kind)
        value = self.value
        if wanted != given:
            attrs = {"dtype": wanted, "back": given}
            value = self.backend.run(recast, (value,), attrs)
        return type(self)(value, self.kind, target, self.rank)


def with_floats(backend: Backend, dtype: str) -> Backend:
    """The same backend with another element type of its floats.

    Raises:
        KindError: that is no type of floats.
    """
    if kind_of(numpy_dtype(dtype)) is not Float:
        what = f"{dtype!r} is no type of floats"
        raise KindError("cast", what, cure='"f32", "f64", "f16" or "bf16"')
    return sibling(backend, float=dtype)


def sibling(backend: Backend, **types: str) -> Backend:
    """The same backend (and its decorators) with other element types."""
    if backend.inner is not backend:
        return type(backend)(sibling(backend.inner, **types), *backend.arguments[1:])
    names = list(inspect.signature(type(backend).__init__).parameters)[1:]
    given = dict(zip(names, backend.arguments, strict=True))
    return type(backend)(**{**given, **types})
