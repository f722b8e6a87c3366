"""Random programs against PyTorch: values, gradients, and gradients of gradients.

A program is a chain of steps drawn from the table below, each on tensors that are
already there; it ends in a weighted sum of what nothing else used. It is drawn once, on
PyTorch's numbers in double precision, and then run in three ways. BURNBOOK_PROGRAMS
says how many are drawn for each way (60 to 150 otherwise), BURNBOOK_PROGRAM=7 one.
"""

import functools
import operator
import os
from typing import NamedTuple

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.tensor import Int, Tensor, activation, linalg, module as functional
from tests.torch.shared import torch

F = torch.nn.functional
MOST = 40.0  # what is larger is squashed, so that errors of rounding stay small


class Step(NamedTuple):
    """One operation: its name, the places of its inputs, and its numbers."""

    name: str
    inputs: tuple[int, ...]
    numbers: tuple


def none(rng, *shapes):
    return ()


def a_dim(rng, shape):
    return (int(rng.integers(len(shape))),)


def a_dim_of(least):
    def choose(rng, shape):
        dims = [d for d, n in enumerate(shape) if n >= least]
        return (int(rng.choice(dims)),) if dims else None

    return choose


def two_dims(rng, shape):
    return tuple(map(int, rng.integers(len(shape), size=2)))


def an_order(rng, shape):
    return (tuple(map(int, rng.permutation(len(shape)))),)


def a_shape(rng, shape):
    """The same elements in rows of another length."""
    size = int(np.prod(shape))
    lengths = [n for n in range(1, size + 1) if size % n == 0]
    return ([-1, int(rng.choice(lengths))],)


def a_range(rng, shape):
    dim = int(rng.integers(len(shape)))
    start = int(rng.integers(shape[dim]))
    return (dim, start, int(rng.integers(1, shape[dim] - start + 1)))


def places(rng, shape):
    """Some places along a dim, twice the same among them."""
    dim = int(rng.integers(len(shape)))
    return (dim, rng.integers(shape[dim], size=int(rng.integers(1, 6))).tolist())


def pairs(rng, shape):
    """Indices into the first dim and the last, some of them negative or repeated."""
    if len(shape) < 2:
        return None
    rows, columns = (
        rng.integers(-shape[d], shape[d], size=3).tolist() for d in (0, -1)
    )
    return rows, columns


def a_step(rng, shape):
    return (int(rng.integers(shape[0])), int(rng.integers(1, 4)))


def stretched(rng, x, y):
    """Whether y stretches to x, by NumPy's rules for equal ranks."""
    fits = len(x) == len(y) and all(b in (a, 1) for a, b in zip(x, y, strict=True))
    return () if fits else None


def equal_but_one(rng, x, y):
    if len(x) != len(y):
        return None
    dims = [d for d in range(len(x)) if (*x[:d], *x[d + 1 :]) == (*y[:d], *y[d + 1 :])]
    return (int(rng.choice(dims)),) if dims else None


def a_product(rng, x, y):
    return () if len(x) == len(y) >= 2 and x[-1] == y[-1] and x[:-2] == y[:-2] else None


def images(rng, shape):
    return (
        (int(rng.integers(1, 3)),) if len(shape) == 4 and min(shape[2:]) >= 3 else None
    )


def lines(rng, shape):
    return (int(rng.integers(1, 3)),) if len(shape) == 3 and shape[2] >= 3 else None


def filters(rank):
    def choose(rng, x, w):
        same = len(x) == len(w) == rank + 2 and x[1] == w[1]
        fits = same and all(a >= b for a, b in zip(x[2:], w[2:], strict=True))
        return (int(rng.integers(1, 3)), int(rng.integers(0, 2))) if fits else None

    return choose


def ints(device, values):
    return Tensor.from_data(np.asarray(values), device, kind=Int)


def put(x, where, value):
    out = x.clone()
    out[where] = value
    return out


