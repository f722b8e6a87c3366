"""The trainings that run in this process, by name.

Whoever has lost sight of a training finds it here again: a notebook whose page was
reloaded, a second cell, a thread.

    live_runs()                          # {'guide': LiveRun(guide, training)}
    live_runs()["guide"].control.stop()

A training is registered before its first step and removed after its last; `result`
stays on the `LiveRun` that somebody has kept.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from burnbook.core.errors import ConfigError, TrainingError
from burnbook.core.files import shown_path
from burnbook.train.interrupter import SECONDS_BETWEEN_LOOKS, Interrupter
from burnbook.train.lock import FolderLock, Holder

LONGEST_NAME = 80  # characters
REPLACED = "replaced by a newer training"


class LiveRun:
    """A training that runs in this process.

    name: unique among those that run. directory: its artifact directory. control: stops
    and pauses it. renderer: what shows it, from its first step on. mode: "fit", "await"
    or "thread". began: when, in UTC. result: its TrainingResult, once it has ended.
    """

    def __init__(
        self, name: str, directory: Path, control: Interrupter, mode: str
    ) -> None:
        self.name, self.directory = name, directory
        self.control, self.mode = control, mode
        self.began = datetime.now(UTC)
        self.renderer: Any = None
        self.result: Any = None
        self.thread: threading.Thread | None = None
        self._shown = threading.Event()
        self._ended = threading.Event()

    def shown(self) -> None:
        """Its renderer shows it: whoever waits to see it goes on."""
        self._shown.set()

    def wait_until_shown(self, seconds: float) -> None:
        """Wait until it is shown or has ended, so many seconds at most."""
        self._shown.wait(seconds)

    @property
    def done(self) -> bool:
        """Whether the training has ended, in whatever way."""
        return self._ended.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end, so many seconds at most; whether it has ended."""
        return self._ended.wait(seconds)

    def end(self) -> None:
        """It has ended: whoever waits goes on."""
        self._ended.set()
        self._shown.set()

    def __repr__(self) -> str:
        if self.done:
            state = "ended"
        else:
            state = "paused" if self.control.paused else "training"
        return f"LiveRun({self.name}, {state})"


class _Entry:
    """What is registered: a run, and the folder that it writes to (None: none)."""

    def __init__(self, run: LiveRun, folder: str | None) -> None:
        self.run, self.folder = run, folder
        self.lock: FolderLock | None = None


_entries: dict[str, _Entry] = {}
_registering = threading.Lock()


def live_runs() -> dict[str, LiveRun]:
    """The trainings that run in this process, the oldest first, by their names.

    Example:
        >>> live_runs()
        {}
    """
    with _registering:
        return {name: entry.run for name, entry in _entries.items()}


@contextlib.contextmanager
def registered(
    name: str,
    directory: Path,
    control: Interrupter,
    mode: str,
    *,
    writes: bool,
    replace: bool = False,
) -> Generator[LiveRun]:
    """Register a training, and lock its folder if it writes into it.

    A folder that another training writes to raises TrainingError, which names it. With
    `replace`, what this process trains there is stopped first.
    """
    if replace:
        replace_runs(directory, control)
    entry = _enter(name, directory, control, mode, writes)
    try:
        if writes:
            entry.lock = FolderLock(directory, entry.run.name)
            entry.lock.acquire(replace)
        yield entry.run
    finally:
        if entry.lock is not None:
            entry.lock.release()
        with _registering:
            if _entries.get(entry.run.name) is entry:
                del _entries[entry.run.name]
        entry.run.end()


def replace_runs(directory: Path, control: Interrupter) -> None:
    """Stop what this process trains into a folder, or with this control; wait for it.

    Each ends after the batch that runs now, and keeps its model and result.
    """
    folder = os.path.realpath(directory)
    with _registering:
        runs = [
            entry.run
            for entry in _entries.values()
            if entry.folder == folder or entry.run.control is control
        ]
    for run in runs:
        if run.thread is threading.current_thread():
            raise TrainingError(
                f"artifact directory {shown_path(directory)}",
                f"{run.name} cannot be replaced by what it calls itself",
                cure="another folder for the training inside",
            )
        run.control.stop(REPLACED)
        while not run.wait(SECONDS_BETWEEN_LOOKS):
            run.control.stop(REPLACED)  # were it reset in between


def default_name(directory: Path) -> str:
    """The name of a run that was given none: the last part of its folder.

    Example:
        >>> default_name(Path("artifacts/guide")), default_name(Path("/"))
        ('guide', 'training')
    """
    last = directory.name if directory.name not in ("", "..") else ""
    last = last or Path(os.path.realpath(directory)).name
    text = "".join(c if c.isprintable() else "?" for c in last)
    return text[:LONGEST_NAME].strip() or "training"


def checked_name(where: str, name: object) -> str:
    """The name, if it is a line of at least one character and not too long."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        what = f"{name!r} is not the name of a run"
        raise ConfigError(where, what, cure='name("baseline")')
    if len(name.strip()) > LONGEST_NAME:
        what = f"a name of {len(name.strip())} characters does not fit a dashboard"
        raise ConfigError(where, what, cure=f"at most {LONGEST_NAME} characters")
    return name.strip()


def _enter(
    name: str, directory: Path, control: Interrupter, mode: str, writes: bool
) -> _Entry:
    folder = os.path.realpath(directory) if writes else None
    with _registering:
        for entry in _entries.values():
            if writes and entry.folder == folder:
                run = entry.run
                raise Holder.here(run.name, run.began).refuse(directory)
        names = itertools.chain([name], (f"{name} {n}" for n in itertools.count(2)))
        free = next(each for each in names if each not in _entries)
        entry = _Entry(LiveRun(free, directory, control, mode), folder)
        _entries[free] = entry
    return entry


def _forget() -> None:
    """In a forked child: the trainings stay with the parent."""
    global _registering
    _registering = threading.Lock()
    _entries.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
