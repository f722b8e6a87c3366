"""How errors show a tensor: its kind, its shape and its backend, on one line."""

from typing import Any, Protocol

from burnbook.backend.base import Backend
from burnbook.core.dtypes import KindType


class Shown(Protocol):
    """What is needed of a tensor to show it."""

    kind: KindType
    value: Any
    backend: Backend


def kind_and_shape(tensor: Shown) -> str:
    """Kind and shape: "Float [2, 3]"."""
    return f"{tensor.kind.__name__} {list(tensor.value.shape)}"


def facts_of(**tensors: Shown | None) -> list[tuple[str, str]]:
    """One line per tensor: its name, kind, shape and backend; None is left out.

    Example:
        >>> from burnbook.backend import Numpy
        >>> from burnbook.tensor import Tensor
        >>> facts_of(x=Tensor.zeros([2, 3], Numpy()), bias=None)
        [('x', 'Float [2, 3]  on Numpy()')]
    """
    return [
        (name, f"{kind_and_shape(tensor)}  on {tensor.backend!r}")
        for name, tensor in tensors.items()
        if tensor is not None
    ]
