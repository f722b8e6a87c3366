"""Every layer as kernels of WGSL, beside burnbook."""

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.exporters.wgsl import to_wgsl
from burnbook.tensor import Tensor
from tests.nn.test_every import name_of
from tests.program.test_every import BATCHED, arrays, captured
from tests.support.gpu_here import needs_gpu

pytestmark = needs_gpu
DEVICE = Numpy()


def agrees(made, given, run):
    for one, other in zip(made.run(*given), arrays(run(*given)), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, 1e-5, 1e-5)


@pytest.mark.parametrize("row", BATCHED, ids=name_of)
def test_the_kernels_give_what_the_layer_gives_for_any_batch(row, tmp_path):
    program, run, given = captured(row)
    made = to_wgsl(program, tmp_path / "model.js")
    agrees(made, given, run)
    count = given[0].dims()[0]
    rows = np.arange(5) % count
    others = [
        Tensor.from_numpy(np.asarray(x)[rows], DEVICE) if x.dims()[0] == count else x
        for x in given
    ]
    agrees(made, others, run)
