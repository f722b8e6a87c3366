"""What Python makes for a batch: constants that a program makes anew for each size."""

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.core.errors import GraphError
from burnbook.program import capture
from burnbook.tensor import Tensor

GRIDS = {
    "rows": lambda n: np.arange(n)[:, None] * 4 + np.arange(4),
    "columns": lambda n: np.arange(4)[:, None] + np.arange(n) * 3,
    "rows alone": lambda n: np.broadcast_to(np.arange(n)[:, None], (n, 4)),
    "both dims": lambda n: np.arange(n)[:, None] * 5 + np.arange(n),
    "a line between": lambda n: (np.arange(n) * 7 + 2).reshape(1, n, 1),
    "many dims": lambda n: (
        np.arange(n).reshape(n, 1, 1) * 6 + np.arange(6).reshape(1, 2, 3)
    ),
    "backwards": lambda n: 100 - np.arange(n)[:, None] * 2 + np.arange(3),
    "any numbers of a row": lambda n: np.arange(n)[:, None] + np.array([7, 1, 30]),
}
OTHERS = {
    "squares": lambda n: np.arange(n)[:, None] ** 2 + np.arange(3),
    "steps of the batch": lambda n: np.arange(n)[:, None] * n + np.arange(3),
    "products": lambda n: np.arange(n)[:, None] * np.arange(4),
}


def of_grid(grid):
    def run(x):
        made = Tensor.from_numpy(grid(x.dims()[0]), Numpy())
        return made.float() * 1.0, x * 2.0

    return run


@pytest.mark.parametrize("name", GRIDS)
def test_whole_numbers_that_grow_by_steps_follow_the_batch(name):
    run = of_grid(GRIDS[name])
    program = capture(run, Tensor.ones([3, 2]))
    for n in (1, 2, 5, 11):
        for one, other in zip(
            program(Tensor.ones([n, 2])), run(Tensor.ones([n, 2])), strict=True
        ):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("name", OTHERS)
def test_other_numbers_are_refused(name):
    with pytest.raises(GraphError, match="a tensor that Python made for the batch"):
        capture(of_grid(OTHERS[name]), Tensor.ones([3, 2]))


def test_they_are_of_their_kind():
    program = capture(of_grid(GRIDS["rows"]), Tensor.ones([3, 2]))
    made = [step for step in program.steps if step.op.name == "add"]
    assert all(step.out.dtype.kind == "i" for step in made)
