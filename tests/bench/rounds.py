"""Compare implementations fairly: each in a process of its own, taking turns.

A machine is never quiet, so times of different minutes mean nothing next to each other.
Every contender lives in its own process (with its own threads) and waits while the
others run; a round gives each a slice of time, and what counts is the ratio of the
medians within a round. The result is the median of these ratios.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Contender:
    """One implementation of a workload: "module:function", and its environment.

    command: a program that speaks the protocol of worker.py, in place of Python.
    """

    name: str
    make: str
    args: tuple = ()
    env: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()


@dataclass
class Result:
    """What came out for one contender; spread: of its quickest and slowest round."""

    name: str
    milliseconds: float
    spread: tuple[float, float]
    ratio: float
    first_ms: float
    peak_mb: float
    ratios: list[float]


class Process:
    """A contender at work in its own process."""

    def __init__(self, contender: Contender):
        self.name = contender.name
        self.slices: list[float] = []
        paths = [str(ROOT), str(ROOT / "widgets"), os.environ.get("PYTHONPATH", "")]
        self.process = subprocess.Popen(
            contender.command
            or [
                *(sys.executable, "-m", "tests.bench.worker"),
                *(contender.make, json.dumps(contender.args)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **contender.env},
        )
        self.facts = self.hear()

    def hear(self) -> dict:
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the process died"}

    def slice(self, milliseconds: float) -> None:
        self.process.stdin.write(f"{milliseconds}\n")
        self.process.stdin.flush()
        self.facts.update(self.hear())
        if "median" in self.facts:
            self.slices.append(self.facts["median"])

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def compare(
    contenders: list[Contender], rounds: int = 20, milliseconds: float = 200
) -> tuple[list[Result], dict[str, str]]:
    """Run contenders in turns; ratios are to the first one. Also what went wrong."""
    processes, failed = [], {}
    for contender in contenders:
        process = Process(contender)
        if "error" in process.facts:
            failed[contender.name] = process.facts["error"]
        else:
            processes.append(process)
    for _ in range(rounds):
        for process in processes:
            time.sleep(0.08)  # threads of the one before come to rest
            process.slice(milliseconds)
    for process in processes:
        process.stop()
    results = []
    for process in processes:
        pairs = zip(process.slices, processes[0].slices, strict=False)
        ratios = [mine / reference for mine, reference in pairs]
        results.append(
            Result(
                process.name,
                statistics.median(process.slices) * 1e3,
                (min(process.slices) * 1e3, max(process.slices) * 1e3),
                statistics.median(ratios),
                process.facts["first"] * 1e3,
                process.facts["peak"] / 1024,
                ratios,
            )
        )
    return results, failed
