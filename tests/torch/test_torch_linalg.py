"""Inverse, equations and log determinant equal PyTorch's, with their gradients."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ShapeError
from burnbook.tensor import Tensor, linalg
from tests.support.refusals import refused
from tests.torch.shared import close, leaves, same, torch

DEVICES = {
    "f64": Autodiff(Numpy(float="f64")),
    "f32": Autodiff(Numpy(compiled=False)),
    "compiled": Autodiff(Numpy()),
}
TWICE = Autodiff(Autodiff(Numpy(float="f64")))
RNG = np.random.default_rng(3)


def square(*batch, n=4):
    return RNG.normal(size=(*batch, n, n)) + 3 * np.eye(n)


CASES = {
    "inv": (linalg.inv, torch.linalg.inv, square()),
    "inv of many": (linalg.inv, torch.linalg.inv, square(2, 3)),
    "solve": (linalg.solve, torch.linalg.solve, square(), RNG.normal(size=(4, 2))),
    "solve many": (
        linalg.solve, torch.linalg.solve, square(5), RNG.normal(size=(5, 4, 3))
    ),
    "solve with one matrix": (
        linalg.solve, torch.linalg.solve, square(1), RNG.normal(size=(5, 4, 3))
    ),
    "solve for a vector": (
        linalg.solve, torch.linalg.solve, square(), RNG.normal(size=4)
    ),
    "slogdet": (
        lambda x: linalg.slogdet(x)[1].reshape([1]),
        lambda x: torch.linalg.slogdet(x)[1].reshape(1),
        square(),
    ),
    "slogdet of many": (
        lambda x: linalg.slogdet(x)[1],
        lambda x: torch.linalg.slogdet(x)[1],
        -square(2, 3, n=3),
    ),
}  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name, device):
    ours, theirs, *arrays = CASES[name]
    rtol = None if device == "f64" else 2e-5
    same(ours, theirs, DEVICES[device], *arrays, rtol=rtol)


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_gradients(name):
    ours, theirs, *arrays = CASES[name]
    mine, others = leaves(TWICE, *arrays)
    first = ours(*mine).square().sum().backward()
    total = sum(x.grad(first).square().sum() for x in mine)
    wanted = torch.autograd.grad(
        theirs(*others).square().sum(), others, create_graph=True
    )
    sum(x.square().sum() for x in wanted).backward()
    second = total.backward()
    for x, y in zip(mine, others, strict=True):
        inner = x.inner()
        close(inner.grad(second), y.grad, rtol=1e-8)


def test_signs_of_determinants():
    x = np.stack([np.eye(3), -np.eye(3), np.zeros((3, 3))]).astype(np.float32)
    sign, log = linalg.slogdet(Tensor.from_numpy(x))
    wanted = torch.linalg.slogdet(torch.from_numpy(x))
    assert np.asarray(sign).tolist() == wanted[0].tolist() == [1, -1, 0]
    assert np.asarray(log).tolist() == wanted[1].tolist()
    large = np.eye(200, dtype=np.float32) * 1e3  # det is 1e600
    found = linalg.slogdet(Tensor.from_numpy(large))[1]
    np.testing.assert_allclose(np.asarray(found), [200 * np.log(1e3)], rtol=1e-6)


def test_what_has_no_solution_is_refused():
    one, none = Tensor.ones([2, 2]), Tensor.ones([2, 3])
    refused(ShapeError, lambda: linalg.solve(one, one), "solve: ", "singular")
    refused(ShapeError, lambda: linalg.solve(none, one), "solve: ", "not square")
    refused(ShapeError, lambda: linalg.solve(one, none.T), "solve: ", "[3, 2]")
    refused(ShapeError, lambda: linalg.inv(none), "inverse: ", "not square")