def added_at(x, places, value):
    spots = torch.tensor(places)
    return x.index_add(0, spots, value.expand((len(places), *x.shape[1:])))


def conv(dims):
    def ours(x, w, stride, padding):
        sizes = [stride] * dims, [padding] * dims, [1] * dims
        settings = functional.ConvOptions(*sizes, 1)
        return getattr(functional, f"conv{dims}d")(x, w, None, settings)

    return ours


def pooled(name):
    return lambda x, stride: getattr(functional, name)(x, 3, stride)


# name: (which numbers it takes, ours, PyTorch's unless it is written alike)
# with "!" it needs distinct elements
TABLE = {
    "neg": (none, lambda x: -x),
    "exp": (none, lambda x: x.tanh().exp()),
    "log": (none, lambda x: (x.abs() + 0.5).log()),
    "sqrt": (none, lambda x: (x * x + 0.1).sqrt()),
    "recip": (none, lambda x: (x * x + 0.5).recip(), lambda x: 1 / (x * x + 0.5)),
    "sin": (none, lambda x: x.sin(), torch.sin),
    "tanh": (none, lambda x: x.tanh(), torch.tanh),
    "erf": (none, lambda x: x.erf(), torch.erf),
    "sigmoid": (none, activation.sigmoid, torch.sigmoid),
    "relu": (none, activation.relu, torch.relu),
    "gelu": (none, activation.gelu, F.gelu),
    "silu": (none, activation.silu, F.silu),
    "softplus": (none, lambda x: activation.softplus(x, 1.0), F.softplus),
    "abs": (none, lambda x: x.abs(), torch.abs),
    "clamp": (none, lambda x: x.clamp(-0.7, 0.9)),
    "scale": (none, lambda x: x * 1.3 - 0.2),
    "from": (none, lambda x: 2.0 - x),
    "under": (none, lambda x: 1.0 / (x * x + 1)),
    "power": (none, lambda x: (x * x + 0.3) ** 1.5),
    "sum": (none, lambda x: x.sum(), lambda x: x.sum().view(1)),
    "mean": (none, lambda x: x.mean(), lambda x: x.mean().view(1)),
    "max!": (none, lambda x: x.max(), lambda x: x.max().view(1)),
    "sum_dim": (a_dim, lambda x, d: x.sum_dim(d), lambda x, d: x.sum(d, True)),
    "mean_dim": (a_dim, lambda x, d: x.mean_dim(d), lambda x, d: x.mean(d, True)),
    "prod_dim": (a_dim, lambda x, d: x.prod_dim(d), lambda x, d: x.prod(d, True)),
    "max_dim!": (a_dim, lambda x, d: x.max_dim(d), lambda x, d: x.amax(d, True)),
    "min_dim!": (a_dim, lambda x, d: x.min_dim(d), lambda x, d: x.amin(d, True)),
    "var": (a_dim_of(2), lambda x, d: x.var(d), lambda x, d: x.var(d, keepdim=True)),
    "cumsum": (a_dim, lambda x, d: x.cumsum(d)),
    "sort!": (a_dim, lambda x, d: x.sort(d), lambda x, d: x.sort(d).values),
    "topk!": (a_dim_of(2), lambda x, d: x.topk(2, d), lambda x, d: x.topk(2, d)[0]),
    "median!": (a_dim, lambda x, d: x.median(d), lambda x, d: x.median(d, True)[0]),
    "softmax": (a_dim, activation.softmax, torch.softmax),
    "log_softmax": (a_dim, activation.log_softmax, torch.log_softmax),
    "flip": (a_dim, lambda x, d: x.flip([d]), lambda x, d: x.flip(d)),
    "unsqueeze": (a_dim, lambda x, d: x.unsqueeze_dim(d), lambda x, d: x.unsqueeze(d)),
    "swap_dims": (
        two_dims,
        lambda x, a, b: x.swap_dims(a, b),
        lambda x, a, b: x.swapaxes(a, b),
    ),
    "permute": (an_order, lambda x, p: x.permute(list(p)), lambda x, p: x.permute(p)),
    "reshape": (a_shape, lambda x, s: x.reshape(s)),
    "narrow": (a_range, lambda x, d, a, n: x.narrow(d, a, n)),
    "select": (
        places,
        lambda x, d, at: x.select(d, ints(x.device(), at)),
        lambda x, d, at: x.index_select(d, torch.tensor(at)),
    ),
    "pairs": (pairs, lambda x, a, b: x[a, ..., b]),
    "stepped": (a_step, lambda x, start, step: x[start::step]),
    "turned": (
        a_step,
        lambda x, start, step: x[start::-step],
        lambda x, start, step: x[list(range(x.shape[0]))[start::-step]],
    ),
    "set": (
        a_step,
        lambda x, start, step: x.at[start::step].set(x[-1].tanh()),
        lambda x, start, step: put(x, slice(start, None, step), x[-1].tanh()),
    ),
    "add at!": (
        places,
        lambda x, d, at: x.swap_dims(0, d).at[at].add(x.max()),
        lambda x, d, at: added_at(x.swapaxes(0, d), at, x.max()),
    ),
    "std": (
        a_dim_of(2),
        lambda x, d: (x + x.sin() * 3).std(d),
        lambda x, d: (x + x.sin() * 3).std(d, keepdim=True),
    ),
    "logsumexp": (
        a_dim,
        lambda x, d: x.logsumexp(d),
        lambda x, d: x.logsumexp(d, True),
    ),
    "norm": (
        a_dim,
        lambda x, d: linalg.vector_norm(x + 0.1, 2.0, d),
        lambda x, d: torch.linalg.vector_norm(x + 0.1, 2.0, d, True),
    ),
    "einsum": (
        a_product,
        lambda x, y: Tensor.einsum("...ij,...kj->...ik", x, y),
        lambda x, y: torch.einsum("...ij,...kj->...ik", x, y),
    ),
    "repeat": (
        a_dim,
        lambda x, d: x.repeat([2 if i == d else 1 for i in range(len(x.dims()))]),
        lambda x, d: x.repeat([2 if i == d else 1 for i in range(x.ndim)]),
    ),
    "tril": (lambda rng, x: () if len(x) >= 2 else None, lambda x: x.tril(0)),
    "masked": (
        none,
        lambda x: x.mask_fill(x > 0.3, -1.0),
        lambda x: x.masked_fill(x > 0.3, -1.0),
    ),
    "add": (stretched, lambda x, y: x + y, torch.add),
    "sub": (stretched, lambda x, y: x - y, torch.sub),
    "mul": (stretched, lambda x, y: x * y, torch.mul),
    "div": (stretched, lambda x, y: x / (y * y + 1)),
    "powf": (stretched, lambda x, y: (x * x + 0.5) ** y.tanh()),
    "max_pair": (stretched, lambda x, y: x.max_pair(y), torch.maximum),
    "where": (
        stretched,
        lambda x, y: (x * 1).mask_where(x > 0, y.expand(list(x.dims()))),
        lambda x, y: torch.where(x > 0, y.expand(x.shape), x),
    ),
    "cat": (
        equal_but_one,
        lambda x, y, d: Tensor.cat([x, y], d),
        lambda x, y, d: torch.cat([x, y], d),
    ),
    "matmul": (
        a_product,
        lambda x, y: x @ y.swap_dims(-1, -2),
        lambda x, y: x @ y.swapaxes(-1, -2),
    ),
    "conv1d": (
        *(filters(1), conv(1)),
        lambda x, w, s, p: F.conv1d(x, w, None, s, p),
    ),
    "conv2d": (
        *(filters(2), conv(2)),
        lambda x, w, s, p: F.conv2d(x, w, None, s, p),
    ),
    "max_pool2d!": (images, pooled("max_pool2d"), lambda x, s: F.max_pool2d(x, 3, s)),
    "avg_pool2d": (images, pooled("avg_pool2d"), lambda x, s: F.avg_pool2d(x, 3, s)),
    "max_pool1d!": (lines, pooled("max_pool1d"), lambda x, s: F.max_pool1d(x, 3, s)),
    "avg_pool1d": (lines, pooled("avg_pool1d"), lambda x, s: F.avg_pool1d(x, 3, s)),
}
TABLE = {name: (*row, row[-1])[:3] for name, row in TABLE.items()}
FAMILIES = [  # what the leaves of a program may look like: sizes that go together
    [(3, 4), (3, 4), (3, 1), (5, 4)],
    [(2, 3, 5), (2, 3, 5), (1, 3, 1), (2, 4, 5)],
    [(2, 3, 8), (4, 3, 3), (2, 3, 1)],
    [(2, 2, 6, 7), (3, 2, 3, 3), (2, 2, 1, 7)],
    [(7,), (7,), (1,)],
]
LARGE = [  # above the sizes from which kernels serve
    [(130, 70), (130, 70), (130, 1), (40, 70)],
    [(6, 30, 50), (6, 30, 50), (6, 20, 50)],
    [(8, 3, 200), (6, 3, 3)],
    [(4, 5, 28, 30), (6, 5, 3, 3), (4, 5, 1, 30)],
]


