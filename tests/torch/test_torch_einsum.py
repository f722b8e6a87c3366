"""Einstein's sums, deviations, norms and logs of sums, against PyTorch.

Equations are drawn at random, with letters that repeat, `...`, implicit results and
sizes of 1 that stretch: values, gradients and gradients of gradients.
"""

import sys

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.backend.base import Decorator
from burnbook.core.dtypes import Int
from burnbook.tensor import Tensor, linalg
from burnbook.tensor.contraction import _path
from tests.torch.shared import torch

PLAIN = Autodiff(Numpy(float="f64", compiled=False))
COMPILED = Autodiff(Numpy(float="f64"))
SINGLE = Autodiff(Numpy())
DEVICES = pytest.mark.parametrize(
    "device", [PLAIN, COMPILED, SINGLE], ids=["plain", "compiled", "f32"]
)
SIZES = {"a": 2, "b": 3, "c": 1, "d": 4, "X": 2, "Y": 3}


def draw(seed, most=5):
    """An equation and arrays for it."""
    rng = np.random.default_rng(seed)
    terms, arrays = [], []
    for _ in range(1 + seed % most):
        letters = rng.choice(list(SIZES), size=int(rng.integers(1, 4))).tolist()
        shape = [SIZES[a] for a in letters]
        if len(set(letters)) == len(letters) and rng.random() < 0.2:
            shape[0] = 1  # stretches
        if rng.random() < 0.35:
            at = int(rng.integers(len(letters) + 1))
            more = [int(rng.choice([1, 5])), int(rng.choice([1, 2]))]
            shape[at:at] = more[int(rng.integers(3)) :]
            letters.insert(at, "...")
        terms.append("".join(letters))
        arrays.append(rng.standard_normal(shape))
    equation = ",".join(terms)
    if rng.random() < 0.7:
        known = sorted(set(equation) - set(",."))
        kept = rng.permutation(known)[: int(rng.integers(len(known) + 1))].tolist()
        if "..." in equation and rng.random() < 0.8:
            kept.insert(int(rng.integers(len(kept) + 1)), "...")
        equation += "->" + "".join(kept)
    return equation, arrays


def close(found, wanted, limit, what):
    wanted = wanted.detach().numpy()
    found = np.asarray(found)
    assert found.shape == (wanted.shape or (1,)), what
    wanted = wanted.reshape(found.shape)
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    assert np.allclose(found, wanted, rtol=limit, atol=limit * scale), what


@DEVICES
def test_random_equations_give_pytorchs_values_and_gradients(device):
    limit = 1e-4 if device is SINGLE else 1e-9
    for seed in range(150):
        equation, arrays = draw(seed)
        mine = [Tensor.from_numpy(a, device).require_grad() for a in arrays]
        others = [torch.tensor(a, requires_grad=True) for a in arrays]
        out, wanted = Tensor.einsum(equation, *mine), torch.einsum(equation, *others)
        close(out, wanted, limit, equation)
        (wanted**2).sum().backward()
        grads = (out * out).sum().backward()
        for x, other in zip(mine, others, strict=True):
            close(x.grad(grads), other.grad, limit, equation)


def test_second_derivatives_equal_pytorchs():
    outer = Autodiff(COMPILED)
    for seed in range(40):
        equation, arrays = draw(seed, 3)
        low = [Tensor.from_numpy(a, COMPILED).require_grad() for a in arrays]
        mine = [Tensor.from_inner(x, outer).require_grad() for x in low]
        out = Tensor.einsum(equation, *mine)
        grads = (out * out).sum().backward()
        slopes = sum((x.grad(grads) * x.grad(grads)).sum() for x in mine)
        again = slopes.backward()
        others = [torch.tensor(a, requires_grad=True) for a in arrays]
        total = (torch.einsum(equation, *others) ** 2).sum()
        first = torch.autograd.grad(total, others, create_graph=True)
        second = torch.autograd.grad(sum((g * g).sum() for g in first), others)
        for x, wanted in zip(low, second, strict=True):
            close(x.grad(again), wanted, 1e-8, equation)


def test_whole_numbers_stay_whole():
    for seed in range(60):
        equation, arrays = draw(seed)
        arrays = [np.round(a * 3).astype(np.int64) for a in arrays]
        out = Tensor.einsum(equation, *[Tensor.from_data(a, kind=Int) for a in arrays])
        assert out.kind is Int
        close(out, torch.einsum(equation, *map(torch.tensor, arrays)), 0, equation)


def test_dims_of_no_size_give_zeros():
    x, y = np.ones((2, 0)), np.ones((0, 3))
    for equation in ("ij,jk->ik", "ij,jk->", "ij,jk->kji", "ij,jk->j"):
        out = Tensor.einsum(equation, Tensor.from_numpy(x), Tensor.from_numpy(y))
        wanted = torch.einsum(equation, torch.tensor(x), torch.tensor(y))
        close(out, wanted, 0, equation)


