"""The data loader with worker processes: the same batches, the same errors."""

import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest

from burnbook import data
from burnbook.backend import Numpy
from burnbook.core.errors import ConfigError, DataError
from tests.support.loading import Broken, Jittered, builder, flat, numbers
from tests.support.refusals import refused

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def processes_find_this_file(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)


def test_processes_make_the_same_batches_in_every_epoch():
    steps = builder(Jittered(), workers=2).shuffle(42).set_device(Numpy())
    expected = steps.build(numbers())
    loader = steps.worker_processes().build(numbers())
    assert [list(loader) for _ in range(2)] == [list(expected) for _ in range(2)]
    next(iter(loader))  # left half-way
    assert list(loader) != []
    assert len(multiprocessing.active_children()) in (1, 2)
    loader.close()
    assert multiprocessing.active_children() == []


def test_dropping_a_loader_ends_its_processes():
    loader = builder(workers=1).worker_processes("forkserver").build(numbers())
    assert flat(loader) == list(range(50))
    del loader
    gc.collect()
    assert multiprocessing.active_children() == []


def test_an_error_in_a_process_reads_like_one_in_a_thread():
    told = []
    for steps in (builder(workers=1), builder(workers=1).worker_processes()):
        loader = steps.build(Broken())
        first = "data loader: item 17 of Broken"
        told.append(str(refused(DataError, lambda loader=loader: list(loader), first)))
        loader.close()
    assert told[0] == told[1]


def test_what_cannot_be_sent_to_a_process_is_named():
    dataset = data.MapperDataset(numbers(), lambda x: x)
    loader = builder(workers=1).worker_processes().build(dataset)
    facts = (
        "  why      ",
        "  dataset  MapperDataset(50 items)\n",
        "  batcher  Lists\n",
    )
    cures = ("try: functions and classes", "no lambda", "leave out worker_processes()")
    first = "data loader: the dataset or the batcher cannot be sent to a process\n"
    refused(DataError, lambda: list(loader), first, *facts, *cures)


class Deadly(data.Batcher):
    def batch(self, items):
        import os

        if 10 in items:
            os._exit(3)
        return items


def test_a_process_that_dies_is_an_error_and_the_next_walk_starts_anew():
    loader = builder(Deadly(), workers=1).worker_processes().build(numbers(20))
    for _ in range(2):
        walk = iter(loader)
        assert next(walk) == list(range(8))
        with pytest.raises(DataError, match="a worker process has ended"):
            next(walk)
    loader.close()


STEPS = "DataLoaderBuilder: "
SLOW = """
import time
from burnbook.data import DataLoaderBuilder, Dataset

class Slow(Dataset):
    def get(self, index):
        time.sleep(0.01)
        return index
    def __len__(self):
        return 100_000

if __name__ == "__main__":
    steps = DataLoaderBuilder(list).batch_size(2).num_workers(2).worker_processes()
    import multiprocessing
    for number, batch in enumerate(steps.build(Slow())):
        if number == 5:
            pids = [child.pid for child in multiprocessing.active_children()]
            print(*pids, flush=True)
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")
def test_worker_processes_end_with_a_training_that_is_killed(tmp_path):
    (tmp_path / "train.py").write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "train.py")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    workers = [Path("/proc", pid) for pid in process.stdout.readline().split()]
    assert workers
    assert all(worker.exists() for worker in workers)
    process.kill()
    process.communicate()
    until = time.monotonic() + 20
    while time.monotonic() < until and any(map(is_running, workers)):
        time.sleep(0.02)
    assert not any(map(is_running, workers))


def is_running(process):
    try:
        return ") Z " not in (process / "stat").read_text()
    except OSError:
        return False


def test_fork_is_refused():
    told = (
        "'spawn' or 'forkserver'",
        "not by 'fork'",
        'try: worker_processes("spawn")',
    )
    made = builder()
    refused(ConfigError, lambda: made.worker_processes("fork"), STEPS, *told)


def test_a_loader_survives_pickling():
    loader = builder(workers=1).shuffle(1).worker_processes().build(numbers())
    first = list(loader)
    again = pickle.loads(pickle.dumps(loader))
    loader.close()
    assert isinstance(again, data.DataLoader)
    again.set_epoch(1)
    assert list(again) == first
    again.close()
