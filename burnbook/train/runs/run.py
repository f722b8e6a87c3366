"""One run, read from its folder: ours or Rust Burn's.

    <dir>/config.json  experiment.log
    <dir>/checkpoint/model-3.mpk  optim-3.mpk  scheduler-3.mpk
    <dir>/train/epoch-1/Loss.log  Accuracy.log      <dir>/valid/epoch-1/…

Nothing is kept but what the files say, so a run that is still training can be looked at
again and again. A log file that has not changed is not read twice.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from burnbook.core.errors import ConfigError, DataError
from burnbook.core.files import (
    fixed,
    open_regular,
    printable,
    read_whole,
)
from burnbook.train.checkpoint import PARTS
from burnbook.train.events import Direction, Split, better
from burnbook.train.metric.naming import log_file, name_of, unknown_metric
from burnbook.train.run_status import FINISHED, RunStatus
from burnbook.train.runs.experiment_log import ExperimentLog, read_experiment_log
from burnbook.train.runs.logs import damage_of, parse_log, read_log

SPLITS = ("train", "valid", "test")
CONFIG_BYTES = 1 << 20  # a config is a page, never more than this
DEEPEST = 30  # levels of a config
LATEST = 2.0e11  # seconds since 1970: no file is younger than the year 8000
SILENT_SECONDS = 120.0  # a run that has written nothing for so long has ended
#: Words in the name of a metric that is better when it is lower.
LOWER = frozenset(
    (
        *("cer", "distance", "error", "fid", "loss", "lpips", "mae", "memory", "mse"),
        *("perplexity", "rmse", "temperature", "time", "usage", "wer"),
    )
)
_EPOCH = re.compile(r"epoch-(\d{1,9})")
_CHECKPOINT = re.compile(rf"({'|'.join(PARTS)})-(\d{{1,9}})\.(.+)")


class MetricPoint(NamedTuple):
    """A metric in one batch, or in one epoch (then `batch` is 0).

    batch: counted on through the epochs. weight: how many examples it stands for.
    """

    epoch: int
    batch: int
    value: float
    weight: float


@dataclass(frozen=True)
class Checkpoint:
    """An epoch whose model, optimizer and scheduler are all there."""

    epoch: int
    files: tuple[Path, ...]

    @property
    def model(self) -> Path:
        """The file of the model."""
        return self.files[0]


class Run:
    """A training that left its artifacts in a folder.

    Splits are "train", "valid" and "test", or `Split.Valid`. Config fields inside
    others are named with dots: `run.config["optimizer.beta_1"]`.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> log = Path(folder.name) / "valid" / "epoch-1" / "Loss.log"
        >>> log.parent.mkdir(parents=True)
        >>> _ = log.write_text("0.75,1\\n0.25,1\\n")
        >>> run = Run(folder.name, "first")
        >>> run.epochs, run.metrics, run.last("Loss")
        (1, [('Loss', 'valid')], (1, 0.5))
        >>> folder.cleanup()
    """

    def __init__(self, path: str | Path, name: str = "") -> None:
        self.path = fixed(path)
        self.name = name or self.path.name
        self._means: dict[Path, tuple[tuple[int, int], tuple[float, float] | None]]
        self._means = {}

    # What the folder says

    @property
    def title(self) -> str:
        """What its builder called it, `.name("baseline")`; else its name here."""
        return self.experiment_log.name or self.name

    @property
    def config(self) -> dict[str, Any]:
        """The fields of `config.json`; none where there is no such file."""
        return self._read_config()[0]

    @property
    def damage(self) -> str:
        """What of the run cannot be read, and why; "" when all of it can.

        A damaged run still gives what is left of it.
        """
        return "; ".join(self._damages())

    @property
    def date(self) -> datetime:
        """When it began: the first line of the log, or else of the oldest file."""
        started = self.experiment_log.started
        if started is not None:
            return started
        times = [_changed(path) for path in _listed(self.path)]
        oldest = min(max(min(times, default=0.0), 0.0), LATEST)
        return datetime.fromtimestamp(oldest, UTC)

    @property
    def experiment_log(self) -> ExperimentLog:
        """What `experiment.log` says about the status of the run."""
        return read_experiment_log(self.path / "experiment.log")

    @property
    def epochs(self) -> int:
        """The newest epoch that has logs; without logs, that of a checkpoint.

        What an earlier and longer training left in the same folder does not count.
        """
        found = [epoch for split in SPLITS for epoch, _ in self._epoch_folders(split)]
        if not found:
            found = [checkpoint.epoch for checkpoint in self.checkpoints]
        return max(found, default=0)

    @property
    def num_epochs(self) -> int | None:
        """How many epochs were asked for, where the log or the config says it."""
        return self._asked_for(self.experiment_log, self.config)

    @property
    def state(self) -> str:
        """Either "running", "finished" or "stopped"; `reason` says why."""
        return self._life()[0]

    @property
    def reason(self) -> str:
        """Why it ended: "finished", "interrupted", an error, "killed"; "" if it runs.

        Why: Rust Burn does not write down that a training has ended. There a run counts
        as finished when all epochs of its config are validated, or, where the config
        says nothing about epochs, when its newest epoch is.
        """
        return self._life()[1]

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """The complete checkpoints, the newest last."""
        found: dict[tuple[int, str], dict[str, Path]] = {}
        for path in _listed(self.path / "checkpoint"):
            match = _CHECKPOINT.fullmatch(path.name)
            if match:
                found.setdefault((int(match[2]), match[3]), {})[match[1]] = path
        return [
            Checkpoint(epoch, tuple(files[part] for part in PARTS))
            for (epoch, _), files in sorted(found.items())
            if files.keys() == set(PARTS)
        ]

    # Metrics

    @property
    def metrics(self) -> list[tuple[str, str]]:
        """Every numeric metric with its split: [("Loss", "train"), …]."""
        return [
            (name, split) for split in SPLITS for name in sorted(self._names(split))
        ]

    def history(self, metric: str, split: str | Split = "valid") -> list[MetricPoint]:
        """The metric in every epoch: its mean, or what the run itself calls final.

        It is empty where only other splits have the metric, or the run has none at all.

        Raises:
            UnknownNameError: the run has metrics, but none of this name.
        """
        return self._known("history", metric, self._history(metric, split))

    def _history(self, metric: str, split: str | Split) -> list[MetricPoint]:
        points: list[MetricPoint] = []
        for epoch, path in self._files(metric, split):
            found = self._mean(path)
            if found is not None:
                points.append(MetricPoint(epoch, 0, *found))
        return points

    def batches(self, metric: str, split: str | Split = "valid") -> list[MetricPoint]:
        """The metric in every batch of every epoch.

        Raises:
            UnknownNameError: the run has metrics, but none of this name.
        """
        points: list[MetricPoint] = []
        for epoch, path in self._files(metric, split):
            log = read_log(path)
            if log is None:
                continue
            pairs = zip(log.values.tolist(), log.counts.tolist(), strict=True)
            for value, count in pairs:
                points.append(MetricPoint(epoch, len(points) + 1, value, count))
        return self._known("batches", metric, points)

    def last(
        self, metric: str, split: str | Split = "valid"
    ) -> tuple[int, float] | None:
        """The newest epoch and its number; None when the split does not have it.

        Raises:
            UnknownNameError: the run has metrics, but none of this name.
        """
        history = self._known("last", metric, self._history(metric, split))
        return (history[-1].epoch, history[-1].value) if history else None

    def best(
        self,
        metric: str,
        split: str | Split = "valid",
        direction: Direction | None = None,
    ) -> tuple[int, float] | None:
        """The best epoch and its number, the earliest among equals.

        direction: by default, a Loss is better when lower, an Accuracy when higher.

        Raises:
            UnknownNameError: the run has metrics, but none of this name.
        """
        history = self._known("best", metric, self._history(metric, split))
        return self._best_of(history, direction or direction_of(metric))

    def _best_of(
        self, history: list[MetricPoint], towards: Direction
    ) -> tuple[int, float] | None:
        best: tuple[int, float] | None = None
        for point in history:
            worse_so_far = best is None or best[1] != best[1]  # NaN is never good
            if worse_so_far or (best and better(point.value, best[1], towards)):
                best = (point.epoch, point.value)
        return best

    def __repr__(self) -> str:
        asked = self.num_epochs
        of = f" of {asked}" if asked else ""
        return f"Run({self.name!r}, {self.state}, epoch {self.epochs}{of})"

    # How

    def _known(
        self, method: str, metric: str, found: list[MetricPoint]
    ) -> list[MetricPoint]:
        """What was found; an error where nothing was, for a name that is not there."""
        if found:
            return found
        names = [name for name, _ in self.metrics]
        if names and metric not in names and not self._logs(metric):
            raise unknown_metric(f"Run.{method}", metric, names)
        return found

    def _logs(self, metric: str) -> bool:
        """Whether any split has a log of this metric, be it numeric or not."""
        pairs = (pair for split in SPLITS for pair in self._files(metric, split))
        return any(path.exists() for _, path in pairs)

    def _read_config(self) -> tuple[dict[str, Any], str]:
        """The fields, or why they cannot be read."""
        path = self.path / "config.json"
        if not os.path.lexists(path):
            return {}, ""
        try:
            tree = json.loads(read_whole(path, most=CONFIG_BYTES))
            if _depth(tree) > DEEPEST:
                return {}, "it is nested too deeply"
            if isinstance(tree, dict):
                return dict(_flat(tree)), ""
            return {}, "it holds no fields"
        except DataError as error:
            return {}, error.what
        except (ValueError, RecursionError, MemoryError):
            return {}, "it is not JSON"

    def _damages(self) -> Iterator[str]:
        if why := self._read_config()[1]:
            yield f"config.json: {why}"
        if why := self.experiment_log.damage:
            yield f"experiment.log: {why}"
        for split in SPLITS:
            for _, folder in self._epoch_folders(split):
                for path in _listed(folder):
                    why = damage_of(path) if path.suffix == ".log" else ""
                    if why:
                        name = path.relative_to(self.path).as_posix()
                        yield f"{printable(name)}: {why}"
                        return

    def _life(self) -> tuple[str, str]:
        """The state and the reason."""
        log = self.experiment_log
        status = log.status
        if status is not None and status.reason is not None:
            return ("finished" if status.finished else "stopped"), status.reason
        if log.trouble:
            return "stopped", log.trouble
        if self._goes_on(status):
            return "running", ""
        if status is not None:
            return "stopped", "killed"
        epochs, asked = self.epochs, self._asked_for(log, self.config)
        validated = [e for e, _ in self._epoch_folders("valid")]
        whole = epochs in validated or not validated
        if epochs and whole and epochs >= (asked or 0):
            return "finished", FINISHED
        return "stopped", "killed"

    def _goes_on(self, status: RunStatus | None) -> bool:
        alive = status.alive if status is not None else None
        if alive is not None:
            return alive
        newest = [self.path / "experiment.log"]
        for split in SPLITS:
            for _, folder in self._epoch_folders(split)[-1:]:
                newest += _listed(folder)
        silent = time.time() - max(map(_changed, newest), default=0.0)
        return silent < SILENT_SECONDS

    def _asked_for(self, log: ExperimentLog, config: dict[str, Any]) -> int | None:
        if log.status is not None:
            return log.status.num_epochs
        asked = config.get("num_epochs")
        return asked if type(asked) is int else None

    def _epoch_folders(self, split: str) -> list[tuple[int, Path]]:
        found: list[tuple[int, Path]] = []
        for path in _listed(self.path / split):
            match = _EPOCH.fullmatch(path.name)
            if match:
                found.append((int(match[1]), path))
        status = self.experiment_log.status if found else None
        last = status.last_epoch if status is not None else None
        return sorted(pair for pair in found if last is None or pair[0] <= last)

    def _names(self, split: str) -> set[str]:
        """The metrics whose logs begin with numbers."""
        found: dict[str, bool] = {}
        for _, folder in reversed(self._epoch_folders(split)):
            for path in _listed(folder):
                name = name_of(path.name)
                if path.suffix == ".log" and not found.get(name):
                    found[name] = _starts_with_number(path)
        return {name for name, numeric in found.items() if numeric}

    def _files(self, metric: str, split: str | Split) -> Iterator[tuple[int, Path]]:
        """The log files of a metric, epoch by epoch."""
        file, as_before = log_file(metric), f"{metric.replace(' ', '_')}.log"
        for epoch, folder in self._epoch_folders(split_name(split)):
            path = folder / file
            if as_before != file and "/" not in as_before and not path.exists():
                path = folder / as_before
            yield epoch, path

    def _mean(self, path: Path) -> tuple[float, float] | None:
        """The number of an epoch and its weight; read again when the file changes."""
        try:
            stat = path.stat()
        except OSError:
            return None
        seen = (stat.st_mtime_ns, stat.st_size)
        known = self._means.get(path)
        if known is None or known[0] != seen:
            log = read_log(path)
            mean = log.mean if log is not None else None
            pair = None if log is None or mean is None else (mean, log.weight)
            known = self._means[path] = (seen, pair)
        return known[1]


def is_run(path: Path) -> bool:
    """Whether a folder holds what a training leaves: logs of epochs or a checkpoint."""
    epochs = (p.name for split in SPLITS for p in _listed(path / split))
    if any(map(_EPOCH.fullmatch, epochs)):
        return True
    names = (p.name for p in _listed(path / "checkpoint"))
    if any(map(_CHECKPOINT.fullmatch, names)):
        return True
    return read_experiment_log(path / "experiment.log").started is not None


def split_name(split: str | Split) -> str:
    """The folder of a split: "Valid" and Split.Valid are "valid".

    Example:
        >>> split_name("Valid"), split_name(Split.Train)
        ('valid', 'train')
    """
    name = split.value if isinstance(split, Split) else str(split).lower()
    if name not in SPLITS:
        what = f"{split!r} is not a split"
        raise ConfigError("runs", what, cure=", ".join(SPLITS))
    return name


def direction_of(metric: str) -> Direction:
    """Which way a metric gets better, judged by the words in its name.

    Example:
        >>> direction_of("Loss").name, direction_of("Accuracy").name
        ('Lowest', 'Highest')
    """
    words = re.findall("[a-z]+", metric.lower())
    return Direction.Lowest if LOWER.intersection(words) else Direction.Highest


def _depth(tree: object) -> int:
    """How deeply lists and maps are nested."""
    level, depth = [tree], 0
    while level:
        inner = [each for each in level if isinstance(each, list | dict)]
        level = [v for e in inner for v in (e.values() if isinstance(e, dict) else e)]
        depth += bool(inner)
    return depth


def _flat(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """The fields of a tree of JSON, with dots between the names."""
    for key, value in tree.items():
        name = f"{path}.{key}" if path else key
        if isinstance(value, dict) and value:
            yield from _flat(value, name)
        else:
            yield name, value


def _listed(folder: Path) -> list[Path]:
    """What is in a folder; nothing when it is not a folder, or is a link to one."""
    if folder.is_symlink():
        return []
    with contextlib.suppress(OSError):
        return sorted(folder.iterdir())
    return []


def _changed(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def _starts_with_number(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            line = file.readline(200)
    except (DataError, OSError):
        return False
    whole = line.decode("utf-8", "replace")
    return whole.endswith("\n") and parse_log(whole.strip()) is not None
