"""Every layer in Node, beside burnbook."""

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.exporters.javascript import to_javascript
from burnbook.tensor import Tensor
from tests.nn.test_every import name_of
from tests.program.test_every import BATCHED, ROWS, arrays, captured
from tests.support.node_models import needs_node, predicted

pytestmark = needs_node
DEVICE = Numpy()


def agrees(made, given, run, **asked):
    found = predicted(made, *given, **asked)
    assert tuple(found) == made.outputs
    for one, other in zip(found.values(), arrays(run(*given)), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, 1e-5, 1e-5)


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_node_gives_what_the_layer_gives(row, tmp_path):
    program, run, given = captured(row, batch=None)
    agrees(to_javascript(program, tmp_path / "layer.mjs"), given, run)


@pytest.mark.parametrize("row", BATCHED, ids=name_of)
def test_it_does_so_for_other_batch_sizes(row, tmp_path):
    program, run, given = captured(row)
    made = to_javascript(program, tmp_path / "layer.mjs")
    count = given[0].dims()[0]
    for size in (5, 2):  # the second runs in the memory of the first
        rows = np.arange(size) % count
        others = [
            Tensor.from_numpy(np.asarray(x)[rows], DEVICE)
            if x.dims()[0] == count
            else x
            for x in given
        ]
        agrees(made, others, run, again=True)
