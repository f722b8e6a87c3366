"""The data loader: the same batches whoever makes them, and nothing left running."""

import gc
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import Future

import pytest

from burnbook import data
from burnbook.backend import Numpy
from burnbook.core.errors import ConfigError, DataError
from burnbook.data.dataloader.workers import InOrder
from tests.support.loading import Broken, Jittered, Lists, builder, flat, numbers
from tests.support.refusals import refused

WORKERS = [0, 1, 2, 4]


class Slow(data.Dataset):
    """Takes a while, less and less, so that later batches are ready first."""

    def get(self, index):
        time.sleep(0.002 * (12 - index))
        return index

    def __len__(self):
        return 12


def loader_threads():
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith("burnbook-loader")]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    gc.collect()
    assert loader_threads() == []


# Order


@pytest.mark.parametrize("workers", WORKERS)
def test_batches_come_in_order_and_the_last_keeps_what_is_left(workers):
    loader = builder(workers=workers).build(numbers(20))
    assert list(loader) == [list(range(8)), list(range(8, 16)), [16, 17, 18, 19]]
    assert (len(loader), loader.num_items()) == (3, 20)


@pytest.mark.parametrize("workers", WORKERS[1:])
def test_a_fast_worker_does_not_overtake_a_slow_one(workers):
    assert list(builder(size=1, workers=workers).build(Slow())) == [
        [i] for i in range(12)
    ]


def test_the_number_of_workers_never_changes_what_is_in_an_epoch():
    def epochs(workers):
        loader = builder(Jittered(), workers=workers).shuffle(42)
        loader = loader.set_device(Numpy()).build(data.SamplerDataset(numbers(), 60))
        return [list(loader) for _ in range(3)]

    expected = epochs(0)
    assert expected[0] != expected[1]
    for workers in WORKERS[1:]:
        assert epochs(workers) == expected


def test_shuffling_differs_by_epoch_and_repeats_by_seed():
    loader = builder().shuffle(42).build(numbers())
    first, second = list(loader), list(loader)
    assert first != second
    assert sorted(flat(first)) == sorted(flat(second)) == list(range(50))
    again = builder().shuffle(42).build(numbers())
    assert [list(again), list(again)] == [first, second]
    assert list(builder().shuffle(43).build(numbers())) != first


def test_an_epoch_can_be_asked_for_by_number():
    loader = builder().shuffle(42).build(numbers())
    epochs = {epoch: list(loader) for epoch in (1, 2, 3)}
    loader.set_epoch(2)
    assert [list(loader), list(loader)] == [epochs[2], epochs[3]]


def test_shuffling_mixes_the_whole_dataset_whatever_the_workers():
    batch = next(iter(builder(size=64, workers=4).shuffle(1).build(numbers(6400))))
    assert min(batch) < 1600 < 4800 < max(batch)


def test_two_walks_at_once_do_not_disturb_each_other():
    loader = builder(workers=2).shuffle(3).build(numbers())
    alone = [list(loader), list(loader)]
    loader.set_epoch(1)
    one, two = iter(loader), iter(loader)
    pairs = list(zip(one, two, strict=True))
    assert [[a for a, _ in pairs], [b for _, b in pairs]] == alone


def test_a_loader_in_a_thread_and_one_in_the_main_thread_agree():
    loader = builder(Jittered(), workers=2).shuffle(5).set_device(Numpy())
    expected = list(loader.build(numbers()))
    found = []
    thread = threading.Thread(
        target=lambda: found.append(list(loader.build(numbers())))
    )
    thread.start()
    here = list(loader.build(numbers()))
    thread.join()
    assert here == expected
    assert found == [expected]


# Errors in threads and in the caller


