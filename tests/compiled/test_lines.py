"""Kernels that work along a dim, pick, sort or copy: equal to the plain code.

Every kernel is tried along each dim of shapes that are cut differently: rows, columns,
short and long lines, sizes that no block divides, and sizes of 1.
"""

import numpy as np
import pytest

from burnbook import ops
from burnbook.backend import Numpy
from burnbook.core.errors import DimError
from burnbook.ops import reduce, scan
from burnbook.tensor import Tensor
from tests.support.kernel_checks import agree, family, normal, use_threads

FAMILIES = [
    *("reduce", "product_gradients", "scan", "index"),
    *("sorting", "shape", "powers", "spectrum", "threaded_ufuncs", "binary"),
]
SHAPES = [
    *((1,), (7,), (5000,), (9, 5), (1, 300), (300, 1), (33, 70), (4, 1, 6), (2, 3, 4)),
    *((3, 40, 300), (2, 9000, 3), (200, 20, 20), (1, 1, 1)),
]
EVERY_DIM = [(shape, dim) for shape in SHAPES for dim in range(len(shape))]
ONE = (True,)


def special(*shape, seed=0):
    """Values with NaN, infinities, zeros of both signs and equal elements."""
    x = np.round(normal(*shape, seed=seed) * 4) / 4
    flat = x.reshape(-1)
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, -np.nan], np.float32)
    places = np.random.default_rng(seed).integers(0, flat.size, max(1, flat.size // 9))
    flat[places] = odd[places % 6]
    return x


def places(shape, dim, many, seed=0):
    """Indices along a dim, `many` for each line."""
    sizes = [many if d == dim else n for d, n in enumerate(shape)]
    return np.random.default_rng(seed).integers(0, shape[dim], sizes)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_whole_arrays(kernels, shape):
    x, g = normal(*shape), normal(1, seed=1)
    for op in (ops.sum, ops.mean):
        agree(kernels, op, x)
    for op in (reduce.max, reduce.min):
        agree(kernels, op.backward, g, x, needs=ONE, exact=True)
    near = 1 + x / 100
    agree(kernels, ops.prod, near)
    agree(kernels, ops.prod.backward, g, near, needs=ONE)


@pytest.mark.parametrize(("shape", "dim"), EVERY_DIM, ids=str)
def test_reductions_along_a_dim(kernels, shape, dim):
    x = normal(*shape)
    agree(kernels, ops.sum_dim, x, dim=dim)
    agree(kernels, ops.mean_dim, x, dim=dim - len(shape))
    agree(kernels, ops.length_dim, x, dim=dim)
    near = 1 + x / 100
    agree(kernels, ops.prod_dim, near, dim=dim)
    g = normal(*ops.sum_dim.forward(np, x, dim=dim).shape, seed=1)
    agree(kernels, ops.prod_dim.backward, g, near, dim=dim, needs=ONE)
    target = tuple(1 if d == dim else n for d, n in enumerate(shape))
    if target != shape:
        agree(kernels, ops.sum_to, x, shape=target)


@pytest.mark.parametrize(("shape", "dim"), EVERY_DIM, ids=str)
def test_extremes_along_a_dim(kernels, shape, dim):
    x = special(*shape)
    g = normal(*reduce.max_dim.forward(np, x, dim=dim).shape, seed=1)
    for op in (reduce.max_dim, reduce.min_dim):
        expected = op.backward.forward(np, g, x, dim=dim, needs=ONE)[0]
        found = kernels[op.backward](g, x, dim=dim, needs=ONE)[0]
        assert np.array_equal(found, expected)
    if dim == len(shape) - 1 and shape[dim] >= 32:  # NumPy's own are quicker
        assert kernels[ops.argmax](x, dim=dim) is None
        return
    for op in (ops.argmax, ops.argmin, ops.max_dim, ops.min_dim):
        agree(kernels, op, x, dim=dim, exact=True)


@pytest.mark.parametrize(
    ("shape", "target"),
    [
        ((3, 40, 50), (1, 40, 1)),
        ((3, 40, 50), (50,)),
        ((3, 40, 50), (1, 1, 1)),
        ((3, 1, 5, 4), (1, 1, 5, 1)),
        ((2, 3, 4, 5), (3, 1, 5)),
    ],
    ids=str,
)
def test_sums_over_what_was_stretched(kernels, shape, target):
    agree(kernels, ops.sum_to, normal(*shape), shape=target)
    assert kernels[ops.sum_to](normal(*shape), shape=shape) is None


@pytest.mark.parametrize(("shape", "dim"), EVERY_DIM, ids=str)
def test_scans(kernels, shape, dim):
    x, g = normal(*shape), normal(*shape, seed=1)
    agree(kernels, ops.cumsum, x, dim=dim, exact=True)
    agree(kernels, ops.cumsum.backward, g, dim=dim, needs=ONE, exact=True)
    numbers = (x * 9).astype(np.int64)
    agree(kernels, ops.cumsum, numbers, dim=dim, exact=True)
    near = 1 + x / 100
    agree(kernels, ops.cumprod, near, dim=dim, exact=True)
    out = ops.cumprod.forward(np, near, dim=dim)
    agree(kernels, ops.cumprod.backward, g, near, out, dim=dim, needs=ONE)
    scale = normal(*shape, seed=2) / 2
    agree(kernels, ops.linear_scan, x, scale, dim=dim)
    out = scan.linear_scan.forward(np, x, scale, dim=dim)
    for needs in ((True, True), (False, True), (True, False)):
        kept = (g, scale, out)
        agree(kernels, ops.linear_scan.backward, *kept, dim=dim, needs=needs)


@pytest.mark.parametrize(("shape", "dim"), EVERY_DIM, ids=str)
def test_running_extremes_and_nan(kernels, shape, dim):
    x, g = special(*shape), normal(*shape, seed=1)
    for op in (ops.cummax, ops.cummin):
        agree(kernels, op, x, dim=dim, exact=True)
        out = op.forward(np, x, dim=dim)
        agree(kernels, op.backward, g, out, dim=dim, needs=ONE)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize(("shape", "dim"), EVERY_DIM, ids=str)
def test_picking(kernels, shape, dim, dtype):
    x = (normal(*shape) * 100).astype(dtype)
    for many in (1, 5, shape[dim]):
        indices = places(shape, dim, many)
        agree(kernels, ops.gather, x, indices, dim=dim, exact=True)
        line = places(shape, dim, many).reshape(-1)[:many].copy()
        if dim == len(shape) - 1 or x.size // shape[dim] * many >= 1 << 17:
            agree(kernels, ops.select, x, line, dim=dim, exact=True)
        else:  # NumPy takes whole slices as quickly
            assert kernels[ops.select](x, line, dim=dim) is None


@pytest.mark.parametrize(("shape", "dim"), EVERY_DIM, ids=str)
def test_adding_at_indices(kernels, shape, dim):
    x = normal(*shape)
    for many in (1, 5, 40):
        indices = places(shape, dim, many)
        values = normal(*indices.shape, seed=1)
        agree(kernels, ops.scatter, x, indices, values, dim=dim)
        kept = (values, indices, shape)
        agree(kernels, ops.gather.backward, *kept, dim=dim, needs=(True, False))
        line = indices.reshape(-1)[:many].copy()
        agree(kernels, ops.select_assign, x, line, values, dim=dim)
        kept = (values, line, shape)
        agree(kernels, ops.select.backward, *kept, dim=dim, needs=(True, False))


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_picking_many_slices(kernels, dtype):
    x = (normal(3, 70, 11) * 100).astype(dtype)
    for shape, dim in (((70, 33), 0), ((3, 70, 11), 1)):
        rows = x.reshape(-1)[: np.prod(shape)].reshape(shape)
        line = np.random.default_rng(0).integers(0, 70, 4000)
        agree(kernels, ops.select, rows, line, dim=dim, exact=True)
        line[3777] = 70
        assert kernels[ops.select](rows, line, dim=dim) is None


@pytest.mark.parametrize("wrong", [-1, 70])
def test_indices_outside_are_refused_by_the_plain_code(kernels, wrong):
    x, indices = normal(80, 70), places((80, 70), 1, 60)
    values = normal(80, 60, seed=1)
    indices[77, 33] = wrong
    line = indices[77].copy()
    assert kernels[ops.gather](x, indices, dim=1) is None
    assert kernels[ops.scatter](x, indices, values, dim=1) is None
    assert kernels[ops.gather](x, indices.T.copy(), dim=0) is None
    assert kernels[ops.select](x, line, dim=1) is None
    assert kernels[ops.select_assign](x, line, values, dim=1) is None
    device = Numpy()
    tensor, rows = Tensor.from_numpy(x, device), Tensor.from_numpy(indices, device)
    with pytest.raises(DimError, match="the dim has size 70"):
        tensor.gather(1, rows)
    with pytest.raises(DimError, match="the dim has size 70"):
        tensor.select(1, Tensor.from_numpy(line, device))


MASKED = [
    ((5,), (5,)),
    ((64, 64), (64, 64)),
    ((33, 70), (1, 70)),
    ((4, 3, 20, 30), (4, 1, 20, 30)),
    ((4, 3, 20, 30), (1, 1, 20, 30)),
    ((1, 1), (1, 1)),
]


@pytest.mark.parametrize(("shape", "mask"), MASKED, ids=str)
def test_masks(kernels, shape, mask):
    x, values, g = special(*shape), normal(*shape, seed=1), normal(*shape, seed=2)
    truth = np.random.default_rng(3).random(mask) < 0.5
    agree(kernels, ops.mask_fill, x, truth, value=7.0, exact=True)
    agree(kernels, ops.mask_where, x, truth, values, exact=True)
    fill = ops.mask_fill.backward
    agree(kernels, fill, g, truth, value=7.0, needs=(True, False), exact=True)
    needs = (True, False, True)
    agree(kernels, ops.mask_where.backward, g, truth, needs=needs, exact=True)


def test_masks_that_are_stretched_otherwise_run_plain(kernels):
    x, column = normal(30, 5), np.ones((30, 1), bool)
    assert kernels[ops.mask_fill](x, column, value=1.0) is None
    assert kernels[ops.mask_where](x, column, normal(1, 5)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("size", [1, 5, 300])
def test_hot_rows(kernels, size, dtype):
    x = np.random.default_rng(0).integers(0, size, (70, 9)).astype(dtype)
    agree(kernels, ops.hot_rows, x, size=size, on=2, off=-1, exact=True)
    agree(kernels, ops.hot_rows, x.T, size=size, on=1, off=0, exact=True)


@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (100, 3), (3, 1000), (50, 50)])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_where_truth_stands(kernels, shape, share):
    x = np.random.default_rng(0).random(shape) < share
    agree(kernels, ops.argwhere, x, exact=True)


@pytest.mark.parametrize(("shape", "dim"), EVERY_DIM, ids=str)
def test_sorting_and_nan(kernels, shape, dim):
    x, g = special(*shape), normal(*shape, seed=1)
    for descending in (False, True):
        attrs = {"dim": dim, "descending": descending}
        agree(kernels, ops.sort, x, exact=True, **attrs)
        found = kernels[ops.sort](x, **attrs)
        expected = ops.sort.forward(np, x, **attrs)
        assert np.array_equal(np.signbit(found), np.signbit(expected))
        agree(kernels, ops.argsort, x, exact=True, **attrs)
        agree(kernels, ops.sort.backward, g, x, needs=ONE, exact=True, **attrs)
    agree(kernels, ops.argmedian, x, dim=dim, exact=True)
    for k in {1, min(3, shape[dim]), min(64, shape[dim]), shape[dim]}:
        agree(kernels, ops.argtopk, x, k=k, dim=dim, exact=True)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float64, np.int64])
