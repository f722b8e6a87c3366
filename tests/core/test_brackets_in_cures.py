"""The reader's expressions in cures: in brackets where code would tear them apart."""

import linecache

import numpy as np
import pytest

from burnbook.core.errors import BurnbookError
from burnbook.tensor import Tensor

X, M = np.float32([-1.0, 0.5, 2.0, 3.0]), np.float32([[1.0, 2.0], [3.0, 5.0]])
# What a reader writes: what NumPy makes of the same.
CASES = {
    "Tensor.where((x > 0) & (x < 1), x, -x)": np.where((X > 0) & (X < 1), X, -X),
    "Tensor.where((x < 0) | (x > 1), x, x * 0)": np.where((X < 0) | (X > 1), X, 0),
    "Tensor.where(x > 0, x, x * 0)": np.where(X > 0, X, 0),
    "Tensor.where(x < y, x + y, y - x)": np.where(X < 1, X + 1, 1 - X),
    "Tensor.where(x < y, x if True else y, -y)": np.where(X < 1, X, -1),
    "x.where(x > 0, x * 0)": np.where(X > 0, X, 0),
    "(x + y).where(x > 0, -y)": np.where(X > 0, X + 1, -1),
    "(m + m).sum(dim=1)": (M + M).sum(1, keepdims=True),
    "(m * 3).mean(dim=1)": (M * 3).mean(1, keepdims=True),
    "(m + m).max(axis=0)": (M + M).max(0, keepdims=True),
    "(-m).relu().sum(dim=0)": np.maximum(-M, 0).sum(0, keepdims=True),
    "(x + y).view(2, 2)": (X + 1).reshape(2, 2),
    "(x - y).masked_fill(x > 0, 7.0)": np.where(X > 0, 7, X - 1),
}


@pytest.mark.parametrize("line", CASES)
def test_the_cure_has_the_value_that_was_meant(line):
    names = {"Tensor": Tensor, "x": Tensor.from_numpy(X), "m": Tensor.from_numpy(M)}
    names["y"] = Tensor.ones_like(names["x"])
    place = f"<{line}>"
    linecache.cache[place] = len(line), None, [line], place
    with pytest.raises(BurnbookError) as caught:
        exec(compile(line, place, "exec"), names)
    cure = caught.value.cure.partition(", or ")[0]
    np.testing.assert_allclose(np.asarray(eval(cure, names)), CASES[line], err_msg=cure)
