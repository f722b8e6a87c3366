"""The table of exceptions to "right in relative terms": what it speaks of is there.

That each row is needed, and that nothing else is, is proven by test_numbers.py and
test_scales.py of tests/ops.
"""

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.core.op import OPS
from burnbook.reference.accuracy import ROWS, accuracy
from burnbook.reference.composed import COMPOSED
from burnbook.tensor import Tensor

KNOWN = {*OPS, *(name.split(".")[-1] for name in COMPOSED)}
BOUNDS = {"absolute", "one", "inner", "infinite", "far"}


def test_rows_speak_of_functions_that_there_are():
    assert {name for row in ROWS for name in row.names.split()} <= KNOWN
    assert {row.bound for row in ROWS} <= BOUNDS
    assert all(row.beyond > 0 for row in ROWS if row.bound == "far")


def test_the_table_shows_every_row():
    page = accuracy()
    assert repr(page) == f"Accuracy: {len(ROWS)} exceptions"
    html = page._repr_html_()
    assert all(row.why in html and row.holds in html for row in ROWS)


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@pytest.mark.parametrize("compiled", [False, None], ids=["plain", "compiled"])
def test_the_rest_of_a_division_by_a_number_is_below_it(kind, compiled):
    """And by a tensor it is what NumPy and PyTorch give, which may be the divisor."""
    device = Numpy(kind, compiled=compiled)
    x = Tensor.from_data([-1e-17, -6e-8, 4.0, -1.0], device)
    assert (np.asarray(x % 3.0) < 3).all()
    assert (np.asarray(x % 3.0) >= 0).all()
    by_tensor = np.asarray(x % Tensor.full([4], 3.0, device))
    assert by_tensor.max() == 3
    assert by_tensor[2:].tolist() == [1, 2]
