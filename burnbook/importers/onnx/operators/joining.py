"""Operators that put values together and take them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burnbook import ops
from burnbook.importers.onnx.operators.registry import operator
from burnbook.tensor import Tensor
from burnbook.tensor.methods import apply


@operator("Concat")
def concat(*parts: Tensor, axis: int = 1) -> Tensor:
    """Values one after another along an axis."""
    if len(parts) == 1:
        return parts[0]
    return apply(ops.cat, *parts, dim=axis % len(parts[0].value.shape))


@concat.host
def _(*parts: Any, axis: int = 1) -> Any:
    return np.concatenate(parts, axis)
