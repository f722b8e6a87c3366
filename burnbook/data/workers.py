"""Building blocks · Dataset. Workers make batches ahead of the training loop.

The plan (which items make which batch) is fixed before any work begins, and batches are
handed out in the order of the plan. So the number of workers changes when a batch is
made, never what is in it. Work ahead is bounded: at most `AHEAD` batches a worker.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import pickle
import re
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

from burnbook.data.batcher import bound
from burnbook.data.dataset import Dataset
from burnbook.errors import DataError
from burnbook.random import Stream, use_stream

AHEAD = 2
Task = tuple[int, Sequence[int]]  # number of the batch, indices of its items


class BatchMaker:
    """Makes the batches of one epoch; `batcher` None means: lists of items.

    Why: every batch draws its random numbers from a stream named after its number, so
    augmentation is the same whichever worker makes the batch.
    """

    def __init__(
        self, dataset: Any, batcher: Any, device: Any, seed: int, epoch: int
    ) -> None:
        at_epoch = getattr(dataset, "at_epoch", None)
        self.dataset = at_epoch(epoch) if at_epoch else dataset
        self.batcher = batcher
        self.batch = None if batcher is None else bound(batcher, device)
        self.epoch = epoch
        self.stream = Stream(seed).split(f"loader, epoch {epoch}")

    def make(self, task: Task) -> Any:
        """Fetch the items of one batch and put them together."""
        number, indices = task
        with use_stream(self.stream.split(number)):
            items = self._fetch(number, indices)
            if self.batch is None:
                return items
            try:
                return self.batch(items)
            except Exception as error:
                name = type(self.batcher).__name__
                what = f"{name} cannot make batch {number}: {described(error)}"
                facts = self._facts(number)
                facts.append(("items", shortened(indices)))
                raise DataError("data loader", what, facts) from error

    def _fetch(self, number: int, indices: Sequence[int]) -> list[Any]:
        try:
            if hasattr(self.dataset, "get_many"):
                return self.dataset.get_many(indices)
            return Dataset[Any].get_many(self.dataset, indices)
        except Exception as error:
            index, cause = self._culprit(indices, error)
            name = type(self.dataset).__name__
            which = f"item {index}"
            if index is None:
                which = f"items {shortened(indices)}"
            what = f"{which} of {name} cannot be had: {described(cause)}"
            raise DataError("data loader", what, self._facts(number)) from cause

    def _culprit(
        self, indices: Sequence[int], error: Exception
    ) -> tuple[int | None, Exception]:
        """Ask again, one by one, to learn which item it was."""
        for index in indices:
            try:
                if self.dataset.get(index) is None:
                    return index, error
            except Exception as cause:
                return index, cause
        return None, error

    def _facts(self, number: int) -> list[Any]:
        where = f"{number} of epoch {self.epoch}"
        return [("dataset", repr(self.dataset)), ("batch", where)]


class InOrder:
    """Keeps tasks under way and gives their results in the order of the tasks.

    Why: it begins with one task ahead and takes more (up to `most`) only when the
    caller had to wait, so cheap batches leave the cores to training. Where no worker
    can be started (no threads in a browser, none left on a busy machine) the caller
    does the work itself.
    """

    def __init__(
        self,
        submit: Callable[[Task], Future[Any]],
        here: Callable[[Task], Any],
        most: int,
    ) -> None:
        self.submit = submit
        self.here = here
        self.most = most
        self.ahead = 1
        self.alone = False

    def run(self, tasks: Iterable[Task]) -> Generator[Any, None, None]:
        """Give the result of every task, in order."""
        queue = iter(tasks)
        waiting: deque[Future[Any] | Task] = deque()
        self._fill(waiting, queue)
        first = True
        while waiting:
            job = waiting.popleft()
            if isinstance(job, Future):
                if not job.done() and not first:
                    self.ahead = min(2 * self.ahead, self.most)
                self._fill(waiting, queue)
                yield job.result()
            else:
                self._fill(waiting, queue)
                yield self.here(job)
            first = False

    def _fill(self, waiting: deque[Future[Any] | Task], queue: Iterator[Task]) -> None:
        while len(waiting) < self.ahead and (task := next(queue, None)) is not None:
            if not self.alone:
                try:
                    waiting.append(self.submit(task))
                    continue
                except (RuntimeError, OSError):
                    self.alone = True
            waiting.append(task)


def by_threads(
    tasks: Iterable[Task], maker: BatchMaker, workers: int
) -> Generator[Any, None, None]:
    """Make batches in threads that end when this generator is closed."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="burnbook-loader")
    ended = threading.Event()

    def work(task: Task) -> Any:
        return None if ended.is_set() else maker.make(task)

    try:
        ordered = InOrder(
            lambda task: pool.submit(work, task), maker.make, AHEAD * workers
        )
        yield from ordered.run(tasks)
    finally:
        ended.set()
        pool.shutdown(wait=True, cancel_futures=True)