@pytest.mark.parametrize("workers", WORKERS)
def test_an_item_that_fails_is_named_after_the_batches_before_it(workers):
    walk = iter(builder(workers=workers).build(Broken()))
    assert next(walk) == list(range(8))
    assert next(walk) == list(range(8, 16))
    facts = ("dataset  Broken(40 items)", "batch    2 of epoch 1")
    told = "data loader: item 17 of Broken", "OSError: no such pixel\n"
    error = refused(DataError, lambda: next(walk), *told, *facts)
    assert isinstance(error.__cause__, OSError)
    assert next(walk, "ended") == "ended"


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batcher_that_fails_names_its_items(workers):
    def fails(items):
        return 1 / (20 - items[0])

    loader = builder(fails, size=10, workers=workers).build(numbers(30))
    facts = ("InMemDataset(30 items)", "2 of epoch 1", "20, 21, 22, 23, 24, 25, … (10")
    told = "data loader: function cannot make batch 2: ZeroDivisionError"
    refused(DataError, lambda: list(loader), told, *facts)


def test_an_item_that_is_missing_in_the_middle_is_an_error_not_an_end():
    loader = builder(size=4).build(data.InMemDataset([1, None, 3]))
    facts = ("InMemDataset.get(1) returned None", "InMemDataset(3 items)", "0 of epoch")
    cure = "try: `return` the item at the end of get()"
    refused(DataError, lambda: list(loader), "data loader: ", *facts, cure)


STEPS, LOADER = "DataLoaderBuilder: ", "data loader: "
IMPOSSIBLE = [
    (lambda: builder(size=0), STEPS, "batch_size", "got 0"),
    (lambda: builder(size=2.5), STEPS, "batch_size", "got 2.5\n  try: batch_size: 1"),
    (lambda: builder(workers=-1), STEPS, "num_workers", "got -1"),
    (lambda: builder().shuffle("42"), STEPS, "seed", "got '42'\n  try: a number"),
    (
        lambda: data.DataLoaderBuilder(None),
        LOADER,
        "batch(items)",
        "try: a subclass of",
    ),
    (lambda: builder().build(numbers()).set_epoch(-1), LOADER, "epoch", "got -1"),
]


@pytest.mark.parametrize(("build", "where", "what", "found"), IMPOSSIBLE)
def test_impossible_settings_are_refused(build, where, what, found):
    refused(ConfigError, build, where, what, found)


def test_an_empty_dataset_and_no_dataset_are_refused():
    told = ("empty: InMemDataset(0 items)", "try: a dataset with at least one item")
    refused(DataError, lambda: builder().build(numbers(0)), "data loader: ", *told)
    told = ("int is not a dataset", "a length and items by number", "try: an array")
    refused(DataError, lambda: builder().build(7), "dataset: ", *told)


# Ending early


@pytest.mark.parametrize("workers", WORKERS[1:])
def test_leaving_the_loop_ends_the_threads(workers):
    loader = builder(workers=workers).build(numbers(1000))
    for batch in loader:
        if 20 in batch:
            assert loader_threads()
            break
    assert loader_threads() == []


def test_an_error_of_the_consumer_ends_the_threads():
    def train():
        for batch in builder(workers=2).build(numbers(1000)):
            raise KeyError(batch[0])

    with pytest.raises(KeyError):
        train()
    assert loader_threads() == []


def test_closing_and_dropping_a_walk_end_its_threads():
    loader = builder(workers=2).build(numbers(1000))
    walk = iter(loader)
    next(walk)
    walk.close()
    assert loader_threads() == []
    walk = iter(loader)
    next(walk)
    gone = weakref.ref(walk)
    del walk
    assert gone() is None
    assert loader_threads() == []


def test_work_ahead_is_bounded():
    made = []
    counting = data.MapperDataset(numbers(1000), lambda x: made.append(x) or x)
    walk = iter(builder(size=1, workers=2).build(counting))
    for _ in range(3):
        next(walk)
    time.sleep(0.05)
    assert len(made) <= 3 + 2 * 2
    walk.close()


class Job(Future):
    """Work that is ready only when somebody waits for it."""

    def result(self, timeout=None):
        if not self.done():
            self.set_result(None)
        return super().result(timeout)


