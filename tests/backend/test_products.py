"""Products give what NumPy gives, however they are shared out, and leave BLAS alone."""

import threading

import numpy as np
import pytest
from hypothesis import given, strategies as st

from burnbook import ops
from burnbook.backend import blas, products
from burnbook.backend.blas import OneThread, ThreadControl, one_thread
from burnbook.backend.compiled.runtime.thread_pool import LOCK, ThreadPool
from burnbook.backend.products import dot, dot_plus, matmul
from tests.support import programs


@pytest.fixture(autouse=True)
def always_shared(monkeypatch):
    """Three threads share even the smallest product, whatever machine this is."""
    pool = ThreadPool()
    pool.start(3)
    monkeypatch.setattr(products, "threads", pool)
    for limit in ("SMALL", "ALONE", "SHARED", "QUICK"):
        monkeypatch.setattr(products, limit, 0)
    monkeypatch.setattr(products, "ROWS", 1)
    monkeypatch.setattr(products, "COLUMNS", 1)
    if one_thread.control is None:
        monkeypatch.setattr(one_thread, "control", Counted())


class Counted:
    """An OpenBLAS that has some threads, and remembers what it was told."""

    def __init__(self, threads=4):
        self.threads, self.told = threads, []

    def get(self):
        return self.threads

    def set(self, number):
        self.told.append(number)
        self.threads = number


def drawn(shape, layout, dtype=np.float32):
    """Random numbers in memory that lies in one of several ways."""
    rng = np.random.default_rng(len(shape) + sum(shape))
    if layout == "turned":
        made = rng.standard_normal((*shape[:-2], shape[-1], shape[-2]))
        return made.astype(dtype).swapaxes(-1, -2)
    if layout == "stepped":
        made = rng.standard_normal((*shape[:-1], 2 * shape[-1])).astype(dtype)
        return made[..., ::2]
    if layout == "backward":
        return rng.standard_normal(shape).astype(dtype)[..., ::-1, :]
    if layout == "repeated":
        line = rng.standard_normal((*shape[:-2], 1, shape[-1])).astype(dtype)
        return np.broadcast_to(line, shape)
    return rng.standard_normal(shape).astype(dtype)


LAYOUTS = st.sampled_from(("plain", "turned", "stepped", "backward", "repeated"))
SIZE = st.integers(0, 9)


@given(SIZE, SIZE, SIZE, LAYOUTS, LAYOUTS, st.sampled_from("efd"))
def test_matrices_of_every_size_and_layout(m, k, n, left, right, dtype):
    x, y = drawn((m, k), left, dtype), drawn((k, n), right, dtype)
    tolerance = {"e": 2e-2, "f": 1e-5, "d": 1e-12}[dtype]
    for found in (dot(x, y), matmul(x, y), dot(x, y, out=np.empty((m, n), dtype))):
        assert found.dtype == x.dtype
        np.testing.assert_allclose(found, np.matmul(x, y), tolerance, tolerance)


STACKS = st.sampled_from(
    [
        *(((), (3,)), ((3,), ()), ((2, 3), (2, 3)), ((1, 3), (2, 1)), ((2, 1), (2, 4))),
        *(((1,), (1,)), ((0,), (0,)), ((5, 1, 2), (4, 2)), ((1, 4), (1, 4))),
    ]
)


@given(STACKS, SIZE, SIZE, SIZE, LAYOUTS, LAYOUTS)
def test_stacks_of_every_shape_and_layout(stacks, m, k, n, left, right):
    x, y = drawn((*stacks[0], m, k), left), drawn((*stacks[1], k, n), right)
    found = matmul(x, y)
    assert found.shape == np.matmul(x, y).shape
    np.testing.assert_allclose(found, np.matmul(x, y), 1e-5, 1e-5)


def test_whole_numbers_truths_and_mixed_types_are_left_to_numpy():
    ints, floats = np.arange(6).reshape(2, 3), np.ones((3, 2), np.float32)
    for x, y in ((ints, ints.T), (ints, floats), (floats, floats.T.astype("d"))):
        found = matmul(x, y)
        assert found.dtype == np.matmul(x, y).dtype
        np.testing.assert_array_equal(found, x @ y)
        np.testing.assert_array_equal(dot(x, y), x @ y)