@pytest.mark.parametrize("shape", [(16, 16), (17, 33), (2, 40, 50), (300, 700), (1, 9)])
def test_what_is_turned_is_copied(kernels, shape, dtype):
    x = (normal(*shape) * 100).astype(dtype)
    turned = x.swapaxes(-1, -2)
    copied = family("shape").copied
    assert np.array_equal(copied(turned), turned)
    assert copied(turned).flags.c_contiguous
    if min(shape) > 1:
        agree(kernels, ops.reshape, turned, shape=(-1,), exact=True)
    cut = x[..., ::2]
    assert np.array_equal(copied(cut), cut)
    number = np.broadcast_to(x.reshape(-1)[:1], (40, 50))
    assert np.array_equal(copied(number), number)


def test_reshaping_without_a_copy_stays_a_view(kernels):
    x = normal(40, 60)
    out = kernels[ops.reshape](x.T, shape=(6, 10, 40))
    assert np.shares_memory(out, x)
    assert kernels[ops.reshape](x, shape=(2400,)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_rolling(kernels, dtype):
    x = (normal(30, 40, 50) * 100).astype(dtype)
    for dim in (0, 1, -1):
        for shift in (0, 7, -7, 40, 1000):
            agree(kernels, ops.roll, x, shift=shift, dim=dim, exact=True)
    agree(kernels, ops.roll, x[:, ::2], shift=3, dim=1, exact=True)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
def test_joining_and_cutting(kernels, dtype):
    x, y = ((normal(300, 500, seed=s) * 100).astype(dtype) for s in (0, 1))
    for dim in (0, 1, -1):
        agree(kernels, ops.cat, x, y.copy(order="F"), x[:, ::-1], dim=dim, exact=True)
    assert kernels[ops.cat](x, y[:3], dim=1) is None
    assert kernels[ops.cat](x, y[0], dim=0) is None
    index = (slice(3, 280), slice(5, 400, 2))
    if dtype is not bool:
        agree(kernels, ops.slice_assign, x, y[index], index=index, exact=True)
    if dtype is np.float32:
        attrs = {"index": index, "shape": (300, 500)}
        agree(kernels, ops.slice_spread, y[index], exact=True, **attrs)
        widths = ((0, 3), (4, 0))
        agree(kernels, ops.pad, x, widths=widths, value=2.5, exact=True)


def test_other_types_of_the_same_values(kernels):
    x = normal(300, 500) * 100
    for dtype in (np.float64, np.int64, np.int32, np.float32):
        agree(kernels, ops.cast, x, dtype=dtype, exact=True)
        agree(kernels, ops.cast, x.T, dtype=dtype, exact=True)
    agree(kernels, ops.cast, x, dtype=np.float16, exact=True)
    assert kernels[ops.cast](x.T, dtype=np.float16) is None


@pytest.mark.parametrize("size", [1, 100, 300_001])
def test_whole_functions_by_several_threads(kernels, size):
    x, y = special(size), special(size, seed=1)
    with np.errstate(all="ignore"):
        agree(kernels, ops.square, x, exact=True)
        agree(kernels, ops.trunc, x, exact=True)
        for exponent in (1, 2, 3, 7, 8):
            kept = (y, x)
            if exponent > 1:
                back = ops.power.backward
                agree(kernels, back, *kept, exponent=exponent, needs=ONE, exact=True)
            agree(kernels, ops.power, x, exponent=exponent, exact=True)
        agree(kernels, ops.fmod, x, y, exact=True)
    a, b = (np.random.default_rng(s).integers(0, 60, size) for s in (0, 1))
    agree(kernels, ops.bitwise_not, a, exact=True)
    for name in ("and", "or", "xor", "left_shift", "right_shift"):
        agree(kernels, getattr(ops, f"bitwise_{name}"), a, b, exact=True)


def test_the_rest_of_hard_divisions_is_exact(kernels):
    rng = np.random.default_rng(0)
    hard = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, 3e38, 1.0, -7.0, 0.1]
    x, y = (a.reshape(-1).astype(np.float32) for a in np.meshgrid(hard, hard))
    big = (rng.standard_normal(4000) * 10.0 ** rng.integers(-20, 20, 4000)).astype("f4")
    small = (rng.standard_normal(4000) + 2).astype("f4")
    steps = (rng.integers(-99, 99, 4000) / 8).astype("f4")
    near = steps * rng.integers(1, 9999, 4000).astype("f4")
    with np.errstate(all="ignore"):
        for a, b in ((x, y), (big, small), (near, steps)):
            found = kernels[ops.fmod](a, b)
            assert np.array_equal(found, np.fmod(a, b), equal_nan=True)
            known = ~np.isnan(found)
            assert np.array_equal(np.signbit(found)[known], np.signbit(a)[known])


