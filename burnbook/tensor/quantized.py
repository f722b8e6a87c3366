"""A tensor of codes: a Float tensor that keeps bits instead of numbers.

Whoever asks for its value gets numbers, made anew from the codes each time; so every
function of Float tensors takes it. Three lists say what comes out: by default numbers;
codes again for what Burn quantizes again; and the same codes for what only moves them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any, Self

import numpy as np

from burnbook.backend.base import Backend
from burnbook.core.dtypes import Float, Int, KindType
from burnbook.core.errors import GraphError
from burnbook.ops.quantize import from_codes
from burnbook.ops.shape import cast
from burnbook.tensor import display
from burnbook.tensor.create import some_device
from burnbook.tensor.data import TensorData
from burnbook.tensor.qfloat import QFloat, QuantizationStrategy, SchemeStrategy
from burnbook.tensor.quantization_scheme import Scheme
from burnbook.tensor.quantized_packing import (
    beside,
    divided,
    packed,
    same_in_blocks,
    unpacked,
)
from burnbook.tensor.quantizing import numbers_of
from burnbook.tensor.shape import Shape
from burnbook.tensor.tensor import Tensor

# In Burn 0.15 the results of these are quantized again, by the scheme of the first, if
# all Float inputs are quantized. Here a mixture gives numbers, where Burn stops.
AGAIN = """
    add sub mul div powf powi remainder add_scalar sub_scalar mul_scalar div_scalar
    remainder_scalar powf_scalar powi_scalar neg abs clamp clamp_min clamp_max
    sum mean prod sum_dim mean_dim prod_dim mask_fill mask_where scatter select_assign
    slice_assign __add__ __sub__ __mul__ __truediv__ __mod__ __pow__ __neg__ __abs__
    __radd__ __rsub__ __rmul__
"""
# These move codes, which stay what they are.
MOVED = """
    reshape reshape_to flatten squeeze squeeze_dim squeeze_dims unsqueeze unsqueeze_dim
    unsqueeze_dims flip slice slice_dim narrow chunk split split_with_sizes
    select select_dim take gather repeat_dim repeat roll roll_dim mask_select
    __getitem__
"""
# These choose codes by their order, which is that of the numbers (scales are positive).
CHOSEN = """
    max min max_dim min_dim max_dim_with_indices min_dim_with_indices sort topk
    sort_descending sort_with_indices sort_descending_with_indices topk_with_indices
"""
# And these give numbers, as all that is not listed does.
NUMBERS = """
    __matmul__ __pos__ __floordiv__ __rfloordiv__ __divmod__ __rtruediv__ __rmod__
    __rpow__ __round__ __contains__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __and__
    __or__ __xor__ __rand__ __ror__ __rxor__ __invert__ __lshift__ __rshift__
