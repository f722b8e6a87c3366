"""Picking by tensors of indices, whole places at a time."""

from typing import Any, Self

import numpy as np

from burnbook.core.arrays import has_no_elements
from burnbook.core.dtypes import Float, Int, numpy_dtype
from burnbook.core.errors import DataError, DimError, KindError, ShapeError
from burnbook.ops import index as index_ops
from burnbook.ops.reduce import count
from burnbook.tensor.basic import known_update
from burnbook.tensor.brackets import array_of
from burnbook.tensor.create import Creation
from burnbook.tensor.distribution import Distribution
from burnbook.tensor.gradients import Tracking
from burnbook.tensor.layout import Layout
from burnbook.tensor.methods import apply
from burnbook.tensor.numeric import Numeric, is_written_down


class Indexing(Creation, Layout, Numeric, Tracking):
    """Gathering and scattering with indices of any rank."""

    __slots__ = ()

    def take(self, dim: int, indices: Self) -> Self:
        """Pick slices along a dim by indices of any rank, whose dims take its place.

        Shapes: x [a, d, b], indices [i, j] -> [a, i, j, b]
        """
        place = self._dim("take", dim)
        flat = self.select(place, indices.flatten(0, -1))
        shape = self.dims()
        return flat.reshape_to((*shape[:place], *indices.dims(), *shape[place + 1 :]))

    def gather_nd(self, indices: Self) -> Self:
        """Pick by coordinates: the last dim of `indices` holds k of them.

        Shapes: x [s₁ … sₖ, rest...], indices [..., k] -> [..., rest...]
        """
        flat, rows = self._flat("gather_nd", indices)
        rest = self.dims()[indices.dims()[-1] :]
        return rows.select(0, flat).reshape_to((*indices.dims()[:-1], *rest) or (1,))

    def scatter_nd(self, indices: Self, values: Self, update: str = "add") -> Self:
        """Write by coordinates: add the values there, or assign them.

        Shapes: x [s₁ … sₖ, rest...], indices [..., k], values [..., rest...] -> x
        """
        flat, rows = self._flat("scatter_nd", indices)
        k = indices.dims()[-1]
        wanted = (*indices.dims()[:-1], *self.dims()[k:])
        if values.dims() != wanted:
            raise ShapeError(
                "scatter_nd", f"the values have {list(values.dims())}, not {wanted}"
            )
        known_update("scatter_nd", update)
        new = values.reshape_to((flat.dims()[0], *rows.dims()[1:]))
        if update == "add":
            out = apply(index_ops.select_assign, rows, flat, new, dim=0)
        else:
            out = apply(index_ops.select_put, rows, flat, new)
        return out.reshape_to(self.dims())

    def categorical(self, num_samples: int) -> Self:
        """Draw class numbers, each row of the last dim being weights of the classes.

        A class may be drawn several times.

        Shapes: x [..., c] -> [..., num_samples]

        Raises:
            DataError: a weight is negative, infinite or NaN, or all of a row are 0; a
                program that is captured does not look for them.
        """
        if self.kind is not Float:
            raise KindError("categorical", f"the weights are {self.kind.__name__}")
        weights: Any = self.detach()
        if not is_written_down(weights.value):
            weights = _checked_weights(weights)
        if (
            numpy_dtype(weights.dtype).itemsize < 4
        ):  # too coarse for the sums of many classes
            return weights.cast("f32").categorical(num_samples).to_device(self.backend)
        edges = weights.cumsum(-1)
        total = edges.narrow(self.rank - 1, self.dims()[-1] - 1, 1)
        shape = (*self.dims()[:-1], num_samples)
        dart = type(self).random(shape, Distribution.Default, self.backend)
        drawn = _not_above(edges, dart * total)
        return drawn.clamp_max(self.dims()[-1] - 1)

    def _flat(self, where: str, indices: Self) -> tuple[Self, Self]:
        """Coordinates as row numbers, and this tensor as rows of what is left."""
        if indices.kind is not Int:
            raise KindError(where, f"the indices are {indices.kind.__name__}")
        shape, k = self.dims(), indices.dims()[-1]
        if not 1 <= k <= self.rank:
            raise DimError(where, f"{k} coordinates for a tensor of rank {self.rank}")
        rows: Any = 0
        for dim in range(k):  # in whole numbers of 64 bits, whatever the backend has
            one = indices.narrow(indices.rank - 1, dim, 1).flatten(0, -1)
            if not has_no_elements(one.value):
                array = self.backend.to_numpy(one.value)
                index_ops.inside(where, array, shape[dim])
            rows = rows * shape[dim] + array_of(one.value).astype(np.int64)
        flat = type(self)(rows, Int, self.backend, 1)
        return flat, self.reshape_to((count(shape[:k]), *shape[k:]))


def _not_above(edges: Any, darts: Any) -> Any:
    """How many edges, which rise along the last dim, are not above each dart."""
    dim, classes = edges.rank - 1, edges.dims()[-1]
    if classes * darts.dims()[-1] <= COMPARED:
        near = darts.unsqueeze_dim(dim + 1).greater_equal(edges.unsqueeze_dim(dim))
        return near.int().sum_dim(dim + 1).squeeze(dim + 1)
    found = darts.zeros_like().int()
    for step in (1 << bit for bit in reversed(range(classes.bit_length()))):
        place = found + (step - 1)
        edge = edges.gather(dim, place.clamp_max(classes - 1))
        is_below = place.lower(classes).bool_and(darts.greater_equal(edge))
        found = found + is_below.int() * step
    return found


COMPARED = 1 << 16  # pairs of a row that are compared at once; more are halved


def _checked_weights(weights: Any) -> Any:
    """Weights of classes, scaled where their sum would be infinite or next to nothing.

    Raises: DataError for what is no weight, or a row without any.
    """
    array = weights.backend.to_numpy(weights.value)
    rows = array.reshape(-1, array.shape[-1]) if array.size else array[:0]
    with np.errstate(over="ignore", invalid="ignore"):
        totals = rows.sum(axis=-1, keepdims=True)
        wrong = ~(np.isfinite(rows) & (rows >= 0))
    if wrong.any():
        what = f"{rows[wrong][0]:g} is no weight"
        cure = "softmax(scores, -1).categorical(1), where they are scores"
        raise DataError("categorical", what, cure=cure)
    if (totals == 0).any():
        row = int(np.argmax(totals == 0))
        what = f"no class has a weight in row {row}"
        raise DataError("categorical", what, cure="a weight above 0 in each row")
    # Beside a sum as small as these, parts of it could not be told apart.
    least = float(np.finfo(array.dtype).tiny) * (1 << 13)
    if np.isinf(totals).any() or (totals < least).any():
        return weights / weights.max_dim(weights.rank - 1)
    return weights
