"""Workers make batches ahead of the training loop.

The plan (which items make which batch) is fixed before any work begins, and batches are
handed out in the order of the plan. So the number of workers changes when a batch is
made, never what is in it. Work ahead is bounded: at most `AHEAD` batches a worker.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import multiprocessing
import os
import pickle
import re
import signal
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, wait
from queue import Empty, SimpleQueue
from typing import Any

from burnbook.core.errors import BurnbookError, DataError
from burnbook.core.rng import Stream, use_stream
from burnbook.data.dataloader.batcher import bound
from burnbook.data.dataloader.stacking import DefaultBatcher
from burnbook.data.dataset.base import Dataset

AHEAD = 2
QUICK = 1 << 18  # bytes of a batch of rows that are copied at once
PATIENCE = 3.0  # seconds to wait for the workers at the end of an iteration
SECONDS_BETWEEN_LOOKS = 0.05
THREADS = "leave out worker_processes()"
MAIN = 'put what starts the training under `if __name__ == "__main__":`'
Task = tuple[int, Sequence[int]]  # number of the batch, indices of its items


class BatchMaker:
    """Makes the batches of one epoch; `batcher` None means: lists of items.

    Why: every batch draws its random numbers from a stream named after its number, so
    augmentation is the same whichever worker makes the batch.
    """

    def __init__(
        self, dataset: Dataset[Any], batcher: Any, device: Any, seed: int, epoch: int
    ) -> None:
        at_epoch = getattr(dataset, "at_epoch", None)
        self.dataset = at_epoch(epoch) if at_epoch else dataset
        self.batcher = batcher
        self.batch = None if batcher is None else bound(batcher, device)
        self.device = device
        get_stacked = getattr(self.dataset, "get_stacked", None)
        self.stacked = get_stacked if type(batcher) is DefaultBatcher else None
        self.epoch = epoch
        self.stream = Stream(seed).split(f"loader, epoch {epoch}")

    def is_quick(self, size: int | None) -> bool:
        """Whether a batch of so many items is made more quickly than handed over."""
        if self.stacked is None or size is None:
            return False
        first = self.stacked([0])
        if first is None:
            return False
        parts = first.values() if isinstance(first, Mapping) else first
        columns = parts if isinstance(first, tuple | Mapping) else (first,)
        return sum(column.nbytes for column in columns) * size <= QUICK

    def make(self, task: Task) -> Any:
        """Fetch the items of one batch and put them together."""
        number, indices = task
        with use_stream(self.stream.split(number)):
            arrays = None if self.stacked is None else self.stacked(indices)
            if arrays is not None:
                return self.batcher.of_stacked(arrays, self.device)
            items = self._fetch(number, indices)
            if self.batch is None:
                return items
            try:
                return self.batch(items)
            except Exception as error:
                raise self._cannot_batch(number, indices, items, error) from error

    def _cannot_batch(
        self, number: int, indices: Sequence[int], items: list[Any], error: Exception
    ) -> DataError:
        name = type(self.batcher).__name__
        why = described(error)
        if isinstance(error, BurnbookError) and error.where == name:
            why = error.what
        what = f"{name} cannot make batch {number}: {why}"
        facts = self._facts(number)
        facts.append(("items", shortened(indices)))
        different = None
        if any(word in str(error).lower() for word in ("shape", "dim", "size")):
            different = different_shapes(indices, items)
        if different is None:
            if isinstance(error, BurnbookError):  # it knows more than its first line
                place = getattr(error, "place", None)
                if place is not None:
                    facts.append(("wrong", f"item {indices[place]} of the dataset"))
                facts = [*error.facts, *facts]
                return DataError("data loader", what, facts, error.cure)
            return DataError("data loader", what, facts)
        kind, one, other = different
        what = f"{name} cannot make batch {number}: the {kind} differ in shape"
        facts = [("shapes", f"{one}; {other}"), ("why", described(error)), *facts]
        cure = "resize, crop or pad them, in the batcher or in a MapperDataset before"
        return DataError("data loader", what, facts, cure)

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
            if index is not None and cause is None:
                what = f"{name}.get({index}) returned None, not an item"
                cure = "`return` the item at the end of get(), also for this index"
                facts = self._facts(number)
                raise DataError("data loader", what, facts, cure) from error
            cause = cause or error
            what = f"{which} of {name} cannot be loaded: {described(cause)}"
            raise DataError("data loader", what, self._facts(number)) from cause

    def _culprit(
        self, indices: Sequence[int], error: Exception
    ) -> tuple[int | None, Exception | None]:
        """Ask again which item it was: its index, and its error (none: it was None)."""
        for index in indices:
            try:
                if self.dataset.get(index) is None:
                    return index, None
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
        stopped: Callable[[], bool] | None = None,
    ) -> None:
        self.submit = submit
        self.here = here
        self.most = most
        self.stopped = stopped
        self.ahead = 1
        self.alone = False

    def run(self, tasks: Iterable[Task]) -> Generator[Any, None, None]:
        """Give the result of every task, in order; ends early when it is stopped.

        Why: a worker that hangs must not keep the caller, who was asked to stop.
        """
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
                if not self._wait(job):
                    return
                yield job.result()
            else:
                self._fill(waiting, queue)
                yield self.here(job)
            first = False

    def _wait(self, job: Future[Any]) -> bool:
        """Wait for a result; False when the iteration was stopped meanwhile."""
        if self.stopped is None:
            return True
        while not job.done():
            if self.stopped():
                return False
            wait([job], SECONDS_BETWEEN_LOOKS)
        return True

    def _fill(self, waiting: deque[Future[Any] | Task], queue: Iterator[Task]) -> None:
        while len(waiting) < self.ahead and (task := next(queue, None)) is not None:
            if not self.alone:
                try:
                    waiting.append(self.submit(task))
                    continue
                except (RuntimeError, OSError):
                    self.alone = True
            waiting.append(task)


class Threads:
    """A few threads that nobody waits for when the program ends.

    Why: a thread of a ThreadPoolExecutor that hangs, for example on a network drive,
    keeps the program from ever ending.
    """

    def __init__(self, workers: int, work: Callable[[Task], Any]) -> None:
        self.workers, self.work = workers, work
        self.threads: list[threading.Thread] = []
        self.jobs: SimpleQueue[tuple[Future[Any], Task] | None] = SimpleQueue()
        self.idle = threading.Semaphore(0)

    def submit(self, task: Task) -> Future[Any]:
        """Have a thread do the task; RuntimeError where there can be none."""
        if not self.idle.acquire(blocking=False) and len(self.threads) < self.workers:
            self._start()
        future: Future[Any] = Future()
        self.jobs.put((future, task))
        return future

    def _start(self) -> None:
        number = len(self.threads)
        name = f"burnbook-loader_{number}"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more of them; those that are there do the work
            if not self.threads:
                raise
            self.workers = number
            return
        self.threads.append(thread)

    def _run(self) -> None:
        while (job := self.jobs.get()) is not None:
            future, task = job
            if future.set_running_or_notify_cancel():
                try:
                    result = self.work(task)
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)
                    del result  # the batch belongs to the caller alone
            del job, future
            self.idle.release()

    def close(self, seconds: float) -> None:
        """End the threads; one that hangs is left to itself after so many seconds."""
        with contextlib.suppress(Empty):
            while (job := self.jobs.get_nowait()) is not None:
                job[0].cancel()
        for _ in self.threads:
            self.jobs.put(None)
        until = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0.0, until - time.monotonic()))


def by_threads(
    tasks: Iterable[Task],
    maker: BatchMaker,
    workers: int,
    stopped: Callable[[], bool] | None = None,
) -> Generator[Any, None, None]:
    """Make batches in threads that end when this generator is closed."""
    threads, seconds = Threads(workers, maker.make), PATIENCE
    try:
        most = AHEAD * workers
        ordered = InOrder(threads.submit, maker.make, most, stopped)
        yield from ordered.run(tasks)
    except KeyboardInterrupt:
        seconds = 0.0
        raise
    finally:
        threads.close(seconds)


class ProcessPool:
    """Worker processes that hold the dataset and the batcher, kept between epochs."""

    def __init__(self, recipe: tuple[Any, ...], workers: int, start: str) -> None:
        check_main("data loader")
        self.workers = workers
        self.broken = False
        self.worked = False  # whether it has produced a batch
        payload = _packed(recipe)
        self.pool: Executor | None = None
        self.reader: Any = None
        made = _process_executor(payload, workers, start)
        if made is not None:
            self.pool, self.reader = made
            _pools.add(self)

    def run(
        self,
        tasks: Iterable[Task],
        maker: BatchMaker,
        stopped: Callable[[], bool] | None = None,
    ) -> Generator[Any, None, None]:
        """Make the batches of one epoch in the processes."""
        sent: list[Future[Any]] = []

        def submit(task: Task) -> Future[Any]:
            if self.pool is None:
                raise OSError("no processes here")
            try:
                with _no_interrupt():
                    made = self.pool.submit(_make_in_process, maker.epoch, task)
            except BrokenExecutor as error:
                raise _lost(error, self.worked) from error
            sent.append(made)
            del sent[: -AHEAD * self.workers - 1]
            return made

        try:
            most = AHEAD * self.workers
            ordered = InOrder(submit, maker.make, most, stopped)
            for batch in ordered.run(tasks):
                self.worked = True
                yield batch
        except DataError as error:
            self.broken = isinstance(error.__cause__, BrokenExecutor)
            if self.broken:
                self.close()
            raise
        except Exception as error:
            self.broken = True
            self.close()
            raise _lost(error, self.worked) from error
        except KeyboardInterrupt:
            self.broken = True
            self.close(0.0)
            raise
        finally:
            for future in sent:
                future.cancel()

    def close(self, seconds: float = PATIENCE) -> None:
        """End the processes: those still at work after so many seconds are killed.

        Why: the pool's own thread waits for the processes, and a second waiter would
        see one as alive that the first has just met.
        """
        pool, self.pool = self.pool, None
        if pool is None:
            return
        processes = list((getattr(pool, "_processes", None) or {}).values())
        waiter = getattr(pool, "_executor_manager_thread", None)
        pool.shutdown(wait=False, cancel_futures=True)
        if waiter is threading.current_thread():  # where the loader was collected
            waiter = None
        try:
            if waiter is not None:
                waiter.join(seconds)
        finally:
            for process in processes:
                with contextlib.suppress(ValueError, OSError, AttributeError):
                    if process.is_alive():  # it hangs, or takes too long
                        process.kill()
            if waiter is not None:
                waiter.join(PATIENCE)
        if self.reader is not None:
            self.reader.close()  # which ends the thread that still sends, if any


# The pools of this process that may still have workers.
_pools: weakref.WeakSet[ProcessPool] = weakref.WeakSet()


def _end_all() -> None:
    """When the program ends: no worker that hangs may keep it."""
    for pool in list(_pools):
        pool.close(0.0)


@functools.cache
def _end_all_at_exit() -> None:
    """Have `_end_all` called when the program ends, once.

    Why: Python's own pool waits for its workers when threads end, forever if one hangs.
    What was registered last is called first, so this comes before.
    """
    with contextlib.suppress(AttributeError, RuntimeError):
        threading._register_atexit(_end_all)  # type: ignore[attr-defined] # no other way


def check_main(where: str) -> None:
    """Refuse to go on in a worker process that is still reading the program's file.

    Why: a worker starts by importing the program. Where training does not stand under
    `if __name__ == "__main__":` each worker would train too, in the same folder.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise DataError(
            where,
            "a worker process imports this program, and would train all over again",
            ["each worker starts by running the program up to its end"],
            MAIN,
        )