"""


class QuantizedTensor(Tensor):
    """Codes, and the strategy that says which numbers they stand for.

    Example:
        >>> from burnbook.tensor.quantization_scheme import QuantizationScheme
        >>> x = Tensor.from_data([5.0, 0.0, 4.0, -10.0])
        >>> codes = x.quantize_dynamic(QuantizationScheme.PerTensorAffine())
        >>> codes.to_data().to_list(), codes.scheme
        ([127, 42, 110, -128], PerTensorAffine(QInt8))

    Why: `QuantizedTensor(value, …)`, which is how functions make a result of the class
    of their input, gives a plain Tensor: a result is numbers, unless a list says more.
    """

    __slots__ = ("kept", "sizes", "strategy")

    kept: Any  # the codes, in words where they have fewer than 8 bits
    sizes: tuple[int, ...]
    strategy: QuantizationStrategy

    def __new__(cls, value: Any, kind: KindType, backend: Backend, rank: int) -> Any:
        """A plain tensor."""
        return Tensor(value, kind, backend, rank)

    @classmethod
    def of_codes(
        cls, codes: Any, strategy: QuantizationStrategy, backend: Backend
    ) -> Self:
        """Hold codes that live on a backend, one in each i8."""
        kept = packed(backend.xp, codes, strategy.scheme)
        return cls._holding(kept, tuple(codes.shape), strategy, backend)

    @classmethod
    def _holding(
        cls, kept: Any, sizes: Sequence[int], strategy: Any, backend: Backend
    ) -> Self:
        made = object.__new__(cls)
        made.kind, made.backend, made.rank = Float, backend, len(sizes)
        made.kept, made.sizes, made.strategy = kept, tuple(sizes), strategy
        return made

    @property
    def value(self) -> Any:  # type: ignore[override] # asked for, not held
        """The raw numbers, made of the codes now."""
        return numbers_of(self._codes(), self.strategy, self.sizes, self.backend)

    @property
    def scheme(self) -> Scheme:
        """The scheme of the codes."""
        return self.strategy.scheme

    def _codes(self) -> Any:
        return unpacked(self.backend.xp, self.kept, self.sizes, self.scheme)

    # What is known without making numbers

    @property
    def shape(self) -> Shape:
        """The sizes, one per dim; a tuple."""
        return Shape.of(self.sizes)

    def dims(self, *dim: int) -> tuple[int, ...]:
        """The sizes, one per dim, as a plain tuple."""
        return super().dims(*dim) if dim else self.sizes

    def __len__(self) -> int:
        return self.sizes[0]

    @property
    def dtype(self) -> str:
        """The name of the element type: "QFloat(…)", with the strategy."""
        return QFloat(self.strategy)

    # To numbers, to other codes, to other places

    def dequantize(self) -> Tensor:
        """The numbers that the codes stand for."""
        return Tensor(self.value, Float, self.backend, self.rank)

    def to_data(self) -> TensorData:
        """The codes outside any backend, with their strategy."""
        codes = np.ascontiguousarray(self.backend.to_numpy(self._codes()))
        return TensorData.of(codes, QFloat(self.strategy))

    into_data = to_data

    def to_device(self, device: Backend) -> Tensor:
        """The same codes on another backend."""
        if device is self.backend:
            return self
        return Tensor.from_data(self.to_data(), some_device("to_device", device))

    def clone(self) -> Self:
        """Another name for the same codes."""
        return self._holding(self.kept, self.sizes, self.strategy, self.backend)

    __copy__ = clone

    def inner(self) -> Tensor:
        """The same codes on the backend below the autodiff one."""
        if not self.backend.ad_enabled:
            return self.dequantize().inner()
        return self._lifted(self.backend.inner)

    def _lifted(self, backend: Backend) -> Self:
        return self._holding(self.kept, self.sizes, self.strategy, backend)

    # Gradients end before codes

    def _tracked(self) -> bool:
        return False

    def require_grad(self) -> Tensor:
        """An error on a backend with gradients: codes have none."""
        if not self.backend.ad_enabled:
            return self
        raise GraphError(
            "require_grad",
            "codes have no gradient: small steps do not change them",
            [("x", f"Float {list(self.sizes)} as {self.scheme!r}")],
            "dequantize() first, or map(Dequantize()) for a module",
        )

    def set_require_grad(self, require_grad: bool) -> Tensor:
        """True is require_grad(); False changes nothing."""
        return self.require_grad() if require_grad else self

    def detach(self) -> Tensor:
        """The same tensor, which is in no graph."""
        return self

    # Codes in another order

    def permute(self, axes: Sequence[int] | int, *more: int) -> Tensor:
        """Reorder the dims of the codes, and of their blocks."""
        axes = (axes, *more) if isinstance(axes, int) else axes
        codes = Tensor.permute(self.ints(), axes)
        strategy, scheme = self.strategy, self.scheme
        if isinstance(strategy, SchemeStrategy):
            scales, _, whole = strategy.params()
            if scheme.block(self.sizes) is not None:
                scales = scales.transpose(tuple(axes))
            strategy = SchemeStrategy(strategy.scheme.permuted(axes), scales, whole)
        return self.with_codes(codes, strategy)

    def swap_dims(self, dim1: int, dim2: int) -> Tensor:
        """Exchange two dims."""
        Tensor.swap_dims(self.ints(), dim1, dim2)  # complains of what is no dim
        axes = list(range(self.rank))
        axes[dim1], axes[dim2] = axes[dim2], axes[dim1]
        return self.permute(axes)

    def transpose(self, *dims: int) -> Tensor:
        """Exchange the last two dims."""
        if dims or self.rank < 2:
            return self.dequantize().transpose(*dims)
        return self.swap_dims(-2, -1)

    def t(self) -> Tensor:
        """Exchange the two dims of a matrix."""
        return self.transpose() if self.rank == 2 else self.dequantize().t()

    def movedim(self, src: Any, dst: Any) -> Tensor:
        """Move dims to other places; the others keep their order."""
        Tensor.movedim(self.ints(), src, dst)  # complains of what is no dim
        return self.permute(np.moveaxis(np.empty(range(self.rank)), src, dst).shape)

    def iter_dim(self, dim: int) -> Iterator[Any]:
        """The slices along a dim, each with that dim at size 1."""
        return iter(self.chunk(self.sizes[self._dim("iter_dim", dim)], dim))

    def _joined(self, tensors: Sequence[Any], dim: int) -> Tensor:
        out = Tensor._joined(self.dequantize(), [_plain(t) for t in tensors], dim)
        return self.again(out, tensors)

    def again(self, out: Tensor, given: Sequence[Any]) -> Tensor:
        """A result as codes again, if that is how the scheme and the inputs are."""
        mixed = any(
            isinstance(t, Tensor) and t.kind is Float for t in given if not _is_codes(t)
        )
        again = self.scheme.propagates and not mixed
        return out.quantize_dynamic(self.scheme) if again else out

    def ints(self) -> Tensor:
        """The codes as an Int tensor, for as long as they move."""
        return Tensor(self._codes(), Int, self.backend, self.rank)

    def with_codes(self, moved: Tensor, strategy: QuantizationStrategy) -> Tensor:
        """Codes that were moved as an Int tensor, in a tensor of codes again."""
        value = moved.value
        if value.dtype != np.int8:
            value = self.backend.run(cast, (value,), {"dtype": np.dtype(np.int8)})
        return self.of_codes(value, strategy, self.backend)

    def scale_of_each(self) -> Tensor:
        """The scale of every code, for as long as codes of blocks move."""
        scales = self.strategy.params().scales
        parts = beside(scales, self.sizes, self.scheme)
        full = np.broadcast_to(parts, divided(self.sizes, self.scheme))
        value = self.backend.from_numpy(full.reshape(self.sizes))
        return Tensor(value, Float, self.backend, self.rank)

    def with_scales(self, moved: Tensor, scales: Tensor) -> Tensor:
        """Codes and their scales where both have moved; numbers where no block fits."""
        whole = self.strategy.params().global_scale
        grid = same_in_blocks(self.backend.to_numpy(scales.value), self.scheme)
        if grid is not None and isinstance(self.strategy, SchemeStrategy):
            strategy = SchemeStrategy(self.strategy.scheme, grid, whole)
            return self.with_codes(moved, strategy)
        each = scales if whole is None else scales * float(whole)
        values, backend = (moved.value, each.value), self.backend
        out = backend.run(from_codes, values, {"value": self.scheme.value.name})
        out = backend.run(cast, (out,), {"dtype": backend.float_dtype})
        return Tensor(out, Float, backend, moved.rank)

    # Display

    def _text(self, precision: int | None) -> str:
        text = self.dequantize()._text(precision)
        return f"{text[:-1]}  scheme:  {self.scheme!r},\n}}"

    def __repr__(self) -> str:
        return f"{super().__repr__()}  {self.scheme!r}"

    def _repr_html_(self) -> str:
        return display.tensor_html(
            self._at_hand(),
            shape=self.sizes,
            device=self.backend.device_name,
            backend=self.backend.name,
            kind=f"Float as {self.scheme!r}",
            dtype=self.backend.float,
        )


def _is_codes(value: Any) -> bool:
    return isinstance(value, QuantizedTensor)


def _plain(value: Any) -> Any:
    return value.dequantize() if _is_codes(value) else value


def _numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method on the numbers; an operator turned round has the other side first."""

    def method(self: QuantizedTensor, *given: Any, **more: Any) -> Any:
        more = {name: _plain(value) for name, value in more.items()}
        return function(self.dequantize(), *map(_plain, given), **more)

    return method


