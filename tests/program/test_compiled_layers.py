"""Every layer, compiled: a plan gives what its program gives."""

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.program import capture
from burnbook.tensor import Tensor
from tests.program.test_every import BATCHED, ROWS, captured, name_of

DEVICE = Numpy()


def agree(found, wanted):
    assert len(found) == len(wanted) > 0
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def values(tensors):
    return [np.asarray(tensor) for tensor in tensors]


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_a_compiled_layer_gives_what_its_program_gives(row):
    program, _, given = captured(row, batch=None)
    arrays = values(given)
    agree(program.compile().run(*arrays), program.run(*arrays))


@pytest.mark.parametrize("row", BATCHED, ids=name_of)
def test_batch_sizes_take_turns(row):
    program, _, given = captured(row)
    count = given[0].dims()[0]
    compiled = program.compile()
    for size in (3, 1, 9, 3, 1):
        rows = np.arange(size) % count
        arrays = [
            np.asarray(x)[rows] if x.dims()[0] == count else np.asarray(x)
            for x in given
        ]
        if size == 1 and arrays[0].shape == (1,) and len(arrays) == 1:
            continue  # a batch of one number
        agree(compiled.run(*arrays), program.run(*arrays))


def test_a_layer_runs_in_double_precision():
    device = Numpy("f64")
    x = Tensor.from_numpy(np.linspace(-1, 1, 12).reshape(3, 4), device)
    program = capture(lambda x: (x.exp() + 1.0).log().sum_dim(1), x)
    np.testing.assert_array_equal(
        np.asarray(program.compile()(x)), np.asarray(program(x))
    )
