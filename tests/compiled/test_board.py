"""Work of kernels that threads take part by part, without Python's lock."""

import threading
import time

import numpy as np
import pytest

from burnbook.backend.compiled import (
    conv,
    conv_blocked,
    finish,
    linear,
    optimizer_steps,
)
from burnbook.backend.compiled.runtime import thread_pool
from burnbook.backend.compiled.runtime.board import MOST_PARTS, add, look, share_out
from burnbook.backend.compiled.runtime.jit import counting_part, f32, kernel_with, part
from burnbook.backend.compiled.runtime.spin_wait import pause
from burnbook.backend.compiled.runtime.thread_pool import AWAKE, LOCK, ThreadPool
from tests.support.kernel_checks import normal

_POOLS: dict[int, ThreadPool] = {}  # their threads stay


def pool_of(size):
    """That many threads, the one that asks among them."""
    if size not in _POOLS:
        _POOLS[size] = ThreadPool()
        _POOLS[size].start(size)
    return _POOLS[size]


@pytest.fixture(params=[1, 2, 4])
def pool(request, monkeypatch):
    """Some threads, which look at their board whenever somebody calls."""
    made = pool_of(request.param)
    for module in (conv, conv_blocked):
        monkeypatch.setattr(module, "threads", made)
        monkeypatch.setattr(module, "cores", lambda: 4)
    monkeypatch.setattr(conv, "PART_WORK", 1)
    return made


@part
def mark(out, index):
    """Count how often an index comes."""
    out[index] += 1


@counting_part
def take_too_much(out, size, index):
    """A part that needs more memory than there is, but for the first."""
    out[index] = np.empty(size if index else 1, f32).size


@kernel_with("void(i8[::1], i8[::1])", nogil=True)
def mark_all(board, out):
    share_out(board, mark, (out,), out.size)


@kernel_with("void(i8[::1], i8[::1], i8)", nogil=True)
def take_too_much_often(board, out, size):
    share_out(board, take_too_much, (out, size), out.size)


@pytest.mark.parametrize("count", [0, 1, 2, 77, MOST_PARTS, MOST_PARTS + 1, 200_000])
def test_every_part_is_done_once(pool, count):
    out = np.zeros(count, np.int64)
    for _ in range(3):
        pool.wake()
        mark_all(pool.board, out)
    assert (out == 3).all()
    assert not pool.board[LOCK]


def test_a_part_without_memory_is_told_to_whoever_called(pool):
    out = np.zeros(8, np.int64)
    for _ in range(20):
        pool.wake()
        with pytest.raises(MemoryError, match="memory"):
            take_too_much_often(pool.board, out, 1 << 60)
        assert not pool.board[LOCK]
    pool.wake()
    take_too_much_often(pool.board, out, 5)  # and the next job is as if nothing was
    assert out.tolist() == [1, *[5] * 7]


def call_at_once(work, count=4):
    others = [threading.Thread(target=work, args=(seed,)) for seed in range(count)]
    for other in others:
        other.start()
    for other in others:
        other.join()


def test_callers_at_once_do_not_take_each_others_parts(pool):
    wrong = []

    def work(seed):
        for _ in range(200):
            out = np.zeros(20 + seed, np.int64)
            pool.wake()
            mark_all(pool.board, out)
            if not (out == 1).all():
                wrong.append(seed)

    call_at_once(work)
    assert wrong == []
    assert not pool.board[LOCK]


# Whether others help


@part
def meet(seen, index):
    """Wait for somebody at another part, who is there at the same time."""
    add(seen, 0, 1)
    looks = 0
    while look(seen, 0) < 2 and looks < 2_000_000:
        looks += 1
        pause()
    if look(seen, 0) >= 2:
        add(seen, 1, 1)


@kernel_with("void(i8[::1], i8[::1])", nogil=True)
def meet_in_two(board, seen):
    share_out(board, meet, (seen,), 2)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("call", ["wake", "attend"])
def test_two_threads_are_at_work_on_a_job_at_once(size, call):
    pool = pool_of(size)
    # A call may come to nothing: a thread is just leaving, or threads take the
    # processor of who called them, before there is a job. A pause makes it less likely.
    for _ in range(100):
        seen = np.zeros(2, np.int64)
        pool.wake() if call == "wake" else pool.attend(is_long=True)
        meet_in_two(pool.board, seen)
        if seen[1] == 2:
            return
        time.sleep(0.02)
    raise AssertionError("nobody came")


class Calls:
    """The calls of a pool whose threads do not come."""

    def __init__(self):
        self.count = 0

    def put(self, _):
        self.count += 1

    def qsize(self):
        return self.count