def test_sizes_that_do_not_fit_are_refused_and_blas_has_its_threads_again():
    before = one_thread.control.get()
    for product in (dot, matmul):
        with pytest.raises(ValueError, match=r"align|mismatch|size"):
            product(np.ones((4, 3), np.float32), np.ones((4, 3), np.float32))
    with pytest.raises(ValueError, match=r"broadcast|shape|match"):
        matmul(np.ones((2, 4, 3), np.float32), np.ones((5, 3, 4), np.float32))
    assert (one_thread.inside, one_thread.control.get()) == (set(), before)


def test_a_result_does_not_depend_on_who_is_first():
    x, y = drawn((64, 33), "plain"), drawn((33, 65), "plain")
    first = dot(x, y)
    assert all(np.array_equal(dot(x, y), first) for _ in range(50))


def test_blas_has_one_thread_inside_and_its_own_outside(monkeypatch):
    fake = Counted(4)
    monkeypatch.setattr(one_thread, "control", fake)
    monkeypatch.setattr(one_thread, "sgemm", 0)  # by threads.run in any case
    seen = []
    inner = products.threads.run
    monkeypatch.setattr(
        products.threads, "run", lambda *a: (seen.append(fake.threads), inner(*a))[1]
    )
    dot(np.ones((5, 5), np.float32), np.ones((5, 5), np.float32))
    matmul(np.ones((2, 5, 5), np.float32), np.ones((2, 5, 5), np.float32))
    assert (seen, fake.threads, fake.told) == ([1, 1], 4, [1, 4, 1, 4])


def test_who_leaves_last_gives_the_threads_back():
    fake = Counted(4)
    held = OneThread(ThreadControl(fake.get, fake.set))
    held.enter()
    other = threading.Thread(target=lambda: (held.enter(), held.leave()))
    other.start()
    other.join()
    assert fake.threads == 1
    held.leave()
    assert (fake.threads, held.inside) == (4, set())


@pytest.mark.parametrize("step", range(1, 6))
def test_an_interruption_is_mended_by_the_next_product(step):
    """Ctrl-C may come between any two steps of entering and leaving."""
    fake, steps = Counted(4), []

    def interrupted(call):
        def run(*args):
            steps.append(call)
            if len(steps) == step:
                raise KeyboardInterrupt
            return call(*args)

        return run

    held = OneThread(ThreadControl(interrupted(fake.get), interrupted(fake.set)))
    for _ in range(2):
        try:
            try:
                held.enter()
            finally:
                held.leave()
        except KeyboardInterrupt:
            pass
    assert (fake.threads, held.inside) == (4, set())


def test_a_forked_child_begins_outside():
    fake = Counted(4)
    held = OneThread(ThreadControl(fake.get, fake.set))
    held.enter()
    held.after_fork()
    assert (fake.threads, held.inside) == (4, set())


def odd_views():
    """Factors whose rows or columns are no whole number of elements apart, or none."""
    line = np.arange(70, dtype=np.float32)
    table = np.zeros(70, dtype=[("a", "f4", (50,)), ("b", "u1")])
    table["a"] = np.random.default_rng(0).standard_normal((70, 50))
    yield line[:, None], line[None]
    yield line[:, None], line[None].T.copy().T
    yield table["a"], np.ones((50, 60), np.float32)
    yield np.ones((60, 70), np.float32), table["a"]
    yield np.broadcast_to(line[:1], (70, 50)), np.broadcast_to(line[3:4], (50, 70))


@pytest.mark.parametrize("numba_is_here", [False, True])
def test_odd_views_are_multiplied_as_numpy_does(kernels, numba_is_here):
    if numba_is_here:
        kernels[ops.relu]
    for x, y in odd_views():
        np.testing.assert_allclose(dot(x, y), np.dot(x, y), rtol=1e-5)
        np.testing.assert_allclose(matmul(x, y), np.matmul(x, y), rtol=1e-5)
    x = np.ones((70, 70), np.float32)
    assert np.array_equal(dot(x, np.float32(2)), np.dot(x, np.float32(2)))


