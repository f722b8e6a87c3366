"""Compiled kernels: equal to the plain code, whoever calls, and never in the way."""

import multiprocessing
import os
import platform
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy, compiled
from burnbook.backend.compiled.runtime import jit
from burnbook.backend.compiled.runtime.buffers import Buffers
from burnbook.backend.compiled.runtime.thread_pool import Locked, ThreadPool
from burnbook.core.rng import Stream, use_stream
from burnbook.ops.conv.conv import conv2d
from burnbook.ops.elementwise import relu
from burnbook.ops.linear import linear
from burnbook.ops.loss import cross_entropy, cross_entropy_logits
from burnbook.ops.optimizer_steps import adam_step
from burnbook.ops.pool.pool import (
    adaptive_avg_pool2d,
    adaptive_avg_pool2d_x,
    avg_pool2d,
    avg_pool2d_x,
    max_pool2d,
    max_pool2d_x,
)
from burnbook.ops.random import dropout
from burnbook.tensor import Tensor, apply
from tests.support.kernel_checks import (
    FAMILY_OF,
    agree,
    family,
    normal,
    use_threads,
    with_and_without,
)

ROOT = Path(__file__).resolve().parents[2]


def test_the_list_names_every_kernel():
    loaded = [compiled.load(name) for name in compiled.FAMILIES]
    assert set(FAMILY_OF) == set(loaded[-1])


CONVOLUTIONS = [
    # x, weight, attributes
    ((2, 1, 28, 28), (8, 1, 3, 3), {}),
    ((3, 8, 26, 26), (16, 8, 3, 3), {}),
    ((2, 3, 9, 8), (5, 3, 3, 3), {"padding": (1, 1)}),
    ((2, 3, 9, 8), (1, 3, 1, 4), {"padding": (0, 2)}),
    ((2, 4, 9, 11), (6, 2, 5, 2), {"groups": 2, "padding": (2, 1)}),
    ((2, 6, 9, 9), (6, 1, 3, 3), {"groups": 6, "padding": (1, 1)}),
    ((2, 2, 12, 13), (3, 2, 2, 7), {"dilation": (2, 1), "padding": (1, 3)}),
    ((20, 2, 10, 10), (4, 2, 3, 3), {"dilation": (1, 2), "padding": (1, 2)}),
    ((1, 1, 3, 3), (1, 1, 3, 3), {}),
    # small images with many channels, which are taken side by side
    ((37, 16, 4, 4), (18, 16, 3, 3), {"padding": (1, 1)}),
    ((19, 32, 5, 6), (36, 16, 3, 3), {"groups": 2, "padding": (1, 2)}),
    ((33, 16, 6, 6), (16, 16, 3, 3), {"dilation": (2, 1), "padding": (2, 1)}),
    ((40, 17, 8, 8), (17, 17, 2, 3), {"padding": (0, 1)}),
    ((9, 24, 3, 7), (13, 24, 3, 1), {}),
    ((3, 16, 10, 10), (16, 16, 5, 5), {}),
]


@pytest.mark.parametrize(("x", "weight", "attrs"), CONVOLUTIONS, ids=str)
def test_convolution_and_its_gradients(kernels, x, weight, attrs):
    x, weight, bias = normal(*x), normal(*weight, seed=1), normal(weight[0], seed=2)
    agree(kernels, conv2d, x, weight, bias, **attrs)
    agree(kernels, conv2d, x, weight, None, **attrs)
    g = normal(*conv2d.forward(np, x, weight, **attrs).shape, seed=3)
    for needs in ((True, True, True), (False, True, True), (True, False, False)):
        shapes = (x.shape, weight.shape)
        agree(kernels, conv2d.backward, g, x, weight, *shapes, needs=needs, **attrs)