def test_more_work_is_begun_only_when_the_caller_had_to_wait():
    jobs = []
    ordered = InOrder(lambda _: jobs.append(Job()) or jobs[-1], here=None, most=5)
    walk = ordered.run((i, [i]) for i in range(100))
    next(walk)  # the first cannot be ready
    for count in range(2, 6):
        assert len(jobs) == count
        jobs[-1].result()
        next(walk)
    ahead = []
    for _ in range(5):
        next(walk)
        ahead.append(ordered.ahead)
    assert ahead == [2, 4, 5, 5, 5]


def test_a_program_may_end_in_the_middle_of_a_walk():
    code = (
        "from burnbook.data import *\n"
        "loader = DataLoaderBuilder(list).batch_size(4).num_workers(3)"
        ".build(InMemDataset(range(10_000)))\n"
        "walk = iter(loader)\n"
        "print(next(walk))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("[0, 1, 2, 3]\n", "")


@pytest.mark.parametrize("allowed", [0, 1])
def test_without_threads_the_caller_does_the_work(monkeypatch, allowed):
    start, started = threading.Thread.start, []

    def limited(thread):
        if len(started) >= allowed:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    loader = builder(size=1, workers=4).build(Slow())
    assert list(loader) == [[i] for i in range(12)]
    assert len(started) == allowed


# Batchers, devices, strategies


def test_batchers_with_and_without_a_device_are_accepted():
    class Holds(data.Batcher):
        def batch(self, items):
            return "held"

    class Takes(data.Batcher):
        def batch(self, items, device):
            return device

    class May(data.Batcher):
        def batch(self, items, device=None):
            return device

    def one(batcher, device=None):
        return next(iter(builder(batcher).set_device(device).build(numbers())))

    device = Numpy(float="f64")
    assert one(Holds(), device) == "held"
    assert one(Takes(), device) is device
    assert one(May(), device) is device
    assert one(May()) is None
    assert one(Takes()) is Numpy()
    assert one(lambda items, device: device, device) is device
    assert one(sum) == sum(range(8))


def test_a_loader_moves_to_another_device_and_to_a_part():
    class Takes(data.Batcher):
        def batch(self, items, device):
            return device, items

    loader = builder(Takes(), size=3).set_device("a").build(numbers(10))
    assert next(iter(loader.to_device("b"))) == ("b", [0, 1, 2])
    assert list(loader.slice(4, 8)) == [("a", [4, 5, 6]), ("a", [7])]
    assert next(iter(loader)) == ("a", [0, 1, 2])


def test_a_builder_step_leaves_the_builder_before_as_it_was():
    first = builder(size=2)
    second = first.batch_size(5)
    assert len(first.build(numbers(10))) == 5
    assert len(second.build(numbers(10))) == 2
    assert len(data.DataLoaderBuilder(Lists()).build(numbers(10))) == 10


class ByWeight(data.BatchStrategy):
    """A batch is full when its items weigh ten or more."""

    def __init__(self):
        self.items = []

    def add(self, item):
        self.items.append(item)

    def batch(self, force):
        if not self.items or (sum(self.items) < 10 and not force):
            return None
        items, self.items = self.items, []
        return items

    def clone_dyn(self):
        return ByWeight()


@pytest.mark.parametrize("workers", WORKERS)
def test_a_strategy_may_look_at_the_items(workers):
    weights = [9, 2, 10, 1, 1, 1] * 40 + [3]
    steps = (
        data.DataLoaderBuilder(Lists()).batch_strategy(ByWeight()).num_workers(workers)
    )
    loader = steps.build(data.InMemDataset(weights))
    for _ in range(2):  # a walk that was left half-way does not leak into the next
        batches = list(loader)
        assert flat(batches) == weights
        assert all(sum(batch) >= 10 for batch in batches[:-1])
        next(iter(loader))
    assert loader.progress().items_total == len(weights)
    with pytest.raises(TypeError, match="does not say how many batches"):
        len(loader)


def test_a_fixed_strategy_gives_what_is_left_only_when_forced():
    strategy = data.FixBatchStrategy(3)
    strategy.add(1)
    assert strategy.batch(force=False) is None
    assert strategy.clone_dyn().batch(force=True) is None
    assert strategy.batch(force=True) == [1]
    assert strategy.batch(force=True) is None


# Leaving out the last batch


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(("items", "size"), [(20, 8), (16, 8), (8, 8), (9, 1)])
def test_a_last_batch_that_is_not_full_is_left_out(workers, items, size):
    loader = builder(size=size, workers=workers).drop_last().build(numbers(items))
    batches = list(loader)
    assert {len(batch) for batch in batches} == {size}
    assert flat(batches) == list(range(items // size * size))
    assert (len(loader), loader.num_items()) == (items // size, len(flat(batches)))
    assert loader.progress() == data.Progress(len(flat(batches)), len(flat(batches)))


def test_other_items_are_left_out_in_every_epoch():
    plain = builder().shuffle(42).build(numbers(20))
    loader = builder().shuffle(42).drop_last().build(numbers(20))
    for _ in range(2):
        assert list(loader) == list(plain)[:2]
    loader.set_epoch(1)
    first = set(flat(loader))
    assert first != set(flat(loader))
    kept = builder().drop_last().drop_last(False).build(numbers(20))
    assert len(list(kept)) == len(kept) == 3


def test_nothing_is_left_of_fewer_items_than_a_batch():
    assert list(builder().build(numbers(3))) == [[0, 1, 2]]
    told = ("InMemDataset(3 items), batches of 8", "try: batch_size(3) or less")
    act = builder().drop_last().build
    refused(DataError, lambda: act(numbers(3)), "data loader: drop_last()", *told)
    refused(DataError, lambda: act([]), "data loader: ", "empty", "at least one item")
    assert list(builder().build([7])) == [[7]]
    refused(ConfigError, lambda: builder().drop_last(1), "DataLoaderBuilder", "not 1")


@pytest.mark.parametrize("items", [16, 19, 24, 3 * 8 + 1])
def test_devices_share_whole_batches_only(items):
    loader = builder().drop_last().build(numbers(items))
    parts = data.split_dataloader(loader, [Numpy()] * 3)
    assert sorted(flat(b for part in parts for b in part)) == list(
        range(items // 8 * 8)
    )
    assert sum(map(len, parts)) == len(loader)


def test_a_strategy_of_ones_own_is_not_forced_to_give_its_rest():
    weights = [9, 2, 10, 1, 1]
    steps = data.DataLoaderBuilder(Lists()).batch_strategy(ByWeight()).drop_last()
    loader = steps.build(data.InMemDataset(weights))
    assert list(loader) == [[9, 2], [10]]
    with pytest.raises(TypeError, match="does not say how many batches"):
        len(loader)


# Progress, text


@pytest.mark.parametrize("workers", [0, 2])
def test_progress_counts_the_items_handed_out(workers):
    loader = builder(workers=workers).build(numbers(20))
    assert loader.progress() == data.Progress(0, 20)
    seen = [loader.progress().items_processed for _ in loader]
    assert seen == [8, 16, 20]
    walk = iter(loader)
    next(walk)
    assert walk.progress() == loader.progress() == data.Progress(8, 20)
    walk.close()


def test_the_repr_says_what_is_walked():
    loader = builder().build(numbers(1000))
    assert repr(loader) == "DataLoader(InMemDataset(1,000 items), Lists, batches of 8)"


def test_a_dataset_needs_no_base_class():
    class Own:
        def get(self, index):
            return index * 10 if 0 <= index < 5 else None

        def __len__(self):
            return 5

    loader = builder(size=2, workers=1).build(Own())
    assert list(loader) == [[0, 10], [20, 30], [40]]
