"""Element types: what recorders write and read.

A recorder writes floats and ints with the precision of its settings, whatever the model
was trained in; reading goes through the same settings and then to the device's types.
Whole numbers of 8 and 16 bits, as quantized weights are, stay what they are: they would
only take more bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnbook.core.dtypes import numpy_dtype
from burnbook.core.errors import DataError, warn_caller
from burnbook.record.settings import Settings
from burnbook.record.tree import Convert, Path, Trouble, named
from burnbook.tensor.data import TensorData
from burnbook.tensor.qfloat import QFloat

CURE = "a recorder with FullPrecisionSettings or DoublePrecisionSettings"


def to_settings(settings: Settings) -> Convert:
    """Convert floats and ints to what `settings` writes; bools and codes stay."""
    return _converter(settings.float, settings.int)


def to_device(settings: Settings, device: Any) -> Convert:
    """Convert as `to_settings`, then to the element types of a backend, if any."""
    first = to_settings(settings)
    if device is None:
        return first
    second = _converter(device.float, device.int)
    rounds = device.float == "f64" != settings.float
    told: list[Path] = []

    def convert(data: TensorData, path: Path) -> TensorData:
        found = first(data, path)
        if rounds and not told and data.dtype == "f64" and _is_rounded(data, found):
            told.append(path)
            warn_caller(
                f"{named(path)}: f64 numbers of the file are rounded to "
                f"{settings.float}, as the recorder's settings say, for a model in "
                f"f64; try: DoublePrecisionSettings() in the recorder"
            )
        return second(found, path)

    return convert


def _converter(float_name: str, int_name: str) -> Convert:
    def convert(data: TensorData, path: Path) -> TensorData:
        if data.dtype == "bool" or isinstance(data.dtype, QFloat):
            return data
        is_float = data.array.dtype.kind == "f" or data.dtype == "bf16"
        wanted = float_name if is_float else int_name
        if wanted == data.dtype or (not is_float and _is_narrow(data, wanted)):
            return data
        try:
            found = data.convert(wanted)
        except DataError as cause:
            raise Trouble(f"{named(path)}: {cause.what}", cure=CURE) from None
        if is_float and np.dtype(found.array.dtype).itemsize < 8:
            _check_range(data, found, path)
        return found

    return convert


def _is_narrow(data: TensorData, wanted: str) -> bool:
    """Whether whole numbers are of a type of few bits, all of which the other has."""
    own = data.array.dtype
    return own.itemsize < 4 and np.can_cast(own, numpy_dtype(wanted), "safe")


def _is_rounded(before: TensorData, after: TensorData) -> bool:
    """Whether a number is another one now."""
    return not np.array_equal(before.to_numpy(), after.to_numpy(), equal_nan=True)


def _check_range(before: TensorData, after: TensorData, path: Path) -> None:
    """Complain when a finite number has become infinite."""
    lost = np.isinf(after.array)
    if lost.any():
        lost &= np.isfinite(before.to_numpy())
    if lost.any():
        worst = float(np.abs(before.to_numpy()[lost]).max())
        limit = float(np.finfo(after.array.dtype).max)
        what = f"{named(path)} is too large for {after.dtype}"
        raise Trouble(what, f"at most {limit:g}", f"{worst:g}", CURE)