@contextlib.contextmanager
def _no_interrupt() -> Generator[None]:
    """Let a process start with Ctrl-C ignored: the training process handles it.

    Why: until it has read the program, it would die of Ctrl-C with a traceback of its
    own.
    """
    mask = getattr(signal, "pthread_sigmask", None)
    if mask is None:
        yield
        return
    before = mask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        mask(signal.SIG_SETMASK, before)


def _lost(error: Exception, worked: bool) -> DataError:
    """The error for workers that have gone, before or after their first batch."""
    if not isinstance(error, BrokenExecutor):
        what = f"a worker process failed: {described(error)}"
        return DataError("data loader", what, cure=f"threads: {THREADS}")
    if worked:
        what = "a worker process has ended in the middle of its work"
        facts = ["it was killed, ran out of memory, or crashed"]
        cure = f"fewer workers, smaller batches, or threads: {THREADS}"
        return DataError("data loader", what, facts, cure)
    what = "a worker process has ended before its first batch"
    facts = ["it could not import the program, was killed, or ran out of memory"]
    return DataError("data loader", what, facts, f"{MAIN}; or threads: {THREADS}")


def different_shapes(
    indices: Sequence[int], items: list[Any]
) -> tuple[str, str, str] | None:
    """What differs in shape between two items: its name, and both with their numbers.

    Example:
        >>> import numpy as np
        >>> different_shapes([4, 9], [(np.zeros([2, 2]), 1), (np.zeros([3, 2]), 0)])
        ('arrays', 'item 4 [2, 2]', 'item 9 [3, 2]')
    """
    first: dict[str, tuple[int, tuple[int, ...]]] = {}
    for index, item in zip(indices, items, strict=False):
        for name, shape in _shapes(item):
            begun, known = first.setdefault(name, (index, shape))
            if shape != known:
                kind = f"{name.rpartition('.')[2]} arrays".lstrip(" 0123456789")
                return (
                    kind,
                    f"item {begun} {list(known)}",
                    f"item {index} {list(shape)}",
                )
    return None


