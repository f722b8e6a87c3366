"""What stands in brackets, against PyTorch: values, gradients and second derivatives.

Brackets are drawn at random: ints, slices with steps, `None` and `...`, lists and
tensors of indices (negative ones and repeated ones among them), and masks. NumPy is
asked about steps below 0, which PyTorch does not have.
"""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.tensor import Bool, Int, Tensor
from tests.torch.shared import torch

SHAPES = [(5,), (3, 4), (4, 2, 3), (2, 3, 2, 4)]
DEVICES = [
    Autodiff(Numpy(float="f64", compiled=False)),
    Autodiff(Numpy(float="f64")),
    Autodiff(Numpy()),
    Autodiff(Numpy(float="f64", int="i8")),
]
IDS = ["plain", "compiled", "f32", "i8"]


def a_slice(rng, size):
    start, stop = sorted(rng.choice(size + 1, 2, replace=False).tolist())
    step = int(rng.integers(1, 4))
    ends = [start, stop if rng.random() < 0.7 else None]
    if rng.random() < 0.3 and start < size:
        ends[0] = start - size
    return slice(*ends, step if rng.random() < 0.5 else None)


def indices(rng, size, shape, distinct):
    if distinct:
        flat = rng.permutation(size)[: int(np.prod(shape))]
        flat = flat if flat.size == np.prod(shape) else flat[:1]
        out = flat.reshape(shape if flat.size == np.prod(shape) else (1,))
    else:
        out = rng.integers(size, size=shape)
    return out - size * (rng.random(out.shape) < 0.3)


def draw(seed, distinct=False):
    """A shape, and brackets for it: arrays stand for tensors, of indices or of truth.

    distinct: no element is named twice.
    """
    rng = np.random.default_rng(seed)
    shape = SHAPES[seed % len(SHAPES)]
    if rng.random() < 0.15:
        return shape, (rng.random(shape) < 0.5,)
    parts, dim = [], 0
    common = tuple(map(int, rng.integers(1, 4, size=int(rng.integers(1, 3)))))
    taken = 0
    while dim < len(shape):
        size, kind = shape[dim], rng.choice(["int", "slice", "all", "pick", "mask"])
        if kind == "pick" and not (distinct and taken):
            own = common if rng.random() < 0.7 else (1,)
            parts.append(indices(rng, size, own, distinct))
            taken += 1
        elif kind == "mask" and not taken:
            rank = int(rng.integers(1, min(3, len(shape) - dim + 1)))
            mask = rng.random(shape[dim : dim + rank]) < 0.6
            mask.reshape(-1)[0] = True
            parts.append(mask)
            common, taken, dim = (int(mask.sum()),), taken + 1, dim + rank - 1
        elif kind == "int":
            parts.append(int(rng.integers(-size, size)))
        elif kind == "slice":
            parts.append(a_slice(rng, size))
        else:
            parts.append(slice(None))
        dim += 1
    for part in (None, Ellipsis):
        if rng.random() < 0.2:
            parts.insert(int(rng.integers(len(parts) + 1)), part)
    return shape, tuple(parts)


def ours(parts, device, seed):
    """Arrays as Int and Bool tensors of ours, some as lists."""
    rng = np.random.default_rng(seed)
    found = []
    for part in parts:
        if isinstance(part, np.ndarray) and rng.random() < 0.5:
            kind = Bool if part.dtype == bool else Int
            part = Tensor.from_data(part, device, kind)
        elif isinstance(part, np.ndarray) and rng.random() < 0.7:
            part = part.tolist()
        found.append(part)
    return found[0] if len(found) == 1 else tuple(found)


def theirs(parts):
    return tuple(torch.tensor(p) if isinstance(p, np.ndarray) else p for p in parts)


def close(found, wanted, limit=1e-5):
    wanted = wanted.detach().numpy()
    found = np.asarray(found)
    assert found.shape == (wanted.shape or (1,))
    assert np.allclose(found, wanted.reshape(found.shape), rtol=limit, atol=limit)


