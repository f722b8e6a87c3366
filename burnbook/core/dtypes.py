"""The three kinds of element, and the names of their types.

A kind is what an operation cares about: Float, Int or Bool. The element type (f32,
i64, …) belongs to the backend, so two tensors of one kind on one backend always agree.
"""

from typing import Any

import numpy as np

from burnbook.core.errors import KindError


class KindType(type):
    """The type of the three kinds, so that a kind prints as its name."""

    letter: str

    def __repr__(cls) -> str:
        return cls.__name__


class Float(metaclass=KindType):
    """Real numbers: weights, activations, gradients."""

    letter = "F"


class Int(metaclass=KindType):
    """Whole numbers: indices, labels, counts."""

    letter = "I"


class Bool(metaclass=KindType):
    """Truth values: masks."""

    letter = "B"


Kind = KindType
KINDS: dict[str, KindType] = {"F": Float, "I": Int, "B": Bool}

_NAMES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "bool": "bool",
}
_DTYPES = {name: np.dtype(text) for name, text in _NAMES.items()}
_BACK = {dtype: name for name, dtype in _DTYPES.items()}
_KIND_OF = {"f": Float, "i": Int, "u": Int, "b": Bool}


def numpy_dtype(name: str) -> np.dtype:
    """NumPy's element type for one of our names: "f32" -> float32.

    Why: "bf16" has none. TensorData holds its bits, so records of bf16 can be read and
    written, but nothing computes with it.
    """
    if name == "bf16":
        what = "NumPy has no bf16, so nothing can be computed in it"
        cure = '"f32", or "f16" for half the memory; TensorData and records hold bf16'
        raise KindError("dtype", what, cure=cure)
    try:
        return _DTYPES[name]
    except KeyError:
        raise KindError(
            "dtype", f"{name!r} is not an element type", cure=", ".join(_DTYPES)
        ) from None


def dtype_name(dtype: np.dtype) -> str:
    """Our name for one of NumPy's element types: float32 -> "f32"."""
    try:
        return _BACK[np.dtype(dtype).newbyteorder("=")]
    except KeyError:
        raise KindError(
            "dtype", f"NumPy's {dtype} has no counterpart", cure=", ".join(_DTYPES)
        ) from None


def kind_of(dtype: np.dtype) -> KindType:
    """The kind that an element type belongs to: float32 -> Float, uint8 -> Int."""
    try:
        return _KIND_OF[dtype.kind]
    except KeyError:
        raise KindError(
            "dtype", f"{dtype} is neither Float, Int nor Bool", cure=", ".join(_DTYPES)
        ) from None


def unpickled(array: Any) -> Any:
    """An array with NumPy's own object for its element type.

    Why: one that was pickled comes with an equal, but not the same object, and kernels
    look at the type with `is`.

    Example:
        >>> import pickle
        >>> array = pickle.loads(pickle.dumps(np.zeros(2, np.float32)))
        >>> own = np.dtype(np.float32)
        >>> array.dtype is own, unpickled(array).dtype is own
        (False, True)
    """
    return array.view(np.dtype(array.dtype.str))
