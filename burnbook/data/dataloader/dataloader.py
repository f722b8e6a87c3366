"""A data loader iterates over a dataset in batches.

`iter(loader)` is one epoch. The order of an epoch follows from the seed and the number
of the epoch alone; workers (threads, or processes on request) only prepare batches
ahead. Leaving the loop early, by `break` or by an error, ends the work at once.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from burnbook.core.dropped import result_matters
from burnbook.core.errors import ArgumentError, ConfigError, DataError
from burnbook.core.other_forms import answers_forms
from burnbook.core.other_names import answers
from burnbook.data.dataloader.batcher import bound
from burnbook.data.dataloader.stacking import DefaultBatcher
from burnbook.data.dataloader.strategy import BatchStrategy, FixBatchStrategy
from burnbook.data.dataloader.workers import (
    PATIENCE,
    BatchMaker,
    ProcessPool,
    Task,
    by_threads,
)
from burnbook.data.dataset.arrays import is_dataset_by_methods
from burnbook.data.dataset.base import check_count, size_of
from burnbook.data.dataset.convert import as_dataset
from burnbook.data.dataset.transform.transform import PartialDataset
from burnbook.data.shuffle import LOAD, check_seed, permutation

Batch = TypeVar("Batch")
STACKS = DefaultBatcher()
CHUNK = 64  # items fetched at once for a strategy that decides by the items themselves


@dataclass(frozen=True)
class Progress:
    """How far a loader is: items handed out, items in all."""

    items_processed: int
    items_total: int


@dataclass(frozen=True)
class LoaderSettings:
    """What a builder collects: batches, order, workers, device."""

    strategy: BatchStrategy[Any]
    seed: int | None = None  # of the shuffling; None keeps the order of the dataset
    num_workers: int = 0
    start: str | None = None  # how worker processes start; None means threads
    device: Any = None
    drop_last: bool = False  # whether a last batch that is not full is left out


@answers("DataLoaderBuilder")
class DataLoaderBuilder:
    """Describe a loader step by step; every step gives a new builder.

    batcher: makes a batch of a list of items; without, items are stacked
        (`DefaultBatcher`)

    Example:
        >>> from burnbook.data import InMemDataset
        >>> loader = DataLoaderBuilder(sum).batch_size(2).build(InMemDataset(range(5)))
        >>> list(loader), len(loader)
        ([1, 5, 4], 3)
        >>> pairs = DataLoaderBuilder().batch_size(2).build(([[1.0], [2.0]], [7, 8]))
        >>> [(part.kind, part.shape) for part in next(iter(pairs))]
        [(Float, (2, 1)), (Int, (2,))]
    """

    def __init__(self, batcher: Any = STACKS) -> None:
        bound(batcher, device=0)  # says at once that it is not a batcher
        self.batcher = batcher
        self.settings = LoaderSettings(FixBatchStrategy(1))

    @result_matters("builder = builder.batch_size(size)")
    def batch_size(self, size: int) -> DataLoaderBuilder:
        """Take `size` items per batch; the last batch keeps what is left.

        Raises:
            ConfigError: `size` is not a whole number of at least 1.
        """
        size = check_count("DataLoaderBuilder", "batch_size", size, at_least=1)
        return self._with(strategy=FixBatchStrategy(size))

    @result_matters("builder = builder.drop_last()")
    def drop_last(self, drop: bool = True) -> DataLoaderBuilder:
        """Leave out the last batch of an epoch if it is not full.

        With `shuffle` these are other items in every epoch.

        Example:
            >>> builder = DataLoaderBuilder(list).batch_size(2).drop_last()
            >>> list(builder.build(range(5)))
            [[0, 1], [2, 3]]

        Raises:
            ConfigError: `drop` is neither True nor False.
        """
        if not isinstance(drop, bool):
            what = f"drop is True or False, not {drop!r}"
            raise ConfigError("DataLoaderBuilder", what, cure="drop_last()")
        return self._with(drop_last=drop)

    @result_matters("builder = builder.batch_strategy(strategy)")
    def batch_strategy(self, strategy: BatchStrategy[Any]) -> DataLoaderBuilder:
        """Let a strategy decide when a batch is full."""
        return self._with(strategy=strategy)

    @result_matters("builder = builder.shuffle(seed)")
    def shuffle(self, seed: int) -> DataLoaderBuilder:
        """Shuffle: a new order for every epoch, drawn from this seed."""
        return self._with(seed=check_seed("DataLoaderBuilder", seed))

    @result_matters("builder = builder.num_workers(workers)")
    def num_workers(self, workers: int) -> DataLoaderBuilder:
        """Prepare batches ahead in this many threads; 0 makes them when asked for.

        Small batches of arrays are made when asked for in any case: copying rows takes
        less time than handing a batch from one thread to another.

        Raises:
            ConfigError: `workers` is not a whole number of at least 0.
        """
        count = check_count("DataLoaderBuilder", "num_workers", workers, at_least=0)
        return self._with(num_workers=count)

    @result_matters("builder = builder.worker_processes()")
    def worker_processes(self, start: str = "spawn") -> DataLoaderBuilder:
        """Use processes as workers: for items that take long in plain Python.

        Each of them imports the program, so what starts the training stands under
        `if __name__ == "__main__":`, or a DataError is raised.

        Why: never `fork`, which copies locks that other threads hold. So a process that
        is forked while a thread multiplies matrices hangs, with plain NumPy as well.
        """
        if start not in ("spawn", "forkserver"):
            what = f"processes start by 'spawn' or 'forkserver', not by {start!r}"
            cure = 'worker_processes("spawn")'
            raise ConfigError("DataLoaderBuilder", what, cure=cure)
        return self._with(start=start)

    @result_matters("builder = builder.set_device(device)")
    def set_device(self, device: Any) -> DataLoaderBuilder:
        """Pass this device to `batch(items, device)`."""
        return self._with(device=device)

    def build(self, dataset: Any) -> DataLoader[Any]:
        """Make the loader of a dataset, or of what `as_dataset` makes one of.

        Raises:
            DataError: `dataset` is no dataset and nothing that becomes one, or holds no
                item; with `drop_last`, fewer than a batch.
        """
        return DataLoader(dataset, self.batcher, self.settings)

    def _with(self, **changes: Any) -> DataLoaderBuilder:
        changed = copy.copy(self)
        changed.settings = LoaderSettings(**{**vars(self.settings), **changes})
        return changed


@answers("DataLoader")
@answers_forms("DataLoader")
class DataLoader(Generic[Batch]):
    """Iterate over a dataset in batches; each `iter` is the next epoch, from 1."""

    def __init__(
        self,
        dataset: Any,
        batcher: Any = None,
        settings: LoaderSettings | None = None,
        **others: object,
    ) -> None:
        """Use `DataLoaderBuilder(batcher)…build(dataset)`; this puts it together."""
        if settings is None or others:
            cure = "DataLoaderBuilder(batcher).batch_size(4).shuffle(42).build(dataset)"
            what = "a DataLoaderBuilder makes it, from a batcher and a dataset"
            raise ArgumentError("DataLoader", what, cure=cure)
        if not is_dataset_by_methods(dataset):
            dataset = as_dataset(dataset)
        if not size_of(dataset):
            what = f"the dataset is empty: {dataset!r}"
            raise DataError(
                "data loader", what, cure="a dataset with at least one item"
            )
        self.dataset = dataset
        self.batcher = batcher
        self.settings = settings
        self._epoch = 1
        if not self.num_items():
            size = settings.strategy.batch_size()
            what = f"drop_last() leaves no batch: {dataset!r}, batches of {size}"
            cure = f"batch_size({len(dataset)}) or less, or no drop_last()"
            raise DataError("data loader", what, cure=cure)
        self._count = _Count(0, self.num_items())
        self._pool: ProcessPool | None = None

    def __iter__(self) -> DataLoaderIterator[Batch]:
        epoch, self._epoch = self._epoch, self._epoch + 1
        self._count = _Count(0, self.num_items())
        return DataLoaderIterator(self._batches(epoch, self._count), self._count)

    def __len__(self) -> int:
        size = self.settings.strategy.batch_size()
        if size is None:
            name = type(self.settings.strategy).__name__
            raise TypeError(f"{name} does not say how many batches it gives")
        return -(-self.num_items() // size)

    def num_items(self) -> int:
        """Return the number of items (not batches) in an epoch.

        Those that `drop_last` leaves out are not counted, where the strategy says how
        many items a batch has.
        """
        total, size = len(self.dataset), self.settings.strategy.batch_size()
        if not self.settings.drop_last or size is None:
            return total
        return total // size * size

    def progress(self) -> Progress:
        """Say how far the newest iteration is."""
        return self._count.progress()

    def set_epoch(self, epoch: int) -> None:
        """Make the next iteration that of this epoch: its order, its random draws."""
        self._epoch = check_count("data loader", "epoch", epoch, at_least=0)

    @result_matters("loader = loader.to_device(device)")
    def to_device(self, device: Any) -> DataLoader[Batch]:
        """Return the same loader, making its batches on another device."""
        return self._changed(self.dataset, device)

    def slice(self, start: int, end: int) -> DataLoader[Batch]:
        """Return a loader over the items start … end − 1."""
        part = PartialDataset(self.dataset, start, end)
        return self._changed(part, self.settings.device)

    def close(self, seconds: float = PATIENCE) -> None:
        """End worker processes now; threads end by themselves with every iteration.

        seconds: how long to wait for those at work before they are killed.
        """
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close(seconds)

    def __repr__(self) -> str:
        name = type(self.batcher).__name__
        return f"DataLoader({self.dataset!r}, {name}, {self._batch_text()})"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_pool": None}  # processes stay where they are

    def _batch_text(self) -> str:
        size = self.settings.strategy.batch_size()
        return "batches of varying size" if size is None else f"batches of {size}"

    def _changed(self, dataset: Any, device: Any) -> DataLoader[Batch]:
        settings = LoaderSettings(**{**vars(self.settings), "device": device})
        loader: DataLoader[Batch] = DataLoader(dataset, self.batcher, settings)
        loader.set_epoch(self._epoch)
        return loader

    def _batches(self, epoch: int, count: _Count) -> Generator[Batch, None, None]:
        strategy = self.settings.strategy
        if type(strategy) is FixBatchStrategy:
            size = strategy.batch_size()
            tasks = self._plan(epoch, size, self.num_items())
            for batch in self._made(epoch, tasks, self.batcher, count):
                count.items = min(count.items + size, count.total)
                yield batch
            return
        tasks = self._plan(epoch, CHUNK, len(self.dataset))
        chunks = self._made(epoch, tasks, None, count)
        make = bound(self.batcher, self.settings.device)
        keeps_last = not self.settings.drop_last
        for items in _regrouped(chunks, strategy.clone_dyn(), keeps_last):
            count.items += len(items)
            yield make(items)

    def _plan(self, epoch: int, size: int, end_of_all: int) -> Iterator[Task]:
        """Say which items make which batch, of the first so many in their order."""
        total, seed = len(self.dataset), self.settings.seed
        order = None if seed is None else permutation(total, seed, LOAD, epoch)
        for number, start in enumerate(range(0, end_of_all, size)):
            end = min(start + size, end_of_all)
            part = range(start, end) if order is None else order[start:end].tolist()
            yield number, part

    def _made(
        self, epoch: int, tasks: Iterator[Task], batcher: Any, count: _Count
    ) -> Any:
        settings = self.settings
        recipe = (self.dataset, batcher, settings.device, settings.seed or 0)
        maker = BatchMaker(*recipe, epoch)
        if not settings.num_workers or maker.is_quick(settings.strategy.batch_size()):
            return map(maker.make, tasks)
        if settings.start is None:
            return by_threads(tasks, maker, settings.num_workers, count.stopped)
        if self._pool is None or self._pool.broken:
            self._pool = ProcessPool(recipe, settings.num_workers, settings.start)
            weakref.finalize(self, self._pool.close)
        return self._pool.run(tasks, maker, count.stopped)


def split_dataloader(
    loader: DataLoader[Batch], devices: Sequence[Any]
) -> list[DataLoader[Batch]]:
    """Share a loader among devices: each gets consecutive batches.

    Where there are fewer batches than devices, the last devices get no loader.
    """
    if not devices:
        what = "there is no device to share the batches"
        raise ConfigError("split_dataloader", what, cure="[Numpy()]")
    size = loader.settings.strategy.batch_size() or 1
    parts = PartialDataset[Any].split_chunks(loader.dataset, len(devices), size)
    return [
        loader.slice(part.start, part.end).to_device(device)
        for part, device in zip(parts, devices, strict=False)
        if not loader.settings.drop_last or len(part) >= size
    ]


class DataLoaderIterator(Generic[Batch]):
    """One iteration over a loader; `close()` or dropping it ends its workers."""

    def __init__(self, batches: Generator[Batch, None, None], count: _Count) -> None:
        self._generator = batches
        self._count = count

    def __iter__(self) -> DataLoaderIterator[Batch]:
        return self

    def __next__(self) -> Batch:
        return next(self._generator)

    def progress(self) -> Progress:
        """Say how far this iteration is."""
        return self._count.progress()

    def stop_when(self, condition: Callable[[], bool]) -> None:
        """End the iteration when this is true while a batch is awaited; call it first.

        Asked twenty times a second, only while workers are not ready.
        """
        self._count.stopped = condition

    def close(self) -> None:
        """Stop iterating."""
        self._generator.close()


class _Count:
    """The items that one iteration has handed out."""

    __slots__ = ("items", "stopped", "total")

    def __init__(self, items: int, total: int) -> None:
        self.items = items
        self.total = total
        self.stopped: Callable[[], bool] | None = None  # whether to give up waiting

    def progress(self) -> Progress:
        return Progress(self.items, self.total)


def _regrouped(
    chunks: Any, strategy: BatchStrategy[Any], keeps_last: bool
) -> Iterator[list[Any]]:
    """Let the strategy cut the stream of items into batches."""
    for items in chunks:
        for item in items:
            strategy.add(item)
            if (full := strategy.batch(force=False)) is not None:
                yield full
    while keeps_last and (rest := strategy.batch(force=True)):
        yield rest
