"""A program for each sample of each op, for writers of programs."""

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.core.op import OPS, draw, split_sample
from burnbook.program import capture
from burnbook.tensor import Tensor, apply

DEVICE = Numpy()
DEPENDS = {"argwhere"}  # how much it gives depends on elements, so it is not captured


def rows(names):
    """The samples of these ops as parameters of a test."""
    return [
        pytest.param(op, row, id=f"{op.name}-{i}")
        for op in OPS.values()
        if op.name in names and op.name not in DEPENDS
        for i, row in enumerate(op.samples)
    ]


def sample(op, row):
    """The program of a sample, and arrays for it."""
    specs, attrs = split_sample(row)
    rng = np.random.default_rng(0)
    arrays = [draw(spec, rng) for spec in specs]
    arrays = [a.astype(np.float32) if a.dtype.kind == "f" else a for a in arrays]
    given = [Tensor.from_numpy(array, DEVICE) for array in arrays]
    program = capture(lambda *xs: apply(op, *xs, **attrs), *given, batch=None)
    return program, arrays, program.run(*[tensor.value for tensor in given])
