"""Calls in processes that have run nothing before: one process for each call.

A parent imports what it is told to, and runs nothing; for each job it forks a child,
which runs one call and ends. So each call is the first thing its process does, and no
import of another test has prepared the way, for the price of a fork.

    python -m tests.support.fresh tests.support.fresh_calls:run nn.Conv1d compiled large
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = 2
SECONDS = 300  # for one call; the slowest takes a second, more on a busy machine

needs_fork = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="children of a process that ran nothing need fork"
)


class Outcome(NamedTuple):
    """What became of a call: its answer, or its traceback."""

    answer: Any
    trouble: str | None


def run_fresh(
    jobs: Mapping[str, Sequence[Any]],
    imports: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> dict[str, Outcome]:
    """Run each job, `(module:function, argument, …)`, in a process of its own.

    imports: the modules that the parent imports, and nothing else.
    """
    paths = [str(ROOT), str(ROOT / "widgets"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.fresh"],
        input=json.dumps({"imports": list(imports), "jobs": dict(jobs)}),
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "OPENBLAS_NUM_THREADS": "1",  # AT_ONCE calls share the cores
            **(environment or {}),
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return {name: Outcome(*each) for name, each in json.loads(done.stdout).items()}


def troubles(outcomes: Mapping[str, Outcome]) -> list[str]:
    """The calls that failed, each with the last lines of its traceback."""
    failed = {name: each.trouble for name, each in outcomes.items() if each.trouble}
    return [f"{name}: {text[-1500:]}" for name, text in failed.items()]


def serve() -> None:
    """Be the parent: read the jobs, fork for each, print what became of them."""
    order = json.load(sys.stdin)
    for name in order["imports"]:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        running: dict[int, str] = {}
        outcomes: dict[str, Any] = {}
        for name, job in order["jobs"].items():
            if len(running) == AT_ONCE:
                _collect(folder, running, outcomes)
            running[_start(folder, name, job)] = name
        while running:
            _collect(folder, running, outcomes)
    json.dump(outcomes, sys.stdout)


def _start(folder: str, name: str, job: Sequence[Any]) -> int:
    with warnings.catch_warnings():  # BLAS has threads, and knows what to do at a fork
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    signal.alarm(SECONDS)
    try:
        with Path(folder, str(os.getpid())).open("w") as file:
            os.dup2(file.fileno(), 1), os.dup2(file.fileno(), 2)
            try:
                outcome = call(*job), None
            except BaseException:
                outcome = None, traceback.format_exc()
            Path(folder, f"{os.getpid()}.json").write_text(json.dumps(outcome))
    finally:
        os._exit(0)
    return 0


def _collect(folder: str, running: dict[int, str], outcomes: dict[str, Any]) -> None:
    """Wait for one child, whichever ends first."""
    child, status = os.wait()
    found = Path(folder, f"{child}.json")
    if found.exists():
        outcome = json.loads(found.read_text())
    else:
        said = Path(folder, str(child)).read_text()
        outcome = None, f"{said}\nthe process died, status {status}"
    outcomes[running.pop(child)] = outcome


def call(place: str, *arguments: Any) -> Any:
    """Call `module:function` with the arguments."""
    module, _, function = place.partition(":")
    return getattr(importlib.import_module(module), function)(*arguments)


if __name__ == "__main__":
    if sys.argv[1:]:
        print(call(*sys.argv[1:]))
    else:
        serve()