def _list_shape(item: list[Any]) -> tuple[int, ...] | None:
    """The shape of a list of numbers, or of a list of such lists."""
    if not item or not isinstance(item[0], int | float | list):
        return None
    inner = _list_shape(item[0]) if isinstance(item[0], list) else ()
    return None if inner is None else (len(item), *inner)


def _shapes(item: object, name: str = "") -> Iterator[tuple[str, tuple[int, ...]]]:
    """The arrays in an item, with where they stand in it, two levels deep."""
    shape = _list_shape(item) if type(item) is list else getattr(item, "shape", None)
    if isinstance(shape, tuple):
        yield name, shape
        return
    if name.count(".") >= 2:
        return
    if isinstance(item, dict):
        parts = item.items()
    elif isinstance(item, tuple | list):
        parts = enumerate(item) if len(item) <= 16 else ()
    else:
        parts = getattr(item, "__dict__", {}).items()
    for key, value in parts:
        yield from _shapes(value, f"{name}.{key}")


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
        what = "the dataset or the batcher cannot be sent to a process"
        facts = [
            ("why", described(error)),
            ("dataset", repr(recipe[0])),
            ("batcher", type(recipe[1]).__name__),
        ]
        cure = (
            "functions and classes defined at the top of a module (no lambda), or "
            f"threads ({THREADS})"
        )
        raise DataError("data loader", what, facts, cure) from error


