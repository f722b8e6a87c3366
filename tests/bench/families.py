"""Every op of the table beside NumPy, PyTorch and MyGrad, at three sizes.

    python -m tests.bench families                  all of them, some fifteen minutes
    python -m tests.bench families curves powf      some families (files) or ops
    python -m tests.bench families --sizes 256x256 --only back curves

The rows follow from the declarations: an op that is declared has a row. Contenders live
in processes of their own and take turns, some milliseconds each, until the best times
repeat; a ratio is our best run over theirs: below 1 we are faster.
"""

import argparse
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import burnbook.ops  # noqa: F401 - declares them
from burnbook.core.op import OPS, Op, draw
from tests.bench.growth import SIZES, family_of, grow
from tests.bench.rounds import ROOT

RIVALS = ("numpy", "pytorch", "mygrad")
SHORT = {"numpy": "np", "pytorch": "pt", "mygrad": "mg"}
LIMIT = 2.0  # times PyTorch, at the two larger sizes
LEAST_ROUNDS = 4
GRADIENTS = {rule for op in OPS.values() for rule in op.rules.values()}

MOST = 10  # rows that may be above it, with a reason
TRUTHS = "4 MB of truths take 50 µs on two threads, and ours wakes after 25"
TOTAL = "PyTorch adds 16 MB from the last cache in 100 µs; ours wakes after 25"
MOVED = "32 MB are moved, by NumPy in two threads: 1.3 to 2.2 from run to run"
SMALL_PAIR = (
    "6 µs of PyTorch, ours and 5 of checks in Python: 1.9 to 2.1 from run to run"
)
EXACT = "in double precision by LAPACK, where PyTorch works in single"

# What is above the limit now and then, and why: (op, with its gradient) -> reason.
SLOW: dict[tuple[str, bool], str] = {
    ("bool_not", False): TRUTHS,
    ("bool_and", False): TRUTHS,
    ("bool_or", False): TRUTHS,
    ("bool_xor", False): TRUTHS,
    ("sum", False): TOTAL,
    ("mean", False): TOTAL,
    ("abs", False): MOVED,
    ("add", False): SMALL_PAIR,
    ("max_pair", False): SMALL_PAIR,
    ("det", True): EXACT,
}


@dataclass(frozen=True)
class Case:
    """An op's inputs at one size, in a file, and how long to run on them."""

    size: tuple[int, int]
    file: str
    most_rounds: int
    milliseconds: float


@dataclass
class Cell:
    """One op at one size: our time, and its ratio to every rival."""

    op: str
    size: tuple[int, int]
    back: bool
    seconds: float
    ratios: dict[str, float]
    errors: dict[str, str]


class Side:
    """A contender in its own process."""

    def __init__(self, name: str):
        paths = [str(ROOT), str(ROOT / "widgets"), os.environ.get("PYTHONPATH", "")]
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.sides", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )

    def ask(self, *order: Any) -> dict[str, Any]:
        """Run a slice of time and hear what one run took."""
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the process died"}

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def rows(names: Iterable[str]) -> list[Op]:
    """The ops to measure; gradients that are ops are measured with their op."""
    chosen = [o for o in OPS.values() if o.samples and o not in GRADIENTS]
    names = set(names)
    unknown = names - {o.name for o in chosen} - {family_of(o) for o in chosen}
    if unknown:
        raise SystemExit(f"no op and no family has the name {', '.join(unknown)}")
    if names:
        chosen = [o for o in chosen if {o.name, family_of(o)} & names]
    return sorted(chosen, key=family_of)


def contenders() -> list[Side]:
    """Ourselves first, then whoever is installed."""
    known = {"numpy": "numpy", "pytorch": "torch", "mygrad": "mygrad"}
    here = [name for name in RIVALS if importlib.util.find_spec(known[name])]
    return [Side(name) for name in ("ours", *here)]


def measure(sides: list[Side], op: Op, back: bool, case: Case) -> Cell:
    """Take turns until the best two slices of everybody agree; ours is the first side.

    Why: on a busy machine threads that wait for each other, as PyTorch's do, lose whole
    slices of time; medians of a few rounds would flatter us.
    """
    order = (op.name, *case.size, case.file, back)
    slices: dict[str, list[float]] = {}
    errors: dict[str, str] = {}
    for side in sides:  # everybody warms up before anybody is measured
        answer = side.ask(*order, 1)
        if "error" in answer:
            errors[side.name] = answer["error"]
        elif answer["seconds"] is not None:
            slices[side.name] = []
    working = [side for side in sides if side.name in slices]
    for count in range(case.most_rounds):
        if count >= LEAST_ROUNDS and all(map(settled, slices.values())):
            break
        for side in working:
            rest()
            took = side.ask(*order, case.milliseconds)["seconds"]
            slices[side.name].append(took)
    best = {name: min(took) for name, took in slices.items()}
    mine = best.pop("ours", float("nan"))
    ratios = {name: mine / other for name, other in best.items()}
    return Cell(op.name, case.size, back, mine, ratios, errors)


def rest(patience: float = 0.03) -> None:
    """Let the threads of the one before stop, and wait a little for a quiet machine."""
    end = time.perf_counter() + patience
    time.sleep(0.003)
    with suppress(OSError):  # only Linux tells how many want to run; we are one
        while time.perf_counter() < end:
            running = Path("/proc/loadavg").read_text().split()[3].split("/")[0]
            if int(running) <= 1:
                return
            time.sleep(0.002)