def draw(seed, families=FAMILIES):
    """The leaves of a program and its steps."""
    rng = np.random.default_rng(seed)
    shapes = families[int(rng.integers(len(families)))]
    leaves = [rng.standard_normal(shape) for shape in shapes]
    pool = [torch.tensor(leaf) for leaf in leaves]
    steps: list[Step] = []
    names = list(TABLE)
    while len(steps) < 3 + seed % 10:
        name = names[int(rng.integers(len(names)))]
        choose, _, theirs = TABLE[name]
        count = theirs_takes(choose)
        late = rng.random() < 0.6  # rather what was just made
        inputs = tuple(
            len(pool) - 1 if late and not i else int(rng.integers(len(pool)))
            for i in range(count)
        )
        given = [pool[i] for i in inputs]
        numbers = choose(rng, *[tuple(x.shape) for x in given])
        if numbers is None or (name.endswith("!") and not distinct(given[0])):
            continue
        out = theirs(*given, *numbers)
        if out.numel() > 40_000 or out.ndim > 5 or not out.isfinite().all():
            continue
        if out.numel() and float(out.abs().max()) > MOST:
            continue
        steps.append(Step(name, inputs, numbers))
        pool.append(out)
    return leaves, steps


def theirs_takes(choose):
    """How many tensors a step takes, as the function says that chooses its numbers."""
    code = choose.__code__
    return 1 if choose is none else code.co_argcount - 1


