"""Compiling the kernels, so that nobody waits for them.

A training on a new machine begins at once, in plain NumPy, while a process of low
priority compiles the kernels beside it: family by family, those of the guide's network
first, and several at a time where there are cores to spare. Every process uses the
families that were ready when it first looked, so results do not change in mid-run.
`burnbook warmup` does the same while one looks on, with all cores.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from burnbook.backend.compiled.families import FAMILIES
from burnbook.backend.compiled.loading import load
from burnbook.backend.compiled.runtime import cache
from burnbook.backend.compiled.runtime.thread_pool import Locked, cores
from burnbook.core.files import lock_file

SWITCH = "BURNBOOK_WARMUP"  # "off": nothing is compiled in the background
NICE = 19  # the priority that gives way to all others
LOCK = "compiling"  # held by the one process that compiles in the background


def missing() -> list[str]:
    """The families that are not compiled yet, in the order of the table."""
    ready = cache.ready()
    return [family for family in FAMILIES if family not in ready]


def warm_up(stream: TextIO | None = None) -> bool:
    """Compile every kernel, unless that was done before; False without numba."""
    if not cache.has_numba():
        return False
    _say(stream, cache.notice())
    todo = missing()
    if not todo:
        return True
    started = time.perf_counter()
    stop_background()
    failed = compile_all(todo, min(cores(), len(todo)), stream)
    if failed:
        _say(stream, f"not compiled, plain NumPy runs there: {', '.join(failed)}\n")
    _say(stream, f"kernels compiled in {time.perf_counter() - started:.0f} s\n")
    return True


def compile_all(todo: list[str], workers: int, stream: TextIO | None) -> list[str]:
    """Compile families in so many processes; gives those that did not succeed.

    Ctrl-C ends the processes; what they had finished is kept.
    """
    left: Iterator[int] = Locked(range(len(todo)))
    failed: list[str] = []
    running: list[subprocess.Popen[str]] = []
    helpers = [
        threading.Thread(target=_feed, args=(left, todo, failed, running, stream))
        for _ in range(workers)
    ]
    for helper in helpers:
        helper.start()
    try:
        for helper in helpers:
            helper.join()
    except BaseException:
        while next(left, None) is not None:  # nothing is begun any more
            pass
        while any(helper.is_alive() for helper in helpers):
            for worker in list(running):
                worker.kill()
            time.sleep(0.05)
        raise
    return failed


def _feed(
    left: Iterator[int],
    todo: list[str],
    failed: list[str],
    running: list[subprocess.Popen[str]],
    stream: TextIO | None,
) -> None:
    """Give families to a process of its own, one after the other."""
    worker: Any = None
    for number in left:
        family = todo[number]
        _say(stream, f"compiling kernels {number + 1}/{len(todo)}: {family}\n")
        if worker is None:
            worker = _start("compile_families", stdin=subprocess.PIPE)
            running.append(worker)
        try:
            worker.stdin.write(f"{family}\n")
            worker.stdin.flush()
            done = worker.stdout.readline() == f"{family}\n"
        except OSError:
            done = False
        if not done:
            failed.append(family)
            worker.kill()
            worker.communicate()
            worker = None
    if worker is not None:
        worker.communicate()


def _start(what: str, **options: object) -> subprocess.Popen[str]:
    """A process of this file."""
    command = [sys.executable, "-c", f"from {__name__} import {what}; {what}()"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    paths = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return subprocess.Popen(command, env=env, **{**streams, **options})


def start_in_background() -> bool:
    """Have what is missing compiled by a process that outlives this one.

    False where that is switched off or there can be no processes.
    """
    if os.environ.get(SWITCH) == "off" or not cache.has_numba():
        return False
    silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    try:
        _start("compile_in_background", start_new_session=True, **silent)
    except (OSError, NotImplementedError):  # as in a browser
        return False
    return True


def stop_background() -> None:
    """End the process that compiles in the background; whoever calls takes over."""
    path = cache.folder() / LOCK
    with suppress(OSError, ValueError):
        file = os.open(path, os.O_RDWR)
        try:
            if lock_file(file) is False and os.name != "nt":
                os.killpg(int(os.read(file, 32)), signal.SIGTERM)
        finally:
            os.close(file)


def compile_in_background() -> None:
    """Compile what is missing with the cores to spare, unless somebody does already."""
    if hasattr(os, "nice"):
        os.nice(NICE)
    file = os.open(cache.folder() / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    if lock_file(file) is False:  # None: there are no locks here
        return
    os.truncate(file, 0)
    os.write(file, str(os.getpid()).encode())
    compile_all(missing(), max(1, cores() - 1), None)


def compile_families() -> None:
    """Compile the families whose names come in, and say each name when it is done."""
    from burnbook.backend.compiled.runtime import jit

    jit.uses_kept_code = False  # kernels of one family are parts of another's
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever has started this ends it
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes elsewhere
    for line in sys.stdin:
        family = line.strip()
        load(family)
        jit.compile_waiting()
        cache.write_note(family)
        answers.write(f"{family}\n")
        answers.flush()


def _say(stream: TextIO | None, text: str) -> None:
    if stream is not None:
        stream.write(text)
        stream.flush()
