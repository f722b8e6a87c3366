"""Gradient rules whose every step is an op again.

A rule is plain array code. When the backend that runs it tracks (the inner one of
`Autodiff(Autodiff(B))`), the rule runs on the arrays below, whose operators, methods
and functions are ops themselves, so the rule can be differentiated like any other
computation. The list is closed: code outside it is an op with a gradient of its own.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from numpy.typing import DTypeLike

from burnbook.backend.autodiff.tape import Parents
from burnbook.backend.base import Attrs, Values
from burnbook.core.arrays import Array
from burnbook.core.errors import GraphError
from burnbook.core.op import BackwardOp, Op
from burnbook.ops import elementwise, index, reduce, shape
from burnbook.ops.linear import matmul

Axes: TypeAlias = int | Iterable[int] | None


class TrackedSpace:
    """The `xp` of a backend that tracks: every function here is an op."""

    __name__ = "burnbook"

    def __init__(self, backend: Any):
        self.backend = backend
        self.plain = backend.inner.xp

    def trace(
        self, op: BackwardOp, values: Values, parents: Parents, attrs: Attrs
    ) -> tuple[Any, ...]:
        """Run the rules of an op so that their own steps are remembered."""
        tracked = self.backend.tracked
        raw = [
            tracked(v, node) if node is not None else v
            for v, node in zip(values, parents, strict=True)
        ]
        wrapped = [self.wrap(v) for v in raw]
        outs = op.forward(self, *wrapped, **attrs)
        return tuple(unwrap(out) for out in outs)

    def wrap(self, value: object) -> Any:
        """Give an array the operators below; shapes, numbers and None stay."""
        if hasattr(value, "dtype") and hasattr(value, "shape"):
            return OpArray(self, value)
        return value

    def run(self, op: Op, *values: object, **attrs: object) -> "OpArray":
        """Run an op on wrapped values and wrap what comes out."""
        return OpArray(self, self.run_raw(op, tuple(map(unwrap, values)), attrs))

    def run_raw(self, op: Op, values: Values, attrs: Attrs) -> Any:
        out = self.backend.run(op, values, attrs)
        return out[0] if op.extras else out

    def run_op(self, op: Op, values: Values, attrs: Attrs) -> Any:
        """An op called by name inside a rule."""
        out = self.run(op, *values, **attrs)
        return (out,) if op.extras else out

    def constant(self, name: str, *values: object, **attrs: object) -> Any:
        """A function without gradient: it runs on the bare arrays."""
        bare = [_bare(value) for value in values]
        return self.wrap(getattr(self.plain, name)(*bare, **attrs))

    def where(self, mask: object, x: object, y: object) -> Any:
        x, y = self._array_like(x, y), self._array_like(y, x)
        return self.run(index.mask_where, y, mask, x)

    def _array_like(self, value: object, other: object) -> Any:
        if isinstance(value, OpArray) or hasattr(value, "dtype"):
            return value
        return self.plain.asarray(value, dtype=unwrap(other).dtype)

    def broadcast_to(self, x: object, shape_: Iterable[int]) -> Any:
        return self.run(shape.expand, x, shape=tuple(shape_))

    def reshape(self, x: "OpArray", shape_: int | Iterable[int]) -> Any:
        return x.reshape(shape_)

    def expand_dims(self, x: "OpArray", axis: int) -> Any:
        place = axis % (len(x.shape) + 1)
        return x.reshape((*x.shape[:place], 1, *x.shape[place:]))

    def transpose(self, x: object, axes: Iterable[int]) -> Any:
        return self.run(shape.permute, x, axes=tuple(axes))

    def swapaxes(self, x: object, a: int, b: int) -> Any:
        return self.run(shape.swap_dims, x, dim1=a, dim2=b)

    def flip(self, x: object, axes: Axes) -> Any:
        return self.run(shape.flip, x, axes=axes)

    def concatenate(self, xs: Iterable[object], axis: int = 0) -> Any:
        return self.run(shape.cat, *xs, dim=axis)

    def sum(
        self, x: "OpArray", axis: Axes = None, keepdims: bool = False, **_: object
    ) -> Any:
        return x.sum(axis=axis, keepdims=keepdims)

    def asarray(self, x: object, dtype: DTypeLike | None = None) -> Any:
        """A number becomes an array; an array stays in the graph, cast if asked."""
        if not isinstance(x, OpArray):
            return self.constant("asarray", x, dtype=dtype)
        return x if dtype is None else x.astype(dtype)

    def zeros(self, shape_: int | Sequence[int], dtype: DTypeLike | None = None) -> Any:
        return self.plain.zeros(shape_, dtype)

    def zeros_like(self, x: "Array | OpArray") -> Any:
        return self.plain.zeros(x.shape, x.dtype)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = SAME_OP.get(name)
        if op is not None:
            return lambda *values: self.run(op, *values)
        if name in CONSTANT:
            return lambda *values, **attrs: self.constant(name, *values, **attrs)
        if name in TYPES:
            return getattr(self.plain, name)
        raise GraphError(
            f"xp.{name}",
            "this function cannot be differentiated twice",
            cure="make it an op with a gradient of its own",
        )


class OpArray:
    """A value whose operators and array methods are ops."""

    __slots__ = ("space", "value")
    __array_ufunc__ = None

    def __init__(self, space: TrackedSpace, value: Any):
        self.space = space
        self.value = value

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)

    @property
    def ndim(self) -> int:
        return len(self.value.shape)

    @property
    def size(self) -> int:
        return reduce.count(self.value.shape)

    @property
    def dtype(self) -> Any:
        return self.value.dtype

    @property
    def T(self) -> "OpArray":
        return self.space.run(shape.permute, self, axes=tuple(range(self.ndim))[::-1])

    def reshape(self, *sizes: Any) -> "OpArray":
        wanted = (
            sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
        )
        wanted = tuple(wanted)
        if -1 in wanted:
            known = reduce.count(tuple(n for n in wanted if n != -1))
            rest = self.size // known if known else 0
            wanted = tuple(rest if n == -1 else n for n in wanted)
        return self.space.run(shape.reshape, self, shape=wanted)

    def swapaxes(self, a: int, b: int) -> "OpArray":
        return self.space.swapaxes(self, a, b)

    def transpose(self, *axes: int) -> "OpArray":
        return self.space.transpose(self, axes)

    def astype(self, dtype: DTypeLike, **_: object) -> "OpArray":
        return self.space.run(shape.cast, self, dtype=dtype)

    def sum(self, axis: Axes = None, keepdims: bool = False) -> "OpArray":
        axes = range(self.ndim) if axis is None else axis
        axes = [axes] if isinstance(axes, int) else list(axes)
        out = self
        for dim in axes:
            out = self.space.run(reduce.sum_dim, out, dim=dim)
        if keepdims:
            return out
        gone = {dim % self.ndim for dim in axes}
        return out.reshape(tuple(n for d, n in enumerate(out.shape) if d not in gone))

    def __getitem__(self, picked: object) -> "OpArray":
        where = picked if isinstance(picked, tuple) else (picked,)
        if not all(isinstance(part, slice) for part in where):
            raise GraphError("index", "only slices can be differentiated twice")
        return self.space.run(shape.slice_, self, index=where)

    def __neg__(self) -> "OpArray":
        return self.space.run(elementwise.neg, self)


SAME_OP: dict[str, Op] = {
    "add": elementwise.add,
    "subtract": elementwise.sub,
    "multiply": elementwise.mul,
    "divide": elementwise.div,
    "power": elementwise.powf,
    "negative": elementwise.neg,
    "absolute": elementwise.abs,
    "exp": elementwise.exp,
    "log": elementwise.log,
    "log1p": elementwise.log1p,
    "sqrt": elementwise.sqrt,
    "sin": elementwise.sin,
    "cos": elementwise.cos,
    "tanh": elementwise.tanh,
    "maximum": elementwise.max_pair,
    "minimum": elementwise.min_pair,
    "matmul": matmul,
    "dot": matmul,
}
CONSTANT = {
    *("sign", "floor", "ceil", "rint", "arange", "argmax", "argmin", "isnan"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    *("ones", "ones_like", "eye"),
}
TYPES = {"float16", "float32", "float64", "int32", "int64", "bool_"}


def _operator(name: str, turned: bool = False) -> Callable[[Any, Any], Any]:
    def method(self: OpArray, other: object) -> Any:
        pair = (other, self) if turned else (self, other)
        return getattr(self.space, name)(*pair)

    return method


for _sign, _name in {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "pow": "power",
    "matmul": "matmul",
}.items():
    setattr(OpArray, f"__{_sign}__", _operator(_name))
    setattr(OpArray, f"__r{_sign}__", _operator(_name, turned=True))
for _sign, _name in {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}.items():
    setattr(OpArray, f"__{_sign}__", _operator(_name))


def unwrap(value: object) -> Any:
    """The value inside an array of a rule; everything else is itself."""
    return value.value if isinstance(value, OpArray) else value


def _bare(value: Any) -> Any:
    """The array below every level of tracking."""
    value = unwrap(value)
    while hasattr(value, "node"):
        value = value.value
    return value