def _process_executor(
    payload: bytes, workers: int, start: str
) -> tuple[Executor, Any] | None:
    """The processes, and the end of a pipe where they read their recipe."""
    nowhere = (ImportError, NotImplementedError, OSError, RuntimeError)
    with contextlib.suppress(*nowhere):
        from concurrent.futures import ProcessPoolExecutor

        _end_all_at_exit()
        context = multiprocessing.get_context(start)
        reader, writer = context.Pipe(duplex=False)
        _send_in_thread(writer, payload, workers)
        arguments = (reader, context.Lock())
        pool = ProcessPoolExecutor(
            workers, mp_context=context, initializer=_receive, initargs=arguments
        )
        return pool, reader
    return None


def _send_in_thread(writer: Any, payload: bytes, times: int) -> None:
    """Send the recipe to every worker that asks for it.

    Why: given along at the start of a process, it would fill the pipe of one that ends
    before it reads, and the training process would wait for it forever.
    """

    def send() -> None:
        with contextlib.suppress(OSError), writer:  # the last reader has gone
            for _ in range(times):
                writer.send_bytes(payload)

    threading.Thread(target=send, name="burnbook-recipe", daemon=True).start()


# In a worker process: the recipe as it arrived, and the maker of the current epoch.
_received: dict[str, Any] = {}


def _receive(reader: Any, turn: Any) -> None:
    """Begin a worker process: it leaves the cores to the training and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the training process decides
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    with contextlib.suppress(ImportError):
        importlib.import_module("threadpoolctl").threadpool_limits(1)
    try:
        with turn, reader:
            _received["payload"] = reader.recv_bytes()
    except (EOFError, OSError):  # the training process has gone
        os._exit(1)


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