@pytest.mark.parametrize("attrs", [{"stride": (2, 2)}, {"padding": (3, 0)}], ids=str)
def test_what_a_kernel_does_not_serve_runs_plain(attrs):
    def slopes(device):
        values = (normal(2, 3, 9, 9), normal(4, 3, 3, 3))
        a, b = (Tensor.from_numpy(v, device).require_grad() for v in values)
        grads = (apply(conv2d, a, b, **attrs) ** 2).sum().backward()
        return [t.grad(grads) for t in (a, b)]

    with_and_without(slopes, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("size", [1, 15, 4096, 4097, 100_003])
@pytest.mark.parametrize("prob", [0.0, 0.25, 0.5])
def test_dropout_is_equal_bit_for_bit_and_so_is_its_gradient(kernels, size, prob):
    x = normal(size)
    for _ in range(3):  # drawn, remembered, drawn again
        agree(kernels, dropout, x, prob=prob, key=(2**64 - 5, size), exact=True)
    agree(kernels, dropout, x.reshape(1, -1), prob=prob, key=(1, 2), exact=True)


def test_masks_do_not_pile_up():
    masks = family("dropout").Masks(most_bytes=1000)
    for key in range(50):
        masks.keep(key, np.zeros(300, bool))
        masks.keep(key, np.zeros(300, bool))
    assert len(masks.held) == 3
    assert masks.bytes == 900
    assert masks.take(0) is None
    assert masks.take(49).size == 300
    assert masks.bytes == 600


@pytest.mark.parametrize("shape", [(1,), (33, 7), (3, 5, 40, 41)])
def test_relu_and_nan(kernels, shape):
    x, g = normal(*shape), normal(*shape, seed=1)
    x.flat[0] = np.nan
    agree(kernels, relu, x, exact=True)
    out = relu.forward(np, x)
    agree(kernels, relu.backward, g, out, needs=(True,), exact=True)


@pytest.mark.parametrize(
    ("size", "output"), [((24, 24), (8, 8)), ((8, 6), (2, 3)), ((7, 5), (7, 1))]
)
def test_even_pooling(kernels, size, output):
    x, g = normal(5, 7, *size), normal(5, 7, *output, seed=1)
    agree(kernels, adaptive_avg_pool2d, x, output_size=output)
    agree(kernels, adaptive_avg_pool2d_x, g, x_shape=x.shape)


@pytest.mark.parametrize("size", [(12, 12), (13, 11)])
def test_windows_side_by_side(kernels, size):
    attrs = {"kernel_size": (3, 2), "stride": (3, 2)}
    x = normal(4, 5, *size)
    agree(kernels, avg_pool2d, x, **attrs)
    g = normal(*avg_pool2d.forward(np, x, **attrs).shape, seed=1)
    agree(kernels, avg_pool2d_x, g, x_shape=x.shape, **attrs)


@pytest.mark.parametrize(
    "attrs",
    [
        {"kernel_size": (2, 2), "stride": (2, 2)},
        {"kernel_size": (3, 2), "stride": (1, 3), "padding": (1, 1)},
        {"kernel_size": (2, 3), "stride": (2, 1), "dilation": (3, 2)},
        {"kernel_size": (1, 1), "stride": (4, 4)},
    ],
)
def test_the_largest_of_every_window(kernels, attrs):
    x = np.round(normal(5, 7, 13, 12), 1)  # many are equal
    x[0, 0, :3], x[1], x[2, 0, 4, 4] = -np.inf, np.nan, np.inf
    out, winner = max_pool2d.forward(np, x, **attrs)
    found = kernels[max_pool2d](x, **attrs)
    assert np.array_equal(found[0], out, equal_nan=True)
    assert np.array_equal(found[1], winner)
    assert found[1].dtype == winner.dtype
    g = normal(*out.shape, seed=1)
    agree(kernels, max_pool2d_x, g, winner, x_shape=x.shape, **attrs)
    assert kernels[max_pool2d](x.astype(np.float64), **attrs) is None


@pytest.mark.parametrize("shape", [(1, 2), (64, 10), (7, 1000)])
def test_cross_entropy(kernels, shape):
    logits = normal(*shape) * 20
    targets = np.random.default_rng(1).integers(0, shape[1], shape[0])
    agree(kernels, cross_entropy, logits, targets)
    dout = np.array([1.5], np.float32)
    agree(kernels, cross_entropy_logits, dout, logits, targets)


@pytest.mark.parametrize("size", [1, 300, 70_001])
def test_adam(kernels, size):
    param, grad, m, v = (normal(size, seed=s) for s in range(4))
    for time in (1, 2, 100):
        attrs = {"lr": 1e-3, "epsilon": 1e-8, "time": time}
        agree(kernels, adam_step, param, grad, m, np.abs(v), **attrs)


@pytest.mark.parametrize("sizes", [(1, 1024, 512), (2, 301, 257), (1, 3, 30000)])
def test_few_rows_of_a_linear_layer(kernels, sizes):
    rows, inputs, outputs = sizes
    x, weight = normal(rows, inputs), normal(inputs, outputs, seed=1)
    agree(kernels, linear, x, weight, normal(outputs, seed=2))
    agree(kernels, linear, x, weight, None)
    assert kernels[linear](normal(3, inputs), weight, None) is None
    assert kernels[linear](x, np.asfortranarray(weight), None) is None
    assert kernels[linear](x[0], weight, None) is None


def test_other_types_and_layouts_run_plain(kernels):
    x = normal(2, 3, 8, 8)
    locked = x.copy()
    locked.flags.writeable = False
    for other in (x.astype(np.float64), np.asfortranarray(x), locked):
        assert kernels[relu](other) is None
        assert kernels[dropout](other, prob=0.5, key=(1, 2)) is None
        assert kernels[adaptive_avg_pool2d](other, output_size=(2, 2)) is None


def train(steps=3, seed=5):
    """A few steps of a small network; gives its last loss and gradient."""
    device = Autodiff(Numpy())
    x = Tensor.from_numpy(normal(16, 3, 20, 20), device)
    y = Tensor.from_numpy(np.arange(16) % 4, device)
    weight = normal(4, 3, 3, 3, seed=1)
    with use_stream(Stream(seed)):
        for _ in range(steps):
            w = Tensor.from_numpy(weight, device).require_grad()
            h = apply(conv2d, x, w)
            h = apply(dropout, h, prob=0.5, key=device.next_key())
            h = apply(adaptive_avg_pool2d, h.relu(), output_size=(1, 1))
            loss = apply(cross_entropy, h.reshape([16, 4]), y)
            slope = np.asarray(w.grad(loss.backward()))
            weight = weight - 0.1 * slope
    return loss.into_scalar(), weight


def test_many_threads_at_once_get_what_one_gets():
    expected = train()
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(train, [3] * 4))
    assert len(found) == 4
    for loss, weight in found:
        assert loss == expected[0]
        assert np.array_equal(weight, expected[1])


