"""An array that may still have to be computed: what it is, and where it waits."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from burnbook.core.errors import BackendError


class Spec:
    """The shape and element type of an array; equal ones are the same object.

    Why: a signature has one for each input, and comparing objects is quick.
    """

    __slots__ = ("dtype", "nbytes", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any):
        self.shape, self.dtype = shape, dtype
        self.nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize

    def __repr__(self) -> str:
        return f"Spec({list(self.shape)}, {self.dtype})"


MOST_SPECS = 1 << 16
_specs: dict[Any, Spec] = {}


def spec_of(array: Any) -> Spec:
    """The spec of an array; of an extra result that a kernel has left out, NOTHING."""
    if array is None:
        return NOTHING
    return spec(tuple(array.shape), array.dtype)


def spec(shape: tuple[int, ...], dtype: Any) -> Spec:
    """The one spec of a shape and an element type."""
    found = _specs.get((shape, dtype))
    if found is None:
        if len(_specs) > MOST_SPECS:  # signatures keep those that they need
            _specs.clear()
        found = _specs.setdefault((shape, dtype), Spec(shape, dtype))
    return found


NOTHING = Spec((), np.dtype(np.float32))


class Failed(NamedTuple):
    """What stands for an array that could not be computed."""

    error: Exception


class Deferred(NDArrayOperatorsMixin):
    """A value of `Fusion`: it has a shape at once, and elements once they are read.

    stream: where the op waits that makes it, and number: which of its results it is;
    None once it is there. array: the elements then.

    Whatever looks at elements (NumPy, a method of arrays) runs the stream first.
    """

    __slots__ = ("__weakref__", "array", "number", "shape", "spec", "stream")
    array: Any
    number: int
    shape: tuple[int, ...]
    spec: Spec
    stream: Any

    def __init__(self, array: Any):
        self.spec = spec_of(array)
        self.shape = self.spec.shape
        self.array, self.stream, self.number = array, None, 0

    def computed(self) -> Any:
        """The array, after what it waits for has run.

        Raises: what the op raised that makes it, or one that it needs.
        """
        stream = self.stream  # which another thread may take away
        if stream is not None:
            stream.flush()
            if self.stream is not None:
                what = "a value is read by an op that runs before it"
                raise BackendError("Fusion", what, cure="its tensor as an input")
        if type(self.array) is Failed:
            raise self.array.error
        return self.array

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.spec.dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.spec.nbytes // self.spec.dtype.itemsize

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self.spec.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.spec.nbytes

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: object) -> Any:
        return self.computed()[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.computed(), dtype, copy=copy)

    def __array_ufunc__(
        self, ufunc: object, method: str, *given: object, **named: object
    ) -> Any:
        return getattr(ufunc, method)(*map(plain, given), **named)

    def __array_function__(
        self, function: Callable[..., Any], types: object, given: object, named: object
    ) -> Any:
        if function in OF_SHAPE:  # a gradient rule asks what the shape was
            return OF_SHAPE[function](self)
        return function(*plain_tree(given), **plain_tree(named))

    def __getattr__(self, name: str) -> Any:
        if name not in OF_ARRAYS:  # hasattr must not run anything
            raise AttributeError(name)
        return getattr(self.computed(), name)

    def __dlpack__(self, **asked: object) -> Any:
        return self.computed().__dlpack__(**asked)

    def __dlpack_device__(self) -> Any:
        return self.computed().__dlpack_device__()

    def __reduce__(self) -> Any:
        return Deferred, (self.computed(),)

    def __repr__(self) -> str:
        state = "waits" if self.stream is not None else "is there"
        return f"Deferred({list(self.shape)} {self.dtype}, {state})"


OF_SHAPE: dict[Any, Any] = {
    np.shape: lambda value: value.shape,
    np.ndim: lambda value: value.ndim,
}
OF_ARRAYS = {name for name in dir(np.ndarray) if not name.startswith("__")} | {"get"}


def plain(value: object) -> Any:
    """The array of a deferred value; everything else is itself."""
    return value.computed() if type(value) is Deferred else value


def plain_tree(value: object) -> Any:
    """The same for all that stands in tuples, lists and dicts."""
    if isinstance(value, (tuple, list)):
        parts = [plain_tree(part) for part in value]
        if hasattr(value, "_fields"):
            return type(value)(*parts)
        return type(value)(parts) if type(value) in (tuple, list) else value
    if type(value) is dict:
        return {name: plain_tree(part) for name, part in value.items()}
    return plain(value)
