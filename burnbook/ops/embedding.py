"""Looking rows up by number, and giving gradients back."""

from burnbook.core.arrays import Array, ArrayNamespace, Shape
from burnbook.core.op import indices as whole_numbers, normal, op
from burnbook.ops.index import MANY, add_rows, inside, too_often

BLOCK = 1 << 18  # elements whose places are laid out at a time


def _rows_fit(weight: Shape, indices: Shape) -> str | None:
    """Why rows cannot be looked up, or None if they can."""
    if len(weight) != 2:
        return f"a table has two dims [rows, size], not {len(weight)}"
    return None


@op("FI>F", check=_rows_fit, method=False)
def embedding(xp: ArrayNamespace, weight: Array, indices: Array) -> Array:
    """Look rows of a table up: out[i, j] = weight[indices[i, j]].

    Shapes: weight [n, d], indices [...] -> [..., d]
    """
    inside("embedding", indices, weight.shape[0])
    return xp.take(weight, indices, axis=0)


@op("FI>F", method=False)
def embedding_weight(
    xp: ArrayNamespace, dout: Array, indices: Array, *, weight_shape: Shape
) -> Array:
    """The gradient of embedding: every row collects what its lookups got.

    Shapes: dout [..., d], indices [...] -> [n, d]
    Why: adding at places of flat memory is several times as quick as adding rows.
    """
    inside("embedding", indices, weight_shape[0])
    rows, size = weight_shape
    out = xp.zeros(rows * size, dtype=dout.dtype)
    picked = indices.reshape(-1).astype(xp.int64, copy=False)  # int8 has no places
    given = dout.reshape(-1, size)
    if len(picked) > MANY and xp.__name__ == "numpy" and too_often(xp, picked, rows):
        table = out.reshape(rows, size)
        add_rows(xp, table, picked, given, len(picked))
        return table
    block = max(BLOCK // max(size, 1), 1) if xp.__name__ == "numpy" else len(picked)
    for first in range(0, len(picked), max(block, 1)):
        part = slice(first, first + block)
        places = picked[part].reshape(-1, 1) * size + xp.arange(size)
        xp.add.at(out, places.reshape(-1), given[part].reshape(-1))
    return out.reshape(weight_shape)


embedding.grad(weight=embedding_weight)

embedding.examples(
    samples=[
        (normal(5, 3), whole_numbers(5, 2, 4)),
        (normal(3, 2), whole_numbers(3, 6)),
    ],
    rejects=[(normal(5, 3, 2), whole_numbers(5, 2, 4))],
)
embedding_weight.grad(dout=lambda xp, g, indices: embedding(xp, g, indices))

embedding_weight.examples(
    samples=[(normal(2, 4, 3), whole_numbers(5, 2, 4), {"weight_shape": (5, 3)})]
)
