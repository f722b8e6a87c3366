"""A small team of threads that shares out one kernel.

A kernel works on a range of parts and gives up Python's lock while it runs. The caller
starts on the first part at once; members of the team wake up and take the next ones.
Nobody waits for a member who is late, because the caller goes on taking parts until
none is left. So a busy machine slows a kernel down and never stops it; any number of
threads may call at once; and after a fork, the child starts a team of its own.
"""

import os
import threading
from collections.abc import Callable, Iterator
from itertools import count
from queue import SimpleQueue
from typing import Any, ClassVar

import numpy as np

LOOKS = 2000  # at a flag, before a thread that waits lies down: some 80 µs
PARTS_EACH = 1  # more only cost: each part ends with a wait for Python's lock


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


class Job:
    """One kernel call: parts still to take, and how many are finished."""

    __slots__ = (
        *("args", "done", "error", "finished", "flag", "kernel"),
        *("last", "late", "parts"),
    )

    def __init__(
        self, kernel: Callable[..., Any], args: tuple[Any, ...], ends: range, late: int
    ):
        self.kernel, self.args, self.late = kernel, args, late
        self.parts: Iterator[int] = iter(ends[:-1])
        self.finished = count(1)
        self.last = len(ends) - 1
        self.done = threading.Lock()
        self.done.acquire()
        self.flag = np.zeros(1, np.uint8)  # set where done is released
        self.error: BaseException | None = None

    def help(self, size: int, total: int) -> None:
        """Take parts until none is left."""
        for start in self.parts:  # taking one is a single step of the interpreter
            stop = min(start + self.late + size, total)
            start += self.late if start else 0
            try:
                self.kernel(*self.args, start, stop)
            except BaseException as error:
                self.error = error
            if next(self.finished) == self.last:
                self.done.release()
                self.flag[0] = 1


class Team:
    """Threads that wait for jobs; they are started by the first job that wants them.

    watch: looks at a flag without Python's lock, once numba is here (see awake.py).
    """

    watch: ClassVar[Callable[[np.ndarray, int], None] | None] = None

    def __init__(self) -> None:
        self.jobs: SimpleQueue[tuple[Job, int, int]] = SimpleQueue()
        self.size = 0

    def run(
        self,
        kernel: Callable[..., Any],
        args: tuple[Any, ...],
        total: int,
        grain: int = 1,
        late: int = 0,
    ) -> None:
        """Call kernel(*args, start, stop) until 0 … total is covered.

        grain: no part is smaller, and every part but the last is a multiple of it.
        late: how much the caller does while another wakes up, where that counts; its
        first part is larger by so much.
        """
        if self.size == 0:
            self.start(cores())
        grains = -(-total // grain)
        if self.size == 1 or grains < 2:
            kernel(*args, 0, total)
            return
        late = late // grain * grain if 2 * late < total else 0
        grains = -(-(total - late) // grain)
        size = -(-grains // (self.size * PARTS_EACH)) * grain
        job = Job(kernel, args, range(0, total - late + size, size), late)
        for _ in range(self.size - 1 - self.jobs.qsize()):
            self.jobs.put((job, size, total))
        job.help(size, total)
        if not job.done.acquire(False):
            if self.watch is not None:
                self.watch(job.flag, LOOKS)
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
        jobs = self.jobs
        while True:
            job, size, total = jobs.get()
            job.help(size, total)
            del job


def _after_fork() -> None:
    """Threads do not survive a fork; the child starts its own when it needs them."""
    global _starting
    _starting = threading.Lock()
    team.jobs = SimpleQueue()
    team.size = 0


_starting = threading.Lock()
team = Team()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