def test_arrays_in_any_order_are_served(kernels):
    x, g = normal(40, 60), normal(60, 40, seed=1)
    agree(kernels, ops.cumsum, x.T, dim=0, exact=True)
    agree(kernels, ops.sort, x.T, dim=0, exact=True)
    agree(kernels, ops.cumsum.backward, g.T, dim=0, needs=ONE, exact=True)
    one = np.broadcast_to(np.float32(2), (60, 40))
    agree(kernels, ops.cumsum.backward, one, dim=0, needs=ONE, exact=True)
    locked = x.copy()
    locked.flags.writeable = False
    agree(kernels, ops.cummax, locked, dim=1, exact=True)
    indices = places((40, 60), 1, 60)
    agree(kernels, ops.gather, x.T, indices.T, dim=0, exact=True)


def test_products_that_leave_the_numbers_run_plain(kernels):
    x = np.ones((2, 5000), np.float32)
    x[0, :8], x[0, 8:] = 1e-38, 1e38
    assert kernels[ops.prod_dim](x, dim=1) is None or np.isfinite(x).all()
    big = np.full(9000, 1e30, np.float32)
    assert kernels[ops.prod.backward](normal(1), big, needs=ONE) is None


NONE = [(0,), (0, 5), (5, 0), (2, 0, 3)]


