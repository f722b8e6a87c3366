"""Tensors and numbers that go over to a cell and come back, as .npy files."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from burnbook.backend import Backend
from burnbook.core.dtypes import Bool, Float, Int
from burnbook.core.errors import Fact
from burnbook.rust.errors import WHERE, RustError
from burnbook.tensor import Tensor

Number = bool | int | float
Value = Tensor | Number
FLOATS = ("f32", "f64")  # what Burn's NdArray computes with
WHOLE = range(-(2**63), 2**63)
STORED: dict[object, str] = {Float: "<f4", Int: "<i8", Bool: "|b1"}


def device_of(inputs: Mapping[str, object]) -> Backend | None:
    """The backend of the tensors among the inputs; None if there are none.

    Raises:
        RustError: they are on different ones, or on one with 16-bit floats.
    """
    tensors = {name: v for name, v in inputs.items() if isinstance(v, Tensor)}
    if not tensors:
        return None
    (first, tensor), *others = tensors.items()
    device = tensor.backend
    for name, other in others:
        if other.backend is not device:
            facts: list[Fact] = [(first, str(device)), (name, str(other.backend))]
            what = "the tensors are on different backends"
            cure = f"{name} = {name}.to_device({first}.device())"
            raise RustError(f"{WHERE} -i", what, facts, cure)
    if device.float not in FLOATS:
        what = f"NdArray has no {device.float}, only {' and '.join(FLOATS)}"
        cure = f"{first} = {first}.to_device(Numpy())"
        raise RustError(f"{WHERE} -i {first}", what, cure=cure)
    return device


def backend_in_rust(device: Backend | None) -> str:
    """The type that is called B in the cell.

    Example:
        >>> from burnbook.backend import Numpy
        >>> backend_in_rust(Numpy().autodiff())
        'burn::backend::Autodiff<burn::backend::NdArray<f32, i64>>'
    """
    if device is None:
        return "burn::backend::NdArray"
    whole = "i32" if device.int == "i32" else "i64"
    plain = f"burn::backend::NdArray<{device.float}, {whole}>"
    return f"burn::backend::Autodiff<{plain}>" if device.ad_enabled else plain


def give(inputs: Mapping[str, object], folder: Path) -> dict[str, str]:
    """Write the tensors into a folder; returns each input as an expression in Rust.

    Raises:
        RustError: something is neither a tensor nor a number, or wider than 64 bits.
    """
    return {name: _give(name, value, folder) for name, value in inputs.items()}


def _give(name: str, value: object, folder: Path) -> str:
    where = f"{WHERE} -i {name}"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Tensor):
        kind = STORED[value.kind]
        if kind == "<f4" and value.backend.float == "f64":
            kind = "<f8"
        shape = list(value.shape)
        array = np.asarray(value).astype(kind, "C").reshape(shape)
        np.save(folder / f"{name}.in.npy", array, allow_pickle=False)
        typed = f"{len(shape)}, burn::tensor::{value.kind.__name__}"
        leaf = ".require_grad()" if value.is_require_grad() else ""
        return f'crate::burnbook::input::<{typed}>("{name}", {shape}){leaf}'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        if value not in WHOLE:
            raise RustError(where, f"{value} does not fit in 64 bits")
        return f"{value}_i64"
    if isinstance(value, float):
        return f"f64::from_bits({np.float64(value).view(np.uint64)})"
    what = f"{name} is a {type(value).__name__}, neither a tensor nor a number"
    cure = None
    if isinstance(value, np.ndarray | list | tuple):
        cure = f"{name} = Tensor.from_numpy(np.array({name}), Numpy())"
    raise RustError(where, what, cure=cure)


def take(names: Iterable[str], folder: Path, device: Backend) -> dict[str, Value]:
    """Read what a cell has given back: tensors on `device`, or numbers."""
    return {name: _take(folder / f"{name}.out.npy", device) for name in names}


def _take(path: Path, device: Backend) -> Value:
    array = np.load(path, allow_pickle=False)
    if array.ndim == 0:
        return array.item()
    return Tensor.from_numpy(array, device)


def unasked(names: Sequence[str], folder: Path) -> list[str]:
    """The outputs that a cell did not give: it returned before its end."""
    return [name for name in names if not (folder / f"{name}.out.npy").is_file()]
