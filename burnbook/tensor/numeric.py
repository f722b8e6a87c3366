"""Numeric functions that are made of other operations."""

import math
from typing import Any, Self

import numpy as np

from burnbook.core.arguments import cause_of, explained
from burnbook.core.dtypes import Bool, Float, Int
from burnbook.core.errors import ArgumentError, BurnbookError, KindError
from burnbook.ops import index as index_ops, shape as shape_ops
from burnbook.ops.compare import to_bool
from burnbook.ops.elementwise import clamp, half_power
from burnbook.ops.rounding import power
from burnbook.tensor.data import TensorData
from burnbook.tensor.facts import kind_and_shape
from burnbook.tensor.methods import FRACTIONS, NUMBERS, Methods, apply


def is_written_down(value: Any) -> bool:
    """Whether a value is one of a program that is being captured.

    Checks of elements are left out there: a run may have others than the example.
    """
    while hasattr(value, "node"):
        value = value.value
    return hasattr(value, "recording")


class Numeric(Methods):
    """Functions of Float and Int tensors; every one is ordinary tensor code."""

    __slots__ = ()

    def add_scalar(self, value: float) -> Self:
        """out = x + value."""
        return self + value

    def sub_scalar(self, value: float) -> Self:
        """out = x − value."""
        return self - value

    def mul_scalar(self, value: float) -> Self:
        """out = x · value."""
        return self * value

    def div_scalar(self, value: float) -> Self:
        """out = x / value; of Int tensors the rest is cut off."""
        return self.div(value)

    def remainder_scalar(self, value: float) -> Self:
        """out = x % value, with the sign of value."""
        return self % value

    def fmod_scalar(self, value: float) -> Self:
        """The rest of a division by a number, with the sign of x."""
        return self.fmod(value)

    def powf_scalar(self, value: float) -> Self:
        """out = xᵛ; of Int tensors, v is a whole number ≥ 0."""
        if self.kind is Int:
            value = self._int_power("powf_scalar", value)
        try:
            if value == 2:
                return self.square()
            if value == 0.5:
                return apply(half_power, self)
            if 3 <= value <= 32 and value == int(value):
                return apply(power, self, exponent=int(value))
        except (TypeError, ValueError) as error:
            given = (self, value)
            raise explained(error, Numeric.powf_scalar, given, {}) from cause_of(error)
        return self.powf(value)

    def powi(self, other: Any) -> Self:
        """out = xʸ, for whole-number exponents; those of Int tensors are ≥ 0.

        The exponents of a Float tensor may be an Int tensor, as in Burn.
        """
        if isinstance(other, NUMBERS):
            return self.powi_scalar(other)  # type: ignore[arg-type] # it asks
        if isinstance(other, Methods) and (self.kind, other.kind) == (Float, Int):
            other = other.float()  # type: ignore[attr-defined] # a tensor
        try:
            return self**other
        except BurnbookError as error:
            error.where = error.where.replace("powf", "powi")
            raise

    def powi_scalar(self, value: int) -> Self:
        """out = xᵛ, for a whole number v; of Int tensors v ≥ 0."""
        try:
            is_whole = value == int(value)
        except (TypeError, ValueError, OverflowError) as error:
            given = (self, value)
            raise explained(error, Numeric.powi_scalar, given, {}) from error
        if not is_whole:
            facts = [("x", kind_and_shape(self))]
            what = f"the exponent is {value!r}, not a whole number"
            raise KindError("powi_scalar", what, facts, f"x.powf_scalar({value!r})")
        if self.kind is Int:
            value = self._int_power("powi_scalar", value)
        return self.powf_scalar(int(value))

    def rem(self, other: Any) -> Self:
        """out = x % y, with the sign of y; the book's name of remainder."""
        return self % other

    def _int_power(self, where: str, value: float) -> int:
        """Whole numbers have whole powers: refuse 2⁻¹ and √2, which are none."""
        if 0 <= value < math.inf and value == int(value):
            return int(value)
        facts = [("x", f"Int {list(self.value.shape)}")]
        what = f"an Int tensor takes whole exponents ≥ 0, not {value!r}"
        raise KindError(where, what, facts, f"x.float() ** {value!r}")

    def clamp(self, min: float | None = None, max: float | None = None) -> Self:
        """Keep each element between two bounds: out = min(max(x, min), max).

        Shapes: x [...] -> [...]
        """
        if self.kind is Int:
            min = self.whole("clamp", min)
            max = self.whole("clamp", max)
        for bound in (min, max):
            if isinstance(bound, np.ndarray):  # NumPy would take it, one by one
                cure = "x.max_pair(low).min_pair(high), with tensors"
                raise ArgumentError("clamp", "a bound is an array", cure=cure)
        return apply(clamp, self, min=min, max=max)

    def whole(self, where: str, value: Any) -> Any:
        """A number that a tensor of this kind can hold, or the error that it cannot.

        An Int tensor takes whole numbers, and floats that are whole: 2.0.
        """
        if self.kind is not Int or not isinstance(value, FRACTIONS):
            return value
        if math.isfinite(value) and value == int(value):
            return int(value)
        facts = [("x", f"Int {list(self.value.shape)}")]
        what = f"an Int tensor cannot hold {value!r}"
        raise KindError(where, what, facts, f"x.float().{where}(…)")

    def __pow__(self, other: Any) -> Self:
        if isinstance(other, NUMBERS) and self.kind is not Bool:
            return self.powf_scalar(other)
        return self.powf(other)

    def __mod__(self, other: Any) -> Self:
        out = self.remainder(other)
        number = self.kind is Float and isinstance(other, NUMBERS)
        if not number or not math.isfinite(other):  # type: ignore[arg-type] # a number
            return out
        # −1e-8 % 1 is 1 − 1e-8, which rounds to 1: there it is 0.
        return out.mask_where(out.equal(other), out - other)

    def equal_elem(self, value: float) -> Self:
        """True where an element equals a number."""
        return self.equal(value)

    def not_equal_elem(self, value: float) -> Self:
        """True where an element differs from a number."""
        return self.not_equal(value)

    def greater_elem(self, value: float) -> Self:
        """True where an element is above a number."""
        return self.greater(value)

    def greater_equal_elem(self, value: float) -> Self:
        """True where an element is not below a number."""
        return self.greater_equal(value)

    def lower_elem(self, value: float) -> Self:
        """True where an element is below a number."""
        return self.lower(value)

    def lower_equal_elem(self, value: float) -> Self:
        """True where an element is not above a number."""
        return self.lower_equal(value)

    def equal_scalar(self, value: float) -> Self:
        """True where an element equals a number; its newer name."""
        return self.equal(value)

    def not_equal_scalar(self, value: float) -> Self:
        """True where an element differs from a number; its newer name."""
        return self.not_equal(value)

    def greater_scalar(self, value: float) -> Self:
        """True where an element is above a number; its newer name."""
        return self.greater(value)

    def greater_equal_scalar(self, value: float) -> Self:
        """True where an element is not below a number; its newer name."""
        return self.greater_equal(value)

    def lower_scalar(self, value: float) -> Self:
        """True where an element is below a number; its newer name."""
        return self.lower(value)

    def lower_equal_scalar(self, value: float) -> Self:
        """True where an element is not above a number; its newer name."""
        return self.lower_equal(value)

    def bitwise_and_scalar(self, value: int) -> Self:
        """The bits that x and a number have."""
        return self.bitwise_and(value)

    def bitwise_or_scalar(self, value: int) -> Self:
        """The bits that x or a number has."""
        return self.bitwise_or(value)

    def bitwise_xor_scalar(self, value: int) -> Self:
        """The bits that exactly one of x and a number has."""
        return self.bitwise_xor(value)

    def bitwise_left_shift_scalar(self, value: int) -> Self:
        """out = x · 2ᵛ."""
        return self.bitwise_left_shift(value)

    def bitwise_right_shift_scalar(self, value: int) -> Self:
        """out = ⌊x / 2ᵛ⌋."""
        return self.bitwise_right_shift(value)

    def clamp_min(self, min: float) -> Self:
        """Replace what is below a bound by the bound."""
        return self.clamp(min=min, max=None)

    def clamp_max(self, max: float) -> Self:
        """Replace what is above a bound by the bound."""
        return self.clamp(min=None, max=max)

    def max_dim_with_indices(self, dim: int) -> tuple[Self, Self]:
        """The largest element along a dim and its index; of equals, the first."""
        place = self.argmax(dim)
        return apply(index_ops.gather, self, place, dim=dim), place

    def min_dim_with_indices(self, dim: int) -> tuple[Self, Self]:
        """The smallest element along a dim and its index; of equals, the first."""
        place = self.argmin(dim)
        return apply(index_ops.gather, self, place, dim=dim), place

    def contains_nan(self) -> Self:
        """Whether some element is not a number, as a Bool tensor [1]."""
        return self.is_nan().any()

    def is_close(self, other: Self, *, rtol: float = 1e-5, atol: float = 1e-8) -> Self:
        """True where |x − y| ≤ atol + rtol · |y|; ∞ is close to itself, NaN to nothing.

        Of whole numbers both tolerances are whole, as in Burn: fractions are cut off.
        """
        apart = (self - other).abs()
        if self.kind is Int:
            return apart.lower_equal(other.abs() * math.trunc(rtol) + math.trunc(atol))
        close = apart.lower_equal(other.abs() * rtol + atol)
        return close.bool_and(apart.lower(math.inf)).bool_or(self.equal(other))

    def all_close(self, other: Self, *, rtol: float = 1e-5, atol: float = 1e-8) -> bool:
        """Whether every element is close."""
        close = self.is_close(other, rtol=rtol, atol=atol).all()
        return bool(self.backend.to_numpy(close.value)[0])

    def float(self) -> Self:
        """The same values as a Float tensor."""
        return self._cast(Float)

    def int(self) -> Self:
        """The same values as an Int tensor; fractions are cut off toward zero.

        NaN, infinities and values beyond the element type are an error; a program that
        is captured does not look for them.
        """
        if self.kind is Float and not is_written_down(self.value):
            self._fits_int()
        return self._cast(Int)

    def bool(self) -> Self:
        """True where an element is not zero; NaN is True."""
        return self if self.kind is Bool else apply(to_bool, self)

    def _cast(self, kind: Any) -> Self:
        if self.kind is kind:
            return self
        backend = self.backend
        dtype = backend.dtype(kind)
        value = self.value
        while kind is not Float and hasattr(value, "node"):  # Int has no gradient
            value = value.value
        out = backend.run(shape_ops.cast, (value,), {"dtype": dtype})
        return type(self)(out, kind, backend, self.rank)

    def _fits_int(self) -> None:
        array = self.backend.to_numpy(self.value)
        known = np.iinfo(self.backend.int_dtype)
        low, high = (array.min(), array.max()) if array.size else (0, 0)
        if known.min <= float(low) and float(high) < known.max:
            return  # of NaN neither is true
        TensorData.of(array).convert(self.backend.int)