def distinct(x):
    """No two numbers close to each other: the larger one is the same for everybody."""
    values = np.sort(x.detach().numpy().ravel())
    return values.size < 2 or float(np.diff(values).min()) > 1e-7


def run(leaves, steps, side):
    """The weighted sum of all results that no later step reads."""
    pool, used = list(leaves), set()
    for name, inputs, numbers in steps:
        pool.append(TABLE[name][side](*[pool[i] for i in inputs], *numbers))
        used |= set(inputs)
    made = pool[len(leaves) :]
    last = [out for i, out in enumerate(made, len(leaves)) if i not in used]
    return added((out * weights_of(out, side)).sum() for out in last), made


def added(parts):
    return functools.reduce(operator.add, parts)


def weights_of(out, side):
    shape = tuple(out.shape)
    weights = np.cos(np.arange(int(np.prod(shape))) * 0.7).reshape(shape)
    if side == 2:
        return torch.tensor(weights)
    return Tensor.from_numpy(weights.astype(out.device().float_dtype), out.device())


def expected(leaves, steps):
    """PyTorch's results, and its gradients of the leaves."""
    given = [torch.tensor(leaf, requires_grad=True) for leaf in leaves]
    total, outs = run(given, steps, 2)
    first = torch.autograd.grad(
        total.sum(), given, create_graph=True, allow_unused=True
    )
    return given, outs, first