@pytest.mark.parametrize("shape", NONE, ids=str)
def test_empty_arrays_and_other_types_run_plain(kernels, shape):
    x = normal(*shape)
    for op in (ops.sum_dim, ops.cumsum, ops.sort, ops.argsort, ops.max_dim):
        assert kernels[op](x, dim=0) is None
        assert kernels[op](normal(9, 9).astype(np.float64), dim=0) is None
    assert kernels[ops.sum](x) is None
    assert kernels[ops.mask_fill](x, x > 0, value=1.0) is None
    assert kernels[ops.gather](x, np.zeros(shape, np.int64), dim=0) is None


def test_the_number_of_threads_changes_nothing(kernels, monkeypatch):
    x, g = normal(300, 700), normal(300, 700, seed=1)
    indices = places((300, 700), 1, 700)
    answers = []
    for size in (1, 5):
        modules = [m for m in map(family, FAMILIES) if hasattr(m, "threads")]
        use_threads(monkeypatch, size, modules)
        answers.append(
            [
                kernels[ops.sum](x),
                kernels[ops.prod](1 + x / 1000),
                kernels[ops.sum_dim](x, dim=0),
                kernels[ops.sum_dim](x, dim=1),
                kernels[ops.cumprod](1 + x / 1000, dim=0),
                kernels[ops.scatter](x, indices, g, dim=1),
                kernels[ops.argsort](x, dim=0),
                kernels[ops.cat](x, g, dim=1),
            ]
        )
    for one, many in zip(*answers, strict=True):
        assert np.array_equal(one, many)


