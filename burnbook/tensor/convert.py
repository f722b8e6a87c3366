"""From one element type to another, with Rust's rules."""

import numpy as np

from burnbook.core.casting import cast, upper_halves
from burnbook.core.dtypes import dtype_name, numpy_dtype
from burnbook.core.errors import DataError
from burnbook.tensor.display import number_text
from burnbook.tensor.qfloat import QFloat


def storage(dtype: str) -> np.dtype:
    """The NumPy type that holds `dtype`: u16 bits for bf16, which NumPy lacks."""
    if isinstance(dtype, QFloat):
        return np.dtype(np.int8)
    return np.dtype(np.uint16) if dtype == "bf16" else numpy_dtype(dtype)


def widen(bits: np.ndarray) -> np.ndarray:
    """The f32 numbers behind bf16 bits, exactly: the bits are the upper half."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def narrow(values: np.ndarray) -> np.ndarray:
    """The bf16 bits of f32 numbers, rounded to nearest even; a NaN stays a NaN."""
    row = np.asarray(values, np.float32, order="C").reshape(-1)
    return upper_halves(row).reshape(np.shape(values))


def convert_array(array: np.ndarray, given: str, wanted: str) -> np.ndarray:
    """Change the element type of an array (see `TensorData.convert`)."""
    if given == wanted:
        return array
    if isinstance(given, QFloat):
        return convert_array(array, "i8", wanted)
    if given == "bf16":
        return convert_array(widen(array), "f32", wanted)
    if wanted == "bf16":
        return narrow(convert_array(array, given, "f32"))
    target = numpy_dtype(wanted)
    if wanted == "bool":
        return _checked(array, np.dtype(np.uint8), "u8, on the way to bool") != 0
    if target.kind in "iu" and array.dtype.kind != "b":
        return _checked(array, target, wanted)
    with np.errstate(over="ignore", under="ignore"):
        return cast(array, target)


def _checked(array: np.ndarray, target: np.dtype, name: str) -> np.ndarray:
    """Cut to whole numbers of `target`, or say which element has no room in it."""
    limits = np.iinfo(target)
    if array.dtype.kind == "f":
        whole = np.trunc(array.astype(np.float64))
        fits = (whole >= limits.min) & (whole < float(limits.max + 1))
    else:
        fits = (array >= limits.min) & (array <= limits.max)
    if not fits.all():
        position = int(np.argmin(fits))
        text = number_text(array.reshape(-1)[position], dtype_name(array.dtype))
        raise DataError(
            "TensorData.convert",
            f"{text} does not fit {name}",
            [("position", str(position)), ("room", f"{limits.min} to {limits.max}")],
        )
    return array.astype(target)