def settled(slices: list[float]) -> bool:
    """Whether the best slice was no accident: another one came within a twentieth."""
    best, second = sorted(slices)[:2]
    return second < 1.05 * best


def draw_inputs(op: Op, size: tuple[int, int], file: str) -> None:
    """Write the arrays that every contender gets, floats in float32."""
    specs, _ = grow(op, *size)
    rng = np.random.default_rng(0)
    drawn = [draw(spec, rng) for spec in specs]
    floats = [a.astype(np.float32) if a.dtype.kind == "f" else a for a in drawn]
    np.savez(file, *floats)


def table(
    names: Iterable[str],
    sizes: Iterable[tuple[int, int]] = SIZES,
    backs: Iterable[bool] = (False, True),
    rounds: int = 40,
    milliseconds: float = 10,
) -> Iterator[list[Cell]]:
    """The cells of one op after the other: forward, then forward and back."""
    sides = contenders()
    try:
        for number, op in enumerate(rows(names)):
            with tempfile.TemporaryDirectory() as folder:
                cases = []
                for size in sizes:
                    file = f"{folder}/{number}-{size[0]}x{size[1]}.npz"
                    draw_inputs(op, size, file)
                    cases.append(Case(size, file, rounds, milliseconds))
                for back in backs:
                    if op.rules or not back:
                        yield [measure(sides, op, back, case) for case in cases]
    finally:
        for side in sides:
            side.stop()


def too_slow(cell: Cell) -> bool:
    """Whether a cell is above the limit, at a size where there is one."""
    return cell.size != SIZES[0] and cell.ratios.get("pytorch", 0) > LIMIT


def shown(cell: Cell) -> str:
    """A cell as text: our time, and the ratios."""
    if math.isnan(cell.seconds):
        return f"failed: {cell.errors.get('ours', '')}"
    micros = cell.seconds * 1e6
    time_ = f"{micros:.1f} µs" if micros < 1000 else f"{micros / 1000:.1f} ms"
    parts = [f"{SHORT[name]} {ratio:.2f}" for name, ratio in cell.ratios.items()]
    parts += [f"{SHORT[name]} failed: {text}" for name, text in cell.errors.items()]
    text = f"{time_} · {' · '.join(parts)}"
    return f"**{text}**" if too_slow(cell) else text


def summary(cells: list[Cell]) -> Iterator[str]:
    """A line for every family: the median ratio to PyTorch, and the worst."""
    yield "| family | ops | forward, median (worst) | and back, median (worst) |"
    yield "|---|---|---|---|"
    families = {name: family_of(OPS[name]) for name in {c.op for c in cells}}
    for family in sorted(set(families.values())):
        own = [c for c in cells if families[c.op] == family and c.size != SIZES[0]]
        halves = []
        for back in (False, True):
            found = [
                (c.ratios["pytorch"], c.op)
                for c in own
                if c.back == back and "pytorch" in c.ratios
            ]
            middle = statistics.median(r for r, _ in found) if found else 0
            worst = max(found, default=(0, ""))
            text = f"{middle:.2f} ({worst[0]:.2f} {worst[1]})" if found else "–"
            halves.append(text)
        yield f"| {family} | {len({c.op for c in own})} | {' | '.join(halves)} |"


def reasons(cells: list[Cell]) -> Iterator[str]:
    """A line for every cell above the limit, and why it is there."""
    above = [cell for cell in cells if too_slow(cell)]
    if above:
        yield f"| above {LIMIT:g} × PyTorch | why |"
        yield "|---|---|"
    for cell in above:
        name = f"{cell.op}, and back" if cell.back else cell.op
        size = " × ".join(map(str, cell.size))
        why = SLOW.get((cell.op, cell.back), "no reason is known")
        yield f"| {name}, {size}: {cell.ratios['pytorch']:.2f} | {why} |"


def main(arguments: list[str] | None = None) -> None:
    """Print the table as Markdown."""
    asked = argparse.ArgumentParser(prog="python -m tests.bench families")
    asked.add_argument("names", nargs="*", help="families (files of ops) or ops")
    asked.add_argument("--rounds", type=int, default=40, help="at most")
    asked.add_argument("--ms", type=float, default=10, help="the length of a slice")
    asked.add_argument("--sizes", default="8x8,256x256,4096x1024")
    asked.add_argument("--only", choices=("forward", "back"))
    asked.add_argument("--slow", action="store_true", help="only what is too slow")
    chosen = asked.parse_args(arguments)
    sizes = [tuple(map(int, size.split("x"))) for size in chosen.sizes.split(",")]
    backs = {"forward": (False,), "back": (True,)}.get(chosen.only, (False, True))
    heads = "".join(f" {r} × {c} |" for r, c in sizes) + "\n|---"
    heads += "|---" * len(sizes) + "|"
    cells: list[Cell] = []
    later: list[str] = []
    print(f"| forward |{heads}", flush=True)
    options = (sizes, backs, chosen.rounds, chosen.ms)
    for found in table(chosen.names, *options):
        cells += found
        if chosen.slow and not any(map(too_slow, found)):
            continue
        line = f"| {found[0].op} | {' | '.join(map(shown, found))} |"
        if found[0].back:
            later.append(line)
        else:
            print(line, flush=True)
    print(f"\n| forward and back |{heads}", *later, "", *summary(cells), sep="\n")
    print("", *reasons(cells), sep="\n")


if __name__ == "__main__":
    main()