@pytest.mark.parametrize("rows", [(4,), (16,), (3, 11), (100,)], ids=str)
@pytest.mark.parametrize("n", [16, 32, 64, 512])
def test_fourier_transforms(kernels, rows, n):
    x, pairs = normal(*rows, n), normal(*rows, n // 2 + 1, 2, seed=1)
    agree(kernels, ops.rfft_pairs, x)
    agree(kernels, ops.irfft_back, x)
    agree(kernels, ops.irfft_pairs, pairs, n=n)
    agree(kernels, ops.rfft_back, pairs, n=n)
    for inverse in (False, True):
        agree(kernels, ops.fft_pairs, normal(*rows, n, 2, seed=2), inverse=inverse)


@pytest.mark.parametrize(("rows", "n"), [(3, 64), (20, 8), (20, 60), (4, 1 << 15)])
def test_other_transforms_run_plain(kernels, rows, n):
    assert kernels[ops.rfft_pairs](normal(rows, n)) is None
    assert kernels[ops.irfft_pairs](normal(rows, n // 2 + 1, 2), n=n) is None
    assert kernels[ops.irfft_pairs](normal(20, 20, 2), n=64) is None
    assert kernels[ops.fft_pairs](normal(rows, n, 2), inverse=False) is None


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((4, 30, 5, 8), (0, 2, 1, 3)),
        ((20, 30, 8), (1, 0, 2)),
        ((4, 30, 50), (0, 2, 1)),
        ((20, 3, 40), (2, 0, 1)),
        ((20, 1, 30, 40), (2, 3, 1, 0)),
        ((5, 6, 7, 8), (3, 1, 0, 2)),
        ((40, 30, 3), (1, 0, 2)),
        ((2, 3, 4, 5, 16), (0, 2, 3, 1, 4)),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_dims_in_another_order_are_copied(kernels, shape, axes, dtype):
    x = (normal(*shape) * 100).astype(dtype).transpose(axes)
    agree(kernels, ops.reshape, x, shape=(-1,), exact=True)