@pytest.mark.parametrize("size", [2, 3, 8])
def test_parts_taken_without_the_lock_by_few_and_many(kernels, monkeypatch, size):
    kernels[ops.relu]  # numba is here now, and so are threads that look for parts
    if not one_thread.sgemm:
        pytest.skip("NumPy multiplies with another library here")
    pool = ThreadPool()
    pool.start(size)
    monkeypatch.setattr(products, "threads", pool)
    rng = np.random.default_rng(size)
    for _ in range(300):
        m, k, n = rng.integers(1, 90, 3)
        forms = [("plain", "turned")[turned] for turned in rng.integers(0, 2, 2)]
        x, y = drawn((m, k), forms[0]), drawn((k, n), forms[1])
        out = np.full((m, n), np.nan, np.float32)
        assert dot(x, y, out) is out
        np.testing.assert_allclose(out, np.matmul(x, y), 1e-4, 1e-4)
    assert not pool.board[LOCK]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_line_is_added_to_each_row_of_the_product(kernels, monkeypatch, size):
    kernels[ops.relu]
    if not one_thread.sgemm:
        pytest.skip("NumPy multiplies with another library here")
    pool = ThreadPool()
    pool.start(size)
    monkeypatch.setattr(products, "threads", pool)
    rng = np.random.default_rng(size)
    for _ in range(100):
        m, n = rng.integers(2, 90, 2)
        layouts = rng.choice(["plain", "turned", "stepped", "repeated"], 2)
        x, y = drawn((m, rng.integers(1, 90)), layouts[0]), drawn((1, n), "plain")[0]
        weight = drawn((x.shape[1], n), layouts[1])
        found = dot_plus(x, weight, y)
        np.testing.assert_allclose(found, np.matmul(x, weight) + y, 1e-4, 1e-4)
    assert not pool.board[LOCK]


def test_a_line_with_nan_and_infinity_and_one_for_nothing(kernels):
    kernels[ops.relu]
    if not one_thread.sgemm:
        pytest.skip("NumPy multiplies with another library here")
    x, weight = np.ones((4, 3), np.float32), np.ones((3, 2), np.float32)
    line = np.array([np.nan, np.inf], np.float32)
    found = dot_plus(x, weight, line)
    assert np.isnan(found[:, 0]).all()
    assert (found[:, 1] == np.inf).all()
    assert dot_plus(x[:1], weight, line) is None  # a vector has its own kernel


def test_callers_at_once_do_not_take_each_others_parts(kernels):
    kernels[ops.relu]
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(300):
            m, k, n = rng.integers(20, 120, 3)
            x, y = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
            if not np.allclose(dot(x, y), np.matmul(x, y), 1e-3, 1e-3):
                wrong.append((m, k, n))

    others = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert wrong == []


def test_products_of_several_threads_at_once():
    x, y = drawn((50, 40), "plain"), drawn((40, 60), "plain")
    wrong = []

    def work():
        for _ in range(200):
            if not np.allclose(dot(x, y), np.matmul(x, y), atol=1e-4):
                wrong.append(1)

    others = [threading.Thread(target=work) for _ in range(4)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert (wrong, one_thread.inside) == ([], set())


def test_numpys_own_library_is_found_and_set():
    control = blas.find()
    if control is None:
        pytest.skip("NumPy multiplies with another library here, which is left alone")
    before = control.get()
    control.set(1)
    try:
        assert control.get() == 1
    finally:
        control.set(before)
    assert control.get() == before


ORDER = """
{first}
{second}
import zlib
import numpy as np
from burnbook.backend.blas import one_thread
x = np.random.default_rng(0).standard_normal((512, 512), np.float32)
from burnbook.prelude import Numpy, Tensor
t = Tensor.from_numpy(x, Numpy())
found = np.asarray(t @ t)
control = one_thread.control
print(zlib.crc32(found.tobytes()), control is None or control.get())
"""


@pytest.mark.slow
def test_it_makes_no_difference_what_is_imported_first():
    imports = ["import numpy", "import burnbook"]
    codes = [ORDER.format(first=a, second=b) for a, b in (imports, imports[::-1])]
    first, second = (programs.python("-c", code).stdout for code in codes)
    assert first == second != ""
