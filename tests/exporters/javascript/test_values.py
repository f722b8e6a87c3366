"""Elements that need care, in Node: bools, NaN, infinity, indices outside."""

import json
import subprocess

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.exporters.javascript import to_javascript
from burnbook.ops.compare import to_bool
from burnbook.tensor import Tensor, activation, apply
from tests.support.careful_values import (
    BEYOND,
    CAREFUL,
    LINES,
    narrowed,
    pairs,
    wanted,
)
from tests.support.node_models import NODE, needs_node, predicted

pytestmark = needs_node
DEVICE = Numpy()


def agrees(run, tmp_path, *given):
    made = to_javascript(run, tmp_path / "net.mjs", *given, batch=None)
    found = list(predicted(made, *given).values())
    for one, other in zip(found, wanted(run, *given), strict=True):
        np.testing.assert_allclose(one.astype(other.dtype), other, 1e-6, 2e-7)


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


OF_MASKS = {
    "any": lambda b: (b.any(), b.any_dim(1)),
    "all": lambda b: (b.all(), b.all_dim(1)),
    "moved": lambda b: (b.swap_dims(0, 1), b.flip([1]), b.reshape([4])),
    "picked": lambda b: b.select(1, Tensor.from_ints([1, 0], DEVICE)),
    "joined": lambda b: Tensor.cat([b, b.bool_not()], 0),
    "counted": lambda b: (b.int().sum(), b.float().mean()),
    "compared": lambda b: (b.equal_elem(True), b.bool_xor(b.bool_not())),
}
MASKS = {  # how a page may hand over bools
    "booleans": json.dumps,
    "numbers": lambda rows: json.dumps([int(one) for one in rows]),
    "bytes": lambda rows: f"Uint8Array.of({', '.join(str(int(i)) for i in rows)})",
    "a mask of an image": lambda rows: (
        f"Uint8Array.of({', '.join(str(255 * one) for one in rows)})"
    ),
    "floats": lambda rows: f"Float32Array.of({', '.join(str(0.5 * i) for i in rows)})",
}


def ran(made, given):
    """The numbers of each output in Node, for the only input as JavaScript."""
    code = (
        f"const {{ Model }} = await import({json.dumps(made.path.as_uri())});"
        f"const found = (await Model.load()).forward({given});"
        "const rows = Object.values(found).map(({ data }) => [...data]);"
        "console.log(JSON.stringify(rows));"
    )
    asked = [NODE, "--input-type=module", "-e", code]
    return json.loads(subprocess.check_output(asked, text=True))


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("name", OF_MASKS)
def test_bools_may_come_as_anything_that_is_true_or_false(name, kind, tmp_path):
    rows = [True, True, False, False]
    b = Tensor.from_numpy(np.array(rows).reshape(2, 2), DEVICE)
    made = to_javascript(OF_MASKS[name], tmp_path / "net.mjs", b, batch=None)
    found = ran(made, MASKS[kind](rows))
    for one, other in zip(found, wanted(OF_MASKS[name], b), strict=True):
        np.testing.assert_allclose(one, other.ravel().astype(float), 1e-6)


def test_numbers_in_a_plain_array_become_float32(tmp_path):
    x = Tensor.from_floats([0.1, 0.2], DEVICE)
    made = to_javascript(lambda x: x.equal_elem(0.1), tmp_path / "net.mjs", x)
    assert ran(made, "[0.1, 0.2]") == [[1, 0]]


#: Where the last digit of a float32 decides.
ON_THE_EDGE = {
    "equal": lambda x: x.equal_elem(0.1),
    "not_equal": lambda x: x.not_equal_elem(0.3),
    "greater": lambda x: x.greater_elem(0.3),
    "lower": lambda x: x.lower_elem(0.7),
    "floor": lambda x: (x / 0.1).floor(),
    "ceil": lambda x: (x * 10.0).ceil(),
    "trunc": lambda x: (x / 0.1).trunc(),
    "round": lambda x: (x * 5.0).round(),
    "int": lambda x: (x * 1e6).int(),
    "remainder": lambda x: x.remainder_scalar(0.1),
    "there and back": lambda x: ((x * 3.0) / 3.0).equal(x),
    "beyond the digits": lambda x: x + 1e8 - 1e8,
    "threshold": lambda x: activation.threshold(x, 0.3, 0.1),
    "hard_shrink": lambda x: activation.hard_shrink(x, 0.3),
    "soft_shrink": lambda x: activation.soft_shrink(x, 0.1),
    "thresholded_relu": lambda x: activation.thresholded_relu(x, 0.7),
    "functions": lambda x: (x.sqrt() * x.sqrt()).equal(x),
    "square": lambda x: (x.square() - 0.01).sign(),
    "recip": lambda x: (x.recip() * x).equal_elem(1.0),
    "whole": lambda x: (x * 1e9).int().float() - 1e8,
    "a whole literal": lambda x: (x + 16777217) - 16777216,
    "clamp": lambda x: x.clamp(0.1, 0.7).equal(x),
    "powf": lambda x: x.powf_scalar(2.0).sub_scalar(0.01).sign(),
    "batch": lambda x: (x / x.shape[0]).mul_scalar(x.shape[0]).equal(x),
}


@pytest.mark.parametrize("name", ON_THE_EDGE)
def test_every_step_of_a_chain_is_rounded_to_float32(name, tmp_path):
    tenths = np.arange(-20, 20, dtype=np.float32) / np.float32(10)
    x = Tensor.from_numpy(np.append(tenths, np.float32(1 / 3)), DEVICE)
    made = to_javascript(ON_THE_EDGE[name], tmp_path / "net.mjs", x)
    (found,) = predicted(made, x).values()
    (other,) = wanted(ON_THE_EDGE[name], x)
    np.testing.assert_array_equal(found, other)


def test_whole_numbers_wrap_around_at_every_step_of_a_chain(tmp_path):
    i = Tensor.from_numpy(np.int32([2**31 - 1, -(2**31), 5]), DEVICE)

    def run(i):
        return (i + 1) / 2, (-i) / 2, i.abs().lower_elem(0)

    made = to_javascript(run, tmp_path / "net.mjs", i)
    half, turned, is_below = predicted(made, i).values()
    assert half.tolist() == [-(2**30), 1 - 2**30, 3]
    assert turned.tolist() == [1 - 2**30, -(2**30), -2]
    assert is_below.tolist() == [0, 1, 0]


def test_casts_to_narrow_whole_numbers_wrap_around_as_here(tmp_path):
    agrees(narrowed, tmp_path, Tensor.from_floats(BEYOND, DEVICE))