@pytest.fixture
def absent():
    """A pool of four whose threads are called and do not come."""
    made = ThreadPool()
    made.size, made.calls = 4, Calls()
    return made


@pytest.mark.parametrize("awake", range(4))
def test_who_does_not_look_yet_is_called(absent, awake):
    absent.board[AWAKE] = awake
    absent.wake()
    assert absent.calls.count == 3 - awake
    absent.wake()
    assert absent.calls.count == 3 - awake


def test_a_small_job_calls_threads_only_behind_another_one(absent, monkeypatch):
    now = iter([10**9, 3 * 10**9, 3 * 10**9 + 1000])
    monkeypatch.setattr(thread_pool, "perf_counter_ns", lambda: next(now))
    for calls in (0, 0, 3):
        absent.attend()
        assert absent.calls.count == calls


def test_long_jobs_call_threads_and_small_ones_do_not(absent, monkeypatch):
    for module in (conv, conv_blocked, linear):
        monkeypatch.setattr(module, "threads", absent)
        if module is not linear:
            monkeypatch.setattr(module, "cores", lambda: 4)
    for size, is_long in ((200, True), (40, False)):
        x = normal(1, 8, size, size)
        assert conv.conv2d_kernel(
            *(x, normal(32, 8, 3, 3, seed=1), None),
            stride=(1, 1),
            padding=(1, 1),
            dilation=(1, 1),
            groups=1,
        ).shape == (1, 32, size, size)
        assert (absent.calls.count == 3) is is_long
        absent.calls.count = absent.asked = 0
    for size, is_long in ((2100, True), (600, False)):
        panels, line = linear.laid_panels(normal(size, size), None)
        out = np.empty((1, line.size), np.float32)
        linear.FewRows(normal(1, size), panels, line, out, 0)()
        assert (absent.calls.count == 3) is is_long
        absent.calls.count = absent.asked = 0


# Convolutions of few samples

CASES = [  # channels, size, filters, kernel, padding, dilation, groups
    (8, (26, 26), 16, (3, 3), (0, 0), (1, 1), 1),
    (8, (25, 31), 15, (3, 3), (1, 1), (1, 1), 1),
    (4, (7, 40), 6, (3, 2), (2, 0), (1, 3), 1),
    (3, (40, 9), 5, (5, 4), (2, 3), (2, 1), 1),
    (1, (61, 50), 8, (3, 3), (1, 0), (1, 1), 1),
    (6, (20, 23), 8, (3, 3), (1, 2), (1, 1), 2),
    (2, (4, 4), 3, (4, 4), (5, 5), (1, 1), 1),
]
POOLS = [(None, (1, 1)), ("average", (3, 3)), ("largest", (2, 2)), ("largest", (5, 1))]


