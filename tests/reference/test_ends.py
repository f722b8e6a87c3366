"""Rows of "Coming from …" where numbers end: at 0, far from 1, at infinity and NaN.

The members are the rows of PyTorch and NumPy whose results are compared and that are
about tensors. Both columns get the numbers of ENDS; theirs computes in float32 and in
float64: either may be met, as ours is often the more exact one. An error of ours is no
silent difference. What differs otherwise stands in EXCEPTIONS, with its reason.
"""

import ast
import warnings

import numpy as np
import pytest

from burnbook.core.errors import BurnbookError
from burnbook.prelude import Numpy, Tensor
from tests.reference.test_coming_from import (
    CASES,
    agree,
    plain,
    result_of,
    values_of,
)
from tests.support.other_values import fresh, our_values, save_all

pytest.importorskip("torch", reason="PyTorch is the oracle here")

NAN, INF = np.nan, np.inf
ENDS = {  # x and y
    "zeros": ([[0, -0.0, 0], [0, 0, 0]], [[0, 0, 1], [0, -1, 2]]),
    "signs": ([[-3, -0.5, -1], [2.5, 0.5, -2.5]], [[2, -1.5, 0.5], [0, 0.5, 1]]),
    "tenths": ([[1, 2, 3], [0.3, 0.7, 6]], [[0.1, 0.1, 0.1], [0.1, 0.1, 0.2]]),
    "large": ([[90, 200, 1e4], [-90, -200, 8]], [[91, 200, -1e4], [-90, 200, 0]]),
    "huge": ([[1e18, -1e18, 1], [2, 1e10, 1e18]], [[1, 2, 1e18], [1e9, -1, 3]]),
    "tiny": ([[1e-6, 1e-10, 1e-30], [-1e-6, 1, 2]], [[1e-6, -1e-10, 3], [1, 0, -1]]),
    "infinite": ([[INF, -INF, 1], [0, INF, -INF]], [[INF, INF, 2], [-INF, 0, -INF]]),
    "nan": ([[NAN, 1, 0], [2, NAN, NAN]], [[NAN, NAN, 1], [1, 0, 0]]),
}
LOST = "parts of a sum cancel, and which of their digits are left is chance"
FINITE = "probabilities below the smallest number count as it, so the loss is finite"
LIMIT = "the limit, where PyTorch computes ∞ - ∞"
FIRST = "the rest is taken away first there: of 1 and 0.1 it is 9"
NOWHERE = "as in Burn: where nothing is found, there is no list of places"
EXCEPTIONS = {
    "torch.erfc(x)": "there is no op of it; the remark says that digits are lost",
    "torch.lerp(x, y, 0.5)": "by another formula, which is NaN at other infinities",
    "torch.floor_divide(x, y)": FIRST,
    "np.floor_divide(x, y)": FIRST,
    "x.int()": "whole numbers have 32 bits there, and beyond them they are others",
    "F.layer_norm(x, [3])": LOST,
    "F.group_norm(x, 1)": LOST,
    "torch.cov(x)": LOST,
    "np.cov(x)": LOST,
    "F.binary_cross_entropy_with_logits(x, n.float())": LIMIT,
    "nn.NLLLoss()(x.softmax(1).log(), index)": FINITE,
    "(x > 0.5).nonzero(as_tuple=True)": NOWHERE,
    "(x > 0.5).nonzero()": NOWHERE,
}
OTHERS = {"model", "optimizer", "a", "w", "loss", "optim", "grads", "weight", "image"}
OTHERS |= {"keras", "dataset", "loader", "scheduler", "path"}


def compared(row, theirs):
    names = {n.id for n in ast.walk(ast.parse(theirs.code)) if isinstance(n, ast.Name)}
    code = row.advice.code
    of_tensors = "x" in names and not names & OTHERS
    here = theirs.library in ("torch", "numpy") and code != "-" and "Cupy(" not in code
    return here and of_tensors and not theirs.how


ROWS = [case for case in CASES if compared(*case.values)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return save_all(our_values(), tmp_path_factory.mktemp("rows"))


@pytest.fixture(autouse=True)
def _anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def results(row, theirs, made, ends):
    """Ours, and theirs in both precisions; None where they refuse such numbers."""
    x, y = (np.float32(numbers) for numbers in ENDS[ends])
    values = {**made, "x": Tensor.from_numpy(x, Numpy()), "y": Tensor.from_numpy(y)}
    wanted = []
    for kind in ("f4", "f8"):
        wide = {"x": x.astype(kind), "y": y.astype(kind)}
        if theirs.library == "torch":
            torch = pytest.importorskip("torch")
            wide = {name: torch.from_numpy(array) for name, array in wide.items()}
        try:
            names = {**values_of(theirs.library, values), **wide}
            wanted.append(plain(result_of(theirs.code, names)))
        except (RuntimeError, ValueError, TypeError, IndexError, OverflowError):
            continue  # mixed precisions, or no such numbers
    if not wanted:
        return None
    code = row.advice.code
    own = {**fresh(values, row.section, code), "x": values["x"]}
    return plain(result_of(code, {**values, **own})), wanted


def narrow(value):
    if isinstance(value, (list, tuple)):
        return [narrow(part) for part in value]
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value.astype(np.float32)
    return value


def same(found, wanted):
    """As the rows are compared, and small numbers by their own size."""
    wanted = narrow(wanted)
    if not agree(found, wanted):
        return False
    if isinstance(found, np.ndarray) and found.dtype.kind == "f":
        other = np.asarray(wanted).reshape(found.shape)
        return np.allclose(found, other, rtol=1e-4, atol=1e-37, equal_nan=True)
    return True


def differences(row, theirs, made):
    found = []
    for ends in ENDS:
        try:
            pair = results(row, theirs, made, ends)
        except BurnbookError:
            continue
        if pair and not any(same(pair[0], wanted) for wanted in pair[1]):
            found.append(f"{ends}:\n{pair[0]}\n{theirs.library}:\n{pair[1][0]}")
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("row", "theirs"), ROWS)
def test_a_row_says_the_same_where_numbers_end(made, row, theirs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = differences(row, theirs, made)
    if theirs.code in EXCEPTIONS:
        assert found
    else:
        assert found == []


def test_the_exceptions_are_rows():
    assert set(EXCEPTIONS) <= {theirs.code for _, theirs in (c.values for c in ROWS)}
    assert len(ROWS) > 250