@pytest.mark.parametrize("missing", [False, True], ids=["opt_einsum", "NumPy"])
def test_the_cheapest_order_comes_first(monkeypatch, missing):
    if missing:
        monkeypatch.setitem(sys.modules, "opt_einsum", None)
    else:
        pytest.importorskip("opt_einsum")
    _path.cache_clear()
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in ((90, 80), (80, 70), (70, 1))]
    backend = Seen(Numpy(float="f64"))
    tensors = [Tensor.from_numpy(a, backend) for a in arrays]
    out = Tensor.einsum("ij,jk,kl->il", *tensors)
    assert np.allclose(np.asarray(out), arrays[0] @ (arrays[1] @ arrays[2]))
    assert max(backend.sizes) < 90 * 70  # never the product of the first two
    many = [f"{chr(97 + i)}{chr(98 + i)}" for i in range(20)]
    chain = [rng.standard_normal((2, 2)) for _ in many]
    tensors = [Tensor.from_numpy(a, Numpy(float="f64")) for a in chain]
    found = Tensor.einsum(f"{','.join(many)}->au", *tensors)
    assert np.allclose(np.asarray(found), np.linalg.multi_dot(chain))
    _path.cache_clear()


class Seen(Decorator):
    """A backend that remembers how many elements each product has."""

    interned = False

    def __init__(self, inner):
        super().__init__(inner)
        self.sizes = []

    def run(self, op, values, attrs):
        out = self._inner.run(op, values, attrs)
        if op.name in ("matmul", "mul"):
            self.sizes.append(out.size)
        return out


DIMS = [None, 1, -1, (0, 2), [1, 2], (0, 1, 2), [-1]]
OF_DIMS = {
    "std": (
        lambda x, d: x.std(d),
        lambda x, d: x.std(d, keepdim=True) if d is not None else x.std(),
    ),
    "std_bias": (
        lambda x, d: x.std_bias(d),
        lambda x, d: x.std(d, correction=0, keepdim=d is not None),
    ),
    "var": (
        lambda x, d: x.var(d),
        lambda x, d: x.var(d, keepdim=True) if d is not None else x.var(),
    ),
    "var_bias": (
        lambda x, d: x.var_bias(d),
        lambda x, d: x.var(d, correction=0, keepdim=d is not None),
    ),
    "logsumexp": (
        lambda x, d: (x * 3).logsumexp(d),
        lambda x, d: (x * 3).logsumexp((0, 1, 2) if d is None else d, d is not None),
    ),
    **{
        f"norm {p}": (
            lambda x, d, p=p: linalg.vector_norm(x, p, d),
            lambda x, d, p=p: torch.linalg.vector_norm(x, p, d, d is not None),
        )
        for p in (1, 2.0, 3, 0.5, float("inf"), -float("inf"))
    },
}


@DEVICES
@pytest.mark.parametrize("name", OF_DIMS)
def test_along_one_dim_some_or_all_it_equals_pytorch(name, device):
    limit = 1e-4 if device is SINGLE else 1e-9
    ours, theirs = OF_DIMS[name]
    array = np.random.default_rng(1).standard_normal((2, 3, 4))
    for dims in DIMS:
        x = Tensor.from_numpy(array, device).require_grad()
        other = torch.tensor(array, requires_grad=True)
        given = tuple(dims) if isinstance(dims, list) else dims
        out, wanted = ours(x, dims), theirs(other, given)
        close(out, wanted, limit, (name, dims))
        (wanted**2).sum().backward()
        grads = (out * out).sum().backward()
        close(x.grad(grads), other.grad, limit, (name, dims))


@pytest.mark.parametrize("name", OF_DIMS)
def test_its_second_derivative_equals_pytorchs(name):
    ours, theirs = OF_DIMS[name]
    array = np.random.default_rng(2).standard_normal((2, 3, 4))
    for dims in (None, 1, (0, 2)):
        low = Tensor.from_numpy(array, COMPILED).require_grad()
        x = Tensor.from_inner(low, Autodiff(COMPILED)).require_grad()
        out = ours(x, dims)
        slope = x.grad((out * out * out).sum().backward())
        second = low.grad((slope * slope).sum().backward())
        other = torch.tensor(array, requires_grad=True)
        total = (theirs(other, dims) ** 3).sum()
        (first,) = torch.autograd.grad(total, other, create_graph=True)
        (wanted,) = torch.autograd.grad((first * first).sum(), other)
        close(second, wanted, 1e-7, (name, dims))


EDGES = {
    "equal": np.full((2, 3), 2.0),
    "large": np.array([[1000.0, 1000.0], [-1000.0, 900.0]]),
    "nothing": np.full((2, 2), -np.inf),
    "infinite": np.array([[np.inf, 1.0], [-np.inf, 1.0]]),
    "not a number": np.array([[np.nan, 1.0], [3.0, 1.0]]),
    "one": np.array([[3.0], [0.0]]),
}


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("name", ["std", "std_bias", "logsumexp", "norm 2.0"])
@pytest.mark.filterwarnings("ignore:std")
def test_at_the_edges_it_equals_pytorch(name, edge):
    ours, theirs = OF_DIMS[name]
    x = Tensor.from_numpy(EDGES[edge], PLAIN).require_grad()
    other = torch.tensor(EDGES[edge], requires_grad=True)
    out, wanted = ours(x, 1), theirs(other, 1)
    assert np.allclose(np.asarray(out), wanted.detach(), equal_nan=True)
    wanted.sum().backward()
    slope = np.asarray(x.grad(out.sum().backward()))
    assert np.allclose(slope, other.grad, equal_nan=True)
