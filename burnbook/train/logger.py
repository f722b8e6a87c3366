"""Log files: one line per batch and metric, and an experiment log.

    <dir>/train/epoch-1/Loss.log       2.3005497455596924,1
    <dir>/valid/epoch-1/Accuracy.log   95.83333333333334,24
    <dir>/experiment.log               2024-12-12T04:23:02.729942Z  INFO burn_train::…

The layout is Burn's, so its tools read our runs and we read its runs. Lines are
buffered and reach the disk every half second: a killed run loses no more than that.
Epochs that are complete are forced to the disk every few seconds, and before each
checkpoint, so whatever a run resumes from outlives a power cut too.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from burnbook.core.errors import TrainingError
from burnbook.core.files import (
    NotRegularError,
    fixed,
    force,
    open_regular,
    open_text,
)
from burnbook.train.metric import MetricEntry, NumericEntry
from burnbook.train.metric.naming import log_file

SECONDS_BETWEEN_FLUSHES = 0.5
SECONDS_BETWEEN_SYNCS = 5.0  # a power cut takes no more of a run without checkpoints
MOST_FILES = 16  # more are not forced to the disk one by one


class MetricLogger:
    """Where the entries of one split go; the base of all metric loggers."""

    def start_epoch(self, epoch: int) -> None:
        """The entries that follow belong to this epoch."""

    def log(self, entry: MetricEntry) -> None:
        """Take one entry."""

    def end_epoch(self, epoch: int) -> None:
        """The epoch is complete: everything logged can be read from now on."""

    def sync(self) -> None:
        """Force complete epochs to the disk: a checkpoint is made that needs them."""

    def close(self) -> None:
        """Training is over."""

    def read_numeric(self, name: str, epoch: int) -> list[NumericEntry]:
        """The entries of a metric in an epoch; none when it was not logged."""
        return []

    def epochs(self) -> int:
        """The last epoch that has entries; 0 when there is none."""
        return 0


class InMemoryMetricLogger(MetricLogger):
    """Keep the entries in memory: nothing is left when the process ends.

    Example:
        >>> logger = InMemoryMetricLogger()
        >>> logger.start_epoch(1)
        >>> logger.log(MetricEntry("Loss", "0.5", "0.5,1"))
        >>> logger.read_numeric("Loss", 1)
        [NumericEntry(value=0.5, count=1)]
    """

    def __init__(self) -> None:
        self.lines: dict[tuple[str, int], list[str]] = {}
        self.epoch = 1

    def start_epoch(self, epoch: int) -> None:
        """Start the epoch over: what an earlier run logged for it is forgotten."""
        self.epoch = epoch
        self.lines = {key: kept for key, kept in self.lines.items() if key[1] != epoch}

    def log(self, entry: MetricEntry) -> None:
        """Keep one entry."""
        self.lines.setdefault((entry.name, self.epoch), []).append(entry.serialize)

    def read_numeric(self, name: str, epoch: int) -> list[NumericEntry]:
        """The entries of a metric in an epoch."""
        return [NumericEntry.deserialize(x) for x in self.lines.get((name, epoch), [])]

    def epochs(self) -> int:
        """The last epoch that has entries."""
        return max((epoch for _, epoch in self.lines), default=0)


class FileMetricLogger(MetricLogger):
    """Write `<dir>/epoch-<e>/<Metric_name>.log`, one line per batch.

    Why: forcing files to the disk takes longer than a short epoch. A process that is
    killed loses nothing that was written; a power cut may take what was logged in the
    last five seconds, except of epochs with a checkpoint, which `sync` waits for.
    """

    def __init__(self, directory: str | Path) -> None:
        self.directory = fixed(directory)
        self.epoch = 1
        self.files: dict[str, IO[str]] = {}
        self.flushed = time.monotonic()
        self.synced = -math.inf  # the first epoch is forced to the disk at once
        self.unsynced: list[Path] = []

    def start_epoch(self, epoch: int) -> None:
        """The entries that follow belong to this epoch."""
        self._close_files()
        self.epoch = epoch

    def log(self, entry: MetricEntry) -> None:
        """Write one line; files of an earlier run are overwritten."""
        try:
            file = self.files.get(entry.name)
            if file is None:
                file = self._open(entry.name)
            file.write(entry.serialize + "\n")
            now = time.monotonic()
            if now - self.flushed > SECONDS_BETWEEN_FLUSHES:
                self.flushed = now
                for file in self.files.values():
                    file.flush()
        except OSError as cause:
            raise _cannot_log(self.path(entry.name, self.epoch), cause) from None

    def _open(self, name: str) -> IO[str]:
        path = self.path(name, self.epoch)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.files[name] = open_text(path, "w")
        return self.files[name]

    def end_epoch(self, epoch: int) -> None:
        """Write every line, and force it to the disk if that was not done lately."""
        paths = [self.path(name, epoch) for name in self.files]
        self._close_files()
        self.unsynced += paths
        for path in paths:
            _on_disk(path, Path.stat)  # somebody may have removed the run
        if time.monotonic() - self.synced > SECONDS_BETWEEN_SYNCS:
            self.sync()

    def sync(self) -> None:
        """Force the complete epochs to the disk: a power cut leaves all their lines."""
        _force(self.to_sync())

    def to_sync(self) -> list[Path]:
        """The files and folders that are to be forced to the disk now."""
        paths, self.unsynced = self.unsynced, []
        self.synced = time.monotonic()
        folders = dict.fromkeys(path.parent for path in paths)
        if paths:
            folders[self.directory] = None
        if len(paths) > MOST_FILES and hasattr(os, "sync"):
            os.sync()  # once for all files and folders; the last may be gone by now
            return [paths[-1], self.directory]
        return [*paths, *folders]

    def close(self) -> None:
        """Close all files, and force them to the disk."""
        self._close_files()
        self.sync()

    def _close_files(self) -> None:
        """Close all files, even if the disk is full for one of them."""
        files, self.files = self.files, {}
        trouble: TrainingError | None = None
        for name, file in files.items():
            try:
                file.close()
            except OSError as cause:
                trouble = trouble or _cannot_log(self.path(name, self.epoch), cause)
        if trouble is not None:
            raise trouble from None

    def read_numeric(self, name: str, epoch: int) -> list[NumericEntry]:
        """The entries of a metric in an epoch; a line that is not an entry raises.

        Why: a last line without its end was cut off when a run was killed, and
        "95.8" may have been the start of "95.83,24", so it does not count.
        """
        path = self.path(name, epoch)
        try:
            if name in self.files and epoch == self.epoch:
                self.files[name].flush()
            with open_text(path, "r", errors="replace") as file:
                text = file.read()
        except FileNotFoundError:
            return []
        except OSError as cause:
            what = f"the log cannot be read: {cause.strerror or cause}"
            raise TrainingError(f"read {path}", what) from None
        whole = text[: text.rfind("\n") + 1]
        return [NumericEntry.deserialize(line) for line in whole.splitlines()]

    def epochs(self) -> int:
        """The largest N of the folders `epoch-N`."""
        numbers = [
            path.name.removeprefix("epoch-") for path in self.directory.glob("epoch-*")
        ]
        return max((int(n) for n in numbers if n.isdecimal()), default=0)

    def path(self, name: str, epoch: int) -> Path:
        """The file of a metric in an epoch."""
        return self.directory / f"epoch-{epoch}" / log_file(name)


def sync_all(loggers: Iterable[MetricLogger]) -> None:
    """Force the complete epochs of all loggers to the disk, their files together."""
    paths: list[Path] = []
    for logger in loggers:
        of_files = getattr(type(logger), "sync", None) is FileMetricLogger.sync
        if of_files and isinstance(logger, FileMetricLogger):
            paths += logger.to_sync()
        else:
            logger.sync()
    _force(paths)


def _force(paths: Iterable[Path]) -> None:
    for path, cause in force(paths):
        raise _cannot_log(path, cause) from None


def _on_disk(path: Path, act: Callable[[Path], object]) -> None:
    """Do something with a log; what the disk refuses is a TrainingError."""
    try:
        act(path)
    except OSError as cause:
        raise _cannot_log(path, cause) from None


class FileApplicationLogger:
    """The log of a run, `experiment.log`: what happened, when, and where from.

    Lines are appended, so a resumed run continues its own.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = fixed(path)
        self.file: IO[str] | None = None
        self.broken = False  # the disk is full
        self.flushed = time.monotonic()

    def info(self, source: str, message: str) -> None:
        """Note something that happened as it should."""
        self._write(" INFO", source, message)

    def warn(self, source: str, message: str) -> None:
        """Note something surprising; it reaches the disk at once."""
        self._write(" WARN", source, message)
        self.flush()

    def error(self, source: str, message: str) -> None:
        """Note what ended the run; it reaches the disk at once."""
        self._write("ERROR", source, message)
        self.flush()

    def _write(self, level: str, source: str, message: str) -> None:
        if self.broken:
            return
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        try:
            if self.file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.file = self._open()
            self.file.write(f"{moment} {level} {source}: {message}\n")
            now = time.monotonic()
            if now - self.flushed > SECONDS_BETWEEN_FLUSHES:
                self.flush()
        except OSError as cause:
            self._give_up(cause)

    def _give_up(self, cause: OSError) -> None:
        """Say that the disk is full; the lines after it are lost, silently.

        Why: what ended a training is said once, and saying it must not fail again.
        """
        self.close()
        self.broken = True
        raise _cannot_log(self.path, cause) from None

    def _open(self) -> IO[str]:
        """The file, ready for a new line, even where a killed run left half of one."""
        file = open_text(self.path, "a")
        if size := file.tell():
            with open_regular(self.path, TrainingError) as before:
                before.seek(size - 1)
                if before.read() != b"\n":
                    file.write("\n")
        return file

    def flush(self) -> None:
        """Put every line on the disk."""
        self.flushed = time.monotonic()
        if self.file is not None:
            try:
                self.file.flush()
            except OSError as cause:
                self._give_up(cause)

    def close(self) -> None:
        """Close the file; a later line opens it again."""
        file, self.file = self.file, None
        self.broken = False
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()


class SilentApplicationLogger(FileApplicationLogger):
    """An experiment log that keeps nothing."""

    def __init__(self) -> None:
        super().__init__(Path())

    def _write(self, level: str, source: str, message: str) -> None:
        return


def _cannot_log(path: Path, cause: OSError) -> TrainingError:
    cure = "free some space or pick another folder, then resume with checkpoint()"
    if isinstance(cause, NotRegularError):
        cure = "move it away or pick another folder, then resume with checkpoint()"
    return TrainingError(
        f"write {path}",
        cause.strerror or str(cause),
        ["the checkpoints of earlier epochs are kept"],
        cure,
    )
