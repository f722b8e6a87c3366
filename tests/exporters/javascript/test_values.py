"""Elements that need care, in Node: bools, NaN, infinity, indices outside."""

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.exporters.javascript import to_javascript
from burnbook.ops.compare import to_bool
from burnbook.tensor import Tensor, apply
from tests.support.careful_values import CAREFUL, LINES, pairs, wanted
from tests.support.node_models import needs_node, predicted

pytestmark = needs_node
DEVICE = Numpy()


def agrees(run, tmp_path, *given):
    made = to_javascript(run, tmp_path / "net.mjs", *given, batch=None)
    found = list(predicted(made, *given).values())
    for one, other in zip(found, wanted(run, *given), strict=True):
        np.testing.assert_allclose(one.astype(other.dtype), other, 1e-6)


@pytest.mark.parametrize("name", CAREFUL)
def test_nan_infinity_and_zeros_give_what_they_give_here(name, tmp_path):
    agrees(CAREFUL[name], tmp_path, *pairs())


@pytest.mark.parametrize("dim", [0, 1])
def test_the_median_of_a_line_with_nan_is_its_first_nan(dim, tmp_path):
    x = Tensor.from_numpy(LINES, DEVICE)
    agrees(lambda x: x.median_with_indices(dim), tmp_path, x)


@pytest.mark.parametrize("index", [-1, 3, 4])
def test_an_index_outside_of_a_row_of_one_hot_is_an_error(index, tmp_path):
    x = Tensor.from_ints([0, 2], DEVICE)
    made = to_javascript(lambda x: x.one_hot(3), tmp_path / "net.mjs", x)
    with pytest.raises(RuntimeError, match=f"index {index} of 3"):
        predicted(made, np.array([0, index]))


OF_BOOLS = {
    "xor": lambda x, b: x.greater_elem(0.0).bool_xor(b),
    "equal": lambda x, b: x.greater_elem(0.0).equal(b),
    "not_equal": lambda x, b: b.not_equal(x.greater_elem(0.0)),
    "literal": lambda x, b: (b.equal_elem(True), b.not_equal_elem(True)),
    "computed literal": lambda x, b: x.greater_elem(0.0).equal_elem(False),
    "and": lambda x, b: x.greater_elem(0.0).bool_and(b),
    "or": lambda x, b: b.bool_or(x.greater_elem(0.0)),
    "not": lambda x, b: b.bool_not().bool_xor(x.greater_elem(0.0)),
    "fill": lambda x, b: x.greater_elem(0.0).mask_fill(b, True),
    "where": lambda x, b: b.mask_where(x.greater_elem(0.0), b.bool_not()),
    "float": lambda x, b: x.greater_elem(0.0).float() * 2.0,
    "int": lambda x, b: x.greater_elem(0.0).int() + 1,
    "bool": lambda x, b: apply(to_bool, x.greater_elem(0.0)),
    "bool of bool": lambda x, b: (apply(to_bool, b), b.int().bool()),
}


@pytest.mark.parametrize("name", OF_BOOLS)
def test_computed_and_stored_bools_and_literals_are_of_one_kind(name, tmp_path):
    x = Tensor.from_floats([1.0, -1.0, 2.0, -2.0], DEVICE)
    b = Tensor.from_numpy(np.array([True, True, False, False]), DEVICE)
    agrees(OF_BOOLS[name], tmp_path, x, b)
