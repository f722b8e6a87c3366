"""Grids of coordinates: meshes, and affine maps of them."""

from collections.abc import Sequence
from enum import Enum

from burnbook.core.errors import ShapeError
from burnbook.tensor import Tensor


class GridIndexing(Enum):
    """Which dim of a mesh follows which vector; Cartesian exchanges the first two."""

    Matrix = "matrix"
    Cartesian = "cartesian"


class GridSparsity(Enum):
    """Whether a mesh is stretched to its whole shape."""

    Dense = "dense"
    Sparse = "sparse"


class IndexPos(Enum):
    """Where the coordinates of a stacked mesh stand."""

    First = "first"
    Last = "last"


def meshgrid(
    tensors: Sequence[Tensor],
    indexing: GridIndexing = GridIndexing.Matrix,
    sparsity: GridSparsity = GridSparsity.Dense,
) -> list[Tensor]:
    """The coordinates of a mesh of vectors, one tensor for each vector.

    Shapes: n vectors [sᵢ] -> n tensors [s₁, …, sₙ]
    """
    if not tensors or any(t.rank != 1 for t in tensors):
        raise ShapeError("meshgrid", "a mesh is made of vectors")
    n = len(tensors)
    places = list(range(n))
    if indexing is GridIndexing.Cartesian and n > 1:
        places[:2] = [1, 0]
    shape = [0] * n
    for place, t in zip(places, tensors, strict=True):
        shape[place] = t.dims()[0]
    out: list[Tensor] = []
    for place, t in zip(places, tensors, strict=True):
        line = [1] * n
        line[place] = shape[place]
        mesh = t.reshape_to(tuple(line))
        out.append(mesh if sparsity is GridSparsity.Sparse else mesh.expand(shape))
    return out


def meshgrid_stack(
    tensors: Sequence[Tensor], index_pos: IndexPos = IndexPos.Last
) -> Tensor:
    """The coordinates of a mesh of vectors in one tensor.

    Shapes: n vectors [sᵢ] -> [s₁, …, sₙ, n], or [n, s₁, …, sₙ]
    """
    meshes = meshgrid(tensors)
    return Tensor.stack(meshes, 0 if index_pos is IndexPos.First else len(meshes))


def affine_grid_2d(transform: Tensor, dims: Sequence[int]) -> Tensor:
    """Where each pixel of an image comes from, under an affine map; in [−1, 1].

    Shapes: transform [b, 2, 3], dims (b, c, h, w) -> [b, h, w, 2]
    Why: the corners of the image are at −1 and 1 exactly.
    """
    batch, _, height, width = dims
    if transform.dims() != (batch, 2, 3):
        raise ShapeError(
            "affine_grid_2d", f"{list(transform.dims())} is not [{batch}, 2, 3]"
        )
    y, x = meshgrid([_line(height, transform), _line(width, transform)])
    spots = Tensor.stack([x, y, x.ones_like()], 2).reshape([1, height * width, 3])
    out = spots.expand([batch, -1, -1]) @ transform.transpose()
    return out.reshape([batch, height, width, 2])


def _line(size: int, like: Tensor) -> Tensor:
    """Evenly spaced numbers from −1 to 1."""
    steps = Tensor.arange(0, size, like.backend).float()
    return steps / ((size - 1) / 2) - 1 if size > 1 else steps