def test_the_number_of_threads_changes_nothing(monkeypatch):
    modules = [family(name) for name in ("conv", "dropout", "pool")]
    modules.append(import_module("burnbook.backend.compiled.runtime.loops"))
    answers = []
    for size in (1, 5):
        use_threads(monkeypatch, size, modules)
        answers.append(train())
    assert answers[0][0] == answers[1][0]
    assert np.array_equal(answers[0][1], answers[1][1])


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_started_after_kernels_ran_compute_too(kernels, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    expected = train()
    code = f"""
import multiprocessing, sys
from tests.compiled.test_compiled import train
if __name__ == "__main__":
    train()
    with multiprocessing.get_context("{method}").Pool(2) as pool:
        print([loss for loss, _ in pool.map(train, [3, 3])])
"""
    script = ROOT / "tests" / "compiled" / "test_compiled.py"
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'widgets'}"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=script.parent.parent,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == str([expected[0]] * 2)


def first_two_and_one(x):
    return x[:2], 1


def test_a_part_that_borrows_gives_no_array(monkeypatch):
    pytest.importorskip("numba", reason="compiles")
    monkeypatch.setattr(jit, "_borrowing", [])
    jit.part(first_two_and_one).ready().compile("(f4[::1],)")
    with pytest.raises(TypeError, match=r"gives an array: .* a counting or an inlined"):
        jit._check_borrowing()


def test_an_error_in_a_part_reaches_the_caller():
    threads = ThreadPool()
    threads.start(3)

    def broken(start, stop):
        if start <= 50 < stop:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        threads.run(broken, (), 100)


@pytest.mark.parametrize(("total", "grain"), [(1, 1), (7, 3), (100, 1), (1000, 64)])
def test_every_part_is_done_once(total, grain):
    threads, counts, lock = ThreadPool(), np.zeros(total, int), threading.Lock()
    threads.start(4)

    def count(start, stop):
        with lock:
            counts[start:stop] += 1
            assert start % grain == 0

    for _ in range(20):
        threads.run(count, (), total, grain)
    assert (counts == 20).all()


def test_a_thread_that_was_called_for_a_job_that_is_done_takes_the_next():
    threads, came = ThreadPool(), threading.Event()
    threads.size = 2  # its second thread comes below: so late that one job is done
    threads.run(lambda start, stop: None, (), 2)
    caller = threading.get_ident()

    def wait_for_the_other(start, stop):
        if threading.get_ident() != caller:
            came.set()
        elif not came.is_set():
            threading.Thread(target=threads._work, daemon=True).start()
            assert came.wait(10)

    threads.run(wait_for_the_other, (), 2)
    assert came.is_set()


