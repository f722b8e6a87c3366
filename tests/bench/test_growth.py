"""Every op of the bench of families has inputs at each size, and takes the smallest."""

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.op import OPS, draw
from tests.bench.families import rows
from tests.bench.growth import SIZES, grow


@pytest.mark.parametrize("name", [op.name for op in rows(())])
def test_an_op_grows_to_every_size(name):
    op, rng = OPS[name], np.random.default_rng(0)
    counts = []
    for size in SIZES:
        specs, attrs = grow(op, *size)
        counts.append(sum(int(np.prod(spec[1])) for spec in specs))
    assert counts == sorted(set(counts)) or not specs
    specs, attrs = grow(op, *SIZES[0])
    device = Numpy(float="f64", compiled=False)
    out = device.run(op, tuple(draw(spec, rng) for spec in specs), attrs)
    assert np.size(out[0] if isinstance(out, tuple) else out)