def _turned(function: Callable[..., Any], straight: str) -> Callable[..., Any]:
    """An operator whose other side comes first: a number, or a tensor of numbers."""

    def method(self: QuantizedTensor, other: Any) -> Any:
        if isinstance(other, Tensor):
            return getattr(Tensor, straight)(_plain(other), self.dequantize())
        return function(self.dequantize(), other)

    return method


def _quantized_again(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method on the numbers, whose result becomes codes where the scheme says so."""

    def method(self: QuantizedTensor, *given: Any, **more: Any) -> Any:
        out = function(self, *given, **more)
        if not isinstance(out, Tensor):
            return out  # NotImplemented, of an operator
        return self.again(out, [*given, *more.values()])

    return method


def _on_codes(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that moves codes; where there are blocks, their scales move along."""

    def method(self: QuantizedTensor, *given: Any, **more: Any) -> Any:
        out = function(self.ints(), *given, **more)
        codes = out if isinstance(out, list) else [out]
        if self.scheme.block(self.sizes) is None:
            moved = [self.with_codes(t, self.strategy) for t in codes]
        else:
            reach = function(self.scale_of_each(), *given, **more)
            scales = reach if isinstance(reach, list) else [reach]
            moved = [
                self.with_scales(*both) for both in zip(codes, scales, strict=True)
            ]
        return moved if isinstance(out, list) else moved[0]

    return method


def _by_order(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that chooses codes, of Burn 0.15's schemes; otherwise numbers."""

    def method(self: QuantizedTensor, *given: Any, **more: Any) -> Any:
        if not self.scheme.propagates:
            return function(self.dequantize(), *given, **more)
        out = function(self.ints(), *given, **more)
        if isinstance(out, tuple):
            return self.with_codes(out[0], self.strategy), *out[1:]
        return self.with_codes(out, self.strategy)

    return method


def _method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The method of codes for a method of numbers."""
    if name in MOVED.split():
        made = _on_codes(function)
    elif name in CHOSEN.split():
        made = _by_order(function)
    else:
        straight = name.replace("__r", "__", 1)
        is_turned = name.startswith("__r") and hasattr(Tensor, straight)
        made = _turned(function, straight) if is_turned else _numbers(function)
        if name in AGAIN.split():
            made = _quantized_again(made)
    made.__name__, made.__doc__ = name, function.__doc__
    made.__qualname__ = f"Tensor.{name}"
    made.__wrapped__ = function  # type: ignore[attr-defined] # help shows its signature
    return made


def _methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    """What Tensor can do with numbers, and QuantizedTensor does not say itself."""
    known = {*vars(QuantizedTensor), *KEPT}
    for name in dir(Tensor):
        if name in known or (name.startswith("_") and name not in LISTED):
            continue
        holder = next(part for part in Tensor.__mro__ if name in vars(part))
        function = vars(holder)[name]
        if isinstance(function, FunctionType):
            yield name, function


LISTED = {*AGAIN.split(), *NUMBERS.split(), *MOVED.split()}
# What asks for nothing but the value, or for other methods.
KEPT = {
    *("into_scalar", "quantize", "quantize_dynamic", "device", "backward", "grad"),
    *("grad_remove", "grad_replace", "hook", "graph", "is_require_grad"),
}

for _name, _function in list(_methods()):
    setattr(QuantizedTensor, _name, _method(_name, _function))
Tensor.holder = QuantizedTensor