class ProcessPool:
    """Worker processes that hold the dataset and the batcher, kept between epochs."""

    def __init__(self, recipe: tuple[Any, ...], workers: int, start: str) -> None:
        self.workers = workers
        self.broken = False
        payload = _packed(recipe)
        self.pool = _process_executor(payload, workers, start)

    def run(
        self, tasks: Iterable[Task], maker: BatchMaker
    ) -> Generator[Any, None, None]:
        """Make the batches of one epoch in the processes."""
        sent: list[Future[Any]] = []

        def submit(task: Task) -> Future[Any]:
            if self.pool is None:
                raise OSError("no processes here")
            sent.append(self.pool.submit(_make_in_process, maker.epoch, task))
            del sent[: -AHEAD * self.workers - 1]
            return sent[-1]

        try:
            ordered = InOrder(submit, maker.make, AHEAD * self.workers)
            yield from ordered.run(tasks)
        except DataError:
            raise
        except Exception as error:
            self.broken = True
            self.close()
            raise _lost(error) from error
        finally:
            for future in sent:
                future.cancel()

    def close(self) -> None:
        """End the processes."""
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)


def _lost(error: Exception) -> DataError:
    what = f"a worker process failed: {described(error)}"
    cure = (
        "threads (leave out worker_processes()), or classes and functions of a module "
        "and a program that starts under `if __name__ == '__main__':`"
    )
    return DataError("data loader", what, cure=cure)


def described(error: BaseException) -> str:
    """Say an error in one line: its class and the first line of its text."""
    first = re.sub(r" at 0x[0-9a-f]+", "", str(error).partition("\n")[0])
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def shortened(indices: Sequence[int]) -> str:
    """Name some of the indices: `3, 1, 4, 15, 9, 2, … (64 items)`."""
    named = ", ".join(map(str, indices[:6]))
    return named if len(indices) <= 6 else f"{named}, … ({len(indices)} items)"


def _packed(recipe: tuple[Any, ...]) -> bytes:
    try:
        return pickle.dumps(recipe, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        what = "the dataset or the batcher cannot go to a process"
        facts = [
            ("why", described(error)),
            ("dataset", repr(recipe[0])),
            ("batcher", type(recipe[1]).__name__),
        ]
        cure = (
            "functions and classes defined at the top of a module (no lambda), or "
            "threads (leave out worker_processes())"
        )
        raise DataError("data loader", what, facts, cure) from error


def _process_executor(payload: bytes, workers: int, start: str) -> Executor | None:
    with contextlib.suppress(ImportError, NotImplementedError, OSError):
        from concurrent.futures import ProcessPoolExecutor

        context = multiprocessing.get_context(start)
        return ProcessPoolExecutor(
            workers, mp_context=context, initializer=_receive, initargs=(payload,)
        )
    return None


# In a worker process: the recipe as it arrived, and the maker of the current epoch.
_received: dict[str, Any] = {}


def _receive(payload: bytes) -> None:
    """Begin a worker process: it leaves the cores to training and ends with it."""
    _received["payload"] = payload
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the training process decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    with contextlib.suppress(ImportError):
        importlib.import_module("threadpoolctl").threadpool_limits(1)


def _end_with_parent() -> None:
    """Wait for the training process to end, even by a kill, and end too."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _make_in_process(epoch: int, task: Task) -> Any:
    maker: BatchMaker | None = _received.get("maker")
    if maker is None or maker.epoch != epoch:
        if "recipe" not in _received:  # here, so that a failure reaches the caller
            _received["recipe"] = pickle.loads(_received.pop("payload"))
        dataset, batcher, device, seed = _received["recipe"]
        maker = BatchMaker(dataset, batcher, device, seed, epoch)
        _received["maker"] = maker
    return maker.make(task)
