"""A power cut at any moment: whatever was not forced to the disk is gone.

A disk of its own notes what the library writes, forces, renames and removes. After
every single call the worst that a cut could leave is looked at: bytes that were not
forced are lost, names that were not forced may be the old ones, and every order of
removals may have come through.
"""

import os
import shutil
from collections import Counter
from itertools import count

import pytest

from burnbook.core.errors import TrainingError
from burnbook.train import FileMetricLogger, KeepLastNCheckpoints, MetricEntry
from tests.support.tiny_training import build, builder, checkpointed, learner, loader

PARTS = ("model", "optim", "scheduler")


class Disk:
    """What is sure to be on the disk, and what may be: by path."""

    def __init__(self, patch):
        self.forced = {}  # inode -> bytes that are sure
        self.names = {}  # path -> inodes that it may have after a cut; None: absent
        self.look = lambda: None
        self.numbers, self.inodes = count(1), {}
        for name in ("fsync", "replace", "rename", "unlink"):
            act = self.wrapped(getattr(self, name), getattr(os, name))
            patch.setattr(os, name, act)

    def wrapped(self, note, call):
        def called(*arguments, **options):
            result = note(call, *arguments, **options)
            self.look()
            return result

        return called

    def inode(self, status):
        key = (status.st_dev, status.st_ino)
        return self.inodes.setdefault(key, next(self.numbers))

    def fsync(self, call, handle):
        call(handle)
        status, path = os.fstat(handle), os.readlink(f"/proc/self/fd/{handle}")
        if os.path.isdir(path):
            for name in [n for n in self.names if os.path.dirname(n) == path]:
                self.names[name] = {self.now(name)}
            return
        with open(path, "rb") as file:
            self.forced[self.inode(status)] = file.read()

    def now(self, path):
        return self.inode(os.stat(path)) if os.path.exists(path) else None

    def changed(self, *paths):
        for path in map(os.path.realpath, paths):
            before = self.names.setdefault(path, {None})
            before.add(self.now(path))

    def replace(self, call, source, target, **options):
        result = call(source, target, **options)
        self.changed(source, target)
        return result

    rename = replace

    def unlink(self, call, path, **options):
        result = call(path, **options)
        self.changed(path)
        return result

    def sure(self, path):
        """Whether the file is there after a cut, with all its bytes."""
        may_be = self.names.get(os.path.realpath(path), {None})
        return None not in may_be and all(inode in self.forced for inode in may_be)

    def possible(self, path):
        return self.names.get(os.path.realpath(path), {None}) != {None}


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
@pytest.mark.parametrize("strategy", [None, KeepLastNCheckpoints(1)])
def test_a_power_cut_loses_no_more_than_one_epoch(tmp_path, monkeypatch, strategy):
    epochs, seen = 6, []
    folder = tmp_path / "checkpoint"
    made = checkpointed(tmp_path, epochs)
    if strategy:
        made.with_checkpointing_strategy(strategy)
    trained = build(made, lr=0.05)
    disk = Disk(monkeypatch)

    def look():
        sure = [
            epoch
            for epoch in range(1, epochs + 1)
            if all(disk.sure(folder / f"{part}-{epoch}.mpk") for part in PARTS)
        ]
        begun = list((tmp_path / "train").glob("epoch-*"))
        now = max((int(p.name.removeprefix("epoch-")) for p in begun), default=0)
        assert max(sure, default=0) >= now - 1
        for epoch in sure:  # the logs that a resumed run asks for are there as well
            for split in ("train", "valid"):
                log = tmp_path / split / f"epoch-{epoch}" / "Loss.log"
                assert disk.forced[disk.now(log)] == log.read_bytes()
        seen.append((now, tuple(sure)))

    disk.look = look
    trained.fit(loader(), loader(1))
    assert len(seen) > epochs * 3 * 3
    assert seen[-1][0] == epochs
    assert epochs in seen[-1][1]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_a_fresh_run_in_an_old_folder_never_mixes_two_runs(tmp_path, monkeypatch):
    """At no moment may an epoch consist of files of both."""
    learner(tmp_path, 3, lr=0.05).fit(loader(), loader(1))
    folder = tmp_path / "checkpoint"
    disk, mixed = Disk(monkeypatch), []
    first = {path: disk.now(path) for path in folder.glob("*.mpk")}
    for path, inode in first.items():
        disk.names[os.path.realpath(path)] = {inode}

    def look():
        for epoch in (1, 2, 3):
            paths = [folder / f"{part}-{epoch}.mpk" for part in PARTS]
            may_be = [disk.names.get(os.path.realpath(p), {None}) for p in paths]
            pairs = list(zip([first.get(p) for p in paths], may_be, strict=True))
            is_old = [old is not None and old in now for old, now in pairs]
            is_new = [bool(now - {None, old}) for old, now in pairs]
            if any(is_old) and any(is_new):
                mixed.append((epoch, is_old, is_new))

    disk.look = look
    learner(tmp_path, 3, lr=0.05).fit(loader(), loader(1))
    assert mixed == []
    assert len(list((folder / "earlier-1").iterdir())) == len(first)


def entries(logger, epoch):
    logger.start_epoch(epoch)
    logger.log(MetricEntry("Loss", "", f"{epoch},1"))
    logger.end_epoch(epoch)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_short_epochs_are_forced_to_the_disk_together(tmp_path, monkeypatch):
    disk, logger = Disk(monkeypatch), FileMetricLogger(tmp_path)
    logs = [tmp_path / f"epoch-{epoch}" / "Loss.log" for epoch in (1, 2, 3, 4)]

    def forced():
        return [
            disk.forced.get(disk.now(log)) == log.read_bytes()
            for log in logs
            if log.exists()
        ]

    entries(logger, 1)
    assert forced() == [True]
    entries(logger, 2)
    entries(logger, 3)
    assert forced() == [True, False, False]
    logger.sync()
    assert forced() == [True, True, True]
    entries(logger, 4)
    logger.close()
    assert forced() == [True, True, True, True]


@pytest.mark.skipif(not hasattr(os, "sync"), reason="needs os.sync")
def test_a_run_without_checkpoints_waits_for_the_disk_a_few_times(
    tmp_path, monkeypatch
):
    called = Counter()
    for name in ("fsync", "sync"):
        real = getattr(os, name)

        def noted(*given, name=name, real=real):
            called[name] += 1
            return real(*given)

        monkeypatch.setattr(os, name, noted)
    monkeypatch.setattr("burnbook.train.logger.SECONDS_BETWEEN_SYNCS", 1e9)
    build(builder(tmp_path, 30), lr=0.05).fit(loader(), loader(1))
    assert len(list((tmp_path / "valid").iterdir())) == 30
    assert 0 < called["fsync"] + called["sync"] < 30


@pytest.mark.parametrize("epochs", [2, 40])
def test_logs_that_somebody_removed_are_an_error_at_the_end(tmp_path, epochs):
    logger = FileMetricLogger(tmp_path / "train")
    for epoch in range(1, epochs + 1):
        entries(logger, epoch)
    shutil.rmtree(tmp_path / "train")
    with pytest.raises(TrainingError, match="No such file"):
        logger.close()
    logger.close()