@pytest.mark.parametrize("device", DEVICES, ids=IDS)
def test_brackets_pick_what_pytorch_picks_and_their_gradients_add_up(device):
    for seed in range(150):
        shape, parts = draw(seed)
        array = np.random.default_rng(seed).standard_normal(shape)
        x = Tensor.from_numpy(array, device).require_grad()
        other = torch.tensor(array, requires_grad=True)
        out, wanted = x[ours(parts, device, seed)], other[theirs(parts)]
        close(out, wanted)
        ((wanted**3).sum()).backward()
        close(x.grad((out**3).sum().backward()), other.grad)


@pytest.mark.parametrize("kind", [Int, Bool])
def test_whole_numbers_and_truth_values_are_picked_alike(kind):
    for seed in range(60):
        shape, parts = draw(seed)
        array = np.random.default_rng(seed).integers(0, 2, shape)
        array = array if kind is Int else array.astype(bool)
        out = Tensor.from_data(array, Numpy(), kind)[ours(parts, Numpy(), seed)]
        assert out.kind is kind
        close(out, torch.tensor(array)[theirs(parts)])


@pytest.mark.parametrize("add", [False, True], ids=["set", "add"])
@pytest.mark.parametrize("device", DEVICES, ids=IDS)
def test_a_changed_copy_equals_pytorchs_and_so_do_both_gradients(device, add):
    for seed in range(120):
        shape, parts = draw(seed, distinct=not add)
        rng = np.random.default_rng(seed)
        array = rng.standard_normal(shape)
        region = tuple(torch.tensor(array)[theirs(parts)].shape)
        size = [n if rng.random() < 0.7 else 1 for n in region]
        size = size[int(rng.integers(len(size) + 1)) :] or [1]
        new = rng.standard_normal(size)
        x, y = (Tensor.from_numpy(a, device).require_grad() for a in (array, new))
        place = x.at[ours(parts, device, seed)]
        out = place.add(y) if add else place.set(y)
        a, b = (torch.tensor(a, requires_grad=True) for a in (array, new))
        wanted = a.clone()
        if add:
            wanted = added(wanted, parts, b)
        else:
            wanted[theirs(parts)] = b
        close(out, wanted)
        grads = (out**3).sum().backward()
        (wanted**3).sum().backward()
        close(x.grad(grads), a.grad)
        close(y.grad(grads) if y.grad(grads) is not None else y * 0, b.grad)


def added(x, parts, values):
    """PyTorch's sum at places that may be named twice, by numbers of elements."""
    places = torch.arange(x.numel()).reshape(x.shape)[theirs(parts)]
    spread = values.expand(places.shape or (1,)).reshape(-1)
    return x.reshape(-1).index_add(0, places.reshape(-1), spread).reshape(x.shape)


@pytest.mark.parametrize("compiled", [False, None], ids=["plain", "compiled"])
def test_a_number_fills_a_place(compiled):
    device = Numpy(compiled=compiled)
    for seed in range(80):
        shape, parts = draw(seed)
        array = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
        brackets = ours(parts, device, seed)
        wanted = torch.tensor(array)
        wanted[theirs(parts)] = 2.5
        close(Tensor.from_numpy(array, device).at[brackets].set(2.5), wanted)
        wanted = added(torch.tensor(array), parts, torch.tensor(2.5))
        close(Tensor.from_numpy(array, device).at[brackets].add(2.5), wanted)


def test_second_derivatives_of_picking_and_setting_equal_pytorchs():
    inner = Autodiff(Numpy(float="f64"))
    outer = Autodiff(inner)
    for seed in range(40):
        shape, parts = draw(seed, distinct=True)
        array = np.random.default_rng(seed).standard_normal(shape)
        low = Tensor.from_numpy(array, inner).require_grad()
        x = Tensor.from_inner(low, outer).require_grad()
        mine = ours(parts, outer, seed)
        block = x[mine]
        total = (block**3).sum() + (x.at[mine].set((block**2).mean()) ** 3).sum()
        total = total + (x.at[mine].add(block * 2) ** 3).sum()
        slope = x.grad(total.backward())
        second = low.grad((slope**2).sum().backward())
        a = torch.tensor(array, requires_grad=True)
        cut = a[theirs(parts)]
        filled = a.clone()
        filled[theirs(parts)] = (cut**2).mean() if cut.numel() else 0.0
        whole = (cut**3).sum() + (filled**3).sum()
        whole = whole + (added(a, parts, cut * 2) ** 3).sum()
        (first,) = torch.autograd.grad(whole, a, create_graph=True)
        (wanted,) = torch.autograd.grad((first**2).sum(), a)
        if cut.numel():
            close(second, wanted, 1e-8)


