"""Arrays and tensors of any library, as NumPy has them or row by row.

Nothing is imported here: what an object is follows from the module of its class. What
lies in memory becomes a read-only view; what lies in a file (memory maps, h5py, Zarr)
stays there and is read by the row.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from burnbook.core.errors import DataError

# Libraries whose arrays are taken over whole: a row at a time would be slow.
WHOLE = ("burnbook", "torch", "jax", "jaxlib", "tensorflow", "mlx")
FIRST_DIM = "an array with at least one dim"


class Rows(Protocol):
    """Whatever has a length and gives row i."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any:
        """Return a row."""
        ...


def library_of(value: object) -> str:
    """The library in which the first class of a value is defined that has one.

    Example:
        >>> library_of(np.zeros(3)), library_of(3)
        ('numpy', 'builtins')
    """
    known = (*WHOLE, "numpy", "cupy", "PIL")
    roots = [cls.__module__.partition(".")[0] for cls in type(value).__mro__]
    return next((root for root in roots if root in known), roots[0])


def is_array(value: object) -> bool:
    """Whether it has a shape and an element type, as arrays and tensors have."""
    if isinstance(value, type | np.generic):
        return False
    try:
        shape: Any = getattr(value, "shape", None)
    except Exception:  # of a closed file
        return False
    known = library_of(value)
    if not isinstance(shape, tuple) and known != "tensorflow":
        return False
    return hasattr(value, "dtype") or known == "burnbook"


def rows_of_array(array: Any) -> Rows:
    """The rows of an array: a read-only view where it lies in memory.

    Raises:
        DataError: it has no dim, holds masked elements, or cannot be read by rows.
    """
    name = type(array).__name__
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        cure = "array.filled(0), or rows without gaps"
        raise DataError("dataset", "the array holds masked elements", cure=cure)
    if isinstance(array, np.ndarray) or library_of(array) in (*WHOLE, "cupy"):
        array = to_numpy(array)
    if not len(array.shape):
        raise DataError("dataset", f"{name} is a single number", cure=FIRST_DIM)
    try:
        len(array)
    except TypeError as error:  # a sparse one
        method = next((m for m in ("toarray", "todense") if hasattr(array, m)), None)
        cure = f"array.{method}()" if method else "numpy.asarray(array)"
        what = f"{name} cannot be read by rows: {error}"
        raise DataError("dataset", what, cure=cure) from None
    return array


def to_numpy(array: Any) -> np.ndarray:
    """An array of any library in NumPy; a read-only view where nothing is copied.

    Raises:
        DataError: the library has no way to NumPy for this array.
    """
    library = library_of(array)
    try:
        if library == "torch":
            array = array.detach().cpu()
            if str(array.dtype) == "torch.bfloat16":  # which NumPy does not have
                array = array.float()
            array = array.numpy()
        elif library == "cupy":
            array = array.get()
        view = np.asarray(array).view()
    except (TypeError, ValueError, RuntimeError) as error:
        first = str(error).partition("\n")[0]
        what = f"{type(array).__name__} cannot be read as an array: {first}"
        raise DataError("dataset", what, cure="numpy.asarray(array)") from None
    view.flags.writeable = False
    return view