def test_a_buffer_is_used_again_only_when_nobody_holds_it():
    pool = Buffers()
    shape = (200, 300)
    first = pool.empty(shape)
    place = first.ctypes.data
    for hold in (
        lambda a: a[3:5],
        lambda a: a.T[1:].view(np.int32),
        memoryview,
        lambda a: np.frombuffer(a, np.uint8),
        lambda a: np.from_dlpack(a),
    ):
        held = hold(first)
        del first
        first = pool.empty(shape)
        assert first.ctypes.data != place
        del held, first
        first = pool.empty(shape)
        assert first.ctypes.data == place


def test_no_buffer_is_used_twice_without_the_gil(monkeypatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    pool = Buffers()
    for _ in range(3):
        assert pool.empty((200, 300)).base is None  # memory of its own
    assert not pool.by_size
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True)
    assert Buffers().empty((200, 300)).base is not None
    monkeypatch.delattr(sys, "_is_gil_enabled")  # an older Python
    assert Buffers().empty((200, 300)).base is not None


def test_parts_are_taken_once_without_the_gil():
    parts, taken = Locked(range(10_000)), []

    def take():
        taken.extend(parts)

    with ThreadPoolExecutor(4) as threads:
        for _ in range(4):
            threads.submit(take)
    assert sorted(taken) == list(range(10_000))


def test_buffers_out_of_use_are_let_go():
    pool = Buffers()
    big = [pool.empty((1000, 1000)) for _ in range(5)]
    del big
    for _ in range(3 * 512):
        pool.empty((200, 200))
    assert len(pool.by_size) == 1


LARGE_AND_SMALL = """
import numpy as np
from burnbook.backend.compiled.runtime import jit
from burnbook.backend.compiled.runtime.buffers import Buffers
pool = Buffers()
def kept():  # bytes of memory that this process has
    return int(open("/proc/self/statm").read().split()[1]) * 4096
def step(rows):
    for array in [pool.empty((rows, 1000)) for _ in range(8)]:
        array[...] = 0
large = np.ones(10 << 20, np.uint8)
del large  # from now on arrays of that size lie in the heap,
for _ in range(3):
    step(20)
before = kept()
for _ in range(3):
    step(2000)
behind = np.ones(100_000)  # and this is where it ends
most = kept()
for _ in range(200):
    step(20)
print(most - before, kept() - before)
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="other C libraries decide by themselves"
)
def test_the_system_has_the_memory_of_a_larger_step_again():
    command = [sys.executable, "-c", LARGE_AND_SMALL]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    most, left = map(int, done.stdout.split())
    assert most > 60e6
    assert left < 10e6


COLD = """
import sys
import numpy as np
from burnbook.backend import Numpy
from burnbook.tensor import Tensor
device = Numpy()
x = Tensor.from_numpy(np.ones((200, 200), np.float32), device)
x.relu(); x.relu()
print("numba" in sys.modules)
"""


def run_cold(folder, **variables):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    env |= {"NUMBA_CACHE_DIR": str(folder), "BURNBOOK_CACHE": str(folder)}
    for name in ("BURNBOOK_DISPLAY", "PYTEST_CURRENT_TEST"):
        env.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", COLD],
        env=env | variables,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "False\n"
    return done.stderr


def test_a_cold_cache_says_once_how_to_warm_it(tmp_path):
    assert run_cold(tmp_path).count("burnbook warmup") == 1


def test_a_cold_cache_changes_no_page_that_is_compared(tmp_path):
    assert run_cold(tmp_path, BURNBOOK_DISPLAY="static") == ""
    assert run_cold(tmp_path, PYTEST_CURRENT_TEST="a_page.ipynb::Cell 3") == ""


def test_a_backend_without_kernels_has_none():
    assert Numpy(compiled=False).kernels == {}
    assert Numpy("f64").kernels == {}
    assert repr(Numpy(compiled=False)) == "Numpy(compiled=False)"


def test_kept_code_never_lies_where_others_can_write(tmp_path, monkeypatch):
    from burnbook.backend.compiled.runtime import cache

    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path))
    own = cache._own_temporary()
    assert own == tmp_path / f"burnbook-{cache._user()}"
    assert not own.stat().st_mode & 0o077
    own.chmod(0o777)
    other = cache._own_temporary()
    assert other != own
    assert not other.stat().st_mode & 0o077


posix = pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners of files")


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A folder of kernels as `_make` leaves it, with what numba puts there."""
    from burnbook.backend.compiled.runtime import cache

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "base"))
    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path))
    before = os.umask(0o022)
    cache._found.cache_clear()
    made = cache.folder()
    assert cache.notice() == ""
    (made / "compiled_1").mkdir()
    (made / "compiled_1" / "kernel.nbc").write_bytes(b"code")
    yield made
    cache._found.cache_clear()
    os.umask(before)


