"""A small pool of threads that share the work of one kernel.

A kernel works on a range of parts and gives up Python's lock while it runs. The caller
starts on the first part at once; threads of the pool wake up and take the next ones.
Nobody waits for a thread that is late, because the caller goes on taking parts until
none is left. So a busy machine slows a kernel down and never stops it; any number of
threads may call at once; and after a fork, the child starts a pool of its own.

A call of threads does not say for which job: a thread that wakes up late, for one that
is done, finds the one that is open by then.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from queue import SimpleQueue
from time import perf_counter_ns
from typing import Any, ClassVar

import numpy as np

from burnbook.backend.compiled.runtime.gil import is_gil_enabled

SPINS = 2000  # looks at a flag before a thread that waits sleeps: some 80 µs
QUIET = 1_000_000  # nanoseconds after which the next small job is done alone
LOOKS = 8000  # looks at the board before a thread without work sleeps: some 300 µs
# More parts only cost, as each ends with a wait for Python's lock; what goes in turns
# (plan.py) has more, each of them longer than that.
PARTS_EACH = 1

# Bytes of the largest array of an element-wise op. With fewer, one thread is done
# before another helps, which takes some 200 µs. Measured at once and after pauses of
# 1 ms, where threads have cores of their own and where they wake up on one core.
ALONE = 1 << 21
SLOW_ALONE = 1 << 20  # the same for functions that take 0.6 ns and more for an element


def cores() -> int:
    """How many threads may work: BURNBOOK_THREADS, or the cores this process has.

    Example:
        >>> cores() >= 1
        True
    """
    chosen = os.environ.get("BURNBOOK_THREADS", "")
    if chosen.isdigit() and int(chosen) > 0:
        return int(chosen)
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), _MOST)
    return min(os.cpu_count() or 1, _MOST)


_MOST = 16

# Places on the board that threads share without Python's lock, in lines of the cache of
# their own: a job of board.py, and how many threads look out for one.
TICKET, DONE, LOCK, AWAKE, CALLED, JOB = (8 * k for k in range(6))
BOARD = 8 * 8


def make_board() -> np.ndarray:
    """An empty board, at the beginning of a line of the cache."""
    memory = np.zeros(BOARD + 8, np.int64)
    return memory[-memory.ctypes.data % 64 // 8 :][:BOARD]


class Locked:
    """An iterator that one thread at a time may ask for the next element."""

    def __init__(self, elements: Iterable[int]):
        self.elements, self.lock = iter(elements), threading.Lock()

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        with self.lock:
            return next(self.elements)


# With the GIL, taking the next element is a single step of the interpreter anyway.
atomic: Callable[[Iterable[int]], Iterator[int]] = iter if is_gil_enabled() else Locked


class Job:
    """One kernel call: parts still to take, and how many are finished."""

    __slots__ = (
        *("args", "done", "error", "finished", "flag", "kernel"),
        *("head_start", "last", "parts", "size", "total"),
    )

    def __init__(
        self,
        kernel: Callable[..., Any],
        args: tuple[Any, ...],
        size: int,
        total: int,
        head_start: int,
    ):
        self.kernel, self.args, self.head_start = kernel, args, head_start
        self.size, self.total = size, total
        ends = range(0, total - head_start + size, size)
        self.parts, self.finished = atomic(ends[:-1]), atomic(count(1))
        self.last = len(ends) - 1
        self.done = threading.Lock()
        self.done.acquire()
        self.flag = np.zeros(1, np.uint8)  # set where done is released
        self.error: BaseException | None = None

    def take_parts(self) -> bool:
        """Take parts until none is left; False where there was none."""
        size, total = self.size, self.total
        took = False
        for start in self.parts:
            took = True
            stop = min(start + self.head_start + size, total)
            start += self.head_start if start else 0
            try:
                self.kernel(*self.args, start, stop)
            except BaseException as error:
                self.error = error
            if next(self.finished) == self.last:
                self.done.release()
                self.flag[0] = 1
        return took


class _Here(threading.local):
    """Whether this thread is at work on a part; what it calls is not shared again."""

    is_inside = False


class ThreadPool:
    """Threads that wait for jobs; they are started by the first job that wants them.

    Once numba is here, they can do more without Python's lock. spin: waits for a flag
    (spin_wait.py). serve: takes parts of jobs on the board (board.py). multiply: such a
    job, a matrix product (shared_product.py).
    """

    spin: ClassVar[Callable[[np.ndarray, int], None] | None] = None
    serve: ClassVar[Callable[[np.ndarray, int], None] | None] = None
    multiply: ClassVar[Callable[..., bool] | None] = None

    def __init__(self) -> None:
        self.calls: SimpleQueue[None] = SimpleQueue()
        self.open: list[Job] = []  # jobs that may have parts to take
        self.size = 0
        self.board = make_board()
        self.asked = 0  # when threads were last wanted for a small job, in nanoseconds

    def attend(self, is_long: bool = False) -> None:
        """Have threads look at the board: for a long job, or if small ones follow.

        Why: a thread that sleeps takes longer to wake up than a small job takes, and
        finds the next one.
        """
        if self.size == 0:
            self.start(cores())
        if _here.is_inside or self.board[AWAKE] >= self.size - 1:
            return
        now = perf_counter_ns()
        if is_long or now - self.asked < QUIET:
            self.wake()
        self.asked = now

    def wake(self) -> None:
        """Have all threads look at the board."""
        if self.size == 0:
            self.start(cores())
        asleep = self.size - 1 - int(self.board[AWAKE]) - self.calls.qsize()
        for _ in range(asleep):  # a thread that is about to look may be called again
            self.calls.put(None)

    def product(
        self, address: int, x: Any, y: Any, line: Any, out: Any, form: int
    ) -> bool:
        """out = x · y + line by all threads; False where it cannot be shared out now.

        address, line, form: see `multiply` in shared_product.py.
        """
        if self.size == 0:
            self.start(cores())
        if self.multiply is None or _here.is_inside:
            return False
        if self.size == 1 and not line.size:
            return False
        self.wake()
        total = out.shape[0 if form & 4 else 1]
        size = -(-total // (self.size * 16)) * 16
        return self.multiply(
            self.board, address, x, y, line, out, form, size, -(-total // size)
        )

    def run(
        self,
        kernel: Callable[..., Any],
        args: tuple[Any, ...],
        total: int,
        grain: int = 1,
        head_start: int = 0,
        most: int | None = None,
    ) -> None:
        """Call kernel(*args, start, stop) until 0 … total is covered.

        grain: no part is smaller, and every part but the last is a multiple of it.
        most: no part is larger; many parts, where a thread may fall behind.
        head_start: how much the caller does while another wakes up, where that counts;
        its first part is larger by so much.
        """
        if self.size == 0:
            self.start(cores())
        grains = -(-total // grain)
        if self.size == 1 or grains < 2 or _here.is_inside:
            kernel(*args, 0, total)
            return
        head_start = head_start // grain * grain if 2 * head_start < total else 0
        grains = -(-(total - head_start) // grain)
        size = -(-grains // (self.size * PARTS_EACH)) * grain
        if most is not None:
            size = min(size, max(most // grain, 1) * grain)
        job = Job(kernel, args, size, total, head_start)
        self.open.append(job)
        for _ in range(self.size - 1 - self.calls.qsize()):
            self.calls.put(None)
        self.board[CALLED] = 1  # after the call, so that whoever sees it finds the call
        try:
            _here.is_inside = True
            job.take_parts()
        finally:
            _here.is_inside = False
            self.open.remove(job)
        if not job.done.acquire(False):
            if self.spin is not None:
                self.spin(job.flag, SPINS)
            job.done.acquire()
        if job.error is not None:
            raise job.error

    def start(self, size: int) -> None:
        """Start the threads; where there can be none, the caller works alone."""
        with _starting:
            if self.size:
                return
            try:
                for number in range(1, size):
                    name = f"burnbook kernels {number}"
                    threading.Thread(target=self._work, name=name, daemon=True).start()
            except RuntimeError:  # no threads here, as in a browser
                size = 1
            self.size = size

    def _work(self) -> None:
        np.seterr(all="ignore")  # a backend does so for the caller
        _here.is_inside = True
        calls = self.calls
        while True:
            calls.get()
            while any(job.take_parts() for job in self.open[:]):
                pass  # other jobs may have come
            # Before looking for calls: a later one sets it again.
            self.board[CALLED] = 0
            if self.serve is not None and calls.empty():
                self.serve(self.board, LOOKS)


def _after_fork() -> None:
    """Threads do not survive a fork; the child starts its own when it needs them."""
    global _starting
    _starting = threading.Lock()
    threads.calls, threads.open = SimpleQueue(), []
    threads.size = 0
    threads.board = make_board()


_here = _Here()
_starting = threading.Lock()
threads = ThreadPool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