@pytest.mark.parametrize("device", DEVICES[:2], ids=IDS[:2])
def test_steps_below_zero_go_backward_as_in_numpy(device):
    rng = np.random.default_rng(0)
    for _ in range(120):
        shape = SHAPES[int(rng.integers(1, 4))]
        array = rng.standard_normal(shape)
        parts = []
        for size in shape:
            ends = rng.integers(-size - 2, size + 3, 2).tolist()
            ends = [end if rng.random() < 0.6 else None for end in ends]
            cut = slice(*ends, -int(rng.integers(1, 4)))
            parts.append(cut if range(*cut.indices(size)) else slice(None, None, -1))
        parts = tuple(parts)
        x = Tensor.from_numpy(array, device).require_grad()
        out = x[parts]
        assert np.array_equal(np.asarray(out), array[parts])
        weights = rng.standard_normal(out.dims())
        slope = x.grad((out * Tensor.from_numpy(weights, device)).sum().backward())
        wanted = np.zeros(shape)
        wanted[parts] = weights
        assert np.array_equal(np.asarray(slope), wanted)
        changed = array.copy()
        changed[parts] = weights
        made = x.at[parts].set(Tensor.from_numpy(weights, device))
        assert np.array_equal(np.asarray(made), changed)
        mixed = (*parts[:-1], [0, -1])
        changed = array.copy()
        changed[mixed] = 7.0
        assert np.array_equal(np.asarray(x.at[mixed].set(7.0)), changed)


@pytest.mark.parametrize("compiled", [False, None], ids=["plain", "compiled"])
def test_large_tensors_are_picked_from_and_changed_alike(compiled):
    device = Autodiff(Numpy(compiled=compiled))
    rng = np.random.default_rng(0)
    array = rng.standard_normal((700, 300)).astype(np.float32)
    rows, columns = rng.integers(-700, 700, 2000), rng.integers(300, size=2000)
    mask = array > 0.5
    for parts in (
        (rows,),
        (slice(None), columns),
        (rows, columns),
        (mask,),
        (slice(5, None, 3), slice(1, 290, 2)),
        (slice(3, 600), columns),
    ):
        x = Tensor.from_numpy(array, device).require_grad()
        other = torch.tensor(array, requires_grad=True)
        out, wanted = x[ours(parts, device, 1)], other[theirs(parts)]
        close(out, wanted)
        new = rng.standard_normal(out.dims()).astype(np.float32)
        y = Tensor.from_numpy(new, device).require_grad()
        z = torch.tensor(new, requires_grad=True)
        more = x.at[ours(parts, device, 2)].add(y)
        grads = ((out * y).sum() + (more * more).sum()).backward()
        ((wanted * z).sum() + (added(other, parts, z) ** 2).sum()).backward()
        close(x.grad(grads), other.grad, 1e-3)
        close(y.grad(grads), z.grad, 1e-3)
        filled = torch.tensor(array)
        filled[theirs(parts)] = 1.5
        close(x.at[ours(parts, device, 3)].set(1.5), filled)


def test_pairs_reach_every_row_whatever_whole_numbers_the_device_has():
    device = Numpy(int="i8")
    array = np.arange(400.0, dtype=np.float32).reshape(20, 20)
    x = Tensor.from_numpy(array, device)
    rows, columns = Tensor.from_ints([19, 7], device), Tensor.from_ints([-1, 3], device)
    assert np.asarray(x[rows, columns]).tolist() == [399.0, 143.0]
    assert np.asarray(x.at[rows, columns].set(0.0)).sum() == array.sum() - 542.0
    both = Tensor.from_ints([[19, 19], [7, 3]], device)
    assert np.asarray(x.gather_nd(both)).tolist() == [399.0, 143.0]