def refused(made):
    """Whether another process would not use that folder, and would say so."""
    from burnbook.backend.compiled.runtime import cache

    cache._found.cache_clear()
    found, said = cache.folder(), cache.notice()
    assert (found == made) == (said == "")
    if said:
        assert said.count("\n") == 1
        assert str(made) in said
        assert cache.is_ours_alone(found)
    return found != made


@posix
@pytest.mark.parametrize(
    ("part", "mode", "refuses"),
    [
        (".", 0o755, False),
        (".", 0o700, False),
        (".", 0o757, True),
        (".", 0o1777, True),  # nobody can take our files away, but can add some
        ("compiled_1", 0o757, True),
        ("compiled_1/kernel.nbc", 0o646, True),
        ("..", 0o757, True),
        ("..", 0o1777, False),  # as /tmp is
        ("..", 0o775, False),
    ],
)
def test_kernels_that_others_can_change_are_not_run(kept, part, mode, refuses):
    (kept / part).chmod(mode)
    assert refused(kept) == refuses


@posix
def test_kernels_in_a_closed_folder_cannot_be_changed_whatever_their_mode(kept):
    (kept / "compiled_1").chmod(0o777)
    kept.chmod(0o700)
    assert not refused(kept)


@posix
@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_kernels_that_another_user_has_put_there_are_not_run(kept, mode):
    if os.geteuid() != 0:
        pytest.skip("only root can make a file another user's")
    os.chown(kept / "compiled_1" / "kernel.nbc", 65534, -1)
    kept.chmod(mode)
    assert refused(kept)


@posix
def test_kernels_of_another_user_are_run_if_the_library_is_his(kept, monkeypatch):
    from burnbook.backend.compiled.runtime import cache

    if os.geteuid() == 0:
        os.chown(kept, 12345, -1)
    else:
        monkeypatch.setattr(cache.os, "getuid", lambda: 12345)
    monkeypatch.setattr(cache, "_HERE", Path("/"))
    assert not cache.is_ours_alone(kept)
    monkeypatch.setattr(cache, "_HERE", kept)
    assert cache.is_ours_alone(kept)


@posix
def test_a_group_may_change_kernels_if_it_may_change_the_library(kept, monkeypatch):
    from burnbook.backend.compiled.runtime import cache

    group = next((gid for gid in os.getgroups() if gid), None)
    if group is None and os.geteuid() == 0:
        group = 12345
    if group is None:
        pytest.skip("this user is in no group")
    library = kept.parent / "library"
    library.mkdir()
    monkeypatch.setattr(cache, "_HERE", library)
    for path in (kept, library):
        os.chown(path, -1, group)
    kept.chmod(0o775)
    assert not cache.is_ours_alone(kept)
    library.chmod(0o775)
    assert cache.is_ours_alone(kept)


@posix
@pytest.mark.parametrize(
    ("umask", "mode"), [(0o022, 0o755), (0o077, 0o700), (0o002, 0o700), (0, 0o700)]
)
def test_a_folder_for_kernels_is_closed_where_the_umask_is_open(tmp_path, umask, mode):
    from burnbook.backend.compiled.runtime import cache

    before = os.umask(umask)
    try:
        cache._make(tmp_path / "made")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == mode
    assert list((tmp_path / "made").iterdir()) == []


@posix
def test_a_training_says_that_the_folder_is_anybodys(tmp_path):
    made = tmp_path / "anybody"
    made.mkdir()
    made.chmod(0o777)  # before the first process makes the folder in it
    said = run_cold(made, TMPDIR=str(tmp_path))
    assert f"burnbook: others may change {made}/kernels-" in said
    assert said.count("burnbook: others") == 1


def test_a_named_processor_stands_for_the_one_at_hand(monkeypatch):
    from burnbook.backend.compiled.runtime import cache

    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    assert cache._processor() == "generic"
    monkeypatch.delenv("NUMBA_CPU_NAME")
    assert cache._processor() != "generic"