def close(found, wanted, limit, what):
    wanted = wanted.detach().numpy(force=True)
    found = np.zeros_like(wanted) if found is None else np.asarray(found)
    assert found.shape == wanted.shape, what
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    assert np.allclose(found, wanted, rtol=limit, atol=limit * scale), what


def compare(leaves, steps, device, limit):
    _, outs, first = expected(leaves, steps)
    kind = device.float_dtype
    mine = [Tensor.from_numpy(x.astype(kind), device).require_grad() for x in leaves]
    total, found = run(mine, steps, 1)
    for step, a, b in zip(steps, found, outs, strict=True):
        close(a.detach(), b, limit, step)
    grads = total.backward()
    for n, (a, b) in enumerate(zip(mine, first, strict=True)):
        if b is not None:
            close(a.grad(grads), b, limit, f"gradient of leaf {n}\n{steps}")


def seeds(usual):
    one = os.environ.get("BURNBOOK_PROGRAM")
    asked = int(os.environ.get("BURNBOOK_PROGRAMS") or usual)
    return [int(one)] if one else range(asked)


def test_programs_are_the_same_each_time_and_use_every_step():
    drawn = [draw(seed)[1] for seed in range(300)]
    assert [draw(seed)[1] for seed in range(5)] == drawn[:5]
    assert {step.name for steps in drawn for step in steps} == set(TABLE)


@pytest.mark.parametrize("compiled", [False, None], ids=["plain", "compiled"])
@pytest.mark.parametrize("part", range(10))
def test_values_and_gradients_equal_pytorch(part, compiled):
    device = Autodiff(Numpy(float="f64", compiled=compiled))
    for seed in list(seeds(150))[part::10]:
        compare(*draw(seed), device, 1e-8)


@pytest.mark.parametrize("compiled", [False, None], ids=["plain", "compiled"])
@pytest.mark.parametrize("part", range(5))
def test_large_programs_in_single_precision(part, compiled):
    device = Autodiff(Numpy(compiled=compiled))
    for seed in list(seeds(60))[part::5]:
        compare(*draw(seed, LARGE), device, 2e-3)


@pytest.mark.parametrize("part", range(5))
def test_gradients_of_gradients_equal_pytorch(part):
    inner = Autodiff(Numpy(float="f64", compiled=False))
    outer = Autodiff(inner)
    for seed in list(seeds(60))[part::5]:
        leaves, steps = draw(seed)
        given, _, first = expected(leaves, steps)
        slopes = sum((g * g).sum() for g in first if g is not None and g.requires_grad)
        if not isinstance(slopes, torch.Tensor):
            continue  # a linear program: nothing to differentiate again
        second = torch.autograd.grad(slopes, given, allow_unused=True)
        low = [Tensor.from_numpy(x, inner).require_grad() for x in leaves]
        mine = [Tensor.from_inner(x, outer).require_grad() for x in low]
        grads = run(mine, steps, 1)[0].backward()
        total = added(
            (x.grad(grads) * x.grad(grads)).sum()
            for x, g in zip(mine, first, strict=True)
            if g is not None and g.requires_grad
        )
        if not total._tracked():  # linear for us, and then its slopes are zero
            assert all(x is None or not x.any() for x in second), steps
            continue
        again = total.backward()
        for n, (x, wanted) in enumerate(zip(low, second, strict=True)):
            if wanted is not None:
                close(x.grad(again), wanted, 1e-7, f"second, leaf {n}\n{steps}")