def few_channels(case, n, activation, pool):
    """What `correlate_laid` is given for a case."""
    channels, size, filters, kernel, padding, dilation, groups = case
    x = normal(n, channels, *size)
    weight = normal(filters, channels // groups, *kernel, seed=1)
    sizes = zip(size, kernel, padding, dilation, strict=True)
    stops = [conv.output_size(m, k, 1, p, d) for m, k, p, d in sizes]
    kind, (rows, columns) = pool
    how = (*padding, *dilation, groups, filters // groups, *kernel)
    laid = conv.laid_weights(weight, normal(filters, seed=2), stops[1], how)
    out = np.full(
        (n, filters, stops[0] // rows, stops[1] // columns), np.nan, np.float32
    )
    end = (finish.ACTIVATIONS[activation], finish.POOLS[kind], rows, columns)
    return x, laid, out, how, end


@pytest.mark.parametrize("windows", POOLS, ids=str)
@pytest.mark.parametrize("activation", [None, "relu", "gelu"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_image_in_bands_is_the_whole_image(pool, case, activation, windows):
    x, laid, out, how, end = few_channels(case, 3, activation, windows)
    conv.correlate_laid(x, *laid, out, how, end, 0, 3)
    found = np.full_like(out, np.nan)
    correlate = conv.in_bands(x, laid, found, how, end)
    for _ in range(3):
        correlate()
    np.testing.assert_array_equal(found, out)
    assert not np.isnan(found).any()
    assert not pool.board[LOCK]


@pytest.mark.parametrize("lines", [2, 4, 6, 10, 1000])
def test_bands_of_any_number_of_lines(pool, lines):
    for windows in (None, (1, 1)), ("largest", (2, 2)):
        x, laid, out, how, end = few_channels(CASES[1], 2, "relu", windows)
        conv.correlate_laid(x, *laid, out, how, end, 0, 2)
        found = np.full_like(out, np.nan)
        conv.correlate_bands(pool.board, x, *laid, found, how, end, lines)
        np.testing.assert_array_equal(found, out)


def test_bands_of_callers_at_once(pool):
    wrong = []

    def work(seed):
        case = CASES[seed]
        x, laid, out, how, end = few_channels(case, 1, "relu", ("average", (3, 3)))
        conv.correlate_laid(x, *laid, out, how, end, 0, 1)
        found = np.empty_like(out)
        correlate = conv.in_bands(x, laid, found, how, end)
        for _ in range(100):
            found.fill(np.nan)
            correlate()
            if not np.array_equal(found, out):
                wrong.append(seed)

    call_at_once(work)
    assert wrong == []


def test_samples_enough_or_little_work_are_not_cut(pool, monkeypatch):
    x, laid, out, how, end = few_channels(CASES[0], 4, None, (None, (1, 1)))
    assert conv.in_bands(x, laid, out, how, end) is None
    assert conv.in_bands(x[:3], laid, out[:3], how, end) is not None
    monkeypatch.setattr(conv, "PART_WORK", 1 << 40)
    assert conv.in_bands(x[:3], laid, out[:3], how, end) is None


@pytest.mark.parametrize("activation", [None, "relu", "silu"])
@pytest.mark.parametrize(("n", "filters"), [(1, 40), (1, 129), (2, 97), (3, 160)])
def test_filters_by_blocks_are_all_filters(pool, n, filters, activation):
    x, weight = normal(n, 20, 9, 11), normal(filters, 20, 3, 3, seed=1)
    lanes = conv_blocked.LANES
    bias = np.zeros(-(-filters // lanes) * lanes, np.float32)
    bias[:filters] = normal(filters, seed=2)
    sizes = conv.with_stops([(9, 3, 1, 1, 1), (11, 3, 1, 1, 1)], (9, 11))
    plan = conv_blocked.plan_of(conv_blocked.forward_side, sizes, (9, 11), 20, 1)
    laid, which = conv_blocked.laid_weights(weight), finish.ACTIVATIONS[activation]
    out = np.full((n, filters, 9, 11), np.nan, np.float32)
    found = out.copy()
    conv_blocked.correlate_images(x, laid, bias, out, *plan, which, 0, n)
    correlate = conv_blocked.by_filters(x, laid, bias, found, plan, which)
    if n >= -(-filters // conv_blocked.WIDE):
        assert correlate is None
        return
    correlate()
    np.testing.assert_array_equal(found, out)
    assert not pool.board[LOCK]


def test_pieces_of_parameters_are_all_updated(pool):
    numbers, size = (1e-2, 0.9, 0.99, 3.0, 1e-8, 0.1, 0.99), 1000
    arrays = [normal(size, seed=k) for k in range(3)] + [normal(size, seed=3) ** 2]
    none = np.empty(0, np.float32)
    right = [array.copy() for array in arrays]
    p, g, m, v = right
    args = (p, g, m, v, none), (p, m, v, none), numbers, True, True
    optimizer_steps.adam_range(*args, 0, size)
    starts = range(0, size, 64)
    places = [array.__array_interface__["data"][0] for array in arrays]
    rows = [[*[at + 4 * k for at in places], min(64, size - k)] for k in starts]
    pool.wake()
    pieces = np.array(rows, np.int64)
    optimizer_steps.adam_pieces(pool.board, pieces, numbers, True)
    for found, wanted in zip(arrays, right, strict=True):
        np.testing.assert_array_equal(found, wanted)


# Ranges, shared out in Python


@pytest.mark.parametrize("most", [None, 1, 7, 64, 1000])
@pytest.mark.parametrize("grain", [1, 4])
@pytest.mark.parametrize("head_start", [0, 30])
@pytest.mark.parametrize("total", [1, 2, 63, 100, 129])
def test_ranges_cover_everything_once_and_are_no_larger_than_told(
    pool, total, head_start, grain, most
):
    seen = []

    def work(start, stop):
        seen.append((start, stop))

    pool.run(work, (), total, grain, head_start, most)
    starts, stops = zip(*sorted(seen), strict=True)
    assert starts[0] == 0
    assert (*starts[1:], total) == stops
    assert all(start % grain == 0 for start in starts)
    if most is not None and pool.size > 1 and total > grain:
        first = head_start if 2 * head_start < total else 0
        assert all(
            stop - start <= max(most, grain) + (0 if start else first)
            for start, stop in seen
        )
